//! Stores of one server that belong together: a start takes all of them or leaves all as they are, and notices those of different moments.

#![expect(clippy::unwrap_used, reason = "a test says no better what went wrong")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::Client;
use helenus_base::clock::Clock;
use helenus_cql::cql::Error;
use helenus_cql::cql::{Database, SessionState};

async fn open(folder: &Path, create: bool) -> Result<Client, Error> {
    let clock = Clock::manual(1_700_000_000_000_000);
    // Folders of SlateDB's stores are told by their names.
    let is_slate = folder
        .file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with("slate"));
    let scheme = if is_slate { "slate+file" } else { "file" };
    let mut options = Client::options(&format!("{scheme}:{}", folder.display()), clock.clone());
    options.store.create = create;
    let mut client = Client::over(Database::open(options).await?, SessionState::default(), clock);
    client.session.keyspace = Some("ks".into());
    Ok(client)
}

/// Every file below a folder with what it holds, but for who holds the stores.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(inner).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.ends_with("helenus.lock") {
                found.insert(path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// Copies a folder as it is now, which may be used meanwhile by a server that is idle: what a kill would leave.
fn copy(from: &Path, to: &Path) {
    if to.exists() {
        fs::remove_dir_all(to).unwrap();
    }
    for (path, bytes) in files(from) {
        fs::create_dir_all(to.join(&path).parent().unwrap()).unwrap();
        fs::write(to.join(path), bytes).unwrap();
    }
}

/// A table of four physical partitions, of which two have stores of their own.
async fn make(folder: &Path) -> Client {
    let client = open(folder, false).await.unwrap();
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    client
        .ok(&format!("CREATE KEYSPACE ks WITH replication = {replication}"))
        .await;
    client
        .ok("CREATE TABLE t (k int PRIMARY KEY, v int) WITH helenus_partitions = 4")
        .await;
    client.ok("ALTER TABLE t WITH helenus_lift = 1").await;
    client.ok("ALTER TABLE t WITH helenus_lift = 2").await;
    fill(&client, 1).await;
    client
}

async fn fill(client: &Client, round: i32) {
    for k in 0..40 {
        client
            .ok(&format!("INSERT INTO t (k, v) VALUES ({k}, {})", k * round))
            .await;
    }
}

async fn sum(client: &Client) -> Vec<String> {
    client.rows("SELECT sum(v) FROM t").await
}

/// Starts on a folder that is to be refused, and holds it against what it was.
async fn refused(folder: &Path, what: &str) -> String {
    let before = files(folder);
    let told = open(folder, false).await.err().expect(what).to_string();
    let after = files(folder);
    let is_same = |path: &PathBuf| before.get(path) == after.get(path);
    let changed: Vec<_> = before
        .keys()
        .chain(after.keys())
        .filter(|path| !is_same(path))
        .collect();
    assert!(
        changed.is_empty(),
        "{what}: refused with \"{told}\", and changed {changed:?}"
    );
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_of_one_store_leaves_all_as_they_were() {
    let place = tempfile::tempdir().unwrap();
    let [data, killed, closed, trial] = ["data", "killed", "closed", "trial"].map(|name| place.path().join(name));
    let client = make(&data).await;
    copy(&data, &killed);
    let expected = sum(&client).await;
    client.database.close().await.unwrap();
    drop(client);
    copy(&data, &closed);
    for whole in [&killed, &closed] {
        for (gone, named) in [
            (
                "stores/2/engine/keyspaces/1/current",
                "stores/2/engine/keyspaces/1/current",
            ),
            ("stores/1/engine/version", "stores/1/engine/version"),
            ("stores/2/acknowledged", "stores/2 was used"),
            ("stores/2/engine/0.jnl", "its data in engine/ is gone"),
        ] {
            copy(whole, &trial);
            fs::remove_file(trial.join(gone)).unwrap();
            let told = refused(&trial, gone).await;
            assert!(told.contains(named), "{told}");
        }
        copy(whole, &trial);
        fs::write(trial.join("stores/1/helenus.format"), "helenus store 9, fjall 3\n").unwrap();
        refused(&trial, "a format").await;
        copy(whole, &trial);
        let client = open(&trial, false).await.unwrap();
        assert_eq!(sum(&client).await, expected);
        client.ok("INSERT INTO t (k, v) VALUES (1000, 1)").await;
        client.database.close().await.unwrap();
    }
}

/// The stores' directories, by themselves and together, of a copy before more was written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stores_of_different_moments_are_refused_by_name() {
    let place = tempfile::tempdir().unwrap();
    let [data, earlier, later, trial] = ["data", "earlier", "later", "trial"].map(|name| place.path().join(name));
    let client = make(&data).await;
    copy(&data, &earlier);
    fill(&client, 2).await;
    // The pace of notes.
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    copy(&data, &later);
    let expected = sum(&client).await;
    client.database.close().await.unwrap();
    drop(client);
    let mut laters = vec![later];
    laters.push(data);
    for later in laters {
        for (folder, older, newer) in [
            ("stores", "stores/1", ""),
            ("stores/1", "stores/1", ""),
            ("stores/2", "stores/2", ""),
        ] {
            copy(&later, &trial);
            copy(&earlier.join(folder), &trial.join(folder));
            let told = refused(&trial, folder).await;
            let [older, newer] = [older, newer].map(|name| trial.join(name).display().to_string());
            let [older, newer] = [older, newer].map(|name| name.trim_end_matches('/').to_owned());
            assert!(
                told.contains(&format!(
                    "the store in {older} is of an earlier moment than the one in {newer}"
                )),
                "{told}"
            );
            // The word is taken, and needed once.
            open(&trial, true).await.unwrap().database.close().await.unwrap();
            open(&trial, false).await.unwrap().database.close().await.unwrap();
        }
        // The main store's own directory, with all but the others.
        copy(&earlier, &trial);
        copy(&later.join("stores"), &trial.join("stores"));
        let told = refused(&trial, "main").await;
        assert!(
            told.contains("is of an earlier moment than") && told.contains("stores/"),
            "{told}"
        );
        // Both of one moment are served, the earlier and the later one.
        copy(&earlier, &trial);
        open(&trial, false).await.unwrap().database.close().await.unwrap();
        copy(&later, &trial);
        assert_eq!(sum(&open(&trial, false).await.unwrap()).await, expected);
    }
}

/// The databases of a bucket, each with the record of what was put there, of a copy before more was written.
#[cfg(feature = "slate")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn databases_of_different_moments_are_refused_by_name() {
    let place = tempfile::tempdir().unwrap();
    let [data, earlier, later, trial] =
        ["slate-data", "slate-earlier", "slate-later", "slate-trial"].map(|name| place.path().join(name));
    let client = make(&data).await;
    // The pace of notes.
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    copy(&data, &earlier);
    fill(&client, 2).await;
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    copy(&data, &later);
    let expected = sum(&client).await;
    client.database.close().await.unwrap();
    drop(client);
    let exchange = |database: &str, from: &Path| {
        copy(&from.join(database), &trial.join(database));
        let record = match database {
            "engine" => "acknowledged".to_owned(),
            beside => format!("acknowledged.{}", beside.replace('/', ".")),
        };
        fs::copy(from.join(&record), trial.join(&record)).unwrap();
    };
    for later in [&later, &data] {
        for database in ["stores/1", "stores/2", "engine"] {
            copy(later, &trial);
            exchange(database, &earlier);
            let told = refused(&trial, database).await;
            let named = format!(
                "the store in {} is of an earlier moment",
                trial.join(database).display()
            );
            assert!(told.contains(&named), "{told}");
            // Of an earlier moment than one that is of a later one.
            copy(&earlier, &trial);
            exchange(database, later);
            let told = refused(&trial, database).await;
            let newer = format!("than the one in {}", trial.join(database).display());
            assert!(told.contains(&newer), "{told}");
        }
        // All of one moment are served, the earlier and the later one.
        copy(&earlier, &trial);
        open(&trial, false).await.unwrap().database.close().await.unwrap();
        copy(later, &trial);
        let client = open(&trial, false).await.unwrap();
        assert_eq!(sum(&client).await, expected);
        client.ok("ALTER TABLE t WITH helenus_lower = 1").await;
        fill(&client, 3).await;
        client.ok("ALTER TABLE t WITH helenus_lift = 0").await;
        client.database.close().await.unwrap();
        drop(client);
        open(&trial, false).await.unwrap().database.close().await.unwrap();
    }
}

/// A store that is lowered is no more: its number stays noted and concerns none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn moves_between_stores_raise_no_false_alarm() {
    let place = tempfile::tempdir().unwrap();
    let [data, killed] = ["data", "killed"].map(|name| place.path().join(name));
    let client = make(&data).await;
    drop(client.database.close().await);
    drop(client);
    for round in 0..4 {
        let client = open(&data, false).await.unwrap();
        fill(&client, round).await;
        let verb = if round % 2 == 0 { "lower" } else { "lift" };
        client.ok(&format!("ALTER TABLE t WITH helenus_{verb} = 1")).await;
        fill(&client, round + 7).await;
        let expected = sum(&client).await;
        copy(&data, &killed);
        client.database.close().await.unwrap();
        drop(client);
        let client = open(&killed, false).await.unwrap();
        assert_eq!(sum(&client).await, expected);
    }
}
