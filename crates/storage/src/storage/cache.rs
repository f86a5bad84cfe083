//! The row cache: rows as they are stored, by key, for point reads of the newest snapshots.
//!
//! **Agreement with the engine.** The committer applies a group to the engine, then to the cache, and only then
//! publishes the snapshot that shows it. An entry carries the sequence of the last commit that may have changed it.
//! Only snapshots that are not older read it. A shard carries the sequence of the last commit that changed any of its
//! keys. A reader may add a row only if its snapshot is not older than that: it never adds a value that a commit has
//! replaced meanwhile. So two published snapshots never have one number, also not before and after a reopening.
//!
//! **Bound.** Each shard has an equal part of the bytes. A full shard evicts by CLOCK: an entry that was read since the
//! last pass stays for one more pass; any other is removed.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use foldhash::quality::RandomState;

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

impl Entry {
    fn bytes(&self) -> usize {
        entry_bytes(&self.key, self.value.as_ref())
    }
}

fn entry_bytes(key: &[u8], value: Option<&Bytes>) -> usize {
    key.len() + value.map_or(0, Bytes::len) + ENTRY_BYTES
}

/// Passes a hash on as its own hash, so that a request hashes its key once.
#[derive(Debug, Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[derive(Debug, Default)]
struct Shard {
    /// Positions in `entries` by the hash of the key. Of two keys with one hash the later one replaces the earlier one.
    positions: HashMap<u64, usize, BuildHasherDefault<Hashed>>,
    entries: Vec<Entry>,
    bytes: usize,
    hand: usize,
    /// The last commit that changed a key of this shard.
    touched: CommitSeq,
}

/// The row cache. With a bound of 0 bytes it caches nothing.
#[derive(Debug)]
pub(super) struct RowCache {
    shards: Box<[Mutex<Shard>]>,
    shard_bytes_max: usize,
    hasher: RandomState,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl RowCache {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            shard_bytes_max: bytes_max / SHARDS,
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
        if self.shard_bytes_max == 0 {
            return None;
        }
        let found = self.shard(key).and_then(|(mut shard, hash)| shard.read(hash, key, at));
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }

    /// The current row, if it is cached. For the committer: not counted as a hit or a miss.
    pub(super) fn peek(&self, key: &[u8]) -> Option<Option<Bytes>> {
        if self.shard_bytes_max == 0 {
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
            shard.evict(self.shard_bytes_max);
        }
    }

    /// Applies a commit's change of a row. Only rows that are cached already stay so: a written row is not always read.
    pub(super) fn apply(&self, key: &[u8], value: Option<&Bytes>, seq: CommitSeq) {
        let Some((mut shard, hash)) = self.shard(key) else {
            return;
        };
        shard.touched = seq;
        if shard.entry(hash, key).is_some() {
            if self.is_too_large(key, value) {
                shard.remove(hash);
            } else {
                shard.put(hash, key, value.cloned(), seq);
                shard.evict(self.shard_bytes_max);
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
        if let Some((mut shard, hash)) = self.shard(key) {
            shard.touched = seq;
            if shard.entry(hash, key).is_some() {
                shard.remove(hash);
            }
        }
    }

    /// Removes all entries; rows read at snapshots before `seq` are no longer accepted.
    pub(super) fn clear(&self, seq: CommitSeq) {
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
        self.shards
            .iter()
            .map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner).bytes)
            .sum()
    }

    fn is_too_large(&self, key: &[u8], value: Option<&Bytes>) -> bool {
        entry_bytes(key, value) > self.shard_bytes_max / LARGEST_PART
    }
}

impl Shard {
    #[inline]
    fn entry(&mut self, hash: u64, key: &[u8]) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(*self.positions.get(&hash)?)?;
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
        if let Some(entry) = self.entry(hash, key) {
            let before = entry.bytes();
            entry.value = value;
            entry.seq = seq;
            let after = entry.bytes();
            self.bytes = self.bytes - before + after;
            return;
        }
        self.remove(hash);
        let entry = Entry {
            hash,
            key: Box::from(key),
            value,
            seq,
            was_read: false,
        };
        self.bytes += entry.bytes();
        self.positions.insert(hash, self.entries.len());
        self.entries.push(entry);
    }

    /// Removes the entry of a hash, if there is one.
    fn remove(&mut self, hash: u64) {
        if let Some(position) = self.positions.remove(&hash) {
            let removed = self.entries.swap_remove(position);
            self.bytes -= removed.bytes();
            if let Some(moved) = self.entries.get(position) {
                self.positions.insert(moved.hash, position);
            }
        }
    }

    fn evict(&mut self, bytes_max: usize) {
        while self.bytes > bytes_max && !self.entries.is_empty() {
            self.hand = if self.hand >= self.entries.len() { 0 } else { self.hand };
            let Some(entry) = self.entries.get_mut(self.hand) else {
                return;
            };
            if entry.was_read {
                entry.was_read = false;
                self.hand += 1;
            } else {
                let hash = entry.hash;
                self.remove(hash);
            }
        }
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
        assert_eq!((shard.entries.len(), shard.positions.len()), (1, 1));
        shard.remove(7);
        assert_eq!((shard.bytes, shard.entries.len()), (0, 0));
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
