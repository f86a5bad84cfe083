//! Reasons for which the engine refuses a command. They are data; `Display` makes the text. Texts are Cassandra's or
//! Cosmos's where these have one.

use crate::throughput::Footing;
use helenus_schema::guardrails::Violation;
use helenus_schema::profile::AccountConsistency;
use helenus_types::consistency::Consistency;
use helenus_types::functions;
use helenus_types::types;

/// Why a command is refused. It changed nothing, and is refused again unless the command, the schema or a setting
/// changes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A guardrail.
    #[error(transparent)]
    Guardrail(Violation),
    /// Its consistency level.
    #[error(transparent)]
    Level(LevelRefusal),
    /// A limit on written data.
    #[error(transparent)]
    Limit(LimitRefusal),
    /// A condition.
    #[error(transparent)]
    Condition(ConditionRefusal),
    /// An element of a list.
    #[error(transparent)]
    List(ListRefusal),
    /// A sum beside a condition.
    #[error(transparent)]
    Sum(SumRefusal),
    /// An approximate-nearest-neighbour read.
    #[error(transparent)]
    Nearest(NearestRefusal),
    /// Throughput.
    #[error(transparent)]
    Throughput(ThroughputRefusal),
    /// A move of a physical partition.
    #[error(transparent)]
    Move(MoveRefusal),
    /// A function rejects its arguments.
    #[error(transparent)]
    Call(Box<functions::Error>),
    /// A value is invalid for its type.
    #[error(transparent)]
    Value(types::Invalid),
    /// A refusal by the owner of the partitions, in its words.
    #[error("{0}")]
    Told(String),
    /// Null as an element of a set, map or vector.
    #[error("null is not supported inside collections")]
    NullElement,
    /// No bytes as the value of this column, the only clustering column of a table with COMPACT STORAGE.
    #[error("Invalid empty or null value for column {0}")]
    EmptyClustering(String),
    /// A value is too long for an index.
    #[error(transparent)]
    Overlong(Box<Overlong>),
    /// An answer is larger than the memory that one may take.
    #[error(
        "The answer is larger than {bytes_max} bytes, the most that one may take in memory: ask for pages of fewer rows, or raise \
         connections-memory-bytes-max"
    )]
    AnswerTooLarge {
        /// The largest answer.
        bytes_max: usize,
    },
    /// The client disconnected before it was answered.
    #[error("The client has disconnected")]
    ClientLeft,
    /// A table does not exist.
    #[error("table {keyspace}.{table} does not exist")]
    NoTable {
        /// Its keyspace.
        keyspace: String,
        /// Its name.
        table: String,
    },
    /// The change feed of a table is being built.
    #[error("The change feed of {keyspace}.{table} is being built: read it when the build is complete")]
    FeedInBuild {
        /// Its keyspace.
        keyspace: String,
        /// Its name.
        table: String,
    },
    /// A table has no full fidelity change feed.
    #[error(
        "Table {keyspace}.{table} has no full fidelity change feed: ALTER TABLE … WITH cosmosdb_full_fidelity_retention_seconds = 86400 \
         begins one"
    )]
    NoLog {
        /// Its keyspace.
        keyspace: String,
        /// Its name.
        table: String,
    },
    /// A SELECT of the full fidelity change feed.
    #[error("The full fidelity change feed is read by `helenus feed --full` and from the admin port, not by a SELECT")]
    FullFidelity,
    /// Changes that the full fidelity change feed no longer has, or never had.
    #[error(
        "The full fidelity change feed of {keyspace}.{table} has no changes of that time any more: what it has begins after {begins}. Read it \
         from its start, and the table's rows"
    )]
    FeedTrimmed {
        /// Its keyspace.
        keyspace: String,
        /// Its name.
        table: String,
        /// When its changes begin.
        begins: String,
    },
    /// A row's key is too long for an entry of the change feed: the most bytes.
    #[error(
        "The primary key is too long for a table with a change feed, by which its key may have {bytes_max} bytes at most"
    )]
    FeedKey {
        /// The most bytes.
        bytes_max: usize,
    },
    /// A restored schema or row does not fit the present schema. Holds the reason.
    #[error("{0}")]
    Restore(String),
}

/// Why a consistency level is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LevelRefusal {
    /// A read is stricter than the account.
    #[error("Consistency level {} is not allowed for reads of an account whose consistency is {}", asked.name(), account.name())]
    Account {
        /// The read's level.
        asked: Consistency,
        /// The account's.
        account: AccountConsistency,
    },
    /// The given serial level is not a serial one.
    #[error("Invalid consistency for conditional update. Must be one of SERIAL or LOCAL_SERIAL")]
    Serial,
    /// A serial level as the commit level of a conditional write.
    #[error(
        "{} is not supported as conditional update commit consistency. Use ANY if you mean \"make sure it is accepted but I don't care how \
         many replicas commit it for non-SERIAL reads\"",
        .0.name()
    )]
    Commit(Consistency),
    /// EACH_QUORUM where there are no data centres: the keyspace's strategy.
    #[error("consistency level EACH_QUORUM not compatible with replication strategy ({0})")]
    EachQuorum(String),
    /// ANY for a counter: its table.
    #[error("Consistency level ANY is not yet supported for counter table {0}")]
    AnyForCounter(String),
    /// A serial level for a counter.
    #[error("Counter operations are inherently non-serializable")]
    SerialForCounter,
    /// NODE_LOCAL, which only Cassandra's own tools use.
    #[error("NODE_LOCAL consistency level is highly dangerous and should be used only for debugging purposes")]
    NodeLocal,
    /// A serial level for a write without a condition.
    #[error("You must use conditional updates for serializable writes")]
    SerialWrite,
    /// A serial read of several partitions at once.
    #[error("SERIAL/LOCAL_SERIAL consistency may only be requested for one partition at a time")]
    SerialOfSeveral,
}

/// The limit that a command exceeds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitRefusal {
    /// Statements of a batch.
    #[error("Batch request has more operations than what is supported.")]
    Operations,
    /// Bytes of a partition key.
    #[error("Key length of {bytes} is longer than maximum of {bytes_max}")]
    Key {
        /// Its bytes.
        bytes: usize,
        /// The largest number of bytes.
        bytes_max: usize,
    },
    /// A time to live.
    #[error("ttl is too large. requested ({seconds}) maximum ({seconds_max})")]
    Ttl {
        /// The requested value.
        seconds: u32,
        /// The largest value.
        seconds_max: u32,
    },
    /// A negative time to live.
    #[error("A TTL must be greater or equal to 0, but was {0}")]
    TtlNegative(i32),
    /// A time to live beyond what Cassandra's cells can express.
    #[error(
        "Request on table {keyspace}.{table} with ttl of {seconds} seconds exceeds maximum supported expiration date of \
         2038-01-19T03:14:06+00:00. In order to avoid this use a lower TTL, change the expiration date overflow policy or upgrade \
         to a version where this limitation is fixed. See CASSANDRA-14092 and CASSANDRA-14227 for more details."
    )]
    Expiry {
        /// The table's keyspace.
        keyspace: String,
        /// The table.
        table: String,
        /// The requested value.
        seconds: u32,
    },
    /// Bytes of a batch, by a guardrail.
    #[error("Batch too large")]
    Batch,
    /// A row merged with the stored one.
    #[error(
        "A row would be {bytes} bytes long, and may be {bytes_max}: spread its data over several rows, or raise row-bytes-max"
    )]
    Row {
        /// Its size in bytes.
        bytes: usize,
        /// The largest row in bytes.
        bytes_max: usize,
    },
    /// A store's own limit: its text.
    #[error("{0}")]
    Store(String),
}

/// Why a condition is not evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConditionRefusal {
    /// An empty batch.
    #[error("Batch with conditions is empty")]
    Empty,
    /// Several partitions by IN.
    #[error("IN on the partition key is not supported with conditional updates")]
    In,
    /// Members of several tables.
    #[error("Batch with conditions cannot span multiple tables")]
    Tables,
    /// Members of several partitions.
    #[error("Batch with conditions cannot span multiple partitions")]
    Partitions,
    /// IF EXISTS and IF NOT EXISTS on one row.
    #[error("Cannot mix IF EXISTS and IF NOT EXISTS conditions for the same row")]
    ExistsAndNot,
    /// IF EXISTS and conditions on values of one row.
    #[error("Cannot mix IF conditions and IF EXISTS for the same row")]
    ValuesAndExists,
    /// IF NOT EXISTS and conditions on values of one row.
    #[error("Cannot mix IF conditions and IF NOT EXISTS for the same row")]
    ValuesAndNotExists,
    /// No timestamp is later than that of the stored row.
    #[error(
        "Cannot apply the condition: a row that it reads or writes has the timestamp 9223372036854775807, the last one there is, so that no \
         later write takes effect"
    )]
    LastTimestamp,
}

/// Why an element of a list cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListRefusal {
    /// An element of a null list is deleted.
    #[error("Attempted to delete an element from a list which is null")]
    DeleteOfNull,
    /// An element of a null list is set.
    #[error("Attempted to set an element on a list which is null")]
    SetOfNull,
    /// The position is beyond the end of the list.
    #[error("List index {position} out of bound, list has size {size}")]
    Position {
        /// The requested position, from 0.
        position: i32,
        /// Elements of the list.
        size: usize,
    },
}

/// Why something cannot be added to a value beside a condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SumRefusal {
    /// Null.
    #[error("Invalid null value for the sum of column {0}")]
    Null(String),
    /// The sum is larger than a value may be, or what is stored is no number.
    #[error("The sum of column {0} is no value of its type")]
    Impossible(String),
}

/// Why an approximate-nearest-neighbour read is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NearestRefusal {
    /// Aggregates or groups.
    #[error("Top-K queries can not be run with aggregation")]
    Aggregation,
    /// A serial level.
    #[error("Top-K queries can only be run with consistency level ONE/LOCAL_ONE. Consistency level {} was used.", .0.name())]
    Level(Consistency),
    /// PER PARTITION LIMIT.
    #[error("Top-K queries do not support per-partition limits")]
    PerPartitionLimit,
    /// No LIMIT.
    #[error("Top-K queries must have a limit specified and the limit must be less than the query page size")]
    NoLimit,
    /// A LIMIT above the largest.
    #[error(
        "Use of ANN OF in an ORDER BY clause requires a LIMIT that is not greater than {rows_max}. LIMIT was {rows}"
    )]
    Limit {
        /// The requested rows.
        rows: u32,
        /// The most rows.
        rows_max: u32,
    },
}

/// Why throughput is not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ThroughputRefusal {
    /// The server has no metering: the keyspace, and the table if it is the table's throughput.
    #[error(
        "{} has provisioned throughput, which this server cannot enforce: it was started without metering",
        match table {
            Some(table) => format!("Table {keyspace}.{table}"),
            None => format!("Keyspace {keyspace}"),
        }
    )]
    NotMetered {
        /// The keyspace.
        keyspace: String,
        /// The table.
        table: Option<String>,
    },
    /// Throughput of a table that shares its keyspace's. The text is our own; Cosmos's is not known.
    #[error("Cannot set provisioned throughput for a table that uses its keyspace's shared throughput")]
    Shared,
    /// Less than the lower bound.
    #[error("{}", footing.below(*asked, *least, *step))]
    Below {
        /// The figures from which the lower bound is computed.
        footing: Footing,
        /// The requested throughput, RU/s.
        asked: u32,
        /// The lower bound, RU/s.
        least: u32,
        /// The granularity, RU/s.
        step: u32,
    },
}

fn name_of_store(number: u32) -> String {
    match number {
        0 => "the main store".to_owned(),
        _ => format!("store {number}"),
    }
}

/// Why a physical partition is not moved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoveRefusal {
    /// No such partition.
    #[error("There is no physical partition {0}")]
    Unknown(u64),
    /// A move of a partition to the store in which it is.
    #[error("Physical partition {id} is in {} already", name_of_store(*store))]
    AtHome {
        /// The partition.
        id: u64,
        /// The store.
        store: u32,
    },
    /// A move to a store of its own of a partition that has one.
    #[error("Physical partition {id} has a store of its own already: {store}")]
    Alone {
        /// The partition.
        id: u64,
        /// Its store.
        store: u32,
    },
    /// An index is not complete: its name.
    #[error("Index {0} is being built; physical partitions of its table can be moved when it is complete")]
    IndexInBuild(String),
    /// The change feed is not complete: its table.
    #[error("The change feed of {0} is being built; physical partitions of the table can be moved when it is complete")]
    FeedInBuild(String),
    /// The largest number of stores exists already.
    #[error(
        "There are {stores_max} stores of lifted physical partitions already; lower a physical partition first, or raise stores_max"
    )]
    Stores {
        /// The most side stores.
        stores_max: usize,
    },
    /// Another change came before the end of the move.
    #[error(
        "The table or its physical partitions changed while physical partition {0} was moved; it is where it was, try again"
    )]
    Overtaken(u64),
    /// More keys were written during a copy than it can record.
    #[error("More was written to the physical partition than could be copied beside it; try again")]
    TooMuchWritten,
}

/// A value that is too large for an index.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "Cannot index value of size {bytes} for index {index} on {keyspace}.{table}({column}) (maximum allowed size={bytes_max})"
)]
pub struct Overlong {
    /// Its size in bytes.
    pub bytes: usize,
    /// The index.
    pub index: String,
    /// The table's keyspace.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// The column.
    pub column: String,
    /// The largest size in bytes.
    pub bytes_max: usize,
}

/// Bytes as Cosmos's texts print them: `20 GB`, `2.5 MB`.
pub(super) fn in_words(bytes: u64) -> String {
    let units = [("GB", 30), ("MB", 20), ("KB", 10)];
    let Some((unit, bits)) = units.into_iter().find(|(_, bits)| bytes >> bits > 0) else {
        return format!("{bytes} bytes");
    };
    let hundredths = (u128::from(bytes) * 100) >> bits;
    match (hundredths / 100, hundredths % 100) {
        (whole, 0) => format!("{whole} {unit}"),
        (whole, part) if part % 10 == 0 => format!("{whole}.{} {unit}", part / 10),
        (whole, part) => format!("{whole}.{part:02} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_in_their_units() {
        let texts = [0, 1023, 1536, 5 << 20, (20 << 30) / 1000, 20 << 30, u64::MAX].map(in_words);
        let expected = [
            "0 bytes",
            "1023 bytes",
            "1.5 KB",
            "5 MB",
            "20.47 MB",
            "20 GB",
            "17179869183.99 GB",
        ];
        assert_eq!(texts, expected);
    }
}
