//! What the owner of a bucket knows of the small objects that only it puts and removes: manifests, lists of compactions,
//! and the boundaries of clean-ups. SlateDB reads them again and again, each of its parts for itself: eight databases
//! would take some 500 requests to open, one after another, and ask many times a minute while nothing happens.
//!
//! ```text
//! list, get ─► owner, and known? ─► answered here
//!                    └─ no ─► the bucket ─► kept, unless something was put or removed meanwhile
//! put       ─► done ─► kept
//!           └─ failed, refused, given up ─► forgotten: the object may be there, or come later
//! removal   ─► done ─► the object is left out
//!           └─ failed, given up ─► forgotten
//! ```
//! An answer that comes after a put or removal is not kept if it was asked for before.
//!
//! **Why this is right.** Nobody else puts such an object while the lease is held ([`super::medium::Medium::ask_owner`]),
//! except a former owner whose put was on its way when it lost the lease. An answer from here is then one that the bucket
//! gave before that put arrived. SlateDB puts each number once: its next put meets the late object, is refused, and so
//! makes this module forget. Answers come from here only while the lease is held, so a server that was replaced asks the
//! bucket.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, future};
use slatedb::object_store::path::Path;
use slatedb::object_store::{
    Error as StoreError, GetOptions, GetResult, GetResultPayload, ObjectMeta, PutResult, Result as StoreResult,
};
use slatedb_common::clock::SystemClock;

use super::clock::Ticks;
use super::places::{Folder, boundary_of, database_of, folder_of, numbered};

/// Largest object that is kept. Larger ones are read again.
const OBJECT_BYTES_MAX: usize = 1 << 20;

/// Most folders that are known, two of each database. Then all are forgotten: those of removed databases are among them.
const FOLDERS_MAX: usize = 1024;

/// Small objects of all databases of a bucket.
pub(super) struct Known {
    ticks: Arc<Ticks>,
    folders: Mutex<Folders>,
}

#[derive(Default)]
struct Folders {
    /// By the database's path.
    known: HashMap<(String, Folder), Objects>,
    /// Counts the puts and removals in all folders.
    changes: u64,
    /// The number of changes when all folders were forgotten last.
    forgotten: u64,
}

/// A folder's objects, and its boundary of clean-ups.
#[derive(Default)]
struct Objects {
    /// The number of the last put or removal.
    changed: u64,
    /// `None` means not known.
    listed: Option<BTreeMap<u64, ObjectMeta>>,
    newest: Option<(u64, Bytes)>,
    /// `None` means not known, `Some(None)` that there is none.
    boundary: Option<Option<(ObjectMeta, Bytes)>>,
}

/// An object of a folder.
#[derive(Clone, Copy, Debug)]
enum Name {
    Numbered(u64),
    Boundary,
}

/// A question to the bucket, whose answer may be kept.
#[derive(Debug)]
pub(super) struct Question {
    of: (String, Folder),
    name: Option<Name>,
    /// The number of changes before it.
    changes: u64,
}

/// A put under way. If it is dropped before it is done, what was known of the folder is forgotten.
pub(super) struct Put<'k> {
    known: &'k Known,
    location: Path,
    of: Option<((String, Folder), Name)>,
}

/// Removals under way. When this is dropped, what was known of the folders of those that were not confirmed is forgotten.
pub(super) struct Removals {
    known: Arc<Known>,
    begun: Mutex<HashSet<Path>>,
}

/// The folder that an object belongs to, and its name there. `None` means that nothing is known of such objects.
fn place(location: &Path) -> Option<((String, Folder), Name)> {
    let (database, folder, name) = match numbered(location) {
        Some((database, folder, id)) => (database, folder, Name::Numbered(id)),
        None => (database_of(location), boundary_of(location)?, Name::Boundary),
    };
    (folder != Folder::Log).then(|| ((database.to_owned(), folder), name))
}

impl Known {
    pub(super) fn new(ticks: Arc<Ticks>) -> Self {
        Self {
            ticks,
            folders: Mutex::default(),
        }
    }

    fn folders(&self) -> MutexGuard<'_, Folders> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer for an object. An error with a question means that the bucket must be asked.
    pub(super) fn get(
        &self,
        location: &Path,
        options: &GetOptions,
    ) -> Result<StoreResult<GetResult>, Option<Question>> {
        let (of, name) = place(location).ok_or(None)?;
        let folders = self.folders();
        let answer = folders.known.get(&of).and_then(|objects| objects.get(location, name));
        let changes = folders.changes;
        drop(folders);
        let is_of_part = options.range.is_some() || options.version.is_some();
        match answer {
            Some(answer) if !is_of_part => Ok(answer.and_then(|(meta, body)| whole(meta, body, options))),
            _ => Err(Some(Question {
                of,
                name: Some(name),
                changes,
            })),
        }
    }

    /// The objects of a folder. An error with a question means that the bucket must be asked.
    pub(super) fn list(&self, prefix: &Path) -> Result<Vec<ObjectMeta>, Option<Question>> {
        let (database, folder) = folder_of(prefix)
            .filter(|(_, folder)| *folder != Folder::Log)
            .ok_or(None)?;
        let of = (database.to_owned(), folder);
        let folders = self.folders();
        let objects = folders.known.get(&of);
        let listed = objects.and_then(|objects| Some(objects.listed.as_ref()?.values().cloned().collect()));
        let changes = folders.changes;
        drop(folders);
        listed.ok_or(Some(Question {
            of,
            name: None,
            changes,
        }))
    }

    /// Keeps an answer, unless its folder was changed after the question.
    fn answered(&self, question: &Question, keep: impl FnOnce(&mut Objects)) {
        let mut folders = self.folders();
        let changed = folders.known.get(&question.of).map_or(0, |objects| objects.changed);
        if changed.max(folders.forgotten) <= question.changes {
            keep(folders.of(question.of.clone()));
        }
    }

    /// Keeps the whole body that the bucket returned. `None` means that there is no such object.
    pub(super) fn has_got(&self, question: &Question, object: Option<(&ObjectMeta, &Bytes)>) {
        if object.is_some_and(|(_, body)| body.len() > OBJECT_BYTES_MAX) {
            return;
        }
        let copied = object.map(|(meta, body)| (meta.clone(), body.clone()));
        self.answered(question, |objects| match (question.name, copied) {
            (Some(Name::Boundary), copied) => objects.boundary = Some(copied),
            (Some(Name::Numbered(id)), Some((_, body))) => objects.read(id, body),
            (Some(Name::Numbered(_)), None) | (None, _) => {}
        });
    }

    /// Keeps a whole list that the bucket returned.
    pub(super) fn has_listed(&self, question: &Question, listed: Vec<ObjectMeta>) {
        let folder = question.of.1;
        let numbered = listed
            .into_iter()
            .map(|meta| Some((folder.id(meta.location.filename()?)?, meta)));
        // A file that is none of SlateDB's is SlateDB's to warn of.
        if let Some(numbered) = numbered.collect() {
            self.answered(question, |objects| objects.listed = Some(numbered));
        }
    }

    pub(super) fn begin_put(&self, location: &Path) -> Put<'_> {
        Put {
            known: self,
            location: location.clone(),
            of: place(location),
        }
    }

    /// Forgets a folder into which an object may have been put, or from which one may have been removed.
    pub(super) fn forget(&self, location: &Path) {
        if let Some((of, _)) = place(location) {
            let mut folders = self.folders();
            let objects = folders.changed(of);
            *objects = Objects {
                changed: objects.changed,
                ..Objects::default()
            };
        }
    }
}

impl Put<'_> {
    /// The bucket confirmed it. `bytes` is the size of the object there, with its seal.
    pub(super) fn done(mut self, put: &PutResult, body: Bytes, bytes: usize) {
        let Some((of, name)) = self.of.take() else { return };
        let meta = ObjectMeta {
            location: self.location.clone(),
            last_modified: self.known.ticks.now(),
            size: bytes as u64,
            e_tag: put.e_tag.clone(),
            version: put.version.clone(),
        };
        let mut folders = self.known.folders();
        let objects = folders.changed(of);
        let is_small = body.len() <= OBJECT_BYTES_MAX;
        match name {
            Name::Boundary => objects.boundary = is_small.then_some(Some((meta, body))),
            Name::Numbered(id) => {
                if let Some(listed) = &mut objects.listed {
                    listed.insert(id, meta);
                }
                if is_small {
                    objects.read(id, body);
                }
            }
        }
    }
}

impl Removals {
    pub(super) fn new(known: &Arc<Known>) -> Self {
        Self {
            known: Arc::clone(known),
            begun: Mutex::default(),
        }
    }

    fn begun(&self) -> MutexGuard<'_, HashSet<Path>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begin(&self, location: &Path) {
        if let Some((of, _)) = place(location) {
            self.known.folders().changed(of);
            self.begun().insert(location.clone());
        }
    }

    /// The bucket confirmed one.
    pub(super) fn done(&self, location: &Path) {
        let Some((of, name)) = place(location).filter(|_| self.begun().remove(location)) else {
            return;
        };
        let mut folders = self.known.folders();
        let objects = folders.changed(of);
        match name {
            Name::Boundary => objects.boundary = Some(None),
            Name::Numbered(id) => {
                if let Some(listed) = &mut objects.listed {
                    listed.remove(&id);
                }
                objects.newest.take_if(|(newest, _)| *newest == id);
            }
        }
    }
}

impl Drop for Removals {
    fn drop(&mut self) {
        for location in self.begun().iter() {
            self.known.forget(location);
        }
    }
}

impl Drop for Put<'_> {
    fn drop(&mut self) {
        if self.of.is_some() {
            self.known.forget(&self.location);
        }
    }
}

impl Folders {
    fn of(&mut self, of: (String, Folder)) -> &mut Objects {
        if self.known.len() >= FOLDERS_MAX && !self.known.contains_key(&of) {
            self.known.clear();
            self.forgotten = self.changes;
        }
        self.known.entry(of).or_default()
    }

    /// A folder that is changed now.
    fn changed(&mut self, of: (String, Folder)) -> &mut Objects {
        self.changes += 1;
        let changed = self.changes;
        let objects = self.of(of);
        objects.changed = changed;
        objects
    }
}

impl Objects {
    /// What is known of an object. `None` means nothing.
    fn get(&self, location: &Path, name: Name) -> Option<StoreResult<(ObjectMeta, Bytes)>> {
        let missing = || StoreError::NotFound {
            path: location.to_string(),
            source: "the owner of the bucket knows that it is not there".into(),
        };
        match name {
            Name::Boundary => self.boundary.clone().map(|object| object.ok_or_else(missing)),
            Name::Numbered(id) => {
                let Some(meta) = self.listed.as_ref()?.get(&id) else {
                    return Some(Err(missing()));
                };
                let (newest, body) = self.newest.as_ref()?;
                (*newest == id).then(|| Ok((meta.clone(), body.clone())))
            }
        }
    }

    /// Keeps the body of an object if no newer one is kept.
    fn read(&mut self, id: u64, body: Bytes) {
        if self.newest.as_ref().is_none_or(|(newest, _)| *newest <= id) {
            self.newest = Some((id, body));
        }
    }
}

/// The answer for an object that is known as a whole.
fn whole(mut meta: ObjectMeta, body: Bytes, options: &GetOptions) -> StoreResult<GetResult> {
    options.check_preconditions(&meta)?;
    meta.size = body.len() as u64;
    Ok(GetResult {
        range: 0..meta.size,
        payload: GetResultPayload::Stream(stream::once(future::ready(Ok(body))).boxed()),
        meta,
        attributes: Default::default(),
        extensions: Default::default(),
    })
}

/// A list that is known, as the bucket would return it.
pub(super) fn listed(objects: Vec<ObjectMeta>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
    stream::iter(objects.into_iter().map(Ok)).boxed()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use futures::TryStreamExt;
    use slatedb::object_store::memory::InMemory;
    use slatedb::object_store::{ObjectStore, ObjectStoreExt, PutMode, PutPayload, UpdateVersion};

    use super::super::medium::Medium;
    use super::super::places::boundary;
    use super::super::sealed::{Belongs, seal};
    use super::*;
    use crate::storage::identity::Identity;
    use helenus_base::clock::Clock;

    /// A bucket, and the medium of its owner. What is put into the bucket itself, the owner does not see.
    struct Bucket {
        objects: Arc<InMemory>,
        medium: Medium,
        is_owner: Arc<AtomicBool>,
    }

    fn manifest(id: u64) -> Path {
        Folder::Manifests.object("engine", id)
    }

    impl Bucket {
        fn new() -> Self {
            Self::over(Arc::new(InMemory::new()))
        }

        fn over(objects: Arc<InMemory>) -> Self {
            let medium = Medium::remote(Arc::clone(&objects) as _, "s3://bucket/p".into(), Identity::default());
            let is_owner = Arc::new(AtomicBool::new(true));
            let asked = Arc::clone(&is_owner);
            let ticks = Arc::new(Ticks::new(Clock::manual(0)));
            medium.ask_owner(move || asked.load(Ordering::SeqCst), &ticks);
            Self {
                objects,
                medium,
                is_owner,
            }
        }

        /// Puts an object without the owner's knowledge.
        async fn put_apart(&self, location: &Path, body: &'static str) {
            let of = Belongs {
                database: 0,
                path: location,
            };
            let sealed = seal(&PutPayload::from_static(body.as_bytes()), of);
            self.objects.put(location, sealed).await.unwrap();
        }

        async fn put(&self, location: &Path, body: &'static str) -> StoreResult<PutResult> {
            let body = PutPayload::from_static(body.as_bytes());
            self.medium.put_opts(location, body, PutMode::Create.into()).await
        }

        async fn get(&self, location: &Path) -> Option<String> {
            match self.medium.get(location).await {
                Ok(object) => Some(String::from_utf8(object.bytes().await.unwrap().to_vec()).unwrap()),
                Err(StoreError::NotFound { .. }) => None,
                Err(error) => panic!("{location}: {error}"),
            }
        }

        async fn listed(&self) -> Vec<u64> {
            let folder = Folder::Manifests.path("engine");
            let listed: Vec<_> = self.medium.list(Some(&folder)).try_collect().await.unwrap();
            listed.iter().map(|meta| numbered(&meta.location).unwrap().2).collect()
        }
    }

    #[tokio::test]
    async fn the_owner_asks_once_and_knows_what_it_puts() {
        let bucket = Bucket::new();
        bucket.put_apart(&manifest(1), "one").await;
        assert_eq!(bucket.listed().await, [1]);
        assert_eq!(bucket.get(&manifest(1)).await.unwrap(), "one");
        bucket.put_apart(&manifest(2), "another's").await;
        assert_eq!(bucket.listed().await, [1], "not asked again");
        assert_eq!(bucket.get(&manifest(2)).await, None, "not asked again");
        bucket.objects.delete(&manifest(1)).await.unwrap();
        assert_eq!(bucket.get(&manifest(1)).await.unwrap(), "one", "kept");

        bucket.objects.delete(&manifest(2)).await.unwrap();
        bucket.put(&manifest(2), "two").await.unwrap();
        assert_eq!(bucket.listed().await, [1, 2]);
        assert_eq!(bucket.get(&manifest(2)).await.unwrap(), "two");
        bucket.put_apart(&manifest(3), "another's").await;
        bucket.medium.delete(&manifest(1)).await.unwrap();
        assert_eq!(bucket.listed().await, [2], "not asked again");
        assert_eq!(bucket.get(&manifest(1)).await, None);
        assert_eq!(bucket.get(&manifest(2)).await.unwrap(), "two");
    }

    #[tokio::test]
    async fn a_removal_that_failed_or_was_given_up_makes_the_owner_ask() {
        let bucket = Bucket::new();
        bucket.put(&manifest(1), "one").await.unwrap();
        assert_eq!(bucket.listed().await, [1]);
        bucket.put_apart(&manifest(2), "another's").await;
        let locations = stream::iter([Ok(manifest(1))]).boxed();
        drop(bucket.medium.delete_stream(locations));
        assert_eq!(bucket.listed().await, [1], "not begun");
        let known = Arc::new(Known::new(Arc::new(Ticks::new(Clock::manual(0)))));
        let folder = Folder::Manifests.path("engine");
        let question = known.list(&folder).unwrap_err().unwrap();
        known.has_listed(&question, Vec::new());
        let removals = Removals::new(&known);
        removals.begin(&manifest(1));
        assert!(known.list(&folder).is_ok());
        drop(removals);
        assert!(known.list(&folder).is_err());
        // An answer that was asked for before the removal may have the object.
        let question = known.list(&folder).unwrap_err().unwrap();
        let removals = Removals::new(&known);
        removals.begin(&manifest(1));
        known.has_listed(&question, Vec::new());
        assert!(known.list(&folder).is_err());
        let question = known.list(&folder).unwrap_err().unwrap();
        removals.done(&manifest(1));
        known.has_listed(&question, Vec::new());
        assert!(known.list(&folder).is_err());
    }

    #[tokio::test]
    async fn a_put_that_meets_another_makes_the_owner_ask() {
        let bucket = Bucket::new();
        bucket.put(&manifest(1), "one").await.unwrap();
        assert_eq!(bucket.listed().await, [1]);
        bucket.put_apart(&manifest(2), "late").await;
        assert_eq!(bucket.listed().await, [1]);
        let refused = bucket.put(&manifest(2), "two").await;
        assert!(matches!(refused, Err(StoreError::AlreadyExists { .. })), "{refused:?}");
        assert_eq!(bucket.listed().await, [1, 2]);
        assert_eq!(bucket.get(&manifest(2)).await.unwrap(), "late");
    }

    #[tokio::test]
    async fn a_server_without_the_lease_asks_the_bucket() {
        let bucket = Bucket::new();
        bucket.put(&manifest(1), "one").await.unwrap();
        assert_eq!(bucket.listed().await, [1]);
        bucket.put_apart(&manifest(2), "another's").await;
        bucket.is_owner.store(false, Ordering::SeqCst);
        assert_eq!(bucket.listed().await, [1, 2]);
        assert_eq!(bucket.get(&manifest(2)).await.unwrap(), "another's");
    }

    #[tokio::test]
    async fn a_boundary_is_known_with_its_tag() {
        let bucket = Bucket::new();
        let boundary = boundary("engine", Folder::Manifests);
        assert_eq!(bucket.get(&boundary).await, None);
        bucket.put_apart(&boundary, "7").await;
        assert_eq!(bucket.get(&boundary).await, None, "not asked again");
        bucket.objects.delete(&boundary).await.unwrap();
        let put = bucket.put(&boundary, "8").await.unwrap();
        assert_eq!(bucket.get(&boundary).await.unwrap(), "8");
        let unchanged = GetOptions {
            if_none_match: put.e_tag.clone(),
            ..GetOptions::default()
        };
        let got = bucket.medium.get_opts(&boundary, unchanged.clone()).await;
        assert!(matches!(got, Err(StoreError::NotModified { .. })), "{got:?}");
        // A question with a condition makes it known too.
        let next = Bucket::over(Arc::clone(&bucket.objects));
        let got = next.medium.get_opts(&boundary, unchanged).await;
        assert!(matches!(got, Err(StoreError::NotModified { .. })), "{got:?}");
        let update = PutMode::Update(UpdateVersion::from(put));
        let body = PutPayload::from_static(b"9");
        bucket.medium.put_opts(&boundary, body, update.into()).await.unwrap();
        assert_eq!(bucket.get(&boundary).await.unwrap(), "9");
        assert_eq!(next.get(&boundary).await.unwrap(), "8", "not asked again");
    }

    #[test]
    fn an_answer_is_not_kept_if_something_was_put_meanwhile() {
        let known = Known::new(Arc::new(Ticks::new(Clock::manual(0))));
        let folder = Folder::Manifests.path("engine");
        let question = known.list(&folder).unwrap_err().unwrap();
        let put = PutResult {
            e_tag: None,
            version: None,
            extensions: Default::default(),
        };
        known.begin_put(&manifest(1)).done(&put, Bytes::from_static(b"one"), 3);
        known.has_listed(&question, Vec::new());
        let question = known.list(&folder).unwrap_err().unwrap();
        known.has_listed(&question, Vec::new());
        assert!(known.list(&folder).unwrap().is_empty());
        // Given up: nobody knows whether it is there.
        drop(known.begin_put(&manifest(2)));
        assert!(known.list(&folder).is_err());
    }

    #[test]
    fn folders_are_forgotten_beyond_their_bound_and_answers_of_before_are_not_kept() {
        let known = Known::new(Arc::new(Ticks::new(Clock::manual(0))));
        let first = Folder::Manifests.path("stores/0");
        let question = known.list(&first).unwrap_err().unwrap();
        let early = known.list(&first).unwrap_err().unwrap();
        known.has_listed(&question, Vec::new());
        assert!(known.list(&first).is_ok());
        known.forget(&Folder::Manifests.object("stores/0", 1));
        for store in 1..=FOLDERS_MAX {
            known.forget(&Folder::Manifests.object(&format!("stores/{store}"), 1));
        }
        assert!(known.folders().known.len() <= FOLDERS_MAX);
        assert!(known.list(&first).is_err());
        known.has_listed(&early, Vec::new());
        assert!(known.list(&first).is_err(), "an answer of before the removal");
    }
}
