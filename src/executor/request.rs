//! One request while it is carried out: the catalog that it sees, its session and parameters, its time and its claim on budgets.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::admission::claim::Claim;
use super::answer::{QueryParams, SessionState};
use super::catalog::Snapshot;
use crate::functions::Context;
use crate::partition::{Consistency, TablePartitions};
use crate::schema::{StorageId, Table};
use crate::throughput::{Account, PartitionRef};

/// A request, as every step of its execution sees it.
pub(super) struct Request<'a> {
    /// The catalog at the moment when the request began.
    pub(super) snapshot: Arc<Snapshot>,
    /// The keyspace of unqualified names: the request's own, or its session's.
    pub(super) keyspace: Option<Arc<str>>,
    /// The session that sent it.
    pub(super) session: &'a SessionState,
    /// Values, page size, consistency level.
    pub(super) params: &'a QueryParams,
    /// The moment against which expiry is judged, seconds since 1970-01-01 UTC.
    pub(super) now_seconds: i64,
    /// When it began, µs since 1970-01-01 UTC.
    pub(super) at_micros: i64,
    /// When it began, by the monotonic clock.
    pub(super) began: Duration,
    /// Time and randomness for its functions.
    pub(super) context: Context,
    /// What its admission took from budgets; empty: nothing that it uses has a budget.
    pub(super) claim: OnceLock<Claim>,
}

impl Request<'_> {
    /// Drops the partition map of a statement that changes it. Such a change waits until no request holds an old map, so that a request
    /// which kept its own would wait for itself, or for another one that does.
    pub(super) fn drop_partition_map(&mut self) {
        self.snapshot = Arc::new(self.snapshot.without_lists());
    }

    /// The consistency level of the request.
    pub(super) const fn consistency(&self) -> Consistency {
        self.params.consistency
    }

    /// The table or view with this number in the store.
    pub(super) fn table(&self, id: StorageId) -> Option<&Arc<Table>> {
        let keyspaces = self.snapshot.schema.keyspaces.values();
        let mut tables = keyspaces.flat_map(|keyspace| keyspace.all_tables());
        tables.find(|table| table.storage_id == id)
    }

    /// The account that pays for a physical partition; `None`: it has no budget.
    pub(super) fn account(&self, partition: PartitionRef) -> Option<&Arc<Account>> {
        let partitions = self.snapshot.partitions_of(partition.table)?;
        partitions.budget()?.account(partition.partition)
    }

    /// Whether the client asked for a trace.
    pub(super) const fn is_traced(&self) -> bool {
        self.params.trace.is_some()
    }

    /// The partition map of a table when the request began.
    pub(super) fn partition_map(&self, table: StorageId) -> Option<&TablePartitions> {
        self.snapshot.partitions_of(table)
    }

    /// The virtual node that the request came to, from 0.
    pub(super) const fn node(&self) -> usize {
        self.session.node
    }
}
