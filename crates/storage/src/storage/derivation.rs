//! Entries in [`super::Space::Indexes`] that are derived from rows: index entries.
//!
//! A [`Derivation`] computes the entries of each stored row of a table from the row's bytes alone. Every engine's
//! commit calls it wherever a row's stored value changes, for the value before and the value after, and writes the
//! difference in the same group. So at every commit, a row that was written or reindexed since the registration has
//! exactly the entries that derive from it. Expiry and partition or range deletions are not derived: readers check
//! those.
//!
//! ```text
//! entry   index id u32 · value, encoded · the row's key after the table id             (key.rs)
//! value   length of the encoded value in bytes, u16 big-endian
//! ```
//! For tables without a derivation, a group of commits costs one lookup in an empty map.

use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;

use super::key::{TABLE_ID_BYTES, TableId};
use super::row::RowView;

/// Computes which entries a row has.
pub trait Derivation: Debug + Send + Sync {
    /// Adds the entries of the row `row` stored under `key` (a key of [`super::Space::Rows`]). The same bytes always give the same
    /// entries.
    fn derive(&self, key: &[u8], row: &RowView<'_>, entries: &mut Entries);

    /// Whether the table has a change feed, so that its rows keep the position of their last change.
    fn has_feed(&self) -> bool {
        false
    }

    /// The number of the table's change log ([`super::change_log`]). `None` means that it has none.
    fn log(&self) -> Option<TableId> {
        None
    }
}

/// The registered derivations, by the table whose rows they read. Cheap to clone.
pub type Derivations = imbl::HashMap<TableId, Arc<dyn Derivation>>;

/// Entries being collected: keys and values of [`super::Space::Indexes`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    kept: Vec<(Vec<u8>, Bytes)>,
    too_long: Vec<TooLong>,
}

/// An entry that is longer than a key of the store may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// Its index.
    pub index: TableId,
    /// Bytes of its value, as it was written.
    pub value_bytes: usize,
    /// The longest value, in bytes, that fits next to this row's key, if encoding adds as many bytes as to this one.
    pub bytes_max: usize,
}

impl Entries {
    /// Adds the entry of an encoded value for the row of this key; `value_bytes` is the length of the value as written.
    /// An entry whose key would be longer than [`super::KEY_BYTES_MAX`] is left out and listed in
    /// [`Entries::too_long`]: writes of such values are refused earlier.
    pub fn add(&mut self, index: TableId, encoded: &[u8], value_bytes: usize, row_key: &[u8]) {
        let Some(place) = row_key.get(TABLE_ID_BYTES..) else {
            return;
        };
        let bytes_max = super::KEY_BYTES_MAX.saturating_sub(TABLE_ID_BYTES + place.len());
        let length = match u16::try_from(encoded.len()) {
            Ok(length) if encoded.len() <= bytes_max => length,
            _ => {
                let added_by_encoding = encoded.len().saturating_sub(value_bytes);
                return self.too_long.push(TooLong {
                    index,
                    value_bytes,
                    bytes_max: bytes_max.saturating_sub(added_by_encoding),
                });
            }
        };
        let bytes = TABLE_ID_BYTES + encoded.len() + place.len();
        let mut key = Vec::with_capacity(bytes);
        key.extend_from_slice(&index.to_be_bytes());
        key.extend_from_slice(encoded);
        key.extend_from_slice(place);
        self.kept.push((key, Bytes::copy_from_slice(&length.to_be_bytes())));
    }

    /// The entries, sorted, without duplicates.
    #[must_use]
    pub fn into_sorted(mut self) -> Vec<(Vec<u8>, Bytes)> {
        self.kept.sort_unstable();
        self.kept.dedup();
        self.kept
    }

    /// The entries left out.
    #[must_use]
    pub fn too_long(&self) -> &[TooLong] {
        &self.too_long
    }
}

/// The part of an entry's key after the index id: the encoded value, and the row's position, which is its key after the
/// table id. `None` means the bytes are no entry.
#[must_use]
pub fn split_entry<'a>(key: &'a [u8], value: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let length = usize::from(u16::from_be_bytes(value.try_into().ok()?));
    key.get(TABLE_ID_BYTES..)?.split_at_checked(length)
}

/// The derivation of the table that a row's key names.
pub(super) fn of_row<'a>(derivations: &'a Derivations, key: &[u8]) -> Option<&'a Arc<dyn Derivation>> {
    if derivations.is_empty() {
        return None;
    }
    let table = key.first_chunk::<TABLE_ID_BYTES>()?;
    derivations.get(&u32::from_be_bytes(*table))
}

/// The number of the change log of the table that the key of a row or deletion names. `None` means that it has none.
pub(super) fn log_of(derivations: &Derivations, key: &[u8]) -> Option<TableId> {
    of_row(derivations, key)?.log()
}

/// The entries of a stored row. A damaged row has none: reads refuse it.
pub(super) fn entries_of(derivation: &dyn Derivation, key: &[u8], row: Option<&[u8]>) -> Vec<(Vec<u8>, Bytes)> {
    let mut entries = Entries::default();
    if let Some(view) = row.and_then(|row| RowView::parse(row).ok()) {
        derivation.derive(key, &view, &mut entries);
    }
    entries.into_sorted()
}

/// The change of the entries when a row changes: each key with its new value, or `None` if it is removed.
pub(super) fn changes(
    derivation: &dyn Derivation,
    key: &[u8],
    before: Option<&[u8]>,
    after: Option<&[u8]>,
) -> Vec<(Vec<u8>, Option<Bytes>)> {
    if before == after {
        return Vec::new();
    }
    let before = entries_of(derivation, key, before);
    let after = entries_of(derivation, key, after);
    let is_in = |entries: &[(Vec<u8>, Bytes)], entry: &(Vec<u8>, Bytes)| entries.binary_search(entry).is_ok();
    let removed = before
        .iter()
        .filter(|entry| !is_in(&after, entry))
        .map(|(key, _)| (key.clone(), None));
    let added = after
        .iter()
        .filter(|entry| !is_in(&before, entry))
        .map(|(key, value)| (key.clone(), Some(value.clone())));
    removed.chain(added).collect()
}

/// The entries of one index for a stored row.
pub(super) fn entries_in(
    derivation: &dyn Derivation,
    index: TableId,
    key: &[u8],
    row: Option<&[u8]>,
) -> impl Iterator<Item = (Vec<u8>, Bytes)> {
    let entries = entries_of(derivation, key, row).into_iter();
    entries.filter(move |(entry, _)| entry.starts_with(&index.to_be_bytes()))
}

/// Keeps the change log of a table that was truncated, for the requests that still write under its old number. Its
/// indexes have no entries any more.
#[derive(Debug)]
pub struct LogOnly(pub TableId);

impl Derivation for LogOnly {
    fn derive(&self, _: &[u8], _: &RowView<'_>, _: &mut Entries) {}

    fn has_feed(&self) -> bool {
        true
    }

    fn log(&self) -> Option<TableId> {
        Some(self.0)
    }
}

/// Applies two derivations, while one replaces the other.
#[derive(Debug)]
pub struct Both(pub Arc<dyn Derivation>, pub Arc<dyn Derivation>);

impl Derivation for Both {
    fn derive(&self, key: &[u8], row: &RowView<'_>, entries: &mut Entries) {
        self.0.derive(key, row, entries);
        self.1.derive(key, row, entries);
    }

    fn has_feed(&self) -> bool {
        self.0.has_feed() || self.1.has_feed()
    }

    fn log(&self) -> Option<TableId> {
        self.1.log().or_else(|| self.0.log())
    }
}
