//! How the committer handles a failed write, and how it ends; see the header of committer.rs.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use fjall::PersistMode;

use super::super::super::directory::full_or;
use super::super::{Engine, TABLE_BYTES, guard};
use super::free_space::{FreeSpace, was_full};
use super::maintenance::Maintenance;
use super::{Committer, Health, POLL};
use crate::storage::faults::FaultPoint;
use crate::storage::{CommitSeq, Error, Result};

/// Most polls for readers of the old engine to finish before the store closes.
const LEAVING_POLLS_MAX: u32 = 10_000;

/// The same before a reopening. It is short because a task that waits for a commit may itself hold a snapshot until it
/// is answered: a long wait would be a deadlock until its end. The commit is refused then, and the next commit tries
/// again.
const REOPENING_POLLS_MAX: u32 = 250;

impl Committer {
    /// Finds the cause of a failed write. The engine does not report why background work failed. A full disk is
    /// recognised by a probe, or by the free space seen during the work.
    pub(super) fn cause_of(&self, error: Error) -> Error {
        match error {
            Error::Engine { .. } if self.free_space.was_short() || self.is_short_now() => {
                was_full(self.directory.path())
            }
            Error::Engine { .. } => self
                .directory
                .probe(TABLE_BYTES)
                .err()
                .filter(Error::is_disk_full)
                .unwrap_or(error),
            error => error,
        }
    }

    pub(super) fn fail(&mut self, error: &Error) {
        tracing::error!(%error, directory = %self.directory.path().display(), "the store takes no writes");
        self.health = if error.is_disk_full() {
            Health::Full
        } else {
            let cause = Arc::new(error.clone());
            // After a broken invariant, reads may be wrong too: the server ends.
            if self.engine.is_none() || matches!(error, Error::Broken(_)) {
                self.shared.lost.store(Some(Arc::clone(&cause)));
            }
            Health::Failed(cause)
        };
    }

    /// Makes sure that the engine takes writes: after a full disk, reopens it once the disk accepts some.
    pub(super) fn recover(&mut self) -> Result<()> {
        if self.provisional.is_some() {
            return Err(Error::NotAccepted {
                directory: self.directory.path().to_owned(),
            });
        }
        match &self.health {
            Health::Well => return Ok(()),
            Health::Failed(cause) => {
                let cause = Arc::clone(cause);
                return Err(Error::WritesRefused {
                    directory: self.directory.path().to_owned(),
                    cause,
                });
            }
            Health::Full => {}
        }
        if let Some(fault) = self
            .options
            .faults
            .as_ref()
            .and_then(|faults| faults(FaultPoint::Probe))
        {
            return Err(full_or(fault, self.directory.path(), "writing", self.directory.path()));
        }
        self.directory.probe(0)?;
        self.reopen().inspect_err(|error| self.fail(error))?;
        self.health = Health::Well;
        tracing::info!(directory = %self.directory.path().display(), "the store takes writes again");
        Ok(())
    }

    fn reopen(&mut self) -> Result<()> {
        self.maintenance.finish();
        // New readers get an error: a snapshot would keep the old engine open.
        let kept = self.shared.published.swap(None);
        if let Some(engine) = self.engine.take() {
            let leaving = Arc::downgrade(&engine);
            drop((engine, kept));
            if let Some(engine) = wait_until_unused(&leaving, REOPENING_POLLS_MAX) {
                // A reader still holds the old engine. Readers continue with it, and the next commit tries again.
                self.engine = Some(engine);
                self.publish();
                return Err(Error::DiskFull {
                    directory: self.directory.path().to_owned(),
                });
            }
        }
        self.acknowledged = None;
        self.free_space = FreeSpace::default();
        self.maintenance = Maintenance::default();
        let (recovered, provisional) = Engine::open(&self.directory, &self.options, &self.shared.lost)?;
        self.jobs.retain(|job| job.request.is_some());
        self.take_over_again(recovered, provisional)?;
        // In this order: a reader of the new snapshot must see the new opening, and no cached row of the old one.
        self.shared.cache.clear(CommitSeq(self.end.seq));
        self.shared.openings.fetch_add(1, Ordering::AcqRel);
        self.publish();
        self.drawn.all_published();
        Ok(())
    }

    /// Closes the engine; restores the original files if they were not accepted.
    pub(super) fn close(&mut self) -> Result<()> {
        self.maintenance.finish();
        let found = self.provisional.take();
        let mut is_clean = false;
        let synced = match (&self.health, &self.engine) {
            (Health::Well, Some(engine)) if found.is_none() => {
                guard(&engine.directory, || engine.database.persist(PersistMode::SyncAll))
                    .and_then(|synced| synced.map_err(|error| engine.error("syncing", error)))
            }
            _ => Ok(()),
        };
        if synced.is_ok() && matches!(self.health, Health::Well) {
            is_clean = self.engine.is_some();
        }
        drop(self.shared.published.swap(None));
        self.shared.cache.clear(CommitSeq(u64::MAX));
        if let Some(engine) = self.engine.take() {
            let leaving = Arc::downgrade(&engine);
            drop(engine);
            if wait_until_unused(&leaving, LEAVING_POLLS_MAX).is_some() {
                tracing::warn!(directory = %self.directory.path().display(), "a snapshot outlives its store");
                is_clean = false;
            }
        }
        if let Some(found) = found
            && is_clean
        {
            found.provisional.restore();
            is_clean = false;
        }
        // Written last, after everything that the engine wrote while it closed.
        let closed = self.acknowledged.take().filter(|_| is_clean);
        let closed = closed.map(|mut acknowledged| acknowledged.close(self.end));
        if let Some(Err(error)) = &closed {
            tracing::warn!(%error, "could not record that the store is closed");
        }
        let is_recorded = matches!(closed, Some(Ok(())));
        if is_recorded {
            self.shared.durable.raise(self.end);
        }
        self.shared.durable.close(is_recorded);
        synced
    }
}

/// Waits until no other task holds the engine; returns it if one still does.
fn wait_until_unused(engine: &Weak<Engine>, polls_max: u32) -> Option<Arc<Engine>> {
    for _ in 0..polls_max {
        if engine.strong_count() == 0 {
            return None;
        }
        std::thread::sleep(POLL);
    }
    engine.upgrade()
}
