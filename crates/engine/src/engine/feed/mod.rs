//! The change feed of a table: the latest version of each row, in the order of the last changes.
//!
//! The feed is kept as one more index of the table ([`crate::engine::index`]): built behind the live table, maintained
//! by the committer, removed with the table. Its value is the position of a row's last change
//! ([`helenus_storage::storage::Positions`]), after the number of the arc of the ring in which the row lies:
//!
//! ```text
//! entry   feed id u32 · arc u8 · position u64 · the row's key after the table id
//! arc     the highest 6 bits of the token: 0 … 63
//! ```
//! **Life of a sweep.** A reader begins with a position after which it wants changes. The server takes the horizon and
//! walks the arcs of the wanted part of the ring; in each, the entries after the position and up to the horizon. After
//! the last arc the reader has everything up to the horizon, and the next sweep begins there. The paging state names the
//! position, the horizon and the last entry that was passed, and no physical partition. So it stays valid after splits,
//! merges, moves and restarts.
//!
//! **Invariants.**
//! - A change that is acknowledged before a sweep begins is returned by it, unless a later change of the row replaces it.
//! - Rows of a logical partition come in the order of their last changes: they lie in one arc.
//! - A row may be returned more than once, after a failure or when a write changes nothing. None is left out.

mod bounds;
mod log;
mod read;
mod retention;

pub(crate) use log::LogSweep;
pub(crate) use read::Sweep;
pub use retention::LogSizes;
pub(crate) use retention::Trimmer;

/// Up to where all stores were read: each up to one place, or (`None`) to its end.
fn lesser<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
