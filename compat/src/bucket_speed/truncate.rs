//! What clients wait for while a large table is truncated, whose rows are removed from the stores that the clients write to.

use std::fmt::Write as _;
use std::time::Duration;

use super::{Table, float};
use crate::server::Server;
use crate::{Error, Outcome, clock};

/// Clients at once, each with a row of its own.
const CLIENTS: usize = 8;

/// Partitions of the table that is truncated.
const PARTITIONS: usize = 250;

/// Rows of each of them.
const ROWS: usize = 400;

/// Longest that an insert may take, in milliseconds.
const INSERT_MS_MAX: f64 = 500.0;

/// Measures the slowest insert beside a TRUNCATE.
pub(super) fn measure(server: &Server, length: Duration, table: &mut Table) -> Outcome<()> {
    let mut connection = server.connect()?;
    connection.must("CREATE TABLE bench.gone (k int, c int, v int, PRIMARY KEY (k, c))")?;
    connection.must("CREATE TABLE bench.kept (k int PRIMARY KEY, v int)")?;
    for k in 0..PARTITIONS {
        let mut batch = "BEGIN UNLOGGED BATCH ".to_owned();
        for c in 0..ROWS {
            let _ = write!(batch, "INSERT INTO bench.gone (k, c, v) VALUES ({k}, {c}, 1);");
        }
        connection.must(&format!("{batch} APPLY BATCH"))?;
    }
    let clients: Vec<_> = (0..CLIENTS)
        .map(|k| {
            let mut connection = server.connect()?;
            Ok(std::thread::spawn(move || -> Outcome<Vec<f64>> {
                let (mut times, began) = (Vec::new(), clock::now());
                while began.elapsed() < length {
                    let asked = clock::now();
                    connection.must(&format!("INSERT INTO bench.kept (k, v) VALUES ({k}, {})", times.len()))?;
                    times.push(clock::millis_since(asked));
                }
                Ok(times)
            }))
        })
        .collect::<Outcome<_>>()?;
    std::thread::sleep(length / 10);
    connection.must("TRUNCATE bench.gone")?;
    let mut times = Vec::new();
    for client in clients {
        times.extend(client.join().map_err(|_| Error::failed("a client panicked"))??);
    }
    times.sort_unstable_by(f64::total_cmp);
    let slowest = times.last().copied().unwrap_or(f64::INFINITY);
    let half = times.get(times.len() / 2).copied().unwrap_or(f64::INFINITY);
    println!(
        "{} inserts of {CLIENTS} clients while {:.0} rows are removed: p50 {half:.1} ms, the slowest {slowest:.1} ms",
        times.len(),
        float((PARTITIONS * ROWS) as u64)
    );
    table.row("inserts beside a TRUNCATE: the slowest", slowest, INSERT_MS_MAX, "ms");
    connection.must("DROP TABLE bench.gone")?;
    connection.must("DROP TABLE bench.kept")?;
    Ok(())
}
