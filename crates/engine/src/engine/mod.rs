//! The `engine` module: commands → reads and writes of partitions → rows, outcomes and receipts of charges.
//!
//! [`Engine`] is what front ends call: each request is an [`Execution`], which routes [`command`](helenus_schema::command)s to stores through
//! [`crate::partition`], checks permissions, charges and records for the audit log. `cql` is the first front end.
//!
//! ```text
//! Read          ─ read/source ─→ part/ ─→ read/sink ─→ rows, position
//! Write, Batch  ─ write/      ─→ batch     ─→ store, durable
//! SchemaIntent  ─ catalog     ─→ next schema, durable, published
//! ```
//! Invariants: a request sees one `catalog` snapshot; an acknowledged write is durable; conditional statements on one
//! partition run one at a time; no command runs without the permissions that it needs. Deliberately absent: CQL, plans, sessions,
//! frames; where roles are stored.

mod action;
mod admission;
pub mod audit;
mod backup;
mod batch_log;
mod builds;
pub(crate) mod catalog;
pub(crate) mod check;
mod consumed;
mod counts;
mod draws;
mod edge;
pub mod error;
mod estimate;
mod failure;
mod fault_injection;
pub(crate) mod feed;
mod figures;
mod followed;
mod gates;
pub(crate) mod index;
pub(crate) mod ledger;
mod levels;
mod limits;
mod load;
mod logical;
mod meter;
mod offers;
mod owner;
mod part;
mod partitions;
mod pending;
mod probe;
mod published;
mod ranges;
pub mod read;
mod receipt;
pub mod refusal;
mod request_log;
pub(crate) mod row;
pub(crate) mod service;
pub mod shown;
mod size_change;
mod snapshot;
mod survey;
mod sweep;
mod targets;
pub(crate) mod terms;
mod upkeep;
pub(crate) mod value;
pub(crate) mod view;
mod virtual_tables;
pub(crate) mod write;
mod written;

pub use action::{Action, ReadAction, WriteAction};
pub use backup::{BackedUp, BackupError, Backups, Restored, RestoredRoles, Salvaged, What, salvage};
pub use backup::{has_roles, is_of_roles};
pub use catalog::{CatalogRecords, SchemaListener, changed_records};
pub use check::IndexCheck;
pub(crate) use edge::{storage_read, storage_write};
pub use error::{Error, NotChanged};
pub use estimate::ReadEstimate;
pub use failure::{Access, FailureCause, OpeningFailure, StorageFailure};
pub use feed::LogSizes;
pub use figures::{Figures, PartitionFigures, StoreFigures};
pub use gates::refuse_system;
pub use limits::SizeLimits;
pub use offers::ThroughputRules;
#[cfg(feature = "simulation")]
pub use owner::loopback::{messages_sent, through_bytes};
pub use owner::{Asked, Carrier, Unanswered};
pub use part::write::condition::Decision;
pub use partitions::{PartitionLimits, PartitionSizes, Repartitioned};
pub use probe::{Probe, StoreProbe, Took};
pub use ranges::Boundary;
pub use read::row_sink::RowSink;
pub use read::sink::Shape;
pub use receipt::{ChargeReceipt, Ended, Origin};
pub use refusal::Refusal;
pub use service::{
    Checked, ClockRules, Elsewhere, Engine, Execution, Options, OwnerSide, Paging, ReadPage, RolesInForce,
};
pub use snapshot::Snapshot;
pub use survey::{LogicalSurvey, PhysicalSurvey, TableSurvey};
pub use terms::request::Terms;
pub use terms::room::AnswerMemory;
pub use upkeep::Upkeep;
pub use virtual_tables::{NoTables, Seen, VirtualTables, Wanted};
pub use write::condition::Written;
pub use written::MeasuredPartitions;
