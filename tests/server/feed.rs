//! The change feed as a stream of the admin port, and `helenus feed`.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use crate::program::helenus;
use crate::raw::Client;
use crate::security::{Program, login, wait_for};
use helenus::TestServer;
use helenus::server::admin::client::{self, ClientError, Event};
use helenus::server::admin::{CONNECTIONS_MAX, STREAMS_MAX};
use helenus_base::clock::Clock;
use helenus_cql::cql::{AnswerKind, QueryParams, SessionState};
use helenus_types::wire::Version;

const TOKEN: &str = "a token for this test only";
const KEYSPACE: &str = "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
const TABLE: &str = "CREATE TABLE ks.t (k int, c int, v text, PRIMARY KEY (k, c)) WITH cdc = true";

async fn start(data: &str) -> (TestServer, SocketAddr, Client) {
    let server = TestServer::builder()
        .set("data", data)
        .set("admin-listen", "127.0.0.1:0")
        .set("admin-token", TOKEN);
    let server = server.start().await.unwrap();
    let admin = server.admin_address().unwrap();
    let client = Client::ready(server.address(), Version::V4).await;
    (server, admin, client)
}

async fn ok(client: &mut Client, statement: &str) {
    client.query(1, statement).await;
    let answer = client.frame().await.unwrap();
    assert_eq!(answer.opcode, 8, "{statement}: {:?}", answer.body);
}

async fn insert(client: &mut Client, numbers: std::ops::Range<i32>) {
    for n in numbers {
        let (k, c) = (n % 7, n / 7);
        ok(
            client,
            &format!("INSERT INTO ks.t (k, c, v) VALUES ({k}, {c}, 'it''s \"{n}\"')"),
        )
        .await;
    }
}

/// The events of a stream that ends.
fn events(admin: SocketAddr, from: &str) -> Vec<Event> {
    let mut all = Vec::new();
    let path = format!("/api/feed/ks/t?follow=false&from={from}");
    let (status, body) = client::events(&admin.into(), Some(TOKEN), &path, |event| {
        all.push(event);
        Ok::<_, ClientError>(())
    })
    .unwrap();
    assert_eq!(status, 200, "{body}");
    assert_eq!(all.last().unwrap().kind, "end", "{:?}", all.last());
    all
}

/// The records among them: positions and rows.
fn records(events: &[Event]) -> Vec<(String, Value)> {
    let of_rows = events
        .iter()
        .filter(|event| event.kind.is_empty() && !event.data.is_empty());
    let record = |event: &Event| {
        let data: Value = serde_json::from_str(&event.data).unwrap();
        assert_eq!(data["position"], event.id.as_str());
        (event.id.clone(), data["current"].clone())
    };
    of_rows.map(record).collect()
}

fn rows(records: &[(String, Value)]) -> BTreeMap<(i64, i64), String> {
    let row = |(_, row): &(String, Value)| {
        let number = |name: &str| row[name].as_i64().unwrap();
        ((number("k"), number("c")), row["v"].as_str().unwrap().to_owned())
    };
    records.iter().map(row).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_resumes_after_any_of_its_records() {
    let folder = tempfile::tempdir().unwrap();
    for data in ["memory:", &format!("file:{}", folder.path().join("data").display())] {
        let (_server, admin, mut client) = start(data).await;
        ok(&mut client, KEYSPACE).await;
        ok(&mut client, &format!("{TABLE} AND helenus_partitions = 3")).await;
        insert(&mut client, 0..230).await;
        let whole = events(admin, "start");
        let all = records(&whole);
        assert_eq!((all.len(), rows(&all).len()), (230, 230));
        assert_eq!(rows(&all)[&(3, 0)], "it's \"3\"");
        // After each record come exactly those behind it, also within a page and in other partitions than before.
        ok(
            &mut client,
            "ALTER TABLE ks.t WITH helenus_split_at = 1234567890123456789",
        )
        .await;
        for place in [0, 1, 57, 98, 99, 100, 101, 199, 228, 229] {
            let rest = records(&events(admin, &all[place].0));
            let values = |records: &[(String, Value)]| records.iter().map(|(_, row)| row.clone()).collect::<Vec<_>>();
            assert_eq!(values(&rest), values(&all[place + 1..]), "after record {place}");
        }
        // From the end on: what is new.
        let end = whole.last().unwrap().id.clone();
        assert!(records(&events(admin, &end)).is_empty() && records(&events(admin, "now")).is_empty());
        insert(&mut client, 100..103).await;
        ok(&mut client, "DELETE FROM ks.t WHERE k = 0 AND c = 0").await;
        assert_eq!(records(&events(admin, &end)).len(), 3);
    }
}

/// The numbers of the table's physical partitions, in the order of their tokens.
async fn partitions(server: &TestServer) -> Vec<i64> {
    let text = "SELECT lower, id FROM system_cosmos.partitions WHERE keyspace_name = 'ks' AND table_name = 't'";
    let answer = server
        .database()
        .query(&SessionState::default(), text, &QueryParams::default())
        .await
        .unwrap();
    let AnswerKind::Rows(rows) = answer.kind else {
        panic!("no rows")
    };
    let number = |cell: &Option<Bytes>| i64::from_be_bytes(cell.as_deref().unwrap().try_into().unwrap());
    let mut found: Vec<(i64, i64)> = rows
        .cells()
        .iter()
        .map(|cells| (number(&cells[0]), number(&cells[1])))
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, id)| id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_outlives_splits_merges_lifts_and_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let data = format!("file:{}", folder.path().join("data").display());
    let (server, admin, mut client) = start(&data).await;
    ok(&mut client, KEYSPACE).await;
    ok(&mut client, &format!("{TABLE} AND helenus_partitions = 3")).await;
    insert(&mut client, 0..150).await;
    let all = records(&events(admin, "start"));
    let rest = |admin, place: usize| {
        let expected: Vec<&Value> = all[place + 1..].iter().map(|(_, row)| row).collect();
        let found = records(&events(admin, &all[place].0));
        let found: Vec<&Value> = found.iter().map(|(_, row)| row).collect();
        assert_eq!(found, expected, "after record {place}");
    };
    ok(&mut client, "ALTER TABLE ks.t WITH helenus_split_at = 77").await;
    rest(admin, 40);
    let ids = partitions(&server).await;
    assert_eq!(ids.len(), 4);
    let lift = format!("ALTER TABLE ks.t WITH helenus_lift = {}", ids[1]);
    ok(&mut client, &lift).await;
    rest(admin, 41);
    let merge = format!(
        "ALTER TABLE ks.t WITH helenus_merge = {{'left': {}, 'right': {}}}",
        ids[2], ids[3]
    );
    ok(&mut client, &merge).await;
    rest(admin, 42);
    server.stop().await.unwrap();
    let (_server, admin, mut client) = start(&data).await;
    for place in [0, 43, 99, 100, 148] {
        rest(admin, place);
    }
    insert(&mut client, 10..12).await;
    assert_eq!(records(&events(admin, &all[149].0)).len(), 2);
}

/// A raw stream: reads an event's lines within a time.
struct Stream(BufReader<TcpStream>);

impl Stream {
    fn open(admin: SocketAddr, path: &str, headers: &str) -> (u16, Self) {
        let mut socket = TcpStream::connect(admin).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let head = format!("GET {path} HTTP/1.0\r\nHost: {admin}\r\n{headers}\r\n");
        socket.write_all(head.as_bytes()).unwrap();
        let mut stream = Self(BufReader::new(socket));
        let first = stream.line().unwrap_or_default();
        let status = first.split(' ').nth(1).map_or(0, |status| status.parse().unwrap());
        while stream.line().is_some_and(|line| !line.is_empty()) {}
        (status, stream)
    }

    /// `None` means that the stream has ended.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let bytes = self.0.read_line(&mut line).unwrap();
        (bytes > 0).then(|| line.trim_end().to_owned())
    }

    /// The next line with this field.
    fn field(&mut self, name: &str) -> String {
        loop {
            let line = self.line().expect("the stream goes on");
            if let Some(value) = line.strip_prefix(&format!("{name}: ")) {
                return value.to_owned();
            }
        }
    }
}

fn bearer() -> String {
    format!("Authorization: Bearer {TOKEN}\r\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_follows_sends_what_changes_and_ends_with_the_table() {
    let (server, admin, mut client) = start("memory:").await;
    ok(&mut client, KEYSPACE).await;
    ok(&mut client, TABLE).await;
    let (status, mut stream) = Stream::open(admin, "/api/feed/ks/t?from=now", &bearer());
    assert_eq!(status, 200);
    insert(&mut client, 0..1).await;
    let (id, data) = (stream.field("id"), stream.field("data"));
    assert!(data.contains("\"current\":{\"k\": 0"), "{data}");
    // A client that connects again goes on after the last record, whatever its address says.
    insert(&mut client, 1..2).await;
    assert!(stream.field("data").contains("\"k\": 1"));
    let last = format!("{}Last-Event-ID: {id}\r\n", bearer());
    let (_, mut again) = Stream::open(admin, "/api/feed/ks/t?from=start", &last);
    assert!(again.field("data").contains("\"k\": 1"));
    // A silent stream stays open, longer than other connections may, and says the position.
    let clock = Clock::system();
    let opened = clock.monotonic();
    let mut told = 0;
    while clock.monotonic() - opened < Duration::from_secs(13) {
        assert!(stream.field("id").starts_with("p03"));
        told += 1;
    }
    assert!((2..20).contains(&told), "{told}");
    insert(&mut client, 2..3).await;
    assert!(stream.field("data").contains("\"k\": 2"));
    ok(&mut client, "DROP TABLE ks.t").await;
    assert_eq!(stream.field("event"), "error");
    assert!(stream.field("data").contains("error"));
    assert_eq!((stream.line(), stream.line()), (Some(String::new()), None));
    ok(&mut client, TABLE).await;
    let (_, mut stream) = Stream::open(admin, "/api/feed/ks/t", &bearer());
    let ending = std::thread::spawn(move || stream.field("event"));
    server.stop().await.unwrap();
    let end = ending.join();
    assert!(end.is_err() || end.unwrap() == "end");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_stream_does_not_allow_is_refused() {
    let (_server, admin, mut client) = start("memory:").await;
    ok(&mut client, KEYSPACE).await;
    ok(&mut client, TABLE).await;
    ok(&mut client, "CREATE TABLE ks.plain (k int PRIMARY KEY)").await;
    let refused = |path: &str, headers: &str| {
        let (status, mut stream) = Stream::open(admin, path, headers);
        let mut body = String::new();
        stream.0.read_to_string(&mut body).unwrap();
        (status, body)
    };
    let token = bearer();
    for (path, headers, status, says) in [
        ("/api/feed/ks/t", "", 401, "Bearer TOKEN"),
        ("/api/feed/ks/t", "Authorization: Bearer guess\r\n", 401, "Bearer TOKEN"),
        ("/api/feed/ks/plain", token.as_str(), 400, "change feed"),
        ("/api/feed/ks/none", &token, 400, "none"),
        ("/api/feed/ks/t?from=p00", &token, 400, ""),
        ("/api/feed/ks/t?from=yesterday", &token, 400, "yesterday"),
        ("/api/feed/ks/t?rows=1", &token, 400, "from, follow and full"),
        ("/api/feed/ks", &token, 404, "/api/feed/"),
    ] {
        let (found, body) = refused(path, headers);
        assert!(found == status && body.contains(says), "{path}: {found} {body}");
    }
    // Streams leave slots for probes.
    let open: Vec<Stream> = (0..STREAMS_MAX)
        .map(|_| {
            let (status, stream) = Stream::open(admin, "/api/feed/ks/t", &token);
            assert_eq!(status, 200);
            stream
        })
        .collect();
    let (status, body) = refused("/api/feed/ks/t", &token);
    assert!(status == 503 && body.contains("streams"), "{status} {body}");
    let silent: Vec<TcpStream> = (0..CONNECTIONS_MAX)
        .map(|_| TcpStream::connect(admin).unwrap())
        .collect();
    assert_eq!(client::get(admin, "/livez").unwrap().0, 200);
    drop((silent, open));
    wait_for("a stream that its client closed frees its place", || {
        (Stream::open(admin, "/api/feed/ks/t?follow=false", &token).0 == 200).then_some(())
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_is_closed() {
    let (_server, admin, mut client) = start("memory:").await;
    ok(&mut client, KEYSPACE).await;
    ok(&mut client, TABLE).await;
    let text = "x".repeat(100_000);
    for n in 0..200 {
        ok(
            &mut client,
            &format!("INSERT INTO ks.t (k, c, v) VALUES ({n}, 0, '{text}')"),
        )
        .await;
    }
    let (status, mut stream) = Stream::open(admin, "/api/feed/ks/t", &bearer());
    assert_eq!(status, 200);
    tokio::time::sleep(Duration::from_secs(25)).await;
    let mut bytes = 0;
    while let Ok(read) = stream.0.read(&mut [0; 65536])
        && read > 0
    {
        bytes += read;
    }
    assert!(bytes < 200 * text.len(), "it was given everything: {bytes} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_full_feed_streams_every_change_and_says_what_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let data = format!("file:{}", folder.path().join("data").display());
    let (_server, admin, mut client) = start(&data).await;
    ok(&mut client, KEYSPACE).await;
    ok(
        &mut client,
        "CREATE TABLE ks.t (k int, c int, v text, PRIMARY KEY (k, c)) WITH cosmosdb_full_fidelity_retention_seconds = 600",
    )
    .await;
    insert(&mut client, 0..120).await;
    ok(&mut client, "UPDATE ks.t SET v = 'new' WHERE k = 1 AND c = 1").await;
    ok(&mut client, "DELETE FROM ks.t WHERE k = 1 AND c = 1").await;
    let feed = |more: &[&str]| {
        let mut command = helenus(&["feed", "ks.t", "--full", "--data", &data]);
        let output = command.args(more).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.success(), text(output.stdout), text(output.stderr))
    };
    let (success, out, error) = feed(&[]);
    assert!(success, "{error}");
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 122);
    let of_row = lines
        .iter()
        .filter(|line| line["metadata"]["key"] == serde_json::json!({"k": 1, "c": 1}));
    let of_row: Vec<_> = of_row
        .map(|line| {
            let value = |image: &str| line[image]["v"].as_str().map(str::to_owned);
            (
                line["metadata"]["operationType"].as_str().unwrap(),
                value("previous"),
                value("current"),
            )
        })
        .collect();
    let (first, new) = (Some("it's \"8\"".to_owned()), Some("new".to_owned()));
    assert_eq!(
        of_row,
        [
            ("create", None, first.clone()),
            ("replace", first, new.clone()),
            ("delete", new, None)
        ]
    );
    // It goes on after any record, and follows.
    let position = |line: &Value| line["position"].as_str().unwrap().to_owned();
    let (_, out, _) = feed(&["--from", &position(&lines[100])]);
    assert_eq!(out.lines().count(), 21);
    let path = format!("/api/feed/ks/t?full&from={}", position(&lines[121]));
    let (status, mut stream) = Stream::open(admin, &path, &bearer());
    assert_eq!(status, 200);
    ok(&mut client, "DELETE FROM ks.t WHERE k = 2").await;
    assert!(stream.field("data").contains("\"of\":\"partition\""));
    // What the log never had, or has no more, is said to be gone. So is a position of the other feed.
    let (status, _) = Stream::open(admin, "/api/feed/ks/t?full&from=2001-01-01", &bearer());
    assert_eq!(status, 410);
    let (success, _, error) = feed(&["--from", "2001-01-01"]);
    assert!(
        !success && error.contains("has no changes of that time") && error.contains("begins after"),
        "{error}"
    );
    let rows = events(admin, "now");
    let of_rows = format!("/api/feed/ks/t?full&from={}", rows.last().unwrap().id);
    assert_eq!(Stream::open(admin, &of_rows, &bearer()).0, 400);
    ok(
        &mut client,
        "ALTER TABLE ks.t WITH cosmosdb_full_fidelity_retention_seconds = 0",
    )
    .await;
    assert_eq!(Stream::open(admin, "/api/feed/ks/t?full", &bearer()).0, 400);
}

fn with_login(_: &Path) -> Vec<String> {
    let words = [
        "--listen",
        "127.0.0.1:0",
        "--admin-listen",
        "127.0.0.1:0",
        "--login",
        "--password-cost",
        "4",
    ];
    words.map(str::to_owned).into()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_needs_select_on_the_table_for_each_page() {
    let program = Program::start_in(tempfile::tempdir().unwrap(), with_login);
    let record = program.record();
    let admin: SocketAddr = record.admin.clone().unwrap().parse().unwrap();
    let (mut client, _) = login(program.address, "cassandra", "cassandra").await;
    for statement in [
        KEYSPACE,
        TABLE,
        "CREATE ROLE ann WITH PASSWORD = 'a' AND LOGIN = true",
        "CREATE ROLE bob WITH PASSWORD = 'b' AND LOGIN = true",
        "GRANT SELECT ON ks.t TO ann",
        "GRANT MODIFY ON ks.t TO bob",
        "INSERT INTO ks.t (k, c, v) VALUES (1, 1, 'x')",
    ] {
        ok(&mut client, statement).await;
    }
    let open = |authorization: &str| {
        let header = format!("Authorization: {authorization}\r\n");
        Stream::open(admin, "/api/feed/ks/t", &header)
    };
    // ann:a, bob:b, ann:guess
    let token = format!("Bearer {}", record.token.unwrap());
    for (authorization, status) in [
        ("Basic YW5uOmE=", 200),
        ("Basic Ym9iOmI=", 403),
        ("Basic YW5uOmd1ZXNz", 401),
        ("Bearer guess", 401),
        (token.as_str(), 200),
    ] {
        assert_eq!(open(authorization).0, status, "{authorization}");
    }
    assert_eq!(Stream::open(admin, "/api/feed/ks/t", "").0, 401);
    // Figures still need more than a table.
    let header = "Authorization: Basic YW5uOmE=\r\n";
    assert_eq!(Stream::open(admin, "/api/tables", header).0, 403);
    let (_, mut stream) = open("Basic YW5uOmE=");
    assert!(stream.field("data").contains("\"v\": \"x\""));
    ok(&mut client, "REVOKE SELECT ON ks.t FROM ann").await;
    ok(&mut client, "INSERT INTO ks.t (k, c, v) VALUES (1, 1, 'secret')").await;
    assert_eq!(stream.field("event"), "error");
    let why = stream.field("data");
    assert!(why.contains("SELECT") && !why.contains("secret"), "{why}");

    // The program finds the token in the data directory.
    let data = format!("file:{}", program.path("data").display());
    let feed = |more: &[&str]| {
        let mut command = helenus(&["feed", "ks.t", "--data", &data]);
        let output = command.args(more).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.success(), text(output.stdout), text(output.stderr))
    };
    let (success, out, error) = feed(&[]);
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(success && lines.len() == 1, "{out} {error}");
    assert_eq!(lines[0]["current"]["v"], "secret");
    ok(&mut client, "INSERT INTO ks.t (k, c, v) VALUES (2, 1, 'later')").await;
    let (_, out, error) = feed(&["--from", lines[0]["position"].as_str().unwrap()]);
    assert!(
        out.contains("later") && !out.contains("secret") && out.lines().count() == 1,
        "{out}"
    );
    let position = error.trim().rsplit(' ').next().unwrap();
    let (success, out, _) = feed(&["--from", position]);
    assert!(success && out.is_empty(), "{out}");
    let (success, _, error) = feed(&["--from", "p00"]);
    assert!(
        !success && error.contains("Invalid value for the paging state"),
        "{error}"
    );
}
