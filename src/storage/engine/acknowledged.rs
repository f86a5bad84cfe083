//! What was last answered as durable, beside the engine: so that a log which lost its end is noticed when the store opens.
//!
//! ```text
//! slot 0 at byte 0, slot 1 at byte 512; groups alternate, so that a write cut short spoils only one
//! slot   sequence u64 · chain u32 · CRC-32 of these twelve bytes      all big-endian
//! ```
//! Written after the log is synced and not synced itself: after a kill it is as new as the last answer, after a loss of power it may
//! be older, never newer than the log. So it may fail to notice, and never raises a false alarm.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::directory::io_error;
use crate::storage::{Error, Result};

const NAME: &str = "acknowledged";
const SLOT_STRIDE_BYTES: u64 = 512;
const SLOT_BYTES: usize = 16;

/// The end of the chain of groups: how many there were, and the running checksum of all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ChainEnd {
    pub(super) seq: u64,
    pub(super) chain: u32,
}

impl ChainEnd {
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

/// The file.
#[derive(Debug)]
pub(super) struct Acknowledged {
    file: File,
    path: PathBuf,
}

impl Acknowledged {
    /// Opens the file, creating it where there is none, and reads the newest whole slot.
    pub(super) fn open(directory: &Path) -> Result<(Self, Option<ChainEnd>)> {
        let path = directory.join(NAME);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(io_error("opening", &path))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io_error("reading", &path))?;
        let slots: Vec<_> = [0, 1].into_iter().map(|slot| read_slot(&bytes, slot)).collect();
        if !bytes.is_empty() && slots.iter().all(Option::is_none) {
            return Err(Error::Corrupt {
                path,
                what: "neither slot is whole".to_owned(),
            });
        }
        Ok((Self { file, path }, slots.into_iter().flatten().max()))
    }

    /// Notes that everything up to here was made durable.
    pub(super) fn write(&mut self, end: ChainEnd) -> Result<()> {
        let mut slot = [0; SLOT_BYTES];
        let (seq, rest) = slot.split_at_mut(8);
        let (chain, crc) = rest.split_at_mut(4);
        seq.copy_from_slice(&end.seq.to_be_bytes());
        chain.copy_from_slice(&end.chain.to_be_bytes());
        crc.copy_from_slice(&checksum(end).to_be_bytes());
        let at = (end.seq % 2) * SLOT_STRIDE_BYTES;
        let written = self
            .file
            .seek(SeekFrom::Start(at))
            .and_then(|_| self.file.write_all(&slot));
        written.map_err(io_error("writing", &self.path))
    }
}

fn checksum(end: ChainEnd) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&end.seq.to_be_bytes());
    hasher.update(&end.chain.to_be_bytes());
    hasher.finalize()
}

fn read_slot(bytes: &[u8], slot: u64) -> Option<ChainEnd> {
    let rest = bytes.get(usize::try_from(slot * SLOT_STRIDE_BYTES).ok()?..)?;
    let (seq, rest) = rest.split_first_chunk::<8>()?;
    let (chain, rest) = rest.split_first_chunk::<4>()?;
    let (crc, _) = rest.split_first_chunk::<4>()?;
    let end = ChainEnd {
        seq: u64::from_be_bytes(*seq),
        chain: u32::from_be_bytes(*chain),
    };
    (checksum(end) == u32::from_be_bytes(*crc) && end.seq > 0).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_whole_slot_counts() {
        let directory = tempfile::tempdir().unwrap();
        let (mut file, none) = Acknowledged::open(directory.path()).unwrap();
        assert_eq!(none, None);
        let first = ChainEnd::default().then(7);
        let second = first.then(8);
        file.write(first).unwrap();
        file.write(second).unwrap();
        assert_eq!(Acknowledged::open(directory.path()).unwrap().1, Some(second));
        let path = directory.path().join(NAME);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[3] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(Acknowledged::open(directory.path()).unwrap().1, Some(first));
        bytes[520] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert!(
            Acknowledged::open(directory.path())
                .unwrap_err()
                .to_string()
                .contains("acknowledged")
        );
    }
}
