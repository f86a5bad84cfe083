//! The fault plan: what goes wrong on purpose, so that a team can see what its driver and its retries do. Pure: the time, the number of
//! the request and what it asks for are handed in, and the same plan with the same requests in the same order decides the same.
//!
//! ```toml
//! seed = 7
//!
//! [[fault]]                  # the second node is down from 5 s to 15 s after the plan came into force
//! action = "down"
//! node = 2
//! from-ms = 5000
//! until-ms = 15000
//!
//! [[fault]]                  # of the writes to shop.orders one in ten is carried out and answered with a timeout, 20 times at most
//! action = "timeout-after"
//! keyspace = "shop"
//! table = "orders"
//! statement = "write"
//! probability = 0.1
//! count = 20
//! ```
//! | action | what happens | own keys |
//! | --- | --- | --- |
//! | `down` | the node takes no connections, cuts those it has, and its replicas are dead | `node` |
//! | `replica-down` | the replicas on the node are dead, its clients stay connected | `node`, `keyspace`, `table`, `partition` |
//! | `lag` | replicas on the node that do not write show ONE and LOCAL_ONE what was there up to `ms` or `commits` ago | the same; `ms`, `commits` |
//! | `delay` | the request waits before it is carried out | `ms`, `jitter-ms` |
//! | `drop` | the request is not carried out and not answered for `ms` (30,000 unless given), then with a timeout | `ms` |
//! | `throttle` | not carried out, Overloaded | `ms`: when to come again |
//! | `unavailable` | not carried out, Unavailable with one replica too few | |
//! | `fail` | not carried out, ReadFailure or WriteFailure; in the `cosmos` profile a write in the words of a conflict (HTTP's 449) | |
//! | `timeout` | not carried out, ReadTimeout or WriteTimeout | `received`, `data-present`, `write-type` |
//! | `timeout-after` | carried out, ReadTimeout or WriteTimeout | `received`, `data-present` |
//! | `split` | the physical partition that is read or written is split while the request holds the old list | |
//!
//! Every fault but the first three is of requests: those of `keyspace`, `table`, `partition` (of any of its tables), `statement`,
//! `consistency`, `node` (where the client is connected); the first `skip` that match go by, of the others each is hit with
//! `probability`, until `count` were hit. All faults hold from `from-ms` to `until-ms` after the plan came into force and from the
//! `from-request`th to before the `until-request`th request of users' tables since. Of several that hit one request the
//! delays add up, and the first refusal counts. Requests of system tables, DDL and logins meet no faults.
//!
//! A draw depends on the seed, the place of the fault in the plan and the number of the match, on no clock: other requests
//! in between do not change it.

use serde::{Deserialize, Serialize};

use super::replicas::REPLICAS;
use crate::consistency::{Consistency, WriteKind};

/// Most faults in a plan.
pub const FAULTS_MAX: usize = 256;

/// Longest delay, and longest time without an answer: 60 s.
pub const HELD_MS_MAX: u64 = 60_000;

/// How long a dropped request is held unless the plan says: longer than drivers wait.
const DROPPED_MS: u64 = 30_000;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the table above says what each is")]
pub enum Action {
    Down,
    ReplicaDown,
    Lag,
    Delay,
    Drop,
    Throttle,
    Unavailable,
    Fail,
    Timeout,
    TimeoutAfter,
    Split,
}

impl Action {
    /// Whether it is about nodes and replicas, not about requests.
    #[must_use]
    pub const fn is_standing(self) -> bool {
        matches!(self, Self::Down | Self::ReplicaDown | Self::Lag)
    }
}

/// Kinds of statements by which requests are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StatementKind {
    /// SELECT.
    Read,
    /// INSERT, UPDATE, DELETE without a condition, of no counter.
    Write,
    /// A change of a counter, alone or in a batch.
    Counter,
    /// A batch without conditions, of no counters.
    Batch,
    /// Statements and batches with IF.
    Conditional,
}

/// One thing that goes wrong: what, for whom, when, how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the module's text says what each is")]
pub struct Fault {
    pub action: Action,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyspace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statement: Option<StatementKind>,
    /// The name of a level, as `QUORUM`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consistency: Option<String>,
    /// From 1 to 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_request: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_request: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commits: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_present: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_type: Option<WriteKind>,
}

/// A plan: a seed and what goes wrong. The empty one is that nothing does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Plan {
    /// What chance is drawn from.
    #[serde(default)]
    pub seed: u64,
    /// The faults, in the order in which they are asked.
    #[serde(default, rename = "fault")]
    pub faults: Vec<Fault>,
}

/// Why a plan is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// It cannot be read.
    #[error("{0}")]
    Form(String),
    /// A fault of it makes no sense.
    #[error("fault {number}: {what}")]
    Fault {
        /// Its place in the plan, from 1.
        number: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// It has more than [`FAULTS_MAX`] faults.
    #[error("a plan has at most {FAULTS_MAX} faults")]
    TooMany,
}

impl Plan {
    /// Reads a plan in TOML.
    ///
    /// # Errors
    /// [`PlanError`] says what is wrong with it.
    pub fn from_toml(text: &str) -> Result<Self, PlanError> {
        let plan: Self = toml::from_str(text).map_err(|error| PlanError::Form(error.to_string()))?;
        plan.check()?;
        Ok(plan)
    }

    /// Reads a plan in JSON: the same keys.
    ///
    /// # Errors
    /// [`PlanError`] says what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        let plan: Self = serde_json::from_str(text).map_err(|error| PlanError::Form(error.to_string()))?;
        plan.check()?;
        Ok(plan)
    }

    /// Whether a node goes down in it.
    #[must_use]
    pub fn takes_nodes_down(&self) -> bool {
        self.faults.iter().any(|fault| fault.action == Action::Down)
    }

    fn check(&self) -> Result<(), PlanError> {
        if self.faults.len() > FAULTS_MAX {
            return Err(PlanError::TooMany);
        }
        for (place, fault) in self.faults.iter().enumerate() {
            fault.check().map_err(|what| PlanError::Fault {
                number: place + 1,
                what,
            })?;
        }
        Ok(())
    }
}

impl Fault {
    fn check(&self) -> Result<(), &'static str> {
        let refuse = |wrong: bool, what: &'static str| if wrong { Err(what) } else { Ok(()) };
        let of_requests = self.statement.is_some()
            || self.consistency.is_some()
            || self.probability.is_some()
            || self.skip.is_some()
            || self.count.is_some();
        let of_places = self.keyspace.is_some() || self.table.is_some() || self.partition.is_some();
        let action = self.action;
        if action.is_standing() {
            refuse(self.node.is_none(), "which node? from 1 to 4")?;
            refuse(
                of_requests,
                "statement, consistency, probability, skip and count are for faults of requests",
            )?;
        }
        refuse(
            action == Action::Down && of_places,
            "a node is down for all tables; replica-down is for some",
        )?;
        refuse(
            self.node.is_some_and(|node| !(1..=4).contains(&node)),
            "a node is one of 1 to 4",
        )?;
        refuse(
            self.probability.is_some_and(|chance| !(0.0..=1.0).contains(&chance)),
            "a probability lies between 0 and 1",
        )?;
        let is_level = |name: &String| Consistency::ALL.iter().any(|level| level.name() == name.as_str());
        refuse(
            self.consistency.as_ref().is_some_and(|name| !is_level(name)),
            "no consistency level has this name",
        )?;
        refuse(
            self.partition.is_some() && self.table.is_none(),
            "a partition is one of a table",
        )?;
        refuse(
            action == Action::Lag && self.ms.is_none() && self.commits.is_none(),
            "how far behind? ms or commits",
        )?;
        refuse(action == Action::Delay && self.ms.is_none(), "how long? ms")?;
        let takes_ms = matches!(action, Action::Lag | Action::Delay | Action::Drop | Action::Throttle);
        refuse(
            self.ms.is_some() && !takes_ms,
            "ms is for lag, delay, drop and throttle",
        )?;
        let ms_max = self.ms.unwrap_or(0).saturating_add(self.jitter_ms.unwrap_or(0));
        refuse(ms_max > HELD_MS_MAX, "more than 60,000 ms")?;
        refuse(
            self.jitter_ms.is_some() && action != Action::Delay,
            "jitter-ms is for delay",
        )?;
        refuse(self.commits.is_some() && action != Action::Lag, "commits is for lag")?;
        let times_out = matches!(action, Action::Timeout | Action::TimeoutAfter);
        refuse(
            (self.received.is_some() || self.data_present.is_some()) && !times_out,
            "received and data-present are for timeout and timeout-after",
        )?;
        refuse(
            self.received.is_some_and(|received| received > REPLICAS),
            "no more than four replicas answer",
        )?;
        refuse(
            self.write_type.is_some() && action != Action::Timeout,
            "write-type is for timeout",
        )?;
        refuse(
            matches!(self.write_type, Some(WriteKind::View | WriteKind::Cdc)),
            "no write of this server is of the type VIEW or CDC",
        )
    }

    /// Whether it holds at a moment.
    #[must_use]
    pub fn holds(&self, now: Moment) -> bool {
        let within = |from: Option<u64>, until: Option<u64>, at: u64| {
            from.is_none_or(|from| at >= from) && until.is_none_or(|until| at < until)
        };
        within(self.from_ms, self.until_ms, now.passed_ms)
            && within(self.from_request, self.until_request, now.requests)
    }

    /// Whether it is about this part of a table.
    #[must_use]
    pub fn concerns(&self, place: &Place<'_>) -> bool {
        self.keyspace.as_ref().is_none_or(|name| name == place.keyspace)
            && self.table.as_ref().is_none_or(|name| name == place.table)
            && self.partition.is_none_or(|id| id == place.partition)
    }

    /// Whether it is about replicas on this node, counted from 0.
    #[must_use]
    pub fn is_of_node(&self, node: usize) -> bool {
        self.node.is_some_and(|number| usize::from(number) == node + 1)
    }

    fn matches(&self, subject: &Subject<'_>) -> bool {
        !self.action.is_standing()
            && self.statement.is_none_or(|kind| kind == subject.statement)
            && self
                .consistency
                .as_ref()
                .is_none_or(|name| name == subject.consistency.name())
            && (self.node.is_none() || self.is_of_node(subject.node))
            && subject.places.iter().any(|place| self.concerns(place))
    }
}

/// When something happens, by the two clocks of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Since the plan came into force.
    pub passed_ms: u64,
    /// Requests since then; that at hand is included, so the first is 1.
    pub requests: u64,
}

/// Part of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The table's keyspace.
    pub keyspace: &'a str,
    /// The table.
    pub table: &'a str,
    /// The physical partition.
    pub partition: u64,
}

/// A request, as far as faults choose by it.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// What it reads or writes; at least one.
    pub places: &'a [Place<'a>],
    /// Its kind.
    pub statement: StatementKind,
    /// Its level.
    pub consistency: Consistency,
    /// The node that it came to, from 0.
    pub node: usize,
}

/// What becomes of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// How long it waits first.
    pub delay_ms: u64,
    /// Whether a physical partition is split under it.
    pub splits: bool,
    /// How it ends, if not by itself.
    pub outcome: Option<Outcome>,
}

/// How a request ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Not at all for so long, then as [`Outcome::Timeout`].
    Drop {
        /// How long.
        held_ms: u64,
    },
    /// Overloaded.
    Throttle {
        /// When to come again.
        retry_after_ms: u64,
    },
    /// Unavailable.
    Unavailable,
    /// ReadFailure or WriteFailure.
    Fail,
    /// A timeout, and nothing was done.
    Timeout(Counts),
    /// A timeout, and it was done.
    TimeoutAfter(Counts),
}

/// What a timeout tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Replicas that answered; `None`: one fewer than were needed.
    pub received: Option<u32>,
    /// Whether the one asked for data did.
    pub data_present: bool,
    /// Another kind of write than it was.
    pub write_kind: Option<WriteKind>,
}

/// How far a fault has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Requests that matched while it held.
    pub matched: u64,
    /// Of those, hit.
    pub hit: u64,
}

/// A plan and how far it has come.
#[derive(Clone, Debug, Default)]
pub struct Course {
    plan: Plan,
    progress: Vec<Progress>,
}

impl Course {
    /// A plan from its beginning.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        let progress = vec![Progress::default(); plan.faults.len()];
        Self { plan, progress }
    }

    /// The plan.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The faults with their progress.
    pub fn faults(&self) -> impl Iterator<Item = (&Fault, Progress)> {
        self.plan.faults.iter().zip(self.progress.iter().copied())
    }

    /// The faults of nodes and replicas that hold at a moment.
    pub fn standing(&self, now: Moment) -> impl Iterator<Item = &Fault> {
        let faults = self.plan.faults.iter();
        faults.filter(move |fault| fault.action.is_standing() && fault.holds(now))
    }

    /// What becomes of a request.
    pub fn decide(&mut self, subject: &Subject<'_>, now: Moment) -> Decision {
        let mut decision = Decision::default();
        let faults = self.plan.faults.iter().zip(&mut self.progress);
        for (number, (fault, progress)) in faults.enumerate() {
            if !fault.holds(now) || !fault.matches(subject) {
                continue;
            }
            progress.matched += 1;
            let is_due = progress.matched > fault.skip.unwrap_or(0)
                && fault.count.is_none_or(|count| progress.hit < count)
                && fault
                    .probability
                    .is_none_or(|chance| draw(self.plan.seed, number, progress.matched, 0) < chance);
            if !is_due {
                continue;
            }
            progress.hit += 1;
            let counts = || Counts {
                received: fault.received,
                data_present: fault.data_present.unwrap_or(false),
                write_kind: fault.write_type,
            };
            let outcome = match fault.action {
                Action::Delay => {
                    let jitter = fault.jitter_ms.map_or(0, |most| {
                        part_of(most, draw(self.plan.seed, number, progress.matched, 1))
                    });
                    let longer = decision.delay_ms + fault.ms.unwrap_or(0) + jitter;
                    decision.delay_ms = longer.min(HELD_MS_MAX);
                    continue;
                }
                Action::Split => {
                    decision.splits = true;
                    continue;
                }
                Action::Drop => Outcome::Drop {
                    held_ms: fault.ms.unwrap_or(DROPPED_MS),
                },
                Action::Throttle => Outcome::Throttle {
                    retry_after_ms: fault.ms.unwrap_or(10),
                },
                Action::Unavailable => Outcome::Unavailable,
                Action::Fail => Outcome::Fail,
                Action::Timeout => Outcome::Timeout(counts()),
                Action::TimeoutAfter => Outcome::TimeoutAfter(counts()),
                Action::Down | Action::ReplicaDown | Action::Lag => continue,
            };
            decision.outcome.get_or_insert(outcome);
        }
        decision
    }
}

/// A number from 0 to below 1 that follows from the seed, the fault, the match and what it is for.
fn draw(seed: u64, fault: usize, matched: u64, purpose: u64) -> f64 {
    // Steps of SplitMix64 (Steele, Lea, Flood 2014), each number mixed into the state of the one before.
    let mut state = seed;
    for number in [fault as u64, matched, purpose] {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15).wrapping_add(number);
        state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        state ^= state >> 31;
    }
    #[expect(clippy::cast_precision_loss, reason = "53 bits are what a double holds")]
    let upper = (state >> 11) as f64;
    upper / 9_007_199_254_740_992.0
}

/// A share of a number of milliseconds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "at most 60,000, and a share from 0 to below 1"
)]
fn part_of(most: u64, share: f64) -> u64 {
    (most.min(HELD_MS_MAX) as f64 * share) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: [Place<'static>; 2] = [
        Place {
            keyspace: "ks",
            table: "t",
            partition: 0,
        },
        Place {
            keyspace: "ks",
            table: "u",
            partition: 3,
        },
    ];

    fn read() -> Subject<'static> {
        Subject {
            places: &PLACES[..1],
            statement: StatementKind::Read,
            consistency: Consistency::Quorum,
            node: 1,
        }
    }

    fn course(text: &str) -> Course {
        Course::new(Plan::from_toml(text).unwrap())
    }

    /// What becomes of so many equal requests.
    fn run(course: &mut Course, subject: &Subject<'_>, requests: u64) -> Vec<Decision> {
        (1..=requests)
            .map(|requests| {
                course.decide(
                    subject,
                    Moment {
                        passed_ms: requests * 10,
                        requests,
                    },
                )
            })
            .collect()
    }

    #[test]
    fn the_same_plan_and_requests_decide_the_same() {
        let text = "seed = 42\n[[fault]]\naction = \"timeout\"\nprobability = 0.3\n[[fault]]\naction = \"delay\"\nms = 5\njitter-ms = 20\n\
                    probability = 0.5";
        let (first, second) = (
            run(&mut course(text), &read(), 500),
            run(&mut course(text), &read(), 500),
        );
        assert_eq!(first, second);
        let hit = first.iter().filter(|decision| decision.outcome.is_some()).count();
        assert!((100..200).contains(&hit), "{hit} of 500 at 0.3");
        assert!(first.iter().all(|decision| decision.delay_ms < 25));
        let other = run(&mut course(&text.replace("42", "43")), &read(), 500);
        assert_ne!(first, other);
        // Requests that do not match change nothing.
        let text =
            format!("{text}\ntable = \"t\"").replacen("probability = 0.3", "probability = 0.3\ntable = \"t\"", 1);
        let mut mixed = course(&text);
        let elsewhere = Subject {
            places: &PLACES[1..],
            ..read()
        };
        let mut decided = Vec::new();
        for number in 0..500 {
            let now = Moment {
                passed_ms: 0,
                requests: number,
            };
            assert_eq!(mixed.decide(&elsewhere, now), Decision::default());
            decided.push(mixed.decide(&read(), now));
        }
        assert_eq!(first, decided);
    }

    #[test]
    fn requests_are_chosen() {
        let hits = |keys: &str| {
            let mut course = course(&format!("[[fault]]\naction = \"unavailable\"\n{keys}"));
            let decisions = run(&mut course, &read(), 10);
            decisions
                .iter()
                .filter(|decision| decision.outcome == Some(Outcome::Unavailable))
                .count()
        };
        for (keys, expected) in [
            ("", 10),
            ("keyspace = \"ks\"", 10),
            ("keyspace = \"other\"", 0),
            ("table = \"t\"\npartition = 0", 10),
            ("table = \"t\"\npartition = 1", 0),
            ("table = \"u\"", 0),
            ("statement = \"read\"", 10),
            ("statement = \"conditional\"", 0),
            ("consistency = \"QUORUM\"", 10),
            ("consistency = \"ONE\"", 0),
            ("node = 2", 10),
            ("node = 1", 0),
            ("skip = 3", 7),
            ("count = 4", 4),
            ("skip = 8\ncount = 4", 2),
            ("probability = 0.0", 0),
            ("probability = 1.0", 10),
            ("from-request = 4\nuntil-request = 6", 2),
            ("from-ms = 95", 1),
            ("until-ms = 20", 1),
        ] {
            assert_eq!(hits(keys), expected, "{keys}");
        }
        let mut both = course("[[fault]]\naction = \"timeout\"\ntable = \"u\"\npartition = 3");
        let batch = Subject {
            places: &PLACES,
            statement: StatementKind::Batch,
            ..read()
        };
        assert!(both.decide(&batch, Moment::default()).outcome.is_some());
    }

    #[test]
    fn delays_add_up_and_the_first_refusal_counts() {
        let mut course = course(
            "[[fault]]\naction = \"delay\"\nms = 40000\n[[fault]]\naction = \"throttle\"\nms = 7\n[[fault]]\naction = \"drop\"\n\
             [[fault]]\naction = \"delay\"\nms = 40000\n[[fault]]\naction = \"split\"",
        );
        let decision = course.decide(&read(), Moment::default());
        let throttled = Outcome::Throttle { retry_after_ms: 7 };
        assert_eq!((decision.delay_ms, decision.splits), (HELD_MS_MAX, true));
        assert_eq!(decision.outcome, Some(throttled));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (text, what) in [
            ("[[fault]]\naction = \"explode\"", "unknown variant"),
            ("[[fault]]\naction = \"delay\"\nms = 1\nmood = 2", "unknown field"),
            ("[[fault]]\naction = \"down\"", "fault 1: which node?"),
            ("[[fault]]\naction = \"down\"\nnode = 5", "one of 1 to 4"),
            (
                "[[fault]]\naction = \"down\"\nnode = 1\ntable = \"t\"",
                "replica-down is for some",
            ),
            (
                "[[fault]]\naction = \"down\"\nnode = 1\ncount = 2",
                "faults of requests",
            ),
            ("[[fault]]\naction = \"lag\"\nnode = 1", "how far behind?"),
            ("[[fault]]\naction = \"delay\"", "how long?"),
            ("[[fault]]\naction = \"delay\"\nms = 60001", "more than 60,000"),
            ("[[fault]]\naction = \"timeout\"\nprobability = 1.5", "between 0 and 1"),
            (
                "[[fault]]\naction = \"timeout\"\nconsistency = \"MOST\"",
                "no consistency level",
            ),
            ("[[fault]]\naction = \"timeout\"\nreceived = 5", "no more than four"),
            (
                "[[fault]]\naction = \"timeout\"\nwrite-type = \"ODD\"",
                "unknown variant `ODD`",
            ),
            (
                "[[fault]]\naction = \"timeout\"\nwrite-type = \"VIEW\"",
                "no write of this server",
            ),
            ("[[fault]]\naction = \"split\"\nms = 3", "ms is for"),
            ("[[fault]]\naction = \"split\"\npartition = 3", "one of a table"),
        ] {
            let error = Plan::from_toml(text).unwrap_err().to_string();
            assert!(error.contains(what), "{text}: {error}");
        }
        let many = "[[fault]]\naction = \"split\"\n".repeat(FAULTS_MAX + 1);
        assert_eq!(Plan::from_toml(&many), Err(PlanError::TooMany));
        let json = r#"{"seed": 1, "fault": [{"action": "replica-down", "node": 3}]}"#;
        let toml = "seed = 1\n[[fault]]\naction = \"replica-down\"\nnode = 3";
        assert_eq!(Plan::from_json(json), Plan::from_toml(toml));
    }
}
