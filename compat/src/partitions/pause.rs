//! How long nobody's write was acknowledged.
//!
//! A pause counts from the moment at which its stretch of time begins, not from the last acknowledgement before: what had stood still
//! already when a change was sent is none of the change's, and one long pause is not told twice, of a change and of the time before.

use std::fmt;
use std::time::{Duration, Instant};

/// What is looked at behind a change: requests that it sent elsewhere come back then.
const BEHIND: Duration = Duration::from_millis(20);

/// When a write was sent and acknowledged.
pub(super) type Acknowledged = (Instant, Instant);

/// Pauses by change.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    changes: Vec<Duration>,
    controls: Vec<Duration>,
    longest_writes: Vec<Duration>,
    /// How long the changes took, from asking to the answer.
    took: Vec<Duration>,
}

/// The longest time without an acknowledgement that touches a stretch of time, as far as it lies behind the stretch's beginning.
fn longest_gap(acknowledged: &[Acknowledged], from: Instant, to: Instant) -> Option<Duration> {
    let mut times: Vec<Instant> = acknowledged.iter().map(|(_, at)| *at).collect();
    times.sort_unstable();
    let to = to + BEHIND;
    times
        .windows(2)
        .filter_map(|pair| match pair {
            [a, b] if *b >= from && *a <= to => Some(*b - (*a).max(from)),
            _ => None,
        })
        .max()
}

impl Pauses {
    pub(super) fn change(&mut self, acknowledged: &[Acknowledged], from: Instant, to: Instant) {
        self.changes.extend(longest_gap(acknowledged, from, to));
    }

    pub(super) fn control(&mut self, acknowledged: &[Acknowledged], from: Instant, to: Instant) {
        self.controls.extend(longest_gap(acknowledged, from, to));
    }

    /// The slowest of the writes that were in flight meanwhile.
    pub(super) fn longest_write(&mut self, acknowledged: &[Acknowledged], from: Instant, to: Instant) {
        let over = acknowledged.iter().filter(|(sent, at)| *at >= from && *sent <= to);
        self.longest_writes.extend(over.map(|(sent, at)| *at - *sent).max());
    }

    pub(super) fn took(&mut self, length: Duration) {
        self.took.push(length);
    }

    pub(super) fn p99(&self) -> Duration {
        quantile(&self.changes, 99)
    }

    /// Of the changes, and of the stretches without one.
    pub(super) fn p50(&self) -> (Duration, Duration) {
        (quantile(&self.changes, 50), quantile(&self.controls, 50))
    }
}

/// The least value that so many percent do not exceed.
fn quantile(values: &[Duration], percent: usize) -> Duration {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

impl fmt::Display for Pauses {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |values: &[Duration]| {
            [50, 99, 100]
                .map(|percent| format!("{:.1}", quantile(values, percent).as_secs_f64() * 1000.0))
                .join(", ")
        };
        write!(
            out,
            "write pause p50, p99, max: {} ms over {} changes; without a change {} ms; slowest write in flight {} ms; the changes took {} ms",
            millis(&self.changes),
            self.changes.len(),
            millis(&self.controls),
            millis(&self.longest_writes),
            millis(&self.took)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values() {
        let values: Vec<Duration> = (1..=200).rev().map(Duration::from_millis).collect();
        assert_eq!(quantile(&values, 99), Duration::from_millis(198));
        assert_eq!(quantile(&values, 100), Duration::from_millis(200));
        assert_eq!(quantile(&[], 50), Duration::ZERO);
    }

    #[test]
    fn a_gap_counts_where_it_touches() {
        let begun = crate::clock::now();
        let at = |millis| begun + Duration::from_millis(millis);
        let acknowledged: Vec<Acknowledged> = [0, 10, 20, 200, 210, 900].map(|millis| (begun, at(millis))).to_vec();
        let millis = Duration::from_millis;
        assert_eq!(longest_gap(&acknowledged, at(5), at(15)), Some(millis(180)));
        assert_eq!(longest_gap(&acknowledged, at(100), at(101)), Some(millis(100)));
        assert_eq!(longest_gap(&acknowledged, at(901), at(990)), None);
    }
}
