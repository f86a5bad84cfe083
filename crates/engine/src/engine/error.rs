//! Failures of a command, by kind. Front ends have codes for them: `cql::Error` has those of the native protocol.

use super::failure::{FailureCause, OpeningFailure, StorageFailure};
use super::refusal::{
    ConditionRefusal, LevelRefusal, LimitRefusal, ListRefusal, MoveRefusal, NearestRefusal, Overlong, Refusal,
    SumRefusal, ThroughputRefusal, in_words,
};
use crate::partition::{MapError, Shortage};
use helenus_base::invariant::Broken;
use helenus_schema::guardrails::Violation;
use helenus_schema::roles::Denied;
use helenus_storage::storage::Damaged;
use helenus_types::consistency::Consistency;
use helenus_types::consistency::WriteKind;
use helenus_types::functions;

/// Why a command failed. The texts are Cassandra's where people read them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The command, or its values, are invalid.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// The role may not execute the command.
    #[error(transparent)]
    Denied(Box<Denied>),
    /// A split or merge that the table's partition map does not permit.
    #[error(transparent)]
    Partitions(#[from] MapError),
    /// The table was dropped after the request or job found it.
    #[error("the table does not exist")]
    TableGone,
    /// Only the server itself fills the tables of this keyspace.
    #[error("{keyspace} keyspace is not user-modifiable.")]
    NotModifiable {
        /// The keyspace.
        keyspace: String,
    },
    /// Only the server itself fills this table. Differs: Cassandra lets a superuser write it.
    #[error("Table {keyspace}.{table} is not user-modifiable.")]
    TableNotModifiable {
        /// The keyspace.
        keyspace: String,
        /// The table.
        table: String,
    },
    /// A logical partition has reached its size limit. The text is Azure Cosmos DB's.
    #[error("Partition key reached maximum size of {}. Learn more: https://aka.ms/CosmosDB/sql/errors/full-pk", in_words(*bytes_max))]
    PartitionFull {
        /// The most.
        bytes_max: u64,
    },
    /// Fewer replicas are alive than the consistency level requires.
    #[error(transparent)]
    Unavailable(#[from] Shortage),
    /// The write was not acknowledged; it may have happened.
    #[error("Operation timed out - received only {received} responses.")]
    WriteTimeout {
        /// The requested level.
        consistency: Consistency,
        /// Acknowledgements that came.
        received: u32,
        /// Acknowledgements that were needed.
        required: u32,
        /// The kind of write.
        write_kind: WriteKind,
    },
    /// The read was not answered by enough replicas in time.
    #[error("Operation timed out - received only {received} responses.")]
    ReadTimeout {
        /// The requested level.
        consistency: Consistency,
        /// Answers that came.
        received: u32,
        /// Answers that were needed.
        required: u32,
        /// Whether the replica that was to send the data itself, not only its digest, was among them.
        data_present: bool,
    },
    /// A write failed; it may have happened.
    #[error("{cause}")]
    WriteFailure {
        /// The requested level.
        consistency: Consistency,
        /// The kind of write.
        write_kind: WriteKind,
        /// Why.
        cause: FailureCause,
    },
    /// A read failed.
    #[error("{cause}")]
    ReadFailure {
        /// The requested level.
        consistency: Consistency,
        /// Why.
        cause: FailureCause,
    },
    /// A store failed, as the program itself reports it: requests convert it where they end, jobs log it.
    #[error(transparent)]
    Storage(#[from] StorageFailure),
    /// The stores cannot be opened.
    #[error(transparent)]
    Opening(#[from] OpeningFailure),
    /// A read walked over more tombstones than it may.
    #[error(
        "Operation failed - received 0 responses and 1 failures: READ_TOO_MANY_TOMBSTONES from localhost/127.0.0.1:7000"
    )]
    TooManyTombstones {
        /// The requested level.
        consistency: Consistency,
    },
    /// The request units of this second are spent; the text is Azure Cosmos DB's.
    #[error("{}", crate::throughput::refusal_text(*activity, *retry_after))]
    Throttled {
        /// The id of the request, which the client may quote.
        activity: uuid::Uuid,
        /// When a budget has request units again.
        retry_after: std::time::Duration,
    },
    /// An answer needs more bytes than its connection has now; the request is executed again once there are enough.
    /// Clients never see this error.
    #[error("there is no memory for an answer of {bytes} bytes now")]
    NoRoom {
        /// How many.
        bytes: usize,
    },
    /// The owner of the partitions has another definition of a table: the command is to be planned again, by the catalog that
    /// comes. Clients see this error only if that does not help either.
    #[error("the table has changed since the command was planned; try again")]
    Outdated,
    /// A function failed on these values.
    #[error(transparent)]
    FunctionFailure(Box<functions::Failed>),
    /// A function of GROUP BY failed on these values, which Cassandra finds in a replica.
    #[error("Operation failed - received 0 responses and 1 failures: {reason}")]
    GroupFailure {
        /// The requested level.
        consistency: Consistency,
        /// Why it failed.
        reason: Box<Error>,
    },
    /// Bytes in the store do not decode as the expected record.
    #[error(transparent)]
    Damaged(#[from] Damaged),
    /// An invariant of ours does not hold.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// A fault of the program or its environment: a description for the log.
    #[error("{0}")]
    Fault(String),
}

/// Why the schema was not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotChanged<R> {
    /// The intent was refused, for its front end's reason.
    Refused(R),
    /// It was not carried out.
    Failed(Error),
}

impl<R> From<Error> for NotChanged<R> {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Error {
    /// Whether stored data is damaged or lost, so that trying again does not help.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Storage(failure) => failure.is_damage(),
            Self::Damaged(_) | Self::Partitions(MapError::Damaged) => true,
            _ => false,
        }
    }

    /// As [`OpeningFailure::is_in_use`].
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        matches!(self, Self::Opening(failure) if failure.is_in_use())
    }

    /// Whether a change of a table's partition map is refused because another change came first: the table was dropped,
    /// or split, merged or moved at this place.
    pub(super) const fn is_overtaken(&self) -> bool {
        match self {
            Self::TableGone => true,
            Self::Partitions(error) => match error {
                MapError::AtBoundary { .. }
                | MapError::Unknown(_)
                | MapError::NotNeighbours { .. }
                | MapError::Apart { .. } => true,
                MapError::TooMany | MapError::Broken(_) | MapError::Damaged => false,
            },
            _ => false,
        }
    }
}

macro_rules! refusals {
    ($($kind:ident($refusal:ty)),* $(,)?) => {$(
        impl From<$refusal> for Error {
            #[cold]
            fn from(refusal: $refusal) -> Self {
                Self::from(Refusal::$kind(refusal))
            }
        }
    )*};
}

refusals!(
    Guardrail(Violation),
    Level(LevelRefusal),
    Limit(LimitRefusal),
    Condition(ConditionRefusal),
    List(ListRefusal),
    Sum(SumRefusal),
    Nearest(NearestRefusal),
    Throughput(ThroughputRefusal),
    Move(MoveRefusal),
);

impl From<Denied> for Error {
    #[cold]
    fn from(denied: Denied) -> Self {
        Self::Denied(Box::new(denied))
    }
}

impl From<Refusal> for Error {
    #[cold]
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

impl From<Overlong> for Error {
    #[cold]
    fn from(overlong: Overlong) -> Self {
        Refusal::Overlong(Box::new(overlong)).into()
    }
}

impl From<functions::Error> for Error {
    fn from(error: functions::Error) -> Self {
        match error {
            functions::Error::Failed(failed) => Self::FunctionFailure(failed),
            other => Refusal::Call(Box::new(other)).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_base::invariant::Invariant;

    #[test]
    fn a_full_partition_map_is_not_taken_for_an_overtaken_change() {
        for error in [
            MapError::TooMany,
            MapError::Damaged,
            Broken(Invariant::RingIsCovered).into(),
        ] {
            assert!(!Error::from(error).is_overtaken(), "{error}");
        }
        let boundary = MapError::AtBoundary { at: 1, id: 2 };
        let apart = MapError::Apart { left: 1, right: 2 };
        let neighbours = MapError::NotNeighbours { left: 1, right: 2 };
        for error in [boundary, apart, neighbours, MapError::Unknown(3)] {
            assert!(Error::from(error).is_overtaken(), "{error}");
        }
        assert!(Error::TableGone.is_overtaken());
        assert!(!Error::Fault("the table does not exist".to_owned()).is_overtaken());
    }
}
