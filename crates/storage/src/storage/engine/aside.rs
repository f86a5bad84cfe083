//! Keeps the original of an engine's directory while the engine opens, so that a refused opening leaves every byte in
//! place.
//!
//! ```text
//! DIR/engine         the engine's own files
//! DIR/engine.next    being made: a directory of links to them
//! DIR/engine.kept    the directory as it was found, while the engine opens the other one
//! DIR/engine.gone    being removed
//!
//! stage:    engine ─ links ─► engine.next
//! swap:     engine ─► engine.kept, engine.next ─► engine
//! accept:   engine.kept ─► engine.gone, removed                       the chain of groups is whole
//! restore:  engine ─► engine.gone, engine.kept ─► engine, removed     it is not
//! ```
//! The engine never changes a table or a manifest after it wrote it, and replaces `current` by renaming. Only files of
//! the log are truncated and extended in place. Recovery truncates each log file after its last intact batch: `restore`
//! appends the tail again, from memory. The tail was never acknowledged (log.rs), so a kill in between may leave the
//! file truncated.
//!
//! **Files that may not be on the disk are rewritten** if the store was not closed: after a failed sync the page cache
//! shows bytes that the disk does not have, and the next sync does not report it. So `helenus.format`, the engine's
//! version, the active file of the log, manifests and `current` are overwritten with their own content and synced,
//! before any of them is served ([`super::directory::write_anew`]). That takes no space on a full disk, and changes no
//! byte. Files of the log before the active one were synced before it was started; tables were synced before a manifest
//! named them.
//!
//! Each step is durable before the next. [`undo_interrupted`] undoes an opening that a kill or a power cut interrupted:
//! such an opening had answered no request.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::directory::{full_or, io_error, sync_directory};
use crate::storage::Result;

/// How [`link_tree`] copies a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::storage) enum How {
    /// A link to the same file.
    Link,
    /// A copy of the file.
    Copy,
    /// Not copied.
    LeaveOut,
}

/// The engine's original directory.
#[derive(Debug)]
pub(super) struct Kept {
    engine: PathBuf,
    cuts: Vec<Cut>,
}

/// The part of a file that recovery may truncate.
#[derive(Debug)]
pub(super) struct Cut {
    /// Where the file is in the engine's directory.
    pub(super) path: PathBuf,
    /// Its length.
    pub(super) bytes: u64,
    /// The offset at which it may be truncated.
    pub(super) at: u64,
    /// The bytes after that offset, without the zeros at the end.
    pub(super) tail: Vec<u8>,
}

impl Cut {
    /// Reads the bytes after an offset of a file.
    pub(super) fn read(engine: &Path, path: &Path, at: u64, is_zero: bool) -> Result<Self> {
        let failed = io_error("reading", path);
        let read = || {
            let mut file = File::open(path)?;
            let bytes = file.metadata()?.len();
            let mut tail = Vec::new();
            if !is_zero {
                file.seek(SeekFrom::Start(at))?;
                file.read_to_end(&mut tail)?;
                let end = tail.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                tail.truncate(end);
            }
            Ok((bytes, tail))
        };
        let (bytes, tail) = read().map_err(failed)?;
        Ok(Self {
            path: path.strip_prefix(engine).unwrap_or(path).to_owned(),
            bytes,
            at,
            tail,
        })
    }

    fn restore(&self, engine: &Path) -> Result<()> {
        let path = engine.join(&self.path);
        let restore = || {
            let mut file = File::options().write(true).open(&path)?;
            if file.metadata()?.len() < self.bytes {
                file.seek(SeekFrom::Start(self.at))?;
                file.write_all(&self.tail)?;
                file.set_len(self.bytes)?;
            }
            Ok(())
        };
        restore().map_err(io_error("restoring", &path))
    }
}

fn sibling(engine: &Path, suffix: &str) -> PathBuf {
    engine.with_extension(suffix)
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(|error| full_or(error, from, "renaming", from))
}

fn sync(path: &Path) -> Result<()> {
    sync_directory(path).map_err(|error| full_or(error, path, "syncing", path))
}

fn sync_parent(path: &Path) -> Result<()> {
    path.parent().map_or(Ok(()), sync)
}

/// Removes a directory that this module made.
fn remove(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error("removing", path)(error)),
        _ => Ok(()),
    }
}

/// Restores the state before an opening that was interrupted.
pub(super) fn undo_interrupted(engine: &Path) -> Result<()> {
    let (next, kept, gone) = (
        sibling(engine, "next"),
        sibling(engine, "kept"),
        sibling(engine, "gone"),
    );
    remove(&gone)?;
    if kept.is_dir() {
        tracing::warn!(directory = %engine.display(), "the last opening was interrupted; the engine's original files are restored");
        restore(engine)?;
    }
    remove(&next)
}

fn restore(engine: &Path) -> Result<()> {
    let (kept, gone) = (sibling(engine, "kept"), sibling(engine, "gone"));
    if engine.exists() {
        rename(engine, &gone)?;
    }
    rename(&kept, engine)?;
    sync_parent(engine)?;
    remove(&gone)
}

impl Kept {
    /// Replaces the engine's directory by a directory of links. The original files stay unchanged until
    /// [`Kept::accept`].
    pub(super) fn stage(engine: &Path, cuts: Vec<Cut>) -> Result<Self> {
        let next = sibling(engine, "next");
        remove(&next)?;
        if let Err(error) = link_tree(engine, &next, &|_| How::Link) {
            // A failed attempt uses space on a disk that may be full.
            drop(remove(&next));
            return Err(error);
        }
        rename(engine, &sibling(engine, "kept"))?;
        let swapped = rename(&next, engine).and_then(|()| sync_parent(engine));
        if let Err(error) = swapped {
            drop(restore(engine));
            return Err(error);
        }
        Ok(Self {
            engine: engine.to_owned(),
            cuts,
        })
    }

    /// Keeps the opened engine and deletes the links to the original files.
    pub(super) fn accept(self) -> Result<()> {
        let gone = sibling(&self.engine, "gone");
        rename(&sibling(&self.engine, "kept"), &gone)?;
        // Otherwise a power cut would bring back the original files, without the later writes.
        sync_parent(&self.engine)?;
        if let Err(error) = remove(&gone) {
            tracing::warn!(%error, "links to the engine's original files remain; the next start removes them");
        }
        Ok(())
    }

    /// Restores the original files. The engine must be closed.
    pub(super) fn restore(self) -> Result<()> {
        restore(&self.engine)?;
        for cut in &self.cuts {
            cut.restore(&self.engine)?;
        }
        Ok(())
    }
}

/// Makes a directory of links to the files of another one, durably. If the medium has no links, files are copied.
pub(in crate::storage) fn link_tree(from: &Path, to: &Path, how: &impl Fn(&Path) -> How) -> Result<()> {
    let failed = |operation, path: &Path| {
        let path = path.to_owned();
        move |error| full_or(error, &path, operation, &path)
    };
    fs::create_dir_all(to).map_err(failed("creating", to))?;
    for entry in fs::read_dir(from).map_err(failed("listing", from))? {
        let entry = entry.map_err(failed("listing", from))?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let how_of = how(&path);
        if how_of == How::LeaveOut {
            continue;
        }
        if path.is_dir() {
            link_tree(&path, &target, how)?;
            continue;
        }
        match how_of {
            How::LeaveOut => {}
            How::Copy => copy(&path, &target).map_err(failed("copying", &path))?,
            How::Link => {
                if let Err(error) = fs::hard_link(&path, &target) {
                    tracing::debug!(%error, path = %path.display(), "a file cannot be linked and is copied");
                    copy(&path, &target).map_err(failed("copying", &path))?;
                }
            }
        }
    }
    sync(to)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    File::open(to)?.sync_all()
}

/// Renames a directory to a free name, durably: for one that may hold data but cannot be interpreted.
pub(super) fn rename_aside(path: &Path, suffix: &str) -> Result<PathBuf> {
    let free = (1_u32..)
        .map(|n| path.with_extension(format!("{suffix}-{n}")))
        .find(|free| !free.exists());
    let free = free.unwrap_or_else(|| path.with_extension(suffix));
    rename(path, &free)?;
    sync_parent(path)?;
    Ok(free)
}
