//! Verifies a database without writing, before SlateDB opens it for writing. A refusal leaves every byte in place and
//! names the object that is damaged or missing.
//!
//! ```text
//! newest manifest ─► newest list of compactions ─► boundaries
//!     ─► the log that the manifest leaves to be read, object by object
//!     ─► ends of the tables that the manifest names; in a bucket, whether they are there
//!     ─► the parts of them that an opening reads: catalog, deletions, the store's own records
//! ```
//! Compared with the record of puts (put_record.rs): no number there may be greater than the newest object's, and no
//! log object that was put with bytes may be empty. The numbers of the log have no gaps after the manifest's. SlateDB
//! puts one object after the other, and finds the end of the log by trying numbers: it would stop before a gap and lose
//! the objects after it.
//!
//! SlateDB may panic on damaged objects. Each object is read by itself, so a panic means that this object is damaged.

use std::collections::{BTreeMap, HashSet};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;

use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use slatedb::config::{DbReaderOptions, ScanOptions};
use slatedb::manifest::SsTableId;
use slatedb::object_store::path::Path;
use slatedb::object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use slatedb::{
    DbReadOps, DbReader, DbReaderMode, PathResolver, RowEntry, SstReader, ValueDeletable, VersionedManifest, WalReader,
};

use super::failures::failure;
use super::home::{Home, NumberedBlocks};
use super::places::{Folder, boundary, database_of};
use super::put_record::{Body, Data, Ends};
use super::records::{OwnRecords, deletion_tables, own_records, unknown_record};
use super::tuning::scan_options;
use super::{Merger, clock};
use crate::storage::batch::Space;
use crate::storage::engine::directory::check_identity;
use crate::storage::engine::durable::{Durable, History};
use crate::storage::engine::fjall::panic_text;
use crate::storage::engine::layout::{OWN, Origin, Own, full_range, parse_own};
use crate::storage::key::KeyRange;
use crate::storage::{Error, Result};

/// Bytes of the footer of an object of the log or a table: the places of its parts, and its version.
pub(super) const FOOTER_BYTES: u64 = 10;

/// Objects that are read at a time.
const READ_TOGETHER: usize = 4;

/// The same in a bucket, where each read has latency and costs this machine little.
const READ_TOGETHER_REMOTE: usize = 64;

/// The verified state of a database that may be opened.
#[derive(Default)]
pub(super) struct Found {
    /// Its highest time, ms since 1970-01-01 UTC.
    pub(super) millis: i64,
    /// The last puts in it.
    pub(super) ends: Ends,
    /// From this object on, all ends that other stores may have recorded are known.
    pub(super) from: u64,
}

impl Found {
    /// What is known of a damaged database, whose log ends with this object.
    pub(super) fn damaged(last: u64) -> Self {
        Self {
            millis: i64::MIN,
            ends: Ends {
                log: last,
                ..Ends::default()
            },
            from: u64::MAX,
        }
    }

    /// Where the store is, for a comparison with what others recorded.
    pub(super) fn tell(&self, durable: &Durable) {
        durable.raise(self.ends.end());
        durable.found(&History {
            witnessed: self.ends.witnessed.clone(),
            from: self.from,
        });
    }
}

struct Verifier<'h> {
    home: &'h Home,
    database: &'h str,
    noted: Option<Ends>,
}

/// An object of the log.
struct LogObject {
    id: u64,
    /// Its highest time.
    millis: i64,
    /// What its groups name.
    origins: Vec<Origin>,
    sum: u32,
}

/// What a group names, if the row is that record.
pub(super) fn origin_of(row: &RowEntry) -> Option<Origin> {
    let ValueDeletable::Value(value) = &row.value else {
        return None;
    };
    if row.key.first() != Some(&OWN) {
        return None;
    }
    match parse_own(&row.key, value)? {
        Own::Origin(origin, _) => Some(origin),
        Own::Chain(..) | Own::Size(..) | Own::Range(..) | Own::Witnessed(_) => None,
    }
}

/// The newest list of compactions.
struct Compactions {
    /// `None` means that there is none.
    newest: Option<u64>,
    millis: i64,
}

/// Verifies the database at this path against the record of its puts. `None` means that there is no database.
/// Rows that an opening reads go into `blocks`.
pub(super) async fn verify(
    home: &Home,
    database: &str,
    noted: Option<Ends>,
    blocks: Option<&NumberedBlocks>,
) -> Result<Option<Found>> {
    let verifier = Verifier { home, database, noted };
    let Some(newest) = verifier.newest(Folder::Manifests).await? else {
        return Ok(None);
    };
    let manifest = verifier.manifest(newest).await?;
    // Together, as each waits for the store most of the time. Of several failures the first in this order is reported.
    let (compactions, log, tables, opening) = futures::join!(
        verifier.compactions(),
        verifier.log(manifest.replay_after_wal_id()),
        verifier.tables(&manifest),
        verifier.what_an_opening_reads(&manifest, blocks)
    );
    let (compactions, log) = (compactions?, log?);
    tables?;
    opening?;
    let Found {
        millis: log_millis,
        mut ends,
        from,
    } = log;
    ends.add(Folder::Manifests, newest, Body::default());
    if let Some(newest) = compactions.newest {
        ends.add(Folder::Compactions, newest, Body::default());
    }
    let millis = clock::of_manifest(&manifest).max(compactions.millis).max(log_millis);
    Ok(Some(Found { millis, ends, from }))
}

impl Verifier<'_> {
    fn together(&self) -> usize {
        if self.home.is_remote() {
            READ_TOGETHER_REMOTE
        } else {
            READ_TOGETHER
        }
    }

    fn object(&self, folder: Folder, id: u64) -> PathBuf {
        self.home.medium.file(&folder.object(self.database, id))
    }

    /// The objects of a folder.
    async fn objects(&self, folder: &Path) -> Result<Vec<ObjectMeta>> {
        let listed = self.home.medium.list(Some(folder)).try_collect().await;
        listed.map_err(|error| {
            let error = slatedb::Error::unavailable("listing".to_owned()).with_source(Box::new(error));
            failure(&self.home.location, &error)
        })
    }

    /// Numbers and sizes of a folder's objects, the least number first.
    async fn listed(&self, folder: Folder) -> Result<Vec<(u64, u64)>> {
        let listed = self.objects(&folder.path(self.database)).await?;
        let numbered = listed
            .iter()
            .filter_map(|meta| Some((folder.id(meta.location.filename()?)?, meta.size)));
        let mut numbered: Vec<_> = numbered.collect();
        numbered.sort_unstable();
        Ok(numbered)
    }

    /// The greatest number in a folder, which must be at least the recorded one.
    async fn newest(&self, folder: Folder) -> Result<Option<u64>> {
        let newest = self.listed(folder).await?.last().map(|(id, _)| *id);
        self.must_reach(folder, newest.unwrap_or(0))?;
        Ok(newest)
    }

    /// Compares the newest number with the recorded one: nothing may be missing, and no group may follow a close. A manifest may:
    /// SlateDB's compactor can put one after the database was closed.
    fn must_reach(&self, folder: Folder, newest: u64) -> Result<()> {
        match &self.noted {
            Some(noted) if folder == Folder::Log && noted.closed && newest > noted.of(folder) => Err(Error::Corrupt {
                path: self.object(folder, newest),
                what: format!(
                    "the database was closed with object {}: this object, or the record of puts, is of another copy",
                    noted.of(folder)
                ),
            }),
            Some(noted) if noted.of(folder) > newest => {
                let path = self.object(folder, noted.of(folder));
                Err(missing(path, &format!("the newest object there is {newest}")))
            }
            _ => Ok(()),
        }
    }

    async fn manifest(&self, newest: u64) -> Result<VersionedManifest> {
        let path = self.object(Folder::Manifests, newest);
        let admin = self.home.admin(self.database);
        let read = async move { admin.read_manifest(Some(newest)).await };
        let manifest = self.read(path.clone(), read).await?.ok_or_else(|| missing(path, ""))?;
        self.boundary(Folder::Manifests, newest).await?;
        Ok(manifest)
    }

    async fn compactions(&self) -> Result<Compactions> {
        let mut found = Compactions {
            newest: self.newest(Folder::Compactions).await?,
            millis: i64::MIN,
        };
        let Some(newest) = found.newest else {
            return Ok(found);
        };
        let path = self.object(Folder::Compactions, newest);
        let admin = self.home.admin(self.database);
        let read = async move { admin.read_compactions(Some(newest)).await };
        let compactions = self.read(path.clone(), read).await?.ok_or_else(|| missing(path, ""))?;
        for compaction in compactions.recent_compactions() {
            let tables = compaction.output_ssts();
            let ids = tables.iter().map(|table| table.id.value()).chain([compaction.id()]);
            let newest = ids.map(|id| clock::millis(id.timestamp_ms())).max();
            found.millis = found.millis.max(newest.unwrap_or(i64::MIN));
        }
        self.boundary(Folder::Compactions, newest).await?;
        Ok(found)
    }

    /// Checks that a clean-up boundary is at most the newest object's number.
    async fn boundary(&self, folder: Folder, newest: u64) -> Result<()> {
        let location = boundary(self.database, folder);
        let path = self.home.medium.file(&location);
        let medium = Arc::clone(&self.home.medium);
        let read = async move {
            match medium.get(&location).await {
                Ok(object) => object.bytes().await.map(Some).map_err(of_store),
                Err(slatedb::object_store::Error::NotFound { .. }) => Ok(None),
                Err(error) => Err(of_store(error)),
            }
        };
        let Some(text) = self.read(path.clone(), read).await? else {
            return Ok(());
        };
        let number = std::str::from_utf8(&text)
            .ok()
            .and_then(|text| text.trim().parse().ok());
        match number {
            Some(number) if newest >= number => Ok(()),
            _ => Err(Error::Corrupt {
                path,
                what: format!("it is no number up to {newest}, the newest object"),
            }),
        }
    }

    /// Verifies the objects of the log after a number.
    async fn log(&self, after: u64) -> Result<Found> {
        let mut ends = self.noted.clone().unwrap_or_default();
        let has_own_log = self.home.log.is_none();
        let listed = if has_own_log {
            self.listed(Folder::Log).await?
        } else {
            Vec::new()
        };
        let newest = listed.last().map_or(after, |(id, _)| after.max(*id));
        self.must_reach(Folder::Log, newest)?;
        let mut unread = listed.into_iter().filter(|(id, _)| *id > after);
        for expected in after + 1..=newest {
            let (id, bytes) = unread.next().unwrap_or((newest + 1, 0));
            let path = self.object(Folder::Log, expected);
            if id != expected {
                return Err(missing(path, &format!("the log goes on up to object {newest}")));
            }
            if bytes == 0 && self.noted.as_ref().is_some_and(|noted| noted.was_cut(id)) {
                let what = "it has no byte, and held writes that were acknowledged".to_owned();
                return Err(Error::Corrupt { path, what });
            }
            // SlateDB takes these for marks of a writer, too.
            if (1..=FOOTER_BYTES).contains(&bytes) {
                let what = format!("the object of the log has {bytes} bytes, fewer than any that is whole");
                return Err(Error::Corrupt { path, what });
            }
            if id > ends.log {
                ends.add(
                    Folder::Log,
                    id,
                    Body {
                        is_empty: bytes == 0,
                        sum: 0,
                    },
                );
            }
        }
        ends.forget_marks(after);
        if self.noted.is_none() {
            // Without a record it is unknown which of them were marks.
            ends.marks.clear();
            ends.since = newest + 1;
        }
        ends.log = ends.log.max(newest);
        let objects: Vec<LogObject> = stream::iter(after + 1..=newest)
            .map(|id| self.log_object(id))
            .buffered(self.together())
            .try_collect()
            .await?;
        self.check_order(&objects)?;
        if let Some(newest) = objects.last() {
            ends.sum = newest.sum;
        }
        self.follow(&objects, &mut ends);
        let times = objects.iter().map(|object| object.millis);
        Ok(Found {
            millis: times.max().unwrap_or(i64::MIN),
            ends,
            // After a loss of power the list may lack an end that was recorded, so no end is judged by it.
            from: u64::MAX,
        })
    }

    /// Follows the log from the record of puts, which may lack the last second, to its end, and adds the ends that other
    /// stores may have recorded.
    fn follow(&self, objects: &[LogObject], ends: &mut Ends) {
        let (noted, mut data) = match &self.noted {
            Some(noted) => (Some(noted.log), noted.data),
            None => (None, Data::default()),
        };
        if let Some(noted) = &self.noted {
            ends.witnessed.push(noted.end());
        }
        for object in objects
            .iter()
            .filter(|object| noted.is_none_or(|noted| object.id > noted))
        {
            // The checksum of no byte is 0.
            if object.sum != 0 {
                data = Data {
                    log: object.id,
                    sum: object.sum,
                };
            }
            ends.witnessed.push(data.end(object.id));
        }
        ends.data = data;
    }

    /// Checks that each object was written after the one that it names, and the recorded one is among them.
    fn check_order(&self, objects: &[LogObject]) -> Result<()> {
        let sums: BTreeMap<u64, u32> = objects.iter().map(|object| (object.id, object.sum)).collect();
        let noted = self.noted.as_ref().map(|noted| (noted.log, noted.sum));
        if let Some((log, sum)) = noted
            && sums.get(&log).is_some_and(|found| *found != sum)
        {
            return Err(Error::Corrupt {
                path: self.object(Folder::Log, log),
                what: "it is not the object that was put last: it, or the record of puts, is of another copy"
                    .to_owned(),
            });
        }
        // In a bucket the sums are not known, and no group names one.
        let mut named = objects
            .iter()
            .flat_map(|of| of.origins.iter().map(move |origin| (of.id, origin)));
        let other = named.find(|(_, origin)| {
            let known = sums.get(&origin.object).copied();
            let noted = noted.filter(|(log, _)| *log == origin.object).map(|(_, sum)| sum);
            known.or(noted).is_some_and(|sum| sum != origin.sum)
        });
        match other {
            None => Ok(()),
            Some((id, origin)) => Err(Error::Corrupt {
                path: self.object(Folder::Log, id),
                what: format!(
                    "it was written after another object {} of the log: it is of another copy",
                    origin.object
                ),
            }),
        }
    }

    /// Reads an object of the log to its end. Each group in it must name this store.
    async fn log_object(&self, id: u64) -> Result<LogObject> {
        let path = self.object(Folder::Log, id);
        let object = WalReader::new(Path::from(self.database), self.home.objects()).get(id);
        let read = async move {
            let mut entries = object.iterator().await?;
            let (mut millis, mut origins, mut rows) = (i64::MIN, Vec::new(), 0_u64);
            while let Some(entry) = entries.next().await? {
                rows += 1;
                millis = millis.max(entry.create_ts.unwrap_or(i64::MIN));
                if let Some(origin) = origin_of(&entry) {
                    origins.push(origin);
                }
            }
            Ok((millis, origins, rows))
        };
        let (millis, mut origins, rows) = self.read(path.clone(), read).await?;
        if rows > 0 && origins.is_empty() {
            let what = "it has rows and names no store".to_owned();
            return Err(Error::Corrupt { path, what });
        }
        for origin in &origins {
            check_identity(&path, origin.store, self.home.identity)?;
        }
        origins.dedup();
        let sum = self.sum(id).await?;
        Ok(LogObject {
            id,
            millis,
            origins,
            sum,
        })
    }

    /// The checksum of an object of the log. In a bucket it is not read for that.
    async fn sum(&self, id: u64) -> Result<u32> {
        if self.home.is_remote() {
            return Ok(0);
        }
        let (location, medium) = (Folder::Log.object(self.database, id), Arc::clone(&self.home.medium));
        let path = medium.file(&location);
        let read = async move {
            let object = medium.get(&location).await.map_err(of_store)?;
            object.bytes().await.map_err(of_store)
        };
        self.read(path, read).await.map(|bytes| crc32fast::hash(&bytes))
    }

    /// Reads the ends and indexes of all tables. A bucket checks its objects itself, so there each must only be listed.
    async fn tables(&self, manifest: &VersionedManifest) -> Result<()> {
        let places = PathResolver::new(self.database, manifest);
        let mut tables: Vec<_> = manifest.all_sst_views().map(|view| view.sst.id).collect();
        tables.sort_unstable();
        tables.dedup();
        let located = tables.into_iter().map(|table| (places.sst_path(&table), table));
        if self.home.is_remote() {
            let mut of_database: BTreeMap<String, Vec<Path>> = BTreeMap::new();
            for (location, _) in located {
                of_database
                    .entry(database_of(&location).to_owned())
                    .or_default()
                    .push(location);
            }
            let listed = of_database
                .iter()
                .map(|(database, tables)| self.must_have(database, tables));
            return futures::future::try_join_all(listed).await.map(drop);
        }
        let read = |(location, table): (Path, SsTableId)| {
            // The table may belong to another database, if this one is its clone.
            let reader = SstReader::new(Path::from(database_of(&location)), self.home.objects(), None, None);
            let read = async move { reader.open(table.value()).await?.index().await.map(drop) };
            self.read(self.home.medium.file(&location), read)
        };
        stream::iter(located.map(read))
            .buffered(self.together())
            .try_collect()
            .await
    }

    /// Checks that a database has these tables.
    async fn must_have(&self, database: &str, tables: &[Path]) -> Result<()> {
        let folder = Path::from(format!("{database}/compacted"));
        let there: HashSet<Path> = self
            .objects(&folder)
            .await?
            .into_iter()
            .map(|meta| meta.location)
            .collect();
        match tables.iter().find(|table| !there.contains(table)) {
            Some(table) => Err(missing(self.home.medium.file(table), "")),
            None => Ok(()),
        }
    }

    /// Reads the parts of the tables that an opening reads: if the start itself failed there, it would already have
    /// written.
    async fn what_an_opening_reads(&self, manifest: &VersionedManifest, blocks: Option<&NumberedBlocks>) -> Result<()> {
        if manifest.all_sst_views().next().is_none() {
            return Ok(());
        }
        let options = DbReaderOptions {
            skip_wal_replay: true,
            object_store_max_retries: Some(0),
            ..DbReaderOptions::default()
        };
        let reader = DbReader::builder(Path::from(self.database), self.home.objects())
            .with_reader_mode(DbReaderMode::FollowLatest)
            .with_options(options)
            .with_merge_operator(Arc::new(Merger))
            .with_system_clock(Arc::clone(&self.home.ticks) as _);
        let reader = match blocks.cloned() {
            Some((blocks, number)) => reader.with_db_cache(blocks, number),
            None => reader,
        };
        let reading = scan_options(self.home.is_remote(), 0);
        let read = async move {
            let reader = reader.build().await?;
            let read = read_all(&reader, &reading).await;
            reader.close().await?;
            read
        };
        let path = self.home.medium.file(&Path::from(self.database));
        match self.read(path, read).await? {
            Some(own) => self.home.check_origin(own.origin),
            None => Err(unknown_record(self.home)),
        }
    }

    /// Reads an object. Any failure, a panic too, is damage of the object, unless the medium failed.
    async fn read<T>(&self, path: PathBuf, read: impl Future<Output = Result<T, slatedb::Error>> + Send) -> Result<T> {
        let what = match AssertUnwindSafe(read).catch_unwind().await {
            Ok(Ok(read)) => return Ok(read),
            Ok(Err(error)) => match failure(&self.home.location, &error) {
                Error::Corrupt { path: of, what } if of.as_os_str() == &*self.home.location => what,
                Error::Engine { what, .. } => what,
                error => return Err(error),
            },
            Err(panic) => format!("the engine panicked: {}", panic_text(panic.as_ref())),
        };
        Err(Error::Corrupt { path, what })
    }
}

/// Reads everything that an opening reads. `None` means that this version cannot interpret the store's own records.
async fn read_all(reader: &DbReader, options: &ScanOptions) -> Result<Option<OwnRecords>, slatedb::Error> {
    let catalog = async {
        let catalog = full_range(Space::Catalog, &KeyRange::all());
        let mut entries = DbReadOps::scan_with_options(reader, catalog, options).await?;
        while entries.next().await?.is_some() {}
        Ok(())
    };
    let (_, (), own) = futures::try_join!(deletion_tables(reader, options), catalog, own_records(reader, options))?;
    Ok(own)
}

fn of_store(error: slatedb::object_store::Error) -> slatedb::Error {
    slatedb::Error::unavailable("object store error".to_owned()).with_source(Box::new(error))
}

fn missing(path: PathBuf, why: &str) -> Error {
    let colon = if why.is_empty() { "" } else { ": " };
    Error::Corrupt {
        path,
        what: format!("it is gone, and was acknowledged{colon}{why}"),
    }
}
