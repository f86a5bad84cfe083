//! Runs requests that may compute for long between two of their awaits: large ones, and those that call user-defined functions. The
//! runtime passes the other tasks of their thread to another thread meanwhile.

use std::future::{Future, poll_fn};
use std::pin::pin;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

/// Runs a future whose polls may take long.
pub(crate) async fn apart<T>(work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    poll_fn(|context| compute_apart(|| work.as_mut().poll(context))).await
}

/// Computes what may take long. A runtime with a single thread has no other one, and computes it as it is.
pub(super) fn compute_apart<T>(work: impl FnOnce() -> T) -> T {
    let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
    if matches!(flavor, Ok(RuntimeFlavor::MultiThread)) {
        block_in_place(work)
    } else {
        work()
    }
}
