//! Listening, accepting, and stopping.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsAcceptor;

use super::Handler;
use super::admission::{Admission, Admitted};
use super::auth::{Authenticator, Credentials};
use super::connection::{self, End, Shared};
use super::events::Events;
use super::limits::Limits;
use super::session::Session;
use super::tls::{self, TlsError};
use crate::clock::Clock;
use crate::metrics;

/// After an error of accept, which often is «too many open files», how long nothing is accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What to listen on and for whom.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Addresses for plain connections; port 0 takes a free one.
    pub listen: Vec<SocketAddr>,
    /// Addresses for TLS, with its files; `None`: no TLS.
    pub tls: Option<TlsOptions>,
    /// Who may log in; `None`: nobody needs to.
    pub credentials: Option<Credentials>,
    /// The bounds.
    pub limits: Limits,
}

/// TLS on its own port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsOptions {
    /// Addresses.
    pub listen: Vec<SocketAddr>,
    /// PEM file with the certificate and those that signed it.
    pub certificate: std::path::PathBuf,
    /// PEM file with its key.
    pub key: std::path::PathBuf,
}

/// Why the server does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// TLS cannot be set up.
    #[error("cannot offer TLS: {0}")]
    Tls(#[from] TlsError),
}

/// Addresses that are taken, not served yet: a node must know its own address before it can answer who it is.
pub struct Bound {
    options: Options,
    plain: Vec<TcpListener>,
    tls: Vec<(TcpListener, TlsAcceptor)>,
    addresses: Vec<SocketAddr>,
    tls_addresses: Vec<SocketAddr>,
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
    /// Takes the addresses. From here on connections wait for [`Bound::serve`].
    ///
    /// # Errors
    /// An address is taken, or TLS cannot be set up.
    pub async fn bind(options: Options) -> Result<Self, StartError> {
        let mut bound = Self {
            plain: Vec::new(),
            tls: Vec::new(),
            addresses: Vec::new(),
            tls_addresses: Vec::new(),
            options,
        };
        for address in &bound.options.listen {
            let (listener, local) = listen(*address).await?;
            bound.plain.push(listener);
            bound.addresses.push(local);
        }
        if let Some(tls) = &bound.options.tls {
            let acceptor = tls::acceptor(&tls.certificate, &tls.key)?;
            for address in &tls.listen {
                let (listener, local) = listen(*address).await?;
                bound.tls.push((listener, acceptor.clone()));
                bound.tls_addresses.push(local);
            }
        }
        Ok(bound)
    }

    /// Where plain connections are taken, in the order of the options.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where TLS connections are taken.
    #[must_use]
    pub fn tls_addresses(&self) -> &[SocketAddr] {
        &self.tls_addresses
    }

    /// Serves with `handler`. Must run within a tokio runtime.
    #[must_use]
    pub fn serve<H: Handler>(self, handler: &Arc<H>, events: Arc<Events>, clock: Clock) -> Server {
        let admission = Arc::new(Admission::default());
        let drain = watch::Sender::new(false);
        let drain_limit = self.options.limits.drain;
        let shared = Arc::new(Shared {
            limits: self.options.limits,
            authenticator: Authenticator::new(self.options.credentials, clock.clone()),
            admission: Arc::clone(&admission),
            clock,
        });
        let mut listeners = JoinSet::new();
        let plain = self.plain.into_iter().map(|listener| (listener, None));
        let tls = self
            .tls
            .into_iter()
            .map(|(listener, acceptor)| (listener, Some(acceptor)));
        for (listener, tls) in plain.chain(tls) {
            let acceptor = Acceptor {
                handler: Arc::clone(handler),
                shared: Arc::clone(&shared),
                events: Arc::clone(&events),
                drain: drain.subscribe(),
                tls,
            };
            listeners.spawn(acceptor.run(listener));
        }
        Server {
            addresses: self.addresses,
            tls_addresses: self.tls_addresses,
            drain,
            listeners,
            events,
            admission,
            drain_limit,
        }
    }
}

async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let error = |source| StartError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(error)?;
    let local = listener.local_addr().map_err(error)?;
    Ok((listener, local))
}

/// How much a server has to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Connections open.
    pub connections: usize,
    /// Requests in work that wait for something, as writes do for the disk.
    pub in_flight: usize,
    /// Bytes of their bodies.
    pub in_flight_bytes: usize,
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
    drain_limit: Duration,
}

impl Server {
    /// Where plain connections are taken, in the order of the options.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where TLS connections are taken.
    #[must_use]
    pub fn tls_addresses(&self) -> &[SocketAddr] {
        &self.tls_addresses
    }

    /// Connections open now.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.admission.connections()
    }

    /// How much there is to do at a moment; may outlive the server.
    pub fn load(&self) -> impl Fn() -> Load + Send + Sync + 'static {
        let admission = Arc::clone(&self.admission);
        move || Load {
            connections: admission.connections(),
            in_flight: admission.in_flight(),
            in_flight_bytes: admission.in_flight_bytes(),
        }
    }

    /// Who asks for the connections open now, in no order; may outlive the server.
    pub fn sessions(&self) -> impl Fn() -> Vec<Arc<Session>> + Send + Sync + 'static {
        let admission = Arc::clone(&self.admission);
        move || admission.sessions()
    }

    /// Where events are told.
    #[must_use]
    pub const fn events(&self) -> &Arc<Events> {
        &self.events
    }

    /// Takes no more connections and no more requests, lets those in work be answered, then ends; what takes longer than
    /// [`Limits::drain`] is cut off.
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
                "connections cut off: draining took too long"
            );
        }
    }
}

/// Takes the connections of one address.
struct Acceptor<H> {
    handler: Arc<H>,
    shared: Arc<Shared>,
    events: Arc<Events>,
    drain: watch::Receiver<bool>,
    tls: Option<TlsAcceptor>,
}

impl<H: Handler> Acceptor<H> {
    /// Accepts until the server drains; gives the connections that are still open.
    async fn run(self, listener: TcpListener) -> JoinSet<()> {
        let mut connections = JoinSet::new();
        let mut drain = self.drain.clone();
        // An error means that the server is gone, which ends accepting as well.
        let drained = async move { drain.wait_for(|drain| *drain).await.map(drop) };
        let mut drained = std::pin::pin!(drained);
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((socket, from)) => self.accepted(socket, from, &mut connections),
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(_) = connections.join_next() => {}
                _ = &mut drained => return connections,
            }
        }
    }

    fn accepted(&self, socket: TcpStream, from: SocketAddr, connections: &mut JoinSet<()>) {
        let limits = &self.shared.limits;
        let session = Arc::new(Session::new(from, self.tls.is_some(), Arc::clone(&self.events)));
        let admitted =
            self.shared
                .admission
                .admit(&session, limits.connections_max, limits.connections_per_address_max);
        let Some(admitted) = admitted else {
            metrics::CONNECTIONS_REFUSED.increment();
            tracing::debug!(%from, "connection refused: there are too many");
            return;
        };
        // Answers are gathered before they are written; waiting for more would only delay them.
        if socket.set_nodelay(true).is_err() {
            return;
        }
        let deadline = Instant::now() + limits.login_deadline;
        connections.spawn(self.serve(socket, session, deadline, admitted));
    }

    fn serve(
        &self,
        socket: TcpStream,
        session: Arc<Session>,
        deadline: Instant,
        admitted: Admitted,
    ) -> impl Future<Output = ()> + Send + 'static {
        let (handler, shared, drain) = (Arc::clone(&self.handler), Arc::clone(&self.shared), self.drain.clone());
        let tls = self.tls.clone();
        async move {
            metrics::CONNECTIONS_OPENED.increment();
            let from = session.client();
            let work_session = Arc::clone(&session);
            let work = move |header, body| H::handle(Arc::clone(&handler), Arc::clone(&work_session), header, body);
            let end = match tls {
                None => connection::serve(socket, session, shared, drain, deadline, work).await,
                Some(acceptor) => {
                    let accepted = tokio::select! {
                        accepted = timeout_at(deadline, acceptor.accept(socket)) => Some(accepted),
                        () = session.evicted() => None,
                    };
                    match accepted {
                        Some(Ok(Ok(socket))) => connection::serve(socket, session, shared, drain, deadline, work).await,
                        Some(Ok(Err(_))) => End::Broken,
                        Some(Err(_)) => End::LoginDeadline,
                        None => End::Drained,
                    }
                }
            };
            metrics::CONNECTIONS_CLOSED.increment();
            tracing::debug!(%from, ?end, "connection ended");
            drop(admitted);
        }
    }
}
