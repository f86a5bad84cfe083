//! Opening the catalog: reading its records, and the work that an earlier run left unfinished.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::engine::published::Published;
use bytes::Bytes;
use tokio::sync::Mutex;
use uuid::Uuid;

use super::leftovers::{self, Leftovers, NO_NUMBER, RETIRED};
use super::partition_maps::{give_budgets, partitions_at_open};
use super::publication::Listener;
use super::strays::Numbers;
use super::{Catalog, Changing, Define, HOST_ID, NEXT_STORAGE_ID, PAGING_KEY, PARTITIONS, Snapshot, commit};
use crate::engine::index::change::Difference;
use crate::engine::index::{self, Record};
use crate::engine::logical::{self, Recorded};
use crate::engine::offers::Offers;
use crate::engine::pending::{self, Logged};
use crate::engine::probe::PROBE;
use crate::engine::size_change::{SizeChange, needed};
use crate::engine::terms::clock::{LAST_BALLOT, WriteClock};
use crate::engine::view;
use crate::engine::{Error, storage_read};
use crate::partition::{Homes, StoreId, Stores};
use helenus_base::clock::Clock;
use helenus_base::tasks::Tasks;
use helenus_schema::profile::Rules;
use helenus_schema::schema::{Schema, StorageId, record, system};
use helenus_storage::storage::{Batch, Damaged, Derivations, KeyRange, Order, Space, Store};

/// The contents of the catalog space.
#[derive(Default)]
pub(super) struct Found {
    pub(super) records: Vec<(Vec<u8>, Bytes)>,
    pub(super) host_id: Option<[u8; 16]>,
    pub(super) paging_key: Option<[u8; 16]>,
    pub(super) next_storage_id: Option<u32>,
    pub(super) last_ballot: Option<i64>,
    pub(super) indexes: BTreeMap<StorageId, Record>,
    pub(super) views: BTreeMap<StorageId, Record>,
    pub(super) partitions: BTreeMap<StorageId, Bytes>,
    pub(super) logical: Vec<Recorded>,
    pub(super) batches: Vec<Logged>,
    /// Keys of records that only versions before wrote.
    pub(super) retired: Vec<Vec<u8>>,
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

impl Found {
    pub(super) async fn read(store: &Store) -> Result<Self, Error> {
        let mut found = Self::default();
        let at = store.snapshot();
        let everything = KeyRange::all();
        let mut added = Ok(());
        let scanned = store.scan(Space::Catalog, &everything, Order::Forward, &at, |key, value| {
            added = found.add(key, value);
            if added.is_ok() {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        scanned.await.map_err(|error| storage_read(&error))?;
        added?;
        Ok(found)
    }

    /// Adds a record. A damaged one is refused: its content would otherwise count as never recorded.
    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), Damaged> {
        let damaged = |what| Damaged::catalog(key, what);
        let number = |bytes: &[u8]| bytes.try_into().map(u32::from_be_bytes).map_err(|_| damaged(NO_NUMBER));
        let drawn = |value: &[u8]| value.try_into().map_err(|_| damaged("it has not 16 bytes"));
        if key == HOST_ID {
            self.host_id = Some(drawn(value)?);
        } else if key == PAGING_KEY {
            self.paging_key = Some(drawn(value)?);
        } else if key == NEXT_STORAGE_ID {
            self.next_storage_id = Some(number(value)?);
        } else if let Some(id) = key.strip_prefix(index::RECORD) {
            // A record of another version means that the index is built from the start.
            self.indexes.insert(number(id)?, Record::decode(value));
        } else if let Some(id) = key.strip_prefix(view::RECORD) {
            self.views.insert(number(id)?, Record::decode(value));
        } else if key == LAST_BALLOT {
            let micros = value.try_into().map(i64::from_be_bytes);
            self.last_ballot = Some(micros.map_err(|_| damaged("it is no time"))?);
        } else if key == PROBE {
            // Nothing to load: it holds the time of a health check.
        } else if let Some(id) = key.strip_prefix(PARTITIONS) {
            self.partitions.insert(number(id)?, Bytes::copy_from_slice(value));
        } else if key == leftovers::NEXT_STORE || key.starts_with(leftovers::STORE) {
            // Read before, to open them.
        } else if key.starts_with(pending::RECORD) {
            self.batches.push((key.to_vec(), Bytes::copy_from_slice(value)));
        } else if let Some(place) = key.strip_prefix(logical::RECORD) {
            // An unreadable record is only a size, which is counted again.
            self.logical.extend(logical::decode(place, value));
        } else if RETIRED.iter().any(|prefix| key.starts_with(prefix)) {
            self.retired.push(key.to_vec());
        } else {
            self.records.push((key.to_vec(), Bytes::copy_from_slice(value)));
        }
        Ok(())
    }
}

/// The schema of these records, with the system keyspaces of the profile.
pub(super) fn schema_of(
    records: Vec<(Vec<u8>, Bytes)>,
    rules: Rules,
    define: &dyn Fn(&mut Schema),
) -> Result<Schema, Error> {
    let mut schema = record::load(records).map_err(|error| Error::Fault(error.to_string()))?;
    define(&mut schema);
    if rules.profile.is_cosmos() {
        system::show_as_cosmos(&mut schema);
    }
    Ok(schema)
}

/// Work that an earlier run left, to be done in this order before the server answers a request.
pub(crate) struct Unfinished {
    /// Logged batches to write again (batch_log.rs).
    pub(in crate::engine) batches: Vec<Logged>,
    /// For the search for leftovers (leftovers.rs).
    pub(in crate::engine) numbers: Numbers,
}

impl Catalog {
    /// Reads the catalog of a store; creates one in an empty store. `define` adds the system tables that
    /// Cassandra does not have. Logged batches are replayed next, then [`Catalog::remove_strays`] is due.
    ///
    /// # Errors
    /// When the store fails, or a record cannot be read.
    pub(crate) async fn open(
        stores: Stores,
        clock: Clock,
        mut random: fastrand::Rng,
        data_centers: Vec<(String, usize)>,
        offers: Offers,
        (rules, define): (Rules, Define),
        (timestamps, tasks): (WriteClock, Tasks),
    ) -> Result<(Self, Unfinished), Error> {
        let (mut recorded, unfinished) = Box::pin(leftovers::open_stores(&stores)).await?;
        let store = stores.main();
        let found = Found::read(store).await?;
        if let Some(micros) = found.last_ballot {
            timestamps.found_ballot(micros);
        }
        let schema = schema_of(found.records, rules, &*define)?;
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
        offers.check_metered(None, &schema)?;
        let mut logical = found.logical;
        logical.extend(Box::pin(logical_beside(&stores)).await?);
        for key in found.retired {
            batch.delete(Space::Catalog, key);
        }
        // Every refusal before this line leaves all stores as they were found.
        stores.accept().await.map_err(|error| Error::Fault(error.to_string()))?;
        Box::pin(leftovers::remove_unfinished(&stores, unfinished.now)).await?;
        // Before the records of a new database: a first start that was ended here is a first start again.
        Box::pin(leftovers::make_data_stores(&stores, &mut recorded)).await?;
        if !batch.is_empty() {
            commit(stores.main(), batch).await?;
        }
        let data = recorded.data.iter().filter_map(|id| Some((*id, stores.get(*id)?)));
        let homes = Homes::new(stores.main().clone(), data.collect());
        give_budgets(&offers, None, &schema, &mut partitions);
        let growth = SizeChange::new(offers.split_delay());
        if !growth.is_at_once() {
            for (keyspace, table) in schema
                .keyspaces
                .values()
                .flat_map(|of| of.all_tables().map(move |table| (of, table)))
            {
                let has = partitions
                    .get(&table.storage_id)
                    .map_or(usize::MAX, |map| map.all().len());
                if table.options.partitions.is_none() && has < needed(keyspace, table) {
                    growth.begin(table.id, clock.monotonic());
                }
            }
        }
        let leftovers = Leftovers::new(stores.clone(), tasks.clone());
        for id in unfinished.later {
            leftovers.remove_store(id, Vec::new());
        }
        let catalog = Self {
            published: Arc::new(Published::new(
                Snapshot::new(Arc::clone(&schema), 0, rules, partitions),
                stores,
                clock,
                tasks,
                pending::number_after(&found.batches),
            )),
            changing: Mutex::new(Changing {
                next_storage_id,
                random,
                clock_sequence,
                stores: recorded,
                move_in_doubt: None,
            }),
            homes,
            data_centers,
            rules,
            host_id: Uuid::from_bytes(host_id),
            paging_key,
            view_records: std::sync::Mutex::new(found.views),
            is_in_doubt: AtomicBool::new(false),
            listener: Listener::default(),
            timestamps,
            logical,
            growth,
            offers,
            moving: Mutex::default(),
            leftovers,
            define,
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
            let record = records.remove(&of.0).unwrap_or_default();
            self.begin_index(&mut changing, &current.partitions, of, record);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_record_of_the_catalog_is_refused_by_its_name() {
        let keyed = |name: &[u8], rest: &[u8]| [name, rest].concat();
        let records = [
            (HOST_ID.to_vec(), vec![0; 15], "!host_id"),
            (PAGING_KEY.to_vec(), vec![0; 17], "!paging_key"),
            (NEXT_STORAGE_ID.to_vec(), vec![0; 3], "!next_storage_id"),
            (LAST_BALLOT.to_vec(), vec![0; 7], "!last_ballot"),
            (keyed(PARTITIONS, &[0, 1]), vec![1], "!partitions 0001"),
            (keyed(index::RECORD, &[]), vec![1], "!index"),
            (keyed(view::RECORD, &[1]), vec![1], "!view 01"),
        ];
        for (key, value, name) in records {
            let refused = Found::default().add(&key, &value).unwrap_err();
            assert_eq!(refused, Damaged::catalog(&key, refused.what));
            assert!(refused.to_string().contains(&format!("record {name} of")), "{refused}");
        }
    }
}
