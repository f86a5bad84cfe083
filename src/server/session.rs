//! A connection as its requests see it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use tokio::sync::Notify;

use super::client_certificates::ClientCertificate;
use super::events::Events;
use helenus_base::budget::Share;
use helenus_cql::cql::SessionState;
use helenus_types::wire::Version;

/// One connection. Shared by its requests in progress.
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

/// The content of STARTUP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Startup {
    /// The version of the protocol.
    pub version: Version,
    /// As sent.
    pub options: Vec<(String, String)>,
}

impl Session {
    /// A connection that was just accepted.
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

    /// The same, accepted at an address of the server that belongs to a virtual node (from 0).
    #[must_use]
    pub fn accepted_at(self, local: SocketAddr, node: usize) -> Self {
        self.state.rcu(|state| SessionState {
            node,
            ..SessionState::clone(state)
        });
        Self {
            local: Some(local),
            ..self
        }
    }

    /// The same, with a share of the memory of all connections.
    #[must_use]
    pub fn with_share(self, share: &Arc<Share>) -> Self {
        self.state.rcu(|state| SessionState {
            share: Some(Arc::clone(share)),
            ..SessionState::clone(state)
        });
        self
    }

    /// The client's address.
    #[must_use]
    pub const fn client(&self) -> SocketAddr {
        self.client
    }

    /// The server's address of the connection, if it is known.
    #[must_use]
    pub const fn local(&self) -> Option<SocketAddr> {
        self.local
    }

    /// The virtual node that the client is connected to, from 0.
    #[must_use]
    pub fn node(&self) -> usize {
        self.state.load().node
    }

    /// Sets the certificate of the handshake, which happens once.
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

    /// The content of STARTUP. `None` means it has not arrived.
    #[must_use]
    pub fn startup(&self) -> Option<&Startup> {
        self.startup.get()
    }

    /// Records STARTUP. Only the first one counts.
    pub(super) fn set_startup(&self, startup: Startup) {
        drop(self.startup.set(startup));
    }

    /// Whether requests are allowed: after the login, if one is required.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed)
    }

    /// Allows requests.
    pub(super) fn set_ready(&self) {
        self.ready.store(true, Ordering::Relaxed);
    }

    /// Makes the connection end in favour of another one.
    pub(super) fn evict(&self) {
        self.evicted.store(true, Ordering::Relaxed);
        self.eviction.notify_one();
    }

    /// Ends the connection at once, as if the machine had failed: nothing more is answered.
    pub(super) fn cut(&self) {
        self.cut.store(true, Ordering::Relaxed);
        self.evict();
    }

    /// Whether the connection ends at once.
    pub(super) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    /// Whether the connection must end in favour of another one.
    #[cfg(test)]
    pub(super) fn is_evicted(&self) -> bool {
        self.evicted.load(Ordering::Relaxed)
    }

    /// Waits until the connection must end in favour of another one. For its own task only.
    pub(super) async fn evicted(&self) {
        while !self.evicted.load(Ordering::Relaxed) {
            self.eviction.notified().await;
        }
    }

    /// Requests received.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Counts further requests.
    pub(super) fn count_requests(&self, count: u64) {
        self.requests.fetch_add(count, Ordering::Relaxed);
    }

    /// Keyspace and user, as one value, so that a request sees a consistent pair.
    #[must_use]
    pub fn state(&self) -> Arc<SessionState> {
        self.state.load_full()
    }

    /// Acts for a connection of another node: its role, and its keyspace of unqualified names.
    pub(super) fn act_as(&self, user: Option<Arc<str>>, keyspace: Option<Arc<str>>) {
        self.state.rcu(|state| SessionState {
            user: user.clone(),
            keyspace: keyspace.clone(),
            ..SessionState::clone(state)
        });
    }

    /// Sets the keyspace of unqualified names.
    pub fn set_keyspace(&self, keyspace: &str) {
        let keyspace: Arc<str> = keyspace.into();
        self.state.rcu(|state| SessionState {
            keyspace: Some(Arc::clone(&keyspace)),
            ..SessionState::clone(state)
        });
    }

    /// Sets the user who logged in.
    pub fn set_user(&self, user: &str) {
        let user: Arc<str> = user.into();
        self.state.rcu(|state| SessionState {
            user: Some(Arc::clone(&user)),
            ..SessionState::clone(state)
        });
    }

    /// Whether to warn the client about preparing after USE; true once per connection.
    pub(super) fn warn_of_use(&self) -> bool {
        !self.warned_of_use.swap(true, Ordering::Relaxed)
    }

    /// The sender of events.
    #[must_use]
    pub const fn events(&self) -> &Arc<Events> {
        &self.events
    }
}
