//! What a connection is to those who answer its requests.

use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::events::Events;

/// What may change in a connection's life, as one value, so that a request sees it whole.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// The keyspace of unqualified names: the last USE.
    pub keyspace: Option<Arc<str>>,
    /// Who has logged in; `None` where nobody must.
    pub user: Option<Arc<str>>,
}

/// One connection. Shared by its requests in work.
#[derive(Debug)]
pub struct Session {
    client: SocketAddr,
    state: ArcSwap<State>,
    events: Arc<Events>,
}

impl Session {
    /// A connection that has just come.
    #[must_use]
    pub fn new(client: SocketAddr, events: Arc<Events>) -> Self {
        Self {
            client,
            state: ArcSwap::default(),
            events,
        }
    }

    /// Where the client is.
    #[must_use]
    pub const fn client(&self) -> SocketAddr {
        self.client
    }

    /// Keyspace and user at this moment.
    #[must_use]
    pub fn state(&self) -> Arc<State> {
        self.state.load_full()
    }

    /// The keyspace of unqualified names from now on.
    pub fn set_keyspace(&self, keyspace: &str) {
        let keyspace: Arc<str> = keyspace.into();
        self.state.rcu(|state| State {
            keyspace: Some(Arc::clone(&keyspace)),
            user: state.user.clone(),
        });
    }

    /// This user has logged in.
    pub fn set_user(&self, user: &str) {
        let user: Arc<str> = user.into();
        self.state.rcu(|state| State {
            keyspace: state.keyspace.clone(),
            user: Some(Arc::clone(&user)),
        });
    }

    /// Where events are told.
    #[must_use]
    pub const fn events(&self) -> &Arc<Events> {
        &self.events
    }
}
