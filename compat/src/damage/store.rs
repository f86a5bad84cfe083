//! The store that is damaged: how it is made, what it holds, and its files.

use super::Damage;
use crate::crash::all_rows;
use crate::launch::Launch;
use crate::raw::Connection;
use crate::{Error, Outcome, clock, tools};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Statements, and the rows that each must answer.
pub(super) type Truth = Vec<(String, Vec<Value>)>;

/// A store that is stopped, and what it holds.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) folder: PathBuf,
    /// The same before its last writes.
    pub(super) earlier: PathBuf,
    /// A copy of that which was written by itself since.
    pub(super) copy: PathBuf,
    pub(super) truth: Truth,
}

/// Rows of each of the two tables, written three times: in tables on disk, in tables on disk again, in the log.
const ROWS: i32 = 600;
/// Bytes of a value; all together more than a memtable of either engine is kept small for a copy at each trial.
const VALUE_BYTES: usize = 400;

/// Longest wait for the index of a table.
pub(super) const BUILD_WAIT_MAX: Duration = Duration::from_secs(10);

const SCHEMA: [&str; 5] = [
    "CREATE KEYSPACE d WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE d.a (k int, c int, v text, n int, PRIMARY KEY (k, c)) WITH helenus_partitions = 2",
    "CREATE INDEX of_n ON d.a (n)",
    "CREATE TABLE d.b (k int PRIMARY KEY, v text)",
    "CREATE TABLE d.c (k int PRIMARY KEY, n counter)",
];

const QUESTIONS: [&str; 6] = [
    "SELECT k, c, v, n FROM d.a",
    "SELECT k, c FROM d.a WHERE n = 3",
    "SELECT k, v FROM d.b",
    "SELECT k, n FROM d.c",
    "SELECT count(*) FROM d.a",
    "SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'd'",
];

/// Makes it in `folder`: three rounds of writes, a partition lifted in the first, an end by a kill after each.
pub(super) fn make(engine: &str, folder: &Path) -> Outcome<Made> {
    let launch = Launch::new(engine, folder);
    let earlier = folder.join("earlier");
    let data = folder.join("data");
    let mut truth = Truth::new();
    for round in 0..3 {
        let server = launch.start(folder)?;
        let mut connection = server.connect()?;
        if round == 0 {
            SCHEMA.iter().try_for_each(|text| connection.must(text).map(|_| ()))?;
            lift(&mut connection)?;
        }
        write(&mut connection, round)?;
        truth.clear();
        for question in QUESTIONS {
            truth.push((question.to_owned(), all_rows(&mut connection, question)?));
        }
        drop(connection);
        server.kill()?;
        if round == 1 {
            copy(&data, &earlier)?;
        }
    }
    Ok(Made {
        copy: copy_that_went_on(engine, &earlier, &folder.join("copy"))?,
        folder: data,
        earlier,
        truth,
    })
}

/// Writes more into a copy than the original gets, so that its logs are longer.
fn copy_that_went_on(engine: &str, earlier: &Path, folder: &Path) -> Outcome<PathBuf> {
    std::fs::create_dir(folder)?;
    let data = folder.join("data");
    copy(earlier, &data)?;
    let server = Launch::new(engine, folder).start(folder)?;
    let mut connection = server.connect()?;
    for round in 3..5 {
        write(&mut connection, round)?;
    }
    drop(connection);
    server.kill()?;
    Ok(data)
}

/// Gives half of a table a store of its own.
fn lift(connection: &mut Connection) -> Outcome<()> {
    let text = "SELECT id FROM system_cosmos.partitions WHERE keyspace_name = 'd' AND table_name = 'a'";
    let rows = all_rows(connection, text)?;
    let id = rows
        .first()
        .and_then(|row| crate::raw::unhex(row.get(0)?.as_str()?))
        .and_then(|bytes| bytes.try_into().ok())
        .map(i64::from_be_bytes)
        .ok_or(Error::Malformed("an id of a partition"))?;
    let begun = clock::now();
    loop {
        match connection.must(&format!("ALTER TABLE d.a WITH helenus_lift = {id}")) {
            // Its index may still be built, empty as the table is.
            Err(Error::Refused { .. }) if begun.elapsed() < BUILD_WAIT_MAX => {
                std::thread::sleep(Duration::from_millis(20));
            }
            told => return told.map(|_| ()),
        }
    }
}

fn write(connection: &mut Connection, round: i32) -> Outcome<()> {
    let value = |n: i32| format!("{n}-{round}-").repeat(VALUE_BYTES / 8);
    for some in (0..ROWS).collect::<Vec<_>>().chunks(20) {
        let rows: String = some
            .iter()
            .map(|n| {
                let (k, c, v) = (n / 10, n % 10 + 10 * (round % 2), value(*n));
                format!(
                    "INSERT INTO d.a (k, c, v, n) VALUES ({k}, {c}, '{v}', {}); INSERT INTO d.b (k, v) VALUES ({n}, '{v}'); ",
                    n % 7
                )
            })
            .collect();
        connection.must(&format!("BEGIN UNLOGGED BATCH {rows} APPLY BATCH"))?;
    }
    for k in 0..10 {
        connection.must(&format!("UPDATE d.c SET n = n + {} WHERE k = {k}", round + 1))?;
    }
    Ok(())
}

/// A file in the place of another.
#[derive(Debug)]
pub(super) struct Exchange {
    path: PathBuf,
    by: PathBuf,
    is_of_other_database: bool,
}

impl Exchange {
    pub(super) fn damage(&self) -> (PathBuf, Damage) {
        let by = self.by.clone();
        let damage = match self.is_of_other_database {
            true => Damage::OtherDatabase(by),
            false => Damage::OtherStore(by),
        };
        (self.path.clone(), damage)
    }
}

/// The part of a file's path that stores have in common, and the store. `None` means that each store has none such.
fn kind_of(path: &Path) -> Option<(String, String)> {
    let text = path.to_str()?;
    if let Some(rest) = text.strip_prefix("stores/") {
        let (number, rest) = rest.split_once('/')?;
        let rest = rest.strip_prefix("engine/").unwrap_or(rest);
        return Some((rest.to_owned(), number.to_owned()));
    }
    if let Some(number) = text.strip_prefix("acknowledged.stores.") {
        return Some(("acknowledged".to_owned(), number.to_owned()));
    }
    let rest = text.strip_prefix("engine/").unwrap_or(text);
    Some((rest.to_owned(), "main".to_owned()))
}

/// Every file with a file of the same kind in another store of the database, and in another database.
pub(super) fn exchanged(made: &Made, other: &Made, files: &[PathBuf]) -> Vec<Exchange> {
    // A start does not read tables of fjall whole; their number is all that their path has.
    let is_checked = |path: &&PathBuf| {
        !path
            .parent()
            .is_some_and(|folder| folder.ends_with("keyspaces/1/tables"))
    };
    // Files that operators exchange on purpose.
    let is_of_store = |path: &&PathBuf| !path.starts_with("tls") && !path.to_string_lossy().ends_with(".pem");
    let mut found = Vec::new();
    for path in files.iter().filter(is_checked).filter(is_of_store) {
        let Some((kind, store)) = kind_of(path) else { continue };
        let beside = files.iter().find(|other| {
            kind_of(other).is_some_and(|(other_kind, other_store)| other_kind == kind && other_store != store)
        });
        found.extend(beside.map(|by| Exchange {
            path: path.clone(),
            by: made.folder.join(by),
            is_of_other_database: false,
        }));
        let by = other.folder.join(path);
        if by.exists() {
            found.push(Exchange {
                path: path.clone(),
                by,
                is_of_other_database: true,
            });
        }
    }
    found
}

/// Copies a folder with all that is in it.
pub(super) fn copy(from: &Path, to: &Path) -> Outcome<()> {
    tools::run("cp", ["-a".as_ref(), "--".as_ref(), from.as_os_str(), to.as_os_str()]).map(|_| ())
}

/// Files and folders that another form of the store has otherwise: the stores' own folders first.
pub(super) fn differing(made: &Made, form: &Path) -> Outcome<Vec<PathBuf>> {
    let (before, after) = (Files::read(form)?, Files::read(&made.folder)?);
    let folders = ["engine", "stores", "stores/1", "stores/1/engine"].map(PathBuf::from);
    let there = |path: &PathBuf| form.join(path).is_dir() && made.folder.join(path).is_dir();
    let mut all: Vec<PathBuf> = folders.into_iter().filter(there).collect();
    let both = after
        .0
        .iter()
        .filter(|(path, sum)| before.0.get(*path).is_some_and(|other| other != *sum));
    all.extend(both.map(|(path, _)| path.clone()));
    Ok(all)
}

/// A row is deleted; whether the comparison sees it.
pub(super) fn control(engine: &str, folder: &Path, made: &Made) -> Outcome<bool> {
    let place = tempfile::tempdir_in(folder)?;
    copy(&made.folder, &place.path().join("data"))?;
    let server = Launch::new(engine, place.path()).start(place.path())?;
    server.connect()?.must("DELETE FROM d.b WHERE k = 7")?;
    let seen = super::compare(&server, &made.truth).is_err();
    server.kill()?;
    Ok(seen)
}

/// The file that keeps a second server out; who holds it is written there.
const LOCK: &str = "helenus.lock";

/// The files of a folder, each with a sum of its bytes.
#[derive(Debug)]
pub(super) struct Files(BTreeMap<PathBuf, u64>);

impl Files {
    pub(super) fn read(folder: &Path) -> Outcome<Self> {
        let mut files = BTreeMap::new();
        let mut folders = vec![folder.to_path_buf()];
        while let Some(inner) = folders.pop() {
            for entry in std::fs::read_dir(&inner)? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.is_file() && path.file_name().is_none_or(|name| name != LOCK) {
                    let mut hasher = DefaultHasher::new();
                    hasher.write(&std::fs::read(&path)?);
                    let inside = path.strip_prefix(folder).unwrap_or(&path).to_path_buf();
                    files.insert(inside, hasher.finish());
                }
            }
        }
        Ok(Self(files))
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.0.keys().cloned()
    }

    /// The first file that is gone, another or new.
    pub(super) fn changed(&self, after: &Self) -> Option<String> {
        let all: BTreeSet<&PathBuf> = self.0.keys().chain(after.0.keys()).collect();
        let mut changed = all.into_iter().filter(|path| self.0.get(*path) != after.0.get(*path));
        let path = changed.next()?;
        let more = changed.count();
        let what = match (self.0.contains_key(path), after.0.contains_key(path)) {
            (true, true) => "other bytes",
            (true, false) => "gone",
            (false, _) => "new",
        };
        Some(format!("{} ({what}) and {more} more files", path.display()))
    }
}
