//! Replica sets from outside: every consistency level with every number of replicas down, four virtual nodes that go down and up, and
//! what a fault plan makes clients meet, with its counts.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

mod faults;
#[cfg(target_os = "linux")]
mod four_nodes;
mod levels;

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use crate::raw::{Client, Frame};
use helenus::TestServer;
use helenus::config::{Config, Values as Settings};
use helenus_engine::partition::faults::Plan;
use helenus_types::wire::request::{Batch, BatchStatement, Params, Query, Register, Request, Subject};
use helenus_types::wire::{BatchType, Consistency, Version};

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
        .engine()
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
