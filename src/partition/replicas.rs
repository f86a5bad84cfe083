//! Replica sets: four replicas, quorum three. Pure decisions.
//!
//! One replica writes, the others follow its log. A write is durable when the writer has it, so a consistency level asks for
//! *live* replicas, and is refused when there are fewer than it names. On one machine the four are virtual and all alive.

pub use crate::consistency::Consistency;

/// How many replicas a set has.
pub const REPLICAS: u32 = 4;

/// How many replicas are a majority that two disjoint halves cannot both have: ⌊4 / 2⌋ + 1.
pub const QUORUM: u32 = 3;

impl Consistency {
    /// How many live replicas of a set of four this level asks for. `Any` is content with a hint, so with none.
    #[must_use]
    pub const fn needed(self) -> u32 {
        match self {
            Self::Any => 0,
            Self::One | Self::LocalOne => 1,
            Self::Two => 2,
            Self::Three => 3,
            Self::Quorum | Self::LocalQuorum | Self::EachQuorum | Self::Serial | Self::LocalSerial => QUORUM,
            Self::All => REPLICAS,
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

/// Which replicas of one set are alive. Replica 0 is the writer.
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
    /// A set whose replicas are alive as told, the writer first.
    #[must_use]
    pub const fn new(alive: [bool; REPLICAS as usize]) -> Self {
        Self { alive }
    }

    /// How many replicas are alive.
    #[must_use]
    pub fn alive(&self) -> u32 {
        self.alive.iter().map(|alive| u32::from(*alive)).sum()
    }

    /// Whether a request at this level may be tried.
    ///
    /// # Errors
    /// [`Shortage`] when fewer replicas are alive than the level needs.
    pub fn admit(&self, consistency: Consistency) -> Result<(), Shortage> {
        let alive = self.alive();
        let required = consistency.needed();
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
    fn two_quorums_always_meet() {
        const { assert!(QUORUM * 2 > REPLICAS) };
        assert!(ReplicaSet::default().admit(Consistency::All).is_ok());
    }
}
