//! Physical partitions: how many a table begins with, splits and merges while it is used, and what is seen of them.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test says no better what went wrong"
)]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use crate::support::parts::Part;
use crate::support::{Client, printed};
use helenus_cql::cql::{AnswerKind, QueryParams};
use helenus_engine::engine::{MeasuredPartitions, PartitionLimits, PartitionSizes, Repartitioned};

impl Client {
    async fn split(&self, table: &str, at: i64) {
        let answer = self
            .ok(&format!("ALTER TABLE {table} WITH helenus_split_at = {at}"))
            .await;
        assert!(matches!(answer.kind, AnswerKind::Void));
    }

    /// Splits at a random token, or merges two random neighbours.
    async fn shake(&self, table: &str, random: &mut fastrand::Rng) {
        let parts = self.parts(table).await;
        if parts.len() == 1 || (parts.len() < 40 && random.bool()) {
            let at = random.i64(..);
            if parts.iter().all(|part| part.lower != at) {
                self.split(table, at).await;
            }
        } else {
            let left = random.usize(..parts.len() - 1);
            let (left, right) = (parts[left].id, parts[left + 1].id);
            self.ok(&format!(
                "ALTER TABLE {table} WITH helenus_merge = {{'left': {left}, 'right': {right}}}"
            ))
            .await;
        }
    }
}

#[tokio::test]
#[expect(
    clippy::too_many_lines,
    reason = "one story: each step stands on the state that the one before left"
)]
async fn a_table_begins_with_as_many_as_its_options_say() {
    let client = Client::with_keyspace("memory:").await;
    let plain = "CREATE TABLE plain (k int PRIMARY KEY)";
    client.ok(plain).await;
    assert_eq!(client.parts("plain").await.len(), 1);
    for (name, option, count) in [
        ("a", "helenus_partitions = 16", 16),
        ("b", "cosmosdb_provisioned_throughput = 40000", 7),
        ("c", "cosmosdb_autoscale_max_throughput = 40000 AND comment = 'x'", 4),
        (
            "d",
            "cosmosdb_provisioned_throughput = 400 AND cosmosdb_cell_level_timestamp = true",
            1,
        ),
        (
            "e",
            "helenus_partitions = 3 AND cosmosdb_provisioned_throughput = 40000",
            3,
        ),
    ] {
        client
            .ok(&format!("CREATE TABLE {name} (k int PRIMARY KEY) WITH {option}"))
            .await;
        assert_eq!(client.parts(name).await.len(), count, "{option}");
    }
    // Only what is given is shown, and nothing of Cosmos.
    let described = |name: &'static str| {
        let client = &client;
        async move { printed(&client.ok(&format!("DESCRIBE TABLE {name}")).await).join("\n") }
    };
    assert!(described("a").await.contains("AND helenus_partitions = 16;"));
    let (b, plain) = (described("b").await, described("plain").await);
    assert_eq!(
        b.replace(" b ", " plain ")
            .replace("ks.b", "ks.plain")
            .replace("\"b\"", "\"plain\""),
        plain
    );
    // More throughput than they can serve splits as many as it takes; less merges none.
    client
        .ok("ALTER TABLE c WITH cosmosdb_autoscale_max_throughput = 65000")
        .await;
    assert_eq!(client.parts("c").await.len(), 7);
    client
        .ok("ALTER TABLE c WITH cosmosdb_autoscale_max_throughput = 7000")
        .await;
    assert_eq!(client.parts("c").await.len(), 7);

    for (text, why) in [
        (
            "CREATE TABLE x (k int PRIMARY KEY) WITH helenus_partitions = 0",
            "helenus_partitions must be between 1 and 1024",
        ),
        (
            "CREATE TABLE x (k int PRIMARY KEY) WITH helenus_partitions = 1025",
            "helenus_partitions must be between 1 and 1024",
        ),
        (
            "ALTER TABLE a WITH helenus_partitions = 3",
            "helenus_partitions can only be set when a table is created",
        ),
        (
            "CREATE TABLE x (k int PRIMARY KEY) WITH cosmosdb_provisioned_throughput = 450",
            "{\"Errors\":[\"The offer should have valid throughput values between 400 and 1000000 inclusive in increments of 100.\"]}",
        ),
        (
            "ALTER TABLE c WITH cosmosdb_autoscale_max_throughput = 1500",
            "{\"Errors\":[\"The offer should have valid throughput values between 1000 and 1000000 inclusive in increments of 1000.\"]}",
        ),
        (
            "ALTER TABLE b WITH cosmosdb_autoscale_max_throughput = 4000",
            "x-ms-cosmos-migrate-offer-to-autopilot must be supplied and offercontent must not contain autopilotSettings for \
             migration from manual throughput to autoscale.",
        ),
        (
            "ALTER KEYSPACE ks WITH cosmosdb_provisioned_throughput = 500",
            "Cannot set provisioned throughput for database that is not configured for shared throughput",
        ),
        (
            "ALTER TABLE d WITH cosmosdb_cell_level_timetolive = true",
            "cosmosdb_cell_level_timetolive can only be set when a table is created",
        ),
        (
            "CREATE TABLE x (k int PRIMARY KEY) WITH helenus_split_at = 3",
            "Unknown property 'helenus_split_at'",
        ),
    ] {
        assert_eq!(client.refused(text).await, why, "{text}");
    }
    let shared = "WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1} AND cosmosdb_provisioned_throughput = 500";
    client.ok(&format!("CREATE KEYSPACE shared {shared}")).await;
    client
        .ok("ALTER KEYSPACE shared WITH cosmosdb_provisioned_throughput = 600")
        .await;
}

#[tokio::test]
async fn what_cannot_be_changed_is_refused() {
    let client = Client::with_keyspace("memory:").await;
    client.ok("CREATE TABLE t (k int PRIMARY KEY)").await;
    client.split("t", 0).await;
    for (text, why) in [
        (
            "ALTER TABLE t WITH helenus_split_at = 0",
            "Cannot split at token 0: physical partition 2 begins there already",
        ),
        (
            "ALTER TABLE nobody WITH helenus_split_at = 0",
            "Table 'ks.nobody' doesn't exist",
        ),
        (
            "ALTER TABLE t WITH helenus_split_at = 'soon'",
            "Invalid token soon for 'helenus_split_at'",
        ),
        (
            "ALTER TABLE t WITH helenus_merge = {'left': 2, 'right': 1}",
            "Physical partitions 2 and 1 are not neighbours in this order",
        ),
        (
            "ALTER TABLE t WITH helenus_merge = {'left': 0, 'right': 1}",
            "There is no physical partition 0",
        ),
        (
            "ALTER TABLE t WITH helenus_merge = {'left': 1}",
            "Invalid value for 'helenus_merge': it is a map of 'left' and 'right' to the ids of two physical partitions",
        ),
        (
            "ALTER TABLE t WITH helenus_split_at = 5 AND comment = 'x'",
            "'helenus_split_at', 'helenus_merge', 'helenus_lift' and 'helenus_lower' cannot stand beside other options",
        ),
        (
            "ALTER TABLE system_auth.roles WITH helenus_split_at = 5",
            "Cannot ALTER <table system_auth.roles>",
        ),
        (
            "CREATE TABLE system_cosmos.x (k int PRIMARY KEY)",
            "system_cosmos keyspace is not user-modifiable.",
        ),
    ] {
        assert_eq!(client.refused(text).await, why, "{text}");
    }
    let version = client.database.engine().schema_version();
    client.split("t", i64::MAX).await;
    assert_eq!(client.database.engine().schema_version(), version);
    client
        .ok("ALTER TABLE t WITH helenus_merge = {'left': 3, 'right': 4}")
        .await;
    let ids: Vec<(u64, u64)> = client
        .parts("t")
        .await
        .iter()
        .map(|part| (part.id, part.epoch))
        .collect();
    assert_eq!(ids, [(1, 1), (5, 3)]);
}

#[tokio::test]
async fn ranges_outlive_truncation_and_restart_and_go_with_their_table() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("file:{}", directory.path().display());
    let client = Client::with_keyspace(&url).await;
    client
        .ok("CREATE TABLE t (k int PRIMARY KEY) WITH helenus_partitions = 4")
        .await;
    client.split("t", 77).await;
    client.ok("INSERT INTO t (k) VALUES (1)").await;
    let before = client.parts("t").await;
    client.ok("TRUNCATE t").await;
    client.ok("ALTER TABLE t ADD v int").await;
    let ranges = |parts: &[Part]| -> Vec<(u64, u64, i64)> {
        parts.iter().map(|part| (part.id, part.epoch, part.lower)).collect()
    };
    assert_eq!(ranges(&client.parts("t").await), ranges(&before));
    assert!(printed(&client.ok("SELECT * FROM t").await).is_empty());
    client.database.close().await.unwrap();
    drop(client);
    let mut client = Client::open(&url).await;
    client.session.keyspace = Some("ks".into());
    assert_eq!(ranges(&client.parts("t").await), ranges(&before));
    client.ok("DROP TABLE t").await;
    client.ok("CREATE TABLE t (k int PRIMARY KEY)").await;
    assert_eq!(client.parts("t").await.len(), 1);
    client.database.close().await.unwrap();
    drop(client);
    let client = Client::open(&url).await;
    assert_eq!(client.parts("t").await.len(), 1);
}

/// A table that is split and merged answers as its twin that is not, pages begun before a change included.
async fn a_split_table_answers_as_its_twin(url: &str) {
    let client = Client::with_keyspace(url).await;
    let mut random = fastrand::Rng::with_seed(5);
    for table in ["whole", "cut"] {
        client
            .ok(&format!(
                "CREATE TABLE {table} (k int, c int, s int static, v int, PRIMARY KEY (k, c))"
            ))
            .await;
        client.ok(&format!("CREATE INDEX ON {table} (v)")).await;
    }
    for round in 0..30 {
        for _ in 0..20 {
            let (k, c, v) = (random.i32(0..60), random.i32(0..8), random.i32(0..10));
            let text = match random.u8(0..12) {
                0 => format!("DELETE FROM $ WHERE k = {k}"),
                1 => format!("DELETE FROM $ WHERE k = {k} AND c > {c}"),
                2 => format!("UPDATE $ SET s = {v} WHERE k = {k}"),
                3 => format!("INSERT INTO $ (k, c, v) VALUES ({k}, {c}, {v}) IF NOT EXISTS"),
                _ => format!("INSERT INTO $ (k, c, v) VALUES ({k}, {c}, {v})"),
            };
            for table in ["whole", "cut"] {
                client.ok(&text.replace('$', table)).await;
            }
            client.shake("cut", &mut random).await;
        }
        let token = random.i64(..);
        for text in [
            "SELECT * FROM $".to_owned(),
            "SELECT DISTINCT k, s FROM $".to_owned(),
            format!("SELECT k, c FROM $ WHERE token(k) > {token}"),
            format!("SELECT k, c FROM $ WHERE token(k) <= {token} PER PARTITION LIMIT 2"),
            format!("SELECT * FROM $ WHERE k = {}", random.i32(0..60)),
            "SELECT * FROM $ WHERE k IN (1, 5, 9, 13, 40)".to_owned(),
            "SELECT count(*), sum(v) FROM $".to_owned(),
            "SELECT k, c FROM $ WHERE v = 3".to_owned(),
            "SELECT k, c FROM $ WHERE v > 3 LIMIT 7 ALLOW FILTERING".to_owned(),
        ] {
            let whole = printed(&client.ok(&text.replace('$', "whole")).await);
            assert_eq!(
                printed(&client.ok(&text.replace('$', "cut")).await),
                whole,
                "{text} in round {round}"
            );
            if text.contains("count") {
                continue;
            }
            let (mut pages, mut state) = (Vec::new(), None);
            loop {
                let (page, next) = client.page(&text.replace('$', "cut"), 3, state).await;
                pages.extend(page);
                state = next;
                if state.is_none() {
                    break;
                }
                client.shake("cut", &mut random).await;
            }
            assert_eq!(pages, whole, "pages of {text} in round {round}");
        }
    }
    assert!(client.parts("cut").await.last().unwrap().id > 400);
}

#[tokio::test]
async fn a_split_table_in_memory_answers_as_its_twin() {
    a_split_table_answers_as_its_twin("memory:").await;
}

#[cfg(feature = "slate")]
#[tokio::test]
async fn a_split_table_in_slatedb_answers_as_its_twin() {
    a_split_table_answers_as_its_twin("slate+memory:").await;
}

/// Writers and scanners go on while a table is split and merged two hundred times.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_doubled_while_a_table_is_split_and_merged() {
    const WRITERS: u32 = 4;
    let directory = tempfile::tempdir().unwrap();
    let url = format!("file:{}", directory.path().display());
    let client = Arc::new(Client::with_keyspace(&url).await);
    client
        .ok("CREATE TABLE t (k int PRIMARY KEY, v int) WITH helenus_partitions = 16")
        .await;
    let done = Arc::new(AtomicBool::new(false));
    let written: Arc<Vec<AtomicU32>> = Arc::new((0..WRITERS).map(|_| AtomicU32::new(0)).collect());
    let mut tasks = Vec::new();
    for writer in 0..WRITERS {
        let (client, done, written) = (Arc::clone(&client), Arc::clone(&done), Arc::clone(&written));
        tasks.push(tokio::spawn(async move {
            let mut number = 0;
            while !done.load(Ordering::Relaxed) {
                let k = number * WRITERS + writer;
                client.ok(&format!("INSERT INTO t (k, v) VALUES ({k}, {number})")).await;
                number += 1;
                written[writer as usize].store(number, Ordering::Release);
            }
        }));
    }
    for _ in 0..2 {
        let (client, done, written) = (Arc::clone(&client), Arc::clone(&done), Arc::clone(&written));
        tasks.push(tokio::spawn(async move {
            while !done.load(Ordering::Relaxed) {
                let before: Vec<u32> = written.iter().map(|number| number.load(Ordering::Acquire)).collect();
                let pages = client.pages("SELECT k FROM t", 500).await;
                // A scan of few rows never waits, and the writers need a thread too.
                tokio::task::yield_now().await;
                let seen: Vec<u32> = pages.concat().iter().map(|row| row.parse().unwrap()).collect();
                let distinct: BTreeSet<u32> = seen.iter().copied().collect();
                assert_eq!(distinct.len(), seen.len(), "a row came twice");
                for (writer, count) in before.iter().enumerate() {
                    let writer = u32::try_from(writer).unwrap();
                    let lost = (0..*count).find(|number| !distinct.contains(&(number * WRITERS + writer)));
                    assert_eq!(lost, None, "an acknowledged row of writer {writer} is missing");
                }
            }
        }));
    }
    let mut random = fastrand::Rng::with_seed(9);
    for _ in 0..200 {
        client.shake("t", &mut random).await;
        tokio::task::yield_now().await;
    }
    done.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
    let total: u32 = written.iter().map(|number| number.load(Ordering::Acquire)).sum();
    assert_eq!(printed(&client.ok("SELECT count(*) FROM t").await), [total.to_string()]);
    let parts = client.parts("t").await;
    client.database.close().await.unwrap();
    drop(client);
    let mut client = Client::open(&url).await;
    client.session.keyspace = Some("ks".into());
    assert_eq!(client.parts("t").await, parts);
    assert_eq!(printed(&client.ok("SELECT count(*) FROM t").await), [total.to_string()]);
}

#[tokio::test]
#[expect(
    clippy::too_many_lines,
    reason = "one story: each step stands on the state that the one before left"
)]
async fn partitions_split_by_size_and_merge_when_they_stay_small() {
    let client = Client::with_keyspace("memory:").await;
    client
        .ok("CREATE TABLE t (k int, c int, v text, PRIMARY KEY (k, c))")
        .await;
    let text = "x".repeat(1000);
    for k in 0..400 {
        client
            .ok(&format!("INSERT INTO t (k, c, v) VALUES ({k}, 0, '{text}')"))
            .await;
    }
    let limits = PartitionLimits {
        bytes_max: 100_000,
        merges: true,
    };
    let mut sizes = PartitionSizes::default();
    let nothing = Repartitioned::default();
    // One look makes all the parts that it takes.
    let splits = client
        .database
        .engine()
        .upkeep()
        .repartition(limits, &mut sizes)
        .await
        .unwrap()
        .splits;
    assert_eq!(
        client
            .database
            .engine()
            .upkeep()
            .repartition(limits, &mut sizes)
            .await
            .unwrap(),
        nothing
    );
    // Some 420 KB: five parts, with room left in each.
    assert_eq!((splits, client.parts("t").await.len()), (4, 5));
    assert_eq!(
        client
            .database
            .engine()
            .upkeep()
            .repartition(limits, &mut sizes)
            .await
            .unwrap(),
        nothing
    );
    let mut counts = Vec::new();
    for part in client.parts("t").await {
        let text = format!(
            "SELECT count(*) FROM t WHERE token(k) >= {} AND token(k) <= {}",
            part.lower, part.upper
        );
        counts.push(printed(&client.ok(&text).await)[0].parse::<u32>().unwrap());
    }
    assert_eq!(counts.iter().sum::<u32>(), 400);
    assert!(counts.iter().all(|count| (75..=90).contains(count)), "{counts:?}");

    // One key that fills a partition alone is not cut, and not looked at again and again.
    for c in 0..200 {
        client
            .ok(&format!("INSERT INTO t (k, c, v) VALUES (7, {c}, '{text}')"))
            .await;
    }
    while client
        .database
        .engine()
        .upkeep()
        .repartition(limits, &mut sizes)
        .await
        .unwrap()
        != nothing
    {}
    let split = client.parts("t").await.len();
    assert_eq!(
        client
            .database
            .engine()
            .upkeep()
            .repartition(limits, &mut sizes)
            .await
            .unwrap(),
        nothing
    );
    assert!((6..=9).contains(&split), "{split}");

    // Small for one check is not enough.
    client.ok("TRUNCATE t").await;
    assert_eq!(
        client
            .database
            .engine()
            .upkeep()
            .repartition(limits, &mut sizes)
            .await
            .unwrap(),
        nothing
    );
    for _ in 1..split {
        let mut merged = client
            .database
            .engine()
            .upkeep()
            .repartition(limits, &mut sizes)
            .await
            .unwrap();
        client.clock.advance(Duration::from_secs(60));
        if merged == nothing {
            merged = client
                .database
                .engine()
                .upkeep()
                .repartition(limits, &mut sizes)
                .await
                .unwrap();
        }
        assert_eq!((merged.splits, merged.merges), (0, 1));
    }
    assert_eq!(client.parts("t").await.len(), 1);
    assert_eq!(
        client
            .database
            .engine()
            .upkeep()
            .repartition(limits, &mut sizes)
            .await
            .unwrap(),
        nothing
    );
}

/// A loader that writes twice the limit between two checks: no partition passes the limit by more than that and an eighth.
#[tokio::test]
async fn partitions_split_by_what_is_written_to_them() {
    const LIMIT: u64 = 100_000;
    let client = Client::with_keyspace("memory:").await;
    client.ok("CREATE TABLE t (k int PRIMARY KEY, v text)").await;
    let text = "x".repeat(1000);
    let limits = PartitionLimits {
        bytes_max: LIMIT,
        merges: false,
    };
    let (mut measured, nothing) = (MeasuredPartitions::default(), Repartitioned::default());
    for round in 0..5_u32 {
        for k in round * 200..(round + 1) * 200 {
            client.ok(&format!("INSERT INTO t (k, v) VALUES ({k}, '{text}')")).await;
        }
        while client
            .database
            .engine()
            .upkeep()
            .split_written(limits, &mut measured)
            .await
            .unwrap()
            != nothing
        {}
        client.database.engine().upkeep().count_partitions().await;
        let parts = client
            .database
            .engine()
            .figures()
            .partitions()
            .into_iter()
            .filter(|part| part.table == "t");
        let bytes: Vec<u64> = parts.map(|part| part.bytes).collect();
        assert!(bytes.iter().all(|bytes| *bytes <= LIMIT * 9 / 8), "{round}: {bytes:?}");
        assert!(bytes.iter().sum::<u64>() > 200_000 * u64::from(round + 1), "{bytes:?}");
    }
    // The same rows again: they are measured, and there is nothing to split.
    let before = client.parts("t").await.len();
    for k in 0..1000 {
        client.ok(&format!("INSERT INTO t (k, v) VALUES ({k}, '{text}')")).await;
    }
    while client
        .database
        .engine()
        .upkeep()
        .split_written(limits, &mut measured)
        .await
        .unwrap()
        != nothing
    {}
    assert!(client.parts("t").await.len() <= before + 2);

    // One key that fills a partition alone is not cut.
    client
        .ok("CREATE TABLE one (k int, c int, v text, PRIMARY KEY (k, c))")
        .await;
    for c in 0..300 {
        client
            .ok(&format!("INSERT INTO one (k, c, v) VALUES (7, {c}, '{text}')"))
            .await;
    }
    assert_eq!(
        client
            .database
            .engine()
            .upkeep()
            .split_written(limits, &mut measured)
            .await
            .unwrap(),
        nothing
    );
    assert_eq!(client.parts("one").await.len(), 1);
}

#[tokio::test]
async fn a_trace_tells_how_many_partitions_were_read() {
    let client = Client::with_keyspace("memory:").await;
    client
        .ok("CREATE TABLE t (k int PRIMARY KEY) WITH helenus_partitions = 16")
        .await;
    let notes = |text: &'static str| {
        let params = QueryParams {
            trace: Some(uuid::Uuid::nil()),
            ..QueryParams::default()
        };
        let client = &client;
        async move { client.run(text, params).await.unwrap().notes }
    };
    assert_eq!(
        notes("SELECT * FROM t").await,
        [
            "Read 16 of 16 physical partitions",
            "Charged 36.80 request units: partitions visited 36.80, to 16 physical partitions"
        ]
    );
    assert_eq!(
        notes("SELECT * FROM t WHERE k = 1").await,
        [
            "Read 1 of 16 physical partitions",
            "Charged 1.00 request units: key lookup 1.00, to physical partition 4"
        ]
    );
    assert_eq!(
        notes("SELECT * FROM t WHERE token(k) > 0").await[0],
        "Read 8 of 16 physical partitions"
    );
}
