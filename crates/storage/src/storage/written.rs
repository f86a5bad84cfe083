//! The effect of a commit on rows, returned to its caller where the committer had to read the row anyway.

use super::CommitSeq;
use super::row::RowView;

/// The effect of a change of a batch on one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The change, by its index in the batch.
    pub change: usize,
    /// Bytes of the row's key and value before it. `None` means there was no row, or only tombstones.
    pub before_bytes: Option<usize>,
    /// Bytes of key and value after it. `None` means the row is removed.
    pub after_bytes: Option<usize>,
}

/// A commit, and its effect on rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// Its position in the order of commits.
    pub seq: CommitSeq,
    /// One row separate from the others, because most commits have one.
    first: Option<Written>,
    others: Vec<Written>,
}

impl Committed {
    pub(super) fn at(self, seq: CommitSeq) -> Self {
        Self { seq, ..self }
    }

    pub(super) fn add(&mut self, written: Written) {
        if self.first.is_none() {
            self.first = Some(written);
        } else {
            self.others.push(written);
        }
    }

    /// The effect on rows, unordered, one entry for each change of a row. Rows that the engine did not read are
    /// missing: SlateDB writes partial rows without reading.
    pub fn rows(&self) -> impl Iterator<Item = &Written> {
        self.first.iter().chain(&self.others)
    }
}

impl From<CommitSeq> for Committed {
    fn from(seq: CommitSeq) -> Self {
        Self::default().at(seq)
    }
}

/// Whether a stored row has anything but tombstones. Expired cells and cells hidden by a partition or range deletion
/// count until they are purged: an exact answer would cost a lookup of both.
pub(super) fn is_there(row: &[u8]) -> bool {
    RowView::parse(row).is_ok_and(|row| {
        row.marker().is_some()
            || row
                .cells()
                .any(|cell| cell.is_ok_and(|cell| matches!(cell.state, super::row::CellStateRef::Live { .. })))
    })
}
