//! The moments at which one request reads its stores.

use super::hosted::Hosted;
use super::ring::{PhysicalPartitionId, StoreId};
use crate::mutant::{self, Mutant};
use crate::storage::{CommitSeq, Snapshot, TableId};

/// A store at one moment. Cheap to clone; while it lives the store keeps what it shows, so a request lets it go at its end.
#[derive(Clone, Debug)]
pub struct Moment(pub(super) Snapshot);

impl Moment {
    /// The last commit that it shows.
    #[must_use]
    pub fn seq(&self) -> CommitSeq {
        self.0.seq()
    }

    /// Whether any logical partition or range of a table was ever deleted, and the records are still there.
    #[must_use]
    pub fn has_deletions(&self, table: TableId) -> bool {
        self.0.has_deletions(table)
    }
}

/// One snapshot of each store that a request reads, taken when it first comes there: all parts of a scan in one store are read as of
/// the same moment.
#[derive(Debug, Default)]
pub struct ReadView {
    /// Most requests read one store, which costs no allocation.
    first: Option<(StoreId, Moment)>,
    more: Vec<(StoreId, Moment)>,
    /// Moments that stand for now in some physical partitions: those of a replica that lags.
    overrides: Vec<(PhysicalPartitionId, Moment)>,
}

impl ReadView {
    /// A view in which these physical partitions are shown as they were at a moment.
    #[must_use]
    pub const fn lagging(overrides: Vec<(PhysicalPartitionId, Moment)>) -> Self {
        Self {
            first: None,
            more: Vec::new(),
            overrides,
        }
    }

    /// The moment at which a partition's store is read.
    pub fn at(&mut self, partition: &Hosted) -> Moment {
        self.lend(partition).clone()
    }

    /// As [`ReadView::at`], without another holder of the moment: for a read that ends before the next partition is come to.
    pub fn lend(&mut self, partition: &Hosted) -> &Moment {
        let mut taken = self.first.iter().chain(&self.more);
        let found = taken.position(|(id, _)| *id == partition.store_id);
        let found = found.filter(|_| !mutant::is_on(Mutant::ScanAtManyMoments));
        let taken = match found.unwrap_or_else(|| self.take(partition)).checked_sub(1) {
            None => self.first.as_ref(),
            Some(place) => self.more.get(place),
        };
        #[expect(clippy::expect_used, reason = "found or taken just before")]
        &taken.expect("the moment is there").1
    }

    /// Takes the moment of a partition's store; gives its place: 0 is the first, the others follow.
    fn take(&mut self, partition: &Hosted) -> usize {
        let lagging = self.overrides.iter().find(|(id, _)| *id == partition.id);
        let at = lagging.map_or_else(|| partition.now(), |(_, at)| at.clone());
        let taken = (partition.store_id, at);
        if self.first.is_none() {
            self.first = Some(taken);
            return 0;
        }
        self.more.push(taken);
        self.more.len()
    }
}
