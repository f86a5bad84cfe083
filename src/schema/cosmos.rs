//! What Cosmos adds to a table's and a keyspace's options. Kept in the schema, shown by no system table and no DESCRIBE, as there.
//!
//! Source: Azure Cosmos DB's documentation of throughput (scale-account-throughput, concepts-limits, scaling best practices).

use serde::{Deserialize, Serialize};

/// Request units a second that were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Throughput {
    /// `cosmosdb_provisioned_throughput`: always as many.
    Manual(u32),
    /// `cosmosdb_autoscale_max_throughput`: between a tenth of it and all.
    Autoscale(u32),
}

impl Throughput {
    /// RU/s of manual throughput that a new table's partition is made for.
    const MANUAL_PER_PARTITION: u32 = 6_000;
    /// RU/s that one physical partition can serve.
    const PARTITION_MAX: u32 = 10_000;

    /// The most request units a second.
    #[must_use]
    pub const fn most(self) -> u32 {
        match self {
            Self::Manual(units) | Self::Autoscale(units) => units,
        }
    }

    /// How many physical partitions a new table begins with.
    #[must_use]
    pub fn partitions_at_first(self) -> usize {
        let count = match self {
            Self::Manual(units) => units.div_ceil(Self::MANUAL_PER_PARTITION),
            Self::Autoscale(units) => units.div_ceil(Self::PARTITION_MAX),
        };
        usize::try_from(count.max(1)).unwrap_or(1)
    }

    /// How many physical partitions there must be at least to serve it.
    #[must_use]
    pub fn partitions_needed(self) -> usize {
        usize::try_from(self.most().div_ceil(Self::PARTITION_MAX).max(1)).unwrap_or(1)
    }
}

/// The flags that only CREATE TABLE takes: what each cell has of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CellLevel {
    /// `cosmosdb_cell_level_timestamp`: a time of writing.
    pub timestamp: bool,
    /// `cosmosdb_cell_level_timestamp_tombstones`: a tombstone.
    pub timestamp_tombstones: bool,
    /// `cosmosdb_cell_level_timetolive`: a time to live.
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
