//! What the admin port tells as JSON, and `helenus status` reads: plain data.
//!
//! Names are part of the interface: fields are added, never renamed. Times are whole microseconds where the name says so.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::executor::{Probe, StoreProbe};
use crate::metrics::Distribution;

/// `/readyz`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Readiness {
    /// Whether requests are answered.
    pub ready: bool,
    /// Why not; `None` if they are.
    pub why: Option<String>,
    /// How long a durable write took, in the store where it took longest; `None` if it did not work in all.
    pub write_micros: Option<u64>,
    /// How long its read took, likewise.
    pub read_micros: Option<u64>,
    /// Each open store, the main one first; empty when none was asked.
    #[serde(default)]
    pub stores: Vec<StoreReadiness>,
}

/// A store of `/readyz`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreReadiness {
    /// Its number as in `system_cosmos.partitions`; 0 is the main one.
    pub store: u32,
    /// Whether what was written was read back in time.
    pub ready: bool,
    /// How long the write took; `None` if it did not work.
    pub write_micros: Option<u64>,
    /// How long its read took.
    pub read_micros: Option<u64>,
}

impl Readiness {
    /// As the stores answered. What failed within is left to the log: it may name files.
    #[must_use]
    pub fn of(probe: &Probe) -> Self {
        let took = |store: &StoreProbe| store.outcome.as_ref()?.as_ref().ok().copied();
        let store = |probed: &StoreProbe| StoreReadiness {
            store: probed.store,
            ready: took(probed).is_some(),
            write_micros: took(probed).map(|took| micros(took.write)),
            read_micros: took(probed).map(|took| micros(took.read)),
        };
        let faults: Vec<String> = probe.stores.iter().filter_map(fault).collect();
        if probe.stores.is_empty() {
            return Self::not("another probe of the stores took too long");
        }
        let stores: Vec<StoreReadiness> = probe.stores.iter().map(store).collect();
        if !faults.is_empty() {
            return Self {
                stores,
                ..Self::not(&faults.join("; "))
            };
        }
        Self {
            ready: true,
            why: None,
            write_micros: stores.iter().filter_map(|store| store.write_micros).max(),
            read_micros: stores.iter().filter_map(|store| store.read_micros).max(),
            stores,
        }
    }

    /// They are not.
    #[must_use]
    pub fn not(why: &str) -> Self {
        Self {
            ready: false,
            why: Some(why.to_owned()),
            write_micros: None,
            read_micros: None,
            stores: Vec::new(),
        }
    }
}

fn fault(probed: &StoreProbe) -> Option<String> {
    let what = match probed.outcome {
        None => "a write and its read took too long",
        Some(Err(_)) => "a write or its read failed; the server's log says why",
        Some(Ok(_)) => return None,
    };
    Some(match probed.store {
        0 => format!("in the main store {what}"),
        number => format!("in store {number} {what}"),
    })
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// How long things took since the server started. All zero if there were none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// How many.
    pub count: u64,
    /// Half took no longer.
    pub p50_micros: u64,
    /// 99 of 100 took no longer.
    pub p99_micros: u64,
    /// 999 of 1000 took no longer.
    pub p999_micros: u64,
    /// The longest.
    pub max_micros: u64,
    /// All together.
    pub total_micros: u64,
}

impl From<&Distribution> for Latency {
    fn from(times: &Distribution) -> Self {
        Self {
            count: times.count(),
            p50_micros: times.quantile(0.5),
            p99_micros: times.quantile(0.99),
            p999_micros: times.quantile(0.999),
            max_micros: times.max(),
            total_micros: times.sum(),
        }
    }
}

/// Statements of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kind {
    /// select, insert, …
    pub kind: String,
    /// Those that were answered with an error.
    pub errors: u64,
    /// How long they took.
    pub latency: Latency,
}

/// Answers that were one error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorCount {
    /// The protocol's code, as 0x and four digits.
    pub code: String,
    /// Its name.
    pub name: String,
    /// How many.
    pub count: u64,
}

/// `/api/statements`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statements {
    /// By kind; kinds that did not occur are there too.
    pub kinds: Vec<Kind>,
    /// By code, of the whole process; codes that did not occur are left out.
    pub errors: Vec<ErrorCount>,
    /// What is prepared.
    pub prepared: Prepared,
}

/// Prepared statements.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    /// Kept now.
    pub count: usize,
    /// Bytes that they take, roughly.
    pub bytes: usize,
    /// Executions of prepared statements.
    pub executed: u64,
    /// Forgotten to make room, in the whole process.
    pub evicted: u64,
}

/// Connections and what they do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// Open now.
    pub open: usize,
    /// Accepted, in the whole process.
    pub opened: u64,
    /// Refused because there were too many, in the whole process.
    pub refused: u64,
    /// Requests in work that wait for something.
    pub in_flight: usize,
    /// Bytes of their bodies.
    pub in_flight_bytes: usize,
    /// Bytes read from clients, in the whole process.
    pub received_bytes: u64,
    /// Bytes written to clients, in the whole process.
    pub sent_bytes: u64,
}

/// The row cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowCache {
    /// Point reads that it answered.
    pub hits: u64,
    /// Point reads that went to the engine.
    pub misses: u64,
    /// Bytes that it takes.
    pub bytes: u64,
    /// Bytes that it may take.
    pub bytes_max: u64,
}

/// Commits to stores on disk, in the whole process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commits {
    /// Batches of changes.
    pub batches: u64,
    /// Groups of batches that were synced together, of `file:` stores.
    pub groups: Latency,
}

/// `/api/status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Of this program.
    pub version: String,
    /// As clients see it.
    pub cluster_name: String,
    /// As clients see it.
    pub data_center: String,
    /// As clients see it.
    pub rack: String,
    /// This node's identity, the same over restarts.
    pub host_id: String,
    /// Where CQL is served.
    pub addresses: Vec<String>,
    /// Where CQL is served over TLS.
    pub tls_addresses: Vec<String>,
    /// Whether clients must log in.
    pub login_required: bool,
    /// Where data is kept.
    pub data: String,
    /// When a write is acknowledged.
    pub durability: String,
    /// Seconds since 1970-01-01 UTC at which it started.
    pub started_seconds: i64,
    /// Seconds since.
    pub uptime_seconds: u64,
    /// Keyspaces of users.
    pub keyspaces: usize,
    /// Their tables and views.
    pub tables: usize,
    /// The physical partitions of those.
    pub partitions: usize,
    /// Bytes of keys and values in those, before the engine's compression and its log.
    pub bytes: u64,
    /// Rows in those.
    pub rows: u64,
    /// Connections.
    pub connections: Connections,
    /// The row cache.
    pub row_cache: RowCache,
    /// Commits.
    pub commits: Commits,
    /// Statements.
    pub statements: Statements,
    /// Statements that did not get their request units at once, in the whole process.
    #[serde(default)]
    pub throttled: u64,
    /// Request units charged since it started.
    #[serde(default)]
    pub request_units: f64,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub table: String,
    /// Whether it is the server's own.
    pub is_system: bool,
    /// Physical partitions.
    pub partitions: usize,
    /// Bytes of keys and values.
    pub bytes: u64,
    /// Rows.
    pub rows: u64,
    /// Whether bytes and rows are exact.
    pub is_exact: bool,
    /// Reads of partitions by key.
    pub reads: Latency,
    /// Reads of a range of the ring.
    pub scans: Latency,
    /// Writes.
    pub writes: Latency,
    /// Request units charged to it since the server started.
    #[serde(default)]
    pub request_units: f64,
}

/// `/api/tables`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tables {
    /// How many there are.
    pub total: usize,
    /// The first of them, by keyspace and name.
    pub tables: Vec<Table>,
}

/// A physical partition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Partition {
    /// Its number.
    pub id: u64,
    /// Its table's keyspace.
    pub keyspace: String,
    /// Its table.
    pub table: String,
    /// Lowest token, inclusive. As text, since many readers of JSON have no integers of 64 bits.
    pub lower: String,
    /// Highest token, inclusive.
    pub upper: String,
    /// Rises with each change of its range or its store.
    pub epoch: u64,
    /// The store that holds it.
    pub store: u32,
    /// How many of its replicas are alive.
    pub replicas_alive: u32,
    /// Bytes of keys and values.
    pub bytes: u64,
    /// Rows.
    pub rows: u64,
    /// Whether bytes and rows are exact.
    pub is_exact: bool,
    /// Request units a second, lately.
    pub request_units_per_second: f64,
    /// Request units that it may spend in a second; `None`: any number.
    #[serde(default)]
    pub provisioned_units_per_second: Option<u64>,
    /// The highest use of them in a second of the last minute, 0 to 100; `None`: it may spend any number.
    #[serde(default)]
    pub normalized_consumption_percent: Option<u8>,
    /// Request units charged to it since the server started.
    #[serde(default)]
    pub request_units: f64,
}

/// A logical partition that is asked often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HotKey {
    /// Its table's keyspace.
    pub keyspace: String,
    /// Its table.
    pub table: String,
    /// Its key, as CQL.
    pub partition_key: String,
    /// Its token, as text.
    pub token: String,
    /// Requests of the last one to two minutes: at most so many.
    pub requests: u64,
    /// It may be fewer by so many.
    pub requests_error: u64,
    /// What those that were counted were charged.
    pub request_units: f64,
}

/// A logical partition that is large.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LargePartition {
    /// Its table's keyspace.
    pub keyspace: String,
    /// Its table.
    pub table: String,
    /// Its key, as CQL.
    pub partition_key: String,
    /// Its token, as text.
    pub token: String,
    /// Bytes of keys, values and index entries; at most so many.
    pub bytes: u64,
    /// Bytes that it may come to; `None`: any.
    pub bytes_max: Option<u64>,
    /// Its part of those; 1 is full.
    pub share: Option<f64>,
    /// Whether its size is kept with each write; otherwise it is what was counted last.
    pub is_watched: bool,
}

/// `/api/keys`: logical partitions that stand out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Keys {
    /// Those asked most, the most asked first.
    pub hot: Vec<HotKey>,
    /// The largest that are known, the largest first.
    pub largest: Vec<LargePartition>,
}

/// `/api/partitions`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Partitions {
    /// How many there are.
    pub total: usize,
    /// The first of them, by keyspace, table and token.
    pub partitions: Vec<Partition>,
}

/// Everything that `helenus status` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Everything {
    /// The server.
    pub status: Status,
    /// Its tables.
    pub tables: Tables,
    /// Its physical partitions.
    pub partitions: Partitions,
    /// Logical partitions that stand out.
    #[serde(default)]
    pub keys: Keys,
}
