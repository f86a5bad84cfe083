//! Maintenance of the engine between writes: it gives back memory and disk space that fjall keeps.
//!
//! ```text
//! a flush or compaction has ended ► release: forget the versions that hold its memtable, or tables that were merged
//! the log is full, or sealed ─────► rotate the memtable: only a flush rotates the log, and only the next one removes it
//! the memtable is large ──────────► rotate it, before fjall does
//! no write for a while ───────────► rotate the memtable
//! more cached than there is ───────► empty the block cache, which keeps blocks of removed tables
//! more garbage than data ─────────► compact all tables, on a thread of its own
//! all of this is done, no write ──► let the allocator return its free pages
//! ```
//! fjall does such work as a consequence of writes. Without it an idle store keeps its last memtable, the one before
//! it, and the tables of a dropped table; and a small store under load keeps a second log.
//!
//! Nothing here changes what readers see. A failure is logged, and the next round tries again; a failure of the medium
//! reaches the next write, as the engine refuses it.
//!
//! Source: fjall 3.1.13 (`worker_pool`, `snapshot_tracker`), lsm-tree 3.1.10 (`version/super_version`).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use fjall::{AbstractTree, LsmError};

use super::super::{Engine, TABLE_BYTES, block_cache, guard};
use super::{Committer, Health};
use crate::storage::key::KeyRange;
use crate::storage::{CommitSeq, Result};

/// Time between two rounds. A longer one would leave memtables in memory for longer; a shorter one would cost groups
/// time.
const ROUND_EVERY: Duration = Duration::from_millis(250);

/// How long no group must have been written before the memtable is flushed.
const IDLE_AFTER: Duration = Duration::from_secs(10);

/// Bytes of a memtable beyond those of the data, up to [`TABLE_BYTES`]. Of little data a memtable holds many versions of
/// each row, so a small one saves memory, and its flush writes little.
const MEMTABLE_BYTES: u64 = 4 * 1024 * 1024;

/// The least bound of a memtable: many flushes a second would hold up the log.
const MEMTABLE_BYTES_LEAST: u64 = 1024 * 1024;

/// A smaller memtable stays in memory: its table would cost more than it gives back.
const IDLE_MEMTABLE_BYTES: u64 = 64 * 1024;

/// Bytes of the log above which a flush rotates it: fjall's own bound. A flush of a shorter log would not. Gap: disk-2.
const LOG_BYTES_MAX: u64 = 64_000_000;

/// Garbage that a store may have in addition to as much as its data.
const GARBAGE_BYTES_MAX: u64 = 1024 * 1024;

/// The same before the first compaction, when it is not known how much space the data needs.
const FIRST_GARBAGE_BYTES_MAX: u64 = 2 * 1024 * 1024;

/// Blocks in the cache beside twice the tables: they are of tables that are gone.
const CACHED_GARBAGE_BYTES_MAX: u64 = 1024 * 1024;

/// Tables of more bytes are not compacted as a whole, which would take longer than half a minute. In a larger store
/// the part of the garbage is small: one level holds nine tenths of the data.
const COMPACTED_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;

/// Time between two compactions of all tables. A snapshot that is still read may keep what the first should have removed.
const COMPACTION_PAUSE: Duration = Duration::from_secs(5);

/// Time between two attempts to forget the same versions, which an open snapshot still reads.
const RELEASE_PAUSE: Duration = Duration::from_secs(5);

/// mimalloc returns pages a second after they became free.
const PAGES_DELAY: Duration = Duration::from_millis(1500);

/// fjall looks for the oldest open snapshot when this many were closed.
const SNAPSHOTS_TO_COLLECT: usize = 10_000;

/// The state between two rounds.
#[derive(Debug, Default)]
pub(super) struct Maintenance {
    round: Duration,
    /// The last group that a round saw, and when that was.
    seen: CommitSeq,
    written: Duration,
    /// Whether rounds are needed although no command arrives.
    is_pending: bool,
    /// Versions that the last release could not forget, and when the next one tries again.
    retained: usize,
    next_release: Duration,
    /// When the allocator's free pages are returned. `None` means there is still other work.
    pages_due: Option<Duration>,
    /// Bytes of tables and of data at the end of the last compaction. `None` means there was none.
    compacted: Option<Compacted>,
    /// No compaction begins before it.
    next_compaction: Duration,
    compaction: Option<JoinHandle<Result<()>>>,
}

#[derive(Clone, Copy, Debug)]
struct Compacted {
    table_bytes: u64,
    data_bytes: u64,
}

impl Maintenance {
    /// How long the committer may wait for commands before the next round; `last` is the last group. `None` means no limit.
    pub(super) fn patience(&self, last: CommitSeq) -> Option<Duration> {
        // A group that came soon after a round is seen by none yet.
        (self.is_pending || self.seen != last).then_some(ROUND_EVERY)
    }

    /// Whether all tables are being compacted.
    pub(super) const fn is_compacting(&self) -> bool {
        self.compaction.is_some()
    }

    /// Waits for the end of a compaction, which keeps the engine open.
    pub(super) fn finish(&mut self) {
        if let Some(compaction) = self.compaction.take() {
            log_failure(compaction.join().ok().and_then(Result::err));
        }
    }

    /// Most bytes of tables before they are compacted, of a store with this much data.
    fn table_bytes_max(&self, data_bytes: u64) -> u64 {
        let Some(Compacted {
            table_bytes,
            data_bytes: then,
        }) = self.compacted
        else {
            return 2 * data_bytes + FIRST_GARBAGE_BYTES_MAX;
        };
        // What tables need for index entries and such is not in the count of the data: assume the same part as then.
        let part = u128::from(table_bytes) * u128::from(data_bytes) / u128::from(then.max(1));
        let needed = u64::try_from(part).unwrap_or(u64::MAX).min(table_bytes).max(data_bytes);
        2 * needed + GARBAGE_BYTES_MAX
    }
}

fn log_failure(error: Option<crate::storage::Error>) {
    if let Some(error) = error {
        tracing::warn!(%error, "could not give back space of the store");
    }
}

impl Committer {
    /// How long it may wait for commands. `None` means no limit.
    pub(super) fn patience(&self) -> Option<Duration> {
        let last = CommitSeq(self.end.seq);
        let both = [self.free_space.patience(), self.maintenance.patience(last)];
        both.into_iter().flatten().min()
    }

    /// Runs a round, if it is time for one.
    pub(super) fn maintain(&mut self) {
        let now = self.clock.monotonic();
        if now.saturating_sub(self.maintenance.round) < ROUND_EVERY || self.provisional.is_some() {
            return;
        }
        self.maintenance.round = now;
        let key_filter_bytes = self.absence.bytes() as u64;
        self.shared.key_filter_bytes.store(key_filter_bytes, Ordering::Relaxed);
        let seq = CommitSeq(self.end.seq);
        if self.maintenance.seen != seq {
            self.maintenance.seen = seq;
            self.maintenance.written = now;
            self.maintenance.is_pending = true;
            self.maintenance.pages_due = None;
        }
        // After a failed write the engine may hold what was never acknowledged: nothing is published then.
        let is_well = matches!(self.health, Health::Well);
        if self.maintenance.is_pending && is_well && self.jobs.is_empty() {
            let done = self.maintain_engine(now);
            log_failure(done.err());
        }
    }

    fn maintain_engine(&mut self, now: Duration) -> Result<()> {
        let Some(engine) = self.engine.clone() else {
            return Ok(());
        };
        if self
            .maintenance
            .compaction
            .as_ref()
            .is_some_and(JoinHandle::is_finished)
        {
            self.maintenance.finish();
            self.release(&engine, now)?;
            self.maintenance.compacted = Some(Compacted {
                table_bytes: engine.data.disk_space(),
                data_bytes: self.data_bytes(),
            });
            self.maintenance.next_compaction = now + COMPACTION_PAUSE;
        }
        let is_at_work = engine.data.sealed_memtable_count() > 0 || engine.database.active_compactions() > 0;
        if is_at_work || self.maintenance.is_compacting() {
            self.maintenance.pages_due = None;
            return Ok(());
        }
        let retained = engine.data.tree.version_free_list_len();
        if retained > 0 && (retained != self.maintenance.retained || now >= self.maintenance.next_release) {
            return self.release(&engine, now);
        }
        let is_idle = now.saturating_sub(self.maintenance.written) >= IDLE_AFTER;
        let memtable_bytes = engine.data.tree.active_memtable().size();
        let data_bytes = self.data_bytes();
        let bytes_max = self
            .options
            .memtable_bytes_max
            .unwrap_or(TABLE_BYTES)
            .max(MEMTABLE_BYTES_LEAST);
        let is_large = memtable_bytes > bytes_max.min(MEMTABLE_BYTES + data_bytes);
        let is_log_full = engine.database.journal_count() > 1 || newest_log_bytes(&engine.directory) > LOG_BYTES_MAX;
        if memtable_bytes > 0 && (is_large || is_log_full || is_idle && memtable_bytes > IDLE_MEMTABLE_BYTES) {
            self.maintenance.pages_due = None;
            let rotated = guard(&engine.directory, || engine.data.rotate_memtable())?;
            return rotated.map(drop).map_err(|error| engine.error("flushing", error));
        }
        let table_bytes = engine.data.disk_space();
        let cached_bytes = engine.database.cache_size();
        if cached_bytes > 2 * table_bytes + CACHED_GARBAGE_BYTES_MAX {
            block_cache::empty(&engine.data.tree.tree_config().cache);
        }
        let has_garbage =
            table_bytes > self.maintenance.table_bytes_max(data_bytes) && table_bytes < COMPACTED_BYTES_MAX;
        if has_garbage && now >= self.maintenance.next_compaction {
            self.maintenance.compaction = compact(Arc::clone(&engine));
        } else if is_idle && !has_garbage && retained == 0 {
            let due = *self.maintenance.pages_due.get_or_insert(now + PAGES_DELAY);
            if now >= due {
                self.maintenance.is_pending = false;
                return_free_pages();
            }
        }
        Ok(())
    }

    fn data_bytes(&self) -> u64 {
        self.sizes.estimate(&KeyRange::all()).bytes
    }

    /// Forgets the versions of the tree that no snapshot reads any more, and with them memtables and tables.
    fn release(&mut self, engine: &Engine, now: Duration) -> Result<()> {
        // A version is forgotten when a later one is older than every snapshot: so the snapshot that readers use must
        // be later than the last version, by a sequence number that no write has.
        let supervisor = &engine.database.supervisor;
        supervisor.snapshot_tracker.publish(supervisor.seqno.next());
        self.publish();
        for _ in 0..SNAPSHOTS_TO_COLLECT {
            drop(engine.database.snapshot());
        }
        let watermark = supervisor.snapshot_tracker.get_seqno_safe_to_gc();
        let released = guard(&engine.directory, || {
            let mut versions = engine.data.tree.get_version_history_lock();
            versions.maintenance(engine.data.path(), watermark)
        })?;
        self.maintenance.retained = engine.data.tree.version_free_list_len();
        self.maintenance.next_release = now + RELEASE_PAUSE;
        released.map_err(|error| engine.error("releasing", error.into()))
    }
}

/// Bytes on disk of the log that is written to. Its length says nothing: fjall extends the file when it creates it.
fn newest_log_bytes(engine: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    const BLOCK_BYTES: u64 = 512;
    let entries = std::fs::read_dir(engine).into_iter().flatten().flatten();
    let numbered = entries.filter_map(|entry| {
        let name = entry.file_name();
        let number: u64 = name.to_str()?.strip_suffix(".jnl")?.parse().ok()?;
        Some((number, entry.metadata().ok()?.blocks() * BLOCK_BYTES))
    });
    numbered.max().map_or(0, |(_, bytes)| bytes)
}

/// Compacts all tables to the last level. `None` means the thread could not be started.
fn compact(engine: Arc<Engine>) -> Option<JoinHandle<Result<()>>> {
    let run = move || {
        let watermark = engine.database.supervisor.snapshot_tracker.get_seqno_safe_to_gc();
        let compacted = guard(&engine.directory, || -> Result<(), LsmError> {
            engine.data.tree.major_compact(TABLE_BYTES, watermark)
        })?;
        compacted.map_err(|error| engine.error("compacting", error.into()))
    };
    let thread = std::thread::Builder::new().name("store-compaction".to_owned());
    thread.spawn(run).ok()
}

/// Lets the allocator return its free pages to the operating system.
///
/// mimalloc does so when a thread allocates or ends, a second after the pages became free; the threads of an idle
/// server do neither. Its own call for it is unsafe.
fn return_free_pages() {
    let thread = std::thread::Builder::new().name("free-pages".to_owned());
    let spawned = thread.spawn(|| drop(std::hint::black_box(Box::new([0_u8; 64]))));
    if let Ok(thread) = spawned {
        drop(thread.join());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn tables_may_take_twice_what_the_last_compaction_left() {
        let mut maintenance = Maintenance::default();
        assert_eq!(maintenance.table_bytes_max(10 * MIB), 22 * MIB);
        maintenance.compacted = Some(Compacted {
            table_bytes: 15 * MIB,
            data_bytes: 10 * MIB,
        });
        assert_eq!(maintenance.table_bytes_max(10 * MIB), 31 * MIB);
        // Data that was deleted is garbage, with its index entries.
        assert_eq!(maintenance.table_bytes_max(2 * MIB), 7 * MIB);
        assert_eq!(maintenance.table_bytes_max(0), MIB);
        // New data is none.
        assert_eq!(maintenance.table_bytes_max(100 * MIB), 201 * MIB);
    }
}
