//! The system columns of the change feed: Azure Cosmos DB adds them to the rows of `SELECT JSON *`, and of no other selection.
//!
//! ```text
//! "__sys_rw_ts": µs                           when the row was written
//! "__sys_clts": {column: µs}                  when each column was
//! "__sys_rw_ttl": [s, 0]                      the time to live of the row; [0, 0] if it has none
//! "__sys_clttl": [at, {column: [s, later]}]   when the row expires, in seconds since 1970 UTC, or 0; for each column its time to
//!                                             live, and by how much later it expires; [0, 0] if nothing expires
//! "__sys_rw_tmbstn": null                     deletions, which this feed does not have
//! "__sys_clts_tmbstn": null
//! ```
//! A column that is not frozen has an array in place of each value, with one for each of its elements.
//!
//! Source: a row of a live account, quoted in Microsoft's migration tool (`CdcRowMetadata`), and its parser. Of a row that was written by
//! UPDATE alone, and of columns that expire in a row that does not, no example is known: such a row has the times of its newest
//! column, and expires with its last one; the columns' own expiries are then since 1970.

use std::fmt::Write;

use crate::engine::row::buffer::{CellInfo, RowBuffer};
use crate::engine::row::layout::Shape;
use helenus_schema::schema::{ColumnKind, Table};
use helenus_storage::storage::Expiry;
use helenus_types::types::json_string;

/// A row's JSON object with its system columns.
pub(super) fn with_system_columns(mut object: String, table: &Table, row: &RowBuffer) -> String {
    object.pop();
    if object.len() > 1 {
        object.push_str(", ");
    }
    let written = written_micros(table, row).map_or("null".to_owned(), |micros| micros.to_string());
    let expiry = expiry(table, row);
    let at_seconds = expiry.map_or(0, |expiry| expiry.at_seconds);
    let times = by_column(table, row, &|cell| cell.timestamp_micros.to_string());
    let expires = all_cells(table, row).any(|cell| cell.expiry.is_some());
    let details = if expiry.is_some() || expires {
        by_column(table, row, &|cell| match cell.expiry {
            Some(expiry) => format!("[{},{}]", expiry.ttl_seconds, expiry.at_seconds - at_seconds),
            None => "[0,0]".to_owned(),
        })
    } else {
        "0".to_owned()
    };
    // Writing to a String cannot fail.
    let _ = write!(
        object,
        "\"__sys_rw_ts\": {written}, \"__sys_clts\": {times}, \"__sys_rw_ttl\": [{},0], \"__sys_clttl\": [{at_seconds},{details}], \
         \"__sys_rw_tmbstn\": null, \"__sys_clts_tmbstn\": null}}",
        expiry.map_or(0, |expiry| expiry.ttl_seconds),
    );
    object
}

/// The live cells of all columns.
fn all_cells<'r>(table: &'r Table, row: &'r RowBuffer) -> impl Iterator<Item = CellInfo> + 'r {
    (0..table.columns.len()).flat_map(|place| row.cells(place).map(|(cell, _)| cell))
}

/// The live cells of the row itself.
fn own_cells<'r>(table: &'r Table, row: &'r RowBuffer) -> impl Iterator<Item = CellInfo> + 'r {
    all_cells(table, row).filter(|cell| {
        let column = table.columns.get(cell.place);
        column.is_some_and(|column| column.kind == ColumnKind::Regular)
    })
}

fn written_micros(table: &Table, row: &RowBuffer) -> Option<i64> {
    let newest = |cells: &mut dyn Iterator<Item = CellInfo>| cells.map(|cell| cell.timestamp_micros).max();
    row.marker()
        .map(|marker| marker.timestamp)
        .or_else(|| newest(&mut own_cells(table, row)))
        .or_else(|| newest(&mut all_cells(table, row)))
}

/// When the row expires. `None` means that it does not.
fn expiry(table: &Table, row: &RowBuffer) -> Option<Expiry> {
    if let Some(marker) = row.marker() {
        return marker.expiry;
    }
    let expiries: Option<Vec<Expiry>> = own_cells(table, row).map(|cell| cell.expiry).collect();
    expiries?.into_iter().max_by_key(|expiry| expiry.at_seconds)
}

/// An object with a text for each column that has a value.
fn by_column(table: &Table, row: &RowBuffer, text: &dyn Fn(CellInfo) -> String) -> String {
    let mut object = String::from("{");
    for (place, column) in table.columns.iter().enumerate() {
        let texts: Vec<String> = row.cells(place).map(|(cell, _)| text(cell)).collect();
        if texts.is_empty() {
            continue;
        }
        if object.len() > 1 {
            object.push(',');
        }
        object.push_str(&json_string(&column.name));
        object.push(':');
        let texts = texts.join(",");
        if Shape::of(&column.ty) == Shape::Plain {
            object.push_str(&texts);
        } else {
            let _ = write!(object, "[{texts}]");
        }
    }
    object.push('}');
    object
}
