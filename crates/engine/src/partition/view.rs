//! The snapshots at which one request reads its stores.

use super::hosted::Hosted;
use super::moment::Moment;
use super::ring::{PhysicalPartitionId, StoreId};
use helenus_base::mutant::{self, Mutant};

/// One snapshot of each store that a request reads, taken at its first access: all parts of a scan in one store read
/// the same moment.
#[derive(Debug, Default)]
pub struct ReadView {
    /// Most requests read one store, which costs no allocation.
    first: Option<(StoreId, Moment)>,
    more: Vec<(StoreId, Moment)>,
    /// Moments that replace the current one in some physical partitions, for a lagging replica.
    overrides: Vec<(PhysicalPartitionId, Moment)>,
}

impl ReadView {
    /// A view that reads these physical partitions as of the given moments.
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

    /// As [`ReadView::at`], but borrowed: for a read that ends before the request continues with the next partition.
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

    /// Takes the moment of a partition's store and returns its index: 0 is the first, the others follow.
    fn take(&mut self, partition: &Hosted) -> usize {
        let now = partition.now();
        let lagging = self.overrides.iter().find(|(id, _)| *id == partition.id);
        // What a lagging replica has was read before: it says nothing of whether this server may still read.
        let at = match lagging.filter(|_| now.0.is_available()) {
            Some((_, at)) => at.clone(),
            None => now,
        };
        let taken = (partition.store_id, at);
        if self.first.is_none() {
            self.first = Some(taken);
            return 0;
        }
        self.more.push(taken);
        self.more.len()
    }
}
