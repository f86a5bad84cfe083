//! Calls that fail: the Nth sync of each thread of the server answers EIO, or the disk is full from some byte on.
//!
//! ```text
//! EIO:  start under strace ─► load ─► the Nth fsync or fdatasync fails, once or from then on ─► refusals ─► kill -9, or cut
//!         ─► start: all acknowledged is there; what is served now is noted ─► cut ─► start: all of that is still there
//! full: load ─► fill the disk but for a few bytes ─► refusals, reads go on ─► free it ─► writes again ─► kill -9 ─► start, check
//! first start: fill the disk but for N blocks ─► start a new store, then load ─► a refusal that names the disk, at the start or later
//!         ─► kill -9 ─► free it ─► start, check
//! ```
//! A call of the server meets the end of the disk where it needs one block more than there is; with N from 0 on each such call of a first
//! start is met, since the number of blocks that it needs before is the same each time.
//!
//! A sync that failed says nothing about what came before it (the kernel forgets the failed pages), so that a server that goes on
//! writing as if nothing had been fails here, and so does one that serves after a start what no sync ever held.
//!
//! **Negative control.** Syncs that answer "done" and do nothing, and a cut: that run must lose.
//!
//! strace's EIO leaves the pages dirty, where a disk's would leave them clean: a server that only syncs again, in place of writing again,
//! is not seen here.
//!
//! Deliberately absent: an EIO of a read, or of a write that is no sync. Without root and loop devices the EIO runs are had without
//! the cut, and those of the full disk are left out.

use crate::crash::writers::{Refusals, Writers};
use crate::crash::{self, Promises, check};
use crate::disk::Disk;
use crate::launch::{self, Injection, Launch, each_engine};
use crate::mover::Mover;
use crate::server::Server;
use crate::{Error, Outcome, clock, tools};
use check::Kept;
use clap::Args;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a run does.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Syncs of each kind that fail: of `fdatasync` spread over the first 60 of a thread, of `fsync` the first ones.
    #[arg(long, default_value_t = 60)]
    pub calls: u32,
    /// How often a disk is filled, for each engine.
    #[arg(long, default_value_t = 30)]
    pub fulls: u32,
    /// How many first starts meet the end of the disk, for each engine, each with a block more than the one before.
    #[arg(long, default_value_t = 60)]
    pub first_starts: u32,
    /// Engine, as a data URL begins; may be repeated. Both if not given.
    #[arg(long = "engine", value_parser = launch::engine)]
    pub engines: Vec<String>,
    /// Of moments and bytes.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Size of the disk, of which the file takes a small part: at least twenty times what the server keeps free by default.
const DISK_MEBIBYTES: u64 = 6144;
/// Syncs of a thread among which those that fail are spread.
const CALLS: u32 = 60;
/// Longest load until a disk is full; its rows are of a cycle of long ones.
const FILLING_MAX: Duration = Duration::from_secs(15);
const LONG_ROWS_CYCLE: i32 = 3;
/// Longest load of a trial, and how long it goes on after the first refusal.
const LOAD_MAX: Duration = Duration::from_millis(2500);
const AFTER_REFUSAL: Duration = Duration::from_millis(600);
/// Bytes by which the next first start finds more room: a block of the file system.
const BLOCK_BYTES: u64 = 4096;
/// Longest wait for a write to be taken once a full disk has room.
const WRITES_AGAIN_MAX: Duration = Duration::from_secs(10);
/// Bytes that a disk with a reserve is left with, a little less than the reserve, of which writers take a part before the server looks.
const RESERVED_FREE_BYTES: u64 = 240 << 20;

/// What a line of the log says that tells of an EIO, and of a full disk.
const NAMES_EIO: [&str; 2] = ["os error 5", "Input/output error"];
const NAMES_FULL: [&str; 4] = ["full", "No space left", "os error 28", "disk-reserve-bytes"];
/// What a server says that goes on as if nothing had been.
const GOES_ON: &str = "takes writes again";

/// Runs; true when nothing was lost but by the control.
///
/// # Errors
/// strace is missing, or the machine refuses.
pub fn run(options: &Options) -> Outcome<bool> {
    tools::need("strace", "strace")?;
    each_engine(&options.engines, |engine| of_engine(engine, options))
}

fn of_engine(engine: &str, options: &Options) -> Outcome<bool> {
    let folder = tempfile::tempdir()?;
    let disk = match Disk::make(folder.path(), DISK_MEBIBYTES) {
        Ok(disk) => Some(disk),
        Err(Error::Skipped(why)) => {
            println!("eio: {engine}: no cuts and no full disk: {why}");
            None
        }
        Err(error) => return Err(error),
    };
    let mut trials = Trials {
        engine,
        disk: disk.as_ref(),
        folder: folder.path(),
        done: Done::default(),
    };
    let begun = clock::now();
    for call in ["fdatasync", "fsync"] {
        for trial in 0..options.calls {
            // The log is synced all the time; whole files are seldom: the first ones of a thread are all there are.
            let number = match call {
                "fdatasync" => 1 + trial * CALLS.max(options.calls) / options.calls,
                _ => 1 + trial,
            };
            // Once: does it go on as if nothing had been? From then on: nothing after it was ever synced.
            let onward = if trial % 2 == 1 { "+" } else { "" };
            // A new store syncs whole files in its start; one that is there, when memtables are written out.
            let is_new = trial % 3 == 0;
            // The next seed has the other endings.
            let ending = match (u64::from(trial / 2) + options.seed) % 2 {
                0 => Ending::Kill,
                _ => Ending::Cut,
            };
            trials.eio(call, &format!("error=EIO:when={number}{onward}"), is_new, ending)?;
        }
    }
    let mut held = trials.report(&format!("EIO, seed {}", options.seed), begun);
    let Some(disk) = &disk else { return Ok(held) };

    trials.done = Done::default();
    let begun = clock::now();
    let mut random = fastrand::Rng::with_seed(options.seed);
    for number in 0..options.fulls {
        trials.full(disk, number, &mut random)?;
    }
    held &= options.fulls == 0 || trials.report(&format!("full disk, seed {}", options.seed), begun);

    trials.done = Done::default();
    let begun = clock::now();
    for blocks in 0..options.first_starts {
        trials.first_start(disk, blocks)?;
    }
    held &= options.first_starts == 0 || trials.report("first starts on a full disk", begun);

    trials.done = Done::default();
    trials.lies(disk)?;
    println!(
        "eio: {engine}: control, syncs do nothing: {} of {} syncs, {} faults",
        trials.done.struck,
        trials.done.trials,
        trials.done.faults.len()
    );
    Ok(held && !trials.done.faults.is_empty())
}

/// How a server whose sync failed ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// What it wrote and could not sync is still in the page cache when the next one starts.
    Kill,
    /// All of that is gone.
    Cut,
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Kill => "kill -9",
            Self::Cut => "a cut at once",
        })
    }
}

/// What was done and found.
#[derive(Debug, Default)]
struct Done {
    trials: u32,
    /// Trials in which the fault was met.
    struck: u32,
    /// Those of them that ended with a cut.
    cut: u32,
    refusals: u64,
    ended: u32,
    /// What refusals of the last load said.
    texts: Vec<String>,
    promises: Promises,
    faults: Vec<String>,
    slowest_again: Duration,
}

/// Trials of an engine.
struct Trials<'t> {
    engine: &'t str,
    disk: Option<&'t Disk>,
    folder: &'t Path,
    done: Done,
}

/// The rows that a server serves: of each inserter.
type Served = Vec<BTreeSet<i32>>;

impl Trials<'_> {
    /// A launch with data of its own; its log in a folder of its own.
    fn launch(&self, name: &str) -> Outcome<(Launch, std::path::PathBuf)> {
        let logs = self.folder.join(format!("{name}-logs"));
        std::fs::create_dir(&logs)?;
        let data = self.disk.map_or(self.folder, Disk::path).join(name);
        std::fs::create_dir(&data)?;
        Ok((Launch::new(self.engine, &data), logs))
    }

    fn fault(&mut self, what: &str, fault: impl std::fmt::Display) {
        let fault = format!("{what}: {fault}");
        println!("eio: {}: {}", self.engine, fault.chars().take(600).collect::<String>());
        self.done.faults.push(fault);
    }

    /// A trial in which calls of this name fail.
    fn eio(&mut self, call: &'static str, what: &str, is_new: bool, ending: Ending) -> Outcome<()> {
        let name = format!("{call}-{}", what.replace([':', '='], "-"));
        let (mut launch, logs) = self.launch(&name)?;
        let plain = launch.clone();
        if !is_new {
            let server = plain.start(&logs)?;
            crash::create(&mut server.connect()?)?;
            server.kill()?;
        }
        let injection = Injection {
            calls: call,
            what: what.to_owned(),
            log: logs.join("strace"),
        };
        launch.injection = Some(injection.clone());
        let (refusals, ended) = (self.done.refusals, self.done.ended);
        let cut = self.disk.filter(|_| ending == Ending::Cut);
        let (promises, is_created) = self.load(&launch, &logs, !is_new, cut)?;
        self.done.trials += 1;
        if let Some(disk) = cut {
            disk.power_on()?;
        }
        if injection.struck() == 0 {
            return self.forget(&name);
        }
        self.done.cut += u32::from(cut.is_some());
        self.done.struck += 1;
        let log = std::fs::read_to_string(logs.join("server.log")).unwrap_or_default();
        // SlateDB puts an object again, as a new file: that is right, and no more to be told than any other retry.
        let may_retry = self.engine != "file" && refusals == self.done.refusals && ended == self.done.ended;
        let told = std::mem::take(&mut self.done.texts).join("; ");
        if !may_retry
            && !NAMES_EIO
                .iter()
                .any(|named| log.contains(named) || told.contains(named))
        {
            let last = log.lines().last().unwrap_or_default();
            self.fault(
                &name,
                format!("neither the log nor a refusal tells of the EIO: {told}; last: {last}"),
            );
        }
        if log.contains(GOES_ON) {
            self.fault(&name, format!("\"{GOES_ON}\" after an EIO"));
        }
        if log.contains("panicked at") {
            self.fault(&name, "a panic");
        }
        match self.serve(&plain, &logs, &promises, is_created, None) {
            Err(error) => self.fault(&name, format!("after {ending}: {error}")),
            Ok(served) => {
                if let Some(disk) = self.disk {
                    disk.cut()?;
                    disk.power_on()?;
                    if let Err(error) = self.serve(&plain, &logs, &promises, is_created, Some(&served)) {
                        self.fault(&name, format!("after a cut: {error}"));
                    }
                }
            }
        }
        self.done.promises.add(promises);
        self.forget(&name)
    }

    /// The negative control.
    fn lies(&mut self, disk: &Disk) -> Outcome<()> {
        let (mut launch, logs) = self.launch("lies")?;
        let plain = launch.clone();
        let injection = Injection {
            calls: "fsync,fdatasync",
            what: "retval=0".to_owned(),
            log: logs.join("strace"),
        };
        launch.injection = Some(injection.clone());
        let (promises, is_created) = self.load(&launch, &logs, false, Some(disk))?;
        disk.power_on()?;
        self.done.trials = 1;
        self.done.struck = u32::from(injection.struck() > 0);
        if let Err(error) = self.serve(&plain, &logs, &promises, is_created, None) {
            self.fault("lies", error);
        }
        self.forget("lies")
    }

    /// Removes a trial's data.
    fn forget(&self, name: &str) -> Outcome<()> {
        std::fs::remove_dir_all(self.disk.map_or(self.folder, Disk::path).join(name))?;
        Ok(())
    }

    /// Starts a server whose calls fail, and writes until it refuses, ends, or for a while; then ends it, with the disk's power where
    /// there is one named. Whether there are all tables.
    fn load(
        &mut self,
        launch: &Launch,
        logs: &Path,
        was_created: bool,
        cut: Option<&Disk>,
    ) -> Outcome<(Promises, bool)> {
        let mut promises = Promises::default();
        // A start that fails names the fault, which the log is looked at for.
        let Ok(mut server) = launch.start(logs) else {
            self.done.ended += 1;
            cut.map_or(Ok(()), Disk::cut)?;
            return Ok((promises, was_created));
        };
        let create = |server: &Server| crash::create(&mut server.connect()?);
        let is_created = was_created || create(&server).is_ok();
        if is_created {
            let refusals = Arc::new(Refusals::expected());
            // Long rows fill memtables, lifts open stores: both sync whole files.
            let cycle = if launch
                .injection
                .as_ref()
                .is_some_and(|injection| injection.calls == "fsync")
            {
                LONG_ROWS_CYCLE
            } else {
                0
            };
            let writers = Writers::start(server.address(), cycle, crash::CLIENTS, &refusals);
            let mover = Mover::start(server.address(), 1);
            self.done.ended += u32::from(wait_for_refusals(&mut server, &refusals, LOAD_MAX)?);
            end(server, cut)?;
            writers.join(&mut promises)?;
            mover.join()?;
            self.done.refusals += refusals.count();
            self.done.texts = refusals.texts();
        } else {
            end(server, cut)?;
        }
        Ok((promises, is_created))
    }

    /// Starts a server on what is left, checks what was promised, and that all that was served before is there.
    fn serve(
        &mut self,
        launch: &Launch,
        logs: &Path,
        promises: &Promises,
        is_created: bool,
        before: Option<&Served>,
    ) -> Outcome<Served> {
        let server = launch.start(logs)?;
        let mut connection = server.connect()?;
        let mut served = Served::new();
        if is_created {
            let mut lost = Vec::new();
            for cycle in [0, LONG_ROWS_CYCLE] {
                check::all(&mut connection, promises, cycle, Kept::All, &mut lost)?;
                for writer in 0..crash::CLIENTS.inserters {
                    served.push(check::found_rows(&mut connection, cycle, writer)?.into_keys().collect());
                }
            }
            let gone = before
                .into_iter()
                .flatten()
                .zip(&served)
                .map(|(before, now)| before.difference(now).count());
            match gone.sum::<usize>() {
                0 => {}
                gone => lost.push(format!("{gone} rows were served after a start, and are gone")),
            }
            if let Some(first) = lost.first() {
                return Err(Error::failed(format!("{} lost, first: {first}", lost.len())));
            }
        }
        drop(connection);
        server.kill()?;
        Ok(served)
    }

    /// A trial with a full disk.
    fn full(&mut self, disk: &Disk, number: u32, random: &mut fastrand::Rng) -> Outcome<()> {
        let name = format!("full-{number}");
        let (mut launch, logs) = self.launch(&name)?;
        // Every other trial meets the end of the disk itself.
        let is_reserved = number % 2 == 1;
        if !is_reserved {
            launch = launch.with(&["--disk-reserve-bytes", "0"]);
        }
        let mut server = launch.start(&logs)?;
        crash::create(&mut server.connect()?)?;
        let refusals = Arc::new(Refusals::expected());
        let mut promises = Promises::default();
        let writers = Writers::start(server.address(), LONG_ROWS_CYCLE, crash::CLIENTS, &refusals);
        std::thread::sleep(Duration::from_millis(random.u64(50..500)));
        let least_free = if is_reserved { RESERVED_FREE_BYTES } else { 0 };
        let filler = disk.fill(least_free + random.u64(..2 << 20))?;
        let has_ended = wait_for_refusals(&mut server, &refusals, FILLING_MAX)?;
        let reads = server
            .connect()
            .and_then(|mut connection| connection.must("SELECT v FROM crash.register WHERE k = 0"));
        if is_reserved && !has_ended && refusals.count() > 0 {
            let deleted = server
                .connect()
                .and_then(|mut connection| connection.must("DELETE FROM crash.register WHERE k = -1"));
            if let Err(error) = deleted {
                self.fault(&name, format!("a deletion while the reserve is kept: {error}"));
            }
        }
        std::fs::remove_file(&filler)?;
        self.done.trials += 1;
        self.done.struck += u32::from(refusals.count() > 0);
        self.done.refusals += refusals.count();
        if has_ended {
            self.fault(&name, "the server ended on a full disk");
        } else {
            // A store whose manifest cannot be written is closed until there is room. Gap: disk-5.
            if let (Err(error), "file") = (reads, self.engine) {
                self.fault(&name, format!("a read while the disk is full: {error}"));
            }
            self.writes_again(&server, &name);
        }
        if refusals.count() > 0 && !refusals.texts().iter().any(|text| names_full(text)) {
            self.fault(&name, format!("no refusal names the full disk: {:?}", refusals.texts()));
        }
        server.kill()?;
        writers.join(&mut promises)?;
        if let Err(error) = self.serve(&launch, &logs, &promises, true, None) {
            self.fault(&name, format!("after kill -9: {error}"));
        }
        self.done.promises.add(promises);
        self.forget(&name)
    }

    /// A first start with this many blocks free, and what follows while it goes well.
    fn first_start(&mut self, disk: &Disk, blocks: u32) -> Outcome<()> {
        let name = format!("first-{blocks}");
        let (launch, logs) = self.launch(&name)?;
        let launch = launch.with(&["--disk-reserve-bytes", "0"]);
        let filler = disk.fill(u64::from(blocks) * BLOCK_BYTES)?;
        let mut promises = Promises::default();
        let mut is_created = false;
        let mut told = Vec::new();
        match launch.start(&logs) {
            Err(error) => {
                self.done.ended += 1;
                told.push(error.to_string());
            }
            Ok(mut server) => match server.connect().and_then(|mut to| crash::create(&mut to)) {
                Err(error) => {
                    told.push(error.to_string());
                    server.kill()?;
                }
                Ok(()) => {
                    is_created = true;
                    let refusals = Arc::new(Refusals::expected());
                    let writers = Writers::start(server.address(), LONG_ROWS_CYCLE, crash::CLIENTS, &refusals);
                    if wait_for_refusals(&mut server, &refusals, LOAD_MAX)? {
                        self.fault(&name, "the server ended on a full disk");
                    }
                    server.kill()?;
                    writers.join(&mut promises)?;
                    self.done.refusals += refusals.count();
                    told = refusals.texts();
                }
            },
        }
        std::fs::remove_file(&filler)?;
        self.done.trials += 1;
        self.done.struck += u32::from(!told.is_empty());
        if !told.is_empty() && !told.iter().any(|text| names_full(text)) {
            self.fault(&name, format!("nothing names the full disk: {told:?}"));
        }
        if told.iter().any(|text| text.contains("panicked")) {
            self.fault(&name, "a panic");
        }
        match self.serve(&launch, &logs, &promises, is_created, None) {
            Err(error) => self.fault(&name, format!("with room again: {error}")),
            Ok(_) if !is_created => self.is_usable(&launch, &logs, &name)?,
            Ok(_) => {}
        }
        self.done.promises.add(promises);
        self.forget(&name)
    }

    /// Sees that a store whose first start failed takes a schema, whatever of one it has.
    fn is_usable(&mut self, launch: &Launch, logs: &Path, name: &str) -> Outcome<()> {
        let server = launch.start(logs)?;
        let made = server.connect().and_then(|mut connection| {
            connection.must("DROP KEYSPACE IF EXISTS crash")?;
            crash::create(&mut connection)
        });
        if let Err(error) = made {
            self.fault(name, format!("no schema with room again: {error}"));
        }
        server.kill()
    }

    /// Waits until a write is taken.
    fn writes_again(&mut self, server: &Server, name: &str) {
        let begun = clock::now();
        loop {
            let written = server.connect().and_then(|mut connection| {
                connection.must("INSERT INTO crash.one (cycle, writer, seq) VALUES (-1, -1, 0)")
            });
            match written {
                Ok(_) => break,
                Err(error) if begun.elapsed() > WRITES_AGAIN_MAX => {
                    self.fault(name, format!("no writes with room again: {error}"));
                    break;
                }
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
        self.done.slowest_again = self.done.slowest_again.max(begun.elapsed());
    }

    /// Prints what was done; whether it held.
    fn report(&self, what: &str, begun: Instant) -> bool {
        let done = &self.done;
        println!(
            "eio: {}: {what}: {} trials, the fault was met in {} ({} ended with a cut), {} refusals, {} servers ended, {}; {} faults; writes again after \
             {} ms at most; {:.0} s",
            self.engine,
            done.trials,
            done.struck,
            done.cut,
            done.refusals,
            done.ended,
            done.promises.acknowledged(),
            done.faults.len(),
            done.slowest_again.as_millis(),
            begun.elapsed().as_secs_f64()
        );
        if done.struck == 0 {
            println!("eio: {}: {what}: nothing proved", self.engine);
        }
        done.struck > 0 && done.faults.is_empty()
    }
}

/// Ends a server, and cuts the power of its disk first where one is named: nothing is acknowledged after that.
fn end(server: Server, cut: Option<&Disk>) -> Outcome<()> {
    if let Some(disk) = cut {
        // One that has ended cannot be stopped.
        drop(server.freeze());
        disk.cut()?;
    }
    server.kill()
}

fn names_full(text: &str) -> bool {
    NAMES_FULL.iter().any(|named| text.contains(named))
}

/// Waits for the first refusals and a little longer, or for a while; whether the server has ended.
fn wait_for_refusals(server: &mut Server, refusals: &Refusals, load_max: Duration) -> Outcome<bool> {
    let begun = clock::now();
    let mut first: Option<Instant> = None;
    while begun.elapsed() < load_max && first.is_none_or(|first| first.elapsed() < AFTER_REFUSAL) {
        if server.ended()?.is_some() {
            return Ok(true);
        }
        if first.is_none() && refusals.count() > 0 {
            first = Some(clock::now());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(false)
}
