//! Errors of a CQL request: each module's refusal as it is, and the protocol's code of each.

use super::role_refusal::RoleRefusal;
use helenus_engine::engine::audit::AuditFailure;
use helenus_engine::engine::{self, NotChanged};
use helenus_schema::guardrails::Violation;
use helenus_schema::planner::ddl::DdlError;
use helenus_schema::planner::{self, ddl, rules};
use helenus_types::consistency::{Consistency, WriteKind};
use helenus_types::wire::response::ErrorCode;

/// Why a request failed. Texts are Cassandra's where people read them.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// The text is no CQL.
    #[error(transparent)]
    Syntax(Box<grammar::SyntaxError>),
    /// The statement or its values are invalid.
    #[error(transparent)]
    Plan(Box<planner::Error>),
    /// A schema change that the schema does not permit.
    #[error(transparent)]
    Schema(Box<DdlError>),
    /// The compatibility profile does not permit the statement.
    #[error(transparent)]
    Profile(Box<rules::Refusal>),
    /// A statement about roles, or a missing permission.
    #[error(transparent)]
    Role(Box<RoleRefusal>),
    /// An error of the request itself, not of the statement.
    #[error(transparent)]
    Request(RequestRefusal),
    /// The command failed.
    #[error(transparent)]
    Engine(engine::Error),
    /// Values that Cassandra refuses only in a replica.
    #[error(transparent)]
    InReplica(Box<InReplica>),
    /// The owner of all partitions executes the statement, and this machine does not own them.
    #[error(
        "the owner of the partitions executes this statement, and it cannot be asked for it here: connect to it, or try again"
    )]
    ForOwner,
    /// An error before which the request was warned of something.
    #[error(transparent)]
    Warned(Box<Warned>),
}

/// Values that Cassandra refuses only in a replica, so that the client is told that a replica failed. The text tells the reason in addition,
/// which Cassandra writes to its log.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("Operation failed - received 0 responses and 1 failures: {reason}")]
pub struct InReplica {
    /// The requested level.
    pub consistency: Consistency,
    /// The kind of write; `None` means a read.
    pub write_kind: Option<WriteKind>,
    /// Why the values are refused.
    pub reason: planner::Error,
}

/// An error with the warnings that came before it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{error}")]
pub struct Warned {
    /// The error, itself without warnings.
    pub error: Error,
    /// Not empty.
    pub warnings: Vec<String>,
}

/// Errors of a request, whatever its statement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestRefusal {
    /// The keyspace for its unqualified tables does not exist.
    #[error("Keyspace '{0}' does not exist")]
    NoKeyspace(String),
    /// More or fewer values than markers.
    #[error("{} were {markers} markers(?) in CQL but {values} bound variables", if *in_batch { "There" } else { "there" })]
    Values {
        /// Cassandra begins the text with a capital letter in a batch.
        in_batch: bool,
        /// Markers of the statement.
        markers: usize,
        /// Values received.
        values: usize,
    },
    /// A member of a batch that writes nothing.
    #[error("Invalid statement in batch: only UPDATE, INSERT and DELETE statements are allowed.")]
    Member,
    /// Rows of several partitions are to be sorted and paged.
    #[error(
        "Cannot page queries with both ORDER BY and a IN restriction on the partition key; you must either remove the ORDER BY or the IN \
         and sort client side, or disable paging for this query"
    )]
    SortedPages,
    /// A read at ANY.
    #[error("ANY ConsistencyLevel is only supported for writes")]
    ReadAtAny,
    /// ALLOW FILTERING would be needed, and a guardrail forbids it: its text.
    #[error("{0}")]
    FilteringIsOff(&'static str),
    /// A guardrail.
    #[error(transparent)]
    Guardrail(Violation),
    /// DESCRIBE of an unknown object.
    #[error(transparent)]
    Describe(Box<helenus_schema::schema::describe::DescribeError>),
    /// A paging state that this server did not issue for the table.
    #[error("Invalid value for the paging state")]
    PagingState,
    /// A paging state of the change feed of a table that was dropped and created again, or of another table.
    #[error(
        "The paging state belongs to the change feed of another table, or of one that was dropped and created again: read the feed from its start"
    )]
    FeedOfOtherTable,
}

impl Error {
    /// The protocol's code.
    #[must_use]
    #[deny(clippy::wildcard_enum_match_arm)]
    pub fn code(&self) -> ErrorCode {
        use planner::Error as Planner;
        match self {
            Self::Syntax(_) => ErrorCode::Syntax,
            Self::Plan(error) => match **error {
                Planner::Incompatible(_) => ErrorCode::Syntax,
                Planner::Name(ref refusal) if refusal.is_syntax() => ErrorCode::Syntax,
                Planner::Function(_) => ErrorCode::FunctionFailure,
                Planner::NeedsFiltering
                | Planner::UndefinedColumn { .. }
                | Planner::UnknownFunction(_)
                | Planner::Call(_)
                | Planner::Result { .. }
                | Planner::NonCounter { .. }
                | Planner::Restriction(_)
                | Planner::Bound(_)
                | Planner::Ann(_)
                | Planner::Condition(_)
                | Planner::Batch(_)
                | Planner::Modify(_)
                | Planner::Operation(_)
                | Planner::Select(_)
                | Planner::Selection(_)
                | Planner::Term(_)
                | Planner::Value(_)
                | Planner::Name(_)
                | Planner::Unsupported(_) => ErrorCode::Invalid,
            },
            Self::Schema(error) => match error.code() {
                ddl::Code::Syntax => ErrorCode::Syntax,
                ddl::Code::Unauthorized => ErrorCode::Unauthorized,
                ddl::Code::Invalid => ErrorCode::Invalid,
                ddl::Code::Configuration => ErrorCode::Config,
                ddl::Code::AlreadyExists { .. } => ErrorCode::AlreadyExists,
            },
            Self::Profile(refusal) => match refusal.code() {
                rules::Code::Syntax => ErrorCode::Syntax,
                rules::Code::Server => ErrorCode::Server,
                rules::Code::Invalid => ErrorCode::Invalid,
                rules::Code::Configuration => ErrorCode::Config,
            },
            Self::Role(refusal) => refusal.code(),
            Self::Request(RequestRefusal::PagingState) => ErrorCode::Protocol,
            Self::Request(
                RequestRefusal::NoKeyspace(_)
                | RequestRefusal::Values { .. }
                | RequestRefusal::Member
                | RequestRefusal::SortedPages
                | RequestRefusal::ReadAtAny
                | RequestRefusal::FilteringIsOff(_)
                | RequestRefusal::Guardrail(_)
                | RequestRefusal::Describe(_)
                | RequestRefusal::FeedOfOtherTable,
            ) => ErrorCode::Invalid,
            Self::Engine(error) => of_engine(error),
            Self::InReplica(refused) => match refused.write_kind {
                Some(_) => ErrorCode::WriteFailure,
                None => ErrorCode::ReadFailure,
            },
            Self::ForOwner => ErrorCode::Unavailable,
            Self::Warned(warned) => warned.error.code(),
        }
    }

    /// The failure of its request, for the audit log.
    #[must_use]
    pub fn audit_failure(&self) -> AuditFailure<'_> {
        AuditFailure {
            is_denied: self.code() == ErrorCode::Unauthorized,
            error: self,
        }
    }

    /// The error itself, and its warnings.
    #[must_use]
    pub fn parts(&self) -> (&Self, &[String]) {
        match self {
            Self::Warned(warned) => (&warned.error, &warned.warnings),
            error => (error, &[]),
        }
    }

    /// The error with the warnings that came before it.
    #[cold]
    pub(super) fn warned(self, warnings: Vec<String>) -> Self {
        // A request that waits for memory begins again, and is warned then.
        if warnings.is_empty() || matches!(self, Self::Engine(engine::Error::NoRoom { .. })) {
            return self;
        }
        let error = self;
        Self::Warned(Box::new(Warned { error, warnings }))
    }

    /// The error of values that do not bind. `write_kind` is `None` for a read.
    #[cold]
    pub(super) fn unbound(error: planner::Error, consistency: Consistency, write_kind: Option<WriteKind>) -> Self {
        if !error.is_of_replica() {
            return error.into();
        }
        Self::InReplica(Box::new(InReplica {
            consistency,
            write_kind,
            reason: error,
        }))
    }

    /// Whether the server itself, or its environment, is at fault.
    #[must_use]
    pub fn is_fault(&self) -> bool {
        matches!(
            self.parts().0,
            Self::Engine(
                engine::Error::Opening(_)
                    | engine::Error::Damaged(_)
                    | engine::Error::Broken(_)
                    | engine::Error::Fault(_)
                    | engine::Error::Storage(_)
            )
        )
    }

    /// As [`engine::Error::is_damage`].
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self.parts().0, Self::Engine(error) if error.is_damage())
    }

    /// As [`engine::Error::at_edge`].
    pub(super) fn at_edge(self, level: Consistency, kind: WriteKind) -> Self {
        match self {
            Self::Engine(error) => Self::Engine(error.at_edge(level, kind)),
            other => other,
        }
    }
}

#[deny(clippy::wildcard_enum_match_arm)]
const fn of_engine(error: &engine::Error) -> ErrorCode {
    use engine::Error as Is;
    match error {
        Is::Refused(_) | Is::Partitions(_) | Is::TableGone => ErrorCode::Invalid,
        Is::Denied(_) => ErrorCode::Unauthorized,
        Is::NotModifiable { .. } | Is::TableNotModifiable { .. } | Is::PartitionFull { .. } => ErrorCode::Unauthorized,
        Is::Unavailable(_) => ErrorCode::Unavailable,
        Is::WriteTimeout { .. } => ErrorCode::WriteTimeout,
        Is::WriteFailure { .. } => ErrorCode::WriteFailure,
        Is::ReadTimeout { .. } => ErrorCode::ReadTimeout,
        Is::ReadFailure { .. } | Is::TooManyTombstones { .. } | Is::GroupFailure { .. } => ErrorCode::ReadFailure,
        Is::Throttled { .. } | Is::NoRoom { .. } | Is::Outdated => ErrorCode::Overloaded,
        Is::FunctionFailure(_) => ErrorCode::FunctionFailure,
        Is::Opening(_) | Is::Storage(_) | Is::Damaged(_) | Is::Broken(_) | Is::Fault(_) => ErrorCode::Server,
    }
}

impl Error {
    /// Whether a reader of the full fidelity change feed wants changes that are no longer there.
    #[must_use]
    pub fn is_of_trimmed_feed(&self) -> bool {
        match self {
            Self::Warned(warned) => warned.error.is_of_trimmed_feed(),
            Self::Engine(engine::Error::Refused(refusal)) => {
                matches!(**refusal, engine::Refusal::FeedTrimmed { .. })
            }
            _ => false,
        }
    }
}

impl From<engine::Error> for Error {
    fn from(error: engine::Error) -> Self {
        Self::Engine(error)
    }
}

impl From<grammar::SyntaxError> for Error {
    #[cold]
    fn from(error: grammar::SyntaxError) -> Self {
        Self::Syntax(Box::new(error))
    }
}

impl From<planner::Error> for Error {
    #[cold]
    fn from(error: planner::Error) -> Self {
        Self::Plan(Box::new(error))
    }
}

impl From<DdlError> for Error {
    #[cold]
    fn from(error: DdlError) -> Self {
        Self::Schema(Box::new(error))
    }
}

impl From<NotChanged<DdlError>> for Error {
    #[cold]
    fn from(error: NotChanged<DdlError>) -> Self {
        match error {
            NotChanged::Refused(refusal) => refusal.into(),
            NotChanged::Failed(error) => error.into(),
        }
    }
}

impl From<rules::Refusal> for Error {
    #[cold]
    fn from(refusal: rules::Refusal) -> Self {
        Self::Profile(Box::new(refusal))
    }
}

impl From<RoleRefusal> for Error {
    #[cold]
    fn from(refusal: RoleRefusal) -> Self {
        Self::Role(Box::new(refusal))
    }
}

impl From<RequestRefusal> for Error {
    #[cold]
    fn from(refusal: RequestRefusal) -> Self {
        Self::Request(refusal)
    }
}

impl From<Violation> for Error {
    #[cold]
    fn from(violation: Violation) -> Self {
        Self::Request(RequestRefusal::Guardrail(violation))
    }
}
