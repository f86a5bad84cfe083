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
    /// The position after each row; empty unless the reader wants them.
    pub after_rows: Vec<FeedPosition>,
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
