//! The size of a batch of several partitions by Cassandra's count, and the warning about it.
//!
//! The sizes are those of Cassandra's `dataSize()` of its updates, measured on Cassandra 5.0.9: the bytes that it keeps
//! in memory, not those on the wire. Sources: `BatchStatement#verifyBatchSize`, `PartitionUpdate#dataSize`,
//! `BTreeRow#dataSize`.

use crate::engine::refusal::LimitRefusal;
use std::collections::{BTreeSet, HashMap};

use bytes::Bytes;

use crate::engine::Error;
use crate::engine::row::layout::Shape;
use crate::partition::RowKey;
use helenus_schema::command::{ClusteringRange, Write};
use helenus_schema::guardrails::{CELL_BYTES, Level, Threshold};
use helenus_schema::schema::{Column, Table};
use helenus_storage::storage::{CellState, Row};

/// Of a partition's update: its deletion, and a static row that is always counted.
const PARTITION_BYTES: usize = 29;
/// Of a row: the marker's timestamp and the row's deletion.
const ROW_BYTES: usize = 21;
/// Time to live and expiry of a marker.
const EXPIRY_BYTES: usize = 12;
/// A deletion of a collection's earlier elements, counted for every collection that is written.
const DELETION_BYTES: usize = 12;
/// A list of range deletions.
const RANGES_BYTES: usize = 4;
/// The state of a counter with one shard.
const COUNTER_BYTES: usize = 36;

/// The mutations of a batch as Cassandra groups its partitions: one for each key of a keyspace, whatever its tables.
pub(crate) fn mutations(modifications: &[Write]) -> usize {
    let mut seen = BTreeSet::new();
    for modification in modifications {
        for key in &modification.partition_keys {
            seen.insert((modification.table.keyspace.as_str(), key.as_ref()));
        }
    }
    seen.len()
}

/// The writes of a batch, as far as its size depends on them.
#[derive(Debug, Default)]
pub(crate) struct BatchSize {
    /// Tables and keys of partitions.
    partitions: BTreeSet<(u32, Bytes)>,
    /// Partitions with range deletions.
    ranged: BTreeSet<(u32, Bytes)>,
    ranges_bytes: usize,
    /// Rows by key, with the bytes of their clustering values and of their table's. Writes to the same row are merged.
    rows: HashMap<RowKey, (Row, usize)>,
    /// Bytes excluding those of cells' values and paths; the cells are measured last.
    cells_bytes: usize,
}

impl BatchSize {
    pub(super) fn partition(&mut self, table: &Table, partition_key: &Bytes) {
        self.partitions.insert((table.storage_id, partition_key.clone()));
    }

    pub(super) fn range(&mut self, table: &Table, partition_key: &Bytes, range: &ClusteringRange) {
        self.ranged.insert((table.storage_id, partition_key.clone()));
        let end = range.end.as_deref().unwrap_or_default();
        self.ranges_bytes += DELETION_BYTES + clustering_bytes(table, &range.start) + clustering_bytes(table, end);
    }

    /// Adds a write to a row; `clustering` is `None` for the static one.
    pub(super) fn row(&mut self, table: &Table, key: &RowKey, clustering: Option<&[u8]>, row: &Row) {
        // The bytes of a static row are among those of its partition.
        let own = clustering.map_or(0, |clustering| ROW_BYTES + clustering_bytes(table, clustering));
        let measured = self.rows.remove(key);
        let (row, own) = match measured {
            None => (row.clone(), own),
            Some((before, own)) => {
                self.cells_bytes -= row_bytes(table, &before);
                (Row::merge(before, row.clone().canonical()), own)
            }
        };
        let row = row.canonical();
        self.cells_bytes += row_bytes(table, &row);
        self.rows.insert(key.clone(), (row, own));
    }

    fn bytes(&self) -> usize {
        let rows = self.rows.values().map(|(_, own)| own).sum::<usize>();
        self.partitions.len() * PARTITION_BYTES
            + self.ranged.len() * RANGES_BYTES
            + self.ranges_bytes
            + rows
            + self.cells_bytes
    }

    /// Compares the size with a threshold: returns a warning or nothing.
    ///
    /// # Errors
    /// The batch is larger than the limit.
    pub(crate) fn check(&self, threshold: &Threshold, modifications: &[&Write]) -> Result<Option<String>, Error> {
        let bytes = self.bytes();
        match threshold.level(u64::try_from(bytes).unwrap_or(u64::MAX)) {
            Level::Fine => Ok(None),
            Level::Refuse(_) => Err(LimitRefusal::Batch.into()),
            Level::Warn(threshold) => {
                let tables = modifications.iter().map(|modification| &modification.table);
                let names = tables.map(|table| format!("{}.{}", table.keyspace, table.name));
                let over = u64::try_from(bytes).unwrap_or(u64::MAX).saturating_sub(threshold);
                Ok(Some(format!(
                    "Batch for [{}] is of size {bytes}, exceeding specified threshold of {threshold} by {over}.",
                    in_hash_order(names.collect()).join(", ")
                )))
            }
        }
    }
}

/// The bytes of the values in an encoded clustering key, which may be incomplete.
fn clustering_bytes(table: &Table, mut encoded: &[u8]) -> usize {
    let mut bytes = 0;
    for column in table.clustering() {
        if encoded.is_empty() {
            break;
        }
        // The end of a range is the least key after it, which may be no key itself.
        let Ok(value) = column.ty.decode_key(&mut encoded, column.key_order()) else {
            break;
        };
        bytes += value.len();
    }
    bytes
}

/// The bytes of marker and cells.
fn row_bytes(table: &Table, row: &Row) -> usize {
    let mut bytes = 0;
    if row.marker.is_some_and(|marker| marker.expiry.is_some()) {
        bytes += EXPIRY_BYTES;
    }
    let mut collections: BTreeSet<u32> = row.complex.iter().map(|(column, _)| column.0).collect();
    for cell in &row.cells {
        let value = match &cell.state {
            CellState::Live { .. } if table.is_counter => COUNTER_BYTES,
            CellState::Live { value, .. } => value.len(),
            CellState::Tombstone { .. } => 0,
        };
        let path = cell.path.as_deref().map_or(0, |path| {
            collections.insert(cell.column.0);
            let column = table.columns.iter().find(|column| column.id == cell.column.0);
            column.map_or(path.len(), |column| path_bytes(column, path))
        });
        bytes += CELL_BYTES + value + path;
    }
    bytes + collections.len() * DELETION_BYTES
}

/// The bytes of a cell's path in Cassandra, which encodes keys as values, not in the sortable encoding used here.
fn path_bytes(column: &Column, path: &[u8]) -> usize {
    match Shape::of(&column.ty) {
        Shape::Set(key) | Shape::Map(key) => {
            let mut rest = path;
            key.decode_key(&mut rest, false).map_or(path.len(), |value| value.len())
        }
        Shape::Plain | Shape::List | Shape::User(_) => path.len(),
    }
}

/// The names, each once, in the order in which a Java `HashSet` iterates over up to a dozen of them.
pub(crate) fn in_hash_order(mut names: Vec<String>) -> Vec<String> {
    const BUCKETS: u32 = 16;
    let bucket = |name: &String| {
        let hash = name
            .encode_utf16()
            .fold(0_u32, |hash, unit| hash.wrapping_mul(31).wrapping_add(u32::from(unit)));
        (hash ^ (hash >> 16)) % BUCKETS
    };
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names.sort_by_key(bucket);
    names
}
