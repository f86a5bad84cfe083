//! The `executor` room: plan + values → reads and writes of partitions → rows, pages, paging state.
//!
//! [`Database`] is the whole server without its sockets. It plans text ([`crate::planner`]), binds values, routes to stores through
//! [`crate::partition`], and answers with an [`Answer`] whose rows are already encoded as they go into a frame.
//!
//! ```text
//! text ─ plans ─→ Planned ─ bind ─→ Read   ─ read/source ─→ read/sink ─→ Rows, paging state
//!                                          ─ index/read  ─→
//!                                   Write  ─ write/      ─→ batch     ─→ store, durable
//!                                   DDL    ─ catalog     ─→ next schema, durable, in force
//! ```
//! Invariants: a request sees one `catalog` snapshot; what is acknowledged is durable; conditional statements on one partition
//! happen one after the other. Frames, sockets and the cache of prepared statements are deliberately absent.

mod admission;
pub mod answer;
mod backup;
mod batch_log;
mod catalog;
mod counts;
mod database;
mod disturb;
mod draws;
pub mod error;
mod explain;
mod failure;
mod figures;
mod gates;
mod growth;
mod heat;
mod index;
mod ledger;
mod levels;
mod limits;
mod logical;
mod meter;
mod offers;
pub(crate) mod paging;
mod partitions;
mod pending;
mod plans;
mod probe;
pub(crate) mod read;
mod receipt;
mod request;
mod request_log;
mod shape;
pub mod shown;
mod spent;
mod survey;
mod sweep;
mod value;
mod watch;
pub(crate) mod write;

pub use answer::{
    Answer, AnswerKind, ChangeKind, ChangeTarget, QueryParams, ResultMetadata, Rows, SchemaChange, SessionState, Values,
};
pub use backup::{BackedUp, BackupError, Restored, What};
pub use database::{ClockRules, Database, LiveSource, Member, Options};
pub use error::Error;
pub use failure::{Access, FailureCause, StorageFailure};
pub(crate) use failure::{storage_read, storage_write};
pub(crate) use figures::Figures;
pub use figures::{PartitionFigures, StoreFigures};
pub use index::check::IndexCheck;
pub use limits::SizeLimits;
pub use offers::ThroughputRules;
pub use partitions::{PartitionLimits, PartitionSizes, Repartitioned};
pub use plans::Statement;
pub use probe::{Probe, StoreProbe, Took};
pub use receipt::{ChargeReceipt, Ended, Executed, Origin};
pub use survey::{LogicalSurvey, PhysicalSurvey, TableSurvey};
