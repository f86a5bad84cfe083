//! The timestamps and feed positions that a store takes and gives.

use super::feed::{Drawn, Positions};
use helenus_base::clock::{TimeMark, Timestamps};
use helenus_base::mutant::{self, Mutant};

/// Where a store gets its times from.
#[derive(Clone, Debug)]
pub(super) struct Times {
    /// Receives the time marks of opened stores, and supplies those that commits record. `None` means a store keeps its
    /// mark.
    pub(super) timestamps: Option<Timestamps>,
    /// The positions of the change feed, shared by the stores of a server.
    pub(super) positions: Positions,
}

impl Times {
    /// Takes the time mark of a store that was opened.
    pub(super) fn found(&self, mark: Option<TimeMark>) {
        if let (Some(timestamps), Some(mark)) = (&self.timestamps, mark)
            && !mutant::is_on(Mutant::ForgetLastTimestamp)
        {
            timestamps.found(mark);
            self.positions.found(mark.given_micros);
        }
    }

    /// What a store's committer draws positions of the change feed with.
    pub(super) fn drawn(&self) -> Drawn {
        Drawn::new(self.positions.clone(), self.timestamps.clone())
    }

    /// The time mark that a commit records, after `before`. `None` means the store records none.
    pub(super) fn mark(&self, before: Option<TimeMark>) -> Option<TimeMark> {
        let Some(timestamps) = &self.timestamps else {
            return before;
        };
        Some(timestamps.mark())
    }
}
