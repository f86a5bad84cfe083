//! Materialized views of the table: after each kill they have its rows, no more and no fewer.

use super::{Key, read};
use crate::Outcome;
use crate::crash::all_rows;
use crate::raw::Connection;
use std::collections::BTreeMap;

/// One view whose rows move with each write, and one whose rows stay.
const VIEWS: [(&str, &str); 2] = [("by_value", "v, k, c"), ("by_row", "c, k")];

/// The statements that make the views.
pub(super) fn schema() -> impl Iterator<Item = String> {
    VIEWS.iter().map(|(view, key)| {
        format!(
            "CREATE MATERIALIZED VIEW feed.{view} AS SELECT * FROM feed.t WHERE v IS NOT NULL AND k IS NOT NULL AND c IS NOT NULL \
             PRIMARY KEY ({key})"
        )
    })
}

/// Compares the views with the table. Returns how many rows they have.
///
/// # Errors
/// A view cannot be read.
pub(super) fn compare(
    connection: &mut Connection,
    stored: &BTreeMap<Key, i64>,
    differences: &mut Vec<String>,
) -> Outcome<usize> {
    let mut rows_of_all = 0;
    for (view, _) in VIEWS {
        let rows = all_rows(connection, &format!("SELECT k, c, v, w FROM feed.{view}"))?;
        let mut rows = rows.iter().map(read).collect::<Outcome<Vec<_>>>()?;
        rows.sort_unstable();
        rows_of_all += rows.len();
        differences.extend(different(view, &rows, stored));
    }
    Ok(rows_of_all)
}

/// How the rows of a view, sorted, differ from those of the table.
fn different(view: &str, rows: &[(Key, i64)], stored: &BTreeMap<Key, i64>) -> Vec<String> {
    let missing = stored
        .iter()
        .map(|(key, value)| (*key, *value))
        .filter(|row| rows.binary_search(row).is_err())
        .map(|row| format!("row {row:?} is not in the view {view}"));
    let wrong = rows
        .iter()
        .filter(|(key, value)| stored.get(key) != Some(value))
        .map(|row| format!("the view {view} has {row:?}, which is not in the table"));
    let doubled = rows
        .windows(2)
        .filter(|pair| pair.first() == pair.last())
        .map(|pair| format!("the view {view} has {:?} twice", pair.first()));
    missing.chain(wrong).chain(doubled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_a_stale_and_a_doubled_row_differ() {
        let stored = BTreeMap::from([((1, 1), 5), ((1, 2), 6)]);
        assert_eq!(
            different("w", &[((1, 1), 5), ((1, 2), 6)], &stored),
            Vec::<String>::new()
        );
        assert_eq!(different("w", &[((1, 1), 5)], &stored).len(), 1);
        assert_eq!(
            different("w", &[((1, 1), 4), ((1, 1), 5), ((1, 2), 6)], &stored).len(),
            1
        );
        assert_eq!(
            different("w", &[((1, 1), 5), ((1, 2), 6), ((1, 2), 6)], &stored).len(),
            1
        );
    }
}
