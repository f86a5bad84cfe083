//! Sockets: connections, which requests are allowed when, and their dispatch.
//!
//! The life of a connection: `listener` accepts and admits it; its own task (`connection`) reads envelopes and checks
//! each against the connection's phase (`handshake`). Requests for the database go to a [`Handler`] and are polled by
//! the same task until they are done (`inflight`). Responses leave in the order in which they are ready.
//!
//! Invariants: every queue, count and wait has a bound in [`Limits`]; memory follows bytes received; a panic answers
//! one request; a request that has begun is completed; OPTIONS is answered before all queued work; events are sent only
//! to connections that registered.
//!
//! Deliberately absent: CQL, schema and rows; these are the handler's. Sources: native_protocol_v5.spec §4; the
//! drivers' own code.

pub mod admin;
mod admission;
pub mod audit;
mod auth;
mod client_certificates;
mod closing;
mod connection;
mod events;
pub(crate) mod fault_warnings;
mod guesses;
mod handshake;
mod held;
pub mod identity;
mod incoming;
mod inflight;
mod limits;
mod listener;
pub mod log;
pub(crate) mod memory;
pub mod operator;
mod prepared;
mod refusal;
mod requests;
pub mod reset;
mod secrets;
mod session;
mod socket;
pub mod tables;
mod tls;
mod trace;
mod weight;

use std::sync::Arc;

use bytes::Bytes;

pub use auth::{AUTHENTICATOR_CLASS, Credentials, DEFAULT_ROLE};
pub use client_certificates::{AuthoritiesError, ClientTrust};
pub use events::{Events, Subscription};
pub use handshake::{COSMOS_CQL_VERSION, CQL_VERSION};
pub use limits::Limits;
pub(crate) use listener::node_address;
pub use listener::{Bound, Options, Server, StartError, TlsOptions};
pub(crate) use requests::emit_schema_changes;
pub use requests::{ChargePayload, Relay, RelayedRequest, Requests};
pub use session::{Session, Startup};
pub use tls::{Certificates, Reload, TlsError, TlsIdentity};

use helenus_types::wire::Header;
use helenus_types::wire::response::Response;

/// The outcome of a request.
#[derive(Debug)]
pub enum Handled {
    /// The response.
    Answer(Response),
    /// There is no memory for its response now: begin it again once there is.
    NoRoom(Postponed),
}

impl From<Response> for Handled {
    fn from(response: Response) -> Self {
        Self::Answer(response)
    }
}

/// A request that waits for memory, as it arrived: all that is kept of it meanwhile.
#[derive(Debug)]
pub struct Postponed {
    /// Its header.
    pub header: Header,
    /// Its body.
    pub body: Bytes,
    /// The memory that its response needs, in bytes.
    pub answer_bytes: usize,
}

/// Answers QUERY, PREPARE, EXECUTE and BATCH. There are two implementations: the database, and one with canned
/// responses against which the cost of the database is measured.
pub trait Handler: Send + Sync + 'static {
    /// Executes one request. Polled on the connection's task, so it must not block; a panic is answered as an error.
    fn handle(
        self: Arc<Self>,
        session: Arc<Session>,
        header: Header,
        body: Bytes,
    ) -> impl Future<Output = Handled> + Send + 'static;
}
