//! Why a change of a materialized view is refused.

use thiserror::Error;

use super::code::Code;

/// Why a change of a materialized view is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ViewRefusal {
    /// The profile `cosmos`, in which views are a preview feature.
    #[error(
        "Materialized views are a preview feature of Azure Cosmos DB that has to be enabled for the account (CassandraEnableMaterializedViews). This account does not have it."
    )]
    Cosmos,
    /// WITH COMPACT STORAGE.
    #[error("COMPACT STORAGE tables are not allowed starting with version 4.0")]
    Compact,
    /// The base table is in another keyspace.
    #[error("Cannot create a materialized view on a table in a different keyspace")]
    OtherKeyspace,
    /// No base table of this name.
    #[error("Base table '{0}' doesn't exist")]
    BaseMissing(String),
    /// A table has the view's name.
    #[error("Cannot create materialized view '{0}' - a table with the same name already exists")]
    NameOfTable(String),
    /// A view of a table of counters.
    #[error("Materialized views are not supported on counter tables")]
    OnCounters,
    /// A base table with `gc_grace_seconds` of 0.
    #[error(
        "Cannot create materialized view '{view}' for base table '{base}' with gc_grace_seconds of 0, since this value is used to TTL undelivered updates. Setting gc_grace_seconds too low might cause undelivered updates to expire before being replayed."
    )]
    Grace {
        /// The view.
        view: String,
        /// The base table.
        base: String,
    },
    /// CREATE with a default time to live.
    #[error(
        "Cannot set default_time_to_live for a materialized view. Data in a materialized view always expire at the same time than the corresponding data in the parent table."
    )]
    TimeToLive,
    /// CLUSTERING ORDER BY does not name all clustering columns.
    #[error("Clustering key columns must exactly match columns in CLUSTERING ORDER BY directive")]
    Order,
    /// An alias.
    #[error("Cannot use aliases when defining a materialized view (got {0})")]
    Alias(String),
    /// A selector that is no column.
    #[error("Can only select columns by name when defining a materialized view (got {0})")]
    Selector(String),
    /// A static column.
    #[error("Cannot include static column '{column}' in materialized view '{view}'")]
    Static {
        /// The column.
        column: String,
        /// The view.
        view: String,
    },
    /// The primary key has a column that the view does not have.
    #[error("Unknown column '{column}' referenced in PRIMARY KEY for materialized view '{view}'")]
    UnknownKeyColumn {
        /// The column.
        column: String,
        /// The view.
        view: String,
    },
    /// The primary key has a column twice.
    #[error("Duplicate column '{column}' in PRIMARY KEY clause for materialized view '{view}'")]
    DuplicateKeyColumn {
        /// The column.
        column: String,
        /// The view.
        view: String,
    },
    /// A column of many cells in the primary key.
    #[error("Invalid non-frozen {kind} type '{class_name}' for PRIMARY KEY column '{column}'")]
    MultiCellInKey {
        /// The kind.
        kind: &'static str,
        /// The class.
        class_name: String,
        /// The column.
        column: String,
    },
    /// The primary key leaves out columns of the base table's primary key.
    #[error("Cannot create materialized view '{view}' without primary key columns {} from base table '{base}'", .columns.join(", "))]
    KeyColumnsMissing {
        /// The view.
        view: String,
        /// The columns.
        columns: Vec<String>,
        /// The base table.
        base: String,
    },
    /// The primary key has more than one other column.
    #[error("Cannot include more than one non-primary key column in materialized view primary key (got {})", .0.join(", "))]
    SeveralOthers(Vec<String>),
    /// Bind markers.
    #[error("Bind variables are not allowed in CREATE MATERIALIZED VIEW statements")]
    Markers,
    /// A relation of a token.
    #[error("Cannot use token relation when defining a materialized view")]
    Token,
    /// IN on the base table's partition key beside a relation of its clustering columns that filters.
    #[error("Select on indexed columns and with IN clause for the PRIMARY KEY are not supported")]
    InBesideFilter,
    /// Relations of columns that are not in the primary key.
    #[error("Non-primary key columns can only be restricted with 'IS NOT NULL' (got: {} restricted illegally)", .0.join(","))]
    RestrictedOthers(Vec<String>),
    /// Columns of the primary key without a relation.
    #[error("Primary key columns {} must be restricted with 'IS NOT NULL' or otherwise", .0.join(", "))]
    KeyNotRestricted(Vec<String>),
    /// The error of the values of WHERE, as in a SELECT.
    #[error("{0}")]
    Where(String),
    /// No materialized view of this name.
    #[error("Materialized view '{keyspace}.{view}' doesn't exist")]
    Missing {
        /// Its keyspace.
        keyspace: String,
        /// The view.
        view: String,
    },
    /// ALTER to `gc_grace_seconds` of 0.
    #[error(
        "Cannot alter gc_grace_seconds of a materialized view to 0, since this value is used to TTL undelivered updates. Setting gc_grace_seconds too low might cause undelivered updates to expire before being replayed."
    )]
    AlterGrace,
    /// ALTER to a default time to live.
    #[error(
        "Forbidden default_time_to_live detected for a materialized view. Data in a materialized view always expire at the same time than the corresponding data in the parent table. default_time_to_live must be set to zero, see CASSANDRA-12868 for more information"
    )]
    AlterTimeToLive,
}

impl ViewRefusal {
    pub(in crate::planner::ddl) const fn code(&self) -> Code<'static> {
        match self {
            Self::Compact => Code::Syntax,
            Self::Cosmos
            | Self::OtherKeyspace
            | Self::BaseMissing(_)
            | Self::NameOfTable(_)
            | Self::OnCounters
            | Self::Grace { .. }
            | Self::TimeToLive
            | Self::Order
            | Self::Alias(_)
            | Self::Selector(_)
            | Self::Static { .. }
            | Self::UnknownKeyColumn { .. }
            | Self::DuplicateKeyColumn { .. }
            | Self::MultiCellInKey { .. }
            | Self::KeyColumnsMissing { .. }
            | Self::SeveralOthers(_)
            | Self::Markers
            | Self::Token
            | Self::InBesideFilter
            | Self::RestrictedOthers(_)
            | Self::KeyNotRestricted(_)
            | Self::Where(_)
            | Self::Missing { .. }
            | Self::AlterGrace
            | Self::AlterTimeToLive => Code::Invalid,
        }
    }
}
