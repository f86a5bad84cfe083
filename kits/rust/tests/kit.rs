//! The kit's own tests; they are also what its users copy from.

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;
use std::time::Duration;

use helenus_test::{Server, Start};
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use serde_json::json;

async fn connect(server: &Server) -> Session {
    let profile = scylla::client::execution_profile::ExecutionProfile::builder()
        .retry_policy(std::sync::Arc::new(scylla::policies::retry::FallthroughRetryPolicy))
        .build();
    let builder = SessionBuilder::new()
        .known_node(server.address())
        .default_execution_profile_handle(profile.into_handle());
    let session = builder.build().await.unwrap();
    let keyspace =
        "CREATE KEYSPACE IF NOT EXISTS shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
    session.query_unpaged(keyspace, ()).await.unwrap();
    session.use_keyspace("shop", false).await.unwrap();
    session
}

async fn rows(session: &Session, table: &str) -> Vec<i32> {
    let answer = session
        .query_unpaged(format!("SELECT k FROM {table}"), ())
        .await
        .unwrap();
    answer
        .into_rows_result()
        .unwrap()
        .rows::<(i32,)>()
        .unwrap()
        .map(|row| row.unwrap().0)
        .collect()
}

// What a user writes: it moves the clock, meets a fault and a throttle.
#[tokio::test]
async fn a_cart_expires() {
    let server = helenus_test::server();
    let cql = connect(&server).await;
    let table = "CREATE TABLE IF NOT EXISTS cart (k int PRIMARY KEY) WITH cosmosdb_provisioned_throughput = 400";
    cql.query_unpaged(table, ()).await.unwrap();
    let put = cql
        .prepare("INSERT INTO cart (k) VALUES (?) USING TTL 60")
        .await
        .unwrap();
    server.faults(json!([{ "action": "throttle", "table": "cart", "statement": "write", "count": 1 }]));
    assert!(cql.execute_unpaged(&put, (1,)).await.is_err());
    assert_eq!(server.fault_plan()["fault"][0]["hit"], 1);
    let mut k = 0;
    while cql.execute_unpaged(&put, (k,)).await.is_ok() {
        k += 1;
    }
    server.assert_throttled();
    server.advance(Duration::from_secs(61));
    assert!(rows(&cql, "cart").await.is_empty());
}

#[tokio::test]
async fn charges_are_counted() {
    let server = helenus_test::server();
    let cql = connect(&server).await;
    cql.query_unpaged("CREATE TABLE IF NOT EXISTS charged (k int PRIMARY KEY)", ())
        .await
        .unwrap();
    let before = server.charge("shop");
    cql.query_unpaged("INSERT INTO charged (k) VALUES (1)", ())
        .await
        .unwrap();
    assert!(server.charge("shop") > before);
    server.assert_charge_max("shop", before + 100.0);
}

/// Two hundred tests in two threads, each on a table of the same name.
#[test]
fn tests_do_not_interfere() {
    let (next, servers) = (AtomicI32::new(0), Mutex::new(HashSet::new()));
    // Settings that no other test has, so that only these two threads share the servers.
    let start = Start::default().set("cluster-name", "interference");
    let work = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= 200 {
                return;
            }
            let server = helenus_test::server_with(start.clone());
            servers.lock().unwrap().insert(server.pid());
            runtime.block_on(async {
                let cql = connect(&server).await;
                cql.query_unpaged("CREATE TABLE IF NOT EXISTS same (k int PRIMARY KEY)", ())
                    .await
                    .unwrap();
                cql.query_unpaged(format!("INSERT INTO same (k) VALUES ({number})"), ())
                    .await
                    .unwrap();
                assert_eq!(rows(&cql, "same").await, [number]);
            });
        }
    };
    thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    assert_eq!(servers.lock().unwrap().len(), 2);
}

#[test]
fn the_server_ends_with_a_killed_runner() {
    const NAME: &str = "the_server_ends_with_a_killed_runner";
    if std::env::var_os("HELENUS_KIT_CHILD").is_some() {
        println!("pid {}", helenus_test::server().pid());
        thread::sleep(Duration::from_secs(60));
    }
    let mut runner = Command::new(std::env::current_exe().unwrap())
        .args([NAME, "--exact", "--nocapture"])
        .env("HELENUS_KIT_CHILD", "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(runner.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    let pid = lines
        .filter_map(|line| line.split_once("pid ").map(|(_, pid)| pid.to_owned()))
        .next()
        .unwrap();
    runner.kill().unwrap();
    runner.wait().unwrap();
    assert!(
        (0..500).any(|_| is_gone(&pid) || {
            thread::sleep(Duration::from_millis(10));
            false
        }),
        "the server {pid} is still there"
    );
}

/// Whether a process has ended. Where no process reaps it, it stays as a zombie.
fn is_gone(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.map_or(true, |stat| {
        stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('Z'))
    })
}

#[test]
fn refusals_name_their_cause() {
    let refused = |start: Start| start.start().unwrap_err();
    assert!(refused(Start::default().program("/nowhere/helenus")).contains("is not a program"));
    assert!(refused(Start::default().set("durability", "never")).contains("durability"));
    let folder = Folder::new("record");
    let program = script(&folder.0, "echo '{\"api\":2}'; cat >/dev/null");
    assert_eq!(
        refused(Start::default().program(program)),
        "the server's record has version 2; this crate reads 1"
    );
    let back = helenus_test::server().try_ask("POST", "/api/clock", Some(&json!({ "set_ms": 0 })));
    assert!(back.as_ref().is_err_and(|error| error.contains("409")), "{back:?}");
}

#[test]
fn a_carried_program_is_extracted_once() {
    let folder = Folder::new("carried");
    let program = b"#!/bin/sh\necho carried\n";
    let paths: Vec<PathBuf> = thread::scope(|scope| {
        let extract = || helenus_test::extract(program, &folder.0).unwrap();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(extract)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(paths.windows(2).all(|two| two[0] == two[1]));
    assert_eq!(Command::new(&paths[0]).output().unwrap().stdout, b"carried\n");
    assert_eq!(fs::read_dir(paths[0].parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn cosmos_needs_an_account() {
    let server = helenus_test::server_with(Start::default().cosmos());
    assert!(server.account().is_some() && server.certificate_pem().is_some() && server.tls_address().is_some());
}

/// A folder that goes with its test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("helenus-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn script(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("program");
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    path
}
