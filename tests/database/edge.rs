//! Statements through a machine without partitions: the same rows, pages, charges, warnings and errors as where the partitions are.

use helenus_cql::cql::{AnswerKind, QueryParams};

use crate::support::{Client, printed};

const SCHEMA: [&str; 7] = [
    "CREATE TABLE t (k int, c int, s text static, v int, w text, l list<int>, m map<text, int>, PRIMARY KEY (k, c)) WITH helenus_partitions = 4",
    "CREATE INDEX ON t (v)",
    "CREATE TABLE n (k int PRIMARY KEY, c counter)",
    "CREATE TABLE p (a int, b text, v int, PRIMARY KEY ((a, b))) WITH helenus_partitions = 2",
    "CREATE TYPE y (a int, b text)",
    "CREATE TABLE u (k int PRIMARY KEY, y frozen<y>, z y, x set<int>)",
    "CREATE MATERIALIZED VIEW by_v AS SELECT k, c, v FROM t WHERE v IS NOT NULL AND c IS NOT NULL AND k IS NOT NULL PRIMARY KEY (v, k, c)",
];

const WRITES: [&str; 22] = [
    "UPDATE t SET s = 'one' WHERE k = 1",
    "UPDATE t SET s = 'alone' WHERE k = 77",
    "UPDATE t SET l = l + [1, 2], m['a'] = 1 WHERE k = 1 AND c = 1",
    "UPDATE t SET l[0] = 5 WHERE k = 1 AND c = 1",
    "UPDATE t SET l[9] = 5 WHERE k = 1 AND c = 1",
    "DELETE FROM t WHERE k = 2 AND c > 3 AND c < 6",
    "DELETE w FROM t WHERE k = 2 AND c = 1",
    "INSERT INTO t (k, c, v) VALUES (3, 3, 9) IF NOT EXISTS",
    "UPDATE t SET v = 9 WHERE k = 3 AND c = 4 IF v = 0",
    "UPDATE t SET v = 9 WHERE k = 3 AND c = 4 IF v = 34",
    "UPDATE n SET c = c + 5 WHERE k = 1",
    "UPDATE n SET c = c - 2 WHERE k = 1",
    "BEGIN BATCH INSERT INTO p (a, b, v) VALUES (1, 'x', 1) INSERT INTO p (a, b, v) VALUES (2, 'y', 2) APPLY BATCH",
    "BEGIN UNLOGGED BATCH UPDATE t SET v = 1 WHERE k = 4 AND c = 1 IF v = 41 UPDATE t SET v = 2 WHERE k = 4 AND c = 2 APPLY BATCH",
    "BEGIN COUNTER BATCH UPDATE n SET c = c + 1 WHERE k = 2 UPDATE n SET c = c + 1 WHERE k = 3 APPLY BATCH",
    "INSERT INTO p (a, b, v) VALUES (3, '', 3) USING TTL 100 AND TIMESTAMP 5",
    "INSERT INTO p (a, b, v) VALUES (3, 'z', 3) USING TTL 999999999",
    "INSERT INTO u (k, y, z, x) VALUES (1, {a: 1, b: 'c'}, {a: 2}, {3, 1, 2})",
    "UPDATE u SET z.b = 'd', x = x - {1} WHERE k = 1",
    "INSERT INTO nothing (k) VALUES (1)",
    "DELETE FROM t WHERE k = 5",
    "UPDATE t SET v = 1 WHERE k = 6 AND c IN (1, 2) IF EXISTS",
];

const READS: [&str; 34] = [
    "SELECT * FROM t",
    "SELECT k, c FROM t WHERE k = 1",
    "SELECT * FROM t WHERE k = 2 ORDER BY c DESC",
    "SELECT * FROM t WHERE k IN (3, 1, 99, 2)",
    "SELECT * FROM t WHERE k IN (3, 1) AND c IN (1, 5, 3)",
    "SELECT c, v FROM t WHERE k = 2 AND c > 2 AND c <= 6",
    "SELECT DISTINCT k, s FROM t",
    "SELECT DISTINCT k FROM t LIMIT 2",
    "SELECT * FROM t PER PARTITION LIMIT 2",
    "SELECT k, c FROM t PER PARTITION LIMIT 2 LIMIT 5",
    "SELECT k, c FROM t WHERE k IN (1, 2, 3) PER PARTITION LIMIT 1",
    "SELECT count(*), sum(v), max(w) FROM t",
    "SELECT count(*) FROM t WHERE k = 3",
    "SELECT k, count(*), min(c) FROM t GROUP BY k",
    "SELECT k, count(*) FROM t GROUP BY k LIMIT 3",
    "SELECT k, c, v FROM t GROUP BY k, c PER PARTITION LIMIT 2",
    "SELECT k, c FROM t WHERE v = 21",
    "SELECT k, c FROM t WHERE k = 2 AND v = 21",
    "SELECT k, c FROM t WHERE v > 20 AND v < 40 ALLOW FILTERING",
    "SELECT k, c FROM t WHERE w = 'w3' ALLOW FILTERING",
    "SELECT k, c FROM t WHERE w = 'w3' LIMIT 2 ALLOW FILTERING",
    "SELECT writetime(w), ttl(w) FROM t WHERE k = 1 AND c = 2",
    "SELECT v, writetime(v), ttl(v) FROM p WHERE a = 3 AND b = ''",
    "SELECT JSON * FROM t WHERE k = 1",
    "SELECT token(k), k FROM t WHERE token(k) > 0",
    "SELECT * FROM t WHERE token(k) > -9223372036854775808 AND token(k) <= 0 LIMIT 7",
    "SELECT * FROM n",
    "SELECT * FROM p",
    "SELECT * FROM p WHERE a = 1 AND b = 'x'",
    "SELECT * FROM u",
    "SELECT z.b, x, writetime(x) FROM u WHERE k = 1",
    "SELECT v, k, c FROM by_v WHERE v = 9",
    "SELECT * FROM t WHERE k = 'x'",
    "SELECT * FROM t WHERE w = 'w1'",
];

/// What a client sees of a statement.
async fn seen(client: &Client, text: &str, page_rows: Option<u32>) -> String {
    let mut told = String::new();
    let mut state = None;
    for _ in 0..200 {
        let params = QueryParams {
            page_size_rows: page_rows,
            paging_state: state.take(),
            ..QueryParams::default()
        };
        match client.run(text, params).await {
            Err(error) => return format!("{told}{} {error}", error.code().number()),
            Ok(answer) => {
                let rows = match &answer.kind {
                    AnswerKind::Rows(rows) => {
                        state.clone_from(&rows.paging_state);
                        printed(&answer).join("\n")
                    }
                    other => format!("{other:?}"),
                };
                told.push_str(&format!("{rows}\n{:?} {}\n", answer.warnings, answer.charge));
            }
        }
        if state.is_none() {
            return told;
        }
    }
    panic!("{text}: its pages do not end");
}

async fn filled(client: Client) -> Client {
    let client = client.in_keyspace().await;
    for text in SCHEMA {
        client.ok(text).await;
    }
    for k in 0..8 {
        for c in 0..8 {
            let (v, wide) = (k * 10 + c, "x".repeat(if k == 7 { 90_000 } else { 3 }));
            client
                .ok(&format!(
                    "INSERT INTO t (k, c, v, w) VALUES ({k}, {c}, {v}, 'w{c}{wide}')"
                ))
                .await;
        }
    }
    client.built().await;
    client
}

#[tokio::test]
async fn statements_are_answered_as_where_the_partitions_are() {
    let here = filled(Client::open("memory:").await).await;
    let there = filled(Client::open("memory:").await.through_edge().await).await;
    for text in WRITES {
        let (ours, theirs) = (seen(&here, text, None).await, seen(&there, text, None).await);
        assert_eq!(ours, theirs, "{text}");
    }
    for text in READS {
        for page_rows in [None, Some(1), Some(3), Some(50)] {
            let (ours, theirs) = (seen(&here, text, page_rows).await, seen(&there, text, page_rows).await);
            assert!(
                ours == theirs,
                "{text}, pages of {page_rows:?}:\n{ours:.2000}\n---\n{theirs:.2000}"
            );
        }
    }
}

#[tokio::test]
async fn splits_beside_reads_lose_and_double_nothing() {
    let client = filled(Client::open("memory:").await.through_edge().await).await;
    let before = client.rows("SELECT k, c FROM t").await;
    assert_eq!(before.len(), 64);
    for at in [
        -5_000_000_000_000_000_000_i64,
        1_000_000_000_000_000_000,
        7_000_000_000_000_000_000,
    ] {
        client.ok(&format!("ALTER TABLE t WITH helenus_split_at = {at}")).await;
        assert_eq!(client.rows("SELECT k, c FROM t").await, before);
    }
}
