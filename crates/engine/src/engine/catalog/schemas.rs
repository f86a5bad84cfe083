//! The schema catalog: from records to the snapshot that requests read.
//!
//! ```text
//! an intent ─ records ─ commit ─┐
//! records of another's change ──┼─→ NextCatalog ─→ publish ─→ Snapshot
//! all records, after a doubt ───┘
//! ```
//! The one who writes knows the next catalog before its records are durable. A follower ([`Catalog::apply`]) makes the same one from the
//! changed records alone, and whoever resolves a doubt from all of them. All publish it in one way, here.
//!
//! Deliberately absent: what only the writer does, which is to build indexes and views and to remove rows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;

use super::Define;
use super::partition_maps::{give_budgets, map_elsewhere, map_of_record, partitions_at_open};
use super::publication::Listener;
use super::records::{Found, schema_of};
use crate::engine::Error;
use crate::engine::index::Record;
use crate::engine::index::change::Difference;
use crate::engine::offers::Offers;
use crate::engine::published::Published;
use crate::engine::snapshot::{Partitions, Snapshot};
use crate::partition::{Owner, StoreId, TablePartitions};
use helenus_schema::profile::Rules;
use helenus_schema::schema::record::{self, Change};
use helenus_schema::schema::{Schema, StorageId};

/// What a follower makes of records needs these, and so does the writer.
pub(in crate::engine) struct SchemaCatalog {
    pub(super) published: Arc<Published>,
    pub(super) rules: Rules,
    /// Adds the system tables that Cassandra does not have.
    pub(super) define: Define,
    /// The throughput of tables and keyspaces.
    pub(super) offers: Offers,
    /// Called while no other change can be made, so that none comes between a commit and its announcement.
    pub(in crate::engine) listener: Listener,
    /// Whether the outcome of a failed change is unknown: the published catalog may differ from the stored one.
    pub(super) is_in_doubt: AtomicBool,
    /// The machine that owns all partitions. `None` means that this one owns them.
    pub(super) owner: Option<Owner>,
}

/// The catalog after a change.
pub(super) struct NextCatalog {
    pub(super) schema: Arc<Schema>,
    pub(super) partitions: Partitions,
    /// Rises unless only partition maps change, on which no plan depends.
    pub(super) generation: u64,
}

/// Changed records by their meaning.
#[derive(Default)]
struct Changed {
    schema: Vec<Change>,
    /// `None` means that the record is gone.
    maps: BTreeMap<StorageId, Option<Bytes>>,
    indexes: BTreeMap<StorageId, Record>,
    views: BTreeMap<StorageId, Record>,
    next_storage_id: Option<StorageId>,
}

impl Changed {
    /// # Errors
    /// A record is damaged.
    fn of(changes: Vec<Change>) -> Result<Self, Error> {
        let mut changed = Self::default();
        for change in changes {
            let Some(value) = &change.value else {
                changed.remove(change)?;
                continue;
            };
            let mut found = Found::default();
            found.add(&change.key, value)?;
            changed.next_storage_id = found.next_storage_id.or(changed.next_storage_id);
            changed.indexes.extend(found.indexes);
            changed.views.extend(found.views);
            let maps = found.partitions.into_iter();
            changed.maps.extend(maps.map(|(id, record)| (id, Some(record))));
            if !found.records.is_empty() {
                changed.schema.push(change);
            }
        }
        Ok(changed)
    }

    fn remove(&mut self, change: Change) -> Result<(), Error> {
        if let Some(id) = super::map_of_key(&change.key)? {
            self.maps.insert(id, None);
        } else if record::rename::place(&change.key).is_some() {
            self.schema.push(change);
        }
        // Records of indexes and views go with their tables, and all others concern the writer.
        Ok(())
    }
}

impl SchemaCatalog {
    /// The catalog of all records. Unchanged tables keep their accounts and latches.
    ///
    /// # Errors
    /// A record is damaged.
    pub(super) fn of_all(&self, found: &mut Found) -> Result<NextCatalog, Error> {
        let current = self.published.load_full();
        let schema = schema_of(std::mem::take(&mut found.records), self.rules, &*self.define)?;
        let mut partitions = partitions_at_open(&schema, &found.partitions, self.published.stores())?;
        for (id, map) in &current.partitions {
            if let Some(read) = partitions.get(id) {
                let next = successor(map, read);
                partitions.insert(*id, next);
            }
        }
        give_budgets(&self.offers, None, &schema, &mut partitions);
        Ok(NextCatalog {
            schema: Arc::new(schema),
            partitions,
            generation: current.generation + 1,
        })
    }

    /// The catalog after these changes of its records.
    ///
    /// # Errors
    /// A record is damaged.
    fn after(&self, current: &Snapshot, changed: &Changed) -> Result<NextCatalog, Error> {
        let schema = if changed.schema.is_empty() {
            Arc::clone(&current.schema)
        } else {
            let applied = record::applied(&current.schema, &changed.schema);
            Arc::new(applied.map_err(|error| Error::Fault(error.to_string()))?)
        };
        let stores = self.published.stores();
        let mut partitions = Partitions::new();
        let keyspaces = schema.keyspaces.values();
        let stored = keyspaces.filter(|keyspace| !helenus_schema::schema::system::is_local(&keyspace.name));
        for (keyspace, table) in stored.flat_map(|of| of.all_tables().map(move |table| (of, table))) {
            let id = table.storage_id;
            let was = current.partitions.get(&id);
            let map = match (changed.maps.get(&id), was) {
                (None, Some(was)) => Arc::clone(was),
                (record, _) if let Some(owner) = &self.owner => {
                    let record = record.and_then(Option::as_ref);
                    Arc::new(map_elsewhere(id, record, owner)?)
                }
                (Some(Some(record)), was) => {
                    let read = Arc::new(map_of_record(id, record, stores)?);
                    let next = was.map_or_else(|| Arc::clone(&read), |was| successor(was, &read));
                    self.offers.fit(keyspace, table, &next).map_or(next, Arc::new)
                }
                (Some(None) | None, _) => Arc::new(TablePartitions::whole(StoreId::MAIN, stores.main().clone())),
            };
            partitions.insert(id, map);
        }
        if self.owner.is_none() {
            give_budgets(&self.offers, Some(&current.schema), &schema, &mut partitions);
        }
        Ok(NextCatalog {
            schema,
            partitions,
            generation: current.generation + u64::from(!changed.schema.is_empty()),
        })
    }

    /// Publishes the next catalog. While requests may use either schema, rows keep the derivations of both. `begin` takes added indexes
    /// into use.
    pub(super) fn publish(&self, next: NextCatalog, difference: &Difference, begin: impl FnOnce(&Partitions)) {
        let stores = self.published.stores();
        let (meanwhile, then) = difference.derivations(&stores.derivations());
        if !difference.is_empty() {
            stores.set_derivations(meanwhile);
        }
        begin(&next.partitions);
        let snapshot = Snapshot::new(next.schema, next.generation, self.rules, next.partitions);
        self.published.replace(snapshot);
        for index in difference.removed() {
            self.published.indexes.remove(index);
        }
        if !difference.is_empty() {
            stores.set_derivations(then);
        }
    }

    /// Whether the store may hold another catalog than the published one; then no write may use the published one.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.is_in_doubt.load(Ordering::Acquire)
    }
}

/// A map that was read, as the successor of the published one.
fn successor(before: &Arc<TablePartitions>, read: &Arc<TablePartitions>) -> Arc<TablePartitions> {
    if read.epoch() == before.epoch() {
        Arc::clone(before)
    } else {
        Arc::new(read.after(before))
    }
}

impl super::Catalog {
    /// Publishes a change that another server has committed, from its changed records alone: the snapshot is the one that the writer
    /// published. Nothing is written, built or removed.
    ///
    /// # Errors
    /// A record is damaged; then the catalog stays as it was.
    pub(in crate::engine) async fn apply(&self, changes: Vec<Change>) -> Result<(), Error> {
        let mut changing = self.changing.lock().await;
        let changed = Changed::of(changes)?;
        let current = self.load_full();
        let next = self.schemas.after(&current, &changed)?;
        let schema = Arc::clone(&next.schema);
        changing.next_storage_id = changing
            .next_storage_id
            .max(changed.next_storage_id.unwrap_or_default())
            .max(schema.storage_id_max().saturating_add(1));
        let difference = Difference::between(&current.schema, &schema);
        self.schemas.publish(next, &difference, |_| {
            self.builds.follow_indexes(&difference, &changed.indexes);
        });
        self.builds.follow_views(&schema, changed.views);
        self.schemas.listener.announce(&current.schema, &schema);
        Ok(())
    }
}
