//! Why values cannot be bound to a WHERE clause or cannot form a key.

use thiserror::Error;

/// A bound value that does not fit its restriction.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BoundRefusal {
    /// Null for a key column or inside an IN list: the column.
    #[error("Invalid null value in condition for column {0}")]
    NullInCondition(String),
    /// Null for a whole restriction of this column.
    #[error("Invalid null value for column {0}")]
    Null(String),
    /// An unset value for this column.
    #[error("Invalid unset value for column {0}")]
    Unset(String),
    /// Null as a token.
    #[error("Invalid null token value")]
    NullToken,
    /// An unset value as a token.
    #[error("Invalid unset token value")]
    UnsetToken,
    /// Null as a list of tuples.
    #[error("Invalid null value for IN restriction")]
    NullTuples,
    /// An unset list of tuples: the columns, joined by `,`.
    #[error("Invalid unset value for in({0})")]
    UnsetTuples(String),
    /// Null as a tuple: its columns.
    #[error("Invalid null value for columns: [{0}]")]
    NullTuple(String),
    /// An unset tuple: its columns, joined by `,`.
    #[error("Invalid unset value for tuple ({0})")]
    UnsetTuple(String),
    /// Null as a field of a tuple that is one of several: the columns.
    #[error("Invalid null value in condition for columns: [{0}]")]
    NullInTuple(String),
    /// An unset field of a tuple: its position, from 0.
    #[error("Invalid unset value for tuple field number {0}")]
    UnsetField(usize),
    /// A key that is too long.
    #[error("Key length of {bytes} is longer than maximum of {bytes_max}")]
    KeyLength {
        /// Its length in bytes.
        bytes: usize,
        /// The maximum length of a key, in bytes.
        bytes_max: usize,
    },
    /// IN restrictions that name too many keys together.
    #[error("The IN restrictions name {keys} keys together, more than {keys_max}: use several statements")]
    Keys {
        /// The number of keys.
        keys: usize,
        /// The maximum number of keys of one statement.
        keys_max: usize,
    },
    /// IN restrictions whose keys are too long together.
    #[error(
        "The {keys} keys that the IN restrictions name are longer than {bytes_max} bytes together: use several statements"
    )]
    KeysBytes {
        /// The number of keys.
        keys: usize,
        /// The maximum number of their bytes.
        bytes_max: usize,
    },
    /// The types of columns and markers have too many parts for metadata: the maximum.
    #[error(
        "The types of the columns and of the markers are made of more than {0} types, those of their fields spelled out"
    )]
    TypeParts(usize),
    /// A partition key of no bytes.
    #[error("Key may not be empty")]
    EmptyKey,
    /// Null as a map's key in a filter on this column.
    #[error("Unsupported null map key for column {0}")]
    NullMapKey(String),
    /// An unset map key in a filter on this column.
    #[error("Unsupported unset map key for column {0}")]
    UnsetMapKey(String),
    /// Null as the operand of a filter.
    #[error("Unsupported null {what} for column {column}")]
    NullFilter {
        /// `value` or `map value`.
        what: &'static str,
        /// The column.
        column: String,
    },
    /// An unset operand of a filter.
    #[error("Unsupported unset {what} for column {column}")]
    UnsetFilter {
        /// `value` or `map value`.
        what: &'static str,
        /// The column.
        column: String,
    },
    /// A value that is too long for the index that would look it up.
    #[error("Index expression values may not be larger than 64K")]
    IndexValue,
    /// LIKE without a pattern.
    #[error("LIKE value can't be empty.")]
    EmptyLike,
}
