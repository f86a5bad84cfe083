//! Locks of logical partitions: a request whose result depends on a partition's rows locks the partition first.
//!
//! Conditional statements, counters, list positions, reads before writes and writes to tables with views lock; other writes
//! never do. Each partition has a line of requests, and the first one holds the lock. A request joins the lines of all its
//! partitions at once and waits until it is first in all of them. So no two requests wait for each other, they get their locks
//! in the order in which they came, and requests without a common partition do not wait.
//!
//! A line exists as long as a request stands in it, so their number is bounded by the requests in flight and their partitions.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::quality::RandomState;
use tokio::sync::Notify;

/// A logical partition: its table's number, and the number that the placement made of its key
/// ([`super::Placement::spread`]). Two keys of one number share a lock, which costs only a wait.
type Key = (u32, i64);

/// The lines of requests, each with the one that holds the lock in front. None is empty.
type Lines = HashMap<Key, VecDeque<Arc<Waiter>>, RandomState>;

/// The locks of all logical partitions.
#[derive(Debug, Default)]
pub struct KeyLocks {
    lines: Arc<Mutex<Lines>>,
}

/// A request in the lines of its partitions.
#[derive(Debug, Default)]
struct Waiter {
    /// Lines in which another request stands before it.
    behind: AtomicUsize,
    first: Notify,
}

/// Holds the locks of logical partitions, or waits for them, until it is dropped.
#[derive(Debug)]
pub struct Held {
    lines: Arc<Mutex<Lines>>,
    keys: Vec<Key>,
    waiter: Arc<Waiter>,
}

impl KeyLocks {
    /// Locks these logical partitions, each given by its table's number and the number that the placement made of its
    /// key ([`super::Placement::spread`]).
    pub async fn lock_all(&self, partitions: impl IntoIterator<Item = (u32, i64)>) -> Held {
        let mut keys: Vec<Key> = partitions.into_iter().collect();
        keys.sort_unstable();
        keys.dedup();
        let held = Held::join(&self.lines, keys);
        if held.waiter.behind.load(Ordering::Acquire) > 0 {
            held.waiter.first.notified().await;
        }
        held
    }
}

impl Held {
    fn join(lines: &Arc<Mutex<Lines>>, keys: Vec<Key>) -> Self {
        let held = Self {
            lines: Arc::clone(lines),
            keys,
            waiter: Arc::default(),
        };
        let mut lines = locked(lines);
        let mut behind = 0;
        for key in &held.keys {
            let line = lines.entry(*key).or_default();
            behind += usize::from(!line.is_empty());
            line.push_back(Arc::clone(&held.waiter));
        }
        held.waiter.behind.store(behind, Ordering::Release);
        drop(lines);
        held
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut lines = locked(&self.lines);
        for key in &self.keys {
            let Entry::Occupied(mut line) = lines.entry(*key) else {
                continue;
            };
            let waiting = line.get_mut();
            let place = waiting.iter().position(|waiter| Arc::ptr_eq(waiter, &self.waiter));
            let Some(place) = place else { continue };
            waiting.remove(place);
            match waiting.front() {
                None => drop(line.remove()),
                Some(next) if place == 0 && next.behind.fetch_sub(1, Ordering::AcqRel) == 1 => next.first.notify_one(),
                Some(_) => {}
            }
        }
    }
}

fn locked(lines: &Mutex<Lines>) -> MutexGuard<'_, Lines> {
    lines.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[tokio::test]
    async fn opposite_orders_do_not_deadlock() {
        let locks = Arc::new(KeyLocks::default());
        let tasks: Vec<_> = (0..64)
            .map(|index| {
                let locks = Arc::clone(&locks);
                tokio::spawn(async move {
                    let keys = if index % 2 == 0 {
                        [(1, 7), (1, 8)]
                    } else {
                        [(1, 8), (1, 7)]
                    };
                    for _ in 0..100 {
                        let _held = locks.lock_all(keys).await;
                        tokio::task::yield_now().await;
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert!(locked(&locks.lines).is_empty());
    }

    #[tokio::test]
    async fn one_key_twice_is_locked_once() {
        let locks = KeyLocks::default();
        drop(locks.lock_all([(3, 5), (3, 5)]).await);
    }

    #[tokio::test]
    async fn locks_are_given_in_order_and_others_do_not_wait() {
        let locks = KeyLocks::default();
        let first = locks.lock_all([(1, 1), (1, 2)]).await;
        let mut second = Box::pin(locks.lock_all([(1, 2), (1, 3)]));
        assert!((&mut second).now_or_never().is_none());
        // It waits behind the second, though the third partition is not held yet.
        let mut third = Box::pin(locks.lock_all([(1, 3)]));
        assert!((&mut third).now_or_never().is_none());
        assert!(locks.lock_all([(1, 4), (2, 1)]).now_or_never().is_some());
        drop(first);
        let second = (&mut second).now_or_never().unwrap();
        assert!((&mut third).now_or_never().is_none());
        drop(second);
        assert!((&mut third).now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_request_that_gives_up_leaves_its_lines() {
        let locks = KeyLocks::default();
        let first = locks.lock_all([(1, 1)]).await;
        let mut second = Box::pin(locks.lock_all([(1, 1), (1, 2)]));
        assert!((&mut second).now_or_never().is_none());
        let mut third = Box::pin(locks.lock_all([(1, 1), (1, 2)]));
        assert!((&mut third).now_or_never().is_none());
        drop(second);
        assert!((&mut third).now_or_never().is_none());
        drop(first);
        drop((&mut third).now_or_never().unwrap());
        assert!(locked(&locks.lines).is_empty());
    }
}
