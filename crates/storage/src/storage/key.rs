//! Keys: the position of a row in the one ordered key space of a store.
//!
//! ```text
//! ┌───────────────┬──────────────────────┬───────────────────────────┬──────┬─────────────────────┐
//! │ table id u32  │ token i64, big-endian│ partition key, escaped    │ kind │ clustering key      │
//! │ big-endian    │ sign bit flipped     │ 00 → 00 FF, end 00 00     │ 01/02│ (rows only)         │
//! │               │                      │ token 0: bytes `raised`   │      │                     │
//! └───────────────┴──────────────────────┴───────────────────────────┴──────┴─────────────────────┘
//!  ←─────────────── partition prefix ───────────────────────────────→
//!  kind 01 = the static row, 02 = a row
//! ```
//!
//! All keys of a table that is ordered by partition key have token 0; there partition keys sort by UTF-16 unit (`helenus_base::utf16`).
//! Otherwise keys sort as CQL sorts: by table, token, partition key, static row first, then clustering key. So a logical
//! partition, a physical partition and a table are each one contiguous range. The caller passes the clustering key in
//! order-preserving encoding; it is the last part and needs no terminator. Index entries and change-feed entries have
//! key formats of their own and share only the ranges.

use std::borrow::Cow;
use std::ops::Bound;

use helenus_base::utf16;

use super::{Damaged, Error, Result};

/// Identifies a table for the lifetime of the store; never reused, so that rows of a dropped table never appear in
/// another.
pub type TableId = u32;

/// Bytes of the table id, with which every key begins.
pub(super) const TABLE_ID_BYTES: usize = 4;

/// Bytes of the table id and the token, with which every partition prefix begins.
const TABLE_AND_TOKEN_BYTES: usize = 12;

/// Which row of a partition a key names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowKind {
    /// The static row: one per partition, before all others.
    Static,
    /// A row with a clustering key, possibly empty.
    Row,
}

impl RowKind {
    const STATIC: u8 = 0x01;
    const ROW: u8 = 0x02;
}

/// A row's key, parsed. Borrows from the key except where the partition key held a zero byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedKey<'a> {
    /// The table.
    pub table: TableId,
    /// The token of the partition key.
    pub token: i64,
    /// The partition key as passed to [`partition_prefix`].
    pub partition_key: Cow<'a, [u8]>,
    /// Bytes of the partition prefix at the start of the key.
    pub prefix_len: usize,
    /// Static row or row.
    pub kind: RowKind,
    /// The clustering key, still encoded; empty for a static row.
    pub clustering: &'a [u8],
}

/// A range of keys by its bounds. Empty when the start lies past the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// Where the range begins.
    pub start: Bound<Vec<u8>>,
    /// Where the range ends.
    pub end: Bound<Vec<u8>>,
}

impl KeyRange {
    /// The range of every key.
    #[must_use]
    pub fn all() -> Self {
        Self {
            start: Bound::Unbounded,
            end: Bound::Unbounded,
        }
    }

    /// Every key that begins with `prefix`.
    #[must_use]
    pub fn prefix(prefix: &[u8]) -> Self {
        Self {
            start: Bound::Included(prefix.to_vec()),
            end: successor(prefix).map_or(Bound::Unbounded, Bound::Excluded),
        }
    }

    /// Whether `key` lies in the range.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        covers(&self.start, &self.end, key)
    }

    /// Whether no key can lie in the range. Engines panic on bounds that cross, so they check this first.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match (&self.start, &self.end) {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(start), Bound::Included(end)) => start > end,
            (Bound::Included(start) | Bound::Excluded(start), Bound::Included(end) | Bound::Excluded(end)) => {
                start >= end
            }
        }
    }
}

/// Whether `key` lies between two bounds.
pub(super) fn covers(start: &Bound<Vec<u8>>, end: &Bound<Vec<u8>>, key: &[u8]) -> bool {
    let after_start = match start {
        Bound::Included(start) => key >= start.as_slice(),
        Bound::Excluded(start) => key > start.as_slice(),
        Bound::Unbounded => true,
    };
    let before_end = match end {
        Bound::Included(end) => key <= end.as_slice(),
        Bound::Excluded(end) => key < end.as_slice(),
        Bound::Unbounded => true,
    };
    after_start && before_end
}

/// The least key above another one.
pub(super) fn after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

/// The least byte string above every string that begins with `prefix`; `None` when there is none (all bytes 0xFF).
#[must_use]
pub fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|byte| *byte != 0xFF)?;
    let mut bytes = prefix.get(..=kept)?.to_vec();
    let last = bytes.last_mut()?;
    *last = last.wrapping_add(1);
    Some(bytes)
}

/// Appends `bytes` so that prefixes sort first and the end is marked: 00 → 00 FF, then 00 00.
pub(super) fn escape_into(out: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        out.push(*byte);
        if *byte == 0 {
            out.push(0xFF);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

/// Reads what [`escape_into`] wrote from the start of `bytes`: the string and how many bytes it took. `None` means no
/// end was found.
pub(super) fn unescape(bytes: &[u8]) -> Option<(Cow<'_, [u8]>, usize)> {
    let first_zero = bytes.iter().position(|byte| *byte == 0)?;
    if bytes.get(first_zero + 1) == Some(&0) {
        return Some((Cow::Borrowed(bytes.get(..first_zero)?), first_zero + 2));
    }
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    loop {
        match (*bytes.get(at)?, bytes.get(at + 1)) {
            (0, Some(0)) => return Some((Cow::Owned(plain), at + 2)),
            (0, Some(0xFF)) => {
                plain.push(0);
                at += 2;
            }
            (0, _) => return None,
            (byte, _) => {
                plain.push(byte);
                at += 1;
            }
        }
    }
}

/// The token under which partition keys lie in the order of their UTF-16 units: that of ordered tables.
pub(super) const ORDERED_TOKEN: i64 = 0;

/// Appends a partition key of this token.
fn escape_partition_key(out: &mut Vec<u8>, token: i64, partition_key: &[u8]) {
    let start = out.len();
    escape_into(out, partition_key);
    if token == ORDERED_TOKEN {
        for byte in out.iter_mut().skip(start) {
            *byte = utf16::raised(*byte);
        }
    }
}

/// Reads what [`escape_partition_key`] wrote; see [`unescape`].
fn unescape_partition_key(token: i64, bytes: &[u8]) -> Option<(Cow<'_, [u8]>, usize)> {
    let (key, escaped_len) = unescape(bytes)?;
    if token != ORDERED_TOKEN || key.iter().all(|byte| utf16::lowered(*byte) == *byte) {
        return Some((key, escaped_len));
    }
    let key = key.iter().map(|byte| utf16::lowered(*byte)).collect();
    Some((Cow::Owned(key), escaped_len))
}

fn table_and_token(table: TableId, token: i64) -> [u8; TABLE_AND_TOKEN_BYTES] {
    let flipped = token.cast_unsigned() ^ (1 << 63);
    let mut bytes = [0; TABLE_AND_TOKEN_BYTES];
    let (for_table, for_token) = bytes.split_at_mut(4);
    for_table.copy_from_slice(&table.to_be_bytes());
    for_token.copy_from_slice(&flipped.to_be_bytes());
    bytes
}

/// The prefix of every key of a logical partition.
#[must_use]
pub fn partition_prefix(table: TableId, token: i64, partition_key: &[u8]) -> Vec<u8> {
    // Space for the zero bytes of a number, each of which takes two bytes.
    let escapes = 2 + partition_key.len().min(8);
    let mut prefix = Vec::with_capacity(TABLE_AND_TOKEN_BYTES + partition_key.len() + escapes);
    prefix.extend_from_slice(&table_and_token(table, token));
    escape_partition_key(&mut prefix, token, partition_key);
    prefix
}

/// The key of a partition's static row.
#[must_use]
pub fn static_row_key(prefix: &[u8]) -> Vec<u8> {
    with_kind(prefix, RowKind::STATIC, &[])
}

/// The key of a row; `clustering` is in order-preserving encoding.
#[must_use]
pub fn row_key(prefix: &[u8], clustering: &[u8]) -> Vec<u8> {
    with_kind(prefix, RowKind::ROW, clustering)
}

fn with_kind(prefix: &[u8], kind: u8, clustering: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(prefix.len() + 1 + clustering.len());
    key.extend_from_slice(prefix);
    key.push(kind);
    key.extend_from_slice(clustering);
    key
}

/// All keys of a table.
#[must_use]
pub fn table_range(table: TableId) -> KeyRange {
    KeyRange::prefix(&table.to_be_bytes())
}

/// All keys of a table whose token lies in `[lo_inclusive, hi_inclusive]`.
#[must_use]
pub fn token_range(table: TableId, lo_inclusive: i64, hi_inclusive: i64) -> KeyRange {
    KeyRange {
        start: Bound::Included(table_and_token(table, lo_inclusive).to_vec()),
        end: successor(&table_and_token(table, hi_inclusive)).map_or(Bound::Unbounded, Bound::Excluded),
    }
}

/// A boundary between two logical partitions of a table, as a key: it sorts before every key of this token whose
/// partition key is not below this one. An empty partition key sorts before the whole token.
fn boundary(table: TableId, token: i64, partition_key: &[u8]) -> Vec<u8> {
    if partition_key.is_empty() {
        table_and_token(table, token).to_vec()
    } else {
        partition_prefix(table, token, partition_key)
    }
}

/// All keys of a table between two boundaries of logical partitions. Each boundary is a token and a partition key; an
/// empty partition key means before the whole token. `None` as `end` means the end of the table.
#[must_use]
pub fn span_range(table: TableId, start: (i64, &[u8]), end: Option<(i64, &[u8])>) -> KeyRange {
    KeyRange {
        start: Bound::Included(boundary(table, start.0, start.1)),
        end: match end {
            Some((token, partition_key)) => Bound::Excluded(boundary(table, token, partition_key)),
            None => table_range(table).end,
        },
    }
}

/// The table and the token at the start of a row's key. `None` means the bytes are no row's key.
#[must_use]
pub fn table_and_token_of(key: &[u8]) -> Option<(TableId, i64)> {
    let (table, place) = key.split_first_chunk::<TABLE_ID_BYTES>()?;
    Some((u32::from_be_bytes(*table), token_of_place(place)?))
}

/// The token at the start of a position: what follows the table id in a row's key. `None` means the bytes are no
/// position.
#[must_use]
pub fn token_of_place(place: &[u8]) -> Option<i64> {
    let token = place.first_chunk::<8>()?;
    Some((u64::from_be_bytes(*token) ^ (1 << 63)).cast_signed())
}

/// As [`token_of_place`], with the partition key that follows the token.
#[must_use]
pub fn parse_place(place: &[u8]) -> Option<(i64, Cow<'_, [u8]>)> {
    let (_, rest) = place.split_first_chunk::<8>()?;
    let token = token_of_place(place)?;
    Some((token, unescape_partition_key(token, rest)?.0))
}

/// The position of a boundary between two logical partitions; see [`span_range`].
#[must_use]
pub fn boundary_place(token: i64, partition_key: &[u8]) -> Vec<u8> {
    boundary(0, token, partition_key).split_off(TABLE_ID_BYTES)
}

/// The position of a row's key, or of the prefix of a logical partition: what follows the table id. `None` means the
/// bytes are too short.
#[must_use]
pub fn place_of(key: &[u8]) -> Option<&[u8]> {
    key.get(TABLE_ID_BYTES..)
}

/// The row's key, or the prefix of a logical partition, at a position in this table.
#[must_use]
pub fn with_table(table: TableId, place: &[u8]) -> Vec<u8> {
    [&table.to_be_bytes(), place].concat()
}

/// All keys of a logical partition, static row included.
#[must_use]
pub fn partition_range(prefix: &[u8]) -> KeyRange {
    KeyRange::prefix(prefix)
}

/// The rows of a logical partition, without its static row, whose encoded clustering keys lie between two bounds.
#[must_use]
pub fn clustering_range(prefix: &[u8], start: Bound<&[u8]>, end: Bound<&[u8]>) -> KeyRange {
    KeyRange {
        start: match start {
            Bound::Included(clustering) => Bound::Included(row_key(prefix, clustering)),
            Bound::Excluded(clustering) => Bound::Excluded(row_key(prefix, clustering)),
            Bound::Unbounded => Bound::Included(row_key(prefix, &[])),
        },
        end: match end {
            Bound::Included(clustering) => Bound::Included(row_key(prefix, clustering)),
            Bound::Excluded(clustering) => Bound::Excluded(row_key(prefix, clustering)),
            Bound::Unbounded => Bound::Excluded(with_kind(prefix, RowKind::ROW + 1, &[])),
        },
    }
}

/// Parses a row's key.
///
/// # Errors
/// [`Error::Damaged`] when the bytes are not a key that this module makes.
pub fn parse(key: &[u8]) -> Result<ParsedKey<'_>> {
    parse_key(key).ok_or(Error::Damaged(Damaged::KEY))
}

/// A parsed partition prefix, and what follows it.
pub(super) struct ParsedPrefix<'a> {
    pub(super) table: TableId,
    pub(super) token: i64,
    pub(super) partition_key: Cow<'a, [u8]>,
    pub(super) prefix_len: usize,
    pub(super) rest: &'a [u8],
}

/// Reads a partition prefix from the start of `key`.
pub(super) fn parse_prefix(key: &[u8]) -> Option<ParsedPrefix<'_>> {
    let (table, rest) = key.split_first_chunk::<4>()?;
    let (token, rest) = rest.split_first_chunk::<8>()?;
    let token = token_of_place(token)?;
    let (partition_key, escaped_len) = unescape_partition_key(token, rest)?;
    Some(ParsedPrefix {
        table: u32::from_be_bytes(*table),
        token,
        partition_key,
        prefix_len: TABLE_AND_TOKEN_BYTES + escaped_len,
        rest: rest.get(escaped_len..)?,
    })
}

/// The part of a row's key after the partition prefix, whose length the caller passes: the kind of row and its
/// clustering key. `None` means the bytes are not such a key.
#[must_use]
pub fn split_row(key: &[u8], prefix_len: usize) -> Option<(RowKind, &[u8])> {
    let (kind, clustering) = key.get(prefix_len..)?.split_first()?;
    match *kind {
        RowKind::STATIC => Some((RowKind::Static, clustering)),
        RowKind::ROW => Some((RowKind::Row, clustering)),
        _ => None,
    }
}

/// The partition's part of what follows the table id in a row's key: token and partition key. `None` means the bytes
/// are no such key.
#[must_use]
pub fn partition_place(place: &[u8]) -> Option<&[u8]> {
    let mut at = TABLE_AND_TOKEN_BYTES - TABLE_ID_BYTES;
    loop {
        let zero = at + place.get(at..)?.iter().position(|byte| *byte == 0)?;
        match place.get(zero + 1)? {
            0 => return place.get(..zero + 2),
            _ => at = zero + 2,
        }
    }
}

/// Which kind of row a row's key names. `None` means the bytes are no row's key.
#[must_use]
pub fn kind_of(key: &[u8]) -> Option<RowKind> {
    let place = key.get(TABLE_ID_BYTES..)?;
    let (kind, _) = split_row(place, partition_place(place)?.len())?;
    Some(kind)
}

fn parse_key(key: &[u8]) -> Option<ParsedKey<'_>> {
    let prefix = parse_prefix(key)?;
    let (kind, clustering) = prefix.rest.split_first()?;
    let kind = match *kind {
        RowKind::STATIC if clustering.is_empty() => RowKind::Static,
        RowKind::ROW => RowKind::Row,
        _ => return None,
    };
    Some(ParsedKey {
        table: prefix.table,
        token: prefix.token,
        partition_key: prefix.partition_key,
        prefix_len: prefix.prefix_len,
        kind,
        clustering,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key_bytes() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop_oneof![Just(0_u8), Just(0xFF), Just(1), any::<u8>()], 0..12)
    }

    proptest! {
        #[test]
        fn parsing_gives_back_the_parts(table: u32, token: i64, pk in key_bytes(), clustering in key_bytes()) {
            let prefix = partition_prefix(table, token, &pk);
            let key = row_key(&prefix, &clustering);
            let parsed = parse(&key).unwrap();
            prop_assert_eq!((parsed.table, parsed.token, parsed.kind), (table, token, RowKind::Row));
            prop_assert_eq!((parsed.partition_key.as_ref(), parsed.clustering), (pk.as_slice(), clustering.as_slice()));
            prop_assert_eq!(parsed.prefix_len, prefix.len());
            prop_assert_eq!(partition_place(&key[4..]).unwrap(), &prefix[4..]);
            prop_assert_eq!(table_and_token_of(&key), Some((table, token)));
            prop_assert_eq!(with_table(table, place_of(&key).unwrap()), key.as_slice());
            prop_assert_eq!(kind_of(&key), Some(RowKind::Row));
            prop_assert_eq!(kind_of(&static_row_key(&prefix)), Some(RowKind::Static));
            let key = static_row_key(&prefix);
            prop_assert_eq!(parse(&key).unwrap().kind, RowKind::Static);
        }

        #[test]
        fn keys_sort_as_their_parts(
            a in (0_u32..3, -2_i64..3, key_bytes(), prop::option::of(key_bytes())),
            b in (0_u32..3, -2_i64..3, key_bytes(), prop::option::of(key_bytes())),
        ) {
            let key = |parts: &(u32, i64, Vec<u8>, Option<Vec<u8>>)| {
                let prefix = partition_prefix(parts.0, parts.1, &parts.2);
                parts.3.as_ref().map_or_else(|| static_row_key(&prefix), |clustering| row_key(&prefix, clustering))
            };
            prop_assert_eq!(key(&a).cmp(&key(&b)), a.cmp(&b));
        }

        #[test]
        fn ranges_hold_what_they_say(table in 0_u32..3, lo in -3_i64..3, hi in -3_i64..3, at in (0_u32..3, -3_i64..3), pk in key_bytes()) {
            let key = row_key(&partition_prefix(at.0, at.1, &pk), b"c");
            prop_assert_eq!(token_range(table, lo, hi).contains(&key), at.0 == table && lo <= at.1 && at.1 <= hi);
            prop_assert_eq!(table_range(table).contains(&key), at.0 == table);
        }

        #[test]
        fn spans_hold_the_keys_between_their_bounds(
            start in (-2_i64..3, key_bytes()),
            end in prop::option::of((-2_i64..3, key_bytes())),
            at in (0_u32..3, -2_i64..3, key_bytes()),
        ) {
            let range = span_range(1, (start.0, &start.1), end.as_ref().map(|end| (end.0, end.1.as_slice())));
            let key = row_key(&partition_prefix(at.0, at.1, &at.2), b"c");
            let place = (at.1, at.2);
            let is_inside = at.0 == 1 && place >= start && end.is_none_or(|end| place < end);
            prop_assert_eq!(!range.is_empty() && range.contains(&key), is_inside);
        }

        #[test]
        fn a_partition_holds_only_its_own(pk in key_bytes(), other in key_bytes(), clustering in key_bytes()) {
            let range = partition_range(&partition_prefix(1, 5, &pk));
            prop_assert_eq!(range.contains(&row_key(&partition_prefix(1, 5, &other), &clustering)), pk == other);
        }

        #[test]
        fn any_bytes_parse_or_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            drop(parse(&bytes));
            prop_assert_eq!(kind_of(&bytes), parse(&bytes).ok().map(|parsed| parsed.kind).or_else(|| kind_of(&bytes)));
        }
    }

    #[test]
    fn extremes_of_the_ring_lie_inside_their_table() {
        for token in [i64::MIN, i64::MAX] {
            let key = row_key(&partition_prefix(u32::MAX, token, b"k"), b"");
            assert!(token_range(u32::MAX, i64::MIN, i64::MAX).contains(&key));
            assert!(table_range(u32::MAX).contains(&key));
        }
        assert_eq!(successor(&[1, 0xFF, 0xFF]), Some(vec![2]));
        assert_eq!(successor(&[0xFF]), None);
    }

    #[test]
    fn clustering_bounds_leave_out_the_static_row() {
        let prefix = partition_prefix(1, 0, b"k");
        let all = clustering_range(&prefix, Bound::Unbounded, Bound::Unbounded);
        assert!(!all.contains(&static_row_key(&prefix)));
        assert!(all.contains(&row_key(&prefix, b"")) && all.contains(&row_key(&prefix, &[0xFF; 9])));
        let some = clustering_range(&prefix, Bound::Excluded(b"a"), Bound::Included(b"b"));
        assert!(!some.contains(&row_key(&prefix, b"a")) && some.contains(&row_key(&prefix, b"b")));
    }
}
