//! `/readyz` over several stores: each is written to and read, one that fails or hangs is named, one that is lowered is left out.

#![expect(clippy::unwrap_used, reason = "a test says no better what went wrong")]

use std::sync::{Arc, Condvar, Mutex};
use std::thread::ThreadId;
use std::time::Duration;

use crate::support::Client;
use helenus::server::admin::report::Readiness;
use helenus_base::clock::Clock;
use helenus_cql::cql::{Database, SessionState};
use helenus_engine::engine::Probe;
use helenus_storage::storage::FaultPoint;

/// What the medium does to the thread that commits of a store.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    Fails,
    Hangs,
}

#[derive(Default)]
struct State {
    /// Threads that committed, in the order of their first commits: each store has one.
    seen: Vec<ThreadId>,
    fault: Option<(ThreadId, Fault)>,
}

#[derive(Clone, Default)]
struct Medium(Arc<(Mutex<State>, Condvar)>);

impl Medium {
    fn set(&self, fault: Option<(ThreadId, Fault)>) {
        self.0.0.lock().unwrap().fault = fault;
        self.0.1.notify_all();
    }

    fn seen(&self) -> Vec<ThreadId> {
        self.0.0.lock().unwrap().seen.clone()
    }

    fn call(&self, point: FaultPoint) -> Option<std::io::Error> {
        let (this, (state, changed)) = (std::thread::current().id(), &*self.0);
        let mut state = state.lock().unwrap();
        if matches!(point, FaultPoint::Commit) && !state.seen.contains(&this) {
            state.seen.push(this);
        }
        let hangs = |state: &mut State| state.fault == Some((this, Fault::Hangs));
        state = changed.wait_while(state, hangs).unwrap();
        let fails = state.fault == Some((this, Fault::Fails));
        // A full disk is what a store recovers from by itself.
        fails.then(|| std::io::Error::from(std::io::ErrorKind::StorageFull))
    }
}

/// Probes as the admin port does, for so long.
async fn probe(database: &Database, within: Duration) -> Readiness {
    let mut probe = Probe::default();
    // Late or not shows in what the stores answered.
    drop(tokio::time::timeout(within, database.engine().upkeep().probe(&mut probe)).await);
    Readiness::of(&probe)
}

/// Which stores were asked, and whether they are ready.
fn stores(readiness: &Readiness) -> Vec<(u32, bool)> {
    let stores = readiness.stores.iter();
    stores.map(|store| (store.store, store.ready)).collect()
}

/// Probes until stores are as said: a slow machine may take longer than one probe waits.
async fn until(database: &Database, within: Duration, expected: &[(u32, bool)]) -> Readiness {
    for _ in 0..100 {
        let readiness = probe(database, within).await;
        if stores(&readiness) == expected {
            return readiness;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("not {expected:?}: {:?}", probe(database, within).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_store_is_probed_and_named() {
    const LONG: Duration = Duration::from_secs(60);
    let directory = tempfile::tempdir().unwrap();
    let medium = Medium::default();
    let clock = Clock::manual(1_700_000_000_000_000);
    let mut options = Client::options(&format!("file:{}", directory.path().display()), clock.clone());
    let faults = medium.clone();
    options.store.faults = Some(Arc::new(move |point| faults.call(point)));
    let client = Client::over(Database::open(options).await.unwrap(), SessionState::default(), clock);
    let client = client.in_keyspace().await;
    let database = &client.database;
    client
        .ok("CREATE TABLE t (k int PRIMARY KEY, v int) WITH helenus_partitions = 2")
        .await;
    for k in 0..8 {
        client.ok(&format!("INSERT INTO t (k, v) VALUES ({k}, 1)")).await;
    }
    let ready = probe(database, LONG).await;
    assert_eq!((ready.ready, stores(&ready)), (true, vec![(0, true)]));
    client.ok("ALTER TABLE t WITH helenus_lift = 1").await;
    let ready = probe(database, LONG).await;
    assert!(ready.ready && ready.write_micros.is_some() && ready.read_micros.is_some());
    assert_eq!((ready.why.clone(), stores(&ready)), (None, vec![(0, true), (1, true)]));
    let seen = medium.seen();
    let [main, beside] = seen.as_slice() else {
        panic!("{} threads commit of two stores", seen.len());
    };

    // One that hangs is waited for as long as it may take, and the other one is told to be ready.
    for (thread, ready, told) in [
        (*beside, [true, false], "in store 1 a write and its read took too long"),
        (
            *main,
            [false, true],
            "in the main store a write and its read took too long",
        ),
    ] {
        medium.set(Some((thread, Fault::Hangs)));
        let expected = [(0, ready[0]), (1, ready[1])];
        let answer = until(database, Duration::from_millis(500), &expected).await;
        assert_eq!((answer.ready, answer.why.as_deref()), (false, Some(told)));
        assert_eq!((answer.write_micros, answer.read_micros), (None, None));
        medium.set(None);
        until(database, LONG, &[(0, true), (1, true)]).await;
    }

    // One that fails is told at once, and takes writes again when the medium does.
    medium.set(Some((*beside, Fault::Fails)));
    let answer = probe(database, LONG).await;
    let told = "in store 1 a write or its read failed; the server's log says why";
    assert_eq!((answer.ready, answer.why.as_deref()), (false, Some(told)));
    assert_eq!(stores(&answer), [(0, true), (1, false)]);
    medium.set(None);
    let answer = until(database, LONG, &[(0, true), (1, true)]).await;
    assert!(answer.ready);

    // A store that is removed is nobody's concern, whether it goes before, while or after it is asked.
    client.ok("ALTER TABLE t WITH helenus_lower = 1").await;
    for _ in 0..50 {
        let ready = probe(database, LONG).await;
        assert!(ready.ready, "{ready:?}");
    }
    until(database, LONG, &[(0, true)]).await;
    client.database.close().await.unwrap();
    let answer = probe(database, LONG).await;
    let told = "in the main store a write or its read failed; the server's log says why";
    assert_eq!((answer.ready, answer.why.as_deref()), (false, Some(told)));
}

#[tokio::test]
async fn who_cannot_ask_is_not_ready() {
    let client = Client::open("memory:").await;
    let answer = Readiness::of(&Probe::default());
    assert_eq!((answer.ready, answer.stores.len()), (false, 0));
    assert!(probe(&client.database, Duration::from_secs(60)).await.ready);
}
