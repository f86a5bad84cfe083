//! Everything at once, for as long as one likes: writers, conditional updates, batches over two stores, deletions under sweeps, lifts and
//! lowers, index builds, clients that do not read, clocks that jump, kills and power cuts, on both engines in turn.
//!
//! ```text
//! epoch: a new store ─► [start at some clock ─► check ─► load, deaf clients ─► kill -9 or cut ] × 20 ─► check all ─► the other engine
//! ```
//! The checks are those of [`crash`]; what the single runs measure closely is not measured again. Cuts need root and loop
//! devices, jumps libfaketime: what is missing is told, and left out.

use crate::crash::check::{self, Kept};
use crate::crash::writers::{Refusals, Writers};
use crate::crash::{self, Promises};
use crate::disk::Disk;
use crate::launch::{ENGINES, Launch};
use crate::mover::{Moved, Mover};
use crate::{Error, Outcome, clock, deaf, tools};
use clap::Args;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What a run does.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// How long.
    #[arg(long, default_value_t = 60)]
    pub minutes: u64,
    /// Mixed operations a second. No faults then: memory, disk and data are printed and have ceilings.
    #[arg(long)]
    pub rate: Option<u64>,
    /// Leave clocks as they are.
    #[arg(long)]
    pub without_jumps: bool,
    /// Of everything random.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Cycles on one store.
const EPOCH_CYCLES: i32 = 20;
/// Size of the disk.
const DISK_MEBIBYTES: u64 = 4096;
/// Load of a cycle, in milliseconds.
const LOAD_MILLIS: std::ops::Range<u64> = 500..4000;
/// Where clocks stand, in seconds from the machine's.
const OFFSETS: [i64; 4] = [0, 0, -3600, 3600];
/// Clients that do not read.
const DEAF: usize = 8;

#[derive(Debug, Default)]
struct Done {
    cycles: u32,
    kills: u32,
    cuts: u32,
    jumps: u32,
    refusals: u64,
    moved: Moved,
    promises: Promises,
    lost: Vec<String>,
    slowest_start_millis: f64,
}

/// Runs; true when nothing promised was lost.
///
/// # Errors
/// A server does not start again, or refuses what it has to accept.
pub fn run(options: &Options) -> Outcome<bool> {
    let folder = tempfile::tempdir()?;
    let disk = optional(Disk::make(folder.path(), DISK_MEBIBYTES), "cuts")?;
    let jumps = !options.without_jumps && optional(tools::faketime(), "jumps")?.is_some();
    let mut soak = Soak {
        disk: disk.as_ref(),
        folder: folder.path(),
        jumps,
        random: fastrand::Rng::with_seed(options.seed),
        done: Done::default(),
    };
    let begun = clock::now();
    let until = Duration::from_secs(options.minutes * 60);
    let mut epoch = 0;
    while begun.elapsed() < until && soak.done.lost.is_empty() {
        for engine in ENGINES {
            let cycles = soak.epoch(engine, epoch, || begun.elapsed() < until);
            if let Err(error) = cycles {
                soak.done.lost.push(format!("{engine}: {error}"));
            }
            epoch += 1;
            if !soak.done.lost.is_empty() {
                break;
            }
        }
        println!(
            "soak: {:.0} s, {} cycles",
            begun.elapsed().as_secs_f64(),
            soak.done.cycles
        );
    }
    let done = &soak.done;
    for line in done.lost.iter().take(50) {
        println!("soak: {line}");
    }
    println!(
        "soak: {:.0} s, {} cycles on {epoch} stores, {} kills, {} cuts, {} jumps of the clock, {}; {} refusals; {}; {} faults; slowest start \
         {:.0} ms, seed {}",
        begun.elapsed().as_secs_f64(),
        done.cycles,
        done.kills,
        done.cuts,
        done.jumps,
        done.promises.acknowledged(),
        done.refusals,
        done.moved,
        done.lost.len(),
        done.slowest_start_millis,
        options.seed
    );
    if done.cycles == 0 || !done.promises.has_rows() {
        println!("soak: nothing proved");
    }
    Ok(done.lost.is_empty() && done.cycles > 0 && done.promises.has_rows())
}

/// `None`, with a word, where the machine lacks it.
fn optional<T>(found: Outcome<T>, what: &str) -> Outcome<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Error::Skipped(why)) => {
            println!("soak: no {what}: {why}");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

struct Soak<'s> {
    disk: Option<&'s Disk>,
    folder: &'s Path,
    jumps: bool,
    random: fastrand::Rng,
    done: Done,
}

impl Soak<'_> {
    fn epoch(&mut self, engine: &str, number: u32, goes_on: impl Fn() -> bool) -> Outcome<()> {
        let place = self.disk.map_or(self.folder, Disk::path).join(number.to_string());
        std::fs::create_dir(&place)?;
        let mut launch = Launch::new(engine, &place).with(&["--sweep-seconds", "1"]);
        let mut promises = Promises::default();
        let refusals = Arc::new(Refusals::expected());
        for cycle in 0..=EPOCH_CYCLES {
            let start = clock::now();
            let server = launch.start(self.folder)?;
            self.done.slowest_start_millis = self.done.slowest_start_millis.max(clock::millis_since(start));
            let mut connection = server.connect()?;
            match cycle {
                0 => crash::create(&mut connection)?,
                _ => check::all(&mut connection, &promises, cycle - 1, Kept::All, &mut self.done.lost)?,
            }
            if !self.done.lost.is_empty() || cycle == EPOCH_CYCLES || !goes_on() {
                for past in 0..cycle {
                    check::all(&mut connection, &promises, past, Kept::All, &mut self.done.lost)?;
                }
                break;
            }
            let writers = Writers::start(server.address(), cycle, crash::CLIENTS, &refusals);
            let mover = Mover::start(server.address(), self.random.u64(..));
            let unread = deaf::ask(&server, DEAF, 16, "SELECT * FROM crash.rows")?;
            std::thread::sleep(Duration::from_millis(self.random.u64(LOAD_MILLIS)));
            server.freeze()?;
            let cut = self.disk.filter(|_| self.random.bool());
            if let Some(disk) = cut {
                disk.cut()?;
            }
            server.kill()?;
            drop(unread);
            writers.join(&mut promises)?;
            self.done.moved.add(mover.join()?);
            match cut {
                Some(disk) => {
                    disk.power_on()?;
                    self.done.cuts += 1;
                }
                None => self.done.kills += 1,
            }
            if self.jumps {
                let offset = self.random.choice(OFFSETS).unwrap_or(0);
                self.done.jumps += u32::from(offset != launch.clock_offset_seconds);
                launch.clock_offset_seconds = offset;
            }
            self.done.cycles += 1;
        }
        self.done.refusals += refusals.count();
        self.done.promises.add(promises);
        std::fs::remove_dir_all(&place)?;
        Ok(())
    }
}
