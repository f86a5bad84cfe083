//! Adding the rows of materialized views that derive from staged writes (`engine::view`).

use std::sync::Arc;

use super::services::WriteServices;
use super::staged::Staged;
use crate::engine::terms::passes::Closed;
use crate::engine::terms::write::WriteRequest;
use crate::engine::view::follow::Touched;
use crate::engine::{Error, storage_read};
use crate::partition::PartitionLatch;
use crate::partition::rows::decode_change;

/// Whether the rows of views were staged.
pub(super) enum Views {
    /// All view rows were staged, or there are none.
    Staged,
    /// A view's partition is being moved, so nothing may be committed. The caller releases everything, waits for the
    /// latch if there is one, and begins again.
    Again(Option<Arc<PartitionLatch>>),
}

impl Views {
    /// Waits for the move. The caller holds no lock and no latch.
    pub(super) async fn wait(latch: Option<Arc<PartitionLatch>>) {
        match latch {
            Some(latch) => latch.wait().await,
            // The new partition map is published before the latches of the previous one are superseded.
            None => tokio::task::yield_now().await,
        }
    }
}

impl WriteServices {
    /// Adds the rows of views. The caller holds the locks of the staged rows' partitions.
    ///
    /// # Errors
    /// A store fails, or the current catalog is in doubt.
    pub(super) async fn stage_views(&self, request: &WriteRequest, staged: &mut Staged) -> Result<Views, Error> {
        self.catalog.refuse_in_doubt(request.consistency)?;
        let snapshot = self.catalog.load_full();
        let mut touched = Touched::default();
        for store in &staged.changes.stores {
            for (space, key, value) in store.batch.pending_merges() {
                touched.add(
                    &snapshot,
                    decode_change(space, key, value).map_err(|error| storage_read(&error))?,
                );
            }
        }
        for row in touched.following(&snapshot, None, request.now_seconds).await? {
            match staged.passes.add(&row.partition.latch) {
                Ok(()) => {
                    let (table, place) = ((&row.view, &row.partition), (row.token, &row.partition_key));
                    let key = staged.changes.replace_row(table, place, row.logical()?, row.is_removed);
                    staged.view_rows.push(key);
                }
                Err(Closed::Held(latch)) => return Ok(Views::Again(Some(latch))),
                Err(Closed::Superseded) => return Ok(Views::Again(None)),
            }
        }
        Ok(Views::Staged)
    }
}
