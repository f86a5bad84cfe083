//! The admin port: HTTP on an address of this machine and on a socket in the data directory, for probes, scrapers and
//! `helenus status`.
//!
//! ```text
//! GET /                 every path, a line each
//! GET /livez            200 «ok»: the process answers; a line for each background task that panicked since the start.
//!                       503 when data can no longer be read, and the process is about to end. Without the lease of its
//!                       bucket 200 and another text than ok
//! GET /readyz           200 or 503, JSON: in each open store a record was written durably and read back within READY_WITHIN
//! GET /metrics          Prometheus's text format; this and the next five come from the module `views`
//! GET /api/status       the whole server in one object
//! GET /api/statements   by kind, and errors by code
//! GET /api/tables       sizes and latencies by table
//! GET /api/partitions   physical partitions with range, size, replicas
//! GET /api/keys         hot partition keys, and the largest; the keys themselves only with `admin-show-keys`
//! GET /api/faults       the fault plan; POST and DELETE change it (faults.rs)
//! GET /api/clock        the time of a server that keeps nothing; POST moves it (clock.rs)
//! POST /api/reset       empties a server that keeps nothing (clock.rs)
//! DELETE /api/nodes/N   forgets a node of a fleet that is down (nodes.rs)
//! GET /api/feed/KS/T    the change feed of a table, as server-sent events (feed.rs)
//! ```
//! The address is off unless `admin-listen` names one: management ports that are open by default have often been a way
//! into servers. Reading needs no login, so an address that other machines can reach must be allowed explicitly.
//! Changes need the token (changes.rs), and so do rows (feed.rs). Nothing else shows a user's value or text, and partition
//! keys are shown only with `admin-show-keys`.
//!
//! The socket `DIR/helenus.admin` always exists if the data lies in a directory. A client that can connect to it may
//! read and change everything, because only the file system controls that access (socket.rs):
//! `curl --unix-socket DIR/helenus.admin http://localhost/api/status`.
//!
//! The life of a connection: accepted, in the slot of a silent one if [`CONNECTIONS_MAX`] are open (slots.rs); closed
//! if nothing arrives within [`FIRST_BYTE_WITHIN`]; read into a buffer of at most [`REQUEST_BYTES_MAX`], answered once,
//! closed; all of that within [`CONNECTION_WITHIN`]. A stream is closed when it has sent nothing for that long.
//!
//! On a node of a fleet, figures of stores are those of the owner, which the node asks. `/metrics` shows stores on their owner only, so that a
//! scraper of all nodes counts nothing twice. `/readyz` says whether the node has heard from the owner within 2 s. Faults, the clock, resets and feeds are refused.
//!
//! On an address of this machine, a request for another host name is refused. Otherwise a page in a browser could make
//! its own name resolve to 127.0.0.1 and read everything (DNS rebinding).
//!
//! With roles on, clients log in (logins.rs).
//!
//! Deliberately absent: TLS.

mod changes;
pub mod client;
mod clock;
mod faults;
mod feed;
pub(crate) mod logins;
mod nodes;
pub mod report;
mod slots;
mod streams;
mod token;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{delete, get, post};
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use slots::{Slots, Stage};
use streams::Streams;
pub use streams::{ROLE_STREAMS_MAX, STREAMS_MAX};

use super::StartError;
use super::audit::Audit;
use super::requests::Relay;
use super::socket::OwnSocket;
use helenus_base::clock::Clock;
use helenus_base::metrics;
use helenus_base::metrics::exposition;
use helenus_cql::cql::Database;
use helenus_engine::engine::Probe;
use helenus_engine::views::print::HIDDEN_KEY;
use helenus_engine::views::{Tables, api, prometheus};

/// Connections at once: a scraper, a probe, a few people. Beyond it a new connection takes the slot of a silent one, or
/// is closed at once if all of them have sent a request.
pub const CONNECTIONS_MAX: usize = 32;

/// From accepting a connection to the first byte of its request.
pub const FIRST_BYTE_WITHIN: Duration = Duration::from_secs(3);

/// Bytes of a request's head; a longer one is refused by closing. Only a fault plan's body is read.
pub const REQUEST_BYTES_MAX: usize = 16 * 1024;

/// From accepting a connection to having answered it.
pub const CONNECTION_WITHIN: Duration = Duration::from_secs(10);

/// How long the writes and the reads of `/readyz` may take together, of all stores.
pub const READY_WITHIN: Duration = Duration::from_secs(3);

const PLAIN: &str = "text/plain; charset=utf-8";

/// Pause after an error of accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The parts of a server that the admin port uses.
pub struct Source {
    /// The database.
    pub database: Arc<Database>,
    /// Its virtual tables.
    pub tables: Arc<Tables>,
    /// Time.
    pub clock: Clock,
    /// The token that a request needs for a change.
    pub token: String,
    /// Whether partition keys are shown.
    pub shows_keys: bool,
    /// Checks logins. `None` means no login is required.
    pub(crate) gate: Option<logins::Gate>,
    /// Where changes and refusals are recorded. `None` means there is no audit log.
    pub(crate) audit: Option<Arc<Audit>>,
    /// Whether no data directory holds the server's record.
    pub(crate) is_in_memory: bool,
    /// How a node of a fleet asks the owner. `None` means that it is none.
    pub(crate) relay: Option<Arc<dyn Relay>>,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the token.
        formatter.debug_struct("Source").finish_non_exhaustive()
    }
}

/// A bound address, not served yet.
#[derive(Debug)]
pub struct AdminBound {
    listener: TcpListener,
    address: SocketAddr,
}

impl AdminBound {
    /// Binds the address.
    ///
    /// # Errors
    /// It is in use.
    pub async fn bind(address: SocketAddr) -> Result<Self, StartError> {
        let error = |source| StartError::Listen {
            setting: "admin-listen",
            address,
            source,
        };
        let listener = TcpListener::bind(address).await.map_err(error)?;
        let address = listener.local_addr().map_err(error)?;
        Ok(Self { listener, address })
    }
}

/// The name of the socket in the data directory.
const SOCKET: &str = "helenus.admin";

/// Listens on the socket of a data directory. A directory that cannot hold a socket is logged.
pub(crate) fn listen(directory: &Path) -> Option<OwnSocket> {
    match OwnSocket::listen(directory, SOCKET) {
        Ok(socket) => Some(socket),
        Err(error) => {
            tracing::warn!(
                directory = %directory.display(), %error,
                "no admin socket: the status of this directory is available at admin-listen only"
            );
            None
        }
    }
}

/// The admin port of a server. Dropping it ends it.
#[derive(Debug)]
pub struct Admin {
    address: Option<SocketAddr>,
    stopping: Arc<AtomicBool>,
    end: watch::Sender<bool>,
    acceptors: Vec<tokio::task::JoinHandle<()>>,
}

impl Admin {
    /// Serves on an address, on a socket, or on both. Must run within a tokio runtime.
    #[must_use]
    pub(crate) fn serve(bound: Option<AdminBound>, socket: Option<OwnSocket>, source: Source) -> Self {
        let stopping = Arc::new(AtomicBool::new(false));
        let address = bound.as_ref().map(|bound| bound.address);
        let state = Arc::new(Shared {
            source,
            stopping: Arc::clone(&stopping),
            streams: Arc::default(),
            own_hosts_only: address.is_some_and(|address| address.ip().is_loopback()),
        });
        let (end, ended) = watch::channel(false);
        let doors = bound.map(|bound| Door::Address(bound.listener));
        let doors = doors.into_iter().chain(socket.map(Door::Socket));
        let acceptors = doors.map(|door| tokio::spawn(accept(door, router(Arc::clone(&state)), ended.clone())));
        Self {
            address,
            stopping,
            acceptors: acceptors.collect(),
            end,
        }
    }

    /// The address where it is served. `None` means on the socket only.
    #[must_use]
    pub const fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// From here on the server is not ready: it answers the requests in progress, and should get no more.
    pub fn is_stopping(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Stops it. Connections that are being answered are closed.
    pub async fn stop(self) {
        self.end.send_replace(true);
        for acceptor in self.acceptors {
            // Only the end of the task matters.
            drop(acceptor.await);
        }
    }
}

/// State that all requests share.
struct Shared {
    source: Source,
    stopping: Arc<AtomicBool>,
    own_hosts_only: bool,
    /// The open streams of change feeds.
    streams: Arc<Streams>,
}

/// A listening address or socket.
enum Door {
    Address(TcpListener),
    Socket(OwnSocket),
}

/// A connection.
enum Visitor {
    Address(TcpStream, IpAddr),
    Socket(UnixStream),
}

impl Door {
    async fn accept(&self) -> std::io::Result<Visitor> {
        match self {
            Self::Address(listener) => {
                let (socket, peer) = listener.accept().await?;
                Ok(Visitor::Address(socket, peer.ip()))
            }
            Self::Socket(socket) => socket.accept().await.map(Visitor::Socket),
        }
    }
}

/// Extension of a request that came by the socket in the data directory.
#[derive(Clone, Copy, Debug)]
struct BySocket;

async fn accept(door: Door, router: Router, mut ended: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    let mut slots = Slots::default();
    let ended = async move { ended.wait_for(|ended| *ended).await.map(drop) };
    let mut ended = std::pin::pin!(ended);
    loop {
        tokio::select! {
            accepted = door.accept() => match accepted {
                Ok(visitor) => {
                    // Closed at once instead of queued: long requests must not fill the queue as well.
                    if !slots.free_slot(CONNECTIONS_MAX) {
                        metrics::ADMIN_REFUSED.increment();
                        continue;
                    }
                    let stage = Arc::new(Stage::default());
                    let router = router.clone().layer(Extension(Arc::clone(&stage)));
                    let connection = Arc::clone(&stage);
                    slots.take(stage, connections.spawn(receive(visitor, router, connection)));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection to the admin port");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
            _ = &mut ended => return,
        }
    }
}

async fn receive(visitor: Visitor, router: Router, stage: Arc<Stage>) {
    match visitor {
        Visitor::Address(socket, from) => {
            // A peek only: a socket may be reported readable when it is not.
            if matches!(timeout(FIRST_BYTE_WITHIN, socket.peek(&mut [0])).await, Ok(Ok(1..))) {
                serve(socket, router.layer(Extension(logins::From(from))), &stage).await;
            } else {
                metrics::ADMIN_REFUSED.increment();
            }
        }
        Visitor::Socket(socket) => {
            if matches!(timeout(FIRST_BYTE_WITHIN, socket.readable()).await, Ok(Ok(()))) {
                let from = logins::From(Ipv4Addr::LOCALHOST.into());
                serve(socket, router.layer(Extension(from)).layer(Extension(BySocket)), &stage).await;
            } else {
                metrics::ADMIN_REFUSED.increment();
            }
        }
    }
}

/// One connection: one request and its answer.
async fn serve(socket: impl AsyncRead + AsyncWrite + Unpin, router: Router, stage: &Stage) {
    let served = async {
        http1::Builder::new()
            .keep_alive(false)
            .max_buf_size(REQUEST_BYTES_MAX)
            .serve_connection(TokioIo::new(socket), TowerToHyperService::new(router))
            .await
    };
    let mut served = std::pin::pin!(served);
    loop {
        match timeout(CONNECTION_WITHIN, &mut served).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "a connection to the admin port failed"),
            // A stream that its client reads.
            Err(_) if stage.take_has_sent() => continue,
            Err(_) => metrics::ADMIN_REFUSED.increment(),
        }
        return;
    }
}

fn router(shared: Arc<Shared>) -> Router {
    let figures = api::ROUTES.into_iter().fold(Router::new(), |router, route| {
        let answer = async move |State(shared): Shape| {
            if !shared.source.database.engine().upkeep().owns_data() {
                return answer(StatusCode::SERVICE_UNAVAILABLE, PLAIN, NOT_OWNED.to_owned());
            }
            let figures = match &shared.source.relay {
                Some(relay) if route.path != STATEMENTS => figures_of_fleet(&shared.source, &**relay, route).await,
                _ => Some(own_figures(&shared.source, route).await),
            };
            let Some(mut figures) = figures else {
                return answer(StatusCode::SERVICE_UNAVAILABLE, PLAIN, NO_OWNER.to_owned());
            };
            if !shared.source.shows_keys {
                hide_keys(&mut figures);
            }
            json(&figures)
        };
        router.route(route.path, get(answer))
    });
    figures
        .route("/", get(async || text(PLAIN, index())))
        .route("/livez", get(live))
        .route("/readyz", get(ready))
        .route("/metrics", get(scrape))
        .route("/api/faults", get(faults::show).post(faults::set).delete(faults::clear))
        .route("/api/clock", get(clock::show).post(clock::change))
        .route("/api/reset", post(clock::start_over))
        .route("/api/feed/{keyspace}/{table}", get(feed::stream))
        .route("/api/nodes/{name}", delete(nodes::forget))
        .fallback(unknown)
        .layer(middleware::from_fn_with_state(Arc::clone(&shared), guard))
        .with_state(shared)
}

/// What this server knows itself.
async fn own_figures(source: &Source, route: api::Route) -> serde_json::Value {
    let engine = source.database.engine();
    if route.shows_sizes {
        engine.upkeep().count_partitions().await;
    }
    source.tables.show(engine, route.answer)
}

/// What the owner of the stores knows; its status joined with this node's. `None` means that there is no owner.
async fn figures_of_fleet(source: &Source, relay: &dyn Relay, route: api::Route) -> Option<serde_json::Value> {
    let of_owner = relay.figures(route.path).await?;
    if route.path != STATUS {
        return Some(of_owner);
    }
    let mut status = source.tables.show(source.database.engine(), route.answer);
    take_stores(&mut status, of_owner);
    Some(status)
}

/// The routes whose answers are a node's own: the first with what its owner knows of the stores.
const STATUS: &str = "/api/status";
const STATEMENTS: &str = "/api/statements";

/// The answer of a node while there is no owner.
const NO_OWNER: &str = "No node owns the stores now\n";

/// What a node of a fleet cannot do, by the beginnings of paths.
const ALONE: [&str; 4] = ["/api/faults", "/api/clock", "/api/reset", "/api/feed/"];

/// Takes what only the owner of the stores knows into the status of a node.
fn take_stores(status: &mut serde_json::Value, mut of_owner: serde_json::Value) {
    let (Some(status), Some(of_owner)) = (status.as_object_mut(), of_owner.as_object_mut()) else {
        return;
    };
    for name in api::OF_STORES {
        status.remove(name);
        if let Some((name, value)) = of_owner.remove_entry(name) {
            status.insert(name, value);
        }
    }
}

/// The answer while another server may own the data.
const NOT_OWNED: &str =
    "The lease of the bucket has ended: the bucket cannot be reached, or another server has taken it over\n";

/// Paths in addition to those of figures, with their descriptions.
const PATHS: [(&str, &str); 8] = [
    ("/livez", "200: the process answers; 503: data can no longer be read"),
    ("/readyz", "200: every store takes a write and reads it back; 503: not"),
    ("/metrics", "Prometheus's text format"),
    (
        "/api/faults",
        "the fault plan; POST and DELETE change it, with the token",
    ),
    (
        "/api/clock",
        "the time of data in memory; POST moves it, with the token",
    ),
    ("/api/reset", "POST empties data in memory, with the token"),
    (
        "/api/nodes/NAME",
        "DELETE forgets a node of a fleet that is down, with the token",
    ),
    (
        "/api/feed/KS/T",
        "the change feed of a table, as events; with the token, or a role with SELECT on it",
    ),
];

/// The page at `/`.
fn index() -> String {
    let figures = api::ROUTES.iter().map(|route| (route.path, route.summary));
    let lines = PATHS.into_iter().chain(figures);
    let lines: String = lines.map(|(path, summary)| format!("{path:<16} {summary}\n")).collect();
    format!("helenus {}: admin port\n\n{lines}", env!("CARGO_PKG_VERSION"))
}

/// The answer for a path that is not there: the paths that are.
async fn unknown(request: Request) -> Response {
    let figures = api::ROUTES.iter().map(|route| route.path);
    let paths: Vec<&str> = std::iter::once("/")
        .chain(PATHS.iter().map(|(path, _)| *path))
        .chain(figures)
        .collect();
    let path = request.uri().path();
    let mut response = json(&serde_json::json!({"error": format!("there is no {path}"), "paths": paths}));
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

/// No partition key, as a blob.
const NO_KEY: &str = "0x";

/// The fields that hold partition keys: hot ones and the largest, and the bounds of a physical partition within a
/// token.
const KEYS: [&str; 3] = ["partition_key", "lower_key", "upper_key"];

/// Takes the partition keys out of figures.
fn hide_keys(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    serde_json::Value::String(text) if KEYS.contains(&name.as_str()) && text != NO_KEY => {
                        HIDDEN_KEY.clone_into(text)
                    }
                    value => hide_keys(value),
                }
            }
        }
        serde_json::Value::Array(values) => values.iter_mut().for_each(hide_keys),
        _ => {}
    }
}

type Shape = State<Arc<Shared>>;

/// Counts the request, and refuses requests for another host name.
async fn guard(State(shared): Shape, stage: Extension<Arc<Stage>>, request: Request, next: Next) -> Response {
    metrics::ADMIN_REQUESTS.increment();
    stage.has_request();
    let response = guarded(&shared, request, next).await;
    stage.is_answered();
    response
}

async fn guarded(shared: &Shared, mut request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let by_socket = request.extensions().get::<BySocket>().is_some();
    if shared.own_hosts_only && !by_socket && !host.is_some_and(is_own_host) {
        return answer(
            StatusCode::FORBIDDEN,
            "text/plain; charset=utf-8",
            "Only for localhost and addresses of this machine's own\n".to_owned(),
        );
    }
    let admitted = logins::admit(shared, &mut request).await;
    let audited = AuditedRequest::of(shared, &request);
    let is_alone = |path: &str| ALONE.iter().any(|of_one| path.starts_with(of_one));
    let response = match admitted {
        Ok(()) if shared.source.relay.is_some() && is_alone(request.uri().path()) => {
            let why = "This is for a server that is alone, not for a node of a fleet";
            token::refuse(StatusCode::CONFLICT, why)
        }
        Ok(()) => next.run(request).await,
        Err(refused) => *refused,
    };
    if let (Some(audit), Some(audited)) = (&shared.source.audit, audited) {
        audited.record(audit, response.status());
    }
    response
}

/// A request, for the audit log.
struct AuditedRequest {
    from: IpAddr,
    user: String,
    operation: String,
    /// Whether it is recorded also if it is allowed: it changes something, or reads rows.
    is_recorded: bool,
}

impl AuditedRequest {
    /// `None` means there is no audit log.
    fn of(shared: &Shared, request: &Request) -> Option<Self> {
        shared.source.audit.as_ref()?;
        let role = request.extensions().get::<logins::Role>().map(|role| role.0.clone());
        let of_token = || {
            let is_token = token::has_token(shared, request);
            let by_socket = request.extensions().get::<BySocket>().is_some();
            let name = if by_socket { "(socket)" } else { "anonymous" };
            if is_token { "(token)" } else { name }.to_owned()
        };
        let method = request.method();
        Some(Self {
            from: request.extensions().get::<logins::From>()?.0,
            user: role.unwrap_or_else(of_token),
            operation: format!("{method} {}", request.uri().path()),
            is_recorded: (method != Method::GET && method != Method::HEAD) || logins::is_of_rows(request),
        })
    }

    /// Records a change, a read of rows or a refusal.
    fn record(self, audit: &Audit, status: StatusCode) {
        let allowed = !matches!(
            status,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS
        );
        if self.is_recorded || !allowed {
            audit.admin(self.from, &self.user, &self.operation, allowed);
        }
    }
}

/// Whether a Host header names this machine by `localhost` or by an address. A foreign name can be neither of these.
fn is_own_host(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    };
    let bare = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'))
        .unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok()
}

async fn scrape(State(shared): Shape) -> Response {
    let source = &shared.source;
    // On the node of a fleet that owns the stores, those: each partition is shown once.
    let owned = source.relay.as_ref().and_then(|relay| relay.owned());
    let engine = owned.as_ref().unwrap_or(&source.database).engine();
    engine.upkeep().count_partitions().await;
    text(exposition::CONTENT_TYPE, source.tables.show(engine, prometheus::render))
}

async fn live(State(shared): Shape) -> Response {
    let database = &shared.source.database;
    match database.engine().upkeep().lost() {
        // Not a failure: the process ends if the bucket is another's, and else goes on when it has renewed its lease.
        None if !database.engine().upkeep().owns_data() => text(PLAIN, NOT_OWNED.to_owned()),
        None => {
            let panics = database.engine().tasks().panics().into_iter();
            let lines = panics.map(|(task, count)| format!("background task panicked: {task}, times: {count}\n"));
            text(PLAIN, std::iter::once("ok\n".to_owned()).chain(lines).collect())
        }
        Some(why) => answer(
            StatusCode::SERVICE_UNAVAILABLE,
            PLAIN,
            format!("data cannot be read: {why}\n"),
        ),
    }
}

async fn ready(State(shared): Shape) -> Response {
    let readiness = if shared.stopping.load(Ordering::Relaxed) {
        report::Readiness::not("the server stops")
    } else if let Some(relay) = &shared.source.relay {
        report::Readiness::of_node(relay.may_answer())
    } else {
        let mut probe = Probe::default();
        // One time limit for all stores: the probe holds those that answered in time.
        let is_late = timeout(READY_WITHIN, shared.source.database.engine().upkeep().probe(&mut probe))
            .await
            .is_err();
        for store in &probe.stores {
            match &store.outcome {
                Some(Ok(_)) => {}
                Some(Err(error)) => tracing::error!(store = store.store, %error, "the server is not ready"),
                None => tracing::error!(store = store.store, is_late, "the server is not ready"),
            }
        }
        report::Readiness::of(&probe)
    };
    let mut response = json(&readiness);
    if !readiness.ready {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response
}

fn json(value: &impl serde::Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(text) => self::text("application/json", text),
        Err(error) => {
            tracing::error!(%error, "figures could not be written as JSON");
            answer(
                StatusCode::INTERNAL_SERVER_ERROR,
                "text/plain; charset=utf-8",
                String::new(),
            )
        }
    }
}

fn text(content_type: &'static str, text: String) -> Response {
    answer(StatusCode::OK, content_type, text)
}

fn answer(status: StatusCode, content_type: &'static str, text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_has_its_own_status_and_the_stores_of_the_owner() {
        let mut status = serde_json::json!({"host_id": "a", "rows": 0, "row_cache": {"hits": 0}});
        let of_owner = serde_json::json!({"host_id": "b", "rows": 7, "row_cache": {"hits": 1}, "bytes": 9});
        take_stores(&mut status, of_owner);
        let expected = serde_json::json!({"host_id": "a", "rows": 7, "row_cache": {"hits": 1}, "bytes": 9});
        assert_eq!(status, expected);
    }

    #[test]
    fn only_names_of_this_machine_pass() {
        for own in [
            "localhost",
            "LocalHost:9142",
            "127.0.0.1:9142",
            "127.0.0.1",
            "[::1]:9142",
            "[::1]",
            "::1",
        ] {
            assert!(is_own_host(own), "{own}");
        }
        for other in [
            "example.org",
            "example.org:9142",
            "127.0.0.1.example.org",
            "localhost.example.org",
            "",
            ":",
            "[::1",
        ] {
            assert!(!is_own_host(other), "{other}");
        }
    }
}
