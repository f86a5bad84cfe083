//! What is done to the physical partitions: which change, as a statement, and what the list must show of it.

use super::check::Part;
use super::model::Model;
use crate::{Error, Outcome};

/// Physical partitions, fewest and most; at first between.
const PARTITIONS_MIN: usize = 12;
const PARTITIONS_MAX: usize = 20;
/// Stores of lifted partitions, most: fewer than a server opens by default, and so few that neighbours of one store are left.
const STORES_MAX: usize = 4;

/// A change that is to be made.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change {
    /// A partition in two.
    Split { at: i64, of: Part },
    /// Neighbours of one store into one.
    Merge { left: Part, right: Part },
    /// Neighbours of two stores into one: the right one is moved first.
    Join { left: Part, right: Part },
    /// A partition into a store of its own. `near`: a token where it is looked at closely.
    Lift { of: Part, near: i64 },
    /// A partition into its home.
    Lower { of: Part, near: i64 },
}

/// Numbers of the stores of lifted partitions.
pub(super) fn stores(parts: &[Part]) -> Vec<i32> {
    let mut stores: Vec<i32> = parts
        .iter()
        .filter(|part| !part.is_home)
        .map(|part| part.store)
        .collect();
    stores.sort_unstable();
    stores.dedup();
    stores
}

/// Neighbours in two stores.
fn apart(parts: &[Part]) -> Vec<(Part, Part)> {
    neighbours(parts)
        .filter(|(left, right)| left.store != right.store)
        .collect()
}

fn neighbours(parts: &[Part]) -> impl Iterator<Item = (Part, Part)> {
    parts.iter().copied().zip(parts.iter().skip(1).copied())
}

/// One of them, any.
pub(super) fn one_of<T: Copy>(all: &[T], random: &mut fastrand::Rng) -> Option<T> {
    all.get(random.usize(..all.len().max(1))).copied()
}

/// The statement that merges two.
fn merge(left: Part, right: Part) -> String {
    format!(
        "ALTER TABLE parts.t WITH helenus_merge = {{'left': {}, 'right': {}}}",
        left.id, right.id
    )
}

impl Change {
    /// A split at a token that some partition key has or near it, or a merge of neighbours in one store.
    pub(super) fn split_or_merge(parts: &[Part], model: &Model, random: &mut fastrand::Rng) -> Outcome<Self> {
        let mergeable: Vec<(Part, Part)> = neighbours(parts)
            .filter(|(left, right)| left.store == right.store)
            .collect();
        let may_split = parts.len() < PARTITIONS_MAX || mergeable.is_empty();
        let may_merge = parts.len() > PARTITIONS_MIN && !mergeable.is_empty();
        if may_split && (!may_merge || random.bool()) {
            for _ in 0..1000 {
                let at = model.some_token(random);
                let of = parts.iter().find(|part| part.lower < at && at <= part.upper);
                if let Some(of) = of {
                    return Ok(Self::Split { at, of: *of });
                }
            }
        }
        match one_of(&mergeable, random) {
            Some((left, right)) => Ok(Self::Merge { left, right }),
            None => Err(Error::failed("there is nothing to split or merge")),
        }
    }

    /// A lift of a partition that shares its store, a lowering of one that is not at home, or a merge of two of two stores.
    pub(super) fn lift_or_lower(parts: &[Part], model: &Model, random: &mut fastrand::Rng) -> Outcome<Self> {
        let shares = |part: &&Part| part.is_home || parts.iter().filter(|other| other.store == part.store).count() > 1;
        let liftable: Vec<Part> = parts.iter().filter(shares).copied().collect();
        let lowerable: Vec<Part> = parts.iter().filter(|part| !part.is_home).copied().collect();
        let joinable = apart(parts);
        let may_join = parts.len() > PARTITIONS_MIN && random.u8(..3) == 0;
        if let Some((left, right)) = one_of(&joinable, random).filter(|_| may_join) {
            return Ok(Self::Join { left, right });
        }
        let may_lift = stores(parts).len() < STORES_MAX && !liftable.is_empty();
        let lifts = may_lift && (lowerable.is_empty() || random.bool());
        let of = one_of(if lifts { &liftable } else { &lowerable }, random)
            .ok_or_else(|| Error::failed("there is nothing to lift or lower"))?;
        // Its border to another store, or somewhere within.
        let near = if random.bool() {
            of.lower
        } else {
            one_of(model.keys_in(of.lower, of.upper), random).map_or(of.lower, |(token, _)| token)
        };
        Ok(if lifts {
            Self::Lift { of, near }
        } else {
            Self::Lower { of, near }
        })
    }

    pub(super) fn statement(self) -> String {
        match self {
            Self::Split { at, .. } => format!("ALTER TABLE parts.t WITH helenus_split_at = {at}"),
            Self::Merge { left, right } | Self::Join { left, right } => merge(left, right),
            Self::Lift { of, .. } => format!("ALTER TABLE parts.t WITH helenus_lift = {}", of.id),
            Self::Lower { of, .. } => format!("ALTER TABLE parts.t WITH helenus_lower = {}", of.id),
        }
    }

    /// Whether rows go to another store.
    pub(super) const fn is_move(self) -> bool {
        matches!(self, Self::Lift { .. } | Self::Lower { .. } | Self::Join { .. })
    }

    /// Lowest and highest token that it concerns.
    pub(super) const fn range(self) -> (i64, i64) {
        match self {
            Self::Split { of, .. } | Self::Lift { of, .. } | Self::Lower { of, .. } => (of.lower, of.upper),
            Self::Merge { left, right } | Self::Join { left, right } => (left.lower, right.upper),
        }
    }

    /// The token between the two; of a move one that is looked at closely.
    pub(super) const fn border(self) -> i64 {
        match self {
            Self::Split { at, .. } => at,
            Self::Merge { right, .. } | Self::Join { right, .. } => right.lower,
            Self::Lift { near, .. } | Self::Lower { near, .. } => near,
        }
    }

    /// Whether the list has it.
    pub(super) fn is_in(self, parts: &[Part]) -> bool {
        let begins = |token| parts.iter().any(|part| part.lower == token);
        let found = |id| parts.iter().find(|part| part.id == id);
        match self {
            Self::Split { at, .. } => begins(at),
            Self::Merge { right, .. } | Self::Join { right, .. } => !begins(right.lower),
            Self::Lift { of, .. } => found(of.id).is_some_and(|part| !part.is_home && part.store != of.store),
            Self::Lower { of, .. } => found(of.id).is_some_and(|part| part.is_home),
        }
    }

    /// How many partitions there must be after it, and whether all that it does not concern are what they were.
    pub(super) fn leaves(self, before: &[Part], after: &[Part]) -> (usize, bool) {
        let count = match self {
            Self::Split { .. } => before.len() + 1,
            Self::Merge { .. } | Self::Join { .. } => before.len() - 1,
            Self::Lift { .. } | Self::Lower { .. } => before.len(),
        };
        let (lower, upper) = self.range();
        let others = |parts: &[Part]| -> Vec<Part> {
            let others = parts.iter().filter(|part| part.upper < lower || part.lower > upper);
            others.copied().collect()
        };
        (count, others(before) == others(after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn four(stores: [i32; 4]) -> Vec<Part> {
        let lowers = [i64::MIN, -4_000_000_000_000_000_000, 0, 4_000_000_000_000_000_000];
        let uppers = lowers.iter().skip(1).map(|lower| lower - 1).chain([i64::MAX]);
        let parts = (0..).zip(lowers.into_iter().zip(uppers)).zip(stores);
        parts
            .map(|((id, (lower, upper)), store)| Part {
                id,
                lower,
                upper,
                store,
                is_home: store == 0,
            })
            .collect()
    }

    #[test]
    fn what_is_chosen_can_be_done() {
        let model = Model::new(10_000, 2);
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..500 {
            let stores_of = [0; 4].map(|_| random.i32(..6));
            let parts = four(stores_of);
            match Change::lift_or_lower(&parts, &model, &mut random) {
                Ok(Change::Lift { of, .. }) => {
                    assert!(stores(&parts).len() < STORES_MAX);
                    assert!(of.store == 0 || stores_of.iter().filter(|store| **store == of.store).count() > 1);
                }
                Ok(Change::Lower { of, .. }) => assert_ne!(of.store, 0),
                other => panic!("{other:?}"),
            }
            match Change::split_or_merge(&parts, &model, &mut random) {
                Ok(Change::Split { at, of }) => assert!(of.lower < at && at <= of.upper),
                Ok(Change::Merge { left, right }) => {
                    assert_eq!((left.store, left.upper + 1), (right.store, right.lower))
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_move_shows_in_the_list() {
        let (before, after) = (four([0, 3, 3, 0]), four([0, 3, 5, 0]));
        let of = before[2];
        let (lift, lower) = (Change::Lift { of, near: 1 }, Change::Lower { of, near: 1 });
        assert!(!lift.is_in(&before) && lift.is_in(&after) && !lower.is_in(&after));
        assert!(lower.is_in(&four([0, 3, 0, 0])) && !lift.is_in(&four([0, 3, 0, 0])));
        assert_eq!(lift.leaves(&before, &after), (4, true));
        assert_eq!(lift.leaves(&before, &four([1, 3, 5, 0])), (4, false));
        assert_eq!(apart(&before).len(), 2);
    }
}
