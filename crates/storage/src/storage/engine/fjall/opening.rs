//! Opens the engine of a directory. A refused opening leaves every byte in place.
//!
//! ```text
//! undo an interrupted opening ─► read `acknowledged` ─► check the files by reading only ─► compare the log with it
//!   ─► rewrite, stage links ─► the engine opens those ─► check the chain of groups ─► the caller accepts
//!                                           └────────── any failure, or no acceptance ─────► restore, refuse
//! A server first opens all its stores and then accepts them, so that a refusal of one leaves all of them unchanged
//! ([`Provisional`]). Nothing is written before that.
//!
//! A directory in which nothing was ever written is started afresh, after the remains of an interrupted creation were
//! renamed. A used store whose data is missing is refused, unless [`Options::create`] is set.

use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use fjall::LsmError;

use super::super::acknowledged::{Acknowledged, ChainEnd, Expected, Link, Recorded};
use super::super::aside::{self, Cut, Kept};
use super::super::directory::{self, Directory, check_identity, full_or, io_error};
use super::super::durable::History;
use super::super::layout::{OWN, Own, parse_own};
use super::super::{DeletionTables, Order};
use super::log::Log;
use super::verify::{Found, check_tables, verify};
use super::{Engine, FORMAT, TABLE_BYTES, WORKER_THREADS, describe, guard};
use crate::storage::batch::Space;
use crate::storage::engine::options::Options;
use crate::storage::key::KeyRange;
use crate::storage::sizes::Sizes;
use crate::storage::{Error, Result};
use helenus_base::clock::TimeMark;

/// The keyspace of the engine that holds all spaces.
const KEYSPACE: &str = "data";

/// The store's own records found in an engine when it opens.
pub(in crate::storage::engine) struct Recovered {
    pub(in crate::storage::engine) engine: Engine,
    pub(in crate::storage::engine) end: ChainEnd,
    /// The time mark of the last group. `None` means that the store records no time.
    pub(in crate::storage::engine) time: Option<TimeMark>,
    pub(in crate::storage::engine) sizes: Sizes,
    pub(in crate::storage::engine) deletion_tables: DeletionTables,
    /// Ranges whose deletion was not finished, by their record's number.
    pub(in crate::storage::engine) unfinished: Vec<(u64, Space, KeyRange)>,
    /// Groups that the engine has as ones that other stores may have recorded.
    pub(in crate::storage::engine) witnessed: Vec<ChainEnd>,
    /// All groups that other stores may have recorded.
    pub(in crate::storage::engine) history: History,
}

/// The original files of a directory whose engine is open and not accepted yet.
pub(super) struct Provisional {
    /// `None` means the directory was empty or never used.
    kept: Option<Kept>,
}

impl Provisional {
    /// Whether this opening created the store.
    pub(super) const fn is_new(&self) -> bool {
        self.kept.is_none()
    }

    /// Deletes the links to the original files: from now on the engine, which ends with this group, may be written to.
    pub(super) fn accept(self, directory: &Directory, end: ChainEnd) -> Result<Acknowledged> {
        if let Some(kept) = self.kept {
            kept.accept()?;
        }
        let acknowledged = Acknowledged::open(directory.path(), directory.identity(), end)?;
        directory.mark_used()?;
        Ok(acknowledged)
    }

    /// Restores the original files. The engine must be closed.
    pub(super) fn restore(self) {
        // A failure here has the effect of a kill: the next opening restores the files.
        if let Some(Err(error)) = self.kept.map(Kept::restore) {
            tracing::error!(%error, "the engine's files could not be restored; the next start tries again");
        }
    }
}

/// The store's own records in an engine that has just been opened.
struct Records {
    end: ChainEnd,
    time: Option<TimeMark>,
    sizes: Sizes,
    deletion_tables: DeletionTables,
    unfinished: Vec<(u64, Space, KeyRange)>,
    witnessed: Vec<ChainEnd>,
    history: History,
}

impl Engine {
    /// Opens the engine of a directory; see the module's header.
    /// `lost` is set when the medium fails a read later.
    pub(super) fn open(
        directory: &Directory,
        options: &Options,
        lost: &Arc<ArcSwapOption<Error>>,
    ) -> Result<(Recovered, Provisional)> {
        let path = directory.engine_path();
        aside::undo_interrupted(&path)?;
        let mut recorded = read_acknowledged(directory, options)?;
        let expected = |recorded: Recorded| Expected {
            store: directory.identity(),
            acknowledged: recorded.end(),
        };
        let kept = match verify(&path, expected(recorded))? {
            Found::Engine {
                is_empty,
                log,
                manifests,
            } if !is_empty || directory.is_used() => {
                check_log(directory.path(), &log, recorded)?;
                may_open_without_record(directory, options, recorded, &log)?;
                if options.checks_whole_tables {
                    check_tables(&path)?;
                }
                // A clean close synced everything. Without one, the page cache may differ from the disk.
                if !is_closed(&log, recorded) {
                    directory.make_durable()?;
                    write_anew(&path, &log, &manifests)?;
                }
                Some(keep(&path, &log)?)
            }
            Found::Nothing => {
                recorded = may_begin(directory, options, recorded)?;
                directory.make_durable()?;
                None
            }
            Found::HalfMade | Found::Engine { .. } => {
                recorded = may_begin(directory, options, recorded)?;
                let renamed = aside::rename_aside(&path, "unfinished")?;
                tracing::warn!(renamed = %renamed.display(), "the store's creation was interrupted; it is created again");
                directory.make_durable()?;
                None
            }
        };
        let opened = Self::open_in(&path, options, kept.is_some(), lost).and_then(|engine| {
            let records = engine.records(directory.path(), expected(recorded))?;
            Ok((engine, records))
        });
        let provisional = Provisional { kept };
        let (engine, records) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                provisional.restore();
                return Err(error);
            }
        };
        let recovered = Recovered {
            engine,
            end: records.end,
            time: records.time,
            sizes: records.sizes,
            deletion_tables: records.deletion_tables,
            unfinished: records.unfinished,
            witnessed: records.witnessed,
            history: records.history,
        };
        Ok((recovered, provisional))
    }

    fn open_in(path: &Path, options: &Options, is_old: bool, lost: &Arc<ArcSwapOption<Error>>) -> Result<Self> {
        let opened = guard(path, || {
            let database = fjall::Database::builder(path)
                .cache_size(options.block_cache_bytes_max as u64)
                .worker_threads(WORKER_THREADS)
                .open()?;
            if is_old && !database.keyspace_exists(KEYSPACE) {
                return Ok(None);
            }
            let data = database.keyspace(KEYSPACE, || {
                let leveled = fjall::compaction::Leveled::default().with_table_target_size(TABLE_BYTES);
                fjall::KeyspaceCreateOptions::default()
                    .max_memtable_size(TABLE_BYTES)
                    .compaction_strategy(Arc::new(leveled))
            })?;
            Ok(Some((database, data)))
        })?;
        let opened = opened.map_err(|error| opening_error(path, error))?;
        let (database, data) = opened.ok_or_else(|| Error::Corrupt {
            path: path.join("keyspaces").join("0"),
            what: "it does not name the store's tree".to_owned(),
        })?;
        Ok(Self {
            database,
            data,
            directory: path.to_owned(),
            lost: Arc::clone(lost),
            read_faults: options.read_faults.clone(),
        })
    }

    fn records(&self, store: &Path, expected: Expected) -> Result<Records> {
        let view = self.database.snapshot();
        let (mut links, mut time) = (Vec::new(), None);
        let mut sizes = Sizes::default();
        let (mut unfinished, mut witnessed) = (Vec::new(), Vec::new());
        let own = (Bound::Included(vec![OWN]), Bound::Unbounded);
        for entry in self.entries(&view, own, Order::Forward)? {
            let (key, value) = entry?;
            match parse_own(&key, &value) {
                Some(Own::Chain(link, of)) => {
                    links.push(link);
                    time = of;
                }
                Some(Own::Size(table, size)) => sizes.set(table, size),
                Some(Own::Range(number, space, range)) => unfinished.push((number, space, range)),
                Some(Own::Witnessed(end)) => witnessed.push(end),
                Some(Own::Origin(..)) | None => {
                    let what = "an unknown record of the store's own".to_owned();
                    return Err(Error::Corrupt {
                        path: self.directory.clone(),
                        what,
                    });
                }
            }
        }
        Ok(Records {
            end: check_links(store, &self.directory, &links, expected)?,
            time,
            sizes,
            deletion_tables: self.deletion_tables(&view)?,
            unfinished,
            history: history(&links, &witnessed),
            witnessed,
        })
    }
}

/// The groups that other stores may have recorded of a store with these records.
pub(in crate::storage::engine) fn history(links: &[Link], witnessed: &[ChainEnd]) -> History {
    let anchors = links.iter().map(|link| link.anchor);
    History {
        witnessed: witnessed.iter().copied().chain(anchors).collect(),
        from: 0,
    }
}

/// Reads the `acknowledged` file. An unreadable file is remade if [`Options::create`] is set.
fn read_acknowledged(directory: &Directory, options: &Options) -> Result<Recorded> {
    let recorded = Recorded::read(directory.path());
    match recorded.and_then(|recorded| recorded.of(directory.path(), directory.identity())) {
        Err(Error::Corrupt { path, what }) if options.create => {
            let renamed = aside::rename_aside(&path, "damaged")?;
            tracing::warn!(renamed = %renamed.display(), what, "the record of the last acknowledged group is unreadable; it is made again");
            Ok(Recorded::Nothing)
        }
        recorded => recorded,
    }
}

/// Whether an engine may be created in a directory without one. An `acknowledged` file there belongs to an earlier
/// engine and is ignored.
fn may_begin(directory: &Directory, options: &Options, recorded: Recorded) -> Result<Recorded> {
    let is_used = options.must_exist || directory.is_used() || recorded.end().is_some_and(|end| end.seq > 0);
    if !is_used {
        return Ok(recorded);
    }
    if !options.create {
        return Err(Error::Gone {
            directory: directory.path().to_owned(),
            what: "its data in engine/ is gone",
            creates: "begins it anew, empty",
        });
    }
    tracing::warn!(directory = %directory.path().display(), "the store's data is missing; the store starts afresh because of --create");
    if recorded != Recorded::Nothing {
        aside::rename_aside(&directory.path().join("acknowledged"), "before")?;
    }
    Ok(Recorded::Nothing)
}

/// Whether an engine may be opened without an `acknowledged` file; see acknowledged.rs.
fn may_open_without_record(directory: &Directory, options: &Options, recorded: Recorded, log: &Log) -> Result<()> {
    if recorded != Recorded::Nothing || !(log.is_used() || directory.is_used()) {
        return Ok(());
    }
    if directory.is_used() && !options.create {
        return Err(Error::Gone {
            directory: directory.path().to_owned(),
            what: "its file \"acknowledged\" is gone or empty, which tells whether the log has lost its end",
            creates: "takes the log as it is for whole",
        });
    }
    tracing::warn!(
        directory = %directory.path().display(),
        "the store's file \"acknowledged\" is missing or empty; a loss of the log's end cannot be detected"
    );
    Ok(())
}

/// Compares the log with the `acknowledged` file before anything is changed. A log without groups is checked later,
/// when its tables are open.
pub(super) fn check_log(store: &Path, log: &Log, recorded: Recorded) -> Result<()> {
    let (
        Some(end),
        Recorded::End {
            end: acknowledged,
            closed,
            ..
        },
    ) = (log.end, recorded)
    else {
        return Ok(());
    };
    if closed && end.seq > acknowledged.seq {
        let what = format!(
            "the store was closed with group {}, and the log goes on to group {}: the log or the file acknowledged is of another copy",
            acknowledged.seq, end.seq
        );
        let path = log
            .files
            .last()
            .map_or_else(|| store.to_owned(), |file| file.path.clone());
        return Err(Error::Corrupt { path, what });
    }
    match (check_chain(store, end, acknowledged), &log.torn) {
        // Add the file and the offset to the message.
        (Err(_), Some(torn)) => Err(lost(
            store,
            format!("group {} was acknowledged, and {torn}", acknowledged.seq),
        )),
        (checked, _) => checked,
    }
}

/// Whether the store was closed cleanly, and nothing was written after it.
fn is_closed(log: &Log, recorded: Recorded) -> bool {
    matches!(recorded, Recorded::End { end, closed: true, .. } if log.end.is_none_or(|of_log| of_log == end))
}

/// Rewrites the files whose bytes may be only in the page cache.
fn write_anew(engine: &Path, log: &Log, manifests: &[PathBuf]) -> Result<()> {
    if let Some(active) = log.files.last() {
        directory::write_anew(&active.path, active.whole_bytes)?;
    }
    for path in manifests.iter().chain([&engine.join("version")]) {
        let bytes = std::fs::metadata(path).map_err(io_error("reading", path))?.len();
        directory::write_anew(path, bytes)?;
    }
    Ok(())
}

/// Keeps the original files and makes links to them, which the engine opens.
fn keep(engine: &Path, log: &Log) -> Result<Kept> {
    if let Some(torn) = &log.torn {
        tracing::warn!(%torn, "the store stopped during a write to the log; the incomplete group was not acknowledged and is dropped");
    }
    let cuts = log
        .files
        .iter()
        .map(|file| Cut::read(engine, &file.path, file.whole_bytes, !file.is_torn));
    Kept::stage(engine, cuts.collect::<Result<_>>()?)
}

/// Translates an error on opening. The store is not served, whatever the error.
fn opening_error(path: &Path, error: fjall::Error) -> Error {
    let corrupt = |path: PathBuf, what: String| Error::Corrupt { path, what };
    match error {
        fjall::Error::Io(error) | fjall::Error::Storage(LsmError::Io(error)) => match error.kind() {
            std::io::ErrorKind::UnexpectedEof
            | std::io::ErrorKind::NotFound
            | std::io::ErrorKind::InvalidData
            | std::io::ErrorKind::InvalidInput => corrupt(path.to_owned(), error.to_string()),
            _ => full_or(error, path, "opening", path),
        },
        fjall::Error::Storage(error) => corrupt(path.join("keyspaces"), describe(&error)),
        fjall::Error::JournalRecovery(error) => corrupt(path.join("*.jnl"), format!("the log: {error:?}")),
        fjall::Error::Locked => Error::Locked {
            directory: path.to_owned(),
            holder: None,
        },
        fjall::Error::InvalidVersion(found) => {
            let found = found.map_or_else(
                || "of an unknown engine version".to_owned(),
                |found| format!("fjall {}", found as u8),
            );
            Error::UnknownFormat {
                directory: path.to_owned(),
                found,
                known: FORMAT,
            }
        }
        error => corrupt(path.to_owned(), error.to_string()),
    }
}

fn lost(store: &Path, what: String) -> Error {
    Error::LostWrites {
        directory: store.to_owned(),
        what,
    }
}

/// Checks that all acknowledged groups are present and none between them is missing; see fjall.rs. `links` are the
/// records of groups that the engine has.
pub(super) fn check_links(store: &Path, engine: &Path, links: &[Link], expected: Expected) -> Result<ChainEnd> {
    for link in links {
        check_identity(engine, link.store, expected.store)?;
    }
    let end = match links {
        [] => ChainEnd::start(expected.store),
        [link] => {
            if link.contradicts(expected.end()) {
                let what = format!("group {} does not go with the one that was acknowledged", link.end.seq);
                return Err(lost(store, what));
            }
            link.end
        }
        [first, .., last] => {
            let (first, last) = (first.end.seq, last.end.seq);
            return Err(lost(
                store,
                format!("the log has a gap after group {first}, before group {last}"),
            ));
        }
    };
    check_chain(store, end, expected.end()).map(|()| end)
}

/// Checks that the chain does not end before the acknowledged group, and with no other one.
fn check_chain(store: &Path, end: ChainEnd, acknowledged: ChainEnd) -> Result<()> {
    if end.seq < acknowledged.seq {
        let what = format!(
            "the log ends with group {}, group {} was acknowledged",
            end.seq, acknowledged.seq
        );
        return Err(lost(store, what));
    }
    if end.seq == acknowledged.seq && end.chain != acknowledged.chain {
        return Err(lost(
            store,
            format!("group {} is not the one that was acknowledged", end.seq),
        ));
    }
    Ok(())
}
