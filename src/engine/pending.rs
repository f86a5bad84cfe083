//! Logged batches in flight (batch_log.rs), and the deletions that a purge keeps for them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

/// Deletions are kept if they were made up to this many seconds before a batch in flight was logged. A request that had
/// begun by then may have taken its timestamp earlier, and hide parts of the batch. The time is longer than any request
/// waits for its commit.
const IN_FLIGHT_SECONDS: i64 = 60;

/// Prefix of the keys of batch records, in the catalog space.
pub(crate) const RECORD: &[u8] = b"!batch";

/// A record of the batch log: its key and its value.
pub(crate) type Logged = (Vec<u8>, Bytes);

/// The key of the record with a number.
pub(crate) fn key(number: u64) -> Vec<u8> {
    [RECORD, &number.to_be_bytes()].concat()
}

/// The logged batches of which a part may not be written yet, by the key of the record. The value is the time of
/// logging, s since 1970-01-01 UTC. `None` means that a part failed and waits for its replay. At most one entry for
/// each request and task that works on a batch.
#[derive(Debug, Default)]
pub(crate) struct Pending(Mutex<BTreeMap<Vec<u8>, Option<i64>>>);

impl Pending {
    fn all(&self) -> MutexGuard<'_, BTreeMap<Vec<u8>, Option<i64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a batch that will be logged under this key, and returns the key.
    pub(crate) fn begin(&self, key: Vec<u8>, now_seconds: i64) -> Vec<u8> {
        self.all().insert(key.clone(), Some(now_seconds));
        key
    }

    /// Marks a batch of which a part failed: the wait for its replay has no bound, and the clock may change meanwhile.
    pub(crate) fn waits(&self, key: &[u8]) {
        self.all().insert(key.to_vec(), None);
    }

    /// Removes a batch whose record has been removed.
    pub(crate) fn end(&self, key: &[u8]) {
        self.all().remove(key);
    }

    /// The time before which deletions may be purged. Without logged batches it would be `gc_before_seconds`.
    pub(crate) fn purge_horizon_seconds(&self, gc_before_seconds: i64) -> i64 {
        let all = self.all();
        let kept = |logged: &Option<i64>| logged.map_or(i64::MIN, |at| at.saturating_sub(IN_FLIGHT_SECONDS));
        let horizon = all.values().map(kept).min().unwrap_or(i64::MAX);
        gc_before_seconds.min(horizon)
    }
}
