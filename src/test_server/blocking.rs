//! A [`TestServer`] for tests without async.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use super::{TestServer, TestServerBuilder, TestServerError};
use crate::server::reset::Keep;
use helenus_cql::cql::Error;

/// A [`TestServer`] whose methods wait.
///
/// ```
/// let server = helenus::BlockingTestServer::start(helenus::TestServer::builder()).unwrap();
/// assert!(std::net::TcpStream::connect(server.address()).is_ok());
/// ```
#[derive(Debug)]
pub struct BlockingTestServer {
    server: TestServer,
    runtime: Runtime,
}

impl BlockingTestServer {
    /// Starts a server. Not within a runtime of tokio.
    ///
    /// # Errors
    /// A setting means nothing, or the server cannot start.
    ///
    /// # Panics
    /// The system refuses threads, or it is called within a runtime of tokio.
    pub fn start(builder: TestServerBuilder) -> Result<Self, TestServerError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("the system has threads left");
        let server = runtime.block_on(builder.start())?;
        Ok(Self { server, runtime })
    }

    /// Where drivers connect.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The server, for all that does not wait.
    #[must_use]
    pub const fn server(&self) -> &TestServer {
        &self.server
    }

    /// Moves the server's time.
    pub fn advance(&self, by: Duration) {
        self.server.advance(by);
    }

    /// Empties the server as between two tests.
    ///
    /// # Errors
    /// A statement of the reset failed.
    pub fn reset(&self, keep: Keep) -> Result<(), Error> {
        self.runtime.block_on(self.server.reset(keep))
    }

    /// Ends as the program does on SIGTERM.
    ///
    /// # Errors
    /// The medium fails.
    pub fn stop(self) -> Result<(), helenus_engine::engine::Error> {
        self.runtime.block_on(self.server.stop())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_serves_resets_and_stops_without_async() {
        let server = BlockingTestServer::start(TestServer::builder()).unwrap();
        assert!(std::net::TcpStream::connect(server.address()).is_ok());
        server.advance(Duration::from_secs(1));
        server.stop().unwrap();
        // A clock that can be moved is what a reset needs.
        let server =
            BlockingTestServer::start(TestServer::builder().clock(helenus_base::clock::Clock::movable())).unwrap();
        server.reset(Keep::Schema).unwrap();
    }
}
