//! The end of a page of a read, and so the start of the next one.

use bytes::Bytes;

/// The end of a page: keys and the remaining limits, nothing of the statement. Another read of the same table can
/// resume there; its own columns, filters and keys then define its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The partition of the last row returned.
    pub partition_key: Bytes,
    /// The last row's clustering key, if more rows of the partition may follow. `None` means resume after the
    /// partition.
    pub clustering: Option<Bytes>,
    /// Rows that LIMIT still allows. `None` means no limit.
    pub limit_rows: Option<u32>,
    /// Rows that PER PARTITION LIMIT still allows in this partition.
    pub partition_limit_rows: Option<u32>,
    /// The part of the charge of the pages so far that is not charged yet: below a hundredth of a request unit, in
    /// millionths of one.
    pub charge_left_micros: u16,
}
