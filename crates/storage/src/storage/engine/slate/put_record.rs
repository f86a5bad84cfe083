//! A record of a database's last puts, in a file next to it. By this record a start detects a log, a manifest or a
//! whole folder from an earlier time.
//!
//! ```text
//! DIR/acknowledged               of the database "engine"
//! DIR/acknowledged.stores.N      of "stores/N"; outside its folder, so that it stays when the folder is exchanged
//!
//! slot 0 at byte 0, slot 1 at byte 2048; writes alternate, so that one cut short spoils only one
//! slot   version u8 = 3 · closed u8 · marks u8 · witnessed u8 · database u64 · store u32 · turn u64 · log u64 · manifest u64 ·
//!        compactions u64 · since u64 · data u64 · sum u32 · data's sum u32 · mark u64 × marks ·
//!        (log u64 · chain u32) × witnessed · CRC-32 of all before it                              all big-endian
//! ```
//! `log`, `manifest` and `compactions` are the greatest numbers put there; the newest whole slot is the one of the
//! greater turn. `sum` is the CRC-32 of the bytes of the object `log`, so that the log of another copy of the database is
//! refused. `data` is the last object of the log with a byte. `witnessed` are ends that other stores may have recorded (durable.rs):
//! the chain of an end is a checksum of its `data`. `closed` is 1 once the database was closed: no object of the log may follow. A log object without a byte is the mark of
//! a writer that took over, which each opening puts, or the rest of an object that held data. Marks from number `since` on are listed, the newest [`MARKS_MAX`].
//!
//! Written after an object is put and before its commit is answered; a thread syncs it within
//! [`SYNC_WITHIN`](super::super::acknowledged). So after a kill it is as new as the last answer; after a loss of power
//! it may be a second older, but never newer than the objects. If a database has no record, it is a clone, or the record
//! was removed. Then the existing objects count as complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::places::{DATABASE, Folder};
use crate::storage::engine::acknowledged::{ChainEnd, Syncer};
use crate::storage::engine::directory::{check_identity, full_or, io_error, sync_directory};
use crate::storage::engine::durable::{Durable, History};
use crate::storage::identity::{IDENTITY_BYTES, Identity};
use crate::storage::{Error, Result};

const NAME: &str = "acknowledged";
const VERSION: u8 = 3;
/// Bytes before the numbers.
const HEAD_BYTES: usize = 4 + IDENTITY_BYTES;
/// Numbers besides those of marks.
const NUMBERS: usize = 6;
const SUMS_BYTES: usize = 2 * 4;
const WITNESSED_BYTES: usize = 8 + 4;
const SLOT_STRIDE_BYTES: usize = 2048;
/// Most marks that are distinguished from log objects that lost their bytes: the marks of as many openings without a
/// table written in between.
const MARKS_MAX: usize = 48;

/// The greatest numbers put in a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ends {
    pub(super) log: u64,
    pub(super) manifest: u64,
    pub(super) compactions: u64,
    /// The checksum of the bytes of the object `log`.
    pub(super) sum: u32,
    /// The last object of the log that has a byte.
    pub(super) data: Data,
    /// Whether the database was closed after them.
    pub(super) closed: bool,
    /// From which number on all marks in the log are known.
    pub(super) since: u64,
    /// The oldest first.
    pub(super) marks: Vec<u64>,
    /// Ends that other stores may have recorded, the oldest first.
    pub(super) witnessed: Vec<ChainEnd>,
}

/// An object of the log with a byte, and the checksum of its bytes. Each names the one before it (layout.rs), so two copies that
/// were written by themselves differ in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Data {
    pub(super) log: u64,
    pub(super) sum: u32,
}

impl Data {
    /// The end of a log whose last object is `log`, for other stores.
    pub(super) fn end(self, log: u64) -> ChainEnd {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.log.to_be_bytes());
        hasher.update(&self.sum.to_be_bytes());
        ChainEnd {
            seq: log,
            chain: hasher.finalize(),
        }
    }
}

/// What is kept of an object's bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Body {
    pub(super) is_empty: bool,
    /// Of an object of the log.
    pub(super) sum: u32,
}

impl Ends {
    /// Adds an object that was put.
    pub(super) fn add(&mut self, folder: Folder, id: u64, body: Body) {
        if folder == Folder::Log && id >= self.log {
            self.sum = body.sum;
            if !body.is_empty {
                self.data = Data { log: id, sum: body.sum };
            }
        }
        let end = match folder {
            Folder::Log => &mut self.log,
            Folder::Manifests => &mut self.manifest,
            Folder::Compactions => &mut self.compactions,
        };
        *end = id.max(*end);
        if folder == Folder::Log && body.is_empty && !self.marks.contains(&id) {
            self.marks.push(id);
            if self.marks.len() > MARKS_MAX {
                self.marks.remove(0);
                self.since = self.marks.first().copied().unwrap_or(id);
            }
        }
    }

    /// Forgets marks up to a number, which the manifest leaves out when the log is read.
    pub(super) fn forget_marks(&mut self, up_to: u64) {
        self.marks.retain(|mark| *mark > up_to);
        self.since = self.since.max(up_to + 1);
    }

    /// The end of the log, for other stores.
    pub(super) fn end(&self) -> ChainEnd {
        self.data.end(self.log)
    }

    pub(super) fn of(&self, folder: Folder) -> u64 {
        match folder {
            Folder::Log => self.log,
            Folder::Manifests => self.manifest,
            Folder::Compactions => self.compactions,
        }
    }

    /// Whether a log object without a byte had some when it was put.
    pub(super) fn was_cut(&self, id: u64) -> bool {
        (self.since..=self.log).contains(&id) && !self.marks.contains(&id)
    }
}

/// The file of a database's record.
pub(super) fn path_of(directory: &Path, database: &str) -> PathBuf {
    match database {
        DATABASE => directory.join(NAME),
        beside => directory.join(format!("{NAME}.{}", beside.replace('/', "."))),
    }
}

/// Databases beside the main one that have a record.
pub(super) fn beside(directory: &Path) -> Result<Vec<String>> {
    let failed = |error| io_error("listing", directory)(error);
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if let Some(number) = name.to_str().and_then(|name| name.strip_prefix("acknowledged.stores."))
            && number.bytes().all(|byte| byte.is_ascii_digit())
        {
            found.push(format!("stores/{number}"));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Reads the record of a store. `None` means that it is missing, empty, short, or zeros.
///
/// # Errors
/// It is damaged, or another store's.
pub(super) fn read(path: &Path, store: Identity) -> Result<Option<Ends>> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error("reading", path)(error)),
    };
    let slots = [0, SLOT_STRIDE_BYTES].map(|at| bytes.get(at..).and_then(read_slot));
    if let Some(slot) = slots.into_iter().flatten().max_by_key(|slot| slot.turn) {
        check_identity(path, slot.store, store)?;
        return Ok(Some(slot.ends));
    }
    if bytes.len() < SLOT_STRIDE_BYTES || bytes.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    Err(Error::Corrupt {
        path: path.to_owned(),
        what: "neither slot is whole, or both are of a later version".to_owned(),
    })
}

/// The store that the main database's record names. `None` means that it cannot be read.
pub(in crate::storage::engine) fn store_of(directory: &Path) -> Option<Identity> {
    let bytes = fs::read(path_of(directory, DATABASE)).ok()?;
    let slots = [0, SLOT_STRIDE_BYTES].map(|at| bytes.get(at..).and_then(read_slot));
    slots.into_iter().flatten().map(|slot| slot.store).next()
}

/// Removes a record, durably, before its database is removed.
pub(super) fn remove(directory: &Path, database: &str) -> Result<()> {
    let path = path_of(directory, database);
    match fs::remove_file(&path).and_then(|()| sync_directory(directory)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error("removing", &path)(error)),
        _ => Ok(()),
    }
}

/// A database that is opened.
pub(super) struct Opened {
    pub(super) store: Identity,
    /// The last puts in it.
    pub(super) ends: Ends,
    /// From this object on, all ends that other stores may have recorded are known.
    pub(super) from: u64,
    pub(super) durable: Arc<Durable>,
}

/// The record of an open database.
#[derive(Debug)]
pub(super) struct PutRecord {
    path: PathBuf,
    state: Mutex<State>,
    syncer: Syncer,
    durable: Arc<Durable>,
}

#[derive(Debug)]
struct State {
    file: File,
    ends: Ends,
    turn: u64,
    store: Identity,
    /// The number of changes of the witnessed ends when they were taken last.
    witnessed_changes: u64,
}

impl PutRecord {
    /// Opens the record of a database with these ends, and makes it if there is none.
    pub(super) fn open(directory: &Path, database: &str, of: Opened) -> Result<Self> {
        let Opened {
            store,
            mut ends,
            from,
            durable,
        } = of;
        ends.closed = false;
        let path = path_of(directory, database);
        let failed = |operation| move |error| full_or(error, directory, operation, &path_of(directory, database));
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed("opening"))?;
        durable.raise(ends.end());
        durable.found(&History {
            witnessed: std::mem::take(&mut ends.witnessed),
            from,
        });
        let syncer = Syncer::start(file.try_clone().map_err(failed("opening"))?, path.clone())?;
        let mut state = State {
            file,
            ends,
            turn: 0,
            store,
            witnessed_changes: 0,
        };
        state.take_witnessed(&durable);
        // Written to both slots, so that neither keeps an earlier turn.
        state.write().and_then(|()| state.write()).map_err(failed("writing"))?;
        let synced = state.file.sync_all().and_then(|()| sync_directory(directory));
        synced.map_err(failed("syncing"))?;
        Ok(Self {
            path,
            state: Mutex::new(state),
            syncer,
            durable,
        })
    }

    /// Records an object that was put.
    pub(super) fn add(&self, folder: Folder, id: u64, body: Body) -> Result<(), (PathBuf, io::Error)> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.ends.add(folder, id, body);
        self.durable.raise(state.ends.end());
        state.take_witnessed(&self.durable);
        state.write().map_err(|error| (self.path.clone(), error))?;
        self.syncer.request_sync();
        Ok(())
    }
}

impl PutRecord {
    /// The last object of the log, and the checksum of its bytes.
    pub(super) fn last_of_log(&self) -> (u64, u32) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.ends.log, state.ends.sum)
    }

    /// Records that the database is closed.
    pub(super) fn close(&self) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.ends.closed = true;
        state.write()?;
        state.file.sync_data()
    }
}

impl Drop for PutRecord {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        // At most the last second is not synced, and an older record is still valid.
        if let Err(error) = state.file.sync_data() {
            tracing::warn!(%error, path = %self.path.display(), "the record of the last puts could not be synced");
        }
    }
}

impl State {
    /// Takes the ends that other stores may have recorded.
    fn take_witnessed(&mut self, durable: &Durable) {
        if let Some((changes, witnessed)) = durable.witnessed_since(self.witnessed_changes) {
            self.witnessed_changes = changes;
            self.ends.witnessed = witnessed;
        }
    }

    fn write(&mut self) -> io::Result<()> {
        self.turn += 1;
        let mut slot = Vec::with_capacity(SLOT_STRIDE_BYTES);
        let Ends {
            log,
            manifest,
            compactions,
            sum,
            data,
            closed,
            since,
            marks,
            witnessed,
        } = &self.ends;
        slot.extend_from_slice(&[VERSION, u8::from(*closed)]);
        slot.push(u8::try_from(marks.len()).map_err(io::Error::other)?);
        slot.push(u8::try_from(witnessed.len()).map_err(io::Error::other)?);
        slot.extend_from_slice(&self.store.to_bytes());
        for number in [&self.turn, log, manifest, compactions, since, &data.log] {
            slot.extend_from_slice(&number.to_be_bytes());
        }
        slot.extend_from_slice(&sum.to_be_bytes());
        slot.extend_from_slice(&data.sum.to_be_bytes());
        for mark in marks {
            slot.extend_from_slice(&mark.to_be_bytes());
        }
        for end in witnessed {
            slot.extend_from_slice(&end.seq.to_be_bytes());
            slot.extend_from_slice(&end.chain.to_be_bytes());
        }
        slot.extend_from_slice(&crc32fast::hash(&slot).to_be_bytes());
        slot.resize(SLOT_STRIDE_BYTES, 0);
        self.file
            .seek(SeekFrom::Start((self.turn % 2) * SLOT_STRIDE_BYTES as u64))?;
        self.file.write_all(&slot)
    }
}

struct Slot {
    turn: u64,
    store: Identity,
    ends: Ends,
}

fn read_slot(bytes: &[u8]) -> Option<Slot> {
    let ([version, closed, marks, witnessed], rest) = bytes.split_first_chunk()?;
    let (store, rest) = Identity::take(rest)?;
    let (numbers, rest) = rest.split_at_checked(NUMBERS * 8)?;
    let (sum, rest) = rest.split_first_chunk::<4>()?;
    let (data_sum, rest) = rest.split_first_chunk::<4>()?;
    let (marks, rest) = rest.split_at_checked(usize::from(*marks) * 8)?;
    let (witnessed, rest) = rest.split_at_checked(usize::from(*witnessed) * WITNESSED_BYTES)?;
    let (crc, _) = rest.split_first_chunk::<4>()?;
    let summed = bytes.get(..HEAD_BYTES + numbers.len() + SUMS_BYTES + marks.len() + witnessed.len())?;
    if *version != VERSION || crc32fast::hash(summed) != u32::from_be_bytes(*crc) {
        return None;
    }
    let each = |bytes: &[[u8; 8]]| {
        bytes
            .iter()
            .map(|number| u64::from_be_bytes(*number))
            .collect::<Vec<_>>()
    };
    let [turn, log, manifest, compactions, since, data] = each(numbers.as_chunks().0).try_into().ok()?;
    let ends = Ends {
        log,
        manifest,
        compactions,
        sum: u32::from_be_bytes(*sum),
        data: Data {
            log: data,
            sum: u32::from_be_bytes(*data_sum),
        },
        closed: *closed == 1,
        since,
        marks: each(marks.as_chunks().0),
        witnessed: witnessed
            .chunks_exact(WITNESSED_BYTES)
            .map(witnessed_end)
            .collect::<Option<_>>()?,
    };
    Some(Slot { turn, store, ends })
}

fn witnessed_end(bytes: &[u8]) -> Option<ChainEnd> {
    let (seq, chain) = bytes.split_first_chunk::<8>()?;
    Some(ChainEnd {
        seq: u64::from_be_bytes(*seq),
        chain: u32::from_be_bytes(chain.try_into().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE: Identity = Identity { database: 5, store: 7 };

    fn opened() -> Opened {
        Opened {
            store: STORE,
            ends: Ends::default(),
            from: 0,
            durable: Arc::default(),
        }
    }

    fn body(is_empty: bool) -> Body {
        Body { is_empty, sum: 9 }
    }

    #[test]
    fn the_record_of_another_store_is_refused_and_a_close_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let path = path_of(directory, "stores/7");
        let note = PutRecord::open(directory, "stores/7", opened()).unwrap();
        note.add(Folder::Log, 3, body(false)).unwrap();
        assert_eq!(note.last_of_log(), (3, 9));
        assert!(!read(&path, STORE).unwrap().unwrap().closed);
        note.close().unwrap();
        let closed = read(&path, STORE).unwrap().unwrap();
        assert_eq!((closed.closed, closed.log, closed.sum), (true, 3, 9));
        assert!(matches!(read(&path, STORE.beside(8)), Err(Error::OtherStore { .. })));
        let of = Opened {
            ends: closed,
            ..opened()
        };
        drop(PutRecord::open(directory, "stores/7", of).unwrap());
        assert!(!read(&path, STORE).unwrap().unwrap().closed);
    }

    #[test]
    fn the_newest_whole_slot_counts() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let path = path_of(directory, "stores/7");
        assert_eq!(read(&path, STORE).unwrap(), None);
        let note = PutRecord::open(directory, "stores/7", opened()).unwrap();
        note.add(Folder::Log, 1, body(true)).unwrap();
        note.add(Folder::Log, 2, body(false)).unwrap();
        let before = read(&path, STORE).unwrap().unwrap();
        note.add(Folder::Manifests, 9, body(false)).unwrap();
        let after = read(&path, STORE).unwrap().unwrap();
        assert_eq!((after.log, after.manifest, &after.marks[..]), (2, 9, &[1][..]));
        assert_eq!(beside(directory).unwrap(), ["stores/7"]);
        let mut bytes = fs::read(&path).unwrap();
        bytes[SLOT_STRIDE_BYTES + 20] ^= 1;
        fs::write(&path, &bytes).unwrap();
        assert_eq!(read(&path, STORE).unwrap().unwrap(), before);
        bytes[20] ^= 1;
        fs::write(&path, &bytes).unwrap();
        assert!(
            read(&path, STORE)
                .unwrap_err()
                .to_string()
                .contains("acknowledged.stores.7")
        );
        for bytes in [&b""[..], b"short", &[0; 2 * SLOT_STRIDE_BYTES]] {
            fs::write(&path, bytes).unwrap();
            assert_eq!(read(&path, STORE).unwrap(), None);
        }
        remove(directory, "stores/7").unwrap();
        remove(directory, "stores/7").unwrap();
        assert!(beside(directory).unwrap().is_empty());
    }

    #[test]
    fn an_empty_log_object_is_a_mark_or_has_lost_its_bytes() {
        let mut ends = Ends {
            log: 10,
            since: 8,
            ..Ends::default()
        };
        ends.add(Folder::Log, 11, body(true));
        ends.add(Folder::Log, 12, body(false));
        let cut: Vec<u64> = (6..15).filter(|id| ends.was_cut(*id)).collect();
        assert_eq!(cut, [8, 9, 10, 12]);
        for id in 13..13 + 2 * MARKS_MAX as u64 {
            ends.add(Folder::Log, id, body(true));
        }
        assert_eq!(ends.marks.len(), MARKS_MAX);
        assert!(!ends.was_cut(12), "no longer known");
        const {
            let lists = 8 * MARKS_MAX + WITNESSED_BYTES * crate::storage::engine::durable::WITNESSED_MAX;
            assert!(HEAD_BYTES + 8 * NUMBERS + SUMS_BYTES + lists + 4 <= SLOT_STRIDE_BYTES);
        };
    }
}
