//! The name of a table in a message, and in what is said of one.

use std::fmt;

use uuid::Uuid;

/// The name of a table in a message, and the number of its definition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TableName {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name, folded.
    pub name: String,
    /// Its id: another one for a table that is created again under the same name.
    pub id: Uuid,
    /// A digest of what a command depends on: the columns in their order, with ids, types and masks, and where the rows
    /// lie. Equal on all machines for one definition.
    pub definition: u64,
}

impl fmt::Display for TableName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.keyspace, self.name)
    }
}
