//! Who may connect: bounds on connections, in all and per address, and on the bytes of requests in work.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::session::Session;

/// Counts what is admitted, and knows who it is.
#[derive(Debug, Default)]
pub(super) struct Admission {
    connections: Mutex<Connections>,
    in_flight_bytes: AtomicUsize,
}

#[derive(Debug, Default)]
struct Connections {
    sessions: HashMap<SocketAddr, Arc<Session>>,
    by_address: HashMap<IpAddr, usize>,
}

/// One admitted connection; dropped with it.
#[derive(Debug)]
pub(super) struct Admitted {
    admission: Arc<Admission>,
    from: SocketAddr,
}

impl Admission {
    fn locked(&self) -> std::sync::MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a connection; `None` if there are too many.
    pub(super) fn admit(
        self: &Arc<Self>,
        session: &Arc<Session>,
        total_max: usize,
        per_address_max: usize,
    ) -> Option<Admitted> {
        let from = session.client();
        let mut connections = self.locked();
        let here = connections.by_address.get(&from.ip()).copied().unwrap_or(0);
        if connections.sessions.len() >= total_max || here >= per_address_max {
            return None;
        }
        connections.sessions.insert(from, Arc::clone(session));
        connections.by_address.insert(from.ip(), here + 1);
        drop(connections);
        Some(Admitted {
            admission: Arc::clone(self),
            from,
        })
    }

    /// Connections open now.
    pub(super) fn connections(&self) -> usize {
        self.locked().sessions.len()
    }

    /// The connections open now, in no order.
    pub(super) fn sessions(&self) -> Vec<Arc<Session>> {
        self.locked().sessions.values().map(Arc::clone).collect()
    }

    /// Bytes of requests in work, over all connections.
    pub(super) fn in_flight_bytes(&self) -> usize {
        self.in_flight_bytes.load(Ordering::Relaxed)
    }

    /// A request has been begun.
    pub(super) fn begin(&self, bytes: usize) {
        self.in_flight_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// A request has been answered.
    pub(super) fn end(&self, bytes: usize) {
        self.in_flight_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut connections = self.admission.locked();
        connections.sessions.remove(&self.from);
        let address = self.from.ip();
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

    #[test]
    fn bounds_hold_and_places_come_back() {
        let admission = Arc::new(Admission::default());
        let from = |address: &str| {
            Arc::new(Session::new(
                address.parse().unwrap(),
                false,
                Arc::new(super::super::Events::default()),
            ))
        };
        let first = admission.admit(&from("10.0.0.1:1"), 3, 2).unwrap();
        let _second = admission.admit(&from("10.0.0.1:2"), 3, 2).unwrap();
        assert!(admission.admit(&from("10.0.0.1:3"), 3, 2).is_none());
        let _third = admission.admit(&from("10.0.0.2:1"), 3, 2).unwrap();
        assert!(admission.admit(&from("10.0.0.2:2"), 3, 2).is_none());
        drop(first);
        assert_eq!(admission.connections(), 2);
        assert!(admission.admit(&from("10.0.0.1:1"), 3, 2).is_some());
    }
}
