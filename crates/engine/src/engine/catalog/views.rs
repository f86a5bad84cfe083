//! The catalog's part of materialized views: their records, and running builds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use uuid::Uuid;

use super::Catalog;
use crate::engine::builds::view::Build;
use crate::engine::index::{Progress, Record};
use crate::engine::view::record_key;
use helenus_schema::schema::{Schema, StorageId, system};

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

impl Catalog {
    /// Keeps the records of views until their builds begin.
    pub(super) fn keep_view_records(&self, records: BTreeMap<StorageId, Record>) {
        let mut recorded = self.view_records.lock().unwrap_or_else(PoisonError::into_inner);
        recorded.extend(records);
    }

    /// Takes the views of the schema into use, resumes the builds of incomplete ones, and ends those of removed views.
    pub(crate) fn begin_views(self: &Arc<Self>) {
        let mut records = self.view_records.lock().unwrap_or_else(PoisonError::into_inner);
        let views = views_of(&self.load().schema);
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
            Build::new(&self.published, view, progress, record).start(&self.published.tasks);
        }
        records.clear();
    }
}
