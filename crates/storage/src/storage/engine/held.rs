//! A store's directory that is locked against other processes while its engine is closed.

use std::path::Path;

use super::directory::{Directory, Wanted};
use super::{fjall, slate};
use crate::storage::{Error, Result, Url};

/// A store's directory, locked and not opened.
#[derive(Debug)]
pub(in crate::storage) struct Held {
    _directory: Directory,
}

impl Held {
    /// Locks the directory of an existing store.
    pub(in crate::storage) fn of(url: &Url, path: &Path) -> Result<Self> {
        if !fjall::is_store(path) {
            return Err(Error::NoStore {
                directory: path.to_owned(),
            });
        }
        let format = match url {
            Url::SlateFile(_) => slate::FORMAT,
            _ => fjall::FORMAT,
        };
        Ok(Self {
            _directory: Directory::open(path, Wanted::existing(format))?,
        })
    }
}
