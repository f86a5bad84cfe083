//! Every bound of the server, in one place.

use std::time::Duration;

/// How much a server accepts and how long it waits. Each bound is enforced before memory is allocated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of a request's body. Cassandra: `native_transport_max_frame_size`, 16 MiB.
    pub body_bytes_max: usize,
    /// Most bytes of a body before the client has logged in.
    pub body_bytes_max_before_login: usize,
    /// From accepting a connection to READY or AUTH_SUCCESS, TLS included.
    pub login_deadline: Duration,
    /// Bytes of responses that wait for a client to read them, per connection; above it nothing more is read or begun.
    pub queued_bytes_max: usize,
    /// Bytes of responses, buffers and requests of all connections together; see [`helenus_base::budget`].
    pub memory_bytes_max: usize,
    /// How long a response waits for memory before its request is refused.
    pub memory_wait: Duration,
    /// How long responses may wait without the client reading a byte before the connection is closed.
    pub slow_client: Duration,
    /// Requests in progress at once, per connection; more wait.
    pub in_flight_max: usize,
    /// Bytes of the bodies of requests in progress at once, per connection.
    pub in_flight_bytes_max: usize,
    /// Bytes of the bodies of requests in progress at once, over all connections.
    pub in_flight_bytes_total_max: usize,
    /// Bytes of the bodies of requests that were read and wait to begin, per connection.
    pub waiting_bytes_max: usize,
    /// Connections at once.
    pub connections_max: usize,
    /// Connections at once from one address.
    pub connections_per_address_max: usize,
    /// How long a connection may be without a request; drivers send a heartbeat every 30 s on most of theirs.
    pub idle: Duration,
    /// How long connections may take to finish their requests when the server stops.
    pub drain: Duration,
    /// Events queued for a registered client; beyond it the client is disconnected.
    pub events_max: usize,
    /// Prepared statements kept.
    pub prepared_max: usize,
    /// Bytes of prepared statements kept, estimated.
    pub prepared_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: usize = 1024 * 1024;
        Self {
            body_bytes_max: 16 * MIB,
            body_bytes_max_before_login: 64 * 1024,
            login_deadline: Duration::from_secs(10),
            queued_bytes_max: 256 * 1024,
            memory_bytes_max: 256 * MIB,
            memory_wait: Duration::from_secs(5),
            slow_client: Duration::from_secs(30),
            in_flight_max: 1024,
            in_flight_bytes_max: 32 * MIB,
            in_flight_bytes_total_max: 192 * MIB,
            waiting_bytes_max: MIB,
            connections_max: 8192,
            connections_per_address_max: 4096,
            idle: Duration::from_secs(30 * 60),
            drain: Duration::from_secs(10),
            events_max: 1024,
            prepared_max: 10_000,
            prepared_bytes_max: 64 * MIB,
        }
    }
}
