//! The log as SlateDB sees it: one for each database.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use slatedb::object_store::path::Path;
use slatedb::wal::{
    WalAdmin, WalError, WalEvent, WalFlushResult, WalGc, WalIterator, WalObserver, WalRows, WalStatus,
    WalStatusListener, WalWriter, WriterInit, WriterInitResult, WriterManifest,
};
use slatedb::{RowEntry, VersionedManifest};
use tokio::sync::Notify;

use super::object::rows;
use super::{Log, Writer, tell};
use crate::storage::Error;

/// Objects that an opening reads at a time.
const READ_TOGETHER: usize = 32;

/// Opens the log for a database.
pub(in crate::storage::engine::slate) struct LogWriterInit {
    log: Arc<Log>,
    database: Arc<str>,
    tables_wanted: Arc<Notify>,
}

impl LogWriterInit {
    pub(super) fn new(log: Arc<Log>, database: Arc<str>, tables_wanted: Arc<Notify>) -> Self {
        Self {
            log,
            database,
            tables_wanted,
        }
    }
}

#[async_trait::async_trait]
impl WriterInit for LogWriterInit {
    /// Ends the database's earlier writers in this process. Those of other processes ended when this one took the log
    /// over.
    async fn fence_and_init(&self, manifest: &mut WriterManifest) -> Result<WriterInitResult, WalError> {
        let log = &self.log;
        let generation = log.supersede(&self.database);
        log.wait_for(|state| !state.is_putting(&self.database)).await?;
        // This manifest is in the bucket.
        if let Some(known) = log.state().databases.get_mut(&self.database) {
            known.written(manifest.manifest().last_l0_seq());
        }
        // SlateDB wants nothing from before it.
        let after = manifest.replay_after_wal_id();
        if after > log.state().next {
            let what = "it is gone, although tables have what it had, and so are those after it";
            return Err(damaged(log, after, what));
        }
        let numbers = log.to_read(&self.database).into_iter().filter(|number| *number > after);
        let _reading = log.tail.begin();
        let objects: Vec<_> = stream::iter(numbers)
            .map(|number| log.read_once(number))
            .buffered(READ_TOGETHER)
            .try_collect()
            .await?;
        let (mut found, mut replayed) = (VecDeque::new(), VecDeque::new());
        for object in objects {
            let Some(part) = object.part(&self.database) else {
                continue;
            };
            found.push_back((object.number, part.last_seq));
            let rows = rows(part).ok_or_else(|| damaged(log, object.number, "the rows in it cannot be read"))?;
            replayed.push_back(WalRows {
                rows,
                last_consumed_wal_file_id: object.number,
            });
        }
        let flushed = log.begin_writer(&self.database, generation, found, &self.tables_wanted)?;
        let writer = LogWriter {
            log: Arc::clone(log),
            database: Arc::clone(&self.database),
            generation,
            flushed,
        };
        Ok(WriterInitResult {
            replay_iterator: Box::new(Replay(replayed)),
            wal_writer: Box::new(writer),
        })
    }
}

/// Rows of a database that objects have, up to a sequence number.
#[derive(Clone, Copy)]
pub(in crate::storage::engine::slate) struct Logged {
    generation: u64,
    seq: u64,
}

fn damaged(log: &Log, number: u64, what: &str) -> WalError {
    WalError::DataError(Arc::new(Error::Corrupt {
        path: log.medium.file(&super::path(number)),
        what: what.to_owned(),
    }))
}

impl Log {
    /// The rows of an open database that objects have which have landed.
    pub(in crate::storage::engine::slate) fn logged(&self, database: &str) -> Option<Logged> {
        let state = self.state();
        let known = state.databases.get(database).filter(|known| known.writer.is_some())?;
        let (_, seq) = *known.unwritten.back()?;
        Some(Logged {
            generation: known.generation,
            seq,
        })
    }

    /// Records that tables have these rows, durably.
    pub(in crate::storage::engine::slate) fn have_tables(&self, database: &str, logged: Logged) {
        let mut state = self.state();
        let known = state.databases.get_mut(database);
        if let Some(known) = known.filter(|known| known.generation == logged.generation) {
            known.written(logged.seq);
        }
    }

    /// Ends the writer of a database, and begins a new generation.
    fn supersede(&self, database: &Arc<str>) -> u64 {
        let mut state = self.state();
        state.generations += 1;
        let generation = state.generations;
        let known = state.databases.entry(Arc::clone(database)).or_default();
        known.generation = generation;
        let told = known.writer.take().map(|mut writer| writer.end(&WalError::Closed));
        drop(state);
        tell(told.unwrap_or_default(), WalEvent::WalClosed);
        generation
    }

    /// The objects that may have rows of a database that no table has.
    fn to_read(&self, database: &str) -> Vec<u64> {
        let state = self.state();
        let Some(known) = state.databases.get(database) else {
            return Vec::new();
        };
        match known.unwritten.front() {
            // What follows the first one is not known yet.
            Some((first, u64::MAX)) => (*first..state.next).collect(),
            _ => known.unwritten.iter().map(|(number, _)| *number).collect(),
        }
    }

    /// Begins the writer of a database that has these objects with rows that no table has. Returns the last object that
    /// is durable.
    fn begin_writer(
        &self,
        database: &Arc<str>,
        generation: u64,
        found: VecDeque<(u64, u64)>,
        tables_wanted: &Arc<Notify>,
    ) -> Result<u64, WalError> {
        let now = self.ticks.monotonic();
        let mut state = self.state();
        if let Some(ended) = &state.ended {
            return Err(ended.clone());
        }
        let flushed = state.next.saturating_sub(1);
        let known = state.databases.entry(Arc::clone(database)).or_default();
        if known.generation != generation {
            return Err(WalError::Fenced);
        }
        known.unwritten = found;
        known.writer = Some(Writer {
            open: VecDeque::new(),
            open_since: now,
            putting_bytes: 0,
            flushed,
            flushed_seq: None,
            listeners: Vec::new(),
            closed: None,
            tables_wanted: Arc::clone(tables_wanted),
            asked: 0,
        });
        Ok(flushed)
    }

    fn status(&self, database: &str, generation: u64, flushed: u64) -> Result<WalStatus, WalStatus> {
        let mut state = self.state();
        let writer = state.databases.get_mut(database).and_then(|one| one.writer(generation));
        match writer {
            Some(writer) if writer.closed.is_none() => Ok(writer.status()),
            Some(writer) => Err(writer.status()),
            // Of an earlier opening.
            None => Err(WalStatus {
                closed_reason: Some(WalError::Closed),
                estimated_bytes: 0,
                last_flushed_wal_id: flushed,
                last_flushed_seq: None,
                buffered_wal_entries_count: 0,
            }),
        }
    }
}

/// What was read of a database's log.
struct Replay(VecDeque<WalRows>);

#[async_trait::async_trait]
impl WalIterator for Replay {
    async fn next(&mut self) -> Result<Option<WalRows>, WalError> {
        Ok(self.0.pop_front())
    }
}

/// The writer of an opening of a database.
#[derive(Clone)]
struct LogWriter {
    log: Arc<Log>,
    database: Arc<str>,
    generation: u64,
    /// The last durable object at the opening.
    flushed: u64,
}

#[async_trait::async_trait]
impl WalWriter for LogWriter {
    async fn append(&mut self, rows: &[RowEntry]) -> Result<(), WalError> {
        self.log.append(&self.database, self.generation, rows)
    }

    async fn flush(&mut self) -> Result<WalFlushResult, WalError> {
        let (wal_id, answered) = self.log.flush(&self.database, self.generation)?;
        let completion = async move {
            match answered {
                None => Ok(()),
                Some(answered) => answered.await.unwrap_or(Err(WalError::Closed)),
            }
        };
        Ok(WalFlushResult {
            wal_id,
            completion: completion.boxed(),
        })
    }

    fn observer(&self) -> Box<dyn WalObserver> {
        Box::new(self.clone())
    }

    fn status(&self) -> Result<WalStatus, WalStatus> {
        self.log.status(&self.database, self.generation, self.flushed)
    }

    async fn close(&mut self) -> Result<(), WalError> {
        self.log.close(&self.database, self.generation);
        Ok(())
    }
}

impl WalObserver for LogWriter {
    fn status(&self) -> Result<WalStatus, WalStatus> {
        self.log.status(&self.database, self.generation, self.flushed)
    }

    fn subscribe(&self, listener: WalStatusListener) -> Result<(), WalError> {
        let mut state = self.log.state();
        state.writer(&self.database, self.generation)?.listeners.push(listener);
        Ok(())
    }
}

/// The log for SlateDB's operations on databases that are not open.
pub(in crate::storage::engine::slate) struct LogAdmin(pub(in crate::storage::engine::slate) Arc<Log>);

/// Removes nothing: the log removes its objects itself.
struct NoCleanUp;

#[async_trait::async_trait]
impl WalGc for NoCleanUp {
    async fn collect(
        &self,
        _: Vec<slatedb::wal::WalFileRange>,
        _: std::time::Duration,
        _: bool,
    ) -> Result<(), WalError> {
        Ok(())
    }
}

#[async_trait::async_trait]
impl WalAdmin for LogAdmin {
    fn garbage_collector(&self, _: &Path) -> Arc<dyn WalGc> {
        Arc::new(NoCleanUp)
    }

    /// Removes nothing: the log has forgotten a database before its objects are removed.
    async fn delete_wal(&self, _: &Path, _: bool) -> Result<Vec<String>, WalError> {
        Ok(Vec::new())
    }

    async fn is_empty(&self, path: &Path, _: u64, _: u64) -> Result<bool, WalError> {
        Ok(self.0.is_written(path.as_ref()))
    }

    /// A clone gets no log: its source has written tables first.
    async fn clone_wal(&self, from: &Path, manifest: VersionedManifest, to: &Path) -> Result<(u64, u64), WalError> {
        if !self.0.is_written(from.as_ref()) {
            let error = std::io::Error::other(format!("the log still has rows of {from}, to be cloned to {to}"));
            return Err(WalError::InternalError(Arc::new(error)));
        }
        let last = manifest.replay_after_wal_id();
        Ok((last, last))
    }
}
