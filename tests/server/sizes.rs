//! The sizes of physical partitions while a loader is at work: a server splits them by the bytes written, long before the next check of sizes.

use std::time::Duration;

use crate::raw::Client;
use crate::shapes::Partitions;
use helenus::TestServer;
use helenus::server::admin::client;
use helenus_base::clock::Clock;
use helenus_types::wire::Version;

/// With checks of sizes a minute apart, as by default. A partition may outgrow the limit by an eighth before it is measured again
/// (engine/written.rs), so how large each part is depends on when the checks fell into the loading.
#[tokio::test]
async fn partitions_that_are_filled_fast_are_split_before_the_next_check_of_sizes() {
    const LIMIT: u64 = 100_000;
    const GROWN_MAX: u64 = LIMIT + LIMIT / 8;
    let server = TestServer::builder()
        .set("admin-listen", "127.0.0.1:0")
        .set("partition-bytes-max", &LIMIT.to_string())
        .start()
        .await
        .unwrap();
    let admin = server.admin_address().unwrap();
    let mut client = Client::ready(server.address(), Version::V4).await;
    let value = "x".repeat(1000);
    let tables = [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}".to_owned(),
        "CREATE TABLE ks.t (k int PRIMARY KEY, v text)".to_owned(),
    ];
    let rows = (0..900).map(|k| format!("INSERT INTO ks.t (k, v) VALUES ({k}, '{value}')"));
    for statement in tables.into_iter().chain(rows) {
        client.query(1, &statement).await;
        assert_eq!(client.frame().await.unwrap().opcode, 8, "{statement}");
    }
    let clock = Clock::system();
    let bytes = loop {
        let (_, text) = client::get(admin, "/api/partitions").unwrap();
        let shown: Partitions = serde_json::from_str(&text).unwrap();
        let of_table = shown.partitions.iter().filter(|partition| partition.keyspace == "ks");
        let bytes: Vec<u64> = of_table.map(|partition| partition.bytes).collect();
        if bytes.iter().all(|bytes| *bytes <= GROWN_MAX) {
            break bytes;
        }
        assert!(
            clock.monotonic() < Duration::from_secs(20),
            "still too large: {bytes:?}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert!(bytes.len() >= 8, "{bytes:?}");
    assert!(bytes.iter().sum::<u64>() >= 900_000, "{bytes:?}");
    server.stop().await.unwrap();
}
