//! Puts of the log fail although the lease is held: reads go on, writes are refused, and what was written lands later.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use slatedb::object_store::memory::InMemory;

use super::bucket_tests::{Network, delete, fill, left, open_with, put, until};
use super::*;
use crate::storage::bucket::Logs;
use crate::storage::{Durability, Options};

/// So long that it is held on a busy machine too.
const LEASE: Duration = Duration::from_secs(20);

async fn open(logs: Logs, durability: Durability) -> (Arc<Network>, Store) {
    let network = Network::to(&Arc::new(InMemory::new()), logs);
    let options = Options {
        durability,
        ..Options::default()
    };
    let store = open_with(&network, "first", LEASE, options).await.unwrap();
    (network, store)
}

/// Makes puts of the log fail, or succeed again.
fn fail_log(network: &Network, fails: bool) {
    network.refuses_log.store(fails, Ordering::SeqCst);
}

async fn has(store: &Store, key: &str) -> bool {
    let published = store.snapshot().expect("reads go on");
    let found = published.get(Space::Catalog, key.as_bytes()).await;
    found.expect("reads go on").is_some()
}

async fn reads_go_on(logs: Logs) {
    let (network, store) = open(logs, Durability::Group).await;
    put(&store, "a").await.unwrap();
    let opening = store.opening();
    fail_log(&network, true);
    let late = tokio::time::timeout(Duration::from_secs(15), put(&store, "b"));
    assert!(late.await.expect("it is answered in time").is_err());
    let refused = tokio::time::timeout(Duration::from_secs(2), put(&store, "c"));
    assert!(refused.await.expect("later ones do not wait").is_err());
    for _ in 0..50 {
        assert!(has(&store, "a").await && !has(&store, "b").await, "as published");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    fail_log(&network, false);
    let back = until("it takes writes", async || put(&store, "d").await.is_ok());
    tokio::time::timeout(Duration::from_secs(5), back).await.unwrap();
    assert!(has(&store, "a").await && has(&store, "d").await);
    assert!(has(&store, "b").await, "the late write took effect");
    assert!(!has(&store, "c").await, "it was not written");
    // What was read before may not decide any more.
    let mut batch = Batch::new();
    batch.put(Space::Catalog, b"e".to_vec(), "1");
    batch.only_in(opening);
    assert!(matches!(store.commit(batch).await, Err(Error::OpenedAgain)));
    store.close().await.unwrap();
}

/// More groups than may be in flight: those behind them are answered too.
#[tokio::test(flavor = "multi_thread")]
async fn every_write_is_answered_however_many_are_in_flight() {
    let (network, store) = open(Logs::Shared, Durability::Group).await;
    fail_log(&network, true);
    let mut writes = Vec::new();
    for number in 0..400 {
        let store = store.clone();
        writes.push(tokio::spawn(async move { put(&store, &number.to_string()).await }));
        // So that each of them is a group of its own.
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    let answered = tokio::time::timeout(Duration::from_secs(15), futures::future::join_all(writes));
    let answered = answered.await.expect("all are answered in time");
    assert!(answered.into_iter().all(|one| one.unwrap().is_err()));
    let refused = tokio::time::timeout(Duration::from_secs(2), put(&store, "later"));
    assert!(refused.await.expect("later ones do not wait").is_err());
    let closed = tokio::time::timeout(Duration::from_secs(10), store.close());
    closed.await.expect("it does not wait for the bucket").unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_go_on_while_puts_of_the_log_fail() {
    futures::join!(reads_go_on(Logs::Own), reads_go_on(Logs::Shared));
}

async fn a_range_is_deleted_late(logs: Logs) {
    let (network, store) = open(logs, Durability::Group).await;
    fill(&store).await;
    let keys = left(&store).await;
    fail_log(&network, true);
    assert!(delete(&store).await.unwrap().is_err());
    assert_eq!(left(&store).await, keys, "as published");
    fail_log(&network, false);
    until("the range is empty", async || left(&store).await == Some(0)).await;
    assert!(has(&store, "with it").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_that_failed_late_is_finished_without_another_opening() {
    futures::join!(
        a_range_is_deleted_late(Logs::Own),
        a_range_is_deleted_late(Logs::Shared)
    );
}

async fn acknowledged_writes_stay(logs: Logs) {
    let (network, store) = open(logs, Durability::Periodic(Duration::from_millis(50))).await;
    put(&store, "a").await.unwrap();
    fail_log(&network, true);
    put(&store, "b").await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let late = tokio::time::timeout(Duration::from_secs(15), put(&store, "c"));
    assert!(late.await.expect("it is answered in time").is_err());
    assert!(has(&store, "a").await && has(&store, "b").await);
    fail_log(&network, false);
    let back = until("it takes writes", async || put(&store, "d").await.is_ok());
    tokio::time::timeout(Duration::from_secs(5), back).await.unwrap();
    assert!(has(&store, "b").await && has(&store, "d").await);
    // It is closed while the log fails, and waits for what was acknowledged.
    fail_log(&network, true);
    put(&store, "e").await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let late = tokio::time::timeout(Duration::from_secs(15), put(&store, "f"));
    assert!(late.await.expect("it is answered in time").is_err());
    let (closed, ()) = futures::join!(store.close(), async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        fail_log(&network, false);
    });
    closed.unwrap();
    let store = open_with(&network, "second", LEASE, Options::default()).await.unwrap();
    assert!(has(&store, "e").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_that_were_acknowledged_before_the_log_has_them_stay_readable() {
    futures::join!(
        acknowledged_writes_stay(Logs::Own),
        acknowledged_writes_stay(Logs::Shared)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_closes_while_puts_of_its_log_fail() {
    let (network, store) = open(Logs::Shared, Durability::Group).await;
    put(&store, "a").await.unwrap();
    fail_log(&network, true);
    assert!(put(&store, "b").await.is_err());
    let closed = tokio::time::timeout(Duration::from_secs(10), store.close());
    closed.await.expect("it does not wait for the bucket").unwrap();
    fail_log(&network, false);
    let store = open_with(&network, "second", LEASE, Options::default()).await.unwrap();
    assert!(has(&store, "a").await);
    put(&store, "c").await.unwrap();
}
