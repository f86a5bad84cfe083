//! `system_cosmos.nodes`: the nodes of the cluster, each once, from any of them.

use super::super::figure::{self, Figure, Kind, Value};
use super::super::printed::{Printed, Row};
use super::super::view::{Own, Rows, View};
use super::common::COSMOS;
use crate::engine::shown::ClusterNode;
use helenus_types::types::timestamp_text;

pub(super) const VIEW: View = View {
    keyspace: COSMOS,
    name: "nodes",
    own: Some(Own {
        comment: "nodes of the cluster, and which of them owns the stores",
        columns: || figure::columns(FIGURES),
        shows_sizes: false,
    }),
    rows: Rows::All(|sources| figure::cells(FIGURES, sources.of_services(|figures| figures.cluster()))),
};

pub(crate) static FIGURES: &[Figure<ClusterNode>] = &[
    Figure::new(
        "Its name in a fleet; otherwise the address and port of its clients.",
        |of: &ClusterNode| Value::text(&of.name),
    )
    .keyed(Kind::Partition, "name", "text")
    .json("name"),
    Figure::new("Its data center.", |of: &ClusterNode| Value::text(&of.data_center))
        .column("data_center", "text")
        .json("data_center"),
    Figure::new(
        "Where other nodes of the fleet connect; null: it is in no fleet.",
        |of: &ClusterNode| Value::optional(of.fleet_address.as_deref(), Value::text),
    )
    .column("fleet_address", "text")
    .json("fleet_address"),
    Figure::new("Its id.", |of: &ClusterNode| Value::Uuid(of.host_id))
        .column("host_id", "uuid")
        .json("host_id"),
    Figure::new("Where clients connect.", |of: &ClusterNode| {
        Value::Inet(of.address.ip())
    })
    .column("native_address", "inet")
    .json("native_address"),
    Figure::new("The port where clients connect.", |of: &ClusterNode| {
        Value::Int(of.address.port().into())
    })
    .column("native_port", "int")
    .json("native_port"),
    Figure::new("Whether it owns the stores.", |of: &ClusterNode| {
        Value::Bool(of.is_owner)
    })
    .column("owner", "boolean")
    .json("owner"),
    Figure::new("Its rack.", |of: &ClusterNode| Value::text(&of.rack))
        .column("rack", "text")
        .json("rack"),
    Figure::new(
        "Since when it is up or down, as the owner saw it, ms since 1970-01-01 UTC; null: unknown.",
        |of: &ClusterNode| Value::optional(of.since_millis, Value::Int),
    )
    .column("since", "timestamp")
    .json("since_ms"),
    Figure::new("Whether it is up or down.", |of: &ClusterNode| {
        Value::text(if of.is_up { "up" } else { "down" })
    })
    .column("state", "text")
    .json("state"),
];

pub(in crate::views) const PRINTED: &[Printed] = &[
    Printed::left("node", |row| row.text("name")),
    Printed::left("state", |row| row.text("state")),
    Printed::left("since (UTC)", since),
    Printed::left("owner", |row| {
        if row.is_true("owner") { "owner" } else { "" }.to_owned()
    }),
    Printed::left("clients at", |row| {
        format!("{}:{}", row.text("native_address"), row.text("native_port"))
    }),
    Printed::left("data center", |row| row.text("data_center")),
    Printed::left("rack", |row| row.text("rack")),
];

fn since(row: &Row<'_>) -> String {
    let millis = row.get("since_ms").as_i64();
    let text = millis.map(|millis| timestamp_text(millis, ' '));
    // Without fractions of a second.
    text.and_then(|text| text.get(..19).map(str::to_owned))
        .unwrap_or_default()
}
