//! Lag: the moments of each store that are kept while a plan has replicas that lag, and which of them a replica shows.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Nodes, Replica};
use crate::partition::faults::Place;
use crate::partition::ring::StoreId;
use crate::partition::view;
use crate::storage::Snapshot;

/// Moments kept for replicas that lag, for each store.
pub const KEPT_MAX: usize = 256;

/// How far a replica may be behind: it misses nothing that is older than both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lag {
    /// Milliseconds since a commit was acknowledged; `None`: any.
    pub ms_max: Option<u64>,
    /// Commits; `None`: any number.
    pub commits_max: Option<u64>,
}

/// The last moments of a store.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) store: StoreId,
    /// When each was there first, and what was there; the oldest first.
    pub(super) moments: VecDeque<(Duration, Snapshot)>,
}

impl Nodes {
    /// How far the replica is behind that answers a read at ONE: that of the node that was asked, if it is alive, else the first
    /// live one. Where there is one node, the live ones take turns.
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

    /// Whether some replica may lag, so that commits are to be noted.
    #[must_use]
    pub fn keeps_moments(&self) -> bool {
        self.lagging.load(Ordering::Relaxed)
    }

    /// Remembers a commit, before it is acknowledged: what was there before it began, and what is there now.
    pub fn note_commit(&self, store: StoreId, before: Snapshot, after: Snapshot) {
        let mut state = self.locked();
        // The plan may have changed since.
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
            // Commits side by side may be noted in another order than they were made; later ones show all of the earlier.
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

    /// The oldest moment kept of a store that a replica with such a lag may show; `None`: now.
    #[must_use]
    pub fn snapshot_override(&self, store: StoreId, lag: Lag) -> Option<view::Moment> {
        let state = self.locked();
        let now = self.clock.monotonic();
        let kept = state.kept.iter().find(|kept| kept.store == store)?;
        let count = kept.moments.len();
        let oldest = |place: &usize| {
            let behind = (count - 1 - place) as u64;
            // What this moment misses was noted with the next one or later.
            let next = kept.moments.get(place + 1);
            let is_young = |(noted, _): &(Duration, Snapshot)| {
                let limit = lag.ms_max.map(Duration::from_millis);
                limit.is_none_or(|limit| now.saturating_sub(*noted) < limit)
            };
            next.is_none_or(is_young) && lag.commits_max.is_none_or(|most| behind <= most)
        };
        let place = (0..count).find(oldest)?;
        // The newest is left out: it may be older than what was committed while no lag was in the plan.
        (place + 1 < count).then(|| kept.moments.get(place).map(|(_, at)| view::Moment(at.clone())))?
    }
}
