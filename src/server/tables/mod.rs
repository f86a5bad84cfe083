//! The listener of tables: HTTP/1.1, and TLS on the same port where there is a certificate, which the first byte shows.
//!
//! The life of a connection: accepted, or closed at once if too many are open; closed if nothing arrives within
//! [`Limits::login_deadline`]; served request by request; closed after `IDLE_WITHIN` without one, and when its client
//! reads nothing for [`Limits::slow_client`] (patience.rs). When the server stops, requests in progress are answered.
//!
//! Memory: a body waits until its length is free in a common budget, and a long answer holds its length until it is sent.

pub mod keys;
mod patience;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use self::patience::Patient;
use super::limits::Limits;
use super::listener::{StartError, TLS_HANDSHAKE};
use helenus_tables::tables::service::{BODY_BYTES_MAX, Peer, Sent, Service};

/// How long a connection may be without a request. SDKs open a new one when they find it closed.
const IDLE_WITHIN: Duration = Duration::from_secs(120);

/// How long a body may take to arrive.
const BODY_WITHIN: Duration = Duration::from_secs(30);

/// Bytes of a body that are read after it was found too long.
const FORGOTTEN_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Bytes of a request's head. The longest address has a filter, a table's signature and two tokens of keys.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Part of the memory for responses of CQL that bodies and answers of tables may have besides.
const MEMORY_PART: usize = 4;

/// The unit in which memory is shared out, in bytes. Answers below it are not counted.
const MEMORY_UNIT_BYTES: usize = 64 * 1024;

/// Pause after an error of accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Bound addresses, not served yet.
#[derive(Debug)]
pub struct TablesBound {
    listeners: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
}

impl TablesBound {
    /// Binds the addresses.
    ///
    /// # Errors
    /// One is in use.
    pub async fn bind(addresses: &[SocketAddr]) -> Result<Self, StartError> {
        let mut bound = Self {
            listeners: Vec::new(),
            addresses: Vec::new(),
        };
        for address in addresses.iter().copied() {
            let error = |source| StartError::Listen {
                setting: "tables-listen",
                address,
                source,
            };
            let listener = TcpListener::bind(address).await.map_err(error)?;
            bound.addresses.push(listener.local_addr().map_err(error)?);
            bound.listeners.push(listener);
        }
        Ok(bound)
    }

    /// Serves them. Must run within a tokio runtime.
    #[must_use]
    pub(crate) fn serve(self, service: Service, tls: Option<TlsAcceptor>, limits: &Limits) -> TablesServer {
        let stop = watch::Sender::new(false);
        let memory_units = limits.memory_bytes_max / MEMORY_PART / MEMORY_UNIT_BYTES;
        let shared = Arc::new(Shared {
            service,
            tls,
            limits: limits.clone(),
            connections: Arc::new(Semaphore::new(limits.connections_max.min(Semaphore::MAX_PERMITS))),
            // One body at least must fit.
            memory: Arc::new(Semaphore::new(memory_units.max(units(BODY_BYTES_MAX)))),
        });
        let mut acceptors = JoinSet::new();
        for listener in self.listeners {
            acceptors.spawn(accept(listener, Arc::clone(&shared), stop.subscribe()));
        }
        TablesServer {
            addresses: self.addresses,
            stop,
            acceptors,
            drain_limit: limits.drain,
        }
    }
}

/// The server of tables. [`TablesServer::drain`] stops it; dropping it stops it at once.
#[derive(Debug)]
pub struct TablesServer {
    addresses: Vec<SocketAddr>,
    stop: watch::Sender<bool>,
    acceptors: JoinSet<JoinSet<()>>,
    drain_limit: Duration,
}

impl TablesServer {
    /// The addresses, in the order of the settings.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Accepts no more connections, answers the requests in progress, then ends. After [`Limits::drain`] the remaining
    /// connections are closed.
    pub async fn drain(mut self) {
        self.stop.send_replace(true);
        let finished = async {
            while let Some(connections) = self.acceptors.join_next().await {
                if let Ok(mut connections) = connections {
                    while connections.join_next().await.is_some() {}
                }
            }
        };
        if timeout(self.drain_limit, finished).await.is_err() {
            tracing::warn!("connections of tables closed: draining took too long");
        }
    }
}

/// What all connections share.
struct Shared {
    service: Service,
    tls: Option<TlsAcceptor>,
    limits: Limits,
    connections: Arc<Semaphore>,
    /// In units of [`MEMORY_UNIT_BYTES`].
    memory: Arc<Semaphore>,
}

/// Units of memory for some bytes.
const fn units(bytes: usize) -> usize {
    bytes.div_ceil(MEMORY_UNIT_BYTES)
}

/// Accepts until the server stops; returns the connections that are still open.
async fn accept(listener: TcpListener, shared: Arc<Shared>, stop: watch::Receiver<bool>) -> JoinSet<()> {
    let mut connections = JoinSet::new();
    let mut stopping = stop.clone();
    let stopped = async move { stopping.wait_for(|stop| *stop).await.map(drop) };
    let mut stopped = std::pin::pin!(stopped);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, client)) => {
                    let Ok(permit) = Arc::clone(&shared.connections).try_acquire_owned() else {
                        tracing::debug!(%client, "connection to tables refused: there are too many");
                        continue;
                    };
                    let (shared, stop) = (Arc::clone(&shared), stop.clone());
                    connections.spawn(async move {
                        connection(socket, client, shared, stop).await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection to tables");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
            _ = &mut stopped => return connections,
        }
    }
}

/// One connection, from its first byte on.
async fn connection(socket: TcpStream, client: SocketAddr, shared: Arc<Shared>, stop: watch::Receiver<bool>) {
    let deadline = shared.limits.login_deadline;
    let mut first = [0];
    // Answers are written whole; waiting for more would only delay them.
    if socket.set_nodelay(true).is_err() || !matches!(timeout(deadline, socket.peek(&mut first)).await, Ok(Ok(1))) {
        return;
    }
    if first != [TLS_HANDSHAKE] {
        return serve(socket, Peer { client, is_tls: false }, shared, stop).await;
    }
    let Some(tls) = shared.tls.clone() else {
        tracing::debug!(%client, "a connection to tables asks for TLS, and there is no certificate");
        return;
    };
    match timeout(deadline, tls.accept(socket)).await {
        Ok(Ok(socket)) => serve(socket, Peer { client, is_tls: true }, shared, stop).await,
        Ok(Err(error)) => tracing::debug!(%client, %error, "a TLS handshake for tables failed"),
        Err(_) => {}
    }
}

/// The requests of a connection.
async fn serve<S>(socket: S, peer: Peer, shared: Arc<Shared>, mut stop: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let io = TokioIo::new(Patient::new(socket, shared.limits.slow_client));
    let service = service_fn(move |request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(answer(&shared, request, peer).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_WITHIN)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(io, service);
    let mut served = std::pin::pin!(served);
    let stopped = async move { stop.wait_for(|stop| *stop).await.map(drop) };
    let mut stopped = std::pin::pin!(stopped);
    let mut is_stopping = false;
    loop {
        tokio::select! {
            ended = served.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(client = %peer.client, %error, "a connection to tables failed");
                }
                return;
            }
            _ = &mut stopped, if !is_stopping => {
                is_stopping = true;
                served.as_mut().graceful_shutdown();
            }
        }
    }
}

async fn answer(shared: &Shared, request: hyper::Request<Incoming>, peer: Peer) -> hyper::Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let begun = shared.service.begin(&head, peer).await;
    let (body, permit) = read(shared, body, begun.is_admitted()).await;
    let response = shared.service.answer(&head, begun, body, peer).await;
    drop(permit);
    let (head, body) = response.into_parts();
    hyper::Response::from_parts(head, Full::new(counted(shared, body).await))
}

/// Reads a body, when its length is free. One that is too long, or of a client that does not show who it is, is read and
/// forgotten: it takes no memory, and many clients hear no answer before they have sent all.
async fn read(shared: &Shared, body: Incoming, is_admitted: bool) -> (Sent, Option<OwnedSemaphorePermit>) {
    let length = body.size_hint().exact();
    let length = length.map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    if length == Some(0) {
        return (Sent::Whole(Bytes::new()), None);
    }
    let is_too_long = length.is_some_and(|length| length > BODY_BYTES_MAX) || !is_admitted;
    let mut permit = None;
    if !is_too_long {
        permit = reserve(shared, length.unwrap_or(BODY_BYTES_MAX)).await;
        if permit.is_none() {
            return (Sent::NoRoom, None);
        }
    }
    let sent = timeout(BODY_WITHIN, gather(body, length.unwrap_or_default(), is_too_long)).await;
    (sent.unwrap_or(Sent::Cut), permit)
}

/// Gathers the frames of a body, or forgets them once they are too many.
async fn gather(mut body: Incoming, length: usize, mut is_too_long: bool) -> Sent {
    let mut kept = BytesMut::with_capacity(if is_too_long { 0 } else { length });
    let mut forgotten_bytes = 0_usize;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return Sent::Cut };
        let Ok(data) = frame.into_data() else { continue };
        if !is_too_long && kept.len() + data.len() > BODY_BYTES_MAX {
            is_too_long = true;
            kept = BytesMut::new();
        }
        if !is_too_long {
            kept.extend_from_slice(&data);
            continue;
        }
        forgotten_bytes = forgotten_bytes.saturating_add(data.len());
        if forgotten_bytes > FORGOTTEN_BYTES_MAX {
            break;
        }
    }
    if is_too_long {
        Sent::TooLarge
    } else {
        Sent::Whole(kept.freeze())
    }
}

/// Reserves memory; `None` means that none was free in time.
async fn reserve(shared: &Shared, bytes: usize) -> Option<OwnedSemaphorePermit> {
    let units = u32::try_from(units(bytes)).unwrap_or(u32::MAX);
    let reserved = timeout(
        shared.limits.memory_wait,
        Arc::clone(&shared.memory).acquire_many_owned(units),
    )
    .await;
    reserved.ok()?.ok()
}

/// An answer that gives its memory back when it is sent.
struct Counted {
    body: Bytes,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

/// Counts a long answer. It is there already: where there is no room in time it is sent uncounted, since only its sending frees memory.
async fn counted(shared: &Shared, body: Bytes) -> Bytes {
    if body.len() < MEMORY_UNIT_BYTES {
        return body;
    }
    match reserve(shared, body.len().min(BODY_BYTES_MAX)).await {
        Some(permit) => Bytes::from_owner(Counted { body, _permit: permit }),
        None => body,
    }
}
