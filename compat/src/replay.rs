//! How long a server takes to start from a long log: it is ended by `kill -9` when its log has grown to a size, and timed to its first
//! answer; then all rows are counted.
//!
//! An engine may write its log out sooner than that, whatever is written: then the server is ended when the log has at least half of its
//! greatest length so far, which is told. A run with less than `LOG_BYTES_MIN` of log proves nothing.

use crate::launch::{self, Launch};
use crate::raw::request::{self, Bound, Params};
use crate::raw::{Connection, opcode};
use crate::{Error, Outcome, clock};
use clap::Args;
use std::path::Path;

/// What a run does.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Size of the log at the start, in MiB.
    #[arg(long, default_value_t = 1024)]
    pub mebibytes: u64,
    /// Longest time to the first answer, seconds.
    #[arg(long, default_value_t = 10.0)]
    pub seconds_max: f64,
    /// Engine, as a data URL begins.
    #[arg(long, default_value = "file", value_parser = launch::engine)]
    pub engine: String,
}

/// Tables that the rows are spread over, so that none of them fills a memtable early.
const TABLES: usize = 40;
/// Bytes of a row, and rows in flight.
const ROW_BYTES: usize = 16 << 10;
const IN_FLIGHT: i32 = 16;
/// Times the size that is written to see how long the log gets, and to meet it as long again.
const WRITTEN_MAX: u64 = 2;
const WAITED_MAX: u64 = 4;
/// Shortest log whose start says anything.
const LOG_BYTES_MIN: u64 = 16 << 20;

/// Runs; true when the start was quick and no row is missing.
///
/// # Errors
/// The server refuses what it has to accept, or does not start again.
#[expect(clippy::too_many_lines, reason = "one story: write, end, start again, measure")]
pub fn run(options: &Options) -> Outcome<bool> {
    let folder = tempfile::tempdir()?;
    let launch = Launch::new(&options.engine, folder.path());
    let server = launch.start(folder.path())?;
    let mut connection = server.connect()?;
    connection
        .must("CREATE KEYSPACE replay WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")?;
    let mut inserts = Vec::new();
    for table in 0..TABLES {
        connection.must(&format!("CREATE TABLE replay.t{table} (k int PRIMARY KEY, v blob)"))?;
        let text = format!("INSERT INTO replay.t{table} (k, v) VALUES (?, ?)");
        inserts.push(connection.prepare(&text)?.0);
    }
    let (asked, data) = (options.mebibytes << 20, folder.path().join("data"));
    let mut written = 0_u64;
    let (mut rows, mut longest, mut log) = (0, 0, 0);
    // As long as was asked for. Where it never gets there, half of what it got to: the greatest length may not come again.
    let is_long =
        |log: u64, longest: u64, written: u64| log >= asked || (written >= asked * WRITTEN_MAX && log >= longest / 2);
    while written < asked * WAITED_MAX && !is_long(log, longest, written) {
        for insert in &inserts {
            let mut bytes = Vec::new();
            for (stream, k) in (0_i16..).zip(rows..rows + IN_FLIGHT) {
                let params = Params {
                    values: vec![Bound::Bytes(k.to_be_bytes().to_vec()), value(k)],
                    ..Params::default()
                };
                connection.put(
                    &mut bytes,
                    stream,
                    opcode::EXECUTE,
                    &request::execute(4, insert, &params),
                );
            }
            connection.send(&bytes)?;
            for _ in 0..IN_FLIGHT {
                let answer = connection.receive()?;
                if answer.opcode != opcode::RESULT {
                    return Err(Error::failed(format!("an insert was refused: {answer:?}")));
                }
            }
            written += (ROW_BYTES as u64) * u64::from(IN_FLIGHT.unsigned_abs());
        }
        rows += IN_FLIGHT;
        log = log_bytes(&data)?;
        longest = longest.max(log);
    }
    drop(connection);
    server.kill()?;
    let log = log_bytes(&data)?;

    let begun = clock::now();
    let server = launch.start(folder.path())?;
    let mut connection = server.connect()?;
    connection.must("SELECT k FROM replay.t0 WHERE k = 0")?;
    let seconds = begun.elapsed().as_secs_f64();
    let mut missing = 0;
    for table in 0..TABLES {
        missing += i64::from(rows) - counted(&mut connection, table)?;
    }
    println!(
        "log-replay: {}: {} MiB written, the log had {} MiB at the start, {} at most; {seconds:.1} s to the first answer (≤ {}); {} rows, {missing} missing",
        options.engine,
        written >> 20,
        log >> 20,
        longest >> 20,
        options.seconds_max,
        i64::from(rows) * TABLES as i64,
    );
    if log < LOG_BYTES_MIN.min(asked) {
        println!(
            "log-replay: {}: nothing proved: the engine keeps no log of this size",
            options.engine
        );
        return Ok(false);
    }
    Ok(missing == 0 && seconds <= options.seconds_max)
}

/// Bytes that no engine makes fewer.
fn value(k: i32) -> Bound {
    let mut bytes = vec![0; ROW_BYTES];
    fastrand::Rng::with_seed(k.unsigned_abs().into()).fill(&mut bytes);
    Bound::Bytes(bytes)
}

fn counted(connection: &mut Connection, table: usize) -> Outcome<i64> {
    let told = connection.must(&format!("SELECT count(*) FROM replay.t{table}"))?;
    let cell = told
        .pointer("/rows/0/0")
        .and_then(|cell| cell.as_str())
        .and_then(crate::raw::unhex);
    let count = cell.and_then(|bytes| bytes.try_into().ok()).map(i64::from_be_bytes);
    count.ok_or(Error::Malformed("a count"))
}

/// What the log takes on disk: `file`'s journals, SlateDB's objects in a folder `wal`.
fn log_bytes(folder: &Path) -> Outcome<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let is_log = path.extension().is_some_and(|extension| extension == "jnl")
            || path
                .parent()
                .and_then(Path::file_name)
                .is_some_and(|name| name == "wal");
        match std::fs::metadata(&path) {
            Ok(found) if found.is_dir() => bytes += log_bytes(&path)?,
            // What is allocated: journals are made longer than what is in them.
            Ok(found) if is_log => bytes += found.blocks() * 512,
            // The engine may have removed it by now.
            Ok(_) | Err(_) => {}
        }
    }
    Ok(bytes)
}
