//! The rank of a fault: the stage in which Cassandra detects it, and its position.
//!
//! A statement with several faults is refused for the one that Cassandra detects first. Cassandra loops over a
//! statement stage by stage, and over the parts of a stage in order of writing. So each fault is ranked where it is
//! found, and the caller selects one according to the order of Cassandra's loops.

use super::error::Error;

/// The stage in which Cassandra detects a fault of a selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// While names and functions are resolved (`Selectable.Raw.prepare`).
    Prepare,
    /// When a selector is made (`Selectable.newSelectorFactory`).
    Factory,
}

/// The stage and position of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rank {
    /// The stage of detection.
    pub(crate) stage: Stage,
    /// The position of the faulty part in its clause, from 0.
    pub(crate) place: usize,
}

/// The faults of a clause that Cassandra may report first, in order of writing: one or more.
#[derive(Debug)]
pub(crate) struct Faults {
    first: (Rank, Error),
    others: Vec<(Rank, Error)>,
}

impl Faults {
    /// Adds a fault after those found so far.
    pub(crate) fn add(found: &mut Option<Self>, rank: Rank, error: Error) {
        match found {
            Some(faults) => faults.others.push((rank, error)),
            None => {
                *found = Some(Self {
                    first: (rank, error),
                    others: Vec::new(),
                });
            }
        }
    }

    /// The first fault of a loop that completes all stages of a part before the next part.
    pub(crate) fn first(self) -> Error {
        self.first.1
    }

    /// The first fault of a loop over one stage that covers only the parts before `place_end`.
    pub(crate) fn first_of(&self, stage: Stage, place_end: usize) -> Option<&Error> {
        let mut all = std::iter::once(&self.first).chain(&self.others);
        all.find(|(rank, _)| rank.stage == stage && rank.place < place_end)
            .map(|(_, error)| error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_and_places_decide() {
        let unknown = |name: &str| Error::UnknownFunction(name.to_owned());
        let mut found = None;
        for (stage, place, name) in [
            (Stage::Factory, 0, "cast"),
            (Stage::Prepare, 2, "second"),
            (Stage::Prepare, 3, "third"),
        ] {
            Faults::add(&mut found, Rank { stage, place }, unknown(name));
        }
        let faults = found.unwrap();
        assert_eq!(faults.first_of(Stage::Prepare, 2), None);
        assert_eq!(faults.first_of(Stage::Prepare, 3), Some(&unknown("second")));
        assert_eq!(faults.first_of(Stage::Factory, 1), Some(&unknown("cast")));
        assert_eq!(faults.first(), unknown("cast"));
    }
}
