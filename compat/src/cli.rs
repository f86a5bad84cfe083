//! The command line.

use crate::objects::{Objects, Protocol};
use crate::{
    Outcome, backup, bench, bucket_cache, bucket_faults, bucket_speed, cpu, crash, damage, deaf, driver, eio, feed,
    footprint, generate, golden, index, jumps, launch, linear, malformed, metering, null, oracle, owners, partitions,
    power, proxy, replay, soak, startup, tables, throttle,
};
use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};
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
    Oracle {
        /// Server to ask, HOST:PORT.
        #[arg(long)]
        target: String,
        /// Write the answers down (the target should be Cassandra).
        #[arg(long)]
        record: bool,
        /// Pass with this share of equal answers (percent) in spite of unknown differences.
        #[arg(long)]
        threshold: Option<f64>,
        /// Folder of the scripts.
        #[arg(long, default_value_os_t = here("oracle/scripts"))]
        scripts: PathBuf,
        /// Names of scripts; all when none is given.
        only: Vec<String>,
    },
    /// Replays the facts of `golden/`.
    Golden {
        /// Server to ask, HOST:PORT.
        #[arg(long)]
        target: String,
        /// Least share of equal answers in scope, in percent.
        #[arg(long, default_value_t = 98.0)]
        threshold: f64,
        /// Names of files without extension; all when none is given.
        only: Vec<String>,
    },
    /// Asks random questions of a server and of Cassandra, and compares.
    Generate {
        /// Server to judge, HOST:PORT.
        #[arg(long)]
        target: String,
        /// Cassandra, HOST:PORT; without it one is started.
        #[arg(long)]
        cassandra: Option<String>,
        /// Of everything random.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Least number of statements to compare.
        #[arg(long, default_value_t = 3000)]
        statements: u64,
        /// Statements for each table.
        #[arg(long, default_value_t = 400)]
        per_table: u64,
        /// Tables at work at the same time.
        #[arg(long, default_value_t = 8)]
        workers: usize,
        /// The first round (table) of the seed to ask.
        #[arg(long, default_value_t = 0)]
        first_round: u64,
        /// Most rounds.
        #[arg(long)]
        rounds: Option<u64>,
        /// Make no indexes.
        #[arg(long)]
        without_indexes: bool,
        /// The servers ask for a login (cassandra/cassandra): make roles too, and ask as them.
        #[arg(long)]
        login: bool,
        /// Drop columns of every table and add them again, with timestamps before, at and behind the writes.
        #[arg(long)]
        dropped_columns: bool,
        /// Folder that takes shrunken differences as scripts.
        #[arg(long)]
        keep: Option<PathBuf>,
        /// Longest time for making one difference small, seconds.
        #[arg(long, default_value_t = 120)]
        shrink_seconds: u64,
        /// Ask so many statements with two faults each instead, and compare which fault the servers name.
        #[arg(long)]
        two_faults: Option<u64>,
        /// Print every statement with Cassandra's answer, and what known differences look like.
        #[arg(long)]
        verbose: bool,
    },
    /// Load on Helenus, a server that does nothing, and Cassandra.
    Bench {
        /// Seconds of each measured phase.
        #[arg(long, default_value_t = 5)]
        seconds: u64,
        /// Seconds of the same before measuring.
        #[arg(long, default_value_t = 5)]
        warmup: u64,
        #[command(flatten)]
        load: bench::Load,
        /// Operations of each measured phase, in place of seconds: the same work however fast the machine is.
        #[arg(long)]
        operations: Option<u64>,
        /// Leave Cassandra out.
        #[arg(long)]
        without_cassandra: bool,
        /// Only what a change feed costs a write, on each engine: tables without a feed, with the incremental one, with the full fidelity one.
        #[arg(long)]
        feeds: bool,
        /// Fail below 3 × (insert), 5 × (point read, slice) Cassandra's operations by processor second.
        #[arg(long)]
        strict: bool,
    },
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
    Linear {
        /// Operations to be answered.
        #[arg(long, default_value_t = 100_000)]
        operations: u64,
        /// Clients at once.
        #[arg(long, default_value_t = 64)]
        clients: usize,
        /// Partitions of two registers.
        #[arg(long, default_value_t = 16)]
        pairs: i32,
        /// How often the server is killed.
        #[arg(long, default_value_t = 40)]
        kills: u64,
        /// Of operations and moments.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Splits, merges, lifts and lowers physical partitions of a table under load, with kills: is anything lost, doubled or slow?
    Partitions {
        /// Rows of the table.
        #[arg(long, default_value_t = 200_000)]
        rows: u32,
        /// Splits, merges, lifts and lowers.
        #[arg(long, default_value_t = 200)]
        changes: u32,
        /// How many of them move a partition into a store of its own or back; a twentieth if not given.
        #[arg(long)]
        lifts: Option<u32>,
        /// How many changes the server is killed in.
        #[arg(long, default_value_t = 20)]
        kills: u32,
        /// Clients that write, 16 requests in flight each.
        #[arg(long, default_value_t = 4)]
        writers: u32,
        /// Changes between two readings of the whole table, beyond half a million rows.
        #[arg(long, default_value_t = 25)]
        full_every: u32,
        /// Longest time without an acknowledged write in 99 of a hundred changes, milliseconds.
        #[arg(long, default_value_t = 50)]
        pause_millis_max: u64,
        /// Of everything random.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Cuts the power of a server's disk under load, again and again, and checks what it promised.
    Power {
        /// How often, for each engine and durability.
        #[arg(long, default_value_t = 20)]
        cuts: i32,
        /// Cuts of one disk; the next ones begin with an empty disk.
        #[arg(long, default_value_t = 25)]
        cuts_per_disk_max: i32,
        /// Engine, as a data URL begins; may be repeated. Both if not given.
        #[arg(long, value_parser = launch::engine)]
        engine: Vec<String>,
        /// Durability; may be repeated. All three if not given.
        #[arg(long)]
        durability: Vec<String>,
        /// Leave out the runs that have to lose.
        #[arg(long)]
        without_controls: bool,
        /// Of everything random.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Fails syncs one by one, and fills disks: is anything lost, or served that could be?
    Eio {
        /// Syncs of each kind that fail, from the first one on.
        #[arg(long, default_value_t = 60)]
        calls: u32,
        /// How often a disk is filled, for each engine.
        #[arg(long, default_value_t = 30)]
        fulls: u32,
        /// How many first starts meet the end of the disk, for each engine, each with a block more than the one before.
        #[arg(long, default_value_t = 60)]
        first_starts: u32,
        /// Engine, as a data URL begins; may be repeated. Both if not given.
        #[arg(long, value_parser = launch::engine)]
        engine: Vec<String>,
        /// Of moments and bytes.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Damages files of a stopped server: right answers, or a refusal that changes nothing?
    Damage {
        /// Damages for each engine.
        #[arg(long, default_value_t = 500)]
        trials: u32,
        /// Engine, as a data URL begins; may be repeated. Both if not given.
        #[arg(long, value_parser = launch::engine)]
        engine: Vec<String>,
        /// Of the damages.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Restarts servers with clocks an hour off: does a client without timestamps read what it wrote?
    Clock {
        /// Restarts for each engine.
        #[arg(long, default_value_t = 100)]
        rounds: u32,
        /// Statements of a round.
        #[arg(long, default_value_t = 60)]
        statements: u32,
        /// Engine, as a data URL begins; may be repeated. Both if not given.
        #[arg(long, value_parser = launch::engine)]
        engine: Vec<String>,
        /// Of statements and offsets.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
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
    Deaf {
        /// Connections that do not read.
        #[arg(long, default_value_t = 2000)]
        connections: usize,
        /// Requests in flight on each.
        #[arg(long, default_value_t = 16)]
        requests: i16,
        /// Argument of the server; may be repeated.
        #[arg(long, allow_hyphen_values = true)]
        argument: Vec<String>,
        /// Memory that unread answers may take, in MiB.
        #[arg(long, default_value_t = 256)]
        budget_mebibytes: u64,
        /// Longest read of one row by another at the 99th percentile, milliseconds.
        #[arg(long, default_value_t = 100.0)]
        read_millis_max: f64,
    },
    /// Times a start from a long log.
    LogReplay {
        /// Size of the log, in MiB.
        #[arg(long, default_value_t = 1024)]
        mebibytes: u64,
        /// Longest time to the first answer, seconds.
        #[arg(long, default_value_t = 10.0)]
        seconds_max: f64,
        /// Engine, as a data URL begins.
        #[arg(long, default_value = "file", value_parser = launch::engine)]
        engine: String,
    },
    /// All faults at once, for a long time; with a rate, load without faults, under a watch of memory and disk.
    Soak {
        /// How long.
        #[arg(long, default_value_t = 60)]
        minutes: u64,
        /// Mixed operations a second. No faults then: memory, disk and data are printed and have ceilings.
        #[arg(long)]
        rate: Option<u64>,
        /// Leave clocks as they are.
        #[arg(long)]
        without_jumps: bool,
        /// Of everything random.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
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
    Metering {
        /// Compare servers of this program with those of another one instead, both with metering.
        #[arg(long)]
        against: Option<PathBuf>,
        /// How often servers are started.
        #[arg(long, default_value_t = 5)]
        starts: usize,
        /// Groups of four rounds for each kind of operation and start.
        #[arg(long, default_value_t = 5)]
        fours: usize,
        /// Length of a round, milliseconds.
        #[arg(long, default_value_t = 500)]
        round_millis: u64,
        /// Fail when the ratio of processor time with metering to that without is surely above.
        #[arg(long)]
        ratio_max: Option<f64>,
        #[command(flatten)]
        load: bench::Load,
    },
    /// Counts the instructions for an operation of this checkout's server and of a base's, under callgrind.
    Cpu {
        #[command(flatten)]
        options: cpu::Options,
    },
    /// Measures the time to the first answer, and memory when idle.
    Startup {
        /// How many starts.
        #[arg(long, default_value_t = 5)]
        runs: usize,
        /// Longest start in the median, in milliseconds.
        #[arg(long, default_value_t = 50.0)]
        start_millis_max: f64,
        /// Longest reset that keeps the schema of 20 tables, of 99 in a hundred, in milliseconds.
        #[arg(long, default_value_t = 5.0)]
        reset_millis_max: f64,
    },
    /// Creates many tables.
    Tables {
        /// How many.
        #[arg(long, default_value_t = 2000)]
        count: usize,
    },
    /// Overloads tables of limited throughput, and compares what was admitted with what was provisioned.
    Throttle {
        /// Seconds of each phase.
        #[arg(long, default_value_t = 30)]
        seconds: u64,
        /// Request units a second of the tables.
        #[arg(long, value_delimiter = ',', default_value = "400,4000,40000")]
        rates: Vec<u32>,
        /// Connections.
        #[arg(long, default_value_t = 4)]
        connections: usize,
    },
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

/// A path inside this crate.
pub fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Runs what the command line asks for; true when all that was checked held.
///
/// # Errors
/// When a run could not go on.
pub fn run() -> Outcome<bool> {
    match Arguments::parse().command {
        Command::Oracle {
            target,
            record,
            threshold,
            scripts,
            only,
        } => oracle::report::run(&oracle::report::Options {
            address: target,
            folder: scripts,
            only,
            record,
            threshold,
        }),
        Command::Golden {
            target,
            threshold,
            only,
        } => golden::run(&golden::Options {
            address: target,
            folder: here("golden"),
            only,
            threshold,
        }),
        Command::Generate {
            target,
            cassandra,
            seed,
            statements,
            per_table,
            workers,
            first_round,
            rounds,
            without_indexes,
            login,
            dropped_columns,
            keep,
            shrink_seconds,
            two_faults,
            verbose,
        } => generate::run(&generate::Options {
            target,
            cassandra,
            seed,
            statements,
            per_table,
            workers,
            first_round,
            rounds,
            indexes: !without_indexes,
            roles: login,
            dropped_columns,
            keep,
            shrink: Duration::from_secs(shrink_seconds),
            two_faults,
            verbose,
        }),
        Command::Bench {
            seconds,
            warmup,
            load,
            operations,
            without_cassandra,
            feeds,
            strict,
        } => bench::run(&bench::Options {
            phase: Duration::from_secs(seconds),
            warmup: Duration::from_secs(warmup),
            load,
            operations,
            cassandra: !without_cassandra,
            feeds,
            ratios: strict.then_some((3.0, 5.0, 5.0)),
        }),
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
        Command::Linear {
            operations,
            clients,
            pairs,
            kills,
            seed,
        } => linear::run(&linear::Options {
            operations,
            clients,
            pairs,
            kills,
            seed,
        }),
        Command::Partitions {
            rows,
            changes,
            lifts,
            kills,
            writers,
            full_every,
            pause_millis_max,
            seed,
        } => partitions::run(&partitions::Options {
            rows,
            changes,
            lifts: lifts.unwrap_or(changes / 20),
            kills,
            writers: writers.max(1),
            full_every: full_every.max(1),
            pause_max: Duration::from_millis(pause_millis_max),
            seed,
        }),
        Command::Power {
            cuts,
            cuts_per_disk_max,
            engine,
            durability,
            without_controls,
            seed,
        } => power::run(&power::Options {
            cuts,
            cuts_per_disk_max,
            engines: engine,
            durabilities: durability,
            controls: !without_controls,
            seed,
        }),
        Command::Eio {
            calls,
            fulls,
            first_starts,
            engine,
            seed,
        } => eio::run(&eio::Options {
            calls,
            fulls,
            first_starts,
            engines: engine,
            seed,
        }),
        Command::Damage { trials, engine, seed } => damage::run(&damage::Options {
            trials,
            engines: engine,
            seed,
        }),
        Command::Clock {
            rounds,
            statements,
            engine,
            seed,
        } => jumps::run(&jumps::Options {
            rounds,
            statements,
            engines: engine,
            seed,
        }),
        Command::Backup { backups, engine } => backup::run(backups, &engine),
        Command::Deaf {
            connections,
            requests,
            argument,
            budget_mebibytes,
            read_millis_max,
        } => deaf::run(&deaf::Options {
            connections,
            requests,
            arguments: argument,
            budget_mebibytes,
            read_millis_max,
        }),
        Command::LogReplay {
            mebibytes,
            seconds_max,
            engine,
        } => replay::run(&replay::Options {
            mebibytes,
            seconds_max,
            engine,
        }),
        Command::Soak {
            minutes,
            rate: Some(rate),
            seed,
            ..
        } => footprint::run(&footprint::Options { rate, minutes, seed }),
        Command::Soak {
            minutes,
            without_jumps,
            seed,
            ..
        } => soak::run(&soak::Options {
            minutes,
            without_jumps,
            seed,
        }),
        Command::Malformed { frames, seed } => malformed::run(frames, seed),
        Command::Metering {
            against,
            starts,
            fours,
            round_millis,
            ratio_max,
            load,
        } => metering::run(&metering::Options {
            against,
            starts,
            fours,
            round: Duration::from_millis(round_millis),
            ratio_max,
            load,
        }),
        Command::Cpu { options } => cpu::run(&options),
        Command::Startup {
            runs,
            start_millis_max,
            reset_millis_max,
        } => startup::run(startup::Options {
            runs,
            start_millis_max,
            reset_millis_max,
        }),
        Command::Tables { count } => tables::run(count),
        Command::Throttle {
            seconds,
            rates,
            connections,
        } => throttle::run(&throttle::Options {
            phase: Duration::from_secs(seconds),
            rates,
            connections,
        }),
        Command::Driver { target } => driver::run(&target),
        Command::Null { listen, ready_file } => null::run(&listen, ready_file.as_deref()),
        Command::Proxy { listen, target } => proxy::run(&listen, &target),
    }
}
