//! The server's own state, passed to views as plain values.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::metrics::BucketPrices;

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
    /// Requests in flight that wait for something, as writes do for the disk.
    pub in_flight: usize,
    /// Bytes of their bodies.
    pub in_flight_bytes: usize,
    /// Bytes of answers, buffers and requests of all connections.
    pub memory_bytes: usize,
    /// The limit of the part for answers.
    pub memory_bytes_max: usize,
    /// Answers and large requests that wait for memory.
    pub memory_waiting: usize,
}

/// Properties that stay the same while a server runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Where CQL is served.
    pub addresses: Vec<String>,
    /// Where CQL is served over TLS.
    pub tls_addresses: Vec<String>,
    /// Whether clients must log in.
    pub login_required: bool,
    /// Where data is kept.
    pub data: String,
    /// When a write is acknowledged.
    pub durability: String,
    /// What requests to a bucket cost.
    pub bucket_prices: BucketPrices,
    /// When the server started, seconds since 1970-01-01 UTC.
    pub started_seconds: i64,
}

/// The server's own state, at one moment. Without a server all of it is empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Live {
    /// Connections.
    pub clients: Vec<Client>,
    /// The effective configuration: names and values.
    pub settings: Arc<Vec<(String, String)>>,
    /// Prepared statements that are kept.
    pub prepared: usize,
    /// Memory of prepared statements, roughly.
    pub prepared_bytes: usize,
    /// Connections and requests.
    pub load: Load,
    /// Time since the server started.
    pub uptime: Duration,
    /// What does not change.
    pub facts: Arc<Facts>,
}
