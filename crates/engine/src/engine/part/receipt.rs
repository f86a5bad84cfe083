//! The result of a part: how it ended, its charges, the tombstones that it read.

use crate::engine::Error;
use helenus_storage::storage::RowView;

/// The outcome of a part.
#[derive(Debug)]
pub(crate) struct Receipt<'a> {
    /// Whether there may be more rows; an error if it failed, after any rows that it had passed on.
    pub(crate) ended: Result<Ended, Error>,
    /// Rows that it passed on.
    pub(crate) rows: u64,
    /// The tombstones that it read and has not reported yet ([`super::PartSink::walked`]).
    pub(crate) walked: Walked,
    /// Its charge, in millionths of a request unit. The details are on the request's sheet of charges, which the part
    /// borrows, so that a part that fails is charged for its work, too.
    pub(crate) charged_micros: u64,
    /// The index by which it found its rows. `None` means that it scanned.
    pub(crate) index: Option<&'a str>,
}

/// How a part ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// All of it was read.
    Whole,
    /// The statement needed no more.
    Stopped,
}

/// The tombstones that a read has passed.
///
/// Counted as Cassandra's `ReadCommand` does: cells that were deleted or have expired, deletions and expiries of whole
/// rows without such cells, and two for each deleted range.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Walked {
    /// Live rows, whether they passed the filter or not.
    pub(crate) rows: u64,
    /// Tombstones.
    pub(crate) tombstones: u64,
}

impl Walked {
    /// Counts a row: whether it is live, and how many of its cells are dead.
    pub(crate) fn row(
        &mut self,
        is_there: bool,
        dead_cells: u64,
        view: &RowView<'_>,
        shadowed_to: Option<i64>,
        now_seconds: i64,
    ) {
        self.tombstones += dead_cells;
        if is_there {
            self.rows += 1;
            return;
        }
        let counts = |timestamp: i64| shadowed_to.is_none_or(|to| timestamp > to);
        let is_deleted = view.deletion().is_some_and(|deletion| counts(deletion.timestamp));
        let has_expired = || {
            view.marker()
                .is_some_and(|marker| counts(marker.timestamp) && !marker.is_live(now_seconds))
        };
        if dead_cells == 0 && (is_deleted || has_expired()) {
            self.tombstones += 1;
        }
    }

    /// Adds the counts of another part.
    pub(crate) fn add(&mut self, other: Self) {
        self.rows = self.rows.saturating_add(other.rows);
        self.tombstones = self.tombstones.saturating_add(other.tombstones);
    }
}
