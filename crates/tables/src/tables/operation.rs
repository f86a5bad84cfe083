//! What requests ask of the store, and what it gives back: plain data.

use std::net::SocketAddr;

use helenus_engine::throughput::RequestUnits;

use super::entity::{Entity, KeyBounds};
use super::fault::Fault;
use super::filter::Filter;

/// Operations of one group transaction. Source: Performing entity group transactions.
pub const OPERATIONS_MAX: usize = 100;

/// Entities of a page. Source: Query timeout and pagination.
pub const PAGE_ENTITIES_MAX: u32 = 1_000;

/// Who asks, and of which account.
#[derive(Clone, Copy, Debug)]
pub struct Asker<'a> {
    /// The account, whose key or signature was checked.
    pub account: &'a str,
    /// The client's address.
    pub client: SocketAddr,
}

/// A change of one entity.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// What is done.
    pub verb: Verb,
    /// The entity, of which [`Verb::Delete`] uses the keys alone.
    pub entity: Entity,
    /// What the stored entity must be, for [`Verb::Update`], [`Verb::Merge`] and [`Verb::Delete`].
    pub condition: Match,
}

/// What is done to an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Makes it; it must not be there.
    Insert,
    /// Replaces it; it must be there.
    Update,
    /// Changes the properties that are named; it must be there.
    Merge,
    /// Makes or replaces it.
    InsertOrReplace,
    /// Makes it, or changes the properties that are named.
    InsertOrMerge,
    /// Removes it; it must be there.
    Delete,
}

/// What the stored entity must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// No condition: inserts, with or without "or".
    None,
    /// There, in any version.
    Any,
    /// There, in this version, µs. A tag that is none of ours is a version that no entity has.
    Tag(i64),
}

/// The refusal of a group transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The operation that cannot be done, from 0.
    pub index: usize,
    /// Why.
    pub fault: Fault,
}

/// A group transaction that was done, or a single change.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// The new versions in the order of the operations, µs. That of a removed entity means nothing.
    pub versions: Vec<i64>,
    /// What it cost.
    pub charge: RequestUnits,
}

/// An entity that was read by its keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The entity.
    pub entity: Entity,
    /// What it cost.
    pub charge: RequestUnits,
}

/// A query of one page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// Which entities; `None` means all.
    pub filter: Option<Filter>,
    /// The keys that the asker may see; `None` means all.
    pub bounds: Option<KeyBounds>,
    /// Entities of the page at most, 1 to [`PAGE_ENTITIES_MAX`]; `None` means the latter.
    pub top: Option<u32>,
    /// Where it begins; `None` means at the first entity.
    pub from: Option<Place>,
}

/// The first place that is not yet read. No entity need be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The partition key.
    pub partition_key: String,
    /// The row key; `None` means the partition's beginning.
    pub row_key: Option<String>,
}

/// A page of entities.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// In the order of keys.
    pub entities: Vec<Entity>,
    /// Where the next page begins; `None` means that there is none.
    pub next: Option<Place>,
    /// How they were found.
    pub plan: PlanKind,
    /// What it cost.
    pub charge: RequestUnits,
}

/// How a query finds entities, from the best to the worst. Source: Designing a scalable partitioning strategy, Query types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlanKind {
    /// Both keys are given.
    Point,
    /// The partition key is given, and rows of it are read.
    RowRange,
    /// A range of partition keys is given.
    PartitionRange,
    /// All partitions are read.
    TableScan,
}

impl PlanKind {
    /// The name in answers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Point => "point",
            Self::RowRange => "row-range",
            Self::PartitionRange => "partition-range",
            Self::TableScan => "table-scan",
        }
    }
}
