//! The part of the module `storage` that higher modules may use: stores, and the rows and keys stored there.

pub use helenus_storage::storage::row::{CellRef, CellStateRef};
pub use helenus_storage::storage::{
    AskedProfile, Batch, Both, BucketCache, Cell, CellState, ColumnId, CommitSeq, Committed, Damaged, Deletion,
    Deletions, Derivation, Derivations, Durability, Entries, Error, Estimate, Expiry, FaultPoint, Faults, Held,
    KEY_BYTES_MAX, KeyRange, LogOnly, Logged, Look, Marker, Moments, Opening, Options, Order, Positions,
    RangeTombstone, ReadFaults, Record, Restoring, Result, Row, RowView, Snapshot, Space, Store, Sweep, Swept, TableId,
    TooLong, Url, check_profile, check_row_bytes, deletion, split_entry,
};
#[cfg(feature = "simulation")]
pub use helenus_storage::storage::{Medium, MediumFaults};
pub use helenus_storage::storage::{bucket, key};
