//! The sequence numbers of one client's writes that the server acknowledged, and when.

use std::time::{Duration, Instant};

/// Acknowledgements this close together share one time, the later one: a judge who asks what was acknowledged before an instant
/// then asks for a little less.
const SHARED_WITHIN: Duration = Duration::from_millis(20);

/// `from..until`, acknowledged not later than `at`.
#[derive(Debug, Clone, Copy)]
struct Span {
    from: i32,
    until: i32,
    begun: Instant,
    at: Instant,
}

/// Acknowledged sequence numbers, ascending, in a few words for each stretch without a gap.
#[derive(Debug, Clone, Default)]
pub(crate) struct Acknowledged(Vec<Span>);

impl Acknowledged {
    /// Adds a number above all that there are.
    pub(crate) fn push(&mut self, seq: i32, at: Instant) {
        if let Some(last) = self.0.last_mut()
            && last.until == seq
            && at.saturating_duration_since(last.begun) < SHARED_WITHIN
        {
            last.until = seq + 1;
            last.at = at;
            return;
        }
        self.0.push(Span {
            from: seq,
            until: seq + 1,
            begun: at,
            at,
        });
    }

    /// Each with its time, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (i32, Instant)> {
        self.0
            .iter()
            .flat_map(|span| (span.from..span.until).map(|seq| (seq, span.at)))
    }

    /// When it was acknowledged; `None`: it was not.
    pub(crate) fn time_of(&self, seq: i32) -> Option<Instant> {
        let after = self.0.partition_point(|span| span.from <= seq);
        let span = self.0.get(after.checked_sub(1)?)?;
        (seq < span.until).then_some(span.at)
    }

    /// When the last one was acknowledged.
    pub(crate) fn last(&self) -> Option<Instant> {
        self.0.last().map(|span| span.at)
    }

    pub(crate) fn len(&self) -> i64 {
        self.0.iter().map(|span| i64::from(span.until - span.from)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_kept_and_found() {
        let start = crate::clock::now();
        let mut acknowledged = Acknowledged::default();
        for (seq, after) in [(0, 0), (1, 5), (2, 30), (5, 31), (6, 31)] {
            acknowledged.push(seq, start + Duration::from_millis(after));
        }
        let seqs: Vec<i32> = acknowledged.iter().map(|(seq, _)| seq).collect();
        assert_eq!(seqs, [0, 1, 2, 5, 6]);
        assert_eq!(acknowledged.len(), 5);
        let holds: Vec<i32> = (-1..8).filter(|seq| acknowledged.time_of(*seq).is_some()).collect();
        assert_eq!(holds, seqs);
        // The first two share the later time.
        assert_eq!(
            acknowledged.iter().next().map(|(_, at)| at),
            Some(start + Duration::from_millis(5))
        );
    }
}
