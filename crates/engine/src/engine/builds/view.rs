//! Filling a materialized view in the background: a task for each view, in steps that are durable one by one.
//!
//! The build visits the existing rows in the order of their keys, each under the lock of its logical partition.
//! Concurrent writers maintain the view themselves, so the build has to visit each row only once.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::index::{await_earlier_commits, forget, is_closed, next_rows, record_progress};
use crate::engine::batch_log::{Parts, Written, put_view_row, write_parts};
use crate::engine::index::{Progress, Record};
use crate::engine::published::Published;
use crate::engine::terms::passes::{Closed, Passes};
use crate::engine::view::follow::Touched;
use crate::engine::view::record_key;
use crate::engine::{Error, storage_read, storage_write};
use crate::partition::rows::row_place;
use crate::partition::{PartitionLatch, StoreId};
use helenus_base::tasks::Tasks;
use helenus_schema::schema::StorageId;

/// Rows of one step: writers to their logical partitions wait for it.
const STEP_ROWS: usize = 128;

/// Bytes of keys of one step.
const STEP_BYTES: usize = 64 * 1024;

/// Pauses after a failure: the first, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(4);

/// A materialized view to be built.
pub(crate) struct Build {
    published: Weak<Published>,
    view: StorageId,
    progress: Arc<Progress>,
    /// The progress that an earlier run recorded.
    record: Record,
}

/// The result of a step.
enum Step {
    /// There are more rows.
    More,
    /// All rows are visited.
    Done,
    /// The view was dropped.
    Gone,
}

impl Build {
    pub(crate) fn new(published: &Arc<Published>, view: StorageId, progress: Arc<Progress>, record: Record) -> Self {
        Self {
            published: Arc::downgrade(published),
            view,
            progress,
            record,
        }
    }

    /// Builds in the background; ends when it is done, when the view is dropped, or when the catalog is closed.
    pub(crate) fn start(self, tasks: &Tasks) {
        tasks.spawn("view build", self.run(tasks.clone()));
    }

    async fn run(mut self, tasks: Tasks) {
        let Some(views) = self.published.upgrade().map(|published| Arc::clone(&published.views)) else {
            return;
        };
        let Ok(_slot) = views.slots.acquire().await else {
            return;
        };
        let mut pause = PAUSE_MIN;
        let mut is_begun = false;
        while let Some(published) = self.published.upgrade() {
            if self.progress.is_ended.load(Ordering::Relaxed) {
                return forget(published.stores(), record_key(self.view)).await;
            }
            let stepping = async {
                if is_begun {
                    self.step(&published).await
                } else {
                    Self::begin(&published, self.view).await
                }
            };
            let Some(outcome) = tasks.unless_stopped(stepping).await else {
                return;
            };
            match outcome {
                Ok(Step::Gone) => return forget(published.stores(), record_key(self.view)).await,
                Ok(Step::Done) => {
                    if self.progress.is_ended.load(Ordering::Relaxed) {
                        return forget(published.stores(), record_key(self.view)).await;
                    }
                    return views.finish(self.view);
                }
                Ok(Step::More) => {
                    is_begun = true;
                    pause = PAUSE_MIN;
                    drop(published);
                    tokio::task::yield_now().await;
                }
                Err(error) => {
                    // The stores are closed: the next start resumes.
                    if is_closed(published.stores()).await {
                        return;
                    }
                    let main = published.main().clone();
                    drop(published);
                    tracing::warn!(view = self.view, %error, "a step of the build of a materialized view failed; it is retried");
                    if tasks.unless_stopped(main.pause(pause)).await.is_none() {
                        return;
                    }
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
    }

    /// Waits for all writers that may have begun before the view was published.
    async fn begin(published: &Published, view: StorageId) -> Result<Step, Error> {
        let snapshot = published.load_full();
        let Some(followed) = snapshot.followed_by(view) else {
            return Ok(Step::Gone);
        };
        let map = Arc::clone(snapshot.partitions(&followed.base)?);
        drop(PartitionLatch::hold_all(map.here().map(|partition| &partition.latch)).await);
        // What such a writer has written may land after it was answered with an error.
        for (_, store) in map.stores() {
            await_earlier_commits(store)
                .await
                .map_err(|error| storage_write(&error))?;
        }
        Ok(Step::More)
    }

    /// The next rows of the base table, in the order of their keys, and whether these are the last.
    async fn next_keys(&self, published: &Published) -> Result<Option<(Vec<Vec<u8>>, bool)>, Error> {
        let snapshot = published.load_full();
        let Some(followed) = snapshot.followed_by(self.view) else {
            return Ok(None);
        };
        let stores = snapshot.partitions(&followed.base)?.stores().map(|(_, store)| store);
        let steps = (STEP_ROWS, STEP_BYTES);
        let next = next_rows(stores, followed.base.storage_id, &self.record.last, steps).await;
        let (found, until) = next.map_err(|error| storage_read(&error))?;
        let mut found = found.concat();
        // If a move left the row in its old store, it is read from its new store.
        found.retain(|key| until.as_ref().is_none_or(|until| key <= until));
        found.sort_unstable();
        found.dedup();
        Ok(Some((found, until.is_none())))
    }

    async fn step(&mut self, published: &Arc<Published>) -> Result<Step, Error> {
        let Some((keys, is_last)) = self.next_keys(published).await? else {
            return Ok(Step::Gone);
        };
        let Some(parts) = self.put_rows(published, &keys).await? else {
            return Ok(Step::Gone);
        };
        let others = parts.into_iter().filter(|(id, _)| *id != StoreId::MAIN);
        let others: Vec<_> = others.map(|(_, store)| store).collect();
        let record = Record {
            is_complete: is_last,
            rows_passed: self.record.rows_passed.saturating_add(keys.len() as u64),
            last: keys.into_iter().next_back().unwrap_or_else(|| self.record.last.clone()),
        };
        let recorded = record_progress(published.stores(), &others, record_key(self.view), &record).await;
        recorded.map_err(|error| storage_write(&error))?;
        self.progress.rows_passed.store(record.rows_passed, Ordering::Relaxed);
        self.record = record;
        Ok(if is_last { Step::Done } else { Step::More })
    }

    /// Writes the view's rows of these base rows. Returns the stores that they are in; `None` means that the view was
    /// dropped.
    async fn put_rows(&self, published: &Arc<Published>, keys: &[Vec<u8>]) -> Result<Option<Written>, Error> {
        loop {
            let snapshot = published.load_full();
            let Some(followed) = snapshot.followed_by(self.view) else {
                return Ok(None);
            };
            let base = Arc::clone(&followed.base);
            let mut touched = Touched::default();
            for key in keys {
                if row_place(key).map_err(|error| storage_read(&error))?.table != base.storage_id {
                    return Ok(None);
                }
                touched.make_anew(key)?;
            }
            let map = snapshot.partitions(&base)?;
            let keys = touched.partitions().map(|(table, key)| {
                let spread = map.placement().spread(map.token(key), key);
                (table, spread)
            });
            let held = published.locks.lock_all(keys).await;
            let passing = Passes::wait(|| {
                let snapshot = published.load_full();
                let mut latches = Vec::new();
                if let Some(map) = snapshot.partitions_of(base.storage_id) {
                    for (_, key) in touched.partitions() {
                        latches.push(Arc::clone(&map.hosted(key)?.1.latch));
                    }
                }
                Ok((snapshot, latches))
            });
            let (snapshot, mut passes) = passing.await?;
            let now_seconds = published.now_seconds();
            let mut parts = Parts::new();
            let mut closed = None;
            for row in touched.following(&snapshot, Some(self.view), now_seconds).await? {
                if let Err(found) = passes.add(&row.partition.latch) {
                    closed = Some(found);
                    break;
                }
                put_view_row(&mut parts, &row)?;
            }
            if let Some(closed) = closed {
                drop((passes, held, snapshot));
                match closed {
                    Closed::Held(latch) => latch.wait().await,
                    Closed::Superseded => tokio::task::yield_now().await,
                }
                continue;
            }
            return Ok(Some(write_parts(parts, &passes).await?));
        }
    }
}
