//! The whole database behind one facade: what the server calls, and what tests call without one.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use grammar::ast;
use uuid::Uuid;

use super::answer::{Answer, AnswerKind, BatchKind, QueryParams, ResultMetadata, Rows, SessionState, Values};
use super::catalog::{Catalog, Snapshot};
use super::error::Error;
use super::figures::Watch;
use super::limits::SizeLimits;
use super::logical::LogicalPartitions;
use super::offers::{Offers, ThroughputRules};
use super::paging::{self, StatementDigest};
use super::plans::{PlanCache, PlannedAt, Statement};
use super::read::sink::{Limits, Page, Sink};
use super::read::{source, virtual_rows};
use super::request_log::RequestLog;
use super::settle::Done;
use super::spent::Spent;
use super::throughput::{Asked, Concerned, Gate, Work};
use super::value;
use super::write::clock::{Ballots, ListKeys, WriteClock};
use super::write::{Routed, WriteRequest, WriteRoom, size};
use super::{index, levels};
use crate::clock::Clock;
use crate::functions::{Context, Timeuuids};
use crate::mutant::{self, Mutant};
use crate::partition::store::{self, Store, Url};
use crate::partition::{Consistency, HotKeys, Nodes, Stripes, TablePartitions};
use crate::planner::bound::{
    BoundBatch, BoundCondition, BoundModification, BoundPartitions, BoundRows, BoundSelect, ResultColumn, Value,
};
use crate::planner::guardrails::Level;
use crate::planner::rules::{self, Rules};
use crate::planner::{self, Guardrails, Plan, Threshold, ddl};
use crate::profile::Profile;
use crate::schema::node::{Live, NodeInfo};
use crate::schema::{Schema, StorageId, Table, describe, system, views};
use crate::throughput::{Account, Charges, Coefficients, PartitionRef};
use crate::token::Token;

/// How a database is opened.
#[derive(Clone)]
pub struct Options {
    /// Where data is kept.
    pub url: Url,
    /// Settings of the store.
    pub store: store::Options,
    /// Time.
    pub clock: Clock,
    /// Where all randomness comes from.
    pub seed: u64,
    /// This node and its peers, as the system tables tell; its `host_id` is taken from the store, and those of the other virtual nodes
    /// follow from it.
    pub node: NodeInfo,
    /// Bytes of rows after which a page ends, if the client asked for pages at all.
    pub page_bytes_max: usize,
    /// Amounts that are warned of or refused.
    pub guardrails: Guardrails,
    /// What operations cost, in request units.
    pub prices: Coefficients,
    /// How large things may be.
    pub limits: SizeLimits,
    /// Statements that the request log keeps; 0: none.
    pub request_log_max: usize,
    /// Whom to behave as.
    pub profile: Profile,
    /// How throughput is dealt with.
    pub throughput: ThroughputRules,
    /// The account that it stands for, in the profile `cosmos`.
    pub account: rules::Account,
}

impl Options {
    /// Bytes after which a page ends unless set otherwise: enough that a page of 5,000 small rows is whole, little enough that
    /// many clients' pages fit into memory.
    pub const PAGE_BYTES_MAX: usize = 1024 * 1024;
}

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

/// A database: schema, stores and everything that answers statements.
pub struct Database {
    catalog: Arc<Catalog>,
    store: Store,
    writes: WriteRoom,
    plans: PlanCache,
    /// What the system tables show to clients of each virtual node.
    seen: Vec<NodeInfo>,
    pub(super) nodes: Arc<Nodes>,
    live: OnceLock<LiveSource>,
    page_bytes_max: usize,
    row_cache_bytes_max: usize,
    watch: Watch,
    /// Held by the probe that runs.
    probing: tokio::sync::Mutex<()>,
    guardrails: Guardrails,
    prices: Coefficients,
    spent: Spent,
    request_log: RequestLog,
    pub(super) rules: Rules,
    /// Which partition keys are asked most.
    hot: HotKeys,
    timeuuids: Arc<Timeuuids>,
    /// The next request's number, where its own randomness begins.
    seeds: AtomicU64,
    /// Who may go on.
    gate: Gate,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Database")
            .field("node", self.node())
            .finish_non_exhaustive()
    }
}

/// A request as the steps below hand it on.
pub(super) struct Request<'a> {
    snapshot: Arc<Snapshot>,
    keyspace: Option<Arc<str>>,
    session: &'a SessionState,
    params: &'a QueryParams,
    now_seconds: i64,
    at_micros: i64,
    began: Duration,
    context: Context,
    /// What became of asking for request units; empty: nobody was asked.
    pub(super) asked: OnceLock<Asked>,
}

impl Request<'_> {
    pub(super) const fn consistency(&self) -> Consistency {
        self.params.consistency
    }

    /// The table or view of this number in the store, as the request sees it.
    pub(super) fn table(&self, id: StorageId) -> Option<&Arc<Table>> {
        let keyspaces = self.snapshot.schema.keyspaces.values();
        let mut tables = keyspaces.flat_map(|keyspace| keyspace.all_tables());
        tables.find(|table| table.storage_id == id)
    }

    /// Who pays for a physical partition; `None`: nobody.
    pub(super) fn account(&self, partition: PartitionRef) -> Option<&Arc<Account>> {
        let partitions = self.snapshot.partitions_of(partition.table)?;
        partitions.budget()?.account(partition.partition)
    }
}

impl Request<'_> {
    /// Whether somebody wants to be told of the way.
    pub(super) const fn is_traced(&self) -> bool {
        self.params.trace.is_some()
    }

    /// Where the rows of the table of this number were when the request began.
    pub(super) fn list(&self, table: StorageId) -> Option<&TablePartitions> {
        self.snapshot.partitions_of(table)
    }

    /// What goes with it.
    pub(super) const fn params(&self) -> &QueryParams {
        self.params
    }

    /// The catalog as it sees it.
    pub(super) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Time and chance for its functions.
    pub(super) const fn context(&self) -> &Context {
        &self.context
    }

    /// The moment against which expiry is judged.
    pub(super) const fn now_seconds(&self) -> i64 {
        self.now_seconds
    }

    /// Whose it is.
    pub(super) const fn session(&self) -> &SessionState {
        self.session
    }

    /// When it began, by the monotonic clock.
    pub(super) const fn began(&self) -> Duration {
        self.began
    }

    /// The virtual node that it came to, from 0.
    pub(super) const fn node(&self) -> usize {
        self.session.node
    }

    /// When it began, µs since 1970-01-01 UTC.
    pub(super) const fn at_micros(&self) -> i64 {
        self.at_micros
    }
}

impl Database {
    /// Opens the database at a URL; makes one where there is none.
    ///
    /// # Errors
    /// When the store cannot be opened or its catalog cannot be read.
    pub async fn open(options: Options) -> Result<Self, Error> {
        let opened = Store::open(&options.url, &options.store, options.clock.clone()).await;
        let store = opened.map_err(|error| Error::Server(error.to_string()))?;
        let mut random = fastrand::Rng::with_seed(options.seed);
        let timeuuids = Arc::new(Timeuuids::new(random.u64(..)));
        let seeds = AtomicU64::new(random.u64(..));
        let list_keys = ListKeys::new(options.clock.clone(), random.u32(..));
        let mut node = options.node;
        let nodes = Arc::new(Nodes::new(node.virtual_nodes, options.clock.clone()));
        let data_centers = data_centers(&node);
        let watch = Watch::new(options.clock.clone());
        let gate = Gate::new(options.throughput, &options.clock);
        let offers = Offers::new(options.throughput, options.clock.clone());
        let rules = Rules {
            profile: options.profile,
            account: options.account,
        };
        let catalog = Catalog::open(
            store.clone(),
            options.clock.clone(),
            random,
            data_centers,
            offers,
            rules,
        )
        .await?;
        node.host_id = catalog.host_id;
        let ballots = Ballots::new(store.clone(), catalog.last_ballot);
        let logical = LogicalPartitions::new(&options.limits, options.clock.clone(), catalog.logical.clone());
        node.name_virtual_nodes();
        Ok(Self {
            catalog: Arc::new(catalog),
            store,
            writes: WriteRoom {
                clock: WriteClock::new(options.clock),
                ballots,
                list_keys,
                stripes: Stripes::default(),
                limits: options.limits,
                logical: Arc::new(logical),
                nodes: Arc::clone(&nodes),
            },
            plans: PlanCache::default(),
            seen: (0..nodes.count()).map(|place| node.seen_from(place)).collect(),
            nodes,
            live: OnceLock::new(),
            page_bytes_max: options.page_bytes_max,
            row_cache_bytes_max: options.store.row_cache_bytes_max,
            watch,
            probing: tokio::sync::Mutex::default(),
            guardrails: options.guardrails,
            prices: options.prices,
            spent: Spent::default(),
            request_log: RequestLog::new(options.request_log_max),
            rules,
            hot: HotKeys::default(),
            timeuuids,
            seeds,
            gate,
        })
    }

    /// Makes everything durable and closes the store. Requests after it fail.
    ///
    /// # Errors
    /// When the medium fails.
    pub async fn close(&self) -> Result<(), Error> {
        self.store
            .close()
            .await
            .map_err(|error| Error::Server(error.to_string()))
    }

    /// Who is asked for what changes from moment to moment; the first call counts.
    pub fn set_live_source(&self, source: LiveSource) {
        // A second source would be a second server on one database, which nobody makes.
        drop(self.live.set(source));
    }

    /// What only the server knows, now.
    pub(super) fn ask_server(&self) -> Live {
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

    /// The store, and the time by which its contents are judged, for those who clean up.
    pub(super) fn store_now(&self) -> (&Store, i64) {
        (&self.store, self.writes.clock.now_seconds())
    }

    /// What is defined, where it is, and who changes it.
    pub(super) const fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// How far each index is.
    pub(super) fn indexes(&self) -> &index::Indexes {
        &self.catalog.indexes
    }

    /// Whom to behave as.
    #[must_use]
    pub const fn profile(&self) -> Profile {
        self.rules.profile
    }

    /// What its profile and its account allow.
    pub(super) const fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Which partition keys are asked most.
    pub(super) const fn hot(&self) -> &HotKeys {
        &self.hot
    }

    /// How large logical partitions are.
    pub(super) fn logical(&self) -> &Arc<LogicalPartitions> {
        &self.writes.logical
    }

    /// The store, and time.
    pub(super) const fn store_and_clock(&self) -> (&Store, &Clock) {
        (&self.store, self.watch.clock())
    }

    /// Who counts statements.
    pub(super) const fn watch(&self) -> &Watch {
        &self.watch
    }

    /// The catalog at this moment.
    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.catalog.load())
    }

    /// What operations cost.
    pub(super) const fn prices(&self) -> &Coefficients {
        &self.prices
    }

    /// What was charged since the start.
    pub(super) const fn spent(&self) -> &Spent {
        &self.spent
    }

    /// The last statements.
    pub(super) const fn request_log(&self) -> &RequestLog {
        &self.request_log
    }

    /// Bytes of rows after which a page ends.
    pub(super) const fn page_bytes_max(&self) -> usize {
        self.page_bytes_max
    }

    /// Tombstones that are warned of, and refused.
    pub(super) const fn tombstones(&self) -> Threshold {
        self.guardrails.tombstones
    }

    /// Held by the probe that runs.
    pub(super) const fn probing(&self) -> &tokio::sync::Mutex<()> {
        &self.probing
    }

    /// Bytes that the row cache may take.
    pub(super) const fn row_cache_bytes_max(&self) -> usize {
        self.row_cache_bytes_max
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

    /// The address of a virtual node, from 0.
    pub(super) fn node_address(&self, node: usize) -> std::net::IpAddr {
        self.seen_by(node).native_address
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
        if let Some(keyspace) = keyspace
            && !snapshot.schema.keyspaces.contains_key(keyspace)
        {
            return Err(Error::Invalid(format!("Keyspace '{keyspace}' does not exist")));
        }
        let planned = PlannedAt::new(text.into(), keyspace, &snapshot)?;
        Ok(Statement::new(keyspace.map(Arc::from), planned))
    }

    /// Runs a text.
    ///
    /// # Errors
    /// Whatever keeps it from being carried out.
    pub async fn query(&self, session: &SessionState, text: &str, params: &QueryParams) -> Result<Answer, Error> {
        self.find_out().await;
        let request = self.request(session, params)?;
        let planned = self.plans.plan(request.keyspace.as_ref(), text, &request.snapshot);
        if planned.is_err() {
            self.watch.note_unplanned(request.began, &planned);
        }
        self.run(&request, &planned?).await
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
        let request = self.request(session, params)?;
        let planned = statement.at(&request.snapshot)?;
        if let Values::Positional(values) = &params.values {
            expect_values("there", planned.planned.markers.len(), values.len())?;
        }
        self.watch.note_prepared();
        self.run(&request, &planned).await
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
        let mut charges = self.charges(params.consistency);
        let outcome = self.run_batch(&request, &batch, &mut charges).await;
        self.watch.note(&subject, request.began, &outcome);
        self.settle(&request, Done::Batch(&batch), &charges, outcome)
    }

    fn bind_batch(
        &self,
        request: &Request<'_>,
        kind: BatchKind,
        members: Vec<(Member, Vec<Value>)>,
    ) -> Result<BoundBatch, Error> {
        self.rules.batch(kind)?;
        let mut plans = Vec::with_capacity(members.len());
        let mut bound = Vec::with_capacity(members.len());
        for (member, values) in members {
            let planned = match member {
                Member::Text(text) => self.plans.plan(request.keyspace.as_ref(), &text, &request.snapshot)?,
                Member::Prepared(statement) => statement.at(&request.snapshot)?,
            };
            let Plan::Modify(plan) = &planned.planned.plan else {
                return Err(Error::Invalid(
                    "Invalid statement in batch: only UPDATE, INSERT and DELETE statements are allowed.".to_owned(),
                ));
            };
            expect_values("There", planned.planned.markers.len(), values.len())?;
            bound.push(plan.bind(&values, &request.context)?);
            plans.push(Arc::clone(plan));
        }
        planner::batch::check(kind, &plans, false)?;
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
        if let Some(keyspace) = &params.keyspace
            && !snapshot.schema.keyspaces.contains_key(keyspace.as_ref())
        {
            return Err(Error::Invalid(format!("Keyspace '{keyspace}' does not exist")));
        }
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
            asked: OnceLock::new(),
        })
    }

    /// Time and chance for the functions of one request.
    fn context(&self, now_micros: i64) -> Context {
        Context::new(now_micros, Arc::clone(&self.timeuuids), self.generator().u64(..))
    }

    /// A generator that nobody else has.
    fn generator(&self) -> fastrand::Rng {
        // Neighbouring numbers must not give overlapping sequences, so each seeds a generator of its own.
        fastrand::Rng::with_seed(self.seeds.fetch_add(1, Ordering::Relaxed))
    }

    /// A random number.
    pub(super) fn draw(&self) -> u128 {
        self.generator().u128(..)
    }

    /// Who may go on.
    pub(super) const fn gate(&self) -> &Gate {
        &self.gate
    }

    async fn run(&self, request: &Request<'_>, planned: &Arc<PlannedAt>) -> Result<Answer, Error> {
        let mut charges = self.charges(request.consistency());
        let outcome = self.carry_out(request, planned, &mut charges).await;
        let subject = planned.subject(|| self.watch.subject(planned));
        self.watch.note(subject, request.began, &outcome);
        self.settle(request, Done::Statement(planned), &charges, outcome)
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
        planned.planned.check_values(values.len())?;
        match &planned.planned.plan {
            Plan::Select(plan) => {
                if request.params.consistency == Consistency::Any {
                    return Err(Error::Invalid(
                        "ANY ConsistencyLevel is only supported for writes".to_owned(),
                    ));
                }
                let bound = plan.bind(values, &request.context)?;
                let pages = request.params.page_size_rows.is_some_and(|page| {
                    page > 0 && (plan.is_aggregate() || bound.partitions != BoundPartitions::Keys(Vec::new()))
                });
                if pages && plan.sorts_partitions() {
                    return Err(Error::Invalid(
                        "Cannot page queries with both ORDER BY and a IN restriction on the partition key; you must either \
                         remove the ORDER BY or the IN and sort client side, or disable paging for this query"
                            .to_owned(),
                    ));
                }
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
                refuse_system(&table.keyspace)?;
                if let Ok(partitions) = request.snapshot.partitions(table) {
                    self.admit_truncate(table, partitions)?;
                }
                charges.metadata();
                self.catalog.truncate(&table.keyspace, &table.name).await?;
                self.forget_logical_partitions().await;
                Ok(Answer::new(AnswerKind::Void))
            }
            Plan::Use(keyspace) => {
                charges.metadata();
                Ok(Answer::new(AnswerKind::SetKeyspace(keyspace.clone())))
            }
            Plan::Ddl(statement) => {
                charges.metadata();
                self.change_schema(request, statement).await
            }
            Plan::Describe(statement) => {
                charges.metadata();
                self.describe(request, statement)
            }
            Plan::Explain(explained) => {
                charges.metadata();
                self.explain(request, planned, explained, values).await
            }
            Plan::Auth(_) => Err(refuse_auth(request.session)),
        }
    }

    // Reads.

    async fn select(
        &self,
        request: &Request<'_>,
        planned: &PlannedAt,
        select: &BoundSelect,
        values: &[Value],
        charges: &mut Charges,
    ) -> Result<Answer, Error> {
        let params = request.params;
        let is_system = system::is_local(&select.table.keyspace);
        let consistency = levels::read(&self.rules, params.consistency, is_system)?;
        let shape = planned.shape(select);
        let is_one_group = !select.selection.aggregates.is_empty() && select.group_by.is_none();
        let page_rows = params.page_size_rows.filter(|rows| *rows > 0 && !is_one_group);
        let digest = || statement_digest(planned, select, values);
        let resume = match &params.paging_state {
            Some(state) if page_rows.is_some() => Some(self.catalog.paging_key.open(digest(), state)?),
            _ => None,
        };
        let mut warnings = Vec::new();
        self.guardrails.select(select, page_rows, &mut warnings)?;
        let is_paged = page_rows.is_some_and(|rows| select.limit_rows.is_none_or(|limit| limit > rows));
        if let BoundPartitions::Keys(keys) = &select.partitions
            && keys.len() > 1
            && consistency.is_serial()
            && !is_paged
            && select.selection.aggregates.is_empty()
        {
            return Err(Error::Invalid(
                "SERIAL/LOCAL_SERIAL consistency may only be requested for one partition at a time".to_owned(),
            ));
        }
        let limits = Limits {
            rows: resume
                .as_ref()
                .map_or(select.limit_rows, |position| position.limit_rows),
            page_rows,
            page_bytes: self.page_bytes_max,
            content_bytes_ahead: planned.content_bytes_ahead(),
            tombstones: self.guardrails.tombstones,
        };
        let mut notes = Vec::new();
        if select.table.keyspace == "system_schema" {
            self.admit_metadata(request, Work::Read).await?;
        }
        if is_system {
            charges.metadata();
        }
        let mut sink = Sink::new(select, shape, &request.context, request.now_seconds, limits, charges);
        if is_system {
            let rows = self.view_rows(request, select);
            virtual_rows::run(select, rows, resume.as_ref(), &mut sink)?;
        } else {
            let partitions = request.snapshot.partitions(&select.table)?;
            let as_of;
            let partitions = if self.nodes.is_quiet() {
                partitions
            } else {
                // Boxed, since it is rare: every request's future would be as large.
                as_of = Box::pin(self.disturb_read(request, select, partitions)).await?;
                as_of.as_ref().unwrap_or(partitions)
            };
            let mut concerned = Concerned::default();
            concerned.add(&select.table, partitions, || {
                source::ahead(partitions, select, resume.as_ref()).map(|partition| partition.id.0)
            });
            self.admit(request, concerned, Work::Read).await?;
            let at_level = |error| match error {
                Error::TooManyTombstones { .. } => Error::TooManyTombstones { consistency },
                error => error,
            };
            let indexes = &self.catalog.indexes;
            let read = index::read::run(indexes, partitions, select, resume.as_ref(), &mut sink).await;
            match read.map_err(at_level)? {
                Some(used) => notes.push(format!("Scanned with index {used}")),
                None => {
                    let visited = source::run(partitions, select, resume.as_ref(), &mut sink).await;
                    let visited = visited.map_err(at_level)?;
                    if params.trace.is_some() {
                        let all = partitions.all().len();
                        notes.push(format!("Read {visited} of {all} physical partitions"));
                    }
                }
            }
        }
        let Page {
            content,
            row_count,
            mut position,
            warnings: walked,
        } = sink.finish()?;
        charges.give_back(content.len());
        let left_before = resume.as_ref().map_or(0, |position| position.charge_left_micros);
        let left = charges.end_page(left_before, position.is_some());
        if let Some(position) = &mut position {
            position.charge_left_micros = left;
        }
        warnings.extend(walked);
        planned.note_content_bytes(content.len());
        let metadata = planned.result.clone().unwrap_or_else(|| {
            let table = &select.table;
            Arc::new(ResultMetadata::new(
                &table.keyspace,
                &table.name,
                Arc::clone(&select.selection.columns),
            ))
        });
        let mut answer = Answer::new(AnswerKind::Rows(Rows {
            metadata,
            row_count,
            content,
            paging_state: position.map(|position| self.catalog.paging_key.seal(digest(), &position)),
        }));
        answer.notes = notes;
        answer.warnings = warnings;
        Ok(answer)
    }

    fn view_rows(&self, request: &Request<'_>, select: &BoundSelect) -> Vec<Vec<Option<Bytes>>> {
        // What only the server knows stands in one keyspace, and drivers read the others much more often.
        let mut live = Live::default();
        if select.table.keyspace == "system_views" {
            live = self.ask_server();
            live.figures = self.view_figures(&select.table.name);
        }
        live.index_builds = self.catalog.indexes.builds();
        if select.table.keyspace == system::COSMOS {
            self.cosmos_rows(&select.table.name, &mut live);
        }
        let sources = views::Sources {
            schema: &request.snapshot.schema,
            node: self.seen_by(request.session.node),
            live: &live,
            token: |key| Token::of(key).value(),
        };
        let one_key: Option<Vec<Bytes>> = match &select.partitions {
            BoundPartitions::Keys(keys) => match keys.as_slice() {
                [key] => {
                    let components = value::key_components(key, select.table.partition_key_count);
                    Some(components.map(Bytes::copy_from_slice).collect())
                }
                _ => None,
            },
            BoundPartitions::Ring { .. } => None,
        };
        let first_clustering = first_clustering(select);
        let wanted = views::Wanted {
            partition_key: one_key.as_deref(),
            first_clustering: first_clustering.as_deref(),
        };
        views::rows(&select.table, sources, wanted).unwrap_or_default()
    }

    fn describe(&self, request: &Request<'_>, statement: &ast::Describe) -> Result<Answer, Error> {
        let keyspace = request.keyspace.as_deref();
        let description = describe::describe(
            statement,
            keyspace,
            &request.snapshot.schema,
            self.seen_by(request.session.node),
        )
        .map_err(|error| Error::Invalid(error.to_string()))?;
        let columns = description.columns.into_iter().map(|(name, ty)| ResultColumn {
            name: name.to_owned(),
            ty,
        });
        let (keyspace, table) = describe::RESULT_TABLE;
        let mut content = Vec::new();
        for cell in description.rows.iter().flatten() {
            value::put_bytes(&mut content, cell.as_deref());
        }
        Ok(Answer::new(AnswerKind::Rows(Rows {
            metadata: Arc::new(ResultMetadata::new(keyspace, table, Arc::new(columns.collect()))),
            row_count: u32::try_from(description.rows.len()).unwrap_or(u32::MAX),
            content: content.into(),
            paging_state: None,
        })))
    }

    // Writes.

    async fn modify(
        &self,
        request: &Request<'_>,
        modification: &BoundModification,
        charges: &mut Charges,
    ) -> Result<Answer, Error> {
        let is_counter = modification.table.is_counter;
        let routed = [self.route(request, modification)?];
        let is_conditional = modification.condition != BoundCondition::Always;
        let write_type = match (is_conditional, is_counter) {
            (true, _) => "CAS",
            (false, true) => "COUNTER",
            (false, false) => "SIMPLE",
        };
        let write = self.write_request(request, write_type, &modification.table)?;
        if !is_conditional && !is_counter && write.consistency.is_serial() {
            return Err(Error::Invalid(
                "You must use conditional updates for serializable writes".to_owned(),
            ));
        }
        let mut warnings = Vec::new();
        self.guardrails.values(modification, &mut warnings)?;
        let told_after = if self.nodes.is_quiet() {
            None
        } else {
            Box::pin(self.disturb_write(request, &routed, &write)).await?
        };
        self.admit_writes(request, &routed, write_type).await?;
        let mut answer = if is_conditional {
            let writes = &self.writes;
            writes
                .apply_conditionally(&routed, &write, &request.context, false, charges)
                .await?
        } else {
            let mut applied = self.writes.apply(&routed, &write, None, charges).await;
            if mutant::is_on(Mutant::RetryCounter) && is_counter && applied.is_err() {
                applied = self.writes.apply(&routed, &write, None, charges).await;
            }
            let mut answer = Answer::new(AnswerKind::Void);
            answer.warnings = applied?;
            answer
        };
        told_after.map_or(Ok(()), Err)?;
        answer.warnings.extend(warnings);
        Ok(answer)
    }

    async fn run_batch(
        &self,
        request: &Request<'_>,
        batch: &BoundBatch,
        charges: &mut Charges,
    ) -> Result<Answer, Error> {
        if batch.modifications.is_empty() {
            return Ok(Answer::new(AnswerKind::Void));
        }
        self.writes.limits.check_operations(batch.modifications.len())?;
        self.watch.note_partitions(batch);
        let routed = batch
            .modifications
            .iter()
            .map(|modification| self.route(request, modification));
        let routed = routed.collect::<Result<Vec<_>, _>>()?;
        let write_type = match batch.kind {
            _ if batch.conditional => "CAS",
            BatchKind::Logged => "BATCH",
            BatchKind::Unlogged => "UNLOGGED_BATCH",
            BatchKind::Counter => "COUNTER",
        };
        let tables = || batch.modifications.iter().map(|modification| &modification.table);
        let table = tables().find(|table| table.is_counter).or_else(|| tables().next());
        let table = table.ok_or_else(|| Error::Server("a batch with members has no table".to_owned()))?;
        // Cassandra lets a batch without conditions be written at SERIAL.
        let mut write = self.write_request(request, write_type, table)?;
        write.timestamp_micros = batch.timestamp.or(write.timestamp_micros);
        let mut warnings = Vec::new();
        for modification in &batch.modifications {
            self.guardrails.values(modification, &mut warnings)?;
        }
        let told_after = if self.nodes.is_quiet() {
            None
        } else {
            Box::pin(self.disturb_write(request, &routed, &write)).await?
        };
        self.admit_writes(request, &routed, write_type).await?;
        let mut answer = if batch.conditional {
            let writes = &self.writes;
            writes
                .apply_conditionally(&routed, &write, &request.context, true, charges)
                .await?
        } else {
            // Cassandra measures only what goes to several partitions.
            let threshold = &self.guardrails.batch_bytes;
            let is_measured = !threshold.is_off() && size::mutations(&batch.modifications) > 1;
            let warning = self
                .writes
                .apply(&routed, &write, is_measured.then_some(threshold), charges)
                .await?;
            warnings.extend(warning);
            if batch.kind != BatchKind::Logged {
                warnings.extend(scatter_warning(batch, &self.guardrails.unlogged_batch_partitions));
            }
            Answer::new(AnswerKind::Void)
        };
        told_after.map_or(Ok(()), Err)?;
        answer.warnings.extend(warnings);
        Ok(answer)
    }

    /// Asks for the request units of all physical partitions that are written to.
    async fn admit_writes(
        &self,
        request: &Request<'_>,
        routed: &[Routed<'_>],
        write_type: &'static str,
    ) -> Result<(), Error> {
        let mut concerned = Concerned::default();
        for one in routed {
            concerned.add(&one.modification.table, one.partitions, || {
                let keys = one.modification.partition_keys.iter();
                keys.map(|key| one.partitions.of(Token::of(key)).id.0)
            });
        }
        self.admit(request, concerned, Work::Write(write_type)).await
    }

    fn route<'a>(&self, request: &'a Request<'_>, modification: &'a BoundModification) -> Result<Routed<'a>, Error> {
        refuse_system(&modification.table.keyspace)?;
        self.writes.limits.check_partition_keys(&modification.partition_keys)?;
        if self.catalog.is_unsure() {
            return Err(Error::WriteFailure {
                consistency: request.params.consistency,
                write_type: "SIMPLE",
                message: "a change of the schema failed, and the store cannot say yet whether it was done".to_owned(),
            });
        }
        Ok(Routed {
            modification,
            partitions: request.snapshot.partitions(&modification.table)?,
        })
    }

    /// What the request says of a write; `table` is one of those written to, a counter table where there is one.
    fn write_request(
        &self,
        request: &Request<'_>,
        write_type: &'static str,
        table: &Table,
    ) -> Result<WriteRequest, Error> {
        let consistency = levels::write(&self.rules, request.params.consistency);
        let invalid = |text: String| Err(Error::Invalid(text));
        if write_type == "CAS" {
            let serial = request.params.serial_consistency;
            if serial.is_some_and(|serial| !serial.is_serial()) {
                return invalid(
                    "Invalid consistency for conditional update. Must be one of SERIAL or LOCAL_SERIAL".to_owned(),
                );
            }
            if consistency.is_serial() {
                return invalid(format!(
                    "{} is not supported as conditional update commit consistency. Use ANY if you mean \"make sure it is \
                     accepted but I don't care how many replicas commit it for non-SERIAL reads\"",
                    consistency.name()
                ));
            }
            if consistency == Consistency::EachQuorum {
                let keyspace = request.snapshot.schema.keyspaces.get(&table.keyspace);
                let strategy = keyspace.and_then(|keyspace| keyspace.replication.get("class"));
                if let Some(strategy) = strategy.filter(|class| !class.ends_with(".NetworkTopologyStrategy")) {
                    return invalid(format!(
                        "consistency level EACH_QUORUM not compatible with replication strategy ({strategy})"
                    ));
                }
            }
        }
        if table.is_counter {
            if consistency == Consistency::Any {
                return invalid(format!(
                    "Consistency level ANY is not yet supported for counter table {}",
                    table.name
                ));
            }
            if consistency.is_serial() {
                return invalid("Counter operations are inherently non-serializable".to_owned());
            }
        }
        Ok(WriteRequest {
            timestamp_micros: request.params.timestamp_micros,
            now_seconds: request.now_seconds,
            consistency,
            serial_consistency: request.params.serial_consistency.unwrap_or(Consistency::Serial),
            write_type,
        })
    }

    // The schema.

    async fn change_schema(&self, request: &Request<'_>, statement: &ast::Statement) -> Result<Answer, Error> {
        if let Some(unsupported) = ddl::not_executed(statement) {
            return Err(Error::Invalid(unsupported.to_string()));
        }
        let keyspace = request.keyspace.as_deref();
        let mut warnings = Vec::new();
        self.guardrails
            .ddl(statement, &request.snapshot.schema, keyspace, &mut warnings)?;
        let given = ddl::with_payload(statement, |name| Some(request.params.payload_value(name)?.as_ref()));
        let statement = given.as_ref().unwrap_or(statement);
        self.admit_metadata(request, Work::Write("SIMPLE")).await?;
        let outcome = self.catalog.change(statement, keyspace).await?;
        self.forget_dropped_tables();
        self.forget_logical_partitions().await;
        let kind = outcome.change.map_or(AnswerKind::Void, AnswerKind::SchemaChange);
        let mut answer = Answer::new(kind);
        answer.warnings = warnings;
        answer.warnings.extend(outcome.warnings);
        Ok(answer)
    }
}

/// The value of the first clustering column if the read wants rows of one only: drivers ask for one table of a keyspace at a time.
fn first_clustering(select: &BoundSelect) -> Option<Bytes> {
    let first = select.table.clustering().first()?;
    let (start, end) = match &select.rows {
        BoundRows::All => return None,
        BoundRows::Keys(keys) => (keys.first()?, keys.last()?),
        BoundRows::Ranges(ranges) => (&ranges.first()?.start, ranges.last()?.end.as_ref()?),
    };
    let value = first.ty.decode_key(&mut start.as_slice(), first.descending).ok()?;
    let mut prefix = Vec::new();
    first.ty.encode_key(&value, first.descending, &mut prefix);
    // The least key behind all that begin with the prefix.
    let mut behind = prefix.clone();
    while behind.last() == Some(&u8::MAX) {
        behind.pop();
    }
    *behind.last_mut()? += 1;
    (start.starts_with(&prefix) && *end <= behind).then_some(value)
}

fn data_centers(node: &NodeInfo) -> Vec<(String, usize)> {
    let mut names: Vec<&String> = node.peers.iter().map(|peer| &peer.data_center).collect();
    names.push(&node.data_center);
    names.sort_unstable();
    names.dedup();
    names
        .into_iter()
        .map(|name| (name.clone(), node.nodes_in(name)))
        .collect()
}

/// Cassandra says the same in several places, with another first word.
fn expect_values(first_word: &str, markers: usize, values: usize) -> Result<(), Error> {
    if markers == values {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "{first_word} were {markers} markers(?) in CQL but {values} bound variables"
    )))
}

/// What Cassandra says of a batch without a log that is scattered over the ring.
fn scatter_warning(batch: &BoundBatch, threshold: &Threshold) -> Option<String> {
    let keys = batch
        .modifications
        .iter()
        .flat_map(|modification| &modification.partition_keys);
    let keys: BTreeSet<&Bytes> = keys.collect();
    let Level::Warn(_) = threshold.judge(u64::try_from(keys.len()).unwrap_or(u64::MAX)) else {
        return None;
    };
    let tables = batch.modifications.iter().map(|modification| &modification.table);
    let names = tables.map(|table| format!("{}.{}", table.keyspace, table.name));
    let names = size::in_hash_order(names.collect());
    let plural = if names.len() == 1 { "" } else { "s" };
    Some(format!(
        "Unlogged batch covering {} partitions detected against table{plural} [{}]. You should use a logged batch for \
         atomicity, or asynchronous writes for performance.",
        keys.len(),
        names.join(", ")
    ))
}

/// Nobody writes to what the server makes itself.
fn refuse_system(keyspace: &str) -> Result<(), Error> {
    if system::is_local(keyspace) {
        return Err(Error::Unauthorized(format!(
            "{keyspace} keyspace is not user-modifiable."
        )));
    }
    Ok(())
}

fn refuse_auth(session: &SessionState) -> Error {
    match &session.user {
        None => Error::Unauthorized("You have to be logged in and not anonymous to perform this request".to_owned()),
        Some(_) => Error::Invalid("Roles and permissions are not supported by Helenus yet".to_owned()),
    }
}

fn statement_digest(planned: &PlannedAt, select: &BoundSelect, values: &[Value]) -> StatementDigest {
    let bytes = values.iter().map(|value| match value {
        Value::Null => &b"\x00null"[..],
        Value::Unset => &b"\x00unset"[..],
        Value::Bytes(bytes) => bytes,
    });
    let head = [select.table.id.as_bytes().as_slice(), planned.text.as_bytes()];
    paging::digest(head.into_iter().chain(bytes))
}
