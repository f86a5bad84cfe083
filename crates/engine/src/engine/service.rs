//! The engine's facade for front ends: commands in, rows and receipts out.
//!
//! ```text
//! begin(Terms) ─→ Execution ─ read · write · batch · truncate · change_schema ─→ rows, outcome ─ charge ─→ ChargeReceipt
//! ```

mod authority;
mod execution;
mod options;
mod owner_side;
mod reads;
mod writes;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use uuid::Uuid;

use super::audit::AuditLog;
use super::backup::Backups;
use super::batch_log;
use super::catalog::{Catalog, SchemaListener};
use super::counts::Counts;
use super::draws::Draws;
use super::edge::storage_read;
use super::error::{Error, NotChanged};
use super::figures::Figures;
use super::gates::{self, Gates};
use super::ledger::Ledger;
use super::logical::LogicalPartitions;
use super::owner::Carrier;
#[cfg(feature = "simulation")]
use super::owner::loopback;
use super::owner::moments::Moments;
use super::probe::Prober;
use super::receipt::{ChargeReceipt, Ended, Executed};
use super::upkeep::Upkeep;
use super::virtual_tables::VirtualTables;
use super::write::WriteServices;
use crate::engine::shown::ClusterNode;
use crate::engine::snapshot::Snapshot;
use crate::engine::terms::request::{Request, Terms};
use crate::partition::{Nodes, Stores};
use crate::throughput::Charges;
use helenus_base::clock::Clock;
use helenus_base::metrics::{Statements, turn};
use helenus_base::tasks::Tasks;
use helenus_schema::command::{ChangeKind, MaskCalls, SchemaIntent, SchemaOutcome};
use helenus_schema::guardrails::Guardrails;
use helenus_schema::profile::Profile;
use helenus_schema::profile::Rules;
use helenus_schema::schema::node::NodeInfo;
use helenus_schema::schema::record::Change;
use helenus_schema::schema::{Schema, StorageId, Table};
use helenus_types::consistency::Consistency;
use helenus_types::consistency::WriteKind;
use helenus_types::functions::{CallLimits, Context, Timeuuids};

use self::authority::Authority;
pub use self::authority::RolesInForce;
pub use self::execution::Execution;
pub use self::options::{ClockRules, Elsewhere, Options};
pub use self::owner_side::OwnerSide;
pub use self::reads::{Checked, Paging, ReadPage};

/// Default time for background work to end after the stores are closed.
const CLOSE_WITHIN: Duration = Duration::from_secs(10);

/// The engine: the services that execute commands.
pub struct Engine {
    pub(in crate::engine) catalog: Arc<Catalog>,
    stores: Stores,
    writes: WriteServices,
    clock: Clock,
    /// The virtual nodes, each as its clients see it in the system tables.
    seen: Vec<NodeInfo>,
    nodes: Arc<Nodes>,
    virtual_tables: Arc<dyn VirtualTables>,
    page_bytes_max: usize,
    statements: Arc<Statements>,
    prober: Prober,
    guardrails: Guardrails,
    ledger: Ledger,
    counts: Counts,
    rules: Rules,
    timeuuids: Arc<Timeuuids>,
    draws: Arc<Draws>,
    call_limits: CallLimits,
    mask_calls: MaskCalls,
    authority: Authority,
    /// Empty means that there is no audit log.
    audit_log: OnceLock<Arc<dyn AuditLog>>,
    /// What reaches the owner of all partitions. `None` means that this machine is it.
    elsewhere: Option<Arc<dyn Carrier>>,
    /// The moments of pages that other machines read here.
    moments: Moments,
    /// The nodes as they are now, if they come and go. `None` means that they are as at the start.
    ring: ArcSwapOption<NodeInfo>,
    /// The nodes of the fleet, for people. `None` means that it is none.
    fleet: ArcSwapOption<Vec<ClusterNode>>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Engine")
            .field("node", self.node())
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// Opens the database at a URL; creates it if it does not exist.
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

    /// As [`Engine::close`]. Background work that is still running `within` after the stores were closed is aborted.
    ///
    /// # Errors
    /// When the medium fails.
    pub async fn close_within(&self, within: Duration) -> Result<(), Error> {
        self.tasks().begin_stop();
        // Otherwise the next start would write these batches again.
        if let Err(error) = batch_log::remove_whole(&self.catalog.published).await {
            tracing::debug!(%error, "records of whole batches stay");
        }
        let closed = self.stores.close().await;
        // Joined last: most of it ends because its store is closed.
        self.tasks().join(within).await;
        closed.map_err(|error| Error::Fault(error.to_string()))
    }

    /// Runs background work, and joins it when the database is closed.
    #[must_use]
    pub fn tasks(&self) -> &Tasks {
        &self.catalog.published.tasks
    }

    /// Records executions of clients in this log from now on. Only the first call counts.
    pub fn set_audit_log(&self, log: Arc<dyn AuditLog>) {
        drop(self.audit_log.set(log));
    }

    /// Whether there is an audit log.
    #[must_use]
    pub fn is_audited(&self) -> bool {
        self.audit_log.get().is_some()
    }

    /// Sets the listener for changes of the schema, which gets them in the order of their commits. Only the first call
    /// counts.
    pub fn set_schema_listener(&self, listener: SchemaListener) {
        self.catalog.schemas.listener.set(listener);
    }

    /// The current schema.
    #[must_use]
    pub fn schema(&self) -> Arc<Schema> {
        Arc::clone(&self.catalog.load().schema)
    }

    /// The version of the current schema: it changes with every change of the schema and with nothing else.
    #[must_use]
    pub fn schema_version(&self) -> Uuid {
        self.catalog.load().schema.version
    }

    /// The compatibility profile.
    #[must_use]
    pub const fn profile(&self) -> Profile {
        self.rules.profile
    }

    /// The virtual nodes, and the active fault plan.
    #[must_use]
    pub const fn nodes(&self) -> &Arc<Nodes> {
        &self.nodes
    }

    /// What reaches the owner of all partitions. `None` means that this machine is it.
    #[must_use]
    pub fn carrier(&self) -> Option<&dyn Carrier> {
        self.elsewhere.as_deref()
    }

    /// A number by which owners know the parts of one page; 0 where this machine owns all partitions.
    fn page_number(&self) -> u64 {
        match self.elsewhere {
            None => 0,
            Some(_) => self.draws.generator().u64(1..),
        }
    }

    /// This machine as the owner of partitions that others ask.
    #[must_use]
    pub const fn owner_side(&self) -> OwnerSide<'_> {
        OwnerSide::of(self)
    }

    fn gates(&self) -> Gates<'_> {
        Gates {
            catalog: &self.catalog,
            limits: &self.writes.limits,
            guardrails: &self.guardrails,
            rules: &self.rules,
            nodes: &self.nodes,
            admission: &self.ledger.admission,
            is_disk_short: self.stores.is_disk_short(),
        }
    }

    /// The server's background jobs.
    #[must_use]
    pub const fn upkeep(&self) -> Upkeep<'_> {
        Upkeep {
            catalog: &self.catalog,
            counts: &self.counts,
            stores: &self.stores,
            prober: &self.prober,
            clock: &self.clock,
            timestamps: &self.writes.clock,
            timeuuids: &self.timeuuids,
            is_cosmos: self.rules.profile.is_cosmos(),
        }
    }

    /// The database's backups.
    #[must_use]
    pub const fn backups(&self) -> Backups<'_> {
        Backups {
            catalog: &self.catalog,
            timestamps: &self.writes.clock,
            profile: self.rules.profile,
        }
    }

    /// Figures for views and for callers in the same process.
    #[must_use]
    pub fn figures(&self) -> Figures<'_> {
        Figures {
            catalog: &self.catalog,
            stores: &self.stores,
            statements: &self.statements,
            ledger: &self.ledger,
            counts: &self.counts,
            logical: &self.writes.logical,
            nodes: &self.nodes,
            seen: &self.seen,
            fleet: &self.fleet,
            clock: &self.clock,
        }
    }

    /// The published snapshot of the catalog, which a request takes once.
    #[must_use]
    pub fn snapshot(&self) -> arc_swap::Guard<Arc<Snapshot>> {
        self.catalog.load()
    }

    /// The key that seals paging states.
    #[must_use]
    pub fn paging_key(&self) -> [u8; 16] {
        self.catalog.identity().paging_key
    }

    /// Removes all rows of a table that the server keeps for itself.
    ///
    /// # Errors
    /// When the table does not exist or the store fails.
    pub async fn truncate_own(&self, keyspace: &str, table: &str) -> Result<(), Error> {
        self.catalog.truncate(keyspace, table).await
    }

    /// The clock of the requests.
    #[must_use]
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Amounts that are warned of or refused.
    #[must_use]
    pub const fn guardrails(&self) -> &Guardrails {
        &self.guardrails
    }

    /// The rules of the profile.
    #[must_use]
    pub const fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The order of virtual rows: bytes of a partition key → its token.
    #[must_use]
    pub fn virtual_token(&self) -> fn(&[u8]) -> i64 {
        super::read::virtual_rows::token
    }

    /// Statements by kind and by table.
    #[must_use]
    pub const fn statements(&self) -> &Arc<Statements> {
        &self.statements
    }

    /// Shows clients these nodes from now on: this one, with its tokens of now, and its peers.
    pub fn set_ring(&self, ring: NodeInfo) {
        self.ring.store(Some(Arc::new(ring)));
    }

    /// Shows people these nodes of a fleet from now on.
    pub fn set_fleet(&self, nodes: Vec<ClusterNode>) {
        self.fleet.store(Some(Arc::new(nodes)));
    }

    /// The node that a client sees as its own, with its peers of now. `node` is the virtual node, from 0.
    #[must_use]
    pub fn seen_now(&self, node: usize) -> Arc<NodeInfo> {
        let ring = self.ring.load_full();
        ring.unwrap_or_else(|| Arc::new(self.seen_by(node).clone()))
    }

    /// This node; of several virtual ones the first.
    #[must_use]
    pub fn node(&self) -> &NodeInfo {
        self.seen_by(0)
    }

    /// A virtual node, from 0, as its clients see it.
    #[expect(clippy::expect_used, reason = "there is at least one")]
    #[must_use]
    pub fn seen_by(&self, node: usize) -> &NodeInfo {
        let seen = self.seen.get(node).or_else(|| self.seen.first());
        seen.expect("a database has a node")
    }

    /// If a change of the catalog failed and may have been applied, reads the actual catalog from the store. Otherwise the request may
    /// be refused until another one has resolved the change.
    async fn resolve_in_doubt(&self) {
        if self.catalog.is_in_doubt() {
            // Boxed, since it is rare and would make every request's future larger. After a failure reads continue:
            // both catalogs are valid for them.
            let resolving = Box::pin(self.catalog.resolve_in_doubt()).await;
            drop(resolving);
        }
    }

    /// Refuses what is answered by the catalog in memory, unless this server is the only one that may change it. Reads and
    /// writes of stores check the same for themselves.
    ///
    /// # Errors
    /// Another server may have taken the bucket over.
    pub fn refuse_taken_over(&self, consistency: Consistency) -> Result<(), Error> {
        match self.catalog.main().taken_over() {
            None => Ok(()),
            Some(error) => Err(storage_read(&error).at_edge(consistency, WriteKind::Simple)),
        }
    }

    /// A request that begins now.
    fn request<'a>(&self, terms: Terms<'a>) -> Request<'a> {
        // The clock is read once for all times of the request.
        let now_micros = self.writes.clock.now_micros();
        let snapshot = Arc::clone(&self.catalog.load());
        #[cfg(feature = "simulation")]
        let (snapshot, owners) = loopback::seen(snapshot);
        Request {
            snapshot,
            #[cfg(feature = "simulation")]
            owners,
            now_seconds: terms
                .now_seconds
                .map_or_else(|| now_micros.div_euclid(1_000_000), i64::from),
            at_micros: now_micros,
            began: turn::begin(|| self.clock.monotonic()),
            context: self.context(now_micros),
            claim: OnceLock::new(),
            terms,
        }
    }

    /// Empty charges for a request.
    #[inline]
    fn charges(&self, request: &Request<'_>) -> Charges {
        self.ledger.charges(request.consistency())
    }

    /// Ends a request: charges it and records that, whether it succeeded or failed. `notes` gets the trace of
    /// the charges, if the request is traced.
    #[inline]
    fn charge(
        &self,
        request: &Request<'_>,
        executed: Executed<'_>,
        charges: &mut Charges,
        ended: Ended,
        notes: &mut Vec<String>,
    ) -> ChargeReceipt {
        self.ledger.charge(request, executed, charges, ended, notes)
    }

    /// Time and randomness for the functions of one request.
    fn context(&self, now_micros: i64) -> Context {
        let seed = self.draws.generator().u64(..);
        Context::new(now_micros, Arc::clone(&self.timeuuids), seed).limited(self.call_limits)
    }

    // The schema.

    /// Publishes a change of the catalog that another server has committed, from its changed records alone. Nothing is written, built or
    /// removed here.
    ///
    /// # Errors
    /// A record is damaged; then the catalog stays as it was.
    pub async fn apply(&self, changed: Vec<Change>) -> Result<(), Error> {
        self.catalog.apply(changed).await
    }

    /// Empties a table.
    ///
    /// # Errors
    /// It is refused, replicas are missing, or a store fails.
    async fn truncate(&self, request: &Request<'_>, table: &Table, charges: &mut Charges) -> Result<(), Error> {
        let gates = self.gates();
        gates::truncate(gates, table)?;
        gates::admit_truncate(gates, request, table).await?;
        charges.metadata();
        let truncated = self.catalog.truncate(&table.keyspace, &table.name).await;
        truncated.map_err(catalog_edge)?;
        self.logical().forget_dropped(&self.schema(), &self.stores).await;
        Ok(())
    }

    /// Changes the schema by an intent.
    ///
    /// # Errors
    /// The intent is refused, or a store fails; nothing has changed then.
    async fn change_schema<I: SchemaIntent>(
        &self,
        request: &mut Request<'_>,
        intent: I,
        charges: &mut Charges,
    ) -> Result<SchemaOutcome, NotChanged<I::Refusal>> {
        request.drop_partition_map();
        charges.metadata();
        gates::admit_change(self.gates(), request).await?;
        let outcome = self.catalog.change(intent).await.map_err(|error| match error {
            NotChanged::Failed(error) => NotChanged::Failed(catalog_edge(error)),
            refused @ NotChanged::Refused(_) => refused,
        })?;
        // Search the figures only when a table may have been dropped.
        if outcome
            .change
            .as_ref()
            .is_some_and(|change| change.kind == ChangeKind::Dropped)
        {
            self.forget_dropped_figures();
            self.logical().forget_dropped(&self.schema(), &self.stores).await;
        }
        Ok(outcome)
    }

    /// Removes the figures of dropped tables once there are more figures than tables.
    fn forget_dropped_figures(&self) {
        let schema = self.schema();
        let stored: BTreeSet<StorageId> = schema.stored_tables().map(|table| table.storage_id).collect();
        self.ledger.meter.spent().keep(|id| stored.contains(&id));
        let statements = &self.statements;
        if statements.tables_known() > stored.len() {
            let there: BTreeSet<u128> = schema.stored_tables().map(|table| table.id.as_u128()).collect();
            statements.keep(|id| there.contains(&id));
        }
    }

    fn logical(&self) -> &Arc<LogicalPartitions> {
        &self.writes.logical
    }
}

/// The error of a catalog change as its client sees it: like Cassandra's, on every replica.
fn catalog_edge(error: Error) -> Error {
    error.at_edge(Consistency::All, WriteKind::Simple)
}
