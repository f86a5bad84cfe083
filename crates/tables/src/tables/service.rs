//! The service: a request to its answer.
//!
//! ```text
//! head and body ─► account (address) ─► who (auth) ─► call ─► may it? ─► store ─► reply ─► frame: ids, times, version
//! ```
//! Every refusal is an answer; its form follows what the client takes.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use helenus_base::clock::Clock;
use helenus_engine::throughput::RequestUnits;
use http::request::Parts;
use http::{HeaderMap, Method, Response, header};
use uuid::Uuid;

use super::address::{Parameters, Resource, Target, of_entity};
use super::auth::{self, Access, Account, Credential, Policy, Signed, http_date};
use super::call::{self, Call, Format};
use super::cors;
use super::edm::Edm;
use super::entity::{Entity, check_table_name};
use super::fault::Fault;
use super::filter::Filter;
use super::frame::{FaultForm, Frame, Reply};
use super::json::{self, Body, Level, Origin, Selected};
use super::operation::{Asker, Operation, PAGE_ENTITIES_MAX, Page, Place, Query, Verb};
use super::store::Store;
use super::token;
use super::xml::{self, Properties};

/// Bytes of a request's body: 4 MiB. Source: Performing entity group transactions.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How long a request may take, if it does not ask for less. Source: Setting timeouts for Table service operations.
pub const REQUEST_WITHIN: Duration = Duration::from_secs(30);

/// The setting with the properties of the service.
const PROPERTIES_KEY: &str = "properties";

/// The header by which a client asks for the plan and the charge.
const EXPLAIN: &str = "x-helenus-explain";

/// Serves the tables of accounts.
#[derive(Debug)]
pub struct Service {
    pub(super) store: Store,
    accounts: HashMap<String, Account, foldhash::fast::RandomState>,
    clock: Clock,
    /// Draws ids of requests and boundaries.
    draws: Mutex<fastrand::Rng>,
}

/// Where a request comes from.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// The client.
    pub client: SocketAddr,
    /// Whether it came by https.
    pub is_tls: bool,
}

/// The body of a request.
#[derive(Clone, Debug)]
pub enum Sent {
    /// All of it.
    Whole(Bytes),
    /// It has more than [`BODY_BYTES_MAX`], and was not read.
    TooLarge,
    /// There was no memory for it in time.
    NoRoom,
    /// It did not come whole.
    Cut,
}

/// A request whose head was read, and not its body.
#[derive(Debug)]
pub struct Begun {
    frame: Frame,
    step: Step,
}

impl Begun {
    /// Whether its sender has shown who asks, so that its body is worth memory.
    #[must_use]
    pub const fn is_admitted(&self) -> bool {
        matches!(self.step, Step::Admitted(_))
    }
}

#[derive(Debug)]
enum Step {
    /// Its body is needed.
    Admitted(Box<Known>),
    /// It is answered whatever its body is.
    Answered(Result<Reply, Fault>),
}

/// What the head of an admitted request says.
#[derive(Debug)]
struct Known {
    parameters: Parameters,
    target: Target,
    /// Judged only where the answer has a format.
    format: Result<Format, Fault>,
    access: Access,
}

/// A request that was understood, as far as its answer needs it.
pub(super) struct Context<'a> {
    pub(super) asker: Asker<'a>,
    pub(super) access: &'a Access,
    pub(super) target: &'a Target,
    pub(super) host: &'a str,
    pub(super) headers: &'a HeaderMap,
    pub(super) parameters: &'a Parameters,
    pub(super) origin: Origin<'a>,
    pub(super) level: Level,
    pub(super) frame: &'a Frame,
}

impl Context<'_> {
    fn select(&self) -> Option<Selected<'_>> {
        self.parameters.get("$select").map(|text| Selected { text })
    }

    /// With the plan and the charge, if the client asks for them.
    pub(super) fn explained(&self, reply: Reply, plan: Option<&str>, charge: RequestUnits) -> Reply {
        let asked = self
            .headers
            .get(EXPLAIN)
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"));
        if !asked {
            return reply;
        }
        let reply = reply.with("x-ms-request-charge", charge.to_string());
        match plan {
            Some(plan) => reply.with("x-helenus-plan", plan),
            None => reply,
        }
    }
}

/// What a client wants back of an insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preference {
    /// It does not say: the content.
    Unsaid,
    /// `return-content`
    Content,
    /// `return-no-content`
    NoContent,
}

impl Preference {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let values = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
        let mut words = values.flat_map(|value| value.split([',', ';'])).map(str::trim);
        let found = words.find_map(|word| match word {
            "return-no-content" => Some(Self::NoContent),
            "return-content" => Some(Self::Content),
            _ => None,
        });
        found.unwrap_or(Self::Unsaid)
    }

    /// The header that confirms it; only for a client that sent a preference.
    pub(super) const fn applied(self) -> Option<&'static str> {
        match self {
            Self::Unsaid => None,
            Self::Content => Some("return-content"),
            Self::NoContent => Some("return-no-content"),
        }
    }
}

impl Service {
    /// Serves accounts. `seed` is the source of ids.
    #[must_use]
    pub fn new(store: Store, accounts: Vec<Account>, clock: Clock, seed: u64) -> Self {
        let accounts = accounts.into_iter().map(|account| (account.name.clone(), account));
        Self {
            store,
            accounts: accounts.collect(),
            clock,
            draws: Mutex::new(fastrand::Rng::with_seed(seed)),
        }
    }

    /// A new id.
    pub(super) fn draw(&self) -> Uuid {
        let bits = self.draws.lock().unwrap_or_else(PoisonError::into_inner).u128(..);
        uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
    }

    /// Begins a request by its head: finds out who asks.
    pub async fn begin(&self, head: &Parts, peer: Peer) -> Begun {
        let mut frame = Frame::new(self.draw(), self.clock.wall_micros(), &head.headers);
        let step = self.identify(head, peer, &mut frame).await;
        Begun {
            step: step.unwrap_or_else(|fault| Step::Answered(Err(fault))),
            frame,
        }
    }

    /// Answers a request that was begun. The body of one that is not admitted counts for nothing.
    pub async fn answer(&self, head: &Parts, begun: Begun, body: Sent, peer: Peer) -> Response<Bytes> {
        let Begun { mut frame, step } = begun;
        let reply = match step {
            Step::Answered(reply) => reply,
            Step::Admitted(known) => self.handle(head, &known, body, peer, &mut frame).await,
        };
        let mut reply = reply.unwrap_or_else(|fault| frame.refusal(&fault));
        reply.headers.extend(self.cors(head, peer).await);
        frame.response(reply)
    }

    async fn identify(&self, head: &Parts, peer: Peer, frame: &mut Frame) -> Result<Step, Fault> {
        let parameters = Parameters::parse(head.uri.query().unwrap_or_default())?;
        let target = self.target(host(head), head.uri.path())?;
        if head.method == Method::OPTIONS {
            return Ok(Step::Answered(self.preflight(head, &target, peer).await));
        }
        let format = Format::of(&parameters, &head.headers);
        if let Ok(Format {
            level,
            is_json_asked: true,
        }) = format
        {
            frame.form = FaultForm::Json(level);
        }
        let version = head
            .headers
            .get("x-ms-version")
            .map(|value| value.to_str().unwrap_or_default());
        frame.set_version(version.or(parameters.get("sv")))?;
        let access = self.access(head, &parameters, &target, peer, frame).await?;
        Ok(Step::Admitted(Box::new(Known {
            parameters,
            target,
            format,
            access,
        })))
    }

    async fn handle(
        &self,
        head: &Parts,
        known: &Known,
        body: Sent,
        peer: Peer,
        frame: &mut Frame,
    ) -> Result<Reply, Fault> {
        let Known {
            parameters,
            target,
            format,
            access,
        } = known;
        let body = match body {
            Sent::Whole(body) => body,
            Sent::TooLarge => return Err(Fault::RequestBodyTooLarge),
            Sent::NoRoom => return Err(Fault::ServerBusy),
            Sent::Cut => return Err(Fault::InvalidInput),
        };
        check_data_service_version(&head.headers)?;
        let within = within(parameters)?;
        let method = call::method(&head.method, &head.headers)?;
        let resource = Resource::parse(&target.path)?;
        let call = Call::of(&method, resource, parameters, &head.headers)?;
        if !call.is_xml() {
            if frame.form == FaultForm::PrefixedXml {
                frame.form = FaultForm::Xml;
            }
            format.clone()?;
        }
        if let Some(need) = call.need() {
            access.check(need)?;
        }
        if target.is_secondary && call.is_write() {
            return Err(Fault::InsufficientAccountPermissions);
        }
        let scheme = if peer.is_tls { "https" } else { "http" };
        let host = host(head);
        let context = Context {
            asker: Asker {
                account: &target.account,
                client: peer.client,
            },
            access,
            target,
            host,
            headers: &head.headers,
            parameters,
            origin: Origin {
                base: &format!("{scheme}://{host}{}", target.prefix),
                account: &target.account,
            },
            level: format.as_ref().map_or(Level::default(), |format| format.level),
            frame,
        };
        match tokio::time::timeout(within, self.execute(&context, call, &body)).await {
            Ok(done) => done,
            Err(_) => Err(Fault::OperationTimedOut),
        }
    }

    fn target(&self, host: &str, path: &str) -> Result<Target, Fault> {
        Target::of(host, path, |name| self.accounts.contains_key(name))
    }

    /// Finds out who asks.
    async fn access(
        &self,
        head: &Parts,
        parameters: &Parameters,
        target: &Target,
        peer: Peer,
        frame: &Frame,
    ) -> Result<Access, Fault> {
        let signed = Signed {
            method: &head.method,
            path: head.uri.path(),
            parameters,
            headers: &head.headers,
            client: peer.client.ip(),
            is_tls: peer.is_tls,
            now_seconds: frame.now_micros.div_euclid(1_000_000),
        };
        let credential = Credential::of(&signed)?;
        let account = self.accounts.get(&target.account).ok_or(Fault::AuthenticationFailed)?;
        let policy = match (credential, parameters.some("si"), parameters.some("tn")) {
            (Credential::TableSas, Some(id), Some(table)) => {
                let asker = Asker {
                    account: &account.name,
                    client: peer.client,
                };
                let policies = self.policies(&asker, table).await?;
                policies.into_iter().find(|policy| policy.id == id)
            }
            _ => None,
        };
        auth::authenticate(account, credential, &signed, policy.as_ref())
    }

    pub(super) async fn execute(&self, context: &Context<'_>, call: Call, body: &Bytes) -> Result<Reply, Fault> {
        let asker = &context.asker;
        match call {
            Call::ListTables { filter, top, from } => self.list_tables(context, filter.as_ref(), top, from).await,
            Call::GetTable(name) => {
                check_table_name(&name)?;
                let name = self.store.table(asker, &name).await?.ok_or(Fault::ResourceNotFound)?;
                Ok(Reply::json(
                    200,
                    context.level,
                    Body::table(context.origin, &name, context.level),
                ))
            }
            Call::CreateTable => self.create_table(context, body).await,
            Call::DeleteTable(name) => {
                check_table_name(&name)?;
                self.store.delete_table(asker, &name).await?;
                self.forget_policies(asker, &name).await?;
                Ok(Reply::empty(204))
            }
            Call::Query {
                table,
                filter,
                top,
                from,
            } => self.query(context, &table, filter, top, from).await,
            Call::Get {
                table,
                partition_key,
                row_key,
            } => self.get(context, &table, &partition_key, &row_key).await,
            call @ (Call::Insert { .. } | Call::Change { .. }) => {
                let (table, operation) = call::operation(call, context.headers, body)?;
                context.access.check(call::need(&table, &operation))?;
                self.change(context, &table, operation).await
            }
            Call::Batch => self.batch(context, body).await,
            Call::GetProperties => Ok(Reply::xml(200, self.properties(asker).await?.document())),
            Call::SetProperties => {
                let properties = self.properties(asker).await?.changed_by(body)?;
                let document = Bytes::from(properties.document());
                self.store.set_setting(asker, PROPERTIES_KEY, Some(document)).await?;
                Ok(Reply::empty(202))
            }
            Call::Stats if context.target.is_secondary => {
                let now = http_date(context.frame.now_micros.div_euclid(1_000_000));
                Ok(Reply::xml(200, xml::stats_document(&now)))
            }
            Call::Stats => Err(Fault::InvalidQueryParameterValue),
            Call::GetAcl(table) => {
                self.store.table(asker, &table).await?.ok_or(Fault::TableNotFound)?;
                Ok(Reply::xml(
                    200,
                    xml::policies_document(&self.policies(asker, &table).await?),
                ))
            }
            Call::SetAcl(table) => {
                let policies = xml::policies(body)?;
                self.store.table(asker, &table).await?.ok_or(Fault::TableNotFound)?;
                let document = (!policies.is_empty()).then(|| Bytes::from(xml::policies_document(&policies)));
                self.store.set_setting(asker, &acl_key(&table), document).await?;
                Ok(Reply::empty(204))
            }
        }
    }

    async fn list_tables(
        &self,
        context: &Context<'_>,
        filter: Option<&Filter>,
        top: Option<u32>,
        mut from: Option<String>,
    ) -> Result<Reply, Fault> {
        let top = top.unwrap_or(PAGE_ENTITIES_MAX);
        let top_names = usize::try_from(top).unwrap_or(usize::MAX);
        let mut names: Vec<String> = Vec::new();
        if top == 0 {
            let body = Body::tables(context.origin, &names, context.level);
            return Ok(Reply::json(200, context.level, body));
        }
        let next = loop {
            let read = self.store.tables(&context.asker, from.as_deref(), PAGE_ENTITIES_MAX);
            let (page, after) = read.await?;
            let mut matching = page
                .into_iter()
                .filter(|name| filter.is_none_or(|filter| matches(filter, name)));
            names.extend(matching.by_ref().take(top_names - names.len()));
            // The place of the next page is the first name that this one has no room for.
            let over = matching.next();
            if over.is_some() || after.is_none() {
                break over;
            }
            if names.len() >= top_names {
                break after;
            }
            from = after;
        };
        let body = Body::tables(context.origin, &names, context.level);
        let reply = Reply::json(200, context.level, body);
        Ok(match next {
            Some(next) => reply.with("x-ms-continuation-NextTableName", token::token(&next)),
            None => reply,
        })
    }

    async fn create_table(&self, context: &Context<'_>, body: &[u8]) -> Result<Reply, Fault> {
        call::check_content_type(context.headers)?;
        let name = json::table_name(body)?;
        check_table_name(&name)?;
        self.store.create_table(&context.asker, &name).await?;
        // What a table of the same name left behind when its removal was cut half way.
        self.forget_policies(&context.asker, &name).await?;
        let location = format!("{}/Tables('{name}')", context.origin.base);
        let preference = Preference::of(context.headers);
        let mut reply = if preference == Preference::NoContent {
            Reply::empty(204).with("DataServiceId", location.clone())
        } else {
            Reply::json(201, context.level, Body::table(context.origin, &name, context.level))
        };
        reply = reply.with("Location", location);
        Ok(match preference.applied() {
            Some(applied) => reply.with("Preference-Applied", applied),
            None => reply,
        })
    }

    pub(super) async fn query(
        &self,
        context: &Context<'_>,
        table: &str,
        filter: Option<Filter>,
        top: Option<u32>,
        from: Option<Place>,
    ) -> Result<Reply, Fault> {
        let level = context.level;
        if top == Some(0) {
            self.store
                .table(&context.asker, table)
                .await?
                .ok_or(Fault::TableNotFound)?;
            let body = Body::entities(context.origin, table, &[], context.select(), level);
            return Ok(Reply::json(200, level, body));
        }
        let query = Query {
            filter,
            bounds: context.access.bounds().cloned(),
            top,
            from,
        };
        let page = self.store.query(&context.asker, table, &query).await?;
        let body = Body::entities(context.origin, table, &page.entities, context.select(), level);
        let reply = continued(Reply::json(200, level, body), &page);
        Ok(context.explained(reply, Some(page.plan.name()), page.charge))
    }

    pub(super) async fn get(
        &self,
        context: &Context<'_>,
        table: &str,
        partition_key: &str,
        row_key: &str,
    ) -> Result<Reply, Fault> {
        let bounds = context.access.bounds();
        if bounds.is_some_and(|bounds| !bounds.contains(partition_key, row_key)) {
            return Err(Fault::ResourceNotFound);
        }
        let found = self.store.get(&context.asker, table, partition_key, row_key).await?;
        let body = Body::entity(context.origin, table, &found.entity, context.select(), context.level);
        let reply = Reply::json(200, context.level, body).with("ETag", found.entity.etag());
        Ok(context.explained(reply, Some("point"), found.charge))
    }

    async fn change(&self, context: &Context<'_>, table: &str, operation: Operation) -> Result<Reply, Fault> {
        let written = self
            .store
            .write(&context.asker, table, std::slice::from_ref(&operation))
            .await;
        let written = written.map_err(|refused| refused.fault)?;
        let version_micros = written.versions.first().copied().unwrap_or_default();
        let preference = Preference::of(context.headers);
        let reply = changed(
            context.origin,
            table,
            operation,
            version_micros,
            preference,
            context.level,
        );
        Ok(context.explained(reply, None, written.charge))
    }

    async fn properties(&self, asker: &Asker<'_>) -> Result<Properties, Fault> {
        match self.store.setting(asker, PROPERTIES_KEY).await? {
            Some(document) => Properties::default().changed_by(&document),
            None => Ok(Properties::default()),
        }
    }

    async fn policies(&self, asker: &Asker<'_>, table: &str) -> Result<Vec<Policy>, Fault> {
        match self.store.setting(asker, &acl_key(table)).await? {
            Some(document) => xml::policies(&document),
            None => Ok(Vec::new()),
        }
    }

    async fn forget_policies(&self, asker: &Asker<'_>, table: &str) -> Result<(), Fault> {
        let key = acl_key(table);
        if self.store.setting(asker, &key).await?.is_some() {
            self.store.set_setting(asker, &key, None).await?;
        }
        Ok(())
    }

    async fn preflight(&self, head: &Parts, target: &Target, peer: Peer) -> Result<Reply, Fault> {
        cors::preflight_headers(&head.headers)?;
        let account = self.accounts.get(&target.account).ok_or(Fault::CorsPreflightFailure)?;
        let asker = Asker {
            account: &account.name,
            client: peer.client,
        };
        let mut reply = Reply::empty(200);
        reply.headers = cors::preflight(&self.properties(&asker).await?.cors, &head.headers)?;
        Ok(reply)
    }

    /// The headers for a browser, where a request has an origin.
    async fn cors(&self, head: &Parts, peer: Peer) -> Vec<(&'static str, String)> {
        let origin = head.headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
        let Some(origin) = origin.filter(|_| head.method != Method::OPTIONS) else {
            return Vec::new();
        };
        let Ok(target) = self.target(host(head), head.uri.path()) else {
            return Vec::new();
        };
        let Some(account) = self.accounts.get(&target.account) else {
            return Vec::new();
        };
        let asker = Asker {
            account: &account.name,
            client: peer.client,
        };
        match self.properties(&asker).await {
            Ok(properties) => cors::plain(&properties.cors, origin, head.method.as_str()),
            Err(_) => Vec::new(),
        }
    }
}

/// The setting with the access policies of a table.
fn acl_key(table: &str) -> String {
    format!("acl/{}", table.to_ascii_lowercase())
}

/// The host that a client asked: of the address where it has one, else of the header.
fn host(head: &Parts) -> &str {
    let of_address = head.uri.authority().map(http::uri::Authority::as_str);
    let of_header = || head.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    of_address.or_else(of_header).unwrap_or("localhost")
}

/// Whether a filter finds a table of a name.
fn matches(filter: &Filter, name: &str) -> bool {
    let mut table = Entity::new(String::new(), String::new());
    table
        .properties
        .push(("TableName".to_owned(), Edm::String(name.to_owned())));
    filter.matches(&table)
}

/// How long a request may take.
fn within(parameters: &Parameters) -> Result<Duration, Fault> {
    match parameters.some("timeout").map(str::parse::<u32>) {
        None => Ok(REQUEST_WITHIN),
        Some(Ok(seconds @ 1..)) => Ok(REQUEST_WITHIN.min(Duration::from_secs(seconds.into()))),
        Some(_) => Err(Fault::InvalidQueryParameterValue),
    }
}

/// Checks the versions of OData that a client speaks: 1.0 to 3.0, with anything behind a semicolon.
fn check_data_service_version(headers: &HeaderMap) -> Result<(), Fault> {
    for name in ["dataserviceversion", "maxdataserviceversion"] {
        let value = headers.get(name).map(|value| value.to_str().unwrap_or_default());
        let version = value.map(|value| value.split(';').next().unwrap_or_default().trim());
        if !matches!(version, None | Some("1.0" | "2.0" | "3.0")) {
            return Err(Fault::InvalidHeaderValue);
        }
    }
    Ok(())
}

/// With the place of the next page.
fn continued(reply: Reply, page: &Page) -> Reply {
    let Some(next) = &page.next else { return reply };
    let reply = reply.with("x-ms-continuation-NextPartitionKey", token::token(&next.partition_key));
    match &next.row_key {
        Some(row_key) => reply.with("x-ms-continuation-NextRowKey", token::token(row_key)),
        None => reply,
    }
}

/// The answer to a change that was done.
pub(super) fn changed(
    origin: Origin<'_>,
    table: &str,
    operation: Operation,
    version_micros: i64,
    preference: Preference,
    level: Level,
) -> Reply {
    let mut entity = operation.entity;
    entity.version_micros = version_micros;
    match operation.verb {
        Verb::Delete => Reply::empty(204),
        Verb::Update | Verb::Merge | Verb::InsertOrReplace | Verb::InsertOrMerge => {
            Reply::empty(204).with("ETag", entity.etag())
        }
        Verb::Insert => {
            let address = of_entity(table, &entity.partition_key, &entity.row_key);
            let location = format!("{}/{address}", origin.base);
            let mut reply = if preference == Preference::NoContent {
                Reply::empty(204)
                    .with("Location", location.clone())
                    .with("DataServiceId", location)
            } else {
                Reply::json(201, level, Body::entity(origin, table, &entity, None, level)).with("Location", location)
            };
            if let Some(applied) = preference.applied() {
                reply.headers.insert(0, ("Preference-Applied", applied.to_owned()));
            }
            reply.with("ETag", entity.etag())
        }
    }
}
