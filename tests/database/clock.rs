//! Timestamps that the server gives: what is acknowledged takes effect, whatever the clock does over a restart.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test says no better what went wrong"
)]

use std::time::Duration;

use crate::support::{Client, open_when_free};
use helenus_base::clock::Clock;
use helenus_cql::cql::Error;
use helenus_cql::cql::{Database, QueryParams, SessionState};
use helenus_engine::engine::{self, ClockRules};
use helenus_storage::storage::{Batch, Options, Space, Store, Url};

const NOW: i64 = 1_700_000_000_000_000;
const HOUR: i64 = 3_600_000_000;
const DAY: i64 = 24 * HOUR;
/// 2200-01-01 UTC.
const YEAR_2200: i64 = 7_258_118_400_000_000;

impl Client {
    /// Ends this life of the database and begins the next one, with the wall clock at this time.
    async fn restarted(self, url: &str, micros: i64) -> Self {
        let session = self.session.clone();
        self.database.close().await.unwrap();
        drop(self.database);
        let clock = Clock::manual(micros);
        let database = open_when_free(async || Database::open(Self::options(url, clock.clone())).await).await;
        Self::over(database, session, clock)
    }
}

/// Each test on each engine that keeps data.
macro_rules! on_each_engine {
    ($($name:ident),* $(,)?) => {
        mod file {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let directory = tempfile::tempdir().unwrap();
                super::$name(&format!("file:{}", directory.path().display())).await;
            })*
        }
        #[cfg(feature = "slate")]
        mod slate {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let directory = tempfile::tempdir().unwrap();
                super::$name(&format!("slate+file:{}", directory.path().display())).await;
            })*
        }
    };
}

on_each_engine!(
    a_clock_set_back_over_a_restart_hides_no_write,
    quick_restarts_date_nothing_ahead,
    a_dropped_column_shows_nothing_after_a_restart,
    a_lifted_partition_brings_its_floor,
    clean_up_waits_until_a_clock_that_jumped_is_confirmed,
);

async fn a_clock_set_back_over_a_restart_hides_no_write(url: &str) {
    let client = Client::open_at(url, Clock::manual(NOW)).await.in_keyspace().await;
    client
        .ok("CREATE TABLE t (k int PRIMARY KEY, v int, l list<int>)")
        .await;
    client.ok("CREATE TABLE n (k int PRIMARY KEY, n counter)").await;
    for k in 1..=4 {
        client
            .ok(&format!("INSERT INTO t (k, v, l) VALUES ({k}, 1, [1])"))
            .await;
    }
    client.ok("UPDATE n SET n = n + 1 WHERE k = 1").await;

    let client = client.restarted(url, NOW - HOUR).await;
    client.ok("UPDATE t SET v = 2 WHERE k = 1").await;
    client.ok("DELETE FROM t WHERE k = 2").await;
    let swap = "UPDATE t SET v = 2 WHERE k = 3 IF v = 1";
    assert_eq!(client.rows(swap).await, ["true"]);
    assert_eq!(client.rows(swap).await, ["false 2"]);
    client.ok("UPDATE t SET l = l + [2] WHERE k = 4").await;
    client.ok("UPDATE n SET n = n + 1 WHERE k = 1").await;
    let expected = ["1 2 [1]", "3 2 [1]", "4 1 [1, 2]"];
    let shown = |mut rows: Vec<String>| {
        rows.sort();
        rows
    };
    assert_eq!(shown(client.rows("SELECT k, v, l FROM t").await), expected);
    client.ok("DELETE FROM n WHERE k = 1").await;
    assert!(client.rows("SELECT n FROM n").await.is_empty());

    // Once more, from below what was given below the first floor.
    let client = client.restarted(url, NOW - 2 * HOUR).await;
    client.ok("UPDATE t SET v = 3 WHERE k = 1").await;
    client.ok("INSERT INTO t (k, v) VALUES (2, 4)").await;
    assert_eq!(client.rows("SELECT v FROM t WHERE k = 1").await, ["3"]);
    assert_eq!(client.rows("SELECT v FROM t WHERE k = 2").await, ["4"]);
    client.database.close().await.unwrap();
}

async fn quick_restarts_date_nothing_ahead(url: &str) {
    let client = Client::open_at(url, Clock::manual(NOW)).await.in_keyspace().await;
    client.ok("CREATE TABLE t (k int PRIMARY KEY, v int)").await;
    client.ok("INSERT INTO t (k, v) VALUES (1, 0)").await;
    let mut now = NOW;
    let mut client = client;
    for round in 0..12 {
        now += 2000;
        client = client.restarted(url, now).await;
        let text = format!("UPDATE t SET v = {} WHERE k = 1 IF v = {round}", round + 1);
        assert_eq!(client.rows(&text).await, ["true"]);
    }
    let dated = client.rows("SELECT writetime(v) FROM t").await[0]
        .parse::<i64>()
        .unwrap();
    assert!(dated <= now, "{} µs ahead of the clock", dated - now);
    client = client.restarted(url, now + 2000).await;
    client.ok("UPDATE t SET v = 100 WHERE k = 1").await;
    assert_eq!(client.rows("SELECT v FROM t").await, ["100"]);
    let of_driver = QueryParams {
        timestamp_micros: Some(now + 3000),
        ..QueryParams::default()
    };
    client.run("UPDATE t SET v = 101 WHERE k = 1", of_driver).await.unwrap();
    assert_eq!(client.rows("SELECT v FROM t").await, ["101"]);
    client.database.close().await.unwrap();
}

async fn a_dropped_column_shows_nothing_after_a_restart(url: &str) {
    let client = Client::open_at(url, Clock::manual(NOW)).await.in_keyspace().await;
    client.ok("CREATE TABLE t (k int PRIMARY KEY, v int, w int)").await;
    client.ok("INSERT INTO t (k, v) VALUES (1, 1) IF NOT EXISTS").await;
    let client = client.restarted(url, NOW - HOUR).await;
    assert_eq!(client.rows("UPDATE t SET v = 42 WHERE k = 1 IF EXISTS").await, ["true"]);
    client.ok("UPDATE t SET w = 43 WHERE k = 1").await;
    client.ok("ALTER TABLE t DROP (v, w)").await;
    client.ok("ALTER TABLE t ADD v int").await;
    client.ok("ALTER TABLE t ADD w int").await;
    assert_eq!(client.rows("SELECT * FROM t").await, ["1 null null"]);
    client.ok("UPDATE t SET v = 2, w = 3 WHERE k = 1").await;
    assert_eq!(client.rows("SELECT k, v, w FROM t").await, ["1 2 3"]);
    client.database.close().await.unwrap();
}

async fn a_lifted_partition_brings_its_floor(url: &str) {
    let client = Client::open_at(url, Clock::manual(NOW)).await.in_keyspace().await;
    client
        .ok("CREATE TABLE t (k int PRIMARY KEY, v int) WITH helenus_partitions = 1")
        .await;
    client.ok("ALTER TABLE t WITH helenus_lift = 0").await;
    client.clock.advance(Duration::from_secs(3600));
    // Nothing but the lifted store has this timestamp.
    client.ok("INSERT INTO t (k, v) VALUES (1, 1)").await;
    let client = client.restarted(url, NOW).await;
    client.ok("UPDATE t SET v = 2 WHERE k = 1").await;
    assert_eq!(client.rows("SELECT v FROM t").await, ["2"]);
    client.ok("ALTER TABLE t WITH helenus_lower = 0").await;
    let client = client.restarted(url, NOW).await;
    client.ok("UPDATE t SET v = 3 WHERE k = 1").await;
    assert_eq!(client.rows("SELECT v FROM t").await, ["3"]);
    client.database.close().await.unwrap();
}

async fn clean_up_waits_until_a_clock_that_jumped_is_confirmed(url: &str) {
    let client = Client::open_at(url, Clock::manual(NOW)).await.in_keyspace().await;
    client
        .ok("CREATE TABLE t (k int PRIMARY KEY, v int) WITH gc_grace_seconds = 0")
        .await;
    client.ok("INSERT INTO t (k, v) VALUES (1, 1) USING TTL 86400").await;
    let jumped = NOW + 30 * DAY;
    // Neither the first start nor a later one removes what expired by a clock that is not believed.
    let mut client = client.restarted(url, jumped).await;
    for _ in 0..2 {
        assert_eq!(client.database.engine().upkeep().sweep().await.unwrap().rows_removed, 0);
        assert!(
            client.rows("SELECT * FROM t WHERE k = 1").await.is_empty(),
            "readers see no expired row"
        );
        client.ok("INSERT INTO t (k, v) VALUES (2, 2)").await;
        client = client.restarted(url, jumped).await;
    }
    // Set right: the row is there.
    let client = client.restarted(url, NOW + HOUR).await;
    assert_eq!(client.rows("SELECT v FROM t WHERE k = 1").await, ["1"]);
    client.database.close().await.unwrap();
    drop(client);
    let clock = Clock::manual(jumped);
    let mut options = Client::options(url, clock.clone());
    options.clock_rules = ClockRules {
        is_confirmed: true,
        ..ClockRules::default()
    };
    let session = SessionState {
        keyspace: Some("ks".into()),
        ..SessionState::default()
    };
    let client = Client::over(Database::open(options).await.unwrap(), session, clock);
    assert_eq!(client.database.engine().upkeep().sweep().await.unwrap().rows_removed, 1);
    // What is recorded from now on is the clock that was confirmed.
    client.ok("INSERT INTO t (k, v) VALUES (1, 1) USING TTL 60").await;
    let client = client.restarted(url, jumped + HOUR).await;
    assert_eq!(client.database.engine().upkeep().sweep().await.unwrap().rows_removed, 1);
    client.database.close().await.unwrap();
}

/// A conditional write takes effect over whatever clients have dated ahead, and dates nothing else ahead.
#[tokio::test]
async fn a_condition_stands_above_what_is_dated_ahead() {
    let client = Client::open_at("memory:", Clock::manual(NOW)).await.in_keyspace().await;
    client
        .ok("CREATE TABLE t (k int, c int, s int static, v int, m map<int, int>, PRIMARY KEY (k, c))")
        .await;
    let ahead = |text: &str| {
        let params = QueryParams {
            timestamp_micros: Some(YEAR_2200),
            ..QueryParams::default()
        };
        let text = text.to_owned();
        let client = &client;
        async move { client.run(&text, params).await.unwrap() }
    };
    let applied = |text: &'static str| {
        let client = &client;
        async move { assert_eq!(client.rows(text).await, ["true"], "{text}") }
    };
    // A cell, and a tombstone of one.
    ahead("INSERT INTO t (k, c, v, m) VALUES (1, 1, 1, {1: 1})").await;
    applied("UPDATE t SET v = 2, m = {2: 2} WHERE k = 1 AND c = 1 IF v = 1").await;
    assert_eq!(client.rows("SELECT v, m FROM t WHERE k = 1").await, ["2 {\"2\": 2}"]);
    ahead("DELETE v FROM t WHERE k = 1 AND c = 1").await;
    applied("UPDATE t SET v = 3 WHERE k = 1 AND c = 1 IF m != null").await;
    // A row's deletion, a range's and a partition's.
    ahead("DELETE FROM t WHERE k = 2 AND c = 1").await;
    applied("INSERT INTO t (k, c, v) VALUES (2, 1, 1) IF NOT EXISTS").await;
    ahead("DELETE FROM t WHERE k = 3 AND c > 0").await;
    applied("INSERT INTO t (k, c, v) VALUES (3, 1, 1) IF NOT EXISTS").await;
    ahead("DELETE FROM t WHERE k = 4").await;
    applied("UPDATE t SET s = 1 WHERE k = 4 IF s = null").await;
    // The row's own deletion, and its static row.
    applied("DELETE FROM t WHERE k = 1 AND c = 1 IF v = 3").await;
    ahead("UPDATE t SET s = 1 WHERE k = 5").await;
    applied("UPDATE t SET s = 2 WHERE k = 5 IF s = 1").await;
    // A batch: rows that it only writes, and ranges that it deletes.
    ahead("INSERT INTO t (k, c, v) VALUES (6, 1, 1)").await;
    ahead("INSERT INTO t (k, c, v) VALUES (6, 7, 7)").await;
    applied(
        "BEGIN BATCH UPDATE t SET s = 1 WHERE k = 6 IF s = null; UPDATE t SET v = 2 WHERE k = 6 AND c = 1; \
         DELETE FROM t WHERE k = 6 AND c > 5; APPLY BATCH",
    )
    .await;
    let mut rows = client.rows("SELECT k, c, s, v FROM t").await;
    rows.sort();
    assert_eq!(
        rows,
        ["2 1 null 1", "3 1 null 1", "4 null 1 null", "5 null 2 null", "6 1 1 2"]
    );
    // A row that nobody dated ahead is dated by the clock, also in a partition where another one was.
    client.ok("INSERT INTO t (k, c, v) VALUES (3, 0, 1)").await;
    applied("UPDATE t SET v = 2 WHERE k = 3 AND c = 0 IF v = 1").await;
    client.ok("INSERT INTO t (k, c, v) VALUES (7, 1, 1)").await;
    let dated = client.rows("SELECT writetime(v) FROM t WHERE k = 7").await[0].parse::<i64>();
    assert!(dated.unwrap() < NOW + 1000);
    let dated = client.rows("SELECT writetime(v) FROM t WHERE k = 3 AND c = 0").await[0].parse::<i64>();
    assert!(dated.unwrap() < NOW + 1000);
}

/// Above the last timestamp there is none, so a condition that would need one is refused and says why.
#[tokio::test]
async fn a_condition_on_the_last_timestamp_is_refused() {
    let client = Client::open_at("memory:", Clock::manual(NOW)).await.in_keyspace().await;
    client.ok("CREATE TABLE t (k int PRIMARY KEY, v int)").await;
    let last = |text| {
        let params = QueryParams {
            timestamp_micros: Some(i64::MAX),
            ..QueryParams::default()
        };
        client.run(text, params)
    };
    last("INSERT INTO t (k, v) VALUES (1, 1)").await.unwrap();
    let swap = "UPDATE t SET v = 2 WHERE k = 1 IF v = 1";
    let error = client.run(swap, QueryParams::default()).await.unwrap_err();
    assert!(
        matches!(&error, Error::Engine(engine::Error::Refused(why)) if why.to_string().contains("9223372036854775807")),
        "{error}"
    );
    assert_eq!(client.rows("SELECT v FROM t").await, ["1"]);
    // One that is not met changes nothing and is answered as any other.
    assert_eq!(
        client.rows("UPDATE t SET v = 2 WHERE k = 1 IF v = 5").await,
        ["false 1"]
    );
}

async fn with_ballot(url: &str, micros: i64) {
    let url = url.parse::<Url>().unwrap();
    let store = Store::open(&url, &Options::default(), Clock::system()).await.unwrap();
    let mut batch = Batch::new();
    batch.put(Space::Catalog, b"!last_ballot".to_vec(), micros.to_be_bytes().to_vec());
    store.commit(batch).await.unwrap();
    store.close().await.unwrap();
}

/// A directory of a version without time marks: its chain's record has none, and what it kept of conditional writes is the floor.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_record_of_conditional_writes_of_old_directories_is_a_floor() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("file:{}", directory.path().display());
    with_ballot(&url, NOW + HOUR).await;
    let client = Client::open_at(&url, Clock::manual(NOW)).await.in_keyspace().await;
    client.ok("CREATE TABLE t (k int PRIMARY KEY, v int)").await;
    client.ok("INSERT INTO t (k, v) VALUES (1, 1)").await;
    let dated = client.rows("SELECT writetime(v) FROM t").await[0]
        .parse::<i64>()
        .unwrap();
    assert!((NOW + HOUR..NOW + HOUR + 1000).contains(&dated), "{dated}");
    client.database.close().await.unwrap();
}

/// A start waits until the clock has passed what is near, so that the present timestamps of drivers are above it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_waits_for_a_floor_that_is_near() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("file:{}", directory.path().display());
    let clock = Clock::system();
    let floor = clock.wall_micros() + 900_000;
    with_ballot(&url, floor).await;
    let client = Client::open_at(&url, clock.clone()).await;
    assert!(clock.wall_micros() > floor);
    client.database.close().await.unwrap();
}
