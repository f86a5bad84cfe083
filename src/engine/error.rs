//! What can go wrong with a request, by what the client is told.

use super::failure::{Access, FailureCause, StorageFailure};
use crate::consistency::WriteKind;
use crate::invariant::Broken;
use crate::partition::store::Damaged;
use crate::partition::{Consistency, MapError, Shortage};

/// Why a request was not carried out. Each variant is one of the protocol's error codes; texts are Cassandra's where people read them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is no CQL.
    #[error("{0}")]
    Syntax(String),
    /// The statement makes no sense, or its values do not.
    #[error("{0}")]
    Invalid(String),
    /// Only ALLOW FILTERING permits this read.
    #[error("{}", crate::command::NeedsFiltering)]
    NeedsFiltering,
    /// A split or merge that the table's partition map does not permit.
    #[error(transparent)]
    Partitions(#[from] MapError),
    /// The table was dropped after the request or job found it.
    #[error("the table does not exist")]
    TableGone,
    /// The statement is refused because of how things are set up.
    #[error("{0}")]
    Config(String),
    /// The user may not do this.
    #[error("{0}")]
    Unauthorized(String),
    /// The same was done a moment ago: later it may be done again.
    #[error("{0}")]
    TooSoon(String),
    /// Only the server itself fills the tables of this keyspace.
    #[error("{keyspace} keyspace is not user-modifiable.")]
    NotModifiable {
        /// The keyspace.
        keyspace: String,
    },
    /// The request breaks the protocol, as a forged paging state does.
    #[error("{0}")]
    Protocol(String),
    /// A keyspace or table of this name is there already.
    #[error("{message}")]
    AlreadyExists {
        /// The keyspace.
        keyspace: String,
        /// The table; empty when the keyspace itself exists.
        table: String,
        /// Cassandra's text.
        message: String,
    },
    /// Fewer replicas are alive than the consistency level asks for.
    #[error(transparent)]
    Unavailable(#[from] Shortage),
    /// The write was not acknowledged; it may have happened.
    #[error("Operation timed out - received only {received} responses.")]
    WriteTimeout {
        /// The level asked for.
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
        /// The level asked for.
        consistency: Consistency,
        /// Answers that came.
        received: u32,
        /// Answers that were needed.
        required: u32,
        /// Whether the replica asked for the data itself, not only for its digest, was among them.
        data_present: bool,
    },
    /// A write failed; it may have happened.
    #[error("{cause}")]
    WriteFailure {
        /// The level asked for.
        consistency: Consistency,
        /// The kind of write.
        write_kind: WriteKind,
        /// Why.
        cause: FailureCause,
    },
    /// A read failed.
    #[error("{cause}")]
    ReadFailure {
        /// The level asked for.
        consistency: Consistency,
        /// Why.
        cause: FailureCause,
    },
    /// A store failed, as the program itself sees it: requests convert it where they end, jobs log it.
    #[error(transparent)]
    Storage(#[from] StorageFailure),
    /// A read walked over more tombstones than it may.
    #[error(
        "Operation failed - received 0 responses and 1 failures: READ_TOO_MANY_TOMBSTONES from localhost/127.0.0.1:7000"
    )]
    TooManyTombstones {
        /// The level asked for.
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
    /// The memory for answers did not come in time.
    #[error(
        "The memory for answers is in use by other connections, whose clients do not read: try again later, ask for smaller pages, or raise \
         connections-memory-bytes-max"
    )]
    MemoryInUse,
    /// An answer needs so many bytes that its connection does not have now; it is made again once there are. Clients never see it.
    #[error("there is no memory for an answer of {bytes} bytes now")]
    NoRoom {
        /// How many.
        bytes: usize,
    },
    /// A function failed on these values.
    #[error("{message}")]
    FunctionFailure {
        /// Its keyspace.
        keyspace: String,
        /// Its name.
        name: String,
        /// CQL types of its arguments.
        arguments: Vec<String>,
        /// Cassandra's text.
        message: String,
    },
    /// What Cosmos refuses as if it were its own fault, 0x0000.
    #[error("{0}")]
    NotOffered(String),
    /// Bytes in the store are not the record that they should be.
    #[error(transparent)]
    Damaged(#[from] Damaged),
    /// An invariant of ours does not hold.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// Our own fault.
    #[error("{0}")]
    Server(String),
}

impl Error {
    /// The protocol's code, for logs; a shortage of a kind that has several has the general one.
    #[must_use]
    pub const fn code(&self) -> u16 {
        match self {
            Self::Syntax(_) => 0x2000,
            Self::Invalid(_) | Self::NeedsFiltering | Self::Partitions(_) | Self::TableGone => 0x2200,
            Self::Config(_) => 0x2300,
            Self::Unauthorized(_) | Self::NotModifiable { .. } => 0x2100,
            Self::Protocol(_) => 0x000A,
            Self::AlreadyExists { .. } => 0x2400,
            Self::Unavailable(_) => 0x1000,
            Self::WriteTimeout { .. } => 0x1100,
            Self::WriteFailure { .. } => 0x1500,
            Self::Storage(failure) => match failure.access {
                Access::Read => 0x1300,
                Access::Write => 0x1500,
            },
            Self::ReadTimeout { .. } => 0x1200,
            Self::ReadFailure { .. } | Self::TooManyTombstones { .. } => 0x1300,
            Self::Throttled { .. } | Self::MemoryInUse | Self::NoRoom { .. } | Self::TooSoon(_) => 0x1001,
            Self::FunctionFailure { .. } => 0x1400,
            Self::Damaged(_) | Self::Broken(_) | Self::Server(_) | Self::NotOffered(_) => 0x0000,
        }
    }
}

impl Error {
    /// Whether a change of a table's partition map is refused because another change came first: the table was dropped, or split,
    /// merged or moved there.
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

impl From<crate::guardrails::Violation> for Error {
    fn from(violation: crate::guardrails::Violation) -> Self {
        Self::Invalid(violation.0)
    }
}

impl From<crate::functions::Error> for Error {
    fn from(error: crate::functions::Error) -> Self {
        match error {
            crate::functions::Error::Failed {
                keyspace,
                name,
                arguments,
                message,
            } => Self::FunctionFailure {
                keyspace: keyspace.to_owned(),
                name,
                arguments,
                message,
            },
            other => Self::Invalid(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invariant::Invariant;

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
        assert!(!Error::Invalid("the table does not exist".to_owned()).is_overtaken());
    }
}
