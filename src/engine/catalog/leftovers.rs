//! Leftovers in stores: finding them, removing them, and keeping them from coming back.
//!
//! The partition map assigns ranges of tables to stores. Rows in a store outside these ranges are garbage, left by a
//! move to another store, a move that failed, or a move that a kill ended. They are removed in three places:
//! - after a move, in the store that the partition left ([`Leftovers::remove_moved`], with a record);
//! - after a move that failed, in the store that it copied to (the same, without a record);
//! - at start, wherever a range that the map assigns to another store has a key ([`outside`]): two seeks for each
//!   range.
//!
//! A range is also emptied before rows are copied into it ([`empty`]). So no rows of an older copy mix with a newer
//! one, even if all of the above was missed.
//!
//! A whole store, or the rows of a dropped table, is removed only after two events: the record in the main store that
//! abandons it is durable, and the last request that uses an older partition map has ended.
//!
//! ```text
//! !garbage · u32         no table uses the rows, or index entries, of this number any more; they are being removed
//! !next_store            u32: no store has had this number or one above it
//! !store · u32           1 being made, 2 in use, 3 being removed; any other value is refused
//! !moved · table u32 · store u32 · lower i64 · upper i64
//!                        rows of the table with these tokens may lie in the store, and belong elsewhere
//!   … · key length u32 · partition key · ( 0 | 1 · token i64 · partition key )
//!                        the same from a key of the token `lower` on, to the end of the ring (0) or before a key (1);
//!                        written only where a bound lies inside a token
//! ```

use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow, Range};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use imbl::OrdMap;
use tokio::sync::watch;

use super::NEXT_STORAGE_ID;
use crate::engine::{Error, storage_read, storage_write};
use crate::mutant::{self, Mutant};
use crate::partition::hosted::range_of;
use crate::partition::store::{self, Batch, Damaged, KeyRange, Order, Space, Store, key};
use crate::partition::{KeyBound, KeySpan, StoreId, Stores, TablePartitions};
use crate::schema::StorageId;
use crate::tasks::Tasks;
use crate::token::Token;

pub(super) const GARBAGE: &[u8] = b"!garbage";
pub(super) const NEXT_STORE: &[u8] = b"!next_store";
pub(super) const STORE: &[u8] = b"!store";
pub(super) const MOVED: &[u8] = b"!moved";

pub(super) const BEING_MADE: u8 = 1;
pub(super) const IN_USE: u8 = 2;
pub(super) const BEING_REMOVED: u8 = 3;

/// Bytes of one commit of a copy, and of one step of a removal: writers to the same store wait for it.
pub(super) const STEP_BYTES: usize = 256 << 10;

/// Keys of one step of a removal.
const STEP_KEYS: usize = 1024;

/// Pause before a failed step is tried again.
pub(super) const PAUSE: Duration = Duration::from_millis(500);

/// The physical partitions of each table.
type PartitionMaps = OrdMap<StorageId, Arc<TablePartitions>>;

/// Rows that may lie in a store although they belong to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moved {
    pub(super) table: StorageId,
    pub(super) store: StoreId,
    pub(super) span: KeySpan,
}

/// The end of a span in the key of a `!moved` record that needs more than tokens.
const END_OF_RING: u8 = 0;
const AT_KEY: u8 = 1;

impl Moved {
    pub(super) fn key(&self) -> Vec<u8> {
        let mut key = MOVED.to_vec();
        key.extend_from_slice(&self.table.to_be_bytes());
        key.extend_from_slice(&self.store.0.to_be_bytes());
        let (start, end) = (self.span.start(), self.span.end());
        key.extend_from_slice(&self.span.lower().to_be_bytes());
        key.extend_from_slice(&self.span.upper().to_be_bytes());
        if start.is_between_tokens() && end.is_none_or(KeyBound::is_between_tokens) {
            return key;
        }
        // A partition key is shorter than a key of the store, so its length fits.
        let length = u32::try_from(start.partition_key().len()).unwrap_or(u32::MAX);
        key.extend_from_slice(&length.to_be_bytes());
        key.extend_from_slice(start.partition_key());
        match end {
            None => key.push(END_OF_RING),
            Some(end) => {
                key.push(AT_KEY);
                key.extend_from_slice(&end.token().to_be_bytes());
                key.extend_from_slice(end.partition_key());
            }
        }
        key
    }

    /// Decodes the part of a key after [`MOVED`].
    pub(super) fn decode(place: &[u8]) -> Option<Self> {
        let (table, rest) = place.split_first_chunk::<4>()?;
        let (store, rest) = rest.split_first_chunk::<4>()?;
        let (lower, rest) = rest.split_first_chunk::<8>()?;
        let (upper, rest) = rest.split_first_chunk::<8>()?;
        let lower = i64::from_be_bytes(*lower);
        let span = if rest.is_empty() {
            KeySpan::of_tokens(lower, i64::from_be_bytes(*upper))?
        } else {
            let (length, rest) = rest.split_first_chunk::<4>()?;
            let (partition_key, rest) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
            let start = KeyBound::at_key(Token::bound(lower), partition_key);
            let end = match rest.split_first()? {
                (&END_OF_RING, []) => None,
                (&AT_KEY, rest) => {
                    let (token, partition_key) = rest.split_first_chunk::<8>()?;
                    Some(KeyBound::at_key(
                        Token::bound(i64::from_be_bytes(*token)),
                        partition_key,
                    ))
                }
                _ => return None,
            };
            KeySpan::new(start, end)?
        };
        Some(Self {
            table: u32::from_be_bytes(*table),
            store: StoreId(u32::from_be_bytes(*store)),
            span,
        })
    }

    fn reaches_into(&self, other: &Self) -> bool {
        self.table == other.table && self.store == other.store && self.span.overlaps(&other.span)
    }

    /// The keys of its rows.
    fn range(&self) -> KeyRange {
        range_of(self.table, &self.span)
    }
}

pub(super) fn garbage_key(id: StorageId) -> Vec<u8> {
    [GARBAGE, &id.to_be_bytes()].concat()
}

/// The records that reserve these numbers: no table has one, and the next start removes the rows written under them.
pub(super) fn numbers_taken(ids: &Range<StorageId>) -> Batch {
    let mut batch = Batch::new();
    let next = ids.end.to_be_bytes();
    batch.put(Space::Catalog, NEXT_STORAGE_ID.to_vec(), Bytes::copy_from_slice(&next));
    for id in ids.clone() {
        batch.put(Space::Catalog, garbage_key(id), Bytes::new());
    }
    batch
}

/// The removal of those records, after which tables keep the rows written under these numbers.
pub(super) fn numbers_kept(ids: Range<StorageId>) -> Batch {
    let mut batch = Batch::new();
    for id in ids {
        batch.delete(Space::Catalog, garbage_key(id));
    }
    batch
}

pub(super) fn store_key(id: StoreId) -> Vec<u8> {
    [STORE, &id.0.to_be_bytes()].concat()
}

pub(super) fn record_store(batch: &mut Batch, id: StoreId, state: u8) {
    batch.put(Space::Catalog, store_key(id), Bytes::copy_from_slice(&[state]));
}

/// The side stores that the catalog records.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    pub(super) next: u32,
    pub(super) in_use: BTreeSet<StoreId>,
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
            (Some(id), [state @ (BEING_MADE | IN_USE | BEING_REMOVED)]) => states.push((id, *state)),
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

/// Opens the side stores in use, and returns those that were being made or removed: they are to be removed
/// ([`remove_unfinished`]).
///
/// # Errors
/// When a store cannot be opened; when the state of one is unknown.
pub(super) async fn open_stores(stores: &Stores) -> Result<(Recorded, Vec<StoreId>), Error> {
    let (next, states) = states(stores.main()).await?;
    let mut recorded = Recorded {
        next,
        in_use: BTreeSet::new(),
    };
    let mut unfinished = Vec::new();
    for (id, state) in states {
        if state == IN_USE {
            let opened = stores.open_side(id, false).await;
            opened.map_err(|error| Error::Fault(error.to_string()))?;
            recorded.in_use.insert(id);
        } else {
            unfinished.push(id);
        }
    }
    Ok((recorded, unfinished))
}

/// Removes stores that were being made or removed, then their records.
///
/// # Errors
/// When one cannot be removed.
pub(super) async fn remove_unfinished(stores: &Stores, unfinished: Vec<StoreId>) -> Result<(), Error> {
    let failed = |error: store::Error| Error::Fault(error.to_string());
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

    /// Removes a range that was moved away from a store, and then its record, when no request uses these partition maps
    /// any more.
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

    /// Removes what a failed move may have copied to its target.
    pub(super) fn remove_copied(&self, copied: Moved) {
        if copied.store != StoreId::MAIN {
            self.remove_store(copied.store, Vec::new());
        } else if !mutant::is_on(Mutant::TargetNotEmptied) {
            self.remove_moved(copied, Vec::new());
        }
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

/// Removes all of a number from all stores, then its record. The record that abandoned it is durable before, and each
/// removal is durable before the record is removed.
async fn remove_garbage(stores: &Stores, id: StorageId) -> Result<(), Error> {
    let failed = |error: store::Error| storage_write(&error);
    stores.make_durable(stores.main()).await.map_err(failed)?;
    let mut others = Vec::new();
    for (id_of, store) in stores.all() {
        let mut batch = Batch::new();
        for space in [Space::Rows, Space::Deletions, Space::Indexes] {
            batch.delete_range(space, key::table_range(id));
        }
        // A closed side store is being removed as a whole, or the server is closing.
        match store.commit(batch).await {
            Ok(_) if id_of != StoreId::MAIN => others.push((id_of, store)),
            Ok(_) => {}
            Err(store::Error::Closed) if id_of != StoreId::MAIN => {}
            Err(error) => return Err(failed(error)),
        }
    }
    let mut batch = Batch::new();
    batch.delete(Space::Catalog, garbage_key(id));
    // A store that was removed as a whole meanwhile has nothing left.
    others.retain(|(id, _)| stores.get(*id).is_some());
    let others: Vec<Store> = others.into_iter().map(|(_, store)| store).collect();
    let recorded = stores.record_after_durable(&others, batch).await;
    recorded.map(drop).map_err(failed)
}

/// Empties a range, then removes its record, each durable before the next.
async fn empty_moved(stores: &Stores, moved: &Moved) -> store::Result<()> {
    // The record of the rows' new store must be durable first.
    stores.make_durable(stores.main()).await?;
    let store = stores.get(moved.store);
    if let Some(store) = &store {
        empty(store, moved).await?;
    }
    // The record must be removed before the range may be used again: the next start would remove the range.
    let mut batch = Batch::new();
    batch.delete(Space::Catalog, moved.key());
    let others: Vec<Store> = store.into_iter().filter(|_| moved.store != StoreId::MAIN).collect();
    stores.record_after_durable(&others, batch).await.map(drop)
}

/// At start: finds the ranges with rows that the partition map assigns to another store, except the known ones. Seeks
/// only the first key of each such range.
///
/// # Errors
/// A store cannot be read.
pub(super) async fn outside(stores: &Stores, maps: &PartitionMaps, known: &[Moved]) -> Result<Vec<Moved>, Error> {
    let mut found = Vec::new();
    if mutant::is_on(Mutant::TargetNotEmptied) {
        return Ok(found);
    }
    for (table, map) in maps {
        let mut of_table: Vec<(StoreId, Store)> = map.stores().map(|(id, store)| (id, store.clone())).collect();
        if of_table.iter().all(|(id, _)| *id == StoreId::MAIN) {
            // No part of the table was ever in another store, or that store has been removed.
            continue;
        }
        if of_table.iter().all(|(id, _)| *id != StoreId::MAIN) {
            of_table.push((StoreId::MAIN, stores.main().clone()));
        }
        for (id, store) in &of_table {
            for span in map.map().spans_outside(*id) {
                let moved = Moved {
                    table: *table,
                    store: *id,
                    span,
                };
                if !known.contains(&moved) && has_any(store, &moved).await? {
                    found.push(moved);
                }
            }
        }
    }
    Ok(found)
}

/// Whether a range has any row or deletion in a store.
async fn has_any(store: &Store, of: &Moved) -> Result<bool, Error> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_what_was_moved_are_read_as_they_were_written() {
        let bound = |token, key: &[u8]| KeyBound::at_key(Token::bound(token), key);
        let spans = [
            KeySpan::whole(),
            KeySpan::of_tokens(-3, 9).unwrap(),
            KeySpan::new(bound(0, b"m"), None).unwrap(),
            KeySpan::new(bound(0, b""), Some(bound(0, b"m"))).unwrap(),
            KeySpan::new(bound(0, b"m"), Some(bound(0, b"t"))).unwrap(),
            KeySpan::new(bound(0, b"m"), Some(bound(7, b""))).unwrap(),
        ];
        for (number, span) in spans.into_iter().enumerate() {
            let (table, store) = (7, StoreId(3));
            let moved = Moved { table, store, span };
            let key = moved.key();
            let place = key.strip_prefix(MOVED).unwrap();
            // Bounds between tokens keep the older, shorter record.
            assert_eq!(place.len() == 24, number < 2);
            assert_eq!(Moved::decode(place), Some(moved));
        }
        let of_before = b"\0\0\0\x07\0\0\0\x03\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFD\0\0\0\0\0\0\0\x09";
        assert_eq!(
            Moved::decode(of_before).unwrap().span,
            KeySpan::of_tokens(-3, 9).unwrap()
        );
        assert_eq!(Moved::decode(&of_before[1..]), None);
    }
}
