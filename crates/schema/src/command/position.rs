//! The end of a page of a read, and so the start of the next one.

use bytes::Bytes;

use super::FeedPosition;

/// The end of a page: keys and the remaining limits, nothing of the statement. Another read of the same table can
/// resume there; its own columns, filters and keys then define its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The partition of the last row returned.
    pub partition_key: Bytes,
    /// The last row's clustering key, if more rows of the partition may follow. `None` means resume after the
    /// partition.
    pub clustering: Option<Bytes>,
    /// Whether the read is of one partition only: in Cassandra the position of such a read names no partition.
    pub of_one_partition: bool,
    /// Rows that LIMIT still allows. `None` means no limit.
    pub limit_rows: Option<u32>,
    /// Rows that PER PARTITION LIMIT still allows in this partition.
    pub partition_limit_rows: Option<u32>,
    /// The part of the charge of the pages so far that is not charged yet: below a hundredth of a request unit, in
    /// millionths of one.
    pub charge_left_micros: u16,
    /// Where a read of the change feed goes on; the keys and limits are not used then. `None` means another read.
    pub feed: Option<FeedPosition>,
}

impl Position {
    /// The end of a page of the change feed.
    #[must_use]
    pub const fn of_feed(feed: FeedPosition) -> Self {
        Self {
            partition_key: Bytes::new(),
            clustering: None,
            of_one_partition: false,
            limit_rows: None,
            partition_limit_rows: None,
            charge_left_micros: 0,
            feed: Some(feed),
        }
    }
}
