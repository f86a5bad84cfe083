//! Rows as storage knows them: a marker, deletions and cells, each with the timestamp of the write that made it.
//!
//! A value in the store is a [`Row`], or a fragment of one: what one write says about it. Merging fragments is commutative,
//! associative and idempotent, so it does not matter when an engine merges them, or in which order. Columns are numbers that are
//! never reused; what a value means is not known here.
//!
//! A row is *canonical* when nothing in it is shadowed by a deletion in it, and its parts are sorted and unique. Encoding makes a
//! row canonical; merging and decoding give canonical rows.
//!
//! Sources: Cassandra 5.0 `db.rows.Cells#reconcile`, `db.rows.Row.Merger`, `db.LivenessInfo#supersedes`, `db.DeletionTime`.

mod codec;
mod merge;
#[cfg(test)]
pub(crate) mod strategy;

use bytes::Bytes;

pub use codec::{CellRef, CellStateRef, Cells, ComplexDeletions, RowView};
pub(super) use codec::{decode_deletion, encode_deletion, get_varint, put_varint};
pub(super) use merge::newer_deletion;

use super::Result;

/// A column of a table, numbered by the schema; never reused within the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnId(pub u32);

/// When something written with a time to live stops being there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Expiry {
    /// Seconds since 1970 UTC; at this second it is gone.
    pub at_seconds: i64,
    /// The time to live it was written with, in seconds; what `ttl()` counts down from.
    pub ttl_seconds: u32,
}

impl Expiry {
    /// Whether it is gone at `now_seconds`.
    #[must_use]
    pub fn is_expired(&self, now_seconds: i64) -> bool {
        now_seconds >= self.at_seconds
    }
}

/// What an INSERT leaves besides cells: the row is there even if every column is null.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Marker {
    /// Microseconds, the write's timestamp.
    pub timestamp: i64,
    /// `None`: stays.
    pub expiry: Option<Expiry>,
}

impl Marker {
    /// Whether the marker keeps its row there at `now_seconds`.
    #[must_use]
    pub fn is_live(&self, now_seconds: i64) -> bool {
        self.expiry.is_none_or(|expiry| !expiry.is_expired(now_seconds))
    }
}

/// Hides everything it covers whose timestamp is not above its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Deletion {
    /// Microseconds, the deleting write's timestamp.
    pub timestamp: i64,
    /// Seconds since 1970 UTC by the server's clock when it was written; grace before clean-up counts from here.
    pub at_seconds: i64,
}

/// One column's value, or one element's of a collection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cell {
    /// The column.
    pub column: ColumnId,
    /// The element of a collection (map key, set element, list position); `None` for a plain column.
    pub path: Option<Bytes>,
    /// Microseconds, the write's timestamp.
    pub timestamp: i64,
    /// Value or tombstone.
    pub state: CellState,
}

/// What a cell says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CellState {
    /// There is a value, perhaps for a while.
    Live {
        /// The value's bytes as the wire has them; may be empty.
        value: Bytes,
        /// `None`: stays.
        expiry: Option<Expiry>,
    },
    /// There is none.
    Tombstone {
        /// Seconds since 1970 UTC when it was written; grace counts from here.
        at_seconds: i64,
    },
}

impl Cell {
    /// Whether the cell has a value at `now_seconds`.
    #[must_use]
    pub fn is_live(&self, now_seconds: i64) -> bool {
        match &self.state {
            CellState::Live { expiry, .. } => expiry.is_none_or(|expiry| !expiry.is_expired(now_seconds)),
            CellState::Tombstone { .. } => false,
        }
    }
}

/// A row, or what one write says about it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Row {
    /// `None`: the row is there only while a cell is.
    pub marker: Option<Marker>,
    /// A deletion of the whole row.
    pub deletion: Option<Deletion>,
    /// Collections overwritten or deleted as a whole, sorted by column, one each.
    pub complex: Vec<(ColumnId, Deletion)>,
    /// Cells sorted by column, then path (`None` first, then by bytes), one each.
    pub cells: Vec<Cell>,
}

impl Row {
    /// Whether it says nothing at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.marker.is_none() && self.deletion.is_none() && self.complex.is_empty() && self.cells.is_empty()
    }

    /// Whether a reader sees the row at `now_seconds`: a live marker or a live cell. External deletions are the caller's to apply.
    #[must_use]
    pub fn is_live(&self, now_seconds: i64) -> bool {
        self.marker.is_some_and(|marker| marker.is_live(now_seconds))
            || self.cells.iter().any(|cell| cell.is_live(now_seconds))
    }

    /// Applies a deletion that covers the row from outside (of the partition, or a range): removes all it shadows.
    pub fn shadow(&mut self, deletion_timestamp: i64) {
        self.marker = self.marker.filter(|marker| marker.timestamp > deletion_timestamp);
        self.deletion = self.deletion.filter(|deletion| deletion.timestamp > deletion_timestamp);
        self.complex
            .retain(|(_, deletion)| deletion.timestamp > deletion_timestamp);
        self.cells.retain(|cell| cell.timestamp > deletion_timestamp);
    }

    /// Forgets what no longer matters: a cell that expired becomes a tombstone as old as its write, and tombstones and deletions written
    /// before `gc_before_seconds` go, as do markers that expired before it. Only for a whole row: a fragment's tombstones may still
    /// shadow something elsewhere.
    ///
    /// A marker that expired stays itself until then: it hides markers of older writes, and readers tell a row that expired from one
    /// that never had a marker.
    ///
    /// Sources: Cassandra 5.0 `db.rows.DeletionPurger#shouldPurge(LivenessInfo, …)`, `db.rows.AbstractCell#purge`; measured by
    /// compactions of 5.0.9.
    pub fn purge(&mut self, now_seconds: i64, gc_before_seconds: i64) {
        self.marker = self.marker.filter(|marker| {
            let expired = marker.expiry.filter(|expiry| expiry.is_expired(now_seconds));
            expired.is_none_or(|expiry| expiry.at_seconds >= gc_before_seconds)
        });
        self.deletion = self
            .deletion
            .filter(|deletion| deletion.at_seconds >= gc_before_seconds);
        self.complex
            .retain(|(_, deletion)| deletion.at_seconds >= gc_before_seconds);
        for cell in &mut self.cells {
            if let CellState::Live {
                expiry: Some(expiry), ..
            } = &cell.state
                && expiry.is_expired(now_seconds)
            {
                let at_seconds = expiry.at_seconds.saturating_sub(i64::from(expiry.ttl_seconds));
                cell.state = CellState::Tombstone { at_seconds };
            }
        }
        self.cells.retain(|cell| match cell.state {
            CellState::Live { .. } => true,
            CellState::Tombstone { at_seconds } => at_seconds >= gc_before_seconds,
        });
    }

    /// The row in its canonical form: sorted, one cell a place, nothing shadowed by what is in it.
    #[must_use]
    pub fn canonical(self) -> Self {
        merge::canonical(self)
    }

    /// The bytes of the canonical row, as drawn in [`RowView`].
    #[must_use]
    pub fn encode(&self) -> Bytes {
        codec::encode(self)
    }

    /// Reads what [`Row::encode`] wrote. Values share the bytes where they came from.
    ///
    /// # Errors
    /// [`super::Error::Damaged`] when the bytes are cut, out of order, or of a format that this version does not know.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        RowView::parse(bytes)?.to_row()
    }

    /// What two fragments say together. Commutative, associative, idempotent.
    #[must_use]
    pub fn merge(a: Self, b: Self) -> Self {
        merge::merge(a, b)
    }
}

/// Merges two encoded rows into one.
///
/// # Errors
/// [`super::Error::Damaged`] when either is damaged.
pub fn merge_encoded(a: &[u8], b: &[u8]) -> Result<Bytes> {
    let (a, b) = (RowView::parse(a)?, RowView::parse(b)?);
    match merge::merge_without_deletions(&a, &b)? {
        Some(merged) => Ok(merged),
        None => Ok(Row::merge(a.to_row()?, b.to_row()?).encode()),
    }
}

/// Whether an encoded fragment only takes away: no marker and no value.
///
/// # Errors
/// [`super::Error::Damaged`] when it is damaged.
pub fn only_deletes(fragment: &[u8]) -> Result<bool> {
    let view = RowView::parse(fragment)?;
    for cell in view.cells() {
        if matches!(cell?.state, CellStateRef::Live { .. }) {
            return Ok(false);
        }
    }
    Ok(view.marker().is_none())
}

#[cfg(test)]
mod tests;
