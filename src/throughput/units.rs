//! Request units and what operations cost.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul};

/// An amount of request units, in hundredths, so that sums are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestUnits(u64);

impl RequestUnits {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// So many hundredths.
    #[must_use]
    pub const fn hundredths(count: u64) -> Self {
        Self(count)
    }

    /// So many whole units.
    #[must_use]
    pub const fn whole(count: u64) -> Self {
        Self(count.saturating_mul(100))
    }

    /// The amount in hundredths.
    #[must_use]
    pub const fn in_hundredths(self) -> u64 {
        self.0
    }
}

impl Add for RequestUnits {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for RequestUnits {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Mul<u64> for RequestUnits {
    type Output = Self;

    fn mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }
}

impl Sum for RequestUnits {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

const KIB: u64 = 1024;

/// A straight line through `at_1_kib` hundredths at 1 KiB and ten times that at 100 KiB; never below the first.
const fn line(at_1_kib: u64, bytes: u64) -> RequestUnits {
    let above = bytes.saturating_sub(KIB);
    // 9 × the first amount over 99 KiB, rounded to the nearest hundredth.
    let slope = at_1_kib.saturating_mul(9).saturating_mul(above);
    RequestUnits(at_1_kib + slope.saturating_add(99 * KIB / 2) / (99 * KIB))
}

/// A read of one row of so many bytes by its key: 1 at 1 KiB, 10 at 100 KiB.
#[must_use]
pub const fn read_charge(row_bytes: u64) -> RequestUnits {
    line(100, row_bytes)
}

/// A write of one new row of so many bytes: 5 at 1 KiB, 50 at 100 KiB. Over an existing row it is charged twice.
#[must_use]
pub const fn write_charge(row_bytes: u64) -> RequestUnits {
    line(500, row_bytes)
}

/// A read of ranges: 2.3 for each physical partition visited and 0.89 for each KiB looked at, given back or not.
#[must_use]
pub const fn scan_charge(partitions_visited: u64, scanned_bytes: u64) -> RequestUnits {
    let scanned = scanned_bytes.saturating_mul(89).saturating_add(KIB / 2) / KIB;
    RequestUnits(partitions_visited.saturating_mul(230).saturating_add(scanned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_meet_the_published_points() {
        for (charge, hundredths) in [
            (read_charge(10), 100),
            (read_charge(KIB), 100),
            (read_charge(100 * KIB), 1000),
            (write_charge(0), 500),
            (write_charge(KIB), 500),
            (write_charge(100 * KIB), 5000),
            (scan_charge(1, KIB), 319),
            (scan_charge(5, 0), 1150),
        ] {
            assert_eq!(charge.in_hundredths(), hundredths);
        }
    }

    #[test]
    fn charges_never_overflow() {
        assert!(read_charge(u64::MAX) >= read_charge(KIB));
        assert!(scan_charge(u64::MAX, u64::MAX) > RequestUnits::ZERO);
    }
}
