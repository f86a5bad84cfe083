//! The mark of a directory that is the target of a restore.
//!
//! ```text
//! DIR/helenus.restoring    exists from before the first file of the store until all is restored and durable
//! ```
//! A directory with the mark is refused: an interrupted restore is never served as half a database.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::directory::{MARK, io_error, is_open};
use crate::storage::{Error, Result};
use helenus_base::permissions;

const TEXT: &str = "A backup is being restored into this directory. If no restore is at work, remove the directory and restore again.\n";

/// A directory into which a backup is being restored.
#[derive(Debug)]
pub struct Restoring {
    directory: PathBuf,
}

impl Restoring {
    /// Marks a directory that does not exist yet, or is empty.
    ///
    /// # Errors
    /// [`Error::NotEmpty`]; [`Error::NotEmptyAndOpen`]; [`Error::BeingRestored`]; the medium fails.
    pub fn begin(directory: &Path) -> Result<Self> {
        refuse(directory)?;
        permissions::create_directory(directory).map_err(io_error("creating", directory))?;
        let mut entries = fs::read_dir(directory).map_err(io_error("listing", directory))?;
        if !entries.all(|entry| entry.is_ok_and(|entry| entry.file_name() == "lost+found")) {
            let directory = directory.to_owned();
            return Err(match is_open(&directory) {
                true => Error::NotEmptyAndOpen { directory },
                false => Error::NotEmpty { directory },
            });
        }
        let path = directory.join(MARK);
        let marked = permissions::write(&path, TEXT, permissions::PRIVATE).and_then(|()| sync(directory));
        marked.map_err(io_error("writing", &path))?;
        Ok(Self {
            directory: directory.to_owned(),
        })
    }

    /// Removes the mark. The restored data is durable.
    ///
    /// # Errors
    /// The medium fails.
    pub fn end(self) -> Result<()> {
        let path = self.directory.join(MARK);
        let removed = fs::remove_file(&path).and_then(|()| sync(&self.directory));
        removed.map_err(io_error("removing", &path))
    }
}

fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Refuses a directory with the mark.
pub(in crate::storage) fn refuse(directory: &Path) -> Result<()> {
    match fs::symlink_metadata(directory.join(MARK)) {
        Ok(_) => Err(Error::BeingRestored {
            directory: directory.to_owned(),
        }),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(()),
        Err(error) => Err(io_error("looking for the mark of a restore in", directory)(error)),
    }
}
