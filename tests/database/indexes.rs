//! Secondary indexes: a table with indexes and its twin without any are written alike and asked alike, and answer alike; and the
//! entries of every index are at any moment what the rows derive.

#![expect(clippy::unwrap_used, reason = "a test says no better what went wrong")]

use std::time::Duration;

use crate::support::{Client, printed};
use helenus_base::clock::Clock;
use helenus_cql::cql::{AnswerKind, QueryParams};

const COLUMNS: &str = "(a int, b text, c int, d text, s int static, v int, w text, l list<int>, e set<text>, \
    m map<text, int>, f frozen<map<text, int>>, PRIMARY KEY ((a, b), c, d)) WITH CLUSTERING ORDER BY (c DESC, d ASC) \
    AND gc_grace_seconds = 50";

const INDEXES: [&str; 12] = [
    "CREATE INDEX of_b ON t (b)",
    "CREATE INDEX of_c ON t (c)",
    "CREATE INDEX of_d ON t (d)",
    "CREATE INDEX of_s ON t (s)",
    "CREATE CUSTOM INDEX of_v ON t (v) USING 'StorageAttachedIndex'",
    "CREATE INDEX of_w ON t (w)",
    "CREATE INDEX of_l ON t (l)",
    "CREATE INDEX of_e ON t (e)",
    "CREATE INDEX of_m_keys ON t (keys(m))",
    "CREATE INDEX of_m_values ON t (values(m))",
    "CREATE INDEX of_m_entries ON t (entries(m))",
    "CREATE INDEX of_f ON t (full(f))",
];

/// What only one row in so many says.
struct Words(fastrand::Rng);

impl Words {
    fn int(&mut self) -> i32 {
        self.0.i32(0..4)
    }

    fn text(&mut self) -> String {
        format!("'{}'", self.0.choice(["x", "y", "z", ""]).unwrap())
    }

    fn map(&mut self) -> String {
        format!("{{{}: {}, {}: {}}}", self.text(), self.int(), self.text(), self.int())
    }

    fn partition(&mut self) -> String {
        format!("a = {} AND b = {}", self.int(), self.text())
    }

    fn row(&mut self) -> String {
        format!("{} AND c = {} AND d = {}", self.partition(), self.int(), self.text())
    }

    fn using(&mut self) -> String {
        let ttl = if self.0.u8(0..4) == 0 {
            format!(" AND TTL {}", self.0.u8(1..30))
        } else {
            String::new()
        };
        format!("USING TIMESTAMP {}{ttl}", self.0.u16(1..40))
    }

    fn assignment(&mut self) -> String {
        match self.0.u8(0..13) {
            0 => format!("v = {}", self.int()),
            1 => "v = null".to_owned(),
            2 => format!("w = {}", self.text()),
            3 => format!("s = {}", self.int()),
            4 => format!("l = [{}, {}]", self.int(), self.int()),
            5 => format!("l = l + [{}]", self.int()),
            6 => format!("e = e + {{{}}}", self.text()),
            7 => format!("e = e - {{{}}}", self.text()),
            8 => format!("m[{}] = {}", self.text(), self.int()),
            9 => format!("m = {}", self.map()),
            10 => format!("m = m - {{{}}}", self.text()),
            11 => format!("f = {}", self.map()),
            _ => "s = null".to_owned(),
        }
    }

    /// A statement that writes to the table called `t`.
    fn write(&mut self) -> String {
        let (using, row, partition) = (self.using(), self.row(), self.partition());
        let deleting = format!("USING TIMESTAMP {}", self.0.u16(1..30));
        match self.0.u8(0..14) {
            0..=3 => format!(
                "INSERT INTO t (a, b, c, d, v, w, m, e) VALUES ({}, {}, {}, {}, {}, {}, {}, {{{}}}) {using}",
                self.int(),
                self.text(),
                self.int(),
                self.text(),
                self.int(),
                self.text(),
                self.map(),
                self.text(),
            ),
            4..=8 => match self.assignment() {
                of_static if of_static.starts_with("s =") => {
                    format!("UPDATE t {using} SET {of_static} WHERE {partition}")
                }
                of_row => format!("UPDATE t {using} SET {of_row} WHERE {row}"),
            },
            9 => format!("DELETE v, m FROM t {deleting} WHERE {row}"),
            10 => format!("DELETE FROM t {deleting} WHERE {row}"),
            11 => format!("DELETE FROM t {deleting} WHERE {partition} AND c > {}", self.int()),
            12 => format!("DELETE FROM t {deleting} WHERE {partition}"),
            _ => format!(
                "INSERT INTO t (a, b, s) VALUES ({}, {}, {}) {using}",
                self.int(),
                self.text(),
                self.int()
            ),
        }
    }

    /// A condition that some index serves.
    fn condition(&mut self) -> String {
        match self.0.u8(0..14) {
            0 => format!("b = {}", self.text()),
            1 => format!("c = {}", self.int()),
            2 => format!("d = {}", self.text()),
            3 => format!("s = {}", self.int()),
            4 => format!("v = {}", self.int()),
            5 => format!("v > {}", self.int()),
            6 => format!("v >= {} AND v < {}", self.int(), self.int()),
            7 => format!("w = {}", self.text()),
            8 => format!("l CONTAINS {}", self.int()),
            9 => format!("e CONTAINS {}", self.text()),
            10 => format!("m CONTAINS KEY {}", self.text()),
            11 => format!("m CONTAINS {}", self.int()),
            12 => format!("m[{}] = {}", self.text(), self.int()),
            _ => format!("f = {}", self.map()),
        }
    }

    /// A query of the table called `t`.
    fn query(&mut self) -> String {
        let mut conditions = self.condition();
        for _ in 0..self.0.u8(0..3) {
            let more = self.condition();
            let column = more.split([' ', '[']).next().unwrap();
            if !conditions.contains(&format!("{column} ")) && !conditions.contains(&format!("{column}[")) {
                conditions = format!("{conditions} AND {more}");
            }
        }
        if self.0.u8(0..4) == 0 && !conditions.contains("b =") {
            conditions = format!("{} AND {conditions}", self.partition());
        }
        let ends = [
            "",
            " LIMIT 5",
            " PER PARTITION LIMIT 1",
            " PER PARTITION LIMIT 2 LIMIT 3",
        ];
        let rest = self.0.choice(ends).unwrap();
        match self.0.u8(0..8) {
            0 => format!("SELECT count(*), max(v) FROM t WHERE {conditions}"),
            1 => format!("SELECT a, b, c, count(*) FROM t WHERE {conditions} GROUP BY a, b, c{rest}"),
            2 => format!("SELECT s, v FROM t WHERE {conditions}{rest}"),
            _ => format!("SELECT * FROM t WHERE {conditions}{rest}"),
        }
    }
}

async fn writes(client: &Client, words: &mut Words, count: usize) {
    for _ in 0..count {
        let text = words.write();
        for table in ["t", "twin"] {
            let text = text.replacen(" t ", &format!(" {table} "), 1);
            client.ok(&text).await;
        }
    }
}

/// Asks both tables; how many answers came by way of an index.
async fn queries(client: &Client, words: &mut Words, count: usize) -> usize {
    let mut by_index = 0;
    for _ in 0..count {
        let text = format!("{} ALLOW FILTERING", words.query());
        let twin = text.replacen(" t ", " twin ", 1);
        let answer = client.run(&text, QueryParams::default()).await;
        let expected = client.run(&twin, QueryParams::default()).await;
        match (answer, expected) {
            (Ok(answer), Ok(expected)) => {
                by_index += answer.notes.len();
                assert_eq!(printed(&answer), printed(&expected), "{text}");
            }
            // Not every condition makes sense beside every other.
            (Err(answer), Err(expected)) => {
                assert_eq!(
                    answer.to_string().replace("twin", "t"),
                    expected.to_string().replace("twin", "t")
                );
                continue;
            }
            (answer, expected) => panic!("{text}: {answer:?} for {expected:?}"),
        }
        for rows in [1, 2, 7] {
            assert_eq!(
                client.pages(&text, rows).await,
                client.pages(&twin, rows).await,
                "{text} by {rows}"
            );
        }
    }
    by_index
}

async fn check(client: &Client) {
    let check = client.database.engine().upkeep().check_indexes().await.unwrap();
    assert_eq!((check.differences, &check.described), (0, &Vec::new()), "{check:?}");
}

async fn twins(client: &Client) {
    client.ok(&format!("CREATE TABLE t {COLUMNS}")).await;
    client.ok(&format!("CREATE TABLE twin {COLUMNS}")).await;
}

async fn an_index_answers_as_a_scan(url: &str, seed: u64) {
    let client = Client::with_keyspace(url).await;
    let mut words = Words(fastrand::Rng::with_seed(seed));
    twins(&client).await;
    let mut by_index = 0;
    for (number, index) in INDEXES.iter().enumerate() {
        // Some are made before there are rows, others after.
        if number % 2 == 0 {
            client.ok(index).await;
        }
    }
    writes(&client, &mut words, 60).await;
    for (number, index) in INDEXES.iter().enumerate() {
        if number % 2 == 1 {
            client.ok(index).await;
        }
    }
    client.built().await;
    for _ in 0..4 {
        check(&client).await;
        by_index += queries(&client, &mut words, 60).await;
        writes(&client, &mut words, 40).await;
        client.clock.advance(Duration::from_secs(10));
        check(&client).await;
        by_index += queries(&client, &mut words, 20).await;
        client.database.engine().upkeep().sweep().await.unwrap();
        check(&client).await;
    }
    client.ok("DROP INDEX of_w").await;
    client.ok("DROP INDEX of_m_keys").await;
    queries(&client, &mut words, 20).await;
    client.ok("CREATE INDEX of_w ON t (w)").await;
    queries(&client, &mut words, 20).await;
    for table in ["t", "twin"] {
        client.ok(&format!("TRUNCATE {table}")).await;
    }
    check(&client).await;
    assert!(printed(&client.ok("SELECT * FROM t WHERE v = 1 ALLOW FILTERING").await).is_empty());
    writes(&client, &mut words, 60).await;
    queries(&client, &mut words, 30).await;
    check(&client).await;
    assert!(by_index > 100, "{by_index} queries by an index");
}

/// More entries than one pass over them keeps.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ranges_of_many_entries_come_in_the_order_of_the_ring() {
    let client = Client::with_keyspace("memory:").await;
    for table in ["t", "twin"] {
        client
            .ok(&format!(
                "CREATE TABLE {table} (k int, c int, v int, PRIMARY KEY (k, c))"
            ))
            .await;
    }
    client.ok("CREATE INDEX ON t (v) USING 'sai'").await;
    let random = &mut fastrand::Rng::with_seed(7);
    for n in 0..300 {
        let rows: String = (0..60)
            .map(|c| format!("INSERT INTO t (k, c, v) VALUES ({n}, {c}, {}); ", random.i32(0..30)))
            .collect();
        for table in ["t", "twin"] {
            let rows = rows.replace("INTO t ", &format!("INTO {table} "));
            client.ok(&format!("BEGIN UNLOGGED BATCH {rows} APPLY BATCH")).await;
        }
    }
    client.built().await;
    for condition in ["v > 14", "v >= 14 AND v < 20", "v = 3", "v > 14 AND token(k) > 0"] {
        let text = format!("SELECT * FROM t WHERE {condition} ALLOW FILTERING");
        let twin = text.replacen(" t ", " twin ", 1);
        assert_eq!(
            printed(&client.ok(&text).await),
            printed(&client.ok(&twin).await),
            "{text}"
        );
        assert_eq!(client.pages(&text, 700).await, client.pages(&twin, 700).await, "{text}");
    }
    check(&client).await;
    // EXPLAIN says why it uses no index, with what both ways would read.
    for (condition, reason) in [
        (
            "v >= 0",
            "t_v_idx not used: a page would read 12144 index entries or more, the scan 18000 rows",
        ),
        (
            "k = 1 AND c = 2 AND v >= 0",
            "t_v_idx not used: the logical partition is read by its key",
        ),
    ] {
        let text = format!("EXPLAIN SELECT * FROM t WHERE {condition} ALLOW FILTERING");
        let stages = printed(&client.ok(&text).await);
        assert!(stages.iter().any(|stage| stage.contains(reason)), "{text}: {stages:?}");
    }
}

/// A type that gets another field is encoded in another way, so its index is built anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_follows_its_type() {
    let client = Client::with_keyspace("memory:").await;
    client.ok("CREATE TYPE place (street text)").await;
    for table in ["t", "twin"] {
        client
            .ok(&format!(
                "CREATE TABLE {table} (k int PRIMARY KEY, at frozen<place>, tags map<text, int>)"
            ))
            .await;
    }
    // A legacy index would tell values of the old type from equal ones of the new: it compares bytes, as Cassandra's.
    client.ok("CREATE INDEX of_at ON t (at) USING 'sai'").await;
    let insert = async |k: i32, value: &str| {
        for table in ["t", "twin"] {
            client
                .ok(&format!("INSERT INTO {table} (k, at) VALUES ({k}, {value})"))
                .await;
        }
    };
    let same = async |value: &str| {
        client.built().await;
        let asked = |table: &str| format!("SELECT k FROM {table} WHERE at = {value} ALLOW FILTERING");
        let answer = client.ok(&asked("t")).await;
        assert!(!answer.notes.is_empty(), "{value} is not looked up");
        assert_eq!(printed(&answer), printed(&client.ok(&asked("twin")).await), "{value}");
    };
    insert(1, "{street: 'Main'}").await;
    same("{street: 'Main'}").await;
    client.ok("ALTER TYPE place ADD number int").await;
    insert(2, "{street: 'Main', number: 7}").await;
    insert(3, "{street: 'Main', number: null}").await;
    same("{street: 'Main'}").await;
    same("{street: 'Main', number: 7}").await;
    same("{street: 'Main', number: null}").await;
    check(&client).await;
    client.ok("ALTER TABLE t ADD other text").await;
    client.ok("ALTER TYPE place RENAME number TO house").await;
    same("{street: 'Main', house: 7}").await;
    check(&client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_memory() {
    for seed in 0..3 {
        an_index_answers_as_a_scan("memory:", seed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_files() {
    let directory = tempfile::tempdir().unwrap();
    an_index_answers_as_a_scan(&format!("file:{}", directory.path().display()), 4).await;
}

#[cfg(feature = "slate")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_slate() {
    an_index_answers_as_a_scan("slate+memory:", 5).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_build_goes_on_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("file:{}", directory.path().display());
    let client = Client::with_keyspace(&url).await;
    let mut words = Words(fastrand::Rng::with_seed(6));
    twins(&client).await;
    client.ok("CREATE TABLE long (k int PRIMARY KEY, v int)").await;
    for k in 0..5000 {
        client
            .ok(&format!("INSERT INTO long (k, v) VALUES ({k}, {})", k % 7))
            .await;
    }
    writes(&client, &mut words, 60).await;
    for index in INDEXES {
        client.ok(index).await;
    }
    client.ok("CREATE INDEX dropped ON long (v)").await;
    client.ok("DROP INDEX dropped").await;
    client.ok("CREATE INDEX of_long ON long (v)").await;
    client.database.close().await.unwrap();
    drop(client);
    let mut client = Client::open_at(&url, Clock::manual(1_700_000_000_000_000)).await;
    client.session.keyspace = Some("ks".into());
    writes(&client, &mut words, 30).await;
    queries(&client, &mut words, 10).await;
    client.built().await;
    check(&client).await;
    queries(&client, &mut words, 40).await;
    let answer = client.ok("SELECT k FROM long WHERE v = 3 ALLOW FILTERING").await;
    let AnswerKind::Rows(rows) = &answer.kind else {
        panic!("no rows")
    };
    assert_eq!(rows.row_count, 714);
    let info = printed(
        &client
            .ok("SELECT index_name FROM system.\"IndexInfo\" WHERE table_name = 'ks'")
            .await,
    );
    assert_eq!(info.len(), INDEXES.len() + 1, "{info:?}");
    let sai =
        client.ok("SELECT index_name, is_queryable, is_building, column_name FROM system_views.sai_column_indexes");
    assert_eq!(printed(&sai.await), ["\"of_v\" true false \"v\""]);
}

/// What Cassandra's `CassandraIndex.validateIndexedValue` refuses, in its words; nothing of the statement is stored.
#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a list of cases, one after another")]
async fn a_value_that_is_too_long_for_an_index_is_refused() {
    let client = Client::with_keyspace("memory:").await;
    for statement in [
        "CREATE TABLE wide (k int, c text, v text, m map<text, text>, s set<text>, PRIMARY KEY (k, c))",
        "CREATE INDEX of_v ON wide (v)",
        "CREATE INDEX of_m ON wide (keys(m))",
        "CREATE INDEX of_e ON wide (entries(m))",
        "CREATE INDEX of_s ON wide (values(s))",
        "CREATE TABLE plain (k int PRIMARY KEY, v text)",
    ] {
        client.ok(statement).await;
    }
    client.built().await;
    let text = |bytes: usize| "x".repeat(bytes);
    for (statement, refusal) in [
        (
            format!("INSERT INTO wide (k, c, v) VALUES (1, 'c', '{}')", text(70_000)),
            "Cannot index value of size 70000 for index of_v on ks.wide(v) (maximum allowed size=65535)",
        ),
        (
            format!("UPDATE wide SET v = '{}' WHERE k = 1 AND c = 'c'", text(65_535)),
            "Cannot index value of size 65535 for index of_v on ks.wide(v) (maximum allowed size=65535)",
        ),
        (
            format!(
                "INSERT INTO wide (k, c, v) VALUES (1, 'c', '{}') IF NOT EXISTS",
                text(70_000)
            ),
            "Cannot index value of size 70000 for index of_v on ks.wide(v) (maximum allowed size=65535)",
        ),
        (
            format!("UPDATE wide SET s = s + {{'{}'}} WHERE k = 1 AND c = 'c'", text(66_000)),
            "Cannot index value of size 66000 for index of_s on ks.wide(s) (maximum allowed size=65535)",
        ),
        (
            format!(
                "BEGIN BATCH INSERT INTO plain (k, v) VALUES (1, 'a'); INSERT INTO wide (k, c, v) VALUES (1, 'c', '{}'); APPLY BATCH",
                text(70_000)
            ),
            "Cannot index value of size 70000 for index of_v on ks.wide(v) (maximum allowed size=65535)",
        ),
    ] {
        assert_eq!(client.refused(&statement).await, refusal);
    }
    let error = client
        .refused(&format!(
            "UPDATE wide SET m['{}'] = 'v' WHERE k = 1 AND c = 'c'",
            text(66_000)
        ))
        .await;
    assert!(error.starts_with("Cannot index value of size 660"), "{error}");
    assert!(client.rows("SELECT * FROM wide").await.is_empty());
    assert!(client.rows("SELECT * FROM plain").await.is_empty());
    // Cassandra takes this value; the key of the row leaves it no room in an entry of ours. The refusal names the longest that has.
    let beside_a_long_key = |bytes| {
        let (key, value) = (text(30_000), text(bytes));
        format!("INSERT INTO wide (k, c, v) VALUES (2, '{key}', '{value}')")
    };
    let refusal = client.refused(&beside_a_long_key(40_000)).await;
    let longest = refusal
        .strip_prefix("Cannot index value of size 40000 for index of_v on ks.wide(v) (maximum allowed size=")
        .and_then(|rest| rest.strip_suffix(')')?.parse::<usize>().ok())
        .unwrap_or_else(|| panic!("{refusal}"));
    assert!((35_000..36_000).contains(&longest), "{longest}");
    let one_more = client.refused(&beside_a_long_key(longest + 1)).await;
    assert!(
        one_more.ends_with(&format!("(maximum allowed size={longest})")),
        "{one_more}"
    );
    client.ok(&beside_a_long_key(longest)).await;
    let value = text(longest);
    let found = client.rows(&format!("SELECT k FROM wide WHERE v = '{value}'")).await;
    assert_eq!(found, ["2"]);
    // A condition that does not hold leaves nothing to index, in Cassandra too.
    let unmet = format!(
        "UPDATE wide SET v = '{}' WHERE k = 7 AND c = 'c' IF EXISTS",
        text(70_000)
    );
    assert_eq!(client.rows(&unmet).await, ["false"]);
    // What fits is taken and found; a column without an index takes more.
    let long = text(60_000);
    client
        .ok(&format!("INSERT INTO wide (k, c, v) VALUES (1, 'c', '{long}')"))
        .await;
    let found = client.rows(&format!("SELECT k FROM wide WHERE v = '{long}'")).await;
    assert_eq!(found, ["1"]);
    client
        .ok(&format!("INSERT INTO plain (k, v) VALUES (1, '{}')", text(70_000)))
        .await;
    check(&client).await;
}
