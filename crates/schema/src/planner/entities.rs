//! Writes of CQL to tables of entities: each renews the version of its row, or is refused.

use super::error::Error;
use super::refusal::ModifyRefusal;
use crate::command::{ColumnChange, Condition, Value, Write, WriteTarget, WriteVerb};

/// Adds the new version to a bound write.
///
/// # Errors
/// The write brings a version, a timestamp or a time to live, or could make a row by deleting columns of it.
pub(crate) fn renew(mut write: Write) -> Result<Write, Error> {
    if !write.table.options.is_ordered {
        return Ok(write);
    }
    let Some(layout) = write.table.entity_layout() else {
        return Ok(write);
    };
    if write.timestamp.is_some() {
        return Err(ModifyRefusal::EntityTimestamp.into());
    }
    if write.ttl_seconds.is_some() {
        return Err(ModifyRefusal::EntityTtl.into());
    }
    if write.kind == WriteVerb::Insert {
        // INSERT JSON sets columns that it does not name to null.
        let is_null = |change: &ColumnChange| matches!(change, ColumnChange::Set(Value::Null | Value::Unset));
        write
            .operations
            .retain(|(place, change)| *place != layout.version || !is_null(change));
    }
    if write.operations.iter().any(|(place, _)| *place == layout.version) {
        return Err(ModifyRefusal::EntityVersion.into());
    }
    let deletes = write.kind == WriteVerb::Delete;
    if deletes && write.operations.is_empty() {
        return Ok(write);
    }
    if deletes && write.condition == Condition::Always {
        return Err(ModifyRefusal::EntityColumns.into());
    }
    if matches!(&write.target, WriteTarget::Rows(rows) if !rows.is_empty()) {
        write.operations.push((layout.version, ColumnChange::Version));
    }
    Ok(write)
}
