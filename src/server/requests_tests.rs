//! Tests of prepared statements and of requests.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

use uuid::Uuid;

use super::*;
use crate::server::Events;
use helenus_engine::engine::Options;
use helenus_schema::schema::node::NodeInfo;
use helenus_storage::storage as store;
use helenus_types::wire::Consistency;

/// An empty database in memory.
pub(in crate::server) async fn memory() -> Database {
    let options = Options {
        url: "memory:".parse().unwrap(),
        store: store::Options::default(),
        clock: Clock::manual(1_700_000_000_000_000),
        seed: 1,
        node: NodeInfo::single(Uuid::nil(), IpAddr::V4(Ipv4Addr::LOCALHOST), 9042),
        page_bytes_max: Options::PAGE_BYTES_MAX,
        guardrails: helenus_schema::guardrails::Guardrails {
            switches: helenus_schema::guardrails::Switches {
                data_masking: true,
                ..helenus_schema::guardrails::Switches::default()
            },
            ..helenus_schema::guardrails::Guardrails::default()
        },
        prices: helenus_engine::throughput::Coefficients::default(),
        limits: helenus_engine::engine::SizeLimits::default(),
        call_limits: helenus_types::functions::CallLimits::default(),
        clock_rules: helenus_engine::engine::ClockRules::default(),
        request_log_max: 100,
        count_at_once_rows_max: Options::COUNT_AT_ONCE_ROWS_MAX,
        profile: helenus_schema::profile::Profile::default(),
        throughput: helenus_engine::engine::ThroughputRules::default(),
        account: helenus_schema::profile::Account::default(),
        virtual_tables: Arc::new(helenus_engine::views::Tables::default()),
        mask_calls: helenus_schema::planner::mask_calls,
        elsewhere: None,
    };
    Database::open(options).await.unwrap()
}

struct Bench {
    requests: Arc<Requests>,
    session: Arc<Session>,
}

impl Bench {
    /// With a table `ks.t`.
    async fn new() -> Self {
        let clock = Clock::manual(1_700_000_000_000_000);
        let (database, events) = (Arc::new(memory().await), Arc::new(Events::default()));
        emit_schema_changes(&database, &events);
        let requests = Requests::new(database, &Limits::default(), clock);
        let session = Session::new("127.0.0.1:1".parse().unwrap(), false, events);
        let bench = Self {
            requests: Arc::new(requests),
            session: Arc::new(session),
        };
        bench
            .done("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
            .await;
        bench.done("CREATE TABLE ks.t (a int PRIMARY KEY)").await;
        bench
    }

    async fn send(&self, version: Version, frame_flags: u8, request: Request<'_>) -> Response {
        let mut body = Vec::new();
        request.write(&mut body, version);
        let header = Header {
            version,
            flags: frame_flags,
            stream: 1,
            opcode_byte: request.opcode().byte(),
            length: body.len(),
        };
        let handled = Arc::clone(&self.requests).handle(Arc::clone(&self.session), header, body.into());
        match handled.await {
            Handled::Answer(response) => response,
            Handled::NoRoom(postponed) => panic!("nothing else takes memory: {postponed:?}"),
        }
    }

    async fn query(&self, text: &str) -> Response {
        let params = Params::default();
        self.send(Version::V4, 0, Request::Query(Query { text, params })).await
    }

    async fn done(&self, text: &str) {
        let response = self.query(text).await;
        assert!(!matches!(response.body, Body::Error(_)), "{text}: {response:?}");
    }

    async fn prepare(&self, text: &str) -> (Prepared, Vec<String>) {
        let response = self
            .send(Version::V5, 0, Request::Prepare(Prepare { text, keyspace: None }))
            .await;
        let Body::Prepared(prepared) = response.body else {
            panic!("{response:?}")
        };
        (
            *prepared,
            response.extras.map(|extras| extras.warnings).unwrap_or_default(),
        )
    }

    async fn execute(&self, version: Version, id: &[u8], metadata_id: &[u8]) -> Response {
        let params = Params {
            skip_metadata: true,
            consistency: Consistency::One,
            ..Params::default()
        };
        let result_metadata_id = Some(metadata_id);
        self.send(
            version,
            0,
            Request::Execute(Execute {
                id,
                result_metadata_id,
                params,
            }),
        )
        .await
    }
}

fn rows(response: &Response) -> &Rows {
    match &response.body {
        Body::Rows(rows) => rows,
        other => panic!("{other:?}"),
    }
}

fn mode(response: &Response) -> MetadataMode {
    rows(response).mode
}

fn code(response: &Response) -> u16 {
    match &response.body {
        Body::Error(error) => error.code().number(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn preparing_after_use_warns_once_and_ids_follow_keyspace_and_text() {
    let bench = Bench::new().await;
    bench.done("USE ks").await;
    let (prepared, warnings) = bench.prepare("SELECT * FROM t").await;
    let id: String = prepared.id.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(warnings[0].ends_with(&format!(
        "Keyspace used: ks, statement keyspace: ks, statement id: {id}"
    )));
    assert_eq!(prepared.id, prepared::id(Some("ks"), "SELECT * FROM t"));
    let (again, warnings) = bench.prepare("SELECT * FROM t").await;
    assert_eq!((again.id, warnings.len()), (prepared.id, 0));
    let (qualified, _) = bench.prepare("SELECT * FROM ks.t").await;
    assert_eq!(qualified.id, prepared::id(None, "SELECT * FROM ks.t"));
}

#[tokio::test]
async fn a_dropped_keyspace_keeps_no_session_from_preparing_qualified_statements() {
    let bench = Bench::new().await;
    bench.done("USE ks").await;
    bench.done("DROP KEYSPACE ks").await;
    bench.prepare("SELECT key FROM system.local").await;
    let prepare = |text, keyspace| Request::Prepare(Prepare { text, keyspace });
    for (text, keyspace) in [("SELECT * FROM t", None), ("SELECT key FROM system.local", Some("ks"))] {
        let response = bench.send(Version::V5, 0, prepare(text, keyspace)).await;
        assert_eq!(code(&response), 0x2200, "{text}: {response:?}");
    }
}

#[tokio::test]
async fn metadata_is_skipped_only_where_the_client_has_it() {
    let bench = Bench::new().await;
    let (prepared, _) = bench.prepare("SELECT * FROM ks.t").await;
    let known = prepared.result_metadata_id();
    assert_eq!(
        mode(&bench.execute(Version::V4, &prepared.id, &[]).await),
        MetadataMode::Skipped
    );
    assert_eq!(
        mode(&bench.execute(Version::V5, &prepared.id, &known).await),
        MetadataMode::Skipped
    );
    assert_eq!(
        mode(&bench.execute(Version::V5, &prepared.id, &[0; 16]).await),
        MetadataMode::Changed
    );
    bench.done("ALTER TABLE ks.t ADD b int").await;
    assert_eq!(code(&bench.execute(Version::V5, &prepared.id, &known).await), 0x2500);
    assert_eq!(code(&bench.execute(Version::V4, &prepared.id, &[]).await), 0x2500);
    let (prepared, _) = bench.prepare("SELECT * FROM ks.t").await;
    let new = prepared.result_metadata_id();
    assert_ne!(known, new);
    // Clients that have not seen the new columns receive them.
    assert_eq!(
        mode(&bench.execute(Version::V5, &prepared.id, &known).await),
        MetadataMode::Changed
    );
    assert_eq!(
        mode(&bench.execute(Version::V4, &prepared.id, &[]).await),
        MetadataMode::Full
    );
    assert_eq!(
        mode(&bench.execute(Version::V5, &prepared.id, &new).await),
        MetadataMode::Skipped
    );
}

#[tokio::test]
async fn what_is_not_known_must_be_prepared() {
    let bench = Bench::new().await;
    assert_eq!(code(&bench.execute(Version::V4, &[1; 16], &[]).await), 0x2500);
    assert_eq!(code(&bench.execute(Version::V4, &[], &[]).await), 0x2500);
    let (prepared, _) = bench.prepare("SELECT * FROM ks.t").await;
    bench.done("DROP TABLE ks.t").await;
    assert_eq!(code(&bench.execute(Version::V4, &prepared.id, &[]).await), 0x2500);
}

#[tokio::test]
async fn traced_requests_are_found_in_system_traces() {
    let bench = Bench::new().await;
    let query = |text| {
        Request::Query(Query {
            text,
            params: Params::default(),
        })
    };
    let traced = bench
        .send(Version::V4, flags::TRACING, query("SELECT * FROM ks.t"))
        .await;
    let id = Uuid::from_bytes(traced.tracing_id.unwrap());
    assert_eq!(id.get_version_num(), 1);
    let found = |table: &str| format!("SELECT * FROM system_traces.{table} WHERE session_id = {id}");
    assert_eq!(rows(&bench.query(&found("sessions")).await).row_count, 1);
    // Begun, rows read, charge. The session shows that it is done, for which cqlsh prints a line.
    assert_eq!(rows(&bench.query(&found("events")).await).row_count, 4);
    assert!(
        bench
            .send(Version::V4, 0, query("SELECT * FROM ks.t"))
            .await
            .tracing_id
            .is_none()
    );
}

/// The parameters of a traced EXECUTE, without those that depend on its levels.
async fn bound_variables(bench: &Bench, text: &str, values: Vec<WireValue>) -> Vec<(String, String)> {
    let (prepared, _) = bench.prepare(text).await;
    let params = Params {
        values: WireValues::Positional(values),
        ..Params::default()
    };
    let execute = Execute {
        id: &prepared.id,
        result_metadata_id: None,
        params,
    };
    let traced = bench.send(Version::V4, flags::TRACING, Request::Execute(execute)).await;
    let id = Uuid::from_bytes(traced.tracing_id.unwrap());
    let select = format!("SELECT parameters FROM system_traces.sessions WHERE session_id = {id}");
    let answer = bench.query(&select).await;
    let content = &rows(&answer).content;
    let cell = content.get(4..).unwrap();
    let entries = helenus_types::types::map_entries(cell).unwrap().into_iter();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    entries
        .map(|(name, value)| (text(name), text(value)))
        .filter(|(name, _)| name.starts_with("bound_var_"))
        .collect()
}

#[tokio::test]
async fn traces_show_bound_values_unless_they_are_masked_or_secret() {
    let bench = Bench::new().await;
    bench.done("CREATE TABLE ks.v (k int PRIMARY KEY, t text)").await;
    let int = |number: i32| WireValue::Bytes(number.to_be_bytes().to_vec().into());
    let text = |text: &str| WireValue::Bytes(text.as_bytes().to_vec().into());
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let insert = "INSERT INTO ks.v (k, t) VALUES (?, ?)";
    for (value, shown) in [
        (text("it's"), "'it''s'".to_owned()),
        (WireValue::Null, "null".to_owned()),
        (WireValue::Unset, "<unset>".to_owned()),
        (text(&"x".repeat(1100)), format!("'{}...'", "x".repeat(999))),
    ] {
        let found = bound_variables(&bench, insert, vec![int(1), value]).await;
        assert_eq!(found, [pair("bound_var_0_k", "1"), pair("bound_var_1_t", &shown)]);
    }
    let limited = "SELECT k FROM ks.v WHERE k IN (?, ?) LIMIT ?";
    let found = bound_variables(&bench, limited, vec![int(1), int(2), int(3)]).await;
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["bound_var_0_k", "bound_var_1_k", "bound_var_2_[limit]"]);
    bench
        .done("CREATE TABLE ks.m (k int PRIMARY KEY, t text MASKED WITH DEFAULT)")
        .await;
    let masked = "SELECT k FROM ks.m WHERE k = ? AND t = :k ALLOW FILTERING";
    let found = bound_variables(&bench, masked, vec![int(1), text("a")]).await;
    assert_eq!(found, [pair("bound_var_0_k", "****"), pair("bound_var_1_k", "****")]);
    let secret = "INSERT INTO system_auth.roles (role, salted_hash) VALUES (?, ?)";
    let found = bound_variables(&bench, secret, vec![text("r"), text("hash")]).await;
    assert_eq!(found, []);
}

#[tokio::test]
async fn schema_changes_are_reported() {
    let bench = Bench::new().await;
    let mut subscription = bench.session.events().subscribe(4);
    subscription.register(&[helenus_types::wire::request::EventKind::SchemaChange]);
    bench.done("CREATE TABLE ks.u (a int PRIMARY KEY)").await;
    let event = subscription.receiver.try_recv().unwrap();
    let expected = SchemaChange {
        kind: ChangeKind::Created,
        keyspace: "ks".into(),
        target: ChangeTarget::Table("u".into()),
    };
    assert_eq!(*event, Event::Schema(expected));
}

/// Connections that change one table concurrently: its events come in the order in which the changes were committed.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn events_come_in_the_order_of_commits() {
    let bench = Arc::new(Bench::new().await);
    let mut subscription = bench.session.events().subscribe(10_000);
    subscription.register(&[helenus_types::wire::request::EventKind::SchemaChange]);
    let change = |_| {
        let bench = Arc::clone(&bench);
        tokio::spawn(async move {
            for _ in 0..100 {
                bench.query("CREATE TABLE IF NOT EXISTS ks.u (a int PRIMARY KEY)").await;
                bench.query("DROP TABLE IF EXISTS ks.u").await;
            }
        })
    };
    let changes: Vec<_> = (0..8).map(change).collect();
    for change in changes {
        change.await.unwrap();
    }
    let mut expected = ChangeKind::Created;
    let mut count = 0;
    while let Ok(event) = subscription.receiver.try_recv() {
        let Event::Schema(change) = &*event else {
            panic!("{event:?}")
        };
        assert_eq!(change.kind, expected, "event {count}");
        expected = match expected {
            ChangeKind::Created => ChangeKind::Dropped,
            _ => ChangeKind::Created,
        };
        count += 1;
    }
    assert!(count > 100, "{count} events");
}

#[tokio::test]
async fn dependents_are_announced_with_what_they_depend_on() {
    let bench = Bench::new().await;
    bench.done("CREATE TYPE ks.ty (a int)").await;
    bench
        .done("CREATE TABLE ks.u (a int PRIMARY KEY, b list<frozen<ty>>)")
        .await;
    let mut subscription = bench.session.events().subscribe(100);
    subscription.register(&[helenus_types::wire::request::EventKind::SchemaChange]);
    let mut told = || {
        let mut told = Vec::new();
        while let Ok(event) = subscription.receiver.try_recv() {
            let Event::Schema(change) = &*event else {
                panic!("{event:?}")
            };
            told.push(format!("{} {:?}", change.kind.name(), change.target));
        }
        told
    };
    bench.done("ALTER TYPE ks.ty ADD b int").await;
    assert_eq!(told(), ["UPDATED Type(\"ty\")", "UPDATED Table(\"u\")"]);
    bench.done("TRUNCATE ks.u").await;
    assert!(told().is_empty());
    bench.done("DROP KEYSPACE ks").await;
    let dropped = [
        "DROPPED Table(\"t\")",
        "DROPPED Table(\"u\")",
        "DROPPED Type(\"ty\")",
        "DROPPED Keyspace",
    ];
    assert_eq!(told(), dropped);
}

/// A changed comment affects no statement; a new column, an index or a new field of a type in it affects all of them.
#[tokio::test]
async fn a_statement_is_prepared_again_when_its_table_has_changed() {
    let bench = Bench::new().await;
    bench.done("CREATE TYPE ks.ty (a int)").await;
    bench.done("CREATE TABLE ks.u (a int PRIMARY KEY, b int, f ty)").await;
    let (read, write) = ("SELECT a FROM ks.u", "INSERT INTO ks.u (a) VALUES (1)");
    let changes = [
        ("ALTER TABLE ks.u WITH comment = 'c'", true),
        ("CREATE TABLE ks.other (a int PRIMARY KEY)", true),
        ("TRUNCATE ks.u", true),
        ("ALTER TABLE ks.u ADD c int", false),
        ("CREATE INDEX i ON ks.u (b)", false),
        ("TRUNCATE ks.u", true),
        ("DROP TABLE ks.other", true),
        ("ALTER TYPE ks.ty ADD b int", false),
        ("DROP INDEX ks.i", false),
        ("ALTER TABLE ks.u WITH default_time_to_live = 60", false),
    ];
    for (change, stays) in changes {
        let (read, _) = bench.prepare(read).await;
        let (write, _) = bench.prepare(write).await;
        bench.done(change).await;
        for prepared in [read, write] {
            let response = bench.execute(Version::V4, &prepared.id, &[]).await;
            let is_error = matches!(response.body, Body::Error(_));
            assert!(is_error != stays, "{change}: {response:?}");
            assert!(stays || code(&response) == 0x2500, "{change}");
        }
    }
}

/// What `system.prepared_statements` shows: the statements that EXECUTE finds, without secrets.
#[tokio::test]
async fn prepared_statements_are_listed_until_they_are_invalidated() {
    let bench = Bench::new().await;
    bench.done("CREATE TABLE ks.u (a int PRIMARY KEY, b int)").await;
    let (kept, _) = bench.prepare("SELECT * FROM ks.t").await;
    let (changed, _) = bench.prepare("SELECT * FROM ks.u").await;
    bench.done("USE ks").await;
    let (unqualified, _) = bench.prepare("SELECT a FROM t").await;
    let (secret, _) = bench.prepare("CREATE ROLE r WITH PASSWORD = 'hidden'").await;
    let listed = || {
        let texts = bench.requests.prepared_texts().into_iter();
        texts
            .map(|text| (text.id, (text.keyspace, text.text)))
            .collect::<HashMap<_, _>>()
    };
    let before = listed();
    assert_eq!(before.len(), 4);
    assert_eq!(before[&kept.id], (None, "SELECT * FROM ks.t".to_owned()));
    assert_eq!(
        before[&unqualified.id],
        (Some("ks".to_owned()), "SELECT a FROM t".to_owned())
    );
    assert!(!before[&secret.id].1.contains("hidden"), "{before:?}");
    bench.done("ALTER TABLE ks.u ADD c int").await;
    let after = listed();
    assert!(after.contains_key(&kept.id) && !after.contains_key(&changed.id));
    bench.done("DROP TABLE ks.t").await;
    assert_eq!(listed().len(), 1);
}

/// A client below version 5 with the old columns executes a statement that another client has prepared again after a
/// DROP and a CREATE.
#[tokio::test]
async fn columns_of_a_table_made_again_are_sent_to_those_who_know_the_old() {
    let bench = Bench::new().await;
    let (prepared, _) = bench.prepare("SELECT * FROM ks.t").await;
    bench.done("DROP TABLE ks.t").await;
    assert_eq!(code(&bench.execute(Version::V4, &prepared.id, &[]).await), 0x2500);
    bench.done("CREATE TABLE ks.t (b text PRIMARY KEY, c text)").await;
    let (again, _) = bench.prepare("SELECT * FROM ks.t").await;
    assert_eq!(again.id, prepared.id);
    let response = bench.execute(Version::V4, &prepared.id, &[]).await;
    assert_eq!(mode(&response), MetadataMode::Full);
}

/// A plan takes far more memory than its text.
#[tokio::test(start_paused = true)]
async fn a_heavy_request_waits_for_memory_and_a_light_one_does_not() {
    let bench = Bench::new().await;
    let inserts = "INSERT INTO ks.t (a) VALUES (1); ".repeat(2_000);
    let heavy = format!("BEGIN UNLOGGED BATCH {inserts} APPLY BATCH");
    bench.done(&heavy).await;
    let taken = bench.requests.pool.try_take(usize::MAX).unwrap();
    bench.done("INSERT INTO ks.t (a) VALUES (2)").await;
    let literal = format!("SELECT a FROM ks.t WHERE a = 1 /* {} */", " ".repeat(100_000));
    bench.done(&literal).await;
    assert_eq!(code(&bench.query(&heavy).await), 0x1001);
    drop(taken);
    bench.done(&heavy).await;
    assert_eq!(bench.requests.pool.used(), 0);
}
