//! The ledger charges statements: it replaces the estimate by the measured cost, and records it in one
//! place.
//!
//! A statement's [`Charges`] grow while it runs: reads add to them as rows are accepted ([`super::read::sink`]), and
//! writes when their commit reports the outcome of each row ([`super::write`]). Only [`Ledger::charge`] passes them on,
//! to budgets, load, hot keys and the request log.
//!
//! A failed statement is charged for its work up to the failure. A statement that could not be planned or bound is
//! charged nothing.

use std::sync::Arc;

use super::admission::Admission;
use super::meter::Meter;
use super::receipt::{ChargeReceipt, Ended, Executed};
use crate::engine::terms::request::Request;
use crate::throughput::{Charges, Coefficients, Stage};
use helenus_schema::profile::Rules;
use helenus_types::consistency::Consistency;

/// Prices, budgets and the meter.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// Prices of operations, in request units.
    pub(super) prices: Coefficients,
    /// Profile and account, which determine how many replicas a read queries.
    pub(super) rules: Rules,
    pub(super) admission: Admission,
    pub(super) meter: Arc<Meter>,
}

impl Ledger {
    /// Empty charges for a statement.
    #[inline]
    pub(super) fn charges(&self, consistency: Consistency) -> Charges {
        let (read_factor, key_weight) = if self.meter.is_on() {
            (self.read_factor(consistency), self.meter.key_weight())
        } else {
            (0, 0)
        };
        Charges::with_keys(self.prices, read_factor, key_weight)
    }

    /// Empty charges of reads at one replica: what another machine adds to its own, as often as its level says.
    pub(super) fn at_one_replica(&self) -> Charges {
        Charges::new(self.prices, u32::from(self.meter.is_on()))
    }

    /// Empty charges at the same prices, for an estimate that no budget pays.
    pub(crate) fn estimated(&self, consistency: Consistency) -> Charges {
        Charges::new(self.prices, self.read_factor(consistency))
    }

    /// How many replicas a read queries. An account of Cosmos with strong or bounded consistency queries two, at twice
    /// the price, unless the request's level is ONE.
    fn read_factor(&self, consistency: Consistency) -> u32 {
        let asks_two = self.rules.profile.is_cosmos()
            && self.rules.account.consistency.reads_two()
            && !matches!(consistency, Consistency::One | Consistency::LocalOne);
        if asks_two { 2 } else { 1 }
    }

    /// Charges an executed statement, successful or not. `notes` gets the trace of the charges, if the request is
    /// traced.
    pub(super) fn charge(
        &self,
        request: &Request<'_>,
        executed: Executed<'_>,
        charges: &mut Charges,
        ended: Ended,
        notes: &mut Vec<String>,
    ) -> ChargeReceipt {
        let waited = self.admission.pay(request, executed, charges, ended);
        let charge = charges.total();
        let receipt = ChargeReceipt { charge, waited };
        if request.is_traced() && matches!(ended, Ended::Answered { .. }) {
            notes.push(trace_of(charges));
            if let Some(waited) = waited {
                notes.push(format!("Waited {} ms for request units", waited.as_millis()));
            }
        }
        if charges.is_on() {
            self.meter.record(request, executed, charges, receipt, ended);
        }
        receipt
    }
}

/// The trace of charges.
fn trace_of(charges: &mut Charges) -> String {
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
