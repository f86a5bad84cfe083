//! Who tries to take the lease, and when: the nodes in their order, one after the other. Pure.
//!
//! ```text
//! nodes a b c d, b is lost      c at 0 ms, d at 150 ms, a at 300 ms, c again at 450 ms …
//! ```
//! All nodes see about the same order, from the catalog, and find the lease over at about the same time. A node that comes
//! too early does no harm: the bucket gives the lease to one. The order begins after the lost holder, or with the node that
//! it named when it released the lease.

use std::time::Duration;

use super::transport::PeerName;

/// The time between the attempts of two nodes: longer than a conditional put takes in most buckets.
pub const TURN: Duration = Duration::from_millis(150);

/// A node's place in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// How many nodes try before it in a round.
    before: u32,
    /// Nodes that try.
    nodes: u32,
}

impl Turn {
    /// The turn of `me` among `nodes`, in their order. `lost` held the lease; `next` is the node that it named. A node that
    /// is not in the list comes after all of them.
    #[must_use]
    pub fn of(me: &PeerName, nodes: &[PeerName], lost: Option<&PeerName>, next: Option<&PeerName>) -> Self {
        let place = |name: &PeerName| nodes.iter().position(|node| node == name);
        let first = next
            .and_then(place)
            .or_else(|| lost.and_then(place).map(|lost| lost + 1));
        let (before, after) = nodes.split_at_checked(first.unwrap_or(0)).unwrap_or((nodes, &[]));
        let order = after
            .iter()
            .chain(before)
            .filter(|node| Some(*node) != lost || *node == me);
        let mut turn = Self { before: 0, nodes: 0 };
        let mut is_found = false;
        for node in order {
            is_found |= node == me;
            turn.before += u32::from(!is_found);
            turn.nodes += 1;
        }
        turn.nodes += u32::from(!is_found);
        turn
    }

    /// When the node tries first, after it found the lease over.
    #[must_use]
    pub fn first(self, over: Duration) -> Duration {
        over + TURN * self.before
    }

    /// When it tries again, after an attempt that failed: when all others had their turn.
    #[must_use]
    pub fn again(self, tried: Duration) -> Duration {
        tried + TURN * self.nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<PeerName> {
        text.split_whitespace().map(PeerName::from).collect()
    }

    /// The nodes that try, by when.
    fn order(nodes: &str, lost: Option<&str>, next: Option<&str>) -> String {
        let nodes = names(nodes);
        let (lost, next) = (lost.map(PeerName::from), next.map(PeerName::from));
        let turn = |me: &PeerName| Turn::of(me, &nodes, lost.as_ref(), next.as_ref());
        let mut all: Vec<_> = nodes.iter().filter(|me| Some(*me) != lost.as_ref()).collect();
        all.sort_by_key(|me| turn(me).first(Duration::ZERO));
        let texts = all
            .iter()
            .map(|me| format!("{me}{}", turn(me).first(Duration::ZERO).as_millis()));
        texts.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_nodes_try_one_after_the_other() {
        for (nodes, lost, next, expected) in [
            ("a b c d", Some("b"), None, "c0 d150 a300"),
            ("a b c d", Some("d"), None, "a0 b150 c300"),
            ("a b c d", Some("b"), Some("a"), "a0 c150 d300"),
            ("a b c d", Some("b"), Some("gone"), "c0 d150 a300"),
            ("a b c d", Some("b"), Some("b"), "c0 d150 a300"),
            ("a b", Some("unknown"), None, "a0 b150"),
            ("a b", None, None, "a0 b150"),
        ] {
            assert_eq!(order(nodes, lost, next), expected, "{nodes} {lost:?} {next:?}");
        }
    }

    #[test]
    fn no_two_nodes_try_at_once_in_any_round() {
        let nodes = names("a b c d e");
        for lost in &nodes {
            let mut attempts = Vec::new();
            for me in nodes.iter().filter(|me| *me != lost) {
                let turn = Turn::of(me, &nodes, Some(lost), None);
                let mut at = turn.first(Duration::from_secs(1));
                for _ in 0..5 {
                    attempts.push(at);
                    at = turn.again(at);
                }
            }
            attempts.sort();
            assert!(
                attempts.windows(2).all(|pair| pair[1] - pair[0] == TURN),
                "{attempts:?}"
            );
        }
    }

    #[test]
    fn a_node_that_nobody_knows_and_one_that_returns_get_a_turn() {
        let nodes = names("a b c");
        let (stranger, lost) = (PeerName::from("x"), PeerName::from("b"));
        let turn = Turn::of(&stranger, &nodes, Some(&lost), None);
        assert_eq!(turn, Turn { before: 2, nodes: 3 });
        let own = Turn::of(&lost, &nodes, Some(&lost), None);
        assert_eq!(own, Turn { before: 2, nodes: 3 });
        let alone = Turn::of(&lost, &[], None, None);
        assert_eq!((alone.first(TURN), alone.again(TURN)), (TURN, 2 * TURN));
    }
}
