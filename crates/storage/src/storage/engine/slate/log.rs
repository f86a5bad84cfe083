//! The log that all databases of a bucket share: one put makes the commits of all of them durable.
//!
//! ```text
//! committers ─ append ─► open rows of each database ─► one object ─► put, one at a time ─► landed ─► flushes end
//!            ─ flush  ─► an object is wanted               └─ failed: put again (stalled)
//! PREFIX/log/<number, 20 digits>.log        consecutive; format in log/object.rs
//! ```
//! SlateDB has its own log for each database. Several databases would put several objects for the same commits, and a put
//! costs latency, processor time and money. SlateDB takes another log in its place (`slatedb::wal`); log/writer.rs is that
//! interface.
//!
//! **Order.** The rows of a database are in objects of rising numbers, in the order of their sequence numbers. The next
//! object is put after the one before it has landed, so there is never a gap.
//!
//! **When a put begins.** It takes the open rows of all databases, wanted or not, up to [`OBJECT_BYTES_MAX`]. It waits for as many batches as the last
//! put has answered, as the log of a single database does (flight.rs). So rows that are appended after a flush may be in
//! the object that the flush names; SlateDB forbids that for the sake of checkpoints of an open database, which are never
//! made here.
//!
//! **One writer.** An object is put only if its number is free. A process that takes the log over puts a fence with the
//! next number, and never removes it. A process that finds its number taken by another one has lost the bucket. After a
//! put without an answer it reads the object: it may be its own. Nothing is put without the lease, and a put has landed
//! only if the lease is still held when its answer comes ([`Medium`]).
//!
//! **A put that fails** is tried again with the same object until it lands, so an object is decided before a later one is
//! put. Meanwhile the log is stalled ([`Log::stalled`]). All databases stay open for reads. The committers answer the
//! batches that wait as failed, and take no others; what they have written lands with this object or the next one. A
//! database that has rows in the object is not opened before it lands. All databases are closed when the bucket is lost.
//!
//! **How far back it is read.** Each object names the first object that each database needs: rows before it are in
//! tables. If a database needs more than [`LOG_OBJECTS_MAX`] objects, its committer is asked to write tables. Objects that
//! none needs are removed.
//!
//! Sources: SlateDB 0.18.0 (`wal/mod.rs`, `wal/slatedb/writer.rs`, `fence.rs`).

mod object;
mod opening;
mod putting;
#[cfg(test)]
mod tests;
mod writer;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use slatedb::RowEntry;
use slatedb::object_store::path::Path;
use slatedb::wal::{WalError, WalEvent, WalStatus, WalStatusListener};
use tokio::sync::{Notify, oneshot, watch};

use self::object::{Object, Part, put_row};
use self::opening::Tail;
pub(super) use self::writer::{LogAdmin, LogWriterInit, Logged};
use super::clock::Ticks;
use super::failures::carried;
use super::flight::{GATHERING_MAX, Gathering};
use super::medium::Medium;
use super::places::SHARED_LOG;
use super::tuning::LOG_OBJECTS_MAX;
use crate::storage::Error;

/// Bytes of rows in an object: a slow bucket must take it in time. One append may be longer, and has an object alone.
const OBJECT_BYTES_MAX: usize = 8 << 20;

/// Bytes of rows from which on the next append begins a chunk.
const CHUNK_BYTES: usize = 256 << 10;

/// The path of an object of the log.
fn path(number: u64) -> Path {
    Path::from(format!("{SHARED_LOG}/{number:020}.log"))
}

/// The log of a bucket.
pub(super) struct Log {
    medium: Arc<Medium>,
    location: Arc<str>,
    process: String,
    ticks: Arc<Ticks>,
    /// How often rows are put for which no commit waits.
    interval: Duration,
    state: Mutex<State>,
    /// Wakes the task that puts.
    wake: Arc<Notify>,
    /// An object has landed, or its put has failed.
    progress: Notify,
    /// Why the put under way does not end. `None` means that it did not fail yet.
    stalled: watch::Sender<Option<Error>>,
    /// Whether the last attempt to put an object took longer than a first one may: the next one has more time.
    is_slow: AtomicBool,
    tail: Tail,
    is_cleaning: AtomicBool,
}

#[derive(Default)]
struct State {
    /// The number of the object that is being put, or of the next one.
    next: u64,
    /// The object that is being put. After a failure it is unknown whether it was.
    putting: Option<Putting>,
    /// Why nothing is put any more.
    ended: Option<WalError>,
    is_stopped: bool,
    databases: BTreeMap<Arc<str>, Database>,
    /// Openings of databases so far.
    generations: u64,
    /// Batches that no object contains yet.
    gathering: Gathering,
    /// Whether an object is wanted although no row is open: a database was forgotten, and the newest object does not say so.
    is_wanted: bool,
    /// The highest time at which a row was written, ms.
    millis: i64,
    /// The least number that an object may have, but for fences of processes before.
    lowest: u64,
    /// The number of this process's fence.
    fence: u64,
}

/// An object that is being put.
struct Putting {
    parts: Vec<PuttingPart>,
    bytes: Bytes,
    /// The least number that a database needs by it.
    floor: u64,
    batches: usize,
}

struct PuttingPart {
    database: Arc<str>,
    generation: u64,
    last_seq: u64,
    waiting: Vec<Waiting>,
}

/// Tells whoever waits for an object that it has landed.
type Waiting = oneshot::Sender<Result<(), WalError>>;

/// What the log knows of a database.
#[derive(Default)]
struct Database {
    /// Its opening, which no other has. A writer of an earlier one writes nothing more.
    generation: u64,
    /// The objects with rows that no table has, and the last sequence number in each. Of a database that was not opened
    /// yet, only the first is known.
    unwritten: VecDeque<(u64, u64)>,
    /// `None` means that it is not open.
    writer: Option<Writer>,
}

/// Rows that were appended together, or one after another: an object has all of them or none.
struct Chunk {
    rows: BytesMut,
    last_seq: u64,
    /// Those who wait for them.
    waiting: Vec<Waiting>,
}

/// The open writer of a database.
struct Writer {
    /// Rows that no object contains, the oldest first.
    open: VecDeque<Chunk>,
    /// When the first of them was appended.
    open_since: Duration,
    /// Bytes of its rows in the object that is being put.
    putting_bytes: usize,
    flushed: u64,
    flushed_seq: Option<u64>,
    listeners: Vec<WalStatusListener>,
    closed: Option<WalError>,
    /// Asks its committer to write tables.
    tables_wanted: Arc<Notify>,
    /// The next object when it was asked.
    asked: u64,
}

impl Writer {
    fn status(&self) -> WalStatus {
        WalStatus {
            closed_reason: self.closed.clone(),
            estimated_bytes: self.open.iter().map(|chunk| chunk.rows.len()).sum::<usize>() + self.putting_bytes,
            last_flushed_wal_id: self.flushed,
            last_flushed_seq: self.flushed_seq,
            buffered_wal_entries_count: 0,
        }
    }

    /// Adds rows to what is open. An object has all of them or none.
    fn add(&mut self, rows: &[RowEntry], now: Duration) {
        if self.open.is_empty() {
            self.open_since = now;
        }
        if self.open.back().is_none_or(|chunk| chunk.rows.len() >= CHUNK_BYTES) {
            self.open.push_back(Chunk {
                rows: BytesMut::new(),
                last_seq: 0,
                waiting: Vec::new(),
            });
        }
        let Some(chunk) = self.open.back_mut() else { return };
        for row in rows {
            put_row(&mut chunk.rows, row);
            chunk.last_seq = row.seq;
        }
    }

    /// Takes the oldest open rows for an object that has room for so many bytes. A chunk that is longer than an object may
    /// be is taken alone. `None` means that there is nothing to take, or no room.
    fn take(&mut self, bytes_left: &mut usize) -> Option<Chunk> {
        let is_first = *bytes_left == OBJECT_BYTES_MAX;
        let fits = |chunk: &Chunk, left: usize| chunk.rows.len() <= left;
        let mut taken = match self.open.front() {
            Some(chunk) if is_first || fits(chunk, *bytes_left) => self.open.pop_front()?,
            _ => return None,
        };
        *bytes_left = bytes_left.saturating_sub(taken.rows.len());
        while self.open.front().is_some_and(|chunk| fits(chunk, *bytes_left)) {
            let Some(next) = self.open.pop_front() else { break };
            *bytes_left -= next.rows.len();
            taken.rows.extend_from_slice(&next.rows);
            taken.last_seq = next.last_seq;
            taken.waiting.extend(next.waiting);
        }
        self.putting_bytes = taken.rows.len();
        Some(taken)
    }

    /// Ends it: what is open is never put. Returns whom to tell.
    fn end(&mut self, reason: &WalError) -> Vec<(WalStatusListener, WalStatus)> {
        if self.closed.is_some() {
            return Vec::new();
        }
        self.closed = Some(reason.clone());
        for waiting in self.open.drain(..).flat_map(|chunk| chunk.waiting) {
            drop(waiting.send(Err(reason.clone())));
        }
        let status = self.status();
        self.listeners
            .drain(..)
            .map(|listener| (listener, status.clone()))
            .collect()
    }
}

impl Database {
    /// Drops the objects whose rows tables have, up to a sequence number.
    fn written(&mut self, seq: u64) {
        while self.unwritten.front().is_some_and(|(_, last)| *last <= seq) {
            self.unwritten.pop_front();
        }
    }

    /// Its writer, if it is open and of this opening.
    fn writer(&mut self, generation: u64) -> Option<&mut Writer> {
        let is_current = self.generation == generation;
        self.writer.as_mut().filter(|_| is_current)
    }
}

impl State {
    fn writer(&mut self, database: &str, generation: u64) -> Result<&mut Writer, WalError> {
        let known = self.databases.get_mut(database);
        let writer = known
            .and_then(|known| known.writer(generation))
            .ok_or(WalError::Closed)?;
        match &writer.closed {
            None => Ok(writer),
            Some(closed) => Err(closed.clone()),
        }
    }

    /// Whether the object that is being put, or may have been, has rows of a database.
    fn is_putting(&self, database: &str) -> bool {
        let parts = self.putting.iter().flat_map(|putting| &putting.parts);
        parts.into_iter().any(|part| &*part.database == database)
    }

    /// Time until an object has to be put. `None` means that none has.
    fn due(&self, interval: Duration, now: Duration) -> Option<Duration> {
        if self.putting.is_some() {
            return None;
        }
        let open = || self.databases.values().filter_map(|database| database.writer.as_ref());
        let open = || open().filter(|writer| !writer.open.is_empty());
        let is_awaited = |writer: &Writer| writer.open.iter().any(|chunk| !chunk.waiting.is_empty());
        if self.is_wanted || open().any(is_awaited) {
            return Some(self.gathering.wait(GATHERING_MAX, now).unwrap_or_default());
        }
        open()
            .map(|writer| interval.saturating_sub(now.saturating_sub(writer.open_since)))
            .min()
    }

    /// Begins an object with the open rows, as many as an object may have. Databases take turns at being first.
    fn begin(&mut self, of: u64, process: &str) -> Bytes {
        let number = self.next;
        let (mut parts, mut told) = (Vec::new(), Vec::new());
        let mut needs = BTreeMap::new();
        let mut bytes_left = OBJECT_BYTES_MAX;
        let turn = usize::try_from(number).unwrap_or_default() % self.databases.len().max(1);
        let (late, early): (Vec<_>, Vec<_>) = self.databases.iter_mut().enumerate().partition(|(at, _)| *at < turn);
        for (_, (name, database)) in early.into_iter().chain(late) {
            let mut first = database.unwritten.front().map(|(number, _)| *number);
            let taken = database.writer.as_mut().and_then(|writer| writer.take(&mut bytes_left));
            if let Some(chunk) = taken {
                first.get_or_insert(number);
                told.push(PuttingPart {
                    database: Arc::clone(name),
                    generation: database.generation,
                    last_seq: chunk.last_seq,
                    waiting: chunk.waiting,
                });
                parts.push(Part {
                    database: Arc::clone(name),
                    last_seq: chunk.last_seq,
                    rows: chunk.rows.freeze(),
                });
            }
            needs.extend(first.map(|first| (Arc::clone(name), first)));
        }
        let floor = needs.values().min().copied().unwrap_or(number);
        let object = Object {
            of,
            number,
            millis: self.millis,
            process: process.to_owned(),
            needs,
            parts,
        };
        let bytes = object.encode();
        self.putting = Some(Putting {
            parts: told,
            bytes: bytes.clone(),
            floor,
            batches: self.gathering.begun(),
        });
        self.is_wanted = false;
        bytes
    }

    /// Asks the committers of databases to write tables that need many objects, and again if they did not.
    fn ask_for_tables(&mut self) {
        let many = u64::from(LOG_OBJECTS_MAX);
        for database in self.databases.values_mut() {
            let first = database.unwritten.front().map_or(self.next, |(first, _)| *first);
            let Some(writer) = &mut database.writer else { continue };
            if self.next.saturating_sub(first.max(writer.asked)) >= many {
                writer.asked = self.next;
                writer.tables_wanted.notify_one();
            }
        }
    }
}

impl Log {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What makes SlateDB use this log for a database. `tables_wanted` asks its committer to write tables.
    pub(super) fn writer_init(self: &Arc<Self>, database: &str, tables_wanted: &Arc<Notify>) -> LogWriterInit {
        LogWriterInit::new(Arc::clone(self), database.into(), Arc::clone(tables_wanted))
    }

    /// Counts batches that were appended, for whose sake a put may wait.
    pub(super) fn gather(&self, batches: usize) {
        let now = self.ticks.monotonic();
        self.state().gathering.add(batches, now);
    }

    /// Whether tables have every row of a database that was appended.
    fn is_written(&self, database: &str) -> bool {
        let state = self.state();
        let known = state.databases.get(database);
        let is_open = |known: &Database| known.writer.as_ref().is_some_and(|writer| !writer.open.is_empty());
        !state.is_putting(database) && known.is_none_or(|known| known.unwritten.is_empty() && !is_open(known))
    }

    /// Forgets a database that is removed or begun, durably: nothing that the log has of it is read again, even if
    /// another database gets its name.
    pub(super) async fn forget(self: &Arc<Self>, database: &str) -> Result<(), WalError> {
        let number = {
            let mut state = self.state();
            let is_known = state.databases.remove(database).is_some();
            // An attempt before this one may have failed: then the object is still wanted.
            if !is_known && !state.is_putting(database) && !state.is_wanted {
                return Ok(());
            }
            state.is_wanted = true;
            state.next + u64::from(state.putting.is_some())
        };
        self.wake.notify_one();
        self.wait_for(|state| state.next > number).await
    }

    /// Waits until something holds that an object decides which lands.
    async fn wait_for(&self, holds: impl Fn(&State) -> bool) -> Result<(), WalError> {
        loop {
            let progress = self.progress.notified();
            tokio::pin!(progress);
            progress.as_mut().enable();
            {
                let state = self.state();
                if let Some(ended) = &state.ended {
                    return Err(ended.clone());
                }
                if holds(&state) {
                    return Ok(());
                }
                if state.is_stopped {
                    return Err(WalError::Closed);
                }
                if let Some(stalled) = self.stalled() {
                    return Err(WalError::Unavailable(Arc::new(carried(stalled, true))));
                }
            }
            progress.await;
        }
    }

    /// Ends a writer: SlateDB closes its database.
    fn close(&self, database: &str, generation: u64) {
        let told = match self.state().writer(database, generation) {
            Ok(writer) => writer.end(&WalError::Closed),
            Err(_) => return,
        };
        tell(told, WalEvent::WalClosed);
    }

    /// Why puts fail now. `None` means that they do not.
    pub(super) fn stalled(&self) -> Option<Error> {
        self.stalled.borrow().clone()
    }

    /// Waits until puts fail, and returns why.
    pub(super) async fn stalls(&self) -> Error {
        let mut stalled = self.stalled.subscribe();
        let stalls = stalled.wait_for(Option::is_some).await;
        match stalls.ok().and_then(|stalled| stalled.clone()) {
            Some(error) => error,
            None => std::future::pending().await,
        }
    }

    /// Stops the task that puts. Nothing may be written after it.
    pub(super) fn stop(&self) {
        self.state().is_stopped = true;
        self.progress.notify_waiters();
        self.wake.notify_one();
    }

    fn append(&self, database: &str, generation: u64, rows: &[RowEntry]) -> Result<(), WalError> {
        let now = self.ticks.monotonic();
        let mut state = self.state();
        let writer = state.writer(database, generation)?;
        let is_first = writer.open.is_empty();
        writer.add(rows, now);
        let millis = rows.iter().filter_map(|row| row.create_ts).max();
        state.millis = state.millis.max(millis.unwrap_or(i64::MIN));
        drop(state);
        if is_first {
            self.wake.notify_one();
        }
        Ok(())
    }

    /// Puts all that was appended. Returns the first object that may have the last of it, and a receiver of the outcome, or `None`
    /// if it is durable.
    fn flush(&self, database: &str, generation: u64) -> Result<(u64, Option<Outcome>), WalError> {
        let mut guard = self.state();
        let state = &mut *guard;
        let (sender, receiver) = oneshot::channel();
        let writer = state.writer(database, generation)?;
        let Some(newest) = writer.open.back_mut() else {
            let flushed = writer.flushed;
            let parts = state.putting.iter_mut().flat_map(|putting| &mut putting.parts);
            let mut parts = parts.filter(|part| &*part.database == database && part.generation == generation);
            return match parts.next() {
                None => Ok((flushed, None)),
                Some(part) => {
                    part.waiting.push(sender);
                    Ok((state.next, Some(receiver)))
                }
            };
        };
        newest.waiting.push(sender);
        let number = state.next + u64::from(state.putting.is_some());
        drop(guard);
        self.wake.notify_one();
        Ok((number, Some(receiver)))
    }
}

/// The outcome of a put, for one who waits for it.
type Outcome = oneshot::Receiver<Result<(), WalError>>;

/// Tells listeners of an event, after the state was released.
fn tell(told: Vec<(WalStatusListener, WalStatus)>, event: fn(WalStatus) -> WalEvent) {
    for (listener, status) in told {
        listener(event(status));
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.wake.notify_one();
    }
}
