//! Filling an index in the background: a task for each index, in steps that are durable one by one.
//!
//! The build visits the rows that exist at the registration, one store after the other, in the order of their keys, and
//! ignores concurrent writes. Every commit after the registration maintains the entries itself, so the build has to
//! visit each row only once. Its first commit to each store is empty. It completes after all commits that began before
//! the registration.
//!
//! Each store has the record of its own progress, written in one commit with the entries. The record in the main store
//! also says whether the whole index is complete. It is written last, after the entries of all stores are durable.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::engine::index::{Indexes, Progress, Record, record_key};
use crate::partition::{StoreId, Stores};
use helenus_base::tasks::Tasks;
use helenus_schema::schema::StorageId;
use helenus_storage::storage::{self as store, Batch, KeyRange, Order, Row, Space, Store, key};

/// Rows of one step: a few milliseconds of the committer's time.
const STEP_ROWS: usize = 1024;

/// Bytes of keys of one step.
const STEP_BYTES: usize = 256 * 1024;

/// Pauses after a failure: the first, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(4);

/// An index to be built.
pub(crate) struct Build {
    /// The stores of the database; the main one has the catalog.
    pub(crate) home: Stores,
    /// The stores that have the table's rows. No partition of it is moved while an index is built.
    pub(crate) stores: Vec<(StoreId, Store)>,
    pub(crate) indexes: Arc<Indexes>,
    pub(crate) table: StorageId,
    pub(crate) index: StorageId,
    /// Whether it is the table's change feed.
    pub(crate) is_feed: bool,
    pub(crate) progress: Arc<Progress>,
    /// The progress that an earlier run recorded in the main store.
    pub(crate) record: Record,
    /// The progress in each store; empty before the first step.
    pub(crate) places: Vec<Place>,
}

/// The progress of a build in one store.
pub(crate) struct Place {
    /// The key of the last row that was visited; empty: none yet.
    last: Vec<u8>,
    rows_passed: u64,
    is_done: bool,
}

impl Build {
    /// Builds in the background; ends when it is done, when the index is dropped, or when the store is closed.
    pub(crate) fn start(self, tasks: &Tasks) {
        tasks.spawn("index build", self.run(tasks.clone()));
    }

    async fn run(mut self, tasks: Tasks) {
        let indexes = Arc::clone(&self.indexes);
        let Ok(_slot) = indexes.slots.acquire().await else {
            return;
        };
        let mut pause = PAUSE_MIN;
        let mut is_begun = false;
        loop {
            if self.progress.is_ended.load(Ordering::Relaxed) {
                return self.forget().await;
            }
            let outcome = if is_begun {
                self.step().await
            } else {
                self.begin().await
            };
            match outcome {
                Ok(true) => {
                    if self.progress.is_ended.load(Ordering::Relaxed) {
                        return self.forget().await;
                    }
                    return self.indexes.finish(self.index);
                }
                Ok(false) => {
                    is_begun = true;
                    pause = PAUSE_MIN;
                    tokio::task::yield_now().await;
                }
                Err(store::Error::Closed) => return,
                Err(error) => {
                    tracing::warn!(index = self.index, %error, "a step of an index build failed; it is retried");
                    if tasks.unless_stopped(tokio::time::sleep(pause)).await.is_none() {
                        return;
                    }
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
    }

    /// Waits for all commits that began before the registration of the index, and reads the progress of each store.
    async fn begin(&mut self) -> store::Result<bool> {
        let mut rows = 0;
        self.places.clear();
        for (id, store) in &self.stores {
            await_earlier_commits(store).await?;
            rows += store.bytes_in(&key::table_range(self.table)).rows;
            let record = if *id == StoreId::MAIN {
                self.record.clone()
            } else {
                let recorded = store
                    .get(Space::Catalog, &record_key(self.index), &store.snapshot())
                    .await?;
                recorded.map_or_else(Record::default, |record| Record::decode(&record))
            };
            self.places.push(Place {
                last: record.last,
                rows_passed: record.rows_passed,
                is_done: false,
            });
        }
        self.show();
        self.progress
            .rows_total
            .fetch_max(rows.max(self.rows_passed()), Ordering::Relaxed);
        Ok(false)
    }

    fn rows_passed(&self) -> u64 {
        self.places.iter().map(|place| place.rows_passed).sum()
    }

    fn show(&self) {
        let passed = self.rows_passed();
        self.progress.rows_passed.store(passed, Ordering::Relaxed);
        self.progress.rows_total.fetch_max(passed, Ordering::Relaxed);
    }

    /// Writes the entries of some rows of a store. Returns whether the index is complete.
    async fn step(&mut self) -> store::Result<bool> {
        let index = self.index;
        let mut places = self.stores.iter().zip(&mut self.places);
        let Some(((_, store), place)) = places.find(|(_, place)| !place.is_done) else {
            return self.finish().await.map(|()| true);
        };
        let limits = (STEP_ROWS, STEP_BYTES);
        let (found, until) = next_rows(std::iter::once(store), self.table, &place.last, limits).await?;
        let is_last = until.is_none();
        let mut batch = Batch::new();
        let (mut rows, mut last) = (0_u64, None);
        for key in found.into_iter().flatten() {
            last = Some(key.clone());
            if self.is_feed {
                // A change of nothing: the committer gives the row a position, and its entry with it.
                batch.merge(Space::Rows, key, Row::default().encode());
            } else {
                batch.reindex(key, index);
            }
            rows += 1;
        }
        if let Some(last) = last {
            let record = Record {
                is_complete: false,
                rows_passed: place.rows_passed.saturating_add(rows),
                last,
            };
            batch.put(Space::Catalog, record_key(index), record.encode());
            store.commit(batch).await?;
            place.rows_passed = record.rows_passed;
            place.last = record.last;
        }
        place.is_done = is_last;
        self.show();
        Ok(false)
    }

    /// Records that the index is complete, after all of its entries are durable. Then the records of the other stores
    /// are useless.
    async fn finish(&self) -> store::Result<()> {
        let others = self.stores.iter().filter(|(id, _)| *id != StoreId::MAIN);
        let others: Vec<Store> = others.map(|(_, store)| store.clone()).collect();
        let record = Record {
            rows_passed: self.rows_passed(),
            ..Record::complete()
        };
        record_progress(&self.home, &others, record_key(self.index), &record).await?;
        for store in &others {
            forget_in(store, record_key(self.index)).await;
        }
        Ok(())
    }

    /// Removes the records of an index that was dropped during its build: the build may have written one since.
    async fn forget(&self) {
        for (_, store) in &self.stores {
            forget_in(store, record_key(self.index)).await;
        }
        forget(&self.home, record_key(self.index)).await;
    }
}

/// The keys of a table's next rows after one (empty: from the first), grouped by store, up to the limits of one step;
/// and the place up to which they are complete, if there are more.
///
/// # Errors
/// A store fails.
pub(crate) async fn next_rows<'a>(
    stores: impl Iterator<Item = &'a Store>,
    table: StorageId,
    behind: &[u8],
    (rows_max, bytes_max): (usize, usize),
) -> store::Result<(Vec<Vec<Vec<u8>>>, Option<Vec<u8>>)> {
    let all = key::table_range(table);
    let range = KeyRange {
        start: if behind.is_empty() {
            all.start
        } else {
            Bound::Excluded(behind.to_vec())
        },
        end: all.end,
    };
    // The next rows of each store. A step ends at the lowest position at which a store has more rows.
    let mut found: Vec<Vec<Vec<u8>>> = Vec::new();
    let mut until: Option<Vec<u8>> = None;
    for store in stores {
        let (mut keys, mut bytes, mut has_more) = (Vec::new(), 0_usize, false);
        let at = store.snapshot();
        let visit = |key: &[u8], _: &[u8]| {
            if keys.len() >= rows_max || bytes >= bytes_max {
                has_more = true;
                return ControlFlow::Break(());
            }
            bytes += key.len();
            keys.push(key.to_vec());
            ControlFlow::Continue(())
        };
        store.scan(Space::Rows, &range, Order::Forward, &at, visit).await?;
        if has_more {
            let last = keys.last().cloned();
            until = match (until, last) {
                (Some(until), Some(last)) => Some(until.min(last)),
                (until, last) => until.or(last),
            };
        }
        found.push(keys);
    }
    Ok((found, until))
}

/// Records the progress of a build, after its commits to other stores are durable.
///
/// # Errors
/// When a store fails.
pub(crate) async fn record_progress(
    home: &Stores,
    others: &[Store],
    key: Vec<u8>,
    record: &Record,
) -> store::Result<()> {
    let mut batch = Batch::new();
    batch.put(Space::Catalog, key, record.encode());
    home.record_after_durable(others, batch).await.map(drop)
}

/// Removes the record of a build whose index or view was dropped.
pub(crate) async fn forget(home: &Stores, key: Vec<u8>) {
    forget_in(home.main(), key).await;
}

async fn forget_in(store: &Store, key: Vec<u8>) {
    let mut batch = Batch::new();
    batch.delete(Space::Catalog, key);
    if let Err(error) = store.commit(batch).await {
        tracing::debug!(%error, "the record of a build could not be removed; the next start removes it");
    }
}

/// Waits for the commits that began before, also for those that were answered with an error and land late.
///
/// # Errors
/// The store fails, or takes no writes now.
pub(crate) async fn await_earlier_commits(store: &Store) -> store::Result<()> {
    store.commit(Batch::new()).await.map(drop)
}

/// Whether stores take no more commits: the next start resumes.
pub(crate) async fn is_closed(home: &Stores) -> bool {
    matches!(home.main().commit(Batch::new()).await, Err(store::Error::Closed))
}
