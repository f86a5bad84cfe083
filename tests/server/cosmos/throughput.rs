//! Request units a second: who is admitted, who is refused and in which words.

use std::sync::Arc;
use std::time::Duration;

use helenus::TestServer;
use helenus_cql::cql::{QueryParams, SessionState};
use helenus_engine::engine::Error as Failure;

use super::Expect::{Error, Ok as Fine};
use super::{Row, check, check_in_turn, ok, refused, run, with_tables};
use crate::support::printed;

const DDL: &[Row] = &[
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
        "A DDL throughput: keyspace without",
        "lab 2",
        "CREATE KEYSPACE r WITH durable_writes = true",
        Fine,
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
    (
        "A DDL throughput: keyspace",
        "scale-account-throughput.md",
        "CREATE KEYSPACE shared WITH cosmosdb_provisioned_throughput = 1000",
        Fine,
    ),
    (
        "A DDL throughput: ALTER KEYSPACE",
        "lab 2",
        "ALTER KEYSPACE shared WITH cosmosdb_provisioned_throughput = 2000",
        Fine,
    ),
    (
        "A DDL throughput: ALTER TABLE",
        "scale-account-throughput.md",
        "ALTER TABLE k.ru WITH cosmosdb_provisioned_throughput = 1200",
        Fine,
    ),
    (
        "A DDL throughput: steps of autoscale",
        "lab 2",
        "ALTER TABLE k.auto WITH cosmosdb_autoscale_max_throughput = 4500",
        Error(0x2200, "inclusive in increments of 1000."),
    ),
    (
        "A DDL throughput: more than there is",
        "lab 2",
        "ALTER TABLE k.ru WITH cosmosdb_provisioned_throughput = 1000100",
        Error(0x2200, "1000000 inclusive in increments of 100."),
    ),
];

#[tokio::test]
async fn throughput_is_asked_for_as_in_cosmos() {
    check_in_turn(DDL).await;
}

#[tokio::test]
async fn throughput_is_taken_from_the_payload_of_ddl() {
    // Source: faq.yml: the option's name as the key, its value as decimal text.
    let (server, _client) = with_tables(&[]).await;
    let with = |value: &'static str| QueryParams {
        payload: vec![("cosmosdb_provisioned_throughput".to_owned(), value.into())],
        ..QueryParams::default()
    };
    let session = SessionState::default();
    let create = "CREATE TABLE k.paid (a int PRIMARY KEY)";
    let wrong = server.database().query(&session, create, &with("450")).await;
    assert!(wrong.unwrap_err().to_string().contains("increments of 100"));
    server.database().query(&session, create, &with("500")).await.unwrap();
    let shown = "SELECT provisioned FROM system_cosmos.throughput WHERE keyspace_name = 'k' AND table_name = 'paid'";
    assert_eq!(printed(&ok(&server, shown).await), ["500"]);
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

/// The rule of Go programs: the mark of a throttle, then the second field.
fn second_field_millis(text: &str) -> Option<u64> {
    let field = text
        .contains("TooManyRequests (429)")
        .then(|| text.split(',').nth(1))??;
    field.split('=').nth(1)?.trim().parse().ok()
}

/// The time to wait that a statement is refused with, in milliseconds; `None`: it is carried out.
async fn told(server: &TestServer, statement: &str) -> Option<u64> {
    match run(server, statement).await {
        Ok(_) => None,
        Err(error @ helenus_cql::cql::Error::Engine(Failure::Throttled { .. })) => {
            let text = error.to_string();
            let millis = retry_after_millis(&text).unwrap();
            assert_eq!(second_field_millis(&text), Some(millis), "{text}");
            Some(millis)
        }
        Err(error) => panic!("{statement}: {error}"),
    }
}

/// Writes new rows of 5 RU each until one is refused; how many.
async fn fill(server: &TestServer, table: &str, from: u32) -> u32 {
    for count in 0..100_000 {
        let insert = format!("INSERT INTO {table} (a) VALUES ({})", from + count);
        if told(server, &insert).await.is_some() {
            return count;
        }
    }
    panic!("{table}: nothing is refused");
}

async fn table(server: &TestServer, name: &str, option: &str) {
    ok(
        server,
        &format!("CREATE TABLE {name} (a int PRIMARY KEY, v text) WITH {option}"),
    )
    .await;
}

#[tokio::test]
async fn a_statement_runs_into_debt_which_is_repaid_first() {
    // Source: StackOverflow 55149423: admitted while the balance is positive, carried out whatever it costs; 800 RU at once of 400 a second
    // are paid off after a little less than two seconds, the first of which was there.
    let (server, _client) = with_tables(&[]).await;
    table(&server, "k.debt", "cosmosdb_provisioned_throughput = 400").await;
    let insert = format!("INSERT INTO k.debt (a, v) VALUES (1, '{}')", "x".repeat(900_000));
    let cost = run(&server, &insert).await.unwrap().charge.in_hundredths();
    assert!(cost > 40_000, "{cost}");
    let read = "SELECT a FROM k.debt WHERE a = 1";
    assert_eq!(told(&server, read).await, Some((cost - 40_000).div_ceil(40)));
    // Another one who comes meanwhile is told to come behind the first.
    let second = told(&server, read).await.unwrap();
    assert!(second > (cost - 40_000).div_ceil(40) && second <= (cost - 40_000).div_ceil(40) + 1_000);
    server.advance(Duration::from_millis((cost - 40_000).div_ceil(40) + 1));
    assert_eq!(told(&server, read).await, None);
    // Nothing is charged for what was refused.
    server.advance(Duration::from_secs(2));
    assert_eq!(fill(&server, "k.debt", 10).await, 80);
}

#[tokio::test]
async fn a_hot_partition_is_refused_while_others_are_idle() {
    // Source: troubleshoot-request-rate-too-large.md: R / P for each physical partition.
    let (server, _client) = with_tables(&[]).await;
    table(
        &server,
        "k.hot",
        "cosmosdb_provisioned_throughput = 800 AND helenus_partitions = 2",
    )
    .await;
    let mut of = [None; 2];
    for a in 0..50 {
        ok(&server, &format!("INSERT INTO k.hot (a) VALUES ({a})")).await;
        let token = printed(&ok(&server, &format!("SELECT token(a) FROM k.hot WHERE a = {a}")).await).concat();
        of[usize::from(!token.starts_with('-'))] = Some(a);
    }
    let [left, right] = of.map(Option::unwrap);
    let update = |a: i32| format!("UPDATE k.hot SET v = 'x' WHERE a = {a}");
    let mut written = 0;
    while told(&server, &update(left)).await.is_none() {
        written += 1;
        assert!(written < 100, "no more than its half");
    }
    assert_eq!(told(&server, &update(right)).await, None);
}

/// The keyspace `pool` of 400 RU/s, in it the table `a`, which shares them, and `own`, which has 400 of its own.
async fn with_pool() -> TestServer {
    let (server, _client) = with_tables(&[]).await;
    let pool = "CREATE KEYSPACE pool WITH cosmosdb_provisioned_throughput = 400";
    ok(&server, pool).await;
    ok(&server, "CREATE TABLE pool.a (a int PRIMARY KEY)").await;
    table(&server, "pool.own", "cosmosdb_provisioned_throughput = 400").await;
    server
}

#[tokio::test]
async fn tables_of_a_keyspace_share_its_throughput() {
    // Source: set-throughput, "shared throughput": no guarantee for one table.
    let server = with_pool().await;
    ok(&server, "CREATE TABLE pool.b (a int PRIMARY KEY)").await;
    assert_eq!(fill(&server, "pool.a", 0).await, 80);
    assert_eq!(fill(&server, "pool.b", 0).await, 0);
    assert_eq!(fill(&server, "pool.own", 0).await, 80);
}

#[tokio::test]
async fn more_for_a_keyspace_is_more_for_its_tables() {
    // Source: scaling-provisioned-throughput-best-practices.md: partitions for what is asked for, 10,000 RU/s each.
    let server = with_pool().await;
    ok(
        &server,
        "ALTER KEYSPACE pool WITH cosmosdb_provisioned_throughput = 35000",
    )
    .await;
    let partitions = |table: &str| {
        server
            .database()
            .engine()
            .figures()
            .partitions()
            .iter()
            .filter(|of| of.keyspace == "pool" && of.table == table)
            .count()
    };
    assert_eq!((partitions("a"), partitions("own")), (4, 1));
    ok(&server, "CREATE TABLE pool.later (a int PRIMARY KEY)").await;
    assert_eq!(partitions("later"), 4);
    // All of it can be spent, though no partition alone has more than 10,000.
    assert!(fill(&server, "pool.a", 0).await > 10_000 / 5);
}

#[tokio::test]
async fn bursts_spend_what_was_saved() {
    // Source: burst-capacity.md: 300 s of what was not spent, at up to 3,000 RU/s, by partitions of less than that.
    let (server, _client) = with_tables(&[("burst-capacity", "true")]).await;
    table(&server, "k.burst", "cosmosdb_provisioned_throughput = 400").await;
    server.advance(Duration::from_secs(600));
    let banked =
        "SELECT banked FROM system_cosmos.partition_throughput WHERE keyspace_name = 'k' AND table_name = 'burst'";
    assert_eq!(printed(&run(&server, banked).await.unwrap()), ["120000.0"]);
    let mut written = fill(&server, "k.burst", 0).await;
    for step in 1..=10 {
        server.advance(Duration::from_millis(100));
        written += fill(&server, "k.burst", step * 10_000).await;
    }
    // A full second's budget, and a second at 3,000.
    assert!((670..=690).contains(&written), "{written}");
}

#[tokio::test]
async fn autoscale_lies_between_a_tenth_and_all() {
    // Source: provision-throughput-autoscale.md.
    let (server, _client) = with_tables(&[]).await;
    table(&server, "k.scaled", "cosmosdb_autoscale_max_throughput = 1000").await;
    let shown = "SELECT autoscale_max, current, minimum FROM system_cosmos.throughput WHERE keyspace_name = 'k' AND table_name = 'scaled'";
    assert_eq!(printed(&run(&server, shown).await.unwrap()), ["1000 100 1000"]);
    for second in 0..7 {
        // All of it at once, whatever it has come to.
        assert_eq!(fill(&server, "k.scaled", second * 1_000).await, 200);
        server.advance(Duration::from_secs(1));
    }
    assert_eq!(printed(&run(&server, shown).await.unwrap()), ["1000 1000 1000"]);
}

#[tokio::test]
async fn throughput_has_floors() {
    // Source: concepts-limits.md: 400, a hundredth of the highest ever; autoscale a tenth of it; the words: a public issue.
    let (server, _client) = with_tables(&[]).await;
    table(&server, "k.high", "cosmosdb_provisioned_throughput = 100000").await;
    let (code, text) = refused(&server, "ALTER TABLE k.high WITH cosmosdb_provisioned_throughput = 900").await;
    assert_eq!(code, 0x2200);
    assert!(
        text.contains("Requested throughput 900 is less than required minimum throughput 1000.")
            && text.contains("because of Highest RUs provisioned 100000"),
        "{text}"
    );
    ok(
        &server,
        "ALTER TABLE k.high WITH cosmosdb_provisioned_throughput = 1000",
    )
    .await;
}

#[tokio::test]
async fn metadata_has_a_budget_of_its_own() {
    // Source: concepts-limits.md, troubleshoot-common-issues.md: 240 RU/s, Overloaded beyond.
    let (server, _client) = with_tables(&[]).await;
    let mut statements = 0;
    while told(&server, "TRUNCATE k.t").await.is_none() {
        statements += 1;
        assert!(statements <= 240);
    }
    assert_eq!(statements, 240);
    assert!(told(&server, "CREATE TABLE k.more (a int PRIMARY KEY)").await.is_some());
    assert!(told(&server, "SELECT * FROM system_schema.tables").await.is_some());
    assert_eq!(told(&server, "SELECT * FROM k.t").await, None);
    // However many were refused, a second later there is a budget again.
    server.advance(Duration::from_millis(1_100));
    assert_eq!(told(&server, "CREATE TABLE k.more (a int PRIMARY KEY)").await, None);
}

#[tokio::test]
async fn a_table_without_throughput_has_400() {
    // Source: a public lab: 400 RU/s for a table that is made without an option, in a keyspace that shares none.
    let (server, _client) = with_tables(&[]).await;
    ok(&server, "CREATE KEYSPACE none WITH durable_writes = true").await;
    ok(&server, "CREATE TABLE none.t (a int PRIMARY KEY)").await;
    assert_eq!(fill(&server, "none.t", 0).await, 80);
}

#[tokio::test]
async fn with_server_side_retry_statements_wait_and_then_time_out() {
    // Source: prevent-rate-limiting-errors.md: retried up to 60 s, then a timeout instead of an overload.
    let (server, _client) = with_tables(&[("server-side-retry", "true")]).await;
    table(
        &server,
        "k.slow",
        "cosmosdb_provisioned_throughput = 400 AND helenus_partitions = 40",
    )
    .await;
    let insert = format!("INSERT INTO k.slow (a, v) VALUES (1, '{}')", "x".repeat(900_000));
    // 10 RU/s in each of forty partitions: a debt of some forty seconds, and twice that.
    for (statement, ends) in [
        (insert.as_str(), 0),
        ("SELECT a FROM k.slow WHERE a = 1", 0),
        (&insert, 0),
        (&insert, 0x1100),
    ] {
        let server = Arc::new(&server);
        let asking = run(&server, statement);
        tokio::pin!(asking);
        let outcome = loop {
            tokio::select! {
                outcome = &mut asking => break outcome,
                () = tokio::time::sleep(Duration::from_millis(5)) => server.advance(Duration::from_millis(500)),
            }
        };
        let code = outcome.map_or_else(|error| error.code().number(), |_| 0);
        assert_eq!(code, ends, "{}", &statement[..20]);
    }
}
