//! Why ALTER TABLE is refused.

use thiserror::Error;

use super::code::Code;
use super::column_type::ColumnTypeRefusal;
use helenus_types::types::{CqlType, quoted};

/// Why ALTER TABLE is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AlterTableRefusal {
    /// ALTER of a column's type.
    #[error("Altering column types is no longer supported")]
    ColumnType,
    /// The table is a materialized view.
    #[error("Cannot use ALTER TABLE on a materialized view; use ALTER MATERIALIZED VIEW instead")]
    View,
    /// A change after which this table would hold no entities any more.
    #[error(
        "Table '{0}' holds entities of a table service: its columns PartitionKey, RowKey, properties and version stay, and it has no default_time_to_live"
    )]
    Entities(String),
    /// ADD of a column that exists.
    #[error("Column with name '{0}' already exists")]
    ColumnExists(String),
    /// ADD to a table WITH COMPACT STORAGE.
    #[error("Cannot add new column to a COMPACT STORAGE table")]
    AddToCompact,
    /// A user-defined type of many cells inside a type of this column.
    #[error("{cause} for column {column}")]
    NestedInColumn {
        /// The cause.
        cause: ColumnTypeRefusal,
        /// The column.
        column: String,
    },
    /// ADD of a column other than a counter to a counter table.
    #[error("{table}: Cannot have a non counter column (\"{column}\") in a counter table")]
    ValueInCounterTable {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// ADD of a counter to a table without counters.
    #[error("{table}: Cannot have a counter column (\"{column}\") in a non counter table")]
    CounterInValueTable {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// ADD of a dropped column with a type that its old cells cannot be read as.
    #[error("Cannot add a column '{column}' of type {}, incompatible with previously dropped column '{column}' of type {}", .new.cql_name(), .old.cql_name())]
    DroppedType {
        /// The column.
        column: String,
        /// The new type.
        new: CqlType,
        /// The old type.
        old: CqlType,
    },
    /// ADD of a dropped column as another kind of column.
    #[error("Cannot re-add previously dropped column '{column}' of kind {new}, incompatible with previous kind {old}")]
    DroppedKind {
        /// The column.
        column: String,
        /// The new kind.
        new: &'static str,
        /// The old kind.
        old: &'static str,
    },
    /// ADD of this dropped counter.
    #[error("Cannot re-add previously dropped counter column {0}")]
    DroppedCounter(String),
    /// USING TIMESTAMP that is no integer: as written.
    #[error("Invalid timestamp {0}")]
    Timestamp(String),
    /// DROP of a column that the table does not have.
    #[error("Column {column} was not found in table '{table}'")]
    ColumnMissing {
        /// The column.
        column: String,
        /// The table.
        table: String,
    },
    /// DROP of this column of the primary key.
    #[error("Cannot drop PRIMARY KEY column {0}")]
    DropOfKey(String),
    /// DROP of a column of a user-defined type of many cells.
    #[error("Cannot drop non-frozen column {column} of user type {user_type}")]
    DropOfUserType {
        /// The column.
        column: String,
        /// The user-defined type.
        user_type: String,
    },
    /// DROP of an indexed column.
    #[error("Cannot drop column {column} because it has dependent secondary indexes ({})", .indexes.join(", "))]
    DropOfIndexed {
        /// The column.
        column: String,
        /// The indexes.
        indexes: Vec<String>,
    },
    /// DROP of a column of a table that has views.
    #[error("Cannot drop column {column} on base table {table} with materialized views")]
    DropUnderViews {
        /// The column.
        column: String,
        /// The table.
        table: String,
    },
    /// RENAME of a column that the table does not have.
    #[error("Undefined column name {} in table {table}", quoted(.column))]
    RenameOfMissing {
        /// The column.
        column: String,
        /// The table.
        table: String,
    },
    /// RENAME of this column, which is not in the primary key.
    #[error("Cannot rename non PRIMARY KEY column {0}")]
    RenameOfOther(String),
    /// RENAME to the name of another column.
    #[error("Cannot rename column {from} to {to} in table '{table}'; another column with that name already exists")]
    RenameToExisting {
        /// The name from before.
        from: String,
        /// The new name.
        to: String,
        /// The table.
        table: String,
    },
    /// RENAME of an indexed column.
    #[error("Can't rename column {column} because it has dependent secondary indexes ({})", .indexes.join(", "))]
    RenameOfIndexed {
        /// The column.
        column: String,
        /// The indexes.
        indexes: Vec<String>,
    },
    /// DROP MASKED of a column that the table does not have.
    #[error("Column with name '{column}' doesn't exist on table '{table}'")]
    MaskOfMissing {
        /// The column.
        column: String,
        /// The table.
        table: String,
    },
    /// DROP COMPACT STORAGE of a table without it.
    #[error("Cannot DROP COMPACT STORAGE on table without COMPACT STORAGE")]
    NotCompact,
    /// DROP of the column of values of a table WITH COMPACT STORAGE.
    #[error("Cannot drop column {0}, the only column of values of a COMPACT STORAGE table")]
    DropOfCompact(String),
    /// DROP COMPACT STORAGE of a table without clustering columns that an older version created.
    #[error("Cannot DROP COMPACT STORAGE on table {0}: an older version stored it, and its rows would be lost")]
    HiddenColumns(String),
    /// The id of a table is given.
    #[error("Cannot alter table id.")]
    Id,
    /// `gc_grace_seconds` of 0 for a table that has views.
    #[error(
        "Cannot alter gc_grace_seconds of the base table of a materialized view to 0, since this value is used to TTL undelivered updates. Setting gc_grace_seconds too low might cause undelivered updates to expire before being replayed."
    )]
    GraceUnderViews,
}

impl AlterTableRefusal {
    pub(in crate::planner::ddl) const fn code(&self) -> Code<'static> {
        match self {
            Self::ColumnType
            | Self::View
            | Self::ColumnExists(_)
            | Self::AddToCompact
            | Self::Entities(_)
            | Self::NestedInColumn { .. }
            | Self::DroppedType { .. }
            | Self::DroppedKind { .. }
            | Self::DroppedCounter(_)
            | Self::ColumnMissing { .. }
            | Self::DropOfKey(_)
            | Self::DropOfUserType { .. }
            | Self::DropOfIndexed { .. }
            | Self::DropUnderViews { .. }
            | Self::RenameOfMissing { .. }
            | Self::RenameOfOther(_)
            | Self::RenameToExisting { .. }
            | Self::RenameOfIndexed { .. }
            | Self::MaskOfMissing { .. }
            | Self::NotCompact
            | Self::HiddenColumns(_)
            | Self::DropOfCompact(_)
            | Self::GraceUnderViews => Code::Invalid,
            Self::ValueInCounterTable { .. } | Self::CounterInValueTable { .. } | Self::Id => Code::Configuration,
            Self::Timestamp(_) => Code::Syntax,
        }
    }
}
