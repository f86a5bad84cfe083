//! Physical partitions in stores of their own: moved out and back while they are used, killed on the way, written to in one batch.

#![expect(clippy::unwrap_used, reason = "a test says no better what went wrong")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use crate::support::{Client, open_when_free};
use helenus_base::clock::Clock;
use helenus_cql::cql::Error;
use helenus_cql::cql::{Database, QueryParams, SessionState};
use helenus_storage::storage::{self as store, Durability};

impl Client {
    async fn stores(&self, table: &str) -> Vec<u32> {
        self.parts(table).await.iter().map(|part| part.store).collect()
    }

    async fn lift(&self, table: &str, id: u64) {
        self.ok(&format!("ALTER TABLE {table} WITH helenus_lift = {id}")).await;
    }

    async fn lower(&self, table: &str, id: u64) {
        self.ok(&format!("ALTER TABLE {table} WITH helenus_lower = {id}")).await;
    }

    /// What reads of all kinds show of the table `t`.
    async fn everything(&self) -> Vec<Vec<String>> {
        let mut shown = Vec::new();
        for text in [
            "SELECT * FROM t",
            "SELECT count(*) FROM t",
            "SELECT token(k), k, c, v, s, writetime(v), ttl(v) FROM t",
            "SELECT k, c FROM t WHERE v = 3",
            "SELECT DISTINCT k, s FROM t",
            "SELECT k, c, v FROM t WHERE k IN (1, 2, 3, 4, 5, 6, 7, 8, 9)",
            "SELECT k, c, v FROM t WHERE token(k) > 0 AND token(k) < 4611686018427387904",
            "SELECT * FROM counts",
        ] {
            shown.push(self.rows(text).await);
        }
        for k in 0..40 {
            shown.push(
                self.rows(&format!("SELECT c, v, s FROM t WHERE k = {k} AND c >= 1"))
                    .await,
            );
        }
        shown
    }
}

async fn open(url: &str, faults: Option<store_faults::Faults>) -> Result<Client, Error> {
    open_with(url, |store| store.faults = faults.map(|faults| faults.call())).await
}

async fn open_with(url: &str, set: impl FnOnce(&mut store::Options)) -> Result<Client, Error> {
    let clock = Clock::manual(1_700_000_000_000_000);
    let mut options = Client::options(url, clock.clone());
    set(&mut options.store);
    let mut client = Client::over(Database::open(options).await?, SessionState::default(), clock);
    client.session.keyspace = Some("ks".into());
    Ok(client)
}

/// Opens a database again whose last life may not have let go of its directory yet.
async fn reopen(url: &str) -> Client {
    reopen_with(url, |_| ()).await
}

async fn reopen_with(url: &str, set: impl Fn(&mut store::Options)) -> Client {
    open_when_free(async || open_with(url, &set).await).await
}

/// Four physical partitions with rows, static rows, deletions of all kinds, an index and a counter table of one partition.
async fn fill(client: &Client) {
    client
        .ok("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        .await;
    client
        .ok("CREATE TABLE t (k int, c int, v int, s text static, PRIMARY KEY (k, c)) WITH helenus_partitions = 4")
        .await;
    client
        .ok("CREATE TABLE counts (k int PRIMARY KEY, n counter) WITH helenus_partitions = 2")
        .await;
    client.ok("CREATE INDEX by_v ON t (v)").await;
    for k in 0..60 {
        for c in 0..4 {
            client
                .ok(&format!(
                    "INSERT INTO t (k, c, v, s) VALUES ({k}, {c}, {}, 's{k}')",
                    (k + c) % 7
                ))
                .await;
        }
        client.ok(&format!("UPDATE counts SET n = n + {k} WHERE k = {k}")).await;
        match k % 10 {
            1 => client.ok(&format!("DELETE FROM t WHERE k = {k} AND c = 2")).await,
            3 => client.ok(&format!("DELETE FROM t WHERE k = {k} AND c > 1")).await,
            5 => client.ok(&format!("DELETE FROM t WHERE k = {k}")).await,
            7 => {
                client
                    .ok(&format!("UPDATE t USING TTL 1000 SET v = 3 WHERE k = {k} AND c = 0"))
                    .await
            }
            _ => client.ok(&format!("DELETE v FROM t WHERE k = {k} AND c = 3")).await,
        };
    }
    client.built().await;
}

/// Eventually nothing of what was moved lies where it was: the figures add up.
async fn counted_exactly(client: &Client, rows: u64) {
    for _ in 0..2000 {
        let parts = client.parts("t").await;
        if parts.iter().map(|part| part.rows).sum::<u64>().abs_diff(rows) <= parts.len() as u64 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{:?}, {rows}", client.parts("t").await);
}

/// What was written just before is in no log yet where that is written later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_move_whatever_the_durability() {
    let directory = tempfile::tempdir().unwrap();
    for durability in [Durability::Os, Durability::Periodic(Duration::from_millis(100))] {
        for scheme in [
            "file",
            #[cfg(feature = "slate")]
            "slate+file",
        ] {
            let url = format!("{scheme}:{}/{scheme}-{durability}", directory.path().display());
            let client = open_with(&url, |store| store.durability = durability).await.unwrap();
            fill(&client).await;
            let before = client.everything().await;
            let id = client.parts("t").await[1].id;
            for k in 1000..1020 {
                client.ok(&format!("INSERT INTO t (k, c, v) VALUES ({k}, 1, 9)")).await;
            }
            client.lift("t", id).await;
            assert_eq!(client.stores("t").await, [0, 1, 0, 0], "{url}");
            for k in 1000..1020 {
                assert_eq!(
                    client.rows(&format!("SELECT v FROM t WHERE k = {k}")).await,
                    ["9"],
                    "{url}"
                );
                client.ok(&format!("DELETE FROM t WHERE k = {k}")).await;
            }
            client.lower("t", id).await;
            assert_eq!(client.everything().await, before, "{url}");
            client.indexes_agree().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(
    clippy::too_many_lines,
    reason = "one story: each step stands on the state that the one before left"
)]
async fn a_lifted_partition_keeps_everything() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display();
    for url in [
        "memory:".to_owned(),
        format!("file:{path}/a"),
        #[cfg(feature = "slate")]
        "slate+memory:".to_owned(),
        #[cfg(feature = "slate")]
        format!("slate+file:{path}/b"),
    ] {
        let client = open(&url, None).await.unwrap();
        fill(&client).await;
        let is_counted = !url.starts_with("slate");
        let rows: u64 = client.parts("t").await.iter().map(|part| part.rows).sum();
        let before = client.everything().await;
        let (_, state) = client.page("SELECT * FROM t", 7, None).await;
        let parts = client.parts("t").await;

        client.lift("t", parts[1].id).await;
        assert_eq!(client.stores("t").await, [0, 1, 0, 0], "{url}");
        assert_eq!(client.parts("t").await[1].epoch, parts[1].epoch + 1);
        assert_eq!(client.everything().await, before, "{url}");
        client.indexes_agree().await;
        client.lift("t", parts[3].id).await;
        client.lift("counts", client.parts("counts").await[0].id).await;
        assert_eq!(client.stores("t").await, [0, 1, 0, 2]);
        assert_eq!(client.everything().await, before, "{url}");
        let (rest, _) = client.page("SELECT * FROM t", 10_000, state).await;
        assert_eq!(rest, before[0][7..]);
        assert_eq!(client.pages("SELECT * FROM t", 17).await.concat(), before[0]);
        assert_eq!(client.clock.wall_micros(), 1_700_000_000_000_000);
        if is_counted {
            counted_exactly(&client, rows).await;
        }

        // Split in its store, and moved on from there.
        client
            .ok("ALTER TABLE t WITH helenus_split_at = -3000000000000000000")
            .await;
        assert_eq!(client.stores("t").await, [0, 1, 1, 0, 2]);
        assert_eq!(client.everything().await, before, "{url}");
        let half = client.parts("t").await[2].id;
        client.lift("t", half).await;
        assert_eq!(client.stores("t").await, [0, 1, 4, 0, 2]);
        assert_eq!(client.everything().await, before, "{url}");
        let told = client
            .refused(&format!("ALTER TABLE t WITH helenus_lift = {half}"))
            .await;
        assert_eq!(
            told,
            format!("Physical partition {half} has a store of its own already: 4")
        );
        let left = client.parts("t").await[1].id;
        let merge = format!("ALTER TABLE t WITH helenus_merge = {{'left': {left}, 'right': {half}}}");

        // Written to, conditionally too, and an index that is made now.
        for k in 0..60 {
            client
                .ok(&format!("UPDATE t SET v = {} WHERE k = {k} AND c = 1", k % 5))
                .await;
            client
                .ok(&format!("UPDATE t SET s = 'n{k}' WHERE k = {k} IF s != 'x'"))
                .await;
            client.ok(&format!("UPDATE counts SET n = n + 1 WHERE k = {k}")).await;
            if k % 9 == 0 {
                client.ok(&format!("DELETE FROM t WHERE k = {k} AND c >= 3")).await;
            }
        }
        client.ok("CREATE INDEX by_s ON t (s)").await;
        client.built().await;
        client.indexes_agree().await;
        assert_eq!(
            client
                .rows("SELECT c FROM t WHERE s = 'n12' AND v = 2 ALLOW FILTERING")
                .await
                .len(),
            1
        );
        let before = client.everything().await;

        // Back again.
        client.lower("t", half).await;
        client.lower("t", left).await;
        assert_eq!(client.stores("t").await, [0, 0, 0, 0, 2]);
        assert_eq!(client.everything().await, before, "{url}");
        client.ok(&merge).await;
        client.lift("t", client.parts("t").await[1].id).await;
        client.lower("t", client.parts("t").await[3].id).await;
        assert_eq!(client.stores("t").await, [0, 5, 0, 0]);
        assert_eq!(client.everything().await, before, "{url}");
        client.indexes_agree().await;
        client.database.engine().upkeep().sweep().await.unwrap();
        assert_eq!(client.everything().await, before, "{url}");

        // TRUNCATE keeps the ranges; DROP takes the stores along.
        client.ok("TRUNCATE t").await;
        assert!(client.rows("SELECT * FROM t").await.is_empty());
        assert_eq!(client.stores("t").await, [0, 5, 0, 0]);
        client.ok("INSERT INTO t (k, c, v) VALUES (1, 1, 1)").await;
        client.indexes_agree().await;
        client.ok("DROP KEYSPACE ks").await;
        client.database.close().await.unwrap();
        if let Some(path) = url.split_once(":/").map(|(_, path)| format!("/{path}/stores")) {
            drop(client);
            drop(reopen(&url).await);
            let left = std::fs::read_dir(path).map_or(0, |entries| entries.count());
            assert_eq!(left, 0, "{url}");
        }
    }
}

#[tokio::test]
async fn what_cannot_be_moved_is_told() {
    let mut client = Client::with_keyspace("memory:").await;
    client
        .ok("CREATE TABLE t (k int PRIMARY KEY, v int) WITH helenus_partitions = 12")
        .await;
    let refused = async |text: &str| client.refused(text).await;
    for (text, told) in [
        (
            "ALTER TABLE t WITH helenus_lift = 99",
            "There is no physical partition 99",
        ),
        (
            "ALTER TABLE t WITH helenus_lift = 'x'",
            "Invalid value x for 'helenus_lift': it is the id of a physical partition",
        ),
        (
            "ALTER TABLE t WITH helenus_lower = 1",
            "Physical partition 1 is in the main store already",
        ),
        (
            "ALTER TABLE t WITH helenus_lift = 1 AND comment = 'x'",
            "'helenus_split_at', 'helenus_merge', 'helenus_lift' and 'helenus_lower' cannot stand beside other options",
        ),
    ] {
        let said = refused(text).await;
        assert!(said.contains(told), "{text}: {said}");
    }
    for id in 0..8 {
        client.lift("t", id).await;
    }
    let said = refused("ALTER TABLE t WITH helenus_lift = 8").await;
    assert!(
        said.contains("There are 8 stores of lifted physical partitions already"),
        "{said}"
    );
    client.lower("t", 3).await;
    client.lift("t", 8).await;
    assert_eq!(client.stores("t").await, [1, 2, 3, 0, 5, 6, 7, 8, 9, 0, 0, 0]);
    client.session.keyspace = None;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(
    clippy::too_many_lines,
    reason = "one story: each step stands on the state that the one before left"
)]
async fn writers_go_on_while_partitions_move() {
    let directory = tempfile::tempdir().unwrap();
    for url in [
        "memory:".to_owned(),
        format!("file:{}", directory.path().display()),
        #[cfg(feature = "slate")]
        "slate+memory:".to_owned(),
    ] {
        let client = Arc::new(open(&url, None).await.unwrap());
        fill(&client).await;
        client
            .ok("CREATE TABLE w (k int, c int, v int, PRIMARY KEY (k, c)) WITH helenus_partitions = 4")
            .await;
        client.ok("CREATE INDEX w_by_v ON w (v)").await;
        client
            .ok("CREATE TABLE n (k int PRIMARY KEY, v int) WITH helenus_partitions = 4")
            .await;
        let stop = Arc::new(AtomicBool::new(false));
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let (client, stop) = (Arc::clone(&client), Arc::clone(&stop));
                tokio::spawn(async move {
                    let mut written = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let (k, c) = (written % 50, writer * 100_000 + written);
                        client.ok(&format!("INSERT INTO w (k, c, v) VALUES ({k}, {c}, {})", written % 3)).await;
                        client.ok(&format!("UPDATE counts SET n = n + 1 WHERE k = {}", 1000 + k)).await;
                        if written % 5 == 0 {
                            client
                                .ok(&format!(
                                    "BEGIN BATCH INSERT INTO w (k, c, v) VALUES ({}, {}, 9); INSERT INTO w (k, c, v) VALUES ({}, {}, 9); \
                                     APPLY BATCH",
                                    100 + k,
                                    c,
                                    200 + k,
                                    c
                                ))
                                .await;
                            client.ok(&format!("DELETE FROM w WHERE k = {k} AND c = {c}")).await;
                        }
                        // One number, counted up by conditions: nothing may be lost or done twice.
                        let key = written % 7;
                        drop(client.ok(&format!("INSERT INTO n (k, v) VALUES ({key}, 0) IF NOT EXISTS")).await);
                        loop {
                            let rows = client.rows(&format!("SELECT v FROM n WHERE k = {key}")).await;
                            let value: i64 = rows[0].parse().unwrap();
                            let text = format!("UPDATE n SET v = {} WHERE k = {key} IF v = {value}", value + 1);
                            if client.rows(&text).await[0].starts_with("true") {
                                break;
                            }
                        }
                        written += 1;
                    }
                    written
                })
            })
            .collect();
        let moves = 3;
        for _ in 0..moves {
            for table in ["w", "counts", "n"] {
                for part in client.parts(table).await.into_iter().take(2) {
                    // A build that is not done yet refuses.
                    client.built().await;
                    let seen: u64 = client.rows("SELECT count(*) FROM w").await[0].parse().unwrap();
                    client.lift(table, part.id).await;
                    let then: u64 = client.rows("SELECT count(*) FROM w").await[0].parse().unwrap();
                    assert!(then + 50 >= seen, "{seen} rows, then {then}");
                }
            }
            for table in ["w", "counts", "n"] {
                for part in client.parts(table).await {
                    if part.store != 0 {
                        client.lower(table, part.id).await;
                    }
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
        let mut written = Vec::new();
        for writer in writers {
            written.push(writer.await.unwrap());
        }
        let batches: i32 = written.iter().map(|written| (written + 4) / 5).sum();
        let all: i32 = written.iter().sum();
        let count = async |text: &str| client.rows(text).await[0].parse::<i32>().unwrap();
        assert_eq!(
            count("SELECT count(*) FROM w").await,
            all + batches,
            "{url}: {written:?}"
        );
        assert_eq!(count("SELECT count(*) FROM w WHERE v = 9").await, batches * 2, "{url}");
        assert_eq!(count("SELECT sum(v) FROM n").await, all, "{url}");
        let counted = client.rows("SELECT k, n FROM counts").await;
        let counted = counted.iter().filter_map(|row| row.split_once(' '));
        let counted = counted.filter(|(k, _)| k.parse::<i32>().unwrap() >= 1000);
        let sum: i32 = counted.map(|(_, n)| n.parse::<i32>().unwrap()).sum();
        assert_eq!(sum, all, "{url}");
        client.indexes_agree().await;
        client.database.close().await.unwrap();
    }
}

mod store_faults {
    use super::*;

    /// A medium that takes so many groups and then none.
    #[derive(Clone)]
    pub(super) struct Faults(pub(super) Arc<AtomicI64>);

    impl Faults {
        pub(super) fn none_yet() -> Self {
            Self(Arc::new(AtomicI64::new(i64::MAX)))
        }

        pub(super) fn after(&self, groups: i64) {
            self.0.store(groups, Ordering::SeqCst);
        }

        pub(super) fn call(&self) -> store_fn::Call {
            let left = Arc::clone(&self.0);
            Arc::new(move |_| {
                let left = left.fetch_sub(1, Ordering::SeqCst);
                (left <= 0).then(|| std::io::Error::other("the medium is dead"))
            })
        }
    }
}

mod store_fn {
    use super::*;

    /// What a store asks before it writes.
    pub(super) type Call = Arc<dyn Fn(store::FaultPoint) -> Option<std::io::Error> + Send + Sync>;
}

fn store_folders(url: &str) -> usize {
    let path = url
        .split_once(':')
        .map(|(_, path)| Path::new(path).join("stores"))
        .unwrap();
    std::fs::read_dir(path).map_or(0, |entries| entries.count())
}

/// Each of them began before the one before it was done, and goes by the list of then no longer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn moves_that_wait_for_each_other_come_to_an_end() {
    let client = Arc::new(open("memory:", None).await.unwrap());
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    client
        .ok(&format!("CREATE KEYSPACE ks WITH replication = {replication}"))
        .await;
    client.ok("CREATE TABLE t (k int PRIMARY KEY, v int)").await;
    for k in 0..50 {
        client.ok(&format!("INSERT INTO t (k, v) VALUES ({k}, {k})")).await;
    }
    let moves = (0..8).map(|number| {
        let client = Arc::clone(&client);
        tokio::spawn(async move {
            let action = if number % 2 == 0 { "lift" } else { "lower" };
            let text = format!("ALTER TABLE t WITH helenus_{action} = 0");
            // What is where it should be is refused.
            drop(client.run(&text, QueryParams::default()).await);
        })
    });
    let moves: Vec<_> = moves.collect();
    for one in moves {
        tokio::time::timeout(Duration::from_secs(60), one)
            .await
            .unwrap()
            .unwrap();
    }
    assert_eq!(client.rows("SELECT count(*) FROM t").await, ["50"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_at_any_step_leaves_the_partition_in_one_place() {
    for scheme in [
        "file:",
        #[cfg(feature = "slate")]
        "slate+file:",
    ] {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("{scheme}{}", directory.path().display());
        let client = open(&url, None).await.unwrap();
        fill(&client).await;
        let before = client.everything().await;
        client.database.close().await.unwrap();
        drop(client);
        let (mut lifted, mut stayed) = (0, 0);
        for groups in 0..40 {
            let faults = store_faults::Faults::none_yet();
            let client = open(&url, Some(faults.clone())).await.unwrap();
            client.built().await;
            let part = client.parts("t").await[2].clone();
            let text = match part.store {
                0 => format!("ALTER TABLE t WITH helenus_lift = {}", part.id),
                _ => format!("ALTER TABLE t WITH helenus_lower = {}", part.id),
            };
            faults.after(groups);
            let moved = client.run(&text, QueryParams::default()).await;
            // The end of the process: nothing is written any more.
            faults.after(0);
            drop(client);
            tokio::time::sleep(Duration::from_millis(20)).await;
            let client = reopen(&url).await;
            assert_eq!(client.everything().await, before, "{url} after {groups}");
            client.indexes_agree().await;
            let now = client.parts("t").await[2].store;
            if moved.is_ok() {
                assert_ne!(now == 0, part.store == 0, "{url} after {groups}");
                lifted += 1;
            } else {
                stayed += 1;
            }
            client.database.close().await.unwrap();
            drop(client);
            assert!(store_folders(&url) <= 1, "{url} after {groups}");
            if lifted > 3 && stayed > 3 {
                break;
            }
        }
        assert!(lifted > 1 && stayed > 1, "{url}: {lifted} {stayed}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_logged_batch_over_two_stores_is_whole_after_a_kill() {
    logged_batches_are_whole_after_a_kill(0).await;
}

/// The records of the batches lie in the data stores.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_logged_batch_over_data_stores_is_whole_after_a_kill() {
    logged_batches_are_whole_after_a_kill(3).await;
}

/// Kills the server while it writes a batch over several stores: data stores, or else those of lifted partitions.
async fn logged_batches_are_whole_after_a_kill(data_stores: usize) {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("file:{}", directory.path().display());
    let set = |store: &mut store::Options| store.data_stores = Some(data_stores);
    let client = open_with(&url, set).await.unwrap();
    fill(&client).await;
    if data_stores == 0 {
        let parts: Vec<_> = client.parts("t").await.iter().map(|part| part.id).collect();
        for part in parts.into_iter().skip(1).take(2) {
            client.lift("t", part).await;
        }
    }
    let stores: std::collections::BTreeSet<u32> = client.stores("t").await.into_iter().collect();
    assert_eq!((stores.len(), stores.contains(&0)), (3, data_stores == 0));
    client.database.close().await.unwrap();
    drop(client);
    let (mut whole, mut nothing) = (0, 0);
    for groups in 0..12 {
        let faults = store_faults::Faults::none_yet();
        let with_faults = |store: &mut store::Options| {
            set(store);
            store.faults = Some(faults.call());
        };
        let client = open_with(&url, with_faults).await.unwrap();
        // What is removed behind is done with when this is.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let c = 1000 + groups;
        // Keys of which nothing was deleted: the clock begins anew with each life.
        let members: Vec<String> = (100..130)
            .map(|k| format!("INSERT INTO t (k, c, v) VALUES ({k}, {c}, 1)"))
            .collect();
        faults.after(groups);
        let text = format!("BEGIN BATCH {}; APPLY BATCH", members.join("; "));
        let answer = client.run(&text, QueryParams::default()).await;
        faults.after(0);
        drop(client);
        tokio::time::sleep(Duration::from_millis(20)).await;
        let client = reopen_with(&url, set).await;
        let keys = client
            .rows(&format!("SELECT k FROM t WHERE c = {c} ALLOW FILTERING"))
            .await;
        assert!(keys.is_empty() || keys.len() == 30, "after {groups}: {keys:?}");
        assert!(answer.is_err() || keys.len() == 30, "after {groups}");
        if keys.is_empty() {
            nothing += 1
        } else {
            whole += 1
        }
        client.indexes_agree().await;
        client.database.close().await.unwrap();
    }
    assert!(nothing > 0 && whole > 0, "{nothing} {whole}");
}

#[tokio::test]
async fn a_store_that_is_gone_is_missed() {
    let directory = tempfile::tempdir().unwrap();
    for scheme in [
        "file:",
        #[cfg(feature = "slate")]
        "slate+file:",
    ] {
        let path = directory.path().join(scheme.trim_end_matches(':'));
        let url = format!("{scheme}{}", path.display());
        let client = open(&url, None).await.unwrap();
        client
            .ok("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
            .await;
        client.ok("CREATE TABLE t (k int PRIMARY KEY, v int)").await;
        client.lift("t", 0).await;
        client.ok("INSERT INTO t (k, v) VALUES (1, 2)").await;
        client.database.close().await.unwrap();
        drop(client);
        std::fs::remove_dir_all(path.join("stores")).unwrap();
        let told = open(&url, None).await.err().unwrap().to_string();
        // SlateDB's objects are missed one by one, by what was acknowledged of them.
        let missed = [
            "the catalog names this store and it is not there",
            "it is gone, and was acknowledged",
        ];
        assert!(missed.iter().any(|missed| told.contains(missed)), "{told}");
        assert!(told.contains("stores/1") || told.contains("store 1"), "{told}");
    }
}

/// Neighbours of two stores are merged: the right one goes to the store of the left one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_of_two_stores_are_merged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display();
    for (url, data_stores, at_first, merged) in [
        ("memory:".to_owned(), 0, [0, 1, 2, 0], [vec![0, 2, 0], vec![0, 2]]),
        (format!("file:{path}/a"), 0, [0, 1, 2, 0], [vec![0, 2, 0], vec![0, 2]]),
        (format!("file:{path}/d"), 3, [1, 4, 5, 3], [vec![1, 5, 3], vec![1, 5]]),
        #[cfg(feature = "slate")]
        (
            format!("slate+file:{path}/b"),
            3,
            [1, 4, 5, 3],
            [vec![1, 5, 3], vec![1, 5]],
        ),
    ] {
        let client = open_with(&url, |store| store.data_stores = Some(data_stores))
            .await
            .unwrap();
        fill(&client).await;
        let ids: Vec<u64> = client.parts("t").await.iter().map(|part| part.id).collect();
        client.lift("t", ids[1]).await;
        client.lift("t", ids[2]).await;
        assert_eq!(client.stores("t").await, at_first, "{url}");
        let before = client.everything().await;
        let merge =
            |left: u64, right: u64| format!("ALTER TABLE t WITH helenus_merge = {{'left': {left}, 'right': {right}}}");
        // No neighbours, or none in this order: nothing is moved.
        for (left, right) in [(0, 2), (2, 1), (1, 99)] {
            let left = ids[left];
            client
                .refused(&merge(left, ids.get(right).copied().unwrap_or(99)))
                .await;
        }
        assert_eq!(client.stores("t").await, at_first, "{url}");

        // A lifted one into a home, then a home into a lifted one, then two lifted ones into one.
        client.ok(&merge(ids[0], ids[1])).await;
        assert_eq!(client.stores("t").await, merged[0], "{url}");
        assert_eq!(client.everything().await, before, "{url}");
        client.ok(&merge(ids[2], ids[3])).await;
        assert_eq!(client.stores("t").await, merged[1], "{url}");
        assert_eq!(client.everything().await, before, "{url}");
        client.indexes_agree().await;
        let parts = client.parts("t").await;
        client.lift("t", parts[0].id).await;
        assert_eq!(client.everything().await, before, "{url}");
        client.ok(&merge(parts[0].id, parts[1].id)).await;
        let whole = client.parts("t").await;
        assert_eq!(whole.len(), 1, "{url}");
        assert_eq!(client.everything().await, before, "{url}");
        client.lower("t", whole[0].id).await;
        assert!(client.stores("t").await[0] as usize <= data_stores, "{url}");
        assert_eq!(client.everything().await, before, "{url}");
        client.indexes_agree().await;
        if url == "memory:" {
            continue;
        }
        client.database.close().await.unwrap();
        drop(client);
        let client = reopen(&url).await;
        assert_eq!(client.everything().await, before, "{url}");
        client.indexes_agree().await;
    }
}

/// Tables lie in data stores from their first row on; moves, TRUNCATE, DROP and restarts keep these stores.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_are_spread_over_data_stores() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display();
    for url in [
        "memory:".to_owned(),
        format!("file:{path}/a"),
        #[cfg(feature = "slate")]
        format!("slate+file:{path}/b"),
    ] {
        let client = open_with(&url, |store| store.data_stores = Some(3)).await.unwrap();
        fill(&client).await;
        assert_eq!(client.stores("t").await, [1, 1, 2, 3], "{url}");
        client.ok("CREATE TABLE plain (k int PRIMARY KEY, v int)").await;
        assert_eq!(client.stores("plain").await, [1, 2, 3], "{url}");
        let mut first = std::collections::BTreeSet::new();
        for name in ["one", "two", "three"] {
            client
                .ok(&format!(
                    "CREATE TABLE {name} (k int PRIMARY KEY) WITH helenus_partitions = 1"
                ))
                .await;
            first.extend(client.stores(name).await);
        }
        assert_eq!(first, [1, 2, 3].into(), "{url}: small tables begin at different stores");
        let mut batch = "BEGIN BATCH ".to_owned();
        for k in 0..30 {
            batch += &format!("INSERT INTO plain (k, v) VALUES ({k}, {k}); ");
        }
        client.ok(&(batch + "APPLY BATCH")).await;
        assert_eq!(client.rows("SELECT count(*) FROM plain").await, ["30"], "{url}");

        let before = client.everything().await;
        let id = client.parts("t").await[1].id;
        client.lift("t", id).await;
        assert_eq!(client.stores("t").await, [1, 4, 2, 3], "{url}");
        assert_eq!(client.everything().await, before, "{url}");
        client.lower("t", id).await;
        assert_eq!(client.stores("t").await, [1, 1, 2, 3], "{url}");
        assert_eq!(client.everything().await, before, "{url}");
        let refused = client
            .refused(&format!("ALTER TABLE t WITH helenus_lower = {id}"))
            .await;
        assert!(refused.contains("is in store 1 already"), "{refused}");
        client.indexes_agree().await;

        client.ok("TRUNCATE plain").await;
        assert_eq!(client.stores("plain").await, [1, 2, 3], "{url}");
        for name in ["plain", "one", "two", "three"] {
            client.ok(&format!("DROP TABLE {name}")).await;
        }
        client.ok("CREATE TABLE plain (k int PRIMARY KEY, v int)").await;
        assert_eq!(client.stores("plain").await, [1, 2, 3], "{url}");
        client.ok("INSERT INTO plain (k, v) VALUES (1, 7)").await;
        if url == "memory:" {
            continue;
        }
        client.database.close().await.unwrap();
        drop(client);
        // They stay, whatever the setting says afterwards.
        let client = reopen(&url).await;
        assert_eq!(client.stores("t").await, [1, 1, 2, 3], "{url}");
        assert_eq!(client.everything().await, before, "{url}");
        assert_eq!(client.rows("SELECT v FROM plain WHERE k = 1").await, ["7"], "{url}");
        client.ok("CREATE TABLE later (k int PRIMARY KEY)").await;
        assert_eq!(client.stores("later").await, [1, 2, 3], "{url}");
    }
}
