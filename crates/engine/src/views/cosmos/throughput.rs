//! `system_cosmos.throughput`: the throughput of tables and keyspaces, in request units a second.

use super::super::figure::{self, Figure, Kind, Value};
use super::super::view::{Own, Rows, View};
use super::common::{COSMOS, units};
use crate::engine::shown::ThroughputShown;

pub(super) const VIEW: View = View {
    keyspace: COSMOS,
    name: "throughput",
    own: Some(Own {
        comment: "request units a second of tables and keyspaces",
        columns: || figure::columns(FIGURES),
        shows_sizes: false,
    }),
    rows: Rows::All(|sources| figure::cells(FIGURES, sources.of_services(|figures| figures.throughput()))),
};

static FIGURES: &[Figure<ThroughputShown>] = &[
    Figure::new("The keyspace.", |of: &ThroughputShown| Value::text(&of.keyspace)).keyed(
        Kind::Partition,
        "keyspace_name",
        "text",
    ),
    Figure::new(
        "The table; empty for what the keyspace's tables share.",
        |of: &ThroughputShown| Value::text(&of.table),
    )
    .keyed(Kind::Clustering, "table_name", "text"),
    Figure::new(
        "The maximum of autoscale; null: throughput is manual.",
        |of: &ThroughputShown| Value::optional(of.is_autoscale.then_some(of.max), |max| Value::Count(max.into())),
    )
    .column("autoscale_max", "int"),
    Figure::new("Request units a second now.", |of: &ThroughputShown| {
        Value::Count(of.current.into())
    })
    .column("current", "int"),
    Figure::new(
        "The highest value of this hour, which is billed.",
        |of: &ThroughputShown| Value::Count(of.highest_in_hour.into()),
    )
    .column("highest_in_hour", "int"),
    Figure::new("The least that it can be set to.", |of: &ThroughputShown| {
        Value::Count(of.minimum.into())
    })
    .column("minimum", "int"),
    Figure::new(
        "The highest use of a partition in a second of the last minute, percent.",
        |of: &ThroughputShown| {
            let most = of.partitions.iter().map(|account| account.normalized_percent).max();
            Value::Count(most.unwrap_or_default().into())
        },
    )
    .column("normalized_consumption", "int"),
    Figure::new("Physical partitions with a budget.", |of: &ThroughputShown| {
        Value::size(of.partitions.len())
    })
    .column("partitions", "int"),
    Figure::new(
        "Request units a second of each physical partition.",
        |of: &ThroughputShown| {
            let each = of.partitions.first().map_or(0, |account| account.per_second_hundredths);
            Value::Float(units(i64::try_from(each).unwrap_or(i64::MAX)))
        },
    )
    .column("per_partition", "double"),
    Figure::new(
        "The setting of manual throughput; null: autoscale.",
        |of: &ThroughputShown| Value::optional((!of.is_autoscale).then_some(of.max), |max| Value::Count(max.into())),
    )
    .column("provisioned", "int"),
    Figure::new("Whether it is that of the keyspace.", |of: &ThroughputShown| {
        Value::Bool(of.is_shared)
    })
    .column("shared", "boolean"),
];
