//! Why CREATE TABLE or DROP TABLE is refused.

use thiserror::Error;

use super::code::Code;
use helenus_types::types::CqlType;
use uuid::Uuid;

/// Why CREATE TABLE or DROP TABLE is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TableRefusal {
    /// MASKED WITH.
    #[error(
        "Cannot mask columns because dynamic data masking is not enabled. You can enable it with the dynamic_data_masking_enabled property on cassandra.yaml"
    )]
    Mask,
    /// A column is declared twice.
    #[error("Duplicate column '{column}' declaration for table '{table}'")]
    DuplicateColumn {
        /// The column.
        column: String,
        /// The table.
        table: String,
    },
    /// No primary key for this table.
    #[error("No PRIMARY KEY specifed for table '{0}' (exactly one required)")]
    NoKey(String),
    /// Two primary keys for this table.
    #[error("Multiple PRIMARY KEY specified for table '{0}' (exactly one required)")]
    SeveralKeys(String),
    /// The primary key has a column that the table does not have.
    #[error("Unknown column '{column}' referenced in PRIMARY KEY for table '{table}'")]
    UnknownKeyColumn {
        /// The column.
        column: String,
        /// The table.
        table: String,
    },
    /// The primary key has a column twice.
    #[error("Duplicate column '{column}' in PRIMARY KEY clause for table '{table}'")]
    DuplicateKeyColumn {
        /// The column.
        column: String,
        /// The table.
        table: String,
    },
    /// A user-defined type of many cells in the primary key.
    #[error("Invalid non-frozen user-defined type \"{keyspace}.{user_type}\" for PRIMARY KEY column '{column}'")]
    UserTypeInKey {
        /// Its keyspace.
        keyspace: String,
        /// The user-defined type.
        user_type: String,
        /// The column.
        column: String,
    },
    /// A collection of many cells in the primary key.
    #[error("Invalid non-frozen collection type {} for PRIMARY KEY column '{column}'", .ty.cql_name())]
    CollectionInKey {
        /// Its type.
        ty: CqlType,
        /// The column.
        column: String,
    },
    /// This counter is in the primary key.
    #[error("counter type is not supported for PRIMARY KEY column '{0}'")]
    CounterInKey(String),
    /// This column of the primary key has durations.
    #[error("duration type is not supported for PRIMARY KEY column '{0}'")]
    DurationInKey(String),
    /// This static column is in the primary key.
    #[error("Static column '{0}' cannot be part of the PRIMARY KEY")]
    StaticInKey(String),
    /// CLUSTERING ORDER BY has a column twice.
    #[error("Duplicate column '{column}' in CLUSTERING ORDER BY clause for table '{table}'")]
    DuplicateOrder {
        /// The column.
        column: String,
        /// The table.
        table: String,
    },
    /// CLUSTERING ORDER BY names columns other than clustering columns.
    #[error("Only clustering key columns can be defined in CLUSTERING ORDER directive: [{}] are not clustering columns", .0.join(", "))]
    OrderOfOthers(Vec<String>),
    /// CLUSTERING ORDER BY has the columns in another order: the first misplaced column, and the one that it must
    /// precede.
    #[error(
        "The order of columns in the CLUSTERING ORDER directive must match that of the clustering columns ({column} must appear before {other})"
    )]
    OrderOfOrder {
        /// The column.
        column: String,
        /// The other column.
        other: String,
    },
    /// CLUSTERING ORDER BY leaves out this clustering column.
    #[error("Missing CLUSTERING ORDER for column {0}")]
    OrderMissing(String),
    /// A static column and no clustering column.
    #[error("Static columns are only useful (and thus allowed) if the table has at least one clustering column")]
    StaticWithoutClustering,
    /// A column of many cells WITH COMPACT STORAGE.
    #[error("Non-frozen collections and UDTs are not supported with COMPACT STORAGE")]
    MultiCellInCompact,
    /// A static column WITH COMPACT STORAGE.
    #[error("Static columns are not supported in COMPACT STORAGE tables")]
    StaticInCompact,
    /// Only the primary key WITH COMPACT STORAGE.
    #[error("No definition found that is not part of the PRIMARY KEY")]
    NothingInCompact,
    /// More than one column beside the clustering columns WITH COMPACT STORAGE.
    #[error("COMPACT STORAGE with composite PRIMARY KEY allows no more than one column not part of the PRIMARY KEY (got: {})", .0.join(", "))]
    SeveralInCompact(Vec<String>),
    /// Counters beside other columns.
    #[error("Cannot mix counter and non counter columns in the same table")]
    Mixed,
    /// A table of counters with a default time to live.
    #[error("Cannot set default_time_to_live on a table with counters")]
    CounterTimeToLive,
    /// The id is no UUID.
    #[error("Invalid table id")]
    Id,
    /// Another table has the id.
    #[error("Table id {id} is in use by {keyspace}.{table}")]
    IdTaken {
        /// The id.
        id: Uuid,
        /// Its keyspace.
        keyspace: String,
        /// The table.
        table: String,
    },
    /// The table's name has characters other than letters, digits and `_`.
    #[error(
        "{keyspace}.{table}: Table name must not be empty or not contain non-alphanumeric-underscore characters (got \"{table}\")"
    )]
    NameCharacters {
        /// Its keyspace.
        keyspace: String,
        /// The table.
        table: String,
    },
    /// The table's name is too long.
    #[error(
        "{keyspace}.{table}: Table name must not be more than {characters_max} characters long (got {length} characters for \"{table}\")"
    )]
    NameLength {
        /// Its keyspace.
        keyspace: String,
        /// The table.
        table: String,
        /// Its length in characters.
        length: usize,
        /// The maximum number of characters.
        characters_max: usize,
    },
    /// DROP TABLE of a materialized view.
    #[error("Cannot use DROP TABLE on a materialized view. Please use DROP MATERIALIZED VIEW instead.")]
    DropOfView,
    /// DROP of a table that has views: their keyspace, as in Cassandra's message.
    #[error("Cannot drop a table when materialized views still depend on it ({0})")]
    ViewsDepend(String),
}

impl TableRefusal {
    pub(in crate::planner::ddl) const fn code(&self) -> Code<'static> {
        match self {
            Self::Mask
            | Self::DuplicateColumn { .. }
            | Self::NoKey(_)
            | Self::SeveralKeys(_)
            | Self::UnknownKeyColumn { .. }
            | Self::DuplicateKeyColumn { .. }
            | Self::UserTypeInKey { .. }
            | Self::CollectionInKey { .. }
            | Self::CounterInKey(_)
            | Self::DurationInKey(_)
            | Self::StaticInKey(_)
            | Self::DuplicateOrder { .. }
            | Self::OrderOfOthers(_)
            | Self::OrderOfOrder { .. }
            | Self::OrderMissing(_)
            | Self::StaticWithoutClustering
            | Self::MultiCellInCompact
            | Self::StaticInCompact
            | Self::NothingInCompact
            | Self::SeveralInCompact(_)
            | Self::Mixed
            | Self::CounterTimeToLive
            | Self::DropOfView
            | Self::ViewsDepend(_) => Code::Invalid,
            Self::Id | Self::IdTaken { .. } | Self::NameCharacters { .. } | Self::NameLength { .. } => {
                Code::Configuration
            }
        }
    }
}
