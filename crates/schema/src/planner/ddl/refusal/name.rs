//! Errors of names in schema changes: the object does not exist, or may not be changed.

use thiserror::Error;

use super::code::Code;
use helenus_types::types::quoted;

/// An object that does not exist, or may not be changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NameRefusal {
    /// No keyspace is named, and the session uses none.
    #[error("No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename")]
    NoKeyspace,
    /// No keyspace of this name.
    #[error("Keyspace '{0}' doesn't exist")]
    KeyspaceMissing(String),
    /// A keyspace that only the server changes.
    #[error("{0} keyspace is not user-modifiable.")]
    NotModifiable(String),
    /// A system keyspace: the permission and its resource.
    #[error("Cannot {right} <{resource}>")]
    Forbidden {
        /// The permission that the statement needs.
        right: &'static str,
        /// The resource of the permission.
        resource: String,
    },
    /// No such column.
    #[error("Undefined column name {} in table {keyspace}.{table}", quoted(.column))]
    UndefinedColumn {
        /// The column.
        column: String,
        /// Its keyspace.
        keyspace: String,
        /// The table.
        table: String,
    },
    /// No table of this name.
    #[error("Table '{keyspace}.{table}' doesn't exist")]
    TableMissing {
        /// Its keyspace.
        keyspace: String,
        /// The table.
        table: String,
    },
}

impl NameRefusal {
    pub(in crate::planner::ddl) const fn code(&self) -> Code<'static> {
        match self {
            Self::NoKeyspace | Self::KeyspaceMissing(_) | Self::UndefinedColumn { .. } | Self::TableMissing { .. } => {
                Code::Invalid
            }
            Self::NotModifiable(_) | Self::Forbidden { .. } => Code::Unauthorized,
        }
    }
}
