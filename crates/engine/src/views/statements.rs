//! Statements by kind, errors by code, prepared statements: `/api/statements` and their families.

use std::sync::atomic::Ordering;

use super::figure::{Figure, Value};
use super::printed::{Printed, time};
use super::view::Sources;
use helenus_base::metrics::{self, Distribution, StatementKind};

/// Statements of one kind.
pub(super) struct KindRow {
    kind: &'static str,
    errors: u64,
    latency: Distribution,
}

pub(super) static KINDS: &[Figure<KindRow>] = &[
    Figure::new("select, insert, …", |of: &KindRow| Value::text(of.kind))
        .json("kind")
        .label("kind"),
    Figure::new(
        "Statements that were answered with an error, by kind.",
        |of: &KindRow| Value::Count(of.errors),
    )
    .json("errors")
    .counter("statement_errors_total"),
    Figure::new(
        "Time from reading a statement to writing its answer, by kind.",
        |of: &KindRow| Value::Times(of.latency.clone()),
    )
    .json("latency")
    .times("statement_seconds"),
];

/// All kinds, including those that never occurred.
pub(super) fn kinds(sources: Sources<'_>) -> Vec<KindRow> {
    sources.of_services(|figures| {
        let row = |kind: StatementKind| {
            let of_kind = figures.statements().of(kind);
            KindRow {
                kind: kind.name(),
                errors: of_kind.errors.load(Ordering::Relaxed),
                latency: of_kind.latency.load(),
            }
        };
        StatementKind::ALL.map(row).into()
    })
}

/// Responses with one error code, in the whole process.
pub(super) struct ErrorRow {
    code: u16,
    name: &'static str,
    pub(super) count: u64,
}

pub(super) static ERRORS: &[Figure<ErrorRow>] = &[
    Figure::new("The protocol's code, as 0x and four digits.", |of: &ErrorRow| {
        Value::Text(format!("0x{:04X}", of.code))
    })
    .json("code")
    .label("code"),
    Figure::new("Its name.", |of: &ErrorRow| Value::text(of.name))
        .json("name")
        .label("name"),
    Figure::new("Answers that were errors, by the protocol's code.", |of: &ErrorRow| {
        Value::Count(of.count)
    })
    .json("count")
    .counter("errors_total"),
];

/// All codes, including those that never occurred.
pub(super) fn errors() -> Vec<ErrorRow> {
    metrics::errors()
        .map(|(code, name, count)| ErrorRow { code, name, count })
        .collect()
}

/// Prepared statements.
pub(super) struct PreparedRow {
    count: usize,
    bytes: usize,
    executed: u64,
}

pub(super) static PREPARED: &[Figure<PreparedRow>] = &[
    Figure::new("Prepared statements that are kept.", |of: &PreparedRow| {
        Value::size(of.count)
    })
    .json("count")
    .gauge("prepared_statements"),
    Figure::new("Memory of prepared statements, roughly.", |of: &PreparedRow| {
        Value::size(of.bytes)
    })
    .json("bytes")
    .gauge("prepared_statements_bytes"),
    Figure::new("Executions of prepared statements.", |of: &PreparedRow| {
        Value::Count(of.executed)
    })
    .json("executed")
    .counter("statements_executed_prepared_total"),
    Figure::of_counter(&metrics::STATEMENTS_EVICTED, |_| {
        Value::Count(metrics::STATEMENTS_EVICTED.value())
    })
    .json("evicted"),
];

pub(super) fn prepared(sources: Sources<'_>) -> PreparedRow {
    let statements = sources.figures.map(|figures| figures.statements());
    PreparedRow {
        count: sources.live.prepared,
        bytes: sources.live.prepared_bytes,
        executed: statements.map_or(0, |statements| statements.prepared.load(Ordering::Relaxed)),
    }
}

/// The `helenus status` table of kinds, without those that never occurred.
pub(super) const PRINTED_KINDS: &[Printed] = &[
    Printed::left("statement", |row| row.text("kind")),
    Printed::right("count", |row| row.text("latency.count")),
    Printed::right("errors", |row| row.text("errors")),
    Printed::right("p50", |row| time(row.count("latency.p50_micros"))),
    Printed::right("p99", |row| time(row.count("latency.p99_micros"))),
    Printed::right("p99.9", |row| time(row.count("latency.p999_micros"))),
    Printed::right("max", |row| time(row.count("latency.max_micros"))),
];

/// The `helenus status` table of errors.
pub(super) const PRINTED_ERRORS: &[Printed] = &[
    Printed::left("error", |row| format!("{} {}", row.text("code"), row.text("name"))),
    Printed::right("count", |row| row.text("count")),
];
