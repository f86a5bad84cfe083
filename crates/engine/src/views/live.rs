//! The server's own state, passed to views as plain values.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use helenus_base::metrics::BucketPrices;

/// A connected client, as `system_views.clients` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names and meanings are those of system_views.clients")]
pub struct Client {
    pub address: IpAddr,
    pub port: u16,
    pub client_options: Vec<(String, String)>,
    pub connection_stage: String,
    pub driver_name: Option<String>,
    pub driver_version: Option<String>,
    pub keyspace_name: Option<String>,
    pub protocol_version: u8,
    pub request_count: u64,
    pub ssl_cipher_suite: Option<String>,
    pub ssl_enabled: bool,
    pub ssl_protocol: Option<String>,
    pub username: String,
}

/// The load of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Connections open.
    pub connections: usize,
    /// Requests in flight that wait for io, such as writes for the disk.
    pub in_flight: usize,
    /// Bytes of the bodies of waiting requests.
    pub in_flight_bytes: usize,
    /// Bytes of responses, buffers and requests of all connections.
    pub memory_bytes: usize,
    /// The limit for responses.
    pub memory_bytes_max: usize,
    /// Responses and large requests that wait for memory.
    pub memory_waiting: usize,
}

/// Properties that are fixed while a server runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// The addresses for CQL.
    pub addresses: Vec<String>,
    /// The addresses for CQL over TLS.
    pub tls_addresses: Vec<String>,
    /// The account; `None`: the profile has none.
    pub account: Option<String>,
    /// Whether clients must log in.
    pub login_required: bool,
    /// The data directory or bucket.
    pub data: String,
    /// The durability of acknowledged writes.
    pub durability: String,
    /// The price of requests to a bucket.
    pub bucket_prices: BucketPrices,
    /// When the server started, seconds since 1970-01-01 UTC.
    pub started_seconds: i64,
    /// Memory that the server had allocated when it began to serve, in bytes: schema, partition maps, threads.
    pub started_bytes: u64,
}

/// A prepared statement, as `system.prepared_statements` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedText {
    /// By which it is executed.
    pub id: [u8; 16],
    /// The keyspace of its unqualified names. `None` means that it has none.
    pub keyspace: Option<String>,
    /// CQL, without secrets.
    pub text: String,
}

/// The server's own state at one moment. Without a server it is empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Live {
    /// Connections.
    pub clients: Vec<Client>,
    /// The effective configuration: names and values.
    pub settings: Arc<Vec<(String, String)>>,
    /// Cached prepared statements.
    pub prepared: usize,
    /// Approximate memory of prepared statements.
    pub prepared_bytes: usize,
    /// The prepared statements. Empty unless a table shows them.
    pub statements: Vec<PreparedText>,
    /// Connections and requests.
    pub load: Load,
    /// Time since the server started.
    pub uptime: Duration,
    /// The fixed properties.
    pub facts: Arc<Facts>,
}
