//! Opening the catalog: reading its records, and what a server that ended has left to be done.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use arc_swap::ArcSwap;
use bytes::Bytes;
use tokio::sync::Mutex;
use uuid::Uuid;

use super::leftovers::{self, GARBAGE, Leftovers, Moved};
use super::lists::{give_budgets, partitions_at_open};
use super::publication::Listener;
use super::{Catalog, Changing, HOST_ID, NEXT_STORAGE_ID, PAGING_KEY, PARTITIONS, Snapshot, check_garbage, commit};
use crate::clock::Clock;
use crate::engine::growth::{Growth, needed};
use crate::engine::index::change::Difference;
use crate::engine::index::{self, Record};
use crate::engine::logical::{self, Recorded};
use crate::engine::offers::Offers;
use crate::engine::pending::{self, Logged};
use crate::engine::probe::PROBE;
use crate::engine::write::clock::{LAST_BALLOT, WriteClock};
use crate::engine::{Error, storage_read};
use crate::partition::Stores;
use crate::partition::store::{Batch, Derivations, KeyRange, Order, Space, Store};
use crate::profile::Rules;
use crate::schema::{Schema, StorageId, record, system};
use crate::tasks::Tasks;

/// What the catalog space held.
#[derive(Default)]
pub(super) struct Found {
    pub(super) records: Vec<(Vec<u8>, Bytes)>,
    pub(super) host_id: Option<[u8; 16]>,
    pub(super) paging_key: Option<[u8; 16]>,
    pub(super) next_storage_id: Option<u32>,
    pub(super) last_ballot: Option<i64>,
    pub(super) garbage: Vec<StorageId>,
    pub(super) indexes: BTreeMap<StorageId, Record>,
    pub(super) partitions: BTreeMap<StorageId, Bytes>,
    pub(super) logical: Vec<Recorded>,
    pub(super) batches: Vec<Logged>,
    pub(super) moved: Vec<Moved>,
}

impl Found {
    pub(super) async fn read(store: &Store) -> Result<Self, Error> {
        let mut found = Self::default();
        let at = store.snapshot();
        let everything = KeyRange::all();
        let scanned = store.scan(Space::Catalog, &everything, Order::Forward, &at, |key, value| {
            if key == HOST_ID {
                found.host_id = value.try_into().ok();
            } else if key == PAGING_KEY {
                found.paging_key = value.try_into().ok();
            } else if key == NEXT_STORAGE_ID {
                found.next_storage_id = value.try_into().ok().map(u32::from_be_bytes);
            } else if let Some(id) = key.strip_prefix(index::RECORD) {
                let id = id.try_into().ok().map(u32::from_be_bytes);
                found.indexes.extend(id.map(|id| (id, Record::decode(value))));
            } else if key == LAST_BALLOT {
                found.last_ballot = value.try_into().ok().map(i64::from_be_bytes);
            } else if key == PROBE {
                // Says nothing.
            } else if let Some(id) = key.strip_prefix(PARTITIONS) {
                let id = id.try_into().ok().map(u32::from_be_bytes);
                let list = Bytes::copy_from_slice(value);
                found.partitions.extend(id.map(|id| (id, list)));
            } else if key == leftovers::NEXT_STORE || key.starts_with(leftovers::STORE) {
                // Read before, to open them.
            } else if let Some(place) = key.strip_prefix(leftovers::MOVED) {
                found.moved.extend(Moved::decode(place));
            } else if key.starts_with(pending::RECORD) {
                found.batches.push((key.to_vec(), Bytes::copy_from_slice(value)));
            } else if let Some(place) = key.strip_prefix(logical::RECORD) {
                found.logical.extend(logical::decode(place, value));
            } else if let Some(id) = key.strip_prefix(GARBAGE) {
                found.garbage.extend(id.try_into().ok().map(u32::from_be_bytes));
            } else {
                found.records.push((key.to_vec(), Bytes::copy_from_slice(value)));
            }
            ControlFlow::Continue(())
        });
        scanned.await.map_err(|error| storage_read(&error))?;
        Ok(found)
    }
}

/// The schema of these records, with the system keyspaces of the profile.
pub(super) fn schema_of(
    records: Vec<(Vec<u8>, Bytes)>,
    rules: Rules,
    define: fn(&mut Schema),
) -> Result<Schema, Error> {
    let mut schema = record::load(records).map_err(|error| Error::Server(error.to_string()))?;
    define(&mut schema);
    if rules.profile.is_cosmos() {
        system::show_as_cosmos(&mut schema);
    }
    Ok(schema)
}

/// What a server that ended left to be done, in this order, before the next one answers a request.
pub(crate) struct Unfinished {
    /// Logged batches to write again (batch_log.rs).
    pub(in crate::engine) batches: Vec<Logged>,
    moved: Vec<Moved>,
    garbage: Vec<StorageId>,
}

impl Catalog {
    /// Reads the catalog of a store; makes one in an empty store. `define` adds the system tables that are not Cassandra's. Logged batches are written again next, then
    /// [`Catalog::remove_leftovers`] is due.
    ///
    /// # Errors
    /// When the store fails, or a record cannot be read.
    pub(crate) async fn open(
        stores: Stores,
        clock: Clock,
        mut random: fastrand::Rng,
        data_centers: Vec<(String, usize)>,
        offers: Offers,
        (rules, define): (Rules, fn(&mut Schema)),
        (timestamps, tasks): (WriteClock, Tasks),
    ) -> Result<(Self, Unfinished), Error> {
        let (recorded, unfinished_stores) = Box::pin(leftovers::open_stores(&stores)).await?;
        let store = stores.main();
        let found = Found::read(store).await?;
        if let Some(micros) = found.last_ballot {
            timestamps.found_ballot(micros);
        }
        let schema = schema_of(found.records, rules, define)?;
        let next_storage_id = found
            .next_storage_id
            .unwrap_or(system::USER_STORAGE_ID_MIN)
            .max(schema.storage_id_max().saturating_add(1));
        let mut batch = Batch::new();
        let mut kept = |key: &[u8], value: Option<[u8; 16]>, make: &mut dyn FnMut() -> [u8; 16]| {
            value.unwrap_or_else(|| {
                let made = make();
                batch.put(Space::Catalog, key.to_vec(), Bytes::copy_from_slice(&made));
                made
            })
        };
        let mut draw = || random.u128(..).to_be_bytes();
        let paging_key = kept(PAGING_KEY, found.paging_key, &mut draw);
        let host_id = kept(HOST_ID, found.host_id, &mut || {
            uuid::Builder::from_random_bytes(draw()).into_uuid().into_bytes()
        });
        let clock_sequence = random.u16(..);
        let schema = Arc::new(schema);
        let mut partitions = partitions_at_open(&schema, &found.partitions, &stores)?;
        recorded.check_named(&partitions)?;
        check_garbage(&schema, &found.garbage.iter().copied().collect())?;
        offers.check_metered(&schema)?;
        let mut moved = found.moved;
        moved.extend(Box::pin(leftovers::outside(&stores, &partitions, &moved)).await?);
        // Whatever was refused so far left all stores as they were found.
        stores
            .accept()
            .await
            .map_err(|error| Error::Server(error.to_string()))?;
        Box::pin(leftovers::remove_unfinished(&stores, unfinished_stores)).await?;
        if !batch.is_empty() {
            commit(stores.main(), batch).await?;
        }
        give_budgets(&offers, None, &schema, &mut partitions);
        let growth = Growth::new(offers.split_delay());
        if !growth.is_at_once() {
            for (keyspace, table) in schema
                .keyspaces
                .values()
                .flat_map(|of| of.all_tables().map(move |table| (of, table)))
            {
                let has = partitions
                    .get(&table.storage_id)
                    .map_or(usize::MAX, |list| list.all().len());
                if table.options.partitions.is_none() && has < needed(keyspace, table) {
                    growth.begin(table.id, clock.monotonic());
                }
            }
        }
        let leftovers = Leftovers::new(stores.clone(), tasks.clone());
        let catalog = Self {
            current: ArcSwap::from_pointee(Snapshot {
                schema: Arc::clone(&schema),
                generation: 0,
                rules,
                partitions,
            }),
            changing: Mutex::new(Changing {
                next_storage_id,
                random,
                clock_sequence,
                derivations: Derivations::default(),
                stores: recorded,
                unsure_move: None,
            }),
            stores,
            clock,
            data_centers,
            rules,
            host_id: Uuid::from_bytes(host_id),
            paging_key,
            indexes: Arc::default(),
            is_unsure: AtomicBool::new(false),
            listener: Listener::default(),
            timestamps,
            logical: found.logical,
            growth,
            offers,
            pending: Arc::default(),
            next_batch: AtomicU64::new(0),
            moving: Mutex::default(),
            leftovers,
            tasks,
            define,
        };
        catalog.open_indexes(&schema, found.indexes).await?;
        let unfinished = Unfinished {
            batches: found.batches,
            moved,
            garbage: found.garbage,
        };
        Ok((catalog, unfinished))
    }

    /// Begins to remove what finished moves and dropped tables left in stores.
    pub(crate) fn remove_leftovers(&self, unfinished: Unfinished) {
        for moved in unfinished.moved {
            self.leftovers.remove_moved(moved, Vec::new());
        }
        for id in unfinished.garbage {
            self.leftovers.remove_number(id, None);
        }
    }

    /// Registers the indexes of the schema, and goes on with the builds of those that are not complete.
    async fn open_indexes(&self, schema: &Schema, mut records: BTreeMap<StorageId, Record>) -> Result<(), Error> {
        let mut changing = self.changing.lock().await;
        let difference = Difference::between(&Schema::default(), schema);
        let (_, derivations) = difference.derivations(&changing.derivations);
        self.stores.set_derivations(derivations.clone());
        changing.derivations = derivations;
        let current = self.current.load_full();
        for (index, table) in difference.come() {
            let record = records.remove(&index).unwrap_or_default();
            self.begin_index(&mut changing, &current.partitions, table, index, record);
        }
        let mut batch = Batch::new();
        for id in records.into_keys() {
            batch.delete(Space::Catalog, index::record_key(id));
        }
        if batch.is_empty() {
            return Ok(());
        }
        commit(self.stores.main(), batch).await
    }
}
