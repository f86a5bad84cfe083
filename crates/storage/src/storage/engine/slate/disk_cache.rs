//! Parts of a bucket's tables on local disk.
//!
//! ```text
//! FOLDER/helenus.lock                         locked by the server that uses the folder
//! FOLDER/helenus-parts/DATABASE/ULID/NUMBER   a part of a table: PART_BYTES, or fewer at the table's end
//!
//! body · size of the table u64 · its last change i64 ms · CRC-32 u32 · "hlncach1"      all big-endian
//! ```
//! The checksum covers the table's name and the part's number, too. A part that is torn, damaged or elsewhere than it
//! belongs is removed and read from the bucket again, so the folder may be lost or changed at any time without harm. So
//! nothing is synced. Tables never change, so a part is never stale. Parts of tables that were removed stay until
//! others displace them.
//!
//! The cache lies below SlateDB's cache of blocks: only what is not in memory is looked for here. A read of more than
//! [`READ_BYTES_MAX`] goes to the bucket: the compactor reads so, once. What is read of the bucket is written here
//! afterwards, if not too much waits to be written.

use std::fs;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::{Bytes, BytesMut};
use chrono::DateTime;
use futures::stream::BoxStream;
use futures::{StreamExt, future, stream};
use moka::sync::Cache;
use slatedb::object_store::path::Path;
use slatedb::object_store::{
    CopyOptions, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result as StoreResult,
};
use tokio::sync::Semaphore;

use super::places::is_table;
use crate::storage::engine::directory::{io_error, lock};
use crate::storage::engine::options::BucketCache;
use crate::storage::{Error, Result};
use helenus_base::metrics::{CachedPart, count_cached_part};
use helenus_base::permissions;

/// Bytes of a part. Read as a whole, so that its checksum can be checked.
const PART_BYTES: u64 = 256 << 10;

/// Most bytes of a read that is looked for here.
const READ_BYTES_MAX: u64 = 4 << 20;

/// Most reads whose parts wait to be written, each of at most [`READ_BYTES_MAX`] and two parts more. Parts of others are
/// not kept.
const WRITES_WAITING_MAX: usize = 16;

const PARTS: &str = "helenus-parts";
/// The extension of a part that is being written.
const NEW: &str = "new";

const MAGIC: &[u8; 8] = b"hlncach1";

/// Bytes after the body of a part.
const TRAILER_BYTES: usize = 8 + 8 + 4 + MAGIC.len();

/// A bucket whose tables are kept on local disk in part.
#[derive(Debug)]
pub(super) struct DiskCache {
    bucket: Arc<dyn ObjectStore>,
    folder: Arc<Folder>,
}

/// The folder of the parts.
#[derive(Debug)]
struct Folder {
    parts: PathBuf,
    _lock: fs::File,
    /// Bytes of each part, by its path below the folder. A part that it displaces is removed.
    index: Cache<String, u32>,
    waiting: Arc<Semaphore>,
    /// Whether the last write failed.
    is_failing: AtomicBool,
    /// Parts that were written: the next one's name until it is whole.
    written: AtomicU64,
}

/// A part of a table.
#[derive(Clone, Debug)]
struct Part {
    body: Bytes,
    /// Bytes of the table.
    size: u64,
    /// When the table was last changed, ms since 1970-01-01 UTC.
    changed: i64,
}

impl DiskCache {
    /// Locks the folder, creating it if necessary, and lists its parts in the background.
    ///
    /// # Errors
    /// The folder cannot be made, or another server uses it.
    pub(super) fn open(bucket: Arc<dyn ObjectStore>, cache: &BucketCache) -> Result<Self> {
        let folder = Arc::new(Folder::open(&cache.folder, cache.bytes_max)?);
        let listed = Arc::clone(&folder);
        drop(tokio::task::spawn_blocking(move || listed.list()));
        Ok(Self { bucket, folder })
    }

    async fn read(&self, location: &Path, range: &Range<u64>) -> StoreResult<GetResult> {
        let numbers = range.start / PART_BYTES..range.end.div_ceil(PART_BYTES);
        let mut parts = self.found(location, numbers.clone()).await;
        let is_missing = |part: &Option<Part>| part.is_none();
        if let Some(first) = parts.iter().position(is_missing) {
            let last = parts.iter().rposition(is_missing).unwrap_or(first);
            let missing = numbers.start + first as u64..numbers.start + last as u64 + 1;
            let got = self.fetched(location, missing).await?;
            self.folder.write_later(location, numbers.start + first as u64, &got);
            for (part, got) in parts.iter_mut().skip(first).zip(got) {
                *part = Some(got);
            }
        }
        let parts: Vec<Part> = parts.into_iter().map_while(|part| part).collect();
        let begins = numbers.start * PART_BYTES;
        match result(location, &parts, range, begins) {
            Some(result) => Ok(result),
            // A range outside the table: the bucket's own error.
            None => self.bucket.get_opts(location, ranged(range.clone())).await,
        }
    }

    async fn found(&self, location: &Path, numbers: Range<u64>) -> Vec<Option<Part>> {
        let (folder, location, count) = (Arc::clone(&self.folder), location.clone(), numbers.clone().count());
        let read = move || numbers.map(|number| folder.read(&location, number)).collect();
        let found = tokio::task::spawn_blocking(read).await;
        found.unwrap_or_else(|_| vec![None; count])
    }

    async fn fetched(&self, location: &Path, numbers: Range<u64>) -> StoreResult<Vec<Part>> {
        let range = numbers.start * PART_BYTES..numbers.end * PART_BYTES;
        let got = self.bucket.get_opts(location, ranged(range)).await?;
        let (size, changed) = (got.meta.size, got.meta.last_modified.timestamp_millis());
        let mut bytes = got.bytes().await?;
        let mut parts = Vec::new();
        while !bytes.is_empty() {
            let body = bytes.split_to(bytes.len().min(length(PART_BYTES)));
            parts.push(Part { body, size, changed });
        }
        Ok(parts)
    }
}

/// A length of bytes in memory.
fn length(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn ranged(range: Range<u64>) -> GetOptions {
    GetOptions {
        range: Some(GetRange::Bounded(range)),
        ..GetOptions::default()
    }
}

/// The range that a read asks for, if it is looked for here.
fn looked_for(location: &Path, options: &GetOptions) -> Option<Range<u64>> {
    let Some(GetRange::Bounded(range)) = &options.range else {
        return None;
    };
    let is_plain = !options.head
        && options.version.is_none()
        && options.if_match.is_none()
        && options.if_none_match.is_none()
        && options.if_modified_since.is_none()
        && options.if_unmodified_since.is_none();
    let is_short = range.start < range.end && range.end - range.start <= READ_BYTES_MAX;
    (is_plain && is_short && is_table(location)).then(|| range.clone())
}

/// The answer to a read, from consecutive parts of which the first begins at this byte. `None` means that they have
/// nothing of the range.
fn result(location: &Path, parts: &[Part], range: &Range<u64>, begins: u64) -> Option<GetResult> {
    let (size, changed) = parts.first().map(|part| (part.size, part.changed))?;
    let mut pieces = Vec::with_capacity(parts.len());
    let mut at = begins;
    for part in parts {
        let end = at + part.body.len() as u64;
        let wanted = range.start.max(at)..range.end.min(end);
        if wanted.start < wanted.end {
            pieces.push(part.body.slice(length(wanted.start - at)..length(wanted.end - at)));
        }
        at = end;
    }
    let bytes = match pieces.as_slice() {
        [] => return None,
        [piece] => piece.clone(),
        pieces => {
            let mut all = BytesMut::with_capacity(pieces.iter().map(Bytes::len).sum());
            pieces.iter().for_each(|piece| all.extend_from_slice(piece));
            all.freeze()
        }
    };
    let range = range.start..range.start + bytes.len() as u64;
    Some(GetResult {
        payload: GetResultPayload::Stream(stream::once(future::ready(Ok(bytes))).boxed()),
        meta: ObjectMeta {
            location: location.clone(),
            last_modified: DateTime::from_timestamp_millis(changed)?,
            size,
            e_tag: None,
            version: None,
        },
        range,
        attributes: Default::default(),
        extensions: Default::default(),
    })
}

/// The path of a part below the folder of parts: `stores/3/01J79C21YKR31J2BS1EFXJZ7MR/0`.
fn name(location: &Path, number: u64) -> String {
    let table = location.as_ref().strip_suffix(".sst").unwrap_or(location.as_ref());
    format!("{}/{number}", table.replace("compacted/", ""))
}

fn checksum(location: &Path, number: u64, covered: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(covered);
    hasher.update(&number.to_be_bytes());
    hasher.update(location.as_ref().as_bytes());
    hasher.finalize()
}

impl Part {
    fn encode(&self, location: &Path, number: u64) -> Vec<u8> {
        let mut file = Vec::with_capacity(self.body.len() + TRAILER_BYTES);
        file.extend_from_slice(&self.body);
        file.extend_from_slice(&self.size.to_be_bytes());
        file.extend_from_slice(&self.changed.to_be_bytes());
        let sum = checksum(location, number, &file);
        file.extend_from_slice(&sum.to_be_bytes());
        file.extend_from_slice(MAGIC);
        file
    }

    /// `None` means that the file is not this part.
    fn decode(file: Vec<u8>, location: &Path, number: u64) -> Option<Self> {
        let file = Bytes::from(file);
        let (covered, [a, b, c, d, magic @ ..]) = file.split_last_chunk::<12>()?;
        if magic != MAGIC || checksum(location, number, covered) != u32::from_be_bytes([*a, *b, *c, *d]) {
            return None;
        }
        let (rest, changed) = covered.split_last_chunk()?;
        let (body, size) = rest.split_last_chunk()?;
        let (size, changed) = (u64::from_be_bytes(*size), i64::from_be_bytes(*changed));
        let body = file.slice(..body.len());
        Some(Self { body, size, changed })
    }
}

impl Folder {
    fn open(folder: &FilePath, bytes_max: u64) -> Result<Self> {
        let parts = folder.join(PARTS);
        permissions::create_directory(folder).map_err(io_error("creating", folder))?;
        let lock = lock(folder).map_err(|error| match error {
            Error::Locked { directory, holder } => Error::CacheLocked {
                folder: directory,
                holder,
            },
            error => error,
        })?;
        permissions::create_directory(&parts).map_err(io_error("creating", &parts))?;
        let below = parts.clone();
        let index = Cache::builder()
            .max_capacity(bytes_max)
            .weigher(|_, bytes: &u32| *bytes)
            .eviction_listener(move |name: Arc<String>, _, cause| {
                if cause.was_evicted() {
                    remove(&below.join(name.as_str()));
                }
            })
            .build();
        Ok(Self {
            parts,
            _lock: lock,
            index,
            waiting: Arc::new(Semaphore::new(WRITES_WAITING_MAX)),
            is_failing: AtomicBool::new(false),
            written: AtomicU64::new(0),
        })
    }

    /// Lists the parts of an earlier run, and removes those that were half written.
    fn list(&self) {
        let mut folders = vec![self.parts.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let (path, metadata) = (entry.path(), entry.metadata());
                match metadata {
                    Ok(metadata) if metadata.is_dir() => folders.push(path),
                    Ok(metadata) => self.add_file(&path, metadata.len()),
                    Err(_) => {}
                }
            }
        }
        self.index.run_pending_tasks();
    }

    fn add_file(&self, path: &FilePath, bytes: u64) {
        let name = path.strip_prefix(&self.parts).ok().and_then(FilePath::to_str);
        match (name, path.extension(), u32::try_from(bytes)) {
            (Some(name), None, Ok(bytes)) => self.index.insert(name.to_owned(), bytes),
            (_, Some(extension), _) if extension == NEW => remove(path),
            _ => {}
        }
    }

    /// A part that is here. Blocks.
    fn read(&self, location: &Path, number: u64) -> Option<Part> {
        let name = name(location, number);
        let path = self.parts.join(&name);
        let Ok(file) = read_at_most(&path, PART_BYTES + TRAILER_BYTES as u64) else {
            count_cached_part(CachedPart::Missing);
            return None;
        };
        let bytes = u32::try_from(file.len()).unwrap_or(u32::MAX);
        let part = Part::decode(file, location, number);
        if part.is_none() {
            tracing::warn!(path = %path.display(), "a part of a table in the local cache is damaged; it is read from the bucket again");
            self.index.invalidate(&name);
            remove(&path);
        } else if self.index.get(&name).is_none() {
            self.index.insert(name, bytes);
        }
        count_cached_part(if part.is_some() {
            CachedPart::Found
        } else {
            CachedPart::Damaged
        });
        part
    }

    /// Writes consecutive parts in the background, unless too much waits to be written.
    fn write_later(self: &Arc<Self>, location: &Path, first: u64, parts: &[Part]) {
        let Ok(permit) = Arc::clone(&self.waiting).try_acquire_owned() else {
            return;
        };
        let (folder, location, parts) = (Arc::clone(self), location.clone(), parts.to_vec());
        drop(tokio::task::spawn_blocking(move || {
            for (number, part) in (first..).zip(&parts) {
                let written = folder.write(&location, number, part);
                let is_failing = written.is_err();
                if let Err(error) = written
                    && !folder.is_failing.load(Ordering::Relaxed)
                {
                    tracing::warn!(folder = %folder.parts.display(), %error, "the local cache of the bucket cannot be written; it is done without");
                }
                folder.is_failing.store(is_failing, Ordering::Relaxed);
            }
            folder.index.run_pending_tasks();
            drop(permit);
        }));
    }

    /// Writes a part under another name first, so that it is found whole or not at all. The name is used once: two tasks
    /// may write one part. Blocks.
    fn write(&self, location: &Path, number: u64, part: &Part) -> io::Result<()> {
        let name = name(location, number);
        let path = self.parts.join(&name);
        let file = part.encode(location, number);
        let turn = self.written.fetch_add(1, Ordering::Relaxed);
        let new = path.with_extension(format!("{turn}.{NEW}"));
        if let Some(folder) = path.parent() {
            permissions::create_directory(folder)?;
        }
        fs::write(&new, &file)?;
        match fs::rename(&new, &path) {
            // The list of the start took it for one that an earlier run had half written.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            renamed => renamed?,
        }
        self.index.insert(name, u32::try_from(file.len()).unwrap_or(u32::MAX));
        Ok(())
    }
}

fn read_at_most(path: &FilePath, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut file = Vec::new();
    fs::File::open(path)?.take(bytes_max).read_to_end(&mut file)?;
    Ok(file)
}

/// Removes a part, and its table's folder if that is empty now.
fn remove(path: &FilePath) {
    drop(fs::remove_file(path));
    drop(path.parent().map(fs::remove_dir));
}

impl std::fmt::Display for DiskCache {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.bucket.fmt(out)
    }
}

#[async_trait::async_trait]
impl ObjectStore for DiskCache {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> StoreResult<PutResult> {
        self.bucket.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        self.bucket.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> StoreResult<GetResult> {
        match looked_for(location, &options) {
            Some(range) => self.read(location, &range).await,
            None => self.bucket.get_opts(location, options).await,
        }
    }

    fn delete_stream(&self, locations: BoxStream<'static, StoreResult<Path>>) -> BoxStream<'static, StoreResult<Path>> {
        self.bucket.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        self.bucket.list(prefix)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        self.bucket.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> StoreResult<ListResult> {
        self.bucket.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> StoreResult<()> {
        self.bucket.copy_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use slatedb::object_store::ObjectStoreExt;
    use slatedb::object_store::memory::InMemory;

    use super::*;

    /// Counts the gets that reach the bucket.
    #[derive(Debug, Default)]
    struct Asked {
        bucket: InMemory,
        gets: AtomicU64,
    }

    impl Asked {
        fn gets(&self) -> u64 {
            self.gets.swap(0, Ordering::SeqCst)
        }
    }

    impl std::fmt::Display for Asked {
        fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            self.bucket.fmt(out)
        }
    }

    #[async_trait::async_trait]
    impl ObjectStore for Asked {
        async fn put_opts(&self, at: &Path, body: PutPayload, options: PutOptions) -> StoreResult<PutResult> {
            self.bucket.put_opts(at, body, options).await
        }

        async fn put_multipart_opts(
            &self,
            at: &Path,
            options: PutMultipartOptions,
        ) -> StoreResult<Box<dyn MultipartUpload>> {
            self.bucket.put_multipart_opts(at, options).await
        }

        async fn get_opts(&self, at: &Path, options: GetOptions) -> StoreResult<GetResult> {
            self.gets.fetch_add(1, Ordering::SeqCst);
            self.bucket.get_opts(at, options).await
        }

        fn delete_stream(
            &self,
            locations: BoxStream<'static, StoreResult<Path>>,
        ) -> BoxStream<'static, StoreResult<Path>> {
            self.bucket.delete_stream(locations)
        }

        fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
            self.bucket.list(prefix)
        }

        async fn list_with_delimiter(&self, prefix: Option<&Path>) -> StoreResult<ListResult> {
            self.bucket.list_with_delimiter(prefix).await
        }

        async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> StoreResult<()> {
            self.bucket.copy_opts(from, to, options).await
        }
    }

    fn table(name: &str) -> Path {
        Path::from(format!("stores/3/compacted/{name}.sst"))
    }

    fn bytes(count: usize) -> Bytes {
        (0..count).map(|at| at.to_le_bytes()[0] ^ at.to_le_bytes()[1]).collect()
    }

    fn open(bucket: &Arc<Asked>, folder: &FilePath, bytes_max: u64) -> Result<DiskCache> {
        let folder = folder.to_owned();
        DiskCache::open(Arc::clone(bucket) as _, &BucketCache { folder, bytes_max })
    }

    /// Waits until everything was written.
    async fn written(cache: &DiskCache) {
        let all = u32::try_from(WRITES_WAITING_MAX).unwrap();
        drop(cache.folder.waiting.acquire_many(all).await.unwrap());
        cache.folder.index.run_pending_tasks();
    }

    fn files(folder: &FilePath) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.path() {
                path if path.is_dir() => files.extend(self::files(&path)),
                path => files.push(path),
            }
        }
        files
    }

    #[tokio::test]
    async fn a_read_is_answered_by_the_bucket_once_and_damage_is_read_again() {
        let (bucket, folder) = (Arc::new(Asked::default()), tempfile::tempdir().unwrap());
        let (at, whole) = (table("A"), bytes(3 * length(PART_BYTES) + 100));
        bucket.put(&at, whole.clone().into()).await.unwrap();
        let cache = open(&bucket, folder.path(), 8 << 20).unwrap();
        let end = whole.len() as u64;
        let ranges = [
            0..1,
            10..PART_BYTES + 10,
            PART_BYTES - 1..3 * PART_BYTES,
            end - 5..end,
            0..end,
            // The store's own meaning: the table ends before.
            end - 5..end + 1000,
        ];
        let check = async |cache: &DiskCache, what: &str| {
            for range in &ranges {
                let got = cache.get_opts(&at, ranged(range.clone())).await.unwrap();
                let is = length(range.start)..length(range.end.min(end));
                assert_eq!((got.meta.size, got.range.end), (end, is.end as u64), "{what}");
                assert!(got.bytes().await.unwrap() == whole.slice(is), "{what}: {range:?}");
                written(cache).await;
            }
        };
        check(&cache, "first").await;
        assert_eq!(bucket.gets(), 4, "each part was asked for once");
        check(&cache, "again").await;
        assert_eq!(bucket.gets(), 0);
        assert!(open(&bucket, folder.path(), 8 << 20).is_err(), "it is locked");
        drop(cache);

        let cache = open(&bucket, folder.path(), 8 << 20).unwrap();
        check(&cache, "after a start").await;
        assert_eq!(bucket.gets(), 0);
        let parts = files(&folder.path().join(PARTS));
        assert_eq!(parts.len(), 4);
        for (way, path) in parts.iter().enumerate() {
            let mut file = fs::read(path).unwrap();
            let middle = file.len() / 2;
            match way {
                0 => file[middle] ^= 1,
                1 => file.truncate(middle),
                2 => file.clear(),
                // Another part's bytes, with their own right checksum.
                _ => file = fs::read(&parts[way - 1]).unwrap(),
            }
            fs::write(path, file).unwrap();
        }
        check(&cache, "after damage").await;
        assert!(bucket.gets() >= 1);
        check(&cache, "once more").await;
        assert_eq!(bucket.gets(), 0);
        fs::remove_dir_all(folder.path().join(PARTS)).unwrap();
        check(&cache, "after its loss").await;
        assert!(bucket.gets() >= 1);
        assert!(cache.get_opts(&at, ranged(end + 5..end + 10)).await.is_err());
        assert!(cache.get_opts(&table("B"), ranged(0..5)).await.is_err());
    }

    #[tokio::test]
    async fn it_stays_within_its_bound_and_leaves_other_objects_to_the_bucket() {
        let (bucket, folder) = (Arc::new(Asked::default()), tempfile::tempdir().unwrap());
        let cache = open(&bucket, folder.path(), 3 * PART_BYTES).unwrap();
        for number in 0..20 {
            let at = table(&format!("T{number}"));
            bucket.put(&at, bytes(length(PART_BYTES)).into()).await.unwrap();
            for _ in 0..2 {
                cache.get_opts(&at, ranged(5..9)).await.unwrap();
                written(&cache).await;
            }
            let kept: u64 = files(folder.path())
                .iter()
                .map(|path| fs::metadata(path).unwrap().len())
                .sum();
            assert!(kept <= 3 * PART_BYTES, "{kept}");
        }
        assert!(!files(&folder.path().join(PARTS)).is_empty());
        let before = files(folder.path());
        bucket.gets();
        let log = Path::from("engine/wal/00000000000000000001.sst");
        bucket.put(&log, bytes(100).into()).await.unwrap();
        for _ in 0..2 {
            cache.get_opts(&log, ranged(0..10)).await.unwrap();
            cache.get_opts(&table("T1"), GetOptions::default()).await.unwrap();
            cache
                .get_opts(&table("T1"), ranged(0..READ_BYTES_MAX + 1))
                .await
                .unwrap();
            cache.head(&table("T1")).await.unwrap();
        }
        assert_eq!(bucket.gets(), 8);
        written(&cache).await;
        assert_eq!(files(folder.path()), before);
    }
}
