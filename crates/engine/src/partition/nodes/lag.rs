//! Lag: the moments of each store that are kept while a plan has lagging replicas, and the choice of the one that a
//! replica shows.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Nodes, Replica};
use crate::partition::faults::Place;
use crate::partition::moment::Moment;
use crate::partition::ring::StoreId;
use helenus_storage::storage::Snapshot;

/// Moments kept for replicas that lag, for each store.
pub const KEPT_MAX: usize = 256;

/// How far a replica may lag: it misses no commit that is older than both bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lag {
    /// Milliseconds since a commit was acknowledged; `None` means no bound.
    pub ms_max: Option<u64>,
    /// Number of commits; `None` means no bound.
    pub commits_max: Option<u64>,
}

/// The last moments of a store.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) store: StoreId,
    /// The first time of each snapshot, and the snapshot; the oldest first.
    pub(super) moments: VecDeque<(Duration, Snapshot)>,
}

impl Nodes {
    /// The lag of the replica that answers a read at ONE: that of the node which received the request, if it is alive,
    /// else the first live one. With one node, the live replicas take turns.
    #[must_use]
    pub fn lag_at_one(&self, place: &Place<'_>, node: usize, request: u64) -> Option<Lag> {
        if !self.lagging.load(Ordering::Relaxed) {
            return None;
        }
        let shown = self.shown(place);
        let live: Vec<&Replica> = shown.replicas.iter().filter(|replica| replica.is_alive).collect();
        let turn = if self.count == 1 {
            usize::try_from(request % (live.len().max(1) as u64)).unwrap_or(0)
        } else {
            live.iter().position(|replica| replica.node == node).unwrap_or(0)
        };
        live.get(turn)?.lag
    }

    /// Whether some replica may lag, so that commits must be recorded.
    #[must_use]
    pub fn keeps_moments(&self) -> bool {
        self.lagging.load(Ordering::Relaxed)
    }

    /// Records a commit before it is acknowledged: the snapshots before and after it.
    pub fn record_commit(&self, store: StoreId, before: Snapshot, after: Snapshot) {
        let mut state = self.locked();
        // The plan may have changed since the caller checked it.
        if !self.keeps_moments() {
            return;
        }
        let now = self.clock.monotonic();
        let place = state.kept.iter().position(|kept| kept.store == store);
        let place = place.unwrap_or_else(|| {
            state.kept.push(Kept {
                store,
                moments: VecDeque::from([(Duration::ZERO, before)]),
            });
            state.kept.len() - 1
        });
        if let Some(kept) = state.kept.get_mut(place) {
            // Concurrent commits may be recorded in another order than they were made; a later snapshot includes all
            // earlier commits.
            if kept.moments.back().is_none_or(|(_, last)| last.seq() <= after.seq()) {
                kept.moments.push_back((now, after));
            } else if let Some((_, last)) = kept.moments.back().cloned() {
                kept.moments.push_back((now, last));
            }
            while kept.moments.len() > KEPT_MAX {
                kept.moments.pop_front();
            }
        }
    }

    /// The oldest kept moment of a store that a replica with such a lag may show; `None` means now.
    #[must_use]
    pub fn snapshot_override(&self, store: StoreId, lag: Lag) -> Option<Moment> {
        let state = self.locked();
        let now = self.clock.monotonic();
        let kept = state.kept.iter().find(|kept| kept.store == store)?;
        let count = kept.moments.len();
        let oldest = |place: &usize| {
            let behind = (count - 1 - place) as u64;
            // Commits that this moment misses were recorded with the next moment or later.
            let next = kept.moments.get(place + 1);
            let is_young = |(recorded, _): &(Duration, Snapshot)| {
                let limit = lag.ms_max.map(Duration::from_millis);
                limit.is_none_or(|limit| now.saturating_sub(*recorded) < limit)
            };
            next.is_none_or(is_young) && lag.commits_max.is_none_or(|most| behind <= most)
        };
        let place = (0..count).find(oldest)?;
        // The newest is excluded: it may be older than commits made while the plan had no lag.
        (place + 1 < count).then(|| kept.moments.get(place).map(|(_, at)| Moment(at.clone())))?
    }
}
