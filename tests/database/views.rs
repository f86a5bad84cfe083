//! Materialized views: at every moment a view holds what its base table, filtered and keyed as the view is, would show.

#![expect(clippy::unwrap_used, reason = "a test says no better what went wrong")]

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use crate::support::{Client, open_when_free};
use helenus_base::clock::Clock;
use helenus_cql::cql::{Database, Error, QueryParams, SessionState};
use helenus_schema::schema::node::Peer;
use helenus_storage::storage as store;

const BASE: &str = "CREATE TABLE t (a int, b int, c text, d int, v int, w text, x int, m map<text, int>, \
    PRIMARY KEY ((a, b), c, d)) WITH CLUSTERING ORDER BY (c DESC, d ASC) AND gc_grace_seconds = 50";

/// A view: its name, how it is made, and the rows of the base table that it has. Its columns are shown in the order of COLUMNS.
struct View {
    name: &'static str,
    create: &'static str,
    /// The column of its key that is not of the base's.
    key: Option<&'static str>,
    filter: fn(&[&str]) -> bool,
    columns: &'static str,
}

fn any(_: &[&str]) -> bool {
    true
}

const VIEWS: [View; 5] = [
    View {
        name: "by_v",
        create: "CREATE MATERIALIZED VIEW by_v AS SELECT * FROM t WHERE a IS NOT NULL AND b IS NOT NULL AND c IS NOT NULL \
            AND d IS NOT NULL AND v IS NOT NULL PRIMARY KEY (v, a, b, c, d)",
        key: Some("v"),
        filter: any,
        columns: "a, b, c, d, v, w, x, m, writetime(w), writetime(x)",
    },
    View {
        name: "by_w",
        create: "CREATE MATERIALIZED VIEW by_w AS SELECT a, b, c, d, w, x FROM t WHERE a IS NOT NULL AND b IS NOT NULL AND c IS NOT NULL \
            AND d IS NOT NULL AND w IS NOT NULL PRIMARY KEY ((a, w), d, c, b) WITH CLUSTERING ORDER BY (d DESC, c ASC, b ASC)",
        key: Some("w"),
        filter: any,
        columns: "a, b, c, d, w, x, writetime(x)",
    },
    View {
        name: "by_c",
        create: "CREATE MATERIALIZED VIEW by_c AS SELECT * FROM t WHERE a IS NOT NULL AND b IS NOT NULL AND c IS NOT NULL \
            AND d IS NOT NULL PRIMARY KEY (c, d, b, a)",
        key: None,
        filter: any,
        columns: "a, b, c, d, v, w, x, m, writetime(v), ttl(v), writetime(w), ttl(x)",
    },
    View {
        name: "few",
        create: "CREATE MATERIALIZED VIEW few AS SELECT a, b, c, d, v FROM t WHERE a > 0 AND b IN (0, 1) AND c >= 'b' AND d IS NOT NULL \
            PRIMARY KEY ((a, c), b, d)",
        key: None,
        filter: |row| {
            let number = |place: usize| row.get(place).unwrap().parse::<i32>().unwrap();
            number(0) > 0 && number(1) < 2 && row.get(2).unwrap().trim_matches('"') >= "b"
        },
        columns: "a, b, c, d, v, writetime(v), ttl(v)",
    },
    View {
        name: "late",
        create: "CREATE MATERIALIZED VIEW late AS SELECT a, b, c, d, x, w FROM t WHERE a = 1 AND b IS NOT NULL AND c IS NOT NULL \
            AND d IS NOT NULL AND x IS NOT NULL PRIMARY KEY (x, d, a, b, c)",
        key: Some("x"),
        filter: |row| *row.first().unwrap() == "1",
        columns: "a, b, c, d, x, w, writetime(w)",
    },
];

struct Words(fastrand::Rng);

impl Words {
    fn int(&mut self) -> i32 {
        self.0.i32(0..3)
    }

    fn text(&mut self) -> String {
        format!("'{}'", self.0.choice(["a", "b", "c"]).unwrap())
    }

    fn partition(&mut self) -> String {
        format!("a = {} AND b = {}", self.int(), self.int())
    }

    fn row(&mut self) -> String {
        format!("{} AND c = {} AND d = {}", self.partition(), self.text(), self.int())
    }

    fn using(&mut self, is_stamped: bool) -> String {
        let stamp = is_stamped.then(|| format!("TIMESTAMP {}", self.0.u16(1..40)));
        let ttl = (self.0.u8(0..4) == 0).then(|| format!("TTL {}", self.0.u8(1..30)));
        let using: Vec<String> = stamp.into_iter().chain(ttl).collect();
        if using.is_empty() {
            String::new()
        } else {
            format!("USING {}", using.join(" AND "))
        }
    }

    fn assignment(&mut self) -> String {
        match self.0.u8(0..8) {
            0 | 1 => format!("v = {}", self.int()),
            2 => "v = null".to_owned(),
            3 => format!("w = {}", self.text()),
            4 => format!("x = {}, w = null", self.int()),
            5 => format!("m[{}] = {}", self.text(), self.int()),
            6 => "x = null".to_owned(),
            _ => format!("x = {}, v = {}", self.int(), self.int()),
        }
    }

    fn one(&mut self, is_stamped: bool) -> String {
        let (using, row, partition) = (self.using(is_stamped), self.row(), self.partition());
        let deleting = if is_stamped {
            format!("USING TIMESTAMP {}", self.0.u16(1..40))
        } else {
            String::new()
        };
        match self.0.u8(0..14) {
            0..=4 => format!(
                "INSERT INTO t (a, b, c, d, v, w, x) VALUES ({}, {}, {}, {}, {}, {}, {}) {using}",
                self.int(),
                self.int(),
                self.text(),
                self.int(),
                self.int(),
                self.text(),
                self.int(),
            ),
            5..=8 => format!("UPDATE t {using} SET {} WHERE {row}", self.assignment()),
            9 => format!("DELETE v, m FROM t {deleting} WHERE {row}"),
            10 => format!("DELETE FROM t {deleting} WHERE {row}"),
            11 => format!("DELETE FROM t {deleting} WHERE {partition} AND c > {}", self.text()),
            12 => format!("DELETE FROM t {deleting} WHERE {partition}"),
            _ => format!(
                "INSERT INTO t (a, b, c, d) VALUES ({}, {}, {}, {}) {using}",
                self.int(),
                self.int(),
                self.text(),
                self.int()
            ),
        }
    }

    fn write(&mut self) -> String {
        match self.0.u8(0..10) {
            0 => {
                let kind = self.0.choice(["", "UNLOGGED "]).unwrap();
                let members: Vec<String> = (0..self.0.u8(2..5)).map(|_| self.one(true)).collect();
                format!("BEGIN {kind}BATCH {}; APPLY BATCH", members.join("; "))
            }
            1 => format!(
                "UPDATE t SET {} WHERE {} IF v != {}",
                self.assignment(),
                self.row(),
                self.int()
            ),
            2 => format!("DELETE FROM t WHERE {} IF EXISTS", self.row()),
            3 => format!(
                "INSERT INTO t (a, b, c, d, v, x) VALUES (1, {}, {}, {}, {}, {}) IF NOT EXISTS",
                self.int(),
                self.text(),
                self.int(),
                self.int(),
                self.int()
            ),
            _ => {
                let is_stamped = self.0.bool();
                self.one(is_stamped)
            }
        }
    }
}

/// Each view shows what the base table shows of its columns.
async fn check(client: &Client, what: &str) {
    for view in VIEWS {
        let columns = view.columns;
        let mut shown = client.rows(&format!("SELECT {columns} FROM {}", view.name)).await;
        shown.sort();
        let mut expected = Vec::new();
        // The key comes with each row of the base table, so that the row may be judged by it.
        let of_base = match view.key {
            Some(key) => {
                client
                    .rows(&format!("SELECT a, b, c, d, {key}, {columns} FROM t"))
                    .await
            }
            None => client.rows(&format!("SELECT a, b, c, d, a, {columns} FROM t")).await,
        };
        for row in of_base {
            let values: Vec<&str> = row.splitn(6, ' ').collect();
            if *values.get(4).unwrap() == "null" || !(view.filter)(&values) {
                continue;
            }
            expected.push((*values.get(5).unwrap()).to_owned());
        }
        expected.sort();
        assert_eq!(shown, expected, "{what}: {}", view.name);
    }
}

async fn views_follow(url: &str, seed: u64, steps: usize) {
    let client = Client::with_keyspace(url).await;
    let mut words = Words(fastrand::Rng::with_seed(seed));
    client.ok(BASE).await;
    for view in VIEWS.iter().take(2) {
        client.ok(view.create).await;
    }
    for _ in 0..40 {
        client.ok(&words.write()).await;
    }
    for view in VIEWS.iter().skip(2) {
        client.ok(view.create).await;
    }
    client.views_built().await;
    check(&client, "after the build").await;
    for step in 0..steps {
        let text = words.write();
        client.ok(&text).await;
        check(&client, &format!("seed {seed}, step {step}, {text}")).await;
        if step % 10 == 9 {
            client.clock.advance(Duration::from_secs(words.0.u64(1..12)));
            check(&client, &format!("seed {seed}, step {step}, later")).await;
        }
        if step % 50 == 49 {
            client.clock.advance(Duration::from_secs(70));
            client.database.engine().upkeep().sweep().await.unwrap();
            check(&client, &format!("seed {seed}, step {step}, swept")).await;
        }
    }
    client.ok("TRUNCATE t").await;
    check(&client, "truncated").await;
    client
        .ok("INSERT INTO t (a, b, c, d, v, w, x) VALUES (1, 1, 'b', 1, 1, 'b', 1)")
        .await;
    check(&client, "written after TRUNCATE").await;
    for view in VIEWS {
        assert_eq!(
            client.rows(&format!("SELECT a FROM {}", view.name)).await,
            ["1"],
            "{}",
            view.name
        );
    }
}

#[tokio::test]
async fn a_view_shows_what_its_base_shows() {
    for seed in 0..3 {
        views_follow("memory:", seed, 150).await;
    }
    let directory = tempfile::tempdir().unwrap();
    views_follow(&format!("file:{}", directory.path().display()), 3, 60).await;
    #[cfg(feature = "slate")]
    views_follow("slate+memory:", 4, 60).await;
}

/// A medium that takes so many groups and then none.
#[derive(Clone)]
struct Faults(Arc<AtomicI64>);

type Call = Arc<dyn Fn(store::FaultPoint) -> Option<std::io::Error> + Send + Sync>;

impl Faults {
    fn call(&self) -> Call {
        let left = Arc::clone(&self.0);
        Arc::new(move |_| {
            let left = left.fetch_sub(1, Ordering::SeqCst);
            (left <= 0).then(|| std::io::Error::other("the medium is dead"))
        })
    }
}

async fn try_open(url: &str, clock: &Clock, faults: Option<&Faults>) -> Result<Client, Error> {
    let mut options = Client::options(url, clock.clone());
    options.store.faults = faults.map(Faults::call);
    let mut client = Client::over(Database::open(options).await?, SessionState::default(), clock.clone());
    client.session.keyspace = Some("ks".into());
    Ok(client)
}

/// Opens a database, whose last life may not have let go of its directory yet.
async fn open(url: &str, clock: &Clock, faults: Option<&Faults>) -> Client {
    open_when_free(async || try_open(url, clock, faults).await).await
}

/// The table and two views in three partitions each, of which some are in stores of their own.
async fn scattered(client: &Client) {
    client
        .ok("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        .await;
    client.ok(&format!("{BASE} AND helenus_partitions = 3")).await;
    for view in VIEWS {
        client.ok(view.create).await;
    }
    client.views_built().await;
    for table in ["by_v", "by_c"] {
        client
            .ok(&format!(
                "ALTER TABLE t WITH helenus_split_at = {}",
                if table == "by_v" { 1 << 60 } else { -(1_i64 << 60) }
            ))
            .await;
    }
    let base = client.parts("t").await;
    client
        .ok(&format!(
            "ALTER TABLE t WITH helenus_lift = {}",
            base.get(1).unwrap().id
        ))
        .await;
    client
        .ok(&format!(
            "ALTER TABLE t WITH helenus_lift = {}",
            base.get(3).unwrap().id
        ))
        .await;
}

/// Base and views are in several stores; the server is killed at any group of any of them, again and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_leaves_views_as_their_base() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("file:{}", directory.path().display());
    let clock = Clock::manual(1_700_000_000_000_000);
    let client = open(&url, &clock, None).await;
    scattered(&client).await;
    client.database.close().await.unwrap();
    drop(client);
    let mut words = Words(fastrand::Rng::with_seed(9));
    let mut failed = 0;
    for life in 0..40 {
        let faults = Faults(Arc::new(AtomicI64::new(i64::MAX)));
        let client = open(&url, &clock, Some(&faults)).await;
        check(&client, &format!("life {life}")).await;
        for _ in 0..5 {
            client.ok(&words.write()).await;
        }
        check(&client, &format!("life {life}, written")).await;
        faults.0.store(words.0.i64(0..12), Ordering::SeqCst);
        for _ in 0..8 {
            let text = words.write();
            if client.run(&text, QueryParams::default()).await.is_err() {
                failed += 1;
                break;
            }
        }
        faults.0.store(0, Ordering::SeqCst);
        drop(client);
        clock.advance(Duration::from_secs(1));
    }
    let client = open(&url, &clock, None).await;
    check(&client, "at last").await;
    client.ok("DROP MATERIALIZED VIEW by_v").await;
    client.ok("DROP KEYSPACE ks").await;
    assert!(failed > 5, "{failed}");
}

/// A build is killed in its midst, and the next life goes on with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_build_goes_on_after_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("file:{}", directory.path().display());
    let clock = Clock::manual(1_700_000_000_000_000);
    let client = open(&url, &clock, None).await;
    client
        .ok("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        .await;
    client
        .ok("CREATE TABLE n (k int PRIMARY KEY, v int) WITH helenus_partitions = 2")
        .await;
    for k in 0..2000 {
        client
            .ok(&format!("INSERT INTO n (k, v) VALUES ({k}, {})", k % 7))
            .await;
    }
    client.database.close().await.unwrap();
    drop(client);
    let mut unfinished = 0;
    for life in 0..6 {
        let faults = Faults(Arc::new(AtomicI64::new(i64::MAX)));
        let client = open(&url, &clock, Some(&faults)).await;
        let create = "CREATE MATERIALIZED VIEW IF NOT EXISTS of_n AS SELECT * FROM n WHERE k IS NOT NULL AND v IS NOT NULL \
            PRIMARY KEY (v, k)";
        client.ok(create).await;
        if life < 5 {
            faults.0.store(4, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(50)).await;
            let built = client.rows("SELECT view_name FROM system.built_views").await;
            unfinished += usize::from(built.is_empty());
            drop(client);
            continue;
        }
        client.ok("UPDATE n SET v = 9 WHERE k = 1999").await;
        client.views_built().await;
        assert_eq!(client.rows("SELECT count(*) FROM of_n").await, ["2000"]);
        assert_eq!(client.rows("SELECT k FROM of_n WHERE v = 9").await, ["1999"]);
    }
    assert!(unfinished > 0);
    assert!(Path::new(directory.path()).exists());
}

/// The rows of `system_distributed.view_build_status`, in order.
async fn statuses(client: &Client) -> Vec<String> {
    let mut rows = client
        .rows("SELECT keyspace_name, view_name, host_id, status FROM system_distributed.view_build_status")
        .await;
    rows.sort();
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_status_of_a_build_is_shown_for_every_node() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("file:{}", directory.path().display());
    let clock = Clock::manual(1_700_000_000_000_000);
    let faults = Faults(Arc::new(AtomicI64::new(i64::MAX)));
    let open_of_two = async |faults: Option<&Faults>| {
        let mut options = Client::options(&url, clock.clone());
        options.store.faults = faults.map(Faults::call);
        options.node.virtual_nodes = 2;
        options.node.peers.push(Peer {
            address: IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)),
            port: 7000,
            native_address: IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)),
            native_port: 9042,
            host_id: uuid::Uuid::nil(),
            data_center: "datacenter1".to_owned(),
            rack: "rack1".to_owned(),
            tokens: vec![1],
        });
        let database = open_when_free(async || Database::open(options.clone()).await).await;
        Client::over(database, SessionState::default(), clock.clone())
    };
    let client = open_of_two(Some(&faults)).await.in_keyspace().await;
    client
        .ok("CREATE TABLE n (p int, k int, v int, PRIMARY KEY (p, k))")
        .await;
    for first in (0..2000).step_by(100) {
        let rows = (first..first + 100).map(|k| format!("INSERT INTO n (p, k, v) VALUES (1, {k}, {k});"));
        let rows: String = rows.collect();
        client.ok(&format!("BEGIN UNLOGGED BATCH {rows} APPLY BATCH")).await;
    }
    assert_eq!(statuses(&client).await, Vec::<String>::new());
    let create = "CREATE MATERIALIZED VIEW of_n AS SELECT * FROM n WHERE p IS NOT NULL AND k IS NOT NULL AND v IS NOT NULL \
        PRIMARY KEY (v, p, k)";
    client.ok(create).await;
    // The build has 16 steps before it, and its medium is dead after a few.
    faults.0.store(4, Ordering::SeqCst);
    let mut host_ids = client.rows("SELECT host_id FROM system.local").await;
    host_ids.extend(client.rows("SELECT host_id FROM system.peers").await);
    host_ids.sort();
    assert_eq!(host_ids.len(), 2);
    let of_status = |status: &str| -> Vec<String> {
        let row = |host_id: &String| format!("\"ks\" \"of_n\" {host_id} \"{status}\"");
        host_ids.iter().map(row).collect()
    };
    assert_eq!(statuses(&client).await, of_status("STARTED"));
    drop(client);

    let client = open_of_two(None).await.in_keyspace().await;
    client.views_built().await;
    assert_eq!(statuses(&client).await, of_status("SUCCESS"));
    let one = "SELECT status FROM system_distributed.view_build_status WHERE keyspace_name = 'ks' AND view_name = ";
    assert_eq!(client.rows(&format!("{one}'of_n'")).await.len(), 2);
    assert_eq!(client.rows(&format!("{one}'n'")).await, Vec::<String>::new());
    client.ok("DROP MATERIALIZED VIEW of_n").await;
    assert_eq!(statuses(&client).await, Vec::<String>::new());

    // The other tables of the keyspace are stored.
    let refused = client
        .refused("DELETE FROM system_distributed.view_build_status WHERE keyspace_name = 'ks' AND view_name = 'of_n'")
        .await;
    assert_eq!(
        refused,
        "Table system_distributed.view_build_status is not user-modifiable."
    );
    let denied =
        "INSERT INTO system_distributed.partition_denylist (ks_name, table_name, key) VALUES ('ks', 'n', 0x01)";
    client.ok(denied).await;
    let rows = client
        .rows("SELECT ks_name FROM system_distributed.partition_denylist")
        .await;
    assert_eq!(rows, ["\"ks\""]);
}

/// Views come, partitions move, and writers never stop.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn views_follow_writers_that_never_stop() {
    for url in [
        "memory:",
        #[cfg(feature = "slate")]
        "slate+memory:",
    ] {
        let client = Arc::new(Client::with_keyspace(url).await);
        client.ok(&format!("{BASE} AND helenus_partitions = 2")).await;
        let is_over = Arc::new(AtomicBool::new(false));
        let writers: Vec<_> = (0..4)
            .map(|seed| {
                let (client, is_over) = (Arc::clone(&client), Arc::clone(&is_over));
                tokio::spawn(async move {
                    let mut words = Words(fastrand::Rng::with_seed(seed));
                    let mut written = 0_u64;
                    while !is_over.load(Ordering::Relaxed) {
                        let text = words.write();
                        match client.run(&text, QueryParams::default()).await {
                            Ok(_) => written += 1,
                            // One that was planned before a TRUNCATE.
                            Err(error) => assert!(error.to_string().contains("does not exist"), "{text}: {error}"),
                        }
                    }
                    written
                })
            })
            .collect();
        for _ in 0..2 {
            for view in VIEWS {
                client.ok(view.create).await;
                let part = client.parts("t").await.into_iter().next().unwrap();
                let action = if part.store == 0 { "lift" } else { "lower" };
                client
                    .ok(&format!("ALTER TABLE t WITH helenus_{action} = {}", part.id))
                    .await;
            }
            client.views_built().await;
            tokio::time::sleep(Duration::from_millis(20)).await;
            client.ok("DROP MATERIALIZED VIEW few").await;
            client.ok(VIEWS.get(3).unwrap().create).await;
            client.ok("TRUNCATE t").await;
            tokio::time::sleep(Duration::from_millis(20)).await;
            for view in VIEWS.iter().take(4) {
                client.ok(&format!("DROP MATERIALIZED VIEW {}", view.name)).await;
            }
            client.ok("DROP MATERIALIZED VIEW late").await;
        }
        for view in VIEWS {
            client.ok(view.create).await;
        }
        client.views_built().await;
        for _ in 0..60_000 {
            if client.rows("SELECT * FROM t").await.len() > 5 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        is_over.store(true, Ordering::Relaxed);
        for writer in writers {
            assert!(writer.await.unwrap() > 0);
        }
        check(&client, url).await;
    }
}

/// What keeping a view costs depends on the rows that are there: EXPLAIN names the views and gives no figure for them.
#[tokio::test]
async fn explain_names_the_views_of_a_write() {
    let client = Client::with_keyspace("memory:").await;
    client.ok(BASE).await;
    let write = "EXPLAIN INSERT INTO t (a, b, c, d, v) VALUES (1, 1, 'b', 1, 1)";
    let told = |rows: Vec<String>| rows.into_iter().find(|row| row.contains("not counted here"));
    assert_eq!(told(client.rows(write).await), None);
    client.ok(VIEWS[0].create).await;
    client.views_built().await;
    let row = told(client.rows(write).await).unwrap();
    assert!(row.contains(VIEWS[0].name), "{row}");
}

/// A row of a view whose key no store takes: the write is refused as a whole, though its table and the view are in two stores, and the next
/// start is like any other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_no_view_can_have_is_refused_before_anything_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("file:{}", directory.path().display());
    let clock = Clock::manual(1_700_000_000_000_000);
    let client = open(&url, &clock, None).await;
    for statement in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (p int, c int, v text, PRIMARY KEY (p, c))",
        "CREATE MATERIALIZED VIEW ks.by_v AS SELECT * FROM ks.t WHERE p IS NOT NULL AND c IS NOT NULL AND v IS NOT NULL \
         PRIMARY KEY (v, p, c)",
        "ALTER TABLE ks.t WITH helenus_lift = 0",
        "INSERT INTO ks.t (p, c, v) VALUES (1, 1, 'a')",
    ] {
        client.ok(statement).await;
    }
    let long = "x".repeat(70_000);
    let put = |c: i32| format!("INSERT INTO ks.t (p, c, v) VALUES (1, {c}, '{long}')");
    for statement in [
        put(2),
        put(3) + " IF NOT EXISTS",
        format!("UPDATE ks.t SET v = '{long}' WHERE p = 1 AND c = 1"),
    ] {
        let refused = client.refused(&statement).await;
        assert!(refused.contains("over the limit"), "{refused}");
    }
    for _ in 0..2 {
        client_sees_one_row(&client).await;
    }
    client.database.close().await.unwrap();
    drop(client);
    let client = open(&url, &clock, None).await;
    client_sees_one_row(&client).await;
    client.database.close().await.unwrap();
}

async fn client_sees_one_row(client: &Client) {
    assert_eq!(client.rows("SELECT count(*) FROM ks.t").await, ["1"]);
    assert_eq!(client.rows("SELECT count(*) FROM ks.by_v").await, ["1"]);
    assert_eq!(client.rows("SELECT * FROM system.batches").await, Vec::<String>::new());
}

/// Rows that were there before the view and cannot be in it are left out, and can be changed and deleted; long ones do not stop the build.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_is_built_without_the_rows_that_it_cannot_have() {
    let client = Client::with_keyspace("memory:").await;
    client
        .ok("CREATE TABLE t (p int, c int, v text, w blob, PRIMARY KEY (p, c))")
        .await;
    let long = "x".repeat(70_000);
    for c in 0..20 {
        client
            .ok(&format!("INSERT INTO t (p, c, v) VALUES (1, {c}, 'a')"))
            .await;
    }
    for c in [3, 7, 8] {
        client
            .ok(&format!("UPDATE t SET v = '{long}' WHERE p = 1 AND c = {c}"))
            .await;
    }
    client
        .ok("CREATE MATERIALIZED VIEW by_v AS SELECT * FROM t WHERE p IS NOT NULL AND c IS NOT NULL AND v IS NOT NULL PRIMARY KEY (v, p, c)")
        .await;
    client.views_built().await;
    assert_eq!(client.rows("SELECT count(*) FROM by_v").await, ["17"]);
    client.ok("UPDATE t SET v = 'b' WHERE p = 1 AND c = 3").await;
    client.ok("DELETE FROM t WHERE p = 1 AND c = 7").await;
    assert_eq!(client.rows("SELECT c FROM by_v WHERE v = 'b'").await, ["3"]);
    client.ok("DELETE FROM t WHERE p = 1").await;
    assert_eq!(client.rows("SELECT count(*) FROM by_v").await, ["0"]);
}

/// Long rows of one step of a build are more than one commit takes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_of_long_rows_is_built() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("file:{}", directory.path().display());
    let client = Client::with_keyspace(&url).await;
    client.ok("CREATE TABLE t (p int PRIMARY KEY, v int, w text)").await;
    let long = "x".repeat(3 << 20);
    for p in 0..24 {
        client
            .ok(&format!("INSERT INTO t (p, v, w) VALUES ({p}, 1, '{long}')"))
            .await;
    }
    client
        .ok("CREATE MATERIALIZED VIEW by_v AS SELECT * FROM t WHERE p IS NOT NULL AND v IS NOT NULL PRIMARY KEY (v, p)")
        .await;
    client.views_built().await;
    assert_eq!(client.rows("SELECT count(*) FROM by_v").await, ["24"]);
    client.database.close().await.unwrap();
}
