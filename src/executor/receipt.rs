//! What the metering services exchange about a statement: what was executed, and what it was charged.

use std::sync::Arc;
use std::time::Duration;

use super::plans::PlannedAt;
use crate::command::Batch;
use crate::throughput::RequestUnits;

/// What was executed.
#[derive(Clone, Copy)]
pub(super) enum Executed<'a> {
    /// A statement, prepared or not.
    Statement(&'a Arc<PlannedAt>),
    /// A batch that came as a message.
    Batch(&'a Batch),
}

/// What a statement was charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChargeReceipt {
    /// The whole charge, as clients see it.
    pub(super) charge: RequestUnits,
    /// How long the statement waited in the server for request units; `None`: it did not wait.
    pub(super) waited: Option<Duration>,
}
