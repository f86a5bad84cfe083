//! `system_cosmos`: what Cassandra has no tables for.

use super::Cells;
use super::encode::{bigint, int, text};
use crate::schema::node::Live;

/// Rows of `system_cosmos`.
pub(super) fn system_cosmos(table: &str, live: &Live) -> Vec<Cells> {
    let count = |count: u64| bigint(i64::try_from(count).unwrap_or(i64::MAX));
    match table {
        "partitions" => live
            .partitions
            .iter()
            .map(|partition| {
                Cells::new()
                    .set("keyspace_name", text(&partition.keyspace))
                    .set("table_name", text(&partition.table))
                    .set("lower", bigint(partition.lower))
                    .set("bytes", count(partition.bytes))
                    .set("epoch", count(partition.epoch))
                    .set("id", count(partition.id))
                    .set("rows", count(partition.rows))
                    .set("store", int(i32::try_from(partition.store).unwrap_or(i32::MAX)))
                    .set("upper", bigint(partition.upper))
            })
            .collect(),
        _ => Vec::new(),
    }
}
