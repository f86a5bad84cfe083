//! Keys in the engines with one key space, and the records that the store keeps for itself.
//!
//! ```text
//! space byte · key                                    see `Space::byte`
//! FF 63 seq u64     → 03 · chain u32 · digest u32 · identity · anchor's seq u64 · anchor's chain u32 · [time mark]
//!                                                     the last group, see `Link`          (fjall only)
//! FF 74             → 02 · identity · object u64 · checksum u32 · [time mark]
//!                                                     the last group, see `Origin`       (SlateDB only)
//! FF 72 n u64       → space byte · bound · bound      a range being deleted, see deletion.rs for bounds
//! FF 77 seq u64     → 01 · chain u32                 a group that other stores may have recorded, see durable.rs (fjall only)
//! FF 73 table u32   → bytes varint · rows varint      what the table holds (fjall only)
//! time mark           given i64 · believed i64        µs, see `TimeMark`
//! identity            database u64 · store u32        see identity.rs
//! ```

use std::ops::Bound;

use super::acknowledged::{ChainEnd, Link};
use crate::storage::batch::Space;
use crate::storage::deletion::{get_bound, put_bound};
use crate::storage::identity::Identity;
use crate::storage::key::{KeyRange, TableId};
use crate::storage::row::{get_varint, put_varint};
use crate::storage::sizes::TableSize;
use helenus_base::clock::TimeMark;

/// First byte of the store's own keys.
pub(super) const OWN: u8 = 0xFF;
const OWN_CHAIN: u8 = b'c';
const OWN_RANGE: u8 = b'r';
const OWN_SIZE: u8 = b's';
const OWN_ORIGIN: u8 = b't';
const OWN_WITNESSED: u8 = b'w';

/// Keys up to this long are built on the stack.
const STACK_KEY_BYTES: usize = 256;

/// One of the store's own records.
pub(super) enum Own {
    /// `None` means that the store records no time.
    Chain(Link, Option<TimeMark>),
    /// As above.
    Origin(Origin, Option<TimeMark>),
    Size(TableId, TableSize),
    Range(u64, Space, KeyRange),
    Witnessed(ChainEnd),
}

/// What each group of SlateDB names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) store: Identity,
    /// The object of the log that was put last before the group was written, and the checksum of its bytes; zeros mean
    /// that there is no record of puts.
    pub(super) object: u64,
    pub(super) sum: u32,
}

const CHAIN_VERSION: u8 = 3;
const ORIGIN_VERSION: u8 = 2;
const WITNESSED_VERSION: u8 = 1;

/// Reads one of the store's own records. `None` means this version writes no such record.
pub(super) fn parse_own(key: &[u8], value: &[u8]) -> Option<Own> {
    let (kind, id) = key.get(1..)?.split_first()?;
    let mut value = value;
    match *kind {
        OWN_CHAIN => {
            let seq = u64::from_be_bytes(id.try_into().ok()?);
            let ([CHAIN_VERSION], rest) = value.split_first_chunk()? else {
                return None;
            };
            let (chain, rest) = take_u32(rest)?;
            let (digest, rest) = take_u32(rest)?;
            let (store, rest) = Identity::take(rest)?;
            let (anchor_seq, rest) = take_u64(rest)?;
            let (anchor_chain, rest) = take_u32(rest)?;
            let link = Link {
                end: ChainEnd { seq, chain },
                digest,
                store,
                anchor: ChainEnd {
                    seq: anchor_seq,
                    chain: anchor_chain,
                },
            };
            Some(Own::Chain(link, get_time(rest)?))
        }
        OWN_ORIGIN if id.is_empty() => {
            let ([ORIGIN_VERSION], rest) = value.split_first_chunk()? else {
                return None;
            };
            let (store, rest) = Identity::take(rest)?;
            let (object, rest) = take_u64(rest)?;
            let (sum, rest) = take_u32(rest)?;
            Some(Own::Origin(Origin { store, object, sum }, get_time(rest)?))
        }
        OWN_WITNESSED => {
            let seq = u64::from_be_bytes(id.try_into().ok()?);
            let ([WITNESSED_VERSION], rest) = value.split_first_chunk()? else {
                return None;
            };
            let chain = u32::from_be_bytes(rest.try_into().ok()?);
            Some(Own::Witnessed(ChainEnd { seq, chain }))
        }
        OWN_SIZE => {
            let size = TableSize {
                bytes: get_varint(&mut value)?,
                rows: get_varint(&mut value)?,
            };
            Some(Own::Size(u32::from_be_bytes(id.try_into().ok()?), size))
        }
        OWN_RANGE => {
            let (space, rest) = value.split_first()?;
            value = rest;
            let space = Space::ALL.into_iter().find(|one| one.byte() == *space)?;
            let range = KeyRange {
                start: get_bound(&mut value)?,
                end: get_bound(&mut value)?,
            };
            Some(Own::Range(u64::from_be_bytes(id.try_into().ok()?), space, range))
        }
        _ => None,
    }
}

fn own_key(kind: u8, id: &[u8]) -> Vec<u8> {
    let mut key = vec![OWN, kind];
    key.extend_from_slice(id);
    key
}

fn take_u32(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_be_bytes(*number), rest))
}

fn take_u64(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u64::from_be_bytes(*number), rest))
}

/// The time mark at the end of a record. The outer `None` means that the bytes are none.
fn get_time(bytes: &[u8]) -> Option<Option<TimeMark>> {
    if bytes.is_empty() {
        return Some(None);
    }
    let (given, believed) = bytes.split_first_chunk::<8>()?;
    Some(Some(TimeMark {
        given_micros: i64::from_be_bytes(*given),
        believed_micros: i64::from_be_bytes(believed.try_into().ok()?),
    }))
}

fn put_time(value: &mut Vec<u8>, time: Option<TimeMark>) {
    if let Some(time) = time {
        value.extend_from_slice(&time.given_micros.to_be_bytes());
        value.extend_from_slice(&time.believed_micros.to_be_bytes());
    }
}

/// The key of the record of a group.
pub(super) fn chain_key(end: ChainEnd) -> Vec<u8> {
    own_key(OWN_CHAIN, &end.seq.to_be_bytes())
}

pub(super) fn chain_record(link: &Link, time: Option<TimeMark>) -> (Vec<u8>, Vec<u8>) {
    let mut value = Vec::with_capacity(49);
    value.push(CHAIN_VERSION);
    value.extend_from_slice(&link.end.chain.to_be_bytes());
    value.extend_from_slice(&link.digest.to_be_bytes());
    value.extend_from_slice(&link.store.to_bytes());
    value.extend_from_slice(&link.anchor.seq.to_be_bytes());
    value.extend_from_slice(&link.anchor.chain.to_be_bytes());
    put_time(&mut value, time);
    (chain_key(link.end), value)
}

/// The key of the record that another store may have recorded a group.
pub(super) fn witnessed_key(end: ChainEnd) -> Vec<u8> {
    own_key(OWN_WITNESSED, &end.seq.to_be_bytes())
}

pub(super) fn witnessed_record(end: ChainEnd) -> (Vec<u8>, Vec<u8>) {
    let mut value = vec![WITNESSED_VERSION];
    value.extend_from_slice(&end.chain.to_be_bytes());
    (witnessed_key(end), value)
}

/// The record of a group, in engines without a chain.
#[cfg(any(feature = "slate", test))]
pub(super) fn origin_record(origin: &Origin, time: Option<TimeMark>) -> (Vec<u8>, Vec<u8>) {
    let mut value = Vec::with_capacity(41);
    value.push(ORIGIN_VERSION);
    value.extend_from_slice(&origin.store.to_bytes());
    value.extend_from_slice(&origin.object.to_be_bytes());
    value.extend_from_slice(&origin.sum.to_be_bytes());
    put_time(&mut value, time);
    (own_key(OWN_ORIGIN, &[]), value)
}

pub(super) fn size_record(table: TableId, size: TableSize) -> (Vec<u8>, Vec<u8>) {
    let mut value = Vec::with_capacity(12);
    put_varint(&mut value, size.bytes);
    put_varint(&mut value, size.rows);
    (own_key(OWN_SIZE, &table.to_be_bytes()), value)
}

pub(super) fn range_record(number: u64, space: Space, range: &KeyRange) -> (Vec<u8>, Vec<u8>) {
    let mut value = vec![space.byte()];
    put_bound(&mut value, &range.start);
    put_bound(&mut value, &range.end);
    (own_key(OWN_RANGE, &number.to_be_bytes()), value)
}

/// The engine's key: the space's byte, then the key.
pub(super) fn full_key(space: Space, key: &[u8]) -> Vec<u8> {
    let mut full = Vec::with_capacity(key.len() + 1);
    full.push(space.byte());
    full.extend_from_slice(key);
    full
}

/// Builds a full key for one look-up, on the stack if it fits.
pub(super) fn with_full_key<T>(space: Space, key: &[u8], call: impl FnOnce(&[u8]) -> T) -> T {
    let mut stack = [0; STACK_KEY_BYTES];
    if let Some(([first, rest @ ..], _)) = stack.split_at_mut_checked(key.len() + 1) {
        *first = space.byte();
        rest.copy_from_slice(key);
        return call(stack.get(..=key.len()).unwrap_or_default());
    }
    call(&full_key(space, key))
}

/// A range of a space's keys as a range of the engine's.
pub(super) fn full_range(space: Space, range: &KeyRange) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let full = |bound: &Bound<Vec<u8>>| bound.as_ref().map(|key| full_key(space, key));
    let start = match &range.start {
        Bound::Unbounded => Bound::Included(vec![space.byte()]),
        bound => full(bound),
    };
    let end = match &range.end {
        Bound::Unbounded => Bound::Excluded(vec![space.byte() + 1]),
        bound => full(bound),
    };
    (start, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_groups_are_read_as_they_were_written_and_no_others() {
        let time = TimeMark {
            given_micros: -3,
            believed_micros: 1 << 50,
        };
        let store = Identity { database: 3, store: 4 };
        let link = Link {
            end: ChainEnd { seq: 7, chain: 9 },
            digest: 8,
            store,
            anchor: ChainEnd { seq: 6, chain: 5 },
        };
        let written = Origin {
            store,
            object: 11,
            sum: 12,
        };
        for time in [None, Some(time)] {
            let (key, value) = chain_record(&link, time);
            assert!(matches!(parse_own(&key, &value), Some(Own::Chain(found, of)) if (found, of) == (link, time)));
            let (other, record) = origin_record(&written, time);
            assert!(
                matches!(parse_own(&other, &record), Some(Own::Origin(found, of)) if (found, of) == (written, time))
            );
            for (key, value) in [(key, value), (other, record)] {
                for cut in 0..value.len() {
                    let is_without_time = time.is_some() && cut + 16 == value.len();
                    assert_eq!(parse_own(&key, &value[..cut]).is_some(), is_without_time, "{cut}");
                }
                assert!(parse_own(&key, &[&value[..], &[0]].concat()).is_none());
                assert!(
                    parse_own(&key, &[&[9], &value[1..]].concat()).is_none(),
                    "of another version"
                );
            }
        }
    }
}
