//! Staged writes: one batch for each store, with the sizes and charges to record once they are durable.

use std::sync::Arc;

use bytes::Bytes;

use super::services::WriteServices;
use crate::engine::batch_log;
use crate::engine::catalog::Catalog;
use crate::engine::logical::Admitted;
use crate::engine::part::write::changes::{Changes, PendingCharge, StagedStore, charge};
use crate::engine::pending::{Logged, RecordId, Whole};
use crate::engine::terms::passes::Passes;
use crate::engine::terms::write::{Routed, WriteRequest};
use crate::engine::{Error, gates, storage_read, storage_write};
use crate::partition::{BatchKeys, Held, Nodes, StoreId};
use crate::throughput::Charges;
use helenus_base::invariant::Broken;
use helenus_base::mutant::{self, Mutant};
use helenus_storage::storage::{Batch, Committed, Error as StoreError, Opening, Row, Space, check_row_bytes};
use helenus_types::consistency::WriteKind;

/// The outcome of staged changes.
pub(crate) enum Outcome {
    /// The changes are durable. Holds the warnings for the client.
    Written(Vec<String>),
    /// Nothing was written: the rows that the changes derive from may have changed ([`ReadOpenings`]).
    CheckAgain,
}

/// How often changes are derived again before the write fails. Each time the store failed and was reopened meanwhile.
pub(crate) const CHECKS_MAX: usize = 8;

/// Changes were derived [`CHECKS_MAX`] times, and each time the store was reopened before they were written.
pub(crate) fn given_up() -> Error {
    storage_write(&StoreError::OpenedAgain)
}

/// The openings of the stores in which a request read, if its writes depend on those reads. An earlier commit that
/// failed may have taken effect all the same, and its effect becomes visible only with another opening.
#[derive(Default)]
pub(crate) struct ReadOpenings(Vec<(StoreId, Opening)>);

impl ReadOpenings {
    /// Taken under the locks, before anything is read.
    ///
    /// # Errors
    /// A partition is not served here.
    pub(super) fn now(modifications: &[Routed<'_>]) -> Result<Self, Broken> {
        let mut openings: Vec<(StoreId, Opening)> = Vec::with_capacity(1);
        if mutant::is_on(Mutant::CheckByOldOpening) {
            return Ok(Self(openings));
        }
        for routed in modifications {
            for partition_key in &routed.modification.partition_keys {
                let (_, partition) = routed.partitions.hosted(partition_key)?;
                if openings.iter().all(|(id, _)| *id != partition.store_id) {
                    openings.push((partition.store_id, partition.store().opening()));
                }
            }
        }
        Ok(Self(openings))
    }

    fn of(&self, store: StoreId) -> Option<Opening> {
        let found = self.0.iter().find(|(id, _)| *id == store);
        found.map(|(_, opening)| *opening)
    }
}

/// Changes to be committed to their stores.
#[derive(Default)]
pub(crate) struct Staged {
    pub(super) changes: Changes,
    pub(super) openings: ReadOpenings,
    /// Held until everything is committed.
    pub(super) passes: Passes,
    /// Keys of the view rows that derive from the other changes.
    pub(super) view_rows: Vec<Vec<u8>>,
    /// The longest row that the stores allow. `None` means no limit, or that the limit has been checked already.
    pub(super) row_bytes_max: Option<usize>,
}

impl Staged {
    /// Commits the staged writes; durable when it returns. A commit continues when its request is dropped, and keeps
    /// its locks: the next reader under them must see its result. Takes the staged writes by reference: moving them
    /// would copy several hundred bytes.
    ///
    /// # Errors
    /// A limit would be exceeded, and then nothing was written; a store refuses or fails.
    pub(crate) async fn commit(
        &mut self,
        services: &WriteServices,
        request: &WriteRequest,
        held: Option<Held>,
        charges: &mut Charges,
    ) -> Result<Outcome, Error> {
        let mut admitted = gates::commit(&services.limits, &services.logical, &self.changes.weights, request).await?;
        for (store, key, value) in admitted.records.drain(..) {
            // In the same commit as the rows, so that it costs nothing.
            if let Some(staged) = self.changes.stores.iter_mut().find(|staged| staged.id == store) {
                staged.batch.put(Space::Catalog, key, value);
            }
        }
        let warnings = std::mem::take(&mut admitted.warnings);
        let is_apart = self.changes.stores.iter().zip(self.changes.stores.iter().skip(1));
        let is_whole = request.write_kind == WriteKind::Batch || !self.view_rows.is_empty();
        let is_logged = is_whole && is_apart.into_iter().any(|(one, next)| one.id != next.id);
        let row_bytes_max = services
            .limits
            .merged_row_bytes_max
            .map(|max| usize::try_from(max).unwrap_or(usize::MAX));
        match row_bytes_max {
            // Once its record is written, all of the batch must be applied. So no store may refuse its part.
            Some(max) if is_logged => self.refuse_long_rows(max).await?,
            max => self.row_bytes_max = max,
        }
        // Keys written during a copy are recorded after the commit. So the commit has to finish even if the request is
        // dropped.
        let is_spawned = is_logged || self.passes.are_copied();
        match held {
            held if is_spawned || (held.is_some() && !mutant::is_on(Mutant::UnlockAtCancel)) => {
                let (nodes, catalog) = (Arc::clone(&services.nodes), Arc::clone(&services.catalog));
                let now_seconds = services.clock.now_seconds();
                let tasks = services.catalog.published.tasks.clone();
                let mut staged = std::mem::take(self);
                let committing = tasks.carry("commit", async move {
                    let mut commits = Vec::new();
                    let each = |committed, marked| commits.push((committed, marked));
                    let outcome = if is_logged {
                        let stores = staged.changes.stores.iter().map(|staged| staged.id);
                        let id = catalog.published.new_batch(catalog.logs_batches(stores));
                        let logged = catalog.published.pending.begin(id, now_seconds);
                        Box::pin(staged.commit_logged(&nodes, &catalog, logged, &mut admitted, each)).await
                    } else {
                        staged.commit_all(&nodes, false, &mut admitted, each).await
                    };
                    drop(held);
                    (commits, outcome)
                });
                let committed = committing.await;
                let (commits, outcome) = committed.map_err(|error| Error::Fault(error.to_string()))?;
                for (committed, marked) in commits {
                    charge(&committed, marked, charges);
                }
                if !outcome? {
                    return Ok(Outcome::CheckAgain);
                }
            }
            _held => {
                let committing = self.commit_all(&services.nodes, false, &mut admitted, |committed, marked| {
                    charge(&committed, marked, charges)
                });
                if !committing.await? {
                    return Ok(Outcome::CheckAgain);
                }
            }
        }
        Ok(Outcome::Written(warnings))
    }

    /// Reads rows to refuse those that would exceed their length limit.
    async fn refuse_long_rows(&self, bytes_max: usize) -> Result<(), Error> {
        for StagedStore { store, batch, .. } in &self.changes.stores {
            let at = store.snapshot();
            for (key, fragment) in batch.fragments() {
                let stored = store.get(Space::Rows, key, &at).await;
                let stored = stored.map_err(|error| storage_read(&error))?;
                let before = stored.as_ref().map(Bytes::len);
                let after = match &stored {
                    // A merged row is no longer than both versions together, so a shorter sum needs no merge.
                    Some(stored) if stored.len() + fragment.len() > bytes_max => {
                        let [stored, fragment] = [stored, fragment].map(|row| Row::decode(row));
                        let stored = stored.map_err(|error| storage_read(&error))?;
                        let fragment = fragment.map_err(|error| storage_read(&error))?;
                        Row::merge(stored, fragment).encode().len()
                    }
                    _ => fragment.len(),
                };
                check_row_bytes(before, fragment, after, bytes_max).map_err(|error| storage_write(&error))?;
            }
        }
        Ok(())
    }

    /// Commits changes of several stores so that all of them are written, or none (batch_log.rs). `id` is the
    /// batch's record, which is pending.
    async fn commit_logged(
        &mut self,
        nodes: &Nodes,
        catalog: &Arc<Catalog>,
        id: RecordId,
        admitted: &mut Admitted,
        each: impl FnMut(Committed, Vec<PendingCharge>),
    ) -> Result<bool, Error> {
        let failed = |error: StoreError| storage_write(&error);
        // If one store does not accept its part, the others must not be written, nor a record.
        let parts = self.changes.stores.iter();
        let mut checked = parts.map(|staged| staged.store.check_batch(&staged.batch));
        let refused = checked.find_map(Result::err);
        let home = catalog.stores().get(id.store).ok_or(StoreError::Closed);
        let home = home.and_then(|home| home.check_batch(&Batch::new()).map(|()| home));
        let home = match refused.map_or(home, Err) {
            Ok(home) => home,
            Err(error) => {
                catalog.published.pending.end(id);
                return Err(failed(error));
            }
        };
        let mut record = Vec::new();
        for staged in &self.changes.stores {
            staged.batch.encode_merges(&mut record);
        }
        Batch::encode_rechecked(self.view_rows.iter().map(Vec::as_slice), &mut record);
        let record = Bytes::from(record);
        let logged = Logged { id, record };
        if let Err(error) = batch_log::record(&catalog.published, &logged).await {
            batch_log::spawn_forget(&catalog.published, id);
            return Err(failed(error));
        }
        let others = self.changes.stores.iter().filter(|staged| staged.id != id.store);
        let stores = others.map(|staged| staged.id).collect();
        let committed = match self.commit_all(nodes, true, admitted, each).await {
            // Nothing was written. The next attempt uses a record of its own.
            Ok(false) => {
                let mut batch = Batch::new();
                batch.delete(Space::Catalog, id.key());
                let forgotten = home.commit(batch).await;
                match forgotten {
                    Ok(_) => catalog.published.pending.end(id),
                    Err(_) => batch_log::spawn_forget(&catalog.published, id),
                }
                return forgotten.map(|_| false).map_err(failed);
            }
            committed => committed,
        };
        match &committed {
            Ok(_) => batch_log::remove_later(&catalog.published, Whole { id, stores }).await,
            Err(_) => batch_log::spawn_replay(&catalog.published, logged),
        }
        committed
    }

    /// Commits the changes, a part for each store; returns false if nothing was committed and the changes have to be derived
    /// again. Parts that depend on reads come first, since their stores may have been opened again meanwhile.
    async fn commit_all(
        &mut self,
        nodes: &Nodes,
        is_logged: bool,
        admitted: &mut Admitted,
        mut each: impl FnMut(Committed, Vec<PendingCharge>),
    ) -> Result<bool, Error> {
        let (mut checked, mut others) = (Vec::new(), Vec::new());
        for mut staged in std::mem::take(&mut self.changes.stores) {
            if let Some(bytes_max) = self.row_bytes_max {
                staged.batch.limit_rows(bytes_max);
            }
            if !is_logged && mutant::is_on(Mutant::AcknowledgeBeforeCommit) {
                tokio::spawn(async move { staged.store.commit(staged.batch).await });
                continue;
            }
            if staged.batch.is_empty() {
                continue;
            }
            match self.openings.of(staged.id) {
                Some(opening) => {
                    staged.batch.only_in(opening);
                    checked.push(staged);
                }
                None => others.push(staged),
            }
        }
        for mut parts in [checked, others] {
            let committed = match parts.as_mut_slice() {
                [] => continue,
                [staged] => self.commit_part(staged, nodes, admitted, &mut each).await,
                // Boxed, since it is rare: every write's future would be as large.
                _ => Box::pin(self.commit_at_once(parts, nodes, admitted, &mut each)).await,
            };
            match committed {
                Ok(()) => {}
                Err(StoreError::OpenedAgain) => return Ok(false),
                Err(error) => return Err(storage_write(&error)),
            }
        }
        Ok(true)
    }

    /// Commits parts at once, and waits for all of them.
    ///
    /// # Errors
    /// [`StoreError::OpenedAgain`] if nothing was committed, and the changes can be derived again.
    async fn commit_at_once(
        &self,
        parts: Vec<StagedStore>,
        nodes: &Nodes,
        admitted: &mut Admitted,
        each: &mut impl FnMut(Committed, Vec<PendingCharge>),
    ) -> Result<(), StoreError> {
        let parts = parts.into_iter().map(|mut staged| async move {
            let committed = self.commit_batch(&mut staged, nodes).await;
            (staged, committed)
        });
        let (mut again, mut failure, mut is_begun) = (None, None, false);
        for (staged, committed) in futures::future::join_all(parts).await {
            match committed {
                Ok(committed) => {
                    record_sizes(&committed, &staged.marked, admitted);
                    each(committed, staged.marked);
                    is_begun = true;
                }
                Err(error @ StoreError::OpenedAgain) => again = Some(error),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        // Changes of which a part was committed, or may be yet, cannot be withdrawn and derived again.
        let again = again.map(|again| if is_begun { StoreError::Reopening } else { again });
        failure.or(again).map_or(Ok(()), Err)
    }

    async fn commit_part(
        &self,
        staged: &mut StagedStore,
        nodes: &Nodes,
        admitted: &mut Admitted,
        each: &mut impl FnMut(Committed, Vec<PendingCharge>),
    ) -> Result<(), StoreError> {
        let committed = self.commit_batch(staged, nodes).await?;
        record_sizes(&committed, &staged.marked, admitted);
        each(committed, std::mem::take(&mut staged.marked));
        Ok(())
    }

    /// Commits the batch of one store, and records its keys for a running copy.
    async fn commit_batch(&self, staged: &mut StagedStore, nodes: &Nodes) -> Result<Committed, StoreError> {
        let batch = std::mem::take(&mut staged.batch);
        let to_record = self.passes.keys_to_record(|| BatchKeys::of(&batch));
        let before = nodes.keeps_moments().then(|| staged.store.snapshot());
        let committed = staged.store.commit_rows(batch).await;
        self.passes.record(&to_record, committed.is_ok());
        if let (Some(before), Ok(_)) = (before, &committed) {
            nodes.record_commit(staged.id, before, staged.store.snapshot());
        }
        committed
    }
}

/// Records how the rows of watched partitions have grown.
fn record_sizes(committed: &Committed, marked: &[PendingCharge], admitted: &mut Admitted) {
    if !admitted.is_watched() {
        return;
    }
    for written in committed.rows() {
        if let Some(marked) = marked.get(written.change) {
            let bytes = [written.before_bytes, written.after_bytes].map(|bytes| bytes.unwrap_or(0) as u64);
            admitted.record_sizes(&marked.place(), bytes);
        }
    }
}
