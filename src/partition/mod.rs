//! The `partition` room: from a place on the ring to the store that holds it.
//!
//! Every table is a list of [`PhysicalPartition`]s: contiguous token ranges that cover the ring without
//! gap or overlap. A request takes a partition key's token, finds its physical partition ([`map`]), asks whether the replica set
//! can honour its consistency level ([`replicas`]; who is alive, and what goes wrong on purpose, [`nodes`] and [`faults`] say), and
//! where its outcome depends on what is stored it takes the stripe lock of the partition key ([`stripes`]). Writes go through the
//! partition's gate ([`gate`]), so that it can be moved to another of the open stores ([`stores`]). What is written and asked
//! is judged in bounded memory: which logical partitions may be large ([`gauges`]), which are asked most ([`hot`]), how much is asked
//! of a physical one ([`heat`]). What a row or a statement is, this room does not know.
//!
//! Sources: the design's three nouns (logical partition, physical partition, store); native_protocol_v5.spec §3 `[consistency]`.

pub mod backups;
pub mod faults;
pub mod gate;
pub mod gauges;
pub mod heat;
pub mod hot;
pub mod map;
pub mod nodes;
pub mod replicas;
pub mod store;
pub mod stores;
pub mod stripes;

pub use gate::{Entry, Pass, WriteGate};
pub use gauges::Gauges;
pub use heat::{Heat, HeatLimits};
pub use hot::{HotKey, HotKeys};
pub use map::{MapError, PARTITIONS_MAX, PhysicalPartition, PhysicalPartitionId, StoreId, TablePartitions};
pub use nodes::Nodes;
pub use replicas::{Consistency, ReplicaSet, Shortage};
pub use stores::Stores;
pub use stripes::{Held, Stripes};
