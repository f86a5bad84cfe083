//! Load over raw frames: prepared inserts, point reads, slices of a hundred rows, updates, updates with a condition; several connections with
//! many requests in flight on each. For each server in one run: operations a second, p50 and p99 of the time from
//! sending to answer, and the server's processor time for an operation, which on a shared machine is the figure that
//! can be compared.
//!
//! Or what a change feed costs a write (feeds.rs).
//!
//! The servers: Helenus on a fresh `file:` directory, Cassandra if this machine can run it, and [`crate::null`].

mod feeds;
mod load;

use crate::Outcome;
use crate::cassandra::Cassandra;
use crate::raw::Connection;
use crate::server::{self, Server};
use clap::Args;
use std::process::Command;
use std::time::Duration;

/// What to run.
#[derive(Debug, Args)]
pub struct Options {
    /// Seconds of each measured phase.
    #[arg(long, default_value_t = 5)]
    pub seconds: u64,
    /// Seconds of the same before measuring, for Cassandra's compiler and everybody's caches.
    #[arg(long, default_value_t = 5)]
    pub warmup: u64,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a comment would be the help of the whole run")]
    pub load: Load,
    /// Operations of each measured phase, in place of seconds: the same work however fast the machine is.
    #[arg(long)]
    pub operations: Option<u64>,
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
#[derive(Debug, Args)]
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
    /// Kinds of operations to run; all when none is named.
    #[arg(long)]
    pub only: Vec<String>,
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

/// All kinds.
pub(crate) fn kinds() -> impl Iterator<Item = Kind> {
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
        let before = server::cpu_micros(server.pid())?;
        let mut figures = load::run(server.address(), self.0, load, load::Until::Elapsed(length), round)?;
        figures.cpu_micros = server::cpu_micros(server.pid())?.saturating_sub(before);
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
    cpu_micros: u64,
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

/// Runs all servers and prints figures and ratios; true unless ratios were asked for and missed.
///
/// # Errors
/// When a server does not start or refuses.
pub fn run(options: &Options) -> Outcome<bool> {
    if options.feeds {
        return feeds::run(options);
    }
    let folder = tempfile::tempdir()?;
    let helenus = {
        let server = Server::start(&format!("file:{}", folder.path().join("data").display()), folder.path())?;
        measure("helenus", server.address(), server.pid(), options)?
    };
    let null = {
        let folder = tempfile::tempdir()?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["null", "--listen", "127.0.0.1:0"]);
        let server = Server::spawn(command, folder.path())?;
        measure("null", server.address(), server.pid(), options)?
    };
    let cassandra = if !options.without_cassandra {
        cassandra(options)?
    } else {
        None
    };
    println!("\nserver CPU µs for an operation, beyond that of the null server in brackets:");
    for (i, phase) in phases(options).enumerate() {
        let of = |figures: &[Figures]| figures.get(i).map_or(0.0, Figures::cpu_per_operation);
        let (h, n) = (of(&helenus), of(&null));
        print!("{:11} helenus {h:8.1} ({:8.1})  null {n:6.1}", phase.name, h - n);
        match &cassandra {
            Some(figures) => println!("  cassandra {:8.1}  ratio {:5.2}", of(figures), of(figures) / h),
            None => println!("  cassandra was not run"),
        }
    }
    let (Some(figures), Some((insert, read, slice))) = (&cassandra, options.strict.then_some((3.0, 5.0, 5.0))) else {
        return Ok(true);
    };
    let wanted = |name: &str| match name {
        "insert" => insert,
        "read" => read,
        "slice" => slice,
        _ => 0.0,
    };
    Ok(phases(options)
        .zip(figures.iter().zip(&helenus))
        .all(|(phase, (theirs, ours))| theirs.cpu_per_operation() / ours.cpu_per_operation() >= wanted(phase.name)))
}

/// The phases asked for.
fn phases(options: &Options) -> impl Iterator<Item = &'static load::Phase> {
    let asked = |phase: &&load::Phase| options.load.asks_for(phase.name);
    load::PHASES.iter().filter(asked)
}

fn measure(name: &str, address: &str, pid: u32, options: &Options) -> Outcome<Vec<Figures>> {
    prepare(address, &options.load)?;
    let mut all = Vec::new();
    for phase in phases(options) {
        load::run(
            address,
            phase,
            &options.load,
            load::Until::Elapsed(Duration::from_secs(options.warmup)),
            0,
        )?;
        let until = match options.operations {
            Some(operations) => load::Until::Operations(operations),
            None => load::Until::Elapsed(Duration::from_secs(options.seconds)),
        };
        let before = server::cpu_micros(pid)?;
        let mut figures = load::run(address, phase, &options.load, until, 1)?;
        figures.cpu_micros = server::cpu_micros(pid)?.saturating_sub(before);
        println!(
            "{name:10} {:11} {:9.0} op/s  p50 {:6} µs  p99 {:7} µs  server CPU {:8.1} µs/op",
            phase.name,
            figures.per_second(),
            figures.p50_micros,
            figures.p99_micros,
            figures.cpu_per_operation()
        );
        all.push(figures);
    }
    Ok(all)
}

/// Starts Cassandra, measures and stops it; `None` when this machine cannot run it.
fn cassandra(options: &Options) -> Outcome<Option<Vec<Figures>>> {
    let Some(cassandra) = Cassandra::start("bench", 21042)? else {
        return Ok(None);
    };
    measure("cassandra", cassandra.address(), cassandra.pid()?, options).map(Some)
}
