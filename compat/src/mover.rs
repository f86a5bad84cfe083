//! A client that changes where rows are while others write them: lifts and lowers physical partitions, builds and drops an index,
//! creates, fills and drops a table. Serves the runs that end a server at any moment.

use crate::crash::all_rows;
use crate::crash::writers::gone;
use crate::raw::{Connection, unhex};
use crate::{Error, Outcome};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::clock;

/// Tables whose partitions are moved: of rows, of half of the batches, of deletions.
const MOVED: [&str; 3] = ["rows", "two", "gone"];

/// Longest pause between two changes, in milliseconds.
const PAUSE_MILLIS_MAX: u64 = 40;

/// What was done.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Moved {
    pub(crate) lifts: u32,
    pub(crate) lowers: u32,
    pub(crate) builds: u32,
    pub(crate) tables: u32,
    /// Changes under way when the server ended.
    pub(crate) cut: u32,
    pub(crate) refused: u32,
}

impl Moved {
    pub(crate) fn add(&mut self, other: Self) {
        self.lifts += other.lifts;
        self.lowers += other.lowers;
        self.builds += other.builds;
        self.tables += other.tables;
        self.cut += other.cut;
        self.refused += other.refused;
    }
}

impl std::fmt::Display for Moved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} lifts, {} lowers, {} indexes and {} tables made, {} of these cut, {} refused",
            self.lifts, self.lowers, self.builds, self.tables, self.cut, self.refused
        )
    }
}

/// A mover at work.
#[derive(Debug)]
pub(crate) struct Mover {
    stop: Arc<AtomicBool>,
    /// Lifts and lowers done.
    moves: Arc<AtomicU32>,
    thread: JoinHandle<Outcome<Moved>>,
}

impl Mover {
    pub(crate) fn start(address: &str, seed: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let moves = Arc::<AtomicU32>::default();
        let (address, stopped, counted) = (address.to_owned(), Arc::clone(&stop), Arc::clone(&moves));
        let thread = std::thread::spawn(move || {
            let mut moved = Moved::default();
            match work(&address, seed, &stopped, &counted, &mut moved) {
                Err(error) if !gone(&error) => Err(error),
                Ok(()) | Err(_) => Ok(moved),
            }
        });
        Self { stop, moves, thread }
    }

    /// Waits until it has moved a partition, for so long at most: a load that ends before proves nothing of moves.
    pub(crate) fn await_move(&self, limit: Duration) {
        let begun = clock::now();
        while self.moves.load(Ordering::Relaxed) == 0 && !self.thread.is_finished() && begun.elapsed() < limit {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Stops it; what it did.
    ///
    /// # Errors
    /// An answer of the server could not be read.
    pub(crate) fn join(self) -> Outcome<Moved> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| Error::failed("the mover panicked"))?
    }
}

fn work(address: &str, seed: u64, stop: &AtomicBool, moves: &AtomicU32, moved: &mut Moved) -> Outcome<()> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut connection = Connection::open(address, 4)?;
    while !stop.load(Ordering::Relaxed) {
        let done = match random.u8(..5) {
            0 => index(&mut connection, moved),
            1 => table(&mut connection, moved),
            _ => lift_or_lower(&mut connection, &mut random, moved),
        };
        match done {
            // A table that another change has in hand, a full medium, a store that takes no writes: the writers judge.
            Err(Error::Refused { .. }) => moved.refused += 1,
            Err(error) => {
                moved.cut += 1;
                return Err(error);
            }
            Ok(()) => {}
        }
        moves.store(moved.lifts + moved.lowers, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(random.u64(..PAUSE_MILLIS_MAX)));
    }
    Ok(())
}

fn lift_or_lower(connection: &mut Connection, random: &mut fastrand::Rng, moved: &mut Moved) -> Outcome<()> {
    let table = random.choice(MOVED).unwrap_or("rows");
    let text = format!(
        "SELECT id, store FROM system_cosmos.partitions WHERE keyspace_name = 'crash' AND table_name = '{table}'"
    );
    let rows = all_rows(connection, &text)?;
    let Some(row) = random.choice(&rows) else {
        return Err(Error::failed(format!("crash.{table} has no partitions")));
    };
    let cell = |place: usize| unhex(row.get(place)?.as_str()?);
    let id = cell(0).and_then(|bytes| bytes.try_into().ok()).map(i64::from_be_bytes);
    let is_main = cell(1).is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0));
    let id = id.ok_or(Error::Malformed("an id of a partition"))?;
    let verb = if is_main { "helenus_lift" } else { "helenus_lower" };
    connection.must(&format!("ALTER TABLE crash.{table} WITH {verb} = {id}"))?;
    if is_main {
        moved.lifts += 1;
    } else {
        moved.lowers += 1;
    }
    Ok(())
}

fn index(connection: &mut Connection, moved: &mut Moved) -> Outcome<()> {
    connection.must("DROP INDEX IF EXISTS crash.of_seq")?;
    connection.must("CREATE INDEX of_seq ON crash.rows (seq)")?;
    moved.builds += 1;
    Ok(())
}

fn table(connection: &mut Connection, moved: &mut Moved) -> Outcome<()> {
    connection.must("CREATE TABLE IF NOT EXISTS crash.doomed (k int PRIMARY KEY, v int)")?;
    let rows: String = (0..50)
        .map(|k| format!("INSERT INTO crash.doomed (k, v) VALUES ({k}, {k}); "))
        .collect();
    connection.must(&format!("BEGIN UNLOGGED BATCH {rows} APPLY BATCH"))?;
    connection.must("DROP TABLE crash.doomed")?;
    moved.tables += 1;
    Ok(())
}
