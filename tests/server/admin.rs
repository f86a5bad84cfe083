//! The admin port from outside: probes, figures in Prometheus's format and as JSON, limits, and `helenus status`.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::raw::Client;
use crate::shapes::{Keys, Kind, Partitions, Statements, Status, Table, Tables};
use helenus::TestServer;
use helenus::config::{Config, Values};
use helenus::server::admin::report::Readiness;
use helenus::server::admin::{CONNECTIONS_MAX, FIRST_BYTE_WITHIN, client};
use helenus_cql::cql::{AnswerKind, QueryParams, SessionState};
use helenus_types::wire::Version;

async fn start(data: &str) -> (TestServer, SocketAddr) {
    let given = [
        ("drain-seconds", "2"),
        ("data", data),
        ("listen", "127.0.0.1:0"),
        ("admin-listen", "127.0.0.1:0"),
        ("admin-show-keys", "true"),
    ];
    let given = given.map(|(name, value)| (name.to_owned(), vec![value.to_owned()]));
    let config = Config::new(&Values::gather(None, &given.into(), |_| None).unwrap()).unwrap();
    let server = TestServer::with(&config).await.unwrap();
    let admin = server.admin_address().unwrap();
    (server, admin)
}

fn get(admin: SocketAddr, path: &str) -> String {
    let (status, body) = client::get(admin, path).unwrap();
    assert_eq!(status, 200, "{path}: {body}");
    body
}

fn get_json<T: serde::de::DeserializeOwned>(admin: SocketAddr, path: &str) -> T {
    serde_json::from_str(&get(admin, path)).unwrap()
}

const KEYSPACE: &str = "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";

/// Through the wire. Gives the opcodes of the answers: 8 is a result, 0 an error.
async fn run(client: &mut Client, statements: &[&str]) -> Vec<u8> {
    let mut opcodes = Vec::new();
    for statement in statements {
        client.query(1, statement).await;
        opcodes.push(client.frame().await.unwrap().opcode);
    }
    opcodes
}

// A strict reader of the text format, written from its description, not from our writer.

#[derive(Debug, Default)]
struct Family {
    kind: String,
    help: String,
    /// Name, labels, value.
    samples: Vec<(String, BTreeMap<String, String>, f64)>,
}

fn is_name(name: &str, colons: bool) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_' || (colons && c == ':');
    name.starts_with(first) && name.chars().all(|c| first(c) || c.is_ascii_digit())
}

/// `{name="value",…}`, with the rest behind it.
fn labels(mut text: &str) -> (BTreeMap<String, String>, &str) {
    let mut found = BTreeMap::new();
    loop {
        let (name, rest) = text.split_once("=\"").unwrap();
        assert!(is_name(name, false) && !name.starts_with("__"), "label {name:?}");
        let (mut value, mut rest) = (String::new(), rest.chars());
        loop {
            match rest.next().expect("the value ends") {
                '"' => break,
                '\\' => value.push(match rest.next() {
                    Some('n') => '\n',
                    Some(c @ ('\\' | '"')) => c,
                    other => panic!("escape {other:?}"),
                }),
                c => value.push(c),
            }
        }
        assert!(found.insert(name.to_owned(), value).is_none(), "label {name} twice");
        let rest = rest.as_str();
        match rest.strip_prefix(',') {
            Some(rest) => text = rest,
            None => return (found, rest.strip_prefix('}').unwrap()),
        }
    }
}

fn number(text: &str) -> f64 {
    match text {
        "+Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        "NaN" => f64::NAN,
        number => number.parse().unwrap(),
    }
}

fn parse(text: &str) -> BTreeMap<String, Family> {
    assert!(text.ends_with('\n') && !text.contains('\r'));
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    let mut series = BTreeSet::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(is_name(name, true), "{line}");
            assert!(!families.contains_key(name), "family {name} is not in one piece");
            current = name.to_owned();
            families.entry(current.clone()).or_default().help = help.to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!(name, current, "{line}");
            assert!(
                matches!(kind, "counter" | "gauge" | "histogram" | "summary" | "untyped"),
                "{line}"
            );
            let family = families.get_mut(name).unwrap();
            assert!(family.kind.is_empty() && family.samples.is_empty(), "{line}");
            family.kind = kind.to_owned();
        } else {
            let end = line.find(['{', ' ']).unwrap();
            let (name, rest) = line.split_at(end);
            assert!(is_name(name, true), "{line}");
            let (labels, rest) = match rest.strip_prefix('{') {
                Some(rest) => labels(rest),
                None => (BTreeMap::new(), rest),
            };
            let value = number(rest.strip_prefix(' ').unwrap());
            assert!(
                series.insert((name.to_owned(), labels.clone())),
                "{line} is there twice"
            );
            let family = families.get_mut(&current).unwrap();
            let of_family = match family.kind.as_str() {
                "histogram" => ["_bucket", "_sum", "_count"]
                    .iter()
                    .any(|end| name == format!("{current}{end}")),
                "counter" | "gauge" => name == current,
                other => panic!("samples of type {other:?}"),
            };
            assert!(of_family, "{line} is not of {current}");
            family.samples.push((name.to_owned(), labels, value));
        }
    }
    for (name, family) in &families {
        check(name, family);
    }
    families
}

fn check(name: &str, family: &Family) {
    assert!(family.help.ends_with('.'), "{name}: {}", family.help);
    match family.kind.as_str() {
        "counter" => assert!(name.ends_with("_total") && family.samples.iter().all(|(.., value)| *value >= 0.0)),
        "histogram" => {
            let mut groups: BTreeMap<BTreeMap<String, String>, Vec<(f64, f64)>> = BTreeMap::new();
            let mut totals: BTreeMap<(String, BTreeMap<String, String>), f64> = BTreeMap::new();
            for (sample, labels, value) in &family.samples {
                let mut labels = labels.clone();
                match labels.remove("le") {
                    Some(le) => groups.entry(labels).or_default().push((number(&le), *value)),
                    None => drop(totals.insert((sample.clone(), labels), *value)),
                }
            }
            for (labels, buckets) in groups {
                assert!(
                    buckets
                        .windows(2)
                        .all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1),
                    "{name}"
                );
                let (last, all) = *buckets.last().unwrap();
                assert!(last.is_infinite());
                assert_eq!(totals.get(&(format!("{name}_count"), labels.clone())), Some(&all));
                assert!(totals.contains_key(&(format!("{name}_sum"), labels)));
            }
        }
        _ => assert!(!family.samples.is_empty(), "{name}"),
    }
}

fn sample(families: &BTreeMap<String, Family>, family: &str, name: &str, label: Option<(&str, &str)>) -> f64 {
    let samples = &families.get(family).unwrap_or_else(|| panic!("no {family}")).samples;
    let is_it = |labels: &BTreeMap<String, String>| {
        label.is_none_or(|(label, value)| labels.get(label).map(String::as_str) == Some(value))
    };
    let mut found = samples
        .iter()
        .filter(|(sample, labels, _)| sample == name && is_it(labels));
    found.next().unwrap_or_else(|| panic!("no {name} {label:?}")).2
}

#[tokio::test]
async fn figures_are_scraped_in_prometheus_format_and_tell_no_keys() {
    let (server, admin) = start("memory:").await;
    let mut client = Client::ready(server.address(), Version::V4).await;
    let opcodes = run(
        &mut client,
        &[
            &KEYSPACE.replace("ks", "app"),
            "CREATE TABLE app.visits (secretcolumn text PRIMARY KEY, v int)",
            "INSERT INTO app.visits (secretcolumn, v) VALUES ('secretkey', 1)",
            "INSERT INTO app.visits (secretcolumn, v) VALUES ('secretkey', 1) IF NOT EXISTS",
            "UPDATE app.visits SET v = 2 WHERE secretcolumn = 'secretkey'",
            "SELECT * FROM app.visits WHERE secretcolumn = 'secretkey'",
            "SELECT * FROM app.visits",
            "SELECT * FROM app.nowhere",
            "SELEC secretword",
            "DELETE FROM app.visits WHERE secretcolumn = 'secretkey'",
        ],
    )
    .await;
    assert_eq!(opcodes, [8, 8, 8, 8, 8, 8, 8, 0, 0, 8]);
    let text = get(admin, "/metrics");
    assert!(!text.contains("secret"), "{text}");
    let families = parse(&text);
    let kind = |kind| {
        let name = "helenus_statement_seconds_count";
        sample(&families, "helenus_statement_seconds", name, Some(("kind", kind)))
    };
    let kinds = [
        "ddl",
        "insert",
        "conditional",
        "update",
        "select",
        "unplanned",
        "delete",
        "batch",
    ]
    .map(kind);
    assert_eq!(kinds, [2.0, 1.0, 1.0, 1.0, 2.0, 2.0, 1.0, 0.0]);
    let of = |family: &str, label| sample(&families, family, family, label);
    assert_eq!(of("helenus_statement_errors_total", Some(("kind", "unplanned"))), 2.0);
    // Others in this process count as well.
    assert!(of("helenus_errors_total", Some(("code", "0x2200"))) >= 1.0);
    assert!(of("helenus_errors_total", Some(("name", "syntax_error"))) >= 1.0);
    assert!(of("helenus_bytes_received_total", None) > 300.0);
    assert!(of("helenus_rows_total", None) >= 2.0);
    assert_eq!(of("helenus_connections", None), 1.0);
    // Deleted, and not yet cleaned up.
    assert_eq!(of("helenus_data_rows", None), 1.0);
    assert!(families.len() > 40, "{}", families.len());
    // What names are told, are told as JSON; texts and values never.
    for path in ["/api/status", "/api/statements", "/api/tables", "/api/partitions"] {
        let text = get(admin, path);
        for marker in ["secretkey\"", "secretcolumn", "secretword", "nowhere"] {
            assert!(!text.contains(marker), "{path}: {text}");
        }
    }
    server.stop().await.unwrap();
}

#[tokio::test]
async fn it_is_live_and_ready_until_writes_fail() {
    let folder = tempfile::tempdir().unwrap();
    for data in ["memory:", &format!("file:{}", folder.path().join("data").display())] {
        let (server, admin) = start(data).await;
        assert_eq!(get(admin, "/livez"), "ok\n");
        for _ in 0..3 {
            let ready: Readiness = get_json(admin, "/readyz");
            assert!(ready.ready && ready.write_micros.is_some() && ready.read_micros.is_some());
        }
        if data != "memory:" {
            server.database().close().await.unwrap();
            let (status, body) = client::get(admin, "/readyz").unwrap();
            let ready: Readiness = serde_json::from_str(&body).unwrap();
            assert_eq!((status, ready.ready, ready.write_micros), (503, false, None));
            assert!(!body.contains(folder.path().to_str().unwrap()), "{body}");
            assert_eq!(get(admin, "/livez"), "ok\n");
        }
        drop(server);
    }
    // The probe's record is none that a later start stumbles over.
    let (server, admin) = start(&format!("file:{}", folder.path().join("data").display())).await;
    assert!(get_json::<Readiness>(admin, "/readyz").ready);
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_background_task_that_panics_is_named_and_none_outlives_the_stop() {
    let (server, admin) = start("memory:").await;
    let tasks = server.database().engine().tasks().clone();
    tasks.spawn("seeded task", async { panic!("seeded") });
    tasks.spawn("endless task", std::future::pending());
    let shown = async {
        while !get(admin, "/livez").contains("background task panicked: seeded task, times: 1\n") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), shown).await.unwrap();
    assert!(get(admin, "/livez").starts_with("ok\n"));
    assert!(
        sample(
            &parse(&get(admin, "/metrics")),
            "helenus_background_task_panics_total",
            "helenus_background_task_panics_total",
            None
        ) >= 1.0
    );
    // The endless task is cut off when the time is over; the server's own have ended by then.
    server.stop().await.unwrap();
    tokio::time::timeout(Duration::from_secs(1), tasks.join(Duration::from_secs(60)))
        .await
        .unwrap();
}

#[tokio::test]
#[expect(
    clippy::too_many_lines,
    reason = "one story: each step stands on the state that the one before left"
)]
async fn json_tells_tables_partitions_and_statements() {
    let folder = tempfile::tempdir().unwrap();
    let (server, admin) = start(&format!("file:{}", folder.path().join("data").display())).await;
    let mut client = Client::ready(server.address(), Version::V5).await;
    run(
        &mut client,
        &[KEYSPACE, "CREATE TABLE ks.t (a int PRIMARY KEY, v text)"],
    )
    .await;
    for key in 0..20 {
        let text = format!("INSERT INTO ks.t (a, v) VALUES ({key}, 'value {key}')");
        assert_eq!(run(&mut client, &[&text]).await, [8]);
    }
    let batch =
        "BEGIN BATCH INSERT INTO ks.t (a, v) VALUES (1, 'x'); INSERT INTO ks.t (a, v) VALUES (2, 'y'); APPLY BATCH";
    assert_eq!(
        run(
            &mut client,
            &["SELECT * FROM ks.t WHERE a = 1", "SELECT * FROM ks.t", batch]
        )
        .await,
        [8, 8, 8]
    );
    server.advance(Duration::from_secs(90));
    let status: Status = get_json(admin, "/api/status");
    assert_eq!(
        (status.keyspaces, status.tables, status.partitions, status.rows),
        (1, 1, 1, 20)
    );
    assert!(status.bytes > 20 * 15);
    assert_eq!(status.addresses, [server.address().to_string()]);
    assert_eq!((status.uptime_seconds, status.connections.open), (90, 1));
    assert!(status.commits.groups.count > 20 && status.commits.batches >= status.commits.groups.count);
    assert_eq!(status.host_id, server.database().engine().node().host_id.to_string());
    let [node] = status.nodes.as_slice() else {
        panic!("{:?}", status.nodes);
    };
    assert_eq!(
        (&node.host_id, node.name.as_str(), node.state.as_str(), node.owner),
        (&status.host_id, server.address().to_string().as_str(), "up", true)
    );
    assert_eq!(
        (node.native_port, node.fleet_address.as_deref()),
        (server.address().port(), None)
    );
    assert_eq!(node.native_address, server.address().ip().to_string());
    assert!(node.since_ms.is_some() && !node.data_center.is_empty() && !node.rack.is_empty());
    let tables: Tables = get_json(admin, "/api/tables");
    let table: &Table = tables.tables.iter().find(|table| table.keyspace == "ks").unwrap();
    assert_eq!((table.table.as_str(), table.rows, table.partitions), ("t", 20, 1));
    assert_eq!((table.reads.count, table.scans.count, table.writes.count), (1, 1, 21));
    assert!(!table.is_system && tables.total == tables.tables.len() && tables.total > 1);
    // What users' tables were charged stands apart from what the schema and the drivers' reads of system tables were.
    let units: serde_json::Value = get_json(admin, "/api/status");
    let figures: serde_json::Value = get_json(admin, "/api/tables");
    let of_tables = figures["tables"].as_array().unwrap().iter();
    let of_users: f64 = of_tables
        .filter(|table| table["keyspace"] == "ks")
        .map(|table| table["request_units"].as_f64().unwrap())
        .sum();
    let [users, all] = ["users_request_units", "request_units"].map(|name| units[name].as_f64().unwrap());
    assert!(
        (users - of_users).abs() < 1e-9 && users > 0.0 && users < all,
        "{users} {of_users} {all}"
    );
    let partitions: Partitions = get_json(admin, "/api/partitions");
    let partition = partitions
        .partitions
        .iter()
        .find(|partition| partition.keyspace == "ks")
        .unwrap();
    assert_eq!((partition.lower.as_str(), partition.rows), ("-9223372036854775808", 20));
    assert_eq!((partition.lower_key.as_str(), &partition.upper_key), ("0x", &None));
    assert_eq!((partition.replicas, partition.replicas_alive), (4, 4));
    let keys: Keys = get_json(admin, "/api/keys");
    assert_eq!(keys.hot[0].keyspace, "ks");
    let statements: Statements = get_json(admin, "/api/statements");
    let of = |name: &str| statements.kinds.iter().find(|kind: &&Kind| kind.kind == name).unwrap();
    assert_eq!(
        (
            of("insert").latency.count,
            of("batch").latency.count,
            of("select").latency.count
        ),
        (20, 1, 2)
    );
    assert_eq!(of("insert").errors, 0);
    // Dropped tables are forgotten.
    run(
        &mut client,
        &["DROP TABLE ks.t", "CREATE TABLE ks.t (a int PRIMARY KEY)"],
    )
    .await;
    let tables: Tables = get_json(admin, "/api/tables");
    let table = tables.tables.iter().find(|table| table.keyspace == "ks").unwrap();
    assert_eq!((table.rows, table.writes.count), (0, 0));
    server.stop().await.unwrap();
}

#[tokio::test]
async fn keys_are_hidden_unless_asked_for_and_the_root_lists_every_path() {
    let server = TestServer::builder()
        .set("admin-listen", "127.0.0.1:0")
        .start()
        .await
        .unwrap();
    let admin = server.admin_address().unwrap();
    let mut client = Client::ready(server.address(), Version::V4).await;
    let table = "CREATE TABLE ks.t (k text PRIMARY KEY)";
    let insert = "INSERT INTO ks.t (k) VALUES ('a secret name')";
    assert_eq!(run(&mut client, &[KEYSPACE, table, insert]).await, [8, 8, 8]);
    let text = get(admin, "/api/keys");
    assert!(text.contains("admin-show-keys") && !text.contains("secret"), "{text}");
    let keys: Keys = serde_json::from_str(&text).unwrap();
    assert_eq!(keys.hot[0].keyspace, "ks");
    let index = get(admin, "/");
    for line in index.lines().skip(2) {
        let path = line.split_whitespace().next().unwrap();
        let (status, _) = client::get(admin, path).unwrap();
        let expected = match path {
            "/api/reset" | "/api/nodes/NAME" => 405,
            "/api/feed/KS/T" => 401,
            _ => 200,
        };
        assert_eq!(status, expected, "{path}");
    }
    assert_eq!(index.lines().skip(2).count(), 13);
}

/// Sends bytes and reads until the server closes.
fn raw_exchange(admin: SocketAddr, bytes: &[u8]) -> String {
    let mut socket = TcpStream::connect(admin).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(15))).unwrap();
    // The server may close before it has taken all.
    let _ = socket.write_all(bytes);
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn what_is_not_asked_properly_is_refused() {
    let (server, admin) = start("memory:").await;
    let ask = |request: &str| {
        let answer = raw_exchange(admin, format!("{request}\r\n\r\n").as_bytes());
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(ask("GET /livez HTTP/1.1\r\nHost: localhost"), "200");
    assert_eq!(ask("GET /nothing HTTP/1.1\r\nHost: localhost"), "404");
    assert_eq!(
        ask("POST /api/status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0"),
        "405"
    );
    assert_eq!(ask("GET /metrics HTTP/1.1\r\nHost: evil.example"), "403");
    assert_eq!(ask("GET /metrics HTTP/1.1"), "403");
    assert!(ask("nonsense").starts_with('4') || ask("nonsense").is_empty());
    let long = format!("GET /livez HTTP/1.1\r\nHost: localhost\r\nX: {}", "x".repeat(100_000));
    assert_ne!(ask(&long), "200");
    // A second request on one connection is not answered.
    let twice = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(2);
    assert_eq!(raw_exchange(admin, twice.as_bytes()).matches("HTTP/1.1 200").count(), 1);
    server.stop().await.unwrap();
}

#[tokio::test]
async fn silent_connections_give_way_to_probes() {
    let (server, admin) = start("memory:").await;
    // Some say nothing, some begin a request and do not end it; more than there are places.
    let silent: Vec<TcpStream> = (0..3 * CONNECTIONS_MAX)
        .map(|number| {
            let mut socket = TcpStream::connect(admin).unwrap();
            if number % 2 == 0 {
                let _ = socket.write_all(b"GET /livez HTTP/1.1\r\n");
            }
            socket
        })
        .collect();
    for _ in 0..20 {
        let began = tokio::time::Instant::now();
        assert_eq!(client::get(admin, "/livez").unwrap(), (200, "ok\n".to_owned()));
        assert!(began.elapsed() < Duration::from_secs(1));
    }
    // Drivers are served meanwhile.
    let mut client = Client::ready(server.address(), Version::V4).await;
    assert_eq!(run(&mut client, &["SELECT key FROM system.local"]).await, [8]);
    drop(silent);
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_silent_connection_ends_by_itself() {
    let (server, admin) = start("memory:").await;
    let began = tokio::time::Instant::now();
    assert_eq!(raw_exchange(admin, b""), "");
    let waited = began.elapsed();
    assert!(
        waited >= FIRST_BYTE_WITHIN && waited < 2 * FIRST_BYTE_WITHIN,
        "{waited:?}"
    );
    server.stop().await.unwrap();
}

async fn rows(server: &TestServer, text: &str) -> Vec<Vec<Option<Vec<u8>>>> {
    let (session, params) = (SessionState::default(), QueryParams::default());
    let AnswerKind::Rows(rows) = server.database().query(&session, text, &params).await.unwrap().kind else {
        panic!("{text} has no rows")
    };
    let mut content = rows.content.as_ref();
    let mut cell = || {
        let (length, rest) = content.split_at(4);
        let length = i32::from_be_bytes(length.try_into().unwrap());
        let (value, rest) = rest.split_at(usize::try_from(length).unwrap_or(0));
        content = rest;
        (length >= 0).then(|| value.to_vec())
    };
    (0..rows.row_count)
        .map(|_| rows.metadata.columns.iter().map(|_| cell()).collect())
        .collect()
}

fn long(cell: Option<&Vec<u8>>) -> i64 {
    i64::from_be_bytes(cell.unwrap().as_slice().try_into().unwrap())
}

#[tokio::test]
async fn virtual_tables_show_the_same_figures() {
    let folder = tempfile::tempdir().unwrap();
    let (server, _) = start(&format!("file:{}", folder.path().join("data").display())).await;
    let mut client = Client::ready(server.address(), Version::V4).await;
    run(
        &mut client,
        &[
            KEYSPACE,
            "CREATE TABLE ks.t (a int PRIMARY KEY, v text)",
            "INSERT INTO ks.t (a, v) VALUES (1, 'x')",
            "UPDATE ks.t SET v = 'y' WHERE a = 1",
            "SELECT * FROM ks.t WHERE a = 1",
            "SELECT * FROM ks.t",
            "BEGIN UNLOGGED BATCH INSERT INTO ks.t (a) VALUES (7); INSERT INTO ks.t (a) VALUES (8); APPLY BATCH",
        ],
    )
    .await;
    let of_table = async |view: &str, column: &str| {
        let text = format!("SELECT {column} FROM system_views.{view} WHERE keyspace_name = 'ks' AND table_name = 't'");
        let rows = rows(&server, &text).await;
        assert_eq!(rows.len(), 1, "{text}");
        long(rows[0][0].as_ref())
    };
    assert_eq!(of_table("coordinator_read_latency", "count").await, 1);
    assert_eq!(of_table("coordinator_scan_latency", "count").await, 1);
    assert_eq!(of_table("coordinator_write_latency", "count").await, 3);
    assert_eq!(of_table("disk_usage", "mebibytes").await, 1);
    let latency = rows(
        &server,
        "SELECT count, p50th_ms, p99th_ms, max_ms, per_second FROM system_views.coordinator_write_latency \
         WHERE keyspace_name = 'ks' AND table_name = 't'",
    );
    let latency = latency.await;
    assert!(
        latency[0]
            .iter()
            .all(|cell| cell.as_ref().is_some_and(|cell| cell.len() == 8))
    );
    // As in Cassandra each table that has stored rows is there, and system_views is not.
    let tables = rows(
        &server,
        "SELECT keyspace_name FROM system_views.coordinator_read_latency",
    )
    .await;
    assert!(tables.iter().any(|row| row[0].as_deref() == Some(b"system_auth")));
    assert!(!tables.iter().any(|row| row[0].as_deref() == Some(b"system_views")));
    let caches = rows(&server, "SELECT name, capacity_bytes FROM system_views.caches").await;
    assert_eq!(caches[0][0].as_deref(), Some(&b"rows"[..]));
    assert_eq!(long(caches[0][1].as_ref()), 67_108_864);
    let metrics = rows(&server, "SELECT name, value FROM system_views.cql_metrics").await;
    let names: BTreeSet<&[u8]> = metrics.iter().map(|row| row[0].as_deref().unwrap()).collect();
    let wanted: [&[u8]; 5] = [
        b"prepared_statements_count",
        b"prepared_statements_evicted",
        b"prepared_statements_executed",
        b"prepared_statements_ratio",
        b"regular_statements_executed",
    ];
    assert_eq!(names, wanted.into());
    let batches = rows(
        &server,
        "SELECT max FROM system_views.batch_metrics WHERE name = 'partitions_per_unlogged_batch'",
    );
    assert_eq!(long(batches.await[0][0].as_ref()), 2);
    server.stop().await.unwrap();
}

#[test]
fn status_prints_for_people_and_for_programs() {
    let helenus = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_helenus"));
        command
            .env_remove("HELENUS_CONFIG")
            .env_remove("HELENUS_ADMIN_LISTEN")
            .stdin(Stdio::null());
        command
    };
    let output = helenus().arg("status").output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8(output.stderr).unwrap().contains("--admin-listen"));
    let arguments = [
        "--data",
        "memory:",
        "--listen",
        "127.0.0.1:0",
        "--admin-listen",
        "127.0.0.1:0",
    ];
    let mut server = helenus().args(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut banner = String::new();
    BufReader::new(server.stdout.as_mut().unwrap())
        .read_line(&mut banner)
        .unwrap();
    let (_, admin) = banner.trim().split_once("figures on http://").unwrap();
    let ask = |arguments: &[&str]| {
        let output = helenus()
            .args(["status", "--admin-listen", admin])
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let text = ask(&[]);
    for part in [
        "helenus ",
        "cluster       Helenus",
        "data          memory:",
        "connections   0 open",
        "charged       0.00 request units to users' tables; ",
        "up 0 s",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&ask(&["--json"])).unwrap();
    assert_eq!(json["status"]["cluster_name"], "Helenus");
    assert!(json["partitions"]["partitions"].is_array());
    assert!(
        Command::new("kill")
            .arg(server.id().to_string())
            .status()
            .unwrap()
            .success()
    );
    assert!(server.wait().unwrap().success());
    let output = helenus().args(["status", "--admin-listen", admin]).output().unwrap();
    assert!(!output.status.success());
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("no answer from the admin port")
    );
}

/// Names of metrics in a text.
fn metrics_in(text: &str) -> std::collections::BTreeSet<String> {
    let parts = text.split("helenus_").skip(1);
    parts
        .map(|rest| {
            let end = rest
                .find(|c: char| !c.is_ascii_lowercase() && c != '_')
                .unwrap_or(rest.len());
            let name = &rest[..end];
            let suffixes = ["_bucket", "_count", "_sum"];
            let bare = suffixes
                .iter()
                .find_map(|suffix| name.strip_suffix(suffix))
                .unwrap_or(name);
            bare.to_owned()
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_dashboard_asks_for_metrics_that_there_are() {
    let (server, admin) = start("memory:").await;
    let mut client = Client::ready(server.address(), Version::V5).await;
    run(
        &mut client,
        &[
            KEYSPACE,
            "CREATE TABLE ks.t (k int PRIMARY KEY)",
            "INSERT INTO ks.t (k) VALUES (1)",
        ],
    )
    .await;
    let served = tokio::task::spawn_blocking(move || get(admin, "/metrics"))
        .await
        .unwrap();
    let mut known = metrics_in(&served);
    // Shown only with budgets, or where rows are counted.
    let figures = include_str!("../../crates/engine/src/views/golden/figures.txt");
    let named = figures
        .lines()
        .filter_map(|line| line.split(" | ").nth(1).or(Some(line)));
    for word in named.flat_map(str::split_whitespace).chain(figures.split_whitespace()) {
        known.insert(word.to_owned());
    }
    let dashboard = include_str!("../../dist/grafana/helenus.json");
    let dashboard: serde_json::Value = serde_json::from_str(dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(panels.len() > 10);
    for panel in panels {
        for target in panel["targets"].as_array().unwrap() {
            let asked = metrics_in(target["expr"].as_str().unwrap());
            assert!(!asked.is_empty(), "{panel}");
            let unknown: Vec<_> = asked.iter().filter(|name| !known.contains(*name)).collect();
            assert!(unknown.is_empty(), "{}: {unknown:?}", panel["title"]);
        }
    }
    drop(client);
    server.stop().await.unwrap();
}
