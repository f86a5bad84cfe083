//! The purge of one physical partition, under its latch.

use super::Hosted;
use helenus_storage::storage::{self, Sweep, Swept};

impl Hosted {
    /// Purges a range of the partition, unless it is moved meanwhile.
    ///
    /// # Errors
    /// When its store fails; earlier removals remain.
    pub(crate) async fn purge(&self, mut sweep: Sweep) -> storage::Result<Swept> {
        while let Some(pass) = self.latch.acquire_to_purge() {
            let is_done = match self.store().sweep_stride(&mut sweep).await {
                Ok(stride) => stride.is_break(),
                // The rows may have changed since they were checked; the next purge starts from the beginning.
                Err(storage::Error::OpenedAgain) => true,
                Err(error) => return Err(error),
            };
            drop(pass);
            if is_done {
                break;
            }
            tokio::task::yield_now().await;
        }
        Ok(sweep.swept())
    }
}
