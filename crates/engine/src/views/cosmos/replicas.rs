//! `system_cosmos.replicas`: the replicas of physical partitions.

use super::super::figure::{self, Figure, Kind, Value};
use super::super::view::{Own, Rows, View};
use super::common::COSMOS;
use crate::engine::shown::{Replica, ReplicaLag};

pub(super) const VIEW: View = View {
    keyspace: COSMOS,
    name: "replicas",
    own: Some(Own {
        comment: "replicas of physical partitions",
        columns: || figure::columns(FIGURES),
        shows_sizes: false,
    }),
    rows: Rows::All(|sources| figure::cells(FIGURES, sources.of_services(|figures| figures.replicas()))),
};

static FIGURES: &[Figure<Replica>] = &[
    Figure::new("The table's keyspace.", |of: &Replica| Value::text(&of.keyspace)).keyed(
        Kind::Partition,
        "keyspace_name",
        "text",
    ),
    Figure::new("The table.", |of: &Replica| Value::text(&of.table)).keyed(Kind::Clustering, "table_name", "text"),
    Figure::new("Its physical partition among the table's.", |of: &Replica| {
        Value::Count(of.partition)
    })
    .keyed(Kind::Clustering, "partition_id", "bigint"),
    Figure::new(
        "Its number in the set; outside of a fleet 0 writes as long as it is up.",
        |of: &Replica| Value::Int(of.number.into()),
    )
    .keyed(Kind::Clustering, "replica", "int"),
    Figure::new("Most commits that it may lag; null: no bound.", |of: &Replica| {
        lag(of, |lag| lag.commits_max)
    })
    .column("lag_commits_max", "bigint"),
    Figure::new("Most milliseconds that it may lag; null: no bound.", |of: &Replica| {
        lag(of, |lag| lag.ms_max)
    })
    .column("lag_ms_max", "bigint"),
    Figure::new("The epoch of the set's lease.", |of: &Replica| {
        Value::Count(of.lease_epoch)
    })
    .column("lease_epoch", "bigint"),
    Figure::new("The address of its node.", |of: &Replica| Value::Inet(of.node)).column("node", "inet"),
    Figure::new("Whether it writes or follows.", |of: &Replica| {
        Value::text(if of.is_writer { "writer" } else { "follower" })
    })
    .column("role", "text"),
    Figure::new("Whether it is alive.", |of: &Replica| {
        Value::text(if of.is_up { "up" } else { "down" })
    })
    .column("state", "text"),
];

/// An upper bound of its lag; 0 for a replica that does not lag.
fn lag(replica: &Replica, bound: fn(&ReplicaLag) -> Option<u64>) -> Value {
    replica
        .lag
        .as_ref()
        .map_or(Value::Count(0), |lag| Value::optional(bound(lag), Value::Count))
}
