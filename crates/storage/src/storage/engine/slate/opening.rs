//! Preparations before SlateDB opens a database for writing: it is verified (verify.rs), objects that may not be
//! durable are rewritten, and the record of puts is begun.

use std::fs;
use std::io;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::FutureExt;

use super::home::{Home, NumberedBlocks};
use super::places::{DATABASE, Folder, number_of};
use super::put_record::{self, Opened, PutRecord};
use super::verify::{Found, verify};
use crate::storage::engine::aside::rename_aside;
use crate::storage::engine::directory::{Directory, io_error, sync_directory, write_anew};
use crate::storage::engine::fjall::panic_text;
use crate::storage::engine::moments;
use crate::storage::{Error, Options, Result};

/// Folders of a database whose newest objects may have been put without being synced.
const LATEST: [Folder; 2] = [Folder::Log, Folder::Manifests];

/// How many of them: SlateDB puts one after the other, and its compactor may put a manifest at the same time.
const LATEST_OBJECTS: usize = 2;

/// Files in a folder that have an object's name, the least name first. A put that was cut short leaves a file of
/// another name.
fn objects(folder: &Path, is_object: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>> {
    let listed = fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    let mut objects: Vec<PathBuf> = match listed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.map_err(io_error("listing", folder))?,
    };
    objects.retain(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(&is_object));
    objects.sort_unstable();
    Ok(objects)
}

fn numbered(database: &Path, folder: Folder) -> Result<Vec<PathBuf>> {
    objects(&database.join(folder.name()), |name| folder.id(name).is_some())
}

/// Whether a directory may get a database, or already has one: a store that was used has a manifest.
fn may_open(directory: &Directory, options: &Options) -> Result<()> {
    let database = directory.engine_path();
    if !numbered(&database, Folder::Manifests)?.is_empty() {
        return Ok(());
    }
    let tables = objects(&database.join("compacted"), |name| name.ends_with(".sst"))?;
    let has_data = !numbered(&database, Folder::Log)?.is_empty() || !tables.is_empty();
    if !has_data && !directory.is_used() {
        return Ok(());
    }
    if !options.create {
        return Err(Error::Gone {
            directory: directory.path().to_owned(),
            what: "its manifests in engine/manifest are gone",
            creates: "begins it anew, empty, and renames what is left",
        });
    }
    tracing::warn!(directory = %directory.path().display(), "the store's manifests are missing; the store starts afresh because of --create");
    if database.is_dir() {
        rename_aside(&database, "before")?;
    }
    let record = put_record::path_of(directory.path(), DATABASE);
    if record.exists() {
        rename_aside(&record, "before")?;
    }
    Ok(())
}

/// Verifies a database, rewrites objects that may not be durable, begins the record of puts, and raises the clock to
/// the highest time in the database. With `is_start`, all complete side databases are verified with the main one, so
/// that damage in one of them leaves the main one unchanged, too. What is read of a bucket goes into the cache of blocks.
pub(super) async fn prepare(
    home: &Home,
    options: &Options,
    is_start: bool,
    blocks: Option<&NumberedBlocks>,
) -> Result<()> {
    let Some(directory) = &home.directory else {
        match verify(home, &home.database, None, blocks).await? {
            Some(found) => home.ticks.raise_to(found.millis),
            None => {
                home.may_begin(options)?;
                home.forget(&home.database).await?;
            }
        }
        return Ok(());
    };
    if *home.database == *DATABASE {
        may_open(directory, options)?;
    }
    let noted = noted(directory, &home.database, options)?;
    let is_new = noted.is_none();
    let found = verify(home, &home.database, noted, None).await?;
    if is_start && *home.database == *DATABASE {
        verify_together(home, directory, found.as_ref(), options).await?;
    }
    directory.make_durable()?;
    let database = directory.path().join(home.database.as_ref());
    for folder in LATEST {
        let objects = numbered(&database, folder)?;
        for path in objects.iter().rev().take(LATEST_OBJECTS) {
            let bytes = fs::metadata(path).map_err(io_error("reading", path))?.len();
            write_anew(path, bytes)?;
        }
        if !objects.is_empty() {
            let folder = database.join(folder.name());
            sync_directory(&folder).map_err(io_error("syncing", &folder))?;
        }
    }
    if is_new && found.is_some() {
        tracing::warn!(
            directory = %directory.path().display(),
            database = %home.database,
            "there is no record of the last puts: a loss of the log's end cannot be detected"
        );
    }
    let Found { millis, ends, from } = found.unwrap_or_default();
    home.ticks.raise_to(millis);
    // The earlier record writes to the same file, so it ends first.
    home.medium.end_put_record(&home.database);
    home.medium.begin_put_record(
        &home.database,
        PutRecord::open(
            directory.path(),
            &home.database,
            Opened {
                store: home.identity,
                ends,
                from,
                durable: Arc::clone(&home.durable),
            },
        )?,
    );
    Ok(())
}

/// Verifies the databases beside the main one, checks all of them against their records of each other, and records that
/// they are written from now on.
async fn verify_together(home: &Home, directory: &Directory, main: Option<&Found>, options: &Options) -> Result<()> {
    let moment = |home: &Home, found: &Found| {
        let moment = home.moment()?;
        found.tell(&moment.durable);
        Some(moment)
    };
    let mut moments: Vec<_> = main
        .and_then(|found| moment(home, found))
        .map(|moment| (0, moment))
        .into_iter()
        .collect();
    for beside in put_record::beside(directory.path())? {
        let noted = noted(directory, &beside, options)?;
        let home_beside = home.beside(beside.clone());
        let found = verify(&home_beside, &beside, noted, None).await?;
        let number = beside.rsplit('/').next().and_then(|number| number.parse().ok());
        if let (Some(found), Some(number)) = (found, number)
            && let Some(moment) = moment(&home_beside, &found)
        {
            moments.push((number, moment));
        }
    }
    moments::check(&moments, options.create)?;
    moments::begin(&moments)
}

/// The record of a database's puts. An unreadable record is remade if [`Options::create`] is set.
fn noted(directory: &Directory, database: &str, options: &Options) -> Result<Option<put_record::Ends>> {
    let path = put_record::path_of(directory.path(), database);
    let store = directory.identity().beside(number_of(database));
    match put_record::read(&path, store) {
        Err(Error::Corrupt { path, what }) if options.create => {
            let renamed = rename_aside(&path, "damaged")?;
            tracing::warn!(renamed = %renamed.display(), what, "the record of the last puts is unreadable; it is made again");
            Ok(None)
        }
        noted => noted,
    }
}

/// Calls SlateDB and turns its panics into errors. The database was verified before, so these errors name no object.
pub(super) async fn guard<T>(home: &Home, call: impl Future<Output = Result<T, slatedb::Error>>) -> Result<T> {
    match AssertUnwindSafe(call).catch_unwind().await {
        Ok(answer) => answer.map_err(|error| home.failure(&error)),
        Err(panic) => Err(Error::Corrupt {
            path: home.path(),
            what: format!("the engine panicked: {}", panic_text(panic.as_ref())),
        }),
    }
}
