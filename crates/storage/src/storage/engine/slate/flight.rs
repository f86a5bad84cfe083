//! Groups in flight: written to the database's memory, where the next groups build on them, and not durable yet.
//!
//! ```text
//! write ─► add ─► [is_due] begin ─► the log is put ─► landed ─► cache, publish, answer
//!                     │                            └─ late: the batches are answered as failed, the groups stay in flight
//!                     └─ a put takes all groups that were written before it; one put is under way at a time
//! ```
//! **Visibility.** Readers see only published groups, so only durable ones. The committer reads the newest view
//! ([`Flight::newest`]), and uses no entry of the row cache that a group in flight has changed ([`Flight::changes`]).
//!
//! **When a put begins.** A put to a bucket takes as long for one batch as for a thousand. Clients that were answered
//! send again within milliseconds, and would miss a put that began at once. So a put waits until it has as many batches
//! as its predecessor had answered and left waiting, or until [`GATHERING_MAX`] has passed. A single client never
//! waits: its batch is as many as there were. In a directory a put does not wait.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::FutureExt;
use tokio::task::JoinHandle;

use super::Published;
use super::group::{Fold, Group, Request};
use crate::storage::batch::Space;
use crate::storage::cache::RowCache;
use crate::storage::{Error, Result};

/// Longest wait for more batches before the log of a bucket is put: a quarter of the duration of such a put.
pub(super) const GATHERING_MAX: Duration = Duration::from_millis(5);

/// Most groups in flight; more wait in the queue.
const GROUPS_MAX: usize = 256;

/// A group that is written.
pub(super) struct Written {
    /// The group's changes, for the row cache.
    pub(super) group: Arc<Group>,
    /// The database after the group.
    pub(super) view: Arc<Published>,
    /// The group's batches, each with its refusal if it was refused.
    pub(super) batches: Vec<(Request, Option<Error>)>,
}

/// Ends when a put is late, with the reason.
pub(super) type Lateness = Pin<Box<dyn Future<Output = Error> + Send + Sync>>;

/// The put of the log that is under way.
struct Put {
    /// How many of the oldest groups it contains.
    groups: usize,
    /// Ends when the put is late. `None` means that this is known.
    late: Option<Lateness>,
    /// A separate task: a future that is kept here would not progress while the committer is busy.
    task: JoinHandle<Result<()>>,
}

/// What there is to know of a put that is under way.
pub(super) enum PutEvent {
    /// It has ended.
    Ended(Result<()>),
    /// It takes too long, and goes on.
    Late(Error),
}

/// The groups in flight.
#[derive(Default)]
pub(super) struct Flight {
    /// The oldest first.
    groups: VecDeque<Written>,
    put: Option<Put>,
    gathering: Gathering,
    /// Whether a put waits for more batches: not in a directory, and not for a log that all databases share, which waits
    /// itself.
    waits: bool,
}

/// When the next put begins.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    /// Batches that no put contains yet.
    batches: usize,
    /// Batches for which the put waits.
    expected: usize,
    /// When the first of them was queued, or the put before ended, in the clock's monotonic time. `None` means that
    /// none is queued.
    since: Option<Duration>,
}

impl Gathering {
    pub(super) fn add(&mut self, batches: usize, now: Duration) {
        self.batches += batches;
        self.since.get_or_insert(now);
    }

    /// How long to wait. `None` means that there is nothing to put.
    pub(super) fn wait(&self, longest: Duration, now: Duration) -> Option<Duration> {
        let since = self.since?;
        if self.batches >= self.expected {
            return Some(Duration::ZERO);
        }
        Some(longest.saturating_sub(now.saturating_sub(since)))
    }

    /// A put of all of them begins. Returns how many there are.
    pub(super) fn begun(&mut self) -> usize {
        let batches = self.batches;
        *self = Self {
            expected: self.expected,
            ..Self::default()
        };
        batches
    }

    /// Records that a put has answered this many batches.
    pub(super) fn ended(&mut self, answered: usize, now: Duration) {
        self.expected = answered.saturating_add(self.batches);
        self.since = self.since.map(|_| now);
    }
}

impl Written {
    pub(super) fn new(group: Arc<Group>, view: Arc<Published>) -> Self {
        Self {
            group,
            view,
            batches: Vec::new(),
        }
    }

    /// Applies the group to the cache, before it is published.
    pub(super) fn apply_to(&self, cache: &RowCache) {
        let seq = self.view.seq;
        for (key, (space, fold)) in &self.group.folds {
            let key = key.get(1..).unwrap_or_default();
            match fold {
                _ if *space != Space::Rows => {}
                Fold::Put(value) => cache.apply(key, Some(value), seq),
                Fold::Delete => cache.apply(key, None, seq),
                Fold::Merge(value) => cache.merge(key, value, seq),
            }
        }
    }
}

impl Flight {
    pub(super) fn new(waits: bool) -> Self {
        Self {
            waits,
            ..Self::default()
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    pub(super) fn has_room(&self) -> bool {
        self.groups.len() < GROUPS_MAX
    }

    /// The database after the newest group. `None` means that nothing is in flight.
    pub(super) fn newest(&self) -> Option<&Arc<Published>> {
        self.groups.back().map(|written| &written.view)
    }

    /// Whether a group in flight changes the value of a full key.
    pub(super) fn changes(&self, full: &[u8]) -> bool {
        self.groups.iter().any(|written| written.group.folds.contains_key(full))
    }

    /// Adds a group that was written.
    pub(super) fn add(&mut self, written: Written, now: Duration) {
        self.gathering.add(written.batches.len(), now);
        self.groups.push_back(written);
    }

    pub(super) fn is_put(&self) -> bool {
        self.put.is_some()
    }

    /// The time until a put has to begin. `None` means that nothing has to be put, or a put is under way.
    pub(super) fn wait(&self, now: Duration) -> Option<Duration> {
        let longest = if self.waits { GATHERING_MAX } else { Duration::ZERO };
        self.gathering.wait(longest, now).filter(|_| self.put.is_none())
    }

    /// Records that a put of everything written begins. `late` resolves when the put is late. `None` means that lateness
    /// has no effect.
    pub(super) fn begin(&mut self, task: JoinHandle<Result<()>>, late: Option<Lateness>) {
        self.gathering.begun();
        self.put = Some(Put {
            groups: self.groups.len(),
            late,
            task,
        });
    }

    /// Records that the current put is known to be late.
    pub(super) fn note_late(&mut self) {
        if let Some(put) = &mut self.put {
            put.late = None;
        }
    }

    /// Removes and returns the batches of all groups, which stay in flight.
    pub(super) fn take_batches(&mut self) -> Vec<(Request, Option<Error>)> {
        let batches = self
            .groups
            .iter_mut()
            .map(|written| std::mem::take(&mut written.batches));
        batches.flatten().collect()
    }

    /// Waits until the current put ends or is late; never returns if there is none. May be dropped and called again.
    pub(super) async fn put_event(&mut self) -> PutEvent {
        poll_fn(|context| {
            let Some(put) = &mut self.put else {
                return Poll::Pending;
            };
            if let Poll::Ready(ended) = put.task.poll_unpin(context) {
                // A task that panicked has certainly put nothing.
                return Poll::Ready(PutEvent::Ended(ended.unwrap_or(Err(Error::Closed))));
            }
            let Some(late) = &mut put.late else {
                return Poll::Pending;
            };
            let late = late.poll_unpin(context).map(PutEvent::Late);
            if late.is_ready() {
                put.late = None;
            }
            late
        })
        .await
    }

    /// Removes and returns the groups of the put that has succeeded.
    pub(super) fn landed(&mut self, now: Duration) -> Vec<Written> {
        let groups = self.put.take().map_or(0, |put| put.groups).min(self.groups.len());
        let landed: Vec<_> = self.groups.drain(..groups).collect();
        let answered = landed.iter().map(|written| written.batches.len()).sum();
        self.gathering.ended(answered, now);
        landed
    }

    /// Removes and returns all groups; none of them will become durable.
    pub(super) fn lose(&mut self) -> Vec<Written> {
        if let Some(put) = self.put.take() {
            put.task.abort();
        }
        self.gathering = Gathering::default();
        self.groups.drain(..).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_put_waits_for_those_who_were_answered_and_not_for_ever() {
        let mut gathering = Gathering::default();
        assert_eq!(gathering.wait(ms(5), ms(0)), None, "nothing is there");
        gathering.add(1, ms(1));
        assert_eq!(gathering.wait(ms(5), ms(1)), Some(ms(0)), "one client does not wait");
        gathering.begun();
        assert_eq!(gathering.wait(ms(5), ms(2)), None);
        gathering.add(100, ms(10));
        gathering.ended(156, ms(21));
        assert_eq!(gathering.wait(ms(5), ms(22)), Some(ms(4)));
        gathering.add(155, ms(23));
        assert_eq!(gathering.wait(ms(5), ms(23)), Some(ms(3)));
        gathering.add(1, ms(24));
        assert_eq!(gathering.wait(ms(5), ms(24)), Some(ms(0)), "all are there");
        gathering.begun();
        gathering.ended(256, ms(45));
        gathering.add(1, ms(60));
        assert_eq!(gathering.wait(ms(5), ms(60)), Some(ms(5)));
        assert_eq!(gathering.wait(ms(5), ms(66)), Some(ms(0)), "the others stay away");
        gathering.begun();
        gathering.ended(1, ms(86));
        gathering.add(1, ms(90));
        assert_eq!(
            gathering.wait(ms(5), ms(90)),
            Some(ms(0)),
            "and are not waited for again"
        );
    }
}
