//! Opening the catalog: reading its records, and the work that an earlier run left unfinished.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::engine::published::Published;
use bytes::Bytes;
use tokio::sync::Mutex;
use uuid::Uuid;

use super::builds::Builds;
use super::leftovers::{self, Leftovers};
use super::partition_maps::{give_budgets, partitions_at_open};
use super::publication::Listener;
use super::records::{Found, schema_of};
use super::schemas::SchemaCatalog;
use super::strays::Numbers;
use super::{Catalog, Changing, Define, HOST_ID, Identity, PAGING_KEY, PlacementState, Snapshot, commit};
use crate::engine::index::change::Difference;
use crate::engine::index::{self, Record};
use crate::engine::logical::{self, Recorded};
use crate::engine::offers::Offers;
use crate::engine::pending::{self, Logged, RecordId};
use crate::engine::size_change::{SizeChange, needed};
use crate::engine::snapshot::Partitions;
use crate::engine::terms::clock::WriteClock;
use crate::engine::{Error, OpeningFailure, storage_read};
use crate::partition::{Homes, Owner, StoreId, Stores};
use helenus_base::clock::Clock;
use helenus_base::mutant::{self, Mutant};
use helenus_base::tasks::Tasks;
use helenus_schema::profile::Rules;
use helenus_schema::schema::{Schema, StorageId, system};
use helenus_storage::storage::{Batch, Damaged, Derivations, KeyRange, Order, Space, Store};

/// The name of the owner in the partition maps of a machine without partitions. It stays when another machine becomes the owner.
const OWNER: &str = "owner";

/// The records of the batch logs of these stores.
async fn batches_in(stores: impl Iterator<Item = (StoreId, Store)>) -> Result<Vec<Logged>, Error> {
    let (mut found, mut wrong) = (Vec::new(), None);
    for (id, store) in stores {
        let (at, range) = (store.snapshot(), KeyRange::prefix(pending::RECORD));
        let scanned = store.scan(Space::Catalog, &range, Order::Forward, &at, |key, value| {
            match RecordId::of_key(id, key) {
                Some(id) => found.push(Logged {
                    id,
                    record: Bytes::copy_from_slice(value),
                }),
                None => wrong = Some(Damaged::catalog(key, "its number has not eight bytes")),
            }
            ControlFlow::Continue(())
        });
        scanned.await.map_err(|error| storage_read(&error))?;
    }
    wrong.map_or(Ok(found), |wrong| Err(wrong.into()))
}

/// The records of the sizes of large logical partitions in the side stores.
async fn logical_beside(stores: &Stores) -> Result<Vec<Recorded>, Error> {
    let mut found = Vec::new();
    for (_, store) in stores.all().into_iter().filter(|(id, _)| *id != StoreId::MAIN) {
        let (at, range) = (store.snapshot(), KeyRange::prefix(logical::RECORD));
        let scanned = store.scan(Space::Catalog, &range, Order::Forward, &at, |key, value| {
            // An unreadable record is only a size, which is counted again.
            let place = key.strip_prefix(logical::RECORD);
            found.extend(place.and_then(|place| logical::decode(place, value)));
            ControlFlow::Continue(())
        });
        scanned.await.map_err(|error| storage_read(&error))?;
    }
    Ok(found)
}

/// The stores over which tables are spread, besides the main one.
fn data_stores<'a>(
    recorded: &leftovers::Recorded,
    stores: &'a Stores,
) -> impl Iterator<Item = (StoreId, Store)> + use<'a> {
    let ids: Vec<StoreId> = recorded.data.iter().copied().collect();
    ids.into_iter().filter_map(|id| Some((id, stores.get(id)?)))
}

/// The identity of the database as it was found. What is missing at the first start is drawn, and recorded by the batch.
fn drawn_once(
    host_id: Option<[u8; 16]>,
    paging_key: Option<[u8; 16]>,
    random: &mut fastrand::Rng,
    batch: &mut Batch,
) -> Identity {
    let mut record = |key: &[u8], drawn: [u8; 16]| {
        batch.put(Space::Catalog, key.to_vec(), Bytes::copy_from_slice(&drawn));
        drawn
    };
    let mut draw = || random.u128(..).to_be_bytes();
    let paging_key = paging_key.unwrap_or_else(|| record(PAGING_KEY, draw()));
    let host_id = host_id.unwrap_or_else(|| {
        let id = uuid::Builder::from_random_bytes(draw()).into_uuid();
        record(HOST_ID, id.into_bytes())
    });
    Identity {
        host_id: Uuid::from_bytes(host_id),
        paging_key,
    }
}

/// Lets the stores take writes, and makes them what the catalog says: removes those that an earlier run left, makes the missing ones of
/// the data, and commits what is new in the catalog.
///
/// # Errors
/// When a store fails.
async fn begin_writes(
    stores: &Stores,
    recorded: &mut leftovers::Recorded,
    removed: Vec<StoreId>,
    batch: Batch,
) -> Result<(), Error> {
    stores.accept().await.map_err(OpeningFailure::from)?;
    leftovers::remove_unfinished(stores, removed).await?;
    // Before the records of a new database: a first start that was ended here is a first start again.
    leftovers::make_data_stores(stores, recorded).await?;
    match batch.is_empty() {
        true => Ok(()),
        false => commit(stores.main(), batch).await,
    }
}

/// The tables that have fewer physical partitions than their throughput needs, since an earlier run was ended before it split them.
fn growth_of(schema: &Schema, partitions: &Partitions, delay: Duration, clock: &Clock) -> SizeChange {
    let growth = SizeChange::new(delay);
    if growth.is_at_once() {
        return growth;
    }
    let keyspaces = schema.keyspaces.values();
    for (keyspace, table) in keyspaces.flat_map(|of| of.all_tables().map(move |table| (of, table))) {
        let has = partitions
            .get(&table.storage_id)
            .map_or(usize::MAX, |map| map.all().len());
        if table.options.partitions.is_none() && has < needed(keyspace, table) {
            growth.begin(table.id, clock.monotonic());
        }
    }
    growth
}

/// Work that an earlier run left, to be done in this order before the server answers a request.
pub(crate) struct Unfinished {
    /// Logged batches to write again (batch_log.rs).
    pub(in crate::engine) batches: Vec<Logged>,
    /// For the search for leftovers (leftovers.rs).
    pub(in crate::engine) numbers: Numbers,
}

/// What a catalog is opened with.
pub(in crate::engine) struct Opening {
    pub(in crate::engine) stores: Stores,
    pub(in crate::engine) clock: Clock,
    /// Draws the identity of a new database, and ids.
    pub(in crate::engine) random: fastrand::Rng,
    /// Data centres and how many nodes each has.
    pub(in crate::engine) data_centers: Vec<(String, usize)>,
    /// The throughput of tables and keyspaces.
    pub(in crate::engine) offers: Offers,
    pub(in crate::engine) rules: Rules,
    /// Adds the system tables that Cassandra does not have.
    pub(in crate::engine) define: Define,
    /// Gives timestamps to changes of the schema.
    pub(in crate::engine) timestamps: WriteClock,
    /// Runs work in the background.
    pub(in crate::engine) tasks: Tasks,
    /// The identity of a machine whose partitions another one owns. `None` means that this one owns them.
    pub(in crate::engine) elsewhere: Option<Identity>,
}

impl Catalog {
    /// Reads the catalog of a store; creates one in an empty store. Logged batches are replayed next, then [`Catalog::remove_strays`] is
    /// due.
    ///
    /// # Errors
    /// When the store fails, or a record cannot be read.
    #[expect(
        clippy::too_many_lines,
        reason = "what is read, refused and written at a start, in an order that matters"
    )]
    pub(in crate::engine) async fn open(opening: Opening) -> Result<(Self, Unfinished), Error> {
        let Opening {
            stores,
            clock,
            mut random,
            data_centers,
            offers,
            rules,
            define,
            timestamps,
            tasks,
            elsewhere,
        } = opening;
        let (mut recorded, unfinished) = Box::pin(leftovers::open_stores(&stores)).await?;
        let store = stores.main();
        let mut found = Found::read(store).await?;
        let of_data = Box::pin(batches_in(data_stores(&recorded, &stores))).await?;
        if !mutant::is_on(Mutant::ForgetLogsBeside) {
            found.batches.extend(of_data);
        }
        if let Some(micros) = found.last_ballot {
            timestamps.found_ballot(micros);
        }
        let schema = schema_of(found.records, rules, &*define)?;
        let next_storage_id = found
            .next_storage_id
            .unwrap_or(system::USER_STORAGE_ID_MIN)
            .max(schema.storage_id_max().saturating_add(1));
        let mut batch = Batch::new();
        let identity =
            elsewhere.unwrap_or_else(|| drawn_once(found.host_id, found.paging_key, &mut random, &mut batch));
        let clock_sequence = random.u16(..);
        let schema = Arc::new(schema);
        let mut partitions = partitions_at_open(&schema, &found.partitions, &stores)?;
        recorded.check_named(&partitions)?;
        offers.check_metered(None, &schema)?;
        let mut logical = found.logical;
        logical.extend(Box::pin(logical_beside(&stores)).await?);
        for key in found.retired {
            batch.delete(Space::Catalog, key);
        }
        // Every refusal before this line leaves all stores as they were found.
        Box::pin(begin_writes(&stores, &mut recorded, unfinished.now, batch)).await?;
        let homes = Homes::new(stores.main().clone(), data_stores(&recorded, &stores).collect());
        give_budgets(&offers, None, &schema, &mut partitions);
        let growth = growth_of(&schema, &partitions, offers.split_delay(), &clock);
        let orphans = Leftovers::new(stores.clone(), tasks.clone());
        for id in unfinished.later {
            orphans.remove_store(id, Vec::new());
        }
        let owner = elsewhere.map(|_| Owner(OWNER.into()));
        let first = Snapshot::new(Arc::clone(&schema), 0, rules, partitions);
        let first = match &owner {
            Some(owner) => first.at(owner),
            None => first,
        };
        let published = Arc::new(Published::new(
            first,
            stores,
            clock,
            tasks,
            pending::number_after(&found.batches),
        ));
        let catalog = Self {
            schemas: SchemaCatalog {
                published: Arc::clone(&published),
                rules,
                define,
                offers,
                listener: Listener::default(),
                is_in_doubt: AtomicBool::new(false),
                owner,
            },
            placement: PlacementState {
                homes,
                growth,
                moving: Mutex::default(),
            },
            builds: Builds::new(Arc::clone(&published), found.views),
            orphans,
            published,
            changing: Mutex::new(Changing {
                next_storage_id,
                random,
                clock_sequence,
                stores: recorded,
                move_in_doubt: None,
            }),
            data_centers,
            identity,
            timestamps,
            logical,
        };
        catalog.open_indexes(&schema, found.indexes).await?;
        let unfinished = Unfinished {
            batches: found.batches,
            numbers: Numbers::of(&schema, next_storage_id),
        };
        Ok((catalog, unfinished))
    }

    /// Registers the indexes of the schema, and resumes the builds of incomplete ones.
    async fn open_indexes(&self, schema: &Schema, mut records: BTreeMap<StorageId, Record>) -> Result<(), Error> {
        let mut changing = self.changing.lock().await;
        let difference = Difference::between(&Schema::default(), schema);
        let (_, derivations) = difference.derivations(&Derivations::default());
        self.stores().set_derivations(derivations);
        let current = self.load_full();
        for of in difference.added() {
            let record = records.remove(&of.index).unwrap_or_default();
            let task = self.table_id(&mut changing);
            self.builds.begin_index(of, record, &current.partitions, task);
        }
        let mut batch = Batch::new();
        for id in records.into_keys() {
            batch.delete(Space::Catalog, index::record_key(id));
        }
        if batch.is_empty() {
            return Ok(());
        }
        commit(self.stores().main(), batch).await
    }
}
