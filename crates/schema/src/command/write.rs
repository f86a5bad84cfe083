//! Writes: changes of the rows of one table.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::{ClusteringRange, Condition, Expression, Value};
use crate::schema::{Schema, Table};

/// The change of one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnChange {
    /// One cell gets a value (frozen or native column).
    Set(Value),
    /// A multi-cell column is emptied and gets these elements (keys, values). The engine makes a list's keys.
    Replace(Vec<(Option<Bytes>, Bytes)>),
    /// Elements are added to a set (value empty), a map, or (fields by i16 number) a user-defined type; `None` deletes
    /// one.
    Put(Vec<(Bytes, Option<Bytes>)>),
    /// Elements (of a set) or keys (of a map) are removed.
    Remove(Vec<Bytes>),
    /// Values are appended to a list.
    Append(Vec<Bytes>),
    /// Values are prepended to a list, in this order.
    Prepend(Vec<Bytes>),
    /// A list's element at a position is set, or removed (`None`). Needs a read.
    SetAt(i32, Option<Bytes>),
    /// All elements of a list equal to one of these are removed. Needs a read.
    Discard(Vec<Bytes>),
    /// A counter is incremented by this much.
    Increment(i64),
    /// This is added to a number, or appended to a text, that is there; `None` is null, which cannot be added. Needs a read.
    Sum(Option<Bytes>),
    /// A bigint column is set to the write's own timestamp, µs since 1970-01-01 UTC: the row's version, from which an
    /// ETag is made. It only grows: of two writes the one with the later timestamp wins, and the node never issues a
    /// timestamp twice or an earlier one, across restarts and sweeps too. A conditional write may compare it.
    Version,
}

/// The rows of a partition that a write changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteTarget {
    /// These rows, by full clustering key.
    Rows(Vec<Vec<u8>>),
    /// The static row only.
    Static,
    /// All rows in these ranges; for deletes only.
    Ranges(Vec<ClusteringRange>),
    /// The whole partition; for deletes only.
    Partition,
}

/// A write of rows of one table, ready to be executed.
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
    /// Changes of columns, by position in `table.columns`; those of static columns go to the static row.
    pub operations: Vec<(usize, ColumnChange)>,
    /// Whether it changes static columns, including changes whose values are not set.
    pub names_static: bool,
    /// Write time, µs since 1970-01-01 UTC. `None` means the request's, or the node's.
    pub timestamp: Option<i64>,
    /// Time to live, seconds; 0 means no expiry. `None` means the table's default. Below 0 only in a conditional write, which is refused if
    /// its condition holds, as in Cassandra.
    pub ttl_seconds: Option<i32>,
    /// The condition of its application.
    pub condition: Condition,
    /// The columns that a refused conditional write returns in addition to `[applied]`: positions in `table.columns`.
    pub condition_columns: Vec<usize>,
    /// What such a refusal shows of columns with masks. `None` means that the client may see the values.
    pub masks: Option<Arc<ColumnMasks>>,
}

/// The calls that mask columns, by the columns' positions in `table.columns`.
pub type ColumnMasks = BTreeMap<usize, Expression>;

/// Makes the masks of a table's columns by its schema. `None` means that no column has one, or that one is invalid.
pub type MaskCalls = fn(&Schema, &Arc<Table>) -> Option<Arc<ColumnMasks>>;

/// The verb of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteVerb {
    /// Writes columns and a row marker: the row exists even without values.
    Insert,
    /// Writes columns; the row exists as long as one of them has a value.
    Update,
    /// Deletes columns, or whole rows if no column is named.
    Delete,
}
