//! Behaviour common to every engine.

use std::ops::Bound;

use super::*;

/// Makes a test of each function for each engine, every time with a fresh store.
macro_rules! on_each_engine {
    ($($name:ident),* $(,)?) => {
        on_each_engine!(@engine memory, "memory", $($name),*);
        on_each_engine!(@engine file, "file", $($name),*);
        #[cfg(feature = "slate")]
        on_each_engine!(@engine slate_file, "slate+file", $($name),*);
        #[cfg(feature = "slate")]
        on_each_engine!(@engine slate_memory, "slate+memory", $($name),*);
        // Of `compat/bucket/with`; without it these are the tests of `slate+memory` again.
        #[cfg(feature = "slate")]
        on_each_engine!(@engine bucket, "bucket", $($name),*);
    };
    (@engine $engine:ident, $scheme:literal, $($name:ident),*) => {
        mod $engine {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let place = super::Place::new($scheme);
                let store = place.open().await;
                super::$name(&store).await;
                store.close().await.unwrap();
            })*
        }
    };
}

on_each_engine!(
    puts_and_deletes,
    spaces_do_not_meet,
    scans_in_order_within_bounds,
    scans_of_many_entries_go_on,
    a_batch_is_one_moment,
    snapshots_do_not_change,
    partial_rows_merge,
    changes_of_a_batch_follow_each_other,
    partition_deletions_and_range_tombstones,
    ranges_are_deleted,
    sizes_are_kept,
    invisible_data_is_swept,
    a_sweep_spares_what_was_written_meanwhile,
    a_sweep_during_updates_restores_nothing,
    a_deletion_stays_while_older_writes_come,
    a_deletion_that_is_written_anew_stays,
    one_sweep_at_a_time_removes_deletions,
    a_sweep_goes_on_stride_by_stride,
    refused_batches_change_nothing,
    longer_keys_are_found_nowhere,
    many_writers_lose_nothing,
    reads_follow_writes,
    a_new_index_fills_while_writers_go_on,
    an_index_that_goes_leaves_the_others,
    a_damaged_row_refuses_its_batch_only,
);

use super::derived::{a_new_index_fills_while_writers_go_on, an_index_that_goes_leaves_the_others};
use super::sweeps::{
    a_deletion_stays_while_older_writes_come, a_deletion_that_is_written_anew_stays,
    a_sweep_during_updates_restores_nothing, a_sweep_goes_on_stride_by_stride, one_sweep_at_a_time_removes_deletions,
};

async fn puts_and_deletes(store: &Store) {
    put(store, Space::Catalog, &[("a", "1"), ("b", "2")]).await;
    put(store, Space::Catalog, &[("a", "3")]).await;
    let mut batch = Batch::new();
    batch.delete(Space::Catalog, b"b".to_vec());
    batch.delete(Space::Catalog, b"never".to_vec());
    store.commit(batch).await.unwrap();
    assert_eq!(get(store, Space::Catalog, "a").await.as_deref(), Some("3"));
    assert_eq!(get(store, Space::Catalog, "b").await, None);
    put(store, Space::Catalog, &[("", "of the empty key")]).await;
    assert_eq!(
        keys(store, Space::Catalog, &KeyRange::all(), Order::Forward).await,
        " a"
    );
    assert!(store.commit(Batch::new()).await.is_ok());
}

async fn spaces_do_not_meet(store: &Store) {
    for space in [Space::Rows, Space::Indexes, Space::Feed, Space::Catalog] {
        let mut batch = Batch::new();
        batch.put(space, vec![0, 0, 0, 1], format!("{space:?}").into_bytes());
        batch.put(space, vec![0xFF; 9], format!("last of {space:?}").into_bytes());
        store.commit(batch).await.unwrap();
    }
    for space in [Space::Rows, Space::Indexes, Space::Feed, Space::Catalog] {
        for order in [Order::Forward, Order::Reverse] {
            let found = entries(store, space, &KeyRange::all(), order, &store.snapshot()).await;
            assert_eq!(found.len(), 2, "{space:?}");
            assert!(
                found
                    .iter()
                    .all(|(_, value)| value.ends_with(format!("{space:?}").as_bytes()))
            );
        }
    }
}

async fn scans_in_order_within_bounds(store: &Store) {
    put(
        store,
        Space::Feed,
        &[("b", ""), ("d", ""), ("a", ""), ("c", ""), ("cc", "")],
    )
    .await;
    let range = |start, end| {
        let own = |bound: Bound<&str>| bound.map(|text| text.as_bytes().to_vec());
        KeyRange {
            start: own(start),
            end: own(end),
        }
    };
    use Bound::{Excluded, Included, Unbounded};
    for (range, expected) in [
        (KeyRange::all(), "a b c cc d"),
        (KeyRange::prefix(b"c"), "c cc"),
        (range(Included("b"), Excluded("cc")), "b c"),
        (range(Excluded("b"), Included("cc")), "c cc"),
        (range(Unbounded, Excluded("a")), ""),
        (range(Excluded("d"), Unbounded), ""),
        (range(Included("c"), Included("c")), "c"),
        (range(Excluded("c"), Excluded("c")), ""),
        (range(Included("d"), Included("a")), ""),
    ] {
        assert_eq!(
            keys(store, Space::Feed, &range, Order::Forward).await,
            expected,
            "{range:?}"
        );
        let reversed: Vec<_> = expected.split(' ').rev().collect();
        assert_eq!(
            keys(store, Space::Feed, &range, Order::Reverse).await,
            reversed.join(" "),
            "{range:?}"
        );
    }
    let mut visited = 0;
    let visit = |_: &[u8], _: &[u8]| {
        visited += 1;
        if visited == 2 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    store
        .scan(Space::Feed, &KeyRange::all(), Order::Forward, &store.snapshot(), visit)
        .await
        .unwrap();
    assert_eq!(visited, 2);
}

async fn scans_of_many_entries_go_on(store: &Store) {
    let mut batch = Batch::new();
    for n in 0_u32..10_000 {
        batch.put(Space::Indexes, n.to_be_bytes().to_vec(), n.to_string().into_bytes());
    }
    store.commit(batch).await.unwrap();
    let range = KeyRange {
        start: Bound::Excluded(7_u32.to_be_bytes().to_vec()),
        end: Bound::Unbounded,
    };
    for order in [Order::Forward, Order::Reverse] {
        let mut found = entries(store, Space::Indexes, &range, order, &store.snapshot()).await;
        if order == Order::Reverse {
            found.reverse();
        }
        assert_eq!(found.len(), 9_992);
        assert!(found.iter().zip(8_u32..).all(|((key, _), n)| *key == n.to_be_bytes()));
    }
}

async fn a_batch_is_one_moment(store: &Store) {
    let mut batch = Batch::new();
    batch.put(Space::Catalog, b"a".to_vec(), "0");
    batch.put(Space::Indexes, b"a".to_vec(), "0");
    store.commit(batch).await.unwrap();
    let writer = {
        let store = store.clone();
        tokio::spawn(async move {
            for n in 1..200 {
                let mut batch = Batch::new();
                batch.put(Space::Catalog, b"a".to_vec(), n.to_string());
                batch.put(Space::Indexes, b"a".to_vec(), n.to_string());
                store.commit(batch).await.unwrap();
            }
        })
    };
    while !writer.is_finished() {
        let at = store.snapshot();
        let one = store.get(Space::Catalog, b"a", &at).await.unwrap();
        assert_eq!(one, store.get(Space::Indexes, b"a", &at).await.unwrap());
        tokio::task::yield_now().await;
    }
    writer.await.unwrap();
    assert_eq!(get(store, Space::Catalog, "a").await.as_deref(), Some("199"));
}

async fn snapshots_do_not_change(store: &Store) {
    let key = key_of(1, "k", "c");
    let before = store.snapshot();
    let mut seqs = vec![before.seq()];
    for timestamp in 1..=3 {
        let mut batch = Batch::new();
        batch.upsert(key.clone(), row_of(&[cell(1, timestamp, "v")]));
        batch.put_partition_deletion(
            7,
            0,
            b"k",
            Deletion {
                timestamp,
                at_seconds: 0,
            },
        );
        let seq = store.commit(batch).await.unwrap();
        assert_eq!(store.snapshot().seq(), seq);
        seqs.push(seq);
    }
    assert!(seqs.is_sorted_by(|a, b| a < b));
    // With and without the cache: the newest value is read first, so that a stale cache could return it.
    assert!(store.get(Space::Rows, &key, &store.snapshot()).await.unwrap().is_some());
    assert_eq!(store.get(Space::Rows, &key, &before).await.unwrap(), None);
    assert!(
        entries(store, Space::Rows, &KeyRange::all(), Order::Forward, &before)
            .await
            .is_empty()
    );
    assert!(!before.has_deletions(7) && store.snapshot().has_deletions(7));
    assert!(store.deletions(7, 0, b"k", &before).await.unwrap().is_empty());
}

async fn read_row(store: &Store, key: &[u8]) -> Option<Row> {
    let at = store.snapshot();
    let value = store.get(Space::Rows, key, &at).await.unwrap();
    let mut scanned = entries(store, Space::Rows, &KeyRange::prefix(key), Order::Forward, &at).await;
    scanned.retain(|(found, _)| found == key);
    let decoded = value.map(|value| Row::decode(&value).unwrap());
    assert_eq!(
        scanned.first().map(|(_, value)| Row::decode(value).unwrap()),
        decoded,
        "scan and get agree"
    );
    decoded
}

async fn upsert(store: &Store, key: &[u8], row: Row) {
    let mut batch = Batch::new();
    batch.upsert(key.to_vec(), row);
    store.commit(batch).await.unwrap();
}

async fn partial_rows_merge(store: &Store) {
    let key = key_of(1, "k", "c");
    assert_eq!(read_row(store, &key).await, None);
    upsert(store, &key, row_of(&[cell(1, 5, "a"), cell(2, 5, "b")])).await;
    upsert(store, &key, row_of(&[cell(2, 4, "older"), cell(3, 6, "c")])).await;
    assert_eq!(
        read_row(store, &key).await,
        Some(row_of(&[cell(1, 5, "a"), cell(2, 5, "b"), cell(3, 6, "c")]))
    );
    let deletion = Some(Deletion {
        timestamp: 5,
        at_seconds: 9,
    });
    upsert(
        store,
        &key,
        Row {
            deletion,
            ..Row::default()
        },
    )
    .await;
    assert_eq!(
        read_row(store, &key).await,
        Some(Row {
            deletion,
            ..row_of(&[cell(3, 6, "c")])
        })
    );
    upsert(store, &key, row_of(&[cell(1, 5, "shadowed")])).await;
    assert_eq!(read_row(store, &key).await.unwrap().cells.len(), 1);
    let mut batch = Batch::new();
    batch.put(Space::Rows, key.clone(), row_of(&[cell(9, 1, "put")]).encode());
    store.commit(batch).await.unwrap();
    upsert(store, &key, row_of(&[cell(8, 1, "merged")])).await;
    assert_eq!(
        read_row(store, &key).await,
        Some(row_of(&[cell(8, 1, "merged"), cell(9, 1, "put")]))
    );
}

async fn changes_of_a_batch_follow_each_other(store: &Store) {
    let key = key_of(1, "k", "c");
    upsert(store, &key, row_of(&[cell(1, 1, "before")])).await;
    let mut batch = Batch::new();
    batch.upsert(key.clone(), row_of(&[cell(2, 1, "gone")]));
    batch.delete(Space::Rows, key.clone());
    batch.upsert(key.clone(), row_of(&[cell(3, 1, "x")]));
    batch.upsert(key.clone(), row_of(&[cell(4, 1, "y")]));
    batch.put(Space::Catalog, b"n".to_vec(), "1");
    batch.put(Space::Catalog, b"n".to_vec(), "2");
    store.commit(batch).await.unwrap();
    assert_eq!(
        read_row(store, &key).await,
        Some(row_of(&[cell(3, 1, "x"), cell(4, 1, "y")]))
    );
    assert_eq!(get(store, Space::Catalog, "n").await.as_deref(), Some("2"));
}

async fn partition_deletions_and_range_tombstones(store: &Store) {
    let at = |timestamp| Deletion {
        timestamp,
        at_seconds: 1,
    };
    let range = |start: &str, end: &str, timestamp| RangeTombstone {
        start: Bound::Included(start.as_bytes().to_vec()),
        end: Bound::Excluded(end.as_bytes().to_vec()),
        deletion: at(timestamp),
    };
    assert!(!store.snapshot().has_deletions(1));
    let mut batch = Batch::new();
    batch.put_partition_deletion(1, 5, b"k", at(3));
    batch.put_range_tombstone(1, 5, b"k", range("b", "d", 9));
    batch.put_range_tombstone(1, 5, b"k", range("c", "z", 4));
    batch.put_range_tombstone(1, 5, b"other", range("a", "z", 99));
    store.commit(batch).await.unwrap();
    let mut batch = Batch::new();
    batch.put_partition_deletion(1, 5, b"k", at(2));
    batch.put_range_tombstone(1, 5, b"k", range("b", "d", 5));
    store.commit(batch).await.unwrap();
    let now = store.snapshot();
    let deletions = store.deletions(1, 5, b"k", &now).await.unwrap();
    assert_eq!(deletions.partition, Some(at(3)));
    let mut ranges = deletions.ranges.clone();
    ranges.sort_by_key(|range| range.deletion);
    assert_eq!(ranges, [range("c", "z", 4), range("b", "d", 9)]);
    assert_eq!(deletions.timestamp_covering(b"c"), Some(9));
    assert!(store.deletions(1, 5, b"unheard", &now).await.unwrap().is_empty());
    assert!(store.deletions(2, 5, b"k", &now).await.unwrap().is_empty());
    assert!(now.has_deletions(1) && !now.has_deletions(2));
}

async fn ranges_are_deleted(store: &Store) {
    let mut batch = Batch::new();
    for n in 0_u32..9_000 {
        let prefix = key::partition_prefix(1 + n % 3, i64::from(n) - 4_000, &n.to_be_bytes());
        batch.upsert(key::row_key(&prefix, b""), row_of(&[cell(1, 1, "v")]));
    }
    batch.put_partition_deletion(
        1,
        0,
        b"k",
        Deletion {
            timestamp: 1,
            at_seconds: 1,
        },
    );
    batch.put_partition_deletion(
        2,
        0,
        b"k",
        Deletion {
            timestamp: 1,
            at_seconds: 1,
        },
    );
    store.commit(batch).await.unwrap();
    let mut batch = Batch::new();
    batch.delete_range(Space::Rows, key::table_range(2));
    batch.delete_range(Space::Deletions, key::table_range(2));
    batch.delete_range(
        Space::Rows,
        KeyRange {
            start: Bound::Included(vec![9]),
            end: Bound::Included(vec![8]),
        },
    );
    batch.put(Space::Catalog, b"with it".to_vec(), "yes");
    store.commit(batch).await.unwrap();
    let now = store.snapshot();
    for (table, rows) in [(1, 3_000), (2, 0), (3, 3_000)] {
        let found = entries(store, Space::Rows, &key::table_range(table), Order::Forward, &now).await;
        assert_eq!(found.len(), rows, "table {table}");
        assert_eq!(now.has_deletions(table), table == 1);
    }
    assert_eq!(get(store, Space::Catalog, "with it").await.as_deref(), Some("yes"));
    upsert(store, &key_of(2, "again", ""), row_of(&[cell(1, 1, "v")])).await;
    assert_eq!(
        entries(
            store,
            Space::Rows,
            &key::table_range(2),
            Order::Forward,
            &store.snapshot()
        )
        .await
        .len(),
        1
    );
}

async fn sizes_are_kept(store: &Store) {
    if !store.bytes_in(&KeyRange::all()).is_exact {
        // An engine that does not read what it overwrites cannot count exactly; it knows the sizes once tables are
        // written.
        let mut batch = Batch::new();
        batch.put(Space::Rows, key_of(4, "k", ""), vec![7; 100_000]);
        store.commit(batch).await.unwrap();
        store.flush().await.unwrap();
        assert!(store.bytes_in(&key::table_range(4)).bytes >= 100_000);
        // The store's own records lie after all tables.
        assert_eq!(store.bytes_in(&key::table_range(3)).bytes, 0);
        return;
    }
    let key = key_of(4, "k", "c");
    for value in ["v", "longer"] {
        let mut batch = Batch::new();
        batch.put(Space::Rows, key.clone(), value);
        store.commit(batch).await.unwrap();
        let bytes = (key.len() + value.len()) as u64;
        assert_eq!(
            store.bytes_in(&key::table_range(4)),
            Estimate {
                bytes,
                rows: 1,
                is_exact: true
            }
        );
    }
    assert_eq!(store.bytes_in(&key::table_range(5)).rows, 0);
    let mut batch = Batch::new();
    batch.delete(Space::Rows, key.clone());
    store.commit(batch).await.unwrap();
    assert_eq!(store.bytes_in(&key::table_range(4)).bytes, 0);
}

#[expect(
    clippy::too_many_lines,
    reason = "one story: each sweep stands on what the one before left"
)]
async fn invisible_data_is_swept(store: &Store) {
    let prefix = key::partition_prefix(1, 5, b"k");
    let row_key = |clustering: &str| key::row_key(&prefix, clustering.as_bytes());
    let gone = |at_seconds| CellState::Live {
        value: Bytes::from_static(b"v"),
        expiry: Some(Expiry {
            at_seconds,
            ttl_seconds: 10,
        }),
    };
    let mut batch = Batch::new();
    batch.upsert(key::static_row_key(&prefix), row_of(&[cell(1, 5, "static")]));
    batch.upsert(row_key("a"), row_of(&[cell(1, 5, "kept")]));
    batch.upsert(row_key("b"), row_of(&[cell(1, 5, "hidden")]));
    batch.upsert(row_key("c"), row_of(&[cell(1, 5, "hidden"), cell(2, 99, "kept")]));
    batch.upsert(
        row_key("d"),
        row_of(&[Cell {
            state: gone(20),
            ..cell(1, 99, "")
        }]),
    );
    batch.upsert(
        row_key("e"),
        row_of(&[Cell {
            state: gone(200),
            ..cell(1, 99, "")
        }]),
    );
    batch.upsert(
        row_key("f"),
        Row {
            deletion: Some(Deletion {
                timestamp: 9,
                at_seconds: 10,
            }),
            ..Row::default()
        },
    );
    batch.upsert(
        row_key("g"),
        Row {
            deletion: Some(Deletion {
                timestamp: 9,
                at_seconds: 90,
            }),
            ..Row::default()
        },
    );
    let range = |start: &str, end: &str, at_seconds| RangeTombstone {
        start: Bound::Included(start.as_bytes().to_vec()),
        end: Bound::Included(end.as_bytes().to_vec()),
        deletion: Deletion {
            timestamp: 9,
            at_seconds,
        },
    };
    batch.put_range_tombstone(1, 5, b"k", range("b", "c", 10));
    batch.put_range_tombstone(1, 5, b"k", range("x", "y", 90));
    batch.put_partition_deletion(
        1,
        6,
        b"other",
        Deletion {
            timestamp: 9,
            at_seconds: 10,
        },
    );
    store.commit(batch).await.unwrap();
    let swept = store.sweep(&key::table_range(1), 100, 50).await.unwrap();
    // b is hidden, d expired with its grace over, f was deleted long ago.
    assert_eq!(
        (swept.rows_removed, swept.rows_shrunk, swept.deletions_removed),
        (3, 1, 2)
    );
    let now = store.snapshot();
    let rows = entries(store, Space::Rows, &KeyRange::all(), Order::Forward, &now).await;
    let left: Vec<_> = rows
        .iter()
        .map(|(key, _)| key::parse(key).unwrap().clustering.to_vec())
        .collect();
    assert_eq!(left, [&b""[..], b"a", b"c", b"e", b"g"]);
    assert_eq!(
        read_row(store, &row_key("c")).await,
        Some(row_of(&[cell(2, 99, "kept")]))
    );
    let deletions = store.deletions(1, 5, b"k", &now).await.unwrap();
    assert_eq!(deletions.ranges, [range("x", "y", 90)]);
    assert_eq!(
        store.sweep(&key::table_range(1), 100, 50).await.unwrap(),
        Swept::default()
    );
}

async fn a_sweep_spares_what_was_written_meanwhile(store: &Store) {
    let keys: Vec<_> = (0..300).map(|n| key_of(1, &n.to_string(), "")).collect();
    let old = Row {
        deletion: Some(Deletion {
            timestamp: 1,
            at_seconds: 1,
        }),
        ..Row::default()
    };
    let mut batch = Batch::new();
    for key in &keys {
        batch.upsert(key.clone(), &old);
    }
    store.commit(batch).await.unwrap();
    let writer = {
        let (store, keys) = (store.clone(), keys.clone());
        tokio::spawn(async move {
            for key in &keys {
                upsert(&store, key, row_of(&[cell(1, 5, "v")])).await;
            }
        })
    };
    for _ in 0..5 {
        store.sweep(&key::table_range(1), 100, 50).await.unwrap();
    }
    writer.await.unwrap();
    for key in &keys {
        assert_eq!(read_row(store, key).await.unwrap().cells, [cell(1, 5, "v")]);
    }
}

async fn refused_batches_change_nothing(store: &Store) {
    let mut batch = Batch::new();
    batch.put(Space::Catalog, b"a".to_vec(), "1");
    batch.put(Space::Catalog, vec![1; KEY_BYTES_MAX + 1], "2");
    assert!(matches!(store.commit(batch).await, Err(Error::KeyTooLarge { .. })));
    assert_eq!(get(store, Space::Catalog, "a").await, None);
    let mut batch = Batch::new();
    batch.put(Space::Catalog, vec![1; KEY_BYTES_MAX], "2");
    store.commit(batch).await.unwrap();
    assert!(
        store
            .get(Space::Catalog, &[1; KEY_BYTES_MAX], &store.snapshot())
            .await
            .unwrap()
            .is_some()
    );
}

/// A key longer than any stored one is never found, and is valid as a bound.
async fn longer_keys_are_found_nowhere(store: &Store) {
    let long = vec![7; KEY_BYTES_MAX];
    for key in [&[6][..], &long, &[8]] {
        let mut batch = Batch::new();
        batch.put(Space::Catalog, key.to_vec(), "1");
        store.commit(batch).await.unwrap();
    }
    let longer = vec![7; KEY_BYTES_MAX + 9];
    let at = store.snapshot();
    assert_eq!(store.get(Space::Catalog, &longer, &at).await.unwrap(), None);
    for (start, end, expected) in [
        (Bound::Unbounded, Bound::Included(longer.clone()), 2),
        (Bound::Unbounded, Bound::Excluded(longer.clone()), 2),
        (Bound::Included(longer.clone()), Bound::Unbounded, 1),
        (Bound::Excluded(longer.clone()), Bound::Unbounded, 1),
        (Bound::Included(longer.clone()), Bound::Included(longer.clone()), 0),
    ] {
        let range = KeyRange { start, end };
        for order in [Order::Forward, Order::Reverse] {
            let mut found = 0;
            let scanned = store.scan(Space::Catalog, &range, order, &at, |_, _| {
                found += 1;
                ControlFlow::Continue(())
            });
            scanned.await.unwrap();
            assert_eq!(found, expected, "{order:?}");
        }
    }
}

async fn many_writers_lose_nothing(store: &Store) {
    let writers: Vec<_> = (0_u32..16)
        .map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                for n in 0_u32..20 {
                    let mut batch = Batch::new();
                    let mine = Cell {
                        column: ColumnId(writer * 100 + n),
                        ..cell(0, 1, "v")
                    };
                    batch.upsert(key_of(1, "shared", ""), row_of(&[mine]));
                    batch.put(Space::Feed, [writer.to_be_bytes(), n.to_be_bytes()].concat(), "");
                    store.commit(batch).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let row = read_row(store, &key_of(1, "shared", "")).await.unwrap();
    assert_eq!(row.cells.len(), 16 * 20);
    let feed = entries(store, Space::Feed, &KeyRange::all(), Order::Forward, &store.snapshot()).await;
    assert_eq!(feed.len(), 16 * 20);
}

/// Each writer reads its own row after each write, while others evict, read and replace: the cache must never be stale.
async fn reads_follow_writes(store: &Store) {
    let tasks: Vec<_> = (0..8)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                let (mine, neighbour) = (key_of(1, &n.to_string(), ""), key_of(1, &((n + 1) % 8).to_string(), ""));
                let mut seen = 0;
                for timestamp in 1..40 {
                    upsert(&store, &mine, row_of(&[cell(1, timestamp, "v")])).await;
                    for _ in 0..3 {
                        let row = store.get(Space::Rows, &mine, &store.snapshot()).await.unwrap().unwrap();
                        assert_eq!(Row::decode(&row).unwrap().cells[0].timestamp, timestamp);
                        if let Some(row) = store.get(Space::Rows, &neighbour, &store.snapshot()).await.unwrap() {
                            let timestamp = Row::decode(&row).unwrap().cells[0].timestamp;
                            assert!(timestamp >= seen, "time went back");
                            seen = timestamp;
                        }
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

async fn a_damaged_row_refuses_its_batch_only(store: &Store) {
    let key = key_of(1, "k", "c");
    let mut batch = Batch::new();
    batch.put(Space::Rows, key.clone(), &[9_u8, 9, 9][..]);
    store.commit(batch).await.unwrap();
    let mut bad = Batch::new();
    bad.put(Space::Catalog, b"bad".to_vec(), "1");
    bad.upsert(key.clone(), row_of(&[cell(1, 1, "v")]));
    let mut good = Batch::new();
    good.put(Space::Catalog, b"good".to_vec(), "1");
    let (bad, good) = tokio::join!(store.commit(bad), store.commit(good));
    good.unwrap();
    assert_eq!(get(store, Space::Catalog, "good").await.as_deref(), Some("1"));
    if bad.is_err() {
        assert_eq!(get(store, Space::Catalog, "bad").await, None);
    } else {
        // An engine that merges when it reads keeps the damage until the row is read.
        let found = store.get(Space::Rows, &key, &store.snapshot()).await.unwrap().unwrap();
        assert!(Row::decode(&found).is_err());
    }
}

#[test]
fn futures_can_move_between_threads() {
    fn is_send<T: Send>(_: T) {}
    #[expect(dead_code, reason = "only its types matter")]
    async fn uses(store: Store, at: Snapshot) {
        is_send(store.get(Space::Rows, b"", &at));
        is_send(store.deletions(1, 0, b"", &at));
        is_send(store.scan(Space::Rows, &KeyRange::all(), Order::Forward, &at, |_, _| {
            ControlFlow::Continue(())
        }));
        is_send(store.commit(Batch::new()));
        is_send(store.close());
        is_send(Store::open(&Url::Memory, &Options::default(), Clock::system()));
    }
}
