//! Slots of connections: how many there may be, and which of them is closed for a new one.
//!
//! ```text
//! Silent ─► Asking ─► Answered ─► gone
//! ```
//! When all slots are taken, a new connection takes the slot of the oldest silent one. If there is none, it takes that
//! of the oldest whose answer is ready and whose client does not read it. A request that is being answered keeps its
//! slot. So silent connections, however many, never keep a probe out: a probe sends its request as soon as it is
//! connected.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::task::AbortHandle;

const SILENT: u8 = 0;
const ASKING: u8 = 1;
const ANSWERED: u8 = 2;

/// The stage of a connection; shared with its requests.
#[derive(Debug, Default)]
pub(super) struct Stage(AtomicU8);

impl Stage {
    /// A complete request head has arrived.
    pub(super) fn has_request(&self) {
        self.0.store(ASKING, Ordering::Relaxed);
    }

    /// The answer is ready.
    pub(super) fn is_answered(&self) {
        self.0.store(ANSWERED, Ordering::Relaxed);
    }

    fn is(&self, stage: u8) -> bool {
        self.0.load(Ordering::Relaxed) == stage
    }
}

/// The connections open now, oldest first.
#[derive(Debug, Default)]
pub(super) struct Slots(VecDeque<(Arc<Stage>, AbortHandle)>);

impl Slots {
    /// Frees a slot for one more connection, if `slots_max` are in use. `false` means each slot belongs to a request
    /// in progress.
    pub(super) fn free_slot(&mut self, slots_max: usize) -> bool {
        self.0.retain(|(_, connection)| !connection.is_finished());
        if self.0.len() < slots_max {
            return true;
        }
        let oldest = |stage| self.0.iter().position(|(at, _)| at.is(stage));
        let Some(slot) = oldest(SILENT).or_else(|| oldest(ANSWERED)) else {
            return false;
        };
        if let Some((_, connection)) = self.0.remove(slot) {
            connection.abort();
        }
        true
    }

    /// Adds a new connection.
    pub(super) fn take(&mut self, stage: Arc<Stage>, connection: AbortHandle) {
        self.0.push_back((stage, connection));
    }
}
