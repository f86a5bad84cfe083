//! The catalog: the schema, the positions of rows, and the server's own records. Persisted in the store's
//! catalog space, read by requests through one immutable [`Snapshot`].
//!
//! ```text
//! k… y… t… v… f… a…   the schema's records (schema::record)
//! !host_id            16 bytes, drawn at the first start
//! !paging_key         16 bytes, the secret of paging states
//! !next_storage_id    u32: no table has had this number or one above it
//! !last_ballot        i64, µs: no conditional write had a timestamp above it; only versions without time marks
//!                     wrote it (terms::clock)
//! !probe              i64, µs: time of the last write probe (probe.rs)
//! !view · u32         how far the materialized view of this number is built (engine::view)
//! !index · u32        how far the index of this number is built (engine::index)
//! !logical · u32 · i64  the size of a large logical partition (logical.rs)
//! !next_store  !store · u32  the side stores (leftovers.rs)
//! !batch · u64        a logged batch in progress to several stores (batch_log.rs); also in data stores
//! !partitions · u32   the physical partitions of the table of this number (partition::map);
//!                     none means one, never changed
//! ```
//! Changes are made one at a time under a lock, and are durable before any request sees them. Rows of dropped and
//! truncated tables are removed in the background; a start searches for those that a crash left (leftovers.rs).
//!
//! **Splits and merges** of physical partitions ([`Catalog::repartition`]) are such changes too: a record, then a
//! snapshot in which one table has another partition map. Earlier requests keep the map that they began with. No row
//! can be lost, doubled or missed:
//! - A row's key in the store consists of table number, token and keys; it contains no partition id. Both maps route it
//!   to the same store (of two stores' partitions one is moved before they are merged), so a write by the old map goes to
//!   the store that the new map's readers use. A move to another store (lift.rs) is the one change for which this does
//!   not hold.
//! - Each map by itself covers the ring without gap or overlap, and a scan uses one map from its first token to its
//!   last: it visits each token once. All of a scan's parts in one store are read as of one moment of that store
//!   (read::source).
//! - Locks belong to logical partitions (of table and token), whichever map the request uses.
//! - A paging state names the last row's partition key and clustering key. The next page resumes after them by the
//!   current map; the state contains no id, range or epoch of a map.

mod adopt;
mod builds;
mod copy;
#[cfg(test)]
mod follower_tests;
mod freeze;
mod garbage;
mod leftovers;
mod lift;
mod logs;
mod number;
mod open;
mod partition_maps;
mod publication;
mod records;
mod schemas;
mod steps;
mod strays;

use super::error::NotChanged;
use super::snapshot::{Snapshot, no_table};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures::FutureExt;
use tokio::sync::Mutex;
use uuid::Uuid;

use self::builds::{Builds, records_of_views};
pub(in crate::engine) use self::freeze::Frozen;
use self::garbage::check_garbage;
use self::leftovers::Leftovers;
use self::number::{ChangedLogs, numbered};
pub(in crate::engine) use self::open::{Opening, Unfinished};
use self::partition_maps::{NewTables, give_budgets, partitions_after};
use self::publication::Publication;
pub use self::publication::SchemaListener;
use self::records::Found;
pub(in crate::engine) use self::records::followed;
pub use self::records::{CatalogRecords, changed_records};
use self::schemas::{NextCatalog, SchemaCatalog};
use self::strays::numbers_of;
use crate::engine::index::change::{AddedIndex, Difference};
use crate::engine::index::{self, Record};
use crate::engine::logical::Recorded;
use crate::engine::offers::{self, Offers};
use crate::engine::published::Published;
use crate::engine::size_change::SizeChange;
use crate::engine::terms::clock::WriteClock;
use crate::engine::{Error, FailureCause, storage_write};
use crate::partition::{Homes, StoreId, Stores};
use helenus_base::mutant::{self, Mutant};
use helenus_base::tasks::Tasks;
use helenus_schema::command::{SchemaContext, SchemaIntent, SchemaOutcome};
use helenus_schema::schema::{Schema, StorageId, record};
use helenus_storage::storage::{Batch, Damaged, Space, Store};
use helenus_types::consistency::{Consistency, WriteKind};

const HOST_ID: &[u8] = b"!host_id";
const PAGING_KEY: &[u8] = b"!paging_key";
const NEXT_STORAGE_ID: &[u8] = b"!next_storage_id";
pub(in crate::engine) const PARTITIONS: &[u8] = b"!partitions";

/// Adds the system tables that Cassandra does not have to a schema.
pub(in crate::engine) type Define = Arc<dyn Fn(&mut Schema) + Send + Sync>;

/// The catalog of one server.
pub(crate) struct Catalog {
    /// What requests and work in the background share.
    pub(in crate::engine) published: Arc<Published>,
    /// From records to the published snapshot.
    pub(in crate::engine) schemas: SchemaCatalog,
    /// Where physical partitions lie.
    placement: PlacementState,
    /// Builds of indexes and views.
    builds: Builds,
    /// Rows and stores that no map names any more, which are removed in the background.
    orphans: Leftovers,
    changing: Mutex<Changing>,
    data_centers: Vec<(String, usize)>,
    identity: Identity,
    /// Gives timestamps to changes of the schema.
    timestamps: WriteClock,
    /// The large logical partitions that were recorded when the catalog was opened.
    pub(crate) logical: Vec<Recorded>,
}

/// What is drawn at the first start, and is the same over restarts.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct Identity {
    /// This node's.
    pub(in crate::engine) host_id: Uuid,
    /// The secret of paging states.
    pub(in crate::engine) paging_key: [u8; 16],
}

/// Where physical partitions lie, and how that changes.
struct PlacementState {
    /// Where the partitions of tables lie when no move has placed them.
    homes: Homes,
    /// The tables whose physical partitions are still to be created.
    growth: SizeChange,
    /// Held by the current move of a physical partition.
    moving: Mutex<()>,
}

impl std::fmt::Debug for Catalog {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Catalog").finish_non_exhaustive()
    }
}

/// State that only changes of the schema use.
struct Changing {
    next_storage_id: StorageId,
    random: fastrand::Rng,
    clock_sequence: u16,
    /// The recorded side stores.
    stores: leftovers::Recorded,
    /// A move whose record is in doubt.
    move_in_doubt: Option<lift::MoveInDoubt>,
}

fn partitions_key(id: StorageId) -> Vec<u8> {
    [PARTITIONS, &id.to_be_bytes()].concat()
}

/// The table whose partition map is recorded under a key. `None` means that the key is of another record.
fn map_of_key(key: &[u8]) -> Result<Option<StorageId>, Damaged> {
    let number = |id: &[u8]| id.try_into().map(u32::from_be_bytes);
    let id = key.strip_prefix(PARTITIONS).map(number).transpose();
    id.map_err(|_| Damaged::catalog(key, leftovers::NO_NUMBER))
}

/// The data store that a record names as one in use.
pub(in crate::engine) fn data_store(key: &[u8], value: &[u8]) -> Option<StoreId> {
    let id = key.strip_prefix(leftovers::STORE)?.try_into().ok()?;
    (value == [leftovers::DATA]).then(|| StoreId(u32::from_be_bytes(id)))
}

impl Catalog {
    /// The store that logs a batch with parts in these stores: the first of them that stays, or else the main one.
    pub(in crate::engine) fn logs_batches(&self, mut stores: impl Iterator<Item = StoreId>) -> StoreId {
        stores
            .find(|id| self.placement.homes.is_kept(*id))
            .unwrap_or(StoreId::MAIN)
    }

    /// The throughput of tables and keyspaces.
    pub(in crate::engine) const fn offers(&self) -> &Offers {
        &self.schemas.offers
    }

    /// This node's identity, and the secrets that go with it.
    pub(in crate::engine) const fn identity(&self) -> Identity {
        self.identity
    }

    /// Takes the views of the schema into use, resumes the builds of incomplete ones, and ends those of removed views.
    pub(in crate::engine) fn begin_views(&self) {
        self.builds.begin_views();
    }

    /// The published snapshot, as an owned handle.
    pub(crate) fn load_full(&self) -> Arc<Snapshot> {
        self.published.load_full()
    }

    /// The published snapshot, borrowed.
    pub(crate) fn load(&self) -> arc_swap::Guard<Arc<Snapshot>> {
        self.published.load()
    }

    /// Changes the schema. The change is durable when this returns, and every later request sees it.
    ///
    /// # Errors
    /// When the intent is refused or the store fails; nothing has changed then.
    pub(crate) async fn change<I: SchemaIntent>(
        self: &Arc<Self>,
        intent: I,
    ) -> Result<SchemaOutcome, NotChanged<I::Refusal>> {
        let catalog = Arc::clone(self);
        to_the_end(&self.published.tasks, async move {
            let outcome = catalog.change_in_order(&intent).await?;
            catalog.begin_views();
            if let Some(of) = &outcome.partition_change {
                let schema = Arc::clone(&catalog.load().schema);
                let table = schema.table_or_view(&of.keyspace, &of.table);
                let table = table.ok_or_else(|| no_table(&of.keyspace, &of.table))?.storage_id;
                catalog.change_or_move(table, &of.change).boxed().await?;
            }
            Ok(outcome)
        })
        .await
    }

    async fn change_in_order<I: SchemaIntent>(
        self: &Arc<Self>,
        intent: &I,
    ) -> Result<SchemaOutcome, NotChanged<I::Refusal>> {
        let mut changing = self.changing.lock().await;
        self.resolve_locked(&mut changing).await?;
        let current = self.load_full();
        let before = Arc::clone(&current.schema);
        let context = SchemaContext {
            now_micros: self.timestamps.next_micros(),
            new_id: self.table_id(&mut changing),
            storage_id: changing.next_storage_id,
            data_centers: self.data_centers.clone(),
            profile: self.schemas.rules.profile,
            // A front end that masks says so.
            masks_columns: false,
        };
        let outcome = intent.apply(&before, &context).map_err(NotChanged::Refused)?;
        self.schemas.offers.check_metered(Some(&before), &outcome.schema)?;
        Offers::check_floors(&before, &outcome.schema, |table| {
            let map = current.partitions.get(&table.storage_id);
            map.map_or(0, |map| map.bytes(table.storage_id).bytes)
        })?;
        self.placement.growth.refuse_second(&before, &outcome.schema)?;
        if outcome.change.is_none() {
            return Ok(outcome);
        }
        let mut outcome = outcome;
        outcome
            .warnings
            .extend(offers::divided(&before, &outcome.schema, |table| {
                let map = current.partitions.get(&table.storage_id);
                map.map_or(1, |map| map.all().len())
            }));
        let first = changing.next_storage_id;
        changing.next_storage_id += u32::from(outcome.storage_id_used);
        let next_id = &mut changing.next_storage_id;
        outcome.schema = numbered(&before, outcome.schema, self.schemas.rules.profile, next_id);
        let mut batch = Batch::new();
        if changing.next_storage_id > first {
            record_next_number(&mut batch, changing.next_storage_id);
        }
        let next = Arc::new(outcome.schema.clone());
        let tables = NewTables {
            is_emptied: false,
            are_empty: true,
            are_in_main: false,
        };
        self.publish(&mut changing, &before, next, &outcome.dropped_storage, tables, batch)
            .await?;
        Ok(outcome)
    }

    /// TRUNCATE: the table's rows get a new number in the store; rows under the old one are removed in the background.
    ///
    /// # Errors
    /// When the table no longer exists or the store fails.
    pub(crate) async fn truncate(self: &Arc<Self>, keyspace: &str, name: &str) -> Result<(), Error> {
        let catalog = Arc::clone(self);
        let (keyspace, name) = (keyspace.to_owned(), name.to_owned());
        to_the_end(&self.published.tasks, async move {
            catalog.truncate_in_order(&keyspace, &name).await?;
            catalog.begin_views();
            Ok(())
        })
        .await
    }

    async fn truncate_in_order(self: &Arc<Self>, keyspace: &str, name: &str) -> Result<(), Error> {
        let mut changing = self.changing.lock().await;
        self.resolve_locked(&mut changing).await?;
        let before = Arc::clone(&self.load().schema);
        let table = before
            .table_or_view(keyspace, name)
            .ok_or_else(|| no_table(keyspace, name))?;
        let views = before
            .keyspaces
            .get(keyspace)
            .into_iter()
            .flat_map(|of| of.views_of(name));
        let views = views.map(|view| &view.table);
        let (mut old, mut next) = (Vec::new(), Schema::clone(&before));
        // A view holds rows of its base table, so TRUNCATE empties it too.
        for emptied in std::iter::once(table).chain(views) {
            let numbers: Vec<StorageId> = emptied.storage_ids().collect();
            let id = changing.next_storage_id;
            changing.next_storage_id += u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            let changed = next.with_storage_id(keyspace, &emptied.name, id);
            next = changed.ok_or_else(|| no_table(keyspace, name))?;
            old.extend(numbers);
        }
        let next = Arc::new(next);
        let mut batch = Batch::new();
        record_next_number(&mut batch, changing.next_storage_id);
        let tables = NewTables {
            is_emptied: true,
            are_empty: true,
            are_in_main: false,
        };
        self.publish(&mut changing, &before, next, &old, tables, batch).await
    }

    /// Makes a change durable that depends on what other stores hold. If that fails, its outcome is in doubt until the
    /// change is published.
    async fn commit_change(&self, others: &[Store], batch: Batch) -> Result<Publication<'_>, Error> {
        let publication = Publication::begin(&self.schemas.is_in_doubt);
        let mut recorded = self.stores().record_after_durable(others, batch).await.map(drop);
        // Other stores use the numbers that the change assigns. So it must be durable here before they write under
        // them.
        if recorded.is_ok() && !self.stores().is_one() {
            recorded = self.stores().make_durable(self.stores().main()).await;
        }
        match recorded {
            Ok(()) => {
                mutant::panic_if_asked();
                Ok(publication)
            }
            Err(error) => {
                if mutant::is_on(Mutant::ForgetUnsureChange) {
                    publication.end();
                }
                Err(storage_write(&error))
            }
        }
    }

    /// Whether the store may hold another catalog than the published one; then no write may use the published one.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.schemas.is_in_doubt()
    }

    /// Refuses a write while the outcome of a catalog change is in doubt.
    ///
    /// # Errors
    /// [`Error::WriteFailure`] while it is.
    pub(crate) fn refuse_in_doubt(&self, consistency: Consistency) -> Result<(), Error> {
        if !self.is_in_doubt() {
            return Ok(());
        }
        Err(Error::WriteFailure {
            consistency,
            write_kind: WriteKind::Simple,
            cause: FailureCause::CatalogInDoubt,
        })
    }

    /// The main store, which holds the catalog, and the side stores.
    pub(crate) fn stores(&self) -> &Stores {
        self.published.stores()
    }

    /// The store that holds the catalog.
    pub(crate) fn main(&self) -> &Store {
        self.published.main()
    }

    /// Resolves a change in doubt, as soon as the store takes writes again.
    ///
    /// # Errors
    /// When it still does not.
    pub(crate) async fn resolve_in_doubt(self: &Arc<Self>) -> Result<(), Error> {
        let catalog = Arc::clone(self);
        to_the_end(&self.published.tasks, async move {
            let mut changing = catalog.changing.lock().await;
            catalog.resolve_locked(&mut changing).await
        })
        .await
    }

    /// [`Catalog::resolve_in_doubt`] for a caller that holds the change lock. Does nothing if no change is in doubt.
    async fn resolve_locked(self: &Arc<Self>, changing: &mut Changing) -> Result<(), Error> {
        if !self.is_in_doubt() {
            return Ok(());
        }
        // When this commit is answered, every earlier one has been applied or never will be.
        commit(self.stores().main(), Batch::new()).await?;
        let durable = self.stores().make_durable(self.stores().main()).await;
        durable.map_err(|error| Error::Fault(error.to_string()))?;
        let mut found = Found::read(self.stores().main()).await?;
        let current = self.load_full();
        let next = self.schemas.of_all(&mut found)?;
        let schema = Arc::clone(&next.schema);
        changing.next_storage_id = changing
            .next_storage_id
            .max(found.next_storage_id.unwrap_or_default())
            .max(schema.storage_id_max().saturating_add(1));
        let difference = Difference::between(&current.schema, &schema);
        self.schemas.publish(next, &difference, |partitions| {
            for of in difference.added() {
                let record = found.indexes.remove(&of.index).unwrap_or_default();
                let task = self.table_id(changing);
                self.builds.begin_index(of, record, partitions, task);
            }
            self.builds.keep_view_records(found.views);
        });
        self.begin_views();
        for id in numbers_of(&current.schema).difference(&numbers_of(&schema)) {
            self.orphans.remove_number(*id, current.partitions.get(id).cloned());
        }
        self.resolve_move(changing);
        self.schemas.is_in_doubt.store(false, Ordering::Release);
        self.schemas.listener.announce(&current.schema, &schema);
        Ok(())
    }

    /// Makes the next schema durable and publishes it.
    #[expect(
        clippy::too_many_lines,
        reason = "the order of a publication is its contract, and stands in one place"
    )]
    async fn publish(
        &self,
        changing: &mut Changing,
        before: &Schema,
        next: Arc<Schema>,
        garbage: &[StorageId],
        tables: NewTables,
        mut batch: Batch,
    ) -> Result<(), Error> {
        for change in record::changes(before, &next) {
            match change.value {
                Some(value) => batch.put(Space::Catalog, change.key, value),
                None => batch.delete(Space::Catalog, change.key),
            }
        }
        let difference = Difference::between(before, &next);
        let (added, removed) = (difference.added(), difference.removed());
        let ChangedLogs {
            of_new_tables,
            begun: mut begun_logs,
            ended: ended_logs,
        } = ChangedLogs::between(before, &next);
        self.stores().record_log_floors(&mut batch, &of_new_tables);
        let garbage = garbage.iter().chain(&removed).chain(&ended_logs);
        let garbage: BTreeSet<StorageId> = garbage.copied().collect();
        check_garbage(&next, &garbage)?;
        let begun = if tables.is_emptied {
            Record::complete()
        } else {
            Record::default()
        };
        let begun_of = |index| difference.record(index, &begun, tables.are_empty);
        for AddedIndex { index, .. } in &added {
            batch.put(Space::Catalog, index::record_key(*index), begun_of(*index).encode());
        }
        for index in &removed {
            batch.delete(Space::Catalog, index::record_key(*index));
        }
        let view_records = records_of_views(before, &next, &begun, |key, record| match record {
            Some(record) => batch.put(Space::Catalog, key, record),
            None => batch.delete(Space::Catalog, key),
        });
        let current = self.load_full();
        let mut later = (!self.placement.growth.is_at_once()).then(Vec::new);
        let in_main = tables.are_in_main.then(|| Homes::in_main(self.main().clone()));
        let homes = in_main.as_ref().unwrap_or(&self.placement.homes);
        let mut partitions = partitions_after(&current, &next, homes, &mut batch, &mut later)?;
        let left = leftovers::stores_left(&changing.stores.in_use, &current.partitions, &partitions, &mut batch);
        begun_logs.extend(Self::cut_logs(before, &next, &left, |id| {
            current.partitions.get(&id).cloned()
        }));
        let publication = self.commit_change(&[], batch).await?;
        for table in later.into_iter().flatten() {
            self.placement.growth.begin(table, self.published.clock.monotonic());
        }
        give_budgets(&self.schemas.offers, Some(&current.schema), &next, &mut partitions);
        let catalog = NextCatalog {
            schema: Arc::clone(&next),
            partitions,
            generation: current.generation + 1,
        };
        self.schemas.publish(catalog, &difference, |partitions| {
            for of in added {
                let task = self.table_id(changing);
                self.builds.begin_index(of, begun_of(of.index), partitions, task);
            }
            self.builds.keep_view_records(view_records);
        });
        publication.end();
        self.begin_logs(begun_logs).await;
        self.schemas.listener.announce(before, &next);
        for id in garbage {
            self.orphans.remove_number(id, current.partitions.get(&id).cloned());
        }
        for (store, maps) in left {
            changing.stores.in_use.remove(&store);
            self.orphans.remove_store(store, maps);
        }
        Ok(())
    }

    /// Records that numbers up to this one are taken.
    async fn take_up_to(&self, next: StorageId) -> Result<(), Error> {
        let mut batch = Batch::new();
        record_next_number(&mut batch, next);
        commit(self.main(), batch).await
    }

    /// A version 1 uuid, as Cassandra's table ids are.
    fn table_id(&self, changing: &mut Changing) -> Uuid {
        changing.clock_sequence = changing.clock_sequence.wrapping_add(1);
        let node = changing.random.u64(..).to_be_bytes();
        let micros = self.published.clock.wall_micros();
        let seconds = u64::try_from(micros.div_euclid(1_000_000)).unwrap_or(0);
        let nanos = u32::try_from(micros.rem_euclid(1_000_000) * 1000).unwrap_or(0);
        let timestamp = uuid::Timestamp::from_unix_time(seconds, nanos, u128::from(changing.clock_sequence), 14);
        let node: [u8; 6] = node.first_chunk().copied().unwrap_or_default();
        Uuid::new_v1(timestamp, &node)
    }
}

/// Runs a change of the catalog to its end, even if the client disconnects. If it stopped between the record and the
/// publication, requests would write by the old catalog, and the next start would read by the new one.
async fn to_the_end<T: Send + 'static, E: From<Error> + Send + 'static>(
    tasks: &Tasks,
    change: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<T, E> {
    if mutant::is_on(Mutant::ChangeStopsAtCancel) {
        return change.await;
    }
    let outcome = tasks.carry("change of the catalog", change).await;
    outcome.unwrap_or_else(|error| Err(Error::Fault(error.to_string()).into()))
}

fn record_next_number(batch: &mut Batch, next: StorageId) {
    let next = Bytes::copy_from_slice(&next.to_be_bytes());
    batch.put(Space::Catalog, NEXT_STORAGE_ID.to_vec(), next);
}

async fn commit(store: &Store, batch: Batch) -> Result<(), Error> {
    let committed = store.commit(batch).await;
    committed.map(|_| ()).map_err(|error| storage_write(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_base::invariant::{Broken, Invariant};
    use helenus_schema::schema::{Keyspace, Table, TableOptions};

    fn table(storage_id: StorageId) -> Table {
        Table {
            id: Uuid::nil(),
            storage_id,
            keyspace: "ks".to_owned(),
            name: "t".to_owned(),
            columns: Vec::new(),
            partition_key_count: 0,
            clustering_count: 0,
            is_counter: false,
            is_virtual: false,
            compact_storage: false,
            options: TableOptions::default(),
            indexes: std::collections::BTreeMap::new(),
            triggers: std::collections::BTreeMap::new(),
            dropped: std::collections::BTreeMap::new(),
            next_column_id: 0,
        }
    }

    #[test]
    fn rows_of_a_table_that_there_is_are_not_removed() {
        let mut keyspace = Keyspace::new("ks", std::collections::BTreeMap::new(), true);
        keyspace.tables.insert("t".to_owned(), Arc::new(table(7)));
        let schema = Schema::default().with_keyspace(keyspace);
        assert_eq!(check_garbage(&schema, &[6, 8].into()), Ok(()));
        let broken = Broken(Invariant::GarbageIsUnused);
        assert_eq!(check_garbage(&schema, &[6, 7].into()), Err(broken));
    }
}
