//! What a connection is to those who answer its requests.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use tokio::sync::Notify;

use super::client_certificates::ClientCertificate;
use super::events::Events;
use crate::budget::Share;
use crate::cql::SessionState;
use crate::wire::Version;

/// One connection. Shared by its requests in work.
#[derive(Debug)]
pub struct Session {
    client: SocketAddr,
    local: Option<SocketAddr>,
    tls: bool,
    certificate: OnceLock<ClientCertificate>,
    state: ArcSwap<SessionState>,
    startup: OnceLock<Startup>,
    ready: AtomicBool,
    evicted: AtomicBool,
    eviction: Notify,
    cut: AtomicBool,
    requests: AtomicU64,
    warned_of_use: AtomicBool,
    events: Arc<Events>,
}

/// What STARTUP said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Startup {
    /// The version of the protocol.
    pub version: Version,
    /// As sent.
    pub options: Vec<(String, String)>,
}

impl Session {
    /// A connection that has just come.
    #[must_use]
    pub fn new(client: SocketAddr, tls: bool, events: Arc<Events>) -> Self {
        Self {
            client,
            local: None,
            tls,
            certificate: OnceLock::new(),
            startup: OnceLock::new(),
            ready: AtomicBool::new(false),
            evicted: AtomicBool::new(false),
            eviction: Notify::new(),
            cut: AtomicBool::new(false),
            requests: AtomicU64::new(0),
            state: ArcSwap::from_pointee(SessionState {
                client: Some(client),
                ..SessionState::default()
            }),
            warned_of_use: AtomicBool::new(false),
            events,
        }
    }

    /// The same, come to an address of ours, which is that of a virtual node (from 0).
    #[must_use]
    pub fn come_to(self, local: SocketAddr, node: usize) -> Self {
        self.state.rcu(|state| SessionState {
            node,
            ..SessionState::clone(state)
        });
        Self {
            local: Some(local),
            ..self
        }
    }

    /// The same, with a part in the memory of all connections.
    #[must_use]
    pub fn with_share(self, share: &Arc<Share>) -> Self {
        self.state.rcu(|state| SessionState {
            share: Some(Arc::clone(share)),
            ..SessionState::clone(state)
        });
        self
    }

    /// Where the client is.
    #[must_use]
    pub const fn client(&self) -> SocketAddr {
        self.client
    }

    /// The address of ours that the client is connected to, where it is known.
    #[must_use]
    pub const fn local(&self) -> Option<SocketAddr> {
        self.local
    }

    /// The virtual node that the client is connected to, from 0.
    #[must_use]
    pub fn node(&self) -> usize {
        self.state.load().node
    }

    /// What the client has shown in the handshake, which happens once.
    pub(super) fn set_certificate(&self, certificate: ClientCertificate) {
        self.certificate.get_or_init(|| certificate);
    }

    /// The client's certificate, if it has shown one.
    pub(super) fn certificate(&self) -> Option<&ClientCertificate> {
        self.certificate.get()
    }

    /// Whether the connection is encrypted.
    #[must_use]
    pub const fn is_tls(&self) -> bool {
        self.tls
    }

    /// What STARTUP said; `None` before it.
    #[must_use]
    pub fn startup(&self) -> Option<&Startup> {
        self.startup.get()
    }

    /// STARTUP has been answered. The first one counts.
    pub(super) fn set_startup(&self, startup: Startup) {
        drop(self.startup.set(startup));
    }

    /// Whether requests may come: after the login, where there is one.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed)
    }

    /// Requests may come.
    pub(super) fn set_ready(&self) {
        self.ready.store(true, Ordering::Relaxed);
    }

    /// The connection is to make room for another one.
    pub(super) fn evict(&self) {
        self.evicted.store(true, Ordering::Relaxed);
        self.eviction.notify_one();
    }

    /// The connection ends at once, as if the machine were gone: nothing more is answered.
    pub(super) fn cut(&self) {
        self.cut.store(true, Ordering::Relaxed);
        self.evict();
    }

    /// Whether the connection ends at once.
    pub(super) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    /// Whether the connection has been told to make room.
    #[cfg(test)]
    pub(super) fn is_evicted(&self) -> bool {
        self.evicted.load(Ordering::Relaxed)
    }

    /// Waits until the connection is to make room. For its own task only.
    pub(super) async fn evicted(&self) {
        while !self.evicted.load(Ordering::Relaxed) {
            self.eviction.notified().await;
        }
    }

    /// Requests that have come.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// So many more requests have come.
    pub(super) fn count_requests(&self, count: u64) {
        self.requests.fetch_add(count, Ordering::Relaxed);
    }

    /// Keyspace and user at this moment, as one value, so that a request sees both as they belong together.
    #[must_use]
    pub fn state(&self) -> Arc<SessionState> {
        self.state.load_full()
    }

    /// The keyspace of unqualified names from now on.
    pub fn set_keyspace(&self, keyspace: &str) {
        let keyspace: Arc<str> = keyspace.into();
        self.state.rcu(|state| SessionState {
            keyspace: Some(Arc::clone(&keyspace)),
            ..SessionState::clone(state)
        });
    }

    /// This user has logged in.
    pub fn set_user(&self, user: &str) {
        let user: Arc<str> = user.into();
        self.state.rcu(|state| SessionState {
            user: Some(Arc::clone(&user)),
            ..SessionState::clone(state)
        });
    }

    /// Whether the client is to be warned of preparing after USE: once in a connection.
    pub(super) fn warn_of_use(&self) -> bool {
        !self.warned_of_use.swap(true, Ordering::Relaxed)
    }

    /// Where events are told.
    #[must_use]
    pub const fn events(&self) -> &Arc<Events> {
        &self.events
    }
}
