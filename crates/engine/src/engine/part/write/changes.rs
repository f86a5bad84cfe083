//! The changes that the parts of a write add to the batches of their stores, and the sizes and charges to record once
//! these are durable.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use foldhash::quality::RandomState;

use super::WritePart;
use super::size::BatchSize;
use crate::engine::logical::{Place, Weight};
use crate::partition::{Hosted, LogicalPartition, RowKey, StoreId};
use crate::throughput::{Charges, PartitionRef, RowWrite};
use helenus_base::mutant::{self, Mutant};
use helenus_schema::command::WriteVerb;
use helenus_schema::schema::Table;
use helenus_storage::storage::{Batch, Committed, Row, Store};
use helenus_types::token::Token;

/// The charge of a change of a batch, to be measured at the commit.
pub(in crate::engine) struct PendingCharge {
    pub(super) partition: PartitionRef,
    pub(super) spread: i64,
    pub(super) partition_key: Bytes,
    pub(super) how: RowWrite,
    /// Bytes of the partial row, for engines that do not read the stored row.
    pub(super) fragment_bytes: usize,
    /// Indexed columns that it touches.
    pub(super) indexed: usize,
    /// Whether it was charged.
    pub(super) is_done: bool,
}

/// Changes of one store.
pub(in crate::engine) struct StagedStore {
    pub(in crate::engine) id: StoreId,
    pub(in crate::engine) store: Store,
    pub(in crate::engine) batch: Batch,
    /// One for each change of the batch.
    pub(in crate::engine) marked: Vec<PendingCharge>,
}

/// The changes that the parts of a request have added.
#[derive(Default)]
pub(crate) struct Changes {
    pub(in crate::engine) stores: Vec<StagedStore>,
    /// Rows of counters and rows that are rewritten whole, as all members of a batch so far have written them: later ones
    /// add to them. A list's element is looked up in the row as it was stored before the batch, as in Cassandra.
    pub(super) added_to: HashMap<RowKey, Row, RandomState>,
    /// Whether deletions of partitions and ranges are dated 1 µs before the rows written with them, so that they do not
    /// delete those rows. This is the case in conditional batches (Cassandra's
    /// `PartitionUpdate.withUpdatedTimestamps`).
    pub(in crate::engine) deletes_just_before: bool,
    /// The measured size of a batch. `None` means that it is not measured.
    pub(in crate::engine) size: Option<BatchSize>,
    /// Bytes written to each logical partition.
    pub(in crate::engine) weights: Vec<Weight>,
}

impl Changes {
    /// The batch for one change, which is charged as `marked` says.
    pub(super) fn batch(&mut self, partition: &Hosted, marked: PendingCharge) -> &mut Batch {
        let mut stores = self.stores.iter();
        let found = stores.position(|staged| staged.id == partition.store_id && !mutant::is_on(Mutant::BatchInParts));
        let place = found.unwrap_or_else(|| {
            if self.stores.is_empty() {
                self.stores = Vec::with_capacity(1);
            }
            self.stores.push(StagedStore {
                id: partition.store_id,
                store: partition.store().clone(),
                batch: Batch::of_one(),
                marked: Vec::with_capacity(1),
            });
            self.stores.len() - 1
        });
        #[expect(clippy::expect_used, reason = "found or pushed just before")]
        let staged = self.stores.get_mut(place).expect("the store is there");
        staged.marked.push(marked);
        &mut staged.batch
    }

    /// Replaces the stored version of a derived row, if any. Returns the bytes of its key.
    pub(in crate::engine) fn replace_row(
        &mut self,
        (table, partition): (&Arc<Table>, &Arc<Hosted>),
        (token, partition_key): (Token, &Bytes),
        (logical, key, row): (LogicalPartition<'_>, RowKey, &Row),
        deletes: bool,
    ) -> Vec<u8> {
        let spread = partition.spread(token, partition_key);
        let key_bytes = key.as_bytes().to_vec();
        let row_bytes = key.len() + row.encode().len();
        let marked = PendingCharge {
            partition: PartitionRef {
                table: table.storage_id,
                partition: partition.id.0,
            },
            spread,
            partition_key: partition_key.clone(),
            how: if deletes { RowWrite::Delete } else { RowWrite::Insert },
            fragment_bytes: row_bytes,
            indexed: 0,
            is_done: false,
        };
        logical.replace_row(self.batch(partition, marked), key, row);
        self.weights.push(Weight {
            table: Arc::clone(table),
            spread,
            key: partition_key.clone(),
            partition: Arc::clone(partition),
            row_bytes: row_bytes as u64,
            entry_bytes: 0,
            deletes,
        });
        key_bytes
    }

    /// Adds bytes written to a logical partition.
    pub(super) fn weigh(&mut self, part: &WritePart<'_>, row_bytes: u64, entry_bytes: u64) {
        let modification = part.write;
        let deletes = modification.kind == WriteVerb::Delete;
        if let Some(last) = self.weights.last_mut()
            && last.deletes == deletes
            && last.spread == part.spread()
            && last.key == *part.key
            && last.table.storage_id == modification.table.storage_id
        {
            last.row_bytes += row_bytes;
            last.entry_bytes += entry_bytes;
            return;
        }
        if self.weights.is_empty() {
            self.weights = Vec::with_capacity(1);
        }
        self.weights.push(Weight {
            table: Arc::clone(&modification.table),
            spread: part.spread(),
            key: part.key.clone(),
            partition: Arc::clone(part.partition),
            row_bytes,
            entry_bytes,
            deletes,
        });
    }
}

/// Charges a commit by the rows that the committer read in order to merge them. Other engines, such as SlateDB, write
/// partial rows without a read: there INSERT counts as new, and the partial row counts as the row.
pub(in crate::engine) fn charge(committed: &Committed, mut marked: Vec<PendingCharge>, charges: &mut Charges) {
    for written in committed.rows() {
        let Some(marked) = marked.get_mut(written.change) else {
            continue;
        };
        let row_bytes = match marked.how {
            RowWrite::Delete => written.before_bytes.unwrap_or(0),
            RowWrite::Insert | RowWrite::Update => written.after_bytes.unwrap_or(0),
        };
        marked.charge(row_bytes, written.before_bytes.is_some(), charges);
    }
    for marked in marked.iter_mut().filter(|marked| !marked.is_done) {
        marked.charge(marked.fragment_bytes, false, charges);
    }
}

impl PendingCharge {
    /// The logical partition that is changed.
    pub(in crate::engine) fn place(&self) -> Place {
        Place {
            table: self.partition.table,
            spread: self.spread,
            key: self.partition_key.clone(),
        }
    }

    fn charge(&mut self, row_bytes: usize, existed: bool, charges: &mut Charges) {
        self.is_done = true;
        charges.enter(self.partition, Some((self.spread, &self.partition_key)));
        charges.write(self.how, row_bytes, existed, self.indexed);
    }
}
