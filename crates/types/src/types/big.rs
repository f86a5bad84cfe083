//! Numbers without bounds: varint (minimal two's complement, longer forms accepted) and decimal (i32 scale, then a varint).

use super::key::{self, KeyReader};
use super::{Corrupt, Invalid};
use num_bigint::{BigInt, Sign};
use num_traits::{Pow, Zero};
use std::cmp::Ordering;

/// Maximum bytes of a varint, and of a decimal without its scale. Conversion to and from text takes time quadratic in
/// the length and blocks its thread meanwhile; at this length it takes less than a millisecond.
pub const NUMBER_BYTES_MAX: usize = 16 * 1024;

/// Maximum digits of a number in text: more would not fit the maximum bytes.
const DIGITS_MAX: usize = NUMBER_BYTES_MAX * 5 / 2;

/// A decimal: `unscaled · 10^−scale`. Equality compares both parts; [`Decimal::compare`] compares the number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decimal {
    /// The unscaled value.
    pub unscaled: BigInt,
    /// The number of digits after the decimal point; a negative scale adds zeros before it.
    pub scale: i32,
}

impl Decimal {
    /// Decodes wire bytes; `None` if they are empty or shorter than a scale and a digit.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (scale, unscaled) = bytes.split_first_chunk::<4>()?;
        (!unscaled.is_empty()).then(|| Self {
            unscaled: BigInt::from_signed_bytes_be(unscaled),
            scale: i32::from_be_bytes(*scale),
        })
    }

    /// Encodes wire bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.scale.to_be_bytes().to_vec();
        bytes.extend_from_slice(&self.unscaled.to_signed_bytes_be());
        bytes
    }

    /// Parses `1`, `-1.50`, `1e10`, as Java's `BigDecimal` does; `None` if the text is no number or its scale does not
    /// fit.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (mantissa, exponent) = match text.find(['e', 'E']) {
            Some(at) => {
                let (mantissa, exponent) = text.split_at(at);
                (mantissa, i64::from(exponent.get(1..)?.parse::<i32>().ok()?))
            }
            None => (text, 0),
        };
        let (sign, digits) = match mantissa.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let digits = [whole, fraction].concat();
        if digits.len() > DIGITS_MAX || digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let scale = i64::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
        let unscaled = BigInt::parse_bytes(digits.as_bytes(), 10)?;
        Some(Self {
            unscaled: if sign { -unscaled } else { unscaled },
            scale: i32::try_from(scale).ok()?,
        })
    }

    /// Numeric order: 1.0 and 1.00 are equal.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Ordering {
        let order = self.unscaled.sign().cmp(&other.unscaled.sign());
        if order != Ordering::Equal || self.unscaled.is_zero() {
            return order;
        }
        if self.scale == other.scale {
            return self.unscaled.cmp(&other.unscaled);
        }
        let (mine, theirs) = (Normal::of(self), Normal::of(other));
        let magnitude = mine
            .exponent
            .cmp(&theirs.exponent)
            .then_with(|| mine.digits.cmp(&theirs.digits));
        if self.unscaled.sign() == Sign::Minus {
            magnitude.reverse()
        } else {
            magnitude
        }
    }

    /// The nearest double.
    #[must_use]
    pub fn to_f64(&self) -> f64 {
        format!("{}e{}", self.unscaled, -i64::from(self.scale))
            .parse()
            .unwrap_or(f64::NAN)
    }

    /// The integer part, rounded towards zero; `None` if a negative scale adds more than `zeros_max` zeros to it.
    #[must_use]
    pub fn to_integer(&self, zeros_max: u32) -> Option<BigInt> {
        if self.scale <= 0 {
            let zeros = self.scale.unsigned_abs();
            if self.unscaled.is_zero() {
                return Some(BigInt::zero());
            }
            return (zeros <= zeros_max).then(|| &self.unscaled * BigInt::from(10).pow(zeros));
        }
        let scale = self.scale.unsigned_abs();
        // A number of n bits has at most n digits.
        if u64::from(scale) > self.unscaled.bits() {
            return Some(BigInt::zero());
        }
        Some(&self.unscaled / BigInt::from(10).pow(scale))
    }
}

/// As Java's `BigDecimal.toString`: plain unless the scale is negative or the number is below 10⁻⁶.
impl std::fmt::Display for Decimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = self.unscaled.magnitude().to_string();
        let sign = if self.unscaled.sign() == Sign::Minus { "-" } else { "" };
        let scale = i64::from(self.scale);
        if scale == 0 {
            return write!(f, "{sign}{digits}");
        }
        let count = i64::try_from(digits.len()).unwrap_or(i64::MAX);
        let adjusted = count - 1 - scale;
        if scale > 0 && adjusted >= -6 {
            let point = count - scale;
            return match usize::try_from(point) {
                Ok(point) if point > 0 => {
                    let (whole, fraction) = digits.split_at(point);
                    write!(f, "{sign}{whole}.{fraction}")
                }
                _ => write!(
                    f,
                    "{sign}0.{}{digits}",
                    "0".repeat(usize::try_from(-point).unwrap_or(0))
                ),
            };
        }
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        write!(f, "{sign}{first}{point}{rest}E{adjusted:+}")
    }
}

/// A nonzero number as `0.d₁d₂… · 10^exponent` with d₁ ≠ 0 and no trailing zeros.
struct Normal {
    exponent: i64,
    digits: Vec<u8>,
}

impl Normal {
    fn of(decimal: &Decimal) -> Self {
        let mut digits = decimal.unscaled.magnitude().to_string().into_bytes();
        let exponent = i64::try_from(digits.len()).unwrap_or(i64::MAX) - i64::from(decimal.scale);
        while digits.last() == Some(&b'0') {
            digits.pop();
        }
        Self { exponent, digits }
    }
}

pub(super) fn validate_decimal(bytes: &[u8]) -> Result<(), Invalid> {
    // Differs: Cassandra accepts a scale without digits, and fails when it reads it.
    if bytes.is_empty() || bytes.len() > 4 {
        return check_length(bytes.len().saturating_sub(4));
    }
    Err(Invalid::Length {
        expected: "0 or at least 4 bytes",
        found: bytes.len(),
    })
}

pub(super) fn validate_varint(bytes: &[u8]) -> Result<(), Invalid> {
    check_length(bytes.len())
}

fn check_length(bytes: usize) -> Result<(), Invalid> {
    if bytes <= NUMBER_BYTES_MAX {
        return Ok(());
    }
    Err(Invalid::NumberLength {
        found: bytes,
        bytes_max: NUMBER_BYTES_MAX,
    })
}

/// Checks that a number has no more digits than can be stored.
pub(super) fn check_digits(text: &str) -> Result<(), Invalid> {
    // Plus a sign, a point and an exponent.
    check_length(text.len().saturating_sub(16) * 2 / 5)
}

/// The value of a varint; `None` when empty.
#[must_use]
pub fn decode_varint(bytes: &[u8]) -> Option<BigInt> {
    (!bytes.is_empty()).then(|| BigInt::from_signed_bytes_be(bytes))
}

/// The shortest bytes of a varint.
#[must_use]
pub fn encode_varint(value: &BigInt) -> Vec<u8> {
    value.to_signed_bytes_be()
}

/// Drops leading bytes that only repeat the sign.
fn minimal(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes;
    while let [first, tail @ ..] = rest {
        match tail.first() {
            Some(second) if (*first == 0 && *second < 0x80) || (*first == 0xff && *second >= 0x80) => rest = tail,
            _ => break,
        }
    }
    rest
}

fn negative(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|first| *first >= 0x80)
}

pub(super) fn compare_varint(a: &[u8], b: &[u8]) -> Ordering {
    let (a, b) = (minimal(a), minimal(b));
    match (a.is_empty(), b.is_empty()) {
        (true, _) | (_, true) => return b.is_empty().cmp(&a.is_empty()),
        _ => {}
    }
    match (negative(a), negative(b)) {
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => a.len().cmp(&b.len()).then_with(|| a.cmp(b)),
        (true, true) => b.len().cmp(&a.len()).then_with(|| a.cmp(b)),
    }
}

pub(super) fn compare_decimal(a: &[u8], b: &[u8]) -> Ordering {
    super::number::compare_by(a, b, Decimal::decode, Decimal::compare)
}

// Markers of numbers whose order needs the sign first; RAW stays last.
const NEGATIVE: u8 = 0x01;
const ZERO: u8 = 0x02;
const POSITIVE: u8 = 0x03;
const RAW: u8 = 0x04;

/// `01`/`03`, the length (inverted below zero), the bytes.
pub(super) fn order_varint(bytes: &[u8], out: &mut Vec<u8>) {
    let bytes = minimal(bytes);
    if bytes.is_empty() {
        out.push(key::EMPTY);
        return;
    }
    let below = negative(bytes);
    out.push(if below { NEGATIVE } else { POSITIVE });
    let mask = if below { 0xff } else { 0 };
    // Lengths fit 31 bits, because values come from frames.
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    match u8::try_from(length) {
        Ok(short) if short < u8::MAX => out.push(short ^ mask),
        _ => {
            out.push(u8::MAX ^ mask);
            out.extend(length.to_be_bytes().map(|byte| byte ^ mask));
        }
    }
    out.extend_from_slice(bytes);
}

pub(super) fn read_varint(reader: &mut KeyReader<'_>, out: &mut Vec<u8>) -> Result<(), Corrupt> {
    let mask = match reader.byte()? {
        key::EMPTY => return Ok(()),
        NEGATIVE => 0xff,
        POSITIVE => 0,
        _ => return Err(Corrupt("varint")),
    };
    let length = match reader.byte()? ^ mask {
        u8::MAX => u32::from_be_bytes(reader.array::<4>()?.map(|byte| byte ^ mask)),
        short => u32::from(short),
    };
    reader.take(length as usize, out)
}

/// `01`/`02`/`03`, the exponent, the digits plus one, `00`; below zero all but the marker is inverted.
pub(super) fn order_decimal(bytes: &[u8], out: &mut Vec<u8>) {
    if bytes.is_empty() {
        out.push(key::EMPTY);
        return;
    }
    let Some(decimal) = Decimal::decode(bytes) else {
        out.push(RAW);
        key::escape(bytes, out);
        return;
    };
    let mask = match decimal.unscaled.sign() {
        Sign::NoSign => {
            out.push(ZERO);
            return;
        }
        Sign::Minus => {
            out.push(NEGATIVE);
            0xff
        }
        Sign::Plus => {
            out.push(POSITIVE);
            0
        }
    };
    let normal = Normal::of(&decimal);
    out.extend(key::flip_sign(normal.exponent.to_be_bytes()).map(|byte| byte ^ mask));
    // Two digits a byte, 01…64 (hexadecimal), so that 00 ends them; a missing second digit counts as 0.
    out.extend(normal.digits.chunks(2).map(|pair| {
        let digit = |index: usize| pair.get(index).map_or(0, |digit| digit - b'0');
        (digit(0) * 10 + digit(1) + 1) ^ mask
    }));
    out.push(mask);
}

/// Maximum trailing zeros before the decimal point in a canonical decimal of scale 0; with more, the scale is negative.
const PLAIN_ZEROS_MAX: i64 = 40;

pub(super) fn read_decimal(reader: &mut KeyReader<'_>, out: &mut Vec<u8>) -> Result<(), Corrupt> {
    let mask = match reader.byte()? {
        key::EMPTY => return Ok(()),
        ZERO => {
            out.extend_from_slice(&[0; 5]);
            return Ok(());
        }
        RAW => return reader.escaped(out),
        NEGATIVE => 0xff,
        POSITIVE => 0,
        _ => return Err(Corrupt("decimal")),
    };
    let exponent = i64::from_be_bytes(key::flip_sign(reader.array::<8>()?.map(|byte| byte ^ mask)));
    let mut digits = Vec::new();
    loop {
        match reader.byte()? ^ mask {
            0 => break,
            pair @ 1..=100 => digits.extend([(pair - 1) / 10 + b'0', (pair - 1) % 10 + b'0']),
            _ => return Err(Corrupt("decimal")),
        }
    }
    while digits.last() == Some(&b'0') {
        digits.pop();
    }
    let count = i64::try_from(digits.len()).map_err(|_| Corrupt("decimal"))?;
    let mut scale = count.checked_sub(exponent).ok_or(Corrupt("decimal"))?;
    if (-PLAIN_ZEROS_MAX..0).contains(&scale) {
        digits.extend(std::iter::repeat_n(b'0', usize::try_from(-scale).unwrap_or(0)));
        scale = 0;
    }
    // Without its trailing zeros a number may need a scale beyond 32 bits. Then this is another number, so its bytes
    // differ from the value's, and the key's trailer has the value's bytes.
    let scale = scale.max(i64::from(i32::MIN));
    let unscaled = BigInt::parse_bytes(&digits, 10).ok_or(Corrupt("decimal"))?;
    let decimal = Decimal {
        unscaled: if mask == 0 { unscaled } else { -unscaled },
        scale: i32::try_from(scale).map_err(|_| Corrupt("decimal"))?,
    };
    out.extend_from_slice(&decimal.encode());
    Ok(())
}

pub(super) fn parse_varint(text: &str) -> Result<Vec<u8>, Invalid> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    check_digits(text)?;
    parse_integer(text)
        .map(|value| encode_varint(&value))
        .ok_or_else(|| Invalid::Text("unable to make int from", text.to_owned()))
}

/// An integer of any size: an optional sign and digits.
#[must_use]
pub fn parse_integer(text: &str) -> Option<BigInt> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.len() > DIGITS_MAX || digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value = BigInt::parse_bytes(digits.as_bytes(), 10)?;
    Some(if text.starts_with('-') { -value } else { value })
}

pub(super) fn parse_decimal(text: &str) -> Result<Vec<u8>, Invalid> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    check_digits(text)?;
    Decimal::parse(text)
        .map(|value| value.encode())
        .ok_or_else(|| Invalid::Text("unable to make BigDecimal from", text.to_owned()))
}
