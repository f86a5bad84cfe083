//! What the table must hold: of each row the version that was acknowledged last.

use scylla::routing::partitioner::{Partitioner, PartitionerName};
use std::sync::atomic::{AtomicU32, Ordering};

/// Rows of a partition key: the first are there from the start, the rest may come.
pub(super) const ROWS_PER_KEY: u32 = 55;
/// Of these there from the start.
pub(super) const FILLED_PER_KEY: u32 = 50;
/// One key in so many is never written again.
const STILL: u32 = 4;
/// One row in so many has a tag, which is indexed.
const TAGGED: u32 = 10;
/// Rows that have one tag, about.
const ROWS_PER_TAG: u32 = 20;

/// All rows by key and clustering key; 0 is a row that is not there. Each row is written by one client only.
#[derive(Debug)]
pub(super) struct Model {
    versions: Vec<AtomicU32>,
    /// Keys in order of their tokens.
    order: Vec<(i64, u32)>,
    next: AtomicU32,
    tags: u32,
    writers: u32,
}

/// A row's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    pub(super) k: u32,
    pub(super) c: u32,
}

impl Model {
    pub(super) fn new(rows: u32, writers: u32) -> Self {
        let keys = rows.div_ceil(FILLED_PER_KEY).max(64);
        let hasher = PartitionerName::Murmur3;
        let mut order: Vec<(i64, u32)> = (0..keys)
            .map(|k| (hasher.hash_one(&k.to_be_bytes()).value(), k))
            .collect();
        order.sort_unstable();
        let versions = (0..keys * ROWS_PER_KEY).map(|_| AtomicU32::new(0)).collect();
        Self {
            versions,
            order,
            next: AtomicU32::new(1),
            tags: (rows / TAGGED / ROWS_PER_TAG).max(1),
            writers: writers.max(1),
        }
    }

    pub(super) fn keys(&self) -> u32 {
        u32::try_from(self.order.len()).unwrap_or(u32::MAX)
    }

    pub(super) const fn writers(&self) -> u32 {
        self.writers
    }

    fn slot(&self, place: Place) -> Option<&AtomicU32> {
        self.versions.get((place.k * ROWS_PER_KEY + place.c) as usize)
    }

    /// The row's version, 0 if it is not there.
    pub(super) fn version(&self, place: Place) -> u32 {
        self.slot(place).map_or(0, |slot| slot.load(Ordering::Relaxed))
    }

    pub(super) fn set(&self, place: Place, version: u32) {
        if let Some(slot) = self.slot(place) {
            slot.store(version, Ordering::Relaxed);
        }
    }

    /// A version that no row has had.
    pub(super) fn new_version(&self) -> u32 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The tag of a row of this version; most have none.
    pub(super) fn tag(&self, place: Place, version: u32) -> Option<i32> {
        let number = place.k * ROWS_PER_KEY + place.c;
        if !number.is_multiple_of(TAGGED) || version == 0 {
            return None;
        }
        let mixed = (u64::from(number) * 31 + u64::from(version)) % u64::from(self.tags);
        i32::try_from(mixed).ok()
    }

    pub(super) fn some_tag(&self, random: &mut fastrand::Rng) -> i32 {
        i32::try_from(random.u32(..self.tags)).unwrap_or(0)
    }

    /// Whether nobody writes this key after the start.
    pub(super) const fn is_still(k: u32) -> bool {
        k.is_multiple_of(STILL)
    }

    /// Whose key it is.
    pub(super) const fn writer(&self, k: u32) -> u32 {
        k / STILL % self.writers
    }

    /// A key that this writer may write.
    pub(super) fn some_key(&self, writer: u32, random: &mut fastrand::Rng) -> u32 {
        loop {
            let k = random.u32(..self.keys());
            if !Self::is_still(k) && (self.writer(k) == writer || self.keys() / STILL < self.writers) {
                return k;
            }
        }
    }

    /// The token of some key.
    pub(super) fn some_token(&self, random: &mut fastrand::Rng) -> i64 {
        let place = random.usize(..self.order.len());
        self.order.get(place).map_or(0, |(token, _)| *token)
    }

    /// The keys whose tokens lie in a range, in order.
    pub(super) fn keys_in(&self, lower: i64, upper: i64) -> &[(i64, u32)] {
        let from = self.order.partition_point(|(token, _)| *token < lower);
        let to = self.order.partition_point(|(token, _)| *token <= upper);
        self.order.get(from..to).unwrap_or_default()
    }

    /// So many keys on both sides of a token: their lowest and highest tokens.
    pub(super) fn around(&self, token: i64, keys: usize) -> (i64, i64) {
        let middle = self.order.partition_point(|(other, _)| *other < token);
        let from = middle.saturating_sub(keys / 2);
        let to = (middle + keys / 2).min(self.order.len() - 1);
        let at = |place: usize| self.order.get(place).map_or(0, |(token, _)| *token);
        (at(from), at(to))
    }

    /// The rows that must be there of a range, in order of tokens and clustering keys.
    pub(super) fn rows_in(&self, lower: i64, upper: i64) -> impl Iterator<Item = (Place, u32)> {
        let keys = self.keys_in(lower, upper).iter();
        let places = keys.flat_map(|(_, k)| (0..ROWS_PER_KEY).map(|c| Place { k: *k, c }));
        places
            .map(|place| (place, self.version(place)))
            .filter(|(_, version)| *version != 0)
    }

    /// The rows that must be there.
    pub(super) fn live(&self) -> usize {
        self.versions
            .iter()
            .filter(|slot| slot.load(Ordering::Relaxed) != 0)
            .count()
    }

    /// The places of rows with this tag, in order of tokens.
    pub(super) fn tagged(&self, tag: i32) -> Vec<Place> {
        let rows = self.rows_in(i64::MIN, i64::MAX);
        rows.filter(|(place, version)| self.tag(*place, *version) == Some(tag))
            .map(|(place, _)| place)
            .collect()
    }
}
