//! Rows of a hosted partition by (partition key, clustering key): reads of one logical partition, and scans in the order of the ring.
//!
//! This module builds and parses the keys of rows. For its callers a [`RowKey`], a [`Prefix`] and a [`RowRange`] are
//! opaque. The prefix of a logical partition is built once for a [`LogicalPartition`], for all its reads and writes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use bytes::Bytes;

use super::hosted::Hosted;
use super::moment::Moment;
use helenus_base::invariant::Broken;
use helenus_storage::storage::deletion::{self, Covered};
use helenus_storage::storage::key::{self, RowKind};
use helenus_storage::storage::{
    Batch, Damaged, Deletion, Deletions, Error, KeyRange, Order, RangeTombstone, Result, Row, Space, Store, Sweep,
    TableId,
};
use helenus_types::token::{KeySpan, Token};

/// Bytes of a row's kind, between the prefix of its logical partition and its clustering key.
const KIND_BYTES: usize = 1;

/// The common prefix of one logical partition's keys. Prefixes sort as logical partitions do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix(Vec<u8>);

impl Prefix {
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The key of a row.
    #[must_use]
    pub fn row(&self, clustering: &[u8]) -> RowKey {
        RowKey {
            bytes: key::row_key(&self.0, clustering),
            prefix_len: self.0.len(),
        }
    }

    /// The key of the static row.
    #[must_use]
    pub fn static_row(&self) -> RowKey {
        RowKey {
            bytes: key::static_row_key(&self.0),
            prefix_len: self.0.len(),
        }
    }
}

/// The key of a row, or of a static row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RowKey {
    bytes: Vec<u8>,
    prefix_len: usize,
}

impl RowKey {
    /// The key with these bytes, which have a kind after the prefix.
    pub(super) const fn of_bytes(bytes: Vec<u8>, prefix_len: usize) -> Self {
        Self { bytes, prefix_len }
    }

    /// Its bytes in the store, for derivations of the row.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether it exceeds the length that stores accept.
    #[must_use]
    pub const fn is_too_long(&self) -> bool {
        self.bytes.len() > helenus_storage::storage::KEY_BYTES_MAX
    }

    /// Its length in bytes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "no key is empty")]
    pub const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The clustering key; empty for a static row.
    ///
    /// # Panics
    /// Never: every key has a kind after its prefix.
    #[must_use]
    pub fn clustering(&self) -> &[u8] {
        #[expect(clippy::expect_used, reason = "made with a kind after its prefix")]
        self.bytes
            .get(self.prefix_len + KIND_BYTES..)
            .expect("a row's key has a kind")
    }
}

/// A row as it is stored.
#[derive(Clone, Debug)]
pub struct Found {
    /// The stored value.
    pub value: Bytes,
    /// Bytes of key and value.
    pub bytes: usize,
}

/// A row on a scan.
#[derive(Clone, Copy, Debug)]
pub struct Passed<'a> {
    key: &'a [u8],
    /// The stored value.
    pub value: &'a [u8],
}

impl<'a> Passed<'a> {
    /// Bytes of key and value.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.key.len() + self.value.len()
    }

    /// Its key's bytes in the store, for derivations of the row.
    #[must_use]
    pub const fn key(&self) -> &'a [u8] {
        self.key
    }

    /// The position at which a later scan resumes.
    #[must_use]
    pub fn place(&self) -> KeyPlace {
        KeyPlace(self.key.to_vec())
    }

    /// Whether it belongs to this logical partition.
    #[must_use]
    pub fn is_of(&self, prefix: &Prefix) -> bool {
        self.key.starts_with(&prefix.0)
    }

    /// Its logical partition: the prefix of its keys, its token and its partition key.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn partition(&self) -> Result<(Prefix, Token, Cow<'a, [u8]>)> {
        let parsed = key::parse(self.key)?;
        let prefix = self.key.get(..parsed.prefix_len).ok_or(Error::Damaged(Damaged::KEY))?;
        Ok((
            Prefix(prefix.to_vec()),
            Token::bound(parsed.token),
            parsed.partition_key,
        ))
    }

    /// The token of its partition key.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn token(&self) -> Result<i64> {
        let (_, token) = key::table_and_token_of(self.key).ok_or(Error::Damaged(Damaged::KEY))?;
        Ok(token)
    }

    /// Its clustering key, if it belongs to this logical partition; `None` means the static row.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn clustering(&self, prefix: &Prefix) -> Result<Option<&'a [u8]>> {
        match key::split_row(self.key, prefix.0.len()).ok_or(Error::Damaged(Damaged::KEY))? {
            (RowKind::Static, _) => Ok(None),
            (RowKind::Row, clustering) => Ok(Some(clustering)),
        }
    }
}

/// The key of a row at which a scan paused.
#[derive(Clone, Debug)]
pub struct KeyPlace(Vec<u8>);

/// A range of row keys in a hosted partition.
#[derive(Clone, Debug)]
pub struct RowRange(KeyRange);

impl RowRange {
    /// Whether no key can lie in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a logical partition lies in it.
    #[must_use]
    pub fn has(&self, prefix: &Prefix) -> bool {
        self.0.contains(&prefix.0)
    }

    /// Sets the start to a row that was visited.
    pub fn begin_at(&mut self, place: KeyPlace) {
        self.0.start = Bound::Included(place.0);
    }

    /// Sets the start after a row that was visited.
    pub fn start_after_row(&mut self, place: KeyPlace) {
        self.0.start = Bound::Excluded(place.0);
    }

    /// Sets the start to a row, or after it if it is left out.
    pub fn begin_by_row(&mut self, key: RowKey, is_left_out: bool) {
        self.0.start = if is_left_out {
            Bound::Excluded(key.bytes)
        } else {
            Bound::Included(key.bytes)
        };
    }

    /// Sets the start after a logical partition. Returns whether any key can follow.
    pub fn start_after(&mut self, prefix: &Prefix) -> bool {
        let next = key::successor(&prefix.0);
        let is_last = next.is_none();
        self.0.start = next.map_or(Bound::Unbounded, Bound::Included);
        !is_last
    }
}

/// Deletions of the next logical partitions of a scan, read ahead.
#[derive(Debug, Default)]
pub struct Ahead {
    by_prefix: BTreeMap<Prefix, Deletions>,
    /// Logical partitions before this one are known; `None` means that all are.
    until: Option<Prefix>,
    is_loaded: bool,
}

impl Ahead {
    /// Whether the deletions of a logical partition are known.
    #[must_use]
    pub fn knows(&self, prefix: &Prefix) -> bool {
        self.is_loaded && self.until.as_ref().is_none_or(|until| prefix < until)
    }

    /// The deletions of a known one.
    #[must_use]
    pub fn of(&self, prefix: &Prefix) -> Deletions {
        self.by_prefix.get(prefix).cloned().unwrap_or_default()
    }
}

impl Hosted {
    /// One logical partition of a table, to be read or written.
    ///
    /// # Errors
    /// [`Broken`] if it lies outside this physical partition.
    pub fn logical(
        &self,
        table: TableId,
        token: Token,
        partition_key: &[u8],
    ) -> std::result::Result<LogicalPartition<'_>, Broken> {
        self.check_has(token.value(), partition_key)?;
        Ok(LogicalPartition {
            store: self.store(),
            table,
            prefix: Prefix(key::partition_prefix(table, token.value(), partition_key)),
        })
    }

    /// The rows of a table in it.
    #[must_use]
    pub fn rows(&self, table: TableId) -> RowRange {
        RowRange(self.key_range(table))
    }

    /// The rows of a table that lie both in it and in a span; `None` means that there are none.
    #[must_use]
    pub fn rows_in(&self, table: TableId, span: &KeySpan) -> Option<RowRange> {
        self.key_range_in(table, span).map(RowRange)
    }

    /// A sweep of a table's rows that lie both in it and in a span; `None` means that there are none.
    #[must_use]
    pub fn sweep(&self, table: TableId, span: &KeySpan, now_seconds: i64, gc_before_seconds: i64) -> Option<Sweep> {
        let range = self.key_range_in(table, span)?;
        Some(Sweep::new(range, now_seconds, gc_before_seconds))
    }

    /// Walks rows in their order until `visit` breaks.
    ///
    /// # Errors
    /// As [`Store::scan`].
    pub async fn scan(
        &self,
        range: &RowRange,
        at: &Moment,
        mut visit: impl FnMut(Passed<'_>) -> ControlFlow<()> + Send,
    ) -> Result<()> {
        let visit = |key: &[u8], value: &[u8]| visit(Passed { key, value });
        self.store()
            .scan(Space::Rows, &range.0, Order::Forward, &at.0, visit)
            .await
    }

    /// Reads the deletions of at most `partitions_max` logical partitions of a range, from one on.
    ///
    /// # Errors
    /// As [`Store::scan`], and when a record is damaged.
    pub async fn deletions_ahead(
        &self,
        range: &RowRange,
        from: Prefix,
        partitions_max: usize,
        at: &Moment,
    ) -> Result<Ahead> {
        let mut ahead = Ahead {
            is_loaded: true,
            ..Ahead::default()
        };
        let range = KeyRange {
            start: Bound::Included(from.0),
            end: range.0.end.clone(),
        };
        let mut outcome = Ok(());
        let visit = |key: &[u8], value: &[u8]| match ahead.add(key, value, partitions_max) {
            Ok(flow) => flow,
            Err(error) => {
                outcome = Err(error);
                ControlFlow::Break(())
            }
        };
        self.store()
            .scan(Space::Deletions, &range, Order::Forward, &at.0, visit)
            .await?;
        outcome.map(|()| ahead)
    }
}

impl Ahead {
    fn add(&mut self, key: &[u8], value: &[u8], partitions_max: usize) -> Result<ControlFlow<()>> {
        let record = deletion::parse(key, value)?;
        let prefix = Prefix(
            key.get(..record.prefix_len)
                .ok_or(Error::Damaged(Damaged::KEY))?
                .to_vec(),
        );
        if !self.by_prefix.contains_key(&prefix) && self.by_prefix.len() == partitions_max {
            self.until = Some(prefix);
            return Ok(ControlFlow::Break(()));
        }
        let deletions = self.by_prefix.entry(prefix).or_default();
        match record.covered {
            Covered::Partition => deletions.partition = Some(record.deletion),
            Covered::Range { start, end } => deletions.ranges.push(RangeTombstone {
                start,
                end,
                deletion: record.deletion,
            }),
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// One logical partition of a table, to be read or written.
#[derive(Clone, Debug)]
pub struct LogicalPartition<'a> {
    store: &'a Store,
    table: TableId,
    prefix: Prefix,
}

impl LogicalPartition<'_> {
    /// The prefix of its keys.
    #[must_use]
    pub const fn prefix(&self) -> &Prefix {
        &self.prefix
    }

    pub(super) const fn table(&self) -> TableId {
        self.table
    }

    /// The current state of its store, for a read that begins now.
    #[must_use]
    pub fn now(&self) -> Moment {
        Moment(self.store.snapshot())
    }

    /// Its deletions. Reads nothing for a table that has none.
    ///
    /// # Errors
    /// As [`Store::get`].
    pub async fn deletions(&self, at: &Moment) -> Result<Deletions> {
        self.store.deletions_of(self.table, &self.prefix.0, &at.0).await
    }

    /// Reads a row; `None` means that none is stored.
    ///
    /// # Errors
    /// As [`Store::get`].
    pub async fn get(&self, key: &RowKey, at: &Moment) -> Result<Option<Found>> {
        let found = self.store.get(Space::Rows, &key.bytes, &at.0).await?;
        Ok(found.map(|value| Found {
            bytes: key.len() + value.len(),
            value,
        }))
    }

    /// Walks the rows, without the static one, whose clustering keys lie between two bounds, in clustering or reverse
    /// order, until `visit` breaks. `visit` gets the clustering key and the row. Reads nothing if the bounds cross.
    ///
    /// # Errors
    /// As [`Store::scan`]; [`Error::Damaged`].
    pub async fn scan(
        &self,
        (start, end): (Bound<&[u8]>, Bound<&[u8]>),
        is_reversed: bool,
        at: &Moment,
        mut visit: impl FnMut(&[u8], Passed<'_>) -> ControlFlow<()> + Send,
    ) -> Result<()> {
        let range = key::clustering_range(&self.prefix.0, start, end);
        let order = if is_reversed { Order::Reverse } else { Order::Forward };
        if range.is_empty() {
            return Ok(());
        }
        let mut outcome = Ok(());
        let visit = |key: &[u8], value: &[u8]| {
            let Some(clustering) = key.get(self.prefix.0.len() + KIND_BYTES..) else {
                outcome = Err(Error::Damaged(Damaged::KEY));
                return ControlFlow::Break(());
            };
            visit(clustering, Passed { key, value })
        };
        self.store.scan(Space::Rows, &range, order, &at.0, visit).await?;
        outcome
    }

    /// Walks all rows, the static one first, until `visit` breaks.
    ///
    /// # Errors
    /// As [`Store::scan`].
    pub async fn scan_all(
        &self,
        at: &Moment,
        mut visit: impl FnMut(Passed<'_>) -> ControlFlow<()> + Send,
    ) -> Result<()> {
        let range = key::partition_range(&self.prefix.0);
        let visit = |key: &[u8], value: &[u8]| visit(Passed { key, value });
        self.store.scan(Space::Rows, &range, Order::Forward, &at.0, visit).await
    }

    /// A sweep of its rows.
    #[must_use]
    pub fn sweep(&self, now_seconds: i64, gc_before_seconds: i64) -> Sweep {
        Sweep::new(key::partition_range(&self.prefix.0), now_seconds, gc_before_seconds)
    }

    /// Adds the written part of a row to its store's batch.
    pub fn put_row(&self, batch: &mut Batch, key: RowKey, fragment: Row) {
        debug_assert!(
            key.bytes.starts_with(&self.prefix.0),
            "a row of another logical partition"
        );
        batch.upsert(key.bytes, fragment);
    }

    /// Replaces the whole stored row. For derived rows.
    pub fn replace_row(&self, batch: &mut Batch, key: RowKey, row: &Row) {
        debug_assert!(
            key.bytes.starts_with(&self.prefix.0),
            "a row of another logical partition"
        );
        batch.put(Space::Rows, key.bytes, row.encode());
    }

    /// Adds its deletion to its store's batch.
    pub fn delete(&self, batch: &mut Batch, deletion: Deletion) {
        batch.delete_partition(&self.prefix.0, deletion);
    }

    /// Adds the deletion of a range of its rows to its store's batch.
    pub fn delete_range(&self, batch: &mut Batch, range: &RangeTombstone) {
        batch.delete_rows(&self.prefix.0, range);
    }
}

/// The parsed key of a stored or batched row.
#[derive(Debug)]
pub struct RowPlace {
    /// The table.
    pub table: TableId,
    /// The token of its partition key.
    pub token: Token,
    /// The partition key.
    pub partition_key: Bytes,
    /// The clustering key; `None` means the static row.
    pub clustering: Option<Vec<u8>>,
}

/// Parses the key of a row.
///
/// # Errors
/// [`Error::Damaged`] if it is not the key of a row.
pub fn row_place(key: &[u8]) -> Result<RowPlace> {
    let parsed = key::parse(key)?;
    Ok(RowPlace {
        table: parsed.table,
        token: Token::bound(parsed.token),
        partition_key: Bytes::copy_from_slice(&parsed.partition_key),
        clustering: (parsed.kind == RowKind::Row).then(|| parsed.clustering.to_vec()),
    })
}

/// The meaning of one change of a batch.
#[derive(Debug)]
pub enum DecodedChange {
    /// A change of a row.
    Row {
        /// The row.
        place: RowPlace,
        /// The written cells.
        row: Row,
    },
    /// A deletion of a logical partition, or of a range of its rows.
    Deletion {
        /// The table.
        table: TableId,
        /// The partition key.
        partition_key: Bytes,
        /// What it covers.
        covered: Covered,
        /// Its timestamp and time.
        deletion: Deletion,
    },
    /// A change of neither.
    Nothing,
}

/// Decodes a change that is merged with the stored value.
///
/// # Errors
/// [`Error::Damaged`] if it is not such a change.
pub fn decode_change(space: Space, key: &[u8], value: &[u8]) -> Result<DecodedChange> {
    Ok(match space {
        Space::Rows => DecodedChange::Row {
            place: row_place(key)?,
            row: Row::decode(value)?,
        },
        Space::Deletions => {
            let record = deletion::parse(key, value)?;
            DecodedChange::Deletion {
                table: record.table,
                partition_key: Bytes::copy_from_slice(&record.partition_key),
                covered: record.covered,
                deletion: record.deletion,
            }
        }
        Space::Indexes | Space::Feed | Space::Catalog => DecodedChange::Nothing,
    })
}

/// The table, token and partition key of a row's or a deletion's key in a store's batch. `None` means another kind of
/// key.
#[must_use]
pub fn partition_of(key: &[u8]) -> Option<(TableId, Token, Cow<'_, [u8]>)> {
    let (table, _) = key::table_and_token_of(key)?;
    let (token, partition_key) = key::parse_place(key::place_of(key)?)?;
    Some((table, Token::bound(token), partition_key))
}

#[cfg(test)]
mod tests;
