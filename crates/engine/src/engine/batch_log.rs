//! The batch log: it makes a logged batch atomic over several stores.
//!
//! ```text
//! one store: !batch record ─► each store its part, all at once ─► answered ─► its removal, with the store's next record
//! ```
//! **Where.** Each store that stays has a batch log of its own. A record lies in the store of the batch's first partition.
//! A store that a move made can be removed with its last partition, so it has none. The next store of the batch takes the
//! record, or else the main one (`Catalog::logs_batches`).
//!
//! The record is durable before any part is, and each part before the record is removed, whatever the durability. The
//! removal waits for the commit of the store's next record, or [`REMOVAL_AFTER`]: a client would wait for a commit of its
//! own. If a part fails, a task replays all parts from the record. If the server ends in between, they are replayed when
//! the store with the record is opened, before a request is answered. Writing a part twice changes nothing, since versions
//! of rows merge. A replay writes each part to the store that has its rows by then. A batch to one store is one commit and
//! needs no record.
//!
//! **Deletions.** A replayed part has the timestamps of the batch, so deletions that came after the batch must still
//! exist. While a batch of any store is pending no purge removes them (pending.rs), however short a table's `gc_grace_seconds`.
//!
//! ```text
//! !batch · number u64  →  Batch::encode_merges, Batch::encode_rechecked     (Space::Catalog of each store that stays)
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::pending::{Logged, RecordId, Removal, Whole};
use super::published::Published;
use super::snapshot::Snapshot;
use super::view::follow::{Touched, ViewRow};
use super::{Error, storage_read, storage_write};
use crate::engine::terms::passes::{Closed, Passes};
use crate::partition::rows::{decode_change, partition_of};
use crate::partition::{BatchKeys, StoreId};
use helenus_base::mutant::{self, Mutant};
use helenus_storage::storage::{self as store, Batch, Damaged, Logged as LoggedBatch, Space, Store};

/// Pauses between replays of a batch: the first, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(4);

/// How long the record of a whole batch stays if no other batch is logged.
const REMOVAL_AFTER: Duration = Duration::from_millis(200);

/// Batches that a start replays at once.
const REPLAYS_MAX: usize = 16;

/// Most bytes of one commit of a replay or of a view's build, which need not be atomic. A commit has a limit, and after
/// a move the parts for several stores may go to one store.
const COMMIT_BYTES: usize = 8 * 1024 * 1024;

/// Makes the record of a batch durable, before any part of it is written. The same commit removes the records of whole
/// batches.
///
/// # Errors
/// A store fails. The record may be durable nevertheless.
pub(super) async fn record(published: &Arc<Published>, logged: &Logged) -> store::Result<()> {
    let store = store_of(published, logged.id.store)?;
    let mut batch = Batch::new();
    batch.put(Space::Catalog, logged.id.key(), logged.record.clone());
    let whole = published.pending.take_whole_of(logged.id.store);
    let committed = commit_with_removals(published, &store, batch, whole).await;
    if committed.is_err() && published.pending.await_whole() {
        spawn_removal(published);
    }
    committed?;
    published.stores().make_durable(&store).await
}

/// The store of a record. It is open as long as the server runs.
fn store_of(published: &Published, id: StoreId) -> store::Result<Store> {
    published.stores().get(id).ok_or(store::Error::Closed)
}

/// Commits to a store, and with it the removal of its records of whole batches, whose parts are durable before.
async fn commit_with_removals(
    published: &Published,
    store: &Store,
    mut batch: Batch,
    whole: Vec<Whole>,
) -> store::Result<()> {
    let mut others = BTreeSet::new();
    for of in &whole {
        batch.delete(Space::Catalog, of.id.key());
        others.extend(of.stores.iter().copied());
    }
    // A store that was removed meanwhile has no part any more: its rows were durable elsewhere before.
    let others: Vec<Store> = others.into_iter().filter_map(|id| published.stores().get(id)).collect();
    let committed = Box::pin(published.stores().record_in_after_durable(store, &others, batch)).await;
    match committed {
        Ok(_) => whole.iter().for_each(|of| published.pending.end(of.id)),
        Err(_) => published.pending.give_back(whole),
    }
    committed.map(drop)
}

/// Removes the records of whole batches now.
///
/// # Errors
/// A store fails; the records may stay.
pub(super) async fn remove_whole(published: &Published) -> store::Result<()> {
    remove_records(published, published.pending.take_whole()).await
}

/// Removes the records of these whole batches, those of each store in one commit.
///
/// # Errors
/// The first failure; the records of the other stores are removed nevertheless.
async fn remove_records(published: &Published, whole: Vec<Whole>) -> store::Result<()> {
    let mut by_store: BTreeMap<StoreId, Vec<Whole>> = BTreeMap::new();
    for of in whole {
        by_store.entry(of.id.store).or_default().push(of);
    }
    let mut outcome = Ok(());
    for (id, whole) in by_store {
        let removed = match store_of(published, id) {
            Ok(store) => commit_with_removals(published, &store, Batch::new(), whole).await,
            Err(error) => {
                published.pending.give_back(whole);
                Err(error)
            }
        };
        outcome = outcome.and(removed);
    }
    outcome
}

/// Has the record of a whole batch removed, by the next record's commit or soon.
pub(super) async fn remove_later(published: &Arc<Published>, batch: Whole) {
    match published.pending.whole(batch) {
        Removal::Awaited => {}
        Removal::Now => {
            if let Err(error) = remove_whole(published).await {
                tracing::debug!(%error, "records of whole batches could not be removed; the removal is retried");
            }
        }
        Removal::Start => spawn_removal(published),
    }
}

fn spawn_removal(published: &Arc<Published>) {
    let (main, tasks) = (published.main().clone(), published.tasks.clone());
    let (runner, published) = (tasks.clone(), Arc::downgrade(published));
    runner.spawn("removal of records of whole batches", async move {
        let mut pause = REMOVAL_AFTER;
        while tasks.unless_stopped(main.pause(pause)).await.is_some() {
            let Some(published) = published.upgrade() else { return };
            let Some(whole) = published.pending.take_awaited() else {
                return;
            };
            match remove_records(&published, whole).await {
                Ok(()) => pause = REMOVAL_AFTER,
                Err(store::Error::Closed) => return,
                Err(error) => {
                    tracing::debug!(%error, "records of whole batches could not be removed; the removal is retried");
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
    });
}

/// Replays all logged batches that an earlier run left. Returns those that no store accepts, whose records stay.
///
/// # Errors
/// When a store fails; the records stay.
pub(super) async fn replay_all(published: &Published, batches: &[Logged]) -> Result<Vec<Logged>, Error> {
    let mut left = Vec::new();
    if mutant::is_on(Mutant::ForgetBatchLog) {
        return Ok(left);
    }
    for together in batches.chunks(REPLAYS_MAX) {
        let mut replays = Vec::with_capacity(together.len());
        for logged in together {
            replays.push(Box::pin(replay(published, logged)));
        }
        for (logged, replayed) in together.iter().zip(futures::future::join_all(replays).await) {
            match replayed {
                // A retry cannot succeed. The server serves the rest of the database.
                Err(error @ Error::Refused(_)) => {
                    tracing::error!(%error, "a logged batch cannot be written as a whole");
                    left.push(logged.clone());
                }
                replayed => replayed?,
            }
        }
    }
    Ok(left)
}

/// Writes all parts of a logged batch to where their rows are now, and removes its record.
///
/// # Errors
/// When a store fails; the record stays.
async fn replay(published: &Published, Logged { id, record }: &Logged) -> Result<(), Error> {
    let damaged = || Error::Damaged(Damaged::catalog(&id.key(), "it is no batch"));
    let logged = Batch::logged(record).ok_or_else(damaged)?;
    while let Some(closed) = write_again(published, &logged, &damaged).await? {
        match closed {
            Closed::Held(latch) => latch.wait().await,
            Closed::Superseded => tokio::task::yield_now().await,
        }
    }
    let mut batch = Batch::new();
    batch.delete(Space::Catalog, id.key());
    let store = store_of(published, id.store).map_err(|error| storage_write(&error))?;
    let recorded = store.commit_rows(batch).await;
    recorded.map_err(|error| storage_write(&error))?;
    published.pending.end(*id);
    Ok(())
}

/// Batches for stores, by their numbers.
pub(super) type Parts = BTreeMap<StoreId, (Store, Batch)>;

/// Stores that were written to, with their numbers.
pub(super) type Written = Vec<(StoreId, Store)>;

/// Adds the row of a view. A row that no store accepts is skipped. Writes that need such a row are refused, so it
/// derives from a base row that is older than the view.
///
/// # Errors
/// The position of the row is in none of the view's partitions.
pub(super) fn put_view_row(parts: &mut Parts, row: &ViewRow) -> Result<(), Error> {
    if row.is_impossible()? {
        let (keyspace, view) = (&row.view.keyspace, &row.view.name);
        tracing::warn!(%keyspace, %view, "a row of the table is not in its view: its key there would be too long");
        return Ok(());
    }
    let part = parts.entry(row.partition.store_id);
    let (_, batch) = part.or_insert_with(|| (row.partition.store().clone(), Batch::new()));
    let (logical, key, view_row) = row.logical()?;
    logical.replace_row(batch, key, view_row);
    Ok(())
}

/// Commits each part, in commits of [`COMMIT_BYTES`].
///
/// # Errors
/// When a store fails; parts may have been written then.
pub(super) async fn write_parts(parts: Parts, passes: &Passes) -> Result<Written, Error> {
    let mut stores = Vec::with_capacity(parts.len());
    for (id, (store, batch)) in parts {
        for batch in batch.pieces(COMMIT_BYTES) {
            let to_record = passes.keys_to_record(|| BatchKeys::of(&batch));
            let committed = store.commit(batch).await;
            passes.record(&to_record, committed.is_ok());
            committed.map_err(|error| storage_write(&error))?;
        }
        stores.push((id, store));
    }
    Ok(stores)
}

/// Writes all parts of a logged batch and the view rows that now derive from them; all is durable when it returns. The
/// view rows come first. They are computed from the base rows as the batch leaves them, so after a crash in between the
/// next replay corrects everything. Returns the obstacle if the partition of a view is being moved; then nothing was
/// written.
async fn write_again(
    published: &Published,
    logged: &LoggedBatch,
    damaged: &impl Fn() -> Error,
) -> Result<Option<Closed>, Error> {
    let snapshot = published.load_full();
    let touched = touched(&snapshot, logged)?;
    let keys = touched.partitions().filter_map(|(table, key)| {
        let map = snapshot.partitions_of(table)?;
        Some((table, map.placement().spread(map.token(key), key)))
    });
    let _held = published.locks.lock_all(keys).await;
    let ((snapshot, parts), mut passes) = Passes::wait(|| {
        let snapshot = published.load_full();
        let (mut parts, mut latches) = (Parts::new(), Vec::new());
        for (space, key, value) in &logged.merges {
            let (table, token, partition_key) = partition_of(key).ok_or_else(damaged)?;
            // The table may have been dropped.
            let Some(map) = snapshot.partitions_of(table) else {
                continue;
            };
            let partition = map.hosted_of_token(token, &partition_key)?;
            latches.push(Arc::clone(&partition.latch));
            let part = parts
                .entry(partition.store_id)
                .or_insert_with(|| (partition.store().clone(), Batch::new()));
            part.1.merge(*space, key.clone(), value.clone());
        }
        Ok(((snapshot, parts), latches))
    })
    .await?;
    // Views may have been added since the locks were taken. The next attempt locks their partitions too.
    if self::touched(&snapshot, logged)?.partitions().ne(touched.partitions()) {
        return Ok(Some(Closed::Superseded));
    }
    let mut of_views = Parts::new();
    for row in touched.following(&snapshot, None, published.now_seconds()).await? {
        if let Err(closed) = passes.add(&row.partition.latch) {
            return Ok(Some(closed));
        }
        put_view_row(&mut of_views, &row)?;
    }
    for parts in [of_views, parts] {
        for (_, store) in write_parts(parts, &passes).await? {
            let durable = published.stores().make_durable(&store).await;
            durable.map_err(|error| storage_write(&error))?;
        }
    }
    Ok(None)
}

/// The changes of a logged batch to base tables with views.
fn touched(snapshot: &Snapshot, logged: &LoggedBatch) -> Result<Touched, Error> {
    let mut touched = Touched::default();
    if mutant::is_on(Mutant::ReplayForgetsViews) {
        return Ok(touched);
    }
    for (space, key, value) in &logged.merges {
        touched.add(
            snapshot,
            decode_change(*space, key, value).map_err(|error| storage_read(&error))?,
        );
    }

    for key in &logged.rechecked {
        touched.recheck(snapshot, key)?;
    }
    Ok(touched)
}

/// Replays a batch in the background, until that succeeds or the catalog is dropped.
pub(super) fn spawn_replay(published: &Arc<Published>, logged: Logged) {
    published.pending.waits(logged.id);
    let (runner, tasks) = (published.tasks.clone(), published.tasks.clone());
    let published = Arc::downgrade(published);
    runner.spawn("replay of a logged batch", async move {
        let mut pause = PAUSE_MIN;
        while let Some(published) = published.upgrade() {
            let Err(error) = replay(&published, &logged).await else {
                return;
            };
            // The stores are closed: the next start replays the batch.
            if let Err(store::Error::Closed) = published.main().commit(Batch::new()).await {
                return;
            }
            let main = published.main().clone();
            drop(published);
            tracing::warn!(%error, "a logged batch could not be replayed; the replay is retried");
            if tasks.unless_stopped(main.pause(pause)).await.is_none() {
                return;
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    });
}

/// Removes the record of a batch of which nothing was written; repeats this until it succeeds or the catalog is
/// dropped. A failed commit of the record may have made it durable. Otherwise the next start would write a batch that
/// was answered as failed long before.
pub(super) fn spawn_forget(published: &Arc<Published>, id: RecordId) {
    published.pending.waits(id);
    let Ok(store) = store_of(published, id.store) else {
        return;
    };
    let (pending, tasks) = (Arc::clone(&published.pending), published.tasks.clone());
    let (runner, published) = (tasks.clone(), Arc::downgrade(published));
    runner.spawn("removal of a batch's record", async move {
        let mut pause = PAUSE_MIN;
        loop {
            let mut batch = Batch::new();
            batch.delete(Space::Catalog, id.key());
            match store.commit(batch).await {
                Ok(_) => return pending.end(id),
                Err(store::Error::Closed) => return,
                Err(_) if published.strong_count() == 0 => return,
                Err(error) => tracing::warn!(%error, "the record of an unwritten batch could not be removed; the removal is retried"),
            }
            if tasks.unless_stopped(store.pause(pause)).await.is_none() {
                return;
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    });
}
