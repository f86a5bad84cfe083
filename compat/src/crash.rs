//! Kills a server with SIGKILL at random moments under load, starts it again and checks what it promised.
//!
//! Each cycle: start, check what earlier cycles left, write with several clients, kill, note what was acknowledged and
//! what was in doubt (sent, not answered). Checked after every start:
//!
//! - **rows**: every acknowledged insert is there with its value;
//! - **register**: a chain of conditional updates `v → v + 1`; no value was granted twice, the value found is at least
//!   the last acknowledged one and at most that plus the updates in doubt, and a value acknowledged is its writer's;
//! - **counters**: not below what was acknowledged, not above that plus what was in doubt;
//! - **batches**: logged batches over two tables are there as a whole or not at all, acknowledged ones as a whole;
//! - **deletions**: a partition that was deleted stays deleted, also where a column is written after the deletion.
//!
//! The clients and the checks serve the other runs that end a server: `power`, `eio`, `soak`.

mod acknowledged;
pub(crate) mod check;
pub mod indexed;
pub(crate) mod writers;

use crate::launch;
use crate::raw::Connection;
use crate::server::Server;
use crate::{Outcome, clock};
use check::Kept;
use std::sync::Arc;
use std::time::Duration;
use writers::{Batches, Clients, Deletions, Refusals, Rows, Writers};

/// The clients of a cycle.
pub(crate) const CLIENTS: Clients = Clients {
    inserters: 3,
    racers: 3,
    counters: 2,
    batchers: 1,
    deleters: 1,
};

/// What clients were told so far, over all cycles.
#[derive(Debug, Default)]
pub(crate) struct Promises {
    pub(crate) rows: Vec<Rows>,
    /// Values of the register granted, each with its writer's mark.
    granted: Vec<(i32, String)>,
    /// Conditional updates in doubt.
    register_doubts: i32,
    /// For each counter: acknowledged and doubtful increments.
    counted: Vec<(i64, i64)>,
    batches: Vec<Batches>,
    deletions: Vec<Deletions>,
    /// How many rows, batches and deletions were acknowledged and are forgotten.
    forgotten: (i64, i64, i64),
}

const SCHEMA: [&str; 8] = [
    "CREATE KEYSPACE crash WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE crash.rows (cycle int, writer int, seq int, v blob, PRIMARY KEY ((cycle, writer), seq))",
    "CREATE TABLE crash.register (k int PRIMARY KEY, v int, mark text)",
    "CREATE TABLE crash.counters (k int PRIMARY KEY, n counter)",
    "CREATE TABLE crash.one (cycle int, writer int, seq int, PRIMARY KEY ((cycle, writer), seq))",
    "CREATE TABLE crash.two (seq int, writer int, cycle int, PRIMARY KEY ((cycle, writer), seq))",
    "CREATE TABLE crash.gone (cycle int, writer int, n int, c int, a int, b int, PRIMARY KEY ((cycle, writer, n), c)) \
     WITH gc_grace_seconds = 0",
    "INSERT INTO crash.register (k, v, mark) VALUES (0, 0, 'start')",
];

/// Makes the tables.
///
/// # Errors
/// The server refuses.
pub(crate) fn create(connection: &mut Connection) -> Outcome<()> {
    SCHEMA
        .iter()
        .try_for_each(|statement| connection.must(statement).map(|_| ()))
}

/// Runs `cycles` cycles with this seed; true when nothing promised was lost.
///
/// # Errors
/// When the server does not start again, or refuses what it has to accept.
pub fn run(cycles: i32, seed: u64) -> Outcome<bool> {
    let folder = tempfile::tempdir()?;
    let data = launch::data(folder.path());
    let mut random = fastrand::Rng::with_seed(seed);
    let mut promises = Promises::default();
    let refusals = Arc::new(Refusals::default());
    let mut lost = Vec::new();
    let mut slowest_start: f64 = 0.0;
    for cycle in 0..cycles {
        let start = clock::now();
        // Sweeps run beside deletions and after them.
        let server = Server::start_with(&data, &["--sweep-seconds", "1"], folder.path())?;
        slowest_start = slowest_start.max(clock::millis_since(start));
        let mut connection = server.connect()?;
        if cycle == 0 {
            create(&mut connection)?;
        } else {
            check::all(&mut connection, &promises, cycle - 1, Kept::All, &mut lost)?;
            if !lost.is_empty() {
                report(&promises, cycle, slowest_start, &lost);
                return Ok(false);
            }
        }
        let writers = Writers::start(server.address(), cycle, CLIENTS, &refusals);
        std::thread::sleep(Duration::from_millis(random.u64(150..1200)));
        server.kill()?;
        writers.join(&mut promises)?;
    }
    let server = Server::start(&data, folder.path())?;
    let mut connection = server.connect()?;
    for cycle in 0..cycles {
        check::all(&mut connection, &promises, cycle, Kept::All, &mut lost)?;
    }
    report(&promises, cycles, slowest_start, &lost);
    Ok(lost.is_empty())
}

impl Promises {
    /// How many rows, batches and deletions were acknowledged.
    fn counts(&self) -> (i64, i64, i64) {
        (
            self.forgotten.0 + self.rows.iter().map(|rows| rows.acknowledged.len()).sum::<i64>(),
            self.forgotten.1
                + self
                    .batches
                    .iter()
                    .map(|batches| batches.acknowledged.len())
                    .sum::<i64>(),
            self.forgotten.2
                + self
                    .deletions
                    .iter()
                    .map(|of| of.emptied.len() + of.erased.len())
                    .sum::<i64>(),
        )
    }

    /// Forgets rows, batches and deletions, but for their number: some may have been lost as they were allowed to.
    pub(crate) fn forget(&mut self) {
        self.forgotten = self.counts();
        self.rows.clear();
        self.batches.clear();
        self.deletions.clear();
    }

    /// Takes up the number of what others promise.
    pub(crate) fn add(&mut self, others: Self) {
        let (rows, batches, deleted) = others.counts();
        self.forgotten.0 += rows;
        self.forgotten.1 += batches;
        self.forgotten.2 += deleted;
        self.granted.extend(others.granted);
        self.counted.extend(others.counted);
    }

    /// Whether any row was acknowledged.
    pub(crate) fn has_rows(&self) -> bool {
        self.counts().0 > 0
    }

    /// What was acknowledged, as a part of a sentence.
    pub(crate) fn acknowledged(&self) -> String {
        let (rows, batches, deleted) = self.counts();
        let counted: i64 = self.counted.iter().map(|(sure, _)| sure).sum();
        format!(
            "{rows} rows, {} conditional updates, {counted} increments, {batches} batches and {deleted} deletions acknowledged",
            self.granted.len()
        )
    }
}

fn report(promises: &Promises, cycles: i32, slowest_start: f64, lost: &[String]) {
    for line in lost.iter().take(50) {
        println!("crash: {line}");
    }
    println!(
        "crash: {cycles} cycles, {}; {} lost or inconsistent; slowest start {slowest_start:.0} ms",
        promises.acknowledged(),
        lost.len()
    );
}

/// Every so many cycles rows are long, so that memtables fill up and tables and manifests are written.
const LONG_EVERY: i32 = 4;

/// The bytes a row has to hold: long now and then, so that records of the log differ in size.
fn row_value(cycle: i32, writer: i32, seq: i32) -> Vec<u8> {
    let mix = cycle.wrapping_mul(7919) ^ writer.wrapping_mul(104_729) ^ seq.wrapping_mul(31);
    let len = if cycle % LONG_EVERY == LONG_EVERY - 1 {
        20_000
    } else if mix % 97 == 0 {
        5000
    } else {
        20 + mix.unsigned_abs() % 200
    };
    (0..len)
        .map(|i| mix.wrapping_add(i.cast_signed()).to_le_bytes()[0])
        .collect()
}

/// A 4-byte integer of an answer's cell.
pub(crate) fn int(cell: Option<&serde_json::Value>) -> Option<i32> {
    let bytes = crate::raw::unhex(cell?.as_str()?)?;
    Some(i32::from_be_bytes(bytes.try_into().ok()?))
}

/// All rows of a statement, through pages.
pub(crate) fn all_rows(connection: &mut Connection, text: &str) -> Outcome<Vec<serde_json::Value>> {
    let mut params = crate::raw::Params {
        page_size: Some(5000),
        ..Default::default()
    };
    let mut rows = Vec::new();
    loop {
        let told = crate::raw::connection::succeeded(text, connection.query(text, &params)?)?;
        rows.extend(told.get("rows").and_then(|r| r.as_array()).cloned().unwrap_or_default());
        match told.get("paging").and_then(|p| p.as_str()).and_then(crate::raw::unhex) {
            Some(state) => params.paging_state = Some(state),
            None => return Ok(rows),
        }
    }
}
