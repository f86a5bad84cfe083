//! The size of one watched partition, and the decision whether it allows a write. Pure.

use std::time::Duration;

use super::Weight;

/// Percent of the limit from which each write is warned.
const WARNED_PERCENT: u64 = 70;

/// Partitions up to this size are counted while the writer waits, larger ones in the background.
const QUICK_BYTES: u64 = 1 << 20;

/// The same under a limit no larger than this: there exactness is worth the writer's wait.
const QUICK_BYTES_EXACT: u64 = 8 << 20;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Size {
    /// Bytes at the last count.
    pub(super) counted: u64,
    /// Bytes written since, including writes in progress then.
    pub(super) added: u64,
    /// Bytes of writes in progress.
    pub(super) in_flight: u64,
    /// The recorded size.
    pub(super) recorded: u64,
    /// Whether it was counted since the start.
    pub(super) is_known: bool,
    /// Whether data was deleted since the last count.
    pub(super) is_freed: bool,
    /// How often it was counted.
    pub(super) counts: u64,
    /// How many of them followed a purge.
    pub(super) swept_counts: u64,
    /// Number of counts that were begun.
    pub(super) counts_begun: u64,
    /// When it may be counted again, even if nothing was deleted.
    pub(super) again_at: Duration,
    /// The percentage of the last logged warning.
    pub(super) logged_percent: u64,
}

/// How to treat a write.
pub(super) enum Verdict {
    Written {
        /// The percentage of the limit to warn of.
        warns: Option<u64>,
        /// The size to record.
        record: Option<u64>,
        counts_later: bool,
    },
    Refused,
    CountFirst {
        sweeps: bool,
        counts: u64,
    },
}

impl Size {
    pub(super) fn bytes(&self) -> u64 {
        self.counted.saturating_add(self.added)
    }

    /// Number of counts. With `sweeps`, only counts after a purge, since a count without one frees no space.
    pub(super) const fn counts_so_far(&self, sweeps: bool) -> u64 {
        if sweeps { self.swept_counts } else { self.counts }
    }

    /// Checks a write against the limit and, unless it is refused or must wait, adds it.
    pub(super) fn check(&mut self, weight: &Weight, cap: u64, now: Duration, must_decide: bool) -> Verdict {
        // The permitted uncertainty: a hundredth of the limit, or a size that is counted quickly.
        let slack = (cap / 100).max(64 << 10).min(cap);
        let next = self.bytes().saturating_add(weight.bytes());
        if weight.deletes {
            self.is_freed = true;
        } else if !must_decide && !self.is_known && next <= quick_bytes(Some(cap)) {
            return Verdict::CountFirst {
                sweeps: false,
                counts: self.counts,
            };
        } else if next > cap {
            let may_have_room = !self.is_known || self.added > slack || self.is_freed || now >= self.again_at;
            if may_have_room && !must_decide {
                let sweeps = self.is_freed || (self.is_known && self.added <= slack);
                let counts = self.counts_so_far(sweeps);
                return Verdict::CountFirst { sweeps, counts };
            }
            return Verdict::Refused;
        }
        let reached = percent(next, cap);
        // Whether the size is certain enough for a warning.
        let is_certain = !self.is_freed && (self.added <= slack || percent(self.counted, cap) >= WARNED_PERCENT);
        let warns = reached >= WARNED_PERCENT && !weight.deletes;
        if warns && !is_certain && !must_decide && next <= quick_bytes(Some(cap)) {
            return Verdict::CountFirst {
                sweeps: self.is_freed,
                counts: self.counts_so_far(self.is_freed),
            };
        }
        self.added = self.added.saturating_add(weight.bytes());
        self.in_flight = self.in_flight.saturating_add(weight.bytes());
        let record = (next > self.recorded.saturating_add(slack / 2)).then_some(next);
        self.recorded = record.unwrap_or(self.recorded);
        // Near the limit the partition is counted early, so that no request has to wait for a count there.
        let is_near = next > cap - cap / 20 && self.added > slack;
        Verdict::Written {
            warns: (warns && is_certain).then_some(reached),
            record,
            counts_later: !self.is_known || is_near || (warns && !is_certain),
        }
    }
}

/// The size up to which the writer waits for a count.
pub(super) fn quick_bytes(cap: Option<u64>) -> u64 {
    match cap {
        Some(cap) if cap <= QUICK_BYTES_EXACT => QUICK_BYTES_EXACT,
        _ => QUICK_BYTES,
    }
}

pub(super) fn percent(bytes: u64, cap: u64) -> u64 {
    u64::try_from(u128::from(bytes) * 100 / u128::from(cap.max(1))).unwrap_or(u64::MAX)
}
