//! Replica sets from outside: every consistency level with every number of replicas down, four virtual nodes that go down and up, and
//! what a fault plan makes clients meet, with its counts.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

mod raw;

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use helenus::TestServer;
use helenus::config::{Config, Values as Settings};
use helenus::partition::faults::Plan;
use helenus::wire::request::{Batch, BatchStatement, Params, Query, Register, Request, Subject};
use helenus::wire::{BatchType, Consistency, Version};
use raw::{Client, Frame};

async fn start(settings: &[(&str, &str)]) -> TestServer {
    let mut given = vec![("data", "memory:"), ("listen", "127.0.0.1:0")];
    given.extend(settings);
    let given = given
        .into_iter()
        .map(|(name, value)| (name.to_owned(), vec![value.to_owned()]));
    let values = Settings::gather(None, &given.collect(), |_| None).unwrap();
    TestServer::with(&Config::new(&values).unwrap()).await.unwrap()
}

fn plan(server: &TestServer, text: &str) {
    server
        .database()
        .nodes()
        .set_plan(Plan::from_toml(text).unwrap())
        .unwrap();
}

/// What an answer says, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Said {
    Rows(Vec<Vec<Option<Vec<u8>>>>),
    Done,
    /// Level, required, alive.
    Unavailable(u16, i32, i32),
    /// Level, received, needed, kind of write.
    WriteTimeout(u16, i32, i32, String),
    /// Level, received, needed, whether there was data.
    ReadTimeout(u16, i32, i32, bool),
    Error(u32, String),
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take(&mut self, count: usize) -> Vec<u8> {
        let (head, tail) = self.0.split_at(count);
        self.0 = tail;
        head.to_vec()
    }

    fn int(&mut self) -> i32 {
        i32::from_be_bytes(self.take(4).try_into().unwrap())
    }

    fn short(&mut self) -> u16 {
        u16::from_be_bytes(self.take(2).try_into().unwrap())
    }

    fn string(&mut self) -> String {
        let count = self.short();
        String::from_utf8(self.take(count.into())).unwrap()
    }

    fn value(&mut self) -> Option<Vec<u8>> {
        let count = self.int();
        usize::try_from(count).ok().map(|count| self.take(count))
    }
}

fn said(frame: &Frame) -> Said {
    let mut body = Reader(&frame.body);
    let first = body.int();
    if frame.opcode == 0 {
        let message = body.string();
        return match first {
            0x1000 => Said::Unavailable(body.short(), body.int(), body.int()),
            0x1100 => Said::WriteTimeout(body.short(), body.int(), body.int(), body.string()),
            0x1200 => Said::ReadTimeout(body.short(), body.int(), body.int(), body.take(1) == [1]),
            code => Said::Error(code.try_into().unwrap(), message),
        };
    }
    assert_eq!(frame.opcode, 8, "{frame:?}");
    if first != 2 {
        return Said::Done;
    }
    let flags = body.int();
    assert_eq!(flags & 4, 4, "metadata was to be skipped");
    let columns = body.int();
    if flags & 2 == 2 {
        body.value();
    }
    let count = body.int();
    Said::Rows(
        (0..count)
            .map(|_| (0..columns).map(|_| body.value()).collect())
            .collect(),
    )
}

async fn ask_with(client: &mut Client, text: &str, params: Params<'_>) -> Said {
    let params = Params {
        skip_metadata: true,
        ..params
    };
    client.request(1, &Request::Query(Query { text, params })).await;
    said(&client.frame().await.unwrap())
}

async fn ask(client: &mut Client, text: &str, consistency: Consistency) -> Said {
    let params = Params {
        consistency,
        ..Params::default()
    };
    ask_with(client, text, params).await
}

async fn batch(client: &mut Client, batch_type: BatchType, texts: &[&str]) -> Said {
    let statements = texts.iter().map(|text| BatchStatement {
        subject: Subject::Text(text),
        values: vec![],
    });
    let batch = Batch {
        batch_type,
        statements: statements.collect(),
        consistency: Consistency::Quorum,
        serial_consistency: None,
        default_timestamp_micros: None,
        keyspace: None,
        now_in_seconds: None,
    };
    client.request(1, &Request::Batch(batch)).await;
    said(&client.frame().await.unwrap())
}

async fn done(client: &mut Client, text: &str) {
    let said = ask(client, text, Consistency::Quorum).await;
    assert!(matches!(said, Said::Done | Said::Rows(_)), "{text}: {said:?}");
}

/// The one cell of the one row.
async fn cell(client: &mut Client, text: &str, consistency: Consistency) -> Option<Vec<u8>> {
    match ask(client, text, consistency).await {
        Said::Rows(rows) => rows.first()?.first()?.clone(),
        other => panic!("{text}: {other:?}"),
    }
}

async fn number(client: &mut Client, text: &str, consistency: Consistency) -> i32 {
    let cell = cell(client, text, consistency).await.unwrap();
    i32::from_be_bytes(cell.try_into().unwrap())
}

const SCHEMA: [&str; 4] = [
    "CREATE KEYSPACE ks WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 1}",
    "CREATE TABLE ks.t (k int PRIMARY KEY, v int)",
    "CREATE TABLE ks.c (k int PRIMARY KEY, n counter)",
    "INSERT INTO ks.t (k, v) VALUES (1, 1)",
];

async fn ready(server: &TestServer, version: Version) -> Client {
    let mut client = Client::ready(server.address(), version).await;
    for text in SCHEMA {
        done(&mut client, text).await;
    }
    client
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Conditional,
    Counter,
    Batch,
}

const KINDS: [Kind; 5] = [Kind::Read, Kind::Write, Kind::Conditional, Kind::Counter, Kind::Batch];

/// A cell of the README's table: what becomes of a statement with 0 to 4 replicas down.
#[derive(Debug)]
struct Promised {
    /// `None`: the level makes no sense there.
    required: Option<i32>,
    /// By the number of replicas down.
    carried_out: Vec<bool>,
}

/// The README's table, which is what is promised.
fn promised(kind: Kind, level: Consistency) -> Promised {
    let head = format!("| `{}` |", level.name());
    let line = include_str!("../README.md")
        .lines()
        .find(|line| line.starts_with(&head))
        .unwrap();
    let column = match kind {
        Kind::Read => 2,
        Kind::Write | Kind::Batch => 3,
        Kind::Conditional => 4,
        Kind::Counter => 5,
    };
    let cell = line.split('|').nth(column).unwrap().trim();
    if cell == "–" {
        return Promised {
            required: None,
            carried_out: Vec::new(),
        };
    }
    let (marks, required) = cell.split_once(' ').unwrap();
    let promised = Promised {
        required: Some(required.parse().unwrap()),
        carried_out: marks.chars().map(|mark| mark == '●').collect(),
    };
    assert_eq!(promised.carried_out.len(), 5, "{line}");
    promised
}

#[tokio::test]
async fn every_level_with_every_number_of_replicas_down() {
    for version in [Version::V4, Version::V5] {
        let server = start(&[]).await;
        let mut client = ready(&server, version).await;
        for down in 0..=4_usize {
            let faults = (1..=down).map(|node| format!("[[fault]]\naction = \"replica-down\"\nnode = {node}\n"));
            plan(&server, &faults.collect::<String>());
            let alive = 4 - i32::try_from(down).unwrap();
            for level in Consistency::ALL {
                for kind in KINDS {
                    let text = match kind {
                        Kind::Read => "SELECT v FROM ks.t WHERE k = 1",
                        Kind::Write => "INSERT INTO ks.t (k, v) VALUES (1, 1)",
                        Kind::Conditional => "UPDATE ks.t SET v = 1 WHERE k = 1 IF EXISTS",
                        Kind::Counter => "UPDATE ks.c SET n = n + 1 WHERE k = 1",
                        Kind::Batch => "BEGIN BATCH INSERT INTO ks.t (k, v) VALUES (1, 1) APPLY BATCH",
                    };
                    let found = ask(&mut client, text, level).await;
                    let place = format!("{version:?} {kind:?} {} with {down} down: {found:?}", level.name());
                    let code = level.code();
                    let promised = promised(kind, level);
                    let is_promised = promised.carried_out.get(down).is_some_and(|yes| *yes);
                    match promised.required {
                        // Cassandra lets a batch be written at SERIAL; it is the write that makes no sense alone.
                        None if kind == Kind::Batch => {}
                        None => assert!(matches!(found, Said::Error(0x2200, _)), "{place}"),
                        Some(_) if is_promised => {
                            assert!(matches!(found, Said::Done | Said::Rows(_)), "{place}");
                        }
                        // The decision comes first.
                        Some(_) if kind == Kind::Conditional && alive < 3 => {
                            assert_eq!(
                                found,
                                Said::Unavailable(Consistency::Serial.code(), 3, alive),
                                "{place}"
                            );
                        }
                        Some(required) => assert_eq!(found, Said::Unavailable(code, required, alive), "{place}"),
                    }
                }
            }
            let params = Params {
                serial_consistency: Some(Consistency::LocalSerial),
                ..Params::default()
            };
            let found = ask_with(&mut client, "DELETE FROM ks.t WHERE k = 9 IF EXISTS", params).await;
            if alive < 3 {
                assert_eq!(found, Said::Unavailable(Consistency::LocalSerial.code(), 3, alive));
            } else {
                assert!(matches!(found, Said::Rows(_)));
            }
            let truncated = ask(&mut client, "TRUNCATE ks.c", Consistency::One).await;
            if down == 0 {
                assert_eq!(truncated, Said::Done);
            } else {
                assert_eq!(truncated, Said::Unavailable(Consistency::All.code(), 4, alive));
            }
        }
        // Nothing of what was refused was done, and all that was acknowledged is there.
        server.database().nodes().clear();
        assert_eq!(
            number(&mut client, "SELECT v FROM ks.t WHERE k = 1", Consistency::All).await,
            1
        );
    }
}

#[tokio::test]
async fn only_the_replicas_named_are_down() {
    let server = start(&[]).await;
    let mut client = ready(&server, Version::V5).await;
    done(
        &mut client,
        "CREATE TABLE ks.u (k int PRIMARY KEY) WITH helenus_partitions = 2",
    )
    .await;
    let down = |more: &str| {
        let of = |node| format!("[[fault]]\naction = \"replica-down\"\nnode = {node}\n{more}\n");
        [1, 2].map(of).concat()
    };
    plan(&server, &down("table = \"u\"\npartition = 1"));
    done(&mut client, "SELECT * FROM ks.t").await;
    done(&mut client, "SELECT * FROM system_schema.tables").await;
    // A scan meets the partition whose replicas are down, a key need not.
    let refused = Said::Unavailable(Consistency::Quorum.code(), 3, 2);
    assert_eq!(
        ask(&mut client, "SELECT * FROM ks.u", Consistency::Quorum).await,
        refused
    );
    let mut answers = Vec::new();
    for key in 0..20 {
        let text = format!("SELECT * FROM ks.u WHERE k = {key}");
        answers.push(ask(&mut client, &text, Consistency::Quorum).await == refused);
    }
    assert!(answers.contains(&true) && answers.contains(&false));
    let roles = "SELECT role, state, node, lag_ms_max FROM system_cosmos.replicas WHERE keyspace_name = 'ks' AND table_name = 'u' AND \
                 partition_id = ";
    for (partition, expected) in [
        (0, ["writer up", "follower up", "follower up", "follower up"]),
        (1, ["follower down", "follower up", "follower up", "follower down"]),
    ] {
        let Said::Rows(rows) = ask(&mut client, &format!("{roles}{partition}"), Consistency::One).await else {
            panic!()
        };
        let text = |cell: &Option<Vec<u8>>| String::from_utf8(cell.clone().unwrap()).unwrap();
        let shown: Vec<String> = rows
            .iter()
            .map(|row| format!("{} {}", text(&row[0]), text(&row[1])))
            .collect();
        // Two of four cannot give a lease.
        assert_eq!(shown, expected);
        assert_eq!(rows[0][3], Some(0_i64.to_be_bytes().to_vec()));
    }
}

#[tokio::test]
async fn timeouts_refusals_and_their_counts() {
    for version in [Version::V3, Version::V4, Version::V5] {
        let server = start(&[]).await;
        let mut client = ready(&server, version).await;
        let quorum = Consistency::Quorum.code();
        let timeout = |kind: &str| Said::WriteTimeout(quorum, 2, 3, kind.to_owned());
        // Before: nothing is done. After: it is, and the client is told the same.
        for (action, value) in [("timeout", 1), ("timeout-after", 2)] {
            plan(&server, &format!("[[fault]]\naction = \"{action}\"\n"));
            let write = "INSERT INTO ks.t (k, v) VALUES (1, 2)";
            assert_eq!(ask(&mut client, write, Consistency::Quorum).await, timeout("SIMPLE"));
            assert_eq!(
                ask(&mut client, write, Consistency::All).await,
                Said::WriteTimeout(Consistency::All.code(), 3, 4, "SIMPLE".into())
            );
            assert_eq!(
                ask(&mut client, "SELECT v FROM ks.t WHERE k = 1", Consistency::Two).await,
                Said::ReadTimeout(Consistency::Two.code(), 1, 2, false)
            );
            assert_eq!(batch(&mut client, BatchType::Logged, &[write]).await, timeout("BATCH"));
            assert_eq!(
                batch(&mut client, BatchType::Unlogged, &[write]).await,
                timeout("UNLOGGED_BATCH")
            );
            let count = "UPDATE ks.c SET n = n + 1 WHERE k = 1";
            assert_eq!(
                batch(&mut client, BatchType::Counter, &[count]).await,
                timeout("COUNTER")
            );
            assert_eq!(ask(&mut client, count, Consistency::Quorum).await, timeout("COUNTER"));
            let conditional = "UPDATE ks.t SET v = 2 WHERE k = 1 IF v = 1";
            assert_eq!(
                ask(&mut client, conditional, Consistency::Quorum).await,
                Said::WriteTimeout(Consistency::Serial.code(), 2, 3, "CAS".into())
            );
            server.database().nodes().clear();
            let found = number(&mut client, "SELECT v FROM ks.t WHERE k = 1", Consistency::Quorum).await;
            assert_eq!(found, value, "{action}");
        }
        assert_eq!(
            cell(&mut client, "SELECT n FROM ks.c WHERE k = 1", Consistency::Quorum).await,
            Some(2_i64.to_be_bytes().to_vec())
        );
        let read = "SELECT v FROM ks.t WHERE k = 1";
        plan(
            &server,
            "[[fault]]\naction = \"timeout\"\nreceived = 3\ndata-present = true\nstatement = \"read\"\n",
        );
        assert_eq!(
            ask(&mut client, read, Consistency::LocalQuorum).await,
            Said::ReadTimeout(Consistency::LocalQuorum.code(), 3, 3, true)
        );
        plan(
            &server,
            "[[fault]]\naction = \"timeout\"\nstatement = \"batch\"\nreceived = 0\nwrite-type = \"BATCH_LOG\"\n",
        );
        assert_eq!(
            batch(
                &mut client,
                BatchType::Logged,
                &["INSERT INTO ks.t (k, v) VALUES (3, 3)"]
            )
            .await,
            Said::WriteTimeout(quorum, 0, 3, "BATCH_LOG".into())
        );
        plan(&server, "[[fault]]\naction = \"throttle\"\nms = 25\n");
        let Said::Error(0x1001, text) = ask(&mut client, read, Consistency::One).await else {
            panic!()
        };
        assert!(text.contains("RetryAfterMs=25,"), "{text}");
        plan(&server, "[[fault]]\naction = \"unavailable\"\n");
        assert_eq!(
            ask(&mut client, read, Consistency::Quorum).await,
            Said::Unavailable(quorum, 3, 2)
        );
        assert_eq!(
            ask(&mut client, "DELETE FROM ks.t WHERE k = 1", Consistency::One).await,
            Said::Unavailable(Consistency::One.code(), 3, 2)
        );
    }
}

#[tokio::test]
async fn a_dropped_request_is_not_answered_until_its_time_or_the_plans_end() {
    let server = start(&[]).await;
    let mut client = ready(&server, Version::V5).await;
    plan(
        &server,
        "[[fault]]\naction = \"drop\"\nstatement = \"read\"\n[[fault]]\naction = \"delay\"\nms = 1\njitter-ms = 2\n",
    );
    client.query(7, "SELECT v FROM ks.t WHERE k = 1").await;
    // Others on the connection are answered past it, a little later than usual.
    for _ in 0..3 {
        done(&mut client, "INSERT INTO ks.t (k, v) VALUES (2, 2)").await;
    }
    server.database().nodes().clear();
    let frame = client.frame().await.unwrap();
    assert_eq!(frame.stream, 7);
    assert_eq!(said(&frame), Said::ReadTimeout(Consistency::One.code(), 0, 1, false));
    plan(&server, "[[fault]]\naction = \"drop\"\nms = 10\n");
    let write = ask(&mut client, "INSERT INTO ks.t (k, v) VALUES (5, 5)", Consistency::One).await;
    assert_eq!(
        write,
        Said::WriteTimeout(Consistency::One.code(), 2, 3, "SIMPLE".into())
    );
    server.database().nodes().clear();
    let rows = ask(&mut client, "SELECT v FROM ks.t WHERE k = 5", Consistency::One).await;
    assert_eq!(rows, Said::Rows(vec![]));
}

#[tokio::test]
async fn a_partition_splits_under_a_read_and_a_write() {
    let server = start(&[]).await;
    let mut client = ready(&server, Version::V5).await;
    for key in 0..200 {
        done(&mut client, &format!("INSERT INTO ks.t (k, v) VALUES ({key}, {key})")).await;
    }
    let partitions = || {
        let all = server.database().partitions().into_iter();
        all.filter(|partition| partition.table == "t").count()
    };
    assert_eq!(partitions(), 1);
    plan(&server, "[[fault]]\naction = \"split\"\n");
    for number in 0..6 {
        let Said::Rows(rows) = ask(&mut client, "SELECT k FROM ks.t", Consistency::Quorum).await else {
            panic!()
        };
        assert_eq!(rows.len(), 200);
        let write = format!("INSERT INTO ks.t (k, v) VALUES ({number}, -1)");
        done(&mut client, &write).await;
        assert_eq!(
            crate::number(
                &mut client,
                &format!("SELECT v FROM ks.t WHERE k = {number}"),
                Consistency::One
            )
            .await,
            -1
        );
    }
    server.database().nodes().clear();
    assert!(partitions() > 6, "{}", partitions());
    let Said::Rows(rows) = ask(&mut client, "SELECT k FROM ks.t", Consistency::Quorum).await else {
        panic!()
    };
    assert_eq!(rows.len(), 200);
}

#[tokio::test]
async fn the_same_seed_and_requests_meet_the_same_faults() {
    const FAULTS: &str = "[[fault]]\naction = \"timeout\"\nprobability = 0.3\n\
                          [[fault]]\naction = \"timeout-after\"\nstatement = \"write\"\nprobability = 0.3\n\
                          [[fault]]\naction = \"replica-down\"\nnode = 2\nfrom-request = 20\nuntil-request = 40\n\
                          [[fault]]\naction = \"replica-down\"\nnode = 3\nfrom-request = 30\nuntil-request = 40\n";
    let mut histories = Vec::new();
    for seed in [5, 5, 6] {
        let server = start(&[]).await;
        let mut client = ready(&server, Version::V5).await;
        plan(&server, &format!("seed = {seed}\n{FAULTS}"));
        let mut history = Vec::new();
        for number in 0..60 {
            let write = format!("INSERT INTO ks.t (k, v) VALUES (1, {number})");
            history.push(ask(&mut client, &write, Consistency::Quorum).await);
            history.push(ask(&mut client, "SELECT v FROM ks.t WHERE k = 1", Consistency::Quorum).await);
            // What is not a request of a user's table does not count.
            if seed == 5 && histories.is_empty() {
                done(&mut client, "SELECT * FROM system.local").await;
            }
        }
        histories.push(history);
    }
    assert_eq!(histories[0], histories[1]);
    assert_ne!(histories[0], histories[2]);
    let quorum = Consistency::Quorum.code();
    assert!(histories[0].contains(&Said::Unavailable(quorum, 3, 2)));
    assert!(histories[0].contains(&Said::ReadTimeout(quorum, 2, 3, false)));
}

#[tokio::test]
async fn a_lagging_replica_shows_one_what_was_and_quorum_what_is() {
    let server = start(&[]).await;
    let mut client = ready(&server, Version::V5).await;
    // All but the writer of partition 0 lag; with one node the replicas take turns, the writer every fourth.
    let lag = |node| format!("[[fault]]\naction = \"lag\"\nnode = {node}\nms = 500\n");
    plan(&server, &[2, 3, 4].map(lag).concat());
    let read = "SELECT v FROM ks.t WHERE k = 1";
    let mut stale = 0;
    for value in 2..60 {
        server.advance(Duration::from_millis(100));
        done(&mut client, &format!("INSERT INTO ks.t (k, v) VALUES (1, {value})")).await;
        let seen = number(&mut client, read, Consistency::One).await;
        // A write each 100 ms: what is older than 500 ms is seen, what is newer may be.
        assert!((value - 5..=value).contains(&seen), "{seen} after {value}");
        stale += i32::from(seen < value);
        assert_eq!(number(&mut client, read, Consistency::Quorum).await, value);
        assert_eq!(number(&mut client, read, Consistency::Two).await, value);
        assert_eq!(number(&mut client, read, Consistency::Serial).await, value);
    }
    assert!(stale > 20, "{stale} of 58");
    server.advance(Duration::from_millis(500));
    for _ in 0..4 {
        assert_eq!(number(&mut client, read, Consistency::One).await, 59);
    }
    let lag = |node| format!("[[fault]]\naction = \"lag\"\nnode = {node}\ncommits = 3\n");
    plan(&server, &[2, 3, 4].map(lag).concat());
    let mut least = 100;
    for value in 60..100 {
        done(&mut client, &format!("INSERT INTO ks.t (k, v) VALUES (1, {value})")).await;
        let seen = number(&mut client, read, Consistency::LocalOne).await;
        assert!((value - 3..=value).contains(&seen), "{seen} after {value}");
        least = least.min(seen - value);
    }
    assert_eq!(least, -3);
    server.database().nodes().clear();
    assert_eq!(number(&mut client, read, Consistency::One).await, 99);
}

#[tokio::test]
async fn nothing_acknowledged_is_lost() {
    let server = start(&[]).await;
    let mut client = ready(&server, Version::V5).await;
    let mut faults = "seed = 11\n".to_owned();
    for (action, chance) in [
        ("timeout", 0.1),
        ("timeout-after", 0.1),
        ("split", 0.02),
        ("unavailable", 0.05),
    ] {
        faults += &format!("[[fault]]\naction = \"{action}\"\nprobability = {chance}\n");
    }
    for (node, from) in [(1, 20), (2, 60), (3, 80), (4, 120)] {
        let until = from + 70;
        faults += &format!(
            "[[fault]]\naction = \"replica-down\"\nnode = {node}\nfrom-request = {from}\nuntil-request = {until}\n"
        );
    }
    plan(&server, &faults);
    let mut acknowledged = Vec::new();
    let mut refused = Vec::new();
    for key in 100..400 {
        let write = format!("INSERT INTO ks.t (k, v) VALUES ({key}, {key})");
        match ask(&mut client, &write, Consistency::One).await {
            Said::Done => acknowledged.push(key),
            Said::Unavailable(..) => refused.push(key),
            Said::WriteTimeout(..) => {}
            other => panic!("{other:?}"),
        }
    }
    server.database().nodes().clear();
    assert!(acknowledged.len() > 100 && refused.len() > 20);
    for key in acknowledged {
        let found = number(
            &mut client,
            &format!("SELECT v FROM ks.t WHERE k = {key}"),
            Consistency::Quorum,
        )
        .await;
        assert_eq!(found, key);
    }
    for key in refused {
        let found = ask(
            &mut client,
            &format!("SELECT v FROM ks.t WHERE k = {key}"),
            Consistency::Quorum,
        )
        .await;
        assert_eq!(found, Said::Rows(vec![]), "{key} was refused");
    }
}

/// Speaks HTTP: status and body.
fn http(admin: SocketAddr, head: &str, body: &str) -> (u16, String) {
    let mut socket = std::net::TcpStream::connect(admin).unwrap();
    let request = format!(
        "{head}\r\nHost: {admin}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[tokio::test]
async fn the_admin_port_sets_shows_and_ends_a_plan() {
    let server = start(&[("admin-listen", "127.0.0.1:0")]).await;
    let admin = server.admin_address().unwrap();
    let mut client = ready(&server, Version::V5).await;
    let ask_http = async |head: &'static str, body: &'static str| {
        tokio::task::spawn_blocking(move || http(admin, head, body))
            .await
            .unwrap()
    };
    let toml = "POST /api/faults HTTP/1.1\r\nContent-Type: application/toml";
    let body = "seed = 3\n[[fault]]\naction = \"timeout\"\nstatement = \"read\"\ncount = 2\n";
    assert_eq!(ask_http(toml, body).await.0, 200);
    for _ in 0..3 {
        ask(&mut client, "SELECT v FROM ks.t WHERE k = 1", Consistency::One).await;
    }
    let (status, shown) = ask_http("GET /api/faults HTTP/1.1", "").await;
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(
        (status, &shown["seed"], &shown["requests"]),
        (200, &3.into(), &3.into())
    );
    let fault = &shown["fault"][0];
    assert_eq!(
        (&fault["action"], &fault["matched"], &fault["hit"]),
        (&"timeout".into(), &3.into(), &2.into())
    );
    // What cannot be is refused and changes nothing.
    for (head, body, expected) in [
        (toml, "[[fault]]\naction = \"odd\"", 400),
        (toml, "[[fault]]\naction = \"down\"\nnode = 1", 400),
        ("POST /api/faults HTTP/1.1\r\nContent-Type: text/plain", "", 415),
        ("POST /api/faults HTTP/1.1", "", 415),
        (
            "POST /api/faults HTTP/1.1\r\nContent-Type: application/toml\r\nOrigin: http://localhost",
            "",
            403,
        ),
        ("DELETE /api/faults HTTP/1.1\r\nOrigin: http://localhost", "", 403),
        ("PUT /api/faults HTTP/1.1", "", 405),
    ] {
        assert_eq!(ask_http(head, body).await.0, expected, "{head}");
    }
    assert!(!server.database().nodes().is_quiet());
    let json = "POST /api/faults HTTP/1.1\r\nContent-Type: application/json; charset=utf-8";
    assert_eq!(ask_http(json, r#"{"fault": [{"action": "unavailable"}]}"#).await.0, 200);
    let read = "SELECT v FROM ks.t WHERE k = 1";
    let unavailable = Said::Unavailable(Consistency::One.code(), 1, 0);
    assert_eq!(ask(&mut client, read, Consistency::One).await, unavailable);
    assert_eq!(ask_http("DELETE /api/faults HTTP/1.1", "").await.0, 200);
    assert_eq!(number(&mut client, read, Consistency::One).await, 1);
}

#[tokio::test]
async fn a_plan_is_read_at_the_start_and_what_makes_no_sense_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("faults.toml");
    let given = |more: &[(&str, &str)]| {
        let mut given = vec![
            ("data", "memory:"),
            ("listen", "127.0.0.1:0"),
            ("fault-plan", file.to_str().unwrap()),
        ];
        given.extend(more);
        let given = given
            .into_iter()
            .map(|(name, value)| (name.to_owned(), vec![value.to_owned()]));
        Config::new(&Settings::gather(None, &given.collect(), |_| None).unwrap()).map_err(|error| error.to_string())
    };
    assert!(given(&[]).unwrap_err().contains("cannot read"));
    std::fs::write(&file, "[[fault]]\naction = \"nothing\"").unwrap();
    assert!(given(&[]).unwrap_err().contains("unknown variant"));
    std::fs::write(&file, "[[fault]]\naction = \"down\"\nnode = 2").unwrap();
    assert!(given(&[]).unwrap_err().contains("nodes = 4"));
    assert!(given(&[("nodes", "4")]).is_ok());
    assert!(given(&[("nodes", "3")]).unwrap_err().contains("1 or 4"));
    assert!(given(&[("nodes", "4"), ("broadcast-address", "10.0.0.1")]).is_err());
    std::fs::write(&file, "[[fault]]\naction = \"throttle\"\ncount = 1").unwrap();
    let server = TestServer::with(&given(&[]).unwrap()).await.unwrap();
    let mut client = Client::ready(server.address(), Version::V4).await;
    for text in &SCHEMA[..3] {
        done(&mut client, text).await;
    }
    let throttled = ask(&mut client, SCHEMA[3], Consistency::One).await;
    assert!(matches!(throttled, Said::Error(0x1001, _)), "{throttled:?}");
    done(&mut client, SCHEMA[3]).await;
}

/// Only Linux has all of 127.0.0.0/8 without being asked.
#[cfg(target_os = "linux")]
mod four_nodes {
    use std::collections::BTreeSet;
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn of_node(server: &TestServer, node: u8) -> SocketAddr {
        (IpAddr::from([127, 0, 0, node]), server.address().port()).into()
    }

    fn address(cell: &Option<Vec<u8>>) -> IpAddr {
        let bytes: [u8; 4] = cell.clone().unwrap().try_into().unwrap();
        Ipv4Addr::from(bytes).into()
    }

    async fn rows(client: &mut Client, text: &str) -> Vec<Vec<Option<Vec<u8>>>> {
        match ask(client, text, Consistency::One).await {
            Said::Rows(rows) => rows,
            other => panic!("{text}: {other:?}"),
        }
    }

    /// Tokens of a `set<text>`.
    fn tokens(cell: &Option<Vec<u8>>) -> Vec<i64> {
        let bytes = cell.clone().unwrap();
        let mut reader = Reader(&bytes);
        let count = reader.int();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (0..count)
            .map(|_| text(reader.value().unwrap()).parse().unwrap())
            .collect()
    }

    #[tokio::test]
    async fn each_node_is_itself_and_knows_the_others() {
        let directory = tempfile::tempdir().unwrap();
        let data = format!("file:{}", directory.path().join("data").display());
        let mut identities = Vec::new();
        for _ in 0..2 {
            let server = start(&[("nodes", "4"), ("data", &data)]).await;
            let mut ids = Vec::new();
            let mut all_tokens = BTreeSet::new();
            for node in 1..=4 {
                let mut client = Client::ready(of_node(&server, node), Version::V5).await;
                let local = "SELECT rpc_address, broadcast_address, rpc_port, host_id, tokens FROM system.local";
                let local = rows(&mut client, local).await.remove(0);
                let own = of_node(&server, node);
                assert_eq!((address(&local[0]), address(&local[1])), (own.ip(), own.ip()));
                assert_eq!(local[2], Some(i32::from(own.port()).to_be_bytes().to_vec()));
                let own_tokens = tokens(&local[4]);
                assert_eq!(own_tokens.len(), 4);
                all_tokens.extend(own_tokens);
                ids.push(local[3].clone().unwrap());
                for (text, ports) in [
                    ("SELECT peer, host_id, tokens FROM system.peers", false),
                    (
                        "SELECT native_address, host_id, tokens, native_port FROM system.peers_v2",
                        true,
                    ),
                ] {
                    let peers = rows(&mut client, text).await;
                    let mut addresses: Vec<IpAddr> = peers.iter().map(|row| address(&row[0])).collect();
                    addresses.sort_unstable();
                    let others = (1..=4).filter(|other| *other != node);
                    assert_eq!(
                        addresses,
                        others.map(|other| of_node(&server, other).ip()).collect::<Vec<_>>()
                    );
                    for peer in &peers {
                        assert_eq!(tokens(&peer[2]).len(), 4);
                        assert!(!ports || peer[3] == local[2]);
                    }
                }
            }
            assert_eq!(all_tokens.len(), 16);
            assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 4);
            identities.push(ids);
            server.stop().await.unwrap();
        }
        // The same after a restart.
        assert_eq!(identities[0], identities[1]);
    }

    #[tokio::test]
    async fn writers_are_the_owners_of_sixteen_equal_partitions() {
        let server = start(&[("nodes", "4")]).await;
        let mut client = ready(&server, Version::V5).await;
        done(
            &mut client,
            "CREATE TABLE ks.w (k int PRIMARY KEY) WITH helenus_partitions = 16",
        )
        .await;
        let mut owners = Vec::new();
        for node in 1..=4 {
            let mut client = Client::ready(of_node(&server, node), Version::V5).await;
            let local = rows(&mut client, "SELECT tokens, rpc_address FROM system.local")
                .await
                .remove(0);
            owners.extend(tokens(&local[0]).into_iter().map(|token| (token, address(&local[1]))));
        }
        let partitions = server.database().partitions();
        let partitions = partitions.iter().filter(|partition| partition.table == "w");
        let mut count = 0;
        for partition in partitions {
            let text = format!(
                "SELECT node, role FROM system_cosmos.replicas WHERE keyspace_name = 'ks' AND table_name = 'w' AND partition_id = {}",
                partition.id
            );
            let replicas = rows(&mut client, &text).await;
            let on: BTreeSet<IpAddr> = replicas.iter().map(|row| address(&row[0])).collect();
            assert_eq!(on.len(), 4);
            assert_eq!(replicas[0][1].as_deref(), Some(&b"writer"[..]));
            assert!(owners.contains(&(partition.upper, address(&replicas[0][0]))));
            count += 1;
        }
        assert_eq!(count, 16);
    }

    /// The next event: kind, change, address.
    async fn event(client: &mut Client) -> (String, String, SocketAddr) {
        let frame = client.frame().await.unwrap();
        assert_eq!((frame.opcode, frame.stream), (12, -1), "{frame:?}");
        let mut body = Reader(&frame.body);
        let (kind, change) = (body.string(), body.string());
        let count = body.take(1)[0];
        assert_eq!(count, 4);
        let ip: [u8; 4] = body.take(4).try_into().unwrap();
        let port = u16::try_from(body.int()).unwrap();
        (kind, change, (IpAddr::from(ip), port).into())
    }

    #[tokio::test]
    async fn a_node_goes_down_and_comes_back() {
        let server = start(&[("nodes", "4")]).await;
        let mut client = ready(&server, Version::V5).await;
        let mut watcher = Client::ready(of_node(&server, 3), Version::V4).await;
        let kinds = vec![
            helenus::wire::request::EventKind::StatusChange,
            helenus::wire::request::EventKind::TopologyChange,
        ];
        watcher.request(1, &Request::Register(Register { kinds })).await;
        assert_eq!(watcher.frame().await.unwrap().opcode, 2);
        let mut there = Client::ready(of_node(&server, 2), Version::V5).await;
        done(&mut there, "SELECT v FROM ks.t WHERE k = 1").await;
        plan(&server, "[[fault]]\naction = \"down\"\nnode = 2\n");
        let status = |change: &str| ("STATUS_CHANGE".to_owned(), change.to_owned(), of_node(&server, 2));
        assert_eq!(event(&mut watcher).await, status("DOWN"));
        assert!(there.closed().await);
        assert!(tokio::net::TcpStream::connect(of_node(&server, 2)).await.is_err());
        // It is still listed; three of four go on, all four do not.
        assert_eq!(rows(&mut client, "SELECT peer FROM system.peers").await.len(), 3);
        done(&mut client, "INSERT INTO ks.t (k, v) VALUES (1, 7)").await;
        let all = ask(&mut client, "SELECT v FROM ks.t WHERE k = 1", Consistency::All).await;
        assert_eq!(all, Said::Unavailable(Consistency::All.code(), 4, 3));
        server.database().nodes().clear();
        assert_eq!(event(&mut watcher).await, status("UP"));
        let mut there = Client::ready(of_node(&server, 2), Version::V5).await;
        assert_eq!(
            number(&mut there, "SELECT v FROM ks.t WHERE k = 1", Consistency::All).await,
            7
        );
        // The first writer's node: another replica takes the lease, under a higher epoch, and gives it back.
        let lease = "SELECT node, role, lease_epoch FROM system_cosmos.replicas WHERE keyspace_name = 'ks' AND table_name = 't'";
        let writer = async |client: &mut Client| {
            let all = rows(client, lease).await;
            let writer = all.iter().find(|row| row[1].as_deref() == Some(b"writer"));
            writer.map(|row| {
                let epoch: [u8; 8] = row[2].clone().unwrap().try_into().unwrap();
                (address(&row[0]), i64::from_be_bytes(epoch))
            })
        };
        let (first, before) = writer(&mut there).await.unwrap();
        assert_eq!(first, of_node(&server, 1).ip());
        plan(&server, "[[fault]]\naction = \"down\"\nnode = 1\n");
        assert_eq!(event(&mut watcher).await.1, "DOWN");
        let (second, after) = writer(&mut there).await.unwrap();
        assert_eq!(second, of_node(&server, 2).ip());
        assert!(after > before);
        done(&mut there, "UPDATE ks.t SET v = 8 WHERE k = 1 IF v = 7").await;
        assert_eq!(
            number(&mut there, "SELECT v FROM ks.t WHERE k = 1", Consistency::Serial).await,
            8
        );
        // Two down: writes stop, nothing is lost.
        plan(
            &server,
            "[[fault]]\naction = \"down\"\nnode = 1\n[[fault]]\naction = \"down\"\nnode = 4\n",
        );
        assert_eq!(event(&mut watcher).await.1, "DOWN");
        let refused = ask(&mut there, "INSERT INTO ks.t (k, v) VALUES (1, 9)", Consistency::One).await;
        assert_eq!(refused, Said::Unavailable(Consistency::One.code(), 3, 2));
        assert_eq!(writer(&mut there).await, None);
        assert_eq!(
            number(&mut there, "SELECT v FROM ks.t WHERE k = 1", Consistency::Two).await,
            8
        );
        server.database().nodes().clear();
        let mut up = BTreeSet::new();
        for _ in 0..2 {
            let (_, change, address) = event(&mut watcher).await;
            assert_eq!(change, "UP");
            up.insert(address);
        }
        assert_eq!(up, BTreeSet::from([of_node(&server, 1), of_node(&server, 4)]));
        let (last, epoch) = writer(&mut there).await.unwrap();
        assert_eq!(last, first);
        assert!(epoch > after);
    }

    #[tokio::test]
    async fn a_node_goes_down_by_the_clock() {
        let server = start(&[("nodes", "4")]).await;
        plan(
            &server,
            "[[fault]]\naction = \"down\"\nnode = 4\nfrom-ms = 1000\nuntil-ms = 2000\n",
        );
        let mut there = Client::ready(of_node(&server, 4), Version::V5).await;
        done(&mut there, "SELECT key FROM system.local").await;
        server.advance(Duration::from_millis(1000));
        assert!(there.closed().await);
        server.advance(Duration::from_millis(1000));
        // Nothing tells this client when the listener is there again.
        for _ in 0..500 {
            if tokio::net::TcpStream::connect(of_node(&server, 4)).await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the node did not come back");
    }

    #[tokio::test]
    async fn who_is_connected_to_a_lagging_node_reads_what_was() {
        let server = start(&[("nodes", "4")]).await;
        let mut first = ready(&server, Version::V5).await;
        let mut second = Client::ready(of_node(&server, 2), Version::V5).await;
        plan(
            &server,
            "[[fault]]\naction = \"lag\"\nnode = 2\ncommits = 1\nkeyspace = \"ks\"\n",
        );
        let read = "SELECT v FROM ks.t WHERE k = 1";
        for value in 2..10 {
            done(&mut first, &format!("INSERT INTO ks.t (k, v) VALUES (1, {value})")).await;
            assert_eq!(number(&mut first, read, Consistency::One).await, value);
            assert_eq!(number(&mut second, read, Consistency::One).await, value - 1);
            assert_eq!(number(&mut second, read, Consistency::Quorum).await, value);
            // A scan too.
            let Said::Rows(rows) = ask(&mut second, "SELECT v FROM ks.t", Consistency::LocalOne).await else {
                panic!()
            };
            assert_eq!(rows[0][0], Some((value - 1).to_be_bytes().to_vec()));
        }
        let lag = "SELECT lag_ms_max, lag_commits_max FROM system_cosmos.replicas WHERE keyspace_name = 'ks' AND table_name = 't' AND \
                   partition_id = 0 AND replica = 1";
        assert_eq!(
            rows(&mut first, lag).await,
            [[None, Some(1_i64.to_be_bytes().to_vec())]]
        );
    }
}
