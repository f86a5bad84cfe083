//! Requests from outside, in each version: what is asked with raw frames, what comes back.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::time::Duration;

use crate::raw::{self, Client, Frame};
use bytes::Bytes;
use helenus::TestServer;
use helenus_cql::cql::{AnswerKind, QueryParams, SessionState};
use helenus_types::wire::request::{Batch, BatchStatement, Execute, Params, Prepare, Query, Request, Subject, Values};
use helenus_types::wire::{BatchType, Consistency, Value, Version};

/// A place in a response's body.
struct Body<'a>(&'a [u8]);

impl Body<'_> {
    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let (head, tail) = self.0.split_at(count);
        self.0 = tail;
        head.to_vec()
    }

    fn int(&mut self) -> i32 {
        i32::from_be_bytes(self.bytes(4).try_into().unwrap())
    }

    fn short_bytes(&mut self) -> Vec<u8> {
        let count = u16::from_be_bytes(self.bytes(2).try_into().unwrap());
        self.bytes(count.into())
    }

    fn value(&mut self) -> Option<Vec<u8>> {
        let count = self.int();
        (count >= 0).then(|| self.bytes(count as usize))
    }
}

type Row = Vec<Option<Vec<u8>>>;

/// Rows without metadata: paging state and cells.
fn rows(frame: &Frame) -> (Option<Vec<u8>>, Vec<Row>) {
    assert_eq!(frame.opcode, 8, "{frame:?}");
    let mut body = Body(&frame.body);
    assert_eq!(body.int(), 2);
    let flags = body.int();
    assert_eq!(flags & 4, 4, "metadata was to be skipped");
    let columns = body.int();
    let state = if flags & 2 == 2 { body.value() } else { None };
    let count = body.int();
    let rows = (0..count)
        .map(|_| (0..columns).map(|_| body.value()).collect())
        .collect();
    assert!(body.0.is_empty());
    (state, rows)
}

struct Prepared {
    id: Vec<u8>,
    metadata_id: Vec<u8>,
}

async fn ask(client: &mut Client, request: &Request<'_>) -> Frame {
    client.request(1, request).await;
    client.frame().await.unwrap()
}

async fn run(client: &mut Client, text: &str) -> Frame {
    ask(
        client,
        &Request::Query(Query {
            text,
            params: Params::default(),
        }),
    )
    .await
}

async fn prepare(client: &mut Client, text: &str) -> Prepared {
    let frame = ask(client, &Request::Prepare(Prepare { text, keyspace: None })).await;
    assert_eq!(frame.opcode, 8, "{frame:?}");
    let mut body = Body(&frame.body);
    assert_eq!(body.int(), 4);
    let id = body.short_bytes();
    let metadata_id = if client.version == Version::V5 {
        body.short_bytes()
    } else {
        Vec::new()
    };
    Prepared { id, metadata_id }
}

async fn execute(client: &mut Client, prepared: &Prepared, params: Params<'_>) -> Frame {
    let request = Execute {
        id: &prepared.id,
        result_metadata_id: Some(&prepared.metadata_id),
        params,
    };
    ask(client, &Request::Execute(request)).await
}

fn int(number: i32) -> Value {
    Value::Bytes(Bytes::copy_from_slice(&number.to_be_bytes()))
}

fn bound(values: Vec<Value>) -> Params<'static> {
    Params {
        values: Values::Positional(values),
        skip_metadata: true,
        ..Params::default()
    }
}

const KEYSPACE: &str = "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";

#[tokio::test]
async fn rows_go_in_and_come_out() {
    for version in Version::ALL {
        let server = TestServer::start().await.unwrap();
        let mut client = Client::ready(server.address(), version).await;
        for text in [KEYSPACE, "CREATE TABLE ks.t (a int, b int, v text, PRIMARY KEY (a, b))"] {
            assert_eq!(run(&mut client, text).await.opcode, 8);
        }
        let insert = prepare(&mut client, "INSERT INTO ks.t (a, b, v) VALUES (?, ?, ?)").await;
        for b in 0..10 {
            let params = bound(vec![int(1), int(b), Value::Bytes(Bytes::from(format!("v{b}")))]);
            assert_eq!(execute(&mut client, &insert, params).await.body, [0, 0, 0, 1]);
        }
        let batch = Batch {
            batch_type: BatchType::Logged,
            statements: vec![
                BatchStatement {
                    subject: Subject::Prepared(&insert.id),
                    values: vec![int(1), int(10), Value::Null],
                },
                BatchStatement {
                    subject: Subject::Text("INSERT INTO ks.t (a, b) VALUES (1, 11)"),
                    values: vec![],
                },
            ],
            consistency: Consistency::One,
            serial_consistency: None,
            default_timestamp_micros: None,
            keyspace: None,
            now_in_seconds: None,
        };
        assert_eq!(ask(&mut client, &Request::Batch(batch)).await.body, [0, 0, 0, 1]);
        // Five rows a page, each page by its state.
        let select = prepare(&mut client, "SELECT b, v FROM ks.t WHERE a = ?").await;
        let mut state = None;
        let mut seen = Vec::new();
        for _ in 0..4 {
            let params = Params {
                page_size_rows: Some(5),
                paging_state: state.take().map(Bytes::from),
                ..bound(vec![int(1)])
            };
            let (next, page) = rows(&execute(&mut client, &select, params).await);
            assert!(page.len() <= 5);
            seen.extend(page);
            state = next;
            if state.is_none() {
                break;
            }
        }
        assert_eq!(seen.len(), 12);
        assert_eq!(seen[3], [Some(3_i32.to_be_bytes().to_vec()), Some(b"v3".to_vec())]);
        assert_eq!(seen[10][1], None);
    }
}

#[tokio::test]
async fn named_and_unset_values_and_default_timestamps() {
    for version in [Version::V4, Version::V5] {
        let server = TestServer::start().await.unwrap();
        let mut client = Client::ready(server.address(), version).await;
        for text in [
            KEYSPACE,
            "CREATE TABLE ks.t (k int PRIMARY KEY, v int, w int)",
            "INSERT INTO ks.t (k, w) VALUES (1, 7)",
        ] {
            assert_eq!(run(&mut client, text).await.opcode, 8);
        }
        let insert = prepare(&mut client, "INSERT INTO ks.t (k, v, w) VALUES (:key, :v, :w)").await;
        let named = vec![("w", Value::Unset), ("v", int(2)), ("key", int(1))];
        let params = Params {
            values: Values::Named(named),
            default_timestamp_micros: Some(123),
            ..Params::default()
        };
        assert_eq!(execute(&mut client, &insert, params).await.opcode, 8);
        let select = prepare(&mut client, "SELECT v, w, writetime(v) FROM ks.t WHERE k = ?").await;
        let (_, found) = rows(&execute(&mut client, &select, bound(vec![int(1)])).await);
        let expected = [
            2_i32.to_be_bytes().to_vec(),
            7_i32.to_be_bytes().to_vec(),
            123_i64.to_be_bytes().to_vec(),
        ];
        assert_eq!(found, [expected.map(Some)]);
    }
}

#[tokio::test]
async fn errors_leave_the_connection_and_have_their_codes() {
    let server = TestServer::start().await.unwrap();
    for version in Version::ALL {
        let mut client = Client::ready(server.address(), version).await;
        for (text, code) in [
            ("SELEC", 0x2000),
            ("SELECT * FROM nowhere.t", 0x2200),
            ("SELECT * FROM t", 0x2200),
            ("INSERT INTO system.local (key) VALUES ('x')", 0x2100),
        ] {
            let frame = run(&mut client, text).await;
            assert_eq!(frame.error().0, code, "{text}");
        }
        let _ = run(&mut client, KEYSPACE).await;
        assert_eq!(run(&mut client, KEYSPACE).await.error().0, 0x2400);
        let unknown = Prepared {
            id: vec![7; 16],
            metadata_id: vec![7; 16],
        };
        let frame = execute(&mut client, &unknown, Params::default()).await;
        assert_eq!(frame.error().0, 0x2500);
        assert!(frame.body.ends_with(&[&[0, 16][..], &[7; 16]].concat()));
        // A paging state that nobody gave.
        let text = "SELECT keyspace_name FROM system_schema.tables";
        let forged = Params {
            page_size_rows: Some(2),
            paging_state: Some(Bytes::from_static(b"forged")),
            ..Params::default()
        };
        let frame = ask(&mut client, &Request::Query(Query { text, params: forged })).await;
        assert!(matches!(frame.error().0, 0x000A | 0x2200));
        assert_eq!(run(&mut client, text).await.opcode, 8);
    }
}

#[tokio::test]
async fn a_keyspace_goes_with_a_connection_or_a_request() {
    let server = TestServer::start().await.unwrap();
    let mut client = Client::ready(server.address(), Version::V5).await;
    for text in [KEYSPACE, "CREATE TABLE ks.t (k int PRIMARY KEY)"] {
        assert_eq!(run(&mut client, text).await.opcode, 8);
    }
    let with_keyspace = Params {
        keyspace: Some("ks"),
        ..Params::default()
    };
    let query = Query {
        text: "SELECT * FROM t",
        params: with_keyspace,
    };
    assert_eq!(ask(&mut client, &Request::Query(query)).await.opcode, 8);
    assert_eq!(run(&mut client, "SELECT * FROM t").await.opcode, 0);
    assert_eq!(
        run(&mut client, "USE ks").await.body,
        [&[0, 0, 0, 3, 0, 2][..], b"ks"].concat()
    );
    assert_eq!(run(&mut client, "SELECT * FROM t").await.opcode, 8);
    let mut other = Client::ready(server.address(), Version::V5).await;
    assert_eq!(run(&mut other, "SELECT * FROM t").await.opcode, 0);
}

#[tokio::test]
async fn time_is_the_tests() {
    let server = TestServer::start().await.unwrap();
    let mut client = Client::ready(server.address(), Version::V4).await;
    for text in [
        KEYSPACE,
        "CREATE TABLE ks.t (k int PRIMARY KEY, v int)",
        "INSERT INTO ks.t (k, v) VALUES (1, 2) USING TTL 100",
    ] {
        assert_eq!(run(&mut client, text).await.opcode, 8);
    }
    let select = prepare(&mut client, "SELECT ttl(v) FROM ks.t WHERE k = ?").await;
    server.advance(std::time::Duration::from_secs(40));
    let (_, found) = rows(&execute(&mut client, &select, bound(vec![int(1)])).await);
    assert_eq!(found, [[Some(60_i32.to_be_bytes().to_vec())]]);
    server.advance(std::time::Duration::from_secs(61));
    let (_, found) = rows(&execute(&mut client, &select, bound(vec![int(1)])).await);
    assert!(found.is_empty());
}

/// Connects with a receive buffer of a few kilobytes, so that answers soon wait in the server.
async fn with_small_buffer(address: std::net::SocketAddr) -> Client {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut client = Client::over(socket.connect(address).await.unwrap(), Version::V4);
    client.start().await;
    client
}

#[tokio::test]
async fn a_stop_loses_no_answer_to_what_was_carried_out() {
    const REQUESTS: i32 = 300_000;
    let directory = tempfile::tempdir().unwrap();
    let data = format!("file:{}", directory.path().display());
    let server = TestServer::over(&data).await.unwrap();
    let mut client = with_small_buffer(server.address()).await;
    run(
        &mut client,
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    )
    .await;
    run(&mut client, "CREATE TABLE ks.t (k int PRIMARY KEY)").await;
    let (mut reading, mut writing) = client.socket.into_split();
    let sender = tokio::spawn(async move {
        for number in 0..REQUESTS {
            let text = format!("INSERT INTO ks.t (k) VALUES ({number})");
            let mut body = u32::try_from(text.len()).unwrap().to_be_bytes().to_vec();
            body.extend(text.as_bytes());
            body.extend([0, 1, 0]);
            let frame = raw::envelope(Version::V4, 0, i16::try_from(number % 30_000).unwrap(), 7, &body);
            // Once the server has closed there is nobody to write to.
            if tokio::io::AsyncWriteExt::write_all(&mut writing, &frame).await.is_err() {
                break;
            }
        }
        writing
    });
    tokio::time::sleep(Duration::from_millis(400)).await;
    let stopped = tokio::spawn(server.stop());
    // The client is slow to read, and goes on writing.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut answers = Vec::new();
    tokio::io::AsyncReadExt::read_to_end(&mut reading, &mut answers)
        .await
        .expect("the connection ends in order, not by a reset");
    drop((sender.await.unwrap(), reading));
    stopped.await.unwrap().unwrap();
    let (mut rest, mut answered) = (answers.as_slice(), 0);
    while !rest.is_empty() {
        let (head, behind) = rest.split_at_checked(9).expect("a frame is whole");
        let length = u32::from_be_bytes(head[5..9].try_into().unwrap()) as usize;
        let (body, behind) = behind.split_at_checked(length).expect("a frame is whole");
        rest = behind;
        let body = String::from_utf8_lossy(body);
        // A fast machine has all ids in use before the client reads.
        if head[4] == 0 && body.contains("is in use by another request") {
            continue;
        }
        assert_eq!((head[0], head[4]), (0x84, 8), "{body}");
        answered += 1;
    }
    let server = TestServer::over(&data).await.unwrap();
    let (session, params) = (SessionState::default(), QueryParams::default());
    let count = server.database().query(&session, "SELECT count(*) FROM ks.t", &params);
    let AnswerKind::Rows(count) = count.await.unwrap().kind else {
        panic!("a count is a row");
    };
    let stored = i64::from_be_bytes(count.content[4..].try_into().unwrap());
    assert!(
        stored > 0 && stored < i64::from(REQUESTS),
        "the stop came in between: {stored}"
    );
    assert_eq!(stored, answered, "each write that was carried out is answered");
}
