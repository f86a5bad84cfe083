//! Sockets: connections, what may be said on them when, and who answers.
//!
//! The life of a connection: `listener` accepts and admits it, its own task (`connection`) reads envelopes and judges each
//! by how far the connection has come (`handshake`); requests for the database go to a [`Handler`] and are polled by the same
//! task until they are done (`inflight`); answers leave in the order in which they are ready.
//!
//! Invariants: every queue, count and wait has a bound in [`Limits`]; memory follows bytes received; a panic answers one
//! request; what has been begun is carried through; OPTIONS is answered past all work; events are only told to connections
//! that registered.
//!
//! Absent on purpose: CQL, schema, rows: a handler knows them. Sources: native_protocol_v5.spec §4; the drivers' own code.

pub mod admin;
mod admission;
pub mod audit;
mod auth;
mod client_certificates;
mod closing;
mod connection;
mod events;
mod guesses;
mod handshake;
mod held;
pub mod identity;
mod incoming;
mod inflight;
mod jobs;
mod limits;
mod listener;
pub mod log;
mod memory;
pub mod operator;
mod prepared;
mod refusal;
mod requests;
pub mod reset;
pub mod roles;
pub mod run;
mod session;
mod socket;
pub mod survey;
mod tls;
mod trace;

use std::sync::Arc;

use bytes::Bytes;

pub use auth::{AUTHENTICATOR_CLASS, Credentials, DEFAULT_ROLE};
pub use client_certificates::{AuthoritiesError, ClientTrust};
pub use events::{Events, Subscription};
pub use handshake::{COSMOS_CQL_VERSION, CQL_VERSION};
pub use limits::Limits;
pub use listener::{Bound, Options, Server, StartError, TlsIdentity, TlsOptions};
pub use requests::{ChargePayload, Requests};
pub use session::{Session, Startup};
pub use tls::{Certificates, Looked, TlsError};

use crate::wire::frame::Header;
use crate::wire::response::Response;

/// What came of a request.
#[derive(Debug)]
pub enum Handled {
    /// This is to be answered.
    Answer(Response),
    /// There is no memory for its answer now: it is to be begun again once there is.
    NoRoom(Postponed),
}

impl From<Response> for Handled {
    fn from(response: Response) -> Self {
        Self::Answer(response)
    }
}

/// A request that waits for memory, as it came: all that is kept of it meanwhile.
#[derive(Debug)]
pub struct Postponed {
    /// Its header.
    pub header: Header,
    /// Its body.
    pub body: Bytes,
    /// The memory that its answer needs, in bytes.
    pub answer_bytes: usize,
}

/// Answers QUERY, PREPARE, EXECUTE and BATCH. Two stand behind this seam: the database, and one with canned answers against
/// which the cost of the database is measured.
pub trait Handler: Send + Sync + 'static {
    /// What comes of one request. Polled on the connection's task, so it must not block; a panic is answered as an error.
    fn handle(
        self: Arc<Self>,
        session: Arc<Session>,
        header: Header,
        body: Bytes,
    ) -> impl Future<Output = Handled> + Send + 'static;
}
