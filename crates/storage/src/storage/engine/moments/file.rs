//! The content of a `moments` file.
//!
//! ```text
//! DIR/moments   slot 0 at byte 0, slot 1 at byte 16384; written in turn, so that a write cut short spoils only one
//! slot          "HLMO" · version 02 · identity of the store in DIR · number u64, the newer slot has the higher one · count u16
//!               · count × (store u32, 0 is the main one · closed u8 · last group u64 · its chain u32) · CRC-32 of all before
//!                                                                                                      all big-endian
//! ```

use std::io;
use std::path::Path;

use super::super::acknowledged::ChainEnd;
use super::super::directory::{check_identity, io_error, read_file};
use crate::storage::identity::{IDENTITY_BYTES, Identity};
use crate::storage::{Error, Result};

const MAGIC: &[u8; 5] = b"HLMO\x02";
pub(super) const SLOT_STRIDE_BYTES: usize = 16 * 1024;
const HEAD_BYTES: usize = MAGIC.len() + IDENTITY_BYTES + 8 + 2;
const ENTRY_BYTES: usize = 4 + 1 + 8 + 4;
const CRC_BYTES: usize = 4;

/// Most stores that are recorded; beyond it, those with the highest numbers are left out.
pub(super) const ENTRIES_MAX: usize = 960;
const _: () = assert!(HEAD_BYTES + ENTRIES_MAX * ENTRY_BYTES + CRC_BYTES <= SLOT_STRIDE_BYTES);

/// What a file says of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) store: u32,
    pub(super) end: ChainEnd,
    /// Whether the store was closed with that end.
    pub(super) is_closed: bool,
}

/// The content of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Recorded {
    pub(super) number: u64,
    store: Identity,
    pub(super) entries: Vec<Entry>,
}

/// Reads the file of a store. `None` means it is missing or empty.
pub(super) fn read(path: &Path, store: Identity) -> Result<Option<Recorded>> {
    let bytes = match read_file(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error("reading", path)(error)),
    };
    let slots = [0, SLOT_STRIDE_BYTES].map(|at| bytes.get(at..).and_then(parse_slot));
    match slots.into_iter().flatten().max_by_key(|recorded| recorded.number) {
        Some(recorded) => check_identity(path, recorded.store, store).map(|()| Some(recorded)),
        None if bytes.iter().all(|byte| *byte == 0) => Ok(None),
        None => Err(Error::Corrupt {
            path: path.to_owned(),
            what: "neither slot is whole, which say whether the stores are of one moment; start once with --create, which takes the stores as \
                   they are"
                .to_owned(),
        }),
    }
}

pub(super) fn slot(of: Identity, number: u64, entries: &[Entry]) -> Vec<u8> {
    let mut slot = MAGIC.to_vec();
    slot.extend_from_slice(&of.to_bytes());
    slot.extend_from_slice(&number.to_be_bytes());
    let count = u16::try_from(entries.len()).unwrap_or(u16::MAX);
    slot.extend_from_slice(&count.to_be_bytes());
    for entry in entries {
        slot.extend_from_slice(&entry.store.to_be_bytes());
        slot.push(u8::from(entry.is_closed));
        slot.extend_from_slice(&entry.end.seq.to_be_bytes());
        slot.extend_from_slice(&entry.end.chain.to_be_bytes());
    }
    let crc = crc32fast::hash(&slot);
    slot.extend_from_slice(&crc.to_be_bytes());
    slot
}

fn parse_slot(bytes: &[u8]) -> Option<Recorded> {
    let (magic, rest) = bytes.split_first_chunk::<5>()?;
    let (store, rest) = Identity::take(rest)?;
    let (number, rest) = rest.split_first_chunk::<8>()?;
    let (count, rest) = rest.split_first_chunk::<2>()?;
    let count = usize::from(u16::from_be_bytes(*count));
    let (entries, rest) = rest.split_at_checked(count * ENTRY_BYTES)?;
    let crc = u32::from_be_bytes(*rest.first_chunk()?);
    if magic != MAGIC || crc != crc32fast::hash(bytes.get(..HEAD_BYTES + entries.len())?) {
        return None;
    }
    Some(Recorded {
        number: u64::from_be_bytes(*number),
        store,
        entries: entries
            .chunks_exact(ENTRY_BYTES)
            .map(parse_entry)
            .collect::<Option<_>>()?,
    })
}

fn parse_entry(bytes: &[u8]) -> Option<Entry> {
    let (store, rest) = bytes.split_first_chunk::<4>()?;
    let ([is_closed], rest) = rest.split_first_chunk()?;
    let (seq, chain) = rest.split_first_chunk::<8>()?;
    Some(Entry {
        store: u32::from_be_bytes(*store),
        is_closed: *is_closed == 1,
        end: ChainEnd {
            seq: u64::from_be_bytes(*seq),
            chain: u32::from_be_bytes(chain.try_into().ok()?),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE: Identity = Identity { database: 5, store: 2 };

    #[test]
    fn the_newest_whole_slot_counts_and_nothing_else_is_misread() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("moments");
        assert_eq!(read(&path, STORE).unwrap(), None);
        let entry = |store, seq, is_closed| Entry {
            store,
            end: ChainEnd { seq, chain: 9 },
            is_closed,
        };
        let entries = vec![entry(0, 7, false), entry(3, u64::MAX, true)];
        let (old, new) = (slot(STORE, 8, &entries), slot(STORE, 9, &entries));
        let mut bytes = vec![0; SLOT_STRIDE_BYTES];
        bytes[..old.len()].copy_from_slice(&old);
        bytes.extend_from_slice(&new);
        let number = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            read(&path, STORE).map(|recorded| recorded.map(|recorded| recorded.number))
        };
        assert_eq!(number(&bytes).unwrap(), Some(9));
        assert_eq!(read(&path, STORE).unwrap().unwrap().entries, entries);
        let refused = read(&path, STORE.beside(4)).unwrap_err();
        assert!(
            matches!(&refused, Error::OtherStore { path: of, .. } if *of == path),
            "{refused}"
        );
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
