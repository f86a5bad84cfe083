//! Moving a physical partition to another store: into a new one of its own (lift), and back into the main one (lower).
//!
//! ```text
//! record: being made ─► hold ─ notes begin ─ open ─► clone, or copy of a snapshot ─► noted keys, again and again, writers at work
//!     ─► hold ─► the last noted keys ─► record: the list, the store in use, what lies where it was ─► in force ─► gates superseded
//!     ─► no request reads by the old list any more ─► what lies where it was is removed, then its record
//! ```
//! **Writers** go through the partition's gate (`partition::gate`). It is held twice, each time for what is being committed and a few
//! keys: nothing that was acknowledged can be missing, since who is inside is waited for and an empty commit stands behind whatever
//! was handed over by those that went away. What a commit that failed may have written, as late as the next one, is copied until the
//! end. Who waits at the gate then goes by the new list.
//!
//! **Readers** hold nothing. One that began by the old list reads where the rows were; they stay there, as they were, until the last such
//! reader is gone ([`TablePartitions::when_left`]).
//!
//! **Copies.** SlateDB clones the range: the new database names the same tables in the bucket, no row is copied; deletions, which are few,
//! are copied, and index entries derived. Other engines copy from a snapshot in batches. A store's index entries follow from its rows.
//!
//! **Kills, failures and losses of power.** The records in the main store are the truth. What a move left anywhere is garbage, removed as
//! leftovers.rs says, and the range of the target is emptied before rows are copied into it. The record of a new store is durable before
//! the store is made, the copy is durable before the list that names it, and that list before anything is removed where the rows were.
//!
//! A partition is not moved while an index of its table is built, and a change of the table meanwhile ends the move.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;

use super::leftovers::{
    BEING_MADE, BEING_REMOVED, IN_USE, Moved, NEXT_STORE, PAUSE, STEP_BYTES, behind, empty, record_store,
};
use super::{Catalog, Changing, commit, partitions_key};
use crate::command::PartitionChange;
use crate::engine::{Error, storage_read};
use crate::mutant::{self, Mutant};
use crate::partition::gate::Hold;
use crate::partition::store::{self, Batch, KeyRange, Order, Space, Store};
use crate::partition::{Hosted, PhysicalPartitionId, StoreId, TablePartitions, WriteGate};
use crate::schema::{StorageId, Table};

/// Noted keys that are few enough to be copied while writers wait.
const LAST_KEYS: usize = 256;

/// How often noted keys are copied with writers at work; then what there is, is copied while they wait.
const ROUNDS_MAX: usize = 16;

/// A move at work.
struct Move {
    table: StorageId,
    /// As it was when the move began.
    definition: Arc<Table>,
    list: Arc<TablePartitions>,
    partition: Arc<Hosted>,
    to: StoreId,
    range: KeyRange,
}

impl Move {
    /// What it copies, and before that empties, in its target.
    fn copied(&self) -> Moved {
        Moved {
            table: self.table,
            store: self.to,
            span: self.partition.span.clone(),
        }
    }
}

/// A move in doubt: it is unknown whether it was recorded. Its gate stays held until that is resolved.
pub(super) struct UnsureMove {
    of: Move,
    hold: Hold,
}

fn invalid<T>(text: String) -> Result<T, Error> {
    Err(Error::Invalid(text))
}

impl Catalog {
    /// Moves a physical partition as a statement asks: durable when it returns, and every later request goes by it.
    ///
    /// # Errors
    /// When it cannot be moved or a store fails; then it is where it was, as far as anybody knows.
    pub(super) async fn move_partition(
        self: &Arc<Self>,
        table: StorageId,
        change: PartitionChange,
    ) -> Result<(), Error> {
        let _one_at_a_time = self.moving.lock().await;
        let of = self.begin_move(table, change).await?;
        let target = match self.copy(&of).await {
            Ok(target) => target,
            Err(error) => {
                of.partition.gate.end_notes();
                self.leftovers.remove_copied(of.copied());
                return Err(error);
            }
        };
        self.end_move(of, &target).await
    }

    /// Judges a move and records that its store is being made.
    async fn begin_move(&self, table: StorageId, change: PartitionChange) -> Result<Move, Error> {
        let mut changing = self.changing.lock().await;
        self.settle(&mut changing).await?;
        let current = self.current.load_full();
        let (Some(list), Some(definition)) = (current.partitions.get(&table), current.table(table)) else {
            return invalid("the table does not exist".to_owned());
        };
        let (id, lifts) = match change {
            PartitionChange::Lift { id } => (id, true),
            PartitionChange::Lower { id } => (id, false),
            PartitionChange::Split { .. } | PartitionChange::Merge { .. } => {
                return invalid("a split or merge moves nothing".to_owned());
            }
        };
        let found = list.all().iter().find(|partition| partition.id.0 == id);
        let Some(partition) = found else {
            return invalid(format!("There is no physical partition {id}"));
        };
        let shares = |other: &&Arc<Hosted>| other.store_id == partition.store_id;
        match partition.store_id {
            StoreId::MAIN if !lifts => {
                return invalid(format!("Physical partition {id} is in the main store already"));
            }
            store if lifts && store != StoreId::MAIN && list.all().iter().filter(shares).count() == 1 => {
                return invalid(format!(
                    "Physical partition {id} has a store of its own already: {}",
                    store.0
                ));
            }
            _ => {}
        }
        let mut indexes = definition.indexes.values().filter(|index| index.storage_id != 0);
        if let Some(index) = indexes.find(|index| !self.indexes.is_complete(index.storage_id)) {
            return invalid(format!(
                "Index {} is being built; physical partitions of its table can be moved when it is complete",
                index.name
            ));
        }
        let to = if lifts {
            let stores_max = self.stores.beside_max();
            if changing.stores.in_use.len() >= stores_max {
                return invalid(format!(
                    "There are {stores_max} stores beside the main one already; lower a physical partition first, or raise stores_max"
                ));
            }
            let id = StoreId(changing.stores.next);
            changing.stores.next += 1;
            let mut batch = Batch::new();
            let next = changing.stores.next.to_be_bytes();
            batch.put(Space::Catalog, NEXT_STORE.to_vec(), Bytes::copy_from_slice(&next));
            record_store(&mut batch, id, BEING_MADE);
            commit(self.main(), batch).await?;
            // Before anything of that number is made: after a loss of power the number is not given again.
            let durable = self.stores.make_durable(self.main()).await;
            durable.map_err(|error| Error::Server(error.to_string()))?;
            id
        } else {
            StoreId::MAIN
        };
        Ok(Move {
            table,
            definition: Arc::clone(definition),
            list: Arc::clone(list),
            partition: Arc::clone(partition),
            to,
            range: partition.key_range(table),
        })
    }

    /// Copies all but the last noted keys. Gives the store that it is copied to.
    async fn copy(&self, of: &Move) -> Result<Store, Error> {
        let failed = |error: store::Error| Error::Server(error.to_string());
        if of.to == StoreId::MAIN {
            // What it left there when it was lifted must be gone before it comes back.
            self.leftovers.until_removed(&of.copied()).await?;
        }
        let source = of.partition.store();
        let gate = &of.partition.gate;
        let hold = gate.hold().await;
        source.commit(Batch::new()).await.map_err(failed)?;
        gate.begin_notes(&of.range);
        let at = source.snapshot();
        drop(hold);
        let is_clone = of.to != StoreId::MAIN
            && of.partition.store_id == StoreId::MAIN
            && self.stores.clone_beside(of.to, &of.range).await.map_err(failed)?;
        let target = if of.to == StoreId::MAIN {
            self.main().clone()
        } else {
            self.stores.open_beside(of.to, true).await.map_err(failed)?
        };
        if is_clone {
            for index in of.definition.indexes.values().filter(|index| index.storage_id != 0) {
                let reindex = |batch: &mut Batch, key: Vec<u8>, _: &[u8]| batch.reindex(key, index.storage_id);
                let snapshot = target.snapshot();
                copy_range(&target, &snapshot, Space::Rows, &of.range, &target, reindex).await?;
            }
        } else {
            if !mutant::is_on(Mutant::TargetNotEmptied) {
                empty(&target, &of.copied()).await.map_err(failed)?;
            }
            let put = |batch: &mut Batch, key: Vec<u8>, value: &[u8]| {
                batch.put(Space::Rows, key, Bytes::copy_from_slice(value));
            };
            copy_range(source, &at, Space::Rows, &of.range, &target, put).await?;
        }
        let put = |batch: &mut Batch, key: Vec<u8>, value: &[u8]| {
            batch.put(Space::Deletions, key, Bytes::copy_from_slice(value));
        };
        copy_range(source, &at, Space::Deletions, &of.range, &target, put).await?;
        drop(at);
        for _ in 0..ROUNDS_MAX {
            if copy_noted(gate, source, &target).await? <= LAST_KEYS {
                break;
            }
        }
        // Most of it, so that writers need not wait for it at the end.
        self.stores.make_durable(&target).await.map_err(failed)?;
        Ok(target)
    }

    /// Copies the last noted keys while writers wait, records the move and lets it be seen.
    async fn end_move(self: &Arc<Self>, of: Move, target: &Store) -> Result<(), Error> {
        let gate = Arc::clone(&of.partition.gate);
        let mut changing = self.changing.lock().await;
        let outcome = self.settle(&mut changing).await;
        let hold = gate.hold().await;
        let copied = match outcome.and_then(|()| self.is_as_it_was(&of)) {
            Ok(()) => self.copy_last(&of, target).await,
            Err(error) => Err(error),
        };
        gate.end_notes();
        let current = self.current.load_full();
        let next = copied.and_then(|()| {
            let list = current.partitions.get(&of.table).unwrap_or(&of.list);
            let next = list.moved(of.partition.id, of.to, target);
            next.map_err(|error| Error::Invalid(error.to_string()))
        });
        let next = match next {
            Ok(next) => next,
            Err(error) => {
                drop(hold);
                drop(changing);
                self.leftovers.remove_copied(of.copied());
                return Err(error);
            }
        };
        let mut batch = Batch::new();
        batch.put(Space::Catalog, partitions_key(of.table), next.encode());
        if of.to != StoreId::MAIN {
            record_store(&mut batch, of.to, IN_USE);
        }
        match self.leftovers_of(&of, &next) {
            Some(moved) => batch.put(Space::Catalog, moved.key(), Bytes::new()),
            None => record_store(&mut batch, of.partition.store_id, BEING_REMOVED),
        }
        let (table, source) = (of.table, of.partition.store().clone());
        // Kept where the next one who may change the catalog finds it, until the list is published: the gate stays held so long.
        changing.unsure_move = Some(UnsureMove { of, hold });
        // The source, too: a batch that it holds another part of may have been copied.
        let recorded = self.commit_change(&[source, target.clone()], batch).await;
        // A list that is not published leaves the catalog in doubt, as a commit that fails does.
        let published = recorded.and_then(|publication| Ok((self.show_list(&current, table, next)?, publication)));
        match published {
            Ok(((), publication)) => {
                if let Some(UnsureMove { of, hold }) = changing.unsure_move.take() {
                    self.moved(&mut changing, &of, hold);
                }
                publication.end();
                Ok(())
            }
            Err(error) => {
                // Who waits at the gate looks again, and is refused as long as this is in doubt.
                if let Some(unsure) = &changing.unsure_move {
                    unsure.hold.tell();
                }
                drop(changing);
                self.spawn_settling();
                Err(error)
            }
        }
    }

    /// Resolves a change in doubt even if no request asks: writers may wait at a gate.
    fn spawn_settling(self: &Arc<Self>) {
        let (catalog, main, tasks) = (Arc::downgrade(self), self.main().clone(), self.tasks.clone());
        self.tasks.spawn("resolution of a change in doubt", async move {
            while tasks.unless_stopped(main.pause(PAUSE)).await.is_some() {
                let Some(catalog) = catalog.upgrade().filter(|catalog| catalog.is_unsure()) else {
                    return;
                };
                // It is tried again, unless a request has resolved it.
                drop(catalog.resolve_in_doubt().await);
            }
        });
    }

    /// What a list in force under another store means for writers, readers and what lies where it was.
    fn moved(&self, changing: &mut Changing, of: &Move, hold: Hold) {
        hold.supersede();
        changing.stores.in_use.extend((of.to != StoreId::MAIN).then_some(of.to));
        let current = self.current.load_full();
        let left = current
            .partitions
            .get(&of.table)
            .map(|list| self.leftovers_of(of, list))
            .unwrap_or_default();
        let old = vec![Arc::clone(&of.list)];
        match left {
            Some(moved) => self.leftovers.remove_moved(moved, old),
            None => {
                changing.stores.in_use.remove(&of.partition.store_id);
                self.leftovers.remove_store(of.partition.store_id, old);
            }
        }
    }

    /// What stays in the store that a partition was in; `None`: nothing else is there.
    fn leftovers_of(&self, of: &Move, next: &TablePartitions) -> Option<Moved> {
        let store = of.partition.store_id;
        let is_used = store == StoreId::MAIN || next.stores().any(|(id, _)| id == store);
        is_used.then_some(Moved {
            table: of.table,
            store,
            span: of.partition.span.clone(),
        })
    }

    /// What became of a move whose record failed, now that the list in force is that of the store.
    pub(super) fn settle_move(&self, changing: &mut Changing) {
        let Some(UnsureMove { of, hold }) = changing.unsure_move.take() else {
            return;
        };
        let current = self.current.load_full();
        let list = current.partitions.get(&of.table);
        let is_done = list.is_some_and(|list| {
            let mut all = list.all().iter();
            all.any(|partition| partition.id == of.partition.id && partition.store_id == of.to)
        });
        if is_done {
            self.moved(changing, &of, hold);
        } else {
            drop(hold);
            self.leftovers.remove_copied(of.copied());
        }
    }

    /// Whether what is moved is what it was when the move began.
    fn is_as_it_was(&self, of: &Move) -> Result<(), Error> {
        let current = self.current.load();
        let list = current.partitions.get(&of.table);
        let is_same = list.is_some_and(|list| list.epoch() == of.list.epoch())
            && current.table(of.table).is_some_and(|table| table == &of.definition);
        if is_same {
            return Ok(());
        }
        invalid(format!(
            "The table or its physical partitions changed while physical partition {} was moved; it is where it was, try again",
            of.partition.id.0
        ))
    }

    /// Copies what is left. The gate is held.
    async fn copy_last(&self, of: &Move, target: &Store) -> Result<(), Error> {
        let failed = |error: store::Error| Error::Server(error.to_string());
        let source = of.partition.store();
        // Behind whatever was handed over by writers that did not wait for its answer.
        source.commit(Batch::new()).await.map_err(failed)?;
        copy_noted(&of.partition.gate, source, target).await.map(drop)
    }
}

/// Writes what `add` makes of each entry of a range, in batches.
async fn copy_range(
    source: &Store,
    at: &store::Snapshot,
    space: Space,
    range: &KeyRange,
    target: &Store,
    add: impl Fn(&mut Batch, Vec<u8>, &[u8]) + Send + Sync,
) -> Result<(), Error> {
    let mut rest = Some(range.clone());
    while let Some(left) = rest.take() {
        let (mut batch, mut last) = (Batch::new(), None);
        let scanned = source.scan(space, &left, Order::Forward, at, |key, value| {
            add(&mut batch, key.to_vec(), value);
            if batch.bytes() < STEP_BYTES {
                return ControlFlow::Continue(());
            }
            last = Some(key.to_vec());
            ControlFlow::Break(())
        });
        scanned.await.map_err(|error| storage_read(&error))?;
        let committed = target.commit(batch).await;
        committed.map_err(|error| Error::Server(error.to_string()))?;
        rest = last.map(|last| behind(last, left));
    }
    Ok(())
}

/// Copies the keys that were noted since the last time, as they are now. How many there were.
async fn copy_noted(gate: &Arc<WriteGate>, source: &Store, target: &Store) -> Result<usize, Error> {
    let Some(noted) = gate.take_noted() else {
        return invalid(
            "More was written to the physical partition than could be copied beside it; try again".to_owned(),
        );
    };
    let count = noted.len();
    let at = source.snapshot();
    let mut batch = Batch::new();
    let failed = |error: store::Error| Error::Server(error.to_string());
    for (space, key) in noted {
        let value = source.get(space, &key, &at).await;
        // One that is not there never was (gate.rs).
        if let Some(value) = value.map_err(|error| storage_read(&error))? {
            batch.put(space, key, value);
        }
        if batch.bytes() >= STEP_BYTES {
            target.commit(std::mem::take(&mut batch)).await.map_err(failed)?;
        }
    }
    target.commit(batch).await.map_err(failed)?;
    Ok(count)
}

/// The id that a change moves, if it moves one.
pub(super) const fn moves(change: &PartitionChange) -> Option<PhysicalPartitionId> {
    match change {
        PartitionChange::Lift { id } | PartitionChange::Lower { id } => Some(PhysicalPartitionId(*id)),
        PartitionChange::Split { .. } | PartitionChange::Merge { .. } => None,
    }
}
