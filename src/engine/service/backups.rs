//! Backups of a database, and their restoration.

use std::path::Path;

use super::super::backup::{BackedUp, Backup, BackupError, Restored, Restorer, What, verify};
use super::Engine;
use crate::backup::{Reader, Scope};

impl Engine {
    /// Writes a backup of one moment into a directory that is new or empty. Writes wait while the snapshots are taken only.
    ///
    /// # Errors
    /// There is no such keyspace or table; a store or the directory fails. Then the directory is no backup.
    pub async fn backup(&self, to: &Path, scope: &Scope) -> Result<BackedUp, BackupError> {
        let backup = Backup {
            catalog: &self.catalog,
            profile: self.rules.profile,
        };
        backup.write(to, scope).await
    }

    /// Opens a backup and reads all of it, to compare lengths and checksums.
    ///
    /// # Errors
    /// It is none, or damaged.
    pub async fn verify_backup(from: &Path) -> Result<Reader, BackupError> {
        verify(from).await
    }

    /// Restores tables of a backup as new ones. They are seen when all of them are complete.
    ///
    /// # Errors
    /// The backup is damaged or does not hold what is asked for; a keyspace or table of the name is there; a store fails. Nothing is
    /// restored then.
    pub async fn restore(&self, from: &Path, what: &What) -> Result<Restored, BackupError> {
        let reader = verify(from).await?;
        self.restore_verified(&reader, what).await
    }

    /// As [`Engine::restore`], from a backup that [`Engine::verify_backup`] has read.
    ///
    /// # Errors
    /// As [`Engine::restore`].
    pub async fn restore_verified(&self, backup: &Reader, what: &What) -> Result<Restored, BackupError> {
        let restorer = Restorer {
            catalog: &self.catalog,
            clock: &self.writes.clock,
            profile: self.rules.profile,
        };
        restorer.restore(backup, what).await
    }
}
