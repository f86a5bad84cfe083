//! What is wrong with a text of JSON, in Jackson's words.

use thiserror::Error;

/// Text that is no JSON: what is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what}{}", place_text(*line, *column))]
pub struct JsonError {
    /// In Jackson's words.
    pub what: String,
    /// Line, from 1; 0: no place is said.
    pub line: usize,
    /// Column behind the last character read, from 1; `None` where there is nothing to read.
    pub column: Option<usize>,
    /// The Java exception that carries it.
    pub class: &'static str,
}

/// Where, in Jackson's words.
pub(super) fn place_text(line: usize, column: Option<usize>) -> String {
    if line == 0 {
        return String::new();
    }
    let column = column.map(|column| format!(", column: {column}")).unwrap_or_default();
    format!("\n at [Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: {line}{column}]")
}

/// Most digits of a number; in a string it may have more.
pub(super) const NUMBER_DIGITS_MAX: usize = 1000;

/// A number of so many digits is too long.
pub(super) fn too_long(digits: usize) -> JsonError {
    let max = NUMBER_DIGITS_MAX;
    JsonError {
        what: format!(
            "Number value length ({digits}) exceeds the maximum allowed ({max}, from `StreamReadConstraints.getMaxNumberLength()`)"
        ),
        line: 0,
        column: None,
        class: "com.fasterxml.jackson.core.exc.StreamConstraintsException",
    }
}
