//! The output of a read: rows are passed to the front end at once, or kept until their order is known.

use bytes::Bytes;

use super::Sink;
use crate::engine::Error;
use crate::engine::read::aside;
use crate::engine::read::nearest::NearestRows;
use crate::engine::read::order::{self, Sortable};
use crate::engine::read::row_sink::RowSink;
use crate::engine::read::system_columns::with_system_columns;
use crate::engine::row::buffer::RowBuffer;
use helenus_schema::command::{Read, json_row};

/// Memory of a row that is kept, excluding its bytes: its entry, and the headers of its allocations.
const ASIDE_BYTES: usize = 96;

/// When a row is passed on.
pub(super) enum Turn {
    /// At once.
    Now,
    /// When all rows are sorted by these values.
    Sorted(Vec<Option<Bytes>>),
    /// If it is among the nearest rows in the end. Holds its score.
    Nearest(f32),
}

/// The rows passed on so far, and those that are kept.
pub(super) struct Given<'a, R> {
    rows: &'a mut R,
    /// How many rows are in the page.
    pub(super) count: u32,
    /// Bytes that the front end took for them.
    pub(super) bytes: usize,
    sorted: Vec<Sortable>,
    /// The rows nearest to a vector. `None` means that the statement is no ANN search.
    pub(super) nearest: Option<NearestRows<'a>>,
    /// Bytes of rows in `sorted` or `nearest`.
    aside_bytes: usize,
}

impl<'a, R: RowSink> Given<'a, R> {
    pub(super) fn new(read: &'a Read, rows: &'a mut R, bytes_ahead: usize) -> Self {
        rows.reserve(bytes_ahead);
        Self {
            rows,
            count: 0,
            bytes: 0,
            sorted: Vec::new(),
            nearest: NearestRows::of(read),
            aside_bytes: 0,
        }
    }

    /// Takes a row.
    fn take<'c>(&mut self, cells: impl Iterator<Item = Option<&'c [u8]>> + Clone, turn: Turn) {
        match turn {
            Turn::Now => {
                self.count += 1;
                self.bytes += self.rows.row(cells);
            }
            Turn::Sorted(keys) => {
                let row = aside::pack(cells);
                let keys_bytes: usize = keys.iter().flatten().map(Bytes::len).sum();
                // While the rows are merged into the page, the row exists twice.
                self.aside_bytes += ASIDE_BYTES + keys_bytes + 2 * row.len();
                self.count += 1;
                self.sorted.push((keys, row));
            }
            Turn::Nearest(score) => {
                let Some(nearest) = &mut self.nearest else { return };
                let row = aside::pack(cells);
                self.aside_bytes += ASIDE_BYTES + 2 * row.len();
                let pushed_out = nearest.keep(score, row);
                self.aside_bytes -= pushed_out.map_or(0, |row| ASIDE_BYTES + 2 * row.len());
            }
        }
    }
}

impl<R: RowSink> Sink<'_, R> {
    /// Emits a row.
    pub(super) fn emit_row(&mut self, row: &RowBuffer) -> Result<(), Error> {
        let turn = match &self.given.nearest {
            None => self.turn(row),
            Some(nearest) => match nearest.score(row.get(nearest.column())) {
                None => return Ok(()),
                Some(score) => Turn::Nearest(score),
            },
        };
        if let Some(places) = &self.shape.plain {
            self.use_up_limit();
            self.given.take(places.iter().map(|place| row.get(*place)), turn);
            return self.need_room();
        }
        let values = self.scope(row).evaluate_all(&self.select.selection.expressions)?;
        if let Some(columns) = self
            .select
            .selection
            .json_columns
            .as_ref()
            .filter(|_| self.shows_system_columns)
        {
            self.use_up_limit();
            let object = json_row(columns.iter().zip(&values));
            let object = with_system_columns(object, self.table, row);
            self.given.take(std::iter::once(Some(object.as_bytes())), turn);
            return self.need_room();
        }
        self.emit_values(&values, turn)
    }

    /// Emits a row of computed values.
    pub(super) fn emit_values(&mut self, values: &[Option<Bytes>], turn: Turn) -> Result<(), Error> {
        self.use_up_limit();
        if let Some(columns) = &self.select.selection.json_columns {
            let row = json_row(columns.iter().zip(values));
            self.given.take(std::iter::once(Some(row.as_bytes())), turn);
        } else {
            self.given.take(values.iter().map(Option::as_deref), turn);
        }
        self.need_room()
    }

    /// When a row is passed on, except in an ANN search.
    pub(super) fn turn(&self, row: &RowBuffer) -> Turn {
        if self.select.sort.is_empty() {
            return Turn::Now;
        }
        let places = self.select.sort.iter().map(|(place, _)| *place);
        Turn::Sorted(places.map(|place| row.get(place).map(Bytes::copy_from_slice)).collect())
    }

    /// LIMIT counts a row that is passed on at once. Of the rows that are kept it takes the first ones in the end.
    fn use_up_limit(&mut self) {
        if let Some(left) = &mut self.limits.rows
            && self.select.sort.is_empty()
            && self.given.nearest.is_none()
        {
            *left = left.saturating_sub(1);
        }
    }

    /// Passes on the rows that were kept.
    pub(super) fn give_aside(&mut self) {
        let given = &mut self.given;
        if !self.select.sort.is_empty() {
            order::sort(&mut given.sorted, self.table, &self.select.sort);
            let wanted = self.limits.rows.and_then(|rows| usize::try_from(rows).ok());
            given.sorted.truncate(wanted.unwrap_or(usize::MAX));
            given.count = u32::try_from(given.sorted.len()).unwrap_or(u32::MAX);
            for (_, row) in &given.sorted {
                given.bytes += given.rows.row(aside::cells(row));
            }
        }
        for row in given.nearest.take().into_iter().flat_map(NearestRows::rows) {
            given.bytes += given.rows.row(aside::cells(&row));
            given.count += 1;
        }
    }

    // Memory.

    /// Reserves memory for what is held now.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub(super) fn need_room(&mut self) -> Result<(), Error> {
        let aside = self.given.aside_bytes;
        let held = self.given.rows.held_bytes() + aside + self.places_bytes;
        self.room.need(held, self.given.bytes + aside)
    }
}
