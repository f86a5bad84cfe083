//! A batch: changes that take effect together or not at all.

use std::borrow::Borrow;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;

use super::deletion::{self, RangeTombstone};
use super::key::{self, KeyRange, TableId};
use super::purge::{Effect, Purge, Watch};
use super::row::{self, Deletion, Row};
use super::{Error, Opening, Result};

/// A part of a store's key space. Each space has its own keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// Rows, by [`key::row_key`] and [`key::static_row_key`].
    Rows,
    /// Deletions of partitions and ranges; written by [`Batch::put_partition_deletion`] and [`Batch::put_range_tombstone`].
    Deletions,
    /// Index entries.
    Indexes,
    /// The change logs of tables ([`super::change_log`]).
    Feed,
    /// Schema and other records of the server itself.
    Catalog,
}

impl Space {
    /// All spaces, in the order of their keys in the engines.
    pub const ALL: [Self; 5] = [Self::Rows, Self::Deletions, Self::Indexes, Self::Feed, Self::Catalog];

    /// The byte before every key of the space, in engines with one key space; part of the format on disk.
    pub(super) const fn byte(self) -> u8 {
        match self {
            Self::Rows => 0x01,
            Self::Deletions => 0x02,
            Self::Indexes => 0x03,
            Self::Feed => 0x04,
            Self::Catalog => 0x05,
        }
    }
}

/// One change of a batch.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// The key has this value, whatever it had.
    Put { space: Space, key: Vec<u8>, value: Bytes },
    /// The key no longer exists.
    Delete { space: Space, key: Vec<u8> },
    /// The key's value is merged with this one: rows as partial rows, deletions by the newer timestamp.
    Merge { space: Space, key: Vec<u8>, value: Bytes },
    /// Removes what no reader can see of the row at this key, as stored when the batch is committed.
    Purge { key: Vec<u8>, purge: Purge },
    /// Removes the deletion record at this key, if it is still the same at commit and nothing lies under it.
    Forget {
        key: Vec<u8>,
        deletion: Deletion,
        watch: Arc<Watch>,
    },
    /// No key in the range exists any more.
    DeleteRange { space: Space, range: KeyRange },
    /// Writes this index's entries of the row at this key, as stored when the batch is committed.
    Reindex { key: Vec<u8>, index: TableId },
}

impl Change {
    /// What a sweep's change does to the stored value; other changes leave it.
    ///
    /// # Errors
    /// [`Error::Damaged`] when the value is damaged.
    pub(super) fn effect_on(&self, current: Option<&Bytes>) -> Result<Effect> {
        let Some(current) = current else {
            return Ok(Effect::Unchanged);
        };
        match self {
            Self::Purge { purge, .. } => purge.effect_on(current),
            Self::Forget { key, deletion, watch } => {
                let is_same = row::decode_deletion(current)? == *deletion;
                Ok(if is_same && watch.is_clean(key) {
                    Effect::Removed
                } else {
                    Effect::Unchanged
                })
            }
            _ => Ok(Effect::Unchanged),
        }
    }

    /// The key and the value of the row that it writes; a part of a row, if it is merged. `None` means that it writes none.
    pub(super) fn written_row(&self) -> Option<(&[u8], &[u8])> {
        match self {
            Self::Put {
                space: Space::Rows,
                key,
                value,
            }
            | Self::Merge {
                space: Space::Rows,
                key,
                value,
            } => Some((key, value)),
            _ => None,
        }
    }

    /// The key that it changes or reads, and its space. `None` means a range.
    pub(super) fn place(&self) -> Option<(Space, &[u8])> {
        Some(match self {
            Self::Put { space, key, .. } | Self::Delete { space, key } | Self::Merge { space, key, .. } => {
                (*space, key)
            }
            Self::Purge { key, .. } | Self::Reindex { key, .. } => (Space::Rows, key),
            Self::Forget { key, .. } => (Space::Deletions, key),
            Self::DeleteRange { .. } => return None,
        })
    }
}

impl Change {
    /// Its share of [`Batch::bytes`], without what a purge leaves of its row.
    fn bytes(&self) -> usize {
        let own = match self {
            Self::Put { key, value, .. } | Self::Merge { key, value, .. } => key.len() + value.len(),
            Self::Delete { key, .. }
            | Self::Purge { key, .. }
            | Self::Forget { key, .. }
            | Self::Reindex { key, .. } => key.len(),
            Self::DeleteRange { range, .. } => bound_len(&range.start) + bound_len(&range.end),
        };
        own + CHANGE_BYTES
    }
}

/// Changes that take effect together or not at all, in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    changes: Vec<Change>,
    bytes: usize,
    only_in: Option<Opening>,
    row_bytes_max: Option<usize>,
}

/// Longest key in bytes: fjall's log stores the length in sixteen bits, and one byte names the space.
pub const KEY_BYTES_MAX: usize = u16::MAX as usize - 1;

/// The format version of batches in a log.
const LOG_FORMAT: u8 = 1;

/// The format version in which keys to check again may follow.
const LOG_FORMAT_RECHECKED: u8 = 2;

/// Written in place of a space before a key to check again.
const RECHECKED: u8 = 0;

/// A batch as read back from a log.
#[derive(Debug, Default)]
pub struct Logged {
    /// The merges: each with its space, key and value.
    pub merges: Vec<(Space, Vec<u8>, Bytes)>,
    /// Keys of derived rows, to be derived again.
    pub rechecked: Vec<Vec<u8>>,
}

/// Bytes that a change costs in addition to its key and value: its entry in the batch, the queue and the log.
const CHANGE_BYTES: usize = 32;

impl Batch {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty batch with capacity for one change: most have no more.
    #[must_use]
    pub fn of_one() -> Self {
        Self {
            changes: Vec::with_capacity(1),
            ..Self::default()
        }
    }

    /// How many changes it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether it changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Bytes of its keys and values, plus an overhead for each change.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Makes the commit fail with [`Error::OpenedAgain`] unless the store is still in this opening when the batch is
    /// written.
    ///
    /// For a batch derived from a read: call [`super::Store::opening`] before taking the first snapshot. Otherwise a
    /// commit that was answered with an error could take effect between the read and the write.
    pub fn only_in(&mut self, opening: Opening) {
        self.only_in = Some(opening);
    }

    /// Makes the commit fail with [`Error::RowTooLarge`] if one of its partial rows makes a row longer than this, in
    /// bytes of its value. A row that is longer already may shrink, and be deleted in whole or in part.
    ///
    /// Checked where the partial row is merged with the stored row, so that writers read nothing first. SlateDB writes
    /// most partial rows without reading the stored row: there the partial row alone is checked, and the merged row
    /// only if it is read anyway or the partial row is large.
    pub fn limit_rows(&mut self, bytes_max: usize) {
        self.row_bytes_max = Some(bytes_max);
    }

    /// The limit of its rows.
    pub(super) fn row_bytes_max(&self) -> Option<usize> {
        self.row_bytes_max
    }

    /// Its partial rows: keys and encoded values.
    pub fn fragments(&self) -> impl Iterator<Item = (&[u8], &Bytes)> {
        self.changes.iter().filter_map(|change| match change {
            Change::Merge {
                space: Space::Rows,
                key,
                value,
            } => Some((key.as_slice(), value)),
            _ => None,
        })
    }

    /// The opening that it is for.
    pub(super) fn opening(&self) -> Option<Opening> {
        self.only_in
    }

    /// Replaces the value of a key.
    pub fn put(&mut self, space: Space, key: Vec<u8>, value: impl Into<Bytes>) {
        let value = value.into();
        self.bytes += key.len() + value.len() + CHANGE_BYTES;
        self.changes.push(Change::Put { space, key, value });
    }

    /// Removes a key physically: no tombstone is left.
    pub fn delete(&mut self, space: Space, key: Vec<u8>) {
        self.bytes += key.len() + CHANGE_BYTES;
        self.changes.push(Change::Delete { space, key });
    }

    /// Merges a write's partial row with the stored row ([`Row::merge`]). `key` lies in [`Space::Rows`].
    pub fn upsert(&mut self, key: Vec<u8>, fragment: impl Borrow<Row>) {
        self.merge(Space::Rows, key, fragment.borrow().encode());
    }

    /// Removes every key of a range physically, for dropped and truncated tables. When [`super::Store::commit`]
    /// returns, the keys that existed when it was called are removed. A crash before that may leave them; opening the
    /// store then finishes the work. The other changes of the batch take effect together before it. Concurrent writes
    /// into the range may be removed or stay.
    pub fn delete_range(&mut self, space: Space, range: KeyRange) {
        self.bytes += bound_len(&range.start) + bound_len(&range.end) + CHANGE_BYTES;
        self.changes.push(Change::DeleteRange { space, range });
    }

    /// Deletes a whole logical partition up to the deletion's timestamp, static row included. The cost does not depend on
    /// what it covers.
    pub fn put_partition_deletion(&mut self, table: TableId, token: i64, partition_key: &[u8], deletion: Deletion) {
        self.delete_partition(&key::partition_prefix(table, token, partition_key), deletion);
    }

    /// As [`Batch::put_partition_deletion`], by the prefix of the logical partition's keys ([`key::partition_prefix`]).
    pub fn delete_partition(&mut self, prefix: &[u8], deletion: Deletion) {
        let key = deletion::partition_deletion_key(prefix);
        self.merge(Space::Deletions, key, row::encode_deletion(deletion));
    }

    /// Deletes a range of rows of a logical partition up to the deletion's timestamp. Costs the same whatever it covers.
    pub fn put_range_tombstone(
        &mut self,
        table: TableId,
        token: i64,
        partition_key: &[u8],
        range: impl Borrow<RangeTombstone>,
    ) {
        self.delete_rows(&key::partition_prefix(table, token, partition_key), range.borrow());
    }

    /// As [`Batch::put_range_tombstone`], by the prefix of the logical partition's keys ([`key::partition_prefix`]).
    pub fn delete_rows(&mut self, prefix: &[u8], range: &RangeTombstone) {
        let key = deletion::range_tombstone_key(prefix, &range.start, &range.end);
        self.merge(Space::Deletions, key, row::encode_deletion(range.deletion));
    }

    /// Removes everything in the row at `key` that no reader can see, as stored when the batch takes effect.
    /// `left_bytes`: approximate number of bytes that are rewritten.
    pub(super) fn purge(&mut self, key: Vec<u8>, purge: Purge, left_bytes: usize) {
        self.bytes += key.len() + left_bytes + CHANGE_BYTES;
        self.changes.push(Change::Purge { key, purge });
    }

    /// Removes a deletion record, if it is unchanged when the batch takes effect and the watch has seen no write under
    /// it.
    pub(super) fn forget(&mut self, key: Vec<u8>, deletion: Deletion, watch: Arc<Watch>) {
        self.bytes += key.len() + CHANGE_BYTES;
        self.changes.push(Change::Forget { key, deletion, watch });
    }

    /// Writes the entries that one index has of the row at `key`, as stored when the batch takes effect; none if there
    /// is no row or no derivation. For building a new index while writes continue.
    pub fn reindex(&mut self, key: Vec<u8>, index: TableId) {
        self.bytes += key.len() + CHANGE_BYTES;
        self.changes.push(Change::Reindex { key, index });
    }

    /// Merges an encoded row or deletion with what is there.
    pub fn merge(&mut self, space: Space, key: Vec<u8>, value: Bytes) {
        self.bytes += key.len() + value.len() + CHANGE_BYTES;
        self.changes.push(Change::Merge { space, key, value });
    }

    /// The keys of its single changes, each with its space; ranges are left out.
    pub fn keys(&self) -> impl Iterator<Item = (Space, &[u8])> {
        self.changes.iter().filter_map(|change| match change {
            Change::Reindex { .. } => None,
            _ => change.place(),
        })
    }

    /// Encodes its rows and deletions for a log:
    ///
    /// ```text
    /// 01 · ( space byte · key length u32 · key · value length u32 · value )*     (big-endian)
    /// ```
    /// Only merges are encoded, because a logged batch may be written twice. Keys of derived rows may follow
    /// ([`Batch::encode_rechecked`]).
    pub fn encode_merges(&self, out: &mut Vec<u8>) {
        if out.is_empty() {
            out.push(LOG_FORMAT);
        }
        for change in &self.changes {
            let Change::Merge { space, key, value } = change else {
                continue;
            };
            out.push(space.byte());
            for part in [key.as_slice(), value] {
                out.extend_from_slice(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes());
                out.extend_from_slice(part);
            }
        }
    }

    /// Adds keys of derived rows, which a replay of the batch derives again from their base rows:
    ///
    /// ```text
    /// 02 · ( … )* · ( 00 · key length u32 · key )*
    /// ```
    pub fn encode_rechecked<'a>(keys: impl IntoIterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
        for key in keys {
            match out.first_mut() {
                Some(format) => *format = LOG_FORMAT_RECHECKED,
                None => out.push(LOG_FORMAT_RECHECKED),
            }
            out.push(RECHECKED);
            out.extend_from_slice(&u32::try_from(key.len()).unwrap_or(u32::MAX).to_be_bytes());
            out.extend_from_slice(key);
        }
    }

    /// Reads what [`Batch::encode_merges`] wrote: each change with its space, key and value. `None` means another
    /// format.
    #[must_use]
    pub fn merges(bytes: &[u8]) -> Option<Vec<(Space, Vec<u8>, Bytes)>> {
        Self::logged(bytes).map(|logged| logged.merges)
    }

    /// Reads all that a log holds of a batch. `None` means another format.
    #[must_use]
    pub fn logged(bytes: &[u8]) -> Option<Logged> {
        let (format, mut rest) = bytes.split_first()?;
        if ![LOG_FORMAT, LOG_FORMAT_RECHECKED].contains(format) {
            return None;
        }
        let is_rechecked = *format == LOG_FORMAT_RECHECKED;
        let mut logged = Logged::default();
        while let Some((space, behind)) = rest.split_first() {
            let space = *space;
            rest = behind;
            let mut part = || {
                let (length, behind) = rest.split_first_chunk::<4>()?;
                let (part, behind) = behind.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
                rest = behind;
                Some(part)
            };
            if is_rechecked && space == RECHECKED {
                logged.rechecked.push(part()?.to_vec());
                continue;
            }
            let space = Space::ALL.into_iter().find(|one| one.byte() == space)?;
            let (key, value) = (part()?.to_vec(), Bytes::copy_from_slice(part()?));
            logged.merges.push((space, key, value));
        }
        Some(logged)
    }

    /// Its rows and deletions: spaces, keys and values to merge.
    pub fn pending_merges(&self) -> impl Iterator<Item = (Space, &[u8], &Bytes)> {
        self.changes.iter().filter_map(|change| match change {
            Change::Merge { space, key, value } => Some((*space, key.as_slice(), value)),
            _ => None,
        })
    }

    /// Adds the changes of another batch.
    pub fn append(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.changes.extend(other.changes);
    }

    /// The same changes in batches of at most this many bytes, a longer change alone: for changes that need not be
    /// atomic.
    #[must_use]
    pub fn pieces(self, bytes_max: usize) -> Vec<Self> {
        if self.bytes <= bytes_max {
            return vec![self];
        }
        let (only_in, row_bytes_max) = (self.only_in, self.row_bytes_max);
        let mut pieces: Vec<Self> = Vec::new();
        for change in self.changes {
            let bytes = change.bytes();
            match pieces.last_mut() {
                Some(piece) if piece.bytes + bytes <= bytes_max => {
                    piece.bytes += bytes;
                    piece.changes.push(change);
                }
                _ => pieces.push(Self {
                    changes: vec![change],
                    bytes,
                    only_in,
                    row_bytes_max,
                }),
            }
        }
        pieces
    }

    pub(super) fn into_changes(self) -> Vec<Change> {
        self.changes
    }

    /// Refuses keys that some engine cannot store.
    pub(super) fn check(&self) -> Result<()> {
        let longest = self.changes.iter().map(|change| match change {
            Change::Put { key, .. }
            | Change::Delete { key, .. }
            | Change::Merge { key, .. }
            | Change::Purge { key, .. }
            | Change::Forget { key, .. }
            | Change::Reindex { key, .. } => key.len(),
            Change::DeleteRange { range, .. } => bound_len(&range.start).max(bound_len(&range.end)),
        });
        match longest.max() {
            Some(bytes) if bytes > KEY_BYTES_MAX => Err(Error::KeyTooLarge {
                bytes,
                bytes_max: KEY_BYTES_MAX,
            }),
            _ => Ok(()),
        }
    }
}

fn bound_len(bound: &Bound<Vec<u8>>) -> usize {
    match bound {
        Bound::Included(bytes) | Bound::Excluded(bytes) => bytes.len(),
        Bound::Unbounded => 0,
    }
}

/// Checks the size of a row of `after` bytes that a partial row makes of one of `before`; see [`Batch::limit_rows`].
///
/// # Errors
/// [`Error::RowTooLarge`]; errors of decoding the partial row.
pub fn check_row_bytes(before: Option<usize>, fragment: &[u8], after: usize, bytes_max: usize) -> Result<()> {
    if after <= bytes_max || before.is_some_and(|before| after <= before) || row::only_deletes(fragment)? {
        return Ok(());
    }
    Err(Error::RowTooLarge {
        bytes: after,
        bytes_max,
    })
}

/// Merges two values of one key, by the rules of its space.
pub(super) fn merge_values(space: Space, old: &[u8], new: &[u8]) -> Result<Bytes> {
    match space {
        Space::Rows => row::merge_encoded(old, new),
        Space::Deletions => {
            let (old, new) = (row::decode_deletion(old)?, row::decode_deletion(new)?);
            Ok(row::encode_deletion(row::newer_deletion(old, new)))
        }
        Space::Indexes | Space::Feed | Space::Catalog => Ok(Bytes::copy_from_slice(new)),
    }
}
