//! The decimal digits of floating point numbers as in Java before 19 (`FloatingDecimal`). They are not always the fewest:
//! 2³¹ as a float is 2.14748365E9, and the double nearest to 10²³ is 9.999999999999999E22.
//!
//! Steele and White's digit generation with three changes of Java's library. The stopping test assumes that a number's two
//! neighbours are equally distant. At least two digits precede an exponent. Whole numbers use a separate algorithm.
//! Cassandra 5.0 runs on Java 11 and 17; this module produces its texts, JSON and decimals of floating point numbers.

use num_bigint::BigUint;
use std::cmp::Ordering;

/// Bits of a double's fraction after the first.
const DOUBLE_SHIFT: u32 = 52;
/// Bits of a float's fraction after the first.
const FLOAT_SHIFT: u32 = 23;
/// Whole numbers below this power of two use the separate algorithm.
const SMALL_EXPONENT_MAX: i32 = 62;
/// Exponents of ten below the first or from the second on are printed.
const PLAIN_EXPONENTS: std::ops::Range<i32> = -3..8;

/// A number's digits, and the decimal exponent of the first.
pub(super) type Digits = (String, i32);

/// A positive, finite number: `fraction` has its first bit at [`DOUBLE_SHIFT`], `significant_bits` of it count.
#[derive(Clone, Copy)]
struct Binary {
    exponent: i32,
    fraction: u64,
    significant_bits: i32,
}

/// The digits of a positive finite double.
pub(super) fn of_f64(value: f64) -> Digits {
    let bits = value.to_bits();
    let fraction = bits & ((1 << DOUBLE_SHIFT) - 1);
    let exponent = i32::try_from((bits >> DOUBLE_SHIFT) & 0x7ff).unwrap_or(0);
    binary(exponent, fraction, DOUBLE_SHIFT, 1023).digits()
}

/// The digits of a positive finite float.
pub(super) fn of_f32(value: f32) -> Digits {
    let bits = u64::from(value.to_bits());
    let fraction = bits & ((1 << FLOAT_SHIFT) - 1);
    let exponent = i32::try_from((bits >> FLOAT_SHIFT) & 0xff).unwrap_or(0);
    binary(exponent, fraction, FLOAT_SHIFT, 127).digits()
}

fn binary(exponent: i32, fraction: u64, shift: u32, bias: i32) -> Binary {
    let whole = i32::try_from(shift + 1).unwrap_or(0);
    let (exponent, fraction, significant_bits) = if exponent == 0 {
        // A subnormal number.
        let up = fraction.leading_zeros().saturating_sub(63 - shift);
        let up_bits = i32::try_from(up).unwrap_or(0);
        (1 - up_bits, fraction << up, whole - up_bits)
    } else {
        (exponent, fraction | 1 << shift, whole)
    };
    Binary {
        exponent: exponent - bias,
        fraction: fraction << (DOUBLE_SHIFT - shift),
        significant_bits,
    }
}

impl Binary {
    fn digits(self) -> Digits {
        let zeros = i32::try_from(self.fraction.trailing_zeros()).unwrap_or(0);
        let fraction_bits = i32::try_from(DOUBLE_SHIFT + 1).unwrap_or(0) - zeros;
        // Bits after the binary point.
        let tiny_bits = (fraction_bits - self.exponent - 1).max(0);
        if tiny_bits == 0 && self.exponent <= SMALL_EXPONENT_MAX {
            return self.whole();
        }
        self.generate(zeros, fraction_bits, tiny_bits)
    }

    /// A whole number: its digits, without those that its bits do not determine.
    fn whole(self) -> Digits {
        let shift = self.exponent - i32::try_from(DOUBLE_SHIFT).unwrap_or(0);
        let mut value = if shift >= 0 {
            self.fraction << shift
        } else {
            self.fraction >> -shift
        };
        let unknown_bits = u32::try_from(self.exponent - self.significant_bits - 1).unwrap_or(0);
        let unknown_digits = if unknown_bits > 1 {
            (1_u64 << unknown_bits).ilog10()
        } else {
            0
        };
        let mut power = 0;
        if unknown_digits > 0 {
            let unit = 10_u64.pow(unknown_digits);
            value = value / unit + u64::from(value % unit >= unit / 2);
            power = i32::try_from(unknown_digits).unwrap_or(0);
        }
        let digits = value.to_string();
        let exponent = power + i32::try_from(digits.len()).unwrap_or(1) - 1;
        (digits, exponent)
    }

    /// The number is B / S · 10^exponent, and M is half the distance to its neighbours on the scale of B. Digits are
    /// generated until the remainder is less than M, or is less than M below the next digit.
    fn generate(self, zeros: i32, fraction_bits: i32, tiny_bits: i32) -> Digits {
        let mut exponent = self.estimate();
        let (b5, s5) = ((-exponent).max(0), exponent.max(0));
        let mut b2 = b5 + tiny_bits + self.exponent;
        let mut s2 = s5 + tiny_bits;
        let mut m2 = b2 - self.significant_bits;
        b2 -= fraction_bits - 1;
        let common = b2.min(s2);
        b2 -= common;
        s2 -= common;
        m2 -= common;
        if fraction_bits == 1 {
            // A power of two is half as far from its next smaller neighbour.
            m2 -= 1;
        }
        if m2 < 0 {
            b2 -= m2;
            s2 -= m2;
            m2 = 0;
        }
        // Java computes in machine words if the numbers fit, and then a tie does not stop the loop.
        let in_words = fraction_bits + b2 + bits_of_power(b5) < 64 && s2 + 1 + bits_of_power(s5 + 1) < 64;
        let fraction = BigUint::from(self.fraction >> zeros);
        let mut b = scaled(fraction, b5, b2);
        let s = scaled(BigUint::from(1_u8), s5, s2);
        let mut m = scaled(BigUint::from(1_u8), b5, m2);
        let ten = &s * 10_u8;
        let mut next = || {
            let digit = u8::try_from(&b / &s).unwrap_or(9);
            b = (&b % &s) * 10_u8;
            m *= 10_u8;
            let high = match (&b + &m).cmp(&ten) {
                Ordering::Greater => true,
                Ordering::Equal => !in_words,
                Ordering::Less => false,
            };
            (digit, b < m, high, (&b * 2_u8).cmp(&ten))
        };
        let mut digits = Vec::with_capacity(20);
        let (digit, mut low, mut high, mut rest) = next();
        if digit == 0 && !high {
            // The estimate was one too high.
            exponent -= 1;
        } else {
            digits.push(digit);
        }
        // Before an exponent there is a digit after the point.
        let mut stops = PLAIN_EXPONENTS.contains(&exponent) && (low || high);
        while !stops {
            let digit;
            (digit, low, high, rest) = next();
            digits.push(digit);
            stops = low || high;
        }
        let up = match (high, low, rest) {
            (true, true, Ordering::Equal) => digits.last().is_some_and(|digit| digit % 2 == 1),
            (true, true, rest) => rest == Ordering::Greater,
            (high, ..) => high,
        };
        if up && round_up(&mut digits) {
            exponent += 1;
        }
        (digits.iter().map(|digit| char::from(b'0' + digit)).collect(), exponent)
    }

    /// An estimate of the decimal exponent, too low only by as much as the loop corrects.
    fn estimate(self) -> i32 {
        let one = 1023_u64 << DOUBLE_SHIFT;
        let mantissa = f64::from_bits(one | (self.fraction & ((1 << DOUBLE_SHIFT) - 1)));
        #[expect(clippy::approx_constant, reason = "Java's constant, which is not quite log10(2)")]
        let per_bit = 0.301_029_995_663_981;
        let logarithm = (mantissa - 1.5) * 0.289_529_654 + 0.176_091_259 + f64::from(self.exponent) * per_bit;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a logarithm of ten of a double is below 400"
        )]
        let exponent = logarithm.floor() as i32;
        exponent
    }
}

/// `number` · 5^fives · 2^twos.
fn scaled(number: BigUint, fives: i32, twos: i32) -> BigUint {
    let power = |exponent: i32| u32::try_from(exponent).unwrap_or(0);
    (number * BigUint::from(5_u8).pow(power(fives))) << power(twos)
}

/// The bits of a power of five, in Java's estimate.
fn bits_of_power(exponent: i32) -> i32 {
    match u32::try_from(exponent) {
        Ok(exponent @ 0..=26) => i32::try_from(5_u64.pow(exponent).ilog2() + 1).unwrap_or(0) * i32::from(exponent > 0),
        _ => exponent * 3,
    }
}

/// Increments the last digit; returns true if that adds a digit in front.
fn round_up(digits: &mut [u8]) -> bool {
    for digit in digits.iter_mut().rev() {
        if *digit < 9 {
            *digit += 1;
            return false;
        }
        *digit = 0;
    }
    if let Some(first) = digits.first_mut() {
        *first = 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::number::{java_f32, java_f64};

    #[test]
    fn prints_as_java_17() {
        for (value, text) in [
            (1e23, "9.999999999999999E22"),
            (2e-3, "0.002"),
            (4.9e-324, "4.9E-324"),
            (1e300, "1.0E300"),
            (0.1, "0.1"),
            (1e7, "1.0E7"),
            (2.25, "2.25"),
            (9_223_372_036_854_775_808.0, "9.223372036854776E18"),
            (2.225_073_858_507_201_4e-308, "2.2250738585072014E-308"),
            (1.797_693_134_862_315_7e308, "1.7976931348623157E308"),
            (123_456_789.125, "1.23456789125E8"),
        ] {
            assert_eq!(java_f64(value), text);
        }
        for (value, text) in [
            (2_147_483_648.0, "2.14748365E9"),
            (0.1, "0.1"),
            (1e30, "1.0E30"),
            (1e10, "1.0E10"),
            (1.4e-45, "1.4E-45"),
            (3.402_823_5e38, "3.4028235E38"),
            (16_777_216.0, "1.6777216E7"),
        ] {
            assert_eq!(java_f32(value), text);
        }
    }
}
