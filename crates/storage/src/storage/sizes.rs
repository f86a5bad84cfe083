//! Sizes of a store by table: the committer updates them as it writes, so that reading them costs nothing.

use std::ops::Bound;

use super::key::{KeyRange, TableId};

/// The size of a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Bytes of keys and values, before the engine's compression and its log.
    pub bytes: u64,
    /// Rows, static rows included; deleted and expired ones too until they are cleaned up.
    pub rows: u64,
    /// Whether the figures are exact. A part of a table is estimated by its share of the ring, because hashed keys fill
    /// the ring evenly.
    pub is_exact: bool,
}

/// The size of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TableSize {
    pub(super) bytes: u64,
    pub(super) rows: u64,
}

impl TableSize {
    /// Counts the change of one key's value; lengths in bytes, `None` means no value.
    pub(super) fn count(&mut self, key_len: usize, before: Option<usize>, after: Option<usize>) {
        let cost = |value_len: usize| (key_len + value_len) as u64;
        if let Some(before) = before {
            self.bytes = self.bytes.saturating_sub(cost(before));
            self.rows = self.rows.saturating_sub(1);
        }
        if let Some(after) = after {
            self.bytes = self.bytes.saturating_add(cost(after));
            self.rows = self.rows.saturating_add(1);
        }
    }
}

/// Sizes of all tables; cheap to clone, so that a snapshot has its own.
#[derive(Clone, Debug, Default)]
pub(super) struct Sizes(imbl::OrdMap<TableId, TableSize>);

impl Sizes {
    pub(super) fn get(&self, table: TableId) -> TableSize {
        self.0.get(&table).copied().unwrap_or_default()
    }

    pub(super) fn set(&mut self, table: TableId, size: TableSize) {
        if size == TableSize::default() {
            self.0.remove(&table);
        } else {
            self.0.insert(table, size);
        }
    }

    /// Tables that hold any row.
    pub(super) fn tables_with_rows(&self) -> impl Iterator<Item = TableId> {
        self.0.iter().map(|(table, _)| *table)
    }

    /// Counts the change of one row of a table; lengths in bytes, `None` means no value.
    pub(super) fn count(&mut self, table: TableId, key_len: usize, before: Option<usize>, after: Option<usize>) {
        let mut size = self.get(table);
        size.count(key_len, before, after);
        self.set(table, size);
    }

    /// The size of a range of row keys.
    pub(super) fn estimate(&self, range: &KeyRange) -> Estimate {
        let mut estimate = Estimate {
            is_exact: true,
            ..Estimate::default()
        };
        if range.is_empty() {
            return estimate;
        }
        let (start, end) = (position(&range.start, 0), position(&range.end, u128::MAX));
        let first = u32::try_from(start >> 96).unwrap_or(u32::MAX);
        let last = u32::try_from(end >> 96).unwrap_or(u32::MAX);
        for (table, size) in self.0.range(first..=last) {
            let table_start = u128::from(*table) << 96;
            let table_len = 1_u128 << 96;
            let from = start.max(table_start) - table_start;
            let to = end.saturating_sub(table_start).min(table_len);
            let covered = to.saturating_sub(from);
            estimate.is_exact &= covered == table_len || covered == 0;
            // 2^16 parts of a table are fine enough for an estimate and keep the products small.
            let share = |whole: u64| u64::try_from((u128::from(whole) * (covered >> 64)) >> 32).unwrap_or(u64::MAX);
            estimate.bytes = estimate.bytes.saturating_add(share(size.bytes));
            estimate.rows = estimate.rows.saturating_add(share(size.rows));
        }
        estimate
    }
}

/// A key's first sixteen bytes as a number: its position among all keys.
fn position(bound: &Bound<Vec<u8>>, unbounded: u128) -> u128 {
    match bound {
        Bound::Unbounded => unbounded,
        Bound::Included(key) | Bound::Excluded(key) => {
            let mut first = [0; 16];
            for (to, from) in first.iter_mut().zip(key) {
                *to = *from;
            }
            u128::from_be_bytes(first)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::key::{table_range, token_range};
    use super::*;

    #[test]
    fn parts_of_a_table_are_estimated_by_their_part_of_the_ring() {
        let mut sizes = Sizes::default();
        sizes.set(
            7,
            TableSize {
                bytes: 1 << 40,
                rows: 1000,
            },
        );
        sizes.set(8, TableSize { bytes: 5, rows: 1 });
        assert_eq!(
            sizes.estimate(&table_range(7)),
            Estimate {
                bytes: 1 << 40,
                rows: 1000,
                is_exact: true
            }
        );
        assert_eq!(
            sizes.estimate(&KeyRange::all()),
            Estimate {
                bytes: (1 << 40) + 5,
                rows: 1001,
                is_exact: true
            }
        );
        let half = sizes.estimate(&token_range(7, i64::MIN, -1));
        assert_eq!((half.bytes, half.rows, half.is_exact), (1 << 39, 500, false));
        assert_eq!(sizes.estimate(&token_range(7, i64::MIN, i64::MAX)).bytes, 1 << 40);
        assert_eq!(
            sizes.estimate(&table_range(9)),
            Estimate {
                is_exact: true,
                ..Estimate::default()
            }
        );
    }
}
