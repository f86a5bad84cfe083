//! Rows as storage sees them: a marker, deletions and cells, each with the timestamp of the write that made it.
//!
//! A value in the store is a [`Row`], or a partial row: the changes of one write. Merging partial rows is commutative,
//! associative and idempotent, so an engine may merge them at any time and in any order. Columns are numbers that are
//! never reused; storage does not know the types of their values.
//!
//! A row is *canonical* when none of its cells is shadowed by one of its own deletions, and its parts are sorted and
//! unique. Encoding makes a row canonical; merging and decoding return canonical rows.
//!
//! Sources: Cassandra 5.0 `db.rows.Cells#reconcile`, `db.rows.Row.Merger`, `db.LivenessInfo#supersedes`, `db.DeletionTime`.

mod codec;
mod merge;
#[cfg(test)]
pub(crate) mod strategy;

use bytes::Bytes;

pub use codec::{CellRef, CellStateRef, Cells, ComplexDeletions, RowView};
pub(super) use codec::{changes_nothing, decode_deletion, encode_deletion, get_varint, put_varint, with_position};
pub(super) use merge::newer_deletion;

use super::Result;

/// A column of a table, numbered by the schema; never reused within the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnId(pub u32);

/// When something written with a time to live expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Expiry {
    /// Seconds since 1970 UTC; expired from this second on.
    pub at_seconds: i64,
    /// The time to live it was written with, in seconds; `ttl()` counts down from it.
    pub ttl_seconds: u32,
}

impl Expiry {
    /// Whether it has expired at `now_seconds`.
    #[must_use]
    pub fn is_expired(&self, now_seconds: i64) -> bool {
        now_seconds >= self.at_seconds
    }
}

/// What an INSERT writes in addition to cells: the row exists even if every column is null.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Marker {
    /// Microseconds, the write's timestamp.
    pub timestamp: i64,
    /// `None` means it does not expire.
    pub expiry: Option<Expiry>,
}

impl Marker {
    /// Whether the marker alone makes its row visible at `now_seconds`.
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
    /// The element of a collection (map key, set element, list position). `None` means a plain column.
    pub path: Option<Bytes>,
    /// Microseconds, the write's timestamp.
    pub timestamp: i64,
    /// Value or tombstone.
    pub state: CellState,
}

/// The content of a cell.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CellState {
    /// A value, possibly with an expiry.
    Live {
        /// The value's bytes in wire encoding; may be empty.
        value: Bytes,
        /// `None` means it does not expire.
        expiry: Option<Expiry>,
    },
    /// A deleted value.
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

/// A row, or the changes that one write makes to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Row {
    /// `None` means the row exists only while one of its cells does.
    pub marker: Option<Marker>,
    /// A deletion of the whole row.
    pub deletion: Option<Deletion>,
    /// Collections overwritten or deleted as a whole, sorted by column, one each.
    pub complex: Vec<(ColumnId, Deletion)>,
    /// Cells sorted by column, then path (`None` first, then by bytes), one each.
    pub cells: Vec<Cell>,
    /// The position of its last change in the change feed ([`super::feed`]); the greater one is kept. No deletion hides
    /// it, and it alone makes no row. `None` means that its table had no feed.
    pub position: Option<i64>,
}

impl Row {
    /// Whether it holds no marker, deletion or cell. A position does not count.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.marker.is_none() && self.deletion.is_none() && self.complex.is_empty() && self.cells.is_empty()
    }

    /// Whether a reader sees the row at `now_seconds`: a live marker or a live cell. The caller applies partition and
    /// range deletions.
    #[must_use]
    pub fn is_live(&self, now_seconds: i64) -> bool {
        self.marker.is_some_and(|marker| marker.is_live(now_seconds))
            || self.cells.iter().any(|cell| cell.is_live(now_seconds))
    }

    /// Applies a partition or range deletion that covers the row: removes all that it shadows.
    pub fn shadow(&mut self, deletion_timestamp: i64) {
        self.marker = self.marker.filter(|marker| marker.timestamp > deletion_timestamp);
        self.deletion = self.deletion.filter(|deletion| deletion.timestamp > deletion_timestamp);
        self.complex
            .retain(|(_, deletion)| deletion.timestamp > deletion_timestamp);
        self.cells.retain(|cell| cell.timestamp > deletion_timestamp);
    }

    /// Removes what no longer matters. A cell that expired becomes a tombstone as old as its write. Tombstones and
    /// deletions written before `gc_before_seconds` are removed, and markers that expired before it. Only for a merged
    /// row: the tombstones of a partial row may still shadow cells stored elsewhere.
    ///
    /// An expired marker stays until then: it hides markers of older writes, and readers distinguish a row that expired
    /// from one that never had a marker.
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

    /// The row in its canonical form: sorted, one cell per position, nothing shadowed by its own deletions.
    #[must_use]
    pub fn canonical(self) -> Self {
        merge::canonical(self)
    }

    /// The bytes of the canonical row, as drawn in [`RowView`].
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let made_canonical = (!merge::is_canonical(self)).then(|| self.clone().canonical());
        codec::encode(made_canonical.as_ref().unwrap_or(self))
    }

    /// Reads what [`Row::encode`] wrote. Values share the memory of `bytes` where it is shared already.
    ///
    /// # Errors
    /// [`super::Error::Damaged`] when the bytes are cut, out of order, or have a format that this version cannot read.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        RowView::parse(bytes)?.to_row()
    }

    /// Merges two partial rows. Commutative, associative, idempotent.
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

/// An encoded row without its position in the change feed, for another store: there other positions are given.
#[must_use]
pub fn without_position(row: &Bytes) -> Bytes {
    match RowView::parse(row) {
        Ok(view) if view.position().is_some() => with_position(row, None).unwrap_or_else(|| row.clone()),
        // Reads refuse a damaged row.
        _ => row.clone(),
    }
}

/// Whether an encoded partial row only deletes: no marker and no value.
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
