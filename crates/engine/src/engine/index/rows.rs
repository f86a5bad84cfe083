//! The entries of a stored row in the indexes of its table.
//!
//! Entries do not depend on the current time. A cell that expires has its entry until it is replaced or purged. A
//! tombstone has none. Cells that a partition or range deletion hides keep their entries until they are purged. Indexes
//! on columns of the key have entries for every row that has a marker or a value. Those on columns of the partition key
//! have entries for the static row too, since a partition may have only that one. So has the change feed, which is kept
//! as one more index: its value is the position of the row's last change.

use std::sync::Arc;

use crate::engine::row::layout::Shape;
use crate::engine::value;
use crate::partition::feed;
use helenus_schema::schema::{ColumnKind, IndexPart, IndexTarget, StorageId, Table};
use helenus_storage::storage::key::{self, RowKind};
use helenus_storage::storage::row::CellStateRef;
use helenus_storage::storage::{ColumnId, Derivation, Entries, KEY_BYTES_MAX, Result, Row, RowView, TooLong};
use helenus_types::types::{CqlType, list_elements, map_entries};

/// The indexes of one table.
#[derive(Debug)]
pub(crate) struct IndexedRows {
    table: Arc<Table>,
    /// By the number of the component.
    of_partition_key: Vec<(usize, IndexTarget)>,
    /// By the number of the clustering column.
    of_clustering: Vec<(usize, IndexTarget)>,
    of_cells: Vec<OfCells>,
    /// The number of the change feed. `None` means that the table has none.
    feed: Option<StorageId>,
}

/// An index on a static or regular column.
#[derive(Debug)]
struct OfCells {
    id: ColumnId,
    /// As a read hides cells: [`Table::hidden_up_to`].
    hidden_up_to: Option<i64>,
    kind: RowKind,
    shape: Shape,
    target: IndexTarget,
}

impl OfCells {
    fn is_of(&self, column: ColumnId, timestamp: i64) -> bool {
        self.id == column && self.hidden_up_to.is_none_or(|to| timestamp > to)
    }
}

impl IndexedRows {
    /// The derivation of a table's index entries. `None` means that it has no index with entries.
    pub(crate) fn of(table: &Arc<Table>) -> Option<Self> {
        let mut rows = Self {
            table: Arc::clone(table),
            of_partition_key: Vec::new(),
            of_clustering: Vec::new(),
            of_cells: Vec::new(),
            feed: table.feed(),
        };
        for target in table.indexes.values().filter_map(|index| index.target(table)) {
            let Some(column) = table.columns.get(target.column) else {
                continue;
            };
            let of_kind = |kind| OfCells {
                id: ColumnId(column.id),
                hidden_up_to: table.hidden_up_to(column),
                kind,
                shape: Shape::of(&column.ty),
                target: target.clone(),
            };
            match column.kind {
                ColumnKind::PartitionKey => rows.of_partition_key.push((target.column, target)),
                ColumnKind::Clustering => {
                    let number = target.column.saturating_sub(table.partition_key_count);
                    rows.of_clustering.push((number, target));
                }
                ColumnKind::Static => rows.of_cells.push(of_kind(RowKind::Static)),
                ColumnKind::Regular => rows.of_cells.push(of_kind(RowKind::Row)),
            }
        }
        let has_indexes =
            !rows.of_partition_key.is_empty() || !rows.of_clustering.is_empty() || !rows.of_cells.is_empty();
        (has_indexes || rows.feed.is_some()).then_some(rows)
    }

    /// The entries of a row that no index can store, because they are longer than a key of the store.
    ///
    /// # Errors
    /// The row cannot be decoded.
    pub(crate) fn left_out(&self, key: &[u8], row: &Row) -> Result<Vec<TooLong>> {
        let encoded = row.encode();
        let view = RowView::parse(&encoded)?;
        let mut entries = Entries::default();
        self.derive(key, &view, &mut entries);
        Ok(entries.too_long().to_vec())
    }

    /// The entry of a row that shows: its position, by the part of the ring in which it lies.
    fn derive_feed(id: StorageId, key: &[u8], row: &RowView<'_>, entries: &mut Entries) {
        let place = row.position().zip(feed::arc_of(key));
        if let Some((position, arc)) = place.filter(|_| shows(row)) {
            let value = feed::value(arc, position);
            entries.add(id, &value, value.len(), key);
        }
    }

    fn derive_from_key(&self, key: &[u8], row: &RowView<'_>, entries: &mut Entries) {
        let Some(parsed) = key::parse(key).ok().filter(|_| shows(row)) else {
            return;
        };
        let components: Vec<&[u8]> =
            value::key_components(&parsed.partition_key, self.table.partition_key_count).collect();
        for (number, target) in &self.of_partition_key {
            if let Some(component) = components.get(*number) {
                put_value(target, component, key, entries);
            }
        }
        if parsed.kind == RowKind::Static {
            return;
        }
        let mut rest = parsed.clustering;
        for (number, column) in self.table.clustering().iter().enumerate() {
            if self.of_clustering.iter().all(|(of, _)| *of < number) {
                return;
            }
            let mut bytes = Vec::new();
            if value::decode_key(&column.ty, &mut rest, column.key_order(), &mut bytes).is_err() {
                return;
            }
            for (_, target) in self.of_clustering.iter().filter(|(of, _)| *of == number) {
                put_whole(&self.table, target, &bytes, key, entries);
            }
        }
    }
}

impl Derivation for IndexedRows {
    fn has_feed(&self) -> bool {
        self.feed.is_some()
    }

    fn log(&self) -> Option<StorageId> {
        self.table.log()
    }

    fn derive(&self, key: &[u8], row: &RowView<'_>, entries: &mut Entries) {
        if let Some(id) = self.feed {
            Self::derive_feed(id, key, row, entries);
        }
        if !self.of_partition_key.is_empty() || !self.of_clustering.is_empty() {
            self.derive_from_key(key, row, entries);
        }
        if self.of_cells.is_empty() {
            return;
        }
        let Some(kind) = key::kind_of(key) else { return };
        for cell in row.cells() {
            // A row that is damaged further on is refused by the read.
            let Ok(cell) = cell else { return };
            let CellStateRef::Live { value: bytes, .. } = cell.state else {
                continue;
            };
            let indexes = self.of_cells.iter().filter(|of| of.kind == kind);
            for of in indexes.filter(|of| of.is_of(cell.column, cell.timestamp)) {
                let path = cell.path.unwrap_or_default();
                put_cell(&self.table, of, path, bytes, key, entries);
            }
        }
    }
}

/// Whether a row has a marker or a value.
fn shows(row: &RowView<'_>) -> bool {
    row.marker().is_some()
        || row
            .cells()
            .any(|cell| cell.is_ok_and(|cell| matches!(cell.state, CellStateRef::Live { .. })))
}

/// Whether the row of this key can have an entry of an encoded value of so many bytes.
pub(crate) fn entry_fits(encoded_bytes: usize, key: &[u8]) -> bool {
    encoded_bytes + key.len() <= KEY_BYTES_MAX
}

fn put_value(target: &IndexTarget, value: &[u8], key: &[u8], entries: &mut Entries) {
    target.encode_value(value, &mut |encoded| {
        entries.add(target.storage_id, &encoded, value.len(), key);
    });
}

/// A key of a map with its value.
fn put_entry(target: &IndexTarget, map_key: &[u8], value: &[u8], key: &[u8], entries: &mut Entries) {
    if let Some(encoded) = target.encode_entry(map_key, value) {
        // As in Cassandra's `CompositeType`: each with a length of two bytes and an end of one.
        entries.add(target.storage_id, &encoded, map_key.len() + value.len() + 6, key);
    }
}

/// A cell of a column, by how the column is kept.
fn put_cell(table: &Table, of: &OfCells, path: &[u8], bytes: &[u8], key: &[u8], entries: &mut Entries) {
    let target = &of.target;
    let element = |ty| {
        let (mut rest, mut element) = (path, Vec::new());
        value::decode_key(ty, &mut rest, false, &mut element)
            .ok()
            .map(|()| element)
    };
    match (&of.shape, target.part) {
        (Shape::Plain, _) => put_whole(table, target, bytes, key, entries),
        (Shape::List, _) | (Shape::Map(_), IndexPart::Values | IndexPart::Value) => {
            put_value(target, bytes, key, entries)
        }
        (Shape::Set(ty), _) | (Shape::Map(ty), IndexPart::Keys | IndexPart::Full) => {
            if let Some(element) = element(ty) {
                put_value(target, &element, key, entries);
            }
        }
        (Shape::Map(ty), IndexPart::Entries) => {
            if let Some(element) = element(ty) {
                put_entry(target, &element, bytes, key, entries);
            }
        }
        // Cassandra refuses indexes on user-defined types that are not frozen.
        (Shape::User(_), _) => {}
    }
}

/// A value that is stored as one: as it is, or a frozen collection's elements.
fn put_whole(table: &Table, target: &IndexTarget, bytes: &[u8], key: &[u8], entries: &mut Entries) {
    match target.part {
        IndexPart::Value | IndexPart::Full => put_value(target, bytes, key, entries),
        IndexPart::Keys => {
            for (map_key, _) in map_entries(bytes).unwrap_or_default() {
                put_value(target, map_key, key, entries);
            }
        }
        IndexPart::Entries => {
            for (map_key, value) in map_entries(bytes).unwrap_or_default() {
                put_entry(target, map_key, value, key, entries);
            }
        }
        IndexPart::Values if is_map(table, target) => {
            for (_, value) in map_entries(bytes).unwrap_or_default() {
                put_value(target, value, key, entries);
            }
        }
        IndexPart::Values => {
            for element in list_elements(bytes).unwrap_or_default() {
                put_value(target, element, key, entries);
            }
        }
    }
}

fn is_map(table: &Table, target: &IndexTarget) -> bool {
    let column = table.columns.get(target.column);
    column.is_some_and(|column| matches!(column.ty.unfrozen(), CqlType::Map(..)))
}
