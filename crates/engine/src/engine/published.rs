//! What requests and work in the background share of the catalog: the snapshot that is in force, the stores, and what is under way in
//! them. The catalog changes the schema and publishes here; deliberately absent are changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use tokio::sync::watch;

use super::index::Indexes;
use super::pending::{Pending, RecordId};
use super::snapshot::Snapshot;
use crate::partition::{KeyLocks, StoreId, Stores};
use helenus_base::clock::Clock;
use helenus_base::tasks::Tasks;
use helenus_storage::storage::Store;

/// The published state of a server's catalog.
pub(crate) struct Published {
    current: ArcSwap<Snapshot>,
    /// Rises with every change that a follower of the catalog needs.
    pub(in crate::engine) changes: Arc<watch::Sender<u64>>,
    stores: Stores,
    pub(in crate::engine) clock: Clock,
    /// The build state of each index.
    pub(crate) indexes: Arc<Indexes>,
    /// The build state of each materialized view.
    pub(crate) views: Arc<Indexes>,
    /// The locks of logical partitions.
    pub(crate) locks: Arc<KeyLocks>,
    /// Logged batches of which a part may not be written yet.
    pub(crate) pending: Arc<Pending>,
    /// The number of the next record of the batch log. No record that was found when the catalog was opened has this
    /// number or one above it.
    next_batch: AtomicU64,
    /// Runs background work.
    pub(crate) tasks: Tasks,
}

impl Published {
    /// The first snapshot. `next_batch` is above the number of every batch that is recorded.
    pub(super) fn new(first: Snapshot, stores: Stores, clock: Clock, tasks: Tasks, next_batch: u64) -> Self {
        let changes = Arc::new(watch::Sender::new(1));
        let indexes = || Arc::new(Indexes::told_by(&changes));
        Self {
            indexes: indexes(),
            views: indexes(),
            current: ArcSwap::from_pointee(first),
            changes,
            stores,
            clock,
            locks: Arc::default(),
            pending: Arc::default(),
            next_batch: AtomicU64::new(next_batch),
            tasks,
        }
    }

    /// The snapshot in force, as an owned handle.
    pub(crate) fn load_full(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// The snapshot in force, borrowed.
    pub(crate) fn load(&self) -> arc_swap::Guard<Arc<Snapshot>> {
        self.current.load()
    }

    /// Puts a snapshot in force. Requests keep the one with which they began.
    pub(super) fn replace(&self, next: Snapshot) {
        self.current.store(Arc::new(next));
        self.changes.send_modify(|number| *number += 1);
    }

    /// The main store, which holds the catalog, and the side stores.
    pub(crate) const fn stores(&self) -> &Stores {
        &self.stores
    }

    /// The store that holds the catalog.
    pub(crate) fn main(&self) -> &Store {
        self.stores.main()
    }

    /// Seconds since 1970-01-01 UTC.
    pub(crate) fn now_seconds(&self) -> i64 {
        self.clock.wall_seconds()
    }

    /// A new record of the batch log of a store.
    pub(crate) fn new_batch(&self, store: StoreId) -> RecordId {
        RecordId {
            store,
            number: self.next_batch.fetch_add(1, Ordering::Relaxed),
        }
    }
}
