//! Directories that released programs of before wrote still open, and answer as those programs did.
//!
//! `tests/fixtures/directories/make.py` made them: `file-1` and `slate-1` by the program before `helenus.used`, `acknowledged` and the
//! record of SlateDB's times, `file-2` and `slate-2` by the first with them; each stopped in order and killed. They hold tables of all
//! kinds, indexes, split and lifted partitions, a dropped and a truncated table, a logged batch, and paging states.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use flate2::read::GzDecoder;
use helenus::clock::Clock;
use helenus::cql::{Answer, AnswerKind, QueryParams};

use crate::support::Client;

/// What the clock shows when a directory is opened again: later than when it was made.
const LATER: Duration = Duration::from_secs(3600);

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/directories")
}

/// The rows of an answer as `make.py` prints them.
fn shown(answer: &Answer) -> String {
    let AnswerKind::Rows(rows) = &answer.kind else {
        panic!("no rows: {:?}", answer.kind)
    };
    let mut content = rows.content.as_ref();
    let mut shown = String::new();
    for _ in 0..rows.row_count {
        let mut cells = Vec::new();
        for _ in rows.metadata.columns.iter() {
            let (length, rest) = content.split_first_chunk::<4>().unwrap();
            let length = i32::from_be_bytes(*length);
            let (value, rest) = rest.split_at(usize::try_from(length).unwrap_or(0));
            content = rest;
            let hex = value.iter().fold("x".to_owned(), |mut hex, byte| {
                write!(hex, "{byte:02x}").unwrap();
                hex
            });
            cells.push(if length < 0 { "null".to_owned() } else { hex });
        }
        writeln!(shown, "  {}", cells.join(" ")).unwrap();
    }
    assert!(content.is_empty());
    shown
}

fn from_hex(hex: &str) -> Bytes {
    let byte = |place| u8::from_str_radix(hex.get(place..place + 2).unwrap(), 16).unwrap();
    (0..hex.len()).step_by(2).map(byte).collect()
}

/// Asks again what the recorded answers are to, and prints it alike.
async fn asked_again(client: &Client, recorded: &str) -> String {
    let mut said = String::new();
    for line in recorded.lines().filter(|line| !line.starts_with("  ")) {
        writeln!(said, "{line}").unwrap();
        let answer = match line.split_once(' ').unwrap() {
            ("AT", _) => continue,
            ("PAGE", rest) => {
                let (state, text) = rest.split_once(' ').unwrap();
                let params = QueryParams {
                    page_size_rows: Some(2),
                    paging_state: Some(from_hex(state)),
                    ..QueryParams::default()
                };
                client.run(text, params).await
            }
            _ => client.run(line, QueryParams::default()).await,
        };
        said += &shown(&answer.unwrap_or_else(|error| panic!("{line}: {error}")));
    }
    said
}

/// Opens a directory of before, compares every answer, writes, and opens it once more.
async fn opens(archive: &str) {
    let packed = std::fs::File::open(folder().join(format!("{archive}.tar.gz"))).unwrap();
    let recorded = std::fs::read_to_string(folder().join(format!("{archive}.answers"))).unwrap();
    let scratch = tempfile::tempdir().unwrap();
    tar::Archive::new(GzDecoder::new(packed))
        .unpack(scratch.path())
        .unwrap();
    let engine = if archive.starts_with("file") {
        "file"
    } else {
        "slate+file"
    };
    let url = format!("{engine}:{}", scratch.path().join("data").display());
    let made_micros: i64 = recorded
        .lines()
        .next()
        .unwrap()
        .strip_prefix("AT ")
        .unwrap()
        .parse()
        .unwrap();
    let clock = Clock::manual(made_micros);
    for _ in 0..2 {
        clock.advance(LATER);
        let client = Client::open_at(&url, clock.clone()).await;
        let said = asked_again(&client, &recorded).await;
        for (now, then) in said.lines().zip(recorded.lines()) {
            assert_eq!(now, then, "{archive}");
        }
        assert_eq!(said, recorded, "{archive}");
        // Changes and takes them back, so that the second opening reads what this program wrote.
        for text in [
            "INSERT INTO app.lifted (k, c, v) VALUES (5000, 1, 'now')",
            "UPDATE app.counts SET hits = hits + 1 WHERE k = 'new' AND c = 1",
            "CREATE TABLE app.later (k int PRIMARY KEY)",
            "DELETE FROM app.lifted WHERE k = 5000",
            "DELETE FROM app.counts WHERE k = 'new'",
            "DROP TABLE app.later",
        ] {
            client.ok(text).await;
        }
        let check = client.database.upkeep().check_indexes().await.unwrap();
        assert_eq!(check.differences, 0, "{archive}");
        client.database.close().await.unwrap();
    }
}

macro_rules! directories {
    ($($name:ident = $archive:literal;)+) => {
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            opens($archive).await;
        })+

        #[test]
        fn every_directory_is_opened() {
            let mut names = vec![$($archive.to_owned()),+];
            names.sort();
            let entries = std::fs::read_dir(folder()).unwrap();
            let packed = entries.filter_map(|entry| {
                let name = entry.unwrap().file_name().into_string().unwrap();
                name.strip_suffix(".tar.gz").map(str::to_owned)
            });
            let mut packed: Vec<String> = packed.collect();
            packed.sort();
            assert_eq!(names, packed);
        }
    };
}

directories! {
    a_stopped_file_directory_before_marks = "file-1-stopped";
    a_killed_file_directory_before_marks = "file-1-killed";
    a_stopped_file_directory_with_marks = "file-2-stopped";
    a_killed_file_directory_with_marks = "file-2-killed";
    a_stopped_slate_directory_before_times = "slate-1-stopped";
    a_killed_slate_directory_before_times = "slate-1-killed";
    a_stopped_slate_directory_with_times = "slate-2-stopped";
    a_killed_slate_directory_with_times = "slate-2-killed";
}
