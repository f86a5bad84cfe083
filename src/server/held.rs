//! The memory that a connection reports to its share ([`helenus_base::budget`]).
//!
//! The reported amount is never less than the actual one, and less than [`NOTED_STEP_BYTES`] more: thousands of
//! connections that each hold little hold much together.

use std::sync::Arc;

use helenus_base::budget::{NOTED_STEP_BYTES, Share};

/// Bytes of a connection in addition to its buffers and requests: its task, its session, its registrations. Measured
/// with 2,000 connections: each takes some 19 KiB once it is ready, of which 8 are buffers.
const CONNECTION_BYTES: usize = 12 * 1024;

/// Bytes to which the reported amount is rounded up.
const ROUND_BYTES: usize = 4 * 1024;

/// The reported memory; returned when dropped.
#[derive(Debug)]
pub(super) struct Held {
    share: Arc<Share>,
    /// Reported bytes of buffers and requests, without those of the connection itself.
    bytes: usize,
    /// Bytes of responses that are not sent.
    unread: usize,
}

impl Held {
    /// A connection without buffers and requests.
    pub(super) fn new(share: Arc<Share>) -> Self {
        share.hold(CONNECTION_BYTES);
        Self {
            share,
            bytes: 0,
            unread: 0,
        }
    }

    /// The connection's part.
    pub(super) const fn share(&self) -> &Arc<Share> {
        &self.share
    }

    /// Records that the client has disconnected, which ends the reads that run for it. `bytes`: what its requests hold still.
    pub(super) fn leave(&mut self, bytes: usize) {
        self.record_exactly(bytes);
        self.share.leave();
    }

    /// Reports the present amount if it is more than the reported one, or much less; otherwise it costs two
    /// comparisons.
    pub(super) fn record(&mut self, bytes: usize, unread: usize) {
        if bytes > self.bytes || self.bytes - bytes >= NOTED_STEP_BYTES {
            self.record_exactly(bytes.next_multiple_of(ROUND_BYTES));
        }
        if unread.abs_diff(self.unread) >= NOTED_STEP_BYTES {
            self.share.set_unread(unread);
            self.unread = unread;
        }
    }

    /// Reports exactly the present amount.
    pub(super) fn record_exactly(&mut self, bytes: usize) {
        match bytes.checked_sub(self.bytes) {
            Some(0) => {}
            Some(more) => self.share.hold(more),
            None => self.share.release(self.bytes - bytes),
        }
        self.bytes = bytes;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.share.release(self.bytes + CONNECTION_BYTES);
        self.share.set_unread(0);
    }
}
