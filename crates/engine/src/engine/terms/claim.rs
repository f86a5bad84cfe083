//! The reservations of one request in the budgets that admitted it, until it is charged.

use std::sync::Mutex;
use std::time::Duration;

use crate::throughput::{Held, PartitionRef};

/// The owner of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Owner {
    /// A physical partition.
    Partition(PartitionRef),
    /// DDL and reads of the schema.
    Metadata,
}

/// The outcome of the admission of one request.
#[derive(Debug, Default)]
pub(in crate::engine) struct Claim {
    /// The held admissions, with their owners.
    pub(in crate::engine) held: Mutex<Vec<(Owner, Held)>>,
    /// Why the request was refused at its first attempt. It may have been admitted later.
    pub(in crate::engine) throttled: Option<Throttled>,
    /// How long the request waited in the server.
    pub(in crate::engine) waited: Duration,
}

impl Claim {
    /// How long the request waited in the server for its units; `None` means that its first attempt decided.
    pub(in crate::engine) fn delay(&self) -> Option<Duration> {
        self.throttled
            .filter(|throttled| throttled.retried)
            .map(|_| self.waited)
    }
}

/// A refusal by a budget.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct Throttled {
    /// The account that refused.
    pub(in crate::engine) owner: Owner,
    /// Time until the account admits the next request.
    pub(in crate::engine) retry_after: Duration,
    /// The account's balance, hundredths of a request unit.
    pub(in crate::engine) balance_hundredths: i64,
    /// Whether the request was tried again in the server.
    pub(in crate::engine) retried: bool,
}
