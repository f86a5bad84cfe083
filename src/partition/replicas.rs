//! Replica sets: four replicas, quorum three. Pure decisions.
//!
//! One replica writes, the others follow its log. A consistency level asks for *live* replicas, and is refused when there are fewer:
//!
//! ```text
//! level                                           reads need   writes need   answered by
//! ANY                                             (no reads)   3
//! ONE, LOCAL_ONE                                  1            3             any live replica, which may lag
//! TWO                                             2            3             the newer of two: one of them has every acknowledged write
//! THREE, QUORUM, LOCAL_QUORUM, EACH_QUORUM        3            3             the writer
//! ALL                                             4            4             the writer
//! SERIAL, LOCAL_SERIAL; the decision of an IF     3            3             the writer
//! ```
//! A write needs a quorum at any level, since it is acknowledged when a quorum has it: with one replica down writes go on, with two
//! they stop and nothing is lost. The writer holds a lease that a quorum gives; when it is down the next live replica takes over.
//! On one machine the four are virtual ([`super::nodes`]), and all alive unless a fault plan says otherwise.

pub use crate::consistency::Consistency;

/// How many replicas a set has.
pub const REPLICAS: u32 = 4;

/// How many replicas are a majority that two disjoint halves cannot both have: ⌊4 / 2⌋ + 1.
pub const QUORUM: u32 = 3;

impl Consistency {
    /// How many live replicas of a set of four a read at this level asks for. Nothing is read at `Any`.
    #[must_use]
    pub const fn needed(self) -> u32 {
        match self {
            Self::Any => 0,
            Self::One | Self::LocalOne | Self::NodeLocal => 1,
            Self::Two => 2,
            Self::Three => 3,
            Self::Quorum | Self::LocalQuorum | Self::EachQuorum | Self::Serial | Self::LocalSerial => QUORUM,
            Self::All => REPLICAS,
        }
    }

    /// How many live replicas of a set of four a write at this level asks for: never fewer than a quorum, so that what was
    /// acknowledged at any level outlives every single replica.
    ///
    /// Differs: Cassandra writes to one replica, or a hint, if that is all that is asked for, and may then lose it.
    #[must_use]
    pub const fn needed_to_write(self) -> u32 {
        match self {
            Self::All => REPLICAS,
            _ => QUORUM,
        }
    }
}

/// Fewer replicas are alive than a level asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Cannot achieve consistency level {}", consistency.name())]
pub struct Shortage {
    /// The level asked for.
    pub consistency: Consistency,
    /// How many replicas it needs.
    pub required: u32,
    /// How many are alive.
    pub alive: u32,
}

/// One replica set at a moment: where its replicas are, which of them are alive, and who writes. Replica 0 is the one that writes as
/// long as nothing is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaSet {
    alive: [bool; REPLICAS as usize],
}

impl Default for ReplicaSet {
    fn default() -> Self {
        Self {
            alive: [true; REPLICAS as usize],
        }
    }
}

impl ReplicaSet {
    /// A set whose replicas are alive as told, the first writer first.
    #[must_use]
    pub const fn new(alive: [bool; REPLICAS as usize]) -> Self {
        Self { alive }
    }

    /// How many replicas are alive.
    #[must_use]
    pub fn alive(&self) -> u32 {
        self.alive.iter().map(|alive| u32::from(*alive)).sum()
    }

    /// Whether a replica is alive.
    #[must_use]
    pub fn is_alive(&self, replica: usize) -> bool {
        self.alive.get(replica).is_some_and(|alive| *alive)
    }

    /// The replica that writes: the first that is alive. `None` when fewer than [`QUORUM`] are, since a lease is given by a quorum.
    #[must_use]
    pub fn writer(&self) -> Option<usize> {
        if self.alive() < QUORUM {
            return None;
        }
        self.alive.iter().position(|alive| *alive)
    }

    /// Whether a read at this level may be tried.
    ///
    /// # Errors
    /// [`Shortage`] when fewer replicas are alive than the level needs.
    pub fn admit(&self, consistency: Consistency) -> Result<(), Shortage> {
        self.require(consistency, consistency.needed())
    }

    /// Whether a write at this level may be tried.
    ///
    /// # Errors
    /// [`Shortage`] when fewer replicas are alive than [`Consistency::needed_to_write`] says.
    pub fn admit_write(&self, consistency: Consistency) -> Result<(), Shortage> {
        self.require(consistency, consistency.needed_to_write())
    }

    /// Whether a conditional write may be tried: first its decision at the serial level, then its commit at the other.
    ///
    /// # Errors
    /// [`Shortage`] of the first of the two for which too few replicas are alive.
    pub fn admit_conditional(&self, serial: Consistency, commit: Consistency) -> Result<(), Shortage> {
        self.admit(serial)?;
        self.admit_write(commit)
    }

    fn require(&self, consistency: Consistency, required: u32) -> Result<(), Shortage> {
        let alive = self.alive();
        if alive < required {
            Err(Shortage {
                consistency,
                required,
                alive,
            })
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Level, replicas needed, fewest alive at which it is admitted.
    #[test]
    fn levels_are_admitted_as_the_table_says() {
        let table = [
            (Consistency::Any, 0),
            (Consistency::One, 1),
            (Consistency::LocalOne, 1),
            (Consistency::Two, 2),
            (Consistency::Three, 3),
            (Consistency::Quorum, 3),
            (Consistency::LocalQuorum, 3),
            (Consistency::EachQuorum, 3),
            (Consistency::Serial, 3),
            (Consistency::LocalSerial, 3),
            (Consistency::All, 4),
        ];
        for (level, needed) in table {
            for alive in 0..=REPLICAS {
                let mut replicas = [false; 4];
                replicas
                    .iter_mut()
                    .take(alive as usize)
                    .for_each(|replica| *replica = true);
                let admitted = ReplicaSet::new(replicas).admit(level);
                let expected = if alive >= needed {
                    Ok(())
                } else {
                    Err(Shortage {
                        consistency: level,
                        required: needed,
                        alive,
                    })
                };
                assert_eq!(admitted, expected, "{level:?} with {alive} alive");
            }
        }
    }

    #[test]
    fn a_quorum_writes_at_any_level_and_chooses_the_writer() {
        for down in 0..=4 {
            let mut replicas = [true; 4];
            replicas.iter_mut().take(down).for_each(|replica| *replica = false);
            let set = ReplicaSet::new(replicas);
            for level in Consistency::ALL {
                let needed = if level == Consistency::All { 4 } else { 3 };
                assert_eq!(
                    set.admit_write(level).is_ok(),
                    set.alive() >= needed,
                    "{level:?}, {down} down"
                );
            }
            assert_eq!(set.writer(), (down <= 1).then_some(down));
            let refused = set.admit_conditional(Consistency::LocalSerial, Consistency::All).err();
            let level = refused.map(|shortage| (shortage.consistency, shortage.required));
            let expected = match down {
                0 => None,
                1 => Some((Consistency::All, 4)),
                _ => Some((Consistency::LocalSerial, 3)),
            };
            assert_eq!(level, expected);
        }
    }

    #[test]
    fn two_quorums_always_meet() {
        const { assert!(QUORUM * 2 > REPLICAS) };
        assert!(ReplicaSet::default().admit(Consistency::All).is_ok());
    }
}
