//! Helenus: a database server that speaks the Cassandra native protocol and CQL.

pub mod clock;
pub mod config;
pub mod executor;
pub mod functions;
pub mod metrics;
pub mod partition;
pub mod planner;
pub mod schema;
pub mod server;
pub mod storage;
mod test_server;
pub mod throughput;
pub mod token;
pub mod types;
pub mod wire;

pub use test_server::TestServer;
