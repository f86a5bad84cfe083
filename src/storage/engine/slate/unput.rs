//! Acknowledged groups that the log may lack, under relaxed durability.
//!
//! `periodic` and `os` answer a batch when it is in the database's memory. A failed put of the log, as on a full disk, ends the database and its
//! memory with it. The process lives on, and only a kill or a power cut may lose such writes. So their groups are kept
//! until the log has them, and the reopened database gets them again before anything of it is published.

use std::collections::VecDeque;
use std::sync::Arc;

use super::committer::Committer;
use super::flight::Written;
use super::group::Group;
use crate::storage::options::Durability;
use crate::storage::{CommitSeq, Result};

/// The kept groups, the oldest first, each with a number that is not below that of its changes in the database.
#[derive(Default)]
pub(super) struct Unput(VecDeque<(CommitSeq, Arc<Group>)>);

impl Unput {
    /// Forgets the groups that the log has.
    fn forget(&mut self, durable: CommitSeq) {
        while self.0.front().is_some_and(|(seq, _)| *seq <= durable) {
            self.0.pop_front();
        }
    }
}

impl Committer {
    /// Keeps an acknowledged group until the log has it.
    pub(super) fn keep_unput(&mut self, written: &Written) {
        let group = &written.group;
        if self.options.durability == Durability::Group || (group.folds.is_empty() && group.own.is_empty()) {
            return;
        }
        if let Some(database) = &self.database {
            let durable = database.subscribe().borrow().durable_seq;
            self.unput.forget(CommitSeq(durable));
        }
        self.unput.0.push_back((written.view.seq, Arc::clone(group)));
    }

    /// Writes the kept groups to a database that was just opened. All of them, in their order: the log may have some, and
    /// a group that is written twice has the effect of one.
    pub(super) async fn write_unput(&mut self) -> Result<()> {
        for place in 0..self.unput.0.len() {
            let Some(group) = self.unput.0.get(place).map(|(_, group)| Arc::clone(group)) else {
                break;
            };
            self.write(group).await?;
            if let Some((seq, _)) = self.unput.0.get_mut(place) {
                *seq = self.seq;
            }
        }
        if !self.unput.0.is_empty() {
            tracing::info!(groups = self.unput.0.len(), location = %self.home.location, "wrote acknowledged groups again");
        }
        Ok(())
    }

    /// Logs that acknowledged groups are lost with the store.
    pub(super) fn report_unput(&self) {
        let groups = self.unput.0.len();
        if groups > 0 {
            tracing::error!(
                groups,
                location = %self.home.location,
                "the last acknowledged groups may be lost: the medium failed before the log had them"
            );
        }
    }
}
