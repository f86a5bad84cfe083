//! The program's salvage of a damaged directory: what was not damaged comes out whole, the rest is named.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::backup::Server;
use crate::program::helenus;

/// Every file below a directory with what it holds.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap_or_default());
        }
    }
    found
}

fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = helenus(arguments).output().unwrap();
    (status.code(), String::from_utf8([stdout, stderr].concat()).unwrap())
}

const COUNTS: [&str; 2] = ["SELECT count(*) FROM ks.moved", "SELECT count(*), sum(v) FROM ks.kept"];

/// A database of two tables, one of them partly in a store of its own, with deleted rows; stopped.
async fn made(data: &str, folder: &Path) -> Vec<Vec<u8>> {
    let mut server = Server::start(data, folder).await;
    for statement in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.moved (k int PRIMARY KEY, v int) WITH helenus_partitions = 3",
        "CREATE TABLE ks.kept (k int, c int, v int, PRIMARY KEY (k, c))",
        "CREATE INDEX ON ks.kept (v)",
        "ALTER TABLE ks.moved WITH helenus_lift = 1",
    ] {
        server.ask(statement).await;
    }
    for n in 0..20 {
        let rows = (0..15).map(|row| {
            let k = n * 15 + row;
            format!(
                "INSERT INTO ks.moved (k, v) VALUES ({k}, 1); INSERT INTO ks.kept (k, c, v) VALUES ({n}, {row}, {k});"
            )
        });
        let rows: String = rows.collect();
        server.ask(&format!("BEGIN BATCH {rows} APPLY BATCH")).await;
    }
    server.ask("DELETE FROM ks.kept WHERE k = 3").await;
    server.ask("DELETE FROM ks.kept WHERE k = 4 AND c > 7").await;
    server.ask("DELETE FROM ks.kept WHERE k = 5 AND c = 1").await;
    let mut counts = Vec::new();
    for text in COUNTS {
        counts.push(server.ask(text).await);
    }
    server.stop();
    counts
}

async fn is_salvaged(scheme: &str, of_other_store: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let url = |name: &str| format!("{scheme}:{}", path(name).display());
    let counts = made(&url("data"), folder.path()).await;
    let restored = async |from: &str, to: &str| {
        let (code, text) = run(&["restore", "--data", &url(to), "--from", path(from).to_str().unwrap()]);
        assert_eq!(code, Some(0), "{text}");
        let mut server = Server::start(&url(to), folder.path()).await;
        let mut counts = Vec::new();
        for text in COUNTS {
            counts.push(server.ask(text).await);
        }
        server.stop();
        (counts, text)
    };

    // Nothing is damaged: everything comes out.
    let (code, text) = run(&[
        "salvage",
        "--data",
        &url("data"),
        "--to",
        path("whole").to_str().unwrap(),
    ]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("ks.moved: 300 rows") && !text.contains("lost"), "{text}");
    assert_eq!(restored("whole", "again").await.0, counts);

    // The files of the other store are damaged: the table that has nothing there is whole.
    let beside = path("data").join("stores");
    let damaged = |file: &&PathBuf| file.starts_with(&beside) && file.to_string_lossy().contains(of_other_store);
    let all = files(&path("data"));
    let mut hit = 0;
    for (file, bytes) in all.iter().filter(|(file, bytes)| damaged(file) && !bytes.is_empty()) {
        let mut bytes = bytes.clone();
        let end = bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0);
        bytes[end / 2] ^= 4;
        fs::write(file, bytes).unwrap();
        hit += 1;
    }
    assert!(hit > 0, "{:?}", all.keys());
    let before = files(&path("data"));
    let (code, text) = run(&[
        "salvage",
        "--data",
        &url("data"),
        "--to",
        path("part").to_str().unwrap(),
    ]);
    assert_eq!(code, Some(3), "{text}");
    assert!(files(&path("data")) == before, "the damaged directory was changed");
    let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(line("ks.moved").ends_with("INCOMPLETE"), "{text}");
    assert!(line("ks.kept").ends_with("; complete"), "{text}");
    assert!(text.contains("stores/1"), "{text}");
    let (after, told) = restored("part", "rest").await;
    assert_eq!(after[1], counts[1], "a table that was not damaged");
    assert!(told.contains("of a salvage"), "{told}");

    // Refusals.
    let inside = path("data").join("inside");
    let (code, text) = run(&["salvage", "--data", &url("data"), "--to", inside.to_str().unwrap()]);
    assert!(code == Some(1) && text.contains("is only read"), "{code:?} {text}");
    let (code, text) = run(&["salvage", "--data", &url("none"), "--to", path("x").to_str().unwrap()]);
    assert!(code == Some(1) && text.contains("there is no data"), "{code:?} {text}");
    let server = Server::start(&url("again"), folder.path()).await;
    let (code, text) = run(&["salvage", "--data", &url("again"), "--to", path("y").to_str().unwrap()]);
    assert!(code == Some(1) && text.contains("in use"), "{code:?} {text}");
    server.stop();
}

#[tokio::test]
async fn a_damaged_directory_is_salvaged() {
    is_salvaged("file", ".jnl").await;
}

#[cfg(feature = "slate")]
#[tokio::test]
async fn a_damaged_bucket_is_salvaged() {
    is_salvaged("slate+file", ".sst").await;
}

/// What the main store lost may be a truncation or a map: no table is complete, though its rows lie elsewhere undamaged.
#[tokio::test]
async fn no_table_is_complete_where_the_catalog_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let url = format!("file:{}", data.display());
    let mut server = Server::start(&url, folder.path()).await;
    for statement in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.moved (k int PRIMARY KEY, v int) WITH helenus_partitions = 2",
        "INSERT INTO ks.moved (k, v) VALUES (1, 1)",
        "ALTER TABLE ks.moved WITH helenus_lift = 0",
        "ALTER TABLE ks.moved WITH helenus_lift = 1",
        "TRUNCATE ks.moved",
    ] {
        server.ask(statement).await;
    }
    server.stop();
    let log = data.join("engine/0.jnl");
    let mut bytes = fs::read(&log).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    bytes[end - 40] ^= 255;
    fs::write(&log, bytes).unwrap();
    let to = folder.path().join("part");
    let (code, text) = run(&["salvage", "--data", &url, "--to", to.to_str().unwrap()]);
    assert_eq!(code, Some(3), "{text}");
    let line = text.lines().find(|line| line.starts_with("ks.moved")).unwrap();
    assert!(line.ends_with("INCOMPLETE"), "{text}");
}
