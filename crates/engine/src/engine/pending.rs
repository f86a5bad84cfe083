//! Logged batches in flight (batch_log.rs), and the deletions that a purge keeps for them.
//!
//! The record of a whole batch is not removed by a commit of its own: the next record's commit removes it, or a task
//! soon afterwards. Until then the batch is pending, since a start would write it again.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::partition::StoreId;

/// Deletions are kept if they were made up to this many seconds before a batch in flight was logged. A request that had
/// begun by then may have taken its timestamp earlier, and hide parts of the batch. The time is longer than any request
/// waits for its commit.
const IN_FLIGHT_SECONDS: i64 = 60;

/// Prefix of the keys of batch records, in the catalog space.
pub(crate) const RECORD: &[u8] = b"!batch";

/// The place of a record of the batch log. No two records have one number, whatever their stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RecordId {
    /// The store that holds it.
    pub(crate) store: StoreId,
    pub(crate) number: u64,
}

/// A record of the batch log.
#[derive(Clone, Debug)]
pub(crate) struct Logged {
    pub(crate) id: RecordId,
    pub(crate) record: Bytes,
}

impl RecordId {
    /// Its key in its store.
    pub(crate) fn key(self) -> Vec<u8> {
        [RECORD, &self.number.to_be_bytes()].concat()
    }

    /// The record under a key of a store. `None` means that the key is none of a record.
    pub(crate) fn of_key(store: StoreId, key: &[u8]) -> Option<Self> {
        let number = key.strip_prefix(RECORD)?.try_into().ok()?;
        Some(Self {
            store,
            number: u64::from_be_bytes(number),
        })
    }
}

/// The first number above those of all records.
pub(crate) fn number_after(records: &[Logged]) -> u64 {
    let last = records.iter().map(|logged| logged.id.number).max();
    last.map_or(0, |last| last.saturating_add(1))
}

/// Whole batches whose records are left at once; one more is removed by a commit of its own.
const WHOLE_MAX: usize = 1024;

/// A batch all of whose parts are written, and whose record is still there.
#[derive(Debug)]
pub(crate) struct Whole {
    /// Its record.
    pub(crate) id: RecordId,
    /// The stores that have a part, besides the one with the record.
    pub(crate) stores: Vec<StoreId>,
}

/// The logged batches of all stores whose records may be there.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// By record. The value is the time of logging, s since 1970-01-01 UTC. `None` means that a part
    /// failed and waits for its replay. At most one entry for each request and task that works on a batch, and for each
    /// whole one.
    all: Mutex<BTreeMap<RecordId, Option<i64>>>,
    whole: Mutex<WholeOnes>,
}

#[derive(Debug, Default)]
struct WholeOnes {
    batches: Vec<Whole>,
    /// Whether a task will remove their records.
    is_awaited: bool,
}

/// How the record of a whole batch is to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removal {
    /// A task waits to do it.
    Awaited,
    /// A task is to be started for it.
    Start,
    /// There are too many: at once.
    Now,
}

impl Pending {
    fn all(&self) -> MutexGuard<'_, BTreeMap<RecordId, Option<i64>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn whole_ones(&self) -> MutexGuard<'_, WholeOnes> {
        self.whole.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a batch all of whose parts are written.
    pub(crate) fn whole(&self, batch: Whole) -> Removal {
        let mut whole = self.whole_ones();
        whole.batches.push(batch);
        if whole.batches.len() > WHOLE_MAX {
            return Removal::Now;
        }
        if std::mem::replace(&mut whole.is_awaited, true) {
            return Removal::Awaited;
        }
        Removal::Start
    }

    /// The whole batches, whose records the caller removes or gives back.
    pub(crate) fn take_whole(&self) -> Vec<Whole> {
        std::mem::take(&mut self.whole_ones().batches)
    }

    /// Those of them whose records are in one store.
    pub(crate) fn take_whole_of(&self, store: StoreId) -> Vec<Whole> {
        let mut whole = self.whole_ones();
        whole.batches.extract_if(.., |batch| batch.id.store == store).collect()
    }

    /// The same for the task that was to remove them. `None` means that there are none, and that the task ends.
    pub(crate) fn take_awaited(&self) -> Option<Vec<Whole>> {
        let mut whole = self.whole_ones();
        whole.is_awaited = !whole.batches.is_empty();
        whole.is_awaited.then(|| std::mem::take(&mut whole.batches))
    }

    /// Whether a task is to be started for batches that were given back. The one that waited may have ended while
    /// another commit had them.
    pub(crate) fn await_whole(&self) -> bool {
        let mut whole = self.whole_ones();
        !whole.batches.is_empty() && !std::mem::replace(&mut whole.is_awaited, true)
    }

    /// Takes back batches whose records could not be removed.
    pub(crate) fn give_back(&self, batches: Vec<Whole>) {
        self.whole_ones().batches.extend(batches);
    }

    /// Adds a batch that will be logged as this record, and returns it.
    pub(crate) fn begin(&self, id: RecordId, now_seconds: i64) -> RecordId {
        self.all().insert(id, Some(now_seconds));
        id
    }

    /// Marks a batch of which a part failed: the wait for its replay has no bound, and the clock may change meanwhile.
    pub(crate) fn waits(&self, id: RecordId) {
        self.all().insert(id, None);
    }

    /// Removes a batch whose record has been removed.
    pub(crate) fn end(&self, id: RecordId) {
        self.all().remove(&id);
    }

    /// The time before which deletions may be purged. Without logged batches it would be `gc_before_seconds`.
    pub(crate) fn purge_horizon_seconds(&self, gc_before_seconds: i64) -> i64 {
        let all = self.all();
        let kept = |logged: &Option<i64>| logged.map_or(i64::MIN, |at| at.saturating_sub(IN_FLIGHT_SECONDS));
        let horizon = all.values().map(kept).min().unwrap_or(i64::MAX);
        gc_before_seconds.min(horizon)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_begin_above_those_of_records_that_stayed() {
        assert_eq!(number_after(&[]), 0);
        let records = [(3, 0), (7, 2), (5, 1)].map(|(number, store)| Logged {
            id: id(store, number),
            record: Bytes::new(),
        });
        assert_eq!(number_after(&records), 8);
        let [first, ..] = records;
        assert_eq!(RecordId::of_key(StoreId(0), &first.id.key()), Some(first.id));
        assert_eq!(RecordId::of_key(StoreId(0), b"!batch7"), None);
    }

    const fn id(store: u32, number: u64) -> RecordId {
        RecordId {
            store: StoreId(store),
            number,
        }
    }

    #[test]
    fn purge_waits_for_the_oldest_pending_batch_of_all_stores() {
        let pending = Pending::default();
        assert_eq!(pending.purge_horizon_seconds(900), 900);
        pending.begin(id(0, 1), 800);
        pending.begin(id(3, 2), 700);
        assert_eq!(pending.purge_horizon_seconds(900), 700 - IN_FLIGHT_SECONDS);
        pending.end(id(0, 2));
        pending.end(id(3, 2));
        assert_eq!(pending.purge_horizon_seconds(900), 800 - IN_FLIGHT_SECONDS);
        pending.waits(id(2, 3));
        assert_eq!(pending.purge_horizon_seconds(900), i64::MIN);
    }

    #[test]
    fn one_task_removes_the_records_of_whole_batches() {
        let pending = Pending::default();
        let batch = |number| Whole {
            id: id(0, number),
            stores: Vec::new(),
        };
        assert!(!pending.await_whole(), "there are none");
        assert_eq!(pending.whole(batch(1)), Removal::Start);
        assert_eq!(pending.whole(batch(2)), Removal::Awaited);
        assert!(!pending.await_whole(), "the task is there");
        // A commit takes them, the task finds none and ends, and the commit fails.
        let taken = pending.take_whole();
        assert!(pending.take_awaited().is_none());
        pending.give_back(taken);
        assert!(pending.await_whole());
        assert_eq!(pending.take_awaited().map(|whole| whole.len()), Some(2));
        assert!(pending.take_awaited().is_none(), "the task ends");
    }

    #[test]
    fn commit_takes_the_whole_batches_of_its_own_store() {
        let pending = Pending::default();
        for (store, number) in [(0, 1), (2, 2), (0, 3)] {
            let stores = Vec::new();
            pending.whole(Whole {
                id: id(store, number),
                stores,
            });
        }
        let numbers = |taken: Vec<Whole>| taken.iter().map(|whole| whole.id.number).collect::<Vec<_>>();
        assert_eq!(numbers(pending.take_whole_of(StoreId(0))), [1, 3]);
        assert_eq!(numbers(pending.take_whole()), [2]);
    }
}
