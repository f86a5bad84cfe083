//! What the catalog knows of materialized views: their records, and the builds that go on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use uuid::Uuid;

use super::Catalog;
use crate::engine::index::{Progress, Record};
use crate::engine::view::build::Build;
use crate::engine::view::record_key;
use crate::schema::{Schema, StorageId, system};

/// The numbers of a schema's materialized views.
fn views_of(schema: &Schema) -> BTreeMap<StorageId, Uuid> {
    let keyspaces = schema.keyspaces.values();
    let stored = keyspaces.filter(|keyspace| !keyspace.views.is_empty() && !system::is_local(&keyspace.name));
    let views = stored.flat_map(|keyspace| keyspace.views.values());
    views.map(|view| (view.table.storage_id, view.table.id)).collect()
}

/// Puts the records of views that come, and removes those of views that go (`None`); what is recorded of those that come.
pub(super) fn records_of_views(
    before: &Schema,
    next: &Schema,
    begun: &Record,
    mut put: impl FnMut(Vec<u8>, Option<Bytes>),
) -> BTreeMap<StorageId, Record> {
    let (was, is) = (views_of(before), views_of(next));
    for gone in was.keys().filter(|view| !is.contains_key(view)) {
        put(record_key(*gone), None);
    }
    let come = is.into_keys().filter(|view| !was.contains_key(view));
    let records: BTreeMap<StorageId, Record> = come.map(|view| (view, begun.clone())).collect();
    for (view, record) in &records {
        put(record_key(*view), Some(record.encode()));
    }
    records
}

impl Catalog {
    /// Keeps what is recorded of views until they are begun with.
    pub(super) fn note_views(&self, records: BTreeMap<StorageId, Record>) {
        let mut noted = self.view_records.lock().unwrap_or_else(PoisonError::into_inner);
        noted.extend(records);
    }

    /// Takes the views in force into use, goes on with the builds of those that are not complete, and ends those of views that are gone.
    pub(crate) fn begin_views(self: &Arc<Self>) {
        let mut records = self.view_records.lock().unwrap_or_else(PoisonError::into_inner);
        let views = views_of(&self.current.load().schema);
        let known: BTreeSet<StorageId> = self.views.all().collect();
        for gone in known.iter().filter(|known| !views.contains_key(known)) {
            self.views.remove(*gone);
        }
        for (view, id) in views.into_iter().filter(|(view, _)| !known.contains(view)) {
            let record = records.remove(&view).unwrap_or_default();
            if record.is_complete {
                self.views.add_complete(view);
                continue;
            }
            let progress = Arc::new(Progress::new(id, record.rows_passed));
            self.views.add_building(view, &progress);
            Build::new(self, view, progress, record).start(&self.tasks);
        }
        records.clear();
    }
}
