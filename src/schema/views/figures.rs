//! Tables of `system_views` that show what is counted.
//!
//! Differs: percentiles are of all time since the start, where Cassandra's forget; `disk_usage` is bytes of keys and values before the
//! engine's compression; `caches` has the row cache only, whose entries are not counted.

use super::Cells;
use super::encode::{bigint, double, text};
use crate::schema::node::{Cache, Live};

/// Rows of a table of figures; none where we have nothing true to say.
pub(super) fn rows(table: &str, live: &Live) -> Vec<Cells> {
    let figures = &live.figures;
    match table {
        "coordinator_read_latency" | "coordinator_scan_latency" | "coordinator_write_latency" => {
            latencies(&figures.latencies)
        }
        "disk_usage" => figures.disk_usage.iter().map(disk_usage).collect(),
        "caches" => figures.row_cache.iter().map(row_cache).collect(),
        "cql_metrics" => cql_metrics(live),
        "batch_metrics" => figures.batches.iter().map(batch_metrics).collect(),
        _ => Vec::new(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people; 2^53 is enough")]
const fn float(number: u64) -> f64 {
    number as f64
}

fn long(number: u64) -> bytes::Bytes {
    bigint(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Rounded to three digits behind the point, as Cassandra shows such figures.
fn rounded(number: f64) -> bytes::Bytes {
    double((number * 1000.0).round() / 1000.0)
}

fn latencies(latencies: &[crate::schema::node::AccessLatency]) -> Vec<Cells> {
    let milliseconds = |micros| rounded(float(micros) / 1000.0);
    latencies
        .iter()
        .map(|latency| {
            Cells::new()
                .set("keyspace_name", text(&latency.keyspace))
                .set("table_name", text(&latency.table))
                .set("count", long(latency.count))
                .set("max_ms", milliseconds(latency.max_micros))
                .set("p50th_ms", milliseconds(latency.p50_micros))
                .set("p99th_ms", milliseconds(latency.p99_micros))
                .set("per_second", rounded(latency.per_second))
        })
        .collect()
}

fn disk_usage((keyspace, table, bytes): &(String, String, u64)) -> Cells {
    Cells::new()
        .set("keyspace_name", text(keyspace))
        .set("table_name", text(table))
        .set("mebibytes", long(bytes.div_ceil(1024 * 1024)))
}

fn row_cache(cache: &Cache) -> Cells {
    Cells::new()
        .set("name", text("rows"))
        .set("capacity_bytes", long(cache.capacity_bytes))
        .set("hit_count", long(cache.hits))
        // Not a number before the first request, as in Cassandra.
        .set("hit_ratio", double(float(cache.hits) / float(cache.requests)))
        .set("request_count", long(cache.requests))
        .set("size_bytes", long(cache.size_bytes))
}

fn cql_metrics(live: &Live) -> Vec<Cells> {
    let figures = &live.figures;
    let (prepared, regular) = (float(figures.prepared_executed), float(figures.regular_executed));
    let ratio = if prepared + regular > 0.0 {
        prepared / (prepared + regular)
    } else {
        0.0
    };
    [
        ("prepared_statements_count", float(live.prepared_statements as u64)),
        ("prepared_statements_evicted", float(figures.prepared_evicted)),
        ("prepared_statements_executed", prepared),
        ("prepared_statements_ratio", ratio),
        ("regular_statements_executed", regular),
    ]
    .map(|(name, value)| Cells::new().set("name", text(name)).set("value", double(value)))
    .into()
}

fn batch_metrics(batch: &crate::schema::node::BatchPartitions) -> Cells {
    Cells::new()
        .set("name", text(batch.name))
        .set("max", long(batch.max))
        .set("p50th", double(float(batch.p50)))
        .set("p999th", double(float(batch.p999)))
        .set("p99th", double(float(batch.p99)))
}
