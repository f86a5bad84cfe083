//! The task that writes: takes what has queued as one write batch, has it put, publishes, answers; and opens the database again
//! after a failure.

use std::ops::{Bound, ControlFlow};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use slatedb::config::{CloseOptions, FlushOptions, FlushType};
use slatedb::{Db, WriteBatch};
use tokio::sync::{mpsc, oneshot};

use super::group::{Current, Fold, Group, Request, derive, is_derived, stage};
use super::home::Home;
use super::records::{deletion_tables, own_records, unknown_record};
use super::tuning::settings;
use super::{Merger, Published, Shared};
use crate::clock::TimeMark;
use crate::metrics;
use crate::storage::batch::{Change, Space};
use crate::storage::derivation::{self, Derivations};
use crate::storage::engine::directory::io_error;
use crate::storage::engine::layout::{full_key, range_record, time_record};
use crate::storage::engine::{DeletionTables, Order, add_table, remove_tables, rest_of_range};
use crate::storage::key::KeyRange;
use crate::storage::options::{Durability, FaultPoint, Options};
use crate::storage::{CommitSeq, Error, Opening, Result};

/// Time between tries to open a database again whose bucket was out of reach.
const REOPENING_INTERVAL: Duration = Duration::from_millis(500);

/// Bytes for which there must be room when a failure of unknown cause is not a full disk's: of an object that was not put.
const FULL_PROBE_BYTES: u64 = 16 * 1024 * 1024;

/// Periods of `durability = periodic` after which a commit has to be in the log before another is taken. SlateDB puts each period by itself.
const LATE_PERIODS: u32 = 2;

/// Keys that one step of a range deletion removes.
const RANGE_STEP_KEYS: usize = 4096;

pub(super) enum Command {
    Commit(Request),
    Flush(oneshot::Sender<Result<()>>),
    /// Makes a database that shows a range of this one's keys as they are in the committer's turn.
    Clone {
        path: String,
        range: (Bound<Bytes>, Bound<Bytes>),
        answer: oneshot::Sender<Result<()>>,
    },
    Close(oneshot::Sender<Result<()>>),
}

/// Fragments from this length on have the committer look at their row, so that it stays within its limit.
const LOOKED_AT_BYTES_MIN: usize = 64 * 1024;

pub(super) struct Committer {
    pub(super) home: Arc<Home>,
    pub(super) options: Options,
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) shared: Arc<Shared>,
    /// `None` while it is opened again.
    pub(super) database: Option<Db>,
    /// A write failed: it serves reads and is not written to any more.
    pub(super) failed: bool,
    /// Why nothing may be written here any more.
    pub(super) ended: Option<Error>,
    pub(super) seq: CommitSeq,
    /// With `durability = periodic` a commit that may not be in the log yet, though those before it are, and when it was made.
    pub(super) not_put: Option<(CommitSeq, Duration)>,
    /// What the last group recorded of time; `None`: nothing.
    pub(super) time: Option<TimeMark>,
    pub(super) deletion_tables: DeletionTables,
    pub(super) next_range: u64,
}

impl Committer {
    pub(super) async fn open(&mut self) -> Result<()> {
        let home = Arc::clone(&self.home);
        let failed = |error: slatedb::Error| home.failure(&error);
        let is_start = self.shared.openings.load(Ordering::Acquire) == 0;
        // Boxed, as they take kilobytes and are handed on.
        Box::pin(super::opening::prepare(&self.home, &self.options, is_start)).await?;
        let builder = Db::builder(self.home.database.as_ref(), self.home.objects())
            .with_settings(settings(&self.options, self.home.is_remote()))
            .with_system_clock(Arc::clone(&self.home.ticks) as _)
            .with_merge_operator(Arc::new(Merger));
        let builder = match self.home.blocks() {
            Some((blocks, number)) => builder.with_db_cache(blocks, number),
            None => builder.with_db_cache_disabled(),
        };
        let database = super::opening::guard(&self.home, Box::pin(builder.build())).await?;
        let view = database.snapshot().map_err(failed)?;
        self.seq = self.seq.max(CommitSeq(view.seq()));
        self.deletion_tables = deletion_tables(&*view).await.map_err(failed)?;
        let own = own_records(&*view)
            .await
            .map_err(failed)?
            .ok_or_else(|| unknown_record(&home))?;
        self.time = own.time.or(self.time);
        self.options.found_time(self.time);
        self.database = Some(database);
        self.not_put = None;
        self.home.mark_used().await?;
        self.shared.cache.clear(self.seq);
        self.shared.openings.fetch_add(1, Ordering::AcqRel);
        self.publish()?;
        for (number, space, range) in own.unfinished {
            self.next_range = self.next_range.max(number + 1);
            self.delete_range(number, space, range).await?;
        }
        Ok(())
    }

    /// Works until it is closed or every handle of the store is gone.
    pub(super) async fn run(mut self) {
        let mut closing = None;
        while closing.is_none() {
            let Some(first) = self.next_command().await else { break };
            let mut requests = Vec::new();
            let (mut bytes, mut flush, mut clone) = (0_usize, None, None);
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
                    Command::Clone { path, range, answer } => clone = Some((path, range, answer)),
                    Command::Close(answer) => closing = Some(answer),
                }
            }
            self.commit_group(requests).await;
            if let Some(answer) = flush {
                drop(answer.send(self.put(FlushType::MemTable).await));
            }
            if let Some((path, range, answer)) = clone {
                drop(answer.send(self.clone_range(&path, range).await));
            }
        }
        // The log has everything, or gets it now; tables are written from it when the store is opened again.
        let closed = if self.failed || self.home.medium.lost().is_some() {
            Ok(())
        } else {
            self.put(FlushType::Wal).await
        };
        drop(self.shared.published.swap(None));
        self.close_database().await;
        self.home.medium.end_note(&self.home.database);
        self.shared.cache.clear(CommitSeq(u64::MAX));
        // The directory's lock goes with it: the caller that waits for the answer may open the store at once.
        self.shared.home.store(None);
        self.home.end().await;
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

    /// The next command. Meanwhile it opens a database again whose bucket was out of reach, without a request.
    async fn next_command(&mut self) -> Option<Command> {
        while self.failed && self.ended.is_none() && self.home.is_remote() {
            if let Ok(command) = tokio::time::timeout(REOPENING_INTERVAL, self.commands.recv()).await {
                return command;
            }
            if let Err(error) = self.recover().await {
                tracing::debug!(%error, location = %self.home.location, "the bucket is out of reach");
            }
        }
        self.commands.recv().await
    }

    async fn commit_group(&mut self, requests: Vec<Request>) {
        if requests.is_empty() {
            return;
        }
        if let Err(error) = self.recover().await {
            return answer_all(requests, &Err(error));
        }
        let requests = refuse_of_other_openings(requests, self.shared.opening());
        let derivations = self.shared.derivations.load_full();
        let current = match self.current(&requests, &derivations).await {
            Ok(current) => current,
            Err(error) => return answer_all(requests, &Err(error)),
        };
        if let Some(watch) = self.shared.sweeps.watch() {
            watch.note(requests.iter().flat_map(|request| &request.changes));
        }
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
        if written.is_ok() {
            metrics::COMMITS.add(refusals.iter().filter(|refusal| refusal.is_none()).count() as u64);
        }
        for (number, space, range) in ranges {
            if written.is_ok() {
                written = self.delete_range(number, space, range).await.map(|()| self.seq);
            }
        }
        for (request, refusal) in requests.into_iter().zip(refusals) {
            request.answer(refusal.map_or_else(|| written.clone(), Err));
        }
    }

    /// Reads the values that changes of the group depend on: of clean-up, of rows from which something follows, and of rows that have
    /// a limit and get a large fragment, which costs more than the look. Other writes read nothing.
    async fn current(&self, requests: &[Request], derivations: &Derivations) -> Result<Current> {
        let mut current = Current::default();
        for change in requests.iter().flat_map(|request| &request.changes) {
            let (space, key) = match change {
                Change::Purge { key, .. } => (Space::Rows, key),
                Change::Forget { key, .. } => (Space::Deletions, key),
                Change::Put { space, key, .. } | Change::Delete { space, key } | Change::Merge { space, key, .. }
                    if is_derived(*space, key, derivations) =>
                {
                    (*space, key)
                }
                Change::Reindex { key, .. } if is_derived(Space::Rows, key, derivations) => (Space::Rows, key),
                Change::Merge {
                    space: Space::Rows,
                    key,
                    value,
                } if value.len() >= LOOKED_AT_BYTES_MIN => (Space::Rows, key),
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
        // Taken after the group's batches were handed over, so no timestamp in them is above it.
        let time = self.options.time_mark(self.time);
        if let Some(time) = time {
            let (key, value) = time_record(time);
            batch.put(key, value);
        }
        if let Err(error) = self.write_batch(batch).await {
            self.fail(&error).await;
            return Err(error);
        }
        self.time = time;
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
        self.keep_up().await?;
        let database = self.database.as_ref().ok_or(Error::Reopening)?;
        let written = database.write(batch).await.map_err(|error| self.home.failure(&error))?;
        self.seq = self.seq.max(CommitSeq(written.seqnum()));
        match self.options.durability {
            Durability::Group => self.put(FlushType::Wal).await,
            Durability::Periodic(_) => {
                self.not_put.get_or_insert((self.seq, self.home.ticks.monotonic()));
                Ok(())
            }
            Durability::Os => Ok(()),
        }
    }

    /// With `durability = periodic`: waits for the log if it is late, so that what a kill or a power cut may take stays within a few
    /// periods, however slow the medium is.
    async fn keep_up(&mut self) -> Result<()> {
        let (Durability::Periodic(every), Some((seq, since))) = (self.options.durability, self.not_put) else {
            return Ok(());
        };
        if self.home.ticks.monotonic().saturating_sub(since) < every.saturating_mul(LATE_PERIODS) {
            return Ok(());
        }
        let durable = self
            .database
            .as_ref()
            .map(|database| database.subscribe().borrow().durable_seq);
        if durable.is_none_or(|durable| durable < seq.0) {
            self.put(FlushType::Wal).await?;
        }
        self.not_put = None;
        Ok(())
    }

    /// Clones a range of keys. The clone has no part in this database's log, so what is in memory is put first, and the manifest has to say
    /// that the log has nothing more: it names the log's last object as of when the tables were cut off, and tables are cut off only where
    /// something is in memory. So a change of no effect comes first, then the log, then the tables.
    async fn clone_range(&mut self, path: &str, range: (Bound<Bytes>, Bound<Bytes>)) -> Result<()> {
        self.recover().await?;
        let (no_record, _) = range_record(self.next_range, Space::Rows, &KeyRange::all());
        let nothing = Group {
            own: vec![(no_record, None)],
            ..Group::default()
        };
        self.write(nothing).await?;
        self.put(FlushType::Wal).await?;
        self.put(FlushType::MemTable).await?;
        self.home.clone_database(path, range).await
    }

    async fn put(&self, flush_type: FlushType) -> Result<()> {
        let database = self.database.as_ref().ok_or(Error::Reopening)?;
        let flush = async {
            let flushed = database.flush_with_options(FlushOptions { flush_type }).await;
            flushed.map_err(|error| self.home.failure(&error))
        };
        self.home.within(self.home.patience().put_max, flush).await
    }

    /// Ends the database without writing what it has in memory: either that was written before, or it was answered as failed.
    pub(super) async fn close_database(&mut self) {
        if let Some(database) = self.database.take() {
            let without_flush = CloseOptions::default().with_flush_type(None);
            // Its tasks may be busy with an object store that fails.
            match tokio::time::timeout(
                self.home.patience().close_max,
                database.close_with_options(without_flush),
            )
            .await
            {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(%error, location = %self.home.location, "closing a database"),
                Err(_) => tracing::warn!(location = %self.home.location, "a database did not close in time"),
            }
        }
    }

    fn publish(&self) -> Result<()> {
        let Some(database) = &self.database else { return Ok(()) };
        let view = database.snapshot().map_err(|error| self.home.failure(&error))?;
        self.shared.published.store(Some(Arc::new(Published {
            database: database.clone(),
            view,
            home: Arc::clone(&self.home),
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

    async fn fail(&mut self, error: &Error) {
        tracing::error!(%error, location = %self.home.location, "the store takes no writes");
        self.failed = true;
        if self.is_passing(error) || self.is_full(error) {
            return;
        }
        self.ended = Some(match error {
            Error::TakenOver { .. } => error.clone(),
            _ => Error::WritesRefused {
                directory: PathBuf::from(self.home.location.as_ref()),
                cause: Arc::new(error.clone()),
            },
        });
        let readable = match self.shared.published.load_full() {
            Some(published) => published.get(Space::Catalog, b"").await.map(drop),
            None => Err(error.clone()),
        };
        if let Err(error) = readable {
            tracing::error!(%error, location = %self.home.location, "the store cannot be read");
            self.shared.lost.store(Some(Arc::new(error)));
        }
    }

    /// Whether a failure is a bucket's that is out of reach; all others of a bucket are judged when it is opened again.
    fn is_passing(&self, error: &Error) -> bool {
        self.home.is_remote() && !matches!(error, Error::TakenOver { .. } | Error::Corrupt { .. })
    }

    /// Whether a failure is a full disk: it says so itself, or a probe does.
    fn is_full(&self, error: &Error) -> bool {
        let probed = || {
            self.home
                .directory
                .as_ref()
                .and_then(|directory| directory.probe(FULL_PROBE_BYTES).err())
        };
        let may_be = || self.home.medium.is_full() || probed().is_some_and(|error| error.is_disk_full());
        error.is_disk_full() || (matches!(error, Error::Engine { .. }) && may_be())
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
        self.home.probe().await?;
        drop(self.shared.published.swap(None));
        self.close_database().await;
        let home = Arc::clone(&self.home);
        if let Err(error) = home.within(home.patience().open_max, self.open()).await {
            self.fail(&error).await;
            return Err(error);
        }
        self.failed = false;
        tracing::info!(location = %self.home.location, "the store takes writes again");
        Ok(())
    }
}

impl Request {
    fn answer(self, answer: Result<CommitSeq>) {
        drop(self.room);
        // The caller may have gone away; the batch took effect nevertheless.
        drop(self.answer.send(answer));
    }
}

/// Answers those that were judged by what an opening before this one showed; the others.
fn refuse_of_other_openings(mut requests: Vec<Request>, now: Opening) -> Vec<Request> {
    let is_of_other = |request: &mut Request| request.only_in.is_some_and(|opening| opening != now);
    answer_all(requests.extract_if(.., is_of_other), &Err(Error::OpenedAgain));
    requests
}

fn answer_all(requests: impl IntoIterator<Item = Request>, answer: &Result<CommitSeq>) {
    for request in requests {
        request.answer(answer.clone());
    }
}
