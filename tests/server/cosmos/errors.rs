//! HTTP's codes, which Cosmos's own protocol answers, as the codes that CQL clients are told: the map of "Monitor reference".

use helenus_engine::partition::faults::Plan;
use helenus_types::wire::Version;
use helenus_types::wire::request::{Execute, Params, Request};

use super::Expect::{Error, Ok as Fine};
use super::{Row, check_in_turn, connect, ok, refused, rows, run, with_tables};

const SOURCE: &str = "monitor-reference.md";

/// Codes that statements reach alone. 429 is in [`super::throughput`]; bad credentials and protocol errors are in [`super::listener`].
const MAP: &[Row] = &[
    (
        "B error map: 400 syntax",
        "monitor-reference.md",
        "SELEC",
        Error(0x2000, ""),
    ),
    (
        "B error map: 400 invalid",
        "monitor-reference.md",
        "SELECT nothing FROM k.t",
        Error(0x2200, ""),
    ),
    (
        "B error map: 400 configuration",
        "monitor-reference.md",
        "CREATE CUSTOM INDEX ON k.t (v) USING 'x'",
        Error(0x2300, ""),
    ),
    (
        "B error map: 401",
        "monitor-reference.md",
        "DROP TABLE system.local",
        Error(0x2100, ""),
    ),
    (
        "B error map: 405 and 500",
        "monitor-reference.md",
        "BEGIN BATCH INSERT INTO k.t (pk, ck) VALUES (1, 3); APPLY BATCH",
        Error(0x0000, ""),
    ),
    (
        "B error map: 409",
        "monitor-reference.md",
        "CREATE TABLE k.t (a int PRIMARY KEY)",
        Error(0x2400, ""),
    ),
    ("B error map: 200", "monitor-reference.md", "SELECT * FROM k.t", Fine),
];

#[tokio::test]
async fn statements_are_refused_by_the_map() {
    check_in_turn(MAP).await;
}

fn plan(server: &helenus::TestServer, text: &str) {
    let plan = Plan::from_toml(text).unwrap();
    server.database().engine().nodes().set_plan(plan).unwrap();
}

const READ: &str = "SELECT * FROM k.t WHERE pk = 1 AND ck = 1";
const WRITE: &str = "INSERT INTO k.t (pk, ck) VALUES (1, 1)";

#[tokio::test]
async fn a_full_partition_is_unauthorized() {
    // 403 → 8448; the text and its substatus: troubleshoot-forbidden.md.
    let (server, _client) = with_tables(&[("logical-partition-bytes-max", "20000")]).await;
    let text = "x".repeat(1_000);
    let mut last = None;
    for ck in 0..40 {
        let insert = format!("INSERT INTO k.t (pk, ck, v) VALUES (1, {ck}, '{text}')");
        server.advance(std::time::Duration::from_secs(10));
        if run(&server, &insert).await.is_err() {
            last = Some(insert);
            break;
        }
    }
    let (code, text) = refused(&server, &last.unwrap()).await;
    assert_eq!(code, 0x2100, "{SOURCE}");
    assert!(
        text.starts_with("Partition key reached maximum size of ")
            && text.contains("aka.ms/CosmosDB/sql/errors/full-pk"),
        "{text}"
    );
    ok(&server, "DELETE FROM k.t WHERE pk = 1 AND ck = 0").await;
}

#[tokio::test]
async fn what_is_missing_is_no_failed_write() {
    // 404 → 5376: schema and rows of a table come and go together here, so that a table whose schema is there while its data are not, of
    // which the migration tool SchemaManager.cs speaks, is never met. What is missing is told as the schema's matter.
    let (server, _client) = with_tables(&[]).await;
    ok(&server, "DROP TABLE k.flags").await;
    let (code, text) = refused(&server, "INSERT INTO k.flags (pk) VALUES (1)").await;
    assert_eq!(code, 0x2200, "{SOURCE}");
    assert!(text.contains("does not exist"), "{text}");
}

#[tokio::test]
async fn what_lasts_too_long_has_timed_out() {
    // 408 → 4608 for reads, 4352 for writes. That of waiting for request units is in [`super::throughput`].
    let (server, _client) = with_tables(&[]).await;
    plan(&server, "[[fault]]\naction = \"timeout\"");
    assert_eq!(refused(&server, READ).await.0, 0x1200, "{SOURCE}");
    assert_eq!(refused(&server, WRITE).await.0, 0x1100, "{SOURCE}");
    plan(&server, "[[fault]]\naction = \"timeout-after\"");
    assert_eq!(refused(&server, WRITE).await.0, 0x1100, "{SOURCE}");
    plan(&server, "");
    assert_eq!(rows(&server, READ).await.1.len(), 7, "the write was carried out");
}

#[tokio::test]
async fn conditions_that_do_not_hold_are_answers() {
    // 412 → 5376: a precondition of Cosmos's own protocol compares versions of a document, which CQL cannot name. A condition of CQL that
    // does not hold is answered with [applied] = false (lightweight-transactions.md).
    let (server, _client) = with_tables(&[]).await;
    let insert = "INSERT INTO k.flags (pk, v) VALUES (1, 'x') IF NOT EXISTS";
    assert_eq!(rows(&server, insert).await.1[0].as_deref(), Some(&[1][..]));
    server.advance(std::time::Duration::from_secs(10));
    let (names, cells) = rows(&server, insert).await;
    assert_eq!((names[0].as_str(), cells[0].as_deref()), ("[applied]", Some(&[0][..])));
}

#[tokio::test]
async fn what_is_too_large_is_a_failed_write() {
    // 413 → 5376: 2 MB of a row, here a thousandth of it.
    let (server, _client) = with_tables(&[("scale-limits", "1/1000")]).await;
    let insert = |bytes: usize| format!("INSERT INTO k.t (pk, ck, v) VALUES (1, 1, '{}')", "x".repeat(bytes));
    ok(&server, &insert(1_900)).await;
    let (code, text) = refused(&server, &insert(2_200)).await;
    assert_eq!((code, text.as_str()), (0x1500, "Request size is too large"), "{SOURCE}");
}

#[tokio::test]
async fn what_was_not_prepared_is_told_so() {
    // 417 → 9472.
    let (server, mut client) = with_tables(&[]).await;
    let execute = Execute {
        id: &[7; 16],
        result_metadata_id: None,
        params: Params::default(),
    };
    client.request(1, &Request::Execute(execute)).await;
    assert_eq!(client.frame().await.unwrap().error().0, 0x2500, "{SOURCE}");
    drop(client);
    assert_eq!(connect(&server).await.version, Version::V4);
}

#[tokio::test]
async fn a_second_change_of_throughput_is_a_failed_write() {
    // 423 → 5376: DocumentClient.ReplaceOfferAsync, of another scale operation in progress; scaling-provisioned-throughput-best-practices.md
    // for what is at once and what takes hours.
    let (server, _client) = with_tables(&[("split-delay-seconds", "3600")]).await;
    ok(
        &server,
        "CREATE TABLE k.big (a int PRIMARY KEY) WITH cosmosdb_provisioned_throughput = 400",
    )
    .await;
    let partitions = async || {
        server
            .database()
            .engine()
            .figures()
            .partitions()
            .iter()
            .filter(|of| of.table == "big")
            .count()
    };
    // One partition serves it, so it is at once, and so is the next.
    ok(
        &server,
        "ALTER TABLE k.big WITH cosmosdb_provisioned_throughput = 10000",
    )
    .await;
    ok(
        &server,
        "ALTER TABLE k.big WITH cosmosdb_provisioned_throughput = 40000",
    )
    .await;
    assert_eq!(partitions().await, 1);
    let (code, text) = refused(
        &server,
        "ALTER TABLE k.big WITH cosmosdb_provisioned_throughput = 50000",
    )
    .await;
    assert_eq!(code, 0x1500, "{SOURCE}");
    assert!(text.contains("another scale operation is in progress"), "{text}");
    // What is paid for is served only once there is room for it.
    let each = "SELECT per_partition FROM system_cosmos.throughput WHERE keyspace_name = 'k' AND table_name = 'big'";
    assert_eq!(
        rows(&server, each).await.1[0].as_deref(),
        Some(&10_000_f64.to_be_bytes()[..])
    );
    ok(&server, "ALTER TABLE k.big WITH comment = 'other changes go on'").await;
    ok(&server, "INSERT INTO k.big (a) VALUES (1)").await;
    server.advance(std::time::Duration::from_secs(3_600));
    for _ in 0..600 {
        if partitions().await == 4 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(partitions().await, 4);
    ok(
        &server,
        "ALTER TABLE k.big WITH cosmosdb_provisioned_throughput = 30000",
    )
    .await;
    assert_eq!(partitions().await, 4);
}

#[tokio::test]
async fn a_conflict_of_writes_is_a_failed_write() {
    // 449 → 5376; the words: azure-cosmosdb-spark#196. Writes of one row wait for one another here, so that only a fault plan makes it.
    let (server, _client) = with_tables(&[]).await;
    plan(
        &server,
        "[[fault]]\naction = \"fail\"\nstatement = \"write\"\ncount = 1",
    );
    let (code, text) = refused(&server, WRITE).await;
    assert_eq!(
        (code, text.as_str()),
        (
            0x1500,
            "Conflicting request to resource has been attempted. Retry to avoid conflicts."
        ),
        "{SOURCE}"
    );
    assert!(rows(&server, READ).await.1.is_empty(), "nothing was written");
    ok(&server, WRITE).await;
}

#[tokio::test]
async fn too_few_replicas_are_unavailable() {
    // 503 → 4096. A write needs three of four replicas (partitioning.md).
    let (server, _client) = with_tables(&[]).await;
    let down = |node: u8| format!("[[fault]]\naction = \"replica-down\"\nnode = {node}\n");
    plan(&server, &down(1));
    ok(&server, WRITE).await;
    plan(&server, &format!("{}{}", down(1), down(2)));
    assert_eq!(refused(&server, WRITE).await.0, 0x1000, "{SOURCE}");
    plan(&server, "");
    ok(&server, WRITE).await;
    plan(&server, "[[fault]]\naction = \"unavailable\"");
    assert_eq!(refused(&server, READ).await.0, 0x1000, "{SOURCE}");
}
