//! Several encodings of equal clustering values: decimal 1.5 and 1.50, a varint with needless zeros.
//!
//! In Cassandra equal values are one row, shown as it was first written. Keys here keep the bytes as they were written.
//! So a write to a table whose clustering columns have such types first checks whether the row is stored under another
//! encoding, and then writes to that one. If it is stored under none, all members of a batch write to the encoding that
//! the batch names first. A range that continues after such a value is deleted under each of its stored encodings:
//!
//! ```text
//! DELETE … WHERE a = 1.0 AND b > 2      [1.0│2↑ … 1.0│∞)   and, as 1.00 is stored,   [1.00│2↑ … 1.00│∞)
//! DELETE … WHERE a = 1.0                [1↑ … 1↓)          the part of the encoding that equal values share
//! ```
//! The caller holds the lock of the partition.

use std::collections::HashMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use bytes::Bytes;

use crate::engine::{Error, storage_read};
use crate::partition::{Hosted, LogicalPartition};
use helenus_schema::command::{ClusteringRange, Write, WriteTarget};
use helenus_schema::schema::{StorageId, Table};
use helenus_types::token::Token;
use helenus_types::types::{CqlType, Native};

/// Whether values of this type may have several encodings in practice. `float` and `double` do not count: only their
/// NaN has several, and that would not justify a lookup before each write.
fn has_forms(ty: &CqlType) -> bool {
    !matches!(ty, CqlType::Native(Native::Float | Native::Double)) && ty.has_equal_forms()
}

/// Whether writes to rows of this table must look for other encodings first.
pub(crate) fn must_look(table: &Table) -> bool {
    table.clustering().iter().any(|column| has_forms(&column.ty))
}

/// A row: its table, its partition, and the order of its clustering values, which is the same for equal ones.
type Place = (StorageId, Bytes, Vec<Vec<u8>>);

/// The rows that a request writes and that are not stored: each is written in the encoding in which the request names it
/// first.
#[derive(Default)]
pub(crate) struct NewRows(HashMap<Place, Vec<u8>>);

impl NewRows {
    /// The encoding in which the request writes a row that is not stored.
    fn first(&mut self, table: &Table, partition: &Bytes, clustering: &[u8]) -> Vec<u8> {
        let Some(values) = components(table, clustering) else {
            return clustering.to_vec();
        };
        let columns = table.clustering().iter().zip(&values);
        let order = columns.map(|(column, value)| {
            let mut order = Vec::new();
            if has_forms(&column.ty) {
                column.ty.encode_key_order(value, column.key_order(), &mut order);
            } else {
                column.ty.encode_key(value, column.key_order(), &mut order);
            }
            order
        });
        let row = (table.storage_id, partition.clone(), order.collect());
        self.0.entry(row).or_insert_with(|| clustering.to_vec()).clone()
    }
}

/// A write of one logical partition with each clustering key in the encoding in which its row is stored, or else first
/// named in the request: another partition may hold the row in another encoding. `None` means that no key changes.
///
/// # Errors
/// When the store fails.
pub(crate) async fn as_stored(
    (token, partition): (Token, &Arc<Hosted>),
    write: &Write,
    key: &Bytes,
    new: &mut NewRows,
) -> Result<Option<Write>, Error> {
    if !must_look(&write.table) {
        return Ok(None);
    }
    let logical = partition.logical(write.table.storage_id, token, key)?;
    let target = target_as_stored(&write.table, (&logical, key), &write.target, new).await?;
    let changed = target.filter(|target| *target != write.target);
    Ok(changed.map(|target| Write {
        partition_keys: vec![key.clone()],
        target,
        ..write.clone()
    }))
}

/// The rows of one partition in the encodings in which they are stored. `None` means that the target names no
/// clustering values.
async fn target_as_stored(
    table: &Table,
    (partition, key): (&LogicalPartition<'_>, &Bytes),
    target: &WriteTarget,
    new: &mut NewRows,
) -> Result<Option<WriteTarget>, Error> {
    match target {
        WriteTarget::Rows(rows) => {
            let mut stored = Vec::with_capacity(rows.len());
            for clustering in rows {
                let found = find(table, partition, clustering).await?;
                stored.push(found.unwrap_or_else(|| new.first(table, key, clustering)));
            }
            Ok(Some(WriteTarget::Rows(stored)))
        }
        WriteTarget::Ranges(ranges) => {
            let ranges: Vec<_> = ranges.iter().map(|range| with_all_forms(table, range)).collect();
            let mut all = ranges.clone();
            for range in &ranges {
                all.extend(of_other_forms(table, partition, range).await?);
            }
            Ok(Some(WriteTarget::Ranges(all)))
        }
        WriteTarget::Static | WriteTarget::Partition => Ok(None),
    }
}

/// All rows whose first values equal those that a range holds the rows of: also in encodings that are stored later, with an
/// older timestamp. Another range is returned as it is.
fn with_all_forms(table: &Table, range: &ClusteringRange) -> ClusteringRange {
    let widened = || {
        let values = prefixes(table, &range.start).into_iter().next()?;
        let (last, before) = values.split_last()?;
        let column = table
            .clustering()
            .get(before.len())
            .filter(|column| has_forms(&column.ty))?;
        if encoded(table, &values) != range.start || behind(&range.start) != range.end {
            return None;
        }
        let mut start = encoded(table, before);
        column.ty.encode_key_order(last, column.key_order(), &mut start);
        let end = behind(&start);
        Some(ClusteringRange { start, end })
    };
    widened().unwrap_or_else(|| range.clone())
}

/// The same rows as in a range, under other stored encodings of the range's leading values.
async fn of_other_forms(
    table: &Table,
    partition: &LogicalPartition<'_>,
    range: &ClusteringRange,
) -> Result<Vec<ClusteringRange>, Error> {
    let mut found = Vec::new();
    let mut start = range.start.clone();
    let is_below = |key: &[u8], end: Option<&Vec<u8>>| end.is_none_or(|end| key < end.as_slice());
    // From the longest prefix to the shortest: if the range continues after all keys of one prefix, its rest lies under
    // a shorter one.
    for values in prefixes(table, &range.start) {
        let prefix = encoded(table, &values);
        let end = behind(&prefix);
        let ends_here = range.end.is_some() && end.as_ref().is_none_or(|end| !is_below(end, range.end.as_ref()));
        let piece_end = if ends_here { range.end.clone() } else { end.clone() };
        for form in stored_forms(table, partition, &values).await? {
            let moved = |key: &Vec<u8>| key.strip_prefix(prefix.as_slice()).map(|rest| [&form, rest].concat());
            // A bound outside the prefix stands for the whole prefix.
            found.push(ClusteringRange {
                start: moved(&start).unwrap_or_else(|| form.clone()),
                end: piece_end.as_ref().and_then(moved).or_else(|| behind(&form)),
            });
        }
        match end {
            Some(end) if !ends_here && is_below(&end, range.end.as_ref()) => start = end,
            _ => break,
        }
    }
    Ok(found)
}

/// The leading values of a key: of all columns that it contains completely, then one fewer, down to one.
fn prefixes(table: &Table, key: &[u8]) -> Vec<Vec<Bytes>> {
    let (mut rest, mut values, mut all) = (key, Vec::new(), Vec::new());
    for column in table.clustering() {
        let Ok(value) = column.ty.decode_key(&mut rest, column.key_order()) else {
            break;
        };
        values.push(value);
        // The end of a range may resemble the key of a value without being one.
        if !key.starts_with(&encoded(table, &values)) {
            break;
        }
        all.push(values.clone());
    }
    all.reverse();
    all
}

/// The prefix of the keys of rows with these first values.
fn encoded(table: &Table, values: &[Bytes]) -> Vec<u8> {
    let mut key = Vec::new();
    for (column, value) in table.clustering().iter().zip(values) {
        column.ty.encode_key(value, column.key_order(), &mut key);
    }
    key
}

/// The prefixes of stored keys whose first values equal these in other bytes.
async fn stored_forms(
    table: &Table,
    partition: &LogicalPartition<'_>,
    values: &[Bytes],
) -> Result<Vec<Vec<u8>>, Error> {
    let mut prefixes = vec![Vec::new()];
    let at = partition.now();
    for (column, value) in table.clustering().iter().zip(values) {
        let mut longer = Vec::with_capacity(prefixes.len());
        for mut prefix in prefixes {
            if !has_forms(&column.ty) {
                column.ty.encode_key(value, column.key_order(), &mut prefix);
                longer.push(prefix);
                continue;
            }
            let known = prefix.len();
            let mut next = prefix;
            column.ty.encode_key_order(value, column.key_order(), &mut next);
            let end = behind(&next);
            // Seeks from encoding to encoding, however many rows each has. The encoding in the statement is among them,
            // too: its rows may differ in the columns that follow.
            loop {
                let mut form = None;
                let bounds = (
                    Bound::Included(next.as_slice()),
                    end.as_deref().map_or(Bound::Unbounded, Bound::Excluded),
                );
                let scanned = partition.scan(bounds, false, &at, |stored, _| {
                    let mut rest = stored.get(known..).unwrap_or_default();
                    if column.ty.decode_key(&mut rest, column.key_order()).is_ok() {
                        form = stored.get(..stored.len() - rest.len()).map(<[u8]>::to_vec);
                    }
                    ControlFlow::Break(())
                });
                scanned.await.map_err(|error| storage_read(&error))?;
                let Some(form) = form else { break };
                let after = behind(&form);
                longer.push(form);
                match after {
                    Some(after) => next = after,
                    None => break,
                }
            }
        }
        prefixes = longer;
    }
    let own = encoded(table, values);
    prefixes.retain(|prefix| *prefix != own);
    Ok(prefixes)
}

/// The values of a clustering key.
fn components(table: &Table, mut clustering: &[u8]) -> Option<Vec<Bytes>> {
    let columns = table.clustering().iter();
    columns
        .map(|column| column.ty.decode_key(&mut clustering, column.key_order()).ok())
        .collect()
}

/// The key of a stored row that equals this one.
async fn find(table: &Table, partition: &LogicalPartition<'_>, clustering: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    let Some(wanted) = components(table, clustering) else {
        return Ok(None);
    };
    // All encodings share the columns before the first one that has several, and a part of that one.
    let mut shared = Vec::with_capacity(clustering.len());
    for (column, value) in table.clustering().iter().zip(&wanted) {
        if has_forms(&column.ty) {
            column.ty.encode_key_order(value, column.key_order(), &mut shared);
            break;
        }
        column.ty.encode_key(value, column.key_order(), &mut shared);
    }
    let end = behind(&shared);
    let end = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    let bounds = (Bound::Included(shared.as_slice()), end);
    let mut found = None;
    let at = partition.now();
    let scanned = partition.scan(bounds, false, &at, |stored, _| {
        let is_equal = components(table, stored).is_some_and(|values| {
            let mut pairs = table.clustering().iter().zip(values.iter().zip(&wanted));
            pairs.all(|(column, (stored, wanted))| column.ty.compare(stored, wanted).is_eq())
        });
        if is_equal {
            found = Some(stored.to_vec());
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    scanned.await.map_err(|error| storage_read(&error))?;
    Ok(found)
}

/// The least clustering key after all that begin with this one. `None` means that there is none.
fn behind(shared: &[u8]) -> Option<Vec<u8>> {
    let kept = shared.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut end = shared.get(..=kept)?.to_vec();
    *end.last_mut()? += 1;
    Some(end)
}
