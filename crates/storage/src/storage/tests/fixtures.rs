//! Rows are written as before (`UPDATE_GOLDENFILES=1` rewrites them), and directories of another format number are refused.
//!
//! A store's directory is kept as text: `directory PATH`, or `file PATH` and its bytes in hex, 64 a line.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use super::damage::{directory, files};
use super::*;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
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
#[expect(clippy::too_many_lines, reason = "the rows of the fixture, one after another")]
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

/// A directory of a program before this format number is refused by name, with advice, and every byte stays.
async fn directory_is_refused(scheme: &str, name: &str) {
    let place = Place::new(scheme);
    let directory = directory(&place);
    unpack(&fs::read_to_string(fixture(name)).unwrap(), &directory);
    let before = files(&directory);
    for _ in 0..2 {
        let refused = place.try_open().await.unwrap_err();
        assert!(matches!(refused, Error::UnknownFormat { .. }), "{refused}");
        let told = refused.to_string();
        assert!(
            told.contains("\"helenus store 1, ") && told.contains("export its tables"),
            "{told}"
        );
        let salvaged = Box::pin(Salvage::open(&place.url, 0, Clock::system())).await;
        assert!(matches!(salvaged, Err(Error::UnknownFormat { .. })));
        assert!(Look::at(&place.url, None).is_err());
        assert!(files(&directory) == before, "a byte was changed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fjall_directory_of_another_number_is_refused_unchanged() {
    directory_is_refused("file", "file-1.txt").await;
}

#[cfg(feature = "slate")]
#[tokio::test(flavor = "multi_thread")]
async fn a_slatedb_directory_of_another_number_is_refused_unchanged() {
    directory_is_refused("slate+file", "slate-1.txt").await;
}
