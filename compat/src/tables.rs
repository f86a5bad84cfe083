//! Many tables, one after another, each with a row: none may cost more than the first ones did.

use crate::server::Server;
use crate::{Outcome, clock};

/// Longest mean time of a table with its row, in milliseconds.
const TABLE_MS_MAX: f64 = 10.0;
/// The last tenth may take this many times as long as the first.
const SLOWDOWN_MAX: f64 = 2.0;

/// Creates `count` tables and prints times; true when they hold.
///
/// # Errors
/// When the server refuses.
pub fn run(count: usize) -> Outcome<bool> {
    let folder = tempfile::tempdir()?;
    let server = Server::start(&format!("file:{}", folder.path().join("data").display()), folder.path())?;
    let mut connection = server.connect()?;
    connection.must("CREATE KEYSPACE many WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")?;
    let mut times = Vec::with_capacity(count);
    for i in 0..count {
        let start = clock::now();
        connection.must(&format!("CREATE TABLE many.t{i} (k int PRIMARY KEY, v text)"))?;
        connection.must(&format!("INSERT INTO many.t{i} (k, v) VALUES (1, 'a')"))?;
        times.push(clock::millis_since(start));
    }
    let tenth = (count / 10).max(1);
    // Medians: other work on the machine makes a few very slow.
    let first = median(times.iter().take(tenth));
    let last = median(times.iter().rev().take(tenth));
    let all = mean(times.iter());
    println!(
        "tables: {count} with a row each, {all:.2} ms each (≤ {TABLE_MS_MAX}); \
         first tenth {first:.2} ms, last tenth {last:.2} ms"
    );
    Ok(all <= TABLE_MS_MAX && last <= first.max(1.0) * SLOWDOWN_MAX)
}

fn mean<'a>(times: impl Iterator<Item = &'a f64>) -> f64 {
    let (sum, count) = times.fold((0.0, 0.0), |(sum, count), t| (sum + t, count + 1.0));
    if count == 0.0 { 0.0 } else { sum / count }
}

fn median<'a>(times: impl Iterator<Item = &'a f64>) -> f64 {
    let mut sorted: Vec<f64> = times.copied().collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}
