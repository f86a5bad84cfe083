//! The backups of a database, and their restoration.

use std::path::Path;
use std::sync::Arc;

use super::restore::Restorer;
use super::{BackedUp, Backup, BackupError, Restored, What, verify};
use crate::engine::catalog::Catalog;
use crate::engine::terms::clock::WriteClock;
use helenus_schema::profile::Profile;
use helenus_storage::backup::{Reader, Scope};

/// Writes and restores backups of a database ([`crate::engine::Engine::backups`]).
#[derive(Clone, Copy)]
pub struct Backups<'a> {
    pub(in crate::engine) catalog: &'a Arc<Catalog>,
    /// The source of timestamps of writes.
    pub(in crate::engine) timestamps: &'a WriteClock,
    pub(in crate::engine) profile: Profile,
}

impl std::fmt::Debug for Backups<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Backups").finish_non_exhaustive()
    }
}

impl Backups<'_> {
    /// Writes a backup of one moment into a directory that is new or empty. Writes wait only while the snapshots are
    /// taken.
    ///
    /// # Errors
    /// There is no such keyspace or table; a store or the directory fails. Then the directory is no backup.
    pub async fn write(self, to: &Path, scope: &Scope) -> Result<BackedUp, BackupError> {
        let backup = Backup {
            catalog: self.catalog,
            profile: self.profile,
        };
        backup.write(to, scope).await
    }

    /// Opens a backup and reads all of it, to compare lengths and checksums.
    ///
    /// # Errors
    /// The directory is no backup, or it is damaged.
    pub async fn verify(from: &Path) -> Result<Reader, BackupError> {
        verify(from).await
    }

    /// Refuses a backup that a database with this profile could not restore. It can be called before the database
    /// exists.
    ///
    /// # Errors
    /// The backup is of a database with another profile.
    pub fn check_profile(backup: &Reader, profile: Profile) -> Result<(), BackupError> {
        super::restore::check_profile(backup.manifest(), profile)
    }

    /// Restores tables of a backup as new ones. They become visible when all of them are complete.
    ///
    /// # Errors
    /// The backup is damaged or lacks a requested table; a keyspace or table of the name exists; a store fails. Nothing
    /// is restored then.
    pub async fn restore(self, from: &Path, what: &What) -> Result<Restored, BackupError> {
        let reader = verify(from).await?;
        self.restore_verified(&reader, what).await
    }

    /// As [`Backups::restore`], from a backup that [`Backups::verify`] has read.
    ///
    /// # Errors
    /// As [`Backups::restore`].
    pub async fn restore_verified(self, backup: &Reader, what: &What) -> Result<Restored, BackupError> {
        let restorer = Restorer {
            catalog: self.catalog,
            clock: self.timestamps,
            profile: self.profile,
        };
        restorer.restore(backup, what).await
    }
}
