//! Clean-up behind the writers: what expired or was deleted long enough ago leaves the store, table by table.

use super::database::Database;
use super::error::Error;
use crate::partition::store::{Swept, key};

impl Database {
    /// Removes physically what no reader sees any more: what expired, what deletions hide, and deletions older than their table's
    /// `gc_grace_seconds`; nothing while the clock is not believed. Writers do not wait for it; it may stop anywhere. A table dropped meanwhile is left to its own removal.
    ///
    /// # Errors
    /// When the medium fails; what was swept before stays so.
    pub async fn sweep(&self) -> Result<Swept, Error> {
        let mut swept = Swept::default();
        let (snapshot, now_seconds) = (self.snapshot(), self.now_seconds());
        let schema = &snapshot.schema;
        let tables = schema.keyspaces.values().flat_map(|keyspace| keyspace.tables.values());
        for table in tables.filter(|table| !table.is_virtual) {
            if !self.may_purge() {
                break;
            }
            let gc_before_seconds = now_seconds.saturating_sub(table.options.gc_grace_seconds.into());
            let gc_before_seconds = self.catalog.pending.purge_horizon_seconds(gc_before_seconds);
            let range = key::table_range(table.storage_id);
            let stores = snapshot.partitions_of(table.storage_id);
            for (_, store) in stores.into_iter().flat_map(|list| list.stores()) {
                let of_store = store.sweep(&range, now_seconds, gc_before_seconds).await;
                let of_store = of_store.map_err(|error| Error::Server(error.to_string()))?;
                swept.rows_removed += of_store.rows_removed;
                swept.rows_shrunk += of_store.rows_shrunk;
                swept.deletions_removed += of_store.deletions_removed;
                tokio::task::yield_now().await;
            }
        }
        Ok(swept)
    }
}
