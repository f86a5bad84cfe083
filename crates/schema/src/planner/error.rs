//! Errors of planning a statement and of binding values to it.

use thiserror::Error;

use super::refusal::{
    AnnRefusal, BatchRefusal, BoundRefusal, ConditionRefusal, ModifyRefusal, NameRefusal, OperationRefusal,
    RestrictionRefusal, SelectRefusal, SelectionRefusal, TermRefusal, Unsupported, ValueRefusal,
};
use super::text::quoted;
use helenus_types::functions;

/// A statement that cannot be planned, or values that cannot be bound. Messages are Cassandra's.
///
/// A refusal carries data. Only `Display` makes the text, and no code parses it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// The table has no column of this name (code 0x2200).
    #[error("Undefined column name {} in table {keyspace}.{table}", quoted(name))]
    UndefinedColumn {
        /// The column's name.
        name: String,
        /// The table's keyspace.
        keyspace: String,
        /// The table.
        table: String,
    },
    /// A term calls a function that does not exist: its name as written (code 0x2200).
    #[error("Unknown function {0} called")]
    UnknownFunction(String),
    /// A call that matches no function (code 0x2200).
    #[error("{0}")]
    Call(Box<functions::Error>),
    /// The result of a function is assigned to something of another type (code 0x2200).
    #[error("Type error: cannot assign result of function {function} (type {returns}) to {receiver} (type {expected})")]
    Result {
        /// The function, with its keyspace.
        function: Box<str>,
        /// The type that it returns.
        returns: Box<str>,
        /// The name of the result's receiver.
        receiver: Box<str>,
        /// The receiver's type.
        expected: Box<str>,
    },
    /// A sum or a difference is assigned to a column that is no counter (code 0x2200).
    #[error("Invalid operation ({operation}) for non counter column {column}")]
    NonCounter {
        /// The column.
        column: String,
        /// The assignment.
        operation: String,
    },
    /// A relation of the WHERE clause (code 0x2200).
    #[error("{0}")]
    Restriction(Box<RestrictionRefusal>),
    /// A value bound to the WHERE clause, or to a key (code 0x2200).
    #[error("{0}")]
    Bound(Box<BoundRefusal>),
    /// ORDER BY … ANN OF, or a vector that an index cannot keep (code 0x2200).
    #[error("{0}")]
    Ann(Box<AnnRefusal>),
    /// A condition of the IF clause, or a value bound to it (code 0x2200).
    #[error("{0}")]
    Condition(Box<ConditionRefusal>),
    /// Statements that cannot be one batch (code 0x2200).
    #[error("{0}")]
    Batch(BatchRefusal),
    /// Only ALLOW FILTERING permits this read (code 0x2200).
    #[error("{}", crate::command::NeedsFiltering)]
    NeedsFiltering,
    /// INSERT, UPDATE or DELETE as a whole, its USING or its IF (code 0x2200).
    #[error("{0}")]
    Modify(Box<ModifyRefusal>),
    /// An assignment, or the deletion of a column (code 0x2200).
    #[error("{0}")]
    Operation(Box<OperationRefusal>),
    /// LIMIT, DISTINCT, ORDER BY or GROUP BY (code 0x2200).
    #[error("{0}")]
    Select(Box<SelectRefusal>),
    /// A selector (code 0x2200).
    #[error("{0}")]
    Selection(Box<SelectionRefusal>),
    /// A term (code 0x2200).
    #[error("{0}")]
    Term(Box<TermRefusal>),
    /// A value (code 0x2200).
    #[error("{0}")]
    Value(Box<ValueRefusal>),
    /// A keyspace, a table or a type (code 0x2200).
    #[error("{0}")]
    Name(Box<NameRefusal>),
    /// Two incompatible assignments of this column. Cassandra reports a syntax error, although it parsed them (code
    /// 0x2000).
    #[error("Multiple incompatible setting of column {}", quoted(.0))]
    Incompatible(String),
    /// A function failed (code 0x1400).
    #[error(transparent)]
    Function(Box<functions::Failed>),
    /// CQL that Cassandra supports and this server does not yet (code 0x2200).
    #[error("{0}")]
    Unsupported(Unsupported),
}

impl Error {
    /// Whether the code is 0x2200, and the statement is at fault rather than this server.
    pub(crate) fn is_invalid(&self) -> bool {
        match self {
            Self::UndefinedColumn { .. }
            | Self::UnknownFunction(_)
            | Self::Call(_)
            | Self::Result { .. }
            | Self::NonCounter { .. }
            | Self::Restriction(_)
            | Self::Bound(_)
            | Self::Ann(_)
            | Self::Condition(_)
            | Self::Batch(_)
            | Self::Modify(_)
            | Self::Operation(_)
            | Self::Select(_)
            | Self::Selection(_)
            | Self::Term(_)
            | Self::Value(_)
            | Self::Name(_)
            | Self::NeedsFiltering => true,
            Self::Incompatible(_) | Self::Function(_) | Self::Unsupported(_) => false,
        }
    }

    /// Whether Cassandra finds the error in a replica, and tells a client no more than that one failed.
    pub fn is_of_replica(&self) -> bool {
        matches!(self, Self::Ann(refusal) if refusal.is_of_replica())
    }

    /// Whether a column or function name was not found, or a call does not fit the function of its name.
    pub(crate) fn is_of_lookup(&self) -> bool {
        match self {
            Self::UndefinedColumn { .. } | Self::UnknownFunction(_) | Self::Result { .. } => true,
            Self::Call(error) => is_of_lookup(error),
            Self::NonCounter { .. }
            | Self::Restriction(_)
            | Self::Bound(_)
            | Self::Ann(_)
            | Self::Condition(_)
            | Self::Batch(_)
            | Self::NeedsFiltering
            | Self::Modify(_)
            | Self::Operation(_)
            | Self::Select(_)
            | Self::Selection(_)
            | Self::Term(_)
            | Self::Value(_)
            | Self::Name(_)
            | Self::Incompatible(_)
            | Self::Function(_)
            | Self::Unsupported(_) => false,
        }
    }
}

impl From<BatchRefusal> for Error {
    fn from(refusal: BatchRefusal) -> Self {
        Self::Batch(refusal)
    }
}

impl From<RestrictionRefusal> for Error {
    fn from(refusal: RestrictionRefusal) -> Self {
        Self::Restriction(Box::new(refusal))
    }
}

impl From<BoundRefusal> for Error {
    fn from(refusal: BoundRefusal) -> Self {
        Self::Bound(Box::new(refusal))
    }
}

impl From<AnnRefusal> for Error {
    fn from(refusal: AnnRefusal) -> Self {
        Self::Ann(Box::new(refusal))
    }
}

impl From<ConditionRefusal> for Error {
    fn from(refusal: ConditionRefusal) -> Self {
        Self::Condition(Box::new(refusal))
    }
}

impl From<ModifyRefusal> for Error {
    fn from(refusal: ModifyRefusal) -> Self {
        Self::Modify(Box::new(refusal))
    }
}

impl From<OperationRefusal> for Error {
    fn from(refusal: OperationRefusal) -> Self {
        Self::Operation(Box::new(refusal))
    }
}

impl From<SelectRefusal> for Error {
    fn from(refusal: SelectRefusal) -> Self {
        Self::Select(Box::new(refusal))
    }
}

impl From<SelectionRefusal> for Error {
    fn from(refusal: SelectionRefusal) -> Self {
        Self::Selection(Box::new(refusal))
    }
}

impl From<TermRefusal> for Error {
    fn from(refusal: TermRefusal) -> Self {
        Self::Term(Box::new(refusal))
    }
}

impl From<Unsupported> for Error {
    fn from(refusal: Unsupported) -> Self {
        Self::Unsupported(refusal)
    }
}

impl From<ValueRefusal> for Error {
    fn from(refusal: ValueRefusal) -> Self {
        Self::Value(Box::new(refusal))
    }
}

impl From<NameRefusal> for Error {
    fn from(refusal: NameRefusal) -> Self {
        Self::Name(Box::new(refusal))
    }
}

/// Whether name resolution finds the error. Cassandra resolves casts and undeterminable types later, with the rest of
/// the selection.
const fn is_of_lookup(error: &functions::Error) -> bool {
    use functions::Error;
    match error {
        Error::Unknown(_)
        | Error::Count { .. }
        | Error::GenericCount(_)
        | Error::Argument { .. }
        | Error::NoMatch(..)
        | Error::Ambiguous(..)
        | Error::AmbiguousOperation { .. }
        | Error::AmbiguousNegation
        | Error::Operation { .. }
        | Error::Requirement { .. } => true,
        Error::NoMatchingCast(..)
        | Error::AmbiguousCast(..)
        | Error::Inference(..)
        | Error::Cast(..)
        | Error::Dimensions
        | Error::NoReceiver(_)
        | Error::NotScalar(_)
        | Error::Unfit(_)
        | Error::Failed(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Results on the request path carry an [`Error`], so its large parts are boxed.
    #[test]
    fn errors_stay_small() {
        assert!(size_of::<Error>() <= 96, "{}", size_of::<Error>());
    }
}
