//! One suite for every engine, and properties that compare the engines with each other and with a naive model.

mod conformance;
mod damage;
#[cfg(feature = "slate")]
mod damage_slate;
mod derived;
mod exchanged;
mod files;
mod fixtures;
mod maintenance;
mod mirror;
mod runs;
mod salvage;
mod sweeps;
mod times;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tempfile::TempDir;

use super::*;

/// The format file of a main store of the `file:` engine.
const FORMAT_OF_FILE: &str = "helenus store 5, fjall 3\nidentity 0000000000000000/0\n";

/// A store of some engine, in a directory of its own where it needs one.
pub(super) struct Place {
    pub(super) url: Url,
    pub(super) options: Options,
    _directory: TempDir,
}

impl Place {
    pub(super) fn new(scheme: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url = match scheme {
            "file" => Url::File(directory.path().join("data")),
            "slate+file" => Url::SlateFile(directory.path().join("data")),
            "bucket" => bucket(),
            scheme => format!("{scheme}:").parse().unwrap(),
        };
        Self {
            url,
            options: Options {
                // Tables are small here.
                fill_searches_min: 2,
                fill_step_keys: 2,
                reach: Arc::new(bucket::Reach {
                    endpoint: std::env::var("HELENUS_BUCKET_ENDPOINT").ok(),
                    ..bucket::Reach::default()
                }),
                ..Options::default()
            },
            _directory: directory,
        }
    }

    pub(super) async fn open(&self) -> Store {
        self.try_open().await.unwrap()
    }

    pub(super) async fn try_open(&self) -> Result<Store> {
        self.open_at(Clock::system()).await
    }

    pub(super) async fn open_at(&self, clock: Clock) -> Result<Store> {
        Store::open(&self.url, &self.options, clock).await
    }
}

/// A prefix of its own in the bucket that `compat/bucket/with` has started.
fn bucket() -> Url {
    static PREFIXES: AtomicUsize = AtomicUsize::new(0);
    let Ok(url) = std::env::var("HELENUS_COMPAT_BUCKET") else {
        eprintln!("skipped: no bucket; run the tests by compat/bucket/with versitygw (or azurite, moto)");
        return Url::SlateMemory;
    };
    let number = PREFIXES.fetch_add(1, Ordering::Relaxed);
    format!("{url}/{}-{number}", std::process::id()).parse().unwrap()
}

pub(super) fn cell(column: u32, timestamp: i64, value: &'static str) -> Cell {
    let value = Bytes::from_static(value.as_bytes());
    Cell {
        column: ColumnId(column),
        path: None,
        timestamp,
        state: CellState::Live { value, expiry: None },
    }
}

pub(super) fn row_of(cells: &[Cell]) -> Row {
    Row {
        cells: cells.to_vec(),
        ..Row::default()
    }
}

pub(super) fn key_of(table: TableId, pk: &str, clustering: &str) -> Vec<u8> {
    // The token only has to differ; storage does not know its meaning.
    let token = pk.bytes().fold(0_i64, |token, byte| token * 31 + i64::from(byte));
    key::row_key(
        &key::partition_prefix(table, token, pk.as_bytes()),
        clustering.as_bytes(),
    )
}

pub(super) async fn put(store: &Store, space: Space, entries: &[(&str, &'static str)]) {
    let mut batch = Batch::new();
    for (key, value) in entries {
        batch.put(space, key.as_bytes().to_vec(), value.as_bytes());
    }
    store.commit(batch).await.unwrap();
}

pub(super) async fn get(store: &Store, space: Space, key: &str) -> Option<String> {
    let found = store.get(space, key.as_bytes(), &store.snapshot()).await.unwrap();
    found.map(|value| String::from_utf8(value.to_vec()).unwrap())
}

pub(super) async fn entries(
    store: &Store,
    space: Space,
    range: &KeyRange,
    order: Order,
    at: &Snapshot,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut entries = Vec::new();
    let visit = |key: &[u8], value: &[u8]| {
        entries.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    };
    store.scan(space, range, order, at, visit).await.unwrap();
    entries
}

pub(super) async fn keys(store: &Store, space: Space, range: &KeyRange, order: Order) -> String {
    let entries = entries(store, space, range, order, &store.snapshot()).await;
    let keys: Vec<_> = entries
        .into_iter()
        .map(|(key, _)| String::from_utf8(key).unwrap())
        .collect();
    keys.join(" ")
}

#[cfg(not(feature = "slate"))]
#[tokio::test]
async fn a_build_without_slate_refuses_its_stores() {
    for scheme in ["slate+file", "slate+memory"] {
        let place = Place::new(scheme);
        let refusal = place.try_open().await.unwrap_err().to_string();
        let says = format!(
            "cannot open {}: this build has no engine for it; build with the feature \"slate\"",
            place.url
        );
        assert!(refusal.starts_with(&says), "{refusal}");
    }
}
