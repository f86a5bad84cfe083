//! Space in an engine's queue, bounded in bytes and in batches by one semaphore.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::storage::engine::options::Options;
use crate::storage::{Error, Result};

/// Bytes per permit.
const UNIT_BYTES: usize = 1024;

/// The queue's space. A batch takes at least (all units / most batches that may wait), so one semaphore enforces both
/// bounds. A batch larger than the whole space takes all of it.
#[derive(Debug)]
pub(super) struct QueueSpace {
    free: Arc<Semaphore>,
    units: usize,
    batch_units_min: usize,
    batch_bytes_max: usize,
}

impl QueueSpace {
    pub(super) fn new(options: &Options) -> Self {
        let units = options.commit_queue_bytes_max.div_ceil(UNIT_BYTES);
        let units = units.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            free: Arc::new(Semaphore::new(units)),
            units,
            batch_units_min: units.div_ceil(options.commit_queue_batches_max.max(1)),
            batch_bytes_max: options.batch_bytes_max,
        }
    }

    /// Refuses a batch with more bytes than one may have.
    pub(super) fn check(&self, bytes: usize) -> Result<()> {
        if bytes <= self.batch_bytes_max {
            return Ok(());
        }
        Err(Error::BatchTooLarge {
            bytes,
            bytes_max: self.batch_bytes_max,
        })
    }

    /// Waits for space for a batch of this many bytes; dropping the permit returns it.
    ///
    /// # Errors
    /// When a batch may not be so large, and when the store is closed.
    pub(super) async fn take(&self, bytes: usize) -> Result<OwnedSemaphorePermit> {
        self.check(bytes)?;
        let units = bytes.div_ceil(UNIT_BYTES).clamp(self.batch_units_min, self.units);
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        match Arc::clone(&self.free).try_acquire_many_owned(units) {
            Ok(permit) => Ok(permit),
            // Boxed, since it is rare and would make every commit's future larger.
            Err(_) => Box::pin(Arc::clone(&self.free).acquire_many_owned(units))
                .await
                .map_err(|_| Error::Closed),
        }
    }

    /// Grants no more space.
    pub(super) fn close(&self) {
        self.free.close();
    }
}
