//! Wraps the object store that SlateDB uses, and records the failures and puts that this engine needs.
//!
//! ```text
//! SlateDB ─ put ─► refused once the medium is lost ─► sealed (sealed.rs) ─► put ─► noted (put_record.rs) ─► answered
//!         ─ get ─► read here, so that a failing disk is met here ─► seal checked and removed ─► answered
//!                                     └─ failure ─► its meaning (failures.rs), kept with the object's name
//! ```
//! Bodies are passed on, never copied, and only the small objects that have no checksum are hashed.
//!
//! **Lost** is permanent: the first such failure is kept, nothing is written after it, and all stores of the bucket are
//! lost with it ([`super::Store::lost`]). **Full** ends with the next put that succeeds.
//!
//! **A bucket** of a cloud is lost only when another server has taken it over. Its failures are transient, or are
//! refusals of one sentence ([`Refusal`]), and name no object.
//!
//! Sizes in listings are those of the real objects, seals included: SlateDB uses them only to distinguish empty log
//! objects from others.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt, future, stream};
use slatedb::object_store::path::Path;
use slatedb::object_store::{
    CopyOptions, Error as StoreError, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result as StoreResult, UploadPart,
};

use super::clock::{LastPut, Ticks};
use super::failures::{Meaning, at_object, carried, system_error};
use super::known::{self, Known, Removals};
use super::places::{Folder, database_of, is_of_clean_up, is_of_shared_log, is_sealed, numbered};
use super::put_record::{Body, PutRecord};
use super::sealed::{Belongs, seal, unseal};
use crate::storage::Error;
use crate::storage::bucket_refusal::Refusal;
use crate::storage::identity::Identity;

/// Longest time of a small request to a bucket, and the largest size of such a request.
const SMALL_REQUEST_MAX: Duration = Duration::from_secs(3);
const SMALL_REQUEST_BYTES_MAX: usize = 256 << 10;

/// The object store of a bucket, for all its databases.
pub(super) struct Medium {
    inner: Arc<dyn ObjectStore>,
    /// Its state, including the failure that ended it; shared with all of its readers and writers.
    state: Arc<State>,
    /// Records of puts of open databases, by the database's path.
    notes: ArcSwap<HashMap<String, Arc<PutRecord>>>,
    /// The last puts of open databases of a bucket, by the database's path.
    last_puts: ArcSwap<HashMap<String, Arc<LastPut>>>,
}

/// What the medium has of its owner.
struct Owned {
    /// Whether this process owns the bucket.
    is_owner: Box<dyn Fn() -> bool + Send + Sync>,
    known: Arc<Known>,
}

/// The state of the medium.
struct State {
    /// The database's number.
    database: u64,
    /// Its directory. `None` means memory or a bucket.
    root: Option<PathBuf>,
    /// The URL, if it is a bucket of a cloud.
    url: Option<Arc<str>>,
    lost: ArcSwapOption<Error>,
    full: ArcSwapOption<Error>,
    /// Unset: the medium has no owner.
    owner: OnceLock<Owned>,
}

impl Medium {
    pub(super) fn new(inner: Arc<dyn ObjectStore>, root: Option<PathBuf>, of: Identity) -> Self {
        Self::with(inner, root, None, of)
    }

    /// A bucket of a cloud, whose failures name its URL.
    pub(super) fn remote(inner: Arc<dyn ObjectStore>, url: Arc<str>, of: Identity) -> Self {
        Self::with(inner, None, Some(url), of)
    }

    fn with(inner: Arc<dyn ObjectStore>, root: Option<PathBuf>, url: Option<Arc<str>>, of: Identity) -> Self {
        let state = State {
            database: of.database,
            root,
            url,
            lost: ArcSwapOption::empty(),
            full: ArcSwapOption::empty(),
            owner: OnceLock::new(),
        };
        Self {
            inner,
            state: Arc::new(state),
            notes: ArcSwap::default(),
            last_puts: ArcSwap::default(),
        }
    }

    /// From now on manifests are put and removed, and the shared log is put, only while this process owns the bucket.
    /// One that was paused and replaced would end the databases of the new owner with a manifest, and could acknowledge
    /// what it puts in the log where the new owner has removed objects. Meanwhile manifests are read once ([`Known`]).
    pub(super) fn ask_owner(&self, is_owner: impl Fn() -> bool + Send + Sync + 'static, ticks: &Arc<Ticks>) {
        let owned = Owned {
            is_owner: Box::new(is_owner),
            known: Arc::new(Known::new(Arc::clone(ticks))),
        };
        drop(self.state.owner.set(owned));
    }

    /// The failure that ended it. `None` means that there was none.
    pub(super) fn lost(&self) -> Option<Arc<Error>> {
        self.state.lost.load_full()
    }

    /// Ends the medium: nothing more is written, and all its stores are lost.
    pub(super) fn end(&self, error: Error) {
        self.state
            .lost
            .compare_and_swap(&None::<Arc<Error>>, Some(Arc::new(error)));
    }

    /// The failure of the last write if it found the disk full.
    pub(super) fn full(&self) -> Option<Arc<Error>> {
        self.state.full.load_full()
    }

    /// The file of an object, or its name if the medium has no files.
    pub(super) fn file(&self, location: &Path) -> PathBuf {
        self.state.file(location)
    }

    /// From now on records puts of a database, and replaces its earlier record.
    pub(super) fn begin_put_record(&self, database: &str, note: PutRecord) {
        let note = Arc::new(note);
        self.notes.rcu(|notes| {
            let mut notes = HashMap::clone(notes);
            notes.insert(database.to_owned(), Arc::clone(&note));
            notes
        });
    }

    /// The number of the database.
    pub(super) fn number(&self) -> u64 {
        self.state.database
    }

    /// The last object of a database's log that was put, and the checksum of its bytes. `None` means that its puts are not
    /// recorded.
    pub(super) fn last_of_log(&self, database: &str) -> Option<(u64, u32)> {
        self.notes.load().get(database).map(|note| note.last_of_log())
    }

    /// Records that a database is closed, and nothing is put in it any more. Returns whether that is recorded.
    pub(super) fn close_put_record(&self, database: &str) -> bool {
        let closed = self.notes.load().get(database).map(|note| note.close());
        if let Some(Err(error)) = &closed {
            tracing::warn!(%error, database, "could not record that the database is closed");
        }
        matches!(closed, Some(Ok(())))
    }

    /// Stops recording puts of a database.
    pub(super) fn end_put_record(&self, database: &str) {
        self.notes.rcu(|notes| {
            let mut notes = HashMap::clone(notes);
            notes.remove(database);
            notes
        });
    }

    /// From now on dates the puts of a database, for its polls.
    pub(super) fn date_puts(&self, database: &str, last_put: &Arc<LastPut>) {
        self.last_puts.rcu(|last_puts| {
            let mut last_puts = HashMap::clone(last_puts);
            last_puts.insert(database.to_owned(), Arc::clone(last_put));
            last_puts
        });
    }

    fn date_put(&self, location: &Path) {
        // What was removed calls for no poll.
        if is_of_clean_up(location) {
            return;
        }
        let last_puts = self.last_puts.load();
        if !last_puts.is_empty()
            && let Some(last_put) = last_puts.get(database_of(location))
        {
            last_put.is_now();
        }
    }

    fn note(&self, location: &Path, body: Body) -> StoreResult<()> {
        let Some((database, folder, id)) = numbered(location) else {
            return Ok(());
        };
        let Some(note) = self.notes.load().get(database).cloned() else {
            return Ok(());
        };
        note.add(folder, id, body)
            .map_err(|(path, error)| self.state.failed_at("writing", path, error))
    }

    /// What the record of puts keeps of an object.
    fn body(&self, location: &Path, payload: &PutPayload) -> Body {
        let is_of_log = numbered(location).is_some_and(|(_, folder, _)| folder == Folder::Log);
        let mut sum = crc32fast::Hasher::new();
        if is_of_log && !self.notes.load().is_empty() {
            payload.iter().for_each(|part| sum.update(part));
        }
        Body {
            is_empty: payload.content_length() == 0,
            sum: sum.finalize(),
        }
    }

    /// A small request. If a bucket does not answer, the request fails soon and is tried again on another connection.
    async fn soon<T>(
        &self,
        operation: &'static str,
        location: &Path,
        call: impl Future<Output = StoreResult<T>>,
    ) -> StoreResult<T> {
        let answer = match &self.state.url {
            None => call.await,
            Some(url) => match tokio::time::timeout(SMALL_REQUEST_MAX, call).await {
                Ok(answer) => answer,
                Err(_) => return Err(unreachable(url)),
            },
        };
        answer.map_err(|error| self.state.failed(operation, location, error))
    }

    /// A manifest or such: what the owner knows of it, or the bucket's answer, which is kept.
    async fn get_sealed(&self, location: &Path, options: GetOptions) -> StoreResult<GetResult> {
        let Some((known, question)) = self.state.known().map(|known| (known, known.get(location, &options))) else {
            return self.get_unsealed(location, options).await.map(|(got, _)| got);
        };
        let question = match question {
            Ok(answer) => return answer,
            Err(question) => question,
        };
        let Some(question) = question else {
            return self.get_unsealed(location, options).await.map(|(got, _)| got);
        };
        // Without its conditions, so that an object that has not changed becomes known.
        let unconditional = GetOptions {
            range: options.range.clone(),
            version: options.version.clone(),
            head: options.head,
            ..GetOptions::default()
        };
        let got = self.get_unsealed(location, unconditional).await;
        match &got {
            Ok((result, body)) => known.has_got(&question, Some((&result.meta, body))),
            Err(StoreError::NotFound { .. }) => known.has_got(&question, None),
            Err(_) => {}
        }
        let (result, _) = got?;
        options.check_preconditions(&result.meta)?;
        Ok(result)
    }

    /// Reads an object, checks and removes its seal. Returns the requested part and the whole body.
    async fn get_unsealed(&self, location: &Path, options: GetOptions) -> StoreResult<(GetResult, Bytes)> {
        let whole = GetOptions {
            range: None,
            head: false,
            ..options.clone()
        };
        let got = async {
            let result = self.inner.get_opts(location, whole).await?;
            let (meta, attributes) = (result.meta.clone(), result.attributes.clone());
            Ok((meta, attributes, result.bytes().await?))
        };
        let (mut meta, attributes, object) = self.soon("reading", location, got).await?;
        let Some(body) = unseal(&object, self.state.belongs(location)) else {
            let damaged = Error::Corrupt {
                path: self.file(location),
                what: "its bytes are not those of its checksum, or it is another store's object".to_owned(),
            };
            return Err(carried(damaged, false));
        };
        meta.size = body.len() as u64;
        let range = match &options.range {
            None => 0..meta.size,
            Some(range) => within(range, meta.size),
        };
        let part = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(body.len());
        let bytes = body.slice(part(range.start)..part(range.end));
        let result = GetResult {
            payload: one(bytes),
            meta,
            range,
            attributes,
            extensions: Default::default(),
        };
        Ok((result, body))
    }

    /// A list from the store.
    fn list_of_store(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        let (state, folder) = (Arc::clone(&self.state), prefix.cloned().unwrap_or_default());
        let listed = self.inner.list(prefix);
        listed
            .map(move |meta| meta.map_err(|error| state.failed("listing", &folder, error)))
            .boxed()
    }
}

/// The requested part of an object of this size.
fn within(range: &GetRange, size: u64) -> Range<u64> {
    let (start, end) = match range {
        GetRange::Bounded(range) => (range.start, range.end),
        GetRange::Offset(start) => (*start, size),
        GetRange::Suffix(bytes) => (size.saturating_sub(*bytes), size),
    };
    start.min(size)..end.clamp(start.min(size), size)
}

/// Whether an error is an expected answer, such as a missing object.
fn is_answer(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::NotFound { .. }
            | StoreError::AlreadyExists { .. }
            | StoreError::Precondition { .. }
            | StoreError::NotModified { .. }
            | StoreError::NotImplemented { .. }
            | StoreError::NotSupported { .. }
    )
}

/// Classifies a failure of a bucket. It is never permanent: the service keeps the objects.
fn of_bucket(url: &str, error: &StoreError) -> StoreError {
    let refusal = crate::storage::bucket::refusal(error);
    let may_pass = refusal.may_pass();
    let url = url.to_owned();
    carried(Error::Bucket { url, refusal }, may_pass)
}

fn unreachable(url: &str) -> StoreError {
    let refusal = Refusal::Unreachable {
        what: format!("no answer in {} s", SMALL_REQUEST_MAX.as_secs()),
    };
    let url = url.to_owned();
    carried(Error::Bucket { url, refusal }, true)
}

fn one(bytes: Bytes) -> GetResultPayload {
    GetResultPayload::Stream(stream::once(future::ready(Ok(bytes))).boxed())
}

impl State {
    fn file(&self, location: &Path) -> PathBuf {
        let name = location.as_ref();
        self.root
            .as_ref()
            .map_or_else(|| PathBuf::from(name), |root| root.join(name))
    }

    fn belongs<'p>(&self, location: &'p Path) -> Belongs<'p> {
        Belongs {
            database: self.database,
            path: location,
        }
    }

    /// Whether this process owns the bucket now.
    fn is_owner(&self) -> bool {
        self.owner.get().is_none_or(|owned| (owned.is_owner)())
    }

    /// What the owner knows of manifests and such. `None` means that this process is not the owner now.
    fn known(&self) -> Option<&Known> {
        let owned = self.owner.get().filter(|owned| (owned.is_owner)())?;
        Some(&owned.known)
    }

    /// Refuses once the medium is lost, and to change manifests and the shared log without the lease. May pass: the
    /// lease may be renewed yet.
    fn may_change(&self, location: &Path) -> StoreResult<()> {
        self.may_write()?;
        if is_sealed(location) || is_of_shared_log(location) {
            self.needs_owner()?;
        }
        Ok(())
    }

    fn needs_owner(&self) -> StoreResult<()> {
        match &self.url {
            Some(url) if !self.is_owner() => {
                let refusal = Refusal::Unreachable {
                    what: "its lease is not held now".to_owned(),
                };
                let url = url.to_string();
                Err(carried(Error::Bucket { url, refusal }, true))
            }
            _ => Ok(()),
        }
    }

    /// Forgets what was known of an object's folder.
    fn forget(&self, location: &Path) {
        if let Some(owned) = self.owner.get() {
            owned.known.forget(location);
        }
    }

    /// Refuses once the medium is lost.
    fn may_write(&self) -> StoreResult<()> {
        match self.lost.load_full() {
            Some(lost) => Err(carried(Error::clone(&lost), false)),
            None => Ok(()),
        }
    }

    fn has_written(&self) {
        if self.full.load().is_some() {
            self.full.store(None);
        }
    }

    /// Records the class of a failure and names its object. An error that is no failure of the medium is passed on.
    fn failed(&self, operation: &'static str, location: &Path, error: StoreError) -> StoreError {
        match error {
            error
                if let Some(url) = &self.url
                    && !is_answer(&error) =>
            {
                of_bucket(url, &error)
            }
            StoreError::NotFound { .. }
            | StoreError::AlreadyExists { .. }
            | StoreError::Precondition { .. }
            | StoreError::NotModified { .. }
            | StoreError::NotImplemented { .. }
            | StoreError::NotSupported { .. } => error,
            error => match system_error(&error).filter(|_| self.url.is_none()) {
                Some(system) => self.failed_at(operation, self.file(location), system),
                None => error,
            },
        }
    }

    fn failed_at(&self, operation: &'static str, path: PathBuf, system: std::io::Error) -> StoreError {
        let meaning = Meaning::of(&system);
        let error = match (meaning, &self.root) {
            (Meaning::Full, Some(root)) => Error::DiskFull {
                directory: root.clone(),
            },
            _ => at_object(operation, path, system),
        };
        match meaning {
            Meaning::Lost => {
                let first = self
                    .lost
                    .compare_and_swap(&None::<Arc<Error>>, Some(Arc::new(error.clone())));
                if first.is_none() {
                    tracing::error!(%error, "the medium is lost");
                }
            }
            Meaning::Full => self.full.store(Some(Arc::new(error.clone()))),
            Meaning::Passing | Meaning::Other => {}
        }
        carried(error, meaning == Meaning::Passing)
    }
}

impl fmt::Debug for Medium {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Medium").finish_non_exhaustive()
    }
}

impl fmt::Display for Medium {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(out)
    }
}

#[async_trait::async_trait]
impl ObjectStore for Medium {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> StoreResult<PutResult> {
        self.state.may_change(location)?;
        let body = self.body(location, &payload);
        // Known while this process is the owner, and forgotten always.
        let begun = self.state.owner.get().filter(|_| is_sealed(location)).map(|owned| {
            let body = Bytes::from(payload.clone());
            (owned.known.begin_put(location), body)
        });
        let payload = match is_sealed(location) {
            true => seal(&payload, self.state.belongs(location)),
            false => payload,
        };
        let bytes = payload.content_length();
        let is_small = payload.content_length() <= SMALL_REQUEST_BYTES_MAX;
        let put = self.inner.put_opts(location, payload, options);
        let put = if is_small {
            self.soon("writing", location, put).await?
        } else {
            put.await
                .map_err(|error| self.state.failed("writing", location, error))?
        };
        if is_of_shared_log(location) {
            // Without the lease, another owner may have read the log before, and removed the object of this number.
            self.state.needs_owner()?;
        }
        self.state.has_written();
        self.date_put(location);
        if let Some((begun, known)) = begun {
            begun.done(&put, known, bytes);
        }
        self.note(location, body)?;
        Ok(put)
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        self.state.may_write()?;
        let upload = self.inner.put_multipart_opts(location, options).await;
        let upload = upload.map_err(|error| self.state.failed("writing", location, error))?;
        // The table that it is for is named by a put after it.
        self.date_put(location);
        Ok(Box::new(Upload {
            inner: upload,
            location: location.clone(),
            state: Arc::clone(&self.state),
        }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> StoreResult<GetResult> {
        if is_sealed(location) {
            return self.get_sealed(location, options).await;
        }
        let failed = |error| self.state.failed("reading", location, error);
        let is_head = options.head;
        let got = self.inner.get_opts(location, options);
        let result = self.soon("reading", location, got).await?;
        if is_head || matches!(result.payload, GetResultPayload::Stream(_)) {
            return Ok(result);
        }
        let (meta, range) = (result.meta.clone(), result.range.clone());
        let (attributes, extensions) = (result.attributes.clone(), result.extensions.clone());
        let bytes = result.bytes().await.map_err(failed)?;
        Ok(GetResult {
            payload: one(bytes),
            meta,
            range,
            attributes,
            extensions,
        })
    }

    fn delete_stream(&self, locations: BoxStream<'static, StoreResult<Path>>) -> BoxStream<'static, StoreResult<Path>> {
        let [before, after] = [(); 2].map(|()| Arc::clone(&self.state));
        let owned = self.state.owner.get();
        let removals = owned.map(|owned| Arc::new(Removals::new(&owned.known)));
        let begun = removals.clone();
        let may_remove = move |location: StoreResult<Path>| {
            let location = location?;
            before.may_change(&location)?;
            if let Some(begun) = &begun {
                begun.begin(&location);
            }
            Ok(location)
        };
        let deleted = self.inner.delete_stream(locations.map(may_remove).boxed());
        let whole = Path::default();
        deleted
            .inspect(move |deleted| {
                if let (Some(removals), Ok(location)) = (&removals, deleted) {
                    removals.done(location);
                }
            })
            .map(move |deleted| deleted.map_err(|error| after.failed("removing an object of", &whole, error)))
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        let question = match (self.state.known(), prefix) {
            (Some(known), Some(prefix)) => match known.list(prefix) {
                Ok(objects) => return known::listed(objects),
                Err(question) => question,
            },
            _ => None,
        };
        let listed = self.list_of_store(prefix);
        let Some(question) = question else { return listed };
        // The folder is small, so it is listed to its end before the first object is passed on.
        let state = Arc::clone(&self.state);
        let whole = async move {
            let objects: Vec<ObjectMeta> = listed.try_collect().await?;
            if let Some(known) = state.known() {
                known.has_listed(&question, objects.clone());
            }
            Ok::<_, StoreError>(known::listed(objects))
        };
        stream::once(whole).try_flatten().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> StoreResult<ListResult> {
        let folder = prefix.cloned().unwrap_or_default();
        self.soon("listing", &folder, self.inner.list_with_delimiter(prefix))
            .await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> StoreResult<()> {
        self.state.may_change(to)?;
        let copied = self.inner.copy_opts(from, to, options).await;
        self.state.forget(to);
        copied.map_err(|error| self.state.failed("writing", to, error))
    }
}

/// A large object that is put in parts.
#[derive(Debug)]
struct Upload {
    inner: Box<dyn MultipartUpload>,
    location: Path,
    state: Arc<State>,
}

impl fmt::Debug for State {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("State").finish_non_exhaustive()
    }
}

#[async_trait::async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, part: PutPayload) -> UploadPart {
        if let Err(error) = self.state.may_write() {
            return future::ready(Err(error)).boxed();
        }
        let (state, location) = (Arc::clone(&self.state), self.location.clone());
        let put = self.inner.put_part(part);
        put.map(move |put| put.map_err(|error| state.failed("writing", &location, error)))
            .boxed()
    }

    async fn complete(&mut self) -> StoreResult<PutResult> {
        self.state.may_write()?;
        let completed = self.inner.complete().await;
        let completed = completed.map_err(|error| self.state.failed("writing", &self.location, error))?;
        self.state.has_written();
        Ok(completed)
    }

    async fn abort(&mut self) -> StoreResult<()> {
        self.inner.abort().await
    }
}

#[cfg(test)]
mod tests {
    use slatedb::object_store::ObjectStoreExt;
    use slatedb::object_store::memory::InMemory;

    use super::super::places::{Folder, boundary};
    use super::*;
    use helenus_base::clock::Clock;

    /// A process that was paused and replaced wakes up: a manifest of it would end the databases of the one that
    /// replaced it.
    #[tokio::test]
    async fn no_manifest_and_no_log_is_put_without_the_lease() {
        for (is_owner, is_put) in [(None, true), (Some(true), true), (Some(false), false)] {
            let medium = Medium::remote(Arc::new(InMemory::new()), "s3://bucket/p".into(), Identity::default());
            if let Some(is_owner) = is_owner {
                medium.ask_owner(move || is_owner, &Arc::new(Ticks::new(Clock::manual(0))));
            }
            for (location, is_put) in [
                (Folder::Manifests.object("stores/1", 7), is_put),
                (Folder::Compactions.object("engine", 2), is_put),
                (boundary("engine", Folder::Manifests), is_put),
                (Path::from("log/00000000000000000001.log"), is_put),
                (Path::from("engine/wal/00000000000000000001.sst"), true),
                (Path::from("engine/compacted/01J79C21YKR31J2BS1EFXJZ7MR.sst"), true),
            ] {
                let put = medium.put(&location, PutPayload::from_static(b"1")).await;
                assert_eq!(put.is_ok(), is_put, "{location}");
                if let Err(error) = put {
                    assert!(format!("{error:?}").contains("its lease is not held now"), "{error:?}");
                }
            }
        }
    }
}
