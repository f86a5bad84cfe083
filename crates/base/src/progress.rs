//! Progress of long work: a backup, a restore, an import, a check of all data.
//!
//! ```text
//! watch(progress, work) ─► work … pass(rows, parts) … ─► progress ◄─ whoever shows it: a terminal, a socket
//! ```
//! The work counts in the progress of its task, and counts nowhere if nobody watches. So what passes rows needs no further argument.
//! Tasks and threads that the work starts do not count.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

tokio::task_local! {
    static WATCHED: Arc<Progress>;
}

/// How much of a work is done. It never falls.
#[derive(Debug, Default)]
pub struct Progress {
    rows: AtomicU64,
    parts: AtomicU64,
    parts_total: AtomicU64,
}

/// A progress at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// Rows that were passed.
    pub rows: u64,
    /// Parts of the work that are done: bytes or rows.
    pub parts: u64,
    /// All its parts; 0 means that they are not known.
    pub parts_total: u64,
}

impl Progress {
    /// The progress now.
    #[must_use]
    pub fn done(&self) -> Done {
        let parts_total = self.parts_total.load(Ordering::Relaxed);
        let parts = self.parts.load(Ordering::Relaxed);
        Done {
            rows: self.rows.load(Ordering::Relaxed),
            parts: if parts_total == 0 {
                parts
            } else {
                parts.min(parts_total)
            },
            parts_total,
        }
    }

    /// Takes over the progress of work elsewhere.
    pub fn take(&self, done: Done) {
        self.rows.fetch_max(done.rows, Ordering::Relaxed);
        self.parts.fetch_max(done.parts, Ordering::Relaxed);
        self.parts_total.fetch_max(done.parts_total, Ordering::Relaxed);
    }
}

/// Does work whose progress is counted here.
pub fn watch<Work: Future>(progress: Arc<Progress>, work: Work) -> impl Future<Output = Work::Output> {
    WATCHED.scope(progress, work)
}

/// The work of this task has so many parts more.
pub fn expect(parts: u64) {
    with(|progress| progress.parts_total.fetch_add(parts, Ordering::Relaxed));
}

/// The work of this task passed so many rows and parts.
pub fn pass(rows: u64, parts: u64) {
    with(|progress| {
        progress.rows.fetch_add(rows, Ordering::Relaxed);
        progress.parts.fetch_add(parts, Ordering::Relaxed)
    });
}

fn with(count: impl FnOnce(&Progress) -> u64) {
    // Nobody watches: the work does not count.
    let _ = WATCHED.try_with(|progress| count(progress));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_counts_where_it_is_watched_and_nowhere_else() {
        let progress = Arc::new(Progress::default());
        let work = async {
            expect(10);
            pass(3, 4);
            tokio::task::yield_now().await;
            pass(1, 20);
            7
        };
        pass(100, 100);
        assert_eq!(watch(Arc::clone(&progress), work).await, 7);
        pass(100, 100);
        let done = Done {
            rows: 4,
            parts: 10,
            parts_total: 10,
        };
        assert_eq!(progress.done(), done, "never more than all parts");
        progress.take(Done::default());
        assert_eq!(progress.done(), done, "it never falls");
    }
}
