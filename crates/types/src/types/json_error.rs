//! JSON syntax errors, in Jackson's words.

use thiserror::Error;

/// A JSON syntax error with its position.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what}{}", place_text(*line, *column))]
pub struct JsonError {
    /// The message in Jackson's words.
    pub what: String,
    /// Line, from 1; 0 means that the message has no position.
    pub line: usize,
    /// Column after the last character read, from 1; `None` means that there was nothing to read.
    pub column: Option<usize>,
    /// The Java exception that carries it.
    pub class: &'static str,
}

/// The position, as Jackson prints it.
pub(super) fn place_text(line: usize, column: Option<usize>) -> String {
    if line == 0 {
        return String::new();
    }
    let column = column.map(|column| format!(", column: {column}")).unwrap_or_default();
    format!("\n at [Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: {line}{column}]")
}

/// Maximum digits of a number; a string may have more.
pub(super) const NUMBER_DIGITS_MAX: usize = 1000;

/// The error for a number with too many digits.
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
