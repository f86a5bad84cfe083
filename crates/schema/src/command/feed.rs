//! Reads of the change feed: their start, and where they go on.

use bytes::Bytes;

/// From where the first page of the change feed is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedStart {
    /// The first change.
    Beginning,
    /// The changes after the read begins.
    Now,
    /// The changes from this time on, µs since 1970-01-01 UTC.
    At(i64),
}

impl FeedStart {
    /// The position after which changes are returned; `horizon` is the last position at present.
    #[must_use]
    pub const fn after(self, horizon: i64) -> i64 {
        match self {
            Self::Beginning => 0,
            Self::Now => horizon,
            Self::At(micros) => micros.saturating_sub(1),
        }
    }
}

/// Where a read of the change feed goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedPosition {
    /// All changes up to this position were returned.
    pub after: i64,
    /// The sweep that the page ended in. `None` means that the next page begins one.
    pub sweep: Option<FeedSweep>,
}

/// What a page of the change feed says besides its rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedPage {
    /// The position after each row, or after each change of the full fidelity feed; empty unless the reader wants them.
    pub after_rows: Vec<FeedPosition>,
    /// The changes of the full fidelity feed, whose images are the rows of the page.
    pub changes: Vec<FeedChange>,
    /// Whether the page ends at the last change. `false` also where request units are spent.
    pub is_at_end: bool,
}

/// The place inside a sweep over the change feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedSweep {
    /// The position up to which it returns changes.
    pub until: i64,
    /// The last entry that it has passed; empty means none.
    pub reached: Bytes,
}

/// A change of the full fidelity feed.
///
/// Its rows in the page come in this order: its key; the row before, if it showed; the row after, if it shows; the
/// start of a deleted range and then its end, if they are bounded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedChange {
    /// What it did.
    pub operation: FeedOperation,
    /// What it changed.
    pub of: FeedChanged,
    /// Its position.
    pub position: i64,
    /// The position of the change that made the row before. `None` means that it is not known, or that there was no row.
    pub previous_position: Option<i64>,
    /// The newest timestamp of the write, in µs. `None` means that it wrote nothing.
    pub written_micros: Option<i64>,
    /// Whether the row before is a row of the page.
    pub has_previous: bool,
    /// Whether the row after is a row of the page.
    pub has_current: bool,
    /// Whether the images are known: those of one group of commits may be too large to keep.
    pub has_images: bool,
}

/// What a change of the full fidelity feed did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedOperation {
    /// There was no row before.
    Create,
    /// There was one.
    Replace,
    /// There is none after it.
    Delete,
}

/// What a change of the full fidelity feed was of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedChanged {
    /// A row.
    Row,
    /// The static columns of a partition.
    Static,
    /// A whole partition.
    Partition,
    /// A range of the rows of a partition.
    Range {
        /// Where it starts.
        start: FeedBound,
        /// Where it ends.
        end: FeedBound,
    },
}

/// A bound of a deleted range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedBound {
    /// It has none.
    Open,
    /// The rows with these leading clustering columns are in the range.
    Included {
        /// How many columns the bound names.
        columns: usize,
    },
    /// They are not.
    Excluded {
        /// How many columns the bound names.
        columns: usize,
    },
}
