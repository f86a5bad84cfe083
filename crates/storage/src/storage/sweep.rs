//! Sweeps: background jobs that physically remove data that no reader can see any more.
//!
//! ```text
//! rows, stride by stride ─► deletion records past their grace, some at a time: [ watch ─► rows under them ─► forget ] ─► done
//! ```
//! The first pass visits every row of a range. It removes cells that a partition or range deletion hides, expired
//! cells, and tombstones past their grace; a row with nothing left is removed whole. The second pass visits the
//! deletion records past their grace, purges what still lies under them, and removes the records. The committer checks
//! each change again against what is stored at that moment (purge.rs), so writers do not wait and lose nothing.
//!
//! **A stride** reads at most [`SWEEP_STRIDE_ENTRIES`] entries and about [`SWEEP_STRIDE_BYTES`], at a snapshot of its
//! own, and has committed when it returns. Between two strides a sweep holds no lock and no snapshot. It may stop there
//! for good: the next sweep starts from the beginning.
//!
//! As in Cassandra, a write that arrives after the grace with a timestamp from before a deletion is no longer hidden by
//! it.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;

use super::deletion::Deletions;
use super::key::{self, KeyRange, RowKind};
use super::purge::{Due, Effect, Forgetting, Purge, Watch};
use super::{Batch, Damaged, Opening, Order, Result, Snapshot, Space, Store};
use helenus_base::mutant::{self, Mutant};

/// About how many bytes of rows one commit of a sweep rewrites: writers to the same store wait for it.
const SWEEP_BATCH_BYTES: usize = 256 * 1024;

/// Most entries that a stride reads. A move of the partition waits for the stride.
const SWEEP_STRIDE_ENTRIES: usize = 2048;

/// Bytes of keys and values that a stride reads, about.
const SWEEP_STRIDE_BYTES: usize = 1024 * 1024;

/// Counts of what a sweep removed. Rows are counted at its snapshots, deletions when they are found missing afterwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Rows removed whole.
    pub rows_removed: u64,
    /// Rows of which some cells were removed.
    pub rows_shrunk: u64,
    /// Deletion records of partitions and ranges that were removed.
    pub deletions_removed: u64,
}

impl Swept {
    /// Adds the counts of another sweep.
    pub const fn add(&mut self, other: Self) {
        self.rows_removed += other.rows_removed;
        self.rows_shrunk += other.rows_shrunk;
        self.deletions_removed += other.deletions_removed;
    }
}

/// A sweep of a range of one store, run stride by stride ([`Store::sweep_stride`]).
#[derive(Debug)]
pub struct Sweep {
    range: KeyRange,
    now_seconds: i64,
    gc_before_seconds: i64,
    stage: Stage,
    swept: Swept,
}

#[derive(Debug)]
enum Stage {
    /// Every row; holds the part of the range not yet visited.
    Rows(KeyRange),
    /// The deletion records past their grace; holds the part of the range not yet visited.
    Records(KeyRange, Forgetting),
    /// The rows under some of those records.
    Under(Box<Under>),
    Done,
}

/// Some records past their grace, and the ranges under them not yet visited.
#[derive(Debug)]
struct Under {
    records: Vec<Due>,
    watch: Arc<Watch>,
    /// Ranges of partitions not yet visited.
    rest: VecDeque<KeyRange>,
    /// Where the next records begin. `None` means there are no more.
    next: Option<KeyRange>,
    forgetting: Forgetting,
}

impl Sweep {
    /// Makes a sweep of a range of row keys that begins and ends between partitions. It removes what expired by
    /// `now_seconds`, what deletions hide, and tombstones and deletions written before `gc_before_seconds` (both
    /// seconds since 1970 UTC).
    #[must_use]
    pub fn new(range: KeyRange, now_seconds: i64, gc_before_seconds: i64) -> Self {
        let gc_before_seconds = if mutant::is_on(Mutant::TombstoneDroppedEarly) {
            i64::MAX
        } else {
            gc_before_seconds
        };
        Self {
            stage: Stage::Rows(range.clone()),
            range,
            now_seconds,
            gc_before_seconds,
            swept: Swept::default(),
        }
    }

    /// The counts so far.
    #[must_use]
    pub const fn swept(&self) -> Swept {
        self.swept
    }

    const fn purge(&self, covered_up_to: Option<i64>) -> Purge {
        Purge {
            covered_up_to,
            now_seconds: self.now_seconds,
            gc_before_seconds: self.gc_before_seconds,
        }
    }
}

impl Store {
    /// Sweeps a range to its end; see [`Sweep::new`].
    ///
    /// # Errors
    /// As [`Store::sweep_stride`].
    pub async fn sweep(&self, range: &KeyRange, now_seconds: i64, gc_before_seconds: i64) -> Result<Swept> {
        let mut sweep = Sweep::new(range.clone(), now_seconds, gc_before_seconds);
        while self.sweep_stride(&mut sweep).await?.is_continue() {}
        Ok(sweep.swept())
    }

    /// Runs one stride of a sweep; breaks when the range is swept.
    ///
    /// # Errors
    /// As [`Store::scan`] and [`Store::commit`]; earlier strides stay committed. The sweep is over then.
    pub async fn sweep_stride(&self, sweep: &mut Sweep) -> Result<ControlFlow<()>> {
        let sweeps = Arc::clone(self.sweeps());
        let _stride_lock = sweeps.stride.lock().await;
        let opening = self.opening();
        // An empty commit first, so that the snapshot holds all earlier batches and all that other sweeps removed.
        self.commit(Batch::new()).await?;
        let mut stride = Stride {
            opening,
            at: self.snapshot(),
            entries_left: SWEEP_STRIDE_ENTRIES,
            bytes_left: SWEEP_STRIDE_BYTES,
        };
        let stage = std::mem::replace(&mut sweep.stage, Stage::Done);
        sweep.stage = match stage {
            Stage::Rows(rest) => match self.sweep_rows(sweep, &rest, &mut stride).await? {
                Some(rest) => Stage::Rows(rest),
                // Another sweep is already removing records: leave them to it.
                None => match sweeps.begin_forgetting() {
                    Some(forgetting) => Stage::Records(sweep.range.clone(), forgetting),
                    None => Stage::Done,
                },
            },
            Stage::Records(rest, forgetting) => self.find_records(sweep, &rest, forgetting, &mut stride).await?,
            Stage::Under(under) => self.sweep_under(sweep, under, &mut stride).await?,
            Stage::Done => Stage::Done,
        };
        Ok(match sweep.stage {
            Stage::Done => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        })
    }

    /// Purges rows as far as the stride goes; returns the rest of the range.
    async fn sweep_rows(&self, sweep: &mut Sweep, range: &KeyRange, stride: &mut Stride) -> Result<Option<KeyRange>> {
        let (entries, rest) = self.read_stride(Space::Rows, range, stride).await?;
        let mut partition = Partition::default();
        let mut purges = Vec::new();
        for (key, value) in entries {
            let parsed = key::parse(&key)?;
            let prefix = key.get(..parsed.prefix_len).ok_or(Damaged::KEY)?;
            if partition.prefix != prefix {
                let deletions = self.deletions(parsed.table, parsed.token, &parsed.partition_key, &stride.at);
                partition = Partition {
                    deletions: deletions.await?,
                    prefix: prefix.to_vec(),
                };
            }
            let purge = sweep.purge(partition.covering(parsed.kind, parsed.clustering));
            let left_bytes = match purge.effect_on(&value)? {
                Effect::Unchanged => continue,
                Effect::Removed => {
                    sweep.swept.rows_removed += 1;
                    0
                }
                Effect::Shrunk(left) => {
                    sweep.swept.rows_shrunk += 1;
                    left.len()
                }
            };
            purges.push((key, value, purge, left_bytes));
        }
        let mut batch = Batch::new();
        for (key, value, purge, left_bytes) in purges {
            if mutant::is_on(Mutant::VoidedPurgeCounts)
                && self.get(Space::Rows, &key, &self.snapshot()).await?.as_ref() != Some(&value)
            {
                continue;
            }
            batch.purge(key, purge, left_bytes);
            if batch.bytes() >= SWEEP_BATCH_BYTES {
                self.commit_stride(std::mem::take(&mut batch), stride).await?;
            }
        }
        self.commit_stride(batch, stride).await?;
        Ok(rest)
    }

    /// Finds records past their grace, and begins to watch their partitions.
    async fn find_records(
        &self,
        sweep: &Sweep,
        range: &KeyRange,
        mut forgetting: Forgetting,
        stride: &mut Stride,
    ) -> Result<Stage> {
        let (entries, next) = self.read_stride(Space::Deletions, range, stride).await?;
        let mut records = Vec::new();
        for (key, value) in entries {
            records.extend(Due::of(key, &value, sweep.gc_before_seconds)?);
        }
        if records.is_empty() {
            return Ok(next.map_or(Stage::Done, |next| Stage::Records(next, forgetting)));
        }
        let watch = forgetting.watch(Watch::new(records.iter().map(|due| (due.prefix(), due.deletion))));
        let rest = watch.prefixes().map(key::partition_range);
        Ok(Stage::Under(Box::new(Under {
            rest: rest.filter(|_| !mutant::is_on(Mutant::VoidedPurgeCounts)).collect(),
            records,
            watch,
            next,
            forgetting,
        })))
    }

    /// Purges the rows under records as far as the stride goes, and removes the records when nothing is left under
    /// them.
    async fn sweep_under(&self, sweep: &mut Sweep, mut under: Box<Under>, stride: &mut Stride) -> Result<Stage> {
        while let Some(part) = under.rest.pop_front() {
            if !stride.has_budget() {
                under.rest.push_front(part);
                return Ok(Stage::Under(under));
            }
            // Count a partition without rows as one entry: the search of it costs as much.
            stride.entries_left = stride.entries_left.saturating_sub(1);
            if let Some(rest) = self.sweep_rows(sweep, &part, stride).await? {
                under.rest.push_front(rest);
            }
        }
        let mut batch = Batch::new();
        for due in &under.records {
            batch.forget(due.key.clone(), due.deletion, Arc::clone(&under.watch));
        }
        self.commit_stride(batch, stride).await?;
        sweep.swept.deletions_removed += self.count_removed(&under.records).await?;
        let Under {
            next, mut forgetting, ..
        } = *under;
        forgetting.end_watch();
        Ok(next.map_or(Stage::Done, |next| Stage::Records(next, forgetting)))
    }

    /// How many of these records no longer exist.
    async fn count_removed(&self, records: &[Due]) -> Result<u64> {
        let at = self.snapshot();
        let mut removed = 0;
        for due in records {
            removed += u64::from(self.get(Space::Deletions, &due.key, &at).await?.is_none());
        }
        Ok(removed)
    }

    /// Commits a batch derived from a stride's snapshot; refused if the store was opened again since.
    async fn commit_stride(&self, mut batch: Batch, stride: &Stride) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        batch.only_in(stride.opening);
        self.commit(batch).await.map(drop)
    }

    /// The entries of a range as far as the stride goes, and the rest of the range.
    async fn read_stride(
        &self,
        space: Space,
        range: &KeyRange,
        stride: &mut Stride,
    ) -> Result<(Vec<(Vec<u8>, Bytes)>, Option<KeyRange>)> {
        let mut entries = Vec::new();
        let (mut entries_left, mut bytes_left) = (stride.entries_left, stride.bytes_left);
        let visit = |key: &[u8], value: &[u8]| {
            entries.push((key.to_vec(), Bytes::copy_from_slice(value)));
            entries_left = entries_left.saturating_sub(1);
            bytes_left = bytes_left.saturating_sub(key.len() + value.len());
            if entries_left > 0 && bytes_left > 0 {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        };
        self.scan(space, range, Order::Forward, &stride.at, visit).await?;
        (stride.entries_left, stride.bytes_left) = (entries_left, bytes_left);
        let last = entries.last().filter(|_| !stride.has_budget());
        let rest = last.map(|(last, _)| super::engine::rest_of_range(range, Order::Forward, last.clone()));
        Ok((entries, rest))
    }
}

/// One stride: its snapshot, and how far it may still go.
struct Stride {
    opening: Opening,
    at: Snapshot,
    entries_left: usize,
    bytes_left: usize,
}

impl Stride {
    const fn has_budget(&self) -> bool {
        self.entries_left > 0 && self.bytes_left > 0
    }
}

/// The partition that a stride has reached, and its deletions.
#[derive(Default)]
struct Partition {
    prefix: Vec<u8>,
    deletions: Deletions,
}

impl Partition {
    fn covering(&self, kind: RowKind, clustering: &[u8]) -> Option<i64> {
        match kind {
            RowKind::Static => self.deletions.timestamp_covering_static(),
            RowKind::Row => self.deletions.timestamp_covering(clustering),
        }
    }
}
