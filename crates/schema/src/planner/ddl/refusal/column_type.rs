//! Why the type of a column, a field or an argument is refused.

use thiserror::Error;

use super::code::Code;
use helenus_types::types::TypeError;

/// Why the type of a column, a field or an argument is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ColumnTypeRefusal {
    /// An invalid type, or one that is not allowed at its position.
    #[error("{0}")]
    Type(TypeError),
    /// A user-defined type of another keyspace.
    #[error(
        "Statement on keyspace {keyspace} cannot refer to a user type in keyspace {other}; user types can only be used in the keyspace they are defined in"
    )]
    Foreign {
        /// Its keyspace.
        keyspace: String,
        /// The other keyspace.
        other: String,
    },
    /// A user-defined type of many cells that holds a collection of many cells.
    #[error("Non-frozen UDTs with nested non-frozen collections are not supported")]
    Nested,
    /// A name that is too long.
    #[error("{what} name must not be more than {bytes_max} bytes long (got {bytes} bytes)")]
    NameLength {
        /// The kind of the named object, e.g. `Field`.
        what: &'static str,
        /// Its length in bytes.
        bytes: usize,
        /// The maximum number of bytes.
        bytes_max: usize,
    },
}

impl ColumnTypeRefusal {
    pub(in crate::planner::ddl) fn code(&self) -> Code<'static> {
        match self {
            Self::Type(error) if error.is_syntax() => Code::Syntax,
            Self::Type(_) | Self::Foreign { .. } | Self::Nested | Self::NameLength { .. } => Code::Invalid,
        }
    }
}
