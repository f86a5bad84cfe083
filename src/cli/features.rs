//! The page of features: one statement of each kind, executed in each profile. Compiled for tests only.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use serde_json::Value;

use crate::TestServer;
use helenus_cql::cql::{QueryParams, SessionState};

/// How Cassandra stands to a feature: from what it answered to a statement of a script in `compat/oracle/scripts`.
enum Cassandra {
    /// Script and statement: `yes` if it carried the statement out, else `no`.
    Recorded(&'static str, &'static str),
    /// A switch, script and statement: the recorded node has the switch on, Cassandra's own `cassandra.yaml` off.
    Switched(&'static str, &'static str, &'static str),
    /// What it needs, script and statement: without that it refused the statement.
    Given(&'static str, &'static str, &'static str),
    /// No script has the statement, since it needs a login or is Cosmos's.
    Unrecorded(&'static str),
}

use Cassandra::{Given, Recorded, Switched, Unrecorded};

impl Cassandra {
    /// The column's text.
    fn text(&self) -> &'static str {
        match *self {
            Recorded(script, statement) if carried_out(script, statement) => "yes",
            Recorded(..) => "no",
            Switched(switch, script, statement) => {
                let node = std::fs::read_to_string(oracle().join("cassandra.yaml")).unwrap();
                assert!(node.lines().any(|line| line == format!("{switch}: true")), "{switch}");
                assert!(carried_out(script, statement), "{statement}");
                "off by default"
            }
            Given(what, script, statement) => {
                assert!(!carried_out(script, statement), "{statement}");
                what
            }
            Unrecorded(text) => text,
        }
    }
}

fn oracle() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("compat/oracle")
}

/// Whether Cassandra ever carried out a statement of a script. To prepare it is not to carry it out.
fn carried_out(script: &str, statement: &str) -> bool {
    let text = std::fs::read_to_string(oracle().join("scripts").join(format!("{script}.answers"))).unwrap();
    let answers = text
        .lines()
        .map(|line| serde_json::from_str::<BTreeMap<String, Value>>(line).unwrap());
    let is_done: Vec<bool> = answers
        .filter(|answer| answer.get("statement").and_then(Value::as_str) == Some(statement))
        .map(|answer| !answer.contains_key("error") && answer.get("kind").is_none_or(|kind| kind != "prepared"))
        .collect();
    assert!(!is_done.is_empty(), "{script} has no answer to {statement}");
    is_done.contains(&true)
}

/// Feature; how Cassandra stands to it; the statement that is carried out here.
const FEATURES: &[(&str, Cassandra, &str)] = &[
    (
        "CREATE KEYSPACE",
        Recorded(
            "keyspaces",
            "CREATE KEYSPACE oracle_ks1 WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        ),
        "CREATE KEYSPACE more WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    ),
    (
        "CREATE TABLE",
        Recorded("keyspaces", "CREATE TABLE t (k int PRIMARY KEY)"),
        "CREATE TABLE ks.other (k int PRIMARY KEY, v text)",
    ),
    (
        "ALTER TABLE ADD",
        Recorded("prepared_changes", "ALTER TABLE t ADD w int"),
        "ALTER TABLE ks.other ADD w text",
    ),
    (
        "CREATE TYPE",
        Recorded("events", "CREATE TYPE a (x int)"),
        "CREATE TYPE ks.place (street text, city text)",
    ),
    (
        "CREATE INDEX (legacy)",
        Recorded("indexes_ddl", "CREATE INDEX ON t (v)"),
        "CREATE INDEX ON ks.t (v)",
    ),
    (
        "CREATE INDEX USING 'sai'",
        Recorded("ann", "CREATE INDEX ON t (v) USING 'sai'"),
        "CREATE INDEX ON ks.t (w) USING 'sai'",
    ),
    (
        "CREATE CUSTOM INDEX (SASI)",
        Switched(
            "sasi_indexes_enabled",
            "indexes_sasi",
            "CREATE CUSTOM INDEX ON t (v) USING 'org.apache.cassandra.index.sasi.SASIIndex'",
        ),
        "CREATE CUSTOM INDEX ON ks.other (v) USING 'org.apache.cassandra.index.sasi.SASIIndex'",
    ),
    (
        "CREATE MATERIALIZED VIEW",
        Switched(
            "materialized_views_enabled",
            "triggers",
            "CREATE MATERIALIZED VIEW mv AS SELECT * FROM t WHERE k IS NOT NULL AND v IS NOT NULL PRIMARY KEY (v, k)",
        ),
        "CREATE MATERIALIZED VIEW ks.by_v AS SELECT * FROM ks.t WHERE v IS NOT NULL AND k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (v, k, c)",
    ),
    (
        "CREATE FUNCTION",
        Switched(
            "user_defined_functions_enabled",
            "user_functions_schema",
            "CREATE FUNCTION f (a int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return a;'",
        ),
        "CREATE FUNCTION ks.f (a int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return a;'",
    ),
    (
        "CREATE TRIGGER",
        Given(
            "with its class",
            "triggers",
            "CREATE TRIGGER a ON t USING 'org.example.Audit'",
        ),
        "CREATE TRIGGER tr ON ks.t USING 'org.example.Trigger'",
    ),
    (
        "CREATE ROLE",
        Unrecorded("with a login"),
        "CREATE ROLE app WITH PASSWORD = 'secret' AND LOGIN = true",
    ),
    (
        "column of type vector",
        Recorded("ann", "CREATE TABLE same (k int PRIMARY KEY, v vector<float, 2>)"),
        "CREATE TABLE ks.vectors (k int PRIMARY KEY, v vector<float, 2>)",
    ),
    (
        "column MASKED WITH",
        Switched(
            "dynamic_data_masking_enabled",
            "masks",
            "CREATE TABLE n (k int PRIMARY KEY, v counter MASKED WITH DEFAULT)",
        ),
        "CREATE TABLE ks.masked (k int PRIMARY KEY, v text MASKED WITH DEFAULT)",
    ),
    (
        "INSERT",
        Recorded("statics", "INSERT INTO t (k, c, v) VALUES (1, 1, 11)"),
        "INSERT INTO ks.t (k, c, v) VALUES (1, 1, 'a')",
    ),
    (
        "INSERT JSON",
        Recorded("json_insert", "INSERT INTO t JSON '{\"K\": 2, \"C\": 3, \"V\": 1}'"),
        "INSERT INTO ks.t JSON '{\"k\": 1, \"c\": 2}'",
    ),
    (
        "INSERT IF NOT EXISTS",
        Recorded("conditions", "INSERT INTO t (k) VALUES (2) IF NOT EXISTS"),
        "INSERT INTO ks.t (k, c) VALUES (1, 3) IF NOT EXISTS",
    ),
    (
        "INSERT USING TTL",
        Recorded("ttl_timestamps", "INSERT INTO t (k, v) VALUES (5, 1) USING TTL 0"),
        "INSERT INTO ks.t (k, c) VALUES (1, 4) USING TTL 60",
    ),
    (
        "UPDATE",
        Recorded("lists", "UPDATE t SET l = [] WHERE k = 1"),
        "UPDATE ks.t SET v = 'b' WHERE k = 1 AND c = 1",
    ),
    (
        "UPDATE of a counter",
        Recorded("counters", "UPDATE t SET n = n + 1 WHERE k = 1 AND c = 1"),
        "UPDATE ks.counts SET n = n + 1 WHERE k = 1",
    ),
    (
        "DELETE of a row",
        Recorded("statics", "DELETE FROM t WHERE k = 1 AND c = 1"),
        "DELETE FROM ks.t WHERE k = 1 AND c = 1",
    ),
    (
        "DELETE of a range",
        Recorded("deletes", "DELETE FROM d WHERE k = 1 AND c1 > 3"),
        "DELETE FROM ks.t WHERE k = 1 AND c > 5",
    ),
    (
        "logged batch",
        Recorded(
            "batches",
            "BEGIN BATCH INSERT INTO u (k, v) VALUES (9, 'a'); DELETE FROM u WHERE k = 9; APPLY BATCH",
        ),
        "BEGIN BATCH INSERT INTO ks.t (k, c) VALUES (1, 5); INSERT INTO ks.t (k, c) VALUES (2, 5); APPLY BATCH",
    ),
    (
        "unlogged batch",
        Recorded(
            "batches",
            "BEGIN UNLOGGED BATCH INSERT INTO u (k, v) VALUES (2, 'b'); INSERT INTO u (k, v) VALUES (3, 'c'); APPLY BATCH",
        ),
        "BEGIN UNLOGGED BATCH INSERT INTO ks.t (k, c) VALUES (1, 6); APPLY BATCH",
    ),
    (
        "SELECT by key",
        Recorded("batches", "SELECT * FROM t WHERE k = 5"),
        "SELECT * FROM ks.t WHERE k = 1",
    ),
    (
        "SELECT DISTINCT",
        Recorded("paging", "SELECT DISTINCT k FROM w"),
        "SELECT DISTINCT k FROM ks.t",
    ),
    (
        "SELECT ALLOW FILTERING",
        Recorded("filtering", "SELECT * FROM t ALLOW FILTERING"),
        "SELECT * FROM ks.t WHERE c = 1 ALLOW FILTERING",
    ),
    (
        "GROUP BY",
        Recorded("group_by", "SELECT count(*) FROM t GROUP BY k"),
        "SELECT k, count(*) FROM ks.t GROUP BY k",
    ),
    (
        "PER PARTITION LIMIT",
        Recorded("order_limit", "SELECT * FROM w PER PARTITION LIMIT 1"),
        "SELECT * FROM ks.t PER PARTITION LIMIT 1",
    ),
    (
        "SELECT JSON",
        Recorded("json_select", "SELECT JSON k, c FROM t"),
        "SELECT JSON * FROM ks.t WHERE k = 1",
    ),
    ("TRUNCATE", Recorded("counters", "TRUNCATE t"), "TRUNCATE ks.t"),
    ("DESCRIBE", Recorded("masks", "DESCRIBE TABLE t"), "DESCRIBE TABLE ks.t"),
    (
        "EXPLAIN",
        Recorded("syntax_errors", "EXPLAIN SELECT * FROM t"),
        "EXPLAIN SELECT * FROM ks.t WHERE k = 1",
    ),
    (
        "throughput of a table",
        Unrecorded("no"),
        "ALTER TABLE ks.t WITH cosmosdb_provisioned_throughput = 400",
    ),
    (
        "change feed",
        Unrecorded("no"),
        "SELECT * FROM ks.fed WHERE COSMOS_CHANGEFEED_FROM_START() = true",
    ),
    (
        "full fidelity change feed",
        Unrecorded("no"),
        "ALTER TABLE ks.fed WITH cosmosdb_full_fidelity_retention_seconds = 86400",
    ),
    (
        "DROP TABLE",
        Recorded("user_types", "DROP TABLE q"),
        "DROP TABLE ks.other",
    ),
];

/// A profile's answer to each statement: `yes`, or `refused` with the code.
async fn answers(server: &TestServer) -> Vec<String> {
    let (session, params) = (SessionState::default(), QueryParams::default());
    for statement in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (k int, c int, v text, w text, PRIMARY KEY (k, c))",
        "CREATE TABLE ks.counts (k int PRIMARY KEY, n counter)",
        "CREATE TABLE ks.fed (k int PRIMARY KEY, v int) WITH cdc = true",
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
                    column is what Apache\nCassandra 5.0.9 answered to a statement of the kind that `compat/oracle` recorded. *Off by default* \
                    means that its own `cassandra.yaml` has\nthe feature off, and that of the recorded Cassandra on. Roles and throughput are not \
                    recorded there. The third column is the\nprofile `cosmos` without `cosmos-strict`. Roles require `--login`. \
                    [Compatibility](compatibility.md) has the areas.\n\n\
                    | feature | Cassandra 5 | profile `cosmos` | default profile |\n|---|---|---|---|\n"
        .to_owned();
    for (((feature, cassandra, _), cosmos), plain) in FEATURES.iter().zip(cosmos).zip(plain) {
        let _ = writeln!(page, "| {feature} | {} | {cosmos} | {plain} |", cassandra.text());
    }
    page
}
