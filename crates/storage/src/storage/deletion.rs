//! Deletions of whole partitions and of ranges of rows: separate records, so that they cost the same whatever they cover.
//!
//! ```text
//! key    partition prefix · 01                                        the partition's deletion
//!        partition prefix · 02 · bound · bytes · bound · bytes        a range's: its start, then its end
//!        bound 00 unbounded (no bytes) · 01 included · 02 excluded; bytes escaped as a partition key
//! value  version u8 = 1 · timestamp, signed varint · at_seconds, signed varint
//! ```
//! Two deletions of one key merge into the newer. Overlapping ranges stay as written; a reader takes the newest that
//! covers a row. The caller removes records past their grace: [`super::Batch::delete`] by the key.

use std::borrow::Cow;
use std::ops::Bound;

use super::key::{self, TableId};
use super::row::{self, Deletion};
use super::{Damaged, Error, Result};

const PARTITION: u8 = 0x01;
const RANGE: u8 = 0x02;

const UNBOUNDED: u8 = 0x00;
const INCLUDED: u8 = 0x01;
const EXCLUDED: u8 = 0x02;

/// A deletion of the rows of one logical partition whose encoded clustering keys lie between two bounds, compared as bytes.
/// Never covers the static row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeTombstone {
    /// Where the range begins.
    pub start: Bound<Vec<u8>>,
    /// Where the range ends.
    pub end: Bound<Vec<u8>>,
    /// The deletion that applies to the range.
    pub deletion: Deletion,
}

impl RangeTombstone {
    /// Whether a row with this encoded clustering key is in the range.
    #[must_use]
    pub fn covers(&self, clustering: &[u8]) -> bool {
        key::covers(&self.start, &self.end, clustering)
    }
}

/// The deletions of one logical partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deletions {
    /// Of the whole partition, static row included.
    pub partition: Option<Deletion>,
    /// Of ranges of rows; they may overlap.
    pub ranges: Vec<RangeTombstone>,
}

impl Deletions {
    /// Whether nothing is deleted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.partition.is_none() && self.ranges.is_empty()
    }

    /// The newest timestamp of a deletion that covers the row with this encoded clustering key; see [`super::Row::shadow`].
    #[must_use]
    pub fn timestamp_covering(&self, clustering: &[u8]) -> Option<i64> {
        let ranges = self
            .ranges
            .iter()
            .filter(|range| range.covers(clustering))
            .map(|range| range.deletion.timestamp);
        ranges.chain(self.timestamp_covering_static()).max()
    }

    /// The timestamp of the deletion that covers the static row: the partition's.
    #[must_use]
    pub fn timestamp_covering_static(&self) -> Option<i64> {
        self.partition.map(|deletion| deletion.timestamp)
    }

    /// Adds the deletion that a record of [`super::Space::Deletions`] holds.
    pub(super) fn add_record(&mut self, prefix_len: usize, key: &[u8], value: &[u8]) -> Result<()> {
        let deletion = row::decode_deletion(value)?;
        let record = key.get(prefix_len..).and_then(parse_record);
        match record.ok_or(Error::Damaged(Damaged::KEY))? {
            Covered::Partition => self.partition = Some(deletion),
            Covered::Range { start, end } => self.ranges.push(RangeTombstone { start, end, deletion }),
        }
        Ok(())
    }
}

/// A parsed record of [`super::Space::Deletions`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletionRecord<'a> {
    /// The table.
    pub table: TableId,
    /// The token of the partition key.
    pub token: i64,
    /// The partition key.
    pub partition_key: Cow<'a, [u8]>,
    /// Bytes of the partition prefix at the start of the key.
    pub prefix_len: usize,
    /// What is deleted.
    pub covered: Covered,
    /// The deletion.
    pub deletion: Deletion,
}

/// What a deletion record covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Covered {
    /// The whole partition.
    Partition,
    /// Rows between two bounds on the encoded clustering key.
    Range {
        /// Where the range begins.
        start: Bound<Vec<u8>>,
        /// Where the range ends.
        end: Bound<Vec<u8>>,
    },
}

/// Parses a record of [`super::Space::Deletions`], for scans over many partitions.
///
/// # Errors
/// [`Error::Damaged`] when the bytes are not such a record.
pub fn parse<'a>(key: &'a [u8], value: &[u8]) -> Result<DeletionRecord<'a>> {
    let prefix = key::parse_prefix(key).ok_or(Error::Damaged(Damaged::KEY))?;
    Ok(DeletionRecord {
        table: prefix.table,
        token: prefix.token,
        partition_key: prefix.partition_key,
        prefix_len: prefix.prefix_len,
        covered: parse_record(prefix.rest).ok_or(Error::Damaged(Damaged::KEY))?,
        deletion: row::decode_deletion(value)?,
    })
}

/// The key of the deletion of a whole partition.
pub(super) fn partition_deletion_key(prefix: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(prefix.len() + 1);
    key.extend_from_slice(prefix);
    key.push(PARTITION);
    key
}

/// The key of the deletion of a range.
pub(super) fn range_tombstone_key(prefix: &[u8], start: &Bound<Vec<u8>>, end: &Bound<Vec<u8>>) -> Vec<u8> {
    let mut key = Vec::with_capacity(prefix.len() + 64);
    key.extend_from_slice(prefix);
    key.push(RANGE);
    for bound in [start, end] {
        put_bound(&mut key, bound);
    }
    key
}

/// Appends a bound as drawn in the module's header.
pub(super) fn put_bound(out: &mut Vec<u8>, bound: &Bound<Vec<u8>>) {
    let (kind, bytes) = match bound {
        Bound::Unbounded => return out.push(UNBOUNDED),
        Bound::Included(bytes) => (INCLUDED, bytes),
        Bound::Excluded(bytes) => (EXCLUDED, bytes),
    };
    out.push(kind);
    key::escape_into(out, bytes);
}

/// Reads what [`put_bound`] wrote off the front of `bytes`.
pub(super) fn get_bound(bytes: &mut &[u8]) -> Option<Bound<Vec<u8>>> {
    let (kind, rest) = bytes.split_first()?;
    *bytes = rest;
    if *kind == UNBOUNDED {
        return Some(Bound::Unbounded);
    }
    let (plain, escaped_len) = key::unescape(rest)?;
    let plain = plain.into_owned();
    *bytes = rest.get(escaped_len..)?;
    match *kind {
        INCLUDED => Some(Bound::Included(plain)),
        EXCLUDED => Some(Bound::Excluded(plain)),
        _ => None,
    }
}

fn parse_record(after_prefix: &[u8]) -> Option<Covered> {
    let (kind, mut rest) = after_prefix.split_first()?;
    let covered = match *kind {
        PARTITION => Covered::Partition,
        RANGE => Covered::Range {
            start: get_bound(&mut rest)?,
            end: get_bound(&mut rest)?,
        },
        _ => return None,
    };
    rest.is_empty().then_some(covered)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
        let bytes = || prop::collection::vec(prop_oneof![Just(0_u8), Just(0xFF), 1_u8..4], 0..4);
        prop_oneof![
            Just(Bound::Unbounded),
            bytes().prop_map(Bound::Included),
            bytes().prop_map(Bound::Excluded)
        ]
    }

    proptest! {
        #[test]
        fn records_parse_back(start in bound(), end in bound(), pk in prop::collection::vec(0_u8..3, 0..4), timestamp: i64, at_seconds: i64) {
            let prefix = key::partition_prefix(7, -3, &pk);
            let deletion = Deletion { timestamp, at_seconds };
            let key = range_tombstone_key(&prefix, &start, &end);
            let value = row::encode_deletion(deletion);
            let record = parse(&key, &value).unwrap();
            prop_assert_eq!((record.table, record.token, record.partition_key.as_ref()), (7, -3, pk.as_slice()));
            prop_assert_eq!(&record.covered, &Covered::Range { start: start.clone(), end: end.clone() });
            let mut deletions = Deletions::default();
            deletions.add_record(prefix.len(), &key, &value).unwrap();
            deletions.add_record(prefix.len(), &partition_deletion_key(&prefix), &value).unwrap();
            prop_assert_eq!(&deletions.ranges, &vec![RangeTombstone { start, end, deletion }]);
            prop_assert_eq!(deletions.partition, Some(deletion));
        }

        #[test]
        fn any_bytes_parse_or_are_refused(key in prop::collection::vec(any::<u8>(), 0..40), value in prop::collection::vec(any::<u8>(), 0..12)) {
            drop(parse(&key, &value));
        }
    }

    #[test]
    fn the_newest_deletion_that_covers_a_row_counts() {
        let at = |timestamp| Deletion {
            timestamp,
            at_seconds: 0,
        };
        let range = |start: &[u8], end: &[u8], timestamp| RangeTombstone {
            start: Bound::Included(start.to_vec()),
            end: Bound::Excluded(end.to_vec()),
            deletion: at(timestamp),
        };
        let deletions = Deletions {
            partition: Some(at(3)),
            ranges: vec![range(b"b", b"d", 5), range(b"c", b"z", 4)],
        };
        let covering = |clustering: &[u8]| deletions.timestamp_covering(clustering);
        assert_eq!(
            (covering(b"a"), covering(b"c"), covering(b"d")),
            (Some(3), Some(5), Some(4))
        );
        assert_eq!(deletions.timestamp_covering_static(), Some(3));
    }
}
