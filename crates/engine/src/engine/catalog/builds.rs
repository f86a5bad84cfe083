//! Builds of indexes and materialized views: their records, and which of them run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use uuid::Uuid;

use crate::engine::builds::{index, view};
use crate::engine::index::change::{AddedIndex, Difference};
use crate::engine::index::{Progress, Record};
use crate::engine::published::Published;
use crate::engine::snapshot::Partitions;
use crate::engine::view::record_key;
use helenus_schema::schema::{Schema, StorageId, system};

/// The builds of one server's indexes and views.
pub(super) struct Builds {
    published: Arc<Published>,
    /// Records of views whose build has not started.
    view_records: std::sync::Mutex<BTreeMap<StorageId, Record>>,
}

/// The numbers of a schema's materialized views.
fn views_of(schema: &Schema) -> BTreeMap<StorageId, Uuid> {
    let keyspaces = schema.keyspaces.values();
    let stored = keyspaces.filter(|keyspace| !keyspace.views.is_empty() && !system::is_local(&keyspace.name));
    let views = stored.flat_map(|keyspace| keyspace.views.values());
    views.map(|view| (view.table.storage_id, view.table.id)).collect()
}

/// Calls `put` with the records of added views, and with `None` for removed ones. Returns the records of those added.
pub(super) fn records_of_views(
    before: &Schema,
    next: &Schema,
    begun: &Record,
    mut put: impl FnMut(Vec<u8>, Option<Bytes>),
) -> BTreeMap<StorageId, Record> {
    let (was, is) = (views_of(before), views_of(next));
    for removed in was.keys().filter(|view| !is.contains_key(view)) {
        put(record_key(*removed), None);
    }
    let added = is.into_keys().filter(|view| !was.contains_key(view));
    let records: BTreeMap<StorageId, Record> = added.map(|view| (view, begun.clone())).collect();
    for (view, record) in &records {
        put(record_key(*view), Some(record.encode()));
    }
    records
}

impl Builds {
    pub(super) fn new(published: Arc<Published>, view_records: BTreeMap<StorageId, Record>) -> Self {
        Self {
            published,
            view_records: std::sync::Mutex::new(view_records),
        }
    }

    /// Takes an index into use, or starts or resumes its build, which gets this name among tasks.
    pub(super) fn begin_index(&self, added: AddedIndex, record: Record, partitions: &Partitions, task: Uuid) {
        let AddedIndex { index, table, is_feed } = added;
        if record.is_complete {
            self.published.indexes.add_complete(index);
            return;
        }
        let progress = Arc::new(Progress::new(task, record.rows_passed));
        self.published.indexes.add_building(index, &progress);
        let map = partitions.get(&table);
        let stores = map.into_iter().flat_map(|map| map.stores());
        let build = index::Build {
            home: self.published.stores().clone(),
            stores: stores.map(|(id, store)| (id, store.clone())).collect(),
            indexes: Arc::clone(&self.published.indexes),
            table,
            index,
            is_feed,
            progress,
            record,
            places: Vec::new(),
        };
        build.start(&self.published.tasks);
    }

    /// Takes indexes into use that another server builds: their records say how far they are.
    pub(super) fn follow_indexes(&self, difference: &Difference, records: &BTreeMap<StorageId, Record>) {
        for AddedIndex { index, .. } in difference.added() {
            if !records.contains_key(&index) {
                let progress = Arc::new(Progress::new(Uuid::nil(), 0));
                self.published.indexes.add_building(index, &progress);
            }
        }
        for (index, record) in records {
            if record.is_complete {
                self.published.indexes.add_complete(*index);
            } else {
                let progress = Arc::new(Progress::new(Uuid::nil(), record.rows_passed));
                self.published.indexes.add_building(*index, &progress);
            }
        }
    }

    /// The same of views, with the schema in force.
    pub(super) fn follow_views(&self, schema: &Schema, mut records: BTreeMap<StorageId, Record>) {
        let views = views_of(schema);
        let known: BTreeSet<StorageId> = self.published.views.all().collect();
        for removed in known.iter().filter(|known| !views.contains_key(known)) {
            self.published.views.remove(*removed);
        }
        for (view, id) in views {
            match records.remove(&view) {
                Some(record) if record.is_complete => self.published.views.add_complete(view),
                None if known.contains(&view) => {}
                record => {
                    let rows = record.map_or(0, |record| record.rows_passed);
                    self.published
                        .views
                        .add_building(view, &Arc::new(Progress::new(id, rows)));
                }
            }
        }
    }

    /// Keeps the records of views until their builds begin.
    pub(super) fn keep_view_records(&self, records: BTreeMap<StorageId, Record>) {
        let mut recorded = self.view_records.lock().unwrap_or_else(PoisonError::into_inner);
        recorded.extend(records);
    }

    /// Takes the views of the schema into use, resumes the builds of incomplete ones, and ends those of removed views.
    pub(super) fn begin_views(&self) {
        let mut records = self.view_records.lock().unwrap_or_else(PoisonError::into_inner);
        let views = views_of(&self.published.load().schema);
        let known: BTreeSet<StorageId> = self.published.views.all().collect();
        for removed in known.iter().filter(|known| !views.contains_key(known)) {
            self.published.views.remove(*removed);
        }
        for (view, id) in views.into_iter().filter(|(view, _)| !known.contains(view)) {
            let record = records.remove(&view).unwrap_or_default();
            if record.is_complete {
                self.published.views.add_complete(view);
                continue;
            }
            let progress = Arc::new(Progress::new(id, record.rows_passed));
            self.published.views.add_building(view, &progress);
            view::Build::new(&self.published, view, progress, record).start(&self.published.tasks);
        }
        records.clear();
    }
}
