//! Why a mask of a column is refused.

use thiserror::Error;

use super::code::Code;
use helenus_types::functions;
use helenus_types::types::CqlType;

/// Why a mask of a column is refused.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum MaskRefusal {
    /// No function of this name.
    #[error("Unable to find masking function for {column}, no declared function matches the signature {signature}")]
    Unknown {
        /// The column.
        column: String,
        /// The call as it was written.
        signature: String,
    },
    /// The call of an aggregate.
    #[error("Aggregate function {0} cannot be used for masking table columns")]
    Aggregate(String),
    /// The call of a function that is no masking function.
    #[error("Not-masking function {0} cannot be used for masking table columns")]
    NotMasking(String),
    /// A user's function of another keyspace.
    #[error("Masking function {function} doesn't belong to the same keyspace as the table {table}")]
    OtherKeyspace {
        /// The call as it was written.
        function: String,
        /// The table with its keyspace.
        table: String,
    },
    /// The function's result type differs from the column's type.
    #[error(
        "Masking function {function} return type is {}. This is different to the type of the masked column {column} of type {}. Masking functions can only be attached to table columns if they return the same data type as the masked column.",
        .returns.cql_name(), .ty.cql_name()
    )]
    Returns {
        /// The call as it was written.
        function: String,
        /// The type of its result.
        returns: CqlType,
        /// The column.
        column: String,
        /// The column's type.
        ty: CqlType,
    },
    /// The arguments do not fit the function.
    #[error("{0}")]
    Call(functions::Error),
    /// An argument is no value of its type.
    #[error("{0}")]
    Term(Box<crate::planner::Error>),
    /// An argument of this column's mask is no constant.
    #[error("The arguments of the mask of column {0} must be constants")]
    NotConstant(String),
}

impl MaskRefusal {
    pub(in crate::planner::ddl) const fn code(&self) -> Code<'static> {
        match self {
            Self::Unknown { .. }
            | Self::Aggregate(_)
            | Self::NotMasking(_)
            | Self::OtherKeyspace { .. }
            | Self::Returns { .. }
            | Self::Call(_)
            | Self::Term(_)
            | Self::NotConstant(_) => Code::Invalid,
        }
    }
}
