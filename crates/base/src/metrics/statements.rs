//! Statements by kind and by table: their number, failures and durations.
//!
//! A plan is made once and executed often, so it keeps a [`Subject`]: its counters. Kinds are a fixed list. Tables are
//! added and removed with the schema: a view reads those with known ids and drops the others ([`Statements::keep`]).
//! This file knows no names, texts or values.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::histogram::Histogram;

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StatementKind {
    /// SELECT.
    Select,
    /// INSERT without IF.
    Insert,
    /// UPDATE without IF.
    Update,
    /// DELETE without IF.
    Delete,
    /// INSERT, UPDATE or DELETE with IF.
    Conditional,
    /// BATCH, the statement and the message.
    Batch,
    /// TRUNCATE.
    Truncate,
    /// USE.
    Use,
    /// Changes of the schema.
    Ddl,
    /// DESCRIBE.
    Describe,
    /// Roles and permissions.
    Auth,
    /// PREPARE.
    Prepare,
    /// Statements that could not be parsed or planned.
    Unplanned,
}

impl StatementKind {
    /// All kinds, in the order in which they are shown.
    pub const ALL: [Self; 13] = [
        Self::Select,
        Self::Insert,
        Self::Update,
        Self::Delete,
        Self::Conditional,
        Self::Batch,
        Self::Truncate,
        Self::Use,
        Self::Ddl,
        Self::Describe,
        Self::Auth,
        Self::Prepare,
        Self::Unplanned,
    ];

    /// Its name, as a label.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Select => "select",
            Self::Insert => "insert",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Conditional => "conditional",
            Self::Batch => "batch",
            Self::Truncate => "truncate",
            Self::Use => "use",
            Self::Ddl => "ddl",
            Self::Describe => "describe",
            Self::Auth => "auth",
            Self::Prepare => "prepare",
            Self::Unplanned => "unplanned",
        }
    }
}

/// Statements of one kind.
#[derive(Debug, Default)]
pub struct KindFigures {
    /// Their durations, from being read off the connection to the answer being handed to the socket, µs.
    pub latency: Histogram,
    /// Those that failed.
    pub errors: AtomicU64,
}

/// The kinds of access to a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads of partitions by key.
    Read,
    /// Reads of a range of the ring.
    Scan,
    /// Writes.
    Write,
}

/// Statements on one table, of one kind of access.
#[derive(Debug, Default)]
pub struct AccessFigures {
    /// Their durations, µs.
    pub latency: Histogram,
    rate: Mutex<Rate>,
}

impl AccessFigures {
    /// Statements a second, with the weight of the past falling to 1/e in five minutes. Each reading updates it, so
    /// it is smoother the more often it is read. `now` is monotonic time.
    pub fn per_second(&self, now: Duration) -> f64 {
        let count = self.latency.load().count();
        let mut rate = self.rate.lock().unwrap_or_else(PoisonError::into_inner);
        rate.update(count, now)
    }
}

/// The window of [`AccessFigures::per_second`], as of Cassandra's five-minute rates.
const RATE_WINDOW_SECONDS: f64 = 300.0;

/// A rate that is updated only when it is read.
#[derive(Debug, Default)]
struct Rate {
    at: Duration,
    count: u64,
    per_second: f64,
}

impl Rate {
    #[expect(clippy::cast_precision_loss, reason = "a rate is shown with three digits")]
    fn update(&mut self, count: u64, now: Duration) -> f64 {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        // Two readings within a moment have no meaningful difference.
        if passed >= 1.0 {
            let lately = count.saturating_sub(self.count) as f64 / passed;
            let weight = 1.0 - (-passed / RATE_WINDOW_SECONDS).exp();
            self.per_second += weight * (lately - self.per_second);
            (self.at, self.count) = (now, count);
        }
        self.per_second
    }
}

/// Statements on one table.
#[derive(Debug, Default)]
pub struct TableFigures {
    /// By key.
    pub reads: AccessFigures,
    /// Over the ring.
    pub scans: AccessFigures,
    /// Writes, each batch once for each of its tables.
    pub writes: AccessFigures,
}

impl TableFigures {
    /// Of one way of access.
    #[must_use]
    pub const fn of(&self, access: Access) -> &AccessFigures {
        match access {
            Access::Read => &self.reads,
            Access::Scan => &self.scans,
            Access::Write => &self.writes,
        }
    }
}

/// The counters of a statement.
#[derive(Debug)]
pub struct Subject {
    statements: Arc<Statements>,
    kind: StatementKind,
    tables: Vec<(Arc<TableFigures>, Access)>,
}

impl Subject {
    /// Counts `count` statements with this duration.
    pub(super) fn add(&self, time: Duration, count: u64) {
        self.statements.of(self.kind).latency.add_time(time, count);
        for (table, access) in &self.tables {
            table.of(*access).latency.add_time(time, count);
        }
    }

    /// Counts one that failed, besides its time.
    pub fn failed(&self) {
        self.statements.of(self.kind).errors.fetch_add(1, Ordering::Relaxed);
    }
}

/// All statements of one database.
#[derive(Debug, Default)]
pub struct Statements {
    kinds: [KindFigures; StatementKind::ALL.len()],
    /// By the table's id.
    tables: Mutex<HashMap<u128, Arc<TableFigures>>>,
    /// Statements that were prepared before they were executed.
    pub prepared: AtomicU64,
    /// Partitions that each logged batch wrote.
    pub logged_batch_partitions: Histogram,
    /// Partitions that each unlogged batch wrote.
    pub unlogged_batch_partitions: Histogram,
    /// Partitions that each counter batch wrote.
    pub counter_batch_partitions: Histogram,
}

impl Statements {
    /// Statements of a kind.
    ///
    /// # Panics
    /// Never: every kind has its place.
    #[must_use]
    pub fn of(&self, kind: StatementKind) -> &KindFigures {
        #[expect(clippy::indexing_slicing, reason = "there are as many as kinds")]
        &self.kinds[kind as usize]
    }

    /// The counters of statements of this kind on these tables.
    #[must_use]
    pub fn subject(self: &Arc<Self>, kind: StatementKind, tables: Vec<(u128, Access)>) -> Arc<Subject> {
        let tables = tables.into_iter().map(|(id, access)| (self.table(id), access));
        Arc::new(Subject {
            statements: Arc::clone(self),
            kind,
            tables: tables.collect(),
        })
    }

    /// Statements on a table; created at the first access.
    #[must_use]
    pub fn table(&self, id: u128) -> Arc<TableFigures> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(tables.entry(id).or_default())
    }

    /// Statements on a table; `None` means that there were none.
    #[must_use]
    pub fn known_table(&self, id: u128) -> Option<Arc<TableFigures>> {
        let tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        tables.get(&id).map(Arc::clone)
    }

    /// How many tables have counters.
    #[must_use]
    pub fn tables_known(&self) -> usize {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Removes the tables for which `is_there` returns false.
    pub fn keep(&self, is_there: impl Fn(u128) -> bool) {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        tables.retain(|id, _| is_there(*id));
    }

    /// Requests of all kinds, PREPARE not included.
    #[must_use]
    pub fn executed(&self) -> u64 {
        let kinds = StatementKind::ALL.into_iter();
        kinds
            .filter(|kind| *kind != StatementKind::Prepare)
            .map(|kind| self.of(kind).latency.load().count())
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_place_and_its_name() {
        for (place, kind) in StatementKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place);
        }
        let mut names = StatementKind::ALL.map(StatementKind::name).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), StatementKind::ALL.len());
    }

    #[test]
    fn a_subject_counts_for_its_kind_and_its_tables() {
        let statements = Arc::new(Statements::default());
        let subject = statements.subject(StatementKind::Batch, vec![(1, Access::Write), (2, Access::Write)]);
        subject.add(Duration::from_micros(5), 3);
        subject.failed();
        assert_eq!(statements.of(StatementKind::Batch).errors.load(Ordering::Relaxed), 1);
        for id in [1, 2] {
            assert_eq!(statements.known_table(id).unwrap().writes.latency.load().count(), 3);
            assert_eq!(statements.known_table(id).unwrap().reads.latency.load().count(), 0);
        }
        assert_eq!(statements.executed(), 3);
        statements.keep(|id| id == 2);
        assert!(statements.known_table(1).is_none() && statements.tables_known() == 1);
    }

    #[test]
    fn a_rate_follows_what_was_lately() {
        let mut rate = Rate::default();
        for second in 1..=3000 {
            rate.update(second * 10, Duration::from_secs(second));
        }
        assert!((rate.per_second - 10.0).abs() < 0.01, "{rate:?}");
        // Then nothing for five minutes.
        let after = rate.update(30_000, Duration::from_secs(3300));
        assert!((after - 10.0 / std::f64::consts::E).abs() < 0.05, "{after}");
        let again = rate.update(40_000, Duration::from_secs(3300));
        assert!((after - again).abs() < f64::EPSILON);
    }
}
