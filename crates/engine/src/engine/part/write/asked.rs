//! Which stored rows the conditions of a write test.

use helenus_schema::command::{Condition, FilterTarget, Predicate, Write, WriteTarget};
use helenus_schema::schema::{ColumnKind, Table};

/// The row that a condition tests. `None` means the static row.
pub(super) fn condition_row(modification: &Write) -> Option<&[u8]> {
    match &modification.target {
        WriteTarget::Rows(rows) => rows.first().map(Vec::as_slice),
        // The only row of a partition without clustering columns.
        WriteTarget::Partition if modification.table.clustering_count == 0 => Some(&[]),
        WriteTarget::Static | WriteTarget::Ranges(_) | WriteTarget::Partition => None,
    }
}

/// Whether the column at a position is static.
fn is_static(table: &Table, place: usize) -> bool {
    let column = table.columns.get(place);
    column.is_some_and(|column| column.kind == ColumnKind::Static)
}

/// The column that one condition of an IF reads.
fn column_of(filter: &Predicate) -> Option<usize> {
    match &filter.target {
        FilterTarget::Column(place)
        | FilterTarget::Analysed(place, _)
        | FilterTarget::Element(place, _)
        | FilterTarget::Field(place, _) => Some(*place),
        FilterTarget::Tuple(_) | FilterTarget::Token => None,
    }
}

/// The rows that a modification's IF tests (`None` is the static row). Conditions on static columns test the static
/// row, even if the statement names another row, which then is not read at all (Cassandra's
/// `ColumnConditions.addConditionsTo`).
pub(crate) fn rows_asked(modification: &Write) -> impl Iterator<Item = Option<&[u8]>> {
    let row = condition_row(modification);
    let (own, of_static) = match &modification.condition {
        Condition::Always => (false, false),
        Condition::Exists | Condition::NotExists => (true, false),
        Condition::Columns(conditions) => {
            let places = || conditions.iter().filter_map(column_of);
            let table = &modification.table;
            (
                places().any(|place| !is_static(table, place)),
                places().any(|place| is_static(table, place)),
            )
        }
    };
    own.then_some(row).into_iter().chain(of_static.then_some(None))
}
