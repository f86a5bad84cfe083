//! Backups and restores on data that no server has open. A bucket is opened as a server opens it: under its lease.

use std::path::{Path, PathBuf};

use super::opening::{self, RunError};
use crate::config::Config;
use crate::server::operator::{self, Ask, Came};
use helenus_base::clock::Clock;
use helenus_cql::cql::Database;
use helenus_engine::engine::{self, BackupError, Backups, Restored, Salvaged, What};
use helenus_storage::backup::{self, Reader};

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum OfflineError {
    /// The data is in the memory of a process.
    #[error("{url} is in the memory of a process: there is no directory to work on")]
    Memory {
        /// The address.
        url: String,
    },
    /// The data is in a bucket.
    #[error("{url} is in a bucket: this works on data in a directory")]
    Bucket {
        /// The address.
        url: String,
    },
    /// There is no data.
    #[error("there is no data at {url}")]
    Absent {
        /// Its expected location.
        url: String,
    },
    /// A whole backup is restored into a new prefix only.
    #[error("there is a database at {url}: restore into a prefix that is new, or beside what is there with --add")]
    Used {
        /// Its location.
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

/// The folder where a running server of these settings has its socket. `None` means that it has none.
///
/// # Errors
/// The location of the data is invalid.
pub fn operator_folder(config: &Config) -> Result<Option<PathBuf>, OfflineError> {
    Ok(opening::operator_folder(config)?)
}

/// The directory of the data, which must be in one.
fn the_directory(config: &Config, must_exist: bool) -> Result<PathBuf, OfflineError> {
    let url = config.data.clone();
    let directory = match opening::directory(config)? {
        Some(directory) => directory,
        None if opening::is_in_bucket(config)? => return Err(OfflineError::Bucket { url }),
        None => return Err(OfflineError::Memory { url }),
    };
    if must_exist && !directory.is_dir() {
        return Err(OfflineError::Absent {
            url: config.data.clone(),
        });
    }
    Ok(directory)
}

/// Refuses data in memory, and data that is not there.
async fn there(config: &Config, seed: u64) -> Result<(), OfflineError> {
    if !opening::is_in_bucket(config)? {
        return the_directory(config, true).map(drop);
    }
    match opening::is_used_bucket(config, seed).await? {
        true => Ok(()),
        false => Err(OfflineError::Absent {
            url: config.data.clone(),
        }),
    }
}

/// Does the same as a running server, on data that no server has open. Only an import changes the data.
///
/// # Errors
/// The data cannot be opened or closed.
pub async fn carry_out(config: &Config, clock: Clock, seed: u64, ask: Ask) -> Result<Came, OfflineError> {
    there(config, seed).await?;
    let (database, look) = match ask {
        _ if opening::is_in_bucket(config)? => (opening::open_alone(config, clock, seed).await?, None),
        Ask::Import { .. } => (opening::open_alone(config, clock, seed).await?, None),
        Ask::Backup { .. } | Ask::Export { .. } => {
            let (database, look) = opening::open_unserved(config, clock, seed).await?;
            (database, Some(look))
        }
    };
    let came = operator::carry_out(ask, &database).await;
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
    opening::check_profile(config)?;
    Ok(engine::salvage(&config.data, &clock, config.profile, to).await?)
}

/// Restores a whole backup into an empty directory or a new prefix of a bucket. Until it is complete, the place is refused
/// by name.
///
/// # Errors
/// The place is not empty; the backup is damaged, and nothing was written; the medium fails.
pub async fn restore_anew(config: &Config, clock: Clock, seed: u64, from: &Path) -> Result<Restored, OfflineError> {
    let is_in_bucket = opening::is_in_bucket(config)?;
    if !is_in_bucket {
        the_directory(config, false)?;
    }
    let reader = verified(from).await?;
    Backups::check_profile(&reader, config.profile)?;
    if is_in_bucket && opening::is_used_bucket(config, seed).await? {
        return Err(OfflineError::Used {
            url: config.data.clone(),
        });
    }
    let (database, restoring) = opening::open_to_restore(config, clock, seed).await?;
    let restored = restore_into(config, database, &reader, &What::All).await?;
    restoring.end(config, seed).await?;
    Ok(restored)
}

/// Restores into an open database, and closes it.
async fn restore_into(
    config: &Config,
    database: Database,
    reader: &Reader,
    what: &What,
) -> Result<Restored, OfflineError> {
    let restored = database.engine().backups().restore_verified(reader, what).await;
    let closed = database.close().await.map_err(closing(config));
    let restored = restored?;
    closed?;
    Ok(restored)
}

/// Restores tables into a database that no server has open.
///
/// # Errors
/// As [`helenus_engine::engine::Backups::restore`]; there is no database, or it cannot be opened.
pub async fn restore_beside(
    config: &Config,
    clock: Clock,
    seed: u64,
    from: &Path,
    what: &What,
) -> Result<Restored, OfflineError> {
    there(config, seed).await?;
    let reader = verified(from).await?;
    let database = opening::open_alone(config, clock, seed).await?;
    restore_into(config, database, &reader, what).await
}

async fn verified(from: &Path) -> Result<Reader, OfflineError> {
    Ok(Backups::verify(from).await?)
}
