//! Reads the engine's log without changing it: how far it is intact, and which group is the last.
//!
//! ```text
//! N.jnl    batches, then zeros up to the length that the engine preallocated; the highest N is the active one, the others are sealed
//! batch    start · item … item · end
//! start    01 · items u32 · sequence u64
//! item     02 · kind u8 · compression u8 · keyspace u64 · key length u16 · value length u32 · stored length u32 · key · value
//! end      03 · XXH3-64 of the items u64 · "FJL" 03
//! clear    04 · keyspace u64; counts as an item                                              all little-endian
//! ```
//! Each group is one batch and carries one chain record (layout.rs). So the numbers of groups are consecutive through
//! all files, each leads from the checksum of the one before to its own, and sequence numbers grow. The record names the
//! store: a file of another one is refused, and so is one that does not go through the last acknowledged group. A file may end in a batch that was incomplete when the process or the machine
//! stopped, or the disk was full. That batch was never acknowledged. So a file that cannot be read to its end is sound
//! if two things hold. The next group found follows the last one before the damage. The last group of all is not older
//! than the last acknowledged one; the caller checks this.
//!
//! Source: fjall 3.1.13 (`journal/entry.rs`, `journal/batch_reader.rs`, `journal/writer.rs`). The engine truncates a
//! damaged file in place. This module only reports the position at which it would.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use super::super::acknowledged::{ChainEnd, Expected, Link};
use super::super::directory::{check_identity, io_error};
use super::super::layout::{OWN, Own, parse_own};
use crate::storage::{Error, Result};

const BUFFER_BYTES: usize = 1 << 20;

/// Longest value that may be a chain record.
const CHAIN_VALUE_BYTES_MAX: u32 = 256;

/// The log of an engine.
#[derive(Debug)]
pub(super) struct Log {
    /// By number; the last is the active one.
    pub(super) files: Vec<LogFile>,
    /// The last group in the files. `None` means they have none, because the tables hold all groups.
    pub(super) end: Option<ChainEnd>,
    /// Set if a file cannot be read to its end: the error for the loss of acknowledged groups there, if the caller
    /// finds one.
    pub(super) torn: Option<Error>,
}

/// One file of the log.
#[derive(Debug)]
pub(super) struct LogFile {
    pub(super) path: PathBuf,
    number: u64,
    /// Offset of the end of the last whole batch.
    pub(super) whole_bytes: u64,
    /// Whether anything but zeros follows it.
    pub(super) is_torn: bool,
}

/// State of reading the log.
struct Progress {
    expected: Expected,
    end: Option<ChainEnd>,
    sequence: Option<u64>,
    torn: Option<Error>,
}

struct Batch {
    sequence: u64,
    links: Vec<Link>,
}

fn damaged(path: &Path, what: String) -> Error {
    Error::Corrupt {
        path: path.to_owned(),
        what,
    }
}

impl Log {
    /// Reads the log of the engine in a directory.
    ///
    /// # Errors
    /// The name of a file with damage that no kill or loss of power can cause; a failure of the medium.
    pub(super) fn read(engine: &Path, expected: Expected) -> Result<Self> {
        let mut numbered = Vec::new();
        let listing = || io_error("listing", engine);
        for entry in std::fs::read_dir(engine).map_err(listing())? {
            let path = entry.map_err(listing())?.path();
            if !path.extension().is_some_and(|end| end.eq_ignore_ascii_case("jnl")) {
                continue;
            }
            let number = path.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok());
            let number = number.ok_or_else(|| damaged(&path, "no name of a file of the log".to_owned()))?;
            numbered.push((number, path));
        }
        numbered.sort_unstable();
        let mut files = Vec::new();
        let mut read = Progress {
            expected,
            end: None,
            sequence: None,
            torn: None,
        };
        for (number, path) in numbered {
            let file = read.file(path, number)?;
            if file.is_torn {
                read.torn = Some(damaged(&file.path, file.whereabouts(read.end)));
            }
            files.push(file);
        }
        Ok(Self {
            files,
            end: read.end,
            torn: read.torn,
        })
    }

    /// Whether any byte but zeros was ever written to it.
    pub(super) fn is_used(&self) -> bool {
        self.files
            .iter()
            .any(|file| file.number > 0 || file.whole_bytes > 0 || file.is_torn)
    }
}

impl LogFile {
    /// The position and kind of the damage, for a message.
    fn whereabouts(&self, end: Option<ChainEnd>) -> String {
        let after = end.map_or_else(String::new, |end| format!(", after group {}", end.seq));
        format!("the log cannot be read from byte {} on{after}", self.whole_bytes)
    }
}

impl Progress {
    fn file(&mut self, path: PathBuf, number: u64) -> Result<LogFile> {
        let failed = |error| io_error("reading", &path)(error);
        let file = File::open(&path).map_err(failed)?;
        let mut reader = Reader {
            from: BufReader::with_capacity(BUFFER_BYTES, file),
            at: 0,
        };
        let mut whole_bytes = 0;
        loop {
            match reader.batch() {
                Ok(batch) => self.follow(&path, whole_bytes, &batch)?,
                Err(error) if matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData) => {
                    break;
                }
                Err(error) => return Err(failed(error)),
            }
            whole_bytes = reader.at;
        }
        let is_torn = !reader.is_zero_from(whole_bytes).map_err(failed)?;
        Ok(LogFile {
            path,
            number,
            whole_bytes,
            is_torn,
        })
    }

    /// Checks that a batch continues the one before it.
    fn follow(&mut self, path: &Path, at: u64, batch: &Batch) -> Result<()> {
        let [link] = batch.links.as_slice() else {
            let what = format!("the batch at byte {at} of the log is no group of the store");
            return Err(damaged(path, what));
        };
        check_identity(path, link.store, self.expected.store)?;
        let end = link.end;
        if self
            .expected
            .acknowledged
            .is_some_and(|acknowledged| link.contradicts(acknowledged))
        {
            let what = format!(
                "group {} does not go with the one that was acknowledged: the file is of another copy of the store, or acknowledged is",
                end.seq
            );
            return Err(damaged(path, what));
        }
        if let Some(before) = self.end
            && before.seq + 1 != end.seq
        {
            let what = format!("the log has a gap after group {}, before group {}", before.seq, end.seq);
            return Err(self.torn.take().unwrap_or_else(|| damaged(path, what)));
        }
        // Nothing precedes the first group of a store.
        let before = self
            .end
            .or((end.seq == 1).then(|| ChainEnd::start(self.expected.store)));
        if before.is_some_and(|before| before.then(link.digest) != end) {
            let what = format!("group {} of the log does not follow the one before it", end.seq);
            return Err(damaged(path, what));
        }
        if self.sequence.is_some_and(|before| before >= batch.sequence) {
            let what = format!(
                "the sequence number of group {} does not follow the one before it",
                end.seq
            );
            return Err(damaged(path, what));
        }
        self.end = Some(end);
        self.sequence = Some(batch.sequence);
        Ok(())
    }
}

struct Reader {
    from: BufReader<File>,
    at: u64,
}

fn torn() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

impl Reader {
    fn exact<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.from.read_exact(&mut bytes)?;
        self.at += N as u64;
        Ok(bytes)
    }

    fn batch(&mut self) -> io::Result<Batch> {
        if self.exact::<1>()? != [1] {
            return Err(torn());
        }
        let items = u32::from_le_bytes(self.exact()?);
        let sequence = u64::from_le_bytes(self.exact()?);
        let (mut hasher, mut links) = (Xxh3::new(), Vec::new());
        for _ in 0..items {
            match self.exact::<1>()? {
                [2] => links.extend(self.item(&mut hasher)?),
                [4] => {
                    hasher.update(&[4]);
                    hasher.update(&self.exact::<8>()?);
                }
                _ => return Err(torn()),
            }
        }
        let is_end = self.exact::<1>()? == [3];
        let is_same = is_end && u64::from_le_bytes(self.exact()?) == hasher.digest();
        if !is_same || self.exact::<4>()? != *b"FJL\x03" {
            return Err(torn());
        }
        Ok(Batch { sequence, links })
    }

    /// Skips an item; returns the record of a group if the item is one.
    fn item(&mut self, hasher: &mut Xxh3) -> io::Result<Option<Link>> {
        let [kind, compression] = self.exact()?;
        let keyspace = self.exact::<8>()?;
        let key_length = self.exact::<2>()?;
        let [value_length, stored_length] = [self.exact::<4>()?, self.exact::<4>()?];
        for part in [
            &[2, kind, compression][..],
            &keyspace,
            &key_length,
            &value_length,
            &stored_length,
        ] {
            hasher.update(part);
        }
        let mut key = vec![0; usize::from(u16::from_le_bytes(key_length))];
        self.from.read_exact(&mut key)?;
        self.at += key.len() as u64;
        hasher.update(&key);
        let stored = u32::from_le_bytes(stored_length);
        let is_own_put = kind == 0 && compression == 0 && key.first() == Some(&OWN);
        if is_own_put && stored <= CHAIN_VALUE_BYTES_MAX {
            let mut value = Vec::new();
            self.pass(stored.into(), |bytes| value.extend_from_slice(bytes))?;
            hasher.update(&value);
            return Ok(match parse_own(&key, &value) {
                Some(Own::Chain(link, _)) => Some(link),
                _ => None,
            });
        }
        self.pass(stored.into(), |bytes| hasher.update(bytes))?;
        Ok(None)
    }

    /// Skips this many bytes in pieces, so that a damaged length cannot allocate memory.
    fn pass(&mut self, bytes: u64, mut visit: impl FnMut(&[u8])) -> io::Result<()> {
        let mut left = bytes;
        let mut piece = [0; 16 * 1024];
        while left > 0 {
            let step = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
            let Some(piece) = piece.get_mut(..step) else { break };
            self.from.read_exact(piece)?;
            visit(piece);
            self.at += step as u64;
            left -= step as u64;
        }
        Ok(())
    }

    fn is_zero_from(&mut self, at: u64) -> io::Result<bool> {
        const ZEROS: &[u8] = &[0; 64 * 1024];
        let file = self.from.get_mut();
        file.seek(SeekFrom::Start(at))?;
        let mut piece = vec![0; ZEROS.len()];
        loop {
            let read = file.read(&mut piece)?;
            if read == 0 {
                return Ok(true);
            }
            // Whole pieces are compared: a debug build would take a second for the preallocated zeros byte by byte.
            if piece.get(..read) != ZEROS.get(..read) {
                return Ok(false);
            }
        }
    }
}
