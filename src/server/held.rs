//! What a connection has noted of its memory with its share ([`crate::budget`]).

use std::sync::Arc;

use crate::budget::{NOTED_STEP_BYTES, Share};

/// What is noted; taken back when dropped.
#[derive(Debug)]
pub(super) struct Held {
    share: Arc<Share>,
    /// Bytes of buffers and requests.
    bytes: usize,
    /// Bytes of answers that are not sent.
    unread: usize,
}

impl Held {
    /// Nothing yet.
    pub(super) const fn new(share: Arc<Share>) -> Self {
        Self {
            share,
            bytes: 0,
            unread: 0,
        }
    }

    /// Notes what is held now where that is far from what was noted; else it costs two comparisons.
    pub(super) fn note(&mut self, bytes: usize, unread: usize) {
        if bytes.abs_diff(self.bytes) >= NOTED_STEP_BYTES {
            match bytes.checked_sub(self.bytes) {
                Some(more) => self.share.hold(more),
                None => self.share.release(self.bytes - bytes),
            }
            self.bytes = bytes;
        }
        if unread.abs_diff(self.unread) >= NOTED_STEP_BYTES {
            self.share.set_unread(unread);
            self.unread = unread;
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.share.release(self.bytes);
        self.share.set_unread(0);
    }
}
