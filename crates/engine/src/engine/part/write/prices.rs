//! Charges of writes: computed as they are staged, and estimated for EXPLAIN.

use bytes::Bytes;

use super::fragment::reads_before;
use crate::throughput::{Charges, RowWrite};
use helenus_schema::command::{ColumnChange, Value, Write, WriteTarget, WriteVerb};
use helenus_schema::guardrails::CELL_BYTES;
use helenus_schema::schema::{Column, ColumnKind, Table};

/// Charges a modification of one partition as if its rows did not exist yet: the bytes of the modification count as the
/// row.
pub(crate) fn estimate(modification: &Write, partition_key: &Bytes, charges: &mut Charges) {
    let table = modification.table.as_ref();
    let value_bytes = |operation: &ColumnChange| match operation {
        ColumnChange::Set(Value::Bytes(bytes)) | ColumnChange::Sum(Some(bytes)) => CELL_BYTES + bytes.len(),
        ColumnChange::Set(_) | ColumnChange::Increment(_) | ColumnChange::SetAt(_, None) | ColumnChange::Sum(None) => {
            CELL_BYTES
        }
        ColumnChange::SetAt(_, Some(bytes)) => CELL_BYTES + bytes.len(),
        ColumnChange::Version => CELL_BYTES + size_of::<i64>(),
        ColumnChange::Replace(elements) => elements
            .iter()
            .map(|(path, value)| CELL_BYTES + path.as_ref().map_or(16, Bytes::len) + value.len())
            .sum(),
        ColumnChange::Put(elements) => elements
            .iter()
            .map(|(path, value)| CELL_BYTES + path.len() + value.as_ref().map_or(0, Bytes::len))
            .sum(),
        ColumnChange::Append(values) | ColumnChange::Prepend(values) => {
            values.iter().map(|value| CELL_BYTES + 16 + value.len()).sum()
        }
        ColumnChange::Remove(paths) => paths.iter().map(|path| CELL_BYTES + path.len()).sum(),
        ColumnChange::Discard(_) => 0,
    };
    let is_static = |place: usize| {
        let column = table.columns.get(place);
        column.is_some_and(|column| column.kind == ColumnKind::Static)
    };
    let how = how(modification);
    let mut one = |of_static: bool, clustering_bytes: usize| {
        let operations = modification.operations.iter();
        let mine = operations.filter(|(place, _)| is_static(*place) == of_static);
        let bytes: usize = mine.clone().map(|(_, operation)| value_bytes(operation)).sum();
        let reads = mine.clone().any(|(_, operation)| reads_before(operation)) && !table.is_counter;
        if reads {
            charges.look_before_write(0);
        }
        let written = |column: &Column| {
            mine.clone()
                .any(|(place, _)| table.columns.get(*place).is_some_and(|written| written.id == column.id))
        };
        let indexed = indexed(table, how, of_static, written);
        charges.write(
            how,
            KEY_BYTES + partition_key.len() + clustering_bytes + bytes,
            false,
            indexed,
        );
    };
    match &modification.target {
        WriteTarget::Static => one(true, 0),
        WriteTarget::Rows(rows) => {
            if modification.operations.iter().any(|(place, _)| is_static(*place)) {
                one(true, 0);
            }
            for clustering in rows {
                one(false, clustering.len());
            }
        }
        WriteTarget::Ranges(ranges) => {
            for _ in ranges {
                charges.write(RowWrite::Delete, 0, false, all_indexes(table));
            }
        }
        WriteTarget::Partition => charges.write(RowWrite::Delete, 0, false, all_indexes(table)),
    }
}

/// Bytes of a row's key excluding those of its values: table, token, ends.
const KEY_BYTES: usize = 15;

/// How a modification writes rows.
pub(super) fn how(modification: &Write) -> RowWrite {
    match modification.kind {
        WriteVerb::Delete if modification.operations.is_empty() => RowWrite::Delete,
        WriteVerb::Insert if !modification.table.is_counter => RowWrite::Insert,
        _ => RowWrite::Update,
    }
}

/// Indexed columns that a write of a row touches; a new or deleted row touches the index entries of its key as well.
/// `is_written` returns whether the write names a regular or static column.
pub(super) fn indexed(table: &Table, how: RowWrite, of_static: bool, is_written: impl Fn(&Column) -> bool) -> usize {
    if table.indexes.is_empty() {
        return 0;
    }
    if how == RowWrite::Delete {
        return all_indexes(table);
    }
    let is_touched = |column: &Column| match column.kind {
        ColumnKind::PartitionKey | ColumnKind::Clustering => how == RowWrite::Insert && !of_static,
        ColumnKind::Static | ColumnKind::Regular => is_written(column),
    };
    indexed_columns(table).filter(|column| is_touched(column)).count()
}

/// Columns for which an index stores entries.
fn indexed_columns(table: &Table) -> impl Iterator<Item = &Column> {
    let indexes = table.indexes.values().filter(|index| index.storage_id != 0);
    let columns = indexes.filter_map(|index| table.column(&index.target_column()?.1));
    columns.map(|(_, column)| column.as_ref())
}

/// How many indexed columns there are.
pub(super) fn all_indexes(table: &Table) -> usize {
    if table.indexes.is_empty() {
        0
    } else {
        indexed_columns(table).count()
    }
}
