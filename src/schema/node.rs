//! What the system tables tell about nodes. A plain value, made by the server at start.

use std::net::{IpAddr, SocketAddr};

use md5::{Digest, Md5};
use uuid::Uuid;

/// Another node of the cluster, as `system.peers` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The address that nodes know it by.
    pub address: IpAddr,
    /// Its port among nodes.
    pub port: u16,
    /// The address that clients connect to.
    pub native_address: IpAddr,
    /// The port that clients connect to.
    pub native_port: u16,
    /// Its identity.
    pub host_id: Uuid,
    /// Its data centre.
    pub data_center: String,
    /// Its rack.
    pub rack: String,
    /// Its tokens on the ring; no two nodes share one.
    pub tokens: Vec<i64>,
}

/// This node, as `system.local` shows it, and the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeInfo {
    /// The cluster's name.
    pub cluster_name: String,
    /// Its data centre.
    pub data_center: String,
    /// Its rack.
    pub rack: String,
    /// Its identity; stays the same over restarts.
    pub host_id: Uuid,
    /// The address that nodes know it by.
    pub address: IpAddr,
    /// Its port among nodes.
    pub port: u16,
    /// The address that clients connect to.
    pub native_address: IpAddr,
    /// The port that clients connect to.
    pub native_port: u16,
    /// Which Cassandra clients shall take it for.
    pub release_version: String,
    /// Of CQL.
    pub cql_version: String,
    /// The latest native protocol version.
    pub native_protocol_version: String,
    /// Full class name.
    pub partitioner: String,
    /// Short class name, which DESCRIBE CLUSTER shows.
    pub snitch: String,
    /// Its tokens on the ring.
    pub tokens: Vec<i64>,
    /// Seconds since 1970-01-01 UTC at which it started.
    pub generation: i32,
    /// The other nodes: first those of this process, then any others.
    pub peers: Vec<Peer>,
    /// How many nodes this process plays, itself included: 1 or 4.
    pub virtual_nodes: usize,
}

impl NodeInfo {
    /// A cluster of one node at this address, with all defaults: one token, and the version that clients know best.
    ///
    /// Differs: release_version is 5.0.0 though we follow 5.0.9, since it is the one value for which cqlsh prints no warning.
    #[must_use]
    pub fn single(host_id: Uuid, address: IpAddr, native_port: u16) -> Self {
        Self {
            cluster_name: "Test Cluster".to_owned(),
            data_center: "datacenter1".to_owned(),
            rack: "rack1".to_owned(),
            host_id,
            address,
            port: 7000,
            native_address: address,
            native_port,
            release_version: "5.0.0".to_owned(),
            cql_version: "3.4.7".to_owned(),
            native_protocol_version: "5".to_owned(),
            partitioner: "org.apache.cassandra.dht.Murmur3Partitioner".to_owned(),
            snitch: "DynamicEndpointSnitch".to_owned(),
            tokens: vec![0],
            generation: 0,
            peers: Vec::new(),
            virtual_nodes: 1,
        }
    }

    /// Gives the other nodes of this process identities that follow from this one's, so that they stay the same as long as it does.
    pub fn name_virtual_nodes(&mut self) {
        let own = self.host_id;
        let others = self.virtual_nodes.saturating_sub(1);
        for (peer, number) in self.peers.iter_mut().take(others).zip(2_u8..) {
            let mut hash = Md5::new();
            hash.update(own.as_bytes());
            hash.update([number]);
            peer.host_id = uuid::Builder::from_md5_bytes(hash.finalize().into()).into_uuid();
        }
    }

    /// The cluster as another node of this process sees it, from 0, which is this one: itself first, this one among its peers.
    #[must_use]
    pub fn seen_from(&self, node: usize) -> Self {
        let mut seen = self.clone();
        let Some(peer) = node.checked_sub(1).and_then(|place| seen.peers.get_mut(place)) else {
            return seen;
        };
        let itself = std::mem::replace(
            peer,
            Peer {
                address: self.address,
                port: self.port,
                native_address: self.native_address,
                native_port: self.native_port,
                host_id: self.host_id,
                data_center: self.data_center.clone(),
                rack: self.rack.clone(),
                tokens: self.tokens.clone(),
            },
        );
        seen.address = itself.address;
        seen.port = itself.port;
        seen.native_address = itself.native_address;
        seen.native_port = itself.native_port;
        seen.host_id = itself.host_id;
        seen.data_center = itself.data_center;
        seen.rack = itself.rack;
        seen.tokens = itself.tokens;
        seen
    }

    /// What Cosmos tells of a node whatever its settings: the Cassandra that it was measured against, and 64 tokens apart from each
    /// other alike.
    ///
    /// Source: a published session of cqlsh with Azure Cosmos DB, whose tokens are `-2^63 + k * 283796062672454640`.
    pub fn as_cosmos(&mut self) {
        const STEP: i64 = 283_796_062_672_454_640;
        const COUNT: i64 = 64;
        "3.11.0".clone_into(&mut self.release_version);
        "3.4.4".clone_into(&mut self.cql_version);
        "4".clone_into(&mut self.native_protocol_version);
        // Every region shows the same tokens there, which takes drivers down that map tokens to nodes; here there is one.
        self.tokens = (1..=COUNT)
            .map(|k| i64::MIN.wrapping_add(k.wrapping_mul(STEP)))
            .collect();
    }

    /// How many nodes the data centre of this name has.
    #[must_use]
    pub fn nodes_in(&self, data_center: &str) -> usize {
        usize::from(self.data_center == data_center)
            + self.peers.iter().filter(|peer| peer.data_center == data_center).count()
    }
}

/// A connected client, as `system_views.clients` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names and meanings are those of system_views.clients")]
pub struct Client {
    pub address: IpAddr,
    pub port: u16,
    pub client_options: Vec<(String, String)>,
    pub connection_stage: String,
    pub driver_name: Option<String>,
    pub driver_version: Option<String>,
    pub keyspace_name: Option<String>,
    pub protocol_version: u8,
    pub request_count: u64,
    pub ssl_cipher_suite: Option<String>,
    pub ssl_enabled: bool,
    pub ssl_protocol: Option<String>,
    pub username: String,
}

/// Statements on one table, as `system_views.coordinator_…_latency` shows them.
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

/// A cache, as `system_views.caches` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache {
    /// Bytes that it may take.
    pub capacity_bytes: u64,
    /// Bytes that it takes.
    pub size_bytes: u64,
    /// Requests that it answered.
    pub hits: u64,
    /// Requests that it was asked.
    pub requests: u64,
}

/// Partitions that batches of one kind wrote, as `system_views.batch_metrics` shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the names and meanings are those of system_views.batch_metrics"
)]
pub struct BatchPartitions {
    pub name: &'static str,
    pub p50: u64,
    pub p99: u64,
    pub p999: u64,
    pub max: u64,
}

/// Figures that tables of `system_views` show. Only those that the table at hand shows are filled in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ViewFigures {
    /// By keyspace and table.
    pub latencies: Vec<AccessLatency>,
    /// Keyspace, table, bytes of keys and values.
    pub disk_usage: Vec<(String, String, u64)>,
    /// The row cache; `None`: not asked for.
    pub row_cache: Option<Cache>,
    /// By kind of batch.
    pub batches: Vec<BatchPartitions>,
    /// Executions of prepared statements.
    pub prepared_executed: u64,
    /// Executions of other statements.
    pub regular_executed: u64,
    /// Prepared statements forgotten to make room.
    pub prepared_evicted: u64,
}

/// What changes from moment to moment: what only the server knows, and what is counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Live {
    /// Connections.
    pub clients: Vec<Client>,
    /// `system_views.settings`: the effective configuration.
    pub settings: Vec<(String, String)>,
    /// Indexes that are being built; all others are complete.
    pub index_builds: Vec<IndexBuild>,
    /// Prepared statements that are kept.
    pub prepared_statements: usize,
    /// What is counted.
    pub figures: ViewFigures,
    /// `system_cosmos.partitions`, in the order of its clustering; only there when asked for.
    pub partitions: Vec<PhysicalPartition>,
    /// `system_cosmos.hot_keys`, the most asked first; only there when asked for.
    pub hot_keys: Vec<HotKey>,
    /// `system_cosmos.largest_partitions`, the largest first; only there when asked for.
    pub largest_partitions: Vec<LargePartition>,
    /// `system_cosmos.throughput` and `partition_throughput`; only there when asked for.
    pub throughput: Vec<ThroughputShown>,
    /// `system_cosmos.throttles`, oldest first; only there when asked for.
    pub throttles: Vec<ThrottleShown>,
    /// `system_cosmos.replicas`, likewise.
    pub replicas: Vec<Replica>,
    /// Keyspace, table, request units charged since the start, in this order.
    pub table_units: Vec<(String, String, f64)>,
    /// `system_cosmos.request_log`, oldest first.
    pub requests: Vec<LoggedRequest>,
}

/// A replica of a physical partition, as `system_cosmos.replicas` shows it.
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
    /// How far it may be behind; `None`: not at all.
    pub lag: Option<ReplicaLag>,
}

/// How far a replica may be behind; `None`: not bounded by that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaLag {
    /// Milliseconds.
    pub ms_max: Option<u64>,
    /// Commits.
    pub commits_max: Option<u64>,
}

/// A logical partition that is asked often, as `system_cosmos.hot_keys` shows it.
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
    /// Requests of the last one to two minutes: at most so many.
    pub requests: u64,
    /// It may be fewer by so many.
    pub requests_error: u64,
    /// What the requests that were counted were charged.
    pub request_units: f64,
}

/// A logical partition, as `system_cosmos.largest_partitions` shows it.
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
    /// Bytes of keys and values, index entries included: as last counted, plus what has been written since. At most so many.
    pub bytes: u64,
    /// Bytes that it may come to; `None`: any.
    pub bytes_max: Option<u64>,
    /// Whether its size is kept with each write; otherwise it is what was counted last.
    pub is_watched: bool,
}

impl LargePartition {
    /// Its part of what it may come to: 1 is full. `None` where it may come to anything.
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
    /// What comes in a second.
    pub per_second_hundredths: u64,
    /// What may be spent now; negative is debt.
    pub balance_hundredths: i64,
    /// What is banked for bursts.
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
    /// The table; empty for what the keyspace's tables share.
    pub table: String,
    /// Whether it follows use.
    pub is_autoscale: bool,
    /// Whether it is that of the keyspace.
    pub is_shared: bool,
    /// What was asked for: all there is of manual throughput, the most of autoscale.
    pub max: u32,
    /// What it is now.
    pub current: u32,
    /// The highest that it was in this hour: what is billed.
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
    /// The physical partition that was asked in vain for longest; `None`: the budget of metadata.
    pub partition: Option<u64>,
    /// What it had, in hundredths of a request unit; negative is debt.
    pub balance_hundredths: i64,
    /// How long was to be waited.
    pub retry_after_millis: i32,
    /// Whether it waited in the server.
    pub was_retried: bool,
    /// Whether it was carried out in the end.
    pub was_admitted: bool,
}

/// A statement that was carried out, as `system_cosmos.request_log` shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedRequest {
    /// Rises by one for each.
    pub number: u64,
    /// Its own.
    pub activity_id: Uuid,
    /// Where the client is; `None`: nobody's connection.
    pub address: Option<SocketAddr>,
    /// Keyspace and name of the first table in it; `None`: none is.
    pub table: Option<(String, String)>,
    /// What kind of statement.
    pub operation: &'static str,
    /// Its text without values.
    pub command: String,
    /// How long it took.
    pub duration_ms: f64,
    /// The protocol's error code; −1: none.
    pub error_code: i32,
    /// Request units.
    pub request_charge: f64,
    /// Bytes of the request's body; 0: not known.
    pub request_bytes: u64,
    /// Bytes of the rows answered.
    pub response_bytes: u64,
    /// Who is logged in.
    pub user: Option<String>,
    /// When it began, milliseconds since 1970-01-01 UTC.
    pub at_millis: i64,
    /// How long it waited in the server for request units; `None`: it did not have to.
    pub delay_ms: Option<f64>,
}

/// A physical partition, as `system_cosmos.partitions` shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct PhysicalPartition {
    /// Its table's keyspace.
    pub keyspace: String,
    /// Its table.
    pub table: String,
    /// Its number among the table's.
    pub id: u64,
    /// The table's epoch at which it came to be.
    pub epoch: u64,
    /// First token.
    pub lower: i64,
    /// Last token.
    pub upper: i64,
    /// Bytes of its rows; part of a table is judged by its part of the ring.
    pub bytes: u64,
    /// Rows, judged like bytes.
    pub rows: u64,
    /// Request units a second, lately.
    pub request_units_per_second: f64,
    /// The store that holds it.
    pub store: u32,
    /// Request units charged to it since the server started.
    pub request_units: f64,
}

/// An index that is being built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexBuild {
    /// Its number in the store.
    pub index: super::StorageId,
    /// The build's name among tasks.
    pub task: Uuid,
    /// Rows that have their entries.
    pub rows_passed: u64,
    /// Rows there were when it began, as far as known.
    pub rows_total: u64,
}
