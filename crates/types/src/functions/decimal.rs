//! Arithmetic of decimals, with Java's scales and Cassandra's precision.

use crate::types::Decimal;
use num_bigint::{BigInt, Sign};
use num_traits::{Pow, Zero};

/// Maximum digits of a result; a longer one is rejected, to bound memory.
const DIGITS_MAX: i64 = 100_000;
/// Digits of sums, differences and products: Cassandra rounds them half up.
const SUM_DIGITS: i64 = 10_000;
/// Minimum and maximum digits after the decimal point of a quotient.
const QUOTIENT_SCALE: std::ops::RangeInclusive<i64> = 32..=1000;

fn power(exponent: i64) -> Option<BigInt> {
    (0..=DIGITS_MAX)
        .contains(&exponent)
        .then(|| BigInt::from(10).pow(u32::try_from(exponent).unwrap_or(0)))
}

/// The number of digits of the unscaled value; zero has one.
pub(super) fn precision(value: &Decimal) -> i64 {
    i64::try_from(value.unscaled.magnitude().to_string().len()).unwrap_or(i64::MAX)
}

fn make(unscaled: BigInt, scale: i64) -> Option<Decimal> {
    Some(Decimal {
        unscaled,
        scale: i32::try_from(scale).ok()?,
    })
}

/// Both unscaled values at the greater of the two scales.
fn aligned(left: &Decimal, right: &Decimal) -> Option<(BigInt, BigInt, i64)> {
    let (left_scale, right_scale) = (i64::from(left.scale), i64::from(right.scale));
    let scale = left_scale.max(right_scale);
    let rescale = |value: &Decimal, from: i64| {
        if value.unscaled.is_zero() {
            return Some(BigInt::zero());
        }
        Some(&value.unscaled * power(scale - from)?)
    };
    Some((rescale(left, left_scale)?, rescale(right, right_scale)?, scale))
}

/// The sum with all its digits; `None` if it would be too long.
pub(super) fn add(left: &Decimal, right: &Decimal) -> Option<Decimal> {
    let (x, y, scale) = aligned(left, right)?;
    make(x + y, scale)
}

/// The difference with all its digits; `None` if it would be too long.
pub(super) fn subtract(left: &Decimal, right: &Decimal) -> Option<Decimal> {
    let (x, y, scale) = aligned(left, right)?;
    make(x - y, scale)
}

/// The sum as `+` has it, rounded; `None` if it would be too long. As in Java's `BigDecimal.add`, a zero decides only the scale, and of two
/// numbers far apart the smaller one decides only how the other is rounded.
pub(super) fn rounded_sum(left: &Decimal, right: &Decimal) -> Option<Decimal> {
    let wanted = i64::from(left.scale).max(right.scale.into());
    let (value, zero) = match (left.unscaled.is_zero(), right.unscaled.is_zero()) {
        (true, true) => return make(BigInt::zero(), wanted),
        (true, false) => (right, left),
        (false, true) => (left, right),
        (false, false) => return to_precision(&sum_of_near(left, right)?, SUM_DIGITS),
    };
    let rounded = to_precision(value, SUM_DIGITS)?;
    let zeros = i64::from(zero.scale.max(value.scale)) - i64::from(rounded.scale);
    let zeros = zeros.min(SUM_DIGITS - precision(&rounded));
    make(&rounded.unscaled * power(zeros)?, i64::from(rounded.scale) + zeros)
}

/// The sum of two numbers that are not zero. If the digits of the smaller one are all behind those that are kept, it counts as a one further
/// behind.
fn sum_of_near(left: &Decimal, right: &Decimal) -> Option<Decimal> {
    let (big, small) = if left.scale < right.scale {
        (left, right)
    } else {
        (right, left)
    };
    let big_scale = i64::from(big.scale);
    let last_kept = big_scale - precision(big) + SUM_DIGITS;
    let first_of_small = i64::from(small.scale) - precision(small) + 1;
    if big.scale != small.scale && first_of_small > big_scale + 2 && first_of_small > last_kept + 2 {
        let sign = if small.unscaled.sign() == Sign::Minus { -1 } else { 1 };
        return add(big, &make(BigInt::from(sign), big_scale.max(last_kept) + 3)?);
    }
    add(left, right)
}

/// The difference as `-` has it, rounded as [`rounded_sum`].
pub(super) fn rounded_difference(left: &Decimal, right: &Decimal) -> Option<Decimal> {
    let negated = Decimal {
        unscaled: -&right.unscaled,
        scale: right.scale,
    };
    rounded_sum(left, &negated)
}

/// The product as `*` has it, rounded; `None` if its scale does not fit.
pub(super) fn rounded_product(left: &Decimal, right: &Decimal) -> Option<Decimal> {
    let product = make(
        &left.unscaled * &right.unscaled,
        i64::from(left.scale) + i64::from(right.scale),
    )?;
    to_precision(&product, SUM_DIGITS)
}

/// The quotient with at least 32 significant digits, rounded half up, without trailing zeros; `None` if it would be too
/// long. The divisor is not zero.
pub(super) fn divide(left: &Decimal, right: &Decimal) -> Option<Decimal> {
    let whole_digits = |value: &Decimal| precision(value) - i64::from(value.scale);
    let significant = 32 - (whole_digits(left) - whole_digits(right));
    let scale = significant
        .max(left.scale.into())
        .max(right.scale.into())
        .clamp(*QUOTIENT_SCALE.start(), *QUOTIENT_SCALE.end());
    // left · 10^scale / right, both as integers.
    let shift = scale + i64::from(right.scale) - i64::from(left.scale);
    let (numerator, denominator) = if shift >= 0 {
        (&left.unscaled * power(shift)?, right.unscaled.clone())
    } else {
        (left.unscaled.clone(), &right.unscaled * power(-shift)?)
    };
    Some(strip(make(round_half_up(&numerator, &denominator), scale)?))
}

fn round_half_up(numerator: &BigInt, denominator: &BigInt) -> BigInt {
    let negative = (numerator.sign() == Sign::Minus) != (denominator.sign() == Sign::Minus);
    let (n, d) = (
        BigInt::from(numerator.magnitude().clone()),
        BigInt::from(denominator.magnitude().clone()),
    );
    let rounded: BigInt = (n * 2 + &d) / (d * 2);
    if negative { -rounded } else { rounded }
}

/// Strips trailing zeros; zero gets scale 0.
fn strip(value: Decimal) -> Decimal {
    if value.unscaled.is_zero() {
        return Decimal {
            unscaled: BigInt::zero(),
            scale: 0,
        };
    }
    let zeros = trailing_zeros(&value.unscaled);
    Decimal {
        unscaled: value.unscaled / BigInt::from(10).pow(zeros),
        scale: value.scale.saturating_sub_unsigned(zeros),
    }
}

fn trailing_zeros(value: &BigInt) -> u32 {
    let digits = value.magnitude().to_string();
    u32::try_from(digits.len() - digits.trim_end_matches('0').len()).unwrap_or(0)
}

/// The remainder of a division that rounds towards zero, with Java's scale; `None` if it would take too long.
/// The divisor is not zero.
pub(super) fn remainder(left: &Decimal, right: &Decimal) -> Option<Decimal> {
    let (x, y, scale) = aligned(left, right)?;
    let quotient = &x / &y;
    let rest = x - &quotient * y;
    let (left_scale, right_scale) = (i64::from(left.scale), i64::from(right.scale));
    // The quotient drops zeros until its scale is the difference of the two.
    let wanted = if left_scale >= right_scale || quotient.is_zero() {
        left_scale
    } else {
        left_scale.max(right_scale - i64::from(trailing_zeros(&quotient)))
    };
    make(rest / power(scale - wanted)?, wanted)
}

/// The quotient by an integer at the same scale, rounded half to even, as in averages.
pub(super) fn divide_half_even(value: &Decimal, count: i64) -> Decimal {
    let divisor = BigInt::from(count);
    let quotient = &value.unscaled / &divisor;
    let rest: BigInt = (&value.unscaled - &quotient * &divisor) * 2;
    let up = match rest.magnitude().cmp(divisor.magnitude()) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Equal => quotient.bit(0),
        std::cmp::Ordering::Greater => true,
    };
    let step = match (up, rest.sign()) {
        (false, _) => 0,
        (true, Sign::Minus) => -1,
        (true, _) => 1,
    };
    Decimal {
        unscaled: quotient + step,
        scale: value.scale,
    }
}

/// Rounded half up to an integer; `None` if it would be too long.
pub(super) fn round(value: &Decimal) -> Option<Decimal> {
    let scale = i64::from(value.scale);
    let unscaled = if scale <= 0 {
        &value.unscaled * power(-scale)?
    } else if scale > precision(value) {
        BigInt::zero()
    } else {
        round_half_up(&value.unscaled, &power(scale)?)
    };
    make(unscaled, 0)
}

/// Rounded half up to `digits` significant digits, at the scale that remains.
pub(super) fn to_precision(value: &Decimal, digits: i64) -> Option<Decimal> {
    let excess = precision(value) - digits;
    if excess <= 0 {
        return Some(value.clone());
    }
    let cut = make(
        round_half_up(&value.unscaled, &power(excess)?),
        i64::from(value.scale) - excess,
    )?;
    // 9.99… may have become 10.0….
    if precision(&cut) > digits {
        to_precision(&cut, digits)
    } else {
        Some(cut)
    }
}
