//! Clients that do not read: many connections ask for big pages, many at once, and take none of the answers.
//!
//! ```text
//! fill ─► what the server holds ─► deaf: N connections × 16 pages of 1 MiB, unread ─► what it holds now; others read one row
//!       └─ others alone ◄── what it holds again ◄── the deaf go
//! ```
//! Held: memory grows by the server's own setting and a fifth at most; it is back soon after the deaf have gone; another client's read
//! of one row is quick all the while, on an old connection and on new ones.
//!
//! A load whose answers, a page each, would fit into the limit proves nothing, and fails.

use crate::launch::Launch;
use crate::raw::request::{self, Params};
use crate::raw::{Connection, opcode};
use crate::server::{Server, rss_kib};
use crate::{Error, Outcome, clock};
use clap::Args;
use std::time::Duration;

/// What a run does.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Connections that do not read.
    #[arg(long, default_value_t = 2000)]
    pub connections: usize,
    /// Requests in flight on each.
    #[arg(long, default_value_t = 16)]
    pub requests: i16,
    /// Argument of the server; may be repeated.
    #[arg(long = "argument", allow_hyphen_values = true)]
    pub arguments: Vec<String>,
    /// Memory that unread answers may take, in MiB.
    #[arg(long, default_value_t = 256)]
    pub budget_mebibytes: u64,
    /// Longest read of one row by another at the 99th percentile, milliseconds.
    #[arg(long, default_value_t = 100.0)]
    pub read_millis_max: f64,
}

/// Rows and bytes of a value: 40 MB in all, as many pages of 1 MiB.
const ROWS: i32 = 20_000;
const VALUE_BYTES: usize = 2_000;
/// How long others read beside the deaf, and the pause between two reads.
const READING: Duration = Duration::from_secs(10);
const BETWEEN_READS: Duration = Duration::from_millis(5);
/// Every so many reads are on a new connection.
const NEW_EVERY: usize = 10;
/// Until when memory must be back after the deaf have gone.
const BACK_WITHIN: Duration = Duration::from_secs(10);
/// What memory may differ by that others use meanwhile, in KiB.
const AROUND_KIB: u64 = 64 << 10;

/// Runs; true when all three figures hold.
///
/// # Errors
/// The server refuses what it has to accept.
pub fn run(options: &Options) -> Outcome<bool> {
    let folder = tempfile::tempdir()?;
    let arguments: Vec<&str> = options.arguments.iter().map(String::as_str).collect();
    let server = Launch::new("file", folder.path())
        .with(&arguments)
        .start(folder.path())?;
    fill(&server)?;
    let alone = reads(&server, Duration::from_secs(1))?;
    let before = rss_kib(server.pid())?;
    let limit = before + options.budget_mebibytes * 1024 * 6 / 5 + AROUND_KIB;

    let deaf = ask(&server, options.connections, options.requests, "SELECT * FROM deaf.t")?;
    // The limit proves something where the answers asked for, at least a page each, are more than it lets through.
    let asked_kib = u64::try_from(deaf.len()).unwrap_or(0) * u64::from(options.requests.unsigned_abs()) * 1024;
    let beside = reads(&server, READING)?;
    let (peak, connected) = (beside.rss_kib_max, deaf.len());
    drop(deaf);
    let gone = clock::now();
    let mut after = rss_kib(server.pid())?;
    while after > before + AROUND_KIB && gone.elapsed() < BACK_WITHIN {
        std::thread::sleep(Duration::from_millis(200));
        after = rss_kib(server.pid())?;
    }
    let back_seconds = gone.elapsed().as_secs_f64();
    println!(
        "deaf: {connected} connections × {} pages unread ({} MiB asked for): server {} MiB before, {} at most (≤ {}), {} after {back_seconds:.1} s; \
         a row of another: {:.1} ms at p99 of {} (≤ {}; alone {:.1}), {:.0} at most, {} refused",
        options.requests,
        asked_kib / 1024,
        before / 1024,
        peak / 1024,
        limit / 1024,
        after / 1024,
        beside.percentile(99),
        beside.millis.len(),
        options.read_millis_max,
        alone.percentile(99),
        beside.percentile(100),
        beside.refused,
    );
    if before + asked_kib <= limit || beside.millis.is_empty() {
        println!("deaf: nothing proved: what is asked for fits into the limit");
        return Ok(false);
    }
    let told = [
        (peak <= limit, "memory grows beyond the setting"),
        (after <= before + AROUND_KIB, "memory does not come back"),
        (beside.percentile(99) <= options.read_millis_max, "others wait"),
        (beside.refused == 0, "others are refused"),
        (server.panics() == 0, "a panic"),
    ];
    for (_, fault) in told.iter().filter(|(held, _)| !held) {
        println!("deaf: {fault}");
    }
    Ok(told.iter().all(|(held, _)| *held))
}

fn fill(server: &Server) -> Outcome<()> {
    let mut connection = server.connect()?;
    connection.must("CREATE KEYSPACE deaf WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")?;
    connection.must("CREATE TABLE deaf.t (k int PRIMARY KEY, v text)")?;
    let value = "v".repeat(VALUE_BYTES);
    for some in (0..ROWS).collect::<Vec<_>>().chunks(20) {
        let rows = some
            .iter()
            .map(|k| format!("INSERT INTO deaf.t (k, v) VALUES ({k}, '{value}'); "));
        connection.must(&format!(
            "BEGIN UNLOGGED BATCH {} APPLY BATCH",
            rows.collect::<String>()
        ))?;
    }
    Ok(())
}

/// Opens connections that ask and never read.
///
/// # Errors
/// An answer that cannot be read.
pub(crate) fn ask(server: &Server, connections: usize, requests: i16, text: &str) -> Outcome<Vec<Connection>> {
    let params = Params {
        page_size: Some(100_000),
        ..Params::default()
    };
    let body = request::query(4, text, &params);
    let mut deaf = Vec::new();
    for _ in 0..connections {
        let mut connection = match server.connect() {
            Ok(connection) => connection,
            // It may take no more while it is this busy: those that there are stay.
            Err(Error::Io { .. } | Error::Refused { .. }) => break,
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        for stream in 0..requests {
            connection.put(&mut bytes, stream, opcode::QUERY, &body);
        }
        if connection.send(&bytes).is_ok() {
            deaf.push(connection);
        }
    }
    Ok(deaf)
}

/// How long reads of one row took.
#[derive(Debug, Default)]
struct Reads {
    /// Ascending.
    millis: Vec<f64>,
    refused: u32,
    rss_kib_max: u64,
}

impl Reads {
    fn percentile(&self, percent: usize) -> f64 {
        let place = (self.millis.len() * percent / 100).min(self.millis.len().saturating_sub(1));
        self.millis.get(place).copied().unwrap_or(f64::INFINITY)
    }
}

fn reads(server: &Server, during: Duration) -> Outcome<Reads> {
    let mut reads = Reads::default();
    let mut connection = server.connect()?;
    let begun = clock::now();
    for number in 0_usize.. {
        if begun.elapsed() > during {
            break;
        }
        let read = clock::now();
        if number % NEW_EVERY == NEW_EVERY - 1 {
            connection = server.connect()?;
        }
        match connection.must("SELECT k FROM deaf.t WHERE k = 7") {
            Ok(_) => reads.millis.push(clock::millis_since(read)),
            Err(Error::Refused { .. }) => reads.refused += 1,
            Err(error) => return Err(error),
        }
        reads.rss_kib_max = reads.rss_kib_max.max(rss_kib(server.pid())?);
        std::thread::sleep(BETWEEN_READS);
    }
    reads.millis.sort_by(f64::total_cmp);
    Ok(reads)
}
