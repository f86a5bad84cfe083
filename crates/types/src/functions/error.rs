//! Errors of function resolution and calls.

use super::problem::{Failure, Problem, Unfit};
use super::{Function, NameFormat};
use crate::types::CqlType;
use thiserror::Error;

/// Why a call is invalid, or failed. All but [`Error::Failed`] are invalid requests.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// No such function; its name as written. The planner adds the context to the message.
    #[error("Unknown function '{0}'")]
    Unknown(String),
    /// Too few or too many arguments.
    #[error("Invalid number of arguments in call to function {function}: {required} required but {provided} provided")]
    Count {
        /// With its keyspace.
        function: String,
        /// The number of its parameters.
        required: usize,
        /// The number of arguments given.
        provided: usize,
    },
    /// Too few or too many arguments of a generic function: its signature.
    #[error("Invalid number of arguments for function {0}")]
    GenericCount(String),
    /// An argument of a wrong type.
    #[error("Type error: {argument} cannot be passed as argument {index} of function {function} of type {expected}")]
    Argument {
        /// As written.
        argument: String,
        /// From 0.
        index: usize,
        /// With its keyspace.
        function: String,
        /// The expected type.
        expected: String,
    },
    /// No overload fits: the name as written, and the existing overloads.
    #[error("Invalid call to function {0}, none of its type signatures match (known type signatures: {1})")]
    NoMatch(String, String),
    /// No such cast of this value: the cast's function, and the existing overloads.
    #[error("Invalid call to function {0}, none of its type signatures match (known type signatures: {1})")]
    NoMatchingCast(String, String),
    /// Several overloads fit.
    #[error(
        "Ambiguous call to function {0} (can be matched by following signatures: {1}): use type casts to disambiguate"
    )]
    Ambiguous(String, String),
    /// Several casts fit.
    #[error(
        "Ambiguous call to function {0} (can be matched by following signatures: {1}): use type casts to disambiguate"
    )]
    AmbiguousCast(String, String),
    /// No such operation for these operands.
    #[error("the '{operator}' operation is not supported between {left} and {right}")]
    Operation {
        /// `+` and so on.
        operator: &'static str,
        /// As written.
        left: String,
        /// As written.
        right: String,
    },
    /// Several such operations.
    #[error(
        "Ambiguous '{operator}' operation with args {left} and {right}: use type hint to disambiguate, example '(int) ?'"
    )]
    AmbiguousOperation {
        /// `+` and so on.
        operator: &'static str,
        /// As written.
        left: String,
        /// As written.
        right: String,
    },
    /// `-?`
    #[error("Ambiguous negation: use type casts to disambiguate")]
    AmbiguousNegation,
    /// An argument without a known type: as written, and the function's signature.
    #[error("Cannot infer type of argument {0} in call to function {1}: use type casts to disambiguate")]
    Inference(String, String),
    /// A generic function with an argument that it does not accept.
    #[error("Function {function} requires {required} argument{of}, but found argument {argument} of type {found}")]
    Requirement {
        /// With its keyspace.
        function: String,
        /// `a map`, `a collection`, `an`.
        required: &'static str,
        /// ` of type int`, or nothing.
        of: String,
        /// As written.
        argument: String,
        /// Its type.
        found: String,
    },
    /// `CAST` between types without a conversion: the operand as written, the target as written.
    #[error("{0} cannot be cast to {1}")]
    Cast(String, String),
    /// Vectors of different sizes.
    #[error("All arguments must have the same vector dimensions")]
    Dimensions,
    /// `fromJson` without a known result type.
    #[error("{0}() cannot be used in the selection clause of a SELECT statement")]
    NoReceiver(String),
    /// An aggregate where only a scalar is allowed.
    #[error("{0} is an aggregate")]
    NotScalar(String),
    /// Values that the function does not accept.
    #[error(transparent)]
    Unfit(Box<Unfit>),
    /// The function failed on these values.
    #[error(transparent)]
    Failed(Box<Failed>),
}

/// A function that failed: code 0x1400 in CQL, with the function's keyspace, name and argument types.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{why}")]
pub struct Failed {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub name: String,
    /// CQL names of its argument types.
    pub arguments: Vec<String>,
    /// Why.
    pub why: Failure,
}

impl Problem {
    #[cold]
    pub(super) fn of(self, function: &Function) -> Error {
        // The arguments of users' functions are frozen, and Cassandra does not say so.
        let name = |ty: &CqlType| {
            if function.is_user_defined() {
                ty.unfrozen().cql_name()
            } else {
                ty.cql_name()
            }
        };
        let types: Vec<String> = function.argument_types().iter().map(name).collect();
        let why = match self {
            Self::Unfit(unfit) => return Error::Unfit(unfit),
            Self::Failure(failure) => *failure,
            Self::Operation(what) => match (function.0.name_format, types.as_slice()) {
                (NameFormat::Infix(operator), [left, right]) => Failure::Infix {
                    left: left.clone(),
                    operator,
                    right: right.clone(),
                    what,
                },
                _ => Failure::Prefix(what),
            },
        };
        Error::Failed(Box::new(Failed {
            keyspace: function.keyspace().to_owned(),
            name: function.name().to_owned(),
            arguments: types,
            why,
        }))
    }
}
