//! `system_cosmos`: what Cassandra has no tables for.

use super::Cells;
use super::encode::{bigint, boolean, double, inet, int, text};
use crate::schema::node::{Live, ThroughputShown};

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
        "throughput" => live.throughput.iter().map(throughput).collect(),
        "partition_throughput" => live.throughput.iter().flat_map(partition_throughput).collect(),
        "throttles" => throttles(live),
        "replicas" => live
            .replicas
            .iter()
            .map(|replica| {
                let lag = |bound: Option<u64>| match (replica.lag, bound) {
                    (Some(_), None) => None,
                    (_, bound) => Some(count(bound.unwrap_or(0))),
                };
                Cells::new()
                    .set("keyspace_name", text(&replica.keyspace))
                    .set("table_name", text(&replica.table))
                    .set("partition_id", count(replica.partition))
                    .set("replica", int(replica.number))
                    .set_if("lag_commits_max", lag(replica.lag.and_then(|lag| lag.commits_max)))
                    .set_if("lag_ms_max", lag(replica.lag.and_then(|lag| lag.ms_max)))
                    .set("lease_epoch", count(replica.lease_epoch))
                    .set("node", inet(replica.node))
                    .set("role", text(if replica.is_writer { "writer" } else { "follower" }))
                    .set("state", text(if replica.is_up { "up" } else { "down" }))
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

#[expect(clippy::cast_precision_loss, reason = "exact up to ninety million million units")]
fn units(hundredths: i64) -> f64 {
    hundredths as f64 / 100.0
}

fn units_a_second(units: u32) -> bytes::Bytes {
    int(i32::try_from(units).unwrap_or(i32::MAX))
}

fn throughput(shown: &ThroughputShown) -> Cells {
    let most =
        |of: fn(&crate::schema::node::AccountShown) -> u8| shown.partitions.iter().map(of).max().unwrap_or_default();
    let each = shown
        .partitions
        .first()
        .map_or(0, |account| account.per_second_hundredths);
    let (provisioned, autoscale_max) = if shown.is_autoscale {
        (None, Some(shown.max))
    } else {
        (Some(shown.max), None)
    };
    Cells::new()
        .set("keyspace_name", text(&shown.keyspace))
        .set("table_name", text(&shown.table))
        .set_if("autoscale_max", autoscale_max.map(units_a_second))
        .set("current", units_a_second(shown.current))
        .set("highest_in_hour", units_a_second(shown.highest_in_hour))
        .set("minimum", units_a_second(shown.minimum))
        .set(
            "normalized_consumption",
            int(i32::from(most(|account| account.normalized_percent))),
        )
        .set(
            "partitions",
            int(i32::try_from(shown.partitions.len()).unwrap_or(i32::MAX)),
        )
        .set("per_partition", double(units(i64::try_from(each).unwrap_or(i64::MAX))))
        .set_if("provisioned", provisioned.map(units_a_second))
        .set("shared", boolean(shown.is_shared))
}

fn partition_throughput(shown: &ThroughputShown) -> impl Iterator<Item = Cells> {
    shown.partitions.iter().map(|account| {
        Cells::new()
            .set("keyspace_name", text(&shown.keyspace))
            .set("table_name", text(&shown.table))
            .set("id", bigint(i64::try_from(account.id).unwrap_or(i64::MAX)))
            .set("balance", double(units(account.balance_hundredths)))
            .set("banked", double(units(account.bank_hundredths)))
            .set("normalized_consumption", int(i32::from(account.normalized_percent)))
            .set(
                "per_second",
                double(units(i64::try_from(account.per_second_hundredths).unwrap_or(i64::MAX))),
            )
    })
}

/// By keyspace; within one the newest first.
fn throttles(live: &Live) -> Vec<Cells> {
    let rows = live.throttles.iter().enumerate().rev().map(|(number, throttle)| {
        Cells::new()
            .set("keyspace_name", text(&throttle.keyspace))
            .set("at", bigint(throttle.at_micros.div_euclid(1000)))
            .set("number", int(i32::try_from(number).unwrap_or(i32::MAX)))
            .set("balance", double(units(throttle.balance_hundredths)))
            .set_if(
                "partition_id",
                throttle
                    .partition
                    .map(|id| bigint(i64::try_from(id).unwrap_or(i64::MAX))),
            )
            .set("admitted", boolean(throttle.was_admitted))
            .set("retried", boolean(throttle.was_retried))
            .set("retry_after_ms", int(throttle.retry_after_millis))
            .set("statement", text(&throttle.statement))
            .set("table_name", text(&throttle.table))
    });
    rows.collect()
}
