//! Turns a modification into partial rows, which a store merges with its own.

use crate::engine::refusal::{ListRefusal, SumRefusal};
use bytes::Bytes;

use crate::engine::row::layout::Shape;
use crate::engine::{Error, value};
use helenus_base::mutant::{self, Mutant};
use helenus_schema::command::{ColumnChange, Value};
use helenus_schema::schema::Column;
use helenus_storage::storage::{Cell, CellState, ColumnId, Deletion, Expiry, Marker, Row};
use helenus_types::functions::sum;
use helenus_types::types::CqlType;

use crate::engine::terms::clock::ListKeys;

/// The time of a write, and its time to live.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    /// µs.
    pub(crate) timestamp_micros: i64,
    /// The time of the write, in seconds, from which expiry and grace count.
    pub(crate) now_seconds: i64,
    /// Seconds to live. `None` means that it does not expire.
    pub(crate) ttl_seconds: Option<u32>,
}

impl Stamp {
    /// When it expires. `None` means never.
    pub(super) fn expiry(&self) -> Option<Expiry> {
        self.ttl_seconds.map(|ttl_seconds| Expiry {
            at_seconds: self.now_seconds.saturating_add(i64::from(ttl_seconds)),
            ttl_seconds,
        })
    }

    /// The marker of an INSERT.
    pub(crate) fn marker(&self) -> Marker {
        Marker {
            timestamp: self.timestamp_micros,
            expiry: self.expiry(),
        }
    }

    /// A deletion by this write.
    pub(crate) fn deletion(&self) -> Deletion {
        Deletion {
            timestamp: self.timestamp_micros,
            at_seconds: self.now_seconds,
        }
    }
}

/// Builds the partial row of one row.
pub(crate) struct FragmentWriter<'a> {
    /// The time of the write.
    pub(crate) stamp: Stamp,
    /// The source of list elements' keys.
    pub(crate) list_keys: &'a ListKeys,
    /// The stored row, for operations that read before they write.
    pub(crate) stored: Option<&'a Row>,
    /// Whether this is a DELETE of columns: a multi-cell column is then deleted at the write's own time, not just
    /// before it.
    pub(crate) deletes: bool,
}

impl FragmentWriter<'_> {
    /// Adds an operation on a column to the partial row.
    ///
    /// # Errors
    /// When a list position does not exist.
    pub(crate) fn apply(&self, row: &mut Row, column: &Column, operation: &ColumnChange) -> Result<(), Error> {
        match operation {
            ColumnChange::Set(Value::Unset) => {}
            ColumnChange::Set(Value::Null) => self.kill(row, column, None),
            ColumnChange::Set(Value::Bytes(bytes)) => self.put(row, column, None, bytes.clone()),
            ColumnChange::Replace(elements) => self.replace(row, column, elements),
            ColumnChange::Put(elements) => {
                let shape = Shape::of(&column.ty);
                for (element, bytes) in elements {
                    let path = path(&shape, element);
                    match bytes {
                        Some(bytes) => self.put(row, column, Some(path), bytes.clone()),
                        None => self.kill(row, column, Some(path)),
                    }
                }
            }
            ColumnChange::Remove(elements) => {
                let shape = Shape::of(&column.ty);
                for element in elements {
                    self.kill(row, column, Some(path(&shape, element)));
                }
            }
            ColumnChange::Append(values) => {
                for (bytes, key) in values.iter().zip(self.list_keys.append(values.len())) {
                    self.put(row, column, Some(key), bytes.clone());
                }
            }
            ColumnChange::Prepend(values) => {
                for (bytes, key) in values.iter().zip(self.list_keys.prepend(values.len())) {
                    self.put(row, column, Some(key), bytes.clone());
                }
            }
            ColumnChange::SetAt(position, bytes) => self.set_at(row, column, *position, bytes.as_ref())?,
            ColumnChange::Discard(values) => {
                let CqlType::List(element) = &column.ty else {
                    return Ok(());
                };
                for (path, bytes) in self.stored_elements(column) {
                    if values.iter().any(|value| element.compare(&bytes, value).is_eq()) {
                        self.kill(row, column, Some(path));
                    }
                }
            }
            ColumnChange::Increment(by) => self.increment(row, column, *by),
            ColumnChange::Sum(by) => self.sum(row, column, by.as_ref())?,
            ColumnChange::Version => {
                let version = self.stamp.timestamp_micros.to_be_bytes();
                self.put(row, column, None, Bytes::copy_from_slice(&version));
            }
        }
        Ok(())
    }

    /// Deletes the elements of a collection and writes others.
    fn replace(&self, row: &mut Row, column: &Column, elements: &[(Option<Bytes>, Bytes)]) {
        // Just before the write, so that the new elements are not deleted with the old ones (Cassandra's
        // deletion for overwrite).
        let timestamp = self.stamp.timestamp_micros - i64::from(!self.deletes);
        let deletion = Deletion {
            timestamp,
            ..self.stamp.deletion()
        };
        if !mutant::is_on(Mutant::OverwriteKeepsElements) {
            row.complex.push((ColumnId(column.id), deletion));
        }
        let keys = self.list_keys.append(elements.len());
        for ((element, bytes), key) in elements.iter().zip(keys) {
            let path = match (element, Shape::of(&column.ty)) {
                (Some(element), shape) => path(&shape, element),
                (None, _) => key,
            };
            self.put(row, column, Some(path), bytes.clone());
        }
    }

    fn put(&self, row: &mut Row, column: &Column, path: Option<Bytes>, value: Bytes) {
        row.cells.push(Cell {
            column: ColumnId(column.id),
            path,
            timestamp: self.stamp.timestamp_micros,
            state: CellState::Live {
                value,
                expiry: self.stamp.expiry(),
            },
        });
    }

    fn kill(&self, row: &mut Row, column: &Column, path: Option<Bytes>) {
        row.cells.push(Cell {
            column: ColumnId(column.id),
            path,
            timestamp: self.stamp.timestamp_micros,
            state: CellState::Tombstone {
                at_seconds: self.stamp.now_seconds,
            },
        });
    }

    /// The live elements of a stored list: paths and values, in order.
    fn stored_elements(&self, column: &Column) -> Vec<(Bytes, Bytes)> {
        let cells = self.stored.map(|row| row.cells.as_slice()).unwrap_or_default();
        let mine = cells
            .iter()
            .filter(|cell| cell.column.0 == column.id && cell.is_live(self.stamp.now_seconds));
        mine.filter_map(|cell| match (&cell.path, &cell.state) {
            (Some(path), CellState::Live { value, .. }) => Some((path.clone(), value.clone())),
            _ => None,
        })
        .collect()
    }

    fn set_at(&self, row: &mut Row, column: &Column, position: i32, value: Option<&Bytes>) -> Result<(), Error> {
        let elements = self.stored_elements(column);
        if elements.is_empty() {
            let what = if self.deletes {
                ListRefusal::DeleteOfNull
            } else {
                ListRefusal::SetOfNull
            };
            return Err(what.into());
        }
        let found = usize::try_from(position).ok().and_then(|place| elements.get(place));
        let Some((path, _)) = found else {
            let size = elements.len();
            return Err(ListRefusal::Position { position, size }.into());
        };
        match value {
            Some(value) => self.put(row, column, Some(path.clone()), value.clone()),
            None => self.kill(row, column, Some(path.clone())),
        }
        Ok(())
    }

    /// Adds to a number or a text. One that is not there stays so, as in Cassandra.
    fn sum(&self, row: &mut Row, column: &Column, by: Option<&Bytes>) -> Result<(), Error> {
        let cells = self.stored.map(|row| row.cells.as_slice()).unwrap_or_default();
        let mut mine = cells
            .iter()
            .filter(|cell| cell.column.0 == column.id && cell.is_live(self.stamp.now_seconds));
        let Some(CellState::Live { value, .. }) = mine.next().map(|cell| &cell.state) else {
            return Ok(());
        };
        let Some(by) = by else {
            return Err(SumRefusal::Null(column.name.clone()).into());
        };
        match sum(&column.ty, value, by) {
            Some(sum) => self.put(row, column, None, sum),
            None => return Err(SumRefusal::Impossible(column.name.clone()).into()),
        }
        Ok(())
    }

    /// Adds to a counter. One whose cell was deleted stays deleted, as in Cassandra, where such a tombstone outlives
    /// every increment.
    ///
    /// Differs: after a deletion of its row or partition a counter starts again from 0; in Cassandra it may continue
    /// from the deleted value, which it calls undefined.
    fn increment(&self, row: &mut Row, column: &Column, by: i64) {
        let cell = self
            .stored
            .and_then(|stored| stored.cells.iter().find(|cell| cell.column.0 == column.id));
        let (before, newest) = match cell {
            None => (0, i64::MIN),
            Some(cell) => match &cell.state {
                CellState::Tombstone { .. } => return,
                CellState::Live { value, .. } => (
                    value.first_chunk().map_or(0, |bytes| i64::from_be_bytes(*bytes)),
                    cell.timestamp,
                ),
            },
        };
        row.cells.push(Cell {
            column: ColumnId(column.id),
            path: None,
            timestamp: self.stamp.timestamp_micros.max(newest.saturating_add(1)),
            state: CellState::Live {
                value: Bytes::copy_from_slice(&before.wrapping_add(by).to_be_bytes()),
                expiry: None,
            },
        });
    }
}

/// The path of an element's cell.
fn path(shape: &Shape, element: &Bytes) -> Bytes {
    match shape {
        Shape::Set(ty) | Shape::Map(ty) => value::element_path(ty, element),
        Shape::Plain | Shape::List | Shape::User(_) => element.clone(),
    }
}

/// Whether an operation must read the stored row.
pub(crate) fn reads_before(operation: &ColumnChange) -> bool {
    matches!(
        operation,
        ColumnChange::SetAt(..) | ColumnChange::Discard(_) | ColumnChange::Increment(_) | ColumnChange::Sum(_)
    )
}
