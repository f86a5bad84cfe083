//! The row cache: rows as they are stored, for reads at the newest snapshots. Single rows by key, for point reads; and runs
//! of adjacent rows (`cache/runs.rs`), for scans inside one logical partition.
//!
//! **Agreement with the engine.** The committer applies a group to the engine, then to the cache, and only then
//! publishes the snapshot that shows it. An entry carries the sequence of the last commit that may have changed it.
//! Only snapshots that are not older read it. A shard carries the sequence of the last commit that changed any of its
//! keys. A reader may add a row only if its snapshot is not older than that: it never adds a value that a commit has
//! replaced meanwhile. So two published snapshots never have one number, also not before and after a reopening.
//!
//! **Bound.** Runs take up to half of the bytes, single rows the rest. Each shard has an equal part, and evicts by CLOCK.

mod clock;
mod runs;
mod slice;

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use foldhash::quality::RandomState;

use self::clock::{Clock, Kept};
use self::runs::{Run, Runs, TableToken};
pub(super) use self::slice::{Next, Slice};

use super::CommitSeq;
#[cfg(feature = "slate")]
use super::row;

/// Shards; a power of two. More than threads, so that two threads rarely use the same shard.
const SHARDS: usize = 64;

/// Bytes that an entry costs in addition to its key and value: map slot, clock slot, reference counts. Measured
/// roughly, rounded up.
const ENTRY_BYTES: usize = 160;

/// An entry larger than this part of its shard is not cached: it would evict everything else.
const LARGEST_PART: usize = 4;

#[derive(Debug)]
struct Entry {
    hash: u64,
    key: Box<[u8]>,
    /// `None` means there is no such row.
    value: Option<Bytes>,
    /// The last commit that may have changed it.
    seq: CommitSeq,
    was_read: bool,
}

impl Kept for Entry {
    fn hash(&self) -> u64 {
        self.hash
    }

    fn bytes(&self) -> usize {
        entry_bytes(&self.key, self.value.as_ref())
    }

    fn was_read(&mut self) -> &mut bool {
        &mut self.was_read
    }
}

fn entry_bytes(key: &[u8], value: Option<&Bytes>) -> usize {
    key.len() + value.map_or(0, Bytes::len) + ENTRY_BYTES
}

#[derive(Debug, Default)]
struct Shard {
    entries: Clock<Entry>,
    /// The last commit that changed a key of this shard.
    touched: CommitSeq,
}

/// The row cache. With a bound of 0 bytes it caches nothing.
#[derive(Debug)]
pub(super) struct RowCache {
    shards: Box<[Mutex<Shard>]>,
    runs: Runs,
    bytes_max: usize,
    /// The shard that next gives back what runs have taken.
    gives_next: AtomicUsize,
    hasher: RandomState,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl RowCache {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            runs: Runs::new(bytes_max / 2),
            bytes_max,
            gives_next: AtomicUsize::new(0),
            hasher: RandomState::default(),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// The shard of a key, and the hash under which it has the key.
    fn shard(&self, key: &[u8]) -> Option<(MutexGuard<'_, Shard>, u64)> {
        let hash = self.hasher.hash_one(key);
        // Bits from the middle: the shard's own map uses the low and the high ones.
        let shard = usize::try_from(hash >> 40).unwrap_or(0) % SHARDS;
        let shard = self.shards.get(shard)?;
        Some((shard.lock().unwrap_or_else(PoisonError::into_inner), hash))
    }

    /// The row at a snapshot, if it is cached: `Some(None)` means the row does not exist. `None` means not cached.
    pub(super) fn get(&self, key: &[u8], at: CommitSeq) -> Option<Option<Bytes>> {
        if self.bytes_max == 0 {
            return None;
        }
        let found = self.shard(key).and_then(|(mut shard, hash)| shard.read(hash, key, at));
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }

    /// The current row, if it is cached. For the committer: not counted as a hit or a miss.
    pub(super) fn peek(&self, key: &[u8]) -> Option<Option<Bytes>> {
        if self.bytes_max == 0 {
            return None;
        }
        let (mut shard, hash) = self.shard(key)?;
        shard.entry(hash, key).map(|entry| entry.value.clone())
    }

    /// Caches a row read from the engine at a snapshot, unless a commit came between.
    pub(super) fn add(&self, key: &[u8], value: Option<Bytes>, at: CommitSeq) {
        if self.is_too_large(key, value.as_ref()) {
            return;
        }
        if let Some((mut shard, hash)) = self.shard(key)
            && shard.touched <= at
        {
            // No commit changed the shard between `touched` and `at`, so the value is valid from `touched` on.
            let seq = shard.touched;
            shard.put(hash, key, value, seq);
            shard.entries.evict(self.shard_bytes_max());
        }
    }

    /// Keeps a run read from the engine at a snapshot, unless a commit came between.
    fn add_run(&self, token: TableToken, run: Run, at: CommitSeq) {
        self.runs.add(token, run, at);
        // Runs grow by less in the time that it takes to come round than one of them takes.
        let shard = self.gives_next.fetch_add(1, Ordering::Relaxed) % SHARDS;
        if let Some(shard) = self.shards.get(shard) {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.entries.evict(self.shard_bytes_max());
        }
    }

    /// Applies a commit's change of a row. Only rows that are cached already stay so: a written row is not always read.
    pub(super) fn apply(&self, key: &[u8], value: Option<&Bytes>, seq: CommitSeq) {
        self.runs.forget(key, seq);
        let Some((mut shard, hash)) = self.shard(key) else {
            return;
        };
        shard.touched = seq;
        if shard.entry(hash, key).is_some() {
            if self.is_too_large(key, value) {
                shard.entries.remove(hash);
            } else {
                shard.put(hash, key, value.cloned(), seq);
                shard.entries.evict(self.shard_bytes_max());
            }
        }
    }

    /// Applies a partial row that a commit merged into a row without reading it.
    #[cfg(feature = "slate")]
    pub(super) fn merge(&self, key: &[u8], fragment: &Bytes, seq: CommitSeq) {
        let merged = match self.peek(key) {
            Some(Some(old)) => row::merge_encoded(&old, fragment).ok(),
            Some(None) => Some(fragment.clone()),
            None => None,
        };
        match merged {
            Some(merged) => self.apply(key, Some(&merged), seq),
            None => self.forget(key, seq),
        }
    }

    /// Removes a row that a commit changed to a value that the committer does not have.
    #[cfg(feature = "slate")]
    fn forget(&self, key: &[u8], seq: CommitSeq) {
        self.runs.forget(key, seq);
        if let Some((mut shard, hash)) = self.shard(key) {
            shard.touched = seq;
            if shard.entry(hash, key).is_some() {
                shard.entries.remove(hash);
            }
        }
    }

    /// Removes all entries; rows read at snapshots before `seq` are no longer accepted.
    pub(super) fn clear(&self, seq: CommitSeq) {
        self.runs.clear(seq);
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            *shard = Shard {
                touched: seq,
                ..Shard::default()
            };
        }
    }

    /// Point reads answered from the cache, and those that went to the engine.
    pub(super) fn hits_and_misses(&self) -> (u64, u64) {
        (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed))
    }

    /// Bytes cached now.
    pub(super) fn bytes(&self) -> usize {
        let of_shard = |shard: &Mutex<Shard>| shard.lock().unwrap_or_else(PoisonError::into_inner).entries.bytes();
        self.shards.iter().map(of_shard).sum::<usize>() + self.runs.bytes()
    }

    /// Most bytes of a shard, as long as runs take what they do.
    fn shard_bytes_max(&self) -> usize {
        self.bytes_max.saturating_sub(self.runs.bytes()) / SHARDS
    }

    fn is_too_large(&self, key: &[u8], value: Option<&Bytes>) -> bool {
        entry_bytes(key, value) > self.bytes_max / SHARDS / LARGEST_PART
    }
}

impl Shard {
    #[inline]
    fn entry(&mut self, hash: u64, key: &[u8]) -> Option<&mut Entry> {
        let entry = self.entries.get(hash)?;
        (*entry.key == *key).then_some(entry)
    }

    #[inline]
    fn read(&mut self, hash: u64, key: &[u8], at: CommitSeq) -> Option<Option<Bytes>> {
        let entry = self.entry(hash, key)?;
        if entry.seq > at {
            return None;
        }
        entry.was_read = true;
        Some(entry.value.clone())
    }

    fn put(&mut self, hash: u64, key: &[u8], value: Option<Bytes>, seq: CommitSeq) {
        if self.entry(hash, key).is_some() {
            self.entries.change(hash, |entry| {
                entry.value = value;
                entry.seq = seq;
            });
            return;
        }
        self.entries.put(Entry {
            hash,
            key: Box::from(key),
            value,
            seq,
            was_read: false,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &'static str) -> Option<Bytes> {
        Some(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn two_keys_with_one_hash_are_not_taken_for_each_other() {
        let mut shard = Shard::default();
        shard.put(7, b"a", value("of a"), CommitSeq(1));
        assert_eq!(shard.read(7, b"b", CommitSeq(1)), None);
        shard.put(7, b"b", value("of b"), CommitSeq(1));
        assert_eq!(shard.read(7, b"a", CommitSeq(1)), None);
        assert_eq!(shard.read(7, b"b", CommitSeq(1)), Some(value("of b")));
        shard.entries.remove(7);
        assert_eq!(shard.entries.bytes(), 0);
    }

    #[test]
    fn what_was_read_before_a_commit_is_not_kept_after_it() {
        let cache = RowCache::new(1 << 20);
        cache.apply(b"k", value("new").as_ref(), CommitSeq(2));
        cache.add(b"k", value("old"), CommitSeq(1));
        assert_eq!(cache.get(b"k", CommitSeq(2)), None);
        cache.add(b"k", value("new"), CommitSeq(2));
        assert_eq!(cache.get(b"k", CommitSeq(2)), Some(value("new")));
    }

    #[test]
    fn an_older_snapshot_does_not_see_a_newer_row() {
        let cache = RowCache::new(1 << 20);
        cache.add(b"k", None, CommitSeq(1));
        assert_eq!(cache.get(b"k", CommitSeq(1)), Some(None));
        cache.apply(b"k", value("new").as_ref(), CommitSeq(2));
        assert_eq!(cache.get(b"k", CommitSeq(1)), None);
        assert_eq!(cache.get(b"k", CommitSeq(2)), Some(value("new")));
        cache.apply(b"k", None, CommitSeq(3));
        assert_eq!(cache.get(b"k", CommitSeq(3)), Some(None));
    }

    #[test]
    fn it_stays_within_its_bound_and_keeps_what_is_read() {
        let bytes_max = SHARDS * 4096;
        let cache = RowCache::new(bytes_max);
        cache.add(b"hot", value("row"), CommitSeq(0));
        for n in 0_u32..20_000 {
            cache.add(&n.to_be_bytes(), value("some row"), CommitSeq(0));
            assert!(n % 64 != 0 || cache.get(b"hot", CommitSeq(0)).is_some(), "after {n}");
        }
        assert!(
            cache.bytes() <= bytes_max && cache.bytes() > bytes_max / 2,
            "{}",
            cache.bytes()
        );
        cache.add(b"huge", Some(Bytes::from(vec![0; 4096])), CommitSeq(0));
        assert_eq!(cache.get(b"huge", CommitSeq(0)), None);
        cache.clear(CommitSeq(1));
        assert_eq!((cache.bytes(), cache.get(b"hot", CommitSeq(1))), (0, None));
    }

    #[test]
    fn a_bound_of_nothing_keeps_nothing() {
        let cache = RowCache::new(0);
        cache.add(b"k", None, CommitSeq(0));
        assert_eq!(cache.get(b"k", CommitSeq(0)), None);
    }
}
