//! Roles in backups: the rows of `system_auth`. Only a whole backup has them.
//!
//! Restoring never mixes two sets of roles: the rows are written only where no role was ever stored.

use std::sync::Arc;

use super::restore::{RestoredRoles, Restorer};
use super::{Backup, BackupError, Copy, Frozen, storage_read};
use crate::partition::backups::{self, Merge, Rest};
use helenus_schema::schema::{Schema, Table, system};
use helenus_storage::backup::{Block, Kind, Manifest, Reader, Scope, TableEntry, Writer};

/// The table that decides whether there are roles.
const ROLES: &str = "roles";

/// The tables of which roles consist. `roles` is last: an interrupted restore leaves it empty, so that the next one writes
/// all rows again.
pub(super) fn tables(schema: &Schema) -> Vec<Arc<Table>> {
    let keyspace = schema.keyspaces.get(system::AUTH);
    let mut tables: Vec<_> = keyspace
        .into_iter()
        .flat_map(|keyspace| keyspace.all_tables())
        .cloned()
        .collect();
    tables.sort_by_key(|table| table.name == ROLES);
    tables
}

/// Whether a backup has roles.
pub fn is_in(manifest: &Manifest) -> bool {
    manifest.tables.iter().any(is_of_roles)
}

/// Whether an entry of a manifest is of roles, and not of a user's table.
pub fn is_of_roles(entry: &TableEntry) -> bool {
    entry.keyspace == system::AUTH
}

impl Backup<'_> {
    /// Adds the tables of roles that have rows, if the scope is the whole database.
    pub(super) async fn roles(
        frozen: &Frozen,
        scope: &Scope,
        batches: &[Merge],
        entries: &mut Vec<TableEntry>,
        mut writer: Writer,
    ) -> Result<Writer, BackupError> {
        if *scope != Scope::Whole {
            return Ok(writer);
        }
        for table in tables(&frozen.catalog.schema) {
            let copy = Copy {
                frozen,
                table: &table,
                batches,
            };
            if copy.is_empty().await? {
                continue;
            }
            let (entry, back) = copy.write(writer).await?;
            entries.push(entry);
            writer = back;
        }
        Ok(writer)
    }
}

impl Copy<'_> {
    /// Whether the table has no rows, also none of unfinished batches.
    async fn is_empty(&self) -> Result<bool, BackupError> {
        let id = self.table.storage_id;
        if self
            .batches
            .iter()
            .any(|merge| backups::late_entry(id, merge).is_some())
        {
            return Ok(false);
        }
        let map = self.frozen.catalog.partitions(self.table)?;
        for partition in map.here() {
            let (mut block, mut rest) = (Block::default(), Rest::all(id, partition, Kind::Row));
            let found = self.frozen.moments.fill(&mut block, partition, &mut rest).await;
            if found.map_err(|error| storage_read(&error))? > 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Restorer<'_> {
    /// Writes the rows of a backup's roles, if the database has no roles.
    pub(super) async fn restore_roles(self, reader: &Reader) -> Result<RestoredRoles, BackupError> {
        let manifest = reader.manifest();
        if !is_in(manifest) {
            return Ok(RestoredRoles::None);
        }
        let frozen = self.catalog.freeze().await?;
        let tables = tables(&frozen.catalog.schema);
        for table in tables.iter().filter(|table| table.name == ROLES) {
            let there = Copy {
                frozen: &frozen,
                table,
                batches: &[],
            };
            if !there.is_empty().await? {
                return Ok(RestoredRoles::LeftOut);
            }
        }
        drop(frozen);
        for table in tables {
            let entry = manifest.tables.iter().filter(|entry| is_of_roles(entry));
            for entry in entry.filter(|entry| entry.table == table.name) {
                self.copy(reader, entry, table.storage_id).await?;
            }
        }
        Ok(RestoredRoles::Restored)
    }
}
