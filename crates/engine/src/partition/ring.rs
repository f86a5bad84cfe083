//! The recorded form of a table's physical partitions: pure values, without stores, latches or load.
//!
//! A [`PartitionMap`] covers the ring without gap or overlap. Splits, merges and moves make the next one, under the
//! next epoch. The live form of a partition on this machine is a [`super::Hosted`].
//!
//! ```text
//! version 1   01 · epoch u64 · next id u64 · ( id u64 · epoch u64 · lower i64 · store u32 )+
//! version 2   02 · placement u8 · epoch u64 · next id u64
//!                · ( id u64 · epoch u64 · token i64 · key length u32 · partition key · store u32 )+       (big-endian)
//! ```
//! Version 2 is written only for a map that version 1 cannot express: one that divides the keys of a token, or that
//! does not place keys by their hash. An older server that cannot read version 2 refuses to open.

use helenus_base::invariant::{Broken, Invariant};
use helenus_base::mutant::{self, Mutant};
use helenus_types::token::{KeyBound, KeySpan, Token};

/// The number of a physical partition within its table; never reused there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PhysicalPartitionId(pub u64);

/// The number of an open store of this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreId(pub u32);

/// How the partition keys of a table get their tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// By their hash, as in Cassandra's Murmur3Partitioner: the placement of CQL tables.
    #[default]
    Hash,
    /// All under one token, so that the table lies in the order of its partition keys.
    Key,
}

impl Placement {
    /// The token of all keys of a table that is ordered by partition key.
    const ONE: Token = Token::OF_ORDERED;

    /// The token of a partition key.
    #[must_use]
    pub fn token(self, partition_key: &[u8]) -> Token {
        match self {
            Self::Hash => Token::of(partition_key),
            Self::Key => Self::ONE,
        }
    }

    /// A number that spreads logical partitions evenly over locks and gauges: the token where that is already a hash.
    #[must_use]
    pub fn spread(self, token: Token, partition_key: &[u8]) -> i64 {
        match self {
            Self::Hash => token.value(),
            Self::Key => Token::of(partition_key).value(),
        }
    }

    /// The token of the partition key from which [`Placement::spread`] made this number.
    #[must_use]
    pub fn token_of_spread(self, spread: i64) -> i64 {
        match self {
            Self::Hash => spread,
            Self::Key => Self::ONE.value(),
        }
    }

    const fn byte(self) -> u8 {
        match self {
            Self::Hash => 0,
            Self::Key => 1,
        }
    }

    const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Hash),
            1 => Some(Self::Key),
            _ => None,
        }
    }
}

/// A contiguous range of one table's logical partitions, and the store that holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhysicalPartition {
    /// Its number.
    pub id: PhysicalPartitionId,
    /// The table's epoch at which this range began in this store. It reveals a request that was routed by an older map.
    pub epoch: u64,
    /// Its logical partitions.
    pub span: KeySpan,
    /// The store's number: writes to one store can be one commit.
    pub store_id: StoreId,
}

impl PhysicalPartition {
    /// Its lowest token, even if it contains only some keys of that token.
    #[must_use]
    pub const fn lower(&self) -> i64 {
        self.span.lower()
    }

    /// Its highest token, even if it contains only some keys of that token.
    #[must_use]
    pub fn upper(&self) -> i64 {
        self.span.upper()
    }
}

/// Most physical partitions of a table: far more than its rows need, and few enough that a change can write the whole
/// map.
pub const PARTITIONS_MAX: usize = 4096;

/// The versions of a map's record.
const BY_TOKEN: u8 = 1;
const BY_KEY: u8 = 2;

/// Why a partition map cannot be changed or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// A split that would leave one side empty.
    #[error("Cannot split at token {at}: physical partition {id} begins there already")]
    AtBoundary {
        /// The token.
        at: i64,
        /// The partition that begins there.
        id: u64,
    },
    /// A split of a table that already has [`PARTITIONS_MAX`].
    #[error("A table has at most {PARTITIONS_MAX} physical partitions")]
    TooMany,
    /// A merge of a partition that does not exist, or no longer.
    #[error("There is no physical partition {0}")]
    Unknown(u64),
    /// A merge of two partitions that are not adjacent in this order.
    #[error("Physical partitions {left} and {right} are not neighbours in this order")]
    NotNeighbours {
        /// The one given as the lower.
        left: u64,
        /// The other.
        right: u64,
    },
    /// A merge of two that lie in different stores.
    #[error(
        "Physical partitions {left} and {right} are in different stores; one of them was moved meanwhile; try again"
    )]
    Apart {
        /// The lower one.
        left: u64,
        /// The other.
        right: u64,
    },
    /// The change would break an invariant of maps.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// The record of a map cannot be read.
    #[error("the record of a table's physical partitions is damaged")]
    Damaged,
}

/// A table's physical partitions: ordered, without gap or overlap, over the whole ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionMap {
    placement: Placement,
    partitions: Vec<PhysicalPartition>,
    /// Rises by one with every change.
    epoch: u64,
    /// The id that the next new partition gets.
    next_id: u64,
}

impl PartitionMap {
    /// `count` physical partitions (at least one, at most [`PARTITIONS_MAX`]) of equal parts of the ring, all in one
    /// store.
    #[must_use]
    pub fn evenly(count: usize, store_id: StoreId) -> Self {
        Self::evenly_over(count, |_| store_id)
    }

    /// The same, each in the store that is given for its lowest token.
    #[must_use]
    pub fn evenly_over(count: usize, store_of: impl Fn(i64) -> StoreId) -> Self {
        let count = count.clamp(1, PARTITIONS_MAX) as u64;
        let lower = |number: u64| {
            // The ring has 2^64 tokens; the quotient is below that.
            let offset = u64::try_from((u128::from(number) << 64) / u128::from(count)).unwrap_or(u64::MAX);
            KeyBound::at_token(i64::MIN.wrapping_add_unsigned(offset))
        };
        let partitions = (0..count).filter_map(|number| {
            let span = KeySpan::new(lower(number), (number + 1 < count).then(|| lower(number + 1)))?;
            Some(PhysicalPartition {
                id: PhysicalPartitionId(number),
                epoch: 0,
                store_id: store_of(span.lower()),
                span,
            })
        });
        Self {
            placement: Placement::Hash,
            partitions: partitions.collect(),
            epoch: 0,
            next_id: count,
        }
    }

    /// One physical partition of a table that is ordered by partition key.
    #[must_use]
    pub fn ordered(store_id: StoreId) -> Self {
        Self {
            placement: Placement::Key,
            ..Self::evenly(1, store_id)
        }
    }

    /// How keys get their tokens.
    #[must_use]
    pub const fn placement(&self) -> Placement {
        self.placement
    }

    /// Rises with every change.
    #[must_use]
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// All, in order.
    #[must_use]
    pub fn all(&self) -> &[PhysicalPartition] {
        &self.partitions
    }

    /// Whether it is the map of a table without a recorded one: one partition in the main store, never changed, of
    /// hashed keys.
    #[must_use]
    pub fn is_unrecorded(&self) -> bool {
        let is_in_main = |partition: &PhysicalPartition| partition.store_id == StoreId::MAIN;
        self.epoch == 0
            && self.partitions.len() == 1
            && self.partitions.iter().all(is_in_main)
            && self.placement == Placement::Hash
    }

    /// The index, from the lowest, of the partition in which a logical partition lies, or begins.
    pub(super) fn number(&self, token: i64, partition_key: &[u8]) -> usize {
        let is_passed = |partition: &PhysicalPartition| !partition.span.ends_after(token, partition_key);
        self.partitions.partition_point(is_passed)
    }

    /// The indexes of the partitions that a span touches.
    pub(super) fn touched(&self, span: &KeySpan) -> std::ops::Range<usize> {
        let (start, end) = (span.start(), span.end());
        let first = self.number(start.token(), start.partition_key());
        let after = match end {
            None => self.partitions.len(),
            Some(end) => self.partitions.partition_point(|one| one.span.start() < end),
        };
        first..after.max(first)
    }

    /// The map with the partition of a bound split in two: one ends before the bound, one begins at it. Both have new
    /// ids.
    ///
    /// # Errors
    /// [`MapError::AtBoundary`], [`MapError::TooMany`].
    pub fn split(&self, at: &KeyBound) -> Result<Self, MapError> {
        let number = self.number(at.token(), at.partition_key());
        let parent = self.partitions.get(number).ok_or(MapError::Damaged)?;
        if parent.span.start() == at {
            let id = parent.id.0;
            return Err(MapError::AtBoundary { at: at.token(), id });
        }
        if self.partitions.len() >= PARTITIONS_MAX {
            return Err(MapError::TooMany);
        }
        let from = if mutant::is_on(Mutant::SplitOffByOne) {
            KeyBound::at_token(at.token().saturating_add(1))
        } else {
            at.clone()
        };
        let left = KeySpan::new(parent.span.start().clone(), Some(at.clone())).ok_or(MapError::Damaged)?;
        let right = KeySpan::new(from, parent.span.end().cloned()).ok_or(MapError::Damaged)?;
        let children = vec![self.child(parent, 0, left), self.child(parent, 1, right)];
        self.with(number..=number, children)
    }

    /// The map with two neighbours merged into one, which has a new id.
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
        let ((number, lower), (next, higher)) = (find(left)?, find(right)?);
        let (left, right) = (left.0, right.0);
        if next != number + 1 {
            return Err(MapError::NotNeighbours { left, right });
        }
        if lower.store_id != higher.store_id {
            return Err(MapError::Apart { left, right });
        }
        let end = if mutant::is_on(Mutant::MergeLosesRight) {
            lower.span.end()
        } else {
            higher.span.end()
        };
        let span = KeySpan::new(lower.span.start().clone(), end.cloned()).ok_or(MapError::Damaged)?;
        self.with(number..=next, vec![self.child(lower, 0, span)])
    }

    /// The map with at least `count` partitions (at most [`PARTITIONS_MAX`]). The widest partitions are split in the
    /// middle of their tokens, no more of them than needed. A table ordered by partition key stays as it is, since its
    /// keys are not known here.
    ///
    /// # Errors
    /// As [`PartitionMap::split`]; never in practice.
    pub fn grown_to(&self, count: usize) -> Result<Self, MapError> {
        let mut grown = self.clone();
        if self.placement == Placement::Key {
            return Ok(grown);
        }
        while grown.partitions.len() < count.min(PARTITIONS_MAX) {
            // `max_by_key` returns the last of equals; reversed, the first.
            let widest = grown.partitions.iter().rev().max_by_key(|one| one.span.tokens());
            let middle = widest.and_then(|widest| widest.span.middle_token());
            grown = grown.split(&KeyBound::at_token(middle.ok_or(MapError::Damaged)?))?;
        }
        Ok(grown)
    }

    /// The map with one partition, of the same range and id, in another store.
    ///
    /// # Errors
    /// [`MapError::Unknown`].
    pub fn moved(&self, id: PhysicalPartitionId, store_id: StoreId) -> Result<Self, MapError> {
        let number = self.partitions.iter().position(|partition| partition.id == id);
        let found = number.and_then(|number| Some((number, self.partitions.get(number)?)));
        let (number, partition) = found.ok_or(MapError::Unknown(id.0))?;
        let moved = PhysicalPartition {
            epoch: self.epoch + 1,
            store_id,
            ..partition.clone()
        };
        let mut next = self.with(number..=number, vec![moved])?;
        next.next_id = self.next_id;
        Ok(next)
    }

    /// A partition made from others, in the store of the first.
    fn child(&self, parent: &PhysicalPartition, number: u64, span: KeySpan) -> PhysicalPartition {
        PhysicalPartition {
            id: PhysicalPartitionId(self.next_id + number),
            epoch: self.epoch + 1,
            span,
            store_id: parent.store_id,
        }
    }

    fn with(
        &self,
        numbers: std::ops::RangeInclusive<usize>,
        children: Vec<PhysicalPartition>,
    ) -> Result<Self, MapError> {
        let mut next = self.clone();
        next.epoch += 1;
        next.next_id += children.len() as u64;
        drop(next.partitions.splice(numbers, children));
        // The simulation must find these seeded bugs by what clients see, without the assertion.
        if !mutant::is_on(Mutant::SplitOffByOne) && !mutant::is_on(Mutant::MergeLosesRight) {
            next.check()?;
        }
        Ok(next)
    }

    /// The ranges of the ring that are not in a store, in order, adjacent ones joined.
    #[must_use]
    pub fn spans_outside(&self, store: StoreId) -> Vec<KeySpan> {
        let mut spans: Vec<KeySpan> = Vec::new();
        for partition in self.partitions.iter().filter(|partition| partition.store_id != store) {
            let span = &partition.span;
            match spans.last_mut() {
                Some(last) if last.is_followed_by(span) => {
                    let joined = KeySpan::new(last.start().clone(), span.end().cloned());
                    *last = joined.unwrap_or_else(|| span.clone());
                }
                _ => spans.push(span.clone()),
            }
        }
        spans
    }

    /// The invariant that it breaks, with a description. `None` means that it covers the ring, and that its numbers and
    /// epochs are valid.
    fn flaw(&self) -> Option<(Invariant, &'static str)> {
        let spans = || self.partitions.iter().map(|partition| &partition.span);
        let is_covered = spans().next().is_some_and(|first| *first.start() == KeyBound::LOWEST)
            && spans().last().is_some_and(|last| last.end().is_none())
            && spans().zip(spans().skip(1)).all(|(one, next)| one.is_followed_by(next));
        if !is_covered {
            return Some((Invariant::RingIsCovered, "it does not cover the ring"));
        }
        if self.partitions.iter().any(|partition| partition.id.0 >= self.next_id) {
            return Some((
                Invariant::EpochRises,
                "it has a partition of a number that was not given",
            ));
        }
        if self.partitions.iter().any(|partition| partition.epoch > self.epoch) {
            return Some((Invariant::EpochRises, "it has a partition of a later epoch"));
        }
        (self.partitions.len() > PARTITIONS_MAX).then_some((Invariant::RingIsCovered, "it has too many partitions"))
    }

    /// Checks that it covers the ring; otherwise requests would reach no partition, or two. A faulty change stops
    /// before it is recorded.
    ///
    /// # Errors
    /// [`Broken`] with a description of the flaw.
    pub fn check(&self) -> Result<(), Broken> {
        match self.flaw() {
            None => Ok(()),
            Some((invariant, flaw)) => Err(invariant.broken(&flaw)),
        }
    }

    /// Checks that it may follow another map of its table. Requests that were routed by the older map recognise the
    /// newer one by its higher epoch.
    ///
    /// # Errors
    /// [`Broken`] unless its epoch is higher and no number is reused.
    pub fn check_follows(&self, before: &Self) -> Result<(), Broken> {
        let rises = self.epoch > before.epoch && self.next_id >= before.next_id;
        Invariant::EpochRises.check(rises, || format!("epoch {} was to follow {}", self.epoch, before.epoch))
    }

    /// Encodes the map for the catalog.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let by_token = self.partitions.iter().all(|one| one.span.start().is_between_tokens());
        let by_token = by_token && self.placement == Placement::Hash;
        let mut bytes = if by_token {
            vec![BY_TOKEN]
        } else {
            vec![BY_KEY, self.placement.byte()]
        };
        bytes.extend_from_slice(&self.epoch.to_be_bytes());
        bytes.extend_from_slice(&self.next_id.to_be_bytes());
        for partition in &self.partitions {
            let start = partition.span.start();
            bytes.extend_from_slice(&partition.id.0.to_be_bytes());
            bytes.extend_from_slice(&partition.epoch.to_be_bytes());
            bytes.extend_from_slice(&start.token().to_be_bytes());
            if !by_token {
                // A partition key is shorter than a key of the store.
                let length = u32::try_from(start.partition_key().len()).unwrap_or(u32::MAX);
                bytes.extend_from_slice(&length.to_be_bytes());
                bytes.extend_from_slice(start.partition_key());
            }
            bytes.extend_from_slice(&partition.store_id.0.to_be_bytes());
        }
        bytes
    }

    /// Decodes a map that [`PartitionMap::encode`] wrote.
    ///
    /// # Errors
    /// [`MapError::Damaged`] unless it is a map that covers the ring.
    pub fn decode(bytes: &[u8]) -> Result<Self, MapError> {
        let map = read_map(bytes).ok_or(MapError::Damaged)?;
        match map.flaw() {
            None => Ok(map),
            Some(_) => Err(MapError::Damaged),
        }
    }
}

fn read_map(bytes: &[u8]) -> Option<PartitionMap> {
    let (version, rest) = bytes.split_first()?;
    let (placement, rest) = match *version {
        BY_TOKEN => (Placement::Hash, rest),
        BY_KEY => {
            let (placement, rest) = rest.split_first()?;
            (Placement::from_byte(*placement)?, rest)
        }
        _ => return None,
    };
    let (epoch, rest) = rest.split_first_chunk::<8>()?;
    let (next_id, mut rest) = rest.split_first_chunk::<8>()?;
    let mut read = Vec::new();
    while !rest.is_empty() {
        let (id, behind) = rest.split_first_chunk::<8>()?;
        let (epoch, behind) = behind.split_first_chunk::<8>()?;
        let (token, behind) = behind.split_first_chunk::<8>()?;
        let (partition_key, behind) = if *version == BY_KEY {
            let (length, behind) = behind.split_first_chunk::<4>()?;
            behind.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?
        } else {
            (&[][..], behind)
        };
        let (store_id, behind) = behind.split_first_chunk::<4>()?;
        rest = behind;
        let start = KeyBound::at_key(Token::bound(i64::from_be_bytes(*token)), partition_key);
        read.push((
            u64::from_be_bytes(*id),
            u64::from_be_bytes(*epoch),
            start,
            u32::from_be_bytes(*store_id),
        ));
    }
    let ends: Vec<_> = read
        .iter()
        .skip(1)
        .map(|(_, _, start, _)| Some(start.clone()))
        .chain([None])
        .collect();
    let partitions = read.into_iter().zip(ends).map(|((id, epoch, start, store_id), end)| {
        Some(PhysicalPartition {
            id: PhysicalPartitionId(id),
            epoch,
            span: KeySpan::new(start, end)?,
            store_id: StoreId(store_id),
        })
    });
    Some(PartitionMap {
        placement,
        partitions: partitions.collect::<Option<_>>()?,
        epoch: u64::from_be_bytes(*epoch),
        next_id: u64::from_be_bytes(*next_id),
    })
}

#[cfg(test)]
mod tests;
