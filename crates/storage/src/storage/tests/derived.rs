//! Derived entries: index entries are exactly what the rows derive, whatever happens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::storage::derivation::{Both, Derivation, Derivations, Entries, split_entry};

/// An entry for each live cell of a column whose number is odd or even.
#[derive(Debug)]
struct OfCells {
    index: TableId,
    odd: bool,
}

impl Derivation for OfCells {
    fn derive(&self, key: &[u8], row: &RowView<'_>, entries: &mut Entries) {
        for cell in row.cells().flatten() {
            if let row::CellStateRef::Live { value, .. } = cell.state
                && (cell.column.0 % 2 == 1) == self.odd
            {
                let mut encoded = vec![u8::try_from(value.len() % 200).unwrap()];
                encoded.extend_from_slice(value);
                entries.add(self.index, &encoded, encoded.len(), key);
            }
        }
    }
}

const FIRST_INDEX: TableId = 1000;

/// Two indexes on each table.
pub(super) fn of_tables(tables: impl IntoIterator<Item = TableId>) -> Derivations {
    let of = |table: TableId| {
        let of_cells = |odd: bool| {
            let index = FIRST_INDEX + table * 2 + u32::from(odd);
            Arc::new(OfCells { index, odd }) as Arc<dyn Derivation>
        };
        (
            table,
            Arc::new(Both(of_cells(false), of_cells(true))) as Arc<dyn Derivation>,
        )
    };
    tables.into_iter().map(of).collect()
}

/// Every entry follows from a row, and every derived entry exists.
pub(super) async fn check(store: &Store, tables: &[TableId], at: &Snapshot) {
    let derivations = of_tables(tables.iter().copied());
    let mut expected = Entries::default();
    for (key, value) in entries(store, Space::Rows, &KeyRange::all(), Order::Forward, at).await {
        let table = u32::from_be_bytes(*key.first_chunk().unwrap());
        if let (Some(derivation), Ok(view)) = (derivations.get(&table), RowView::parse(&value)) {
            derivation.derive(&key, &view, &mut expected);
        }
    }
    let expected: Vec<_> = expected.into_sorted();
    let found = entries(store, Space::Indexes, &KeyRange::all(), Order::Forward, at).await;
    let found: Vec<_> = found
        .into_iter()
        .map(|(key, value)| (key, Bytes::from(value)))
        .collect();
    assert_eq!(found, expected);
    for (key, value) in found {
        let (encoded, place) = split_entry(&key, &value).unwrap();
        assert_eq!(encoded.len() - 1, usize::from(encoded[0]));
        let index = u32::from_be_bytes(*key.first_chunk().unwrap());
        let row_key = [&((index - FIRST_INDEX) / 2).to_be_bytes(), place].concat();
        assert!(store.get(Space::Rows, &row_key, at).await.unwrap().is_some());
    }
}

/// Writers overwrite and delete while derivations are registered and the existing rows are indexed.
pub(super) async fn a_new_index_fills_while_writers_go_on(store: &Store) {
    const KEYS: u32 = 40;
    let key = |n: u32| key_of(1, &(n % KEYS).to_string(), "c");
    let mut batch = Batch::new();
    for n in 0..KEYS {
        batch.upsert(key(n), row_of(&[cell(1, 0, "old"), cell(2, 0, "old")]));
    }
    store.commit(batch).await.unwrap();
    let ends = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..4_u32)
        .map(|writer| {
            let (store, ends) = (store.clone(), Arc::clone(&ends));
            tokio::spawn(async move {
                let mut n = writer * 7;
                while !ends.load(Ordering::Relaxed) {
                    let mut batch = Batch::new();
                    let timestamp = i64::from(n * 31 % 997);
                    let value = ["a", "b", "c"][n as usize % 3];
                    batch.upsert(key(n), row_of(&[cell(n % 3, timestamp, value)]));
                    if n.is_multiple_of(5) {
                        batch.delete(Space::Rows, key(n + 1));
                    }
                    store.commit(batch).await.unwrap();
                    n += 3;
                }
            })
        })
        .collect();
    tokio::task::yield_now().await;
    store.set_derivations(of_tables([1]));
    store.commit(Batch::new()).await.unwrap();
    for index in [FIRST_INDEX + 2, FIRST_INDEX + 3] {
        let mut rest = Some(key::table_range(1));
        while let Some(range) = rest.take() {
            let rows = entries(store, Space::Rows, &range, Order::Forward, &store.snapshot()).await;
            let mut batch = Batch::new();
            for (key, _) in rows.into_iter().take(7) {
                rest = Some(KeyRange {
                    start: std::ops::Bound::Excluded(key.clone()),
                    end: range.end.clone(),
                });
                batch.reindex(key, index);
            }
            store.commit(batch).await.unwrap();
        }
    }
    check(store, &[1], &store.snapshot()).await;
    ends.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    check(store, &[1], &store.snapshot()).await;
    store.sweep(&key::table_range(1), 10, 10).await.unwrap();
    check(store, &[1], &store.snapshot()).await;
}

pub(super) async fn an_index_that_goes_leaves_the_others(store: &Store) {
    store.set_derivations(of_tables([1, 2]));
    for table in [1, 2] {
        let mut batch = Batch::new();
        batch.upsert(key_of(table, "k", "c"), row_of(&[cell(1, 1, "v"), cell(2, 1, "w")]));
        store.commit(batch).await.unwrap();
    }
    check(store, &[1, 2], &store.snapshot()).await;
    store.set_derivations(of_tables([2]));
    let mut batch = Batch::new();
    for index in [FIRST_INDEX + 2, FIRST_INDEX + 3] {
        batch.delete_range(Space::Indexes, key::table_range(index));
    }
    batch.reindex(key_of(1, "k", "c"), FIRST_INDEX + 2);
    store.commit(batch).await.unwrap();
    let mut batch = Batch::new();
    batch.upsert(key_of(1, "k", "c"), row_of(&[cell(1, 2, "unseen")]));
    batch.upsert(key_of(2, "k", "c"), row_of(&[cell(1, 2, "seen")]));
    store.commit(batch).await.unwrap();
    check(store, &[2], &store.snapshot()).await;
}
