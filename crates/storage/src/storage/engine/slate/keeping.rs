//! What the committer does with acknowledged groups that the log may lack.

use std::sync::Arc;

use super::committer::Committer;
use super::flight::Written;
use crate::storage::Result;
use crate::storage::engine::options::Durability;

impl Committer {
    /// Keeps an acknowledged group, the newest that was written, until the log has it.
    pub(super) fn keep_unlogged(&mut self, written: &Written) {
        let group = &written.group;
        if self.options.durability == Durability::Group || (group.folds.is_empty() && group.own.is_empty()) {
            return;
        }
        self.forget_logged();
        self.unlogged.keep(Arc::clone(group), self.engine_seq);
    }

    fn forget_logged(&mut self) {
        if let Some(database) = &self.database {
            let durable = database.subscribe().borrow().durable_seq;
            self.unlogged.forget(durable);
        }
    }

    /// Puts the log if the kept groups have reached their bound.
    pub(super) async fn bound_unlogged(&mut self) -> Result<()> {
        if self.unlogged.is_full() {
            self.put_first().await?;
            self.forget_logged();
        }
        Ok(())
    }

    /// Writes the kept groups to a database that was just opened. All of them, in their order: the log may have some, and
    /// a group that is written twice has the effect of one.
    pub(super) async fn write_unlogged(&mut self) -> Result<()> {
        self.unlogged.begin_again();
        let groups = self.unlogged.groups.len();
        while let Some((place, group)) = self.unlogged.next() {
            self.write(group).await?;
            if let Some(kept) = self.unlogged.groups.get_mut(place) {
                kept.seq = Some(self.engine_seq);
            }
        }
        if groups > 0 {
            tracing::info!(groups, location = %self.home.location, "wrote acknowledged groups again");
        }
        Ok(())
    }

    /// Whether there are acknowledged groups that the log may lack.
    pub(super) fn has_unlogged(&mut self) -> bool {
        self.forget_logged();
        !self.unlogged.groups.is_empty()
    }

    /// Logs that acknowledged groups are lost with the store.
    pub(super) fn report_unlogged(&self) {
        let groups = self.unlogged.groups.len();
        if groups > 0 {
            tracing::error!(
                groups,
                location = %self.home.location,
                "the last acknowledged groups may be lost: the medium failed before the log had them"
            );
        }
    }
}
