//! The rank of a fault: in which of Cassandra's stages it is found, and where it stands.
//!
//! A statement with several faults is refused for the one that Cassandra finds first. Its loops go over a statement stage by stage, and
//! over the parts of a stage in order of writing. So each fault is ranked where it is found, and who knows the loops picks.

use super::error::Error;

/// When Cassandra finds a fault of a selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// While names and functions are resolved (`Selectable.Raw.prepare`).
    Prepare,
    /// When a selector is made (`Selectable.newSelectorFactory`).
    Factory,
}

/// When and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rank {
    /// When.
    pub(crate) stage: Stage,
    /// The how manieth part of its clause it is, from 0.
    pub(crate) place: usize,
}

/// The faults of a clause that may be the first of a statement, in order of writing: one or more.
#[derive(Debug)]
pub(crate) struct Faults {
    first: (Rank, Error),
    others: Vec<(Rank, Error)>,
}

impl Faults {
    /// Adds a fault to those found so far, which stand before it.
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

    /// The fault that a loop finds which takes each part through all stages before the next.
    pub(crate) fn first(self) -> Error {
        self.first.1
    }

    /// The fault that a loop finds which takes only the parts before `place_end` through a stage.
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
