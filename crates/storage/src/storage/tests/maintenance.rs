//! What a `file:` store gives back between writes: memtables, logs, tables of data that is gone.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use super::*;

const MIB: u64 = 1 << 20;

struct Maintained {
    place: Place,
    clock: Clock,
    store: Store,
}

impl Maintained {
    async fn open() -> Self {
        let place = Place::new("file");
        let clock = Clock::manual(1_700_000_000_000_000);
        let store = place.open_at(clock.clone()).await.unwrap();
        Self { place, clock, store }
    }

    /// Writes rows of a KiB to table 1.
    async fn write(&self, keys: std::ops::Range<u32>) {
        const VALUE: &str = match std::str::from_utf8(&[b'v'; 1024]) {
            Ok(value) => value,
            Err(_) => "",
        };
        for chunk in keys.collect::<Vec<_>>().chunks(64) {
            let mut batch = Batch::new();
            for key in chunk {
                batch.upsert(key_of(1, &key.to_string(), ""), row_of(&[cell(1, 1, VALUE)]));
            }
            self.store.commit(batch).await.unwrap();
        }
    }

    async fn delete_all(&self) {
        let mut batch = Batch::new();
        batch.delete_range(Space::Rows, key::table_range(1));
        self.store.commit(batch).await.unwrap();
    }

    fn memtables(&self) -> u64 {
        self.store.figures().held.memtables
    }

    /// Bytes on disk of the files of this kind.
    fn disk(&self, is_of_kind: impl Fn(&Path) -> bool) -> u64 {
        let Url::File(directory) = &self.place.url else {
            return 0;
        };
        let mut folders = vec![directory.clone()];
        let mut bytes = 0;
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                match entry.metadata() {
                    Ok(of) if of.is_dir() => folders.push(path),
                    Ok(of) if is_of_kind(&path) => bytes += of.blocks() * 512,
                    _ => {}
                }
            }
        }
        bytes
    }

    fn tables(&self) -> u64 {
        self.disk(|path| path.parent().is_some_and(|folder| folder.ends_with("tables")))
    }

    /// Lets time pass until this holds.
    async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        for _ in 0..600 {
            if holds(self) {
                return;
            }
            self.clock.advance(Duration::from_secs(1));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{what}: memtables {}, tables {}", self.memtables(), self.tables());
    }
}

#[tokio::test]
async fn an_idle_store_releases_its_memtables() {
    let maintained = Maintained::open().await;
    maintained.write(0..3000).await;
    assert!(maintained.memtables() > 2 * MIB, "{}", maintained.memtables());
    maintained.until("released", |of| of.memtables() < 64 * 1024).await;
    let now = maintained.store.snapshot();
    let row = maintained.store.get(Space::Rows, &key_of(1, "17", ""), &now).await;
    assert!(row.unwrap().is_some());
}

#[tokio::test]
async fn tables_of_deleted_data_are_removed_when_no_snapshot_reads_them() {
    let maintained = Maintained::open().await;
    maintained.write(0..12_000).await;
    maintained.until("flushed", |of| of.memtables() < 64 * 1024).await;
    let flushed = maintained.tables();
    assert!(flushed > 10 * MIB, "{flushed}");
    let before = maintained.store.snapshot();
    maintained.delete_all().await;
    maintained.until("deletions flushed", |of| of.tables() > flushed).await;
    let key = key_of(1, "17", "");
    assert!(
        maintained
            .store
            .get(Space::Rows, &key, &before)
            .await
            .unwrap()
            .is_some()
    );
    drop(before);
    maintained.until("removed", |of| of.tables() < MIB).await;
    let now = maintained.store.snapshot();
    assert_eq!(maintained.store.get(Space::Rows, &key, &now).await.unwrap(), None);
}

#[tokio::test]
async fn tables_of_rewritten_data_stay_small() {
    let maintained = Maintained::open().await;
    for _ in 0..8 {
        maintained.write(0..2000).await;
        maintained.store.flush().await.unwrap();
    }
    maintained.until("compacted", |of| of.tables() < 6 * MIB).await;
}

#[tokio::test]
async fn the_log_is_bounded_by_one_file() {
    let maintained = Maintained::open().await;
    let is_log = |path: &Path| path.extension().is_some_and(|extension| extension == "jnl");
    for round in 0..40 {
        maintained.write(0..2000).await;
        maintained.clock.advance(Duration::from_secs(1));
        assert!(
            maintained.disk(is_log) < 84 * MIB,
            "{round}: {}",
            maintained.disk(is_log)
        );
    }
    maintained.until("one log", |of| of.disk(is_log) < 64 * MIB).await;
}

#[tokio::test]
async fn a_store_with_maintenance_opens_again_with_all_its_rows() {
    let maintained = Maintained::open().await;
    maintained.write(0..6000).await;
    maintained.delete_all().await;
    maintained.write(0..3000).await;
    maintained.until("released", |of| of.memtables() < 64 * 1024).await;
    let Maintained { place, store, .. } = maintained;
    store.close().await.unwrap();
    drop(store);
    let store = place.open().await;
    let size = store.bytes_in(&key::table_range(1));
    assert_eq!(size.rows, 3000);
    let row = store.get(Space::Rows, &key_of(1, "2999", ""), &store.snapshot()).await;
    assert!(row.unwrap().is_some());
    let gone = store.get(Space::Rows, &key_of(1, "5999", ""), &store.snapshot()).await;
    assert_eq!(gone.unwrap(), None);
}
