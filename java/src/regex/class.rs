//! Sets of characters.

use std::sync::{Arc, OnceLock};

use regex_syntax::hir::{Class, HirKind};

/// A set of code points.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Set {
    Range(u32, u32),
    /// A range in either case: of ASCII letters, or of all.
    Folded {
        from: u32,
        to: u32,
        is_unicode: bool,
    },
    Named(Named),
    /// Ranges in order.
    Ranges(Arc<[(u32, u32)]>),
    /// All but line terminators: all of them, or `\n` only.
    NoTerminator {
        is_unix: bool,
    },
    All,
    Not(Box<Set>),
    Any(Vec<Set>),
    Both(Box<Set>, Box<Set>),
}

/// A set that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    Digit,
    Word,
    Space,
    Horizontal,
    Vertical,
    Lower,
    Upper,
    Ascii,
    Alpha,
    Alnum,
    Punct,
    Graph,
    Print,
    Blank,
    Cntrl,
    Hex,
}

impl Named {
    /// The set of `\p{NAME}`, of those that are of ASCII in Java.
    pub(super) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "Lower" => Self::Lower,
            "Upper" => Self::Upper,
            "ASCII" => Self::Ascii,
            "Alpha" => Self::Alpha,
            "Digit" => Self::Digit,
            "Alnum" => Self::Alnum,
            "Punct" => Self::Punct,
            "Graph" => Self::Graph,
            "Print" => Self::Print,
            "Blank" => Self::Blank,
            "Cntrl" => Self::Cntrl,
            "XDigit" => Self::Hex,
            "Space" => Self::Space,
            _ => return None,
        })
    }

    fn has(self, code: u32) -> bool {
        let ascii = u8::try_from(code).ok().filter(u8::is_ascii);
        let is = |test: fn(&u8) -> bool| ascii.is_some_and(|byte| test(&byte));
        match self {
            Self::Digit => is(u8::is_ascii_digit),
            Self::Word => ascii.is_some_and(|byte| byte == b'_' || byte.is_ascii_alphanumeric()),
            Self::Space => matches!(code, 9..=13 | 32),
            Self::Horizontal => {
                matches!(
                    code,
                    9 | 32 | 0xa0 | 0x1680 | 0x180e | 0x2000..=0x200a | 0x202f | 0x205f | 0x3000
                )
            }
            Self::Vertical => matches!(code, 10..=13 | 0x85 | 0x2028 | 0x2029),
            Self::Lower => is(u8::is_ascii_lowercase),
            Self::Upper => is(u8::is_ascii_uppercase),
            Self::Ascii => ascii.is_some(),
            Self::Alpha => is(u8::is_ascii_alphabetic),
            Self::Alnum => is(u8::is_ascii_alphanumeric),
            Self::Punct => is(u8::is_ascii_punctuation),
            Self::Graph => is(u8::is_ascii_graphic),
            Self::Print => matches!(code, 32..=126),
            Self::Blank => matches!(code, 9 | 32),
            Self::Cntrl => is(u8::is_ascii_control),
            Self::Hex => is(u8::is_ascii_hexdigit),
        }
    }
}

/// The other case of an ASCII letter, or the code point itself.
fn other_case(code: u32) -> u32 {
    match u8::try_from(code) {
        Ok(byte) if byte.is_ascii_alphabetic() => u32::from(byte ^ 0x20),
        _ => code,
    }
}

/// A code point of one case, as Java compares with `UNICODE_CASE`.
fn folded(code: u32) -> u32 {
    let Some(character) = char::from_u32(code) else {
        return code;
    };
    let mut upper = character.to_uppercase();
    let one = match (upper.next(), upper.next()) {
        (Some(one), None) => one,
        _ => character,
    };
    let mut lower = one.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(one), None) => one.into(),
        _ => one.into(),
    }
}

/// Whether two code points are the same but for case.
pub(super) fn same_but_case(a: u32, b: u32, is_unicode: bool) -> bool {
    a == b || other_case(a) == b || (is_unicode && folded(a) == folded(b))
}

pub(super) fn is_terminator(code: u32) -> bool {
    matches!(code, 10 | 13 | 0x85 | 0x2028 | 0x2029)
}

impl Set {
    pub(super) fn has(&self, code: u32) -> bool {
        match self {
            Self::Range(from, to) => (*from..=*to).contains(&code),
            Self::Folded { from, to, is_unicode } => {
                let range = *from..=*to;
                let is_in = |code: u32| range.contains(&code);
                if is_in(code) || is_in(other_case(code)) {
                    return true;
                }
                let cases = |code: u32| {
                    let character = char::from_u32(code)?;
                    Some(character.to_uppercase().chain(character.to_lowercase()))
                };
                *is_unicode
                    && (is_in(folded(code))
                        || cases(code).is_some_and(|mut cases| cases.any(|case| is_in(case.into()))))
            }
            Self::Named(named) => named.has(code),
            Self::Ranges(ranges) => is_within(ranges, code),
            Self::NoTerminator { is_unix: true } => code != 10,
            Self::NoTerminator { is_unix: false } => !is_terminator(code),
            Self::All => true,
            Self::Not(of) => !of.has(code),
            Self::Any(of) => of.iter().any(|set| set.has(code)),
            Self::Both(a, b) => a.has(code) && b.has(code),
        }
    }
}

fn is_within(ranges: &[(u32, u32)], code: u32) -> bool {
    let after = ranges.partition_point(|(from, _)| *from <= code);
    let range = after.checked_sub(1).and_then(|at| ranges.get(at));
    range.is_some_and(|(_, to)| code <= *to)
}

/// The characters of a general category of Unicode.
pub(super) fn category(name: &str) -> Option<Set> {
    let parsed = regex_syntax::parse(&format!("\\p{{{name}}}")).ok()?;
    let HirKind::Class(Class::Unicode(class)) = parsed.kind() else {
        return None;
    };
    let ranges = class
        .ranges()
        .iter()
        .map(|range| (range.start().into(), range.end().into()));
    Some(Set::Ranges(ranges.collect()))
}

/// Whether a code point is a letter or a digit, as `Character.isLetterOrDigit` has it.
pub(super) fn is_letter_or_digit(code: u32) -> bool {
    static LETTERS: OnceLock<[Option<Set>; 2]> = OnceLock::new();
    if code < 128 {
        return u8::try_from(code).is_ok_and(|byte| byte.is_ascii_alphanumeric());
    }
    let sets = LETTERS.get_or_init(|| [category("L"), category("Nd")]);
    sets.iter().flatten().any(|set| set.has(code))
}
