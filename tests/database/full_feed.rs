//! The full fidelity change feed: each change with the row before and after, on each engine, over splits, moves, restarts,
//! TRUNCATE and its own retention.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use helenus_cql::cql::{Error, QueryParams};
use helenus_engine::engine::LogSizes;
use serde_json::{Value, json};

use crate::support::Client;

const FULL: &str = "cosmosdb_full_fidelity_retention_seconds = 3600";
const FEED: &str =
    "SELECT * FROM t WHERE COSMOS_FULLFIDELITY_CHANGEFEED() = true AND COSMOS_CHANGEFEED_FROM_START() = true";
const FROM_NOW: &str =
    "SELECT * FROM t WHERE COSMOS_FULLFIDELITY_CHANGEFEED() = true AND COSMOS_CHANGEFEED_FROM_START() = false";

/// A page of the feed: each record with the state after it, and the state after the page.
async fn page(
    client: &Client,
    text: &str,
    rows: u32,
    state: Option<Bytes>,
) -> Result<(Vec<(Value, Bytes)>, Bytes, bool), Error> {
    let params = QueryParams {
        page_size_rows: Some(rows),
        paging_state: state,
        wants_feed_positions: true,
        ..QueryParams::default()
    };
    let answer = client.database.query(&client.session, text, &params).await?;
    let (end, helenus_cql::cql::AnswerKind::Rows(rows)) = (answer.feed.unwrap(), answer.kind) else {
        panic!("no rows")
    };
    assert_eq!(end.records.len(), end.states.len());
    let parse = |record: &String| serde_json::from_str::<Value>(&format!("{{{record}}}")).unwrap();
    let records = end.records.iter().map(parse).zip(end.states).collect();
    Ok((records, rows.paging_state.unwrap(), end.is_at_end))
}

/// All records from a state on, read in pages of so many rows, and the state at the end.
async fn all(client: &Client, text: &str, rows: u32, mut state: Option<Bytes>) -> (Vec<(Value, Bytes)>, Bytes) {
    let mut records = Vec::new();
    loop {
        let (found, next, is_at_end) = page(client, text, rows, state).await.unwrap();
        records.extend(found);
        if is_at_end {
            return (records, next);
        }
        state = Some(next);
    }
}

/// A record without its position and times.
fn plain(record: &Value) -> Value {
    let metadata = &record["metadata"];
    json!([
        metadata["operationType"],
        metadata["of"],
        metadata["key"],
        record["previous"],
        record["current"]
    ])
}

#[expect(
    clippy::too_many_lines,
    reason = "one story: each step stands on the state that the one before left"
)]
async fn each_change_has_a_record_on(url: &str) {
    let client = Client::with_keyspace(url).await;
    client
        .ok(&format!(
            "CREATE TABLE t (k int, c int, v int, l list<int>, s text static, PRIMARY KEY (k, c)) WITH {FULL}"
        ))
        .await;
    assert_eq!(all(&client, FEED, 10, None).await.0, Vec::new());
    for text in [
        "INSERT INTO t (k, c, v) VALUES (1, 1, 10)",
        "UPDATE t SET v = 11, l = [1, 2] WHERE k = 1 AND c = 1",
        "UPDATE t SET l = l + [3] WHERE k = 1 AND c = 1",
        "UPDATE t SET s = 'x' WHERE k = 1",
        "DELETE v FROM t WHERE k = 1 AND c = 1",
        "DELETE FROM t WHERE k = 1 AND c = 1",
        "DELETE FROM t WHERE k = 1 AND c = 9",
        "INSERT INTO t (k, c, v) VALUES (1, 1, 12) IF NOT EXISTS",
        "DELETE FROM t WHERE k = 1 AND c >= 1 AND c < 5",
        "INSERT INTO t (k, c, v) VALUES (1, 1, 13)",
        "DELETE FROM t WHERE k = 1",
        "INSERT INTO t (k, c, v) VALUES (1, 1, 14) USING TIMESTAMP 5",
        "INSERT INTO t (k, c, v) VALUES (1, 1, 15) USING TTL 10",
    ] {
        client.ok(text).await;
    }
    let row = |v: Value, l: Value| json!({"k": 1, "c": 1, "v": v, "l": l});
    let key = json!({"k": 1, "c": 1});
    let null = Value::Null;
    let of_row = |operation: &str, before: Value, after: Value| json!([operation, "row", key, before, after]);
    let expected = [
        of_row("create", null.clone(), row(json!(10), null.clone())),
        of_row("replace", row(json!(10), null.clone()), row(json!(11), json!([1, 2]))),
        of_row(
            "replace",
            row(json!(11), json!([1, 2])),
            row(json!(11), json!([1, 2, 3])),
        ),
        json!(["create", "static", {"k": 1}, null, {"k": 1, "s": "x"}]),
        of_row(
            "replace",
            row(json!(11), json!([1, 2, 3])),
            row(null.clone(), json!([1, 2, 3])),
        ),
        of_row("delete", row(null.clone(), json!([1, 2, 3])), null.clone()),
        json!(["delete", "row", {"k": 1, "c": 9}, null, null]),
        of_row("create", null.clone(), row(json!(12), null.clone())),
        json!(["delete", "range", {"k": 1}, null, null]),
        // The range hid the row: there was none.
        of_row("create", null.clone(), row(json!(13), null.clone())),
        json!(["delete", "partition", {"k": 1}, null, null]),
        // An older write changes nothing that shows.
        of_row("delete", null.clone(), null.clone()),
        of_row("create", null.clone(), row(json!(15), null.clone())),
    ];
    // Later, when the last one has expired: it showed at its time.
    client.clock.advance(Duration::from_secs(100));
    let (records, end) = all(&client, FEED, 7, None).await;
    for (number, (record, _)) in records.iter().enumerate() {
        assert_eq!(plain(record), expected[number], "record {number} of {url}: {record}");
    }
    assert_eq!(records.len(), expected.len(), "{url}");
    let metadata = |number: usize| &records[number].0["metadata"];
    assert_eq!(metadata(1)["previousImageLSN"], metadata(0)["lsn"]);
    assert!(metadata(1)["lsn"].as_i64() > metadata(0)["lsn"].as_i64());
    assert_eq!(
        metadata(0)["crts"],
        json!(metadata(0)["lsn"].as_i64().unwrap() / 1_000_000)
    );
    assert_eq!(
        (&metadata(8)["from"], &metadata(8)["to"]),
        (
            &json!({"key": {"k": 1, "c": 1}, "inclusive": true}),
            &json!({"key": {"k": 1, "c": 5}, "inclusive": false})
        )
    );
    assert_eq!(metadata(11)["timestamp"], json!(5));
    // After each record come exactly those behind it.
    for (place, (_, state)) in records.iter().enumerate() {
        let (rest, _) = all(&client, FEED, 1, Some(state.clone())).await;
        assert_eq!(rest, records[place + 1..], "after record {place} of {url}");
    }
    assert_eq!(all(&client, FEED, 10, Some(end.clone())).await.0, Vec::new());
    // One batch, one position; its changes in order. Another key is not given to a reader of one.
    client
        .ok("BEGIN BATCH INSERT INTO t (k, c, v) VALUES (2, 1, 1); INSERT INTO t (k, c, v) VALUES (2, 2, 2); DELETE FROM t WHERE k = 3; APPLY BATCH")
        .await;
    let (records, _) = all(&client, FEED, 10, Some(end.clone())).await;
    assert_eq!(records.len(), 3, "{records:?}");
    let lsn = |record: &Value| record["metadata"]["lsn"].as_i64().unwrap();
    assert!(records.iter().all(|(record, _)| lsn(record) == lsn(&records[0].0)));
    let of_key = format!("{FEED} AND k = 2");
    assert_eq!(all(&client, &of_key, 10, Some(end)).await.0.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_change_has_a_record() {
    let folder = tempfile::tempdir().unwrap();
    for url in ["memory:", &format!("file:{}", folder.path().display()), "slate+memory:"] {
        each_change_has_a_record_on(url).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_of_the_only_row_of_a_partition_has_its_image() {
    let folder = tempfile::tempdir().unwrap();
    for url in ["memory:".to_owned(), format!("slate+file:{}", folder.path().display())] {
        let client = Client::with_keyspace(&url).await;
        client
            .ok(&format!("CREATE TABLE t (k int PRIMARY KEY, v int) WITH {FULL}"))
            .await;
        for text in [
            "INSERT INTO t (k, v) VALUES (1, 10)",
            "DELETE FROM t WHERE k = 1",
            "DELETE FROM t WHERE k = 1",
            "INSERT INTO t (k, v) VALUES (1, 11)",
            "DELETE FROM t USING TIMESTAMP 5 WHERE k = 1",
            "DELETE FROM t WHERE k = 1 IF v = 11",
            "BEGIN BATCH DELETE FROM t WHERE k = 3 IF EXISTS; INSERT INTO t (k, v) VALUES (3, 1); APPLY BATCH",
            "INSERT INTO t (k, v) VALUES (4, 1)",
            "BEGIN BATCH DELETE FROM t WHERE k = 4 IF v = 1; INSERT INTO t (k, v) VALUES (4, 2); APPLY BATCH",
        ] {
            client.ok(text).await;
        }
        let row = |k: i32, v: i32| json!({"k": k, "v": v});
        let of_row =
            |operation: &str, k: i32, before: Value, after: Value| json!([operation, "row", {"k": k}, before, after]);
        let expected = [
            of_row("create", 1, Value::Null, row(1, 10)),
            of_row("delete", 1, row(1, 10), Value::Null),
            of_row("delete", 1, Value::Null, Value::Null),
            of_row("create", 1, Value::Null, row(1, 11)),
            of_row("replace", 1, row(1, 11), row(1, 11)),
            of_row("delete", 1, row(1, 11), Value::Null),
            of_row("create", 4, Value::Null, row(4, 1)),
        ];
        let (records, _) = all(&client, FEED, 5, None).await;
        let plain: Vec<Value> = records.iter().map(|(record, _)| plain(record)).collect();
        assert_eq!(plain[..expected.len()], expected, "{url}");
        // A conditional batch deletes and writes: what is left is the new row.
        assert_eq!(plain.last().unwrap()[4], row(4, 2), "{url}: {plain:?}");
        assert_eq!(client.rows("SELECT v FROM t WHERE k = 4").await.len(), 1, "{url}");
        assert_eq!(client.rows("SELECT v FROM t").await.len(), 1, "{url}");
    }
}

/// A logged batch may be written again after later ones. Its deletions would seem to delete rows that came since.
#[tokio::test]
async fn a_deletion_that_is_written_again_has_no_record() {
    let folder = tempfile::tempdir().unwrap();
    for url in ["memory:", &format!("file:{}", folder.path().display()), "slate+memory:"] {
        let client = Client::with_keyspace(url).await;
        client
            .ok(&format!(
                "CREATE TABLE t (k int, c int, v int, PRIMARY KEY (k, c)) WITH {FULL}"
            ))
            .await;
        let twice = [
            "DELETE FROM t USING TIMESTAMP 10 WHERE k = 1",
            "DELETE FROM t USING TIMESTAMP 12 WHERE k = 1 AND c > 5",
            // Without a row to hide they delete too.
            "DELETE FROM t USING TIMESTAMP 11 WHERE k = 2 AND c > 5",
        ];
        for text in twice {
            client.ok(text).await;
        }
        client
            .ok("INSERT INTO t (k, c, v) VALUES (1, 1, 10) USING TIMESTAMP 20")
            .await;
        assert_eq!(all(&client, FEED, 10, None).await.0.len(), 4, "{url}");
        for text in twice {
            client.ok(text).await;
        }
        // The partition's deletion hides more than this one.
        client.ok("DELETE FROM t USING TIMESTAMP 9 WHERE k = 1 AND c > 7").await;
        assert_eq!(all(&client, FEED, 10, None).await.0.len(), 4, "{url}");
        client
            .ok("DELETE FROM t USING TIMESTAMP 13 WHERE k = 1 AND c > 5")
            .await;
        client.ok("DELETE FROM t USING TIMESTAMP 11 WHERE k = 1").await;
        assert_eq!(all(&client, FEED, 10, None).await.0.len(), 6, "{url}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_a_compact_table_are_rows() {
    let client = Client::with_keyspace("memory:").await;
    let create = format!("CREATE TABLE t (k int PRIMARY KEY, a int, b int) WITH COMPACT STORAGE AND {FULL}");
    client.ok(&create).await;
    client.ok("INSERT INTO t (k, a, b) VALUES (1, 2, 3)").await;
    client.ok("UPDATE t SET b = 4 WHERE k = 1").await;
    let (records, _) = all(&client, FEED, 10, None).await;
    let row = |b: i32| json!({"k": 1, "a": 2, "b": b});
    let records: Vec<Value> = records.iter().map(|(record, _)| plain(record)).collect();
    let expected = [
        json!(["create", "row", {"k": 1}, null, row(3)]),
        json!(["replace", "row", {"k": 1}, row(3), row(4)]),
    ];
    assert_eq!(records, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bounds_of_deleted_ranges_are_those_of_the_statement() {
    let client = Client::with_keyspace("memory:").await;
    client
        .ok(&format!(
            "CREATE TABLE t (k int, a text, b int, PRIMARY KEY (k, a, b)) WITH CLUSTERING ORDER BY (a ASC, b DESC) AND {FULL}"
        ))
        .await;
    let at = |key: Value, inclusive: bool| json!({"key": key, "inclusive": inclusive});
    let mut state = None;
    for (text, from, to) in [
        (
            "a = 'x'",
            at(json!({"k": 1, "a": "x"}), true),
            at(json!({"k": 1, "a": "x"}), true),
        ),
        ("a > 'x'", at(json!({"k": 1, "a": "x"}), false), Value::Null),
        ("a <= 'x'", Value::Null, at(json!({"k": 1, "a": "x"}), true)),
        (
            "a = 'x' AND b > 3",
            at(json!({"k": 1, "a": "x"}), true),
            at(json!({"k": 1, "a": "x", "b": 3}), false),
        ),
    ] {
        client.ok(&format!("DELETE FROM t WHERE k = 1 AND {text}")).await;
        let (records, end) = all(&client, FEED, 10, state).await;
        assert_eq!(records.len(), 1, "{text}");
        let metadata = &records[0].0["metadata"];
        assert_eq!((&metadata["from"], &metadata["to"]), (&from, &to), "{text}: {metadata}");
        state = Some(end);
    }
}

/// Writes at random, with a model of what the log should say of each row.
struct Writer {
    random: fastrand::Rng,
    stored: BTreeMap<(i32, i32), i32>,
    /// Of each partition key, in order: the operation, the values before and after.
    expected: BTreeMap<i32, Vec<Value>>,
}

impl Writer {
    async fn write(&mut self, client: &Client, count: usize) {
        for _ in 0..count {
            let (k, c, v) = (self.random.i32(0..30), self.random.i32(0..4), self.random.i32(0..1000));
            let before = self.stored.get(&(k, c)).copied();
            let log = self.expected.entry(k).or_default();
            match self.random.u8(0..12) {
                0 => {
                    client.ok(&format!("DELETE FROM t WHERE k = {k}")).await;
                    self.stored.retain(|(of, _), _| *of != k);
                    log.push(json!(["delete", "partition", null, null]));
                }
                1 | 2 => {
                    client.ok(&format!("DELETE FROM t WHERE k = {k} AND c = {c}")).await;
                    self.stored.remove(&(k, c));
                    log.push(json!(["delete", "row", before, null]));
                }
                _ => {
                    client
                        .ok(&format!("INSERT INTO t (k, c, v) VALUES ({k}, {c}, {v})"))
                        .await;
                    self.stored.insert((k, c), v);
                    let operation = if before.is_some() { "replace" } else { "create" };
                    log.push(json!([operation, "row", before, v]));
                }
            }
        }
    }
}

fn by_key(records: &[(Value, Bytes)]) -> BTreeMap<i32, Vec<Value>> {
    let mut found: BTreeMap<i32, Vec<Value>> = BTreeMap::new();
    for (record, _) in records {
        let metadata = &record["metadata"];
        let key = i32::try_from(metadata["key"]["k"].as_i64().unwrap()).unwrap();
        found.entry(key).or_default().push(json!([
            metadata["operationType"],
            metadata["of"],
            record["previous"]["v"],
            record["current"]["v"]
        ]));
    }
    found
}

async fn the_log_outlives_splits_and_moves_on(url: &str) {
    let client = Client::with_keyspace(url).await;
    client
        .ok(&format!(
            "CREATE TABLE t (k int, c int, v int, PRIMARY KEY (k, c)) WITH helenus_partitions = 3 AND {FULL}"
        ))
        .await;
    let mut writer = Writer {
        random: fastrand::Rng::with_seed(11),
        stored: BTreeMap::new(),
        expected: BTreeMap::new(),
    };
    let ids = async || {
        let rows = client
            .rows("SELECT id, store FROM system_cosmos.partitions WHERE keyspace_name = 'ks' AND table_name = 't'")
            .await;
        let parse = |line: &String| {
            let (id, store) = line.split_once(' ').unwrap();
            (id.parse::<u64>().unwrap(), store.parse::<u32>().unwrap())
        };
        rows.iter().map(parse).collect::<Vec<_>>()
    };
    let (mut followed, mut state) = (Vec::new(), None);
    let (mut lifts, mut lowers, mut splits) = (0, 0, 0);
    for round in 0..18 {
        writer.write(&client, 30).await;
        // A reader that stops anywhere, and goes on after the change.
        let (records, next, _) = page(&client, FEED, 1 + writer.random.u32(0..40), state).await.unwrap();
        followed.extend(records);
        state = Some(next);
        let partitions = ids().await;
        let (id, store) = partitions[writer.random.usize(..partitions.len())];
        let (text, count) = match round % 3 {
            0 => (format!("helenus_split_at = {}", writer.random.i64(..)), &mut splits),
            _ if store == 0 => (format!("helenus_lift = {id}"), &mut lifts),
            _ => (format!("helenus_lower = {id}"), &mut lowers),
        };
        let done = client
            .run(&format!("ALTER TABLE t WITH {text}"), QueryParams::default())
            .await;
        *count += usize::from(done.is_ok());
        let (records, _) = all(&client, FEED, 50, None).await;
        assert_eq!(by_key(&records), writer.expected, "after {text} on {url}");
    }
    assert!(lifts > 1 && lowers > 0 && splits > 1, "{lifts} {lowers} {splits}");
    // All back in the main store.
    for (id, store) in ids().await {
        if store != 0 {
            client.ok(&format!("ALTER TABLE t WITH helenus_lower = {id}")).await;
        }
    }
    followed.extend(all(&client, FEED, 9, state).await.0);
    assert_eq!(by_key(&followed), writer.expected, "{url}");
    let (records, _) = all(&client, FEED, 50, None).await;
    assert_eq!(by_key(&records), writer.expected, "{url}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_outlives_splits_and_moves() {
    let folder = tempfile::tempdir().unwrap();
    for url in ["memory:", &format!("file:{}", folder.path().display()), "slate+memory:"] {
        the_log_outlives_splits_and_moves_on(url).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_outlives_the_server_and_truncate_and_ends_with_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("file:{}", folder.path().display());
    let client = Client::with_keyspace(&url).await;
    let create = format!("CREATE TABLE t (k int, c int, v int, PRIMARY KEY (k, c)) WITH {FULL}");
    client.ok(&create).await;
    let mut writer = Writer {
        random: fastrand::Rng::with_seed(3),
        stored: BTreeMap::new(),
        expected: BTreeMap::new(),
    };
    writer.write(&client, 100).await;
    let clock = client.clock.clone();
    let options = || Client::options(&url, clock.clone());
    client.database.close().await.unwrap();
    let session = client.session.clone();
    drop(client);
    let client = Client::over(
        helenus_cql::cql::Database::open(options()).await.unwrap(),
        session,
        clock.clone(),
    );
    writer.write(&client, 100).await;
    let (records, state) = all(&client, FEED, 50, None).await;
    assert_eq!(by_key(&records), writer.expected);
    // TRUNCATE makes no record, and a reader goes on.
    client.ok("TRUNCATE t").await;
    client.ok("INSERT INTO t (k, c, v) VALUES (1, 1, 1)").await;
    let (records, state) = all(&client, FEED, 50, Some(state)).await;
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].0["metadata"]["operationType"], "create");
    // A log that was switched off and on has a gap; a reader from before it is refused.
    client
        .ok("ALTER TABLE t WITH cosmosdb_full_fidelity_retention_seconds = 0")
        .await;
    let error = page(&client, FEED, 10, None).await.unwrap_err();
    assert!(error.to_string().contains("has no change feed"), "{error}");
    let of_rows = FEED.replace("COSMOS_FULLFIDELITY_CHANGEFEED() = true AND ", "");
    let refused = client.refused(&of_rows).await;
    assert!(refused.contains("WITH cdc = true begins one"), "{refused}");
    client.ok("INSERT INTO t (k, c, v) VALUES (1, 1, 2)").await;
    client.ok(&format!("ALTER TABLE t WITH {FULL}")).await;
    client.built().await;
    let error = page(&client, FEED, 10, Some(state)).await.unwrap_err();
    assert!(error.is_of_trimmed_feed(), "{error}");
    assert_eq!(all(&client, FEED, 10, None).await.0, Vec::new());
    client.ok("INSERT INTO t (k, c, v) VALUES (1, 1, 3)").await;
    let (records, state) = all(&client, FEED, 10, None).await;
    assert_eq!(records[0].0["previous"]["v"], 2, "the row before the log is known");
    client.ok("DROP TABLE t").await;
    client.ok(&create).await;
    let error = page(&client, FEED, 10, Some(state)).await.unwrap_err();
    assert!(error.to_string().contains("created again"), "{error}");
}

/// A write that TRUNCATE overtakes is acknowledged, so it has a record.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_beside_truncate_have_records() {
    const WRITERS: i32 = 8;
    const WRITES: i32 = 60;
    let folder = tempfile::tempdir().unwrap();
    for url in [&format!("file:{}", folder.path().display()), "slate+memory:"] {
        let client = Client::with_keyspace(url).await;
        let create = format!("CREATE TABLE t (k int PRIMARY KEY, v int) WITH {FULL}");
        client.ok(&create).await;
        let client = &client;
        let write = async |writer: i32| {
            for write in 0..WRITES {
                let k = writer * WRITES + write;
                client.ok(&format!("INSERT INTO t (k, v) VALUES ({k}, 0)")).await;
            }
        };
        let truncate = async {
            for _ in 0..10 {
                client.ok("TRUNCATE t").await;
            }
        };
        tokio::join!(futures::future::join_all((0..WRITERS).map(write)), truncate);
        let records = all(client, FEED, 100, None).await.0;
        let keys = records
            .iter()
            .map(|(record, _)| record["metadata"]["key"]["k"].as_i64());
        let mut keys: Vec<i64> = keys.map(Option::unwrap).collect();
        keys.sort_unstable();
        let expected: Vec<i64> = (0..i64::from(WRITERS * WRITES)).collect();
        assert_eq!(keys, expected, "{url}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_are_kept_for_a_time_and_up_to_a_size() {
    let folder = tempfile::tempdir().unwrap();
    for url in ["memory:", &format!("file:{}", folder.path().display()), "slate+memory:"] {
        let client = Client::with_keyspace(url).await;
        client
            .ok(&format!(
                "CREATE TABLE t (k int PRIMARY KEY, v int) WITH {FULL} AND cosmosdb_full_fidelity_retention_bytes = 4000"
            ))
            .await;
        let mut sizes = LogSizes::default();
        let trim = async |sizes: &mut LogSizes| client.database.engine().upkeep().trim_logs(sizes).await.unwrap();
        let insert = async |k: i32| {
            client.ok(&format!("INSERT INTO t (k, v) VALUES ({k}, 1)")).await;
            client.clock.advance(Duration::from_secs(60));
        };
        for k in 0..5 {
            insert(k).await;
        }
        let (early, _) = all(&client, FEED, 10, None).await;
        assert_eq!((trim(&mut sizes).await, early.len()), (0, 5), "{url}");
        // 58 minutes after the second change: the first is out, and the second is not.
        client.clock.advance(Duration::from_secs(57 * 60 + 30));
        assert_eq!(trim(&mut sizes).await, 1, "{url}");
        let left = all(&client, FEED, 10, None).await.0;
        assert!((1..5).contains(&left.len()), "{url}: {}", left.len());
        let error = page(&client, FEED, 10, None).await;
        assert!(error.is_ok(), "the start is what there is");
        let gone = page(&client, FEED, 10, Some(early[0].1.clone())).await.unwrap_err();
        assert!(
            gone.is_of_trimmed_feed() && gone.to_string().contains("begins after"),
            "{gone}"
        );
        let long_ago = FEED.replace(
            "COSMOS_CHANGEFEED_FROM_START() = true",
            "COSMOS_CHANGEFEED_START_TIME() = '2001-01-01'",
        );
        assert!(
            page(&client, &long_ago, 10, None)
                .await
                .unwrap_err()
                .is_of_trimmed_feed()
        );
        // By size, the oldest first. A trimmer that has just started counts all.
        for k in 0..100 {
            insert(k % 7).await;
            client.clock.advance(Duration::from_millis(1));
        }
        client
            .ok("ALTER TABLE t WITH cosmosdb_full_fidelity_retention_seconds = 86400")
            .await;
        let before = all(&client, FEED, 1000, None).await.0.len();
        let mut anew = LogSizes::default();
        assert_eq!(trim(&mut anew).await, 1, "{url}");
        let (kept, _) = all(&client, FEED, 1000, None).await;
        assert!(
            kept.len() > 5 && kept.len() < before / 2,
            "{url}: {} of {before}",
            kept.len()
        );
        let newest = kept.iter().max_by_key(|(record, _)| record["metadata"]["lsn"].as_i64());
        assert_eq!(newest.unwrap().0["current"]["k"], 99 % 7);
        assert_eq!(trim(&mut anew).await, 0, "{url}: what is kept is small enough");
        insert(1).await;
        let (now, end, _) = page(&client, FROM_NOW, 10, None).await.unwrap();
        assert!(now.is_empty());
        insert(2).await;
        assert_eq!(all(&client, FEED, 10, Some(end)).await.0.len(), 1);
    }
}

/// A page ends with the change that fills it by rows or by bytes: here each page has room for a megabyte.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_long_rows_are_bounded_by_bytes() {
    const MB: usize = 1 << 20;
    let client = Client::with_keyspace("memory:").await;
    client
        .ok(&format!(
            "CREATE TABLE t (k int PRIMARY KEY, v text) WITH {FULL} AND cdc = true"
        ))
        .await;
    let latest = "SELECT JSON * FROM t WHERE COSMOS_CHANGEFEED_FROM_START() = true";
    // Bytes of a value, rows, and the most changes and rows of a page: a change of a row has it before and after.
    for (bytes, rows, changes_max, rows_max) in [(200_000, 20, 6, 6), (3 * MB, 3, 1, 1), (10, 150, 100, 100)] {
        client.ok("TRUNCATE t").await;
        let (_, start) = all(&client, FEED, 100, None).await;
        for letter in ["a", "b"] {
            let value = letter.repeat(bytes);
            for k in 0..rows {
                client
                    .ok(&format!("INSERT INTO t (k, v) VALUES ({k}, '{value}')"))
                    .await;
            }
        }
        let (mut sizes, mut state, mut is_at_end) = (Vec::new(), Some(start), false);
        while !is_at_end {
            let (records, next, end) = page(&client, FEED, 100, state).await.unwrap();
            let bytes: usize = records.iter().map(|(record, _)| record.to_string().len()).sum();
            sizes.push((records.len(), bytes));
            (state, is_at_end) = (Some(next), end);
        }
        assert_eq!(sizes.iter().map(|(count, _)| count).sum::<usize>(), 2 * rows);
        for (count, page_bytes) in &sizes {
            assert!(*count <= changes_max, "{bytes}: {sizes:?}");
            assert!(*page_bytes <= MB + 2 * bytes + 100 * 1024, "{bytes}: {sizes:?}");
        }
        let (mut sizes, mut state) = (Vec::new(), None);
        while sizes.last() != Some(&0) {
            let (page, next) = client.page(latest, 100, state).await;
            sizes.push(page.len());
            state = next;
        }
        assert_eq!(sizes.iter().sum::<usize>(), rows, "{bytes}: {sizes:?}");
        assert!(sizes.iter().all(|count| *count <= rows_max), "{bytes}: {sizes:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_no_log_says_so() {
    let client = Client::with_keyspace("memory:").await;
    client
        .ok("CREATE TABLE t (k int PRIMARY KEY, v int) WITH cdc = true")
        .await;
    let error = page(&client, FEED, 10, None).await.unwrap_err().to_string();
    assert!(error.contains("ALTER TABLE"), "{error}");
    client
        .ok("ALTER TABLE t WITH cosmosdb_full_fidelity_retention_bytes = 1000000")
        .await;
    assert!(client.refused(FEED).await.contains("not by a SELECT"));
    for (text, part) in [
        (
            "ALTER TABLE t WITH cosmosdb_full_fidelity_retention_seconds = -1",
            "from 0 to",
        ),
        (
            "ALTER TABLE t WITH cosmosdb_full_fidelity_retention_bytes = 0",
            "from 1 to",
        ),
        (
            "CREATE MATERIALIZED VIEW w AS SELECT * FROM t WHERE k IS NOT NULL AND v IS NOT NULL PRIMARY KEY (v, k) \
             WITH cosmosdb_full_fidelity_retention_seconds = 5",
            "view has no full fidelity",
        ),
    ] {
        let error = client.refused(text).await;
        assert!(error.contains(part), "{text}: {error}");
    }
    // A state of one feed is none of the other.
    let of_rows = FEED.replace("COSMOS_FULLFIDELITY_CHANGEFEED() = true AND ", "");
    let (_, state) = client.page(&of_rows, 10, None).await;
    let error = page(&client, FEED, 10, state).await.unwrap_err().to_string();
    assert!(error.contains("change feed of another table"), "{error}");
}

/// Rows that were there before get their first positions, which is no change of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_begins_with_rows_has_only_what_is_changed_since() {
    let folder = tempfile::tempdir().unwrap();
    for url in ["memory:", &format!("file:{}", folder.path().display()), "slate+memory:"] {
        let client = Client::with_keyspace(url).await;
        client.ok("CREATE TABLE t (k int PRIMARY KEY, v int)").await;
        for k in 0..300 {
            client.ok(&format!("INSERT INTO t (k, v) VALUES ({k}, 0)")).await;
        }
        client.ok("DELETE FROM t WHERE k = 299").await;
        client.ok(&format!("ALTER TABLE t WITH {FULL}")).await;
        for k in 0..5 {
            client.ok(&format!("UPDATE t SET v = 1 WHERE k = {k}")).await;
        }
        client.built().await;
        let records = all(&client, FEED, 100, None).await.0;
        let keys = records
            .iter()
            .map(|(record, _)| record["metadata"]["key"]["k"].as_i64());
        let mut keys: Vec<i64> = keys.map(Option::unwrap).collect();
        keys.sort_unstable();
        assert_eq!(keys, [0, 1, 2, 3, 4], "{url}");
        let long_ago = FEED.replace(
            "COSMOS_CHANGEFEED_FROM_START() = true",
            "COSMOS_CHANGEFEED_START_TIME() = '2001-01-01'",
        );
        let gone = page(&client, &long_ago, 10, None).await.unwrap_err();
        assert!(gone.is_of_trimmed_feed(), "{url}: {gone}");
    }
}
