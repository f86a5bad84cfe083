//! What can be wrong with a statement or with the values bound to it.

use std::borrow::Cow;

use thiserror::Error;

/// A statement that cannot be planned, or values that cannot be bound.
///
/// The variants are Cassandra's error codes, and the texts are its texts: there are some two hundred of them, each said in one
/// place, and nobody but a person reads them; a variant for each would say everything twice.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// The statement means nothing here (code 0x2200).
    #[error("{0}")]
    Invalid(Cow<'static, str>),
    /// Cassandra calls it a syntax error, although it parsed (code 0x2000).
    #[error("{0}")]
    Syntax(Cow<'static, str>),
    /// Nobody may do this (code 0x2100).
    #[error("{0}")]
    Unauthorized(Cow<'static, str>),
    /// A function failed (code 0x1400).
    #[error("{message}")]
    Function {
        /// The function's keyspace.
        keyspace: String,
        /// Its name.
        name: String,
        /// The types of its arguments as CQL.
        arguments: Vec<String>,
        /// What went wrong.
        message: String,
    },
    /// CQL that Cassandra knows and this server does not carry out yet (code 0x2200).
    #[error("{0} is not supported yet")]
    Unsupported(Cow<'static, str>),
}

impl Error {
    /// An invalid request.
    pub(crate) fn invalid(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Invalid(text.into())
    }
}

/// An invalid request with a formatted text, as an `Err`.
macro_rules! invalid {
    ($($text:tt)*) => {
        Err($crate::planner::Error::invalid(format!($($text)*)))
    };
}
pub(crate) use invalid;
