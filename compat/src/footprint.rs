//! Memory and disk under steady small load: a server with little data is written to, read, left alone and emptied, and
//! watched from outside.
//!
//! ```text
//! load (half an hour, an hour) ─► a minute of rest ─► DROP KEYSPACE ─► a minute of rest
//!   every 30 s: memory of the process, disk, live data, memory by holder (`system_cosmos.memory`)
//! ```
//! Ceilings: memory at the end against that after ten minutes, and in all; memory and disk after everything is dropped;
//! disk against the data; the holders against the memory.

use crate::crash::all_rows;
use crate::launch::{self, Launch};
use crate::raw::request::{Bound, Params, Prepared};
use crate::raw::{Connection, unhex};
use crate::server::{Server, rss_kib};
use crate::{Error, Outcome, clock};
use serde_json::Value;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// What a run does.
#[derive(Debug, Clone)]
pub struct Options {
    /// Operations a second.
    pub rate: u64,
    /// How long the load lasts.
    pub minutes: u64,
    /// Of everything random.
    pub seed: u64,
}

const MIB: u64 = 1 << 20;
/// Time between two lines.
const LINE_EVERY: Duration = Duration::from_secs(30);
/// From here on memory may grow by a fifth.
const STEADY_AFTER: Duration = Duration::from_secs(600);
/// A server at rest has so long to give back what it does not need.
const REST: Duration = Duration::from_secs(60);
/// Operations a second of one client: each waits for its answer.
const CLIENT_RATE: u64 = 75;
/// Most memory at the end of the load of 150 operations a second.
const LOADED_MIB_MAX: u64 = 120;
/// Most memory, and most disk, when everything is dropped.
const DROPPED_MIB_MAX: u64 = 80;
/// Disk that is allowed beside three times the data.
const DISK_BESIDE_MIB_MAX: u64 = 64;

/// Tables of rows, partitions of each, rows of a partition: some 1.1 MB in all.
const TABLES: u64 = 4;
const PARTITIONS: i32 = 25;
const ROWS: i32 = 20;

/// A server at one moment.
#[derive(Debug, Clone)]
struct Moment {
    memory_mib: u64,
    disk_mib: u64,
    data_mib: f64,
    /// Bytes by holder.
    holders: Vec<(String, u64)>,
}

impl Moment {
    fn read(server: &Server, connection: &mut Connection, folder: &Path) -> Outcome<Self> {
        let holders = all_rows(connection, "SELECT holder, bytes FROM system_cosmos.memory")?;
        let sizes = all_rows(connection, "SELECT bytes FROM system_cosmos.partitions")?;
        let data: u64 = sizes.iter().map(|row| number(row.get(0))).sum();
        let named = holders.iter().map(|row| (text(row.get(0)), number(row.get(1))));
        #[expect(clippy::cast_precision_loss, reason = "a size for people")]
        Ok(Self {
            memory_mib: rss_kib(server.pid())? / 1024,
            disk_mib: disk_bytes(folder)?.div_ceil(MIB),
            data_mib: data as f64 / MIB as f64,
            holders: named.collect(),
        })
    }

    /// What the holders that count themselves hold, `other` left out.
    fn counted_mib(&self) -> u64 {
        let counted = self.holders.iter().filter(|(name, _)| name != "other");
        counted.map(|(_, bytes)| bytes).sum::<u64>() / MIB
    }

    fn print(&self, when: &str) {
        let mut holders = self.holders.clone();
        holders.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        let shown: Vec<String> = holders
            .iter()
            .filter(|(_, bytes)| *bytes >= MIB / 2)
            .map(|(name, bytes)| format!("{name} {}", (bytes + MIB / 2) / MIB))
            .collect();
        println!(
            "footprint: {when}: memory {} MiB, disk {} MiB, data {:.1} MiB; {}",
            self.memory_mib,
            self.disk_mib,
            self.data_mib,
            shown.join(", ")
        );
    }
}

fn number(cell: Option<&Value>) -> u64 {
    let bytes = cell.and_then(Value::as_str).and_then(unhex).unwrap_or_default();
    bytes.try_into().map_or(0, u64::from_be_bytes)
}

fn text(cell: Option<&Value>) -> String {
    let bytes = cell.and_then(Value::as_str).and_then(unhex).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Space that the files of a folder take; a file that goes away meanwhile takes none.
fn disk_bytes(folder: &Path) -> Outcome<u64> {
    let mut bytes = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)?.flatten() {
            match entry.metadata() {
                Ok(of) if of.is_dir() => folders.push(entry.path()),
                Ok(of) => bytes += of.blocks() * 512,
                Err(_) => {}
            }
        }
    }
    Ok(bytes)
}

/// Runs; true when every ceiling held.
///
/// # Errors
/// The server refuses something, or ends.
pub fn run(options: &Options) -> Outcome<bool> {
    let folder = tempfile::tempdir()?;
    let launch = Launch::new(launch::ENGINES.first().copied().unwrap_or("file"), folder.path());
    let data = folder.path().join("data");
    let server = launch.start(folder.path())?;
    let mut connection = server.connect()?;
    create(&mut connection)?;
    let mut over = Vec::new();
    let load = Load::start(&server, options);
    let begun = clock::now();
    let until = Duration::from_secs(options.minutes * 60);
    let (mut steady, mut last) = (None, None);
    while begun.elapsed() < until {
        std::thread::sleep(LINE_EVERY.min(until.saturating_sub(begun.elapsed())));
        let moment = Moment::read(&server, &mut connection, &data)?;
        let seconds = begun.elapsed().as_secs();
        moment.print(&format!("{seconds} s, {} operations", load.done()));
        check_always(&moment, seconds, &mut over);
        if steady.is_none() && begun.elapsed() >= STEADY_AFTER {
            steady = Some(moment.memory_mib);
        }
        last = Some(moment);
    }
    load.join()?;
    if let Some(last) = &last {
        check_end(last, steady, options.rate, &mut over);
    }
    std::thread::sleep(REST);
    Moment::read(&server, &mut connection, &data)?.print("at rest");
    connection.must("DROP KEYSPACE footprint")?;
    std::thread::sleep(REST);
    let dropped = Moment::read(&server, &mut connection, &data)?;
    dropped.print("all dropped");
    check_at_most("memory after the drop", dropped.memory_mib, DROPPED_MIB_MAX, &mut over);
    check_at_most("disk after the drop", dropped.disk_mib, DROPPED_MIB_MAX, &mut over);
    for line in &over {
        println!("footprint: {line}");
    }
    println!(
        "footprint: {} operations a second for {} min, {} ceilings broken, seed {}",
        options.rate,
        options.minutes,
        over.len(),
        options.seed
    );
    Ok(over.is_empty())
}

fn check_at_most(what: &str, is: u64, most: u64, over: &mut Vec<String>) {
    if is > most {
        over.push(format!("{what}: {is} MiB, at most {most}"));
    }
}

fn check_always(moment: &Moment, seconds: u64, over: &mut Vec<String>) {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a size of some MiB"
    )]
    let most = (3.0 * moment.data_mib).ceil() as u64 + DISK_BESIDE_MIB_MAX;
    check_at_most(&format!("disk after {seconds} s"), moment.disk_mib, most, over);
    let (counted, all) = (moment.counted_mib(), moment.memory_mib);
    if counted * 100 < all * 85 || counted * 100 > all * 115 {
        over.push(format!("holders after {seconds} s: {counted} of {all} MiB"));
    }
}

fn check_end(last: &Moment, steady: Option<u64>, rate: u64, over: &mut Vec<String>) {
    if rate <= 150 {
        check_at_most("memory at the end", last.memory_mib, LOADED_MIB_MAX, over);
    }
    if let Some(steady) = steady {
        let most = steady * 6 / 5;
        check_at_most(
            "memory at the end, of that after ten minutes",
            last.memory_mib,
            most,
            over,
        );
    }
}

fn create(connection: &mut Connection) -> Outcome<()> {
    connection
        .must("CREATE KEYSPACE footprint WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")?;
    for table in 0..TABLES {
        connection.must(&format!(
            "CREATE TABLE footprint.rows{table} (p int, c int, v text, w blob, PRIMARY KEY (p, c))"
        ))?;
    }
    connection.must("CREATE TABLE footprint.counts (p int PRIMARY KEY, k counter)")?;
    connection.must("CREATE TABLE footprint.indexed (p int PRIMARY KEY, a int, b text)")?;
    connection.must("CREATE INDEX ON footprint.indexed (a)")?;
    Ok(())
}

/// Clients that keep a rate.
struct Load {
    ends: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    clients: Vec<JoinHandle<Outcome<()>>>,
}

impl Load {
    fn start(server: &Server, options: &Options) -> Self {
        let (ends, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let count = options.rate.div_ceil(CLIENT_RATE).max(1);
        let pause = Duration::from_secs(count).div_f64(options.rate as f64);
        let client = |number: u64| {
            let (ends, done) = (Arc::clone(&ends), Arc::clone(&done));
            let (address, seed) = (server.address().to_owned(), options.seed ^ (number << 32));
            std::thread::spawn(move || {
                let mut client = Client::connect(&address, seed)?;
                let begun = clock::now();
                for operation in 0_u32.. {
                    if ends.load(Ordering::Relaxed) {
                        break;
                    }
                    client.operate()?;
                    done.fetch_add(1, Ordering::Relaxed);
                    std::thread::sleep((pause * operation).saturating_sub(begun.elapsed()));
                }
                Ok(())
            })
        };
        Self {
            clients: (0..count).map(client).collect(),
            ends,
            done,
        }
    }

    fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    fn join(self) -> Outcome<()> {
        self.ends.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.join().map_err(|_| Error::failed("a client panicked"))??;
        }
        Ok(())
    }
}

/// A connection with its statements.
struct Client {
    connection: Connection,
    random: fastrand::Rng,
    inserts: Vec<Prepared>,
    reads: Vec<Prepared>,
    scans: Vec<Prepared>,
    deletes: Vec<Prepared>,
    conditional: Prepared,
    count: Prepared,
    insert_indexed: Prepared,
    read_indexed: Prepared,
}

impl Client {
    fn connect(address: &str, seed: u64) -> Outcome<Self> {
        let mut connection = Connection::open(address, 4)?;
        let mut prepare = |text: &str| connection.prepare(text).map(|(prepared, _)| prepared);
        let mut each = |text: &str| -> Outcome<Vec<Prepared>> {
            let texts = (0..TABLES).map(|table| text.replace("rows", &format!("footprint.rows{table}")));
            texts.map(|text| prepare(&text)).collect()
        };
        let inserts = each("INSERT INTO rows (p, c, v, w) VALUES (?, ?, ?, ?)")?;
        let reads = each("SELECT * FROM rows WHERE p = ? AND c = ?")?;
        let scans = each("SELECT * FROM rows WHERE p = ?")?;
        let deletes = each("DELETE FROM rows WHERE p = ? AND c = ?")?;
        Ok(Self {
            inserts,
            reads,
            scans,
            deletes,
            conditional: prepare("UPDATE footprint.rows0 SET v = ? WHERE p = ? AND c = ? IF EXISTS")?,
            count: prepare("UPDATE footprint.counts SET k = k + 1 WHERE p = ?")?,
            insert_indexed: prepare("INSERT INTO footprint.indexed (p, a, b) VALUES (?, ?, ?)")?,
            read_indexed: prepare("SELECT * FROM footprint.indexed WHERE a = ?")?,
            random: fastrand::Rng::with_seed(seed),
            connection,
        })
    }

    /// One operation of the mix: two in five insert a row, as many read.
    fn operate(&mut self) -> Outcome<()> {
        let random = &mut self.random;
        let table = random.usize(..self.inserts.len());
        let of = |statements: &[Prepared]| statements.get(table).cloned().unwrap_or_default();
        let (p, c) = (int(random.i32(0..PARTITIONS)), int(random.i32(0..ROWS)));
        let filler = |random: &mut fastrand::Rng, bytes: usize| {
            Bound::Bytes((0..bytes).map(|_| random.u8(b'a'..=b'z')).collect())
        };
        let (statement, values) = match random.u32(..100) {
            0..40 => {
                let length = random.usize(50..200);
                let (v, w) = (filler(random, length), filler(random, 400));
                (of(&self.inserts), vec![p, c, v, w])
            }
            40..65 => (of(&self.reads), vec![p, c]),
            65..72 => (of(&self.scans), vec![p]),
            72..78 => (of(&self.deletes), vec![p, c]),
            78..82 => (self.conditional.clone(), vec![filler(random, 100), p, c]),
            82..88 => (self.count.clone(), vec![p]),
            88..94 => {
                let (key, a) = (int(random.i32(0..500)), int(random.i32(0..50)));
                (self.insert_indexed.clone(), vec![key, a, filler(random, 100)])
            }
            _ => (self.read_indexed.clone(), vec![int(random.i32(0..50))]),
        };
        let params = Params {
            values,
            ..Params::default()
        };
        let answer = self.connection.execute(&statement, &params)?;
        crate::raw::connection::succeeded("an operation", answer).map(drop)
    }
}

fn int(number: i32) -> Bound {
    Bound::Bytes(number.to_be_bytes().to_vec())
}
