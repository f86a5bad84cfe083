//! Dynamic data masking: which role sees what. The schema's side is in `compat/oracle/scripts/masks.cql`.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::net::{Ipv4Addr, SocketAddr};

use helenus::clock::Clock;
use helenus::cql::{AnswerKind, Database, Hashing, QueryParams, RoleOptions, SessionState};
use helenus::engine::Options;
use helenus::guardrails::{Guardrails, Switches};
use helenus::server::operator::copying::export;
use helenus::server::operator::text::Form;

use crate::support::{Client, printed};

async fn client(data_masking: bool) -> Client {
    let guardrails = Guardrails {
        switches: Switches {
            data_masking,
            ..Switches::default()
        },
        ..Guardrails::default()
    };
    let clock = Clock::manual(1_700_000_000_000_000);
    let options = Options {
        guardrails,
        ..Client::options("memory:", clock.clone())
    };
    let client = Client {
        database: Database::open(options).await.unwrap(),
        session: SessionState::default(),
        clock,
    };
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

/// Measured on Apache Cassandra 5.0.9: conditions and their results see the values, also for a role without UNMASK.
#[tokio::test]
async fn conditional_writes_see_the_values_as_in_cassandra() {
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
    assert_eq!(
        ask(&client, "ann", "SELECT a FROM ks.t").await,
        Ok("\"a****f\"".to_owned())
    );
    for (text, result) in [
        (insert, "false 1 \"abcdef\" 1"),
        ("UPDATE ks.t SET v = 2 WHERE k = 1 IF a = '?'", "false \"abcdef\""),
        ("UPDATE ks.t SET v = 2 WHERE k = 1 IF a > 'abcde'", "true"),
        ("DELETE FROM ks.t WHERE k = 1 IF v = 77", "false 2"),
        (
            "BEGIN BATCH UPDATE ks.t SET v = 2 WHERE k = 1 IF a = '?'; APPLY BATCH",
            "false 1 \"abcdef\"",
        ),
    ] {
        assert_eq!(ask(&client, "ann", text).await.as_deref(), Ok(result), "{text}");
    }
}

#[tokio::test]
async fn a_function_of_a_user_masks_though_it_has_a_built_in_ones_name() {
    let client = client(true).await;
    let function = |name: &str, arguments: &str, text: &str| {
        format!(
            "CREATE FUNCTION ks.{name} ({arguments}) CALLED ON NULL INPUT RETURNS text LANGUAGE java AS 'return \"{text}\";'"
        )
    };
    for statement in [
        &*function("mask_inner", "a text, b int, c int", "mine"),
        &function("\"Own\"", "a text, b int", "own"),
        "CREATE TABLE ks.t (k int PRIMARY KEY, a text MASKED WITH mask_inner(1, 1), \
         b text MASKED WITH system.mask_inner(1, 1), c text MASKED WITH ks.\"Own\"(7))",
        "INSERT INTO ks.t (k, a, b, c) VALUES (1, 'abcdef', 'abcdef', 'abcdef')",
        "GRANT SELECT ON ks.t TO ann",
        // Neither makes the stored call ambiguous.
        &function("\"Own\"", "a text, b bigint", "other"),
        &function("\"Own\"", "a text, b smallint", "other"),
    ] {
        ask(&client, "boss", statement).await.unwrap();
    }
    let read = "SELECT a, b, c FROM ks.t";
    let masked = "\"mine\" \"a****f\" \"own\"".to_owned();
    assert_eq!(ask(&client, "ann", read).await, Ok(masked));
    let described = ask(&client, "boss", "DESCRIBE TABLE ks.t").await.unwrap();
    assert!(
        described.contains("ks.\\\"Own\\\"(7)") || described.contains("ks.\"Own\"(7)"),
        "{described}"
    );
    let refused = ask(&client, "boss", "DROP FUNCTION ks.mask_inner").await;
    let wanted = "Function 'ks.mask_inner' is still referenced by column masks in tables t";
    assert_eq!(refused, Err(wanted.to_owned()));
    ask(&client, "boss", "ALTER TABLE ks.t ALTER a DROP MASKED")
        .await
        .unwrap();
    ask(&client, "boss", "DROP FUNCTION ks.mask_inner").await.unwrap();
}

#[tokio::test]
async fn masking_is_off_by_default() {
    let client = client(false).await;
    let refused = ask(
        &client,
        "boss",
        "CREATE TABLE ks.t (k int PRIMARY KEY, a text MASKED WITH DEFAULT)",
    );
    let refused = refused.await.unwrap_err();
    assert!(refused.contains("dynamic data masking is not enabled"), "{refused}");
}
