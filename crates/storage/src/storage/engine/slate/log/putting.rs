//! The task that puts objects of the log, one after another.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use slatedb::object_store::{Error as StoreError, ObjectStore, PutMode, PutPayload};
use slatedb::wal::{WalError, WalEvent};
use slatedb_common::retry::NonRetryable;
use tokio::sync::Notify;

use super::{Log, path, tell};
use crate::storage::Error;
use crate::storage::bucket_refusal::Refusal;
use crate::storage::engine::slate::failures::{carried, failure_of_store};

/// Longest time of one attempt to put an object, and of one after an attempt that took as long. A client of the bucket
/// gives up after 20 s itself. Gap: bucket-31.
const ATTEMPT_MAX: Duration = Duration::from_secs(10);
const SLOW_ATTEMPT_MAX: Duration = Duration::from_secs(20);

/// Time after which failed attempts stall the log: sooner than committers give up, so that they are told the cause.
const ATTEMPTS_MAX: Duration = Duration::from_secs(9);

/// Time between attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Objects that no database needs, before they are removed.
const CLEAN_UP_OBJECTS: u64 = 500;

/// The next task of the task that puts.
enum Next {
    Put(u64, Bytes),
    Wait(Duration),
    Idle,
    Stop,
}

/// The outcome of a put.
pub(super) enum Put {
    Landed,
    /// Another process has put an object of this number.
    Fenced,
    Failed(StoreError),
}

impl Log {
    fn next(&self) -> Next {
        let now = self.ticks.monotonic();
        let mut state = self.state();
        if state.is_stopped || state.ended.is_some() {
            return Next::Stop;
        }
        if let Some(putting) = &state.putting {
            return Next::Put(state.next, putting.bytes.clone());
        }
        match state.due(self.interval, now) {
            Some(Duration::ZERO) => {
                let bytes = state.begin(self.medium.number(), &self.process);
                Next::Put(state.next, bytes)
            }
            Some(wait) => Next::Wait(wait),
            None => Next::Idle,
        }
    }

    /// Puts an object, and tries again while the medium fails, at most [`ATTEMPTS_MAX`].
    pub(super) async fn put(&self, number: u64, bytes: &Bytes) -> Put {
        let began = self.ticks.monotonic();
        loop {
            let longest = match self.is_slow.load(Ordering::Relaxed) {
                true => SLOW_ATTEMPT_MAX,
                false => ATTEMPT_MAX,
            };
            let payload = PutPayload::from(bytes.clone());
            let location = path(number);
            let attempt_began = self.ticks.monotonic();
            let put = self.medium.put_opts(&location, payload, PutMode::Create.into());
            let failed = match tokio::time::timeout(longest, put).await {
                Ok(Ok(_)) => {
                    let taken = self.ticks.monotonic().saturating_sub(attempt_began);
                    self.is_slow.store(taken > ATTEMPT_MAX, Ordering::Relaxed);
                    return Put::Landed;
                }
                Ok(Err(StoreError::AlreadyExists { .. } | StoreError::Precondition { .. })) => {
                    match self.find(number).await {
                        Ok(Some(found)) if found.process == self.process => return Put::Landed,
                        Ok(Some(_)) => return Put::Fenced,
                        // A process that took the log over has put and removed it, or the store contradicts itself. The
                        // lease tells which.
                        Ok(None) => StoreError::Generic {
                            store: "bucket",
                            source: format!("{location} is there when it is put, and gone when it is read").into(),
                        },
                        Err(error) => error,
                    }
                }
                Ok(Err(error)) => error,
                Err(_) => {
                    self.is_slow.store(true, Ordering::Relaxed);
                    let (bytes, seconds) = (bytes.len(), longest.as_secs());
                    let refusal = Refusal::Unreachable {
                        what: format!("an object of the log, {bytes} B, was not put in {seconds} s"),
                    };
                    let url = self.location.to_string();
                    carried(Error::Bucket { url, refusal }, true)
                }
            };
            let is_over = self.ticks.monotonic().saturating_sub(began) >= ATTEMPTS_MAX;
            if is_over || NonRetryable::find(&failed).is_some() {
                return Put::Failed(failed);
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }

    /// Ends a put, or the attempts that were made of it.
    async fn end_put(self: &Arc<Self>, outcome: Put) {
        match outcome {
            Put::Landed => self.landed(),
            Put::Fenced => {
                self.medium.end(Error::TakenOver {
                    location: self.location.to_string(),
                });
                self.end(&WalError::Fenced);
            }
            Put::Failed(error) if self.medium.lost().is_some() => self.end(&WalError::Unavailable(Arc::new(error))),
            Put::Failed(error) => {
                self.stall(failure_of_store(&self.location, error));
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
        }
    }

    fn landed(self: &Arc<Self>) {
        let now = self.ticks.monotonic();
        let mut guard = self.state();
        let state = &mut *guard;
        let Some(putting) = state.putting.take() else { return };
        let number = state.next;
        state.next += 1;
        state.gathering.ended(putting.batches, now);
        let (mut told, mut answered) = (Vec::new(), Vec::new());
        for part in putting.parts {
            answered.extend(part.waiting);
            let Some(database) = state.databases.get_mut(&part.database) else {
                continue;
            };
            database.unwritten.push_back((number, part.last_seq));
            let Some(writer) = database.writer(part.generation) else {
                continue;
            };
            writer.putting_bytes = 0;
            writer.flushed = number;
            writer.flushed_seq = Some(part.last_seq);
            let status = writer.status();
            told.extend(
                writer
                    .listeners
                    .iter()
                    .map(|listener| (Arc::clone(listener), status.clone())),
            );
        }
        state.ask_for_tables();
        let range = (state.lowest, putting.floor.min(number));
        drop(guard);
        self.stalled.send_if_modified(|stalled| stalled.take().is_some());
        tell(told, WalEvent::WalFlushed);
        for waiting in answered {
            drop(waiting.send(Ok(())));
        }
        self.progress.notify_waiters();
        if range.1.saturating_sub(range.0) >= CLEAN_UP_OBJECTS {
            self.clean_up(range.0, range.1);
        }
    }

    /// Records that puts fail, and why the first of them did.
    fn stall(&self, error: Error) {
        self.stalled.send_if_modified(|stalled| {
            let is_first = stalled.is_none();
            stalled.get_or_insert(error);
            is_first
        });
        self.progress.notify_waiters();
    }

    /// Records that nothing is put any more, and closes all databases.
    fn end(&self, reason: &WalError) {
        let mut state = self.state();
        state.ended = Some(reason.clone());
        let parts = state.putting.iter_mut().flat_map(|putting| &mut putting.parts);
        for waiting in parts.flat_map(|part| part.waiting.drain(..)) {
            drop(waiting.send(Err(reason.clone())));
        }
        let writers = state
            .databases
            .values_mut()
            .filter_map(|database| database.writer.as_mut());
        let told = writers.flat_map(|writer| writer.end(reason)).collect();
        drop(state);
        tell(told, WalEvent::WalClosed);
        self.progress.notify_waiters();
    }

    /// Removes objects in the background.
    fn clean_up(self: &Arc<Self>, from: u64, until: u64) {
        if self.is_cleaning.swap(true, Ordering::AcqRel) {
            return;
        }
        let log = Arc::clone(self);
        tokio::spawn(async move {
            let fence = log.state().fence;
            let numbers = (from..until).filter(move |number| *number != fence);
            let paths = stream::iter(numbers.map(|number| Ok(path(number)))).boxed();
            let mut removed = log.medium.delete_stream(paths);
            let mut failed = None;
            while let Some(one) = removed.next().await {
                match one {
                    Ok(_) | Err(StoreError::NotFound { .. }) => {}
                    Err(error) => failed = Some(error),
                }
            }
            match failed {
                None => {
                    let mut state = log.state();
                    state.lowest = state.lowest.max(until);
                }
                Some(error) => {
                    tracing::debug!(%error, location = %log.location, "objects of the log were not removed; a later attempt removes them");
                }
            }
            log.is_cleaning.store(false, Ordering::Release);
        });
    }
}

/// Puts objects until the log is stopped or dropped.
pub(super) async fn run(log: Weak<Log>, wake: Arc<Notify>) {
    loop {
        let wait = {
            let Some(log) = log.upgrade() else { return };
            match log.next() {
                Next::Stop => return,
                Next::Idle => None,
                Next::Wait(wait) => Some(wait),
                Next::Put(number, bytes) => {
                    let outcome = log.put(number, &bytes).await;
                    log.end_put(outcome).await;
                    continue;
                }
            }
        };
        match wait {
            None => wake.notified().await,
            Some(wait) => drop(tokio::time::timeout(wait, wake.notified()).await),
        }
    }
}
