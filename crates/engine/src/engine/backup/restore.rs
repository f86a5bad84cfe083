//! Restoring tables of a backup as new tables.

use crate::engine::refusal::Refusal;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;

use super::plan::{Plan, What};
use super::{BackupError, blocking};
use crate::engine::catalog::Catalog;
use crate::engine::storage_write;
use crate::engine::terms::clock::WriteClock;
use crate::partition::backups::{Counts, changes};
use helenus_base::progress;
use helenus_schema::profile::Profile;
use helenus_schema::schema::StorageId;
use helenus_storage::backup::{self, Manifest, Reader, TableEntry};

/// Commits of a restore that are under way at once; each is about a block.
const COMMITS_MAX: usize = 4;

/// What a restore did with the roles of the backup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RestoredRoles {
    /// The backup has none, or they were not requested.
    #[default]
    None,
    /// They are there.
    Restored,
    /// They were left out, because the database has roles.
    LeftOut,
}

/// The result of a restore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Tables and materialized views.
    pub tables: usize,
    /// Rows, static ones too.
    pub rows: u64,
    /// The time of the backup, µs since 1970-01-01 UTC.
    pub moment_micros: i64,
    /// Parts that a salvage could not read, which are missing.
    pub lost: usize,
    /// The roles of the backup.
    pub roles: RestoredRoles,
}

/// Opens a backup and compares all lengths and checksums.
pub(crate) async fn verify(from: &Path) -> Result<Reader, BackupError> {
    let directory = from.to_owned();
    let reader = blocking(move || {
        let reader = Reader::open(&directory)?;
        reader.verify()?;
        Ok(reader)
    });
    reader.await
}

/// Refuses a backup of a database with another profile.
pub(crate) fn check_profile(manifest: &Manifest, profile: Profile) -> Result<(), BackupError> {
    if manifest.profile == profile.to_string() {
        return Ok(());
    }
    Err(BackupError::Profile {
        found: manifest.profile.clone(),
    })
}

/// Restores backups.
#[derive(Clone, Copy)]
pub(crate) struct Restorer<'a> {
    pub(crate) catalog: &'a Arc<Catalog>,
    pub(crate) clock: &'a WriteClock,
    pub(crate) profile: Profile,
}

impl Restorer<'_> {
    /// Restores tables of a backup as new ones. An incomplete restore is never visible, and a kill leaves nothing of
    /// it.
    ///
    /// # Errors
    /// The backup lacks a requested table; a keyspace or table of the name exists; a store fails. Nothing is restored
    /// then.
    pub(crate) async fn restore(self, reader: &Reader, what: &What) -> Result<Restored, BackupError> {
        let manifest = reader.manifest();
        check_profile(manifest, self.profile)?;
        let plan = Plan::new(manifest, what)?;
        // Make the checks of the publication now, so that a refusal comes before any row is written.
        let schema = Arc::clone(&self.catalog.load().schema);
        plan.next(&schema, &(0..plan.numbers), &mut uuid::Uuid::nil)?;
        // From now on timestamps of writes must be above those of the backup's server.
        self.clock.found_ballot(manifest.timestamp_max_micros);
        let numbers = self.catalog.take_numbers(plan.numbers).await?;
        let outcome = self.restore_as(reader, what, &plan, &numbers).await;
        if outcome.is_err() && !self.catalog.is_in_doubt() {
            self.catalog.discard_numbers(numbers);
        }
        outcome
    }

    async fn restore_as(
        self,
        reader: &Reader,
        what: &What,
        plan: &Plan,
        numbers: &Range<StorageId>,
    ) -> Result<Restored, BackupError> {
        let manifest = reader.manifest();
        let all = plan.tables.iter().filter_map(|(place, _)| manifest.tables.get(*place));
        progress::expect(all.map(entries).sum());
        let mut restored = Restored {
            moment_micros: manifest.moment_micros,
            lost: manifest.lost.len(),
            ..Restored::default()
        };
        for (place, id) in &plan.tables {
            if let Some(table) = manifest.tables.get(*place) {
                self.copy(reader, table, numbers.start + id).await?;
                restored.tables += 1;
                restored.rows += table.rows;
            }
        }
        if *what == What::All {
            restored.roles = self.restore_roles(reader).await?;
        }
        let (splits, plan, of) = (plan.splits(manifest, numbers.start), plan.clone(), numbers.clone());
        let adopted = self.catalog.adopt(splits, move |before, new_id| {
            plan.next(before, &of, new_id).map_err(|error| match error {
                BackupError::Database(error) => error,
                error => Refusal::Restore(error.to_string()).into(),
            })
        });
        adopted.await?;
        Ok(restored)
    }

    /// Writes a table's contents from a backup into the main store under a number.
    pub(super) async fn copy(self, reader: &Reader, table: &TableEntry, id: StorageId) -> Result<(), BackupError> {
        let store = self.catalog.main();
        let failed = |error| storage_write(&error);
        let (mut blocks, mut commits) = (reader.blocks(table), FuturesUnordered::new());
        let mut counts = Counts::default();
        loop {
            let (block, back) = blocking(move || blocks.next_block().map(|block| (block, blocks))).await?;
            blocks = back;
            let Some(payload) = block else { break };
            let before = counts;
            let batch = changes(&payload, id, &mut counts);
            let others = counts.deletions + counts.late - before.deletions - before.late;
            progress::pass(counts.rows - before.rows, counts.rows - before.rows + others);
            let batch = batch.ok_or_else(|| damaged(table, "an entry cannot be read"))?;
            // A merged row depends on the row that it is merged with, so such commits run one at a time.
            let in_work_max = if counts.late > 0 { 0 } else { COMMITS_MAX - 1 };
            while commits.len() > in_work_max {
                commits.next().await.transpose().map_err(failed)?;
            }
            commits.push(store.commit(batch));
        }
        while let Some(committed) = commits.next().await {
            committed.map_err(failed)?;
        }
        let counted = Counts {
            rows: table.rows,
            deletions: table.deletions,
            late: table.late,
        };
        if counts != counted {
            return Err(damaged(table, "it has other entries than the manifest counts").into());
        }
        Ok(())
    }
}

/// The entries of a table in a backup.
const fn entries(table: &TableEntry) -> u64 {
    table.rows + table.deletions + table.late
}

fn damaged(table: &TableEntry, what: &'static str) -> backup::Error {
    let file = table.files.first().map(|file| file.name.clone()).unwrap_or_default();
    backup::Error::Damaged {
        path: file.into(),
        what,
    }
}
