//! Why an INSERT, UPDATE or DELETE is refused.

use thiserror::Error;

use crate::command::WriteVerb;

/// A modification that the table does not support, or whose USING has a value out of bounds.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ModifyRefusal {
    /// `USING TIMESTAMP null`.
    #[error("Invalid null value of timestamp")]
    NullTimestamp,
    /// A timestamp that is no 8 bytes.
    #[error("Invalid timestamp value: ")]
    TimestampBytes,
    /// The minimum timestamp, which represents a missing one.
    #[error("Out of bound timestamp, must be in [{}, {}]", i64::MIN + 1, i64::MAX)]
    TimestampRange,
    /// A time to live that is no 4 bytes.
    #[error("Invalid TTL value: ")]
    TtlBytes,
    /// A time to live above the limit, both in seconds.
    #[error("ttl is too large. requested ({seconds}) maximum ({seconds_max})")]
    TtlTooLarge {
        /// The time to live.
        seconds: i32,
        /// The limit.
        seconds_max: i32,
    },
    /// A time to live below 0, in seconds.
    #[error("A TTL must be greater or equal to 0, but was {0}")]
    TtlNegative(i32),
    /// USING TIMESTAMP on a table of entities.
    #[error(
        "The server dates the rows of a table of entities, since their version must grow: USING TIMESTAMP cannot be given"
    )]
    EntityTimestamp,
    /// USING TTL on a table of entities.
    #[error("The version of an entity does not expire: USING TTL cannot be given on a table of entities")]
    EntityTtl,
    /// A value for the version of an entity.
    #[error("Each write renews the column 'version' of a table of entities: it cannot be set")]
    EntityVersion,
    /// DELETE of columns of an entity that need not be there.
    #[error(
        "DELETE of columns in a table of entities needs IF: it renews the version of the row, which would make one that is missing"
    )]
    EntityColumns,
    /// INSERT into a table of counters.
    #[error("INSERT statements are not allowed on counter tables, use UPDATE instead")]
    InsertOfCounter,
    /// INSERT of more or fewer values than columns.
    #[error("Unmatched column names/values")]
    Unmatched,
    /// INSERT names a column twice.
    #[error("The column names contains duplicates")]
    DuplicateColumns,
    /// SET of this column of the primary key.
    #[error("PRIMARY KEY part {0} found in SET part")]
    SetOfKey(String),
    /// DELETE of this column of the primary key.
    #[error("Invalid identifier {0} for deletion (should not be a PRIMARY KEY part)")]
    DeleteOfKey(String),
    /// DELETE … IF of columns of rows, without the full key.
    #[error(
        "DELETE statements must restrict all PRIMARY KEY columns with equality relations in order to delete non static columns"
    )]
    PartialKeyDeletes,
    /// DELETE … IF with a condition on columns of rows, without the full key.
    #[error(
        "DELETE statements must restrict all PRIMARY KEY columns with equality relations in order to use IF condition on non static columns"
    )]
    PartialKeyCondition,
    /// USING TIMESTAMP beside IF.
    #[error("Cannot provide custom timestamp for conditional updates")]
    ConditionalTimestamp,
    /// IF on a table of counters.
    #[error("Conditional updates are not supported on counter tables")]
    ConditionalCounter,
    /// USING TIMESTAMP for counters.
    #[error("Cannot provide custom timestamp for counter updates")]
    CounterTimestamp,
    /// USING TTL for counters.
    #[error("Cannot provide custom TTL for counter updates")]
    CounterTtl,
    /// A virtual table.
    #[error("Modification is not supported by table {keyspace}.{table}")]
    Virtual {
        /// Its keyspace.
        keyspace: String,
        /// The table.
        table: String,
    },
    /// USING TIMESTAMP of a virtual table.
    #[error("Custom timestamp is not supported by virtual tables")]
    VirtualTimestamp,
    /// USING TTL of a virtual table.
    #[error("Expiring columns are not supported by virtual tables")]
    VirtualTtl,
    /// IF of a virtual table.
    #[error("Conditional updates are not supported by virtual tables")]
    VirtualCondition,
    /// IF beside IN on the partition key.
    #[error("IN on the partition key is not supported with conditional {}", plural(*.0))]
    ConditionalPartitionIn(WriteVerb),
    /// IF beside IN on clustering columns.
    #[error("IN on the clustering key columns is not supported with conditional {}", plural(*.0))]
    ConditionalClusteringIn(WriteVerb),
    /// INSERT of a key alone into a table with COMPACT STORAGE that has this column of values.
    #[error("Column {0} is mandatory for this COMPACT STORAGE table")]
    MandatoryInCompact(String),
    /// DELETE of columns of a range of rows.
    #[error("Range deletions are not supported for specific columns")]
    RangeOfColumns,
}

const fn plural(kind: WriteVerb) -> &'static str {
    match kind {
        WriteVerb::Delete => "deletions",
        WriteVerb::Insert | WriteVerb::Update => "updates",
    }
}
