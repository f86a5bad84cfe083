//! The `partition` module: from a position on the ring to the store that holds it.
//!
//! A table has a [`PartitionMap`]: pure descriptors ([`ring`]) of half-open ranges of partition keys ([`helenus_types::token::KeySpan`]) that
//! cover the ring without gap or overlap. Requests use [`TablePartitions`] ([`map`]), which adds the live state to each
//! descriptor where it is served ([`Placed`]): here, as a [`Hosted`] with its store, latch and load, or at another machine. Only the table's [`Placement`] gives a partition key its
//! token ([`TablePartitions::place`]). Rows are read and staged by (partition key, clustering key) ([`rows`]), index
//! entries by the places of rows ([`entries`]), at the moments of one [`ReadView`]. Rows in a store outside the
//! partition's range cannot be seen.
//!
//! The replica set decides whether a consistency level can be met ([`replicas`]); [`nodes`] and [`faults`] report which
//! replicas are alive and which faults are planned, and [`seats`] which nodes of a fleet are. A write whose outcome depends on stored rows takes the lock
//! of its partition key ([`key_locks`]). Every write holds the partition's latch ([`latch`]), so that the partition can
//! be moved to another of the open stores ([`stores`]). Until then it lies in its home ([`homes`]). Use is measured in bounded memory: which logical partitions may
//! be large ([`gauges`]), which keys are hot ([`hot`]), and the load of each physical partition ([`load`]). This module
//! does not interpret rows or statements.
//!
//! Sources: the design's three nouns (logical partition, physical partition, store); native_protocol_v5.spec §3
//! `[consistency]`.

pub mod backups;
pub mod entries;
pub mod faults;
pub mod feed;
pub mod gauges;
pub mod homes;
pub mod hosted;
pub mod hot;
pub mod key_locks;
pub mod latch;
pub mod load;
pub mod log;
pub mod map;
pub mod moment;
pub mod nodes;
pub mod placed;
mod purge;
pub mod replicas;
pub mod ring;
pub mod rows;
pub mod salvage;
pub mod seats;
pub mod stores;
pub mod view;

pub use gauges::Gauges;
pub use homes::Homes;
pub use hosted::Hosted;
pub use hot::{HotKey, HotKeys};
pub use key_locks::{Held, KeyLocks};
pub use latch::{BatchKeys, Entry, PartitionLatch, Pass};
pub use load::{Load, LoadLimits};
pub use map::TablePartitions;
pub use moment::Moment;
pub use nodes::Nodes;
pub use placed::{Owner, Placed};
pub use replicas::{ReplicaSet, Shortage};
pub use ring::{MapError, PARTITIONS_MAX, PartitionMap, PhysicalPartition, PhysicalPartitionId, Placement, StoreId};
pub use rows::{Ahead, Found, LogicalPartition, Passed, Prefix, RowKey, RowRange};
pub use seats::{Seat, Seats};
pub use stores::Stores;
pub use view::ReadView;
