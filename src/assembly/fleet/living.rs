//! Which nodes are up, which have seats in replica sets, and which are forgotten: by how long ago each asked the owner last.
//!
//! ```text
//! silent for    up      has seats   in the list
//! < 2 s         yes     yes         yes
//! < 10 s        no      yes         yes
//! < 10 min      no      no          yes
//! ```
//! A new owner begins with what its own edge knows of the nodes, and takes the same from others that ask. The owner before it is down until it
//! asks. The others had no owner to ask, so they count as up, as if they had asked now.
//!
//! Deliberately absent: how levels are judged by the seats (`engine::fault_injection`).

use std::collections::BTreeMap;
use std::time::Duration;

use super::messages::{KnownNode, LastKnown, Node};
use helenus_engine::engine::shown::ClusterNode;
use helenus_engine::partition::{Seat, Seats};
use helenus_schema::schema::node::{NodeInfo, Peer};

/// How long after its last question a node counts as up.
const UP: Duration = Duration::from_secs(2);

/// How long after its last question a node has seats.
const SEATED: Duration = Duration::from_secs(10);

/// How long a node that is down stays in the list.
const FORGOTTEN: Duration = Duration::from_secs(600);

/// A moment, by two clocks of the owner.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    /// Time that also passes in sleep, from any beginning.
    pub(super) through_sleep: Duration,
    /// Milliseconds since 1970-01-01 UTC.
    pub(super) wall_millis: i64,
}

#[derive(Debug)]
struct Living {
    known: KnownNode,
    /// When it asked last. `None` means before the clock began.
    asked: Option<Duration>,
    /// The start of the node that asked last. `None` means that it has not asked this owner.
    incarnation: Option<u64>,
}

/// The nodes that the owner knows, by name.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    nodes: BTreeMap<String, Living>,
}

impl Nodes {
    /// Takes the nodes that an edge knows from an earlier owner, unless they are known already.
    pub(super) fn remember(&mut self, last: &LastKnown, now: Now) {
        let heard = now.through_sleep.checked_sub(Duration::from_millis(last.silent_millis));
        for known in &last.nodes {
            let was_owner = last.owner.as_ref() == Some(&known.node.name);
            self.nodes.entry(known.node.name.clone()).or_insert_with(|| {
                let is_up = known.is_up && !was_owner;
                Living {
                    known: KnownNode {
                        is_up,
                        since_millis: if is_up == known.is_up {
                            known.since_millis
                        } else {
                            now.wall_millis
                        },
                        ..known.clone()
                    },
                    asked: if is_up { Some(now.through_sleep) } else { heard },
                    incarnation: None,
                }
            });
        }
    }

    /// Where another process with this name is up.
    pub(super) fn namesake(&self, name: &str, incarnation: u64) -> Option<String> {
        let living = self.nodes.get(name).filter(|living| living.known.is_up)?;
        let is_other = living.incarnation.is_some_and(|found| found != incarnation);
        is_other.then(|| living.known.node.fleet_address.clone())
    }

    /// Notes that a node has asked. One that is down and had one of its addresses is forgotten: it has another name now.
    pub(super) fn asked(&mut self, node: &Node, incarnation: u64, now: Now) {
        self.nodes.retain(|name, living| {
            let other = &living.known.node;
            let is_same_place = other.fleet_address == node.fleet_address || other.address == node.address;
            living.known.is_up || *name == node.name || !is_same_place
        });
        let before = self.nodes.get(&node.name).map(|before| &before.known);
        let since = before.filter(|before| before.is_up).map(|before| before.since_millis);
        let living = Living {
            known: KnownNode {
                node: node.clone(),
                is_up: true,
                has_seats: true,
                since_millis: since.unwrap_or(now.wall_millis),
            },
            asked: Some(now.through_sleep),
            incarnation: Some(incarnation),
        };
        self.nodes.insert(node.name.clone(), living);
    }

    /// Follows the time: nodes go down, lose their seats, are forgotten.
    pub(super) fn pass(&mut self, now: Now) {
        self.nodes.retain(|_, living| {
            let silent = living.asked.map(|asked| now.through_sleep.saturating_sub(asked));
            let within = |limit| silent.is_some_and(|silent| silent < limit);
            let known = &mut living.known;
            if known.is_up && !within(UP) {
                known.is_up = false;
                known.since_millis = now.wall_millis;
            }
            known.has_seats &= within(SEATED);
            within(FORGOTTEN)
        });
    }

    /// Forgets a node that is down.
    ///
    /// # Errors
    /// It is up, or unknown: the reason, for the operator.
    pub(super) fn forget(&mut self, name: &str) -> Result<(), String> {
        match self.nodes.get(name) {
            None => Err(format!("there is no node {name}")),
            Some(living) if living.known.is_up => Err(format!("node {name} is up: end it first")),
            Some(_) => {
                self.nodes.remove(name);
                Ok(())
            }
        }
    }

    /// The nodes, in order of their names.
    pub(super) fn list(&self) -> Vec<KnownNode> {
        self.nodes.values().map(|living| living.known.clone()).collect()
    }
}

/// The seats of nodes that are in order of their names, as clients see these on the ring.
pub(super) fn seats(nodes: &[KnownNode], owner: &str) -> Seats {
    let places = nodes.iter().enumerate().filter(|(_, known)| known.has_seats);
    let seats = places.map(|(place, known)| Seat {
        token: end_of_arc(place, nodes.len()),
        address: known.node.address.ip(),
        is_up: known.is_up,
        is_owner: known.node.name == owner,
    });
    Seats::new(seats.collect())
}

/// The ring as clients of the node with this name see it. `nodes` are in order of their names.
pub(super) fn ring(node: &NodeInfo, nodes: &[KnownNode], own: &str) -> NodeInfo {
    let mut ring = node.clone();
    ring.peers.clear();
    for (place, known) in nodes.iter().enumerate() {
        let tokens = vec![end_of_arc(place, nodes.len())];
        if known.node.name == own {
            ring.tokens = tokens;
            continue;
        }
        ring.peers.push(Peer {
            address: known.node.address.ip(),
            port: ring.port,
            native_address: known.node.address.ip(),
            native_port: known.node.address.port(),
            host_id: known.node.host_id,
            data_center: known.node.data_center.clone(),
            rack: known.node.rack.clone(),
            tokens,
        });
    }
    ring
}

/// The nodes, as people see them.
pub(super) fn shown(nodes: &[KnownNode], owner: Option<&str>) -> Vec<ClusterNode> {
    let shown = |known: &KnownNode| {
        let node = &known.node;
        ClusterNode {
            name: node.name.clone(),
            host_id: node.host_id,
            address: node.address,
            fleet_address: Some(node.fleet_address.clone()),
            data_center: node.data_center.clone(),
            rack: node.rack.clone(),
            is_up: known.is_up,
            is_owner: owner == Some(node.name.as_str()),
            since_millis: Some(known.since_millis),
        }
    };
    nodes.iter().map(shown).collect()
}

/// The token of a node: the end of its arc of the ring, of as many equal ones as there are nodes.
pub(super) fn end_of_arc(place: usize, nodes: usize) -> i64 {
    let (place, nodes) = (place as u128, nodes.max(1) as u128);
    let behind = ((place + 1) << 64) / nodes;
    i64::MIN.wrapping_add_unsigned(u64::try_from(behind - 1).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_types::consistency::Consistency;

    fn node(name: &str) -> Node {
        Node {
            name: name.to_owned(),
            host_id: uuid::Uuid::nil(),
            address: ([127, 0, 0, name.as_bytes()[0]], 9042).into(),
            fleet_address: format!("127.0.0.{}:7000", name.as_bytes()[0]),
            data_center: "d".to_owned(),
            rack: "r".to_owned(),
        }
    }

    fn at(seconds: u64) -> Now {
        Now {
            through_sleep: Duration::from_secs(1000 + seconds),
            wall_millis: i64::try_from(seconds * 1000).unwrap(),
        }
    }

    /// Name, whether it is up, whether it has seats, since which second.
    fn shown(nodes: &Nodes) -> Vec<(String, bool, bool, i64)> {
        let shown = |known: KnownNode| (known.node.name, known.is_up, known.has_seats, known.since_millis / 1000);
        nodes.list().into_iter().map(shown).collect()
    }

    #[test]
    fn a_silent_node_goes_down_loses_its_seats_and_is_forgotten() {
        let mut nodes = Nodes::default();
        nodes.asked(&node("b"), 1, at(0));
        // Seconds since both were there, whether the silent one is up and has seats, since when it is as it is; whether QUORUM is met.
        let rows = [
            (1, Some((true, true, 0)), true),
            (2, Some((false, true, 2)), false),
            (9, Some((false, true, 2)), false),
            (10, Some((false, false, 2)), true),
            (599, Some((false, false, 2)), true),
            (600, None, true),
        ];
        let mut rows = rows.into_iter().peekable();
        for second in 0..=600 {
            nodes.asked(&node("a"), 1, at(second));
            nodes.pass(at(second));
            let Some((_, silent, is_met)) = rows.next_if(|(row, ..)| *row == second) else {
                continue;
            };
            let mut expected = vec![("a".to_owned(), true, true, 0)];
            expected.extend(silent.map(|(up, seats, since)| ("b".to_owned(), up, seats, since)));
            assert_eq!(shown(&nodes), expected, "after {second} s");
            let set = seats(&nodes.list(), "a").set_of(0);
            assert_eq!(set.admit(Consistency::Quorum).is_ok(), is_met, "after {second} s");
            assert!(set.admit(Consistency::One).is_ok());
        }
        nodes.asked(&node("b"), 1, at(601));
        assert_eq!(shown(&nodes)[1], ("b".to_owned(), true, true, 601));
    }

    #[test]
    fn a_new_owner_takes_the_one_before_it_for_dead() {
        let mut before = Nodes::default();
        for name in ["a", "b", "c", "d"] {
            before.asked(&node(name), 1, at(0));
        }
        for name in ["a", "b", "c"] {
            before.asked(&node(name), 1, at(1));
            before.asked(&node(name), 1, at(3));
        }
        before.pass(at(3));
        let last = LastKnown {
            nodes: before.list(),
            owner: Some("a".to_owned()),
            silent_millis: 4000,
        };
        let mut nodes = Nodes::default();
        nodes.remember(&last, at(7));
        nodes.pass(at(7));
        let row = |name: &str, up, seats, since| (name.to_owned(), up, seats, since);
        let expected = [
            row("a", false, true, 7),
            row("b", true, true, 0),
            row("c", true, true, 0),
            row("d", false, true, 3),
        ];
        assert_eq!(shown(&nodes), expected);
        // Ten seconds after an answer of the owner before.
        nodes.asked(&node("b"), 1, at(8));
        nodes.remember(&last, at(13));
        nodes.pass(at(13));
        assert_eq!(shown(&nodes)[0], row("a", false, false, 7));
        nodes.asked(&node("b"), 1, at(13));
        assert!(nodes.forget("b").is_err() && nodes.forget("z").is_err());
        assert_eq!((nodes.forget("d"), nodes.list().len()), (Ok(()), 3));
        assert_eq!(shown(&nodes)[2], row("c", false, true, 13));
    }

    #[test]
    fn a_node_under_another_name_takes_the_place_of_a_dead_one_and_a_name_has_one_process() {
        let mut nodes = Nodes::default();
        nodes.asked(&node("a"), 1, at(0));
        nodes.asked(&node("b"), 1, at(0));
        let renamed = Node {
            name: "c".to_owned(),
            ..node("b")
        };
        nodes.asked(&renamed, 2, at(1));
        assert_eq!(nodes.list().len(), 3, "both are up");
        nodes.asked(&node("a"), 1, at(3));
        nodes.pass(at(3));
        nodes.asked(&renamed, 2, at(3));
        let names: Vec<_> = shown(&nodes).into_iter().map(|(name, ..)| name).collect();
        assert_eq!(names, ["a", "c"]);
        assert_eq!(nodes.namesake("c", 2), None);
        assert_eq!(nodes.namesake("c", 3), Some(renamed.fleet_address.clone()));
        assert_eq!(nodes.namesake("d", 3), None);
        nodes.pass(at(5));
        assert_eq!(nodes.namesake("c", 3), None, "it is down");
    }

    #[test]
    fn arcs_are_even_and_end_with_the_ring() {
        for nodes in 1..8 {
            assert_eq!(end_of_arc(nodes - 1, nodes), i64::MAX);
        }
        assert_eq!(end_of_arc(0, 4), i64::MIN + (1 << 62) - 1);
    }
}
