//! Splits text into tokens.

use std::sync::Arc;

use num_bigint::BigUint;
use num_traits::Num;

use crate::error::{CompileError, Mistake};

/// A token with the line on which it begins, from 1.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) line: u32,
}

/// The kind of a token.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A word: a name or a keyword.
    Word(Arc<str>),
    /// A sign of one to four characters.
    Sign(&'static str),
    /// An int or long literal: its digits without sign, and whether it was decimal (then the least number needs a
    /// minus).
    Integer {
        digits: BigUint,
        decimal: bool,
        long: bool,
    },
    Double(f64),
    Float(f32),
    Char(u16),
    Text(Arc<[u16]>),
    End,
}

/// Longest first, so that the first match is the right one. The parser builds `>>` and similar operators from single
/// `>`, since type arguments end in them.
const SIGNS: [&str; 44] = [
    "<<=", "...", "->", "::", "++", "--", "&&", "||", "==", "!=", "<=", "+=", "-=", "*=", "/=", "&=", "|=", "^=", "%=",
    "<<", "(", ")", "{", "}", "[", "]", ";", ",", ".", "@", "=", ">", "<", "!", "~", "?", ":", "+", "-", "*", "/", "&",
    "|", "^",
];

/// Maximum tokens of a body.
pub(crate) const TOKENS_MAX: usize = 50_000;

pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, CompileError> {
    let mut lexer = Lexer { rest: text, line: 1 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip()?;
        let line = lexer.line;
        let kind = lexer.token()?;
        let ends = kind == Kind::End;
        tokens.push(Token { kind, line });
        if ends {
            return Ok(tokens);
        }
        if tokens.len() > TOKENS_MAX {
            let what = Mistake::Length {
                what: "words and signs",
                max: TOKENS_MAX,
            };
            return Err(CompileError::one(line, what));
        }
    }
}

struct Lexer<'a> {
    rest: &'a str,
    line: u32,
}

impl Lexer<'_> {
    fn fail<T>(&self, what: Mistake) -> Result<T, CompileError> {
        Err(CompileError::one(self.line, what))
    }

    fn advance(&mut self, bytes: usize) {
        let (gone, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.line += u32::try_from(gone.bytes().filter(|byte| *byte == b'\n').count()).unwrap_or(0);
        self.rest = rest;
    }

    /// Skips white space and comments.
    fn skip(&mut self) -> Result<(), CompileError> {
        loop {
            let blank = self.rest.len() - self.rest.trim_start_matches([' ', '\t', '\n', '\r', '\x0c']).len();
            self.advance(blank);
            if self.rest.starts_with("//") {
                self.advance(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else if self.rest.starts_with("/*") {
                let Some(end) = self.rest.get(2..).and_then(|rest| rest.find("*/")) else {
                    return self.fail(Mistake::UnclosedComment);
                };
                self.advance(end + 4);
            } else {
                return Ok(());
            }
        }
    }

    fn token(&mut self) -> Result<Kind, CompileError> {
        let Some(first) = self.rest.chars().next() else {
            return Ok(Kind::End);
        };
        if first.is_alphabetic() || first == '_' || first == '$' {
            let end = self.rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'));
            let word = self.rest.get(..end.unwrap_or(self.rest.len())).unwrap_or_default();
            let kind = Kind::Word(word.into());
            self.advance(word.len());
            return Ok(kind);
        }
        let second_is_digit = self.rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
        if first.is_ascii_digit() || (first == '.' && second_is_digit) {
            return self.number();
        }
        match first {
            '"' => self.text(),
            '\'' => self.char(),
            '%' if !self.rest.starts_with("%=") => {
                self.advance(1);
                Ok(Kind::Sign("%"))
            }
            _ => match SIGNS.iter().find(|sign| self.rest.starts_with(**sign)) {
                Some(sign) => {
                    self.advance(sign.len());
                    Ok(Kind::Sign(sign))
                }
                None => self.fail(Mistake::Character(first)),
            },
        }
    }

    fn number(&mut self) -> Result<Kind, CompileError> {
        let bytes = self.rest.as_bytes();
        let mut end = 0;
        let is_hex = self.rest.starts_with("0x") || self.rest.starts_with("0X");
        while let Some(byte) = bytes.get(end) {
            let before = end.checked_sub(1).and_then(|at| bytes.get(at));
            let signs_exponent = matches!(byte, b'+' | b'-') && matches!(before, Some(b'e' | b'E')) && !is_hex;
            let is_fraction = *byte == b'.' && !is_hex;
            if byte.is_ascii_alphanumeric() || *byte == b'_' || is_fraction || signs_exponent {
                end += 1;
            } else {
                break;
            }
        }
        let written = self.rest.get(..end).unwrap_or_default().to_owned();
        let kind = number(&written);
        match kind {
            Some(kind) => {
                self.advance(end);
                Ok(kind)
            }
            None => self.fail(Mistake::Number(written)),
        }
    }

    /// One character of a literal, with escapes decoded; `None` at the closing `quote`.
    fn unit(&mut self, quote: char) -> Result<Option<char>, CompileError> {
        let mut characters = self.rest.chars();
        let Some(first) = characters.next() else {
            return self.fail(Mistake::UnclosedText);
        };
        if first == '\n' || first == '\r' {
            return self.fail(Mistake::UnclosedText);
        }
        if first == quote {
            self.advance(1);
            return Ok(None);
        }
        if first != '\\' {
            self.advance(first.len_utf8());
            return Ok(Some(first));
        }
        let escaped = match characters.next() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('b') => '\x08',
            Some('f') => '\x0c',
            Some('0') => '\0',
            Some(same @ ('"' | '\'' | '\\')) => same,
            _ => return self.fail(Mistake::Escape),
        };
        self.advance(2);
        Ok(Some(escaped))
    }

    /// A `\uXXXX`, which may be half of a surrogate pair.
    fn unicode(&mut self) -> Option<u16> {
        let digits = self.rest.strip_prefix("\\u")?.trim_start_matches('u');
        let value = u16::from_str_radix(digits.get(..4)?, 16).ok()?;
        self.advance(self.rest.len() - digits.len() + 4);
        Some(value)
    }

    fn units(&mut self, quote: char) -> Result<Vec<u16>, CompileError> {
        self.advance(1);
        let mut units = Vec::new();
        loop {
            if let Some(unit) = self.unicode() {
                units.push(unit);
                continue;
            }
            match self.unit(quote)? {
                Some(character) => units.extend_from_slice(character.encode_utf16(&mut [0; 2])),
                None => return Ok(units),
            }
        }
    }

    fn text(&mut self) -> Result<Kind, CompileError> {
        Ok(Kind::Text(self.units('"')?.into()))
    }

    fn char(&mut self) -> Result<Kind, CompileError> {
        match self.units('\'')?.as_slice() {
            [unit] => Ok(Kind::Char(*unit)),
            _ => self.fail(Mistake::Number("character constant".to_owned())),
        }
    }
}

/// A literal as written: `0x1F`, `1_000L`, `1.5e3f`.
fn number(written: &str) -> Option<Kind> {
    if written.ends_with('_') {
        return None;
    }
    let plain = written.replace('_', "").to_ascii_lowercase();
    let integer = |digits: &str, radix: u32| {
        let (digits, long) = match digits.strip_suffix('l') {
            Some(digits) => (digits, true),
            None => (digits, false),
        };
        let value = BigUint::from_str_radix(digits, radix).ok()?;
        Some(Kind::Integer {
            digits: value,
            decimal: radix == 10,
            long,
        })
    };
    if let Some(digits) = plain.strip_prefix("0x") {
        return integer(digits, 16);
    }
    if let Some(digits) = plain.strip_prefix("0b") {
        return integer(digits, 2);
    }
    let is_fraction = plain.contains(['.', 'e', 'f', 'd']);
    if !is_fraction {
        let digits = plain.trim_end_matches('l');
        let is_octal = digits.len() > 1 && digits.starts_with('0');
        return integer(&plain, if is_octal { 8 } else { 10 });
    }
    if let Some(digits) = plain.strip_suffix('f') {
        return digits.parse().ok().map(Kind::Float);
    }
    plain.strip_suffix('d').unwrap_or(&plain).parse().ok().map(Kind::Double)
}
