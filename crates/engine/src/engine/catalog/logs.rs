//! The change logs of tables in the catalog: their beginning, and what happens to them when a store is given up.
//!
//! The log of a new table begins with the table. That of an existing table begins when the table's option is published.
//! From the position that is recorded then, every change is in the log; a reader that wants earlier ones is refused. If
//! that record fails, the trimming of logs makes it later ([`crate::engine::feed`]).
//!
//! TRUNCATE keeps a log, also for the requests that still write under the table's old number. But a store that held
//! physical partitions of the table is removed with it, and with the store its entries. Then the log begins anew.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Catalog;
use crate::partition::log::LogStores;
use crate::partition::{StoreId, TablePartitions};
use helenus_schema::schema::{Schema, StorageId};

impl Catalog {
    /// The stores that may have entries of the change log of a table with these physical partitions.
    pub(in crate::engine) fn stores_with_log(&self, partitions: &TablePartitions) -> LogStores {
        LogStores::of(&self.placement.homes, partitions)
    }

    /// Begins logs after a change was published.
    pub(super) async fn begin_logs(&self, logs: impl IntoIterator<Item = StorageId>) {
        for log in logs {
            if let Err(error) = self.stores().begin_log(log).await {
                tracing::warn!(log, %error, "the beginning of a change log could not be recorded; it begins when it is next trimmed");
            }
        }
    }

    /// The logs of which entries are lost when these stores are removed, for tables that stay: they were in use by these
    /// physical partitions.
    pub(super) fn cut_logs(
        before: &Schema,
        next: &Schema,
        left: &[(StoreId, Vec<Arc<TablePartitions>>)],
        map_of: impl Fn(StorageId) -> Option<Arc<TablePartitions>>,
    ) -> BTreeSet<StorageId> {
        if left.is_empty() {
            return BTreeSet::new();
        }
        let is_left = |id: StoreId| left.iter().any(|(store, _)| *store == id);
        let tables = before.keyspaces.values().flat_map(|keyspace| keyspace.tables.values());
        let cut = tables.filter(|table| {
            map_of(table.storage_id).is_some_and(|map| map.stores().any(|(id, _)| is_left(id)))
                && next
                    .table_or_view(&table.keyspace, &table.name)
                    .is_some_and(|next| next.log() == table.log())
        });
        cut.filter_map(|table| table.log()).collect()
    }
}
