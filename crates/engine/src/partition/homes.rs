//! Where the physical partitions of tables lie when no move has placed them: in the main store, or spread over data
//! stores by arcs of the ring.
//!
//! ```text
//! four data stores, numbers 1 to 4:   -2^63 ── 1 ── -2^62 ── 2 ── 0 ── 3 ── 2^62 ── 4 ── 2^63
//! ```
//! A partition goes to the store of the arc in which it begins. So rows with one partition key lie in one store,
//! whichever table they are of, if each table has a partition for each arc. A table with fewer partitions than there
//! are data stores begins at another store than its neighbours: otherwise all small tables would lie in the first ones.

use super::ring::StoreId;
use helenus_storage::storage::{Store, TableId};

/// The stores in which partitions lie when no move has placed them. Fixed while the server runs.
#[derive(Clone, Debug)]
pub struct Homes {
    main: Store,
    /// In the order of their arcs; empty: everything lies in the main store.
    data: Vec<(StoreId, Store)>,
}

impl Homes {
    /// With these data stores, in the order of their arcs.
    #[must_use]
    pub const fn new(main: Store, data: Vec<(StoreId, Store)>) -> Self {
        Self { main, data }
    }

    /// The main store alone.
    #[must_use]
    pub const fn in_main(main: Store) -> Self {
        Self::new(main, Vec::new())
    }

    /// Number of stores: at least one.
    #[must_use]
    pub fn count(&self) -> usize {
        self.data.len().max(1)
    }

    /// Whether a store stays, even if no partition lies there.
    #[must_use]
    pub fn is_kept(&self, store: StoreId) -> bool {
        store == StoreId::MAIN || self.data.iter().any(|(id, _)| *id == store)
    }

    /// The stores that stay, the main one first.
    pub fn kept(&self) -> impl Iterator<Item = (StoreId, &Store)> {
        let data = self.data.iter().map(|(id, store)| (*id, store));
        std::iter::once((StoreId::MAIN, &self.main)).chain(data)
    }

    /// The home of a table's physical partition that begins at a token; `partitions` is the number that the table has.
    #[must_use]
    pub fn of(&self, table: TableId, partitions: usize, lower: i64) -> (StoreId, &Store) {
        let stores = self.data.len();
        // The offset from the lowest token, below 2^64. Arc `n` begins at `n * 2^64 / stores`, rounded down.
        let offset = u128::from(lower.wrapping_sub(i64::MIN).cast_unsigned());
        let arc = ((offset + 1) * stores as u128).saturating_sub(1) >> 64;
        let arc = usize::try_from(arc).unwrap_or(0);
        let turn = if partitions < stores { table as usize } else { 0 };
        let home = self.data.get((arc + turn).checked_rem(stores).unwrap_or(0));
        home.map_or((StoreId::MAIN, &self.main), |(id, store)| (*id, store))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::TablePartitions;
    use helenus_base::clock::Clock;
    use helenus_storage::storage::{Options, Url};

    async fn store() -> Store {
        let (url, clock) = (Url::Memory, Clock::manual(0));
        Store::open(&url, &Options::default(), clock).await.unwrap()
    }

    #[tokio::test]
    async fn partitions_lie_in_the_stores_of_their_arcs() {
        let main = store().await;
        let alone = Homes::in_main(main.clone());
        assert_eq!(alone.count(), 1);
        assert_eq!(alone.of(7, 1, 5).0, StoreId::MAIN);
        let mut data = Vec::new();
        for number in [1, 2, 5] {
            data.push((StoreId(number), store().await));
        }
        let homes = Homes::new(main, data);
        assert!(homes.is_kept(StoreId::MAIN) && homes.is_kept(StoreId(5)) && !homes.is_kept(StoreId(3)));
        let stores = |table, count| {
            let map = TablePartitions::at_home(count, table, &homes);
            map.map().check().unwrap();
            let all = map.all().iter().map(|partition| partition.store_id.0);
            all.collect::<Vec<_>>()
        };
        for table in [300, 301] {
            assert_eq!(stores(table, 3), [1, 2, 5]);
            assert_eq!(stores(table, 6), [1, 1, 2, 2, 5, 5]);
        }
        assert_eq!([stores(300, 1), stores(301, 1), stores(302, 1)], [[1], [2], [5]]);
        assert_eq!(stores(301, 2), [2, 5]);
        assert_eq!(homes.of(300, 3, i64::MAX).0, StoreId(5));
        assert!(!TablePartitions::at_home(1, 300, &homes).is_unrecorded());
    }
}
