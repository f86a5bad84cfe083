//! The change log of a table: an entry for each of its changes, with the row as it was before, in [`Space::Feed`].
//!
//! A committer writes the entries of a group in the group's own batch. So a change and its entry take effect together.
//! They have the group's position in the change feed ([`super::feed`]), and a number within it.
//!
//! ```text
//! key    log id u32 · arc u8 · position u64 · number u32 · token u64     big-endian, signs flipped as in key.rs
//! value  01 · kind u8 · covered · parts, each as length u32 and bytes
//!        covered   00, or 01 and an i64: the newest timestamp that partition and range deletions cover there
//!        kind 1    a row: its key after the table id, the written part, the row before (absent if there was none)
//!        kind 2    as 1, without the row before: the images of its group take too much memory
//!        kind 3    a partition or range deletion: its key after the table id, its value
//! ```
//! The row after the change is the merge of the row before and the written part.
//!
//! Entries are never replaced. Only changes of clients have them: no copy of a row ([`super::Batch::put`]), no purge, and no
//! empty partial row, by which the build of a feed gives rows their first positions. A deletion that the store has already,
//! or a newer one, has no entry: a batch that is written again would seem to delete rows that came after it.
//! For tables without a log a group of commits costs nothing.

use std::collections::HashMap;

use bytes::Bytes;
use foldhash::quality::RandomState;

use super::batch::{Change, Space, merge_values};
use super::deletion::{self, Covered, Deletions};
use super::derivation::{self, Derivations};
use super::key::{self, KeyRange, RowKind, TableId};
use super::row::{self, Deletion};

const FORMAT: u8 = 1;
const ROW: u8 = 1;
const ROW_WITHOUT_IMAGE: u8 = 2;
const DELETION: u8 = 3;

/// Bytes of the rows before that one group keeps in the log. Further ones are left out (Gap: feed-21).
const IMAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes of an entry's key.
pub const KEY_BYTES: usize = 4 + PLACE_BYTES;

/// Bytes of an entry's key after the log id.
pub const PLACE_BYTES: usize = 1 + 8 + 4 + 8;

/// Bits of the token that make the number of an arc, as in the index of the change feed.
const ARC_BITS: u32 = 6;

/// The number of arcs.
pub const ARCS: u8 = 1 << ARC_BITS;

/// The entries of an arc after one position and up to another, both µs since 1970 UTC.
#[must_use]
pub fn range(log: TableId, arc: u8, after: i64, up_to: i64) -> KeyRange {
    let at = |position: i64| {
        let mut key = Vec::with_capacity(KEY_BYTES);
        key.extend_from_slice(&log.to_be_bytes());
        key.push(arc);
        key.extend_from_slice(&flipped(position));
        key
    };
    KeyRange {
        start: std::ops::Bound::Included(at(after.saturating_add(1))),
        end: std::ops::Bound::Excluded(at(up_to.saturating_add(1))),
    }
}

/// The key of the record of where a log begins: behind its entries.
#[must_use]
pub fn floor_key(log: TableId) -> Vec<u8> {
    let mut key = log.to_be_bytes().to_vec();
    key.push(u8::MAX);
    key
}

const fn flipped(number: i64) -> [u8; 8] {
    (number.cast_unsigned() ^ (1 << 63)).to_be_bytes()
}

fn unflipped(bytes: &[u8]) -> Option<i64> {
    Some((u64::from_be_bytes(bytes.try_into().ok()?) ^ (1 << 63)).cast_signed())
}

/// The position and the token in an entry's key. `None` means that it is no entry.
#[must_use]
pub fn parse_key(key: &[u8]) -> Option<(i64, i64)> {
    let (_, place) = key.split_first_chunk::<4>()?;
    if place.len() != PLACE_BYTES {
        return None;
    }
    Some((unflipped(place.get(1..9)?)?, unflipped(place.get(13..)?)?))
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// The newest timestamp that partition and range deletions covered there before.
    pub covered: Option<i64>,
    /// What was changed.
    pub change: LoggedChange,
}

/// What an entry says was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoggedChange {
    /// A row.
    Row {
        /// Its key after the table id.
        place: Bytes,
        /// What was written.
        written: Bytes,
        /// The stored row before.
        before: Before,
    },
    /// A partition, or a range of its rows, was deleted.
    Deletion {
        /// The key of the deletion after the table id.
        place: Bytes,
        /// Its value.
        value: Bytes,
    },
}

/// The stored row before a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Before {
    /// There was none.
    Absent,
    /// It.
    Row(Bytes),
    /// It was left out, since its group of commits changed too many large rows.
    LeftOut,
}

impl Logged {
    fn encode(&self) -> Bytes {
        let mut out = vec![FORMAT];
        let (kind, parts): (u8, Vec<&Bytes>) = match &self.change {
            LoggedChange::Row { place, written, before } => match before {
                Before::Absent => (ROW, vec![place, written]),
                Before::Row(before) => (ROW, vec![place, written, before]),
                Before::LeftOut => (ROW_WITHOUT_IMAGE, vec![place, written]),
            },
            LoggedChange::Deletion { place, value } => (DELETION, vec![place, value]),
        };
        out.push(kind);
        match self.covered {
            None => out.push(0),
            Some(covered) => {
                out.push(1);
                out.extend_from_slice(&covered.to_be_bytes());
            }
        }
        for part in parts {
            out.extend_from_slice(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes());
            out.extend_from_slice(part);
        }
        out.into()
    }

    /// Reads the value of an entry. `None` means that it is damaged, or of a later version.
    #[must_use]
    pub fn decode(value: &Bytes) -> Option<Self> {
        let (format, rest) = value.split_first()?;
        let (kind, rest) = rest.split_first()?;
        let (has_covered, mut rest) = rest.split_first()?;
        if *format != FORMAT || *has_covered > 1 {
            return None;
        }
        let covered = if *has_covered == 1 {
            let (covered, behind) = rest.split_first_chunk::<8>()?;
            rest = behind;
            Some(i64::from_be_bytes(*covered))
        } else {
            None
        };
        let mut part = || {
            let (length, behind) = rest.split_first_chunk::<4>()?;
            let (part, behind) = behind.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
            rest = behind;
            Some(value.slice_ref(part))
        };
        let (place, second, third) = (part()?, part()?, part());
        let change = match (*kind, third) {
            (ROW, before) => LoggedChange::Row {
                place,
                written: second,
                before: before.map_or(Before::Absent, Before::Row),
            },
            (ROW_WITHOUT_IMAGE, None) => LoggedChange::Row {
                place,
                written: second,
                before: Before::LeftOut,
            },
            (DELETION, None) => LoggedChange::Deletion { place, value: second },
            _ => return None,
        };
        rest.is_empty().then_some(Self { covered, change })
    }
}

/// The changes of a group that get an entry, and what the store has there.
#[derive(Debug, Default)]
pub(super) struct Logging<'c> {
    /// In the order of arrival.
    changes: Vec<(TableId, Space, &'c [u8], &'c Bytes)>,
    rows: HashMap<&'c [u8], Option<Bytes>, RandomState>,
    /// By the prefix of the logical partition.
    deletions: HashMap<&'c [u8], Deletions, RandomState>,
}

impl<'c> Logging<'c> {
    /// The changes of tables with a log.
    pub(super) fn of(changes: impl IntoIterator<Item = &'c Change>, derivations: &Derivations) -> Self {
        let mut logging = Self::default();
        for change in changes {
            let Change::Merge { space, key, value } = change else {
                continue;
            };
            if matches!(space, Space::Rows | Space::Deletions)
                && !(*space == Space::Rows && row::changes_nothing(value))
                && let Some(log) = derivation::log_of(derivations, key)
            {
                logging.changes.push((log, *space, key, value));
            }
        }
        logging
    }

    /// Whether no change gets an entry.
    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The keys of its rows.
    pub(super) fn row_keys(&self) -> impl Iterator<Item = &'c [u8]> {
        let rows = self.changes.iter().filter(|(_, space, ..)| *space == Space::Rows);
        rows.map(|(_, _, key, _)| *key)
    }

    /// The prefixes of the logical partitions of its changes.
    pub(super) fn prefixes(&self) -> impl Iterator<Item = &'c [u8]> {
        self.changes.iter().filter_map(|(_, _, key, _)| prefix_of(key))
    }

    /// Takes the stored row at a key.
    pub(super) fn row_is(&mut self, key: &'c [u8], row: Option<Bytes>) {
        self.rows.entry(key).or_insert(row);
    }

    /// Whether the deletions of a logical partition are known.
    pub(super) fn knows(&self, prefix: &[u8]) -> bool {
        self.deletions.contains_key(prefix)
    }

    /// Takes the stored deletions of a logical partition.
    pub(super) fn deletions_are(&mut self, prefix: &'c [u8], deletions: Deletions) {
        self.deletions.insert(prefix, deletions);
    }

    /// The entries, sorted by key.
    pub(super) fn entries(mut self, position: i64) -> Vec<(Vec<u8>, Bytes)> {
        let mut entries = Vec::with_capacity(self.changes.len());
        let mut image_bytes = 0_usize;
        for (number, (log, space, key, value)) in std::mem::take(&mut self.changes).into_iter().enumerate() {
            let (Some((_, token)), Some(place), Some(prefix)) =
                (key::table_and_token_of(key), key::place_of(key), prefix_of(key))
            else {
                continue;
            };
            let place = Bytes::copy_from_slice(place);
            let logged = if space == Space::Rows {
                let covered = self.covered(prefix, key);
                let before = self.rows.get(key).cloned().flatten();
                image_bytes += before.as_ref().map_or(0, Bytes::len);
                let after = match &before {
                    Some(before) => merge_values(Space::Rows, before, value).unwrap_or_else(|_| before.clone()),
                    None => value.clone(),
                };
                self.rows.insert(key, Some(after));
                let before = match before {
                    None => Before::Absent,
                    Some(_) if image_bytes > IMAGE_BYTES_MAX => Before::LeftOut,
                    Some(before) => Before::Row(before),
                };
                let written = value.clone();
                let change = LoggedChange::Row { place, written, before };
                Logged { covered, change }
            } else {
                if !self.delete(prefix, key, value) {
                    continue;
                }
                let value = value.clone();
                let change = LoggedChange::Deletion { place, value };
                Logged { covered: None, change }
            };
            let mut entry = Vec::with_capacity(KEY_BYTES);
            entry.extend_from_slice(&log.to_be_bytes());
            let token = flipped(token);
            entry.push(token.first().map_or(0, |first| first >> (8 - ARC_BITS)));
            entry.extend_from_slice(&flipped(position));
            entry.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes());
            entry.extend_from_slice(&token);
            entries.push((entry, logged.encode()));
        }
        entries.sort_unstable();
        entries
    }

    fn covered(&self, prefix: &[u8], key: &[u8]) -> Option<i64> {
        let deletions = self.deletions.get(prefix)?;
        match key::split_row(key, prefix.len())? {
            (RowKind::Static, _) => deletions.timestamp_covering_static(),
            (RowKind::Row, clustering) => deletions.timestamp_covering(clustering),
        }
    }

    /// Later changes of the group see a deletion of it. Returns whether it deletes more than the deletions before it.
    fn delete(&mut self, prefix: &'c [u8], key: &[u8], value: &[u8]) -> bool {
        let Ok(record) = deletion::parse(key, value) else {
            // The merge refuses it.
            return true;
        };
        let deletions = self.deletions.entry(prefix).or_default();
        let hides = |old: Deletion| old.timestamp >= record.deletion.timestamp;
        if deletions.partition.is_some_and(hides) {
            return false;
        }
        match record.covered {
            Covered::Partition => deletions.partition = Some(record.deletion),
            Covered::Range { start, end } => {
                let mut same = deletions.ranges.iter();
                if same.any(|range| range.start == start && range.end == end && hides(range.deletion)) {
                    return false;
                }
                deletions.ranges.push(deletion::RangeTombstone {
                    start,
                    end,
                    deletion: record.deletion,
                });
            }
        }
        true
    }
}

/// The prefix of the logical partition of a key of a row or deletion.
fn prefix_of(key: &[u8]) -> Option<&[u8]> {
    let place = key::partition_place(key::place_of(key)?)?;
    key.get(..4 + place.len())
}

/// The newest timestamp in what was written to a row. `None` means that nothing was, or that it is damaged.
#[must_use]
pub fn written_micros(written: &[u8]) -> Option<i64> {
    let row = row::Row::decode(written).ok()?;
    let marker = row.marker.map(|marker| marker.timestamp);
    let deletions = row.complex.iter().map(|(_, deletion)| deletion.timestamp);
    let cells = row.cells.iter().map(|cell| cell.timestamp);
    let of_row = row.deletion.map(|deletion| deletion.timestamp);
    marker.into_iter().chain(of_row).chain(deletions).chain(cells).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_reads_as_it_was_written() {
        let bytes = Bytes::from_static;
        for before in [Before::Absent, Before::LeftOut, Before::Row(bytes(b"before"))] {
            for covered in [None, Some(-7)] {
                let change = LoggedChange::Row {
                    place: bytes(b"place"),
                    written: bytes(b""),
                    before: before.clone(),
                };
                let logged = Logged { covered, change };
                assert_eq!(Logged::decode(&logged.encode()), Some(logged));
            }
        }
        let change = LoggedChange::Deletion {
            place: bytes(b"place"),
            value: bytes(b"value"),
        };
        let encoded = Logged { covered: None, change }.encode();
        assert!(Logged::decode(&encoded).is_some());
        for cut in 0..encoded.len() {
            assert_eq!(Logged::decode(&encoded.slice(..cut)), None, "{cut}");
        }
    }

    #[test]
    fn a_range_holds_the_entries_after_one_position_and_up_to_another() {
        let key = |position: i64, token: i64| {
            let parts: [&[u8]; 5] = [
                &7_u32.to_be_bytes(),
                &[3],
                &flipped(position),
                &9_u32.to_be_bytes(),
                &flipped(token),
            ];
            parts.concat()
        };
        let range = range(7, 3, 10, 12);
        let has = |position| range.contains(&key(position, -1));
        assert_eq!((has(10), has(11), has(12), has(13)), (false, true, true, false));
        assert_eq!(parse_key(&key(11, -1)), Some((11, -1)));
        assert_eq!(parse_key(&floor_key(7)), None);
    }
}
