//! Physical partitions: which store holds which part of a table's ring.

use std::sync::Arc;

use super::replicas::ReplicaSet;
use super::store::Store;
use crate::token::Token;

/// The number of a physical partition; never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PhysicalPartitionId(pub u64);

/// The number of a store among those that this server has open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreId(pub u32);

/// A contiguous token range of one table, and the store that holds it.
#[derive(Clone, Debug)]
pub struct PhysicalPartition {
    /// Its number.
    pub id: PhysicalPartitionId,
    /// Rises when the range or the store changes, so that a request that routed by an older map notices.
    pub epoch: u64,
    /// Lowest token, inclusive.
    pub lower: i64,
    /// Highest token, inclusive.
    pub upper: i64,
    /// Who is alive of its replicas.
    pub replicas: ReplicaSet,
    /// The store's number: what is written to one store can be one commit.
    pub store_id: StoreId,
    /// Where its rows are.
    pub store: Store,
}

/// A table's physical partitions: sorted, without gap or overlap, from −2^63 to 2^63−1.
#[derive(Clone, Debug)]
pub struct TablePartitions {
    partitions: Vec<Arc<PhysicalPartition>>,
}

impl TablePartitions {
    /// One physical partition over the whole ring, as every table starts.
    #[must_use]
    pub fn whole(id: PhysicalPartitionId, store_id: StoreId, store: Store) -> Self {
        Self {
            partitions: vec![Arc::new(PhysicalPartition {
                id,
                epoch: 0,
                lower: i64::MIN,
                upper: i64::MAX,
                replicas: ReplicaSet::default(),
                store_id,
                store,
            })],
        }
    }

    /// Where a logical partition lives.
    ///
    /// # Panics
    /// Never: the ring is covered.
    #[must_use]
    pub fn of(&self, token: Token) -> &PhysicalPartition {
        let place = self
            .partitions
            .partition_point(|partition| partition.upper < token.value());
        #[expect(clippy::expect_used, reason = "a table's partitions cover the ring")]
        self.partitions.get(place).expect("the ring is covered")
    }

    /// The physical partitions that a token range touches, in order of token.
    #[must_use]
    pub fn overlapping(&self, lower: i64, upper: i64) -> &[Arc<PhysicalPartition>] {
        if lower > upper {
            return &[];
        }
        let first = self.partitions.partition_point(|partition| partition.upper < lower);
        let last = self.partitions.partition_point(|partition| partition.lower <= upper);
        self.partitions.get(first..last).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::{Options, Url};
    use super::*;
    use crate::clock::Clock;

    #[tokio::test]
    async fn tokens_and_ranges_find_their_partitions() {
        let store = Store::open(&Url::Memory, &Options::default(), Clock::manual(0))
            .await
            .unwrap();
        let part = |id: u64, lower: i64, upper: i64| {
            let whole = TablePartitions::whole(PhysicalPartitionId(id), StoreId(0), store.clone());
            let mut part = PhysicalPartition::clone(whole.of(Token::MIN));
            (part.lower, part.upper) = (lower, upper);
            Arc::new(part)
        };
        let table = TablePartitions {
            partitions: vec![part(1, i64::MIN, -10), part(2, -9, 10), part(3, 11, i64::MAX)],
        };
        for (token, id) in [(i64::MIN, 1), (-10, 1), (-9, 2), (10, 2), (11, 3), (i64::MAX, 3)] {
            assert_eq!(table.of(Token::bound(token)).id.0, id, "{token}");
        }
        let ids = |lower, upper| {
            table
                .overlapping(lower, upper)
                .iter()
                .map(|part| part.id.0)
                .collect::<Vec<_>>()
        };
        assert_eq!(ids(i64::MIN, i64::MAX), [1, 2, 3]);
        assert_eq!(ids(-10, -9), [1, 2]);
        assert_eq!(ids(0, 0), [2]);
        assert_eq!(ids(1, 0), [] as [u64; 0]);
        assert_eq!(ids(11, i64::MAX), [3]);
    }
}
