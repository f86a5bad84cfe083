//! The same changes on every engine and on a naive model; the contents must agree.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::storage::row::strategy::{deletion, row};

/// One change, with keys from a small range so that they meet.
#[derive(Clone, Debug)]
enum Step {
    Upsert(u8, Row),
    PutRow(u8, Row),
    DeleteRow(u8),
    Catalog(u8, Option<u8>),
    DeletePartition(u8, Deletion),
    DeleteRange(u8, u8, u8, Deletion),
    Drop(u8),
    /// Ends the batch.
    Commit,
    /// Ends the batch; durable stores are closed and opened.
    Reopen,
    /// Ends the batch; flushes the log's contents to tables.
    Flush,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0_u8..6, row()).prop_map(|(key, row)| Step::Upsert(key, row)),
        1 => (0_u8..6, row()).prop_map(|(key, row)| Step::PutRow(key, row)),
        1 => (0_u8..6).prop_map(Step::DeleteRow),
        2 => (0_u8..4, prop::option::of(any::<u8>())).prop_map(|(key, value)| Step::Catalog(key, value)),
        1 => (0_u8..6, deletion()).prop_map(|(key, deletion)| Step::DeletePartition(key, deletion)),
        2 => (0_u8..6, 0_u8..3, 0_u8..3, deletion()).prop_map(|(key, start, end, deletion)| Step::DeleteRange(key, start, end, deletion)),
        1 => (0_u8..3).prop_map(Step::Drop),
        6 => Just(Step::Commit),
        1 => Just(Step::Reopen),
        1 => Just(Step::Flush),
    ]
}

/// Two tables, two partitions, a few rows.
fn place(n: u8) -> (TableId, i64, Vec<u8>) {
    (u32::from(n % 2), i64::from(n / 2 % 2) - 1, vec![n / 2 % 2])
}

fn row_key(n: u8) -> Vec<u8> {
    let (table, token, pk) = place(n);
    key::row_key(&key::partition_prefix(table, token, &pk), &[n])
}

/// Table, token, partition key, clustering range or all, deletion.
type Deleted = (TableId, i64, Vec<u8>, Option<(u8, u8)>, Deletion);

/// The naive model: every partial row ever written to a key, merged on each read, last to first.
#[derive(Clone, Debug, Default)]
struct Model {
    rows: BTreeMap<Vec<u8>, Vec<Row>>,
    catalog: BTreeMap<Vec<u8>, Vec<u8>>,
    deletions: Vec<Deleted>,
}

impl Model {
    fn row(&self, key: &[u8]) -> Option<Row> {
        self.rows.get(key)?.iter().rev().cloned().reduce(Row::merge)
    }

    fn covering(&self, at: &(TableId, i64, Vec<u8>), clustering: u8) -> Option<i64> {
        let covers = |range: &Option<(u8, u8)>| range.is_none_or(|(start, end)| (start..=end).contains(&clustering));
        self.deletions
            .iter()
            .filter(|(table, token, pk, range, _)| (table, token, pk) == (&at.0, &at.1, &at.2) && covers(range))
            .map(|(.., deletion)| deletion.timestamp)
            .max()
    }
}

fn apply(step: &Step, batch: &mut Batch, model: &mut Model) {
    match step.clone() {
        Step::Upsert(n, row) => {
            batch.upsert(row_key(n), &row);
            model.rows.entry(row_key(n)).or_default().push(row.canonical());
        }
        Step::PutRow(n, row) => {
            batch.put(Space::Rows, row_key(n), row.encode());
            model.rows.insert(row_key(n), vec![row.canonical()]);
        }
        Step::DeleteRow(n) => {
            batch.delete(Space::Rows, row_key(n));
            model.rows.remove(&row_key(n));
        }
        Step::Catalog(n, Some(value)) => {
            batch.put(Space::Catalog, vec![n], vec![value]);
            model.catalog.insert(vec![n], vec![value]);
        }
        Step::Catalog(n, None) => {
            batch.delete(Space::Catalog, vec![n]);
            model.catalog.remove(&vec![n]);
        }
        Step::DeletePartition(n, deletion) => {
            let (table, token, pk) = place(n);
            batch.put_partition_deletion(table, token, &pk, deletion);
            model.deletions.push((table, token, pk, None, deletion));
        }
        Step::DeleteRange(n, start, end, deletion) => {
            let (table, token, pk) = place(n);
            let range = RangeTombstone {
                start: std::ops::Bound::Included(vec![start]),
                end: std::ops::Bound::Included(vec![end]),
                deletion,
            };
            batch.put_range_tombstone(table, token, &pk, range);
            model.deletions.push((table, token, pk, Some((start, end)), deletion));
        }
        Step::Drop(table) => {
            let table = u32::from(table);
            batch.delete_range(Space::Rows, key::table_range(table));
            batch.delete_range(Space::Deletions, key::table_range(table));
            model.rows.retain(|key, _| key::parse(key).unwrap().table != table);
            model.deletions.retain(|(of, ..)| *of != table);
        }
        Step::Commit | Step::Reopen | Step::Flush => {}
    }
}

async fn check(store: &Store, model: &Model, counts: bool) {
    let now = store.snapshot();
    super::derived::check(store, &[0, 1], &now).await;
    for order in [Order::Forward, Order::Reverse] {
        let mut rows = entries(store, Space::Rows, &KeyRange::all(), order, &now).await;
        let mut catalog = entries(store, Space::Catalog, &KeyRange::all(), order, &now).await;
        if order == Order::Reverse {
            rows.reverse();
            catalog.reverse();
        }
        let rows: Vec<_> = rows
            .into_iter()
            .map(|(key, value)| (key, Row::decode(&value).unwrap()))
            .collect();
        let expected: Vec<_> = model
            .rows
            .keys()
            .map(|key| (key.clone(), model.row(key).unwrap()))
            .collect();
        assert_eq!(rows, expected);
        assert_eq!(catalog, model.catalog.clone().into_iter().collect::<Vec<_>>());
    }
    for n in 0..6 {
        let found = store.get(Space::Rows, &row_key(n), &now).await.unwrap();
        assert_eq!(found.map(|row| Row::decode(&row).unwrap()), model.row(&row_key(n)));
        let at = place(n);
        let deletions = store.deletions(at.0, at.1, &at.2, &now).await.unwrap();
        for clustering in 0..3 {
            assert_eq!(
                deletions.timestamp_covering(&[clustering]),
                model.covering(&at, clustering)
            );
        }
    }
    for table in 0..3 {
        let has = model.deletions.iter().any(|(of, ..)| *of == table);
        assert_eq!(now.has_deletions(table), has, "table {table}");
        if counts {
            let rows = entries(store, Space::Rows, &key::table_range(table), Order::Forward, &now).await;
            let bytes = rows.iter().map(|(key, value)| (key.len() + value.len()) as u64).sum();
            let expected = Estimate {
                bytes,
                rows: rows.len() as u64,
                is_exact: true,
            };
            assert_eq!(store.bytes_in(&key::table_range(table)), expected);
        }
    }
}

async fn run(scheme: &str, row_cache_bytes_max: usize, steps: &[Step]) {
    let mut place = Place::new(scheme);
    place.options.row_cache_bytes_max = row_cache_bytes_max;
    // Without a filter, with one that is soon used up, and with one that is large enough.
    place.options.key_filter_bytes_max = [0, 64, 1 << 20][steps.len() % 3];
    let mut store = place.open().await;
    store.set_derivations(super::derived::of_tables([0, 1]));
    let (mut batch, mut model) = (Batch::new(), Model::default());
    for step in steps {
        // The engine removes a range after the rest of its batch; the model applies all in order, so a drop is a
        // separate batch.
        if matches!(step, Step::Drop(_)) {
            store.commit(std::mem::take(&mut batch)).await.unwrap();
        }
        apply(step, &mut batch, &mut model);
        if matches!(step, Step::Commit | Step::Reopen | Step::Flush | Step::Drop(_)) {
            store.commit(std::mem::take(&mut batch)).await.unwrap();
            check(&store, &model, !scheme.starts_with("slate")).await;
        }
        if matches!(step, Step::Flush) {
            store.flush().await.unwrap();
            check(&store, &model, false).await;
        }
        if matches!(step, Step::Reopen) && place.url.is_durable() {
            store.close().await.unwrap();
            store = place.open().await;
            store.set_derivations(super::derived::of_tables([0, 1]));
            check(&store, &model, !scheme.starts_with("slate")).await;
        }
    }
    store.commit(batch).await.unwrap();
    check(&store, &model, !scheme.starts_with("slate")).await;
    store.close().await.unwrap();
}

fn block_on(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(future);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn memory_is_the_model(steps in prop::collection::vec(step(), 1..40)) {
        block_on(run("memory", 0, &steps));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn file_is_the_model(steps in prop::collection::vec(step(), 1..60), cache in prop_oneof![Just(0_usize), Just(1 << 14), Just(1 << 24)]) {
        block_on(run("file", cache, &steps));
    }
}

#[cfg(feature = "slate")]
proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn slate_is_the_model(
        steps in prop::collection::vec(step(), 1..60),
        cache in prop_oneof![Just(0_usize), Just(1 << 14), Just(1 << 24)],
        scheme in prop_oneof![Just("slate+file"), Just("slate+memory")],
    ) {
        block_on(run(scheme, cache, &steps));
    }
}
