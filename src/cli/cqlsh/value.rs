//! Values as cqlsh prints them (`cqlshlib/formatting.py` of cqlsh 6.2): not as CQL literals.

use helenus_types::types::{
    CqlType, DAY_MILLIS, Duration, Native, date_text, decode_boolean, decode_date, decode_f32, decode_f64, decode_i64,
    list_elements, map_entries, set_elements, time_text, tuple_fields,
};

/// The text of null.
pub(super) const NULL: &str = "null";

/// Digits of a `float` and of a `double`.
const FLOAT_DIGITS: i32 = 5;
const DOUBLE_DIGITS: i32 = 12;

/// A value's text; `None` is null. Within a collection some types are quoted.
#[must_use]
pub(super) fn print(ty: &CqlType, bytes: Option<&[u8]>, is_inside: bool) -> String {
    let Some(bytes) = bytes else {
        return NULL.to_owned();
    };
    let each = |element: &CqlType, elements: Vec<&[u8]>| -> String {
        let texts: Vec<String> = elements
            .into_iter()
            .map(|bytes| print(element, Some(bytes), true))
            .collect();
        texts.join(", ")
    };
    match ty {
        CqlType::Frozen(inner) => print(inner, Some(bytes), is_inside),
        CqlType::List(element) => format!("[{}]", each(element, list_elements(bytes).unwrap_or_default())),
        CqlType::Vector(element, _) => format!("[{}]", each(element, ty.vector_elements(bytes).unwrap_or_default())),
        CqlType::Set(element) => format!("{{{}}}", each(element, set_elements(bytes).unwrap_or_default())),
        CqlType::Map(key, value) => {
            let entries = map_entries(bytes).unwrap_or_default();
            let texts: Vec<String> = entries
                .into_iter()
                .map(|(k, v)| format!("{}: {}", print(key, Some(k), true), print(value, Some(v), true)))
                .collect();
            format!("{{{}}}", texts.join(", "))
        }
        CqlType::Tuple(types) => {
            let fields = types.iter().zip(tuple_fields(bytes, types.len()));
            let texts: Vec<String> = fields.map(|(ty, field)| print(ty, field, true)).collect();
            format!("({})", texts.join(", "))
        }
        CqlType::User(user) => {
            let fields = user.fields.iter().zip(tuple_fields(bytes, user.fields.len()));
            let texts: Vec<String> = fields
                .map(|((name, ty), field)| format!("{name}: {}", print(ty, field, true)))
                .collect();
            format!("{{{}}}", texts.join(", "))
        }
        CqlType::Native(native) => print_native(ty, *native, bytes, is_inside),
        CqlType::Custom(_) => ty.to_text(bytes),
    }
}

fn print_native(ty: &CqlType, native: Native, bytes: &[u8], is_inside: bool) -> String {
    let quoted = |text: String| if is_inside { format!("'{text}'") } else { text };
    if matches!(native, Native::Ascii | Native::Text) {
        let text = String::from_utf8_lossy(bytes).replace('\\', "\\\\");
        let text = if is_inside { text.replace('\'', "''") } else { text };
        return quoted(escaped(&text));
    }
    if native == Native::Blob {
        return format!("0x{}", helenus_types::types::hex(bytes));
    }
    if bytes.is_empty() {
        return String::new();
    }
    let known = match native {
        Native::Boolean => decode_boolean(bytes).map(|value| if value { "True" } else { "False" }.to_owned()),
        Native::Float => decode_f32(bytes).map(|value| real(f64::from(value), FLOAT_DIGITS)),
        Native::Double => decode_f64(bytes).map(|value| real(value, DOUBLE_DIGITS)),
        Native::Timestamp => decode_i64(bytes).map(|millis| quoted(timestamp(millis))),
        Native::Date => decode_date(bytes).map(date_text),
        Native::Time => decode_i64(bytes).map(time_text),
        Native::Duration => Duration::decode(bytes).ok().map(duration),
        Native::Inet => Some(quoted(ty.to_text(bytes))),
        _ => None,
    };
    known.unwrap_or_else(|| ty.to_text(bytes))
}

/// `2020-02-29 01:02:03.004000+0000`, in UTC.
fn timestamp(millis: i64) -> String {
    let day = date_text(millis.div_euclid(DAY_MILLIS));
    let rest = millis.rem_euclid(DAY_MILLIS);
    let (hours, minutes, seconds) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60);
    format!("{day} {hours:02}:{minutes:02}:{seconds:02}.{:03}000+0000", rest % 1000)
}

/// Every part, also those that are 0, as the Python driver's `Duration` prints itself.
fn duration(value: Duration) -> String {
    let is_negative = value.months < 0 || value.days < 0 || value.nanoseconds < 0;
    let sign = if is_negative { "-" } else { "" };
    let (months, days) = (value.months.unsigned_abs(), value.days.unsigned_abs());
    format!("{sign}{months}mo{days}d{}ns", value.nanoseconds.unsigned_abs())
}

/// C's `%.*g`, plus the digits before the point unless there is an exponent.
fn real(value: f64, digits: i32) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    // Python's `int(math.log10(abs(val)))`, which rounds toward zero.
    #[expect(clippy::cast_possible_truncation, reason = "the logarithm of a double is below 309")]
    let magnitude = (value.abs() > f64::EPSILON).then(|| value.abs().log10() as i32);
    let precision = match magnitude {
        Some(magnitude) if (-4..digits).contains(&magnitude) => digits + magnitude + 1,
        _ => digits,
    };
    general(value, precision.max(1))
}

/// `%.{precision}g`: the shorter of two notations, by the exponent after rounding; trailing zeros are cut.
fn general(value: f64, precision: i32) -> String {
    if value == 0.0 {
        return if value.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    let decimals = |count: i32| usize::try_from(count).unwrap_or(0);
    let scientific = format!("{value:.*e}", decimals(precision - 1));
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let cut = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if exponent < -4 || exponent >= precision {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", cut(mantissa), exponent.unsigned_abs());
    }
    cut(&format!("{value:.*}", decimals(precision - 1 - exponent)))
}

/// Control characters as Python writes them.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{a0}' => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

/// Ranges of characters that fill two columns of a terminal: East Asian wide ones and emoji (Unicode Standard Annex 11).
const WIDE: &[(u32, u32)] = &[
    (0x1100, 0x115F),
    (0x2E80, 0x303E),
    (0x3041, 0x33FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xA000, 0xA4CF),
    (0xAC00, 0xD7A3),
    (0xF900, 0xFAFF),
    (0xFE30, 0xFE6F),
    (0xFF00, 0xFF60),
    (0xFFE0, 0xFFE6),
    (0x1F300, 0x1F64F),
    (0x1F900, 0x1F9FF),
    (0x20000, 0x3FFFD),
];

/// Ranges of characters that fill none: combining marks, joiners.
const EMPTY: &[(u32, u32)] = &[(0x0300, 0x036F), (0x200B, 0x200F), (0x20D0, 0x20FF), (0xFE00, 0xFE0F)];

/// Columns that a text fills on a terminal.
#[must_use]
pub(super) fn width(text: &str) -> usize {
    let is_in = |ranges: &[(u32, u32)], c: u32| ranges.iter().any(|(from, to)| (*from..=*to).contains(&c));
    text.chars()
        .map(|c| match u32::from(c) {
            c if is_in(EMPTY, c) => 0,
            c if is_in(WIDE, c) => 2,
            _ => 1,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_as_python_does() {
        // `python3 -c "print('%.*g' % …)"` after cqlsh's rule for the precision.
        for (value, digits, text) in [
            (2.5, DOUBLE_DIGITS, "2.5"),
            (0.1, DOUBLE_DIGITS, "0.1"),
            (1.0, FLOAT_DIGITS, "1"),
            (123_456.789, FLOAT_DIGITS, "1.2346e+05"),
            (1234.5678, FLOAT_DIGITS, "1234.5678"),
            (1e20, DOUBLE_DIGITS, "1e+20"),
            (1e-7, DOUBLE_DIGITS, "1e-07"),
            (0.0, DOUBLE_DIGITS, "0"),
            (f64::NAN, DOUBLE_DIGITS, "NaN"),
            (f64::NEG_INFINITY, FLOAT_DIGITS, "-Infinity"),
        ] {
            assert_eq!(real(value, digits), text, "{value}");
        }
    }

    #[test]
    fn columns_are_those_of_a_terminal() {
        for (text, columns) in [("", 0), ("abc", 3), ("é'日本", 6), ("e\u{301}", 1)] {
            assert_eq!(width(text), columns, "{text}");
        }
    }
}
