//! Plain figures of the engine's services: values at one moment, made when a view requests them.
//!
//! Their names and formats are in [`crate::views`].

use std::net::{IpAddr, SocketAddr};

use uuid::Uuid;

use helenus_schema::schema::StorageId;

/// Statements on one table.
#[derive(Clone, Debug, PartialEq)]
pub struct AccessLatency {
    /// The keyspace.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// How many there were.
    pub count: u64,
    /// The longest, µs.
    pub max_micros: u64,
    /// Half of them were no longer, µs.
    pub p50_micros: u64,
    /// 99 of 100 were no longer, µs.
    pub p99_micros: u64,
    /// How many there were lately in a second.
    pub per_second: f64,
}

/// A replica of a physical partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// Its table's keyspace.
    pub keyspace: String,
    /// Its table.
    pub table: String,
    /// Its physical partition among the table's.
    pub partition: u64,
    /// Its number in the set; 0 writes as long as it is up.
    pub number: i32,
    /// The address of its node.
    pub node: IpAddr,
    /// Whether it holds the lease.
    pub is_writer: bool,
    /// Whether it is alive.
    pub is_up: bool,
    /// The epoch of the set's lease.
    pub lease_epoch: u64,
    /// Its replication lag. `None` means that it does not lag.
    pub lag: Option<ReplicaLag>,
}

/// A node of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterNode {
    /// Its name in a fleet; otherwise the address of its clients.
    pub name: String,
    /// Its id. Nil means that it is not known yet.
    pub host_id: Uuid,
    /// Where clients connect.
    pub address: SocketAddr,
    /// Where other nodes of the fleet connect. `None` means that it is in no fleet.
    pub fleet_address: Option<String>,
    /// Its data center.
    pub data_center: String,
    /// Its rack.
    pub rack: String,
    /// Whether it is up.
    pub is_up: bool,
    /// Whether it owns the stores.
    pub is_owner: bool,
    /// Since when it is up or down, milliseconds since 1970-01-01 UTC.
    pub since_millis: Option<i64>,
}

/// How far a replica may lag; a `None` sets no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaLag {
    /// Milliseconds.
    pub ms_max: Option<u64>,
    /// Commits.
    pub commits_max: Option<u64>,
}

/// A logical partition with many requests.
#[derive(Clone, Debug, PartialEq)]
pub struct HotKey {
    /// Its table's keyspace.
    pub keyspace: String,
    /// Its table.
    pub table: String,
    /// Its key, as CQL; commas between the values of a composite one.
    pub key: String,
    /// Its token.
    pub token: i64,
    /// Requests of the last one to two minutes; an upper bound.
    pub requests: u64,
    /// The number of requests may be lower by at most this much.
    pub requests_error: u64,
    /// The charges of the counted requests.
    pub request_units: f64,
}

/// A logical partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LargePartition {
    /// Its table's keyspace.
    pub keyspace: String,
    /// Its table.
    pub table: String,
    /// Its key, as CQL; commas between the values of a composite one.
    pub key: String,
    /// Its token.
    pub token: i64,
    /// Bytes of keys and values, index entries included: the last count plus all bytes written since. This is an upper
    /// bound.
    pub bytes: u64,
    /// Most bytes that it may hold. `None` means no limit.
    pub bytes_max: Option<u64>,
    /// Whether each write updates its size; otherwise it is the last count.
    pub is_watched: bool,
}

impl LargePartition {
    /// Its share of the limit: 1 is full. `None` without a limit.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a figure for people; 2^53 is enough")]
    pub fn share(&self) -> Option<f64> {
        self.bytes_max.map(|max| self.bytes as f64 / max.max(1) as f64)
    }
}

/// The budget of a physical partition, or the one that a keyspace shares. Amounts are in hundredths of a request unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountShown {
    /// The physical partition's number; 0 for a keyspace.
    pub id: u64,
    /// Request units added per second.
    pub per_second_hundredths: u64,
    /// The remaining budget; negative is an overdraft.
    pub balance_hundredths: i64,
    /// Request units banked for bursts.
    pub bank_hundredths: i64,
    /// The highest use in a second of the last minute, 0 to 100.
    pub normalized_percent: u8,
    /// The mean use of the last five seconds, 0 to 100.
    pub interval_percent: u8,
    /// The highest such mean in this hour.
    pub hour_percent: u8,
}

/// Throughput of a table, or of a keyspace that shares it, in request units a second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThroughputShown {
    /// The keyspace.
    pub keyspace: String,
    /// The table; empty for the throughput that the keyspace's tables share.
    pub table: String,
    /// Whether it is autoscale throughput.
    pub is_autoscale: bool,
    /// Whether it is that of the keyspace.
    pub is_shared: bool,
    /// The setting: the throughput of manual, the maximum of autoscale.
    pub max: u32,
    /// The current throughput.
    pub current: u32,
    /// The highest of this hour, which is billed.
    pub highest_in_hour: u32,
    /// The least that it can be set to.
    pub minimum: u32,
    /// By id.
    pub partitions: Vec<AccountShown>,
}

/// A statement that did not get its request units at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThrottleShown {
    /// µs since 1970-01-01 UTC.
    pub at_micros: i64,
    /// Of the table; `system_schema` for the budget of metadata.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// Its text without literals.
    pub statement: String,
    /// The physical partition that made it wait longest. `None` means the budget of metadata.
    pub partition: Option<u64>,
    /// Its remaining budget, in hundredths of a request unit; negative is an overdraft.
    pub balance_hundredths: i64,
    /// How long the client should wait.
    pub retry_after_millis: i32,
    /// Whether it waited in the server.
    pub was_retried: bool,
    /// Whether it was executed in the end.
    pub was_admitted: bool,
}

/// A statement that was executed.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedRequest {
    /// Rises by one with each statement.
    pub number: u64,
    /// The id of this statement.
    pub activity_id: Uuid,
    /// The client's address. `None` means that the request came over no connection.
    pub address: Option<SocketAddr>,
    /// Keyspace and name of its first table. `None` means that it names no table.
    pub table: Option<(String, String)>,
    /// The kind of statement.
    pub operation: &'static str,
    /// Its text without values.
    pub command: String,
    /// How long it took.
    pub duration_ms: f64,
    /// The protocol's error code; −1 means no error.
    pub error_code: i32,
    /// Request units.
    pub request_charge: f64,
    /// Bytes of the request's body; 0 means unknown.
    pub request_bytes: u64,
    /// Bytes of the rows answered.
    pub response_bytes: u64,
    /// The user of the connection.
    pub user: Option<String>,
    /// When it began, milliseconds since 1970-01-01 UTC.
    pub at_millis: i64,
    /// How long it waited in the server for request units. `None` means that it did not wait.
    pub delay_ms: Option<f64>,
}

/// An index that is being built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexBuild {
    /// Its number in the store.
    pub index: StorageId,
    /// The build's name among tasks.
    pub task: Uuid,
    /// Rows that have their entries.
    pub rows_passed: u64,
    /// Rows there were when it began, as far as known.
    pub rows_total: u64,
}
