//! Slots of connections: how many there may be, and which of them is closed for a new one.
//!
//! ```text
//! Silent ─► Asking ─► Answered ─► gone
//!                └──► Streamed ─► gone
//! ```
//! When all slots are taken, a new connection takes the slot of the oldest silent one. If there is none, it takes that
//! of the oldest whose answer is ready and whose client does not read it. A request that is being answered keeps its
//! slot, and so does a stream while its client reads it. So silent connections, however many, never keep a probe out: a probe sends its request as soon as it is
//! connected.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use tokio::task::AbortHandle;

const SILENT: u8 = 0;
const ASKING: u8 = 1;
const ANSWERED: u8 = 2;
const STREAMED: u8 = 3;

/// The stage of a connection; shared with its requests.
#[derive(Debug, Default)]
pub(super) struct Stage {
    at: AtomicU8,
    /// Whether a stream has sent something since the last look.
    has_sent: AtomicBool,
}

impl Stage {
    /// A complete request head has arrived.
    pub(super) fn has_request(&self) {
        self.at.store(ASKING, Ordering::Relaxed);
    }

    /// The answer is ready. A stream keeps its stage.
    pub(super) fn is_answered(&self) {
        // Fails only if the answer is a stream.
        let _ = self
            .at
            .compare_exchange(ASKING, ANSWERED, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// The answer is a stream, which has just sent something.
    pub(super) fn streams(&self) {
        self.at.store(STREAMED, Ordering::Relaxed);
        self.has_sent.store(true, Ordering::Relaxed);
    }

    /// Whether a stream has sent something since the last call.
    pub(super) fn take_has_sent(&self) -> bool {
        self.has_sent.swap(false, Ordering::Relaxed)
    }

    fn is(&self, stage: u8) -> bool {
        self.at.load(Ordering::Relaxed) == stage
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
