//! Load over raw frames: prepared inserts, point reads, slices of a hundred rows, updates, updates with a condition, half updates and half
//! reads, unlogged batches of ten updates, and point reads as text; several connections with many requests in flight on each.
//!
//! ```text
//! all servers run ─ for each kind: each server is warmed until three rounds agree ─ rounds in turn: A B C, B C A, …
//! ```
//! Of each server and kind the medians of its rounds are printed: the server's processor time for an operation with the least and the
//! largest, operations a second, and times from sending to answer. On a shared machine the processor time is what can be compared. One answer
//! in a thousand is looked into: it must hold what its row has. A round in which the load itself took more than nine tenths of its processors
//! is marked: the server could have done more.
//!
//! Or what a change feed costs a write (feeds.rs).
//!
//! The servers: Helenus on each medium that is asked for, Cassandra if this machine can run it, and [`crate::null`].

mod feeds;
mod load;

use crate::cassandra::Cassandra;
use crate::figures;
use crate::raw::Connection;
use crate::server::{self, Server};
use crate::{Error, Outcome, tools};
use clap::Args;
use std::process::Command;
use std::time::Duration;

/// What to run.
#[derive(Debug, Args)]
pub struct Options {
    /// Seconds of a round.
    #[arg(long, default_value_t = 2)]
    pub seconds: u64,
    /// Rounds of each kind and server.
    #[arg(long, default_value_t = 5)]
    pub rounds: u64,
    /// Most seconds of the same before measuring, for Cassandra's compiler and everybody's caches. Cassandra needs a minute.
    #[arg(long, default_value_t = 20)]
    pub warmup: u64,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a comment would be the help of the whole run")]
    pub load: Load,
    /// Operations of each round, in place of seconds: the same work however fast the machine is.
    #[arg(long)]
    pub operations: Option<u64>,
    /// Where Helenus keeps its data: memory, file, slate+file; may be repeated. `file/periodic:10000` sets the durability.
    #[arg(long, default_value = "file")]
    pub on: Vec<String>,
    /// Run the servers on the first processor and the load on the others (taskset).
    #[arg(long)]
    pub pinned: bool,
    /// Leave Cassandra out.
    #[arg(long)]
    pub without_cassandra: bool,
    /// Only what a change feed costs a write, on each engine: tables without a feed, with the incremental one, with the full fidelity one.
    #[arg(long)]
    pub feeds: bool,
    /// Fail below 3 × (insert), 5 × (point read, slice) Cassandra's operations by processor second.
    #[arg(long)]
    pub strict: bool,
}

/// The load that is made. What is told of the fields is what the command line's help says.
#[derive(Debug, Clone, Args)]
pub struct Load {
    /// Connections.
    #[arg(long, default_value_t = 4)]
    pub connections: usize,
    /// Requests in flight on each.
    #[arg(long, default_value_t = 64)]
    pub in_flight: usize,
    // Rows for point reads are a hundred times as many.
    /// Partitions of a thousand rows.
    #[arg(long, default_value_t = 100)]
    pub partitions: i32,
    /// Bytes of a value.
    #[arg(long, default_value_t = 100)]
    pub value_bytes: usize,
    /// Kinds of operations to run; all when none is named.
    #[arg(long)]
    pub only: Vec<String>,
    /// Whether answers are looked into.
    #[arg(skip = true)]
    pub checks: bool,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            connections: 4,
            in_flight: 64,
            partitions: 100,
            value_bytes: 100,
            only: Vec::new(),
            checks: true,
        }
    }
}

impl Load {
    /// Whether this kind of operation is to run.
    pub(crate) fn asks_for(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }
}

/// A kind of operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind(&'static load::Phase);

/// The kinds of operations of one prepared statement.
pub(crate) fn kinds() -> impl Iterator<Item = Kind> {
    all_kinds().filter(|kind| kind.0.is_of_one_statement())
}

/// All kinds.
fn all_kinds() -> impl Iterator<Item = Kind> {
    load::PHASES.iter().map(Kind)
}

impl Kind {
    /// What it is called.
    pub(crate) const fn name(self) -> &'static str {
        self.0.name
    }

    /// Runs it for so long; how many operations were done. Rounds have keys of their own.
    ///
    /// # Errors
    /// When the server refuses.
    pub(crate) fn load(self, address: &str, load: &Load, length: Duration, round: u64) -> Outcome<u64> {
        Ok(load::run(address, self.0, load, load::Until::Elapsed(length), round)?.operations)
    }

    /// Runs at least so many operations; how many were done. Rounds have keys of their own.
    ///
    /// # Errors
    /// When the server refuses.
    pub(crate) fn count(self, address: &str, load: &Load, operations: u64, round: u64) -> Outcome<u64> {
        Ok(load::run(address, self.0, load, load::Until::Operations(operations), round)?.operations)
    }

    /// As [`Kind::load`], with how long answers took and what the server, of this process id, used.
    ///
    /// # Errors
    /// When the server refuses.
    pub(crate) fn measure(self, server: &Server, load: &Load, length: Duration, round: u64) -> Outcome<Figures> {
        self.measure_at(
            (server.address(), server.pid()),
            load,
            load::Until::Elapsed(length),
            round,
        )
    }

    fn measure_at(self, (address, pid): (&str, u32), load: &Load, until: load::Until, round: u64) -> Outcome<Figures> {
        let before = server::cpu_micros(pid)?;
        let mut figures = load::run(address, self.0, load, until, round)?;
        figures.cpu_micros = server::cpu_micros(pid)?.saturating_sub(before);
        Ok(figures)
    }
}

/// Makes the tables and writes what is read.
///
/// # Errors
/// When the server refuses.
pub(crate) fn prepare(address: &str, load: &Load) -> Outcome<()> {
    prepare_with(address, load, "")
}

/// The same, with properties of the table that is written to.
fn prepare_with(address: &str, load: &Load, properties: &str) -> Outcome<()> {
    let mut connection = Connection::open(address, 4)?;
    for statement in load::SCHEMA {
        if statement.starts_with("CREATE TABLE bench.narrow ") {
            connection.must(&format!("{statement}{properties}"))?;
        } else {
            connection.must(statement)?;
        }
    }
    load::fill(address, load)
}

/// What a server did in one phase.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figures {
    operations: u64,
    seconds: f64,
    p50_micros: u64,
    p99_micros: u64,
    p999_micros: u64,
    cpu_micros: u64,
    /// Processor time of the load.
    client_micros: u64,
}

impl Figures {
    /// Half of the answers took no longer, in ms.
    #[expect(clippy::cast_precision_loss, reason = "microseconds of a run of seconds")]
    pub(crate) fn p50_millis(&self) -> f64 {
        self.p50_micros as f64 / 1000.0
    }

    /// Of a hundred answers one took longer, in ms.
    #[expect(clippy::cast_precision_loss, reason = "microseconds of a run of seconds")]
    pub(crate) fn p99_millis(&self) -> f64 {
        self.p99_micros as f64 / 1000.0
    }

    /// Of a thousand answers one took longer, in µs.
    #[expect(clippy::cast_precision_loss, reason = "microseconds of a run of seconds")]
    fn p999_micros(&self) -> f64 {
        self.p999_micros as f64
    }

    /// The part of the processors that the load took; all of them are its own where nothing is pinned.
    #[expect(clippy::cast_precision_loss, reason = "microseconds of a run of seconds")]
    fn client_share(&self) -> f64 {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.client_micros as f64 / 1e6 / self.seconds / processors as f64
    }

    /// Processor time of the server for an operation, in µs.
    #[expect(clippy::cast_precision_loss, reason = "counts of a run of seconds")]
    pub(crate) fn cpu_per_operation(&self) -> f64 {
        self.cpu_micros as f64 / (self.operations.max(1)) as f64
    }

    /// Operations a second.
    #[expect(clippy::cast_precision_loss, reason = "counts of a run of seconds")]
    pub(crate) fn per_second(&self) -> f64 {
        self.operations as f64 / self.seconds
    }
}

/// A server that is measured.
struct Peer {
    name: String,
    address: String,
    pid: u32,
    load: Load,
    /// Ends the server when it is dropped.
    _running: Running,
    _folder: tempfile::TempDir,
}

#[expect(dead_code, reason = "held until the end of the run")]
enum Running {
    Program(Server),
    Cassandra(Cassandra),
}

/// Rounds before measuring that must agree, and within which part of the largest.
const AGREEING_ROUNDS: usize = 3;
const AGREEMENT: f64 = 0.05;
/// Length of these rounds.
const WARM_SECONDS: u64 = 2;
/// The part of the processors that the load may take in a round that shows what the server can do.
const CLIENT_SHARE_MAX: f64 = 0.9;

/// Runs all servers and prints figures and ratios; true unless ratios were asked for and missed.
///
/// # Errors
/// When a server does not start or refuses.
pub fn run(options: &Options) -> Outcome<bool> {
    if options.feeds {
        return feeds::run(options);
    }
    let kinds: Vec<Kind> = all_kinds().filter(|kind| options.load.asks_for(kind.name())).collect();
    if kinds.is_empty() {
        return Err(Error::failed("there is no such kind of operation"));
    }
    let peers = peers(options)?;
    let mut good = true;
    for kind in kinds {
        let measured = measure(kind, &peers, options)?;
        good &= print(kind, &peers, &measured) || !options.strict;
    }
    Ok(good)
}

/// Starts all servers, with rows.
fn peers(options: &Options) -> Outcome<Vec<Peer>> {
    let mut peers = Vec::new();
    for on in &options.on {
        peers.push(helenus(on, &options.load)?);
    }
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["null", "--listen", "127.0.0.1:0"]);
    let server = Server::spawn(command, folder.path())?;
    peers.push(Peer {
        name: "null".to_owned(),
        address: server.address().to_owned(),
        pid: server.pid(),
        load: Load {
            checks: false,
            ..options.load.clone()
        },
        _running: Running::Program(server),
        _folder: folder,
    });
    if !options.without_cassandra
        && let Some(cassandra) = Cassandra::start("bench", 21042)?
    {
        peers.push(Peer {
            name: "cassandra".to_owned(),
            address: cassandra.address().to_owned(),
            pid: cassandra.pid()?,
            load: options.load.clone(),
            _running: Running::Cassandra(cassandra),
            _folder: tempfile::tempdir()?,
        });
    }
    for peer in &peers {
        if options.pinned {
            pin(peer.pid, "0")?;
        }
        prepare(&peer.address, &peer.load)?;
    }
    if options.pinned {
        pin(
            std::process::id(),
            &format!("1-{}", std::thread::available_parallelism()?.get() - 1),
        )?;
    }
    Ok(peers)
}

/// A Helenus on a medium, with its durability behind a slash.
fn helenus(on: &str, load: &Load) -> Outcome<Peer> {
    let folder = tempfile::tempdir()?;
    let (medium, durability) = on.split_once('/').unwrap_or((on, ""));
    let data = match medium {
        "memory" => "memory:".to_owned(),
        _ => format!("{medium}:{}", folder.path().join("data").display()),
    };
    let more: &[&str] = if durability.is_empty() {
        &[]
    } else {
        &["--durability", durability]
    };
    let server = Server::start_with(&data, more, folder.path())?;
    Ok(Peer {
        name: on.to_owned(),
        address: server.address().to_owned(),
        pid: server.pid(),
        load: load.clone(),
        _running: Running::Program(server),
        _folder: folder,
    })
}

/// Keeps all threads of a process on some processors.
fn pin(pid: u32, processors: &str) -> Outcome<()> {
    tools::need("taskset", "util-linux")?;
    tools::run("taskset", ["-acp", processors, &pid.to_string()]).map(|_| ())
}

/// The rounds of each server.
fn measure(kind: Kind, peers: &[Peer], options: &Options) -> Outcome<Vec<Vec<Figures>>> {
    let mut number = 0;
    let mut round = |peer: &Peer, until| {
        number += 1;
        kind.measure_at((&peer.address, peer.pid), &peer.load, until, number)
    };
    for peer in peers {
        let mut costs: Vec<f64> = Vec::new();
        let rounds_max = options.warmup.div_ceil(WARM_SECONDS);
        while u64::try_from(costs.len()).unwrap_or(u64::MAX) < rounds_max && !agree(&costs) {
            costs.push(round(peer, load::Until::Elapsed(Duration::from_secs(WARM_SECONDS)))?.cpu_per_operation());
        }
        if !agree(&costs) {
            println!(
                "{:21} {:11} not warm after {} s: {costs:.1?}",
                peer.name,
                kind.name(),
                options.warmup
            );
        }
    }
    let until = match options.operations {
        Some(operations) => load::Until::Operations(operations),
        None => load::Until::Elapsed(Duration::from_secs(options.seconds)),
    };
    let mut measured: Vec<Vec<Figures>> = peers.iter().map(|_| Vec::new()).collect();
    for first in 0..usize::try_from(options.rounds.max(1)).unwrap_or(1) {
        for step in 0..peers.len() {
            let place = (first + step) % peers.len();
            if let (Some(peer), Some(rounds)) = (peers.get(place), measured.get_mut(place)) {
                rounds.push(round(peer, until)?);
            }
        }
    }
    Ok(measured)
}

/// Whether the last rounds cost nearly the same.
fn agree(costs: &[f64]) -> bool {
    let Some(last) = costs
        .len()
        .checked_sub(AGREEING_ROUNDS)
        .and_then(|from| costs.get(from..))
    else {
        return false;
    };
    let largest = last.iter().copied().fold(0.0, f64::max);
    last.iter().all(|cost| *cost >= largest * (1.0 - AGREEMENT))
}

/// Prints the medians of each server. Returns whether the first holds what `--strict` asks for against Cassandra.
fn print(kind: Kind, peers: &[Peer], measured: &[Vec<Figures>]) -> bool {
    let median =
        |rounds: &[Figures], of: fn(&Figures) -> f64| figures::median(&rounds.iter().map(of).collect::<Vec<_>>());
    let cost = |rounds: &[Figures]| median(rounds, Figures::cpu_per_operation);
    let of_first = measured.first().map_or(0.0, |rounds| cost(rounds));
    let mut good = true;
    for (peer, rounds) in peers.iter().zip(measured) {
        let least = rounds
            .iter()
            .map(Figures::cpu_per_operation)
            .fold(f64::INFINITY, f64::min);
        let largest = rounds.iter().map(Figures::cpu_per_operation).fold(0.0, f64::max);
        let bound = rounds
            .iter()
            .filter(|figures| figures.client_share() > CLIENT_SHARE_MAX)
            .count();
        println!(
            "{:21} {:11} server CPU {:7.2} µs/op [{least:.2}, {largest:.2}]  {:5.2} × {}  {:8.0} op/s  p50 {:6.0} p99 {:7.0} p99.9 {:7.0} µs{}",
            peer.name,
            kind.name(),
            cost(rounds),
            cost(rounds) / of_first,
            peers.first().map_or("", |first| first.name.as_str()),
            median(rounds, Figures::per_second),
            median(rounds, |figures| figures.p50_millis() * 1000.0),
            median(rounds, |figures| figures.p99_millis() * 1000.0),
            median(rounds, Figures::p999_micros),
            if bound > 0 {
                format!("  bound by the load in {bound} rounds")
            } else {
                String::new()
            },
        );
        if peer.name == "cassandra" {
            good = cost(rounds) / of_first >= wanted(kind.name());
        }
    }
    good
}

/// What `--strict` asks for: Cassandra's processor time for an operation, in that of the first server.
fn wanted(kind: &str) -> f64 {
    match kind {
        "insert" => 3.0,
        "read" | "slice" => 5.0,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::agree;

    #[test]
    fn rounds_agree_when_the_last_three_are_within_a_twentieth() {
        assert!(!agree(&[10.0, 10.0]));
        assert!(agree(&[90.0, 10.0, 10.0, 9.6]));
        assert!(!agree(&[10.0, 10.0, 9.4]));
    }
}
