//! What the entries of a change log say of a row besides its bytes: the deletions that covered it.

use super::Committer;
use crate::storage::batch::Space;
use crate::storage::change_log::Logging;
use crate::storage::engine::layout::full_range;
use crate::storage::engine::{Order, table_of};
use crate::storage::key::KeyRange;
use crate::storage::{Deletions, Result};

impl Committer {
    /// Finds the deletions that cover rows whose changes are logged.
    pub(super) fn find_deletions(&self, logging: &mut Logging<'_>) -> Result<()> {
        for prefix in logging.prefixes().collect::<Vec<_>>() {
            let is_deleted = table_of(prefix).is_some_and(|table| self.deletion_tables.contains(&table));
            if !is_deleted || logging.knows(prefix) {
                continue;
            }
            let engine = self.engine()?;
            let range = full_range(Space::Deletions, &KeyRange::prefix(prefix));
            let mut deletions = Deletions::default();
            for entry in engine.entries(&engine.database.snapshot(), range, Order::Forward)? {
                let (full, value) = entry?;
                deletions.add_record(prefix.len(), full.get(1..).unwrap_or_default(), &value)?;
            }
            logging.deletions_are(prefix, deletions);
        }
        Ok(())
    }
}
