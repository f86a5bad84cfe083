//! Physical partitions split, merged, lifted into stores of their own and lowered again under load, with kills: a table of rows whose
//! every version is known, over 16 physical partitions, changed hundreds of times while clients write, read and scan it, some of the
//! changes cut by SIGKILL.
//!
//! ```text
//! model: what was acknowledged of each row ──► writers (change it as answers come) ──► after a kill: rows in doubt are looked up
//!    └─► check: token ranges row by row, counts, an index's answers, the list of partitions, pages begun before the change
//! ```
//! Each change is a window of load: writers (pipelined, each with rows of its own) and a scanner run before, during and after it. Then
//! they stop, so that what the table must hold is exact, and it is compared:
//!
//! - **the ranges concerned**: every row, its place in order and its value (up to a number of rows, more are counted by the server, with
//!   a part compared row by row); the whole table after each change if it is small, else now and then and at the end;
//! - **paging states** taken before the change and finished after it, also by a server that was killed between;
//! - **the index**: answers against the model; after kills and at the end `helenus check-indexes`;
//! - **the list**: the ring covered without gap or overlap; an acknowledged change is in it, and nothing else is changed;
//! - **stores**: neighbours in two stores are not merged, and the refusal says what to do; after a start there are those of the list in
//!   the folder and no others, whatever was being copied or removed when the server was killed.
//!
//! While writers run, the scanner goes by rows that nobody touches: each exactly once. Every value is written once, so that an old one
//! that comes back is seen.
//!
//! The **write pause** of a change is the longest time without an acknowledged write of any writer from its beginning on that touches
//! it or the 20 ms behind it. The same is measured in a stretch of the same length without a change, which begins 160 ms earlier (of a
//! lift, as much earlier as the last took, up to 2 s), since a busy machine pauses by itself. Lifts and lowers, which copy rows, are
//! measured apart.
//!
//! Deliberately absent: splits by size and heat, which the server's own tests drive; SlateDB, which lifts without copying.

mod change;
mod check;
mod load;
mod model;
mod page;
mod pause;

use crate::launch;
use crate::raw::Connection;
use crate::server::{self, Server};
use crate::through::is_by_kill;
use crate::{Error, Outcome, clock};
use change::Change;
use check::{Findings, Part};
use clap::Args;
use model::Model;
use pause::Pauses;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What a run does.
#[derive(Debug, Clone, Copy, Args)]
pub struct Options {
    /// Rows of the table.
    #[arg(long, default_value_t = 200_000)]
    pub rows: u32,
    /// Splits, merges, lifts and lowers.
    #[arg(long, default_value_t = 200)]
    pub changes: u32,
    /// How many of them move a partition into a store of its own or back; a twentieth if not given.
    #[arg(long)]
    pub lifts: Option<u32>,
    /// How many changes the server is killed in; of the lifts and lowers every third at least, if there are so many kills.
    #[arg(long, default_value_t = 20)]
    pub kills: u32,
    /// Clients that write, 16 requests in flight each.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    pub writers: u32,
    /// Changes between two readings of the whole table, beyond half a million rows.
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..))]
    pub full_every: u32,
    /// Longest time without an acknowledged write in 99 of a hundred changes, milliseconds; of lifts and lowers in half of them, if
    /// stretches without one have none half as long.
    #[arg(long, default_value_t = 50)]
    pub pause_millis_max: u64,
    /// Of everything random.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// A table of so many rows is read as a whole after each change.
const SMALL_ROWS: u32 = 500_000;
/// Physical partitions at first.
const PARTITIONS: usize = 16;
/// Load before and after each change.
const AROUND: Duration = Duration::from_millis(80);
/// Longest time between the moment a split or merge is sent and the kill: some hit it before, some within, some after.
const KILL_WITHIN: Duration = Duration::from_millis(6);
/// What a lift is thought to take before one was measured, for each row of the partition.
const LIFT_BY_ROW: Duration = Duration::from_micros(4);
/// Longest stretch without a change that a lift is compared with.
const CONTROL_MAX: Duration = Duration::from_secs(2);

/// What was done, for the report.
#[derive(Debug, Default)]
struct Done {
    splits: u32,
    merges: u32,
    lifts: u32,
    lowers: u32,
    /// Merges of two stores.
    joins: u32,
    /// Stores of lifted partitions at once, most.
    stores: usize,
    kills: u32,
    /// Of these in lifts and lowers.
    kills_in_moves: u32,
    /// Kills that left the change unanswered, and of these how often it had happened nevertheless.
    cut: u32,
    cut_done: u32,
    slowest_start_millis: f64,
    checks: Vec<String>,
}

/// Runs; true when nothing was lost or doubled and pauses were short.
///
/// # Errors
/// When the server does not start again, or refuses what it has to accept.
pub fn run(options: &Options) -> Outcome<bool> {
    let folder = tempfile::tempdir()?;
    let data = launch::data(folder.path());
    let mut random = fastrand::Rng::with_seed(options.seed);
    let model = Arc::new(Model::new(options.rows, options.writers));
    let mut run = Run {
        options,
        folder: folder.path(),
        data: &data,
        model: &model,
        found: Findings::default(),
        done: Done::default(),
        pauses: Pauses::default(),
        move_pauses: Pauses::default(),
        move_took: None,
        load: load::Totals::default(),
    };
    let mut server = Some(run.start()?);
    run.fill(server.as_ref())?;
    let plan = plan(options, &mut random);
    let started = clock::now();
    for (number, planned) in (1..).zip(plan) {
        let Some(running) = server.take() else { break };
        server = Some(run.change(running, number, planned, &mut random)?);
        if !run.found.faults.is_empty() {
            break;
        }
        if u32::is_multiple_of(number, 20) {
            println!(
                "partitions: {number} changes, {} writes acknowledged, {} rows compared, {:.0} s",
                run.load.acknowledged,
                run.found.rows,
                started.elapsed().as_secs_f64()
            );
        }
    }
    if let Some(running) = server {
        let mut connection = running.connect()?;
        run.found.whole(&mut connection, &model, "at the end")?;
        drop(connection);
        running.kill()?;
    }
    run.check_indexes()?;
    run.report(started)
}

/// What a change is to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Planned {
    is_move: bool,
    is_killed: bool,
}

/// What the changes are to be, in order.
fn plan(options: &Options, random: &mut fastrand::Rng) -> Vec<Planned> {
    let moves = options.lifts.unwrap_or(options.changes / 20).min(options.changes);
    let kills = options.kills.min(options.changes);
    // A third of the moves; what is left over when all else is killed too.
    let kills_in_moves = moves
        .div_ceil(3)
        .min(kills)
        .max(kills.saturating_sub(options.changes - moves));
    let of = |is_move, count: u32, kills: u32| {
        (0..count).map(move |place| Planned {
            is_move,
            is_killed: place < kills,
        })
    };
    let mut all: Vec<Planned> = of(true, moves, kills_in_moves)
        .chain(of(false, options.changes - moves, kills - kills_in_moves))
        .collect();
    random.shuffle(&mut all);
    all
}

struct Run<'r> {
    options: &'r Options,
    folder: &'r Path,
    data: &'r str,
    model: &'r Arc<Model>,
    found: Findings,
    done: Done,
    pauses: Pauses,
    /// Of lifts and lowers.
    move_pauses: Pauses,
    /// How long the last uncut lift or lower took.
    move_took: Option<Duration>,
    load: load::Totals,
}

impl Run<'_> {
    /// Starts the server; deletions pile up in these tables, and are no matter of this run.
    fn start(&mut self) -> Outcome<Server> {
        let mut command = Command::new(server::program()?);
        command.args([
            "serve",
            "--data",
            self.data,
            "--listen",
            "127.0.0.1:0",
            "--tombstone-thresholds",
            "off",
        ]);
        let begun = clock::now();
        let server = Server::spawn(command, self.folder)?;
        self.done.slowest_start_millis = self.done.slowest_start_millis.max(clock::millis_since(begun));
        Ok(server)
    }

    fn fill(&mut self, server: Option<&Server>) -> Outcome<()> {
        let server = server.ok_or_else(|| Error::failed("there is no server"))?;
        let begun = clock::now();
        let mut connection = server.connect()?;
        for statement in load::schema(PARTITIONS) {
            connection.must(&statement)?;
        }
        load::fill(server.address(), self.model, self.options.writers)?;
        let seconds = begun.elapsed().as_secs_f64();
        println!("partitions: {} rows written in {seconds:.0} s", self.model.live());
        self.found.whole(&mut connection, self.model, "before any change")
    }

    /// One change with all that is checked after it; the server that runs then.
    fn change(&mut self, server: Server, number: u32, planned: Planned, random: &mut fastrand::Rng) -> Outcome<Server> {
        let mut connection = server.connect()?;
        let before = check::parts(&mut connection)?;
        let change = if planned.is_move {
            Change::lift_or_lower(&before, self.model, random)?
        } else {
            Change::split_or_merge(&before, self.model, random)?
        };
        let mut pages = check::Pages::begin(&mut connection, self.model, change.border())?;

        let stop = Arc::new(AtomicBool::new(false));
        let load = load::Load::start(server.address(), self.model, change.range(), &stop, random);
        std::thread::sleep(AROUND);
        let control = clock::now();
        std::thread::sleep(match self.move_took {
            Some(took) if planned.is_move => took.clamp(2 * AROUND, CONTROL_MAX),
            _ => 2 * AROUND,
        });
        let begun = clock::now();
        let what = format!("change {number} ({})", change.statement());
        let told = |error: &Error| println!("partitions: {what}: {error}");
        let (server, answered) = if planned.is_killed {
            (
                None,
                self.kill_in(server, connection, change, random).inspect_err(told)?,
            )
        } else {
            connection.must(&change.statement()).inspect_err(told)?;
            (Some(server), true)
        };
        let ended = clock::now();
        if server.is_some() {
            std::thread::sleep(AROUND);
        }
        stop.store(true, Ordering::Relaxed);
        let worked = load.join()?;
        if server.is_some() {
            self.measure(&worked, change, control, begun, ended);
        }
        self.found.faults.extend(worked.faults.iter().cloned());
        self.load.add(&worked);

        let server = match server {
            Some(server) => server,
            None => self.start()?,
        };
        let mut connection = server.connect()?;
        self.found.resolve(&mut connection, self.model, &worked.doubts)?;
        let after = check::parts(&mut connection)?;
        self.count(change, answered, &before, &after);
        if planned.is_killed {
            self.folders(&after)?;
        }
        self.found.pages(&mut connection, self.model, &mut pages, &what)?;
        if self.options.rows <= SMALL_ROWS || number.is_multiple_of(self.options.full_every) {
            self.found.whole(&mut connection, self.model, &what)?;
        } else {
            self.found
                .range(&mut connection, self.model, change.range(), change.border(), &what)?;
        }
        self.found.index(&mut connection, self.model, random, &what)?;
        Ok(server)
    }

    /// Sends the change and kills the server meanwhile; whether it was acknowledged.
    fn kill_in(
        &mut self,
        server: Server,
        mut connection: Connection,
        change: Change,
        random: &mut fastrand::Rng,
    ) -> Outcome<bool> {
        let within = if change.is_move() {
            self.move_within(change)
        } else {
            KILL_WITHIN
        };
        let within = u64::try_from(within.as_micros()).unwrap_or(u64::MAX).max(1);
        let changer = std::thread::spawn(move || connection.must(&change.statement()).map(|_| ()));
        std::thread::sleep(Duration::from_micros(random.u64(..within)));
        server.kill()?;
        self.done.kills += 1;
        self.done.kills_in_moves += u32::from(change.is_move());
        match changer.join().map_err(|_| Error::failed("the changer panicked"))? {
            Ok(()) => Ok(true),
            Err(error) if is_by_kill(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// How long after a lift or lower was sent the server may be killed: some hit the copy, some what is removed behind it.
    fn move_within(&self, change: Change) -> Duration {
        let (lower, upper) = change.range();
        let keys = u32::try_from(self.model.keys_in(lower, upper).len()).unwrap_or(u32::MAX);
        let took = self
            .move_took
            .unwrap_or(LIFT_BY_ROW * keys.saturating_mul(model::FILLED_PER_KEY));
        (took + took / 2).max(KILL_WITHIN)
    }

    /// Compares the folders of stores with the list, after a start. A bucket has none here, and no verb reads it offline.
    fn folders(&mut self, parts: &[Part]) -> Outcome<()> {
        if launch::is_in_bucket() {
            return Ok(());
        }
        let folder = self.folder.join("data").join("stores");
        let mut found = Vec::new();
        if folder.exists() {
            for entry in std::fs::read_dir(&folder)? {
                found.push(entry?.file_name().to_string_lossy().into_owned());
            }
        }
        let mut expected: Vec<String> = change::stores(parts).iter().map(i32::to_string).collect();
        found.sort_unstable();
        expected.sort_unstable();
        if found != expected {
            self.found.fault(format!(
                "after a start there are the stores {found:?}, the list has {expected:?}"
            ));
        }
        Ok(())
    }

    fn measure(&mut self, worked: &load::Worked, change: Change, control: Instant, begun: Instant, ended: Instant) {
        // A stretch as long as the change's own, which ends before it begins.
        let length = ended.saturating_duration_since(begun);
        let pauses = if change.is_move() {
            self.move_took = Some(length);
            &mut self.move_pauses
        } else {
            &mut self.pauses
        };
        pauses.change(&worked.acknowledged, begun, begun + length);
        pauses.control(&worked.acknowledged, control, (control + length).min(begun));
        pauses.longest_write(&worked.acknowledged, begun, ended);
        pauses.took(length);
    }

    fn count(&mut self, change: Change, answered: bool, before: &[Part], after: &[Part]) {
        self.found.ring(after);
        let happened = change.is_in(after);
        if answered && !happened {
            self.found
                .fault(format!("{} was acknowledged, and is lost", change.statement()));
        }
        let (count, keeps_others) = change.leaves(before, after);
        let expected = if happened { count } else { before.len() };
        if after.len() != expected || !keeps_others {
            self.found.fault(format!(
                "{}: there are {} partitions in place of {expected}; was {before:?}, is {after:?}",
                change.statement(),
                after.len()
            ));
        }
        self.done.stores = self.done.stores.max(change::stores(after).len());
        if !answered {
            self.done.cut += 1;
            self.done.cut_done += u32::from(happened);
        }
        match change {
            Change::Split { .. } => self.done.splits += u32::from(happened),
            Change::Merge { .. } => self.done.merges += u32::from(happened),
            Change::Join { .. } => {
                self.done.merges += u32::from(happened);
                self.done.joins += u32::from(happened);
            }
            Change::Lift { .. } => self.done.lifts += u32::from(happened),
            Change::Lower { .. } => self.done.lowers += u32::from(happened),
        }
    }

    /// `helenus check-indexes` on data that no server has open.
    fn check_indexes(&mut self) -> Outcome<()> {
        if launch::is_in_bucket() {
            self.done.checks.push("check-indexes reads no bucket".to_owned());
            return Ok(());
        }
        let mut command = Command::new(server::program()?);
        let output = command.args(["check-indexes", "--data", self.data]).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            self.found.fault(format!("check-indexes: {text}{error}"));
        }
        self.done.checks.extend(text.lines().last().map(str::to_owned));
        Ok(())
    }

    fn report(&self, started: Instant) -> Outcome<bool> {
        for fault in self.found.faults.iter().take(50) {
            println!("partitions: {fault}");
        }
        let (done, load, found) = (&self.done, &self.load, &self.found);
        println!(
            "partitions: {} rows; {} splits, {} merges, {} lifts, {} lowers; {} kills ({} in lifts and lowers) of which {} left a change \
             unanswered ({} of these had happened); {} stores of lifted partitions at once, {} of the merges over two stores; slowest \
             start {:.0} ms; {:.0} s",
            self.model.live(),
            done.splits,
            done.merges,
            done.lifts,
            done.lowers,
            done.kills,
            done.kills_in_moves,
            done.cut,
            done.cut_done,
            done.stores,
            done.joins,
            done.slowest_start_millis,
            started.elapsed().as_secs_f64()
        );
        println!(
            "partitions: {} writes acknowledged, {} in doubt, {} reads, {} rows scanned under load; compared: {} rows one by one, {} \
             counted, {} scans of the whole, {} paged scans over a change, {} answers of the index; {}",
            load.acknowledged,
            load.doubts,
            load.reads,
            load.scanned,
            found.rows,
            found.counted,
            found.wholes,
            found.pages,
            found.answers,
            done.checks.join(", ")
        );
        println!("partitions: splits and merges: {}", self.pauses);
        println!("partitions: lifts and lowers: {}", self.move_pauses);
        println!("partitions: {} lost, doubled or wrong", found.faults.len());
        let limit = Duration::from_millis(self.options.pause_millis_max);
        // Lifts are few and take long: on a busy machine the longest pause of such would be the machine's own.
        let (lifts, without) = self.move_pauses.p50();
        let short = self.pauses.p99() <= limit && lifts <= limit.max(2 * without);
        if !short {
            println!("partitions: the write pause is longer than {} ms", limit.as_millis());
        }
        Ok(found.faults.is_empty() && short)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_are_killed_too() {
        let options = |changes, lifts, kills| Options {
            rows: 1,
            changes,
            lifts,
            kills,
            writers: 1,
            full_every: 1,
            pause_millis_max: 0,
            seed: 1,
        };
        for (changes, lifts, kills, of_each) in [
            (60, 8, 10, [3, 5, 7, 45]),
            (10, 20, 4, [4, 6, 0, 0]),
            (10, 9, 10, [9, 0, 1, 0]),
            (10, 0, 3, [0, 0, 3, 7]),
            (0, 3, 3, [0; 4]),
        ] {
            let plan = plan(&options(changes, Some(lifts), kills), &mut fastrand::Rng::with_seed(5));
            let count = |is_move, is_killed| {
                let planned = Planned { is_move, is_killed };
                plan.iter().filter(|one| **one == planned).count()
            };
            let found = [
                count(true, true),
                count(true, false),
                count(false, true),
                count(false, false),
            ];
            assert_eq!(found, of_each, "{changes}, {lifts}, {kills}");
        }
    }
}
