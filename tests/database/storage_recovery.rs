//! What a store holds after its process was killed: everything that was acknowledged, whole batches, and never a false alarm.
//!
//! The test starts itself again as a child that writes and says what was acknowledged, kills it at some instant, and opens the store.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test outside of test functions too"
)]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use bytes::Bytes;
use helenus_base::clock::Clock;
use helenus_storage::storage::{
    Batch, Cell, CellState, ColumnId, KeyRange, Options, Order, Row, Snapshot, Space, Store, Url, key,
};

const WRITERS: u32 = 8;
const CHILD: &str = "HELENUS_TEST_STORE";
const DURABILITY: &str = "HELENUS_TEST_DURABILITY";
const VALUE_BYTES: &str = "HELENUS_TEST_VALUE_BYTES";

async fn open(url: &str, durability: &str) -> Store {
    let options = Options {
        durability: durability.parse().unwrap(),
        ..Options::default()
    };
    Store::open(&url.parse::<Url>().unwrap(), &options, Clock::system())
        .await
        .unwrap()
}

fn row_key(writer: u32) -> Vec<u8> {
    key::row_key(&key::partition_prefix(1, i64::from(writer), b"k"), b"c")
}

fn feed_key(writer: u32, n: i64) -> Vec<u8> {
    [&writer.to_be_bytes()[..], &n.to_be_bytes()[..]].concat()
}

async fn last_of(store: &Store, at: &Snapshot, writer: u32) -> i64 {
    let row = store.get(Space::Rows, &row_key(writer), at).await.unwrap();
    row.map_or(0, |row| Row::decode(&row).unwrap().cells[0].timestamp)
}

/// One step of a writer: its row, an entry of its own, and a counter, in one batch.
fn step(writer: u32, n: i64, value_bytes: usize) -> Batch {
    let state = CellState::Live {
        value: Bytes::from_static(b"v"),
        expiry: None,
    };
    let cell = Cell {
        column: ColumnId(1),
        path: None,
        timestamp: n,
        state,
    };
    let mut batch = Batch::new();
    batch.upsert(
        row_key(writer),
        Row {
            cells: vec![cell],
            ..Row::default()
        },
    );
    batch.put(Space::Feed, feed_key(writer, n), vec![7; value_bytes]);
    batch.put(Space::Catalog, writer.to_be_bytes().to_vec(), n.to_be_bytes().to_vec());
    batch
}

/// The child: writes until it is killed, and prints `writer n` after each acknowledgement.
#[test]
#[ignore = "the child of the other tests"]
fn child() {
    let url = std::env::var(CHILD).unwrap();
    let value_bytes = std::env::var(VALUE_BYTES).unwrap().parse().unwrap();
    let durability = std::env::var(DURABILITY).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = open(&url, &durability).await;
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let store = store.clone();
                tokio::spawn(async move {
                    let mut n = last_of(&store, &store.snapshot(), writer).await;
                    while n < i64::MAX {
                        n += 1;
                        store.commit(step(writer, n, value_bytes)).await.unwrap();
                        let line = format!("acknowledged {writer} {n}\n");
                        // Past the test harness, which would keep the line to itself.
                        std::io::stderr().write_all(line.as_bytes()).unwrap();
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.await.unwrap();
        }
    });
}

/// When a child is killed.
#[derive(Clone, Copy)]
enum Kill {
    /// So long after its start: it may still be opening the store.
    AfterStart(Duration),
    /// So long after its first acknowledgement.
    AfterWrite(Duration),
}

/// Runs the child for a while, kills it, and returns the last step of each writer that it said was acknowledged.
fn run_and_kill(url: &str, durability: &str, value_bytes: usize, kill: Kill) -> HashMap<u32, i64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "storage_recovery::child", "--ignored", "--nocapture"])
        .envs([
            (CHILD, url),
            (DURABILITY, durability),
            (VALUE_BYTES, &value_bytes.to_string()),
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = child.stderr.take().unwrap();
    let (writes, written) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut acknowledged = HashMap::new();
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let words: Vec<_> = line.split(' ').collect();
            match words.as_slice() {
                // The last line may be cut by the kill.
                ["acknowledged", writer, n] => {
                    if let (Ok(writer), Ok(n)) = (writer.parse::<u32>(), n.parse::<i64>()) {
                        if acknowledged.is_empty() {
                            // An error means that the kill waits for no write.
                            let _ = writes.send(());
                        }
                        acknowledged.insert(writer, n);
                    }
                }
                _ => assert!(!line.contains("panicked"), "{line}"),
            }
        }
        acknowledged
    });
    match kill {
        Kill::AfterStart(after) => std::thread::sleep(after),
        Kill::AfterWrite(after) => {
            let within = Duration::from_secs(60);
            written.recv_timeout(within).expect("the child never wrote");
            std::thread::sleep(after);
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap()
}

async fn check(store: &Store, acknowledged: &HashMap<u32, i64>) {
    let at = store.snapshot();
    let mut entries = HashMap::<u32, i64>::new();
    let visit = |key: &[u8], _: &[u8]| {
        let writer = u32::from_be_bytes(key[..4].try_into().unwrap());
        let n = i64::from_be_bytes(key[4..].try_into().unwrap());
        let before = entries.insert(writer, n).unwrap_or(0);
        assert_eq!(n, before + 1, "an entry of writer {writer} is missing");
        ControlFlow::Continue(())
    };
    store
        .scan(Space::Feed, &KeyRange::all(), Order::Forward, &at, visit)
        .await
        .unwrap();
    for writer in 0..WRITERS {
        let last = last_of(store, &at, writer).await;
        let said = acknowledged.get(&writer).copied().unwrap_or(0);
        assert!(
            last >= said,
            "writer {writer}: {said} was acknowledged, {last} is there"
        );
        assert_eq!(
            entries.get(&writer).copied().unwrap_or(0),
            last,
            "half a batch of writer {writer}"
        );
        let counter = store.get(Space::Catalog, &writer.to_be_bytes(), &at).await.unwrap();
        assert_eq!(
            counter.map_or(0, |n| i64::from_be_bytes(n[..].try_into().unwrap())),
            last
        );
    }
}

fn kill_and_recover(scheme: &str, durability: &str, value_bytes: usize, default_cycles: u64) {
    let cycles = std::env::var("HELENUS_TEST_KILLS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(default_cycles);
    let directory = tempfile::tempdir().unwrap();
    let url = format!("{scheme}:{}", Path::new(directory.path()).join("data").display());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let mut most = 0;
    for cycle in 0..cycles {
        let after = Duration::from_millis(60 + cycle * 131 % 400);
        // The last one, so that a slow machine proves something too.
        let kill = if cycle + 1 == cycles {
            Kill::AfterWrite(after)
        } else {
            Kill::AfterStart(after)
        };
        let acknowledged = run_and_kill(&url, durability, value_bytes, kill);
        most = most.max(acknowledged.values().copied().max().unwrap_or(0));
        runtime.block_on(async {
            let store = open(&url, durability).await;
            check(&store, &acknowledged).await;
            store.close().await.unwrap();
        });
    }
    assert!(most > 0, "the child never wrote");
}

#[test]
fn a_kill_loses_nothing_acknowledged() {
    kill_and_recover("file", "group", 20, 8);
}

/// What the operating system has survives the end of the process.
#[test]
fn a_kill_loses_nothing_acknowledged_without_syncs() {
    kill_and_recover("file", "os", 20, 3);
}

/// Large values, so that logs and memtables are rotated and tables written meanwhile.
#[test]
fn a_kill_amid_flushes_loses_nothing_acknowledged() {
    kill_and_recover("file", "os", 200_000, 6);
}

#[cfg(feature = "slate")]
#[test]
fn a_kill_loses_nothing_acknowledged_with_slate() {
    kill_and_recover("slate+file", "group", 20, 3);
}

/// On a real file system that is full: `HELENUS_TEST_TINY=<directory on a file system of 200 MiB>`.
#[test]
#[ignore = "needs a small file system of its own"]
fn a_full_disk_recovers() {
    let directory = std::path::PathBuf::from(std::env::var("HELENUS_TEST_TINY").unwrap());
    let scheme = std::env::var("HELENUS_TEST_SCHEME").unwrap_or_else(|_| "file".to_owned());
    let ballast = directory.join("ballast");
    std::fs::write(&ballast, vec![1; 140 << 20]).unwrap();
    let url = format!("{scheme}:{}", directory.join("data").display());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = open(&url, "group").await;
        let mut acknowledged = 0;
        let refusal = loop {
            match store.commit(step(0, acknowledged + 1, 100_000)).await {
                Ok(_) => acknowledged += 1,
                Err(error) => break error,
            }
        };
        println!("full after {acknowledged}: {refusal}");
        assert!(acknowledged > 10, "{refusal}");
        for _ in 0..3 {
            let refusal = store.commit(step(0, acknowledged + 1, 100_000)).await.unwrap_err();
            println!("still: {refusal}");
        }
        if scheme == "file" {
            // Reads go on. SlateDB ends itself when its log cannot be put, until it is opened again.
            assert_eq!(last_of(&store, &store.snapshot(), 0).await, acknowledged);
        }
        std::fs::remove_file(&ballast).unwrap();
        for _ in 0..50 {
            acknowledged += 1;
            store.commit(step(0, acknowledged, 100_000)).await.unwrap();
        }
        check(&store, &HashMap::from([(0, acknowledged)])).await;
        store.close().await.unwrap();
        let store = open(&url, "group").await;
        check(&store, &HashMap::from([(0, acknowledged)])).await;
        store.close().await.unwrap();
    });
}
