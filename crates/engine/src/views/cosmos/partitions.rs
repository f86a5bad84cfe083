//! `system_cosmos.partitions`, `/api/partitions`: physical partitions.

use super::super::figure::{self, Figure, Kind, Value};
use super::super::printed::{Printed, size};
use super::super::view::{Own, Rows, Sources, View};
use super::common::COSMOS;
use crate::engine::PartitionFigures;
use helenus_schema::schema::system;

pub(super) const VIEW: View = View {
    keyspace: COSMOS,
    name: "partitions",
    own: Some(Own {
        comment: "physical partitions",
        columns: || figure::columns(FIGURES),
        shows_sizes: true,
    }),
    rows: Rows::All(|sources| figure::cells(FIGURES, of_users(sources))),
};

pub(in crate::views) static FIGURES: &[Figure<PartitionFigures>] = &[
    Figure::new("Its number among the table's.", |of: &PartitionFigures| {
        Value::Count(of.id)
    })
    .column("id", "bigint")
    .json("id")
    .label("partition"),
    Figure::new("The table's keyspace.", |of: &PartitionFigures| {
        Value::text(&of.keyspace)
    })
    .keyed(Kind::Partition, "keyspace_name", "text")
    .json("keyspace")
    .label("keyspace"),
    Figure::new("The table.", |of: &PartitionFigures| Value::text(&of.table))
        .keyed(Kind::Clustering, "table_name", "text")
        .json("table")
        .label("table"),
    // As text in JSON: many readers have no integers of 64 bits.
    Figure::new("Lowest token, inclusive.", |of: &PartitionFigures| Value::Int(of.lower)).keyed(
        Kind::Clustering,
        "lower",
        "bigint",
    ),
    Figure::new("Lowest token, inclusive.", |of: &PartitionFigures| {
        Value::Text(of.lower.to_string())
    })
    .json("lower"),
    Figure::new(
        "First partition key of the lowest token that lies in it, serialised; empty: the token's first.",
        |of: &PartitionFigures| Value::Bytes(of.lower_key.clone()),
    )
    .keyed(Kind::Clustering, "lower_key", "blob")
    .json("lower_key"),
    Figure::new("Highest token, inclusive.", |of: &PartitionFigures| {
        Value::Int(of.upper)
    })
    .column("upper", "bigint"),
    Figure::new("Highest token, inclusive.", |of: &PartitionFigures| {
        Value::Text(of.upper.to_string())
    })
    .json("upper"),
    Figure::new(
        "Partition key of the highest token before which it ends, serialised; null: it has that token to its end.",
        |of: &PartitionFigures| Value::optional(of.upper_key.clone(), Value::Bytes),
    )
    .column("upper_key", "blob")
    .json("upper_key"),
    Figure::new(
        "Rises with each change of its range or its store.",
        |of: &PartitionFigures| Value::Count(of.epoch),
    )
    .column("epoch", "bigint")
    .json("epoch"),
    Figure::new("The store that holds it.", |of: &PartitionFigures| {
        Value::Count(of.store.into())
    })
    .column("store", "int")
    .json("store"),
    Figure::new("Replicas of a physical partition.", |of: &PartitionFigures| {
        Value::Count(of.replicas.into())
    })
    .json("replicas"),
    Figure::new(
        "Replicas of a physical partition that are alive.",
        |of: &PartitionFigures| Value::Count(of.replicas_alive.into()),
    )
    .json("replicas_alive")
    .gauge("partition_replicas_alive"),
    Figure::new(
        "Bytes of keys and values in a physical partition; those of the 1000 lowest numbers.",
        |of: &PartitionFigures| Value::Count(of.bytes),
    )
    .column("bytes", "bigint")
    .json("bytes")
    .gauge("partition_bytes"),
    Figure::new(
        "Rows as stored, deleted and expired ones until they are cleaned up.",
        |of: &PartitionFigures| Value::Count(of.rows),
    )
    .column("stored_rows", "bigint")
    .json("rows"),
    Figure::new("Whether bytes and rows are exact.", |of: &PartitionFigures| {
        Value::Bool(of.is_exact)
    })
    .json("is_exact"),
    Figure::new(
        "Request units a second that a physical partition was asked for, as of the last look at its heat.",
        |of: &PartitionFigures| Value::Float(of.per_second.as_f64()),
    )
    .column("request_units_per_second", "double")
    .json("request_units_per_second")
    .gauge("partition_request_units_used_per_second"),
    Figure::new(
        "Request units that a physical partition with throughput may spend in a second.",
        |of: &PartitionFigures| Value::optional(of.budget, |budget| Value::Count(budget.per_second_hundredths / 100)),
    )
    .json("provisioned_units_per_second")
    .gauge("partition_request_units_per_second"),
    Figure::new(
        "Highest use of a physical partition's request units in a second of the last minute.",
        |of: &PartitionFigures| Value::optional(of.budget, |budget| Value::Count(budget.normalized_percent.into())),
    )
    .json("normalized_consumption_percent")
    .gauge("partition_normalized_ru_percent"),
    Figure::new(
        "Request units charged to a physical partition.",
        |of: &PartitionFigures| Value::Float(of.request_units.as_f64()),
    )
    .column("request_units", "double")
    .json("request_units")
    .counter("partition_request_units_total"),
];

/// The partitions of users' tables and views, in clustering order.
fn of_users(sources: Sources<'_>) -> Vec<PartitionFigures> {
    let mut shown = sources.of_services(|figures| figures.partitions());
    shown.retain(|partition| !system::is_name(&partition.keyspace));
    shown.sort_by(|a, b| {
        (&a.keyspace, &a.table, a.lower, &a.lower_key).cmp(&(&b.keyspace, &b.table, b.lower, &b.lower_key))
    });
    shown
}

/// The `helenus status` table.
pub(in crate::views) const PRINTED: &[Printed] = &[
    Printed::left("partition", |row| row.text("id")),
    Printed::left("table", |row| row.table()),
    Printed::right("from token", |row| row.text("lower")),
    Printed::right("to token", |row| row.text("upper")),
    Printed::right("epoch", |row| row.text("epoch")),
    Printed::right("store", |row| row.text("store")),
    Printed::right("replicas", |row| {
        format!("{} of {}", row.text("replicas_alive"), row.text("replicas"))
    }),
    Printed::right("stored rows", |row| row.text("rows")),
    Printed::right("size", |row| size(row.count("bytes"))),
    Printed::right("RU/s", |row| format!("{:.0}", row.float("request_units_per_second"))),
    Printed::right("RU/s used", |row| {
        match (
            row.some("normalized_consumption_percent"),
            row.some("provisioned_units_per_second"),
        ) {
            (Some(percent), Some(units)) => format!("{percent} % of {units}"),
            _ => "-".to_owned(),
        }
    }),
    Printed::right("RU", |row| format!("{:.2}", row.float("request_units"))),
];
