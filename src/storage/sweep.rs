//! Clean-up behind the writers: removes physically what no reader sees any more.
//!
//! A sweep passes over a range of rows at a snapshot. What a deletion from outside hides, what expired, and tombstones past their
//! grace go; a row of which nothing is left goes as a whole; then the deletion records past their grace go. Each replacement is
//! made only if the value is still as it was read, so writers need not wait and lose nothing. As in Cassandra, a write that arrives
//! after the grace with a timestamp from before a deletion is not hidden by it any more.

use std::ops::ControlFlow;

use bytes::Bytes;

use super::deletion::{self, Deletions};
use super::key::{self, KeyRange, RowKind};
use super::row::Row;
use super::{Batch, Order, Result, Snapshot, Space, Store};

/// Bytes of replacements that one commit of a sweep makes.
const SWEEP_BATCH_BYTES: usize = 256 * 1024;

/// Entries that a sweep reads before it writes what came of them.
const SWEEP_STRIDE_ENTRIES: usize = 2048;

/// What a sweep did, as it judged at its snapshot; what was written meanwhile stayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Rows of which nothing was left.
    pub rows_removed: u64,
    /// Rows of which something was left.
    pub rows_shrunk: u64,
    /// Deletions of partitions and ranges.
    pub deletions_removed: u64,
}

impl Store {
    /// Removes physically what no reader sees any more in a range of row keys that begins and ends between partitions: what expired
    /// by `now_seconds`, what deletions hide, and tombstones and deletions written before `gc_before_seconds`.
    ///
    /// # Errors
    /// As [`Store::scan`] and [`Store::commit`]; what was swept before stays so.
    pub async fn sweep(&self, range: &KeyRange, now_seconds: i64, gc_before_seconds: i64) -> Result<Swept> {
        let at = self.snapshot();
        let mut swept = Swept::default();
        let mut rest = Some(range.clone());
        let mut partition = Partition::default();
        while let Some(left) = rest.take() {
            let entries = self.stride(Space::Rows, &left, &at).await?;
            if entries.len() >= SWEEP_STRIDE_ENTRIES {
                rest = entries
                    .last()
                    .map(|(last, _)| super::engine::rest_of_range(&left, Order::Forward, last.clone()));
            }
            let mut batch = Batch::new();
            for (key, value) in entries {
                let parsed = key::parse(&key)?;
                let prefix = key.get(..parsed.prefix_len).unwrap_or_default();
                if partition.prefix != prefix {
                    let deletions = self
                        .deletions(parsed.table, parsed.token, &parsed.partition_key, &at)
                        .await?;
                    partition = Partition {
                        prefix: prefix.to_vec(),
                        deletions,
                    };
                }
                let mut row = Row::decode(&value)?;
                if let Some(timestamp) = partition.covering(parsed.kind, parsed.clustering) {
                    row.shadow(timestamp);
                }
                row.purge(now_seconds, gc_before_seconds);
                let kept = row.encode();
                if row.is_empty() {
                    swept.rows_removed += 1;
                    batch.replace(Space::Rows, key, value, None);
                } else if kept != value {
                    swept.rows_shrunk += 1;
                    batch.replace(Space::Rows, key, value, Some(kept));
                }
                if batch.bytes() >= SWEEP_BATCH_BYTES {
                    self.commit(std::mem::take(&mut batch)).await?;
                }
            }
            self.commit(batch).await?;
        }
        swept.deletions_removed = self.sweep_deletions(range, gc_before_seconds, &at).await?;
        Ok(swept)
    }

    /// Removes the deletion records of a range past their grace; what they hid is gone by now.
    async fn sweep_deletions(&self, range: &KeyRange, gc_before_seconds: i64, at: &Snapshot) -> Result<u64> {
        let mut removed = 0;
        let mut rest = Some(range.clone());
        while let Some(left) = rest.take() {
            let entries = self.stride(Space::Deletions, &left, at).await?;
            if entries.len() >= SWEEP_STRIDE_ENTRIES {
                rest = entries
                    .last()
                    .map(|(last, _)| super::engine::rest_of_range(&left, Order::Forward, last.clone()));
            }
            let mut batch = Batch::new();
            for (key, value) in entries {
                if deletion::parse(&key, &value)?.deletion.at_seconds < gc_before_seconds {
                    removed += 1;
                    batch.replace(Space::Deletions, key, value, None);
                }
            }
            self.commit(batch).await?;
        }
        Ok(removed)
    }

    /// The first entries of a range.
    async fn stride(&self, space: Space, range: &KeyRange, at: &Snapshot) -> Result<Vec<(Vec<u8>, Bytes)>> {
        let mut entries = Vec::new();
        let visit = |key: &[u8], value: &[u8]| {
            entries.push((key.to_vec(), Bytes::copy_from_slice(value)));
            if entries.len() < SWEEP_STRIDE_ENTRIES {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        };
        self.scan(space, range, Order::Forward, at, visit).await?;
        Ok(entries)
    }
}

/// The partition that a sweep is in, and its deletions.
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
