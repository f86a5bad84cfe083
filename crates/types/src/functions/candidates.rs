//! The result of a family's lookup by name: overloads to choose from, or one function made for its arguments.

use super::argument::Argument;
use super::{Error, Function, KEYSPACE};
use crate::types::CqlType;

/// The functions of a name.
pub(super) enum Candidates {
    /// Overloads; the arguments select one.
    Overloads(Vec<Function>),
    /// One function, made for its arguments.
    Generic(Generic),
}

/// Makes a function for these arguments and this receiver; the first parameter is the function's own name.
pub(super) type Generic = fn(&str, &[Argument<'_>], Option<&CqlType>) -> Result<Function, Error>;

/// The type of an argument of a generic function, which must be known.
pub(super) fn natural<'a>(argument: &'a Argument<'_>, signature: &str) -> Result<&'a CqlType, Error> {
    argument
        .natural
        .as_ref()
        .ok_or_else(|| Error::Inference(argument.text.clone(), signature.to_owned()))
}

/// Rejects an argument of a generic function: `requires a map argument`.
pub(super) fn requires(function: &str, required: &'static str, of: &str, argument: &Argument<'_>) -> Error {
    Error::Requirement {
        function: format!("{KEYSPACE}.{function}"),
        required,
        of: if of.is_empty() {
            String::new()
        } else {
            format!(" of type {of}")
        },
        argument: argument.text.clone(),
        found: argument.natural.as_ref().map(CqlType::cql_name).unwrap_or_default(),
    }
}
