//! The `executor` room: plan + values → reads and writes of partitions → rows, pages, paging state.
//!
//! [`Database`](database::Database) is the whole server without its sockets. It plans text ([`crate::planner`]), binds values, routes to
//! stores through [`crate::partition`], and answers with an [`Answer`] whose rows are already encoded as they go into a frame.
//! Frames, sockets and the cache of prepared statements are deliberately absent.

pub mod answer;
pub mod error;

pub use answer::{
    Answer, AnswerKind, BatchKind, Change, ChangeTarget, Marker, QueryParams, ResultMetadata, Rows, SchemaChange,
    SessionState, Values,
};
pub use error::Error;
