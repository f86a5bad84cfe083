//! Whether the disk was full while the engine wrote in the background.
//!
//! The engine writes tables on threads of its own and reports only *that* one of them failed. When the committer sees
//! the failure, there may be free space again: other programs have freed some, or the engine has removed the files that
//! it could not finish. So the committer checks the free space during such work, and records any shortage.
//!
//! ```text
//! nothing to do ──the engine works──► watched: the free space every few milliseconds, and whether the engine still takes writes
//!       ▲                                  │
//!       └── it was idle for a while ───────┘ (what was seen is forgotten: it excuses no later failure)
//! ```
//! A failure counts as a full disk if free space was short during the work, even if a sync failed too. The store is
//! then reopened. Reopening rewrites whatever a failed sync may have lost, as a start of the server does.

use std::path::Path;
use std::time::Duration;

use fjall::PersistMode;

use super::super::super::directory::full_or;
use super::super::{Engine, TABLE_BYTES, guard};
use super::Committer;
use crate::storage::Error;
use crate::storage::faults::{FaultPoint, Faults};

/// Time between two checks. A shortage shorter than this goes unnoticed. A longer time would miss more; a shorter one
/// would cost time in every group.
const CHECK_EVERY: Duration = Duration::from_millis(10);

/// How long the engine must have been idle before the checks stop: the engine may merge a table a moment after it wrote
/// it.
const LINGER: Duration = Duration::from_millis(200);

/// The shortage and the activity seen since the engine's background work began.
#[derive(Debug, Default)]
pub(super) struct FreeSpace {
    /// When the engine was last at work. `None` means it is idle.
    at_work: Option<Duration>,
    checked: Duration,
    was_short: bool,
}

impl FreeSpace {
    /// Whether the space was too little for a table at some moment of the work.
    pub(super) const fn was_short(&self) -> bool {
        self.was_short
    }

    /// How long the committer may wait for commands before the next check. `None` means no limit.
    pub(super) fn patience(&self) -> Option<Duration> {
        self.at_work.map(|_| CHECK_EVERY)
    }
}

impl Committer {
    /// Checks the engine's background work: whether the disk has space for it, and whether it has failed.
    pub(super) fn watch_free_space(&mut self) {
        let Some(engine) = self.engine.clone() else { return };
        let is_busy = engine.data.sealed_memtable_count() > 0
            || engine.database.active_compactions() > 0
            || self.maintenance.is_compacting();
        if !is_busy && self.free_space.at_work.is_none() {
            return;
        }
        let now = self.clock.monotonic();
        if is_busy {
            self.free_space.at_work = Some(now);
        }
        if now.saturating_sub(self.free_space.checked) < CHECK_EVERY {
            return;
        }
        self.free_space.checked = now;
        self.free_space.was_short |= is_short(&engine, self.options.faults.as_ref());
        let is_idle = self
            .free_space
            .at_work
            .is_none_or(|last| now.saturating_sub(last) >= LINGER);
        // If the engine has failed, the shortage stays recorded until the next write determines the cause.
        let is_well = matches!(
            guard(&engine.directory, || engine.database.persist(PersistMode::Buffer)),
            Ok(Ok(()))
        );
        if is_idle || !is_well {
            self.free_space.at_work = None;
            self.free_space.was_short &= !is_well;
        }
    }
}

impl Committer {
    /// Whether the space is too little for a table now: a failure may come before the next check.
    pub(super) fn is_short_now(&self) -> bool {
        let engine = self.engine.as_ref();
        engine.is_some_and(|engine| is_short(engine, self.options.faults.as_ref()))
    }
}

/// Whether the engine's disk has too little room for a table.
fn is_short(engine: &Engine, faults: Option<&Faults>) -> bool {
    if let Some(fault) = faults.and_then(|faults| faults(FaultPoint::FreeSpace)) {
        return full_or(fault, &engine.directory, "writing", &engine.directory).is_disk_full();
    }
    // An error of the check counts as enough space.
    fs4::available_space(&engine.directory).is_ok_and(|bytes| bytes < TABLE_BYTES)
}

/// The error for a background failure that a full disk caused.
pub(super) fn was_full(directory: &Path) -> Error {
    Error::DiskFull {
        directory: directory.to_owned(),
    }
}
