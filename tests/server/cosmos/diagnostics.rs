//! What can be seen of requests, and of what they cost.

use super::{connect, ok, refused, rows, run, with_tables};
use crate::support::printed;

#[tokio::test]
async fn requests_are_logged_under_the_names_of_cosmos() {
    // Source: the table CDBCassandraRequests of Azure Monitor's reference.
    let (server, mut client) = with_tables(&[("region", "West US"), ("cluster-name", "another")]).await;
    client
        .query(1, "INSERT INTO k.t (pk, ck, v) VALUES (1, 1, 'secret')")
        .await;
    assert_eq!(client.frame().await.unwrap().opcode, 8);
    client.query(1, "SELECT nothing FROM k.t").await;
    assert_eq!(client.frame().await.unwrap().opcode, 0);
    let log = rows(&server, "SELECT * FROM system_cosmos.request_log").await;
    for column in [
        "account_name",
        "activity_id",
        "address",
        "authorization_token_type",
        "collection_name",
        "database_name",
        "duration_ms",
        "error_code",
        "operation_name",
        "pii_command_text",
        "rate_limiting_delay_ms",
        "region_name",
        "request_charge",
        "request_length",
        "response_length",
        "retried_due_to_rate_limiting",
        "retry_count",
        "time_generated",
        "user_agent",
    ] {
        assert!(log.0.iter().any(|name| name == column), "{column}");
    }
    let select =
        "SELECT database_name, collection_name, error_code, region_name, request_charge FROM system_cosmos.request_log";
    let logged = printed(&run(&server, select).await.unwrap());
    // Success is −1.
    assert!(
        logged.iter().any(|row| row == r#""k" "t" -1 "West US" 5.0"#),
        "{logged:?}"
    );
    let account = printed(
        &run(&server, "SELECT account_name FROM system_cosmos.request_log LIMIT 1")
            .await
            .unwrap(),
    );
    assert_eq!(account, [r#""unit""#], "the account, not the name of the cluster");
    let texts = printed(
        &run(&server, "SELECT pii_command_text FROM system_cosmos.request_log")
            .await
            .unwrap(),
    );
    assert!(!texts.concat().contains("secret"), "values are not logged: {texts:?}");
}

#[tokio::test]
async fn what_comes_together_is_logged_one_by_one() {
    // Source: the same. Six statements in turn, more than a page of the log has at hand.
    let (server, mut client) = with_tables(&[]).await;
    let asked = |number: i16| {
        let columns = ["pk", "ck", "v", "pk, ck", "pk, v", "ck, v"][usize::try_from(number % 6).unwrap()];
        format!("SELECT {columns} FROM k.t WHERE pk = {}", number % 3)
    };
    for number in 0..60 {
        client.query(number, &asked(number)).await;
    }
    for _ in 0..60 {
        assert_eq!(client.frame().await.unwrap().opcode, 8);
    }
    let select = "SELECT pii_command_text FROM system_cosmos.request_log";
    let logged = printed(&run(&server, select).await.unwrap());
    let last = logged.iter().filter(|text| text.contains("WHERE pk")).cloned();
    let mut expected: Vec<String> = (0..60)
        .map(|number| format!("{:?}", asked(number).replace(&format!("= {}", number % 3), "= ?")))
        .collect();
    let mut last: Vec<String> = last.collect();
    // Answers of one connection need not be in order, nor are they logged so.
    expected.sort();
    last.sort();
    assert_eq!(last, expected);
}

#[tokio::test]
async fn throttles_are_logged_with_their_code() {
    // Source: monitor-reference.md: 429 is logged as 4097.
    let (server, _client) = with_tables(&[]).await;
    let mut client = connect(&server).await;
    ok(
        &server,
        "CREATE TABLE k.small (a int PRIMARY KEY, v text) WITH cosmosdb_provisioned_throughput = 400",
    )
    .await;
    let insert = format!("INSERT INTO k.small (a, v) VALUES (1, '{}')", "x".repeat(900_000));
    for opcode in [8, 0] {
        client.query(1, &insert).await;
        assert_eq!(client.frame().await.unwrap().opcode, opcode);
    }
    let codes = printed(
        &run(&server, "SELECT error_code FROM system_cosmos.request_log")
            .await
            .unwrap(),
    );
    assert!(codes.contains(&"4097".to_owned()), "{codes:?}");
    assert_eq!(refused(&server, &insert).await.0, 4097);
}

#[tokio::test]
async fn use_is_told_for_each_partition_and_key() {
    // Sources: the metric NormalizedRUConsumption (monitor-reference.md), the table CDBPartitionKeyRUConsumption.
    let (server, _client) = with_tables(&[]).await;
    ok(
        &server,
        "CREATE TABLE k.seen (a int PRIMARY KEY, v text) WITH cosmosdb_provisioned_throughput = 400",
    )
    .await;
    for _ in 0..20 {
        run(&server, "INSERT INTO k.seen (a, v) VALUES (7, 'x')").await.unwrap();
    }
    let used = "SELECT normalized_consumption FROM system_cosmos.partition_throughput WHERE keyspace_name = 'k' AND table_name = 'seen'";
    let percent: u8 = printed(&run(&server, used).await.unwrap())[0].parse().unwrap();
    // 5 RU for a new row and 10 for each write over it, of 400.
    assert!((45..=50).contains(&percent), "{percent}");
    let keys = printed(
        &run(
            &server,
            "SELECT table_name, partition_key FROM system_cosmos.hot_keys WHERE keyspace_name = 'k'",
        )
        .await
        .unwrap(),
    );
    assert!(keys.contains(&r#""seen" "7""#.to_owned()), "{keys:?}");
}
