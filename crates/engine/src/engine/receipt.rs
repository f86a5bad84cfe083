//! Receipts of requests: what was executed, how it ended, and its charge.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::throughput::RequestUnits;
use helenus_base::metrics::StatementKind;
use helenus_schema::command::Batch;
use helenus_schema::schema::{Table, system};

/// The origin of a request, as logs show it. Created once for a statement and shared by its executions.
#[derive(Debug)]
pub struct Origin {
    number: u64,
    /// The kind of statement.
    pub kind: StatementKind,
    /// The first table that it names; `None` means that it names none.
    pub table: Option<Arc<Table>>,
    /// Whether the request log records it. Statements on system keyspaces, which drivers send all the time, are left
    /// out.
    pub is_logged: bool,
    /// Its original text.
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

    /// The origin of commands without a text.
    #[must_use]
    pub fn without_text(kind: StatementKind, tables: &[Arc<Table>]) -> Arc<Self> {
        Self::new(kind, tables, Arc::from(""), str::to_owned)
    }

    /// The origin of commands that logs do not show.
    #[must_use]
    pub(super) fn unlogged(kind: StatementKind) -> Arc<Self> {
        Arc::new(Self {
            number: next_number(),
            kind,
            table: None,
            is_logged: false,
            text: Arc::from(""),
            without_values: str::to_owned,
        })
    }

    /// Distinguishes it from every other origin of this process; never 0.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }
}

/// A number that this process has not used before; never 0.
pub(super) fn next_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// The origin of a batch of writes, whose members have none in common.
#[derive(Debug)]
pub(super) struct BatchOrigin {
    /// The table of its first write.
    pub(super) table: Option<Arc<Table>>,
    /// How many writes it has.
    pub(super) statements: usize,
}

impl BatchOrigin {
    pub(super) fn of(batch: &Batch) -> Self {
        Self {
            table: batch.modifications.first().map(|first| Arc::clone(&first.table)),
            statements: batch.modifications.len(),
        }
    }
}

/// The executed request.
#[derive(Clone, Copy)]
pub(super) enum Executed<'a> {
    /// A statement, prepared or not.
    Statement(&'a Arc<Origin>),
    /// A batch of writes.
    Batch(&'a BatchOrigin),
}

/// How a request ended.
#[derive(Clone, Copy, Debug)]
pub enum Ended {
    /// It succeeded.
    Answered {
        /// Bytes of the answer's rows.
        row_bytes: usize,
    },
    /// It failed.
    Failed {
        /// The front end's code of the error, for logs.
        code: u16,
    },
    /// It was dropped before its end, because its client left. Logs show it as a server error.
    Abandoned,
}

impl Ended {
    /// Bytes of the answer's rows; 0 if there are none.
    #[inline(always)]
    pub(super) fn row_bytes(self) -> u32 {
        match self {
            Self::Answered { row_bytes } => u32::try_from(row_bytes).unwrap_or(u32::MAX),
            Self::Failed { .. } | Self::Abandoned => 0,
        }
    }
}

/// The charge of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChargeReceipt {
    /// The whole charge, as clients see it.
    pub charge: RequestUnits,
    /// How long the statement waited in the server for request units; `None` means that it did not wait.
    pub waited: Option<Duration>,
}

impl ChargeReceipt {
    /// Nothing was charged.
    pub(super) const NONE: Self = Self {
        charge: RequestUnits::ZERO,
        waited: None,
    };
}
