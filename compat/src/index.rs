//! What an index saves: ten rows of a million by an indexed column, against the same question by ALLOW FILTERING on a column
//! with the same values and no index.

use crate::raw::request::{Bound, Params};
use crate::raw::{Connection, opcode, request};
use crate::server::{self, Server};
use crate::{Error, Outcome, clock};
use std::time::Duration;

/// Rows that have the value asked for.
const FOUND: i64 = 10;
/// Least processor time of the scan for that of the indexed read.
const RATIO_MIN: f64 = 1000.0;
/// Rows sent before an answer is waited for.
const WINDOW: i64 = 512;
/// Indexed reads to measure: enough for the system's clock ticks.
const READS: u32 = 20_000;
const WARM_READS: u32 = 500;
/// Scans to measure.
const SCANS: u32 = 3;
/// Longest wait for the index to be built.
const BUILD_WAIT_MAX: Duration = Duration::from_secs(300);

/// Fills a table of `rows` rows, builds the index, measures; true when the index saves what it has to.
///
/// # Errors
/// When the server refuses, or an answer is wrong.
pub fn run(rows: i64) -> Outcome<bool> {
    let folder = tempfile::tempdir()?;
    let data = format!("file:{}", folder.path().join("data").display());
    let server = Server::start(&data, folder.path())?;
    let mut connection = server.connect()?;
    connection.must("CREATE KEYSPACE saved WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")?;
    connection.must("CREATE TABLE saved.t (k bigint PRIMARY KEY, v bigint, twin bigint)")?;
    let values = (rows / FOUND).max(1);
    fill(&mut connection, rows, values)?;
    let start = clock::now();
    connection.must("CREATE INDEX ON saved.t (v)")?;
    while !super::crash::all_rows(&mut connection, "SELECT * FROM system_views.sstable_tasks")?.is_empty() {
        if start.elapsed() > BUILD_WAIT_MAX {
            return Err(Error::failed("the index is not built in time"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    println!(
        "index: {rows} rows, built behind them in {:.1} s",
        clock::millis_since(start) / 1000.0
    );
    let indexed = "SELECT k, v, twin FROM saved.t WHERE v = ?";
    let scanned = "SELECT k, v, twin FROM saved.t WHERE twin = ? ALLOW FILTERING";
    let pid = server.pid();
    measure(&mut connection, indexed, values, WARM_READS, pid)?;
    let by_index = measure(&mut connection, indexed, values, READS, pid)?;
    let by_scan = measure(&mut connection, scanned, values, SCANS, pid)?;
    let ratio = by_scan / by_index;
    println!(
        "index: {FOUND} rows of {rows}: {by_index:.1} µs of server CPU by the index, {by_scan:.0} µs by ALLOW FILTERING: \
         {ratio:.0} × (≥ {RATIO_MIN:.0} ×)"
    );
    Ok(ratio >= RATIO_MIN)
}

fn bigint(n: i64) -> Bound {
    Bound::Bytes(n.to_be_bytes().to_vec())
}

fn fill(connection: &mut Connection, rows: i64, values: i64) -> Outcome<()> {
    let (prepared, _) = connection.prepare("INSERT INTO saved.t (k, v, twin) VALUES (?, ?, ?)")?;
    let mut k = 0;
    while k < rows {
        let mut bytes = Vec::new();
        let until = rows.min(k + WINDOW);
        for (stream, k) in (0_i16..).zip(k..until) {
            let params = Params {
                values: vec![bigint(k), bigint(k % values), bigint(k % values)],
                ..Params::default()
            };
            let body = request::execute(connection.version(), &prepared, &params);
            connection.put(&mut bytes, stream, opcode::EXECUTE, &body);
        }
        connection.send(&bytes)?;
        for _ in k..until {
            let answer = connection.receive()?;
            if answer.opcode != opcode::RESULT {
                return Err(Error::failed("an insert was refused"));
            }
        }
        k = until;
    }
    Ok(())
}

/// Asks so many times for random values, one at a time. Processor time of the server for each, µs.
fn measure(connection: &mut Connection, text: &str, values: i64, times: u32, pid: u32) -> Outcome<f64> {
    let (prepared, _) = connection.prepare(text)?;
    let mut random = fastrand::Rng::with_seed(u64::from(times));
    let before = server::cpu_micros(pid)?;
    for _ in 0..times {
        let params = Params {
            values: vec![bigint(random.i64(0..values))],
            page_size: Some(5000),
            skip_metadata: true,
            ..Params::default()
        };
        let body = request::execute(connection.version(), &prepared, &params);
        let answer = connection.ask(opcode::EXECUTE, &body)?;
        if answer.opcode != opcode::RESULT || found(&answer.body) != Some(FOUND) {
            return Err(Error::failed(format!("{text}: not {FOUND} rows")));
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "microseconds of a run of seconds")]
    let micros = server::cpu_micros(pid)?.saturating_sub(before) as f64;
    Ok(micros / f64::from(times))
}

/// How many rows an answer without metadata has: three bigint columns, each behind its length.
fn found(body: &[u8]) -> Option<i64> {
    const ROW_BYTES: usize = 3 * 12;
    let head = body.len() % ROW_BYTES;
    i64::try_from((body.len() - head) / ROW_BYTES).ok()
}
