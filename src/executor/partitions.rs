//! Physical partitions by their size: what each holds, and the check that splits those that hold too much.
//!
//! A check is one pass over the tables, for somebody who makes it now and then behind the requests. It costs nothing for a table that
//! is smaller than the limit, which the store knows. For others it walks their keys and counts bytes, and does so again only
//! when so much has come since that a partition may have passed the limit: what has been counted is kept in [`PartitionSizes`].
//!
//! A partition beyond the limit is split where its bytes are halved, between two tokens: a logical partition is never cut. One
//! key that fills a partition alone is left as it is, and logged once.
//!
//! Merging is for those who ask for it. Two neighbours are merged when both are quiet and together hold at most a quarter of the limit in two
//! checks one after the other, as long as the table has more partitions than its options gave it. A split leaves halves of the limit, so
//! that a table must shrink to a quarter, and stay so, before a split is taken back: it does not go to and fro.
//!
//! What is asked of a partition splits it elsewhere (heat.rs).

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::catalog::{Catalog, Snapshot};
use super::counts::{Counts, walk};
use super::error::Error;
use crate::command::PartitionChange;
use crate::partition::{MapError, PARTITIONS_MAX, PhysicalPartition, TablePartitions};
use crate::schema::{StorageId, Table, Throughput, system};

/// What partitions may come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionLimits {
    /// Bytes of rows, keys included, beyond which a physical partition is split.
    pub bytes_max: u64,
    /// Whether small neighbours are merged.
    pub merges: bool,
}

impl PartitionLimits {
    /// Bytes of a physical partition: 30 GB.
    pub const BYTES_MAX: u64 = 30 << 30;
}

/// What a check has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repartitioned {
    /// Partitions that became two.
    pub splits: u64,
    /// Pairs that became one.
    pub merges: u64,
}

/// What a check remembers for the next one: an entry for each table that was counted.
#[derive(Debug, Default)]
pub struct PartitionSizes(HashMap<StorageId, Sizes>);

/// Bytes of a table's partitions at one moment.
#[derive(Debug)]
struct Sizes {
    /// The list's epoch then.
    epoch: u64,
    /// Bytes of the table then, as the store knows them.
    table_bytes: u64,
    /// Bytes of each partition, in order.
    bytes: Vec<u64>,
    /// Neighbours that were small enough to be one.
    small: Vec<(u64, u64)>,
}

/// Splits and merges physical partitions by what they hold.
#[derive(Clone, Copy)]
pub(super) struct Resizer<'a> {
    pub(super) catalog: &'a Arc<Catalog>,
    pub(super) counts: &'a Counts,
}

impl Resizer<'_> {
    /// Splits physical partitions that hold too much and, where that is wanted, merges small ones. At most one split of each partition
    /// and one merge of each table. Counts what somebody was to show before. Requests do not wait for it; it may stop anywhere.
    ///
    /// # Errors
    /// When the medium fails; what was changed before stays so.
    pub(super) async fn repartition(
        self,
        limits: PartitionLimits,
        sizes: &mut PartitionSizes,
    ) -> Result<Repartitioned, Error> {
        self.counts.count_wanted(Arc::clone(&self.catalog.load())).await?;
        let mut done = Repartitioned::default();
        let snapshot = Arc::clone(&self.catalog.load());
        let keyspaces = snapshot.schema.keyspaces.values();
        let keyspaces = keyspaces.filter(|keyspace| !system::is_local(&keyspace.name));
        let tables: Vec<_> = keyspaces.flat_map(|keyspace| keyspace.all_tables()).collect();
        sizes
            .0
            .retain(|id, _| tables.iter().any(|table| table.storage_id == *id));
        for table in tables {
            self.repartition_table(&snapshot, table, limits, sizes, &mut done)
                .await?;
            tokio::task::yield_now().await;
        }
        Ok(done)
    }

    async fn repartition_table(
        self,
        snapshot: &Snapshot,
        table: &Table,
        limits: PartitionLimits,
        sizes: &mut PartitionSizes,
        done: &mut Repartitioned,
    ) -> Result<(), Error> {
        let list = snapshot.partitions(table)?;
        let id = table.storage_id;
        let table_bytes = list.bytes(id).bytes;
        let may_merge = limits.merges && list.all().len() > least(table);
        if table_bytes <= limits.bytes_max && !may_merge {
            return Ok(());
        }
        let counted = match sizes.0.remove(&id) {
            Some(counted) if counted.epoch == list.epoch() && !is_stale(&counted, table_bytes, limits) => counted,
            before => Sizes {
                epoch: list.epoch(),
                table_bytes,
                bytes: self.counts.count_table(list, id).await?.bytes(),
                small: before.map(|before| before.small).unwrap_or_default(),
            },
        };
        for (partition, bytes) in list.all().iter().zip(&counted.bytes) {
            if *bytes <= limits.bytes_max {
                continue;
            }
            let Some(at) = middle(partition, id, *bytes).await? else {
                tracing::warn!(
                    keyspace = table.keyspace,
                    table = table.name,
                    partition = partition.id.0,
                    bytes,
                    "one partition key fills a physical partition"
                );
                continue;
            };
            done.splits += u64::from(change(self.catalog, id, PartitionChange::Split { at }).await?);
        }
        let mut counted = counted;
        if may_merge {
            let small = small_pairs(list, &counted.bytes, limits);
            let again = small.iter().find(|pair| counted.small.contains(pair));
            if let Some(&(left, right)) = again {
                done.merges += u64::from(change(self.catalog, id, PartitionChange::Merge { left, right }).await?);
            }
            counted.small = small;
        }
        sizes.0.insert(id, counted);
        Ok(())
    }
}

/// Carries out a change that was decided a moment ago. Returns false when it no longer applies, or when the table has as many physical
/// partitions as it may have, which is logged: the partition stays too large or too hot.
pub(super) async fn change(catalog: &Arc<Catalog>, table: StorageId, change: PartitionChange) -> Result<bool, Error> {
    match catalog.repartition(table, change).await {
        Ok(()) => Ok(true),
        Err(Error::Partitions(MapError::TooMany)) => {
            tracing::warn!(
                table,
                partitions_max = PARTITIONS_MAX,
                "a physical partition must be split, and its table has as many as it may have"
            );
            Ok(false)
        }
        Err(error) if error.is_overtaken() => Ok(false),
        Err(error) => Err(error),
    }
}

/// The token before which about half of the bytes of a partition lie; `None` when all are of one token.
async fn middle(partition: &PhysicalPartition, table: StorageId, bytes: u64) -> Result<Option<i64>, Error> {
    let mut passed = 0_u64;
    let mut last = None;
    // Where a cut would be possible, and how far it is from the middle.
    let mut best: Option<(u64, i64)> = None;
    walk(partition, table, |token, len| {
        if last.is_some_and(|last| last != token) {
            let off = passed.abs_diff(bytes / 2);
            if best.is_none_or(|(least, _)| off < least) {
                best = Some((off, token));
            }
            if passed > bytes / 2 {
                return ControlFlow::Break(());
            }
        }
        last = Some(token);
        passed += len;
        ControlFlow::Continue(())
    })
    .await?;
    Ok(best.map(|(_, token)| token))
}

/// How many partitions a table's options give it.
fn least(table: &Table) -> usize {
    let given = table.options.partitions.map_or(1, usize::from);
    given.max(table.options.throughput.map_or(1, Throughput::partitions_at_first))
}

/// Whether so much has come or gone since that what was counted does not serve any more.
fn is_stale(counted: &Sizes, table_bytes: u64, limits: PartitionLimits) -> bool {
    let come = table_bytes.saturating_sub(counted.table_bytes);
    let fullest = counted.bytes.iter().copied().max().unwrap_or_default();
    // One that could not be split is counted again only with new bytes.
    let may_pass = come > 0 && fullest.saturating_add(come) > limits.bytes_max;
    let gone = counted.table_bytes.saturating_sub(table_bytes);
    may_pass || (limits.merges && gone.max(come) > limits.bytes_max / 16)
}

/// Quiet neighbours that together hold at most a quarter of the limit.
fn small_pairs(list: &TablePartitions, bytes: &[u64], limits: PartitionLimits) -> Vec<(u64, u64)> {
    let pairs = list.all().windows(2).zip(bytes.windows(2));
    let small = pairs.filter_map(|(partitions, bytes)| match (partitions, bytes) {
        ([left, right], [a, b])
            if left.store_id == right.store_id
                && a + b <= limits.bytes_max / 4
                && left.heat.is_quiet()
                && right.heat.is_quiet() =>
        {
            Some((left.id.0, right.id.0))
        }
        _ => None,
    });
    small.collect()
}
