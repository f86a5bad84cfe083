//! The table of a message: named, not sent.

use std::sync::Arc;

use md5::{Digest, Md5};
use uuid::Uuid;

use super::bytes::{Decoder, Encoder};
use super::error::DecodeError;
use super::limits::COLUMNS_MAX;
use super::name::TableName;
use crate::command::ColumnMasks;
use crate::schema::{ColumnKind, Table};

impl TableName {
    /// The name of a table, and the number of its definition.
    #[must_use]
    pub fn of(table: &Table) -> Self {
        Self {
            keyspace: table.keyspace.clone(),
            name: table.name.clone(),
            id: table.id,
            definition: definition(table),
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

/// The number of a definition: the first bytes of a digest of its columns, which are encoded as messages are.
fn definition(table: &Table) -> u64 {
    let mut encoder = Encoder::bare();
    encoder.u32(table.storage_id);
    encoder.bool(table.is_counter);
    for column in &table.columns {
        encoder.u64(column.id.into());
        encoder.u8(match column.kind {
            ColumnKind::PartitionKey => 1,
            ColumnKind::Clustering => 2,
            ColumnKind::Static => 3,
            ColumnKind::Regular => 4,
        });
        encoder.bool(column.descending);
        encoder.bool(column.by_utf16);
        encoder.cql_type(&column.ty);
        encoder.option(column.mask.as_ref(), |encoder, (function, arguments)| {
            encoder.text(function);
            encoder.list(COLUMNS_MAX, arguments, |encoder, argument| encoder.text(argument));
        });
    }
    let digest: [u8; 16] = Md5::digest(encoder.unbounded()).into();
    digest.first_chunk().copied().map_or(0, u64::from_be_bytes)
}

impl Encoder {
    pub(super) fn table(&mut self, table: &Table) {
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
            Some(table) if TableName::of(&table) == name => Ok(table),
            Some(_) => Err(DecodeError::OtherDefinition(name)),
            None => Err(DecodeError::NoTable(name)),
        }
    }
}
