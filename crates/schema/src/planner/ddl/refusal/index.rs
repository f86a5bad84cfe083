//! Why a change of an index or a trigger is refused.

use thiserror::Error;

use super::code::Code;

/// Why a change of an index or a trigger is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum IndexRefusal {
    /// The index's name has another keyspace than the table's.
    #[error("Keyspace name '{keyspace}' doesn't match index name '{index}'")]
    OtherKeyspace {
        /// Its keyspace.
        keyspace: String,
        /// The index.
        index: String,
    },
    /// WITH OPTIONS of an index without a class.
    #[error("Cannot specify options for a non-CUSTOM index")]
    OptionsWithoutClass,
    /// No table of this name.
    #[error("Table '{0}' doesn't exist")]
    TableMissing(String),
    /// An index of this name exists.
    #[error("Index '{0}' already exists")]
    Exists(String),
    /// An index on a table of counters.
    #[error("Secondary indexes on counter tables aren't supported")]
    OnCounters,
    /// An index on a materialized view.
    #[error("Secondary indexes on materialized views aren't supported")]
    OnView,
    /// The same index under another name.
    #[error("Index {index} is a duplicate of existing index {other}")]
    Duplicate {
        /// The index.
        index: String,
        /// The other index.
        other: String,
    },
    /// The index's name has other characters than letters, digits and `_`.
    #[error("Illegal index name {0}")]
    NameCharacters(String),
    /// The index's name is too long.
    #[error("Index name must not be more than {bytes_max} bytes long (got {bytes} bytes)")]
    NameLength {
        /// Its length in bytes.
        bytes: usize,
        /// The maximum number of bytes.
        bytes_max: usize,
    },
    /// No column, and no class.
    #[error("Only CUSTOM indexes can be created without specifying a target column")]
    NoTarget,
    /// Several columns, and no class.
    #[error("Only CUSTOM indexes support multiple columns")]
    SeveralTargets,
    /// A column is named twice.
    #[error("Duplicate column '{0}' in index target list")]
    DuplicateTarget(String),
    /// A storage-attached index on a column whose name cannot be a file name.
    #[error("Column '{0}' contains non-alphanumeric-underscore characters")]
    ColumnCharacters(String),
    /// Values that contain durations: their kind.
    #[error("Secondary indexes are not supported on {0}")]
    Durations(&'static str),
    /// A column of the primary key of a table WITH COMPACT STORAGE.
    #[error("Secondary indexes are not supported on PRIMARY KEY columns in COMPACT STORAGE tables")]
    KeyOfCompact,
    /// The column of values of a table WITH COMPACT STORAGE and clustering columns.
    #[error("Secondary indexes are not supported on compact value column of COMPACT STORAGE tables")]
    ValueOfCompact,
    /// The only column of the partition key.
    #[error("Cannot create secondary index on the only partition key column {0}")]
    OnlyKeyColumn(String),
    /// A part of a frozen collection.
    #[error(
        "Cannot create {part}() index on frozen column {column}. Frozen collections are immutable and must be fully indexed by using the 'full({column})' modifier"
    )]
    FrozenCollection {
        /// The part of the column.
        part: &'static str,
        /// The column.
        column: String,
    },
    /// FULL of a column that is no frozen collection.
    #[error("full() indexes can only be created on frozen collections")]
    FullOfOther,
    /// A part of a column that is no collection.
    #[error("Cannot create {part}() index on {column}. Non-collection columns only support simple indexes")]
    PartOfOther {
        /// The part of the column.
        part: &'static str,
        /// The column.
        column: String,
    },
    /// Keys or entries of a column that is no map.
    #[error("Cannot create index on {part} of column {column} with non-map type")]
    PartOfNonMap {
        /// The part of the column.
        part: &'static str,
        /// The column.
        column: String,
    },
    /// A user-defined type of many cells.
    #[error("Cannot create index on non-frozen UDT column {0}")]
    MultiCellUserType(String),
    /// DROP of an index that does not exist.
    #[error("Index '{keyspace}.{index}' doesn't exist'")]
    Missing {
        /// Its keyspace.
        keyspace: String,
        /// The index.
        index: String,
    },
    /// A trigger on this table, which does not exist.
    #[error("Table '{0}' doesn't exist")]
    TriggerTable(String),
    /// A trigger on a table of this system keyspace.
    #[error("System keyspace '{0}' is not user-modifiable")]
    TriggerOnSystem(String),
    /// A trigger on a materialized view.
    #[error("Cannot CREATE TRIGGER for a materialized view")]
    TriggerOnView,
    /// A trigger of this name exists.
    #[error("Trigger '{0}' already exists")]
    TriggerExists(String),
    /// The trigger's class cannot be loaded.
    #[error("Trigger class '{0}' couldn't be loaded")]
    TriggerClass(String),
    /// DROP of a trigger that does not exist.
    #[error("Trigger '{trigger}' on '{keyspace}.{table}' doesn't exist")]
    TriggerMissing {
        /// The trigger.
        trigger: String,
        /// Its keyspace.
        keyspace: String,
        /// The table.
        table: String,
    },
}

impl IndexRefusal {
    pub(in crate::planner::ddl) const fn code(&self) -> Code<'static> {
        match self {
            Self::OtherKeyspace { .. }
            | Self::OptionsWithoutClass
            | Self::TableMissing(_)
            | Self::Exists(_)
            | Self::OnCounters
            | Self::OnView
            | Self::Duplicate { .. }
            | Self::NameLength { .. }
            | Self::NoTarget
            | Self::SeveralTargets
            | Self::DuplicateTarget(_)
            | Self::ColumnCharacters(_)
            | Self::Durations(_)
            | Self::KeyOfCompact
            | Self::ValueOfCompact
            | Self::OnlyKeyColumn(_)
            | Self::FrozenCollection { .. }
            | Self::FullOfOther
            | Self::PartOfOther { .. }
            | Self::PartOfNonMap { .. }
            | Self::MultiCellUserType(_)
            | Self::Missing { .. }
            | Self::TriggerOnView
            | Self::TriggerOnSystem(_)
            | Self::TriggerTable(_)
            | Self::TriggerExists(_)
            | Self::TriggerClass(_)
            | Self::TriggerMissing { .. } => Code::Invalid,
            Self::NameCharacters(_) => Code::Configuration,
        }
    }
}
