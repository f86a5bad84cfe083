//! Physical partitions split and merged under load, with kills: a table of rows whose every version is known, over 16 physical
//! partitions, changed hundreds of times while clients write, read and scan it, some of the changes cut by SIGKILL.
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
//! - **the list**: the ring covered without gap or overlap; an acknowledged change is in it.
//!
//! While writers run, the scanner goes by rows that nobody touches: each exactly once. Every value is written once, so that an old one
//! that comes back is seen.
//!
//! The **write pause** of a change is the longest time without an acknowledged write of any writer from its beginning on that touches
//! it or the 20 ms behind it. The same is measured in a stretch of the same length without a change, which begins 160 ms earlier, since
//! a busy machine pauses by itself.
//!
//! Deliberately absent: splits by size and heat, which the server's own tests drive; tables in several stores.

mod check;
mod load;
mod model;
mod pause;

use crate::raw::Connection;
use crate::server::{self, Server};
use crate::{Error, Outcome, clock};
use check::{Findings, Part};
use model::Model;
use pause::Pauses;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What a run does.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Rows of the table, about.
    pub rows: u32,
    /// Splits and merges.
    pub changes: u32,
    /// How many of them the server is killed in.
    pub kills: u32,
    /// Clients that write, each with 16 requests in flight.
    pub writers: u32,
    /// Changes between two readings of the whole table, if it is not small.
    pub full_every: u32,
    /// Longest write pause of 99 in a hundred changes.
    pub pause_max: Duration,
    /// Of everything random.
    pub seed: u64,
}

/// A table of so many rows is read as a whole after each change.
const SMALL_ROWS: u32 = 500_000;
/// Physical partitions at first, fewest and most.
const PARTITIONS: usize = 16;
const PARTITIONS_MIN: usize = 12;
const PARTITIONS_MAX: usize = 20;
/// Load before and after each change.
const AROUND: Duration = Duration::from_millis(80);
/// Longest time between the moment a change is sent and the kill: some hit it before, some within, some after.
const KILL_MICROS_MAX: u64 = 6_000;

/// What was done, for the report.
#[derive(Debug, Default)]
struct Done {
    splits: u32,
    merges: u32,
    kills: u32,
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
    let data = format!("file:{}", folder.path().join("data").display());
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
        load: load::Totals::default(),
    };
    let mut server = Some(run.start()?);
    run.fill(server.as_ref())?;
    let cuts = kills_at(options, &mut random);
    let started = clock::now();
    for number in 1..=options.changes {
        let Some(running) = server.take() else { break };
        server = Some(run.change(running, number, cuts.contains(&number), &mut random)?);
        if !run.found.faults.is_empty() {
            break;
        }
        if number.is_multiple_of(20) {
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

/// In which changes the server is killed.
fn kills_at(options: &Options, random: &mut fastrand::Rng) -> Vec<u32> {
    let mut all: Vec<u32> = (1..=options.changes).collect();
    random.shuffle(&mut all);
    all.truncate(usize::try_from(options.kills).unwrap_or(usize::MAX));
    all
}

/// A change that is to be made.
#[derive(Debug, Clone, Copy)]
enum Change {
    Split { at: i64, of: Part },
    Merge { left: Part, right: Part },
}

impl Change {
    /// A split at a token that some partition key has or near it, or a merge of neighbours.
    fn choose(parts: &[Part], model: &Model, random: &mut fastrand::Rng) -> Outcome<Self> {
        let may_split = parts.len() < PARTITIONS_MAX;
        let may_merge = parts.len() > PARTITIONS_MIN;
        if may_split && (!may_merge || random.bool()) {
            for _ in 0..1000 {
                let at = model.some_token(random);
                let of = parts.iter().find(|part| part.lower < at && at <= part.upper);
                if let Some(of) = of {
                    return Ok(Self::Split { at, of: *of });
                }
            }
        }
        let left = random.usize(..parts.len().saturating_sub(1).max(1));
        match (parts.get(left), parts.get(left + 1)) {
            (Some(left), Some(right)) => Ok(Self::Merge {
                left: *left,
                right: *right,
            }),
            _ => Err(Error::failed("there is nothing to split or merge")),
        }
    }

    fn statement(self) -> String {
        match self {
            Self::Split { at, .. } => format!("ALTER TABLE parts.t WITH helenus_split_at = {at}"),
            Self::Merge { left, right } => format!(
                "ALTER TABLE parts.t WITH helenus_merge = {{'left': {}, 'right': {}}}",
                left.id, right.id
            ),
        }
    }

    /// Lowest and highest token that it concerns.
    fn range(self) -> (i64, i64) {
        match self {
            Self::Split { of, .. } => (of.lower, of.upper),
            Self::Merge { left, right } => (left.lower, right.upper),
        }
    }

    /// The token between the two.
    fn border(self) -> i64 {
        match self {
            Self::Split { at, .. } => at,
            Self::Merge { right, .. } => right.lower,
        }
    }

    /// Whether the list has it.
    fn is_in(self, parts: &[Part]) -> bool {
        let begins = |token| parts.iter().any(|part| part.lower == token);
        match self {
            Self::Split { at, .. } => begins(at),
            Self::Merge { right, .. } => !begins(right.lower),
        }
    }
}

struct Run<'r> {
    options: &'r Options,
    folder: &'r Path,
    data: &'r str,
    model: &'r Arc<Model>,
    found: Findings,
    done: Done,
    pauses: Pauses,
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
    fn change(&mut self, server: Server, number: u32, kills: bool, random: &mut fastrand::Rng) -> Outcome<Server> {
        let mut connection = server.connect()?;
        let before = check::parts(&mut connection)?;
        let change = Change::choose(&before, self.model, random)?;
        let mut pages = check::Pages::begin(&mut connection, self.model, change.border())?;

        let stop = Arc::new(AtomicBool::new(false));
        let load = load::Load::start(server.address(), self.model, change.range(), &stop, random);
        std::thread::sleep(AROUND);
        let control = clock::now();
        std::thread::sleep(2 * AROUND);
        let begun = clock::now();
        let (server, answered) = if kills {
            (None, self.kill_in(server, connection, change, random)?)
        } else {
            connection.must(&change.statement())?;
            (Some(server), true)
        };
        let ended = clock::now();
        if server.is_some() {
            std::thread::sleep(AROUND);
        }
        stop.store(true, Ordering::Relaxed);
        let worked = load.join()?;
        if server.is_some() {
            self.measure(&worked, control, begun, ended);
        }
        self.found.faults.extend(worked.faults.iter().cloned());
        self.load.add(&worked);

        let server = match server {
            Some(server) => server,
            None => self.start()?,
        };
        let mut connection = server.connect()?;
        self.found.settle(&mut connection, self.model, &worked.doubts)?;
        let after = check::parts(&mut connection)?;
        self.count(change, answered, &before, &after);
        let what = format!("change {number} ({})", change.statement());
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
        let changer = std::thread::spawn(move || connection.must(&change.statement()).map(|_| ()));
        std::thread::sleep(Duration::from_micros(random.u64(..KILL_MICROS_MAX)));
        server.kill()?;
        self.done.kills += 1;
        match changer.join().map_err(|_| Error::failed("the changer panicked"))? {
            Ok(()) => Ok(true),
            Err(Error::Io { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn measure(&mut self, worked: &load::Worked, control: Instant, begun: Instant, ended: Instant) {
        // A stretch as long as the change's own, which ends before it begins.
        let length = ended.saturating_duration_since(begun);
        self.pauses.change(&worked.acknowledged, begun, begun + length);
        self.pauses
            .control(&worked.acknowledged, control, (control + length).min(begun));
        self.pauses.longest_write(&worked.acknowledged, begun, ended);
    }

    fn count(&mut self, change: Change, answered: bool, before: &[Part], after: &[Part]) {
        self.found.ring(after);
        let happened = change.is_in(after);
        if answered && !happened {
            self.found
                .fault(format!("{} was acknowledged, and is lost", change.statement()));
        }
        let expected = match (change, happened) {
            (Change::Split { .. }, true) => before.len() + 1,
            (Change::Merge { .. }, true) => before.len() - 1,
            (_, false) => before.len(),
        };
        if after.len() != expected {
            self.found.fault(format!(
                "{}: there are {} partitions in place of {expected}",
                change.statement(),
                after.len()
            ));
        }
        if !answered {
            self.done.cut += 1;
            self.done.cut_done += u32::from(happened);
        }
        match change {
            Change::Split { .. } => self.done.splits += u32::from(happened),
            Change::Merge { .. } => self.done.merges += u32::from(happened),
        }
    }

    /// `helenus check-indexes` on data that no server has open.
    fn check_indexes(&mut self) -> Outcome<()> {
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
            "partitions: {} rows; {} splits, {} merges, {} kills of which {} left a change unanswered ({} of these had happened); \
             slowest start {:.0} ms; {:.0} s",
            self.model.live(),
            done.splits,
            done.merges,
            done.kills,
            done.cut,
            done.cut_done,
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
        println!("partitions: {}", self.pauses);
        println!("partitions: {} lost, doubled or wrong", found.faults.len());
        let short = self.pauses.p99() <= self.options.pause_max;
        if !short {
            println!(
                "partitions: the write pause is longer than {} ms",
                self.options.pause_max.as_millis()
            );
        }
        Ok(found.faults.is_empty() && short)
    }
}
