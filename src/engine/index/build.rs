//! Filling an index in the background: a task for each index, in steps that are durable one by one.
//!
//! The build visits the rows that exist at the registration, in the order of their keys, and ignores concurrent writes.
//! Every commit after the registration maintains the entries itself, so the build has to visit each row only once. Its
//! first commit is empty. It completes after all commits that began before the registration.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Indexes, Progress, Record, record_key};
use crate::partition::store::{self, Batch, KeyRange, Order, Row, Space, Store, key};
use crate::partition::{StoreId, Stores};
use crate::schema::StorageId;
use crate::tasks::Tasks;

/// Rows of one step: a few milliseconds of the committer's time.
const STEP_ROWS: usize = 1024;

/// Bytes of keys of one step.
const STEP_BYTES: usize = 256 * 1024;

/// Pauses after a failure: the first, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(30);

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
    /// The progress that an earlier run recorded.
    pub(crate) record: Record,
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

    /// Waits for all commits that began before the registration of the index.
    async fn begin(&self) -> store::Result<bool> {
        let mut rows = 0;
        for (_, store) in &self.stores {
            store.commit(Batch::new()).await?;
            rows += store.bytes_in(&key::table_range(self.table)).rows;
        }
        self.progress
            .rows_total
            .store(rows.max(self.record.rows_passed), Ordering::Relaxed);
        Ok(false)
    }

    /// Writes the entries of some rows. Returns whether these were the last.
    async fn step(&mut self) -> store::Result<bool> {
        let index = self.index;
        let stores = self.stores.iter().map(|(_, store)| store);
        let (found, until) = next_rows(stores, self.table, &self.record.last, (STEP_ROWS, STEP_BYTES)).await?;
        let (mut rows, is_last) = (0_u64, until.is_none());
        let last = until.clone().unwrap_or_default();
        let (mut of_main, mut others) = (Batch::new(), Vec::new());
        for ((id, store), keys) in self.stores.iter().zip(found) {
            let mut batch = Batch::new();
            let is_passed = |key: &Vec<u8>| until.as_ref().is_none_or(|until| key <= until);
            for key in keys.into_iter().filter(is_passed) {
                if self.is_feed {
                    // A change of nothing: the committer gives the row a position, and its entry with it.
                    batch.merge(Space::Rows, key, Row::default().encode());
                } else {
                    batch.reindex(key, index);
                }
                rows += 1;
            }
            if *id == StoreId::MAIN {
                of_main = batch;
            } else if !batch.is_empty() {
                store.commit(batch).await?;
                others.push(store.clone());
            }
        }
        let record = Record {
            is_complete: is_last,
            rows_passed: self.record.rows_passed.saturating_add(rows),
            last,
        };
        // Written last, after the entries are durable. So every row before the recorded place has its entries, in
        // whichever store it is.
        of_main.put(Space::Catalog, record_key(index), record.encode());
        self.home.record_after_durable(&others, of_main).await?;
        self.progress.rows_passed.store(record.rows_passed, Ordering::Relaxed);
        self.progress
            .rows_total
            .fetch_max(record.rows_passed, Ordering::Relaxed);
        self.record = record;
        Ok(is_last)
    }

    /// Removes the record of an index that was dropped during its build: the build may have written it once more since.
    async fn forget(&self) {
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
    let mut batch = Batch::new();
    batch.delete(Space::Catalog, key);
    if let Err(error) = home.main().commit(batch).await {
        tracing::debug!(%error, "the record of a build could not be removed; the next start removes it");
    }
}

/// Whether stores take no more commits: the next start resumes.
pub(crate) async fn is_closed(home: &Stores) -> bool {
    matches!(home.main().commit(Batch::new()).await, Err(store::Error::Closed))
}
