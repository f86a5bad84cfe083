//! `system_cosmos`: virtual tables that Cassandra does not have.

mod common;
mod feedranges;
pub(super) mod hot_keys;
pub(super) mod largest_partitions;
mod memory;
pub(super) mod nodes;
mod partition_throughput;
pub(super) mod partitions;
mod replicas;
mod request_log;
pub(super) mod tables;
mod throttles;
mod throughput;

use super::view::View;

pub(super) const VIEWS: &[View] = &[
    feedranges::VIEW,
    hot_keys::VIEW,
    largest_partitions::VIEW,
    memory::VIEW,
    nodes::VIEW,
    partition_throughput::VIEW,
    partitions::VIEW,
    replicas::VIEW,
    request_log::VIEW,
    tables::VIEW,
    throttles::VIEW,
    throughput::VIEW,
];
