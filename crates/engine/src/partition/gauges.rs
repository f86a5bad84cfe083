//! Finds logical partitions that may have grown large: estimates their sizes from written bytes, in bounded memory.
//!
//! Every logical partition maps to one of a fixed number of gauges. A write adds its bytes there. The write that fills
//! the gauge selects its partition for a count: the larger a partition's share of the bytes, the sooner it is selected.
//! After the count the gauge restarts, with a limit of a quarter of the counted size. So repeated counts cost no more
//! than four times the bytes written. A partition that is alone in its gauge is at most a quarter larger than at its
//! last count. If two partitions share a gauge, the one with more writes is more likely to be selected.

use std::sync::atomic::{AtomicU64, Ordering};

/// Number of gauges, a power of two: 64 KiB in all.
const GAUGES: usize = 4096;

/// Growth since the last count after which a partition is counted again, as a part of its size: a quarter.
const GROWTH_DIVISOR: u64 = 4;

/// Bytes written to groups of logical partitions since a partition of each group was counted.
#[derive(Debug)]
pub struct Gauges {
    gauges: Box<[Gauge]>,
    /// The bytes that fill a gauge before its first count.
    bytes_min: u64,
}

#[derive(Debug)]
struct Gauge {
    passed: AtomicU64,
    full_at: AtomicU64,
}

impl Gauges {
    /// Gauges that `bytes_min` bytes fill at first.
    #[must_use]
    pub fn new(bytes_min: u64) -> Self {
        let gauge = |_| Gauge {
            passed: AtomicU64::new(0),
            full_at: AtomicU64::new(bytes_min.max(1)),
        };
        Self {
            gauges: (0..GAUGES).map(gauge).collect(),
            bytes_min: bytes_min.max(1),
        }
    }

    fn of(&self, table: u32, spread: i64) -> Option<&Gauge> {
        // `spread` is a hash already; the table's number only separates equal keys of different tables.
        let mixed = spread.cast_unsigned() ^ u64::from(table).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.gauges.get(usize::try_from(mixed % GAUGES as u64).unwrap_or(0))
    }

    /// Adds bytes written to a logical partition, given by its table's number and the number that the placement made of
    /// its key ([`super::Placement::spread`]). Returns whether the caller should count the partition. That caller
    /// reports the result to [`Gauges::counted`]; until then no other caller gets `true`.
    pub fn record(&self, table: u32, spread: i64, bytes: u64) -> bool {
        let Some(gauge) = self.of(table, spread) else {
            return false;
        };
        let full_at = gauge.full_at.load(Ordering::Relaxed);
        let before = gauge.passed.fetch_add(bytes, Ordering::Relaxed);
        before < full_at && before.saturating_add(bytes) >= full_at
    }

    /// Records the counted size of the partition that was selected.
    pub fn counted(&self, table: u32, spread: i64, bytes: u64) {
        if let Some(gauge) = self.of(table, spread) {
            let full_at = self.bytes_min.max(bytes / GROWTH_DIVISOR);
            gauge.full_at.store(full_at, Ordering::Relaxed);
            gauge.passed.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_fills_a_gauge_is_told_once() {
        let gauges = Gauges::new(100);
        assert!(!gauges.record(1, 7, 99));
        assert!(gauges.record(1, 7, 1));
        assert!(!gauges.record(1, 7, 1000));
        gauges.counted(1, 7, 4000);
        assert!(!gauges.record(1, 7, 999));
        assert!(gauges.record(1, 7, 1));
        gauges.counted(1, 7, 0);
        assert!(gauges.record(1, 7, 100));
    }

    /// Among many small writes to other partitions, a growing partition is selected before it is much larger than at
    /// the last time.
    #[test]
    fn what_grows_is_named_among_others() {
        let gauges = Gauges::new(1 << 10);
        let mut random = fastrand::Rng::with_seed(3);
        let (mut bytes, mut known) = (0_u64, 0_u64);
        let mut worst = 0.0_f64;
        for _ in 0..200_000 {
            let other = random.i64(..);
            if gauges.record(1, other, 100) {
                gauges.counted(1, other, 100);
            }
            bytes += 100;
            if gauges.record(1, 42, 100) {
                gauges.counted(1, 42, bytes);
                known = bytes;
            }
            worst = worst.max(bytes as f64 / (known + (1 << 12)) as f64);
        }
        assert!(worst < 2.0, "{worst}");
    }
}
