//! Records, in each store of a server, the progress of the other stores. A start thereby detects stores whose files
//! were copied at different times.
//!
//! ```text
//! DIR/moments   slot 0 at byte 0, slot 1 at byte 16384; written in turn, so that a write cut short spoils only one
//! slot          "HLMO" · version 01 · number u64, the newer slot has the higher one · count u16
//!               · count × (store u32, 0 is the main one · last group u64) · CRC-32 of all before       all big-endian
//! ```
//! Each store's directory has the file, all with the same entries: for every store, its last durable group at that
//! time. A start compares the stores with all these files before it changes anything ([`check`]). A store that ends
//! before a group that another store's file records is older than that record, and is refused.
//!
//! In `slate+file:` each database's folder has the file, and a group is an object of its log. A start reads all the
//! files that it needs before it opens any database (slate/opening.rs).
//!
//! **No false alarm.** A group is recorded only after its store was synced ([`Durable`]), whatever the durability. So
//! neither a kill nor a loss of power leaves a record of a group that does not exist. Records may be lost, but are
//! never wrong. Numbers of groups only grow, and a store's number is never reused, so an old record stays true. The
//! record of a removed store has no effect.
//!
//! **Delay.** After a pause, a thread records the first group at once; it records later groups every [`TICK`]. It
//! writes to the page cache, which survives a kill, and syncs within a second. No commit waits for it. A single store
//! has neither thread nor file: `acknowledged` is enough.
//!
//! **A missing file** was not written yet: an older program wrote none, or power was lost before the first sync. A file
//! with both slots damaged is refused, like `acknowledged`.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::directory::{full_or, io_error, read_file, sync_directory};
use crate::storage::{Error, Result};

/// The file's name.
pub(in crate::storage) const NAME: &str = "moments";

const MAGIC: &[u8; 5] = b"HLMO\x01";
const SLOT_STRIDE_BYTES: usize = 16 * 1024;
const HEAD_BYTES: usize = MAGIC.len() + 8 + 2;
const ENTRY_BYTES: usize = 4 + 8;
const CRC_BYTES: usize = 4;

/// Most stores that are recorded; beyond it, those with the highest numbers are left out.
const ENTRIES_MAX: usize = 1024;
const _: () = assert!(HEAD_BYTES + ENTRIES_MAX * ENTRY_BYTES + CRC_BYTES <= SLOT_STRIDE_BYTES);

/// Time between two records.
const TICK: Duration = Duration::from_millis(50);

/// Ticks until records are synced: one second.
const SYNC_TICKS: u32 = 20;

/// The last group of a store that is durable.
#[derive(Debug, Default)]
pub(super) struct Durable {
    seq: AtomicU64,
    /// The thread that records it. `None` means no thread does.
    recorder: OnceLock<Arc<Wake>>,
}

impl Durable {
    /// Records in memory that everything up to this group is durable, and wakes the recording thread.
    pub(super) fn raise(&self, seq: u64) {
        self.seq.store(seq, Ordering::Release);
        if let Some(recorder) = self.recorder.get() {
            recorder.wake();
        }
    }
}

/// Wakes the recording thread, only once until it runs.
#[derive(Debug)]
struct Wake {
    is_due: AtomicBool,
    wake: SyncSender<()>,
}

impl Wake {
    fn wake(&self) {
        if !self.is_due.swap(true, Ordering::AcqRel) {
            // A full channel means that the thread is already awake. A missing receiver means that the thread has
            // ended, and the store closes soon.
            self.wake.try_send(()).ok();
        }
    }
}

/// A store among those of one server.
#[derive(Clone, Debug)]
pub(in crate::storage) struct Moment {
    pub(super) directory: PathBuf,
    pub(super) durable: Arc<Durable>,
}

impl Moment {
    fn seq(&self) -> u64 {
        self.durable.seq.load(Ordering::Acquire)
    }
}

/// Records the progress of stores in each other's directories, until it is dropped: then once more, durably.
#[derive(Debug)]
pub struct Moments {
    stores: Arc<Mutex<Stores>>,
    wake: Arc<Wake>,
    /// `None` only while dropping.
    running: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The stores, by number, each with its file once it is open.
#[derive(Debug, Default)]
struct Stores {
    all: BTreeMap<u32, (Moment, Option<Arc<File>>)>,
    number: u64,
}

/// Compares stores that were just opened with the records that they hold of each other. With `is_forced`, a mismatch is
/// logged and accepted.
///
/// # Errors
/// [`Error::EarlierMoment`]; a file that is damaged or cannot be read.
pub(in crate::storage) fn check(stores: &[(u32, Moment)], is_forced: bool) -> Result<()> {
    for (number, store) in stores {
        let recorded = match read(&store.directory.join(NAME)) {
            Ok(recorded) => recorded,
            Err(error @ Error::Corrupt { .. }) if is_forced => {
                tracing::warn!(%error, "a record of other stores' progress is damaged; it is written again");
                continue;
            }
            Err(error) => return Err(error),
        };
        let Some(recorded) = recorded else {
            if stores.len() > 1 {
                tracing::info!(store = number, "no record of other stores' progress");
            }
            continue;
        };
        for (of, seq) in recorded.entries {
            let Some((_, other)) = stores.iter().find(|(number, _)| *number == of) else {
                continue;
            };
            let ends = other.seq();
            if ends >= seq {
                continue;
            }
            let error = Error::EarlierMoment {
                directory: other.directory.clone(),
                ends,
                later: store.directory.clone(),
                noted: seq,
            };
            if !is_forced {
                return Err(error);
            }
            tracing::warn!(%error, "the stores are from different times and are accepted because of --create");
        }
    }
    Ok(())
}

impl Moments {
    /// Starts to record the progress of these stores.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(in crate::storage) fn start(stores: Vec<(u32, Moment)>) -> Result<Self> {
        let (wake, woken) = sync_channel(1);
        let (running, ended) = sync_channel(1);
        let wake = Arc::new(Wake {
            is_due: AtomicBool::new(false),
            wake,
        });
        let all = Arc::new(Mutex::new(Stores::default()));
        let (recording, due) = (Arc::clone(&all), Arc::clone(&wake));
        let thread = std::thread::Builder::new()
            .name("store-moments".to_owned())
            .spawn(move || record_while_open(&recording, &due, &woken, &ended))
            .map_err(io_error("starting a thread for", Path::new(NAME)))?;
        let this = Self {
            stores: all,
            wake,
            running: Some(running),
            thread: Some(thread),
        };
        for (number, store) in stores {
            this.add(number, store);
        }
        Ok(this)
    }

    fn stores(&self) -> MutexGuard<'_, Stores> {
        locked(&self.stores)
    }

    /// Adds a store.
    pub(in crate::storage) fn add(&self, number: u32, store: Moment) {
        // A store belongs to one server's stores for its whole life.
        drop(store.durable.recorder.set(Arc::clone(&self.wake)));
        let mut stores = self.stores();
        // Number the slots above those that an earlier server wrote.
        if let Ok(Some(recorded)) = read(&store.directory.join(NAME)) {
            stores.number = stores.number.max(recorded.number);
        }
        stores.all.insert(number, (store, None));
        drop(stores);
        self.wake.wake();
    }

    /// Removes a store that is about to be deleted.
    pub fn remove(&self, number: u32) {
        self.stores().all.remove(&number);
        self.wake.wake();
    }
}

impl Drop for Moments {
    fn drop(&mut self) {
        // Wake it before the channel closes: the thread writes the pending record after it sees the end.
        self.wake.wake();
        self.running = None;
        self.wake.wake.try_send(()).ok();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that records the stores' progress panicked");
        }
    }
}

fn locked(stores: &Mutex<Stores>) -> MutexGuard<'_, Stores> {
    stores.lock().unwrap_or_else(PoisonError::into_inner)
}

fn record_while_open(stores: &Mutex<Stores>, due: &Wake, woken: &Receiver<()>, ended: &Receiver<()>) {
    let mut is_failing = false;
    let mut report = |recorded: Result<()>| {
        match &recorded {
            // Log once, not at each tick of a full disk.
            Err(error) if !is_failing => tracing::warn!(%error, "the stores' progress cannot be recorded"),
            _ => {}
        }
        is_failing = recorded.is_err();
    };
    while woken.recv().is_ok() {
        let mut files = Vec::new();
        let mut record = || {
            if due.is_due.swap(false, Ordering::AcqRel) {
                let recorded = locked(stores).record();
                report(recorded.map(|written| files = written));
            }
        };
        for _ in 0..SYNC_TICKS {
            record();
            if ended.recv_timeout(TICK) != Err(RecvTimeoutError::Timeout) {
                record();
                break;
            }
        }
        for (path, file) in &files {
            report(file.sync_data().map_err(io_error("syncing", path)));
        }
        if ended.try_recv() == Err(TryRecvError::Disconnected) {
            return;
        }
    }
}

impl Stores {
    /// Writes the current entries into each store's file; returns the files.
    fn record(&mut self) -> Result<Vec<(PathBuf, Arc<File>)>> {
        if self.all.len() < 2 {
            return Ok(Vec::new());
        }
        self.number += 1;
        let entries = self.all.iter().take(ENTRIES_MAX);
        let entries = entries.map(|(number, (store, _))| (*number, store.seq()));
        let slot = slot(self.number, &entries.collect::<Vec<_>>());
        let at = if self.number.is_multiple_of(2) {
            0
        } else {
            SLOT_STRIDE_BYTES
        };
        let mut written = Vec::new();
        for (store, file) in self.all.values_mut() {
            let path = store.directory.join(NAME);
            let file = match file {
                Some(file) => file,
                None => file.insert(Arc::new(open(&path)?)),
            };
            write_at(file, at as u64, &slot).map_err(|error| full_or(error, &store.directory, "writing", &path))?;
            written.push((path, Arc::clone(file)));
        }
        Ok(written)
    }
}

fn open(path: &Path) -> Result<File> {
    let opened = || {
        let is_new = !path.exists();
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        if is_new && let Some(directory) = path.parent() {
            sync_directory(directory)?;
        }
        Ok(file)
    };
    opened().map_err(io_error("opening", path))
}

fn write_at(mut file: &File, at: u64, bytes: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(at))?;
    file.write_all(bytes)
}

/// The content of a file.
#[derive(Debug, PartialEq, Eq)]
struct Recorded {
    number: u64,
    entries: Vec<(u32, u64)>,
}

/// Reads a file. `None` means it is missing or empty.
fn read(path: &Path) -> Result<Option<Recorded>> {
    let bytes = match read_file(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error("reading", path)(error)),
    };
    let slots = [0, SLOT_STRIDE_BYTES].map(|at| bytes.get(at..).and_then(parse_slot));
    match slots.into_iter().flatten().max_by_key(|recorded| recorded.number) {
        Some(recorded) => Ok(Some(recorded)),
        None if bytes.iter().all(|byte| *byte == 0) => Ok(None),
        None => Err(Error::Corrupt {
            path: path.to_owned(),
            what: "neither slot is whole, which say whether the stores are of one moment; start once with --create, which takes the stores as \
                   they are"
                .to_owned(),
        }),
    }
}

fn slot(number: u64, entries: &[(u32, u64)]) -> Vec<u8> {
    let mut slot = MAGIC.to_vec();
    slot.extend_from_slice(&number.to_be_bytes());
    let count = u16::try_from(entries.len()).unwrap_or(u16::MAX);
    slot.extend_from_slice(&count.to_be_bytes());
    for (store, seq) in entries {
        slot.extend_from_slice(&store.to_be_bytes());
        slot.extend_from_slice(&seq.to_be_bytes());
    }
    let crc = crc32fast::hash(&slot);
    slot.extend_from_slice(&crc.to_be_bytes());
    slot
}

fn parse_slot(bytes: &[u8]) -> Option<Recorded> {
    let (magic, rest) = bytes.split_first_chunk::<5>()?;
    let (number, rest) = rest.split_first_chunk::<8>()?;
    let (count, rest) = rest.split_first_chunk::<2>()?;
    let count = usize::from(u16::from_be_bytes(*count));
    let (entries, rest) = rest.split_at_checked(count * ENTRY_BYTES)?;
    let crc = u32::from_be_bytes(*rest.first_chunk()?);
    if magic != MAGIC || crc != crc32fast::hash(bytes.get(..HEAD_BYTES + entries.len())?) {
        return None;
    }
    let entry = |bytes: &[u8]| {
        let (store, seq) = bytes.split_first_chunk::<4>()?;
        Some((u32::from_be_bytes(*store), u64::from_be_bytes(seq.try_into().ok()?)))
    };
    Some(Recorded {
        number: u64::from_be_bytes(*number),
        entries: entries.chunks_exact(ENTRY_BYTES).map(entry).collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(directory: &Path, seq: u64) -> Moment {
        std::fs::create_dir_all(directory).unwrap();
        let durable = Arc::new(Durable::default());
        durable.raise(seq);
        Moment {
            directory: directory.to_owned(),
            durable,
        }
    }

    #[test]
    fn a_store_of_an_earlier_moment_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let [main, beside] = ["main", "beside"].map(|name| folder.path().join(name));
        let stores = |main_seq, beside_seq| vec![(0, moment(&main, main_seq)), (7, moment(&beside, beside_seq))];
        let now = stores(5, 9);
        check(&now, false).unwrap();
        drop(Moments::start(now.clone()).unwrap());
        check(&now, false).unwrap();
        check(&stores(6, 20), false).unwrap();
        for (earlier, directory) in [(stores(4, 9), &main), (stores(5, 8), &beside), (stores(9, 0), &beside)] {
            let error = check(&earlier, false).unwrap_err();
            assert!(
                matches!(&error, Error::EarlierMoment { directory: of, .. } if of == directory),
                "{error}"
            );
            check(&earlier, true).unwrap();
        }
        // Records of a removed store have no effect, and a single store is checked against its own.
        check(&stores(4, 9)[1..], false).unwrap();
        assert!(check(&stores(4, 9)[..1], false).is_err());
    }

    #[test]
    fn raised_groups_are_recorded_until_the_drop_and_by_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let stores = [1, 2].map(|number| (number, moment(&folder.path().join(number.to_string()), 1)));
        for round in 1..4 {
            let moments = Moments::start(stores.to_vec()).unwrap();
            for seq in 1..100 {
                stores[1].1.durable.raise(round * 100 + seq);
            }
            drop(moments);
            // A store records in one server's life only; here it continues as a new one.
            for (_, store) in &stores {
                let recorded = read(&store.directory.join(NAME)).unwrap().unwrap();
                assert_eq!(recorded.entries, [(1, 1), (2, round * 100 + 99)]);
            }
        }
    }

    #[test]
    fn the_newest_whole_slot_counts_and_nothing_else_is_misread() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        assert_eq!(read(&path).unwrap(), None);
        let entries = vec![(0, 7), (3, u64::MAX)];
        let (old, new) = (slot(8, &entries), slot(9, &entries));
        let mut bytes = vec![0; SLOT_STRIDE_BYTES];
        bytes[..old.len()].copy_from_slice(&old);
        bytes.extend_from_slice(&new);
        let number = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            read(&path).map(|recorded| recorded.map(|recorded| recorded.number))
        };
        assert_eq!(number(&bytes).unwrap(), Some(9));
        for at in 0..new.len() {
            let mut flipped = bytes.clone();
            flipped[SLOT_STRIDE_BYTES + at] ^= 1;
            assert_eq!(number(&flipped).unwrap(), Some(8), "{at}");
            flipped[at] ^= 1;
            assert!(matches!(number(&flipped), Err(Error::Corrupt { .. })), "{at}");
            assert_eq!(number(&bytes[..SLOT_STRIDE_BYTES + at]).unwrap(), Some(8), "{at}");
        }
        assert_eq!(number(&[0; 900]).unwrap(), None);
        assert_eq!(number(b"").unwrap(), None);
    }
}
