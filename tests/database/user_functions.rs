//! Functions and aggregates of users: made, resolved, called, refused, stopped, there after a restart.

use std::sync::Arc;
use std::time::Duration;

use crate::support::Client;
use helenus_base::clock::Clock;
use helenus_cql::cql::{Database, SessionState};
use helenus_engine::engine::Options;
use helenus_types::functions::CallLimits;

const SUM: &str = "CREATE FUNCTION plus (state int, value int) CALLED ON NULL INPUT RETURNS int LANGUAGE java \
                   AS 'return value == null ? state : state + value;'";

async fn filled(url: &str) -> Client {
    let client = Client::with_keyspace(url).await;
    fill(&client).await;
    client
}

async fn fill(client: &Client) {
    client
        .ok("CREATE TABLE t (k int, c int, v int, PRIMARY KEY (k, c))")
        .await;
    for (k, c) in [(1, 1), (1, 2), (2, 3), (2, 4)] {
        client
            .ok(&format!("INSERT INTO t (k, c, v) VALUES ({k}, {c}, {})", 10 * c))
            .await;
    }
    client.ok(SUM).await;
    client
        .ok("CREATE AGGREGATE total (int) SFUNC plus STYPE int INITCOND 0")
        .await;
}

#[tokio::test]
async fn functions_and_aggregates_are_called_and_outlive_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("file:{}", directory.path().join("data").display());
    filled(&url).await.database.close().await.unwrap();
    let client = Client::with_keyspace(&url).await;
    assert_eq!(client.rows("SELECT plus(c, v) FROM t WHERE k = 1").await, ["11", "22"]);
    assert_eq!(client.rows("SELECT total(v) FROM t").await, ["100"]);
    let groups = client.pages("SELECT k, total(v) FROM t GROUP BY k", 1).await.concat();
    assert_eq!(groups, ["1 30", "2 70"]);
}

/// With one thread: the point read would otherwise wait for the whole aggregate.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_statement_whose_functions_take_long_holds_up_no_other() {
    let client = Arc::new(filled("memory:").await);
    client
        .ok(
            "CREATE FUNCTION slow (state int, value int) CALLED ON NULL INPUT RETURNS int LANGUAGE java \
             AS 'int n = 0; for (int i = 0; i < 100000; i++) n += i; return state + 1;'",
        )
        .await;
    client
        .ok("CREATE AGGREGATE slowly (int) SFUNC slow STYPE int INITCOND 0")
        .await;
    for c in 10..60 {
        client.ok(&format!("INSERT INTO t (k, c, v) VALUES (9, {c}, 1)")).await;
    }
    let (slow, quick) = (Arc::clone(&client), Arc::clone(&client));
    let slow = tokio::spawn(async move { slow.rows("SELECT slowly(v) FROM t").await });
    tokio::time::sleep(Duration::from_millis(20)).await;
    let quick = tokio::spawn(async move { quick.rows("SELECT v FROM t WHERE k = 1 AND c = 1").await });
    assert_eq!(quick.await.unwrap(), ["10"]);
    assert!(!slow.is_finished());
    assert_eq!(slow.await.unwrap(), ["54"]);
}

#[tokio::test]
async fn overloads_are_told_apart_and_what_is_used_is_not_dropped() {
    let client = filled("memory:").await;
    client
        .ok("CREATE FUNCTION plus (state text, value text) RETURNS NULL ON NULL INPUT RETURNS text LANGUAGE java AS 'return state + value;'")
        .await;
    assert_eq!(client.rows("SELECT plus('a', 'b') FROM t LIMIT 1").await, ["\"ab\""]);
    let refused = client.refused("DROP FUNCTION plus (int, int)").await;
    assert!(refused.contains("total"), "{refused}");
    client.ok("DROP AGGREGATE total").await;
    client.ok("DROP FUNCTION plus (int, int)").await;
    let refused = client.refused("SELECT plus(c, v) FROM t").await;
    assert!(refused.contains("plus"), "{refused}");
}

#[tokio::test]
async fn a_body_that_never_ends_or_throws_fails_alone() {
    let client = filled("memory:").await;
    for (name, body) in [
        ("spin", "while (true) { }"),
        ("grow", "String s = \"x\"; while (true) { s = s + s; }"),
        ("thrown", "throw new RuntimeException(\"no\");"),
    ] {
        client
            .ok(&format!(
                "CREATE FUNCTION {name} (value int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS '{body}'"
            ))
            .await;
        client.refused(&format!("SELECT {name}(v) FROM t")).await;
    }
    assert_eq!(client.rows("SELECT total(v) FROM t").await, ["100"]);
    let refused = client
        .refused("CREATE FUNCTION f (a int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return System.exit(1);'")
        .await;
    assert!(refused.contains("Line 1"), "{refused}");
}

/// A filled database whose user functions have these limits.
async fn limited(call_limits: CallLimits) -> Client {
    let clock = Clock::manual(crate::support::NOW_MICROS);
    let options = Options {
        call_limits,
        ..Client::options("memory:", clock.clone())
    };
    let client = Client::over(
        Database::open(options).await.expect("a database in memory opens"),
        SessionState::default(),
        clock,
    );
    let client = client.in_keyspace().await;
    fill(&client).await;
    client
}

#[tokio::test]
async fn a_lower_limit_stops_a_call() {
    const LOOP: &str = "CREATE FUNCTION f (a int) CALLED ON NULL INPUT RETURNS int LANGUAGE java \
                        AS 'int n = 0; for (int i = 0; i < 100; i++) n += i; return n;'";
    const REPEAT: &str = "CREATE FUNCTION g (a int) CALLED ON NULL INPUT RETURNS int LANGUAGE java \
                          AS 'return \"abc\".repeat(1000).length();'";
    let usual = limited(CallLimits::default()).await;
    usual.ok(LOOP).await;
    usual.ok(REPEAT).await;
    assert_eq!(usual.rows("SELECT f(v), g(v) FROM t LIMIT 1").await, ["4950 3000"]);

    let steps = CallLimits {
        steps_max: 500,
        ..CallLimits::default()
    };
    let client = limited(steps).await;
    client.ok(LOOP).await;
    let refused = client.refused("SELECT f(v) FROM t").await;
    assert!(
        refused.contains("the function took more than 500 steps and was stopped"),
        "{refused}"
    );
    assert_eq!(client.rows("SELECT total(v) FROM t").await, ["100"]);

    let bytes = CallLimits {
        bytes_max: 5000,
        ..CallLimits::default()
    };
    let client = limited(bytes).await;
    client.ok(REPEAT).await;
    let refused = client.refused("SELECT g(v) FROM t").await;
    assert!(refused.contains("allocated more than 5000 bytes"), "{refused}");
}

#[tokio::test]
async fn the_calls_of_one_request_have_a_limit_together() {
    let client = limited(CallLimits {
        request_steps_max: 100,
        ..CallLimits::default()
    })
    .await;
    // Every request begins anew.
    for _ in 0..20 {
        assert_eq!(client.rows("SELECT total(v) FROM t WHERE k = 1").await, ["30"]);
    }
    for c in 10..60 {
        client.ok(&format!("INSERT INTO t (k, c, v) VALUES (9, {c}, 1)")).await;
    }
    for statement in ["SELECT total(v) FROM t", "SELECT plus(v, c) FROM t"] {
        let refused = client.refused(statement).await;
        let wanted = "the request's functions took more than 100 steps and were stopped";
        assert!(refused.contains(wanted), "{statement}: {refused}");
    }
    let pages = client.pages("SELECT plus(v, c) FROM t WHERE k = 9", 2).await;
    assert_eq!(pages.concat().len(), 50);
}
