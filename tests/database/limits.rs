//! How large things may be: logical partitions, rows, requests, batches, keys.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test says no better what went wrong"
)]

use std::time::Duration;

use crate::support::{Client, printed};
use helenus_base::budget::{Budget, Share};
use helenus_base::clock::Clock;
use helenus_cql::cql::Error;
use helenus_cql::cql::{Answer, Database, QueryParams, SessionState};
use helenus_engine::engine::{self, Options, SizeLimits};
use helenus_storage::storage::Medium;

/// What a logical partition may hold in most of these tests: 20 GB by 10,000.
const CAP: u64 = (20 << 30) / 10_000;

const FULL: &str =
    "Partition key reached maximum size of 2.04 MB. Learn more: https://aka.ms/CosmosDB/sql/errors/full-pk";

async fn open(url: &str, limits: SizeLimits) -> Client {
    open_on(None, url, limits).await
}

async fn open_on(medium: Option<&Medium>, url: &str, limits: SizeLimits) -> Client {
    let clock = Clock::manual(1_700_000_000_000_000);
    let mut options = Options {
        request_log_max: 0,
        limits,
        ..Client::options(url, clock.clone())
    };
    options.store.medium = medium.cloned();
    let client = Client::over(Database::open(options).await.unwrap(), SessionState::default(), clock);
    client.in_keyspace().await
}

async fn with_cap(url: &str, cap: u64) -> Client {
    let limits = SizeLimits {
        logical_partition_bytes_max: Some(cap),
        ..SizeLimits::default()
    };
    open(url, limits).await
}

impl Client {
    async fn put(&self, k: u32, c: u32, value: &str) -> Result<Answer, Error> {
        let text = format!("INSERT INTO t (k, c, v) VALUES ({k}, {c}, '{value}')");
        self.run(&text, QueryParams::default()).await
    }

    /// Writes rows until one is refused. Gives how many were written, and at which one the first warning came.
    async fn fill_partition(&self, k: u32, value: &str) -> (u32, Option<u32>, Error) {
        let mut warned = None;
        for c in 0..100_000 {
            match self.put(k, c, value).await {
                Ok(answer) => {
                    if warned.is_none() && !answer.warnings.is_empty() {
                        assert!(
                            answer.warnings[0].starts_with(&format!("Partition key {k} of table ks.t has reached 7"))
                        );
                        warned = Some(c);
                    }
                }
                Err(error) => return (c, warned, error),
            }
        }
        panic!("nothing was refused")
    }

    /// Bytes of all rows and index entries, exactly.
    fn stored(&self) -> u64 {
        let partitions = self.database.engine().figures().partitions().into_iter();
        partitions.filter(|of| of.keyspace == "ks").map(|of| of.bytes).sum()
    }
}

fn assert_refused(error: &Error) {
    assert!(
        matches!(error, Error::Engine(engine::Error::PartitionFull { .. })),
        "{error:?}"
    );
    assert_eq!(error.to_string(), FULL);
}

/// The limit is met within a hundredth or 64 KiB, which is more; what else there is is not touched by it.
async fn a_full_partition_refuses_writes(url: &str) {
    let client = with_cap(url, CAP).await;
    client
        .ok("CREATE TABLE t (k int, c int, v text, PRIMARY KEY (k, c))")
        .await;
    let value = "x".repeat(10_000);
    let (rows, warned, error) = client.fill_partition(1, &value).await;
    assert_refused(&error);
    let reached = u64::from(rows) * 10_000;
    assert!(reached <= CAP && reached > CAP - 100_000, "{rows} rows");
    let warned = u64::from(warned.unwrap()) * 10_000;
    assert!(
        (CAP / 100 * 68..CAP / 100 * 75).contains(&warned),
        "warned from {warned} bytes"
    );
    // Nothing of a batch with a row too many is written; other partitions take rows.
    let batch = format!(
        "BEGIN UNLOGGED BATCH INSERT INTO t (k, c, v) VALUES (1, 999999, '{value}') \
         INSERT INTO t (k, c, v) VALUES (2, 1, 'y') APPLY BATCH"
    );
    assert_refused(&client.run(&batch, QueryParams::default()).await.unwrap_err());
    assert!(printed(&client.ok("SELECT c FROM t WHERE k = 2").await).is_empty());
    client.put(2, 1, &value).await.unwrap();
    let conditional = format!("INSERT INTO t (k, c, v) VALUES (1, 999999, '{value}') IF NOT EXISTS");
    assert_refused(&client.run(&conditional, QueryParams::default()).await.unwrap_err());
    // Deletions are not refused, and make room.
    for c in 0..20 {
        client.ok(&format!("DELETE FROM t WHERE k = 1 AND c = {c}")).await;
    }
    for c in 0..10 {
        client.put(1, c, &value).await.unwrap();
    }
    client.ok("DELETE FROM t WHERE k = 1 AND c >= 50").await;
    for c in 50..100 {
        client.put(1, c, &value).await.unwrap();
    }
    client.ok("DELETE FROM t WHERE k = 1").await;
    let (again, ..) = client.fill_partition(1, &value).await;
    assert!(again.abs_diff(rows) <= 10, "{again} rows after {rows}");
    let largest = client.database.engine().figures().largest_partitions();
    assert_eq!((largest[0].key.as_str(), largest[0].is_watched), ("1", true));
    assert!(largest[0].bytes <= CAP && largest[0].bytes > CAP - 100_000);
    // All but a row of the other partition is in it.
    if !url.starts_with("slate") {
        let stored = client.stored() - 10_000;
        assert!(
            largest[0].bytes.abs_diff(stored) <= stored / 100,
            "{largest:?}, {stored}"
        );
    }
    // A table that is gone takes its partitions along.
    client.ok("TRUNCATE t").await;
    assert!(client.database.engine().figures().largest_partitions().is_empty());
    client.put(1, 1, &value).await.unwrap();
}

#[tokio::test]
async fn a_full_partition_in_memory_refuses_writes() {
    a_full_partition_refuses_writes("memory:").await;
}

#[tokio::test]
async fn a_full_partition_in_files_refuses_writes() {
    let directory = tempfile::tempdir().unwrap();
    a_full_partition_refuses_writes(&format!("file:{}", directory.path().display())).await;
}

#[cfg(feature = "slate")]
#[tokio::test]
async fn a_full_partition_in_slatedb_refuses_writes() {
    a_full_partition_refuses_writes("slate+memory:").await;
}

#[tokio::test]
async fn a_full_partition_is_full_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("file:{}", directory.path().display());
    let client = with_cap(&url, CAP).await;
    client
        .ok("CREATE TABLE t (k int, c int, v text, PRIMARY KEY (k, c))")
        .await;
    let value = "x".repeat(10_000);
    let (rows, _, error) = client.fill_partition(1, &value).await;
    assert_refused(&error);
    client.database.close().await.unwrap();
    drop(client);
    let client = with_cap(&url, CAP).await;
    let largest = client.database.engine().figures().largest_partitions();
    assert_eq!((largest.len(), largest[0].key.as_str()), (1, "1"));
    assert!(largest[0].bytes.abs_diff(CAP) < CAP / 20);
    let mut more = 0;
    while client.put(1, 500_000 + more, &value).await.is_ok() {
        more += 1;
    }
    assert!(more <= 7, "{more} more rows than {rows}");
    client.ok("DELETE FROM t WHERE k = 1").await;
    client.put(1, 1, &value).await.unwrap();
    // With a larger limit it takes more.
    client.database.close().await.unwrap();
    drop(client);
    let client = with_cap(&url, 10 * CAP).await;
    for c in 0..rows + 20 {
        client.put(1, c, &value).await.unwrap();
    }
}

#[tokio::test]
async fn the_same_rows_may_be_written_over_and_over() {
    let client = with_cap("memory:", CAP).await;
    client
        .ok("CREATE TABLE t (k int, c int, v text, PRIMARY KEY (k, c))")
        .await;
    let value = "x".repeat(10_000);
    for round in 0..8 {
        for c in 0..100 {
            let answer = client.put(1, c, &value).await.unwrap();
            assert!(answer.warnings.is_empty(), "{:?} in round {round}", answer.warnings);
        }
    }
    let largest = client.database.engine().figures().largest_partitions();
    let stored = client.stored();
    assert!(
        largest[0].bytes.abs_diff(stored) <= stored / 100,
        "{largest:?}, {stored} bytes stored"
    );
}

#[tokio::test]
async fn what_has_expired_makes_room() {
    let client = with_cap("memory:", CAP).await;
    client
        .ok("CREATE TABLE t (k int, c int, v text, PRIMARY KEY (k, c)) WITH default_time_to_live = 60 AND gc_grace_seconds = 0")
        .await;
    let value = "x".repeat(10_000);
    let (.., error) = client.fill_partition(1, &value).await;
    assert_refused(&error);
    client.clock.advance(Duration::from_secs(30));
    assert_refused(&client.put(1, 0, &value).await.unwrap_err());
    client.clock.advance(Duration::from_secs(60));
    client.put(1, 0, &value).await.unwrap();
}

#[tokio::test]
async fn index_entries_count() {
    let client = with_cap("memory:", CAP).await;
    client
        .ok("CREATE TABLE t (k int, c int, v text, PRIMARY KEY (k, c))")
        .await;
    client.ok("CREATE INDEX ON t (v)").await;
    let value = "x".repeat(10_000);
    let (rows, _, error) = client.fill_partition(1, &value).await;
    assert_refused(&error);
    // The entry of a row holds its value once more.
    let reached = u64::from(rows) * 20_000;
    assert!(reached <= CAP && reached > CAP - 150_000, "{rows} rows");
}

/// A partition of 20.47 MB among many small ones, filled by several writers at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_together_do_not_pass_the_limit() {
    const CAP: u64 = (20 << 30) / 1000;
    let directory = tempfile::tempdir().unwrap();
    let url = format!("file:{}", directory.path().display());
    let client = std::sync::Arc::new(with_cap(&url, CAP).await);
    client
        .ok("CREATE TABLE t (k int, c int, v text, PRIMARY KEY (k, c))")
        .await;
    let tasks: Vec<_> = (0..4_u32)
        .map(|writer| {
            let client = std::sync::Arc::clone(&client);
            tokio::spawn(async move {
                let value = "x".repeat(30_000);
                let mut written = 0;
                for c in 0.. {
                    client.put(1000 + c, writer, "small").await.unwrap();
                    match client.put(1, writer * 1_000_000 + c, &value).await {
                        Ok(_) => written += 30_000,
                        Err(error) => {
                            assert!(error.to_string().contains("maximum size of 20.47 MB"), "{error}");
                            break;
                        }
                    }
                }
                written
            })
        })
        .collect();
    let mut written = 0;
    for task in tasks {
        written += task.await.unwrap();
    }
    let largest = &client.database.engine().figures().largest_partitions()[0];
    // Within a hundredth, besides the keys and headers of seven hundred rows and what four writers had in hand.
    assert!(written <= CAP && written > CAP - CAP / 100 - 200_000, "{written}");
    // What was on its way while it was counted may be in it twice.
    assert!(
        largest.bytes <= CAP + 4 * 31_000 && largest.bytes >= written,
        "{largest:?}"
    );
}

#[tokio::test]
async fn rows_requests_batches_and_keys_are_limited_where_that_is_wanted() {
    let client = open(
        "memory:",
        SizeLimits {
            row_bytes_max: Some(1000),
            request_bytes_max: Some(2500),
            batch_operations_max: Some(3),
            partition_key_bytes_max: Some(20),
            ttl_seconds_max: Some(60),
            ..SizeLimits::default()
        },
    )
    .await;
    client
        .ok("CREATE TABLE t (k text PRIMARY KEY, v text, w text, s set<text>)")
        .await;
    let refused = async |text: &str| client.run(text, QueryParams::default()).await.unwrap_err();
    let large = "x".repeat(600);
    client
        .ok(&format!("INSERT INTO t (k, v) VALUES ('a', '{large}')"))
        .await;
    // What is there counts, and what is replaced does not.
    let error = refused(&format!("UPDATE t SET w = '{large}' WHERE k = 'a'")).await;
    assert!(
        matches!(&error, Error::Engine(engine::Error::WriteFailure { .. })),
        "{error:?}"
    );
    assert_eq!(error.to_string(), "Request size is too large");
    client.ok(&format!("UPDATE t SET v = '{large}' WHERE k = 'a'")).await;
    client.ok("DELETE v FROM t WHERE k = 'a'").await;
    client.clock.advance(Duration::from_secs(1));
    client.ok(&format!("UPDATE t SET w = '{large}' WHERE k = 'a'")).await;
    refused(&format!("UPDATE t SET s = s + {{'{large}'}} WHERE k = 'a'")).await;
    let rows = |count: u32| {
        let row = |number| format!("INSERT INTO t (k, v) VALUES ('{number}', '{large}')");
        let rows: Vec<String> = (0..count).map(row).collect();
        format!("BEGIN UNLOGGED BATCH {} APPLY BATCH", rows.join(" "))
    };
    client.ok(&rows(3)).await;
    assert_eq!(
        refused(&rows(4)).await.to_string(),
        "Batch request has more operations than what is supported."
    );
    let long = "k".repeat(21);
    assert_eq!(
        refused(&format!("INSERT INTO t (k) VALUES ('{long}')"))
            .await
            .to_string(),
        "Key length of 21 is longer than maximum of 20"
    );
    client.ok(&format!("INSERT INTO t (k) VALUES ('{}')", &long[1..])).await;
    client.ok("INSERT INTO t (k) VALUES ('b') USING TTL 60").await;
    assert_eq!(
        refused("INSERT INTO t (k) VALUES ('b') USING TTL 61").await.to_string(),
        "ttl is too large. requested (61) maximum (60)"
    );
    let many = "BEGIN UNLOGGED BATCH INSERT INTO t (k, v) VALUES ('1', '#') INSERT INTO t (k, v) VALUES ('2', '#') \
                INSERT INTO t (k, v) VALUES ('3', '#') APPLY BATCH";
    let error = refused(&many.replace('#', &"x".repeat(900))).await;
    assert_eq!(error.to_string(), "Request size is too large");
}

/// The limit of rows in these tests, and what is written at once: five of it are too much.
const ROW: u64 = 500_000;
const PART: usize = 110_000;

fn row_limit(bytes: u64) -> SizeLimits {
    SizeLimits {
        merged_row_bytes_max: Some(bytes),
        ..SizeLimits::default()
    }
}

async fn with_row_limit(url: &str, bytes: u64) -> Client {
    open(url, row_limit(bytes)).await
}

fn assert_row_too_long(outcome: &Result<Answer, Error>) {
    match outcome {
        Err(Error::Engine(engine::Error::Refused(why))) => {
            let text = why.to_string();
            assert!(
                text.starts_with("A row would be ") && text.contains("row-bytes-max"),
                "{text}"
            );
        }
        other => panic!("{other:?}"),
    }
}

async fn rows_are_checked_where_writes_meet_them(url: &str) {
    checks_rows(with_row_limit(url, ROW).await).await;
}

async fn checks_rows(client: Client) {
    client
        .ok("CREATE TABLE t (k int, c int, l list<text>, v text, PRIMARY KEY (k, c))")
        .await;
    let run = async |text: &str| client.run(text, QueryParams::default()).await;
    let part = "x".repeat(PART);
    let append = |c: u32| format!("UPDATE t SET l = l + ['{part}'] WHERE k = 1 AND c = {c}");
    for _ in 0..4 {
        client.ok(&append(1)).await;
    }
    // In a group with others only the one is refused.
    let (long, other, more) = (append(1), append(2), append(3));
    let (long, other, more) = tokio::join!(run(&long), run(&other), run(&more));
    assert_row_too_long(&long);
    assert!(other.is_ok() && more.is_ok());
    // A batch is refused as a whole, wherever the row that is too long stands in it.
    let batch = format!(
        "BEGIN BATCH INSERT INTO t (k, c) VALUES (1, 4); {}; INSERT INTO t (k, c) VALUES (1, 5); APPLY BATCH",
        append(1)
    );
    assert_row_too_long(&run(&batch).await);
    let rows = client.ok("SELECT c FROM t WHERE k = 1 AND c IN (4, 5)").await;
    assert_eq!(printed(&rows).len(), 0);
    // What is there can be read and taken away, and then there is room.
    let rows = client.ok("SELECT l FROM t WHERE k = 1 AND c = 1").await;
    assert_eq!(printed(&rows)[0].matches('x').count(), 4 * PART);
    client.ok("DELETE l FROM t WHERE k = 1 AND c = 1").await;
    client.clock.advance(Duration::from_secs(1));
    client.ok(&append(1)).await;
    // As much at once is refused, too.
    let all = format!("INSERT INTO t (k, c, v) VALUES (1, 6, '{}')", "x".repeat(5 * PART));
    assert_row_too_long(&run(&all).await);
}

#[tokio::test]
async fn rows_in_memory_are_checked_where_writes_meet_them() {
    rows_are_checked_where_writes_meet_them("memory:").await;
}

/// The simulation's medium keeps the limit as the engines do, so that what it says of writes holds of theirs.
#[tokio::test]
async fn rows_on_a_simulated_medium_are_checked_where_writes_meet_them() {
    let medium = Medium::new(7);
    let driving = async {
        loop {
            medium.work();
            medium.end_pauses();
            tokio::task::yield_now().await;
        }
    };
    let checking = async { checks_rows(open_on(Some(&medium), "memory:", row_limit(ROW)).await).await };
    tokio::select! {
        () = driving => {}
        () = checking => {}
    }
}

#[tokio::test]
async fn rows_in_slatedb_are_checked_where_writes_meet_them() {
    rows_are_checked_where_writes_meet_them("slate+memory:").await;
}

#[tokio::test]
async fn rows_in_files_are_checked_where_writes_meet_them() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("file:{}", directory.path().display());
    rows_are_checked_where_writes_meet_them(&url).await;
}

/// A row of a directory that was written when rows might be longer.
#[tokio::test]
async fn a_row_over_the_limit_can_shrink_and_go() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("file:{}", directory.path().display());
    let client = with_row_limit(&url, 100 * ROW).await;
    client
        .ok("CREATE TABLE t (k int PRIMARY KEY, l list<text>, v text)")
        .await;
    let long = "x".repeat(2 * usize::try_from(ROW).unwrap());
    client
        .ok(&format!("INSERT INTO t (k, v, l) VALUES (1, '{long}', ['a', 'b'])"))
        .await;
    client.database.close().await.unwrap();
    drop(client);
    let client = with_row_limit(&url, ROW).await;
    client.clock.advance(Duration::from_secs(1));
    let run = async |text: &str| client.run(text, QueryParams::default()).await;
    assert_eq!(printed(&client.ok("SELECT v FROM t WHERE k = 1").await).len(), 1);
    assert_row_too_long(&run("UPDATE t SET l = l + ['c'] WHERE k = 1").await);
    client.clock.advance(Duration::from_secs(1));
    // A tombstone makes it a little longer still.
    client.ok("DELETE FROM t WHERE k = 2").await;
    client.ok("DELETE l[0] FROM t WHERE k = 1").await;
    client
        .ok(&format!("UPDATE t SET v = '{}' WHERE k = 1", &long[1000..]))
        .await;
    client.ok("UPDATE t SET v = 'short' WHERE k = 1").await;
    client.ok("UPDATE t SET l = l + ['c'] WHERE k = 1").await;
    client.ok("DELETE FROM t WHERE k = 1").await;
    assert_eq!(printed(&client.ok("SELECT v FROM t WHERE k = 1").await).len(), 0);
}

/// An index read holds the places that it goes to; where there is no memory for them it lets go and is begun again.
#[tokio::test]
async fn the_places_of_an_index_read_count_for_its_memory() {
    const BYTES: usize = 1 << 20;
    let mut client = Client::with_keyspace("memory:").await;
    client
        .ok("CREATE TABLE t (k text, c int, v int, w int, PRIMARY KEY (k, c))")
        .await;
    client
        .ok("CREATE CUSTOM INDEX of_v ON t (v) USING 'StorageAttachedIndex'")
        .await;
    for c in 0..200 {
        let long = "k".repeat(3000);
        client
            .ok(&format!(
                "INSERT INTO t (k, c, v, w) VALUES ('{long}{c}', {c}, {}, 1)",
                c % 2
            ))
            .await;
    }
    client.built().await;
    let budget = Budget::new(BYTES, Duration::from_secs(1));
    client.session.share = Some(Share::new(&budget));
    let taken = Share::new(&budget).try_reserve(BYTES).unwrap();
    // One value, whose entries lie in the order of the ring; several, which do not.
    let by_index = [
        "SELECT count(*) FROM t WHERE v = 1",
        "SELECT count(*) FROM t WHERE v >= 0 AND v <= 1",
    ];
    for text in by_index {
        let outcome = client.run(text, QueryParams::default()).await;
        assert!(
            matches!(outcome, Err(Error::Engine(engine::Error::NoRoom { .. }))),
            "{text}: {outcome:?}"
        );
    }
    // A scan holds nothing.
    assert_eq!(client.rows("SELECT count(*) FROM t").await, ["200"]);
    drop(taken);
    assert_eq!(client.rows(by_index[0]).await, ["100"]);
    assert_eq!(client.rows(by_index[1]).await, ["200"]);
    assert_eq!(budget.used(), 0);
}

/// The scans of a client that leaves must not hold up those who stay; its writes are completed.
#[tokio::test(flavor = "multi_thread")]
async fn reads_end_when_the_client_has_left() {
    let mut client = Client::with_keyspace("memory:").await;
    client.ok("CREATE TABLE t (k int PRIMARY KEY, v int)").await;
    for k in 0..10 {
        client.ok(&format!("INSERT INTO t (k, v) VALUES ({k}, 0)")).await;
    }
    let share = Share::new(&Budget::new(1 << 20, Duration::from_secs(1)));
    client.session.share = Some(std::sync::Arc::clone(&share));
    let scans = [
        "SELECT count(*) FROM t",
        "SELECT * FROM t WHERE v = 1 ALLOW FILTERING",
        "SELECT * FROM t WHERE k = 1",
    ];
    for text in scans {
        client.ok(text).await;
    }
    share.leave();
    for text in scans {
        let outcome = client.run(text, QueryParams::default()).await;
        let refused = outcome.unwrap_err().to_string();
        assert!(refused.contains("has disconnected"), "{text}: {refused}");
    }
    client.ok("INSERT INTO t (k, v) VALUES (11, 0)").await;
    client.ok("UPDATE t SET v = 2 WHERE k = 1 IF v = 0").await;
    client.session.share = None;
    assert_eq!(client.rows("SELECT v FROM t WHERE k = 1").await, ["2"]);
}
