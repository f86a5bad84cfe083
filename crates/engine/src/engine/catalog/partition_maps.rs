//! The partition maps of tables: as recorded, for new tables, and after a change of the schema.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use super::publication::Publication;
use super::steps::{self, Action, Event, Kind, Phase};
use super::{Catalog, Snapshot, partitions_key, to_the_end};
use crate::engine::Error;
use crate::engine::offers::Offers;
use crate::engine::size_change::needed;
use crate::engine::snapshot::Partitions;
use crate::partition::{Homes, MapError, Owner, PhysicalPartitionId, StoreId, Stores, TablePartitions};
use helenus_base::invariant::Broken;
use helenus_base::mutant::{self, Mutant};
use helenus_schema::command::PartitionChange;
use helenus_schema::schema::{Schema, StorageId, Table, Throughput, system, table_changes};
use helenus_storage::storage::{Batch, Damaged, Space};
use helenus_types::token::{KeyBound, Token};

impl Catalog {
    /// Splits physical partitions of the table of this number at these bounds, all in one change. Returns the number of
    /// splits. Bounds at which a partition begins already are skipped.
    ///
    /// # Errors
    /// As [`Catalog::repartition`]; if every bound was skipped.
    pub(crate) async fn split(self: &Arc<Self>, table: StorageId, places: Vec<KeyBound>) -> Result<usize, Error> {
        let catalog = Arc::clone(self);
        to_the_end(&self.published.tasks, async move {
            let mut changing = catalog.changing.lock().await;
            catalog.resolve_locked(&mut changing).await?;
            let mut splits = 0;
            let next = |before: &TablePartitions| {
                let (next, count) = before.split_all(&places)?;
                splits = count;
                Ok(next)
            };
            catalog.change_map(table, next).await?;
            Ok(splits)
        })
        .await
    }

    /// Splits physical partitions of the table of this number, or merges two of one store. Durable when it returns;
    /// every later request uses the new map.
    ///
    /// # Errors
    /// When the table does not exist (any more), the change cannot be made, or the store fails; nothing has changed
    /// then.
    pub(crate) async fn repartition(self: &Arc<Self>, table: StorageId, change: PartitionChange) -> Result<(), Error> {
        let catalog = Arc::clone(self);
        to_the_end(&self.published.tasks, async move {
            catalog.change_partitions(table, &change).await
        })
        .await
    }

    /// Gives waiting tables the physical partitions that their throughput needs. Returns the number of tables.
    ///
    /// # Errors
    /// When the store fails; tables that did not get theirs begin to wait again.
    pub(crate) async fn grow_due(self: &Arc<Self>) -> Result<usize, Error> {
        let due = self.placement.growth.take_due(self.published.clock.monotonic());
        let count = due.len();
        for id in due {
            let catalog = Arc::clone(self);
            let grown = to_the_end(&self.published.tasks, async move { catalog.grow_in_order(id).await }).await;
            if let Err(error) = grown {
                self.placement.growth.begin(id, self.published.clock.monotonic());
                return Err(error);
            }
        }
        Ok(count)
    }

    async fn grow_in_order(self: &Arc<Self>, id: Uuid) -> Result<(), Error> {
        let mut changing = self.changing.lock().await;
        self.resolve_locked(&mut changing).await?;
        let current = self.load_full();
        let mut keyspaces = current.schema.keyspaces.values();
        let found = keyspaces.find_map(|keyspace| {
            let mut tables = keyspace.all_tables();
            Some((keyspace, tables.find(|table| table.id == id)?))
        });
        // The table was dropped or its throughput lowered meanwhile.
        let Some((keyspace, table)) = found else { return Ok(()) };
        let count = needed(keyspace, table);
        if current.partitions(table)?.all().len() >= count {
            return Ok(());
        }
        self.change_map(table.storage_id, |map| map.grown_to(count)).await
    }

    /// [`Catalog::repartition`] for a caller whose future is not dropped.
    pub(super) async fn change_partitions(
        self: &Arc<Self>,
        table: StorageId,
        change: &PartitionChange,
    ) -> Result<(), Error> {
        let mut changing = self.changing.lock().await;
        self.resolve_locked(&mut changing).await?;
        let next = |before: &TablePartitions| match change {
            PartitionChange::Split { at, partition_key } => {
                before.split(&KeyBound::at_key(Token::bound(*at), partition_key))
            }
            PartitionChange::Merge { left, right } => {
                before.merge(PhysicalPartitionId(*left), PhysicalPartitionId(*right))
            }
            PartitionChange::Lift { .. } | PartitionChange::Lower { .. } => Ok(before.clone()),
        };
        self.change_map(table, next).await
    }

    /// Records and publishes another partition map, made from the current one. The generation stays: plans do not
    /// depend on partitions.
    pub(super) async fn change_map(
        &self,
        table: StorageId,
        next: impl FnOnce(&TablePartitions) -> Result<TablePartitions, MapError>,
    ) -> Result<(), Error> {
        let current = self.load_full();
        let before = current.partitions.get(&table);
        let before = before.ok_or(Error::TableGone)?;
        let mut next = next(before)?;
        if next.epoch() == before.epoch() {
            // Nothing changes.
            return Ok(());
        }
        next.map().check_follows(before.map())?;
        let mut batch = Batch::new();
        batch.put(Space::Catalog, partitions_key(table), next.encode());
        if mutant::is_on(Mutant::ChangeNotPersisted) {
            return Ok(self.publish_map(&current, table, next)?);
        }
        if mutant::is_on(Mutant::OldListShown) {
            next = TablePartitions::clone(before);
        }
        let (mut state, mut actions) = steps::begin(Kind::InPlace);
        let (mut recorded, mut shown, mut publication) = (Some(batch), Some(next), None);
        loop {
            let mut outcome: Result<(), Error> = Ok(());
            for action in actions {
                outcome = match action {
                    Action::Record => {
                        let batch = recorded.take().unwrap_or_default();
                        let committed = self.commit_change(&[], batch).await;
                        committed.map(|begun| publication = Some(begun))
                    }
                    Action::Publish => {
                        let shown = shown.take().map(|next| self.publish_map(&current, table, next));
                        shown.unwrap_or(Ok(())).map_err(Error::from)
                    }
                    Action::EndPublication => {
                        publication.take().into_iter().for_each(Publication::end);
                        Ok(())
                    }
                    // A split or merge has no other actions: no row moves, and the caller holds the lock.
                    _ => Ok(()),
                };
            }
            if outcome.is_err() || state.phase == Phase::Moved {
                // A map that is recorded but not published leaves the catalog in doubt.
                return outcome;
            }
            (state, actions) = steps::step(state, Event::Done);
        }
    }

    /// Publishes a table's next partition map, which is already recorded.
    ///
    /// # Errors
    /// It does not follow the current one. Then it is not published, and the store may hold another map.
    pub(super) fn publish_map(
        &self,
        current: &Snapshot,
        table: StorageId,
        next: TablePartitions,
    ) -> Result<(), Broken> {
        next.map().check()?;
        if let Some(before) = current.partitions.get(&table) {
            next.map().check_follows(before.map())?;
        }
        let mut keyspaces = current.schema.keyspaces.values();
        let of = keyspaces.find_map(|keyspace| {
            let mut tables = keyspace.all_tables();
            Some((keyspace, tables.find(|known| known.storage_id == table)?))
        });
        let next = of
            .and_then(|(keyspace, table)| self.schemas.offers.fit(keyspace, table, &next))
            .unwrap_or(next);
        let mut partitions = current.partitions.clone();
        partitions.insert(table, Arc::new(next));
        let snapshot = Snapshot::new(
            Arc::clone(&current.schema),
            current.generation,
            self.schemas.rules,
            partitions,
        );
        self.published.replace(snapshot);
        Ok(())
    }
}

/// The recorded partition maps of all tables and views of a schema.
pub(super) fn partitions_at_open(
    schema: &Schema,
    records: &BTreeMap<StorageId, Bytes>,
    stores: &Stores,
) -> Result<Partitions, Error> {
    let keyspaces = schema
        .keyspaces
        .values()
        .filter(|keyspace| !system::is_local(&keyspace.name));
    let tables = keyspaces.flat_map(|keyspace| keyspace.all_tables());
    tables
        .map(|table| {
            let map = match records.get(&table.storage_id) {
                None => TablePartitions::whole(StoreId::MAIN, stores.main().clone()),
                Some(record) => map_of_record(table.storage_id, record, stores)?,
            };
            Ok((table.storage_id, Arc::new(map)))
        })
        .collect()
}

/// The recorded partition map of a table whose partitions another machine owns. `None` means that none is recorded.
pub(super) fn map_elsewhere(
    table: StorageId,
    record: Option<&Bytes>,
    owner: &Owner,
) -> Result<TablePartitions, Damaged> {
    let read = record.map(|record| TablePartitions::decode_elsewhere(record, owner));
    let read = read.unwrap_or_else(|| Ok(TablePartitions::whole_elsewhere(owner)));
    let flaw = "it is no map that covers the ring, in a version that is known";
    read.map_err(|_| Damaged::catalog(&partitions_key(table), flaw))
}

/// The recorded partition map of a table.
pub(super) fn map_of_record(table: StorageId, record: &Bytes, stores: &Stores) -> Result<TablePartitions, Damaged> {
    let flaw = "it is no map that covers the ring, of stores that there are, in a version that is known";
    let read = TablePartitions::decode(record, |id| stores.get(id));
    read.map_err(|_| Damaged::catalog(&partitions_key(table), flaw))
}

/// Sets the budgets of partition maps in keyspaces that differ from `before`.
pub(super) fn give_budgets(offers: &Offers, before: Option<&Schema>, schema: &Schema, partitions: &mut Partitions) {
    let fitted = offers.fit_all(before, schema, |table| partitions.get(&table.storage_id).cloned());
    for (table, map) in fitted {
        partitions.insert(table.storage_id, map);
    }
}

/// Properties of the tables that a change of the schema creates.
#[derive(Clone, Copy)]
pub(super) struct NewTables {
    /// They replace emptied tables, so their indexes are complete.
    pub(super) is_emptied: bool,
    /// They have no rows, so their change feeds are complete.
    pub(super) are_empty: bool,
    /// Their rows are in the main store already, so their partitions are there too.
    pub(super) are_in_main: bool,
}

/// The first partition map of a new table. A table that shares its keyspace's throughput gets as many partitions as
/// that may need, and one without throughput gets one in each home. A table that is ordered by partition key gets one,
/// since its keys are not known yet.
fn partitions_at_first(table: &Table, schema: &Schema, homes: &Homes) -> TablePartitions {
    let number = table.storage_id;
    if table.options.is_ordered {
        let (id, store) = homes.of(number, 1, i64::MIN);
        return TablePartitions::ordered(id, store);
    }
    let options = &table.options;
    let shared = || schema.keyspaces.get(&table.keyspace)?.throughput;
    let of_throughput = || match options.throughput {
        Some(throughput) => throughput.partitions_at_first(),
        None => shared().map_or(homes.count(), Throughput::partitions_needed),
    };
    let count = options.partitions.map_or_else(of_throughput, usize::from);
    TablePartitions::at_home(count, number, homes)
}

/// The partition maps under the next schema. Adds their records to the batch. Only keyspaces that differ are compared.
/// TRUNCATE keeps a table's ranges; throughput beyond what they can serve splits some. New tables lie in
/// their homes. With `later`, tables to be split are added there and keep their partitions for now.
#[expect(
    clippy::too_many_lines,
    reason = "tables that appear, change and go share the throughput that is divided on the way"
)]
pub(super) fn partitions_after(
    before: &Snapshot,
    schema: &Schema,
    homes: &Homes,
    batch: &mut Batch,
    later: &mut Option<Vec<Uuid>>,
) -> Result<Partitions, Error> {
    let mut partitions = before.partitions.clone();
    let were = &before.schema.keyspaces;
    let names: BTreeSet<&String> = were.keys().chain(schema.keyspaces.keys()).collect();
    // Shared throughput that has changed.
    let mut shared: BTreeMap<&str, Throughput> = BTreeMap::new();
    // Tables that differ: before and after.
    let mut changes: Vec<(Option<&Table>, Option<&Table>)> = Vec::new();
    for name in names.into_iter().filter(|name| !system::is_local(name)) {
        let (was, is) = (were.get(name), schema.keyspaces.get(name));
        if let (Some(was), Some(is)) = (was, is)
            && Arc::ptr_eq(was, is)
        {
            continue;
        }
        let differing = table_changes(was.map(AsRef::as_ref), is.map(AsRef::as_ref));
        changes.extend(differing.map(|(was, is)| (was.map(AsRef::as_ref), is.map(AsRef::as_ref))));
        if let (Some(was), Some(is)) = (was, is)
            && was.throughput != is.throughput
            && let Some(throughput) = is.throughput
        {
            shared.insert(name, throughput);
            let same = is.tables.iter().filter_map(|(name, table)| {
                let was = was.tables.get(name)?;
                Arc::ptr_eq(was, table).then_some(table.as_ref())
            });
            changes.extend(same.map(|table| (Some(table), Some(table))));
        }
        let view_names: BTreeSet<&String> = [was, is]
            .into_iter()
            .flatten()
            .flat_map(|keyspace| keyspace.views.keys())
            .collect();
        for view in view_names {
            changes.push((
                was.and_then(|was| was.views.get(view)).map(|view| view.table.as_ref()),
                is.and_then(|is| is.views.get(view)).map(|view| view.table.as_ref()),
            ));
        }
    }
    for (was, is) in changes {
        let kept = was.and_then(|was| partitions.get(&was.storage_id)).cloned();
        if let Some(was) = was.filter(|was| is.is_none_or(|is| is.storage_id != was.storage_id)) {
            partitions.remove(&was.storage_id);
            if kept.as_ref().is_some_and(|map| !map.is_unrecorded()) {
                batch.delete(Space::Catalog, partitions_key(was.storage_id));
            }
        }
        let Some(is) = is else { continue };
        let mut map = kept
            .clone()
            .unwrap_or_else(|| Arc::new(partitions_at_first(is, schema, homes)));
        let raised = match is.options.throughput {
            Some(own) => was.and_then(|was| (was.options.throughput != Some(own)).then_some(own)),
            None => was.and_then(|_| shared.get(is.keyspace.as_str()).copied()),
        };
        if let Some(throughput) = raised
            && throughput.partitions_needed() > map.all().len()
        {
            if let Some(later) = later {
                later.push(is.id);
            } else {
                let grown = map.grown_to(throughput.partitions_needed());
                map = Arc::new(grown?);
            }
        }
        let is_recorded = was.is_some_and(|was| was.storage_id == is.storage_id)
            && kept.is_some_and(|kept| kept.epoch() == map.epoch());
        if !is_recorded && !map.is_unrecorded() {
            map.map().check()?;
            batch.put(Space::Catalog, partitions_key(is.storage_id), map.encode());
        }
        partitions.insert(is.storage_id, map);
    }
    Ok(partitions)
}
