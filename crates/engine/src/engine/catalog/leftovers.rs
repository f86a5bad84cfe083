//! Leftovers in stores: finding them, removing them, and keeping them from coming back.
//!
//! The schema names the numbers of tables and indexes, and the partition maps assign ranges of tables to stores. What a
//! store holds besides is garbage, left by DROP or TRUNCATE, by a move to another store, by a move that failed, or by a
//! restore or move that a kill ended. No record says so: it follows from the catalog and the store. It is removed:
//! - after a change of the schema, and after a move, in the store that the partition left ([`Leftovers`]);
//! - after a move that failed, in the store that it copied to;
//! - after a start, wherever a search finds it (strays.rs).
//!
//! A range is also emptied before rows are copied into it ([`empty`]). So no rows of an older copy mix with a newer
//! one, even if all of the above was missed.
//!
//! A whole store, or the rows of a dropped table, is removed only after two events: the record in the main store that
//! abandons it is durable, and the last request that uses an older partition map has ended. A bucket keeps a store for a
//! while after that ([`Stores::removal_delay`]).
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

use super::commit;
use crate::engine::{Error, OpeningFailure, storage_read, storage_write};
use crate::partition::hosted::range_of;
use crate::partition::{StoreId, Stores, TablePartitions};
use helenus_base::mutant::{self, Mutant};
use helenus_base::tasks::Tasks;
use helenus_schema::schema::StorageId;
use helenus_storage::storage::{self as store, Batch, Damaged, KeyRange, Order, Space, Store, key};
use helenus_types::token::KeySpan;

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

/// The longest pause before a failed removal is tried again: each is twice the one before.
const PAUSE_MAX: Duration = Duration::from_secs(8);

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

/// The recorded side stores that are to be removed.
pub(super) struct Unfinished {
    /// Before anything is served: those that were being made, and those that need not be kept.
    pub(super) now: Vec<StoreId>,
    /// Once they have been kept for [`Stores::removal_delay`].
    pub(super) later: Vec<StoreId>,
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

/// Opens the side stores in use and the data stores, and returns those that were being made or removed.
///
/// # Errors
/// When a store cannot be opened; when the state of one is unknown.
pub(super) async fn open_stores(stores: &Stores) -> Result<(Recorded, Unfinished), Error> {
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
    let is_kept = !stores.removal_delay().is_zero();
    let (now, later): (&[u8], &[u8]) = match is_kept {
        true => (&[BEING_MADE], &[BEING_REMOVED]),
        false => (&[BEING_MADE, BEING_REMOVED], &[]),
    };
    let unfinished = Unfinished {
        now: of(now).into_iter().collect(),
        later: of(later).into_iter().collect(),
    };
    Ok((recorded, unfinished))
}

/// Opens side stores, several at once.
async fn open_at_once(stores: &Stores, ids: &[StoreId], are_new: bool) -> Result<(), Error> {
    for together in ids.chunks(OPENED_AT_ONCE_MAX) {
        let mut opening = Vec::with_capacity(together.len());
        for id in together {
            opening.push(Box::pin(stores.open_side(*id, are_new)));
        }
        for opened in join_all(opening).await {
            opened.map_err(OpeningFailure::from)?;
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
            let place = format!("moved rows in store {}", moved.store.0);
            let ended = remove_repeatedly((&stores, &tasks, &alive), &place, || empty_moved(&stores, &moved)).await;
            // After a given up removal, a move to this store fails by itself.
            if ended == Ended::ServerStops {
                return;
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
            let delay = stores.removal_delay();
            let removed = async {
                stores.make_durable(stores.main()).await?;
                if !delay.is_zero() {
                    stores.leave(id).await?;
                    let waited = tasks.unless_stopped(stores.main().pause(delay)).await;
                    waited.ok_or(store::Error::Closed)?;
                }
                stores.remove(id).await
            };
            match removed.await {
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
        let alive = Arc::downgrade(&self.alive);
        self.tasks.spawn("removal of dropped rows", async move {
            if !all_left(&tasks, old).await {
                return;
            }
            stores.end_derivation(id);
            let place = format!("rows or entries of the dropped number {id}");
            remove_repeatedly((&stores, &tasks, &alive), &place, || remove_garbage(&stores, id)).await;
        });
    }
}

/// How a removal ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// Everything is removed, or the next start removes the rest.
    DoneOrGivenUp,
    /// The server stops. The next start resumes.
    ServerStops,
}

/// Removes something, again and again until it succeeds.
async fn remove_repeatedly<F: Future<Output = store::Result<()>>>(
    (stores, tasks, alive): (&Stores, &Tasks, &Weak<()>),
    what: &str,
    remove: impl Fn() -> F,
) -> Ended {
    let mut pause = PAUSE;
    loop {
        match remove().await {
            // Writes are refused until the next start, which searches for leftovers.
            Ok(()) | Err(store::Error::WritesRefused { .. }) => return Ended::DoneOrGivenUp,
            Err(store::Error::Closed) => return Ended::ServerStops,
            Err(_) if alive.strong_count() == 0 => return Ended::ServerStops,
            Err(error) if pause == PAUSE => {
                tracing::warn!(%error, "{what} could not be removed; the removal is repeated");
            }
            Err(error) => tracing::debug!(%error, "{what} could not be removed"),
        }
        if tasks.unless_stopped(stores.main().pause(pause)).await.is_none() {
            return Ended::ServerStops;
        }
        pause = (pause * 2).min(PAUSE_MAX);
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
async fn remove_garbage(stores: &Stores, id: StorageId) -> store::Result<()> {
    stores.make_durable(stores.main()).await?;
    for (id_of, store) in stores.all() {
        let mut batch = Batch::new();
        for space in SPACES {
            batch.delete_range(space, key::table_range(id));
        }
        match store.commit(batch).await {
            Ok(_) => {}
            // A closed side store is being removed as a whole, or the server is closing.
            Err(store::Error::Closed) if id_of != StoreId::MAIN => {}
            Err(error) => return Err(error),
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
