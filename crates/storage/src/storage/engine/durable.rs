//! How far a store is durable, and which of its groups other stores may have recorded.
//!
//! ```text
//! committer ─► raise(end)                                  recording thread ─► witness() ─► the end goes into `moments` files
//!     └─► the next group also stores the witnessed ends ◄──────────┘   └─► all files synced ─► forget_before(end)
//! ```
//! **Why a start finds each recorded group again.** An end is witnessed before a file names it, and each group that is
//! staged later stores it with the rows. A group that was staged before names the same end as its anchor
//! ([`super::acknowledged::Link`]). Ends are forgotten only when both slots of all files durably have newer ones. So if a store does not know a group
//! that another one recorded, it is not the store of which that was recorded.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::acknowledged::ChainEnd;

/// Most witnessed ends that are kept: twice those of a second, and some of earlier openings. Beyond it the oldest are
/// forgotten.
pub(super) const WITNESSED_MAX: usize = 64;

/// The last group of a store that is durable.
#[derive(Debug, Default)]
pub(super) struct Durable {
    state: Mutex<State>,
    /// Counts the changes of the witnessed ends.
    changes: AtomicU64,
    /// The thread that records it. `None` means no thread does.
    recorder: OnceLock<Arc<Wake>>,
}

#[derive(Default)]
struct State {
    end: ChainEnd,
    /// Whether the store was closed with that end.
    is_closed: bool,
    history: History,
    /// What the last store to be closed does before it gives up its directory.
    at_close: Option<Box<dyn FnOnce() + Send>>,
}

/// What is known of a store's earlier groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct History {
    /// Ends that other stores may have recorded, the oldest first.
    pub(super) witnessed: Vec<ChainEnd>,
    /// From this group on, each recorded end is among them.
    pub(super) from: u64,
}

impl std::fmt::Debug for State {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("State")
            .field("end", &self.end)
            .field("is_closed", &self.is_closed)
            .finish_non_exhaustive()
    }
}

/// Wakes the recording thread, only once until it runs.
#[derive(Debug)]
pub(super) struct Wake {
    pub(super) is_due: AtomicBool,
    pub(super) wake: SyncSender<()>,
}

impl Wake {
    pub(super) fn wake(&self) {
        if !self.is_due.swap(true, Ordering::AcqRel) {
            self.wake_now();
        }
    }

    pub(super) fn wake_now(&self) {
        // A full channel means that the thread is already awake. A missing receiver means that the thread has ended, and
        // the store closes soon.
        self.wake.try_send(()).ok();
    }
}

impl History {
    /// Adds ends in order, each once, and forgets the oldest if they are too many.
    fn add(&mut self, ends: impl IntoIterator<Item = ChainEnd>) {
        for end in ends {
            if !self.witnessed.contains(&end) {
                self.witnessed.push(end);
            }
        }
        self.witnessed.sort_unstable();
        let too_many = self.witnessed.len().saturating_sub(WITNESSED_MAX);
        self.witnessed.drain(..too_many);
        // What was forgotten may have been recorded: a start after a loss of power reads more groups than are kept.
        if let Some(oldest) = self.witnessed.first().filter(|_| too_many > 0) {
            self.from = self.from.max(oldest.seq);
        }
    }
}

impl Durable {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records in memory that everything up to this group is durable, and wakes the recording thread.
    pub(super) fn raise(&self, end: ChainEnd) {
        self.state().end = end;
        if let Some(recorder) = self.recorder.get() {
            recorder.wake();
        }
    }

    pub(super) fn end(&self) -> ChainEnd {
        self.state().end
    }

    /// The thread that records it from now on. A store belongs to one server's stores for its whole life.
    pub(super) fn set_recorder(&self, recorder: &Arc<Wake>) {
        drop(self.recorder.set(Arc::clone(recorder)));
    }

    /// Adds what an opening found: the ends that the store has, and those that it may be recorded with from now on.
    pub(super) fn found(&self, history: &History) {
        let mut state = self.state();
        let end = state.end;
        state.history.from = history.from;
        state.history.add(history.witnessed.iter().copied().chain([end]));
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// The end, which files are about to name.
    pub(super) fn witness(&self) -> ChainEnd {
        let mut state = self.state();
        let end = state.end;
        if !state.history.witnessed.contains(&end) {
            state.history.add([end]);
            self.changes.fetch_add(1, Ordering::Release);
        }
        end
    }

    /// All files durably name this group or a later one.
    pub(super) fn forget_before(&self, seq: u64) {
        let mut state = self.state();
        if state.history.witnessed.iter().any(|end| end.seq < seq) {
            state.history.witnessed.retain(|end| end.seq >= seq);
            self.changes.fetch_add(1, Ordering::Release);
        }
    }

    /// No file names any group of the store.
    pub(super) fn forget_all(&self) {
        self.forget_before(u64::MAX);
    }

    /// The witnessed ends, if they changed since this many changes, and the number of changes now.
    pub(super) fn witnessed_since(&self, changes: u64) -> Option<(u64, Vec<ChainEnd>)> {
        if self.changes.load(Ordering::Acquire) == changes {
            return None;
        }
        let state = self.state();
        Some((self.changes.load(Ordering::Acquire), state.history.witnessed.clone()))
    }

    /// Whether this group, which another store recorded, is one of the store's, as far as that can be told.
    pub(super) fn may_have(&self, recorded: ChainEnd) -> bool {
        let state = self.state();
        let is_known = recorded.seq == 0 || recorded == state.end || state.history.witnessed.contains(&recorded);
        is_known || recorded.seq < state.history.from
    }

    /// The store is closed. `is_clean` means that nothing follows its end.
    pub(super) fn close(&self, is_clean: bool) {
        let mut state = self.state();
        state.is_closed = is_clean;
        let at_close = state.at_close.take();
        drop(state);
        if let Some(at_close) = at_close {
            at_close();
        }
    }

    /// What the store does when it is closed, before another process can open it.
    pub(super) fn at_close(&self, at_close: impl FnOnce() + Send + 'static) {
        self.state().at_close = Some(Box::new(at_close));
    }

    /// The end, and whether the store was closed with it.
    pub(super) fn closed(&self) -> (ChainEnd, bool) {
        let state = self.state();
        (state.end, state.is_closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(seq: u64) -> ChainEnd {
        ChainEnd { seq, chain: 7 }
    }

    #[test]
    fn an_end_is_known_from_its_witness_until_all_files_name_a_later_one() {
        let durable = Durable::default();
        durable.raise(end(3));
        durable.found(&History {
            witnessed: vec![end(1)],
            from: 0,
        });
        let (changes, known) = durable.witnessed_since(0).unwrap();
        assert_eq!(known, [end(1), end(3)]);
        assert_eq!(durable.witnessed_since(changes), None);
        durable.raise(end(5));
        assert_eq!(durable.witness(), end(5));
        durable.raise(end(9));
        assert!([0, 1, 3, 5, 9].into_iter().all(|seq| durable.may_have(end(seq))));
        assert!(![2, 4, 8].into_iter().any(|seq| durable.may_have(end(seq))));
        assert!(!durable.may_have(ChainEnd { seq: 5, chain: 8 }), "of another copy");
        durable.forget_before(5);
        assert_eq!(durable.witnessed_since(changes).unwrap().1, [end(5)]);
        durable.forget_all();
        assert!(!durable.may_have(end(5)));
    }

    #[test]
    fn groups_before_the_known_ones_are_not_checked_and_the_list_is_bounded() {
        let durable = Durable::default();
        durable.raise(end(1000));
        durable.found(&History {
            witnessed: (0..200).map(end).collect(),
            from: 180,
        });
        assert_eq!(durable.witnessed_since(0).unwrap().1.len(), WITNESSED_MAX);
        assert!(durable.may_have(end(179)) && durable.may_have(ChainEnd { seq: 20, chain: 1 }));
        assert!(!durable.may_have(ChainEnd { seq: 190, chain: 1 }));
        let all_known = Durable::default();
        all_known.raise(end(1000));
        all_known.found(&History {
            witnessed: (0..200).map(end).collect(),
            from: 0,
        });
        assert!(all_known.may_have(end(20)), "it was forgotten, since the list is full");
        assert!(!all_known.may_have(ChainEnd { seq: 190, chain: 1 }));
    }
}
