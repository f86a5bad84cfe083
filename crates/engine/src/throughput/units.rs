//! Amounts of request units.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul};

/// An amount of request units, in hundredths, so that sums are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestUnits(u64);

impl RequestUnits {
    /// No units.
    pub const ZERO: Self = Self(0);

    /// An amount given in hundredths.
    #[must_use]
    pub const fn hundredths(count: u64) -> Self {
        Self(count)
    }

    /// Millionths in a hundredth.
    pub const MICROS_IN_HUNDREDTH: u64 = 10_000;

    /// An amount given in millionths, rounded to hundredths.
    #[must_use]
    pub const fn rounded(micros: u64) -> Self {
        Self(micros.saturating_add(Self::MICROS_IN_HUNDREDTH / 2) / Self::MICROS_IN_HUNDREDTH)
    }

    /// The amount in millionths.
    #[must_use]
    pub const fn in_micros(self) -> u64 {
        self.0.saturating_mul(Self::MICROS_IN_HUNDREDTH)
    }

    /// An amount given in whole units.
    #[must_use]
    pub const fn whole(count: u64) -> Self {
        Self(count.saturating_mul(100))
    }

    /// The amount in hundredths.
    #[must_use]
    pub const fn in_hundredths(self) -> u64 {
        self.0
    }

    /// The amount in units, as the nearest double.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "exact up to ninety million million units")]
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / 100.0
    }
}

impl fmt::Display for RequestUnits {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{:02}", self.0 / 100, self.0 % 100)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_added_exactly() {
        let sum: RequestUnits = [RequestUnits::whole(2), RequestUnits::hundredths(19)].into_iter().sum();
        assert_eq!(sum, RequestUnits::hundredths(219));
        assert_eq!(sum.to_string(), "2.19");
        assert_eq!(RequestUnits::hundredths(5).to_string(), "0.05");
        assert!((sum.as_f64() - 2.19).abs() < 1e-9);
    }
}
