//! The profile `cosmos`: the time to live of a statement applies to the whole row, unless the table was made with
//! `cosmosdb_cell_level_timetolive`.
//!
//! The row is read under the lock of its partition. Columns that the statement does not write are written again with
//! its time to live, one microsecond after their own timestamp. A column that a concurrent statement writes without a
//! lock is later than that and is not undone.
//!
//! Source: Azure Cosmos DB's documentation of CQL support (time to live by USING is of rows; of cells with the table's
//! flag).

use helenus_schema::command::{Write, WriteVerb};
use helenus_storage::storage::{Cell, CellState, Marker, Row};

use super::fragment::Stamp;

/// Whether a modification's time to live applies to the stored columns of its rows, too.
pub(super) fn concerns(modification: &Write) -> bool {
    let table = &modification.table;
    modification.ttl_seconds.is_some()
        && modification.kind != WriteVerb::Delete
        && !table.is_counter
        && !table.options.cell_level.time_to_live
}

/// Adds the stored columns that the write leaves out to the written row.
pub(super) fn carry(row: &mut Row, stored: &Row, stamp: &Stamp) {
    let expiry = stamp.expiry();
    if row.marker.is_none()
        && let Some(marker) = stored.marker.filter(|marker| marker.is_live(stamp.now_seconds))
    {
        row.marker = Some(Marker {
            timestamp: marker.timestamp.saturating_add(1),
            expiry,
        });
    }
    let written = row.cells.len();
    for cell in stored.cells.iter().filter(|cell| cell.is_live(stamp.now_seconds)) {
        let CellState::Live { value, .. } = &cell.state else {
            continue;
        };
        let is_written = row
            .cells
            .iter()
            .take(written)
            .any(|said| said.column == cell.column && said.path == cell.path);
        if is_written || row.complex.iter().any(|(column, _)| *column == cell.column) {
            continue;
        }
        row.cells.push(Cell {
            timestamp: cell.timestamp.saturating_add(1),
            state: CellState::Live {
                value: value.clone(),
                expiry,
            },
            ..cell.clone()
        });
    }
}
