//! Tables with COMPACT STORAGE: which rows are there, and what is left of them. Cassandra's answers to some 400 statements are in
//! `compat/oracle/scripts/compact_*`.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use helenus_base::clock::Clock;
use helenus_cql::cql::{Database, SessionState};
use helenus_engine::engine::{Options, What};
use helenus_schema::guardrails::{Guardrails, Switches};
use helenus_storage::backup::Scope;

use crate::support::Client;

async fn client(url: &str) -> Client {
    let guardrails = Guardrails {
        switches: Switches {
            drop_compact_storage: true,
            ..Switches::default()
        },
        ..Guardrails::default()
    };
    let clock = Clock::manual(1_700_000_000_000_000);
    let options = Options {
        guardrails,
        ..Client::options(url, clock.clone())
    };
    let client = Client::over(Database::open(options).await.unwrap(), SessionState::default(), clock);
    client.in_keyspace().await
}

async fn keys(client: &Client, text: &str) -> usize {
    client.rows(text).await.len()
}

#[tokio::test]
async fn a_row_is_there_by_its_values() {
    let client = client("memory:").await;
    client
        .ok("CREATE TABLE p (k int PRIMARY KEY, a int, b int) WITH COMPACT STORAGE")
        .await;
    client.ok("INSERT INTO p (k, a) VALUES (1, 1)").await;
    client.ok("INSERT INTO p (k, a) VALUES (2, null)").await;
    assert_eq!(keys(&client, "SELECT * FROM p").await, 1);
    assert_eq!(keys(&client, "SELECT * FROM p WHERE k = 1").await, 1);
    client.ok("UPDATE p SET a = null WHERE k = 1").await;
    assert_eq!(keys(&client, "SELECT * FROM p").await, 0);
    let refused = client.refused("INSERT INTO p (k) VALUES (1)").await;
    assert!(
        refused.contains("Some clustering keys are missing: column1"),
        "{refused}"
    );

    client
        .ok("CREATE TABLE d (k int, c int, v int, PRIMARY KEY (k, c)) WITH COMPACT STORAGE")
        .await;
    client.ok("INSERT INTO d (k, c, v) VALUES (1, 1, 1)").await;
    client.ok("INSERT INTO d (k, c, v) VALUES (1, 2, null)").await;
    assert_eq!(keys(&client, "SELECT * FROM d WHERE k = 1").await, 1);
    client.ok("DELETE v FROM d WHERE k = 1 AND c = 1").await;
    assert_eq!(keys(&client, "SELECT * FROM d").await, 0);
    let refused = client.refused("INSERT INTO d (k, c) VALUES (1, 1)").await;
    assert!(
        refused.contains("Column v is mandatory for this COMPACT STORAGE table"),
        "{refused}"
    );
}

#[tokio::test]
async fn the_last_clustering_columns_may_be_left_out() {
    let client = client("memory:").await;
    client
        .ok("CREATE TABLE t (k int, c1 int, c2 int, v int, PRIMARY KEY (k, c1, c2)) WITH COMPACT STORAGE")
        .await;
    client.ok("INSERT INTO t (k, c1, c2, v) VALUES (1, 1, 1, 11)").await;
    client.ok("INSERT INTO t (k, c1, v) VALUES (1, 1, 10)").await;
    assert_eq!(keys(&client, "SELECT * FROM t WHERE k = 1 AND c1 = 1").await, 2);
    assert_eq!(
        keys(&client, "SELECT * FROM t WHERE k = 1 AND c1 = 1 AND c2 > 0").await,
        1
    );
    client.ok("DELETE FROM t WHERE k = 1 AND c1 = 1").await;
    assert_eq!(keys(&client, "SELECT * FROM t").await, 0);
}

#[tokio::test]
async fn hidden_columns_come_to_light() {
    let client = client("memory:").await;
    client
        .ok("CREATE TABLE p (k int PRIMARY KEY, a int) WITH COMPACT STORAGE")
        .await;
    client.ok("INSERT INTO p (k, a) VALUES (1, 1)").await;
    client.ok("ALTER TABLE p DROP COMPACT STORAGE").await;
    client
        .ok("INSERT INTO p (k, column1, value) VALUES (1, 'x', 0x01)")
        .await;
    assert_eq!(
        keys(
            &client,
            "SELECT k, column1, a, value FROM p WHERE a = 1 ALLOW FILTERING"
        )
        .await,
        1
    );
    let refused = client.refused("ALTER TABLE p DROP COMPACT STORAGE").await;
    assert!(refused.contains("on table without COMPACT STORAGE"), "{refused}");
}

/// A table of keys alone gets a column of Cassandra's type of no value, which CQL names by its class.
#[tokio::test]
async fn columns_of_no_value_outlive_the_server_and_a_backup() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("file:{}", folder.path().join("data").display());
    let before = client(&url).await;
    for text in [
        "CREATE TABLE ks.keys (k int, c int, PRIMARY KEY (k, c)) WITH COMPACT STORAGE",
        "INSERT INTO ks.keys (k, c) VALUES (1, 2)",
        "ALTER TABLE ks.keys DROP COMPACT STORAGE",
        "CREATE TYPE ks.empty (a 'EmptyType', b int)",
        "CREATE TABLE ks.t (k int PRIMARY KEY, a list<'EmptyType'>, b frozen<empty>)",
        "ALTER TABLE ks.t ADD c 'EmptyType'",
        "INSERT INTO ks.t (k, b) VALUES (1, {b: 3})",
    ] {
        before.ok(text).await;
    }
    let read = async |client: &Client| {
        let mut found = client.rows("SELECT * FROM ks.keys").await;
        found.extend(client.rows("SELECT * FROM ks.t").await);
        let columns = "SELECT table_name, column_name, type FROM system_schema.columns WHERE keyspace_name = 'ks'";
        found.extend(client.rows(columns).await);
        found
    };
    let expected = read(&before).await;
    let backup = folder.path().join("backup");
    before
        .database
        .engine()
        .backups()
        .write(&backup, &Scope::Whole)
        .await
        .unwrap();
    before.database.close().await.unwrap();
    drop(before);
    let after = Client::open(&url).await;
    assert_eq!(read(&after).await, expected);
    let restored = Client::open("memory:").await;
    restored
        .database
        .engine()
        .backups()
        .restore(&backup, &What::All)
        .await
        .unwrap();
    assert_eq!(read(&restored).await, expected);
}

#[tokio::test]
async fn dropping_it_is_off_by_default() {
    let client = Client::with_keyspace("memory:").await;
    client
        .ok("CREATE TABLE p (k int PRIMARY KEY, a int) WITH COMPACT STORAGE")
        .await;
    let refused = client.refused("ALTER TABLE p DROP COMPACT STORAGE").await;
    assert!(refused.contains("DROP COMPACT STORAGE is disabled"), "{refused}");
}
