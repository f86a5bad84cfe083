//! abs, exp, log, log10, round, each for every numeric type and with its own type as the result.

use super::arithmetic::within_bound;
use super::candidates::Candidates;
use super::cast::{Number, saturated, whole};
use super::problem::{Failure, Problem};
use super::{Call, Function, decimal};
use crate::types::{self, CqlType, Decimal, Native};
use num_bigint::{BigInt, Sign};
use num_traits::{Pow, Signed, ToPrimitive, Zero};

const NUMBERS: [Native; 9] = [
    Native::Tinyint,
    Native::Bigint,
    Native::Decimal,
    Native::Smallint,
    Native::Double,
    Native::Counter,
    Native::Float,
    Native::Int,
    Native::Varint,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Abs,
    Exp,
    Log,
    Log10,
    Round,
}

pub(super) fn find(name: &str) -> Option<Candidates> {
    let operation = match name {
        "abs" => Operation::Abs,
        "exp" => Operation::Exp,
        "log" => Operation::Log,
        "log10" => Operation::Log10,
        "round" => Operation::Round,
        _ => return None,
    };
    let overload = |native: Native| {
        let value_type = CqlType::Native(native);
        Function::scalar(
            name,
            [value_type.clone()],
            value_type,
            move |call: &Call<'_>| match Number::decode(native, call.bytes(0)) {
                Some(number) => compute(operation, number)?.encode(native).map(Some),
                None => Ok(None),
            },
        )
    };
    Some(Candidates::Overloads(NUMBERS.into_iter().map(overload).collect()))
}

fn compute(operation: Operation, number: Number) -> Result<Number, Problem> {
    Ok(match number {
        Number::Integer(value) => match operation {
            Operation::Abs => Number::Integer(value.wrapping_abs()),
            Operation::Round => number,
            _ => Number::Double(doubles(operation, value as f64)),
        },
        Number::Float(value) => match operation {
            Operation::Abs => Number::Float(value.abs()),
            // Java rounds a float to an int, which saturates before a long does.
            Operation::Round => {
                let rounded = saturated((f64::from(value) + 0.5).floor());
                Number::Float(rounded.clamp(i32::MIN.into(), i32::MAX.into()) as f32)
            }
            _ => Number::Float(types::double_to_float(doubles(operation, value.into()))),
        },
        Number::Double(value) => Number::Double(doubles(operation, value)),
        Number::Varint(value) => match operation {
            Operation::Abs => Number::Varint(value.abs()),
            Operation::Round => Number::Varint(value),
            _ => {
                let result = decimals(operation, &whole(value))?;
                Number::Varint(within_bound(result.to_integer(100_000).ok_or_else(overflow)?)?)
            }
        },
        Number::Decimal(value) => Number::Decimal(decimals(operation, &value)?),
    })
}

fn doubles(operation: Operation, value: f64) -> f64 {
    match operation {
        Operation::Abs => value.abs(),
        Operation::Exp => value.exp(),
        // The bits of the NaN that processors return for an invalid operation; Java returns it unchanged.
        Operation::Log | Operation::Log10 if value < 0.0 => f64::from_bits(0xfff8_0000_0000_0000),
        Operation::Log => value.ln(),
        Operation::Log10 => value.log10(),
        // As in Java: the floor of value + 1/2, as a long.
        Operation::Round => saturated((value + 0.5).floor()) as f64,
    }
}

fn overflow() -> Problem {
    Failure::Overflow.into()
}

/// Significant digits of a result.
const PRECISION: i64 = 32;
/// Extra digits of a quotient before it is rounded.
const QUOTIENT_DIGITS: i64 = 2;
/// Digits that are computed, so that all digits of the result are correct.
const WORKING_DIGITS: u32 = 60;

fn decimals(operation: Operation, value: &Decimal) -> Result<Decimal, Problem> {
    match operation {
        Operation::Abs => Ok(Decimal {
            unscaled: value.unscaled.abs(),
            scale: value.scale,
        }),
        Operation::Round => decimal::round(value).ok_or_else(overflow),
        Operation::Exp => exp(value).ok_or_else(overflow),
        Operation::Log | Operation::Log10 if value.unscaled.sign() != Sign::Plus => {
            let name = if operation == Operation::Log {
                "Natural log"
            } else {
                "Log10"
            };
            Err(Failure::Logarithm(name).into())
        }
        Operation::Log => log(value).ok_or_else(overflow),
        Operation::Log10 => log10(value).ok_or_else(overflow),
    }
}

/// 10^digits, the unit of fixed-point numbers with that many digits after the decimal point.
fn unit(digits: u32) -> BigInt {
    BigInt::from(10).pow(digits)
}

/// e^x for a fixed-point 0 ≤ x < 3: x is halved eight times, summed as a series, and squared eight times.
fn exp_fixed(x: &BigInt, one: &BigInt) -> BigInt {
    let x: BigInt = x >> 8;
    let (mut sum, mut term, mut n) = (one.clone(), one.clone(), 1_u32);
    while !term.is_zero() {
        term = term * &x / one / n;
        sum += &term;
        n += 1;
    }
    (0..8).fold(sum, |value, _| &value * &value / one)
}

/// ln x for a fixed-point 1 ≤ x ≤ 10: Halley's iteration from the double's logarithm.
fn ln_fixed(x: &BigInt, one: &BigInt) -> BigInt {
    let scaled = (x * BigInt::from(1_u64 << 52) / one).to_f64().unwrap_or(1.0) / (1_u64 << 52) as f64;
    let mut y = BigInt::from(saturated(scaled.ln() * (1_u64 << 52) as f64)) * one / BigInt::from(1_u64 << 52);
    if y.is_negative() {
        y = BigInt::zero();
    }
    for _ in 0..4 {
        let power = exp_fixed(&y, one);
        let step = (x - &power) * 2 * one / (x + &power);
        y += step;
        if y.is_negative() {
            y = BigInt::zero();
        }
    }
    y
}

fn exp(value: &Decimal) -> Option<Decimal> {
    if value.unscaled.is_zero() {
        return Some(whole(BigInt::from(1)));
    }
    // The result's exponent must fit 32 bits, so the argument is below 5 · 10⁹. Ten more digits are enough for its integer
    // part; twelve are used.
    let whole_part = value
        .to_integer(20)?
        .to_i64()
        .filter(|whole| whole.abs() < 5_000_000_000)?;
    let digits = WORKING_DIGITS + 12;
    let one = unit(digits);
    let ln10 = ln_fixed(&(&one * 10), &one);
    let x = fixed(value, digits)?;
    let mut exponent = (BigInt::from(whole_part) * &one / &ln10).to_i64()?;
    let mut rest = &x - &ln10 * exponent;
    while rest.is_negative() {
        exponent -= 1;
        rest += &ln10;
    }
    let result = exp_fixed(&rest, &one);
    let result = Decimal {
        unscaled: result,
        scale: i32::try_from(i64::from(digits) - exponent).ok()?,
    };
    decimal::to_precision(&result, PRECISION)
}

/// The value in fixed point, truncated to that many digits.
fn fixed(value: &Decimal, digits: u32) -> Option<BigInt> {
    let shift = i64::from(digits) - i64::from(value.scale);
    if shift >= 0 {
        return Some(
            &value.unscaled * BigInt::from(10).pow(u32::try_from(shift).ok().filter(|shift| *shift <= 100_000)?),
        );
    }
    if -shift > decimal::precision(value) {
        return Some(BigInt::zero());
    }
    Some(&value.unscaled / BigInt::from(10).pow(u32::try_from(-shift).ok()?))
}

/// ln x and ln 10 in fixed point: x is a power of ten times a number below ten.
fn ln_parts(value: &Decimal) -> (BigInt, BigInt, BigInt) {
    let one = unit(WORKING_DIGITS);
    let exponent = decimal::precision(value) - 1 - i64::from(value.scale);
    let mantissa = Decimal {
        unscaled: value.unscaled.clone(),
        scale: i32::try_from(decimal::precision(value) - 1).unwrap_or(i32::MAX),
    };
    let ln10 = ln_fixed(&(&one * 10), &one);
    let mantissa = fixed(&mantissa, WORKING_DIGITS).unwrap_or_else(|| one.clone());
    (ln_fixed(&mantissa, &one) + &ln10 * exponent, ln10, one)
}

fn log(value: &Decimal) -> Option<Decimal> {
    if is_one(value) {
        return Some(Decimal {
            unscaled: BigInt::from(0),
            scale: 0,
        });
    }
    decimal::to_precision(&fixed_decimal(ln_parts(value).0)?, PRECISION)
}

fn is_one(value: &Decimal) -> bool {
    let digits = value.unscaled.to_string();
    is_power_of_ten(&digits) && decimal::precision(value) - 1 == i64::from(value.scale)
}

fn is_power_of_ten(digits: &str) -> bool {
    digits.starts_with('1') && digits.trim_end_matches('0') == "1"
}

/// A number in fixed point as a decimal.
fn fixed_decimal(unscaled: BigInt) -> Option<Decimal> {
    Some(Decimal {
        unscaled,
        scale: i32::try_from(WORKING_DIGITS).ok()?,
    })
}

/// As in Cassandra: the quotient of two rounded logarithms. So a result of 0 has the scale of that division. The result for
/// a power of ten has zeros after its point, or none if its rounded logarithm is a multiple of the rounded one of ten.
fn log10(value: &Decimal) -> Option<Decimal> {
    let (ln, ln10, _) = ln_parts(value);
    let rounded = |ln: BigInt| decimal::to_precision(&fixed_decimal(ln)?, PRECISION + QUOTIENT_DIGITS);
    let ten = rounded(ln10)?;
    if is_one(value) {
        return Some(Decimal {
            unscaled: BigInt::from(0),
            scale: -ten.scale,
        });
    }
    let ln = rounded(ln)?;
    // The same scale for both.
    let shift = |number: &Decimal, scale: i32| {
        let digits = u32::try_from(scale - number.scale).ok()?;
        Some(&number.unscaled * BigInt::from(10).pow(digits))
    };
    let scale = ln.scale.max(ten.scale);
    let (ln, ten) = (shift(&ln, scale)?, shift(&ten, scale)?);
    if (&ln % &ten) == BigInt::from(0) {
        let (mut unscaled, mut scale) = (ln / ten, 0);
        while &unscaled % 10 == BigInt::from(0) {
            unscaled /= 10;
            scale -= 1;
        }
        return Some(Decimal { unscaled, scale });
    }
    let quotient = fixed_decimal(ln * unit(WORKING_DIGITS) / ten)?;
    let quotient = decimal::to_precision(&quotient, PRECISION + QUOTIENT_DIGITS)?;
    decimal::to_precision(&quotient, PRECISION)
}
