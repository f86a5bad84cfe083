//! The `command` module: requests of a front end to the engine, with every name resolved and every value bound.
//!
//! A front end makes a command and the engine executes it. `planner` makes commands from CQL; another front end makes
//! them from its own language, or a program builds them directly.
//!
//! ```text
//! Read   table · selection · partitions · clustering · filters · order · groups · limits
//! Write  table · verb · partition keys · target · column changes · timestamp, TTL · condition
//! Batch  writes · kind · timestamp
//! ```
//!
//! A command has two halves. One is made once for a statement and shared by all its executions: the table and, of a read, its
//! [`Selection`]. The other is bound for each request: keys, operands, limits.
//!
//! Invariants: columns are positions in `table.columns` of the table that the command holds, so a command keeps its
//! meaning when the schema changes. Keys are bytes ([`key`]), sorted and distinct where a type says so. A value is in
//! its type's wire form.
//!
//! Deliberately absent: text, syntax trees, bind markers after binding, frames, sessions, consistency levels, and how or where rows
//! are stored.

pub mod batch;
pub mod changes;
pub mod codec;
pub mod condition;
pub mod expression;
pub mod feed;
pub mod filter;
mod json_row;
pub mod key;
pub mod position;
pub mod read;
pub mod schema_change;
pub mod selection;
pub mod value;
pub mod write;

pub use batch::{Batch, BatchKind};
pub use changes::changes_between;
pub use condition::Condition;
pub use expression::{Aggregate, Expression, Part};
pub use feed::{FeedBound, FeedChange, FeedChanged, FeedOperation, FeedPage, FeedPosition, FeedStart, FeedSweep};
pub use filter::{Comparison, Filter, FilterTarget, Like, NeedsFiltering, Predicate};
pub use json_row::json_row;
pub use key::{Clustering, ClusteringRange, Partitions};
pub use position::Position;
pub use read::{IndexProbe, IndexUse, NEAREST_LIMIT_MAX, Nearest, Read, Spared};
pub use schema_change::{
    ChangeKind, ChangeTarget, PartitionChange, PartitionChangeOf, SchemaChange, SchemaContext, SchemaIntent,
    SchemaOutcome,
};
pub use selection::{ResultColumn, Selection};
pub use value::Value;
pub use write::{ColumnChange, ColumnMasks, MaskCalls, Write, WriteTarget, WriteVerb};
