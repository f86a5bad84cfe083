//! Which physical partitions tables have: as recorded, at first, and after a change of the schema.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use imbl::OrdMap;
use imbl::ordmap::DiffItem;
use uuid::Uuid;

use super::{Catalog, Partitions, Snapshot, partitions_key, to_the_end};
use crate::engine::Error;
use crate::engine::offers::Offers;
use crate::partition::store::{Batch, Space, Store};
use crate::partition::{KeyBound, StoreId, Stores, TablePartitions};
use crate::schema::{Schema, StorageId, Table, Throughput, system};

impl Catalog {
    /// Splits physical partitions of the table of this number at these places, all in one change; how many were split. Places at which
    /// one begins already are left out.
    ///
    /// # Errors
    /// As [`Catalog::repartition`]; when none can be split.
    pub(crate) async fn split(self: &Arc<Self>, table: StorageId, places: Vec<KeyBound>) -> Result<usize, Error> {
        let catalog = Arc::clone(self);
        to_the_end(&self.tasks, async move {
            let mut changing = catalog.changing.lock().await;
            catalog.settle(&mut changing).await?;
            let mut splits = 0;
            let next = |before: &TablePartitions| {
                let (next, count) = before.split_all(&places)?;
                splits = count;
                Ok(next)
            };
            catalog.put_list_in_force(table, next).await?;
            Ok(splits)
        })
        .await
    }
}

/// The lists of all tables and views of a schema, as they are recorded.
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
            let list = match records.get(&table.storage_id) {
                None => TablePartitions::whole(StoreId::MAIN, stores.main().clone()),
                Some(record) => {
                    let read = TablePartitions::decode(record, |id| stores.get(id));
                    read.map_err(|error| Error::Server(format!("{}.{}: {error}", table.keyspace, table.name)))?
                }
            };
            Ok((table.storage_id, Arc::new(list)))
        })
        .collect()
}

/// Gives the lists of keyspaces that differ from `before` their budgets.
pub(super) fn give_budgets(offers: &Offers, before: Option<&Schema>, schema: &Schema, partitions: &mut Partitions) {
    let fitted = offers.fit_all(before, schema, |table| partitions.get(&table.storage_id).cloned());
    for (table, list) in fitted {
        partitions.insert(table.storage_id, list);
    }
}

/// The list that a new table begins with. One that shares its keyspace's throughput has as many as that may need.
fn partitions_at_first(table: &Table, schema: &Schema, store: &Store) -> TablePartitions {
    let options = &table.options;
    let shared = || schema.keyspaces.get(&table.keyspace)?.throughput;
    let of_throughput = || match options.throughput {
        Some(throughput) => throughput.partitions_at_first(),
        None => shared().map_or(1, Throughput::partitions_needed),
    };
    let count = options.partitions.map_or_else(of_throughput, usize::from);
    TablePartitions::evenly(count, StoreId::MAIN, store)
}

/// The lists under the next schema, and what to write so that they are recorded; only keyspaces that differ are looked through.
/// TRUNCATE keeps a table's ranges; throughput beyond what they can serve splits some.
/// With `later`, such tables are noted there and keep what they have.
pub(super) fn partitions_after(
    before: &Snapshot,
    schema: &Schema,
    store: &Store,
    batch: &mut Batch,
    later: &mut Option<Vec<Uuid>>,
) -> Result<Partitions, Error> {
    let mut partitions = before.partitions.clone();
    let no_tables = OrdMap::new();
    let were = &before.schema.keyspaces;
    let names: BTreeSet<&String> = were.keys().chain(schema.keyspaces.keys()).collect();
    // What tables share, where it has become another.
    let mut shared: BTreeMap<&str, Throughput> = BTreeMap::new();
    // Tables as they were and as they are, where they differ.
    let mut changes: Vec<(Option<&Table>, Option<&Table>)> = Vec::new();
    for name in names.into_iter().filter(|name| !system::is_local(name)) {
        let (was, is) = (were.get(name), schema.keyspaces.get(name));
        if let (Some(was), Some(is)) = (was, is)
            && Arc::ptr_eq(was, is)
        {
            continue;
        }
        let (was_tables, is_tables) = (
            was.map_or(&no_tables, |keyspace| &keyspace.tables),
            is.map_or(&no_tables, |keyspace| &keyspace.tables),
        );
        for change in was_tables.diff(is_tables) {
            changes.push(match change {
                DiffItem::Add(_, is) => (None, Some(is)),
                DiffItem::Update { old, new } => (Some(old.1), Some(new.1)),
                DiffItem::Remove(_, was) => (Some(was), None),
            });
        }
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
            if kept.as_ref().is_some_and(|list| !list.is_unrecorded()) {
                batch.delete(Space::Catalog, partitions_key(was.storage_id));
            }
        }
        let Some(is) = is else { continue };
        let mut list = kept
            .clone()
            .unwrap_or_else(|| Arc::new(partitions_at_first(is, schema, store)));
        let raised = match is.options.throughput {
            Some(own) => was.and_then(|was| (was.options.throughput != Some(own)).then_some(own)),
            None => was.and_then(|_| shared.get(is.keyspace.as_str()).copied()),
        };
        if let Some(throughput) = raised
            && throughput.partitions_needed() > list.all().len()
        {
            if let Some(later) = later {
                later.push(is.id);
            } else {
                let grown = list.grown_to(throughput.partitions_needed());
                list = Arc::new(grown.map_err(|error| Error::Invalid(error.to_string()))?);
            }
        }
        let is_recorded = was.is_some_and(|was| was.storage_id == is.storage_id)
            && kept.is_some_and(|kept| kept.epoch() == list.epoch());
        if !is_recorded && !list.is_unrecorded() {
            batch.put(Space::Catalog, partitions_key(is.storage_id), list.encode());
        }
        partitions.insert(is.storage_id, list);
    }
    Ok(partitions)
}
