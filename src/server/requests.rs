//! QUERY, PREPARE, EXECUTE and BATCH: from a request body to the database and back.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use uuid::Uuid;

mod listed;
mod traced;

use super::audit::Audit;
use super::prepared::{self, Entry, Id, Statements};
use super::refusal::refusal;
use super::trace::Tracer;
use super::{Events, Handled, Handler, Limits, Postponed, Session};
use super::{incoming, weight};
use helenus_base::budget::{Budget, Granted};
use helenus_base::clock::Clock;
use helenus_base::metrics;
use helenus_cql::cql::{
    self, Answer, AnswerKind, AuditedPrepare, AuditedStatement, Database, Member, QueryParams, ResultMetadata,
    Rows as AnswerRows, Values, apart,
};
use helenus_engine::engine;
use helenus_engine::engine::audit::{AuditEntry, AuditLog};
use helenus_engine::throughput::{REFUSED_CHARGE, RequestUnits};
use helenus_schema::command::{BatchKind, Value};
use helenus_schema::command::{ChangeKind as Kind, ChangeTarget as Target, SchemaChange as Changed};
use helenus_types::consistency::Consistency;
use helenus_types::wire::Header;
use helenus_types::wire::request::{
    Batch, Execute, Params, Prepare, Query, Request, Subject, Values as WireValues, payload,
};
use helenus_types::wire::response::{
    Body, ChangeKind, ChangeTarget, ColumnSpec, ErrorBody, ErrorDetail, Event, Metadata, MetadataMode, Prepared,
    Response, Rows, SchemaChange,
};
use helenus_types::wire::{BatchType, Value as WireValue, Version, flags};

/// Answers requests with a database.
pub struct Requests {
    database: Arc<Database>,
    /// Those of the first node. A statement must be prepared on every node that executes it.
    statements: Statements,
    /// Those of the other virtual nodes.
    statements_of_others: Vec<Statements>,
    tracer: Tracer,
    charge_payload: ChargePayload,
    clock: Clock,
    audit: Option<Arc<Audit>>,
    /// Memory for heavy requests while they are parsed and carried out.
    pool: Arc<Budget>,
    /// `None` means that this node owns all partitions.
    relay: Option<Arc<dyn Relay>>,
}

impl std::fmt::Debug for Requests {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Requests").finish_non_exhaustive()
    }
}

/// The error of a node that may not answer.
fn out_of_touch() -> ErrorBody {
    let text = "this node has lost touch with the owner of the partitions: try another node, or try again".to_owned();
    let detail = ErrorDetail::Unavailable {
        consistency: Consistency::One,
        required: 1,
        alive: 0,
    };
    ErrorBody::detailed(text, detail)
}

/// The key of the custom payload that returns a request's charge, and by which a client requests it.
const REQUEST_CHARGE: &str = "RequestCharge";

/// When the custom payload of a response holds the request's charge: a big-endian double under `RequestCharge`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChargePayload {
    /// With every result.
    Always,
    /// If the request has any value of that name in its own custom payload.
    #[default]
    Asked,
    /// Not at all.
    Never,
}

impl ChargePayload {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Always, Self::Asked, Self::Never];

    /// The name in the settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Asked => "asked",
            Self::Never => "never",
        }
    }
}

/// The parts of a request besides its message, and the notes of its trace.
struct Around {
    payload: Vec<(String, Bytes)>,
    request_bytes: u32,
    trace: Option<Uuid>,
    /// Notes for the trace.
    notes: Vec<String>,
}

/// Why a request was refused.
struct Refused {
    /// Boxed, because most requests are answered.
    body: Box<ErrorBody>,
    /// Warnings for the client.
    warnings: Vec<String>,
    /// The request units of this second are spent.
    is_throttle: bool,
    /// The response needs this many bytes, and there is no memory for them now: begin the request again.
    no_room_bytes: Option<usize>,
    /// What another node is needed for.
    needs_owner: Option<Needs>,
}

/// What a request needs of the owner of the partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    /// To carry it out.
    Owner,
    /// The catalog that it has now: the request is to be planned by that.
    Catalog,
}

/// How a node without partitions has requests carried out by their owner.
pub trait Relay: Send + Sync {
    /// Sends a request to the owner, and returns its answer.
    fn relay(&self, request: RelayedRequest) -> BoxFuture<'_, Response>;

    /// Whether this node may answer now: by the catalog in force, every acknowledged change is seen.
    fn may_answer(&self) -> bool;

    /// Waits until this node may answer. Returns whether it may.
    fn until_may_answer(&self) -> BoxFuture<'_, bool>;

    /// Waits for a later catalog than the one in force, for a short time.
    fn catch_up(&self) -> BoxFuture<'_, ()>;

    /// Has the owner forget a node that is down. A failure says why it has not, for the operator.
    fn forget(&self, name: String) -> BoxFuture<'_, Result<(), String>>;

    /// The owner's figures by the path of the admin port. `None` means that no owner answers.
    fn figures(&self, path: &'static str) -> BoxFuture<'_, Option<serde_json::Value>>;

    /// The database with the stores, if this node owns them.
    fn owned(&self) -> Option<Arc<Database>>;
}

/// A request for another node, with what it needs of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayedRequest {
    /// The client's address.
    pub client: SocketAddr,
    /// The role of the login.
    pub user: Option<Arc<str>>,
    /// The keyspace of unqualified names.
    pub keyspace: Option<Arc<str>>,
    /// The header of the request's frame.
    pub header: Header,
    /// The body of the frame.
    pub body: Bytes,
    /// The prepared statements that it names: their keyspaces and texts.
    pub prepared: Vec<(Option<Arc<str>>, Arc<str>)>,
}

impl Refused {
    fn response(self) -> Response {
        Response::from(Body::Error(self.body)).with_extras(self.warnings, Vec::new())
    }
}

impl From<ErrorBody> for Refused {
    fn from(body: ErrorBody) -> Self {
        Self {
            body: Box::new(body),
            warnings: Vec::new(),
            is_throttle: false,
            no_room_bytes: None,
            needs_owner: None,
        }
    }
}

fn refused(error: &cql::Error) -> Refused {
    let (error, warnings) = error.parts();
    Refused {
        body: Box::new(refusal(error)),
        warnings: warnings.to_vec(),
        is_throttle: matches!(error, cql::Error::Engine(engine::Error::Throttled { .. })),
        no_room_bytes: match error {
            cql::Error::Engine(engine::Error::NoRoom { bytes }) => Some(*bytes),
            _ => None,
        },
        needs_owner: match error {
            cql::Error::ForOwner => Some(Needs::Owner),
            cql::Error::Engine(engine::Error::Outdated) => Some(Needs::Catalog),
            _ => None,
        },
    }
}

impl Requests {
    /// Answers with this database.
    #[must_use]
    pub fn new(database: Arc<Database>, limits: &Limits, clock: Clock) -> Self {
        let tracer = Tracer::new(Arc::clone(&database), clock.clone());
        let nodes = database.engine().node().virtual_nodes.max(1);
        let statements = || Statements::new(limits.prepared_max / nodes, limits.prepared_bytes_max / nodes);
        Self {
            database,
            statements: statements(),
            statements_of_others: (1..nodes).map(|_| statements()).collect(),
            tracer,
            charge_payload: ChargePayload::default(),
            clock,
            audit: None,
            pool: Budget::new(limits.memory_bytes_max / weight::POOL_PART, limits.memory_wait),
            relay: None,
        }
    }

    /// The same, with what only the owner of the partitions can do relayed to it.
    #[must_use]
    pub fn relayed_by(mut self, relay: Option<Arc<dyn Relay>>) -> Self {
        self.relay = relay;
        self
    }

    /// The same, with statements that are prepared recorded in an audit log. The engine records those that are executed.
    #[must_use]
    pub(crate) fn with_audit(mut self, audit: Option<Arc<Audit>>) -> Self {
        self.audit = audit;
        self
    }

    /// The same, with this rule for charges in custom payloads.
    #[must_use]
    pub fn with_charge_payload(mut self, charge_payload: ChargePayload) -> Self {
        self.charge_payload = charge_payload;
        self
    }

    /// The number of prepared statements in the cache, and about how many bytes they take.
    #[must_use]
    pub fn prepared(&self) -> (usize, usize) {
        let all = std::iter::once(&self.statements).chain(&self.statements_of_others);
        all.fold((0, 0), |(count, bytes), statements| {
            (count + statements.len(), bytes + statements.bytes())
        })
    }

    /// The prepared statements of the client's node.
    fn statements(&self, session: &Session) -> &Statements {
        let others = &self.statements_of_others;
        if others.is_empty() {
            return &self.statements;
        }
        let other = session.node().checked_sub(1).and_then(|at| others.get(at));
        other.unwrap_or(&self.statements)
    }

    /// A driver's default timestamp, shifted by as much as our clock is ahead of the machine's, which the driver reads.
    /// Otherwise the driver's writes would be older than those that the server timestamps. (`USING TIMESTAMP` is part
    /// of the statement and stays unchanged.)
    fn shifted(&self, timestamp_micros: Option<i64>) -> Option<i64> {
        let ahead = self.clock.ahead_of_machine_micros();
        timestamp_micros.map(|micros| micros.saturating_add(ahead))
    }

    /// The parameters of a request, moved out of its message.
    fn params(&self, sent: &mut Params<'_>, around: &mut Around) -> QueryParams {
        QueryParams {
            consistency: sent.consistency,
            serial_consistency: sent.serial_consistency,
            values: match std::mem::replace(&mut sent.values, WireValues::NONE) {
                WireValues::Positional(values) => Values::Positional(bound_values(values)),
                WireValues::Named(values) => Values::Named(
                    values
                        .into_iter()
                        .map(|(name, value)| (name.to_owned(), bound_value(value)))
                        .collect(),
                ),
            },
            page_size_rows: sent.page_size_rows,
            paging_state: sent.paging_state.take(),
            timestamp_micros: self.shifted(sent.default_timestamp_micros),
            keyspace: sent.keyspace.map(Arc::from),
            now_seconds: sent.now_in_seconds,
            trace: around.trace,
            payload: std::mem::take(&mut around.payload),
            request_bytes: around.request_bytes,
            wants_feed_positions: false,
        }
    }

    /// Answers a request; where it needs the owner of the partitions, with its help.
    async fn answer(&self, session: &Session, header: &Header, body: &Bytes) -> Result<Response, Refused> {
        if let Some(relay) = &self.relay
            && !relay.may_answer()
            && !Box::pin(relay.until_may_answer()).await
        {
            return Err(out_of_touch().into());
        }
        let answered = self.answer_here(session, header, body).await;
        let needs = answered.as_ref().err().and_then(|refused| refused.needs_owner);
        match needs.zip(self.relay.as_ref()) {
            None => answered,
            Some((Needs::Catalog, relay)) => {
                Box::pin(relay.catch_up()).await;
                self.answer_here(session, header, body).await
            }
            Some((Needs::Owner, relay)) => {
                let request = self.for_relay(session, header, body)?;
                Ok(Box::pin(relay.relay(request)).await)
            }
        }
    }

    /// A request with all that another node needs to carry it out.
    fn for_relay(&self, session: &Session, header: &Header, body: &Bytes) -> Result<RelayedRequest, Refused> {
        let request = Request::parse(header, body).map_err(|malformed| ErrorBody::protocol(malformed.to_string()))?;
        let ids: Vec<&[u8]> = match &request {
            Request::Execute(execute) => vec![execute.id],
            Request::Batch(batch) => {
                let subjects = batch.statements.iter().map(|statement| &statement.subject);
                let prepared = subjects.filter_map(|subject| match subject {
                    Subject::Prepared(id) => Some(*id),
                    Subject::Text(_) => None,
                });
                prepared.collect()
            }
            _ => Vec::new(),
        };
        let mut prepared = Vec::with_capacity(ids.len());
        for id in ids {
            let entry = self.statement(session, id)?;
            prepared.push((entry.keyspace.clone(), Arc::clone(&entry.text)));
        }
        let state = session.state();
        Ok(RelayedRequest {
            client: session.client(),
            user: state.user.clone(),
            keyspace: state.keyspace.clone(),
            header: *header,
            body: body.clone(),
            prepared,
        })
    }

    /// Carries out a request that another node has relayed, as the owner of the partitions.
    pub async fn answer_relayed(&self, request: &RelayedRequest, events: &Arc<Events>) -> Response {
        let session = Session::new(request.client, false, Arc::clone(events));
        session.act_as(request.user.clone(), request.keyspace.clone());
        for (keyspace, text) in &request.prepared {
            if let Err(error) = self
                .plan(keyspace.clone(), Arc::clone(text))
                .map(|planned| self.statements.insert(planned))
            {
                return refused(&error).response();
            }
        }
        let answered = self.answer_here(&session, &request.header, &request.body).await;
        answered.unwrap_or_else(Refused::response)
    }

    async fn answer_here(&self, session: &Session, header: &Header, body: &Bytes) -> Result<Response, Refused> {
        let mut request =
            Request::parse(header, body).map_err(|malformed| ErrorBody::protocol(malformed.to_string()))?;
        let payload = payload(header, body).map_err(|malformed| ErrorBody::protocol(malformed.to_string()))?;
        let _memory = match weight::counted(&request, body.len()) {
            None => None,
            Some(bytes) => Some(self.memory(bytes).await?),
        };
        let mut around = Around {
            payload,
            request_bytes: u32::try_from(body.len()).unwrap_or(u32::MAX),
            trace: None,
            notes: Vec::new(),
        };
        if header.flags & flags::TRACING != 0 {
            return self.traced(session, header.version, request, around).await;
        }
        let is_requested = around.payload.iter().any(|(name, _)| name == REQUEST_CHARGE);
        let outcome = self.untraced(session, header.version, &mut request, &mut around).await;
        outcome.or_else(|error| self.with_refused_charge(is_requested, error))
    }

    /// Takes memory for a heavy request; waits for it in order of arrival.
    async fn memory(&self, bytes: usize) -> Result<Granted, Refused> {
        match self.pool.try_take(bytes) {
            Some(memory) => Ok(memory),
            None => Box::pin(Arc::clone(&self.pool).wait_for(bytes))
                .await
                .map_err(|_| ErrorBody::overloaded(incoming::REFUSAL).into()),
        }
    }

    /// A refusal because of request units carries a charge, as in Cosmos, which no budget pays. Other errors carry
    /// none.
    fn with_refused_charge(&self, is_requested: bool, error: Refused) -> Result<Response, Refused> {
        if !error.is_throttle || !self.returns_charge(is_requested) {
            return Err(error);
        }
        let charge = vec![payload_of(REFUSED_CHARGE)];
        Ok(Response::from(Body::Error(error.body)).with_extras(Vec::new(), charge))
    }

    /// Whether a response holds the charge; `is_requested` means the client requested it.
    const fn returns_charge(&self, is_requested: bool) -> bool {
        match self.charge_payload {
            ChargePayload::Always => true,
            ChargePayload::Asked => is_requested,
            ChargePayload::Never => false,
        }
    }

    /// Executes a request on the database. The message is processed in place, because it is large.
    async fn untraced(
        &self,
        session: &Session,
        version: Version,
        request: &mut Request<'_>,
        around: &mut Around,
    ) -> Result<Response, Refused> {
        match request {
            Request::Execute(execute) => self.execute(session, version, execute, around).await,
            Request::Query(query) => self.query(session, query, around).await,
            Request::Batch(batch) => self.batch(session, batch, around).await,
            Request::Prepare(prepare) => self.prepare(session, prepare),
            Request::Startup(_) | Request::AuthResponse(_) | Request::Options | Request::Register(_) => {
                Err(ErrorBody::protocol("Not a request of the database").into())
            }
        }
    }

    /// As [`Requests::untraced`], and writes the trace to `system_traces` before the response. Boxed, because it is
    /// rare and long.
    async fn traced(
        &self,
        session: &Session,
        version: Version,
        mut request: Request<'_>,
        mut around: Around,
    ) -> Result<Response, Refused> {
        let mut trace = self.begin_trace(session, &request);
        around.trace = Some(trace.id());
        let response = Box::pin(self.untraced(session, version, &mut request, &mut around)).await;
        if let Err(
            Refused {
                no_room_bytes: Some(_), ..
            }
            | Refused {
                needs_owner: Some(_), ..
            },
        ) = response
        {
            // The trace is written when the request begins again, or by the node that carries it out.
            return response;
        }
        for note in &around.notes {
            trace.event(note);
        }
        // The end of the session is an event too: cqlsh prints a line for it.
        if let Err(error) = &response {
            trace.failed(
                error.body.message(),
                &format!("error 0x{:04x}", error.body.code().number()),
            );
        }
        let id = trace.id();
        Box::pin(self.tracer.store(trace, session.client())).await;
        let mut response = response.unwrap_or_else(Refused::response);
        response.tracing_id = Some(id.into_bytes());
        Ok(response)
    }

    /// Keeps the trace's notes; returns the charge's entry of the custom payload.
    fn around_answer(&self, is_requested: bool, answer: &mut Answer, around: &mut Around) -> Vec<(String, Bytes)> {
        around.notes.append(&mut answer.notes);
        if self.returns_charge(is_requested) {
            vec![payload_of(answer.charge)]
        } else {
            Vec::new()
        }
    }

    async fn query(&self, session: &Session, query: &mut Query<'_>, around: &mut Around) -> Result<Response, Refused> {
        let mode = if query.params.skip_metadata {
            MetadataMode::Skipped
        } else {
            MetadataMode::Full
        };
        let params = self.params(&mut query.params, around);
        let state = session.state();
        let outcome = self.database.query(&state, query.text, &params).await;
        let mut answer = outcome.map_err(|error| refused(&error))?;
        let charge = self.around_answer(requests_charge(&params), &mut answer, around);
        Ok(respond(session, answer, charge, |rows| {
            (Arc::new(wire_metadata(&rows.metadata)), mode)
        }))
    }

    fn prepare(&self, session: &Session, prepare: &Prepare<'_>) -> Result<Response, Refused> {
        let state = session.state();
        if let Some(keyspace) = prepare.keyspace {
            let checked = self.database.check_keyspace(keyspace);
            checked.map_err(|error| refused(&error))?;
        }
        let keyspace: Option<Arc<str>> = prepare.keyspace.map(Arc::from).or_else(|| state.keyspace.clone());
        metrics::STATEMENTS_PREPARED.increment();
        let statements = self.statements(session);
        let unqualified = prepared::id(keyspace.as_deref(), prepare.text);
        let version = self.database.engine().schema_version();
        let kept = [unqualified, prepared::id(None, prepare.text)]
            .iter()
            .find_map(|id| statements.get(id))
            .filter(|entry| entry.schema_version == version);
        let planned = match kept {
            Some(entry) => Ok(entry),
            None => self
                .plan(keyspace.clone(), prepare.text.into())
                .map(|planned| statements.insert(planned)),
        };
        if let Some(audit) = &self.audit {
            let statement = AuditedStatement {
                text: prepare.text,
                keyspace: keyspace.as_deref(),
            };
            audit.record(AuditEntry {
                client: session.client(),
                user: state.user.as_deref(),
                subject: &AuditedPrepare(statement),
                failure: planned.as_ref().err().map(cql::Error::audit_failure),
            });
        }
        let entry = planned.map_err(|error| refused(&error))?;
        let mut warnings = Vec::new();
        if !entry.statement.is_fully_qualified() && session.warn_of_use() {
            warnings.push(use_warning(state.keyspace.as_deref(), &entry));
        }
        Ok(Response::from(Body::Prepared(Box::new(entry.prepared.clone()))).with_extras(warnings, Vec::new()))
    }

    /// Plans a text.
    fn plan(&self, keyspace: Option<Arc<str>>, text: Arc<str>) -> Result<Entry, cql::Error> {
        let statement = self.database.prepare(keyspace.as_deref(), &text)?;
        let keyspace = if statement.is_fully_qualified() { None } else { keyspace };
        let result = statement.result();
        let spec = |marker: &helenus_schema::planner::MarkerSpec| ColumnSpec {
            keyspace: Arc::clone(&marker.keyspace),
            table: Arc::clone(&marker.table),
            name: marker.name.clone(),
            ty: marker.ty.clone(),
        };
        let prepared = Prepared {
            id: prepared::id(keyspace.as_deref(), &text),
            markers: Arc::new(Metadata::new(statement.markers().iter().map(spec).collect())),
            partition_key_markers: statement.partition_key_markers(),
            result: result.as_deref().map(|result| Arc::new(wire_metadata(result))),
        };
        let version = statement.schema_version();
        Ok(Entry::new(
            text,
            keyspace,
            Arc::new(statement),
            version,
            prepared,
            result,
        ))
    }

    /// The statement of an id, planned for the current schema.
    fn statement(&self, session: &Session, id: &[u8]) -> Result<Arc<Entry>, Refused> {
        let unprepared = || -> Refused {
            metrics::STATEMENTS_UNKNOWN.increment();
            ErrorBody::unprepared(id).into()
        };
        let known: Id = id.try_into().map_err(|_| unprepared())?;
        let statements = self.statements(session);
        let entry = statements.get(&known).ok_or_else(unprepared)?;
        self.current(statements, entry).ok_or_else(unprepared)
    }

    /// The statement planned for the current schema. `None` means that a change of the schema has invalidated it, and it is evicted.
    fn current(&self, statements: &Statements, entry: Arc<Entry>) -> Option<Arc<Entry>> {
        if entry.schema_version == self.database.engine().schema_version() {
            return Some(entry);
        }
        // Its table may have changed or been dropped. As in Cassandra, the client receives that error when it prepares
        // again.
        let planned = self.plan(entry.keyspace.clone(), Arc::clone(&entry.text));
        match planned {
            Ok(planned) if !entry.is_outdated(&planned) => Some(statements.insert(planned)),
            Ok(_) | Err(_) => {
                statements.remove(&entry.prepared.id);
                None
            }
        }
    }

    async fn execute(
        &self,
        session: &Session,
        version: Version,
        execute: &mut Execute<'_>,
        around: &mut Around,
    ) -> Result<Response, Refused> {
        let entry = self.statement(session, execute.id)?;
        let skip = execute.params.skip_metadata;
        let params = self.params(&mut execute.params, around);
        let state = session.state();
        let outcome = self.database.execute(&state, &entry.statement, &params).await;
        let mut answer = outcome.map_err(|error| refused(&error))?;
        let charge = self.around_answer(requests_charge(&params), &mut answer, around);
        Ok(respond(session, answer, charge, |rows| {
            let known = entry.prepared.result.as_ref().zip(entry.result.as_ref());
            let Some((metadata, result)) = known else {
                // Conditional statements: the columns depend on the outcome, so they are always sent.
                return (Arc::new(wire_metadata(&rows.metadata)), MetadataMode::Full);
            };
            if !Arc::ptr_eq(result, &rows.metadata) && **result != *rows.metadata {
                return (Arc::new(wire_metadata(&rows.metadata)), MetadataMode::Full);
            }
            let mode = match execute.result_metadata_id {
                Some(id) if version >= Version::V5 && *id != metadata.id() => MetadataMode::Changed,
                _ if skip && (version >= Version::V5 || !entry.result_changed) => MetadataMode::Skipped,
                _ => MetadataMode::Full,
            };
            (Arc::clone(metadata), mode)
        }))
    }

    async fn batch(&self, session: &Session, batch: &mut Batch<'_>, around: &mut Around) -> Result<Response, Refused> {
        let mut members = Vec::with_capacity(batch.statements.len());
        for statement in std::mem::take(&mut batch.statements) {
            let member = match statement.subject {
                Subject::Text(text) => Member::Text(text.to_owned()),
                Subject::Prepared(id) => {
                    let entry = self.statement(session, id)?;
                    Member::Prepared(Arc::clone(&entry.statement))
                }
            };
            members.push((member, bound_values(statement.values)));
        }
        let kind = match batch.batch_type {
            BatchType::Logged => BatchKind::Logged,
            BatchType::Unlogged => BatchKind::Unlogged,
            BatchType::Counter => BatchKind::Counter,
        };
        let params = QueryParams {
            consistency: batch.consistency,
            serial_consistency: batch.serial_consistency,
            timestamp_micros: self.shifted(batch.default_timestamp_micros),
            keyspace: batch.keyspace.map(Arc::from),
            now_seconds: batch.now_in_seconds,
            trace: around.trace,
            payload: std::mem::take(&mut around.payload),
            request_bytes: around.request_bytes,
            ..QueryParams::default()
        };
        let state = session.state();
        let outcome = self.database.batch(&state, kind, members, &params).await;
        let mut answer = outcome.map_err(|error| refused(&error))?;
        let charge = self.around_answer(requests_charge(&params), &mut answer, around);
        Ok(respond(session, answer, charge, |rows| {
            (Arc::new(wire_metadata(&rows.metadata)), MetadataMode::Full)
        }))
    }
}

impl Handler for Requests {
    async fn handle(self: Arc<Self>, session: Arc<Session>, header: Header, body: Bytes) -> Handled {
        // To parse and plan a large request may take long.
        let answered = if body.len() > incoming::LARGE_BYTES {
            Box::pin(apart(self.answer(&session, &header, &body))).await
        } else {
            self.answer(&session, &header, &body).await
        };
        match answered {
            Ok(response) => Handled::Answer(response),
            Err(Refused {
                no_room_bytes: Some(answer_bytes),
                ..
            }) => Handled::NoRoom(Postponed {
                header,
                body,
                answer_bytes,
            }),
            Err(error) => Handled::Answer(error.response()),
        }
    }
}

/// The same value; the compiler reuses the vector's memory, so this copies no list.
fn bound_values(values: Vec<WireValue>) -> Vec<Value> {
    values.into_iter().map(bound_value).collect()
}

fn bound_value(value: WireValue) -> Value {
    match value {
        WireValue::Null => Value::Null,
        WireValue::Unset => Value::Unset,
        WireValue::Bytes(bytes) => Value::Bytes(bytes),
    }
}

fn wire_metadata(metadata: &ResultMetadata) -> Metadata {
    let keyspace: Arc<str> = metadata.keyspace.as_str().into();
    let table: Arc<str> = metadata.table.as_str().into();
    let spec = |column: &helenus_schema::command::ResultColumn| ColumnSpec {
        keyspace: Arc::clone(&keyspace),
        table: Arc::clone(&table),
        name: column.name.clone(),
        ty: column.ty.clone(),
    };
    Metadata::new(metadata.columns.iter().map(spec).collect())
}

/// The response as a message, with its effects on the connection and on others.
fn respond(
    session: &Session,
    answer: Answer,
    payload: Vec<(String, Bytes)>,
    metadata: impl FnOnce(&AnswerRows) -> (Arc<Metadata>, MetadataMode),
) -> Response {
    let body = match answer.kind {
        AnswerKind::Void => Body::Void,
        AnswerKind::Rows(rows) => {
            let (metadata, mode) = metadata(&rows);
            Body::Rows(Rows {
                metadata,
                mode,
                paging_state: rows.paging_state,
                row_count: rows.row_count,
                content: rows.content,
            })
        }
        AnswerKind::SetKeyspace(keyspace) => {
            session.set_keyspace(&keyspace);
            Body::SetKeyspace(keyspace)
        }
        AnswerKind::SchemaChange(change) => {
            // Events are emitted where changes are committed, in that order.
            Body::SchemaChange(Box::new(schema_change(change)))
        }
    };
    Response::from(body).with_extras(answer.warnings, payload)
}

/// The custom payload's entry for a charge.
fn payload_of(charge: RequestUnits) -> (String, Bytes) {
    let bytes = Bytes::copy_from_slice(&charge.as_f64().to_be_bytes());
    (REQUEST_CHARGE.to_owned(), bytes)
}

/// Whether the request's own payload requests the charge.
fn requests_charge(params: &QueryParams) -> bool {
    params.payload_value(REQUEST_CHARGE).is_some()
}

/// Emits an event for each schema change, in the order of their commits.
pub(crate) fn emit_schema_changes(database: &Database, events: &Arc<Events>) {
    let events = Arc::clone(events);
    database.engine().set_schema_listener(Box::new(move |changes| {
        for change in changes {
            events.emit(Event::Schema(schema_change(change.clone())));
        }
    }));
}

/// A schema change as a protocol event.
fn schema_change(change: Changed) -> SchemaChange {
    SchemaChange {
        kind: match change.kind {
            Kind::Created => ChangeKind::Created,
            Kind::Updated => ChangeKind::Updated,
            Kind::Dropped => ChangeKind::Dropped,
        },
        target: match change.target {
            Target::Keyspace => ChangeTarget::Keyspace,
            Target::Table => ChangeTarget::Table(change.name),
            Target::Type => ChangeTarget::Type(change.name),
            Target::Function => ChangeTarget::Function(change.name, change.arguments),
            Target::Aggregate => ChangeTarget::Aggregate(change.name, change.arguments),
        },
        keyspace: change.keyspace,
    }
}

fn use_warning(session: Option<&str>, entry: &Entry) -> String {
    let id: String = entry.prepared.id.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "`USE <keyspace>` with prepared statements is considered to be an anti-pattern due to ambiguity in non-qualified \
         table names. Please consider removing instances of `Session#setKeyspace(<keyspace>)`, \
         `Session#execute(\"USE <keyspace>\")` and `cluster.newSession(<keyspace>)` from your code, and always use fully \
         qualified table names (e.g. <keyspace>.<table>). Keyspace used: {}, statement keyspace: {}, statement id: {id}",
        session.unwrap_or("null"),
        entry.keyspace.as_deref().unwrap_or("null"),
    )
}

#[cfg(test)]
#[path = "requests_tests.rs"]
pub(super) mod tests;
