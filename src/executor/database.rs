//! The whole database behind one facade: what the server calls, and what tests call without one.

mod reads;
mod writes;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use grammar::ast;
use uuid::Uuid;

use super::answer::{Answer, AnswerKind, BatchKind, ChangeKind, QueryParams, SessionState, Values};
use super::catalog::{Catalog, Snapshot};
use super::counts::Counts;
use super::error::Error;
use super::figures::Watch;
use super::index;
use super::limits::SizeLimits;
use super::logical::{Guarded, LogicalPartitions};
use super::meter::Meter;
use super::offers::{Offers, ThroughputRules};
use super::plans::{PlanCache, PlannedAt, Statement};
use super::settle::Done;
use super::throughput::{Asked, Gate, Work};
use super::write::WriteRoom;
use super::write::clock::{Ballots, ListKeys, WriteClock};
use crate::clock::Clock;
use crate::functions::{Context, Timeuuids};
use crate::partition::store::{self, Store, Url};
use crate::partition::{Consistency, Nodes, Stores, Stripes, TablePartitions};
use crate::planner::bound::{BoundBatch, BoundPartitions, Value};
use crate::planner::rules::{self, Rules};
use crate::planner::{self, Guardrails, Plan, Threshold, ddl};
use crate::profile::Profile;
use crate::schema::node::{Live, NodeInfo};
use crate::schema::{Schema, StorageId, Table, system};
use crate::throughput::{Account, Charges, Coefficients, PartitionRef};

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
    stores: Stores,
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
    /// Who counts charges.
    meter: Arc<Meter>,
    /// What physical partitions hold.
    counts: Counts,
    pub(super) rules: Rules,
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
    /// Lets go of where rows are, if the statement changes that: it may have to wait until nobody goes by lists of before, and would
    /// wait for itself, or for another one that waits behind it.
    fn leave_lists_for(&mut self, planned: &PlannedAt) {
        if matches!(planned.planned.plan, Plan::Ddl(_)) {
            self.snapshot = Arc::new(self.snapshot.without_lists());
        }
    }

    /// The level that it asks for.
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
        let opened = Stores::open(&options.url, &options.store, options.clock.clone()).await;
        let stores = opened.map_err(|error| Error::Server(error.to_string()))?;
        let mut random = fastrand::Rng::with_seed(options.seed);
        let timeuuids = Arc::new(Timeuuids::new(random.u64(..)));
        let seeds = AtomicU64::new(random.u64(..));
        let list_keys = ListKeys::new(options.clock.clone(), random.u32(..));
        let mut node = options.node;
        let nodes = Arc::new(Nodes::new(node.virtual_nodes, options.clock.clone()));
        let data_centers = data_centers(&node);
        let watch = Watch::new(options.clock.clone());
        let meter = Meter::new(
            options.throughput.is_metered,
            options.request_log_max,
            options.clock.clone(),
        );
        let gate = Gate::new(options.throughput, &options.clock);
        let offers = Offers::new(options.throughput, options.clock.clone());
        let rules = Rules {
            profile: options.profile,
            account: options.account,
        };
        let catalog = Catalog::open(
            stores.clone(),
            options.clock.clone(),
            random,
            data_centers,
            offers,
            rules,
        )
        .await?;
        node.host_id = catalog.host_id;
        let ballots = Ballots::new(stores.main().clone(), catalog.last_ballot);
        let guarded = Guarded {
            bytes: options.guardrails.partition_bytes,
            tombstones: options.guardrails.partition_tombstones,
        };
        let logical = LogicalPartitions::new(&options.limits, guarded, options.clock.clone(), catalog.logical.clone());
        node.name_virtual_nodes();
        let catalog = Arc::new(catalog);
        Ok(Self {
            catalog: Arc::clone(&catalog),
            stores,
            writes: WriteRoom {
                catalog,
                clock: WriteClock::new(options.clock),
                ballots,
                list_keys,
                stripes: Stripes::default(),
                limits: options.limits,
                logical: Arc::new(logical),
                nodes: Arc::clone(&nodes),
                ttl_of_rows: rules.profile.is_cosmos(),
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
            meter,
            counts: Counts::default(),
            rules,
            timeuuids,
            seeds,
            gate,
        })
    }

    /// Makes everything durable and closes the stores. Requests after it fail.
    ///
    /// # Errors
    /// When the medium fails.
    pub async fn close(&self) -> Result<(), Error> {
        self.stores
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

    /// All stores.
    pub(super) const fn stores(&self) -> &Stores {
        &self.stores
    }

    /// The time by which what is stored is judged, for those who clean up.
    pub(super) fn now_seconds(&self) -> i64 {
        self.writes.clock.now_seconds()
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

    /// How large logical partitions are.
    pub(super) fn logical(&self) -> &Arc<LogicalPartitions> {
        &self.writes.logical
    }

    /// The store that has the catalog, and time.
    pub(super) fn store_and_clock(&self) -> (&Store, &Clock) {
        (self.stores.main(), self.watch.clock())
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

    /// What physical partitions hold, as far as it was counted.
    pub(super) const fn counts(&self) -> &Counts {
        &self.counts
    }

    #[cfg(test)]
    pub(super) const fn counts_mut(&mut self) -> &mut Counts {
        &mut self.counts
    }

    /// Who counts charges.
    pub(super) const fn meter(&self) -> &Arc<Meter> {
        &self.meter
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
        let planned = PlannedAt::new(text.into(), keyspace, &snapshot).map_err(|error| self.reworded(error))?;
        Ok(Statement::new(keyspace.map(Arc::from), planned))
    }

    /// A refusal that advises what is switched off says that instead.
    fn reworded(&self, error: Error) -> Error {
        match &error {
            Error::Invalid(text) => match self.guardrails.instead_of(text) {
                Some(instead) => Error::Invalid(instead.to_owned()),
                None => error,
            },
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
            expect_values("there", planned.planned.markers.len(), values.len())?;
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
        let mut charges = self.charges(params.consistency);
        let mut outcome = self.run_batch(&request, &batch, &mut charges).await;
        self.watch.note(&subject, request.began, &outcome);
        self.settle(&request, Done::Batch(&batch), &mut charges, &mut outcome);
        outcome
    }

    fn bind_batch(
        &self,
        request: &Request<'_>,
        kind: BatchKind,
        members: Vec<(Member, Vec<Value>)>,
    ) -> Result<BoundBatch, Error> {
        self.rules.batch(kind)?;
        // As in Cassandra all are parsed and counted before one is looked at further, and all is judged before a value is.
        let mut planned = Vec::with_capacity(members.len());
        for (member, values) in members {
            let member = match member {
                Member::Text(text) => self.plans.plan(request.keyspace.as_ref(), &text, &request.snapshot)?,
                Member::Prepared(statement) => statement.at(&request.snapshot)?,
            };
            expect_values("There", member.planned.markers.len(), values.len())?;
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

    async fn run(&self, request: &mut Request<'_>, planned: &Arc<PlannedAt>) -> Result<Answer, Error> {
        request.leave_lists_for(planned);
        let mut charges = self.charges(request.consistency());
        let mut outcome = self.carry_out(request, planned, &mut charges).await;
        let subject = planned.subject(|| self.watch.subject(planned));
        self.watch.note(subject, request.began, &outcome);
        self.settle(request, Done::Statement(planned), &mut charges, &mut outcome);
        outcome
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
                self.guardrails.select_plan(plan)?;
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
                self.guardrails.truncate()?;
                refuse_system(&table.keyspace)?;
                self.admit_metadata(request, Work::Write("SIMPLE")).await?;
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
        // What is kept for each table is gone through only when one may have gone.
        if outcome
            .change
            .as_ref()
            .is_some_and(|change| change.kind == ChangeKind::Dropped)
        {
            self.forget_dropped_tables();
            self.forget_logical_partitions().await;
        }
        let kind = outcome.change.map_or(AnswerKind::Void, AnswerKind::SchemaChange);
        let mut answer = Answer::new(kind);
        answer.warnings = warnings;
        answer.warnings.extend(outcome.warnings);
        Ok(answer)
    }
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
