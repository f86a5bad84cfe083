//! Reasons why the profile `cosmos` refuses a statement that Cassandra accepts.

use thiserror::Error;

use crate::schema::index::COSMOS_CLASSES;

/// Why a statement is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Cosmos does not have this feature; the message is ours.
    #[error("{0} is not supported in the profile cosmos")]
    Unsupported(&'static str),
    /// Cosmos does not have this function; the message is ours.
    #[error("The function {0} is not supported in the profile cosmos")]
    Function(String),
    /// An aggregate of a column of the primary key; the message is ours.
    #[error("{function}() of {column}, a column of the primary key, is not supported in the profile cosmos")]
    AggregateOfKey {
        /// The aggregate.
        function: String,
        /// The column.
        column: String,
    },
    /// A logged batch.
    #[error("Logged batches are not supported by the service yet. Please use unlogged batches instead.")]
    LoggedBatch,
    /// A comma after the last column of CREATE TABLE, reported as Cassandra's grammar reports an unknown token.
    #[error("line {line}:{column} no viable alternative at input ')'")]
    CommaAtEnd {
        /// From 1.
        line: usize,
        /// From 0.
        column: usize,
    },
    /// A `gc_grace_seconds` other than 0.
    #[error("gc_grace_seconds value must be zero.")]
    Grace,
    /// CREATE CUSTOM INDEX of this class.
    #[error(
        "When using custom indexes, must have a class name and set to a supported class. Supported class names are [{}] Got '{class}'",
        known_classes()
    )]
    IndexClass {
        /// The class.
        class: String,
    },
    /// ORDER BY without the index that it needs.
    #[error(
        "ORDER BY requires creating a custom index: CosmosClusteringIndex. Please create a custom index and re-issue this query"
    )]
    OrderWithoutIndex,
    /// DELETE of a range.
    #[error("Only EQ relation is supported on the partition key for now for DELETE statements")]
    DeleteOfRange,
    /// USING TIMESTAMP for a table without timestamps per cell.
    #[error(
        "User specified timestamp not supported for this table. Please re-create the table with cosmosdb_cell_level_timestamp=true AND cosmosdb_cell_level_timestamp_tombstones=true AND cosmosdb_cell_level_timetolive=true."
    )]
    Timestamp,
    /// DELETE of a row with IF.
    #[error("Conditional delete of an entire row is not supported.")]
    ConditionalDelete,
    /// DELETE without all clustering columns.
    #[error("Some clustering keys are missing")]
    ClusteringMissing,
    /// Static columns and others in one statement with IF.
    #[error("Conditions and assignments containing combination of Static and Regular columns are not supported.")]
    MixedColumns,
}

/// The protocol's code of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Server error, 0x0000.
    Server,
    /// Syntax error, 0x2000.
    Syntax,
    /// Invalid, 0x2200.
    Invalid,
    /// Config error, 0x2300.
    Configuration,
}

impl Refusal {
    /// Its code.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::LoggedBatch => Code::Server,
            Self::CommaAtEnd { .. } => Code::Syntax,
            Self::IndexClass { .. } => Code::Configuration,
            Self::Unsupported(_)
            | Self::Function(_)
            | Self::AggregateOfKey { .. }
            | Self::Grace
            | Self::OrderWithoutIndex
            | Self::DeleteOfRange
            | Self::Timestamp
            | Self::ConditionalDelete
            | Self::ClusteringMissing
            | Self::MixedColumns => Code::Invalid,
        }
    }
}

/// `'first','second'`.
fn known_classes() -> String {
    let known: Vec<String> = COSMOS_CLASSES.iter().map(|class| format!("'{class}'")).collect();
    known.join(",")
}
