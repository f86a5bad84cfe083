//! `system_cosmos.largest_partitions`, `/api/keys`: the largest known logical partitions.

use super::super::figure::{self, Figure, Kind, Value};
use super::super::printed::{Printed, size};
use super::super::view::{Own, Rows, Sources, View};
use super::common::COSMOS;
use crate::engine::shown::LargePartition;

pub(super) const VIEW: View = View {
    keyspace: COSMOS,
    name: "largest_partitions",
    own: Some(Own {
        comment: "the largest partition keys that are known",
        columns: || figure::columns(FIGURES),
        shows_sizes: false,
    }),
    rows: Rows::All(|sources| figure::cells(FIGURES, in_order(sources))),
};

pub(in crate::views) static FIGURES: &[Figure<LargePartition>] = &[
    Figure::new("The table's keyspace.", |of: &LargePartition| Value::text(&of.keyspace))
        .keyed(Kind::Partition, "keyspace_name", "text")
        .json("keyspace")
        .label("keyspace"),
    Figure::new("The table.", |of: &LargePartition| Value::text(&of.table))
        .keyed(Kind::Clustering, "table_name", "text")
        .json("table")
        .label("table"),
    Figure::new(
        "The key as CQL; commas between the values of a composite one.",
        |of: &LargePartition| Value::text(&of.key),
    )
    .keyed(Kind::Clustering, "partition_key", "text")
    .json("partition_key"),
    // As text in JSON: many readers have no integers of 64 bits.
    Figure::new("Its token.", |of: &LargePartition| Value::Int(of.token)).column("token", "bigint"),
    Figure::new("Its token.", |of: &LargePartition| Value::Text(of.token.to_string())).json("token"),
    Figure::new(
        "Bytes of the largest logical partition of a table that is known, index entries included.",
        |of: &LargePartition| Value::Count(of.bytes),
    )
    .column("bytes", "bigint")
    .json("bytes")
    .gauge("largest_logical_partition_bytes"),
    Figure::new("Most bytes that it may hold; null: no limit.", |of: &LargePartition| {
        Value::optional(of.bytes_max, Value::Count)
    })
    .column("bytes_max", "bigint")
    .json("bytes_max"),
    Figure::new(
        "Its part of what a logical partition may hold; 1 is full.",
        |of: &LargePartition| Value::optional(of.share(), Value::Float),
    )
    .column("share", "double")
    .json("share")
    .gauge("largest_logical_partition_ratio"),
    Figure::new(
        "Whether each write updates its size; otherwise the size is that of the last count.",
        |of: &LargePartition| Value::Bool(of.is_watched),
    )
    .column("is_watched", "boolean")
    .json("is_watched"),
];

fn in_order(sources: Sources<'_>) -> Vec<LargePartition> {
    let mut partitions = sources.of_services(|figures| figures.largest_partitions());
    partitions.sort_by(|a, b| (&a.table, &a.key).cmp(&(&b.table, &b.key)));
    partitions
}

/// The `helenus status` table.
pub(in crate::views) const PRINTED: &[Printed] = &[
    Printed::left("large key", |row| row.key()),
    Printed::left("table", |row| row.table()),
    Printed::right("size", |row| size(row.count("bytes"))),
    Printed::right("of its limit", |row| {
        let share = row
            .some("share")
            .map(|_| format!("{:.1} %", row.float("share") * 100.0));
        share.unwrap_or_else(|| "-".to_owned())
    }),
];
