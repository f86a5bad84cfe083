//! The task that writes: it takes the queue as one write batch, puts it, publishes and answers. After a failure it
//! reopens the database.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use slatedb::config::{FlushOptions, FlushType};
use slatedb::{Db, DbStatus, WriteBatch};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::flight::{Flight, PutEvent, Written};
use super::group::{Current, Fold, Group, Request, derive, is_derived, stage};
use super::home::Home;
use super::ranges::{RangeJobs, Recorded, Step};
use super::records::{deletion_tables, own_records, unknown_record};
use super::tuning::{LOG_OBJECTS_MAX, scan_options, settings};
use super::unlogged::Unlogged;
use super::{Merger, Published, Shared};
use crate::storage::batch::{Change, Space};
use crate::storage::change_log::Logging;
use crate::storage::derivation::Derivations;
use crate::storage::engine::layout::{full_key, origin_record, range_record};
use crate::storage::engine::options::{Durability, Options};
use crate::storage::engine::{DeletionTables, Order, add_table, remove_tables, table_of};
use crate::storage::faults::FaultPoint;
use crate::storage::feed::Drawn;
use crate::storage::key::KeyRange;
use crate::storage::{CommitSeq, Deletions, Error, Opening, Result};
use helenus_base::clock::TimeMark;
use helenus_base::metrics;

/// Time between attempts to reopen a database whose bucket was out of reach, or whose disk was full.
const REOPENING_INTERVAL: Duration = Duration::from_millis(500);

/// With `durability = periodic`, a commit must be in the log after this many periods before another one is taken.
/// SlateDB puts the log each period by itself.
const LATE_PERIODS: u32 = 2;

pub(super) enum Command {
    Commit(Request),
    /// Makes everything written durable, and writes tables if that is asked for.
    Flush(FlushType, oneshot::Sender<Result<()>>),
    /// Makes a database that shows a range of this one's keys, as of the committer's state when it executes the
    /// command.
    Clone {
        path: String,
        range: (Bound<Bytes>, Bound<Bytes>),
        answer: oneshot::Sender<Result<()>>,
    },
    Close(oneshot::Sender<Result<()>>),
}

/// From this length on a partial row makes the committer read the stored row, so that the row stays within its limit.
const READ_FIRST_BYTES_MIN: usize = 64 * 1024;

pub(super) struct Committer {
    pub(super) home: Arc<Home>,
    pub(super) options: Options,
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) shared: Arc<Shared>,
    /// `None` while the database is reopened.
    pub(super) database: Option<Db>,
    /// A write failed: the store serves reads and takes no more writes.
    pub(super) failed: bool,
    /// Why nothing may be written here any more.
    pub(super) ended: Option<Error>,
    /// The number of the newest written state. It is the committer's own: it rises with each group and each opening, and never
    /// repeats. SlateDB's numbers do repeat: after groups are lost, a reopened database gives theirs again.
    pub(super) seq: CommitSeq,
    /// SlateDB's number of the newest write to the open database.
    pub(super) engine_seq: u64,
    /// With `durability = periodic`: SlateDB's number of the oldest commit that may not be in the log yet, and when it was made.
    pub(super) not_put: Option<(u64, Duration)>,
    /// With relaxed durability: acknowledged groups that the log may lack. A reopened database gets them again.
    pub(super) unlogged: Unlogged,
    /// The time that the last group recorded. `None` means that it recorded none.
    pub(super) time: Option<TimeMark>,
    pub(super) deletion_tables: DeletionTables,
    pub(super) next_range: u64,
    pub(super) ranges: RangeJobs,
    /// The positions in the change feed that are not published yet.
    pub(super) drawn: Drawn,
    /// Groups that are written and not durable yet.
    pub(super) flight: Flight,
    /// Objects that were put in the log since tables were last written.
    pub(super) log_objects: u32,
    /// The task that writes tables. `None` means that there was none.
    pub(super) tables: Option<JoinHandle<()>>,
    /// The log that all databases share wants tables to be written.
    pub(super) tables_wanted: Arc<Notify>,
}

/// The committer's next task.
enum Next {
    /// Begin to put the log.
    BeginPut,
    /// The put of the log has ended, or takes too long.
    Put(PutEvent),
    Command(Command),
    /// Write tables.
    Tables,
    /// Write a step of the deletion of a range.
    RangeStep(Result<Step>),
    /// SlateDB has closed the database.
    Closed,
    /// Every handle of the store has been dropped.
    Over,
}

/// Waits until SlateDB has closed a database; for ever without one.
async fn closed(status: Option<watch::Receiver<DbStatus>>) {
    match status {
        // An error means that the database was dropped.
        Some(mut status) => drop(status.wait_for(|status| status.close_reason.is_some()).await),
        None => std::future::pending().await,
    }
}

impl Committer {
    pub(super) async fn open(&mut self) -> Result<()> {
        let home = Arc::clone(&self.home);
        let failed = |error: slatedb::Error| home.failure(&error);
        let is_start = self.shared.openings.load(Ordering::Acquire) == 0;
        // Boxed, as they take kilobytes and are handed on.
        let blocks = self.home.blocks();
        Box::pin(super::opening::prepare(
            &self.home,
            &self.options,
            is_start,
            blocks.as_ref(),
        ))
        .await?;
        let builder = Db::builder(self.home.database.as_ref(), self.home.objects())
            .with_settings(settings(&self.options, self.home.is_remote(), self.home.log.is_some()))
            .with_system_clock(self.home.pace())
            .with_merge_operator(Arc::new(Merger));
        let builder = match blocks {
            Some((blocks, number)) => builder.with_db_cache(blocks, number),
            None => builder.with_db_cache_disabled(),
        };
        let builder = match &self.home.log {
            Some(log) => builder.with_wal_writer(Box::new(log.writer_init(&self.home.database, &self.tables_wanted))),
            None => builder,
        };
        let database = super::opening::guard(&self.home, Box::pin(builder.build())).await?;
        self.not_put = None;
        self.database = Some(database.clone());
        self.write_unlogged().await?;
        let view = database.snapshot().map_err(failed)?;
        self.engine_seq = view.seq();
        self.seq = self.seq.next();
        let reading = scan_options(self.home.is_remote(), 0);
        let read = futures::try_join!(deletion_tables(&*view, &reading), own_records(&*view, &reading));
        let (deletion_tables, own) = read.map_err(failed)?;
        self.deletion_tables = deletion_tables;
        let own = own.ok_or_else(|| unknown_record(&home))?;
        home.check_origin(own.origin)?;
        self.time = own.time.or(self.time);
        self.options.times().found(self.time);
        // Log objects that the opening read stay in the log until tables are written.
        self.log_objects = LOG_OBJECTS_MAX;
        self.home.mark_used().await?;
        self.shared.cache.clear(self.seq);
        self.shared.openings.fetch_add(1, Ordering::AcqRel);
        self.shared.published.store(Some(Arc::new(self.view()?)));
        self.drawn.all_published();
        for (number, ..) in &own.unfinished {
            self.next_range = self.next_range.max(number + 1);
        }
        self.ranges.resume(own.unfinished);
        Ok(())
    }

    /// Runs until it is closed or every handle of the store has been dropped.
    pub(super) async fn run(mut self) {
        let mut closing = None;
        while closing.is_none() {
            match self.next().await {
                Next::BeginPut => self.begin_put(),
                Next::Put(PutEvent::Ended(result)) => drop(self.end_put(result).await),
                Next::Put(PutEvent::Late(error)) => self.stall(&error),
                Next::Command(first) => closing = self.take(first).await,
                Next::Tables => self.begin_tables(),
                Next::RangeStep(step) => self.step_range(step).await,
                Next::Closed => self.closed_by_itself().await,
                Next::Over => break,
            }
        }
        self.ranges.end(&Error::Closed);
        // A failure was already answered.
        drop(self.land().await);
        // The log has everything, or gets it now.
        let closed = self.put_last().await;
        drop(self.flight.lose());
        if closed.is_ok() && !self.failed && !self.is_stalled() {
            self.empty_log().await;
        }
        drop(self.shared.published.swap(None));
        let is_closed = self.close_database().await;
        let is_clean =
            is_closed && closed.is_ok() && !self.failed && self.home.medium.close_put_record(&self.home.database);
        self.home.medium.end_put_record(&self.home.database);
        self.home.durable.close(is_clean);
        self.shared.cache.clear(CommitSeq(u64::MAX));
        // This releases the directory's lock: the caller that waits for the answer may open the store at once.
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

    /// Takes a command and those queued after it. Returns the channel to answer if the store is to be closed.
    async fn take(&mut self, first: Command) -> Option<oneshot::Sender<Result<()>>> {
        let mut requests = Vec::new();
        let (mut bytes, mut flush, mut clone, mut closing) = (0_usize, None, None, None);
        if self.home.is_remote() && matches!(first, Command::Commit(_)) {
            // The runtime wakes this task before the other clients that were answered with this one have sent again.
            tokio::task::yield_now().await;
        }
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
                Command::Flush(flush_type, answer) => flush = Some((flush_type, answer)),
                Command::Clone { path, range, answer } => clone = Some((path, range, answer)),
                Command::Close(answer) => closing = Some(answer),
            }
        }
        self.commit_group(requests).await;
        if let Some((flush_type, answer)) = flush {
            // Groups that did not become durable were answered as failed.
            drop(self.land().await);
            drop(answer.send(self.put(flush_type).await));
        }
        if let Some((path, range, answer)) = clone {
            drop(answer.send(self.clone_range(&path, range).await));
        }
        closing
    }

    /// The next task. While it waits, it reopens a database whose bucket was unreachable or whose disk was full, without a
    /// request: reads alone must not wait for a write.
    async fn next(&mut self) -> Next {
        while self.failed && self.ended.is_none() {
            if let Ok(command) = tokio::time::timeout(REOPENING_INTERVAL, self.commands.recv()).await {
                return command.map_or(Next::Over, Next::Command);
            }
            if let Err(error) = self.recover().await {
                tracing::debug!(%error, location = %self.home.location, "the medium still fails");
            }
        }
        let wait = self.flight.wait(self.home.ticks.monotonic());
        if wait.is_some_and(|wait| wait.is_zero()) {
            return Next::BeginPut;
        }
        let is_put = self.flight.is_put();
        // While it is stalled, commands are refused.
        let has_room = self.flight.has_room() || self.is_stalled();
        // A put that is due or under way reports the same failure.
        let is_watched = !self.failed && !is_put && wait.is_none();
        let watched = self.database.as_ref().filter(|_| is_watched).map(Db::subscribe);
        self.begin_range_step();
        tokio::select! {
            biased;
            event = self.flight.put_event(), if is_put => Next::Put(event),
            step = self.ranges.read(), if self.ranges.is_reading() => Next::RangeStep(step),
            command = self.commands.recv(), if has_room => command.map_or(Next::Over, Next::Command),
            () = tokio::time::sleep(wait.unwrap_or_default()), if wait.is_some() => Next::BeginPut,
            () = self.tables_wanted.notified() => Next::Tables,
            () = closed(watched) => Next::Closed,
            else => Next::Over,
        }
    }

    /// Answers the close of a database whose work in the background failed. Without a write nothing else would notice
    /// it, and reads would fail until one came.
    async fn closed_by_itself(&mut self) {
        let read = match self.shared.published.load_full() {
            Some(published) => published.get(Space::Catalog, b"").await.map(drop),
            None => Ok(()),
        };
        let error = read.err().unwrap_or_else(|| Error::Engine {
            location: self.home.location.to_string(),
            what: "the database closed by itself".to_owned(),
        });
        self.fail(&error).await;
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
            let changes = requests.iter().flat_map(|request| &request.changes);
            watch.record(changes.filter_map(Change::written_row));
        }
        let mut requests = requests;
        let changes = requests.iter_mut().flat_map(|request| &mut request.changes);
        let stamped = self.drawn.stamp(changes, &derivations);
        let (mut group, refusals) = stage(&requests, &current);
        group.position = stamped.position;
        derive(&mut group, &requests, &refusals, &current, &derivations);
        if let Some(position) = stamped.position.filter(|_| stamped.is_logged) {
            let taken = requests.iter().zip(&refusals).filter(|(_, refusal)| refusal.is_none());
            let changes = taken.flat_map(|(request, _)| &request.changes);
            let mut logging = Logging::of(changes, &derivations);
            if let Err(error) = self.find_before(&mut logging, &current).await {
                return answer_all(requests, &Err(error));
            }
            group.log(logging.entries(position));
        }
        let ranges = self.record_ranges(&mut group, &requests, &refusals);
        let batches: Vec<_> = requests.into_iter().zip(refusals).collect();
        // A range is deleted in steps, and its record lets the next opening finish them. So the record must be durable
        // first.
        if ranges.iter().all(Vec::is_empty) {
            return self.send_off(group, batches).await;
        }
        let written = self.write_through(group).await;
        // Late records are durable before the next group is, so their ranges are deleted then.
        let is_late = self.is_stalled() && !self.flight.is_empty();
        let mut answered = Vec::new();
        for (batch, ranges) in batches.into_iter().zip(ranges) {
            if written.is_ok() && !ranges.is_empty() {
                self.ranges.add(ranges, Some(batch.0));
                continue;
            }
            if is_late && !ranges.is_empty() {
                self.ranges.add(ranges, None);
                self.ranges.wrote(self.seq);
            }
            answered.push(batch);
        }
        answer_batches(answered, &written);
    }

    /// Reads the values on which changes of the group depend. These are values of purges, rows from which index entries
    /// or views derive, and rows that have a limit and get a large partial row (which costs more than the read). Other
    /// writes read nothing.
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
                } if value.len() >= READ_FIRST_BYTES_MIN => (Space::Rows, key),
                _ => continue,
            };
            let full = full_key(space, key);
            if current.contains_key(&full) {
                continue;
            }
            let known = match space {
                Space::Rows if !self.flight.changes(&full) => self.shared.cache.peek(key),
                _ => None,
            };
            let value = match known {
                Some(known) => known,
                None => self.newest()?.get(space, key).await?,
            };
            if let Some(value) = value {
                current.insert(full, value);
            }
        }
        Ok(current)
    }

    /// Finds the rows whose changes are logged as they were before, and the deletions that cover them.
    async fn find_before(&self, logging: &mut Logging<'_>, current: &Current) -> Result<()> {
        for key in logging.row_keys().collect::<Vec<_>>() {
            logging.row_is(key, current.get(&full_key(Space::Rows, key)).cloned());
        }
        for prefix in logging.prefixes().collect::<Vec<_>>() {
            let is_deleted = table_of(prefix).is_some_and(|table| self.deletion_tables.contains(&table));
            if !is_deleted || logging.knows(prefix) {
                continue;
            }
            let (mut deletions, mut outcome) = (Deletions::default(), Ok(()));
            let range = KeyRange::prefix(prefix);
            let visit = |key: &[u8], value: &[u8]| {
                outcome = deletions.add_record(prefix.len(), key, value);
                if outcome.is_ok() {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            };
            let newest = self.newest()?;
            newest.scan(Space::Deletions, &range, Order::Forward, visit).await?;
            outcome?;
            logging.deletions_are(prefix, deletions);
        }
        Ok(())
    }

    /// Adds the records of the ranges that batches of the group delete. Returns those ranges, in the order of the
    /// batches; a refused batch has none.
    fn record_ranges(
        &mut self,
        group: &mut Group,
        requests: &[Request],
        refusals: &[Option<Error>],
    ) -> Vec<Vec<Recorded>> {
        let mut recorded = Vec::with_capacity(requests.len());
        for (request, refusal) in requests.iter().zip(refusals) {
            let mut ranges = Vec::new();
            for change in request.changes.iter().filter(|_| refusal.is_none()) {
                if let Change::DeleteRange { space, range } = change {
                    let (key, value) = range_record(self.next_range, *space, range);
                    group.own.push((key, Some(value)));
                    ranges.push((self.next_range, *space, range.clone()));
                    self.next_range += 1;
                }
            }
            recorded.push(ranges);
        }
        recorded
    }

    /// Begins to read the next step of a deletion, if one may be made now.
    fn begin_range_step(&mut self) {
        if self.ranges.is_empty() || self.failed || self.is_stalled() || !self.flight.has_room() {
            return;
        }
        if let Some(published) = self.shared.published.load_full() {
            self.ranges.begin(published, self.shared.derivations.load_full());
        }
    }

    /// Writes the step that was read.
    async fn step_range(&mut self, step: Result<Step>) {
        let step = match step {
            Ok(step) => step,
            Err(error) => {
                tracing::warn!(%error, location = %self.home.location, "a range is not removed; the next opening goes on");
                return self.ranges.give_up(error);
            }
        };
        let Some(removal) = self.ranges.take(step) else { return };
        if let Some((Space::Deletions, range)) = &removal.emptied {
            remove_tables(&mut self.deletion_tables, range);
        }
        let batches = removal.batch.map(|batch| (batch, None));
        self.send_off(removal.group, batches.into_iter().collect()).await;
        self.ranges.wrote(self.seq);
    }

    /// The newest written state, durable or not.
    fn newest(&self) -> Result<Arc<Published>> {
        let newest = self.flight.newest().cloned();
        newest
            .or_else(|| self.shared.published.load_full())
            .ok_or(Error::Reopening)
    }

    /// Writes a group to the database's memory.
    pub(super) async fn write(&mut self, group: Arc<Group>) -> Result<Written> {
        if group.folds.is_empty() && group.own.is_empty() {
            return Ok(Written::new(group, self.newest()?));
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
        let time = self.options.times().mark(self.time);
        let (key, value) = origin_record(&self.home.origin(), time);
        batch.put(key, value);
        let written = match self.write_batch(batch).await {
            Ok(()) => {
                self.time = time;
                self.deletion_tables = deletion_tables;
                self.view()
            }
            Err(error) => Err(error),
        };
        match written {
            Ok(view) => Ok(Written::new(group, Arc::new(view))),
            Err(error) if self.is_stalled() => Err(error),
            Err(error) => {
                // The groups before it may still become durable.
                drop(self.land().await);
                self.fail(&error).await;
                Err(error)
            }
        }
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
        self.bound_unlogged().await?;
        let database = self.database.as_ref().ok_or(Error::Reopening)?;
        let written = database.write(batch).await.map_err(|error| self.home.failure(&error))?;
        self.engine_seq = written.seqnum();
        self.seq = self.seq.next();
        if let Durability::Periodic(_) = self.options.durability {
            self.not_put
                .get_or_insert((self.engine_seq, self.home.ticks.monotonic()));
        }
        Ok(())
    }

    /// With `durability = periodic`: waits for the log if it is late. So a kill or a power cut loses at most the writes
    /// of a few periods, however slow the medium is.
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
        if durable.is_none_or(|durable| durable < seq) {
            self.put_first().await?;
        }
        self.not_put = None;
        Ok(())
    }

    /// Clones a range of keys. The clone does not share this database's log, so memory is flushed first, and the
    /// manifest must say that the log has nothing more. The manifest names the log's last object at the time when the
    /// tables were separated, and tables are separated only if memory holds something. So a change without effect is
    /// written first, then the log, then the tables.
    async fn clone_range(&mut self, path: &str, range: (Bound<Bytes>, Bound<Bytes>)) -> Result<()> {
        self.recover().await?;
        self.land().await?;
        let (no_record, _) = range_record(self.next_range, Space::Rows, &KeyRange::all());
        let nothing = Group {
            own: vec![(no_record, None)],
            ..Group::default()
        };
        self.write_through(nothing).await?;
        self.put(FlushType::Wal).await?;
        self.put(FlushType::MemTable).await?;
        self.home.clone_database(path, range).await
    }

    pub(super) async fn put(&self, flush_type: FlushType) -> Result<()> {
        if let Some(stalled) = self.stalled() {
            return Err(stalled);
        }
        let database = self.database.as_ref().ok_or(Error::Reopening)?;
        let longest = self.home.patience().put_max;
        let logged = self.home.logged().filter(|_| matches!(flush_type, FlushType::MemTable));
        self.home.within(longest, put(&self.home, database, flush_type)).await?;
        self.home.tables_have(logged);
        Ok(())
    }

    /// The current view of the database.
    fn view(&self) -> Result<Published> {
        let database = self.database.as_ref().ok_or(Error::Reopening)?;
        let view = database.snapshot().map_err(|error| self.home.failure(&error))?;
        Ok(Published {
            database: database.clone(),
            view,
            home: Arc::clone(&self.home),
            seq: self.seq,
            deletion_tables: DeletionTables::clone(&self.deletion_tables),
        })
    }
}

impl Request {
    pub(super) fn answer(self, answer: Result<CommitSeq>) {
        drop(self.queue_space);
        // The caller may have been dropped; the batch took effect nevertheless.
        drop(self.answer.send(answer));
    }
}

/// Refuses the requests whose conditions were checked under an earlier opening, and returns the others.
fn refuse_of_other_openings(mut requests: Vec<Request>, now: Opening) -> Vec<Request> {
    let is_of_other = |request: &mut Request| request.only_in.is_some_and(|opening| opening != now);
    answer_all(requests.extract_if(.., is_of_other), &Err(Error::OpenedAgain));
    requests
}

/// Makes SlateDB put its memory.
pub(super) async fn put(home: &Home, database: &Db, flush_type: FlushType) -> Result<()> {
    let flushed = database.flush_with_options(FlushOptions { flush_type }).await;
    flushed.map_err(|error| home.failure(&error))
}

/// Answers batches of a group; refused ones get their refusal instead of the group's result.
pub(super) fn answer_batches(batches: Vec<(Request, Option<Error>)>, answer: &Result<CommitSeq>) {
    if answer.is_ok() {
        metrics::COMMITS.add(batches.iter().filter(|(_, refusal)| refusal.is_none()).count() as u64);
    }
    for (request, refusal) in batches {
        request.answer(refusal.map_or_else(|| answer.clone(), Err));
    }
}

fn answer_all(requests: impl IntoIterator<Item = Request>, answer: &Result<CommitSeq>) {
    for request in requests {
        request.answer(answer.clone());
    }
}
