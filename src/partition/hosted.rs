//! A physical partition that this machine serves: its descriptor with what is live of it.
//!
//! The rest of the server reads and stages rows by (partition key, clustering key): the key of a row is made here, and what lies in the
//! store outside the partition's span cannot be seen through it. A move leaves rows where they were for a while; they are such.

use std::ops::Deref;
use std::sync::Arc;

use super::gate::WriteGate;
use super::heat::Heat;
use super::ring::{PhysicalPartition, Placement};
use super::span::KeySpan;
use super::view::Moment;
use crate::invariant::{Broken, Invariant};
use crate::storage::{Estimate, KeyRange, Store, TableId, key};
use crate::token::Token;

/// A physical partition that is served here. Cloning it gives the same one.
#[derive(Clone, Debug)]
pub struct Hosted {
    descriptor: PhysicalPartition,
    placement: Placement,
    store: Store,
    /// Where its span begins and ends among the places of index entries.
    places: (Vec<u8>, Option<Vec<u8>>),
    /// Writes to it go through this.
    pub gate: Arc<WriteGate>,
    /// How much is asked of it.
    pub heat: Arc<Heat>,
}

/// The descriptor stands for the partition wherever only that matters: its number, span, epoch and store.
impl Deref for Hosted {
    type Target = PhysicalPartition;

    fn deref(&self) -> &PhysicalPartition {
        &self.descriptor
    }
}

impl Hosted {
    pub(super) fn new(
        (descriptor, placement): (PhysicalPartition, Placement),
        store: Store,
        gate: Arc<WriteGate>,
        heat: Arc<Heat>,
    ) -> Self {
        Self {
            places: bounds_of(&descriptor.span),
            descriptor,
            placement,
            store,
            gate,
            heat,
        }
    }

    /// What it is, without what is live.
    #[must_use]
    pub const fn descriptor(&self) -> &PhysicalPartition {
        &self.descriptor
    }

    /// The token of a partition key of its table.
    #[must_use]
    pub fn token(&self, partition_key: &[u8]) -> Token {
        self.placement.token(partition_key)
    }

    /// A number that spreads logical partitions evenly; see [`Placement::spread`].
    #[must_use]
    pub fn spread(&self, token: Token, partition_key: &[u8]) -> i64 {
        self.placement.spread(token, partition_key)
    }

    /// How the partition keys of its table find their tokens.
    #[must_use]
    pub const fn placement(&self) -> Placement {
        self.placement
    }

    /// The store that it lies in: for commits, which are a store's, and for moves.
    #[must_use]
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// What a read that begins now sees of the store.
    #[must_use]
    pub fn now(&self) -> Moment {
        Moment(self.store.snapshot())
    }

    /// How much of a table lies both in it and in a span.
    #[must_use]
    pub fn bytes_in(&self, table: TableId, span: &KeySpan) -> Estimate {
        let range = self.key_range_in(table, span);
        range.map(|range| self.store.bytes_in(&range)).unwrap_or_default()
    }

    /// How much of a table lies in its store, in this partition and others.
    #[must_use]
    pub fn store_bytes(&self, table: TableId) -> Estimate {
        self.store.bytes_in(&key::table_range(table))
    }

    /// The keys of a table's rows in it.
    #[must_use]
    pub fn key_range(&self, table: TableId) -> KeyRange {
        range_of(table, &self.span)
    }

    /// The keys of a table's rows that lie both in it and in a span; `None`: none can.
    #[must_use]
    pub fn key_range_in(&self, table: TableId, span: &KeySpan) -> Option<KeyRange> {
        self.span.and(span).map(|both| range_of(table, &both))
    }

    /// Whether a row of this place lies in it.
    pub(super) fn has_place(&self, place: &[u8]) -> bool {
        let (start, end) = &self.places;
        start.as_slice() <= place && end.as_ref().is_none_or(|end| place < end.as_slice())
    }

    /// Checks that a logical partition lies in it: else what is read of it would be missing, and what is written to it would be lost.
    ///
    /// # Errors
    /// [`Broken`] unless it does.
    #[inline]
    pub(super) fn check_has(&self, token: i64, partition_key: &[u8]) -> Result<(), Broken> {
        Invariant::KeyIsHosted.check(self.span.contains(token, partition_key), || {
            format!("physical partition {} and token {token}", self.id.0)
        })
    }
}

/// The keys of a table's rows in a span.
#[must_use]
pub fn range_of(table: TableId, span: &KeySpan) -> KeyRange {
    let start = span.start();
    let end = span.end().map(|end| (end.token(), end.partition_key()));
    key::span_range(table, (start.token(), start.partition_key()), end)
}

/// The place at which a span begins, and the one at which it ends.
pub(super) fn bounds_of(span: &KeySpan) -> (Vec<u8>, Option<Vec<u8>>) {
    let start = span.start();
    let end = span
        .end()
        .map(|end| key::boundary_place(end.token(), end.partition_key()));
    (key::boundary_place(start.token(), start.partition_key()), end)
}
