//! Why a BATCH is refused, although each of its statements is valid.

use thiserror::Error;

/// Statements that cannot be one batch. Source: Cassandra's `BatchStatement.validate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BatchRefusal {
    /// USING TIMESTAMP beside a condition.
    #[error("Cannot provide custom timestamp for conditional BATCH")]
    TimestampOfConditional,
    /// USING TIMESTAMP of counters.
    #[error("Cannot provide custom timestamp for counter BATCH")]
    TimestampOfCounter,
    /// USING TIMESTAMP of the batch and of a statement.
    #[error("Timestamp must be set either on BATCH or individual statements")]
    TimestampTwice,
    /// A counter batch with another statement.
    #[error("Cannot include non-counter statement in a counter batch")]
    OthersInCounter,
    /// Counter statements beside others.
    #[error("Counter and non-counter mutations cannot exist in the same batch")]
    Mixed,
    /// A counter in a logged batch.
    #[error("Cannot include a counter statement in a logged batch")]
    CounterInLogged,
    /// A virtual table in a logged batch.
    #[error("Cannot include a virtual table statement in a logged batch")]
    VirtualInLogged,
    /// A virtual table beside others.
    #[error("Mutations for virtual and regular tables cannot exist in the same batch")]
    VirtualMixed,
    /// A condition and a virtual table.
    #[error("Conditional BATCH statements cannot include mutations for virtual tables")]
    VirtualCondition,
    /// A condition beside counters.
    #[error("Conditional updates are not supported on counter tables")]
    ConditionOnCounter,
    /// A condition and two tables.
    #[error("Batch with conditions cannot span multiple tables")]
    ConditionAcrossTables,
    /// A condition and two partitions.
    #[error("Batch with conditions cannot span multiple partitions")]
    ConditionAcrossPartitions,
    /// USING TTL of the batch.
    #[error("Global TTL on the BATCH statement is not supported.")]
    TimeToLive,
}
