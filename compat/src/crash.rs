//! Kills a server with SIGKILL at random moments under load, starts it again and checks what it promised.
//!
//! Each cycle: start, check what earlier cycles left, write with several clients, kill, note what was acknowledged and
//! what was in doubt (sent, not answered). Checked after every start:
//!
//! - **rows**: every acknowledged insert is there with its value;
//! - **register**: a chain of conditional updates `v → v + 1`; no value was granted twice, the value found is at least
//!   the last acknowledged one and at most that plus the updates in doubt, and a value acknowledged is its writer's;
//! - **counters**: not below what was acknowledged, not above that plus what was in doubt;
//! - **batches**: logged batches over two tables are there as a whole or not at all, acknowledged ones as a whole.

mod check;
pub mod indexed;
mod writers;

use crate::raw::Connection;
use crate::server::Server;
use crate::{Outcome, clock};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Clients that insert rows.
const INSERTERS: i32 = 3;
/// Clients that race on the register.
const RACERS: i32 = 3;
/// Clients that count.
const COUNTERS: i32 = 2;
/// Clients that send batches.
const BATCHERS: i32 = 1;

/// What clients were told so far, over all cycles.
#[derive(Debug, Default)]
struct Promises {
    /// For each cycle and inserter: how many rows, from 0, were acknowledged.
    rows: Vec<(i32, i32, i32)>,
    /// Values of the register granted, each with its writer's mark.
    granted: Vec<(i32, String)>,
    /// Conditional updates in doubt.
    register_doubts: i32,
    /// For each counter: acknowledged and doubtful increments.
    counted: Vec<(i64, i64)>,
    /// For each cycle and batcher: batches acknowledged, from 0, and sent.
    batches: Vec<(i32, i32, i32, i32)>,
}

const SCHEMA: [&str; 6] = [
    "CREATE KEYSPACE crash WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE crash.rows (cycle int, writer int, seq int, v blob, PRIMARY KEY ((cycle, writer), seq))",
    "CREATE TABLE crash.register (k int PRIMARY KEY, v int, mark text)",
    "CREATE TABLE crash.counters (k int PRIMARY KEY, n counter)",
    "CREATE TABLE crash.one (cycle int, writer int, seq int, PRIMARY KEY ((cycle, writer), seq))",
    "CREATE TABLE crash.two (seq int, writer int, cycle int, PRIMARY KEY ((cycle, writer), seq))",
];

/// Runs `cycles` cycles with this seed; true when nothing promised was lost.
///
/// # Errors
/// When the server does not start again, or refuses what it has to accept.
pub fn run(cycles: i32, seed: u64) -> Outcome<bool> {
    let folder = tempfile::tempdir()?;
    let data = format!("file:{}", folder.path().join("data").display());
    let mut random = fastrand::Rng::with_seed(seed);
    let mut promises = Promises {
        counted: (0..COUNTERS).map(|_| (0, 0)).collect(),
        ..Promises::default()
    };
    let mut lost = Vec::new();
    let mut slowest_start: f64 = 0.0;
    for cycle in 0..cycles {
        let start = clock::now();
        let server = Server::start(&data, folder.path())?;
        slowest_start = slowest_start.max(clock::millis_since(start));
        let mut connection = server.connect()?;
        if cycle == 0 {
            for statement in SCHEMA {
                connection.must(statement)?;
            }
            connection.must("INSERT INTO crash.register (k, v, mark) VALUES (0, 0, 'start')")?;
        } else {
            check::all(&mut connection, &promises, cycle - 1, &mut lost)?;
            if !lost.is_empty() {
                report(&promises, cycle, slowest_start, &lost);
                return Ok(false);
            }
        }
        let stop = Arc::new(AtomicBool::new(false));
        let threads = writers::start(server.address(), cycle, &stop);
        std::thread::sleep(Duration::from_millis(random.u64(150..1200)));
        server.kill()?;
        stop.store(true, Ordering::Relaxed);
        writers::join(threads, &mut promises)?;
    }
    let server = Server::start(&data, folder.path())?;
    let mut connection = server.connect()?;
    for cycle in 0..cycles {
        check::all(&mut connection, &promises, cycle, &mut lost)?;
    }
    report(&promises, cycles, slowest_start, &lost);
    Ok(lost.is_empty())
}

fn report(promises: &Promises, cycles: i32, slowest_start: f64, lost: &[String]) {
    for line in lost.iter().take(50) {
        println!("crash: {line}");
    }
    let rows: i64 = promises.rows.iter().map(|(_, _, n)| i64::from(*n)).sum();
    let counted: i64 = promises.counted.iter().map(|(sure, _)| sure).sum();
    let batches: i64 = promises.batches.iter().map(|(_, _, n, _)| i64::from(*n)).sum();
    println!(
        "crash: {cycles} cycles, {rows} rows, {} conditional updates, {counted} increments and {batches} batches \
         acknowledged; {} lost or inconsistent; slowest start {slowest_start:.0} ms",
        promises.granted.len(),
        lost.len()
    );
}

/// The bytes a row has to hold: long now and then, so that records of the log differ in size.
fn row_value(cycle: i32, writer: i32, seq: i32) -> Vec<u8> {
    let mix = cycle.wrapping_mul(7919) ^ writer.wrapping_mul(104_729) ^ seq.wrapping_mul(31);
    let len = if mix % 97 == 0 {
        5000
    } else {
        20 + mix.unsigned_abs() % 200
    };
    (0..len)
        .map(|i| mix.wrapping_add(i.cast_signed()).to_le_bytes()[0])
        .collect()
}

/// A 4-byte integer of an answer's cell.
fn int(cell: Option<&serde_json::Value>) -> Option<i32> {
    let bytes = crate::raw::unhex(cell?.as_str()?)?;
    Some(i32::from_be_bytes(bytes.try_into().ok()?))
}

/// All rows of a statement, through pages.
pub(crate) fn all_rows(connection: &mut Connection, text: &str) -> Outcome<Vec<serde_json::Value>> {
    let mut params = crate::raw::Params {
        page_size: Some(5000),
        ..Default::default()
    };
    let mut rows = Vec::new();
    loop {
        let told = crate::raw::connection::succeeded(text, connection.query(text, &params)?)?;
        rows.extend(told.get("rows").and_then(|r| r.as_array()).cloned().unwrap_or_default());
        match told.get("paging").and_then(|p| p.as_str()).and_then(crate::raw::unhex) {
            Some(state) => params.paging_state = Some(state),
            None => return Ok(rows),
        }
    }
}
