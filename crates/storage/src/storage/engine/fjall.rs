//! The `file:` engine: fjall, a log-structured tree in pure Rust, in one directory.
//!
//! One keyspace of the engine holds all spaces, distinguished by the first byte of the key. Creating a keyspace costs
//! several syncs, so a single one makes a fresh store start sooner; and related data is flushed together. One committer
//! thread (committer.rs) does all writes: fjall stalls writers by sleeping, and syncs under a lock, so no task of the
//! server ever writes to it. Reads are synchronous: most are served from memory, and reading a block from disk costs
//! less than a hop to another thread.
//!
//! **Missing groups are detected.** fjall silently truncates a damaged log where the damage begins. So each group
//! writes a chain record, with its number and a running checksum, and removes the record of the group before it. If no
//! group is missing, exactly one record exists, and it is not older than the last acknowledgement (acknowledged.rs). If
//! a group is missing from the middle, the record that it should have removed remains. If groups are missing from the
//! end, the record is too old. The store is refused in both cases, and the error names the missing groups. A kill at
//! any instant loses only groups at the end that were not acknowledged. The record also carries the time mark of the
//! group ([`helenus_base::clock::TimeMark`]).
//!
//! **Missing or damaged files are detected before the engine opens**, which would remove them: [`verify`] only reads,
//! and [`super::aside`] keeps the original files until the chain of groups is verified. See opening.rs.
//!
//! Source: fjall 3.1.13 (`batch`, `journal`, `recovery`). The tests fail if a later version behaves differently.

mod block_cache;
mod committer;
mod group;
mod log;
mod opening;
mod request;
pub(super) mod salvage;
mod verify;

use std::any::Any;
use std::ops::{Bound, ControlFlow};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use bytes::Bytes;
use fjall::{AbstractTree, LsmError, Readable};
use tokio::sync::oneshot;

use self::committer::Committer;
use self::request::{Command, Request};
use super::directory::{Directory, full_or};
use super::durable::Durable;
use super::layout::{full_range, with_full_key};
use super::moments::Moment;
use super::queue_space::QueueSpace;
use super::{DeletionTables, Order, Stride, walk_stride};
use crate::storage::batch::{Batch, Space};
use crate::storage::cache::{Next, RowCache, Slice};
use crate::storage::derivation::Derivations;
use crate::storage::engine::options::Options;
use crate::storage::faults::ReadFaults;
use crate::storage::identity::Identity;
use crate::storage::key::KeyRange;
use crate::storage::purge::Sweeps;
use crate::storage::sizes::Sizes;
use crate::storage::{CommitSeq, Committed, Damaged, Error, Held, Opening, Result};
use helenus_base::clock::Clock;

/// The content of such a store's format file.
pub(super) const FORMAT: &str = crate::storage::identity::FJALL;

/// fjall's threads for flushes and compactions. fjall's first thread only flushes; if it takes a compaction from the
/// queue, it puts it back. With one other thread that is busy, the first one would repeat this until that thread's
/// compaction ends. A third thread takes the compaction instead.
const WORKER_THREADS: usize = 3;

/// Bytes of a memtable, and of a table that compactions write. Each table is synced as a whole, and a sync of the log
/// may have to wait for all that a file system is writing: some 130 ms for 64 MiB, which is the engine's default. A
/// start after a kill replays the part of the log that was not flushed, about one memtable. A store keeps the value
/// that it was created with.
pub(super) const TABLE_BYTES: u64 = 16 * 1024 * 1024;

/// The `file:` engine. Clones are the same store; it closes when the last one is dropped.
#[derive(Clone, Debug)]
pub struct Store(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    /// `None` only while dropping: the committer ends when its sender is dropped.
    commands: Option<mpsc::Sender<Command>>,
    queue_space: QueueSpace,
    committer: Mutex<Option<JoinHandle<()>>>,
}

/// State that the committer shares with readers.
#[derive(Debug)]
pub(in crate::storage) struct Shared {
    pub(super) directory: PathBuf,
    pub(super) identity: Identity,
    /// `None` while the engine is reopened, and after closing.
    pub(super) published: ArcSwapOption<Published>,
    pub(in crate::storage) cache: RowCache,
    /// Index derivations that the next groups apply.
    pub(super) derivations: ArcSwap<Derivations>,
    pub(super) sweeps: Arc<Sweeps>,
    /// Number of times that the engine was reopened. Raised before the reopened engine is published.
    pub(super) openings: AtomicU64,
    /// The last durable group; [`super::moments`] records it in the other stores of the server.
    pub(super) durable: Arc<Durable>,
    /// Why nothing can be read or written until the server restarts.
    pub(super) lost: Arc<ArcSwapOption<Error>>,
    /// Bytes of the absence filter, as of the last round of maintenance.
    pub(super) key_filter_bytes: AtomicU64,
}

impl Shared {
    pub(super) fn opening(&self) -> Opening {
        Opening(self.openings.load(Ordering::Acquire))
    }
}

/// The state that the committer published last: a snapshot of the engine, and the sizes and sequence number that belong
/// to it.
pub(in crate::storage) struct Published {
    pub(super) engine: Arc<Engine>,
    pub(super) view: fjall::Snapshot,
    pub(in crate::storage) seq: CommitSeq,
    pub(in crate::storage) deletion_tables: DeletionTables,
    pub(in crate::storage) sizes: Sizes,
}

impl std::fmt::Debug for Published {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Published")
            .field("seq", &self.seq)
            .finish_non_exhaustive()
    }
}

/// An open fjall database.
pub(super) struct Engine {
    pub(super) database: fjall::Database,
    pub(super) data: fjall::Keyspace,
    pub(super) directory: PathBuf,
    /// Set when the medium does not return what was written.
    pub(super) lost: Arc<ArcSwapOption<Error>>,
    read_faults: Option<ReadFaults>,
}

/// Memory that so many bytes of entries or blocks take: the engine counts them without the nodes of its lists and what
/// the allocator rounds up, a quarter of them (a block of 4 KiB takes 5).
const fn allocated(bytes: u64) -> u64 {
    bytes + bytes / 4
}

const READING: &str = "reading";

/// The longest key that the engine can look up without a panic.
const FULL_KEY_BYTES_MAX: usize = u16::MAX as usize;

/// Whether a read failed because of the medium. A lack of memory or open files does not count, nor does a missing file,
/// which is damage.
fn is_of_medium(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{Interrupted, NotFound, OutOfMemory, PermissionDenied, WouldBlock};
    // An error without a code does not come from the operating system.
    let is_passing = |code| TOO_MANY_FILES.contains(&code);
    error.raw_os_error().is_some_and(|code| !is_passing(code))
        && !matches!(
            error.kind(),
            Interrupted | NotFound | OutOfMemory | PermissionDenied | WouldBlock
        )
}

/// ENFILE and EMFILE, which have no kind.
const TOO_MANY_FILES: [i32; 2] = [23, 24];

/// Whether there is a store in a directory.
pub(in crate::storage) fn is_store(path: &Path) -> bool {
    Directory::is_store(path)
}

impl Store {
    /// Opens the store in a directory, creating it where there is none. `identity` is that of a side store. `None` means a
    /// main store, which names itself.
    pub(in crate::storage) async fn open(
        path: &Path,
        identity: Option<Identity>,
        options: &Options,
        clock: Clock,
    ) -> Result<Self> {
        let (commands, received) = mpsc::channel();
        let (opened, when_opened) = oneshot::channel();
        let (path, for_thread) = (path.to_owned(), options.clone());
        let thread = std::thread::Builder::new()
            .name("store-committer".to_owned())
            .spawn(
                move || match Committer::open(&path, identity, for_thread, clock, received) {
                    Ok((committer, shared)) => {
                        drop(opened.send(Ok(shared)));
                        committer.run();
                    }
                    Err(error) => drop(opened.send(Err(error))),
                },
            )
            .map_err(|error| super::directory::io_error("starting the committer of", Path::new("store"))(error))?;
        let shared = when_opened.await.map_err(|_| Error::Closed)??;
        Ok(Self(Arc::new(Inner {
            shared,
            commands: Some(commands),
            queue_space: QueueSpace::new(options),
            committer: Mutex::new(Some(thread)),
        })))
    }

    /// `None` while the engine is reopened, and after closing.
    pub(in crate::storage) fn snapshot(&self) -> Option<Arc<Published>> {
        self.0.shared.published.load_full()
    }

    /// The store that it is.
    pub(in crate::storage) fn identity(&self) -> Identity {
        self.0.shared.identity
    }

    pub(in crate::storage) fn opening(&self) -> Opening {
        self.0.shared.opening()
    }

    /// Why nothing can be read or written any more. `None` means it can be read, or will be again.
    pub(in crate::storage) fn lost(&self) -> Option<Arc<Error>> {
        self.0.shared.lost.load_full()
    }

    pub(in crate::storage) fn cache(&self) -> &RowCache {
        &self.0.shared.cache
    }

    /// What the store holds in memory; nothing while the engine is reopened.
    pub(in crate::storage) fn held(&self) -> Held {
        let Some(published) = self.snapshot() else {
            return Held::default();
        };
        let (data, database) = (&published.engine.data, &published.engine.database);
        let indexes = data.tree.pinned_filter_size() + data.tree.pinned_block_index_size();
        Held {
            memtables: allocated(data.tree.version_memtable_size_sum()),
            block_cache: allocated(database.cache_size()),
            table_indexes: indexes as u64,
            key_filter: self.0.shared.key_filter_bytes.load(Ordering::Relaxed),
        }
    }

    pub(in crate::storage) fn sweeps(&self) -> &Arc<Sweeps> {
        &self.0.shared.sweeps
    }

    pub(in crate::storage) fn moment(&self) -> Moment {
        Moment {
            directory: self.0.shared.directory.clone(),
            identity: self.0.shared.identity,
            durable: Arc::clone(&self.0.shared.durable),
        }
    }

    pub(in crate::storage) fn set_derivations(&self, derivations: Derivations) {
        self.0.shared.derivations.store(Arc::new(derivations));
    }

    /// Refuses a batch that is too large, as a commit does.
    pub(in crate::storage) fn check_batch(&self, batch: &Batch) -> Result<()> {
        self.0.queue_space.check(batch.bytes())
    }

    pub(in crate::storage) async fn commit(&self, batch: Batch) -> Result<Committed> {
        let bytes = batch.bytes();
        let permit = self.0.queue_space.take(bytes).await?;
        let (answer, answered) = oneshot::channel();
        let request = Request {
            only_in: batch.opening(),
            row_bytes_max: batch.row_bytes_max().unwrap_or(usize::MAX),
            changes: batch.into_changes(),
            bytes,
            answer,
            queue_space: Some(permit),
        };
        self.send(Command::Commit(request))?;
        answered.await.unwrap_or(Err(Error::Closed))
    }

    fn send(&self, command: Command) -> Result<()> {
        let commands = self.0.commands.as_ref().ok_or(Error::Closed)?;
        commands.send(command).map_err(|_| Error::Closed)
    }

    /// Makes what was acknowledged durable, whatever the durability.
    pub(in crate::storage) async fn sync(&self) -> Result<()> {
        let (answer, answered) = oneshot::channel();
        self.send(Command::Sync(answer))?;
        answered.await.unwrap_or(Err(Error::Closed))
    }

    /// Releases the original files; see [`Options::is_accepted_later`].
    pub(in crate::storage) async fn accept(&self) -> Result<()> {
        let (answer, answered) = oneshot::channel();
        self.send(Command::Accept(answer))?;
        answered.await.unwrap_or(Err(Error::Closed))
    }

    /// Flushes the memtables to tables.
    pub(in crate::storage) async fn flush(&self) -> Result<()> {
        const POLL: Duration = Duration::from_millis(2);
        const POLLS_MAX: u32 = 30_000;
        let published = self.snapshot().ok_or(Error::Closed)?;
        let engine = Arc::clone(&published.engine);
        drop(published);
        let failed = |error| engine.error("flushing", error);
        let rotating = Arc::clone(&engine);
        let rotated = tokio::task::spawn_blocking(move || rotating.data.rotate_memtable());
        rotated.await.map_err(|_| Error::Closed)?.map_err(failed)?;
        for _ in 0..POLLS_MAX {
            if engine.data.sealed_memtable_count() == 0 {
                return Ok(());
            }
            engine.database.persist(fjall::PersistMode::Buffer).map_err(failed)?;
            tokio::time::sleep(POLL).await;
        }
        Err(Error::Engine {
            location: engine.directory.display().to_string(),
            what: "a flush did not end".to_owned(),
        })
    }

    pub(in crate::storage) async fn close(&self) -> Result<()> {
        let (answer, answered) = oneshot::channel();
        self.send(Command::Close(answer))?;
        let closed = answered.await.unwrap_or(Err(Error::Closed));
        self.0.queue_space.close();
        closed
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.commands = None;
        let thread = self.committer.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // Queued batches are written before the directory is free for the next process; that takes a sync or two.
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!(directory = %self.shared.directory.display(), "the store's committer panicked");
        }
    }
}

impl Published {
    pub(in crate::storage) fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        with_full_key(space, key, |full| self.engine.get_at(&self.view, full))
    }

    /// A row, through the cache.
    pub(in crate::storage) fn get_row(&self, key: &[u8], cache: &RowCache) -> Result<Option<Bytes>> {
        if let Some(known) = cache.get(key, self.seq) {
            return Ok(known);
        }
        let value = self.get(Space::Rows, key)?;
        // A copy, because a slice from the engine may keep a whole block in memory.
        cache.add(key, value.as_deref().map(Bytes::copy_from_slice), self.seq);
        Ok(value)
    }

    /// One stride of a scan of rows, through the cache; `visit` as in [`crate::storage::Store::scan`].
    pub(in crate::storage) fn scan_rows(
        &self,
        range: &KeyRange,
        order: Order,
        cache: &RowCache,
        visit: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<Stride> {
        let Some(mut slice) = Slice::of(range, order, cache, self.seq) else {
            return self.scan(Space::Rows, range, order, visit);
        };
        loop {
            match slice.next(visit) {
                Next::Done => return Ok(Stride::Done),
                Next::Yield => return Ok(Stride::Rest(slice.rest())),
                Next::Read(mut hole) => {
                    let range = hole.range();
                    let stride = self.scan(Space::Rows, &range, order, &mut |key, value| {
                        hole.row(key, value, visit)
                    })?;
                    if !slice.has_read(hole, matches!(stride, Stride::Done)) {
                        return Ok(stride);
                    }
                }
            }
        }
    }

    /// One stride of a scan; `visit` as in [`crate::storage::Store::scan`].
    pub(in crate::storage) fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        order: Order,
        visit: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<Stride> {
        if range.is_empty() {
            return Ok(Stride::Done);
        }
        let mut visit = |key: &[u8], value: &[u8]| visit(key.get(1..).unwrap_or_default(), value);
        let entries = self.engine.entries(&self.view, full_range(space, range), order)?;
        Ok(match walk_stride(entries, &mut visit)? {
            Stride::Done => Stride::Done,
            Stride::After(key) => Stride::After(key.get(1..).unwrap_or_default().to_vec()),
            rest @ Stride::Rest(_) => rest,
        })
    }
}

impl Engine {
    /// Tables that have deletion records. Reads one record for each such table.
    fn deletion_tables(&self, view: &fjall::Snapshot) -> Result<DeletionTables> {
        let mut tables = std::collections::BTreeSet::new();
        let mut rest = Some(KeyRange::all());
        while let Some(range) = rest.take() {
            let mut entries = self.entries(view, full_range(Space::Deletions, &range), Order::Forward)?;
            if let Some(entry) = entries.next() {
                let (key, _) = entry?;
                let table = super::table_of(key.get(1..).unwrap_or_default()).ok_or(Error::Damaged(Damaged::KEY))?;
                tables.insert(table);
                rest = table.checked_add(1).map(|next| KeyRange {
                    start: Bound::Included(next.to_be_bytes().to_vec()),
                    end: Bound::Unbounded,
                });
            }
        }
        Ok(Arc::new(tables))
    }

    /// A fault that a test injects into reads.
    fn injected(&self) -> Result<(), fjall::Error> {
        match self.read_faults.as_ref().and_then(|faults| faults()) {
            None => Ok(()),
            Some(fault) => Err(fault.into()),
        }
    }

    pub(super) fn get_at(&self, view: &fjall::Snapshot, full: &[u8]) -> Result<Option<Bytes>> {
        if full.len() > FULL_KEY_BYTES_MAX {
            return Ok(None);
        }
        let get = || self.injected().and_then(|()| view.get(&self.data, full));
        match guard(&self.directory, get)? {
            Ok(value) => Ok(value.map(Bytes::from)),
            Err(error) => Err(self.error(READING, error)),
        }
    }

    /// The newest value, for the committer.
    pub(super) fn get_newest(&self, full: &[u8]) -> Result<Option<Bytes>> {
        if full.len() > FULL_KEY_BYTES_MAX {
            return Ok(None);
        }
        let get = || self.injected().and_then(|()| self.data.get(full));
        match guard(&self.directory, get)? {
            Ok(value) => Ok(value.map(Bytes::from)),
            Err(error) => Err(self.error(READING, error)),
        }
    }

    /// Entries of a range of full keys, as of a view.
    pub(super) fn entries<'a>(
        &'a self,
        view: &fjall::Snapshot,
        range: (Bound<Vec<u8>>, Bound<Vec<u8>>),
        order: Order,
    ) -> Result<impl Iterator<Item = Result<(fjall::Slice, fjall::Slice)>> + use<'a>> {
        self.injected().map_err(|error| self.error(READING, error))?;
        let range = clipped(range);
        let mut entries = guard(&self.directory, || view.range(&self.data, range))?;
        Ok(std::iter::from_fn(move || {
            let next = guard(&self.directory, || {
                let entry = match order {
                    Order::Forward => entries.next(),
                    Order::Reverse => entries.next_back(),
                };
                entry.map(fjall::Guard::into_inner)
            });
            match next {
                Ok(None) => None,
                Ok(Some(Ok(entry))) => Some(Ok(entry)),
                Ok(Some(Err(error))) => Some(Err(self.error(READING, error))),
                Err(error) => Some(Err(error)),
            }
        }))
    }

    /// Translates an error of the engine, with the file it concerns if that can be determined.
    pub(super) fn error(&self, operation: &'static str, error: fjall::Error) -> Error {
        match error {
            fjall::Error::Io(error) | fjall::Error::Storage(LsmError::Io(error)) => {
                // A file that ends too soon is damage, not a failure of the disk.
                if error.kind() == std::io::ErrorKind::UnexpectedEof {
                    return self.damage(&LsmError::Io(error));
                }
                let is_lost = operation == READING && is_of_medium(&error);
                let error = full_or(error, &self.directory, operation, &self.directory);
                if is_lost {
                    tracing::error!(%error, "the medium does not return what was written");
                    self.lost.store(Some(Arc::new(error.clone())));
                }
                error
            }
            fjall::Error::Storage(error) => self.damage(&error),
            fjall::Error::Poisoned => engine_error(&self.directory, "a write in the background failed"),
            error => engine_error(&self.directory, error),
        }
    }

    /// Damage found while reading: finds the table whose blocks do not match their checksums.
    fn damage(&self, error: &LsmError) -> Error {
        let damaged = catch_unwind(AssertUnwindSafe(|| {
            let version = self.data.tree.current_version();
            let damaged = version.iter_tables().find(|table| match table.scan() {
                Ok(mut entries) => entries.any(|entry| entry.is_err()),
                Err(_) => true,
            });
            damaged.map(|table| table.id())
        }));
        let tables = self.data.path().join("tables");
        let path = match damaged {
            Ok(Some(id)) => tables.join(id.to_string()),
            Ok(None) | Err(_) => tables,
        };
        Error::Corrupt {
            path,
            what: describe(error),
        }
    }
}

/// Calls the engine and turns its panics into errors: it panics on some kinds of damage.
pub(super) fn guard<T>(directory: &Path, call: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| Error::Corrupt {
        path: directory.to_owned(),
        what: format!("the engine panicked: {}", panic_text(panic.as_ref())),
    })
}

pub(super) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
}

/// The same range, with bounds that the engine accepts: a longer bound sorts after its prefix and before all keys that
/// follow the prefix.
fn clipped((start, end): (Bound<Vec<u8>>, Bound<Vec<u8>>)) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let clip = |bound: Bound<Vec<u8>>, long: fn(Vec<u8>) -> Bound<Vec<u8>>| match bound {
        Bound::Included(mut key) | Bound::Excluded(mut key) if key.len() > FULL_KEY_BYTES_MAX => {
            key.truncate(FULL_KEY_BYTES_MAX);
            long(key)
        }
        bound => bound,
    };
    (clip(start, Bound::Excluded), clip(end, Bound::Included))
}

fn engine_error(directory: &Path, what: impl ToString) -> Error {
    Error::Engine {
        location: format!("file:{}", directory.display()),
        what: what.to_string(),
    }
}

fn describe(error: &LsmError) -> String {
    match error {
        LsmError::ChecksumMismatch { .. } => "a block does not match its checksum".to_owned(),
        LsmError::Unrecoverable => "a file is missing or unreadable".to_owned(),
        error => error.to_string(),
    }
}
