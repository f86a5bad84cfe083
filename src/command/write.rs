//! Writes: what happens to the rows of one table.

use std::sync::Arc;

use bytes::Bytes;

use super::{ClusteringRange, Condition, Value};
use crate::schema::Table;

/// What happens to one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnChange {
    /// One cell gets a value (frozen or native column).
    Set(Value),
    /// A multi-cell column is emptied and gets these elements (keys, values). The engine makes a list's keys.
    Replace(Vec<(Option<Bytes>, Bytes)>),
    /// Elements are put into a set (value empty), a map, or (fields by i16 number) a user-defined type; `None` deletes one.
    Put(Vec<(Bytes, Option<Bytes>)>),
    /// Elements (a set's), keys (a map's) are taken out.
    Remove(Vec<Bytes>),
    /// Values are appended to a list.
    Append(Vec<Bytes>),
    /// Values are put before a list, in this order.
    Prepend(Vec<Bytes>),
    /// A list's element at a position gets a value, or goes (`None`). Needs a read.
    SetAt(i32, Option<Bytes>),
    /// All elements of a list equal to one of these go. Needs a read.
    Discard(Vec<Bytes>),
    /// A counter changes by this much.
    Increment(i64),
    /// A bigint column gets the write's own timestamp, µs since 1970-01-01 UTC: the row's version, as an ETag is made of. It only grows:
    /// of two writes the one with the later timestamp stands, and the node's timestamps never come twice nor go back, over restarts and
    /// sweeps too. A conditional write may compare it.
    Version,
}

/// Which rows of a partition a write is aimed at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteTarget {
    /// These rows, by full clustering key.
    Rows(Vec<Vec<u8>>),
    /// The static row alone.
    Static,
    /// All rows in these ranges; only deleted.
    Ranges(Vec<ClusteringRange>),
    /// The whole partition; only deleted.
    Partition,
}

/// A write of rows of one table, ready to be carried out.
#[derive(Clone, Debug)]
pub struct Write {
    /// The table, as planned.
    pub table: Arc<Table>,
    /// Insert sets row markers; delete without operations deletes rows.
    pub kind: WriteVerb,
    /// Serialised partition keys, distinct.
    pub partition_keys: Vec<Bytes>,
    /// Which rows.
    pub target: WriteTarget,
    /// Operations on columns, by place in `table.columns`; those on static columns go to the static row.
    pub operations: Vec<(usize, ColumnChange)>,
    /// Whether it has operations on static columns, counting those whose values are not set.
    pub names_static: bool,
    /// Write time, µs since 1970-01-01 UTC. `None`: the request's, or the node's.
    pub timestamp: Option<i64>,
    /// Time to live, seconds; 0 is none. `None`: the table's default.
    pub ttl_seconds: Option<u32>,
    /// What must hold for it to be applied.
    pub condition: Condition,
    /// The columns a refused conditional answers with besides `[applied]`: places in `table.columns`.
    pub condition_columns: Vec<usize>,
}

/// What a write does to its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteVerb {
    /// Writes columns and a row marker: the row is there even without values.
    Insert,
    /// Writes columns; the row is there as long as one of them has a value.
    Update,
    /// Deletes columns, or whole rows where no column is named.
    Delete,
}
