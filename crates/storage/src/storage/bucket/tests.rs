//! The check, run against stores that break the rules; and secrets that must never be shown.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use slatedb::object_store::memory::InMemory;
use slatedb::object_store::path::Path;
use slatedb::object_store::{
    CopyOptions, Error as StoreError, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result as StoreResult,
};

use tokio::time::Instant;

use super::claim::{Logs, Mark, Wish, claim, claimed, is_used, mark, refuse_others};
use super::*;
use crate::storage::AskedProfile;
use helenus_base::clock::Clock;

/// A fault of a store.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lie {
    None,
    /// Ignores the condition of a put-if-absent.
    CreatesAgain,
    /// Ignores the tag of a put-if-match.
    ReplacesAlways,
    /// The store evaluates a condition, and puts the object some time later (as S3Mock does).
    ChecksThenPuts,
    /// A listing shows the state before the last put.
    ListsLate,
    /// A retention keeps objects from being removed.
    KeepsForever,
    /// No lie: one change of an object a second, as Google has it. The rest is answered 429 and not done.
    TakesOneASecond,
    /// Answers 400 to conditional puts.
    KnowsNoConditions,
}

#[derive(Debug)]
struct Lying {
    inner: InMemory,
    lie: Lie,
    puts: AtomicUsize,
    /// When objects were changed last.
    changed: Mutex<HashMap<Path, Instant>>,
}

impl Lying {
    fn change(&self, at: &Path) -> StoreResult<()> {
        let mut changed = self.changed.lock().unwrap();
        let is_early = changed
            .get(at)
            .is_some_and(|last| last.elapsed() < Duration::from_secs(1));
        if self.lie == Lie::TakesOneASecond && is_early {
            return Err(answered("429 Too Many Requests", "SlowDown"));
        }
        changed.insert(at.clone(), Instant::now());
        Ok(())
    }
}

fn answered(status: &str, code: &str) -> StoreError {
    StoreError::Generic {
        store: "bucket",
        source: format!("status code: {status}: <Error><Code>{code}</Code></Error>").into(),
    }
}

impl fmt::Display for Lying {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a lying store")
    }
}

#[async_trait::async_trait]
impl ObjectStore for Lying {
    async fn put_opts(&self, at: &Path, body: PutPayload, mut options: PutOptions) -> StoreResult<PutResult> {
        self.puts.fetch_add(1, Ordering::SeqCst);
        match (self.lie, &options.mode) {
            (Lie::CreatesAgain, PutMode::Create) | (Lie::ReplacesAlways, PutMode::Update(_)) => {
                options.mode = PutMode::Overwrite
            }
            (Lie::ChecksThenPuts, PutMode::Create) => {
                let is_there = self.inner.head(at).await.is_ok();
                tokio::task::yield_now().await;
                if !is_there {
                    options.mode = PutMode::Overwrite;
                }
            }
            (Lie::KnowsNoConditions, PutMode::Create | PutMode::Update(_)) => {
                return Err(answered("400 Bad Request", "InvalidArgument"));
            }
            _ => {}
        }
        self.change(at)?;
        self.inner.put_opts(at, body, options).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(at, options).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> StoreResult<GetResult> {
        self.inner.get_opts(at, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, StoreResult<Path>>) -> BoxStream<'static, StoreResult<Path>> {
        match self.lie {
            Lie::KeepsForever => locations,
            Lie::TakesOneASecond => {
                let locations: Vec<StoreResult<Path>> = locations.collect().now_or_never().unwrap();
                let changed = locations
                    .into_iter()
                    .map(|at| at.and_then(|at| self.change(&at).map(|()| at)));
                self.inner
                    .delete_stream(stream::iter(changed.collect::<Vec<_>>()).boxed())
            }
            _ => self.inner.delete_stream(locations),
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        match self.lie {
            Lie::ListsLate if prefix.is_some_and(|prefix| prefix.as_ref().ends_with("list")) => {
                Box::pin(futures::stream::empty())
            }
            _ => self.inner.list(prefix),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> StoreResult<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> StoreResult<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

fn lying(lie: Lie) -> (Arc<Lying>, Reached) {
    let store = Arc::new(Lying {
        inner: InMemory::new(),
        lie,
        puts: AtomicUsize::new(0),
        changed: Mutex::default(),
    });
    let reached = Reached {
        change_interval: Duration::from_millis(if lie == Lie::TakesOneASecond { 1_100 } else { 0 }),
        ..Reached::of(Arc::clone(&store) as _)
    };
    (store, reached)
}

async fn objects(store: &Lying) -> Vec<String> {
    use futures::TryStreamExt;
    let listed: Vec<ObjectMeta> = store.inner.list(None).try_collect().await.unwrap();
    listed.into_iter().map(|meta| meta.location.to_string()).collect()
}

#[tokio::test]
async fn each_lie_is_refused_by_name_and_nothing_is_left() {
    for (lie, trial) in [
        (Lie::CreatesAgain, "an object is created once"),
        (Lie::ReplacesAlways, "an object is replaced only by its tag"),
        (Lie::ChecksThenPuts, "one of eight creates it"),
        (Lie::ListsLate, "an object is listed once it is put"),
        (Lie::KeepsForever, "an object is removed"),
        (
            Lie::KnowsNoConditions,
            "an object is created once: the store answered 400 InvalidArgument",
        ),
    ] {
        let (store, reached) = lying(lie);
        let refusal = claim(&reached, wish(7, Logs::Own)).await.unwrap_err();
        let Refusal::Unfit { failed } = &refusal else {
            panic!("{lie:?}: {refusal}")
        };
        assert!(failed[0].starts_with(trial), "{lie:?}: {failed:?}");
        assert!(!objects(&store).await.iter().any(|name| name == "fleet/id"), "{lie:?}");
        if lie != Lie::KeepsForever {
            assert_eq!(objects(&store).await, [""; 0], "{lie:?}");
        }
    }
}

const fn wish(draw: u64, logs: Logs) -> Wish {
    Wish {
        draw,
        logs,
        profile: None,
    }
}

#[tokio::test]
async fn a_prefix_keeps_its_profile_until_it_may_be_changed() {
    let (_, reached) = lying(Lie::None);
    let asked = |name, is_change_allowed| {
        Some(AskedProfile {
            name,
            is_change_allowed,
        })
    };
    let cosmos = Wish {
        profile: asked("cosmos", false),
        ..wish(7, Logs::Own)
    };
    let claimed_anew = claim(&reached, cosmos).await.unwrap();
    assert!(!claimed_anew.is_to_record(asked("cosmos", false)).unwrap());
    let read = claimed(&reached).await.unwrap().unwrap();
    assert_eq!(read, claimed_anew);
    let refused = read.is_to_record(asked("cassandra", false)).unwrap_err().to_string();
    assert!(refused.contains("give --profile cosmos"), "{refused}");
    let change = asked("cassandra", true);
    assert!(read.is_to_record(change).unwrap());
    read.record(&reached, change).await.unwrap();
    let changed = claimed(&reached).await.unwrap().unwrap();
    assert!(!changed.is_to_record(asked("cassandra", false)).unwrap());
    assert_eq!((changed.identity, changed.logs), (read.identity, read.logs));
}

#[tokio::test]
async fn a_prefix_is_checked_once_and_only_a_new_one_becomes_ours() {
    let (store, reached) = lying(Lie::None);
    assert_eq!(claimed(&reached).await.unwrap(), None);
    claim(&reached, wish(7, Logs::Own)).await.unwrap();
    assert_eq!(objects(&store).await, ["fleet/id"]);
    let puts = store.puts.load(Ordering::SeqCst);
    assert!(puts > 800, "8 racers, 50 rounds, twice: {puts}");
    let claim_again = claim(&reached, wish(8, Logs::Shared)).await.unwrap();
    assert_eq!((claim_again.logs, claim_again.identity.database), (Logs::Own, 7));
    assert_eq!(store.puts.load(Ordering::SeqCst), puts);
    assert!(!is_used(&reached).await.unwrap());
    mark(&reached, Mark::BeingRestored).await.unwrap();
    assert_eq!(is_used(&reached).await.unwrap_err(), Refusal::BeingRestored);
    mark(&reached, Mark::Used).await.unwrap();
    assert!(is_used(&reached).await.unwrap());

    let (store, reached) = lying(Lie::None);
    store.put(&Path::from("photos/1.jpg"), "x".into()).await.unwrap();
    assert_eq!(claim(&reached, wish(7, Logs::Own)).await.unwrap_err(), Refusal::NotOurs);
    assert_eq!(objects(&store).await, ["photos/1.jpg"]);
    store
        .put(&Path::from("fleet/id"), "helenus fleet 3\n".into())
        .await
        .unwrap();
    let told = claim(&reached, wish(7, Logs::Own)).await.unwrap_err().to_string();
    assert!(told.contains("\"helenus fleet 3\""), "{told}");
}

#[tokio::test]
async fn a_prefix_within_that_of_another_database_is_refused() {
    let bucket: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let outer = "helenus store 5, slatedb 0.18\n".into();
    bucket.put(&Path::from("a/b/fleet/id"), outer).await.unwrap();
    let within = Refusal::Within {
        prefix: "a/b".to_owned(),
    };
    for (prefix, refusal) in [
        ("a/b/stores/9", Some(within.clone())),
        ("a/b/c", Some(within)),
        ("a", Some(Refusal::NotOurs)),
        ("a/bc", None),
        ("b", None),
    ] {
        let reached = Reached::below(&bucket, prefix);
        assert_eq!(refuse_others(&reached).await.err(), refusal, "{prefix}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_takes_one_change_of_an_object_a_second_is_fit_and_keeps_a_lease() {
    let (store, reached) = lying(Lie::TakesOneASecond);
    claim(&reached, wish(7, Logs::Own)).await.unwrap();
    assert_eq!(objects(&store).await, ["fleet/id"]);
    let reach = Reach::default();
    for _ in 0..3 {
        let owner = Owner::acquire(&reached, &reach, Clock::system(), || {}).await.unwrap();
        let before = store.puts.load(Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(20)).await;
        let renewals = store.puts.load(Ordering::SeqCst) - before;
        assert!((10..=20).contains(&renewals), "at most one a second: {renewals}");
        owner.release().await;
        let lease = store.inner.get(&Path::from("fleet/owner")).await.unwrap();
        let lease = String::from_utf8(lease.bytes().await.unwrap().to_vec()).unwrap();
        assert_eq!(lease.lines().nth(3), Some("released"), "{lease}");
    }
}

#[test]
fn settings_that_mean_nothing_are_refused_and_secrets_in_them_not_shown() {
    let refused = |url: &str, reach: Reach| {
        let Url::Bucket(address) = url.parse().unwrap() else {
            panic!()
        };
        Reached::new(&address, &reach).unwrap_err().to_string()
    };
    let endpoint = |text: &str| Reach {
        endpoint: Some(text.to_owned()),
        ..Reach::default()
    };
    for text in [
        "localhost:9000",
        "http://KEY:SECRET@localhost",
        "https://x/?sig=SECRET",
        "ftp://x",
    ] {
        let told = refused("s3://b/p", endpoint(text));
        assert!(
            told.contains("bucket-endpoint is written") && !told.contains("SECRET"),
            "{told}"
        );
    }
    assert!(refused("az://emulator/c/p", endpoint("http://localhost:1")).contains("AZURITE_BLOB_STORAGE_URL"));
    let encrypted = Reach {
        encryption: "kms:k".parse().unwrap(),
        ..Reach::default()
    };
    assert!(refused("gs://b/p", encrypted).contains("is S3's"));
    let short = Reach {
        lease: Some(Duration::from_secs(1)),
        ..Reach::default()
    };
    assert!(refused("gs://b/p", short).contains("bucket-lease is at least 2500"));
    let trusting = Reach {
        ca_file: Some("/nowhere.pem".into()),
        ..Reach::default()
    };
    assert!(refused("s3://b/p", trusting).contains("/nowhere.pem"));
    assert!("kms:".parse::<Encryption>().is_err() && "aes".parse::<Encryption>().is_err());
}
