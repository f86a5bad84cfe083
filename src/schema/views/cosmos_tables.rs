//! `system_cosmos`: what Cassandra has no tables for.

use super::Cells;
use super::encode::{bigint, boolean, double, int, text};
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
                    .set("request_units_per_second", double(partition.request_units_per_second))
                    .set("rows", count(partition.rows))
                    .set("store", int(i32::try_from(partition.store).unwrap_or(i32::MAX)))
                    .set("upper", bigint(partition.upper))
            })
            .collect(),
        "hot_keys" => by_key(&live.hot_keys, |key| (&key.table, &key.key))
            .map(|key| {
                Cells::new()
                    .set("keyspace_name", text(&key.keyspace))
                    .set("table_name", text(&key.table))
                    .set("partition_key", text(&key.key))
                    .set("request_units", double(key.request_units))
                    .set("requests", count(key.requests))
                    .set("requests_error", count(key.requests_error))
                    .set("token", bigint(key.token))
            })
            .collect(),
        "largest_partitions" => by_key(&live.largest_partitions, |of| (&of.table, &of.key))
            .map(|partition| {
                Cells::new()
                    .set("keyspace_name", text(&partition.keyspace))
                    .set("table_name", text(&partition.table))
                    .set("partition_key", text(&partition.key))
                    .set("bytes", count(partition.bytes))
                    .set_if("bytes_max", partition.bytes_max.map(count))
                    .set("is_watched", boolean(partition.is_watched))
                    .set_if("share", partition.share().map(double))
                    .set("token", bigint(partition.token))
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// In the order of their clustering: by table and key.
fn by_key<T>(all: &[T], key: impl Fn(&T) -> (&String, &String)) -> impl Iterator<Item = &T> {
    let mut all: Vec<&T> = all.iter().collect();
    all.sort_by(|a, b| key(a).cmp(&key(b)));
    all.into_iter()
}
