//! A client of a database in the same process, for tests.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

pub(crate) mod edge;
pub(crate) mod parts;
pub(crate) mod typed;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use self::edge::Edge;

use helenus_base::clock::Clock;
use helenus_cql::cql::{Answer, AnswerKind, Database, Error, QueryParams, SessionState};
use helenus_engine::engine::{self, Options, ThroughputRules};
use helenus_schema::schema::node::NodeInfo;
use helenus_storage::storage as store;

pub(crate) const NOW_MICROS: i64 = 1_700_000_000_000_000;

pub(crate) struct Client {
    /// The database, or the owner of its partitions.
    pub(crate) database: Arc<Database>,
    /// The machine that statements go to, if the owner is another one.
    edge: Option<Edge>,
    pub(crate) session: SessionState,
    pub(crate) clock: Clock,
}

impl Client {
    /// Opens a database with a clock that only the test moves.
    pub(crate) async fn open(url: &str) -> Self {
        Self::open_at(url, Clock::manual(NOW_MICROS)).await
    }

    /// Opens a database with this clock.
    pub(crate) async fn open_at(url: &str, clock: Clock) -> Self {
        Self::open_with(url, clock, ThroughputRules::default()).await
    }

    /// The options of these databases.
    pub(crate) fn options(url: &str, clock: Clock) -> Options {
        Options {
            url: url.parse().unwrap(),
            store: store::Options::default(),
            clock,
            seed: 1,
            node: NodeInfo::single(uuid::Uuid::nil(), IpAddr::V4(Ipv4Addr::LOCALHOST), 9042),
            page_bytes_max: Options::PAGE_BYTES_MAX,
            guardrails: helenus_schema::guardrails::Guardrails::default(),
            prices: helenus_engine::throughput::Coefficients::default(),
            limits: helenus_engine::engine::SizeLimits::default(),
            call_limits: helenus_types::functions::CallLimits::default(),
            clock_rules: helenus_engine::engine::ClockRules::default(),
            request_log_max: 100,
            count_at_once_rows_max: Options::COUNT_AT_ONCE_ROWS_MAX,
            profile: helenus_schema::profile::Profile::default(),
            throughput: ThroughputRules::default(),
            account: helenus_schema::profile::Account::default(),
            virtual_tables: std::sync::Arc::new(helenus_engine::views::Tables::default()),
            mask_calls: helenus_schema::planner::mask_calls,
            elsewhere: None,
        }
    }

    /// Opens a database with this clock, and throughput by these rules.
    pub(crate) async fn open_with(url: &str, clock: Clock, throughput: ThroughputRules) -> Self {
        let options = Options {
            throughput,
            ..Self::options(url, clock.clone())
        };
        let database = Arc::new(Database::open(options.clone()).await.unwrap());
        Self {
            edge: Edge::beside(&database, options).await,
            database,
            session: SessionState::default(),
            clock,
        }
    }

    /// A client of a database that is open, without another machine before it.
    pub(crate) fn over(database: Database, session: SessionState, clock: Clock) -> Self {
        Self {
            database: Arc::new(database),
            edge: None,
            session,
            clock,
        }
    }

    /// The same, with a machine without partitions before it.
    pub(crate) async fn through_edge(self) -> Self {
        let options = Self::options("memory:", self.clock.clone());
        Self {
            edge: Some(Edge::of(&self.database, options).await),
            ..self
        }
    }

    /// Opens a database, creates the keyspace `ks` and uses it.
    pub(crate) async fn with_keyspace(url: &str) -> Self {
        Self::open(url).await.in_keyspace().await
    }

    /// Creates the keyspace `ks` and uses it.
    pub(crate) async fn in_keyspace(self) -> Self {
        let mut client = self;
        client
            .ok("CREATE KEYSPACE IF NOT EXISTS ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
            .await;
        client.session.keyspace = Some("ks".into());
        client
    }

    /// Runs a statement.
    pub(crate) async fn run(&self, text: &str, params: QueryParams) -> Result<Answer, Error> {
        match &self.edge {
            None => self.database.query(&self.session, text, &params).await,
            Some(edge) => edge.query(&self.database, &self.session, text, &params).await,
        }
    }

    /// Runs a statement that must succeed.
    pub(crate) async fn ok(&self, text: &str) -> Answer {
        match self.run(text, QueryParams::default()).await {
            Ok(answer) => answer,
            Err(error) => panic!("{text}: {error}"),
        }
    }

    /// Runs a statement that must fail, and returns the error's text.
    pub(crate) async fn refused(&self, text: &str) -> String {
        self.run(text, QueryParams::default()).await.unwrap_err().to_string()
    }

    /// The rows of a query, printed.
    pub(crate) async fn rows(&self, text: &str) -> Vec<String> {
        printed(&self.ok(text).await)
    }

    /// Waits until the views of the keyspace `ks` are built.
    pub(crate) async fn views_built(&self) {
        for _ in 0..60_000 {
            let built = self.rows("SELECT view_name FROM system.built_views").await;
            let there = self
                .rows("SELECT view_name FROM system_schema.views WHERE keyspace_name = 'ks'")
                .await;
            if built.len() == there.len() {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        panic!("a view is not built");
    }

    /// No index is being built, and the entries of all are those of their rows.
    pub(crate) async fn indexes_agree(&self) {
        let check = self.database.engine().upkeep().check_indexes().await.unwrap();
        assert_eq!((check.building, check.differences), (0, 0), "{:?}", check.described);
    }

    /// Waits until no index and no change feed is being built.
    pub(crate) async fn built(&self) {
        for _ in 0..5000 {
            if self.rows("SELECT * FROM system_views.sstable_tasks").await.is_empty() {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
        panic!("an index is not built");
    }

    /// One page of a query, and where the next begins.
    pub(crate) async fn page(
        &self,
        text: &str,
        rows: u32,
        state: Option<bytes::Bytes>,
    ) -> (Vec<String>, Option<bytes::Bytes>) {
        let params = QueryParams {
            page_size_rows: Some(rows),
            paging_state: state,
            ..QueryParams::default()
        };
        let answer = self.run(text, params).await.unwrap();
        let state = match &answer.kind {
            AnswerKind::Rows(rows) => rows.paging_state.clone(),
            _ => None,
        };
        (printed(&answer), state)
    }

    /// All pages of a query.
    pub(crate) async fn pages(&self, text: &str, rows: u32) -> Vec<Vec<String>> {
        let mut pages = Vec::new();
        let mut state = None;
        loop {
            let (page, next) = self.page(text, rows, state).await;
            pages.push(page);
            state = next;
            if state.is_none() {
                return pages;
            }
        }
    }
}

/// Rows as lines, values as JSON.
pub(crate) fn printed(answer: &Answer) -> Vec<String> {
    let AnswerKind::Rows(rows) = &answer.kind else {
        panic!("no rows: {:?}", answer.kind)
    };
    let mut content = rows.content.as_ref();
    let mut lines = Vec::new();
    for _ in 0..rows.row_count {
        let mut cells = Vec::new();
        for column in rows.metadata.columns.iter() {
            let (length, rest) = content.split_first_chunk::<4>().unwrap();
            content = rest;
            let length = i32::from_be_bytes(*length);
            if length < 0 {
                cells.push("null".to_owned());
            } else {
                let (value, rest) = content.split_at(length as usize);
                content = rest;
                cells.push(column.ty.to_json(value));
            }
        }
        lines.push(cells.join(" "));
    }
    assert!(content.is_empty());
    lines
}

/// Pause between two tries to open data that is in use.
const IN_USE_PAUSE: std::time::Duration = std::time::Duration::from_millis(20);

/// Tries: half a minute for the last owner of a directory to let go of it.
const IN_USE_TRIES_MAX: u32 = 1500;

/// Opens data whose last owner may not have let go of its directory yet.
pub(crate) async fn open_when_free<T, E: Into<Error>>(mut open: impl AsyncFnMut() -> Result<T, E>) -> T {
    let mut tries = 0;
    loop {
        tries += 1;
        match open().await {
            Ok(opened) => return opened,
            Err(error) => match error.into() {
                Error::Engine(error) if error.is_in_use() && tries < IN_USE_TRIES_MAX => {
                    tokio::time::sleep(IN_USE_PAUSE).await;
                }
                error => panic!("{error}"),
            },
        }
    }
}

/// Raw access to a store of a closed database: its directory, or that of a store beside it, which no open main store may hold.
pub(crate) async fn raw_store(path: &std::path::Path) -> store::Store {
    let beside = path.parent().filter(|folder| folder.ends_with("stores"));
    let main = beside.and_then(std::path::Path::parent).unwrap_or(path);
    let (url, options, clock) = (
        store::Url::File(main.into()),
        store::Options::default(),
        Clock::manual(0),
    );
    let opened = open_when_free(async || {
        let opened = store::Store::open(&url, &options, clock.clone()).await;
        opened.map_err(|error| engine::Error::from(engine::OpeningFailure::from(error)))
    })
    .await;
    if main == path {
        return opened;
    }
    let number = path.file_name().and_then(|name| name.to_str()?.parse().ok()).unwrap();
    let side = opened.open_side(&url, number, false, &options, clock).await.unwrap();
    opened.close().await.unwrap();
    side
}
