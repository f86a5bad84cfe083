//! The nodes of a fleet as the seats of replica sets. Pure decisions.
//!
//! A set has a seat on each of at most four nodes. Of more nodes it has the four that follow its token clockwise on the ring that clients
//! see. A node that died lately keeps its seats, and they are dead; one that is dead for longer has none, so that sets are smaller or have
//! the next node. A node that is alone has today's virtual four ([`super::nodes`]), all alive.
//!
//! Deliberately absent: when a node counts as dead. The fleet says so ([`super::Nodes::set_seats`]).

use std::net::IpAddr;

use super::replicas::{REPLICAS, ReplicaSet};

/// The seat of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seat {
    /// The end of the node's arc of the ring.
    pub token: i64,
    /// Where its clients connect.
    pub address: IpAddr,
    /// Whether the node is up.
    pub is_up: bool,
    /// Whether it owns the stores.
    pub is_owner: bool,
}

/// The nodes that have seats.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seats {
    /// In order of token.
    seats: Vec<Seat>,
}

impl Seats {
    /// Seats in any order.
    #[must_use]
    pub fn new(mut seats: Vec<Seat>) -> Self {
        seats.sort_unstable();
        Self { seats }
    }

    /// How many seats a set has.
    #[must_use]
    pub fn set_size(&self) -> u32 {
        match u32::try_from(self.seats.len()) {
            Ok(0 | 1) | Err(_) => REPLICAS,
            Ok(nodes) => nodes.min(REPLICAS),
        }
    }

    /// Whether every seat is alive.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.seats.len() < 2 || self.seats.iter().all(|seat| seat.is_up)
    }

    /// The set of a token.
    #[must_use]
    pub fn set_of(&self, token: i64) -> ReplicaSet {
        self.set_from(self.place(token))
    }

    /// The sets of all tokens from `first` to `last`, both inclusive.
    pub fn sets_of(&self, first: i64, last: i64) -> impl Iterator<Item = ReplicaSet> {
        let (first, last) = (self.place(first), self.place(last));
        // Every node has a seat in the one set of so few.
        let last = if self.seats.len() <= REPLICAS as usize {
            first
        } else {
            last
        };
        (first..=last).map(|place| self.set_from(place))
    }

    /// The seats of a token's set, the first one first. Empty for a node that is alone.
    pub fn seats_of(&self, token: i64) -> impl Iterator<Item = &Seat> {
        let count = if self.seats.len() < 2 {
            0
        } else {
            self.set_size() as usize
        };
        self.clockwise(self.place(token)).take(count)
    }

    /// All seats, over and over, from a place on.
    fn clockwise(&self, place: usize) -> impl Iterator<Item = &Seat> {
        let first = place.checked_rem(self.seats.len()).unwrap_or_default();
        self.seats.iter().cycle().skip(first)
    }

    /// The place of the node in whose arc a token lies; behind the last one for the rest of the ring, which is the first node's.
    fn place(&self, token: i64) -> usize {
        self.seats.partition_point(|seat| seat.token < token)
    }

    /// The set whose first seat is at a place.
    fn set_from(&self, place: usize) -> ReplicaSet {
        if self.seats.len() < 2 {
            return ReplicaSet::whole(REPLICAS);
        }
        let mut is_up = [false; REPLICAS as usize];
        for (up, seat) in is_up.iter_mut().zip(self.clockwise(place)) {
            *up = seat.is_up;
        }
        ReplicaSet::new(self.set_size(), |seat| is_up.get(seat).is_some_and(|up| *up))
    }
}

#[cfg(test)]
mod tests {
    use super::super::replicas::Shortage;
    use super::*;
    use helenus_types::consistency::Consistency;

    /// Nodes, each up or down, at tokens 0, 10, 20 and so on.
    fn seats(nodes: &[bool]) -> Seats {
        let seat = |(is_up, token): (&bool, i64)| Seat {
            token,
            address: [127, 0, 0, 1].into(),
            is_up: *is_up,
            is_owner: token == 0,
        };
        Seats::new(nodes.iter().zip((0..).step_by(10)).map(seat).collect())
    }

    #[test]
    fn levels_are_refused_by_how_many_seats_are_alive() {
        use Consistency::{All, LocalOne, LocalQuorum, One, Quorum, Serial, Three, Two};
        // Nodes that have seats, those that are up, level, required, whether it is refused.
        let rows = [
            (1, 1, Quorum, 3, false),
            (1, 1, All, 4, false),
            (2, 2, Quorum, 2, false),
            (2, 2, Three, 3, true),
            (2, 1, One, 1, false),
            (2, 1, LocalOne, 1, false),
            (2, 1, Two, 2, true),
            (2, 1, Quorum, 2, true),
            (2, 1, Serial, 2, true),
            (3, 2, LocalQuorum, 2, false),
            (3, 2, All, 3, true),
            (3, 1, Quorum, 2, true),
            (3, 1, One, 1, false),
            (4, 3, Quorum, 3, false),
            (4, 2, Quorum, 3, true),
            (4, 2, Two, 2, false),
            (4, 0, One, 1, true),
        ];
        for (nodes, up, level, required, is_refused) in rows {
            let all: Vec<bool> = (0..nodes).map(|node| node < up).collect();
            let set = seats(&all).set_of(7);
            let alive = if nodes == 1 { 4 } else { up };
            let refused = Shortage {
                consistency: level,
                required,
                alive,
            };
            let expected = if is_refused { Err(refused) } else { Ok(()) };
            assert_eq!(set.admit(level), expected, "{level:?}, {up} of {nodes}");
            assert_eq!(set.alive(), alive);
        }
        let alone = seats(&[false]);
        assert!(alone.is_whole() && alone.set_of(0).alive() == 4);
        assert!(!seats(&[true, false]).is_whole());
    }

    #[test]
    fn a_set_is_the_four_nodes_clockwise_from_its_token() {
        let up = [true, true, false, false, true, true];
        let six = seats(&up);
        // Tokens, and how many of their sets are alive.
        for (token, alive) in [
            (i64::MIN, 2),
            (0, 2),
            (1, 2),
            (10, 2),
            (20, 2),
            (30, 3),
            (31, 4),
            (50, 3),
            (51, 2),
            (i64::MAX, 2),
        ] {
            assert_eq!(six.set_of(token).alive(), alive, "{token}");
        }
        let alive = |first, last| -> Vec<u32> { six.sets_of(first, last).map(|set| set.alive()).collect() };
        assert_eq!(alive(25, 45), [3, 4, 3]);
        assert_eq!(alive(45, i64::MAX), [3, 2]);
        assert_eq!(alive(i64::MIN, i64::MAX).len(), 7);
        let tokens = |seats: &Seats, token| -> Vec<i64> { seats.seats_of(token).map(|seat| seat.token).collect() };
        assert_eq!(tokens(&six, 31), [40, 50, 0, 10]);
        assert_eq!(tokens(&seats(&up[..2]), 99), [0, 10]);
        assert_eq!(tokens(&seats(&up[..1]), 0), [0; 0]);
        assert_eq!(tokens(&Seats::default(), 0), [0; 0]);
        assert_eq!(seats(&up[..4]).sets_of(i64::MIN, i64::MAX).count(), 1);
    }
}
