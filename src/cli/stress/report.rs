//! What a load measured, as text and JSON: throughput, refusals and latency, by second and by range of keys.

use std::fmt::Write as _;
use std::time::Duration;

use super::keys::Pattern;
use super::load::Plan;
use super::tally::{Cell, Tally};

/// From this part of all entities on, in percent, one range counts as the busy one.
const BUSY_PERCENT: u64 = 75;

/// A range of keys.
#[derive(Clone, Debug)]
pub(super) struct RangeReport {
    /// Its first key; empty for the first range.
    pub(super) begin: String,
    pub(super) total: Cell,
}

/// What a load measured.
#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) pattern: Pattern,
    pub(super) connections: usize,
    pub(super) elapsed: Duration,
    pub(super) total: Cell,
    pub(super) ranges: Vec<RangeReport>,
    /// Whole seconds, each with its ranges: in one that was cut short, a rate would seem to fall.
    pub(super) seconds: Vec<Vec<Cell>>,
    /// The sum of each of these.
    pub(super) sums: Vec<Cell>,
    /// The first failure, in the server's words.
    pub(super) failure: Option<String>,
}

impl Report {
    /// Of a load that took this long.
    #[must_use]
    pub(super) fn new(plan: &Plan, tally: &Tally, elapsed: Duration) -> Self {
        let range = |number| RangeReport {
            begin: plan.ranges.begin(number).to_owned(),
            total: tally.range(number),
        };
        let whole = usize::try_from(elapsed.as_secs()).unwrap_or(usize::MAX).max(1);
        let seconds: Vec<Vec<Cell>> = tally.seconds().iter().take(whole).cloned().collect();
        Self {
            pattern: plan.keys.pattern,
            connections: plan.connections,
            elapsed,
            total: tally.total(),
            ranges: (0..plan.ranges.len()).map(range).collect(),
            sums: (0..seconds.len()).map(|number| tally.second(number)).collect(),
            seconds,
            failure: tally.failure.clone(),
        }
    }

    /// A number by second of the whole load.
    #[must_use]
    pub(super) fn per_second(&self, number: u64) -> u64 {
        let millis = u64::try_from(self.elapsed.as_millis()).unwrap_or(u64::MAX).max(1);
        number.saturating_mul(1000) / millis
    }

    /// How many ranges took a noteworthy part: at least a quarter of an even one.
    #[must_use]
    pub(super) fn busy_ranges(&self) -> usize {
        let count = u64::try_from(self.ranges.len()).unwrap_or(u64::MAX);
        let is_busy = |range: &&RangeReport| {
            self.total.entities > 0
                && range.total.entities.saturating_mul(count).saturating_mul(4) >= self.total.entities
        };
        self.ranges.iter().filter(is_busy).count()
    }

    /// What the figures say about the keys.
    #[must_use]
    pub(super) fn advice(&self) -> String {
        let most = self
            .ranges
            .iter()
            .enumerate()
            .max_by_key(|(_, range)| range.total.entities);
        let Some((number, range)) = most.filter(|_| self.total.entities > 0 && self.ranges.len() > 1) else {
            return "nothing was done in more than one range.".to_owned();
        };
        let percent = range.total.entities * 100 / self.total.entities;
        if percent < BUSY_PERCENT {
            return format!("{} of {} ranges are busy.", self.busy_ranges(), self.ranges.len());
        }
        let why = match self.pattern {
            Pattern::Append => {
                "keys only grow (append-only), so that all new ones lie in one range, however often it is split; begin keys with a hash"
            }
            Pattern::Prepend => {
                "keys only shrink (prepend-only), so that all new ones lie in one range, however often it is split; begin keys with a hash"
            }
            Pattern::Hot => {
                "a few keys are hot, and a partition key is served as a whole: spread their entities over more keys"
            }
            Pattern::Random => "keys are spread evenly over all texts, and the ranges are not",
        };
        format!(
            "range {} of {} took {percent} % of the entities: {why}.",
            number + 1,
            self.ranges.len()
        )
    }

    /// For people.
    #[must_use]
    pub(super) fn text(&self) -> String {
        let total = &self.total;
        let mut text = format!(
            "{} entities in {:.1} s: {}/s, by {} operations over {} connections\n\
             refused: {} busy, {} timed out; failed: {}\nlatency: {}\n\n",
            grouped(total.entities),
            self.elapsed.as_secs_f64(),
            grouped(self.per_second(total.entities)),
            grouped(total.operations),
            self.connections,
            grouped(total.busy),
            grouped(total.timed_out),
            grouped(total.failed),
            latencies(total)
        );
        // Writing into a text never fails.
        if let Some(failure) = &self.failure {
            let _ = writeln!(text, "first failure: {failure}\n");
        }
        let _ = writeln!(
            text,
            "{:<6} {:<18} {:>12} {:>10} {:>6} {:>9}  latency",
            "range", "from key", "entities", "a second", "part", "refused"
        );
        for (number, range) in self.ranges.iter().enumerate() {
            let entities = range.total.entities;
            let percent = (entities * 100).checked_div(total.entities).unwrap_or(0);
            let _ = writeln!(
                text,
                "{:<6} {:<18} {:>12} {:>10} {:>4} % {:>9}  {}",
                number + 1,
                if range.begin.is_empty() {
                    "(least)"
                } else {
                    &range.begin
                },
                grouped(entities),
                grouped(self.per_second(entities)),
                percent,
                grouped(range.total.refused()),
                latencies(&range.total)
            );
        }
        let _ = writeln!(text, "\n{}", self.advice());
        text
    }

    /// For programs.
    #[must_use]
    pub(super) fn json(&self) -> serde_json::Value {
        let millis = |cell: &Cell, thousandths| {
            cell.latencies
                .at(thousandths)
                .map(|latency| latency.as_secs_f64() * 1e3)
        };
        let cell = |cell: &Cell| {
            serde_json::json!({
                "operations": cell.operations, "entities": cell.entities, "busy": cell.busy, "timed_out": cell.timed_out,
                "failed": cell.failed, "p50_millis": millis(cell, 500), "p99_millis": millis(cell, 990),
                "p999_millis": millis(cell, 999),
            })
        };
        let ranges = self.ranges.iter().map(|range| {
            let mut object = cell(&range.total);
            if let Some(object) = object.as_object_mut() {
                object.insert("from".to_owned(), range.begin.clone().into());
            }
            object
        });
        serde_json::json!({
            "seconds": self.elapsed.as_secs_f64(),
            "connections": self.connections,
            "entities_per_second": self.per_second(self.total.entities),
            "operations_per_second": self.per_second(self.total.operations),
            "total": cell(&self.total),
            "busy_ranges": self.busy_ranges(),
            "ranges": ranges.collect::<Vec<_>>(),
            "by_second": self.sums.iter().map(cell).collect::<Vec<_>>(),
            "failure": self.failure,
            "advice": self.advice(),
        })
    }
}

/// `p50 0.4 ms, p99 1.2 ms, p99.9 8 ms`.
fn latencies(cell: &Cell) -> String {
    let named = [("p50", 500), ("p99", 990), ("p99.9", 999)];
    let texts = named.iter().filter_map(|(name, thousandths)| {
        cell.latencies
            .at(*thousandths)
            .map(|latency| format!("{name} {}", time(latency)))
    });
    let texts: Vec<String> = texts.collect();
    if texts.is_empty() {
        "none".to_owned()
    } else {
        texts.join(", ")
    }
}

/// A latency as people read it.
#[must_use]
pub(super) fn time(latency: Duration) -> String {
    let millis = latency.as_secs_f64() * 1e3;
    match millis {
        _ if millis < 10.0 => format!("{millis:.2} ms"),
        _ if millis < 1000.0 => format!("{millis:.0} ms"),
        _ => format!("{:.1} s", millis / 1e3),
    }
}

/// A number with commas between its thousands.
#[must_use]
pub(super) fn grouped(number: u64) -> String {
    super::super::progress::grouped(number)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::keys::{Keys, Ranges};
    use super::super::load::{Kind, Mix};
    use super::super::tally::{Outcome, Second};
    use super::*;

    /// Ten seconds of a load in which all entities went to one of four ranges, and each tenth was refused.
    pub(in super::super) fn example() -> Report {
        let plan = Plan {
            keys: Keys {
                pattern: Pattern::Append,
                first: 0,
                seed: 0,
                rows_per_key: 1,
                hot_keys: 1,
                hot_percent: 0,
            },
            ranges: Ranges::equal(4),
            mix: Mix::All(Kind::Upsert),
            connections: 2,
            time: None,
            operations: None,
            rate: None,
            batch: 1,
            written: 1,
            seed: 0,
        };
        let (mut tally, mut second) = (Tally::new(4), Second::new(4));
        for number in 0..1000 {
            let outcome = if number % 10 == 0 {
                Outcome::Busy
            } else {
                Outcome::Done(1)
            };
            let at = Duration::from_millis(number * 10);
            if second.is_over(at) {
                tally.take(&mut second);
            }
            second.add(at, 3, &outcome, Duration::from_micros(500 + number));
        }
        tally.take(&mut second);
        Report::new(&plan, &tally, Duration::from_secs(10))
    }

    #[test]
    fn text_tells_rates_refusals_and_the_busy_range() {
        let text = example().text();
        assert!(
            text.starts_with("900 entities in 10.0 s: 90/s, by 900 operations over 2 connections\n"),
            "{text}"
        );
        assert!(text.contains("refused: 100 busy, 0 timed out; failed: 0"), "{text}");
        assert!(
            text.contains("range 4 of 4 took 100 % of the entities: keys only grow (append-only)"),
            "{text}"
        );
        assert!(
            text.contains("4      c000000000000000            900         90  100 %       100  p50"),
            "{text}"
        );
    }

    #[test]
    fn json_has_the_same_figures() {
        let json = example().json();
        assert_eq!(json["entities_per_second"], 90);
        assert_eq!(json["busy_ranges"], 1);
        assert_eq!(json["ranges"][3]["busy"], 100);
        assert_eq!(json["ranges"][3]["from"], "c000000000000000");
        assert_eq!(json["by_second"].as_array().unwrap().len(), 10);
    }

    #[test]
    fn latencies_have_units() {
        let texts = [300, 12_000, 2_500_000].map(|micros| time(Duration::from_micros(micros)));
        assert_eq!(texts, ["0.30 ms", "12 ms", "2.5 s"]);
    }
}
