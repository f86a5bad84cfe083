//! Records, in each store of a server, the progress of the other stores. A start thereby detects stores whose files
//! are of different copies, or were copied at different times.
//!
//! Each store's directory has the file, all with the same entries: for every store, its last durable group at that
//! time, with the checksum of the chain up to it. A start compares the stores with all these files before it changes anything
//! ([`check`]). A store that ends before a group that another store's file records is older than that record. A store that does
//! not know the recorded group ([`Durable::may_have`]) is of a copy of the database that was written by itself. Both are
//! refused.
//!
//! When all stores were closed, the last one records their ends as `closed`: nothing may follow those. A start takes
//! that back, durably, before it writes anything ([`begin`]).
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
//! **What it cannot tell.** Groups that a killed server wrote after its last record: at most those of one [`TICK`]; after a
//! loss of power, those of a second. A store's copy from after that record may be written further and take its place.
//!
//! **A missing file** was not written yet, or power was lost before the first sync. A file
//! with both slots damaged is refused, like `acknowledged`.

mod file;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use self::file::{ENTRIES_MAX, Entry, SLOT_STRIDE_BYTES, read, slot};
use super::directory::{full_or, io_error, sync_directory};
use super::durable::{Durable, Wake};
use crate::storage::identity::Identity;
use crate::storage::{Error, Result};

/// The file's name.
pub(in crate::storage) const NAME: &str = "moments";

/// Time between two records.
const TICK: Duration = Duration::from_millis(50);

/// Ticks until records are synced: one second.
const SYNC_TICKS: u32 = 20;

/// A store among those of one server.
#[derive(Clone, Debug)]
pub(in crate::storage) struct Moment {
    pub(super) directory: PathBuf,
    pub(super) identity: Identity,
    pub(super) durable: Arc<Durable>,
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
    /// What was recorded last, and before that.
    last: Vec<Entry>,
    before_last: Vec<Entry>,
    /// What could not be recorded.
    failed: Option<Vec<Entry>>,
}

/// Compares stores that were just opened with the records that they hold of each other. With `is_forced`, a mismatch is
/// logged and accepted.
///
/// # Errors
/// [`Error::EarlierMoment`], [`Error::OtherCopy`], [`Error::FollowsClose`]; a file that is damaged, another store's, or cannot be
/// read.
///
/// Where records contradict several stores, one of an earlier moment is named first: it is the simplest reason.
pub(in crate::storage) fn check(stores: &[(u32, Moment)], is_forced: bool) -> Result<()> {
    let mut first = None;
    for (number, store) in stores {
        let recorded = match read(&store.directory.join(NAME), store.identity) {
            Ok(recorded) => recorded,
            Err(error @ (Error::Corrupt { .. } | Error::OtherStore { .. })) if is_forced => {
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
        for entry in recorded.entries {
            let Some((_, other)) = stores.iter().find(|(number, _)| *number == entry.store) else {
                continue;
            };
            match contradiction(other, entry, &store.directory) {
                None => {}
                Some(error) if is_forced => {
                    tracing::warn!(%error, "the stores are of different copies and are accepted because of --create");
                }
                Some(error @ Error::EarlierMoment { .. }) => return Err(error),
                Some(error) => first = first.or(Some(error)),
            }
        }
    }
    first.map_or(Ok(()), Err)
}

/// Why a store cannot be the one of which another recorded this. `None` means that it can.
fn contradiction(store: &Moment, recorded: Entry, by: &Path) -> Option<Error> {
    let (end, noted) = (store.durable.end(), recorded.end.seq);
    let (directory, later) = (store.directory.clone(), by.to_owned());
    if end.seq < noted {
        let ends = end.seq;
        return Some(Error::EarlierMoment {
            directory,
            ends,
            later,
            noted,
        });
    }
    if !store.durable.may_have(recorded.end) {
        return Some(Error::OtherCopy {
            directory,
            later,
            noted,
        });
    }
    let ends = end.seq;
    (recorded.is_closed && ends > noted).then_some(Error::FollowsClose {
        directory,
        ends,
        later,
        noted,
    })
}

/// Records where stores begin that passed the check, durably: what follows their ends is no mistake from now on. Files
/// that there are not yet are not made.
///
/// # Errors
/// When a file cannot be written.
pub(in crate::storage) fn begin(stores: &[(u32, Moment)]) -> Result<()> {
    let mut all = Stores::default();
    for (number, store) in stores {
        all.add(*number, store.clone());
    }
    all.all.retain(|_, (store, _)| store.directory.join(NAME).exists());
    if all.all.is_empty() {
        return Ok(());
    }
    let entries = stores.iter().take(ENTRIES_MAX).map(|(number, store)| Entry {
        store: *number,
        end: store.durable.end(),
        is_closed: false,
    });
    let entries: Vec<Entry> = entries.collect();
    // In both slots: a later write that is cut short spoils one of them.
    all.write(&entries)?;
    sync(&all.write(&entries)?)
}

/// Removes the file of a store that is the only one.
///
/// # Errors
/// When it cannot be removed.
pub(in crate::storage) fn forget(store: &Moment) -> Result<()> {
    let path = store.directory.join(NAME);
    match std::fs::remove_file(&path) {
        Ok(()) => sync_directory(&store.directory).map_err(io_error("syncing", &store.directory))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(io_error("removing", &path)(error)),
    }
    store.durable.forget_all();
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
        store.durable.set_recorder(&self.wake);
        self.stores().add(number, store);
        self.wake.wake();
    }

    /// Removes a store that is about to be deleted.
    pub fn remove(&self, number: u32) {
        self.stores().all.remove(&number);
        self.wake.wake();
    }

    /// Records once more, and stops. When `last` is closed, after all others, it records that they were closed.
    pub(in crate::storage) fn end(self, last: &Moment) {
        let stores = Arc::clone(&self.stores);
        drop(self);
        last.durable.at_close(move || {
            if let Err(error) = locked(&stores).record_closed() {
                tracing::warn!(%error, "could not record that the stores are closed");
            }
        });
    }
}

impl Drop for Moments {
    fn drop(&mut self) {
        // Wake it before the channel closes: the thread writes the pending record after it sees the end.
        self.wake.wake();
        self.running = None;
        self.wake.wake_now();
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
        if !files.is_empty() {
            let synced = sync(&files);
            locked(stores).synced(&synced);
            report(synced);
        }
        if ended.try_recv() == Err(TryRecvError::Disconnected) {
            return;
        }
    }
}

impl Stores {
    fn add(&mut self, number: u32, store: Moment) {
        // Number the slots above those that an earlier server wrote.
        if let Ok(Some(recorded)) = read(&store.directory.join(NAME), store.identity) {
            self.number = self.number.max(recorded.number);
        }
        self.all.insert(number, (store, None));
    }

    /// Writes the current entries into each store's file; returns the files. After a failure the same entries are written
    /// again instead: a store remembers only so many that differ.
    fn record(&mut self) -> Result<Vec<(PathBuf, Arc<File>)>> {
        if self.all.len() < 2 {
            return Ok(Vec::new());
        }
        let entries = self.failed.take().unwrap_or_else(|| self.entries());
        let written = self.write(&entries);
        if written.is_err() {
            self.failed = Some(entries);
        } else {
            self.before_last = std::mem::replace(&mut self.last, entries);
        }
        written
    }

    fn entries(&self) -> Vec<Entry> {
        let all = self.all.iter().take(ENTRIES_MAX);
        let entry = |(number, (store, _)): (&u32, &(Moment, _))| Entry {
            store: *number,
            end: store.durable.witness(),
            is_closed: false,
        };
        all.map(entry).collect()
    }

    /// What was recorded last is durable in all files, unless the sync failed. A write cut short may spoil that slot, and not
    /// the one before it.
    fn synced(&mut self, synced: &Result<()>) {
        if synced.is_err() {
            self.failed = Some(self.last.clone());
            return;
        }
        for entry in &self.before_last {
            if let Some((store, _)) = self.all.get(&entry.store) {
                store.durable.forget_before(entry.end.seq);
            }
        }
    }

    /// Records, durably, where the stores were closed.
    fn record_closed(&mut self) -> Result<()> {
        if self.all.len() < 2 {
            return Ok(());
        }
        let all = self.all.iter().take(ENTRIES_MAX);
        let entries = all.map(|(number, (store, _))| {
            let (end, is_closed) = store.durable.closed();
            Entry {
                store: *number,
                end,
                is_closed,
            }
        });
        let entries: Vec<Entry> = entries.collect();
        sync(&self.write(&entries)?)
    }

    /// Writes entries into each store's file; returns the files.
    fn write(&mut self, entries: &[Entry]) -> Result<Vec<(PathBuf, Arc<File>)>> {
        self.number += 1;
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
            let slot = slot(store.identity, self.number, entries);
            write_at(file, at as u64, &slot).map_err(|error| full_or(error, &store.directory, "writing", &path))?;
            written.push((path, Arc::clone(file)));
        }
        Ok(written)
    }
}

fn sync(files: &[(PathBuf, Arc<File>)]) -> Result<()> {
    for (path, file) in files {
        file.sync_data().map_err(io_error("syncing", path))?;
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::super::acknowledged::ChainEnd;
    use super::super::durable::History;
    use super::*;

    fn end(seq: u64) -> ChainEnd {
        ChainEnd { seq, chain: 7 }
    }

    /// A store with this end, which knows these earlier ones.
    fn moment(directory: &Path, seq: u64, witnessed: &[u64]) -> Moment {
        std::fs::create_dir_all(directory).unwrap();
        let durable = Arc::new(Durable::default());
        durable.raise(end(seq));
        durable.found(&History {
            witnessed: witnessed.iter().copied().map(end).collect(),
            from: 0,
        });
        Moment {
            directory: directory.to_owned(),
            identity: Identity::default(),
            durable,
        }
    }

    #[test]
    fn a_store_of_an_earlier_moment_or_another_copy_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let [main, beside] = ["main", "beside"].map(|name| folder.path().join(name));
        let stores = |main_seq, beside_seq| {
            vec![
                (0, moment(&main, main_seq, &[5])),
                (7, moment(&beside, beside_seq, &[9])),
            ]
        };
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
        // A longer one that does not know the recorded group.
        let copy = vec![(0, moment(&main, 5, &[])), (7, moment(&beside, 20, &[8]))];
        let error = check(&copy, false).unwrap_err();
        assert!(
            matches!(&error, Error::OtherCopy { directory, noted: 9, .. } if *directory == beside),
            "{error}"
        );
        check(&copy, true).unwrap();
        // Records of a removed store have no effect, and a single store is checked against its own.
        check(&stores(4, 9)[1..], false).unwrap();
        assert!(check(&stores(4, 9)[..1], false).is_err());
    }

    #[test]
    fn nothing_may_follow_the_close_of_all_stores_before_the_next_begin() {
        let folder = tempfile::tempdir().unwrap();
        let [main, beside] = ["main", "beside"].map(|name| folder.path().join(name));
        let stores = |main_seq, beside_seq| {
            vec![
                (0, moment(&main, main_seq, &[5])),
                (7, moment(&beside, beside_seq, &[9])),
            ]
        };
        let now = stores(5, 9);
        Moments::start(now.clone()).unwrap().end(&now[0].1);
        check(&stores(5, 10), false).unwrap();
        now[1].1.durable.close(true);
        now[0].1.durable.close(true);
        check(&stores(5, 9), false).unwrap();
        for (longer, directory) in [(stores(5, 10), &beside), (stores(6, 9), &main)] {
            let error = check(&longer, false).unwrap_err();
            assert!(
                matches!(&error, Error::FollowsClose { directory: of, .. } if of == directory),
                "{error}"
            );
        }
        begin(&stores(5, 9)).unwrap();
        check(&stores(6, 10), false).unwrap();
        // A store that was not closed cleanly may go on.
        let now = stores(5, 9);
        Moments::start(now.clone()).unwrap().end(&now[0].1);
        now[0].1.durable.close(true);
        check(&stores(5, 10), false).unwrap();
        assert!(check(&stores(6, 9), false).is_err());
    }

    #[test]
    fn the_file_of_a_store_that_is_alone_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let [main, beside] = ["main", "beside"].map(|name| folder.path().join(name));
        let now = vec![(0, moment(&main, 5, &[])), (7, moment(&beside, 9, &[]))];
        drop(Moments::start(now).unwrap());
        let alone = moment(&main, 6, &[5]);
        forget(&alone).unwrap();
        forget(&alone).unwrap();
        assert!(!main.join(NAME).exists());
        assert_eq!(alone.durable.witnessed_since(0).unwrap().1, []);
        begin(&[(0, alone)]).unwrap();
        assert!(!main.join(NAME).exists());
    }

    #[test]
    fn raised_groups_are_recorded_until_the_drop_and_by_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let stores = [1, 2].map(|number| (number, moment(&folder.path().join(number.to_string()), 1, &[])));
        for round in 1..4 {
            let moments = Moments::start(stores.to_vec()).unwrap();
            for seq in 1..100 {
                stores[1].1.durable.raise(end(round * 100 + seq));
            }
            drop(moments);
            // A store records in one server's life only; here it continues as a new one.
            for (_, store) in &stores {
                let recorded = read(&store.directory.join(NAME), store.identity).unwrap().unwrap();
                let ends: Vec<_> = recorded.entries.iter().map(|entry| (entry.store, entry.end)).collect();
                assert_eq!(ends, [(1, end(1)), (2, end(round * 100 + 99))]);
            }
            // What was recorded last is known.
            assert!(stores[1].1.durable.may_have(end(round * 100 + 99)));
        }
    }
}
