//! The model of correct answers: versions of rows by their timestamps, registers, counters.
//!
//! Every write has a number, which is its timestamp and its value, so a read shows which write it saw. An acknowledged
//! write exists. A write without an answer (its request failed, was dropped, or lost its server) may exist, now or
//! later, until the database is at rest.

use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The state of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Requested and not answered, or answered as in doubt.
    Open,
    /// Acknowledged, or seen.
    Done,
    /// It had no effect and will have none.
    Never,
}

#[derive(Clone, Copy, Debug)]
struct Version {
    /// Whether it is a deletion.
    deletes: bool,
    /// Whether it was written with a time to live: from some time on it is a deletion.
    expires: bool,
    /// Whether it may have taken effect after the deletion that hides it was removed, so that it is visible.
    is_late: bool,
    state: State,
}

impl Version {
    const fn may_hide(&self) -> bool {
        self.deletes || self.expires
    }
}

/// All versions ever written to one row, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowVersions(BTreeMap<i64, Version>);

impl RowVersions {
    pub(crate) fn begin(&mut self, number: i64, deletes: bool) {
        let version = Version {
            deletes,
            expires: false,
            is_late: false,
            state: State::Open,
        };
        self.0.insert(number, version);
    }

    /// Begins a write with a time to live.
    pub(crate) fn begin_expiring(&mut self, number: i64) {
        self.begin(number, false);
        if let Some(version) = self.0.get_mut(&number) {
            version.expires = true;
        }
    }

    /// Writes in progress may take effect after the deletion that hides them was removed.
    pub(crate) fn may_come_late(&mut self) {
        for version in self.0.values_mut().filter(|version| version.state == State::Open) {
            version.is_late = true;
        }
    }

    /// Whether this write has a time to live.
    pub(crate) fn is_expiring(&self, number: i64) -> bool {
        self.0.get(&number).is_some_and(|version| version.expires)
    }

    pub(crate) fn set(&mut self, number: i64, state: State) {
        if let Some(version) = self.0.get_mut(&number)
            && version.state == State::Open
        {
            version.state = state;
        }
    }

    /// The newest certain version; 0 means none.
    pub(crate) fn floor(&self) -> i64 {
        let mut newest = self.0.iter().rev();
        newest
            .find(|(_, version)| version.state == State::Done)
            .map_or(0, |(number, _)| *number)
    }

    /// The newest version without an answer.
    pub(crate) fn open(&self) -> Option<i64> {
        let mut newest = self.0.iter().rev();
        newest
            .find(|(_, version)| version.state == State::Open)
            .map(|(number, _)| *number)
    }

    /// Whether a newer version was requested.
    pub(crate) fn has_after(&self, number: i64) -> bool {
        self.0.range(number + 1..).next().is_some()
    }

    /// Whether this version is a deletion.
    pub(crate) fn is_deletion(&self, number: i64) -> bool {
        self.0.get(&number).is_some_and(|version| version.deletes)
    }

    /// Checks the result of a read that began when `floor` was certain. The version that it saw is certain from then
    /// on.
    pub(crate) fn check(&mut self, floor: i64, seen: Option<i64>) -> Result<(), String> {
        let may_hide = |number: &i64| self.0.get(number).is_none_or(Version::may_hide);
        match seen {
            Some(number) => {
                let mut newer = self.0.iter().filter(|(of, _)| **of > number && **of <= floor);
                let is_hidden = newer.any(|(_, version)| version.state == State::Done && !version.may_hide());
                let Some(version) = self.0.get_mut(&number) else {
                    return Err(format!("write {number} was never asked for"));
                };
                if version.deletes || (number < floor && (is_hidden || !version.is_late)) {
                    return Err(format!("write {number} is seen, though {floor} was certain"));
                }
                if version.state == State::Never {
                    return Err(format!("write {number} is seen, though it was refused"));
                }
                version.state = State::Done;
                Ok(())
            }
            None => {
                let may_be_gone = floor == 0 || may_hide(&floor);
                let mut later = self.0.range(floor + 1..);
                if may_be_gone || later.any(|(_, version)| version.may_hide() && version.state != State::Never) {
                    Ok(())
                } else {
                    Err(format!("write {floor} was certain and is gone"))
                }
            }
        }
    }

    /// The database is at rest and this is the visible version: open versions that would be visible had no effect.
    /// Returns how many open versions were resolved.
    pub(crate) fn rest(&mut self, seen: Option<i64>) -> usize {
        let mut never = 0;
        for (number, version) in &mut self.0 {
            if version.state == State::Open && seen.is_some_and(|seen| *number > seen) {
                version.state = State::Never;
                never += 1;
            }
            if version.state == State::Open && seen.is_none() && !version.may_hide() {
                // Hidden by a deletion, or absent; an open deletion may hide it.
                version.state = State::Never;
                never += 1;
            }
        }
        let floor = self.floor();
        if seen.is_none() && self.0.get(&floor).is_some_and(|version| !version.may_hide()) {
            // The version that hides it stays. Of several it is not known which: when the clock is set back, one that has
            // expired is visible again.
            let of = self.0.range_mut(floor + 1..).map(|(_, version)| version);
            let mut hiding = of.filter(|version| version.may_hide() && version.state == State::Open);
            if let (Some(version), None) = (hiding.next(), hiding.next()) {
                version.state = State::Done;
            }
        }
        never
    }
}

/// An operation on a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    Read,
    /// IF NOT EXISTS.
    Insert(i64),
    /// From, to.
    Swap(i64, i64),
    /// If it has this value.
    Delete(i64),
    /// Unconditionally.
    Put(i64),
    /// Unconditionally, with a client timestamp in the future, above all such before: later conditional statements must
    /// get a timestamp above it.
    PutAhead(i64),
    /// Unconditional deletion.
    Erase,
}

/// An operation on one register. Times are counts of polls.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) ask: Ask,
    pub(crate) begin: u64,
    /// `None` means not answered.
    pub(crate) end: Option<u64>,
    /// Whether it was applied (always for reads).
    pub(crate) applied: bool,
    /// The value that a read, or a refusal, returned.
    pub(crate) shown: Option<i64>,
}

/// One register: a row with conditional statements only, and writes with client timestamps in the future; or with
/// unconditional writes with server timestamps only.
#[derive(Clone, Debug, Default)]
pub(crate) struct Register {
    pub(crate) initial: Option<i64>,
    pub(crate) operations: Vec<Operation>,
}

impl Register {
    /// Whether some order of the operations explains every answer.
    pub(crate) fn is_linearizable(&self) -> bool {
        assert!(self.operations.len() <= 128, "a history too long to judge");
        let answered = self.operations.iter().filter(|one| one.end.is_some()).count();
        self.search(0, answered, self.initial, &mut HashSet::new())
    }

    fn search(&self, done: u128, left: usize, value: Option<i64>, seen: &mut HashSet<(u128, Option<i64>)>) -> bool {
        if left == 0 {
            return true;
        }
        if !seen.insert((done, value)) {
            return false;
        }
        let rest = || {
            let all = self.operations.iter().enumerate();
            all.filter(move |(place, _)| done & (1 << place) == 0)
        };
        let first_end = rest().filter_map(|(_, one)| one.end).min().unwrap_or(u64::MAX);
        for (place, one) in rest() {
            if one.begin > first_end {
                continue;
            }
            if let Some(next) = step(one, value)
                && self.search(done | (1 << place), left - usize::from(one.end.is_some()), next, seen)
            {
                return true;
            }
        }
        false
    }
}

/// The value after an operation. `None` means this answer is impossible.
fn step(one: &Operation, value: Option<i64>) -> Option<Option<i64>> {
    let (applies, next) = match one.ask {
        Ask::Read => (true, value),
        Ask::Insert(new) => (value.is_none(), Some(new)),
        Ask::Swap(from, to) => (value == Some(from), Some(to)),
        Ask::Delete(from) => (value == Some(from), None),
        Ask::Put(to) | Ask::PutAhead(to) => (true, Some(to)),
        Ask::Erase => (true, None),
    };
    if one.end.is_none() {
        // No client saw its answer: it matters only if it has an effect.
        return (applies && one.ask != Ask::Read).then_some(next);
    }
    if applies != one.applied {
        return None;
    }
    let shows = one.ask == Ask::Read || !one.applied;
    if shows && one.shown != value {
        return None;
    }
    Some(if applies { next } else { value })
}

/// A counter that is increased by one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counter {
    pub(crate) acknowledged: i64,
    pub(crate) attempted: i64,
}

/// Rows that are written once, in a table that is truncated.
#[derive(Clone, Debug, Default)]
pub(crate) struct Truncated {
    /// By key: when it began, and when it was acknowledged.
    pub(crate) rows: BTreeMap<i64, (u64, Option<u64>)>,
    /// When each TRUNCATE began, when it ended (`None`: may still happen), and whether it was acknowledged.
    pub(crate) truncations: Vec<(u64, Option<u64>, bool)>,
}

impl Truncated {
    /// Checks the result of a complete read that began at this time.
    pub(crate) fn check(&self, began: u64, seen: &BTreeSet<i64>) -> Result<(), String> {
        for key in seen {
            let Some((_, acknowledged)) = self.rows.get(key) else {
                return Err(format!("x{key} was never asked for"));
            };
            let emptied = self.truncations.iter().find(|(begin, end, is_certain)| {
                *is_certain
                    && end.is_some_and(|end| end < began)
                    && acknowledged.is_some_and(|acknowledged| acknowledged < *begin)
            });
            if let Some(emptied) = emptied {
                return Err(format!("x{key} is there after TRUNCATE {emptied:?}"));
            }
        }
        for (key, (begin, acknowledged)) in &self.rows {
            let must_be = acknowledged.is_some_and(|acknowledged| acknowledged < began)
                && !self
                    .truncations
                    .iter()
                    .any(|(_, end, _)| end.is_none_or(|end| end > *begin));
            if must_be && !seen.contains(key) {
                return Err(format!("x{key} was acknowledged and is gone"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(ask: Ask, begin: u64, end: Option<u64>, applied: bool, shown: Option<i64>) -> Operation {
        Operation {
            ask,
            begin,
            end,
            applied,
            shown,
        }
    }

    #[test]
    fn histories_of_registers_are_checked() {
        let of = |operations: &[Operation]| {
            Register {
                initial: None,
                operations: operations.to_vec(),
            }
            .is_linearizable()
        };
        let insert = operation(Ask::Insert(1), 0, Some(2), true, None);
        assert!(of(&[insert.clone(), operation(Ask::Read, 3, Some(4), true, Some(1))]));
        assert!(!of(&[insert.clone(), operation(Ask::Read, 3, Some(4), true, None)]));
        assert!(of(&[insert.clone(), operation(Ask::Read, 1, Some(4), true, None)]));
        // Two swaps of one value: one of them must fail.
        let swap = |to, begin, end| operation(Ask::Swap(1, to), begin, end, true, None);
        assert!(!of(&[insert.clone(), swap(2, 3, Some(9)), swap(3, 3, Some(9))]));
        // A write that hides nothing, because its timestamp is below the one before it.
        let put = |to, begin| operation(Ask::Put(to), begin, Some(begin + 1), true, None);
        let read = |begin, value| operation(Ask::Read, begin, Some(begin + 1), true, value);
        assert!(of(&[put(1, 0), put(2, 3), read(5, Some(2))]));
        assert!(!of(&[put(1, 0), put(2, 3), read(5, Some(1))]));
        let erase = operation(Ask::Erase, 3, Some(4), true, None);
        assert!(of(&[put(1, 0), erase.clone(), read(5, None)]));
        assert!(!of(&[put(1, 0), erase, read(5, Some(1))]));
        // An operation without an answer may have taken effect, but not in between.
        let lost = swap(2, 3, None);
        let read = |begin, value| operation(Ask::Read, begin, Some(begin + 1), true, Some(value));
        assert!(of(&[insert.clone(), lost.clone(), read(5, 1), read(8, 2)]));
        assert!(!of(&[insert.clone(), lost.clone(), read(5, 2), read(8, 1)]));
        assert!(!of(&[insert, lost, read(5, 2), swap(3, 8, Some(9))]));
    }

    #[test]
    fn versions_of_rows_are_checked() {
        let mut row = RowVersions::default();
        row.begin(1, false);
        row.begin(2, false);
        row.begin(3, true);
        row.set(1, State::Done);
        assert!(row.check(row.floor(), Some(2)).is_ok());
        assert!(row.check(row.floor(), Some(1)).is_err());
        assert!(row.check(row.floor(), None).is_ok());
        row.set(3, State::Never);
        assert!(row.check(row.floor(), None).is_err());
        assert!(row.check(row.floor(), Some(4)).is_err());
    }

    #[test]
    fn versions_that_expire_or_come_late_are_checked() {
        let mut row = RowVersions::default();
        row.begin(1, false);
        row.begin_expiring(2);
        row.set(2, State::Done);
        assert!(row.check(2, None).is_ok() && row.check(2, Some(2)).is_ok());
        assert!(row.check(2, Some(1)).is_err());
        row.may_come_late();
        assert!(row.check(2, Some(1)).is_ok());
        row.begin(3, false);
        row.set(3, State::Done);
        assert!(row.check(3, Some(1)).is_err() && row.check(3, None).is_err());
    }

    #[test]
    fn what_hides_a_row_at_rest_is_certain_only_if_nothing_else_may() {
        let mut row = RowVersions::default();
        row.begin(1, false);
        row.set(1, State::Done);
        row.begin(3, true);
        let mut both = row.clone();
        row.rest(None);
        assert_eq!(row.floor(), 3);
        assert!(row.check(3, Some(1)).is_err());
        // It has expired, and is seen again when the clock is set back.
        both.begin_expiring(2);
        both.rest(None);
        assert_eq!(both.floor(), 1);
        assert!(both.check(1, None).is_ok() && both.check(1, Some(2)).is_ok());
    }
}
