//! Query plans: the parts of the order of keys in which a filter can hold, pure.
//!
//! ```text
//! Filter, KeyBounds ─ boxes ─→ (partition keys from .. to) × (row keys from .. to)      one for each arm of an "or"
//!                   ─ steps ─→ Step::Rows of one partition, Step::Partitions            disjoint, in the order of keys
//! ```
//! The steps contain every entity that matches, and perhaps others: the filter is tested on each. An "or" of keys is several steps, where
//! the service scans.

use std::cmp::Ordering;

use super::edm::{Edm, compare_utf16};
use super::entity::{KeyBounds, PARTITION_KEY, ROW_KEY};
use super::filter::{Comparison, Filter};
use super::operation::{Place, PlanKind};

/// Boxes of a filter at most; a filter of more scans.
const BOXES_MAX: usize = 200;

/// Texts from one up to and without another, by UTF-16 unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    /// The first.
    pub(super) from: String,
    /// The first behind; `None` means to the end.
    pub(super) to: Option<String>,
}

impl Interval {
    const ALL: Self = Self {
        from: String::new(),
        to: None,
    };

    fn one(text: &str) -> Self {
        Self {
            from: text.to_owned(),
            to: Some(after(text)),
        }
    }

    fn is_empty(&self) -> bool {
        let to = self.to.as_deref();
        to.is_some_and(|to| compare_utf16(&self.from, to).is_ge())
    }

    fn and(&self, other: &Self) -> Self {
        let to = match (&self.to, &other.to) {
            (Some(one), Some(other)) => Some(least(one, other).to_owned()),
            (one, other) => one.clone().or_else(|| other.clone()),
        };
        let from = if compare_utf16(&self.from, &other.from).is_lt() {
            &other.from
        } else {
            &self.from
        };
        Self { from: from.clone(), to }
    }

    /// The only text inside; `None` means that there may be several.
    pub(super) fn only(&self) -> Option<&str> {
        let only = self.to.as_deref()?.strip_suffix('\0')?;
        (only == self.from).then_some(only)
    }

    fn of(comparison: Comparison, text: &str) -> Vec<Self> {
        let from = |from: String| Self { from, to: None };
        let to = |to: String| Self {
            from: String::new(),
            to: Some(to),
        };
        match comparison {
            Comparison::Eq => vec![Self::one(text)],
            Comparison::Ne => vec![to(text.to_owned()), from(after(text))],
            Comparison::Gt => vec![from(after(text))],
            Comparison::Ge => vec![from(text.to_owned())],
            Comparison::Lt => vec![to(text.to_owned())],
            Comparison::Le => vec![to(after(text))],
        }
    }
}

/// The text directly behind another: none lies between.
pub(super) fn after(text: &str) -> String {
    format!("{text}\0")
}

fn least<'a>(one: &'a str, other: &'a str) -> &'a str {
    if compare_utf16(one, other).is_lt() { one } else { other }
}

/// Partition keys of an interval, and of each the row keys of another.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Keys {
    partitions: Interval,
    rows: Interval,
}

impl Keys {
    const ALL: Self = Self {
        partitions: Interval::ALL,
        rows: Interval::ALL,
    };

    fn and(&self, other: &Self) -> Option<Self> {
        let both = Self {
            partitions: self.partitions.and(&other.partitions),
            rows: self.rows.and(&other.rows),
        };
        (!both.partitions.is_empty() && !both.rows.is_empty()).then_some(both)
    }
}

/// The keys with which an entity can match.
fn boxes(filter: &Filter) -> Vec<Keys> {
    match filter {
        Filter::All(filters) => filters.iter().fold(vec![Keys::ALL], |found, filter| {
            let others = boxes(filter);
            // Whatever is left out of the intersection, the filter is tested on each entity.
            if found.len() * others.len() > BOXES_MAX {
                return found;
            }
            found
                .iter()
                .flat_map(|one| others.iter().filter_map(|other| one.and(other)))
                .collect()
        }),
        Filter::Any(filters) => {
            let found: Vec<Keys> = filters.iter().flat_map(boxes).collect();
            if found.len() > BOXES_MAX {
                vec![Keys::ALL]
            } else {
                found
            }
        }
        Filter::Test {
            name,
            comparison,
            literal: Edm::String(text),
        } => {
            let intervals = Interval::of(*comparison, text).into_iter();
            match name.as_str() {
                PARTITION_KEY => intervals
                    .map(|partitions| Keys {
                        partitions,
                        rows: Interval::ALL,
                    })
                    .collect(),
                ROW_KEY => intervals
                    .map(|rows| Keys {
                        partitions: Interval::ALL,
                        rows,
                    })
                    .collect(),
                _ => vec![Keys::ALL],
            }
        }
        Filter::Not(_) | Filter::Test { .. } | Filter::IsTrue(_) => vec![Keys::ALL],
    }
}

/// A part of the order of keys that is read at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Rows of one partition.
    Rows {
        /// Its key.
        partition_key: String,
        /// Which of its rows.
        rows: Interval,
    },
    /// Whole partitions.
    Partitions(Interval),
}

impl Step {
    /// The first partition key.
    pub(super) fn first(&self) -> &str {
        match self {
            Self::Rows { partition_key, .. } => partition_key,
            Self::Partitions(partitions) => &partitions.from,
        }
    }

    /// Where it begins.
    pub(super) fn place(&self) -> Place {
        match self {
            Self::Rows { partition_key, rows } => Place {
                partition_key: partition_key.clone(),
                row_key: Some(rows.from.clone()),
            },
            Self::Partitions(partitions) => Place {
                partition_key: partitions.from.clone(),
                row_key: None,
            },
        }
    }
}

/// A planned query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Disjoint, in the order of keys.
    pub(super) steps: Vec<Step>,
    /// How the service would rate it.
    pub(super) kind: PlanKind,
    /// The steps hold only entities that match.
    pub(super) is_exact: bool,
}

impl Plan {
    /// Plans a query from its first place on.
    pub(super) fn new(filter: Option<&Filter>, bounds: Option<&KeyBounds>, from: Option<&Place>) -> Self {
        let mut found = filter.map_or_else(|| vec![Keys::ALL], boxes);
        let kind = kind(&found);
        if let Some(bounds) = bounds {
            let allowed = Keys {
                partitions: Interval {
                    from: bounds.partition_from.clone().unwrap_or_default(),
                    to: bounds.partition_to.as_deref().map(after),
                },
                rows: Interval::ALL,
            };
            found = found.iter().filter_map(|one| one.and(&allowed)).collect();
        }
        let mut steps = steps(found);
        if let Some(from) = from {
            steps = steps.into_iter().flat_map(|step| step_from(step, from)).collect();
        }
        Self {
            steps,
            kind,
            is_exact: filter.is_none_or(is_of_keys) && bounds.is_none(),
        }
    }
}

/// Whether a filter bounds keys alone: one partition key and its rows, or partition keys.
fn is_of_keys(filter: &Filter) -> bool {
    let tests = match filter {
        Filter::All(tests) => tests.as_slice(),
        one => std::slice::from_ref(one),
    };
    let (mut is_one, mut of_partitions, mut of_rows) = (false, 0, 0);
    for test in tests {
        match test {
            Filter::Test {
                name,
                comparison,
                literal: Edm::String(_),
            } if name == PARTITION_KEY => {
                is_one |= *comparison == Comparison::Eq;
                of_partitions += 1;
            }
            Filter::Test {
                name,
                literal: Edm::String(_),
                ..
            } if name == ROW_KEY => of_rows += 1,
            _ => return false,
        }
    }
    of_partitions > 0 && (is_one || of_rows == 0)
}

fn kind(found: &[Keys]) -> PlanKind {
    let is_all = |keys: &Keys| keys.partitions == Interval::ALL;
    match found {
        [one] if one.partitions.only().is_some() && one.rows.only().is_some() => PlanKind::Point,
        [first, ..] if first.partitions.only().is_some() => {
            let same = found.iter().all(|keys| keys.partitions == first.partitions);
            if same {
                PlanKind::RowRange
            } else {
                PlanKind::PartitionRange
            }
        }
        found if found.iter().any(is_all) => PlanKind::TableScan,
        _ => PlanKind::PartitionRange,
    }
}

/// The disjoint parts that contain all boxes.
fn steps(mut found: Vec<Keys>) -> Vec<Step> {
    let by_start = |one: &Interval, other: &Interval| compare_utf16(&one.from, &other.from);
    found.sort_by(|one, other| {
        let partitions = by_start(&one.partitions, &other.partitions);
        partitions.then_with(|| by_start(&one.rows, &other.rows))
    });
    let mut steps: Vec<Step> = Vec::new();
    for keys in found {
        let only = keys.partitions.only().map(str::to_owned);
        let of_one = only.map(|partition_key| Step::Rows {
            partition_key,
            rows: keys.rows.clone(),
        });
        let next = of_one.unwrap_or(Step::Partitions(keys.partitions));
        if matches!(next, Step::Partitions(_)) {
            // Rows of the partition with which the range begins.
            let of_first = |step: &Step| matches!(step, Step::Rows { .. }) && step.first() == next.first();
            while steps.pop_if(|step| of_first(step)).is_some() {}
        }
        match steps.pop() {
            None => steps.push(next),
            Some(last) => steps.extend(joined(last, next)),
        }
    }
    steps
}

/// Two steps of which the first does not begin later, made disjoint.
fn joined(last: Step, next: Step) -> Vec<Step> {
    match (last, next) {
        (
            Step::Rows { partition_key, rows },
            Step::Rows {
                partition_key: other,
                rows: others,
            },
        ) if partition_key == other => {
            let touch = rows
                .to
                .as_deref()
                .is_none_or(|to| compare_utf16(&others.from, to).is_le());
            if touch {
                let rows = Interval {
                    from: rows.from,
                    to: rows.to.zip(others.to).map(|(one, other)| greatest(one, other)),
                };
                return vec![Step::Rows { partition_key, rows }];
            }
            vec![
                Step::Rows { partition_key, rows },
                Step::Rows {
                    partition_key: other,
                    rows: others,
                },
            ]
        }
        (Step::Partitions(partitions), next) => {
            let to = match &next {
                Step::Rows { partition_key, .. } => Some(after(partition_key)),
                Step::Partitions(others) => others.to.clone(),
            };
            let touch = |to: &str| {
                compare_utf16(next.first(), to).is_lt() || matches!(next, Step::Partitions(_)) && next.first() == to
            };
            if !partitions.to.as_deref().is_none_or(touch) {
                return vec![Step::Partitions(partitions), next];
            }
            let to = partitions.to.zip(to).map(|(one, other)| greatest(one, other));
            vec![Step::Partitions(Interval {
                from: partitions.from,
                to,
            })]
        }
        (last, next) => vec![last, next],
    }
}

fn greatest(one: String, other: String) -> String {
    if compare_utf16(&one, &other).is_lt() {
        other
    } else {
        one
    }
}

/// What of a step lies at a place or behind it.
fn step_from(step: Step, place: &Place) -> Vec<Step> {
    let row = place.row_key.as_deref().unwrap_or_default();
    let rows_from = |rows: Interval| {
        rows.and(&Interval {
            from: row.to_owned(),
            to: None,
        })
    };
    match step {
        Step::Rows { partition_key, rows } => match compare_utf16(&partition_key, &place.partition_key) {
            Ordering::Less => Vec::new(),
            Ordering::Greater => vec![Step::Rows { partition_key, rows }],
            Ordering::Equal => {
                let rows = rows_from(rows);
                let left = (!rows.is_empty()).then_some(Step::Rows { partition_key, rows });
                left.into_iter().collect()
            }
        },
        Step::Partitions(partitions) => {
            if compare_utf16(&partitions.from, &place.partition_key).is_gt() {
                return vec![Step::Partitions(partitions)];
            }
            let from = |from: String| partitions.and(&Interval { from, to: None });
            let begun = from(place.partition_key.clone());
            if begun.is_empty() {
                return Vec::new();
            }
            if row.is_empty() {
                return vec![Step::Partitions(begun)];
            }
            let first = Step::Rows {
                partition_key: place.partition_key.clone(),
                rows: rows_from(Interval::ALL),
            };
            let rest = from(after(&place.partition_key));
            let rest = (!rest.is_empty()).then_some(Step::Partitions(rest));
            std::iter::once(first).chain(rest).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::entity::Entity;

    fn plan(text: &str) -> Plan {
        Plan::new(Some(&Filter::parse(text).unwrap()), None, None)
    }

    fn holds(step: &Step, partition: &str, row: &str) -> bool {
        let inside = |interval: &Interval, text: &str| !interval.and(&Interval::one(text)).is_empty();
        match step {
            Step::Rows { partition_key, rows } => partition_key == partition && inside(rows, row),
            Step::Partitions(partitions) => inside(partitions, partition),
        }
    }

    #[test]
    fn queries_are_rated_as_the_documents_do() {
        for (filter, kind, steps) in [
            ("PartitionKey eq 'a' and RowKey eq 'b'", PlanKind::Point, 1),
            (
                "PartitionKey eq 'a' and RowKey ge 'b' and RowKey lt 'c'",
                PlanKind::RowRange,
                1,
            ),
            ("PartitionKey eq 'a' and n eq 5", PlanKind::RowRange, 1),
            (
                "PartitionKey eq 'a' and (RowKey eq 'b' or RowKey eq 'd')",
                PlanKind::RowRange,
                2,
            ),
            (
                "PartitionKey ge 'a' and PartitionKey lt 'b'",
                PlanKind::PartitionRange,
                1,
            ),
            (
                "PartitionKey eq 'a' or PartitionKey eq 'b'",
                PlanKind::PartitionRange,
                2,
            ),
            ("RowKey eq 'b'", PlanKind::TableScan, 1),
            ("n eq 5 or PartitionKey eq 'a'", PlanKind::TableScan, 1),
            ("PartitionKey ne 'a'", PlanKind::PartitionRange, 2),
            (
                "PartitionKey eq 'a' and PartitionKey eq 'b'",
                PlanKind::PartitionRange,
                0,
            ),
        ] {
            let plan = plan(filter);
            assert_eq!(
                (plan.kind, plan.steps.len()),
                (kind, steps),
                "{filter}: {:?}",
                plan.steps
            );
        }
    }

    #[test]
    fn steps_hold_every_match_once_and_in_order() {
        let mut random = fastrand::Rng::with_seed(3);
        let texts = ["", "a", "a\u{1F600}", "b", "\u{E000}", "\u{1F600}"];
        for _ in 0..1000 {
            let mut test = || {
                let name = ["PartitionKey", "RowKey", "n"][random.usize(..3)];
                let comparison = Comparison::ALL[random.usize(..6)].0;
                format!("{name} {comparison} '{}'", texts[random.usize(..texts.len())])
            };
            let tests = [test(), test(), test(), test()];
            let word = |random: &mut fastrand::Rng| if random.bool() { "and" } else { "or" };
            let (a, b, c) = (word(&mut random), word(&mut random), word(&mut random));
            let text = format!("({} {a} {}) {b} ({} {c} {})", tests[0], tests[1], tests[2], tests[3]);
            let filter = Filter::parse(&text).unwrap();
            let from = Place {
                partition_key: texts[random.usize(..texts.len())].to_owned(),
                row_key: random.bool().then(|| texts[random.usize(..texts.len())].to_owned()),
            };
            let from = random.bool().then_some(from);
            let steps = Plan::new(Some(&filter), None, from.as_ref()).steps;
            let mut last = 0;
            let mut places: Vec<(&str, &str)> = texts.iter().flat_map(|p| texts.map(|r| (*p, r))).collect();
            places.sort_by(|one, other| compare_utf16(one.0, other.0).then_with(|| compare_utf16(one.1, other.1)));
            for (partition, row) in places {
                let entity = Entity::new(partition.to_owned(), row.to_owned());
                let found: Vec<usize> = (0..steps.len())
                    .filter(|at| holds(&steps[*at], partition, row))
                    .collect();
                let is_reached = from.as_ref().is_none_or(|from| {
                    let by_row = || compare_utf16(from.row_key.as_deref().unwrap_or_default(), row);
                    compare_utf16(&from.partition_key, partition).then_with(by_row).is_le()
                });
                assert!(found.len() <= 1, "{text}: {steps:?} twice");
                assert!(is_reached || found.is_empty(), "{text} from {from:?}: {steps:?}");
                if filter.matches(&entity) && is_reached {
                    assert_eq!(
                        found.len(),
                        1,
                        "{text} from {from:?}: {partition:?} {row:?} in {steps:?}"
                    );
                }
                if let Some(at) = found.first() {
                    assert!(*at >= last, "{text}: {steps:?} out of order");
                    last = *at;
                }
            }
        }
    }
}
