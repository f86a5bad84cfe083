//! From the parts of a running server to what is told of it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::report::{
    Commits, Connections, ErrorCount, HotKey, Keys, Kind, LargePartition, Latency, Partition, Partitions, Prepared,
    RowCache, Statements, Status, Table, Tables,
};
use crate::clock::Clock;
use crate::executor::{Database, PartitionFigures};
use crate::metrics::{self, Access, StatementKind, TableFigures};
use crate::schema::system;
use crate::server::{Events, Load, Requests};

/// Most tables, and most partitions, that one answer lists: some 4 MB of JSON.
pub(super) const LISTED_MAX: usize = 10_000;

/// The parts of a server that are asked.
pub struct Source {
    /// The database.
    pub database: Arc<Database>,
    /// Who knows the prepared statements.
    pub requests: Arc<Requests>,
    /// Who knows the connections.
    pub load: Box<dyn Fn() -> Load + Send + Sync>,
    /// Time.
    pub clock: Clock,
    /// Where changes of the schema are announced.
    pub events: Arc<Events>,
    /// The token that a request must have to change something.
    pub token: String,
    /// Where CQL is served.
    pub addresses: Vec<SocketAddr>,
    /// Where CQL is served over TLS.
    pub tls_addresses: Vec<SocketAddr>,
    /// Whether clients must log in.
    pub login_required: bool,
    /// Where data is kept.
    pub data: String,
    /// When a write is acknowledged.
    pub durability: String,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Source")
            .field("addresses", &self.addresses)
            .finish_non_exhaustive()
    }
}

/// Asks them.
pub(super) struct Gatherer {
    source: Source,
    started: Duration,
    started_seconds: i64,
}

/// What a table's partitions hold together.
#[derive(Clone, Copy)]
struct Size {
    partitions: usize,
    bytes: u64,
    rows: u64,
    is_exact: bool,
}

impl Gatherer {
    pub(super) fn new(source: Source) -> Self {
        Self {
            started: source.clock.monotonic(),
            started_seconds: source.clock.wall_seconds(),
            source,
        }
    }

    pub(super) const fn clock(&self) -> &Clock {
        &self.source.clock
    }

    pub(super) const fn events(&self) -> &Arc<Events> {
        &self.source.events
    }

    pub(super) fn admin_token(&self) -> &str {
        &self.source.token
    }

    pub(super) const fn database(&self) -> &Arc<Database> {
        &self.source.database
    }

    pub(super) fn load(&self) -> Load {
        (self.source.load)()
    }

    /// Prepared statements and their bytes.
    pub(super) fn prepared(&self) -> (usize, usize) {
        self.source.requests.prepared()
    }

    pub(super) fn uptime(&self) -> Duration {
        self.source.clock.monotonic().saturating_sub(self.started)
    }

    pub(super) fn status(&self) -> Status {
        let (database, node) = (self.database(), self.database().node());
        let schema = database.schema();
        let is_users = |keyspace: &str| !system::is_name(keyspace);
        let users: Vec<PartitionFigures> = database
            .partitions()
            .into_iter()
            .filter(|partition| is_users(&partition.keyspace))
            .collect();
        let keyspaces = schema.keyspaces.values().filter(|keyspace| is_users(&keyspace.name));
        let (load, store) = (self.load(), database.store_figures());
        let texts = |addresses: &[SocketAddr]| addresses.iter().map(ToString::to_string).collect();
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            cluster_name: node.cluster_name.clone(),
            data_center: node.data_center.clone(),
            rack: node.rack.clone(),
            host_id: node.host_id.to_string(),
            addresses: texts(&self.source.addresses),
            tls_addresses: texts(&self.source.tls_addresses),
            login_required: self.source.login_required,
            data: self.source.data.clone(),
            durability: self.source.durability.clone(),
            started_seconds: self.started_seconds,
            uptime_seconds: self.uptime().as_secs(),
            keyspaces: keyspaces.clone().count(),
            tables: keyspaces
                .map(|keyspace| keyspace.tables.len() + keyspace.views.len())
                .sum(),
            partitions: users.len(),
            bytes: users.iter().map(|partition| partition.bytes).sum(),
            rows: users.iter().map(|partition| partition.rows).sum(),
            connections: Connections {
                open: load.connections,
                opened: metrics::CONNECTIONS_OPENED.value(),
                refused: metrics::CONNECTIONS_REFUSED.value(),
                in_flight: load.in_flight,
                in_flight_bytes: load.in_flight_bytes,
                received_bytes: metrics::BYTES_RECEIVED.value(),
                sent_bytes: metrics::BYTES_SENT.value(),
            },
            row_cache: RowCache {
                hits: store.row_cache_hits,
                misses: store.row_cache_misses,
                bytes: store.row_cache_bytes,
                bytes_max: store.row_cache_bytes_max,
            },
            commits: Commits {
                batches: metrics::COMMITS.value(),
                groups: Latency::from(&metrics::COMMIT_GROUPS.load()),
            },
            statements: self.statements(),
            throttled: metrics::THROTTLED.value(),
            request_units: database.request_units().as_f64(),
        }
    }

    pub(super) fn statements(&self) -> Statements {
        let statements = self.database().statements();
        let kinds = StatementKind::ALL.map(|kind| {
            let figures = statements.of(kind);
            Kind {
                kind: kind.name().to_owned(),
                errors: figures.errors.load(Ordering::Relaxed),
                latency: Latency::from(&figures.latency.load()),
            }
        });
        let errors = metrics::errors().filter(|(.., count)| *count > 0);
        let (count, bytes) = self.prepared();
        Statements {
            kinds: kinds.into(),
            errors: errors
                .map(|(code, name, count)| ErrorCount {
                    code: format!("0x{code:04X}"),
                    name: name.to_owned(),
                    count,
                })
                .collect(),
            prepared: Prepared {
                count,
                bytes,
                executed: statements.prepared.load(Ordering::Relaxed),
                evicted: metrics::STATEMENTS_EVICTED.value(),
            },
        }
    }

    pub(super) fn tables(&self) -> Tables {
        let schema = self.database().schema();
        let mut sizes: BTreeMap<(String, String), Size> = BTreeMap::new();
        for partition in self.database().partitions() {
            let size = sizes.entry((partition.keyspace, partition.table)).or_insert(Size {
                partitions: 0,
                bytes: 0,
                rows: 0,
                is_exact: true,
            });
            size.partitions += 1;
            size.bytes += partition.bytes;
            size.rows += partition.rows;
            size.is_exact &= partition.is_exact;
        }
        let units: BTreeMap<(String, String), f64> = self
            .database()
            .table_request_units()
            .into_iter()
            .map(|(keyspace, table, units)| ((keyspace, table), units.as_f64()))
            .collect();
        let total = sizes.len();
        let table = |((keyspace, table), size): ((String, String), Size)| {
            let id = schema.table_or_view(&keyspace, &table).map(|table| table.id.as_u128());
            let figures = id.and_then(|id| self.database().statements().known_table(id));
            let latency = |access| of_access(figures.as_deref(), access);
            let units = units
                .get(&(keyspace.clone(), table.clone()))
                .copied()
                .unwrap_or_default();
            Table {
                is_system: system::is_name(&keyspace),
                keyspace,
                table,
                partitions: size.partitions,
                bytes: size.bytes,
                rows: size.rows,
                is_exact: size.is_exact,
                reads: latency(Access::Read),
                scans: latency(Access::Scan),
                writes: latency(Access::Write),
                request_units: units,
            }
        };
        Tables {
            total,
            tables: sizes.into_iter().take(LISTED_MAX).map(table).collect(),
        }
    }

    pub(super) fn partitions(&self) -> Partitions {
        let partitions = self.database().partitions();
        Partitions {
            total: partitions.len(),
            partitions: partitions.into_iter().take(LISTED_MAX).map(partition).collect(),
        }
    }
}

impl Gatherer {
    /// Logical partitions that stand out.
    pub(super) fn keys(&self) -> Keys {
        let hot = self.database().hot_keys().into_iter().map(|key| HotKey {
            keyspace: key.keyspace,
            table: key.table,
            partition_key: key.key,
            token: key.token.to_string(),
            requests: key.requests,
            requests_error: key.requests_error,
            request_units: key.request_units,
        });
        let largest = self.database().largest_partitions().into_iter();
        let largest = largest.take(LISTED_MAX).map(|partition| LargePartition {
            share: partition.share(),
            keyspace: partition.keyspace,
            table: partition.table,
            partition_key: partition.key,
            token: partition.token.to_string(),
            bytes: partition.bytes,
            bytes_max: partition.bytes_max,
            is_watched: partition.is_watched,
        });
        Keys {
            hot: hot.collect(),
            largest: largest.collect(),
        }
    }
}

fn of_access(figures: Option<&TableFigures>, access: Access) -> Latency {
    let figures = figures.map(|figures| figures.of(access).latency.load());
    figures.as_ref().map(Latency::from).unwrap_or_default()
}

fn partition(figures: PartitionFigures) -> Partition {
    Partition {
        id: figures.id,
        keyspace: figures.keyspace,
        table: figures.table,
        lower: figures.lower.to_string(),
        upper: figures.upper.to_string(),
        epoch: figures.epoch,
        store: figures.store,
        replicas_alive: figures.replicas_alive,
        bytes: figures.bytes,
        rows: figures.rows,
        is_exact: figures.is_exact,
        request_units_per_second: figures.per_second.as_f64(),
        provisioned_units_per_second: figures.budget.map(|budget| budget.per_second_hundredths / 100),
        normalized_consumption_percent: figures.budget.map(|budget| budget.normalized_percent),
        request_units: figures.request_units.as_f64(),
    }
}
