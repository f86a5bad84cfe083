//! SlateDB's settings and time limits, by where the objects are.
//!
//! | | directory, memory | bucket |
//! |---|---|---|
//! | retries of SlateDB | 3: a full disk must not hang writers | unlimited: the alternative is to reopen, and readers fail |
//! | a put of the log | 30 s | 10 s; then its commits fail, and it goes on while the lease is held |
//! | polls of manifest, compactor, clean-up | SlateDB's own | seldom; those of the owner ask the bucket nothing (known.rs) |
//! | tables that are merged at once | 8 at most | 32: one merge takes all that were written since the last |
//! | blocks that are cached | those of point reads | those of scans too: the next page finds what was read ahead |
//! | a long scan reads | a block at a time | 64 KiB at a time, then 1 MiB and four at once |
//! | a scan of several partitions | reads one after the other | reads 512 KiB of each of the next ones ahead |

use std::sync::Arc;
use std::time::Duration;

use slatedb::Settings;
use slatedb::config::{
    CompactionWorkerOptions, CompactorOptions, GarbageCollectorDirectoryOptions, GarbageCollectorOptions, ScanOptions,
    SizeTieredCompactionSchedulerOptions,
};
use slatedb::db_cache::DbCache;
use slatedb::db_cache::moka::{MokaCache, MokaCacheOptions};

use crate::storage::engine::options::{Durability, Options};

/// How often SlateDB puts its log when no commit waits for it.
const LOG_INTERVAL: Duration = Duration::from_millis(100);

/// The same if such a put would only delay a put for which a commit waits.
const LOG_SELDOM: Duration = Duration::from_secs(10);

/// Tables that may wait for the compactor: it polls seldom, and tables are written often (landing.rs). Each lift writes two; with
/// SlateDB's 8, one of several lifts in a row waited for the compactor up to ten seconds, and all writes with it.
const TABLES_WAITING_MAX: usize = 64;

/// Retries of one operation on a directory before it counts as failed.
const RETRIES_MAX: u32 = 3;

/// Time between a writer's polls of the manifest. A poll shows what its own compactor did; another writer is detected
/// at the next put.
const MANIFEST_POLL: Duration = Duration::from_secs(30);

/// Time between the polls of the compactor and of its worker. A merge waits for both.
const COMPACTOR_POLL: Duration = Duration::from_secs(15);

/// Tables or runs of tables that one merge takes at most. Small writes make a table every three seconds, and tables are merged
/// one set after another: with SlateDB's 8 they became ever more, and an opening reads a part of each.
const MERGED_MAX: usize = 32;

/// Time between looks at a compaction under way.
const COMPACTION_POLL: Duration = Duration::from_secs(5);

/// Time between clean-ups of a kind of object.
const CLEAN_UP_INTERVAL: Duration = Duration::from_secs(600);

/// Most partitions whose beginnings are read ahead at once, for all scans together. Each takes 512 KiB of the cache.
pub(super) const READS_AHEAD_MAX: usize = 32;

/// Entries after which a scan of a bucket is a long one: about 64 KiB of small rows.
pub(super) const LONG_SCAN_ENTRIES: usize = 512;

const KIB: usize = 1 << 10;

/// How long the medium may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// To put the log, or a table.
    pub(super) put_max: Duration,
    /// To open a database.
    pub(super) open_max: Duration,
    /// To close one.
    pub(super) close_max: Duration,
    /// To answer a read.
    pub(super) read_max: Duration,
}

impl Patience {
    pub(super) const fn of(is_remote: bool) -> Self {
        if is_remote {
            Self {
                put_max: Duration::from_secs(10),
                open_max: Duration::from_secs(60),
                close_max: Duration::from_secs(1),
                read_max: Duration::from_secs(10),
            }
        } else {
            Self {
                put_max: Duration::from_secs(30),
                open_max: Duration::MAX,
                close_max: Duration::from_secs(10),
                read_max: Duration::MAX,
            }
        }
    }
}

/// Objects of a bucket's log after which tables are written. An opening then reads some 200 at most: the objects put
/// meanwhile are read, too.
pub(super) const LOG_OBJECTS_MAX: u32 = 150;

/// How often the log is put when no commit waits for it.
pub(super) const fn log_interval(options: &Options, is_remote: bool) -> Duration {
    match options.durability {
        Durability::Periodic(every) => every,
        // The committer puts the log itself.
        Durability::Group if is_remote => LOG_SELDOM,
        Durability::Group | Durability::Os => LOG_INTERVAL,
    }
}

/// SlateDB's settings for a database, whose log may be the one that all share.
pub(super) fn settings(options: &Options, is_remote: bool, shares_log: bool) -> Settings {
    let flush_interval = Some(log_interval(options, is_remote));
    if !is_remote {
        return Settings {
            flush_interval,
            object_store_max_retries: Some(RETRIES_MAX),
            l0_max_ssts: TABLES_WAITING_MAX,
            l0_max_ssts_per_key: TABLES_WAITING_MAX,
            ..Settings::default()
        };
    }
    let merging = SizeTieredCompactionSchedulerOptions {
        max_compaction_sources: MERGED_MAX,
        ..SizeTieredCompactionSchedulerOptions::default()
    };
    Settings {
        flush_interval,
        manifest_poll_interval: MANIFEST_POLL,
        compactor_options: Some(CompactorOptions {
            poll_interval: COMPACTOR_POLL,
            commit_compacted_interval: COMPACTION_POLL,
            worker: Some(CompactionWorkerOptions {
                compactions_poll_interval: COMPACTOR_POLL,
                ..CompactionWorkerOptions::default()
            }),
            scheduler_options: merging.into(),
            ..CompactorOptions::default()
        }),
        garbage_collector_options: Some(clean_up(shares_log)),
        l0_max_ssts: TABLES_WAITING_MAX,
        l0_max_ssts_per_key: TABLES_WAITING_MAX,
        ..Settings::default()
    }
}

fn clean_up(shares_log: bool) -> GarbageCollectorOptions {
    let seldom = |options: Option<GarbageCollectorDirectoryOptions>| {
        options.map(|options| GarbageCollectorDirectoryOptions {
            interval: Some(CLEAN_UP_INTERVAL),
            ..options
        })
    };
    let every = GarbageCollectorOptions::default();
    GarbageCollectorOptions {
        manifest_options: seldom(every.manifest_options),
        // The shared log removes its objects itself.
        wal_options: seldom(every.wal_options).filter(|_| !shares_log),
        // Except fences, which are kept for ever (SlateDB 0.18's default).
        wal_fence_options: every.wal_fence_options.filter(|_| !shares_log),
        compacted_options: seldom(every.compacted_options),
        compactions_options: seldom(every.compactions_options),
        ..every
    }
}

/// The cache of blocks, indexes and filters for all databases of a bucket or directory. `None` means no cache.
pub(super) fn block_cache(options: &Options) -> Option<Arc<dyn DbCache>> {
    let bytes_max = u64::try_from(options.block_cache_bytes_max).unwrap_or(u64::MAX);
    if bytes_max == 0 {
        return None;
    }
    Some(Arc::new(MokaCache::new_with_opts(MokaCacheOptions {
        max_capacity: bytes_max,
        ..MokaCacheOptions::default()
    })))
}

/// The options for reading the beginning of a range of a bucket into the cache of blocks.
pub(super) fn ahead_options() -> ScanOptions {
    ScanOptions {
        read_ahead_bytes: 512 * KIB,
        cache_blocks: true,
        ..ScanOptions::default()
    }
}

/// The options for reading a range, after this many entries were read.
pub(super) fn scan_options(is_remote: bool, passed: usize) -> ScanOptions {
    let mut options = ScanOptions::default();
    if is_remote {
        options.cache_blocks = true;
        options.read_ahead_bytes = 64 * KIB;
    }
    if is_remote && passed >= LONG_SCAN_ENTRIES {
        options.read_ahead_bytes = 1024 * KIB;
        options.max_fetch_tasks = 4;
    }
    options
}
