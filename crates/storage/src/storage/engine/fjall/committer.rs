//! The committer of the `file:` engine: the one thread that writes.
//!
//! ```text
//! commit() ─► queue (bounded in entries and bytes) ─► take all that queued ─► merge with stored rows ─► one write batch,
//!   one sync ─► acknowledged file ─► row cache ─► publish the snapshot ─► answer all
//! ```
//!
//! The committer never waits to fill a group: a group is everything that queued while the group before it was written.
//! fjall shows a batch to readers only after its sync, and readers use the published snapshot. So no reader sees a
//! write that could still be lost.
//!
//! **After a failed write** the engine may hold part of the group in its log, and it refuses further writes. So every
//! batch of the group is answered with the error, and the committer writes nothing more to this engine. Reads continue.
//!
//! If the disk was full, the next commit first probes the disk. Once the probe succeeds, the engine is reopened: this
//! rewrites the end of its log and replays it. Then the commit continues. After any other failure nothing is written
//! until the server restarts: after a failed sync the disk cannot be trusted.
//!
//! The engine does not report why a background write failed. Such a failure counts as a full disk only if a probe of
//! the size of a table fails, or if free space was too small during the work (`free_space`).
//!
//! If the engine cannot be reopened, nothing can be read either. The store reports this by [`Shared::lost`], and the
//! server ends.

mod free_space;
mod health;
mod logging;
mod maintenance;
mod opening;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use bytes::Bytes;
use fjall::PersistMode;

use super::super::acknowledged::{Acknowledged, ChainEnd, Link};
use super::super::directory::{Directory, full_or};
use super::super::layout::{
    chain_key, chain_record, full_range, range_record, size_record, with_full_key, witnessed_key, witnessed_record,
};
use super::super::{
    DeletionTables, Order, RANGE_STEP_BYTES, RANGE_STEP_KEYS_MAX, add_table, is_counted, remove_tables, rest_of_range,
    table_of,
};
use super::group::{Group, Placed, in_order, placed, runs};
use super::opening::Provisional;
use super::request::{Command, Request, Then, answer_all, has_ranges, refuse_of_other_openings, release_queue_space};
use super::{Engine, Published, Shared, guard};
use crate::storage::absence::Absence;
use crate::storage::batch::{Change, Space};
use crate::storage::change_log::Logging;
use crate::storage::derivation::Derivations;
use crate::storage::engine::options::{Durability, Options};
use crate::storage::faults::FaultPoint;
use crate::storage::feed::{Drawn, Stamped};
use crate::storage::key::{KeyRange, TableId};
use crate::storage::sizes::{Sizes, TableSize};
use crate::storage::{CommitSeq, Committed, Error, Result};
use helenus_base::clock::{Clock, TimeMark};
use helenus_base::invariant::{Broken, Invariant};
use helenus_base::metrics;
use helenus_base::mutant::{self, Mutant};

/// The committer waits when this many memtables wait for their flush. At four, fjall itself waits, and does not notice
/// a failure meanwhile.
const SEALED_MEMTABLES_MAX: usize = 3;

const POLL: Duration = Duration::from_millis(1);

/// Most polls of a stalled engine before it counts as failed.
const STALL_POLLS_MAX: u32 = 120_000;

/// Ranges to delete, by the number of their record.
type Ranges = VecDeque<(u64, Space, KeyRange)>;

/// A range deletion whose keys are being removed, step by step.
struct RangeJob {
    ranges: Ranges,
    /// `None` means the deletion was interrupted and continues after an opening.
    request: Option<Request>,
}

/// The original files of an opening that is not accepted yet.
struct Found {
    provisional: Provisional,
    /// Range deletions that an earlier process did not finish, by their record's number.
    unfinished: Ranges,
}

/// Whether the engine takes writes.
enum Health {
    Well,
    /// Writes failed; they may succeed again.
    Full,
    /// Writes failed permanently; none is attempted until the server restarts.
    Failed(Arc<Error>),
}

pub(super) struct Committer {
    directory: Directory,
    options: Options,
    clock: Clock,
    commands: Receiver<Command>,
    shared: Arc<Shared>,
    /// `None` only while the engine is reopened.
    acknowledged: Option<Acknowledged>,
    /// `None` only while it is reopened.
    engine: Option<Arc<Engine>>,
    /// The original files and the unfinished deletions of an opening that is not accepted. Nothing is written before it
    /// is accepted. `None` means it is accepted.
    provisional: Option<Found>,
    end: ChainEnd,
    /// The time mark of the last group. `None` means it had none.
    time: Option<TimeMark>,
    sizes: Sizes,
    /// Rows known to be absent: the committer does not look them up before it writes them.
    absence: Absence,
    deletion_tables: DeletionTables,
    /// The positions in the change feed that are not published yet.
    drawn: Drawn,
    jobs: VecDeque<RangeJob>,
    next_range: u64,
    health: Health,
    free_space: free_space::FreeSpace,
    maintenance: maintenance::Maintenance,
    /// The time of the oldest write that is not synced yet. `None` means that all writes are synced.
    unsynced_since: Option<Duration>,
    /// Groups that the engine has as ones that other stores may have recorded.
    witnessed: Vec<ChainEnd>,
    /// The number of changes of that list ([`super::super::durable::Durable`]) when it was written last.
    witnessed_changes: u64,
}

impl Committer {
    /// Runs until the store is closed or every handle of it is dropped.
    pub(super) fn run(mut self) {
        let closing = loop {
            let Some(command) = self.next_command() else { break None };
            match command {
                Next::Group(requests, then) => {
                    self.commit_group(requests);
                    match then {
                        Then::GoOn => {}
                        Then::Sync(answer) => {
                            let synced = self.recover().and_then(|()| self.sync());
                            drop(answer.send(synced));
                        }
                        Then::Accept(answer) => drop(answer.send(self.accept())),
                        Then::Close(answer) => break Some(answer),
                    }
                }
                // The failure is recorded: the next write returns it.
                Next::Sync => drop(self.sync()),
                Next::Idle => {}
            }
            self.step_range_job();
            self.step_fill();
            self.watch_free_space();
            self.maintain();
        };
        while self.step_range_job() {}
        let closed = self.close();
        // Release the directory's lock before the answer: the caller may open the store at once.
        drop(self);
        if let Some(answer) = closing {
            drop(answer.send(closed));
        } else if let Err(error) = closed {
            tracing::error!(%error, "closing the store failed");
        }
    }

    /// Waits for a command and takes a group's worth of them. `None` means no handle is left.
    fn next_command(&self) -> Option<Next> {
        let first = match (self.options.durability, self.unsynced_since) {
            _ if !self.jobs.is_empty() || self.absence.fill().is_some() => match self.commands.try_recv() {
                Ok(command) => command,
                Err(TryRecvError::Empty) => return Some(Next::Idle),
                Err(TryRecvError::Disconnected) => return None,
            },
            (Durability::Periodic(every), Some(since)) => {
                let waited = self.clock.monotonic().saturating_sub(since);
                if waited >= every {
                    return Some(Next::Sync);
                }
                let rest = every.saturating_sub(waited);
                let patience = self.patience().map_or(rest, |patience| patience.min(rest));
                match self.commands.recv_timeout(patience) {
                    Ok(command) => command,
                    Err(RecvTimeoutError::Timeout) => return Some(Next::Idle),
                    Err(RecvTimeoutError::Disconnected) => return None,
                }
            }
            _ => match self.patience() {
                None => self.commands.recv().ok()?,
                Some(patience) => match self.commands.recv_timeout(patience) {
                    Ok(command) => command,
                    Err(RecvTimeoutError::Timeout) => return Some(Next::Idle),
                    Err(RecvTimeoutError::Disconnected) => return None,
                },
            },
        };
        // Take only what has queued already: waiting for more would delay the first commit, and the next group forms
        // during the sync.
        let mut requests = Vec::new();
        let mut bytes = 0_usize;
        let mut command = Some(first);
        loop {
            match command {
                None => return Some(Next::Group(requests, Then::GoOn)),
                Some(Command::Sync(answer)) => return Some(Next::Group(requests, Then::Sync(answer))),
                Some(Command::Accept(answer)) => return Some(Next::Group(requests, Then::Accept(answer))),
                Some(Command::Close(answer)) => return Some(Next::Group(requests, Then::Close(answer))),
                Some(Command::Commit(request)) => {
                    bytes = bytes.saturating_add(request.bytes);
                    requests.push(request);
                }
            }
            let is_full = bytes >= self.options.commit_group_bytes_max;
            command = if is_full { None } else { self.commands.try_recv().ok() };
        }
    }

    /// Writes a group and answers each of its batches.
    fn commit_group(&mut self, requests: Vec<Request>) {
        if requests.is_empty() {
            return;
        }
        if let Err(error) = self.recover() {
            answer_all(requests, &Err(error));
            return;
        }
        let requests = refuse_of_other_openings(requests, self.shared.opening());
        if requests.is_empty() {
            return;
        }
        let began = self.clock.monotonic();
        if let Some(watch) = self.shared.sweeps.watch() {
            let changes = requests.iter().flat_map(|request| &request.changes);
            watch.record(changes.filter_map(Change::written_row));
        }
        // Kept until the end, so that rows get positions and entries by the same derivations.
        let derivations = self.shared.derivations.load_full();
        let mut requests = requests;
        let changes = requests.iter_mut().flat_map(|request| &mut request.changes);
        let stamped = self.drawn.stamp(changes, &derivations);
        let (group, refusals) = self.stage(&requests, &derivations, stamped);
        let (mut group, jobs) = self.stage_ranges(group, &requests, &refusals);
        let mut committed = std::mem::take(&mut group.committed).into_iter();
        let written = self.write(group);
        if written.is_ok() {
            self.drawn.all_published();
            metrics::COMMITS.add(refusals.iter().filter(|refusal| refusal.is_none()).count() as u64);
        }
        metrics::COMMIT_GROUPS.add_time(self.clock.monotonic().saturating_sub(began), 1);
        if jobs.is_empty() {
            release_queue_space(&mut requests);
        }
        let mut jobs = jobs.into_iter();
        for (request, refusal) in requests.into_iter().zip(refusals) {
            let committed = committed.next().unwrap_or_default();
            let ranges = if has_ranges(&request) && refusal.is_none() {
                jobs.next()
            } else {
                None
            };
            match (&written, refusal, ranges) {
                (_, Some(refusal), _) => request.answer(Err(refusal)),
                (Err(error), None, _) => request.answer(Err(error.clone())),
                (Ok(seq), None, None) => request.answer(Ok(committed.at(*seq))),
                // Answered when the last of its ranges is empty.
                (Ok(_), None, Some(ranges)) => self.jobs.push_back(RangeJob {
                    ranges,
                    request: Some(request),
                }),
            }
        }
    }

    /// Merges the batches' changes, key by key. A batch that cannot be merged is refused; the other batches are not.
    fn stage<'a>(
        &mut self,
        requests: &'a [Request],
        derivations: &Derivations,
        stamped: Stamped,
    ) -> (Group<'a>, Vec<Option<Error>>) {
        let mut refusals: Vec<Option<Error>> = vec![None; requests.len()];
        // A refused batch may have left some of its changes in the group. Refusals are rare, so the group is rebuilt
        // without it.
        loop {
            match self.stage_changes(requests.len(), &placed(requests, &refusals), derivations, stamped) {
                Ok(group) => return (group, refusals),
                Err((request, error)) => match refusals.get_mut(request) {
                    Some(refusal) => *refusal = Some(error),
                    None => return (Group::default(), refusals),
                },
            }
        }
    }

    fn stage_changes<'a>(
        &mut self,
        requests: usize,
        placed: &[Placed<'a>],
        derivations: &Derivations,
        stamped: Stamped,
    ) -> Result<Group<'a>, (usize, Error)> {
        let mut group = Group::default();
        let mut logging = if stamped.is_logged {
            Logging::of(in_order(placed), derivations)
        } else {
            Logging::default()
        };
        group.pending.reserve(placed.len());
        group.committed.resize(requests, Committed::default());
        for run in runs(placed) {
            let Some(first) = run.first() else { continue };
            let old = match first.space {
                Space::Rows => self.old_row(first.key),
                Space::Deletions => self.search(first.space, first.key),
                Space::Indexes | Space::Feed | Space::Catalog => Ok(None),
            };
            let old = old.map_err(|error| (first.request(), error))?;
            if !logging.is_empty() && first.space == Space::Rows {
                logging.row_is(first.key, old.clone());
            }
            group.add(run, old, derivations)?;
        }
        if let Some(position) = stamped.position.filter(|_| !logging.is_empty()) {
            // Refuses one request at a time, until none is left.
            let first = placed.first().map_or(usize::MAX, Placed::request);
            self.find_deletions(&mut logging).map_err(|error| (first, error))?;
            group.log(logging.entries(position));
        }
        group.finish();
        Ok(group)
    }

    fn search(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        let engine = self.engine()?;
        with_full_key(space, key, |full| engine.get_newest(full))
    }

    /// The stored row that is about to be rewritten. Most new rows are known to be absent and need no lookup.
    fn old_row(&mut self, key: &[u8]) -> Result<Option<Bytes>> {
        if self.absence.insert(key) {
            debug_assert!(
                self.search(Space::Rows, key)?.is_none(),
                "a row that is there was called absent: {key:?}"
            );
            return Ok(None);
        }
        if let Some(known) = self.shared.cache.peek(key) {
            return Ok(known);
        }
        let found = self.search(Space::Rows, key)?;
        if found.is_none() {
            self.absence.count_miss(key, |table| self.sizes.get(table).rows);
        }
        Ok(found)
    }

    /// Runs one step of the fill of the absence filter.
    fn step_fill(&mut self) {
        let Some(fill) = self.absence.fill() else { return };
        let stepped = self.fill_keys(&fill.rest).map(|keys| {
            let rest = match keys.last() {
                Some(last) if keys.len() >= self.options.fill_step_keys => {
                    let last = last.get(1..).unwrap_or_default().to_vec();
                    Some(rest_of_range(&fill.rest, Order::Forward, last))
                }
                _ => None,
            };
            (keys, rest)
        });
        match stepped {
            Ok((keys, rest)) => {
                let keys = keys.iter().map(|key| key.get(1..).unwrap_or_default());
                self.absence.fill_step(keys, rest);
            }
            // Readers of that range get the error themselves. The filter does not cover the table.
            Err(error) => {
                tracing::warn!(%error, "could not add a table's rows to the absence filter");
                self.absence.drop_fill();
            }
        }
    }

    /// The first full keys of a range of rows, at most [`Options::fill_step_keys`].
    fn fill_keys(&self, range: &KeyRange) -> Result<Vec<fjall::Slice>> {
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let engine = self.engine()?;
        let view = engine.database.snapshot();
        let entries = engine.entries(&view, full_range(Space::Rows, range), Order::Forward)?;
        entries
            .take(self.options.fill_step_keys)
            .map(|entry| entry.map(|(key, _)| key))
            .collect()
    }

    /// Records the ranges to delete in the group, so that a crash cannot leave the deletion unfinished.
    fn stage_ranges<'a>(
        &mut self,
        mut group: Group<'a>,
        requests: &[Request],
        refusals: &[Option<Error>],
    ) -> (Group<'a>, Vec<Ranges>) {
        let mut jobs = Vec::new();
        for (request, refusal) in requests.iter().zip(refusals) {
            if refusal.is_some() || !has_ranges(request) {
                continue;
            }
            let mut ranges = VecDeque::new();
            for change in &request.changes {
                if let Change::DeleteRange { space, range } = change {
                    let (key, value) = range_record(self.next_range, *space, range);
                    group.own.push((key, Some(value)));
                    ranges.push_back((self.next_range, *space, range.clone()));
                    self.next_range += 1;
                }
            }
            jobs.push(ranges);
        }
        (group, jobs)
    }

    /// Removes the keys of one step of the first range to delete. Returns whether more remains.
    fn step_range_job(&mut self) -> bool {
        let Some(job) = self.jobs.front() else { return false };
        let Some((number, space, range)) = job.ranges.front().cloned() else {
            self.finish_range_job(Ok(CommitSeq(self.end.seq)));
            return !self.jobs.is_empty();
        };
        match self.delete_step(number, space, &range) {
            Ok(rest) => {
                if let Some(job) = self.jobs.front_mut() {
                    match (rest, job.ranges.front_mut()) {
                        (Some(rest), Some((_, _, range))) => *range = rest,
                        _ => drop(job.ranges.pop_front()),
                    }
                }
            }
            // Its record stays, so the deletion is resumed when the engine is opened again.
            Err(error) => self.finish_range_job(Err(error)),
        }
        true
    }

    fn finish_range_job(&mut self, answer: Result<CommitSeq>) {
        if let Some(request) = self.jobs.pop_front().and_then(|job| job.request) {
            request.answer(answer.map(Committed::from));
        }
    }

    /// Removes some keys of a range; returns the rest of it. `None` means the range is empty.
    fn delete_step(&mut self, number: u64, space: Space, range: &KeyRange) -> Result<Option<KeyRange>> {
        self.recover()?;
        let mut group = Group::default();
        let derivations = self.shared.derivations.load_full();
        let mut last = None;
        let (mut removed, mut bytes) = (0_usize, 0_usize);
        if !range.is_empty() {
            let engine = Arc::clone(self.engine()?);
            let view = engine.database.snapshot();
            for entry in engine
                .entries(&view, full_range(space, range), Order::Forward)?
                .take(RANGE_STEP_KEYS_MAX)
            {
                let (full, value) = entry?;
                let key = full.get(1..).unwrap_or_default();
                group.remove(space, key, &value, &derivations);
                last = Some(key.to_vec());
                removed += 1;
                bytes += key.len();
                if bytes >= RANGE_STEP_BYTES {
                    break;
                }
            }
        }
        let rest = last
            .filter(|_| removed >= RANGE_STEP_KEYS_MAX || bytes >= RANGE_STEP_BYTES)
            .map(|last| rest_of_range(range, Order::Forward, last));
        group.finish();
        let tables = DeletionTables::clone(&self.deletion_tables);
        if rest.is_none() {
            group.own.push((range_record(number, space, range).0, None));
            if space == Space::Deletions {
                // Removes only tables that this range covers as a whole. After a resumption the range is only its rest.
                // It is always safe to keep a table in the set.
                remove_tables(&mut self.deletion_tables, range);
            }
        }
        let written = self.write(group);
        if written.is_err() {
            self.deletion_tables = tables;
        }
        written.map(|_| rest)
    }

    /// Writes a group, durable as the settings say, and publishes the result.
    fn write(&mut self, mut group: Group<'_>) -> Result<CommitSeq> {
        if group.is_empty() {
            return Ok(CommitSeq(self.end.seq));
        }
        if self.is_broken(Invariant::GroupIsInOrder) {
            group.pending.reverse();
        }
        if let Err(broken) = group.check().and_then(|()| self.check_rises()) {
            let error = Error::Broken(broken);
            self.fail(&error);
            return Err(error);
        }
        let engine = Arc::clone(self.engine()?);
        let mode = match self.options.durability {
            Durability::Group if !mutant::is_on(Mutant::SkipSync) => PersistMode::SyncData,
            Durability::Group | Durability::Periodic(_) | Durability::Os => PersistMode::Buffer,
        };
        let capacity = group.pending.len() + group.own.len() + 4;
        let mut batch = fjall::OwnedWriteBatch::with_capacity(engine.database.clone(), capacity).durability(Some(mode));
        let together = group.together();
        let digest = group.digest(&together);
        let (sizes, deletion_tables) = self.stage_rows(&engine, &group, together, &mut batch);
        for (key, value) in group.own {
            match value {
                Some(value) => batch.insert(&engine.data, key, value),
                None => batch.remove(&engine.data, key),
            }
        }
        let end = self.end.then(digest);
        // Read after all timestamps of the group were issued, so no timestamp in the group is above the mark.
        let time = self.options.times().mark(self.time);
        let link = Link {
            end,
            digest,
            store: self.directory.identity(),
            anchor: self.shared.durable.end(),
        };
        let (key, value) = chain_record(&link, time);
        batch.insert(&engine.data, key, value);
        // The same batch removes the previous record: a second record then proves that a group was lost; see fjall.rs.
        if self.end.seq > 0 {
            batch.remove(&engine.data, chain_key(self.end));
        }
        let witnessed = self.stage_witnessed(&engine, &mut batch);
        let written = self
            .wait_for_flushes(&engine)
            .and_then(|()| self.commit_to_engine(&engine, batch));
        written.map_err(|error| {
            let cause = self.cause_of(error);
            self.fail(&cause);
            cause
        })?;
        if let Some((changes, witnessed)) = witnessed {
            self.witnessed_changes = changes;
            self.witnessed = witnessed;
        }
        self.end = end;
        self.time = time;
        self.sizes = sizes;
        self.deletion_tables = deletion_tables;
        let seq = CommitSeq(end.seq);
        // The cache is updated before the snapshot is published, so that the two agree at every snapshot (cache.rs).
        for pending in group.pending.iter().filter(|pending| pending.space == Space::Rows) {
            self.shared.cache.apply(&pending.key, pending.value.as_deref(), seq);
        }
        match self.options.durability {
            Durability::Group => self.acknowledge(),
            Durability::Periodic(_) => {
                self.unsynced_since.get_or_insert_with(|| self.clock.monotonic());
            }
            Durability::Os => {}
        }
        self.publish();
        Ok(seq)
    }

    /// Adds the records of a group to a batch, and those of the sizes that they change. Returns the sizes and the tables with
    /// deletions as they are then.
    fn stage_rows(
        &self,
        engine: &Engine,
        group: &Group<'_>,
        mut together: Bytes,
        batch: &mut fjall::OwnedWriteBatch,
    ) -> (Sizes, DeletionTables) {
        let mut sizes = self.sizes.clone();
        let mut deletion_tables = DeletionTables::clone(&self.deletion_tables);
        // Keys are sorted, so all rows of a table come together.
        let mut counting: Option<(TableId, TableSize)> = None;
        let mut counted = Vec::new();
        for pending in &group.pending {
            let after = pending.value.as_ref().map(|value| value.len());
            if is_counted(pending.space)
                && let Some(table) = table_of(&pending.key)
            {
                let counting = match &mut counting {
                    Some((of, size)) if *of == table => size,
                    other => {
                        counted.extend(other.take());
                        &mut other.insert((table, sizes.get(table))).1
                    }
                };
                counting.count(pending.key.len(), pending.before, after);
            }
            if pending.space == Space::Deletions && after.is_some() {
                add_table(&mut deletion_tables, &pending.key);
            }
            match pending.cut(&mut together) {
                (full, Some(value)) => batch.insert(&engine.data, full, value),
                (full, None) => batch.remove(&engine.data, full),
            }
        }
        for (table, size) in counted.into_iter().chain(counting) {
            sizes.set(table, size);
            let (key, value) = size_record(table, size);
            batch.insert(&engine.data, key, value);
        }
        (sizes, deletion_tables)
    }

    /// Adds to a batch what changed among the witnessed ends; `None` means nothing. They are this committer's once it is written.
    fn stage_witnessed(&self, engine: &Engine, batch: &mut fjall::OwnedWriteBatch) -> Option<(u64, Vec<ChainEnd>)> {
        let witnessed = self.shared.durable.witnessed_since(self.witnessed_changes);
        if let Some((_, witnessed)) = &witnessed {
            for gone in self.witnessed.iter().filter(|end| !witnessed.contains(end)) {
                batch.remove(&engine.data, witnessed_key(*gone));
            }
            for new in witnessed.iter().filter(|end| !self.witnessed.contains(end)) {
                let (key, value) = witnessed_record(*new);
                batch.insert(&engine.data, key, value);
            }
        }
        witnessed
    }

    /// Whether a test breaks an invariant here.
    fn is_broken(&self, invariant: Invariant) -> bool {
        self.options.breaks.as_ref().is_some_and(|breaks| breaks(invariant))
    }

    /// Checks that the next group is later than the published snapshot: otherwise readers would go back in time.
    fn check_rises(&self) -> Result<(), Broken> {
        let published = self.shared.published.load();
        let Some(published) = published.as_ref().map(|published| published.seq.0) else {
            return Ok(());
        };
        let end = if self.is_broken(Invariant::PublishedRises) {
            0
        } else {
            self.end.seq
        };
        Invariant::PublishedRises.check(published <= end, || format!("group {end} and group {published}"))
    }

    fn commit_to_engine(&self, engine: &Engine, batch: fjall::OwnedWriteBatch) -> Result<()> {
        if let Some(fault) = self
            .options
            .faults
            .as_ref()
            .and_then(|faults| faults(FaultPoint::Commit))
        {
            return Err(full_or(fault, self.directory.path(), "writing", self.directory.path()));
        }
        guard(&engine.directory, || batch.commit())?.map_err(|error| engine.error("writing", error))
    }

    /// Waits while too many memtables wait for their flush. Fails if the engine takes no more writes.
    fn wait_for_flushes(&self, engine: &Engine) -> Result<()> {
        for _ in 0..STALL_POLLS_MAX {
            if engine.data.sealed_memtable_count() < SEALED_MEMTABLES_MAX {
                return Ok(());
            }
            let alive = guard(&engine.directory, || engine.database.persist(PersistMode::Buffer))?;
            alive.map_err(|error| engine.error("writing", error))?;
            std::thread::sleep(POLL);
        }
        let what = "it does not write its memtables".to_owned();
        Err(Error::Engine {
            location: self.directory.path().display().to_string(),
            what,
        })
    }

    fn acknowledge(&mut self) {
        // A failure loses no group of the log. Only a later loss of the log's end would go unnoticed.
        if let Some(acknowledged) = &mut self.acknowledged
            && let Err(error) = acknowledged.write(self.end)
        {
            tracing::warn!(%error, "could not record the last acknowledged group");
        }
        self.shared.durable.raise(self.end);
    }

    /// Makes all that is acknowledged durable.
    fn sync(&mut self) -> Result<()> {
        self.unsynced_since = None;
        let engine = self.engine().map(Arc::clone)?;
        let synced = guard(&engine.directory, || engine.database.persist(PersistMode::SyncData))
            .and_then(|synced| synced.map_err(|error| engine.error("syncing", error)));
        let synced = synced.map_err(|error| self.cause_of(error));
        match &synced {
            Ok(()) => {
                self.acknowledge();
                // A test records here the state that a loss of power would leave.
                if let Some(faults) = &self.options.faults {
                    drop(faults(FaultPoint::Synced));
                }
            }
            Err(error) => self.fail(error),
        }
        synced
    }

    fn publish(&self) {
        if let Some(engine) = &self.engine {
            self.shared.published.store(Some(Arc::new(Published {
                engine: Arc::clone(engine),
                view: engine.database.snapshot(),
                seq: CommitSeq(self.end.seq),
                deletion_tables: DeletionTables::clone(&self.deletion_tables),
                sizes: self.sizes.clone(),
            })));
        }
    }

    fn engine(&self) -> Result<&Arc<Engine>> {
        self.engine.as_ref().ok_or(Error::Reopening)
    }
}

enum Next {
    Group(Vec<Request>, Then),
    /// The period of unsynced writes is over.
    Sync,
    /// No command arrived: delete ranges, fill the absence filter, or watch the engine.
    Idle,
}
