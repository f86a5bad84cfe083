//! Background jobs of the server: sizes, load, purges, health checks of stores.

use std::sync::Arc;
use std::time::Duration;

use super::catalog::Catalog;
use super::counts::Counts;
use super::error::Error;
use super::feed::{LogSizes, Trimmer};
use super::load;
use super::partitions::{PartitionLimits, PartitionSizes, Repartitioned, Resizer};
use super::probe::{Probe, Prober};
use super::survey::{TableSurvey, survey};
use super::sweep::Sweeper;
use super::written::MeasuredPartitions;
use crate::engine::check::{IndexCheck, check_indexes};
use crate::engine::terms::clock::WriteClock;
use crate::partition::{LoadLimits, Stores};
use helenus_base::clock::Clock;
use helenus_storage::storage::Swept;
use helenus_storage::storage::bucket::LeasePut;
use helenus_types::functions::Timeuuids;

/// The upkeep of a database ([`super::Engine::upkeep`]). Requests do not wait for it, and it may stop anywhere.
#[derive(Clone, Copy)]
pub struct Upkeep<'a> {
    pub(super) catalog: &'a Arc<Catalog>,
    pub(super) counts: &'a Counts,
    pub(super) stores: &'a Stores,
    pub(super) prober: &'a Prober,
    pub(super) clock: &'a Clock,
    /// The source of writes' timestamps.
    pub(super) timestamps: &'a WriteClock,
    pub(super) timeuuids: &'a Arc<Timeuuids>,
    /// Whether tables behave as in Cosmos, where only their throughput splits partitions.
    pub(super) is_cosmos: bool,
}

impl std::fmt::Debug for Upkeep<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Upkeep").finish_non_exhaustive()
    }
}

impl<'a> Upkeep<'a> {
    /// Splits physical partitions that are too large and, if enabled, merges small ones: at most one merge
    /// of each table. Counts larger tables that were shown before.
    ///
    /// # Errors
    /// When the medium fails; changes made before remain.
    pub async fn repartition(
        self,
        limits: PartitionLimits,
        sizes: &mut PartitionSizes,
    ) -> Result<Repartitioned, Error> {
        let resizer = Resizer {
            catalog: self.catalog,
            counts: self.counts,
        };
        resizer.repartition(limits, sizes).await
    }

    /// Splits physical partitions that were filled fast and are too large. Cheap if there are none, so that it can be
    /// called each second.
    ///
    /// # Errors
    /// When the medium fails; changes made before remain.
    pub async fn split_written(
        self,
        limits: PartitionLimits,
        measured: &mut MeasuredPartitions,
    ) -> Result<Repartitioned, Error> {
        let resizer = Resizer {
            catalog: self.catalog,
            counts: self.counts,
        };
        resizer.split_written(limits, measured).await
    }

    /// Splits physical partitions that have stayed hot since the last call.
    ///
    /// # Errors
    /// When the medium fails; changes made before remain.
    pub async fn split_by_load(self, limits: &LoadLimits) -> Result<Repartitioned, Error> {
        load::split_hot(self.catalog, self.is_cosmos, limits, self.clock.monotonic()).await
    }

    /// Purges data that no reader can see any more: expired cells, deleted rows, and deletions older than their table's
    /// `gc_grace_seconds`. Does nothing while the clock is not trusted. Skips a table that is dropped and a physical
    /// partition that is moved meanwhile.
    ///
    /// # Errors
    /// The first failure of a store; everything else was purged nevertheless.
    pub async fn sweep(self) -> Result<Swept, Error> {
        self.sweeper().sweep().await
    }

    /// As [`Upkeep::sweep`], of one table; no-op for one that does not exist.
    ///
    /// # Errors
    /// As [`Upkeep::sweep`].
    pub async fn sweep_table(self, keyspace: &str, table: &str) -> Result<Swept, Error> {
        self.sweeper().sweep_table(keyspace, table).await
    }

    /// Trims the change logs of tables by their retention. Returns how many were trimmed.
    ///
    /// # Errors
    /// When the medium fails; the rest is trimmed by the next call.
    pub async fn trim_logs(self, sizes: &mut LogSizes) -> Result<usize, Error> {
        let trimmer = Trimmer {
            catalog: self.catalog,
            clock: self.timestamps,
        };
        trimmer.trim(sizes).await
    }

    fn sweeper(self) -> Sweeper<'a> {
        Sweeper {
            catalog: self.catalog,
            clock: self.timestamps,
        }
    }

    /// Makes the physical partitions whose delay after a change of throughput has passed. Returns the number of tables.
    ///
    /// # Errors
    /// When the medium fails; those tables wait again.
    pub async fn grow_due(self) -> Result<usize, Error> {
        self.catalog.grow_due().await
    }

    /// Checks the free space of the disk: below the reserve, only writes that may free space are admitted.
    pub fn check_disk(&self) {
        self.stores.check_disk();
    }

    /// Forgets the timestamps and timeuuids issued so far. For a reset, after which no stored data has one.
    pub fn forget_timestamps(self) {
        self.timestamps.forget();
        self.timeuuids.forget();
    }

    /// Why data cannot be read until the server restarts. `None` means that it can be read, or will be again.
    #[must_use]
    pub fn lost(self) -> Option<String> {
        let (id, error) = self.stores.lost()?;
        Some(format!("store {}: {error}", id.0))
    }

    /// Whether this server is the only one that may have written since its catalog was read. In a bucket this holds while it
    /// has the lease.
    #[must_use]
    pub fn owns_data(self) -> bool {
        self.stores.main().taken_over().is_none()
    }

    /// How long this server owns its data unless it renews the lease of the bucket. `None` means that the data is in no bucket.
    #[must_use]
    pub fn lease_left(self) -> Option<Duration> {
        self.stores.main().lease_left()
    }

    /// The newest put of the lease of the bucket, for other nodes. `None` means that the data is in no bucket.
    #[must_use]
    pub fn lease_put(self) -> Option<LeasePut> {
        self.stores.main().lease_put()
    }

    /// Writes a record in each open store, durably, and reads it back; concurrently, up to a limit. Skips a store that
    /// is removed meanwhile. Takes as long as the slowest store: the caller limits the time by dropping the future.
    pub async fn probe(self, probe: &mut Probe) {
        self.prober.probe(self.stores, self.clock, probe).await;
    }

    /// Compares the entries of every complete index with those that the rows of its table derive, byte for byte, under
    /// one snapshot of each store.
    ///
    /// # Errors
    /// When the medium fails or is damaged.
    pub async fn check_indexes(self) -> Result<IndexCheck, Error> {
        check_indexes(&self.catalog.published.indexes, &self.catalog.load()).await
    }

    /// Reads every row of every table of users, under one snapshot of each store, and returns the inventory of their
    /// partitions.
    ///
    /// # Errors
    /// When the medium fails or is damaged.
    pub async fn survey(self) -> Result<Vec<TableSurvey>, Error> {
        survey(&self.catalog.load()).await
    }

    /// Counts physical partitions before views show them: small tables now, larger ones by the next check of sizes.
    pub async fn count_partitions(self) {
        self.counts.count_small(&self.catalog.load()).await;
    }
}
