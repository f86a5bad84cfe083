//! What is asked of physical partitions and of partition keys: splits by heat, merges when it is quiet, the keys asked most.

#![expect(clippy::unwrap_used, reason = "a test says no better what went wrong")]

use std::time::Duration;

use crate::support::{Client, printed};
use helenus::config::{Config, Values};
use helenus::server::admin::client;
use helenus_cql::cql::{QueryParams, SessionState};
use helenus_engine::engine::{PartitionLimits, PartitionSizes};
use helenus_engine::partition::LoadLimits;
use helenus_engine::throughput::RequestUnits;
use helenus_engine::views::print;

const LIMITS: LoadLimits = LoadLimits {
    units_per_second_max: RequestUnits::whole(100),
    hot_percent: 80,
    checks: 3,
};

const NO_SIZES: PartitionLimits = PartitionLimits {
    bytes_max: 1 << 40,
    merges: true,
};

impl Client {
    /// A second in which each of these keys is written once.
    async fn second(&self, table: &str, keys: impl Iterator<Item = u32>) -> u64 {
        for k in keys {
            self.ok(&format!("INSERT INTO {table} (k, v) VALUES ({k}, 'v')")).await;
        }
        self.clock.advance(Duration::from_secs(1));
        self.database
            .engine()
            .upkeep()
            .split_by_load(&LIMITS)
            .await
            .unwrap()
            .splits
    }

    fn loads(&self, table: &str) -> Vec<(i64, i64, RequestUnits)> {
        let partitions = self.database.engine().figures().partitions().into_iter();
        let of_table = partitions.filter(|of| of.keyspace == "ks" && of.table == table);
        of_table.map(|of| (of.lower, of.upper, of.per_second)).collect()
    }
}

#[tokio::test]
async fn what_stays_hot_is_split_until_it_is_not_and_merged_when_it_is_quiet() {
    let client = Client::with_keyspace("memory:").await;
    client.ok("CREATE TABLE t (k int PRIMARY KEY, v text)").await;
    // Some 300 units a second, where a partition is hot from 80.
    let mut splits = 0;
    let mut seconds = 0;
    for _ in 0..40 {
        let split = client.second("t", 0..50).await;
        seconds += 1;
        assert!(splits > 0 || split == 0 || seconds > 3, "split after {seconds} looks");
        splits += split;
    }
    let parts = client.loads("t");
    assert_eq!(parts.len() as u64, splits + 1);
    assert!((4..=10).contains(&parts.len()), "{parts:?}");
    let hot = RequestUnits::whole(80);
    assert!(parts.iter().all(|(.., per_second)| *per_second <= hot), "{parts:?}");
    let all: RequestUnits = parts.iter().map(|(.., per_second)| *per_second).sum();
    assert!(all > RequestUnits::whole(200), "{all:?}");
    let shown = client.ok("SELECT request_units_per_second FROM system_cosmos.partitions WHERE keyspace_name = 'ks'");
    let shown: f64 = printed(&shown.await)
        .iter()
        .map(|row| row.parse::<f64>().unwrap())
        .sum();
    assert!((shown - all.as_f64()).abs() < 0.5);
    // As long as they are busy none are merged, though they are small.
    let mut sizes = PartitionSizes::default();
    for _ in 0..3 {
        let done = client
            .database
            .engine()
            .upkeep()
            .repartition(NO_SIZES, &mut sizes)
            .await
            .unwrap();
        assert_eq!(done.merges, 0);
    }
    for _ in 0..60 {
        client.second("t", 0..1).await;
        client
            .database
            .engine()
            .upkeep()
            .repartition(NO_SIZES, &mut sizes)
            .await
            .unwrap();
    }
    assert_eq!(client.loads("t").len(), 1);
    assert_eq!(printed(&client.ok("SELECT count(*) FROM t").await), ["50"]);
}

#[tokio::test]
async fn what_a_split_would_not_help_is_left_as_it_is() {
    let client = Client::with_keyspace("memory:").await;
    client.ok("CREATE TABLE one (k int PRIMARY KEY, v text)").await;
    client
        .ok("CREATE TABLE provisioned (k int PRIMARY KEY, v text) WITH cosmosdb_provisioned_throughput = 4000")
        .await;
    client.ok("CREATE TABLE brief (k int PRIMARY KEY, v text)").await;
    for second in 0..12 {
        // One key has it all; the budget is divided evenly; it is hot for two looks only.
        let split = client.second("one", std::iter::repeat_n(7, 40)).await;
        assert_eq!(split, 0);
        for k in 0..40 {
            client
                .ok(&format!("INSERT INTO provisioned (k, v) VALUES ({k}, 'v')"))
                .await;
            if second % 3 != 0 {
                client.ok(&format!("INSERT INTO brief (k, v) VALUES ({k}, 'v')")).await;
            }
        }
    }
    for table in ["one", "provisioned", "brief"] {
        assert_eq!(client.loads(table).len(), 1, "{table}");
    }
}

#[tokio::test]
async fn the_keys_asked_most_are_shown() {
    let client = Client::with_keyspace("memory:").await;
    client
        .ok("CREATE TABLE t (a text, b int, c int, v text, PRIMARY KEY ((a, b), c))")
        .await;
    for number in 0..40 {
        client
            .ok(&format!(
                "INSERT INTO t (a, b, c, v) VALUES ('often', 1, {number}, 'v')"
            ))
            .await;
        client
            .ok(&format!(
                "INSERT INTO t (a, b, c, v) VALUES ('seldom', {number}, 0, 'v')"
            ))
            .await;
    }
    client.ok("SELECT * FROM t WHERE a = 'often' AND b = 1").await;
    // A scan asks for no key.
    client.ok("SELECT * FROM t").await;
    let hottest = &client.database.engine().figures().hot_keys()[0];
    assert_eq!(
        (hottest.key.as_str(), hottest.requests, hottest.requests_error),
        ("'often', 1", 41, 0)
    );
    assert!(hottest.request_units > 200.0, "{hottest:?}");
    let shown = "SELECT requests FROM system_cosmos.hot_keys WHERE keyspace_name = 'ks' AND table_name = 't' AND partition_key = '''often'', 1'";
    assert_eq!(printed(&client.ok(shown).await), ["41"]);
    client.clock.advance(Duration::from_secs(180));
    assert!(client.database.engine().figures().hot_keys().is_empty());
}

#[tokio::test]
async fn status_tells_the_keys_that_stand_out() {
    let given = [
        ("data", "memory:"),
        ("listen", "127.0.0.1:0"),
        ("admin-listen", "127.0.0.1:0"),
        ("admin-show-keys", "true"),
        ("scale-limits", "1/100000"),
    ];
    let given = given.map(|(name, value)| (name.to_owned(), vec![value.to_owned()]));
    let values = Values::gather(None, &given.into(), |_| None).unwrap();
    let server = helenus::TestServer::with(&Config::new(&values).unwrap()).await.unwrap();
    let (session, params) = (SessionState::default(), QueryParams::default());
    let value = "x".repeat(8000);
    for statement in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (k text, c int, v text, PRIMARY KEY (k, c))",
    ] {
        server.database().query(&session, statement, &params).await.unwrap();
    }
    for c in 0..10 {
        let text = format!("INSERT INTO ks.t (k, c, v) VALUES ('large', {c}, '{value}')");
        server.database().query(&session, &text, &params).await.unwrap();
    }
    let admin = server.admin_address().unwrap();
    let everything = tokio::task::spawn_blocking(move || client::everything(admin, None).unwrap())
        .await
        .unwrap();
    let (hot, large) = (&everything["keys"]["hot"][0], &everything["keys"]["largest"][0]);
    assert_eq!(
        (&hot["partition_key"], &hot["requests"]),
        (&"'large'".into(), &10.into())
    );
    assert_eq!(
        (&large["partition_key"], &large["is_watched"]),
        (&"'large'".into(), &true.into())
    );
    let (bytes, share) = (large["bytes"].as_u64().unwrap(), large["share"].as_f64().unwrap());
    assert!(bytes > 80_000 && share > 0.3, "{large:?}");
    let text = print::text(&everything);
    assert!(text.contains("\nhot key") && text.contains("\nlarge key"), "{text}");
    server.stop().await.unwrap();
}
