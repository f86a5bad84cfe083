//! Why ORDER BY … ANN OF is refused, or a vector that its index cannot store.

use thiserror::Error;

/// An ANN search that the server cannot execute.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AnnRefusal {
    /// Two ANN orderings.
    #[error("Cannot specify more than one ANN ordering")]
    Several,
    /// An ANN ordering beside one of a column.
    #[error("ANN ordering does not support any other ordering")]
    OtherOrdering,
    /// `ANN OF … DESC`
    #[error("Descending ANN ordering is not supported")]
    Descending,
    /// A column of another type.
    #[error("ANN ordering is only supported on float vector indexes")]
    NotFloatVector,
    /// A column without index.
    #[error("ANN ordering by vector requires the column to be indexed")]
    NotIndexed,
    /// A restriction of another column that no index answers.
    #[error("ANN ordering by vector requires all restricted column(s) to be indexed")]
    Filtered,
    /// Null as the vector: the column.
    #[error("Unsupported null value for column {0}")]
    Null(String),
    /// An unset vector: the column.
    #[error("Unsupported unset value for column {0}")]
    Unset(String),
    /// Infinity or NaN in a vector.
    #[error("non-finite value at vector[{place}]={value}")]
    NonFinite {
        /// Its position, from 0.
        place: usize,
        /// As CQL writes it.
        value: String,
    },
    /// An element above the maximum that an index can store.
    #[error("Out-of-bounds value at vector[{place}]={value}")]
    OutOfBounds {
        /// Its position, from 0.
        place: usize,
        /// As CQL writes it.
        value: String,
    },
    /// A vector of zeros has no angle.
    #[error("Zero vectors cannot be indexed or queried with cosine similarity")]
    Zero,
}
