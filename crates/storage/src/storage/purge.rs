//! The changes that a sweep requests from the committer, checked against the stored values when the batch takes effect.
//!
//! A sweep ([`super::Sweep`]) reads at a snapshot and commits later, while others write. So its changes name what to
//! remove, never the resulting value. A write in between is purged by the same rules:
//! - `Change::Purge` of a row removes cells that partition and range deletions hide, expired cells, and tombstones past
//!   their grace.
//! - `Change::Forget` of a deletion record removes it if it is still the one that the sweep has carried out, and
//!   nothing lies under it.
//!
//! ```text
//! watch begins ─► an empty commit ─► snapshots, and purges of all rows under the records ─► forget ─► watch ends
//! ```
//! **Nothing lies under a removed record.** Rows written before the empty commit are in the snapshots, and purged. For
//! later writes with a timestamp that a record covers, the committer marks the partition ([`Watch::record`]), in the
//! order of commits; the records of that partition stay until the next sweep. Writes after the removal of the record
//! are not covered by it, as in Cassandra once a tombstone is older than `gc_grace_seconds`.
//!
//! **Sweeps of one store** alternate, stride by stride ([`Sweeps::stride`]): a sweep must not purge by a record that
//! another has removed since. Only one at a time removes deletion records.
//!
//! Sources: Cassandra 5.0 `db.partitions.PurgeFunction`, `db.compaction.CompactionController#getPurgeEvaluator` (a tombstone stays as
//! long as a memtable or another table has older data of its partition).

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwapOption;
use bytes::Bytes;

use super::row::{Deletion, Row, RowView};
use super::{Result, deletion};
use helenus_base::mutant::{self, Mutant};

/// The effect of a purge on a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It is unchanged.
    Unchanged,
    /// It is removed.
    Removed,
    /// It shrinks to this value.
    Shrunk(Bytes),
}

/// The rules by which a sweep purges a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Purge {
    /// The newest timestamp (µs) that a partition or range deletion of this row covers. `None` means there is no such
    /// deletion.
    pub(super) covered_up_to: Option<i64>,
    /// Seconds since 1970 UTC; cells that expire up to it are expired.
    pub(super) now_seconds: i64,
    /// Tombstones and deletions written before it (seconds since 1970 UTC) are past their grace.
    pub(super) gc_before_seconds: i64,
}

impl Purge {
    /// The effect on an encoded row.
    ///
    /// # Errors
    /// [`super::Error::Damaged`].
    pub(super) fn effect_on(&self, value: &[u8]) -> Result<Effect> {
        let mut row = Row::decode(value)?;
        if let Some(timestamp) = self.covered_up_to {
            row.shadow(timestamp);
        }
        row.purge(self.now_seconds, self.gc_before_seconds);
        if row.is_empty() {
            return Ok(Effect::Removed);
        }
        let left = row.encode();
        Ok(if left == value {
            Effect::Unchanged
        } else {
            Effect::Shrunk(left)
        })
    }
}

/// The partitions whose deletion records a sweep is about to remove.
#[derive(Debug)]
pub(super) struct Watch {
    /// By partition prefix; none is a prefix of another.
    partitions: BTreeMap<Vec<u8>, Watched>,
    is_over: AtomicBool,
}

#[derive(Debug)]
struct Watched {
    /// The newest timestamp of the records that will be removed.
    up_to: i64,
    /// Set when a write that they cover was committed since the watch began.
    is_written: AtomicBool,
}

impl Watch {
    /// Watches the partitions of records: their prefixes and deletions.
    pub(super) fn new<'a>(records: impl IntoIterator<Item = (&'a [u8], Deletion)>) -> Self {
        let mut partitions = BTreeMap::<Vec<u8>, Watched>::new();
        for (prefix, deletion) in records {
            let watched = partitions.entry(prefix.to_vec()).or_insert(Watched {
                up_to: deletion.timestamp,
                is_written: AtomicBool::new(false),
            });
            watched.up_to = watched.up_to.max(deletion.timestamp);
        }
        Self {
            partitions,
            is_over: AtomicBool::new(false),
        }
    }

    /// The partition prefixes.
    pub(super) fn prefixes(&self) -> impl Iterator<Item = &[u8]> {
        self.partitions.keys().map(Vec::as_slice)
    }

    fn find(&self, key: &[u8]) -> Option<&Watched> {
        let up_to_key = (Bound::Unbounded, Bound::Included(key));
        let (prefix, watched) = self.partitions.range::<[u8], _>(up_to_key).next_back()?;
        key.starts_with(prefix).then_some(watched)
    }

    /// Marks the partitions in which a group of commits writes under the records, by the keys and values of the rows that it
    /// writes. Called before any change of the group is checked.
    pub(super) fn record<'a>(&self, rows: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) {
        for (key, value) in rows {
            if let Some(watched) = self.find(key)
                // A damaged value counts as covered: reads refuse it, and the records stay.
                && oldest(value).is_none_or(|timestamp| timestamp <= watched.up_to)
            {
                watched.is_written.store(true, Ordering::SeqCst);
            }
        }
    }

    /// Whether the partition of this key has seen no write under its records so far.
    pub(super) fn is_clean(&self, key: &[u8]) -> bool {
        if mutant::is_on(Mutant::VoidedPurgeCounts) {
            return true;
        }
        let is_clean = |watched: &Watched| !watched.is_written.load(Ordering::SeqCst);
        !self.is_over.load(Ordering::SeqCst) && self.find(key).is_some_and(is_clean)
    }
}

/// The least timestamp in an encoded row. `None` means it has none or is damaged.
fn oldest(value: &[u8]) -> Option<i64> {
    let row = RowView::parse(value).ok()?;
    let mut oldest = row.marker().map(|marker| marker.timestamp);
    let mut add = |timestamp: i64| oldest = Some(oldest.map_or(timestamp, |oldest| oldest.min(timestamp)));
    if let Some(deletion) = row.deletion() {
        add(deletion.timestamp);
    }
    for complex in row.complex() {
        add(complex.ok()?.1.timestamp);
    }
    for cell in row.cells() {
        add(cell.ok()?.timestamp);
    }
    oldest
}

/// State that the sweeps of one store share with its committer.
#[derive(Debug, Default)]
pub(super) struct Sweeps {
    /// Held during a stride, from its snapshot until its commits are answered.
    pub(super) stride: tokio::sync::Mutex<()>,
    /// Held by the sweep that removes deletion records.
    forgetting: Arc<tokio::sync::Mutex<()>>,
    watch: ArcSwapOption<Watch>,
}

impl Sweeps {
    /// The watch that sees each group of commits ([`Watch::record`]). `None`, the usual case, means no record is about to
    /// be removed.
    pub(super) fn watch(&self) -> Option<Arc<Watch>> {
        self.watch.load_full()
    }

    /// Takes the exclusive right to remove deletion records. `None` means another sweep has it.
    pub(super) fn begin_forgetting(self: &Arc<Self>) -> Option<Forgetting> {
        let held = Arc::clone(&self.forgetting).try_lock_owned().ok()?;
        Some(Forgetting {
            sweeps: Arc::clone(self),
            watch: None,
            _held: held,
        })
    }
}

/// A sweep that removes deletion records; dropping it ends its watch.
#[derive(Debug)]
pub(super) struct Forgetting {
    sweeps: Arc<Sweeps>,
    watch: Option<Arc<Watch>>,
    _held: tokio::sync::OwnedMutexGuard<()>,
}

impl Forgetting {
    /// Begins a watch in place of the one before. It covers all commits after the next one.
    pub(super) fn watch(&mut self, watch: Watch) -> Arc<Watch> {
        self.end_watch();
        let watch = Arc::new(watch);
        self.sweeps.watch.store(Some(Arc::clone(&watch)));
        self.watch = Some(Arc::clone(&watch));
        watch
    }

    /// Ends the watch. Changes in the committer's queue that depend on it remove nothing any more.
    pub(super) fn end_watch(&mut self) {
        if let Some(watch) = self.watch.take() {
            watch.is_over.store(true, Ordering::SeqCst);
            self.sweeps.watch.store(None);
        }
    }
}

impl Drop for Forgetting {
    fn drop(&mut self) {
        self.end_watch();
    }
}

/// A deletion record that is past its grace.
#[derive(Clone, Debug)]
pub(super) struct Due {
    pub(super) key: Vec<u8>,
    pub(super) prefix_len: usize,
    pub(super) deletion: Deletion,
}

impl Due {
    /// The record, if it was written before `gc_before_seconds`.
    ///
    /// # Errors
    /// [`super::Error::Damaged`] when the value is damaged.
    pub(super) fn of(key: Vec<u8>, value: &[u8], gc_before_seconds: i64) -> Result<Option<Self>> {
        let record = deletion::parse(&key, value)?;
        let (prefix_len, deletion) = (record.prefix_len, record.deletion);
        drop(record);
        Ok((deletion.at_seconds < gc_before_seconds).then_some(Self {
            key,
            prefix_len,
            deletion,
        }))
    }

    /// The prefix of its partition.
    pub(super) fn prefix(&self) -> &[u8] {
        self.key.get(..self.prefix_len).unwrap_or_default()
    }
}
