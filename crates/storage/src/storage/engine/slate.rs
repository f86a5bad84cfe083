//! The engine of `slate+file:`, `slate+memory:`, `s3:`, `az:` and `gs:`: SlateDB, a log-structured tree over an object
//! store. One database holds all spaces (layout.rs): each open database costs a dozen tasks.
//!
//! SlateDB's merge operator stores partial rows as they are, and reads and compactions merge them: a plain write must
//! not read from a bucket. So reads use the row cache, and the size of a range is only estimated, from its tables.
//!
//! One task commits. It takes the queue as one write batch and writes it to SlateDB's memory. Meanwhile the log with
//! the earlier groups is put (flight.rs). When a put is confirmed, the task updates the cache, publishes the snapshot
//! of its last group and answers (landing.rs). With `durability = periodic` or `os` it answers before the log is put.
//! SlateDB then puts the log at the period (`os`: 100 ms), and readers may see writes that are not durable yet.
//!
//! **After a failed write** the database serves reads only. If the disk was full, the next commit that finds space
//! closes it and opens it again: an object is put whole or not at all. After any other failure nothing is written until
//! the server starts again; the same holds if another writer took the store over (by its epoch). If the database then
//! cannot be read either, the store is lost ([`Shared::lost`]), and the server ends.
//!
//! **A bucket** (tuning.rs) may be unreachable for a while. A commit that is not confirmed in time fails, and readers
//! continue with the published snapshot while this process owns the bucket. The put goes on, and what it confirms late is
//! published with a new [`Opening`] (landing.rs). Without the lease the database is closed. The committer opens it again,
//! under a new epoch, once the bucket answers.
//!
//! What is read of its tables can be kept on local disk (disk_cache.rs).
//!
//! **Opening.** SlateDB creates a database where there is no manifest, and may panic on a damaged one. So a store that
//! was used and has no manifest is refused, the newest manifest is read first, and a panic becomes an error. The newest
//! objects of the log and the newest manifests are rewritten: the last put before the process ended may have failed to
//! sync and still be visible.
//!
//! The clock by which SlateDB dates writes and tables never goes back (clock.rs). Every group records the time mark
//! ([`helenus_base::clock::TimeMark`]) under one key of the store's own.
//!
//! The merge operator, the space bytes and SlateDB's own files are the format; `helenus.format` names it for
//! `slate+file:`.
//!
//! Sources: SlateDB 0.18.0 (`Db`, `WriteBatch`, `MergeOperator`, `Settings`).

mod clock;
mod committer;
mod disk_cache;
mod failures;
mod flight;
mod group;
mod home;
mod keeping;
mod known;
mod landing;
mod log;
mod medium;
mod opening;
mod places;
pub(super) mod put_record;
mod ranges;
mod records;
mod recovery;
pub(super) mod salvage;
mod sealed;
mod tuning;
mod unlogged;
mod verify;

pub(super) use self::home::FORMAT;

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use bytes::Bytes;
use slatedb::config::FlushType;
use slatedb::object_store::memory::InMemory;
use slatedb::{Db, DbSnapshot, IterationOrder, MergeOperator, MergeOperatorError};
use tokio::sync::{mpsc, oneshot};

use self::clock::Ticks;
use self::committer::{Command, Committer};
use self::flight::Flight;
use self::group::Request;
use self::home::Home;
use self::medium::Medium;
use self::places::DATABASE;
use self::ranges::RangeJobs;
use self::tuning::{LONG_SCAN_ENTRIES, ahead_options, scan_options};
use self::unlogged::Unlogged;
use super::layout::{full_key, full_range};
use super::moments::Moment;
use super::queue_space::QueueSpace;
use super::{DeletionTables, Order, SCAN_STRIDE_ENTRIES};
use crate::storage::batch::{Batch, Space, merge_values};
use crate::storage::bucket::LeasePut;
use crate::storage::cache::{Next, RowCache, Slice};
use crate::storage::derivation::Derivations;
use crate::storage::engine::options::Options;
use crate::storage::identity::Identity;
use crate::storage::key::KeyRange;
use crate::storage::location::Url;
use crate::storage::purge::Sweeps;
use crate::storage::sizes::Estimate;
use crate::storage::{CommitSeq, Error, Opening, Result};
use helenus_base::clock::Clock;

/// Attempts of a start to open a database in a bucket.
const OPENINGS_MAX: u32 = 8;

/// The SlateDB engine. Clones are the same store; it closes in the background when the last one is dropped.
#[derive(Clone, Debug)]
pub struct Store(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    commands: mpsc::Sender<Command>,
    queue_space: QueueSpace,
}

#[derive(Debug)]
struct Shared {
    /// `None` while the database is being reopened, and after closing.
    published: ArcSwapOption<Published>,
    cache: RowCache,
    /// The derivations that the next groups apply.
    derivations: ArcSwap<Derivations>,
    sweeps: Arc<Sweeps>,
    /// The location of its database. `None` after closing.
    home: ArcSwapOption<Home>,
    /// Number of openings of the database; raised before the state of an opening is published.
    openings: AtomicU64,
    /// Why nothing is written although the database is open: its log cannot be put now. `None` means that it can.
    stalled: ArcSwapOption<Error>,
    /// Why nothing can be read or written until the server starts again. The medium may have such a reason too.
    lost: ArcSwapOption<Error>,
    medium: Arc<Medium>,
}

impl Shared {
    fn opening(&self) -> Opening {
        Opening(self.openings.load(Ordering::Acquire))
    }
}

/// The state that the committer published last.
pub(in crate::storage) struct Published {
    database: Db,
    view: Arc<DbSnapshot>,
    home: Arc<Home>,
    pub(in crate::storage) seq: CommitSeq,
    pub(in crate::storage) deletion_tables: DeletionTables,
}

impl std::fmt::Debug for Published {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Published")
            .field("seq", &self.seq)
            .finish_non_exhaustive()
    }
}

/// Merges partial rows and deletions in reads and compactions.
struct Merger;

impl MergeOperator for Merger {
    fn merge(&self, key: &Bytes, existing: Option<Bytes>, value: Bytes) -> Result<Bytes, MergeOperatorError> {
        let Some(existing) = existing else { return Ok(value) };
        let Some(space) = Space::ALL.into_iter().find(|space| key.first() == Some(&space.byte())) else {
            return Ok(value);
        };
        Ok(merge_or_keep_damage(space, existing, value))
    }
}

/// Merges two values. If one is damaged, it is kept, so that its reader refuses it: an error in the merge operator
/// would end the whole database.
fn merge_or_keep_damage(space: Space, existing: Bytes, value: Bytes) -> Bytes {
    merge_values(space, &existing, &value).unwrap_or_else(|_| {
        if merge_values(space, &value, &value).is_ok() {
            existing
        } else {
            value
        }
    })
}

impl Store {
    /// Opens the store at a URL of this engine.
    pub(in crate::storage) async fn open(url: &Url, options: &Options, clock: Clock) -> Result<Self> {
        let location: Arc<str> = url.to_string().into();
        let home = match url {
            Url::SlateFile(path) => Home::in_directory(path.clone(), location, options, clock)?,
            Url::Bucket(address) => Home::in_bucket(address, location, options, clock).await?,
            _ => Home {
                directory: None,
                medium: Arc::new(Medium::new(Arc::new(InMemory::new()), None, Identity::default())),
                identity: Identity::default(),
                location,
                database: DATABASE.into(),
                ticks: Arc::new(Ticks::new(clock)),
                durable: Arc::default(),
                bucket: None,
                blocks: None,
                log: None,
            },
        };
        Self::open_at(home, options).await
    }

    /// Opens the database of a path in the same bucket, and creates it if it does not exist.
    pub(in crate::storage) async fn open_side(&self, path: String, options: &Options) -> Result<Self> {
        let home = self.home()?.beside(path);
        Self::open_at(home, options).await
    }

    /// Its entry for the other stores' records of progress: the objects of its log. `None` means that it is in memory,
    /// or closed.
    pub(in crate::storage) fn moment(&self) -> Option<Moment> {
        self.home().ok()?.moment()
    }

    fn home(&self) -> Result<Arc<Home>> {
        self.0.shared.home.load_full().ok_or(Error::Closed)
    }

    /// Whether there is a database of this path in the bucket.
    pub(in crate::storage) async fn has_database(&self, path: &str) -> Result<bool> {
        self.home()?.has_database(path).await
    }

    /// Removes a database of this bucket that is not open.
    pub(in crate::storage) async fn remove_database(&self, path: &str) -> Result<()> {
        self.home()?.remove_database(path).await
    }

    /// Forgets what the shared log has of a closed database.
    pub(in crate::storage) async fn forget_database(&self, path: &str) -> Result<()> {
        self.home()?.forget(path).await
    }

    /// Creates a database at a path that shows a range of rows in their current state.
    pub(in crate::storage) async fn clone_side(&self, path: String, rows: &KeyRange) -> Result<()> {
        // Flushed now, and again when the committer makes the clone, so that commits wait for little.
        self.flush().await?;
        let (answer, answered) = oneshot::channel();
        let (start, end) = full_range(Space::Rows, rows);
        let range = (start.map(Bytes::from), end.map(Bytes::from));
        self.send(Command::Clone { path, range, answer }).await?;
        answered.await.unwrap_or(Err(Error::Closed))
    }

    async fn open_at(home: Home, options: &Options) -> Result<Self> {
        let home = Arc::new(home);
        let (commands, received) = mpsc::channel(options.commit_queue_batches_max.max(1));
        let shared = Arc::new(Shared {
            published: ArcSwapOption::empty(),
            cache: RowCache::new(options.row_cache_bytes_max),
            derivations: ArcSwap::default(),
            sweeps: Arc::default(),
            openings: AtomicU64::default(),
            stalled: ArcSwapOption::empty(),
            lost: ArcSwapOption::empty(),
            medium: Arc::clone(&home.medium),
            home: ArcSwapOption::new(Some(Arc::clone(&home))),
        });
        let flight = Flight::new(home.is_remote() && home.log.is_none());
        let mut committer = Committer {
            home,
            options: options.clone(),
            commands: received,
            shared: Arc::clone(&shared),
            database: None,
            failed: false,
            ended: None,
            seq: CommitSeq(0),
            engine_seq: 0,
            not_put: None,
            unlogged: Unlogged::default(),
            time: None,
            deletion_tables: DeletionTables::default(),
            next_range: 0,
            ranges: RangeJobs::default(),
            drawn: options.times().drawn(),
            flight,
            log_objects: 0,
            tables: None,
            tables_wanted: Arc::default(),
        };
        committer.home.begin();
        let mut openings = 1;
        while let Err(error) = committer.open().await {
            committer.close_database().await;
            if openings == OPENINGS_MAX || !committer.home.may_open(&error) {
                committer.home.end().await;
                return Err(error);
            }
            openings += 1;
            tracing::warn!(%error, location = %committer.home.location, "the store did not open; it is tried again");
        }
        tokio::spawn(committer.run());
        Ok(Self(Arc::new(Inner {
            shared,
            commands,
            queue_space: QueueSpace::new(options),
        })))
    }

    /// `None` while the database is being reopened, after closing, and while another server may own the bucket.
    pub(in crate::storage) fn snapshot(&self) -> Option<Arc<Published>> {
        let published = self.0.shared.published.load_full()?;
        // Checked after the snapshot was taken. Another server may have written since then, but not before this request
        // began.
        published.home.is_owner().then_some(published)
    }

    /// How long the lease of the bucket lasts unless it is renewed. `None` means that there is none.
    pub(in crate::storage) fn lease_left(&self) -> Option<Duration> {
        self.home().ok()?.lease_left()
    }

    /// The newest put of the lease of the bucket. `None` means that there is none.
    pub(in crate::storage) fn lease_put(&self) -> Option<LeasePut> {
        self.home().ok()?.lease_put()
    }

    /// Why there is no snapshot.
    pub(in crate::storage) fn why_unavailable(&self) -> Error {
        let shared = &self.0.shared;
        let Ok(home) = self.home() else {
            return Error::Closed;
        };
        if let Some(lost) = self.lost() {
            return Error::clone(&lost);
        }
        if !home.is_owner() {
            return home.lease_over();
        }
        shared
            .medium
            .full()
            .map_or(Error::Reopening, |full| Error::clone(&full))
    }

    pub(in crate::storage) fn opening(&self) -> Opening {
        self.0.shared.opening()
    }

    /// Why nothing can be read or written any more. `None` means that it can be read, or will be again.
    pub(in crate::storage) fn lost(&self) -> Option<Arc<Error>> {
        let shared = &self.0.shared;
        shared.lost.load_full().or_else(|| shared.medium.lost())
    }

    pub(in crate::storage) fn cache(&self) -> &RowCache {
        &self.0.shared.cache
    }

    pub(in crate::storage) fn sweeps(&self) -> &Arc<Sweeps> {
        &self.0.shared.sweeps
    }

    pub(in crate::storage) fn set_derivations(&self, derivations: Derivations) {
        self.0.shared.derivations.store(Arc::new(derivations));
    }

    /// Refuses a batch that is too large, and any batch while the log cannot be put, as a commit does.
    pub(in crate::storage) fn check_batch(&self, batch: &Batch) -> Result<()> {
        self.0.queue_space.check(batch.bytes())?;
        let stalled = self.0.shared.stalled.load_full().map(|stalled| Error::clone(&stalled));
        let stalled = stalled.or_else(|| self.home().ok()?.log_stalled());
        stalled.map_or(Ok(()), Err)
    }

    pub(in crate::storage) async fn commit(&self, batch: Batch) -> Result<CommitSeq> {
        let bytes = batch.bytes();
        let permit = self.0.queue_space.take(bytes).await?;
        let (answer, answered) = oneshot::channel();
        self.send(Command::Commit(Request {
            only_in: batch.opening(),
            row_bytes_max: batch.row_bytes_max(),
            changes: batch.into_changes(),
            bytes,
            answer,
            queue_space: permit,
        }))
        .await?;
        answered.await.unwrap_or(Err(Error::Closed))
    }

    async fn send(&self, command: Command) -> Result<()> {
        self.0.commands.send(command).await.map_err(|_| Error::Closed)
    }

    /// Writes tables, so that the log has nothing more.
    pub(in crate::storage) async fn flush(&self) -> Result<()> {
        self.flushed(FlushType::MemTable).await
    }

    /// Makes all acknowledged writes durable, in the log.
    pub(in crate::storage) async fn sync(&self) -> Result<()> {
        self.flushed(FlushType::Wal).await
    }

    async fn flushed(&self, flush_type: FlushType) -> Result<()> {
        let (answer, answered) = oneshot::channel();
        self.send(Command::Flush(flush_type, answer)).await?;
        answered.await.unwrap_or(Err(Error::Closed))
    }

    pub(in crate::storage) async fn close(&self) -> Result<()> {
        let (answer, answered) = oneshot::channel();
        self.send(Command::Close(answer)).await?;
        answered.await.unwrap_or(Err(Error::Closed))
    }

    /// Reads the beginning of a range of row keys of a bucket into the cache of blocks, in the background.
    pub(in crate::storage) fn read_ahead(&self, range: impl FnOnce() -> KeyRange) {
        let Some(published) = self.snapshot() else { return };
        let Some(permit) = published.home.ahead() else { return };
        let range = full_range(Space::Rows, &range());
        tokio::spawn(async move {
            let begun = published.answer(async {
                let mut entries = published.view.scan_with_options(range, &ahead_options()).await?;
                entries.next().await
            });
            // The scan itself fails for the same reason.
            drop(begun.await);
            drop(permit);
        });
    }

    /// Bytes of the tables that overlap a range of row keys, without rows that only the log has.
    pub(in crate::storage) fn estimate(&self, range: &KeyRange) -> Estimate {
        let Some(published) = self.snapshot() else {
            return Estimate::default();
        };
        let (start, end) = full_range(Space::Rows, range);
        let manifest = published.database.manifest();
        let starts_in_time = |first: &Bytes| match &end {
            Bound::Included(end) | Bound::Excluded(end) => first <= end,
            Bound::Unbounded => true,
        };
        let ends_late_enough = |last: &Bytes| match &start {
            Bound::Included(start) | Bound::Excluded(start) => last >= start,
            Bound::Unbounded => true,
        };
        let bytes = manifest
            .all_sst_views()
            .filter(|view| {
                let info = &view.sst.info;
                info.first_entry.as_ref().is_none_or(starts_in_time)
                    && info.last_entry.as_ref().is_none_or(ends_late_enough)
            })
            .map(slatedb::manifest::SsTableView::estimate_size)
            .sum();
        Estimate {
            bytes,
            rows: 0,
            is_exact: false,
        }
    }
}

impl Published {
    pub(in crate::storage) async fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        let get = self.view.get(full_key(space, key));
        self.answer(get).await
    }

    /// SlateDB's answer to a read, within the medium's time limit.
    async fn answer<T>(&self, read: impl Future<Output = Result<T, slatedb::Error>>) -> Result<T> {
        if !self.home.is_remote() {
            return read.await.map_err(|error| self.home.failure(&error));
        }
        let longest = self.home.patience().read_max;
        let answer = async { read.await.map_err(|error| self.home.failure(&error)) };
        self.home.within(longest, answer).await
    }

    /// A row by way of the cache.
    pub(in crate::storage) async fn get_row(&self, key: &[u8], cache: &RowCache) -> Result<Option<Bytes>> {
        if let Some(known) = cache.get(key, self.seq) {
            return Ok(known);
        }
        let value = self.get(Space::Rows, key).await?;
        cache.add(key, value.as_deref().map(Bytes::copy_from_slice), self.seq);
        Ok(value)
    }

    /// A scan of rows by way of the cache.
    pub(in crate::storage) async fn scan_rows(
        &self,
        range: &KeyRange,
        order: Order,
        cache: &RowCache,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()> + Send,
    ) -> Result<()> {
        let Some(mut slice) = Slice::of(range, order, cache, self.seq) else {
            return self.scan(Space::Rows, range, order, visit).await;
        };
        loop {
            match slice.next(&mut visit) {
                Next::Done => return Ok(()),
                Next::Yield => tokio::task::yield_now().await,
                Next::Read(mut hole) => {
                    let range = hole.range();
                    let row = |key: &[u8], value: &[u8]| hole.row(key, value, &mut visit);
                    self.scan(Space::Rows, &range, order, row).await?;
                    if !slice.has_read(hole, true) {
                        return Ok(());
                    }
                }
            }
        }
    }

    pub(in crate::storage) async fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        order: Order,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()> + Send,
    ) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let order = match order {
            Order::Forward => IterationOrder::Ascending,
            Order::Reverse => IterationOrder::Descending,
        };
        let is_remote = self.home.is_remote();
        let mut passed = 0_usize;
        let (mut rest, mut last) = (full_range(space, range), None);
        loop {
            let options = scan_options(is_remote, passed).with_order(order);
            let scan = self.view.scan_with_options(rest.clone(), &options);
            let mut entries = self.answer(scan).await?;
            let mut is_long = false;
            while let Some(entry) = self.answer(entries.next()).await? {
                if visit(entry.key.get(1..).unwrap_or_default(), &entry.value).is_break() {
                    return Ok(());
                }
                passed += 1;
                if passed.is_multiple_of(SCAN_STRIDE_ENTRIES) {
                    tokio::task::yield_now().await;
                }
                if is_remote && passed == LONG_SCAN_ENTRIES {
                    (last, is_long) = (Some(entry.key), true);
                    break;
                }
            }
            let Some(last) = last.take().filter(|_| is_long) else {
                return Ok(());
            };
            // The rest is read in larger parts.
            let bound = Bound::Excluded(last.to_vec());
            rest = match order {
                IterationOrder::Ascending => (bound, rest.1),
                IterationOrder::Descending => (rest.0, bound),
            };
        }
    }
}

#[cfg(test)]
mod bucket_tests;
#[cfg(test)]
mod stall_tests;
#[cfg(test)]
mod tests;
