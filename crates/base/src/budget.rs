//! One budget in bytes for the memory of all connections: responses that are being built or are not sent yet, sorts,
//! buffers, frames, requests in progress.
//!
//! ```text
//! Budget (the server)
//!   └─ Share (a connection) ── unread: answers that its client has not read yet
//!        └─ Reservation (an answer larger than SMALL_ANSWER_BYTES while it is built)
//! ```
//! **Small answers need no reservation.** An answer of up to [`SMALL_ANSWER_BYTES`] is built without one, so that a
//! read of one row is answered however full the budget is. The bytes in a connection's buffers are recorded when they
//! have changed by [`NOTED_STEP_BYTES`] ([`Share::hold`]); so a request with a small answer costs no access to the
//! budget.
//!
//! **Large ones reserve memory, or begin again.** An answer that outgrows its reservation tries to reserve more at once
//! ([`Share::try_reserve`]). If there is none free, its request drops all that it holds, its future included, and only
//! its body waits here ([`Share::reserve`]). Once it has its memory it begins again with it ([`Share::hand`]): no
//! request waits for bytes while it holds bytes, a snapshot or a partition latch.
//!
//! **Fair.** A connection's reservations and its unread answers together are bounded: above that its requests wait for
//! its own client, for as long as the connection lasts. Below it, connections wait for the budget in order of arrival,
//! and no later one overtakes; after [`Budget::new`]'s `wait_max` the request is refused.
//!
//! Memory that is already in use is recorded even above the limit (an answer of one row, a frame that is being read,
//! the connection itself). An eighth of the budget is never granted, to leave space for it ([`Budget::with_unasked`]).
//! Above half of the limit, connections with unread answers begin no more requests ([`Budget::is_short`]).
//!
//! Deliberately absent: the caches' memory; each cache has its own limit.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use crate::metrics;

/// Bytes of an answer that need no reservation. A smaller value makes more requests pay for reservations; with a larger
/// one more memory is used without a grant.
pub const SMALL_ANSWER_BYTES: usize = 16 * 1024;

/// Change of the bytes of a connection's buffers above which it is recorded.
pub const NOTED_STEP_BYTES: usize = 16 * 1024;

/// The largest part of the budget for one connection's answers: one in this many.
const SHARE_PART: usize = 16;
const SHARE_BYTES_MIN: usize = 1 << 20;

/// The part of a budget that is never granted, if space is kept for memory that is only recorded: one in this many.
const UNASKED_PART: usize = 8;

/// The largest part of the budget for one answer: one in this many.
const ANSWER_PART: usize = 4;

/// There was no memory in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted;

/// The bytes of all connections.
#[derive(Debug)]
pub struct Budget {
    bytes_max: usize,
    /// The part of them that is never granted: for memory that is only recorded.
    unasked_bytes: usize,
    wait_max: Duration,
    used: AtomicUsize,
    /// Entries of `queue`; read without its lock.
    waiting: AtomicUsize,
    queue: Mutex<VecDeque<Waiter>>,
}

#[derive(Debug)]
struct Waiter {
    bytes: usize,
    grant: oneshot::Sender<Granted>,
}

/// Bytes taken from the budget; returned when dropped.
#[derive(Debug)]
pub struct Granted {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Drop for Granted {
    fn drop(&mut self) {
        self.budget.release(self.bytes);
    }
}

impl Budget {
    /// A budget of this many bytes, for which a request waits at most this long.
    #[must_use]
    pub fn new(bytes_max: usize, wait_max: Duration) -> Arc<Self> {
        Arc::new(Self::all_granted(bytes_max, wait_max))
    }

    /// The same, of which a part is never granted: connections that arrive when all is taken need some memory, too.
    #[must_use]
    pub fn with_unasked(bytes_max: usize, wait_max: Duration) -> Arc<Self> {
        Arc::new(Self {
            unasked_bytes: bytes_max / UNASKED_PART,
            ..Self::all_granted(bytes_max, wait_max)
        })
    }

    const fn grantable(&self) -> usize {
        self.bytes_max - self.unasked_bytes
    }

    fn all_granted(bytes_max: usize, wait_max: Duration) -> Self {
        Self {
            bytes_max,
            unasked_bytes: 0,
            wait_max,
            used: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            queue: Mutex::default(),
        }
    }

    /// Its limit in bytes.
    #[must_use]
    pub const fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Bytes in use; may be above the limit, as the module says.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Requests that wait for bytes.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Whether connections with unread answers should begin no more requests.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.used() > self.bytes_max / 2
    }

    /// Takes bytes if they are free.
    fn take(&self, bytes: usize) -> bool {
        let fits = |used: usize| used.checked_add(bytes).filter(|after| *after <= self.grantable());
        self.used
            .fetch_update(Ordering::SeqCst, Ordering::Relaxed, fits)
            .is_ok()
    }

    fn hold(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    fn release(self: &Arc<Self>, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::SeqCst);
        // A waiter reads `used` after it has counted itself in `waiting`, so that one of the two sees the other.
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.serve_queue();
        }
    }

    /// Grants free bytes to the waiters, in order.
    fn serve_queue(self: &Arc<Self>) {
        let mut granted = Vec::new();
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(first) = queue.front() {
            let has_gone = first.grant.is_closed();
            if !has_gone && !self.take(first.bytes) {
                break;
            }
            let first = queue.pop_front();
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            granted.extend(first.filter(|_| !has_gone));
        }
        drop(queue);
        // Outside the lock: a grant that comes too late for its request is dropped at once, which takes the lock again.
        for Waiter { bytes, grant } in granted {
            let budget = Arc::clone(self);
            drop(grant.send(Granted { budget, bytes }));
        }
    }

    fn enqueue(&self, waiter: Waiter) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push_back(waiter);
        self.waiting.fetch_add(1, Ordering::SeqCst);
    }

    /// Takes bytes if they are free and no request waits for them.
    #[must_use]
    pub fn try_take(self: &Arc<Self>, bytes: usize) -> Option<Granted> {
        let bytes = bytes.min(self.grantable());
        (self.waiting() == 0 && self.take(bytes)).then(|| Granted {
            budget: Arc::clone(self),
            bytes,
        })
    }

    /// Waits for bytes in order.
    ///
    /// # Errors
    /// Other requests did not return enough in time.
    pub async fn wait_for(self: Arc<Self>, bytes: usize) -> Result<Granted, Exhausted> {
        let bytes = bytes.min(self.grantable());
        self.wait(bytes).await
    }

    async fn wait(self: &Arc<Self>, bytes: usize) -> Result<Granted, Exhausted> {
        metrics::BUDGET_WAITS.increment();
        let (grant, mut granted) = oneshot::channel();
        self.enqueue(Waiter { bytes, grant });
        self.serve_queue();
        if let Ok(Ok(granted)) = timeout(self.wait_max, &mut granted).await {
            return Ok(granted);
        }
        drop(granted);
        // The abandoned queue entry must not block others.
        self.serve_queue();
        metrics::BUDGET_REFUSALS.increment();
        Err(Exhausted)
    }
}

/// A connection's share of the budget.
#[derive(Debug)]
pub struct Share {
    budget: Arc<Budget>,
    /// Bytes of its reservations.
    reserved: AtomicUsize,
    /// Bytes of answers that its client has not read yet.
    unread: AtomicUsize,
    /// Notified when one of the two has fallen.
    freed: Notify,
    /// The grant of the request that begins again now.
    handed: Mutex<Option<Reservation>>,
    /// Whether there is one; read without the lock.
    has_handed: AtomicBool,
    /// Whether the client has disconnected.
    has_left: AtomicBool,
}

impl Share {
    /// The share of a new connection.
    #[must_use]
    pub fn new(budget: &Arc<Budget>) -> Arc<Self> {
        Arc::new(Self {
            budget: Arc::clone(budget),
            reserved: AtomicUsize::new(0),
            unread: AtomicUsize::new(0),
            freed: Notify::new(),
            handed: Mutex::default(),
            has_handed: AtomicBool::new(false),
            has_left: AtomicBool::new(false),
        })
    }

    /// Records that the client has disconnected: reads for it end at their next row.
    pub fn leave(&self) {
        self.has_left.store(true, Ordering::Relaxed);
    }

    /// Whether the client has disconnected.
    #[must_use]
    #[inline]
    pub fn has_left(&self) -> bool {
        self.has_left.load(Ordering::Relaxed)
    }

    /// The whole budget.
    #[must_use]
    pub const fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// Most bytes of one answer.
    #[must_use]
    pub fn answer_bytes_max(&self) -> usize {
        (self.budget.bytes_max / ANSWER_PART).max(SMALL_ANSWER_BYTES)
    }

    /// Most bytes of its reservations and unread answers together; a single large answer may exceed it.
    fn bytes_max(&self) -> usize {
        (self.budget.bytes_max / SHARE_PART).max(SHARE_BYTES_MIN)
    }

    /// Records bytes that are in memory already.
    pub fn hold(&self, bytes: usize) {
        self.budget.hold(bytes);
    }

    /// Records that held bytes were released.
    pub fn release(&self, bytes: usize) {
        self.budget.release(bytes);
    }

    /// Records how many bytes of answers are not sent yet.
    pub fn set_unread(&self, bytes: usize) {
        if self.unread.swap(bytes, Ordering::Relaxed) > bytes {
            self.freed.notify_one();
        }
    }

    /// Takes bytes of its own part.
    fn take_own(self: &Arc<Self>, bytes: usize) -> Option<Own> {
        let unread = self.unread.load(Ordering::Relaxed);
        let bytes_max = self.bytes_max();
        let fits = |reserved: usize| {
            // The unrecorded rest of a write must not keep out an answer that is large by itself.
            let is_first = reserved == 0 && unread <= 2 * NOTED_STEP_BYTES;
            (is_first || reserved + unread + bytes <= bytes_max).then_some(reserved + bytes)
        };
        let taken = self.reserved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        taken.is_ok().then(|| Own {
            share: Arc::clone(self),
            bytes,
        })
    }

    /// Reserves bytes if they are free and no request waits for them.
    #[must_use]
    pub fn try_reserve(self: &Arc<Self>, bytes: usize) -> Option<Reservation> {
        if self.budget.waiting() > 0 {
            return None;
        }
        let own = self.take_own(bytes)?;
        self.budget.take(bytes).then(|| Reservation {
            granted: Granted {
                budget: Arc::clone(&self.budget),
                bytes,
            },
            own,
        })
    }

    /// Reserves bytes: waits for the connection's own client first, then for the others. The caller must hold no memory
    /// or locks while it waits.
    ///
    /// # Errors
    /// Other requests did not return enough in time.
    pub async fn reserve(self: &Arc<Self>, bytes: usize) -> Result<Reservation, Exhausted> {
        let bytes = bytes.min(self.budget.grantable());
        let own = loop {
            match self.take_own(bytes) {
                Some(own) => break own,
                // One waiter is notified at a time; a notification during the check above is kept and ends this wait at
                // once.
                None => self.freed.notified().await,
            }
        };
        // There may be enough for the next waiter, too.
        self.freed.notify_one();
        let granted = self.budget.wait(bytes).await?;
        Ok(Reservation { granted, own })
    }
}

impl Share {
    /// Leaves a request's grant for it to take when it begins again. The connection's task calls this, polls the
    /// request once, and takes back what the request has left.
    pub fn hand(&self, granted: Reservation) {
        *self.handed.lock().unwrap_or_else(PoisonError::into_inner) = Some(granted);
        self.has_handed.store(true, Ordering::Relaxed);
    }

    /// Takes the grant left by [`Share::hand`]; one atomic load if there is none.
    #[must_use]
    pub fn take_handed(&self) -> Option<Reservation> {
        if !self.has_handed.load(Ordering::Relaxed) {
            return None;
        }
        self.has_handed.store(false, Ordering::Relaxed);
        self.handed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Bytes taken from a connection's part; returned when dropped.
#[derive(Debug)]
struct Own {
    share: Arc<Share>,
    bytes: usize,
}

impl Drop for Own {
    fn drop(&mut self) {
        self.share.reserved.fetch_sub(self.bytes, Ordering::Relaxed);
        self.share.freed.notify_one();
    }
}

/// Bytes that an answer may take while it is built; returned when dropped.
#[derive(Debug)]
pub struct Reservation {
    granted: Granted,
    own: Own,
}

impl Reservation {
    /// The number of bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.granted.bytes
    }

    /// Returns the bytes above `bytes`.
    pub fn shrink_to(&mut self, bytes: usize) {
        let less = self.granted.bytes.saturating_sub(bytes);
        self.granted.bytes -= less;
        self.own.bytes -= less;
        self.own.share.reserved.fetch_sub(less, Ordering::Relaxed);
        self.own.share.freed.notify_one();
        self.granted.budget.release(less);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1024;

    fn budget() -> Arc<Budget> {
        // A sixteenth is less than the least part of a connection, which is 1 MiB then.
        Budget::new(4096 * KIB, Duration::from_millis(50))
    }

    #[test]
    fn what_is_taken_comes_back() {
        let budget = budget();
        let share = Share::new(&budget);
        let mut reserved = share.try_reserve(600 * KIB).unwrap();
        assert_eq!(budget.used(), 600 * KIB);
        assert!(
            share.try_reserve(600 * KIB).is_none(),
            "more than a connection may have"
        );
        reserved.shrink_to(100 * KIB);
        assert_eq!((budget.used(), reserved.bytes()), (100 * KIB, 100 * KIB));
        let more = share.try_reserve(600 * KIB).unwrap();
        share.hold(50 * KIB);
        assert_eq!(budget.used(), 750 * KIB);
        drop((reserved, more));
        share.release(50 * KIB);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn an_answer_larger_than_a_part_is_taken_alone() {
        let budget = budget();
        let share = Share::new(&budget);
        drop(share.try_reserve(2048 * KIB).unwrap());
        share.set_unread(512 * KIB);
        assert!(share.try_reserve(2048 * KIB).is_none());
        assert!(share.try_reserve(512 * KIB).is_some());
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn who_waits_is_served_in_order_and_not_passed() {
        let budget = Budget::new(1000 * KIB, Duration::from_secs(60));
        let [first, second, third] = [(); 3].map(|()| Share::new(&budget));
        let held = first.try_reserve(900 * KIB).unwrap();
        let large = tokio::spawn({
            let second = Arc::clone(&second);
            async move { second.reserve(500 * KIB).await }
        });
        while budget.waiting() == 0 {
            tokio::task::yield_now().await;
        }
        assert!(
            third.try_reserve(50 * KIB).is_none(),
            "there would be room, and one waits"
        );
        let small = tokio::spawn(async move { third.reserve(50 * KIB).await });
        while budget.waiting() < 2 {
            tokio::task::yield_now().await;
        }
        drop(held);
        let both = (large.await.unwrap().unwrap(), small.await.unwrap().unwrap());
        assert_eq!((budget.used(), budget.waiting()), (550 * KIB, 0));
        drop(both);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn waiting_ends_and_leaves_no_trace() {
        let budget = budget();
        let holders: Vec<_> = (0..4).map(|_| Share::new(&budget)).collect();
        let held: Vec<_> = holders
            .iter()
            .map(|share| share.try_reserve(1024 * KIB).unwrap())
            .collect();
        let share = Share::new(&budget);
        assert_eq!(share.reserve(KIB).await.unwrap_err(), Exhausted);
        assert_eq!((budget.waiting(), budget.used()), (0, 4096 * KIB));
        // A waiter that is dropped while it waits.
        drop(timeout(Duration::from_millis(5), share.reserve(KIB)).await);
        drop(held);
        assert_eq!((budget.waiting(), budget.used()), (0, 0));
        assert!(share.try_reserve(1024 * KIB).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_waits_for_its_own_client_without_end() {
        let budget = budget();
        let share = Share::new(&budget);
        share.set_unread(1024 * KIB);
        let waiting = tokio::spawn({
            let share = Arc::clone(&share);
            async move { share.reserve(100 * KIB).await }
        });
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(!waiting.is_finished(), "longer than it would wait for others");
        share.set_unread(0);
        assert_eq!(waiting.await.unwrap().unwrap().bytes(), 100 * KIB);
    }
}
