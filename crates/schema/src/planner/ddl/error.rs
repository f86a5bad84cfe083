//! Errors of DDL statements.

use thiserror::Error;

use super::refusal::{
    AlterTableRefusal, Code, ColumnTypeRefusal, CompactionRefusal, CompressionRefusal, CosmosRefusal, FunctionRefusal,
    IndexOptionRefusal, IndexRefusal, KeyspaceRefusal, MaskRefusal, NameRefusal, OptionRefusal, PropertyRefusal,
    TableRefusal, UserTypeRefusal, ViewRefusal,
};
use crate::planner::rules::IndexTargetRefusal;

/// A refused DDL statement; the schema is unchanged.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum DdlError {
    /// CREATE of an existing object. `table` is empty for a keyspace.
    #[error("{}", already_exists(.keyspace, .table))]
    AlreadyExists {
        /// The keyspace.
        keyspace: String,
        /// The table or view; empty for a keyspace.
        table: String,
    },
    /// ALTER TABLE.
    #[error("{0}")]
    AlterTable(Box<AlterTableRefusal>),
    /// The type of a column, a field or an argument.
    #[error("{0}")]
    ColumnType(Box<ColumnTypeRefusal>),
    /// The options of compaction.
    #[error("{0}")]
    Compaction(Box<CompactionRefusal>),
    /// The options of compression.
    #[error("{0}")]
    Compression(Box<CompressionRefusal>),
    /// An option of Cosmos or of Helenus.
    #[error("{0}")]
    Cosmos(Box<CosmosRefusal>),
    /// A function or an aggregate.
    #[error("{0}")]
    Function(Box<FunctionRefusal>),
    /// An index or a trigger.
    #[error("{0}")]
    Index(Box<IndexRefusal>),
    /// The options of a CUSTOM index.
    #[error("{0}")]
    IndexOption(Box<IndexOptionRefusal>),
    /// A keyspace.
    #[error("{0}")]
    Keyspace(Box<KeyspaceRefusal>),
    /// The mask of a column.
    #[error("{0}")]
    Mask(Box<MaskRefusal>),
    /// A name in the statement.
    #[error("{0}")]
    Name(Box<NameRefusal>),
    /// A table's option.
    #[error("{0}")]
    Option(Box<OptionRefusal>),
    /// A property, whatever its name.
    #[error("{0}")]
    Property(Box<PropertyRefusal>),
    /// CREATE TABLE and DROP TABLE.
    #[error("{0}")]
    Table(Box<TableRefusal>),
    /// A user-defined type.
    #[error("{0}")]
    UserType(Box<UserTypeRefusal>),
    /// A materialized view.
    #[error("{0}")]
    View(Box<ViewRefusal>),
    /// An index that the profile `cosmos` does not support.
    #[error("{0}")]
    IndexTarget(Box<IndexTargetRefusal>),
}

impl DdlError {
    /// The error's protocol code.
    #[must_use]
    pub fn code(&self) -> Code<'_> {
        match self {
            Self::AlreadyExists { keyspace, table } => Code::AlreadyExists { keyspace, table },
            Self::AlterTable(refusal) => refusal.code(),
            Self::ColumnType(refusal) => refusal.code(),
            Self::Cosmos(refusal) => refusal.code(),
            Self::Function(refusal) => refusal.code(),
            Self::Index(refusal) => refusal.code(),
            Self::IndexOption(refusal) => refusal.code(),
            Self::Keyspace(refusal) => refusal.code(),
            Self::Mask(refusal) => refusal.code(),
            Self::Name(refusal) => refusal.code(),
            Self::Option(refusal) => refusal.code(),
            Self::Table(refusal) => refusal.code(),
            Self::UserType(refusal) => refusal.code(),
            Self::View(refusal) => refusal.code(),
            Self::Compaction(_) | Self::Compression(_) => Code::Configuration,
            Self::Property(_) => Code::Syntax,
            Self::IndexTarget(_) => Code::Invalid,
        }
    }
}

fn already_exists(keyspace: &str, table: &str) -> String {
    if table.is_empty() {
        format!("Cannot add existing keyspace \"{keyspace}\"")
    } else {
        format!("Cannot add already existing table \"{table}\" to keyspace \"{keyspace}\"")
    }
}

/// Converts the refusal of one part of DDL; boxed, so that a result stays small.
macro_rules! from_refusals {
    ($($variant:ident: $refusal:ty),+ $(,)?) => {
        $(impl From<$refusal> for DdlError {
            fn from(refusal: $refusal) -> Self {
                Self::$variant(Box::new(refusal))
            }
        })+
    };
}

from_refusals! {
    AlterTable: AlterTableRefusal,
    ColumnType: ColumnTypeRefusal,
    Compaction: CompactionRefusal,
    Compression: CompressionRefusal,
    Cosmos: CosmosRefusal,
    Function: FunctionRefusal,
    Index: IndexRefusal,
    IndexOption: IndexOptionRefusal,
    Keyspace: KeyspaceRefusal,
    Mask: MaskRefusal,
    Name: NameRefusal,
    Option: OptionRefusal,
    Property: PropertyRefusal,
    Table: TableRefusal,
    UserType: UserTypeRefusal,
    View: ViewRefusal,
    IndexTarget: IndexTargetRefusal,
}
