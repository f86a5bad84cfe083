//! Counting a logical partition: bytes of its rows and of the index entries that they derive, and its tombstones.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::engine::index::rows::IndexedRows;
use crate::engine::value::key_components;
use crate::engine::{Error, storage_read};
use crate::partition::{Hosted, RowKey};
use helenus_schema::schema::Table;
use helenus_storage::storage::row::{CellRef, CellStateRef};
use helenus_storage::storage::{Derivation, Entries, Row, RowView};

/// The counted contents of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) bytes: u64,
    /// Deleted cells and elements, deleted rows without such, and two for each deleted range.
    pub(super) tombstones: u64,
}

/// The right to count, which one task has at a time. It is released however the task ends, by a panic too.
pub(super) struct CountPermit(Arc<AtomicBool>);

impl CountPermit {
    /// `None` means that another task has it.
    pub(super) fn take(is_taken: &Arc<AtomicBool>) -> Option<Self> {
        (!is_taken.swap(true, Ordering::Relaxed)).then(|| Self(Arc::clone(is_taken)))
    }
}

impl Drop for CountPermit {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// A partition key as CQL, cut where it is long. A key with masked columns ends in its checksum.
pub(crate) fn printed_key(table: &Table, key: &[u8]) -> String {
    const CHARACTERS_MAX: usize = 256;
    let values = key_components(key, table.partition_key_count);
    let columns = table.partition_key();
    let mut printed: Vec<String> = columns
        .iter()
        .zip(values)
        .map(|(column, value)| column.shown(value))
        .collect();
    if columns.iter().any(|column| column.mask.is_some()) {
        // Tells apart what the masks made equal.
        printed.push(format!("#{:08x}", crc32fast::hash(key)));
    }
    let printed = printed.join(", ");
    match printed.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", printed.get(..end).unwrap_or_default()),
        None => printed,
    }
}

/// Bytes of a partition's rows as they are stored, and of the index entries that they derive; and its tombstones.
pub(super) async fn count(partition: &Hosted, table: &Arc<Table>, partition_key: &[u8]) -> Result<Counted, Error> {
    let token = partition.token(partition_key);
    let logical = partition.logical(table.storage_id, token, partition_key)?;
    let indexed = IndexedRows::of(table);
    let mut found = Counted::default();
    let at = partition.now();
    let walked = logical.scan_all(&at, |passed| {
        found.bytes += passed.bytes() as u64;
        if let Ok(row) = RowView::parse(passed.value) {
            if let Some(indexed) = &indexed {
                found.bytes += entries_bytes(indexed, passed.key(), &row);
            }
            found.tombstones += tombstones(&row);
        }
        ControlFlow::Continue(())
    });
    walked.await.map_err(|error| storage_read(&error))?;
    let deletions = logical.deletions(&at).await;
    let deletions = deletions.map_err(|error| storage_read(&error))?;
    found.tombstones += u64::from(deletions.partition.is_some()) + 2 * deletions.ranges.len() as u64;
    Ok(found)
}

/// The tombstones of a stored row.
fn tombstones(row: &RowView<'_>) -> u64 {
    let is_dead = |cell: &CellRef<'_>| matches!(cell.state, CellStateRef::Tombstone { .. });
    let cells = row.cells().flatten().filter(is_dead).count() as u64;
    if cells == 0 {
        return u64::from(row.deletion().is_some());
    }
    cells
}

/// Bytes of the index entries that a write to a row can derive.
pub(crate) fn entries_of(table: &Arc<Table>, key: &RowKey, row: &Row) -> u64 {
    let Some(indexed) = IndexedRows::of(table) else {
        return 0;
    };
    let encoded = row.encode();
    RowView::parse(&encoded).map_or(0, |row| entries_bytes(&indexed, key.as_bytes(), &row))
}

fn entries_bytes(indexed: &IndexedRows, key: &[u8], row: &RowView<'_>) -> u64 {
    let mut entries = Entries::default();
    indexed.derive(key, row, &mut entries);
    let entries = entries.into_sorted();
    entries
        .iter()
        .map(|(key, value)| (key.len() + value.len()) as u64)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_gives_the_turn_to_count_back() {
        let is_taken = Arc::default();
        let permit = CountPermit::take(&is_taken).unwrap();
        assert!(CountPermit::take(&is_taken).is_none());
        let counted = std::panic::catch_unwind(move || {
            let _permit = permit;
            panic!("while it counts");
        });
        assert!(counted.is_err() && CountPermit::take(&is_taken).is_some());
    }
}
