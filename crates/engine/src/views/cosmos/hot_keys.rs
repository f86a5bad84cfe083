//! `system_cosmos.hot_keys`, `/api/keys`: the partition keys with the most requests.

use super::super::figure::{self, Figure, Kind, Value};
use super::super::printed::Printed;
use super::super::view::{Own, Rows, Sources, View};
use super::common::COSMOS;
use crate::engine::shown::HotKey;

pub(super) const VIEW: View = View {
    keyspace: COSMOS,
    name: "hot_keys",
    own: Some(Own {
        comment: "the partition keys that are asked most, of the last one to two minutes",
        columns: || figure::columns(FIGURES),
        shows_sizes: false,
    }),
    rows: Rows::All(|sources| figure::cells(FIGURES, in_order(sources))),
};

pub(in crate::views) static FIGURES: &[Figure<HotKey>] = &[
    Figure::new("The table's keyspace.", |of: &HotKey| Value::text(&of.keyspace))
        .keyed(Kind::Partition, "keyspace_name", "text")
        .json("keyspace"),
    Figure::new("The table.", |of: &HotKey| Value::text(&of.table))
        .keyed(Kind::Clustering, "table_name", "text")
        .json("table"),
    Figure::new(
        "The key as CQL; commas between the values of a composite one.",
        |of: &HotKey| Value::text(&of.key),
    )
    .keyed(Kind::Clustering, "partition_key", "text")
    .json("partition_key"),
    // As text in JSON: many readers have no integers of 64 bits.
    Figure::new("Its token.", |of: &HotKey| Value::Int(of.token)).column("token", "bigint"),
    Figure::new("Its token.", |of: &HotKey| Value::Text(of.token.to_string())).json("token"),
    Figure::new(
        "Requests of the last one to two minutes, at most so many.",
        |of: &HotKey| Value::Count(of.requests),
    )
    .column("requests", "bigint")
    .json("requests"),
    Figure::new("How many fewer requests it may be.", |of: &HotKey| {
        Value::Count(of.requests_error)
    })
    .column("requests_error", "bigint")
    .json("requests_error"),
    Figure::new(
        "Request units that the counted requests were charged.",
        |of: &HotKey| Value::Float(of.request_units),
    )
    .column("request_units", "double")
    .json("request_units"),
];

fn in_order(sources: Sources<'_>) -> Vec<HotKey> {
    let mut keys = sources.of_services(|figures| figures.hot_keys());
    keys.sort_by(|a, b| (&a.table, &a.key).cmp(&(&b.table, &b.key)));
    keys
}

/// The `helenus status` table.
pub(in crate::views) const PRINTED: &[Printed] = &[
    Printed::left("hot key", |row| row.key()),
    Printed::left("table", |row| row.table()),
    Printed::right("requests", |row| row.text("requests")),
    Printed::right("overcounted at most", |row| row.text("requests_error")),
    Printed::right("request units", |row| format!("{:.0}", row.float("request_units"))),
];
