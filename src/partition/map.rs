//! Physical partitions: which store holds which part of a table's ring.
//!
//! A list never changes: a split or merge makes the next one, under the next epoch, and requests go on with the one they have.

use std::sync::{Arc, Weak};

use tokio::sync::Semaphore;

use super::gate::WriteGate;
use super::heat::Heat;
use super::store::{Estimate, Snapshot, Store, TableId, key};
use crate::mutant::{self, Mutant};
use crate::throughput::TableBudget;
use crate::token::Token;

/// The number of a physical partition among its table's; never used again in the table.
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
    /// The table's epoch at which this range came to be in this store: what a request that routed by an older list can tell it by.
    pub epoch: u64,
    /// Lowest token, inclusive.
    pub lower: i64,
    /// Highest token, inclusive.
    pub upper: i64,
    /// How much is asked of it.
    pub heat: Arc<Heat>,
    /// The store's number: what is written to one store can be one commit.
    pub store_id: StoreId,
    /// Where its rows are.
    pub store: Store,
    /// What those who write to it go through.
    pub gate: Arc<WriteGate>,
    /// The moment as of which a replica that lags shows the store; `None`: now. Only in lists that are made for one read.
    pub as_of: Option<Snapshot>,
}

impl PhysicalPartition {
    /// What a read that begins now sees of the store.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        match &self.as_of {
            Some(at) => at.clone(),
            None => self.store.snapshot(),
        }
    }
}

/// Most physical partitions a table can have: far above what its rows need, few enough that a change can write the whole list.
pub const PARTITIONS_MAX: usize = 4096;

/// The version of the form in which a list is kept.
const FORMAT: u8 = 1;

/// Why a list of physical partitions cannot be changed or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// A split where nothing would be left on one side.
    #[error("Cannot split at token {at}: physical partition {id} begins there already")]
    AtBoundary {
        /// The token.
        at: i64,
        /// Who begins there.
        id: u64,
    },
    /// A split of a table that has [`PARTITIONS_MAX`].
    #[error("A table has at most {PARTITIONS_MAX} physical partitions")]
    TooMany,
    /// A merge of a partition that is not there, or not any more.
    #[error("There is no physical partition {0}")]
    Unknown(u64),
    /// A merge of two that have another, or nothing, between them.
    #[error("Physical partitions {left} and {right} are not neighbours in this order")]
    NotNeighbours {
        /// The one said to be the lower.
        left: u64,
        /// The other.
        right: u64,
    },
    /// A merge of two that lie in different stores.
    #[error(
        "Physical partitions {left} and {right} are in different stores; bring them into the main one first (helenus_lower)"
    )]
    Apart {
        /// The lower one.
        left: u64,
        /// The other.
        right: u64,
    },
    /// The record of a list cannot be read.
    #[error("the record of a table's physical partitions is damaged")]
    Damaged,
}

/// What a list and its copies share: who waits until it is not in use any more waits for the semaphore to be closed, in order.
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

/// A table's physical partitions: sorted, without gap or overlap, from −2^63 to 2^63−1.
///
/// ```text
/// record = 01 · epoch u64 · next id u64 · ( id u64 · epoch u64 · lower i64 · store u32 )+     (big-endian)
/// ```
#[derive(Clone, Debug)]
pub struct TablePartitions {
    partitions: Vec<Arc<PhysicalPartition>>,
    /// Rises with every change of the list.
    epoch: u64,
    /// The id that the next new partition gets.
    next_id: u64,
    /// What the table may spend; `None`: anything. The list that a change makes has its parent's until it gets its own.
    budget: Option<Arc<TableBudget>>,
    /// Lives as long as anybody goes by this list.
    in_use: Arc<InUse>,
    /// The same of the lists before it.
    older: Vec<Weak<InUse>>,
}

impl TablePartitions {
    /// One physical partition over the whole ring.
    #[must_use]
    pub fn whole(store_id: StoreId, store: Store) -> Self {
        Self::evenly(1, store_id, &store)
    }

    /// So many physical partitions (at least one, at most [`PARTITIONS_MAX`]) of equal parts of the ring, all in one store.
    #[must_use]
    pub fn evenly(count: usize, store_id: StoreId, store: &Store) -> Self {
        let count = count.clamp(1, PARTITIONS_MAX) as u64;
        let lower = |number: u64| {
            // The ring has 2^64 tokens; the quotient is below that.
            let offset = u64::try_from((u128::from(number) << 64) / u128::from(count)).unwrap_or(u64::MAX);
            i64::MIN.wrapping_add_unsigned(offset)
        };
        let partitions = (0..count).map(|number| {
            Arc::new(PhysicalPartition {
                id: PhysicalPartitionId(number),
                epoch: 0,
                lower: lower(number),
                upper: if number + 1 == count {
                    i64::MAX
                } else {
                    lower(number + 1) - 1
                },
                heat: Arc::default(),
                store_id,
                store: store.clone(),
                gate: Arc::default(),
                as_of: None,
            })
        });
        Self {
            partitions: partitions.collect(),
            epoch: 0,
            next_id: count,
            budget: None,
            in_use: Arc::default(),
            older: Vec::new(),
        }
    }

    /// What the table may spend, by physical partition; `None`: anything.
    #[must_use]
    pub fn budget(&self) -> Option<&TableBudget> {
        self.budget.as_deref()
    }

    /// Gives the list its budget.
    pub fn set_budget(&mut self, budget: Option<Arc<TableBudget>>) {
        self.budget = budget;
    }

    /// Rises with every change of the list.
    #[must_use]
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// All, in order of token.
    #[must_use]
    pub fn all(&self) -> &[Arc<PhysicalPartition>] {
        &self.partitions
    }

    /// Whether it is what a table has of which nothing is recorded: one partition, never changed.
    #[must_use]
    pub fn is_unrecorded(&self) -> bool {
        self.epoch == 0 && self.partitions.len() == 1
    }

    /// Where a logical partition lives.
    ///
    /// # Panics
    /// Never: the ring is covered.
    #[must_use]
    pub fn of(&self, token: Token) -> &Arc<PhysicalPartition> {
        let place = self.place(token.value());
        #[expect(clippy::expect_used, reason = "a table's partitions cover the ring")]
        self.partitions.get(place).expect("the ring is covered")
    }

    fn place(&self, token: i64) -> usize {
        self.partitions.partition_point(|partition| partition.upper < token)
    }

    /// The physical partitions that a token range touches, in order of token.
    #[must_use]
    pub fn overlapping(&self, lower: i64, upper: i64) -> &[Arc<PhysicalPartition>] {
        if lower > upper {
            return &[];
        }
        let first = self.place(lower);
        let last = self.partitions.partition_point(|partition| partition.lower <= upper);
        self.partitions.get(first..last).unwrap_or_default()
    }

    /// The list in which the partition of a token is two: one ends before the token, one begins with it. Both have new ids.
    ///
    /// # Errors
    /// [`MapError::AtBoundary`], [`MapError::TooMany`].
    pub fn split(&self, at: i64) -> Result<Self, MapError> {
        let place = self.place(at);
        let parent = self.partitions.get(place).ok_or(MapError::Damaged)?;
        if parent.lower == at {
            let id = parent.id.0;
            return Err(MapError::AtBoundary { at, id });
        }
        if self.partitions.len() >= PARTITIONS_MAX {
            return Err(MapError::TooMany);
        }
        let left = self.child(parent, 0, parent.lower, at - 1, &[parent]);
        let lower = at + i64::from(mutant::is_on(Mutant::SplitOffByOne));
        let right = self.child(parent, 1, lower, parent.upper, &[parent]);
        Ok(self.with(place..=place, vec![left, right]))
    }

    /// The list in which two neighbours are one, with a new id.
    ///
    /// # Errors
    /// [`MapError::Unknown`], [`MapError::NotNeighbours`], [`MapError::Apart`].
    pub fn merge(&self, left: PhysicalPartitionId, right: PhysicalPartitionId) -> Result<Self, MapError> {
        let find = |id: PhysicalPartitionId| {
            let mut found = self.partitions.iter().enumerate();
            found
                .find(|(_, partition)| partition.id == id)
                .ok_or(MapError::Unknown(id.0))
        };
        let ((place, lower), (next, higher)) = (find(left)?, find(right)?);
        let (left, right) = (left.0, right.0);
        if next != place + 1 {
            return Err(MapError::NotNeighbours { left, right });
        }
        if lower.store_id != higher.store_id {
            return Err(MapError::Apart { left, right });
        }
        let upper = if mutant::is_on(Mutant::MergeLosesRight) {
            lower.upper
        } else {
            higher.upper
        };
        let both = self.child(lower, 0, lower.lower, upper, &[lower, higher]);
        Ok(self.with(place..=next, vec![both]))
    }

    /// The list with at least so many partitions (at most [`PARTITIONS_MAX`]): those of most tokens split in the middle, as many as
    /// it takes and no more.
    ///
    /// # Errors
    /// As [`TablePartitions::split`]; never in practice.
    pub fn grown_to(&self, count: usize) -> Result<Self, MapError> {
        let mut grown = self.clone();
        while grown.partitions.len() < count.min(PARTITIONS_MAX) {
            let width = |partition: &PhysicalPartition| partition.upper.abs_diff(partition.lower);
            // The first among equals.
            let widest = grown.partitions.iter().rev().max_by_key(|partition| width(partition));
            let widest = widest.ok_or(MapError::Damaged)?;
            let middle = widest.lower.wrapping_add_unsigned(width(widest) / 2 + 1);
            grown = grown.split(middle)?;
        }
        Ok(grown)
    }

    /// A partition made of `parents`, in the store of the first.
    fn child(
        &self,
        parent: &PhysicalPartition,
        number: u64,
        lower: i64,
        upper: i64,
        parents: &[&Arc<PhysicalPartition>],
    ) -> Arc<PhysicalPartition> {
        Arc::new(PhysicalPartition {
            id: PhysicalPartitionId(self.next_id + number),
            epoch: self.epoch + 1,
            lower,
            upper,
            heat: Arc::default(),
            gate: Arc::new(WriteGate::after(parents.iter().map(|parent| &parent.gate))),
            ..parent.clone()
        })
    }

    fn with(&self, places: std::ops::RangeInclusive<usize>, children: Vec<Arc<PhysicalPartition>>) -> Self {
        let mut next = self.clone();
        next.epoch += 1;
        next.next_id += children.len() as u64;
        next.older.retain(|older| older.strong_count() > 0);
        next.older.push(Arc::downgrade(&self.in_use));
        next.in_use = Arc::default();
        drop(next.partitions.splice(places, children));
        next
    }

    /// The list in which one partition, in the same range and under its own id, is in another store.
    ///
    /// # Errors
    /// [`MapError::Unknown`].
    pub fn moved(&self, id: PhysicalPartitionId, store_id: StoreId, store: &Store) -> Result<Self, MapError> {
        let place = self.partitions.iter().position(|partition| partition.id == id);
        let found = place.and_then(|place| Some((place, self.partitions.get(place)?)));
        let (place, partition) = found.ok_or(MapError::Unknown(id.0))?;
        let moved = PhysicalPartition {
            epoch: self.epoch + 1,
            store_id,
            store: store.clone(),
            gate: Arc::default(),
            ..PhysicalPartition::clone(partition)
        };
        let next_id = self.next_id;
        let mut next = self.with(place..=place, vec![Arc::new(moved)]);
        next.next_id = next_id;
        Ok(next)
    }

    /// This list as one that was read from its record while another was in force: who still goes by that one is inside its gates, and
    /// whoever holds a gate of this one waits for them.
    #[must_use]
    pub fn after(&self, before: &Self) -> Self {
        let partitions = self.partitions.iter().map(|partition| {
            let reaches = |old: &&Arc<PhysicalPartition>| old.lower <= partition.upper && partition.lower <= old.upper;
            let gates = before.partitions.iter().filter(reaches).map(|old| &old.gate);
            Arc::new(PhysicalPartition {
                gate: Arc::new(WriteGate::after(gates)),
                ..PhysicalPartition::clone(partition)
            })
        });
        let mut after = Self {
            partitions: partitions.collect(),
            ..self.clone()
        };
        after.older = before.older.clone();
        after.older.retain(|older| older.strong_count() > 0);
        after.older.push(Arc::downgrade(&before.in_use));
        after
    }

    /// The stores that it lies in, each once, with one partition there.
    pub fn stores(&self) -> impl Iterator<Item = (StoreId, &Store)> {
        let mut seen: Vec<StoreId> = Vec::with_capacity(1);
        self.partitions.iter().filter_map(move |partition| {
            if seen.contains(&partition.store_id) {
                return None;
            }
            seen.push(partition.store_id);
            Some((partition.store_id, &partition.store))
        })
    }

    /// The parts of the ring that are not in a store, in order, each as (lowest token, highest token).
    #[must_use]
    pub fn ranges_outside(&self, store: StoreId) -> Vec<(i64, i64)> {
        let mut ranges: Vec<(i64, i64)> = Vec::new();
        for partition in self.partitions.iter().filter(|partition| partition.store_id != store) {
            match ranges.last_mut() {
                Some((_, upper)) if upper.checked_add(1) == Some(partition.lower) => *upper = partition.upper,
                _ => ranges.push((partition.lower, partition.upper)),
            }
        }
        ranges
    }

    /// How much lies in a part of the ring of the table of this number, both tokens inclusive.
    #[must_use]
    pub fn bytes_in(&self, table: TableId, lower: i64, upper: i64) -> Estimate {
        let mut sum = Estimate {
            is_exact: true,
            ..Estimate::default()
        };
        let mut stores = self.stores();
        if let (Some((_, store)), None) = (stores.next(), stores.next()) {
            return store.bytes_in(&key::token_range(table, lower, upper));
        }
        for partition in self.overlapping(lower, upper) {
            let (lower, upper) = (partition.lower.max(lower), partition.upper.min(upper));
            let one = partition
                .store
                .bytes_in_part(&key::token_range(table, lower, upper), self.part_of(partition.store_id));
            sum.bytes = sum.bytes.saturating_add(one.bytes);
            sum.rows = sum.rows.saturating_add(one.rows);
            sum.is_exact &= one.is_exact;
        }
        sum
    }

    /// How much of the table of this number there is.
    #[must_use]
    pub fn bytes(&self, table: TableId) -> Estimate {
        let mut sum = Estimate {
            is_exact: true,
            ..Estimate::default()
        };
        for (_, store) in self.stores() {
            let one = store.bytes_in(&key::table_range(table));
            sum.bytes = sum.bytes.saturating_add(one.bytes);
            sum.rows = sum.rows.saturating_add(one.rows);
            sum.is_exact &= one.is_exact;
        }
        sum
    }

    /// The part of the ring that lies in a store, in 2^64ths; what a table holds there lies in that part.
    fn part_of(&self, store: StoreId) -> u128 {
        let mine = self.partitions.iter().filter(|partition| partition.store_id == store);
        mine.map(|partition| u128::from(partition.upper.abs_diff(partition.lower)) + 1)
            .sum()
    }

    /// Waits until nobody goes by this list any more, by one that was made of it without a change, or by one before it.
    pub fn when_left(list: Arc<Self>) -> impl Future<Output = ()> + Send {
        let older = list.older.iter().filter_map(Weak::upgrade);
        let in_use: Vec<_> = older
            .chain([Arc::clone(&list.in_use)])
            .map(|in_use| Arc::clone(&in_use.0))
            .collect();
        drop(list);
        async move {
            for in_use in in_use {
                // It never has any: this waits until it is closed.
                drop(in_use.acquire().await);
            }
        }
    }

    /// The same list as replicas show it of which some lag: each partition as of the moment given for it, if any.
    #[must_use]
    pub fn as_of(&self, moment: impl Fn(&PhysicalPartition) -> Option<Snapshot>) -> Self {
        let partitions = self.partitions.iter().map(|partition| match moment(partition) {
            Some(at) => Arc::new(PhysicalPartition {
                as_of: Some(at),
                ..PhysicalPartition::clone(partition)
            }),
            None => Arc::clone(partition),
        });
        let partitions = partitions.collect();
        Self {
            partitions,
            ..self.clone()
        }
    }

    /// The list as bytes for the catalog.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![FORMAT];
        bytes.extend_from_slice(&self.epoch.to_be_bytes());
        bytes.extend_from_slice(&self.next_id.to_be_bytes());
        for partition in &self.partitions {
            bytes.extend_from_slice(&partition.id.0.to_be_bytes());
            bytes.extend_from_slice(&partition.epoch.to_be_bytes());
            bytes.extend_from_slice(&partition.lower.to_be_bytes());
            bytes.extend_from_slice(&partition.store_id.0.to_be_bytes());
        }
        bytes
    }

    /// Reads what [`TablePartitions::encode`] wrote; `store` finds a store by its number.
    ///
    /// # Errors
    /// [`MapError::Damaged`] unless it is a list that covers the ring, in stores that there are.
    pub fn decode(bytes: &[u8], store: impl Fn(StoreId) -> Option<Store>) -> Result<Self, MapError> {
        let list = read_list(bytes, store).ok_or(MapError::Damaged)?;
        let ids_are_old = list.partitions.iter().all(|partition| partition.id.0 < list.next_id);
        let begins = list.partitions.first().is_some_and(|first| first.lower == i64::MIN);
        let is_sorted = list
            .partitions
            .iter()
            .all(|partition| partition.lower <= partition.upper);
        if ids_are_old && begins && is_sorted && list.partitions.len() <= PARTITIONS_MAX {
            Ok(list)
        } else {
            Err(MapError::Damaged)
        }
    }
}

fn read_list(bytes: &[u8], store: impl Fn(StoreId) -> Option<Store>) -> Option<TablePartitions> {
    let (format, rest) = bytes.split_first()?;
    if *format != FORMAT {
        return None;
    }
    let (epoch, rest) = rest.split_first_chunk::<8>()?;
    let (next_id, mut rest) = rest.split_first_chunk::<8>()?;
    let mut partitions = Vec::new();
    while !rest.is_empty() {
        let (id, behind) = rest.split_first_chunk::<8>()?;
        let (epoch, behind) = behind.split_first_chunk::<8>()?;
        let (lower, behind) = behind.split_first_chunk::<8>()?;
        let (store_id, behind) = behind.split_first_chunk::<4>()?;
        let store_id = StoreId(u32::from_be_bytes(*store_id));
        rest = behind;
        let upper = match rest.get(16..24) {
            Some(next) => i64::from_be_bytes(next.try_into().ok()?).checked_sub(1)?,
            None => i64::MAX,
        };
        partitions.push(Arc::new(PhysicalPartition {
            id: PhysicalPartitionId(u64::from_be_bytes(*id)),
            epoch: u64::from_be_bytes(*epoch),
            lower: i64::from_be_bytes(*lower),
            upper,
            heat: Arc::default(),
            store_id,
            store: store(store_id)?,
            gate: Arc::default(),
            as_of: None,
        }));
    }
    Some(TablePartitions {
        partitions,
        epoch: u64::from_be_bytes(*epoch),
        next_id: u64::from_be_bytes(*next_id),
        budget: None,
        in_use: Arc::default(),
        older: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::store::{Options, Url};
    use super::*;
    use crate::clock::Clock;

    fn store() -> Store {
        let options = Options::default();
        let opened = Store::open(&Url::Memory, &options, Clock::manual(0));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(opened).unwrap()
    }

    fn assert_covers(list: &TablePartitions) {
        let all = list.all();
        assert_eq!((all[0].lower, all[all.len() - 1].upper), (i64::MIN, i64::MAX));
        for pair in all.windows(2) {
            assert_eq!(pair[0].upper + 1, pair[1].lower);
        }
        let mut ids: Vec<u64> = all.iter().map(|partition| partition.id.0).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all.len());
        assert!(all.iter().all(|partition| partition.lower <= partition.upper));
        assert!(all.iter().all(|partition| partition.epoch <= list.epoch()));
    }

    fn ranges(list: &TablePartitions) -> Vec<(u64, u64, i64, i64)> {
        let of =
            |partition: &Arc<PhysicalPartition>| (partition.id.0, partition.epoch, partition.lower, partition.upper);
        list.all().iter().map(of).collect()
    }

    #[test]
    fn tokens_and_ranges_find_their_partitions() {
        let whole = TablePartitions::whole(StoreId(0), store());
        let table = whole.split(-9).unwrap().split(11).unwrap();
        // The split at 11 is of partition 2, so 1, 3 and 4 are left.
        for (token, id) in [(i64::MIN, 1), (-10, 1), (-9, 3), (10, 3), (11, 4), (i64::MAX, 4)] {
            assert_eq!(table.of(Token::bound(token)).id.0, id, "{token}");
        }
        let ids = |lower, upper| {
            table
                .overlapping(lower, upper)
                .iter()
                .map(|part| part.id.0)
                .collect::<Vec<_>>()
        };
        assert_eq!(ids(i64::MIN, i64::MAX), [1, 3, 4]);
        assert_eq!(ids(-10, -9), [1, 3]);
        assert_eq!(ids(0, 0), [3]);
        assert_eq!(ids(1, 0), [] as [u64; 0]);
        assert_eq!(ids(11, i64::MAX), [4]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let list = TablePartitions::evenly(3, StoreId(0), &store());
        let id = PhysicalPartitionId;
        let refused = |result: Result<TablePartitions, MapError>| result.unwrap_err();
        let at = list.all()[1].lower;
        assert_eq!(refused(list.split(at)), MapError::AtBoundary { at, id: 1 });
        assert_eq!(
            refused(list.split(i64::MIN)),
            MapError::AtBoundary { at: i64::MIN, id: 0 }
        );
        assert_eq!(refused(list.merge(id(0), id(7))), MapError::Unknown(7));
        for (left, right) in [(0, 2), (1, 0), (1, 1)] {
            let wrong = MapError::NotNeighbours { left, right };
            assert_eq!(refused(list.merge(id(left), id(right))), wrong);
        }
        let full = TablePartitions::evenly(usize::MAX, StoreId(0), &store());
        assert_eq!(full.all().len(), PARTITIONS_MAX);
        assert_eq!(refused(full.split(5)), MapError::TooMany);
    }

    #[test]
    fn a_list_grows_by_as_many_as_it_takes() {
        let list = TablePartitions::evenly(3, StoreId(0), &store()).grown_to(5).unwrap();
        assert_covers(&list);
        // Two of the three were split, one keeps twice the tokens of the others.
        assert_eq!(list.all().len(), 5);
        assert!(list.all().iter().any(|partition| partition.epoch == 0));
        assert_eq!(list.grown_to(2).unwrap().all().len(), 5);
    }

    #[test]
    fn damaged_records_are_refused() {
        let store = store();
        let list = TablePartitions::evenly(3, StoreId(0), &store);
        let bytes = list.encode();
        let decode = |bytes: &[u8]| TablePartitions::decode(bytes, |id| (id.0 == 0).then(|| store.clone()));
        for len in 0..bytes.len() {
            // Cut between two partitions it is a shorter list that covers the ring too.
            if len > 17 && (len - 17) % 28 == 0 {
                continue;
            }
            assert!(decode(&bytes[..len]).is_err(), "{len}");
        }
        for at in [0, 33, 44] {
            let mut wrong = bytes.clone();
            wrong[at] ^= 0x80;
            assert!(decode(&wrong).is_err(), "{at}");
        }
    }

    proptest! {
        #[test]
        fn splits_and_merges_leave_the_ring_covered(
            count in 1_usize..20,
            steps in prop::collection::vec((any::<bool>(), any::<i64>(), any::<prop::sample::Index>()), 0..60),
        ) {
            let store = store();
            let mut list = TablePartitions::evenly(count, StoreId(0), &store);
            assert_covers(&list);
            for (splits, at, place) in steps {
                let epoch = list.epoch();
                let next = if splits {
                    list.split(at)
                } else {
                    let place = place.index(list.all().len());
                    let right = list.all().get(place + 1).map_or(PhysicalPartitionId(u64::MAX), |right| right.id);
                    list.merge(list.all()[place].id, right)
                };
                if let Ok(next) = next {
                    assert_covers(&next);
                    prop_assert_eq!(next.epoch(), epoch + 1);
                    prop_assert_eq!(next.all().len() > list.all().len(), splits);
                    // What did not change is the same as before.
                    let before = ranges(&list);
                    let kept = ranges(&next).into_iter().filter(|range| range.1 <= epoch);
                    prop_assert!(kept.into_iter().all(|range| before.contains(&range)));
                    list = next;
                }
                let read = TablePartitions::decode(&list.encode(), |_| Some(store.clone())).unwrap();
                prop_assert_eq!(ranges(&read), ranges(&list));
                prop_assert_eq!((read.epoch, read.next_id), (list.epoch, list.next_id));
            }
        }
    }
}
