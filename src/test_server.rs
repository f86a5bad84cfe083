//! A whole server inside a test.

mod blocking;
mod builder;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::assembly::opening::RunError;
use crate::assembly::run::{Running, THREAD_STACK_BYTES};
use crate::config::{Config, Values};
use crate::server::reset::{Keep, reset};
use helenus_base::clock::Clock;
use helenus_cql::cql::Database;
use helenus_engine::engine::shown::{LoggedRequest, ThrottleShown};
use tokio::runtime::{Builder, Runtime};

pub use self::blocking::BlockingTestServer;
pub use self::builder::{TestServerBuilder, TestServerError};

/// A server on a free port of this machine, with its data in memory and a clock that stands still until the test moves
/// it.
///
/// Ends when it is dropped. Servers are independent: tests may run any number at once.
///
/// ```
/// use std::time::Duration;
/// use helenus::{QueryParams, SessionState};
///
/// # let runtime = tokio::runtime::Runtime::new().unwrap();
/// # runtime.block_on(async {
/// let server = helenus::TestServer::start().await.unwrap();
/// // Any driver connects here …
/// assert!(server.address().port() > 0);
/// // … and a test may also query directly.
/// let (session, params) = (SessionState::default(), QueryParams::default());
/// for statement in [
///     "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
///     "CREATE TABLE ks.t (k int PRIMARY KEY, v text)",
///     "INSERT INTO ks.t (k, v) VALUES (1, 'soon gone') USING TTL 60",
/// ] {
///     server.database().query(&session, statement, &params).await.unwrap();
/// }
/// let count = async || match server.database().query(&session, "SELECT k FROM ks.t", &params).await.unwrap().kind {
///     helenus::AnswerKind::Rows(rows) => rows.row_count,
///     other => panic!("{other:?}"),
/// };
/// assert_eq!(count().await, 1);
/// server.advance(Duration::from_secs(61));
/// assert_eq!(count().await, 0);
/// # });
/// ```
#[derive(Debug)]
pub struct TestServer {
    running: Running,
    clock: Clock,
    address: SocketAddr,
    runtime: Threads,
}

/// A separate runtime, because the test's has too little stack for deeply nested statements.
#[derive(Debug)]
struct Threads(Option<Runtime>);

impl Threads {
    fn start() -> std::io::Result<Self> {
        Builder::new_multi_thread()
            .worker_threads(2)
            .thread_stack_size(THREAD_STACK_BYTES)
            .enable_all()
            .build()
            .map(|runtime| Self(Some(runtime)))
    }

    /// Runs a future there.
    async fn run<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> T {
        let runtime = self.0.as_ref().expect("it is there until the drop");
        runtime.spawn(future).await.expect("neither panics nor is aborted")
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // In the background, because blocking is not allowed if a test's own runtime drops this.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// 2023-11-14 22:13:20 UTC: the start of a test's clock.
const STARTED_MICROS: i64 = 1_700_000_000_000_000;

impl TestServer {
    /// Describes a server with the test's own settings.
    pub fn builder() -> TestServerBuilder {
        TestServerBuilder::default()
    }

    /// Starts a server over `memory:`. It runs on its own threads.
    ///
    /// # Errors
    /// No port is free.
    pub async fn start() -> Result<Self, RunError> {
        Self::over("memory:").await
    }

    /// Starts a server over another data URL, for tests that reopen the same data.
    ///
    /// # Errors
    /// The data cannot be opened, or no port is free.
    ///
    /// # Panics
    /// The system refuses threads.
    pub async fn over(data: &str) -> Result<Self, RunError> {
        let given = [("data", data), ("listen", "127.0.0.1:0")].map(|(name, value)| (name.into(), vec![value.into()]));
        let values = Values::gather(None, &given.into(), |_| None).expect("no file is read");
        let config = Config::new(&values).expect("the defaults are sound");
        Self::with(&config).await
    }

    /// Starts a server with the test's own settings.
    ///
    /// # Errors
    /// The data cannot be opened, or an address is in use.
    ///
    /// # Panics
    /// The settings have no address for plain connections, or the system refuses threads.
    pub async fn with(config: &Config) -> Result<Self, RunError> {
        Self::with_clock(config, Clock::manual(STARTED_MICROS)).await
    }

    async fn with_clock(config: &Config, clock: Clock) -> Result<Self, RunError> {
        let runtime = Threads::start().expect("the system has threads left");
        let (its_config, its_clock) = (config.clone(), clock.clone());
        let running = runtime
            .run(async move { Running::start(&its_config, its_clock, 1).await })
            .await?;
        let address = *running.server().addresses().first().expect("a test server listens");
        Ok(Self {
            running,
            clock,
            address,
            runtime,
        })
    }

    /// The address for drivers.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address for drivers with TLS. `None` means the settings have none.
    #[must_use]
    pub fn tls_address(&self) -> Option<SocketAddr> {
        self.running.server().tls_addresses().first().copied()
    }

    /// The certificate that the server generated, as PEM. `None` unless it is in the profile `cosmos` without a
    /// configured one.
    #[must_use]
    pub fn certificate(&self) -> Option<&str> {
        self.running
            .identity()
            .and_then(crate::server::identity::Identity::certificate)
    }

    /// The first address of tables. `None` means the settings have none.
    #[must_use]
    pub fn tables_address(&self) -> Option<SocketAddr> {
        self.running.tables_addresses().first().copied()
    }

    /// The address of the admin port. `None` means the settings have none.
    #[must_use]
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.running.admin_address()
    }

    /// The database itself, for tests that need no connection.
    #[must_use]
    pub const fn database(&self) -> &Arc<Database> {
        self.running.database()
    }

    /// The server's clock; a clone of it moves together with it.
    #[must_use]
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Moves the server's time.
    pub fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// Empties the server as between two tests: see [`crate::server::reset`]. Its clock keeps its time, because it may
    /// not go back.
    ///
    /// # Errors
    /// A statement of the reset failed.
    pub async fn reset(&self, keep: Keep) -> Result<(), helenus_cql::cql::Error> {
        reset(self.database(), &self.clock, keep).await
    }

    /// The statements executed since the start, with their charges in request units, oldest first; at most as many as
    /// `request-log-max`.
    #[must_use]
    pub fn charges(&self) -> Vec<LoggedRequest> {
        self.database().engine().figures().requests()
    }

    /// The statements that did not get their request units at once, oldest first.
    #[must_use]
    pub fn throttles(&self) -> Vec<ThrottleShown> {
        self.database().engine().figures().throttles()
    }

    /// Ends as the program does on SIGTERM: requests in progress are answered, the data is closed.
    ///
    /// # Errors
    /// The medium fails.
    pub async fn stop(self) -> Result<(), helenus_engine::engine::Error> {
        let Self { running, runtime, .. } = self;
        runtime.run(running.stop()).await
    }
}
