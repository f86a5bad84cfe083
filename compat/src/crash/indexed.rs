//! Indexes under `kill -9`: a table with an index on every kind of column, written at random while indexes are dropped and created,
//! so that kills hit builds at work. After every kill:
//!
//! - `helenus check-indexes` compares every complete index with what the rows derive, byte for byte;
//! - for every index and every value, complete or not, the indexed query answers what a full read of the table, filtered here, says.
//!
//! Writes are out of order in time, expire, delete cells, rows, ranges and partitions. Beside it a table is made, filled, indexed and
//! dropped while its index is built.

use super::all_rows;
use crate::launch;
use crate::raw::{Connection, unhex};
use crate::server::{self, Server};
use crate::{Error, Outcome, clock};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Partitions of the table, rows of each, and different values of each kind.
const PARTITIONS: i32 = 300;
const ROWS: i32 = 30;
const VALUES: i32 = 40;
const WORDS: i32 = 20;
const FEW: i32 = 8;

/// Clients that write rows.
const WRITERS: u64 = 3;

/// Longest wait for builds to end.
const BUILD_WAIT_MAX: Duration = Duration::from_secs(60);

/// How often an answer may differ before it counts: rows expire between two reads.
const ATTEMPTS: usize = 4;

const SCHEMA: [&str; 2] = [
    "CREATE KEYSPACE indexed WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE indexed.t (p int, c int, s int static, v int, w int, e set<int>, m map<int, int>, PRIMARY KEY (p, c)) \
     WITH gc_grace_seconds = 1",
];

/// An index, and the questions it serves: a condition for each value, and whether a row meets it.
struct Index {
    name: &'static str,
    create: &'static str,
    values: i32,
    condition: fn(i32) -> String,
    meets: fn(&Row, i32) -> bool,
}

const INDEXES: [Index; 8] = [
    Index {
        name: "of_v",
        create: "CREATE CUSTOM INDEX of_v ON indexed.t (v) USING 'StorageAttachedIndex'",
        values: VALUES,
        condition: |n| format!("v = {n}"),
        meets: |row, n| row.v == Some(n),
    },
    Index {
        name: "of_w",
        create: "CREATE INDEX of_w ON indexed.t (w)",
        values: WORDS,
        condition: |n| format!("w = {n}"),
        meets: |row, n| row.w == Some(n),
    },
    Index {
        name: "of_c",
        create: "CREATE INDEX of_c ON indexed.t (c)",
        values: ROWS,
        condition: |n| format!("c = {n}"),
        meets: |row, n| row.c == Some(n),
    },
    Index {
        name: "of_s",
        create: "CREATE INDEX of_s ON indexed.t (s)",
        values: FEW,
        condition: |n| format!("s = {n}"),
        meets: |row, n| row.s == Some(n),
    },
    Index {
        name: "of_e",
        create: "CREATE INDEX of_e ON indexed.t (values(e))",
        values: FEW,
        condition: |n| format!("e CONTAINS {n}"),
        meets: |row, n| row.e.contains(&n),
    },
    Index {
        name: "of_m_keys",
        create: "CREATE INDEX of_m_keys ON indexed.t (keys(m))",
        values: FEW,
        condition: |n| format!("m CONTAINS KEY {n}"),
        meets: |row, n| row.m.contains_key(&n),
    },
    Index {
        name: "of_m_values",
        create: "CREATE INDEX of_m_values ON indexed.t (values(m))",
        values: FEW,
        condition: |n| format!("m CONTAINS {n}"),
        meets: |row, n| row.m.values().any(|value| *value == n),
    },
    Index {
        name: "of_m_entries",
        create: "CREATE INDEX of_m_entries ON indexed.t (entries(m))",
        values: FEW,
        condition: |n| format!("m[{n}] = {}", n / 2),
        meets: |row, n| row.m.get(&n) == Some(&(n / 2)),
    },
];

/// A row as it was read.
#[derive(Debug, Default)]
struct Row {
    p: Option<i32>,
    c: Option<i32>,
    s: Option<i32>,
    v: Option<i32>,
    w: Option<i32>,
    e: BTreeSet<i32>,
    m: BTreeMap<i32, i32>,
}

/// The integers of a cell: one, or those of a collection behind its count, each behind its length.
fn ints(cell: Option<&Value>) -> Vec<i32> {
    let Some(bytes) = cell.and_then(Value::as_str).and_then(unhex) else {
        return Vec::new();
    };
    let words: Vec<i32> = bytes
        .chunks_exact(4)
        .filter_map(|word| Some(i32::from_be_bytes(word.try_into().ok()?)))
        .collect();
    match words.as_slice() {
        [one] => vec![*one],
        [_count, rest @ ..] => rest.iter().skip(1).step_by(2).copied().collect(),
        [] => Vec::new(),
    }
}

impl Row {
    fn read(row: &Value) -> Self {
        let one = |place: usize| ints(row.get(place)).first().copied();
        let pairs = ints(row.get(6));
        Self {
            p: one(0),
            c: one(1),
            s: one(2),
            v: one(3),
            w: one(4),
            e: elements(row.get(5)),
            m: pairs
                .chunks_exact(2)
                .filter_map(|pair| Some((*pair.first()?, *pair.last()?)))
                .collect(),
        }
    }
}

/// The elements of a set. A set of none is null, so a cell of one word is no set.
fn elements(cell: Option<&Value>) -> BTreeSet<i32> {
    ints(cell).into_iter().collect()
}

/// What was done, for the report.
#[derive(Debug, Default)]
struct Done {
    statements: AtomicU64,
    created: AtomicU64,
}

/// Runs `cycles` cycles; true when indexes and rows agreed after each.
///
/// # Errors
/// When the server does not start again, or refuses what it has to accept.
pub fn run(cycles: i32, seed: u64) -> Outcome<bool> {
    let folder = tempfile::tempdir()?;
    let data = launch::data(folder.path());
    let mut random = fastrand::Rng::with_seed(seed);
    let done = Arc::new(Done::default());
    let mut totals = Totals::default();
    for cycle in 0..=cycles {
        if cycle > 0 {
            totals.take(&check_bytes(&data)?);
        }
        let server = serve(&data, folder.path())?;
        let mut connection = server.connect()?;
        if cycle == 0 {
            fill(&mut connection, &mut random)?;
        } else {
            totals.building += u64::from(!is_built(&mut connection)?);
            check_answers(&mut connection, &mut totals)?;
            wait_until_built(&mut connection)?;
            check_answers(&mut connection, &mut totals)?;
        }
        if !totals.differences.is_empty() || cycle == cycles {
            break;
        }
        create_all(&mut connection)?;
        let stop = Arc::new(AtomicBool::new(false));
        let threads = start(server.address(), &mut random, &stop, &done);
        std::thread::sleep(Duration::from_millis(random.u64(100..900)));
        server.kill()?;
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().map_err(|_| Error::failed("a writer panicked"))??;
        }
    }
    for line in totals.differences.iter().take(50) {
        println!("crash: {line}");
    }
    println!(
        "crash: {cycles} cycles with indexes, {} statements and {} indexes made, {} kills in builds, {} entries compared, \
         {} answers of {} rows; {} differences",
        done.statements.load(Ordering::Relaxed),
        done.created.load(Ordering::Relaxed),
        totals.building,
        totals.entries,
        totals.answers,
        totals.rows,
        totals.differences.len()
    );
    Ok(totals.differences.is_empty())
}

/// A server that cleans up all the time.
fn serve(data: &str, folder: &Path) -> Outcome<Server> {
    let mut command = Command::new(server::program()?);
    command.args([
        "serve",
        "--data",
        data,
        "--listen",
        "127.0.0.1:0",
        "--sweep-seconds",
        "1",
    ]);
    Server::spawn(command, folder)
}

/// What was compared.
#[derive(Debug, Default)]
struct Totals {
    building: u64,
    entries: u64,
    answers: u64,
    rows: usize,
    differences: Vec<String>,
}

/// What `helenus check-indexes` said.
struct Checked {
    text: String,
    holds: bool,
}

impl Totals {
    fn take(&mut self, checked: &Checked) {
        let last = checked.text.lines().last().unwrap_or_default();
        let entries = last.split(", ").find_map(|part| part.strip_suffix(" entries"));
        self.entries += entries.and_then(|count| count.parse::<u64>().ok()).unwrap_or(0);
        if !checked.holds {
            self.differences.extend(checked.text.lines().map(str::to_owned));
        }
    }
}

fn check_bytes(data: &str) -> Outcome<Checked> {
    let mut command = Command::new(server::program()?);
    let output = command.args(["check-indexes", "--data", data]).output()?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        text.push_str(&String::from_utf8_lossy(&output.stderr));
    }
    Ok(Checked {
        text,
        holds: output.status.success(),
    })
}

fn fill(connection: &mut Connection, random: &mut fastrand::Rng) -> Outcome<()> {
    for statement in SCHEMA {
        connection.must(statement)?;
    }
    for p in 0..PARTITIONS {
        let rows: String = (0..ROWS).map(|c| format!("{}; ", insert(random, p, c, 0))).collect();
        connection.must(&format!("BEGIN UNLOGGED BATCH {rows} APPLY BATCH"))?;
    }
    Ok(())
}

fn insert(random: &mut fastrand::Rng, p: i32, c: i32, timestamp: u64) -> String {
    format!(
        "INSERT INTO indexed.t (p, c, s, v, w, e, m) VALUES ({p}, {c}, {}, {}, {}, {{{}, {}}}, {{{}: {}}}) USING TIMESTAMP {timestamp}",
        random.i32(0..FEW),
        random.i32(0..VALUES),
        random.i32(0..WORDS),
        random.i32(0..FEW),
        random.i32(0..FEW),
        random.i32(0..FEW),
        random.i32(0..FEW),
    )
}

/// A statement on the table, its time out of order.
fn write(random: &mut fastrand::Rng) -> String {
    let (p, c) = (random.i32(0..PARTITIONS), random.i32(0..ROWS));
    let timestamp = random.u64(1..1_000_000);
    let ttl = match random.u8(0..6) {
        0 => " AND TTL 1",
        1 => " AND TTL 600",
        _ => "",
    };
    let using = format!("USING TIMESTAMP {timestamp}{ttl}");
    let at = format!("WHERE p = {p} AND c = {c}");
    match random.u8(0..20) {
        0..=5 => format!("{}{ttl}", insert(random, p, c, timestamp)),
        6..=8 => format!("UPDATE indexed.t {using} SET v = {} {at}", random.i32(0..VALUES)),
        9 | 10 => format!("UPDATE indexed.t {using} SET w = {} {at}", random.i32(0..WORDS)),
        11 => format!("UPDATE indexed.t {using} SET s = {} WHERE p = {p}", random.i32(0..FEW)),
        12 => format!("UPDATE indexed.t {using} SET e = e + {{{}}} {at}", random.i32(0..FEW)),
        13 => format!("UPDATE indexed.t {using} SET e = e - {{{}}} {at}", random.i32(0..FEW)),
        14 => format!(
            "UPDATE indexed.t {using} SET m[{}] = {} {at}",
            random.i32(0..FEW),
            random.i32(0..FEW)
        ),
        15 => format!("UPDATE indexed.t {using} SET m = {{{0}: {0}}} {at}", random.i32(0..FEW)),
        16 => format!("DELETE v, e FROM indexed.t USING TIMESTAMP {timestamp} {at}"),
        17 => format!("DELETE FROM indexed.t USING TIMESTAMP {timestamp} {at}"),
        18 => format!("DELETE FROM indexed.t USING TIMESTAMP {timestamp} WHERE p = {p} AND c >= {c}"),
        // Old enough to leave something of the partition.
        _ => format!("DELETE FROM indexed.t USING TIMESTAMP {} WHERE p = {p}", timestamp / 4),
    }
}

type Threads = Vec<JoinHandle<Outcome<()>>>;

fn start(address: &str, random: &mut fastrand::Rng, stop: &Arc<AtomicBool>, done: &Arc<Done>) -> Threads {
    let mut threads = Threads::new();
    for number in 0..WRITERS + 2 {
        let (address, stop, done) = (address.to_owned(), Arc::clone(stop), Arc::clone(done));
        let mut random = random.fork();
        threads.push(std::thread::spawn(move || {
            let mut connection = match Connection::open(&address, 4) {
                Ok(connection) => connection,
                Err(Error::Io { .. }) => return Ok(()),
                Err(error) => return Err(error),
            };
            while !stop.load(Ordering::Relaxed) {
                let worked = match number {
                    0 => change_indexes(&mut connection, &mut random, &done),
                    1 => make_and_drop(&mut connection, &mut random),
                    _ => write_some(&mut connection, &mut random, &done),
                };
                match worked {
                    Ok(()) => {}
                    // The server is gone, as it has to be.
                    Err(Error::Io { .. }) => return Ok(()),
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        }));
    }
    threads
}

fn write_some(connection: &mut Connection, random: &mut fastrand::Rng, done: &Done) -> Outcome<()> {
    if random.u8(0..3) == 0 {
        connection.must(&write(random))?;
        done.statements.fetch_add(1, Ordering::Relaxed);
        return Ok(());
    }
    let count = random.u64(2..20);
    let (p, timestamp) = (random.i32(0..PARTITIONS), random.u64(1..1_000_000));
    let rows: String = (0..count)
        .map(|_| {
            let c = random.i32(0..ROWS);
            format!("{}; ", insert(random, p, c, timestamp))
        })
        .collect();
    connection.must(&format!("BEGIN UNLOGGED BATCH {rows} APPLY BATCH"))?;
    done.statements.fetch_add(count, Ordering::Relaxed);
    Ok(())
}

/// Drops an index and makes it anew, which builds it.
fn change_indexes(connection: &mut Connection, random: &mut fastrand::Rng, done: &Done) -> Outcome<()> {
    let Some(index) = INDEXES.get(random.usize(0..INDEXES.len())) else {
        return Ok(());
    };
    connection.must(&format!("DROP INDEX IF EXISTS indexed.{}", index.name))?;
    connection.must(index.create)?;
    done.created.fetch_add(1, Ordering::Relaxed);
    std::thread::sleep(Duration::from_millis(random.u64(0..120)));
    Ok(())
}

/// A table that goes, or is emptied, while its index is built.
fn make_and_drop(connection: &mut Connection, random: &mut fastrand::Rng) -> Outcome<()> {
    connection.must("CREATE TABLE IF NOT EXISTS indexed.doomed (k int PRIMARY KEY, v int)")?;
    let rows: String = (0..200)
        .map(|k| format!("INSERT INTO indexed.doomed (k, v) VALUES ({k}, {}); ", k % 5))
        .collect();
    connection.must(&format!("BEGIN UNLOGGED BATCH {rows} APPLY BATCH"))?;
    connection.must("CREATE INDEX IF NOT EXISTS of_doomed ON indexed.doomed (v)")?;
    let end = if random.bool() { "TRUNCATE" } else { "DROP TABLE" };
    connection.must(&format!("{end} indexed.doomed"))?;
    std::thread::sleep(Duration::from_millis(random.u64(0..60)));
    Ok(())
}

/// Makes those indexes that the kill has left dropped.
fn create_all(connection: &mut Connection) -> Outcome<()> {
    let there = there(connection)?;
    for index in INDEXES.iter().filter(|index| !there.contains(index.name)) {
        connection.must(index.create)?;
    }
    Ok(())
}

/// The names of the indexes that there are.
fn there(connection: &mut Connection) -> Outcome<BTreeSet<String>> {
    let text = "SELECT index_name FROM system_schema.indexes WHERE keyspace_name = 'indexed'";
    let rows = all_rows(connection, text)?;
    let names = rows.iter().filter_map(|row| unhex(row.get(0)?.as_str()?));
    Ok(names.map(|name| String::from_utf8_lossy(&name).into_owned()).collect())
}

fn is_built(connection: &mut Connection) -> Outcome<bool> {
    Ok(all_rows(connection, "SELECT * FROM system_views.sstable_tasks")?.is_empty())
}

fn wait_until_built(connection: &mut Connection) -> Outcome<()> {
    let start = clock::now();
    while !is_built(connection)? {
        if start.elapsed() > BUILD_WAIT_MAX {
            return Err(Error::failed("an index is not built after a minute"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Compares all questions' answers with what a full read says.
fn check_answers(connection: &mut Connection, totals: &mut Totals) -> Outcome<()> {
    let there = there(connection)?;
    let mut differences = Vec::new();
    for attempt in 0..ATTEMPTS {
        let read = all_rows(connection, "SELECT p, c, s, v, w, e, m FROM indexed.t")?;
        let rows: Vec<Row> = read.iter().map(Row::read).collect();
        totals.rows = rows.len();
        differences.clear();
        for index in INDEXES.iter().filter(|index| there.contains(index.name)) {
            for n in 0..index.values {
                let condition = (index.condition)(n);
                let answer = all_rows(connection, &format!("SELECT p, c FROM indexed.t WHERE {condition}"))?;
                let answer: Vec<_> = answer
                    .iter()
                    .map(|row| (ints(row.get(0)).first().copied(), ints(row.get(1)).first().copied()))
                    .collect();
                let expected: Vec<_> = rows
                    .iter()
                    .filter(|row| (index.meets)(row, n))
                    .map(|row| (row.p, row.c))
                    .collect();
                totals.answers += 1;
                if answer != expected {
                    differences.push(format!(
                        "{}: {condition} answers {} rows, the table has {}",
                        index.name,
                        answer.len(),
                        expected.len()
                    ));
                }
            }
        }
        if differences.is_empty() {
            return Ok(());
        }
        if attempt + 1 < ATTEMPTS {
            std::thread::sleep(Duration::from_millis(1100));
        }
    }
    totals.differences.append(&mut differences);
    Ok(())
}
