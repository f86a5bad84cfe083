//! Cells that no reader sees since their column was dropped.
//!
//! Reads of values skip them as they pass ([`super::layout`]). What works on a whole stored row removes them first.
//!
//! Source: Cassandra 5.0 `db.rows.SerializationHelper#isDropped`, `db.rows.BTreeRow#filter`.

use helenus_schema::schema::Table;
use helenus_storage::storage::{ColumnId, Row};

/// Removes the cells of dropped columns, and those of columns added again that are dated up to the drop.
pub(crate) fn hide(table: &Table, row: &mut Row) {
    if table.dropped.is_empty() {
        return;
    }
    let hidden_up_to = |id: ColumnId| {
        let dropped = table.dropped.values().find(|dropped| dropped.column.id == id.0)?;
        let is_back = table.columns.iter().any(|column| column.id == id.0);
        Some(if is_back { dropped.dropped_micros } else { i64::MAX })
    };
    row.cells
        .retain(|cell| hidden_up_to(cell.column).is_none_or(|to| cell.timestamp > to));
}
