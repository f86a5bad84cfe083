//! Backups of one moment, and their restoration as new tables.
//!
//! ```text
//! backup     one moment of all stores (catalog/freeze.rs)
//!            ─► rows and deletions of each table, range by range of the partition map
//!            ─► the changes of unfinished logged batches ─► the manifest
//! restore    all checksums ─► numbers (catalog/adopt.rs) ─► rows and deletions into the main store
//!            ─► the changes of the batches ─► the schema
//! ```
//! **A backup contains** rows as they are stored, with timestamps, times to live, tombstones, counters and static rows;
//! deletions; definitions with all options; the bounds of physical partitions. **It does not contain** index entries,
//! which are rebuilt; the store of each physical partition, since a restored table lies in the main store; system
//! keyspaces, except for an altered replication and, in a whole backup, the roles.
//!
//! A restored table is a new one: it never mixes with an existing table.

mod plan;
mod restore;
mod roles;
mod salvage;
mod service;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub use self::plan::What;
use self::restore::verify;
pub use self::restore::{Restored, RestoredRoles};
pub use self::roles::{is_in as has_roles, is_of_roles};
pub use self::salvage::{Salvaged, salvage};
pub use self::service::Backups;
use super::catalog::{Catalog, Frozen};
use super::edge::storage_read;
use super::error::Error;
use super::pending;
use super::snapshot::Snapshot;
use crate::partition::Placement;
use crate::partition::backups::{self, Merge, Rest};
use helenus_base::progress;
use helenus_schema::profile::Profile;
use helenus_schema::schema::record::rename;
use helenus_schema::schema::{Table, system};
use helenus_storage::backup::{self, Block, FORMAT, Kind, Loss, Manifest, RecordEntry, Scope, TableEntry, Writer};
use helenus_types::token::{KeyBound, KeySpan};

/// Why there is no backup, or nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The backup's files could not be read or written.
    #[error(transparent)]
    Files(#[from] backup::Error),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] Error),
    /// There is no such keyspace or table.
    #[error("there is no {what} {name} in the {place}")]
    Absent {
        /// Keyspace or table.
        what: &'static str,
        /// Its name.
        name: String,
        /// Database or backup.
        place: &'static str,
    },
    /// The object is not backed up by itself; only definitions of users are.
    #[error("{name} is not backed up by itself: {why}")]
    NotByItself {
        /// A system keyspace or a materialized view.
        name: String,
        /// The reason, and what to do instead.
        why: &'static str,
    },
    /// The new name is not valid.
    #[error("{what} cannot be restored as {name:?}: a name has 1 to {characters_max} letters, digits and underscores")]
    Name {
        /// Keyspace or table.
        what: &'static str,
        /// The name.
        name: String,
        /// Most characters.
        characters_max: usize,
    },
    /// The target exists: a restore replaces nothing.
    #[error("{what} {name} is there already: restore it under another name (--as), or drop it first")]
    Exists {
        /// Keyspace or table.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// A table needs a type that is defined otherwise in its new keyspace.
    #[error(
        "the type {keyspace}.{name} is there with other fields than the restored table needs: restore the table into another keyspace"
    )]
    TypeDiffers {
        /// The keyspace.
        keyspace: String,
        /// The type.
        name: String,
    },
    /// A store cannot be read at all, not even in part.
    #[error(transparent)]
    Store(#[from] crate::partition::salvage::Unreadable),
    /// The profiles differ. They store times to live differently.
    #[error("the backup is of a database with the profile {found}: start with --profile {found}")]
    Profile {
        /// The profile of the backup.
        found: String,
    },
    /// The schema of the backup cannot be read.
    #[error(transparent)]
    Records(#[from] helenus_schema::schema::record::RecordError),
    /// Without the definitions of tables, their rows cannot be told apart.
    #[error(
        "nothing can be salvaged: no definition of a table can be read, and nothing was written; put the missing files back, or restore a \
         backup{}",
        listed(lost)
    )]
    NothingRead {
        /// What is missing.
        lost: Vec<Loss>,
    },
    /// A thread that reads or writes files panicked.
    #[error("a thread that reads or writes the backup failed")]
    Thread,
}

/// Losses, one a line.
fn listed(lost: &[Loss]) -> String {
    let lines = lost.iter().map(|lost| format!("\nlost: {}: {}", lost.place, lost.what));
    lines.collect()
}

/// A finished backup.
#[derive(Debug)]
pub struct BackedUp {
    /// Its contents.
    pub manifest: Manifest,
    /// How long writes waited during the snapshots.
    pub held: Duration,
}

/// Runs blocking work on a thread for it.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, backup::Error> + Send + 'static,
) -> Result<T, BackupError> {
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done.map_err(|_| BackupError::Thread)??)
}

/// Makes backups.
#[derive(Clone, Copy)]
pub(super) struct Backup<'a> {
    pub(super) catalog: &'a Arc<Catalog>,
    pub(super) profile: Profile,
}

impl Backup<'_> {
    /// Writes a backup of one moment into a directory that is new or empty. Writes of clients wait only while the
    /// snapshots are taken.
    ///
    /// # Errors
    /// There is no such keyspace or table; the stores or the directory fail. Then there is no manifest.
    pub(super) async fn write(self, to: &Path, scope: &Scope) -> Result<BackedUp, BackupError> {
        // Refuse invalid requests before anything is created and before writes wait.
        tables(&Arc::clone(&self.catalog.load()), scope)?;
        let directory = to.to_owned();
        let mut writer = blocking(move || Writer::create(&directory)).await?;
        let frozen = self.catalog.freeze().await?;
        let records = records(&frozen, scope).await?;
        let batches = batches(&frozen).await?;
        let mut entries = Vec::new();
        for table in tables(&frozen.catalog, scope)? {
            let copy = Copy {
                frozen: &frozen,
                table: &table,
                batches: &batches,
            };
            let (entry, back) = copy.write(writer).await?;
            entries.push(entry);
            writer = back;
        }
        let writer = Self::roles(&frozen, scope, &batches, &mut entries, writer).await?;
        let manifest = Manifest {
            format: FORMAT,
            helenus: env!("CARGO_PKG_VERSION").to_owned(),
            profile: self.profile.to_string(),
            scope: scope.clone(),
            moment_micros: frozen.moment_micros,
            timestamp_max_micros: frozen.timestamp_micros,
            records,
            tables: entries,
            lost: Vec::new(),
            checksum: String::new(),
        };
        let held = frozen.held;
        drop(frozen);
        let manifest = blocking(move || writer.finish(&manifest).map(|()| manifest)).await?;
        Ok(BackedUp { manifest, held })
    }
}

/// The tables and views of a scope, by keyspace and name.
fn tables(snapshot: &Snapshot, scope: &Scope) -> Result<Vec<Arc<Table>>, BackupError> {
    let schema = &snapshot.schema;
    let absent = |what, name: String| BackupError::Absent {
        what,
        name,
        place: "database",
    };
    let users = |name: &str| match schema.keyspaces.get(name) {
        _ if name == system::AUTH => Err(BackupError::NotByItself {
            name: name.to_owned(),
            why: "only a backup of the whole database has the roles",
        }),
        _ if system::is_name(name) => Err(BackupError::NotByItself {
            name: name.to_owned(),
            why: "system keyspaces hold nothing of users",
        }),
        None => Err(absent("keyspace", name.to_owned())),
        Some(keyspace) => Ok(keyspace),
    };
    let mut tables: Vec<Arc<Table>> = match scope {
        Scope::Whole => {
            let keyspaces = schema.keyspaces.values();
            let keyspaces = keyspaces.filter(|keyspace| !system::is_name(&keyspace.name));
            keyspaces.flat_map(|keyspace| keyspace.all_tables()).cloned().collect()
        }
        Scope::Keyspace { keyspace } => users(keyspace)?.all_tables().cloned().collect(),
        Scope::Table { keyspace, table } => {
            let found = users(keyspace)?;
            if found.views.contains_key(table) {
                return Err(BackupError::NotByItself {
                    name: format!("{keyspace}.{table}"),
                    why: "it is a materialized view; back up its keyspace",
                });
            }
            let found = found.tables.get(table);
            vec![Arc::clone(
                found.ok_or_else(|| absent("table", format!("{keyspace}.{table}")))?,
            )]
        }
    };
    tables.retain(|table| !table.is_virtual);
    for table in &tables {
        let map = snapshot.partitions(table)?;
        if map.placement() == Placement::Key {
            return Err(BackupError::NotByItself {
                name: format!("{}.{}", table.keyspace, table.name),
                why: "its rows are ordered by partition key, which a backup does not record; leave it out",
            });
        }
    }
    tables.sort_by(|one, other| (&one.keyspace, &one.name).cmp(&(&other.keyspace, &other.name)));
    Ok(tables)
}

/// Whether a record of the schema belongs to a scope.
fn belongs(key: &[u8], scope: &Scope) -> bool {
    let Some((kind, of, name)) = rename::place(key) else {
        return false;
    };
    match scope {
        Scope::Whole => true,
        Scope::Keyspace { keyspace } => of == keyspace,
        Scope::Table { keyspace, table } => {
            of == keyspace && (matches!(kind, b'k' | b'y') || (kind == b't' && name == table))
        }
    }
}

/// The records of the schema, as they are stored.
async fn records(frozen: &Frozen, scope: &Scope) -> Result<Vec<RecordEntry>, BackupError> {
    let mut records = Vec::new();
    for (key, value) in catalog_records(frozen, |key| belongs(key, scope)).await? {
        let damaged = || {
            Error::Fault(format!(
                "the catalog is damaged: record {}",
                String::from_utf8_lossy(&key)
            ))
        };
        let (format, record) = value.split_first().ok_or_else(damaged)?;
        records.push(RecordEntry {
            key: String::from_utf8(key.clone()).map_err(|_| damaged())?,
            format: *format,
            record: String::from_utf8(record.to_vec()).map_err(|_| damaged())?,
        });
    }
    Ok(records)
}

/// The changes of the logged batches that were unfinished.
async fn batches(frozen: &Frozen) -> Result<Vec<Merge>, BackupError> {
    let mut merges_found = Vec::new();
    let found = frozen.moments.records_of_stores(pending::RECORD).await;
    for value in found.map_err(|error| storage_read(&error))? {
        let merges = backups::merges(&value);
        let merges = merges.ok_or_else(|| Error::Fault("a record of the batch log is damaged".to_owned()))?;
        merges_found.extend(merges);
    }
    Ok(merges_found)
}

async fn catalog_records(
    frozen: &Frozen,
    belongs: impl FnMut(&[u8]) -> bool + Send,
) -> Result<Vec<(Vec<u8>, Vec<u8>)>, BackupError> {
    let found = frozen.moments.records(belongs).await;
    Ok(found.map_err(|error| storage_read(&error))?)
}

/// The tokens at which the physical partitions of a table begin, except the first. Bounds inside a token are left out:
/// a restored table then has all its rows, in fewer partitions.
fn splits<'s>(spans: impl Iterator<Item = &'s KeySpan>) -> Vec<i64> {
    let starts = spans.skip(1).map(KeySpan::start);
    let between = starts.filter(|start| start.is_between_tokens());
    between.map(KeyBound::token).collect()
}

/// The copy of one table.
struct Copy<'a> {
    frozen: &'a Frozen,
    table: &'a Table,
    batches: &'a [Merge],
}

impl Copy<'_> {
    async fn write(&self, mut writer: Writer) -> Result<(TableEntry, Writer), BackupError> {
        let map = self.frozen.catalog.partitions(self.table)?;
        writer.begin_table();
        let (rows, writer) = self.entries(Kind::Row, writer).await?;
        let (deletions, writer) = self.entries(Kind::Deletion, writer).await?;
        let (late, mut writer) = self.late(writer).await?;
        let (files, writer) = blocking(move || writer.end_table().map(|files| (files, writer))).await?;
        let entry = TableEntry {
            keyspace: self.table.keyspace.clone(),
            table: self.table.name.clone(),
            splits: splits(map.all().iter().map(|partition| &partition.span)),
            rows,
            deletions,
            late,
            files,
        };
        Ok((entry, writer))
    }

    /// Copies the entries that the partition map assigns to each store of the table. Returns how many there were.
    async fn entries(&self, kind: Kind, mut writer: Writer) -> Result<(u64, Writer), BackupError> {
        let map = self.frozen.catalog.partitions(self.table)?;
        let (mut count, mut block) = (0_u64, Block::default());
        for partition in map.here() {
            let mut rest = Rest::all(self.table.storage_id, partition, kind);
            loop {
                let filled = self.frozen.moments.fill(&mut block, partition, &mut rest).await;
                let filled = filled.map_err(|error| storage_read(&error))?;
                progress::pass(filled, 0);
                count += filled;
                if rest.is_done() {
                    break;
                }
                writer = write_block(writer, std::mem::take(&mut block)).await?;
            }
        }
        Ok((count, write_block(writer, block).await?))
    }

    /// Adds the changes of unfinished logged batches to the table.
    async fn late(&self, mut writer: Writer) -> Result<(u64, Writer), BackupError> {
        let (mut count, mut block) = (0_u64, Block::default());
        let merges_found = self.batches.iter();
        for entry in merges_found.filter_map(|merge| backups::late_entry(self.table.storage_id, merge)) {
            count += 1;
            if block.add(entry) {
                writer = write_block(writer, std::mem::take(&mut block)).await?;
            }
        }
        Ok((count, write_block(writer, block).await?))
    }
}

async fn write_block(mut writer: Writer, block: Block) -> Result<Writer, BackupError> {
    if block.is_empty() {
        return Ok(writer);
    }
    blocking(move || writer.write(block).map(|()| writer)).await
}
