//! Settings of a store, with their units and bounds.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "simulation")]
use super::simulated::Medium;
use crate::storage::Error;
use crate::storage::bucket::Reach;
use crate::storage::faults::{Breaks, Faults, ReadFaults};
use crate::storage::feed::Positions;
use crate::storage::identity::AskedProfile;
use crate::storage::times::Times;
use helenus_base::clock::Timestamps;

/// When a commit is answered, on engines that keep data on a medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// After the medium has it: one sync for each group of waiting commits. Survives loss of power.
    #[default]
    Group,
    /// After the operating system has it; a sync at this interval. Survives the end of the process; loss of power may
    /// lose this much time.
    Periodic(Duration),
    /// After the operating system has it, which syncs at its own pace. Survives the end of the process.
    Os,
}

impl fmt::Display for Durability {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Group => out.write_str("group"),
            Self::Periodic(every) => write!(out, "periodic:{}", every.as_millis()),
            Self::Os => out.write_str("os"),
        }
    }
}

impl FromStr for Durability {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let unknown = || Error::UnknownDurability { text: text.to_owned() };
        match text.split_once(':') {
            None if text == "group" => Ok(Self::Group),
            None if text == "os" => Ok(Self::Os),
            Some(("periodic", millis)) => {
                let millis = millis
                    .parse::<u64>()
                    .ok()
                    .filter(|millis| *millis > 0)
                    .ok_or_else(unknown)?;
                Ok(Self::Periodic(Duration::from_millis(millis)))
            }
            _ => Err(unknown()),
        }
    }
}

/// A folder on local disk for parts of a bucket's tables. It may be lost without harm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketCache {
    /// The folder, of which only `helenus.lock` and `helenus-parts` are used.
    pub folder: PathBuf,
    /// Most bytes of its parts.
    pub bytes_max: u64,
}

/// Settings of a store.
#[derive(Clone)]
pub struct Options {
    /// When a commit is answered.
    pub durability: Durability,
    /// Most bytes of rows and keys cached for reads; 0 disables the cache. The memory engine ignores it.
    pub row_cache_bytes_max: usize,
    /// Most bytes of the absence filter, which lets new rows be written without a search for old ones; 0 disables it.
    /// `file:` only.
    pub key_filter_bytes_max: usize,
    /// Searches of a table that find nothing before the filter is filled with its rows, however small it is.
    pub fill_searches_min: u64,
    /// Keys that one step of the fill reads: about a millisecond, then commits proceed.
    pub fill_step_keys: usize,
    /// Most bytes of an engine's blocks kept decoded.
    pub block_cache_bytes_max: usize,
    /// Most bytes of a memtable before it is flushed. `None` means the engine's own bound. `file:` only.
    pub memtable_bytes_max: Option<u64>,
    /// Most commits that wait for the committer; others wait before the queue.
    pub commit_queue_batches_max: usize,
    /// Most bytes of commits that wait for the committer; a larger batch waits until it is alone.
    pub commit_queue_bytes_max: usize,
    /// Most bytes that one group writes before it is synced.
    pub commit_group_bytes_max: usize,
    /// Most bytes of one batch; larger ones are refused.
    pub batch_bytes_max: usize,
    /// Most side stores of moved partitions. Each may use as much as this one: caches, queue, log, threads or tasks.
    pub stores_beside_max: usize,
    /// Side stores over which tables are spread; 0 means that their rows lie in the main store. Caches are divided among
    /// them. `None` means those that there are, and none in a new directory or bucket.
    pub data_stores: Option<usize>,
    /// Receives the time marks of opened stores, and supplies those that commits record. `None` means a store keeps its
    /// mark.
    pub timestamps: Option<Timestamps>,
    /// The positions of the change feed, shared by the stores of a server.
    pub positions: Positions,
    /// Whether a used store whose data is missing is started afresh; the remains are renamed.
    pub create: bool,
    /// The number that a new database in a directory takes as its own; see `identity.rs`. A bucket takes that of its
    /// [`Reach`].
    pub draw: u64,
    /// The profile, recorded in the first file of a directory or bucket. `None` means that any is accepted.
    pub profile: Option<AskedProfile>,
    /// Whether the store must exist: it is not created, even if it was never used.
    pub must_exist: bool,
    /// Whether the original files are kept until [`crate::storage::Store::accept`]: nothing is written before, and a store that
    /// is closed before is left as it was. Does not apply to a store that the opening creates. `file:` only.
    pub is_accepted_later: bool,
    /// Whether each table is read whole and compared with the checksum that the engine's manifest has of it. A diagnosis does:
    /// it reads all rows anyway. `file:` only.
    pub checks_whole_tables: bool,
    /// Whether a directory that is the target of a restore may be opened, or a new database of a bucket is marked as such: only
    /// the restore itself sets it ([`crate::storage::Restoring`], [`crate::storage::bucket::end_restore`]).
    pub is_restored_into: bool,
    /// Disk space kept free for statements that free space ([`crate::storage::Reserve`]), in bytes; 0 means none. Ignored in
    /// memory and in a bucket.
    pub disk_reserve_bytes: u64,
    /// How a bucket is reached; ignored elsewhere.
    pub reach: Arc<Reach>,
    /// Where parts of a bucket's tables are kept on local disk. `None` means nowhere. Ignored elsewhere.
    pub bucket_cache: Option<BucketCache>,
    /// How long a store that is dropped is kept in a bucket. Ignored elsewhere.
    pub bucket_removal_delay: Duration,
    /// Fault injection for tests; `None` in production.
    pub faults: Option<Faults>,
    /// Fault injection for tests; `None` in production. `file:` only.
    pub read_faults: Option<ReadFaults>,
    /// Broken invariants for tests; `None` in production. `file:` only.
    pub breaks: Option<Breaks>,
    /// The simulated medium of a `memory:` store. `None` means plain memory.
    #[cfg(feature = "simulation")]
    pub medium: Option<Medium>,
}

impl Default for Options {
    fn default() -> Self {
        const MIB: usize = 1 << 20;
        Self {
            durability: Durability::default(),
            row_cache_bytes_max: 64 * MIB,
            key_filter_bytes_max: 64 * MIB,
            fill_searches_min: 1024,
            fill_step_keys: 512,
            block_cache_bytes_max: 64 * MIB,
            memtable_bytes_max: None,
            commit_queue_batches_max: 16 * 1024,
            commit_queue_bytes_max: 64 * MIB,
            commit_group_bytes_max: 4 * MIB,
            batch_bytes_max: 64 * MIB,
            stores_beside_max: 8,
            data_stores: None,
            timestamps: None,
            positions: Positions::default(),
            create: false,
            draw: 0,
            profile: None,
            must_exist: false,
            is_accepted_later: false,
            checks_whole_tables: false,
            is_restored_into: false,
            disk_reserve_bytes: 0,
            reach: Arc::default(),
            bucket_cache: None,
            bucket_removal_delay: Duration::ZERO,
            faults: None,
            read_faults: None,
            breaks: None,
            #[cfg(feature = "simulation")]
            medium: None,
        }
    }
}

impl Options {
    /// Stores among which caches are divided, before it is known how many there are: those of a bucket that share one log, without a
    /// given number. Too many make the caches smaller, too few make them exceed their bounds.
    pub const SHARERS_OF_LOG: usize = 8;

    /// The times that a store takes and gives.
    pub(in crate::storage) fn times(&self) -> Times {
        Times {
            timestamps: self.timestamps.clone(),
            positions: self.positions.clone(),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Options")
            .field("durability", &self.durability)
            .field("row_cache_bytes_max", &self.row_cache_bytes_max)
            .field("key_filter_bytes_max", &self.key_filter_bytes_max)
            .field("fill_searches_min", &self.fill_searches_min)
            .field("fill_step_keys", &self.fill_step_keys)
            .field("block_cache_bytes_max", &self.block_cache_bytes_max)
            .field("memtable_bytes_max", &self.memtable_bytes_max)
            .field("commit_queue_batches_max", &self.commit_queue_batches_max)
            .field("commit_queue_bytes_max", &self.commit_queue_bytes_max)
            .field("commit_group_bytes_max", &self.commit_group_bytes_max)
            .field("batch_bytes_max", &self.batch_bytes_max)
            .field("stores_beside_max", &self.stores_beside_max)
            .field("data_stores", &self.data_stores)
            .field("create", &self.create)
            .field("must_exist", &self.must_exist)
            .field("is_accepted_later", &self.is_accepted_later)
            .field("is_restored_into", &self.is_restored_into)
            .field("reach", &self.reach)
            .field("bucket_cache", &self.bucket_cache)
            .field("bucket_removal_delay", &self.bucket_removal_delay)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durability_reads_as_it_prints() {
        for text in ["group", "os", "periodic:50"] {
            assert_eq!(text.parse::<Durability>().unwrap().to_string(), text);
        }
        for text in ["", "periodic", "periodic:0", "periodic:x", "sometimes"] {
            assert!(text.parse::<Durability>().is_err(), "{text}");
        }
    }
}
