//! Values that are too long for an index: refused with the write, as by Cassandra, before anything is stored.
//!
//! An entry is a key of the store: the encoded value, then the key of its row. An entry that is longer than a key may
//! be cannot be stored, and a read by the index would not find the row. Cassandra refuses values of 65,535 bytes and
//! more in a legacy index (`CassandraIndex.validateIndexedValue`), before anything of the batch is stored. Indexes of
//! the other kinds leave out terms that are too long, as in Cassandra. So does the build of any index, for rows that
//! are older than the index.
//!
//! Differs: the length of the row's key counts here too, so the limit is lower where keys are long.
//!
//! For rows whose values are all short the check is one sum: encoding at most doubles a value, so no entry is longer
//! than twice the sum of all values.

use std::sync::Arc;

use crate::engine::Error;
use crate::engine::index::rows::{IndexedRows, entry_fits};
use crate::engine::refusal::{Overlong, Refusal};
use crate::partition::RowKey;
use crate::partition::feed;
use helenus_schema::schema::{IndexFamily, Table};
use helenus_storage::storage::{CellState, Row};

/// Bytes of an entry apart from encoded values and the row's key: ends of components, and the index's number.
const FRAME_BYTES: usize = 64;

/// As in Cassandra: values of this length are already refused.
const VALUE_BYTES_MAX: usize = 65_535;

/// Refuses a write to a row if an index of its table cannot store one of the values.
///
/// # Errors
/// [`Error::Refused`] in Cassandra's words.
pub(crate) fn check(table: &Arc<Table>, key: &RowKey, row: &Row) -> Result<(), Error> {
    if table.feed().is_some() && key.len() > feed::ROW_KEY_BYTES_MAX {
        return Err(Refusal::FeedKey {
            bytes_max: feed::ROW_KEY_BYTES_MAX,
        }
        .into());
    }
    if table.indexes.is_empty() {
        return Ok(());
    }
    let of_cells = row.cells.iter().map(|cell| {
        let value = match &cell.state {
            CellState::Live { value, .. } => value.len(),
            CellState::Tombstone { .. } => 0,
        };
        value + cell.path.as_ref().map_or(0, bytes::Bytes::len)
    });
    let longest = of_cells.max().unwrap_or(0).max(key.as_bytes().len());
    if entry_fits(2 * longest + FRAME_BYTES, key.as_bytes()) {
        return Ok(());
    }
    check_entries(table, key, row)
}

fn check_entries(table: &Arc<Table>, key: &RowKey, row: &Row) -> Result<(), Error> {
    let Some(indexed) = IndexedRows::of(table) else {
        return Ok(());
    };
    let left_out = indexed
        .left_out(key.as_bytes(), row)
        .map_err(|error| crate::engine::storage_read(&error))?;
    for of in left_out {
        let mut indexes = table.indexes.values();
        let Some(index) = indexes.find(|known| known.storage_id == of.index) else {
            continue;
        };
        let Some(target) = index
            .target(table)
            .filter(|target| target.family == IndexFamily::Legacy)
        else {
            continue;
        };
        let column = table.columns.get(target.column).map(|column| column.name.clone());
        return Err(Overlong {
            bytes: of.value_bytes,
            index: index.name.clone(),
            keyspace: table.keyspace.clone(),
            table: table.name.clone(),
            column: column.unwrap_or_default(),
            // The limit reported for a value that Cassandra would accept is the bytes that fit beside this key.
            bytes_max: if of.value_bytes >= VALUE_BYTES_MAX {
                VALUE_BYTES_MAX
            } else {
                of.bytes_max
            },
        }
        .into());
    }
    Ok(())
}
