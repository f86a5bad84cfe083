//! Directories that programs of another format number wrote are refused by name, and every byte stays.
//!
//! `tests/fixtures/directories/make.py` made them: `file-1` and `slate-1` by the program before `helenus.used`, `acknowledged` and the
//! record of SlateDB's times, `file-2` and `slate-2` by the first with them; each stopped in order and killed.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use helenus_base::clock::Clock;
use helenus_cql::cql::Database;

use crate::support::Client;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/directories")
}

/// Every file below a directory with its content, except for the lock file's.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.ends_with("helenus.lock") {
                found.insert(path.clone(), std::fs::read(path).unwrap());
            }
        }
    }
    found
}

/// Tries to open a directory of another format number, twice.
async fn is_refused(archive: &str) {
    let packed = std::fs::File::open(folder().join(format!("{archive}.tar.gz"))).unwrap();
    let scratch = tempfile::tempdir().unwrap();
    tar::Archive::new(GzDecoder::new(packed))
        .unpack(scratch.path())
        .unwrap();
    let engine = if archive.starts_with("file") {
        "file"
    } else {
        "slate+file"
    };
    let data = scratch.path().join("data");
    let before = files(&data);
    for _ in 0..2 {
        let options = Client::options(&format!("{engine}:{}", data.display()), Clock::manual(0));
        let refused = Database::open(options).await.err().unwrap().to_string();
        assert!(
            refused.contains("has the format \"helenus store 1, ") && refused.contains("export its tables"),
            "{refused}"
        );
        assert!(files(&data) == before, "{archive}: a byte was changed");
    }
}

macro_rules! directories {
    ($($name:ident = $archive:literal;)+) => {
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            is_refused($archive).await;
        })+

        #[test]
        fn every_directory_is_refused() {
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
