//! A store at one moment, as the readers of its physical partitions hold it.

use helenus_storage::storage::{CommitSeq, Snapshot, TableId};

/// A store at one moment. Cheap to clone. While it lives the store keeps old versions, so a request drops it at its
/// end.
#[derive(Clone, Debug)]
pub struct Moment(pub(super) Snapshot);

impl Moment {
    /// The last commit that it sees.
    #[must_use]
    pub fn seq(&self) -> CommitSeq {
        self.0.seq()
    }

    /// Whether any logical partition or range of a table was ever deleted, and the records still exist.
    #[must_use]
    pub fn has_deletions(&self, table: TableId) -> bool {
        self.0.has_deletions(table)
    }
}
