//! Executes CQL statements: plan, check, bind to commands, pass to the engine, answer.

use super::error::{Error, RequestRefusal};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use grammar::ast;

use super::answer::{Answer, AnswerKind, FeedEnd, QueryParams, ResultMetadata, Rows, SessionState, Values};
use super::apart::apart;
use super::counters::StatementCounters;
use super::explain;
use super::feed;
use super::gates;
use super::paging_state::{self, PagingKey};
use super::plans::{PlanCache, PlannedAt, Statement};
use super::roles::{self, RoleService};
use super::rows::{FrameRows, put_cell};
use super::written::{answer_of, answer_to, show_values};
use helenus_engine::engine::audit::Subject;
use helenus_engine::engine::{self, Checked, Ended, Engine, Execution, Options, Paging, Shape, Terms};
use helenus_schema::command::{Batch, BatchKind, Partitions, Position, Read, ResultColumn, Value};
use helenus_schema::planner::ddl::{self, DdlIntent};
use helenus_schema::planner::{self, Plan};
use helenus_schema::schema::{Table, describe, system};
use helenus_types::consistency::WriteKind;

/// One statement of a batch.
#[derive(Clone, Debug)]
pub enum Member {
    /// CQL.
    Text(String),
    /// A prepared statement.
    Prepared(Arc<Statement>),
}

impl Member {
    /// Its text.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Prepared(statement) => statement.audited().text.to_owned(),
        }
    }
}

/// A database that executes CQL: the engine, and the additional state of CQL statements. All other functions, such as
/// maintenance and figures, belong to the [`Engine`] ([`Database::engine`]).
#[derive(Debug)]
pub struct Database {
    engine: Arc<Engine>,
    plans: PlanCache,
    pub(super) counters: StatementCounters,
    /// Empty means that clients need no role.
    pub(super) roles: OnceLock<Arc<RoleService>>,
}

/// The context of a statement: its session, its parameters and the engine's execution.
pub(super) struct RequestScope<'a> {
    session: &'a SessionState,
    params: &'a QueryParams,
    /// The keyspace of unqualified names: the request's own, or its session's.
    keyspace: Option<Arc<str>>,
    pub(super) execution: Execution<'a>,
}

/// A SELECT with its values.
struct BoundSelect<'a> {
    planned: &'a PlannedAt,
    read: &'a Read,
    shape: &'a Shape,
    values: &'a [Value],
}

impl Database {
    /// Opens the database at a URL; creates it if it does not exist.
    ///
    /// # Errors
    /// The store cannot be opened or its catalog cannot be read.
    pub async fn open(options: Options) -> Result<Self, engine::Error> {
        let engine = Arc::new(Engine::open(options).await?);
        Ok(Self {
            counters: StatementCounters::new(Arc::clone(engine.statements()), engine.clock().clone()),
            plans: PlanCache::default(),
            roles: OnceLock::new(),
            engine,
        })
    }

    /// As [`Engine::close`].
    ///
    /// # Errors
    /// When the medium fails.
    pub async fn close(&self) -> Result<(), engine::Error> {
        self.engine.close().await
    }

    /// As [`Engine::close_within`].
    ///
    /// # Errors
    /// When the medium fails.
    pub async fn close_within(&self, within: Duration) -> Result<(), engine::Error> {
        self.engine.close_within(within).await
    }

    /// The engine alone, for another front end, for maintenance and for figures.
    #[must_use]
    pub const fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Refuses a keyspace that a request names for its unqualified tables but that does not exist. A session's keyspace
    /// may have been dropped meanwhile: then only statements with unqualified tables fail.
    ///
    /// # Errors
    /// [`RequestRefusal::NoKeyspace`] with Cassandra's text.
    pub fn check_keyspace(&self, keyspace: &str) -> Result<(), Error> {
        gates::expect_keyspace(&self.engine.schema(), keyspace)
    }

    pub(super) fn plan_prepared(&self, keyspace: Option<&str>, text: &str) -> Result<Statement, Error> {
        let snapshot = self.engine.snapshot();
        let planned = PlannedAt::new(text.into(), keyspace, &snapshot).map_err(|error| self.reworded(error))?;
        if !matches!(planned.planned.plan, Plan::Truncate(_)) {
            planner::refuse_views(&planned.planned.plan, &snapshot.schema)?;
        }
        Ok(Statement::new(keyspace.map(Arc::from), planned))
    }

    /// Replaces a refusal that advises ALLOW FILTERING if a guardrail forbids it.
    fn reworded(&self, error: Error) -> Error {
        match (&error, self.engine.guardrails().filtering_is_off()) {
            (Error::Plan(of), Some(instead)) if **of == planner::Error::NeedsFiltering => {
                RequestRefusal::FilteringIsOff(instead).into()
            }
            _ => error,
        }
    }

    pub(super) async fn answer_text(&self, scope: &mut RequestScope<'_>, text: &str) -> Result<Answer, Error> {
        let execution = &scope.execution;
        gates::names(execution.schema(), scope.params)?;
        let planned = self.plans.plan(scope.keyspace.as_ref(), text, execution.snapshot());
        let planned = planned.map_err(|error| self.reworded(error));
        if planned.is_err() {
            self.counters.count_unplanned(execution.began(), &planned);
        }
        let planned = planned?;
        self.refuse_for_owner(scope.session, &planned)?;
        self.run(scope, &planned).await
    }

    pub(super) async fn answer_prepared(
        &self,
        scope: &mut RequestScope<'_>,
        statement: &Statement,
    ) -> Result<Answer, Error> {
        gates::names(scope.execution.schema(), scope.params)?;
        let planned = statement.at(scope.execution.snapshot())?;
        if let Values::Positional(values) = &scope.params.values {
            gates::prepared_values(&planned.planned, values.len())?;
        }
        self.refuse_for_owner(scope.session, &planned)?;
        self.counters.count_prepared();
        self.run(scope, &planned).await
    }

    pub(super) async fn answer_batch(
        &self,
        scope: &mut RequestScope<'_>,
        kind: BatchKind,
        members: Vec<(Member, Vec<Value>)>,
    ) -> Result<Answer, Error> {
        gates::names(scope.execution.schema(), scope.params)?;
        let batch = self.bind_batch(scope, kind, members).await;
        let began = scope.execution.began();
        if batch.as_ref().is_err_and(|error| *error != Error::ForOwner) {
            self.counters.count_unplanned(began, &batch);
        }
        let batch = batch?;
        let subject = self.counters.batch_subject(&batch);
        let outcome = scope.execution.batch(&batch).await;
        let mut outcome = outcome.map(|written| answer_of(&batch, written)).map_err(Error::from);
        if self.roles.get().is_some() {
            let tables: Vec<_> = batch
                .modifications
                .iter()
                .map(|member| Arc::clone(&member.table))
                .collect();
            if self.writes_roles(scope.session, &tables) {
                Box::pin(self.reload_roles_after(&mut outcome)).await;
            }
        }
        self.counters.record(&subject, began, &outcome);
        record_charge(&mut scope.execution, &mut outcome);
        outcome
    }

    async fn bind_batch(
        &self,
        scope: &mut RequestScope<'_>,
        kind: BatchKind,
        members: Vec<(Member, Vec<Value>)>,
    ) -> Result<Batch, Error> {
        self.engine.rules().batch(kind)?;
        // As in Cassandra, all members are parsed and their markers counted before any is processed further, and all
        // are checked before any value is.
        let mut planned = Vec::with_capacity(members.len());
        for (member, values) in members {
            let member = match member {
                Member::Text(text) => self
                    .plans
                    .plan(scope.keyspace.as_ref(), &text, scope.execution.snapshot())?,
                Member::Prepared(statement) => statement.at(scope.execution.snapshot())?,
            };
            gates::member_values(&member.planned, values.len())?;
            self.refuse_for_owner(scope.session, &member)?;
            planned.push((member, values));
        }
        let mut plans = Vec::with_capacity(planned.len());
        for (member, _) in &planned {
            let Plan::Modify(plan) = &member.planned.plan else {
                return Err(RequestRefusal::Member.into());
            };
            plans.push(Arc::clone(plan));
        }
        planner::batch::check(kind, &plans, false)?;
        gates::batch_permissions(&mut scope.execution, &plans)?;
        let is_masked = plans.iter().any(|plan| gates::masks_refusal(&scope.execution, plan));
        let bind = || {
            let members = plans.iter().zip(&planned);
            let bound = members.map(|(plan, (_, values))| plan.bind(values, scope.execution.context()));
            let bound = bound.collect::<Result<Vec<_>, _>>();
            let bound = bound.map_err(|error| {
                let members = plans.iter().zip(&planned);
                let members = members.map(|(plan, (_, values))| (&**plan, values.as_slice()));
                planner::batch::first_fault(members, scope.execution.context(), error)
            });
            bound.map_err(|error| Error::unbound(error, scope.params.consistency, Some(kind_of(kind))))
        };
        let mut bound = if plans.iter().all(|plan| plan.calls().is_empty()) {
            bind()?
        } else {
            Box::pin(apart(async { bind() })).await?
        };
        if !is_masked {
            show_values(&mut bound);
        }
        Ok(planner::batch::finish(kind, &plans, bound, None)?)
    }

    pub(super) async fn scope<'a>(
        &'a self,
        session: &'a SessionState,
        params: &'a QueryParams,
        subject: &'a dyn Subject,
    ) -> RequestScope<'a> {
        let terms = Terms {
            consistency: params.consistency,
            serial_consistency: params.serial_consistency,
            timestamp_micros: params.timestamp_micros,
            now_seconds: params.now_seconds,
            is_traced: params.trace.is_some(),
            request_bytes: params.request_bytes,
            client: session.client.as_ref(),
            user: session.user.as_ref(),
            is_recorded_elsewhere: session.is_recorded_elsewhere,
            node: session.node,
            share: session.share.as_ref(),
        };
        let mut execution = self.engine.begin(terms).await;
        execution.set_subject(subject);
        RequestScope {
            keyspace: params.keyspace.clone().or_else(|| session.keyspace.clone()),
            session,
            params,
            execution,
        }
    }

    async fn run(&self, scope: &mut RequestScope<'_>, planned: &Arc<PlannedAt>) -> Result<Answer, Error> {
        scope.execution.set_origin(Arc::clone(&planned.origin));
        let mut outcome = if self.writes_roles(scope.session, &planned.planned.tables) {
            Box::pin(self.write_roles(scope, planned)).await
        } else if planned.planned.plan.calls_functions() {
            Box::pin(apart(self.execute_plan(scope, planned))).await
        } else {
            self.execute_plan(scope, planned).await
        };
        if matches!(outcome, Err(Error::Engine(engine::Error::NoRoom { .. }))) {
            // The request starts again, so it is neither counted nor charged yet.
            return outcome;
        }
        let subject = planned.subject(|| self.counters.subject(planned));
        self.counters.record(subject, scope.execution.began(), &outcome);
        record_charge(&mut scope.execution, &mut outcome);
        outcome
    }

    /// Refuses what the owner of the partitions executes, if this machine does not own them: changes of the schema and of
    /// roles, TRUNCATE, and reads of what only the owner knows.
    ///
    /// # Errors
    /// [`Error::ForOwner`]
    fn refuse_for_owner(&self, session: &SessionState, planned: &PlannedAt) -> Result<(), Error> {
        if self.engine.carrier().is_none() {
            return Ok(());
        }
        let plan = &planned.planned.plan;
        let is_of_owner = match plan {
            Plan::Truncate(_) | Plan::Ddl(_) | Plan::Explain(_) => true,
            Plan::Auth(statement) => !roles::is_list(statement),
            Plan::Select(select) => select.is_of_feed() || system::is_of_owner(&select.table),
            Plan::Modify(_) | Plan::Batch(_) => self.writes_roles(session, &planned.planned.tables),
            Plan::Use(_) | Plan::Describe(_) => false,
        };
        if is_of_owner { Err(Error::ForOwner) } else { Ok(()) }
    }

    /// Executes a statement that may change the stored roles, and reads them again.
    async fn write_roles(&self, scope: &mut RequestScope<'_>, planned: &Arc<PlannedAt>) -> Result<Answer, Error> {
        let mut outcome = self.execute_plan(scope, planned).await;
        if !matches!(outcome, Err(Error::Engine(engine::Error::NoRoom { .. }))) {
            self.reload_roles_after(&mut outcome).await;
        }
        outcome
    }

    /// Reads the roles again after a write to their tables. If that fails, the write fails too, because permissions are
    /// outdated until the roles are read.
    async fn reload_roles_after(&self, outcome: &mut Result<Answer, Error>) {
        if let Err(error) = self.reload_roles().await
            && outcome.is_ok()
        {
            *outcome = Err(error);
        }
    }

    /// Whether a client's statement may have changed the rows from which roles are read.
    fn writes_roles(&self, session: &SessionState, tables: &[Arc<Table>]) -> bool {
        self.roles.get().is_some()
            && session.user.is_some()
            && tables.iter().any(|table| table.keyspace == "system_auth")
    }

    #[expect(
        clippy::too_many_lines,
        reason = "one arm for each kind of plan, and the checks before them in their order"
    )]
    async fn execute_plan(&self, scope: &mut RequestScope<'_>, planned: &Arc<PlannedAt>) -> Result<Answer, Error> {
        let params = scope.params;
        let arranged;
        let values: &[Value] = match &params.values {
            Values::Positional(values) => values,
            Values::Named(named) => {
                let (names, values): (Vec<&str>, Vec<Value>) =
                    named.iter().map(|(name, value)| (name.as_str(), value.clone())).unzip();
                arranged = planner::arrange(&planned.planned.markers, &names, &values);
                &arranged
            }
        };
        gates::values(&planned.planned, values.len())?;
        gates::permissions(&mut scope.execution, &planned.planned.plan, scope.keyspace.as_deref())?;
        let execution = &mut scope.execution;
        gates::owned(&self.engine, &planned.planned.plan, params.consistency)?;
        match &planned.planned.plan {
            Plan::Select(plan) => {
                gates::read_plan(self.engine.guardrails(), params.consistency, plan)?;
                let is_masked = plan.selects_masked() && execution.masks(&plan.table);
                let read = plan.bind(values, execution.context(), is_masked);
                let read = read.map_err(|error| Error::unbound(error, params.consistency, None))?;
                let shape = if is_masked {
                    planned.masked_shape(&read)
                } else {
                    planned.shape(&read)
                };
                gates::sorted_whole(params, plan, &read)?;
                let mut warnings = Vec::new();
                let checked = execution.check_read(&read, params.page_size_rows, &mut warnings);
                let checked = match checked {
                    Ok(checked) => checked,
                    // Cassandra warns of aggregations only after this.
                    Err(error) => return Err(Error::from(error).warned(warnings)),
                };
                let select = BoundSelect {
                    planned,
                    read: &read,
                    shape,
                    values,
                };
                let outcome = self.select(scope, select, checked, &mut warnings).await;
                warnings.extend(plan.warning().map(str::to_owned));
                match outcome {
                    Ok(answer) => Ok(Answer { warnings, ..answer }),
                    Err(error) => Err(error.warned(warnings)),
                }
            }
            Plan::Modify(plan) => {
                let write = plan.bind(values, execution.context());
                let mut write =
                    write.map_err(|error| Error::unbound(error, params.consistency, Some(WriteKind::Simple)))?;
                if !gates::masks_refusal(execution, plan) {
                    show_values(std::slice::from_mut(&mut write));
                }
                let written = execution.write(&write).await?;
                Ok(answer_to(&write.table, written))
            }
            Plan::Batch(plan) => {
                let batch = plan.bind(values, execution.context());
                let mut batch =
                    batch.map_err(|error| Error::unbound(error, params.consistency, Some(kind_of(plan.kind))))?;
                let mut members = plan.modifications.iter();
                if !members.any(|member| gates::masks_refusal(execution, member)) {
                    show_values(&mut batch.modifications);
                }
                let written = execution.batch(&batch).await?;
                Ok(answer_of(&batch, written))
            }
            Plan::Truncate(table) => {
                planner::refuse_views(&planned.planned.plan, execution.schema())?;
                // Boxed, like the following: rare, and every request's future would be as large.
                Box::pin(execution.truncate(table)).await?;
                Ok(Answer::new(AnswerKind::Void))
            }
            Plan::Use(keyspace) => {
                execution.charge_metadata();
                Ok(Answer::new(AnswerKind::SetKeyspace(keyspace.clone())))
            }
            Plan::Ddl(statement) => Box::pin(self.change_schema(scope, statement)).await,
            Plan::Describe(statement) => {
                execution.charge_metadata();
                self.describe(scope, statement)
            }
            Plan::Explain(explained) => {
                execution.charge_metadata();
                let page_rows = params.page_size_rows;
                let explaining = explain::explain(execution, page_rows, planned, explained, values);
                Box::pin(explaining)
                    .await
                    .map_err(|error| error.at_edge(params.consistency, WriteKind::Simple))
            }
            Plan::Auth(statement) => {
                execution.charge_metadata();
                Box::pin(self.change_roles(scope.session, scope.keyspace.as_deref(), statement)).await
            }
        }
    }

    async fn select(
        &self,
        scope: &mut RequestScope<'_>,
        select: BoundSelect<'_>,
        checked: Checked<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<Answer, Error> {
        let BoundSelect {
            planned,
            read,
            shape,
            values,
        } = select;
        let params = scope.params;
        let key = PagingKey(self.engine.paging_key());
        let resume = match &params.paging_state {
            None => None,
            Some(state) if read.feed.is_some() => {
                Some(Box::new(key.open_feed(paging_state::feed_digest(read), state)?))
            }
            Some(state) => {
                let of_statement = || paging_state::statement_digest(&planned.origin.text, read, values);
                let position = key.open(paging_state::table_digest(&read.table), of_statement, state)?;
                match may_resume(read, params.page_size_rows) {
                    true => Some(Box::new(resumed(position, read)?)),
                    false => None,
                }
            }
        };
        let paging = Paging {
            resume,
            content_bytes_ahead: planned.content_bytes_ahead(),
            wants_feed_positions: params.wants_feed_positions,
        };
        let mut rows = FrameRows::default();
        let page = scope.execution.read(shape, checked, &paging, &mut rows).await?;
        planned.record_content_bytes(page.bytes);
        let metadata = planned.result.clone().unwrap_or_else(|| {
            let columns = Arc::clone(&read.selection.columns);
            Arc::new(ResultMetadata::new(&read.table.keyspace, &read.table.name, columns))
        });
        let mut answer = Answer::new(AnswerKind::Rows(Rows {
            metadata,
            row_count: page.row_count,
            content: page.memory.hold(rows.content),
            paging_state: page.position.map(|position| match &position.feed {
                Some(feed) => {
                    let table = paging_state::feed_digest(read);
                    key.seal_feed(table, position.charge_left_micros, feed)
                }
                None => key.seal(paging_state::table_digest(&read.table), &position),
            }),
        }));
        answer.feed = page.feed.filter(|_| params.wants_feed_positions).map(|page| {
            let table = paging_state::feed_digest(read);
            let records = match &answer.kind {
                AnswerKind::Rows(rows) => feed::records(&read.table, rows, &page.changes),
                _ => Vec::new(),
            };
            FeedEnd {
                records,
                states: page
                    .after_rows
                    .iter()
                    .map(|after| key.seal_feed(table, 0, after))
                    .collect(),
                is_at_end: page.is_at_end,
            }
        });
        answer.notes = page.notes;
        warnings.extend(page.warnings);
        Ok(answer)
    }

    async fn change_schema(
        &self,
        scope: &mut RequestScope<'_>,
        statement: &Arc<ast::Statement>,
    ) -> Result<Answer, Error> {
        let mut warnings = Vec::new();
        let (keyspace, schema) = (scope.keyspace.as_deref(), scope.execution.schema());
        let passed = gates::change(self.engine.guardrails(), statement, schema, keyspace, &mut warnings);
        if let Err(refused) = passed {
            // The engine charges a change when it is requested; a refusal here costs the same.
            scope.execution.charge_metadata();
            return Err(refused);
        }
        let given = ddl::with_payload(statement, |name| Some(scope.params.payload_value(name)?.as_ref()));
        let intent = DdlIntent {
            statement: given.map_or_else(|| Arc::clone(statement), Arc::new),
            session_keyspace: scope.keyspace.clone(),
            masks_columns: self.engine.guardrails().switches.data_masking,
        };
        let outcome = scope.execution.change_schema(intent).await?;
        if let Some(change) = outcome.change.as_ref().filter(|_| self.roles.get().is_some()) {
            Box::pin(self.follow_schema(scope.session, change)).await?;
        }
        let kind = outcome.change.map_or(AnswerKind::Void, AnswerKind::SchemaChange);
        let mut answer = Answer::new(kind);
        warnings.extend(outcome.warnings);
        answer.warnings = warnings;
        Ok(answer)
    }

    fn describe(&self, scope: &RequestScope<'_>, statement: &ast::Describe) -> Result<Answer, Error> {
        let keyspace = scope.keyspace.as_deref();
        let description = describe::describe(
            statement,
            keyspace,
            scope.execution.schema(),
            &self.engine.seen_now(scope.session.node),
        )
        .map_err(|error| RequestRefusal::Describe(Box::new(error)))?;
        let columns = description.columns.into_iter().map(|(name, ty)| ResultColumn {
            name: name.to_owned(),
            ty,
        });
        let (keyspace, table) = describe::RESULT_TABLE;
        let mut content = Vec::new();
        for cell in description.rows.iter().flatten() {
            put_cell(&mut content, cell.as_deref());
        }
        Ok(Answer::new(AnswerKind::Rows(Rows {
            metadata: Arc::new(ResultMetadata::new(keyspace, table, Arc::new(columns.collect()))),
            row_count: u32::try_from(description.rows.len()).unwrap_or(u32::MAX),
            content: content.into(),
            paging_state: None,
        })))
    }
}

/// Charges a request, and records that in the answer.
#[inline]
fn record_charge(execution: &mut Execution<'_>, outcome: &mut Result<Answer, Error>) {
    let mut notes = Vec::new();
    let ended = match outcome {
        Ok(answer) => Ended::Answered {
            row_bytes: answer.row_bytes(),
        },
        Err(error) => Ended::Failed {
            code: error.code().number(),
        },
    };
    let receipt = execution.charge(ended, &mut notes);
    if let Ok(answer) = outcome {
        answer.charge = receipt.charge;
        answer.notes.append(&mut notes);
    }
}

/// The kind of write of a batch in which a replica refuses values.
const fn kind_of(kind: BatchKind) -> WriteKind {
    match kind {
        BatchKind::Logged => WriteKind::Batch,
        BatchKind::Unlogged => WriteKind::UnloggedBatch,
        BatchKind::Counter => WriteKind::Counter,
    }
}

/// Where a read resumes. As in Cassandra, a position that a read of one partition issued is of no use to others: a read of several
/// partitions ends at once, and one of all is refused, where Cassandra fails with a server error.
fn resumed(position: Position, read: &Read) -> Result<Position, RequestRefusal> {
    match &read.partitions {
        Partitions::Ring(_) if position.of_one_partition => Err(RequestRefusal::PagingState),
        // No partition has this key, so all are passed.
        Partitions::Keys(keys) if position.of_one_partition && keys.len() > 1 => Ok(Position {
            partition_key: Bytes::new(),
            clustering: None,
            ..position
        }),
        Partitions::Keys(_) | Partitions::Ring(_) => Ok(position),
    }
}

/// Whether a read resumes at its paging state. As in Cassandra a read that is not paged starts over: one without a page
/// size, one whose LIMIT fits into a page, and one that sorts by a vector.
fn may_resume(read: &Read, page_rows: Option<u32>) -> bool {
    let is_grouped = read.group_by.is_some() || !read.selection.aggregates.is_empty();
    page_rows.is_some_and(|page| {
        page > 0 && read.nearest.is_none() && (is_grouped || read.limit_rows.is_none_or(|limit| limit > page))
    })
}
