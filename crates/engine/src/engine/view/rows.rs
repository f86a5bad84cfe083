//! The row that a view has of a base row.

use bytes::Bytes;

use crate::engine::followed::{Followed, Following, Source, Taken};
use crate::engine::row::buffer::RowBuffer;
use crate::engine::row::evaluate::Scope;
use crate::engine::row::layout::Layout;
use crate::engine::{Error, value};
use helenus_schema::schema::Table;
use helenus_storage::storage::{Cell, CellState, Damaged, Expiry, Marker, Record, Row};
use helenus_types::types::Corrupt;

/// The key of a row, in a base table or in a view.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) partition_key: Bytes,
    pub(crate) clustering: Vec<u8>,
}

/// The values of a key, partition key first.
pub(super) fn values_of(table: &Table, key: &Key) -> Result<Vec<Bytes>, Error> {
    let components = value::key_components(&key.partition_key, table.partition_key_count);
    let mut values: Vec<Bytes> = components.map(Bytes::copy_from_slice).collect();
    let mut rest = key.clustering.as_slice();
    for column in table.clustering() {
        let value = column.ty.decode_key(&mut rest, column.key_order());
        values.push(value.map_err(|Corrupt(what)| Damaged {
            record: Record::Key,
            what,
        })?);
    }
    Ok(values)
}

/// A key of these values, partition key first.
pub(super) fn key_of(table: &Table, values: &[Bytes]) -> Key {
    let (partition, clustering) = values.split_at(table.partition_key_count.min(values.len()));
    let mut key = Vec::new();
    for (column, value) in table.clustering().iter().zip(clustering) {
        column.ty.encode_key(value, column.key_order(), &mut key);
    }
    Key {
        partition_key: value::join_key(partition.iter().map(Bytes::as_ref)).into(),
        clustering: key,
    }
}

impl Followed {
    /// Whether a base row of this key satisfies the WHERE of a view.
    pub(super) fn passes(&self, following: &Following, base: &Key) -> Result<bool, Error> {
        if following.tests.is_empty() {
            return Ok(true);
        }
        let table = &self.base;
        let layout = Layout::new(table, 0..table.partition_key_count + table.clustering_count, false);
        let mut buffer = RowBuffer::new(&layout);
        buffer.begin_partition(table, &layout, &base.partition_key)?;
        buffer.begin_row(table, &layout);
        buffer.set_clustering(table, &layout, &base.clustering)?;
        let scope = Scope {
            table,
            row: &buffer,
            aggregates: &[],
            now_seconds: 0,
            context: &self.context,
        };
        for test in &following.tests {
            if !scope.meets(test)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Following {
    /// The key of the base row that the view's row of this key derives from.
    pub(super) fn base_key(&self, base: &Table, key: &Key) -> Result<Option<Key>, Error> {
        let of_view = values_of(&self.view, key)?;
        let components = 0..base.partition_key_count + base.clustering_count;
        let values = components.map(|component| of_view.get(self.place_of(component)?).cloned());
        let values: Option<Vec<Bytes>> = values.collect();
        Ok(values.map(|values| key_of(base, &values)))
    }

    /// The key under which the view may have a row for this base row, expired or not.
    pub(super) fn key(&self, base: &[Bytes], row: &Row) -> Option<Key> {
        let cell = match &self.key_cell {
            Some(taken) => Some(value_of(taken.cell(row)?)?.0),
            None => None,
        };
        let values = self.key.iter().map(|source| match source {
            Source::Key(component) => base.get(*component).cloned(),
            Source::Cell => cell.cloned(),
        });
        let values: Vec<Bytes> = values.collect::<Option<_>>()?;
        Some(key_of(&self.view, &values))
    }

    /// The view's row for this base row. `None` means that it has none.
    pub(super) fn row(&self, base: &Row, now_seconds: i64) -> Option<Row> {
        let live = |cell: &&Cell| cell.is_live(now_seconds);
        let marker = match &self.key_cell {
            Some(taken) => {
                let cell = taken.cell(base).filter(live)?;
                Some(Marker {
                    timestamp: cell.timestamp,
                    expiry: value_of(cell)?.1,
                })
            }
            None if self.has_all => base.marker,
            None => self.marker_of_others(base, now_seconds),
        };
        let latest = self
            .key_cell
            .is_some()
            .then(|| marker.and_then(|marker| marker.expiry))
            .flatten();
        let mut row = Row {
            marker: marker.filter(|marker| marker.is_live(now_seconds)),
            ..Row::default()
        };
        for taken in &self.cells {
            for cell in taken.cells(base).filter(live) {
                let mut cell = Cell {
                    column: taken.view,
                    ..cell.clone()
                };
                if let CellState::Live { expiry, .. } = &mut cell.state {
                    *expiry = earlier(*expiry, latest);
                }
                row.cells.push(cell);
            }
        }
        (!row.is_empty()).then(|| row.canonical())
    }

    /// The marker of a row of a view that does not have all columns. It lives as long as the base's marker or a cell
    /// that the view does not have (Cassandra's `computeLivenessInfoForEntry`).
    fn marker_of_others(&self, base: &Row, now_seconds: i64) -> Option<Marker> {
        let is_taken = |cell: &Cell| {
            let mut all = self.cells.iter().chain(&self.key_cell);
            all.any(|taken| taken.has(cell))
        };
        let others = base
            .cells
            .iter()
            .filter(|cell| cell.is_live(now_seconds) && !is_taken(cell));
        let (mut timestamp, mut stays, mut longest) = (base.marker.map(|marker| marker.timestamp), false, None);
        for cell in others {
            timestamp = timestamp.max(Some(cell.timestamp));
            match value_of(cell).and_then(|(_, expiry)| expiry) {
                None => stays = true,
                Some(expiry) => longest = longest.max(Some(expiry)),
            }
        }
        let live = base.marker.filter(|marker| marker.is_live(now_seconds));
        let of = |expiry| timestamp.map(|timestamp| Marker { timestamp, expiry });
        match (live, longest) {
            (Some(Marker { expiry: None, .. }), _) => of(None),
            _ if stays => of(None),
            (Some(marker), Some(longest))
                if marker
                    .expiry
                    .is_some_and(|expiry| expiry.at_seconds >= longest.at_seconds) =>
            {
                Some(marker)
            }
            (_, Some(longest)) => of(Some(longest)),
            (marker, None) => marker,
        }
    }
}

impl Taken {
    fn has(&self, cell: &Cell) -> bool {
        cell.column == self.base
    }

    /// Its cells in a base row.
    fn cells<'a>(&self, row: &'a Row) -> impl Iterator<Item = &'a Cell> + use<'a> {
        let own = self.base;
        row.cells.iter().filter(move |cell| cell.column == own)
    }

    /// Its one cell in a base row.
    fn cell<'a>(&self, row: &'a Row) -> Option<&'a Cell> {
        self.cells(row).next()
    }
}

/// The value of a cell and its expiry. `None` means that it has no value.
fn value_of(cell: &Cell) -> Option<(&Bytes, Option<Expiry>)> {
    match &cell.state {
        CellState::Live { value, expiry } => Some((value, *expiry)),
        CellState::Tombstone { .. } => None,
    }
}

fn earlier(one: Option<Expiry>, other: Option<Expiry>) -> Option<Expiry> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
