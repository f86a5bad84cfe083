//! Keys of a command: which partitions, and which rows of each.
//!
//! A partition key is Cassandra's serialised form (one component's bytes, or `{u16 length, bytes, 0}…`). A clustering key is the
//! concatenation of its columns' order-preserving encodings (`CqlType::encode_key`), so that every restriction on clustering
//! columns is a set of half-open byte ranges, a prefix restriction included.

use bytes::Bytes;

use helenus_types::token::KeySpan;

/// Clustering keys `start ≤ key < end`; `end` `None` is the end of the partition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClusteringRange {
    /// Inclusive.
    pub start: Vec<u8>,
    /// Exclusive.
    pub end: Option<Vec<u8>>,
}

/// Which partitions a read visits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Partitions {
    /// These partition keys, distinct, in order of their components' values, as Cassandra answers `IN`.
    Keys(Vec<Bytes>),
    /// All partitions in this range of the ring: tokens, or keys of a table that is ordered by them. `None` means that
    /// the range is empty.
    Ring(Option<KeySpan>),
}

impl Partitions {
    /// All partitions.
    pub const WHOLE_RING: Self = Self::Ring(Some(KeySpan::whole()));

    /// All partitions with a token in `lower ..= upper`, both inclusive; none if `lower > upper`.
    #[must_use]
    pub fn of_tokens(lower: i64, upper: i64) -> Self {
        Self::Ring(KeySpan::of_tokens(lower, upper))
    }
}

/// Which rows of each partition a read or a deletion covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clustering {
    /// Every row; the static row counts as one if the partition has no other.
    All,
    /// These full clustering keys, distinct, sorted. Tables without clustering columns have one row, with an empty key.
    Keys(Vec<Vec<u8>>),
    /// These ranges, disjoint, sorted.
    Ranges(Vec<ClusteringRange>),
}

impl Clustering {
    /// Whether no row can be among them.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::All => false,
            Self::Keys(keys) => keys.is_empty(),
            Self::Ranges(ranges) => ranges.is_empty(),
        }
    }

    /// Whether a clustering key is among them.
    #[must_use]
    pub fn covers(&self, clustering: &[u8]) -> bool {
        match self {
            Self::All => true,
            Self::Keys(keys) => keys.binary_search_by(|key| key.as_slice().cmp(clustering)).is_ok(),
            Self::Ranges(ranges) => {
                let after = ranges.partition_point(|range| range.start.as_slice() <= clustering);
                after
                    .checked_sub(1)
                    .and_then(|place| ranges.get(place))
                    .is_some_and(|range| range.end.as_deref().is_none_or(|end| clustering < end))
            }
        }
    }
}
