//! The whole database behind one facade: what the server calls, and what tests call without one.

mod backups;
mod options;
mod reads;
mod shown;
mod upkeep;
mod writes;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use grammar::ast;
use uuid::Uuid;

use super::answer::{Answer, AnswerKind, ChangeKind, QueryParams, SessionState, Values};
use super::catalog::{Catalog, Snapshot};
use super::counts::Counts;
use super::draws::Draws;
use super::error::Error;
use super::explain::Explainer;
use super::gates::{self, Gates};
use super::ledger::Ledger;
use super::levels;
use super::logical::LogicalPartitions;
use super::plans::{PlanCache, PlannedAt, Statement};
use super::probe::Prober;
use super::receipt::{Ended, Executed};
use super::request::Request;
use super::watch::Watch;
use super::write::WriteRoom;
use crate::clock::Clock;
use crate::command::{Batch, BatchKind, Value};
use crate::consistency::WriteKind;
use crate::functions::{Context, Timeuuids};
use crate::guardrails::Guardrails;
use crate::partition::{Consistency, Nodes, Stores};
use crate::planner::ddl::{self, DdlIntent};
use crate::planner::{self, Plan};
use crate::profile::Profile;
use crate::profile::Rules;
use crate::schema::node::NodeInfo;
use crate::schema::{Schema, StorageId, system};
use crate::tasks::Tasks;
use crate::throughput::Charges;
use crate::views::live::Live;

pub use self::options::{ClockRules, Options};

/// How long background work may take to end after the stores are closed, unless the caller says so.
const CLOSE_WITHIN: Duration = Duration::from_secs(10);

/// What only the server knows, asked for when a view shows it.
pub type LiveSource = Box<dyn Fn() -> Live + Send + Sync>;

/// One statement of a batch.
#[derive(Clone, Debug)]
pub enum Member {
    /// CQL.
    Text(String),
    /// A prepared statement.
    Prepared(Arc<Statement>),
}

/// A database: its services, and the front end that executes statements with them.
pub struct Database {
    pub(super) catalog: Arc<Catalog>,
    stores: Stores,
    writes: WriteRoom,
    plans: PlanCache,
    clock: Clock,
    /// The virtual nodes, each as its clients see it in the system tables.
    seen: Vec<NodeInfo>,
    nodes: Arc<Nodes>,
    live: OnceLock<LiveSource>,
    page_bytes_max: usize,
    row_cache_bytes_max: usize,
    watch: Watch,
    prober: Prober,
    guardrails: Guardrails,
    ledger: Ledger,
    counts: Counts,
    rules: Rules,
    timeuuids: Arc<Timeuuids>,
    draws: Arc<Draws>,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Database")
            .field("node", self.node())
            .finish_non_exhaustive()
    }
}

impl Database {
    /// Opens the database at a URL; makes one where there is none.
    ///
    /// # Errors
    /// When the store cannot be opened or its catalog cannot be read.
    pub async fn open(options: Options) -> Result<Self, Error> {
        options.open().await
    }

    /// Makes everything durable, closes the stores and ends all background work. Requests after it fail.
    ///
    /// # Errors
    /// When the medium fails.
    pub async fn close(&self) -> Result<(), Error> {
        self.close_within(CLOSE_WITHIN).await
    }

    /// As [`Database::close`]. Background work that has not ended when the time has passed since the stores were closed is aborted.
    ///
    /// # Errors
    /// When the medium fails.
    pub async fn close_within(&self, within: Duration) -> Result<(), Error> {
        self.tasks().begin_stop();
        let closed = self.stores.close().await;
        // Joined last: most of it ends because its store is closed.
        self.tasks().join(within).await;
        closed.map_err(|error| Error::Server(error.to_string()))
    }

    /// Runs background work, and joins it when the database is closed.
    #[must_use]
    pub fn tasks(&self) -> &Tasks {
        &self.catalog.tasks
    }

    /// Sets the source of what only the server knows, such as connected clients. The first call counts.
    pub fn set_live_source(&self, source: LiveSource) {
        // A second source would be a second server on one database, which does not happen.
        drop(self.live.set(source));
    }

    /// What only the server knows, now.
    fn ask_server(&self) -> Live {
        self.live.get().map(|live| live()).unwrap_or_default()
    }

    /// What is defined now.
    #[must_use]
    pub fn schema(&self) -> Arc<Schema> {
        Arc::clone(&self.catalog.load().schema)
    }

    /// The version of what is defined now: changes with every change of it, and with nothing else.
    #[must_use]
    pub fn schema_version(&self) -> Uuid {
        self.catalog.load().schema.version
    }

    /// The compatibility profile.
    #[must_use]
    pub const fn profile(&self) -> Profile {
        self.rules.profile
    }

    /// The virtual nodes, and the fault plan in force.
    #[must_use]
    pub const fn nodes(&self) -> &Arc<Nodes> {
        &self.nodes
    }

    /// The catalog at this moment.
    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.catalog.load())
    }

    #[cfg(test)]
    pub(super) const fn counts_mut(&mut self) -> &mut Counts {
        &mut self.counts
    }

    fn gates(&self) -> Gates<'_> {
        Gates {
            catalog: &self.catalog,
            limits: &self.writes.limits,
            guardrails: &self.guardrails,
            rules: &self.rules,
            nodes: &self.nodes,
            admission: &self.ledger.admission,
        }
    }

    /// This node; of several virtual ones the first.
    #[must_use]
    pub fn node(&self) -> &NodeInfo {
        self.seen_by(0)
    }

    /// A virtual node, from 0, as its clients see it.
    #[expect(clippy::expect_used, reason = "there is at least one")]
    fn seen_by(&self, node: usize) -> &NodeInfo {
        let seen = self.seen.get(node).or_else(|| self.seen.first());
        seen.expect("a database has a node")
    }

    /// Refuses the keyspace that a request names for its unqualified tables if there is none. That of a session may be gone meanwhile:
    /// then only statements with unqualified tables fail.
    ///
    /// # Errors
    /// [`Error::Invalid`] in Cassandra's words.
    pub fn check_keyspace(&self, keyspace: &str) -> Result<(), Error> {
        gates::expect_keyspace(&self.catalog.load().schema, keyspace)
    }

    /// Plans a text in a keyspace.
    ///
    /// # Errors
    /// When the text is no CQL or makes no sense.
    pub fn prepare(&self, keyspace: Option<&str>, text: &str) -> Result<Statement, Error> {
        let began = self.watch.begin();
        let prepared = self.plan_to_keep(keyspace, text);
        self.watch.note_prepare(began, &prepared);
        prepared
    }

    fn plan_to_keep(&self, keyspace: Option<&str>, text: &str) -> Result<Statement, Error> {
        let snapshot = self.catalog.load();
        let planned = PlannedAt::new(text.into(), keyspace, &snapshot).map_err(|error| self.reworded(error))?;
        Ok(Statement::new(keyspace.map(Arc::from), planned))
    }

    /// A refusal that advises what is switched off says that instead.
    fn reworded(&self, error: Error) -> Error {
        match (&error, self.guardrails.filtering_is_off()) {
            (Error::NeedsFiltering, Some(instead)) => Error::Invalid(instead.to_owned()),
            _ => error,
        }
    }

    /// Runs a text.
    ///
    /// # Errors
    /// Whatever keeps it from being carried out.
    pub async fn query(&self, session: &SessionState, text: &str, params: &QueryParams) -> Result<Answer, Error> {
        self.find_out().await;
        let mut request = self.request(session, params)?;
        let planned = self.plans.plan(request.keyspace.as_ref(), text, &request.snapshot);
        let planned = planned.map_err(|error| self.reworded(error));
        if planned.is_err() {
            self.watch.note_unplanned(request.began, &planned);
        }
        self.run(&mut request, &planned?).await
    }

    /// Runs a prepared statement.
    ///
    /// # Errors
    /// Whatever keeps it from being carried out.
    pub async fn execute(
        &self,
        session: &SessionState,
        statement: &Statement,
        params: &QueryParams,
    ) -> Result<Answer, Error> {
        self.find_out().await;
        let mut request = self.request(session, params)?;
        let planned = statement.at(&request.snapshot)?;
        if let Values::Positional(values) = &params.values {
            gates::prepared_values(&planned.planned, values.len())?;
        }
        self.watch.note_prepared();
        self.run(&mut request, &planned).await
    }

    /// Runs a batch of statements, each with its values.
    ///
    /// # Errors
    /// Whatever keeps it from being carried out; then none of it was.
    pub async fn batch(
        &self,
        session: &SessionState,
        kind: BatchKind,
        members: Vec<(Member, Vec<Value>)>,
        params: &QueryParams,
    ) -> Result<Answer, Error> {
        self.find_out().await;
        let request = self.request(session, params)?;
        let batch = self.bind_batch(&request, kind, members);
        if batch.is_err() {
            self.watch.note_unplanned(request.began, &batch);
        }
        let batch = batch?;
        let subject = self.watch.batch_subject(&batch);
        let mut charges = self.ledger.charges(params.consistency);
        let mut outcome = self.run_batch(&request, &batch, &mut charges).await;
        if let Err(error) = outcome {
            let level = levels::write(&self.rules, request.consistency());
            outcome = Err(error.at_edge(level, writes::batch_write(batch.kind, batch.conditional)));
        }
        self.watch.note(&subject, request.began, &outcome);
        self.settle(&request, Executed::Batch(&batch), &mut charges, &mut outcome);
        outcome
    }

    fn bind_batch(
        &self,
        request: &Request<'_>,
        kind: BatchKind,
        members: Vec<(Member, Vec<Value>)>,
    ) -> Result<Batch, Error> {
        self.rules.batch(kind)?;
        // As in Cassandra all are parsed and counted before one is looked at further, and all is judged before a value is.
        let mut planned = Vec::with_capacity(members.len());
        for (member, values) in members {
            let member = match member {
                Member::Text(text) => self.plans.plan(request.keyspace.as_ref(), &text, &request.snapshot)?,
                Member::Prepared(statement) => statement.at(&request.snapshot)?,
            };
            gates::member_values(&member.planned, values.len())?;
            planned.push((member, values));
        }
        let mut plans = Vec::with_capacity(planned.len());
        for (member, _) in &planned {
            let Plan::Modify(plan) = &member.planned.plan else {
                return Err(Error::Invalid(
                    "Invalid statement in batch: only UPDATE, INSERT and DELETE statements are allowed.".to_owned(),
                ));
            };
            plans.push(Arc::clone(plan));
        }
        planner::batch::check(kind, &plans, false)?;
        gates::batch_permissions(&plans)?;
        let mut bound = Vec::with_capacity(plans.len());
        for (plan, (_, values)) in plans.iter().zip(&planned) {
            bound.push(plan.bind(values, &request.context)?);
        }
        Ok(planner::batch::finish(kind, &plans, bound, None)?)
    }

    /// Where a change of the catalog failed and may have been done, asks the store first which.
    async fn find_out(&self) {
        if self.catalog.is_unsure() {
            // Boxed, since it is rare and would make every request's future larger. What is read is right by either catalog.
            let found_out = Box::pin(self.catalog.find_out()).await;
            drop(found_out);
        }
    }

    fn request<'a>(&self, session: &'a SessionState, params: &'a QueryParams) -> Result<Request<'a>, Error> {
        let snapshot = Arc::clone(&self.catalog.load());
        gates::names(&snapshot.schema, params)?;
        // One reading of the clock for all that the request needs of it.
        let now_micros = self.writes.clock.now_micros();
        Ok(Request {
            snapshot,
            keyspace: params.keyspace.clone().or_else(|| session.keyspace.clone()),
            session,
            params,
            now_seconds: params
                .now_seconds
                .map_or_else(|| now_micros.div_euclid(1_000_000), i64::from),
            at_micros: now_micros,
            began: self.watch.begin(),
            context: self.context(now_micros),
            claim: OnceLock::new(),
        })
    }

    /// Time and chance for the functions of one request.
    fn context(&self, now_micros: i64) -> Context {
        Context::new(now_micros, Arc::clone(&self.timeuuids), self.draws.generator().u64(..))
    }

    async fn run(&self, request: &mut Request<'_>, planned: &Arc<PlannedAt>) -> Result<Answer, Error> {
        if matches!(planned.planned.plan, Plan::Ddl(_)) {
            request.drop_partition_map();
        }
        let mut charges = self.ledger.charges(request.consistency());
        let mut outcome = self.carry_out(request, planned, &mut charges).await;
        if let Err(error) = outcome {
            if matches!(error, Error::NoRoom { .. }) {
                // It begins again, so it is neither counted nor charged yet.
                return Err(error);
            }
            outcome = Err(self.at_edge(error, request, &planned.planned.plan));
        }
        let subject = planned.subject(|| self.watch.subject(planned));
        self.watch.note(subject, request.began, &outcome);
        let executed = Executed::Statement(&planned.origin);
        self.settle(request, executed, &mut charges, &mut outcome);
        outcome
    }

    /// The error of a statement as its client sees it.
    #[cold]
    fn at_edge(&self, error: Error, request: &Request<'_>, plan: &Plan) -> Error {
        let asked = request.consistency();
        let (level, kind) = match plan {
            Plan::Select(plan) => {
                let is_system = system::is_local(&plan.table.keyspace);
                let level = levels::read(&self.rules, asked, is_system);
                (level.unwrap_or(asked), WriteKind::Simple)
            }
            Plan::Modify(plan) => (
                levels::write(&self.rules, asked),
                writes::one_write(plan.is_conditional(), plan.table.is_counter),
            ),
            Plan::Batch(plan) => {
                let is_conditional = plan.modifications.iter().any(|member| member.is_conditional());
                (
                    levels::write(&self.rules, asked),
                    writes::batch_write(plan.kind, is_conditional),
                )
            }
            // As Cassandra does them: on every replica.
            Plan::Truncate(_) | Plan::Ddl(_) => (Consistency::All, WriteKind::Simple),
            Plan::Use(_) | Plan::Describe(_) | Plan::Explain(_) | Plan::Auth(_) => (asked, WriteKind::Simple),
        };
        error.at_edge(level, kind)
    }

    /// Settles a request, and puts its charge into its answer.
    #[inline]
    fn settle(
        &self,
        request: &Request<'_>,
        executed: Executed<'_>,
        charges: &mut Charges,
        outcome: &mut Result<Answer, Error>,
    ) {
        let mut notes = Vec::new();
        let ended = match outcome {
            Ok(answer) => Ended::Answered {
                row_bytes: answer.row_bytes(),
            },
            Err(error) => Ended::Failed(error),
        };
        let receipt = self.ledger.settle(request, executed, charges, ended, &mut notes);
        if let Ok(answer) = outcome {
            answer.charge = receipt.charge;
            answer.notes.append(&mut notes);
        }
    }

    async fn carry_out(
        &self,
        request: &Request<'_>,
        planned: &Arc<PlannedAt>,
        charges: &mut Charges,
    ) -> Result<Answer, Error> {
        let arranged;
        let values: &[Value] = match &request.params.values {
            Values::Positional(values) => values,
            Values::Named(named) => {
                let (names, values): (Vec<&str>, Vec<Value>) =
                    named.iter().map(|(name, value)| (name.as_str(), value.clone())).unzip();
                arranged = planner::arrange(&planned.planned.markers, &names, &values);
                &arranged
            }
        };
        gates::values(&planned.planned, values.len())?;
        let gates = self.gates();
        gates::permissions(request.session, &planned.planned.plan)?;
        match &planned.planned.plan {
            Plan::Select(plan) => {
                gates::read_plan(gates, request, plan)?;
                let bound = plan.bind(values, &request.context)?;
                gates::sorted_whole(request, plan, &bound)?;
                let mut answer = self.select(request, planned, &bound, values, charges).await?;
                answer.warnings.extend(plan.warning().map(str::to_owned));
                Ok(answer)
            }
            Plan::Modify(plan) => {
                let bound = plan.bind(values, &request.context)?;
                self.modify(request, &bound, charges).await
            }
            Plan::Batch(plan) => {
                let bound = plan.bind(values, &request.context)?;
                self.run_batch(request, &bound, charges).await
            }
            Plan::Truncate(table) => {
                gates::truncate(gates)?;
                gates::admit_truncate(gates, request, table).await?;
                charges.metadata();
                self.catalog.truncate(&table.keyspace, &table.name).await?;
                self.logical().forget_dropped(&self.schema(), self.stores.main()).await;
                Ok(Answer::new(AnswerKind::Void))
            }
            Plan::Use(keyspace) => {
                charges.metadata();
                Ok(Answer::new(AnswerKind::SetKeyspace(keyspace.clone())))
            }
            plan @ Plan::Ddl(statement) => {
                charges.metadata();
                let mut warnings = Vec::new();
                gates::change(gates, request, plan, &mut warnings)?;
                let mut answer = self.change_schema(request, statement).await?;
                warnings.append(&mut answer.warnings);
                answer.warnings = warnings;
                Ok(answer)
            }
            Plan::Describe(statement) => {
                charges.metadata();
                self.describe(request, statement)
            }
            Plan::Explain(explained) => {
                charges.metadata();
                let explainer = Explainer {
                    ledger: &self.ledger,
                    indexes: &self.catalog.indexes,
                    page_bytes_max: self.page_bytes_max,
                    tombstones: self.guardrails.tombstones,
                };
                explainer.explain(request, planned, explained, values).await
            }
            // Refused by `gates::permissions`.
            Plan::Auth(_) => Err(Error::Server("a statement about roles was permitted".to_owned())),
        }
    }

    // The schema.

    async fn change_schema(&self, request: &Request<'_>, statement: &Arc<ast::Statement>) -> Result<Answer, Error> {
        let given = ddl::with_payload(statement, |name| Some(request.params.payload_value(name)?.as_ref()));
        let intent = DdlIntent {
            statement: given.map_or_else(|| Arc::clone(statement), Arc::new),
            session_keyspace: request.keyspace.clone(),
        };
        gates::admit_change(self.gates(), request).await?;
        let outcome = self.catalog.change(intent).await?;
        // What is kept for each table is gone through only when one may have gone.
        if outcome
            .change
            .as_ref()
            .is_some_and(|change| change.kind == ChangeKind::Dropped)
        {
            self.forget_dropped_figures();
            self.logical().forget_dropped(&self.schema(), self.stores.main()).await;
        }
        let kind = outcome.change.map_or(AnswerKind::Void, AnswerKind::SchemaChange);
        let mut answer = Answer::new(kind);
        answer.warnings = outcome.warnings;
        Ok(answer)
    }

    /// Forgets the figures of dropped tables, once there are more of these than of tables.
    fn forget_dropped_figures(&self) {
        let schema = self.schema();
        let stored: BTreeSet<StorageId> = schema.stored_tables().map(|table| table.storage_id).collect();
        self.ledger.meter.spent().keep(|id| stored.contains(&id));
        let statements = &self.watch.statements;
        if statements.tables_known() > stored.len() {
            let there: BTreeSet<u128> = schema.stored_tables().map(|table| table.id.as_u128()).collect();
            statements.keep(|id| there.contains(&id));
        }
    }

    fn logical(&self) -> &Arc<LogicalPartitions> {
        &self.writes.logical
    }
}
