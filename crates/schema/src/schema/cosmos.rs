//! What Cosmos adds to a table's and a keyspace's options. Kept in the schema, shown by no system table and no DESCRIBE, as there.
//!
//! Source: Azure Cosmos DB's documentation of throughput (scale-account-throughput, concepts-limits, scaling best practices).

use serde::{Deserialize, Serialize};

use super::StorageId;

/// The provisioned throughput of a table or keyspace, in request units a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Throughput {
    /// `cosmosdb_provisioned_throughput`: manual, a fixed rate.
    Manual(u32),
    /// `cosmosdb_autoscale_max_throughput`: autoscale, between a tenth of this rate and all of it.
    Autoscale(u32),
}

impl Throughput {
    /// RU/s of manual throughput that a new table's partition is made for.
    const MANUAL_PER_PARTITION: u32 = 6_000;
    /// RU/s that one physical partition can serve.
    const PARTITION_MAX: u32 = 10_000;

    /// The maximum rate, in request units a second.
    #[must_use]
    pub const fn most(self) -> u32 {
        match self {
            Self::Manual(units) | Self::Autoscale(units) => units,
        }
    }

    /// The number of physical partitions that a new table starts with.
    #[must_use]
    pub fn partitions_at_first(self) -> usize {
        let count = match self {
            Self::Manual(units) => units.div_ceil(Self::MANUAL_PER_PARTITION),
            Self::Autoscale(units) => units.div_ceil(Self::PARTITION_MAX),
        };
        usize::try_from(count.max(1)).unwrap_or(1)
    }

    /// The least number of physical partitions that can serve this rate.
    #[must_use]
    pub fn partitions_needed(self) -> usize {
        usize::try_from(self.most().div_ceil(Self::PARTITION_MAX).max(1)).unwrap_or(1)
    }
}

/// The full fidelity change feed of a table: its change log. `cosmosdb_full_fidelity_…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FullFidelity {
    /// The number of the log in the store; 0 means that none was given yet. TRUNCATE keeps it.
    pub log: StorageId,
    /// How long changes are kept.
    pub retention_seconds: u32,
    /// How many bytes of changes are kept.
    pub retention_bytes: u64,
}

impl FullFidelity {
    /// A day.
    pub const RETENTION_SECONDS: u32 = 24 * 60 * 60;
    /// Ten years.
    pub const RETENTION_SECONDS_MAX: u32 = 10 * 365 * 24 * 60 * 60;
    /// 1 GiB.
    pub const RETENTION_BYTES: u64 = 1 << 30;
    /// 1 TiB.
    pub const RETENTION_BYTES_MAX: u64 = 1 << 40;
}

impl Default for FullFidelity {
    fn default() -> Self {
        Self {
            log: 0,
            retention_seconds: Self::RETENTION_SECONDS,
            retention_bytes: Self::RETENTION_BYTES,
        }
    }
}

/// The per-cell flags that only CREATE TABLE accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CellLevel {
    /// `cosmosdb_cell_level_timestamp`: each cell has its own write timestamp.
    pub timestamp: bool,
    /// `cosmosdb_cell_level_timestamp_tombstones`: each cell has its own tombstone.
    pub timestamp_tombstones: bool,
    /// `cosmosdb_cell_level_timetolive`: each cell has its own time to live.
    pub time_to_live: bool,
}

impl CellLevel {
    /// Whether no flag is set.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_follow_throughput() {
        let table = [
            (Throughput::Manual(400), 1, 1),
            (Throughput::Manual(6_000), 1, 1),
            (Throughput::Manual(6_100), 2, 1),
            (Throughput::Manual(40_000), 7, 4),
            (Throughput::Autoscale(10_000), 1, 1),
            (Throughput::Autoscale(11_000), 2, 2),
        ];
        for (throughput, at_first, needed) in table {
            assert_eq!(
                (throughput.partitions_at_first(), throughput.partitions_needed()),
                (at_first, needed),
                "{throughput:?}"
            );
        }
    }
}
