//! Purges in the background: expired cells and old tombstones are removed from the stores, partition by partition.
//!
//! A purge uses the current partition map: it visits in each store the ranges that the map assigns to it, and nothing
//! else. For every stride it holds the latch of the physical partition, as a writer does, so that a move waits for
//! strides in progress. A partition that is being moved is left out, since purged keys are not recorded for the copy. A
//! purge never waits for a move.

use std::sync::Arc;

use super::catalog::Catalog;
use super::error::Error;
use super::snapshot::Snapshot;
use crate::engine::terms::clock::WriteClock;
use crate::partition::Hosted;
use helenus_schema::schema::Table;
use helenus_storage::storage::{self as store, Swept};
use helenus_types::token::{KeyBound, KeySpan};

/// Purges tables.
#[derive(Clone, Copy)]
pub(super) struct Sweeper<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) clock: &'a WriteClock,
}

impl Sweeper<'_> {
    fn snapshot(self) -> Arc<Snapshot> {
        Arc::clone(&self.catalog.load())
    }

    /// Removes from the stores what no reader can see any more: expired cells, data that deletions hide, and deletions
    /// older than their table's `gc_grace_seconds`; nothing while the clock is not trusted. Writers do not wait for it,
    /// and it may stop at any point. A table dropped meanwhile is left to its own removal, a physical partition that is
    /// being moved to the next purge.
    ///
    /// # Errors
    /// The first failure of a store; everything else was purged nevertheless.
    pub(super) async fn sweep(self) -> Result<Swept, Error> {
        let tables: Vec<Arc<Table>> = {
            let snapshot = self.snapshot();
            let keyspaces = snapshot.schema.keyspaces.values();
            let tables = keyspaces.flat_map(|keyspace| keyspace.tables.values());
            tables.filter(|table| !table.is_virtual).cloned().collect()
        };
        let mut swept = Swept::default();
        let mut failed = None;
        for table in tables {
            failed = failed.or(self.sweep_partitions(&table, &mut swept).await.err());
        }
        match failed {
            Some(error) => Err(Error::Fault(error.to_string())),
            None => Ok(swept),
        }
    }

    /// As [`Sweeper::sweep`], of one table. A missing table is no error.
    ///
    /// # Errors
    /// As [`Sweeper::sweep`].
    pub(super) async fn sweep_table(self, keyspace: &str, table: &str) -> Result<Swept, Error> {
        let table = {
            let snapshot = self.snapshot();
            let keyspace = snapshot.schema.keyspaces.get(keyspace);
            let table = keyspace.and_then(|keyspace| keyspace.tables.get(table));
            table.filter(|table| !table.is_virtual).cloned()
        };
        let mut swept = Swept::default();
        if let Some(table) = table {
            let done = self.sweep_partitions(&table, &mut swept).await;
            done.map_err(|error| Error::Fault(error.to_string()))?;
        }
        Ok(swept)
    }

    /// Purges the physical partitions of a table, one after the other, by the current map.
    ///
    /// # Errors
    /// The first failure; the other partitions were purged nevertheless.
    async fn sweep_partitions(self, table: &Table, swept: &mut Swept) -> store::Result<()> {
        let mut outcome = Ok(());
        let mut next = Some(KeyBound::LOWEST);
        while let Some(start) = next.filter(|_| self.clock.may_purge()) {
            // Looked up each time: a task that holds a partition map keeps old rows in their stores.
            let Some((partition, grace_seconds)) = self.place_to_sweep(table, &start) else {
                break;
            };
            next = partition.span.end().cloned();
            let now_seconds = self.clock.now_seconds();
            let pending = &self.catalog.published.pending;
            let gc_before_seconds = pending.purge_horizon_seconds(now_seconds.saturating_sub(grace_seconds));
            // The map may have changed since: skip the ranges that were purged before.
            let span = KeySpan::new(start, next.clone());
            let sweep = span.and_then(|span| partition.sweep(table.storage_id, &span, now_seconds, gc_before_seconds));
            let Some(sweep) = sweep else { continue };
            match partition.purge(sweep).await {
                Ok(of_partition) => swept.add(of_partition),
                Err(error) => outcome = outcome.and(Err(error)),
            }
            tokio::task::yield_now().await;
        }
        outcome
    }

    /// The physical partition of a place, and the table's `gc_grace_seconds` now. `None` means that the table was
    /// dropped.
    fn place_to_sweep(self, table: &Table, start: &KeyBound) -> Option<(Arc<Hosted>, i64)> {
        let snapshot = self.snapshot();
        let keyspace = snapshot.schema.keyspaces.get(&table.keyspace)?;
        let now = keyspace.tables.get(&table.name);
        let now = now.filter(|now| now.storage_id == table.storage_id)?;
        let partition = snapshot.partitions_of(table.storage_id)?.at_bound(start);
        Some((Arc::clone(partition.here()?), now.options.gc_grace_seconds.into()))
    }
}
