//! Backups: what is restored elsewhere is what was there at one moment, to the last timestamp.

#![expect(clippy::unwrap_used, reason = "a test says no better what went wrong")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use crate::support::{Client, open_when_free};
use helenus::server::operator::copying::{Unread, export, import};
use helenus::server::operator::text::Form;
use helenus_base::clock::Clock;
use helenus_base::mutant::{self, Mutant};
use helenus_cql::cql::{Database, QueryParams, SessionState};
use helenus_engine::engine::{BackupError, Error, OpeningFailure, What};
use helenus_storage::backup::{Kind, Reader, Scope, entries};
use helenus_storage::storage::{self as store, Restoring};

const NOW_MICROS: i64 = 1_700_000_000_000_000;

/// What a backup holds: each table's entries, with its name and where its physical partitions begin.
type Dump = BTreeMap<(String, String), (Vec<i64>, Vec<(u8, Vec<u8>, Vec<u8>)>)>;

fn dump(backup: &Path) -> Dump {
    let reader = Reader::open(backup).unwrap();
    reader.verify().unwrap();
    let tables = reader.manifest().tables.iter().map(|table| {
        let (mut found, mut blocks) = (Vec::new(), reader.blocks(table));
        while let Some(payload) = blocks.next_block().unwrap() {
            for entry in entries(&payload) {
                let entry = entry.unwrap();
                assert!(matches!(entry.kind, Kind::Row | Kind::Deletion));
                found.push((entry.kind as u8, entry.key.to_vec(), entry.value.to_vec()));
            }
        }
        assert_eq!(found.len() as u64, table.rows + table.deletions);
        let name = (table.keyspace.clone(), table.table.clone());
        (name, (table.splits.clone(), found))
    });
    tables.collect()
}

/// Restores into a directory that is not there yet, as the program does.
async fn restore_anew(url: &str, from: &Path, clock: Clock) -> Client {
    let mut options = Client::options(url, clock.clone());
    let restoring = options.url.directory().map(|path| Restoring::begin(path).unwrap());
    options.store.is_restored_into = true;
    let database = Database::open(options).await.unwrap();
    database.engine().backups().restore(from, &What::All).await.unwrap();
    if let Some(restoring) = restoring {
        database.close().await.unwrap();
        drop(database);
        restoring.end().unwrap();
        return reopen(url, clock).await;
    }
    Client::over(database, SessionState::default(), clock)
}

/// Opens a database whose last life may not have let go of its directory yet.
async fn reopen(url: &str, clock: Clock) -> Client {
    let database = open_when_free(async || Database::open(Client::options(url, clock.clone())).await).await;
    Client::over(database, SessionState::default(), clock)
}

const KEYSPACE: &str = "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";

/// Tables of all types, and statements of all kinds over them.
async fn fill(client: &Client, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    for text in [
        KEYSPACE,
        "CREATE TYPE ks.place (street text, numbers frozen<list<int>>)",
        "CREATE TABLE ks.wide (p int, q text, c int, d timeuuid, s text static, st set<int> static, a ascii, b bigint, bl blob, \
         bo boolean, da date, de decimal, do double, du duration, fl float, i inet, sm smallint, ti time, ts timestamp, tiny tinyint, \
         u uuid, va varint, tu tuple<int, text>, ve vector<float, 3>, l list<text>, se set<int>, m map<text, int>, fr frozen<map<int, \
         text>>, pl place, fpl frozen<place>, PRIMARY KEY ((p, q), c, d)) WITH helenus_partitions = 4 AND comment = 'a ''wide'' one' \
         AND CLUSTERING ORDER BY (c DESC, d ASC)",
        "CREATE TABLE ks.counts (k int PRIMARY KEY, n counter, o counter)",
        "CREATE TABLE ks.empty (k int PRIMARY KEY, v int) WITH default_time_to_live = 1000 AND gc_grace_seconds = 7",
        "CREATE INDEX by_b ON ks.wide (b)",
        "CREATE INDEX by_keys ON ks.wide (keys(m))",
        "CREATE TABLE ks.dropping (k int PRIMARY KEY, v int, gone int)",
        "INSERT INTO ks.dropping (k, v, gone) VALUES (1, 2, 3)",
        "ALTER TABLE ks.dropping DROP gone",
        "ALTER TABLE ks.dropping ADD gone int",
        "CREATE TABLE ks.base (k int, c int, v int, PRIMARY KEY (k, c))",
        "CREATE KEYSPACE \"OtherOne\" WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1} AND durable_writes = false",
        "CREATE TABLE \"OtherOne\".\"T\" (k text PRIMARY KEY, v text)",
        "INSERT INTO \"OtherOne\".\"T\" (k, v) VALUES ('k', '')",
    ] {
        client.ok(text).await;
    }
    for _ in 0..random.u32(40..120) {
        let text = statement(&mut random);
        if let Err(error) = client.run(&text, QueryParams::default()).await {
            panic!("{text}: {error}");
        }
        client.clock.advance(Duration::from_millis(random.u64(0..400)));
    }
}

fn statement(random: &mut fastrand::Rng) -> String {
    let (p, q, c) = (random.i32(0..6), random.i32(0..3), random.i32(-2..3));
    let key = format!("p = {p} AND q = 'q{q}'");
    let row = format!("{key} AND c = {c} AND d = 50554d6e-29bb-11e5-b345-feff819cdc9f");
    let using = match random.u32(0..5) {
        0 => format!("USING TTL {}", random.u32(1..40)),
        1 => format!("USING TIMESTAMP {}", NOW_MICROS + random.i64(-9..9)),
        2 => format!("USING TIMESTAMP {} AND TTL {}", NOW_MICROS, random.u32(1..9)),
        _ => String::new(),
    };
    let n = random.i32(..);
    match random.u32(0..14) {
        0..=3 => format!(
            "INSERT INTO ks.wide (p, q, c, d, a, b, bl, bo, da, de, do, du, fl, i, sm, ti, ts, tiny, u, va, tu, ve, l, se, m, fr, pl, fpl) \
             VALUES ({p}, 'q{q}', {c}, 50554d6e-29bb-11e5-b345-feff819cdc9f, 'a', {n}, 0x00ff, true, '2024-02-29', -1.50, NaN, 1mo2d3h, \
             -0.0, '::1', -3, '01:02:03.000000004', '2024-01-01', 7, 50554d6e-29bb-11e5-b345-feff819cdc9f, 123456789012345678901234567890, \
             ({n}, null), [1.5, -2, 3], ['x', '', 'x'], {{{c}, {p}}}, {{'a': 1, 'b': {c}}}, {{1: 'o'}}, {{street: 's', numbers: [1]}}, \
             {{street: null, numbers: null}}) {using}"
        ),
        4 => format!("INSERT INTO ks.wide (p, q, s, st) VALUES ({p}, 'q{q}', 's{n}', {{1, {c}}}) {using}"),
        5 => format!("UPDATE ks.wide SET l = l + ['z{c}'], se = se - {{{p}}}, m['k{c}'] = {n} WHERE {row}"),
        6 => format!("UPDATE ks.wide {using} SET b = {n}, bl = null, pl.street = 't' WHERE {row}"),
        7 => format!("DELETE FROM ks.wide WHERE {row}"),
        8 => format!("DELETE a, m['a'], s FROM ks.wide WHERE {row}"),
        9 => format!("DELETE FROM ks.wide WHERE {key} AND c > {c}"),
        10 => format!("DELETE FROM ks.wide WHERE {key}"),
        11 => format!(
            "UPDATE ks.counts SET n = n + {}, o = o - 1 WHERE k = {p}",
            random.i32(-5..9)
        ),
        12 => format!("DELETE n FROM ks.counts WHERE k = {p}"),
        _ => format!("INSERT INTO ks.base (k, c, v) VALUES ({p}, {c}, {n})"),
    }
}

fn place_url(folder: &Path, place: usize) -> String {
    let path = |name: &str| folder.join(name).display().to_string();
    match place % 3 {
        0 => format!("file:{}", path("f")),
        1 => format!("slate+file:{}", path("s")),
        _ => "memory:".to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_row_comes_back_byte_for_byte_on_every_engine() {
    for seed in 0..6 {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let place = usize::try_from(seed % 3).unwrap();
        let url = place_url(folder.path(), place);
        let client = Client::open(&url).await;
        fill(&client, seed).await;
        if place != 2 {
            client.ok("ALTER TABLE ks.wide WITH helenus_lift = 2").await;
        }
        let made = client
            .database
            .engine()
            .backups()
            .write(&path("b"), &Scope::Whole)
            .await
            .unwrap();
        assert_eq!(made.manifest.tables.len(), 6);
        let before = dump(&path("b"));
        let text = client.rows("DESCRIBE FULL SCHEMA").await;
        let shown = client.rows("SELECT JSON * FROM ks.wide").await;
        client.database.close().await.unwrap();

        let elsewhere = tempfile::tempdir().unwrap();
        let other = place_url(elsewhere.path(), place + 1);
        let restored = restore_anew(&other, &path("b"), client.clock.clone()).await;
        restored
            .database
            .engine()
            .backups()
            .write(&path("again"), &Scope::Whole)
            .await
            .unwrap();
        assert_eq!(dump(&path("again")), before, "seed {seed}");
        assert_eq!(restored.rows("DESCRIBE FULL SCHEMA").await, text);
        assert_eq!(restored.rows("SELECT JSON * FROM ks.wide").await, shown);
        restored.built().await;
        restored.indexes_agree().await;
        // A later write stands above all that was restored.
        restored.ok("UPDATE ks.base SET v = 77 WHERE k = 0 AND c = 0").await;
        assert_eq!(
            restored.rows("SELECT v FROM ks.base WHERE k = 0 AND c = 0").await.len(),
            1
        );
        assert!(restored.rows("SELECT v FROM ks.base WHERE k = 0 AND c = 0").await[0].contains("77"));
        restored.database.close().await.unwrap();
    }
}

/// Writers that write in an order which a backup must show, each with a row of its own in each table.
struct Writers {
    database: Arc<Database>,
    stop: Arc<AtomicBool>,
    rounds: Arc<AtomicI64>,
}

const WRITERS: i64 = 6;

async fn ok(database: &Database, text: &str) {
    let session = SessionState::default();
    if let Err(error) = database.query(&session, text, &QueryParams::default()).await {
        panic!("{text}: {error}");
    }
}

impl Writers {
    fn start(database: &Arc<Database>) -> (Self, Vec<tokio::task::JoinHandle<()>>) {
        let writers = Self {
            database: Arc::clone(database),
            stop: Arc::default(),
            rounds: Arc::default(),
        };
        let tasks = (0..WRITERS).map(|w| {
            let (database, stop, rounds) = (Arc::clone(database), Arc::clone(&writers.stop), Arc::clone(&writers.rounds));
            tokio::spawn(async move {
                let mut n = 0;
                while !stop.load(Ordering::SeqCst) {
                    n += 1;
                    let before = if n == 1 { "null".to_owned() } else { (n - 1).to_string() };
                    let there = w + 1000;
                    for text in [
                        format!("BEGIN BATCH UPDATE ks.a SET n = {n} WHERE k = {w}; UPDATE ks.b SET n = {n} WHERE k = {there}; APPLY BATCH"),
                        format!("INSERT INTO ks.log (w, n) VALUES ({w}, {n})"),
                        format!("UPDATE ks.a SET m = {n} WHERE k = {w} IF m = {before}"),
                        format!("UPDATE ks.counts SET n = n + 1 WHERE k = {w}"),
                    ] {
                        ok(&database, &text).await;
                    }
                    rounds.fetch_add(1, Ordering::SeqCst);
                }
            })
        });
        let tasks = tasks.collect();
        (writers, tasks)
    }

    async fn until(&self, rounds: i64) {
        while self.rounds.load(Ordering::SeqCst) < rounds {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Whether a backup shows one moment of the writers, who write each round in this order: both rows of a logged batch, a row of the log,
/// a condition, a counter. What is wrong where it does not.
async fn one_moment(backup: &Path) -> Result<(), String> {
    let restored = restore_anew("memory:", backup, Clock::manual(NOW_MICROS)).await;
    for w in 0..WRITERS {
        let number = |rows: Vec<String>| rows.first().and_then(|row| row.parse::<i64>().ok()).unwrap_or(0);
        let a = number(restored.rows(&format!("SELECT n FROM ks.a WHERE k = {w}")).await);
        let b = number(
            restored
                .rows(&format!("SELECT n FROM ks.b WHERE k = {}", w + 1000))
                .await,
        );
        if a != b {
            return Err(format!("half of a batch: {a}, {b}"));
        }
        let log = restored
            .rows(&format!("SELECT n FROM ks.log WHERE w = {w} ALLOW FILTERING"))
            .await;
        let log: BTreeSet<i64> = log.iter().map(|row| row.parse().unwrap()).collect();
        let last = log.last().copied().unwrap_or(0);
        if log != (1..=last).collect() {
            return Err(format!("the log to {last} has holes"));
        }
        let m = number(restored.rows(&format!("SELECT m FROM ks.a WHERE k = {w}")).await);
        let n = number(restored.rows(&format!("SELECT n FROM ks.counts WHERE k = {w}")).await);
        if !(a >= last && last >= m && m >= n && n >= a - 1) {
            return Err(format!("rounds out of order: {a}, {last}, {m}, {n}"));
        }
    }
    Ok(())
}

/// Tables in several stores.
async fn tables_of_writers(client: &Client) {
    for text in [
        KEYSPACE,
        "CREATE TABLE ks.a (k bigint PRIMARY KEY, n bigint, m bigint) WITH helenus_partitions = 4",
        "CREATE TABLE ks.b (k bigint PRIMARY KEY, n bigint) WITH helenus_partitions = 2",
        "CREATE TABLE ks.log (w bigint, n bigint, PRIMARY KEY ((w, n))) WITH helenus_partitions = 4",
        "CREATE TABLE ks.counts (k bigint PRIMARY KEY, n counter) WITH helenus_partitions = 2",
        "ALTER TABLE ks.a WITH helenus_lift = 1",
        "ALTER TABLE ks.log WITH helenus_lift = 2",
        "ALTER TABLE ks.counts WITH helenus_lift = 1",
    ] {
        client.ok(text).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn backups_under_load_with_splits_and_moves_show_one_moment() {
    for place in 0..2 {
        let folder = tempfile::tempdir().unwrap();
        let client = Client::open_at(&place_url(folder.path(), place), Clock::system()).await;
        tables_of_writers(&client).await;
        let Client { database, .. } = client;
        let database = Arc::new(database);
        let (writers, tasks) = Writers::start(&database);
        let moving = tokio::spawn({
            let (database, stop) = (Arc::clone(&database), Arc::clone(&writers.stop));
            async move {
                let mut random = fastrand::Rng::with_seed(3);
                while !stop.load(Ordering::SeqCst) {
                    let table = ["a", "b", "log", "counts"][random.usize(0..4)];
                    let id = random.u32(0..9);
                    let change = match random.u32(0..5) {
                        0 => format!("helenus_split_at = {}", random.i64(..)),
                        1 => format!("helenus_merge = {{'left': {id}, 'right': {}}}", id + 1),
                        2 => format!("helenus_lower = {id}"),
                        _ => format!("helenus_lift = {id}"),
                    };
                    let text = format!("ALTER TABLE ks.{table} WITH {change}");
                    // Many are no partitions of the table.
                    drop(
                        database
                            .query(&SessionState::default(), &text, &QueryParams::default())
                            .await,
                    );
                }
            }
        });
        for number in 1..=6_i64 {
            writers.until(number * 40).await;
            let backup = folder.path().join(format!("b{number}"));
            let made = writers
                .database
                .engine()
                .backups()
                .write(&backup, &Scope::Whole)
                .await
                .unwrap();
            assert_eq!(one_moment(&backup).await, Ok(()));
            // A busy machine takes long; what is usual, `compat backup` tells.
            assert!(made.held < Duration::from_secs(60));
        }
        writers.stop.store(true, Ordering::SeqCst);
        for task in tasks {
            task.await.unwrap();
        }
        moving.await.unwrap();
    }
}

#[tokio::test]
async fn snapshots_taken_while_writes_go_on_show_no_moment() {
    let folder = tempfile::tempdir().unwrap();
    let client = Client::open_at(&place_url(folder.path(), 0), Clock::system()).await;
    tables_of_writers(&client).await;
    let (writers, tasks) = Writers::start(&client.database);
    let mut wrong = Vec::new();
    for number in 1..=40_i64 {
        writers.until(number * 5).await;
        let backup = folder.path().join(format!("b{number}"));
        mutant::set(Some(Mutant::SnapshotWithoutLatches));
        writers
            .database
            .engine()
            .backups()
            .write(&backup, &Scope::Whole)
            .await
            .unwrap();
        mutant::set(None);
        wrong.extend(one_moment(&backup).await.err());
        if !wrong.is_empty() {
            break;
        }
    }
    writers.stop.store(true, Ordering::SeqCst);
    for task in tasks {
        task.await.unwrap();
    }
    assert!(!wrong.is_empty(), "the checks saw no difference in 40 backups");
}

#[tokio::test]
async fn a_logged_batch_on_its_way_is_in_the_backup_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let client = Client::open(&place_url(folder.path(), 0)).await;
    client.ok(KEYSPACE).await;
    client.ok("CREATE TABLE ks.t (k int PRIMARY KEY, v int)").await;
    client.ok("INSERT INTO ks.t (k, v) VALUES (1, 1)").await;
    client.clock.advance(Duration::from_secs(1));
    client.ok("UPDATE ks.t SET v = 2 WHERE k = 1").await;
    client.ok("DELETE FROM ks.t WHERE k = 7").await;
    let before = folder.path().join("before");
    client
        .database
        .engine()
        .backups()
        .write(&before, &Scope::Whole)
        .await
        .unwrap();
    client.ok("TRUNCATE ks.t").await;
    client
        .ok("INSERT INTO ks.t (k, v) VALUES (1, 1) USING TIMESTAMP 5")
        .await;
    let schema = client.database.engine().schema();
    let table = schema.table("ks", "t").unwrap().storage_id;
    let url = place_url(folder.path(), 0);
    client.database.close().await.unwrap();
    drop(client);
    // What the batch says is what the rows of the other backup are.
    let mut said = store::Batch::new();
    for (kind, key, value) in &dump(&before)[&("ks".to_owned(), "t".to_owned())].1 {
        let space = if *kind == 1 {
            store::Space::Rows
        } else {
            store::Space::Deletions
        };
        said.merge(space, [&table.to_be_bytes()[..], key].concat(), value.clone().into());
    }
    let mut record = Vec::new();
    said.encode_merges(&mut record);
    let mut batch = store::Batch::new();
    batch.put(store::Space::Catalog, [b"!batch".as_slice(), &[0; 8]].concat(), record);
    let options = store::Options::default();
    let of_store = url.parse().unwrap();
    let main = store::Store::open(&of_store, &options, Clock::manual(NOW_MICROS))
        .await
        .unwrap();
    main.commit(batch).await.unwrap();
    main.close().await.unwrap();
    drop(main);

    mutant::set(Some(Mutant::ForgetBatchLog));
    let client = reopen(&url, Clock::manual(NOW_MICROS)).await;
    mutant::set(None);
    assert_eq!(client.rows("SELECT v FROM ks.t").await, ["1"]);
    let backup = folder.path().join("b");
    let made = client
        .database
        .engine()
        .backups()
        .write(&backup, &Scope::Whole)
        .await
        .unwrap();
    assert_eq!((made.manifest.tables[0].rows, made.manifest.tables[0].late), (1, 2));
    let restored = restore_anew("memory:", &backup, Clock::manual(NOW_MICROS)).await;
    assert_eq!(restored.rows("SELECT v FROM ks.t").await, ["2"]);
}

fn keyspace(keyspace: &str, to: &str) -> What {
    What::Keyspace {
        keyspace: keyspace.to_owned(),
        to: to.to_owned(),
    }
}

fn table(from: &str, to: &str) -> What {
    let place = |name: &str| {
        let (keyspace, table) = name.split_once('.').unwrap();
        (keyspace.to_owned(), table.to_owned())
    };
    What::Table {
        from: place(from),
        to: place(to),
    }
}

#[tokio::test(flavor = "multi_thread")]
#[expect(
    clippy::too_many_lines,
    reason = "one story: each step stands on the state that the one before left"
)]
async fn keyspaces_and_tables_come_back_under_other_names_beside_the_old_ones() {
    let folder = tempfile::tempdir().unwrap();
    let client = Client::open(&place_url(folder.path(), 0)).await;
    fill(&client, 11).await;
    let path = |name: &str| folder.path().join(name);
    client
        .database
        .engine()
        .backups()
        .write(&path("b"), &Scope::Whole)
        .await
        .unwrap();
    let shown = client.rows("SELECT JSON * FROM ks.wide").await;
    client
        .database
        .engine()
        .backups()
        .restore(&path("b"), &keyspace("ks", "Copied"))
        .await
        .unwrap();
    client
        .database
        .engine()
        .backups()
        .restore(&path("b"), &table("ks.wide", "ks.wide2"))
        .await
        .unwrap();
    client
        .database
        .engine()
        .backups()
        .restore(&path("b"), &table("ks.wide", "OtherOne.wide"))
        .await
        .unwrap();
    client.ok("INSERT INTO ks.base (k, c, v) VALUES (0, 0, 5)").await;
    client.built().await;
    client.indexes_agree().await;
    for name in ["ks.wide", "\"Copied\".wide", "ks.wide2", "\"OtherOne\".wide"] {
        assert_eq!(
            client.rows(&format!("SELECT JSON * FROM {name}")).await,
            shown,
            "{name}"
        );
    }
    client
        .database
        .engine()
        .backups()
        .write(&path("again"), &Scope::Whole)
        .await
        .unwrap();
    let again = dump(&path("again"));
    let of = |keyspace: &str, table: &str| again[&(keyspace.to_owned(), table.to_owned())].clone();
    for (keyspace, table) in [("Copied", "wide"), ("ks", "wide2"), ("OtherOne", "wide")] {
        assert_eq!(of(keyspace, table), of("ks", "wide"), "{keyspace}.{table}");
    }
    for table in ["counts", "empty", "dropping"] {
        assert_eq!(of("Copied", table), of("ks", table), "{table}");
    }
    let ids = client.rows("SELECT id FROM system_schema.tables").await;
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
    let indexes = client
        .rows("SELECT index_name FROM system_schema.indexes WHERE keyspace_name = 'ks'")
        .await;
    assert_eq!(indexes.iter().collect::<BTreeSet<_>>().len(), 4, "{indexes:?}");

    // A scope has only what was asked for.
    let scope = Scope::Table {
        keyspace: "ks".to_owned(),
        table: "wide".to_owned(),
    };
    client
        .database
        .engine()
        .backups()
        .write(&path("one"), &scope)
        .await
        .unwrap();
    assert_eq!(dump(&path("one")).len(), 1);
    client
        .database
        .engine()
        .backups()
        .restore(&path("one"), &table("ks.wide", "Copied.wide3"))
        .await
        .unwrap();
    let scope = Scope::Keyspace {
        keyspace: "OtherOne".to_owned(),
    };
    client
        .database
        .engine()
        .backups()
        .write(&path("other"), &scope)
        .await
        .unwrap();
    assert_eq!(dump(&path("other")).len(), 2);

    client
        .ok("CREATE KEYSPACE differs WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        .await;
    client.ok("CREATE TYPE differs.place (street int)").await;
    for (what, why) in [
        (What::All, "the keyspace OtherOne is there already"),
        (keyspace("ks", "ks"), "the keyspace ks is there already"),
        (table("ks.wide", "ks.base"), "the table ks.base is there already"),
        (table("ks.none", "ks.x"), "there is no table ks.none in the backup"),
        (keyspace("none", "x"), "there is no keyspace none in the backup"),
        (table("ks.wide", "none.x"), "there is no keyspace none in the database"),
        (
            table("ks.wide", "differs.x"),
            "the type differs.place is there with other fields",
        ),
    ] {
        let refused = client
            .database
            .engine()
            .backups()
            .restore(&path("b"), &what)
            .await
            .unwrap_err()
            .to_string();
        assert!(refused.starts_with(why), "{refused}");
    }
    for (scope, why) in [
        (
            Scope::Keyspace {
                keyspace: "none".to_owned(),
            },
            "there is no keyspace none in the database",
        ),
        (
            Scope::Keyspace {
                keyspace: "system".to_owned(),
            },
            "system is not backed up by itself",
        ),
    ] {
        let refused = client
            .database
            .engine()
            .backups()
            .write(&path("none"), &scope)
            .await
            .unwrap_err()
            .to_string();
        assert!(refused.starts_with(why), "{refused}");
        assert!(!path("none").exists());
    }
    assert!(matches!(
        client
            .database
            .engine()
            .backups()
            .write(&path("b"), &Scope::Whole)
            .await,
        Err(BackupError::Files(helenus_storage::backup::Error::NotEmpty { .. }))
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_is_being_restored_into_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    for place in 0..2 {
        let url = place_url(folder.path(), place);
        let options = Client::options(&url, Clock::manual(NOW_MICROS));
        let path: PathBuf = options.url.directory().unwrap().to_owned();
        let _restoring = Restoring::begin(&path).unwrap();
        let mut open = options.clone();
        open.store.is_restored_into = true;
        Database::open(open).await.unwrap().close().await.unwrap();
        for create in [false, true] {
            let mut options = options.clone();
            options.store.create = create;
            let refused = Database::open(options).await.unwrap_err().to_string();
            assert!(refused.contains("a backup is being restored into"), "{refused}");
            assert!(refused.contains(&path.display().to_string()), "{refused}");
        }
        assert!(matches!(
            Restoring::begin(&path),
            Err(store::Error::BeingRestored { .. })
        ));
        std::fs::remove_file(path.join("helenus.restoring")).unwrap();
        assert!(matches!(Restoring::begin(&path), Err(store::Error::NotEmpty { .. })));
    }
}

/// Every row that the main store has once those of a restore that did not end are removed, which a start does in the background.
async fn rows_at_last(url: &str, expected: u64) -> u64 {
    let mut rows = u64::MAX;
    for _ in 0..50 {
        let client = reopen(url, Clock::manual(NOW_MICROS)).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        client.database.close().await.unwrap();
        drop(client);
        rows = u64::try_from(raw_rows(url).await).unwrap();
        if rows == expected {
            break;
        }
    }
    rows
}

/// Every row that the main store of a closed database has.
async fn raw_rows(url: &str) -> usize {
    let options = store::Options::default();
    let main = open_when_free(async || {
        let opened = store::Store::open(&url.parse().unwrap(), &options, Clock::manual(NOW_MICROS)).await;
        opened.map_err(|error| Error::from(OpeningFailure::from(error)))
    })
    .await;
    let mut rows = 0;
    let (at, all) = (main.snapshot(), store::KeyRange::all());
    let scanned = main.scan(store::Space::Rows, &all, store::Order::Forward, &at, |_, _| {
        rows += 1;
        std::ops::ControlFlow::Continue(())
    });
    scanned.await.unwrap();
    main.close().await.unwrap();
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_fails_leaves_nothing_and_a_damaged_backup_is_not_begun() {
    let folder = tempfile::tempdir().unwrap();
    let source = Client::open("memory:").await;
    fill(&source, 5).await;
    let backup = folder.path().join("b");
    let made = source
        .database
        .engine()
        .backups()
        .write(&backup, &Scope::Whole)
        .await
        .unwrap();
    let url = place_url(folder.path(), 0);
    for commits in [1, 6, 60] {
        let left = Arc::new(AtomicI64::new(i64::MAX));
        let mut options = Client::options(&url, Clock::manual(NOW_MICROS));
        let of_faults = Arc::clone(&left);
        options.store.faults = Some(Arc::new(move |_| {
            (of_faults.fetch_sub(1, Ordering::SeqCst) <= 0).then(|| std::io::Error::other("the medium is dead"))
        }));
        let database = open_when_free(async || Database::open(options.clone()).await).await;
        left.store(commits, Ordering::SeqCst);
        let outcome = database.engine().backups().restore(&backup, &What::All).await;
        left.store(i64::MAX, Ordering::SeqCst);
        drop(database.close().await);
        drop(database);
        let client = reopen(&url, Clock::manual(NOW_MICROS)).await;
        let keyspaces = client.rows("SELECT keyspace_name FROM system_schema.keyspaces").await;
        let is_there = keyspaces.iter().any(|name| name.contains("ks"));
        client.database.close().await.unwrap();
        drop(client);
        let all: u64 = made.manifest.tables.iter().map(|table| table.rows).sum();
        if is_there {
            // The commit that ends it may be done although its answer is a failure.
            assert_eq!(rows_at_last(&url, all).await, all);
            return;
        }
        assert!(outcome.is_err(), "{commits}");
        assert_eq!(rows_at_last(&url, 0).await, 0, "{commits}");
    }
    panic!("60 commits are not enough");
}

#[tokio::test]
async fn a_restore_gives_only_names_that_a_statement_could_give() {
    let folder = tempfile::tempdir().unwrap();
    let source = Client::open("memory:").await;
    fill(&source, 2).await;
    let backup = folder.path().join("b");
    source
        .database
        .engine()
        .backups()
        .write(&backup, &Scope::Whole)
        .await
        .unwrap();
    let target = Client::open("memory:").await;
    let version = target.database.engine().schema_version();
    let keyspace = |to: &str| What::Keyspace {
        keyspace: "ks".to_owned(),
        to: to.to_owned(),
    };
    let table = |to: (&str, &str)| What::Table {
        from: ("ks".to_owned(), "t".to_owned()),
        to: (to.0.to_owned(), to.1.to_owned()),
    };
    for what in [
        keyspace("system_schema"),
        keyspace("system_cosmos"),
        keyspace(""),
        keyspace("a b;"),
        keyspace("shop.x"),
        keyspace(&"x".repeat(49)),
        table(("system_auth", "t")),
        table(("ks", "a.b")),
        table(("ks", &"x".repeat(223))),
    ] {
        let refused = target.database.engine().backups().restore(&backup, &what).await;
        let refused = refused.expect_err(&format!("{what:?}")).to_string();
        assert!(
            refused.contains("letters") || refused.contains("system keyspace"),
            "{refused}"
        );
    }
    assert_eq!(target.database.engine().schema_version(), version);
    let longest = "x".repeat(48);
    target
        .database
        .engine()
        .backups()
        .restore(&backup, &keyspace(&longest))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_damaged_backup_is_refused_by_file_name_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let source = Client::open("memory:").await;
    fill(&source, 6).await;
    let backup = folder.path().join("b");
    let made = source
        .database
        .engine()
        .backups()
        .write(&backup, &Scope::Whole)
        .await
        .unwrap();
    let name = &made.manifest.tables.iter().find(|table| table.rows > 0).unwrap().files[0].name;
    let path = backup.join(name);
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    std::fs::write(&path, bytes).unwrap();
    let target = Client::open("memory:").await;
    let version = target.database.engine().schema_version();
    let refused = target
        .database
        .engine()
        .backups()
        .restore(&backup, &What::All)
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains(name.as_str()), "{refused}");
    assert_eq!(target.database.engine().schema_version(), version);
}

#[tokio::test(flavor = "multi_thread")]
#[expect(
    clippy::too_many_lines,
    reason = "one story: each step stands on the state that the one before left"
)]
async fn exported_rows_come_back_and_bad_ones_are_named_by_their_line() {
    let folder = tempfile::tempdir().unwrap();
    let source = Client::open("memory:").await;
    fill(&source, 21).await;
    source
        .ok("INSERT INTO ks.wide (p, q, c, d, a, bl, de) VALUES (9, '', 9, 50554d6e-29bb-11e5-b345-feff819cdc9f, '', 0x, 1.500)")
        .await;
    source
        .ok("INSERT INTO ks.wide (p, q, s) VALUES (10, 'only \"static\",', 'two\nlines')")
        .await;
    source.ok("UPDATE ks.counts SET n = n + 5, o = o - 7 WHERE k = 1").await;
    let backup = folder.path().join("b");
    source
        .database
        .engine()
        .backups()
        .write(&backup, &Scope::Whole)
        .await
        .unwrap();
    for form in [Form::Csv, Form::Json] {
        let target = Client::open("memory:").await;
        target
            .database
            .engine()
            .backups()
            .restore(&backup, &What::All)
            .await
            .unwrap();
        for table in ["wide", "counts", "base"] {
            let file = folder.path().join(format!("{table}.{form:?}"));
            let exported = export(&source.database, ("ks", table), form, &file).await.unwrap();
            assert!(exported > 0);
            assert!(
                export(&source.database, ("ks", table), form, &file).await.is_err(),
                "it is there"
            );
            target.ok(&format!("TRUNCATE ks.{table}")).await;
            let imported = import(&target.database, ("ks", table), form, &file, 0).await.unwrap();
            assert_eq!((imported.rows, imported.bad), (exported, 0), "{:?}", imported.named);
            let all = format!("SELECT * FROM ks.{table}");
            let [before, after] = [source.rows(&all).await, target.rows(&all).await];
            assert_eq!(after, before, "{form:?} {table}");
        }
    }
    let target = Client::open("memory:").await;
    target
        .database
        .engine()
        .backups()
        .restore(&backup, &What::All)
        .await
        .unwrap();
    let file = folder.path().join("bad");
    std::fs::write(&file, "k,c,v\n1,2,3\n1,x,3\n\n1,2\n\"a\n\",1,1\n7,,1\n1,3,4\n").unwrap();
    let imported = import(&target.database, ("ks", "base"), Form::Csv, &file, 9)
        .await
        .unwrap();
    assert_eq!((imported.rows, imported.bad, imported.unread), (2, 4, None));
    let named: Vec<(u64, &str)> = imported
        .named
        .iter()
        .map(|bad| (bad.lines.first, bad.reason.as_str()))
        .collect();
    assert_eq!(
        named.iter().map(|(line, _)| *line).collect::<Vec<_>>(),
        [3, 5, 6, 8],
        "{named:?}"
    );
    assert!(named[0].1.starts_with("column c: "), "{named:?}");
    assert!(named[1].1.contains("cells: 2, where"), "{named:?}");
    assert!(named[3].1.contains("column c is part of the primary key"), "{named:?}");
    let imported = import(&target.database, ("ks", "base"), Form::Csv, &file, 1)
        .await
        .unwrap();
    assert!(matches!(imported.unread, Some(Unread::BadRows { .. })));
    std::fs::write(
        &file,
        "{\"k\": 1, \"c\": 2, \"none\": 3}\n{\"k\": 1, \"c\": 2, \"V\": 30}\n[]\n",
    )
    .unwrap();
    let imported = import(&target.database, ("ks", "base"), Form::Json, &file, 9)
        .await
        .unwrap();
    assert_eq!((imported.rows, imported.bad), (1, 2), "{:?}", imported.named);
    for (header, why) in [("k,none\n", "no column"), ("c,v\n", "does not name the column k")] {
        std::fs::write(&file, header).unwrap();
        let refused = import(&target.database, ("ks", "base"), Form::Csv, &file, 0)
            .await
            .unwrap_err();
        assert!(refused.to_string().contains(why), "{refused}");
    }
}
