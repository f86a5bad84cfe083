//! What test harnesses of any language use: the clock and the reset of the admin port.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::program::helenus;
use crate::raw::Client;
use helenus::cli::record::ServerRecord;
use helenus_base::clock::Clock;
use helenus_types::wire::Version;
use helenus_types::wire::request::Params;

/// A server of the program; ends with its standard input, which ends with this.
struct Harness {
    record: ServerRecord,
    child: Child,
}

impl Harness {
    fn start(arguments: &[&str]) -> Self {
        let mut command = helenus(&["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
        command.args(["--ready-json", "-", "--exit-with-stdin"]).args(arguments);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let record = serde_json::from_str(&line).unwrap();
        Self { record, child }
    }

    fn get(&self, path: &str) -> (u16, Value) {
        let admin = self.record.admin.as_deref().unwrap();
        let mut socket = TcpStream::connect(admin).unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nHost: {admin}\r\n\r\n");
        socket.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap())
    }

    fn uptime_seconds(&self) -> u64 {
        self.get("/api/status").1["uptime_seconds"].as_u64().unwrap()
    }

    fn post_json(&self, path: &str, body: &Value) -> (u16, Value) {
        let content = "\r\nContent-Type: application/json";
        self.post_as(
            &format!("{}{content}", self.record.token.as_deref().unwrap()),
            path,
            body,
        )
    }

    fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.post_as(self.record.token.as_deref().unwrap(), path, body)
    }

    fn post_as(&self, token: &str, path: &str, body: &Value) -> (u16, Value) {
        let admin = self.record.admin.as_deref().unwrap();
        let body = body.to_string();
        let mut socket = TcpStream::connect(admin).unwrap();
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {admin}\r\nAuthorization: Bearer {token}\r\nContent-Length: {length}"
        );
        socket.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (
            status,
            serde_json::from_str(body).unwrap_or_else(|_| Value::String(body.to_owned())),
        )
    }

    async fn client(&self) -> Client {
        Client::ready(self.record.cql.as_deref().unwrap().parse().unwrap(), Version::V4).await
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

const SCHEMA: &[&str] = &[
    "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE ks.t (k int PRIMARY KEY, v int)",
];

/// Runs statements; the opcode and the body of the last answer.
async fn run(client: &mut Client, statements: &[&str]) -> (u8, Vec<u8>) {
    let mut last = (0, Vec::new());
    for statement in statements {
        client.query(1, statement).await;
        let frame = client.frame().await.unwrap();
        last = (frame.opcode, frame.body.to_vec());
    }
    last
}

/// As a driver sends a statement by default: with a timestamp of its own.
fn dated(micros: i64) -> Params<'static> {
    Params {
        default_timestamp_micros: Some(micros),
        ..Params::default()
    }
}

/// How many rows a table has.
async fn count(client: &mut Client) -> i64 {
    let (opcode, body) = run(client, &["SELECT count(*) FROM ks.t"]).await;
    assert_eq!(opcode, 8, "{body:?}");
    i64::from_be_bytes(body[body.len() - 8..].try_into().unwrap())
}

#[tokio::test]
async fn what_expires_is_gone_when_the_move_is_answered() {
    let server = Harness::start(&["--data", "memory:"]);
    let mut client = server.client().await;
    run(&mut client, SCHEMA).await;
    run(&mut client, &["INSERT INTO ks.t (k, v) VALUES (1, 1) USING TTL 3600"]).await;
    assert_eq!(count(&mut client).await, 1);
    let (status, shown) = server.post("/api/clock", &json!({"advance_ms": 3_601_000}));
    assert_eq!((status, &shown["mode"]), (200, &json!("running")));
    assert!(server.uptime_seconds() < 3_600, "uptime is the process's");
    assert_eq!(shown["ahead_ms"], 3_601_000);
    assert_eq!(count(&mut client).await, 0);

    // Stopped, it stands.
    let (_, stopped) = server.post("/api/clock", &json!({"mode": "manual"}));
    tokio::time::sleep(Duration::from_millis(5)).await;
    let (_, later) = server.post("/api/clock", &json!({}));
    assert_eq!(
        (&stopped["mode"], &stopped["now_ms"]),
        (&json!("manual"), &later["now_ms"])
    );
    let to_ms = stopped["now_ms"].as_i64().unwrap() + 60_000;
    let (_, moved) = server.post("/api/clock", &json!({"set_ms": to_ms, "mode": "running"}));
    assert!(moved["now_ms"].as_i64().unwrap() >= to_ms);
}

#[tokio::test]
async fn a_path_that_is_not_there_and_a_fault_that_hits_nothing_are_named() {
    let server = Harness::start(&["--data", "memory:"]);
    let (status, body) = server.get("/api/nope");
    assert_eq!((status, &body["error"]), (404, &json!("there is no /api/nope")));
    let paths: Vec<&str> = body["paths"]
        .as_array()
        .unwrap()
        .iter()
        .map(|path| path.as_str().unwrap())
        .collect();
    assert!(
        paths.contains(&"/api/faults") && paths.contains(&"/api/status") && paths.contains(&"/"),
        "{paths:?}"
    );
    let (status, refused) = server.post_as("wrong", "/api/reset", &json!({}));
    let refused = refused.as_str().unwrap();
    assert!(
        status == 401 && refused.contains("--ready-json FILE") && !refused.contains("directory"),
        "{refused}"
    );

    let mut client = server.client().await;
    run(&mut client, SCHEMA).await;
    let plan = json!({"fault": [
        {"action": "throttle", "keyspace": "ks", "table": "t", "count": 0},
        {"action": "throttle", "keyspace": "ks", "table": "later", "count": 0},
        {"action": "throttle", "keyspace": "nowhere", "count": 0},
        {"action": "throttle", "table": "later", "count": 0},
        {"action": "throttle", "count": 0},
    ]});
    let (status, shown) = server.post_json("/api/faults", &plan);
    let warnings = json!([
        "fault 2 hits nothing yet: table ks.later does not exist",
        "fault 3 hits nothing yet: keyspace nowhere does not exist",
        "fault 4 hits nothing yet: table later does not exist",
    ]);
    assert_eq!((status, &shown["warnings"]), (200, &warnings), "{shown}");
    run(&mut client, &["CREATE TABLE ks.later (k int PRIMARY KEY)"]).await;
    let (_, shown) = server.get("/api/faults");
    assert_eq!(shown["warnings"], json!([warnings[1]]));
}

#[tokio::test]
async fn a_driver_that_dates_its_writes_and_the_server_stay_in_order_under_a_moved_clock() {
    let server = Harness::start(&["--data", "memory:"]);
    let mut client = server.client().await;
    run(&mut client, SCHEMA).await;
    server.post("/api/clock", &json!({"advance_ms": 3_600_000}));
    run(&mut client, &["INSERT INTO ks.t (k, v) VALUES (1, 1)"]).await;
    // As a driver does by default: dated by the machine's clock.
    let now = Clock::system().wall_micros();
    client
        .query_with(1, "UPDATE ks.t SET v = 2 WHERE k = 1", dated(now))
        .await;
    client.frame().await.unwrap();
    let (_, body) = run(&mut client, &["SELECT v FROM ks.t WHERE k = 1"]).await;
    assert!(body.ends_with(&[0, 0, 0, 4, 0, 0, 0, 2]), "{body:?}");
    run(&mut client, &["UPDATE ks.t SET v = 3 WHERE k = 1"]).await;
    let (_, body) = run(&mut client, &["SELECT v FROM ks.t WHERE k = 1"]).await;
    assert!(body.ends_with(&[0, 0, 0, 4, 0, 0, 0, 3]), "{body:?}");
}

#[tokio::test]
async fn a_reset_empties_the_server_and_takes_the_time_back() {
    let server = Harness::start(&["--data", "memory:"]);
    let mut client = server.client().await;
    run(&mut client, SCHEMA).await;
    server.post("/api/clock", &json!({"advance_ms": 86_400_000}));
    run(&mut client, &["INSERT INTO ks.t (k, v) VALUES (1, 1)"]).await;
    run(&mut client, &["SELECT now() FROM system.local"]).await;
    let (status, shown) = server.post("/api/reset", &json!({"keep": "schema"}));
    assert_eq!((status, &shown["ahead_ms"]), (200, &json!(0)), "{shown}");
    assert_eq!(count(&mut client).await, 0);
    let (_, body) = run(&mut client, &["SELECT totimestamp(now()) FROM system.local"]).await;
    let millis = i64::from_be_bytes(body[body.len() - 8..].try_into().unwrap());
    let ahead = millis - Clock::system().wall_micros() / 1000;
    assert!(ahead < 60_000, "a timeuuid is {ahead} ms ahead");
    // What a driver dates now is not older than what the server dated tomorrow.
    run(&mut client, &["INSERT INTO ks.t (k, v) VALUES (1, 1)"]).await;
    let now = Clock::system().wall_micros() + 1_000_000;
    client
        .query_with(1, "UPDATE ks.t SET v = 2 WHERE k = 1", dated(now))
        .await;
    client.frame().await.unwrap();
    let (_, body) = run(&mut client, &["SELECT v FROM ks.t WHERE k = 1"]).await;
    assert!(body.ends_with(&[0, 0, 0, 4, 0, 0, 0, 2]), "{body:?}");

    assert_eq!(server.post("/api/reset", &json!({})).0, 200);
    let (opcode, _) = run(&mut client, &["SELECT v FROM ks.t WHERE k = 1"]).await;
    assert_eq!(opcode, 0, "the table is gone");
    assert_eq!(run(&mut client, SCHEMA).await.0, 8, "the connection is not");
}

#[tokio::test]
async fn who_lacks_the_token_and_what_makes_no_sense_is_refused() {
    let server = Harness::start(&["--data", "memory:"]);
    for token in ["", "wrong"] {
        assert_eq!(server.post_as(token, "/api/clock", &json!({"advance_ms": 1})).0, 401);
        assert_eq!(server.post_as(token, "/api/reset", &json!({})).0, 401);
    }
    for (path, body, expected) in [
        ("/api/clock", json!({"set_ms": 0}), 409),
        ("/api/clock", json!({"advance_ms": -1}), 400),
        ("/api/clock", json!({"advance_ms": 1, "set_ms": 1}), 400),
        ("/api/clock", json!({"forward": 1}), 400),
        ("/api/clock", json!({"advance_ms": u64::MAX}), 400),
        ("/api/reset", json!({"keep": "rows"}), 400),
    ] {
        let (status, why) = server.post(path, &body);
        assert_eq!(status, expected, "{path} {body}: {why}");
    }
    let folder = tempfile::tempdir().unwrap();
    let kept = Harness::start(&["--data", &format!("file:{}", folder.path().join("data").display())]);
    for path in ["/api/clock", "/api/reset"] {
        let (status, why) = kept.post(path, &json!({}));
        assert_eq!(status, 409, "{why}");
    }
}

#[tokio::test]
async fn a_reset_fills_budgets() {
    let server = Harness::start(&["--data", "memory:"]);
    let mut client = server.client().await;
    run(&mut client, &SCHEMA[..1]).await;
    let table = "CREATE TABLE ks.t (k int PRIMARY KEY, v int) WITH cosmosdb_provisioned_throughput = 400";
    run(&mut client, &[table]).await;
    let insert = "INSERT INTO ks.t (k, v) VALUES (1, 1)";
    let mut refused = false;
    for _ in 0..2000 {
        refused |= run(&mut client, &[insert]).await.0 == 0;
    }
    assert!(refused, "the budget is never spent");
    server.post("/api/reset", &json!({"keep": "schema"}));
    for _ in 0..20 {
        assert_eq!(run(&mut client, &[insert]).await.0, 8);
    }
}
