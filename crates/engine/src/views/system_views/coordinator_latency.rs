//! `system_views.coordinator_read_latency`, `…_scan_latency` and `…_write_latency`: statements by table.
//!
//! Differs: percentiles cover the time since the start; Cassandra's decay.

use super::super::cells::Cells;
use super::super::view::View;
use super::numbers::{float, long, rounded};
use crate::engine::shown::AccessLatency;
use helenus_base::metrics::Access;
use helenus_schema::schema::encode::text;

pub(super) const READS: View = View::of("system_views", "coordinator_read_latency", |sources| {
    latencies(&sources.of_services(|figures| figures.latencies(Access::Read)))
});

pub(super) const SCANS: View = View::of("system_views", "coordinator_scan_latency", |sources| {
    latencies(&sources.of_services(|figures| figures.latencies(Access::Scan)))
});

pub(super) const WRITES: View = View::of("system_views", "coordinator_write_latency", |sources| {
    latencies(&sources.of_services(|figures| figures.latencies(Access::Write)))
});

fn latencies(latencies: &[AccessLatency]) -> Vec<Cells> {
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
