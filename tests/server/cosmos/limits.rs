//! How many physical partitions there are, and how large things may be.

use helenus::config::{Config, Values};
use helenus_cql::cql::{AnswerKind, QueryParams, SessionState};

use super::{ok, refused, run, with_tables};

#[tokio::test]
async fn partitions_follow_throughput() {
    // Source: scaling-provisioned-throughput-best-practices.md: at first RU / 6,000, of autoscale and shared throughput RU / 10,000, rounded
    // up; beyond 10,000 RU/s each as many more as it takes, and less is at once and leaves them.
    let (server, _client) = with_tables(&[]).await;
    let partitions = |keyspace: &str, table: &str| {
        let all = server.database().engine().figures().partitions();
        all.iter()
            .filter(|of| of.keyspace == keyspace && of.table == table)
            .count()
    };
    ok(
        &server,
        "CREATE TABLE k.manual (a int PRIMARY KEY) WITH cosmosdb_provisioned_throughput = 13000",
    )
    .await;
    ok(
        &server,
        "CREATE TABLE k.scaled (a int PRIMARY KEY) WITH cosmosdb_autoscale_max_throughput = 21000",
    )
    .await;
    ok(
        &server,
        "CREATE KEYSPACE pool WITH cosmosdb_provisioned_throughput = 21000",
    )
    .await;
    ok(&server, "CREATE TABLE pool.a (a int PRIMARY KEY)").await;
    assert_eq!(
        (
            partitions("k", "manual"),
            partitions("k", "scaled"),
            partitions("pool", "a")
        ),
        (3, 3, 3)
    );
    for (throughput, count) in [(30_000, 3), (45_000, 5), (1_000, 5)] {
        ok(
            &server,
            &format!("ALTER TABLE k.manual WITH cosmosdb_provisioned_throughput = {throughput}"),
        )
        .await;
        assert_eq!(partitions("k", "manual"), count, "{throughput}");
    }
}

#[test]
fn sizes_are_those_of_cosmos() {
    // Sources: concepts-limits.md, partitioning.md: 20 GB of a logical partition, 30 GB of a physical one, 2 MB of a row and of a request, 4 MB of
    // a page, 100 operations, 2,048 bytes of a key.
    let given = [("profile".to_owned(), vec!["cosmos".to_owned()])];
    let config = Config::new(&Values::gather(None, &given.into(), |_| None).unwrap()).unwrap();
    let limits = config.limits;
    assert_eq!(limits.logical_partition_bytes_max, Some(20 << 30));
    assert_eq!(
        (limits.row_bytes_max, limits.request_bytes_max),
        (Some(2 << 20), Some(2 << 20))
    );
    assert_eq!(
        (limits.batch_operations_max, limits.partition_key_bytes_max),
        (Some(100), Some(2048))
    );
    assert_eq!(
        (config.partitions.bytes_max, config.page_bytes_max),
        (30 << 30, 4 << 20)
    );
}

#[tokio::test]
async fn what_is_larger_is_refused() {
    let (server, _client) = with_tables(&[("scale-limits", "1/1000"), ("request-bytes-max", "20000000")]).await;
    // A logical partition is in the map of errors, as is a row. A request of rows that are small enough:
    let member =
        |ck: i32, bytes: usize| format!("INSERT INTO k.t (pk, ck, v) VALUES (1, {ck}, '{}');", "x".repeat(bytes));
    let batch = |members: Vec<String>| format!("BEGIN UNLOGGED BATCH {} APPLY BATCH", members.concat());
    let (code, _) = refused(&server, &batch((0..12).map(|ck| member(ck, 1_900)).collect())).await;
    assert_eq!(code, 0x1500);
    assert_eq!(
        refused(&server, &batch((0..101).map(|ck| member(ck, 1)).collect()))
            .await
            .0,
        0x2200
    );
    ok(&server, &batch((0..100).map(|ck| member(ck, 1)).collect())).await;
    // A page of 4 KB ends before as many rows as are asked for.
    for ck in 0..5 {
        ok(&server, &member(ck, 1_500)).await;
    }
    let params = QueryParams {
        page_size_rows: Some(5_000),
        ..QueryParams::default()
    };
    let session = SessionState::default();
    let page = server
        .database()
        .query(&session, "SELECT * FROM k.t WHERE pk = 1", &params)
        .await;
    let AnswerKind::Rows(rows) = page.unwrap().kind else {
        panic!("no rows")
    };
    assert!(rows.row_count < 5 && rows.paging_state.is_some(), "{}", rows.row_count);
    // Keys are as long as they may be, whatever the scale.
    server.advance(std::time::Duration::from_secs(60));
    ok(&server, "CREATE TABLE k.keys (a text PRIMARY KEY)").await;
    let insert = |bytes: usize| format!("INSERT INTO k.keys (a) VALUES ('{}')", "x".repeat(bytes));
    assert!(run(&server, &insert(2_048)).await.is_ok());
    assert_eq!(refused(&server, &insert(2_049)).await.0, 0x2200);
}
