//! The database in one process, without a socket: statements in, rows out, on each engine.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test says no better what went wrong"
)]

use std::time::Duration;

use crate::support::{Client, printed};
use helenus_cql::cql::{Error, RequestRefusal};
use helenus_cql::cql::{QueryParams, Values};
use helenus_schema::command::Value;

/// Each test on each engine.
macro_rules! on_each_engine {
    ($($name:ident),* $(,)?) => {
        mod memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(super::Client::with_keyspace("memory:").await).await;
            })*
        }
        mod file {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let directory = tempfile::tempdir().unwrap();
                let url = format!("file:{}", directory.path().display());
                super::$name(super::Client::with_keyspace(&url).await).await;
            })*
        }
        #[cfg(feature = "slate")]
        mod slate {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(super::Client::with_keyspace("slate+memory:").await).await;
            })*
        }
    };
}

on_each_engine!(
    equal_clustering_values_are_one_row,
    refusals_show_what_cassandra_reads,
    rows_are_written_and_read_in_clustering_order,
    collections_keep_their_order,
    what_expires_is_gone_at_its_second,
    a_sweep_removes_what_nobody_sees,
    a_sweep_keeps_markers_that_expired,
    conditions_answer_as_cassandra_does,
    counters_count,
    the_rest_of_a_partition_is_passed_over,
    pages_join_to_the_whole,
    paging_outlives_writes_and_refuses_strangers,
    prepared_statements_follow_the_schema,
    conditional_increments_are_never_lost,
);

#[tokio::test]
async fn everything_outlives_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("file:{}", directory.path().display());
    let client = Client::with_keyspace(&url).await;
    client.ok("CREATE TABLE t (k int, c int, PRIMARY KEY (k, c))").await;
    client.ok("CREATE TABLE gone (k int PRIMARY KEY)").await;
    client.ok("INSERT INTO gone (k) VALUES (1)").await;
    for c in 0..4 {
        client.ok(&format!("INSERT INTO t (k, c) VALUES (1, {c})")).await;
    }
    client.ok("DROP TABLE gone").await;
    let text = "SELECT c FROM t WHERE k = 1";
    let (first, state) = client.page(text, 2, None).await;
    let (version, host) = (
        client.database.engine().schema_version(),
        client.database.engine().node().host_id,
    );
    client.database.close().await.unwrap();
    drop(client);

    let mut client = Client::open(&url).await;
    client.session.keyspace = Some("ks".into());
    assert_eq!(
        (
            client.database.engine().schema_version(),
            client.database.engine().node().host_id
        ),
        (version, host)
    );
    let (second, _) = client.page(text, 5, state).await;
    assert_eq!([first, second].concat(), ["0", "1", "2", "3"]);
    client.ok("CREATE TABLE gone (k int PRIMARY KEY)").await;
    assert!(client.rows("SELECT * FROM gone").await.is_empty());
}

async fn rows_are_written_and_read_in_clustering_order(client: Client) {
    client.ok("CREATE TABLE t (k int, c int, s text static, v text, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC)").await;
    for c in 1..=3 {
        client
            .ok(&format!("INSERT INTO t (k, c, v) VALUES (1, {c}, 'v{c}')"))
            .await;
    }
    client.ok("UPDATE t SET s = 'static' WHERE k = 1").await;
    client.ok("UPDATE t SET s = 'alone' WHERE k = 2").await;
    assert_eq!(
        client.rows("SELECT * FROM t WHERE k = 1").await,
        [
            "1 3 \"static\" \"v3\"",
            "1 2 \"static\" \"v2\"",
            "1 1 \"static\" \"v1\"",
        ]
    );
    assert_eq!(
        client.rows("SELECT c FROM t WHERE k = 1 ORDER BY c ASC LIMIT 2").await,
        ["1", "2"]
    );
    assert_eq!(client.rows("SELECT c FROM t WHERE k = 1 AND c > 1").await, ["3", "2"]);
    assert_eq!(
        client.rows("SELECT v FROM t WHERE k = 1 AND c IN (1, 3)").await,
        ["\"v3\"", "\"v1\""]
    );
    assert_eq!(
        client.rows("SELECT k, c, s FROM t WHERE k = 2").await,
        ["2 null \"alone\""]
    );
    assert_eq!(
        client.rows("SELECT DISTINCT k, s FROM t").await,
        ["1 \"static\"", "2 \"alone\""]
    );
    client.ok("DELETE FROM t WHERE k = 1 AND c >= 2").await;
    assert_eq!(client.rows("SELECT c FROM t WHERE k = 1").await, ["1"]);
    client.ok("DELETE FROM t WHERE k = 1").await;
    assert_eq!(client.rows("SELECT k, c, v FROM t").await, ["2 null null"]);
    client.ok("TRUNCATE t").await;
    assert!(client.rows("SELECT * FROM t").await.is_empty());
}

async fn collections_keep_their_order(client: Client) {
    client
        .ok("CREATE TABLE t (k int PRIMARY KEY, l list<int>, s set<int>, m map<text, int>)")
        .await;
    client
        .ok("INSERT INTO t (k, l, s, m) VALUES (1, [1, 2], {5, -3}, {'b': 2, 'a': 1})")
        .await;
    client
        .ok("UPDATE t SET l = l + [3], s = s + {0}, m = m + {'c': 3} WHERE k = 1")
        .await;
    client
        .ok("UPDATE t SET l = [-1, 0] + l, s = s - {5}, m = m - {'a'} WHERE k = 1")
        .await;
    assert_eq!(
        client.rows("SELECT l, s, m FROM t").await,
        ["[-1, 0, 1, 2, 3] [-3, 0] {\"b\": 2, \"c\": 3}"]
    );
    client.ok("UPDATE t SET l[1] = 10, m['b'] = 20 WHERE k = 1").await;
    client.ok("UPDATE t SET l = l - [-1, 3] WHERE k = 1").await;
    assert_eq!(
        client.rows("SELECT l, m FROM t").await,
        ["[10, 1, 2] {\"b\": 20, \"c\": 3}"]
    );
    client.ok("DELETE l[0], m['b'] FROM t WHERE k = 1").await;
    assert_eq!(client.rows("SELECT l, m FROM t").await, ["[1, 2] {\"c\": 3}"]);
    client.ok("UPDATE t SET l = [], s = null WHERE k = 1").await;
    assert_eq!(client.rows("SELECT l, s, m FROM t").await, ["null null {\"c\": 3}"]);
}

async fn a_sweep_removes_what_nobody_sees(client: Client) {
    client
        .ok("CREATE TABLE t (k int, c int, v int, PRIMARY KEY (k, c)) WITH gc_grace_seconds = 100")
        .await;
    client.ok("INSERT INTO t (k, c, v) VALUES (1, 1, 1) USING TTL 10").await;
    client.ok("INSERT INTO t (k, c, v) VALUES (1, 2, 2)").await;
    client.ok("INSERT INTO t (k, c, v) VALUES (1, 3, 3)").await;
    client.ok("INSERT INTO t (k, c, v) VALUES (2, 1, 1)").await;
    client.ok("DELETE FROM t WHERE k = 1 AND c = 3").await;
    client.ok("DELETE FROM t WHERE k = 2").await;
    let left = client.rows("SELECT k, c, v FROM t").await;
    client.clock.advance(std::time::Duration::from_secs(200));
    let swept = client.database.engine().upkeep().sweep().await.unwrap();
    assert_eq!(
        (swept.rows_removed, swept.deletions_removed),
        (3, 1),
        "the expired row, the deleted one, the one of the deleted partition, and that partition's deletion"
    );
    assert_eq!(client.rows("SELECT k, c, v FROM t").await, left.get(1..).unwrap());
    let again = client.database.engine().upkeep().sweep().await.unwrap();
    assert_eq!(
        (again.rows_removed, again.rows_shrunk, again.deletions_removed),
        (0, 0, 0)
    );
}

/// Compared with Cassandra 5.0.9, before and after `nodetool compact`: with ten days of grace its answers are the same both times and
/// older writes that come late stay hidden; with none a compaction forgets the markers, and (1, 1) is there.
async fn a_sweep_keeps_markers_that_expired(client: Client) {
    client
        .ok("CREATE TABLE t (p int, c int, v int, w int, m map<int, int>, s int static, PRIMARY KEY (p, c))")
        .await;
    for text in [
        "UPDATE t USING TIMESTAMP 1000 SET w = 1 WHERE p = 1 AND c = 1",
        "INSERT INTO t (p, c) VALUES (1, 1) USING TIMESTAMP 2000 AND TTL 2",
        "INSERT INTO t (p, c) VALUES (2, 1) USING TIMESTAMP 2000 AND TTL 2",
        "INSERT INTO t (p, c, v, s) VALUES (3, 1, 5, 7) USING TIMESTAMP 2000 AND TTL 2",
        "UPDATE t USING TIMESTAMP 2000 AND TTL 2 SET m[1] = 1 WHERE p = 4 AND c = 1",
    ] {
        client.ok(text).await;
    }
    client.clock.advance(std::time::Duration::from_secs(3));
    for _ in 0..2 {
        assert!(client.rows("SELECT c, v FROM t WHERE p = 1").await.is_empty());
        assert_eq!(client.rows("SELECT c, v, w FROM t WHERE p = 1").await, ["1 null 1"]);
        client.database.engine().upkeep().sweep().await.unwrap();
    }
    for text in [
        "INSERT INTO t (p, c) VALUES (1, 1) USING TIMESTAMP 1500",
        "INSERT INTO t (p, c) VALUES (2, 1) USING TIMESTAMP 1500",
        "INSERT INTO t (p, c, v, s) VALUES (3, 1, 6, 8) USING TIMESTAMP 1500",
        "UPDATE t USING TIMESTAMP 1500 SET m[1] = 2 WHERE p = 4 AND c = 1",
    ] {
        client.ok(text).await;
    }
    assert!(client.rows("SELECT c, v FROM t WHERE p = 1").await.is_empty());
    assert_eq!(
        client.rows("SELECT p, c, v, w, m, s FROM t").await,
        ["1 1 null 1 null null"]
    );
    client.ok("ALTER TABLE t WITH gc_grace_seconds = 0").await;
    client.database.engine().upkeep().sweep().await.unwrap();
    assert_eq!(client.rows("SELECT c, v FROM t WHERE p = 1").await, ["1 null"]);
}

async fn what_expires_is_gone_at_its_second(client: Client) {
    client.ok("CREATE TABLE t (k int PRIMARY KEY, v int, w int)").await;
    client.ok("INSERT INTO t (k, v) VALUES (1, 1) USING TTL 10").await;
    client.ok("UPDATE t USING TTL 20 SET w = 2 WHERE k = 1").await;
    assert_eq!(client.rows("SELECT * FROM t").await, ["1 1 2"]);
    client.clock.advance(std::time::Duration::from_secs(10));
    assert_eq!(client.rows("SELECT * FROM t").await, ["1 null 2"]);
    client.clock.advance(std::time::Duration::from_secs(10));
    assert!(client.rows("SELECT * FROM t").await.is_empty());
}

async fn conditions_answer_as_cassandra_does(client: Client) {
    client
        .ok("CREATE TABLE t (k int, c int, s int static, v int, PRIMARY KEY (k, c))")
        .await;
    assert_eq!(
        client
            .rows("INSERT INTO t (k, c, v) VALUES (1, 1, 1) IF NOT EXISTS")
            .await,
        ["true"]
    );
    assert_eq!(
        client
            .rows("INSERT INTO t (k, c, v) VALUES (1, 1, 2) IF NOT EXISTS")
            .await,
        ["false 1 1 null 1"]
    );
    assert_eq!(
        client.rows("UPDATE t SET v = 3 WHERE k = 1 AND c = 1 IF v = 9").await,
        ["false 1"]
    );
    assert_eq!(
        client.rows("UPDATE t SET v = 3 WHERE k = 1 AND c = 1 IF v = 1").await,
        ["true"]
    );
    assert_eq!(
        client.rows("UPDATE t SET v = 3 WHERE k = 1 AND c = 2 IF v = 1").await,
        ["false"]
    );
    assert_eq!(
        client.rows("UPDATE t SET s = 1 WHERE k = 1 IF s = 5").await,
        ["false null"]
    );
    assert_eq!(client.rows("UPDATE t SET s = 1 WHERE k = 7 IF s = 5").await, ["false"]);
    assert_eq!(
        client.rows("DELETE FROM t WHERE k = 1 AND c = 1 IF EXISTS").await,
        ["true"]
    );
    assert_eq!(
        client.rows("DELETE FROM t WHERE k = 1 AND c = 1 IF EXISTS").await,
        ["false"]
    );
}

async fn counters_count(client: Client) {
    client.ok("CREATE TABLE t (k int PRIMARY KEY, n counter)").await;
    client.ok("UPDATE t SET n = n + 5 WHERE k = 1").await;
    client.ok("UPDATE t SET n = n - 2 WHERE k = 1").await;
    client
        .ok("BEGIN COUNTER BATCH UPDATE t SET n = n + 1 WHERE k = 1; UPDATE t SET n = n + 1 WHERE k = 1; APPLY BATCH")
        .await;
    assert_eq!(client.rows("SELECT * FROM t").await, ["1 5"]);
    // Each merges with the row of all before it, not with each of them.
    let many = "UPDATE t SET n = n + 1 WHERE k = 2; ".repeat(10_000);
    let batch = format!("BEGIN COUNTER BATCH {many} UPDATE t SET n = n + 1 WHERE k = 3; APPLY BATCH");
    tokio::time::timeout(Duration::from_secs(60), client.ok(&batch))
        .await
        .expect("a batch of counters takes longer the longer it is, and no more");
    assert_eq!(
        client.rows("SELECT * FROM t WHERE k IN (2, 3)").await,
        ["2 10000", "3 1"]
    );
}

/// The rest of a partition is passed over row by row at first, and by a new scan if it is long.
async fn the_rest_of_a_partition_is_passed_over(client: Client) {
    client
        .ok("CREATE TABLE t (k int, c int, s int static, PRIMARY KEY (k, c))")
        .await;
    let rows_of = [1, 2, 31, 32, 33, 34, 35, 70];
    for (k, rows) in rows_of.iter().enumerate() {
        client.ok(&format!("UPDATE t SET s = {k} WHERE k = {k}")).await;
        for c in 0..*rows {
            client.ok(&format!("INSERT INTO t (k, c) VALUES ({k}, {c})")).await;
        }
    }
    let sorted = |mut rows: Vec<String>| {
        rows.sort_unstable();
        rows
    };
    let keys: Vec<String> = (0..rows_of.len()).map(|k| format!("{k} {k}")).collect();
    assert_eq!(sorted(client.rows("SELECT DISTINCT k, s FROM t").await), keys);
    let first: Vec<String> = (0..rows_of.len()).map(|k| format!("{k} 0 {k}")).collect();
    assert_eq!(
        sorted(client.rows("SELECT k, c, s FROM t PER PARTITION LIMIT 1").await),
        first
    );
    let pages = client.pages("SELECT k, c, s FROM t PER PARTITION LIMIT 1", 3).await;
    assert_eq!(sorted(pages.concat()), first);
    let counted = sorted(client.rows("SELECT k, count(*) FROM t GROUP BY k").await);
    let counts: Vec<String> = rows_of
        .iter()
        .enumerate()
        .map(|(k, rows)| format!("{k} {rows}"))
        .collect();
    assert_eq!(counted, counts);
}

async fn pages_join_to_the_whole(client: Client) {
    client.ok("CREATE TABLE t (k int, c int, PRIMARY KEY (k, c))").await;
    for k in 0..7 {
        for c in 0..5 {
            client.ok(&format!("INSERT INTO t (k, c) VALUES ({k}, {c})")).await;
        }
    }
    for text in [
        "SELECT * FROM t",
        "SELECT * FROM t LIMIT 17",
        "SELECT * FROM t PER PARTITION LIMIT 2",
        "SELECT * FROM t PER PARTITION LIMIT 3 LIMIT 11",
        "SELECT DISTINCT k FROM t",
        "SELECT * FROM t WHERE k IN (5, 1, 3)",
        "SELECT * FROM t WHERE k = 2 ORDER BY c DESC",
        "SELECT * FROM t WHERE k IN (1, 2) AND c IN (0, 2, 4)",
        "SELECT * FROM t WHERE k = 3 AND c > 1",
        "SELECT k, c, count(*) FROM t GROUP BY k",
        "SELECT k, c, count(*) FROM t GROUP BY k, c",
        "SELECT k, c, count(*) FROM t GROUP BY k, c PER PARTITION LIMIT 2",
        "SELECT keyspace_name, table_name FROM system_schema.tables",
    ] {
        let whole = client.rows(text).await;
        assert!(!whole.is_empty());
        for rows in [1, 2, 3, 5, 100] {
            let pages = client.pages(text, rows).await;
            assert!(pages.iter().all(|page| page.len() <= rows as usize));
            assert_eq!(pages.concat(), whole, "{text} by {rows}");
        }
    }
}

async fn paging_outlives_writes_and_refuses_strangers(client: Client) {
    client.ok("CREATE TABLE t (k int, c int, PRIMARY KEY (k, c))").await;
    for c in 0..5 {
        client.ok(&format!("INSERT INTO t (k, c) VALUES (1, {c})")).await;
    }
    let text = "SELECT c FROM t WHERE k = 1";
    let (first, state) = client.page(text, 2, None).await;
    assert_eq!(first, ["0", "1"]);
    client.ok("DELETE FROM t WHERE k = 1 AND c <= 2").await;
    client.ok("ALTER TABLE t ADD v int").await;
    client.ok("INSERT INTO t (k, c, v) VALUES (1, 9, 1)").await;
    let (second, _) = client.page(text, 5, state.clone()).await;
    assert_eq!(second, ["3", "4", "9"]);
    // It belongs to the table, not to the statement: other columns, other limits; another partition gives nothing.
    let (other_text, _) = client.page("select v, c from t where k = 1", 5, state.clone()).await;
    assert_eq!(other_text, ["null 3", "null 4", "1 9"]);
    let (limited, _) = client
        .page("SELECT c FROM t WHERE k = 1 LIMIT 9", 2, state.clone())
        .await;
    assert_eq!(limited, ["3", "4"]);
    // In Cassandra the position of a read of one partition names none, and a scan fails on it.
    let of_all = QueryParams {
        page_size_rows: Some(5),
        paging_state: state.clone(),
        ..QueryParams::default()
    };
    let error = client.run("SELECT k, c FROM t", of_all).await.unwrap_err();
    assert_eq!(error, Error::from(RequestRefusal::PagingState));
    let (other_partition, _) = client.page("SELECT c FROM t WHERE k = 2", 5, state.clone()).await;
    assert!(other_partition.is_empty(), "{other_partition:?}");
    client.ok("CREATE TABLE u (k int, c int, PRIMARY KEY (k, c))").await;
    let foreign = |page_size_rows| QueryParams {
        page_size_rows,
        paging_state: state.clone(),
        ..QueryParams::default()
    };
    for page_size_rows in [Some(2), None] {
        let answer = client.run("SELECT c FROM u WHERE k = 1", foreign(page_size_rows)).await;
        let error = answer.unwrap_err();
        assert_eq!(error, Error::from(RequestRefusal::PagingState));
    }
}

async fn prepared_statements_follow_the_schema(client: Client) {
    client.ok("CREATE TABLE t (k int PRIMARY KEY, v int)").await;
    let insert = client
        .database
        .prepare(Some("ks"), "INSERT INTO t (k, v) VALUES (?, ?)")
        .unwrap();
    let select = client
        .database
        .prepare(Some("ks"), "SELECT * FROM t WHERE k = ?")
        .unwrap();
    let int = |value: i32| Value::Bytes(value.to_be_bytes().to_vec().into());
    let params = |values: Vec<Value>| QueryParams {
        values: Values::Positional(values),
        ..QueryParams::default()
    };
    let session = &client.session;
    client
        .database
        .execute(session, &insert, &params(vec![int(1), int(2)]))
        .await
        .unwrap();
    let answer = client
        .database
        .execute(session, &select, &params(vec![int(1)]))
        .await
        .unwrap();
    assert_eq!(printed(&answer), ["1 2"]);
    client.ok("ALTER TABLE t ADD w text").await;
    client.ok("TRUNCATE t").await;
    client
        .database
        .execute(session, &insert, &params(vec![int(1), int(3)]))
        .await
        .unwrap();
    let answer = client
        .database
        .execute(session, &select, &params(vec![int(1)]))
        .await
        .unwrap();
    assert_eq!(printed(&answer), ["1 3 null"]);
}

async fn conditional_increments_are_never_lost(client: Client) {
    let client = std::sync::Arc::new(client);
    client.ok("CREATE TABLE t (k int PRIMARY KEY, v int)").await;
    client.ok("INSERT INTO t (k, v) VALUES (1, 0)").await;
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let client = std::sync::Arc::clone(&client);
            tokio::spawn(async move {
                let mut done = 0;
                while done < 20 {
                    let now = client.rows("SELECT v FROM t WHERE k = 1").await[0]
                        .parse::<i32>()
                        .unwrap();
                    let text = format!("UPDATE t SET v = {} WHERE k = 1 IF v = {now}", now + 1);
                    if client.rows(&text).await[0].starts_with("true") {
                        done += 1;
                    }
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(client.rows("SELECT v FROM t").await, ["160"]);
}

async fn equal_clustering_values_are_one_row(client: Client) {
    client.ok("CREATE TABLE t (k int, a text, b decimal, v int, PRIMARY KEY (k, a, b)) WITH CLUSTERING ORDER BY (a DESC, b DESC)").await;
    client.ok("INSERT INTO t (k, a, b, v) VALUES (1, 'x', 1.50, 1)").await;
    client.ok("INSERT INTO t (k, a, b, v) VALUES (1, 'x', 1.5, 2)").await;
    client.ok("INSERT INTO t (k, a, b, v) VALUES (1, 'y', 1.5, 3)").await;
    assert_eq!(
        client.rows("SELECT a, b, v FROM t").await,
        ["\"y\" 1.5 3", "\"x\" 1.50 2"]
    );
    assert_eq!(
        client
            .rows("UPDATE t SET v = 4 WHERE k = 1 AND a = 'x' AND b = 1.500 IF v = 2")
            .await,
        ["true"]
    );
    client.ok("DELETE FROM t WHERE k = 1 AND a = 'x' AND b = 1.5000").await;
    assert_eq!(client.rows("SELECT a, b, v FROM t").await, ["\"y\" 1.5 3"]);
    // None of them is stored yet.
    for (k, batch) in [(2, "BEGIN UNLOGGED BATCH"), (3, "BEGIN BATCH")] {
        let insert = |b: &str, v: u8| format!("INSERT INTO t (k, a, b, v) VALUES ({k}, 'x', {b}, {v});");
        client
            .ok(&format!(
                "{batch} {} {} APPLY BATCH",
                insert("0.0", 1),
                insert("0.00", 2)
            ))
            .await;
        let all = format!("SELECT b, v FROM t WHERE k = {k}");
        assert_eq!(client.rows(&all).await, ["0.0 2"], "{batch}");
        client
            .ok(&format!("DELETE FROM t WHERE k = {k} AND a = 'x' AND b = 0"))
            .await;
        assert_eq!(client.rows(&all).await, [""; 0], "{batch}");
    }
    client
        .ok("UPDATE t SET v = 5 WHERE k = 4 AND a = 'x' AND b IN (7, 7.0)")
        .await;
    assert_eq!(client.rows("SELECT b, v FROM t WHERE k = 4").await.len(), 1);
}

async fn refusals_show_what_cassandra_reads(client: Client) {
    client
        .ok("CREATE TABLE t (k int, c int, s int static, v int, PRIMARY KEY (k, c))")
        .await;
    client.ok("INSERT INTO t (k, c, s, v) VALUES (1, 1, 5, 1)").await;
    assert_eq!(
        client
            .rows("INSERT INTO t (k, c, v) VALUES (1, 1, 2) IF NOT EXISTS")
            .await,
        ["false 1 1 null 1"]
    );
    assert_eq!(
        client.rows("UPDATE t SET v = 1 WHERE k = 1 AND c = 9 IF EXISTS").await,
        ["false"]
    );
    assert_eq!(
        client.rows("UPDATE t SET v = 1 WHERE k = 1 AND c = 9 IF s = 6").await,
        ["false 5"]
    );
    let mixed = "BEGIN BATCH UPDATE t SET v = 1 WHERE k = 1 AND c = 1 IF v = 3; \
                 INSERT INTO t (k, c, v) VALUES (1, 1, 5) IF NOT EXISTS; APPLY BATCH";
    let error = client.run(mixed, QueryParams::default()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "Cannot mix IF conditions and IF NOT EXISTS for the same row"
    );
}
