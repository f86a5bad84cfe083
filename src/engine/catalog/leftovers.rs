//! Leftovers in stores: finding them, removing them, and keeping them from coming back.
//!
//! The schema names the numbers of tables and indexes, and the partition maps assign ranges of tables to stores. What a
//! store holds besides is garbage, left by DROP or TRUNCATE, by a move to another store, by a move that failed, or by a
//! restore or move that a kill ended. No record says so: it follows from the catalog and the store. It is removed:
//! - after a change of the schema, and after a move, in the store that the partition left ([`Leftovers`]);
//! - after a move that failed, in the store that it copied to;
//! - after a start, wherever a [`Search`] finds it.
//!
//! A range is also emptied before rows are copied into it ([`empty`]). So no rows of an older copy mix with a newer
//! one, even if all of the above was missed.
//!
//! **The search** runs in the background, one store after the other, from number to number. A number is garbage if the
//! schema had no table, view or index of it when the catalog was opened and it is below the next free number of that
//! moment: numbers are never used again, so none can come into use meanwhile. A range of a table is garbage in a store
//! to which the table's partition map does not assign it. That is decided while no partition is moved and no change of
//! the catalog is in doubt, since both have rows where no map assigns them yet. Each number that a store holds costs a
//! seek in each space, and each range that it should not hold two.
//!
//! A whole store, or the rows of a dropped table, is removed only after two events: the record in the main store that
//! abandons it is durable, and the last request that uses an older partition map has ended.
//!
//! ```text
//! !next_store            u32: no store has had this number or one above it
//! !store · u32           1 being made, 2 in use, 3 being removed, 4 a data store; any other value is refused
//! !garbage · …  !moved · …   versions before recorded here what they had begun to remove; a start deletes these records
//! ```

use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use imbl::OrdMap;
use tokio::sync::watch;

use super::{Catalog, commit};
use crate::engine::{Error, index, logical, storage_read, storage_write};
use crate::mutant::{self, Mutant};
use crate::partition::hosted::range_of;
use crate::partition::store::{self, Batch, Damaged, KeyRange, Order, Space, Store, key};
use crate::partition::{KeySpan, StoreId, Stores, TablePartitions};
use crate::schema::{Schema, StorageId, system};
use crate::tasks::Tasks;

/// Prefixes of records that only versions before wrote.
pub(super) const RETIRED: [&[u8]; 2] = [b"!garbage", b"!moved"];
pub(super) const NEXT_STORE: &[u8] = b"!next_store";
pub(super) const STORE: &[u8] = b"!store";

pub(super) const BEING_MADE: u8 = 1;
pub(super) const IN_USE: u8 = 2;
pub(super) const BEING_REMOVED: u8 = 3;
/// In use, and kept when no table has a partition there ([`crate::partition::Homes`]).
pub(super) const DATA: u8 = 4;

/// Bytes of one commit of a copy, and of one step of a removal: writers to the same store wait for it.
pub(super) const STEP_BYTES: usize = 256 << 10;

/// Keys of one step of a removal.
const STEP_KEYS: usize = 1024;

/// Side stores that are opened at once: one in a bucket waits for some ten answers, one after the other.
const OPENED_AT_ONCE_MAX: usize = 8;

/// Pause before a failed step is tried again.
pub(super) const PAUSE: Duration = Duration::from_millis(500);

/// The spaces whose keys begin with the number of a table, index or change log.
pub(super) const SPACES: [Space; 4] = [Space::Rows, Space::Deletions, Space::Indexes, Space::Feed];

/// The physical partitions of each table.
type PartitionMaps = OrdMap<StorageId, Arc<TablePartitions>>;

/// Rows that may lie in a store although they belong to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moved {
    pub(super) table: StorageId,
    pub(super) store: StoreId,
    pub(super) span: KeySpan,
}

impl Moved {
    fn reaches_into(&self, other: &Self) -> bool {
        self.table == other.table && self.store == other.store && self.span.overlaps(&other.span)
    }

    /// The keys of its rows.
    fn range(&self) -> KeyRange {
        range_of(self.table, &self.span)
    }
}

pub(super) fn store_key(id: StoreId) -> Vec<u8> {
    [STORE, &id.0.to_be_bytes()].concat()
}

pub(super) fn record_next_store(batch: &mut Batch, next: u32) {
    let next = Bytes::copy_from_slice(&next.to_be_bytes());
    batch.put(Space::Catalog, NEXT_STORE.to_vec(), next);
}

pub(super) fn record_store(batch: &mut Batch, id: StoreId, state: u8) {
    batch.put(Space::Catalog, store_key(id), Bytes::copy_from_slice(&[state]));
}

/// The side stores that the catalog records.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    pub(super) next: u32,
    /// Those of moved partitions.
    pub(super) in_use: BTreeSet<StoreId>,
    /// Those over which tables are spread.
    pub(super) data: BTreeSet<StoreId>,
}

impl Recorded {
    /// Refuses a catalog in which a store is in use and no table has a physical partition there. Then the record of a
    /// table's physical partitions is missing: the table would be served from the main store, which does not hold its
    /// rows.
    ///
    /// # Errors
    /// [`Error::Fault`], which names the store.
    pub(super) fn check_named(&self, partitions: &PartitionMaps) -> Result<(), Error> {
        let maps = partitions.values();
        let named: BTreeSet<StoreId> = maps
            .flat_map(|map| map.stores().map(|(id, _)| id).collect::<Vec<_>>())
            .collect();
        match self.in_use.difference(&named).next() {
            None => Ok(()),
            Some(store) => damaged(format!(
                "store {} is in use, and no table's physical partitions lie there: the record of a table's physical partitions \
                 (!partitions) is missing. Restore the main store from a backup",
                store.0
            )),
        }
    }
}

/// The flaw of a record that should be, or contain, a number.
pub(super) const NO_NUMBER: &str = "it has no number of four bytes";

fn damaged<T>(what: String) -> Result<T, Error> {
    Err(Error::Fault(format!("the catalog is damaged: {what}")))
}

/// Reads the records of stores: the next free number, and the state of each, in order.
async fn states(main: &Store) -> Result<(u32, Vec<(StoreId, u8)>), Error> {
    let at = main.snapshot();
    let next = main.get(Space::Catalog, NEXT_STORE, &at).await;
    let next = match next.map_err(|error| storage_read(&error))? {
        None => 1,
        Some(next) => match next.as_ref().try_into() {
            Ok(next) => u32::from_be_bytes(next),
            Err(_) => return Err(Damaged::catalog(NEXT_STORE, NO_NUMBER).into()),
        },
    };
    let (mut states, mut wrong) = (Vec::new(), None);
    let range = KeyRange::prefix(STORE);
    let scanned = main.scan(Space::Catalog, &range, Order::Forward, &at, |key, value| {
        let id = key.strip_prefix(STORE).and_then(|id| id.try_into().ok());
        let id = id.map(|id| StoreId(u32::from_be_bytes(id)));
        match (id, value) {
            (Some(id), [state @ (BEING_MADE | IN_USE | BEING_REMOVED | DATA)]) => states.push((id, *state)),
            (id, value) => wrong = wrong.take().or_else(|| Some((id, value.to_vec()))),
        }
        ControlFlow::Continue(())
    });
    scanned.await.map_err(|error| storage_read(&error))?;
    match wrong {
        None => Ok((next, states)),
        Some((id, value)) => damaged(format!(
            "store {} is in state {value:02x?}, which this version does not know; nothing of it was changed. Start the version that \
             wrote it, or a newer one",
            id.map_or_else(|| "of no number".to_owned(), |id| id.0.to_string())
        )),
    }
}

/// Opens the side stores in use and the data stores, and returns those that were being made or removed: they are to be removed
/// ([`remove_unfinished`]).
///
/// # Errors
/// When a store cannot be opened; when the state of one is unknown.
pub(super) async fn open_stores(stores: &Stores) -> Result<(Recorded, Vec<StoreId>), Error> {
    let (next, states) = states(stores.main()).await?;
    let of = |wanted: &[u8]| {
        let of = states.iter().filter(|(_, state)| wanted.contains(state));
        of.map(|(id, _)| *id).collect::<BTreeSet<_>>()
    };
    let recorded = Recorded {
        next,
        in_use: of(&[IN_USE]),
        data: of(&[DATA]),
    };
    let used: Vec<StoreId> = recorded.in_use.union(&recorded.data).copied().collect();
    open_at_once(stores, &used, false).await?;
    Ok((recorded, of(&[BEING_MADE, BEING_REMOVED]).into_iter().collect()))
}

/// Opens side stores, several at once.
async fn open_at_once(stores: &Stores, ids: &[StoreId], are_new: bool) -> Result<(), Error> {
    for together in ids.chunks(OPENED_AT_ONCE_MAX) {
        let mut opening = Vec::with_capacity(together.len());
        for id in together {
            opening.push(Box::pin(stores.open_side(*id, are_new)));
        }
        for opened in join_all(opening).await {
            opened.map_err(|error| Error::Fault(error.to_string()))?;
        }
    }
    Ok(())
}

/// Makes the data stores that the options ask for and that are missing. They are recorded as being made before, and as data stores in one commit
/// after, so that a kill leaves none of them or all.
///
/// # Errors
/// When a store fails.
pub(super) async fn make_data_stores(stores: &Stores, recorded: &mut Recorded) -> Result<(), Error> {
    let missing = stores.data_stores_missing(recorded.data.len());
    let missing = u32::try_from(missing).unwrap_or(u32::MAX);
    if missing == 0 {
        return Ok(());
    }
    let made: Vec<StoreId> = (recorded.next..).take(missing as usize).map(StoreId).collect();
    recorded.next += missing;
    let record = async |state: u8| {
        let mut batch = Batch::new();
        record_next_store(&mut batch, recorded.next);
        for id in &made {
            record_store(&mut batch, *id, state);
        }
        commit(stores.main(), batch).await?;
        // Durable before the stores are made, and before any table lies in them.
        let durable = stores.make_durable(stores.main()).await;
        durable.map_err(|error| storage_write(&error))
    };
    record(BEING_MADE).await?;
    open_at_once(stores, &made, true).await?;
    record(DATA).await?;
    recorded.data.extend(made);
    Ok(())
}

/// Removes stores that were being made or removed, then their records.
///
/// # Errors
/// When one cannot be removed.
pub(super) async fn remove_unfinished(stores: &Stores, unfinished: Vec<StoreId>) -> Result<(), Error> {
    let failed = |error: store::Error| storage_write(&error);
    for id in unfinished {
        stores.remove(id).await.map_err(failed)?;
        let mut batch = Batch::new();
        batch.delete(Space::Catalog, store_key(id));
        stores.main().commit(batch).await.map_err(failed)?;
    }
    Ok(())
}

/// Removes leftovers in the background. The work ends when this is dropped.
pub(super) struct Leftovers {
    stores: Stores,
    /// Ranges of stores whose rows were moved away.
    ranges: Arc<watch::Sender<Vec<Moved>>>,
    /// Lives as long as this.
    alive: Arc<()>,
    tasks: Tasks,
}

/// Waits until no request uses these partition maps. False means that the server stopped first; the next start resumes.
async fn all_left(tasks: &Tasks, maps: impl IntoIterator<Item = Arc<TablePartitions>>) -> bool {
    for map in maps {
        if tasks.unless_stopped(TablePartitions::when_left(map)).await.is_none() {
            return false;
        }
    }
    true
}

impl Leftovers {
    pub(super) fn new(stores: Stores, tasks: Tasks) -> Self {
        Self {
            stores,
            tasks,
            ranges: Arc::default(),
            alive: Arc::default(),
        }
    }

    /// Removes a range that was moved away from a store, when no request uses these partition maps any more.
    pub(super) fn remove_moved(&self, moved: Moved, old: Vec<Arc<TablePartitions>>) {
        self.ranges.send_modify(|leftovers| {
            if !leftovers.contains(&moved) {
                leftovers.push(moved.clone());
            }
        });
        let (stores, leftovers) = (self.stores.clone(), Arc::clone(&self.ranges));
        let (alive, tasks) = (Arc::downgrade(&self.alive), self.tasks.clone());
        self.tasks.spawn("removal of moved rows", async move {
            if !all_left(&tasks, old).await {
                return;
            }
            loop {
                match empty_moved(&stores, &moved).await {
                    Ok(()) => break,
                    Err(store::Error::Closed) => return,
                    // Until the next start, which searches for leftovers. A move to this store fails by itself.
                    Err(store::Error::WritesRefused { .. }) => break,
                    Err(_) if alive.strong_count() == 0 => return,
                    Err(error) => {
                        tracing::warn!(store = moved.store.0, %error, "moved rows could not be removed from their old store; the removal is retried");
                        if tasks.unless_stopped(stores.main().pause(PAUSE)).await.is_none() {
                            return;
                        }
                    }
                }
            }
            leftovers.send_modify(|leftovers| {
                leftovers.retain(|other| *other != moved);
            });
        });
    }

    /// Removes what a failed move may have copied to its target: all of a store that was made for it.
    pub(super) fn remove_copied(&self, copied: Moved, is_store_new: bool) {
        if is_store_new {
            self.remove_store(copied.store, Vec::new());
        } else if !mutant::is_on(Mutant::TargetNotEmptied) {
            self.remove_moved(copied, Vec::new());
        }
    }

    /// Whether a part of a range is being removed.
    pub(super) fn is_being_removed(&self, range: &Moved) -> bool {
        self.ranges.borrow().iter().any(|moved| moved.reaches_into(range))
    }

    /// Waits until a range that was moved away from a store is empty.
    pub(super) async fn until_removed(&self, range: &Moved) -> Result<(), Error> {
        let mut leftovers = self.ranges.subscribe();
        let free = leftovers.wait_for(|leftovers| !leftovers.iter().any(|moved| moved.reaches_into(range)));
        free.await.map(drop).map_err(|error| Error::Fault(error.to_string()))
    }

    /// Removes a store that no published partition map names, and then its record, when no request uses these maps any
    /// more. The record that abandons the store is durable before.
    pub(super) fn remove_store(&self, id: StoreId, old: Vec<Arc<TablePartitions>>) {
        let (stores, tasks) = (self.stores.clone(), self.tasks.clone());
        self.tasks.spawn("removal of a store", async move {
            if !all_left(&tasks, old).await {
                return;
            }
            let removed = match stores.make_durable(stores.main()).await {
                Ok(()) => stores.remove(id).await,
                failed => failed,
            };
            match removed {
                Ok(()) => {}
                // The server stops, and the next start removes it.
                Err(store::Error::Closed) => return,
                Err(error) => {
                    tracing::warn!(store = id.0, %error, "an unused store could not be removed; the next start removes it");
                    return;
                }
            }
            let mut batch = Batch::new();
            batch.delete(Space::Catalog, store_key(id));
            if let Err(error) = stores.main().commit(batch).await {
                tracing::debug!(%error, "the record of a store could not be removed; the next start removes it");
            }
        });
    }

    /// Removes the rows, or index entries, of a number without a table or index, when no request and no move uses its
    /// last partition map (`None` means that it had none). What they write or copy after the removal would belong to no
    /// table and stay permanently.
    pub(super) fn remove_number(&self, id: StorageId, old: Option<Arc<TablePartitions>>) {
        let (stores, tasks) = (self.stores.clone(), self.tasks.clone());
        self.tasks.spawn("removal of dropped rows", async move {
            if !all_left(&tasks, old).await {
                return;
            }
            if let Err(error) = remove_garbage(&stores, id).await
                // When the server stops, the next start resumes.
                && !matches!(&error, Error::Storage(failure) if matches!(*failure.error, store::Error::Closed))
            {
                tracing::warn!(storage_id = id, %error, "rows of a dropped table could not be removed; the next start removes them");
            }
        });
    }
}

/// The stores that no map names after this change, each with the maps that named it. Adds their records to the batch.
pub(super) fn stores_left(
    in_use: &BTreeSet<StoreId>,
    before: &PartitionMaps,
    next: &PartitionMaps,
    batch: &mut Batch,
) -> Vec<(StoreId, Vec<Arc<TablePartitions>>)> {
    if in_use.is_empty() {
        return Vec::new();
    }
    let maps = next.values();
    let used: BTreeSet<StoreId> = maps
        .flat_map(|map| map.stores().map(|(id, _)| id).collect::<Vec<_>>())
        .collect();
    let left = in_use.difference(&used);
    left.map(|id| {
        record_store(batch, *id, BEING_REMOVED);
        let maps = before.values();
        let maps = maps.filter(|map| map.stores().any(|(store, _)| store == *id));
        (*id, maps.cloned().collect())
    })
    .collect()
}

/// Removes all of a number from all stores. The record that abandoned it is durable before.
async fn remove_garbage(stores: &Stores, id: StorageId) -> Result<(), Error> {
    let failed = |error: store::Error| storage_write(&error);
    stores.make_durable(stores.main()).await.map_err(failed)?;
    for (id_of, store) in stores.all() {
        let mut batch = Batch::new();
        for space in SPACES {
            batch.delete_range(space, key::table_range(id));
        }
        match store.commit(batch).await {
            Ok(_) => {}
            // A closed side store is being removed as a whole, or the server is closing.
            Err(store::Error::Closed) if id_of != StoreId::MAIN => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(())
}

/// Empties a range. The record of the rows' new store is durable before.
async fn empty_moved(stores: &Stores, moved: &Moved) -> store::Result<()> {
    stores.make_durable(stores.main()).await?;
    match stores.get(moved.store) {
        Some(store) => empty(&store, moved).await,
        None => Ok(()),
    }
}

/// Whether a range has any row or deletion in a store.
pub(super) async fn has_any(store: &Store, of: &Moved) -> Result<bool, Error> {
    let range = of.range();
    let at = store.snapshot();
    let mut has_any = false;
    for space in [Space::Rows, Space::Deletions] {
        let scanned = store.scan(space, &range, Order::Forward, &at, |_, _| {
            has_any = true;
            ControlFlow::Break(())
        });
        scanned.await.map_err(|error| storage_read(&error))?;
    }
    Ok(has_any)
}

/// Removes the rows and deletions of a range of tokens in steps, and with the rows their index entries. Requests no
/// longer write there, so each step starts after the last one and does not scan the removed keys again.
///
/// # Errors
/// As [`Store::scan`] and [`Store::commit`]; part of the range may be removed then.
pub(super) async fn empty(store: &Store, range: &Moved) -> store::Result<()> {
    // A failed commit may still be applied; after the next commit its result is visible.
    store.commit(Batch::new()).await?;
    for space in [Space::Rows, Space::Deletions] {
        let mut rest = Some(range.range());
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
            rest = last.map(|last| rest_after(last, left));
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}

/// The part of a range after a key.
pub(super) fn rest_after(key: Vec<u8>, range: KeyRange) -> KeyRange {
    KeyRange {
        start: Bound::Excluded(key),
        end: range.end,
    }
}

/// Failures after which the search goes on in the next space; the next start searches again.
const FAILURES_MAX: u32 = 120;

/// The numbers that had a meaning when the catalog was opened.
pub(in crate::engine) struct Numbers {
    used: BTreeSet<StorageId>,
    /// The first number that was free.
    next: StorageId,
}

impl Numbers {
    pub(super) fn of(schema: &Schema, next: StorageId) -> Self {
        Self {
            used: numbers_of(schema),
            next,
        }
    }
}

/// The numbers of a schema's tables, views, indexes, change feeds and change logs.
pub(super) fn numbers_of(schema: &Schema) -> BTreeSet<StorageId> {
    let tables = schema.keyspaces.values().flat_map(|keyspace| keyspace.all_tables());
    tables.flat_map(|table| table.all_storage_ids()).collect()
}

/// The progress of a search.
struct Search {
    numbers: Numbers,
    /// Garbage that is being removed, from all stores at once.
    removed: BTreeSet<StorageId>,
}

/// The result of a step.
enum Step {
    /// The number that was looked at.
    Passed(StorageId),
    /// Rows of the number are being removed after a move of this run. The step is to be repeated.
    Removing,
    /// The store has no further number in this space.
    End,
}

impl Catalog {
    /// Starts the search. It ends when the server stops; the next start searches again.
    pub(in crate::engine) fn remove_strays(self: &Arc<Self>, numbers: Numbers) {
        let tasks = self.tasks.clone();
        let search = Search {
            numbers,
            removed: BTreeSet::new(),
        };
        let run = search.run(Arc::downgrade(self), self.stores.all());
        self.tasks.spawn("search for leftovers", async move {
            tasks.unless_stopped(run).await;
        });
    }
}

impl Search {
    async fn run(mut self, catalog: Weak<Catalog>, stores: Vec<(StoreId, Store)>) {
        for (id, store) in &stores {
            if let Err(error) = self.forget_records(store).await {
                tracing::debug!(store = id.0, %error, "records of dropped tables stay in a store");
            }
            for space in SPACES {
                let (mut next, mut failures) = (system::USER_STORAGE_ID_MIN, 0);
                while failures < FAILURES_MAX {
                    // Held for one step only: a database that is dropped must let go of its stores.
                    let Some(catalog) = catalog.upgrade() else { return };
                    match self.step(&catalog, (*id, store), space, next).await {
                        Ok(Step::Passed(number)) => {
                            next = number.saturating_add(1);
                            tokio::task::yield_now().await;
                            continue;
                        }
                        Ok(Step::End) => break,
                        // A side store that was removed meanwhile.
                        Err(_) if catalog.stores.get(*id).is_none() => break,
                        Ok(Step::Removing) => {}
                        Err(error) => {
                            failures += 1;
                            tracing::debug!(store = id.0, %error, "the search for leftovers in a store is repeated");
                        }
                    }
                    let main = catalog.main().clone();
                    drop(catalog);
                    main.pause(PAUSE).await;
                }
            }
        }
    }

    /// Removes a store's records of numbers that are garbage.
    async fn forget_records(&self, store: &Store) -> store::Result<()> {
        let mut batch = Batch::new();
        for prefix in [index::RECORD, logical::RECORD] {
            let (at, range) = (store.snapshot(), KeyRange::prefix(prefix));
            let visit = |key: &[u8], _: &[u8]| {
                let number = key.get(prefix.len()..).and_then(|rest| rest.first_chunk());
                let number = number.map(|number| StorageId::from_be_bytes(*number));
                if number.is_some_and(|number| number < self.numbers.next && !self.numbers.used.contains(&number)) {
                    batch.delete(Space::Catalog, key.to_vec());
                }
                ControlFlow::Continue(())
            };
            store.scan(Space::Catalog, &range, Order::Forward, &at, visit).await?;
        }
        if batch.is_empty() {
            return Ok(());
        }
        store.commit(batch).await.map(drop)
    }

    /// Looks at the next number of a space of a store, and starts the removal of what is garbage.
    async fn step(
        &mut self,
        catalog: &Arc<Catalog>,
        (id, store): (StoreId, &Store),
        space: Space,
        from: StorageId,
    ) -> Result<Step, Error> {
        let Some(number) = first_number(store, space, from..self.numbers.next).await? else {
            return Ok(Step::End);
        };
        if !self.numbers.used.contains(&number) {
            if self.removed.insert(number) {
                catalog.leftovers.remove_number(number, None);
            }
            return Ok(Step::Passed(number));
        }
        let is_elsewhere = |catalog: &Catalog| {
            let map = catalog
                .load()
                .partitions_of(number)
                .map(|map| map.map().spans_outside(id));
            map.filter(|spans| !spans.is_empty())
        };
        let is_derived = matches!(space, Space::Indexes | Space::Feed);
        if is_derived || is_elsewhere(catalog).is_none() || mutant::is_on(Mutant::TargetNotEmptied) {
            return Ok(Step::Passed(number));
        }
        let _no_move = catalog.moving.lock().await;
        let mut changing = catalog.changing.lock().await;
        catalog.resolve_locked(&mut changing).await?;
        for span in is_elsewhere(catalog).unwrap_or_default() {
            let moved = Moved {
                table: number,
                store: id,
                span,
            };
            if catalog.leftovers.is_being_removed(&moved) {
                return Ok(Step::Removing);
            }
            if has_any(store, &moved).await? {
                catalog.leftovers.remove_moved(moved, Vec::new());
            }
        }
        Ok(Step::Passed(number))
    }
}

/// The first number within these bounds of which a space has a key.
async fn first_number(
    store: &Store,
    space: Space,
    within: std::ops::Range<StorageId>,
) -> Result<Option<StorageId>, Error> {
    let range = KeyRange {
        start: Bound::Included(within.start.to_be_bytes().to_vec()),
        end: Bound::Excluded(within.end.to_be_bytes().to_vec()),
    };
    if within.is_empty() {
        return Ok(None);
    }
    let (at, mut found) = (store.snapshot(), None);
    let scanned = store.scan(space, &range, Order::Forward, &at, |key, _| {
        found = key.first_chunk().map(|number| StorageId::from_be_bytes(*number));
        ControlFlow::Break(())
    });
    scanned.await.map_err(|error| storage_read(&error))?;
    Ok(found)
}
