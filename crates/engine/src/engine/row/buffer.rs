//! The values of the current row: an arena that is filled for each row and reused for the next.
//!
//! Values of the partition (its key, its static row) come first and stay from row to row; a row's own values follow
//! them.
//!
//! ```text
//! bytes  │ partition key components · static values │ clustering values · regular values │
//!                                            mark ──┘
//! slots  one for each column of the table: where its value lies in `bytes`, or null
//! ```

use crate::engine::value;
use crate::engine::{Error, storage_read};
use helenus_schema::schema::{ColumnKind, Table};
use helenus_storage::storage::{Damaged, Expiry, Marker, Record, RowView};

use super::layout::{Layout, Shape, Wanted};

/// The position of a value in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) start: usize,
    /// `usize::MAX` means null.
    pub(super) end: usize,
}

impl Slot {
    /// Whether there is no value.
    pub(super) const fn is_null(self) -> bool {
        self.end == usize::MAX
    }
}

const NULL: Slot = Slot {
    start: 0,
    end: usize::MAX,
};

/// The metadata of one live cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CellInfo {
    /// The column's position in `table.columns`.
    pub(crate) place: usize,
    /// The element's wire bytes in the arena; empty for a plain column.
    pub(super) path: Slot,
    /// Write time, µs.
    pub(crate) timestamp_micros: i64,
    /// `None` means that it does not expire.
    pub(crate) expiry: Option<Expiry>,
}

/// The current row.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowBuffer {
    pub(super) bytes: Vec<u8>,
    pub(super) slots: Vec<Slot>,
    pub(super) cells: Vec<CellInfo>,
    /// The marker that shows the row; only if the layout keeps metadata.
    pub(super) marker: Option<Marker>,
    mark: usize,
    cells_mark: usize,
    /// Deleted or expired cells since the count was last taken.
    dead_cells: u64,
}

impl RowBuffer {
    /// A buffer for rows of this layout.
    pub(crate) fn new(layout: &Layout) -> Self {
        Self {
            bytes: Vec::with_capacity(256),
            slots: vec![NULL; layout.columns],
            cells: Vec::new(),
            marker: None,
            mark: 0,
            cells_mark: 0,
            dead_cells: 0,
        }
    }

    /// Makes all values null, and forgets all cells.
    pub(super) fn clear_values(&mut self) {
        self.slots.fill(NULL);
        self.cells.clear();
        self.marker = None;
    }

    /// Takes the count of deleted or expired cells since the last call, including those of columns that are not needed.
    pub(crate) fn take_dead_cells(&mut self) -> u64 {
        std::mem::take(&mut self.dead_cells)
    }

    /// The value of the column at this position; `None` means null.
    pub(crate) fn get(&self, place: usize) -> Option<&[u8]> {
        let slot = self.slots.get(place)?;
        self.bytes.get(slot.start..slot.end)
    }

    /// The live cells of a column, sorted by path; only if the layout keeps metadata.
    pub(crate) fn cells(&self, place: usize) -> impl Iterator<Item = (CellInfo, &[u8])> {
        self.cells.iter().filter(move |cell| cell.place == place).map(|cell| {
            (
                *cell,
                self.bytes.get(cell.path.start..cell.path.end).unwrap_or_default(),
            )
        })
    }

    /// The marker that shows the row; only if the layout keeps metadata. `None` means that its cells show it.
    pub(crate) const fn marker(&self) -> Option<Marker> {
        self.marker
    }

    fn set(&mut self, place: usize, start: usize) {
        let end = self.bytes.len();
        if let Some(slot) = self.slots.get_mut(place) {
            *slot = Slot { start, end };
        }
    }

    /// Sets the value at a position; used for rows that are not stored.
    pub(crate) fn put(&mut self, place: usize, bytes: Option<&[u8]>) {
        if let Some(bytes) = bytes {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(bytes);
            self.set(place, start);
        }
    }

    /// Starts a partition: clears everything, then takes the key's components.
    ///
    /// # Errors
    /// The key has fewer components than the table's.
    pub(crate) fn begin_partition(
        &mut self,
        table: &Table,
        layout: &Layout,
        partition_key: &[u8],
    ) -> Result<(), Damaged> {
        self.bytes.clear();
        self.cells.clear();
        self.slots.fill(NULL);
        if !layout.partition_key.is_empty() {
            let mut components = 0;
            for (place, component) in value::key_components(partition_key, table.partition_key_count).enumerate() {
                if layout.partition_key.contains(&place) {
                    self.put(place, Some(component));
                }
                components += 1;
            }
            if components < table.partition_key_count {
                return Err(Damaged {
                    record: Record::Key,
                    what: "its partition key has too few components",
                });
            }
        }
        self.mark = self.bytes.len();
        self.cells_mark = 0;
        Ok(())
    }

    /// Takes the partition's static row. Returns whether any column has a value.
    pub(crate) fn set_static(
        &mut self,
        layout: &Layout,
        view: &RowView<'_>,
        shadowed_to: Option<i64>,
        now_seconds: i64,
    ) -> Result<bool, Error> {
        let live = self.take_cells(&layout.statics, view, shadowed_to, None, now_seconds, layout.metadata)?;
        self.mark = self.bytes.len();
        self.cells_mark = self.cells.len();
        Ok(live)
    }

    /// Clears the previous row, but keeps the partition.
    pub(crate) fn begin_row(&mut self, table: &Table, layout: &Layout) {
        self.bytes.truncate(self.mark);
        self.cells.truncate(self.cells_mark);
        self.marker = None;
        let keys = table.partition_key_count;
        if let Some(clustering) = self.slots.get_mut(keys..keys + table.clustering_count) {
            clustering.fill(NULL);
        }
        for wanted in &layout.regulars {
            if let Some(slot) = self.slots.get_mut(wanted.place) {
                *slot = NULL;
            }
        }
    }

    /// Decodes the clustering columns from an encoded clustering key.
    pub(crate) fn set_clustering(&mut self, table: &Table, layout: &Layout, clustering: &[u8]) -> Result<(), Error> {
        let mut rest = clustering;
        for (number, column) in table.clustering().iter().take(layout.clustering).enumerate() {
            // Rows of a table with COMPACT STORAGE may name its first clustering columns only: the others are null.
            if rest.is_empty() && number > 0 {
                break;
            }
            let start = self.bytes.len();
            value::decode_key(&column.ty, &mut rest, column.key_order(), &mut self.bytes)?;
            self.set(table.partition_key_count + number, start);
        }
        Ok(())
    }

    /// Takes a row's cells. Returns whether the row exists: a live marker or a live cell of a column that still exists.
    pub(crate) fn set_row(
        &mut self,
        layout: &Layout,
        view: &RowView<'_>,
        shadowed_to: Option<i64>,
        now_seconds: i64,
    ) -> Result<bool, Error> {
        let marker = view
            .marker()
            .filter(|marker| shadowed_to.is_none_or(|to| marker.timestamp > to));
        let marked = marker.is_some_and(|marker| marker.is_live(now_seconds));
        if layout.metadata {
            self.marker = marker.filter(|_| marked);
        }
        let passed_over_before = marker.map(|marker| marker.timestamp).filter(|_| layout.passes_over);
        let live = self.take_cells(
            &layout.regulars,
            view,
            shadowed_to,
            passed_over_before,
            now_seconds,
            layout.metadata,
        )?;
        Ok(marked || live)
    }

    fn take_cells(
        &mut self,
        wanted: &[Wanted],
        view: &RowView<'_>,
        shadowed_to: Option<i64>,
        passed_over_before: Option<i64>,
        now_seconds: i64,
        metadata: bool,
    ) -> Result<bool, Error> {
        let mut live = false;
        let mut columns = wanted.iter();
        let mut column: Option<&Wanted> = columns.next();
        // The multi-cell value under construction: its column, where it starts, how many elements it has.
        let mut open: Option<(&Wanted, usize, u32)> = None;
        for cell in view.cells() {
            let cell = cell.map_err(|error| storage_read(&error))?;
            if shadowed_to.is_some_and(|to| cell.timestamp <= to) {
                continue;
            }
            if !cell.is_live(now_seconds) {
                self.dead_cells += 1;
            }
            while column.is_some_and(|wanted| wanted.id < cell.column) {
                column = columns.next();
            }
            let Some(found) = column.filter(|wanted| wanted.id == cell.column) else {
                continue;
            };
            if found.hidden_up_to.is_some_and(|to| cell.timestamp <= to) {
                continue;
            }
            let Some(bytes) = cell.live_value(now_seconds) else {
                continue;
            };
            let Some(shape) = &found.shape else {
                live |= passed_over_before.is_none_or(|marker| cell.timestamp >= marker);
                continue;
            };
            live = true;
            if open.is_some_and(|(at, ..)| at.id != found.id) {
                self.close(open.take());
            }
            let start = self.bytes.len();
            if *shape == Shape::Plain {
                self.bytes.extend_from_slice(bytes);
                self.set(found.place, start);
                if metadata {
                    self.note(found.place, Slot { start: 0, end: 0 }, cell.timestamp, expiry_of(&cell));
                }
                continue;
            }
            if open.is_none() {
                self.bytes.extend_from_slice(&[0; 4]);
                open = Some((found, start, 0));
            }
            let path = self.take_element(
                shape,
                cell.path.unwrap_or_default(),
                bytes,
                open.map_or(0, |(.., count)| count),
            )?;
            if let Some((_, _, count)) = &mut open {
                *count = path.1;
            }
            if metadata {
                self.note(found.place, path.0, cell.timestamp, expiry_of(&cell));
            }
        }
        self.close(open);
        Ok(live)
    }

    /// Appends one element to the value under construction. Returns the position of its path, and the number of
    /// elements so far.
    fn take_element(&mut self, shape: &Shape, path: &[u8], bytes: &[u8], count: u32) -> Result<(Slot, u32), Error> {
        let path_slot = match shape {
            Shape::Plain | Shape::List => {
                self.length_prefixed(bytes);
                Slot { start: 0, end: 0 }
            }
            Shape::Set(element) => self.length_prefixed_key(element, path)?,
            Shape::Map(key) => {
                let slot = self.length_prefixed_key(key, path)?;
                self.length_prefixed(bytes);
                slot
            }
            Shape::User(_) => {
                let field = path
                    .first_chunk::<2>()
                    .map_or(0, |number| u32::from(u16::from_be_bytes(*number)));
                for _ in count..field {
                    self.bytes.extend_from_slice(&(-1_i32).to_be_bytes());
                }
                self.length_prefixed(bytes);
                // Fields have no path of their own in the value; metadata finds them by number.
                return Ok((
                    Slot {
                        start: usize::try_from(field).unwrap_or(0),
                        end: 0,
                    },
                    field + 1,
                ));
            }
        };
        Ok((path_slot, count + 1))
    }

    fn length_prefixed(&mut self, bytes: &[u8]) {
        let length = i32::try_from(bytes.len()).unwrap_or(i32::MAX);
        self.bytes.extend_from_slice(&length.to_be_bytes());
        self.bytes.extend_from_slice(bytes);
    }

    fn length_prefixed_key(&mut self, ty: &helenus_types::types::CqlType, key: &[u8]) -> Result<Slot, Error> {
        let length_at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        let start = self.bytes.len();
        let mut rest = key;
        value::decode_key(ty, &mut rest, false, &mut self.bytes)?;
        let end = self.bytes.len();
        self.patch(length_at, end - start);
        Ok(Slot { start, end })
    }

    fn patch(&mut self, at: usize, number: usize) {
        let number = i32::try_from(number).unwrap_or(i32::MAX);
        if let Some(target) = self.bytes.get_mut(at..at + 4) {
            target.copy_from_slice(&number.to_be_bytes());
        }
    }

    /// Ends a multi-cell value: writes its number of elements, or fills up a user-defined type's fields.
    fn close(&mut self, open: Option<(&Wanted, usize, u32)>) {
        let Some((wanted, start, count)) = open else { return };
        if let Some(Shape::User(fields)) = wanted.shape {
            for _ in usize::try_from(count).unwrap_or(0)..fields {
                self.bytes.extend_from_slice(&(-1_i32).to_be_bytes());
            }
            // Its value has no count: the four bytes reserved for a count stay in the arena before it.
            self.set(wanted.place, start + 4);
        } else {
            self.patch(start, usize::try_from(count).unwrap_or(usize::MAX));
            self.set(wanted.place, start);
        }
    }

    fn note(&mut self, place: usize, path: Slot, timestamp_micros: i64, expiry: Option<Expiry>) {
        self.cells.push(CellInfo {
            place,
            path,
            timestamp_micros,
            expiry,
        });
    }
}

impl CellInfo {
    /// The number of the user-defined type's field that this cell belongs to.
    pub(crate) fn field(&self) -> usize {
        self.path.start
    }
}

fn expiry_of(cell: &helenus_storage::storage::row::CellRef<'_>) -> Option<Expiry> {
    match cell.state {
        helenus_storage::storage::row::CellStateRef::Live { expiry, .. } => expiry,
        helenus_storage::storage::row::CellStateRef::Tombstone { .. } => None,
    }
}

/// Whether a column's value belongs to the partition rather than to a row.
pub(crate) fn is_of_partition(table: &Table, place: usize) -> bool {
    table
        .columns
        .get(place)
        .is_some_and(|column| matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Static))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use helenus_schema::schema::{Column, TableOptions};
    use helenus_types::types::{CqlType, Native};

    #[test]
    fn a_partition_key_with_too_few_parts_is_damaged() {
        let column = |name: &str| {
            Arc::new(Column {
                id: 0,
                name: name.to_owned(),
                ty: CqlType::Native(Native::Blob),
                kind: ColumnKind::PartitionKey,
                position: 0,
                descending: false,
                by_utf16: false,
                mask: None,
            })
        };
        let table = Table {
            id: uuid::Uuid::nil(),
            storage_id: 1,
            keyspace: "ks".to_owned(),
            name: "t".to_owned(),
            columns: vec![column("a"), column("b")],
            partition_key_count: 2,
            clustering_count: 0,
            is_counter: false,
            is_virtual: false,
            compact_storage: false,
            options: TableOptions::default(),
            indexes: std::collections::BTreeMap::new(),
            triggers: std::collections::BTreeMap::new(),
            dropped: std::collections::BTreeMap::new(),
            next_column_id: 2,
        };
        let layout = Layout::new(&table, [0, 1], false);
        let mut buffer = RowBuffer::new(&layout);
        let key = value::join_key([&b"x"[..], b"y"].into_iter());
        assert_eq!(buffer.begin_partition(&table, &layout, &key), Ok(()));
        let refused = buffer
            .begin_partition(&table, &layout, &key[..key.len() - 4])
            .unwrap_err();
        assert_eq!(refused.record, Record::Key);
    }
}
