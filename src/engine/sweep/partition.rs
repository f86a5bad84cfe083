//! The purge of one physical partition, under its latch.

use crate::partition::Hosted;
use crate::partition::store::{self, Sweep, Swept};

/// Purges a range of a physical partition, unless it is moved meanwhile.
///
/// # Errors
/// When its store fails; earlier removals remain.
pub(in crate::engine) async fn sweep_partition(partition: &Hosted, mut sweep: Sweep) -> store::Result<Swept> {
    while let Some(pass) = partition.latch.acquire_to_purge() {
        let is_done = match partition.store().sweep_stride(&mut sweep).await {
            Ok(stride) => stride.is_break(),
            // The rows may have changed since they were checked; the next purge starts from the beginning.
            Err(store::Error::OpenedAgain) => true,
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
