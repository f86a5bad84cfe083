//! The change feed: against the history of the writes, on each engine, over splits, merges, moves, kills and builds.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

use std::collections::BTreeMap;
use std::time::Duration;

use crate::support::Client;
use bytes::Bytes;
use helenus_base::clock::Clock;
use helenus_cql::cql::{AnswerKind, Database, QueryParams, SessionState};
use helenus_schema::profile::Profile;
use serde_json::json;

const TABLE: &str = "CREATE TABLE t (k int, c int, v int, PRIMARY KEY (k, c)) WITH cdc = true";
const FROM_START: &str = "SELECT k, c, v FROM t WHERE COSMOS_CHANGEFEED_FROM_START() = true";

/// A reader of the feed: the rows that it has seen, and where it goes on.
#[derive(Default)]
struct Reader {
    text: String,
    state: Option<Bytes>,
    seen: BTreeMap<(i32, i32), i32>,
    /// How many rows it was given.
    given: usize,
}

impl Reader {
    fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            ..Self::default()
        }
    }

    async fn page(&mut self, client: &Client, rows: u32) -> usize {
        let (page, state) = client.page(&self.text, rows, self.state.clone()).await;
        assert!(state.is_some(), "a page of the feed without a state");
        self.state = state;
        for line in &page {
            let row: Vec<i32> = line.split(' ').map(|cell| cell.parse().unwrap()).collect();
            self.seen.insert((row[0], row[1]), row[2]);
        }
        self.given += page.len();
        page.len()
    }

    /// Reads to the tip: until a page is empty, which none is while there is something new.
    async fn read_to_the_tip(&mut self, client: &Client, rows: u32) {
        while self.page(client, rows).await > 0 {}
    }
}

async fn stored(client: &Client) -> BTreeMap<(i32, i32), i32> {
    let rows = client.rows("SELECT k, c, v FROM t").await;
    let parse = |line: &String| {
        let row: Vec<i32> = line.split(' ').map(|cell| cell.parse().unwrap()).collect();
        ((row[0], row[1]), row[2])
    };
    rows.iter().map(parse).collect()
}

async fn insert(client: &Client, k: i32, c: i32, v: i32) {
    client
        .ok(&format!("INSERT INTO t (k, c, v) VALUES ({k}, {c}, {v})"))
        .await;
}

async fn the_feed_has_the_latest_version_of_each_row_in_order(url: &str) {
    let client = Client::with_keyspace(url).await;
    client.ok(TABLE).await;
    let mut reader = Reader::new(FROM_START);
    reader.read_to_the_tip(&client, 10).await;
    assert_eq!(reader.given, 0);
    for n in 0..100 {
        insert(&client, n % 10, n / 10, n).await;
    }
    reader.read_to_the_tip(&client, 7).await;
    assert_eq!((reader.given, &reader.seen), (100, &stored(&client).await));
    // Only changed rows come again.
    insert(&client, 3, 3, 1000).await;
    client.ok("UPDATE t SET v = 1001 WHERE k = 4 AND c = 4").await;
    client.ok("DELETE FROM t WHERE k = 5 AND c = 5").await;
    client.ok("DELETE FROM t WHERE k = 6").await;
    reader.given = 0;
    reader.read_to_the_tip(&client, 1).await;
    assert_eq!(reader.given, 2);
    assert_eq!((reader.seen[&(3, 3)], reader.seen[&(4, 4)]), (1000, 1001));
    // A new reader gets each row once, as it is now.
    let mut other = Reader::new(FROM_START);
    other.read_to_the_tip(&client, 5000).await;
    assert_eq!((other.given, &other.seen), (89, &stored(&client).await));
    // The rows of one key come in the order of their changes.
    for c in [9, 1, 5, 0] {
        insert(&client, 2, c, 2000 + c).await;
    }
    let of_key = format!("{FROM_START} AND k = 2");
    let (rows, state) = client.page(&of_key, 100, None).await;
    let last: Vec<&str> = rows.iter().map(String::as_str).rev().take(4).collect();
    assert_eq!(last, ["2 0 2000", "2 5 2005", "2 1 2001", "2 9 2009"]);
    assert_eq!(client.page(&of_key, 100, state).await.0, Vec::<String>::new());
    client.indexes_agree().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_feed_has_the_latest_version_of_each_row() {
    let folder = tempfile::tempdir().unwrap();
    for url in ["memory:", &format!("file:{}", folder.path().display()), "slate+memory:"] {
        the_feed_has_the_latest_version_of_each_row_in_order(url).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_feed_is_read_from_a_time_on_or_from_now_on() {
    let client = Client::with_keyspace("memory:").await;
    client.ok(TABLE).await;
    insert(&client, 1, 1, 1).await;
    client.clock.advance(Duration::from_secs(60));
    // 2023-11-14T22:13:20Z is the client's first second.
    insert(&client, 2, 2, 2).await;
    for time in [
        "'2023-11-14T22:14:00.000Z'",
        "'2023-11-14 22:14:00+0000'",
        "1700000040000",
    ] {
        let text = format!("SELECT k, c, v FROM t WHERE COSMOS_CHANGEFEED_START_TIME() = {time}");
        assert_eq!(client.page(&text, 10, None).await.0, ["2 2 2"], "{text}");
    }
    let text = "SELECT k, c, v FROM t WHERE cosmos_changefeed_from_start() = false";
    let (rows, state) = client.page(text, 10, None).await;
    assert_eq!(rows, Vec::<String>::new());
    insert(&client, 1, 1, 3).await;
    assert_eq!(client.page(text, 10, state).await.0, ["1 1 3"]);
    // Without a page size the state is there, too.
    let answer = client.ok(FROM_START).await;
    assert!(matches!(&answer.kind, AnswerKind::Rows(rows) if rows.paging_state.is_some()));
    let json = client
        .rows("SELECT JSON * FROM t WHERE cosmos_changefeed_from_start() = true")
        .await;
    assert_eq!(json.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::too_many_lines, reason = "a list of cases, one after another")]
async fn what_a_feed_does_not_allow_is_refused_by_name() {
    let client = Client::with_keyspace("memory:").await;
    client.ok(TABLE).await;
    client.ok("CREATE TABLE plain (k int PRIMARY KEY, v int)").await;
    client
        .ok("CREATE MATERIALIZED VIEW by_v AS SELECT * FROM plain WHERE k IS NOT NULL AND v IS NOT NULL PRIMARY KEY (v, k)")
        .await;
    let start = "COSMOS_CHANGEFEED_FROM_START() = true";
    for (text, part) in [
        (
            format!("SELECT * FROM plain WHERE {start}"),
            "WITH cdc = true begins one",
        ),
        (
            format!("SELECT * FROM by_v WHERE {start}"),
            "ks.by_v cannot have a change feed: only tables of users have one",
        ),
        (
            format!("SELECT * FROM system.local WHERE {start}"),
            "system.local cannot have a change feed",
        ),
        (
            format!("SELECT * FROM system_auth.roles WHERE {start}"),
            "system_auth.roles cannot have a change feed",
        ),
        (
            format!("SELECT * FROM t WHERE {start} AND k = 1 AND c = 1"),
            "one partition key",
        ),
        (
            format!("SELECT * FROM t WHERE {start} AND k IN (1, 2)"),
            "one partition key",
        ),
        (
            format!("SELECT * FROM t WHERE {start} AND token(k) > 3"),
            "one partition key",
        ),
        (
            format!("SELECT * FROM t WHERE {start} AND v = 3 ALLOW FILTERING"),
            "one partition key",
        ),
        (format!("SELECT * FROM t WHERE {start} LIMIT 3"), "LIMIT"),
        (format!("SELECT count(*) FROM t WHERE {start}"), "aggregate"),
        (format!("SELECT * FROM t WHERE {start} AND {start}"), "more than once"),
        (
            format!("SELECT * FROM t WHERE {start} AND COSMOS_FEEDRANGE() = 'x'"),
            "Invalid feed range",
        ),
        (
            "SELECT * FROM t WHERE COSMOS_FEEDRANGE() = 'x'".to_owned(),
            "needs either",
        ),
        (
            format!("SELECT * FROM t WHERE {start} AND COSMOS_FULLFIDELITY_CHANGEFEED() = true"),
            "full fidelity",
        ),
        (
            format!("DELETE FROM t WHERE k = 1 AND {start}"),
            "cosmos_changefeed_from_start",
        ),
    ] {
        let error = client.refused(&text).await;
        assert!(error.contains(part), "{text}: {error}");
    }
    // A state belongs to the table that was, and to the feed.
    let (_, state) = client.page(FROM_START, 10, None).await;
    let params = |state: &Option<Bytes>| QueryParams {
        page_size_rows: Some(10),
        paging_state: state.clone(),
        ..QueryParams::default()
    };
    let error = client.run("SELECT * FROM t", params(&state)).await.unwrap_err();
    assert_eq!(error.to_string(), "Invalid value for the paging state");
    client.ok("DROP TABLE t").await;
    client.ok(TABLE).await;
    let error = client.run(FROM_START, params(&state)).await.unwrap_err();
    assert!(error.to_string().contains("dropped and created again"), "{error}");
}

#[tokio::test]
async fn explain_says_that_the_feed_is_read() {
    let client = Client::with_keyspace("memory:").await;
    client
        .ok(&format!("{TABLE} AND cosmosdb_full_fidelity_retention_seconds = 60"))
        .await;
    for n in 0..20 {
        insert(&client, n % 2, n, n).await;
    }
    for (relations, source, partitions) in [
        (
            "COSMOS_CHANGEFEED_FROM_START() = true",
            "the change feed: the latest version of each changed row, from the first change on",
            "the whole ring",
        ),
        (
            "COSMOS_CHANGEFEED_FROM_START() = false AND k = 1",
            "the change feed: the latest version of each changed row, from now on",
            "1 partition by key",
        ),
        (
            "COSMOS_CHANGEFEED_START_TIME() = '2024-05-01 00:00:00.000Z' AND COSMOS_FULLFIDELITY_CHANGEFEED() = true",
            "the change feed: every change, from 2024-05-01 00:00:00.000Z on",
            "the whole ring",
        ),
    ] {
        let rows = client.rows(&format!("EXPLAIN SELECT * FROM t WHERE {relations}")).await;
        let detail = |stage: &str| -> Vec<&str> {
            let of_stage = |row: &'_ String| row.contains(&format!(" \"{stage}\" "));
            let rows = rows.iter().filter(|row| of_stage(row));
            rows.map(|row| row.splitn(3, ' ').nth(2).unwrap().trim_matches('"'))
                .collect()
        };
        assert_eq!(detail("source"), [source], "{rows:?}");
        assert_eq!(detail("partitions"), [partitions]);
        assert_eq!(
            detail("rows"),
            ["those that the feed names, in the order of their last changes"]
        );
        // Reads of keys would not find the same.
        assert_eq!(detail("cheaper"), Vec::<&str>::new());
        let is_known = relations.contains("= true") && !relations.contains("FULL");
        let charge = detail("charge").into_iter().next_back().unwrap().to_owned();
        assert!(
            charge.starts_with(if is_known { "about" } else { "at least" }),
            "{charge}"
        );
    }
}

async fn a_feed_of_a_table_with_rows_is_built_on(url: &str) {
    let client = Client::with_keyspace(url).await;
    client.ok(&TABLE.replace("true", "false")).await;
    for n in 0..3000 {
        insert(&client, n % 100, n / 100, n).await;
    }
    client.ok("DELETE FROM t WHERE k = 1").await;
    client.ok("ALTER TABLE t WITH cdc = true").await;
    for n in 0..100 {
        insert(&client, n, 7, -n).await;
    }
    client.built().await;
    client.indexes_agree().await;
    let mut reader = Reader::new(FROM_START);
    reader.read_to_the_tip(&client, 100).await;
    assert_eq!((reader.given, &reader.seen), (2971, &stored(&client).await));
    // TRUNCATE leaves the feed and empties it. A reader goes on.
    client.ok("TRUNCATE t").await;
    reader.given = 0;
    insert(&client, 1, 1, 1).await;
    reader.read_to_the_tip(&client, 100).await;
    assert_eq!(reader.given, 1);
    client.indexes_agree().await;
    client.ok("ALTER TABLE t WITH cdc = false").await;
    assert!(client.refused(FROM_START).await.contains("has no change feed"));
    insert(&client, 2, 2, 2).await;
    client.ok("ALTER TABLE t WITH cdc = true").await;
    client.built().await;
    reader.given = 0;
    reader.read_to_the_tip(&client, 100).await;
    assert!(
        reader.given >= 1 && reader.seen[&(2, 2)] == 2,
        "a change without a feed is not left out"
    );
    client.ok("DROP TABLE t").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_feed_of_a_table_with_rows_is_built() {
    let folder = tempfile::tempdir().unwrap();
    for url in ["memory:", &format!("file:{}", folder.path().display()), "slate+memory:"] {
        a_feed_of_a_table_with_rows_is_built_on(url).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn static_values_counters_and_times_to_live_are_in_the_feed() {
    let client = Client::with_keyspace("memory:").await;
    client
        .ok("CREATE TABLE s (k int, c int, v int, w text static, PRIMARY KEY (k, c)) WITH cdc = true")
        .await;
    client
        .ok("CREATE TABLE n (k int PRIMARY KEY, n counter) WITH cdc = true")
        .await;
    let feed = "SELECT k, c, v, w FROM s WHERE cosmos_changefeed_from_start() = true";
    client.ok("UPDATE s SET w = 'a' WHERE k = 1").await;
    let (rows, state) = client.page(feed, 10, None).await;
    assert_eq!(rows, ["1 null null \"a\""]);
    client.ok("INSERT INTO s (k, c, v) VALUES (1, 2, 3) USING TTL 10").await;
    let (rows, _) = client.page(feed, 10, state.clone()).await;
    assert_eq!(rows, ["1 2 3 \"a\""]);
    client.clock.advance(Duration::from_secs(20));
    let (rows, _) = client.page(feed, 10, state).await;
    assert_eq!(rows, Vec::<String>::new(), "an expired row");
    let counted = "SELECT k, n FROM n WHERE cosmos_changefeed_from_start() = true";
    let mut state = None;
    for n in 1..4 {
        client.ok("UPDATE n SET n = n + 1 WHERE k = 7").await;
        let (rows, next) = client.page(counted, 10, state).await;
        assert_eq!(rows, [format!("7 {n}")]);
        state = next;
    }
    client.database.engine().upkeep().sweep().await.unwrap();
    client.indexes_agree().await;
    let (rows, _) = client.page(counted, 10, state).await;
    assert_eq!(rows, Vec::<String>::new(), "a sweep changes no row that a reader sees");
}

/// Writes and reads at once, while partitions are split, merged, lifted and lowered.
#[expect(
    clippy::too_many_lines,
    reason = "one story: each step stands on the state that the one before left"
)]
async fn splits_and_lifts_lose_nothing_on(url: &str) {
    let client = Client::with_keyspace(url).await;
    client.ok(&format!("{TABLE} AND helenus_partitions = 4")).await;
    let mut random = fastrand::Rng::with_seed(5);
    let mut reader = Reader::new(FROM_START);
    let mut deleted = Vec::new();
    let write = async |random: &mut fastrand::Rng, deleted: &mut Vec<(i32, i32)>, count: i32| {
        for _ in 0..count {
            let (k, c) = (random.i32(0..50), random.i32(0..5));
            if random.u8(0..10) == 0 {
                client.ok(&format!("DELETE FROM t WHERE k = {k} AND c = {c}")).await;
                deleted.push((k, c));
            } else {
                insert(&client, k, c, random.i32(0..1_000_000)).await;
            }
        }
    };
    let ids = async || {
        let rows = client
            .rows("SELECT id, store FROM system_cosmos.partitions WHERE keyspace_name = 'ks' AND table_name = 't'");
        rows.await
            .iter()
            .map(|line| {
                let (id, store) = line.split_once(' ').unwrap();
                (id.parse::<u64>().unwrap(), store.parse::<u32>().unwrap())
            })
            .collect::<Vec<_>>()
    };
    let mut changes = BTreeMap::<String, usize>::new();
    for round in 0..24 {
        write(&mut random, &mut deleted, 40).await;
        for _ in 0..random.u8(0..6) {
            reader.page(&client, 1 + random.u32(0..9)).await;
        }
        let all = ids().await;
        let place = random.usize(..all.len());
        let (id, store) = all[place];
        let text = match round % 4 {
            0 => format!("ALTER TABLE t WITH helenus_split_at = {}", random.i64(..)),
            1 | 3 if store == 0 => format!("ALTER TABLE t WITH helenus_lift = {id}"),
            2 if place > 0 => format!(
                "ALTER TABLE t WITH helenus_merge = {{'left': {}, 'right': {id}}}",
                all[place - 1].0
            ),
            _ if store != 0 => format!("ALTER TABLE t WITH helenus_lower = {id}"),
            _ => format!("ALTER TABLE t WITH helenus_lift = {id}"),
        };
        // Not each partition can be merged, and stores are few.
        let done = client.run(&text, QueryParams::default()).await.is_ok();
        *changes
            .entry(
                text[text.find("helenus_").unwrap()..]
                    .split(' ')
                    .next()
                    .unwrap()
                    .to_owned(),
            )
            .or_insert(0) += usize::from(done);
        client.indexes_agree().await;
    }
    reader.read_to_the_tip(&client, 100).await;
    let stored = stored(&client).await;
    reader
        .seen
        .retain(|row, _| stored.contains_key(row) || !deleted.contains(row));
    assert_eq!(reader.seen, stored);
    // Readers that share the feed by its ranges have it together.
    let ranges = client
        .rows("SELECT range FROM system_cosmos.feedranges WHERE keyspace_name = 'ks' AND table_name = 't'")
        .await;
    assert!(ranges.len() > 1, "{ranges:?}");
    let mut together = BTreeMap::new();
    for range in ranges {
        let range: String = serde_json::from_str(&range).unwrap();
        let mut part = Reader::new(&format!("{FROM_START} AND COSMOS_FEEDRANGE() = '{range}'"));
        part.read_to_the_tip(&client, 50).await;
        for (row, value) in part.seen {
            assert_eq!(together.insert(row, value), None, "a row in two ranges");
        }
    }
    assert_eq!(together, stored);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn splits_and_lifts_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for url in ["memory:", &format!("file:{}", folder.path().display()), "slate+memory:"] {
        splits_and_lifts_lose_nothing_on(url).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_the_profile_cosmos_have_a_feed_and_readers_outlive_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("file:{}", folder.path().display());
    let open = async |clock: Clock| {
        let mut options = Client::options(&url, clock.clone());
        options.profile = Profile::Cosmos;
        let mut client = Client::over(Database::open(options).await.unwrap(), SessionState::default(), clock);
        client.session.keyspace = Some("ks".into());
        client
    };
    let client = open(Clock::manual(1_700_000_000_000_000)).await;
    client
        .ok("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        .await;
    client
        .ok("CREATE TABLE t (k int, c int, v int, PRIMARY KEY (k, c))")
        .await;
    let mut reader = Reader::new(FROM_START);
    for n in 0..50 {
        insert(&client, n, n, n).await;
    }
    reader.read_to_the_tip(&client, 10).await;
    assert_eq!(reader.given, 50);
    client.database.close().await.unwrap();
    drop(client);
    // The clock goes back by an hour: changes still come after those that were read.
    let client = open(Clock::manual(1_700_000_000_000_000 - 3_600_000_000)).await;
    for n in 0..50 {
        insert(&client, n, n, 1000 + n).await;
    }
    reader.given = 0;
    reader.read_to_the_tip(&client, 10).await;
    assert_eq!((reader.given, &reader.seen), (50, &stored(&client).await));
    client.indexes_agree().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::too_many_lines, reason = "a list of cases, one after another")]
async fn json_of_the_feed_has_the_system_columns_of_cosmos() {
    const WRITTEN: i64 = 1_700_000_000_000_000;
    let from_start = "COSMOS_CHANGEFEED_FROM_START() = true";
    for profile in [Profile::Cosmos, Profile::Cassandra] {
        let clock = Clock::manual(WRITTEN);
        let mut options = Client::options("memory:", clock.clone());
        options.profile = profile;
        let client = Client::over(Database::open(options).await.unwrap(), SessionState::default(), clock);
        let client = client.in_keyspace().await;
        client
            .ok(
                "CREATE TABLE t (k int, c int, s int static, l list<int>, \"V\" int, PRIMARY KEY (k, c)) WITH cdc = true \
                 AND cosmosdb_cell_level_timestamp = true AND cosmosdb_cell_level_timestamp_tombstones = true \
                 AND cosmosdb_cell_level_timetolive = true",
            )
            .await;
        for write in [
            "INSERT INTO t (k, c, l, \"V\") VALUES (1, 1, [7, 8], 3) USING TIMESTAMP 1600000000000001",
            "INSERT INTO t (k, c, \"V\") VALUES (1, 2, 4) USING TIMESTAMP 1600000000000002 AND TTL 60",
            "INSERT INTO t (k, s) VALUES (2, 5) USING TIMESTAMP 1600000000000003",
        ] {
            client.ok(write).await;
        }
        let objects = async |text: &str| {
            let rows = client.rows(text).await;
            let object = |row: &String| -> serde_json::Value {
                let text: String = serde_json::from_str(row).unwrap();
                serde_json::from_str(&text).unwrap()
            };
            let mut objects: Vec<serde_json::Value> = rows.iter().map(object).collect();
            objects.sort_by_key(|object| (object["k"].as_i64(), object["c"].as_i64()));
            objects
        };
        let plain = [
            json!({"k": 1, "c": 1, "s": null, "l": [7, 8], "\"V\"": 3}),
            json!({"k": 1, "c": 2, "s": null, "l": null, "\"V\"": 4}),
            json!({"k": 2, "c": null, "s": 5, "l": null, "\"V\"": null}),
        ];
        assert_eq!(objects("SELECT JSON * FROM t").await, plain);
        let of_feed = format!("SELECT JSON * FROM t WHERE {from_start}");
        if !profile.is_cosmos() {
            assert_eq!(objects(&of_feed).await, plain);
            continue;
        }
        let system = |written: i64, columns: serde_json::Value, ttl: [i64; 2], expiries: serde_json::Value| {
            json!({
                "__sys_rw_ts": written, "__sys_clts": columns, "__sys_rw_ttl": ttl, "__sys_clttl": expiries,
                "__sys_rw_tmbstn": null, "__sys_clts_tmbstn": null,
            })
        };
        let (first, second, third) = (
            1_600_000_000_000_001_i64,
            1_600_000_000_000_002_i64,
            1_600_000_000_000_003_i64,
        );
        let systems = [
            system(first, json!({"l": [first, first], "V": first}), [0, 0], json!([0, 0])),
            system(
                second,
                json!({"V": second}),
                [60, 0],
                json!([WRITTEN / 1_000_000 + 60, {"V": [60, 0]}]),
            ),
            system(third, json!({"s": third}), [0, 0], json!([0, 0])),
        ];
        let together = plain.iter().zip(systems).map(|(plain, system)| {
            let mut object = plain.as_object().unwrap().clone();
            object.extend(system.as_object().unwrap().clone());
            serde_json::Value::Object(object)
        });
        assert_eq!(objects(&of_feed).await, together.collect::<Vec<_>>());
        // No other selection has them, and streams have positions of their own.
        let some = objects(&format!("SELECT JSON k, c FROM t WHERE {from_start}")).await;
        assert_eq!(some[0], json!({"k": 1, "c": 1}));
        let params = QueryParams {
            wants_feed_positions: true,
            page_size_rows: Some(10),
            ..QueryParams::default()
        };
        let streamed = client.run(&of_feed, params).await.unwrap();
        assert!(!format!("{:?}", crate::support::printed(&streamed)).contains("__sys"));
    }
}

/// As in Cosmos: a reader polls, and is given an empty page where another read would be refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_is_empty_when_the_request_units_are_spent() {
    let client = Client::with_keyspace("memory:").await;
    client
        .ok(&format!("{TABLE} AND cosmosdb_provisioned_throughput = 400"))
        .await;
    let mut reader = Reader::new(FROM_START);
    insert(&client, 0, 0, 0).await;
    reader.read_to_the_tip(&client, 10).await;
    for n in 1..1000 {
        let text = format!("INSERT INTO t (k, c, v) VALUES ({n}, 0, {n})");
        if client.run(&text, QueryParams::default()).await.is_err() {
            break;
        }
    }
    assert!(client.refused("SELECT * FROM t").await.contains("RetryAfterMs"));
    assert_eq!(reader.page(&client, 10).await, 0);
    assert_eq!(Reader::new(FROM_START).page(&client, 10).await, 0);
    client.clock.advance(Duration::from_secs(10));
    let (rows, _) = client.page(FROM_START, 10, None).await;
    assert_eq!(rows.len(), 10, "and has them later");
    client.clock.advance(Duration::from_secs(10));
    reader.read_to_the_tip(&client, 5000).await;
    client.clock.advance(Duration::from_secs(10));
    assert_eq!(reader.seen, stored(&client).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_too_long_for_an_entry_is_refused_with_the_write() {
    let client = Client::with_keyspace("memory:").await;
    client
        .ok("CREATE TABLE w (k text, c text, PRIMARY KEY (k, c)) WITH cdc = true")
        .await;
    let insert = |bytes: usize| format!("INSERT INTO w (k, c) VALUES ('a', '{}')", "x".repeat(bytes));
    let mut longest = 0;
    for bytes in 65_480..65_530 {
        match client.run(&insert(bytes), QueryParams::default()).await {
            Ok(_) => longest = bytes,
            Err(error) => assert!(error.to_string().contains("too long for a table with a change feed") || longest > 0),
        }
    }
    assert!(
        client
            .refused(&insert(longest + 1))
            .await
            .contains("a table with a change feed")
    );
    let (rows, _) = client
        .page(
            "SELECT k FROM w WHERE cosmos_changefeed_from_start() = true",
            5000,
            None,
        )
        .await;
    assert_eq!(rows.len(), longest - 65_479, "each row that was taken is in the feed");
}
