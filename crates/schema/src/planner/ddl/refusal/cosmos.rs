//! Why an option of Cosmos or of Helenus is refused.

use thiserror::Error;

use super::code::Code;

/// Why an option of Cosmos or of Helenus is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CosmosRefusal {
    /// `helenus_split_at` is no token.
    #[error("Invalid token {0} for 'helenus_split_at'")]
    Token(String),
    /// `helenus_merge` is malformed.
    #[error(
        "Invalid value for 'helenus_merge': it is a map of 'left' and 'right' to the ids of two physical partitions"
    )]
    Merge,
    /// A change of a physical partition beside other options.
    #[error(
        "'helenus_split_at', 'helenus_merge', 'helenus_lift' and 'helenus_lower' cannot stand beside other options"
    )]
    NotAlone,
    /// An option that is no id of a physical partition.
    #[error("Invalid value {text} for '{option}': it is the id of a physical partition")]
    PartitionId {
        /// The text as written.
        text: String,
        /// The option.
        option: &'static str,
    },
    /// An option that only CREATE TABLE accepts.
    #[error("{0} can only be set when a table is created")]
    OnlyAtFirst(&'static str),
    /// `helenus_partitions` is out of range.
    #[error("helenus_partitions must be between 1 and {0}")]
    Partitions(u16),
    /// `placement` is unknown.
    #[error("Invalid value '{0}' for 'placement': it is 'hash' or 'ordered'")]
    Placement(String),
    /// A table to be ordered by a partition key whose bytes are not in the order of its values.
    #[error("A table with placement = 'ordered' has a partition key of one column of type text or ascii, not ({0})")]
    OrderedKey(String),
    /// An ordered table that is to start with several partitions.
    #[error(
        "A table with placement = 'ordered' starts with one physical partition, since no key is known yet; 'helenus_partitions' cannot stand beside it"
    )]
    OrderedPartitions,
    /// An ordered view.
    #[error("A materialized view lies in the order of its hash; it cannot have placement = 'ordered'")]
    OrderedView,
    /// Manual throughput beside autoscale.
    #[error("cosmosdb_provisioned_throughput and cosmosdb_autoscale_max_throughput cannot be given together")]
    BothThroughputs,
    /// Autoscale for a table with manual throughput.
    #[error(
        "x-ms-cosmos-migrate-offer-to-autopilot must be supplied and offercontent must not contain autopilotSettings for migration from manual throughput to autoscale."
    )]
    Migration,
    /// Throughput out of range.
    #[error(
        "{{\"Errors\":[\"The offer should have valid throughput values between {least} and {most} inclusive in increments of {step}.\"]}}"
    )]
    Throughput {
        /// The minimum.
        least: u32,
        /// Each is a multiple of this.
        step: u32,
        /// The maximum.
        most: u32,
    },
    /// A retention of the full fidelity change feed that is out of range.
    #[error("Invalid value {text} for '{option}': it is a number from {least} to {most}")]
    Retention {
        /// The text as written.
        text: String,
        /// The option.
        option: &'static str,
        /// The minimum.
        least: u64,
        /// The maximum.
        most: u64,
    },
    /// A full fidelity change feed of a view.
    #[error("A materialized view has no full fidelity change feed: its base table may have one")]
    LogOfView,
    /// Throughput for a keyspace that shares none.
    #[error("Cannot set provisioned throughput for database that is not configured for shared throughput")]
    NotShared,
}

impl CosmosRefusal {
    pub(in crate::planner::ddl) const fn code(&self) -> Code<'static> {
        match self {
            Self::Token(_) | Self::Merge | Self::PartitionId { .. } | Self::Placement(_) => Code::Syntax,
            Self::NotAlone
            | Self::OrderedKey(_)
            | Self::OrderedPartitions
            | Self::OrderedView
            | Self::OnlyAtFirst(_)
            | Self::Partitions(_)
            | Self::BothThroughputs
            | Self::Migration
            | Self::Throughput { .. }
            | Self::Retention { .. }
            | Self::LogOfView
            | Self::NotShared => Code::Invalid,
        }
    }
}
