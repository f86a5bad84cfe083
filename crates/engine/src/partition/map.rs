//! The physical partitions of a table as requests use them: the map, and where each partition is served ([`Placed`]),
//! with its live state if that is here.
//!
//! A partition map is immutable: a split or merge makes the next one, under the next epoch. A request uses the map that
//! it began with until its end.

use std::sync::{Arc, Weak};

use tokio::sync::Semaphore;

use super::homes::Homes;
use super::hosted::{Hosted, range_of};
use super::latch::PartitionLatch;
use super::placed::{Owner, Placed, Remote};
use super::ring::{MapError, PartitionMap, PhysicalPartition, PhysicalPartitionId, Placement, StoreId};
use crate::throughput::TableBudget;
use helenus_base::invariant::{Broken, Invariant};
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
    /// Where each entry of the map is served, in the same order.
    placed: Vec<Placed>,
    /// Whether all are served here, as long as there is one machine.
    is_here: bool,
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
            Placed::Here(Arc::new(Hosted::new(
                (of.clone(), map.placement()),
                store_of(of),
                Arc::default(),
                Arc::default(),
            )))
        };
        let placed = map.all().iter().map(fresh).collect();
        Self::of_placed(map, placed)
    }

    fn of_placed(map: PartitionMap, placed: Vec<Placed>) -> Self {
        Self {
            is_here: are_here(&placed),
            map,
            placed,
            budget: None,
            in_use: Arc::default(),
            older: Vec::new(),
        }
    }

    /// The same map, as a machine sees it that serves none of it: all partitions are at this owner. Requests that use it
    /// do not count among those that hold this map.
    #[must_use]
    pub fn at(&self, owner: &Owner) -> Self {
        let placed = self.placed.iter().map(|partition| partition.at(owner)).collect();
        Self {
            budget: self.budget.clone(),
            ..Self::of_placed(self.map.clone(), placed)
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
    pub fn all(&self) -> &[Placed] {
        &self.placed
    }

    /// Whether all are served here.
    #[must_use]
    pub const fn is_here(&self) -> bool {
        self.is_here
    }

    /// Those that are served here, in order.
    pub fn here(&self) -> impl Iterator<Item = &Arc<Hosted>> {
        self.placed.iter().filter_map(Placed::here)
    }

    /// The partition of this number.
    #[must_use]
    pub fn find(&self, id: PhysicalPartitionId) -> Option<&Placed> {
        self.placed.iter().find(|partition| partition.id == id)
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
    pub fn place(&self, partition_key: &[u8]) -> (Token, &Placed) {
        let token = self.token(partition_key);
        (token, self.of_token(token, partition_key))
    }

    /// The position of a logical partition whose rows this machine has.
    ///
    /// # Errors
    /// [`Broken`] if another machine serves it: the caller acts as its owner.
    pub fn hosted(&self, partition_key: &[u8]) -> Result<(Token, &Arc<Hosted>), Broken> {
        let token = self.token(partition_key);
        Ok((token, self.hosted_of_token(token, partition_key)?))
    }

    /// As [`TablePartitions::hosted`], of a token that is known.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn hosted_of_token(&self, token: Token, partition_key: &[u8]) -> Result<&Arc<Hosted>, Broken> {
        let partition = self.of_token(token, partition_key);
        partition.here().ok_or_else(|| {
            let found = format_args!("physical partition {} is served elsewhere", partition.id.0);
            Invariant::KeyIsHosted.broken(&found)
        })
    }

    /// The physical partition of a logical partition whose token is known.
    ///
    /// # Panics
    /// Never: the ring is covered.
    #[must_use]
    pub fn of_token(&self, token: Token, partition_key: &[u8]) -> &Placed {
        let number = self.map.number(token.value(), partition_key);
        #[expect(clippy::expect_used, reason = "a table's partitions cover the ring")]
        self.placed.get(number).expect("the ring is covered")
    }

    /// The physical partition that begins at a bound or contains the keys after it.
    ///
    /// # Panics
    /// Never: the ring is covered.
    #[must_use]
    pub fn at_bound(&self, bound: &KeyBound) -> &Placed {
        self.of_token(Token::bound(bound.token()), bound.partition_key())
    }

    /// The physical partitions that a span touches, in order.
    #[must_use]
    pub fn touched(&self, span: &KeySpan) -> &[Placed] {
        self.placed.get(self.map.touched(span)).unwrap_or_default()
    }

    /// Those of them that are served here.
    pub fn touched_here(&self, span: &KeySpan) -> impl Iterator<Item = &Arc<Hosted>> {
        self.touched(span).iter().filter_map(Placed::here)
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
        let placed = map.all().iter().map(|of| {
            let parents = self.touched(&of.span);
            let first = parents.first().ok_or(MapError::Damaged)?;
            if first.descriptor() == of {
                return Ok(first.clone());
            }
            let of = (of.clone(), map.placement());
            Ok(match first {
                Placed::Here(first) => {
                    let latches = parents.iter().filter_map(Placed::here).map(|parent| &parent.latch);
                    let latch = Arc::new(PartitionLatch::after(latches));
                    Placed::Here(Arc::new(Hosted::new(of, first.store().clone(), latch, Arc::default())))
                }
                Placed::There(first) => Placed::There(Arc::new(Remote::new(of.0, of.1, first.owner.clone()))),
            })
        });
        let placed = placed.collect::<Result<_, MapError>>()?;
        Ok(self.next(map, placed))
    }

    fn next(&self, map: PartitionMap, placed: Vec<Placed>) -> Self {
        let mut next = Self {
            is_here: are_here(&placed),
            map,
            placed,
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
        let placed = map.all().iter().zip(&self.placed).map(|(of, old)| {
            if of.id != id {
                return old.clone();
            }
            let load = old.here().map_or_else(Arc::default, |old| Arc::clone(&old.load));
            let of = (of.clone(), map.placement());
            Placed::Here(Arc::new(Hosted::new(of, store.clone(), Arc::default(), load)))
        });
        let placed = placed.collect();
        Ok(self.next(map, placed))
    }

    /// This map as the successor of the published one, after it was decoded from its record. Requests that still use
    /// the old map hold its latches, and a holder of a latch of this map waits for them.
    #[must_use]
    pub fn after(&self, before: &Self) -> Self {
        let placed = self.placed.iter().map(|placed| {
            let Placed::Here(partition) = placed else {
                return placed.clone();
            };
            let reaches = |old: &&Arc<Hosted>| old.span.overlaps(&partition.span);
            let latches = before.here().filter(reaches).map(|old| &old.latch);
            let mut after = Hosted::clone(partition);
            after.latch = Arc::new(PartitionLatch::after(latches));
            Placed::Here(Arc::new(after))
        });
        let mut after = Self {
            placed: placed.collect(),
            ..self.clone()
        };
        after.older = before.older.clone();
        after.older.retain(|older| older.strong_count() > 0);
        after.older.push(Arc::downgrade(&before.in_use));
        after
    }

    /// The stores of the partitions that are served here, each once.
    pub fn stores(&self) -> impl Iterator<Item = (StoreId, &Store)> {
        let mut seen: Vec<StoreId> = Vec::with_capacity(1);
        self.here().filter_map(move |partition| {
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
        for partition in self.touched_here(span) {
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
        let mine = self.here().filter(|partition| partition.store_id == store);
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
        let placed = map.all().iter().map(|of| {
            let store = store(of.store_id).ok_or(MapError::Damaged)?;
            let of = (of.clone(), map.placement());
            let hosted = Hosted::new(of, store, Arc::default(), Arc::default());
            Ok(Placed::Here(Arc::new(hosted)))
        });
        let placed = placed.collect::<Result<_, MapError>>()?;
        Ok(Self::of_placed(map, placed))
    }

    /// As [`TablePartitions::decode`], with all partitions at this owner.
    ///
    /// # Errors
    /// [`MapError::Damaged`] unless the map covers the ring.
    pub fn decode_elsewhere(bytes: &[u8], owner: &Owner) -> Result<Self, MapError> {
        Ok(Self::elsewhere(PartitionMap::decode(bytes)?, owner))
    }

    /// One physical partition over the whole ring, at this owner.
    #[must_use]
    pub fn whole_elsewhere(owner: &Owner) -> Self {
        Self::elsewhere(PartitionMap::evenly(1, StoreId::MAIN), owner)
    }

    fn elsewhere(map: PartitionMap, owner: &Owner) -> Self {
        let there = |of: &PhysicalPartition| {
            let remote = Remote::new(of.clone(), map.placement(), owner.clone());
            Placed::There(Arc::new(remote))
        };
        let placed = map.all().iter().map(there).collect();
        Self::of_placed(map, placed)
    }
}

fn are_here(placed: &[Placed]) -> bool {
    placed.iter().all(|partition| partition.here().is_some())
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
            assert_eq!(table.of_token(Token::bound(token), b"k").id.0, id, "{token}");
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
        let here = |map: &TablePartitions, number: usize| Arc::clone(map.here().nth(number).unwrap());
        assert!(Arc::ptr_eq(&here(&before, 0), &here(&after, 0)));
        assert!(Arc::ptr_eq(&here(&before, 2), &here(&after, 3)));
        assert_eq!(after.all().len(), 4);
        let described: Vec<_> = after.all().iter().map(|placed| placed.descriptor().clone()).collect();
        assert_eq!(described, after.map().all());
        let moved = after.moved(PhysicalPartitionId(0), StoreId(4), &store()).unwrap();
        assert_eq!(moved.find(PhysicalPartitionId(0)).unwrap().store_id, StoreId(4));
        assert!(Arc::ptr_eq(&here(&moved, 0).load, &here(&before, 0).load));
        assert!(!Arc::ptr_eq(&here(&moved, 0).latch, &here(&before, 0).latch));
        assert_eq!(moved.map().all()[0].store_id, StoreId(4));
    }

    #[test]
    fn map_of_another_machine_has_descriptors_and_no_live_parts() {
        let owner = Owner("n2".into());
        let own = TablePartitions::evenly(3, StoreId(0), &store());
        let seen = own.at(&owner);
        assert_eq!(seen.map(), own.map());
        assert_eq!(seen.here().count() + seen.stores().count(), 0);
        assert_eq!(seen.place(b"k").1.id, own.place(b"k").1.id);
        assert_eq!(seen.hosted(b"k").unwrap_err(), Broken(Invariant::KeyIsHosted));
        // A change of the map leaves its partitions where they are.
        let split = seen.split(&KeyBound::at_token(0)).unwrap();
        let owners = split.all().iter().map(|placed| match placed {
            Placed::Here(_) => None,
            Placed::There(remote) => Some(&remote.owner),
        });
        assert_eq!(owners.collect::<Vec<_>>(), [Some(&owner); 4]);
        drop(split);
        // Its requests do not hold the owner's map.
        let own = Arc::new(own);
        let mut left = Box::pin(TablePartitions::when_left(own));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(left.as_mut().poll(&mut context).is_ready());
        drop(seen);
    }
}
