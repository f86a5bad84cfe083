//! Servers that tests take in turn. Tests of one program run as threads; each has a server for itself until its end.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;

use crate::{Server, Start};

/// The servers that no test has at the moment. There are never more than tests ran at the same time.
static IDLE: LazyLock<Mutex<HashMap<Start, Vec<Server>>>> = LazyLock::new(Mutex::default);

/// A plain Cassandra for one test: see [`server_with`].
#[must_use]
pub fn server() -> Lent {
    server_with(Start::default())
}

/// An empty server for one test: no faults, full budgets, today's time, no rows. Tables that earlier tests made are there, and empty. The next
/// test takes it over when this is dropped. When the test panics, the last lines of the server's log go to standard error.
///
/// # Panics
/// The server does not start.
#[must_use]
pub fn server_with(start: Start) -> Lent {
    let idle = IDLE
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get_mut(&start)
        .and_then(Vec::pop);
    let server = if let Some(server) = idle {
        server.reset_keeping_schema();
        server
    } else {
        start.start().unwrap_or_else(|error| panic!("{error}"))
    };
    Lent {
        server: Some(server),
        start,
    }
}

/// A server that one test has.
#[derive(Debug)]
pub struct Lent {
    /// `None` only while it is dropped.
    server: Option<Server>,
    start: Start,
}

impl Deref for Lent {
    type Target = Server;

    fn deref(&self) -> &Server {
        self.server.as_ref().expect("it goes when this is dropped")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(server) = self.server.take() else { return };
        if thread::panicking() {
            eprintln!("the last lines of the Helenus log:\n{}", server.log());
        }
        let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        idle.entry(std::mem::take(&mut self.start)).or_default().push(server);
    }
}
