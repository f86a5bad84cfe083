//! Merging of two partial rows: Cassandra's rules, in one place.
//!
//! The higher timestamp wins. On a tie, in this order (`db.rows.Cells#resolveRegular` of Cassandra 5.0.9):
//!
//! 1. a tombstone or an expiring cell wins over one that does not expire;
//! 2. a tombstone wins over an expiring cell;
//! 3. the later local time (of deletion, of expiry) wins;
//! 4. of two that expire in the same second the shorter time to live wins, because it was written later;
//! 5. the greater value wins, by unsigned bytes.

use std::cmp::Ordering;

use bytes::Bytes;

use super::codec::{CellRef, CellStateRef, RowView, encode_parts};
use super::{Cell, ColumnId, Deletion, Expiry, Marker, Row};
use crate::storage::Result;

/// Sorts, keeps one cell per position, and removes what the row's own deletions shadow.
pub(super) fn canonical(mut row: Row) -> Row {
    if !is_strictly_sorted(&row.complex, |(column, _)| *column) {
        row.complex.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| b.1.cmp(&a.1)));
        row.complex.dedup_by_key(|(column, _)| *column);
    }
    if !row
        .cells
        .windows(2)
        .all(|pair| matches!(pair, [a, b] if position(a) < position(b)))
    {
        row.cells
            .sort_by(|a, b| position(a).cmp(&position(b)).then_with(|| compare_cells(b, a)));
        row.cells.dedup_by(|later, kept| position(later) == position(kept));
    }
    hide_shadowed(&mut row);
    row
}

/// Whether [`canonical`] would change nothing.
pub(super) fn is_canonical(row: &Row) -> bool {
    let hides = |timestamp: i64| row.deletion.is_some_and(|deletion| timestamp <= deletion.timestamp);
    is_strictly_sorted(&row.complex, |(column, _)| *column)
        && row
            .cells
            .windows(2)
            .all(|pair| matches!(pair, [a, b] if position(a) < position(b)))
        && !row.marker.is_some_and(|marker| hides(marker.timestamp))
        && !row
            .complex
            .iter()
            .any(|(_, complex)| row.deletion.is_some_and(|deletion| *complex <= deletion))
        && !row
            .cells
            .iter()
            .any(|cell| hides(cell.timestamp) || is_in_deleted_collection(&row.complex, cell))
}

/// Merges two rows, canonical or not.
pub(super) fn merge(a: Row, b: Row) -> Row {
    let (a, b) = (canonical(a), canonical(b));
    let mut row = Row {
        marker: newer_of(a.marker, b.marker, newer_marker),
        deletion: newer_of(a.deletion, b.deletion, newer_deletion),
        complex: merge_sorted(
            a.complex,
            b.complex,
            |(x, _), (y, _)| x.cmp(y),
            |x, y| (x.0, newer_deletion(x.1, y.1)),
        ),
        cells: merge_sorted(
            a.cells,
            b.cells,
            |x, y| position(x).cmp(&position(y)),
            |x, y| if compare_cells(&x, &y) == Ordering::Less { y } else { x },
        ),
        position: a.position.max(b.position),
    };
    // A deletion of one row may shadow cells of the other.
    hide_shadowed(&mut row);
    row
}

/// Merges two encoded rows without copying their values in between. `None` means that one of them contains a deletion;
/// most have none.
pub(super) fn merge_without_deletions(a: &RowView<'_>, b: &RowView<'_>) -> Result<Option<Bytes>> {
    let deletes = |row: &RowView<'_>| row.deletion().is_some() || row.complex().next().is_some();
    if deletes(a) || deletes(b) {
        return Ok(None);
    }
    let marker = newer_of(a.marker(), b.marker(), newer_marker);
    let mut cells = Vec::with_capacity(8);
    let (mut left, mut right) = (a.cells(), b.cells());
    let (mut x, mut y) = (left.next().transpose()?, right.next().transpose()?);
    loop {
        let order = match (&x, &y) {
            (Some(x), Some(y)) => (x.column, x.path).cmp(&(y.column, y.path)),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => break,
        };
        let kept = match (order, &x, &y) {
            (Ordering::Equal, Some(x), Some(y)) if compare_refs(x, y) == Ordering::Less => Some(*y),
            (Ordering::Greater, _, y) => *y,
            (_, x, _) => *x,
        };
        cells.extend(kept);
        if order != Ordering::Greater {
            x = left.next().transpose()?;
        }
        if order != Ordering::Less {
            y = right.next().transpose()?;
        }
    }
    Ok(Some(encode_parts(
        marker,
        None,
        &[],
        cells.iter().copied(),
        a.position().max(b.position()),
    )))
}

/// The deletion that supersedes the other: by timestamp, then by local time.
pub(in crate::storage) fn newer_deletion(a: Deletion, b: Deletion) -> Deletion {
    a.max(b)
}

fn newer_marker(a: Marker, b: Marker) -> Marker {
    let order = a
        .timestamp
        .cmp(&b.timestamp)
        .then_with(|| a.expiry.is_some().cmp(&b.expiry.is_some()))
        .then_with(|| {
            a.expiry
                .zip(b.expiry)
                .map_or(Ordering::Equal, |(x, y)| compare_expiry(x, y))
        });
    if order == Ordering::Less { b } else { a }
}

/// The later expiry is greater; at the same second the shorter time to live.
fn compare_expiry(a: Expiry, b: Expiry) -> Ordering {
    a.at_seconds
        .cmp(&b.at_seconds)
        .then_with(|| b.ttl_seconds.cmp(&a.ttl_seconds))
}

fn newer_of<T>(a: Option<T>, b: Option<T>, newer: impl FnOnce(T, T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(newer(a, b)),
        (one, other) => one.or(other),
    }
}

/// The position of a cell; `None` as path sorts before every path.
fn position(cell: &Cell) -> (ColumnId, Option<&[u8]>) {
    (cell.column, cell.path.as_deref())
}

/// Of two cells at one position the greater is kept.
fn compare_cells(a: &Cell, b: &Cell) -> Ordering {
    compare_refs(&CellRef::of(a), &CellRef::of(b))
}

fn compare_refs(a: &CellRef<'_>, b: &CellRef<'_>) -> Ordering {
    a.timestamp
        .cmp(&b.timestamp)
        .then_with(|| compare_states(a.state, b.state))
}

fn compare_states(a: CellStateRef<'_>, b: CellStateRef<'_>) -> Ordering {
    use CellStateRef::{Live, Tombstone};
    match (a, b) {
        (Tombstone { at_seconds: a }, Tombstone { at_seconds: b }) => a.cmp(&b),
        (Tombstone { .. }, Live { .. }) => Ordering::Greater,
        (Live { .. }, Tombstone { .. }) => Ordering::Less,
        (
            Live {
                value: a,
                expiry: a_expiry,
            },
            Live {
                value: b,
                expiry: b_expiry,
            },
        ) => match (a_expiry, b_expiry) {
            (Some(_), None) => Ordering::Greater,
            (None, Some(_)) => Ordering::Less,
            (None, None) => a.cmp(b),
            (Some(x), Some(y)) => compare_expiry(x, y).then_with(|| a.cmp(b)),
        },
    }
}

fn hide_shadowed(row: &mut Row) {
    if let Some(deletion) = row.deletion {
        row.marker = row.marker.filter(|marker| marker.timestamp > deletion.timestamp);
        // A collection's deletion that does not supersede the row's has no effect.
        row.complex.retain(|(_, complex)| *complex > deletion);
        row.cells.retain(|cell| cell.timestamp > deletion.timestamp);
    }
    if !row.complex.is_empty() {
        let complex = &row.complex;
        row.cells.retain(|cell| !is_in_deleted_collection(complex, cell));
    }
}

fn is_in_deleted_collection(complex: &[(ColumnId, Deletion)], cell: &Cell) -> bool {
    complex
        .binary_search_by_key(&cell.column, |(column, _)| *column)
        .ok()
        .and_then(|index| complex.get(index))
        .is_some_and(|(_, deletion)| cell.timestamp <= deletion.timestamp)
}

fn is_strictly_sorted<T, K: Ord>(items: &[T], key: impl Fn(&T) -> K) -> bool {
    items.windows(2).all(|pair| matches!(pair, [a, b] if key(a) < key(b)))
}

/// Merges two sorted lists without duplicates into one.
fn merge_sorted<T>(a: Vec<T>, b: Vec<T>, compare: impl Fn(&T, &T) -> Ordering, both: impl Fn(T, T) -> T) -> Vec<T> {
    if a.is_empty() {
        return b;
    }
    if b.is_empty() {
        return a;
    }
    let mut merged = Vec::with_capacity(a.len() + b.len());
    let (mut a, mut b) = (a.into_iter().peekable(), b.into_iter().peekable());
    loop {
        let order = match (a.peek(), b.peek()) {
            (Some(x), Some(y)) => compare(x, y),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return merged,
        };
        match order {
            Ordering::Less => merged.extend(a.next()),
            Ordering::Greater => merged.extend(b.next()),
            Ordering::Equal => merged.extend(a.next().zip(b.next()).map(|(x, y)| both(x, y))),
        }
    }
}
