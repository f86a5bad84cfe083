//! A server over a store of objects that takes as long as one in the same region ([`Latency::REGION`]): what its writes, reads, scans and
//! starts take, and what it asks of the store.
//!
//! | phase | bound |
//! |---|---|
//! | inserts of 256 clients, one at a time each | p50 ≤ 30 ms |
//! | logged batches over two stores, of one client and of 16 | p50 ≤ 60 ms |
//! | point reads of rows that were read before | no get of a table; processor time ≤ 1.3 × that of `file:` |
//! | 20,000 rows of 100 B in pages of 5,000, after a start | ≤ 0.2 s |
//! | a start after small writes, each in an object of the log of its own: after an orderly stop, and after kill -9 | ≤ 1 s, the lease apart |
//! | the server idle | ≤ 0.3 requests a second, the lease apart; ≤ 1 % of a core |
//! | inserts of 256 clients over eight stores | puts of logs side by side; processor time ≤ 1.3 × that of one store |
//! | the server with eight stores idle, over a whole cycle of its polls | ≤ 0.3 requests a second, the lease apart; ≤ 1 % of a core |
//!
//! The store runs in this process: on two cores its work is part of the times.

mod pairs;
mod spread;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::bench::{self, Figures, Load};
use crate::objects::{Counts, Kind, Latency, Objects, Protocol};
use crate::raw::request::Params;
use crate::raw::{Connection, answer, opcode, request, unhex};
use crate::server::{self, Server};
use crate::{Error, Outcome, clock, tools};

/// Partitions of a thousand rows of 100 B, all of which the scan reads.
const PARTITIONS: i32 = 20;

/// Rows of a page of the scan.
const PAGE_ROWS: i32 = 5000;

/// Windows in which reads are measured: the compactor reads tables in some of them.
const WINDOWS: usize = 6;

/// How long a server that was killed owns its prefix, and those who wait for that: `bucket-lease`, one part in a hundred, and 50 ms.
const LEASE: Duration = Duration::from_millis(2575);

/// Shortest time for which an idle server is watched: twice the time between its polls.
const IDLE_MIN: Duration = Duration::from_secs(60);

/// How long what the load left to be done is awaited.
const WAIT_AFTER_LOAD: Duration = Duration::from_secs(15);

/// Longest wait for a server to end.
const END_WAIT_MAX: Duration = Duration::from_secs(30);

/// What was found, and whether all of it is within its bounds.
#[derive(Debug, Default)]
struct Table {
    missed: usize,
}

impl Table {
    fn row(&mut self, what: &str, figure: f64, most: f64, unit: &str) {
        let holds = figure <= most;
        self.missed += usize::from(!holds);
        let mark = if holds { "" } else { "  MISSED" };
        println!("{what:64} {figure:9.2} {unit:12} (≤ {most}){mark}");
    }
}

/// A part of the run.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub enum Phase {
    /// Inserts of 256, eight and one client.
    Writes,
    /// Logged batches over two stores.
    Pairs,
    /// Point reads of rows that were read before.
    Reads,
    /// The server idle.
    Idle,
    /// Starts after small writes.
    Starts,
    /// A scan after a start.
    Scan,
    /// A server with eight stores, after `writes`: its inserts, and those of the other phases that it has too (all but `reads`).
    Spread,
}

impl Phase {
    fn is_in(self, only: &[Self]) -> bool {
        only.is_empty() || only.contains(&self)
    }
}

/// Where the first server runs: the object store, its folder, and the number of its stores.
#[derive(Clone, Copy)]
struct Place<'a> {
    store: &'a Objects,
    folder: &'a Path,
    stores: u8,
}

impl Place<'_> {
    fn start(self) -> Outcome<Server> {
        start_with(self.store, self.folder, "run", &["--stores", &self.stores.to_string()])
    }
}

/// Runs these phases, or all if none is named; true unless a figure missed its bound and `is_strict`. All phases but `spread` have a server with
/// `stores` stores.
///
/// # Errors
/// When a server does not start or refuses.
pub fn run(length: Duration, stores: u8, is_strict: bool, only: &[Phase]) -> Outcome<bool> {
    let store = Objects::start(Protocol::S3, Latency::REGION)?;
    let folder = tempfile::tempdir()?;
    let mut table = Table::default();
    let place = Place {
        store: &store,
        folder: folder.path(),
        stores,
    };
    let mut server = place.start()?;
    bench::prepare(server.address(), &load(16, 16))?;
    let mut cpu_of_one = None;
    if Phase::Writes.is_in(only) {
        cpu_of_one = Some(writes(&store, &server, length, &mut table)?);
    }
    if Phase::Pairs.is_in(only) {
        pairs::measure(&server, "two", length, &mut table)?;
    }
    if Phase::Reads.is_in(only) {
        warm(&store, &server, folder.path(), length, &mut table)?;
    }
    if Phase::Idle.is_in(only) {
        idle(
            (&store, &server),
            (WAIT_AFTER_LOAD, (length * 3).max(IDLE_MIN)),
            &mut table,
        )?;
    }
    if Phase::Starts.is_in(only) {
        server = opened(place, server, length, &mut table)?;
    }
    if Phase::Scan.is_in(only) {
        server = again_started(place, server)?;
        scan(&store, &server, &format!("{stores} stores"), &mut table)?;
    }
    end(server)?;
    if let Some(cpu) = cpu_of_one.filter(|_| Phase::Spread.is_in(only)) {
        spread::measure((&store, folder.path()), length, only, cpu, &mut table)?;
    }
    println!("{} figures miss their bound", table.missed);
    Ok(!is_strict || table.missed == 0)
}

/// Inserts; the processor time of each with 256 clients, in µs.
fn writes(store: &Objects, server: &Server, length: Duration, table: &mut Table) -> Outcome<f64> {
    let load = load(16, 16);
    let insert = measure(server, &load, "insert", length)?;
    let puts = store.counts();
    let again = measure(server, &load, "insert", length)?;
    println!("inserts: {}; {}", told(&again), store.counts().since(&puts));
    table.row(
        "durable writes, 256 clients: p50",
        insert.p50_millis().min(again.p50_millis()),
        30.0,
        "ms",
    );
    let alone = measure(server, &self::load(1, 1), "insert", length)?;
    println!("inserts of one client: {}", told(&alone));
    let few = measure(server, &self::load(4, 2), "insert", length)?;
    println!("inserts of eight clients: {}", told(&few));
    Ok(insert.cpu_per_operation().min(again.cpu_per_operation()))
}

fn load(connections: usize, in_flight: usize) -> Load {
    Load {
        connections,
        in_flight,
        partitions: PARTITIONS,
        ..Load::default()
    }
}

fn measure(server: &Server, load: &Load, kind: &str, length: Duration) -> Outcome<Figures> {
    let mut kinds = bench::kinds();
    let kind = kinds
        .find(|one| one.name() == kind)
        .ok_or(Error::failed("no such load"))?;
    kind.measure(server, load, length, 1)
}

fn told(figures: &Figures) -> String {
    format!(
        "{:.0} a second, p50 {:.1} ms, p99 {:.1} ms, {:.0} µs of processor time each",
        figures.per_second(),
        figures.p50_millis(),
        figures.p99_millis(),
        figures.cpu_per_operation()
    )
}

/// Starts a server over the bucket.
pub(crate) fn start(store: &Objects, folder: &Path) -> Outcome<Server> {
    start_with(store, folder, "run", &[])
}

/// Starts a server below this prefix of the bucket, with these settings.
fn start_with(store: &Objects, folder: &Path, prefix: &str, settings: &[&str]) -> Outcome<Server> {
    let (data, environment) = store.reach(prefix);
    let mut command = Command::new(server::program()?);
    command.args(["serve", "--listen", "127.0.0.1:0", "--data", &data]);
    command.args(settings).envs(environment);
    Server::spawn(command, folder)
}

/// Ends a server as an operator does.
pub(crate) fn end(mut server: Server) -> Outcome<()> {
    tools::run("kill", ["-TERM".to_owned(), server.pid().to_string()])?;
    let began = clock::now();
    while server.ended()?.is_none() {
        if began.elapsed() > END_WAIT_MAX {
            return Err(Error::failed("the server does not end"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

fn warm(store: &Objects, server: &Server, folder: &Path, length: Duration, table: &mut Table) -> Outcome<()> {
    let load = load(4, 16);
    measure(server, &load, "read", length)?;
    let (mut least, mut bucket) = (u64::MAX, None);
    for _ in 0..WINDOWS {
        let before = store.counts();
        let reads = measure(server, &load, "read", length)?;
        let asked = store.counts().since(&before);
        println!("reads: {}; {asked}", told(&reads));
        let gets = asked.of("compacted", Kind::Get) + asked.of("wal", Kind::Get);
        if gets < least {
            (least, bucket) = (gets, Some(reads));
        }
        if least == 0 {
            break;
        }
    }
    let bucket = bucket.ok_or_else(|| Error::failed("nothing was measured"))?;
    let place = folder.join("file");
    std::fs::create_dir_all(&place)?;
    let beside = Server::start(&format!("file:{}", place.join("data").display()), &place)?;
    bench::prepare(beside.address(), &load)?;
    measure(&beside, &load, "read", length)?;
    let file = measure(&beside, &load, "read", length)?;
    println!("reads of file:: {}", told(&file));
    let what = format!("warm point reads: gets of tables, the best of {WINDOWS} windows");
    table.row(&what, float(least), 0.0, "in all");
    let ratio = bucket.cpu_per_operation() / file.cpu_per_operation();
    table.row("warm point reads: processor time against file:", ratio, 1.3, "×");
    Ok(())
}

/// Watches an idle server for this length, after a wait.
fn idle((store, server): (&Objects, &Server), (wait, length): (Duration, Duration), table: &mut Table) -> Outcome<()> {
    std::thread::sleep(wait);
    let (before, used) = (store.counts(), server::cpu_micros(server.pid())?);
    std::thread::sleep(length);
    let asked = store.counts().since(&before);
    let used = float(server::cpu_micros(server.pid())?.saturating_sub(used)) / 1e6;
    println!("idle for {} s: {asked}", length.as_secs());
    let seconds = length.as_secs_f64();
    table.row(
        "idle: requests, the lease apart",
        float(asked.all()) / seconds,
        0.3,
        "a second",
    );
    table.row("idle: the lease", float(asked.leases()) / seconds, 1.5, "a second");
    table.row("idle: processor time", 100.0 * used / seconds, 1.0, "% of a core");
    Ok(())
}

/// Small writes, one after another, and a start.
fn opened(place: Place, server: Server, length: Duration, table: &mut Table) -> Outcome<Server> {
    let store = place.store;
    let before = store.counts();
    // Five times the length: an hour of them would make the same log, if it is bounded.
    let small = measure(&server, &load(1, 1), "insert", length * 5)?;
    let asked = store.counts().since(&before);
    println!("small writes for {} s: {}; {asked}", length.as_secs() * 5, told(&small));
    server.kill()?;
    let (server, took, asked) = timed(place)?;
    println!("start after them and kill -9: {took:.2} s; {asked}");
    let took = took - LEASE.as_secs_f64();
    table.row(
        "start after small writes and kill -9, the lease's 2.58 s apart",
        took,
        1.0,
        "s",
    );
    measure(&server, &load(1, 1), "insert", length)?;
    end(server)?;
    let (server, took, asked) = timed(place)?;
    println!("start after more of them and an orderly stop: {took:.2} s; {asked}");
    table.row("start after small writes and an orderly stop", took, 1.0, "s");
    Ok(server)
}

fn timed(place: Place) -> Outcome<(Server, f64, Counts)> {
    let (before, began) = (place.store.counts(), clock::now());
    let server = place.start()?;
    let took = began.elapsed().as_secs_f64();
    Ok((server, took, place.store.counts().since(&before)))
}

/// Once more, so that nothing that is scanned is in memory.
fn again_started(place: Place, server: Server) -> Outcome<Server> {
    end(server)?;
    let (server, took, asked) = timed(place)?;
    println!("start after nothing: {took:.2} s; {asked}");
    Ok(server)
}

fn scan(store: &Objects, server: &Server, of: &str, table: &mut Table) -> Outcome<()> {
    for what in ["cold", "warm"] {
        let mut connection = server.connect()?;
        let before = store.counts();
        let (rows, pages) = read_all(&mut connection)?;
        let asked = store.counts().since(&before);
        let took: f64 = pages.iter().sum();
        let each: Vec<_> = pages.iter().map(|seconds| format!("{seconds:.3}")).collect();
        println!(
            "{what} scan: {rows} rows, pages in {} s, {took:.3} s in all; {asked}",
            each.join(", ")
        );
        if Ok(rows) != usize::try_from(1000 * PARTITIONS) {
            return Err(Error::failed("rows are missing"));
        }
        if what == "cold" {
            let what = format!("cold scan of 20,000 rows of {of} in pages of 5,000");
            table.row(&what, took, 0.2, "s");
        }
    }
    Ok(())
}

/// Reads `bench.wide` page after page; rows, and the seconds until the server had answered with each page: what this program does with an
/// answer is not part of them.
fn read_all(connection: &mut Connection) -> Outcome<(usize, Vec<f64>)> {
    let (mut rows, mut pages) = (0, Vec::new());
    let mut params = Params {
        page_size: Some(PAGE_ROWS),
        ..Params::default()
    };
    loop {
        let body = request::query(connection.version(), "SELECT k, c, v FROM bench.wide", &params);
        let asked = clock::now();
        let envelope = connection.ask(opcode::QUERY, &body)?;
        pages.push(asked.elapsed().as_secs_f64());
        let told = answer::plain(&envelope)?;
        let found = told.get("rows").and_then(|rows| rows.as_array());
        rows += found
            .ok_or_else(|| Error::failed(format!("a scan was refused: {told}")))?
            .len();
        match told.get("paging").and_then(|state| state.as_str()).and_then(unhex) {
            Some(state) => params.paging_state = Some(state),
            None => return Ok((rows, pages)),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of a run of seconds")]
fn float(count: u64) -> f64 {
    count as f64
}
