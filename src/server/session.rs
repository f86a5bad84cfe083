//! What a connection is to those who answer its requests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;

use super::events::Events;
use crate::executor::SessionState;

/// One connection. Shared by its requests in work.
#[derive(Debug)]
pub struct Session {
    client: SocketAddr,
    state: ArcSwap<SessionState>,
    warned_of_use: AtomicBool,
    events: Arc<Events>,
}

impl Session {
    /// A connection that has just come.
    #[must_use]
    pub fn new(client: SocketAddr, events: Arc<Events>) -> Self {
        Self {
            client,
            state: ArcSwap::from_pointee(SessionState {
                client: Some(client),
                ..SessionState::default()
            }),
            warned_of_use: AtomicBool::new(false),
            events,
        }
    }

    /// Where the client is.
    #[must_use]
    pub const fn client(&self) -> SocketAddr {
        self.client
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
