//! The last group answered as durable, recorded outside the engine, so that a log which lost its end is detected when
//! the store opens.
//!
//! ```text
//! slot 0 at byte 0, slot 1 at byte 512; groups alternate, so that a write cut short spoils only one
//! slot   sequence u64 · chain u32 · database u64 · store u32 · CRC-32 of all before      all big-endian
//! closed at byte 1024: a slot whose CRC-32 is taken over "closed" first: the end of the log when the store was closed; zeros while it
//!        is open
//! ```
//! The log must go through the recorded group: its own record or the next group's names its checksum ([`Link`]). After a
//! clean close nothing may follow it.
//!
//! A group is recorded after the log was synced. A thread syncs this file within [`SYNC_WITHIN`], so that no commit
//! waits for it. After a kill the record is as new as the last answer. After a loss of power it may be a second older,
//! but never newer than the log. So the check never raises a false alarm, and it misses only groups acknowledged within
//! the last second.
//!
//! **A missing, empty or short file.** The file is made durable before the store's mark of use ([`super::directory`]);
//! its slot may name group 0. Later it is only written in place. So if the mark exists, no kill and no power cut leaves
//! such a file. The store is refused until the file is restored, or `--create` remakes it from the end of the log. A
//! store without the mark was never written to, or lost the mark. It is opened with a warning if the log is intact.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::directory::{check_identity, full_or, io_error, read_file, sync_directory};
use crate::storage::identity::{IDENTITY_BYTES, Identity};
use crate::storage::{Error, Result};

const NAME: &str = "acknowledged";
const SLOT_STRIDE_BYTES: u64 = 512;
const SLOT_BYTES: usize = 8 + 4 + IDENTITY_BYTES + 4;
const CLOSED_AT: u64 = 1024;

/// Longest time between a record and the sync of the file.
pub(super) const SYNC_WITHIN: Duration = Duration::from_secs(1);

/// The end of the chain of groups: the number of groups, and the running checksum of all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ChainEnd {
    pub(super) seq: u64,
    pub(super) chain: u32,
}

/// The record of a group: what the log and the tables name of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) end: ChainEnd,
    /// The checksum of the group alone, which leads from the end before it to its own.
    pub(super) digest: u32,
    pub(super) store: Identity,
    /// The last durable group when it was written. With relaxed durability the log may have lost its beginning since
    /// then, and this still finds the group.
    pub(super) anchor: ChainEnd,
}

impl Link {
    /// Whether the group cannot be in one chain with an acknowledged group.
    pub(super) fn contradicts(&self, acknowledged: ChainEnd) -> bool {
        let is_other = |end: ChainEnd| end.seq == acknowledged.seq && end != acknowledged;
        let is_next = self.end.seq == acknowledged.seq + 1;
        is_other(self.end) || is_other(self.anchor) || is_next && acknowledged.then(self.digest) != self.end
    }
}

/// What a store's log must agree with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    pub(super) store: Identity,
    /// `None` means that there is no record.
    pub(super) acknowledged: Option<ChainEnd>,
}

impl Expected {
    /// The last acknowledged group, or the beginning of the chain.
    pub(super) fn end(&self) -> ChainEnd {
        self.acknowledged.unwrap_or_else(|| ChainEnd::start(self.store))
    }
}

impl ChainEnd {
    /// The beginning of a store's chain.
    pub(super) fn start(store: Identity) -> Self {
        Self {
            seq: 0,
            chain: crc32fast::hash(&store.to_bytes()),
        }
    }

    /// The end after one more group with this digest.
    pub(super) fn then(self, digest: u32) -> Self {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.chain.to_be_bytes());
        hasher.update(&self.seq.to_be_bytes());
        hasher.update(&digest.to_be_bytes());
        Self {
            seq: self.seq + 1,
            chain: hasher.finalize(),
        }
    }
}

/// The content of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recorded {
    /// No record: the file is missing, empty, short, or zeros.
    Nothing,
    /// The last acknowledged group. `closed` means the store was closed then, with nothing after it.
    End {
        end: ChainEnd,
        closed: bool,
        store: Identity,
    },
}

impl Recorded {
    /// Reads the file of a store.
    pub(super) fn read(directory: &Path) -> Result<Self> {
        let path = directory.join(NAME);
        let bytes = match read_file(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::Nothing),
            Err(error) => return Err(io_error("reading", &path)(error)),
        };
        let slots = [0, SLOT_STRIDE_BYTES].map(|at| read_slot(&bytes, at, b""));
        let Some((end, store)) = slots.into_iter().flatten().max_by_key(|(end, _)| *end) else {
            if bytes.len() < SLOT_BYTES || bytes.iter().all(|byte| *byte == 0) {
                return Ok(Self::Nothing);
            }
            return Err(Error::Corrupt {
                path,
                what: "neither slot is whole".to_owned(),
            });
        };
        let closed = read_slot(&bytes, CLOSED_AT, b"closed") == Some((end, store));
        Ok(Self::End { end, closed, store })
    }

    /// The store that the file of a directory names. `None` means that it cannot be read.
    pub(super) fn store_of(directory: &Path) -> Option<Identity> {
        match Self::read(directory) {
            Ok(Self::End { store, .. }) => Some(store),
            _ => None,
        }
    }

    /// Refuses the file of another store.
    pub(super) fn of(self, directory: &Path, expected: Identity) -> Result<Self> {
        match self {
            Self::End { store, .. } => check_identity(&directory.join(NAME), store, expected).map(|()| self),
            Self::Nothing => Ok(self),
        }
    }

    /// The last acknowledged group. `None` means no record.
    pub(super) fn end(self) -> Option<ChainEnd> {
        match self {
            Self::Nothing => None,
            Self::End { end, .. } => Some(end),
        }
    }
}

/// The file, open for writing.
#[derive(Debug)]
pub(super) struct Acknowledged {
    file: File,
    path: PathBuf,
    syncer: Syncer,
    store: Identity,
}

/// The thread that syncs a file soon after it was written.
#[derive(Debug)]
pub(super) struct Syncer {
    is_due: Arc<AtomicBool>,
    /// `None` only while dropping.
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Acknowledged {
    /// Opens the file for an engine that was found intact up to `end`; creates it if there is none.
    pub(super) fn open(directory: &Path, store: Identity, end: ChainEnd) -> Result<Self> {
        let path = directory.join(NAME);
        let failed = |operation| move |error| full_or(error, directory, operation, &directory.join(NAME));
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed("opening"))?;
        let syncer = Syncer::start(file.try_clone().map_err(failed("opening"))?, path.clone())?;
        let mut this = Self {
            file,
            path,
            syncer,
            store,
        };
        this.put(CLOSED_AT, [0; SLOT_BYTES]).map_err(failed("writing"))?;
        // Written even if it holds this already: after a failed sync the content may be in the page cache only.
        this.put(slot_of(end), this.slot(end, b"")).map_err(failed("writing"))?;
        let synced = this.file.sync_all().and_then(|()| sync_directory(directory));
        synced.map_err(failed("syncing"))?;
        Ok(this)
    }

    fn put(&mut self, at: u64, slot: [u8; SLOT_BYTES]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(at))?;
        self.file.write_all(&slot)
    }

    fn slot(&self, end: ChainEnd, salt: &[u8]) -> [u8; SLOT_BYTES] {
        slot(end, self.store, salt)
    }

    /// Records that everything up to here was made durable.
    pub(super) fn write(&mut self, end: ChainEnd) -> Result<()> {
        let written = self.put(slot_of(end), self.slot(end, b""));
        written.map_err(io_error("writing", &self.path))?;
        self.syncer.request_sync();
        Ok(())
    }

    /// Records that the store is closed: everything up to `end` is durable, and nothing follows it.
    pub(super) fn close(&mut self, end: ChainEnd) -> Result<()> {
        let recorded = self
            .put(slot_of(end), self.slot(end, b""))
            .and_then(|()| self.put(CLOSED_AT, self.slot(end, b"closed")))
            .and_then(|()| self.file.sync_all());
        recorded.map_err(io_error("writing", &self.path))
    }
}

impl Syncer {
    pub(super) fn start(file: File, path: PathBuf) -> Result<Self> {
        let (wake, woken) = sync_channel(1);
        let is_due = Arc::new(AtomicBool::new(false));
        let due = Arc::clone(&is_due);
        let thread = std::thread::Builder::new()
            .name("store-acknowledged".to_owned())
            .spawn(move || sync_while_open(&file, &path, &woken, &due))
            .map_err(io_error("starting a thread for", Path::new(NAME)))?;
        Ok(Self {
            is_due,
            wake: Some(wake),
            thread: Some(thread),
        })
    }

    /// Wakes the thread. Calls until the next sync wake it only once.
    pub(super) fn request_sync(&self) {
        if !self.is_due.swap(true, Ordering::AcqRel)
            && let Some(wake) = &self.wake
            && let Err(TrySendError::Disconnected(())) = wake.try_send(())
        {
            tracing::error!("the thread that syncs the last acknowledged group has ended");
        }
    }
}

fn sync_while_open(file: &File, path: &Path, woken: &Receiver<()>, is_due: &AtomicBool) {
    while woken.recv().is_ok() {
        // Later writes are synced with this one. No sync is needed when the store closes: [`Acknowledged::close`] does
        // its own.
        if woken.recv_timeout(SYNC_WITHIN) == Err(RecvTimeoutError::Disconnected) {
            return;
        }
        is_due.store(false, Ordering::Release);
        if let Err(error) = file.sync_data() {
            tracing::error!(%error, path = %path.display(), "the last acknowledged group could not be recorded durably");
        }
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that syncs the last acknowledged group panicked");
        }
    }
}

fn slot_of(end: ChainEnd) -> u64 {
    (end.seq % 2) * SLOT_STRIDE_BYTES
}

fn slot(end: ChainEnd, store: Identity, salt: &[u8]) -> [u8; SLOT_BYTES] {
    let mut slot = [0; SLOT_BYTES];
    let (body, crc) = slot.split_at_mut(SLOT_BYTES - 4);
    let (seq, rest) = body.split_at_mut(8);
    let (chain, identity) = rest.split_at_mut(4);
    seq.copy_from_slice(&end.seq.to_be_bytes());
    chain.copy_from_slice(&end.chain.to_be_bytes());
    identity.copy_from_slice(&store.to_bytes());
    crc.copy_from_slice(&checksum(body, salt).to_be_bytes());
    slot
}

fn checksum(body: &[u8], salt: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(salt);
    hasher.update(body);
    hasher.finalize()
}

fn read_slot(bytes: &[u8], at: u64, salt: &[u8]) -> Option<(ChainEnd, Identity)> {
    let slot = bytes.get(usize::try_from(at).ok()?..)?.get(..SLOT_BYTES)?;
    let (body, crc) = slot.split_last_chunk::<4>()?;
    let (seq, rest) = body.split_first_chunk::<8>()?;
    let (chain, rest) = rest.split_first_chunk::<4>()?;
    let (store, _) = Identity::take(rest)?;
    let end = ChainEnd {
        seq: u64::from_be_bytes(*seq),
        chain: u32::from_be_bytes(*chain),
    };
    (checksum(body, salt) == u32::from_be_bytes(*crc)).then_some((end, store))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE: Identity = Identity { database: 5, store: 2 };

    fn start() -> ChainEnd {
        ChainEnd::start(STORE)
    }

    fn read(directory: &Path) -> Result<Option<ChainEnd>> {
        Recorded::read(directory).map(Recorded::end)
    }

    #[test]
    fn the_newest_whole_slot_counts() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        assert_eq!(Recorded::read(directory).unwrap(), Recorded::Nothing);
        let mut file = Acknowledged::open(directory, STORE, start()).unwrap();
        assert_eq!(read(directory).unwrap(), Some(start()));
        let first = start().then(7);
        let second = first.then(8);
        file.write(first).unwrap();
        file.write(second).unwrap();
        assert_eq!(read(directory).unwrap(), Some(second));
        let path = directory.join(NAME);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[3] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(read(directory).unwrap(), Some(first));
        bytes[520] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert!(read(directory).unwrap_err().to_string().contains("acknowledged"));
        for nothing in [&b""[..], &[0; 1040], b"short"] {
            std::fs::write(&path, nothing).unwrap();
            assert_eq!(Recorded::read(directory).unwrap(), Recorded::Nothing);
        }
    }

    #[test]
    fn closed_is_what_ended_with_it() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let first = start().then(7);
        let closed = |end| Recorded::End {
            end,
            closed: true,
            store: STORE,
        };
        let open = |end| Recorded::End {
            end,
            closed: false,
            store: STORE,
        };
        let mut file = Acknowledged::open(directory, STORE, start()).unwrap();
        file.close(first).unwrap();
        assert_eq!(Recorded::read(directory).unwrap(), closed(first));
        let mut file = Acknowledged::open(directory, STORE, first).unwrap();
        assert_eq!(Recorded::read(directory).unwrap(), open(first));
        file.close(first).unwrap();
        file.write(first.then(8)).unwrap();
        assert_eq!(Recorded::read(directory).unwrap(), open(first.then(8)));
    }

    #[test]
    fn the_file_of_another_store_is_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        drop(Acknowledged::open(directory.path(), STORE, start()).unwrap());
        let recorded = Recorded::read(directory.path()).unwrap();
        recorded.of(directory.path(), STORE).unwrap();
        let refused = recorded.of(directory.path(), STORE.beside(3)).unwrap_err();
        assert!(
            matches!(&refused, Error::OtherStore { path, .. } if path.ends_with(NAME)),
            "{refused}"
        );
    }

    #[test]
    fn a_group_contradicts_an_acknowledged_one_of_another_chain() {
        let ends: Vec<ChainEnd> = (0..5)
            .scan(start(), |end, digest| Some(std::mem::replace(end, end.then(digest))))
            .collect();
        let link = |at: usize, anchor: usize| Link {
            end: ends[at],
            digest: u32::try_from(at - 1).unwrap(),
            store: STORE,
            anchor: ends[anchor],
        };
        let other = |end: ChainEnd| ChainEnd {
            chain: end.chain ^ 1,
            ..end
        };
        for (at, anchor) in [(4, 3), (4, 1)] {
            for acknowledged in &ends {
                assert!(!link(at, anchor).contradicts(*acknowledged));
            }
            assert!(link(at, anchor).contradicts(other(ends[4])));
            assert!(link(at, anchor).contradicts(other(ends[3])));
            assert!(link(at, anchor).contradicts(other(ends[anchor])));
            assert!(!link(at, anchor).contradicts(other(ends[2])), "not known any more");
        }
    }

    /// The thread syncs the file in time, although no store is open.
    #[test]
    fn the_record_is_synced_in_the_background() {
        let directory = tempfile::tempdir().unwrap();
        let mut file = Acknowledged::open(directory.path(), STORE, start()).unwrap();
        file.write(start().then(7)).unwrap();
        let is_due = Arc::clone(&file.syncer.is_due);
        assert!(is_due.load(Ordering::Acquire));
        for _ in 0..600 {
            if !is_due.load(Ordering::Acquire) {
                return;
            }
            std::thread::sleep(SYNC_WITHIN / 100);
        }
        panic!("not synced");
    }
}
