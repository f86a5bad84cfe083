//! A backup of the readable part of a damaged database.
//!
//! ```text
//! catalog of the main store ─► schema, partition maps, batch log ─► each store by itself
//!     ─► rows and deletions by the maps
//!     ─► a backup whose manifest names under "lost" what is missing, and why
//! ```
//! The damaged directory is only read. The result is restored as any backup is, so rows keep timestamps, times to live
//! and tombstones.
//!
//! **Possible errors**, all of them reported: rows are missing; rows are older than they were, if the newer file is
//! damaged; deleted rows reappear, if the record of the deletion is missing. The backup contains nothing that was never
//! written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use super::{BackupError, blocking, roles, splits, write_block};
use crate::engine::catalog::{PARTITIONS, data_store};
use crate::engine::pending;
use crate::partition::backups::{self, Merge, Rest};
use crate::partition::salvage::{Gaps, Stores, map_of, meaning};
use crate::partition::{PartitionMap, Placement, StoreId};
use helenus_base::clock::Clock;
use helenus_base::progress;
use helenus_schema::profile::Profile;
use helenus_schema::schema::record::{self, rename};
use helenus_schema::schema::{StorageId, Table, system};
use helenus_storage::backup::{Block, FORMAT, Kind, Loss, Manifest, RecordEntry, Scope, TableEntry, Writer};
use helenus_types::token::KeySpan;

/// The reason why a table of ordered partition keys is salvaged without rows. Gap: backup-7.
const ORDERED: &str = "its rows are ordered by partition key, which a backup does not record: they are left out, and still lie in the directory";

/// Most tables that are named for a lost file. If there are more, only their number is given.
const NAMED_MAX: usize = 20;

/// The result of a salvage.
#[derive(Debug)]
pub struct Salvaged {
    /// The contents of the backup, and its losses.
    pub manifest: Manifest,
    /// Tables with missing or old rows, as `KEYSPACE.TABLE`.
    pub incomplete: BTreeSet<String>,
}

/// Writes a backup of what can be read of the stores at a URL into a directory that is new or empty.
///
/// # Errors
/// There is no store; another process has it; nothing can be read, and nothing was written; the medium fails otherwise
/// than by damage.
pub async fn salvage(url: &str, clock: &Clock, profile: Profile, to: &Path) -> Result<Salvaged, BackupError> {
    let stores = Stores::open(url, clock.clone()).await?;
    let mut work = Work {
        found: Found::read(&stores).await,
        stores,
        lost: Vec::new(),
        incomplete: BTreeSet::new(),
    };
    let tables = work.found.load(&mut work.lost);
    if !tables.iter().any(|table| !system::is_name(&table.keyspace)) {
        return Err(work.nothing_read().await);
    }
    let directory = to.to_owned();
    let mut writer = blocking(move || Writer::create(&directory)).await?;
    let mut places = Vec::new();
    for table in tables {
        let map = work.partition_map(&table);
        places.push((table, map));
    }
    work.open_side(&places).await;
    work.stores.check_together();
    work.read_batches_beside().await;
    work.leave_out_empty_roles(&mut places).await;
    let mut entries = Vec::new();
    for (table, map) in &places {
        let (entry, back) = work.write(table, map, writer).await?;
        entries.push(entry);
        writer = back;
    }
    work.report_damage(&places);
    work.report_unknown_tables(&places).await;
    let now = clock.wall_micros();
    let manifest = Manifest {
        format: FORMAT,
        helenus: env!("CARGO_PKG_VERSION").to_owned(),
        profile: profile.to_string(),
        scope: Scope::Whole,
        moment_micros: now,
        timestamp_max_micros: work.stores.given_micros().unwrap_or(now),
        records: work.found.entries(),
        tables: entries,
        lost: work.lost,
        checksum: String::new(),
    };
    let manifest = blocking(move || writer.finish(&manifest).map(|()| manifest)).await?;
    Ok(Salvaged {
        manifest,
        incomplete: work.incomplete,
    })
}

/// The contents of the catalog, as far as it can be read.
#[derive(Default)]
struct Found {
    /// The records of the schema.
    records: Vec<(Vec<u8>, Vec<u8>)>,
    maps: BTreeMap<StorageId, Vec<u8>>,
    batches: Vec<Merge>,
    /// The data stores, which have batch logs even without physical partitions.
    data: BTreeSet<StoreId>,
    /// Files in which part of it cannot be read, and why.
    gaps: Vec<(String, String)>,
}

impl Found {
    async fn read(stores: &Stores) -> Self {
        let mut found = Self::default();
        let gaps = stores.records(|key, value| {
            if let Some(id) = key.strip_prefix(PARTITIONS) {
                let id = id.try_into().ok().map(u32::from_be_bytes);
                found.maps.extend(id.map(|id| (id, value.to_vec())));
            } else if key.starts_with(pending::RECORD) {
                found.batches.extend(backups::merges(value).unwrap_or_default());
            } else if let Some(id) = data_store(key, value) {
                found.data.insert(id);
            } else if rename::place(key).is_some() {
                found.records.push((key.to_vec(), value.to_vec()));
            }
        });
        found.gaps = gaps.await;
        found
    }

    /// The tables and views of users, and those of roles. Definitions that cannot be used are left out and reported.
    fn load(&mut self, lost: &mut Vec<Loss>) -> Vec<Arc<Table>> {
        for (file, why) in &self.gaps {
            lost.push(Loss {
                place: file.clone(),
                what: format!("part of the catalog cannot be read ({why}): definitions may be missing"),
            });
        }
        if let Err(error) = record::load(self.records.iter().map(|(key, value)| (key, value))) {
            lost.push(Loss {
                place: "the schema".to_owned(),
                what: format!("{error}; keyspaces that cannot be used are left out, and named"),
            });
            self.leave_out(lost);
        }
        let Ok(schema) = record::load(self.records.iter().map(|(key, value)| (key, value))) else {
            self.records.clear();
            return Vec::new();
        };
        let users = schema.keyspaces.values();
        let users = users.filter(|keyspace| !system::is_name(&keyspace.name));
        let mut tables: Vec<_> = users.flat_map(|keyspace| keyspace.all_tables()).cloned().collect();
        tables.retain(|table| !table.is_virtual);
        tables.sort_by(|one, other| (&one.keyspace, &one.name).cmp(&(&other.keyspace, &other.name)));
        tables.extend(roles::tables(&schema));
        tables
    }

    /// Leaves out the keyspaces whose records do not make a schema.
    fn leave_out(&mut self, lost: &mut Vec<Loss>) {
        let keyspace_of = |key: &[u8]| rename::place(key).map(|(_, keyspace, _)| keyspace.to_owned());
        let names: BTreeSet<String> = self.records.iter().filter_map(|(key, _)| keyspace_of(key)).collect();
        for name in names {
            let is_of = |key: &[u8]| keyspace_of(key).as_deref() == Some(&name);
            let of_keyspace = self.records.iter().filter(|(key, _)| is_of(key));
            if let Err(error) = record::load(of_keyspace.map(|(key, value)| (key, value))) {
                lost.push(Loss {
                    place: format!("keyspace {name}"),
                    what: format!("its definition cannot be used: {error}"),
                });
                self.records.retain(|(key, _)| !is_of(key));
            }
        }
    }

    fn entries(&self) -> Vec<RecordEntry> {
        let entry = |(key, value): &(Vec<u8>, Vec<u8>)| {
            let (format, record) = value.split_first()?;
            Some(RecordEntry {
                key: String::from_utf8(key.clone()).ok()?,
                format: *format,
                record: String::from_utf8(record.to_vec()).ok()?,
            })
        };
        self.records.iter().filter_map(entry).collect()
    }
}

/// A table and its partition map.
type Placed = (Arc<Table>, PartitionMap);

struct Work {
    found: Found,
    /// The stores that exist.
    stores: Stores,
    lost: Vec<Loss>,
    incomplete: BTreeSet<String>,
}

fn name_of(table: &Table) -> String {
    format!("{}.{}", table.keyspace, table.name)
}

fn stores_of(map: &PartitionMap) -> BTreeSet<StoreId> {
    map.all().iter().map(|partition| partition.store_id).collect()
}

impl Work {
    fn lose(&mut self, table: &Table, what: String) {
        let place = name_of(table);
        self.incomplete.insert(place.clone());
        self.lost.push(Loss { place, what });
    }

    fn lose_all(&mut self, table: &Table, gaps: Gaps, kind: Kind) {
        for gap in gaps.into_values() {
            self.lose(table, format!("{gap}: {}", meaning(kind)));
        }
    }

    /// Whether records of the catalog may be missing.
    fn is_catalog_damaged(&self) -> bool {
        !self.found.gaps.is_empty() || !self.stores.damage(StoreId::MAIN).is_empty()
    }

    /// The partition map of a table.
    fn partition_map(&mut self, table: &Table) -> PartitionMap {
        map_of(self.found.maps.get(&table.storage_id)).unwrap_or_else(|error| {
            self.lose(table, format!("{error}: only what the main store has of it is read"));
            PartitionMap::evenly(1, StoreId::MAIN)
        })
    }

    /// Opens the data stores and those that the maps name, or all existing ones where maps may be missing.
    async fn open_side(&mut self, places: &[Placed]) {
        let mut named: BTreeSet<StoreId> = places.iter().flat_map(|(_, map)| stores_of(map)).collect();
        named.extend(&self.found.data);
        if self.is_catalog_damaged() {
            named.extend(self.stores.beside());
        }
        for id in named.into_iter().filter(|id| *id != StoreId::MAIN) {
            if let Err(error) = self.stores.open_side(id).await {
                self.lost.push(Loss {
                    place: format!("stores/{}", id.0),
                    what: error.to_string(),
                });
            }
        }
    }

    /// Reads the batch logs of the side stores.
    async fn read_batches_beside(&mut self) {
        let batches = &mut self.found.batches;
        let visit = |value: &[u8]| batches.extend(backups::merges(value).unwrap_or_default());
        self.stores.records_beside(pending::RECORD, visit).await;
    }

    /// Leaves out the tables of roles that have no rows: most databases have no roles.
    async fn leave_out_empty_roles(&self, places: &mut Vec<Placed>) {
        let mut used = BTreeSet::new();
        for id in self.stores.ids() {
            used.extend(self.stores.tables(id).await);
        }
        places.retain(|(table, _)| table.keyspace != system::AUTH || used.contains(&table.storage_id));
    }

    async fn write(
        &mut self,
        table: &Arc<Table>,
        map: &PartitionMap,
        mut writer: Writer,
    ) -> Result<(TableEntry, Writer), BackupError> {
        writer.begin_table();
        if map.placement() == Placement::Key {
            // The stored keys have no token of their partition key: a restore would put the rows where no read
            // searches.
            self.lose(table, ORDERED.to_owned());
            return without_rows(table, writer).await;
        }
        let (rows, writer) = self.entries(table, map, Kind::Row, writer).await?;
        let (deletions, writer) = self.entries(table, map, Kind::Deletion, writer).await?;
        let (late, writer) = self.late(table, writer).await?;
        let (of_others, mut writer) = self.of_other_stores(table, writer).await?;
        let (files, writer) = blocking(move || writer.end_table().map(|files| (files, writer))).await?;
        let entry = TableEntry {
            keyspace: table.keyspace.clone(),
            table: table.name.clone(),
            splits: splits(map.all().iter().map(|partition| &partition.span)),
            rows,
            deletions,
            late: late + of_others,
            files,
        };
        self.compare_count(table, map, rows);
        Ok((entry, writer))
    }

    async fn entries(
        &mut self,
        table: &Arc<Table>,
        map: &PartitionMap,
        kind: Kind,
        mut writer: Writer,
    ) -> Result<(u64, Writer), BackupError> {
        let (mut count, mut block) = (0_u64, Block::default());
        for partition in map.all() {
            let (mut gaps, mut rest) = (Gaps::new(), Rest::within(table.storage_id, &partition.span, kind));
            while !rest.is_done() {
                let filled = self
                    .stores
                    .fill(partition.store_id, &mut block, &mut rest, &mut gaps)
                    .await;
                let Some(added) = filled else {
                    let (lower, upper, id) = (partition.lower(), partition.upper(), partition.store_id.0);
                    if kind == Kind::Row {
                        let what = format!("tokens {lower} to {upper} lay in stores/{id}, which cannot be read");
                        self.lose(table, what);
                    }
                    break;
                };
                progress::pass(added, 0);
                count += added;
                if !rest.is_done() {
                    writer = write_block(writer, std::mem::take(&mut block)).await?;
                }
            }
            self.lose_all(table, gaps, kind);
        }
        Ok((count, write_block(writer, block).await?))
    }

    /// The changes of unfinished logged batches to the table.
    async fn late(&self, table: &Table, mut writer: Writer) -> Result<(u64, Writer), BackupError> {
        let (mut count, mut block) = (0_u64, Block::default());
        let batches = self.found.batches.iter();
        for entry in batches.filter_map(|merge| backups::late_entry(table.storage_id, merge)) {
            count += 1;
            if block.add(entry) {
                writer = write_block(writer, std::mem::take(&mut block)).await?;
            }
        }
        Ok((count, write_block(writer, block).await?))
    }

    /// Writes the rows that lie in side stores, of a table whose partition map may be missing. They are merged with the
    /// rows of the main store.
    async fn of_other_stores(&mut self, table: &Table, mut writer: Writer) -> Result<(u64, Writer), BackupError> {
        if self.found.maps.contains_key(&table.storage_id) || !self.is_catalog_damaged() {
            return Ok((0, writer));
        }
        let mut count = 0;
        for id in self.stores.ids().into_iter().filter(|id| *id != StoreId::MAIN) {
            let mut of_store = 0;
            for kind in [Kind::LateRow, Kind::LateDeletion] {
                let mut gaps = Gaps::new();
                let mut rest = Rest::within(table.storage_id, &KeySpan::whole(), kind);
                while !rest.is_done() {
                    let mut block = Block::default();
                    let filled = self.stores.fill(id, &mut block, &mut rest, &mut gaps).await;
                    of_store += filled.unwrap_or(0);
                    writer = write_block(writer, block).await?;
                }
                self.lose_all(table, gaps, kind);
            }
            if of_store > 0 {
                let what = "its partition map may be missing: rows and deletions that";
                self.lose(
                    table,
                    format!("{what} stores/{} has of it, {of_store}, are taken too", id.0),
                );
            }
            count += of_store;
        }
        Ok((count, writer))
    }

    /// Compares the number of rows that were read with the counts of damaged stores.
    fn compare_count(&mut self, table: &Table, map: &PartitionMap, read: u64) {
        let ids = stores_of(map);
        if ids.iter().all(|id| self.stores.damage(*id).is_empty()) {
            return;
        }
        let counted = self.stores.counted(ids.into_iter(), table.storage_id);
        if read < counted {
            let missing = counted - read;
            self.lose(
                table,
                format!("{missing} of the {counted} rows that its stores had counted are missing"),
            );
        }
    }

    /// Reports missing files, each with the tables that had rows in the same store. What is missing of the main store may have been
    /// a map, a truncation or a definition of any table, so none is complete then.
    fn report_damage(&mut self, places: &[Placed]) {
        for id in self.stores.ids() {
            let damage = self.stores.damage(id);
            if damage.is_empty() {
                continue;
            }
            let of_store = places.iter().filter(|(_, map)| stores_of(map).contains(&id));
            let names: Vec<String> = of_store.map(|(table, _)| name_of(table)).collect();
            let besides = if id == StoreId::MAIN {
                ", and the map, a truncation or the definition of any table"
            } else {
                ""
            };
            self.lost.extend(damage.into_iter().map(|(place, what)| Loss {
                place,
                what: format!(
                    "{what}; it may have held rows and deletions of {}{besides}",
                    some_of(&names)
                ),
            }));
            self.incomplete.extend(names);
        }
        if self.is_catalog_damaged() {
            self.incomplete.extend(places.iter().map(|(table, _)| name_of(table)));
        }
    }

    /// The error for a database of which no definition of a table was read: it is damaged, or it is empty.
    async fn nothing_read(&mut self) -> BackupError {
        self.report_damage(&[]);
        self.report_unknown_tables(&[]).await;
        BackupError::NothingRead {
            lost: std::mem::take(&mut self.lost),
        }
    }

    /// Reports tables that have rows and no definition, where definitions may be missing.
    async fn report_unknown_tables(&mut self, places: &[Placed]) {
        if !self.is_catalog_damaged() {
            return;
        }
        let known: BTreeSet<StorageId> = places.iter().map(|(table, _)| table.storage_id).collect();
        for id in self.stores.ids() {
            let tables = self.stores.tables(id).await;
            let strangers = tables.into_iter().filter(|table| !known.contains(table));
            self.lost.extend(strangers.map(|table| Loss {
                place: format!("table number {table} in store {}", id.0),
                what: "it was dropped, or its definition cannot be read; its rows are left out".to_owned(),
            }));
        }
    }
}

/// The entry of a table whose definition alone is salvaged.
async fn without_rows(table: &Table, mut writer: Writer) -> Result<(TableEntry, Writer), BackupError> {
    let (files, writer) = blocking(move || writer.end_table().map(|files| (files, writer))).await?;
    let entry = TableEntry {
        keyspace: table.keyspace.clone(),
        table: table.name.clone(),
        splits: Vec::new(),
        rows: 0,
        deletions: 0,
        late: 0,
        files,
    };
    Ok((entry, writer))
}

fn some_of(names: &[String]) -> String {
    match names.get(..NAMED_MAX) {
        _ if names.is_empty() => "no table that is known".to_owned(),
        Some(first) if names.len() > NAMED_MAX => format!("{} and {} more", first.join(", "), names.len() - NAMED_MAX),
        _ => names.join(", "),
    }
}
