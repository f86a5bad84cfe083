//! The engines under the [`super::Store`] seam. Each keeps bytes by key in five spaces; they see rows only through the
//! merge of two values. A snapshot is what the committer published last, so taking one costs one reference count.

mod acknowledged;
mod aside;
mod directory;
mod durable;
pub(super) mod fjall;
mod held;
mod layout;
pub(super) mod memory;
pub(super) mod moments;
pub(super) mod options;
pub(super) mod piece;
mod queue_space;
pub(super) mod restoring;
pub(super) mod salvage;
#[cfg(feature = "simulation")]
pub(super) mod simulated;
#[cfg(feature = "slate")]
pub(super) mod slate;
#[cfg(not(feature = "slate"))]
#[path = "without_slate.rs"]
pub(super) mod slate;

pub(super) use self::aside::{How, link_tree};
pub(super) use self::directory::io_error;
pub(super) use self::held::{Held, check_profile};

use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use super::key::{KeyRange, TableId};
use super::scanning::{Order, SCAN_STRIDE_ENTRIES};
use super::{Result, Space};

/// Tables that have any deletion record; readers of other tables need not search for one.
pub(super) type DeletionTables = Arc<BTreeSet<TableId>>;

/// The tables whose deletion records a change of `Space::Deletions` at `key` concerns.
pub(super) fn table_of(key: &[u8]) -> Option<TableId> {
    key.first_chunk::<4>().map(|table| u32::from_be_bytes(*table))
}

/// Adds a table; copies the set only if the table is new.
pub(super) fn add_table(tables: &mut DeletionTables, key: &[u8]) {
    if let Some(table) = table_of(key)
        && !tables.contains(&table)
    {
        Arc::make_mut(tables).insert(table);
    }
}

/// Removes the tables whose deletion records a removed range covers completely.
pub(super) fn remove_tables(tables: &mut DeletionTables, range: &KeyRange) {
    let is_covered = |table: &TableId| {
        let whole = super::key::table_range(*table);
        let starts = match (&range.start, &whole.start) {
            (Bound::Unbounded, _) => true,
            (Bound::Included(start), Bound::Included(table_start)) => start <= table_start,
            _ => false,
        };
        let ends = match (&range.end, &whole.end) {
            (Bound::Unbounded, _) => true,
            (Bound::Excluded(end) | Bound::Included(end), Bound::Excluded(table_end)) => end >= table_end,
            _ => false,
        };
        starts && ends
    };
    if tables.iter().any(is_covered) {
        Arc::make_mut(tables).retain(|table| !is_covered(table));
    }
}

/// How a stride of a scan ended.
pub(super) enum Stride {
    /// The range is finished, or the visitor stopped.
    Done,
    /// The stride is full; the scan continues after this key.
    After(Vec<u8>),
    /// The stride is full; the scan continues with this range.
    Rest(KeyRange),
}

/// Runs one stride of a scan: calls `visit` for each entry until it breaks, or until the stride's end.
pub(super) fn walk_stride<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    entries: impl Iterator<Item = Result<(K, V)>>,
    visit: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
) -> Result<Stride> {
    for (passed, entry) in entries.enumerate() {
        let (key, value) = entry?;
        if visit(key.as_ref(), value.as_ref()).is_break() {
            return Ok(Stride::Done);
        }
        if passed + 1 >= SCAN_STRIDE_ENTRIES {
            return Ok(Stride::After(key.as_ref().to_vec()));
        }
    }
    Ok(Stride::Done)
}

/// Most keys that one step of a range deletion removes.
pub(super) const RANGE_STEP_KEYS_MAX: usize = 4096;

/// A step ends with the key that reaches this length of keys, and in SlateDB of index entries: others' writes wait for a step, and
/// a slow bucket must take it in the time of a put.
pub(super) const RANGE_STEP_BYTES: usize = 256 * 1024;

/// The rest of a range after a key was visited.
pub(super) fn rest_of_range(range: &KeyRange, order: Order, after: Vec<u8>) -> KeyRange {
    let passed = Bound::Excluded(after);
    match order {
        Order::Forward => KeyRange {
            start: passed,
            end: range.end.clone(),
        },
        Order::Reverse => KeyRange {
            start: range.start.clone(),
            end: passed,
        },
    }
}

/// A range's bounds as slices, for maps that take references.
pub(super) fn bounds(range: &KeyRange) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (
        range.start.as_ref().map(Vec::as_slice),
        range.end.as_ref().map(Vec::as_slice),
    )
}

/// Spaces whose values the committer counts by table.
pub(super) const fn is_counted(space: Space) -> bool {
    matches!(space, Space::Rows)
}
