//! A server whose parts of tables are kept on local disk (`bucket-cache`), over a bucket: where its reads come from, and what it answers when files
//! of that folder are damaged or gone, while it runs and between runs.
//!
//! ```text
//! write all ─► stop ─► start: read all, twice ─► stop ─► start: read all, which asks the bucket for nothing
//! round after round: a way of damage, while readers read and rows are written over, or while the server is stopped ─► read all ─► stop or kill ─► start
//! ```
//! Each value follows from its key and from how often it was written, so that every answer can be judged. A refused request is repeated: on a busy
//! machine a server may be late with its lease.
//!
//! Runs under `compat/bucket/with`.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::crash::{all_rows, int};
use crate::raw::{Connection, unhex};
use crate::server::Server;
use crate::{Error, Outcome, bucket_speed, clock, launch};

const ROWS: i32 = 8_000;

/// Rows below are written over; those from here on never are, so that readers beside the writer know what to find.
const STILL_FROM: i32 = ROWS / 2;

const VALUE_BYTES: usize = 600;

/// Rows that are written over in a round.
const REWRITTEN: i32 = 480;

/// Rows of a batch: a larger one would be refused for its size.
const BATCH: i32 = 40;

const READERS: u64 = 3;

/// Longest time for which requests may be refused.
const REFUSED_MAX: Duration = Duration::from_secs(30);

/// Between two of them.
const REFUSED_WAIT: Duration = Duration::from_millis(100);

/// What happens to files of the cache.
const WAYS: [&str; 6] = [
    "a bit flipped",
    "cut in half",
    "emptied",
    "another's bytes",
    "removed",
    "the whole folder removed",
];

/// Runs `rounds` rounds; true when no answer was wrong and every fault struck.
///
/// # Errors
/// There is no bucket, or a server does not start.
pub fn run(rounds: usize, seed: u64) -> Outcome<bool> {
    if std::env::var_os("HELENUS_COMPAT_BUCKET").is_none() {
        return Err(Error::failed("run it by compat/bucket/with STORE"));
    }
    let folder = tempfile::tempdir()?;
    let mut run = Run {
        data: launch::data(folder.path()),
        folder: folder.path().to_owned(),
        written: vec![0; usize::try_from(ROWS).unwrap_or_default()],
        random: fastrand::Rng::with_seed(seed),
        seen: Seen::default(),
        wrong: Vec::new(),
    };
    let ran = run.fill().and_then(|()| {
        let is_cached = run.cached()?;
        run.damaged(rounds).map(|()| is_cached)
    });
    let is_cached = ran.inspect_err(|_| {
        let log = fs::read_to_string(run.folder.join("server.log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        println!(
            "{}",
            lines
                .get(lines.len().saturating_sub(20)..)
                .unwrap_or_default()
                .join("\n")
        );
    })?;
    let Run { seen, wrong, .. } = run;
    println!(
        "bucket-cache: {rounds} rounds, seed {seed}: {} parts from the cache, {} not there, {} damaged and read again; {} wrong",
        seen.cached,
        seen.missing,
        seen.damaged,
        wrong.len()
    );
    for wrong in wrong.iter().take(10) {
        println!("  {wrong}");
    }
    if seen.damaged == 0 || seen.missing == 0 {
        println!("  nothing proved: no fault struck");
    }
    Ok(wrong.is_empty() && is_cached && seen.damaged > 0 && seen.missing > 0)
}

/// Counters of a server.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    cached: u64,
    missing: u64,
    damaged: u64,
    /// Gets of tables that reached the bucket.
    gets: u64,
}

impl Seen {
    fn since(self, before: Self) -> Self {
        Self {
            cached: self.cached - before.cached,
            missing: self.missing - before.missing,
            damaged: self.damaged - before.damaged,
            gets: self.gets - before.gets,
        }
    }
}

/// A server with the address of its metrics.
struct Started {
    server: Server,
    admin: SocketAddr,
}

impl Started {
    fn seen(&self) -> Outcome<Seen> {
        let mut stream = TcpStream::connect(self.admin)?;
        let request = format!(
            "GET /metrics HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.admin
        );
        stream.write_all(request.as_bytes())?;
        let mut told = String::new();
        stream.read_to_string(&mut told)?;
        let sum = |words: &[&str]| -> Outcome<u64> {
            let lines = told.lines().filter(|line| !line.starts_with('#'));
            let lines = lines.filter(|line| words.iter().all(|word| line.contains(word)));
            let figures: Vec<f64> = lines.filter_map(|line| line.rsplit(' ').next()?.parse().ok()).collect();
            if figures.is_empty() && words.len() == 1 {
                return Err(Error::failed(format!("no {words:?} in the metrics")));
            }
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a count of requests"
            )]
            Ok(figures.iter().sum::<f64>() as u64)
        };
        Ok(Seen {
            cached: sum(&["bucket_parts_cached_total"])?,
            missing: sum(&["bucket_parts_missing_total"])?,
            damaged: sum(&["bucket_parts_damaged_total"])?,
            gets: sum(&["bucket_requests_total", "cause=\"tables\"", "kind=\"get\""])?,
        })
    }
}

struct Run {
    data: String,
    folder: PathBuf,
    /// How often each row was written over.
    written: Vec<u64>,
    random: fastrand::Rng,
    /// Of all servers.
    seen: Seen,
    wrong: Vec<String>,
}

impl Run {
    fn cache(&self) -> PathBuf {
        self.folder.join("cache")
    }

    fn start(&self) -> Outcome<Started> {
        let admin = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let (cache, admin_text) = (self.cache().display().to_string(), admin.to_string());
        // So little memory that reads reach the folder.
        let arguments = [
            "--bucket-cache",
            &cache,
            "--admin-listen",
            &admin_text,
            "--row-cache-bytes-max",
            "0",
            "--block-cache-bytes-max",
            "1000000",
        ];
        let server = Server::start_with(&self.data, &arguments, &self.folder)?;
        Ok(Started { server, admin })
    }

    fn stop(&mut self, started: Started, is_killed: bool) -> Outcome<()> {
        let seen = started.seen()?;
        self.seen.cached += seen.cached;
        self.seen.missing += seen.missing;
        self.seen.damaged += seen.damaged;
        if started.server.panics() > 0 {
            self.wrong.push("the server panicked".to_owned());
        }
        if is_killed {
            started.server.kill()
        } else {
            bucket_speed::end(started.server)
        }
    }

    fn fill(&mut self) -> Outcome<()> {
        let started = self.start()?;
        let mut connection = started.server.connect()?;
        for statement in [
            "CREATE KEYSPACE cached WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            "CREATE TABLE cached.t (k int PRIMARY KEY, v text)",
        ] {
            connection.must(statement)?;
        }
        self.write(&mut connection, 0..ROWS)?;
        drop(connection);
        self.stop(started, false)
    }

    fn write(&mut self, connection: &mut Connection, keys: std::ops::Range<i32>) -> Outcome<()> {
        for first in keys.clone().step_by(usize::try_from(BATCH).unwrap_or(1)) {
            let mut text = "BEGIN UNLOGGED BATCH ".to_owned();
            for k in first..(first + BATCH).min(keys.end) {
                let value = value(k, self.times(k));
                text.push_str(&format!("INSERT INTO cached.t (k, v) VALUES ({k}, '{value}'); "));
            }
            text.push_str("APPLY BATCH");
            repeated(|| connection.must(&text))?;
        }
        Ok(())
    }

    fn times(&self, k: i32) -> u64 {
        usize::try_from(k)
            .ok()
            .and_then(|k| self.written.get(k))
            .copied()
            .unwrap_or_default()
    }

    /// Whether a server that starts with the filled folder reads tables there only.
    fn cached(&mut self) -> Outcome<bool> {
        let started = self.start()?;
        self.check(&started, "first")?;
        let first = started.seen()?;
        self.check(&started, "again")?;
        let again = started.seen()?.since(first);
        self.stop(started, false)?;
        let started = self.start()?;
        self.check(&started, "after a start")?;
        let after = started.seen()?;
        println!("all {ROWS} rows, first: {first:?}; again: {again:?}; after a start, the opening among it: {after:?}");
        self.stop(started, false)?;
        // A compaction makes new tables at any time.
        let is_cached = again.cached > 0 && after.cached > after.missing * 10;
        if !is_cached {
            println!("  the cache does not answer");
        }
        // A comparison that cannot fail would prove nothing.
        let started = self.start()?;
        let known = self.wrong.len();
        if let Some(written) = self.written.first_mut() {
            *written += 1;
        }
        self.check(&started, "control")?;
        let is_seen = self.wrong.len() == known + 1;
        self.wrong.truncate(known);
        if let Some(written) = self.written.first_mut() {
            *written -= 1;
        }
        self.stop(started, false)?;
        println!(
            "control, one row expected otherwise: {}",
            if is_seen { "seen" } else { "NOT seen" }
        );
        Ok(is_cached && is_seen)
    }

    fn damaged(&mut self, rounds: usize) -> Outcome<()> {
        let mut started = self.start()?;
        for round in 0..rounds {
            let way = WAYS.get(round % WAYS.len()).copied().unwrap_or_default();
            let is_stopped = round / WAYS.len() % 2 == 1;
            let is_killed = self.random.bool();
            if is_stopped {
                self.stop(started, is_killed)?;
                self.damage(way)?;
                started = self.start()?;
            }
            let readers = Readers::begin(started.server.address(), self.random.u64(..));
            let mut connection = started.server.connect()?;
            if !is_stopped {
                self.damage(way)?;
            }
            let first = self.random.i32(0..STILL_FROM - REWRITTEN);
            for k in first..first + REWRITTEN {
                if let Some(written) = usize::try_from(k).ok().and_then(|k| self.written.get_mut(k)) {
                    *written += 1;
                }
            }
            self.write(&mut connection, first..first + REWRITTEN)?;
            self.check(
                &started,
                &format!(
                    "round {round}, {way}, {}",
                    if is_stopped { "stopped" } else { "running" }
                ),
            )?;
            self.wrong.extend(readers.end()?);
            if !is_stopped {
                self.stop(started, is_killed)?;
                started = self.start()?;
            }
        }
        self.stop(started, false)
    }

    /// Does this to a third of the files of the cache.
    fn damage(&mut self, way: &str) -> Outcome<()> {
        let parts = self.cache().join("helenus-parts");
        if way == "the whole folder removed" {
            // The server may write into it meanwhile.
            fs::remove_dir_all(&parts).ok();
            return Ok(());
        }
        let files = files(&parts);
        for path in &files {
            if self.random.u8(..3) > 0 {
                continue;
            }
            // The server removes parts, too.
            let Ok(mut bytes) = fs::read(path) else { continue };
            let middle = self.random.usize(..bytes.len().max(1));
            match way {
                "a bit flipped" => {
                    if let Some(byte) = bytes.get_mut(middle) {
                        *byte ^= 1 << self.random.u8(..8);
                    }
                }
                "cut in half" => bytes.truncate(bytes.len() / 2),
                "emptied" => bytes.clear(),
                "another's bytes" => {
                    let other = self.random.choice(&files).and_then(|other| fs::read(other).ok());
                    bytes = other.unwrap_or_default();
                }
                _ => {
                    fs::remove_file(path).ok();
                    continue;
                }
            }
            fs::write(path, bytes).ok();
        }
        Ok(())
    }

    /// Reads all rows, and compares.
    fn check(&mut self, started: &Started, when: &str) -> Outcome<()> {
        let mut connection = started.server.connect()?;
        let rows = repeated(|| all_rows(&mut connection, "SELECT k, v FROM cached.t"))?;
        let mut found = 0;
        for row in &rows {
            let Some(k) = int(row.get(0)) else {
                return Err(Error::failed(format!("{when}: a row without its key")));
            };
            found += 1;
            if text(row.get(1)) != Some(value(k, self.times(k))) {
                self.wrong.push(format!("{when}: row {k} has another value"));
            }
        }
        if found != ROWS {
            self.wrong.push(format!("{when}: {found} rows of {ROWS}"));
        }
        Ok(())
    }
}

/// Repeats a request while it is refused.
fn repeated<T>(mut request: impl FnMut() -> Outcome<T>) -> Outcome<T> {
    let began = clock::now();
    loop {
        match request() {
            Err(Error::Refused { .. }) if began.elapsed() < REFUSED_MAX => std::thread::sleep(REFUSED_WAIT),
            answered => return answered,
        }
    }
}

/// The value of a row that was written over so often.
fn value(k: i32, times: u64) -> String {
    let mut random = fastrand::Rng::with_seed(u64::from(k.unsigned_abs()) << 20 | times);
    (0..VALUE_BYTES).map(|_| random.alphanumeric()).collect()
}

fn text(cell: Option<&serde_json::Value>) -> Option<String> {
    String::from_utf8(unhex(cell?.as_str()?)?).ok()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => files.extend(self::files(&path)),
            path => files.push(path),
        }
    }
    files
}

/// Clients that read rows that do not change.
struct Readers {
    stop: Arc<AtomicBool>,
    reads: Arc<AtomicUsize>,
    readers: Vec<JoinHandle<Outcome<Vec<String>>>>,
}

impl Readers {
    fn begin(address: &str, seed: u64) -> Self {
        let (stop, reads) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let readers = (0..READERS).map(|reader| {
            let (address, stop, reads) = (address.to_owned(), Arc::clone(&stop), Arc::clone(&reads));
            std::thread::spawn(move || {
                let mut connection = Connection::open(&address, 4)?;
                let mut random = fastrand::Rng::with_seed(seed ^ reader);
                let mut wrong = Vec::new();
                while !stop.load(Ordering::SeqCst) {
                    let k = random.i32(STILL_FROM..ROWS);
                    let select = format!("SELECT v FROM cached.t WHERE k = {k}");
                    let rows = repeated(|| all_rows(&mut connection, &select))?;
                    reads.fetch_add(1, Ordering::SeqCst);
                    if rows.first().and_then(|row| text(row.get(0))) != Some(value(k, 0)) {
                        wrong.push(format!("a reader found another value in row {k}"));
                    }
                }
                Ok(wrong)
            })
        });
        Self {
            readers: readers.collect(),
            stop,
            reads,
        }
    }

    /// What was wrong; a run of readers that read nothing is.
    fn end(self) -> Outcome<Vec<String>> {
        self.stop.store(true, Ordering::SeqCst);
        let mut wrong = Vec::new();
        for reader in self.readers {
            wrong.extend(reader.join().map_err(|_| Error::failed("a reader panicked"))??);
        }
        if self.reads.load(Ordering::SeqCst) == 0 {
            wrong.push("the readers read nothing".to_owned());
        }
        Ok(wrong)
    }
}
