//! What is looked at before SlateDB opens a database, and what is written anew.

use std::fs;
use std::io;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};

use futures::FutureExt;

use super::committer::Home;
use super::failure;
use crate::storage::engine::aside::rename_aside;
use crate::storage::engine::directory::{Directory, io_error, sync_directory, write_anew};
use crate::storage::engine::fjall::panic_text;
use crate::storage::{Error, Options, Result};

/// Folders of a database whose newest objects may have been put without being synced.
const LATEST: [&str; 2] = ["wal", "manifest"];

/// How many of them: SlateDB puts one after the other, its compactor a manifest beside.
const LATEST_OBJECTS: usize = 2;

/// Bytes of the end of an object of the log: where its parts are, and its version.
const FOOTER_BYTES: u64 = 10;

/// Names of objects in a folder, the oldest first: they are numbers of one width.
fn objects(folder: &Path) -> Result<Vec<PathBuf>> {
    let listed = fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    let mut objects: Vec<PathBuf> = match listed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.map_err(io_error("listing", folder))?,
    };
    objects.retain(|path| path.is_file());
    objects.sort_unstable();
    Ok(objects)
}

/// Whether a directory may get a database, or has one: a store that was used has a manifest.
pub(super) fn may_open(directory: &Directory, options: &Options) -> Result<()> {
    let database = directory.engine_path();
    if !objects(&database.join("manifest"))?.is_empty() {
        return Ok(());
    }
    let has_data = !objects(&database.join("wal"))?.is_empty() || !objects(&database.join("compacted"))?.is_empty();
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
    tracing::warn!(directory = %directory.path().display(), "the store's manifests are gone; it is begun anew, as --create says");
    if database.is_dir() {
        rename_aside(&database, "before")?;
    }
    Ok(())
}

/// Reads the newest manifest of a database without opening it, and writes anew what may not be on the disk.
pub(super) async fn look(home: &Home) -> Result<()> {
    let Some(directory) = &home.directory else {
        return Ok(());
    };
    let database = directory.path().join(home.database.as_ref());
    let newest = objects(&database.join("manifest"))?.pop();
    directory.make_durable()?;
    guard(home, newest, Box::pin(home.has_database(&home.database))).await?;
    judge_log(&database.join("wal"))?;
    for folder in LATEST {
        let folder = database.join(folder);
        let objects = objects(&folder)?;
        for path in objects.iter().rev().take(LATEST_OBJECTS) {
            let bytes = fs::metadata(path).map_err(io_error("reading", path))?.len();
            write_anew(path, bytes)?;
        }
        if !objects.is_empty() {
            sync_directory(&folder).map_err(io_error("syncing", &folder))?;
        }
    }
    Ok(())
}

/// Refuses objects of the log that SlateDB would take for empty: it reads no object as short as its footer, and puts empty ones as marks
/// of a writer that took over. An object is put whole or not at all, so what is in between was cut.
fn judge_log(log: &Path) -> Result<()> {
    for path in objects(log)? {
        let bytes = fs::metadata(&path).map_err(io_error("reading", &path))?.len();
        if (1..=FOOTER_BYTES).contains(&bytes) {
            let what = format!("the object of the log has {bytes} bytes, fewer than any that is whole");
            return Err(Error::Corrupt { path, what });
        }
    }
    Ok(())
}

/// Calls SlateDB and turns a panic of its, and damage, into an error that names the newest manifest.
pub(super) async fn guard<T>(home: &Home, newest: Option<PathBuf>, call: impl Future<Output = Result<T>>) -> Result<T> {
    let path = || newest.clone().unwrap_or_else(|| PathBuf::from(home.location.as_ref()));
    match AssertUnwindSafe(call).catch_unwind().await {
        Ok(Err(Error::Corrupt { what, .. })) => Err(Error::Corrupt { path: path(), what }),
        Ok(answer) => answer,
        Err(panic) => Err(Error::Corrupt {
            path: path(),
            what: format!("the engine panicked: {}", panic_text(panic.as_ref())),
        }),
    }
}

/// As [`guard`], around an answer of SlateDB's own.
pub(super) async fn guard_call<T>(home: &Home, call: impl Future<Output = Result<T, slatedb::Error>>) -> Result<T> {
    guard_newest(home, "manifest", call).await
}

/// As [`guard_call`], around what reads the log.
pub(super) async fn guard_log<T>(home: &Home, call: impl Future<Output = Result<T, slatedb::Error>>) -> Result<T> {
    guard_newest(home, "wal", call).await
}

async fn guard_newest<T>(
    home: &Home,
    folder: &str,
    call: impl Future<Output = Result<T, slatedb::Error>>,
) -> Result<T> {
    let newest = match &home.directory {
        Some(directory) => objects(&directory.path().join(home.database.as_ref()).join(folder))?.pop(),
        None => None,
    };
    let call = async { call.await.map_err(|error| failure(&home.location, &error)) };
    guard(home, newest, call).await
}
