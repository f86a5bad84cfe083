//! The profile `cosmos`, row by row: what clients of Azure Cosmos DB for Apache Cassandra break without, and what tests of throughput and
//! errors need. Each row names its source; what no source tells is allowed, and refused with the setting `cosmos-strict`.
//!
//! | what Cosmos has, by how much clients need it (A: they break without it; B: tests of throughput and errors need it) | where |
//! | --- | --- |
//! | A listener; A compression in STARTUP | [`listener`] |
//! | A system.local, system.peers; A schema tables and DESCRIBE; A names of results | [`system`] |
//! | A statements, types, functions; A gc_grace_seconds; A ALLOW FILTERING; B shapes of DELETE | [`statements`] |
//! | B secondary indexes | [`indexes`] |
//! | B USING TIMESTAMP, conditions, time to live | [`cells`] |
//! | A RequestCharge; B prices | [`units`] |
//! | A 429; A admission with debt; A throughput by DDL; B budgets of partitions, bursts, autoscale, floors, metadata, waiting inside | [`throughput`] |
//! | B map of partitions; B 20 GB of a logical partition; B rows, requests, pages, batches | [`limits`] |
//! | B levels of consistency, four replicas | [`consistency`] |
//! | B map of errors | [`errors`] |
//! | B request log, figures | [`diagnostics`] |
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

mod cells;
mod consistency;
mod diagnostics;
mod errors;
mod indexes;
mod limits;
mod listener;
mod statements;
mod system;
mod throughput;
mod units;

use std::time::Duration;

use crate::raw::{Client, Frame};
use helenus::TestServer;
use helenus::config::{Config, Values};
use helenus_cql::cql::{Answer, AnswerKind, QueryParams, SessionState};
use helenus_types::wire::Version;
use helenus_types::wire::request::{AuthResponse, Request, Startup};

const KEY: &str = "c2VjcmV0IQ==";

fn config(more: &[(&str, &str)]) -> Config {
    let mut given = vec![
        ("profile", "cosmos"),
        ("data", "memory:"),
        ("listen", "127.0.0.1:0"),
        ("tls-listen", "127.0.0.1:0"),
        ("account", "unit"),
        ("account-key", KEY),
    ];
    given.extend(more);
    let given = given
        .into_iter()
        .map(|(name, value)| (name.to_owned(), vec![value.to_owned()]));
    Config::new(&Values::gather(None, &given.collect(), |_| None).unwrap()).unwrap()
}

async fn start(more: &[(&str, &str)]) -> TestServer {
    TestServer::with(&config(more)).await.unwrap()
}

async fn login<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin>(client: &mut Client<S>, key: &str) -> Frame {
    let options = vec![("CQL_VERSION", "3.0.0")];
    client.request(0, &Request::Startup(Startup { options })).await;
    assert_eq!(client.frame().await.unwrap().opcode, 3, "AUTHENTICATE");
    client.segments = client.version == Version::V5;
    let token = format!("\0unit\0{key}").into_bytes();
    let response = AuthResponse {
        token: Some(token.into()),
    };
    client.request(0, &Request::AuthResponse(response)).await;
    client.frame().await.unwrap()
}

async fn connect(server: &TestServer) -> Client {
    let mut client = Client::connect(server.address(), Version::V4).await;
    assert_eq!(login(&mut client, KEY).await.opcode, 16, "AUTH_SUCCESS");
    client
}

/// What is expected of a statement.
enum Expect {
    /// Any result.
    Ok,
    /// An error of this code, whose text contains this.
    Error(u32, &'static str),
}
use Expect::{Error, Ok as Fine};

/// A row of the rules: which, its source, the statement, what comes of it.
type Row = (&'static str, &'static str, &'static str, Expect);

/// What is not as the rows say.
async fn differences(client: &mut Client, rows: &[Row]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (row, source, statement, expected) in rows {
        client.query(1, statement).await;
        let answer = client.frame().await.unwrap();
        let came = (answer.opcode == 0).then(|| answer.error());
        let is_right = match (expected, &came) {
            (Fine, None) => true,
            (Error(code, text), Some((came, message))) => code == came && message.contains(text),
            _ => false,
        };
        if !is_right {
            wrong.push(format!("{row} ({source}): {statement}: {came:?}"));
        }
    }
    wrong
}

async fn check(client: &mut Client, rows: &[Row]) {
    let wrong = differences(client, rows).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Names of the columns and the cells of the first row.
async fn rows(server: &TestServer, statement: &str) -> (Vec<String>, Vec<Option<Vec<u8>>>) {
    let (session, params) = (SessionState::default(), QueryParams::default());
    let answer = server.database().query(&session, statement, &params).await;
    let AnswerKind::Rows(rows) = answer.unwrap_or_else(|error| panic!("{statement}: {error}")).kind else {
        panic!("{statement}: no rows");
    };
    let names: Vec<String> = rows.metadata.columns.iter().map(|column| column.name.clone()).collect();
    let (mut cells, mut rest) = (Vec::new(), &rows.content[..]);
    while cells.len() < names.len() && !rest.is_empty() {
        let (length, behind) = rest.split_at(4);
        let length = i32::from_be_bytes(length.try_into().unwrap());
        let length_bytes = usize::try_from(length).unwrap_or(0);
        cells.push((length >= 0).then(|| behind[..length_bytes].to_vec()));
        rest = &behind[length_bytes..];
    }
    (names, cells)
}

async fn texts(server: &TestServer, statement: &str) -> Vec<String> {
    let cells = rows(server, statement).await.1;
    cells
        .into_iter()
        .map(|cell| String::from_utf8(cell.unwrap_or_default()).unwrap())
        .collect()
}

/// Carries out a statement in the process.
async fn run(server: &TestServer, statement: &str) -> Result<Answer, helenus_cql::cql::Error> {
    let (session, params) = (SessionState::default(), QueryParams::default());
    server.database().query(&session, statement, &params).await
}

/// As [`run`], of a statement that must succeed; the server's clock goes on, so that budgets are full again.
async fn ok(server: &TestServer, statement: &str) -> Answer {
    let answer = run(server, statement).await;
    server.advance(Duration::from_secs(60));
    answer.unwrap_or_else(|error| panic!("{statement}: {error}"))
}

/// Code and text with which a statement is refused.
async fn refused(server: &TestServer, statement: &str) -> (u16, String) {
    match run(server, statement).await {
        Err(error) => (error.code().number(), error.to_string()),
        Ok(_) => panic!("{statement}: not refused"),
    }
}

const SETUP: &[&str] = &[
    "CREATE KEYSPACE k WITH cosmosdb_provisioned_throughput = 4000",
    "CREATE TABLE k.t (pk int, ck int, v text, s text static, d decimal, i varint, f frozen<list<int>>, PRIMARY KEY (pk, ck))",
    "CREATE TABLE k.flags (pk int PRIMARY KEY, v text) WITH cosmosdb_cell_level_timestamp = true \
     AND cosmosdb_cell_level_timestamp_tombstones = true AND cosmosdb_cell_level_timetolive = true",
];

/// A server with some tables. Time stands still, so whoever goes on moves it: budgets fill with it.
async fn with_tables(more: &[(&str, &str)]) -> (TestServer, Client) {
    let server = start(more).await;
    let mut client = connect(&server).await;
    for statement in SETUP {
        check(&mut client, &[("setup", "-", statement, Fine)]).await;
        server.advance(std::time::Duration::from_secs(60));
    }
    (server, client)
}

/// Asks row by row, while budgets stay full: what is not as the rows say.
async fn differences_in_turn(server: &TestServer, client: &mut Client, rows: &[Row]) -> Vec<String> {
    let mut wrong = Vec::new();
    for row in rows {
        wrong.extend(differences(client, std::slice::from_ref(row)).await);
        server.advance(Duration::from_secs(10));
    }
    wrong
}

/// A server with tables, asked row by row.
async fn check_in_turn(rows: &[Row]) {
    let (server, mut client) = with_tables(&[]).await;
    let wrong = differences_in_turn(&server, &mut client, rows).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
