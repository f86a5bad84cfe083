//! Why LIMIT, DISTINCT, ORDER BY or GROUP BY of columns is refused.

use thiserror::Error;

use crate::schema::feed_range::NoFeedRange;

/// A clause of a SELECT that the table or the rest of the statement does not allow.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SelectRefusal {
    /// A table without a change feed.
    #[error("Table {keyspace}.{table} has no change feed: ALTER TABLE {keyspace}.{table} WITH cdc = true begins one")]
    NoFeed {
        /// Its keyspace.
        keyspace: String,
        /// Its name.
        table: String,
    },
    /// A materialized view, or a table of the system.
    #[error("{keyspace}.{table} cannot have a change feed: only tables of users have one")]
    NeverFeed {
        /// Its keyspace.
        keyspace: String,
        /// Its name.
        table: String,
    },
    /// A relation of the change feed that is there twice: its function.
    #[error("{0}() is restricted more than once")]
    FeedTwice(&'static str),
    /// A read of the change feed without a start, or with two.
    #[error("A read of the change feed needs either cosmos_changefeed_start_time() or cosmos_changefeed_from_start()")]
    FeedStart,
    /// A clause that a read of the change feed does not allow.
    #[error("A read of the change feed does not allow {0}")]
    FeedClause(&'static str),
    /// A restriction that a read of the change feed does not allow.
    #[error("A read of the change feed may be restricted only to one partition key or to one feed range")]
    FeedRestricted,
    /// Null or unset as a value: its function.
    #[error("Invalid null value of {0}()")]
    FeedNull(&'static str),
    /// A text that is no feed range.
    #[error("Invalid feed range: {0}")]
    FeedRange(NoFeedRange),
    /// Null as a limit, that of PER PARTITION LIMIT too.
    #[error("Invalid null value of limit")]
    NullLimit,
    /// A limit below 1.
    #[error("LIMIT must be strictly positive")]
    LimitNotPositive,
    /// PER PARTITION LIMIT beside an aggregate.
    #[error("PER PARTITION LIMIT is not allowed with aggregate queries.")]
    PartitionLimitOfAggregate,
    /// PER PARTITION LIMIT beside DISTINCT.
    #[error("PER PARTITION LIMIT is not allowed with SELECT DISTINCT queries")]
    PartitionLimitOfDistinct,
    /// DISTINCT with a restriction on rows.
    #[error("SELECT DISTINCT with WHERE clause only supports restriction by partition key and/or static columns.")]
    DistinctRestricted,
    /// DISTINCT of this column, which belongs to rows.
    #[error("SELECT DISTINCT queries must only request partition key columns and/or static columns (not {0})")]
    DistinctColumn(String),
    /// DISTINCT without this column of the partition key.
    #[error("SELECT DISTINCT queries must request all the partition key columns (missing {0})")]
    DistinctMissing(String),
    /// ORDER BY beside an index.
    #[error("ORDER BY with 2ndary indexes is not supported, except for ANN queries.")]
    OrderOfIndex,
    /// ORDER BY over a range of partitions.
    #[error("ORDER BY is only supported when the partition key is restricted by an EQ or an IN.")]
    OrderOfRange,
    /// ORDER BY this column, which is no clustering column.
    #[error("Order by is currently only supported on the clustered columns of the PRIMARY KEY, got {0}")]
    OrderColumn(String),
    /// ORDER BY leaves a clustering column out.
    #[error(
        "Order by currently only supports the ordering of columns following their declared order in the PRIMARY KEY"
    )]
    OrderOfOrder,
    /// ORDER BY in two directions at once.
    #[error("Unsupported order by relation")]
    OrderDirections,
    /// GROUP BY this column, which is not in the primary key.
    #[error("Group by is currently only supported on the columns of the PRIMARY KEY, got {0}")]
    GroupColumn(String),
    /// GROUP BY a function, then something else.
    #[error("Functions are only supported on the last element of the GROUP BY clause")]
    GroupAfterFunction,
    /// GROUP BY leaves a column of the primary key out.
    #[error("Group by currently only support groups of columns following their declared order in the PRIMARY KEY")]
    GroupOrder,
    /// GROUP BY a part of the partition key.
    #[error("Group by is not supported on only a part of the partition key")]
    GroupOfPartialKey,
    /// DISTINCT beside GROUP BY of clustering columns.
    #[error("Grouping on clustering columns is not allowed for SELECT DISTINCT queries")]
    GroupOfDistinct,
}
