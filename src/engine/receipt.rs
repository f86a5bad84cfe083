//! What metering knows of a request: what was executed, how it ended, and what it was charged.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::command::Batch;
use crate::metrics::StatementKind;
use crate::schema::{Table, system};
use crate::throughput::RequestUnits;

/// What a front end was asked, as logs show it. Made once for a statement and shared by its executions.
#[derive(Debug)]
pub struct Origin {
    number: u64,
    /// The kind of statement.
    pub kind: StatementKind,
    /// The first table that it names; `None`: it names none.
    pub table: Option<Arc<Table>>,
    /// Whether the request log keeps it. Statements on system keyspaces, which drivers send all the time, are left out.
    pub is_logged: bool,
    /// As it was written.
    pub text: Arc<str>,
    /// Prints a text of its language without the values in it.
    pub without_values: fn(&str) -> String,
}

impl Origin {
    /// An origin with a number of its own.
    #[must_use]
    pub fn new(
        kind: StatementKind,
        tables: &[Arc<Table>],
        text: Arc<str>,
        without_values: fn(&str) -> String,
    ) -> Arc<Self> {
        Arc::new(Self {
            number: next_number(),
            kind,
            table: tables.first().cloned(),
            is_logged: tables.is_empty() || tables.iter().any(|table| !system::is_name(&table.keyspace)),
            text,
            without_values,
        })
    }

    /// Distinguishes it from every other origin of this process; never 0.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }
}

/// A number that this process has not given before; never 0.
pub(super) fn next_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// What was executed.
#[derive(Clone, Copy)]
pub enum Executed<'a> {
    /// A statement, prepared or not.
    Statement(&'a Arc<Origin>),
    /// A batch that came as a message.
    Batch(&'a Batch),
}

/// How a request ended.
#[derive(Clone, Copy, Debug)]
pub enum Ended {
    /// It was answered, with so many bytes of rows.
    Answered {
        /// Bytes of the answer's rows.
        row_bytes: usize,
    },
    /// It failed.
    Failed {
        /// The front end's code of the error, for logs.
        code: u16,
    },
}

impl Ended {
    /// Bytes of the answer's rows; 0 where there is none.
    #[inline(always)]
    pub(super) fn row_bytes(self) -> u32 {
        match self {
            Self::Answered { row_bytes } => u32::try_from(row_bytes).unwrap_or(u32::MAX),
            Self::Failed { .. } => 0,
        }
    }
}

/// What a statement was charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChargeReceipt {
    /// The whole charge, as clients see it.
    pub charge: RequestUnits,
    /// How long the statement waited in the server for request units; `None`: it did not wait.
    pub waited: Option<Duration>,
}
