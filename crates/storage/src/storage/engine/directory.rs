//! A store's directory: which process holds it, and which format it contains.
//!
//! ```text
//! DIR/helenus.lock    locked while a process holds the store; holds its process id as text
//! DIR/helenus.format  the format and the store's identity, see identity.rs
//! DIR/helenus.used    made after the engine was created: the store may hold data from then on
//! DIR/acknowledged    the last group answered as durable, see acknowledged.rs   (fjall only)
//! DIR/moments         progress of the server's other stores, see moments.rs   (only if there are any; SlateDB: in each database's folder)
//! DIR/engine/         the engine's own files; aside.rs adds others while it opens   (fjall only)
//! DIR/helenus.restoring   exists while a backup is restored into it, see restoring.rs
//! DIR/helenus.look/   links to all of this, while a diagnosis works on them, see look.rs
//! DIR/stores/N/       a store like DIR, see side_store.rs
//! ```
//! A used store whose data is missing is refused, unless `--create` allows a fresh start. `helenus.used` marks a used
//! store. Without it the engine's content decides: the creation may have been interrupted before the mark.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fs4::fs_std::FileExt;

use crate::storage::identity::{AskedProfile, FORMAT_BEGINS, Identity, MAIN, profile_of_line};
use crate::storage::{Error, Options, Result};
use helenus_base::permissions;

const LOCK: &str = "helenus.lock";
const FORMAT: &str = "helenus.format";
const USED: &str = "helenus.used";
/// The mark of a directory into which a backup is being restored.
pub(super) const MARK: &str = "helenus.restoring";
const ENGINE: &str = "engine";
/// Bytes of a file that are rewritten at once.
const PIECE_BYTES: usize = 1 << 20;

const PROBE: &str = "probe";

/// Size of the probe's file: a disk that accepts it has more than a last free block.
const PROBE_BYTES: usize = 1 << 20;

/// A store's directory, locked until this is dropped.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    lock: File,
    identity: Identity,
}

/// What a directory must hold, if it holds anything.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) format: &'static str,
    /// `None` means a main store of any database.
    pub(super) identity: Option<Identity>,
    /// The number of a database that is made there.
    pub(super) draw: u64,
    /// The profile of the database; `None` means any. Side stores record none.
    pub(super) profile: Option<AskedProfile>,
}

/// What the format file of a directory says.
#[derive(Debug)]
pub(super) struct FormatFile {
    /// The store.
    pub(super) identity: Identity,
    /// The name of the profile, in a main store.
    pub(super) profile: Option<String>,
}

impl Wanted {
    /// A main store that is opened or made.
    pub(super) const fn main(options: &Options, format: &'static str) -> Self {
        Self {
            format,
            identity: None,
            draw: options.draw,
            profile: options.profile,
        }
    }

    /// A main store that exists.
    pub(super) const fn existing(format: &'static str) -> Self {
        Self {
            format,
            identity: None,
            draw: 0,
            profile: None,
        }
    }

    /// The profile that the format file has to name.
    fn asked_profile(&self) -> Option<AskedProfile> {
        self.profile.filter(|_| self.identity.is_none())
    }

    fn new_identity(&self) -> Identity {
        self.identity.unwrap_or(Identity {
            database: self.draw,
            store: MAIN,
        })
    }
}

impl Directory {
    /// Locks the directory, creating it if necessary, and checks that it holds a store of this format, or nothing.
    pub(super) fn open(path: &Path, wanted: Wanted) -> Result<Self> {
        if path.is_file() {
            let is_file = io::Error::new(io::ErrorKind::NotADirectory, "it is a file, not a directory");
            return Err(io_error("opening", path)(is_file));
        }
        create(path).map_err(io_error("creating", path))?;
        let format_path = path.join(FORMAT);
        if !format_path.exists() && !is_ours(path).map_err(io_error("listing", path))? {
            return Err(without_format(path, format_path));
        }
        let lock = lock(path)?;
        let asked = wanted.asked_profile();
        let found = read_format(path, wanted)?;
        let recorded = found.as_ref().and_then(|found| found.profile.as_deref());
        let is_to_record = asked.map(|asked| asked.is_to_record(recorded)).transpose();
        let is_to_record = is_to_record.map_err(|other| Error::OtherProfile {
            place: path.display().to_string(),
            other,
        })?;
        let identity = found
            .as_ref()
            .map_or_else(|| wanted.new_identity(), |found| found.identity);
        if found.is_none() || is_to_record == Some(true) {
            write_format(path, wanted, identity)?;
        }
        Ok(Self {
            path: path.to_owned(),
            lock,
            identity,
        })
    }

    /// Writes the holder's process id, for the message that another process gets.
    pub(super) fn write_holder(&self) {
        let pid = std::process::id().to_string();
        let mut lock = &self.lock;
        let written = lock
            .set_len(0)
            .and_then(|()| lock.rewind())
            .and_then(|()| lock.write_all(pid.as_bytes()));
        // It only serves a message; a full disk must not keep a store from being read.
        if let Err(error) = written {
            tracing::debug!(%error, "could not write the process id to the lock file");
        }
    }

    /// Whether the store may hold data.
    pub(super) fn is_used(&self) -> bool {
        Self::is_marked_used(&self.path)
    }

    /// The same of a directory that is not locked.
    pub(super) fn is_marked_used(path: &Path) -> bool {
        path.join(USED).exists()
    }

    /// Marks the store as used, durably. Its engine and the other files must be durable already. An existing mark is
    /// made durable again: the start that made it may have failed to.
    pub(super) fn mark_used(&self) -> Result<()> {
        let path = self.path.join(USED);
        let marked = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .and_then(|file| file.sync_all())
            .and_then(|()| sync_directory(&self.path));
        marked.map_err(|error| full_or(error, &self.path, "writing", &path))
    }

    /// Makes the store's existence and its format durable: an earlier start may have failed to. Files are overwritten
    /// with their own content, because a sync after a failed one proves nothing.
    pub(super) fn make_durable(&self) -> Result<()> {
        let path = self.path.join(FORMAT);
        let bytes = fs::metadata(&path).map_err(io_error("reading", &path))?.len();
        write_anew(&path, bytes)?;
        let synced = sync_directory(&self.path)
            .and_then(|()| sync_parent(&self.path))
            // The name of `stores`, if this is a side store.
            .and_then(|()| self.path.parent().map_or(Ok(()), sync_above));
        synced.map_err(|error| full_or(error, &self.path, "syncing", &self.path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The store that it holds.
    pub(super) const fn identity(&self) -> Identity {
        self.identity
    }

    pub(super) fn engine_path(&self) -> PathBuf {
        self.path.join(ENGINE)
    }

    /// Whether a directory contains a store.
    pub(super) fn is_store(path: &Path) -> bool {
        path.join(FORMAT).exists()
    }

    /// Whether the medium takes writes: writes a file of somewhat more than this many bytes, makes it durable and
    /// removes it.
    pub(super) fn probe(&self, bytes: u64) -> Result<()> {
        let path = self.path.join(PROBE);
        let written = File::create(&path).and_then(|mut file| {
            let piece = vec![0xA5; PROBE_BYTES];
            for _ in 0..=bytes / PROBE_BYTES as u64 {
                file.write_all(&piece)?;
            }
            file.sync_all()
        });
        let removed = fs::remove_file(&path);
        written
            .and(removed)
            .map_err(|error| full_or(error, &self.path, "writing", &path))
    }
}

/// Makes a directory and its missing parents, each with its name durable.
fn create(path: &Path) -> io::Result<()> {
    let missing = missing(path);
    if missing.is_empty() {
        return Ok(());
    }
    permissions::create_directory(path)?;
    sync_parent(path)?;
    missing.into_iter().skip(1).try_for_each(sync_above)
}

/// As [`sync_parent`], for a parent that is not ours: it may not be readable, and then cannot be synced.
fn sync_above(path: &Path) -> io::Result<()> {
    match sync_parent(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        synced => synced,
    }
}

/// A directory and its missing parents, the lowest first.
fn missing(path: &Path) -> Vec<&Path> {
    let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.is_dir();
    path.ancestors().take_while(is_missing).collect()
}

/// Makes the name of a file or directory durable.
fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    sync_directory(parent.unwrap_or(Path::new(".")))
}

/// Whether a directory without a format file may become a store: it is empty, or holds only the remains of an
/// interrupted creation.
fn is_ours(path: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        let is_mark = name == LOCK || name == "lost+found" || name == MARK;
        if !is_mark && !name.to_string_lossy().starts_with(FORMAT) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The error for a directory with files and no format file: it is no store, or a store that lost the file.
fn without_format(directory: &Path, path: PathBuf) -> Error {
    if directory.join(USED).exists() || directory.join(ENGINE).exists() {
        return Error::Corrupt {
            path,
            what: "it is missing, and there is a store beside it; put it back from a backup".to_owned(),
        };
    }
    Error::NotAStore {
        directory: directory.to_owned(),
    }
}

/// Reads which store a directory holds, and its profile. `None` means that no format file was written yet.
///
/// # Errors
/// It has another format, or is another store than the wanted one.
pub(super) fn read_format(directory: &Path, wanted: Wanted) -> Result<Option<FormatFile>> {
    let path = directory.join(FORMAT);
    let corrupt = |path: &Path, what: &str| Error::Corrupt {
        path: path.to_owned(),
        what: what.to_owned(),
    };
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(corrupt(&path, "not text")),
        Err(error) => return Err(io_error("reading", &path)(error)),
    };
    let mut lines = text.lines();
    let found = lines.next().unwrap_or_default();
    if !found.starts_with(FORMAT_BEGINS) {
        return Err(corrupt(&path, "it names no format; put it back from a backup"));
    }
    if found != wanted.format {
        return Err(Error::UnknownFormat {
            directory: directory.to_owned(),
            found: found.chars().take(80).collect(),
            known: wanted.format,
        });
    }
    let identity = lines.next().and_then(Identity::of_line);
    let profile = lines.next();
    let named = profile.and_then(profile_of_line);
    let is_whole = named.is_some() == profile.is_some() && lines.next().is_none();
    let Some(identity) = identity.filter(|_| is_whole) else {
        return Err(corrupt(&path, "it does not name the store; put it back from a backup"));
    };
    let expected = wanted.identity.unwrap_or(identity.beside(MAIN));
    check_identity(&path, identity, expected)?;
    Ok(Some(FormatFile {
        identity,
        profile: named.map(str::to_owned),
    }))
}

/// Refuses a file of another store.
pub(super) fn check_identity(path: &Path, found: Identity, expected: Identity) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::OtherStore {
        path: path.to_owned(),
        found: found.to_string(),
        expected: expected.to_string(),
    })
}

/// Locks a directory until the file is dropped.
///
/// # Errors
/// Another process has locked it.
pub(super) fn lock(directory: &Path) -> Result<File> {
    let path = directory.join(LOCK);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(io_error("opening", &path))?;
    match FileExt::try_lock_exclusive(&file) {
        Ok(true) => {}
        Ok(false) => {
            let mut text = String::new();
            drop(file.read_to_string(&mut text));
            return Err(Error::Locked {
                directory: directory.to_owned(),
                holder: text.trim().parse().ok(),
            });
        }
        Err(error) => return Err(io_error("locking", &path)(error)),
    }
    Ok(file)
}

/// Whether a process holds the store in a directory. Creates no file.
pub(in crate::storage) fn is_open(directory: &Path) -> bool {
    let held = File::open(directory.join(LOCK)).and_then(|file| FileExt::try_lock_shared(&file));
    matches!(held, Ok(false))
}

fn write_format(directory: &Path, wanted: Wanted, identity: Identity) -> Result<()> {
    let (path, unfinished) = (directory.join(FORMAT), directory.join(format!("{FORMAT}.new")));
    let written = File::create(&unfinished)
        .and_then(|mut file| {
            writeln!(file, "{}\n{}", wanted.format, identity.line())?;
            if let Some(asked) = wanted.asked_profile() {
                writeln!(file, "{}", asked.line())?;
            }
            file.sync_all()
        })
        .and_then(|()| fs::rename(&unfinished, &path))
        .and_then(|()| sync_directory(directory));
    written.map_err(|error| full_or(error, directory, "writing", &path))
}

/// Overwrites the first bytes of a file with themselves and makes them durable.
pub(super) fn write_anew(path: &Path, bytes: u64) -> Result<()> {
    let write = || {
        let mut file = File::options().read(true).write(true).open(path)?;
        let mut piece = vec![0; PIECE_BYTES];
        let mut at = 0;
        while at < bytes {
            let step = usize::try_from(bytes - at).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            let Some(piece) = piece.get_mut(..step) else { break };
            file.seek(SeekFrom::Start(at))?;
            file.read_exact(piece)?;
            file.seek(SeekFrom::Start(at))?;
            file.write_all(piece)?;
            at += step as u64;
        }
        file.sync_all()
    };
    write().map_err(|error| full_or(error, path, "writing anew", path))
}

/// Reads a whole file. Anything but a regular file is refused, because a device could be read without end.
pub(super) fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    if fs::metadata(path)?.is_file() {
        return fs::read(path);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"))
}

/// Makes the names in a directory durable.
pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Adds the operation and the file to an error.
pub(in crate::storage) fn io_error(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Io {
        operation,
        path: path.to_owned(),
        source: Arc::new(source),
    }
}

/// Distinguishes a full disk from other failures.
pub(super) fn full_or(error: io::Error, directory: &Path, operation: &'static str, path: &Path) -> Error {
    let error = io_error(operation, path)(error);
    if error.is_disk_full() {
        Error::DiskFull {
            directory: directory.to_owned(),
        }
    } else {
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_every_directory_that_is_made_is_made_durable() {
        let folder = tempfile::tempdir().unwrap();
        let [data, stores, one] = ["data", "data/stores", "data/stores/1"].map(|path| folder.path().join(path));
        assert_eq!(missing(&one), [&*one, &*stores, &*data]);
        create(&data).unwrap();
        assert_eq!(missing(&one), [&*one, &*stores]);
        create(&one).unwrap();
        assert_eq!(missing(&one), [&*one; 0]);
        assert!(one.is_dir());
    }
}
