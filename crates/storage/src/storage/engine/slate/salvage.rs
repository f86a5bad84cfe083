//! Reads the objects of a `slate+file:` database one by one, even if objects around them are damaged; see
//! `../salvage/mod.rs`.
//!
//! ```text
//! the newest manifest that can be read ─► its tables, block by block ─┐
//!                         └─► the log after it, object by object ─────┴─► versions of keys
//! ```
//! If no manifest can be read, all tables of the folder and the whole log are read. A clone's tables may lie in the
//! folder of the database that it was cloned from. Only rows are read from those, since only rows were cloned.

use std::future::Future;
use std::ops::Bound;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;

use futures::{FutureExt, TryStreamExt};
use slatedb::object_store::ObjectStore;
use slatedb::object_store::local::LocalFileSystem;
use slatedb::object_store::path::Path;
use slatedb::{PathResolver, RowEntry, SstFile, SstIndex, SstReader, ValueDeletable, VersionedManifest, WalReader};

use super::clock::Ticks;
use super::failures::failure;
use super::home::Home;
use super::medium::Medium;
use super::places::{DATABASE, Folder};
use super::put_record;
use super::verify::{FOOTER_BYTES, Found, origin_of, verify};
use crate::storage::batch::Space;
use crate::storage::engine::fjall::panic_text;
use crate::storage::engine::piece::{Change, Damage, Entry, Files, Gap, Place, Stretch};
use crate::storage::identity::Identity;
use crate::storage::key::covers;
use crate::storage::{Error, Result};
use helenus_base::clock::Clock;

/// Reads the recoverable files of the database of a number in a bucket's directory.
///
/// # Errors
/// The medium fails otherwise than by damage.
pub(in crate::storage::engine) async fn files(
    directory: &std::path::Path,
    number: u32,
    store: Option<Identity>,
    clock: Clock,
) -> Result<Files<TableObject>> {
    let location: Arc<str> = format!("slate+file:{}", directory.display()).into();
    let objects = LocalFileSystem::new_with_prefix(directory).map_err(|error| Error::Engine {
        location: location.to_string(),
        what: error.to_string(),
    })?;
    let database = match number {
        0 => DATABASE.to_owned(),
        number => format!("stores/{number}"),
    };
    let identity = store.unwrap_or_default();
    let home = Home {
        directory: None,
        medium: Arc::new(Medium::new(Arc::new(objects), Some(directory.to_owned()), identity)),
        identity,
        location,
        database: database.as_str().into(),
        ticks: Arc::new(Ticks::new(clock)),
        durable: Arc::default(),
        bucket: None,
        blocks: None,
        log: None,
    };
    let mut reading = Reading {
        home,
        store,
        damage: Vec::new(),
    };
    let manifest = reading.manifest(&database).await?;
    let tables = reading.tables(&database, manifest.as_ref()).await?;
    let after = manifest.as_ref().map_or(0, VersionedManifest::replay_after_wal_id);
    let path = put_record::path_of(directory, &database);
    let noted = store.map_or(Ok(None), |store| put_record::read(&path, store));
    let recorded = noted.clone();
    let Log { entries, last } = reading.log(&database, after, noted).await?;
    let mut found = None;
    if let Ok(noted) = recorded
        && reading.damage.is_empty()
    {
        found = reading.check_as_a_start(&database, noted).await;
    }
    let files = Files::new(tables, entries, reading.damage);
    let found = found.unwrap_or_else(|| Found::damaged(last));
    found.tell(&files.durable);
    Ok(files)
}

/// What was read of a log.
struct Log {
    entries: Vec<Entry>,
    /// Its last object.
    last: u64,
}

struct Reading {
    home: Home,
    /// `None` means that it is not known.
    store: Option<Identity>,
    damage: Vec<Damage>,
}

impl Reading {
    fn is_other(&self, of: Identity) -> bool {
        self.store.is_some_and(|store| store != of)
    }

    fn lose(&mut self, file: PathBuf, what: impl Into<String>) {
        self.damage.push(Damage {
            file,
            what: what.into(),
        });
    }

    async fn listed(&self, folder: &Path) -> Result<Vec<String>> {
        let listed: Vec<_> = self
            .home
            .medium
            .list(Some(folder))
            .try_collect()
            .await
            .map_err(|error| Error::Engine {
                location: self.home.location.to_string(),
                what: error.to_string(),
            })?;
        let mut names: Vec<String> = listed
            .iter()
            .filter_map(|meta| Some(meta.location.filename()?.to_owned()))
            .collect();
        names.sort_unstable();
        Ok(names)
    }

    async fn numbers(&self, folder: Folder, database: &str) -> Result<Vec<u64>> {
        let names = self.listed(&folder.path(database)).await?;
        Ok(names.iter().filter_map(|name| folder.id(name)).collect())
    }

    /// The newest manifest that can be read.
    async fn manifest(&mut self, database: &str) -> Result<Option<VersionedManifest>> {
        let numbers = self.numbers(Folder::Manifests, database).await?;
        for id in numbers.into_iter().rev() {
            let path = self.home.medium.file(&Folder::Manifests.object(database, id));
            let admin = self.home.admin(database);
            match caught(&self.home.location, async move { admin.read_manifest(Some(id)).await }).await {
                Ok(Some(manifest)) => return Ok(Some(manifest)),
                Ok(None) => self.lose(path, "it is gone"),
                Err(why) => self.lose(path, format!("{why}: tables are those of the manifest before it")),
            }
        }
        let folder = self.home.medium.file(&Folder::Manifests.path(database));
        let what = "no manifest can be read: all tables are read, those of before a compaction too, so that what was deleted may come back";
        self.lose(folder, what);
        Ok(None)
    }

    /// Opens the tables that a manifest names, or all that exist.
    async fn tables(&mut self, database: &str, manifest: Option<&VersionedManifest>) -> Result<Vec<TableObject>> {
        let mut objects = Vec::new();
        if let Some(manifest) = manifest {
            let places = PathResolver::new(database, manifest);
            let mut ids: Vec<_> = manifest.all_sst_views().map(|view| view.sst.id).collect();
            ids.sort_unstable();
            ids.dedup();
            objects.extend(ids.into_iter().map(|id| (places.sst_path(&id), id.value())));
        } else {
            let folder = Path::from(format!("{database}/compacted"));
            for name in self.listed(&folder).await? {
                let id = name.strip_suffix(".sst").and_then(|id| id.parse().ok());
                objects.extend(id.map(|id| (Path::from(format!("{database}/compacted/{name}")), id)));
            }
        }
        let mut tables = Vec::new();
        for (location, id) in objects {
            let of = location.as_ref().rsplitn(3, '/').last().unwrap_or_default();
            let reader = SstReader::new(Path::from(of), self.home.objects(), None, None);
            let path = self.home.medium.file(&location);
            let opened = caught(&self.home.location, async move {
                let table = reader.open(id).await?;
                let index = table.index().await?;
                Ok((table, index))
            });
            match opened.await {
                Ok((table, index)) => tables.push(TableObject {
                    path,
                    table,
                    index,
                    has_rows_only: of != database,
                    location: Arc::clone(&self.home.location),
                }),
                Err(why) => self.lose(path, why),
            }
        }
        Ok(tables)
    }

    /// Reads the log after a number.
    #[expect(
        clippy::too_many_lines,
        reason = "each way in which the log can end is told apart in one pass over it"
    )]
    async fn log(&mut self, database: &str, after: u64, noted: Result<Option<put_record::Ends>>) -> Result<Log> {
        let noted = match noted {
            Ok(noted) => noted,
            Err(error) => {
                let path = self.home.medium.file(&Path::from(database));
                self.lose(
                    path,
                    format!("{error}: whether the log has lost its end cannot be told"),
                );
                None
            }
        };
        let numbers = self.numbers(Folder::Log, database).await?;
        let newest = numbers
            .last()
            .copied()
            .unwrap_or(0)
            .max(noted.as_ref().map_or(0, |noted| noted.log));
        let first = if after > 0 {
            after + 1
        } else {
            numbers.first().copied().unwrap_or(1)
        };
        let mut log = Vec::new();
        for id in first..=newest {
            let location = Folder::Log.object(database, id);
            let path = self.home.medium.file(&location);
            let bytes = std::fs::metadata(&path).map(|found| found.len());
            if bytes.is_err() {
                self.lose(
                    path,
                    "an object of the log is gone: changes in it are missing, deletions too",
                );
                continue;
            }
            if bytes.as_ref().is_ok_and(|bytes| *bytes == 0) && noted.as_ref().is_some_and(|noted| noted.was_cut(id)) {
                self.lose(path, "an object of the log has no byte, and held changes");
                continue;
            }
            // SlateDB takes these for marks of a writer, too.
            if bytes.is_ok_and(|bytes| (1..=FOOTER_BYTES).contains(&bytes)) {
                self.lose(
                    path,
                    "the object of the log has fewer bytes than any that is whole, and held changes",
                );
                continue;
            }
            let object = WalReader::new(Path::from(database), self.home.objects()).get(id);
            let read = caught(&self.home.location, async move {
                let (mut found, mut stores) = (Vec::new(), Vec::new());
                let mut entries = object.iterator().await?;
                while let Some(entry) = entries.next().await? {
                    stores.extend(origin_of(&entry).map(|origin| origin.store));
                    found.push(of_row(entry));
                }
                Ok((found, stores))
            });
            match read.await {
                Ok((mut found, stores)) => match stores.into_iter().find(|of| self.is_other(*of)) {
                    None => log.append(&mut found),
                    Some(other) => {
                        self.lose(
                            path,
                            format!("it is of {other}: changes in the object that was there are missing"),
                        );
                    }
                },
                Err(why) => self.lose(path, format!("{why}: changes in it are missing, deletions too")),
            }
        }
        Ok(Log {
            entries: log,
            last: newest,
        })
    }

    /// Adds what a start would refuse the database for; returns what it would find.
    async fn check_as_a_start(&mut self, database: &str, noted: Option<put_record::Ends>) -> Option<Found> {
        let (path, what) = match verify(&self.home, database, noted, None).await {
            Ok(found) => return found,
            Err(Error::Corrupt { path, what }) => (path, what),
            Err(error) => (self.home.path(), error.to_string()),
        };
        self.lose(path, what);
        None
    }
}

/// Calls SlateDB to read. Returns the reason if it cannot; a panic is a reason, too.
async fn caught<T>(location: &str, read: impl Future<Output = Result<T, slatedb::Error>>) -> Result<T, String> {
    match AssertUnwindSafe(read).catch_unwind().await {
        Ok(Ok(read)) => Ok(read),
        Ok(Err(error)) => Err(match failure(location, &error) {
            Error::Corrupt { what, .. } | Error::Engine { what, .. } => what,
            error => error.to_string(),
        }),
        Err(panic) => Err(format!("the engine panicked: {}", panic_text(panic.as_ref()))),
    }
}

fn of_row(row: RowEntry) -> Entry {
    Entry {
        key: row.key,
        seq: row.seq,
        change: match row.value {
            ValueDeletable::Value(value) => Change::Put(value),
            ValueDeletable::Merge(value) => Change::Merge(value),
            ValueDeletable::Tombstone => Change::Delete,
        },
    }
}

/// A table that was opened.
pub(in crate::storage::engine) struct TableObject {
    path: PathBuf,
    table: SstFile,
    index: SstIndex,
    /// Whether it belongs to another database, of which this one is a clone.
    has_rows_only: bool,
    location: Arc<str>,
}

impl TableObject {
    fn first_key(&self, block: usize) -> Option<&[u8]> {
        self.index.get(block).map(|(_, key)| key)
    }

    /// Reads a block: that of a key, or that of a number.
    pub(in crate::storage::engine) async fn read(&self, place: Place, end: &Bound<Vec<u8>>) -> Stretch {
        let (block, from) = match place {
            Place::Block(block) => (block, None),
            // A key's versions may begin in the block before the one that begins with it.
            Place::Key(key) => (
                self.index
                    .partition_point(|first| first < key.as_slice())
                    .saturating_sub(1),
                Some(key),
            ),
        };
        let is_within = |key: &[u8]| {
            from.as_deref().is_none_or(|from| key >= from)
                && covers(&Bound::Unbounded, end, key)
                && (!self.has_rows_only || key.first() == Some(&Space::Rows.byte()))
        };
        let mut stretch = Stretch {
            entries: Vec::new(),
            next: None,
            gap: None,
        };
        let Some(first) = self.first_key(block) else {
            return stretch;
        };
        if !covers(&Bound::Unbounded, end, first) {
            return stretch;
        }
        let follows = self
            .first_key(block + 1)
            .filter(|key| covers(&Bound::Unbounded, end, key));
        stretch.next = follows.map(|_| Place::Block(block + 1));
        match caught(&self.location, self.table.read_block(block)).await {
            Ok(rows) => {
                stretch.entries = rows.into_iter().filter(|row| is_within(&row.key)).map(of_row).collect();
            }
            Err(why) => {
                stretch.gap = Some(Gap {
                    file: self.path.clone(),
                    after: Some(first.to_vec()).filter(|first| is_within(first)),
                    until: follows.map(<[u8]>::to_vec),
                    why,
                });
            }
        }
        stretch
    }
}
