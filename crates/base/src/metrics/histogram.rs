//! Durations: counts by length, in a fixed number of buckets.
//!
//! ```text
//! bucket    0 1 2 3 │ 4 5 6 7 │ 8‥9 10‥11 12‥13 14‥15 │ 16‥19 … │ … │ 2²⁶ and above          microseconds
//!           one each │  four buckets for each doubling                  overflow
//! ```
//! So a percentile read from it is at most a quarter too high and never too low, whatever its size. Adding is two
//! relaxed additions, and a third for a new maximum; nothing is allocated, locked or reset: the figures cover all time
//! since the start.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// log₂ of the buckets for each doubling.
const PART_BITS: u32 = 2;

/// Buckets for each doubling.
const PARTS: usize = 1 << PART_BITS;

/// Microseconds from which on durations share one bucket: 67 s, longer than any client waits.
const OVERFLOW_BITS: u32 = 26;

/// Buckets: one for each of the first [`PARTS`] values, [`PARTS`] for each doubling above, and the overflow.
const BUCKETS: usize = PARTS + PARTS * (OVERFLOW_BITS - PART_BITS) as usize + 1;

/// The bucket of a value.
fn bucket(value: u64) -> usize {
    if value >= 1 << OVERFLOW_BITS {
        return BUCKETS - 1;
    }
    if value < PARTS as u64 {
        return usize::try_from(value).unwrap_or(0);
    }
    let doubling = value.ilog2() - PART_BITS;
    let part = usize::try_from(value >> doubling).unwrap_or(0) - PARTS;
    PARTS + PARTS * doubling as usize + part
}

/// The lowest value above all of a bucket; `None` means that the bucket has no upper limit.
fn end(bucket: usize) -> Option<u64> {
    if bucket >= BUCKETS - 1 {
        return None;
    }
    if bucket < PARTS {
        return Some(bucket as u64 + 1);
    }
    let (doubling, part) = ((bucket - PARTS) / PARTS, (bucket - PARTS) % PARTS);
    Some(((PARTS + part + 1) as u64) << doubling)
}

/// Counts of values by size. Values are microseconds where they are times, and plain numbers where they are not.
#[derive(Debug)]
pub struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum: AtomicU64,
    max: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// A histogram without values.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            buckets: [const { AtomicU64::new(0) }; BUCKETS],
            sum: AtomicU64::new(0),
            max: AtomicU64::new(0),
        }
    }

    /// Counts a value `times` times.
    pub fn add(&self, value: u64, times: u64) {
        if let Some(bucket) = self.buckets.get(bucket(value)) {
            bucket.fetch_add(times, Ordering::Relaxed);
        }
        self.sum.fetch_add(value.saturating_mul(times), Ordering::Relaxed);
        // Read first, since a maximum is rarely exceeded.
        if value > self.max.load(Ordering::Relaxed) {
            self.max.fetch_max(value, Ordering::Relaxed);
        }
    }

    /// Counts this duration several times.
    pub fn add_time(&self, time: Duration, times: u64) {
        self.add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), times);
    }

    /// The counts at this moment. Concurrent additions may be missing in part.
    #[must_use]
    pub fn load(&self) -> Distribution {
        Distribution {
            buckets: self
                .buckets
                .iter()
                .map(|bucket| bucket.load(Ordering::Relaxed))
                .collect(),
            sum: self.sum.load(Ordering::Relaxed),
            max: self.max.load(Ordering::Relaxed),
        }
    }
}

/// The content of a histogram at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    buckets: Vec<u64>,
    sum: u64,
    max: u64,
}

impl Distribution {
    /// How many values there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Their sum.
    #[must_use]
    pub const fn sum(&self) -> u64 {
        self.sum
    }

    /// The maximum; 0 if there are no values.
    #[must_use]
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// The value that this part of all values (0 to 1) does not exceed: at most a quarter too high. 0 if there are no
    /// values.
    #[must_use]
    pub fn quantile(&self, part: f64) -> u64 {
        let count = self.count();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a rank among fewer than 2^53 values, rounded up"
        )]
        let rank = ((count as f64 * part).ceil() as u64).clamp(1, count.max(1));
        let mut seen = 0;
        for (place, bucket) in self.buckets.iter().enumerate() {
            seen += bucket;
            if seen >= rank {
                return end(place).map_or(self.max, |end| end - 1).min(self.max);
            }
        }
        self.max
    }

    /// How many values are below each power of two from 2⁴ to 2²⁶, as (that power, count), ascending: a quarter of the
    /// buckets, which Prometheus scrapes.
    pub fn below_powers(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut seen = 0;
        self.buckets.iter().enumerate().filter_map(move |(place, bucket)| {
            seen += bucket;
            let end = end(place)?;
            (end.is_power_of_two() && end >= 16).then_some((end, seen))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_gap() {
        let mut start = 0;
        for place in 0..BUCKETS - 1 {
            let end = end(place).unwrap();
            assert!(end > start, "{place}");
            assert_eq!((bucket(start), bucket(end - 1)), (place, place));
            assert!(end - start <= (start / 4).max(1), "{place} is too wide");
            start = end;
        }
        assert_eq!(start, 1 << OVERFLOW_BITS);
        assert_eq!((bucket(start), bucket(u64::MAX)), (BUCKETS - 1, BUCKETS - 1));
    }

    #[test]
    fn quantiles_are_never_too_low_and_at_most_a_quarter_too_high() {
        let histogram = Histogram::new();
        assert_eq!(histogram.load().quantile(0.99), 0);
        for value in 1..=1000 {
            histogram.add(value, 1);
        }
        let all = histogram.load();
        assert_eq!((all.count(), all.sum(), all.max()), (1000, 500_500, 1000));
        for (part, exact) in [(0.001, 1), (0.5, 500), (0.99, 990), (1.0, 1000)] {
            let told = all.quantile(part);
            assert!((exact..=exact + exact / 4).contains(&told), "{part}: {told}");
        }
        histogram.add_time(Duration::from_secs(3600), 1);
        assert_eq!(histogram.load().quantile(1.0), 3_600_000_000);
    }

    #[test]
    fn powers_count_what_lies_below_them() {
        let histogram = Histogram::new();
        for value in [0, 15, 16, 31, 32, 1 << 26] {
            histogram.add(value, 2);
        }
        let all = histogram.load();
        let powers: Vec<(u64, u64)> = all.below_powers().collect();
        assert_eq!(powers.first(), Some(&(16, 4)));
        assert_eq!(powers.get(1), Some(&(32, 8)));
        assert_eq!(powers.last(), Some(&(1 << 26, 10)));
        assert_eq!(powers.len(), 23);
        assert_eq!(all.count(), 12);
    }
}
