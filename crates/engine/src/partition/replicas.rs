//! Replica sets: four replicas, quorum three; on two or three nodes as many as there are nodes, quorum two. Pure decisions.
//!
//! One replica writes, the others follow its log. A consistency level requires *live* replicas, and is refused when
//! there are fewer. Of four:
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
//! A level that requires more replicas than a set has is never met, as in Cassandra. A write needs a quorum at any
//! level, since it is acknowledged when a quorum has it: with one replica down writes continue; with two they stop and
//! nothing is lost. The writer holds a lease that a quorum grants; when it is down the next live replica takes over.
//! On one machine the four are virtual ([`super::nodes`]), and all alive unless a fault plan says otherwise.

use helenus_types::consistency::Consistency;

/// How many replicas a set has, unless there are fewer nodes for them.
pub const REPLICAS: u32 = 4;

/// The size of a majority: two disjoint sets cannot both have it. ⌊n / 2⌋ + 1.
#[must_use]
pub const fn quorum(replicas: u32) -> u32 {
    replicas / 2 + 1
}

/// How many live replicas, of a set of `replicas`, a read at a level requires. `Any` reads nothing.
#[must_use]
pub const fn needed_to_read(consistency: Consistency, replicas: u32) -> u32 {
    match consistency {
        Consistency::Any => 0,
        Consistency::One | Consistency::LocalOne | Consistency::NodeLocal => 1,
        Consistency::Two => 2,
        Consistency::Three => 3,
        Consistency::Quorum
        | Consistency::LocalQuorum
        | Consistency::EachQuorum
        | Consistency::Serial
        | Consistency::LocalSerial => quorum(replicas),
        Consistency::All => replicas,
    }
}

/// How many live replicas, of a set of `replicas`, a write at a level requires: never fewer than a quorum, so that a write
/// acknowledged at any level survives the loss of any one replica.
///
/// Differs: Cassandra writes to one replica, or a hint, where the level requires no more, and may then lose the write.
#[must_use]
pub const fn needed_to_write(consistency: Consistency, replicas: u32) -> u32 {
    let (asked, least) = (needed_to_read(consistency, replicas), quorum(replicas));
    if asked > least { asked } else { least }
}

/// Fewer replicas are alive than a level requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Cannot achieve consistency level {}", consistency.name())]
pub struct Shortage {
    /// The level of the request.
    pub consistency: Consistency,
    /// How many replicas it needs.
    pub required: u32,
    /// How many are alive.
    pub alive: u32,
}

/// One replica set at a moment: its replicas, which of them are alive, and which one writes. Replica 0 writes as long
/// as no replica is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaSet {
    /// Those at `count` and after are not alive.
    alive: [bool; REPLICAS as usize],
    count: u32,
}

impl ReplicaSet {
    /// A set of `count` replicas, at most [`REPLICAS`]; `is_alive` reports which are alive. The first writer comes
    /// first.
    #[must_use]
    pub fn new(count: u32, is_alive: impl Fn(usize) -> bool) -> Self {
        let count = count.min(REPLICAS);
        let alive = std::array::from_fn(|replica| replica < count as usize && is_alive(replica));
        Self { alive, count }
    }

    /// A set of `count` replicas, all alive.
    #[must_use]
    pub fn whole(count: u32) -> Self {
        Self::new(count, |_| true)
    }

    /// How many replicas there are.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
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

    /// The replica that writes: the first live one. `None` means that fewer than a [`quorum`] are alive to grant the
    /// lease.
    #[must_use]
    pub fn writer(&self) -> Option<usize> {
        if self.alive() < quorum(self.count) {
            return None;
        }
        self.alive.iter().position(|alive| *alive)
    }

    /// Whether a read at this level may be tried.
    ///
    /// # Errors
    /// [`Shortage`] when fewer replicas are alive than the level needs.
    pub fn admit(&self, consistency: Consistency) -> Result<(), Shortage> {
        self.require(consistency, needed_to_read(consistency, self.count))
    }

    /// Whether a write at this level may be tried.
    ///
    /// # Errors
    /// [`Shortage`] when fewer replicas are alive than [`needed_to_write`] requires.
    pub fn admit_write(&self, consistency: Consistency) -> Result<(), Shortage> {
        self.require(consistency, needed_to_write(consistency, self.count))
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

    /// Level, replicas that it needs of sets of two, three and four.
    const NEEDED: [(Consistency, [u32; 3]); 11] = [
        (Consistency::Any, [0, 0, 0]),
        (Consistency::One, [1, 1, 1]),
        (Consistency::LocalOne, [1, 1, 1]),
        (Consistency::Two, [2, 2, 2]),
        (Consistency::Three, [3, 3, 3]),
        (Consistency::Quorum, [2, 2, 3]),
        (Consistency::LocalQuorum, [2, 2, 3]),
        (Consistency::EachQuorum, [2, 2, 3]),
        (Consistency::Serial, [2, 2, 3]),
        (Consistency::LocalSerial, [2, 2, 3]),
        (Consistency::All, [2, 3, 4]),
    ];

    #[test]
    fn levels_are_admitted_as_the_table_says() {
        for (level, needed) in NEEDED {
            for (count, needed) in (2..).zip(needed) {
                for alive in 0..=count {
                    let set = ReplicaSet::new(count, |replica| replica < alive as usize);
                    let expected = |required| {
                        if alive >= required {
                            return Ok(());
                        }
                        Err(Shortage {
                            consistency: level,
                            required,
                            alive,
                        })
                    };
                    assert_eq!(
                        set.admit(level),
                        expected(needed),
                        "{level:?} with {alive} of {count} alive"
                    );
                    let to_write = needed.max(quorum(count));
                    assert_eq!(
                        set.admit_write(level),
                        expected(to_write),
                        "{level:?}, {alive} of {count}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_quorum_chooses_the_writer_and_decides_conditions() {
        for down in 0..=4 {
            let set = ReplicaSet::new(4, |replica| replica >= down);
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
        let writer = |count, down| ReplicaSet::new(count, |replica| replica >= down).writer();
        assert_eq!((writer(2, 0), writer(2, 1)), (Some(0), None));
        assert_eq!((writer(3, 1), writer(3, 2)), (Some(1), None));
    }

    #[test]
    fn two_quorums_always_meet() {
        for count in 1..=REPLICAS {
            assert!(quorum(count) * 2 > count);
            assert!(ReplicaSet::whole(count).admit(Consistency::All).is_ok());
        }
    }
}
