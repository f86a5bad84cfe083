//! Reads.

use std::sync::Arc;

use super::{Clustering, ClusteringRange, Expression, FeedStart, Filter, Partitions, Selection};
use crate::schema::{StorageId, Table};
use helenus_types::functions::Similarity;

/// An index lookup: its entries in these ranges cover at least the rows that pass the read's filters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexProbe {
    /// The index's name.
    pub index: String,
    /// Its number in the store.
    pub storage_id: StorageId,
    /// Ranges of encoded values (`schema::IndexTarget`), disjoint, sorted.
    pub ranges: Vec<ClusteringRange>,
    /// A single value is looked up, so that entries come in token order. Two entries may still refer to one row.
    pub is_equality: bool,
}

/// Largest LIMIT of an ANN search. Source: Cassandra's `cassandra.sai.vector_search.max_top_k`.
pub const NEAREST_LIMIT_MAX: u32 = 1000;

/// An order by the similarity of a vector column to a vector.
#[derive(Clone, Debug, PartialEq)]
pub struct Nearest {
    /// The position of the vector column in `table.columns`.
    pub column: usize,
    /// The name of its index, which defines the similarity.
    pub index: String,
    /// The similarity function.
    pub similarity: Similarity,
    /// The vector that others are compared with.
    pub vector: Vec<f32>,
}

/// A read of rows of one table, ready to be executed.
#[derive(Clone, Debug)]
pub struct Read {
    /// The table, as planned.
    pub table: Arc<Table>,
    /// The columns of the result; its markers are bound.
    pub selection: Arc<Selection>,
    /// Which partitions.
    pub partitions: Partitions,
    /// Which rows of each.
    pub rows: Clustering,
    /// No row is named (`c IN ()`); the static row of each partition is still read and counts as a row in pages.
    pub counts_static: bool,
    /// Which rows pass.
    pub filter: Filter,
    /// Each alone finds all rows that pass `filter`, and others. Empty means no index helps. An index whose build is
    /// not complete must not be used.
    pub probes: Vec<IndexProbe>,
    /// Rows of each partition in descending clustering order.
    pub reversed: bool,
    /// ORDER BY over several partitions (`IN`): sort the rows of the result by these columns of the table; `true` means
    /// descending. Empty means unsorted.
    pub sort: Vec<(usize, bool)>,
    /// ORDER BY … ANN OF: the rows most similar to a vector, in that order, up to LIMIT.
    pub nearest: Option<Nearest>,
    /// GROUP BY these leading key columns (how many of the primary key). `None` means no GROUP BY; aggregates then make
    /// one group of all rows.
    pub group_by: Option<Vec<Expression>>,
    /// DISTINCT: one row for each partition, from its key and static columns.
    pub distinct: bool,
    /// LIMIT, in rows of the result.
    pub limit_rows: Option<u32>,
    /// PER PARTITION LIMIT, in rows.
    pub per_partition_limit_rows: Option<u32>,
    /// The change feed is read instead of the rows, from here. Then the read names one partition key or a part of the
    /// ring, and no rows, filters, groups, orders or limits.
    pub feed: Option<FeedStart>,
    /// Whether the feed is the full fidelity one.
    pub is_full_fidelity: bool,
}

impl Read {
    /// All rows of these partitions, without limits. The selection must include the columns that a filter or an order
    /// uses.
    #[must_use]
    pub const fn new(table: Arc<Table>, selection: Arc<Selection>, partitions: Partitions) -> Self {
        Self {
            table,
            selection,
            partitions,
            rows: Clustering::All,
            counts_static: false,
            filter: Filter::NONE,
            probes: Vec::new(),
            reversed: false,
            sort: Vec::new(),
            nearest: None,
            group_by: None,
            distinct: false,
            limit_rows: None,
            per_partition_limit_rows: None,
            feed: None,
            is_full_fidelity: false,
        }
    }

    /// Whether all rows form one group, so that the result has one row.
    #[must_use]
    pub fn is_one_group(&self) -> bool {
        !self.selection.aggregates.is_empty() && self.group_by.is_none()
    }

    /// Whether rows are grouped.
    #[must_use]
    pub fn is_grouped(&self) -> bool {
        self.group_by.is_some() || !self.selection.aggregates.is_empty()
    }

    /// Whether it looks up rows by their full keys, instead of scanning ranges.
    #[must_use]
    pub fn looks_up(&self) -> bool {
        matches!(self.partitions, Partitions::Keys(_))
            && (self.table.clustering_count == 0 || matches!(self.rows, Clustering::Keys(_)))
    }
}

/// The engine's decision about the indexes of a SELECT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexUse {
    /// No probe was planned.
    None,
    /// This index is used.
    Used {
        /// Its name.
        index: String,
        /// Entries come in ring order, and are read a few at a time.
        ordered: bool,
    },
    /// No index is used, for this reason.
    Spared(Spared),
}

/// Why no index is used although one could answer the SELECT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spared {
    /// No index is complete yet.
    Building,
    /// The index would be more expensive than the scan.
    Dearer {
        /// Lower bound of the index entries that a page would read.
        entries: usize,
        /// Rows that the scan would read, estimated from the sizes.
        rows: u64,
    },
    /// The logical partitions are read: no index returns their rows in the order of the result.
    ByKey,
    /// The token range is empty.
    NoTokens,
}
