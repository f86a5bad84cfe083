//! Syntax errors, with Cassandra's messages.
//!
//! ANTLR 3 generates Cassandra's parser and its errors. If exactly one token could follow, the error is "mismatched
//! input"; if several alternatives were possible, it is "no viable alternative". The parser chooses an alternative with as
//! little lookahead as possible. The error names the token that excluded all alternatives; its excerpt brackets the token
//! where the choice began. The excerpt starts ten tokens before that token, blanks counted. It ends two tokens after it,
//! or earlier if the parser has not read that far.

use std::fmt;

use crate::context::Context;
use crate::keyword::Kind;
use crate::lexical::{LexicalCause, LexicalError, Token, lex, token_text};

/// The reason why a text is no statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// The line, from 1; 0 at the end of the text, and if no token is at fault.
    pub line: usize,
    /// UTF-16 code units before the token at fault, as Cassandra counts; `None` if `line` is 0.
    pub column: Option<usize>,
    /// The whole error text, with its position if there is one.
    pub message: String,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SyntaxError {}

/// The failure of a production. Positions are indices into the tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The token where the choice began, which the excerpt brackets.
    pub(crate) decision: usize,
    /// The token that caused the failure.
    pub(crate) at: usize,
    /// The fault.
    pub(crate) cause: Cause,
}

/// The fault of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Only this kind could be here.
    Mismatched(Kind),
    /// Only these kinds could be here.
    MismatchedSet,
    /// It fits none of several alternatives.
    NoViableAlternative,
    /// A limit of this crate is exceeded. `Differs:` Cassandra has no such limit, or only that of its stack.
    Exceeded(Limit),
}

/// Limits that keep the cost of a statement proportional to its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// [`crate::TEXT_BYTES_MAX`]
    Text,
    /// [`crate::TOKENS_MAX`]
    Tokens,
    /// [`crate::NESTING_LEVELS_MAX`]
    Nesting,
    /// [`crate::OPERATORS_MAX`]
    Operators,
    /// [`crate::MARKERS_MAX`]
    Markers,
    /// [`crate::LIST_ELEMENTS_MAX`]
    Elements,
    /// [`crate::IN_VALUES_MAX`]
    InValues,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => write!(f, "the statement is longer than {} bytes", crate::TEXT_BYTES_MAX),
            Self::Tokens => write!(f, "the statement has more than {} words and signs", crate::TOKENS_MAX),
            Self::Nesting => write!(
                f,
                "the statement is nested deeper than {} levels",
                crate::NESTING_LEVELS_MAX
            ),
            Self::Operators => write!(f, "an expression has more than {} operators", crate::OPERATORS_MAX),
            Self::Markers => write!(f, "the statement has more than {} bind markers", crate::MARKERS_MAX),
            Self::Elements => write!(f, "a list has more than {} elements", crate::LIST_ELEMENTS_MAX),
            Self::InValues => write!(f, "an IN relation has more than {} values", crate::IN_VALUES_MAX),
        }
    }
}

impl<I> nom::error::ParseError<I> for Failure {
    fn from_error_kind(_: I, _: nom::error::ErrorKind) -> Self {
        // Only this crate's own primitives fail, and they report the reason themselves.
        Self {
            decision: 0,
            at: 0,
            cause: Cause::NoViableAlternative,
        }
    }

    fn append(_: I, _: nom::error::ErrorKind, other: Self) -> Self {
        other
    }
}

impl SyntaxError {
    /// An error without a position.
    pub(crate) fn plain(message: String) -> Self {
        Self {
            line: 0,
            column: None,
            message,
        }
    }

    /// The error that Cassandra would report first: the lexer's error if the parser reached it, then an error that a
    /// production reported, then the parser's failure.
    pub(crate) fn first(context: &Context<'_>, failure: Option<Failure>) -> Option<Self> {
        if let Some(error) = context.lexical_error() {
            return Some(lexical(context.text, error));
        }
        if let Some(message) = context.reported() {
            return Some(Self::plain(message));
        }
        failure.map(|failure| syntactic(context, failure))
    }
}

/// `line 1:31 no viable alternative at character '@'`
fn lexical(text: &str, error: &LexicalError) -> SyntaxError {
    let (line, column) = line_and_column(text, error.at);
    let shown = match text.get(error.at..).and_then(|rest| rest.chars().next()) {
        None => "'<EOF>'".to_owned(),
        Some('\n') => "'\\n'".to_owned(),
        Some('\r') => "'\\r'".to_owned(),
        Some('\t') => "'\\t'".to_owned(),
        Some(other) => format!("'{other}'"),
    };
    let what = match error.cause {
        LexicalCause::NoViableAlternative => format!("no viable alternative at character {shown}"),
        LexicalCause::Expecting(expected) => format!("mismatched character {shown} expecting {expected}"),
        LexicalCause::MissingDigits => format!("required (...)+ loop did not match anything at character {shown}"),
    };
    SyntaxError {
        line,
        column: Some(column),
        message: format!("line {line}:{column} {what}"),
    }
}

/// `line 1:9 mismatched input 'FORM' expecting K_FROM (SELECT * [FORM]...)`
fn syntactic(context: &Context<'_>, failure: Failure) -> SyntaxError {
    let text = context.text;
    let token = context.token(failure.at);
    if let Cause::Exceeded(bound) = failure.cause {
        let (line, column) = line_and_column(text, token.start as usize);
        return SyntaxError {
            line,
            column: Some(column),
            message: format!("line {line}:{column} {bound}"),
        };
    }
    let (line, column, shown) = if token.kind == Kind::End {
        (0, None, "<EOF>".to_owned())
    } else {
        let (line, column) = line_and_column(text, token.start as usize);
        let shown = token_text(text, token)
            .replace('\n', "\\n")
            .replace('\r', "\\r")
            .replace('\t', "\\t");
        (line, Some(column), shown)
    };
    let what = match failure.cause {
        Cause::Mismatched(expected) => format!("mismatched input '{shown}' expecting {}", expected.shown()),
        Cause::MismatchedSet => format!("mismatched input '{shown}' expecting set null"),
        _ => format!("no viable alternative at input '{shown}'"),
    };
    let place = column.map_or_else(|| "0:-1".to_owned(), |column| format!("{line}:{column}"));
    let excerpt = excerpt(context, failure.decision)
        .map(|excerpt| format!(" ({excerpt})"))
        .unwrap_or_default();
    SyntaxError {
        line,
        column,
        message: format!("line {place} {what}{excerpt}"),
    }
}

/// The text around a token: from ten tokens before it (blanks and comments count as tokens here) to two after, but
/// no farther than the parser has read. `None` at the text's end, which has no position, and for a text so long that
/// splitting its lines is expensive.
fn excerpt(context: &Context<'_>, decision: usize) -> Option<String> {
    /// Tokens shown before the bracketed one, and after it. Source: Cassandra's `ErrorCollector`.
    const BEFORE_TOKENS: usize = 10;
    const BEHIND_TOKENS: usize = 2;
    /// `Differs:` Cassandra shows an excerpt of any text.
    const TEXT_BYTES_MAX: usize = 1024 * 1024;
    let text = context.text;
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let all = lex(text, true).all;
    let index_of = |token: Token| {
        all.iter()
            .position(|other| other.start == token.start && other.kind == token.kind)
    };
    let offending = context.token(decision);
    let index = index_of(offending)?;
    let seen = index_of(context.token(context.furthest()))?;
    let last = seen.min(index + BEHIND_TOKENS);
    let (from, to) = (*all.get(index.saturating_sub(BEFORE_TOKENS))?, *all.get(last)?);
    if [from, to, offending].iter().any(|token| token.kind == Kind::End) {
        return None;
    }
    Some(bracketed(text, from, to, offending))
}

/// `...from [offending] to...`. As in Cassandra, the end of a token is its start plus the length of its unquoted text.
fn bracketed(text: &str, from: Token, to: Token, offending: Token) -> String {
    let lines: Vec<Vec<u16>> = split_lines(text);
    let position = |token: Token| {
        let (line, column) = line_and_column(text, token.start as usize);
        let length = token_text(text, token).encode_utf16().count();
        (line - 1, column, column + length)
    };
    let ((from_line, from_start, _), (to_line, _, to_end)) = (position(from), position(to));
    let (line, start, end) = position(offending);
    let includes_start = from_line == 0 && from_start == 0;
    let includes_end = to_line + 1 == lines.len() && lines.last().is_some_and(|last| to_end == last.len());
    let mut lines = lines;
    if let Some(last) = lines.get_mut(to_line) {
        last.truncate(to_end);
    }
    if let Some(marked) = lines.get_mut(line) {
        marked.insert(end.min(marked.len()), u16::from(b']'));
        marked.insert(start.min(marked.len()), u16::from(b'['));
    }
    if let Some(first) = lines.get_mut(from_line) {
        first.drain(..from_start.min(first.len()));
    }
    let shown: Vec<u16> = lines.into_iter().take(to_line + 1).skip(from_line).flatten().collect();
    let (before, after) = (
        if includes_start { "" } else { "..." },
        if includes_end { "" } else { "..." },
    );
    format!("{before}{}{after}", String::from_utf16_lossy(&shown))
}

/// The lines of a text as Java's `split` returns them: empty ones at the end are dropped.
fn split_lines(text: &str) -> Vec<Vec<u16>> {
    let mut lines: Vec<Vec<u16>> = text.split('\n').map(|line| line.encode_utf16().collect()).collect();
    while lines.len() > 1 && lines.last().is_some_and(Vec::is_empty) {
        lines.pop();
    }
    lines
}

/// Line from 1, column in UTF-16 code units from 0.
fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().encode_utf16().count();
    (line, column)
}
