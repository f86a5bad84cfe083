//! Acknowledged groups that the log may lack, under relaxed durability.
//!
//! `periodic` and `os` answer a batch when it is in the database's memory. A failed put of the log, as on a full disk, ends the database and its
//! memory with it. The process lives on, and only a kill or a power cut may lose such writes. So their groups are kept
//! until the log has them, and the reopened database gets them again before anything of it is published.
//!
//! Usually SlateDB puts the log long before [`UNLOGGED_BYTES_MAX`] is reached. On a medium that is slower than the writes, the
//! committer waits for the log there.

use std::collections::VecDeque;
use std::sync::Arc;

use super::group::{Fold, Group};

/// Bytes of keys and values in kept groups from which on the log is put before another group is taken.
const UNLOGGED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The kept groups, the oldest first.
#[derive(Default)]
pub(super) struct Unlogged {
    pub(super) groups: VecDeque<Kept>,
    bytes: usize,
}

/// A group that is kept.
pub(super) struct Kept {
    group: Arc<Group>,
    bytes: usize,
    /// SlateDB's number of its changes in the open database. `None` means that this database does not have the group yet.
    pub(super) seq: Option<u64>,
}

impl Unlogged {
    pub(super) fn keep(&mut self, group: Arc<Group>, seq: u64) {
        let bytes = bytes_of(&group);
        self.bytes += bytes;
        self.groups.push_back(Kept {
            group,
            bytes,
            seq: Some(seq),
        });
    }

    /// Forgets the groups that the log has.
    pub(super) fn forget(&mut self, durable: u64) {
        let is_logged = |kept: &Kept| kept.seq.is_some_and(|seq| seq <= durable);
        while self.groups.front().is_some_and(is_logged) {
            let kept = self.groups.pop_front();
            self.bytes -= kept.map_or(0, |kept| kept.bytes);
        }
    }

    /// Another database is open, which has none of the groups for certain.
    pub(super) fn begin_again(&mut self) {
        for kept in &mut self.groups {
            kept.seq = None;
        }
    }

    /// The place of the oldest group that the open database does not have.
    pub(super) fn next(&self) -> Option<(usize, Arc<Group>)> {
        let place = self.groups.partition_point(|kept| kept.seq.is_some());
        self.groups.get(place).map(|kept| (place, Arc::clone(&kept.group)))
    }

    /// Whether the log has to be put before another group is kept. Groups that are written again are kept already.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= UNLOGGED_BYTES_MAX && self.groups.back().is_some_and(|kept| kept.seq.is_some())
    }
}

/// Bytes of keys and values in a group.
fn bytes_of(group: &Group) -> usize {
    let folded = |fold: &Fold| match fold {
        Fold::Put(value) | Fold::Merge(value) => value.len(),
        Fold::Delete => 0,
    };
    let rows: usize = group
        .folds
        .iter()
        .map(|(key, (_, fold))| key.len() + folded(fold))
        .sum();
    let own = group
        .own
        .iter()
        .map(|(key, value)| key.len() + value.as_ref().map_or(0, Vec::len));
    rows + own.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(bytes: usize) -> Arc<Group> {
        Arc::new(Group {
            own: vec![(vec![0; bytes], None)],
            ..Group::default()
        })
    }

    #[test]
    fn what_is_kept_is_counted_until_the_log_has_it() {
        let mut unlogged = Unlogged::default();
        unlogged.keep(group(UNLOGGED_BYTES_MAX - 1), 1);
        assert!(!unlogged.is_full());
        unlogged.keep(group(1), 2);
        assert!(unlogged.is_full());
        unlogged.forget(1);
        assert!(!unlogged.is_full());
        assert_eq!(unlogged.bytes, 1);
    }

    /// Its numbers are those of another database, and may lie below what the open one has put.
    #[test]
    fn a_group_that_is_not_written_again_yet_is_not_forgotten() {
        let mut unlogged = Unlogged::default();
        unlogged.keep(group(UNLOGGED_BYTES_MAX), 5);
        unlogged.begin_again();
        assert!(!unlogged.is_full(), "writing it again would wait for it");
        unlogged.forget(9);
        assert_eq!(unlogged.groups.len(), 1);
        assert_eq!(unlogged.next().map(|(place, _)| place), Some(0));
    }
}
