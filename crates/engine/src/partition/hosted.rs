//! A physical partition that this machine serves: its descriptor and its live parts.
//!
//! The rest of the server reads and stages rows by (partition key, clustering key). This module builds the keys of rows
//! and hides rows of the store that lie outside the partition's span. After a move the old store holds such rows for a
//! while.

use std::ops::Deref;
use std::sync::Arc;

use super::latch::PartitionLatch;
use super::load::Load;
use super::moment::Moment;
use super::ring::{PhysicalPartition, Placement};
use helenus_base::invariant::{Broken, Invariant};
use helenus_storage::storage::{Estimate, KeyRange, Store, TableId, key};
use helenus_types::token::{KeySpan, Token};

/// A physical partition that is served here. A clone shares the live parts.
#[derive(Clone, Debug)]
pub struct Hosted {
    descriptor: PhysicalPartition,
    placement: Placement,
    store: Store,
    /// The bounds of its span among the places of index entries.
    places: (Vec<u8>, Option<Vec<u8>>),
    /// The latch that its writers hold.
    pub latch: Arc<PartitionLatch>,
    /// Its load.
    pub load: Arc<Load>,
}

/// Dereferences to the descriptor, for callers that need only its number, span, epoch and store.
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
        latch: Arc<PartitionLatch>,
        load: Arc<Load>,
    ) -> Self {
        Self {
            places: bounds_of(&descriptor.span),
            descriptor,
            placement,
            store,
            latch,
            load,
        }
    }

    /// Its descriptor, without the live parts.
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

    /// How the partition keys of its table get their tokens.
    #[must_use]
    pub const fn placement(&self) -> Placement {
        self.placement
    }

    /// Its store: commits and moves need the store itself.
    #[must_use]
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// The current state of the store, for a read that begins now.
    #[must_use]
    pub fn now(&self) -> Moment {
        Moment(self.store.snapshot())
    }

    /// The estimated size of a table's rows that lie both in it and in a span.
    #[must_use]
    pub fn bytes_in(&self, table: TableId, span: &KeySpan) -> Estimate {
        let range = self.key_range_in(table, span);
        range.map(|range| self.store.bytes_in(&range)).unwrap_or_default()
    }

    /// The estimated size of a table in its store, in this partition and others.
    #[must_use]
    pub fn store_bytes(&self, table: TableId) -> Estimate {
        self.store.bytes_in(&key::table_range(table))
    }

    /// The keys of a table's rows in it.
    #[must_use]
    pub fn key_range(&self, table: TableId) -> KeyRange {
        range_of(table, &self.span)
    }

    /// The keys of a table's rows that lie both in it and in a span; `None` means that there are none.
    #[must_use]
    pub fn key_range_in(&self, table: TableId, span: &KeySpan) -> Option<KeyRange> {
        self.span.and(span).map(|both| range_of(table, &both))
    }

    /// Whether a row at this place lies in it.
    pub(super) fn has_place(&self, place: &[u8]) -> bool {
        let (start, end) = &self.places;
        start.as_slice() <= place && end.as_ref().is_none_or(|end| place < end.as_slice())
    }

    /// Checks that a logical partition lies in it: otherwise reads would miss rows, and writes would be lost.
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

/// The place at which a span begins, and the one at which it ends; `None` means no end.
pub(super) fn bounds_of(span: &KeySpan) -> (Vec<u8>, Option<Vec<u8>>) {
    let start = span.start();
    let end = span
        .end()
        .map(|end| key::boundary_place(end.token(), end.partition_key()));
    (key::boundary_place(start.token(), start.partition_key()), end)
}
