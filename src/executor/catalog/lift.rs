//! Moving a physical partition to another store: into a new one of its own (lift), and back into the main one (lower).
//!
//! ```text
//! record: being made ─► hold ─ notes begin ─ open ─► clone, or copy of a snapshot ─► noted keys, again and again, writers at work
//!     ─► hold ─► the last noted keys ─► record: the list, the store in use, what lies where it was ─► in force ─► gates superseded
//!     ─► nobody reads by the old list any more ─► what lies where it was is removed, then its record
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
//! **Kills.** The records in the main store are the truth. A store that was being made, or removed, is removed at the next start; what
//! lies where it was is removed behind, from its record.
//!
//! ```text
//! !next_store            u32: no store has had this number or one above it
//! !store · u32           1 being made, 2 in use, 3 being removed
//! !moved · table u32 · store u32 · lower i64 · upper i64     rows of the table with these tokens may lie in the store, and are elsewhere
//! ```
//! A partition is not moved while an index of its table is built, and a change of the table meanwhile ends the move.

use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::{Catalog, Changing, Partitions, Snapshot, commit, partitions_key};
use crate::executor::{Error, storage_read};
use crate::partition::gate::Hold;
use crate::partition::store::{self, Batch, KeyRange, Order, Space, Store, key};
use crate::partition::{PhysicalPartition, PhysicalPartitionId, StoreId, Stores, TablePartitions, WriteGate};
use crate::planner::ddl::PartitionChange;
use crate::schema::{StorageId, Table};

pub(super) const NEXT_STORE: &[u8] = b"!next_store";
pub(super) const STORE: &[u8] = b"!store";
pub(super) const MOVED: &[u8] = b"!moved";

const BEING_MADE: u8 = 1;
const IN_USE: u8 = 2;
const BEING_REMOVED: u8 = 3;

/// Bytes of one commit of a copy, and of one step of a removal: writers to the same store wait behind it.
const STEP_BYTES: usize = 256 << 10;

/// Keys of one step of a removal.
const STEP_KEYS: usize = 1024;

/// Noted keys that are few enough to be copied while writers wait.
const LAST_KEYS: usize = 256;

/// How often noted keys are copied with writers at work; then what there is, is copied while they wait.
const ROUNDS_MAX: usize = 16;

/// Pause before something that failed is tried again.
const PAUSE: Duration = Duration::from_millis(500);

/// Rows that may lie in a store and are elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moved {
    table: StorageId,
    store: StoreId,
    lower: i64,
    upper: i64,
}

impl Moved {
    fn key(&self) -> Vec<u8> {
        let mut key = MOVED.to_vec();
        key.extend_from_slice(&self.table.to_be_bytes());
        key.extend_from_slice(&self.store.0.to_be_bytes());
        key.extend_from_slice(&self.lower.to_be_bytes());
        key.extend_from_slice(&self.upper.to_be_bytes());
        key
    }

    /// Reads what follows [`MOVED`] in a key.
    pub(super) fn decode(place: &[u8]) -> Option<Self> {
        let (table, rest) = place.split_first_chunk::<4>()?;
        let (store, rest) = rest.split_first_chunk::<4>()?;
        let (lower, rest) = rest.split_first_chunk::<8>()?;
        Some(Self {
            table: u32::from_be_bytes(*table),
            store: StoreId(u32::from_be_bytes(*store)),
            lower: i64::from_be_bytes(*lower),
            upper: i64::from_be_bytes(rest.try_into().ok()?),
        })
    }

    fn reaches_into(&self, other: &Self) -> bool {
        self.table == other.table && self.store == other.store && self.lower <= other.upper && other.lower <= self.upper
    }
}

fn store_key(id: StoreId) -> Vec<u8> {
    [STORE, &id.0.to_be_bytes()].concat()
}

fn record_store(batch: &mut Batch, id: StoreId, state: u8) {
    batch.put(Space::Catalog, store_key(id), Bytes::copy_from_slice(&[state]));
}

/// The stores that the catalog of the main one records.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    pub(super) next: u32,
    pub(super) in_use: BTreeSet<StoreId>,
}

/// Opens the stores beside the main one that are in use, and removes those that were being made or removed.
///
/// # Errors
/// When a store cannot be opened or removed.
pub(super) async fn open_stores(stores: &Stores) -> Result<Recorded, Error> {
    let main = stores.main();
    let (mut recorded, mut gone) = (Recorded::default(), Vec::new());
    recorded.next = 1;
    let at = main.snapshot();
    let next = main.get(Space::Catalog, NEXT_STORE, &at).await;
    let next = next.map_err(|error| storage_read(&error))?;
    if let Some(next) = next.and_then(|next| next.as_ref().try_into().ok()) {
        recorded.next = u32::from_be_bytes(next);
    }
    let range = KeyRange::prefix(STORE);
    let scanned = main.scan(Space::Catalog, &range, Order::Forward, &at, |key, value| {
        let id = key.strip_prefix(STORE).and_then(|id| id.try_into().ok());
        if let Some(id) = id.map(|id| StoreId(u32::from_be_bytes(id))) {
            if value == [IN_USE] {
                recorded.in_use.insert(id);
            } else {
                gone.push(id);
            }
        }
        ControlFlow::Continue(())
    });
    scanned.await.map_err(|error| storage_read(&error))?;
    let failed = |error: store::Error| Error::Server(error.to_string());
    for id in gone {
        stores.remove(id).await.map_err(failed)?;
        let mut batch = Batch::new();
        batch.delete(Space::Catalog, store_key(id));
        commit(main, batch).await?;
    }
    for id in &recorded.in_use {
        stores.open_beside(*id, false).await.map_err(failed)?;
    }
    Ok(recorded)
}

/// A move at work.
struct Move {
    table: StorageId,
    /// As it was when the move began.
    definition: Arc<Table>,
    list: Arc<TablePartitions>,
    partition: Arc<PhysicalPartition>,
    to: StoreId,
    range: KeyRange,
}

/// A move of which nobody knows whether it was recorded. Its gate stays held until somebody does.
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
        let is_new = of.to != StoreId::MAIN;
        let gate = Arc::clone(&of.partition.gate);
        let to = of.to;
        let target = match self.copy(&of).await {
            Ok(target) => target,
            Err(error) => {
                gate.end_notes();
                if is_new {
                    self.remove_store_behind(to, Vec::new());
                }
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
        let shares = |other: &&Arc<PhysicalPartition>| other.store_id == partition.store_id;
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
            range: key::token_range(table, partition.lower, partition.upper),
        })
    }

    /// Copies all but the last noted keys. Gives the store that it is copied to.
    async fn copy(&self, of: &Move) -> Result<Store, Error> {
        let failed = |error: store::Error| Error::Server(error.to_string());
        if of.to == StoreId::MAIN {
            // What it left there when it was lifted must be gone before it comes back.
            self.until_removed(&Moved {
                table: of.table,
                store: of.to,
                lower: of.partition.lower,
                upper: of.partition.upper,
            })
            .await?;
        }
        let source = &of.partition.store;
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
                if of.to != StoreId::MAIN {
                    self.remove_store_behind(of.to, Vec::new());
                }
                return Err(error);
            }
        };
        let mut batch = Batch::new();
        batch.put(Space::Catalog, partitions_key(of.table), next.encode());
        if of.to != StoreId::MAIN {
            record_store(&mut batch, of.to, IN_USE);
        }
        let left = self.left_behind(&of, &next);
        match left {
            Some(moved) => batch.put(Space::Catalog, moved.key(), Bytes::new()),
            None => record_store(&mut batch, of.partition.store_id, BEING_REMOVED),
        }
        if let Err(error) = self.commit_change(batch).await {
            // Whoever waits at the gate is to be told that nobody knows.
            hold.tell();
            changing.unsure_move = Some(UnsureMove { of, hold });
            drop(changing);
            // Writers wait at the gate, so somebody must find out even if nobody asks.
            let (catalog, main) = (Arc::downgrade(self), self.main().clone());
            tokio::spawn(async move {
                loop {
                    main.pause(PAUSE).await;
                    let Some(catalog) = catalog.upgrade().filter(|catalog| catalog.is_unsure()) else {
                        return;
                    };
                    // It is tried again, or somebody else has found out.
                    drop(catalog.find_out().await);
                }
            });
            return Err(error);
        }
        self.show_list(&current, of.table, next);
        self.moved(&mut changing, &of, hold);
        Ok(())
    }

    /// What a list in force under another store means for writers, readers and what lies where it was.
    fn moved(&self, changing: &mut Changing, of: &Move, hold: Hold) {
        hold.supersede();
        changing.stores.in_use.extend((of.to != StoreId::MAIN).then_some(of.to));
        let current = self.current.load_full();
        let left = current
            .partitions
            .get(&of.table)
            .map(|list| self.left_behind(of, list))
            .unwrap_or_default();
        let old = vec![Arc::clone(&of.list)];
        match left {
            Some(moved) => self.remove_moved_behind(moved, old),
            None => {
                changing.stores.in_use.remove(&of.partition.store_id);
                self.remove_store_behind(of.partition.store_id, old);
            }
        }
    }

    /// What stays in the store that a partition was in; `None`: nothing else is there.
    fn left_behind(&self, of: &Move, next: &TablePartitions) -> Option<Moved> {
        let store = of.partition.store_id;
        let is_used = store == StoreId::MAIN || next.stores().any(|(id, _)| id == store);
        is_used.then_some(Moved {
            table: of.table,
            store,
            lower: of.partition.lower,
            upper: of.partition.upper,
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
            if of.to != StoreId::MAIN {
                self.remove_store_behind(of.to, Vec::new());
            }
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
        let source = &of.partition.store;
        // Behind whatever was handed over by writers that did not wait for its answer.
        source.commit(Batch::new()).await.map_err(failed)?;
        copy_noted(&of.partition.gate, source, target).await?;
        self.stores.make_durable(target).await.map_err(failed)
    }

    /// Removes what lies where it was, when nobody goes by these lists any more; then its record.
    pub(super) fn remove_moved_behind(&self, moved: Moved, old: Vec<Arc<TablePartitions>>) {
        self.leftovers.send_modify(|leftovers| {
            leftovers.insert(moved);
        });
        let (stores, leftovers) = (self.stores.clone(), Arc::clone(&self.leftovers));
        let alive = Arc::downgrade(&self.alive);
        tokio::spawn(async move {
            for list in old {
                TablePartitions::when_left(list).await;
            }
            if let Some(store) = stores.get(moved.store) {
                loop {
                    match remove_range(&store, &moved).await {
                        Ok(()) => break,
                        Err(store::Error::Closed) => return,
                        Err(_) if alive.strong_count() == 0 => return,
                        Err(error) => {
                            tracing::warn!(store = moved.store.0, %error, "rows that were moved stay for a while");
                            stores.main().pause(PAUSE).await;
                        }
                    }
                }
            }
            // The record must be gone before the range may come back: the next start would remove what it names.
            loop {
                let mut batch = Batch::new();
                batch.delete(Space::Catalog, moved.key());
                match stores.main().commit(batch).await {
                    Ok(_) => break,
                    Err(store::Error::Closed) => return,
                    Err(_) if alive.strong_count() == 0 => return,
                    Err(_) => stores.main().pause(PAUSE).await,
                }
            }
            leftovers.send_modify(|leftovers| {
                leftovers.remove(&moved);
            });
        });
    }

    /// Waits until nothing lies in a range of a store that was moved from it.
    async fn until_removed(&self, range: &Moved) -> Result<(), Error> {
        let mut leftovers = self.leftovers.subscribe();
        let free = leftovers.wait_for(|leftovers| !leftovers.iter().any(|moved| moved.reaches_into(range)));
        free.await.map(drop).map_err(|error| Error::Server(error.to_string()))
    }

    /// Removes a store that no list in force names, when nobody goes by these lists any more; then its record.
    pub(super) fn remove_store_behind(&self, id: StoreId, old: Vec<Arc<TablePartitions>>) {
        let stores = self.stores.clone();
        tokio::spawn(async move {
            for list in old {
                TablePartitions::when_left(list).await;
            }
            if let Err(error) = stores.remove(id).await {
                tracing::warn!(store = id.0, %error, "a store that is not used stays until the next start");
                return;
            }
            let mut batch = Batch::new();
            batch.delete(Space::Catalog, store_key(id));
            if let Err(error) = stores.main().commit(batch).await {
                tracing::debug!(%error, "a record of a store stays until the next start");
            }
        });
    }

    /// The stores that no list names any more under the next lists; their records are added to the batch.
    pub(super) fn stores_left(
        &self,
        changing: &Changing,
        before: &Snapshot,
        next: &Partitions,
        batch: &mut Batch,
    ) -> Vec<(StoreId, Vec<Arc<TablePartitions>>)> {
        if changing.stores.in_use.is_empty() {
            return Vec::new();
        }
        let used: BTreeSet<StoreId> = next
            .values()
            .flat_map(|list| list.stores().map(|(id, _)| id).collect::<Vec<_>>())
            .collect();
        let left = changing.stores.in_use.difference(&used);
        left.map(|id| {
            record_store(batch, *id, BEING_REMOVED);
            let lists = before.partitions.values();
            let lists = lists.filter(|list| list.stores().any(|(store, _)| store == *id));
            (*id, lists.cloned().collect())
        })
        .collect()
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
        match value.map_err(|error| storage_read(&error))? {
            Some(value) => batch.put(space, key, value),
            None => batch.delete(space, key),
        }
        if batch.bytes() >= STEP_BYTES {
            target.commit(std::mem::take(&mut batch)).await.map_err(failed)?;
        }
    }
    target.commit(batch).await.map_err(failed)?;
    Ok(count)
}

/// Removes the rows and deletions of a range of tokens, some at a time; their index entries go with the rows. Nobody writes there any
/// more, so that each step goes on behind the last one, and need not pass over what was removed before it.
async fn remove_range(store: &Store, moved: &Moved) -> store::Result<()> {
    for space in [Space::Rows, Space::Deletions] {
        let mut rest = Some(key::token_range(moved.table, moved.lower, moved.upper));
        while let Some(left) = rest.take() {
            let (mut batch, mut last) = (Batch::new(), None);
            let at = store.snapshot();
            let scanned = store.scan(space, &left, Order::Forward, &at, |key, _| {
                batch.delete(space, key.to_vec());
                if batch.len() < STEP_KEYS && batch.bytes() < STEP_BYTES {
                    return ControlFlow::Continue(());
                }
                last = Some(key.to_vec());
                ControlFlow::Break(())
            });
            scanned.await?;
            if !batch.is_empty() {
                store.commit(batch).await?;
            }
            rest = last.map(|last| behind(last, left));
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}

/// What of a range lies behind a key of it.
fn behind(key: Vec<u8>, range: KeyRange) -> KeyRange {
    KeyRange {
        start: Bound::Excluded(key),
        end: range.end,
    }
}

/// The id that a change moves, if it moves one.
pub(super) const fn moves(change: PartitionChange) -> Option<PhysicalPartitionId> {
    match change {
        PartitionChange::Lift { id } | PartitionChange::Lower { id } => Some(PhysicalPartitionId(id)),
        PartitionChange::Split { .. } | PartitionChange::Merge { .. } => None,
    }
}
