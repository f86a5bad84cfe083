//! `system_cosmos.throttles`: the last statements that had to wait for request units or were refused them.

use super::super::figure::{self, Figure, Kind, Value};
use super::super::view::{Own, Rows, Sources, View};
use super::common::{COSMOS, units};
use crate::engine::shown::ThrottleShown;

pub(super) const VIEW: View = View {
    keyspace: COSMOS,
    name: "throttles",
    own: Some(Own {
        comment: "statements that did not get their request units at once",
        columns: || figure::columns(FIGURES),
        shows_sizes: false,
    }),
    rows: Rows::All(|sources| figure::cells(FIGURES, newest_first(sources))),
};

static FIGURES: &[Figure<(usize, ThrottleShown)>] = &[
    Figure::new(
        "The table's keyspace; `system_schema` for the budget of metadata.",
        |(_, of): &(usize, ThrottleShown)| Value::text(&of.keyspace),
    )
    .keyed(Kind::Partition, "keyspace_name", "text"),
    Figure::new("When, ms since 1970-01-01 UTC.", |(_, of): &(usize, ThrottleShown)| {
        Value::Int(of.at_micros.div_euclid(1000))
    })
    .keyed(Kind::Descending, "at", "timestamp"),
    Figure::new(
        "Tells those of one millisecond apart.",
        |(number, _): &(usize, ThrottleShown)| Value::size(*number),
    )
    .keyed(Kind::Descending, "number", "int"),
    Figure::new(
        "Whether it was executed in the end.",
        |(_, of): &(usize, ThrottleShown)| Value::Bool(of.was_admitted),
    )
    .column("admitted", "boolean"),
    Figure::new(
        "Request units that the partition had; negative is debt.",
        |(_, of): &(usize, ThrottleShown)| Value::Float(units(of.balance_hundredths)),
    )
    .column("balance", "double"),
    Figure::new(
        "The physical partition; null: the budget of metadata.",
        |(_, of): &(usize, ThrottleShown)| Value::optional(of.partition, Value::Count),
    )
    .column("partition_id", "bigint"),
    Figure::new(
        "Whether it waited in the server.",
        |(_, of): &(usize, ThrottleShown)| Value::Bool(of.was_retried),
    )
    .column("retried", "boolean"),
    Figure::new(
        "How long the client should wait, ms.",
        |(_, of): &(usize, ThrottleShown)| Value::Int(of.retry_after_millis.into()),
    )
    .column("retry_after_ms", "int"),
    Figure::new("Its text without literals.", |(_, of): &(usize, ThrottleShown)| {
        Value::text(&of.statement)
    })
    .column("statement", "text"),
    Figure::new("The table.", |(_, of): &(usize, ThrottleShown)| Value::text(&of.table)).column("table_name", "text"),
];

fn newest_first(sources: Sources<'_>) -> Vec<(usize, ThrottleShown)> {
    let throttles = sources.of_services(|figures| figures.throttles());
    throttles.into_iter().enumerate().rev().collect()
}
