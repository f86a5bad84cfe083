//! The server as a whole: `/api/status`, the families of Prometheus without rows, and the first lines of `helenus status`.

use super::figure::{Figure, Value};
use super::printed::{Line, Row, counted, duration, size, time};
use super::view::Sources;
use crate::engine::{Figures, StoreFigures};
use crate::throughput::RequestUnits;
use helenus_base::memory::Resident;
use helenus_base::metrics::{self, Distribution};
use helenus_schema::schema::system;

use super::live::Live;

/// Physical partitions and their sizes.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    partitions: usize,
    bytes: u64,
    rows: u64,
}

/// A server at one moment.
pub(super) struct Server {
    live: Live,
    cluster_name: String,
    data_center: String,
    rack: String,
    host_id: String,
    keyspaces: usize,
    tables: usize,
    /// The number of user tables, and of all tables.
    users: Sum,
    all: Sum,
    store: StoreFigures,
    /// Request units charged to existing user tables, and in total.
    users_request_units: RequestUnits,
    request_units: RequestUnits,
}

impl Server {
    pub(super) fn of(sources: Sources<'_>) -> Self {
        let is_users = |keyspace: &str| !system::is_name(keyspace);
        let keyspaces = sources.schema.keyspaces.values();
        let keyspaces = keyspaces.filter(|keyspace| is_users(&keyspace.name));
        let mut users = Sum::default();
        let mut all = Sum::default();
        for partition in sources.of_services(|figures| figures.partitions()) {
            let of_users = is_users(&partition.keyspace).then_some(&mut users);
            for sum in of_users.into_iter().chain([&mut all]) {
                sum.partitions += 1;
                sum.bytes += partition.bytes;
                sum.rows += partition.rows;
            }
        }
        Self {
            live: sources.live.clone(),
            cluster_name: sources.node.cluster_name.clone(),
            data_center: sources.node.data_center.clone(),
            rack: sources.node.rack.clone(),
            host_id: sources.node.host_id.to_string(),
            tables: keyspaces.clone().map(|keyspace| keyspace.all_tables().count()).sum(),
            keyspaces: keyspaces.count(),
            users,
            all,
            store: sources
                .figures
                .map(|figures: Figures<'_>| figures.store_figures())
                .unwrap_or_default(),
            users_request_units: sources
                .figures
                .map(|figures| figures.table_request_units())
                .unwrap_or_default()
                .into_iter()
                .filter(|(keyspace, ..)| is_users(keyspace))
                .fold(RequestUnits::default(), |sum, (.., units)| sum + units),
            request_units: sources
                .figures
                .map(|figures| figures.request_units())
                .unwrap_or_default(),
        }
    }
}

fn groups() -> Distribution {
    metrics::COMMIT_GROUPS.load()
}

/// The operating system's figure of the process; `None` means that it reports none.
fn open_files() -> Option<u64> {
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count() as u64)
}

pub(super) static FIGURES: &[Figure<Server>] = &[
    Figure::new("The program's version.", |_| Value::text(env!("CARGO_PKG_VERSION"))).json("version"),
    Figure::new("The cluster, as clients see it.", |of: &Server| {
        Value::text(&of.cluster_name)
    })
    .json("cluster_name"),
    Figure::new("The data center, as clients see it.", |of: &Server| {
        Value::text(&of.data_center)
    })
    .json("data_center"),
    Figure::new("The rack, as clients see it.", |of: &Server| Value::text(&of.rack)).json("rack"),
    Figure::new("This node's identity, the same over restarts.", |of: &Server| {
        Value::text(&of.host_id)
    })
    .json("host_id"),
    Figure::new("Where CQL is served.", |of: &Server| {
        Value::Texts(of.live.facts.addresses.clone())
    })
    .json("addresses"),
    Figure::new("Where CQL is served over TLS.", |of: &Server| {
        Value::Texts(of.live.facts.tls_addresses.clone())
    })
    .json("tls_addresses"),
    Figure::new("Whether clients must log in.", |of: &Server| {
        Value::Bool(of.live.facts.login_required)
    })
    .json("login_required"),
    Figure::new("Where data is kept.", |of: &Server| Value::text(&of.live.facts.data)).json("data"),
    Figure::new("When a write is acknowledged.", |of: &Server| {
        Value::text(&of.live.facts.durability)
    })
    .json("durability"),
    Figure::new(
        "When the server started, seconds since 1970-01-01 UTC.",
        |of: &Server| Value::Int(of.live.facts.started_seconds),
    )
    .json("started_seconds"),
    Figure::new("Whole seconds since the server started.", |of: &Server| {
        Value::Count(of.live.uptime.as_secs())
    })
    .json("uptime_seconds"),
    Figure::new("Time since the server started.", |of: &Server| {
        Value::Float(of.live.uptime.as_secs_f64())
    })
    .gauge("uptime_seconds"),
    Figure::new("Keyspaces of users.", |of: &Server| Value::size(of.keyspaces)).json("keyspaces"),
    Figure::new("Users' tables and views.", |of: &Server| Value::size(of.tables)).json("tables"),
    Figure::new("Physical partitions of users' tables.", |of: &Server| {
        Value::size(of.users.partitions)
    })
    .json("partitions"),
    Figure::new(
        "Bytes of keys and values in users' tables, before compression.",
        |of: &Server| Value::Count(of.users.bytes),
    )
    .json("bytes"),
    Figure::new(
        "Rows in users' tables as stored, deleted and expired ones until they are cleaned up.",
        |of: &Server| Value::Count(of.users.rows),
    )
    .json("rows"),
    Figure::new("Physical partitions.", |of: &Server| Value::size(of.all.partitions)).gauge("partitions"),
    Figure::new("Bytes of keys and values, before compression.", |of: &Server| {
        Value::Count(of.all.bytes)
    })
    .gauge("data_bytes"),
    Figure::new(
        "Rows as stored, deleted and expired ones until they are cleaned up.",
        |of: &Server| Value::Count(of.all.rows),
    )
    .gauge("data_rows"),
    Figure::new("Connections open now.", |of: &Server| {
        Value::size(of.live.load.connections)
    })
    .json("connections.open")
    .gauge("connections"),
    Figure::of_counter(&metrics::CONNECTIONS_OPENED, |_| {
        Value::Count(metrics::CONNECTIONS_OPENED.value())
    })
    .json("connections.opened"),
    Figure::of_counter(&metrics::CONNECTIONS_REFUSED, |_| {
        Value::Count(metrics::CONNECTIONS_REFUSED.value())
    })
    .json("connections.refused"),
    Figure::new("Requests in work that wait for something.", |of: &Server| {
        Value::size(of.live.load.in_flight)
    })
    .json("connections.in_flight")
    .gauge("requests_in_flight"),
    Figure::new(
        "Bytes of the bodies of requests in work that wait for something.",
        |of: &Server| Value::size(of.live.load.in_flight_bytes),
    )
    .json("connections.in_flight_bytes")
    .gauge("requests_in_flight_bytes"),
    Figure::of_counter(&metrics::BYTES_RECEIVED, |_| {
        Value::Count(metrics::BYTES_RECEIVED.value())
    })
    .json("connections.received_bytes"),
    Figure::of_counter(&metrics::BYTES_SENT, |_| Value::Count(metrics::BYTES_SENT.value()))
        .json("connections.sent_bytes"),
    Figure::new(
        "Memory of answers, buffers and requests of all connections.",
        |of: &Server| Value::size(of.live.load.memory_bytes),
    )
    .gauge("connections_memory_bytes"),
    Figure::new(
        "Most that answers of connections may take; see the setting connections-memory-bytes-max.",
        |of: &Server| Value::size(of.live.load.memory_bytes_max),
    )
    .gauge("connections_memory_bytes_max"),
    Figure::new("Answers that wait for memory now.", |of: &Server| {
        Value::size(of.live.load.memory_waiting)
    })
    .gauge("connections_memory_waiting"),
    Figure::new("Point reads that the row cache answered.", |of: &Server| {
        Value::Count(of.store.row_cache_hits)
    })
    .json("row_cache.hits")
    .counter("row_cache_hits_total"),
    Figure::new("Point reads that went to the engine.", |of: &Server| {
        Value::Count(of.store.row_cache_misses)
    })
    .json("row_cache.misses")
    .counter("row_cache_misses_total"),
    Figure::new(
        "Bytes in the row cache now: single rows, and slices of partitions.",
        |of: &Server| Value::Count(of.store.row_cache_bytes),
    )
    .json("row_cache.bytes")
    .gauge("row_cache_bytes"),
    Figure::new("Bytes that the row cache may take.", |of: &Server| {
        Value::Count(of.store.row_cache_bytes_max)
    })
    .json("row_cache.bytes_max")
    .gauge("row_cache_bytes_max"),
    Figure::of_counter(&metrics::COMMITS, |_| Value::Count(metrics::COMMITS.value())).json("commits.batches"),
    Figure::new("Time to write a group of commits and make it durable.", |_| {
        Value::Times(groups())
    })
    .json("commits.groups")
    .times("commit_group_seconds"),
    Figure::of_counter(&metrics::THROTTLED, |_| Value::Count(metrics::THROTTLED.value())).json("throttled"),
    Figure::new(
        "Request units charged, those of system tables and the schema included.",
        |of: &Server| Value::Float(of.request_units.as_f64()),
    )
    .json("request_units")
    .counter("request_units_total"),
    Figure::new(
        "Request units charged to users' tables, without those that were dropped.",
        |of: &Server| Value::Float(of.users_request_units.as_f64()),
    )
    .json("users_request_units"),
    Figure::new("Memory of the process.", |_| {
        Value::optional(Resident::read(), |resident| Value::Count(resident.all))
    })
    .gauge("resident_bytes"),
    Figure::new("Open files of the process.", |_| {
        Value::optional(open_files(), Value::Count)
    })
    .gauge("open_files"),
];

/// The first lines of `helenus status`, from `/api/status`.
pub(super) const LINES: &[Line] = &[
    Line("", |row| {
        let (plain, tls) = (row.text("addresses"), row.text("tls_addresses"));
        let addresses = match (plain.is_empty(), tls.is_empty()) {
            (_, true) => plain.to_owned(),
            (true, false) => format!("{tls} with TLS"),
            (false, false) => format!("{plain}, with TLS {tls}"),
        };
        let uptime = duration(row.count("uptime_seconds"));
        Some(format!("helenus {} on {addresses}, up {uptime}", row.text("version")))
    }),
    Line("cluster", |row| {
        let (cluster, center) = (row.text("cluster_name"), row.text("data_center"));
        Some(format!(
            "{cluster}, {center}, {}, host id {}",
            row.text("rack"),
            row.text("host_id")
        ))
    }),
    Line("data", |row| {
        let login = if row.is_true("login_required") {
            "required"
        } else {
            "none"
        };
        Some(format!(
            "{}, durability {}, login {login}",
            row.text("data"),
            row.text("durability")
        ))
    }),
    Line("holds", |row| {
        let of = |name, what| counted(row.count(name), what);
        let (tables, keyspaces) = (of("tables", "table"), of("keyspaces", "keyspace"));
        let (partitions, rows) = (of("partitions", "physical partition"), of("rows", "stored row"));
        Some(format!(
            "{tables} in {keyspaces}, {partitions}: {rows}, {}",
            size(row.count("bytes"))
        ))
    }),
    Line("connections", |row| {
        let of = |name: &str| row.text(&format!("connections.{name}"));
        let bytes = |name: &str| size(row.count(&format!("connections.{name}")));
        let requests = counted(row.count("connections.in_flight"), "request");
        let counts = format!(
            "{} open, {} accepted, {} refused",
            of("open"),
            of("opened"),
            of("refused")
        );
        let moved = format!("received {}, sent {}", bytes("received_bytes"), bytes("sent_bytes"));
        Some(format!("{counts}; {requests} in work; {moved}"))
    }),
    Line("charged", |row| {
        let (users, all) = (row.float("users_request_units"), row.float("request_units"));
        Some(format!(
            "{users:.2} request units to users' tables; {:.2} to system tables, the schema and dropped tables",
            (all - users).max(0.0)
        ))
    }),
    Line("prepared", |row| {
        let of = |name: &str| format!("statements.prepared.{name}");
        let kept = counted(row.count(&of("count")), "statement");
        let (executed, evicted) = (row.text(&of("executed")), row.text(&of("evicted")));
        let bytes = size(row.count(&of("bytes")));
        Some(format!(
            "{kept} kept ({bytes}), executed {executed} times, {evicted} evicted"
        ))
    }),
    Line("throttled", |row| {
        let throttled = Some(row.count("throttled")).filter(|count| *count > 0)?;
        Some(format!(
            "{} had to wait for request units, or were refused",
            counted(throttled, "statement")
        ))
    }),
    Line("row cache", |row| {
        let (bytes, bytes_max) = (
            size(row.count("row_cache.bytes")),
            size(row.count("row_cache.bytes_max")),
        );
        let (hits, misses) = (row.text("row_cache.hits"), row.text("row_cache.misses"));
        Some(format!("{bytes} of {bytes_max}, {hits} hits, {misses} misses"))
    }),
    Line("memory", super::memory::line),
    Line("commits", commits),
    Line("bucket", super::bucket::line),
];

fn commits(row: &Row<'_>) -> Option<String> {
    let of = |name: &str| row.count(&format!("commits.groups.{name}"));
    let count = Some(of("count")).filter(|count| *count > 0)?;
    let took = |name| time(of(name));
    let times = format!(
        "a group took {} (p50), {} (p99), {} at most",
        took("p50_micros"),
        took("p99_micros"),
        took("max_micros")
    );
    let batches = row.text("commits.batches");
    Some(format!("{batches} in {}; {times}", counted(count, "group")))
}
