//! When requests begin and end, for two readings of the clock a turn rather than two a request.
//!
//! A connection's task works on all requests that have come, one after the other, and then writes all answers at once. Its client
//! sees each of them answered at that moment; so the task enters a [`Turn`], requests that are answered in it are noted, and
//! [`Turn::settle`], called just before the write, counts them all with that time. Requests that are answered outside a turn read the
//! clock themselves.
//!
//! ```text
//! Turn::enter ── begin ─ begin ─ note ─ begin ─ note ─ … ── settle ── …        one thread, without a lock
//!     clock                                                  clock
//! ```
//! What is noted stands in the thread's own memory: runs of requests that began at once and count for the same [`Subject`], which
//! most requests of a turn do.

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

#[derive(Debug)]
struct Thread {
    /// When what is begun now began; `None` outside a turn.
    now: Option<Duration>,
    /// Answered, and not counted yet.
    runs: Vec<Run>,
}

/// Runs that are noted before they are counted; a turn of more different statements is counted on its way.
const RUNS_MAX: usize = 64;

thread_local! {
    static THREAD: RefCell<Thread> = const { RefCell::new(Thread { now: None, runs: Vec::new() }) };
}

/// Counts what was noted, as having ended now.
fn settle(thread: &mut Thread, now: Duration) {
    for run in thread.runs.drain(..) {
        run.subject.add(now.saturating_sub(run.began), run.count);
    }
}

/// A turn of a connection's task on this thread. Ends with the value.
#[derive(Debug)]
pub struct Turn<F: Fn() -> Duration> {
    clock: F,
}

impl<F: Fn() -> Duration> Turn<F> {
    /// Enters a turn. `clock` gives monotonic time.
    pub fn enter(clock: F) -> Self {
        let now = clock();
        THREAD.with_borrow_mut(|thread| thread.now = Some(now));
        Self { clock }
    }

    /// Counts the requests that were answered since the last time; what begins from here on begins now.
    pub fn settle(&self) {
        THREAD.with_borrow_mut(|thread| {
            if !thread.runs.is_empty() {
                let now = (self.clock)();
                settle(thread, now);
                thread.now = Some(now);
            }
        });
    }
}

impl<F: Fn() -> Duration> Drop for Turn<F> {
    fn drop(&mut self) {
        self.settle();
        THREAD.with_borrow_mut(|thread| thread.now = None);
    }
}

/// When a request begins that begins here.
pub fn begin(clock: impl FnOnce() -> Duration) -> Duration {
    THREAD.with_borrow(|thread| thread.now).unwrap_or_else(clock)
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
        let turn = Turn::enter(clock);
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

    #[test]
    fn many_different_statements_are_counted_on_the_way() {
        let statements = Arc::new(Statements::default());
        let clock = || Duration::from_micros(7);
        let turn = Turn::enter(clock);
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
