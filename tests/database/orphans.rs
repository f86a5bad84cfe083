//! What a store holds besides the tables of its schema: the next start removes it, and nothing else.

#![expect(clippy::unwrap_used, reason = "a test says no better what went wrong")]

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use crate::support::{Client, raw_store};
use helenus_storage::storage::{Batch, KeyRange, Order, Space, Store};

const SPACES: [Space; 3] = [Space::Rows, Space::Deletions, Space::Indexes];

async fn opened(path: &Path) -> Client {
    // The raw store has let go of the directory when it can be opened again.
    drop(raw_store(path).await.close().await);
    let mut client = Client::open(&format!("file:{}", path.display())).await;
    client.session.keyspace = Some("ks".into());
    client
}

/// All entries of a space.
async fn entries(store: &Store, space: Space) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    let visit = |key: &[u8], value: &[u8]| {
        found.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    };
    let (all, at) = (KeyRange::all(), store.snapshot());
    store.scan(space, &all, Order::Forward, &at, visit).await.unwrap();
    found
}

/// The numbers of which each space has keys, without repeats.
async fn numbers(store: &Store) -> Vec<Vec<u32>> {
    let mut all = Vec::new();
    for space in SPACES {
        let keys = entries(store, space).await.into_iter();
        let mut numbers: Vec<u32> = keys
            .filter_map(|(key, _)| Some(u32::from_be_bytes(*key.first_chunk()?)))
            .collect();
        numbers.dedup();
        all.push(numbers);
    }
    all
}

/// Puts a copy of each entry of a number under another one.
async fn copy(store: &Store, from: u32, to: u32) {
    for space in SPACES {
        let mut batch = Batch::new();
        for (key, value) in entries(store, space).await {
            if let Some(rest) = key.strip_prefix(&from.to_be_bytes()) {
                batch.put(space, [&to.to_be_bytes(), rest].concat(), value);
            }
        }
        store.commit(batch).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_removes_numbers_without_a_table_and_ranges_of_other_stores() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let client = Client::with_keyspace(&format!("file:{}", path.display())).await;
    client
        .ok("CREATE TABLE t (k int, c int, v int, PRIMARY KEY (k, c)) WITH helenus_partitions = 2")
        .await;
    client.ok("CREATE INDEX ON t (v)").await;
    client.ok("CREATE TABLE dropped (k int PRIMARY KEY)").await;
    for k in 0..40 {
        client
            .ok(&format!("INSERT INTO t (k, c, v) VALUES ({k}, 1, {k})"))
            .await;
        client.ok(&format!("DELETE FROM t WHERE k = {k} AND c > 5")).await;
    }
    let before = client.rows("SELECT k, c, v FROM t").await;
    drop(client);
    let store = raw_store(path).await;
    let kept = numbers(&store).await;
    let table = *kept.first().and_then(|of_rows| of_rows.first()).unwrap();
    let index = *kept.get(2).and_then(|of_indexes| of_indexes.first()).unwrap();
    let all = entries(&store, Space::Rows).await;
    store.close().await.unwrap();

    // What DROP, an interrupted restore or an older program may have left; and numbers that no table had yet.
    let client = opened(path).await;
    client.ok("DROP TABLE dropped").await;
    client.ok("ALTER TABLE t WITH helenus_lift = 1").await;
    assert_eq!(client.rows("SELECT k, c, v FROM t").await, before);
    drop(client);
    let beside = raw_store(&path.join("stores/1")).await;
    let of_table = all.len() - entries(&beside, Space::Rows).await.len();
    beside.close().await.unwrap();
    let store = raw_store(path).await;
    let (dropped, future) = (index + 1, index + 1000);
    copy(&store, table, dropped).await;
    copy(&store, table, future).await;
    copy(&store, index, dropped).await;
    let mut batch = Batch::new();
    for (key, value) in all {
        // The rows of the lifted partition, which are in another store now, among them.
        batch.put(Space::Rows, key, value);
    }
    batch.put(
        Space::Catalog,
        [b"!garbage".as_slice(), &table.to_be_bytes()].concat(),
        "",
    );
    batch.put(Space::Catalog, [b"!moved".as_slice(), &[0; 24]].concat(), "");
    store.commit(batch).await.unwrap();
    store.close().await.unwrap();

    let mut tries = 0;
    loop {
        let client = opened(path).await;
        assert_eq!(client.rows("SELECT k, c, v FROM t").await, before);
        assert_eq!(client.rows("SELECT k FROM t WHERE v = 7").await.len(), 1);
        tokio::time::sleep(Duration::from_millis(20)).await;
        drop(client);
        let store = raw_store(path).await;
        let (now, left) = (numbers(&store).await, entries(&store, Space::Rows).await.len());
        let records = entries(&store, Space::Catalog).await;
        store.close().await.unwrap();
        let is_retired = |key: &[u8]| key.starts_with(b"!garbage") || key.starts_with(b"!moved");
        assert!(!records.iter().any(|(key, _)| is_retired(key)));
        if now == [vec![table, future], vec![table, future], vec![index]] && left == 2 * of_table {
            return;
        }
        tries += 1;
        assert!(tries < 50, "{now:?}, {left} rows");
    }
}
