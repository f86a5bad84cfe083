//! A map by hash with a bound in bytes, which evicts by CLOCK: an entry that was read since the last pass stays for one
//! more pass; any other is removed.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// An entry of a [`Clock`].
pub(super) trait Kept {
    /// The hash by which it is found.
    fn hash(&self) -> u64;
    /// Bytes that it takes.
    fn bytes(&self) -> usize;
    /// Whether it was read since the last pass.
    fn was_read(&mut self) -> &mut bool;
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

#[derive(Debug)]
pub(super) struct Clock<K> {
    /// Positions in `entries`. Of two entries with one hash the later one replaces the earlier one.
    positions: HashMap<u64, usize, BuildHasherDefault<Hashed>>,
    entries: Vec<K>,
    bytes: usize,
    hand: usize,
}

impl<K> Default for Clock<K> {
    fn default() -> Self {
        Self {
            positions: HashMap::default(),
            entries: Vec::new(),
            bytes: 0,
            hand: 0,
        }
    }
}

impl<K: Kept> Clock<K> {
    /// Bytes of all entries.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The entry of a hash. Changes that change its bytes go through [`Clock::change`].
    #[inline]
    pub(super) fn get(&mut self, hash: u64) -> Option<&mut K> {
        self.entries.get_mut(*self.positions.get(&hash)?)
    }

    /// Changes the entry of a hash, if there is one.
    pub(super) fn change(&mut self, hash: u64, change: impl FnOnce(&mut K)) {
        let Some(entry) = self.get(hash) else { return };
        let before = entry.bytes();
        change(entry);
        let after = entry.bytes();
        self.bytes = self.bytes - before + after;
    }

    /// Adds an entry, in place of one with the same hash.
    pub(super) fn put(&mut self, entry: K) {
        self.remove(entry.hash());
        self.bytes += entry.bytes();
        self.positions.insert(entry.hash(), self.entries.len());
        self.entries.push(entry);
    }

    /// Removes the entry of a hash, if there is one.
    pub(super) fn remove(&mut self, hash: u64) {
        if let Some(position) = self.positions.remove(&hash) {
            let removed = self.entries.swap_remove(position);
            self.bytes -= removed.bytes();
            if let Some(moved) = self.entries.get(position) {
                self.positions.insert(moved.hash(), position);
            }
        }
    }

    /// Removes entries until no more than `bytes_max` are left.
    pub(super) fn evict(&mut self, bytes_max: usize) {
        while self.bytes > bytes_max && !self.entries.is_empty() {
            self.hand = if self.hand >= self.entries.len() { 0 } else { self.hand };
            let Some(entry) = self.entries.get_mut(self.hand) else {
                return;
            };
            if std::mem::take(entry.was_read()) {
                self.hand += 1;
            } else {
                let hash = entry.hash();
                self.remove(hash);
            }
        }
    }
}
