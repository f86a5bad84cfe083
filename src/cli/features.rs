//! The page of features: one statement of each kind, executed in each profile. Compiled for tests only.

use std::fmt::Write;

use crate::TestServer;
use crate::cql::{QueryParams, SessionState};

/// Feature; the answer of Apache Cassandra 5.0 as installed; the statement.
const FEATURES: &[(&str, &str, &str)] = &[
    (
        "CREATE KEYSPACE",
        "yes",
        "CREATE KEYSPACE more WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    ),
    (
        "CREATE TABLE",
        "yes",
        "CREATE TABLE ks.other (k int PRIMARY KEY, v text)",
    ),
    ("ALTER TABLE ADD", "yes", "ALTER TABLE ks.other ADD w text"),
    ("CREATE TYPE", "yes", "CREATE TYPE ks.place (street text, city text)"),
    ("CREATE INDEX (legacy)", "yes", "CREATE INDEX ON ks.t (v)"),
    (
        "CREATE INDEX USING 'sai'",
        "yes",
        "CREATE INDEX ON ks.t (w) USING 'sai'",
    ),
    (
        "CREATE CUSTOM INDEX (SASI)",
        "off by default",
        "CREATE CUSTOM INDEX ON ks.other (v) USING 'org.apache.cassandra.index.sasi.SASIIndex'",
    ),
    (
        "CREATE MATERIALIZED VIEW",
        "off by default",
        "CREATE MATERIALIZED VIEW ks.by_v AS SELECT * FROM ks.t WHERE v IS NOT NULL AND k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (v, k, c)",
    ),
    (
        "CREATE FUNCTION",
        "off by default",
        "CREATE FUNCTION ks.f (a int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return a;'",
    ),
    (
        "CREATE TRIGGER",
        "with its class",
        "CREATE TRIGGER tr ON ks.t USING 'org.example.Trigger'",
    ),
    (
        "CREATE ROLE",
        "with a login",
        "CREATE ROLE app WITH PASSWORD = 'secret' AND LOGIN = true",
    ),
    (
        "column of type vector",
        "yes",
        "CREATE TABLE ks.vectors (k int PRIMARY KEY, v vector<float, 2>)",
    ),
    (
        "column MASKED WITH",
        "off by default",
        "CREATE TABLE ks.masked (k int PRIMARY KEY, v text MASKED WITH DEFAULT)",
    ),
    ("INSERT", "yes", "INSERT INTO ks.t (k, c, v) VALUES (1, 1, 'a')"),
    ("INSERT JSON", "yes", "INSERT INTO ks.t JSON '{\"k\": 1, \"c\": 2}'"),
    (
        "INSERT IF NOT EXISTS",
        "yes",
        "INSERT INTO ks.t (k, c) VALUES (1, 3) IF NOT EXISTS",
    ),
    (
        "INSERT USING TTL",
        "yes",
        "INSERT INTO ks.t (k, c) VALUES (1, 4) USING TTL 60",
    ),
    ("UPDATE", "yes", "UPDATE ks.t SET v = 'b' WHERE k = 1 AND c = 1"),
    (
        "UPDATE of a counter",
        "yes",
        "UPDATE ks.counts SET n = n + 1 WHERE k = 1",
    ),
    ("DELETE of a row", "yes", "DELETE FROM ks.t WHERE k = 1 AND c = 1"),
    ("DELETE of a range", "yes", "DELETE FROM ks.t WHERE k = 1 AND c > 5"),
    (
        "logged batch",
        "yes",
        "BEGIN BATCH INSERT INTO ks.t (k, c) VALUES (1, 5); INSERT INTO ks.t (k, c) VALUES (2, 5); APPLY BATCH",
    ),
    (
        "unlogged batch",
        "yes",
        "BEGIN UNLOGGED BATCH INSERT INTO ks.t (k, c) VALUES (1, 6); APPLY BATCH",
    ),
    ("SELECT by key", "yes", "SELECT * FROM ks.t WHERE k = 1"),
    ("SELECT DISTINCT", "yes", "SELECT DISTINCT k FROM ks.t"),
    (
        "SELECT ALLOW FILTERING",
        "yes",
        "SELECT * FROM ks.t WHERE c = 1 ALLOW FILTERING",
    ),
    ("GROUP BY", "yes", "SELECT k, count(*) FROM ks.t GROUP BY k"),
    ("PER PARTITION LIMIT", "yes", "SELECT * FROM ks.t PER PARTITION LIMIT 1"),
    ("SELECT JSON", "yes", "SELECT JSON * FROM ks.t WHERE k = 1"),
    ("TRUNCATE", "yes", "TRUNCATE ks.t"),
    ("DESCRIBE", "yes", "DESCRIBE TABLE ks.t"),
    ("EXPLAIN", "no", "EXPLAIN SELECT * FROM ks.t WHERE k = 1"),
    (
        "throughput of a table",
        "no",
        "ALTER TABLE ks.t WITH cosmosdb_provisioned_throughput = 400",
    ),
    ("DROP TABLE", "yes", "DROP TABLE ks.other"),
];

/// A profile's answer to each statement: `yes`, or `refused` with the code.
async fn answers(server: &TestServer) -> Vec<String> {
    let (session, params) = (SessionState::default(), QueryParams::default());
    for statement in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (k int, c int, v text, w text, PRIMARY KEY (k, c))",
        "CREATE TABLE ks.counts (k int PRIMARY KEY, n counter)",
    ] {
        server.database().query(&session, statement, &params).await.unwrap();
    }
    let mut answers = Vec::new();
    for (_, _, statement) in FEATURES {
        let answer = server.database().query(&session, statement, &params).await;
        answers.push(if answer.is_ok() { "yes" } else { "refused" }.to_owned());
    }
    answers
}

/// The page of `docs/src/reference/features.md`.
pub(super) async fn page() -> String {
    let plain = answers(&TestServer::builder().start().await.unwrap()).await;
    let cosmos = answers(&TestServer::builder().cosmos().start().await.unwrap()).await;
    let mut page = "# Features by system\n\nA test carries out one statement of each kind in each profile and generates this page. The second \
                    column is an Apache Cassandra 5.0 with the\nsettings of its own `cassandra.yaml`. What is off there is on in the Cassandra that \
                    `compat/run oracle` compares with. The third column is the\nprofile `cosmos` without `cosmos-strict`. Roles require `--login`. \
                    [Compatibility](compatibility.md) has the areas.\n\n\
                    | feature | Cassandra 5 | profile `cosmos` | default profile |\n|---|---|---|---|\n"
        .to_owned();
    for (((feature, cassandra, _), cosmos), plain) in FEATURES.iter().zip(cosmos).zip(plain) {
        let _ = writeln!(page, "| {feature} | {cassandra} | {cosmos} | {plain} |");
    }
    page
}
