//! Every format on disk that was ever written still opens. `UPDATE_GOLDENFILES=1` rewrites the fixtures of the newest
//! version.
//!
//! A store's directory is kept as text: `directory PATH`, or `file PATH` and its bytes in hex, 64 a line.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use super::*;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/storage")
        .join(name)
}

fn updating() -> bool {
    std::env::var_os("UPDATE_GOLDENFILES").is_some()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

/// Rows that use every part of the format.
fn rows() -> Vec<(&'static str, Row)> {
    let expiry = Some(Expiry {
        at_seconds: 1_700_000_100,
        ttl_seconds: 100,
    });
    let deletion = Deletion {
        timestamp: 1_700_000_000_000_000,
        at_seconds: 1_700_000_000,
    };
    let marker = Marker {
        timestamp: 1_700_000_000_000_001,
        expiry: None,
    };
    let path = Some(Bytes::from_static(b"\x00key"));
    let tombstone = CellState::Tombstone {
        at_seconds: 1_700_000_000,
    };
    let expiring = CellState::Live {
        value: Bytes::from_static(b"soon gone"),
        expiry,
    };
    vec![
        ("nothing", Row::default()),
        (
            "marker only",
            Row {
                marker: Some(marker),
                ..Row::default()
            },
        ),
        (
            "marker that expires",
            Row {
                marker: Some(Marker { expiry, ..marker }),
                ..Row::default()
            },
        ),
        (
            "row deletion",
            Row {
                deletion: Some(deletion),
                ..Row::default()
            },
        ),
        (
            "plain cells",
            Row {
                marker: Some(marker),
                ..row_of(&[cell(1, marker.timestamp, "a"), cell(2, marker.timestamp, "")])
            },
        ),
        (
            "cells of several times",
            row_of(&[
                cell(0, -5, "negative"),
                cell(14, i64::MAX, "b"),
                cell(15, i64::MIN, "c"),
                cell(u32::MAX, 0, "d"),
            ]),
        ),
        (
            "collections, tombstones, expiry, deletion",
            Row {
                marker: Some(Marker { expiry, ..marker }),
                deletion: Some(Deletion {
                    timestamp: 5,
                    at_seconds: -1,
                }),
                complex: vec![(ColumnId(3), deletion), (ColumnId(400), deletion)],
                position: None,
                cells: vec![
                    Cell {
                        state: tombstone.clone(),
                        ..cell(2, 6, "")
                    },
                    Cell {
                        path: Some(Bytes::new()),
                        ..cell(3, marker.timestamp, "of the empty key")
                    },
                    Cell {
                        path: path.clone(),
                        state: expiring,
                        ..cell(3, marker.timestamp + 1, "")
                    },
                    Cell {
                        path,
                        state: tombstone,
                        ..cell(400, marker.timestamp + 2, "")
                    },
                ],
            },
        ),
    ]
}

#[test]
fn rows_of_version_1_decode() {
    let path = fixture("rows-1.txt");
    if updating() {
        let text: String = rows()
            .iter()
            .map(|(name, row)| format!("{name}: {}\n", hex(&row.encode())))
            .collect();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    }
    let text = fs::read_to_string(&path).unwrap();
    let rows = rows();
    assert_eq!(text.lines().count(), rows.len());
    for (line, (name, row)) in text.lines().zip(rows) {
        let (found, bytes) = line.split_once(": ").unwrap();
        assert_eq!(found, name);
        assert_eq!(Row::decode(&unhex(bytes)).unwrap(), row, "{name}");
        assert_eq!(hex(&row.encode()), bytes, "{name} is still written so");
    }
}

fn pack(directory: &Path, below: &Path, text: &mut String) {
    let mut entries: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        let name = path.strip_prefix(below).unwrap().display();
        if path.is_dir() {
            writeln!(text, "directory {name}").unwrap();
            pack(&path, below, text);
        } else if path.file_name().unwrap() != "helenus.lock" {
            writeln!(text, "file {name}").unwrap();
            for line in fs::read(&path).unwrap().chunks(64) {
                writeln!(text, "{}", hex(line)).unwrap();
            }
        }
    }
}

fn unpack(text: &str, into: &Path) {
    fs::create_dir_all(into).unwrap();
    let mut file = None;
    for line in text.lines() {
        match line.split_once(' ') {
            Some(("directory", name)) => fs::create_dir(into.join(name)).unwrap(),
            Some(("file", name)) => file = Some(fs::File::create(into.join(name)).unwrap()),
            _ => std::io::Write::write_all(file.as_mut().unwrap(), &unhex(line)).unwrap(),
        }
    }
}

/// The directories' content: some of it as tables, some of it in the log.
async fn write_all(store: &Store) {
    for (n, (_, row)) in rows().into_iter().enumerate() {
        let mut batch = Batch::new();
        batch.upsert(key_of(1, "k", &n.to_string()), row);
        batch.put(Space::Catalog, vec![b'0' + u8::try_from(n).unwrap()], "schema");
        batch.put(Space::Indexes, b"entry".to_vec(), "");
        batch.put(Space::Feed, b"change".to_vec(), "");
        store.commit(batch).await.unwrap();
        if n == 3 {
            store.flush().await.unwrap();
        }
    }
    let mut batch = Batch::new();
    batch.put_partition_deletion(
        2,
        5,
        b"k",
        Deletion {
            timestamp: 3,
            at_seconds: 1,
        },
    );
    let start = std::ops::Bound::Included(vec![0, 1]);
    let deletion = Deletion {
        timestamp: 4,
        at_seconds: 1,
    };
    batch.put_range_tombstone(
        2,
        5,
        b"k",
        RangeTombstone {
            start,
            end: std::ops::Bound::Unbounded,
            deletion,
        },
    );
    store.commit(batch).await.unwrap();
}

async fn check(store: &Store) {
    let now = store.snapshot();
    for (n, (name, row)) in rows().into_iter().enumerate() {
        let found = store
            .get(Space::Rows, &key_of(1, "k", &n.to_string()), &now)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(Row::decode(&found).unwrap(), row, "{name}");
    }
    assert_eq!(
        keys(store, Space::Catalog, &KeyRange::all(), Order::Forward).await,
        "0 1 2 3 4 5 6"
    );
    assert_eq!(
        keys(store, Space::Indexes, &KeyRange::all(), Order::Forward).await,
        "entry"
    );
    assert_eq!(
        keys(store, Space::Feed, &KeyRange::all(), Order::Forward).await,
        "change"
    );
    let deletions = store.deletions(2, 5, b"k", &now).await.unwrap();
    assert_eq!(
        (
            deletions.timestamp_covering(&[0, 0]),
            deletions.timestamp_covering(&[9])
        ),
        (Some(3), Some(4))
    );
}

async fn directory_opens(scheme: &str, name: &str) {
    let place = Place::new(scheme);
    let (Url::File(directory) | Url::SlateFile(directory)) = &place.url else {
        panic!("no directory")
    };
    if updating() {
        let store = place.open().await;
        write_all(&store).await;
        store.close().await.unwrap();
        // Opening cuts the log to its content.
        place.open().await.close().await.unwrap();
        let mut text = String::new();
        pack(directory, directory, &mut text);
        fs::create_dir_all(fixture(name).parent().unwrap()).unwrap();
        fs::write(fixture(name), text).unwrap();
        fs::remove_dir_all(directory).unwrap();
    }
    unpack(&fs::read_to_string(fixture(name)).unwrap(), directory);
    for _ in 0..2 {
        let store = place.open().await;
        check(&store).await;
        put(&store, Space::Feed, &[("change", "of now")]).await;
        store.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fjall_directory_of_version_1_opens() {
    directory_opens("file", "file-1.txt").await;
}

#[cfg(feature = "slate")]
#[tokio::test(flavor = "multi_thread")]
async fn a_slatedb_directory_of_version_1_opens() {
    directory_opens("slate+file", "slate-1.txt").await;
}
