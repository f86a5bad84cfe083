//! Why a bound value, a document of INSERT JSON or the pattern of a LIKE is refused.

use thiserror::Error;

use crate::planner::text::quoted;
use helenus_types::types::Invalid;

/// A value that does not fit its type, or that the statement cannot use.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ValueRefusal {
    /// Bytes or a text that are no value of the type.
    #[error("{0}")]
    Marshal(Invalid),
    /// Null inside a value of this kind: `collections`, `vectors`.
    #[error("null is not supported inside {0}")]
    NullInside(&'static str),
    /// An unset value inside a value of this kind: `collections`, `vectors`.
    #[error("unset value is not supported inside {0}")]
    UnsetInside(&'static str),
    /// An unset field of a value of a frozen user-defined type.
    #[error("Invalid unset value for field '{field}' of user defined type {user}")]
    UnsetField {
        /// The field.
        field: String,
        /// The type.
        user: String,
    },
    /// INSERT JSON of null.
    #[error("Got null for INSERT JSON values")]
    NullJson,
    /// A member of INSERT JSON that is no value of its column.
    #[error("Error decoding JSON value for {column}: {error}")]
    JsonMember {
        /// The column.
        column: String,
        /// The cause.
        error: Invalid,
    },
    /// A member of INSERT JSON that is no column.
    #[error("JSON values map contains unrecognized column: {0}")]
    JsonUnknown(String),
    /// A LIKE pattern that no index supports.
    #[error("{} LIKE '{shape}' {text} is only supported on properly indexed columns", quoted(.column))]
    Like {
        /// The column.
        column: String,
        /// The kind of pattern, e.g. `<term>%`.
        shape: &'static str,
        /// The pattern without its `%` signs.
        text: String,
    },
}
