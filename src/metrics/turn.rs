//! When requests begin and end, for two readings of the clock a turn rather than two a request.
//!
//! A connection's task works on all requests that have come, one after the other, and then writes all answers at once. Its client
//! sees each of them answered at that moment; so the task enters a [`MeasuredPoll`], requests that are answered in it are noted, and
//! [`MeasuredPoll::settle`], called just before the write, counts them all with that time. Requests that are answered outside a turn read the
//! clock themselves.
//!
//! ```text
//! MeasuredPoll::enter ── begin ─ begin ─ note ─ begin ─ note ─ … ── settle ── …        one thread, without a lock
//!     clock                                                  clock
//! ```
//! What is noted stands in the thread's own memory: runs of requests that began at once and count for the same [`Subject`], which
//! most requests of a turn do. Others who would rather do something once a turn than once a request are told when it settles
//! ([`keep_back`]).

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use super::statements::Subject;

/// Requests that began together and count for the same.
#[derive(Debug)]
struct Run {
    subject: Arc<Subject>,
    began: Duration,
    count: u64,
}

/// A recorder that runs once a turn.
pub trait KeptBack: Send + Sync {
    /// Does what was kept back on this thread; the turn's requests have ended now.
    fn settle(&self, now: Duration);
}

struct Thread {
    /// When what is begun now began; `None` outside a turn.
    now: Option<Duration>,
    /// Answered, and not counted yet.
    runs: Vec<Run>,
    /// Who is told when the turn settles.
    kept_back: Option<Arc<dyn KeptBack>>,
}

/// Runs that are noted before they are counted; a turn of more different statements is counted on its way.
const RUNS_MAX: usize = 64;

thread_local! {
    static THREAD: RefCell<Thread> = const { RefCell::new(Thread { now: None, runs: Vec::new(), kept_back: None }) };
}

/// Counts what was noted, as having ended now.
fn settle(thread: &mut Thread, now: Duration) {
    for run in thread.runs.drain(..) {
        run.subject.add(now.saturating_sub(run.began), run.count);
    }
}

/// A turn of a connection's task on this thread. Ends with the value.
#[derive(Debug)]
pub struct MeasuredPoll<F: Fn() -> Duration> {
    clock: F,
}

impl<F: Fn() -> Duration> MeasuredPoll<F> {
    /// Enters a turn. `clock` gives monotonic time.
    pub fn enter(clock: F) -> Self {
        let now = clock();
        THREAD.with_borrow_mut(|thread| thread.now = Some(now));
        Self { clock }
    }

    /// Counts the requests that were answered since the last time; what begins from here on begins now.
    pub fn settle(&self) {
        let due = THREAD.with_borrow_mut(|thread| {
            if thread.runs.is_empty() && thread.kept_back.is_none() {
                return None;
            }
            let now = (self.clock)();
            settle(thread, now);
            thread.now = Some(now);
            Some((thread.kept_back.take()?, now))
        });
        if let Some((kept_back, now)) = due {
            kept_back.settle(now);
        }
    }
}

impl<F: Fn() -> Duration> Drop for MeasuredPoll<F> {
    fn drop(&mut self) {
        self.settle();
        THREAD.with_borrow_mut(|thread| thread.now = None);
    }
}

/// When a request begins that begins here.
pub fn begin(clock: impl FnOnce() -> Duration) -> Duration {
    THREAD.with_borrow(|thread| thread.now).unwrap_or_else(clock)
}

/// Registers a recorder for the end of this turn; false: there is no turn, or another is registered, and nothing may be kept back.
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
            settle(thread, clock().max(now));
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
        turn.settle();
        turn.settle();
        assert_eq!(readings.get(), 2);
        let all = statements.of(StatementKind::Select).latency.load();
        assert_eq!((all.count(), all.sum()), (100, 50_000));
        // What begins now began at the last write; what is left over is counted when the turn ends.
        let began = begin(clock);
        note(&subject, began, clock);
        time.set(1501);
        drop(turn);
        let all = statements.of(StatementKind::Select).latency.load();
        assert_eq!((all.count(), all.sum()), (101, 50_001));
        // Outside a turn the clock is read.
        let began = begin(clock);
        time.set(1601);
        note(&subject, began, clock);
        assert_eq!(statements.of(StatementKind::Select).latency.load().max(), 500);
        assert_eq!(statements.of(StatementKind::Select).latency.load().sum(), 50_101);
    }

    #[derive(Default)]
    struct Times(std::sync::Mutex<Vec<u64>>);

    impl KeptBack for Times {
        fn settle(&self, now: Duration) {
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
        turn.settle();
        turn.settle();
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
