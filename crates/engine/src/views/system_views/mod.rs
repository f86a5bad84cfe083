//! `system_views`. Tables for features that Helenus lacks are empty.

mod batch_metrics;
mod caches;
mod clients;
mod coordinator_latency;
mod cql_metrics;
mod disk_usage;
pub(super) mod indexes;
mod numbers;
mod sai_column_indexes;
mod settings;
mod sstable_tasks;

use super::view::View;

pub(super) const VIEWS: &[View] = &[
    batch_metrics::VIEW,
    caches::VIEW,
    clients::VIEW,
    coordinator_latency::READS,
    coordinator_latency::SCANS,
    coordinator_latency::WRITES,
    cql_metrics::VIEW,
    disk_usage::VIEW,
    sai_column_indexes::VIEW,
    settings::VIEW,
    sstable_tasks::VIEW,
];
