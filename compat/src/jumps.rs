//! Clocks that jump over restarts: a server ends by `kill -9` and starts again an hour earlier, an hour later, at the right time or at
//! once, and one client without timestamps of its own asks what it wrote.
//!
//! ```text
//! start at an offset ─► update, insert, delete, IF …, drop and add a column ─► each read back at once, against a model ─► kill -9
//! ```
//! Held against the model: a write that is acknowledged is what the next read shows; a condition is judged by what is there, and what it
//! applied is there. A few rows get a timestamp of a far future from the client: a conditional write still stands above it, and what the
//! server dates itself is not dated by it.
//!
//! Needs libfaketime for the jumps; rounds without one (an end and a start at once, which ballots ahead of the wall fail) are had
//! without. **Negative control.** A row is changed with a lower timestamp, as a clock that went back would: the comparison must say so.
//!
//! Deliberately absent: TTLs over jumps, which go by the wall, and several clients.

use crate::crash::{all_rows, int};
use crate::launch::{self, Launch, each_engine};
use crate::raw::{Connection, unhex};
use crate::server::Server;
use crate::{Error, Outcome, clock, tools};
use clap::Args;
use std::collections::BTreeMap;

/// What a run does.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Restarts for each engine.
    #[arg(long, default_value_t = 100)]
    pub rounds: u32,
    /// Statements of a round.
    #[arg(long, default_value_t = 60)]
    pub statements: u32,
    /// Engine, as a data URL begins; may be repeated. Both if not given.
    #[arg(long = "engine", value_parser = launch::engine)]
    pub engines: Vec<String>,
    /// Of statements and offsets.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Where a server's clock stands, in seconds from the machine's.
const OFFSETS: [i64; 5] = [0, -3600, 3600, -3600, 0];
/// Statements of a round that restarts at once.
const QUICK_STATEMENTS: u32 = 3;
/// Rows that there are.
const KEYS: i32 = 12;
/// Rows that get timestamps of the far future now and then, above all others.
const FUTURE_KEYS: i32 = 3;
/// 2200-01-01, microseconds.
const FUTURE_MICROS: i64 = 7_258_118_400_000_000;
/// How far ahead of its clock a server may date a write after a jump of two hours.
const AHEAD_MAX_MICROS: i64 = 3 * 3600 * 1_000_000;
/// Faults of an engine after which its run ends.
const FAULTS_MAX: usize = 20;

const SCHEMA: [&str; 2] = [
    "CREATE KEYSPACE jumps WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE jumps.t (k int PRIMARY KEY, v int, dropped int)",
];

/// Runs; true when every answer was the model's.
///
/// # Errors
/// A server does not start, or refuses what it has to accept.
pub fn run(options: &Options) -> Outcome<bool> {
    let jumps = match tools::faketime() {
        Ok(_) => true,
        Err(Error::Skipped(why)) => {
            println!("clock: no jumps: {why}");
            false
        }
        Err(error) => return Err(error),
    };
    each_engine(&options.engines, |engine| of_engine(engine, options, jumps))
}

fn of_engine(engine: &str, options: &Options, jumps: bool) -> Outcome<bool> {
    let folder = tempfile::tempdir()?;
    let mut launch = Launch::new(engine, folder.path());
    let mut client = Client {
        random: fastrand::Rng::with_seed(options.seed),
        rows: BTreeMap::new(),
        next: 0,
        what: String::new(),
        faults: Vec::new(),
        done: Done::default(),
    };
    let (mut jumped, mut quick, mut rounds) = (0, 0, 0);
    let begun = clock::now();
    for round in 0..options.rounds {
        rounds += 1;
        let before = launch.clock_offset_seconds;
        // Half of the rounds restart at once: no clock is set back, and few statements pass between.
        let is_quick = client.random.bool() || !jumps;
        if !is_quick && round > 0 {
            launch.clock_offset_seconds = client.random.choice(OFFSETS).unwrap_or(0);
        }
        jumped += u32::from(launch.clock_offset_seconds != before);
        quick += u32::from(is_quick);
        let server = launch.start(folder.path())?;
        let mut connection = server.connect()?;
        if round == 0 {
            SCHEMA.iter().try_for_each(|text| connection.must(text).map(|_| ()))?;
        }
        client.what = format!(
            "round {round}, clock {:+} s (was {before:+})",
            launch.clock_offset_seconds
        );
        // What the server refuses is a finding, and ends this engine's run.
        let statements = if is_quick { QUICK_STATEMENTS } else { options.statements };
        let worked = client.round(&mut connection, statements, is_quick, launch.clock_offset_seconds);
        let is_over = worked.is_err();
        if let Err(error) = worked {
            client.fault(error.to_string());
        }
        server.kill()?;
        if is_over || client.faults.len() >= FAULTS_MAX {
            break;
        }
    }
    println!(
        "clock: {engine}: {rounds} rounds, {jumped} jumps, {quick} quick restarts, {} statements, {} of them conditional ({} applied), {} columns \
         dropped and added; {} faults; {:.0} s, seed {}",
        client.done.statements,
        client.done.conditional,
        client.done.applied,
        client.done.columns,
        client.faults.len(),
        begun.elapsed().as_secs_f64(),
        options.seed
    );
    let held = client.faults.is_empty();
    launch.clock_offset_seconds = 0;
    let server = launch.start(folder.path())?;
    let control = sees_control(engine, &server, &mut client);
    if jumps && jumped == 0 {
        println!("clock: {engine}: nothing proved");
    }
    Ok(held && control && (!jumps || jumped > 0))
}

/// Whether the client notices a write of yesterday, which it must.
fn sees_control(engine: &str, server: &Server, client: &mut Client) -> bool {
    let control = server
        .connect()
        .and_then(|mut connection| client.control(&mut connection))
        .unwrap_or_else(|error| {
            println!("clock: {engine}: control: {error}");
            false
        });
    println!(
        "clock: {engine}: control, a write of yesterday: {}",
        if control { "seen" } else { "NOT seen" }
    );
    control
}

#[derive(Debug, Default)]
struct Done {
    statements: u32,
    conditional: u32,
    applied: u32,
    columns: u32,
}

/// The one client, and what it knows.
#[derive(Debug)]
struct Client {
    random: fastrand::Rng,
    /// The value of each row that is there.
    rows: BTreeMap<i32, i32>,
    /// The next value: each is written once.
    next: i32,
    /// Where the run is.
    what: String,
    faults: Vec<String>,
    done: Done,
}

impl Client {
    fn fault(&mut self, fault: String) {
        println!("clock: {}: {fault}", self.what);
        self.faults.push(fault);
    }

    /// All statements between two restarts.
    fn round(
        &mut self,
        connection: &mut Connection,
        statements: u32,
        is_quick: bool,
        offset_seconds: i64,
    ) -> Outcome<()> {
        self.compare(connection, "at the start")?;
        for number in 0..statements {
            // A quick round begins with a condition, whose ballot goes before plain writes.
            self.step(connection, is_quick && number == 0)?;
        }
        self.dates(connection, offset_seconds)
    }

    /// One statement, and a look at what it did.
    fn step(&mut self, connection: &mut Connection, is_conditional: bool) -> Outcome<()> {
        let k = self.random.i32(0..KEYS);
        self.next += 1;
        let (value, there) = (self.next, self.rows.get(&k).copied());
        let choice = if is_conditional {
            self.random.u8(3..6)
        } else {
            self.random.u8(..9)
        };
        let statement = match choice {
            0 => format!("UPDATE jumps.t SET v = {value} WHERE k = {k}"),
            1 => format!("INSERT INTO jumps.t (k, v) VALUES ({k}, {value})"),
            2 => format!("DELETE FROM jumps.t WHERE k = {k}"),
            3 => format!("INSERT INTO jumps.t (k, v) VALUES ({k}, {value}) IF NOT EXISTS"),
            4 => format!(
                "UPDATE jumps.t SET v = {value} WHERE k = {k} IF v = {}",
                there.unwrap_or(-1)
            ),
            5 => format!("DELETE FROM jumps.t WHERE k = {k} IF EXISTS"),
            6 => return self.drop_and_add(connection),
            7 => return self.future(connection),
            _ => return self.compare(connection, "meanwhile"),
        };
        let told = connection.must(&statement)?;
        self.done.statements += 1;
        let is_conditional = (3..6).contains(&choice);
        if is_conditional {
            self.done.conditional += 1;
            let applied = told.pointer("/rows/0/0").and_then(|cell| cell.as_str()) == Some("01");
            let expected = if choice == 3 { there.is_none() } else { there.is_some() };
            if applied != expected {
                self.fault(format!("{statement}: applied {applied}, the row was {there:?}"));
            }
            self.done.applied += u32::from(applied);
            if !applied {
                return Ok(());
            }
        }
        if matches!(choice, 2 | 5) {
            self.rows.remove(&k);
        } else {
            self.rows.insert(k, value);
        }
        let read = read(connection, &format!("SELECT k, v FROM jumps.t WHERE k = {k}"))?;
        let expected: BTreeMap<i32, i32> = self.rows.get(&k).map(|v| (k, *v)).into_iter().collect();
        if read != expected {
            self.fault(format!("{statement}: then {read:?} in place of {expected:?}"));
            // One fault is told once.
            connection.must(&format!("DELETE FROM jumps.t WHERE k = {k}"))?;
            self.adopt(connection)?;
        }
        Ok(())
    }

    /// A column is written, dropped and added: its cells are gone.
    fn drop_and_add(&mut self, connection: &mut Connection) -> Outcome<()> {
        let Some(k) = self.rows.keys().copied().next() else {
            return Ok(());
        };
        connection.must(&format!("UPDATE jumps.t SET dropped = 1 WHERE k = {k} IF EXISTS"))?;
        connection.must("ALTER TABLE jumps.t DROP dropped")?;
        connection.must("ALTER TABLE jumps.t ADD dropped int")?;
        self.done.columns += 1;
        let rows = all_rows(connection, "SELECT dropped FROM jumps.t")?;
        let back = rows
            .iter()
            .filter(|row| row.get(0).is_some_and(|cell| !cell.is_null()))
            .count();
        if back > 0 {
            self.fault(format!("{back} cells of a dropped column are back"));
        }
        Ok(())
    }

    /// A row gets a timestamp of the far future; a conditional write still changes it.
    fn future(&mut self, connection: &mut Connection) -> Outcome<()> {
        let k = KEYS + self.random.i32(0..FUTURE_KEYS);
        self.next += 2;
        let (first, second) = (self.next - 1, self.next);
        let micros = FUTURE_MICROS + i64::from(first);
        connection.must(&format!(
            "UPDATE jumps.t USING TIMESTAMP {micros} SET v = {first} WHERE k = {k}"
        ))?;
        let seen = read(connection, &format!("SELECT k, v FROM jumps.t WHERE k = {k}"))?
            .get(&k)
            .copied();
        let Some(seen) = seen else {
            return Ok(());
        };
        let statement = format!("UPDATE jumps.t SET v = {second} WHERE k = {k} IF v = {seen}");
        connection.must(&statement)?;
        self.done.conditional += 1;
        let read = read(connection, &format!("SELECT k, v FROM jumps.t WHERE k = {k}"))?
            .get(&k)
            .copied();
        self.rows.extend(read.map(|v| (k, v)));
        if read != Some(second) {
            self.fault(format!("{statement}: over a timestamp of 2200: then {read:?}"));
        }
        Ok(())
    }

    /// Reads all and compares.
    fn compare(&mut self, connection: &mut Connection, when: &str) -> Outcome<()> {
        let read = read(connection, "SELECT k, v FROM jumps.t")?;
        if read != self.rows {
            self.fault(format!(
                "{when}: the table has {read:?}, it should have {:?}",
                self.rows
            ));
            self.rows = read;
        }
        Ok(())
    }

    fn adopt(&mut self, connection: &mut Connection) -> Outcome<()> {
        self.rows = read(connection, "SELECT k, v FROM jumps.t")?;
        Ok(())
    }

    /// What the server dates is not dated by a client's timestamp of the far future.
    fn dates(&mut self, connection: &mut Connection, offset_seconds: i64) -> Outcome<()> {
        let text = format!("INSERT INTO jumps.t (k, v) VALUES ({}, 0)", KEYS + FUTURE_KEYS);
        connection.must(&text)?;
        self.rows.insert(KEYS + FUTURE_KEYS, 0);
        let told = connection.must(&format!(
            "SELECT writetime(v) FROM jumps.t WHERE k = {}",
            KEYS + FUTURE_KEYS
        ))?;
        let cell = told.pointer("/rows/0/0").and_then(|cell| cell.as_str()).and_then(unhex);
        let micros = cell
            .and_then(|bytes| bytes.try_into().ok())
            .map_or(i64::MAX, i64::from_be_bytes);
        let now = clock::unix_micros() + offset_seconds * 1_000_000;
        if micros > now + AHEAD_MAX_MICROS {
            self.fault(format!(
                "a plain write is dated {} s ahead of the server's clock",
                (micros - now) / 1_000_000
            ));
        }
        Ok(())
    }

    /// Whether a write that has no effect is seen.
    fn control(&mut self, connection: &mut Connection) -> Outcome<bool> {
        connection.must("INSERT INTO jumps.t (k, v) VALUES (0, 1)")?;
        self.adopt(connection)?;
        let yesterday = clock::unix_micros() - 24 * 3_600_000_000;
        connection.must(&format!(
            "UPDATE jumps.t USING TIMESTAMP {yesterday} SET v = 2 WHERE k = 0"
        ))?;
        self.rows.insert(0, 2);
        let before = self.faults.len();
        self.compare(connection, "control")?;
        Ok(self.faults.len() > before)
    }
}

/// Rows of `k, v`.
fn read(connection: &mut Connection, text: &str) -> Outcome<BTreeMap<i32, i32>> {
    let rows = all_rows(connection, text)?;
    Ok(rows
        .iter()
        .filter_map(|row| Some((int(row.get(0))?, int(row.get(1)).unwrap_or(i32::MIN))))
        .collect())
}
