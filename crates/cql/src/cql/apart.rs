//! Runs requests that may compute for long between two of their awaits: large ones, and those that call user-defined
//! functions. The runtime passes the other tasks of their thread to another thread meanwhile.
//!
//! As many of them compute at once as there are processors; the others wait for their turn. So the threads of other requests
//! compete with a few threads, however many clients send such requests.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::LazyLock;
use std::task::Poll;
use std::thread::available_parallelism;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;
use tokio::task::block_in_place;

/// One permit for each processor. A request holds one while it computes, never while it waits for something else.
static TURNS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(available_parallelism().map_or(1, usize::from)));

/// Runs a future whose polls may take long.
pub async fn apart<T>(work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    loop {
        // Nothing closes the semaphore.
        let turn = TURNS.acquire().await.ok();
        let polled = poll_fn(|context| Poll::Ready(compute(|| work.as_mut().poll(context)))).await;
        drop(turn);
        if let Poll::Ready(output) = polled {
            return output;
        }
        woken().await;
    }
}

/// Waits until the work wakes the task. Its last poll has registered the waker.
async fn woken() {
    let mut is_woken = false;
    poll_fn(|_| {
        if std::mem::replace(&mut is_woken, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

/// Computes what may take long. A runtime with a single thread has no other one, and computes it as it is.
fn compute<T>(work: impl FnOnce() -> T) -> T {
    let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
    if matches!(flavor, Ok(RuntimeFlavor::MultiThread)) {
        block_in_place(work)
    } else {
        work()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    /// More tasks than permits, each with computations and waits in turn: all end, and no more than the permits compute at once.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn as_many_compute_at_once_as_there_are_processors() {
        let (computing, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let tasks: Vec<_> = (0..64)
            .map(|task| {
                let (computing, most) = (Arc::clone(&computing), Arc::clone(&most));
                tokio::spawn(apart(async move {
                    for step in 0..4 {
                        let now = computing.fetch_add(1, Ordering::SeqCst) + 1;
                        most.fetch_max(now, Ordering::SeqCst);
                        std::thread::sleep(Duration::from_millis(1));
                        computing.fetch_sub(1, Ordering::SeqCst);
                        if (task + step) % 2 == 0 {
                            tokio::task::yield_now().await;
                        } else {
                            tokio::time::sleep(Duration::from_millis(2)).await;
                        }
                    }
                    task
                }))
            })
            .collect();
        for (task, handle) in tasks.into_iter().enumerate() {
            assert_eq!(handle.await.unwrap(), task);
        }
        let processors = available_parallelism().map_or(1, usize::from);
        assert!(most.load(Ordering::SeqCst) <= processors, "{most:?}");
    }
}
