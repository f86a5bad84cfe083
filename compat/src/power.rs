//! Power cuts: a server on a disk of its own ([`disk`](crate::disk)) loses its power at random moments under load, again and again,
//! some of the times while it recovers from the last cut.
//!
//! ```text
//! start ─► check what the last cut left ─► writers, batches over two stores, deletions, sweeps, lifts, lowers, index builds
//!   ▲                                                                   │ at a random moment
//!   └── power on ◄── (a quarter: start, cut within the recovery) ◄── freeze, cut, kill
//! ```
//! What must be there depends on the durability:
//!
//! - `group`: all that was acknowledged;
//! - `periodic:100`: what was acknowledged `PERIODIC_SLACK` before the cut and before its client's last acknowledgement; `os`: nothing need be;
//! - any: the server starts, no batch is half there, what is there of a client's writes is what it wrote first, `check-indexes` holds.
//!
//! **Negative controls.** With `os` (`file` only), and with syncs that do nothing (strace answers for the kernel), the same run judged as `group`
//! must lose; a run whose controls lose nothing fails.

use crate::crash::check::{self, Kept};
use crate::crash::writers::{Clients, Refusals, Writers};
use crate::crash::{self, Promises};
use crate::disk::Disk;
use crate::launch::{self, Injection, Launch, each_engine};
use crate::mover::{Moved, Mover};
use crate::server::Server;
use crate::{Error, Outcome, clock};
use clap::Args;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a run does.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// How often, for each engine and durability.
    #[arg(long, default_value_t = 20)]
    pub cuts: i32,
    /// Cuts of one disk; the next ones begin with an empty disk. The checks after a cut read all rows of the disk.
    #[arg(long, default_value_t = 25)]
    pub cuts_per_disk_max: i32,
    /// Engine, as a data URL begins; may be repeated. Both if not given.
    #[arg(long = "engine", value_parser = launch::engine)]
    pub engines: Vec<String>,
    /// Durability; may be repeated. All three if not given.
    #[arg(long = "durability")]
    pub durabilities: Vec<String>,
    /// Leave out the runs that have to lose.
    #[arg(long)]
    pub without_controls: bool,
    /// Of everything random.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Size of the disk.
const DISK_MEBIBYTES: u64 = 6144;
/// What `periodic:100` may lose, with what a busy machine takes for a sync.
const PERIODIC_SLACK: Duration = Duration::from_millis(1000);
/// How long there is load before a cut, in milliseconds. The journal of the file system is committed every second.
const LOAD_MILLIS: std::ops::Range<u64> = 200..2600;
/// How long a load goes on at most until a partition was moved, in every other cycle, and how long then, in milliseconds.
const MOVE_WITHIN: Duration = Duration::from_secs(8);
const BEHIND_MOVE_MILLIS: std::ops::Range<u64> = 0..400;
/// How long a server may recover before it is cut again, in milliseconds.
const RECOVERY_MILLIS: std::ops::Range<u64> = 2..150;
/// Cuts of a control, at most.
const CONTROL_CUTS: i32 = 5;
/// Faults that are told of a variant.
const LINES_TOLD: usize = 10;
/// Conditional updates and increments are read before they are written: after a loss their clients' count is void.
const RELAXED: Clients = Clients {
    racers: 0,
    counters: 0,
    ..crash::CLIENTS
};

/// A server whose power is cut.
#[derive(Debug)]
struct Variant<'v> {
    engine: &'v str,
    durability: &'v str,
    /// Whether syncs do nothing.
    lies: bool,
    /// Whether it is judged as if it were `group`, and has to lose.
    is_control: bool,
}

impl std::fmt::Display for Variant<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let control = if self.is_control { "control " } else { "" };
        let lies = if self.lies { ", syncs do nothing" } else { "" };
        write!(f, "{control}{} {}{lies}", self.engine, self.durability)
    }
}

/// Runs; true when nothing was lost but by the controls.
///
/// # Errors
/// The machine cannot mount images, or the server refuses what it has to accept.
pub fn run(options: &Options) -> Outcome<bool> {
    let all = ["group", "periodic:100", "os"].map(str::to_owned);
    let durabilities = if options.durabilities.is_empty() {
        all.as_slice()
    } else {
        &options.durabilities
    };
    each_engine(&options.engines, |engine| {
        let mut held = true;
        for durability in durabilities {
            let variant = Variant {
                engine,
                durability,
                lies: false,
                is_control: false,
            };
            held &= variant.run_on_disks(options)?;
        }
        // SlateDB puts whole objects and syncs each, whatever the durability.
        let relaxed: &[(&str, bool)] = if engine == "file" { &[("os", false)] } else { &[] };
        for (durability, lies) in relaxed.iter().copied().chain([("group", true)]) {
            let variant = Variant {
                engine,
                durability,
                lies,
                is_control: true,
            };
            held &= options.without_controls || variant.run(CONTROL_CUTS, options.seed)?;
        }
        Ok(held)
    })
}

/// What was done and found.
#[derive(Debug, Default)]
struct Done {
    cuts: i32,
    in_recovery: u32,
    moved: Moved,
    slowest_start_millis: f64,
    lost: Vec<String>,
}

impl Variant<'_> {
    /// Whether it did as it must on each of the disks that the cuts need. Each disk has a seed of its own.
    fn run_on_disks(&self, options: &Options) -> Outcome<bool> {
        let mut held = true;
        let (mut left, mut seed) = (options.cuts, options.seed);
        while left > 0 {
            let cuts = left.min(options.cuts_per_disk_max.max(1));
            held &= self.run(cuts, seed)?;
            left -= cuts;
            seed = seed.wrapping_add(1);
        }
        Ok(held)
    }

    /// Whether it did as it must on one disk.
    fn run(&self, cuts: i32, seed: u64) -> Outcome<bool> {
        let folder = tempfile::tempdir()?;
        let disk = Disk::make(folder.path(), DISK_MEBIBYTES)?;
        let mut launch = Launch::new(self.engine, disk.path());
        launch = launch.with(&["--durability", self.durability, "--sweep-seconds", "1"]);
        launch.injection = self.lies.then(|| Injection {
            calls: "fsync,fdatasync",
            what: "retval=0".to_owned(),
            log: folder.path().join("strace"),
        });
        let mut run = Run {
            variant: self,
            launch: &launch,
            disk: &disk,
            folder: folder.path(),
            random: fastrand::Rng::with_seed(seed),
            promises: Promises::default(),
            done: Done::default(),
        };
        let begun = clock::now();
        match run.cycles(cuts) {
            Err(Error::Skipped(why)) => return Err(Error::Skipped(why)),
            // The server did not start, or refuses to be read: that is a finding.
            Err(error) => run.done.lost.push(error.to_string()),
            Ok(()) => {}
        }
        let Run { promises, done, .. } = run;
        for line in done.lost.iter().take(LINES_TOLD) {
            println!("power: {self}: {line}");
        }
        let left_out = launch.injection.as_ref().map(Injection::struck);
        println!(
            "power: {self}: {} cuts ({} in a recovery), {}; {}; {} faults; slowest start {:.0} ms, {:.0} s, seed {seed}{}",
            done.cuts,
            done.in_recovery,
            promises.acknowledged(),
            done.moved,
            done.lost.len(),
            done.slowest_start_millis,
            begun.elapsed().as_secs_f64(),
            left_out.map_or_else(String::new, |calls| format!(", {calls} syncs left out")),
        );
        if done.cuts == 0 || !promises.has_rows() || left_out == Some(0) {
            println!("power: {self}: nothing proved");
            return Ok(false);
        }
        if self.is_control && done.lost.is_empty() {
            println!("power: {self}: lost nothing, so that this run proves nothing");
        }
        Ok(self.is_control != done.lost.is_empty())
    }

    /// Whether all that was acknowledged must be there.
    fn keeps_all(&self) -> bool {
        self.is_control || self.durability == "group"
    }

    /// What must be there after a cut at this instant.
    fn kept(&self, cut: Instant) -> Kept {
        match self.durability {
            _ if self.keeps_all() => Kept::All,
            "os" => Kept::Nothing,
            _ => Kept::LongBefore {
                cut,
                slack: PERIODIC_SLACK,
            },
        }
    }
}

/// The cycles of a variant.
struct Run<'r> {
    variant: &'r Variant<'r>,
    launch: &'r Launch,
    disk: &'r Disk,
    folder: &'r Path,
    random: fastrand::Rng,
    promises: Promises,
    done: Done,
}

impl Run<'_> {
    fn cycles(&mut self, cuts: i32) -> Outcome<()> {
        let mut server = self.start()?;
        crash::create(&mut server.connect()?)?;
        if !self.variant.keeps_all() {
            // The tables themselves are not to be lost.
            self.disk.sync()?;
        }
        for cycle in 0..cuts {
            let cut = self.load_and_cut(server, cycle)?;
            if self.random.u8(..4) == 0 {
                self.cut_in_recovery()?;
            }
            if cycle % 2 == 1 {
                self.done.lost.extend(self.launch.check_indexes()?);
            }
            server = self.start()?;
            let kept = self.variant.kept(cut);
            let mut connection = server.connect()?;
            check::all(&mut connection, &self.promises, cycle, kept, &mut self.done.lost)?;
            if !self.done.lost.is_empty() {
                return Ok(());
            }
            if kept != Kept::All {
                self.promises.forget();
            }
        }
        let mut connection = server.connect()?;
        for cycle in 0..cuts {
            check::all(&mut connection, &self.promises, cycle, Kept::All, &mut self.done.lost)?;
        }
        Ok(())
    }

    fn start(&mut self) -> Outcome<Server> {
        let begun = clock::now();
        let server = self.launch.start(self.folder)?;
        self.done.slowest_start_millis = self.done.slowest_start_millis.max(clock::millis_since(begun));
        Ok(server)
    }

    /// A cycle's load, until the power goes; when that was.
    fn load_and_cut(&mut self, server: Server, cycle: i32) -> Outcome<Instant> {
        let clients = if self.variant.keeps_all() {
            crash::CLIENTS
        } else {
            RELAXED
        };
        // What is refused is in doubt: after the cut every write is, until the server is killed.
        let refusals = Arc::new(Refusals::expected());
        let writers = Writers::start(server.address(), cycle, clients, &refusals);
        let mover = Mover::start(server.address(), self.random.u64(..));
        std::thread::sleep(Duration::from_millis(self.random.u64(LOAD_MILLIS)));
        // Moves are slow in SlateDB: of loads that end at random hardly one would meet any.
        if cycle % 2 == 0 {
            mover.await_move(MOVE_WITHIN);
            std::thread::sleep(Duration::from_millis(self.random.u64(BEHIND_MOVE_MILLIS)));
        }
        let cut = clock::now();
        // A sync that is under way when ext4 shuts down may answer "done" of a transaction that was dropped: nothing may be
        // acknowledged by it.
        server.freeze()?;
        self.disk.cut()?;
        server.kill()?;
        self.done.cuts += 1;
        writers.join(&mut self.promises)?;
        self.done.moved.add(mover.join()?);
        self.disk.power_on()?;
        Ok(cut)
    }

    fn cut_in_recovery(&mut self) -> Outcome<()> {
        let starting = self.launch.begin(self.folder)?;
        std::thread::sleep(Duration::from_millis(self.random.u64(RECOVERY_MILLIS)));
        self.disk.cut()?;
        drop(starting);
        self.disk.power_on()?;
        self.done.in_recovery += 1;
        Ok(())
    }
}
