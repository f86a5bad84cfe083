//! Ordered tables as CQL makes and reads them: `placement = 'ordered'`, the order of keys by UTF-16 unit, ranges of the partition key.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

use helenus_base::clock::Clock;
use helenus_cql::cql::{Database, SessionState};
use helenus_engine::engine::Options;
use helenus_schema::profile::Profile;

use crate::support::{Client, NOW_MICROS};

const TABLE: &str = "CREATE TABLE t (p text, c text, id int, PRIMARY KEY (p, c)) WITH placement = 'ordered'";

/// Pieces of keys: what lies on both sides of the surrogates, and what the keys of a store escape.
const PIECES: [&str; 12] = [
    "\u{1}",
    "A",
    "a",
    "aa",
    "z",
    "\u{7F}",
    "é",
    "\u{D7FF}",
    "\u{E000}",
    "\u{FFFD}",
    "\u{10000}",
    "\u{1F600}",
];

fn key(random: &mut fastrand::Rng) -> String {
    (0..random.usize(1..4))
        .map(|_| PIECES[random.usize(..PIECES.len())])
        .collect()
}

fn units(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

/// A row: its keys and its number.
type Row = (String, String, usize);

async fn filled(client: &Client, random: &mut fastrand::Rng, rows: usize) -> Vec<Row> {
    let mut keys = std::collections::BTreeSet::new();
    while keys.len() < rows {
        keys.insert((key(random), key(random)));
    }
    let mut rows: Vec<Row> = keys.into_iter().enumerate().map(|(id, (p, c))| (p, c, id)).collect();
    random.shuffle(&mut rows);
    for (p, c, id) in &rows {
        client
            .ok(&format!("INSERT INTO t (p, c, id) VALUES ('{p}', '{c}', {id})"))
            .await;
    }
    rows.sort_by_key(|(p, c, _)| (units(p), units(c)));
    rows
}

async fn ids(client: &Client, clause: &str, page_rows: u32) -> Vec<usize> {
    let pages = client.pages(&format!("SELECT id FROM t {clause}"), page_rows).await;
    pages.concat().iter().map(|id| id.parse().unwrap()).collect()
}

fn those<'a>(rows: &'a [Row], is_in: impl Fn(&Row) -> bool + 'a) -> Vec<usize> {
    rows.iter().filter(|row| is_in(row)).map(|row| row.2).collect()
}

async fn holds(client: &Client, rows: &[Row], random: &mut fastrand::Rng) {
    for page_rows in [1, 7, 5000] {
        assert_eq!(
            ids(client, "", page_rows).await,
            those(rows, |_| true),
            "by {page_rows}"
        );
    }
    for _ in 0..20 {
        let (from, to) = (key(random), key(random));
        let above = |row: &Row| units(&row.0) >= units(&from);
        let below = |row: &Row| units(&row.0) < units(&to);
        let from_on = format!("WHERE p >= '{from}' AND p < '{to}'");
        let page_rows = random.u32(1..30);
        assert_eq!(
            ids(client, &from_on, page_rows).await,
            those(rows, |row| above(row) && below(row)),
            "{from_on}"
        );
        let behind = format!("WHERE p > '{from}' AND p <= '{to}'");
        let expected = those(rows, |row| (above(row) && row.0 != from) && (below(row) || row.0 == to));
        assert_eq!(ids(client, &behind, page_rows).await, expected, "{behind}");
        assert_eq!(
            ids(client, &format!("WHERE p >= '{from}'"), page_rows).await,
            those(rows, above)
        );
        assert_eq!(
            ids(client, &format!("WHERE p < '{to}'"), page_rows).await,
            those(rows, below)
        );
        let p = &rows[random.usize(..rows.len())].0;
        let inside = |row: &Row| row.0 == *p && units(&row.1) >= units(&from) && units(&row.1) < units(&to);
        let of_one = format!("WHERE p = '{p}' AND c >= '{from}' AND c < '{to}'");
        assert_eq!(ids(client, &of_one, page_rows).await, those(rows, inside), "{of_one}");
        let inside = |row: &Row| above(row) && below(row) && units(&row.1) < units(p);
        let both = format!("{from_on} AND c < '{p}' ALLOW FILTERING");
        assert_eq!(ids(client, &both, page_rows).await, those(rows, inside), "{both}");
    }
    for (p, c, id) in rows {
        assert_eq!(ids(client, &format!("WHERE p = '{p}' AND c = '{c}'"), 10).await, [*id]);
    }
}

async fn lives(url: &str) {
    let mut random = fastrand::Rng::with_seed(41);
    let client = Client::with_keyspace(url).await;
    client.ok(TABLE).await;
    let rows = filled(&client, &mut random, 300).await;
    holds(&client, &rows, &mut random).await;
    let mut splits = 0;
    while splits < 8 {
        let at = key(&mut random);
        let split = format!("ALTER TABLE t WITH helenus_split_at = '{at}'");
        splits += u32::from(client.run(&split, Default::default()).await.is_ok());
    }
    let parts = client
        .rows("SELECT COUNT(*) FROM system_cosmos.partitions WHERE keyspace_name = 'ks' ALLOW FILTERING")
        .await;
    assert_eq!(parts, ["9"]);
    holds(&client, &rows, &mut random).await;
    if !url.starts_with("memory") {
        client.database.close().await.unwrap();
        drop(client);
        let client = Client::with_keyspace(url).await;
        holds(&client, &rows, &mut random).await;
        client.ok("TRUNCATE t").await;
        let rows = filled(&client, &mut random, 50).await;
        holds(&client, &rows, &mut random).await;
    }
}

#[tokio::test]
async fn keys_lie_in_the_order_of_utf16_in_memory() {
    lives("memory:").await;
}

#[tokio::test]
async fn keys_lie_in_the_order_of_utf16_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    lives(&format!("file:{}", folder.path().display())).await;
}

#[tokio::test]
async fn placement_is_said_once_and_shown() {
    let client = Client::with_keyspace("memory:").await;
    client.ok(TABLE).await;
    client
        .ok("CREATE TABLE h (p int PRIMARY KEY) WITH placement = 'hash'")
        .await;
    let described = client.rows("DESCRIBE TABLE t").await.concat();
    assert!(described.contains("AND placement = 'ordered';"), "{described}");
    assert!(!client.rows("DESCRIBE TABLE h").await.concat().contains("placement"));
    for (statement, refusal) in [
        (
            "ALTER TABLE t WITH placement = 'hash'",
            "placement can only be set when a table is created",
        ),
        (
            "ALTER TABLE h WITH placement = 'ordered'",
            "placement can only be set when a table is created",
        ),
        (
            "CREATE TABLE u (p text PRIMARY KEY) WITH placement = 'random'",
            "Invalid value 'random' for 'placement': it is 'hash' or 'ordered'",
        ),
        (
            "CREATE TABLE u (p int PRIMARY KEY) WITH placement = 'ordered'",
            "A table with placement = 'ordered' has a partition key of one column of type text or ascii, not (p)",
        ),
        (
            "CREATE TABLE u (p text, q text, PRIMARY KEY ((p, q))) WITH placement = 'ordered'",
            "A table with placement = 'ordered' has a partition key of one column of type text or ascii, not (p, q)",
        ),
        (
            "CREATE TABLE u (p text PRIMARY KEY) WITH placement = 'ordered' AND helenus_partitions = 4",
            "A table with placement = 'ordered' starts with one physical partition, since no key is known yet; 'helenus_partitions' \
             cannot stand beside it",
        ),
        (
            "CREATE MATERIALIZED VIEW v AS SELECT * FROM t WHERE p IS NOT NULL AND c IS NOT NULL PRIMARY KEY (c, p) \
             WITH placement = 'ordered'",
            "A materialized view lies in the order of its hash; it cannot have placement = 'ordered'",
        ),
    ] {
        assert_eq!(client.refused(statement).await, refusal, "{statement}");
    }
}

/// The profile `cosmos` puts its own defaults in place of most options, not of this one.
#[tokio::test]
async fn placement_holds_in_the_profile_of_cosmos() {
    let options = Options {
        profile: Profile::Cosmos,
        ..Client::options("memory:", Clock::manual(NOW_MICROS))
    };
    let client = Client::over(
        Database::open(options).await.unwrap(),
        SessionState::default(),
        Clock::manual(NOW_MICROS),
    );
    let client = client.in_keyspace().await;
    client.ok(TABLE).await;
    let described = client.rows("DESCRIBE TABLE t").await.concat();
    assert!(described.contains("placement = 'ordered'"), "{described}");
    client.ok("SELECT * FROM t WHERE p >= 'a' AND p < 'b'").await;
}

#[tokio::test]
async fn a_range_is_read_without_filtering_and_shown() {
    let client = Client::with_keyspace("memory:").await;
    client.ok(TABLE).await;
    client.ok("CREATE TABLE h (p text PRIMARY KEY)").await;
    for (p, c) in [("a", "1"), ("b", "1"), ("b", "2"), ("c", "1")] {
        client
            .ok(&format!("INSERT INTO t (p, c, id) VALUES ('{p}', '{c}', 0)"))
            .await;
    }
    let filters = client.refused("SELECT * FROM h WHERE p >= 'a'").await;
    assert!(filters.contains("ALLOW FILTERING"), "{filters}");
    let rows_too = "SELECT p, c FROM t WHERE p >= 'b' AND p < 'c' AND c = '2'";
    assert_eq!(client.refused(rows_too).await, filters);
    assert_eq!(
        client.rows(&format!("{rows_too} ALLOW FILTERING")).await,
        [r#""b" "2""#]
    );
    let partitions = async |clause: &str| {
        let lines = client.rows(&format!("EXPLAIN SELECT * FROM t WHERE {clause}")).await;
        let line = lines.into_iter().find(|line| line.contains(r#""partitions""#)).unwrap();
        line.split_once(r#""partitions" "#)
            .unwrap()
            .1
            .trim_matches('"')
            .to_owned()
    };
    assert_eq!(
        partitions("p >= 'b' AND p < 'c'").await,
        "keys in order: p >= 'b' and p < 'c'"
    );
    assert_eq!(partitions("p > 'b'").await, "keys in order: p > 'b'");
    assert_eq!(partitions("p <= 'b'").await, "keys in order: p <= 'b'");
    assert!(
        client
            .rows("SELECT * FROM t WHERE p >= 'c' AND p < 'b'")
            .await
            .is_empty()
    );
    // All keys have one token, so a reader by token ranges reads each row once.
    assert_eq!(client.rows("SELECT token(p) FROM t WHERE p = 'a'").await, ["0"]);
    assert_eq!(
        client
            .rows("SELECT p FROM t WHERE token(p) > -5 AND token(p) <= 5")
            .await
            .len(),
        4
    );
    assert!(client.rows("SELECT p FROM t WHERE token(p) > 5").await.is_empty());
    let written = client.refused("DELETE FROM t WHERE p >= 'a'").await;
    assert!(written.contains("Only EQ and IN relation are supported"), "{written}");
    // With an index the range filters.
    client.ok("CREATE INDEX ON t (id)").await;
    let by_index = client
        .rows("SELECT p, c FROM t WHERE id = 0 AND p >= 'c' ALLOW FILTERING")
        .await;
    assert_eq!(by_index, [r#""c" "1""#]);
}
