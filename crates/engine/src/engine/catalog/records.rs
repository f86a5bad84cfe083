//! The records of the catalog space, and the schema of which they tell.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use bytes::Bytes;

use super::leftovers::{self, NO_NUMBER, RETIRED};
use super::{HOST_ID, NEXT_STORAGE_ID, PAGING_KEY, PARTITIONS, map_of_key};
use crate::engine::index::{self, Record};
use crate::engine::logical::{self, Recorded};
use crate::engine::pending::{self, Logged, RecordId};
use crate::engine::probe::PROBE;
use crate::engine::terms::clock::LAST_BALLOT;
use crate::engine::view;
use crate::engine::{Error, storage_read};
use crate::partition::StoreId;
use helenus_schema::profile::Rules;
use helenus_schema::schema::record::Change;
use helenus_schema::schema::{Schema, StorageId, record, system};
use helenus_storage::storage::{Damaged, KeyRange, Order, Space, Store};

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
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), Damaged> {
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
        } else if let Some(table) = map_of_key(key)? {
            self.partitions.insert(table, Bytes::copy_from_slice(value));
        } else if key == leftovers::NEXT_STORE || key.starts_with(leftovers::STORE) {
            // Read before, to open them.
        } else if key.starts_with(pending::RECORD) {
            let id = RecordId::of_key(StoreId::MAIN, key).ok_or_else(|| damaged("its number has not eight bytes"))?;
            let record = Bytes::copy_from_slice(value);
            self.batches.push(Logged { id, record });
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

/// What a follower needs of the catalog's records, by their keys.
pub type CatalogRecords = BTreeMap<Vec<u8>, Bytes>;

/// Whether a follower needs a record: those of the schema, of partition maps, and of what is built.
fn is_followed(key: &[u8]) -> bool {
    let named = [NEXT_STORAGE_ID, PARTITIONS, index::RECORD, view::RECORD];
    !key.starts_with(b"!") || named.iter().any(|name| key.starts_with(name))
}

/// The records that a follower needs.
pub(in crate::engine) async fn followed(store: &Store) -> Result<CatalogRecords, Error> {
    let (at, all, mut records) = (store.snapshot(), KeyRange::all(), CatalogRecords::new());
    let scanned = store.scan(Space::Catalog, &all, Order::Forward, &at, |key, value| {
        if is_followed(key) {
            records.insert(key.to_vec(), Bytes::copy_from_slice(value));
        }
        ControlFlow::Continue(())
    });
    scanned.await.map_err(|error| storage_read(&error))?;
    Ok(records)
}

/// What has changed from one state of the records to another.
#[must_use]
pub fn changed_records(before: &CatalogRecords, after: &CatalogRecords) -> Vec<Change> {
    let put = after.iter().filter(|(key, value)| before.get(*key) != Some(*value));
    let put = put.map(|(key, value)| Change {
        key: key.clone(),
        value: Some(value.to_vec()),
    });
    let removed = before.keys().filter(|key| !after.contains_key(*key));
    let removed = removed.map(|key| Change {
        key: key.clone(),
        value: None,
    });
    put.chain(removed).collect()
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

#[cfg(test)]
mod tests {
    use super::super::PARTITIONS;
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
            (keyed(pending::RECORD, &[0, 1]), vec![1], "!batch 0001"),
        ];
        for (key, value, name) in records {
            let refused = Found::default().add(&key, &value).unwrap_err();
            assert_eq!(refused, Damaged::catalog(&key, refused.what));
            assert!(refused.to_string().contains(&format!("record {name} of")), "{refused}");
        }
    }
}
