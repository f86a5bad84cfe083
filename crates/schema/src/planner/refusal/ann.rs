//! Why ORDER BY … ANN OF is refused, or a vector that its index cannot store.

use thiserror::Error;

use crate::command::NEAREST_LIMIT_MAX as LIMIT_MAX;

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
    /// CONTAINS by an index of vectors, and no LIMIT up to the largest that an ANN ordering takes.
    #[error("Use of ANN OF in an ORDER BY clause requires a LIMIT that is not greater than {LIMIT_MAX}. LIMIT was {0}")]
    ContainsLimit(u32),
    /// CONTAINS by an index of vectors.
    #[error("An index of vectors in a collection answers no CONTAINS")]
    Contains,
    /// A vector of zeros has no angle.
    #[error("Zero vectors cannot be indexed or queried with cosine similarity")]
    Zero,
}

impl AnnRefusal {
    /// Whether Cassandra detects it in a replica: its words are those of the replica's log.
    pub(crate) const fn is_of_replica(&self) -> bool {
        match self {
            Self::NonFinite { .. } | Self::OutOfBounds { .. } | Self::Zero => true,
            Self::Several
            | Self::OtherOrdering
            | Self::Descending
            | Self::NotFloatVector
            | Self::NotIndexed
            | Self::Filtered
            | Self::Null(_)
            | Self::Unset(_)
            | Self::ContainsLimit(_)
            | Self::Contains => false,
        }
    }
}
