//! Sizes of physical partitions, and the check that splits those that are too large.
//!
//! A check is one pass over the tables, run periodically by a background task. It costs nothing for a table that is
//! smaller than the limit by the store's figures. For others it walks their keys and counts bytes. It counts again only
//! when a partition may have passed the limit since: [`PartitionSizes`] keeps the last counts.
//!
//! A partition beyond the limit is split at once into as many parts of about equal size as fit below the limit. A
//! logical partition is never cut. A partition filled by one key stays as it is, and is logged once.
//!
//! Merging is optional. Two neighbours are merged when both are quiet and together hold at most a quarter of the limit
//! in two consecutive checks. The table must have more partitions than its options gave it. A split leaves parts of
//! more than a quarter of the limit. So a split is undone only if the table shrinks and stays small; splits and merges
//! do not alternate.
//!
//! A partition that fills fast is split earlier, by a check of the written bytes each second (written.rs).
//!
//! Another check splits partitions by their load (load.rs).

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::catalog::Catalog;
use super::counts::{Counts, walk};
use super::edge::storage_read;
use super::error::Error;
use super::snapshot::Snapshot;
use crate::partition::{Hosted, MapError, PARTITIONS_MAX, Passed, Prefix, TablePartitions};
use helenus_schema::command::PartitionChange;
use helenus_schema::schema::{StorageId, Table, Throughput, system};
use helenus_types::token::{KeyBound, Token};

/// Limits of physical partitions.
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

/// The changes that a check has made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repartitioned {
    /// Partitions that were split in two.
    pub splits: u64,
    /// Pairs that were merged.
    pub merges: u64,
}

/// The counts kept for the next check: an entry for each table that was counted.
#[derive(Debug, Default)]
pub struct PartitionSizes(HashMap<StorageId, Sizes>);

/// Bytes of a table's partitions at one moment.
#[derive(Debug)]
struct Sizes {
    /// The epoch of the partition map then.
    epoch: u64,
    /// Bytes of the table at that moment, by the store's figures.
    table_bytes: u64,
    /// Bytes of each partition, in order.
    bytes: Vec<u64>,
    /// Neighbours that were small enough to merge.
    small: Vec<(u64, u64)>,
}

/// Splits and merges physical partitions by size.
#[derive(Clone, Copy)]
pub(super) struct Resizer<'a> {
    pub(super) catalog: &'a Arc<Catalog>,
    pub(super) counts: &'a Counts,
}

impl Resizer<'_> {
    /// Splits physical partitions that are too large and, if `limits` allow it, merges small ones: at most one merge of
    /// each table. First counts the tables that a view requested. Requests do not wait for it; it may stop anywhere.
    ///
    /// # Errors
    /// The medium fails; changes made before remain.
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
        let map = snapshot.partitions(table)?;
        let id = table.storage_id;
        let table_bytes = map.bytes(id).bytes;
        let may_merge = limits.merges && map.all().len() > least(table);
        if table_bytes <= limits.bytes_max && !may_merge {
            return Ok(());
        }
        let counted = match sizes.0.remove(&id) {
            Some(counted) if counted.epoch == map.epoch() && !is_stale(&counted, table_bytes, limits) => counted,
            before => Sizes {
                epoch: map.epoch(),
                table_bytes,
                bytes: self.counts.count_table(map, id).await?.bytes(),
                small: before.map(|before| before.small).unwrap_or_default(),
            },
        };
        let mut places = Vec::new();
        for (partition, bytes) in map.here().zip(&counted.bytes) {
            if *bytes <= limits.bytes_max {
                continue;
            }
            let cuts = cuts(partition, id, *bytes, limits.bytes_max).await?;
            if cuts.is_empty() {
                tracing::warn!(
                    keyspace = table.keyspace,
                    table = table.name,
                    partition = partition.id.0,
                    bytes,
                    "one partition key fills a physical partition"
                );
                continue;
            };
            places.extend(cuts);
        }
        if !places.is_empty() {
            done.splits += split(self.catalog, id, places).await?;
        }
        let mut counted = counted;
        if may_merge {
            let small = small_pairs(map, &counted.bytes, limits);
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

/// Makes a change that was decided a moment ago. Returns false when it no longer applies, or when the table already has
/// the most physical partitions allowed. That is logged: the partition stays too large or too hot.
async fn change(catalog: &Arc<Catalog>, table: StorageId, change: PartitionChange) -> Result<bool, Error> {
    let changed = carried_out(table, catalog.repartition(table, change).await)?;
    Ok(changed.is_some())
}

/// Splits physical partitions at bounds that were decided a moment ago, as [`change`] does. Returns the number of
/// splits.
pub(super) async fn split(catalog: &Arc<Catalog>, table: StorageId, places: Vec<KeyBound>) -> Result<u64, Error> {
    let splits = carried_out(table, catalog.split(table, places).await)?;
    Ok(splits.unwrap_or(0) as u64)
}

/// The result of a change that was decided a moment ago; `None` means that it was not made, as in [`change`].
fn carried_out<T>(table: StorageId, changed: Result<T, Error>) -> Result<Option<T>, Error> {
    match changed {
        Ok(changed) => Ok(Some(changed)),
        Err(Error::Partitions(MapError::TooMany)) => {
            tracing::warn!(
                table,
                partitions_max = PARTITIONS_MAX,
                "a physical partition should be split, but its table already has the largest number of partitions"
            );
            Ok(None)
        }
        Err(error) if error.is_overtaken() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The bounds that divide a partition into parts of about equal size, each smaller than the limit. A logical partition
/// is never cut, so a part may be larger; no bounds if one key has all of it.
pub(super) async fn cuts(
    partition: &Hosted,
    table: StorageId,
    bytes: u64,
    bytes_max: u64,
) -> Result<Vec<KeyBound>, Error> {
    let mut cutting = Cutting::new(bytes, bytes_max);
    let mut failed = Ok(());
    walk(partition, table, |row| match cutting.pass(row) {
        Ok(flow) => flow,
        Err(error) => {
            failed = Err(error);
            ControlFlow::Break(())
        }
    })
    .await?;
    failed?;
    Ok(cutting.places())
}

/// A walk that divides a partition into parts.
struct Cutting {
    bytes: u64,
    bytes_max: u64,
    /// Bytes of a part.
    part: u64,
    passed: u64,
    /// Bytes before the current part.
    begun: u64,
    /// The current logical partition and its token.
    current: Option<(Prefix, Token)>,
    /// The last bound at which a cut is possible, and the bytes before it.
    last: Option<(KeyBound, u64)>,
    places: Vec<KeyBound>,
}

impl Cutting {
    fn new(bytes: u64, bytes_max: u64) -> Self {
        // As many parts as leave free space in each.
        let parts = (bytes / bytes_max.max(1)).saturating_add(1).max(2);
        Self {
            bytes,
            bytes_max,
            part: (bytes / parts).max(1),
            passed: 0,
            begun: 0,
            current: None,
            last: None,
            places: Vec::new(),
        }
    }

    fn pass(&mut self, row: Passed<'_>) -> Result<ControlFlow<()>, Error> {
        if !self.current.as_ref().is_some_and(|(prefix, _)| row.is_of(prefix)) {
            let (prefix, token, partition_key) = row.partition().map_err(|error| storage_read(&error))?;
            if let Some((_, before)) = &self.current {
                // A bound between two tokens needs no key.
                let place = if *before == token {
                    KeyBound::at_key(token, &partition_key)
                } else {
                    KeyBound::at_token(token.value())
                };
                self.may_cut(place);
            }
            self.current = Some((prefix, token));
        }
        self.passed += row.bytes() as u64;
        let is_done = self.bytes.saturating_sub(self.begun) <= self.bytes_max;
        Ok(if is_done || self.places.len() >= PARTITIONS_MAX {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    }

    /// Once the part is full, cuts at this bound or at the last one, whichever is nearer to the size of a part.
    fn may_cut(&mut self, place: KeyBound) {
        let full = self.begun.saturating_add(self.part);
        let last = self.last.replace((place.clone(), self.passed));
        if self.passed < full {
            return;
        }
        let last = last.filter(|(_, before)| *before > self.begun && full.abs_diff(*before) <= self.passed - full);
        self.cut(last.unwrap_or((place, self.passed)));
    }

    fn cut(&mut self, (place, before): (KeyBound, u64)) {
        self.begun = before;
        self.places.push(place);
    }

    /// The bounds, after all rows are visited. If a large key made the last part too large, it is cut off before that
    /// key.
    fn places(mut self) -> Vec<KeyBound> {
        let last = self.last.take().filter(|(_, before)| *before > self.begun);
        if let Some(last) = last.filter(|_| self.passed.saturating_sub(self.begun) > self.bytes_max) {
            self.cut(last);
        }
        self.places
    }
}

/// The number of partitions that a table's options give it.
fn least(table: &Table) -> usize {
    let given = table.options.partitions.map_or(1, usize::from);
    given.max(table.options.throughput.map_or(1, Throughput::partitions_at_first))
}

/// Whether the table grew or shrank so much since the count that it is out of date.
fn is_stale(counted: &Sizes, table_bytes: u64, limits: PartitionLimits) -> bool {
    let added = table_bytes.saturating_sub(counted.table_bytes);
    let fullest = counted.bytes.iter().copied().max().unwrap_or_default();
    // A partition that could not be split is counted again only after new bytes.
    let may_pass = added > 0 && fullest.saturating_add(added) > limits.bytes_max;
    let removed = counted.table_bytes.saturating_sub(table_bytes);
    may_pass || (limits.merges && removed.max(added) > limits.bytes_max / 16)
}

/// Quiet neighbours that together hold at most a quarter of the limit.
fn small_pairs(map: &TablePartitions, bytes: &[u64], limits: PartitionLimits) -> Vec<(u64, u64)> {
    let here: Vec<_> = map.here().collect();
    let pairs = here.windows(2).zip(bytes.windows(2));
    let small = pairs.filter_map(|(partitions, bytes)| match (partitions, bytes) {
        ([left, right], [a, b])
            if left.span.end() == Some(right.span.start())
                && left.store_id == right.store_id
                && a + b <= limits.bytes_max / 4
                && left.load.is_quiet()
                && right.load.is_quiet() =>
        {
            Some((left.id.0, right.id.0))
        }
        _ => None,
    });
    small.collect()
}
