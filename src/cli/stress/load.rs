//! The load: so many connections at once, each with its thread, that take operations by number until the time or the number is reached.
//!
//! With a rate, the operation of number n is due at n / rate, and its latency counts from then: a slow answer also delays those that
//! wait for its connection, and a report must tell that.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::keys::{Key, Keys, Ranges, mixed};
use super::tally::{Outcome, Second, Tally};
use crate::cli::Failure;
use helenus_base::clock::Clock;

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Writes entities that are not there.
    Insert,
    /// Writes entities, whether they are there or not.
    Upsert,
    /// Reads one entity by its key.
    Read,
    /// Reads the entities of a partition key.
    Query,
}

/// What the operations of a load do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mix {
    /// All the same.
    All(Kind),
    /// Half of them upserts, half reads.
    Mixed,
}

impl Mix {
    /// Each mix and its name.
    pub(super) const NAMES: &[(&str, Self)] = &[
        ("upsert", Self::All(Kind::Upsert)),
        ("insert", Self::All(Kind::Insert)),
        ("read", Self::All(Kind::Read)),
        ("query", Self::All(Kind::Query)),
        ("mixed", Self::Mixed),
    ];
}

/// What to do, and how fast.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) keys: Keys,
    pub(super) ranges: Ranges,
    pub(super) mix: Mix,
    pub(super) connections: usize,
    /// Longest time; `None`: until all operations are done.
    pub(super) time: Option<Duration>,
    /// Most operations; `None`: until the time is over.
    pub(super) operations: Option<u64>,
    /// Operations a second; `None`: as fast as they are answered.
    pub(super) rate: Option<u64>,
    /// Entities of a write.
    pub(super) batch: u64,
    /// Reads choose among the entities below this number.
    pub(super) written: u64,
    pub(super) seed: u64,
}

/// An operation.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) kind: Kind,
    /// One, or those of a write together, all with one partition key.
    pub(super) keys: Vec<Key>,
}

/// A connection to a server.
pub(super) trait Client: Send {
    /// Does an operation.
    ///
    /// # Errors
    /// The connection broke: it has to be opened again.
    fn perform(&mut self, operation: &Operation) -> Result<Outcome, Failure>;
}

/// Opens connections.
pub(super) trait Server: Sync {
    /// Opens one.
    ///
    /// # Errors
    /// The server cannot be reached or refuses.
    fn open(&self) -> Result<Box<dyn Client>, Failure>;
}

/// A load that runs.
#[derive(Debug)]
pub(super) struct Load {
    plan: Plan,
    clock: Clock,
    started: Duration,
    next: AtomicU64,
    /// Entities that were done, and operations that were refused, for the line of progress.
    pub(super) done: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) is_stopped: AtomicBool,
    tally: Mutex<Tally>,
}

impl Load {
    /// A load that starts now.
    #[must_use]
    pub(super) fn new(plan: Plan, clock: Clock) -> Self {
        Self {
            tally: Mutex::new(Tally::new(plan.ranges.len())),
            started: clock.monotonic(),
            next: AtomicU64::new(0),
            done: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            is_stopped: AtomicBool::new(false),
            plan,
            clock,
        }
    }

    /// The time since its start.
    #[must_use]
    pub(super) fn elapsed(&self) -> Duration {
        self.clock.monotonic().saturating_sub(self.started)
    }

    /// What was measured so far.
    #[must_use]
    pub(super) fn measured(&self) -> Tally {
        self.tally
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
    }

    /// Works on one connection until the load ends.
    ///
    /// # Errors
    /// No connection can be opened at all.
    pub(super) fn work(&self, server: &dyn Server) -> Result<(), Failure> {
        let mut client = server.open()?;
        let mut second = Second::new(self.plan.ranges.len());
        while let Some((operation, due)) = self.take() {
            let begin = due.unwrap_or_else(|| self.elapsed());
            let outcome = match client.perform(&operation) {
                Ok(outcome) => outcome,
                Err(error) => {
                    // The server may be back soon: a report tells how long it was away.
                    if let Ok(again) = server.open() {
                        client = again;
                    } else {
                        std::thread::sleep(Duration::from_millis(100));
                    }
                    Outcome::Failed(error.to_string())
                }
            };
            let end = self.elapsed();
            self.count(&mut second, &operation, &outcome, begin, end);
        }
        self.give(&mut second);
        Ok(())
    }

    fn count(&self, second: &mut Second, operation: &Operation, outcome: &Outcome, begin: Duration, end: Duration) {
        match outcome {
            Outcome::Done(entities) => self.done.fetch_add(*entities, Ordering::Relaxed),
            _ => self.refused.fetch_add(1, Ordering::Relaxed),
        };
        if second.is_over(end) {
            self.give(second);
        }
        let range = operation
            .keys
            .first()
            .map_or(0, |key| self.plan.ranges.of(&key.partition));
        second.add(end, range, outcome, end.saturating_sub(begin));
    }

    fn give(&self, second: &mut Second) {
        self.tally
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .take(second);
    }

    /// The next operation, and when it was due, once that is reached. `None`: the load ends.
    fn take(&self) -> Option<(Operation, Option<Duration>)> {
        let is_over = |at: Duration| self.plan.time.is_some_and(|time| at >= time);
        if self.is_stopped.load(Ordering::Relaxed) || is_over(self.elapsed()) {
            return None;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if self.plan.operations.is_some_and(|most| number >= most) {
            return None;
        }
        let due = self.plan.rate.map(|rate| due(number, rate));
        if let Some(due) = due {
            if is_over(due) {
                return None;
            }
            while let Some(left) = due.checked_sub(self.elapsed()).filter(|left| !left.is_zero()) {
                if self.is_stopped.load(Ordering::Relaxed) {
                    return None;
                }
                std::thread::sleep(left.min(Duration::from_millis(200)));
            }
        }
        Some((self.plan.operation(number), due))
    }
}

/// When the operation of a number is due.
fn due(number: u64, rate: u64) -> Duration {
    let rate = rate.max(1);
    let rest = number % rate * 1_000_000_000 / rate;
    Duration::from_secs(number / rate) + Duration::from_nanos(rest)
}

impl Plan {
    /// The operation of a number.
    #[must_use]
    fn operation(&self, number: u64) -> Operation {
        let kind = match self.mix {
            Mix::All(kind) => kind,
            Mix::Mixed if number.is_multiple_of(2) => Kind::Upsert,
            Mix::Mixed => Kind::Read,
        };
        let keys = match kind {
            Kind::Insert | Kind::Upsert => {
                let write = if self.mix == Mix::Mixed { number / 2 } else { number };
                let first = write * self.batch;
                (first..first + self.batch).map(|entity| self.keys.of(entity)).collect()
            }
            Kind::Read | Kind::Query => {
                let written = match self.mix {
                    Mix::Mixed => (number / 2).max(1) * self.batch,
                    Mix::All(_) => self.written.max(1),
                };
                vec![self.keys.of(mixed(self.seed ^ 4, number) % written)]
            }
        };
        Operation { kind, keys }
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::Pattern;
    use super::*;

    fn plan() -> Plan {
        Plan {
            keys: Keys {
                pattern: Pattern::Random,
                first: 0,
                seed: 1,
                rows_per_key: 10,
                hot_keys: 1,
                hot_percent: 0,
            },
            ranges: Ranges::equal(4),
            mix: Mix::All(Kind::Upsert),
            connections: 3,
            time: None,
            operations: Some(50),
            rate: None,
            batch: 10,
            written: 500,
            seed: 1,
        }
    }

    /// A server that is busy for each tenth operation and breaks one connection.
    #[derive(Default)]
    struct Fake {
        asked: AtomicU64,
    }

    impl Server for Fake {
        fn open(&self) -> Result<Box<dyn Client>, Failure> {
            Ok(Box::new(FakeClient(self.asked.fetch_add(1, Ordering::Relaxed))))
        }
    }

    struct FakeClient(u64);

    impl Client for FakeClient {
        fn perform(&mut self, operation: &Operation) -> Result<Outcome, Failure> {
            self.0 += 1;
            match self.0 {
                5 => Err("broken".into()),
                7 => Ok(Outcome::Busy),
                _ => Ok(Outcome::Done(u64::try_from(operation.keys.len())?)),
            }
        }
    }

    #[test]
    fn a_load_does_each_operation_once() {
        let load = Load::new(plan(), Clock::system());
        let server = Fake::default();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| load.work(&server).unwrap());
            }
        });
        let total = load.measured().total();
        assert_eq!(total.operations + total.busy + total.failed, 50);
        assert_eq!(total.entities, total.operations * 10);
        assert_eq!(load.done.load(Ordering::Relaxed), total.entities);
    }

    #[test]
    fn writes_together_share_a_partition_key_and_reads_find_what_was_written() {
        let plan = plan();
        let operation = plan.operation(7);
        assert_eq!(operation.keys.len(), 10);
        assert!(
            operation
                .keys
                .iter()
                .all(|key| key.partition == operation.keys[0].partition)
        );
        let reading = Plan {
            mix: Mix::All(Kind::Read),
            ..plan.clone()
        };
        let written: Vec<Key> = (0..500).map(|number| plan.keys.of(number)).collect();
        for number in 0..100 {
            assert!(written.contains(&reading.operation(number).keys[0]));
        }
        let mixed = Plan {
            mix: Mix::Mixed,
            ..plan
        };
        let mut written = Vec::new();
        for number in 0..100 {
            let operation = mixed.operation(number);
            match operation.kind {
                Kind::Upsert => written.extend(operation.keys),
                _ => assert!(written.contains(&operation.keys[0]), "{number}"),
            }
        }
    }

    #[test]
    fn operations_are_due_by_the_rate() {
        assert_eq!(due(0, 1000), Duration::ZERO);
        assert_eq!(due(1500, 1000), Duration::from_millis(1500));
        assert_eq!(due(1, 3), Duration::from_nanos(333_333_333));
    }
}
