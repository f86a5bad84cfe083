//! Where a page of a read ended, and so where the next one begins.

use bytes::Bytes;

/// Where a page ended: keys and what limits still allow, nothing of the statement. Another read of the same table can go on there: its
/// own columns, filters and keys then say what it gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The partition of the last row given.
    pub partition_key: Bytes,
    /// The last row's clustering key, when more rows of the partition may follow; `None`: go on behind the partition.
    pub clustering: Option<Bytes>,
    /// Rows that LIMIT still allows; `None`: no limit.
    pub limit_rows: Option<u32>,
    /// Rows that PER PARTITION LIMIT still allows in this partition.
    pub partition_limit_rows: Option<u32>,
    /// What the pages so far have left to be charged, in millionths of a request unit, below a hundredth.
    pub charge_left_micros: u16,
}
