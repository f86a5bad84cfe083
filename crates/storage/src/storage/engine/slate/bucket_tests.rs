//! Servers that share a bucket, and a bucket that fails: which server may answer, which is refused, and which failures
//! are transient.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{StreamExt, future};
use slatedb::object_store::memory::InMemory;
use slatedb::object_store::path::Path;
use slatedb::object_store::{
    CopyOptions, Error as StoreError, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result as StoreResult,
};

use super::home::Home;
use super::places::is_sealed;
use super::*;
use crate::storage::bucket::{Logs, Mark, Reach, Reached, is_used, mark};
use crate::storage::bucket_refusal::Refusal;
use helenus_base::clock::Timestamps;

/// As short as a busy machine allows.
const LEASE: Duration = Duration::from_millis(600);

/// How one server reaches the bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u8)]
pub(super) enum Link {
    Good,
    /// The store answers 503.
    Down,
    /// The store does not answer, and never will answer requests made meanwhile.
    Hung,
    /// The store performs requests, and its answers to puts are lost.
    Deaf,
    /// Puts of the log wait until the link changes.
    Held,
}

/// A bucket, as one server reaches it.
#[derive(Debug)]
pub(super) struct Network {
    bucket: Arc<InMemory>,
    logs: Logs,
    link: AtomicU8,
    /// Puts of manifests wait while it is set.
    pub(super) holds_manifests: AtomicBool,
    /// Requests about the lease fail while it is set.
    pub(super) refuses_lease: AtomicBool,
    /// Puts of the log fail while it is set.
    pub(super) refuses_log: AtomicBool,
    /// Objects of the log that were put and read.
    pub(super) log_puts: AtomicU64,
    pub(super) log_gets: AtomicU64,
}

impl Network {
    pub(super) fn to(bucket: &Arc<InMemory>, logs: Logs) -> Arc<Self> {
        Arc::new(Self {
            bucket: Arc::clone(bucket),
            logs,
            link: AtomicU8::new(Link::Good as u8),
            holds_manifests: AtomicBool::new(false),
            refuses_lease: AtomicBool::new(false),
            refuses_log: AtomicBool::new(false),
            log_puts: AtomicU64::new(0),
            log_gets: AtomicU64::new(0),
        })
    }

    pub(super) fn set(&self, link: Link) {
        self.link.store(link as u8, Ordering::SeqCst);
    }

    fn pass_lease(&self, at: &Path) -> StoreResult<()> {
        if at.as_ref().starts_with("fleet/") && self.refuses_lease.load(Ordering::SeqCst) {
            return Err(unavailable());
        }
        Ok(())
    }

    async fn pass(&self) -> StoreResult<()> {
        match self.link.load(Ordering::SeqCst) {
            link if link == Link::Down as u8 => Err(unavailable()),
            link if link == Link::Hung as u8 => future::pending().await,
            _ => Ok(()),
        }
    }
}

fn is_of_log(at: &Path) -> bool {
    at.as_ref().starts_with("engine/wal/") || at.as_ref().starts_with("log/")
}

fn unavailable() -> StoreError {
    StoreError::Generic {
        store: "bucket",
        source: "503 Service Unavailable".into(),
    }
}

impl fmt::Display for Network {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a bucket over a network")
    }
}

#[async_trait::async_trait]
impl ObjectStore for Network {
    async fn put_opts(&self, at: &Path, body: PutPayload, options: PutOptions) -> StoreResult<PutResult> {
        self.pass().await?;
        self.pass_lease(at)?;
        if is_of_log(at) {
            while self.link.load(Ordering::SeqCst) == Link::Held as u8 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            self.pass().await?;
            if self.refuses_log.load(Ordering::SeqCst) {
                return Err(unavailable());
            }
            self.log_puts.fetch_add(1, Ordering::SeqCst);
        }
        while is_sealed(at) && self.holds_manifests.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(1)).await;
            self.pass().await?;
        }
        let put = self.bucket.put_opts(at, body, options).await?;
        if self.link.load(Ordering::SeqCst) == Link::Deaf as u8 {
            return Err(unavailable());
        }
        Ok(put)
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        self.pass().await?;
        self.bucket.put_multipart_opts(at, options).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> StoreResult<GetResult> {
        self.pass().await?;
        self.pass_lease(at)?;
        if is_of_log(at) && !options.head {
            self.log_gets.fetch_add(1, Ordering::SeqCst);
        }
        self.bucket.get_opts(at, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, StoreResult<Path>>) -> BoxStream<'static, StoreResult<Path>> {
        self.bucket.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        if self.link.load(Ordering::SeqCst) == Link::Down as u8 {
            return futures::stream::once(future::ready(Err(unavailable()))).boxed();
        }
        self.bucket.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> StoreResult<ListResult> {
        self.pass().await?;
        self.bucket.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> StoreResult<()> {
        self.pass().await?;
        self.bucket.copy_opts(from, to, options).await
    }
}

pub(super) async fn open(network: &Arc<Network>, name: &str) -> Result<Store> {
    open_with(network, name, LEASE, Options::default()).await
}

/// A server whose writes get these timestamps.
async fn open_dated(network: &Arc<Network>, name: &str, timestamps: Option<Timestamps>) -> Result<Store> {
    let options = Options {
        timestamps,
        ..Options::default()
    };
    open_with(network, name, LEASE, options).await
}

pub(super) async fn open_with(network: &Arc<Network>, name: &str, lease: Duration, options: Options) -> Result<Store> {
    let options = Options {
        data_stores: Some(usize::from(network.logs == Logs::Shared)),
        reach: Arc::new(Reach {
            lease: Some(lease),
            name: name.to_owned(),
            address: format!("{name}:9042"),
            ..Reach::default()
        }),
        ..options
    };
    let reached = Reached::of(Arc::clone(network) as _);
    let home = Home::of_reached(reached, "s3://bucket/p".into(), &options, Clock::system()).await?;
    Store::open_at(home, &options).await
}

pub(super) async fn put(store: &Store, key: &str) -> Result<CommitSeq> {
    let mut batch = Batch::new();
    batch.put(Space::Catalog, key.as_bytes().to_vec(), "1");
    store.commit(batch).await
}

/// Whether a key exists. `None` means that the store does not answer.
pub(super) async fn has(store: &Store, key: &str) -> Option<bool> {
    let published = store.snapshot()?;
    let found = published.get(Space::Catalog, key.as_bytes()).await;
    found.ok().map(|found| found.is_some())
}

/// The same of a store that answers: on a busy machine its lease may lapse for a moment.
pub(super) async fn answered(store: &Store, key: &str) -> bool {
    let mut found = None;
    until("it answers", async || {
        found = has(store, key).await;
        found.is_some()
    })
    .await;
    found.unwrap()
}

/// Waits until a condition holds, at most 20 s.
pub(super) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(20), waiting).await;
    assert!(waited.is_ok(), "{what}");
}

/// Each test runs with a log for each database, and with one that all share.
macro_rules! with_either_log {
    ($($name:ident),+ $(,)?) => {
        mod own_logs {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $name() {
                    super::$name(super::Logs::Own).await;
                }
            )+
        }
        mod shared_log {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $name() {
                    super::$name(super::Logs::Shared).await;
                }
            )+
        }
    };
}

with_either_log! {
    a_second_server_is_refused_by_the_name_of_the_first,
    a_database_is_refused_until_its_restore_has_ended,
    an_owner_that_was_stopped_answers_nothing_once_another_has_taken_over,
    what_is_missing_once_the_lease_is_over_is_not_damage,
    an_owner_knows_its_lease_again_when_the_answers_to_its_puts_were_lost,
    a_store_comes_back_by_itself_when_the_bucket_does,
    groups_are_in_flight_together_and_shown_when_they_are_durable,
    groups_in_flight_fail_together_and_are_not_shown,
    a_write_after_a_failed_put_is_durable_before_it_is_answered,
    an_opening_reads_two_hundred_objects_of_the_log_at_most,
    a_server_whose_clock_is_behind_dates_above_the_one_that_it_takes_over_from,
    a_group_is_checked_by_those_in_flight_before_it,
    commits_go_on_beside_the_deletion_of_a_range,
    an_opening_finishes_the_deletion_of_a_range,
    a_step_of_a_deletion_is_small_however_long_its_keys_are,
}

async fn a_second_server_is_refused_by_the_name_of_the_first(logs: Logs) {
    let bucket = Arc::new(InMemory::new());
    let first = open(&Network::to(&bucket, logs), "first").await.unwrap();
    put(&first, "a").await.unwrap();
    let why = open(&Network::to(&bucket, logs), "second")
        .await
        .unwrap_err()
        .to_string();
    assert!(why.contains("first serves this prefix at first:9042"), "{why}");
    put(&first, "b").await.unwrap();
    assert!(answered(&first, "b").await);
    first.close().await.unwrap();
    // Released: a second server need not wait. Nothing is renewed between two checks either.
    let second = open(&Network::to(&bucket, logs), "second").await.unwrap();
    assert!(answered(&second, "b").await);
}

async fn a_database_is_refused_until_its_restore_has_ended(logs: Logs) {
    let network = Network::to(&Arc::new(InMemory::new()), logs);
    let restored = Options {
        is_restored_into: true,
        ..Options::default()
    };
    let store = open_with(&network, "restore", LEASE, restored).await.unwrap();
    put(&store, "a").await.unwrap();
    store.close().await.unwrap();
    // Also of a restore that was interrupted.
    for _ in 0..2 {
        let refused = open(&network, "server").await.unwrap_err();
        let of_restore = matches!(&refused, Error::Bucket { refusal, .. } if *refusal == Refusal::BeingRestored);
        assert!(of_restore, "{refused}");
    }
    let reached = Reached::of(Arc::clone(&network) as _);
    mark(&reached, Mark::Used).await.unwrap();
    let store = open(&network, "server").await.unwrap();
    assert!(answered(&store, "a").await);
    put(&store, "b").await.unwrap();
    store.close().await.unwrap();
    assert!(is_used(&reached).await.unwrap());
}

async fn an_owner_that_was_stopped_answers_nothing_once_another_has_taken_over(logs: Logs) {
    let bucket = Arc::new(InMemory::new());
    let network = Network::to(&bucket, logs);
    let first = open(&network, "first").await.unwrap();
    put(&first, "a").await.unwrap();
    assert!(answered(&first, "a").await);
    network.set(Link::Hung);
    let second = open(&Network::to(&bucket, logs), "second").await.unwrap();
    assert_eq!(has(&first, "a").await, None, "it may be stale from now on");
    put(&second, "b").await.unwrap();
    network.set(Link::Good);
    assert_eq!(has(&first, "a").await, None);
    until("the first one says that it is lost", async || first.lost().is_some()).await;
    assert!(matches!(put(&first, "c").await, Err(Error::TakenOver { .. })));
    assert_eq!(has(&first, "a").await, None);
    assert!(answered(&second, "a").await);
    assert!(!answered(&second, "c").await);
    put(&second, "d").await.unwrap();
}

/// A server that takes over removes objects of the log and of tables.
async fn what_is_missing_once_the_lease_is_over_is_not_damage(logs: Logs) {
    let network = Network::to(&Arc::new(InMemory::new()), logs);
    let store = open(&network, "first").await.unwrap();
    let home = store.home().unwrap();
    let missed = || {
        let missing = Error::Corrupt {
            path: "log/1.log".into(),
            what: "it is gone, and was acknowledged".to_owned(),
        };
        home.failure(&slatedb::Error::data(String::new()).with_source(Box::new(missing)))
    };
    assert!(matches!(missed(), Error::Corrupt { .. }));
    network.set(Link::Hung);
    until("the lease is over", async || !home.is_owner()).await;
    assert!(matches!(missed(), Error::LeaseOver { .. }));
}

async fn an_owner_knows_its_lease_again_when_the_answers_to_its_puts_were_lost(logs: Logs) {
    let bucket = Arc::new(InMemory::new());
    let network = Network::to(&bucket, logs);
    let store = open(&network, "first").await.unwrap();
    put(&store, "a").await.unwrap();
    network.set(Link::Deaf);
    tokio::time::sleep(2 * LEASE).await;
    assert_eq!(has(&store, "a").await, None, "no renewal was confirmed");
    network.set(Link::Good);
    until("it owns the bucket again", async || {
        has(&store, "a").await == Some(true)
    })
    .await;
    assert!(store.lost().is_none());
    until("it takes writes", async || put(&store, "b").await.is_ok()).await;
}

async fn a_store_comes_back_by_itself_when_the_bucket_does(logs: Logs) {
    for fault in [Link::Down, Link::Hung] {
        let bucket = Arc::new(InMemory::new());
        let network = Network::to(&bucket, logs);
        let store = open(&network, "first").await.unwrap();
        put(&store, "a").await.unwrap();
        network.set(fault);
        // Answered in time, whatever the bucket does, and with a failure.
        let refused = tokio::time::timeout(Duration::from_secs(15), put(&store, "b")).await;
        assert!(refused.expect("a hung request does not hang the store").is_err());
        network.set(Link::Good);
        let back = async {
            until("it takes writes", async || put(&store, "c").await.is_ok()).await;
            until("it answers", async || has(&store, "c").await == Some(true)).await;
        };
        let back = tokio::time::timeout(Duration::from_secs(5), back).await;
        assert!(back.is_ok(), "{fault:?}: back within 5 s after the bucket");
        assert!(answered(&store, "a").await);
        assert!(store.lost().is_none());
        store.close().await.unwrap();
    }
}

/// Commits that were sent and are not answered.
async fn sent(store: &Store, keys: &[&'static str]) -> Vec<tokio::task::JoinHandle<Result<CommitSeq>>> {
    let mut sent = Vec::new();
    for key in keys.iter().copied() {
        let store = store.clone();
        sent.push(tokio::spawn(async move { put(&store, key).await }));
        // So that it is in a group of its own, on a busy machine too.
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    sent
}

async fn groups_are_in_flight_together_and_shown_when_they_are_durable(logs: Logs) {
    let network = Network::to(&Arc::new(InMemory::new()), logs);
    let store = open(&network, "first").await.unwrap();
    put(&store, "a").await.unwrap();
    let before = network.log_puts.load(Ordering::SeqCst);
    network.set(Link::Held);
    let under_way = sent(&store, &["b", "c", "d"]).await;
    // A batch without changes waits for those before it, as purges rely on.
    let nothing = store.clone();
    let nothing = tokio::spawn(async move { nothing.commit(Batch::new()).await });
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert!(under_way.iter().all(|one| !one.is_finished()) && !nothing.is_finished());
    for key in ["b", "c", "d"] {
        assert!(!answered(&store, key).await, "{key} is not durable");
    }
    network.set(Link::Good);
    let mut last = CommitSeq(0);
    for one in under_way {
        let seq = one.await.unwrap().unwrap();
        assert!(seq > last, "groups of their own, in order");
        last = seq;
    }
    assert_eq!(nothing.await.unwrap().unwrap(), last);
    let puts = network.log_puts.load(Ordering::SeqCst) - before;
    assert_eq!(puts, 2, "c and d were put together when b was");
    for key in ["b", "c", "d"] {
        assert!(answered(&store, key).await, "{key}");
    }
}

async fn groups_in_flight_fail_together_and_are_not_shown(logs: Logs) {
    let network = Network::to(&Arc::new(InMemory::new()), logs);
    let store = open(&network, "first").await.unwrap();
    put(&store, "a").await.unwrap();
    network.set(Link::Held);
    let under_way = sent(&store, &["b", "c"]).await;
    network.set(Link::Down);
    for one in under_way {
        assert!(one.await.unwrap().is_err());
    }
    network.set(Link::Good);
    until("it takes writes", async || put(&store, "d").await.is_ok()).await;
    for key in ["a", "d"] {
        assert!(answered(&store, key).await, "{key}");
    }
}

async fn a_write_after_a_failed_put_is_durable_before_it_is_answered(logs: Logs) {
    let network = Network::to(&Arc::new(InMemory::new()), logs);
    let store = open(&network, "first").await.unwrap();
    put(&store, "a").await.unwrap();
    network.set(Link::Held);
    // Their numbers lie above those that the database assigns after it was reopened.
    let lost = sent(&store, &["b", "c", "d", "e", "f", "g", "h", "i"]).await;
    network.set(Link::Down);
    for one in lost {
        assert!(one.await.unwrap().is_err());
    }
    network.set(Link::Good);
    until("it takes writes", async || put(&store, "j").await.is_ok()).await;
    network.set(Link::Held);
    let under_way = sent(&store, &["k"]).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(
        under_way.iter().all(|one| !one.is_finished()),
        "it was answered while the log was not put"
    );
    network.set(Link::Good);
    for one in under_way {
        one.await.unwrap().unwrap();
    }
    assert!(answered(&store, "k").await);
}

async fn an_opening_reads_two_hundred_objects_of_the_log_at_most(logs: Logs) {
    let bucket = Arc::new(InMemory::new());
    let network = Network::to(&bucket, logs);
    let store = open(&network, "first").await.unwrap();
    for n in 0..700 {
        put(&store, &format!("key {n}")).await.unwrap();
    }
    // It ends without closing.
    network.set(Link::Hung);
    let network = Network::to(&bucket, logs);
    let second = open(&network, "second").await.unwrap();
    let gets = network.log_gets.load(Ordering::SeqCst);
    // Of its own log each object is verified (its end, its index, its block), then read.
    let most = if logs == Logs::Own { 200 * 5 } else { 200 };
    assert!((50..=most).contains(&gets), "{gets} gets of the log");
    for n in [0, 1, 350, 699] {
        assert!(answered(&second, &format!("key {n}")).await, "{n}");
    }
    put(&second, "last").await.unwrap();
    second.close().await.unwrap();
    drop(second);
    let before = network.log_gets.load(Ordering::SeqCst);
    let store = open(&network, "second").await.unwrap();
    let gets = network.log_gets.load(Ordering::SeqCst) - before;
    assert!(gets <= 10, "{gets} gets of the log that was emptied before closing");
    for key in ["key 0", "key 699", "last"] {
        assert!(answered(&store, key).await, "{key}");
    }
}

/// The floor is in the store, so that it holds on any machine.
async fn a_server_whose_clock_is_behind_dates_above_the_one_that_it_takes_over_from(logs: Logs) {
    const HOUR: i64 = 3_600_000_000;
    let dated = |hours: i64| Timestamps::new(Clock::manual(hours * HOUR), Timestamps::JUMP_MAX);
    let bucket = Arc::new(InMemory::new());
    let network = Network::to(&bucket, logs);
    let ahead = dated(10);
    let first = open_dated(&network, "first", Some(ahead.clone())).await.unwrap();
    let mut last = 0;
    for key in ["a", "b"] {
        last = ahead.next_micros();
        put(&first, key).await.unwrap();
    }
    network.set(Link::Hung);
    let behind = dated(9);
    let second = open_dated(&Network::to(&bucket, logs), "second", Some(behind.clone()))
        .await
        .unwrap();
    let next = behind.next_micros();
    assert!(next > last && last >= 10 * HOUR, "{next} after {last}");
    put(&second, "c").await.unwrap();
    second.close().await.unwrap();
    // A third one, and an orderly stop: what the second one gave is in the store, too.
    let far_behind = dated(1);
    let third = open_dated(&Network::to(&bucket, logs), "third", Some(far_behind.clone()))
        .await
        .unwrap();
    let later = far_behind.next_micros();
    assert!(later > next, "{later} after {next}");
    put(&third, "d").await.unwrap();
    for key in ["a", "b", "c", "d"] {
        assert!(answered(&third, key).await, "{key}");
    }
}

async fn a_group_is_checked_by_those_in_flight_before_it(logs: Logs) {
    use crate::storage::row::{Cell, CellState, ColumnId, Row};

    let network = Network::to(&Arc::new(InMemory::new()), logs);
    let store = open(&network, "first").await.unwrap();
    // Large enough to be checked against the stored row.
    let commit = async |column| {
        let cell = Cell {
            column: ColumnId(column),
            path: None,
            timestamp: 1,
            state: CellState::Live {
                value: vec![1; 70_000].into(),
                expiry: None,
            },
        };
        let mut batch = Batch::new();
        let row = Row {
            cells: vec![cell],
            ..Row::default()
        };
        batch.upsert(b"row".to_vec(), row);
        batch.limit_rows(100_000);
        store.commit(batch).await
    };
    // The cache has the row as it was before.
    let published = store.snapshot().unwrap();
    assert_eq!(published.get_row(b"row", store.cache()).await.unwrap(), None);
    network.set(Link::Held);
    let (first, second, ()) = futures::join!(
        commit(1),
        async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            commit(2).await
        },
        async {
            tokio::time::sleep(Duration::from_millis(150)).await;
            network.set(Link::Good);
        }
    );
    first.unwrap();
    assert!(matches!(second, Err(Error::RowTooLarge { .. })), "{second:?}");
    let published = store.snapshot().unwrap();
    let row = published.get_row(b"row", store.cache()).await.unwrap().unwrap();
    assert!((70_000..100_000).contains(&row.len()), "{}", row.len());
}

/// Fills a range with the keys of eight steps of a deletion.
pub(super) async fn fill(store: &Store) {
    for part in 0..8 {
        let mut batch = Batch::new();
        for n in 0..4096 {
            batch.put(Space::Catalog, format!("gone {part} {n}").into_bytes(), "1");
        }
        store.commit(batch).await.unwrap();
    }
}

/// Begins to delete the range.
pub(super) fn delete(store: &Store) -> tokio::task::JoinHandle<Result<CommitSeq>> {
    let mut batch = Batch::new();
    batch.delete_range(Space::Catalog, KeyRange::prefix(b"gone "));
    batch.put(Space::Catalog, b"with it".to_vec(), "1");
    let store = store.clone();
    tokio::spawn(async move { store.commit(batch).await })
}

/// How many keys the range has. `None` means that the store does not answer.
pub(super) async fn left(store: &Store) -> Option<usize> {
    let mut keys = 0;
    let count = |_: &[u8], _: &[u8]| {
        keys += 1;
        ControlFlow::Continue(())
    };
    let range = KeyRange::prefix(b"gone ");
    let published = store.snapshot()?;
    published
        .scan(Space::Catalog, &range, Order::Forward, count)
        .await
        .ok()?;
    Some(keys)
}

async fn commits_go_on_beside_the_deletion_of_a_range(logs: Logs) {
    let network = Network::to(&Arc::new(InMemory::new()), logs);
    let store = open(&network, "first").await.unwrap();
    fill(&store).await;
    assert_eq!(left(&store).await, Some(8 * 4096));
    let deletion = delete(&store);
    until("its record is durable", async || answered(&store, "with it").await).await;
    let mut meanwhile = 0;
    while !deletion.is_finished() {
        put(&store, &format!("key {meanwhile}")).await.unwrap();
        meanwhile += 1;
    }
    deletion.await.unwrap().unwrap();
    assert!(meanwhile >= 2, "{meanwhile} commits beside eight steps");
    assert_eq!(left(&store).await, Some(0), "a deletion that is answered is done");
    assert!(answered(&store, "key 0").await);
}

/// A bucket at the end of a slow line must take a step in the time of a put.
async fn a_step_of_a_deletion_is_small_however_long_its_keys_are(logs: Logs) {
    let network = Network::to(&Arc::new(InMemory::new()), logs);
    let store = open(&network, "first").await.unwrap();
    let padding = "x".repeat(32_000);
    for n in 0..100 {
        put(&store, &format!("gone {n} {padding}")).await.unwrap();
    }
    let before = network.log_puts.load(Ordering::SeqCst);
    delete(&store).await.unwrap().unwrap();
    assert_eq!(left(&store).await, Some(0));
    let puts = network.log_puts.load(Ordering::SeqCst) - before;
    assert!(puts > 100 * 32_000 / (256 * 1024), "3.2 MB of keys in {puts} puts");
}

async fn an_opening_finishes_the_deletion_of_a_range(logs: Logs) {
    let bucket = Arc::new(InMemory::new());
    let network = Network::to(&bucket, logs);
    let store = open(&network, "first").await.unwrap();
    fill(&store).await;
    let deletion = delete(&store);
    until("its record is durable", async || answered(&store, "with it").await).await;
    // It ends without closing.
    network.set(Link::Hung);
    let second = open(&Network::to(&bucket, logs), "second").await.unwrap();
    until("the range is empty", async || left(&second).await == Some(0)).await;
    assert!(answered(&second, "with it").await);
    second.close().await.unwrap();
    deletion.abort();
}
