//! For tests: one machine as two. Requests see all partitions at an owner that only messages reach, and this machine is
//! that owner, too.
//!
//! A test switches it on for its thread ([`through_bytes`]); the variable `HELENUS_THROUGH_BYTES` switches it on for
//! every thread of a process. Servers do not contain this module.

use std::cell::Cell;
use std::sync::{Arc, LazyLock};

use crate::engine::snapshot::Snapshot;
use crate::partition::Owner;

static OF_PROCESS: LazyLock<bool> = LazyLock::new(|| std::env::var_os("HELENUS_THROUGH_BYTES").is_some());

thread_local! {
    static ON: Cell<bool> = const { Cell::new(false) };
    static SENT: Cell<u64> = const { Cell::new(0) };
}

/// Sends the parts of every request that begins on this thread through bytes from now on, or of none unless the variable
/// says so.
pub fn through_bytes(is_on: bool) {
    ON.set(is_on);
}

/// How many messages this thread has sent through bytes.
#[must_use]
pub fn messages_sent() -> u64 {
    SENT.get()
}

/// The catalog as a request is to see it. If the parts of requests are sent: all partitions elsewhere, and the catalog as
/// their owner has it.
pub(in crate::engine) fn seen(snapshot: Arc<Snapshot>) -> (Arc<Snapshot>, Option<Arc<Snapshot>>) {
    if ON.get() || *OF_PROCESS {
        let elsewhere = snapshot.at(&Owner("itself".into()));
        return (Arc::new(elsewhere), Some(snapshot));
    }
    (snapshot, None)
}

pub(in crate::engine) fn count_message() {
    SENT.set(SENT.get() + 1);
}
