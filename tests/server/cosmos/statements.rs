//! What can be said: statements, clauses, types, functions, options.

use helenus::TestServer;
use helenus::config::{Config, Values};
use helenus_types::wire::Version;

use super::Expect::{Error, Ok as Fine};
use super::{Row, check, check_in_turn, differences_in_turn, rows, with_tables};
use crate::raw::Client;

/// Rows of statements that hold whatever the switches say.
const RULES: &[Row] = &[
    // What Cosmos has: support.md.
    (
        "A CQL set: INSERT",
        "support.md",
        "INSERT INTO k.t (pk, ck, v) VALUES (1, 1, 'a') USING TTL 100",
        Fine,
    ),
    (
        "A CQL set: UPDATE",
        "support.md",
        "UPDATE k.t SET v = 'b' WHERE pk = 1 AND ck = 1",
        Fine,
    ),
    (
        "A CQL set: DELETE",
        "support.md",
        "DELETE FROM k.t WHERE pk = 1 AND ck = 1",
        Fine,
    ),
    ("A CQL set: TRUNCATE", "support.md", "TRUNCATE k.t", Fine),
    ("A CQL set: USE", "support.md", "USE k", Fine),
    ("A CQL set: SELECT JSON", "support.md", "SELECT JSON * FROM k.t", Fine),
    (
        "A CQL set: INSERT JSON",
        "support.md",
        "INSERT INTO k.t JSON '{\"pk\": 1, \"ck\": 2}'",
        Fine,
    ),
    (
        "A CQL set: ALTER TABLE ADD",
        "SchemaManager.cs",
        "ALTER TABLE k.t ADD n int",
        Fine,
    ),
    (
        "A CQL set: types",
        "support.md",
        "CREATE TYPE k.u (a int, b text)",
        Fine,
    ),
    ("A CQL set: DROP TYPE", "support.md", "DROP TYPE k.u", Fine),
    (
        "A CQL set: IN on the key",
        "lab 2",
        "SELECT * FROM k.t WHERE pk IN (1, 2)",
        Fine,
    ),
    (
        "A CQL set: toTimestamp",
        "support.md",
        "SELECT toTimestamp(now()) FROM k.t",
        Fine,
    ),
    ("A CQL set: aggregates", "support.md", "SELECT max(v) FROM k.t", Fine),
    (
        "A CQL set: unlogged batch",
        "support.md",
        "BEGIN UNLOGGED BATCH INSERT INTO k.t (pk, ck) VALUES (1, 3); APPLY BATCH",
        Fine,
    ),
    // Keyspaces and options.
    (
        "A CQL set: replication ignored",
        "support.md",
        "CREATE KEYSPACE r WITH replication = {'class': 'Nonsense', 'x': 3} AND durable_writes = false",
        Fine,
    ),
    (
        "A CQL set: class alone",
        "lab 2",
        "CREATE KEYSPACE r2 WITH replication = {'class': 'SimpleStrategy'}",
        Fine,
    ),
    (
        "A CQL set: no replication",
        "lab 2",
        "CREATE KEYSPACE r3 WITH cosmosdb_autoscale_max_throughput = 6000",
        Fine,
    ),
    (
        "A CQL set: ALTER KEYSPACE",
        "support.md",
        "ALTER KEYSPACE r WITH replication = {'class': 'NetworkTopologyStrategy', 'West US': 3}",
        Fine,
    ),
    (
        "A CQL set: unknown options",
        "support.md",
        "CREATE TABLE k.options (a int PRIMARY KEY) WITH nonsense = 'x' AND compaction = {'class': 'None'} AND default_time_to_live = 10",
        Fine,
    ),
    (
        "A gc_grace_seconds",
        "jaeger#1105",
        "CREATE TABLE k.gc (a int PRIMARY KEY) WITH gc_grace_seconds = 10800",
        Error(0x2200, "gc_grace_seconds value must be zero."),
    ),
    (
        "A gc_grace_seconds: zero",
        "jaeger#1105",
        "CREATE TABLE k.gc (a int PRIMARY KEY) WITH gc_grace_seconds = 0",
        Fine,
    ),
    (
        "A gc_grace_seconds: ALTER",
        "jaeger#1105",
        "ALTER TABLE k.gc WITH gc_grace_seconds = 1",
        Error(0x2200, "gc_grace_seconds value must be zero."),
    ),
    (
        "6.2 unknown UDT",
        "jaeger#1105",
        "CREATE TABLE k.udt (a int PRIMARY KEY, b frozen<nothing>)",
        Error(0x2200, "Unknown type k.nothing"),
    ),
    (
        "6.2 trailing comma",
        "jaeger#1105",
        "CREATE TABLE k.comma (a int PRIMARY KEY, b int,)",
        Error(0x2000, "line 1:"),
    ),
    // What Cosmos has not.
    (
        "A CQL set: logged batch",
        "azure-docs#15767",
        "BEGIN BATCH INSERT INTO k.t (pk, ck) VALUES (1, 3); APPLY BATCH",
        Error(
            0x0000,
            "Logged batches are not supported by the service yet. Please use unlogged batches instead.",
        ),
    ),
    (
        "A CQL set: DISTINCT",
        "support.md",
        "SELECT DISTINCT pk FROM k.t",
        Error(0x2200, "DISTINCT"),
    ),
    (
        "A CQL set: roles",
        "support.md",
        "CREATE ROLE r",
        Error(0x2200, "CREATE ROLE"),
    ),
    (
        "A CQL set: LIST",
        "support.md",
        "LIST ROLES",
        Error(0x2200, "LIST ROLES"),
    ),
    (
        "A CQL set: GRANT",
        "support.md",
        "GRANT SELECT ON k.t TO r",
        Error(0x2200, "GRANT"),
    ),
    (
        "A CQL set: UDF",
        "support.md",
        "CREATE FUNCTION k.f (a int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return a;'",
        Error(0x2200, "CREATE FUNCTION"),
    ),
    (
        "A CQL set: trigger",
        "support.md",
        "CREATE TRIGGER g ON k.t USING 'x'",
        Error(0x2200, "CREATE TRIGGER"),
    ),
    (
        "A CQL set: ALTER TYPE",
        "support.md",
        "ALTER TYPE k.u ADD c int",
        Error(0x2200, "ALTER TYPE"),
    ),
    (
        "A CQL set: COMPACT STORAGE",
        "support.md",
        "CREATE TABLE k.compact (a int PRIMARY KEY, b int) WITH COMPACT STORAGE",
        Error(0x2200, "COMPACT STORAGE"),
    ),
    (
        "A CQL set: toJson",
        "support.md",
        "SELECT toJson(v) FROM k.t",
        Error(0x2200, "tojson"),
    ),
    (
        "A CQL set: fromJson",
        "support.md",
        "INSERT INTO k.t (pk, ck, v) VALUES (1, 1, fromJson('\"x\"'))",
        Error(0x2200, "fromjson"),
    ),
    (
        "A CQL set: cast in aggregate",
        "support.md",
        "SELECT avg(cast(d AS double)) FROM k.t",
        Error(0x2200, "CAST within an aggregate"),
    ),
    (
        "A CQL set: aggregate of a key",
        "support.md",
        "SELECT max(ck) FROM k.t",
        Error(0x2200, "primary key"),
    ),
    (
        "A CQL set: token(pk) > token(1)",
        "tokens.md",
        "SELECT * FROM k.t WHERE token(pk) > token(100)",
        Error(0x2200, "token()"),
    ),
    (
        "A CQL set: token(pk) > 1",
        "tokens.md",
        "SELECT * FROM k.t WHERE token(pk) > 100",
        Fine,
    ),
    (
        "A ALLOW FILTERING",
        "lab 2",
        "SELECT * FROM k.t WHERE v = 'x'",
        Error(
            0x2200,
            "Cannot execute this query as it might involve data filtering and thus may have unpredictable performance. If you want to execute this query despite the performance unpredictability, use ALLOW FILTERING",
        ),
    ),
    (
        "A ALLOW FILTERING: given",
        "lab 2",
        "SELECT * FROM k.t WHERE v = 'x' ALLOW FILTERING",
        Fine,
    ),
    (
        "A CQL set: types",
        "support.md",
        "CREATE TABLE k.types (j int PRIMARY KEY, a ascii, b bigint, c blob, d boolean, e date, f decimal, g double, h float, i inet, l smallint, m text, n time, o timestamp, p timeuuid, q tinyint, r uuid, s varchar, t varint, u list<int>, v set<text>, w map<text, int>, x frozen<list<int>>, y frozen<tuple<int, text>>)",
        Fine,
    ),
    (
        "A CQL set: counters",
        "support.md",
        "CREATE TABLE k.counts (a int PRIMARY KEY, c counter)",
        Fine,
    ),
    (
        "A CQL set: counters",
        "support.md",
        "UPDATE k.counts SET c = c + 1 WHERE a = 1",
        Fine,
    ),
    (
        "A CQL set: static columns",
        "support.md",
        "UPDATE k.t SET s = 'x' WHERE pk = 1",
        Fine,
    ),
    (
        "A CQL set: ttl, writetime, cast",
        "support.md",
        "SELECT ttl(v), writetime(v), cast(d AS double) FROM k.t",
        Fine,
    ),
    (
        "A CQL set: aggregates",
        "support.md",
        "SELECT count(v), min(d), max(d), sum(d), avg(d) FROM k.t",
        Fine,
    ),
    (
        "A CQL set: blobs",
        "support.md",
        "SELECT blobAsInt(intAsBlob(ck)) FROM k.t",
        Fine,
    ),
    (
        "A CQL set: times",
        "support.md",
        "SELECT dateOf(now()), minTimeuuid('2020-01-01'), unixTimestampOf(now()), toDate(now()), toUnixTimestamp(now()) FROM k.t",
        Fine,
    ),
    (
        "A CQL set: JSON of a cell",
        "support.md",
        "SELECT JSON v FROM k.t WHERE pk = 1 AND ck = 1",
        Fine,
    ),
    (
        "A CQL set: IN with a range",
        "lab 2",
        "SELECT * FROM k.t WHERE pk IN (1, 2) AND ck > 1",
        Fine,
    ),
    (
        "A CQL set: range of rows",
        "devblogs, clustering key index",
        "SELECT * FROM k.t WHERE pk = 1 AND ck > 1",
        Fine,
    ),
    (
        "A ALLOW FILTERING: range without a partition",
        "devblogs, clustering key index",
        "SELECT * FROM k.t WHERE ck > 1",
        Error(0x2200, "Cannot execute this query as it might involve data filtering"),
    ),
    (
        "A CQL set: durable writes",
        "support.md",
        "ALTER KEYSPACE r WITH durable_writes = false",
        Fine,
    ),
    ("A CQL set: DROP TABLE", "support.md", "DROP TABLE k.types", Fine),
    ("A CQL set: DROP KEYSPACE", "support.md", "DROP KEYSPACE r2", Fine),
    (
        "A CQL set: aggregates of users",
        "support.md",
        "CREATE AGGREGATE k.agg (int) SFUNC f STYPE int",
        Error(0x2200, "CREATE AGGREGATE"),
    ),
    (
        "A CQL set: users",
        "support.md",
        "CREATE USER u",
        Error(0x2200, "CREATE USER"),
    ),
    (
        "A CQL set: LIST USERS",
        "support.md",
        "LIST USERS",
        Error(0x2200, "LIST USERS"),
    ),
    (
        "A CQL set: REVOKE",
        "support.md",
        "REVOKE SELECT ON k.t FROM r",
        Error(0x2200, "REVOKE"),
    ),
    (
        "A CQL set: ALTER ROLE",
        "support.md",
        "ALTER ROLE r WITH LOGIN = true",
        Error(0x2200, "ALTER ROLE"),
    ),
    (
        "A clauses: LIKE needs an index that there is none of",
        "named nowhere",
        "SELECT * FROM k.t WHERE v LIKE 'a%'",
        Error(0x2200, "LIKE restriction is only supported on properly indexed columns"),
    ),
];

/// Rows that are allowed unless `cosmos-strict` says otherwise.
const STRICT: &[Row] = &[
    (
        "B DELETE: range",
        "akka-persistence-cassandra#764",
        "DELETE FROM k.t WHERE pk = 1 AND ck > 1",
        Error(
            0x2200,
            "Only EQ relation is supported on the partition key for now for DELETE statements",
        ),
    ),
    (
        "B DELETE: partition",
        "akka-persistence-cassandra#764",
        "DELETE FROM k.t WHERE pk = 1",
        Error(0x2200, "Some clustering keys are missing"),
    ),
    (
        "B DELETE: IN",
        "kairosdb#580",
        "DELETE FROM k.t WHERE pk IN (1, 2) AND ck = 1",
        Error(0x2200, "Only EQ relation"),
    ),
    (
        "A clauses: GROUP BY",
        "named nowhere",
        "SELECT pk, count(*) FROM k.t GROUP BY pk",
        Error(0x2200, "GROUP BY"),
    ),
    (
        "A clauses: PER PARTITION LIMIT",
        "named nowhere",
        "SELECT * FROM k.t PER PARTITION LIMIT 1",
        Error(0x2200, "PER PARTITION LIMIT"),
    ),
    (
        "A types: duration",
        "missing in support.md",
        "CREATE TABLE k.du (a int PRIMARY KEY, b duration)",
        Error(0x2200, "duration"),
    ),
    (
        "A functions: maxTimeuuid",
        "missing in support.md",
        "SELECT maxTimeuuid('2020-01-01') FROM k.t",
        Error(0x2200, "maxtimeuuid"),
    ),
    (
        "A ALTER of columns",
        "spark-ddl-operations.md",
        "ALTER TABLE k.t ADD later int",
        Error(0x2200, "ALTER TABLE"),
    ),
];

#[tokio::test]
async fn statements_follow_the_rules_of_cosmos() {
    check_in_turn(RULES).await;
}

#[tokio::test]
async fn what_no_source_settles_is_allowed() {
    let (server, mut client) = with_tables(&[]).await;
    for (row, source, statement, _) in STRICT {
        let allowed = [(*row, *source, *statement, Fine)];
        let wrong = differences_in_turn(&server, &mut client, &allowed).await;
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

#[tokio::test]
async fn what_no_source_settles_is_refused_when_asked_for() {
    let (server, mut client) = with_tables(&[("cosmos-strict", "alter,clauses,deletes,duration,functions")]).await;
    // Never allowed, but in other words: no index that Cosmos has finds it.
    let like = (
        "A clauses: LIKE",
        "named nowhere",
        "SELECT * FROM k.t WHERE v LIKE 'a%'",
        Error(0x2200, "LIKE is not supported"),
    );
    for row in STRICT.iter().chain([&like]) {
        check(&mut client, std::slice::from_ref(row)).await;
        server.advance(std::time::Duration::from_secs(10));
    }
    let values = [("cosmos-strict".to_owned(), vec!["nothing".to_owned()])];
    assert!(Config::new(&Values::gather(None, &values.into(), |_| None).unwrap()).is_err());
}

#[tokio::test]
async fn other_profiles_are_as_they_were() {
    let values = [
        ("data".to_owned(), vec!["memory:".to_owned()]),
        ("listen".to_owned(), vec!["127.0.0.1:0".to_owned()]),
    ];
    let config = Config::new(&Values::gather(None, &values.into(), |_| None).unwrap()).unwrap();
    let server = TestServer::with(&config).await.unwrap();
    let mut client = Client::ready(server.address(), Version::V4).await;
    let own = "Cassandra 5.0.9";
    check(
        &mut client,
        &[
            ("replication", own, "CREATE KEYSPACE k", Error(0x2000, "")),
            (
                "replication",
                own,
                "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
                Fine,
            ),
            (
                "options",
                own,
                "CREATE TABLE k.t (a int PRIMARY KEY, v text) WITH gc_grace_seconds = 10",
                Fine,
            ),
            (
                "classes",
                own,
                "CREATE CUSTOM INDEX ON k.t (v) USING 'CosmosDefaultIndex'",
                Error(0x2300, "Unable to find custom indexer class 'CosmosDefaultIndex'"),
            ),
            (
                "batch",
                own,
                "BEGIN BATCH INSERT INTO k.t (a) VALUES (1) USING TIMESTAMP 1; APPLY BATCH",
                Fine,
            ),
            ("DISTINCT", own, "SELECT DISTINCT a FROM k.t", Fine),
        ],
    )
    .await;
    assert_eq!(rows(&server, "SELECT count(*) FROM k.t").await.0, ["count"]);
}
