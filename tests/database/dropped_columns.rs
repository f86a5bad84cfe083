//! Columns that were dropped and added again: the last write wins among all cells that a column ever had, and those dated
//! up to the last drop are hidden. On each engine.

#![expect(clippy::unwrap_used, reason = "a test says no better what went wrong")]

use crate::support::{Client, printed};
use helenus_cql::cql::QueryParams;

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
    what_a_drop_hid_stays_hidden,
    the_last_write_wins_over_an_earlier_column,
    the_last_drop_decides,
    elements_compete_too,
    an_element_is_found_among_those_that_show,
    conditions_see_what_reads_see,
    indexes_find_what_reads_see,
    views_have_what_reads_see,
    another_type_reads_the_old_values,
    a_prepared_statement_hides_what_a_later_drop_hides,
);

impl Client {
    async fn all(&self, statements: &[&str]) {
        for statement in statements {
            self.ok(statement).await;
        }
    }
}

async fn what_a_drop_hid_stays_hidden(client: Client) {
    client
        .all(&[
            "CREATE TABLE t (k int PRIMARY KEY, v int)",
            "INSERT INTO t (k, v) VALUES (1, 1) USING TIMESTAMP 100",
            "INSERT INTO t (k, v) VALUES (2, 2) USING TIMESTAMP 300",
            "ALTER TABLE t DROP v USING TIMESTAMP 200",
            "ALTER TABLE t ADD v int",
        ])
        .await;
    assert_eq!(client.rows("SELECT * FROM t").await, ["1 null", "2 2"]);
    client.ok("DELETE v FROM t WHERE k = 2").await;
    client.ok("UPDATE t SET v = 3 WHERE k = 1").await;
    assert_eq!(client.rows("SELECT * FROM t").await, ["1 3", "2 null"]);
}

async fn the_last_write_wins_over_an_earlier_column(client: Client) {
    client
        .all(&[
            "CREATE TABLE t (p int PRIMARY KEY, s int, w int)",
            "INSERT INTO t (p, s, w) VALUES (1, 1, 1) USING TIMESTAMP 5000",
            "INSERT INTO t (p, s, w) VALUES (2, 2, 2) USING TIMESTAMP 5000",
            "INSERT INTO t (p, s, w) VALUES (3, 3, 3) USING TIMESTAMP 5000",
            "ALTER TABLE t DROP s USING TIMESTAMP 1000",
            "ALTER TABLE t ADD s int",
            "UPDATE t USING TIMESTAMP 3000 SET s = 4 WHERE p = 1",
            "DELETE s FROM t USING TIMESTAMP 3000 WHERE p = 2",
            "UPDATE t USING TIMESTAMP 6000 AND TTL 100 SET s = 6 WHERE p = 3",
            // Dated at the drop, and so hidden.
            "UPDATE t USING TIMESTAMP 1000 SET s = 5 WHERE p = 4",
        ])
        .await;
    let mut rows = client.rows("SELECT p, s, w, writetime(s), ttl(s) FROM t").await;
    rows.sort();
    assert_eq!(rows, ["1 1 1 5000 null", "2 2 2 5000 null", "3 6 3 6000 100"]);
}

async fn the_last_drop_decides(client: Client) {
    client
        .all(&[
            "CREATE TABLE t (p int PRIMARY KEY, s int, w int)",
            "INSERT INTO t (p, s, w) VALUES (1, 1, 1) USING TIMESTAMP 5000",
            "ALTER TABLE t DROP s USING TIMESTAMP 1000",
            "ALTER TABLE t ADD s int",
            "ALTER TABLE t DROP s USING TIMESTAMP 2000",
            "ALTER TABLE t ADD s int",
        ])
        .await;
    assert_eq!(client.rows("SELECT s FROM t").await, ["1"]);
    client
        .all(&["ALTER TABLE t DROP s USING TIMESTAMP 5000", "ALTER TABLE t ADD s int"])
        .await;
    assert_eq!(client.rows("SELECT s FROM t").await, ["null"]);
    // As Cassandra shows it until it compacts.
    client
        .all(&["ALTER TABLE t DROP s USING TIMESTAMP 4999", "ALTER TABLE t ADD s int"])
        .await;
    assert_eq!(client.rows("SELECT s FROM t").await, ["1"]);
}

async fn elements_compete_too(client: Client) {
    client
        .all(&[
            "CREATE TABLE t (p int, c int, s set<int>, l list<int>, m map<int, int>, st map<int, int> static, PRIMARY KEY (p, c))",
            "UPDATE t USING TIMESTAMP 100 SET s = s + {1}, l = l + [1], m = m + {1: 1}, st = st + {1: 1} WHERE p = 1 AND c = 1",
            "UPDATE t USING TIMESTAMP 5000 SET s = s + {2}, l = l + [2], m = m + {2: 2}, st = st + {2: 2} WHERE p = 1 AND c = 1",
            "ALTER TABLE t DROP (s, l, m, st) USING TIMESTAMP 1000",
            "ALTER TABLE t ADD (s set<int>, l list<int>, m map<int, int>, st map<int, int> static)",
        ])
        .await;
    let all = "SELECT s, l, m, st FROM t";
    assert_eq!(client.rows(all).await, ["[2] [2] {\"2\": 2} {\"2\": 2}"]);
    client
        .all(&[
            "UPDATE t USING TIMESTAMP 3000 SET s = s - {2}, m[2] = 3, m[3] = 3, st = {4: 4} WHERE p = 1 AND c = 1",
            "UPDATE t USING TIMESTAMP 900 SET s = s + {7}, l = l + [7], m[7] = 7, st[7] = 7 WHERE p = 1 AND c = 1",
        ])
        .await;
    let expected = "[2] [2] {\"2\": 2, \"3\": 3} {\"2\": 2, \"4\": 4}";
    assert_eq!(client.rows(all).await, [expected]);
    client
        .ok("DELETE s, l, m FROM t USING TIMESTAMP 5000 WHERE p = 1 AND c = 1")
        .await;
    client.ok("DELETE st FROM t USING TIMESTAMP 5000 WHERE p = 1").await;
    assert!(client.rows(all).await.is_empty());
}

async fn an_element_is_found_among_those_that_show(client: Client) {
    client
        .all(&[
            "CREATE TABLE t (p int PRIMARY KEY, l list<int>)",
            "UPDATE t USING TIMESTAMP 100 SET l = [1, 2] WHERE p = 1",
            "UPDATE t USING TIMESTAMP 5000 SET l = l + [3] WHERE p = 1",
            "ALTER TABLE t DROP l USING TIMESTAMP 1000",
            "ALTER TABLE t ADD l list<int>",
            "UPDATE t USING TIMESTAMP 6000 SET l[0] = 4 WHERE p = 1",
        ])
        .await;
    assert_eq!(client.rows("SELECT l FROM t").await, ["[4]"]);
    let beyond = client.refused("UPDATE t SET l[1] = 5 WHERE p = 1").await;
    assert_eq!(beyond, "List index 1 out of bound, list has size 1");
}

async fn conditions_see_what_reads_see(client: Client) {
    client
        .all(&[
            "CREATE TABLE t (p int PRIMARY KEY, s int, w int)",
            "INSERT INTO t (p, s) VALUES (1, 1) USING TIMESTAMP 5000",
            "UPDATE t USING TIMESTAMP 500 SET s = 1 WHERE p = 2",
            "ALTER TABLE t DROP s USING TIMESTAMP 1000",
            "ALTER TABLE t ADD s int",
            "UPDATE t USING TIMESTAMP 3000 SET s = 4 WHERE p = 1",
        ])
        .await;
    let refused = "UPDATE t SET w = 1 WHERE p = 1 IF s = 4";
    assert_eq!(client.rows(refused).await, ["false 1"]);
    assert_eq!(client.rows("UPDATE t SET w = 1 WHERE p = 1 IF s = 1").await, ["true"]);
    assert_eq!(client.rows("UPDATE t SET w = 1 WHERE p = 2 IF EXISTS").await, ["false"]);
}

async fn indexes_find_what_reads_see(client: Client) {
    client
        .all(&[
            "CREATE TABLE t (p int PRIMARY KEY, s int, m set<int>)",
            "INSERT INTO t (p, s, m) VALUES (1, 1, {1}) USING TIMESTAMP 5000",
            "INSERT INTO t (p, s, m) VALUES (2, 2, {2}) USING TIMESTAMP 500",
            "ALTER TABLE t DROP (s, m) USING TIMESTAMP 1000",
            "ALTER TABLE t ADD (s int, m set<int>)",
            "CREATE INDEX ON t (s)",
            "CREATE INDEX ON t (m)",
            "UPDATE t USING TIMESTAMP 3000 SET s = 4, m = m + {4} WHERE p = 1",
            "UPDATE t USING TIMESTAMP 900 SET s = 4, m = m + {9} WHERE p = 3",
            "UPDATE t USING TIMESTAMP 6000 SET m = m + {6} WHERE p = 3",
        ])
        .await;
    client.built().await;
    for (read, expected) in [
        ("SELECT p FROM t WHERE s = 1", &["1"][..]),
        ("SELECT p FROM t WHERE s = 2", &[]),
        ("SELECT p FROM t WHERE s = 4", &[]),
        ("SELECT p FROM t WHERE m CONTAINS 1", &["1"]),
        ("SELECT p FROM t WHERE m CONTAINS 4", &[]),
        ("SELECT p FROM t WHERE m CONTAINS 2", &[]),
        ("SELECT p FROM t WHERE m CONTAINS 6", &["3"]),
        ("SELECT p FROM t WHERE m CONTAINS 9", &[]),
    ] {
        assert_eq!(client.rows(read).await, expected, "{read}");
    }
    let check = client.database.engine().upkeep().check_indexes().await.unwrap();
    assert_eq!(check.differences, 0, "{check:?}");
}

async fn views_have_what_reads_see(client: Client) {
    client
        .all(&[
            "CREATE TABLE t (p int PRIMARY KEY, s int, w int, gone int)",
            "INSERT INTO t (p, s, w) VALUES (1, 1, 1) USING TIMESTAMP 5000",
            "INSERT INTO t (p, s, w) VALUES (2, 2, 2) USING TIMESTAMP 500",
            "UPDATE t USING TIMESTAMP 5000 SET gone = 1 WHERE p = 3",
            "ALTER TABLE t DROP (s, gone) USING TIMESTAMP 1000",
            "ALTER TABLE t ADD s int",
            "CREATE MATERIALIZED VIEW by_s AS SELECT * FROM t WHERE p IS NOT NULL AND s IS NOT NULL PRIMARY KEY (s, p)",
            "CREATE MATERIALIZED VIEW few AS SELECT p FROM t WHERE p IS NOT NULL PRIMARY KEY (p)",
        ])
        .await;
    for _ in 0..60_000 {
        if client.rows("SELECT view_name FROM system.built_views").await.len() == 2 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    assert_eq!(client.rows("SELECT * FROM by_s").await, ["1 1 1"]);
    client
        .all(&[
            "UPDATE t USING TIMESTAMP 3000 SET s = 4 WHERE p = 1",
            "UPDATE t USING TIMESTAMP 900 SET s = 9 WHERE p = 2",
        ])
        .await;
    assert_eq!(client.rows("SELECT * FROM by_s").await, ["1 1 1"]);
    client.ok("UPDATE t USING TIMESTAMP 6000 SET s = 7 WHERE p = 1").await;
    assert_eq!(client.rows("SELECT * FROM by_s").await, ["7 1 1"]);
    // A value that nobody sees makes no row.
    client.ok("UPDATE t SET w = null WHERE p = 3").await;
    assert!(client.rows("SELECT * FROM t WHERE p = 3").await.is_empty());
    assert!(client.rows("SELECT * FROM few WHERE p = 3").await.is_empty());
}

async fn another_type_reads_the_old_values(client: Client) {
    client
        .all(&[
            "CREATE TABLE t (p int PRIMARY KEY, a ascii, s set<ascii>, m map<ascii, timestamp>, u tuple<int>, e set<frozen<tuple<int>>>)",
            "INSERT INTO t (p, a, s, m, u, e) VALUES (1, 'a', {'b'}, {'c': 1}, (1), {(1)}) USING TIMESTAMP 5000",
            "ALTER TABLE t DROP (a, s, m, u, e) USING TIMESTAMP 1000",
            "ALTER TABLE t ADD (a blob, s set<text>, m map<blob, bigint>, u tuple<varint, text>, e set<frozen<tuple<int, text>>>)",
        ])
        .await;
    let all = "SELECT a, s, m, u, e FROM t";
    let expected = "\"0x61\" [\"b\"] {\"0x63\": 1} [1, null] [[1, null]]";
    assert_eq!(client.rows(all).await, [expected]);
    client
        .ok("UPDATE t SET s = s - {'b'}, m[0x63] = null WHERE p = 1")
        .await;
    assert_eq!(client.rows("SELECT s, m FROM t").await, ["null null"]);
}

async fn a_prepared_statement_hides_what_a_later_drop_hides(client: Client) {
    client
        .all(&[
            "CREATE TABLE t (p int PRIMARY KEY, s int)",
            "INSERT INTO t (p, s) VALUES (1, 1) USING TIMESTAMP 500",
        ])
        .await;
    let select = client.database.prepare(Some("ks"), "SELECT s FROM t").unwrap();
    client
        .all(&["ALTER TABLE t DROP s USING TIMESTAMP 1000", "ALTER TABLE t ADD s int"])
        .await;
    let answer = client
        .database
        .execute(&client.session, &select, &QueryParams::default())
        .await;
    assert_eq!(printed(&answer.unwrap()), ["null"]);
}
