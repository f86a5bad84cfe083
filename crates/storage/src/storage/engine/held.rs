//! A store's directory that is locked against other processes while its engine is closed.

use std::path::Path;

use super::directory::{Directory, Wanted, read_format};
use super::{fjall, slate};
use crate::storage::{AskedProfile, Error, Result, Url};

/// A store's directory, locked and not opened.
#[derive(Debug)]
pub(in crate::storage) struct Held {
    _directory: Directory,
}

impl Held {
    /// Locks the directory of an existing store, whose profile must be this one if it is given.
    pub(in crate::storage) fn of(url: &Url, path: &Path, profile: Option<AskedProfile>) -> Result<Self> {
        if !fjall::is_store(path) {
            return Err(Error::NoStore {
                directory: path.to_owned(),
            });
        }
        let wanted = Wanted {
            profile,
            ..existing(url)
        };
        Ok(Self {
            _directory: Directory::open(path, wanted)?,
        })
    }
}

/// A main store with the format of a URL.
const fn existing(url: &Url) -> Wanted {
    Wanted::existing(match url {
        Url::SlateFile(_) => slate::FORMAT,
        _ => fjall::FORMAT,
    })
}

/// Refuses a directory whose format file names another profile. An unreadable format file refuses nothing. Changes no
/// file.
///
/// # Errors
/// [`Error::OtherProfile`]
pub(in crate::storage) fn check_profile(url: &Url, asked: AskedProfile) -> Result<()> {
    let Some(path) = url.directory() else { return Ok(()) };
    let found = read_format(path, existing(url)).ok().flatten();
    let Some(recorded) = found.and_then(|found| found.profile) else {
        return Ok(());
    };
    match asked.is_to_record(Some(&recorded)) {
        Ok(_) => Ok(()),
        Err(other) => Err(Error::OtherProfile {
            place: path.display().to_string(),
            other,
        }),
    }
}
