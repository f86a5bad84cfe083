//! The shapes of the admin port's JSON as its readers know them. Fields are added here when the server adds them; none may go.
#![expect(dead_code, reason = "that a field is there and of its type is what is tested")]

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Latency {
    pub(crate) count: u64,
    pub(crate) p50_micros: u64,
    pub(crate) p99_micros: u64,
    pub(crate) p999_micros: u64,
    pub(crate) max_micros: u64,
    pub(crate) total_micros: u64,
}
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kind {
    pub(crate) kind: String,
    pub(crate) errors: u64,
    pub(crate) latency: Latency,
}
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ErrorCount {
    pub(crate) code: String,
    pub(crate) name: String,
    pub(crate) count: u64,
}
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Statements {
    pub(crate) kinds: Vec<Kind>,
    pub(crate) errors: Vec<ErrorCount>,
    pub(crate) prepared: Prepared,
}
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Prepared {
    pub(crate) count: usize,
    pub(crate) bytes: usize,
    pub(crate) executed: u64,
    pub(crate) evicted: u64,
}
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Connections {
    pub(crate) open: usize,
    pub(crate) opened: u64,
    pub(crate) refused: u64,
    pub(crate) in_flight: usize,
    pub(crate) in_flight_bytes: usize,
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
}
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RowCache {
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) bytes: u64,
    pub(crate) bytes_max: u64,
}
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemoryHolder {
    pub(crate) holder: String,
    pub(crate) bytes: u64,
    pub(crate) bytes_max: Option<u64>,
}
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Commits {
    pub(crate) batches: u64,
    pub(crate) groups: Latency,
}
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) host_id: String,
    pub(crate) native_address: String,
    pub(crate) native_port: u16,
    pub(crate) fleet_address: Option<String>,
    pub(crate) data_center: String,
    pub(crate) rack: String,
    pub(crate) state: String,
    pub(crate) owner: bool,
    pub(crate) since_ms: Option<i64>,
}
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Status {
    pub(crate) version: String,
    pub(crate) cluster_name: String,
    pub(crate) data_center: String,
    pub(crate) rack: String,
    pub(crate) host_id: String,
    pub(crate) addresses: Vec<String>,
    pub(crate) tls_addresses: Vec<String>,
    pub(crate) login_required: bool,
    pub(crate) data: String,
    pub(crate) durability: String,
    pub(crate) started_seconds: i64,
    pub(crate) uptime_seconds: u64,
    pub(crate) keyspaces: usize,
    pub(crate) tables: usize,
    pub(crate) partitions: usize,
    pub(crate) bytes: u64,
    pub(crate) rows: u64,
    pub(crate) connections: Connections,
    pub(crate) row_cache: RowCache,
    pub(crate) nodes: Vec<Node>,
    pub(crate) memory: Vec<MemoryHolder>,
    pub(crate) commits: Commits,
    pub(crate) statements: Statements,
    pub(crate) throttled: u64,
    pub(crate) request_units: f64,
    pub(crate) users_request_units: f64,
}
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    pub(crate) keyspace: String,
    pub(crate) table: String,
    pub(crate) is_system: bool,
    pub(crate) partitions: usize,
    pub(crate) bytes: u64,
    pub(crate) rows: u64,
    pub(crate) is_exact: bool,
    pub(crate) reads: Latency,
    pub(crate) scans: Latency,
    pub(crate) writes: Latency,
    pub(crate) request_units: f64,
}
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tables {
    pub(crate) total: usize,
    pub(crate) tables: Vec<Table>,
}
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Partition {
    pub(crate) id: u64,
    pub(crate) keyspace: String,
    pub(crate) table: String,
    pub(crate) lower: String,
    pub(crate) lower_key: String,
    pub(crate) upper: String,
    pub(crate) upper_key: Option<String>,
    pub(crate) epoch: u64,
    pub(crate) store: u32,
    pub(crate) replicas: u32,
    pub(crate) replicas_alive: u32,
    pub(crate) bytes: u64,
    pub(crate) rows: u64,
    pub(crate) is_exact: bool,
    pub(crate) request_units_per_second: f64,
    pub(crate) provisioned_units_per_second: Option<u64>,
    pub(crate) normalized_consumption_percent: Option<u8>,
    pub(crate) request_units: f64,
}
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HotKey {
    pub(crate) keyspace: String,
    pub(crate) table: String,
    pub(crate) partition_key: String,
    pub(crate) token: String,
    pub(crate) requests: u64,
    pub(crate) requests_error: u64,
    pub(crate) request_units: f64,
}
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LargePartition {
    pub(crate) keyspace: String,
    pub(crate) table: String,
    pub(crate) partition_key: String,
    pub(crate) token: String,
    pub(crate) bytes: u64,
    pub(crate) bytes_max: Option<u64>,
    pub(crate) share: Option<f64>,
    pub(crate) is_watched: bool,
}
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keys {
    pub(crate) hot: Vec<HotKey>,
    pub(crate) largest: Vec<LargePartition>,
}
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Partitions {
    pub(crate) total: usize,
    pub(crate) partitions: Vec<Partition>,
}
