//! The `slate+file:` and `slate+memory:` engine: SlateDB, a log-structured tree over an object store. One database holds all
//! spaces (layout.rs): each open database costs a dozen tasks.
//!
//! Fragments of rows are written as they are, by SlateDB's merge operator, and merged when they are read and compacted: a plain write
//! must not read from a bucket. So the row cache stands before the reads, and what a range holds is only estimated, by its tables.
//!
//! One task commits. It takes what has queued as one write batch, has the log put and confirmed, brings the cache up to date,
//! publishes a snapshot and answers. With `durability = periodic` or `os` it answers before the log is put, which SlateDB then does
//! at the period (`os`: 100 ms), and readers may see what is not durable yet.
//!
//! **After a failed write** the database serves reads only and, when the next commit comes and the disk takes writes, is closed and
//! opened again: an object is put whole or not at all, so what the store holds can be believed. Another writer that took the store over (by its epoch) ends writing here for good.
//!
//! The merge operator, the space bytes and SlateDB's own files are the format; `helenus.format` names it for `slate+file:`.
//!
//! Sources: SlateDB 0.18.0 (`Db`, `WriteBatch`, `MergeOperator`, `Settings`).

use std::collections::{HashMap, VecDeque};
use std::ops::{Bound, ControlFlow};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use bytes::Bytes;
use foldhash::quality::RandomState;
use slatedb::config::{CloseOptions, FlushOptions, FlushType, ScanOptions};
use slatedb::object_store::ObjectStore;
use slatedb::object_store::local::LocalFileSystem;
use slatedb::object_store::memory::InMemory;
use slatedb::{CloseReason, Db, DbSnapshot, ErrorKind, IterationOrder, MergeOperator, MergeOperatorError, WriteBatch};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::directory::{Directory, io_error};
use super::layout::{OWN, Own, full_key, full_range, parse_own, range_record};
use super::{DeletionTables, Order, SCAN_STRIDE_ENTRIES, add_table, remove_tables, rest_of_range, table_of};
use crate::storage::batch::{Batch, Change, Space, merge_values};
use crate::storage::cache::RowCache;
use crate::storage::derivation::{self, Derivations};
use crate::storage::key::KeyRange;
use crate::storage::location::Url;
use crate::storage::options::{Durability, FaultPoint, Options};
use crate::storage::sizes::Estimate;
use crate::storage::{CommitSeq, Error, Result};

/// What the format file of such a store says.
const FORMAT: &str = "helenus store 1, slatedb 0.18";

/// Where the database lies in its object store.
const DATABASE: &str = "engine";

/// How often SlateDB puts its log when nobody waits for it.
const LOG_INTERVAL: Duration = Duration::from_millis(100);

/// Retries of one operation on the object store before it counts as failed; without a bound a full disk would hang its writers.
const OBJECT_STORE_RETRIES_MAX: u32 = 3;

/// How long the object store may take to have the log or a table before the write counts as failed.
const PUT_MAX: Duration = Duration::from_secs(30);

/// How long a database may take to close.
const CLOSING_MAX: Duration = Duration::from_secs(10);

/// Keys that one step of a range deletion removes.
const RANGE_STEP_KEYS: usize = 4096;

/// Bytes that one permit of the queue's room stands for.
const ROOM_UNIT_BYTES: usize = 1024;

/// The SlateDB engine. Clones are the same store; it closes behind when the last one goes.
#[derive(Clone, Debug)]
pub struct Store(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    commands: mpsc::Sender<Command>,
    bytes_room: Arc<Semaphore>,
    bytes_room_units: usize,
    batch_bytes_max: usize,
}

#[derive(Debug)]
struct Shared {
    /// `None` while the database is opened again, and after closing.
    published: ArcSwapOption<Published>,
    cache: RowCache,
    /// What the next groups derive.
    derivations: ArcSwap<Derivations>,
}

/// What the committer published last.
pub(in crate::storage) struct Published {
    database: Db,
    view: Arc<DbSnapshot>,
    location: Arc<str>,
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

enum Command {
    Commit(Request),
    Flush(oneshot::Sender<Result<()>>),
    Close(oneshot::Sender<Result<()>>),
}

struct Request {
    changes: Vec<Change>,
    bytes: usize,
    answer: oneshot::Sender<Result<CommitSeq>>,
    room: OwnedSemaphorePermit,
}

/// What a group does to one key, its changes folded into one.
enum Fold {
    Put(Bytes),
    Delete,
    Merge(Bytes),
}

/// What a group does.
#[derive(Default)]
struct Group {
    folds: HashMap<Vec<u8>, (Space, Fold), RandomState>,
    own: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

/// Values that are there, by full key, for the changes that depend on them.
type Current = HashMap<Vec<u8>, Bytes, RandomState>;

/// Where the database is, so that it can be opened again.
struct Home {
    /// `None` in memory.
    directory: Option<Directory>,
    objects: Arc<dyn ObjectStore>,
    location: Arc<str>,
}

struct Committer {
    home: Home,
    options: Options,
    commands: mpsc::Receiver<Command>,
    shared: Arc<Shared>,
    /// `None` while it is opened again.
    database: Option<Db>,
    /// A write failed: it serves reads and is not written to any more.
    failed: bool,
    /// Why nothing may be written here any more.
    ended: Option<Error>,
    seq: CommitSeq,
    deletion_tables: DeletionTables,
    next_range: u64,
}

/// Merges fragments of rows and deletions when they are read and compacted.
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

/// Merges two values; where one is damaged, that one stays, for its reader to refuse: an error in the merge operator would end the
/// whole database.
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
    /// Opens the store at one of this engine's URLs.
    pub(in crate::storage) async fn open(url: &Url, options: &Options) -> Result<Self> {
        let location: Arc<str> = url.to_string().into();
        let home = match url {
            Url::SlateFile(path) => Home::in_directory(path.clone(), location)?,
            _ => Home {
                directory: None,
                objects: Arc::new(InMemory::new()),
                location,
            },
        };
        let (commands, received) = mpsc::channel(options.commit_queue_batches_max.max(1));
        let shared = Arc::new(Shared {
            published: ArcSwapOption::empty(),
            cache: RowCache::new(options.row_cache_bytes_max),
            derivations: ArcSwap::default(),
        });
        let mut committer = Committer {
            home,
            options: options.clone(),
            commands: received,
            shared: Arc::clone(&shared),
            database: None,
            failed: false,
            ended: None,
            seq: CommitSeq(0),
            deletion_tables: DeletionTables::default(),
            next_range: 0,
        };
        committer.open().await?;
        tokio::spawn(committer.run());
        let bytes_room_units = options
            .commit_queue_bytes_max
            .div_ceil(ROOM_UNIT_BYTES)
            .clamp(1, Semaphore::MAX_PERMITS);
        Ok(Self(Arc::new(Inner {
            shared,
            commands,
            bytes_room: Arc::new(Semaphore::new(bytes_room_units)),
            bytes_room_units,
            batch_bytes_max: options.batch_bytes_max,
        })))
    }

    /// `None` while the database is opened again, and after closing.
    pub(in crate::storage) fn snapshot(&self) -> Option<Arc<Published>> {
        self.0.shared.published.load_full()
    }

    pub(in crate::storage) fn cache(&self) -> &RowCache {
        &self.0.shared.cache
    }

    pub(in crate::storage) fn set_derivations(&self, derivations: Derivations) {
        self.0.shared.derivations.store(Arc::new(derivations));
    }

    pub(in crate::storage) async fn commit(&self, batch: Batch) -> Result<CommitSeq> {
        let bytes = batch.bytes();
        if bytes > self.0.batch_bytes_max {
            return Err(Error::BatchTooLarge {
                bytes,
                bytes_max: self.0.batch_bytes_max,
            });
        }
        let units = bytes.div_ceil(ROOM_UNIT_BYTES).clamp(1, self.0.bytes_room_units);
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.0.bytes_room)
            .acquire_many_owned(units)
            .await
            .map_err(|_| Error::Closed)?;
        let (answer, answered) = oneshot::channel();
        self.send(Command::Commit(Request {
            changes: batch.into_changes(),
            bytes,
            answer,
            room,
        }))
        .await?;
        answered.await.unwrap_or(Err(Error::Closed))
    }

    async fn send(&self, command: Command) -> Result<()> {
        self.0.commands.send(command).await.map_err(|_| Error::Closed)
    }

    pub(in crate::storage) async fn flush(&self) -> Result<()> {
        let (answer, answered) = oneshot::channel();
        self.send(Command::Flush(answer)).await?;
        answered.await.unwrap_or(Err(Error::Closed))
    }

    pub(in crate::storage) async fn close(&self) -> Result<()> {
        let (answer, answered) = oneshot::channel();
        self.send(Command::Close(answer)).await?;
        answered.await.unwrap_or(Err(Error::Closed))
    }

    /// Bytes of the tables that reach into a range of row keys; what only the log has is not counted.
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
        self.view
            .get(full_key(space, key))
            .await
            .map_err(|error| failure(&self.location, &error))
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
        let options = ScanOptions::default().with_order(order);
        let failed = |error: slatedb::Error| failure(&self.location, &error);
        let mut entries = self
            .view
            .scan_with_options(full_range(space, range), &options)
            .await
            .map_err(failed)?;
        let mut passed = 0_usize;
        while let Some(entry) = entries.next().await.map_err(failed)? {
            if visit(entry.key.get(1..).unwrap_or_default(), &entry.value).is_break() {
                break;
            }
            passed += 1;
            if passed.is_multiple_of(SCAN_STRIDE_ENTRIES) {
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }
}

impl Home {
    fn in_directory(path: PathBuf, location: Arc<str>) -> Result<Self> {
        let directory = Directory::open(&path, FORMAT)?;
        let objects = LocalFileSystem::new_with_prefix(&path).map_err(|error| Error::Engine {
            location: location.to_string(),
            what: error.to_string(),
        })?;
        Ok(Self {
            directory: Some(directory),
            objects: Arc::new(objects.with_fsync(true)),
            location,
        })
    }
}

impl Committer {
    async fn open(&mut self) -> Result<()> {
        let settings = slatedb::Settings {
            flush_interval: Some(match self.options.durability {
                Durability::Periodic(every) => every,
                Durability::Group | Durability::Os => LOG_INTERVAL,
            }),
            object_store_max_retries: Some(OBJECT_STORE_RETRIES_MAX),
            ..slatedb::Settings::default()
        };
        let location = Arc::clone(&self.home.location);
        let failed = |error: slatedb::Error| failure(&location, &error);
        let database = Db::builder(DATABASE, Arc::clone(&self.home.objects))
            .with_settings(settings)
            .with_merge_operator(Arc::new(Merger))
            .build()
            .await
            .map_err(failed)?;
        let view = database.snapshot().map_err(failed)?;
        self.seq = self.seq.max(CommitSeq(view.seq()));
        self.deletion_tables = deletion_tables(&view).await.map_err(failed)?;
        let unfinished = self.unfinished_ranges(&view).await?;
        self.database = Some(database);
        self.shared.cache.clear(self.seq);
        self.publish()?;
        for (number, space, range) in unfinished {
            self.next_range = self.next_range.max(number + 1);
            self.delete_range(number, space, range).await?;
        }
        Ok(())
    }

    async fn unfinished_ranges(&self, view: &DbSnapshot) -> Result<Vec<(u64, Space, KeyRange)>> {
        let failed = |error: slatedb::Error| failure(&self.home.location, &error);
        let mut unfinished = Vec::new();
        let mut entries = view.scan(vec![OWN]..).await.map_err(failed)?;
        while let Some(entry) = entries.next().await.map_err(failed)? {
            match parse_own(&entry.key, &entry.value) {
                Some(Own::Range(number, space, range)) => unfinished.push((number, space, range)),
                Some(Own::Chain(_) | Own::Size(..)) | None => {
                    let path = self
                        .home
                        .directory
                        .as_ref()
                        .map(|directory| directory.engine_path())
                        .unwrap_or_default();
                    return Err(Error::Corrupt {
                        path,
                        what: "an unknown record of the store's own".to_owned(),
                    });
                }
            }
        }
        Ok(unfinished)
    }

    /// Works until it is closed or every handle of the store is gone.
    async fn run(mut self) {
        let mut closing = None;
        while closing.is_none() {
            let Some(first) = self.commands.recv().await else { break };
            let mut requests = Vec::new();
            let (mut bytes, mut flush) = (0_usize, None);
            let mut command = Some(first);
            while let Some(next) = command.take() {
                match next {
                    Command::Commit(request) => {
                        bytes = bytes.saturating_add(request.bytes);
                        requests.push(request);
                        if bytes < self.options.commit_group_bytes_max {
                            command = self.commands.try_recv().ok();
                        }
                    }
                    Command::Flush(answer) => flush = Some(answer),
                    Command::Close(answer) => closing = Some(answer),
                }
            }
            self.commit_group(requests).await;
            if let Some(answer) = flush {
                drop(answer.send(self.put(FlushType::MemTable).await));
            }
        }
        // The log has everything, or gets it now; tables are written from it when the store is opened again.
        let closed = if self.failed {
            Ok(())
        } else {
            self.put(FlushType::Wal).await
        };
        drop(self.shared.published.swap(None));
        self.close_database().await;
        self.shared.cache.clear(CommitSeq(u64::MAX));
        // The directory's lock goes with it: whoever waits for the answer may open the store at once.
        drop(self);
        match closing {
            Some(answer) => drop(answer.send(closed)),
            None => {
                if let Err(error) = closed {
                    tracing::error!(%error, "closing the store failed");
                }
            }
        }
    }

    async fn commit_group(&mut self, requests: Vec<Request>) {
        if requests.is_empty() {
            return;
        }
        if let Err(error) = self.recover().await {
            return answer_all(requests, &Err(error));
        }
        let derivations = self.shared.derivations.load_full();
        let current = match self.current(&requests, &derivations).await {
            Ok(current) => current,
            Err(error) => return answer_all(requests, &Err(error)),
        };
        let (mut group, refusals) = stage(&requests, &current);
        derive(&mut group, &requests, &refusals, &current, &derivations);
        let mut ranges = Vec::new();
        for (request, refusal) in requests.iter().zip(&refusals) {
            for change in request.changes.iter().filter(|_| refusal.is_none()) {
                if let Change::DeleteRange { space, range } = change {
                    let (key, value) = range_record(self.next_range, *space, range);
                    group.own.push((key, Some(value)));
                    ranges.push((self.next_range, *space, range.clone()));
                    self.next_range += 1;
                }
            }
        }
        let mut written = self.write(group).await;
        for (number, space, range) in ranges {
            if written.is_ok() {
                written = self.delete_range(number, space, range).await.map(|()| self.seq);
            }
        }
        for (request, refusal) in requests.into_iter().zip(refusals) {
            request.answer(refusal.map_or_else(|| written.clone(), Err));
        }
    }

    /// Reads the values that changes of the group depend on: of clean-up, and of rows from which something follows. Other writes read
    /// nothing.
    async fn current(&self, requests: &[Request], derivations: &Derivations) -> Result<Current> {
        let mut current = Current::default();
        for change in requests.iter().flat_map(|request| &request.changes) {
            let (space, key) = match change {
                Change::Replace { space, key, .. } => (*space, key),
                Change::Put { space, key, .. } | Change::Delete { space, key } | Change::Merge { space, key, .. }
                    if is_derived(*space, key, derivations) =>
                {
                    (*space, key)
                }
                Change::Reindex { key, .. } if is_derived(Space::Rows, key, derivations) => (Space::Rows, key),
                _ => continue,
            };
            let full = full_key(space, key);
            if current.contains_key(&full) {
                continue;
            }
            let published = self.shared.published.load_full().ok_or(Error::Reopening)?;
            let known = match space {
                Space::Rows => self.shared.cache.peek(key),
                _ => None,
            };
            let value = match known {
                Some(known) => known,
                None => published.get(space, key).await?,
            };
            if let Some(value) = value {
                current.insert(full, value);
            }
        }
        Ok(current)
    }

    /// Removes the keys of a range, some at a time, and then its record.
    async fn delete_range(&mut self, number: u64, space: Space, range: KeyRange) -> Result<()> {
        let mut rest = Some(range.clone());
        while let Some(left) = rest.take() {
            let published = self.shared.published.load_full().ok_or(Error::Reopening)?;
            let derivations = self.shared.derivations.load_full();
            let mut group = Group::default();
            let mut last = None;
            let mut removed = 0_usize;
            let visit = |key: &[u8], value: &[u8]| {
                group.folds.insert(full_key(space, key), (space, Fold::Delete));
                if let Some(derivation) = derivation::of_row(&derivations, key).filter(|_| space == Space::Rows) {
                    for (entry, _) in derivation::changes(derivation.as_ref(), key, Some(value), None) {
                        let gone = (Space::Indexes, Fold::Delete);
                        group.folds.insert(full_key(Space::Indexes, &entry), gone);
                    }
                }
                removed += 1;
                if removed < RANGE_STEP_KEYS {
                    return ControlFlow::Continue(());
                }
                last = Some(key.to_vec());
                ControlFlow::Break(())
            };
            published.scan(space, &left, Order::Forward, visit).await?;
            rest = last.map(|last| rest_of_range(&left, Order::Forward, last));
            if rest.is_none() {
                group.own.push((range_record(number, space, &range).0, None));
                if space == Space::Deletions {
                    remove_tables(&mut self.deletion_tables, &range);
                }
            }
            self.write(group).await?;
        }
        Ok(())
    }

    async fn write(&mut self, group: Group) -> Result<CommitSeq> {
        if group.folds.is_empty() && group.own.is_empty() {
            return Ok(self.seq);
        }
        let mut batch = WriteBatch::new();
        let mut deletion_tables = DeletionTables::clone(&self.deletion_tables);
        for (key, (space, fold)) in &group.folds {
            match fold {
                Fold::Put(value) => batch.put(key, value),
                Fold::Merge(value) => batch.merge(key, value),
                Fold::Delete => batch.delete(key),
            }
            if *space == Space::Deletions && !matches!(fold, Fold::Delete) {
                add_table(&mut deletion_tables, key.get(1..).unwrap_or_default());
            }
        }
        for (key, value) in &group.own {
            match value {
                Some(value) => batch.put(key, value),
                None => batch.delete(key),
            }
        }
        if let Err(error) = self.write_batch(batch).await {
            self.fail(&error);
            return Err(error);
        }
        self.deletion_tables = deletion_tables;
        for (key, (space, fold)) in &group.folds {
            let key = key.get(1..).unwrap_or_default();
            match fold {
                _ if *space != Space::Rows => {}
                Fold::Put(value) => self.shared.cache.apply(key, Some(value), self.seq),
                Fold::Delete => self.shared.cache.apply(key, None, self.seq),
                Fold::Merge(value) => self.shared.cache.merge(key, value, self.seq),
            }
        }
        self.publish()?;
        Ok(self.seq)
    }

    async fn write_batch(&mut self, batch: WriteBatch) -> Result<()> {
        if let Some(fault) = self
            .options
            .faults
            .as_ref()
            .and_then(|faults| faults(FaultPoint::Commit))
        {
            return Err(self.fault(fault));
        }
        let database = self.database.as_ref().ok_or(Error::Reopening)?;
        let written = database
            .write(batch)
            .await
            .map_err(|error| failure(&self.home.location, &error))?;
        self.seq = self.seq.max(CommitSeq(written.seqnum()));
        match self.options.durability {
            Durability::Group => self.put(FlushType::Wal).await,
            Durability::Periodic(_) | Durability::Os => Ok(()),
        }
    }

    async fn put(&self, flush_type: FlushType) -> Result<()> {
        let database = self.database.as_ref().ok_or(Error::Reopening)?;
        let put = tokio::time::timeout(PUT_MAX, database.flush_with_options(FlushOptions { flush_type })).await;
        match put {
            Ok(put) => put.map_err(|error| failure(&self.home.location, &error)),
            Err(_) => {
                let what = format!("the object store did not answer in {} s", PUT_MAX.as_secs());
                Err(Error::Engine {
                    location: self.home.location.to_string(),
                    what,
                })
            }
        }
    }

    /// Ends the database without writing what it has in memory: either that was written before, or it was answered as failed.
    async fn close_database(&mut self) {
        if let Some(database) = self.database.take() {
            let without_flush = CloseOptions::default().with_flush_type(None);
            // Its tasks may be busy with an object store that fails.
            match tokio::time::timeout(CLOSING_MAX, database.close_with_options(without_flush)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(%error, location = %self.home.location, "closing a database"),
                Err(_) => tracing::warn!(location = %self.home.location, "a database did not close in time"),
            }
        }
    }

    fn publish(&self) -> Result<()> {
        let Some(database) = &self.database else { return Ok(()) };
        let view = database
            .snapshot()
            .map_err(|error| failure(&self.home.location, &error))?;
        self.shared.published.store(Some(Arc::new(Published {
            database: database.clone(),
            view,
            location: Arc::clone(&self.home.location),
            seq: self.seq,
            deletion_tables: DeletionTables::clone(&self.deletion_tables),
        })));
        Ok(())
    }

    fn fault(&self, error: std::io::Error) -> Error {
        let path = self
            .home
            .directory
            .as_ref()
            .map(|directory| directory.path().to_owned())
            .unwrap_or_default();
        let error = io_error("writing", &path)(error);
        if error.is_disk_full() {
            Error::DiskFull { directory: path }
        } else {
            error
        }
    }

    fn fail(&mut self, error: &Error) {
        tracing::error!(%error, location = %self.home.location, "the store takes no writes");
        if matches!(error, Error::TakenOver { .. }) {
            self.ended = Some(error.clone());
        }
        self.failed = true;
    }

    /// Makes sure that there is a database that takes writes.
    async fn recover(&mut self) -> Result<()> {
        if let Some(ended) = &self.ended {
            return Err(ended.clone());
        }
        if self.database.is_some() && !self.failed {
            return Ok(());
        }
        if let Some(fault) = self
            .options
            .faults
            .as_ref()
            .and_then(|faults| faults(FaultPoint::Probe))
        {
            return Err(self.fault(fault));
        }
        if let Some(directory) = &self.home.directory {
            directory.probe()?;
        }
        drop(self.shared.published.swap(None));
        self.close_database().await;
        self.open().await?;
        self.failed = false;
        tracing::info!(location = %self.home.location, "the store takes writes again");
        Ok(())
    }
}

impl Request {
    fn answer(self, answer: Result<CommitSeq>) {
        drop(self.room);
        // Whoever asked may have gone away; the batch took effect nevertheless.
        drop(self.answer.send(answer));
    }
}

fn answer_all(requests: Vec<Request>, answer: &Result<CommitSeq>) {
    for request in requests {
        request.answer(answer.clone());
    }
}

/// Folds the changes of each key into one. A batch whose changes do not merge is refused alone.
fn stage(requests: &[Request], current: &Current) -> (Group, Vec<Option<Error>>) {
    let mut refusals: Vec<Option<Error>> = vec![None; requests.len()];
    'again: loop {
        let mut group = Group::default();
        for (request, refusal) in requests.iter().zip(&mut refusals) {
            if refusal.is_none()
                && let Err(error) = stage_batch(&mut group, &request.changes, current)
            {
                *refusal = Some(error);
                continue 'again;
            }
        }
        return (group, refusals);
    }
}

fn stage_batch(group: &mut Group, changes: &[Change], current: &Current) -> Result<()> {
    for change in changes {
        let (space, key, fold) = match change {
            Change::Put { space, key, value } => (*space, key, Fold::Put(value.clone())),
            Change::Delete { space, key } => (*space, key, Fold::Delete),
            Change::Merge { space, key, value } => (*space, key, Fold::Merge(value.clone())),
            Change::Replace {
                space,
                key,
                expected,
                value,
            } => {
                let full = full_key(*space, key);
                if !group.folds.contains_key(&full) && current.get(&full) == Some(expected) {
                    group
                        .folds
                        .insert(full, (*space, value.clone().map_or(Fold::Delete, Fold::Put)));
                }
                continue;
            }
            Change::DeleteRange { .. } | Change::Reindex { .. } => continue,
        };
        let full = full_key(space, key);
        let fold = match (group.folds.get(&full), fold) {
            (Some((_, Fold::Put(old))), Fold::Merge(new)) => Fold::Put(merge_values(space, old, &new)?),
            (Some((_, Fold::Merge(old))), Fold::Merge(new)) => Fold::Merge(merge_values(space, old, &new)?),
            (Some((_, Fold::Delete)), Fold::Merge(new)) => Fold::Put(new),
            (_, fold) => fold,
        };
        group.folds.insert(full, (space, fold));
    }
    Ok(())
}

/// Whether something follows from what is stored at this key.
fn is_derived(space: Space, key: &[u8], derivations: &Derivations) -> bool {
    space == Space::Rows && derivation::of_row(derivations, key).is_some()
}

/// Adds the changes of index entries that follow from those of rows.
fn derive(
    group: &mut Group,
    requests: &[Request],
    refusals: &[Option<Error>],
    current: &Current,
    derivations: &Derivations,
) {
    if derivations.is_empty() {
        return;
    }
    let mut entries = Vec::new();
    for (full, (space, fold)) in &group.folds {
        let key = full.get(1..).unwrap_or_default();
        let Some(derivation) = derivation::of_row(derivations, key).filter(|_| *space == Space::Rows) else {
            continue;
        };
        let before = current.get(full);
        let after = after_fold(before, fold);
        entries.extend(derivation::changes(
            derivation.as_ref(),
            key,
            before.map(Bytes::as_ref),
            after.as_deref(),
        ));
    }
    for (request, _) in requests.iter().zip(refusals).filter(|(_, refusal)| refusal.is_none()) {
        for change in &request.changes {
            if let Change::Reindex { key, index } = change
                && let Some(derivation) = derivation::of_row(derivations, key)
            {
                let full = full_key(Space::Rows, key);
                let before = current.get(&full);
                let row = match group.folds.get(&full) {
                    Some((_, fold)) => after_fold(before, fold),
                    None => before.cloned(),
                };
                let of_index = derivation::entries_in(derivation.as_ref(), *index, key, row.as_deref());
                entries.extend(of_index.map(|(entry, value)| (entry, Some(value))));
            }
        }
    }
    for (entry, value) in entries {
        let fold = value.map_or(Fold::Delete, Fold::Put);
        group
            .folds
            .insert(full_key(Space::Indexes, &entry), (Space::Indexes, fold));
    }
}

/// What a row is after a fold, as the merge operator will have it.
fn after_fold(before: Option<&Bytes>, fold: &Fold) -> Option<Bytes> {
    match (fold, before) {
        (Fold::Put(value), _) | (Fold::Merge(value), None) => Some(value.clone()),
        (Fold::Merge(value), Some(before)) => Some(merge_or_keep_damage(Space::Rows, before.clone(), value.clone())),
        (Fold::Delete, _) => None,
    }
}

/// Which tables have deletion records: a step for each table, not for each record.
async fn deletion_tables(view: &DbSnapshot) -> Result<DeletionTables, slatedb::Error> {
    let mut tables = std::collections::BTreeSet::new();
    let mut rest: VecDeque<u32> = VecDeque::from([0]);
    while let Some(from) = rest.pop_front() {
        let range = KeyRange {
            start: Bound::Included(from.to_be_bytes().to_vec()),
            end: Bound::Unbounded,
        };
        let mut entries = view.scan(full_range(Space::Deletions, &range)).await?;
        if let Some(entry) = entries.next().await?
            && let Some(table) = table_of(entry.key.get(1..).unwrap_or_default())
        {
            tables.insert(table);
            rest.extend(table.checked_add(1));
        }
    }
    Ok(Arc::new(tables))
}

/// What an error of SlateDB's means.
fn failure(location: &str, error: &slatedb::Error) -> Error {
    match error.kind() {
        ErrorKind::Closed(CloseReason::Fenced) => Error::TakenOver {
            location: location.to_owned(),
        },
        ErrorKind::Data => Error::Corrupt {
            path: PathBuf::from(location),
            what: error.to_string(),
        },
        _ => Error::Engine {
            location: location.to_owned(),
            what: error.to_string(),
        },
    }
}
