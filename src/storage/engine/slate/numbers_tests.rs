//! Numbers of the published states: the row cache relies on them.

use std::sync::Arc;
use std::time::Duration;

use slatedb::object_store::memory::InMemory;

use super::bucket_tests::{Link, Network, open, put, until};
use super::*;
use crate::storage::bucket::Logs;

/// Groups that are lost with one failure.
const LOST: usize = 20;

async fn put_row(store: &Store, value: &'static str) -> Result<CommitSeq> {
    let mut batch = Batch::new();
    batch.put(Space::Rows, b"row".to_vec(), value);
    store.commit(batch).await
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_rise_after_groups_were_lost_and_no_stale_row_stays_in_the_cache() {
    let network = Network::to(&Arc::new(InMemory::new()), Logs::Shared);
    let store = open(&network, "first").await.unwrap();
    put_row(&store, "0").await.unwrap();
    let before_loss = store.snapshot().unwrap().seq;
    network.set(Link::Held);
    let mut lost = Vec::new();
    for number in 0..LOST {
        let store = store.clone();
        lost.push(tokio::spawn(
            async move { put(&store, &format!("lost {number}")).await },
        ));
        // So that each of them is a group of its own.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    network.set(Link::Down);
    for put in lost {
        put.await.unwrap().unwrap_err();
    }
    network.set(Link::Good);
    until("it takes writes again", async || put(&store, "back").await.is_ok()).await;
    assert!(store.snapshot().unwrap().seq > before_loss);
    for value in ["1", "2", "3", "4", "5"] {
        let before = store.snapshot().unwrap();
        put_row(&store, value).await.unwrap();
        let after = store.snapshot().unwrap();
        assert!(after.seq > before.seq, "{value}");
        // A slow reader of the state before puts what it finds into the cache, if it may.
        before.get_row(b"row", store.cache()).await.unwrap();
        let found = after.get_row(b"row", store.cache()).await.unwrap();
        assert_eq!(found.as_deref(), Some(value.as_bytes()));
    }
}
