//! The effects of a failed write, and how the database is reopened.

use std::path::PathBuf;
use std::sync::Arc;

use slatedb::config::CloseOptions;

use super::committer::Committer;
use crate::storage::batch::Space;
use crate::storage::engine::directory::io_error;
use crate::storage::faults::FaultPoint;
use crate::storage::{Error, Result};

/// Free space that must be missing for a failure of unknown cause to count as a full disk: the size of an object that
/// may not have been put.
const FULL_PROBE_BYTES: u64 = 16 * 1024 * 1024;

impl Committer {
    /// Closes the database without writing its memory. Those changes were written before, answered as failed, or are kept
    /// to be written again ([`Unlogged`](super::unlogged::Unlogged)). Returns whether it was open, and puts nothing more.
    pub(super) async fn close_database(&mut self) -> bool {
        if let Some(tables) = self.tables.take() {
            tables.abort();
        }
        if let Some(database) = self.database.take() {
            let without_flush = CloseOptions::default().with_flush_type(None);
            // Its tasks may be waiting for a failing object store.
            match tokio::time::timeout(
                self.home.patience().close_max,
                database.close_with_options(without_flush),
            )
            .await
            {
                Ok(Ok(())) => return true,
                Ok(Err(error)) => tracing::debug!(%error, location = %self.home.location, "closing a database failed"),
                Err(_) => tracing::warn!(location = %self.home.location, "a database did not close in time"),
            }
        }
        false
    }

    pub(super) fn fault(&self, error: std::io::Error) -> Error {
        let path = self
            .home
            .directory
            .as_ref()
            .map(|directory| directory.path().to_owned())
            .unwrap_or_default();
        let error = io_error("writing", &path)(error);
        if error.is_disk_full() {
            Error::DiskFull { directory: path }
        } else {
            error
        }
    }

    pub(super) async fn fail(&mut self, error: &Error) {
        tracing::error!(%error, location = %self.home.location, "the store takes no writes");
        self.failed = true;
        self.shared.stalled.store(None);
        self.ranges.end(error);
        if self.home.may_pass(error) || self.is_full(error) {
            return;
        }
        self.report_unlogged();
        self.ended = Some(match error {
            Error::TakenOver { .. } => error.clone(),
            _ => Error::WritesRefused {
                directory: PathBuf::from(self.home.location.as_ref()),
                cause: Arc::new(error.clone()),
            },
        });
        let readable = match self.shared.published.load_full() {
            Some(published) => published.get(Space::Catalog, b"").await.map(drop),
            None => Err(error.clone()),
        };
        if let Err(error) = readable {
            tracing::error!(%error, location = %self.home.location, "the store cannot be read");
            self.shared.lost.store(Some(Arc::new(error)));
        }
    }

    /// Whether a failure is a full disk: by its own code, or by a probe.
    fn is_full(&self, error: &Error) -> bool {
        let probed = || {
            self.home
                .directory
                .as_ref()
                .and_then(|directory| directory.probe(FULL_PROBE_BYTES).err())
        };
        let may_be = || self.home.medium.full().is_some() || probed().is_some_and(|error| error.is_disk_full());
        error.is_disk_full() || (matches!(error, Error::Engine { .. }) && may_be())
    }

    /// Ensures that there is a database that accepts writes.
    pub(super) async fn recover(&mut self) -> Result<()> {
        if let Some(ended) = &self.ended {
            return Err(ended.clone());
        }
        if self.database.is_some() && !self.failed {
            // The log knows the cause.
            let stalled = self.home.log_stalled().or_else(|| self.stalled());
            return stalled.map_or(Ok(()), Err);
        }
        if let Some(fault) = self
            .options
            .faults
            .as_ref()
            .and_then(|faults| faults(FaultPoint::Probe))
        {
            return Err(self.fault(fault));
        }
        if !self.home.is_owner() {
            // An opening would end the database of another owner.
            return Err(Error::Reopening);
        }
        self.home.probe().await?;
        drop(self.shared.published.swap(None));
        self.close_database().await;
        let home = Arc::clone(&self.home);
        if let Err(error) = home.within(home.patience().open_max, self.open()).await {
            self.fail(&error).await;
            return Err(error);
        }
        self.failed = false;
        tracing::info!(location = %self.home.location, "the store takes writes again");
        Ok(())
    }
}
