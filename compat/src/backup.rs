//! Backups of a server under load, restored elsewhere: each must be the state at one moment.
//!
//! ```text
//! writer: [ logged batch over two tables ─► a row of the log ─► a condition ─► a counter ] round after round, in stores that move
//! backup ─► restore into the other engine ─► start ─► for each writer: the round of each step, which may only fall along the arrows, by one
//! ```
//! Whatever was acknowledged before the backup began is in it, and nothing that was begun after it ended.

use crate::crash::{all_rows, int};
use crate::launch::{ENGINES, Launch};
use crate::raw::Connection;
use crate::server::Server;
use crate::{Error, Outcome, server};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Clients that write.
const WRITERS: i32 = 6;

/// Load before each backup.
const LOAD: Duration = Duration::from_millis(400);

const TABLES: [&str; 8] = [
    "CREATE KEYSPACE moment WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE moment.a (k int PRIMARY KEY, n int, m int) WITH helenus_partitions = 4",
    "CREATE TABLE moment.b (k int PRIMARY KEY, n int) WITH helenus_partitions = 4",
    "CREATE TABLE moment.log (w int, n int, PRIMARY KEY ((w, n))) WITH helenus_partitions = 4",
    "CREATE TABLE moment.counts (k int PRIMARY KEY, n counter) WITH helenus_partitions = 2",
    "ALTER TABLE moment.a WITH helenus_lift = 1",
    "ALTER TABLE moment.log WITH helenus_lift = 2",
    "ALTER TABLE moment.counts WITH helenus_lift = 0",
];

/// Runs; true when every backup shows one moment.
///
/// Under `compat/bucket/with`, and where no engine is named, a server with three stores in the bucket is backed up, by its socket and after its stop,
/// and each backup is restored into another prefix and into a directory, which must have the same rows.
///
/// # Errors
/// A server does not start, or a command fails.
pub fn run(backups: u32, engines: &[String]) -> Outcome<bool> {
    let mut wrong = Vec::new();
    if engines.is_empty() && std::env::var_os("HELENUS_COMPAT_BUCKET").is_some() {
        let folder = tempfile::tempdir()?;
        of_bucket(folder.path(), backups, &mut wrong)?;
    } else {
        for (place, engine) in ENGINES.iter().enumerate() {
            if !engines.is_empty() && !engines.iter().any(|named| named == engine) {
                continue;
            }
            let other = ENGINES.get((place + 1) % ENGINES.len()).unwrap_or(engine);
            let folder = tempfile::tempdir()?;
            let tried = Tried {
                name: format!("{engine} to {other}"),
                launch: Launch::new(engine, folder.path()).with(&["--sweep-seconds", "1"]),
                of_backup: Vec::new(),
                targets: vec![*other],
            };
            let server = tried.under_load(folder.path(), backups, &mut wrong)?;
            server.kill()?;
        }
    }
    for line in wrong.iter().take(20) {
        println!("backup: {line}");
    }
    Ok(wrong.is_empty())
}

/// A server in a bucket, backed up while it runs and after it was stopped.
fn of_bucket(folder: &Path, backups: u32, wrong: &mut Vec<String>) -> Outcome<()> {
    let operator = [
        "--operator-folder".to_owned(),
        folder.join("operator").display().to_string(),
    ];
    let mut launch = Launch::new("file", folder).with(&["--sweep-seconds", "1", "--stores", "3"]);
    launch.data = crate::launch::data(folder);
    launch.arguments.extend(operator.clone());
    let tried = Tried {
        name: "a bucket to another prefix and file:".to_owned(),
        launch,
        of_backup: operator.to_vec(),
        targets: vec![BUCKET, "file"],
    };
    let server = tried.under_load(folder, backups, wrong)?;
    let there = contents(&mut server.connect()?)?;
    crate::bucket_speed::end(server)?;
    let to = folder.join("backup-stopped");
    tried.back_up(&to)?;
    let mut compared = 0;
    for target in &tried.targets {
        let (copy, place) = tried.restored(target, &to, folder, "stopped")?;
        if contents(&mut copy.connect()?)? == there {
            compared += there.len();
        } else {
            wrong.push(format!(
                "the backup of the stopped server, restored into {target}, has other rows"
            ));
        }
        copy.kill()?;
        std::fs::remove_dir_all(&place)?;
    }
    println!(
        "backup: of the stopped server, restored into another prefix and file:, {compared} rows are those that it had"
    );
    if there.is_empty() {
        wrong.push("the stopped server had no rows: nothing proved".to_owned());
    }
    // A prefix with a database is refused, and stays as it is.
    let used = [
        "restore",
        "--data",
        &tried.launch.data,
        "--from",
        &to.display().to_string(),
    ]
    .map(str::to_owned);
    match command(&used) {
        Err(Error::Failed(told)) if told.contains("restore into a prefix that is new") => Ok(()),
        told => {
            wrong.push(format!("a restore into a prefix with a database: {told:?}"));
            Ok(())
        }
    }
}

/// The target that is another prefix of the bucket.
const BUCKET: &str = "bucket";

/// A server that is backed up, and what its backups are restored into.
struct Tried<'t> {
    name: String,
    launch: Launch,
    /// More arguments of `backup`.
    of_backup: Vec<String>,
    /// Engines, or [`BUCKET`].
    targets: Vec<&'t str>,
}

/// What one writer has done.
#[derive(Debug, Default)]
struct Progress {
    /// The last round of which something was sent.
    begun: AtomicI32,
    /// The last round that was acknowledged as a whole.
    done: AtomicI32,
}

impl Tried<'_> {
    /// Backs up a server that is written to, restores each backup, and compares; the server, no longer written to.
    fn under_load(&self, folder: &Path, backups: u32, wrong: &mut Vec<String>) -> Outcome<Server> {
        let server = self.launch.start(folder)?;
        let mut connection = server.connect()?;
        for text in TABLES {
            connection.must(text)?;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let progress: Arc<Vec<Progress>> = Arc::new((0..WRITERS).map(|_| Progress::default()).collect());
        let writers: Vec<_> = (0..WRITERS)
            .map(|w| writer(server.address(), w, &stop, &progress))
            .collect();
        let mover = mover(server.address(), &stop);
        let (mut longest_millis, mut rows) = (0.0_f64, 0);
        for number in 0..backups {
            std::thread::sleep(LOAD);
            let to = folder.join(format!("backup-{number}"));
            let before: Vec<i32> = progress.iter().map(|of| of.done.load(Ordering::SeqCst)).collect();
            let told = self.back_up(&to)?;
            let after: Vec<i32> = progress.iter().map(|of| of.begun.load(Ordering::SeqCst)).collect();
            let waited = told
                .split("waited ")
                .nth(1)
                .and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok());
            longest_millis = longest_millis.max(waited.ok_or_else(|| Error::failed(format!("backup said {told}")))?);
            let mut of_first = None;
            for target in &self.targets {
                let (copy, place) = self.restored(target, &to, folder, &number.to_string())?;
                let mut of_copy = copy.connect()?;
                for (w, (before, after)) in (0_i32..).zip(before.iter().zip(&after)) {
                    if let Err(why) = moment(&mut of_copy, w, *before, *after, &mut rows)? {
                        wrong.push(format!("{}, backup {number} in {target}, writer {w}: {why}", self.name));
                    }
                }
                let found = contents(&mut of_copy)?;
                if *of_first.get_or_insert_with(|| found.clone()) != found {
                    wrong.push(format!("{}, backup {number} in {target} has other rows", self.name));
                }
                copy.kill()?;
                std::fs::remove_dir_all(&place)?;
            }
            std::fs::remove_dir_all(&to)?;
        }
        stop.store(true, Ordering::SeqCst);
        for writer in writers {
            writer.join().map_err(|_| Error::failed("a writer panicked"))??;
        }
        let moves = mover.join().map_err(|_| Error::failed("the mover panicked"))??;
        let rounds: i32 = progress.iter().map(|of| of.done.load(Ordering::SeqCst)).sum();
        println!(
            "backup: {}, {backups} backups under {rounds} rounds of {WRITERS} writers and {moves} lifts, lowers and splits, \
             {rows} rows compared; writes waited {longest_millis:.1} ms at most",
            self.name
        );
        if rounds == 0 || moves == 0 {
            wrong.push(format!("{}: nothing proved", self.name));
        }
        Ok(server)
    }

    fn back_up(&self, to: &Path) -> Outcome<String> {
        let mut arguments = ["backup", "--data", &self.launch.data, "--to", &to.display().to_string()]
            .map(str::to_owned)
            .to_vec();
        arguments.extend(self.of_backup.clone());
        command(&arguments)
    }

    /// Restores a backup and starts a server there; with its folder.
    fn restored(&self, target: &str, from: &Path, folder: &Path, name: &str) -> Outcome<(Server, PathBuf)> {
        let place = folder.join(format!("restored-{name}"));
        std::fs::create_dir(&place)?;
        let mut restored = Launch::new(target, &place);
        if target == BUCKET {
            restored.data = crate::launch::data(&place);
        }
        let from = from.display().to_string();
        command(&["restore", "--data", &restored.data, "--from", &from].map(str::to_owned))?;
        Ok((restored.start(&place)?, place))
    }
}

/// All rows, with the timestamps of what is not a counter.
fn contents(connection: &mut Connection) -> Outcome<Vec<String>> {
    let mut rows = Vec::new();
    for text in [
        "SELECT k, n, m, writetime(n), writetime(m) FROM moment.a",
        "SELECT k, n, writetime(n) FROM moment.b",
        "SELECT w, n FROM moment.log",
        "SELECT k, n FROM moment.counts",
    ] {
        let found = all_rows(connection, text)?;
        rows.extend(found.iter().map(|row| format!("{text}: {row}")));
    }
    rows.sort();
    Ok(rows)
}

/// Runs a command of the program; what it printed.
fn command(arguments: &[String]) -> Outcome<String> {
    let output = Command::new(server::program()?).args(arguments).output()?;
    let text = String::from_utf8_lossy(if output.status.success() {
        &output.stdout
    } else {
        &output.stderr
    });
    if output.status.success() {
        Ok(text.into_owned())
    } else {
        Err(Error::failed(format!("helenus {}: {text}", arguments.join(" "))))
    }
}

fn writer(address: &str, w: i32, stop: &Arc<AtomicBool>, progress: &Arc<Vec<Progress>>) -> JoinHandle<Outcome<()>> {
    let (address, stop, progress) = (address.to_owned(), Arc::clone(stop), Arc::clone(progress));
    std::thread::spawn(move || {
        let mut connection = Connection::open(&address, 4)?;
        let of = usize::try_from(w).ok().and_then(|place| progress.get(place));
        let of = of.ok_or_else(|| Error::failed("no such writer"))?;
        for n in 1.. {
            if stop.load(Ordering::SeqCst) {
                break;
            }
            of.begun.store(n, Ordering::SeqCst);
            let before = if n == 1 { "null".to_owned() } else { (n - 1).to_string() };
            let there = w + 1000;
            for text in [
                format!(
                    "BEGIN BATCH UPDATE moment.a SET n = {n} WHERE k = {w}; UPDATE moment.b SET n = {n} WHERE k = {there}; APPLY BATCH"
                ),
                format!("INSERT INTO moment.log (w, n) VALUES ({w}, {n})"),
                format!("UPDATE moment.a SET m = {n} WHERE k = {w} IF m = {before}"),
                format!("UPDATE moment.counts SET n = n + 1 WHERE k = {w}"),
            ] {
                connection.must(&text)?;
            }
            of.done.store(n, Ordering::SeqCst);
        }
        Ok(())
    })
}

/// Moves and splits physical partitions; how often that succeeded.
fn mover(address: &str, stop: &Arc<AtomicBool>) -> JoinHandle<Outcome<u32>> {
    let (address, stop) = (address.to_owned(), Arc::clone(stop));
    std::thread::spawn(move || {
        let mut connection = Connection::open(&address, 4)?;
        let mut random = fastrand::Rng::with_seed(1);
        let mut moves = 0;
        while !stop.load(Ordering::SeqCst) {
            let table = random.choice(["a", "b", "log", "counts"]).unwrap_or("a");
            let id = random.u32(..12);
            let change = match random.u32(..8) {
                0 => format!("helenus_split_at = {}", random.i64(..)),
                1..4 => format!("helenus_lower = {id}"),
                _ => format!("helenus_lift = {id}"),
            };
            match connection.must(&format!("ALTER TABLE moment.{table} WITH {change}")) {
                Ok(_) => moves += 1,
                // Many name no partition of the table.
                Err(Error::Refused { .. }) => {}
                Err(error) => return Err(error),
            }
            std::thread::sleep(Duration::from_millis(random.u64(..20)));
        }
        Ok(moves)
    })
}

/// What is wrong with what a writer has in a restored backup, of rounds between these.
fn moment(
    connection: &mut Connection,
    w: i32,
    before: i32,
    after: i32,
    rows: &mut usize,
) -> Outcome<Result<(), String>> {
    let number = |connection: &mut Connection, text: String| -> Outcome<i32> {
        let found = all_rows(connection, &text)?;
        Ok(found.first().and_then(|row| int(row.get(0))).unwrap_or(0))
    };
    let a = number(connection, format!("SELECT n FROM moment.a WHERE k = {w}"))?;
    let b = number(connection, format!("SELECT n FROM moment.b WHERE k = {}", w + 1000))?;
    let m = number(connection, format!("SELECT m FROM moment.a WHERE k = {w}"))?;
    let count = number(
        connection,
        format!("SELECT CAST(n AS int) FROM moment.counts WHERE k = {w}"),
    )?;
    let log = all_rows(
        connection,
        &format!("SELECT n FROM moment.log WHERE w = {w} ALLOW FILTERING"),
    )?;
    *rows += log.len() + 4;
    let mut log: Vec<i32> = log.iter().filter_map(|row| int(row.get(0))).collect();
    log.sort_unstable();
    let last = log.last().copied().unwrap_or(0);
    if a != b {
        return Ok(Err(format!("half of a batch: {a} and {b}")));
    }
    if log != (1..=last).collect::<Vec<_>>() {
        return Ok(Err(format!("the log has holes before {last}")));
    }
    if !(a >= last && last >= m && m >= count && count >= a - 1) {
        return Ok(Err(format!("rounds out of order: {a}, {last}, {m}, {count}")));
    }
    if count < before || a > after {
        return Ok(Err(format!(
            "rounds {count} to {a} are not between {before}, acknowledged before, and {after}, begun after"
        )));
    }
    Ok(Ok(()))
}
