//! What a commit made of rows, returned to its caller: known where the committer had to look at the row anyway.

use super::CommitSeq;
use super::row::RowView;

/// What a change of a batch made of one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The change, by its place in the batch.
    pub change: usize,
    /// Bytes of the row's key and value before it; `None`: there was no row, or nothing of it but tombstones.
    pub before_bytes: Option<usize>,
    /// Bytes of key and value after it; `None`: the row is gone.
    pub after_bytes: Option<usize>,
}

/// A commit, and what it made of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// Its place.
    pub seq: CommitSeq,
    /// One row apart from the others, since most commits have one.
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

    /// What became of rows, in no order, one for each change of one. Those that the engine did not look at are missing: SlateDB writes
    /// fragments without reading.
    pub fn rows(&self) -> impl Iterator<Item = &Written> {
        self.first.iter().chain(&self.others)
    }
}

impl From<CommitSeq> for Committed {
    fn from(seq: CommitSeq) -> Self {
        Self::default().at(seq)
    }
}

/// Whether a stored row has anything but tombstones. What has expired counts until it is cleaned up, and so does what a deletion from
/// outside the row hides: to know better would cost a look at both.
pub(super) fn is_there(row: &[u8]) -> bool {
    RowView::parse(row).is_ok_and(|row| {
        row.marker().is_some()
            || row
                .cells()
                .any(|cell| cell.is_ok_and(|cell| matches!(cell.state, super::row::CellStateRef::Live { .. })))
    })
}
