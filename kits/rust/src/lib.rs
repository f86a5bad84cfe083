//! Starts Helenus, a server for the Cassandra protocol, in tests, and controls it: its clock, its data, its faults.
//!
//! ```no_run
//! let server = helenus_test::server();
//! let address = server.address(); // for any driver: `SessionBuilder::new().known_node(address)`
//! server.advance(std::time::Duration::from_secs(61));
//! ```
//!
//! The server is a child process that keeps its data in memory. It ends when its [`Server`] is dropped, and when the test process ends,
//! however that ends: the child reads its standard input, which this process holds open. Every method panics when the server refuses what
//! it is asked, since a test then fails with the reason; [`Start::start`] alone answers an error.

mod admin;
mod pool;
mod program;
mod server;

pub use pool::{Lent, server, server_with};
pub use program::{extract, find};
pub use server::{API, Server, Start};
