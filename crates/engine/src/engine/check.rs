//! Verifies indexes against the rows: for tests, and for operators who suspect an index.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::engine::index::Indexes;
use crate::engine::index::rows::IndexedRows;
use crate::engine::snapshot::Snapshot as Catalog;
use crate::engine::{Error, storage_read};
use crate::partition::entries::EntryRange;
use crate::partition::{Hosted, Moment, ReadView};
use helenus_schema::schema::{StorageId, Table};
use helenus_storage::storage::{Derivation, Entries, RowView};

/// Rows that are read before their entries are looked up.
const STRIDE_ROWS: usize = 1024;

/// Differences that are listed one by one; more are counted.
const DIFFERENCES_MAX: usize = 20;

/// The result of [`crate::engine::Upkeep::check_indexes`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexCheck {
    /// Complete indexes that were checked.
    pub indexes: u64,
    /// Indexes that are still being built; they were not checked.
    pub building: u64,
    /// Entries that the rows of their tables derive.
    pub entries: u64,
    /// Entries that are missing or that follow from no row.
    pub differences: u64,
    /// Descriptions of the first of them, for people.
    pub described: Vec<String>,
}

impl IndexCheck {
    fn differs(&mut self, what: impl FnOnce() -> String) {
        self.differences += 1;
        if self.described.len() < DIFFERENCES_MAX {
            self.described.push(what());
        }
    }
}

/// Compares the entries of every complete index with those that the rows of its table derive, byte for byte, under one
/// snapshot of each store.
///
/// # Errors
/// When the medium fails or is damaged.
pub(in crate::engine) async fn check_indexes(indexes: &Indexes, catalog: &Catalog) -> Result<IndexCheck, Error> {
    let mut check = IndexCheck::default();
    let schema = &catalog.schema;
    for table in schema.keyspaces.values().flat_map(|keyspace| keyspace.tables.values()) {
        let Some(rows) = IndexedRows::of(table) else { continue };
        // As in reads: the index must be complete before and after the snapshot is taken.
        let targets = table.indexes.values().filter_map(|index| index.target(table));
        let (complete, building): (Vec<_>, Vec<_>) = targets
            .map(|target| target.storage_id)
            .chain(table.feed())
            .partition(|index| indexes.is_complete(*index));
        let Some(map) = catalog.partitions_of(table.storage_id) else {
            continue;
        };
        let mut view = ReadView::default();
        for partition in map.here() {
            view.at(partition);
        }
        check.building += u64::try_from(building.len()).unwrap_or(u64::MAX);
        let mut derived = BTreeMap::<StorageId, u64>::new();
        for index in complete {
            if indexes.is_complete(index) {
                derived.insert(index, 0);
            }
        }
        check.indexes += u64::try_from(derived.len()).unwrap_or(u64::MAX);
        for partition in map.here() {
            let at = view.at(partition);
            missing(partition, &at, table, &rows, &mut derived, &mut check).await?;
        }
        for (index, expected) in derived {
            check.entries += expected;
            let mut found = 0_u64;
            let range = EntryRange::all(index);
            for (store, _) in map.stores() {
                let scanned = map.entries_in(store, &range, &mut view, |_| {
                    found += 1;
                    ControlFlow::Continue(())
                });
                scanned.await.map_err(|error| storage_read(&error))?;
            }
            if found != expected {
                check.differs(|| {
                    format!(
                        "{}.{}: index {index} has {found} entries, its rows derive {expected}",
                        table.keyspace, table.name
                    )
                });
            }
        }
    }
    Ok(check)
}

/// Counts the entries that part of a table derives for each index, and reports those that are missing.
async fn missing(
    partition: &Hosted,
    at: &Moment,
    table: &Table,
    rows: &IndexedRows,
    derived: &mut BTreeMap<StorageId, u64>,
    check: &mut IndexCheck,
) -> Result<(), Error> {
    let mut range = partition.rows(table.storage_id);
    let mut rest = None;
    loop {
        let (mut entries, mut seen) = (Entries::default(), 0_usize);
        let scanned = partition.scan(&range, at, |row| {
            if let Ok(view) = RowView::parse(row.value) {
                rows.derive(row.key(), &view, &mut entries);
            }
            seen += 1;
            if seen < STRIDE_ROWS {
                return ControlFlow::Continue(());
            }
            rest = Some(row.place());
            ControlFlow::Break(())
        });
        scanned.await.map_err(|error| storage_read(&error))?;
        for (entry, value) in entries.into_sorted() {
            let index = entry.first_chunk().map_or(0, |id| u32::from_be_bytes(*id));
            let Some(count) = derived.get_mut(&index) else { continue };
            *count += 1;
            let found = partition.entry(&entry, at).await;
            let found = found.map_err(|error| storage_read(&error))?;
            if found.as_ref() != Some(&value) {
                check.differs(|| {
                    let bytes: String = entry.iter().map(|byte| format!("{byte:02x}")).collect();
                    format!("{}.{}: entry {bytes} is missing", table.keyspace, table.name)
                });
            }
        }
        match rest.take() {
            Some(place) => range.start_after_row(place),
            None => return Ok(()),
        }
    }
}
