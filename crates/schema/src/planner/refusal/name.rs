//! Errors of names in statements: the object does not exist, or is not allowed in this statement.

use thiserror::Error;

use helenus_types::types::TypeError;

/// An object that does not exist, or is not allowed in this statement.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NameRefusal {
    /// USE of a missing keyspace.
    #[error("Keyspace '{0}' does not exist")]
    UseOfMissing(String),
    /// No keyspace is named, and the session uses none.
    #[error("No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename")]
    NoKeyspace,
    /// No keyspace of this name.
    #[error("keyspace {0} does not exist")]
    KeyspaceMissing(String),
    /// No table of this name.
    #[error("table {0} does not exist")]
    TableMissing(String),
    /// TRUNCATE of a materialized view.
    #[error("Cannot TRUNCATE materialized view directly; must truncate base table instead")]
    TruncateOfView,
    /// TRUNCATE of a virtual table.
    #[error("Truncation is not supported by table {keyspace}.{table}")]
    TruncateOfVirtual {
        /// Its keyspace.
        keyspace: String,
        /// The table.
        table: String,
    },
    /// INSERT, UPDATE or DELETE of a materialized view.
    #[error("Cannot directly modify a materialized view")]
    ModifyOfView,
    /// A type that does not exist or cannot be.
    #[error("{0}")]
    Type(TypeError),
    /// A type of another keyspace.
    #[error(
        "Statement on keyspace {keyspace} cannot refer to a user type in keyspace {other}; user types can only be used in the keyspace they are defined in"
    )]
    ForeignType {
        /// The statement's keyspace.
        keyspace: String,
        /// The type's.
        other: String,
    },
}

impl NameRefusal {
    /// Whether Cassandra reports it as a syntax error.
    pub fn is_syntax(&self) -> bool {
        matches!(self, Self::Type(error) if error.is_syntax())
    }
}
