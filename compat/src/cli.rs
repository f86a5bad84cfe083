//! The command line.

use crate::objects::{Objects, Protocol};
use crate::{
    Outcome, backup, bench, bucket_cache, bucket_faults, bucket_speed, cpu, crash, damage, deaf, driver, eio, feed,
    footprint, generate, golden, index, jumps, launch, linear, malformed, metering, null, oracle, owners, partitions,
    power, proxy, replay, soak, startup, tables, throttle,
};
use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

/// Compatibility runs against a server of the Cassandra protocol.
#[derive(Debug, Parser)]
#[command(name = "compat")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Replays scripts of statements and compares with Cassandra's recorded answers.
    Oracle(oracle::report::Options),
    /// Replays the facts of `golden/`.
    Golden(golden::Options),
    /// Asks random questions of a server and of Cassandra, and compares.
    Generate(generate::Options),
    /// Load on Helenus, a server that does nothing, and Cassandra.
    Bench(bench::Options),
    /// Two servers on one bucket: the owner is killed, or stopped and resumed, and the other takes over (under compat/bucket/with).
    Owners {
        /// How often.
        #[arg(long, default_value_t = 30)]
        rounds: i32,
    },
    /// Damages and removes files of the local cache of a server over a bucket, and compares what it answers (under compat/bucket/with).
    BucketCache {
        /// How often.
        #[arg(long, default_value_t = 24)]
        rounds: usize,
        /// Of everything random.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Has the store of objects under a server fail for a while: 503, hung, answers lost, slow, no puts.
    BucketFaults {
        /// Seconds of each fault.
        #[arg(long, default_value_t = 30)]
        seconds: u64,
        /// The store speaks the XML API of Google Cloud Storage, and takes one change of an object a second.
        #[arg(long)]
        google: bool,
    },
    /// The same with splits, merges, lifts, lowers and kills.
    BucketMoves {
        /// Lives of the server.
        #[arg(long, default_value_t = 8)]
        lives: u32,
        /// Of everything random.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Serves a store of objects in memory that speaks the XML API of Google Cloud Storage, until it is killed.
    Objects {
        /// HOST:PORT.
        #[arg(long)]
        listen: String,
    },
    /// Measures a server over a store of objects that sleeps 20 ms a put and a list, 10 ms a get.
    BucketSpeed {
        /// Seconds of each phase.
        #[arg(long, default_value_t = 10)]
        seconds: u64,
        /// Stores of the server, but for `spread`, which always has eight.
        #[arg(long, default_value_t = 1)]
        stores: u8,
        /// Fail where a figure misses its bound.
        #[arg(long)]
        strict: bool,
        /// Only these phases.
        #[arg(long, value_delimiter = ',')]
        only: Vec<bucket_speed::Phase>,
    },
    /// Kills a server under load, again and again, and checks what it promised.
    Crash {
        /// How often.
        #[arg(long, default_value_t = 50)]
        cycles: i32,
        /// Of the moments to kill at.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Kill it while indexes are used and built, and check those.
        #[arg(long)]
        indexed: bool,
    },
    /// Kills a server while readers follow the change feed of a table, and compares what they saw with the rows.
    Feed {
        /// How often, for each engine.
        #[arg(long, default_value_t = 100)]
        cycles: u32,
        /// Only this engine: file or slate+file.
        #[arg(long, value_parser = launch::engine)]
        engine: Vec<String>,
        /// Of the moments to kill at.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Measures what an index saves.
    Index {
        /// Rows of the table.
        #[arg(long, default_value_t = 1_000_000)]
        rows: i64,
    },
    /// Many clients' conditional operations on a few registers, with kills: is there an order that explains all answers?
    Linear(linear::Options),
    /// Splits, merges, lifts and lowers physical partitions of a table under load, with kills: is anything lost, doubled or slow?
    Partitions(partitions::Options),
    /// Cuts the power of a server's disk under load, again and again, and checks what it promised.
    Power(power::Options),
    /// Fails syncs one by one, and fills disks: is anything lost, or served that could be?
    Eio(eio::Options),
    /// Damages files of a stopped server: right answers, or a refusal that changes nothing?
    Damage(damage::Options),
    /// Restarts servers with clocks an hour off: does a client without timestamps read what it wrote?
    Clock(jumps::Options),
    /// Makes backups under load and restores them: is each the state at one moment?
    Backup {
        /// How many, of each engine.
        #[arg(long, default_value_t = 10)]
        backups: u32,
        /// Engine, as a data URL begins; may be repeated, all if none is named.
        #[arg(long)]
        engine: Vec<String>,
    },
    /// Asks for big pages and reads none: does memory stay bounded, and do others go on?
    Deaf(deaf::Options),
    /// Times a start from a long log.
    LogReplay(replay::Options),
    /// All faults at once, for a long time; with a rate, load without faults, under a watch of memory and disk.
    Soak(soak::Options),
    /// Sends frames that no client should send.
    Malformed {
        /// How many in each protocol version.
        #[arg(long, default_value_t = 10_000)]
        frames: usize,
        /// Of the frames.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Measures what metering costs: a server with it and one without, loaded in turn.
    Metering(metering::Options),
    /// Counts the instructions for an operation of this checkout's server and of a base's, under callgrind.
    Cpu(cpu::Options),
    /// Measures the time to the first answer, and memory when idle.
    Startup(startup::Options),
    /// Creates many tables.
    Tables {
        /// How many.
        #[arg(long, default_value_t = 2000)]
        count: usize,
    },
    /// Overloads tables of limited throughput, and compares what was admitted with what was provisioned.
    Throttle(throttle::Options),
    /// Asks through the Rust driver what applications ask.
    Driver {
        /// Server to ask, HOST:PORT.
        #[arg(long)]
        target: String,
    },
    /// Answers with canned frames, until it is ended.
    Null {
        /// Where to listen.
        #[arg(long, default_value = "127.0.0.1:0")]
        listen: String,
        /// Takes the address once it listens.
        #[arg(long)]
        ready_file: Option<PathBuf>,
    },
    /// Forwards more addresses to a server, until it is ended.
    Proxy {
        /// Address to listen on; may be repeated.
        #[arg(long, required = true)]
        listen: Vec<String>,
        /// Server, HOST:PORT.
        #[arg(long)]
        target: String,
    },
}

/// Runs what the command line asks for; true when all that was checked held.
///
/// # Errors
/// When a run could not go on.
pub fn run() -> Outcome<bool> {
    match Arguments::parse().command {
        Command::Oracle(options) => oracle::report::run(&options),
        Command::Golden(options) => golden::run(&options),
        Command::Generate(options) => generate::run(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Owners { rounds } => owners::run(rounds),
        Command::BucketCache { rounds, seed } => bucket_cache::run(rounds, seed),
        Command::BucketFaults { seconds, google } => {
            let protocol = if google { Protocol::Google } else { Protocol::S3 };
            bucket_faults::run(Duration::from_secs(seconds), protocol)
        }
        Command::BucketMoves { lives, seed } => bucket_faults::moves::run(lives, seed),
        Command::Objects { listen } => Objects::serve(Protocol::Google, &listen),
        Command::BucketSpeed {
            seconds,
            stores,
            strict,
            only,
        } => bucket_speed::run(Duration::from_secs(seconds), stores, strict, &only),
        Command::Crash {
            cycles,
            seed,
            indexed: true,
        } => crash::indexed::run(cycles, seed),
        Command::Crash { cycles, seed, .. } => crash::run(cycles, seed),
        Command::Feed { cycles, engine, seed } => feed::run(&engine, cycles, seed),
        Command::Index { rows } => index::run(rows),
        Command::Linear(options) => linear::run(&options),
        Command::Partitions(options) => partitions::run(&options),
        Command::Power(options) => power::run(&options),
        Command::Eio(options) => eio::run(&options),
        Command::Damage(options) => damage::run(&options),
        Command::Clock(options) => jumps::run(&options),
        Command::Backup { backups, engine } => backup::run(backups, &engine),
        Command::Deaf(options) => deaf::run(&options),
        Command::LogReplay(options) => replay::run(&options),
        Command::Soak(options) => match options.rate {
            Some(rate) => footprint::run(&footprint::Options {
                rate,
                minutes: options.minutes,
                seed: options.seed,
            }),
            None => soak::run(&options),
        },
        Command::Malformed { frames, seed } => malformed::run(frames, seed),
        Command::Metering(options) => metering::run(&options),
        Command::Cpu(options) => cpu::run(&options),
        Command::Startup(options) => startup::run(options),
        Command::Tables { count } => tables::run(count),
        Command::Throttle(options) => throttle::run(&options),
        Command::Driver { target } => driver::run(&target),
        Command::Null { listen, ready_file } => null::run(&listen, ready_file.as_deref()),
        Command::Proxy { listen, target } => proxy::run(&listen, &target),
    }
}
