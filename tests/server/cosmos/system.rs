//! What clients see of the cluster: system tables, the schema, DESCRIBE, names of results.

use super::Expect::{Error, Ok as Fine};
use super::{check, rows, texts, with_tables};

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
