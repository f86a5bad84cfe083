//! The rank of a fault: when Cassandra finds it, and where it stands.
//!
//! A statement with several faults is refused for the one that Cassandra finds first. Its loops go over a statement stage by stage, and
//! over the parts of a stage in order of writing. So each fault is ranked where it is found, and the least rank wins.

use super::error::Error;

/// When Cassandra finds a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// While the functions of all selectors are resolved (`Selectable.Raw.prepare`).
    Functions,
    /// When a selector is made of them (`Selectable.newSelectorFactory`).
    Selectors,
}

/// When and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    /// When.
    pub(crate) stage: Stage,
    /// The how manieth part of its stage it is, from 0.
    pub(crate) place: usize,
}

/// A fault with its rank.
#[derive(Debug)]
pub(crate) struct Ranked {
    /// Its rank.
    pub(crate) rank: Rank,
    /// What is wrong.
    pub(crate) error: Error,
}

/// The faults of a clause that may be the first of a statement: one or more.
#[derive(Debug)]
pub(crate) struct Faults {
    /// Of the least rank so far.
    first: Ranked,
    others: Vec<Ranked>,
}

impl Faults {
    /// Adds a fault to those found so far.
    pub(crate) fn add(found: &mut Option<Self>, rank: Rank, error: Error) {
        let mut fault = Ranked { rank, error };
        let Some(faults) = found else {
            let (first, others) = (fault, Vec::new());
            *found = Some(Self { first, others });
            return;
        };
        if fault.rank < faults.first.rank {
            std::mem::swap(&mut fault, &mut faults.first);
        }
        faults.others.push(fault);
    }

    /// The fault that Cassandra finds first.
    pub(crate) fn first(self) -> Error {
        self.first.error
    }

    /// The same without taking it.
    pub(crate) const fn peek(&self) -> &Error {
        &self.first.error
    }

    /// The fault that Cassandra finds first if it looks at the parts before `place_end` only.
    pub(crate) fn first_before(&self, place_end: usize) -> Option<&Error> {
        let all = std::iter::once(&self.first).chain(&self.others);
        let seen = all.filter(|fault| fault.rank.place < place_end);
        seen.min_by_key(|fault| fault.rank).map(|fault| &fault.error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earlier_stage_wins_then_the_earlier_place() {
        let unknown = |name: &str| Error::UnknownFunction(name.to_owned());
        let mut found = None;
        for (stage, place, name) in [
            (Stage::Selectors, 0, "cast"),
            (Stage::Functions, 3, "third"),
            (Stage::Functions, 2, "second"),
        ] {
            Faults::add(&mut found, Rank { stage, place }, unknown(name));
        }
        let faults = found.unwrap();
        assert_eq!(faults.first_before(0), None);
        assert_eq!(faults.first_before(2), Some(&unknown("cast")));
        assert_eq!(faults.first_before(4), Some(&unknown("second")));
        assert_eq!(faults.peek(), &unknown("second"));
        assert_eq!(faults.first(), unknown("second"));
    }
}
