//! Conversion between the entries of stores and the blocks of a backup.
//!
//! Entries have no table number, with which a store's keys begin: a restored table has another one.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use bytes::Bytes;
use futures::future::try_join_all;

use super::hosted::{Hosted, range_of};
use super::map::TablePartitions;
use super::ring::StoreId;
use helenus_base::mutant::{self, Mutant};
use helenus_storage::backup::{Block, Entry, Kind, entries};
use helenus_storage::storage::row::without_position;
use helenus_storage::storage::{Batch, Error, Gap, KeyRange, Order, Result, Salvage, Snapshot, Space, Store, TableId};
use helenus_types::token::KeySpan;

/// A change that a logged batch will make: the space, the key, and the value to merge.
pub type Merge = (Space, Vec<u8>, Bytes);

/// A snapshot of each store.
#[derive(Debug)]
pub struct Moments {
    main: (Store, Snapshot),
    all: BTreeMap<StoreId, (Store, Snapshot)>,
}

/// The entries of a physical partition that are not copied yet.
#[derive(Debug)]
pub struct Rest {
    space: Space,
    kind: Kind,
    range: Option<KeyRange>,
}

impl Rest {
    /// All rows, or all deletions, that a table has in a physical partition.
    #[must_use]
    pub fn all(table: TableId, partition: &Hosted, kind: Kind) -> Self {
        Self::within(table, &partition.span, kind)
    }

    /// All rows, or all deletions, that a table has in a span.
    #[must_use]
    pub fn within(table: TableId, span: &KeySpan, kind: Kind) -> Self {
        let space = match kind {
            Kind::Row | Kind::LateRow => Space::Rows,
            Kind::Deletion | Kind::LateDeletion => Space::Deletions,
        };
        Self {
            space,
            kind,
            range: Some(range_of(table, span)),
        }
    }

    /// Whether all entries are copied.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.range.is_none()
    }
}

impl Moments {
    /// Takes a snapshot of the stores that stay, the main one among them, and of all stores of these partition maps. The caller holds all latches. An
    /// empty commit to each store completes after every commit that cancelled requests had submitted to it.
    ///
    /// # Errors
    /// A store takes no writes.
    pub async fn take<'a>(
        kept: impl Iterator<Item = (StoreId, &'a Store)>,
        maps: impl Iterator<Item = &'a TablePartitions>,
    ) -> Result<Self> {
        let mut stores: BTreeMap<StoreId, Store> = kept.map(|(id, store)| (id, store.clone())).collect();
        for map in maps {
            stores.extend(map.stores().map(|(id, store)| (id, store.clone())));
        }
        try_join_all(stores.values().map(|store| store.commit(Batch::new()))).await?;
        let mut all = BTreeMap::new();
        for (id, store) in stores {
            if mutant::is_on(Mutant::SnapshotWithoutLatches) {
                store.commit(Batch::new()).await?;
            }
            let at = store.snapshot();
            all.insert(id, (store, at));
        }
        let main = all.get(&StoreId::MAIN).cloned().ok_or(Error::Closed)?;
        Ok(Self { main, all })
    }

    /// The values of the records with a prefix that any store has for itself.
    ///
    /// # Errors
    /// The medium fails or is damaged.
    pub async fn records_of_stores(&self, prefix: &[u8]) -> Result<Vec<Vec<u8>>> {
        let (mut found, range) = (Vec::new(), KeyRange::prefix(prefix));
        for (store, at) in self.all.values() {
            let scanned = store.scan(Space::Catalog, &range, Order::Forward, at, |_, value| {
                found.push(value.to_vec());
                ControlFlow::Continue(())
            });
            scanned.await?;
        }
        Ok(found)
    }

    /// The records of the catalog that `belongs` accepts.
    ///
    /// # Errors
    /// The medium fails or is damaged.
    pub async fn records(&self, mut belongs: impl FnMut(&[u8]) -> bool + Send) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let (mut found, all) = (Vec::new(), KeyRange::all());
        let (main, at) = &self.main;
        let scanned = main.scan(Space::Catalog, &all, Order::Forward, at, |key, value| {
            if belongs(key) {
                found.push((key.to_vec(), value.to_vec()));
            }
            ControlFlow::Continue(())
        });
        scanned.await?;
        Ok(found)
    }

    /// Adds entries of a physical partition to a block, until it is full or none are left. Returns how many.
    ///
    /// # Errors
    /// The medium fails or is damaged.
    pub async fn fill(&self, block: &mut Block, partition: &Hosted, rest: &mut Rest) -> Result<u64> {
        let Some(range) = rest.range.take() else { return Ok(0) };
        let (store, at) = self.all.get(&partition.store_id).ok_or(Error::Closed)?;
        let (mut count, mut last, kind) = (0, None, rest.kind);
        let scanned = store.scan(rest.space, &range, Order::Forward, at, |key, value| {
            count += 1;
            let key_of = without_table(key);
            if block.add(Entry {
                kind,
                key: key_of,
                value,
            }) {
                last = Some(key.to_vec());
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        scanned.await?;
        rest.range = last.map(|last| KeyRange {
            start: Bound::Excluded(last),
            end: range.end,
        });
        Ok(count)
    }
}

/// Adds the readable entries of a damaged store to a block, until it is full or none are left. Returns how many, and
/// the gaps skipped.
pub async fn fill_salvaged(salvage: &Salvage, block: &mut Block, rest: &mut Rest) -> (u64, Vec<Gap>) {
    let Some(range) = rest.range.take() else {
        return (0, Vec::new());
    };
    let (mut count, mut last, kind) = (0, None, rest.kind);
    let scanned = salvage.scan(rest.space, &range, |key, value| {
        count += 1;
        let key_of = without_table(key);
        if block.add(Entry {
            kind,
            key: key_of,
            value,
        }) {
            last = Some(key.to_vec());
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    let gaps = scanned.await;
    rest.range = last.map(|last| KeyRange {
        start: Bound::Excluded(last),
        end: range.end,
    });
    (count, gaps)
}

/// Decodes a record of the batch log; `None` means that it is damaged.
#[must_use]
pub fn merges(record: &[u8]) -> Option<Vec<Merge>> {
    Batch::merges(record)
}

/// A logged batch's change of a table, as an entry; `None` means that it concerns another table.
#[must_use]
pub fn late_entry(table: TableId, (space, key, value): &Merge) -> Option<Entry<'_>> {
    let kind = match space {
        Space::Rows => Kind::LateRow,
        Space::Deletions => Kind::LateDeletion,
        Space::Indexes | Space::Feed | Space::Catalog => return None,
    };
    key.starts_with(&table.to_be_bytes()).then(|| Entry {
        kind,
        key: without_table(key),
        value,
    })
}

/// A key without the number of its table.
fn without_table(key: &[u8]) -> &[u8] {
    key.split_first_chunk::<4>().map_or(key, |(_, rest)| rest)
}

/// Numbers of entries by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rows.
    pub rows: u64,
    /// Deletions.
    pub deletions: u64,
    /// Entries to merge.
    pub late: u64,
}

/// The entries of a block as changes under the number of a table, and counts them; `None` means that the block is
/// damaged.
#[must_use]
pub fn changes(payload: &[u8], table: TableId, counts: &mut Counts) -> Option<Batch> {
    let mut batch = Batch::new();
    for entry in entries(payload) {
        let entry = entry?;
        let key = [&table.to_be_bytes(), entry.key].concat();
        let value = Bytes::copy_from_slice(entry.value);
        match entry.kind {
            Kind::Row => {
                counts.rows += 1;
                batch.put(Space::Rows, key, without_position(&value));
            }
            Kind::Deletion => {
                counts.deletions += 1;
                batch.put(Space::Deletions, key, value);
            }
            Kind::LateRow => {
                counts.late += 1;
                batch.merge(Space::Rows, key, without_position(&value));
            }
            Kind::LateDeletion => {
                counts.late += 1;
                batch.merge(Space::Deletions, key, value);
            }
        }
    }
    Some(batch)
}
