//! Backups and restores on a directory that no server has open.

use std::path::{Path, PathBuf};

use super::{Ask, Came};
use crate::backup::{self, Reader};
use crate::clock::Clock;
use crate::config::Config;
use crate::engine::{self, BackupError, Backups, Restored, Salvaged, What};
use crate::server::run::{self, RunError};

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum OfflineError {
    /// The data is in the memory of a process.
    #[error("{url} is in the memory of a process: there is no directory to work on")]
    Memory {
        /// The address.
        url: String,
    },
    /// There is no data.
    #[error("there is no data at {url}")]
    Absent {
        /// Its expected location.
        url: String,
    },
    /// A salvage must not write into the damaged directory.
    #[error("{} lies in the damaged directory, which is only read: give another directory", to.display())]
    Inside {
        /// The target of the salvage.
        to: PathBuf,
    },
    /// The data cannot be opened.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The backup.
    #[error(transparent)]
    Backup(#[from] BackupError),
}

impl From<backup::Error> for OfflineError {
    fn from(error: backup::Error) -> Self {
        Self::Backup(error.into())
    }
}

fn closing(config: &Config) -> impl FnOnce(engine::Error) -> RunError {
    let url = config.data.clone();
    move |source| RunError::Open {
        url,
        source: Box::new(source.into()),
    }
}

/// The data directory of these settings. `None` means the data is in memory.
///
/// # Errors
/// The location of the data is invalid.
pub fn directory(config: &Config) -> Result<Option<PathBuf>, OfflineError> {
    Ok(run::directory(config)?)
}

/// As [`directory`], for data that must be in one.
fn the_directory(config: &Config, must_exist: bool) -> Result<PathBuf, OfflineError> {
    let directory = directory(config)?.ok_or_else(|| OfflineError::Memory {
        url: config.data.clone(),
    })?;
    if must_exist && !directory.is_dir() {
        return Err(OfflineError::Absent {
            url: config.data.clone(),
        });
    }
    Ok(directory)
}

/// Does the same as a running server, on data that no server has open. Only an import changes the data.
///
/// # Errors
/// The data cannot be opened or closed.
pub async fn carry_out(config: &Config, clock: Clock, seed: u64, ask: Ask) -> Result<Came, OfflineError> {
    the_directory(config, true)?;
    let (database, look) = match ask {
        Ask::Import { .. } => (run::open_alone(config, clock, seed).await?, None),
        Ask::Backup { .. } | Ask::Export { .. } => {
            let (database, look) = run::open_unserved(config, clock, seed).await?;
            (database, Some(look))
        }
    };
    let came = super::carry_out(ask, &database).await;
    let closed = database.close().await.map_err(closing(config));
    drop(look);
    closed?;
    Ok(came)
}

/// Writes a backup of the readable part of a damaged directory, which stays unchanged.
///
/// # Errors
/// There is no data, a process holds it, or the medium fails in another way than by damage.
pub async fn salvage(config: &Config, clock: Clock, to: &Path) -> Result<Salvaged, OfflineError> {
    let directory = the_directory(config, true)?;
    if to.starts_with(&directory) {
        return Err(OfflineError::Inside { to: to.to_owned() });
    }
    Ok(engine::salvage(&config.data, &clock, config.profile, to).await?)
}

/// Restores a whole backup into a new or empty directory. Until it is complete, the directory is refused by name.
///
/// # Errors
/// The directory is not empty; the backup is damaged, and nothing was written; the medium fails.
pub async fn restore_anew(config: &Config, clock: Clock, seed: u64, from: &Path) -> Result<Restored, OfflineError> {
    let directory = the_directory(config, false)?;
    let reader = verified(from).await?;
    Backups::check_profile(&reader, config.profile)?;
    let (database, restoring) = run::open_to_restore(config, &directory, clock, seed).await?;
    let restored = database.backups().restore_verified(&reader, &What::All).await;
    let closed = database.close().await.map_err(closing(config));
    drop(database);
    let restored = restored?;
    closed?;
    restoring.end().map_err(RunError::from)?;
    Ok(restored)
}

/// Restores tables into a database that no server has open.
///
/// # Errors
/// As [`crate::engine::Backups::restore`]; there is no database, or it cannot be opened.
pub async fn restore_beside(
    config: &Config,
    clock: Clock,
    seed: u64,
    from: &Path,
    what: &What,
) -> Result<Restored, OfflineError> {
    the_directory(config, true)?;
    let reader = verified(from).await?;
    let database = run::open_alone(config, clock, seed).await?;
    let restored = database.backups().restore_verified(&reader, what).await;
    let closed = database.close().await.map_err(closing(config));
    let restored = restored?;
    closed?;
    Ok(restored)
}

async fn verified(from: &Path) -> Result<Reader, OfflineError> {
    Ok(Backups::verify(from).await?)
}
