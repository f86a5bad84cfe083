//! Helenus: a database server that speaks the Cassandra native protocol and CQL.
//!
//! # The life of a request
//!
//! An EXECUTE of `INSERT INTO ks.t (k, v) VALUES (?, ?)`, from the socket to the disk and back:
//!
//! 1. **Bytes.** The connection's task (`server::connection`, one for each connection) reads into the buffer of its
//!    [`wire::frame::Decoder`](helenus_types::wire::frame::Decoder). The limit of a body is compared with the announced length before the body is awaited.
//! 2. **Envelope.** [`wire::frame::Decoder::next_inbound`](helenus_types::wire::frame::Decoder::next_inbound) checks the segment's checksums (version 5), decompresses, and gives a
//!    [`wire::Header`](helenus_types::wire::Header) with its body, which is a slice of what was read.
//! 3. **Phase.** `server::handshake::step` checks the request against the connection's phase. OPTIONS, STARTUP,
//!    AUTH_RESPONSE and REGISTER are answered there and then.
//! 4. **Request.** [`server::Requests`] parses the body with [`wire::request::Request::parse`](helenus_types::wire::request::Request::parse): text is borrowed, each
//!    bound value is a slice of the body. It finds the statement by its id among those prepared (`server::prepared`);
//!    if the schema has changed since, the text is planned again.
//! 5. **Plan.** Made once, at PREPARE: `grammar::parse` makes the syntax tree, `planner::plan` resolves names and
//!    assigns types to the markers according to the schema.
//! 6. **Bind.** [`cql::Database::execute`](helenus_cql::cql::Database::execute) begins an execution of the engine (`engine::Execution`), which takes the snapshot of the
//!    catalog and checks permissions, and binds the values: the result is a [`command`](helenus_schema::command) of keys and bytes, without names or terms.
//! 7. **Place.** [`token::Token::of`](helenus_types::token::Token::of) the partition key selects the physical partition; the consistency level sets how
//!    many of its replicas must be alive ([`partition`](helenus_engine::partition)).
//! 8. **Store.** The write becomes cells with timestamps, in one batch. The store's committer groups the batches that
//!    wait, writes them once, syncs once, and wakes their requests (`storage`). A read takes the opposite path: a
//!    snapshot is scanned, and each cell is encoded as the frame needs it.
//! 9. **Response.** The [`cql::Answer`](helenus_cql::cql::Answer) becomes a [`wire::response::Response`](helenus_types::wire::response::Response) on the request's stream; an error
//!    becomes one in `server::refusal`, the only place that maps errors to codes.
//! 10. **Bytes.** [`wire::frame::Encoder::write`](helenus_types::wire::frame::Encoder::write) appends it to the output buffer. When no other response is ready the
//!     connection closes the segment and writes once for all of it.
//!
//! Steps 1 to 10 happen on one task, without a lock or another task between them, unless step 8 has to wait; then the
//! task continues with other requests and returns (`server::inflight`).
//!
//! # The modules
//!
//! Each module's own page says what it knows and what it must never know; `tests/house.rs` enforces which may use
//! which. A server is assembled in [`assembly::run`]; [`TestServer`] does so inside a test.

pub mod advice;
pub mod assembly;
pub mod cli;
pub mod config;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
pub mod server;
mod test_server;

// What the interface of `TestServer` names: it is promised, and its crates are not.
pub use helenus_base::clock::Clock;
pub use helenus_cql::cql::{Answer, AnswerKind, Database, QueryParams, Rows, SessionState};
pub use helenus_engine::engine::shown::{LoggedRequest, ThrottleShown};
pub use helenus_engine::partition::faults::Plan;
pub use test_server::{BlockingTestServer, TestServer, TestServerBuilder, TestServerError};
