//! Keys in the engines with one key space, and the records that the store keeps for itself.
//!
//! ```text
//! space byte · key                                    see `Space::byte`
//! FF 63 seq u64     → 01 · chain u32                  the last group, see fjall.rs; written before there were time marks
//!                   → 02 · chain u32 · time mark      the same with a time mark
//! FF 74             → 01 · time mark                  (SlateDB only)
//! FF 72 n u64       → space byte · bound · bound      a range being deleted, see deletion.rs for bounds
//! FF 73 table u32   → bytes varint · rows varint      what the table holds (fjall only)
//! time mark           given i64 · believed i64        µs, see `TimeMark`; what a server that was older does not know, it refuses
//! ```

use std::ops::Bound;

use super::acknowledged::ChainEnd;
use crate::clock::TimeMark;
use crate::storage::batch::Space;
use crate::storage::deletion::{get_bound, put_bound};
use crate::storage::key::{KeyRange, TableId};
use crate::storage::row::{get_varint, put_varint};
use crate::storage::sizes::TableSize;

/// First byte of the store's own keys.
pub(super) const OWN: u8 = 0xFF;
const OWN_CHAIN: u8 = b'c';
const OWN_RANGE: u8 = b'r';
const OWN_SIZE: u8 = b's';
const OWN_TIME: u8 = b't';

/// Keys up to this long are built on the stack.
const STACK_KEY_BYTES: usize = 256;

/// One of the store's own records.
pub(super) enum Own {
    /// `None` means it was written before there were time marks.
    Chain(ChainEnd, Option<TimeMark>),
    Time(TimeMark),
    Size(TableId, TableSize),
    Range(u64, Space, KeyRange),
}

/// Reads one of the store's own records. `None` means this version writes no such record.
pub(super) fn parse_own(key: &[u8], value: &[u8]) -> Option<Own> {
    let (kind, id) = key.get(1..)?.split_first()?;
    let mut value = value;
    match *kind {
        OWN_CHAIN => {
            let (version, rest) = value.split_first()?;
            let (chain, rest) = rest.split_first_chunk::<4>()?;
            let end = ChainEnd {
                seq: u64::from_be_bytes(id.try_into().ok()?),
                chain: u32::from_be_bytes(*chain),
            };
            match *version {
                1 if rest.is_empty() => Some(Own::Chain(end, None)),
                2 => Some(Own::Chain(end, Some(get_time(rest)?))),
                _ => None,
            }
        }
        OWN_TIME if id.is_empty() => {
            let (version, rest) = value.split_first()?;
            (*version == 1).then(|| get_time(rest).map(Own::Time))?
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

fn get_time(bytes: &[u8]) -> Option<TimeMark> {
    let (given, believed) = bytes.split_first_chunk::<8>()?;
    Some(TimeMark {
        given_micros: i64::from_be_bytes(*given),
        believed_micros: i64::from_be_bytes(believed.try_into().ok()?),
    })
}

fn put_time(value: &mut Vec<u8>, time: TimeMark) {
    value.extend_from_slice(&time.given_micros.to_be_bytes());
    value.extend_from_slice(&time.believed_micros.to_be_bytes());
}

/// The key of the record of a group.
pub(super) fn chain_key(end: ChainEnd) -> Vec<u8> {
    own_key(OWN_CHAIN, &end.seq.to_be_bytes())
}

pub(super) fn chain_record(end: ChainEnd, time: Option<TimeMark>) -> (Vec<u8>, Vec<u8>) {
    let mut value = Vec::with_capacity(21);
    value.push(if time.is_some() { 2 } else { 1 });
    value.extend_from_slice(&end.chain.to_be_bytes());
    if let Some(time) = time {
        put_time(&mut value, time);
    }
    (chain_key(end), value)
}

/// The record of time, in engines without a chain.
#[cfg(any(feature = "slate", test))]
pub(super) fn time_record(time: TimeMark) -> (Vec<u8>, Vec<u8>) {
    let mut value = Vec::with_capacity(17);
    value.push(1);
    put_time(&mut value, time);
    (own_key(OWN_TIME, &[]), value)
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
    fn records_of_time_are_read_as_they_were_written_and_old_ones_as_before() {
        let end = ChainEnd { seq: 7, chain: 9 };
        let time = TimeMark {
            given_micros: -3,
            believed_micros: 1 << 50,
        };
        let read = |(key, value): (Vec<u8>, Vec<u8>)| parse_own(&key, &value);
        assert!(matches!(read(chain_record(end, None)), Some(Own::Chain(found, None)) if found == end));
        assert!(
            matches!(read(chain_record(end, Some(time))), Some(Own::Chain(found, Some(of))) if (found, of) == (end, time))
        );
        assert!(matches!(read(time_record(time)), Some(Own::Time(found)) if found == time));
        let (key, value) = chain_record(end, Some(time));
        for cut in 0..value.len() {
            assert!(parse_own(&key, &value[..cut]).is_none(), "{cut}");
        }
        assert!(parse_own(&key, &[&value[..], &[0]].concat()).is_none());
        assert!(
            parse_own(&key, &[&[3], &value[1..]].concat()).is_none(),
            "of a later version"
        );
        let old = [1, 0, 0, 0, 9];
        assert_eq!(chain_record(end, None).1, old);
    }
}
