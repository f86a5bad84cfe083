//! The profile `cosmos`, row by row: what clients of Azure Cosmos DB for Apache Cassandra break without, and what tests of throughput and
//! errors need. Each row names its source; what no source tells is allowed, and refused with the setting `cosmos-strict`.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

mod raw;

use std::sync::Arc;

use helenus::TestServer;
use helenus::config::{Config, Values};
use helenus::executor::{AnswerKind, QueryParams, SessionState};
use helenus::wire::Version;
use helenus::wire::request::{AuthResponse, Request, Startup};
use raw::{Client, Frame};

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

#[tokio::test]
async fn listener_speaks_tls_on_the_port_of_cosmos() {
    // Source: "Apache Cassandra features supported by Azure Cosmos DB" (support.md): port 10350, TLS 1.2, account and key.
    let given = [("profile".to_owned(), vec!["cosmos".to_owned()])];
    let default = Config::new(&Values::gather(None, &given.into(), |_| None).unwrap()).unwrap();
    assert!(default.server.listen.is_empty());
    assert_eq!(default.server.tls.unwrap().listen, ["127.0.0.1:10350".parse().unwrap()]);

    let server = start(&[]).await;
    let certificate = server.certificate().unwrap();
    let mut roots = rustls::RootCertStore::empty();
    let certificate = <rustls::pki_types::CertificateDer<'_> as rustls::pki_types::pem::PemObject>::from_pem_slice(
        certificate.as_bytes(),
    );
    roots.add(certificate.unwrap()).unwrap();
    let tls = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(tls));
    // Version 4 is spoken, 3 and 5 are tolerated.
    for version in Version::ALL {
        for (key, opcode) in [(KEY, 16), ("wrong", 0)] {
            let socket = tokio::net::TcpStream::connect(server.tls_address().unwrap())
                .await
                .unwrap();
            let name = "localhost".try_into().unwrap();
            let socket = connector.connect(name, socket).await.unwrap();
            let mut client = Client::over(socket, version);
            let answer = login(&mut client, key).await;
            assert_eq!(answer.opcode, opcode, "{version:?}");
            if opcode == 0 {
                // Source: monitor-reference.md: bad credentials are 256.
                assert_eq!(answer.error().0, 0x0100);
            }
        }
    }
}

#[tokio::test]
async fn compression_is_neither_offered_nor_taken() {
    // Source: gocql#1205.
    let server = start(&[]).await;
    let mut client = Client::connect(server.address(), Version::V4).await;
    client.options(1).await;
    let supported = client.frame().await.unwrap();
    let text = String::from_utf8_lossy(&supported.body).into_owned();
    assert!(!text.contains("lz4") && !text.contains("snappy"), "{text}");
    assert!(text.contains("4/v4") && text.contains("3.4.4"), "{text}");
    let options = vec![("CQL_VERSION", "3.0.0"), ("COMPRESSION", "lz4")];
    client.request(1, &Request::Startup(Startup { options })).await;
    let (code, text) = client.frame().await.unwrap().error();
    assert_eq!(
        (code, text.as_str()),
        (0x000A, "Cql request had unsupported headers Compression")
    );
}

#[tokio::test]
async fn system_tables_are_those_of_cosmos() {
    // Source: a published session of cqlsh with Azure Cosmos DB; the migration tool CassandraHelper.cs for size_estimates.
    let (server, mut client) = with_tables(&[("region", "Southeast Asia")]).await;
    let banner = texts(
        &server,
        "SELECT cluster_name, release_version, cql_version, native_protocol_version, data_center, partitioner FROM system.local",
    );
    assert_eq!(
        banner.await,
        [
            "CosmosProd",
            "3.11.0",
            "3.4.4",
            "4",
            "Southeast Asia",
            "org.apache.cassandra.dht.Murmur3Partitioner"
        ]
    );
    let (_, cells) = rows(&server, "SELECT tokens FROM system.local").await;
    let tokens = cells[0].clone().unwrap();
    assert_eq!(tokens[..4], 64_i32.to_be_bytes());
    let last = (i128::from(i64::MIN) + 64 * 283_796_062_672_454_640).to_string();
    assert!(String::from_utf8_lossy(&tokens).contains(&last));
    let source = "a published session of cqlsh";
    check(
        &mut client,
        &[
            ("A system tables: peers", source, "SELECT * FROM system.peers", Fine),
            (
                "A system tables: no size_estimates",
                "CassandraHelper.cs",
                "SELECT * FROM system.size_estimates",
                Error(0x2200, "does not exist"),
            ),
            (
                "A system tables: none after 3.11",
                source,
                "SELECT * FROM system_schema.column_masks",
                Error(0x2200, "does not exist"),
            ),
            (
                "A system tables: own keyspace",
                "CassandraHelper.cs",
                "SELECT * FROM system_cosmos.partitions",
                Fine,
            ),
            (
                "6.2 missing table",
                "ExceptionClassifier.cs",
                "SELECT * FROM k.nothing",
                Error(0x2200, "does not exist"),
            ),
        ],
    )
    .await;
    let listed = rows(
        &server,
        "SELECT count(*) FROM system_schema.keyspaces WHERE keyspace_name IN \
         ('system', 'system_schema', 'system_auth', 'system_distributed', 'system_traces', 'system_cosmos', 'system_views')",
    );
    assert_eq!(listed.await.1[0].as_deref(), Some(&6_i64.to_be_bytes()[..]));
}

#[tokio::test]
async fn schema_has_the_defaults_of_cosmos() {
    // Source: a published session of cqlsh with Azure Cosmos DB; spark-ddl-operations.md for what is hidden.
    let (server, mut client) = with_tables(&[]).await;
    let (_, cells) = rows(
        &server,
        "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = 'k'",
    )
    .await;
    let replication = String::from_utf8_lossy(&cells[0].clone().unwrap()).into_owned();
    assert!(replication.contains("SimpleStrategy") && replication.contains("replication_factor"));
    let (names, cells) = rows(
        &server,
        "SELECT * FROM system_schema.tables WHERE keyspace_name = 'k' AND table_name = 't'",
    )
    .await;
    let of = |name: &str| {
        let place = names.iter().position(|known| known == name);
        cells[place.unwrap_or_else(|| panic!("{name}"))].clone().unwrap()
    };
    assert_eq!(of("gc_grace_seconds"), 0_i32.to_be_bytes());
    assert_eq!(of("memtable_flush_period_in_ms"), 3_600_000_i32.to_be_bytes());
    assert_eq!(of("default_time_to_live"), 0_i32.to_be_bytes());
    assert_eq!(of("bloom_filter_fp_chance"), 0.01_f64.to_be_bytes());
    assert_eq!(of("read_repair_chance"), 0.0_f64.to_be_bytes());
    assert_eq!(of("speculative_retry"), b"99PERCENTILE");
    assert!(String::from_utf8_lossy(&of("compression")).contains("LZ4Compressor"));
    assert!(!names.iter().any(|name| name.contains("cosmosdb") || name == "memtable"));
    client.query(1, "DESCRIBE TABLE k.flags").await;
    let described = client.frame().await.unwrap();
    assert!(!String::from_utf8_lossy(&described.body).contains("cosmosdb_"));
}

#[tokio::test]
async fn results_are_named_as_there() {
    // Source: a public lab (system.count(*)), tokens.md (system.token(…)).
    let (server, _client) = with_tables(&[]).await;
    let names = async |statement: &'static str| rows(&server, statement).await.0;
    assert_eq!(names("SELECT count(*) FROM k.t").await, ["system.count(*)"]);
    assert_eq!(names("SELECT count(*) AS c FROM k.t").await, ["c"]);
    assert_eq!(names("SELECT token(pk) FROM k.t").await, ["system.token(pk)"]);
}

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
    // Throughput.
    (
        "A DDL throughput",
        "scale-account-throughput.md",
        "CREATE TABLE k.ru (a int PRIMARY KEY) WITH cosmosdb_provisioned_throughput = 1000",
        Fine,
    ),
    (
        "A DDL throughput: autoscale",
        "scale-account-throughput.md",
        "CREATE TABLE k.auto (a int PRIMARY KEY) WITH cosmosdb_autoscale_max_throughput = 4000",
        Fine,
    ),
    (
        "A DDL throughput: out of range",
        "lab 2",
        "CREATE TABLE k.ru2 (a int PRIMARY KEY) WITH cosmosdb_provisioned_throughput = 450",
        Error(
            0x2200,
            "The offer should have valid throughput values between 400 and 1000000 inclusive in increments of 100.",
        ),
    ),
    (
        "A DDL throughput: to autoscale",
        "lab 2",
        "ALTER TABLE k.ru WITH cosmosdb_autoscale_max_throughput = 4000",
        Error(0x2200, "x-ms-cosmos-migrate-offer-to-autopilot must be supplied"),
    ),
    (
        "A DDL throughput: not shared",
        "lab 2",
        "ALTER KEYSPACE r WITH cosmosdb_provisioned_throughput = 1000",
        Error(
            0x2200,
            "Cannot set provisioned throughput for database that is not configured for shared throughput",
        ),
    ),
    // Indexes.
    (
        "B secondary indexes",
        "secondary-indexing.md",
        "CREATE INDEX ON k.t (v)",
        Fine,
    ),
    (
        "B secondary indexes: used",
        "secondary-indexing.md",
        "SELECT * FROM k.t WHERE v = 'x'",
        Fine,
    ),
    (
        "B secondary indexes: default name",
        "secondary-indexing.md",
        "DROP INDEX k.t_v_idx",
        Fine,
    ),
    (
        "B secondary indexes: partition key",
        "secondary-indexing.md",
        "CREATE INDEX ON k.t (pk)",
        Fine,
    ),
    (
        "B secondary indexes: decimal",
        "secondary-indexing.md",
        "CREATE INDEX ON k.t (d)",
        Error(0x2200, "decimal"),
    ),
    (
        "B secondary indexes: varint",
        "secondary-indexing.md",
        "CREATE INDEX ON k.t (i)",
        Error(0x2200, "varint"),
    ),
    (
        "B secondary indexes: frozen",
        "secondary-indexing.md",
        "CREATE INDEX ON k.t (full(f))",
        Error(0x2200, "frozen"),
    ),
    (
        "B secondary indexes: static",
        "secondary-indexing.md",
        "CREATE INDEX ON k.t (s)",
        Error(0x2200, "static"),
    ),
    (
        "B secondary indexes: clustering",
        "secondary-indexing.md",
        "CREATE INDEX ON k.t (ck)",
        Error(0x2200, "clustering"),
    ),
    (
        "A custom index class",
        "jaeger#5185",
        "CREATE CUSTOM INDEX c ON k.t (v) USING 'org.apache.cassandra.index.sasi.SASIIndex'",
        Error(
            0x2300,
            "When using custom indexes, must have a class name and set to a supported class. Supported class names are ['CosmosDefaultIndex','AzureSearchIndex','CosmosClusteringIndex'] Got 'org.apache.cassandra.index.sasi.SASIIndex'",
        ),
    ),
    (
        "A custom index: default",
        "jaeger#5185",
        "CREATE CUSTOM INDEX c ON k.t (v) USING 'CosmosDefaultIndex'",
        Fine,
    ),
    (
        "A custom index: search",
        "jaeger#5185",
        "CREATE CUSTOM INDEX c2 ON k.flags (v) USING 'AzureSearchIndex'",
        Fine,
    ),
    (
        "C ORDER BY without index",
        "jaeger#5185",
        "SELECT * FROM k.t WHERE pk IN (1, 2) AND ck > 1 ORDER BY ck",
        Error(
            0x2200,
            "ORDER BY requires creating a custom index: CosmosClusteringIndex. Please create a custom index and re-issue this query",
        ),
    ),
    (
        "C CosmosClusteringIndex",
        "jaeger#5185",
        "CREATE CUSTOM INDEX c3 ON k.t (ck) USING 'CosmosClusteringIndex'",
        Fine,
    ),
    (
        "C ORDER BY of one partition",
        "jaeger#5185",
        "SELECT * FROM k.t WHERE pk = 1 AND ck > 1 ORDER BY ck DESC",
        Fine,
    ),
    // Flags of cells, conditions.
    (
        "B USING TIMESTAMP",
        "JanusGraph#2499",
        "INSERT INTO k.t (pk, ck) VALUES (1, 1) USING TIMESTAMP 1",
        Error(
            0x2200,
            "User specified timestamp not supported for this table. Please re-create the table with cosmosdb_cell_level_timestamp=true AND cosmosdb_cell_level_timestamp_tombstones=true AND cosmosdb_cell_level_timetolive=true.",
        ),
    ),
    (
        "B USING TIMESTAMP: batch",
        "JanusGraph#2499",
        "BEGIN UNLOGGED BATCH USING TIMESTAMP 1 INSERT INTO k.t (pk, ck) VALUES (1, 1); APPLY BATCH",
        Error(0x2200, "User specified timestamp not supported"),
    ),
    (
        "B USING TIMESTAMP: flags",
        "JanusGraph#2499",
        "INSERT INTO k.flags (pk, v) VALUES (1, 'x') USING TIMESTAMP 1 AND TTL 100",
        Fine,
    ),
    (
        "B flags: at CREATE only",
        "lightweight-transactions.md",
        "ALTER TABLE k.t WITH cosmosdb_cell_level_timestamp = true",
        Error(0x2200, "can only be set when a table is created"),
    ),
    (
        "B LWT",
        "lightweight-transactions.md",
        "INSERT INTO k.t (pk, ck) VALUES (9, 9) IF NOT EXISTS",
        Fine,
    ),
    (
        "B LWT: update",
        "lightweight-transactions.md",
        "UPDATE k.t SET v = 'x' WHERE pk = 9 AND ck = 9 IF EXISTS",
        Fine,
    ),
    (
        "B LWT: delete of a row",
        "lightweight-transactions.md",
        "DELETE FROM k.t WHERE pk = 9 AND ck = 9 IF EXISTS",
        Error(0x2200, "Conditional delete of an entire row is not supported."),
    ),
    (
        "B LWT: delete of a row, flags",
        "lightweight-transactions.md",
        "DELETE FROM k.flags WHERE pk = 9 IF EXISTS",
        Fine,
    ),
    (
        "B LWT: static and regular",
        "lightweight-transactions.md",
        "UPDATE k.t SET v = 'x' WHERE pk = 9 AND ck = 9 IF s = 'y'",
        Error(
            0x2200,
            "Conditions and assignments containing combination of Static and Regular columns are not supported.",
        ),
    ),
    // Codes of the error map that statements reach (monitor-reference.md: 400, 401, 409).
    (
        "B error map: 400 syntax",
        "monitor-reference.md",
        "SELEC",
        Error(0x2000, ""),
    ),
    (
        "B error map: 401",
        "monitor-reference.md",
        "DROP TABLE system.local",
        Error(0x2100, ""),
    ),
    (
        "B error map: 409",
        "monitor-reference.md",
        "CREATE TABLE k.t (a int PRIMARY KEY)",
        Error(0x2400, ""),
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
    let (server, mut client) = with_tables(&[]).await;
    let mut wrong = Vec::new();
    for row in RULES {
        wrong.extend(differences(&mut client, std::slice::from_ref(row)).await);
        // The budget of changes of the schema fills again.
        server.advance(std::time::Duration::from_secs(10));
    }
    for (row, source, statement, _) in STRICT {
        wrong.extend(differences(&mut client, &[(row, source, statement, Fine)]).await);
        server.advance(std::time::Duration::from_secs(10));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn what_no_source_settles_is_refused_when_asked_for() {
    let (server, mut client) = with_tables(&[("cosmos-strict", "alter,clauses,deletes,duration,functions")]).await;
    for row in STRICT {
        check(&mut client, std::slice::from_ref(row)).await;
        server.advance(std::time::Duration::from_secs(10));
    }
    let values = [("cosmos-strict".to_owned(), vec!["nothing".to_owned()])];
    assert!(Config::new(&Values::gather(None, &values.into(), |_| None).unwrap()).is_err());
}

#[tokio::test]
async fn levels_of_reads_are_refused_when_asked_for() {
    // Source: consistency-mapping.md.
    use helenus::consistency::Consistency;
    for (strict, account, refused) in [("", "session", 0), ("consistency", "session", 8), ("all", "strong", 1)] {
        let (server, _client) = with_tables(&[("cosmos-strict", strict), ("account-consistency", account)]).await;
        let mut came = 0;
        for consistency in Consistency::ALL.into_iter().filter(|level| *level != Consistency::Any) {
            let params = QueryParams {
                consistency,
                ..QueryParams::default()
            };
            let session = SessionState::default();
            let read = server
                .database()
                .query(&session, "SELECT * FROM k.t WHERE pk = 1", &params)
                .await;
            came += usize::from(read.is_err());
            // The level of a write is ignored, not refused.
            let write = "INSERT INTO k.t (pk, ck) VALUES (1, 1)";
            server.database().query(&session, write, &params).await.unwrap();
        }
        assert_eq!(came, refused, "{strict}");
    }
}

#[tokio::test]
async fn reads_of_two_replicas_cost_twice_as_much() {
    // Source: "Consistency levels in Azure Cosmos DB" (consistency-levels.md): strong and bounded staleness read two replicas.
    use helenus::consistency::Consistency;
    for (account, at_quorum) in [("session", 1.0), ("bounded-staleness", 2.0), ("strong", 2.0)] {
        let (server, _client) = with_tables(&[("account-consistency", account)]).await;
        let asked = [
            ("SELECT * FROM k.t WHERE pk = 1 AND ck = 1", Consistency::One, 1.0),
            (
                "SELECT * FROM k.t WHERE pk = 1 AND ck = 1",
                Consistency::Quorum,
                at_quorum,
            ),
            ("INSERT INTO k.t (pk, ck) VALUES (1, 1)", Consistency::Quorum, 5.0),
        ];
        for (text, consistency, charge) in asked {
            let params = QueryParams {
                consistency,
                ..QueryParams::default()
            };
            let session = SessionState::default();
            let answer = server.database().query(&session, text, &params).await.unwrap();
            assert_eq!(answer.charge.as_f64(), charge, "{account} {consistency:?} {text}");
        }
    }
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

/// The rule of the published retry policies of the Java driver: split at commas, then at equals signs.
fn retry_after_millis(text: &str) -> Option<u64> {
    text.split(',')
        .find_map(|token| match token.split('=').collect::<Vec<_>>()[..] {
            [name, value] if name.trim() == "RetryAfterMs" => value.parse().ok(),
            _ => None,
        })
}

#[tokio::test]
async fn refusals_tell_when_to_come_back() {
    // Sources: a public lab's log of the text; azure-cosmos-cassandra-extensions, CosmosRetryPolicy.java, for how it is read.
    let (server, mut client) = with_tables(&[]).await;
    let table = "CREATE TABLE k.small (a int PRIMARY KEY, v text) WITH cosmosdb_provisioned_throughput = 400";
    check(&mut client, &[("A 429", "lab 3", table, Fine)]).await;
    let insert = format!("INSERT INTO k.small (a, v) VALUES (1, '{}')", "v".repeat(10_000));
    let mut refused = None;
    for _ in 0..100 {
        client.query(1, &insert).await;
        let answer = client.frame().await.unwrap();
        if answer.opcode == 0 {
            refused = Some(answer.error());
            break;
        }
    }
    let (code, text) = refused.unwrap();
    assert_eq!(code, 0x1001, "{text}");
    assert!(text.starts_with("Request rate is large: ActivityID="), "{text}");
    assert!(text.contains("TooManyRequests (429); Substatus: 3200"), "{text}");
    let wait = retry_after_millis(&text).unwrap();
    server.advance(std::time::Duration::from_millis(wait));
    client.query(1, &insert).await;
    assert_eq!(client.frame().await.unwrap().opcode, 8);
}

#[tokio::test]
async fn every_result_tells_its_charge() {
    // Source: find-request-unit-charge.md: a double of eight bytes, most significant first, under RequestCharge.
    let (_server, mut client) = with_tables(&[]).await;
    for statement in [
        "INSERT INTO k.t (pk, ck, v) VALUES (1, 1, 'a')",
        "SELECT * FROM k.t WHERE pk = 1",
        "SELECT * FROM system.local",
        "CREATE TABLE k.more (a int PRIMARY KEY)",
    ] {
        client.query(1, statement).await;
        let answer = client.frame().await.unwrap();
        assert_eq!(answer.opcode, 8, "{statement}");
        assert_ne!(answer.flags & 4, 0, "{statement}: no payload");
        let name = b"RequestCharge";
        let at = answer.body.windows(name.len()).position(|bytes| bytes == name).unwrap() + name.len();
        assert_eq!(answer.body[at..at + 4], 8_i32.to_be_bytes());
        let charge = f64::from_be_bytes(answer.body[at + 4..at + 12].try_into().unwrap());
        assert!(charge > 0.0, "{statement}: {charge}");
    }
}
