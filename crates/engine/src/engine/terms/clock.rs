//! Timestamps of writes and schema changes, and keys of list elements: all from one clock, and all rise strictly,
//! across restarts too ([`Timestamps`]).

use crate::engine::refusal::ConditionRefusal;
use std::time::Duration;

use bytes::Bytes;

use crate::engine::Error;
use helenus_base::clock::{TimeMark, Timestamps};
use helenus_base::mutant::{self, Mutant};

/// If the last timestamp before a start is at most this far ahead of the wall clock, the start waits. After the wait,
/// later writes are above it, also those of drivers that send timestamps of their own. If it is further ahead, the wall
/// clock was set back.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Generates µs timestamps that never repeat and never go back. Clones share their state.
#[derive(Clone, Debug)]
pub(crate) struct WriteClock(Timestamps);

impl WriteClock {
    pub(crate) fn new(timestamps: Timestamps) -> Self {
        Self(timestamps)
    }

    /// The next timestamp: now, or just above the last one when the clock has not moved or was set back.
    pub(crate) fn next_micros(&self) -> i64 {
        if mutant::is_on(Mutant::TimestampsRepeat) {
            return self.0.clock().wall_micros();
        }
        self.0.next_micros()
    }

    /// The timestamp of a conditional write: the next one, or just above the newest timestamp that it reads and writes.
    /// A condition that was met is a decision about the stored rows, so its writes must be the newest there (as
    /// Cassandra's ballots are). A client's timestamp in the future does not raise the clock: it applies to this write
    /// only.
    ///
    /// # Errors
    /// When a stored cell has the greatest timestamp possible.
    pub(crate) fn above(&self, newest: Option<i64>) -> Result<i64, Error> {
        let next = self.next_micros();
        let is_below = mutant::is_on(Mutant::ConditionBelowRead);
        let Some(newest) = newest.filter(|newest| *newest >= next && !is_below) else {
            return Ok(next);
        };
        newest
            .checked_add(1)
            .ok_or_else(|| ConditionRefusal::LastTimestamp.into())
    }

    /// Forgets every timestamp issued so far.
    pub(crate) fn forget(&self) {
        self.0.reset();
    }

    /// Continues above the newest timestamp of conditional writes that versions without time marks recorded.
    pub(crate) fn found_ballot(&self, micros: i64) {
        self.0.found(TimeMark {
            given_micros: micros,
            ..TimeMark::default()
        });
    }

    /// At the start, waits until the wall clock has passed the last timestamp before the start, if that is near. If it
    /// is not, timestamps continue above it.
    pub(crate) async fn catch_up(&self) {
        let ahead = self.0.ahead();
        if ahead.is_zero() {
            return;
        }
        if ahead <= WAIT_MAX {
            self.0.clock().sleep(ahead + Duration::from_micros(1)).await;
            return;
        }
        tracing::warn!(
            ahead_seconds = ahead.as_secs(),
            "the clock is behind the last timestamp that this server gave, so it was set back: timestamps go on above that one; writes \
             of clients that bring timestamps of the present lose against what was written before"
        );
    }

    /// Whether expired data may be removed from the stores ([`Timestamps::may_purge`]).
    pub(crate) fn may_purge(&self) -> bool {
        self.0.may_purge()
    }

    /// µs since 1970-01-01 UTC, for reading.
    pub(crate) fn now_micros(&self) -> i64 {
        self.0.clock().wall_micros()
    }

    /// Seconds since 1970-01-01 UTC.
    pub(crate) fn now_seconds(&self) -> i64 {
        self.0.clock().wall_seconds()
    }
}

/// The record in which versions without time marks kept the newest timestamp of conditional writes: µs as i64,
/// big-endian. It is read, but no longer written.
pub(crate) const LAST_BALLOT: &[u8] = b"!last_ballot";

/// Generates the keys under which elements of lists are stored, in the order of the list.
///
/// ```text
/// key  µs i64, sign flipped · number in the operation u32 · node u32         big-endian, 16 bytes
/// ```
/// Elements prepended to a list get a time mirrored at `MIRROR`, so that later ones sort further to the front.
#[derive(Debug)]
pub(crate) struct ListKeys {
    clock: WriteClock,
    node: u32,
}

/// 2010-01-01 UTC in µs: all appended keys are above it, all prepended ones below (as Cassandra's lists have it).
const MIRROR: i64 = 1_262_304_000_000_000;

impl ListKeys {
    /// Generates keys that no other node generates.
    pub(crate) fn new(clock: WriteClock, node: u32) -> Self {
        Self { clock, node }
    }

    /// Keys after every earlier one.
    pub(crate) fn append(&self, count: usize) -> impl Iterator<Item = Bytes> {
        let micros = if count == 0 { 0 } else { self.clock.next_micros() };
        self.keys(micros, count)
    }

    /// Keys before every earlier one, in order among themselves.
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
    use helenus_base::clock::Clock;

    fn clock(micros: i64) -> WriteClock {
        WriteClock::new(Timestamps::new(Clock::manual(micros), Timestamps::JUMP_MAX))
    }

    #[test]
    fn a_conditional_write_stands_above_what_is_there_and_does_not_raise_the_clock() {
        let clock = clock(5);
        assert_eq!(clock.above(None).unwrap(), 5);
        assert_eq!(clock.above(Some(5)).unwrap(), 6);
        assert_eq!(clock.above(Some(1000)).unwrap(), 1001);
        assert_eq!(clock.next_micros(), 8);
        assert_eq!(clock.above(Some(i64::MAX - 1)).unwrap(), i64::MAX);
        assert!(matches!(clock.above(Some(i64::MAX)), Err(Error::Refused(_))));
    }

    #[test]
    fn list_keys_stand_in_order() {
        let keys = ListKeys::new(clock(1_700_000_000_000_000), 1);
        let first: Vec<_> = keys.append(2).collect();
        let behind: Vec<_> = keys.append(2).collect();
        let before: Vec<_> = keys.prepend(2).collect();
        let further: Vec<_> = keys.prepend(2).collect();
        let list: Vec<_> = [further, before, first, behind].concat();
        assert!(list.is_sorted_by(|a, b| a < b));
    }
}
