//! The figures of the services, for the module `views`: each method gathers one kind at one moment.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use arc_swap::ArcSwapOption;

use super::admission::shown::{budget_of, throughput};
use super::catalog::Catalog;
use super::counts::Counts;
use super::fault_injection::place;
use super::ledger::Ledger;
use super::logical::{LogicalPartitions, printed_key};
use super::snapshot::Snapshot;
use crate::engine::shown::{
    AccessLatency, AccountShown, ClusterNode, HotKey, IndexBuild, LargePartition, LoggedRequest,
    Replica as ShownReplica, ReplicaLag, ThrottleShown, ThroughputShown,
};
use crate::partition::nodes::Up;
use crate::partition::{Nodes, PhysicalPartition, Seat, Stores};
use crate::throughput::{PartitionRef, RequestUnits};
use helenus_base::clock::Clock;
use helenus_base::metrics::{Access, Statements};
use helenus_schema::schema::node::NodeInfo;
use helenus_schema::schema::{StorageId, Table, system};
use helenus_storage::storage::Held;

/// Hot keys that are shown.
const HOT_KEYS_MAX: usize = 100;

/// The services whose figures are shown.
#[derive(Clone, Copy)]
pub struct Figures<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) stores: &'a Stores,
    pub(super) statements: &'a Arc<Statements>,
    pub(super) ledger: &'a Ledger,
    pub(super) counts: &'a Counts,
    pub(super) logical: &'a LogicalPartitions,
    pub(super) nodes: &'a Nodes,
    /// The virtual nodes, each as its clients see it.
    pub(super) seen: &'a [NodeInfo],
    /// The nodes of the fleet.
    pub(super) fleet: &'a ArcSwapOption<Vec<ClusterNode>>,
    pub(super) clock: &'a Clock,
}

/// A physical partition, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionFigures {
    /// Its number.
    pub id: u64,
    /// Its table's keyspace.
    pub keyspace: String,
    /// Its table.
    pub table: String,
    /// Lowest token, inclusive.
    pub lower: i64,
    /// Highest token, inclusive.
    pub upper: i64,
    /// The lowest partition key of the lowest token; empty: it has that token from its first key on. If the key has a masked
    /// column, the number of the physical partition is here instead.
    pub lower_key: Vec<u8>,
    /// The partition key of the highest token at which it ends, exclusive; masked like `lower_key`. `None` means that it has that
    /// token to its last key.
    pub upper_key: Option<Vec<u8>>,
    /// Its epoch.
    pub epoch: u64,
    /// The store that holds it.
    pub store: u32,
    /// How many replicas it has.
    pub replicas: u32,
    /// How many of its replicas are alive.
    pub replicas_alive: u32,
    /// Bytes of keys and values.
    pub bytes: u64,
    /// Rows, those deleted or expired and not yet cleaned up included.
    pub rows: u64,
    /// Whether bytes and rows are exact.
    pub is_exact: bool,
    /// Recent request units a second, sampled now and then.
    pub per_second: RequestUnits,
    /// Its budget. `None` means no limit.
    pub budget: Option<AccountShown>,
    /// Request units charged to it since the server started.
    pub request_units: RequestUnits,
}

/// Figures of the store since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreFigures {
    /// Point reads that the row cache answered.
    pub row_cache_hits: u64,
    /// Point reads that went to the engine.
    pub row_cache_misses: u64,
    /// Bytes in the row cache now.
    pub row_cache_bytes: u64,
    /// Bytes that the row cache may take.
    pub row_cache_bytes_max: u64,
    /// What else the stores hold in memory.
    pub held: Held,
}

impl<'a> Figures<'a> {
    fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.catalog.load())
    }

    /// Statements by kind and by table.
    pub(crate) fn statements(&self) -> &'a Statements {
        self.statements
    }

    /// The figures of all stores, summed up.
    #[must_use]
    pub fn store_figures(&self) -> StoreFigures {
        let mut sum = StoreFigures::default();
        for (_, store) in self.stores.all() {
            let figures = store.figures();
            sum.row_cache_hits += figures.row_cache_hits;
            sum.row_cache_misses += figures.row_cache_misses;
            sum.row_cache_bytes += figures.row_cache_bytes as u64;
            sum.row_cache_bytes_max += self.stores.row_cache_bytes_max() as u64;
            sum.held.memtables += figures.held.memtables;
            sum.held.block_cache += figures.held.block_cache;
            sum.held.table_indexes += figures.held.table_indexes;
            sum.held.key_filter += figures.held.key_filter;
        }
        sum
    }

    /// The physical partitions of all tables and views that have stored rows, by keyspace, table and token. Their
    /// contents are as of the last count (small tables are counted when they are shown).
    #[must_use]
    pub fn partitions(&self) -> Vec<PartitionFigures> {
        let snapshot = self.snapshot();
        let mut figures = Vec::new();
        let now = self.clock.monotonic();
        for table in snapshot.schema.stored_tables() {
            let Ok(partitions) = snapshot.partitions(table) else {
                continue;
            };
            // A machine that owns none counts none.
            if !partitions.is_here() {
                continue;
            }
            let held = self.counts.held(partitions, table.storage_id);
            let is_masked = table.partition_key().iter().any(|column| column.mask.is_some());
            for (partition, estimate) in partitions.all().iter().zip(held) {
                let bound = |key: &[u8]| match is_masked && !key.is_empty() {
                    true => partition.id.0.to_be_bytes().to_vec(),
                    false => key.to_vec(),
                };
                figures.push(PartitionFigures {
                    id: partition.id.0,
                    keyspace: table.keyspace.clone(),
                    table: table.name.clone(),
                    lower: partition.lower(),
                    upper: partition.upper(),
                    lower_key: bound(partition.span.start().partition_key()),
                    upper_key: partition.span.end_key().map(bound),
                    epoch: partition.epoch,
                    store: partition.store_id.0,
                    replicas: self.nodes.set_size(),
                    replicas_alive: self.alive(table, partition),
                    bytes: estimate.bytes,
                    rows: estimate.rows,
                    is_exact: estimate.is_exact,
                    per_second: partition.here().map(|here| here.load.per_second()).unwrap_or_default(),
                    budget: budget_of(partitions, partition.id.0, now),
                    request_units: self.ledger.meter.spent().of(PartitionRef {
                        table: table.storage_id,
                        partition: partition.id.0,
                    }),
                });
            }
        }
        figures
    }

    /// Request units charged since the server started, metadata included.
    #[must_use]
    pub fn request_units(&self) -> RequestUnits {
        self.ledger.meter.spent().total()
    }

    /// Request units charged to each table and view since the server started, by keyspace and name.
    #[must_use]
    pub fn table_request_units(&self) -> Vec<(String, String, RequestUnits)> {
        let by_table = self.ledger.meter.spent().by_table();
        let snapshot = self.snapshot();
        let units = |table: &Arc<Table>| {
            let units = by_table.get(&table.storage_id).copied().unwrap_or_default();
            (table.keyspace.clone(), table.name.clone(), units)
        };
        snapshot.schema.stored_tables().map(units).collect()
    }

    /// Statements that did not get their request units at once, oldest first.
    #[must_use]
    pub fn throttles(&self) -> Vec<ThrottleShown> {
        self.ledger.admission.throttles()
    }

    /// The request log, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<LoggedRequest> {
        let host = self.seen.first().map(|node| node.host_id).unwrap_or_default();
        self.ledger.meter.log().shown(host)
    }

    /// Whether the materialized view of this number is built.
    pub(crate) fn is_built(&self, view: StorageId) -> bool {
        self.catalog.published.views.is_complete(view)
    }

    /// Indexes that are being built.
    pub(crate) fn index_builds(&self) -> Vec<IndexBuild> {
        self.catalog.published.indexes.builds()
    }

    /// How long statements took that access tables in one way, by table.
    pub(crate) fn latencies(&self, access: Access) -> Vec<AccessLatency> {
        let now = self.clock.monotonic();
        let snapshot = self.snapshot();
        let latency = |table: &Arc<Table>| {
            let known = self.statements().known_table(table.id.as_u128());
            let figures = known.as_deref().map(|known| known.of(access));
            let times = figures.map(|figures| figures.latency.load()).unwrap_or_default();
            AccessLatency {
                keyspace: table.keyspace.clone(),
                table: table.name.clone(),
                count: times.count(),
                max_micros: times.max(),
                p50_micros: times.quantile(0.5),
                p99_micros: times.quantile(0.99),
                per_second: figures.map_or(0.0, |figures| figures.per_second(now)),
            }
        };
        snapshot.schema.stored_tables().map(latency).collect()
    }

    /// Keyspace, table, bytes of keys and values.
    pub(crate) fn disk_usage(&self) -> Vec<(String, String, u64)> {
        let snapshot = self.snapshot();
        let usage = |table: &Arc<Table>| {
            let bytes = snapshot.partitions(table).ok()?.bytes(table.storage_id).bytes;
            Some((table.keyspace.clone(), table.name.clone(), bytes))
        };
        snapshot.schema.stored_tables().filter_map(usage).collect()
    }

    /// The throughput of tables and keyspaces, by keyspace and table.
    #[must_use]
    pub fn throughput(&self) -> Vec<ThroughputShown> {
        throughput(&self.snapshot(), self.catalog.offers(), self.clock.monotonic())
    }

    /// The largest logical partitions that are known, the largest first.
    #[must_use]
    pub fn largest_partitions(&self) -> Vec<LargePartition> {
        let snapshot = self.snapshot();
        let stored = snapshot.schema.stored_tables();
        let tables: BTreeMap<StorageId, &Table> = stored.map(|table| (table.storage_id, table.as_ref())).collect();
        self.logical.largest(|id| {
            let table = tables.get(&id).copied()?;
            Some((table, snapshot.partitions(table).ok()?.placement()))
        })
    }

    /// The partition keys of users' tables with the most requests in the last one to two minutes, the hottest first.
    #[must_use]
    pub fn hot_keys(&self) -> Vec<HotKey> {
        let snapshot = self.snapshot();
        let users = snapshot.schema.stored_tables();
        let users = users.filter(|table| !system::is_name(&table.keyspace));
        let tables: BTreeMap<StorageId, &Table> = users.map(|table| (table.storage_id, table.as_ref())).collect();
        let hottest = self.ledger.meter.hot().hottest(self.clock.monotonic(), HOT_KEYS_MAX);
        let shown = hottest.into_iter().filter_map(|hot| {
            let table = tables.get(&hot.table)?;
            let map = snapshot.partitions(table).ok()?;
            Some(HotKey {
                keyspace: table.keyspace.clone(),
                table: table.name.clone(),
                key: printed_key(table, &hot.key),
                token: map.placement().token_of_spread(hot.spread),
                requests: hot.requests,
                requests_error: hot.requests_error,
                request_units: hot.units.as_f64(),
            })
        });
        shown.collect()
    }

    /// The replicas of users' tables and views, by table, partition and number.
    pub(crate) fn replicas(&self) -> Vec<ShownReplica> {
        let snapshot = self.snapshot();
        let mut shown = Vec::new();
        for keyspace in snapshot
            .schema
            .keyspaces
            .values()
            .filter(|keyspace| !system::is_name(&keyspace.name))
        {
            for table in keyspace.all_tables() {
                let Ok(partitions) = snapshot.partitions(table) else {
                    continue;
                };
                for partition in partitions.all() {
                    let seated = self.seated(table, partition);
                    if !seated.is_empty() {
                        shown.extend(seated);
                        continue;
                    }
                    let set = self.nodes.shown(&place(table, partition));
                    shown.extend(set.replicas.iter().zip(0..).map(|(replica, number)| ShownReplica {
                        keyspace: table.keyspace.clone(),
                        table: table.name.clone(),
                        partition: partition.id.0,
                        number,
                        node: self.node_address(replica.node),
                        is_writer: replica.is_writer,
                        is_up: replica.is_alive,
                        lease_epoch: set.lease_epoch,
                        lag: replica.lag.map(|lag| ReplicaLag {
                            ms_max: lag.ms_max,
                            commits_max: lag.commits_max,
                        }),
                    }));
                }
            }
        }
        shown.sort_by(|a, b| {
            (&a.keyspace, &a.table, a.partition, a.number).cmp(&(&b.keyspace, &b.table, b.partition, b.number))
        });
        shown
    }

    /// How many replicas of a physical partition are alive: of several sets those of the set with the fewest.
    fn alive(&self, table: &Table, partition: &PhysicalPartition) -> u32 {
        let seats = self.nodes.seats();
        let of_fleet = seats.as_ref().and_then(|seats| {
            let sets = seats.sets_of(partition.span.lower(), partition.span.upper());
            sets.map(|set| set.alive()).min()
        });
        of_fleet.unwrap_or_else(|| self.nodes.replicas(&place(table, partition)).alive())
    }

    /// The replicas of a physical partition on several nodes of a fleet: those of its first token. The owner writes, and the others have
    /// a seat each.
    fn seated(&self, table: &Table, partition: &PhysicalPartition) -> Vec<ShownReplica> {
        let Some(seats) = self.nodes.seats() else {
            return Vec::new();
        };
        let of_set = seats.seats_of(partition.span.lower()).zip(0..);
        let replica = |(seat, number): (&Seat, i32)| ShownReplica {
            keyspace: table.keyspace.clone(),
            table: table.name.clone(),
            partition: partition.id.0,
            number,
            node: seat.address,
            is_writer: seat.is_owner,
            is_up: seat.is_up,
            lease_epoch: 0,
            lag: None,
        };
        of_set.map(replica).collect()
    }

    /// The nodes of the cluster, by name: those of the fleet, else this one or its virtual nodes.
    #[must_use]
    pub fn cluster(&self) -> Vec<ClusterNode> {
        if let Some(fleet) = self.fleet.load_full() {
            return fleet.to_vec();
        }
        let up = *self.nodes.up().borrow();
        let mut nodes: Vec<ClusterNode> = self
            .seen
            .iter()
            .enumerate()
            .map(|(place, node)| alone(place, node, up))
            .collect();
        nodes.sort_by(|a, b| a.name.cmp(&b.name));
        nodes
    }

    /// The address of a virtual node, from 0.
    fn node_address(&self, node: usize) -> IpAddr {
        let seen = self.seen.get(node).or_else(|| self.seen.first());
        seen.map_or(IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), |node| node.native_address)
    }
}

/// A node of a server that is in no fleet, by its number, from 0.
fn alone(place: usize, node: &NodeInfo, up: Up) -> ClusterNode {
    let address = SocketAddr::new(node.native_address, node.native_port);
    ClusterNode {
        name: address.to_string(),
        host_id: node.host_id,
        address,
        fleet_address: None,
        data_center: node.data_center.clone(),
        rack: node.rack.clone(),
        is_up: up.is_up(place),
        is_owner: true,
        since_millis: Some(i64::from(node.generation) * 1000).filter(|_| up.is_up(place)),
    }
}
