//! Progress of a fault plan, and the decision about each request. Pure: the caller passes times and request numbers.

use super::{Action, DROPPED_MS, Fault, HELD_MS_MAX, Plan, StatementKind};
use helenus_types::consistency::{Consistency, WriteKind};

/// A moment in the course of a plan, in time and in requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Milliseconds since the plan became active.
    pub passed_ms: u64,
    /// Requests since then, the current one included: the first is 1.
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

/// The properties of a request that faults select by.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The parts of tables that it reads or writes; at least one.
    pub places: &'a [Place<'a>],
    /// Its kind.
    pub statement: StatementKind,
    /// Its level.
    pub consistency: Consistency,
    /// The node that received it, from 0.
    pub node: usize,
}

/// The decision about a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// How long it waits first.
    pub delay_ms: u64,
    /// Whether a physical partition is split during the request.
    pub splits: bool,
    /// How it ends; `None` means normally.
    pub outcome: Option<Outcome>,
}

/// How a request ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No answer for a time, then as [`Outcome::Timeout`].
    Drop {
        /// How long.
        held_ms: u64,
    },
    /// Overloaded.
    Throttle {
        /// When to retry.
        retry_after_ms: u64,
    },
    /// Unavailable.
    Unavailable,
    /// ReadFailure or WriteFailure.
    Fail,
    /// A timeout; the request was not executed.
    Timeout(Counts),
    /// A timeout; the request was executed.
    TimeoutAfter(Counts),
}

/// The counts that a timeout reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Replicas that answered; `None` means one fewer than required.
    pub received: Option<u32>,
    /// Whether the replica queried for data answered.
    pub data_present: bool,
    /// Another kind of write to report; `None` means the real one.
    pub write_kind: Option<WriteKind>,
}

/// The progress of a fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Requests that matched while it was in effect.
    pub matched: u64,
    /// Requests that it hit.
    pub hit: u64,
}

/// A plan and its progress.
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

    /// The faults of nodes and replicas in effect at a moment.
    pub fn standing(&self, now: Moment) -> impl Iterator<Item = &Fault> {
        let faults = self.plan.faults.iter();
        faults.filter(move |fault| fault.action.is_standing() && fault.holds(now))
    }

    /// Decides about a request.
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
                // A request that had begun gets no answer; later ones find no replica that serves.
                Action::Offload if progress.hit == 1 => Outcome::Timeout(counts()),
                Action::Unavailable | Action::Offload => Outcome::Unavailable,
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

/// A number from 0 to below 1, determined by the seed, the fault, the match and the purpose.
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

/// A part of a number of milliseconds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "at most 60,000, and a share from 0 to below 1"
)]
fn part_of(most: u64, share: f64) -> u64 {
    (most.min(HELD_MS_MAX) as f64 * share) as u64
}
