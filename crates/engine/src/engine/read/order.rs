//! ORDER BY over several partitions: rows that are put aside until all are there.

use std::cmp::Ordering;

use bytes::Bytes;

use helenus_schema::schema::Table;

/// The sort key of a row, and the encoded row.
pub(super) type Sortable = (Vec<Option<Bytes>>, Vec<u8>);

/// Sorts rows by these columns, given as places in `table.columns` and whether each descends.
pub(super) fn sort(rows: &mut [Sortable], table: &Table, by: &[(usize, bool)]) {
    let columns: Vec<_> = by
        .iter()
        .map(|(place, descending)| (table.columns.get(*place), *descending))
        .collect();
    rows.sort_by(|(a, _), (b, _)| {
        let mut orders = columns
            .iter()
            .zip(a.iter().zip(b))
            .map(|((column, descending), (a, b))| {
                let (order, is_reversed) = match (column, a, b) {
                    (Some(column), Some(a), Some(b)) => (column.compare(a, b), *descending),
                    // Null sorts before all values in the table's own order.
                    (Some(column), a, b) => (a.is_some().cmp(&b.is_some()), *descending != column.descending),
                    (None, a, b) => (a.is_some().cmp(&b.is_some()), *descending),
                };
                if is_reversed { order.reverse() } else { order }
            });
        orders
            .find(|order| *order != Ordering::Equal)
            .unwrap_or(Ordering::Equal)
    });
}
