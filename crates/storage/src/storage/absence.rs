//! Identifies rows that are certainly absent, so that a write of a new row needs no lookup of an old one.
//!
//! A filter over the hashes of row keys, kept by the committer in memory. It may report an absent row as present; the
//! write then pays the lookup that every write pays without the filter. It never reports a present row as absent, which
//! would lose the old row's cells:
//! - Every key of a *covered* table that the engine holds is in the filter. A key is added before its group is written,
//!   and never removed, whatever deletes the row.
//! - A table is covered if it held no row when the store was opened, according to the sizes that are written in the
//!   same group as the rows. It is also covered after a [`Fill`] has passed over all its keys. During a fill, keys are
//!   added as they are written, so the filter has both the new keys and those that the fill has passed.
//! - A reopened engine (after a full disk) may hold other groups than those acknowledged: the filter starts empty.
//!
//! A fill costs about as much for each row as a lookup. So a fill of a table begins only after as many lookups in it
//! found no row.
//!
//! **Bound.** Layers, each four times as large as the one before, until the bytes are used up. After that the last
//! layer takes all new keys and answers "perhaps" more and more often, in the end always. This makes writes slower,
//! never wrong.
//!
//! Source: the filter is the split-block Bloom filter of Apache Parquet (BloomFilter.md), with its constants.

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::quality::RandomState;

use super::key::{KeyRange, TableId, table_range};

/// Eight words, in each of which a key sets one bit: half a cache line.
type Block = [u32; 8];

const BLOCK_BYTES: usize = size_of::<Block>();

/// Multipliers that turn a key's hash into its bit of each word.
const SALTS: Block = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];

/// Keys that a block takes before the next layer is begun: about 13 bits a key, so about one absent key in two hundred
/// is reported as present.
const BLOCK_KEYS: usize = 20;

const FIRST_LAYER_BYTES: usize = 64 * 1024;
const LAYER_GROWTH: usize = 4;

#[derive(Debug)]
struct Layer {
    blocks: Vec<Block>,
    keys: usize,
}

impl Layer {
    fn new(bytes: usize) -> Self {
        Self {
            blocks: vec![[0; 8]; (bytes / BLOCK_BYTES).max(1)],
            keys: 0,
        }
    }

    fn bytes(&self) -> usize {
        self.blocks.len() * BLOCK_BYTES
    }

    fn keys_max(&self) -> usize {
        self.blocks.len() * BLOCK_KEYS
    }

    /// The index of a hash's block: its upper half, scaled to the number of blocks.
    fn block_index(&self, hash: u64) -> usize {
        let scaled = (u128::from(hash >> 32) * self.blocks.len() as u128) >> 32;
        usize::try_from(scaled).unwrap_or(0)
    }

    fn contains(&self, hash: u64, mask: &Block) -> bool {
        self.blocks
            .get(self.block_index(hash))
            .is_some_and(|block| block.iter().zip(mask).all(|(word, bit)| word & bit != 0))
    }

    fn add(&mut self, hash: u64, mask: &Block) {
        let block_index = self.block_index(hash);
        if let Some(block) = self.blocks.get_mut(block_index) {
            for (word, bit) in block.iter_mut().zip(mask) {
                *word |= bit;
            }
        }
        self.keys += 1;
    }
}

/// A key's bit of each word, by the lower half of its hash.
fn mask(hash: u64) -> Block {
    let low = u32::try_from(hash & u64::from(u32::MAX)).unwrap_or_default();
    SALTS.map(|salt| 1 << (low.wrapping_mul(salt) >> 27))
}

/// A pass over the keys of a table that held rows when the store was opened.
#[derive(Debug)]
pub(super) struct Fill {
    table: TableId,
    /// Keys still to add; all of the table's before the first step.
    pub(super) rest: KeyRange,
}

/// Which rows are certainly absent; see the module's header. A bound of 0 bytes disables the filter.
#[derive(Debug)]
pub(super) struct Absence {
    hasher: RandomState,
    bytes_max: usize,
    /// See [`super::Options::fill_searches_min`].
    fill_searches_min: u64,
    layers: Vec<Layer>,
    /// Tables that are not covered, each with the number of lookups that found no row.
    uncovered: HashMap<TableId, u64, RandomState>,
    fill: Option<Fill>,
}

impl Absence {
    pub(super) fn new(bytes_max: usize, fill_searches_min: u64) -> Self {
        Self {
            hasher: RandomState::default(),
            bytes_max,
            fill_searches_min,
            layers: Vec::new(),
            uncovered: HashMap::default(),
            fill: None,
        }
    }

    /// Empties the filter for an engine that was just opened. `tables` are exactly the tables that hold rows.
    pub(super) fn begin(&mut self, tables: impl IntoIterator<Item = TableId>) {
        self.layers.clear();
        self.uncovered = tables.into_iter().map(|table| (table, 0)).collect();
        self.fill = None;
    }

    /// Adds a row that is about to be written; returns whether it was certainly absent before.
    pub(super) fn insert(&mut self, key: &[u8]) -> bool {
        let Some(table) = table_of(key).filter(|_| self.bytes_max > 0) else {
            return false;
        };
        if self.uncovered.is_empty() {
            return self.add(key);
        }
        let is_covered = !self.uncovered.contains_key(&table);
        if is_covered || self.fill.as_ref().is_some_and(|fill| fill.table == table) {
            self.add(key) && is_covered
        } else {
            false
        }
    }

    /// Counts a lookup in the engine that found no row; `rows` is the number of rows in its table. May begin a fill.
    pub(super) fn count_miss(&mut self, key: &[u8], rows: impl FnOnce(TableId) -> u64) {
        let Some(table) = table_of(key).filter(|_| self.fill.is_none()) else {
            return;
        };
        let Some(searches) = self.uncovered.get_mut(&table) else {
            return;
        };
        *searches += 1;
        if *searches >= self.fill_searches_min && searches.is_power_of_two() {
            let (rows, searches) = (rows(table), *searches);
            if rows <= searches && self.fits(rows) {
                self.fill = Some(Fill {
                    table,
                    rest: table_range(table),
                });
            }
        }
    }

    /// The fill in progress.
    pub(super) fn fill(&self) -> Option<&Fill> {
        self.fill.as_ref()
    }

    /// Adds keys that a step of the fill read, in order; `rest` is the range still to read. `None` means the fill is
    /// complete: the table is covered from now on.
    pub(super) fn fill_step<K: AsRef<[u8]>>(&mut self, keys: impl IntoIterator<Item = K>, rest: Option<KeyRange>) {
        for key in keys {
            self.add(key.as_ref());
        }
        match (rest, self.fill.take()) {
            (Some(rest), Some(fill)) => self.fill = Some(Fill { rest, ..fill }),
            (None, Some(fill)) => drop(self.uncovered.remove(&fill.table)),
            (_, None) => {}
        }
    }

    /// Abandons the fill in progress; its table stays uncovered.
    pub(super) fn drop_fill(&mut self) {
        if let Some(searches) = self.fill.take().and_then(|fill| self.uncovered.get_mut(&fill.table)) {
            *searches = 0;
        }
    }

    /// Adds a key; returns whether it was certainly absent.
    fn add(&mut self, key: &[u8]) -> bool {
        let hash = self.hasher.hash_one(key);
        let mask = mask(hash);
        if self.layers.iter().any(|layer| layer.contains(hash, &mask)) {
            return false;
        }
        if self.layers.last().is_none_or(|last| last.keys >= last.keys_max()) {
            self.add_layer();
        }
        if let Some(last) = self.layers.last_mut() {
            last.add(hash, &mask);
        }
        true
    }

    fn add_layer(&mut self) {
        let left = self.bytes_max.saturating_sub(self.bytes());
        let bytes = match self.layers.last() {
            None => FIRST_LAYER_BYTES.min(left),
            Some(last) => last.bytes().saturating_mul(LAYER_GROWTH).min(left),
        };
        // Too few bytes for a useful layer: the last one takes the rest.
        if self.layers.is_empty() || bytes >= FIRST_LAYER_BYTES {
            self.layers.push(Layer::new(bytes));
        }
    }

    /// Bytes in use.
    pub(super) fn bytes(&self) -> usize {
        self.layers.iter().map(Layer::bytes).sum()
    }

    fn fits(&self, rows: u64) -> bool {
        let blocks = self.bytes_max.saturating_sub(self.bytes()) / BLOCK_BYTES;
        rows <= (blocks * BLOCK_KEYS) as u64
    }
}

/// The table of a row's key. `None` means the key is too short.
fn table_of(key: &[u8]) -> Option<TableId> {
    key.first_chunk::<4>().map(|table| u32::from_be_bytes(*table))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::storage::key::{partition_prefix, row_key};

    const FILL_SEARCHES_MIN: u64 = 2;

    fn key(table: TableId, n: u64) -> Vec<u8> {
        row_key(&partition_prefix(table, n.cast_signed(), &n.to_be_bytes()), b"")
    }

    fn filled(bytes_max: usize, keys: u64) -> Absence {
        let mut absence = Absence::new(bytes_max, FILL_SEARCHES_MIN);
        for n in 0..keys {
            absence.insert(&key(1, n));
        }
        absence
    }

    #[test]
    fn new_keys_are_mostly_known_to_be_absent() {
        let mut absence = filled(8 << 20, 500_000);
        let perhaps = (500_000..600_000).filter(|n| !absence.insert(&key(1, *n))).count();
        assert!(perhaps < 3_000, "{perhaps} of 100,000");
    }

    #[test]
    fn it_stays_within_its_bound_and_is_never_wrong() {
        for bytes_max in [0, 1, 100, 64 * 1024, 200 * 1024, 400 * 1024] {
            let mut absence = filled(bytes_max, 300_000);
            assert!(absence.bytes() <= bytes_max.max(BLOCK_BYTES), "{}", absence.bytes());
            assert!((0..300_000).all(|n| !absence.insert(&key(1, n))));
        }
    }

    #[test]
    fn a_table_with_rows_is_covered_only_after_its_fill() {
        let mut absence = Absence::new(1 << 20, FILL_SEARCHES_MIN);
        absence.begin([1]);
        assert!(absence.insert(&key(2, 0)) && !absence.insert(&key(1, 0)));
        for n in 0..FILL_SEARCHES_MIN {
            absence.count_miss(&key(1, n), |_| FILL_SEARCHES_MIN);
        }
        assert_eq!(absence.fill().unwrap().rest, table_range(1));
        assert!(!absence.insert(&key(1, 5)));
        absence.fill_step([key(1, 7)], Some(table_range(1)));
        assert!(!absence.insert(&key(1, 6)));
        absence.fill_step([key(1, 8)], None);
        assert!(absence.fill().is_none());
        assert!([5, 6, 7, 8].iter().all(|n| !absence.insert(&key(1, *n))));
        assert!(absence.insert(&key(1, 9)) && !absence.insert(&key(1, 9)));
    }

    #[test]
    fn a_large_table_is_not_filled_for_few_searches_nor_past_the_bound() {
        let mut absence = Absence::new(64 * 1024, FILL_SEARCHES_MIN);
        absence.begin([1, 2]);
        for n in 0..4 * FILL_SEARCHES_MIN {
            absence.count_miss(&key(1, n), |_| 1 << 40);
        }
        assert!(absence.fill().is_none());
        for n in 0..1 << 17 {
            absence.count_miss(&key(2, n), |_| 1 << 16);
        }
        assert!(absence.fill().is_none());
    }

    /// What happens to a store of three tables.
    #[derive(Clone, Debug)]
    enum Step {
        Write(u32, u64),
        Open,
        Fill(usize),
    }

    proptest! {
        #[test]
        fn what_is_there_is_never_called_absent(
            bytes_max in prop_oneof![Just(0_usize), Just(64), 1_usize..1 << 17],
            steps in prop::collection::vec(
                prop_oneof![
                    20 => (0_u32..3, 0_u64..64).prop_map(|(table, n)| Step::Write(table, n)),
                    1 => Just(Step::Open),
                    2 => (0_usize..40).prop_map(Step::Fill),
                ],
                0..400,
            ),
        ) {
            let mut absence = Absence::new(bytes_max, FILL_SEARCHES_MIN);
            let mut there = BTreeSet::new();
            for step in steps {
                match step {
                    Step::Write(table, n) => {
                        let key = key(table, n);
                        let is_absent = absence.insert(&key);
                        prop_assert!(!(is_absent && there.contains(&key)));
                        if !there.contains(&key) && !is_absent {
                            for _ in 0..FILL_SEARCHES_MIN {
                                absence.count_miss(&key, |_| 1);
                            }
                        }
                        there.insert(key);
                    }
                    Step::Open => {
                        let tables: BTreeSet<TableId> = there.iter().filter_map(|key| table_of(key)).collect();
                        absence.begin(tables);
                    }
                    Step::Fill(keys_max) => {
                        let Some(rest) = absence.fill().map(|fill| fill.rest.clone()) else { continue };
                        let keys: Vec<_> = there.iter().filter(|key| rest.contains(key)).take(keys_max).cloned().collect();
                        let is_done = keys.len() < keys_max;
                        let rest = match keys.last() {
                            _ if is_done => None,
                            None => Some(rest),
                            Some(last) => Some(KeyRange { start: std::ops::Bound::Excluded(last.clone()), end: rest.end }),
                        };
                        absence.fill_step(keys, rest);
                    }
                }
            }
        }
    }
}
