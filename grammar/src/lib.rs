//! CQL text to syntax tree and back, and nothing else.
//!
//! ```text
//! text ── lexical ──► tokens ── statement, term, … (the productions of cql.ebnf) ──► ast::Statement ── print ──► text
//! ```
//!
//! The language is that of Apache Cassandra 5.0. A text that Cassandra's parser rejects is rejected here too, with the
//! same message. The tree is plain data; literals stay text, since their type depends on their column. Printing a tree
//! and parsing that text gives the same tree.
//!
//! Deliberately absent: everything that needs a schema, such as the existence of tables and columns and the meaning of
//! types.
//!
//! Sources: the CQL reference; experiments on Cassandra 5.0.9.

pub mod ast;
mod context;
mod error;
mod input;
mod keyword;
mod lexical;
mod markers;
mod name;
mod print;
mod property;
mod relation;
mod selector;
mod statement;
mod term;
mod types;

#[cfg(test)]
mod tests;

pub use error::SyntaxError;
pub use keyword::{is_reserved, quote_if_needed};
pub use markers::{Marker, markers};

use context::Context;
use error::Limit;
use input::{Input, Parsed};
use keyword::Kind;

/// Maximum length of a statement in bytes: Cassandra's limit with its default `native_transport_max_frame_size`.
pub const TEXT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Maximum tokens of a statement: words, numbers, literals and signs. It bounds the tree, which is far larger than its
/// text; a long literal is one token.
pub const TOKENS_MAX: usize = 1024 * 1024;

/// Maximum nesting of terms, selectors, relations and types, in levels. Every function that walks a tree recurses this
/// deep.
pub const NESTING_LEVELS_MAX: usize = 128;

/// Maximum arithmetic operators, field and element selections in one expression. Each makes the tree one level deeper.
pub const OPERATORS_MAX: usize = 256;

/// Maximum bind markers in a statement; the protocol counts values in 16 bits.
pub const MARKERS_MAX: usize = 65_535;

/// Maximum elements of any list that commas or AND separate: columns, values, relations, properties. For collection
/// literals the only limit is [`TOKENS_MAX`].
pub const LIST_ELEMENTS_MAX: usize = 65_535;

/// Maximum values of one IN relation: the number of keys that a statement may name.
pub const IN_VALUES_MAX: usize = 100_000;

/// Parses one statement. Semicolons may follow it.
///
/// # Errors
/// The first error in the text, with Cassandra's message; or a limit of this crate that the text exceeds.
pub fn parse(text: &str) -> Result<ast::Statement, SyntaxError> {
    whole(text, statement::query)
}

/// Parses a term: a literal, a collection, a function call, arithmetic, a bind marker.
///
/// # Errors
/// The first error in the text.
pub fn parse_term(text: &str) -> Result<ast::Term, SyntaxError> {
    whole(text, |input| followed_by_end(term::term(input)))
}

/// Parses a type such as `map<text, frozen<address>>`.
///
/// # Errors
/// The first error in the text.
pub fn parse_type(text: &str) -> Result<ast::Type, SyntaxError> {
    whole(text, |input| followed_by_end(types::comparator_type(input)))
}

fn followed_by_end<T>(parsed: Parsed<'_, T>) -> Parsed<'_, T> {
    let (input, value) = parsed?;
    let (input, ()) = input::expect(input, Kind::End)?;
    Ok((input, value))
}

/// Runs a production over the whole text.
fn whole<T>(text: &str, production: impl FnOnce(Input<'_>) -> Parsed<'_, T>) -> Result<T, SyntaxError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(SyntaxError::plain(Limit::Text.to_string()));
    }
    let tokens = lexical::lex(text, false);
    if tokens.all.len() > TOKENS_MAX {
        return Err(SyntaxError::plain(Limit::Tokens.to_string()));
    }
    let context = Context::new(text, tokens);
    let (value, failure) = match production(Input::start(&context)) {
        Ok((_, value)) => (Some(value), None),
        Err(nom::Err::Error(failure) | nom::Err::Failure(failure)) => (None, Some(failure)),
        Err(nom::Err::Incomplete(_)) => (None, None),
    };
    match (SyntaxError::first(&context, failure), value) {
        (None, Some(value)) => Ok(value),
        (Some(error), _) => Err(error),
        (None, None) => Err(SyntaxError::plain("the statement cannot be parsed".to_owned())),
    }
}
