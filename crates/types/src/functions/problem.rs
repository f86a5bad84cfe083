//! The errors of a function's body, as data. `Display` makes Cassandra's text.

use thiserror::Error;

use super::KEYSPACE;
use crate::types::{self, Duration};

/// An error of a body; [`Error`](super::Error) adds the function to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// The request is invalid.
    Unfit(Box<Unfit>),
    /// The execution failed.
    Failure(Box<Failure>),
    /// An operator failed.
    Operation(OperationFailure),
}

/// Values that a function does not accept: the request is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unfit {
    /// A blob is no value of the target type.
    #[error(
        "In call to function {KEYSPACE}.{function}, value 0x{hex} is not a valid binary representation for type {ty}"
    )]
    Blob {
        /// Its name.
        function: String,
        /// The bytes.
        hex: String,
        /// The type in CQL.
        ty: String,
    },
    /// Bytes of a stored or bound value.
    #[error(transparent)]
    Value(types::Invalid),
    /// A floor by a duration with a negative part.
    #[error("Negative durations are not supported by the floor function")]
    NegativeDuration,
    /// A floor of a date by a part of a day.
    #[error("The floor on date values cannot be computed for the {0} duration as precision is below 1 day")]
    BelowDay(Duration),
    /// A floor by a part of a millisecond.
    #[error("The floor cannot be computed for the {0} duration as precision is below 1 millisecond")]
    BelowMillisecond(Duration),
    /// A floor with a start after its argument.
    #[error("The floor function starting time is greater than the provided time")]
    LateStart,
    /// A floor of a time by months, by days, or by more than 24 hours.
    #[error("For time values, the floor can only be computed for durations smaller that a day")]
    AboveDay,
    /// A padding of no or several characters.
    #[error(
        "The padding argument for function {KEYSPACE}.{function} should be single-character, but '{padding}' has {characters} characters."
    )]
    Padding {
        /// Its name.
        function: String,
        /// As given.
        padding: String,
        /// UTF-16 units.
        characters: usize,
    },
    /// An unknown hash algorithm: as written.
    #[error("Hash algorithm not found: {0}")]
    Hash(String),
    /// The cosine of a vector of zeros.
    #[error("Function {KEYSPACE}.similarity_cosine doesn't support all-zero vectors.")]
    ZeroVector,
}

/// Why a function failed on its values.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Failure {
    /// A result out of range.
    #[error("Overflow")]
    Overflow,
    /// NaN or an infinite number as a decimal: as Java writes it.
    #[error("{0} is not a decimal number")]
    NoDecimal(String),
    /// The logarithm of zero or less: the function.
    #[error("{0} of number zero or less")]
    Logarithm(&'static str),
    /// A text that is no JSON.
    #[error(
        "execution of '{KEYSPACE}.{function}[text]' failed: Could not decode JSON string '{text}': {class}: {what}"
    )]
    Json {
        /// Its name.
        function: String,
        /// The text.
        text: String,
        /// Java's class of the error.
        class: &'static str,
        /// The position and the error, as Jackson prints them.
        what: String,
    },
    /// JSON that is no value of the type.
    #[error("org.apache.cassandra.serializers.MarshalException: {0}")]
    JsonValue(types::Invalid),
    /// The body of a user's function failed.
    #[error("{0}{bound}", bound = bound_of(.0))]
    User(java::Failure),
    /// The bodies of the request's functions took more steps than it may take: the limit.
    #[error(
        "the request's functions took more than {0} steps and were stopped; user-function-request-steps-max sets the bound"
    )]
    RequestSteps(u64),
    /// The body of a user's function does not compile: an older version of this program accepted it.
    #[error("Java source compilation failed:\n{0}")]
    Uncompiled(java::CompileError),
    /// An operation between two values.
    #[error("the operation '{left} {operator} {right}' failed: {what}")]
    Infix {
        /// The type of the left one.
        left: String,
        /// `+` and so on.
        operator: &'static str,
        /// The type of the right one.
        right: String,
        /// The fault.
        what: OperationFailure,
    },
    /// An operation on one value.
    #[error("{0}")]
    Prefix(OperationFailure),
}

/// Names the setting of the bound that a body met.
const fn bound_of(failure: &java::Failure) -> &'static str {
    match failure {
        java::Failure::Steps { .. } => "; user-function-steps-max sets the bound",
        java::Failure::Bytes { .. } => "; user-function-bytes-max sets the bound",
        java::Failure::Thrown { .. } | java::Failure::Fault(_) => "",
    }
}

/// Why an operator failed. The words are Java's or Cassandra's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OperationFailure {
    /// A result out of range.
    #[error("Overflow")]
    Overflow,
    /// NaN or an infinite number beside a decimal.
    #[error("{} cannot be converted into a decimal", if *is_nan { "A NaN" } else { "An infinite number" })]
    NotFinite {
        /// NaN.
        is_nan: bool,
    },
    /// A division of integers by zero.
    #[error("/ by zero")]
    ByZero,
    /// A division of varints or decimals by zero.
    #[error("BigInteger divide by zero")]
    BigByZero,
    /// The remainder of a decimal by zero.
    #[error("Division by zero")]
    RemainderByZero,
    /// The remainder of zero by zero.
    #[error("Division undefined")]
    Undefined,
    /// A duration added to a date or a timestamp that has finer parts.
    #[error("The duration must have a {unit} precision. Was: {duration}")]
    Precision {
        /// `day` or `millisecond`.
        unit: &'static str,
        /// The duration.
        duration: Duration,
    },
}

impl From<Unfit> for Problem {
    #[cold]
    fn from(unfit: Unfit) -> Self {
        Self::Unfit(Box::new(unfit))
    }
}

impl From<Failure> for Problem {
    #[cold]
    fn from(failure: Failure) -> Self {
        Self::Failure(Box::new(failure))
    }
}

impl From<OperationFailure> for Problem {
    fn from(failure: OperationFailure) -> Self {
        Self::Operation(failure)
    }
}
