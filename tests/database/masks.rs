//! Dynamic data masking: which role sees what. The schema's side is in `compat/oracle/scripts/masks.cql`.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::net::{Ipv4Addr, SocketAddr};

use helenus::server::operator::copying::export;
use helenus::server::operator::text::Form;
use helenus_base::clock::Clock;
use helenus_cql::cql::{AnswerKind, Database, Hashing, Member, QueryParams, RoleOptions, SessionState};
use helenus_engine::engine::Options;
use helenus_schema::command::BatchKind;
use helenus_schema::guardrails::{Guardrails, Switches, Threshold};

use crate::support::{Client, printed};

async fn client(data_masking: bool) -> Client {
    let guardrails = Guardrails {
        switches: Switches {
            data_masking,
            ..Switches::default()
        },
        tombstones: Threshold::new(1, 1000),
        ..Guardrails::default()
    };
    let clock = Clock::manual(1_700_000_000_000_000);
    let options = Options {
        guardrails,
        ..Client::options("memory:", clock.clone())
    };
    let client = Client::over(Database::open(options).await.unwrap(), SessionState::default(), clock);
    let roles = RoleOptions {
        superuser: ("boss".to_owned(), "secret".to_owned()),
        hashing: Hashing {
            cost: 4,
            salt: || Some([7; 16]),
            key: [1; 16],
        },
        cidr_groups: None,
    };
    client.database.enable_roles(roles).await.unwrap();
    for statement in [
        "CREATE ROLE ann WITH PASSWORD = 'a' AND LOGIN = true",
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    ] {
        ask(&client, "boss", statement).await.unwrap();
    }
    client
}

async fn ask(client: &Client, role: &str, text: &str) -> Result<String, String> {
    let session = SessionState {
        user: Some(role.into()),
        client: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 1))),
        ..SessionState::default()
    };
    let answer = client.database.query(&session, text, &QueryParams::default()).await;
    answer
        .map(|answer| match &answer.kind {
            AnswerKind::Rows(_) => printed(&answer).join(";"),
            _ => String::new(),
        })
        .map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_role_without_unmask_sees_masks_and_may_not_guess() {
    let client = client(true).await;
    for statement in [
        "CREATE TABLE ks.t (k int PRIMARY KEY, a text MASKED WITH mask_inner(1, 1), b int MASKED WITH mask_null())",
        "INSERT INTO ks.t (k, a, b) VALUES (1, 'abcdef', 5)",
        "GRANT SELECT ON ks.t TO ann",
    ] {
        ask(&client, "boss", statement).await.unwrap();
    }
    let read = "SELECT JSON a, b, cast(b as text) FROM ks.t";
    let masked = ask(&client, "ann", read).await.unwrap();
    assert!(masked.contains("a****f") && !masked.contains('5'), "{masked}");
    let clear = ask(&client, "boss", read).await.unwrap();
    assert!(clear.contains("abcdef") && clear.contains('5'), "{clear}");

    let guess = "SELECT k FROM ks.t WHERE a = 'abcdef' AND b = 5 ALLOW FILTERING";
    let refused =
        "User ann has no UNMASK nor SELECT_MASKED permission on table ks.t, cannot query masked columns [a, b]";
    assert_eq!(ask(&client, "ann", guess).await, Err(refused.to_owned()));
    ask(&client, "boss", "GRANT SELECT_MASKED ON ks.t TO ann")
        .await
        .unwrap();
    ask(&client, "ann", guess).await.unwrap();
    assert_eq!(ask(&client, "ann", read).await.unwrap(), masked);
    ask(&client, "boss", "GRANT UNMASK ON ks.t TO ann").await.unwrap();
    assert_eq!(ask(&client, "ann", read).await.unwrap(), clear);
    ask(&client, "boss", "REVOKE UNMASK ON ks.t FROM ann").await.unwrap();
    assert_eq!(ask(&client, "ann", read).await.unwrap(), masked);
}

/// The server's operator may read the files, too.
#[tokio::test]
async fn an_export_has_the_values() {
    let client = client(true).await;
    for statement in [
        "CREATE TABLE ks.t (k int PRIMARY KEY, v text MASKED WITH DEFAULT)",
        "INSERT INTO ks.t (k, v) VALUES (1, 'plain')",
    ] {
        ask(&client, "boss", statement).await.unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    assert_eq!(
        export(&client.database, ("ks", "t"), Form::Csv, &file).await.unwrap(),
        1
    );
    assert_eq!(std::fs::read_to_string(file).unwrap(), "k,v\n1,plain\n");
}

/// What each role receives of a table with masks, by every statement that gives values out.
struct WaysOut {
    client: Client,
    /// Statements, each in the form that a role sends.
    statements: Vec<&'static str>,
}

/// The values that nobody without UNMASK may see.
const VALUES: [&str; 4] = ["SECRET", "HIDDEN", "8675309", "83.5"];

impl WaysOut {
    async fn new() -> Self {
        let client = client(true).await;
        for statement in [
            "CREATE TABLE ks.t (p text MASKED WITH DEFAULT, c text MASKED WITH mask_inner(1, 1), s text static MASKED WITH DEFAULT,
                 v text MASKED WITH DEFAULT, n int MASKED WITH mask_null(), m map<text, int> MASKED WITH DEFAULT,
                 e vector<float, 2> MASKED WITH DEFAULT, w int, PRIMARY KEY (p, c))
             WITH cdc = true AND cosmosdb_full_fidelity_retention_seconds = 3600",
            "CREATE INDEX ON ks.t (e) USING 'sai'",
            "CREATE MATERIALIZED VIEW ks.u AS SELECT p, c, v, n, m, e, w FROM ks.t
                 WHERE p IS NOT NULL AND c IS NOT NULL AND v IS NOT NULL PRIMARY KEY (v, p, c)",
            "GRANT SELECT ON ALL KEYSPACES TO ann",
            "GRANT SELECT ON KEYSPACE system_cosmos TO ann",
            "GRANT SELECT ON KEYSPACE system_views TO ann",
            "GRANT MODIFY ON ALL KEYSPACES TO ann",
            "CREATE ROLE bob WITH PASSWORD = 'b' AND LOGIN = true",
            "GRANT ann TO bob",
            "GRANT SELECT_MASKED ON KEYSPACE ks TO bob",
            "CREATE ROLE cat WITH PASSWORD = 'c' AND LOGIN = true",
            "GRANT bob TO cat",
            "GRANT UNMASK ON KEYSPACE ks TO cat",
            "INSERT INTO ks.t (p, c, s, v, n, m, e, w)
                 VALUES ('SECRET p', 'SECRET c', 'SECRET s', 'SECRET v', 8675309, {'HIDDEN': 8675309}, [83.5, 83.5], 1)",
            // Tombstones enough for a warning, in a partition whose key it names.
            "UPDATE ks.t SET m = m - {'1', '2', '3', '4', '5', '6'} WHERE p = 'SECRET p' AND c = 'SECRET c'",
        ] {
            ask(&client, "boss", statement).await.unwrap();
        }
        Self {
            client,
            statements: vec![
                "SELECT * FROM ks.t",
                "SELECT JSON * FROM ks.t",
                "SELECT DISTINCT p, s FROM ks.t",
                "SELECT toJson(v), toJson(m), cast(n AS text), m['HIDDEN'], max(v), min(n), sum(n) FROM ks.t",
                "SELECT (p, v), [v], {v}, blob_as_text(text_as_blob(v)), m['A'..'Z'] FROM ks.t",
                "SELECT collection_sum(map_values(m)), map_keys(m), e FROM ks.t",
                "SELECT p, c, count(*) FROM ks.t GROUP BY p, c",
                "SELECT * FROM ks.t WHERE p = 'SECRET p'",
                "SELECT * FROM ks.t WHERE p = 'SECRET p' AND c = 'SECRET c'",
                "SELECT * FROM ks.t WHERE v = 'SECRET v' ALLOW FILTERING",
                "SELECT * FROM ks.t ORDER BY e ANN OF [1, 1] LIMIT 3",
                "SELECT * FROM ks.u",
                "SELECT JSON * FROM ks.u",
                "SELECT * FROM ks.t WHERE COSMOS_CHANGEFEED_FROM_START() = true",
                "SELECT JSON * FROM ks.t WHERE COSMOS_CHANGEFEED_FROM_START() = true",
                "SELECT * FROM ks.t WHERE COSMOS_FULLFIDELITY_CHANGEFEED() = true AND COSMOS_CHANGEFEED_FROM_START() = true",
                "EXPLAIN SELECT * FROM ks.t",
                "SELECT * FROM system_cosmos.hot_keys",
                "SELECT * FROM system_cosmos.largest_partitions",
                "SELECT * FROM system_cosmos.partitions",
                "SELECT * FROM system_cosmos.request_log",
                "SELECT * FROM system_schema.column_masks",
                "SELECT * FROM system_views.clients",
                "INSERT INTO ks.t (p, c, w) VALUES ('SECRET p', 'SECRET c', 2) IF NOT EXISTS",
                "INSERT INTO ks.t JSON '{\"p\": \"SECRET p\", \"c\": \"SECRET c\", \"w\": 2}' IF NOT EXISTS",
                "INSERT INTO ks.t (p, s) VALUES ('SECRET p', 'x') IF NOT EXISTS",
                "UPDATE ks.t SET w = 2 WHERE p = 'SECRET p' AND c = 'SECRET c' IF v = 'x' AND n = 1 AND m = {} AND m['A'] = 1",
                "UPDATE ks.t SET w = 2 WHERE p = 'SECRET p' AND c = 'SECRET c' IF m['HIDDEN'] = 1",
                "UPDATE ks.t SET w = 2 WHERE p = 'SECRET p' AND c = 'SECRET c' IF e = [0, 0]",
                "UPDATE ks.t SET s = 'y' WHERE p = 'SECRET p' IF s = 'x'",
                "DELETE FROM ks.t WHERE p = 'SECRET p' AND c = 'SECRET c' IF v IN ('x')",
                "DELETE v FROM ks.t WHERE p = 'SECRET p' AND c = 'SECRET c' IF n > 8675309",
                "BEGIN BATCH UPDATE ks.t SET w = 2 WHERE p = 'SECRET p' AND c = 'SECRET c' IF v = 'x'; APPLY BATCH",
                "BEGIN BATCH UPDATE ks.t SET w = 2 WHERE p = 'SECRET p' AND c = 'x';
                     UPDATE ks.t SET w = 2 WHERE p = 'SECRET p' AND c = 'SECRET c' IF v = 'x'; APPLY BATCH",
                "BEGIN BATCH INSERT INTO ks.t (p, c, w) VALUES ('SECRET p', 'new', 2) IF NOT EXISTS;
                     UPDATE ks.t SET w = 2 WHERE p = 'SECRET p' AND c = 'SECRET c' IF v = 'x'; APPLY BATCH",
            ],
        }
    }

    /// What a role receives: rows, records of a feed, warnings, or the error.
    async fn received(&self, role: &str, text: &str, is_message: bool) -> String {
        let session = SessionState {
            user: Some(role.into()),
            client: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 1))),
            ..SessionState::default()
        };
        let params = QueryParams {
            page_size_rows: Some(100),
            wants_feed_positions: text.contains("CHANGEFEED"),
            ..QueryParams::default()
        };
        let answer = if is_message {
            let members = vec![(Member::Text(text.to_owned()), Vec::new())];
            self.client
                .database
                .batch(&session, BatchKind::Unlogged, members, &params)
                .await
        } else {
            self.client.database.query(&session, text, &params).await
        };
        match answer {
            Err(error) => error.to_string(),
            Ok(answer) => {
                let records = answer.feed.as_ref().map(|feed| feed.records.join("\n"));
                let rows = match &answer.kind {
                    AnswerKind::Rows(rows) => rows
                        .cells()
                        .iter()
                        .flatten()
                        .flatten()
                        .map(|cell| String::from_utf8_lossy(cell).into_owned() + &hex(cell))
                        .collect(),
                    _ => String::new(),
                };
                format!("{rows}\n{records:?}\n{:?}", answer.warnings)
            }
        }
    }
}

/// Whether a text has one of the values, as text, as a number or as bytes of either.
fn has_value(received: &str) -> bool {
    let number = hex(&8_675_309_i32.to_be_bytes());
    let float = hex(&83.5_f32.to_be_bytes());
    VALUES
        .iter()
        .any(|value| received.contains(value) || received.contains(&hex(value.as_bytes())))
        || received.contains(&number)
        || received.contains(&float)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Each way out of a value is tried by roles without UNMASK, then by one that has it: it must see the value, or the statement proves
/// nothing.
#[tokio::test]
async fn no_statement_shows_masked_values_to_a_role_without_unmask() {
    let ways = WaysOut::new().await;
    // What shows no value to any role: figures that hide the keys of such tables, and what is written without values.
    let shows_none = ["EXPLAIN", "system_", "ANN OF", "GROUP BY p, c"];
    for text in &ways.statements {
        let messages = [false, true];
        let is_write = |is_message: &&bool| {
            !**is_message || text.starts_with("UPDATE") || text.starts_with("INSERT") || text.starts_with("DELETE")
        };
        for is_message in messages.iter().filter(is_write) {
            for role in ["ann", "bob"] {
                let received = ways.received(role, text, *is_message).await;
                assert!(!has_value(&received), "{role} sees a value: {text}: {received}");
            }
            let received = ways.received("cat", text, *is_message).await;
            let shows = !shows_none.iter().any(|part| text.contains(part));
            assert!(has_value(&received) || !shows, "cat sees no value: {text}: {received}");
        }
    }
}

/// A role with SELECT and MODIFY may compare a masked column in a condition, as in Cassandra 5.0.9, but receives its mask.
#[tokio::test]
async fn a_condition_that_fails_answers_masks_when_the_role_lacks_unmask() {
    let client = client(true).await;
    for statement in [
        "CREATE TABLE ks.t (k int PRIMARY KEY, v int, a text MASKED WITH mask_inner(1, 1))",
        "INSERT INTO ks.t (k, v, a) VALUES (1, 1, 'abcdef')",
        "GRANT MODIFY ON ks.t TO ann",
    ] {
        ask(&client, "boss", statement).await.unwrap();
    }
    let insert = "INSERT INTO ks.t (k) VALUES (1) IF NOT EXISTS";
    // They need SELECT, so a role that may only write learns nothing.
    let refused = ask(&client, "ann", insert).await.unwrap_err();
    assert!(refused.contains("User ann has no SELECT permission"), "{refused}");
    ask(&client, "boss", "GRANT SELECT ON ks.t TO ann").await.unwrap();
    let by_role = |role: &'static str, shown: &'static str| {
        [
            (role, insert, format!("false 1 \"{shown}\" 1")),
            (
                role,
                "UPDATE ks.t SET v = 1 WHERE k = 1 IF a = '?'",
                format!("false \"{shown}\""),
            ),
            (
                role,
                "UPDATE ks.t SET v = 1 WHERE k = 1 IF a > 'abcde'",
                "true".to_owned(),
            ),
            (role, "DELETE FROM ks.t WHERE k = 1 IF v = 77", "false 1".to_owned()),
            (
                role,
                "BEGIN BATCH UPDATE ks.t SET v = 2 WHERE k = 1 IF a = '?'; APPLY BATCH",
                format!("false 1 \"{shown}\""),
            ),
        ]
    };
    for (role, text, result) in by_role("ann", "a****f").into_iter().chain(by_role("boss", "abcdef")) {
        assert_eq!(ask(&client, role, text).await, Ok(result), "{role}: {text}");
    }
}
