//! Logged batches of two rows whose partitions are in different stores.

use std::time::Duration;

use super::{Table, float};
use crate::crash::all_rows;
use crate::raw::{Connection, unhex};
use crate::server::Server;
use crate::{Error, Outcome, clock};

/// Clients at once in the second phase, each with rows of its own.
const CLIENTS: usize = 16;

/// Rows from which pairs are made.
const ROWS: i32 = 200;

/// Keys of two partitions.
type Pair = [i64; 2];

/// Measures batches of one client, and of several, on a server with these stores.
pub(super) fn measure(server: &Server, stores: &str, length: Duration, table: &mut Table) -> Outcome<()> {
    let pairs = prepare(&mut server.connect()?)?;
    for clients in [1, CLIENTS] {
        let threads: Vec<_> = pairs
            .iter()
            .take(clients)
            .map(|pair| {
                let (mut connection, pair) = (server.connect()?, *pair);
                Ok(std::thread::spawn(move || write(&mut connection, pair, length)))
            })
            .collect::<Outcome<_>>()?;
        let mut times = Vec::new();
        for thread in threads {
            times.extend(thread.join().map_err(|_| Error::failed("a client panicked"))??);
        }
        times.sort_unstable();
        let at = |share: usize| float(times.get(times.len() * share / 100).copied().unwrap_or(0)) / 1000.0;
        println!(
            "logged batches of {clients} clients: {} in {} s, p50 {:.1} ms, p99 {:.1} ms",
            times.len(),
            length.as_secs(),
            at(50),
            at(99)
        );
        let what = format!("logged batches over two stores of {stores}, {clients} clients: p50");
        table.row(&what, at(50), 60.0, "ms");
    }
    // What follows is measured of one store.
    server.connect()?.must("DROP TABLE bench.pair")?;
    Ok(())
}

/// Makes a table whose second partition has a store of its own, and returns keys of both.
fn prepare(connection: &mut Connection) -> Outcome<Vec<Pair>> {
    connection.must("CREATE TABLE bench.pair (k bigint PRIMARY KEY, v bigint) WITH helenus_partitions = 2")?;
    let text =
        "SELECT id, lower, store FROM system_cosmos.partitions WHERE keyspace_name = 'bench' AND table_name = 'pair'";
    let ids = numbers(&all_rows(connection, text)?, 2)?;
    let upper = ids
        .iter()
        .max_by_key(|row| row.get(1).copied())
        .ok_or_else(|| Error::failed("the table has no partitions"))?;
    let (id, middle) = (upper.first().copied().unwrap_or(0), upper.get(1).copied().unwrap_or(0));
    connection.must(&format!("ALTER TABLE bench.pair WITH helenus_lift = {id}"))?;
    let stores = all_rows(connection, text)?;
    if stores.len() != 2 || stores.first().and_then(|row| row.get(2)) == stores.get(1).and_then(|row| row.get(2)) {
        return Err(Error::failed("the partitions are not in two stores"));
    }
    for k in 0..ROWS {
        connection.must(&format!("INSERT INTO bench.pair (k, v) VALUES ({k}, 0)"))?;
    }
    let rows = numbers(&all_rows(connection, "SELECT k, token(k) FROM bench.pair")?, 2)?;
    let keys = |is_upper: bool| {
        let of = rows
            .iter()
            .filter(move |row| row.get(1).is_some_and(|token| (*token >= middle) == is_upper));
        of.filter_map(|row| row.first().copied())
    };
    let pairs: Vec<Pair> = keys(false)
        .zip(keys(true))
        .map(|(lower, upper)| [lower, upper])
        .collect();
    if pairs.len() < CLIENTS {
        return Err(Error::failed("too few rows lie on one side"));
    }
    Ok(pairs)
}

/// The first cells of rows, which are of eight bytes.
fn numbers(rows: &[serde_json::Value], cells: usize) -> Outcome<Vec<Vec<i64>>> {
    let number = |cell: &serde_json::Value| Some(i64::from_be_bytes(unhex(cell.as_str()?)?.try_into().ok()?));
    let of_row = |row: &serde_json::Value| {
        let cells = row.as_array()?.iter().take(cells);
        cells.map(number).collect::<Option<Vec<_>>>()
    };
    let all = rows.iter().map(of_row).collect::<Option<_>>();
    all.ok_or_else(|| Error::failed("a row has cells of other types"))
}

/// Writes both rows again and again. Returns the microseconds of each batch.
fn write(connection: &mut Connection, [a, b]: Pair, length: Duration) -> Outcome<Vec<u64>> {
    let (mut times, began) = (Vec::new(), clock::now());
    let mut last = 0;
    while began.elapsed() < length {
        last += 1;
        let asked = clock::now();
        connection.must(&format!(
            "BEGIN BATCH INSERT INTO bench.pair (k, v) VALUES ({a}, {last}); INSERT INTO bench.pair (k, v) VALUES ({b}, {last}); APPLY BATCH"
        ))?;
        times.push(u64::try_from(asked.elapsed().as_micros()).unwrap_or(u64::MAX));
    }
    for k in [a, b] {
        let rows = all_rows(connection, &format!("SELECT v FROM bench.pair WHERE k = {k}"))?;
        if numbers(&rows, 1)? != [[last]] {
            return Err(Error::failed(format!("row {k} does not have the last batch")));
        }
    }
    Ok(times)
}
