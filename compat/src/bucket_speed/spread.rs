//! A server whose tables are spread over eight stores.

use std::path::Path;
use std::time::Duration;

use super::{LEASE, Phase, Table, end, float, idle, load, measure as measured, pairs, scan, start_with, told};
use crate::bench;
use crate::objects::{Kind, Objects};
use crate::{Error, Outcome, clock, crash, server};

/// As the setting has it.
const STORES: &str = "8";

/// After the load, until all that it left to be done is done: then polls are as seldom as they get.
const WAIT_AFTER_LOAD: Duration = Duration::from_secs(180);

/// A little over the longest time between two polls of an idle store.
const WATCHED: Duration = Duration::from_secs(660);

/// Compares inserts with those into one store, which took this processor time each, in µs, and runs the phases that are named.
pub(super) fn measure(
    (store, folder): (&Objects, &Path),
    length: Duration,
    only: &[Phase],
    cpu_of_one: f64,
    table: &mut Table,
) -> Outcome<()> {
    let place = folder.join("spread");
    std::fs::create_dir_all(&place)?;
    let server = start_with(store, &place, "spread", &["--stores", STORES])?;
    let load = load(16, 16);
    bench::prepare(server.address(), &load)?;
    let text = "SELECT store FROM system_cosmos.partitions WHERE keyspace_name = 'bench' AND table_name = 'wide'";
    let mut used = crash::all_rows(&mut server.connect()?, text)?;
    used.sort_by_key(ToString::to_string);
    used.dedup();
    if used.len().to_string() != STORES {
        return Err(Error::failed(format!("the table lies in {} stores", used.len())));
    }
    measured(&server, &load, "insert", length)?;
    let puts = store.counts();
    let cpu = server::cpu_micros(server.pid())?;
    let insert = measured(&server, &load, "insert", length)?;
    let cpu = float(server::cpu_micros(server.pid())?.saturating_sub(cpu)) / 1e6;
    let asked = store.counts().since(&puts);
    println!(
        "inserts over {STORES} stores: {}; {asked}; {cpu:.1} s of processor time in all",
        told(&insert)
    );
    let p50 = insert.p50_millis();
    table.row(
        &format!("durable writes over {STORES} stores, 256 clients: p50"),
        p50,
        30.0,
        "ms",
    );
    let between = 1000.0 * length.as_secs_f64() / float(asked.of("log", Kind::Put).max(1));
    println!("puts of the log that they share: one every {between:.1} ms");
    let ratio = insert.cpu_per_operation() / cpu_of_one;
    table.row(
        &format!("durable writes over {STORES} stores: processor time against one"),
        ratio,
        1.3,
        "×",
    );
    if Phase::Pairs.is_in(only) {
        pairs::measure(&server, STORES, length, table)?;
    }
    if Phase::Idle.is_in(only) {
        println!("now the server with {STORES} stores is idle:");
        idle((store, &server), (WAIT_AFTER_LOAD, WATCHED), table)?;
    }
    if !Phase::Starts.is_in(only) {
        return end(server);
    }
    measured(&server, &load, "insert", length)?;
    server.kill()?;
    let began = clock::now();
    let server = start_with(store, &place, "spread", &["--stores", STORES])?;
    let took = began.elapsed().as_secs_f64() - LEASE.as_secs_f64();
    table.row(
        &format!("start with {STORES} stores after writes and kill -9, the lease apart"),
        took,
        1.0,
        "s",
    );
    end(server)?;
    if !Phase::Scan.is_in(only) {
        return Ok(());
    }
    let server = start_with(store, &place, "spread", &["--stores", STORES])?;
    scan(store, &server, &format!("{STORES} stores"), table)?;
    end(server)
}
