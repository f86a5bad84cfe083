//! The fleet's secret over stores that race, lose answers and are throttled.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::stream::BoxStream;
use slatedb::object_store::memory::InMemory;
use slatedb::object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutResult, Result as StoreResult,
};

use super::*;

/// A store whose puts do what they should, and then fail some times.
#[derive(Debug)]
struct Failing {
    inner: InMemory,
    /// Puts that are done, and whose answer is lost.
    lost: AtomicU32,
    /// Puts that are throttled, and not done.
    throttled: AtomicU32,
}

impl fmt::Display for Failing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a failing store")
    }
}

fn is_due(left: &AtomicU32) -> bool {
    let less = |left: u32| left.checked_sub(1);
    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok()
}

fn answered(text: &'static str) -> StoreError {
    StoreError::Generic {
        store: "bucket",
        source: text.into(),
    }
}

#[async_trait::async_trait]
impl ObjectStore for Failing {
    async fn put_opts(&self, at: &Path, body: PutPayload, options: PutOptions) -> StoreResult<PutResult> {
        if is_due(&self.throttled) {
            return Err(answered(
                "status code: 429 Too Many Requests: <Error><Code>SlowDown</Code></Error>",
            ));
        }
        let put = self.inner.put_opts(at, body, options).await?;
        if is_due(&self.lost) {
            return Err(answered(
                "status code: 503 Service Unavailable: <Error><Code>InternalError</Code></Error>",
            ));
        }
        Ok(put)
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(at, options).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> StoreResult<GetResult> {
        tokio::task::yield_now().await;
        self.inner.get_opts(at, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, StoreResult<Path>>) -> BoxStream<'static, StoreResult<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> StoreResult<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> StoreResult<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

fn bucket(lost: u32, throttled: u32) -> (Arc<Failing>, Reached) {
    let store = Arc::new(Failing {
        inner: InMemory::new(),
        lost: lost.into(),
        throttled: throttled.into(),
    });
    let reached = Reached::of(Arc::clone(&store) as _);
    (store, reached)
}

const A: SecretBytes = [0xA1; 32];
const B: SecretBytes = [0xB2; 32];
const C: SecretBytes = [0xC3; 32];

const fn secrets_of(current: SecretBytes, next: Option<SecretBytes>) -> PeerSecrets {
    PeerSecrets { current, next }
}

#[tokio::test(start_paused = true)]
async fn nodes_that_start_together_agree_on_one_secret() {
    for lost in [0, 1, 3] {
        let (_, reached) = bucket(lost, 0);
        let all = (0..8).map(|node: u8| secrets(&reached, [node; 32]));
        let all = futures::future::join_all(all).await;
        let first = all[0].clone().unwrap();
        assert!(all.iter().all(|found| *found == Ok(first.clone())), "{lost}");
        assert_eq!(secrets(&reached, C).await, Ok(first));
    }
}

#[tokio::test(start_paused = true)]
async fn a_secret_is_changed_in_two_steps_which_may_be_repeated() {
    for (lost, throttled) in [(0, 0), (1, 0), (0, 2), (2, 3)] {
        let (store, reached) = bucket(0, 0);
        assert_eq!(secrets(&reached, A).await, Ok(secrets_of(A, None)));
        store.lost.store(lost, Ordering::SeqCst);
        store.throttled.store(throttled, Ordering::SeqCst);
        assert_eq!(change(&reached, SecretChange::End).await, Ok(secrets_of(A, None)));
        let both = Ok(secrets_of(A, Some(B)));
        assert_eq!(change(&reached, SecretChange::Begin(B)).await, both);
        assert_eq!(
            change(&reached, SecretChange::Begin(C)).await,
            both,
            "one change at a time"
        );
        assert_eq!(secrets(&reached, C).await, both);
        store.lost.store(lost, Ordering::SeqCst);
        assert_eq!(change(&reached, SecretChange::End).await, Ok(secrets_of(B, None)));
        assert_eq!(change(&reached, SecretChange::End).await, Ok(secrets_of(B, None)));
    }
}

#[tokio::test(start_paused = true)]
async fn two_changes_at_once_become_one() {
    let (_, reached) = bucket(0, 0);
    secrets(&reached, A).await.unwrap();
    let (one, other) = tokio::join!(
        change(&reached, SecretChange::Begin(B)),
        change(&reached, SecretChange::Begin(C))
    );
    assert_eq!(one, other);
    let next = one.unwrap().next.unwrap();
    let (one, other) = tokio::join!(change(&reached, SecretChange::End), change(&reached, SecretChange::End));
    assert_eq!(
        (&one, &other),
        (&Ok(secrets_of(next, None)), &Ok(secrets_of(next, None)))
    );
}

#[tokio::test(start_paused = true)]
async fn a_bucket_that_takes_no_put_is_an_error_after_a_while() {
    let (_, reached) = bucket(0, u32::MAX);
    let error = secrets(&reached, A).await.unwrap_err();
    assert!(matches!(error, Refusal::Unreachable { .. }), "{error}");
    let none = change(&reached, SecretChange::Begin(B)).await.unwrap_err();
    assert!(matches!(none, Refusal::NoSecret { .. }), "{none}");
}

#[tokio::test]
async fn another_form_is_refused_and_never_shown() {
    let line = hex(&A);
    for (text, is_other) in [
        (format!("helenus secret 2\n{line}\n"), true),
        (format!("helenus secret 2 {line}\n"), true),
        (format!("{line}\n"), false),
        (String::new(), false),
        (format!("{FORMAT}\n"), false),
        (format!("{FORMAT}\n{}\n", &line[1..]), false),
        (format!("{FORMAT}\n{line}\n{}x\n", &line[1..]), false),
        (format!("{FORMAT}\n{line}\n{line}\n{line}\n"), false),
        (format!("{FORMAT}\n{}\n", "é".repeat(32)), false),
    ] {
        let (store, reached) = bucket(0, 0);
        store.inner.put(&Path::from(SECRET), text.clone().into()).await.unwrap();
        let error = secrets(&reached, B).await.unwrap_err();
        assert_eq!(
            matches!(error, Refusal::OtherFormat { .. }),
            is_other,
            "{text}: {error}"
        );
        assert_eq!(
            matches!(error, Refusal::DamagedSecret { .. }),
            !is_other,
            "{text}: {error}"
        );
        assert!(!format!("{error} {error:?}").contains("a1a1"), "{error:?}");
    }
    let shown = format!("{:?} {:?}", secrets_of(A, Some(A)), SecretChange::Begin(A));
    assert!(!shown.contains("161") && !shown.contains("a1"), "{shown}");
}
