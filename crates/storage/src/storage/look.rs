//! Read access to a store's data that changes none of its files: for diagnoses, while no server has it open.
//!
//! ```text
//! DIR/helenus.look/    links to the files of DIR; those that an engine changes in place are copies
//! ```
//! An engine cannot open a directory without recovering it. So a diagnosis opens a directory of links in the same file
//! system: whatever recovery truncates, removes or writes there leaves the store's own files unchanged. The store stays
//! locked meanwhile. The links are removed when the [`Look`] is dropped; the next process removes the links of a killed
//! one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::engine::{Held, How, io_error, link_tree};
use super::{AskedProfile, Error, Result, Url};

const LOOK: &str = "helenus.look";

/// Links to a store's files, removed when this is dropped.
#[derive(Debug)]
pub struct Look {
    url: Url,
    folder: Option<PathBuf>,
    _held: Option<Held>,
}

impl Look {
    /// Locks the store at a URL and makes links to its files. A store in memory needs none. A profile that may replace
    /// the recorded one is accepted, and not recorded.
    ///
    /// # Errors
    /// There is no store, another process holds it, or the medium fails.
    pub fn at(url: &Url, profile: Option<AskedProfile>) -> Result<Self> {
        // Opening a bucket would take it over from the server that has it open.
        if let Url::Bucket(_) = url {
            return Err(Error::InBucket { url: url.to_string() });
        }
        let (Url::File(path) | Url::SlateFile(path)) = url else {
            return Ok(Self {
                url: url.clone(),
                folder: None,
                _held: None,
            });
        };
        let held = Held::of(url, path, profile.filter(|asked| !asked.is_change_allowed))?;
        let folder = path.join(LOOK);
        remove(&folder)?;
        if let Err(error) = link_tree(path, &folder, &how) {
            remove(&folder)?;
            return Err(error);
        }
        let url = match url {
            Url::SlateFile(_) => Url::SlateFile(folder.clone()),
            _ => Url::File(folder.clone()),
        };
        Ok(Self {
            url,
            folder: Some(folder),
            _held: Some(held),
        })
    }

    /// The URL of the links.
    #[must_use]
    pub const fn url(&self) -> &Url {
        &self.url
    }
}

impl Drop for Look {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder
            && let Err(error) = remove(folder)
        {
            tracing::warn!(%error, "links to the store's files remain; the next diagnosis removes them");
        }
    }
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error("removing", folder)(error)),
        _ => Ok(()),
    }
}

fn how(path: &Path) -> How {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name == LOOK || name == "helenus.lock" {
        return How::LeaveOut;
    }
    // Files that are changed in place need copies: the log, the records of progress, and the rewritten files.
    let is_changed = name.ends_with(".jnl")
        || name.starts_with("acknowledged")
        || ["moments", "current", "lock"].contains(&name.as_ref());
    let is_manifest = name
        .strip_prefix('v')
        .is_some_and(|number| number.parse::<u64>().is_ok());
    if is_changed || is_manifest {
        How::Copy
    } else {
        How::Link
    }
}
