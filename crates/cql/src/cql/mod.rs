//! The `cql` module: the first front end. CQL text or a prepared statement and its values in, an [`Answer`] for a frame
//! out.
//!
//! ```text
//! text ─ plans ─→ PlannedAt ─ gates, bind ─→ command ─→ engine::Engine ─→ rows, outcome, receipt ─→ Answer
//! ```
//! A statement's life: its text is planned once ([`Statement`], or the plan cache) and again when the schema has
//! changed; each execution binds values, passes the checks (`gates`), and passes a [`command`](helenus_schema::command) to the
//! engine. The engine's result becomes an [`Answer`]: rows in frame encoding, a paging state, warnings, notes for a
//! trace, the charge.
//!
//! Invariants: each request is charged exactly once, whether the request succeeded or failed. A plan is used
//! only in the catalog generation for which it was made.
//!
//! Deliberately absent: how and where rows are stored, budgets, replicas (the engine); frames, sockets, the cache of
//! prepared statements by id (the server).

mod answer;
mod apart;
mod audited;
mod counters;
mod database;
pub mod error;
mod explain;
mod feed;
mod gates;
pub mod paging_state;
mod plans;
mod role_changes;
mod role_refusal;
mod roles;
mod rows;
mod shape;
mod statements;
mod written;

pub use answer::{Answer, AnswerKind, FeedEnd, QueryParams, ResultMetadata, Rows, SessionState, Values};
pub use apart::apart;
pub use audited::{AuditedBatch, AuditedPrepare, AuditedStatement, is_statement};
pub use database::{Database, Member};
pub use error::{Error, InReplica, RequestRefusal};
pub use plans::Statement;
pub use roles::{FirstRole, HashPermit, Hashing, RoleOptions, RoleService};
