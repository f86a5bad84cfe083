//! Several databases share a log while their bucket fails and their process ends: what was acknowledged is there, and
//! what was found missing stays missing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use slatedb::object_store::memory::InMemory;
use slatedb::object_store::path::Path;
use slatedb::object_store::{ObjectStore, ObjectStoreExt};

use futures::TryStreamExt;

use super::*;
use crate::storage::bucket::Logs;
use crate::storage::engine::slate::Store;
use crate::storage::engine::slate::bucket_tests::{Link, Network, answered, has, open, put, until};
use crate::storage::{Options, Result};

const STORES: usize = 3;

/// What is known of the keys of one store.
#[derive(Default)]
struct Model {
    next: u32,
    /// Whether a key exists; `None` means that its write was not confirmed.
    keys: BTreeMap<u32, Option<bool>>,
}

fn side_options() -> Options {
    Options {
        data_stores: Some(STORES),
        ..Options::default()
    }
}

async fn open_all(network: &Arc<Network>, name: &str) -> Vec<Store> {
    let mut main = open(network, name).await;
    // On a busy machine the lease of the process before may end late.
    for _ in 0..50 {
        if main.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        main = open(network, name).await;
    }
    let mut stores = vec![main.unwrap()];
    for number in 1..STORES {
        let side = stores[0].open_side(format!("stores/{number}"), &side_options()).await;
        stores.push(side.unwrap());
    }
    stores
}

fn key(number: u32) -> String {
    format!("key {number:08}")
}

/// Writes keys one after the other until the time is over.
async fn write(store: &Store, model: &mut Model, until: tokio::time::Instant) {
    while tokio::time::Instant::now() < until {
        let number = model.next;
        model.next += 1;
        let put = tokio::time::timeout(Duration::from_millis(400), put(store, &key(number))).await;
        model.keys.insert(number, matches!(put, Ok(Ok(_))).then_some(true));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn check(stores: &[Store], models: &mut [Model], when: &str) {
    for (number, (store, model)) in stores.iter().zip(models).enumerate() {
        for (key_number, known) in &mut model.keys {
            let found = answered(store, &key(*key_number)).await;
            assert!(
                known.is_none_or(|known| known == found),
                "{when}, store {number}, key {key_number}: found is {found}, known {known:?}"
            );
            *known = Some(found);
        }
    }
}

async fn stormy(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let bucket = Arc::new(InMemory::new());
    let mut models: Vec<_> = (0..STORES).map(|_| Model::default()).collect();
    for round in 0..6 {
        let network = Network::to(&bucket, Logs::Shared);
        let stores = open_all(&network, &format!("process {round}")).await;
        check(&stores, &mut models, &format!("seed {seed}, round {round}")).await;
        let over = tokio::time::Instant::now() + Duration::from_millis(random.u64(200..900));
        let weather = async {
            while tokio::time::Instant::now() < over {
                let (link, length) = match random.u32(0..6) {
                    0 => (Link::Down, random.u64(1..200)),
                    1 => (Link::Deaf, random.u64(1..60)),
                    2 | 3 => (Link::Held, random.u64(1..60)),
                    _ => (Link::Good, random.u64(1..100)),
                };
                network.set(link);
                tokio::time::sleep(Duration::from_millis(length)).await;
                network.set(Link::Good);
                if random.u32(0..4) == 0 {
                    let chosen = random.usize(0..STORES);
                    drop(tokio::time::timeout(Duration::from_millis(300), stores[chosen].flush()).await);
                }
                tokio::time::sleep(Duration::from_millis(random.u64(1..40))).await;
            }
        };
        let writers = futures::future::join_all(
            stores
                .iter()
                .zip(&mut models)
                .map(|(store, model)| write(store, model, over)),
        );
        futures::join!(weather, writers);
        if random.bool() {
            network.set(Link::Good);
            for store in stores.iter().rev() {
                until("it takes writes", async || put(store, "closing").await.is_ok()).await;
            }
            check(&stores, &mut models, &format!("seed {seed}, end of round {round}")).await;
            for store in stores.iter().rev() {
                store.close().await.unwrap();
            }
        } else {
            // The process is stopped; it may go on later, and must change nothing then.
            network.set(if random.bool() { Link::Hung } else { Link::Held });
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(1500)).await;
                network.set(Link::Good);
                drop(tokio::time::timeout(Duration::from_secs(1), put(&stores[1], "late")).await);
            });
        }
    }
    let stores = open_all(&Network::to(&bucket, Logs::Shared), "last").await;
    check(&stores, &mut models, &format!("seed {seed}, at the end")).await;
    let confirmed = models
        .iter()
        .flat_map(|model| model.keys.values())
        .filter(|known| **known == Some(true))
        .count();
    assert!(confirmed > 100, "only {confirmed} writes were confirmed");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_and_what_was_missing_stays_missing() {
    let first = std::env::var("HELENUS_TEST_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let first: u64 = first.unwrap_or(1);
    futures::join!(stormy(first), stormy(first + 1), stormy(first + 2));
}

/// The log of all stores stalls, also of those that only serve reads.
#[tokio::test(flavor = "multi_thread")]
async fn stores_without_writes_come_back_by_themselves() {
    for fault in [Link::Down, Link::Hung] {
        let network = Network::to(&Arc::new(InMemory::new()), Logs::Shared);
        let stores = open_all(&network, "first").await;
        for store in &stores {
            put(store, "a").await.unwrap();
        }
        network.set(fault);
        let refused = tokio::time::timeout(Duration::from_secs(15), put(&stores[1], "b")).await;
        assert!(refused.is_ok_and(|refused| refused.is_err()), "{fault:?}");
        tokio::time::sleep(Duration::from_secs(1)).await;
        network.set(Link::Good);
        for (number, store) in stores.iter().enumerate() {
            let answers = async || has(store, "a").await == Some(true);
            until(&format!("{fault:?}: store {number} answers"), answers).await;
        }
        for store in &stores {
            until("it takes writes", async || put(store, "c").await.is_ok()).await;
        }
    }
}

async fn names(bucket: &InMemory) -> Vec<String> {
    let listed: Vec<_> = bucket.list(Some(&Path::from(SHARED_LOG))).try_collect().await.unwrap();
    let mut names: Vec<_> = listed.iter().map(|meta| meta.location.to_string()).collect();
    names.sort_unstable();
    names
}

/// All stores are written by turns; one of them is written once, and stays idle.
#[tokio::test(flavor = "multi_thread")]
async fn the_log_stays_short_although_a_store_is_idle() {
    let bucket = Arc::new(InMemory::new());
    let network = Network::to(&bucket, Logs::Shared);
    let stores = open_all(&network, "first").await;
    put(&stores[2], "once").await.unwrap();
    for n in 0..1200 {
        put(&stores[n % 2], &key(u32::try_from(n).unwrap())).await.unwrap();
    }
    until("objects that none needs are removed", async || {
        names(&bucket).await.len() < 1000
    })
    .await;
    network.set(Link::Hung);
    let network = Network::to(&bucket, Logs::Shared);
    let stores = open_all(&network, "second").await;
    let gets = network.log_gets.load(std::sync::atomic::Ordering::SeqCst);
    assert!(
        (1..=600).contains(&gets),
        "{gets} objects were read for {STORES} stores"
    );
    assert!(answered(&stores[2], "once").await);
    for n in [0, 1, 600, 1198, 1199] {
        assert!(answered(&stores[n % 2], &key(u32::try_from(n).unwrap())).await, "{n}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_of_several_stores_are_one_put() {
    let network = Network::to(&Arc::new(InMemory::new()), Logs::Shared);
    let stores = open_all(&network, "first").await;
    for store in &stores {
        put(store, "before").await.unwrap();
    }
    network.set(Link::Held);
    let before = network.log_puts.load(std::sync::atomic::Ordering::SeqCst);
    let first = tokio::spawn({
        let store = stores[0].clone();
        async move { put(&store, "a").await }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let others = stores.iter().map(|store| put(store, "b"));
    let (others, ()) = futures::join!(futures::future::try_join_all(others), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        network.set(Link::Good);
    });
    first.await.unwrap().unwrap();
    assert_eq!(others.unwrap().len(), STORES);
    assert_eq!(network.log_puts.load(std::sync::atomic::Ordering::SeqCst) - before, 2);
}

/// However much is open, a slow bucket takes it object by object.
#[tokio::test(flavor = "multi_thread")]
async fn an_object_has_a_bounded_number_of_bytes() {
    let bucket = Arc::new(InMemory::new());
    let network = Network::to(&bucket, Logs::Shared);
    let stores = open_all(&network, "first").await;
    network.set(Link::Held);
    let mut writes = Vec::new();
    for number in 0..24 {
        let (store, value) = (stores[number % STORES].clone(), "x".repeat(3 << 20));
        writes.push(tokio::spawn(async move {
            let mut batch = crate::storage::Batch::new();
            batch.put(
                crate::storage::batch::Space::Catalog,
                number.to_string().into_bytes(),
                value,
            );
            store.commit(batch).await
        }));
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    network.set(Link::Good);
    for write in writes {
        write.await.unwrap().unwrap();
    }
    let listed: Vec<_> = bucket.list(Some(&Path::from(SHARED_LOG))).try_collect().await.unwrap();
    let longest = listed.iter().map(|meta| meta.size).max().unwrap();
    assert!(longest < OBJECT_BYTES_MAX as u64 + 4096, "{longest} B");
    network.set(Link::Hung);
    let stores = open_all(&Network::to(&bucket, Logs::Shared), "second").await;
    for number in 0..24 {
        assert!(
            answered(&stores[number % STORES], &number.to_string()).await,
            "{number}"
        );
    }
}

/// Tables count only once a manifest in the bucket names them: a process may end before it is put.
#[tokio::test(flavor = "multi_thread")]
async fn rows_stay_in_the_log_until_a_manifest_names_their_tables() {
    use std::sync::atomic::Ordering;

    let bucket = Arc::new(InMemory::new());
    let network = Network::to(&bucket, Logs::Shared);
    let stores = open_all(&network, "first").await;
    put(&stores[1], "kept").await.unwrap();
    network.holds_manifests.store(true, Ordering::SeqCst);
    // So many objects that tables are asked for.
    for n in 0..LOG_OBJECTS_MAX + 20 {
        put(&stores[2], &key(n)).await.unwrap();
    }
    until("the table is there", async || {
        let tables: Vec<_> = bucket
            .list(Some(&Path::from("stores/1/compacted")))
            .try_collect()
            .await
            .unwrap();
        !tables.is_empty()
    })
    .await;
    // Its manifest waits. Further objects say what each store needs.
    for n in 0..20 {
        tokio::time::sleep(Duration::from_millis(5)).await;
        put(&stores[1], &key(n)).await.unwrap();
    }
    put(&stores[2], "last").await.unwrap();
    network.set(Link::Hung);
    let stores = open_all(&Network::to(&bucket, Logs::Shared), "second").await;
    assert!(answered(&stores[1], "kept").await);
    for n in 0..20 {
        assert!(answered(&stores[1], &key(n)).await, "{n}");
    }
}

/// A store that is removed leaves rows in the log; the next one of its name must not have them.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_of_a_removed_ones_name_is_empty() {
    let bucket = Arc::new(InMemory::new());
    let network = Network::to(&bucket, Logs::Shared);
    let stores = open_all(&network, "first").await;
    put(&stores[1], "old").await.unwrap();
    put(&stores[2], "kept").await.unwrap();
    // Closed without its tables written: its rows are in the log only.
    network.set(Link::Hung);
    let network = Network::to(&bucket, Logs::Shared);
    let mut main = open(&network, "second").await;
    while main.is_err() {
        main = open(&network, "second").await;
    }
    let main = main.unwrap();
    main.remove_database("stores/1").await.unwrap();
    let again = main.open_side("stores/1".to_owned(), &side_options()).await.unwrap();
    assert!(!answered(&again, "old").await);
    put(&again, "new").await.unwrap();
    // The same in another process, and for a database whose objects are gone without a word to the log.
    network.set(Link::Hung);
    let listed: Vec<_> = bucket.list(Some(&Path::from("stores/2"))).try_collect().await.unwrap();
    for meta in listed {
        bucket.delete(&meta.location).await.unwrap();
    }
    let stores = open_all(&Network::to(&bucket, Logs::Shared), "third").await;
    assert!(answered(&stores[1], "new").await && !answered(&stores[1], "old").await);
    assert!(!answered(&stores[2], "kept").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clone_has_what_its_source_had_and_a_log_of_its_own_name() {
    use crate::storage::key::KeyRange;

    let bucket = Arc::new(InMemory::new());
    let network = Network::to(&bucket, Logs::Shared);
    let stores = open_all(&network, "first").await;
    let row = |key: &str| {
        let mut batch = crate::storage::Batch::new();
        batch.put(crate::storage::batch::Space::Rows, key.as_bytes().to_vec(), "1");
        batch
    };
    let found = async |store: &Store, key: &str| -> Result<bool> {
        let published = store.snapshot().unwrap();
        let found = published
            .get(crate::storage::batch::Space::Rows, key.as_bytes())
            .await?;
        Ok(found.is_some())
    };
    stores[0].commit(row("a")).await.unwrap();
    stores[1].commit(row("a of another")).await.unwrap();
    stores[0]
        .clone_side("stores/7".to_owned(), &KeyRange::all())
        .await
        .unwrap();
    let clone = stores[0]
        .open_side("stores/7".to_owned(), &side_options())
        .await
        .unwrap();
    assert!(found(&clone, "a").await.unwrap());
    clone.commit(row("b")).await.unwrap();
    stores[0].commit(row("c")).await.unwrap();
    network.set(Link::Hung);
    let stores = open_all(&Network::to(&bucket, Logs::Shared), "second").await;
    let clone = stores[0]
        .open_side("stores/7".to_owned(), &side_options())
        .await
        .unwrap();
    until("it answers", async || {
        clone.snapshot().is_some() && has(&stores[0], "x").await.is_some()
    })
    .await;
    for (key, in_clone, in_main) in [("a", true, true), ("b", true, false), ("c", false, true)] {
        assert_eq!(found(&clone, key).await.unwrap(), in_clone, "{key}");
        assert_eq!(found(&stores[0], key).await.unwrap(), in_main, "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_object_of_the_log_is_named() {
    let bucket = Arc::new(InMemory::new());
    let network = Network::to(&bucket, Logs::Shared);
    let stores = open_all(&network, "first").await;
    put(&stores[1], "a").await.unwrap();
    let needed = names(&bucket).await.pop().unwrap();
    put(&stores[1], "b").await.unwrap();
    network.set(Link::Hung);
    let location = Path::from(needed.as_str());
    let mut bytes = bucket.get(&location).await.unwrap().bytes().await.unwrap().to_vec();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    bucket.put(&location, bytes.into()).await.unwrap();
    let network = Network::to(&bucket, Logs::Shared);
    let mut main = open(&network, "second").await;
    while main
        .as_ref()
        .is_err_and(|error| !error.to_string().contains("checksum"))
    {
        main = open(&network, "second").await;
        if let Ok(main) = &main {
            let refused = main
                .open_side("stores/1".to_owned(), &side_options())
                .await
                .unwrap_err()
                .to_string();
            assert!(refused.contains(&needed), "{refused}");
            break;
        }
    }
    drop(main);
    bucket.delete(&location).await.unwrap();
}

/// An owner whose lease is over, and which does not know of the next one, puts in the log where that one has removed
/// objects: nobody reads them there.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_acknowledged_that_is_put_where_the_next_owner_has_removed_objects() {
    let bucket = Arc::new(InMemory::new());
    let network = Network::to(&bucket, Logs::Shared);
    let first = open(&network, "first").await.unwrap();
    put(&first, "a").await.unwrap();
    network.refuses_lease.store(true, std::sync::atomic::Ordering::SeqCst);
    let second = open(&Network::to(&bucket, Logs::Shared), "second").await.unwrap();
    let fence = names(&bucket).await.pop().unwrap();
    put(&second, "b").await.unwrap();
    // As the second one does after some hundred writes.
    bucket.delete(&Path::from(fence.as_str())).await.unwrap();
    let late = tokio::time::timeout(Duration::from_secs(30), put(&first, "c")).await;
    assert!(late.unwrap().is_err());
    assert!(answered(&second, "a").await && answered(&second, "b").await);
    assert!(!answered(&second, "c").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_is_gone_is_not_begun_anew() {
    let bucket = Arc::new(InMemory::new());
    let store = open(&Network::to(&bucket, Logs::Shared), "first").await.unwrap();
    for n in 0..20 {
        put(&store, &n.to_string()).await.unwrap();
    }
    store.close().await.unwrap();
    for name in names(&bucket).await {
        bucket.delete(&Path::from(name)).await.unwrap();
    }
    let refused = open(&Network::to(&bucket, Logs::Shared), "second")
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("all objects of the log are gone"), "{refused}");
    // As if it had been begun anew.
    let first = Object {
        number: 1,
        ..Object::default()
    };
    bucket.put(&path(1), first.encode().into()).await.unwrap();
    let refused = open(&Network::to(&bucket, Logs::Shared), "third")
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("it is gone, although tables have what it had"),
        "{refused}"
    );
}
