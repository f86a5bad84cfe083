//! Values over 64 KiB in a WHERE clause, as Cassandra 5.0.9 answered the same statements: a legacy index refuses them, no row has them in its
//! clustering key, and no row is written with them.

use crate::support::Client;

const INDEX: &str = "Index expression values may not be larger than 64K";
const KEY: &str = "Key length of 70000 is longer than maximum of 65535";

/// The statement with a text of 70,000 characters for each `?`.
fn long(statement: &str) -> String {
    statement.replace('?', &format!("'{}'", "x".repeat(70_000)))
}

async fn tables() -> Client {
    let client = Client::with_keyspace("memory:").await;
    for statement in [
        "CREATE TABLE f (k int, c text, d text, v text, w text, s set<text>, m map<text, text>, l list<text>, fl frozen<list<text>>, st text static, \
         PRIMARY KEY (k, c, d))",
        "CREATE INDEX ON f (v)",
        "CREATE INDEX ON f (s)",
        "CREATE INDEX ON f (m)",
        "CREATE INDEX ON f (l)",
        "CREATE INDEX ON f (c)",
        "CREATE INDEX ON f (d)",
        "CREATE INDEX ON f (st)",
        "CREATE INDEX ON f (full(fl))",
        "CREATE TABLE g (k int, c text, v text, m map<text, text>, e map<text, text>, PRIMARY KEY (k, c))",
        "CREATE INDEX ON g (keys(m))",
        "CREATE INDEX ON g (entries(e))",
        "CREATE TABLE h (a text, b text, c text, v text, PRIMARY KEY ((a, b), c))",
        "CREATE INDEX ON h (a)",
        "CREATE INDEX ON h (b)",
        "INSERT INTO f (k, c, d, v) VALUES (1, 'a', 'b', 'x')",
        "INSERT INTO g (k, c, v) VALUES (1, 'y', 'a')",
    ] {
        client.ok(statement).await;
    }
    client
}

#[tokio::test]
async fn a_legacy_index_refuses_them() {
    let client = tables().await;
    for restrictions in [
        "v = ?",
        "s CONTAINS ?",
        "m CONTAINS ?",
        "l CONTAINS ?",
        "c = ?",
        "d = ?",
        "st = ?",
        "fl = [?]",
        "k = 1 AND v = ?",
        "token(k) > 1 AND v = ? LIMIT 1",
        "k = 1 AND c = 'a' AND d = 'b' AND v = ? ALLOW FILTERING",
        "w = 'x' AND v = ? ALLOW FILTERING",
        "v IN (?) ALLOW FILTERING",
        "k = 1 AND d = ?",
        "c = ? ALLOW FILTERING",
    ] {
        let refused = client
            .refused(&long(&format!("SELECT k FROM f WHERE {restrictions}")))
            .await;
        assert_eq!(refused, INDEX, "{restrictions}");
    }
    for statement in [
        "SELECT k FROM g WHERE m CONTAINS KEY ?",
        "SELECT c FROM h WHERE a = ?",
        "SELECT c FROM h WHERE b = ?",
        "SELECT c FROM h WHERE a = ? AND c = 'a' ALLOW FILTERING",
    ] {
        assert_eq!(client.refused(&long(statement)).await, INDEX, "{statement}");
    }
    // Key and value of an entry are one value of the index.
    let half = "x".repeat(40_000);
    let entry = format!("SELECT k FROM g WHERE e['{half}'] = '{half}'");
    assert_eq!(client.refused(&entry).await, INDEX);
    let of = |bytes: usize| format!("SELECT k FROM f WHERE v = '{}'", "x".repeat(bytes));
    assert_eq!(client.rows(&of(65_535)).await.len(), 0);
    assert_eq!(client.refused(&of(65_536)).await, INDEX);
}

#[tokio::test]
async fn no_row_has_them_in_its_key() {
    let client = tables().await;
    for (restrictions, rows) in [
        ("w = ? ALLOW FILTERING", 0),
        ("v = 'x' AND w = ? ALLOW FILTERING", 0),
        ("v > ? ALLOW FILTERING", 0),
        ("k = 1 AND c = ? AND v = 'x'", 0),
        ("k = 1 AND c = ?", 0),
        ("k = 1 AND c = 'a' AND d = ?", 0),
        ("k = 1 AND c = ? AND d = 'b'", 0),
        ("k = 1 AND c IN (?, 'a')", 1),
        ("k = 1 AND c IN (?)", 0),
        ("k = 1 AND c IN ('a') AND d IN (?, 'b')", 1),
        ("k = 1 AND (c, d) = (?, 'b')", 0),
        ("k = 1 AND (c, d) IN ((?, 'b'), ('a', 'b'))", 1),
        ("k = 1 AND c > ?", 0),
        ("k = 1 AND c < ?", 1),
        ("k = 1 AND (c, d) > (?, 'a')", 0),
        ("k = 1 AND (c, d) < ('z', ?)", 1),
        ("c IN (?, 'a') ALLOW FILTERING", 1),
    ] {
        let found = client
            .rows(&long(&format!("SELECT k FROM f WHERE {restrictions}")))
            .await;
        assert_eq!(found.len(), rows, "{restrictions}");
    }
    let half = "x".repeat(40_000);
    let both = format!("SELECT k FROM f WHERE k = 1 AND c = '{half}' AND d = '{half}'");
    assert_eq!(client.rows(&both).await.len(), 0);
}

#[tokio::test]
async fn no_row_is_written_with_them() {
    let client = tables().await;
    for statement in [
        "INSERT INTO g (k, c, v) VALUES (1, ?, 'a')",
        "UPDATE g SET v = 'a' WHERE k = 1 AND c = ?",
        "UPDATE g SET v = 'a' WHERE k = 1 AND c IN (?)",
        "DELETE FROM g WHERE k = 1 AND c = ?",
        "DELETE FROM g WHERE k = 1 AND c IN (?)",
    ] {
        assert_eq!(client.refused(&long(statement)).await, KEY, "{statement}");
    }
    assert_eq!(client.rows("SELECT c FROM g WHERE k = 1").await.len(), 1);
}
