//! Sweeps concurrent with writers: deleted data stays deleted, whatever comes between a sweep's read and its commit.

use std::ops::Bound;

use super::*;

const TABLE: TableId = 1;
const TOKEN: i64 = 5;
const NOW_SECONDS: i64 = 100;
const GC_BEFORE_SECONDS: i64 = 50;

/// A deletion whose grace is over.
const DELETED: Deletion = Deletion {
    timestamp: 10,
    at_seconds: 10,
};

fn prefix(partition: &str) -> Vec<u8> {
    key::partition_prefix(TABLE, TOKEN, partition.as_bytes())
}

fn row_key(partition: &str, n: u32) -> Vec<u8> {
    key::row_key(&prefix(partition), &n.to_be_bytes())
}

fn sweep() -> Sweep {
    Sweep::new(key::table_range(TABLE), NOW_SECONDS, GC_BEFORE_SECONDS)
}

async fn finish(store: &Store, mut sweep: Sweep) -> Swept {
    while store.sweep_stride(&mut sweep).await.unwrap().is_continue() {}
    sweep.swept()
}

async fn upsert(store: &Store, key: Vec<u8>, row: Row) {
    let mut batch = Batch::new();
    batch.upsert(key, row);
    store.commit(batch).await.unwrap();
}

async fn delete_partition(store: &Store, partition: &str, deletion: Deletion) {
    let mut batch = Batch::new();
    batch.put_partition_deletion(TABLE, TOKEN, partition.as_bytes(), deletion);
    store.commit(batch).await.unwrap();
}

/// Every row of the table as it is stored, by key.
async fn rows(store: &Store) -> Vec<(Vec<u8>, Row)> {
    let rows = entries(store, Space::Rows, &KeyRange::all(), Order::Forward, &store.snapshot()).await;
    let decoded = rows.into_iter().map(|(key, value)| (key, Row::decode(&value).unwrap()));
    decoded.collect()
}

async fn records(store: &Store) -> usize {
    let at = store.snapshot();
    entries(store, Space::Deletions, &KeyRange::all(), Order::Forward, &at)
        .await
        .len()
}

/// Two columns of every row, the static one and a range under deletions; one column is rewritten during a sweep. The
/// write is in the committer's queue before the sweep's changes, and after the sweep's read.
pub(super) async fn a_sweep_during_updates_restores_nothing(store: &Store) {
    const ROWS: u32 = 500;
    store.set_derivations(super::derived::of_tables([TABLE]));
    let all: Vec<Vec<u8>> = (0..ROWS)
        .flat_map(|n| [row_key("whole", n), row_key("range", n)])
        .chain([key::static_row_key(&prefix("whole"))])
        .collect();
    let mut batch = Batch::new();
    for key in &all {
        batch.upsert(key.clone(), row_of(&[cell(1, 5, "old a"), cell(2, 5, "old b")]));
    }
    batch.put_partition_deletion(TABLE, TOKEN, b"whole", DELETED);
    let range = RangeTombstone {
        start: Bound::Unbounded,
        end: Bound::Unbounded,
        deletion: DELETED,
    };
    batch.put_range_tombstone(TABLE, TOKEN, b"range", &range);
    store.commit(batch).await.unwrap();
    let update = async {
        for timestamp in 20..23 {
            let mut batch = Batch::new();
            for key in &all {
                batch.upsert(key.clone(), row_of(&[cell(1, timestamp, "new a")]));
            }
            store.commit(batch).await.unwrap();
        }
    };
    let ((), swept) = tokio::join!(update, finish(store, sweep()));
    // Whether the records are removed or not: no old cell is visible without one.
    for (key, mut row) in rows(store).await {
        let parsed = key::parse(&key).unwrap();
        let at = store.snapshot();
        let deletions = store.deletions(TABLE, TOKEN, &parsed.partition_key, &at).await.unwrap();
        let covered = match parsed.kind {
            key::RowKind::Static => deletions.timestamp_covering_static(),
            key::RowKind::Row => deletions.timestamp_covering(parsed.clustering),
        };
        if let Some(timestamp) = covered {
            row.shadow(timestamp);
        }
        assert_eq!(row.cells, [cell(1, 22, "new a")]);
    }
    let again = finish(store, sweep()).await;
    assert_eq!(swept.deletions_removed + again.deletions_removed, 2);
    assert_eq!((records(store).await, rows(store).await.len()), (0, all.len()));
    super::derived::check(store, &[TABLE], &store.snapshot()).await;
}

/// Writes with timestamps that the deletion covers arrive after the sweep has read the rows under it.
pub(super) async fn a_deletion_stays_while_older_writes_come(store: &Store) {
    delete_partition(store, "a", DELETED).await;
    delete_partition(store, "b", DELETED).await;
    let mut begun = sweep();
    // The rows, then the records: they are watched from here on.
    for _ in 0..2 {
        assert!(store.sweep_stride(&mut begun).await.unwrap().is_continue());
    }
    let late = upsert(store, row_key("a", 1), row_of(&[cell(1, DELETED.timestamp, "late")]));
    let newer = upsert(
        store,
        row_key("b", 1),
        row_of(&[cell(1, DELETED.timestamp + 1, "newer")]),
    );
    let ((), (), swept) = tokio::join!(late, newer, finish(store, begun));
    assert_eq!(swept.deletions_removed, 1, "of b only");
    let a = store.deletions(TABLE, TOKEN, b"a", &store.snapshot()).await.unwrap();
    assert_eq!(a.partition, Some(DELETED));
    assert_eq!(finish(store, sweep()).await.deletions_removed, 1);
    let left = rows(store).await;
    assert_eq!(left, [(row_key("b", 1), row_of(&[cell(1, 11, "newer")]))]);
}

/// The record that a sweep has carried out is merged with a newer one before its removal.
pub(super) async fn a_deletion_that_is_written_anew_stays(store: &Store) {
    let anew = Deletion {
        timestamp: 30,
        at_seconds: 99,
    };
    delete_partition(store, "a", DELETED).await;
    let mut begun = sweep();
    for _ in 0..2 {
        assert!(store.sweep_stride(&mut begun).await.unwrap().is_continue());
    }
    delete_partition(store, "a", anew).await;
    assert_eq!(finish(store, begun).await.deletions_removed, 0);
    assert_eq!(finish(store, sweep()).await.deletions_removed, 0);
    let a = store.deletions(TABLE, TOKEN, b"a", &store.snapshot()).await.unwrap();
    assert_eq!(a.partition, Some(anew));
}

/// A second sweep leaves the records to the first, and a sweep that is dropped leaves no state.
pub(super) async fn one_sweep_at_a_time_removes_deletions(store: &Store) {
    delete_partition(store, "a", DELETED).await;
    upsert(store, row_key("a", 1), row_of(&[cell(1, 5, "old")])).await;
    let mut begun = sweep();
    for _ in 0..2 {
        assert!(store.sweep_stride(&mut begun).await.unwrap().is_continue());
    }
    assert_eq!(finish(store, sweep()).await, Swept::default());
    assert_eq!(records(store).await, 1);
    drop(begun);
    assert_eq!(finish(store, sweep()).await.deletions_removed, 1);
    assert_eq!(records(store).await, 0);
}

/// More rows, partitions and records than one stride takes.
pub(super) async fn a_sweep_goes_on_stride_by_stride(store: &Store) {
    const PARTITIONS: u32 = 2500;
    let mut batch = Batch::new();
    for n in 0..PARTITIONS {
        let partition = n.to_string();
        batch.upsert(row_key(&partition, 1), row_of(&[cell(1, 5, "old")]));
        batch.upsert(row_key(&partition, 2), row_of(&[cell(1, 15, "new")]));
        batch.put_partition_deletion(TABLE, TOKEN, partition.as_bytes(), DELETED);
    }
    store.commit(batch).await.unwrap();
    let swept = finish(store, sweep()).await;
    let partitions = u64::from(PARTITIONS);
    assert_eq!((swept.rows_removed, swept.rows_shrunk), (partitions, 0));
    assert_eq!(swept.deletions_removed, partitions);
    let left = rows(store).await;
    assert_eq!(left.len(), PARTITIONS as usize);
    assert!(left.iter().all(|(_, row)| row.cells == [cell(1, 15, "new")]));
    assert_eq!(finish(store, sweep()).await, Swept::default());
}
