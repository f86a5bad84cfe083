//! Lists of values without those that equal an earlier one in other bytes: decimal 1.0 and 1.00.
//!
//! In Cassandra an IN names a value once, in the bytes that the list has first.

use std::cmp::Ordering;

use bytes::Bytes;

use super::at;
use crate::schema::Table;

/// The items that are no equals of an earlier one, in their order.
fn distinct<T>(items: Vec<T>, compare: impl Fn(&T, &T) -> Ordering) -> Vec<T> {
    let mut placed: Vec<(usize, T)> = items.into_iter().enumerate().collect();
    // Stable: of equal items the first stays in front.
    placed.sort_by(|(_, a), (_, b)| compare(a, b));
    placed.dedup_by(|(_, later), (_, first)| compare(later, first).is_eq());
    placed.sort_unstable_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, item)| item).collect()
}

/// The distinct values of a column. Of a type whose equal values have the same bytes all are returned.
pub(super) fn distinct_values(table: &Table, column: usize, values: Vec<Bytes>) -> Vec<Bytes> {
    let ty = &at(table, column).ty;
    if values.len() < 2 || !ty.has_equal_forms() {
        return values;
    }
    distinct(values, |a, b| ty.compare(a, b))
}

/// The distinct tuples of values of these columns.
pub(super) fn distinct_tuples(table: &Table, columns: &[usize], tuples: Vec<Vec<Bytes>>) -> Vec<Vec<Bytes>> {
    let has_forms = columns.iter().any(|column| at(table, *column).ty.has_equal_forms());
    if tuples.len() < 2 || !has_forms {
        return tuples;
    }
    distinct(tuples, |a, b| {
        let pairs = columns.iter().zip(a.iter().zip(b));
        let mut orders = pairs.map(|(column, (a, b))| at(table, *column).ty.compare(a, b));
        orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equal_items_stays_in_its_place() {
        let items = vec![(3, 'a'), (1, 'b'), (3, 'c'), (1, 'd'), (2, 'e')];
        let kept = distinct(items, |a, b| a.0.cmp(&b.0));
        assert_eq!(kept, [(3, 'a'), (1, 'b'), (2, 'e')]);
    }
}
