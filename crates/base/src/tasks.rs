//! The runner: owns every background task of a database and its server, from its start to its end.
//!
//! ```text
//! every       periodic work (sweeps, size checks)      ─┐
//! until_stop  work without an end (keeping time)       ─┴─ cancelled when the stop begins
//! spawn       work that ends by itself (index builds)  ─┐
//! carry       the rest of a request that may be dropped   ─┴─ joined after the stores are closed, aborted after a limit
//! ```
//! Invariants: a task has a name, which logs and `/livez` show when it panics or has to be aborted. Every task may be
//! aborted at any await: the next start completes its unfinished work, as after a crash. A panic in a round of periodic
//! work is logged and counted, and the next round runs.
//!
//! Deliberately absent: tasks of connections and of stores. Their owners join them (`tests/house.rs` lists them).

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, JoinHandle};

use crate::metrics;

/// The background tasks of one database. Clones are handles of the same runner.
#[derive(Clone, Debug, Default)]
pub struct Tasks(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    owned: Mutex<Owned>,
    /// Tasks of [`Tasks::carry`] that run now.
    carried: AtomicUsize,
    /// Notified at the end of each task.
    ended: Notify,
    stop: watch::Sender<bool>,
    /// Panics by name: at most one entry for each name in the source.
    panics: Mutex<BTreeMap<&'static str, u64>>,
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            owned: Mutex::default(),
            carried: AtomicUsize::new(0),
            ended: Notify::new(),
            stop: watch::Sender::new(false),
            panics: Mutex::default(),
        }
    }
}

/// Tasks by number; each entry is removed at the end of its task.
#[derive(Debug, Default)]
struct Owned {
    next: u64,
    running: BTreeMap<u64, (&'static str, AbortHandle)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Part of a task's future: reports its end, its panic and its abort.
struct Running {
    inner: Arc<Inner>,
    name: &'static str,
    /// `None` means it was started by [`Tasks::carry`].
    number: Option<u64>,
}

impl Drop for Running {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.inner.note_panic(self.name);
        }
        match self.number {
            Some(number) => drop(lock(&self.inner.owned).running.remove(&number)),
            None => drop(self.inner.carried.fetch_sub(1, Ordering::Relaxed)),
        }
        self.inner.ended.notify_waiters();
    }
}

impl Inner {
    fn note_panic(&self, name: &'static str) {
        metrics::TASK_PANICS.increment();
        *lock(&self.panics).entry(name).or_default() += 1;
        tracing::error!(task = name, "a background task panicked");
    }

    fn is_idle(&self) -> bool {
        self.carried.load(Ordering::Relaxed) == 0 && lock(&self.owned).running.is_empty()
    }
}

impl Tasks {
    /// Runs a task that ends by itself, at the latest soon after the stores are closed.
    pub fn spawn(&self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        // Locked until the entry is inserted: a task that ends at once must find it.
        let mut owned = lock(&self.0.owned);
        let number = owned.next;
        owned.next += 1;
        let running = Running {
            inner: Arc::clone(&self.0),
            name,
            number: Some(number),
        };
        let handle = tokio::spawn(async move {
            let _running = running;
            work.await;
        });
        owned.running.insert(number, (name, handle.abort_handle()));
    }

    /// Runs a task that never ends; the stop cancels it.
    pub fn until_stop(&self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        let tasks = self.clone();
        // `None` means the stop cancelled it.
        self.spawn(
            name,
            async move { tasks.unless_stopped(work).await.unwrap_or_default() },
        );
    }

    /// Repeats: waits for the interval, then runs one round. The stop cancels it at any await.
    pub fn every<R>(&self, name: &'static str, interval: Duration, mut round: impl FnMut() -> R + Send + 'static)
    where
        R: Future<Output = ()> + Send + 'static,
    {
        let inner = Arc::clone(&self.0);
        self.until_stop(name, async move {
            loop {
                tokio::time::sleep(interval).await;
                if AssertUnwindSafe(round()).catch_unwind().await.is_err() {
                    inner.note_panic(name);
                }
            }
        });
    }

    /// Completes what a request began, even if the request is dropped. Costs two additions and a box more than a plain
    /// task.
    pub fn carry<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.0.carried.fetch_add(1, Ordering::Relaxed);
        let running = Running {
            inner: Arc::clone(&self.0),
            name,
            number: None,
        };
        // Boxed, because a task moves its future a few times before and after it runs, and a commit's is some kilobytes
        // large.
        let work = Box::pin(work);
        tokio::spawn(async move {
            let _running = running;
            work.await
        })
    }

    /// Awaits a future, or the beginning of the stop. `None` means the stop came first, and the future was dropped.
    pub async fn unless_stopped<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut stop = self.0.stop.subscribe();
        tokio::select! {
            biased;
            // Fails only without a sender, which this handle holds.
            _ = stop.wait_for(|stops| *stops) => None,
            done = work => Some(done),
        }
    }

    /// Begins the stop: cancels periodic work and everything that waits in [`Tasks::unless_stopped`].
    pub fn begin_stop(&self) {
        self.0.stop.send_replace(true);
    }

    /// Waits until every task has ended. After the limit, the remaining tasks are named in the log and aborted; those
    /// of [`Tasks::carry`] then end with their runtime.
    pub async fn join(&self, within: Duration) {
        let idle = async {
            loop {
                let ended = self.0.ended.notified();
                let mut ended = std::pin::pin!(ended);
                // Registered before the check: an end in between would be missed.
                ended.as_mut().enable();
                if self.0.is_idle() {
                    return;
                }
                ended.await;
            }
        };
        if tokio::time::timeout(within, idle).await.is_ok() {
            return;
        }
        let running: Vec<(&'static str, AbortHandle)> = lock(&self.0.owned).running.values().cloned().collect();
        let names: Vec<&str> = running.iter().map(|(name, _)| *name).collect();
        let carried = self.0.carried.load(Ordering::Relaxed);
        tracing::warn!(
            names = names.join(", "),
            carried,
            "background tasks aborted: they took too long to stop"
        );
        for (_, task) in running {
            task.abort();
        }
    }

    /// The names of tasks that panicked since the start, each with its count.
    #[must_use]
    pub fn panics(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.0.panics).clone()
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    const SOON: Duration = Duration::from_millis(50);
    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_stop_cancels_periodic_work_and_waits_for_the_rest() {
        let tasks = Tasks::default();
        let rounds = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&rounds);
        tasks.every("round", Duration::from_secs(1), move || {
            counted.fetch_add(1, Ordering::Relaxed);
            async {}
        });
        tasks.until_stop("forever", pending());
        let finished = Arc::new(AtomicUsize::new(0));
        let (one, other) = (Arc::clone(&finished), Arc::clone(&finished));
        tasks.spawn("build", async move {
            tokio::time::sleep(Duration::from_secs(5)).await;
            one.fetch_add(1, Ordering::Relaxed);
        });
        drop(tasks.carry("commit", async move {
            tokio::time::sleep(Duration::from_secs(6)).await;
            other.fetch_add(1, Ordering::Relaxed);
        }));
        tokio::time::sleep(Duration::from_millis(3500)).await;
        assert_eq!(rounds.load(Ordering::Relaxed), 3);
        tasks.begin_stop();
        let began = tokio::time::Instant::now();
        tasks.join(LONG).await;
        assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
        assert_eq!(
            (rounds.load(Ordering::Relaxed), finished.load(Ordering::Relaxed)),
            (3, 2)
        );
        assert!(tasks.0.is_idle() && tasks.panics().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_too_long_is_aborted() {
        let tasks = Tasks::default();
        tasks.spawn("stuck", pending());
        tasks.begin_stop();
        tasks.join(SOON).await;
        tasks.join(LONG).await;
        assert!(tasks.0.is_idle());
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_is_counted_by_name_and_the_next_round_runs() {
        let tasks = Tasks::default();
        let mut rounds = 0;
        let (report, mut reports) = tokio::sync::mpsc::unbounded_channel();
        tasks.every("sweep", Duration::from_secs(1), move || {
            rounds += 1;
            let (round, report) = (rounds, report.clone());
            async move {
                assert!(round != 1, "the first round panics");
                report.send(round).unwrap();
            }
        });
        tasks.spawn("build", async { panic!("seeded") });
        assert!(tasks.carry("commit", async { panic!("seeded") }).await.is_err());
        assert_eq!(reports.recv().await, Some(2));
        assert_eq!(
            tasks.panics(),
            BTreeMap::from([("sweep", 1), ("build", 1), ("commit", 1)])
        );
        tasks.begin_stop();
        tasks.join(LONG).await;
        assert!(tasks.0.is_idle());
    }
}
