//! Timestamps of writes and keys of list elements: both rise strictly on this node.

use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use tokio::sync::Mutex;

use super::WriteRequest;
use crate::clock::Clock;
use crate::executor::{Error, storage_write};
use crate::mutant::{self, Mutant};
use crate::partition::store::{Batch, Space, Store};

/// Gives µs timestamps that never repeat and never go back.
#[derive(Debug)]
pub(crate) struct WriteClock {
    clock: Clock,
    last: AtomicI64,
}

impl WriteClock {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            last: AtomicI64::new(i64::MIN),
        }
    }

    /// The next timestamp: now, or just above the last one when the clock has not moved.
    pub(crate) fn next_micros(&self) -> i64 {
        let now = self.clock.wall_micros();
        let taken = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
            Some(now.max(last.saturating_add(1)))
        });
        // The closure always gives a value, so this is the one before ours.
        let (Ok(last) | Err(last)) = taken;
        now.max(last.saturating_add(1))
    }

    /// From now on every timestamp is above this one.
    fn raise(&self, above: i64) {
        self.last.fetch_max(above, Ordering::Relaxed);
    }

    /// µs since 1970-01-01 UTC, for reading.
    pub(crate) fn now_micros(&self) -> i64 {
        self.clock.wall_micros()
    }

    /// Seconds since 1970-01-01 UTC.
    pub(crate) fn now_seconds(&self) -> i64 {
        self.clock.wall_seconds()
    }
}

/// The catalog's record of [`Ballots`]: µs as i64, big-endian.
pub(crate) const LAST_BALLOT: &[u8] = b"!last_ballot";

/// How far ahead of the timestamps given the record is: once in so many µs somebody waits for it to be written. After a crash the
/// first conditional write may be dated so much into the future, so it must be short.
const RECORDED_AHEAD_MICROS: i64 = 100_000;

/// Gives the timestamps of conditional writes: each above all before it, also when the server was started again since and the
/// machine's clock was set back. A condition that was met decides about what is stored, so what it writes must be the newest
/// (Cassandra's ballots keep the same order through what Paxos remembers).
///
/// No timestamp is given before a record is durable that is not below it; the next start begins behind the record.
#[derive(Debug)]
pub(crate) struct Ballots {
    last: AtomicI64,
    /// Durable.
    recorded: AtomicI64,
    /// Held by who writes the record.
    recording: Mutex<()>,
    store: Store,
}

impl Ballots {
    /// `recorded` is what the record in this store holds.
    pub(crate) fn new(store: Store, recorded: Option<i64>) -> Self {
        let recorded = recorded.unwrap_or(i64::MIN);
        let begins = if mutant::is_on(Mutant::ForgetLastTimestamp) {
            i64::MIN
        } else {
            recorded
        };
        Self {
            last: AtomicI64::new(begins),
            recorded: AtomicI64::new(recorded),
            recording: Mutex::default(),
            store,
        }
    }

    /// The next timestamp; those that the node gives to other writes afterwards are above it.
    ///
    /// # Errors
    /// When the store takes no record.
    pub(crate) async fn next(&self, clock: &WriteClock, request: &WriteRequest) -> Result<i64, Error> {
        let now = clock.next_micros();
        let taken = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
            Some(now.max(last.saturating_add(1)))
        });
        let (Ok(last) | Err(last)) = taken;
        let next = now.max(last.saturating_add(1));
        clock.raise(next);
        if next > self.recorded.load(Ordering::Acquire) {
            let _alone = self.recording.lock().await;
            if next > self.recorded.load(Ordering::Acquire) {
                let record = next.saturating_add(RECORDED_AHEAD_MICROS);
                let mut batch = Batch::new();
                let value = Bytes::copy_from_slice(&record.to_be_bytes());
                batch.put(Space::Catalog, LAST_BALLOT.to_vec(), value);
                let committed = self.store.commit(batch).await;
                committed.map_err(|error| storage_write(&error, request.consistency, request.write_type))?;
                self.recorded.store(record, Ordering::Release);
            }
        }
        Ok(next)
    }
}

/// Gives the keys under which elements of lists are kept, in the order in which they shall stand.
///
/// ```text
/// key  µs i64, sign flipped · number in the operation u32 · node u32         big-endian, 16 bytes
/// ```
/// Elements put before a list get a time mirrored at `MIRROR`, so that what comes later stands further to the front.
#[derive(Debug)]
pub(crate) struct ListKeys {
    clock: WriteClock,
    node: u32,
}

/// 2010-01-01 UTC in µs: all appended keys are above it, all prepended ones below (as Cassandra's lists have it).
const MIRROR: i64 = 1_262_304_000_000_000;

impl ListKeys {
    /// Keys that no other node makes.
    pub(crate) fn new(clock: Clock, node: u32) -> Self {
        Self {
            clock: WriteClock::new(clock),
            node,
        }
    }

    /// Keys behind every one given before.
    pub(crate) fn append(&self, count: usize) -> impl Iterator<Item = Bytes> {
        let micros = if count == 0 { 0 } else { self.clock.next_micros() };
        self.keys(micros, count)
    }

    /// Keys before every one given before, in order among themselves.
    pub(crate) fn prepend(&self, count: usize) -> impl Iterator<Item = Bytes> {
        let micros = if count == 0 { 0 } else { self.clock.next_micros() };
        self.keys(MIRROR.saturating_mul(2).saturating_sub(micros), count)
    }

    fn keys(&self, micros: i64, count: usize) -> impl Iterator<Item = Bytes> + use<> {
        let node = self.node;
        (0..count).map(move |number| {
            let mut key = [0; 16];
            let (time, rest) = key.split_at_mut(8);
            let (place, of_node) = rest.split_at_mut(4);
            time.copy_from_slice(&(micros.cast_unsigned() ^ (1 << 63)).to_be_bytes());
            place.copy_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes());
            of_node.copy_from_slice(&node.to_be_bytes());
            Bytes::copy_from_slice(&key)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_rise_while_the_clock_stands() {
        let clock = WriteClock::new(Clock::manual(5));
        assert_eq!((clock.next_micros(), clock.next_micros()), (5, 6));
        clock.clock.advance(std::time::Duration::from_micros(10));
        assert_eq!(clock.next_micros(), 15);
    }

    #[test]
    fn list_keys_stand_in_order() {
        let keys = ListKeys::new(Clock::manual(1_700_000_000_000_000), 1);
        let first: Vec<_> = keys.append(2).collect();
        let behind: Vec<_> = keys.append(2).collect();
        let before: Vec<_> = keys.prepend(2).collect();
        let further: Vec<_> = keys.prepend(2).collect();
        let list: Vec<_> = [further, before, first, behind].concat();
        assert!(list.is_sorted_by(|a, b| a < b));
    }
}
