//! Clustering values that are equal but not the same bytes: decimal 1.5 and 1.50, a varint with needless zeros.
//!
//! In Cassandra they are one row, shown as it was first written. Keys here keep the bytes as they were written, so a write to a
//! table whose clustering columns have such types looks first whether the row is there in another form, and then writes to that.
//! Who does so holds the stripe of the partition.

use std::ops::{Bound, ControlFlow};

use bytes::Bytes;

use crate::command::{Write, WriteTarget};
use crate::engine::{Error, storage_read};
use crate::partition::LogicalPartition;
use crate::schema::Table;
use crate::types::{CqlType, Native};

use super::request::Routed;

/// Whether values of this type may be equal in several forms. Not so many as to make each write of a `double` look first: of
/// those only NaN has several.
fn has_forms(ty: &CqlType) -> bool {
    !matches!(ty, CqlType::Native(Native::Float | Native::Double)) && ty.has_equal_forms()
}

/// Whether writes to rows of this table must look first.
pub(super) fn must_look(table: &Table) -> bool {
    table.clustering().iter().any(|column| has_forms(&column.ty))
}

/// The modification with each clustering key in the form in which its row is stored; `None` when nothing changes.
///
/// # Errors
/// When the store fails.
pub(super) async fn as_stored(routed: &Routed<'_>) -> Result<Option<Write>, Error> {
    let modification = routed.modification;
    let table = routed.table();
    let (WriteTarget::Rows(rows), true) = (&modification.target, must_look(table)) else {
        return Ok(None);
    };
    // Several partitions may hold one row in different forms; Cassandra's own answer to that is one statement each.
    let [partition_key] = modification.partition_keys.as_slice() else {
        return Ok(None);
    };
    let (token, partition) = routed.partitions.place(partition_key);
    let logical = partition.logical(table.storage_id, token, partition_key)?;
    let mut stored = Vec::with_capacity(rows.len());
    for clustering in rows {
        let found = find(table, &logical, clustering).await?;
        stored.push(found.unwrap_or_else(|| clustering.clone()));
    }
    Ok((stored != *rows).then(|| Write {
        target: WriteTarget::Rows(stored),
        ..modification.clone()
    }))
}

/// The values of a clustering key.
fn components(table: &Table, mut clustering: &[u8]) -> Option<Vec<Bytes>> {
    let columns = table.clustering().iter();
    columns
        .map(|column| column.ty.decode_key(&mut clustering, column.descending).ok())
        .collect()
}

/// The key of a stored row that equals this one.
async fn find(table: &Table, partition: &LogicalPartition<'_>, clustering: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    let Some(wanted) = components(table, clustering) else {
        return Ok(None);
    };
    // All forms begin with the columns before the first that has several, and the part of that one which they share.
    let mut shared = Vec::with_capacity(clustering.len());
    for (column, value) in table.clustering().iter().zip(&wanted) {
        if has_forms(&column.ty) {
            column.ty.encode_key_order(value, column.descending, &mut shared);
            break;
        }
        column.ty.encode_key(value, column.descending, &mut shared);
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

/// The least clustering key behind all that begin with this one; `None`: there is none.
fn behind(shared: &[u8]) -> Option<Vec<u8>> {
    let kept = shared.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut end = shared.get(..=kept)?.to_vec();
    *end.last_mut()? += 1;
    Some(end)
}
