//! Where every statement that was carried out is settled, whatever came of it: the one place that knows what it has cost.
//!
//! A statement's [`Charges`] are gathered while it runs, by reads as rows are judged ([`super::read::sink`]) and by writes when their commit
//! tells what became of rows ([`super::write`]). Whoever holds anybody to account by them (budgets, heat, hot keys, logs) is
//! told here, by `Database::settle`, and nowhere else.
//!
//! A statement that failed is charged what it did until then. One that could not be planned or bound did nothing.

use std::sync::Arc;
use std::time::Duration;

use super::answer::Answer;
use super::database::{Database, Request};
use super::error::Error;
use super::plans::PlannedAt;
use crate::partition::Consistency;
use crate::planner::bound::BoundBatch;
use crate::throughput::{Charges, RequestUnits, Stage};

/// What was carried out.
#[derive(Clone, Copy)]
pub(super) enum Done<'a> {
    /// A statement, prepared or not.
    Statement(&'a Arc<PlannedAt>),
    /// A batch that came as a message.
    Batch(&'a BoundBatch),
}

/// What is told of what was paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// All of it, as clients are told.
    pub(super) charge: RequestUnits,
    /// How long the statement waited in the server for its units, if it had to.
    pub(super) waited: Option<Duration>,
}

impl Database {
    /// Charges that a statement gathers, empty yet.
    #[inline]
    pub(super) fn charges(&self, consistency: Consistency) -> Charges {
        let meter = self.meter();
        let (read_factor, key_weight) = if meter.is_on() {
            (self.read_factor(consistency), meter.key_weight())
        } else {
            (0, 0)
        };
        Charges::with_keys(*self.prices(), read_factor, key_weight)
    }

    /// Charges that are empty yet, at this database's prices, for who only wants to know.
    pub(super) fn estimated(&self, consistency: Consistency) -> Charges {
        Charges::new(*self.prices(), self.read_factor(consistency))
    }

    /// How many replicas a read asks: those of an account of Cosmos whose consistency is strong or bounded ask two unless they
    /// ask for one, and cost twice as much.
    fn read_factor(&self, consistency: Consistency) -> u32 {
        let asks_two = self.profile().is_cosmos()
            && self.rules().account.consistency.reads_two()
            && !matches!(consistency, Consistency::One | Consistency::LocalOne);
        if asks_two { 2 } else { 1 }
    }

    /// Settles a statement that has been carried out, successful or not. The only place that is told what a statement has cost.
    pub(super) fn settle(
        &self,
        request: &Request<'_>,
        done: Done<'_>,
        charges: &mut Charges,
        outcome: &mut Result<Answer, Error>,
    ) {
        let waited = self.pay(request, done, charges, outcome);
        let charge = charges.total();
        if let Ok(answer) = outcome {
            answer.charge = charge;
            if request.is_traced() {
                answer.notes.push(note(charges));
                if let Some(waited) = waited {
                    answer
                        .notes
                        .push(format!("Waited {} ms for request units", waited.as_millis()));
                }
            }
        }
        if charges.is_on() {
            let told = Told { charge, waited };
            self.meter().note(request, done, charges, told, outcome);
        }
    }
}

/// What a trace says of charges.
fn note(charges: &mut Charges) -> String {
    let stages = Stage::ALL.map(|stage| (stage.name(), charges.of(stage)));
    let stages: Vec<String> = stages
        .into_iter()
        .filter(|(_, units)| units.in_hundredths() > 0)
        .map(|(name, units)| format!("{name} {units}"))
        .collect();
    let mut places: Vec<u64> = charges.partitions().map(|charge| charge.partition.partition).collect();
    places.sort_unstable();
    places.dedup();
    let places = match places.as_slice() {
        [] => String::new(),
        [place] => format!(", to physical partition {place}"),
        places => format!(", to {} physical partitions", places.len()),
    };
    let colon = if stages.is_empty() { "" } else { ": " };
    format!(
        "Charged {} request units{colon}{}{places}",
        charges.total(),
        stages.join(", ")
    )
}
