//! Throughput limits: who is admitted, who is refused and with which words, what changes of tables do to budgets. On a clock that only
//! the test moves.

#![expect(clippy::unwrap_used, reason = "a test says no better what went wrong")]

use std::sync::Arc;
use std::time::Duration;

use crate::support::{Client, printed};
use helenus_base::clock::Clock;
use helenus_cql::cql::Error;
use helenus_cql::cql::{Answer, AnswerKind, QueryParams};
use helenus_engine::engine::{self, ThroughputRules};
use helenus_types::consistency::WriteKind;

const REPLICATION: &str = "replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";

impl Client {
    /// A database with these rules and the keyspace `ks`.
    async fn limited(rules: ThroughputRules) -> Self {
        let clock = Clock::manual(1_700_000_000_000_000);
        Self::open_with("memory:", clock, rules).await.in_keyspace().await
    }

    /// The time to wait that a statement is refused with, in milliseconds.
    async fn throttled(&self, text: &str) -> u64 {
        match self.run(text, QueryParams::default()).await {
            Err(error @ Error::Engine(engine::Error::Throttled { .. })) => {
                let message = error.to_string();
                let field = message.split(',').nth(1).unwrap();
                field.split('=').nth(1).unwrap().trim().parse().unwrap()
            }
            other => panic!("{text}: {other:?}"),
        }
    }

    /// Writes new rows of 5 RU each from this key on until one is refused; how many were written.
    async fn spend_all(&self, table: &str, from: i32) -> i32 {
        let mut count = 0;
        loop {
            let text = format!("INSERT INTO {table} (k) VALUES ({})", from + count);
            match self.run(&text, QueryParams::default()).await {
                Ok(answer) => assert_eq!(answer.charge.in_hundredths(), 500),
                Err(Error::Engine(engine::Error::Throttled { .. })) => return count,
                Err(other) => panic!("{text}: {other:?}"),
            }
            count += 1;
            assert!(count < 100_000);
        }
    }

    /// Columns of `system_cosmos.throughput` of a table.
    async fn throughput(&self, columns: &str, table: &str) -> String {
        let text = format!(
            "SELECT {columns} FROM system_cosmos.throughput WHERE keyspace_name = 'ks' AND table_name = '{table}'"
        );
        printed(&self.ok(&text).await).concat()
    }

    async fn balances(&self, table: &str) -> Vec<String> {
        let text = format!(
            "SELECT id, balance FROM system_cosmos.partition_throughput WHERE keyspace_name = 'ks' AND table_name = '{table}'"
        );
        printed(&self.ok(&text).await)
    }

    fn wait(&self, millis: u64) {
        self.clock.advance(Duration::from_millis(millis));
    }
}

fn unlimited() -> ThroughputRules {
    ThroughputRules::unlimited()
}

#[tokio::test]
async fn what_is_provisioned_is_admitted_and_no_more() {
    let client = Client::with_keyspace("memory:").await;
    client
        .ok("CREATE TABLE t (k int PRIMARY KEY, v text) WITH cosmosdb_provisioned_throughput = 400")
        .await;
    client.ok("CREATE TABLE free (k int PRIMARY KEY)").await;
    assert_eq!(client.spend_all("t", 0).await, 80);
    // Behind whom `fill` has met: what two small writes cost comes in 25 ms.
    assert_eq!(client.throttled("SELECT * FROM t WHERE k = 1").await, 26);
    // Reads and writes of other tables go on.
    for k in 0..200 {
        client.ok(&format!("INSERT INTO free (k) VALUES ({k})")).await;
    }
    client.wait(1);
    client.ok("SELECT * FROM t WHERE k = 1").await;
    assert!((2..=100).contains(&client.throttled("SELECT * FROM t WHERE k = 1").await));
    client.wait(10_000);
    assert_eq!(client.spend_all("t", 100).await, 80);
}

#[tokio::test]
async fn a_statement_larger_than_the_budget_runs_and_leaves_debt() {
    let client = Client::with_keyspace("memory:").await;
    client
        .ok("CREATE TABLE t (k int PRIMARY KEY, v text) WITH cosmosdb_provisioned_throughput = 400")
        .await;
    let text = "x".repeat(1_000_000);
    let answer = client.ok(&format!("INSERT INTO t (k, v) VALUES (1, '{text}')")).await;
    let cost = answer.charge.in_hundredths();
    assert!(cost > 44_000, "{cost}");
    let debt = cost - 40_000;
    assert_eq!(client.throttled("SELECT k FROM t WHERE k = 1").await, debt.div_ceil(40));
    // Who comes next is told to come behind the first, and no later than a second behind the debt.
    let second = client.throttled("UPDATE t SET v = 'x' WHERE k = 1").await;
    let batch = "BEGIN UNLOGGED BATCH INSERT INTO t (k) VALUES (1); INSERT INTO t (k) VALUES (2); APPLY BATCH";
    let third = client.throttled(batch).await;
    assert!(debt.div_ceil(40) < second && second < third && third <= debt.div_ceil(40) + 1_000);
    client.wait(debt.div_ceil(40) + 1);
    client.ok("SELECT k FROM t WHERE k = 1").await;
}

#[tokio::test]
async fn a_refusal_is_told_as_cosmos_tells_it() {
    let client = Client::with_keyspace("memory:").await;
    client
        .ok("CREATE TABLE t (k int PRIMARY KEY) WITH cosmosdb_provisioned_throughput = 400")
        .await;
    client.spend_all("t", 0).await;
    let message = client.refused("SELECT * FROM t WHERE k = 1").await;
    let (_, behind) = message.split_once("ActivityID=").unwrap();
    let id = &behind[..36];
    assert_eq!(
        message,
        format!(
            "Request rate is large: ActivityID={id}, RetryAfterMs=26, Additional details='Response status code does not indicate \
             success: TooManyRequests (429); Substatus: 3200; ActivityId: {id}; Reason: ({{\n  \"Errors\": [\n    \"Request rate is \
             large. More Request Units may be needed, so no changes were made. Please retry this request later. Learn more: \
             http://aka.ms/cosmosdb-error-429\"\n  ]\n}});"
        )
    );
    assert_ne!(message, client.refused("SELECT * FROM t WHERE k = 1").await);
    // Nothing was charged for refusals, and nothing was changed.
    client.wait(1000);
    let before = client.balances("t").await;
    assert_eq!(before, ["0 400.0"]);
    let throttles = "SELECT table_name, partition_id, balance, retry_after_ms, retried, statement FROM system_cosmos.throttles \
                     WHERE keyspace_name = 'ks' LIMIT 1";
    assert_eq!(
        printed(&client.ok(throttles).await),
        [r#""t" 0 0.0 51 false "SELECT * FROM t WHERE k = ?""#]
    );
}

#[tokio::test]
async fn each_partition_has_its_share() {
    let client = Client::with_keyspace("memory:").await;
    client
        .ok("CREATE TABLE t (k int PRIMARY KEY) WITH cosmosdb_provisioned_throughput = 800 AND helenus_partitions = 2")
        .await;
    client.ok("CREATE TABLE keys (k int PRIMARY KEY)").await;
    for k in 0..400 {
        client.ok(&format!("INSERT INTO keys (k) VALUES ({k})")).await;
    }
    let keys = |sign: &'static str| {
        let text = format!("SELECT k FROM keys WHERE token(k) {sign} 0");
        let client = &client;
        async move { printed(&client.ok(&text).await) }
    };
    let (left, right) = (keys("<").await, keys(">=").await);
    for k in left.iter().take(80) {
        client.ok(&format!("INSERT INTO t (k) VALUES ({k})")).await;
    }
    assert_eq!(
        client
            .throttled(&format!("INSERT INTO t (k) VALUES ({})", left[80]))
            .await,
        1
    );
    client.ok(&format!("INSERT INTO t (k) VALUES ({})", right[0])).await;
    // A statement that concerns both is refused as a whole.
    client.throttled("SELECT * FROM t").await;
    let both = format!("SELECT * FROM t WHERE k IN ({}, {})", left[0], right[0]);
    client.throttled(&both).await;
    let batch = format!(
        "BEGIN UNLOGGED BATCH INSERT INTO t (k) VALUES ({}); INSERT INTO t (k) VALUES ({}); APPLY BATCH",
        right[1], left[81]
    );
    client.throttled(&batch).await;
    assert_eq!(client.balances("t").await, ["0 0.0", "1 395.0"]);
    let shown = client.throughput(
        "provisioned, partitions, per_partition, normalized_consumption, minimum",
        "t",
    );
    assert_eq!(shown.await, "800 2 400.0 100 400");
    client.wait(100);
    client.ok(&both).await;
    client.ok("SELECT * FROM t").await;
}

#[tokio::test]
async fn splits_and_other_rates_carry_debts() {
    let client = Client::with_keyspace("memory:").await;
    client
        .ok("CREATE TABLE t (k int PRIMARY KEY, v text) WITH cosmosdb_provisioned_throughput = 400")
        .await;
    let text = "x".repeat(1_000_000);
    let cost = client
        .ok(&format!("INSERT INTO t (k, v) VALUES (1, '{text}')"))
        .await
        .charge
        .in_hundredths();
    let debt = cost - 40_000;
    for change in [
        "ALTER TABLE t WITH cosmosdb_provisioned_throughput = 4000",
        // Half of the debt, half of the rate.
        "ALTER TABLE t WITH helenus_split_at = 0",
        "ALTER TABLE t WITH helenus_merge = {'left': 1, 'right': 2}",
    ] {
        client.ok(change).await;
        let millis = client.throttled("SELECT k FROM t WHERE k = 1").await;
        assert_eq!(millis, debt.div_ceil(400), "{change}");
    }
    client.ok("TRUNCATE t").await;
    // Still in debt; who comes is told to come behind the one before.
    let again = client.throttled("SELECT k FROM t WHERE k = 1").await;
    assert!(again > debt.div_ceil(400) && again <= debt.div_ceil(400) + 1_000);
    client
        .ok("ALTER TABLE t WITH cosmosdb_provisioned_throughput = 40000")
        .await;
    assert_eq!(
        client.throughput("provisioned, partitions, per_partition", "t").await,
        "40000 4 10000.0"
    );
    client.throttled("SELECT k FROM t").await;
}

#[tokio::test]
async fn without_metering_nothing_is_charged_and_nothing_may_have_throughput() {
    let client = Client::limited(ThroughputRules {
        is_metered: false,
        ..unlimited()
    })
    .await;
    client.ok("CREATE TABLE t (k int PRIMARY KEY, v text)").await;
    for text in [
        "INSERT INTO t (k, v) VALUES (1, 'a')",
        "SELECT * FROM t",
        "SELECT count(*) FROM t",
    ] {
        assert_eq!(client.ok(text).await.charge.in_hundredths(), 0, "{text}");
    }
    for refused in [
        "ALTER TABLE t WITH cosmosdb_provisioned_throughput = 400",
        "CREATE TABLE other (k int PRIMARY KEY) WITH cosmosdb_autoscale_max_throughput = 4000",
    ] {
        let told = client.refused(refused).await;
        assert!(told.ends_with("it was started without metering"), "{told}");
    }
    // What it would cost is told all the same.
    let told = printed(&client.ok("EXPLAIN SELECT * FROM t WHERE k = 1").await).concat();
    assert!(
        told.contains("request units in all") && !told.contains("0.00 request units in all"),
        "{told}"
    );
}

#[tokio::test]
async fn floors_follow_what_there_ever_was() {
    let client = Client::with_keyspace("memory:").await;
    client
        .ok("CREATE TABLE t (k int PRIMARY KEY) WITH cosmosdb_provisioned_throughput = 100000")
        .await;
    client
        .ok("CREATE TABLE a (k int PRIMARY KEY) WITH cosmosdb_autoscale_max_throughput = 50000")
        .await;
    assert_eq!(
        client
            .refused("ALTER TABLE t WITH cosmosdb_provisioned_throughput = 400")
            .await,
        "{\"Errors\":[\"The offer should have valid throughput values between 1000 and 1000000 inclusive in increments of 100. \
         Requested throughput 400 is less than required minimum throughput 1000. Minimum limit 1000 is because of Highest RUs \
         provisioned 100000.\"]}"
    );
    assert_eq!(
        client
            .refused("ALTER TABLE a WITH cosmosdb_autoscale_max_throughput = 4000")
            .await,
        "{\"Errors\":[\"The offer should have valid throughput values between 5000 and 1000000 inclusive in increments of 1000. \
         Requested throughput 4000 is less than required minimum throughput 5000. Minimum limit 5000 is because of Highest RUs \
         provisioned 50000.\"]}"
    );
    client
        .ok("ALTER TABLE t WITH cosmosdb_provisioned_throughput = 1000")
        .await;
    assert_eq!(
        client.throughput("provisioned, minimum, partitions", "t").await,
        "1000 1000 17"
    );
}

#[tokio::test]
async fn a_keyspace_shares_its_throughput() {
    let client = Client::with_keyspace("memory:").await;
    client
        .ok(&format!(
            "CREATE KEYSPACE shared WITH {REPLICATION} AND cosmosdb_provisioned_throughput = 400"
        ))
        .await;
    for table in ["shared.a", "shared.b"] {
        client.ok(&format!("CREATE TABLE {table} (k int PRIMARY KEY)")).await;
    }
    client
        .ok("CREATE TABLE shared.own (k int PRIMARY KEY) WITH cosmosdb_provisioned_throughput = 400")
        .await;
    assert_eq!(client.spend_all("shared.a", 0).await, 80);
    assert_eq!(client.spend_all("shared.b", 0).await, 0);
    assert_eq!(client.spend_all("shared.own", 0).await, 80);
    client
        .ok("ALTER KEYSPACE shared WITH cosmosdb_provisioned_throughput = 800")
        .await;
    // More from now on, nothing at once.
    assert_eq!(client.spend_all("shared.b", 0).await, 0);
    client.wait(1000);
    assert_eq!(
        client.spend_all("shared.b", 0).await + client.spend_all("shared.a", 1000).await,
        160
    );
    client.ok("CREATE TABLE shared.c (k int PRIMARY KEY)").await;
    assert_eq!(client.spend_all("shared.c", 0).await, 0);
    assert_eq!(
        client
            .refused("ALTER TABLE shared.a WITH cosmosdb_provisioned_throughput = 400")
            .await,
        "Cannot set provisioned throughput for a table that uses its keyspace's shared throughput"
    );
    let text =
        "SELECT table_name, provisioned, shared, minimum FROM system_cosmos.throughput WHERE keyspace_name = 'shared'";
    assert_eq!(
        printed(&client.ok(text).await),
        [
            r#""" 800 true 400"#,
            r#""a" 800 true 400"#,
            r#""b" 800 true 400"#,
            r#""c" 800 true 400"#,
            r#""own" 400 false 400"#
        ]
    );
}

#[tokio::test]
async fn autoscale_gives_all_at_once_and_follows_use() {
    let client = Client::with_keyspace("memory:").await;
    client
        .ok("CREATE TABLE t (k int PRIMARY KEY) WITH cosmosdb_autoscale_max_throughput = 1000")
        .await;
    let columns = "autoscale_max, current, highest_in_hour, minimum";
    assert_eq!(client.throughput(columns, "t").await, "1000 100 100 1000");
    assert_eq!(client.spend_all("t", 0).await, 200);
    for second in 1..7 {
        client.wait(1000);
        assert_eq!(client.spend_all("t", second * 1000).await, 200);
    }
    assert_eq!(client.throughput(columns, "t").await, "1000 1000 1000 1000");
    for _ in 0..5 {
        client.wait(1000);
        client.ok("SELECT * FROM t WHERE k = 1").await;
    }
    client.wait(1000);
    assert_eq!(client.throughput(columns, "t").await, "1000 100 1000 1000");
}

#[tokio::test]
async fn bursts_are_banked_where_they_are_allowed() {
    let rules = ThroughputRules {
        bursts: true,
        ..unlimited()
    };
    let client = Client::limited(rules).await;
    client
        .ok("CREATE TABLE t (k int PRIMARY KEY) WITH cosmosdb_provisioned_throughput = 400")
        .await;
    assert_eq!(client.spend_all("t", 0).await, 80);
    client.wait(1000);
    // A second's worth and a second of three thousand follow each other as time goes.
    client.wait(60_000);
    let mut written = client.spend_all("t", 1_000).await;
    for step in 0..10 {
        client.wait(100);
        written += client.spend_all("t", 10_000 + 1_000 * step).await;
    }
    assert!((670..=690).contains(&written), "{written}");
}

#[tokio::test]
async fn a_table_without_an_option_has_400_in_cosmos() {
    let client = Client::limited(ThroughputRules::cosmos()).await;
    client.ok("CREATE TABLE t (k int PRIMARY KEY)").await;
    assert_eq!(client.spend_all("t", 0).await, 80);
    client
        .ok("ALTER TABLE t WITH cosmosdb_provisioned_throughput = 800")
        .await;
    assert_eq!(client.spend_all("t", 1000).await, 0);
    client.wait(1000);
    assert_eq!(client.spend_all("t", 1000).await, 160);
}

#[tokio::test]
async fn metadata_has_a_budget_of_its_own_in_cosmos() {
    let client = Client::limited(ThroughputRules::cosmos()).await;
    let read = "SELECT * FROM system_schema.keyspaces";
    let mut count = 0;
    while client.run(read, QueryParams::default()).await.is_ok() {
        count += 1;
        assert!(count < 300);
    }
    // One statement made the keyspace.
    assert_eq!(count, 239);
    client.throttled("CREATE TABLE t (k int PRIMARY KEY)").await;
    client.ok("SELECT * FROM system.local").await;
    client.wait(100);
    client.ok("CREATE TABLE t (k int PRIMARY KEY)").await;
}

#[tokio::test]
async fn ddl_takes_throughput_from_its_payload() {
    let client = Client::with_keyspace("memory:").await;
    let with = |name: &str, value: &'static str| QueryParams {
        payload: vec![(name.to_owned(), bytes::Bytes::from_static(value.as_bytes()))],
        ..QueryParams::default()
    };
    let create = "CREATE TABLE t (k int PRIMARY KEY)";
    let provisioned = "cosmosdb_provisioned_throughput";
    let error = client.run(create, with(provisioned, "450")).await.unwrap_err();
    assert!(error.to_string().contains("increments of 100"), "{error}");
    let error = client.run(create, with(provisioned, "many")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("Invalid integer value many for '{provisioned}'")
    );
    client.run(create, with(provisioned, "500")).await.unwrap();
    assert_eq!(client.throughput("provisioned", "t").await, "500");
    let alter = "ALTER TABLE t WITH comment = 'x'";
    client.run(alter, with(provisioned, "600")).await.unwrap();
    assert_eq!(client.throughput("provisioned", "t").await, "600");
    let create = format!("CREATE KEYSPACE auto WITH {REPLICATION}");
    client
        .run(&create, with("cosmosdb_autoscale_max_throughput", "4000"))
        .await
        .unwrap();
    let text = "SELECT autoscale_max FROM system_cosmos.throughput WHERE keyspace_name = 'auto'";
    assert_eq!(printed(&client.ok(text).await), ["4000"]);
}

/// Advances the test's clock until a statement has ended.
async fn until_done(client: &Arc<Client>, text: &'static str, step_millis: u64) -> Result<Answer, Error> {
    let asking = {
        let client = Arc::clone(client);
        tokio::spawn(async move { client.run(text, QueryParams::default()).await })
    };
    let mut waited = 0;
    while !asking.is_finished() {
        tokio::time::sleep(Duration::from_millis(5)).await;
        client.wait(step_millis);
        waited += step_millis;
        assert!(waited < 600_000);
    }
    asking.await.unwrap()
}

#[tokio::test]
async fn with_server_side_retry_statements_wait_inside() {
    let rules = ThroughputRules {
        server_side_retry: true,
        waiting_max: 1,
        ..unlimited()
    };
    let client = Arc::new(Client::limited(rules).await);
    client
        .ok("CREATE TABLE t (k int PRIMARY KEY, v text) WITH cosmosdb_provisioned_throughput = 400")
        .await;
    let text = "x".repeat(1_000_000);
    client.ok(&format!("INSERT INTO t (k, v) VALUES (1, '{text}')")).await;
    let answer = until_done(&client, "SELECT k FROM t WHERE k = 1", 20).await;
    assert!(matches!(answer.unwrap().kind, AnswerKind::Rows(_)));
    let throttles = "SELECT retried, admitted FROM system_cosmos.throttles WHERE keyspace_name = 'ks'";
    assert_eq!(printed(&client.ok(throttles).await), ["true true"]);
}

#[tokio::test]
async fn who_waits_for_a_minute_has_timed_out() {
    let rules = ThroughputRules {
        server_side_retry: true,
        waiting_max: 1,
        ..unlimited()
    };
    let client = Arc::new(Client::limited(rules).await);
    client
        .ok("CREATE TABLE t (k int PRIMARY KEY, v text) WITH cosmosdb_provisioned_throughput = 400 AND helenus_partitions = 100")
        .await;
    let text = "x".repeat(1_000_000);
    // 4 RU/s in each of a hundred partitions: a debt of some hundred seconds.
    client.ok(&format!("INSERT INTO t (k, v) VALUES (1, '{text}')")).await;
    // One waits; a second does not find a place.
    let waiting = {
        let client = Arc::clone(&client);
        tokio::spawn(async move { client.run("INSERT INTO t (k) VALUES (1)", QueryParams::default()).await })
    };
    let mut overloaded = false;
    for _ in 0..1000 {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let asked = tokio::time::timeout(
            Duration::from_millis(500),
            client.run("SELECT k FROM t WHERE k = 1", QueryParams::default()),
        );
        if let Ok(Err(Error::Engine(engine::Error::Throttled { .. }))) = asked.await {
            overloaded = true;
            break;
        }
    }
    assert!(overloaded);
    while !waiting.is_finished() {
        client.wait(1000);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let error = waiting.await.unwrap().unwrap_err();
    assert!(
        matches!(
            error,
            Error::Engine(engine::Error::WriteTimeout {
                write_kind: WriteKind::Simple,
                ..
            })
        ),
        "{error:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_at_once_do_not_borrow_more_than_their_own_debt() {
    const TASKS: i32 = 64;
    let client = Arc::new(Client::with_keyspace("memory:").await);
    client
        .ok("CREATE TABLE t (k int PRIMARY KEY) WITH cosmosdb_provisioned_throughput = 4000")
        .await;
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let client = Arc::clone(&client);
            tokio::spawn(async move { client.spend_all("t", task * 1_000_000).await })
        })
        .collect();
    let mut written = 0;
    for task in tasks {
        written += task.await.unwrap();
    }
    // The clock stands still: one second's worth, and at most one statement of each for the debt. Somebody may be refused while
    // others are in flight, and all of them stop at their first refusal.
    assert!(written * 5 <= 4000 + TASKS * 5, "{written}");
    let balance: f64 = client.balances("t").await[0]
        .split(' ')
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    assert!(
        (f64::from(4000 - written * 5) - balance).abs() < 0.01,
        "{written} {balance}"
    );
}

#[tokio::test]
async fn conditions_and_pages_are_charged_too() {
    let client = Client::with_keyspace("memory:").await;
    client
        .ok("CREATE TABLE t (k int, c int, PRIMARY KEY (k, c)) WITH cosmosdb_provisioned_throughput = 400")
        .await;
    let answer = client.ok("INSERT INTO t (k, c) VALUES (1, 1) IF NOT EXISTS").await;
    let spent = answer.charge.in_hundredths();
    assert!(spent >= 600, "{spent}");
    let text = client.balances("t").await;
    #[expect(clippy::cast_precision_loss, reason = "small")]
    let left = 400.0 - spent as f64 / 100.0;
    assert_eq!(text, [format!("0 {left:?}")]);
    client.wait(1000);
    for c in 0..70 {
        client.ok(&format!("INSERT INTO t (k, c) VALUES (1, {c})")).await;
    }
    client.wait(2000);
    let pages = client.pages("SELECT * FROM t WHERE k = 1", 10).await;
    assert_eq!(pages.concat().len(), 70);
}

#[tokio::test]
async fn lowered_throughput_that_partitions_share_is_warned_of() {
    let client = Client::limited(ThroughputRules::default()).await;
    let with = |units: u32| format!("WITH cosmosdb_provisioned_throughput = {units}");
    client
        .ok(&format!("CREATE TABLE t (k int PRIMARY KEY) {}", with(12_000)))
        .await;
    let warnings = client.ok(&format!("ALTER TABLE t {}", with(400))).await.warnings;
    assert_eq!(
        warnings,
        [
            "ks.t keeps its 2 physical partitions: each has 200 of its 400 request units a second, and a partition key gets no more than that"
        ]
    );
    let raised = client.ok(&format!("ALTER TABLE t {}", with(500))).await.warnings;
    assert!(raised.is_empty(), "{raised:?}");
    client
        .ok(&format!("CREATE TABLE one (k int PRIMARY KEY) {}", with(4_000)))
        .await;
    let one = client.ok(&format!("ALTER TABLE one {}", with(400))).await.warnings;
    assert!(one.is_empty(), "{one:?}");
}
