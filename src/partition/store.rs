//! The part of the storage room that rooms above may use: stores, and the rows and keys kept there.

pub use crate::storage::row::{CellRef, CellStateRef};
pub use crate::storage::{
    Batch, Both, Cell, CellState, ColumnId, CommitSeq, Committed, Damaged, Deletion, Deletions, Derivation,
    Derivations, Durability, Entries, Error, Estimate, Expiry, FaultPoint, Faults, KEY_BYTES_MAX, KeyRange, Logged,
    Look, Marker, Moments, Opening, Options, Order, RangeTombstone, ReadFaults, Record, Restoring, Result, Row,
    RowView, Snapshot, Space, Store, Sweep, Swept, TableId, TooLong, Url, deletion, judge_row, split_entry,
};
#[cfg(feature = "simulation")]
pub use crate::storage::{Medium, MediumFaults};
pub use crate::storage::{bucket, key};
