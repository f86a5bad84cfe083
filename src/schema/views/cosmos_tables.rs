//! `system_cosmos`: what Cassandra has no tables for.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use bytes::Bytes;

use super::encode::{bigint, boolean, double, inet, int, text, uuid};
use super::{Cells, Sources};
use crate::schema::node::{Live, LoggedRequest, NodeInfo, ThroughputShown};

fn count(count: u64) -> Bytes {
    bigint(i64::try_from(count).unwrap_or(i64::MAX))
}

/// Rows of `system_cosmos`.
pub(super) fn system_cosmos(table: &str, sources: Sources<'_>) -> Vec<Cells> {
    let live = sources.live;
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
                    .set("request_units", double(partition.request_units))
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
        "tables" => tables(sources),
        "request_log" => {
            let clients = live.clients.iter();
            let agents: BTreeMap<SocketAddr, &str> = clients
                .filter_map(|client| {
                    Some((
                        SocketAddr::new(client.address, client.port),
                        client.driver_name.as_deref()?,
                    ))
                })
                .collect();
            let agent = |request: &LoggedRequest| agents.get(&request.address?).copied();
            live.requests
                .iter()
                .map(|request| logged(request, sources.node, agent(request)))
                .collect()
        }
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

/// Tables, each with the sums of its partitions.
fn tables(sources: Sources<'_>) -> Vec<Cells> {
    let mut sums: BTreeMap<(&str, &str), (i32, u64, u64)> = BTreeMap::new();
    for partition in &sources.live.partitions {
        let (partitions, bytes, rows) = sums.entry((&partition.keyspace, &partition.table)).or_default();
        *partitions += 1;
        *bytes += partition.bytes;
        *rows += partition.rows;
    }
    let units = sources.live.table_units.iter();
    units
        .map(|(keyspace, table, units)| {
            let sum = sums.get(&(keyspace.as_str(), table.as_str()));
            let (partitions, bytes, rows) = sum.copied().unwrap_or_default();
            Cells::new()
                .set("keyspace_name", text(keyspace))
                .set("table_name", text(table))
                .set("bytes", count(bytes))
                .set("partitions", int(partitions))
                .set("request_units", double(*units))
                .set("rows", count(rows))
        })
        .collect()
}

/// A row of the request log. Retries in the server count as one.
fn logged(request: &LoggedRequest, node: &NodeInfo, agent: Option<&str>) -> Cells {
    let (keyspace, table) = request
        .table
        .as_ref()
        .map(|(keyspace, table)| (text(keyspace), text(table)))
        .unzip();
    let address = request.address.map(|address| inet(address.ip()));
    Cells::new()
        .set("account_name", text(&node.cluster_name))
        .set("number", count(request.number))
        .set("activity_id", uuid(request.activity_id))
        .set_if("address", address)
        .set_if(
            "authorization_token_type",
            request.user.as_ref().map(|_| text("PrimaryMasterKey")),
        )
        .set_if("collection_name", table)
        .set_if("database_name", keyspace)
        .set("duration_ms", double(request.duration_ms))
        .set("error_code", int(request.error_code))
        .set("operation_name", text(request.operation))
        .set("pii_command_text", text(&request.command))
        .set("rate_limiting_delay_ms", double(request.delay_ms.unwrap_or_default()))
        .set("region_name", text(&node.data_center))
        .set("request_charge", double(request.request_charge))
        .set("request_length", count(request.request_bytes))
        .set("response_length", count(request.response_bytes))
        .set("retried_due_to_rate_limiting", boolean(request.delay_ms.is_some()))
        .set("retry_count", int(i32::from(request.delay_ms.is_some())))
        .set("time_generated", bigint(request.at_millis))
        .set_if("user_agent", agent.map(text))
}
