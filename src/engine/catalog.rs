//! The catalog: what is defined, where its rows are, and what the server must remember of itself. Persisted in the store's
//! catalog space, read by requests through one immutable [`Snapshot`].
//!
//! ```text
//! k… y… t… v… f… a…   the schema's records (schema::record)
//! !host_id            16 bytes, drawn at the first start
//! !paging_key         16 bytes, the secret of paging states
//! !next_storage_id    u32: no table has had this number or one above it
//! !last_ballot        i64, µs: no conditional write was given a timestamp above it; of versions without time marks (write::clock)
//! !probe              i64, µs: when it was last asked whether writes work (probe.rs)
//! !garbage · u32      the rows, or index entries, of this number belong to no table any more and are being removed
//! !view · u32         how far the materialized view of this number is built (engine::view)
//! !index · u32        how far the index of this number is built (engine::index)
//! !logical · u32 · i64  the size of a large logical partition (logical.rs)
//! !next_store  !store · u32  !moved · …  the stores beside the main one (leftovers.rs)
//! !batch · u64        a logged batch on its way to several stores (batch_log.rs)
//! !partitions · u32   the physical partitions of the table of this number (partition::map); none: one that was never changed
//! ```
//! Changes are made one at a time under a lock, and are durable before anybody sees them. Rows of dropped and truncated tables
//! are removed behind; a crash on the way leaves their `!garbage` record, and the next start goes on.
//!
//! **Splits and merges** of physical partitions ([`Catalog::repartition`]) are such changes too: a record, then a snapshot in which
//! one table has another list. Requests that began before go on with the list they have. Nothing can be lost, doubled or missing:
//! - A row's key in the store is made of table number, token and keys; no partition's id is in it. Both lists lead it to the same
//!   store (a merge of two stores' partitions is refused), so a write by the old list goes where readers by the new one look.
//!   A move to another store (lift.rs) is the one change of which that is not so.
//! - Each list by itself covers the ring without gap or overlap, and a scan goes by one list from its first token to its last: it
//!   passes each token once. All of a scan's parts in one store are read as of one moment of that store (read::source).
//! - Locks are of logical partitions (stripes of table and token), whatever list led there.
//! - A paging state names the last row's partition key and clustering key. The next page goes on behind them by the list of its own
//!   time; no id, range or epoch of a list is in it.

mod adopt;
mod freeze;
mod leftovers;
mod lift;
mod lists;
mod open;
mod publication;
mod steps;
mod views;

use super::error::NotChanged;
use super::refusal::Refusal;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use bytes::Bytes;
use imbl::OrdMap;
use tokio::sync::Mutex;
use uuid::Uuid;

pub(in crate::engine) use self::freeze::Frozen;
use self::leftovers::{Leftovers, garbage_key};
use self::lists::{give_budgets, partitions_after, partitions_at_open};
use self::open::{Found, schema_of};
pub use self::publication::SchemaListener;
use self::publication::{Listener, Publication};
use self::views::records_of_views;
use crate::clock::Clock;
use crate::command::{SchemaContext, SchemaIntent, SchemaOutcome};
use crate::consistency::WriteKind;
use crate::engine::index::build::Build;
use crate::engine::index::change::{Difference, renumbered};
use crate::engine::index::{self, Indexes, Progress, Record};
use crate::engine::logical::Recorded;
use crate::engine::offers::Offers;
use crate::engine::pending::{self, Pending};
use crate::engine::size_change::SizeChange;
use crate::engine::view::Followed;
use crate::engine::write::clock::WriteClock;
use crate::engine::{Error, FailureCause, storage_write};
use crate::invariant::{Broken, Invariant};
use crate::mutant::{self, Mutant};
use crate::partition::store::{Batch, Derivations, Space, Store};
use crate::partition::{Consistency, Placement, Stores, Stripes, TablePartitions};
use crate::profile::Rules;
use crate::schema::{Schema, StorageId, Table, record};
use crate::tasks::Tasks;

const HOST_ID: &[u8] = b"!host_id";
const PAGING_KEY: &[u8] = b"!paging_key";
const NEXT_STORAGE_ID: &[u8] = b"!next_storage_id";
pub(in crate::engine) const PARTITIONS: &[u8] = b"!partitions";

/// Everything that requests read of the catalog, at one moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// What is defined.
    pub(crate) schema: Arc<Schema>,
    /// Rises with every change, TRUNCATE included; a plan of another generation is made anew.
    pub(crate) generation: u64,
    /// What statements are judged by besides.
    pub(crate) rules: Rules,
    /// Shares its structure with the snapshot before, as the schema does.
    partitions: Partitions,
    /// Base tables with views, by number.
    followed: BTreeMap<StorageId, Arc<Followed>>,
}

/// The physical partitions of each table and view. In order, so that a simulation drops lists in one order.
type Partitions = OrdMap<StorageId, Arc<TablePartitions>>;

impl Snapshot {
    /// Whoever writes to a base table of the schema by this or an earlier list learns at its gate that views follow it.
    fn new(schema: Arc<Schema>, generation: u64, rules: Rules, partitions: Partitions) -> Self {
        let followed = Followed::all(&schema);
        for base in followed.keys() {
            let lists = partitions.get(base).into_iter();
            lists
                .flat_map(|list| list.all())
                .for_each(|partition| partition.gate.follow());
        }
        Self {
            schema,
            generation,
            rules,
            partitions,
            followed,
        }
    }

    /// The base table of this number, if it has views.
    pub(crate) fn followed(&self, base: StorageId) -> Option<&Arc<Followed>> {
        self.followed.get(&base)
    }

    /// The base table of the view of this number.
    pub(crate) fn followed_by(&self, view: StorageId) -> Option<&Arc<Followed>> {
        self.followed.values().find(|followed| followed.has_view(view))
    }

    /// The same without knowledge of where rows are.
    pub(super) fn without_lists(&self) -> Self {
        Self {
            schema: Arc::clone(&self.schema),
            generation: self.generation,
            rules: self.rules,
            partitions: Partitions::new(),
            followed: BTreeMap::new(),
        }
    }

    /// Where a table's rows are.
    ///
    /// # Errors
    /// When the table is not there any more.
    pub(crate) fn partitions(&self, table: &Table) -> Result<&Arc<TablePartitions>, Error> {
        self.partitions
            .get(&table.storage_id)
            .ok_or_else(|| gone(&table.keyspace, &table.name))
    }

    /// The table or view of this number.
    fn table(&self, id: StorageId) -> Option<&Arc<Table>> {
        let keyspaces = self.schema.keyspaces.values();
        let mut tables = keyspaces.flat_map(|keyspace| keyspace.all_tables());
        tables.find(|table| table.storage_id == id)
    }

    /// Where the rows of the table of this number are, if there is one.
    pub(crate) fn partitions_of(&self, table: StorageId) -> Option<&TablePartitions> {
        self.partitions.get(&table).map(Arc::as_ref)
    }
}

/// The catalog of one server.
pub(crate) struct Catalog {
    current: ArcSwap<Snapshot>,
    /// Called under `changing`, so that no other change comes between a commit and its announcement.
    pub(in crate::engine) listener: Listener,
    changing: Mutex<Changing>,
    stores: Stores,
    clock: Clock,
    data_centers: Vec<(String, usize)>,
    rules: Rules,
    /// This node's identity, the same over restarts.
    pub(crate) host_id: Uuid,
    /// The secret of paging states.
    pub(crate) paging_key: [u8; 16],
    /// How far each index is.
    pub(crate) indexes: Arc<Indexes>,
    /// How far each materialized view is.
    pub(crate) views: Arc<Indexes>,
    /// What was recorded of views that are not begun with.
    view_records: std::sync::Mutex<BTreeMap<StorageId, Record>>,
    /// The locks of logical partitions.
    pub(crate) stripes: Arc<Stripes>,
    /// Whether a change failed that may have been done: what is in force may not be what the store holds.
    is_in_doubt: AtomicBool,
    /// Dates changes of the schema.
    timestamps: WriteClock,
    /// The large logical partitions that were there when the catalog was opened.
    pub(crate) logical: Vec<Recorded>,
    /// What tables may spend.
    pub(crate) offers: Offers,
    /// The tables that wait for physical partitions.
    growth: SizeChange,
    /// Logged batches of which a part may still be written.
    pub(crate) pending: Arc<Pending>,
    /// The number of the next record of the batch log: those before are done with, or were when the catalog was opened.
    next_batch: AtomicU64,
    /// Held by the move of a physical partition that is at work.
    moving: Mutex<()>,
    /// What is removed from stores in the background.
    leftovers: Leftovers,
    /// Runs what goes on in the background.
    pub(crate) tasks: Tasks,
    /// Adds the system tables that are not Cassandra's.
    define: fn(&mut Schema),
}

impl std::fmt::Debug for Catalog {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Catalog").finish_non_exhaustive()
    }
}

/// What only changes of the schema touch.
struct Changing {
    next_storage_id: StorageId,
    random: fastrand::Rng,
    clock_sequence: u16,
    /// What is registered with the stores.
    derivations: Derivations,
    /// The stores beside the main one, as they are recorded.
    stores: leftovers::Recorded,
    /// A move that may have been recorded.
    unsure_move: Option<lift::MoveInDoubt>,
}

/// What is known of the tables that a change of the schema makes.
#[derive(Clone, Copy)]
struct NewTables {
    /// How their partition keys find their places.
    placement: Placement,
    /// They stand for tables that were emptied, so that their indexes are complete.
    is_emptied: bool,
}

fn partitions_key(id: StorageId) -> Vec<u8> {
    [PARTITIONS, &id.to_be_bytes()].concat()
}

impl Catalog {
    /// Takes an index into use, or begins or goes on with its build.
    fn begin_index(
        &self,
        changing: &mut Changing,
        partitions: &Partitions,
        table: StorageId,
        index: StorageId,
        record: Record,
    ) {
        if record.is_complete {
            self.indexes.add_complete(index);
            return;
        }
        let progress = Arc::new(Progress::new(self.table_id(changing), record.rows_passed));
        self.indexes.add_building(index, &progress);
        let list = partitions.get(&table);
        let stores = list.into_iter().flat_map(|list| list.stores());
        let build = Build {
            home: self.stores.clone(),
            stores: stores.map(|(id, store)| (id, store.clone())).collect(),
            indexes: Arc::clone(&self.indexes),
            table,
            index,
            progress,
            record,
        };
        build.start(&self.tasks);
    }

    /// What is in force now, to keep.
    pub(crate) fn load_full(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// What is in force now.
    pub(crate) fn load(&self) -> arc_swap::Guard<Arc<Snapshot>> {
        self.current.load()
    }

    /// Makes a change of the schema: durable when it returns, and every later request sees it.
    ///
    /// # Errors
    /// When the intent is refused or the store fails; nothing has changed then.
    pub(crate) async fn change<I: SchemaIntent>(
        self: &Arc<Self>,
        intent: I,
    ) -> Result<SchemaOutcome, NotChanged<I::Refusal>> {
        let catalog = Arc::clone(self);
        to_the_end(&self.tasks, async move {
            let outcome = catalog.change_in_order(&intent).await?;
            catalog.begin_views();
            if let Some(of) = outcome
                .partition_change
                .as_ref()
                .filter(|of| lift::moves(&of.change).is_some())
            {
                let schema = Arc::clone(&catalog.load().schema);
                let table = schema.table_or_view(&of.keyspace, &of.table);
                let table = table.ok_or_else(|| gone(&of.keyspace, &of.table))?.storage_id;
                Box::pin(catalog.move_partition(table, of.change.clone())).await?;
            }
            Ok(outcome)
        })
        .await
    }

    async fn change_in_order<I: SchemaIntent>(&self, intent: &I) -> Result<SchemaOutcome, NotChanged<I::Refusal>> {
        let mut changing = self.changing.lock().await;
        self.settle(&mut changing).await?;
        let current = self.current.load_full();
        let before = Arc::clone(&current.schema);
        let context = SchemaContext {
            now_micros: self.timestamps.next_micros(),
            new_id: self.table_id(&mut changing),
            storage_id: changing.next_storage_id,
            data_centers: self.data_centers.clone(),
            profile: self.rules.profile,
            // A front end that masks says so.
            masks_columns: false,
        };
        let outcome = intent.apply(&before, &context).map_err(NotChanged::Refused)?;
        self.offers.check_metered(Some(&before), &outcome.schema)?;
        Offers::check_floors(&before, &outcome.schema, |table| {
            let list = current.partitions.get(&table.storage_id);
            list.map_or(0, |list| list.bytes(table.storage_id).bytes)
        })?;
        self.growth.refuse_second(&before, &outcome.schema)?;
        if let Some(of) = outcome
            .partition_change
            .as_ref()
            .filter(|of| lift::moves(&of.change).is_none())
        {
            let table = before.table_or_view(&of.keyspace, &of.table);
            let table = table.ok_or_else(|| gone(&of.keyspace, &of.table))?;
            self.put_partitions_in_force(table.storage_id, of.change.clone())
                .await?;
        }
        if outcome.change.is_none() {
            return Ok(outcome);
        }
        let mut outcome = outcome;
        let first = changing.next_storage_id;
        changing.next_storage_id += u32::from(outcome.storage_id_used);
        if let Some(schema) = renumbered(&before, &outcome.schema, &mut changing.next_storage_id) {
            outcome.schema = schema;
        }
        let mut batch = Batch::new();
        if changing.next_storage_id > first {
            let next = changing.next_storage_id.to_be_bytes();
            batch.put(Space::Catalog, NEXT_STORAGE_ID.to_vec(), Bytes::copy_from_slice(&next));
        }
        let next = Arc::new(outcome.schema.clone());
        let placement = if intent.orders_by_key() {
            Placement::Key
        } else {
            Placement::Hash
        };
        let tables = NewTables {
            placement,
            is_emptied: false,
        };
        self.publish(&mut changing, &before, next, &outcome.dropped_storage, tables, batch)
            .await?;
        Ok(outcome)
    }

    /// TRUNCATE: the table's rows get a new number in the store, those under the old one are removed behind.
    ///
    /// # Errors
    /// When the table is gone or the store fails.
    pub(crate) async fn truncate(self: &Arc<Self>, keyspace: &str, name: &str) -> Result<(), Error> {
        let catalog = Arc::clone(self);
        let (keyspace, name) = (keyspace.to_owned(), name.to_owned());
        to_the_end(&self.tasks, async move {
            catalog.truncate_in_order(&keyspace, &name).await?;
            catalog.begin_views();
            Ok(())
        })
        .await
    }

    async fn truncate_in_order(&self, keyspace: &str, name: &str) -> Result<(), Error> {
        let mut changing = self.changing.lock().await;
        self.settle(&mut changing).await?;
        let before = Arc::clone(&self.current.load().schema);
        let table = before
            .table_or_view(keyspace, name)
            .ok_or_else(|| gone(keyspace, name))?;
        let views = before
            .keyspaces
            .get(keyspace)
            .into_iter()
            .flat_map(|of| of.views_of(name));
        let views = views.map(|view| &view.table);
        let (mut old, mut next) = (Vec::new(), Schema::clone(&before));
        // Its views are emptied with it.
        for emptied in std::iter::once(table).chain(views) {
            let numbers: Vec<StorageId> = emptied.storage_ids().collect();
            let id = changing.next_storage_id;
            changing.next_storage_id += u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            let changed = next.with_storage_id(keyspace, &emptied.name, id);
            next = changed.ok_or_else(|| gone(keyspace, name))?;
            old.extend(numbers);
        }
        let next = Arc::new(next);
        let mut batch = Batch::new();
        let next_id = changing.next_storage_id.to_be_bytes();
        batch.put(
            Space::Catalog,
            NEXT_STORAGE_ID.to_vec(),
            Bytes::copy_from_slice(&next_id),
        );
        let tables = NewTables {
            // It keeps its own.
            placement: Placement::Hash,
            is_emptied: true,
        };
        self.publish(&mut changing, &before, next, &old, tables, batch).await
    }

    /// Makes a change durable that follows from what other stores hold. Where that fails it is in doubt whether it was done, and so it is
    /// until the change is published.
    async fn commit_change(&self, others: &[Store], batch: Batch) -> Result<Publication<'_>, Error> {
        let publication = Publication::begin(&self.is_in_doubt);
        let mut recorded = self.stores.record_after_durable(others, batch).await.map(drop);
        // Numbers that it gives are used in other stores, which must not know them longer than this one does.
        if recorded.is_ok() && !self.stores.is_one() {
            recorded = self.stores.make_durable(self.stores.main()).await;
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

    /// Seconds since 1970-01-01 UTC.
    pub(crate) fn now_seconds(&self) -> i64 {
        self.clock.wall_seconds()
    }

    /// Whether the store may hold another catalog than the one in force; then nothing may be written by this one.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.is_in_doubt.load(Ordering::Acquire)
    }

    /// Refuses a write while it is in doubt which catalog holds.
    ///
    /// # Errors
    /// [`Error::WriteFailure`] as long as that is so.
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

    /// The store that it is kept in, and those beside it.
    pub(crate) const fn stores(&self) -> &Stores {
        &self.stores
    }

    /// The store that it is kept in.
    pub(crate) fn main(&self) -> &Store {
        self.stores.main()
    }

    /// The key of a new record of the batch log.
    pub(crate) fn new_batch(&self) -> Vec<u8> {
        pending::key(self.next_batch.fetch_add(1, Ordering::Relaxed))
    }

    /// Finds out what became of a change that failed, as soon as the store takes writes again.
    ///
    /// # Errors
    /// When it still does not.
    pub(crate) async fn resolve_in_doubt(self: &Arc<Self>) -> Result<(), Error> {
        let catalog = Arc::clone(self);
        to_the_end(&self.tasks, async move {
            let mut changing = catalog.changing.lock().await;
            catalog.settle(&mut changing).await?;
            catalog.begin_views();
            Ok(())
        })
        .await
    }

    /// [`Catalog::resolve_in_doubt`] for a caller that holds the change lock; costs nothing where nothing is in doubt.
    async fn settle(&self, changing: &mut Changing) -> Result<(), Error> {
        if !self.is_in_doubt() {
            return Ok(());
        }
        // Behind this, whatever was handed to the store before has been done or never will be.
        commit(self.stores.main(), Batch::new()).await?;
        let durable = self.stores.make_durable(self.stores.main()).await;
        durable.map_err(|error| Error::Fault(error.to_string()))?;
        let mut found = Found::read(self.stores.main()).await?;
        let schema = schema_of(found.records, self.rules, self.define)?;
        let mut partitions = partitions_at_open(&schema, &found.partitions, &self.stores)?;
        changing.next_storage_id = changing
            .next_storage_id
            .max(found.next_storage_id.unwrap_or_default())
            .max(schema.storage_id_max().saturating_add(1));
        let current = self.current.load_full();
        for (id, list) in &current.partitions {
            // What did not change keeps its accounts.
            if let Some(read) = partitions.get(id) {
                let next = if read.epoch() == list.epoch() {
                    Arc::clone(list)
                } else {
                    Arc::new(read.after(list))
                };
                partitions.insert(*id, next);
            }
        }
        give_budgets(&self.offers, None, &schema, &mut partitions);
        let schema = Arc::new(schema);
        let difference = Difference::between(&current.schema, &schema);
        let (meanwhile, then) = difference.derivations(&changing.derivations);
        self.stores.set_derivations(meanwhile);
        for (index, table) in difference.come() {
            let record = found.indexes.remove(&index).unwrap_or_default();
            self.begin_index(changing, &partitions, table, index, record);
        }
        self.note_views(found.views);
        let generation = current.generation + 1;
        let snapshot = Snapshot::new(Arc::clone(&schema), generation, self.rules, partitions);
        self.current.store(Arc::new(snapshot));
        for index in difference.gone() {
            self.indexes.remove(index);
        }
        self.stores.set_derivations(then.clone());
        changing.derivations = then;
        for id in found.garbage {
            self.leftovers.remove_number(id, current.partitions.get(&id).cloned());
        }
        self.resolve_move(changing);
        self.is_in_doubt.store(false, Ordering::Release);
        self.listener.announce(&current.schema, &schema);
        Ok(())
    }

    /// Makes the next schema durable and publishes it.
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
        let (come, gone) = (difference.come(), difference.gone());
        let garbage: BTreeSet<StorageId> = garbage.iter().chain(&gone).copied().collect();
        check_garbage(&next, &garbage)?;
        for id in &garbage {
            batch.put(Space::Catalog, garbage_key(*id), Bytes::new());
        }
        let begun = if tables.is_emptied {
            Record::complete()
        } else {
            Record::default()
        };
        for (index, _) in &come {
            batch.put(Space::Catalog, index::record_key(*index), begun.encode());
        }
        for index in &gone {
            batch.delete(Space::Catalog, index::record_key(*index));
        }
        let view_records = records_of_views(before, &next, &begun, |key, record| match record {
            Some(record) => batch.put(Space::Catalog, key, record),
            None => batch.delete(Space::Catalog, key),
        });
        let current = self.current.load_full();
        let mut later = (!self.growth.is_at_once()).then(Vec::new);
        let main = (tables.placement, self.stores.main());
        let mut partitions = partitions_after(&current, &next, main, &mut batch, &mut later)?;
        let left = leftovers::stores_left(&changing.stores.in_use, &current.partitions, &partitions, &mut batch);
        let publication = self.commit_change(&[], batch).await?;
        for table in later.into_iter().flatten() {
            self.growth.begin(table, self.clock.monotonic());
        }
        give_budgets(&self.offers, Some(&current.schema), &next, &mut partitions);
        // What is kept with the rows covers both schemas as long as a request may go by either.
        let (meanwhile, then) = difference.derivations(&changing.derivations);
        if !difference.is_empty() {
            self.stores.set_derivations(meanwhile);
        }
        for (index, table) in come {
            self.begin_index(changing, &partitions, table, index, begun.clone());
        }
        self.note_views(view_records);
        let generation = current.generation + 1;
        let snapshot = Snapshot::new(Arc::clone(&next), generation, self.rules, partitions);
        self.current.store(Arc::new(snapshot));
        for index in gone {
            self.indexes.remove(index);
        }
        if !difference.is_empty() {
            self.stores.set_derivations(then.clone());
            changing.derivations = then;
        }
        publication.end();
        self.listener.announce(before, &next);
        for id in garbage {
            self.leftovers.remove_number(id, current.partitions.get(&id).cloned());
        }
        for (store, lists) in left {
            changing.stores.in_use.remove(&store);
            self.leftovers.remove_store(store, lists);
        }
        Ok(())
    }

    /// A version 1 uuid, as Cassandra's table ids are.
    fn table_id(&self, changing: &mut Changing) -> Uuid {
        changing.clock_sequence = changing.clock_sequence.wrapping_add(1);
        let node = changing.random.u64(..).to_be_bytes();
        let micros = self.clock.wall_micros();
        let seconds = u64::try_from(micros.div_euclid(1_000_000)).unwrap_or(0);
        let nanos = u32::try_from(micros.rem_euclid(1_000_000) * 1000).unwrap_or(0);
        let timestamp = uuid::Timestamp::from_unix_time(seconds, nanos, u128::from(changing.clock_sequence), 14);
        let node: [u8; 6] = node.first_chunk().copied().unwrap_or_default();
        Uuid::new_v1(timestamp, &node)
    }
}

/// Carries out a change of the catalog to its end, also when the client goes away: between the record and the published snapshot
/// it must not stop, or what is written meanwhile goes where the next start does not look.
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

async fn commit(store: &Store, batch: Batch) -> Result<(), Error> {
    let committed = store.commit(batch).await;
    committed.map(|_| ()).map_err(|error| storage_write(&error))
}

/// Checks that no table or index of a schema has one of the numbers whose rows are removed: they would be lost.
fn check_garbage(schema: &Schema, garbage: &BTreeSet<StorageId>) -> Result<(), Broken> {
    if garbage.is_empty() {
        return Ok(());
    }
    let tables = schema.keyspaces.values().flat_map(|keyspace| keyspace.all_tables());
    let mut used = tables.flat_map(|table| table.storage_ids());
    match used.find(|id| garbage.contains(id)) {
        None => Ok(()),
        Some(id) => Err(Invariant::GarbageIsUnused.broken(&format_args!("number {id}"))),
    }
}

fn gone(keyspace: &str, table: &str) -> Error {
    let (keyspace, table) = (keyspace.to_owned(), table.to_owned());
    Refusal::NoTable { keyspace, table }.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Keyspace, TableOptions};

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
