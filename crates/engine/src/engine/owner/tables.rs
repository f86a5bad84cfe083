//! The tables that a message names, in the owner's own catalog.

use std::sync::Arc;

use crate::engine::Error;
use crate::engine::snapshot::{Snapshot, no_table};
use helenus_schema::command::codec::{DecodeError, TableName, Tables};
use helenus_schema::command::{ColumnMasks, MaskCalls};
use helenus_schema::schema::Table;

/// The schema by which the owner decodes a message.
#[derive(Clone, Copy)]
pub(in crate::engine) struct OwnTables<'a> {
    pub(in crate::engine) snapshot: &'a Snapshot,
    /// Makes the calls that mask columns.
    pub(in crate::engine) mask_calls: MaskCalls,
}

impl Tables for OwnTables<'_> {
    fn table(&self, name: &TableName) -> Option<Arc<Table>> {
        let schema = &self.snapshot.schema;
        schema.table_or_view(&name.keyspace, &name.name).cloned()
    }

    fn masks(&self, table: &Arc<Table>) -> Option<Arc<ColumnMasks>> {
        (self.mask_calls)(&self.snapshot.schema, table)
    }
}

/// The error of a message that the owner cannot execute.
#[cold]
pub(in crate::engine) fn undecodable(error: DecodeError) -> Error {
    match error {
        // Dropped since the command was planned, or created again.
        DecodeError::NoTable(name) => no_table(&name.keyspace, &name.name),
        DecodeError::OtherDefinition(_) | DecodeError::NoMasks(_) => Error::Outdated,
        error => Error::Fault(error.to_string()),
    }
}
