//! One running request: its terms, its catalog snapshot, its time and its reservations in budgets.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::claim::Claim;
use crate::engine::snapshot::Snapshot;
use crate::partition::TablePartitions;
use crate::throughput::{Account, PartitionRef};
use helenus_base::budget::Share;
use helenus_schema::schema::{Schema, StorageId, Table};
use helenus_types::consistency::Consistency;
use helenus_types::functions::Context;

/// The options of a request, and its sender. Plain data that a front end fills in.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms<'a> {
    /// The consistency level.
    pub consistency: Consistency,
    /// `Serial` or `LocalSerial`, for the decision about conditions; `None` means `Serial`.
    pub serial_consistency: Option<Consistency>,
    /// The timestamp of writes that name none, µs since 1970-01-01 UTC; `None` means the node's.
    pub timestamp_micros: Option<i64>,
    /// The time by which cells are expired, seconds since 1970-01-01 UTC; `None` means now.
    pub now_seconds: Option<i32>,
    /// Whether a trace is wanted.
    pub is_traced: bool,
    /// Bytes of the request's body, for logs; 0 means unknown.
    pub request_bytes: u32,
    /// The client's address, for logs and permissions. `None` means that the request is the server's own: no role and no audit entry
    /// is needed.
    pub client: Option<&'a SocketAddr>,
    /// The role of the login; `None` means that no login was required.
    pub user: Option<&'a Arc<str>>,
    /// Whether its front end records it in the audit log itself.
    pub is_recorded_elsewhere: bool,
    /// The virtual node that the client is connected to, from 0.
    pub node: usize,
    /// The connection's share of the memory for answers; `None` means no limit.
    pub share: Option<&'a Arc<Share>>,
}

/// A request, as every step of its execution sees it.
pub(crate) struct Request<'a> {
    /// The catalog at the moment when the request began.
    pub snapshot: Arc<Snapshot>,
    /// The same catalog as the owner of the partitions has it, if `snapshot` shows them elsewhere.
    #[cfg(feature = "simulation")]
    pub(in crate::engine) owners: Option<Arc<Snapshot>>,
    /// Its options.
    pub(crate) terms: Terms<'a>,
    /// The time by which cells are expired, seconds since 1970-01-01 UTC.
    pub(crate) now_seconds: i64,
    /// When it began, µs since 1970-01-01 UTC.
    pub(crate) at_micros: i64,
    /// When it began, by the monotonic clock.
    pub began: Duration,
    /// Time and randomness for its functions.
    pub(crate) context: Context,
    /// The budgets that admitted it; empty means that it uses no budget.
    pub(in crate::engine) claim: OnceLock<Claim>,
}

impl std::fmt::Debug for Request<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Request")
            .field("terms", &self.terms)
            .finish_non_exhaustive()
    }
}

impl Request<'_> {
    /// Drops the partition map of a request that changes it. Such a change waits until no request holds an old map. A
    /// request that kept its own map would wait for itself, or for another request that waits for it.
    pub(crate) fn drop_partition_map(&mut self) {
        self.snapshot = Arc::new(self.snapshot.without_partition_maps());
        #[cfg(feature = "simulation")]
        if self.owners.is_some() {
            self.owners = Some(Arc::clone(&self.snapshot));
        }
    }

    /// The catalog with the partitions that this machine serves, for what does not travel as a message yet: reads of the
    /// change feed, estimates, and the loads of partitions.
    pub(in crate::engine) fn served(&self) -> &Arc<Snapshot> {
        #[cfg(feature = "simulation")]
        if let Some(owners) = &self.owners {
            return owners;
        }
        &self.snapshot
    }

    /// Time and randomness for its functions.
    #[must_use]
    pub(crate) const fn context(&self) -> &Context {
        &self.context
    }

    /// The schema when the request began.
    #[must_use]
    pub(crate) fn schema(&self) -> &Arc<Schema> {
        &self.snapshot.schema
    }

    /// The consistency level of the request.
    pub(crate) const fn consistency(&self) -> Consistency {
        self.terms.consistency
    }

    /// The table or view with this number in the store.
    pub(in crate::engine) fn table(&self, id: StorageId) -> Option<&Arc<Table>> {
        let keyspaces = self.snapshot.schema.keyspaces.values();
        let mut tables = keyspaces.flat_map(|keyspace| keyspace.all_tables());
        tables.find(|table| table.storage_id == id)
    }

    /// The account of a physical partition that the request concerned when it began, or after it waited for a change
    /// of the partition map; `None` means that it has no budget.
    pub(in crate::engine) fn account(&self, partition: PartitionRef) -> Option<Arc<Account>> {
        let partitions = self.snapshot.partitions_of(partition.table)?;
        partitions.budget()?.account_now_or_later(partition.partition)
    }

    /// Whether the client requested a trace.
    pub(in crate::engine) const fn is_traced(&self) -> bool {
        self.terms.is_traced
    }

    /// The partition map of a table when the request began, with what is served here.
    pub(in crate::engine) fn partition_map(&self, table: StorageId) -> Option<&TablePartitions> {
        self.served().partitions_of(table)
    }

    /// The virtual node that the request came to, from 0.
    pub(in crate::engine) const fn node(&self) -> usize {
        self.terms.node
    }
}
