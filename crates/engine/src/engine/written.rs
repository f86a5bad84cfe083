//! Splits physical partitions by the bytes written to them. A check each second keeps a fast loader from filling one
//! far beyond the limit.
//!
//! The check of sizes (partitions.rs) walks whole tables once a minute; a loader can write several times the limit in
//! that time. This check walks single partitions, and only those that may have passed the limit. Three conditions must
//! hold, the cheapest first:
//! ```text
//! written since it was last measured ≥ limit / 8     an atomic counter of the partition (partition::load)
//! its table holds more than the limit                what the stores know of the table
//! bytes measured last + written since > limit        it grows by at most the bytes written to it;
//!                                                    unknown if it was never measured
//! ```
//! So a partition that is split is at most an eighth larger than the limit, plus the writes of a second and of the
//! walk. It is split into as many parts as make each smaller than the limit. The counters of the parts begin at 0, and
//! the parts count as never measured.
//!
//! Measurements are kept in memory: an entry for each physical partition that was walked, removed with the partition.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use super::counts::walk;
use super::error::Error;
use super::partitions::{PartitionLimits, Repartitioned, Resizer, cuts, split};
use crate::partition::{Hosted, PhysicalPartitionId, TablePartitions};
use helenus_schema::schema::{StorageId, Table, system};

/// The part of the limit that must be written to a partition before it is measured again. With an eighth, a partition
/// of a full table is read eight times in full for each time that it is written in full.
const GROWTH_DIVISOR: u64 = 8;

/// The measurements of physical partitions.
#[derive(Debug, Default)]
pub struct MeasuredPartitions(HashMap<(StorageId, PhysicalPartitionId), Measured>);

/// A physical partition when it was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Measured {
    /// Bytes written by then, since it was created.
    written: u64,
    /// Its size in bytes; `None` means that it was never measured.
    bytes: Option<u64>,
}

impl Measured {
    /// Whether a partition with this many bytes written since its creation must be measured.
    fn is_due(self, written: u64, table_bytes: impl FnOnce() -> u64, bytes_max: u64) -> bool {
        let grown = written.saturating_sub(self.written);
        grown >= (bytes_max / GROWTH_DIVISOR).max(1)
            && table_bytes() > bytes_max
            && self.bytes.is_none_or(|bytes| bytes.saturating_add(grown) > bytes_max)
    }
}

impl Resizer<'_> {
    /// Splits the physical partitions that were filled fast and are now too large. Requests do not wait for it; it may
    /// stop anywhere.
    ///
    /// # Errors
    /// When the medium fails; changes made before remain.
    pub(super) async fn split_written(
        self,
        limits: PartitionLimits,
        measured: &mut MeasuredPartitions,
    ) -> Result<Repartitioned, Error> {
        let mut done = Repartitioned::default();
        let snapshot = Arc::clone(&self.catalog.load());
        let keyspaces = snapshot.schema.keyspaces.values();
        let keyspaces = keyspaces.filter(|keyspace| !system::is_local(&keyspace.name));
        let tables: Vec<_> = keyspaces.flat_map(|keyspace| keyspace.all_tables()).collect();
        if !measured.0.is_empty() {
            let maps = tables.iter().filter_map(|table| {
                let map = snapshot.partitions(table).ok()?;
                Some(map.here().map(|partition| (table.storage_id, partition.id)))
            });
            let known: HashSet<_> = maps.flatten().collect();
            measured.0.retain(|place, _| known.contains(place));
        }
        for table in tables {
            let map = snapshot.partitions(table)?;
            done.splits += self.split_table(table, map, limits.bytes_max, measured).await?;
        }
        Ok(done)
    }

    async fn split_table(
        self,
        table: &Table,
        map: &TablePartitions,
        bytes_max: u64,
        measured: &mut MeasuredPartitions,
    ) -> Result<u64, Error> {
        let id = table.storage_id;
        let mut places = Vec::new();
        for partition in map.here() {
            let written = partition.load.written_bytes();
            let place = (id, partition.id);
            let before = measured.0.get(&place).copied().unwrap_or_default();
            if !before.is_due(written, || map.bytes(id).bytes, bytes_max) {
                continue;
            }
            // Bytes written during the walk count as written since.
            let bytes = bytes_of(partition, id).await?;
            let bytes_known = Some(bytes);
            measured.0.insert(
                place,
                Measured {
                    written,
                    bytes: bytes_known,
                },
            );
            if bytes <= bytes_max {
                continue;
            }
            let cuts = cuts(partition, id, bytes, bytes_max).await?;
            if cuts.is_empty() {
                tracing::warn!(
                    keyspace = table.keyspace,
                    table = table.name,
                    partition = partition.id.0,
                    bytes,
                    "one partition key fills a physical partition"
                );
            }
            places.extend(cuts);
        }
        if places.is_empty() {
            return Ok(0);
        }
        split(self.catalog, id, places).await
    }
}

/// Bytes of keys and values of a table in a partition.
async fn bytes_of(partition: &Hosted, table: StorageId) -> Result<u64, Error> {
    let mut bytes = 0;
    walk(partition, table, |row| {
        bytes += row.bytes() as u64;
        ControlFlow::Continue(())
    })
    .await?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns: bytes written up to the measurement, bytes measured, bytes written until now, bytes of the table,
    /// whether it is measured with a limit of 800.
    #[test]
    fn a_partition_is_measured_when_it_may_have_passed_the_limit() {
        for (before, bytes, written, table, is_due) in [
            (0, None, 99, 5000, false),
            (0, None, 100, 5000, true),
            (0, None, 100, 800, false),
            (0, None, 100, 801, true),
            (1000, Some(700), 1099, 5000, false),
            (1000, Some(700), 1100, 5000, false),
            (1000, Some(700), 1101, 5000, true),
            (1000, Some(800), 1050, 5000, false),
            (1000, Some(800), 1100, 5000, true),
            // One key fills it: it is measured again after as many bytes as any other partition.
            (1000, Some(9000), 1099, 9000, false),
            (1000, Some(9000), 1100, 9000, true),
        ] {
            let measured = Measured { written: before, bytes };
            let found = measured.is_due(written, || table, 800);
            assert_eq!(found, is_due, "{measured:?}, {written} written, {table} in the table");
        }
        // With a limit of which an eighth is 0, a partition without writes is not measured.
        assert!(!Measured::default().is_due(0, || 9, 1));
    }
}
