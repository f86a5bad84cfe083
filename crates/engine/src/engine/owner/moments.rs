//! Snapshots of stores for pages that other machines read in parts: all parts of a page see one snapshot of a store.
//!
//! The owner forgets a page [`KEPT`] after its last part: while a snapshot lives, its store keeps old versions.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::partition::ReadView;

/// How long the moments of a page are kept after its last part.
const KEPT: Duration = Duration::from_secs(10);

/// Time between two searches for old pages.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Pages whose moments are kept. Beyond it the oldest is forgotten.
const PAGES_MAX: usize = 4096;

/// The moments of pages under way.
#[derive(Debug, Default)]
pub(in crate::engine) struct Moments(Mutex<Pages>);

#[derive(Debug, Default)]
struct Pages {
    /// By the page's number, with the time of its last part.
    kept: HashMap<u64, (ReadView, Duration)>,
    /// When old ones were looked for last.
    swept: Duration,
}

impl Moments {
    fn lock(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The moments of a page, if one of its parts was read before. They are kept again with [`Moments::keep`].
    pub(in crate::engine) fn take(&self, page: u64) -> Option<ReadView> {
        self.lock().kept.remove(&page).map(|(view, _)| view)
    }

    /// Keeps the moments of a page.
    pub(in crate::engine) fn keep(&self, page: u64, view: ReadView, now: Duration) {
        let mut pages = self.lock();
        pages.sweep(now);
        if pages.kept.len() >= PAGES_MAX {
            let oldest = pages.kept.iter().min_by_key(|(_, (_, since))| *since);
            let oldest = oldest.map(|(page, _)| *page);
            oldest.map(|page| pages.kept.remove(&page));
        }
        pages.kept.insert(page, (view, now));
    }

    /// Forgets the pages whose last part was read long ago.
    pub(in crate::engine) fn forget_old(&self, now: Duration) {
        self.lock().sweep(now);
    }
}

impl Pages {
    fn sweep(&mut self, now: Duration) {
        if now.saturating_sub(self.swept) >= SWEEP_INTERVAL {
            self.swept = now;
            self.kept.retain(|_, (_, since)| now.saturating_sub(*since) < KEPT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_kept_for_a_time_and_up_to_a_number() {
        let moments = Moments::default();
        let at = Duration::from_secs;
        moments.keep(1, ReadView::default(), at(1));
        moments.keep(2, ReadView::default(), at(9));
        moments.forget_old(at(11));
        assert!(moments.take(1).is_none() && moments.take(2).is_some() && moments.take(2).is_none());
        for page in 0..=PAGES_MAX as u64 {
            moments.keep(page, ReadView::default(), at(20) + Duration::from_millis(page));
        }
        assert!(moments.take(0).is_none() && moments.take(1).is_some());
    }
}
