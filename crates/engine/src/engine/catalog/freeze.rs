//! A consistent snapshot of all stores, for a backup.
//!
//! ```text
//! changes of the catalog wait ─ all latches held ─ an empty commit to each store ─ a snapshot of each ─ all continue
//! ```
//! A writer of rows holds its latches until every store has its part. So while all latches are held, no logged batch is
//! half written, except for those that failed and wait for their replay: their records are in the main store's snapshot
//! (batch_log.rs). The records of whole batches are removed before. The empty commit completes after every commit that cancelled requests had submitted to a store.
//!
//! A frozen state keeps the current partition maps, and thereby all rows in their stores: moved rows and dropped tables
//! are removed only when no request uses an older map any more (leftovers.rs).

use std::sync::Arc;
use std::time::Duration;

use super::Catalog;
use super::leftovers::PAUSE;
use crate::engine::snapshot::Snapshot;
use crate::engine::{Error, batch_log, storage_write};
use crate::partition::PartitionLatch;
use crate::partition::backups::Moments;
use helenus_base::mutant::{self, Mutant};

/// Longest time for which writes wait, in one attempt, for the writers that hold a latch.
const HOLD_WITHIN: Duration = Duration::from_secs(2);

/// Most attempts to hold all latches. Between two attempts all writes continue: a store may be slow for a while.
const HOLDS_MAX: usize = 15;

/// The state of the database at one moment.
pub(in crate::engine) struct Frozen {
    /// The schema and the partition maps.
    pub(in crate::engine) catalog: Arc<Snapshot>,
    /// The snapshots of the stores.
    pub(in crate::engine) moments: Moments,
    /// The moment by the wall clock, µs since 1970-01-01 UTC.
    pub(in crate::engine) moment_micros: i64,
    /// A timestamp above all that were issued before, µs.
    pub(in crate::engine) timestamp_micros: i64,
    /// How long writes waited.
    pub(in crate::engine) held: Duration,
}

impl Catalog {
    /// Takes a snapshot of each store, all at one moment. Writes wait meanwhile, reads do not.
    ///
    /// # Errors
    /// A store fails, a change of the schema is in doubt, or a write does not end in time; nothing waits then.
    pub(in crate::engine) async fn freeze(self: &Arc<Self>) -> Result<Frozen, Error> {
        for _ in 0..HOLDS_MAX {
            if let Some(frozen) = self.try_to_freeze().await? {
                return Ok(frozen);
            }
            tracing::warn!(
                "a backup waits: some writes did not end in time, so all writes continue before the next attempt"
            );
            self.main().pause(PAUSE).await;
        }
        Err(Error::Fault(format!(
            "writes that had begun did not end within {} s, {HOLDS_MAX} times, so there is no backup: look at the disk, and try again",
            HOLD_WITHIN.as_secs()
        )))
    }

    /// `None` means that a write did not end in time.
    async fn try_to_freeze(self: &Arc<Self>) -> Result<Option<Frozen>, Error> {
        let mut changing = self.changing.lock().await;
        self.resolve_locked(&mut changing).await?;
        let catalog = self.load_full();
        let maps: Vec<_> = catalog.partitions.values().cloned().collect();
        let began = self.published.clock.monotonic();
        let latches = maps
            .iter()
            .flat_map(|map| map.here())
            .map(|partition| &partition.latch)
            .filter(|_| !mutant::is_on(Mutant::SnapshotWithoutLatches));
        let Ok(hold) = tokio::time::timeout(HOLD_WITHIN, PartitionLatch::hold_all(latches)).await else {
            return Ok(None);
        };
        batch_log::remove_whole(&self.published)
            .await
            .map_err(|error| storage_write(&error))?;
        let moments = Moments::take(self.placement.homes.kept(), maps.iter().map(AsRef::as_ref)).await;
        let moments = moments.map_err(|error| storage_write(&error))?;
        let frozen = Frozen {
            moments,
            moment_micros: self.published.clock.wall_micros(),
            timestamp_micros: self.timestamps.next_micros(),
            held: self.published.clock.monotonic().saturating_sub(began),
            catalog,
        };
        drop(hold);
        Ok(Some(frozen))
    }
}
