//! Why a change of a user-defined type is refused.

use thiserror::Error;

use super::code::Code;

/// Why a change of a user-defined type is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UserTypeRefusal {
    /// A counter field.
    #[error("A user type cannot contain counters")]
    Counter,
    /// A field of a user-defined type of many cells.
    #[error("A user type cannot contain non-frozen UDTs")]
    MultiCell,
    /// A name reserved for future types.
    #[error("Invalid (reserved) user type name {0}")]
    Reserved(String),
    /// ALTER of the type of entities' values.
    #[error("The type {0} has the values of entities of a table service: it stays as it is")]
    Entities(String),
    /// A type of this name exists.
    #[error("A user type with name '{0}' already exists")]
    Exists(String),
    /// A type with too many parts, those of its fields included.
    #[error("Type {keyspace}.{user_type} is made of more than {parts_max} types, those of its fields spelled out")]
    Parts {
        /// Its keyspace.
        keyspace: String,
        /// The user-defined type.
        user_type: String,
        /// The maximum number of parts.
        parts_max: usize,
    },
    /// A field is declared twice.
    #[error("Duplicate field name '{field}' in type '{user_type}'")]
    DuplicateField {
        /// The field.
        field: String,
        /// The user-defined type.
        user_type: String,
    },
    /// ALTER of a type that does not exist.
    #[error("Type {keyspace}.{user_type} doesn't exist")]
    AlterOfMissing {
        /// Its keyspace.
        keyspace: String,
        /// The user-defined type.
        user_type: String,
    },
    /// ALTER of a field's type.
    #[error("Altering field types is no longer supported")]
    FieldType,
    /// ADD of a field that exists.
    #[error("Cannot add field {field} to type {user_type}: a field with name {field} already exists")]
    FieldExists {
        /// The field.
        field: String,
        /// The user-defined type.
        user_type: String,
    },
    /// ADD of a field that would make the type hold itself.
    #[error(
        "Cannot add new field {field} of type {ty} to user type {user_type} as it would create a circular reference"
    )]
    Circular {
        /// The field.
        field: String,
        /// Its type.
        ty: String,
        /// The user-defined type.
        user_type: String,
    },
    /// ADD of a field to a type that partition keys hold.
    #[error("Cannot add new field {field} of type {ty} to user type {user_type} as the type is being used in partition key by the following tables: {}", .tables.join(", "))]
    InPartitionKey {
        /// The field.
        field: String,
        /// Its type.
        ty: String,
        /// The user-defined type.
        user_type: String,
        /// The tables.
        tables: Vec<String>,
    },
    /// RENAME of a field that does not exist.
    #[error("Unkown field {field} in user type {keyspace}.{user_type}")]
    FieldMissing {
        /// The field.
        field: String,
        /// Its keyspace.
        keyspace: String,
        /// The user-defined type.
        user_type: String,
    },
    /// RENAME gives two fields one name. Cassandra names the keyspace.
    #[error("Duplicate field name {field} in type {keyspace}")]
    DuplicateRename {
        /// The field.
        field: String,
        /// Its keyspace.
        keyspace: String,
    },
    /// DROP of a type that does not exist.
    #[error("Type '{keyspace}.{user_type}' doesn't exist")]
    DropOfMissing {
        /// Its keyspace.
        keyspace: String,
        /// The user-defined type.
        user_type: String,
    },
    /// DROP of a type that other objects use.
    #[error("Cannot drop user type '{keyspace}.{user_type}' as it is still used by {kind} {}", .names.join(", "))]
    Used {
        /// Its keyspace.
        keyspace: String,
        /// The user-defined type.
        user_type: String,
        /// The kind.
        kind: &'static str,
        /// The names.
        names: Vec<String>,
    },
}

impl UserTypeRefusal {
    pub(in crate::planner::ddl) const fn code(&self) -> Code<'static> {
        match self {
            Self::Counter
            | Self::MultiCell
            | Self::Exists(_)
            | Self::Parts { .. }
            | Self::DuplicateField { .. }
            | Self::AlterOfMissing { .. }
            | Self::FieldType
            | Self::Entities(_)
            | Self::FieldExists { .. }
            | Self::Circular { .. }
            | Self::InPartitionKey { .. }
            | Self::FieldMissing { .. }
            | Self::DuplicateRename { .. }
            | Self::DropOfMissing { .. }
            | Self::Used { .. } => Code::Invalid,
            Self::Reserved(_) => Code::Syntax,
        }
    }
}
