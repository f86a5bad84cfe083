//! The statements that a database answers. What it refuses by its catalog in memory it says only while it is the one
//! server that may change the catalog: another one may have taken the bucket over, and the refusal may be outdated.

use super::answer::{Answer, QueryParams, SessionState};
use super::audited::{AuditedBatch, AuditedStatement};
use super::database::{Database, Member, RequestScope};
use super::error::Error;
use super::plans::Statement;
use helenus_schema::command::{BatchKind, Value};
use helenus_types::consistency::Consistency;
use helenus_types::wire::response::ErrorCode;

impl Database {
    /// Plans a text in a keyspace.
    ///
    /// # Errors
    /// The text is no CQL, or its meaning is invalid.
    pub fn prepare(&self, keyspace: Option<&str>, text: &str) -> Result<Statement, Error> {
        let began = self.counters.begin();
        let prepared = self.plan_prepared(keyspace, text);
        let prepared = prepared.map_err(|error| self.of_owner(error, Consistency::One));
        self.counters.count_prepare(began, &prepared);
        prepared
    }

    /// Executes a text.
    ///
    /// # Errors
    /// Any refusal or failure of the statement.
    pub async fn query(&self, session: &SessionState, text: &str, params: &QueryParams) -> Result<Answer, Error> {
        let keyspace = params.keyspace.as_deref().or(session.keyspace.as_deref());
        let subject = AuditedStatement { text, keyspace };
        let mut scope = self.scope(session, params, &subject).await;
        let answer = self.answer_text(&mut scope, text).await;
        self.end(scope, answer, params)
    }

    /// Executes a prepared statement.
    ///
    /// # Errors
    /// Any refusal or failure of the statement.
    pub async fn execute(
        &self,
        session: &SessionState,
        statement: &Statement,
        params: &QueryParams,
    ) -> Result<Answer, Error> {
        let subject = statement.audited();
        let mut scope = self.scope(session, params, &subject).await;
        let answer = self.answer_prepared(&mut scope, statement).await;
        self.end(scope, answer, params)
    }

    /// Executes a batch of statements, each with its values.
    ///
    /// # Errors
    /// Any refusal or failure; then none of it was executed.
    pub async fn batch(
        &self,
        session: &SessionState,
        kind: BatchKind,
        members: Vec<(Member, Vec<Value>)>,
        params: &QueryParams,
    ) -> Result<Answer, Error> {
        let subject = AuditedBatch(match self.engine().is_audited() {
            true => members.iter().map(|(member, _)| member.text()).collect(),
            false => Vec::new(),
        });
        let mut scope = self.scope(session, params, &subject).await;
        let answer = self.answer_batch(&mut scope, kind, members).await;
        self.end(scope, answer, params)
    }

    fn end(
        &self,
        mut scope: RequestScope<'_>,
        answer: Result<Answer, Error>,
        params: &QueryParams,
    ) -> Result<Answer, Error> {
        let answer = answer.map_err(|error| self.of_owner(error, params.consistency));
        scope.execution.audit(answer.as_ref().err().map(Error::audit_failure));
        answer
    }

    /// Replaces a refusal by what the catalog in memory says, if another server may have changed it.
    fn of_owner(&self, error: Error, consistency: Consistency) -> Error {
        let is_of_catalog = matches!(
            error.code(),
            ErrorCode::Invalid | ErrorCode::Unauthorized | ErrorCode::Config | ErrorCode::AlreadyExists
        );
        if !is_of_catalog {
            return error;
        }
        self.engine()
            .refuse_taken_over(consistency)
            .err()
            .map_or(error, Error::from)
    }
}
