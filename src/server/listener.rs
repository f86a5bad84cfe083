//! Listening, accepting, and stopping.
//!
//! With several virtual nodes each configured address stands for several, one per node, with the same port. The
//! listener of a node that goes down closes, together with its connections; when the node comes up it listens again.
//! Registered clients receive the events.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsAcceptor;

use super::Handler;
use super::admission::{Admission, Admitted};
use super::audit::Audit;
use super::auth::{Authenticator, Credentials};
use super::client_certificates::{ClientCertificate, ClientTrust};
use super::closing::End;
use super::connection::{self, Shared};
use super::events::Events;
use super::incoming::POOL_PART;
use super::limits::Limits;
use super::session::Session;
use super::tls::{self, Certificates, TlsError, TlsIdentity};
use helenus_base::budget::{Budget, Share};
use helenus_base::clock::Clock;
use helenus_base::metrics;
use helenus_cql::cql::RoleService;
use helenus_engine::partition::nodes::Up;
use helenus_engine::views::live::Load;
use helenus_schema::profile::Profile;
use helenus_types::wire::response::{Event, StatusChange};

/// Pause after an error of accept, which is often «too many open files».
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Options of the listeners.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Addresses for plain connections; port 0 takes a free one.
    pub listen: Vec<SocketAddr>,
    /// Addresses for TLS, with its files. `None` means no TLS.
    pub tls: Option<TlsOptions>,
    /// The account that may log in. `None` means no login is required.
    pub credentials: Option<Credentials>,
    /// The bounds.
    pub limits: Limits,
    /// Virtual nodes: with several, each address is that of the first node, and the others have the addresses that
    /// follow. 0 means one.
    pub nodes: usize,
    /// The compatibility profile.
    pub profile: Profile,
    /// Whether the plain addresses also accept TLS, distinguished by the first byte. For `helenus dev` only, because a
    /// client that forgets TLS is served nevertheless.
    pub is_port_shared: bool,
    /// Decides which clients share turns when they guess passwords; must be unknown to clients.
    pub login_key: u64,
}

/// TLS on its own port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsOptions {
    /// Addresses.
    pub listen: Vec<SocketAddr>,
    /// The certificate and its key.
    pub identity: TlsIdentity,
    /// Whose certificates are accepted from clients. `None` means none is requested.
    pub clients: Option<ClientTrust>,
}

/// Advice about an address of a setting that cannot be bound.
fn way_out(error: &std::io::Error, setting: &str) -> String {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => format!(
            "; another server is there: take another address with --{setting} ADDRESS:PORT, port 0 takes a free one"
        ),
        std::io::ErrorKind::PermissionDenied => "; ports below 1024 are for privileged users".to_owned(),
        _ => String::new(),
    }
}

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}{}", way_out(source, setting))]
    Listen {
        /// The setting that names the address.
        setting: &'static str,
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
    /// An address of a virtual node cannot be listened on.
    #[error(
        "cannot listen on {address} for a virtual node: {source} (on Linux all of 127.0.0.0/8 is there; on macOS an address must be given \
         first: sudo ifconfig lo0 alias {})",
        address.ip()
    )]
    Node {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
    /// An address that has no following addresses for the other virtual nodes.
    #[error(
        "{address} cannot stand for {nodes} virtual nodes: it must be an IPv4 address like 127.0.0.1 with as many behind it"
    )]
    NoNodes {
        /// The address.
        address: SocketAddr,
        /// The number of nodes.
        nodes: usize,
    },
    /// TLS cannot be set up.
    #[error("cannot offer TLS: {0}")]
    Tls(#[from] TlsError),
}

/// Bound addresses, not served yet: a node reports its own address, so it must be bound before.
pub struct Bound {
    options: Options,
    plain: Vec<Listening>,
    tls: Vec<(Listening, TlsAcceptor)>,
    /// For the plain addresses, if they also accept TLS.
    shared: Option<TlsAcceptor>,
    addresses: Vec<SocketAddr>,
    tls_addresses: Vec<SocketAddr>,
    up: Option<watch::Receiver<Up>>,
    certificates: Option<Certificates>,
    roles: Option<Arc<RoleService>>,
    audit: Option<Arc<Audit>>,
}

/// A bound address.
struct Listening {
    listener: TcpListener,
    address: SocketAddr,
    /// Its virtual node, from 0.
    node: usize,
    /// Whether it is the node's address that clients receive.
    is_first: bool,
}

impl std::fmt::Debug for Bound {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Bound")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Bound {
    /// Binds the addresses. From here on connections wait for [`Bound::serve`].
    ///
    /// # Errors
    /// An address is in use, or TLS cannot be set up.
    pub async fn bind(options: Options) -> Result<Self, StartError> {
        let mut bound = Self {
            plain: Vec::new(),
            tls: Vec::new(),
            shared: None,
            addresses: Vec::new(),
            tls_addresses: Vec::new(),
            up: None,
            certificates: None,
            roles: None,
            audit: None,
            options,
        };
        let nodes = bound.options.nodes.max(1);
        for address in &bound.options.listen {
            let taken = listen("listen", *address, nodes, bound.plain.is_empty()).await?;
            bound.addresses.extend(taken.iter().map(|one| one.address));
            bound.plain.extend(taken);
        }
        if let Some(tls) = &bound.options.tls {
            let (acceptor, certificates) = tls::acceptor(&tls.identity, tls.clients.as_ref())?;
            bound.certificates = Some(certificates);
            if bound.options.is_port_shared {
                bound.shared = Some(acceptor);
                bound.tls_addresses.clone_from(&bound.addresses);
                return Ok(bound);
            }
            for address in &tls.listen {
                let is_first = bound.plain.is_empty() && bound.tls.is_empty();
                let taken = listen("tls-listen", *address, nodes, is_first).await?;
                bound.tls_addresses.extend(taken.iter().map(|one| one.address));
                bound.tls.extend(taken.into_iter().map(|one| (one, acceptor.clone())));
            }
        }
        Ok(bound)
    }

    /// The addresses for plain connections, in the order of the options.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The addresses for TLS connections.
    #[must_use]
    pub fn tls_addresses(&self) -> &[SocketAddr] {
        &self.tls_addresses
    }

    /// The certificate for TLS connections. `None` means there is no TLS.
    #[must_use]
    pub const fn certificates(&self) -> Option<&Certificates> {
        self.certificates.as_ref()
    }

    /// Makes the listeners follow the up and down events of virtual nodes.
    pub fn follow(&mut self, up: watch::Receiver<Up>) {
        self.up = Some(up);
    }

    /// Checks logins against these roles, instead of the credentials of the options.
    pub fn check_against(&mut self, roles: Arc<RoleService>) {
        self.roles = Some(roles);
    }

    /// Records logins in an audit log.
    pub(crate) fn record_in(&mut self, audit: Option<Arc<Audit>>) {
        self.audit = audit;
    }

    /// Serves with `handler`. Must run within a tokio runtime.
    #[must_use]
    pub fn serve<H: Handler>(self, handler: &Arc<H>, events: Arc<Events>, clock: Clock) -> Server {
        let admission = Arc::new(Admission::default());
        let drain = watch::Sender::new(false);
        let drain_limit = self.options.limits.drain;
        let limits = &self.options.limits;
        let pool = Budget::new(limits.memory_bytes_max / POOL_PART, limits.memory_wait);
        let budget = Budget::with_unasked(limits.memory_bytes_max - pool.bytes_max(), limits.memory_wait);
        let shared = Arc::new(Shared {
            limits: self.options.limits,
            authenticator: Arc::new(
                Authenticator::new(
                    self.options.credentials,
                    self.roles,
                    clock.clone(),
                    self.options.login_key,
                )
                .with_audit(self.audit),
            ),
            admission: Arc::clone(&admission),
            profile: self.options.profile,
            requests_pool: Arc::clone(&pool),
            budget: Arc::clone(&budget),
            clock,
        });
        let authenticator = Arc::clone(&shared.authenticator);
        let mut listeners = JoinSet::new();
        let of_plain = self.shared.map_or(Security::Plain, Security::Either);
        let plain = self.plain.into_iter().map(|listener| (listener, of_plain.clone()));
        let tls = self
            .tls
            .into_iter()
            .map(|(listener, acceptor)| (listener, Security::Tls(acceptor)));
        for (listening, security) in plain.chain(tls) {
            let acceptor = Acceptor {
                address: listening.address,
                node: listening.node,
                is_first: listening.is_first,
                // If no node can go down: a channel that never changes.
                up: self.up.clone().unwrap_or_else(|| watch::channel(Up::ALL).1),
                handler: Arc::clone(handler),
                shared: Arc::clone(&shared),
                events: Arc::clone(&events),
                drain: drain.subscribe(),
                security,
            };
            listeners.spawn(acceptor.run(listening.listener));
        }
        Server {
            addresses: self.addresses,
            tls_addresses: self.tls_addresses,
            drain,
            listeners,
            events,
            admission,
            budgets: [budget, pool],
            drain_limit,
            authenticator,
        }
    }
}

/// Free ports to try until one is free for all nodes.
const PORTS_TRIED: usize = 32;

/// Binds an address of a setting, and with several nodes those that follow it.
async fn listen(
    setting: &'static str,
    address: SocketAddr,
    nodes: usize,
    is_first: bool,
) -> Result<Vec<Listening>, StartError> {
    let mut tried = 0;
    loop {
        tried += 1;
        match listen_once(setting, address, nodes, is_first).await {
            // Another process uses the first node's free port at another node's address.
            Err(StartError::Node { source, .. })
                if source.kind() == std::io::ErrorKind::AddrInUse && address.port() == 0 && tried < PORTS_TRIED => {}
            done => return done,
        }
    }
}

async fn listen_once(
    setting: &'static str,
    address: SocketAddr,
    nodes: usize,
    is_first: bool,
) -> Result<Vec<Listening>, StartError> {
    let error = |source| StartError::Listen {
        setting,
        address,
        source,
    };
    let listener = TcpListener::bind(address).await.map_err(error)?;
    let local = listener.local_addr().map_err(error)?;
    let mut taken = vec![Listening {
        listener,
        address: local,
        node: 0,
        is_first,
    }];
    for node in 1..nodes {
        let address = node_address(local, node).ok_or(StartError::NoNodes { address, nodes })?;
        let error = |source| StartError::Node { address, source };
        taken.push(Listening {
            listener: TcpListener::bind(address).await.map_err(error)?,
            address,
            node,
            is_first,
        });
    }
    Ok(taken)
}

/// The address of a virtual node, from 0, given that of the first.
pub(crate) fn node_address(first: SocketAddr, node: usize) -> Option<SocketAddr> {
    let IpAddr::V4(ip) = first.ip() else { return None };
    let [a, b, c, d] = ip.octets();
    let d = d.checked_add(u8::try_from(node).ok()?)?;
    (!ip.is_unspecified()).then(|| SocketAddr::from(([a, b, c, d], first.port())))
}

/// A server that listens. [`Server::drain`] stops it; dropping it stops it at once.
#[derive(Debug)]
pub struct Server {
    addresses: Vec<SocketAddr>,
    tls_addresses: Vec<SocketAddr>,
    drain: watch::Sender<bool>,
    listeners: JoinSet<JoinSet<()>>,
    events: Arc<Events>,
    admission: Arc<Admission>,
    /// Of responses and buffers, and of large requests while they are read.
    budgets: [Arc<Budget>; 2],
    drain_limit: Duration,
    authenticator: Arc<Authenticator>,
}

impl Server {
    /// Checks logins.
    pub(crate) const fn authenticator(&self) -> &Arc<Authenticator> {
        &self.authenticator
    }

    /// The addresses for plain connections, in the order of the options.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The addresses for TLS connections.
    #[must_use]
    pub fn tls_addresses(&self) -> &[SocketAddr] {
        &self.tls_addresses
    }

    /// Connections open now.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.admission.connections()
    }

    /// The present load; the closure may outlive the server.
    pub fn load(&self) -> impl Fn() -> Load + Send + Sync + 'static {
        let (admission, budgets) = (Arc::clone(&self.admission), self.budgets.clone());
        move || Load {
            memory_bytes: budgets.iter().map(|budget| budget.used()).sum(),
            memory_bytes_max: budgets.iter().map(|budget| budget.bytes_max()).sum(),
            memory_waiting: budgets.iter().map(|budget| budget.waiting()).sum(),
            connections: admission.connections(),
            in_flight: admission.in_flight(),
            in_flight_bytes: admission.in_flight_bytes(),
        }
    }

    /// The sessions of the connections that are open now, unordered; the closure may outlive the server.
    pub fn sessions(&self) -> impl Fn() -> Vec<Arc<Session>> + Send + Sync + 'static {
        let admission = Arc::clone(&self.admission);
        move || admission.sessions()
    }

    /// The sender of events.
    #[must_use]
    pub const fn events(&self) -> &Arc<Events> {
        &self.events
    }

    /// Accepts no more connections and requests, completes the requests in progress, then ends. After [`Limits::drain`]
    /// the remaining connections are closed.
    pub async fn drain(mut self) {
        self.drain.send_replace(true);
        let finished = async {
            while let Some(connections) = self.listeners.join_next().await {
                if let Ok(mut connections) = connections {
                    while connections.join_next().await.is_some() {}
                }
            }
        };
        if timeout(self.drain_limit, finished).await.is_err() {
            tracing::warn!(
                connections = self.admission.connections(),
                "connections closed: draining took too long"
            );
        }
    }
}

/// The protocol of an address's connections.
#[derive(Clone)]
enum Security {
    /// The protocol itself.
    Plain,
    /// TLS.
    Tls(TlsAcceptor),
    /// Either one, by the first byte.
    Either(TlsAcceptor),
}

/// The first byte of a TLS connection: a handshake record (RFC 8446, 5.1). Frames begin with the version, at most 6.
pub(super) const TLS_HANDSHAKE: u8 = 22;

impl Security {
    /// The acceptor for a TLS connection. `None` means it is plain. Waits for the first byte if that decides. A
    /// connection that sends none counts as plain; the login deadline ends it.
    async fn of(self, socket: &TcpStream, deadline: Instant) -> Option<TlsAcceptor> {
        match self {
            Self::Plain => None,
            Self::Tls(acceptor) => Some(acceptor),
            Self::Either(acceptor) => {
                let mut first = [0];
                let peeked = timeout_at(deadline, socket.peek(&mut first)).await;
                (matches!(peeked, Ok(Ok(1))) && first == [TLS_HANDSHAKE]).then_some(acceptor)
            }
        }
    }
}

/// Accepts the connections of one address.
struct Acceptor<H> {
    handler: Arc<H>,
    shared: Arc<Shared>,
    events: Arc<Events>,
    drain: watch::Receiver<bool>,
    security: Security,
    address: SocketAddr,
    node: usize,
    is_first: bool,
    up: watch::Receiver<Up>,
}

impl<H: Handler> Acceptor<H> {
    /// Accepts until the server drains; returns the connections that are still open.
    async fn run(self, listener: TcpListener) -> JoinSet<()> {
        let mut connections = JoinSet::new();
        // `None` means the node is down.
        let mut listener = Some(listener);
        let mut up = self.up.clone();
        let mut drain = self.drain.clone();
        // An error means that the server has ended, which ends accepting as well.
        let drained = async move { drain.wait_for(|drain| *drain).await.map(drop) };
        let mut drained = std::pin::pin!(drained);
        loop {
            let is_up = up.borrow_and_update().is_up(self.node);
            match &listener {
                Some(_) if !is_up => {
                    listener = None;
                    self.went_down();
                }
                None if is_up => listener = self.listen_again().await,
                _ => {}
            }
            let accept = async {
                match &listener {
                    Some(listener) => listener.accept().await,
                    // An address that could not be bound again is retried.
                    None if is_up => {
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                        Err(std::io::ErrorKind::WouldBlock.into())
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                accepted = accept => match accepted {
                    Ok((socket, from)) => self.accepted(socket, from, &mut connections),
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                // The sender may be gone, as with one node: then there are no more changes.
                Ok(()) = up.changed() => {}
                Some(_) = connections.join_next() => {}
                _ = &mut drained => return connections,
            }
        }
    }

    /// The node went down: closes its connections and notifies the other nodes' clients.
    fn went_down(&self) {
        for session in self.shared.admission.sessions() {
            if session.node() == self.node {
                session.cut();
            }
        }
        if self.is_first {
            self.events.emit(Event::Status(StatusChange::Down, self.address));
        }
        tracing::info!(address = %self.address, "a virtual node went down");
    }

    /// The node came up: listens again and notifies the other nodes' clients.
    async fn listen_again(&self) -> Option<TcpListener> {
        match TcpListener::bind(self.address).await {
            Ok(listener) => {
                if self.is_first {
                    self.events.emit(Event::Status(StatusChange::Up, self.address));
                }
                tracing::info!(address = %self.address, "a virtual node came up");
                Some(listener)
            }
            Err(error) => {
                tracing::warn!(address = %self.address, %error, "a virtual node cannot listen again yet");
                None
            }
        }
    }

    fn accepted(&self, socket: TcpStream, from: SocketAddr, connections: &mut JoinSet<()>) {
        let limits = &self.shared.limits;
        let session = Session::new(
            from,
            matches!(self.security, Security::Tls(_)),
            Arc::clone(&self.events),
        );
        let share = Share::new(&self.shared.budget);
        let session = Arc::new(session.accepted_at(self.address, self.node).with_share(&share));
        let admitted =
            self.shared
                .admission
                .admit(&session, limits.connections_max, limits.connections_per_address_max);
        let Some(admitted) = admitted else {
            metrics::CONNECTIONS_REFUSED.increment();
            tracing::debug!(%from, "connection refused: there are too many");
            return;
        };
        // Responses are gathered before they are written; waiting for more would only delay them.
        if socket.set_nodelay(true).is_err() {
            return;
        }
        let deadline = Instant::now() + limits.login_deadline;
        connections.spawn(self.serve(socket, session, share, deadline, admitted));
    }

    fn serve(
        &self,
        socket: TcpStream,
        session: Arc<Session>,
        share: Arc<Share>,
        deadline: Instant,
        admitted: Admitted,
    ) -> impl Future<Output = ()> + Send + 'static {
        let (handler, shared, drain) = (Arc::clone(&self.handler), Arc::clone(&self.shared), self.drain.clone());
        let security = self.security.clone();
        async move {
            metrics::CONNECTIONS_OPENED.increment();
            let from = session.client();
            let work_session = Arc::clone(&session);
            let work = move |header, body| H::handle(Arc::clone(&handler), Arc::clone(&work_session), header, body);
            let tls = tokio::select! {
                tls = security.of(&socket, deadline) => tls,
                // The connection ends itself.
                () = session.evicted() => None,
            };
            let end = match tls {
                None => connection::serve(socket, session, share, shared, drain, deadline, work).await,
                Some(acceptor) => {
                    let accepted = tokio::select! {
                        accepted = timeout_at(deadline, acceptor.accept(socket)) => Some(accepted),
                        () = session.evicted() => None,
                    };
                    match accepted {
                        Some(Ok(Ok(socket))) => {
                            if let Some(shown) = socket.get_ref().1.peer_certificates().and_then(ClientCertificate::of)
                            {
                                session.set_certificate(shown);
                            }
                            connection::serve(socket, session, share, shared, drain, deadline, work).await
                        }
                        Some(Ok(Err(error))) => {
                            log_refused(from, &error);
                            End::Broken
                        }
                        Some(Err(_)) => End::LoginDeadline,
                        None => End::Evicted,
                    }
                }
            };
            metrics::CONNECTIONS_CLOSED.increment();
            tracing::debug!(%from, ?end, "connection ended");
            drop(admitted);
        }
    }
}

/// Logs why a client's certificate was refused. Other failed handshakes come from scanners and from clients that
/// disconnected.
fn log_refused(from: SocketAddr, error: &std::io::Error) {
    let error = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    if let Some(error @ (rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented)) = error {
        metrics::LOGINS_FAILED.increment();
        tracing::warn!(%from, %error, "certificate of a client refused");
    }
}
