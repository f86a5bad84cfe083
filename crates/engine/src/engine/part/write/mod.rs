//! The part of a write that is executed where its physical partition lives: it reads stored rows, checks conditions,
//! and adds partial rows to the batch of the store.
//!
//! ```text
//! statement level  write/ cuts a command ─→ WritePart ──→ run_write_part ──→ Changes ─→ commits, a store each
//! part level             ConditionPart ─→ check ─→ Verdict      rows as stored, sizes, charges
//! ```
//! The statement level holds the locks of the logical partitions and the latches of the physical ones while a part
//! runs and until the commit. It never reads a stored row (`tests/house.rs`).

pub(in crate::engine) mod asked;
pub(in crate::engine) mod changes;
pub(crate) mod condition;
pub(crate) mod forms;
pub(crate) mod fragment;
mod newest;
pub(crate) mod prices;
mod rows;
pub(crate) mod size;
mod whole_row;

use std::sync::Arc;

use bytes::Bytes;

use self::changes::Changes;
use self::fragment::{Stamp, reads_before};
use crate::engine::Error;
use crate::engine::limits::SizeLimits;
use crate::engine::logical::LogicalPartitions;
use crate::engine::terms::clock::ListKeys;
use crate::engine::terms::write::WriteRequest;
use crate::partition::{Hosted, LogicalPartition};
use crate::throughput::Charges;
use helenus_base::invariant::Broken;
use helenus_schema::command::Write;
use helenus_schema::schema::Table;
use helenus_types::token::Token;

/// The settings that all parts of a write share.
pub(crate) struct Writing<'a> {
    pub(crate) list_keys: &'a ListKeys,
    pub(crate) limits: &'a SizeLimits,
    pub(crate) logical: &'a LogicalPartitions,
    /// Whether a time to live applies to the row, as in Cosmos, or to the cell.
    pub(crate) ttl_of_rows: bool,
    pub(crate) request: &'a WriteRequest,
}

/// A write restricted to one logical partition.
pub(crate) struct WritePart<'a> {
    /// The physical partition.
    pub(crate) partition: &'a Arc<Hosted>,
    /// The command.
    pub(crate) write: &'a Write,
    /// The partition key.
    pub(crate) key: &'a Bytes,
    /// The token of the key.
    pub(crate) token: Token,
    /// Its rows.
    pub(crate) logical: LogicalPartition<'a>,
    /// The timestamp of the write.
    pub(crate) stamp: Stamp,
}

/// Executes a part of a write: adds its rows to the batch of the store.
///
/// # Errors
/// A row would be too large, an operation cannot be applied, or a read that it needs fails.
pub(crate) async fn run_write_part(
    writing: &Writing<'_>,
    part: &WritePart<'_>,
    changes: &mut Changes,
    charges: &mut Charges,
) -> Result<(), Error> {
    part.stage(writing, changes, charges).await
}

/// Whether a part of this write reads stored rows before it stages one.
pub(crate) fn must_read(ttl_of_rows: bool, write: &Write) -> bool {
    let mut operations = write.operations.iter();
    operations.any(|(_, operation)| reads_before(operation))
        || forms::must_look(&write.table)
        || ttl_of_rows && whole_row::concerns(write)
}

impl Writing<'_> {
    /// Whether the write rewrites its rows whole.
    fn rewrites(&self, write: &Write) -> bool {
        self.ttl_of_rows && whole_row::concerns(write)
    }
}

impl<'a> WritePart<'a> {
    /// The part of a write at this key.
    ///
    /// # Errors
    /// When the key does not lie in the physical partition.
    pub(crate) fn new(
        (token, partition): (Token, &'a Arc<Hosted>),
        write: &'a Write,
        key: &'a Bytes,
        stamp: Stamp,
    ) -> Result<Self, Broken> {
        Ok(Self {
            partition,
            write,
            key,
            token,
            logical: partition.logical(write.table.storage_id, token, key)?,
            stamp,
        })
    }

    fn table(&self) -> &Table {
        &self.write.table
    }

    /// The number that identifies the logical partition for locks and gauges.
    pub(in crate::engine) fn spread(&self) -> i64 {
        self.partition.spread(self.token, self.key)
    }
}
