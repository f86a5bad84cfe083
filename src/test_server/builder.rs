//! The description of a [`TestServer`].

use std::collections::BTreeMap;

use super::{STARTED_MICROS, TestServer};
use crate::assembly::opening::RunError;
use crate::config::{Config, ConfigError, SETTINGS, Values};
use helenus_base::clock::Clock;
use helenus_engine::partition::faults::{Plan, PlanError};

/// Why a test server does not start.
#[derive(Debug, thiserror::Error)]
pub enum TestServerError {
    /// A setting does not exist.
    #[error("there is no setting {0}; `helenus settings` lists all")]
    Unknown(String),
    /// The settings mean nothing, or do not go together.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The fault plan does not go with the settings.
    #[error(transparent)]
    Faults(#[from] PlanError),
    /// The data cannot be opened, or an address is taken.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// A server as a test wants it. Data is in memory, ports are free ones, and the clock stands still, unless said otherwise.
///
/// ```
/// use helenus::TestServer;
/// use helenus::{QueryParams, SessionState};
///
/// # let runtime = tokio::runtime::Runtime::new().unwrap();
/// # runtime.block_on(async {
/// let server = TestServer::builder().cosmos().set("scale-limits", "1/1000").start().await.unwrap();
/// let (session, params) = (SessionState::default(), QueryParams::default());
/// for statement in [
///     "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
///     "CREATE TABLE ks.t (k int PRIMARY KEY, v text)",
///     "INSERT INTO ks.t (k, v) VALUES (1, 'a')",
/// ] {
///     server.database().query(&session, statement, &params).await.unwrap();
/// }
/// assert!(server.throttles().is_empty());
/// # });
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing starts before `start`"]
pub struct TestServerBuilder {
    given: BTreeMap<String, Vec<String>>,
    faults: Option<Plan>,
    clock: Clock,
}

impl Default for TestServerBuilder {
    fn default() -> Self {
        let given = [("data", "memory:"), ("listen", "127.0.0.1:0")];
        Self {
            given: given.map(|(name, value)| (name.into(), vec![value.into()])).into(),
            faults: None,
            clock: Clock::manual(STARTED_MICROS),
        }
    }
}

impl TestServerBuilder {
    /// Behaves as Azure Cosmos DB for Apache Cassandra. Clients log in as `helenus` with the key of the server's identity, or with
    /// `account-key`; there is an address without TLS and one with it.
    pub fn cosmos(self) -> Self {
        self.set("profile", "cosmos").set("tls-listen", "127.0.0.1:0")
    }

    /// Has virtual nodes, 1 or 4.
    pub fn nodes(self, count: usize) -> Self {
        self.set("nodes", &count.to_string())
    }

    /// Gives a setting a value, by the name that it has on the command line.
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.given.insert(name.to_owned(), vec![value.to_owned()]);
        self
    }

    /// Has faults from the start.
    pub fn faults(mut self, plan: Plan) -> Self {
        self.faults = Some(plan);
        self
    }

    /// Takes the time from a clock: [`Clock::movable`] runs and can be moved.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Starts the server.
    ///
    /// # Errors
    /// A setting does not exist or means nothing, or the server cannot start.
    pub async fn start(self) -> Result<TestServer, TestServerError> {
        let unknown = |name: &&String| !SETTINGS.iter().any(|setting| setting.name == name.as_str());
        if let Some(name) = self.given.keys().find(unknown) {
            return Err(TestServerError::Unknown(name.clone()));
        }
        let config = Config::new(&Values::gather(None, &self.given, |_| None)?)?;
        let server = TestServer::with_clock(&config, self.clock).await?;
        if let Some(plan) = self.faults {
            server.database().engine().nodes().set_plan(plan)?;
        }
        Ok(server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_cql::cql::Error;
    use helenus_cql::cql::{AnswerKind, QueryParams, SessionState};
    use helenus_engine::engine;

    async fn ask(server: &TestServer, statement: &str) -> Result<AnswerKind, Error> {
        let (session, params) = (SessionState::default(), QueryParams::default());
        Ok(server.database().query(&session, statement, &params).await?.kind)
    }

    const SCHEMA: [&str; 2] = [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (k int PRIMARY KEY, v text)",
    ];

    #[tokio::test]
    async fn settings_faults_nodes_and_clock_are_taken() {
        let clock = Clock::movable();
        let plan = Plan::from_toml("[[fault]]\naction = \"throttle\"\nstatement = \"write\"\n").unwrap();
        let builder = TestServer::builder().nodes(4).clock(clock.clone()).faults(plan);
        let server = builder.set("rack", "r7").start().await.unwrap();
        for statement in SCHEMA {
            ask(&server, statement).await.unwrap();
        }
        assert!(ask(&server, "INSERT INTO ks.t (k) VALUES (1)").await.is_err());
        assert!(ask(&server, "SELECT k FROM ks.t").await.is_ok());
        assert_eq!(server.running.server().addresses().len(), 4);
        assert!(!server.clock().is_stopped());
    }

    #[tokio::test]
    async fn charges_and_throttles_are_told_and_a_reset_empties() {
        let server = TestServer::builder().cosmos().start().await.unwrap();
        for statement in SCHEMA {
            ask(&server, statement).await.unwrap();
        }
        ask(&server, "INSERT INTO ks.t (k, v) VALUES (1, 'a')").await.unwrap();
        let charges = server.charges();
        let last = charges.last().unwrap();
        assert_eq!(last.table, Some(("ks".to_owned(), "t".to_owned())));
        assert!(last.request_charge > 0.0);
        assert!(server.throttles().is_empty());
        // The clock stands still, so a budget of 400 units a second ends.
        let mut refused = None;
        for k in 0..400 {
            refused = ask(&server, &format!("INSERT INTO ks.t (k) VALUES ({k})"))
                .await
                .err()
                .or(refused);
        }
        assert!(matches!(refused, Some(Error::Engine(engine::Error::Throttled { .. }))));
        assert_eq!(server.throttles()[0].table, "t");
        server.reset(crate::server::reset::Keep::Nothing).await.unwrap();
        assert!(ask(&server, "SELECT k FROM ks.t").await.is_err());
    }

    #[tokio::test]
    async fn what_does_not_exist_is_named() {
        let error = TestServer::builder().set("raks", "r").start().await.unwrap_err();
        assert!(error.to_string().contains("no setting raks"), "{error}");
        let error = TestServer::builder().set("nodes", "7").start().await.unwrap_err();
        assert!(matches!(error, TestServerError::Config(_)), "{error}");
    }
}
