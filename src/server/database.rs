//! What the server asks of the database.

use std::sync::Arc;

use uuid::Uuid;

use crate::executor::{Answer, BatchKind, Error, QueryParams, ResultMetadata, SessionState};
use crate::planner::bound::Value;
use crate::wire::response::ColumnSpec;

/// A planned statement and what a client needs to know of it.
pub(super) struct Planned<S> {
    /// The plan.
    pub(super) statement: Arc<S>,
    /// The schema that it was planned in.
    pub(super) schema_version: Uuid,
    /// Its markers.
    pub(super) markers: Vec<ColumnSpec>,
    /// For each column of the partition key the marker that gives it; empty unless every one has one.
    pub(super) partition_key_markers: Vec<u16>,
    /// The columns of its rows; `None`: no rows, or not always the same.
    pub(super) result: Option<Arc<ResultMetadata>>,
    /// Every table in it is named with its keyspace.
    pub(super) fully_qualified: bool,
}

/// One statement of a batch.
pub(super) enum Member<S> {
    /// CQL.
    Text(String),
    /// A plan.
    Planned(Arc<S>),
}

/// The database, as requests need it.
pub(super) trait Database: Send + Sync + 'static {
    /// A plan.
    type Statement: Send + Sync + 'static;

    /// The version of the schema that is in force.
    fn schema_version(&self) -> Uuid;

    /// Plans a text in a keyspace.
    fn prepare(&self, keyspace: Option<&str>, text: &str) -> Result<Planned<Self::Statement>, Error>;

    /// Runs a text.
    fn query(
        &self,
        session: &SessionState,
        text: &str,
        params: QueryParams,
    ) -> impl Future<Output = Result<Answer, Error>> + Send;

    /// Runs a plan.
    fn execute(
        &self,
        session: &SessionState,
        statement: &Arc<Self::Statement>,
        params: QueryParams,
    ) -> impl Future<Output = Result<Answer, Error>> + Send;

    /// Runs a batch.
    fn batch(
        &self,
        session: &SessionState,
        kind: BatchKind,
        members: Vec<(Member<Self::Statement>, Vec<Value>)>,
        params: QueryParams,
    ) -> impl Future<Output = Result<Answer, Error>> + Send;
}
