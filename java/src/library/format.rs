//! `String.format`, and `Locale`. Texts are English, whatever the locale.

use super::{Arguments, Method, fixed, instance, text};
use crate::class::Class;
use crate::class::Class::String as Text;
use crate::machine::{Machine, Run};
use crate::shown::LOCALES;
use crate::value::{Plain, Prim, Value, utf8};

/// Digits behind the point where the format names no number.
const PRECISION: usize = 6;

pub(super) const METHODS: &[Method] = &[
    fixed(Text, "format", "String,Object...", "String", |m, a| formatted(m, a, 0)),
    fixed(Text, "format", "Locale,String,Object...", "String", |m, a| {
        formatted(m, a, 1)
    }),
    instance(Text, "formatted", "Object...", "String", |m, a| formatted(m, a, 0)),
];

/// A constant of `Locale`.
pub(super) fn locale(name: &str) -> Option<Value> {
    let at = LOCALES.iter().position(|(known, _)| *known == name)?;
    Some(Value::plain(Plain::Constant(Class::Locale, u8::try_from(at).ok()?)))
}

/// A conversion of a format: `%1$-8.3f`.
#[derive(Debug)]
struct Conversion {
    /// As it is written.
    written: String,
    /// The argument by number, from 1; 0 is the one before; none is the next one.
    index: Option<usize>,
    flags: String,
    width: Option<usize>,
    precision: Option<usize>,
    /// In lower case.
    letter: char,
    is_upper: bool,
}

/// A part of a format.
enum Part {
    Literal(Vec<u16>),
    Conversion(Conversion),
}

/// An exception: its class and its message.
type Wrong = (Class, String);

impl Conversion {
    fn has(&self, flag: char) -> bool {
        self.flags.contains(flag)
    }

    fn no_flag(&self, flag: char) -> Wrong {
        let message = format!("Conversion = {}, Flags = {flag}", self.letter);
        (Class::FormatFlags, message)
    }

    /// Judges the flags, the width and the precision, as Java does before it formats anything.
    fn checked(&self) -> Result<(), Wrong> {
        let refuse = |flags: &str| {
            flags
                .chars()
                .find(|flag| self.has(*flag))
                .map(|flag| self.no_flag(flag))
        };
        let no_width = (Class::MissingFormatWidth, self.written.clone());
        let no_precision = |precision: usize| (Class::FormatPrecision, precision.to_string());
        let wrong = match self.letter {
            'b' | 's' | 'h' => {
                if self.has('-') && self.width.is_none() {
                    return Err(no_width);
                }
                refuse(if self.letter == 's' { "+ 0,(" } else { "#+ 0,(" })
            }
            'c' => {
                if let Some(precision) = self.precision {
                    return Err(no_precision(precision));
                }
                let wrong = refuse("#+ 0,(");
                if wrong.is_none() && self.has('-') && self.width.is_none() {
                    return Err(no_width);
                }
                wrong
            }
            'd' | 'o' | 'x' => {
                self.numeric()?;
                if let Some(precision) = self.precision {
                    return Err(no_precision(precision));
                }
                refuse(if self.letter == 'd' { "#" } else { "," })
            }
            'f' => {
                self.numeric()?;
                None
            }
            'e' => {
                self.numeric()?;
                refuse(",")
            }
            'g' => {
                self.numeric()?;
                refuse("#")
            }
            '%' => {
                if let Some(precision) = self.precision {
                    return Err(no_precision(precision));
                }
                if self.flags.chars().any(|flag| flag != '-') {
                    return Err((Class::IllegalFlags, format!("Flags = '{}'", self.flags)));
                }
                if self.has('-') && self.width.is_none() {
                    return Err(no_width);
                }
                None
            }
            _ => None,
        };
        wrong.map_or(Ok(()), Err)
    }

    fn numeric(&self) -> Result<(), Wrong> {
        if (self.has('-') || self.has('0')) && self.width.is_none() {
            return Err((Class::MissingFormatWidth, self.written.clone()));
        }
        if (self.has('+') && self.has(' ')) || (self.has('-') && self.has('0')) {
            return Err((Class::IllegalFlags, format!("Flags = '{}'", self.flags)));
        }
        Ok(())
    }

    /// A text at its place within the width.
    fn justified(&self, shown: &[u16]) -> Vec<u16> {
        let mut padding = vec![32; self.width.unwrap_or(0).saturating_sub(shown.len())];
        if self.has('-') {
            return [shown, &padding].concat();
        }
        padding.extend_from_slice(shown);
        padding
    }

    /// A number with its sign, its groups and its zeros.
    fn signed(&self, is_negative: bool, magnitude: &str) -> String {
        let mut shown = String::new();
        match (is_negative, self.has('(')) {
            (true, true) => shown.push('('),
            (true, false) => shown.push('-'),
            (false, _) if self.has('+') => shown.push('+'),
            (false, _) if self.has(' ') => shown.push(' '),
            _ => {}
        }
        let grouped = if self.has(',') {
            grouped(magnitude)
        } else {
            magnitude.to_owned()
        };
        if self.has('0') {
            let closing = usize::from(is_negative && self.has('('));
            let taken = shown.len() + grouped.len() + closing;
            shown.push_str(&"0".repeat(self.width.unwrap_or(0).saturating_sub(taken)));
        }
        shown.push_str(&grouped);
        if is_negative && self.has('(') {
            shown.push(')');
        }
        shown
    }
}

/// With a comma before each third digit of the whole part.
fn grouped(magnitude: &str) -> String {
    let (whole, rest) = magnitude.split_at(magnitude.find('.').unwrap_or(magnitude.len()));
    let mut shown = String::with_capacity(magnitude.len() * 4 / 3);
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown + rest
}

/// The parts of a format.
fn parts(format: &[u16]) -> Result<Vec<Part>, Wrong> {
    let percent = u16::from(b'%');
    let mut found = Vec::new();
    let mut at = 0;
    while at < format.len() {
        let rest = format.get(at..).unwrap_or_default();
        let literal = rest.iter().position(|unit| *unit == percent).unwrap_or(rest.len());
        if literal > 0 {
            found.push(Part::Literal(rest.get(..literal).unwrap_or_default().to_vec()));
        }
        at += literal;
        if literal < rest.len() {
            let conversion = conversion(format.get(at..).unwrap_or_default())?;
            at += conversion.written.encode_utf16().count();
            conversion.checked()?;
            found.push(Part::Conversion(conversion));
        }
    }
    Ok(found)
}

/// The conversion at the beginning of a text.
fn conversion(text: &[u16]) -> Result<Conversion, Wrong> {
    let characters: Vec<char> = char::decode_utf16(text.iter().copied())
        .map(|c| c.unwrap_or('\u{fffd}'))
        .take(64)
        .collect();
    let char_at = |at: usize| characters.get(at).copied().unwrap_or('\0');
    let unknown = |letter: char| (Class::UnknownConversion, format!("Conversion = '{letter}'"));
    let digits = |from: usize| characters.iter().skip(from).take_while(|c| c.is_ascii_digit()).count();
    let number = |from: usize, count: usize| -> usize {
        let digits: String = characters.iter().skip(from).take(count).collect();
        digits.parse().unwrap_or(usize::MAX)
    };
    let mut at = 1;
    let mut index = None;
    let count = digits(at);
    if count > 0 && char_at(at + count) == '$' {
        index = Some(number(at, count));
        at += count + 1;
    }
    let mut flags = String::new();
    while let flag @ ('-' | '#' | '+' | ' ' | '0' | ',' | '(' | '<') = char_at(at) {
        if flags.contains(flag) {
            return Err((Class::DuplicateFlags, format!("Flags = '{flag}'")));
        }
        flags.push(flag);
        at += 1;
    }
    if flags.contains('<') {
        flags = flags.replace('<', "");
        index = Some(0);
    }
    let count = digits(at);
    let width = (count > 0).then(|| number(at, count));
    at += count;
    let mut precision = None;
    if char_at(at) == '.' {
        let count = digits(at + 1);
        if count == 0 {
            return Err(unknown(char_at(1)));
        }
        precision = Some(number(at + 1, count));
        at += 1 + count;
    }
    let letter = match characters.get(at) {
        Some(letter) if letter.is_ascii_alphabetic() || *letter == '%' => *letter,
        // Java names the character behind the percent sign.
        _ => return Err(unknown(characters.get(1).copied().unwrap_or('%'))),
    };
    if !"bBhHsScCdoxXeEfgGaAtT%n".contains(letter) {
        return Err(unknown(letter));
    }
    Ok(Conversion {
        written: characters.iter().take(at + 1).collect(),
        index,
        flags,
        width,
        precision,
        letter: letter.to_ascii_lowercase(),
        is_upper: letter.is_ascii_uppercase(),
    })
}

fn formatted(m: &mut Machine<'_>, a: &[Value], at: usize) -> Run<Value> {
    let format = text(m, a, at)?;
    m.step(format.len())?;
    let parts = match parts(&format) {
        Ok(parts) => parts,
        Err((class, message)) => return m.throw(class, message),
    };
    let arguments = match a.get(at + 1) {
        Some(Value::Ref(handle)) => m.elements(*handle)?,
        _ => Vec::new(),
    };
    let mut units: Vec<u16> = Vec::new();
    let (mut next, mut last) = (0, None);
    for part in parts {
        let conversion = match part {
            Part::Literal(literal) => {
                units.extend(literal);
                continue;
            }
            Part::Conversion(conversion) => conversion,
        };
        let wide = conversion
            .width
            .unwrap_or(0)
            .saturating_add(conversion.precision.unwrap_or(0));
        m.allocate((wide as u64).saturating_mul(4))?;
        m.step(wide / 4 + 1)?;
        let shown = match conversion.letter {
            '%' => conversion.justified(&[37]),
            'n' => vec![10],
            _ => {
                let place = match conversion.index {
                    Some(0) => last,
                    Some(number) => Some(number - 1),
                    None => {
                        next += 1;
                        Some(next - 1)
                    }
                };
                let Some(argument) = place.and_then(|place| arguments.get(place)) else {
                    let message = format!("Format specifier '{}'", conversion.written);
                    return m.throw(Class::MissingFormatArgument, message);
                };
                last = place;
                let shown = converted(m, &conversion, argument)?;
                conversion.justified(&upper(&conversion, shown))
            }
        };
        units.extend(shown);
    }
    m.text(&units)
}

fn upper(conversion: &Conversion, shown: Vec<u16>) -> Vec<u16> {
    if conversion.is_upper {
        utf8(&shown).to_uppercase().encode_utf16().collect()
    } else {
        shown
    }
}

fn converted(m: &mut Machine<'_>, conversion: &Conversion, argument: &Value) -> Run<Vec<u16>> {
    let cut = |units: &[u16]| match conversion.precision {
        Some(most) => units.get(..most).unwrap_or(units).to_vec(),
        None => units.to_vec(),
    };
    let ascii = |text: &str| text.encode_utf16().collect::<Vec<u16>>();
    match (conversion.letter, argument) {
        ('b', argument) => {
            let is_true = match argument.prim() {
                Some(Prim::Boolean(value)) => value,
                _ => !matches!(argument, Value::Null),
            };
            Ok(cut(&ascii(if is_true { "true" } else { "false" })))
        }
        ('a' | 't', _) => {
            let written = &conversion.written;
            let message = format!("Helenus has no conversion {written} of String.format in a function's body");
            m.throw(Class::Unsupported, message)
        }
        (letter, Value::Null) => {
            let shown = ascii("null");
            Ok(if matches!(letter, 's' | 'h' | 'e' | 'f' | 'g') {
                cut(&shown)
            } else {
                shown
            })
        }
        ('s', argument) => match m.text_of(argument)? {
            Value::Text(_) if conversion.has('#') => {
                let (class, message) = conversion.no_flag('#');
                m.throw(class, message)
            }
            Value::Text(units) => Ok(cut(&units)),
            _ => Machine::fault("a text was expected"),
        },
        ('h', argument) => {
            let hash = m.hash(argument)?;
            Ok(cut(&ascii(&format!("{hash:x}"))))
        }
        ('c', argument) => match argument.prim() {
            Some(Prim::Char(unit)) => Ok(vec![unit]),
            Some(Prim::Byte(_) | Prim::Short(_) | Prim::Int(_)) => {
                let code = [argument.clone()].int(0)?;
                match u32::try_from(code).ok().and_then(char::from_u32) {
                    Some(character) => Ok(ascii(&character.to_string())),
                    None => m.throw(Class::IllegalFormat, format!("Code point = 0x{code:x}")),
                }
            }
            _ => mismatch(m, conversion, argument),
        },
        ('d' | 'o' | 'x', argument) => whole(m, conversion, argument),
        (_, argument) => fractional(m, conversion, argument),
    }
}

fn mismatch<T>(m: &mut Machine<'_>, conversion: &Conversion, argument: &Value) -> Run<T> {
    let class = m.class_of(argument)?.full_name();
    m.throw(Class::FormatConversion, format!("{} != {class}", conversion.letter))
}

fn whole(m: &mut Machine<'_>, conversion: &Conversion, argument: &Value) -> Run<Vec<u16>> {
    let units = |text: String| text.encode_utf16().collect::<Vec<u16>>();
    // Bits of the argument's width, for octal and hexadecimal.
    let (value, bits) = match (argument.prim(), argument) {
        (Some(Prim::Byte(value)), _) => (i64::from(value), u64::from(value.cast_unsigned())),
        (Some(Prim::Short(value)), _) => (i64::from(value), u64::from(value.cast_unsigned())),
        (Some(Prim::Int(value)), _) => (i64::from(value), u64::from(value.cast_unsigned())),
        (Some(Prim::Long(value)), _) => (value, value.cast_unsigned()),
        (None, Value::Plain(plain)) if let Plain::Big(value) = &**plain => {
            let size = usize::try_from(value.bits()).unwrap_or(usize::MAX);
            m.step(size.saturating_mul(size) / 4096)?;
            m.allocate(value.bits())?;
            let is_negative = value.sign() == num_bigint::Sign::Minus;
            let prefix = prefix(conversion);
            let magnitude = match conversion.letter {
                'd' => value.magnitude().to_string(),
                'o' => prefix.to_owned() + &value.magnitude().to_str_radix(8),
                _ => prefix.to_owned() + &value.magnitude().to_str_radix(16),
            };
            return Ok(units(conversion.signed(is_negative, &magnitude)));
        }
        _ => return mismatch(m, conversion, argument),
    };
    if conversion.letter == 'd' {
        return Ok(units(conversion.signed(value < 0, &value.unsigned_abs().to_string())));
    }
    if let Some(flag) = "( +".chars().find(|flag| conversion.has(*flag)) {
        let (class, message) = conversion.no_flag(flag);
        return m.throw(class, message);
    }
    let digits = if conversion.letter == 'o' {
        format!("{bits:o}")
    } else {
        format!("{bits:x}")
    };
    let prefix = prefix(conversion);
    let zeros = if conversion.has('0') {
        conversion
            .width
            .unwrap_or(0)
            .saturating_sub(prefix.len() + digits.len())
    } else {
        0
    };
    Ok(units(format!("{prefix}{}{digits}", "0".repeat(zeros))))
}

fn prefix(conversion: &Conversion) -> &'static str {
    match (conversion.has('#'), conversion.letter) {
        (true, 'o') => "0",
        (true, 'x') => "0x",
        _ => "",
    }
}

/// The digits of a positive number: 0.d₁d₂… · 10^`point`.
struct Digits {
    digits: Vec<u8>,
    point: i64,
}

impl Digits {
    /// Of a text such as `123.45` or `1.0E10`.
    fn of(text: &str) -> Self {
        let (mantissa, exponent) = text.split_once('E').unwrap_or((text, "0"));
        let whole = mantissa.find('.').unwrap_or(mantissa.len());
        let digits: Vec<u8> = mantissa
            .bytes()
            .filter(u8::is_ascii_digit)
            .map(|digit| digit - b'0')
            .collect();
        let exponent: i64 = exponent.parse().unwrap_or(0);
        let mut of = Self {
            digits,
            point: i64::try_from(whole).unwrap_or(0) + exponent,
        };
        let zeros = of.digits.iter().take_while(|digit| **digit == 0).count();
        of.digits.drain(..zeros);
        of.point -= i64::try_from(zeros).unwrap_or(0);
        if of.digits.is_empty() {
            of.point = 0;
        }
        of
    }

    /// Rounds half up to so many digits.
    fn rounded(mut self, count: i64) -> Self {
        let Ok(keep) = usize::try_from(count) else {
            return Self {
                digits: Vec::new(),
                point: 0,
            };
        };
        if keep >= self.digits.len() {
            return self;
        }
        let up = self.digits.get(keep).is_some_and(|digit| *digit >= 5);
        self.digits.truncate(keep);
        if !up {
            return self;
        }
        for digit in self.digits.iter_mut().rev() {
            if *digit < 9 {
                *digit += 1;
                return self;
            }
            *digit = 0;
        }
        self.digits.insert(0, 1);
        self.digits.truncate(keep.max(1));
        self.point += 1;
        self
    }

    fn digit(&self, at: i64) -> char {
        let digit = usize::try_from(at).ok().and_then(|at| self.digits.get(at)).copied();
        char::from(b'0' + digit.unwrap_or(0))
    }

    /// `123.450`
    fn decimal(self, precision: usize) -> String {
        let places = i64::try_from(precision).unwrap_or(i64::MAX / 2);
        let point = self.point;
        let rounded = self.rounded(point.saturating_add(places));
        let point = rounded.point;
        let mut shown: String = (0..point.max(0)).map(|at| rounded.digit(at)).collect();
        if point <= 0 {
            shown.push('0');
        }
        if precision > 0 {
            shown.push('.');
            shown.extend((point..point + places).map(|at| rounded.digit(at)));
        }
        shown
    }

    /// `1.234500e+02`
    fn scientific(self, precision: usize) -> String {
        let places = i64::try_from(precision).unwrap_or(i64::MAX / 2);
        let rounded = self.rounded(places + 1);
        let exponent = if rounded.digits.is_empty() {
            0
        } else {
            rounded.point - 1
        };
        let mut shown = rounded.digit(0).to_string();
        if precision > 0 {
            shown.push('.');
            shown.extend((1..=places).map(|at| rounded.digit(at)));
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{shown}e{sign}{:02}", exponent.abs())
    }
}

fn fractional(m: &mut Machine<'_>, conversion: &Conversion, argument: &Value) -> Run<Vec<u16>> {
    let units = |text: String| text.encode_utf16().collect::<Vec<u16>>();
    let (is_negative, digits) = match (argument.prim(), argument) {
        (Some(Prim::Float(_) | Prim::Double(_)), _) => {
            let value = match argument.prim() {
                Some(Prim::Float(value)) => f64::from(value),
                Some(Prim::Double(value)) => value,
                _ => 0.0,
            };
            if value.is_nan() {
                return Ok(units("NaN".to_owned()));
            }
            if value.is_infinite() {
                // Neither groups nor zeros.
                let plain = Conversion {
                    written: String::new(),
                    flags: conversion.flags.replace(['0', ','], ""),
                    index: None,
                    width: None,
                    precision: None,
                    ..*conversion
                };
                return Ok(units(plain.signed(value < 0.0, "Infinity")));
            }
            let shown = (m.limits.double_text)(value.abs());
            (value.is_sign_negative(), Digits::of(&shown))
        }
        (None, Value::Plain(plain)) if let Plain::Decimal(value) = &**plain => {
            let size = usize::try_from(value.unscaled.bits()).unwrap_or(usize::MAX);
            m.step(size.saturating_mul(size) / 4096)?;
            let written = value.unscaled.magnitude().to_string();
            let length = i64::try_from(written.len()).unwrap_or(0);
            let mut digits = Digits::of(&written);
            if !digits.digits.is_empty() {
                digits.point = length - i64::from(value.scale);
            }
            (value.unscaled.sign() == num_bigint::Sign::Minus, digits)
        }
        _ => return mismatch(m, conversion, argument),
    };
    let room = u64::try_from(digits.point.max(0)).unwrap_or(0).saturating_mul(2);
    m.allocate(room)?;
    m.step(usize::try_from(room / 4).unwrap_or(0))?;
    let precision = conversion.precision.unwrap_or(PRECISION);
    let mut magnitude = match conversion.letter {
        'f' => digits.decimal(precision),
        'e' => digits.scientific(precision),
        _ => {
            let places = precision.max(1);
            let limit = i64::try_from(places).unwrap_or(i64::MAX);
            let rounded = digits.rounded(limit);
            if rounded.digits.is_empty() {
                rounded.decimal(places - 1)
            } else if rounded.point < -3 || rounded.point > limit {
                rounded.scientific(places - 1)
            } else {
                let behind = usize::try_from(limit - rounded.point).unwrap_or(0);
                rounded.decimal(behind)
            }
        }
    };
    if conversion.has('#') && precision == 0 && !magnitude.contains('.') {
        let at = magnitude.find('e').unwrap_or(magnitude.len());
        magnitude.insert(at, '.');
    }
    Ok(units(conversion.signed(is_negative, &magnitude)))
}
