//! Integers of fixed width and floating point numbers: tinyint, smallint, int, bigint, counter, float, double.

use super::key::{self, KeyReader};
use super::{Corrupt, Invalid, java_float};
use std::cmp::Ordering;
use std::num::FpCategory;

/// The value of a tinyint; `None` when empty or not of its width.
#[must_use]
pub fn decode_i8(bytes: &[u8]) -> Option<i8> {
    bytes.try_into().ok().map(i8::from_be_bytes)
}

/// The value of a smallint; `None` when empty or not of its width.
#[must_use]
pub fn decode_i16(bytes: &[u8]) -> Option<i16> {
    bytes.try_into().ok().map(i16::from_be_bytes)
}

/// The value of an int; `None` when empty or not of its width.
#[must_use]
pub fn decode_i32(bytes: &[u8]) -> Option<i32> {
    bytes.try_into().ok().map(i32::from_be_bytes)
}

/// The value of a bigint, counter, time or timestamp; `None` when empty or not of its width.
#[must_use]
pub fn decode_i64(bytes: &[u8]) -> Option<i64> {
    bytes.try_into().ok().map(i64::from_be_bytes)
}

/// The value of a float; `None` when empty or not of its width.
#[must_use]
pub fn decode_f32(bytes: &[u8]) -> Option<f32> {
    bytes.try_into().ok().map(f32::from_be_bytes)
}

/// The value of a double; `None` when empty or not of its width.
#[must_use]
pub fn decode_f64(bytes: &[u8]) -> Option<f64> {
    bytes.try_into().ok().map(f64::from_be_bytes)
}

/// Checks for `width` bytes; if `or_empty`, no bytes are valid too.
pub(super) fn validate_width(
    bytes: &[u8],
    width: usize,
    or_empty: bool,
    expected: &'static str,
) -> Result<(), Invalid> {
    if bytes.len() == width || (or_empty && bytes.is_empty()) {
        Ok(())
    } else {
        Err(Invalid::Length {
            expected,
            found: bytes.len(),
        })
    }
}

pub(super) fn validate_i8(bytes: &[u8]) -> Result<(), Invalid> {
    validate_width(bytes, 1, false, "1 byte for a tinyint")
}

pub(super) fn validate_i16(bytes: &[u8]) -> Result<(), Invalid> {
    validate_width(bytes, 2, false, "2 bytes for a smallint")
}

pub(super) fn validate_i32(bytes: &[u8]) -> Result<(), Invalid> {
    validate_width(bytes, 4, true, "4 or 0 byte int")
}

pub(super) fn validate_i64(bytes: &[u8]) -> Result<(), Invalid> {
    validate_width(bytes, 8, true, "8 or 0 byte long")
}

pub(super) fn validate_f32(bytes: &[u8]) -> Result<(), Invalid> {
    validate_width(bytes, 4, true, "4 or 0 byte value for a float")
}

pub(super) fn validate_f64(bytes: &[u8]) -> Result<(), Invalid> {
    validate_width(bytes, 8, true, "8 or 0 byte value for a double")
}

/// Order of decoded values: empty first, then values, then invalid bytes in byte order.
pub(super) fn compare_by<T>(
    a: &[u8],
    b: &[u8],
    decode: fn(&[u8]) -> Option<T>,
    order: impl Fn(&T, &T) -> Ordering,
) -> Ordering {
    let rank = |bytes: &[u8], value: &Option<T>| match value {
        _ if bytes.is_empty() => 0_u8,
        Some(_) => 1,
        None => 2,
    };
    let (x, y) = (decode(a), decode(b));
    rank(a, &x).cmp(&rank(b, &y)).then_with(|| match (&x, &y) {
        (Some(x), Some(y)) => order(x, y),
        _ => a.cmp(b),
    })
}

pub(super) fn compare_i8(a: &[u8], b: &[u8]) -> Ordering {
    compare_by(a, b, decode_i8, Ord::cmp)
}

pub(super) fn compare_i16(a: &[u8], b: &[u8]) -> Ordering {
    compare_by(a, b, decode_i16, Ord::cmp)
}

pub(super) fn compare_i32(a: &[u8], b: &[u8]) -> Ordering {
    compare_by(a, b, decode_i32, Ord::cmp)
}

pub(super) fn compare_i64(a: &[u8], b: &[u8]) -> Ordering {
    compare_by(a, b, decode_i64, Ord::cmp)
}

/// Java's order: −0.0 before 0.0, NaN last, all NaNs equal.
pub(super) fn compare_f32(a: &[u8], b: &[u8]) -> Ordering {
    compare_by(a, b, decode_f32, |x, y| java_order(f64::from(*x), f64::from(*y)))
}

pub(super) fn compare_f64(a: &[u8], b: &[u8]) -> Ordering {
    compare_by(a, b, decode_f64, |x, y| java_order(*x, *y))
}

/// `Double.compare`: −0.0 before 0.0, NaN last, all NaNs equal.
#[must_use]
pub fn java_order(x: f64, y: f64) -> Ordering {
    match (x.is_nan(), y.is_nan()) {
        (false, false) => x.total_cmp(&y),
        (x_nan, y_nan) => x_nan.cmp(&y_nan),
    }
}

pub(super) fn order_i8(bytes: &[u8], out: &mut Vec<u8>) {
    key::order_fixed::<1>(bytes, out, key::flip_sign);
}

pub(super) fn order_i16(bytes: &[u8], out: &mut Vec<u8>) {
    key::order_fixed::<2>(bytes, out, key::flip_sign);
}

pub(super) fn order_i32(bytes: &[u8], out: &mut Vec<u8>) {
    key::order_fixed::<4>(bytes, out, key::flip_sign);
}

pub(super) fn order_i64(bytes: &[u8], out: &mut Vec<u8>) {
    key::order_fixed::<8>(bytes, out, key::flip_sign);
}

pub(super) fn read_i8(reader: &mut KeyReader<'_>, out: &mut Vec<u8>) -> Result<(), Corrupt> {
    key::read_fixed::<1>(reader, out, key::flip_sign)
}

pub(super) fn read_i16(reader: &mut KeyReader<'_>, out: &mut Vec<u8>) -> Result<(), Corrupt> {
    key::read_fixed::<2>(reader, out, key::flip_sign)
}

pub(super) fn read_i32(reader: &mut KeyReader<'_>, out: &mut Vec<u8>) -> Result<(), Corrupt> {
    key::read_fixed::<4>(reader, out, key::flip_sign)
}

pub(super) fn read_i64(reader: &mut KeyReader<'_>, out: &mut Vec<u8>) -> Result<(), Corrupt> {
    key::read_fixed::<8>(reader, out, key::flip_sign)
}

/// Transforms a float for byte order: sets the sign bit of positive numbers, inverts all bits of negative ones.
fn float_up<const N: usize>(bytes: [u8; N]) -> [u8; N] {
    if bytes.first().is_some_and(|first| first & 0x80 != 0) {
        bytes.map(|byte| !byte)
    } else {
        key::flip_sign(bytes)
    }
}

/// The inverse of [`float_up`].
fn float_down<const N: usize>(bytes: [u8; N]) -> [u8; N] {
    if bytes.first().is_some_and(|first| first & 0x80 != 0) {
        key::flip_sign(bytes)
    } else {
        bytes.map(|byte| !byte)
    }
}

pub(super) fn order_f32(bytes: &[u8], out: &mut Vec<u8>) {
    key::order_fixed::<4>(bytes, out, |bytes| float_up(encode_f32(f32::from_be_bytes(bytes))));
}

pub(super) fn order_f64(bytes: &[u8], out: &mut Vec<u8>) {
    key::order_fixed::<8>(bytes, out, |bytes| float_up(encode_f64(f64::from_be_bytes(bytes))));
}

pub(super) fn read_f32(reader: &mut KeyReader<'_>, out: &mut Vec<u8>) -> Result<(), Corrupt> {
    key::read_fixed::<4>(reader, out, float_down)
}

pub(super) fn read_f64(reader: &mut KeyReader<'_>, out: &mut Vec<u8>) -> Result<(), Corrupt> {
    key::read_fixed::<8>(reader, out, float_down)
}

/// Encodes a parsed text; an empty text gives empty bytes. `complaint` starts the message for an invalid text.
fn parse_or_empty<const N: usize>(
    text: &str,
    complaint: &'static str,
    parse: impl FnOnce(&str) -> Option<[u8; N]>,
) -> Result<Vec<u8>, Invalid> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    match parse(text) {
        Some(bytes) => Ok(bytes.to_vec()),
        None => Err(Invalid::Text(complaint, text.to_owned())),
    }
}

pub(super) fn parse_i8(text: &str) -> Result<Vec<u8>, Invalid> {
    let parse = |text: &str| text.parse().ok().map(i8::to_be_bytes);
    parse_or_empty(text, "Unable to make byte from", parse)
}

pub(super) fn parse_i16(text: &str) -> Result<Vec<u8>, Invalid> {
    let parse = |text: &str| text.parse().ok().map(i16::to_be_bytes);
    parse_or_empty(text, "Unable to make short from", parse)
}

pub(super) fn parse_i32(text: &str) -> Result<Vec<u8>, Invalid> {
    let parse = |text: &str| text.parse().ok().map(i32::to_be_bytes);
    parse_or_empty(text, "Unable to make int from", parse)
}

pub(super) fn parse_i64(text: &str) -> Result<Vec<u8>, Invalid> {
    let parse = |text: &str| text.parse().ok().map(i64::to_be_bytes);
    parse_or_empty(text, "Unable to make long from", parse)
}

pub(super) fn parse_f32(text: &str) -> Result<Vec<u8>, Invalid> {
    let parse = |text: &str| java_parse_f32(text).map(encode_f32);
    parse_or_empty(text, "Unable to make float from", parse)
}

pub(super) fn parse_f64(text: &str) -> Result<Vec<u8>, Invalid> {
    let parse = |text: &str| java_parse_f64(text).map(encode_f64);
    parse_or_empty(text, "Unable to make double from", parse)
}

/// Java's `Double.parseDouble`, without its hexadecimal form.
pub(super) fn java_parse_f64(text: &str) -> Option<f64> {
    let trimmed = text.trim();
    let (sign, digits) = match trimmed.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, trimmed.strip_prefix('+').unwrap_or(trimmed)),
    };
    match digits {
        "NaN" => return Some(f64::NAN),
        "Infinity" => return Some(sign * f64::INFINITY),
        _ => {}
    }
    let number = digits.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(digits);
    // Rust also accepts `inf`, `nan` and signs; a number in Java starts with a digit or a point.
    if !number.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    number.parse::<f64>().ok().map(|value| sign * value)
}

/// Java's `Float.parseFloat`: rounded once, from the digits.
fn java_parse_f32(text: &str) -> Option<f32> {
    let wide = java_parse_f64(text)?;
    let trimmed = text.trim();
    let number = trimmed.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(trimmed);
    if wide.is_nan() {
        return Some(f32::NAN);
    }
    match number.parse::<f32>() {
        Ok(value) => Some(value),
        Err(_) => Some(double_to_float(wide)),
    }
}

/// The nearest float, as Java's `(float) double`.
#[expect(
    clippy::cast_possible_truncation,
    reason = "rounding to the nearest float is intended"
)]
#[must_use]
pub fn double_to_float(value: f64) -> f32 {
    value as f32
}

/// A float's bytes; every NaN becomes Java's.
#[must_use]
pub fn encode_f32(value: f32) -> [u8; 4] {
    if value.is_nan() {
        0x7fc0_0000_u32.to_be_bytes()
    } else {
        value.to_be_bytes()
    }
}

/// A double's bytes; every NaN becomes Java's.
#[must_use]
pub fn encode_f64(value: f64) -> [u8; 8] {
    if value.is_nan() {
        0x7ff8_0000_0000_0000_u64.to_be_bytes()
    } else {
        value.to_be_bytes()
    }
}

/// As Java's `Double.toString` before Java 19.
#[must_use]
pub fn java_f64(value: f64) -> String {
    java_float(value.classify(), value.is_sign_negative(), || {
        java_float::of_f64(value.abs())
    })
}

/// As Java's `Float.toString` before Java 19.
#[must_use]
pub fn java_f32(value: f32) -> String {
    java_float(value.classify(), value.is_sign_negative(), || {
        java_float::of_f32(value.abs())
    })
}

/// Java's form of a number: plain between 10⁻³ and 10⁷, otherwise `d.dddE±n`.
fn java_float(class: FpCategory, negative: bool, digits: impl FnOnce() -> java_float::Digits) -> String {
    let sign = if negative { "-" } else { "" };
    match class {
        FpCategory::Nan => return "NaN".to_owned(),
        FpCategory::Infinite => return format!("{sign}Infinity"),
        FpCategory::Zero => return format!("{sign}0.0"),
        FpCategory::Subnormal | FpCategory::Normal => {}
    }
    let (digits, exponent) = digits();
    let digits = match digits.trim_end_matches('0') {
        "" => "0",
        digits => digits,
    };
    if (-3..7).contains(&exponent) {
        let point = exponent + 1;
        let text = if point <= 0 {
            format!("0.{}{digits}", "0".repeat(point.unsigned_abs() as usize))
        } else {
            let point = point.unsigned_abs() as usize;
            let padded = format!("{digits:0<width$}", width = point + 1);
            let (whole, fraction) = padded.split_at(point);
            format!("{whole}.{fraction}")
        };
        return format!("{sign}{text}");
    }
    let (first, rest) = digits.split_at(1.min(digits.len()));
    let rest = if rest.is_empty() { "0" } else { rest };
    format!("{sign}{first}.{rest}E{exponent}")
}
