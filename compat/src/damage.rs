//! Damage to the files of a stopped server: flipped bits, cut, emptied and removed files, files of another moment, of
//! another store, of another database and of a copy that was written by itself.
//!
//! ```text
//! a store with tables, an index, a lifted partition, a log ─► stop ─► copy, damage one file ─► start ─► read everything
//!                                                               ▲                │
//!                                                               └────────────────┴─► right answers, or a refusal
//! ```
//! Right is: every row with its value, or an error in place of an answer; a table that is damaged may refuse while others answer. A
//! start that is refused must leave every file as it was, byte for byte, as must `check-indexes`. Never: an answer without a row that
//! was acknowledged, another value, a panic, an end by a signal. A salvage never calls complete what a start does not serve
//! whole, unless all rows are in what it wrote: where it says so they are restored elsewhere and compared. (The list of key spaces of
//! `file:` is the engine's own; without it no row is lost, and no start takes place.) It prints no backtrace.
//!
//! **Files of another moment**: one folder or file of an earlier stop beside all others of a later one. **Files of a copy that went
//! on**: the same from a copy of the earlier one that got more writes than the original.
//!
//! **Files of others**: the file of the same kind of another store of the database, and the file of the same name of another
//! database that was made alike. Tables of `file:` are left out: a start does not read them whole (Gap: disk-14).
//!
//! **Negative control.** A row is deleted through a server, which no damage explains: the comparison must say so.

mod store;

use crate::launch::{self, Launch, each_engine};
use crate::server::Server;
use crate::{Error, Outcome, clock};
use clap::Args;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use store::{BUILD_WAIT_MAX, Files, Truth};

/// What a run does.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Damages for each engine.
    #[arg(long, default_value_t = 500)]
    pub trials: u32,
    /// Engine, as a data URL begins; may be repeated. Both if not given.
    #[arg(long = "engine", value_parser = launch::engine)]
    pub engines: Vec<String>,
    /// Of the damages.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// What a program ends with that panics.
const PANICKED: i32 = 101;

/// What is done to a file.
#[derive(Debug, Clone)]
enum Damage {
    Flip {
        at: u64,
        bit: u8,
    },
    Cut {
        to: u64,
    },
    Removed,
    /// No byte is left.
    Emptied,
    /// This file of another store.
    OtherStore(PathBuf),
    /// This file of another database.
    OtherDatabase(PathBuf),
    /// The file or folder of an earlier moment.
    Earlier,
    /// That of a copy which was written by itself.
    Copy,
}

/// How a trial ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    /// The start was refused.
    Refused,
    /// Some reads were refused, the others right.
    Partly,
    /// All is there.
    Right,
    Wrong,
}

/// Runs; true when no damage gave a wrong answer or lost a byte.
///
/// # Errors
/// The store to damage cannot be made.
pub fn run(options: &Options) -> Outcome<bool> {
    each_engine(&options.engines, |engine| of_engine(engine, options))
}

fn of_engine(engine: &str, options: &Options) -> Outcome<bool> {
    let folder = tempfile::tempdir()?;
    let made = store::make(engine, folder.path())?;
    let mut random = fastrand::Rng::with_seed(options.seed);
    let files: Vec<PathBuf> = Files::read(&made.folder)?.paths().collect();
    let earlier: Vec<PathBuf> = store::differing(&made, &made.earlier)?;
    let copied: Vec<PathBuf> = store::differing(&made, &made.copy)?;
    let elsewhere = folder.path().join("elsewhere");
    std::fs::create_dir(&elsewhere)?;
    let other = store::make(engine, &elsewhere)?;
    let exchanged = store::exchanged(&made, &other, &files);
    let mut ends: BTreeMap<(&str, End), u32> = BTreeMap::new();
    let mut faults = 0;
    let begun = clock::now();
    for trial in 0..options.trials {
        let (path, damage) = match plan(
            trial,
            &Plans {
                files: &files,
                earlier: &earlier,
                copied: &copied,
                exchanged: &exchanged,
                folder: &made.folder,
            },
            &mut random,
        )? {
            Some(planned) => planned,
            None => continue,
        };
        let kind = match damage {
            Damage::Flip { .. } => "flips",
            Damage::Cut { .. } => "cuts",
            Damage::Removed => "removals",
            Damage::Emptied => "emptied files",
            Damage::OtherStore(_) => "files of another store",
            Damage::OtherDatabase(_) => "files of another database",
            Damage::Earlier => "files of another moment",
            Damage::Copy => "files of a copy that went on",
        };
        let end = match attempt(engine, folder.path(), &made, &path, &damage)? {
            Ok(end) => end,
            Err(fault) => {
                println!("damage: {engine}: {} {damage:?}: {fault}", path.display());
                faults += 1;
                End::Wrong
            }
        };
        *ends.entry((kind, end)).or_default() += 1;
    }
    let told: Vec<String> = ends
        .iter()
        .map(|((kind, end), count)| format!("{count} {kind} {end:?}").to_lowercase())
        .collect();
    println!(
        "damage: {engine}: {} trials over {} files: {}; {faults} faults; {:.0} s, seed {}",
        options.trials,
        files.len(),
        told.join(", "),
        begun.elapsed().as_secs_f64(),
        options.seed
    );
    let control = store::control(engine, folder.path(), &made)?;
    println!(
        "damage: {engine}: control, a deleted row: {}",
        if control { "seen" } else { "NOT seen" }
    );
    Ok(faults == 0 && control && options.trials > 0)
}

/// What may be damaged.
struct Plans<'p> {
    files: &'p [PathBuf],
    earlier: &'p [PathBuf],
    copied: &'p [PathBuf],
    exchanged: &'p [store::Exchange],
    folder: &'p Path,
}

/// The next damage: every file is removed once before any at random; `None` where a file has nothing to damage.
fn plan(trial: u32, plans: &Plans<'_>, random: &mut fastrand::Rng) -> Outcome<Option<(PathBuf, Damage)>> {
    let Plans {
        files,
        earlier,
        copied,
        exchanged,
        folder,
    } = plans;
    // A seventh each, so long as there are new ones.
    let nth = usize::try_from(trial / 7).unwrap_or(usize::MAX);
    let planned = match trial % 7 {
        0 => files.get(nth).map(|path| (path.clone(), Damage::Removed)),
        1 => earlier.get(nth).map(|path| (path.clone(), Damage::Earlier)),
        2 => files.get(nth).map(|path| (path.clone(), Damage::Emptied)),
        // These are twice as many.
        3 | 4 => exchanged
            .get(2 * nth + usize::from(trial % 7 == 4))
            .map(store::Exchange::damage),
        5 => copied.get(nth).map(|path| (path.clone(), Damage::Copy)),
        _ => None,
    };
    if let Some(planned) = planned {
        return Ok(Some(planned));
    }
    let Some(path) = random.choice(files.iter()) else {
        return Ok(None);
    };
    let length = std::fs::metadata(folder.join(path))?.len();
    if length == 0 {
        return Ok(Some((path.clone(), Damage::Removed)));
    }
    // Ends and beginnings of files are where programs look first.
    let at = match random.u8(..4) {
        0 => random.u64(..length.min(64)),
        1 => length - 1 - random.u64(..length.min(64)),
        _ => random.u64(..length),
    };
    let damage = if random.u8(..3) == 0 {
        Damage::Cut { to: at }
    } else {
        Damage::Flip {
            at,
            bit: random.u8(..8),
        }
    };
    Ok(Some((path.clone(), damage)))
}

/// Damages a copy and starts a server on it; the inner error is a fault.
fn attempt(
    engine: &str,
    folder: &Path,
    made: &store::Made,
    path: &Path,
    damage: &Damage,
) -> Outcome<Result<End, String>> {
    let place = tempfile::tempdir_in(folder)?;
    let launch = Launch::new(engine, place.path());
    let data = place.path().join("data");
    store::copy(&made.folder, &data)?;
    let form = match damage {
        Damage::Copy => &made.copy,
        _ => &made.earlier,
    };
    apply(&data.join(path), damage, &form.join(path))?;
    let before = Files::read(&data)?;
    if let Some(fault) = fault_of_check_indexes(&launch, &data, &before)? {
        return Ok(Err(fault));
    }
    let (code, told) = launch.salvage(&place.path().join("salvaged"))?;
    if code.is_none() || code == Some(PANICKED) || told.contains("stack backtrace") || told.contains("panicked at") {
        return Ok(Err(format!("salvage ends with {code:?}: {}", last(&told))));
    }
    if let Some(changed) = before.changed(&Files::read(&data)?) {
        return Ok(Err(format!("salvage changes {changed}")));
    }
    let is_complete = code == Some(0);
    // What check-indexes may have written where it succeeds is part of what a refusal must keep.
    let before = Files::read(&data)?;
    let mut starting = launch.begin(place.path())?;
    let server = loop {
        if let Some(status) = starting.ended()? {
            let log = std::fs::read_to_string(place.path().join("server.log")).unwrap_or_default();
            if status.code().is_none_or(|code| code == PANICKED) {
                return Ok(Err(format!("the start ends with {status}: {}", last(&log))));
            }
            let changed = before.changed(&Files::read(&data)?);
            return Ok(match changed {
                Some(changed) => Err(format!("a refused start changes {changed}: {}", last(&log))),
                None if is_complete => salvaged_whole(engine, place.path(), &made.truth)?
                    .map(|()| End::Refused)
                    .map_err(|lacks| format!("salvage says complete, and {lacks}; the start: {}", last(&log))),
                None => Ok(End::Refused),
            });
        }
        if place.path().join("ready").exists() {
            break starting.ready();
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    };
    // It may end between its ready file and its address.
    let server = match server {
        Ok(server) => server,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let end = compare(&server, &made.truth);
    let panics = server.panics();
    server.kill()?;
    Ok(match end {
        _ if panics > 0 => Err(format!("{panics} panics")),
        Ok(End::Partly) if is_complete => salvaged_whole(engine, place.path(), &made.truth)?
            .map(|()| End::Partly)
            .map_err(|lacks| format!("salvage says complete, and {lacks}")),
        other => other,
    })
}

/// The fault of `check-indexes`: it panics, or it fails and changes a file.
fn fault_of_check_indexes(launch: &Launch, data: &Path, before: &Files) -> Outcome<Option<String>> {
    let Some(told) = launch.check_indexes()? else {
        return Ok(None);
    };
    // A panic of the engine that is caught and told by name is a refusal like others.
    if told.contains(&format!("exit status: {PANICKED}")) || told.contains("signal: ") {
        return Ok(Some(format!("check-indexes panics: {}", last(&told))));
    }
    let changed = before.changed(&Files::read(data)?);
    Ok(changed.map(|changed| format!("check-indexes fails and changes {changed}")))
}

/// Restores what was salvaged into another directory, and compares it; the inner error is what it lacks.
fn salvaged_whole(engine: &str, place: &Path, truth: &Truth) -> Outcome<Result<(), String>> {
    let folder = place.join("restored");
    std::fs::create_dir(&folder)?;
    let launch = Launch::new(engine, &folder);
    if let Some(told) = launch.restore(&place.join("salvaged"))? {
        return Ok(Err(told));
    }
    let server = launch.start(&folder)?;
    // Indexes are built after the start.
    let begun = clock::now();
    let compared = loop {
        match compare(&server, truth) {
            Ok(End::Right) => break Ok(()),
            _ if begun.elapsed() < BUILD_WAIT_MAX => std::thread::sleep(std::time::Duration::from_millis(20)),
            Ok(_) => break Err("what it wrote cannot all be read".to_owned()),
            Err(fault) => break Err(format!("what it wrote: {fault}")),
        }
    };
    server.kill()?;
    Ok(compared)
}

/// What the server answers, against what is true.
fn compare(server: &Server, truth: &Truth) -> Result<End, String> {
    let mut refused = 0;
    for (statement, rows) in truth {
        // A damaged answer may close the connection; the next one begins anew.
        let answer = server
            .connect()
            .and_then(|mut connection| crate::crash::all_rows(&mut connection, statement));
        match answer {
            Err(Error::Refused { message, .. }) if message.contains("does not exist") => {
                return Err(format!("{statement}: {message}"));
            }
            Err(_) => refused += 1,
            Ok(found) if found == *rows => {}
            Ok(found) => {
                return Err(format!(
                    "{statement}: {} rows in place of {}, or other values",
                    found.len(),
                    rows.len()
                ));
            }
        }
    }
    Ok(if refused == 0 { End::Right } else { End::Partly })
}

/// `form` is the file or folder of another form of the store.
fn apply(file: &Path, damage: &Damage, form: &Path) -> Outcome<()> {
    match damage {
        Damage::Removed => std::fs::remove_file(file)?,
        Damage::Emptied => std::fs::OpenOptions::new().write(true).open(file)?.set_len(0)?,
        Damage::OtherStore(other) | Damage::OtherDatabase(other) => drop(std::fs::copy(other, file)?),
        Damage::Cut { to } => std::fs::OpenOptions::new().write(true).open(file)?.set_len(*to)?,
        Damage::Flip { at, bit } => {
            let mut bytes = std::fs::read(file)?;
            let at = usize::try_from(*at).map_err(|_| Error::Malformed("a place in a file"))?;
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << bit;
            }
            std::fs::write(file, bytes)?;
        }
        Damage::Earlier | Damage::Copy if form.is_dir() => {
            std::fs::remove_dir_all(file)?;
            store::copy(form, file)?;
        }
        Damage::Earlier | Damage::Copy => {
            std::fs::copy(form, file)?;
        }
    }
    Ok(())
}

/// The last words of a log, not too many.
fn last(log: &str) -> String {
    let line = log
        .lines()
        .rev()
        .find(|line| line.contains("panicked at") || line.starts_with("helenus:"));
    line.or_else(|| log.lines().last())
        .unwrap_or_default()
        .chars()
        .take(300)
        .collect()
}
