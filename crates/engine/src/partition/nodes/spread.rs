//! Assignment of replicas and tokens to nodes. Pure.

use crate::partition::faults::Place;
use crate::partition::replicas::{REPLICAS, ReplicaSet};

/// The tokens of a node, from 0, of `count`: the ends of every `count`th of four times as many equal parts of the ring.
/// So the first writers of a table with that many equal partitions own their tokens.
#[must_use]
pub fn tokens(node: usize, count: usize) -> Vec<i64> {
    let parts = 4 * count as u128;
    let end = |part: u128| {
        let behind = ((part + 1) << 64) / parts;
        i64::MIN.wrapping_add_unsigned(u64::try_from(behind - 1).unwrap_or(u64::MAX))
    };
    (0..parts)
        .filter(|part| part % count as u128 == node as u128)
        .map(end)
        .collect()
}

/// The numbers of nodes and of replicas in a set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    pub(super) nodes: usize,
    pub(super) replicas: usize,
}

impl Spread {
    /// The spread on a server of `count` nodes: on one, four virtual nodes without addresses.
    pub(super) fn of(count: usize) -> Self {
        let most = REPLICAS as usize;
        let nodes = if count == 1 { most } else { count };
        Self {
            nodes,
            replicas: nodes.min(most),
        }
    }

    /// The node of the first replica: partitions of one class share an order of nodes.
    pub(super) fn class(self, place: &Place<'_>) -> usize {
        usize::try_from(place.partition % self.nodes as u64).unwrap_or(0)
    }

    /// The node of a replica of a class.
    pub(super) const fn node(self, class: usize, replica: usize) -> usize {
        (class + replica) % self.nodes
    }

    pub(super) fn set(self, is_alive: impl Fn(usize) -> bool) -> ReplicaSet {
        ReplicaSet::new(u32::try_from(self.replicas).unwrap_or(REPLICAS), is_alive)
    }
}
