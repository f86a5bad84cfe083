//! Batches of writes.

use super::Write;

/// The atomicity of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchKind {
    /// All are applied, or none: a batch record is durable before the first of them.
    Logged,
    /// Each partition's writes are applied together; partitions may differ.
    Unlogged,
    /// Writes of counters.
    Counter,
}

/// A batch of writes, ready to be executed.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Its atomicity.
    pub kind: BatchKind,
    /// Members, in order. If some have conditions, all are on one partition of one table, and all or none are applied.
    pub modifications: Vec<Write>,
    /// `USING TIMESTAMP` of the whole batch, µs.
    pub timestamp: Option<i64>,
    /// Whether some member has a condition.
    pub conditional: bool,
}
