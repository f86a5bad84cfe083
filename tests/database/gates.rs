//! A request with two faults is refused by the earlier phase of checks (`engine/gates.rs`).

#![expect(clippy::unwrap_used, reason = "a test says no better what went wrong")]

use crate::support::Client;
use bytes::Bytes;
use helenus_base::clock::Clock;
use helenus_cql::cql::Error;
use helenus_cql::cql::{Database, QueryParams, SessionState, Values};
use helenus_engine::engine::{Options, SizeLimits};
use helenus_schema::command::Value;
use helenus_schema::guardrails::Guardrails;
use helenus_types::consistency::Consistency;

async fn client() -> Client {
    let mut guardrails = Guardrails::default();
    guardrails.switches.drop_truncate_table = false;
    guardrails.switches.user_timestamps = false;
    guardrails.switches.group_by = false;
    let limits = SizeLimits {
        partition_key_bytes_max: Some(8),
        ttl_seconds_max: Some(60),
        request_bytes_max: Some(100),
        ..SizeLimits::default()
    };
    let clock = Clock::manual(1_700_000_000_000_000);
    let options = Options {
        guardrails,
        limits,
        ..Client::options("memory:", clock.clone())
    };
    let client = Client::over(Database::open(options).await.unwrap(), SessionState::default(), clock);
    let client = client.in_keyspace().await;
    client.ok("CREATE TABLE t (k text PRIMARY KEY, v text, n int)").await;
    client.ok("CREATE TABLE c (k text PRIMARY KEY, n counter)").await;
    client
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a list of cases, one after another")]
async fn the_earlier_phase_refuses() {
    let client = client().await;
    let one = |bytes: &'static [u8]| vec![Value::Bytes(Bytes::from_static(bytes))];
    let long = "x".repeat(200);
    let long_twice = format!("INSERT INTO t (k, v) VALUES ('k', '{long}') USING TTL 61");
    // What is sent; its values; its level; the phase that refuses, the phase that would; how the refusal begins.
    let cases: [(&str, Vec<Value>, Consistency, &str, &str); 9] = [
        // names, permissions
        (
            "INSERT INTO system.local (key) VALUES (?)",
            vec![],
            Consistency::One,
            "names, permissions",
            "Invalid amount of bind variables",
        ),
        (
            "INSERT INTO system.local (key) VALUES (?)",
            one(b"\xff"),
            Consistency::One,
            "permissions, bind",
            "system keyspace is not user-modifiable.",
        ),
        (
            "BEGIN BATCH INSERT INTO t (k, n) VALUES ('k', ?) INSERT INTO system.local (key) VALUES ('k') APPLY BATCH",
            one(b"x"),
            Consistency::One,
            "permissions, bind",
            "system keyspace is not user-modifiable.",
        ),
        (
            "TRUNCATE system_schema.tables",
            vec![],
            Consistency::One,
            "permissions, bound",
            "system_schema keyspace is not user-modifiable.",
        ),
        (
            "SELECT k FROM t WHERE k = ? GROUP BY k",
            one(b"\xff"),
            Consistency::Any,
            "bound: level, plan",
            "ANY ConsistencyLevel is only supported for writes",
        ),
        (
            "SELECT k FROM t WHERE k = ? GROUP BY k",
            one(b"\xff"),
            Consistency::One,
            "bound: plan, values",
            "Guardrail group_by violated",
        ),
        (
            "UPDATE t SET n = ? WHERE k = 'a long partition key'",
            one(b"x"),
            Consistency::One,
            "bound: values, keys",
            "Expected 4 or 0 byte int (1)",
        ),
        (
            "UPDATE t USING TIMESTAMP 1 AND TTL 61 SET n = 1 WHERE k = 'a long partition key'",
            vec![],
            Consistency::Serial,
            "bound: keys, level",
            "Key length of 20 is longer than maximum of 8",
        ),
        (
            "UPDATE t USING TIMESTAMP 1 AND TTL 61 SET n = 1 WHERE k = 'k'",
            vec![],
            Consistency::Serial,
            "bound: level, guardrails",
            "You must use conditional updates for serializable writes",
        ),
    ];
    for (text, values, consistency, phases, expected) in cases {
        refused(&client, text, values, consistency, (phases, expected)).await;
    }
    let staged = [
        (
            "UPDATE t USING TIMESTAMP 1 AND TTL 61 SET n = 1 WHERE k = 'k'",
            "bound, staged",
            "Guardrail user_timestamps violated",
        ),
        (
            long_twice.as_str(),
            "staged: each modification, all",
            "ttl is too large. requested (61) maximum (60)",
        ),
    ];
    for (text, phases, expected) in staged {
        refused(&client, text, vec![], Consistency::One, (phases, expected)).await;
    }
}

async fn refused(
    client: &Client,
    text: &str,
    values: Vec<Value>,
    consistency: Consistency,
    (phases, expected): (&str, &str),
) {
    let params = QueryParams {
        values: Values::Positional(values),
        consistency,
        ..QueryParams::default()
    };
    let refusal: Error = client.run(text, params).await.unwrap_err();
    assert!(refusal.to_string().starts_with(expected), "{phases}: {text}: {refusal}");
}
