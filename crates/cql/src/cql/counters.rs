//! Counts statements by kind and table, and measures their time.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::plans::PlannedAt;
use helenus_base::clock::Clock;
use helenus_base::metrics::turn;
use helenus_base::metrics::{Access, StatementKind, Statements, Subject};
use helenus_schema::command::Batch;
use helenus_schema::planner::Plan;
use helenus_schema::schema::{Table, system};

/// The counters of statements, and the clock for their time.
#[derive(Debug)]
pub(super) struct StatementCounters {
    /// All counters.
    pub(super) statements: Arc<Statements>,
    clock: Clock,
    /// The subject of PREPARE, whatever the table.
    prepare: Arc<Subject>,
    /// The subject of texts that could not be planned.
    unplanned: Arc<Subject>,
}

impl StatementCounters {
    pub(super) fn new(statements: Arc<Statements>, clock: Clock) -> Self {
        Self {
            prepare: statements.subject(StatementKind::Prepare, Vec::new()),
            unplanned: statements.subject(StatementKind::Unplanned, Vec::new()),
            statements,
            clock,
        }
    }

    /// The start time of a request that begins now.
    pub(super) fn begin(&self) -> Duration {
        turn::begin(|| self.clock.monotonic())
    }

    /// Counts a request that has been answered.
    pub(super) fn record<T, E>(&self, subject: &Arc<Subject>, began: Duration, outcome: &Result<T, E>) {
        if outcome.is_err() {
            subject.failed();
        }
        turn::note(subject, began, || self.clock.monotonic());
    }

    /// Counts a PREPARE.
    pub(super) fn count_prepare<T, E>(&self, began: Duration, outcome: &Result<T, E>) {
        self.record(&self.prepare, began, outcome);
    }

    /// Counts a request whose statement could not be read or planned.
    pub(super) fn count_unplanned<T, E>(&self, began: Duration, outcome: &Result<T, E>) {
        self.record(&self.unplanned, began, outcome);
    }

    /// The subject under which a plan is counted.
    pub(super) fn subject(&self, planned: &PlannedAt) -> Arc<Subject> {
        let plan = &planned.planned.plan;
        let access = match plan {
            Plan::Select(plan) if plan.is_scan() => Access::Scan,
            Plan::Select(_) => Access::Read,
            Plan::Modify(_) | Plan::Batch(_) => Access::Write,
            _ => return self.statements.subject(planned.origin.kind, Vec::new()),
        };
        self.statements
            .subject(planned.origin.kind, accesses(planned.planned.tables.iter(), access))
    }

    /// The subject under which a batch is counted.
    pub(super) fn batch_subject(&self, batch: &Batch) -> Arc<Subject> {
        let tables = batch.modifications.iter().map(|modification| &modification.table);
        self.statements
            .subject(StatementKind::Batch, accesses(tables, Access::Write))
    }

    /// Counts the execution of a prepared statement.
    pub(super) fn count_prepared(&self) {
        self.statements.prepared.fetch_add(1, Ordering::Relaxed);
    }
}

/// Each table once. As in Cassandra, virtual and system tables are not counted by table.
fn accesses<'a>(tables: impl Iterator<Item = &'a Arc<Table>>, access: Access) -> Vec<(u128, Access)> {
    let mut ids: Vec<u128> = tables
        .filter(|table| !system::is_local(&table.keyspace))
        .map(|table| table.id.as_u128())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    ids.into_iter().map(|id| (id, access)).collect()
}
