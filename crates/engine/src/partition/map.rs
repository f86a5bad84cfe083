//! The physical partitions of a table as requests use them: the map, and the live state of each partition that this
//! machine serves.
//!
//! A partition map is immutable: a split or merge makes the next one, under the next epoch. A request uses the map that
//! it began with until its end.

use std::sync::{Arc, Weak};

use tokio::sync::Semaphore;

use super::homes::Homes;
use super::hosted::{Hosted, range_of};
use super::latch::PartitionLatch;
use super::ring::{MapError, PartitionMap, PhysicalPartition, PhysicalPartitionId, Placement, StoreId};
use crate::throughput::TableBudget;
use helenus_storage::storage::{Estimate, Store, TableId, key};
use helenus_types::token::{KeyBound, KeySpan, Token};

/// Shared by a map and its clones. A task that waits for the end of their use waits on the semaphore, which closes when
/// the last one is dropped.
#[derive(Debug)]
struct InUse(Arc<Semaphore>);

impl Default for InUse {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// A table's physical partitions, in order, over the whole ring.
#[derive(Clone, Debug)]
pub struct TablePartitions {
    map: PartitionMap,
    /// The live partitions, one for each entry of the map, in the same order.
    hosted: Vec<Arc<Hosted>>,
    /// The table's budget; `None` means no limit. A changed map keeps its predecessor's budget until it gets its own.
    budget: Option<Arc<TableBudget>>,
    /// Lives as long as any request uses this map.
    in_use: Arc<InUse>,
    /// The same for earlier maps of the table.
    older: Vec<Weak<InUse>>,
}

impl TablePartitions {
    /// One physical partition over the whole ring.
    #[must_use]
    pub fn whole(store_id: StoreId, store: Store) -> Self {
        Self::evenly(1, store_id, &store)
    }

    /// `count` physical partitions (at least one, at most [`super::PARTITIONS_MAX`]) of equal parts of the ring, all in
    /// one store.
    #[must_use]
    pub fn evenly(count: usize, store_id: StoreId, store: &Store) -> Self {
        Self::first(PartitionMap::evenly(count, store_id), |_| store.clone())
    }

    /// The same for a table of this number, each partition in its home.
    #[must_use]
    pub fn at_home(count: usize, table: TableId, homes: &Homes) -> Self {
        let home = |lower| homes.of(table, count, lower);
        let map = PartitionMap::evenly_over(count, |lower| home(lower).0);
        Self::first(map, |partition| home(partition.lower()).1.clone())
    }

    /// One physical partition of a table that is ordered by partition key.
    #[must_use]
    pub fn ordered(store_id: StoreId, store: &Store) -> Self {
        Self::first(PartitionMap::ordered(store_id), |_| store.clone())
    }

    fn first(map: PartitionMap, store_of: impl Fn(&PhysicalPartition) -> Store) -> Self {
        let fresh = |of: &PhysicalPartition| {
            Arc::new(Hosted::new(
                (of.clone(), map.placement()),
                store_of(of),
                Arc::default(),
                Arc::default(),
            ))
        };
        let hosted = map.all().iter().map(fresh).collect();
        Self::of_hosted(map, hosted)
    }

    fn of_hosted(map: PartitionMap, hosted: Vec<Arc<Hosted>>) -> Self {
        Self {
            map,
            hosted,
            budget: None,
            in_use: Arc::default(),
            older: Vec::new(),
        }
    }

    /// The table's budget, by physical partition; `None` means no limit.
    #[must_use]
    pub fn budget(&self) -> Option<&TableBudget> {
        self.budget.as_deref()
    }

    /// Sets the budget.
    pub fn set_budget(&mut self, budget: Option<Arc<TableBudget>>) {
        self.budget = budget;
    }

    /// The recorded map.
    #[must_use]
    pub const fn map(&self) -> &PartitionMap {
        &self.map
    }

    /// Rises with every change of the map.
    #[must_use]
    pub const fn epoch(&self) -> u64 {
        self.map.epoch()
    }

    /// All, in order.
    #[must_use]
    pub fn all(&self) -> &[Arc<Hosted>] {
        &self.hosted
    }

    /// The partition of this number.
    #[must_use]
    pub fn find(&self, id: PhysicalPartitionId) -> Option<&Arc<Hosted>> {
        self.hosted.iter().find(|partition| partition.id == id)
    }

    /// Whether it is the map of a table without a recorded one: one partition, never changed, of hashed keys.
    #[must_use]
    pub fn is_unrecorded(&self) -> bool {
        self.map.is_unrecorded()
    }

    /// How the table's partition keys get their tokens.
    #[must_use]
    pub const fn placement(&self) -> Placement {
        self.map.placement()
    }

    /// The token of a partition key of this table.
    #[must_use]
    pub fn token(&self, partition_key: &[u8]) -> Token {
        self.placement().token(partition_key)
    }

    /// The bound before a logical partition at which a physical one may begin: before the whole token where keys are
    /// hashed.
    #[must_use]
    pub fn bound(&self, partition_key: &[u8]) -> KeyBound {
        let token = self.token(partition_key);
        match self.placement() {
            Placement::Hash => KeyBound::at_token(token.value()),
            Placement::Key => KeyBound::at_key(token, partition_key),
        }
    }

    /// The position of a logical partition: its token, and the physical partition that contains it.
    ///
    /// # Panics
    /// Never: the ring is covered.
    #[must_use]
    pub fn place(&self, partition_key: &[u8]) -> (Token, &Arc<Hosted>) {
        let token = self.token(partition_key);
        (token, self.at(token, partition_key))
    }

    /// The physical partition of a logical partition whose token is known.
    ///
    /// # Panics
    /// Never: the ring is covered.
    #[must_use]
    pub fn at(&self, token: Token, partition_key: &[u8]) -> &Arc<Hosted> {
        let number = self.map.number(token.value(), partition_key);
        #[expect(clippy::expect_used, reason = "a table's partitions cover the ring")]
        self.hosted.get(number).expect("the ring is covered")
    }

    /// The physical partition that begins at a bound or contains the keys after it.
    ///
    /// # Panics
    /// Never: the ring is covered.
    #[must_use]
    pub fn at_bound(&self, bound: &KeyBound) -> &Arc<Hosted> {
        self.at(Token::bound(bound.token()), bound.partition_key())
    }

    /// The physical partitions that a span touches, in order.
    #[must_use]
    pub fn touched(&self, span: &KeySpan) -> &[Arc<Hosted>] {
        self.hosted.get(self.map.touched(span)).unwrap_or_default()
    }

    /// The map with the partition of a bound split in two: one ends before the bound, one begins at it. Both have new
    /// ids.
    ///
    /// # Errors
    /// [`MapError::AtBoundary`], [`MapError::TooMany`].
    pub fn split(&self, at: &KeyBound) -> Result<Self, MapError> {
        self.after_change(self.map.split(at)?)
    }

    /// The map with partitions split at each of these bounds, and the number of splits. Bounds at which a partition
    /// begins already are skipped, and so are those beyond the largest number of partitions.
    ///
    /// # Errors
    /// As [`TablePartitions::split`], if every bound was skipped.
    pub fn split_all(&self, places: &[KeyBound]) -> Result<(Self, usize), MapError> {
        let (mut map, mut splits, mut refused) = (self.map.clone(), 0, None);
        for at in places {
            match map.split(at) {
                Ok(next) => {
                    map = next;
                    splits += 1;
                }
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        match refused.filter(|_| splits == 0) {
            Some(error) => Err(error),
            None => Ok((self.after_change(map)?, splits)),
        }
    }

    /// The map with two neighbours merged into one, which has a new id.
    ///
    /// # Errors
    /// [`MapError::Unknown`], [`MapError::NotNeighbours`], [`MapError::Apart`].
    pub fn merge(&self, left: PhysicalPartitionId, right: PhysicalPartitionId) -> Result<Self, MapError> {
        self.after_change(self.map.merge(left, right)?)
    }

    /// The map with at least `count` partitions; see [`PartitionMap::grown_to`].
    ///
    /// # Errors
    /// As [`TablePartitions::split`]; never in practice.
    pub fn grown_to(&self, count: usize) -> Result<Self, MapError> {
        let grown = self.map.grown_to(count)?;
        if grown.epoch() == self.epoch() {
            return Ok(self.clone());
        }
        self.after_change(grown)
    }

    /// Makes a changed map usable. Unchanged partitions keep their latches. New ones lie in the store of those that
    /// they replace, and a holder of a new latch waits for writers that still hold the old ones.
    fn after_change(&self, map: PartitionMap) -> Result<Self, MapError> {
        let hosted = map.all().iter().map(|of| {
            let parents = self.touched(&of.span);
            let first = parents.first().ok_or(MapError::Damaged)?;
            if first.descriptor() == of {
                return Ok(Arc::clone(first));
            }
            let store = first.store().clone();
            let latch = PartitionLatch::after(parents.iter().map(|parent| &parent.latch));
            Ok(Arc::new(Hosted::new(
                (of.clone(), map.placement()),
                store,
                Arc::new(latch),
                Arc::default(),
            )))
        });
        let hosted = hosted.collect::<Result<_, MapError>>()?;
        Ok(self.next(map, hosted))
    }

    fn next(&self, map: PartitionMap, hosted: Vec<Arc<Hosted>>) -> Self {
        let mut next = Self {
            map,
            hosted,
            ..self.clone()
        };
        next.older.retain(|older| older.strong_count() > 0);
        next.older.push(Arc::downgrade(&self.in_use));
        next.in_use = Arc::default();
        next
    }

    /// The map with one partition, of the same range and id, in another store.
    ///
    /// # Errors
    /// [`MapError::Unknown`].
    pub fn moved(&self, id: PhysicalPartitionId, store_id: StoreId, store: &Store) -> Result<Self, MapError> {
        let map = self.map.moved(id, store_id)?;
        let hosted = map.all().iter().zip(&self.hosted).map(|(of, old)| {
            if of.id == id {
                Arc::new(Hosted::new(
                    (of.clone(), map.placement()),
                    store.clone(),
                    Arc::default(),
                    Arc::clone(&old.load),
                ))
            } else {
                Arc::clone(old)
            }
        });
        let hosted = hosted.collect();
        Ok(self.next(map, hosted))
    }

    /// This map as the successor of the published one, after it was decoded from its record. Requests that still use
    /// the old map hold its latches, and a holder of a latch of this map waits for them.
    #[must_use]
    pub fn after(&self, before: &Self) -> Self {
        let hosted = self.hosted.iter().map(|partition| {
            let reaches = |old: &&Arc<Hosted>| old.span.overlaps(&partition.span);
            let latches = before.hosted.iter().filter(reaches).map(|old| &old.latch);
            let mut after = Hosted::clone(partition);
            after.latch = Arc::new(PartitionLatch::after(latches));
            Arc::new(after)
        });
        let mut after = Self {
            hosted: hosted.collect(),
            ..self.clone()
        };
        after.older = before.older.clone();
        after.older.retain(|older| older.strong_count() > 0);
        after.older.push(Arc::downgrade(&before.in_use));
        after
    }

    /// The stores of its partitions, each once.
    pub fn stores(&self) -> impl Iterator<Item = (StoreId, &Store)> {
        let mut seen: Vec<StoreId> = Vec::with_capacity(1);
        self.hosted.iter().filter_map(move |partition| {
            if seen.contains(&partition.store_id) {
                return None;
            }
            seen.push(partition.store_id);
            Some((partition.store_id, partition.store()))
        })
    }

    /// The estimated size of a span of the table of this number.
    #[must_use]
    pub fn bytes_in(&self, table: TableId, span: &KeySpan) -> Estimate {
        let mut sum = Estimate {
            is_exact: true,
            ..Estimate::default()
        };
        let mut stores = self.stores();
        if let (Some((_, store)), None) = (stores.next(), stores.next()) {
            return store.bytes_in(&range_of(table, span));
        }
        for partition in self.touched(span) {
            let Some(range) = partition.key_range_in(table, span) else {
                continue;
            };
            let part = self.part_of(partition.store_id);
            add(&mut sum, partition.store().bytes_in_part(&range, part));
        }
        sum
    }

    /// The estimated size of the table of this number.
    #[must_use]
    pub fn bytes(&self, table: TableId) -> Estimate {
        let mut sum = Estimate {
            is_exact: true,
            ..Estimate::default()
        };
        for (_, store) in self.stores() {
            add(&mut sum, store.bytes_in(&key::table_range(table)));
        }
        sum
    }

    /// The part of the ring in a store, in 2^64ths. All rows of the table in that store lie in this part.
    fn part_of(&self, store: StoreId) -> u128 {
        let mine = self.hosted.iter().filter(|partition| partition.store_id == store);
        mine.map(|partition| partition.span.tokens()).sum::<u128>().min(1 << 64)
    }

    /// Waits until no request uses this map, an unchanged copy of it, or an earlier map of the table.
    pub fn when_left(partitions: Arc<Self>) -> impl Future<Output = ()> + Send {
        let older = partitions.older.iter().filter_map(Weak::upgrade);
        let in_use: Vec<_> = older
            .chain([Arc::clone(&partitions.in_use)])
            .map(|in_use| Arc::clone(&in_use.0))
            .collect();
        drop(partitions);
        async move {
            for in_use in in_use {
                // No permit is ever added: `acquire` returns when the semaphore is closed.
                drop(in_use.acquire().await);
            }
        }
    }

    /// Encodes the map for the catalog.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.map.encode()
    }

    /// Decodes a map that [`TablePartitions::encode`] wrote; `store` finds an open store by its number.
    ///
    /// # Errors
    /// [`MapError::Damaged`] unless the map covers the ring and all its stores are open.
    pub fn decode(bytes: &[u8], store: impl Fn(StoreId) -> Option<Store>) -> Result<Self, MapError> {
        let map = PartitionMap::decode(bytes)?;
        let hosted = map.all().iter().map(|of| {
            let store = store(of.store_id).ok_or(MapError::Damaged)?;
            Ok(Arc::new(Hosted::new(
                (of.clone(), map.placement()),
                store,
                Arc::default(),
                Arc::default(),
            )))
        });
        let hosted = hosted.collect::<Result<_, MapError>>()?;
        Ok(Self::of_hosted(map, hosted))
    }
}

fn add(sum: &mut Estimate, one: Estimate) {
    sum.bytes = sum.bytes.saturating_add(one.bytes);
    sum.rows = sum.rows.saturating_add(one.rows);
    sum.is_exact &= one.is_exact;
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_base::clock::Clock;
    use helenus_storage::storage::{Options, Url};

    fn store() -> Store {
        let options = Options::default();
        let opened = Store::open(&Url::Memory, &options, Clock::manual(0));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(opened).unwrap()
    }

    #[test]
    fn tokens_and_spans_find_their_partitions() {
        let whole = TablePartitions::whole(StoreId(0), store());
        let at = KeyBound::at_token;
        let table = whole.split(&at(-9)).unwrap().split(&at(11)).unwrap();
        // The split at 11 is of partition 2, so 1, 3 and 4 are left.
        for (token, id) in [(i64::MIN, 1), (-10, 1), (-9, 3), (10, 3), (11, 4), (i64::MAX, 4)] {
            assert_eq!(table.at(Token::bound(token), b"k").id.0, id, "{token}");
            assert_eq!(table.at_bound(&at(token)).id.0, id, "{token}");
        }
        let ids = |lower, upper| {
            let span = KeySpan::of_tokens(lower, upper).unwrap();
            table.touched(&span).iter().map(|part| part.id.0).collect::<Vec<_>>()
        };
        assert_eq!(ids(i64::MIN, i64::MAX), [1, 3, 4]);
        assert_eq!(ids(-10, -9), [1, 3]);
        assert_eq!(ids(0, 0), [3]);
        assert_eq!(ids(11, i64::MAX), [4]);
    }

    #[test]
    fn what_a_change_leaves_is_the_same_as_before() {
        let before = TablePartitions::evenly(3, StoreId(0), &store());
        let after = before.split(&KeyBound::at_token(0)).unwrap();
        assert!(Arc::ptr_eq(&before.all()[0], &after.all()[0]));
        assert!(Arc::ptr_eq(&before.all()[2], &after.all()[3]));
        assert_eq!(after.all().len(), 4);
        let described: Vec<_> = after.all().iter().map(|hosted| hosted.descriptor().clone()).collect();
        assert_eq!(described, after.map().all());
        let moved = after.moved(PhysicalPartitionId(0), StoreId(4), &store()).unwrap();
        assert_eq!(moved.find(PhysicalPartitionId(0)).unwrap().store_id, StoreId(4));
        assert!(Arc::ptr_eq(&moved.all()[0].load, &before.all()[0].load));
        assert!(!Arc::ptr_eq(&moved.all()[0].latch, &before.all()[0].latch));
        assert_eq!(moved.map().all()[0].store_id, StoreId(4));
    }
}
