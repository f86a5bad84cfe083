//! Text to tokens, by Cassandra's rules: the whole text once, into one vector, before any production reads it.
//!
//! A token has a kind and a position; its text is sliced when needed. Blanks and comments yield no token. If no token
//! matches, the vector ends with [`Kind::Invalid`], and the lexer's error is stored beside it. Cassandra lexes as it
//! parses, so it reports a parser error about an earlier token first. Therefore the parser selects the error to report.
//!
//! Deliberately absent: maximal munch. Cassandra's lexer chooses the token from as few characters as possible, and then
//! requires the rest: `1and` is a broken uuid, not a number and a keyword. Source: experiments on Cassandra 5.0.9.

use std::borrow::Cow;

use crate::keyword::{Kind, keyword_kind};

/// A token and its position in the text, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    /// What it is.
    pub(crate) kind: Kind,
    /// Its first byte.
    pub(crate) start: u32,
    /// The byte after its last.
    pub(crate) end: u32,
}

/// A lexer's error: no token matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LexicalError {
    /// The byte at which the lexer failed; the text's length at its end.
    pub(crate) at: usize,
    /// The cause, without the character.
    pub(crate) cause: LexicalCause,
}

/// Why the lexer rejects a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LexicalCause {
    /// No token begins or continues like this.
    NoViableAlternative,
    /// Only this character may follow.
    Expecting(&'static str),
    /// A digit must follow.
    MissingDigits,
}

/// All tokens of a text, and the lexer's error, if any.
#[derive(Debug)]
pub(crate) struct Tokens {
    /// In order; the last is [`Kind::End`] or [`Kind::Invalid`].
    pub(crate) all: Vec<Token>,
    /// Why the last is [`Kind::Invalid`].
    pub(crate) error: Option<LexicalError>,
}

/// Splits `text` into tokens. Stops at one more than [`crate::TOKENS_MAX`], which shows that there are too many. With
/// `hidden`, blanks and comments also leave tokens of kind [`Kind::Invalid`], because error excerpts count them.
pub(crate) fn lex(text: &str, hidden: bool) -> Tokens {
    let bytes = text.as_bytes();
    let mut all = Vec::with_capacity((bytes.len() / 4 + 4).min(crate::TOKENS_MAX + 1));
    let mut at = 0;
    while hidden || all.len() <= crate::TOKENS_MAX {
        let start = at;
        let kind = match next(bytes, at) {
            Ok(Some((kind, end))) => {
                at = end;
                kind
            }
            Ok(None) => {
                all.push(Token {
                    kind: Kind::End,
                    start: place(start),
                    end: place(start),
                });
                break;
            }
            Err(error) => {
                all.push(Token {
                    kind: Kind::Invalid,
                    start: place(start),
                    end: place(start),
                });
                return Tokens {
                    all,
                    error: Some(error),
                };
            }
        };
        if kind != Kind::Invalid || hidden {
            all.push(Token {
                kind,
                start: place(start),
                end: place(at),
            });
        }
    }
    Tokens { all, error: None }
}

/// A position in the text; the text's length is bounded before lexing.
fn place(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

type Lexed = Result<Option<(Kind, usize)>, LexicalError>;

fn error_at(at: usize, cause: LexicalCause) -> Lexed {
    Err(LexicalError { at, cause })
}

fn found(kind: Kind, end: usize) -> Lexed {
    Ok(Some((kind, end)))
}

/// The token at `at` and its end; blanks and comments are [`Kind::Invalid`].
fn next(bytes: &[u8], at: usize) -> Lexed {
    let Some(&first) = bytes.get(at) else { return Ok(None) };
    let second = bytes.get(at + 1).copied();
    let pair = |expected: u8, long: Kind, short: Kind| {
        if second == Some(expected) {
            found(long, at + 2)
        } else {
            found(short, at + 1)
        }
    };
    match first {
        b' ' | b'\t' | b'\n' | b'\r' => found(
            Kind::Invalid,
            run(bytes, at, |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')),
        ),
        b'a'..=b'z' | b'A'..=b'Z' => word(bytes, at),
        b'0'..=b'9' => number(bytes, at, at),
        b'\'' => string(bytes, at),
        b'"' => quoted_name(bytes, at),
        b'$' => dollar_string(bytes, at),
        b'-' => minus(bytes, at),
        b'/' => match second {
            Some(b'/') => line_comment(bytes, at),
            Some(b'*') => block_comment(bytes, at),
            _ => found(Kind::Slash, at + 1),
        },
        b'!' if second == Some(b'=') => found(Kind::NotEquals, at + 2),
        b'!' => error_at(at + 1, LexicalCause::Expecting("'='")),
        b'<' => pair(b'=', Kind::LessEquals, Kind::Less),
        b'>' => pair(b'=', Kind::GreaterEquals, Kind::Greater),
        b'+' => pair(b'=', Kind::PlusEquals, Kind::Plus),
        b'.' => pair(b'.', Kind::Range, Kind::Dot),
        b'?' => found(Kind::QuestionMark, at + 1),
        b'%' => found(Kind::Percent, at + 1),
        b'(' => found(Kind::ParenOpen, at + 1),
        b')' => found(Kind::ParenClose, at + 1),
        b',' => found(Kind::Comma, at + 1),
        b':' => found(Kind::Colon, at + 1),
        b';' => found(Kind::Semicolon, at + 1),
        b'=' => found(Kind::Equals, at + 1),
        b'[' => found(Kind::BracketOpen, at + 1),
        b'*' => found(Kind::Star, at + 1),
        b']' => found(Kind::BracketClose, at + 1),
        b'{' => found(Kind::BraceOpen, at + 1),
        b'}' => found(Kind::BraceClose, at + 1),
        _ => error_at(at, LexicalCause::NoViableAlternative),
    }
}

/// The end of the bytes from `at` on that satisfy `of`.
fn run(bytes: &[u8], at: usize, of: impl Fn(u8) -> bool) -> usize {
    bytes
        .iter()
        .skip(at)
        .position(|&byte| !of(byte))
        .map_or(bytes.len(), |length| at + length)
}

fn digits(bytes: &[u8], at: usize) -> usize {
    run(bytes, at, |byte| byte.is_ascii_digit())
}

/// A name, a keyword, a boolean, or a uuid or period that begins with a letter.
fn word(bytes: &[u8], at: usize) -> Lexed {
    let end = run(bytes, at, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let text = bytes.get(at..end).unwrap_or_default();
    if end - at == 8 && bytes.get(end) == Some(&b'-') && text.iter().all(u8::is_ascii_hexdigit) {
        return uuid(bytes, at);
    }
    if text.first() == Some(&b'P')
        && let Some(period) = period(bytes, at)
    {
        return period;
    }
    // `expr(` is one token, so that an index expression needs no keyword.
    if text == b"expr" && bytes.get(end) == Some(&b'(') {
        return found(Kind::ExprOpen, end + 1);
    }
    let kind = if text.eq_ignore_ascii_case(b"true") {
        Kind::True
    } else if text.eq_ignore_ascii_case(b"false") {
        Kind::False
    } else {
        keyword_kind(text).unwrap_or(Kind::Ident)
    };
    found(kind, end)
}

/// `-`, `-=`, a comment, or a negative number, duration or infinity.
fn minus(bytes: &[u8], at: usize) -> Lexed {
    match bytes.get(at + 1) {
        Some(b'=') => found(Kind::MinusEquals, at + 2),
        Some(b'-') => line_comment(bytes, at),
        Some(b'0'..=b'9') => number(bytes, at, at + 1),
        Some(b'P') => period(bytes, at + 1)
            .unwrap_or_else(|| error_at(period_prefix(bytes, at + 1), LexicalCause::NoViableAlternative)),
        Some(b'n' | b'N') => expect_word(bytes, at, b"nan", Kind::NegativeNan),
        Some(b'i' | b'I') => expect_word(bytes, at, b"infinity", Kind::NegativeInfinity),
        _ => found(Kind::Minus, at + 1),
    }
}

/// `word` after the sign at `at`. The first letter has matched, so any other letter is an error.
fn expect_word(bytes: &[u8], at: usize, word: &[u8], kind: Kind) -> Lexed {
    for (offset, letter) in word.iter().enumerate() {
        if bytes
            .get(at + 1 + offset)
            .is_none_or(|byte| !byte.eq_ignore_ascii_case(letter))
        {
            return error_at(at + 1 + offset, LexicalCause::Expecting("set null"));
        }
    }
    found(kind, at + 1 + word.len())
}

/// A number, duration, uuid or blob that begins with a digit at `from`; `at` is its sign, or `from`.
fn number(bytes: &[u8], at: usize, from: usize) -> Lexed {
    let end = digits(bytes, from);
    let (count, signed) = (end - from, at != from);
    let may_be_uuid = count < 8 && !signed;
    match bytes.get(end).map(u8::to_ascii_lowercase) {
        Some(b'x') if count == 1 && !signed && bytes.get(from) == Some(&b'0') => {
            found(Kind::Hex, run(bytes, end + 1, |byte| byte.is_ascii_hexdigit()))
        }
        Some(b'-') if count == 8 && !signed => uuid(bytes, at),
        Some(b'.') => fraction(bytes, end),
        Some(b'e' | b'd') if may_be_uuid => exponent_or_uuid(bytes, at, end),
        Some(b'e') => exponent(bytes, end),
        Some(b'a'..=b'c' | b'f') if may_be_uuid => uuid(bytes, at),
        Some(b'y' | b'm' | b'w' | b'd' | b'h' | b's' | b'u' | b'n' | 0xC2) => units(bytes, end),
        _ => found(Kind::Integer, end),
    }
}

/// The rest after `1.`: `1..` is a number and a range, `1...` a number with a point and a range.
fn fraction(bytes: &[u8], point: usize) -> Lexed {
    if bytes.get(point + 1) == Some(&b'.') {
        return if bytes.get(point + 2) == Some(&b'.') {
            found(Kind::FloatLiteral, point + 1)
        } else {
            found(Kind::Integer, point)
        };
    }
    let end = digits(bytes, point + 1);
    if bytes.get(end).is_some_and(|byte| byte.eq_ignore_ascii_case(&b'e')) {
        return exponent(bytes, end);
    }
    found(Kind::FloatLiteral, end)
}

/// `e`, perhaps a sign, and digits.
fn exponent(bytes: &[u8], letter: usize) -> Lexed {
    let sign = usize::from(matches!(bytes.get(letter + 1), Some(b'+' | b'-')));
    let first = letter + 1 + sign;
    let end = digits(bytes, first);
    if end == first {
        error_at(end, LexicalCause::MissingDigits)
    } else {
        found(Kind::FloatLiteral, end)
    }
}

/// Digits and then `e` or `d`: a float, a duration or a uuid, depending on the next characters.
fn exponent_or_uuid(bytes: &[u8], at: usize, letter: usize) -> Lexed {
    let is_exponent = bytes.get(letter).is_some_and(|byte| byte.eq_ignore_ascii_case(&b'e'));
    let mut end = letter + 1;
    let mut after_letter = true;
    loop {
        let inside_uuid = end - at < 8;
        match bytes.get(end).map(u8::to_ascii_lowercase) {
            Some(b'0'..=b'9') => after_letter = false,
            Some(b'+') if is_exponent && after_letter => return exponent(bytes, letter),
            Some(b'-') if is_exponent && after_letter && end - at != 8 => return exponent(bytes, letter),
            Some(b'-') if end - at == 8 => return uuid(bytes, at),
            Some(b'd') if !is_exponent && !after_letter => after_letter = true,
            Some(b'a'..=b'f') if inside_uuid => return uuid(bytes, at),
            Some(b'y' | b'm' | b'w' | b'h' | b's' | b'u' | b'n' | 0xC2) if !is_exponent && !after_letter => {
                return units(bytes, letter);
            }
            _ if is_exponent && !after_letter => return exponent(bytes, letter),
            _ if !is_exponent && after_letter => return units(bytes, letter),
            _ => return error_at(end, LexicalCause::NoViableAlternative),
        }
        end += 1;
    }
}

/// The units of a duration such as `1y2mo3d`, from its first on.
fn units(bytes: &[u8], first: usize) -> Lexed {
    let mut at = first;
    loop {
        let second = bytes.get(at + 1).map(u8::to_ascii_lowercase);
        at += match bytes.get(at).map(u8::to_ascii_lowercase) {
            Some(b'm') if matches!(second, Some(b'o' | b's')) => 2,
            Some(b'y' | b'm' | b'w' | b'd' | b'h' | b's') => 1,
            Some(b'u' | b'n') if second == Some(b's') => 2,
            Some(b'u' | b'n') => return error_at(at + 1, LexicalCause::Expecting("set null")),
            // The micro sign is two bytes.
            Some(0xC2)
                if second == Some(0xB5) && bytes.get(at + 2).is_some_and(|byte| byte.eq_ignore_ascii_case(&b's')) =>
            {
                3
            }
            Some(0xC2) if second == Some(0xB5) => return error_at(at + 2, LexicalCause::Expecting("set null")),
            _ => return error_at(at, LexicalCause::NoViableAlternative),
        };
        let end = digits(bytes, at);
        if end == at {
            return found(Kind::DurationLiteral, at);
        }
        at = end;
    }
}

/// A uuid, the only token still possible: five runs of hexadecimal digits.
fn uuid(bytes: &[u8], at: usize) -> Lexed {
    let mut end = at;
    for (index, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            if bytes.get(end) != Some(&b'-') {
                return error_at(end, LexicalCause::Expecting("'-'"));
            }
            end += 1;
        }
        for _ in 0..length {
            if !bytes.get(end).is_some_and(u8::is_ascii_hexdigit) {
                return error_at(end, LexicalCause::Expecting("set null"));
            }
            end += 1;
        }
    }
    found(Kind::UuidLiteral, end)
}

/// An ISO 8601 duration whose `P` is at `at`: `P1Y2M3DT4H5M6S`, `P2W`, `P0001-02-03T04:05:06`; `None` if it is none.
fn period(bytes: &[u8], at: usize) -> Option<Lexed> {
    let mut end = at + 1;
    let years = digits(bytes, end);
    if years == end + 4 && bytes.get(years) == Some(&b'-') {
        return Some(alternative_period(bytes, end));
    }
    if years > end && bytes.get(years) == Some(&b'W') {
        return Some(found(Kind::DurationLiteral, years + 1));
    }
    let date = designated(bytes, &mut end, b"YMD");
    let mut time = end + 1;
    if bytes.get(end) == Some(&b'T') && designated(bytes, &mut time, b"HMS") {
        end = time;
    } else if !date {
        return None;
    }
    Some(found(Kind::DurationLiteral, end))
}

/// The end of the longest prefix from `P` on that could begin an ISO 8601 duration.
fn period_prefix(bytes: &[u8], at: usize) -> usize {
    let end = at + 1;
    if bytes.get(end) == Some(&b'T') {
        digits(bytes, end + 1)
    } else {
        digits(bytes, end)
    }
}

/// Numbers followed by letters of `order`, each at most once and in that order; advances `at` past them.
fn designated(bytes: &[u8], at: &mut usize, order: &[u8]) -> bool {
    let begin = *at;
    for letter in order {
        let end = digits(bytes, *at);
        if end > *at && bytes.get(end) == Some(letter) {
            *at = end + 1;
        }
    }
    *at > begin
}

/// `0001-02-03T04:05:06`, which is already known to be one.
fn alternative_period(bytes: &[u8], at: usize) -> Lexed {
    for (offset, &expected) in b"0000-00-00T00:00:00".iter().enumerate() {
        let byte = bytes.get(at + offset).copied();
        if expected == b'0' {
            if !byte.is_some_and(|byte| byte.is_ascii_digit()) {
                return error_at(at + offset, LexicalCause::Expecting("set null"));
            }
        } else if byte != Some(expected) {
            let shown = match expected {
                b'-' => "'-'",
                b'T' => "'T'",
                _ => "':'",
            };
            return error_at(at + offset, LexicalCause::Expecting(shown));
        }
    }
    found(Kind::DurationLiteral, at + 19)
}

/// `'it''s'`
fn string(bytes: &[u8], at: usize) -> Lexed {
    match closing(bytes, at + 1, b'\'') {
        Some(end) => found(Kind::String, end),
        None => error_at(bytes.len(), LexicalCause::Expecting("'''")),
    }
}

/// `"a ""quoted"" name"`; `""` is a token of its own.
fn quoted_name(bytes: &[u8], at: usize) -> Lexed {
    match closing(bytes, at + 1, b'"') {
        Some(end) if end == at + 2 => found(Kind::EmptyQuotedName, end),
        Some(end) => found(Kind::QuotedName, end),
        None if bytes.len() == at + 1 => error_at(bytes.len(), LexicalCause::NoViableAlternative),
        None => error_at(bytes.len(), LexicalCause::Expecting("'\"'")),
    }
}

/// The byte after the `quote` that closes a token begun before `at`; two quotes stand for one inside.
fn closing(bytes: &[u8], mut at: usize, quote: u8) -> Option<usize> {
    loop {
        at = run(bytes, at, |byte| byte != quote) + 1;
        if at > bytes.len() {
            return None;
        }
        if bytes.get(at) != Some(&quote) {
            return Some(at);
        }
        at += 1;
    }
}

/// `$$text$$`
fn dollar_string(bytes: &[u8], at: usize) -> Lexed {
    if bytes.get(at + 1) != Some(&b'$') {
        return error_at(at + 1, LexicalCause::Expecting("'$'"));
    }
    let body = bytes.get(at + 2..).unwrap_or_default();
    match body.windows(2).position(|two| two == b"$$") {
        Some(length) => found(Kind::String, at + 2 + length + 2),
        // The error is at the last character, the last possible position of the closing signs.
        None => {
            let mut last = bytes.len().saturating_sub(1).max(at + 2);
            while last > at + 2 && bytes.get(last).is_some_and(|byte| byte & 0xC0 == 0x80) {
                last -= 1;
            }
            if body.last() == Some(&b'$') {
                last = bytes.len();
            }
            error_at(last, LexicalCause::Expecting("'$'"))
        }
    }
}

/// `--` or `//`, and a line's end: a comment that the text's end cuts off is an error.
fn line_comment(bytes: &[u8], at: usize) -> Lexed {
    let end = run(bytes, at, |byte| byte != b'\n' && byte != b'\r');
    if end == bytes.len() {
        error_at(end, LexicalCause::Expecting("set null"))
    } else {
        found(Kind::Invalid, end + 1)
    }
}

/// `/* … */`
fn block_comment(bytes: &[u8], at: usize) -> Lexed {
    let body = bytes.get(at + 2..).unwrap_or_default();
    match body.windows(2).position(|two| two == b"*/") {
        Some(length) => found(Kind::Invalid, at + 2 + length + 2),
        None if body.last() == Some(&b'*') => error_at(bytes.len(), LexicalCause::Expecting("'/'")),
        None => error_at(bytes.len(), LexicalCause::Expecting("'*'")),
    }
}

/// The text of a token: a string or quoted name without its quotes, any other token as written.
pub(crate) fn token_text(text: &str, token: Token) -> Cow<'_, str> {
    let raw = text.get(token.start as usize..token.end as usize).unwrap_or_default();
    let inner = |quotes: usize| raw.get(quotes..raw.len().saturating_sub(quotes)).unwrap_or_default();
    match token.kind {
        Kind::String if raw.starts_with('$') => Cow::Borrowed(inner(2)),
        Kind::String => unquoted(inner(1), "''", "'"),
        Kind::QuotedName => unquoted(inner(1), "\"\"", "\""),
        _ => Cow::Borrowed(raw),
    }
}

fn unquoted<'a>(inner: &'a str, twice: &str, once: &str) -> Cow<'a, str> {
    if inner.contains(twice) {
        Cow::Owned(inner.replace(twice, once))
    } else {
        Cow::Borrowed(inner)
    }
}
