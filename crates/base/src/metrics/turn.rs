//! Start and end times of requests, with two readings of the clock a poll rather than two a request.
//!
//! A connection's task works on all received requests, one after the other, and then writes all answers at once. Its
//! client sees each of them answered at that moment. So the task enters a [`MeasuredPoll`], records the requests
//! answered in it, and calls [`MeasuredPoll::flush`] just before the write, which counts them all with that time.
//! Requests that are answered outside a poll read the clock themselves.
//!
//! ```text
//! MeasuredPoll::enter ── begin ─ begin ─ note ─ begin ─ note ─ … ── flush ── …        one thread, without a lock
//!     clock                                                  clock
//! ```
//! Records are kept in the thread's own memory: runs of requests that began at once and count for the same [`Subject`],
//! as most requests of a poll do. Other recorders that prefer to run once a poll rather than once a request register
//! for its end ([`keep_back`]).

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use super::statements::Subject;

/// Requests that began together and have the same subject.
#[derive(Debug)]
struct Run {
    subject: Arc<Subject>,
    began: Duration,
    count: u64,
}

/// A recorder that runs once a poll.
pub trait KeptBack: Send + Sync {
    /// Records what was kept back on this thread; the poll's requests have ended now.
    fn flush(&self, now: Duration);
}

struct Thread {
    /// The start time of requests that begin now; `None` outside a poll.
    now: Option<Duration>,
    /// Requests that are answered and not counted yet.
    runs: Vec<Run>,
    /// The recorder registered for the end of the poll.
    kept_back: Option<Arc<dyn KeptBack>>,
}

/// Most runs kept before they are counted; a poll of more different statements counts some of them earlier.
const RUNS_MAX: usize = 64;

thread_local! {
    static THREAD: RefCell<Thread> = const { RefCell::new(Thread { now: None, runs: Vec::new(), kept_back: None }) };
}

/// Counts the recorded requests, as having ended now.
fn flush(thread: &mut Thread, now: Duration) {
    for run in thread.runs.drain(..) {
        run.subject.add(now.saturating_sub(run.began), run.count);
    }
}

/// A poll of a connection's task on this thread. Ends when the value is dropped.
#[derive(Debug)]
pub struct MeasuredPoll<F: Fn() -> Duration> {
    clock: F,
}

impl<F: Fn() -> Duration> MeasuredPoll<F> {
    /// Enters a poll. `clock` gives monotonic time.
    pub fn enter(clock: F) -> Self {
        let now = clock();
        THREAD.with_borrow_mut(|thread| thread.now = Some(now));
        Self { clock }
    }

    /// Counts the requests that were answered since the last call; later requests begin now.
    pub fn flush(&self) {
        let due = THREAD.with_borrow_mut(|thread| {
            if thread.runs.is_empty() && thread.kept_back.is_none() {
                return None;
            }
            let now = (self.clock)();
            flush(thread, now);
            thread.now = Some(now);
            Some((thread.kept_back.take()?, now))
        });
        if let Some((kept_back, now)) = due {
            kept_back.flush(now);
        }
    }
}

impl<F: Fn() -> Duration> Drop for MeasuredPoll<F> {
    fn drop(&mut self) {
        self.flush();
        THREAD.with_borrow_mut(|thread| thread.now = None);
    }
}

/// The start time of a request that begins now.
pub fn begin(clock: impl FnOnce() -> Duration) -> Duration {
    THREAD.with_borrow(|thread| thread.now).unwrap_or_else(clock)
}

/// Registers a recorder for the end of this poll. On false there is no poll, or another recorder is registered: the
/// caller must record at once.
pub fn keep_back<T: KeptBack + 'static>(who: &Arc<T>) -> bool {
    THREAD.with_borrow_mut(|thread| {
        if thread.now.is_none() {
            return false;
        }
        match &thread.kept_back {
            Some(told) => std::ptr::addr_eq(Arc::as_ptr(told), Arc::as_ptr(who)),
            None => {
                thread.kept_back = Some(Arc::<T>::clone(who));
                true
            }
        }
    })
}

/// Counts a request that has been answered.
pub fn note(subject: &Arc<Subject>, began: Duration, clock: impl Fn() -> Duration) {
    THREAD.with_borrow_mut(|thread| {
        let Some(now) = thread.now else {
            subject.add(clock().saturating_sub(began), 1);
            return;
        };
        if let Some(last) = thread.runs.last_mut()
            && last.began == began
            && Arc::ptr_eq(&last.subject, subject)
        {
            last.count += 1;
            return;
        }
        if thread.runs.len() >= RUNS_MAX {
            flush(thread, clock().max(now));
        }
        thread.runs.push(Run {
            subject: Arc::clone(subject),
            began,
            count: 1,
        });
    });
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::super::statements::{StatementKind, Statements};
    use super::*;

    #[test]
    fn a_turn_reads_the_clock_twice_however_many_it_answers() {
        let statements = Arc::new(Statements::default());
        let subject = statements.subject(StatementKind::Select, Vec::new());
        let (time, readings) = (Cell::new(1000), Cell::new(0));
        let clock = || {
            readings.set(readings.get() + 1);
            Duration::from_micros(time.get())
        };
        let turn = MeasuredPoll::enter(clock);
        for _ in 0..100 {
            let began = begin(clock);
            note(&subject, began, clock);
        }
        assert_eq!(statements.of(StatementKind::Select).latency.load().count(), 0);
        time.set(1500);
        turn.flush();
        turn.flush();
        assert_eq!(readings.get(), 2);
        let all = statements.of(StatementKind::Select).latency.load();
        assert_eq!((all.count(), all.sum()), (100, 50_000));
        // A request that begins now began at the last write; the rest is counted when the poll ends.
        let began = begin(clock);
        note(&subject, began, clock);
        time.set(1501);
        drop(turn);
        let all = statements.of(StatementKind::Select).latency.load();
        assert_eq!((all.count(), all.sum()), (101, 50_001));
        // Outside a poll the clock is read.
        let began = begin(clock);
        time.set(1601);
        note(&subject, began, clock);
        assert_eq!(statements.of(StatementKind::Select).latency.load().max(), 500);
        assert_eq!(statements.of(StatementKind::Select).latency.load().sum(), 50_101);
    }

    #[derive(Default)]
    struct Times(std::sync::Mutex<Vec<u64>>);

    impl KeptBack for Times {
        fn flush(&self, now: Duration) {
            self.0.lock().unwrap().push(now.as_secs());
        }
    }

    #[test]
    fn who_keeps_back_is_told_once_a_turn() {
        let (first, second) = (Arc::new(Times::default()), Arc::new(Times::default()));
        assert!(!keep_back(&first), "there is no turn");
        let time = Cell::new(1);
        let turn = MeasuredPoll::enter(|| Duration::from_secs(time.get()));
        assert!(keep_back(&first) && keep_back(&first) && !keep_back(&second));
        time.set(2);
        turn.flush();
        turn.flush();
        assert!(keep_back(&second));
        time.set(3);
        drop(turn);
        assert_eq!(
            (first.0.lock().unwrap().as_slice(), second.0.lock().unwrap().as_slice()),
            ([2].as_slice(), [3].as_slice())
        );
    }

    #[test]
    fn many_different_statements_are_counted_on_the_way() {
        let statements = Arc::new(Statements::default());
        let clock = || Duration::from_micros(7);
        let turn = MeasuredPoll::enter(clock);
        for _ in 0..10 * RUNS_MAX {
            note(
                &statements.subject(StatementKind::Insert, Vec::new()),
                begin(clock),
                clock,
            );
        }
        assert!(statements.of(StatementKind::Insert).latency.load().count() > 8 * RUNS_MAX as u64);
        drop(turn);
        assert_eq!(
            statements.of(StatementKind::Insert).latency.load().count(),
            10 * RUNS_MAX as u64
        );
    }
}
