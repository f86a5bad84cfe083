//! What a load measured: for each second and each range of keys, what was done, what was refused, and how long answers took.

use std::time::Duration;

/// Longest load whose seconds are shown one by one; what comes later counts for the last one. Source: 8 KiB a second at ten ranges.
pub(super) const SECONDS_MAX: usize = 3600;

/// Buckets for each doubling of the latency: an error below a sixteenth.
const PER_DOUBLING: u32 = 8;

/// Buckets of a histogram: the last one holds all from 67 s on.
const BUCKETS: usize = 27 * 8;

/// How an operation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Done; so many entities were written or read.
    Done(u64),
    /// The server is busy: 503, or OVERLOADED of CQL.
    Busy,
    /// The server gave up on time.
    TimedOut,
    /// Anything else, in the server's words.
    Failed(String),
}

/// Latencies of one second and range. Buckets grow with the latency.
#[derive(Clone, Debug, Default)]
pub(super) struct Latencies(Vec<u32>);

impl Latencies {
    /// Counts one.
    pub(super) fn add(&mut self, latency: Duration) {
        if self.0.is_empty() {
            self.0 = vec![0; BUCKETS];
        }
        let bucket = bucket(latency).min(BUCKETS - 1);
        if let Some(count) = self.0.get_mut(bucket) {
            *count = count.saturating_add(1);
        }
    }

    /// Counts those of another.
    pub(super) fn merge(&mut self, other: &Self) {
        if self.0.is_empty() {
            self.0.clone_from(&other.0);
            return;
        }
        for (count, more) in self.0.iter_mut().zip(&other.0) {
            *count = count.saturating_add(*more);
        }
    }

    /// The latency that this part of all, in thousandths, does not exceed. `None`: none was measured.
    #[must_use]
    pub(super) fn at(&self, thousandths: u64) -> Option<Duration> {
        let total: u64 = self.0.iter().map(|count| u64::from(*count)).sum();
        let rank = (total * thousandths).div_ceil(1000).max(1);
        let mut seen = 0;
        self.0
            .iter()
            .position(|count| {
                seen += u64::from(*count);
                seen >= rank && total > 0
            })
            .map(upper)
    }
}

fn bucket(latency: Duration) -> usize {
    let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX).max(1);
    let doubling = micros.ilog2();
    let within = match doubling {
        0..=2 => (micros << (3 - doubling)) & 7,
        _ => (micros >> (doubling - 3)) & 7,
    };
    usize::try_from(u64::from(doubling * PER_DOUBLING) + within).unwrap_or(usize::MAX)
}

/// The highest latency of a bucket.
fn upper(bucket: usize) -> Duration {
    let bucket = u32::try_from(bucket).unwrap_or(u32::MAX);
    let (doubling, within) = (bucket / PER_DOUBLING, bucket % PER_DOUBLING);
    Duration::from_nanos((1000u64 << doubling) / 8 * u64::from(9 + within))
}

/// One second of one range.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    /// Operations that were done.
    pub(super) operations: u64,
    /// Entities of these.
    pub(super) entities: u64,
    pub(super) busy: u64,
    pub(super) timed_out: u64,
    pub(super) failed: u64,
    /// Of operations that were done.
    pub(super) latencies: Latencies,
}

impl Cell {
    fn add(&mut self, outcome: &Outcome, latency: Duration) {
        match outcome {
            Outcome::Done(entities) => {
                self.operations += 1;
                self.entities += entities;
                self.latencies.add(latency);
            }
            Outcome::Busy => self.busy += 1,
            Outcome::TimedOut => self.timed_out += 1,
            Outcome::Failed(_) => self.failed += 1,
        }
    }

    /// Counts those of another.
    pub(super) fn merge(&mut self, other: &Self) {
        self.operations += other.operations;
        self.entities += other.entities;
        self.busy += other.busy;
        self.timed_out += other.timed_out;
        self.failed += other.failed;
        self.latencies.merge(&other.latencies);
    }

    /// What was refused: busy and timed out.
    #[must_use]
    pub(super) fn refused(&self) -> u64 {
        self.busy + self.timed_out
    }
}

/// What one connection measured in one second, before it is added to the tally.
#[derive(Clone, Debug)]
pub(super) struct Second {
    number: usize,
    cells: Vec<Cell>,
    failure: Option<String>,
}

impl Second {
    /// The first one, of so many ranges.
    #[must_use]
    pub(super) fn new(ranges: usize) -> Self {
        Self {
            number: 0,
            cells: vec![Cell::default(); ranges],
            failure: None,
        }
    }

    /// Whether a time of the load lies in another second, so that this one has to go to the tally.
    #[must_use]
    pub(super) fn is_over(&self, at: Duration) -> bool {
        self.number != number(at)
    }

    /// Counts an operation that ended at this time of the load.
    pub(super) fn add(&mut self, at: Duration, range: usize, outcome: &Outcome, latency: Duration) {
        self.number = number(at);
        if let (Outcome::Failed(text), None) = (outcome, &self.failure) {
            self.failure = Some(text.clone());
        }
        if let Some(cell) = self.cells.get_mut(range) {
            cell.add(outcome, latency);
        }
    }
}

fn number(at: Duration) -> usize {
    usize::try_from(at.as_secs()).unwrap_or(usize::MAX).min(SECONDS_MAX - 1)
}

/// What was measured: seconds × ranges.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    ranges: usize,
    seconds: Vec<Vec<Cell>>,
    /// The first failure, in the server's words.
    pub(super) failure: Option<String>,
}

impl Tally {
    /// Nothing yet.
    #[must_use]
    pub(super) const fn new(ranges: usize) -> Self {
        Self {
            ranges,
            seconds: Vec::new(),
            failure: None,
        }
    }

    /// Takes what a connection counted, and leaves that empty.
    pub(super) fn take(&mut self, second: &mut Second) {
        if self.failure.is_none() {
            self.failure = second.failure.take();
        }
        if self.seconds.len() <= second.number {
            self.seconds
                .resize(second.number + 1, vec![Cell::default(); self.ranges]);
        }
        for (into, from) in self
            .seconds
            .get_mut(second.number)
            .into_iter()
            .flatten()
            .zip(&mut second.cells)
        {
            into.merge(from);
            *from = Cell::default();
        }
    }

    /// Seconds, each with its ranges.
    #[must_use]
    pub(super) fn seconds(&self) -> &[Vec<Cell>] {
        &self.seconds
    }

    /// The sum over all ranges of a second.
    #[must_use]
    pub(super) fn second(&self, number: usize) -> Cell {
        sum(self.seconds.get(number).into_iter().flatten())
    }

    /// The sum over all seconds of a range.
    #[must_use]
    pub(super) fn range(&self, number: usize) -> Cell {
        sum(self.seconds.iter().filter_map(|second| second.get(number)))
    }

    /// The sum of all.
    #[must_use]
    pub(super) fn total(&self) -> Cell {
        sum(self.seconds.iter().flatten())
    }
}

fn sum<'a>(cells: impl Iterator<Item = &'a Cell>) -> Cell {
    let mut total = Cell::default();
    for cell in cells {
        total.merge(cell);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_an_eighth() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.at(500), None);
        for micros in 1..=10_000 {
            latencies.add(Duration::from_micros(micros));
        }
        for (thousandths, micros) in [(500, 5000.0), (990, 9900.0), (1000, 10_000.0)] {
            let found = latencies.at(thousandths).unwrap().as_secs_f64() * 1e6;
            assert!(
                found >= micros * 0.999 && found <= micros * 1.13,
                "{thousandths}: {found}"
            );
        }
        latencies.add(Duration::from_secs(1_000_000));
        assert!(latencies.at(1000).unwrap() > Duration::from_secs(60));
    }

    #[test]
    fn tallies_add_up_over_seconds_and_ranges() {
        let (mut all, mut one) = (Tally::new(2), Second::new(2));
        let at = Duration::from_secs;
        one.add(at(0), 0, &Outcome::Done(100), Duration::from_millis(1));
        assert!(one.is_over(at(2)) && !one.is_over(Duration::from_millis(999)));
        all.take(&mut one);
        one.add(at(2), 1, &Outcome::Busy, Duration::ZERO);
        one.add(at(2), 1, &Outcome::Failed("no".to_owned()), Duration::ZERO);
        all.take(&mut one);
        one.add(at(1_000_000), 1, &Outcome::TimedOut, Duration::ZERO);
        all.take(&mut one);
        all.take(&mut one);
        assert_eq!(all.seconds().len(), SECONDS_MAX);
        assert_eq!(
            (all.range(0).entities, all.range(0).operations, all.range(1).refused()),
            (100, 1, 2)
        );
        assert_eq!(
            (all.second(2).busy, all.second(2).failed, all.total().timed_out),
            (1, 1, 1)
        );
        assert_eq!(all.failure.as_deref(), Some("no"));
    }
}
