//! Numbers of texts: what `parseInt`, `parseDouble` and their kin read, and how they refuse it.

use super::{Arguments, text};
use crate::class::{Class, Kind};
use crate::machine::{Machine, Run};
use crate::value::{Prim, Value};

/// The text at a position, to be read as a number.
pub(super) fn string(m: &mut Machine<'_>, a: &[Value], at: usize) -> Run<String> {
    let units = text(m, a, at)?;
    // Parsing digits takes time quadratic in their number.
    m.step(units.len().saturating_mul(units.len()) / 256 + 1)?;
    Ok(String::from_utf16_lossy(&units))
}

/// A whole number of a text, as `parseInt` and its kin read it.
pub(super) fn parse(m: &mut Machine<'_>, a: &[Value], kind: Kind, radix: i32) -> Run<Value> {
    if matches!(a.value(0), Value::Null) {
        // Java's message differs by version; this is 17's.
        return m.throw(Class::NumberFormat, "Cannot parse null string");
    }
    let written = string(m, a, 0)?;
    let shown = if radix == 10 {
        String::new()
    } else {
        format!(" under radix {radix}")
    };
    let failed = format!("For input string: \"{written}\"{shown}");
    let radix = u32::try_from(radix)
        .ok()
        .filter(|radix| (2..=36).contains(radix))
        .unwrap_or(10);
    let digits = written.strip_prefix(['+', '-']).unwrap_or(&written);
    let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    let value = if is_number {
        i64::from_str_radix(&written, radix).ok()
    } else {
        None
    };
    let prim = match (value, kind) {
        (Some(value), Kind::Long) => Some(Prim::Long(value)),
        (Some(value), Kind::Int) => i32::try_from(value).ok().map(Prim::Int),
        (Some(value), Kind::Short) => i16::try_from(value).ok().map(Prim::Short),
        (Some(value), _) => i8::try_from(value).ok().map(Prim::Byte),
        (None, _) => None,
    };
    match prim {
        Some(prim) => Ok(Value::Prim(prim)),
        None if is_number && matches!(kind, Kind::Short | Kind::Byte) => m.throw(
            Class::NumberFormat,
            format!("Value out of range. Value:\"{written}\" Radix:{radix}"),
        ),
        None => m.throw(Class::NumberFormat, failed),
    }
}

/// A floating point number of a text.
pub(super) fn parse_double(m: &mut Machine<'_>, a: &[Value], kind: Kind) -> Run<Value> {
    if matches!(a.first(), Some(Value::Null)) {
        return m.throw(
            Class::NullPointer,
            "Cannot invoke \"String.trim()\" because \"in\" is null",
        );
    }
    let written = string(m, a, 0)?;
    let trimmed = written.trim_matches(|c: char| c <= ' ');
    let bare = trimmed.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(trimmed);
    let unsigned = bare.strip_prefix(['+', '-']).unwrap_or(bare);
    let points = unsigned.chars().take_while(|c| c.is_ascii_digit() || *c == '.');
    if points.filter(|c| *c == '.').count() > 1 {
        return m.throw(Class::NumberFormat, "multiple points");
    }
    let is_digits = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') && !unsigned.contains('_');
    let is_word = matches!(unsigned, "NaN" | "Infinity") && bare.len() == trimmed.len();
    let value = if !is_digits && !is_word {
        None
    } else if kind == Kind::Float {
        bare.parse().ok().map(Prim::Float)
    } else {
        bare.parse().ok().map(Prim::Double)
    };
    match value {
        Some(value) => Ok(Value::Prim(value)),
        None if trimmed.is_empty() => m.throw(Class::NumberFormat, "empty String"),
        None => m.throw(Class::NumberFormat, format!("For input string: \"{trimmed}\"")),
    }
}
