//! What must be true of the answers.

use std::collections::{BTreeMap, BTreeSet};

/// Something that a campaign must meet, or it proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mark {
    /// A write was acknowledged.
    Acknowledged,
    /// A write has no answer, and may have been done.
    Unanswered,
    /// A write without an answer was done.
    DoneUnanswered,
    /// A request was refused, since no owner was reached or the node had lost touch.
    Refused,
    /// A change of the schema was acknowledged.
    Changed,
    /// A change of the schema had to be asked for again.
    ChangeRepeated,
    /// Another node has become the owner.
    TakenOver,
    /// The former owner was still there.
    LeaseLost,
    /// A node was killed with requests in progress.
    KilledAtWork,
    /// A swap found another value.
    NotSwapped,
}

impl Mark {
    pub(super) const ALL: [Self; 10] = [
        Self::Acknowledged,
        Self::Unanswered,
        Self::DoneUnanswered,
        Self::Refused,
        Self::Changed,
        Self::ChangeRepeated,
        Self::TakenOver,
        Self::LeaseLost,
        Self::KilledAtWork,
        Self::NotSwapped,
    ];
}

/// The appends to one list. Each number is appended once.
#[derive(Debug, Default)]
pub(super) struct List {
    done: BTreeSet<i64>,
    open: BTreeSet<i64>,
}

impl List {
    pub(super) fn begin(&mut self, number: i64) {
        self.open.insert(number);
    }

    /// It was acknowledged.
    pub(super) fn done(&mut self, number: i64) {
        self.open.remove(&number);
        self.done.insert(number);
    }

    /// It was not done, and will not be.
    pub(super) fn never(&mut self, number: i64) {
        self.open.remove(&number);
    }

    /// The appends that each read sees that begins now.
    pub(super) fn certain(&self) -> BTreeSet<i64> {
        self.done.clone()
    }

    /// Checks what a read has seen that began when `certain` was. Returns how many appends without an answer it has seen.
    pub(super) fn judge(&mut self, certain: &BTreeSet<i64>, seen: &[i64]) -> Result<usize, String> {
        let mut counts: BTreeMap<i64, usize> = BTreeMap::new();
        for number in seen {
            *counts.entry(*number).or_default() += 1;
        }
        if let Some((number, count)) = counts.iter().find(|(_, count)| **count > 1) {
            return Err(format!("append {number} is there {count} times"));
        }
        if let Some(number) = certain.iter().find(|number| !counts.contains_key(number)) {
            return Err(format!("append {number} was acknowledged and is not there"));
        }
        let found: Vec<i64> = self
            .open
            .iter()
            .filter(|number| counts.contains_key(number))
            .copied()
            .collect();
        for number in counts.keys() {
            if !self.done.contains(number) && !self.open.contains(number) {
                return Err(format!("append {number} was refused and is there"));
            }
        }
        for number in &found {
            self.done(*number);
        }
        Ok(found.len())
    }
}

/// The swaps of one register. Each value is written once, so its values are a chain: none has two successors that were seen.
#[derive(Debug, Default)]
pub(super) struct Register {
    /// What each value was to replace.
    before: BTreeMap<i64, i64>,
    after: BTreeMap<i64, i64>,
}

impl Register {
    /// A swap is asked for.
    pub(super) fn begin(&mut self, from: i64, to: i64) {
        self.before.insert(to, from);
    }

    /// A value was read, or its swap was acknowledged as applied.
    pub(super) fn seen(&mut self, value: i64) -> Result<(), String> {
        let Some(from) = self.before.get(&value) else {
            return Ok(());
        };
        match self.after.insert(*from, value) {
            Some(other) if other != value => Err(format!("{from} was replaced by {other} and by {value}")),
            _ => Ok(()),
        }
    }
}
