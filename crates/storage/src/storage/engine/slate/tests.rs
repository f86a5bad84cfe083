//! A medium that fails: which error is reported, what is retried, and what ends the store.

use std::fmt;
use std::io;
use std::path::Path as FilePath;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::stream::BoxStream;
use slatedb::object_store::local::LocalFileSystem;
use slatedb::object_store::path::Path;
use slatedb::object_store::{
    CopyOptions, Error as StoreError, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result as StoreResult,
};

use super::clock::Ticks;
use super::home::{Blocks, FORMAT, Home};
use super::medium::Medium;
use super::places::{DATABASE, Folder};
use super::*;
use crate::storage::engine::directory::{Directory, Wanted};
use crate::storage::engine::options::Durability;

/// The operation that fails, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// A put that does nothing.
    Put(i32),
    /// A put whose object is stored, but whose name could not be synced.
    Sync(i32),
    Get(i32),
    /// A put that takes this long.
    Late(Duration),
}

/// A directory whose objects of some folder fail.
#[derive(Debug)]
struct Failing {
    inner: LocalFileSystem,
    fault: Mutex<Option<(&'static str, Fault)>>,
    met: AtomicU32,
}

impl Failing {
    fn set(&self, fault: Option<(&'static str, Fault)>) {
        *self.fault.lock().unwrap() = fault;
        self.met.store(0, Ordering::SeqCst);
    }

    fn met(&self) -> u32 {
        self.met.load(Ordering::SeqCst)
    }

    fn at(&self, location: &Path) -> Option<Fault> {
        let fault = *self.fault.lock().unwrap();
        let (_, fault) = fault.filter(|(folder, _)| location.as_ref().contains(folder))?;
        Some(fault)
    }

    fn error(&self, code: i32) -> StoreError {
        self.met.fetch_add(1, Ordering::SeqCst);
        StoreError::Generic {
            store: "failing",
            source: Box::new(io::Error::from_raw_os_error(code)),
        }
    }
}

impl fmt::Display for Failing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("failing")
    }
}

#[async_trait::async_trait]
impl ObjectStore for Failing {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> StoreResult<PutResult> {
        match self.at(location) {
            Some(Fault::Put(code)) => Err(self.error(code)),
            Some(Fault::Sync(code)) => {
                self.inner.put_opts(location, payload, options).await?;
                Err(self.error(code))
            }
            Some(Fault::Late(late)) => {
                tokio::time::sleep(late).await;
                self.met.fetch_add(1, Ordering::SeqCst);
                self.inner.put_opts(location, payload, options).await
            }
            _ => self.inner.put_opts(location, payload, options).await,
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        match self.at(location) {
            Some(Fault::Put(code)) => Err(self.error(code)),
            _ => self.inner.put_multipart_opts(location, options).await,
        }
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> StoreResult<GetResult> {
        match self.at(location) {
            Some(Fault::Get(code)) => Err(self.error(code)),
            _ => self.inner.get_opts(location, options).await,
        }
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

async fn open(directory: &FilePath) -> (Store, Arc<Failing>) {
    open_with(directory, Durability::Group, 0).await
}

async fn open_with(directory: &FilePath, durability: Durability, row_cache_bytes_max: usize) -> (Store, Arc<Failing>) {
    let locked = Directory::open(directory, Wanted::main(&Options::default(), FORMAT)).unwrap();
    let identity = locked.identity();
    let failing = Arc::new(Failing {
        inner: LocalFileSystem::new_with_prefix(directory).unwrap(),
        fault: Mutex::default(),
        met: AtomicU32::default(),
    });
    let home = Home {
        directory: Some(Arc::new(locked)),
        medium: Arc::new(Medium::new(
            Arc::clone(&failing) as _,
            Some(directory.to_owned()),
            identity,
        )),
        identity,
        location: format!("slate+file:{}", directory.display()).into(),
        database: DATABASE.into(),
        ticks: Arc::new(Ticks::new(Clock::system())),
        durable: Arc::default(),
        bucket: None,
        blocks: Blocks::new(&Options::default()),
        log: None,
    };
    let options = Options {
        row_cache_bytes_max,
        durability,
        ..Options::default()
    };
    (Store::open_at(home, &options).await.unwrap(), failing)
}

async fn put(store: &Store, key: &str) -> Result<()> {
    let mut batch = Batch::new();
    batch.put(Space::Catalog, key.as_bytes().to_vec(), "some value".as_bytes());
    store.commit(batch).await.map(drop)
}

async fn get(store: &Store, key: &str) -> Result<bool> {
    let published = store.snapshot().ok_or(Error::Reopening)?;
    Ok(published.get(Space::Catalog, key.as_bytes()).await?.is_some())
}

/// The first failure names its object, nothing is retried or written after it, and no other writer is blamed.
#[tokio::test(flavor = "multi_thread")]
async fn an_io_error_of_a_put_ends_the_store_by_name() {
    for fault in [Fault::Put(5), Fault::Sync(5), Fault::Put(30)] {
        let directory = tempfile::tempdir().unwrap();
        let (store, failing) = open(directory.path()).await;
        put(&store, "a").await.unwrap();
        assert!(store.lost().is_none());
        failing.set(Some(("/wal/", fault)));
        let refused = put(&store, "b").await.unwrap_err().to_string();
        let log = directory.path().join("engine/wal");
        assert!(refused.contains(log.to_str().unwrap()), "{fault:?}: {refused}");
        assert!(refused.contains("os error"), "{fault:?}: {refused}");
        assert_eq!(failing.met(), 1, "{fault:?}");
        failing.set(None);
        let lost = store.lost().expect("lost").to_string();
        assert!(lost.contains(log.to_str().unwrap()), "{lost}");
        let again = put(&store, "c").await.unwrap_err();
        assert!(again.to_string().contains(log.to_str().unwrap()), "{again}");
        drop(store.close().await);
        drop(store);
        let (store, _) = open(directory.path()).await;
        assert!(get(&store, "a").await.unwrap() && !get(&store, "c").await.unwrap());
        put(&store, "d").await.unwrap();
    }
}

/// A kill loses acknowledged writes of the last few periods only, even if a slow medium has put nothing for seconds.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_is_late_holds_writes() {
    let directory = tempfile::tempdir().unwrap();
    let every = Duration::from_millis(10);
    let (store, failing) = open_with(directory.path(), Durability::Periodic(every), 0).await;
    put(&store, "first").await.unwrap();
    let late = Duration::from_millis(1000);
    failing.set(Some(("/wal/", Fault::Late(late))));
    let clock = Clock::system();
    let (mut acknowledged, mut longest) = (0, Duration::ZERO);
    while failing.met() == 0 {
        let begun = clock.monotonic();
        put(&store, &format!("{acknowledged}")).await.unwrap();
        longest = longest.max(clock.monotonic().saturating_sub(begun));
        acknowledged += 1;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(
        longest >= late / 2,
        "{acknowledged} were acknowledged before one put, none of them waited"
    );
    failing.set(None);
    store.close().await.unwrap();
    drop(store);
    let (store, _) = open(directory.path()).await;
    assert!(get(&store, "first").await.unwrap() && get(&store, "0").await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_io_error_of_a_read_ends_the_store_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _) = open(directory.path()).await;
    put(&store, "a").await.unwrap();
    store.flush().await.unwrap();
    store.close().await.unwrap();
    drop(store);
    let (store, failing) = open(directory.path()).await;
    failing.set(Some(("/compacted/", Fault::Get(5))));
    let told = match get(&store, "a").await {
        Err(error) => error.to_string(),
        // The opening has read it already, but not the next table.
        Ok(_) => {
            put(&store, "b").await.unwrap();
            store.flush().await.unwrap();
            get(&store, "b").await.unwrap_err().to_string()
        }
    };
    assert!(
        told.contains("engine/compacted/") && told.contains("os error 5"),
        "{told}"
    );
    assert!(store.lost().is_some());
}

/// No commit waits for a table that is written when a memtable is full.
#[tokio::test(flavor = "multi_thread")]
async fn an_io_error_in_the_background_ends_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let (store, failing) = open(directory.path()).await;
    put(&store, "a").await.unwrap();
    failing.set(Some(("/manifest/", Fault::Put(5))));
    let error = store.flush().await.unwrap_err().to_string();
    assert!(error.contains("engine/manifest/"), "{error}");
    assert!(store.lost().is_some());
    let refused = put(&store, "b").await.unwrap_err().to_string();
    assert!(refused.contains("engine/manifest/"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_passes() {
    for fault in [Fault::Put(28), Fault::Sync(28)] {
        let directory = tempfile::tempdir().unwrap();
        let (store, failing) = open(directory.path()).await;
        put(&store, "a").await.unwrap();
        failing.set(Some(("/wal/", fault)));
        for _ in 0..2 {
            let refused = put(&store, "b").await.unwrap_err();
            assert!(refused.is_disk_full(), "{fault:?}: {refused}");
        }
        assert!(store.lost().is_none());
        // Reads name it too: SlateDB has closed the database, and it is opened again when there is room.
        let refused = get(&store, "a").await.unwrap_err();
        assert!(
            refused.is_disk_full() || matches!(refused, Error::Reopening),
            "{fault:?}: {refused}"
        );
        failing.set(None);
        put(&store, "c").await.unwrap();
        assert!(get(&store, "a").await.unwrap() && get(&store, "c").await.unwrap());
        store.close().await.unwrap();
        drop(store);
        let (store, _) = open(directory.path()).await;
        assert!(get(&store, "a").await.unwrap() && get(&store, "c").await.unwrap());
    }
}

/// The process lives on, so nothing may be lost: relaxed durability risks only what a kill or a power cut takes.
#[tokio::test(flavor = "multi_thread")]
async fn relaxed_durability_loses_nothing_on_a_full_disk() {
    for durability in [Durability::Periodic(Duration::from_millis(10)), Durability::Os] {
        let directory = tempfile::tempdir().unwrap();
        let (store, failing) = open_with(directory.path(), durability, 0).await;
        put(&store, "first").await.unwrap();
        let mut acknowledged = vec!["first".to_owned()];
        let clock = Clock::system();
        // The log may be put before the next write comes: then that write is refused, and the disk fills once more.
        while acknowledged.len() == 1 {
            failing.set(Some(("/wal/", Fault::Put(28))));
            let refused = loop {
                let key = acknowledged.len().to_string();
                match put(&store, &key).await {
                    Ok(()) => acknowledged.push(key),
                    Err(error) => break error,
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            };
            assert!(refused.is_disk_full(), "{refused}");
            failing.set(None);
            // No write is needed for it.
            while get(&store, "first").await.is_err() {
                assert!(clock.monotonic() < Duration::from_secs(30), "it is not opened again");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        for key in &acknowledged {
            assert!(get(&store, key).await.unwrap(), "{durability:?}: {key} is gone");
        }
        put(&store, "last").await.unwrap();
        store.close().await.unwrap();
        drop(store);
        let (store, _) = open(directory.path()).await;
        for key in acknowledged.iter().map(String::as_str).chain(["last"]) {
            assert!(
                get(&store, key).await.unwrap(),
                "{durability:?}: {key} is gone after a restart"
            );
        }
    }
}

/// A request that failed for too many open files is tried again.
#[tokio::test(flavor = "multi_thread")]
async fn what_passes_is_tried_again() {
    let directory = tempfile::tempdir().unwrap();
    let (store, failing) = open(directory.path()).await;
    failing.set(Some(("/wal/", Fault::Put(24))));
    let (written, ()) = tokio::join!(put(&store, "a"), async {
        while failing.met() == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        failing.set(None);
    });
    written.unwrap();
    assert!(store.lost().is_none());
}

/// A manifest that differs from the one that was put is refused by its reader, without an opening in between.
#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_is_read_with_its_checksum() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _) = open(directory.path()).await;
    put(&store, "a").await.unwrap();
    store.flush().await.unwrap();
    let home = store.home().unwrap();
    let newest = home.admin(DATABASE).read_manifest(None).await.unwrap().unwrap().id();
    let location = Folder::Manifests.object(DATABASE, newest);
    let file = directory.path().join(location.as_ref());
    let whole = std::fs::read(&file).unwrap();
    for bit in (0..whole.len() * 8 - 64).step_by(29) {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&file, &flipped).unwrap();
        let read = home.admin(DATABASE).read_manifest(Some(newest)).await;
        let error = home.failure(&read.expect_err("refused")).to_string();
        assert!(error.contains(file.to_str().unwrap()), "bit {bit}: {error}");
    }
    assert!(store.lost().is_none());
}

async fn put_row(store: &Store, value: &'static str) -> Result<CommitSeq> {
    let mut batch = Batch::new();
    batch.put(Space::Rows, b"row".to_vec(), value);
    store.commit(batch).await
}

/// The row cache relies on the numbers of published states.
#[tokio::test(flavor = "multi_thread")]
async fn numbers_rise_after_groups_were_lost_and_no_stale_row_stays_in_the_cache() {
    let directory = tempfile::tempdir().unwrap();
    let cache_bytes = Options::default().row_cache_bytes_max;
    let (store, failing) = open_with(directory.path(), Durability::Group, cache_bytes).await;
    put_row(&store, "0").await.unwrap();
    let before_loss = store.snapshot().unwrap().seq;
    failing.set(Some(("/wal/", Fault::Late(Duration::from_millis(500)))));
    let mut puts = Vec::new();
    for number in 0..20 {
        let store = store.clone();
        puts.push(tokio::spawn(
            async move { put(&store, &format!("lost {number}")).await },
        ));
        // So that each of them is a group of its own.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    failing.set(Some(("/wal/", Fault::Put(28))));
    let mut lost = 0;
    for put in puts {
        lost += u32::from(put.await.unwrap().is_err());
    }
    assert!(lost >= 10, "{lost} groups were lost");
    failing.set(None);
    put(&store, "back").await.unwrap();
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
