//! Parts: the work of one physical partition for a command, executed where the partition lives.
//!
//! ```text
//! statement level  read::source cuts a command ─→ Part ──→ run_part ──→ rows ─→ PartSink: groups, order, limits, page
//! part level                                              index or scan,    ─→ Receipt: outcome, charges, tombstones
//!                                                         deletions, filter
//! ```
//! The two levels share only [`ReadPart`], the rows ([`PartSink`]) and [`Receipt`], which `tests/house.rs` enforces. A
//! part has no access to pages, groups, sessions or other partitions. The statement level never reads a stored row, a
//! deletion or an index entry. A part borrows its host's resources: the snapshot of the store
//! ([`crate::partition::ReadView`]), the indexes that were complete before that snapshot, and [`Scratch`].
//!
//! What a part says can travel ([`helenus_schema::command::codec`]): the owner of its physical partition decodes the
//! message and executes the part there (`engine::owner`).

pub(crate) mod choice;
mod logical;
mod part_read;
mod read;
mod reader;
mod receipt;
mod ring;
mod rows;
pub(crate) mod walk;
pub(crate) mod write;

pub(crate) use logical::{Logical, bring_static, covering};
pub(crate) use part_read::PartRead;
pub(crate) use read::{Cut, ReadPart, run_part};
pub(crate) use reader::{Reader, Scratch};
pub(crate) use receipt::{Ended, Receipt, Walked};
pub(crate) use rows::{PartSink, Reply, Step};
