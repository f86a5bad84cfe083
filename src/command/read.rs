//! Reads.

use std::sync::Arc;

use super::{Clustering, ClusteringRange, Expression, Filter, Partitions, Selection};
use crate::functions::Similarity;
use crate::schema::{StorageId, Table};

/// What an index is asked: its entries in these ranges stand for at least the rows that the read's filters let through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexProbe {
    /// The index's name.
    pub index: String,
    /// Its number in the store.
    pub storage_id: StorageId,
    /// Ranges of encoded values (`schema::IndexTarget`), disjoint, sorted.
    pub ranges: Vec<ClusteringRange>,
    /// One value is looked for, so that entries come in the order of tokens. Two entries may still stand for one row.
    pub is_equality: bool,
}

/// An order by how near a column of vectors is to a vector.
#[derive(Clone, Debug, PartialEq)]
pub struct Nearest {
    /// The place of the column of vectors in `table.columns`.
    pub column: usize,
    /// The name of its index, which says by what vectors are alike.
    pub index: String,
    /// By what vectors are alike.
    pub similarity: Similarity,
    /// The vector that others are compared with.
    pub vector: Vec<f32>,
}

/// A read of rows of one table, ready to be carried out.
#[derive(Clone, Debug)]
pub struct Read {
    /// The table, as planned.
    pub table: Arc<Table>,
    /// What is given back; its markers are bound.
    pub selection: Arc<Selection>,
    /// Which partitions.
    pub partitions: Partitions,
    /// Which rows of each.
    pub rows: Clustering,
    /// No row is named (`c IN ()`), and the static row of each partition is read all the same and takes a row's place in pages.
    pub counts_static: bool,
    /// Which rows pass.
    pub filter: Filter,
    /// Each alone finds all rows that `filter` lets through, and others; empty: no index helps. An index whose build is not complete
    /// must not be asked.
    pub probes: Vec<IndexProbe>,
    /// From the last row of each partition to the first.
    pub reversed: bool,
    /// ORDER BY over several partitions (`IN`): sort the rows of the result by these columns of the table, each with `true`
    /// for descending. Empty: as they come.
    pub sort: Vec<(usize, bool)>,
    /// ORDER BY … ANN OF: the rows nearest to a vector, as many as LIMIT says, the nearest first.
    pub nearest: Option<Nearest>,
    /// GROUP BY these leading key columns (how many of the primary key), `None` without. Aggregates without GROUP BY make one
    /// group of everything.
    pub group_by: Option<Vec<Expression>>,
    /// DISTINCT: one row for each partition, from its key and static columns.
    pub distinct: bool,
    /// LIMIT, in rows of the result.
    pub limit_rows: Option<u32>,
    /// PER PARTITION LIMIT, in rows.
    pub per_partition_limit_rows: Option<u32>,
}

impl Read {
    /// All rows of these partitions, without limits. The selection must need what a filter or an order looks at.
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
        }
    }

    /// Whether all rows make one group, so that there is one row in the result.
    #[must_use]
    pub fn is_one_group(&self) -> bool {
        !self.selection.aggregates.is_empty() && self.group_by.is_none()
    }

    /// Whether rows go into groups rather than into the result.
    #[must_use]
    pub fn is_grouped(&self) -> bool {
        self.group_by.is_some() || !self.selection.aggregates.is_empty()
    }

    /// Whether it looks rows up by their whole keys, rather than visiting ranges of them.
    #[must_use]
    pub fn looks_up(&self) -> bool {
        matches!(self.partitions, Partitions::Keys(_))
            && (self.table.clustering_count == 0 || matches!(self.rows, Clustering::Keys(_)))
    }
}

/// What the engine says of the indexes of a SELECT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexUse {
    /// No probe was planned.
    None,
    /// This index is used; `ordered`: its entries come in the order of the ring.
    Used {
        /// Its name.
        index: String,
        /// Entries come in the order of the ring, and are sought a few at a time.
        ordered: bool,
    },
    /// None is used, for this reason.
    Spared(Spared),
}

/// Why a SELECT that an index could answer goes by none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spared {
    /// No index is complete: it is being built.
    Building,
    /// The index would cost more than the scan.
    Dearer {
        /// Entries of the index that a page would read: at least as many.
        entries: usize,
        /// Rows that the scan would read, as the sizes tell.
        rows: u64,
    },
    /// The logical partitions are read: no index finds their rows in the order of the answer.
    ByKey,
    /// No token is asked for.
    NoTokens,
}
