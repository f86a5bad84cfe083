//! The table of a message: named, not sent.

use std::sync::Arc;

use uuid::Uuid;

use super::bytes::{Decoder, Encoder};
use super::definition;
use super::error::DecodeError;
use super::name::TableName;
use crate::command::ColumnMasks;
use crate::schema::Table;
use helenus_base::mutant::{self, Mutant};

impl TableName {
    /// The name of a table, and the number of its definition.
    #[must_use]
    pub fn of(table: &Arc<Table>) -> Self {
        Self {
            keyspace: table.keyspace.clone(),
            name: table.name.clone(),
            id: table.id,
            definition: definition::number_of(table),
        }
    }
}

/// The schema of the receiver.
pub trait Tables {
    /// The table or view of this keyspace and name. `None` means that there is none.
    fn table(&self, name: &TableName) -> Option<Arc<Table>>;

    /// The calls that mask the columns of a table, for a client that may not see their values. `None` means that no column
    /// has a mask, or that one is invalid.
    fn masks(&self, table: &Arc<Table>) -> Option<Arc<ColumnMasks>>;
}

impl Encoder {
    pub(super) fn table(&mut self, table: &Arc<Table>) {
        let TableName {
            keyspace,
            name,
            id,
            definition,
        } = TableName::of(table);
        self.text(&keyspace);
        self.text(&name);
        self.u128(id.as_u128());
        self.u64(definition);
    }
}

impl Decoder {
    /// The receiver's table.
    pub(super) fn table(&mut self, tables: &impl Tables) -> Result<Arc<Table>, DecodeError> {
        let name = TableName {
            keyspace: self.text()?,
            name: self.text()?,
            id: Uuid::from_u128(self.u128()?),
            definition: self.u64()?,
        };
        match tables.table(&name) {
            Some(table) if TableName::of(&table) == name || mutant::is_on(Mutant::ForeignDefinition) => Ok(table),
            Some(_) => Err(DecodeError::OtherDefinition(name)),
            None => Err(DecodeError::NoTable(name)),
        }
    }
}
