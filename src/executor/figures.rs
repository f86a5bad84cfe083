//! What the database knows of itself, for whoever shows it: the admin port and the tables of `system_views`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Database;
use super::plans::PlannedAt;
use super::throughput::budget_of;
use crate::clock::Clock;
use crate::metrics::turn;
use crate::metrics::{self, Access, AccessFigures, StatementKind, Statements, Subject};
use crate::planner::Plan;
use crate::planner::bound::{BoundBatch, ModificationKind};
use crate::schema::node::{AccessLatency, AccountShown, BatchPartitions, Cache, Live, ViewFigures};
use crate::schema::{StorageId, Table, system};
use crate::throughput::{PartitionRef, RequestUnits};

/// Counts statements, and knows the time.
#[derive(Debug)]
pub(super) struct Watch {
    statements: Arc<Statements>,
    clock: Clock,
    /// PREPARE, on whichever table.
    prepare: Arc<Subject>,
    /// Texts that could not be planned.
    unplanned: Arc<Subject>,
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
    /// Its epoch.
    pub epoch: u64,
    /// The store that holds it.
    pub store: u32,
    /// How many of its replicas are alive.
    pub replicas_alive: u32,
    /// Bytes of keys and values.
    pub bytes: u64,
    /// Rows, those deleted or expired and not yet cleaned up included.
    pub rows: u64,
    /// Whether bytes and rows are exact.
    pub is_exact: bool,
    /// Request units a second, lately; looked at now and then.
    pub per_second: RequestUnits,
    /// What it may spend; `None`: anything.
    pub budget: Option<AccountShown>,
    /// Request units charged to it since the server started.
    pub request_units: RequestUnits,
}

/// What the store did since it was opened.
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
}

impl Watch {
    pub(super) fn new(clock: Clock) -> Self {
        let statements = Arc::new(Statements::default());
        Self {
            prepare: statements.subject(StatementKind::Prepare, Vec::new()),
            unplanned: statements.subject(StatementKind::Unplanned, Vec::new()),
            statements,
            clock,
        }
    }

    /// Time.
    pub(super) const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// When a request begins that begins here.
    pub(super) fn begin(&self) -> Duration {
        turn::begin(|| self.clock.monotonic())
    }

    /// Counts a request that has been answered.
    pub(super) fn note<T, E>(&self, subject: &Arc<Subject>, began: Duration, outcome: &Result<T, E>) {
        if outcome.is_err() {
            subject.failed();
        }
        turn::note(subject, began, || self.clock.monotonic());
    }

    /// Counts a PREPARE.
    pub(super) fn note_prepare<T, E>(&self, began: Duration, outcome: &Result<T, E>) {
        self.note(&self.prepare, began, outcome);
    }

    /// Counts a request whose statement could not be read or planned.
    pub(super) fn note_unplanned<T, E>(&self, began: Duration, outcome: &Result<T, E>) {
        self.note(&self.unplanned, began, outcome);
    }

    /// Where a plan is counted.
    pub(super) fn subject(&self, planned: &PlannedAt) -> Arc<Subject> {
        let plan = &planned.planned.plan;
        let access = match plan {
            Plan::Select(plan) if plan.is_scan() => Access::Scan,
            Plan::Select(_) => Access::Read,
            Plan::Modify(_) | Plan::Batch(_) => Access::Write,
            _ => return self.statements.subject(kind_of(plan), Vec::new()),
        };
        self.statements
            .subject(kind_of(plan), accesses(planned.planned.tables.iter(), access))
    }

    /// Where a batch is counted.
    pub(super) fn batch_subject(&self, batch: &BoundBatch) -> Arc<Subject> {
        let tables = batch.modifications.iter().map(|modification| &modification.table);
        self.statements
            .subject(StatementKind::Batch, accesses(tables, Access::Write))
    }

    /// Counts the partitions that a batch writes.
    pub(super) fn note_partitions(&self, batch: &BoundBatch) {
        use grammar::ast::BatchKind;
        let modifications = batch.modifications.iter();
        let mut partitions: Vec<(u32, &[u8])> = modifications
            .flat_map(|one| {
                one.partition_keys
                    .iter()
                    .map(|key| (one.table.storage_id, key.as_ref()))
            })
            .collect();
        partitions.sort_unstable();
        partitions.dedup();
        let of_kind = match batch.kind {
            BatchKind::Logged => &self.statements.logged_batch_partitions,
            BatchKind::Unlogged => &self.statements.unlogged_batch_partitions,
            BatchKind::Counter => &self.statements.counter_batch_partitions,
        };
        of_kind.add(partitions.len() as u64, 1);
    }

    /// Counts the execution of a prepared statement.
    pub(super) fn note_prepared(&self) {
        self.statements.prepared.fetch_add(1, Ordering::Relaxed);
    }
}

/// Each table once. Tables that the server makes itself are not counted by table, as in Cassandra.
fn accesses<'a>(tables: impl Iterator<Item = &'a Arc<Table>>, access: Access) -> Vec<(u128, Access)> {
    let mut ids: Vec<u128> = tables
        .filter(|table| !system::is_local(&table.keyspace))
        .map(|table| table.id.as_u128())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    ids.into_iter().map(|id| (id, access)).collect()
}

impl Database {
    /// Statements by kind and by table.
    #[must_use]
    pub fn statements(&self) -> &Arc<Statements> {
        &self.watch().statements
    }

    /// What the stores did, together.
    #[must_use]
    pub fn store_figures(&self) -> StoreFigures {
        let mut sum = StoreFigures::default();
        for (_, store) in self.stores().all() {
            let figures = store.figures();
            sum.row_cache_hits += figures.row_cache_hits;
            sum.row_cache_misses += figures.row_cache_misses;
            sum.row_cache_bytes += figures.row_cache_bytes as u64;
            sum.row_cache_bytes_max += self.row_cache_bytes_max() as u64;
        }
        sum
    }

    /// The physical partitions of all tables and views that have stored rows, by keyspace, table and token. What they hold is as good
    /// as it was counted ([`Database::count_partitions`]).
    #[must_use]
    pub fn partitions(&self) -> Vec<PartitionFigures> {
        let snapshot = self.snapshot();
        let mut figures = Vec::new();
        let now = self.watch().clock.monotonic();
        for table in stored_tables(&snapshot.schema) {
            let Ok(partitions) = snapshot.partitions(table) else {
                continue;
            };
            let held = self.held(partitions, table.storage_id);
            for (partition, estimate) in partitions.all().iter().zip(held) {
                figures.push(PartitionFigures {
                    id: partition.id.0,
                    keyspace: table.keyspace.clone(),
                    table: table.name.clone(),
                    lower: partition.lower,
                    upper: partition.upper,
                    epoch: partition.epoch,
                    store: partition.store_id.0,
                    replicas_alive: self.replicas_alive(table, partition),
                    bytes: estimate.bytes,
                    rows: estimate.rows,
                    is_exact: estimate.is_exact,
                    per_second: partition.heat.per_second(),
                    budget: budget_of(partitions, partition.id.0, now),
                    request_units: self.meter().spent().of(PartitionRef {
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
        self.meter().spent().total()
    }

    /// Request units charged to each table and view since the server started, by keyspace and name.
    #[must_use]
    pub fn table_request_units(&self) -> Vec<(String, String, RequestUnits)> {
        let by_table = self.meter().spent().by_table();
        let snapshot = self.snapshot();
        let units = |table: &Arc<Table>| {
            let units = by_table.get(&table.storage_id).copied().unwrap_or_default();
            (table.keyspace.clone(), table.name.clone(), units)
        };
        stored_tables(&snapshot.schema).map(units).collect()
    }

    /// What a table of `system_cosmos` shows.
    pub(super) fn cosmos_rows(&self, view: &str, live: &mut Live) {
        match view {
            "partitions" => live.partitions = self.shown_partitions(),
            "tables" => {
                live.partitions = self.shown_partitions();
                let units = self.table_request_units().into_iter();
                live.table_units = units
                    .filter(|(keyspace, ..)| !system::is_name(keyspace))
                    .map(|(keyspace, table, units)| (keyspace, table, units.as_f64()))
                    .collect();
            }
            "hot_keys" => live.hot_keys = self.hot_keys(),
            "largest_partitions" => live.largest_partitions = self.largest_partitions(),
            "throughput" | "partition_throughput" => live.throughput = self.throughput(),
            "throttles" => live.throttles = self.throttles(),
            "replicas" => live.replicas = self.shown_replicas(&self.snapshot().schema),
            "request_log" => {
                live.clients = self.ask_server().clients;
                live.requests = self.logged_requests();
            }
            _ => {}
        }
    }

    /// What a table of `system_views` needs to know of figures.
    pub(super) fn view_figures(&self, view: &str) -> ViewFigures {
        let mut figures = ViewFigures::default();
        let statements = self.statements();
        let count = |number: &std::sync::atomic::AtomicU64| number.load(Ordering::Relaxed);
        match view {
            "coordinator_read_latency" => figures.latencies = self.latencies(|table| &table.reads),
            "coordinator_scan_latency" => figures.latencies = self.latencies(|table| &table.scans),
            "coordinator_write_latency" => figures.latencies = self.latencies(|table| &table.writes),
            "disk_usage" => figures.disk_usage = self.disk_usage(),
            "caches" => {
                let store = self.store_figures();
                figures.row_cache = Some(Cache {
                    capacity_bytes: store.row_cache_bytes_max,
                    size_bytes: store.row_cache_bytes,
                    hits: store.row_cache_hits,
                    requests: store.row_cache_hits + store.row_cache_misses,
                });
            }
            "cql_metrics" => {
                figures.prepared_executed = count(&statements.prepared);
                figures.regular_executed = statements.executed().saturating_sub(figures.prepared_executed);
                figures.prepared_evicted = metrics::STATEMENTS_EVICTED.value();
            }
            "batch_metrics" => {
                let kinds = [
                    ("partitions_per_counter_batch", &statements.counter_batch_partitions),
                    ("partitions_per_logged_batch", &statements.logged_batch_partitions),
                    ("partitions_per_unlogged_batch", &statements.unlogged_batch_partitions),
                ];
                figures.batches = kinds
                    .map(|(name, partitions)| {
                        let partitions = partitions.load();
                        BatchPartitions {
                            name,
                            p50: partitions.quantile(0.5),
                            p99: partitions.quantile(0.99),
                            p999: partitions.quantile(0.999),
                            max: partitions.max(),
                        }
                    })
                    .to_vec();
            }
            _ => {}
        }
        figures
    }

    fn latencies(&self, of: impl Fn(&metrics::TableFigures) -> &AccessFigures) -> Vec<AccessLatency> {
        let now = self.watch().clock.monotonic();
        let snapshot = self.snapshot();
        let latency = |table: &Arc<Table>| {
            let known = self.statements().known_table(table.id.as_u128());
            let figures = known.as_deref().map(&of);
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
        stored_tables(&snapshot.schema).map(latency).collect()
    }

    fn disk_usage(&self) -> Vec<(String, String, u64)> {
        let snapshot = self.snapshot();
        let usage = |table: &Arc<Table>| {
            let bytes = snapshot.partitions(table).ok()?.bytes(table.storage_id).bytes;
            Some((table.keyspace.clone(), table.name.clone(), bytes))
        };
        stored_tables(&snapshot.schema).filter_map(usage).collect()
    }

    /// Forgets the figures of tables that are gone, once they are as many as those that are there.
    pub(super) fn forget_dropped_tables(&self) {
        let snapshot = self.snapshot();
        let ids: Vec<u128> = stored_tables(&snapshot.schema)
            .map(|table| table.id.as_u128())
            .collect();
        let stored: std::collections::BTreeSet<StorageId> =
            stored_tables(&snapshot.schema).map(|table| table.storage_id).collect();
        self.meter().spent().keep(|id| stored.contains(&id));
        if self.statements().tables_known() > ids.len() {
            let there: std::collections::BTreeSet<u128> = ids.into_iter().collect();
            self.statements().keep(|id| there.contains(&id));
        }
    }
}

/// Which kind of statement a plan is.
pub(super) fn kind_of(plan: &Plan) -> StatementKind {
    match plan {
        Plan::Select(_) => StatementKind::Select,
        Plan::Modify(plan) if plan.is_conditional() => StatementKind::Conditional,
        Plan::Modify(plan) => match plan.kind {
            ModificationKind::Insert => StatementKind::Insert,
            ModificationKind::Update => StatementKind::Update,
            ModificationKind::Delete => StatementKind::Delete,
        },
        Plan::Batch(_) => StatementKind::Batch,
        Plan::Truncate(_) => StatementKind::Truncate,
        Plan::Use(_) => StatementKind::Use,
        Plan::Ddl(_) => StatementKind::Ddl,
        Plan::Describe(_) | Plan::Explain(_) => StatementKind::Describe,
        Plan::Auth(_) => StatementKind::Auth,
    }
}

/// Tables and views whose rows are in stores, by keyspace and name.
pub(super) fn stored_tables(schema: &crate::schema::Schema) -> impl Iterator<Item = &Arc<Table>> {
    let keyspaces = schema
        .keyspaces
        .values()
        .filter(|keyspace| !system::is_local(&keyspace.name));
    keyspaces.flat_map(|keyspace| {
        let views = keyspace.views.values().map(|view| &view.table);
        keyspace.tables.values().chain(views)
    })
}
