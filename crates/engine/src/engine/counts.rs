//! Sizes of physical partitions, by counting.
//!
//! A store has the size of a table, but not its distribution on the ring, and a few keys may have most of the rows. So
//! views count partitions before they show them ([`Counts::count_small`]):
//!
//! ```text
//! small tables      at once, whenever their stores were written to since
//! larger ones       by the next check of partitions' sizes (partitions.rs), when they were never counted,
//!                   have grown or shrunk by half, or were written to and not counted for ten minutes
//! ```
//! Until then a larger table shows its last count. This is scaled by the growth of the whole table, and by the part of
//! the ring where its partitions have changed since. Engines that only estimate (SlateDB) derive the distribution on
//! the ring from their tables. Nothing is counted there: to read all rows would cost requests to the bucket.
//!
//! **Bounds.** An entry for each table of several partitions, of some tens of bytes for each of these.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::edge::storage_read;
use super::error::Error;
use super::snapshot::Snapshot;
use crate::partition::{Hosted, Passed, StoreId, TablePartitions};
use helenus_base::clock::Clock;
use helenus_schema::schema::StorageId;
use helenus_storage::storage::{CommitSeq, Estimate};
use helenus_types::token::KeySpan;

/// Longest age of a large table's count if the table was written to since.
const AGAIN: Duration = Duration::from_secs(600);

/// The last counts of all tables.
#[derive(Debug)]
pub(super) struct Counts {
    clock: Clock,
    /// Rows that are counted for one view, in all tables together.
    at_once_rows_max: u64,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    counted: HashMap<StorageId, Arc<Counted>>,
    /// Tables that the next check counts.
    wanted: BTreeSet<StorageId>,
}

/// The last count of a table.
#[derive(Debug)]
pub(super) struct Counted {
    at: Duration,
    /// In the order of their tokens.
    places: Vec<Place>,
}

/// The last count of a physical partition.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    span: KeySpan,
    store: StoreId,
    /// The store's last commit that was counted.
    seq: CommitSeq,
    bytes: u64,
    rows: u64,
}

impl Counts {
    pub(super) fn new(clock: Clock, at_once_rows_max: u64) -> Self {
        Self {
            clock,
            at_once_rows_max,
            kept: Mutex::default(),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, table: StorageId) -> Option<Arc<Counted>> {
        self.kept().counted.get(&table).cloned()
    }

    fn put(&self, table: StorageId, counted: Arc<Counted>) {
        let mut kept = self.kept();
        kept.wanted.remove(&table);
        kept.counted.insert(table, counted);
    }
}

/// A share of a count: as large as `of` is of `whole`.
fn part(counted: u64, of: u128, whole: u128) -> u64 {
    let part = u128::from(counted).saturating_mul(of) / whole.max(1);
    u64::try_from(part).unwrap_or(u64::MAX)
}

impl Place {
    /// Whether this count covers the partition at these commits.
    fn is(&self, partition: &Hosted, seqs: &Seqs) -> bool {
        let is_place = self.store == partition.store_id && self.span == partition.span;
        is_place && seqs.0.contains(&(self.store, self.seq))
    }
}

/// The last commits of a table's stores.
struct Seqs(Vec<(StoreId, CommitSeq)>);

impl Seqs {
    fn now(map: &TablePartitions) -> Self {
        let stores = map.stores();
        Self(stores.map(|(id, store)| (id, store.snapshot().seq())).collect())
    }
}

impl Counted {
    /// Bytes and rows of the table then.
    fn total(&self) -> (u64, u64) {
        let sum = |of: fn(&Place) -> u64| self.places.iter().map(of).sum();
        (sum(|place| place.bytes), sum(|place| place.rows))
    }

    /// Bytes of each partition, in order.
    pub(super) fn bytes(&self) -> Vec<u64> {
        self.places.iter().map(|place| place.bytes).collect()
    }

    /// Whether this count covers the partitions of a map as they are now.
    fn is_of(&self, map: &TablePartitions) -> bool {
        let seqs = Seqs::now(map);
        let is = |(place, partition): (&Place, &Arc<Hosted>)| place.is(partition, &seqs);
        self.places.len() == map.here().count() && self.places.iter().zip(map.here()).all(is)
    }

    /// Whether a large table, which holds so much now and was written to since, must be counted again.
    fn is_old(&self, table: Estimate, now: Duration) -> bool {
        let (bytes, _) = self.total();
        bytes.abs_diff(table.bytes) > bytes / 2 || now.saturating_sub(self.at) >= AGAIN
    }

    /// The current share of a partition in its table's estimate.
    fn share(&self, partition: &Hosted, seqs: &Seqs, table: Estimate) -> Estimate {
        if let Some(place) = self.places.iter().find(|place| place.is(partition, seqs)) {
            return Estimate {
                bytes: place.bytes,
                rows: place.rows,
                is_exact: true,
            };
        }
        let (mut bytes, mut rows) = (0_u64, 0_u64);
        for place in &self.places {
            if let Some(both) = place.span.and(&partition.span) {
                let (of, whole) = (both.tokens(), place.span.tokens());
                bytes = bytes.saturating_add(part(place.bytes, of, whole));
                rows = rows.saturating_add(part(place.rows, of, whole));
            }
        }
        let then = self.total();
        Estimate {
            bytes: part(bytes, table.bytes.into(), then.0.into()),
            rows: part(rows, table.rows.into(), then.1.into()),
            is_exact: false,
        }
    }
}

/// Walks a table's rows and counts those of each partition that is served here.
///
/// # Errors
/// When the medium fails.
async fn count(map: &TablePartitions, table: StorageId, now: Duration) -> Result<Counted, Error> {
    let mut places = Vec::with_capacity(map.all().len());
    for partition in map.here() {
        let (mut bytes, mut rows) = (0, 0);
        let seq = walk(partition, table, |row| {
            bytes += row.bytes() as u64;
            rows += 1;
            ControlFlow::Continue(())
        })
        .await?;
        places.push(Place {
            span: partition.span.clone(),
            store: partition.store_id,
            seq,
            bytes,
            rows,
        });
    }
    Ok(Counted { at: now, places })
}

/// Visits each row of a partition, in order. Returns the last commit that was visible.
///
/// # Errors
/// When the medium fails.
pub(super) async fn walk(
    partition: &Hosted,
    table: StorageId,
    visit: impl FnMut(Passed<'_>) -> ControlFlow<()> + Send,
) -> Result<CommitSeq, Error> {
    let at = partition.now();
    let walked = partition.scan(&partition.rows(table), &at, visit).await;
    walked.map_err(|error| storage_read(&error))?;
    Ok(at.seq())
}

impl Counts {
    /// Counts small tables now, before they are shown, and requests larger ones from the next check of sizes. A table
    /// that cannot be counted is shown by estimates.
    pub(super) async fn count_small(&self, snapshot: &Snapshot) {
        let now = self.clock.monotonic();
        let mut left = self.at_once_rows_max;
        for table in snapshot.schema.stored_tables() {
            let id = table.storage_id;
            let Ok(map) = snapshot.partitions(table) else {
                continue;
            };
            let total = map.bytes(id);
            if map.all().len() == 1 || !total.is_exact {
                continue;
            }
            let before = self.of(id);
            if before.as_ref().is_some_and(|counted| counted.is_of(map)) {
                continue;
            }
            if total.rows <= left {
                left -= total.rows;
                if let Err(error) = self.count_table(map, id).await {
                    tracing::debug!(%error, keyspace = table.keyspace, table = table.name, "sizes are estimated");
                }
            } else if before.is_none_or(|counted| counted.is_old(total, now)) {
                self.kept().wanted.insert(id);
            }
        }
    }

    /// Counts a table's partitions, for the caller and for views.
    ///
    /// # Errors
    /// When the medium fails.
    pub(super) async fn count_table(&self, map: &TablePartitions, table: StorageId) -> Result<Arc<Counted>, Error> {
        let counted = Arc::new(count(map, table, self.clock.monotonic()).await?);
        self.put(table, Arc::clone(&counted));
        Ok(counted)
    }

    /// Counts the larger tables that were shown since the last check, and removes those that no longer exist.
    ///
    /// # Errors
    /// When the medium fails.
    pub(super) async fn count_wanted(&self, snapshot: Arc<Snapshot>) -> Result<(), Error> {
        let stored: BTreeSet<StorageId> = snapshot.schema.stored_tables().map(|table| table.storage_id).collect();
        let wanted = {
            let mut kept = self.kept();
            kept.counted.retain(|table, _| stored.contains(table));
            std::mem::take(&mut kept.wanted)
        };
        let tables = snapshot
            .schema
            .stored_tables()
            .filter(|table| wanted.contains(&table.storage_id));
        let maps: Vec<_> = tables
            .filter_map(|table| Some((table.storage_id, Arc::clone(snapshot.partitions(table).ok()?))))
            .collect();
        // Do not keep the other tables' partition maps alive during the count.
        drop(snapshot);
        for (table, map) in maps {
            self.count_table(&map, table).await?;
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// The sizes of a table's physical partitions, in order, by the last count if there is one. Those that are served
    /// elsewhere count as empty.
    pub(super) fn held(&self, map: &TablePartitions, table: StorageId) -> Vec<Estimate> {
        let partitions = map.all().iter();
        match self.of(table) {
            Some(counted) if map.all().len() > 1 => {
                let (seqs, total) = (Seqs::now(map), map.bytes(table));
                partitions
                    .map(|partition| partition.here().map(|here| counted.share(here, &seqs, total)))
                    .map(Option::unwrap_or_default)
                    .collect()
            }
            _ => partitions
                .map(|partition| map.bytes_in(table, &partition.span))
                .collect(),
        }
    }
}
