//! Admission of connections: bounds on connections, in all and per address, and on the bytes of requests in progress.
//!
//! When there are too many connections, a new one takes the slot of the oldest that has not reached READY. A real
//! client reaches READY within milliseconds, so a flood of silent connections evicts only its own.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::session::Session;

/// Counts the admitted connections, and holds their sessions.
#[derive(Debug, Default)]
pub(super) struct Admission {
    connections: Mutex<Connections>,
    in_flight_bytes: AtomicUsize,
    in_flight: AtomicUsize,
}

/// Both ends of a connection: one client address and port may be connected to several addresses of the server.
type Ends = (SocketAddr, Option<SocketAddr>);

#[derive(Debug, Default)]
struct Connections {
    sessions: HashMap<Ends, Arc<Session>>,
    by_address: HashMap<IpAddr, usize>,
    /// Connections that were not ready when last checked, oldest first.
    fresh: VecDeque<Weak<Session>>,
}

/// Most connections that may be ending at once.
const LEAVING_MAX: usize = 256;

impl Connections {
    /// Evicts the oldest connection that is not ready, of this address if one is given; `false` means there is none.
    fn evict(&mut self, from: Option<IpAddr>) -> bool {
        self.fresh
            .retain(|session| session.upgrade().is_some_and(|session| !session.is_ready()));
        let oldest = self.fresh.iter().position(|session| match from {
            None => true,
            Some(from) => session.upgrade().is_some_and(|session| session.client().ip() == from),
        });
        let evicted = oldest
            .and_then(|oldest| self.fresh.remove(oldest))
            .and_then(|session| session.upgrade());
        if let Some(session) = &evicted {
            session.evict();
        }
        evicted.is_some()
    }
}

/// One admitted connection; dropped with it.
#[derive(Debug)]
pub(super) struct Admitted {
    admission: Arc<Admission>,
    ends: Ends,
}

impl Admission {
    fn locked(&self) -> std::sync::MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a connection. `None` means there are too many.
    pub(super) fn admit(
        self: &Arc<Self>,
        session: &Arc<Session>,
        total_max: usize,
        per_address_max: usize,
    ) -> Option<Admitted> {
        let from = session.client();
        let mut connections = self.locked();
        let here = connections.by_address.get(&from.ip()).copied().unwrap_or(0);
        // An evicted connection counts until its task has ended, so a few more than the limits are allowed for a
        // moment.
        if here >= per_address_max + LEAVING_MAX || connections.sessions.len() >= total_max + LEAVING_MAX {
            return None;
        }
        if here >= per_address_max && !connections.evict(Some(from.ip())) {
            return None;
        }
        if here < per_address_max && connections.sessions.len() >= total_max && !connections.evict(None) {
            return None;
        }
        while connections
            .fresh
            .front()
            .is_some_and(|oldest| oldest.upgrade().is_none_or(|oldest| oldest.is_ready()))
        {
            connections.fresh.pop_front();
        }
        connections.fresh.push_back(Arc::downgrade(session));
        let ends = (from, session.local());
        connections.sessions.insert(ends, Arc::clone(session));
        connections.by_address.insert(from.ip(), here + 1);
        drop(connections);
        Some(Admitted {
            admission: Arc::clone(self),
            ends,
        })
    }

    /// Connections open now.
    pub(super) fn connections(&self) -> usize {
        self.locked().sessions.len()
    }

    /// The connections open now, unordered.
    pub(super) fn sessions(&self) -> Vec<Arc<Session>> {
        self.locked().sessions.values().map(Arc::clone).collect()
    }

    /// Bytes of requests in progress, over all connections.
    pub(super) fn in_flight_bytes(&self) -> usize {
        self.in_flight_bytes.load(Ordering::Relaxed)
    }

    /// Requests in progress, over all connections.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Counts a request that begins.
    pub(super) fn begin(&self, bytes: usize) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.in_flight_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts a request that ends.
    pub(super) fn end(&self, bytes: usize) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.in_flight_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut connections = self.admission.locked();
        connections.sessions.remove(&self.ends);
        let address = self.ends.0.ip();
        if let Some(here) = connections.by_address.get_mut(&address) {
            *here = here.saturating_sub(1);
            if *here == 0 {
                connections.by_address.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(address: &str) -> Arc<Session> {
        Arc::new(Session::new(
            address.parse().unwrap(),
            false,
            Arc::new(super::super::Events::default()),
        ))
    }

    #[test]
    fn bounds_hold_and_places_come_back() {
        let admission = Arc::new(Admission::default());
        let sessions = ["10.0.0.1:1", "10.0.0.1:2", "10.0.0.2:1"].map(from);
        let mut admitted: Vec<_> = sessions
            .iter()
            .map(|session| admission.admit(session, 3, 2).unwrap())
            .collect();
        sessions.iter().for_each(|session| session.set_ready());
        assert!(admission.admit(&from("10.0.0.1:3"), 3, 2).is_none());
        assert!(admission.admit(&from("10.0.0.2:2"), 3, 2).is_none());
        admitted.remove(0);
        assert_eq!(admission.connections(), 2);
        assert!(admission.admit(&from("10.0.0.1:1"), 3, 2).is_some());
    }

    #[test]
    fn the_oldest_that_is_not_ready_makes_room() {
        let admission = Arc::new(Admission::default());
        let sessions = ["10.0.0.1:1", "10.0.0.1:2"].map(from);
        let _admitted = sessions
            .each_ref()
            .map(|session| admission.admit(session, 9, 2).unwrap());
        sessions[0].set_ready();
        let third = from("10.0.0.1:3");
        let _third = admission.admit(&third, 9, 2).unwrap();
        assert!(sessions[1].is_evicted() && !sessions[0].is_evicted() && !third.is_evicted());
    }
}
