//! Decimals at one scale, within the limit of digits.

use std::cmp::Ordering;

use num_bigint::BigInt;
use num_traits::Pow;

use super::{Machine, Run};
use crate::class::Class;
use crate::value::Decimal;

/// Maximum bits of a BigInteger, and about as many of a BigDecimal.
pub(crate) const BITS_MAX: u64 = 65_536;

pub(crate) fn bound(m: &mut Machine<'_>, bits: u64) -> Run<()> {
    if bits > BITS_MAX {
        return m.throw(Class::Arithmetic, "BigInteger would overflow supported range");
    }
    Ok(())
}

/// A power of ten, within the limit of digits.
pub(crate) fn power_of_ten(m: &mut Machine<'_>, exponent: u64) -> Run<BigInt> {
    bound(m, exponent.saturating_mul(10) / 3)?;
    m.step(usize::try_from(exponent / 8 + 1).unwrap_or(usize::MAX))?;
    Ok(BigInt::from(10).pow(u32::try_from(exponent).unwrap_or(u32::MAX)))
}

/// Two numbers at the larger of their scales.
pub(crate) fn aligned(m: &mut Machine<'_>, x: &Decimal, y: &Decimal) -> Run<(BigInt, BigInt, i32)> {
    let distance = (i64::from(x.scale) - i64::from(y.scale)).unsigned_abs();
    let factor = power_of_ten(m, distance)?;
    Ok(if x.scale >= y.scale {
        (x.unscaled.clone(), &y.unscaled * factor, x.scale)
    } else {
        (&x.unscaled * factor, y.unscaled.clone(), y.scale)
    })
}

pub(crate) fn compare_decimals(m: &mut Machine<'_>, x: &Decimal, y: &Decimal) -> Run<Ordering> {
    if x.unscaled.sign() != y.unscaled.sign() {
        return Ok(x.unscaled.cmp(&y.unscaled));
    }
    let (x, y, _) = aligned(m, x, y)?;
    Ok(x.cmp(&y))
}
