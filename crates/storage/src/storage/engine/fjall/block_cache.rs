//! The engine's block cache, which keeps blocks of tables that are gone.
//!
//! lsm-tree never takes blocks out of its cache: those of a removed table stay until later ones push them out. Of little
//! data that is rewritten often, the cache would fill up to its bound with blocks that nothing can read any more. The
//! cache has no call to empty it. So entries without data push everything out: their headers claim the size of the
//! whole cache, and afterwards the size of nothing.
//!
//! Source: lsm-tree 3.1.10 (`cache`: an entry weighs what its header says), quick_cache 0.6.24 (`insert_existing`: an
//! entry that grows pushes out hot ones, too).

use lsm_tree::table::block::{BlockType, Header};
use lsm_tree::table::{Block, BlockOffset, GlobalTableId};
use lsm_tree::{Cache, Checksum, Slice};

/// Entries of a round: enough that each shard of the cache gets some.
const ENTRIES: u64 = 256;

/// Each entry claims this part of the cache, so that a round claims four times its size.
const PART: u64 = 64;

/// A block that was read often withstands some rounds.
const ROUNDS: u64 = 6;

/// A tree that does not exist: trees are numbered from 0.
const TREE: u64 = u64::MAX;

/// Empties the cache. Takes some milliseconds; blocks that readers hold stay valid.
pub(super) fn empty(cache: &Cache) {
    let claimed = u32::try_from(cache.capacity() / PART).unwrap_or(u32::MAX);
    for round in 0..ROUNDS {
        insert_all(cache, round, 0);
        insert_all(cache, round, claimed);
    }
    for round in 0..ROUNDS {
        insert_all(cache, round, 0);
    }
}

fn insert_all(cache: &Cache, round: u64, claimed_bytes: u32) {
    for number in 0..ENTRIES {
        let block = Block {
            header: Header {
                block_type: BlockType::Data,
                checksum: Checksum::from_raw(0),
                data_length: 0,
                uncompressed_length: claimed_bytes,
            },
            data: Slice::empty(),
        };
        cache.insert_block(GlobalTableId::from((TREE, number)), BlockOffset(round), block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK_BYTES: u32 = 4096;

    fn fill(cache: &Cache, tables: u64) {
        for table in 0..tables {
            for number in 0..250 {
                let block = Block {
                    header: Header {
                        block_type: BlockType::Data,
                        checksum: Checksum::from_raw(0),
                        data_length: BLOCK_BYTES,
                        uncompressed_length: BLOCK_BYTES,
                    },
                    data: Slice::from(vec![0; BLOCK_BYTES as usize]),
                };
                cache.insert_block(GlobalTableId::from((1, table)), BlockOffset(number), block);
            }
            assert!(count(cache, table..table + 1) > 0);
        }
    }

    /// How many blocks of these tables are there; makes them hot.
    fn count(cache: &Cache, tables: std::ops::Range<u64>) -> usize {
        let blocks = tables.flat_map(|table| (0..250).map(move |number| (table, number)));
        let is_there = |(table, number)| {
            cache
                .get_block(GlobalTableId::from((1, table)), BlockOffset(number))
                .is_some()
        };
        blocks.filter(|block| is_there(*block)).count()
    }

    #[test]
    fn an_emptied_cache_holds_nothing_and_takes_blocks_again() {
        for (mebibytes, tables) in [(64, 8), (64, 40), (64, 100), (1, 3), (512, 100)] {
            let cache = Cache::with_capacity_bytes(mebibytes << 20);
            fill(&cache, tables);
            let before = count(&cache, 0..tables);
            empty(&cache);
            assert_eq!(count(&cache, 0..tables), 0, "of {before} in {mebibytes} MiB");
            assert!(cache.size() < 64 * 1024, "{}", cache.size());
            fill(&cache, tables);
            assert_eq!(count(&cache, 0..tables).abs_diff(before) * 10 / before, 0);
        }
        // A cache without room stays so.
        empty(&Cache::with_capacity_bytes(0));
    }
}
