//! Moving a physical partition to another store: into a new one of its own (lift), or into one that is there: its home
//! (lower), or the store of the neighbour with which it is merged.
//!
//! One table in steps.rs lists the steps, what each leaves on disk, and what follows from a crash or failure. This file
//! executes them ([`Run`]).
//!
//! **Writers** hold the partition's latch (`partition::latch`). A move holds it exclusively twice, each time until the
//! current commits are done and a few keys are copied. No acknowledged write can be missed: the move waits for writers
//! that hold the latch, and an empty commit completes after the commits of cancelled requests. A failed commit may
//! still take effect, as late as the next one, so its keys are copied until the end. Writers that wait for the latch
//! then use the new partition map.
//!
//! **Readers** take no latch. A reader with the old partition map reads the rows in their old store. They stay there
//! unchanged until the last such reader has ended ([`TablePartitions::when_left`]).
//!
//! **Copies.** SlateDB clones the range for a lift out of the main store or a data store: the new database names the
//! same tables in the bucket, and no row is copied. Deletions, which are few, are copied, and index entries are derived.
//! Everything else is copied from a snapshot in batches: a store of a moved partition may be removed, so that no clone
//! may depend on it. The index entries of a store derive from its rows. A copied snapshot is read again in the target and
//! compared, by the number of entries and a checksum, before the move goes on.
//!
//! **Kills, failures and power losses.** The records in the main store decide. Anything else that a move left is
//! garbage: it is removed as leftovers.rs describes, and the range of the target is emptied before rows are copied into
//! it. The record of a new store is durable before the store is created. The copy is durable before the map that names
//! it, and that map before anything is removed from the old store.
//!
//! A partition is not moved while an index of its table is built; a change of the table during a move ends the move.

use crate::engine::refusal::MoveRefusal;
use std::sync::Arc;

use tokio::sync::MutexGuard;

use super::copy::{copy_and_compare, copy_range, copy_recorded};
use super::leftovers::{BEING_MADE, BEING_REMOVED, IN_USE, Moved, PAUSE, empty, record_next_store, record_store};
use super::publication::Publication;
use super::steps::{self, Action, Event, Kind, Phase, State};
use super::{Catalog, Changing, Snapshot, commit, partitions_key};
use crate::engine::{Error, storage_write};
use crate::partition::latch::Hold;
use crate::partition::log;
use crate::partition::{Hosted, MapError, PhysicalPartitionId, Placed, StoreId, TablePartitions};
use helenus_base::mutant::{self, Mutant};
use helenus_schema::command::PartitionChange;
use helenus_schema::schema::{StorageId, Table};
use helenus_storage::storage::{self as store, Batch, KeyRange, Space, Store};

/// A running move.
struct Move {
    table: StorageId,
    /// The table's definition when the move began.
    definition: Arc<Table>,
    map: Arc<TablePartitions>,
    partition: Arc<Hosted>,
    to: StoreId,
    kind: Kind,
    /// Whether the source stays when no partition lies there.
    is_source_kept: bool,
    range: KeyRange,
}

/// Where a partition is to be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// A new store of its own.
    New,
    /// Its home.
    Home,
    /// The store in which another physical partition of the table lies.
    StoreOf(PhysicalPartitionId),
}

impl Move {
    fn is_lift(&self) -> bool {
        self.kind == Kind::Lift
    }

    /// The range of the target: emptied, then filled by the copy.
    fn copied(&self) -> Moved {
        Moved {
            table: self.table,
            store: self.to,
            span: self.partition.span.clone(),
        }
    }
}

/// A move in doubt: it is unknown whether the main store recorded it. Its latch stays held until this is resolved.
pub(super) struct MoveInDoubt {
    of: Arc<Move>,
    state: State,
    hold: Option<Hold>,
}

/// A running move: the results of its steps so far.
struct Run<'a> {
    catalog: &'a Arc<Catalog>,
    of: Arc<Move>,
    state: State,
    /// The lock of changes, while it is held.
    changing: Option<MutexGuard<'a, Changing>>,
    /// The snapshot that is copied; keys written after it are recorded.
    at: Option<store::Snapshot>,
    /// The position up to which the entries of the table's change log are copied.
    logged_to: i64,
    target: Option<Store>,
    hold: Option<Hold>,
    /// The published catalog when the latch was held for the last time, and the next partition map.
    next: Option<(Arc<Snapshot>, TablePartitions)>,
    publication: Option<Publication<'a>>,
}

fn refused<T>(refusal: MoveRefusal) -> Result<T, Error> {
    Err(refusal.into())
}

/// Moves before a merge of two physical partitions of two stores: another statement may move the left one meanwhile.
const MERGE_MOVES_MAX: usize = 3;

impl Catalog {
    /// Splits, merges or moves physical partitions for a statement. Of two that are to be merged and lie in two stores,
    /// the right one is first moved to the store of the left one. Durable when it returns; every later request uses the
    /// new map.
    ///
    /// # Errors
    /// The change cannot be made, or a store fails. Then nothing has changed, or the change is in doubt; the right one of
    /// a merge may have been moved.
    pub(super) async fn change_or_move(
        self: &Arc<Self>,
        table: StorageId,
        change: &PartitionChange,
    ) -> Result<(), Error> {
        if let Some((id, target)) = moves(change) {
            return self.move_partition(table, id, target).await;
        }
        for _ in 0..MERGE_MOVES_MAX {
            match self.change_partitions(table, change).await {
                Err(Error::Partitions(MapError::Apart { left, right })) => {
                    let target = Target::StoreOf(PhysicalPartitionId(left));
                    self.move_partition(table, PhysicalPartitionId(right), target).await?;
                }
                done => return done,
            }
        }
        self.change_partitions(table, change).await
    }

    /// Moves a physical partition for a statement. The move is durable when it returns, and every later request uses
    /// the new map.
    ///
    /// # Errors
    /// The partition cannot be moved, or a store fails. Then it was not moved, or the move is in doubt.
    async fn move_partition(
        self: &Arc<Self>,
        table: StorageId,
        id: PhysicalPartitionId,
        target: Target,
    ) -> Result<(), Error> {
        let _one_at_a_time = self.placement.moving.lock().await;
        let (of, changing) = self.check_move(table, id, target).await?;
        let (state, actions) = steps::begin(of.kind);
        let run = Run {
            catalog: self,
            of: Arc::new(of),
            state,
            changing: Some(changing),
            at: None,
            logged_to: 0,
            target: None,
            hold: None,
            next: None,
            publication: None,
        };
        run.finish(actions).await
    }

    /// Checks a move, and assigns a number to the store of a lift. Keeps the lock.
    async fn check_move(
        self: &Arc<Self>,
        table: StorageId,
        id: PhysicalPartitionId,
        target: Target,
    ) -> Result<(Move, MutexGuard<'_, Changing>), Error> {
        let mut changing = self.changing.lock().await;
        self.resolve_locked(&mut changing).await?;
        let current = self.load_full();
        let (Some(map), Some(definition)) = (current.partitions.get(&table), current.table(table)) else {
            return Err(Error::TableGone);
        };
        let Some(partition) = map.find(id).and_then(Placed::here) else {
            return refused(MoveRefusal::Unknown(id.0));
        };
        let mut indexes = definition.indexes.values().filter(|index| index.storage_id != 0);
        if let Some(index) = indexes.find(|index| !self.published.indexes.is_complete(index.storage_id)) {
            return refused(MoveRefusal::IndexInBuild(index.name.clone()));
        }
        if definition
            .feed()
            .is_some_and(|feed| !self.published.indexes.is_complete(feed))
        {
            return refused(MoveRefusal::FeedInBuild(definition.name.clone()));
        }
        let (to, kind) = self.target_of(&mut changing, (table, map), partition, target)?;
        let of = Move {
            table,
            definition: Arc::clone(definition),
            map: Arc::clone(map),
            partition: Arc::clone(partition),
            to,
            kind,
            is_source_kept: self.placement.homes.is_kept(partition.store_id),
            range: partition.key_range(table),
        };
        Ok((of, changing))
    }

    /// The store that a move goes to.
    fn target_of(
        &self,
        changing: &mut Changing,
        (table, map): (StorageId, &TablePartitions),
        partition: &Arc<Hosted>,
        target: Target,
    ) -> Result<(StoreId, Kind), Error> {
        let (id, from) = (partition.id.0, partition.store_id);
        let to = match target {
            Target::New => {
                let shares = |other: &&Arc<Hosted>| other.store_id == from;
                if !self.placement.homes.is_kept(from) && map.here().filter(shares).count() == 1 {
                    return refused(MoveRefusal::Alone { id, store: from.0 });
                }
                let stores_max = self.stores().beside_max();
                if changing.stores.in_use.len() >= stores_max {
                    return refused(MoveRefusal::Stores { stores_max });
                }
                let new = StoreId(changing.stores.next);
                changing.stores.next += 1;
                return Ok((new, Kind::Lift));
            }
            Target::Home => self.placement.homes.of(table, map.all().len(), partition.lower()).0,
            Target::StoreOf(other) => match map.find(other) {
                Some(other) => other.store_id,
                None => return refused(MoveRefusal::Unknown(other.0)),
            },
        };
        if to == from {
            return refused(MoveRefusal::AtHome { id, store: to.0 });
        }
        Ok((to, Kind::Join))
    }

    /// Resolves a change in doubt in the background, since writers may wait for a latch and no request may come.
    fn spawn_resolution(self: &Arc<Self>) {
        let (catalog, main, tasks) = (Arc::downgrade(self), self.main().clone(), self.published.tasks.clone());
        self.published
            .tasks
            .spawn("resolution of a change in doubt", async move {
                while tasks.unless_stopped(main.pause(PAUSE)).await.is_some() {
                    let Some(catalog) = catalog.upgrade().filter(|catalog| catalog.is_in_doubt()) else {
                        return;
                    };
                    // The loop tries again, unless a request has resolved it.
                    drop(catalog.resolve_in_doubt().await);
                }
            });
    }

    /// Removes the rows in the old store of a moved partition, when no request reads them there any more.
    fn leave_source(&self, changing: &mut Changing, of: &Move) {
        changing.stores.in_use.extend(of.is_lift().then_some(of.to));
        let current = self.load_full();
        let left = current
            .partitions
            .get(&of.table)
            .map(|map| self.leftovers_of(of, map))
            .unwrap_or_default();
        let old = vec![Arc::clone(&of.map)];
        match left {
            Some(moved) => self.orphans.remove_moved(moved, old),
            None => {
                changing.stores.in_use.remove(&of.partition.store_id);
                self.orphans.remove_store(of.partition.store_id, old);
            }
        }
    }

    /// The range to remove from a partition's old store; `None` means that the store holds nothing else and is removed
    /// as a whole.
    fn leftovers_of(&self, of: &Move, next: &TablePartitions) -> Option<Moved> {
        let store = of.partition.store_id;
        let is_used = of.is_source_kept || next.stores().any(|(id, _)| id == store);
        is_used.then_some(Moved {
            table: of.table,
            store,
            span: of.partition.span.clone(),
        })
    }

    /// Ends a move whose record failed, now that the published partition map is that of the store.
    pub(super) fn resolve_move(&self, changing: &mut Changing) {
        let Some(MoveInDoubt { of, state, mut hold }) = changing.move_in_doubt.take() else {
            return;
        };
        let current = self.load_full();
        let map = current.partitions.get(&of.table);
        let is_done = map.is_some_and(|map| {
            let mut all = map.all().iter();
            all.any(|partition| partition.id == of.partition.id && partition.store_id == of.to)
        });
        for action in steps::step(state, Event::Found(is_done)).1 {
            self.end_action(*action, &of, &mut hold, changing);
        }
    }

    /// Performs an infallible action at the end of a move. It has the lock of changes, and the latch if it is still
    /// held.
    fn end_action(&self, action: Action, of: &Move, hold: &mut Option<Hold>, changing: &mut Changing) {
        match action {
            Action::Supersede => {
                if let Some(hold) = hold.take() {
                    hold.supersede();
                }
            }
            Action::LeaveSource => self.leave_source(changing, of),
            Action::Release => drop(hold.take()),
            _ => self.undo_action(action, of),
        }
    }

    /// Performs an infallible action that undoes a move and needs no lock.
    fn undo_action(&self, action: Action, of: &Move) {
        match action {
            Action::EndTracking => of.partition.latch.end_tracking(),
            Action::RemoveCopied => self.orphans.remove_copied(of.copied(), of.is_lift()),
            // The holder of the lock or of the publication drops it.
            _ => {}
        }
    }

    /// Checks that the table and its partition have not changed since the move began.
    fn is_as_it_was(&self, of: &Move) -> Result<(), Error> {
        let current = self.load();
        let map = current.partitions.get(&of.table);
        let is_same = map.is_some_and(|map| map.epoch() == of.map.epoch())
            && current.table(of.table).is_some_and(|table| table == &of.definition);
        if is_same {
            return Ok(());
        }
        refused(MoveRefusal::Overtaken(of.partition.id.0))
    }
}

/// The error of a state that needs a result which no earlier step gave: the table of steps.rs would be wrong.
fn missing(what: &'static str) -> Error {
    Error::Fault(format!(
        "a move of a physical partition has no {what} at a step that needs it"
    ))
}

impl Run<'_> {
    /// Performs the remaining actions.
    ///
    /// # Errors
    /// The first failure. Then the partition was not moved, or the move is in doubt.
    async fn finish(mut self, mut actions: &'static [Action]) -> Result<(), Error> {
        let mut failure = None;
        loop {
            let mut event = Event::Done;
            for action in actions {
                match self.carry_out(*action).await {
                    Ok(next) => event = next,
                    Err(error) => {
                        failure = failure.or(Some(error));
                        event = Event::Failed;
                        break;
                    }
                }
            }
            match self.state.phase {
                Phase::Moved => return Ok(()),
                // In doubt: the move ends when the main store is read again.
                Phase::Undone | Phase::Refused | Phase::InDoubt => return failure.map_or(Ok(()), Err),
                _ => (self.state, actions) = steps::step(self.state, event),
            }
        }
    }

    async fn carry_out(&mut self, action: Action) -> Result<Event, Error> {
        match action {
            Action::RecordStore => self.record_store().await?,
            // Remains of an earlier lift must be removed before rows are copied to the same range.
            Action::AwaitRemoval => self.catalog.orphans.until_removed(&self.of.copied()).await?,
            Action::BeginTracking => self.begin_tracking().await?,
            Action::Copy => self.copy().await?,
            Action::CopyTracked => return self.copy_recorded().await.map(Event::Copied),
            // Syncs most of the copy while writers still work, so that later they wait only for the rest.
            Action::MakeDurable => {
                let target = self.target.as_ref().ok_or_else(|| missing("target"))?;
                self.catalog
                    .stores()
                    .make_durable(target)
                    .await
                    .map_err(|error| storage_write(&error))?;
            }
            Action::Lock => {
                let changing = self.changing.insert(self.catalog.changing.lock().await);
                self.catalog.resolve_locked(changing).await?;
            }
            Action::HoldLatch => self.hold = Some(self.of.partition.latch.hold().await),
            Action::CheckUnchanged => self.catalog.is_as_it_was(&self.of)?,
            Action::CopyLast => {
                // Completes after the commits of cancelled writers, so that their keys are copied too.
                self.of
                    .partition
                    .store()
                    .commit(Batch::new())
                    .await
                    .map_err(|error| storage_write(&error))?;
                self.copy_recorded().await?;
                self.copy_log(Some(self.logged_to)).await?;
            }
            Action::MakeMap => self.make_map()?,
            Action::Record => self.record().await?,
            Action::Publish => self.publish()?,
            Action::EndPublication => {
                if let Some(publication) = self.publication.take() {
                    publication.end();
                }
            }
            Action::WakeWaiters => self.wake_waiters(),
            Action::SpawnResolution => self.catalog.spawn_resolution(),
            Action::Unlock => self.changing = None,
            Action::Supersede | Action::LeaveSource => self.end(action),
            Action::Release => self.hold = None,
            Action::EndTracking | Action::RemoveCopied => self.catalog.undo_action(action, &self.of),
        }
        Ok(Event::Done)
    }

    async fn record_store(&mut self) -> Result<(), Error> {
        let changing = self.changing.as_ref().ok_or_else(|| missing("lock"))?;
        let mut batch = Batch::new();
        record_next_store(&mut batch, changing.stores.next);
        record_store(&mut batch, self.of.to, BEING_MADE);
        commit(self.catalog.main(), batch).await?;
        // Durable before the store is made: after a power loss the number is not assigned again.
        let durable = self.catalog.stores().make_durable(self.catalog.main()).await;
        durable.map_err(|error| storage_write(&error))
    }

    async fn begin_tracking(&mut self) -> Result<(), Error> {
        let (source, latch) = (self.of.partition.store(), &self.of.partition.latch);
        let hold = latch.hold().await;
        source
            .commit(Batch::new())
            .await
            .map_err(|error| storage_write(&error))?;
        latch.begin_tracking(&self.of.range);
        self.at = Some(source.snapshot());
        drop(hold);
        Ok(())
    }

    async fn copy(&mut self) -> Result<(), Error> {
        let (of, stores) = (&self.of, self.catalog.stores());
        let at = self.at.take().ok_or_else(|| missing("snapshot"))?;
        let source = of.partition.store();
        let is_clone = of.is_lift()
            && of.is_source_kept
            && stores
                .clone_side(source, of.to, &of.range)
                .await
                .map_err(|error| storage_write(&error))?;
        let target = if of.is_lift() {
            stores
                .open_side(of.to, true)
                .await
                .map_err(|error| storage_write(&error))?
        } else {
            stores.get(of.to).ok_or_else(|| missing("target"))?
        };
        if is_clone {
            for index in of.definition.storage_ids().skip(1) {
                let reindex = |batch: &mut Batch, key: Vec<u8>, _: &[u8]| batch.reindex(key, index);
                let snapshot = target.snapshot();
                copy_range(&target, &snapshot, Space::Rows, &of.range, &target, reindex).await?;
            }
        } else {
            if !mutant::is_on(Mutant::TargetNotEmptied) {
                empty(&target, &of.copied())
                    .await
                    .map_err(|error| storage_write(&error))?;
            }
            copy_and_compare((source, &at), Space::Rows, &of.range, &target).await?;
        }
        copy_and_compare((source, &at), Space::Deletions, &of.range, &target).await?;
        self.target = Some(target);
        self.logged_to = self.catalog.stores().positions().horizon();
        self.copy_log(None).await
    }

    /// Copies the entries of the table's change log to the store that a partition joins: the store that is left may be
    /// removed. Those of other physical partitions too, which may have lain there before. A lift, and a move out of a
    /// store that stays, leave them where they are.
    async fn copy_log(&self, after: Option<i64>) -> Result<(), Error> {
        let (of, target) = (&self.of, self.target.as_ref().ok_or_else(|| missing("target"))?);
        match of.definition.log().filter(|_| !of.is_lift() && !of.is_source_kept) {
            Some(log) => log::copy(of.partition.store(), target, log, after)
                .await
                .map_err(|error| storage_write(&error)),
            None => Ok(()),
        }
    }

    async fn copy_recorded(&self) -> Result<usize, Error> {
        let target = self.target.as_ref().ok_or_else(|| missing("target"))?;
        copy_recorded(&self.of.partition.latch, self.of.partition.store(), target).await
    }

    fn make_map(&mut self) -> Result<(), Error> {
        let (of, target) = (&self.of, self.target.as_ref().ok_or_else(|| missing("target"))?);
        let current = self.catalog.load_full();
        let map = current.partitions.get(&of.table).unwrap_or(&of.map);
        let next = map.moved(of.partition.id, of.to, target)?;
        self.next = Some((current, next));
        Ok(())
    }

    async fn record(&mut self) -> Result<(), Error> {
        let (of, catalog) = (Arc::clone(&self.of), self.catalog);
        let (_, next) = self.next.as_ref().ok_or_else(|| missing("map"))?;
        let target = self.target.clone().ok_or_else(|| missing("target"))?;
        let changing = self.changing.as_mut().ok_or_else(|| missing("lock"))?;
        let mut batch = Batch::new();
        batch.put(Space::Catalog, partitions_key(of.table), next.encode());
        if of.is_lift() {
            record_store(&mut batch, of.to, IN_USE);
        }
        if catalog.leftovers_of(&of, next).is_none() {
            record_store(&mut batch, of.partition.store_id, BEING_REMOVED);
        }
        let source = of.partition.store().clone();
        // Kept for the next holder of the change lock. The latch stays held until the map is published.
        let (state, _) = steps::step(self.state, Event::Failed);
        let hold = self.hold.take();
        changing.move_in_doubt = Some(MoveInDoubt { of, state, hold });
        // Syncs the source too: the copy may contain a part of a batch whose other part is not durable in the source
        // yet.
        self.publication = Some(catalog.commit_change(&[source, target], batch).await?);
        Ok(())
    }

    /// Publishes the next map. If that fails, the catalog is in doubt, as after a failed commit.
    fn publish(&mut self) -> Result<(), Error> {
        let publication = self.publication.take();
        let (current, next) = self.next.take().ok_or_else(|| missing("map"))?;
        self.catalog.publish_map(&current, self.of.table, next)?;
        self.publication = publication;
        Ok(())
    }

    /// Performs an action at the end of a published move, which is no longer in doubt.
    fn end(&mut self, action: Action) {
        let Some(changing) = &mut self.changing else { return };
        if let Some(in_doubt) = changing.move_in_doubt.take() {
            self.hold = in_doubt.hold;
        }
        self.catalog.end_action(action, &self.of, &mut self.hold, changing);
    }

    /// Wakes requests that wait for the latch. They check again, and are refused while the move is in doubt.
    fn wake_waiters(&self) {
        let in_doubt = self
            .changing
            .as_ref()
            .and_then(|changing| changing.move_in_doubt.as_ref());
        if let Some(hold) = in_doubt.and_then(|in_doubt| in_doubt.hold.as_ref()) {
            hold.wake_waiters();
        }
    }
}

/// The partition that a change moves, and where. `None` means that it is no move; a merge may begin with one.
const fn moves(change: &PartitionChange) -> Option<(PhysicalPartitionId, Target)> {
    match change {
        PartitionChange::Lift { id } => Some((PhysicalPartitionId(*id), Target::New)),
        PartitionChange::Lower { id } => Some((PhysicalPartitionId(*id), Target::Home)),
        PartitionChange::Split { .. } | PartitionChange::Merge { .. } => None,
    }
}
