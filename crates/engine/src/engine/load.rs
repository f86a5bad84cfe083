//! Load: physical partitions with too many requests are split, and the hot partition keys are shown.
//!
//! Every statement's charges are added to the load of the physical partitions that served it and to the counters of its
//! keys ([`super::meter`]). [`split_hot`], called periodically by a background task, splits partitions that stayed hot,
//! where their load is halved. The check of sizes (partitions.rs) merges quiet ones.
//!
//! Tables with throughput of their own, or of their keyspace, are exempt. Their budget is divided evenly over their
//! partitions, so a split would halve what the hot range may use. They are split when their throughput needs it, as in
//! Cosmos. In the `cosmos` profile, where every table has throughput, nothing else splits.

use std::sync::Arc;
use std::time::Duration;

use super::catalog::Catalog;
use super::error::Error;
use super::partitions::{Repartitioned, split};
use super::snapshot::Snapshot;
use crate::partition::{Hosted, LoadLimits, Placement};
use helenus_schema::schema::{Table, system};
use helenus_types::token::KeyBound;

/// Number of physical partitions from which load no longer causes a split of a table.
const PARTITIONS_MAX: usize = 256;

/// Checks the load of each physical partition since the last check, and splits those that stayed hot. Requests do
/// not wait for it; it may stop anywhere.
///
/// # Errors
/// When the medium fails; changes made before remain.
pub(super) async fn split_hot(
    catalog: &Arc<Catalog>,
    is_cosmos: bool,
    limits: &LoadLimits,
    now: Duration,
) -> Result<Repartitioned, Error> {
    let mut done = Repartitioned::default();
    let snapshot = Arc::clone(&catalog.load());
    for table in snapshot.schema.stored_tables() {
        let map = snapshot.partitions(table)?;
        for partition in map.here() {
            // Check every partition, also those that are not hot, so that its rate is known.
            let is_hot = partition.load.check(now, limits);
            if !is_hot || is_cosmos || !may_split(&snapshot, table) || map.all().len() >= PARTITIONS_MAX {
                continue;
            }
            let (keyspace, name) = (&table.keyspace, &table.name);
            let per_second = partition.load.per_second().as_f64();
            let Some(at) = middle(partition) else {
                tracing::warn!(
                    keyspace,
                    table = name,
                    partition = partition.id.0,
                    per_second,
                    "one partition key has nearly all requests of a hot physical partition"
                );
                partition.load.begin_again();
                continue;
            };
            let token = at.token();
            if split(catalog, table.storage_id, vec![at]).await? > 0 {
                done.splits += 1;
                tracing::info!(
                    keyspace,
                    table = name,
                    partition = partition.id.0,
                    per_second,
                    token,
                    "split a hot physical partition"
                );
            }
        }
    }
    Ok(done)
}

/// The bound at which the load of a physical partition is halved; `None` means that one key has nearly all of it.
fn middle(partition: &Hosted) -> Option<KeyBound> {
    let middle = match partition.placement() {
        Placement::Hash => partition.load.middle().map(KeyBound::at_token),
        Placement::Key => {
            let key = partition.load.middle_key();
            key.map(|key| KeyBound::at_key(partition.token(&key), &key))
        }
    };
    middle.filter(|at| at > partition.span.start())
}

/// Whether load may split a table.
fn may_split(snapshot: &Snapshot, table: &Table) -> bool {
    let keyspace = snapshot.schema.keyspaces.get(&table.keyspace);
    let is_provisioned =
        table.options.throughput.is_some() || keyspace.is_some_and(|keyspace| keyspace.throughput.is_some());
    !is_provisioned && !system::is_name(&table.keyspace)
}
