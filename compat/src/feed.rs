//! The change feed under `kill -9`: clients write rows, partitions are split, merged, lifted and lowered, readers follow the feed with
//! paging states that outlive all of it. After every kill:
//!
//! - every row holds what its writer was told, or what was in doubt when the server ended;
//! - each reader, once it has read to the end, has seen the value that each row holds;
//! - a reader that begins anew is given each row once, with the value that it holds;
//! - no reader was given an older value of a row after a newer one.
//!
//! Negative control: a reader that ignores one row of those it is given must differ.
//!
//! The full fidelity feed of the table is followed too (full.rs), but of a fleet, whose admin ports refuse it (gap fleet-2); and its materialized views are compared with it (views.rs).

mod full;
mod views;

use crate::crash::all_rows;
use crate::launch::{Launch, each_engine};
use crate::layout_mover::{self, Moved};
use crate::raw::connection::succeeded;
use crate::raw::{Connection, Params, unhex};
use crate::through::is_by_kill;
use crate::{Error, Outcome, clock};
use full::Log;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Partition keys, and rows of each.
const KEYS: i32 = 120;
const ROWS: i32 = 6;
/// Clients that write, each its own partition keys.
const WRITERS: i32 = 3;
/// Of so many writes one deletes a row, or its partition.
const DELETES_ONE_OF: i32 = 12;
const PAGE_ROWS: i32 = 50;
/// Differences that are printed.
const PRINTED_MAX: usize = 30;

const SCHEMA: [&str; 2] = [
    "CREATE KEYSPACE feed WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE feed.t (k int, c int, v bigint, w bigint, PRIMARY KEY (k, c)) WITH cdc = true AND helenus_partitions = 4 \
     AND gc_grace_seconds = 1 AND cosmosdb_full_fidelity_retention_seconds = 86400",
];

const FROM_START: &str = "SELECT k, c, v, w FROM feed.t WHERE COSMOS_CHANGEFEED_FROM_START() = true";

type Key = (i32, i32);

/// What a row holds. `None` means that it does not exist.
type Held = Option<i64>;

/// The rows of one writer: what was acknowledged, and what may have taken effect beside it.
#[derive(Debug, Default)]
struct History {
    sure: BTreeMap<Key, Held>,
    doubts: BTreeMap<Key, Vec<Held>>,
    next: i64,
    writes: u64,
    /// Every value that was acknowledged.
    acknowledged: Vec<(Key, i64)>,
}

/// A reader of the feed, over all cycles.
#[derive(Debug)]
struct Reader {
    text: String,
    state: Option<Vec<u8>>,
    seen: BTreeMap<Key, i64>,
    given: u64,
    backwards: Vec<String>,
    /// The row that the negative control ignores, counted from here. `None` means a reader that takes all.
    ignores: Option<u64>,
}

impl Reader {
    fn new(text: String) -> Self {
        Self {
            text,
            state: None,
            seen: BTreeMap::new(),
            given: 0,
            backwards: Vec::new(),
            ignores: None,
        }
    }

    /// Reads a page; how many rows it had.
    fn page(&mut self, connection: &mut Connection) -> Outcome<usize> {
        let params = Params {
            page_size: Some(PAGE_ROWS),
            paging_state: self.state.clone(),
            ..Params::default()
        };
        let told = succeeded(&self.text, connection.query(&self.text, &params)?)?;
        let state = told.get("paging").and_then(Value::as_str).and_then(unhex);
        self.state = Some(state.ok_or(Error::Malformed("a page of the feed without a paging state"))?);
        let rows = told.get("rows").and_then(Value::as_array).cloned().unwrap_or_default();
        for row in &rows {
            let (key, value) = read(row)?;
            self.given += 1;
            if self.ignores == Some(self.given) {
                continue;
            }
            if let Some(before) = self.seen.insert(key, value)
                && before > value
            {
                self.backwards.push(format!("row {key:?}: {value} came after {before}"));
            }
        }
        Ok(rows.len())
    }

    /// Reads until two pages in a row are empty.
    fn read_to_the_end(&mut self, connection: &mut Connection) -> Outcome<()> {
        let mut empty = 0;
        while empty < 2 {
            empty = if self.page(connection)? == 0 { empty + 1 } else { 0 };
        }
        Ok(())
    }
}

/// The key and the value of a row.
fn read(row: &Value) -> Outcome<(Key, i64)> {
    let cell = |place: usize| unhex(row.get(place)?.as_str()?);
    let int = |place: usize| Some(i32::from_be_bytes(cell(place)?.try_into().ok()?));
    let bigint = |place: usize| Some(i64::from_be_bytes(cell(place)?.try_into().ok()?));
    let parts = || Some(((int(0)?, int(1)?), bigint(2)?, bigint(3)?));
    let (key, v, w) = parts().ok_or(Error::Malformed("a row of feed.t"))?;
    if v != w {
        return Err(Error::failed(format!("row {key:?} has half of a write: {v} and {w}")));
    }
    Ok((key, v))
}

/// Runs `cycles` cycles with this seed on each engine; true when no reader differs from the rows.
///
/// # Errors
/// When the server does not start again, or refuses what it has to accept.
pub fn run(engines: &[String], cycles: u32, seed: u64) -> Outcome<bool> {
    each_engine(engines, |engine| of_engine(engine, cycles, seed))
}

#[expect(
    clippy::too_many_lines,
    reason = "one history: each cycle stands on what the one before left"
)]
fn of_engine(engine: &str, cycles: u32, seed: u64) -> Outcome<bool> {
    let folder = tempfile::tempdir()?;
    // Sweeps run beside deletions and after them.
    let launch = Launch::new(engine, folder.path()).with(&["--sweep-seconds", "1"]);
    let begun = clock::now();
    let mut random = fastrand::Rng::with_seed(seed);
    let mut histories: Vec<History> = (0..WRITERS).map(|_| History::default()).collect();
    let mut readers = vec![Reader::new(FROM_START.to_owned())];
    let mut differences = Vec::new();
    let mut log = Log::default();
    let (mut moved, mut fresh_rows, mut view_rows) = (Moved::default(), 0, 0);
    let mut control_differs = false;
    for cycle in 0..=cycles {
        let server = launch.start(folder.path())?;
        let mut connection = server.connect()?;
        if cycle == 0 {
            SCHEMA
                .iter()
                .try_for_each(|statement| connection.must(statement).map(drop))?;
            views::schema().try_for_each(|statement| connection.must(&statement).map(drop))?;
            let ranges = all_rows(
                &mut connection,
                "SELECT range FROM system_cosmos.feedranges WHERE keyspace_name = 'feed' AND table_name = 't'",
            )?;
            for range in ranges {
                let text = range.get(0).and_then(Value::as_str).and_then(unhex).unwrap_or_default();
                let text = String::from_utf8_lossy(&text).into_owned();
                readers.push(Reader::new(format!("{FROM_START} AND COSMOS_FEEDRANGE() = '{text}'")));
            }
            if readers.len() < 3 {
                return Err(Error::failed("there are no feed ranges"));
            }
        }
        for reader in &mut readers {
            reader.read_to_the_end(&mut connection)?;
        }
        let mut fresh = Reader::new(FROM_START.to_owned());
        fresh.read_to_the_end(&mut connection)?;
        let mut control = Reader {
            ignores: Some(1 + fresh.given / 2),
            ..Reader::new(FROM_START.to_owned())
        };
        control.read_to_the_end(&mut connection)?;
        let stored = stored(&mut connection)?;
        check_histories(&mut histories, &stored, &mut differences);
        compare(&readers, &fresh, &stored, &mut differences);
        log.follow(&launch, &stored, &histories, &mut differences)?;
        view_rows += views::compare(&mut connection, &stored, &mut differences)?;
        control_differs |= control.seen != stored;
        fresh_rows += fresh.given;
        if !differences.is_empty() || cycle == cycles {
            server.kill()?;
            differences.extend(launch.check_indexes()?);
            break;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let address = server.address().to_owned();
        let writers: Vec<_> = (0..WRITERS)
            .zip(std::mem::take(&mut histories))
            .map(|(writer, history)| write(&address, writer, history, random.u64(..)))
            .collect();
        let following = follow(&address, std::mem::take(&mut readers), &stop);
        let mover = layout_mover::start(&address, "feed.t", random.u64(..), &stop);
        std::thread::sleep(Duration::from_millis(random.u64(150..900)));
        server.kill()?;
        stop.store(true, Ordering::Relaxed);
        for writer in writers {
            histories.push(joined(writer)?);
        }
        readers = joined(following)?;
        moved.add(joined(mover)?);
    }
    for line in differences.iter().take(PRINTED_MAX) {
        println!("feed: {line}");
    }
    let writes: u64 = histories.iter().map(|history| history.writes).sum();
    let given: u64 = readers.iter().map(|reader| reader.given).sum();
    println!(
        "feed: {engine}: {cycles} kills, {writes} writes acknowledged, {moved}; {given} rows given to {} readers, {fresh_rows} to new ones; {} \
         records of the full feed, {} of deletions; {view_rows} rows of views; {} differences; seed {seed}, {:.0} s",
        readers.len(),
        log.records,
        log.deletions,
        differences.len(),
        begun.elapsed().as_secs_f64()
    );
    if !control_differs || !log.has_proof() || view_rows == 0 || writes == 0 || moved.all() == 0 {
        println!("feed: nothing proved");
        return Ok(false);
    }
    Ok(differences.is_empty())
}

fn joined<T>(thread: JoinHandle<Outcome<T>>) -> Outcome<T> {
    thread.join().map_err(|_| Error::failed("a client panicked"))?
}

/// All rows of the table.
fn stored(connection: &mut Connection) -> Outcome<BTreeMap<Key, i64>> {
    let rows = all_rows(connection, "SELECT k, c, v, w FROM feed.t")?;
    rows.iter().map(read).collect()
}

/// Compares the rows with what their writers were told, and resolves what was in doubt.
fn check_histories(histories: &mut [History], stored: &BTreeMap<Key, i64>, differences: &mut Vec<String>) {
    for history in histories {
        let doubts = std::mem::take(&mut history.doubts);
        for (key, doubts) in &doubts {
            history.sure.entry(*key).or_default();
            let held = stored.get(key).copied();
            if doubts.contains(&held) {
                history.sure.insert(*key, held);
            }
        }
        for (key, sure) in &history.sure {
            let held = stored.get(key).copied();
            if held != *sure {
                differences.push(format!("row {key:?} holds {held:?}, its writer was told {sure:?}"));
            }
        }
    }
}

/// Compares what readers have seen with the rows.
fn compare(readers: &[Reader], fresh: &Reader, stored: &BTreeMap<Key, i64>, differences: &mut Vec<String>) {
    if fresh.seen != *stored || fresh.given != stored.len() as u64 {
        differences.push(format!(
            "a new reader was given {} rows, {} different ones; the table has {}",
            fresh.given,
            fresh.seen.len(),
            stored.len()
        ));
    }
    let (whole, parts) = readers.split_at(1);
    for (key, value) in stored {
        if let [whole] = whole
            && whole.seen.get(key) != Some(value)
        {
            differences.push(format!(
                "row {key:?} holds {value}, the reader saw {:?}",
                whole.seen.get(key)
            ));
        }
        let mut seen = parts.iter().filter_map(|part| part.seen.get(key));
        if seen.next() != Some(value) || seen.next().is_some() {
            differences.push(format!("row {key:?} holds {value}, not so in the one range of its key"));
        }
    }
    for reader in readers {
        differences.extend(reader.backwards.iter().cloned());
    }
}

fn write(address: &str, writer: i32, history: History, seed: u64) -> JoinHandle<Outcome<History>> {
    let address = address.to_owned();
    std::thread::spawn(move || {
        let mut history = history;
        let mut random = fastrand::Rng::with_seed(seed);
        match write_until_gone(&address, writer, &mut history, &mut random) {
            Err(error) if !is_by_kill(&error) => Err(error),
            Ok(()) | Err(_) => Ok(history),
        }
    })
}

fn write_until_gone(address: &str, writer: i32, history: &mut History, random: &mut fastrand::Rng) -> Outcome<()> {
    let mut connection = Connection::open(address, 4)?;
    loop {
        let k = random.i32(0..KEYS / WRITERS) * WRITERS + writer;
        let c = random.i32(0..ROWS);
        history.next += 1;
        let value = history.next;
        let (text, changed): (String, Vec<(Key, Held)>) = match random.i32(0..DELETES_ONE_OF * 4) {
            0 => (
                format!("DELETE FROM feed.t WHERE k = {k}"),
                (0..ROWS).map(|c| ((k, c), None)).collect(),
            ),
            1..=3 => (
                format!("DELETE FROM feed.t WHERE k = {k} AND c = {c}"),
                vec![((k, c), None)],
            ),
            4..=8 => {
                let inserts: String = (0..ROWS)
                    .map(|c| format!("INSERT INTO feed.t (k, c, v, w) VALUES ({k}, {c}, {value}, {value}); "))
                    .collect();
                (
                    format!("BEGIN BATCH {inserts} APPLY BATCH"),
                    (0..ROWS).map(|c| ((k, c), Some(value))).collect(),
                )
            }
            9..=12 => (
                format!("UPDATE feed.t SET v = {value}, w = {value} WHERE k = {k} AND c = {c}"),
                vec![((k, c), Some(value))],
            ),
            _ => (
                format!("INSERT INTO feed.t (k, c, v, w) VALUES ({k}, {c}, {value}, {value})"),
                vec![((k, c), Some(value))],
            ),
        };
        for (key, held) in &changed {
            history.doubts.entry(*key).or_default().push(*held);
        }
        connection.must(&text)?;
        history.writes += 1;
        for (key, held) in changed {
            history.doubts.remove(&key);
            history.sure.insert(key, held);
            history.acknowledged.extend(held.map(|value| (key, value)));
        }
    }
}

/// Lets the readers follow the feed until the server is gone.
fn follow(address: &str, readers: Vec<Reader>, stop: &Arc<AtomicBool>) -> JoinHandle<Outcome<Vec<Reader>>> {
    let (address, stop) = (address.to_owned(), Arc::clone(stop));
    std::thread::spawn(move || {
        let mut readers = readers;
        let mut read = || -> Outcome<()> {
            let mut connection = Connection::open(&address, 4)?;
            while !stop.load(Ordering::Relaxed) {
                for reader in &mut readers {
                    reader.page(&mut connection)?;
                }
            }
            Ok(())
        };
        match read() {
            Err(error) if !is_by_kill(&error) => Err(error),
            Ok(()) | Err(_) => Ok(readers),
        }
    })
}
