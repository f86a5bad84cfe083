//! The latch of a physical partition. Writers hold it shared; a move, a backup or the build of a view holds it
//! exclusively. So a partition can move to another store while it is in use.
//!
//! ```text
//! open ──hold──► held ──open again──► open         new writers wait at the latch; the holder waits for those inside
//!                  └────supersede──► superseded    the partition moved: writers use a newer partition map
//! ```
//! A writer takes a [`Pass`] before it reads anything that its write depends on, and keeps it until its commit is
//! answered. While a partition is being copied, writers record the keys that they change ([`PartitionLatch::record`]),
//! to be copied again.
//!
//! No key is removed while its partition is copied, so a recorded key need only be put. Statements only add to a key:
//! tombstones, counters and expired cells stay in their rows. Purges, which remove keys, get no pass meanwhile
//! ([`PartitionLatch::acquire_to_purge`]). TRUNCATE and DROP abandon the rows as a whole; these are removed when no
//! move uses their partition map any more. A recorded key that is absent from the store belongs to a commit that
//! failed, and that was not applied or not yet.
//!
//! A split or merge makes new latches. Requests with the old partition map hold the old latches. A new latch refers to
//! the old ones ([`PartitionLatch::after`]), so its exclusive holder holds all of these too.
//!
//! No request waits for a latch while it holds a pass of another one, so writers to several partitions cannot deadlock.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::Notify;

use helenus_base::mutant::{self, Mutant};
use helenus_storage::storage::{Batch, KeyRange, Space};

const SUPERSEDED: usize = 1;
const COPIED: usize = 2;
/// One exclusive holder: a move, a backup, or both.
const ONE_HOLD: usize = 4;
/// The bits that count holders.
const HELD: usize = FOLLOWED - ONE_HOLD;
/// Views follow the table: a write to it also writes rows of views.
const FOLLOWED: usize = 1 << 8;
/// One writer.
const ONE: usize = 1 << 9;

/// Most bytes of keys that are recorded while a partition is copied; beyond it the copy starts again.
pub const RECORDED_BYTES_MAX: usize = 64 << 20;

/// The keys that a batch changes, kept beyond its commit for a concurrent copy.
#[derive(Debug, Default)]
pub struct BatchKeys(Vec<(Space, Vec<u8>)>);

impl BatchKeys {
    /// The keys of a batch.
    #[must_use]
    pub fn of(batch: &Batch) -> Self {
        Self(batch.keys().map(|(space, key)| (space, key.to_vec())).collect())
    }

    /// Whether there are no keys.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Its keys.
    pub fn iter(&self) -> impl Iterator<Item = (Space, &[u8])> {
        self.0.iter().map(|(space, key)| (*space, key.as_slice()))
    }
}

/// The latch of one physical partition.
#[derive(Debug, Default)]
pub struct PartitionLatch {
    /// The number of writers, the number of exclusive holders, and the flags above.
    state: AtomicUsize,
    /// Notified when it is released by its exclusive holder, or superseded.
    opened: Notify,
    /// Notified when the last writer releases a latch that is held exclusively.
    left: Notify,
    recorded: Mutex<Recorded>,
    /// The latches of the partitions that this one replaced, as long as a writer may hold them.
    before: Vec<Weak<PartitionLatch>>,
}

#[derive(Debug, Default)]
struct Recorded {
    range: Option<KeyRange>,
    keys: BTreeSet<(Space, Vec<u8>)>,
    /// Keys of commits in doubt: a failed commit may still be applied with the next commit to the store,
    /// so these are returned each time.
    in_doubt: BTreeSet<(Space, Vec<u8>)>,
    /// Bytes of all keys in `keys` and `in_doubt`.
    bytes: usize,
    is_full: bool,
}

/// The result of an attempt to take a latch shared.
#[derive(Debug)]
pub enum Entry {
    /// Taken.
    Passed(Pass),
    /// Held exclusively: the writer waits ([`PartitionLatch::wait`]).
    Held,
    /// The partition has moved.
    Superseded,
}

/// Permission to write: a latch held shared. Dropping it releases the latch.
#[derive(Debug)]
pub struct Pass(Arc<PartitionLatch>);

impl Pass {
    /// The latch.
    #[must_use]
    pub fn latch(&self) -> &Arc<PartitionLatch> {
        &self.0
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let before = self.0.state.fetch_sub(ONE, Ordering::SeqCst);
        if before & HELD != 0 && before / ONE == 1 {
            self.0.left.notify_waiters();
        }
    }
}

impl PartitionLatch {
    /// The latch of a partition that replaces the partitions of other latches.
    #[must_use]
    pub fn after<'a>(latches: impl IntoIterator<Item = &'a Arc<Self>>) -> Self {
        let mut before = Vec::new();
        for latch in latches {
            before.push(Arc::downgrade(latch));
            before.extend(latch.before.iter().filter(|old| old.strong_count() > 0).cloned());
        }
        Self {
            before,
            ..Self::default()
        }
    }

    /// Takes it shared, unless it is held exclusively or superseded.
    #[must_use]
    pub fn acquire(self: &Arc<Self>) -> Entry {
        let before = self.state.fetch_add(ONE, Ordering::SeqCst);
        let pass = Pass(Arc::clone(self));
        if before & (HELD | SUPERSEDED) == 0 {
            return Entry::Passed(pass);
        }
        drop(pass);
        if before & SUPERSEDED != 0 {
            Entry::Superseded
        } else {
            Entry::Held
        }
    }

    /// Takes it shared for a purge. `None` means that the partition is being moved or has moved. A purge removes keys
    /// without recording them, so a copy would bring back removed rows, or miss the deletion that hid them. No copy
    /// begins while a pass is held.
    #[must_use]
    pub fn acquire_to_purge(self: &Arc<Self>) -> Option<Pass> {
        match self.acquire() {
            Entry::Passed(pass) if !self.is_copied() || mutant::is_on(Mutant::SweepWhileCopied) => Some(pass),
            Entry::Passed(_) | Entry::Held | Entry::Superseded => None,
        }
    }

    /// Waits until it is released by its exclusive holder, or until that calls [`Hold::wake_waiters`].
    pub async fn wait(&self) {
        let opened = self.opened.notified();
        tokio::pin!(opened);
        opened.as_mut().enable();
        if self.state.load(Ordering::SeqCst) & HELD != 0 {
            opened.await;
        }
    }

    /// This latch and those before it.
    fn all(self: &Arc<Self>) -> Vec<Arc<Self>> {
        let before = self.before.iter().filter_map(Weak::upgrade);
        std::iter::once(Arc::clone(self)).chain(before).collect()
    }

    /// Marks the table as followed by views: each later holder of a pass sees it. Current holders may not have seen it,
    /// so the caller then holds the latch exclusively once, to wait for them.
    pub fn follow(self: &Arc<Self>) {
        for latch in self.all() {
            latch.state.fetch_or(FOLLOWED, Ordering::SeqCst);
        }
    }

    /// Whether views follow the table. Valid only while a pass is held.
    #[must_use]
    pub fn is_followed(&self) -> bool {
        self.state.load(Ordering::SeqCst) & FOLLOWED != 0
    }

    /// Takes it exclusively: admits no more writers, and waits until none holds a pass. Dropping the [`Hold`] releases
    /// the latch; [`Hold::supersede`] retires it. Several may hold it at once: it is released when the last of them is
    /// dropped.
    pub async fn hold(self: &Arc<Self>) -> Hold {
        Self::hold_all([self]).await
    }

    /// Takes several latches at one moment: all refuse new writers before the wait begins.
    pub async fn hold_all<'a>(latches: impl IntoIterator<Item = &'a Arc<Self>>) -> Hold {
        let mut all: Vec<Arc<Self>> = latches.into_iter().flat_map(Self::all).collect();
        all.sort_unstable_by_key(Arc::as_ptr);
        all.dedup_by_key(|latch| Arc::as_ptr(latch));
        let hold = Hold { latches: all };
        for latch in &hold.latches {
            latch.state.fetch_add(ONE_HOLD, Ordering::SeqCst);
        }
        for latch in &hold.latches {
            loop {
                let left = latch.left.notified();
                tokio::pin!(left);
                left.as_mut().enable();
                if latch.state.load(Ordering::SeqCst) / ONE == 0 {
                    break;
                }
                left.await;
            }
        }
        hold
    }

    /// Whether writers must record their keys.
    #[must_use]
    pub fn is_copied(&self) -> bool {
        self.state.load(Ordering::SeqCst) & COPIED != 0
    }

    fn recorded(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records keys that a holder of a pass changed or, if its commit failed, may have changed. Keys outside the copied
    /// range are skipped.
    pub fn record<'a>(&self, keys: impl Iterator<Item = (Space, &'a [u8])>, is_done: bool) {
        if mutant::is_on(Mutant::RecordNothing) {
            return;
        }
        let mut recorded = self.recorded();
        let Some(range) = recorded.range.take() else { return };
        for (space, key) in keys {
            let is_row = matches!(space, Space::Rows | Space::Deletions);
            if !is_row || !range.contains(key) {
                continue;
            }
            if recorded.bytes + key.len() > RECORDED_BYTES_MAX {
                recorded.is_full = true;
                break;
            }
            let to = if is_done {
                &mut recorded.keys
            } else {
                &mut recorded.in_doubt
            };
            if to.insert((space, key.to_vec())) {
                recorded.bytes += key.len();
            }
        }
        recorded.range = Some(range);
    }

    /// The keys recorded since the last call and all that are in doubt, in order; `None` means that they exceeded
    /// [`RECORDED_BYTES_MAX`].
    #[must_use]
    pub fn take_recorded(self: &Arc<Self>) -> Option<BTreeSet<(Space, Vec<u8>)>> {
        let mut all = BTreeSet::new();
        for latch in self.all() {
            let mut recorded = latch.recorded();
            if recorded.is_full {
                return None;
            }
            recorded.bytes = recorded.in_doubt.iter().map(|(_, key)| key.len()).sum();
            all.append(&mut recorded.keys);
            all.extend(recorded.in_doubt.iter().cloned());
        }
        Some(all)
    }

    /// Begins to record keys of a range. The caller holds the latch exclusively.
    pub fn begin_tracking(self: &Arc<Self>, range: &KeyRange) {
        for latch in self.all() {
            *latch.recorded() = Recorded {
                range: Some(range.clone()),
                ..Recorded::default()
            };
            latch.state.fetch_or(COPIED, Ordering::SeqCst);
        }
    }

    /// Ends the recording.
    pub fn end_tracking(self: &Arc<Self>) {
        for latch in self.all() {
            latch.state.fetch_and(!COPIED, Ordering::SeqCst);
            *latch.recorded() = Recorded::default();
        }
    }
}

/// Latches that are held exclusively; dropping it releases them.
#[derive(Debug)]
pub struct Hold {
    latches: Vec<Arc<PartitionLatch>>,
}

impl Hold {
    /// Wakes waiting requests, which check the partition map again and wait again if it is the same.
    pub fn wake_waiters(&self) {
        for latch in &self.latches {
            latch.opened.notify_waiters();
        }
    }

    /// Marks the partition as moved: requests that arrive or wait use a newer partition map.
    pub fn supersede(self) {
        for latch in &self.latches {
            latch.state.fetch_or(SUPERSEDED, Ordering::SeqCst);
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        for latch in &self.latches {
            latch.state.fetch_sub(ONE_HOLD, Ordering::SeqCst);
            latch.opened.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_storage::storage::key;

    fn pass(latch: &Arc<PartitionLatch>) -> Pass {
        match latch.acquire() {
            Entry::Passed(pass) => pass,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn who_is_inside_is_waited_for_and_who_comes_waits() {
        let latch = Arc::new(PartitionLatch::default());
        let inside = pass(&latch);
        let holding = tokio::spawn({
            let latch = Arc::clone(&latch);
            async move { latch.hold().await }
        });
        while !matches!(latch.acquire(), Entry::Held) {
            tokio::task::yield_now().await;
        }
        assert!(!holding.is_finished());
        drop(inside);
        let hold = holding.await.unwrap();
        let waiting = tokio::spawn({
            let latch = Arc::clone(&latch);
            async move { latch.wait().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(hold);
        waiting.await.unwrap();
        drop(pass(&latch));
        latch.hold().await.supersede();
        assert!(matches!(latch.acquire(), Entry::Superseded));
    }

    #[tokio::test]
    async fn who_goes_by_an_old_list_is_held_too() {
        let parent = Arc::new(PartitionLatch::default());
        let child = Arc::new(PartitionLatch::after([&parent]));
        let grandchild = Arc::new(PartitionLatch::after([&child]));
        let inside = pass(&parent);
        let holding = tokio::spawn({
            let latch = Arc::clone(&grandchild);
            async move { latch.hold().await }
        });
        while !matches!(parent.acquire(), Entry::Held) {
            tokio::task::yield_now().await;
        }
        assert!(matches!(child.acquire(), Entry::Held));
        drop(inside);
        drop(holding.await.unwrap());
        drop((pass(&parent), pass(&child), pass(&grandchild)));
        drop(parent);
        assert_eq!(grandchild.all().len(), 2);
    }

    #[tokio::test]
    async fn a_gate_that_two_hold_opens_with_the_second() {
        let (one, other) = (Arc::new(PartitionLatch::default()), Arc::new(PartitionLatch::default()));
        let inside = pass(&other);
        let backup = tokio::spawn({
            let latches = [Arc::clone(&one), Arc::clone(&other), Arc::clone(&one)];
            async move { PartitionLatch::hold_all(&latches).await }
        });
        while !matches!(one.acquire(), Entry::Held) {
            tokio::task::yield_now().await;
        }
        let of_move = one.hold().await;
        drop(inside);
        drop(backup.await.unwrap());
        assert!(matches!(one.acquire(), Entry::Held));
        drop(pass(&other));
        let waiting = tokio::spawn({
            let latch = Arc::clone(&one);
            async move { latch.wait().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(of_move);
        waiting.await.unwrap();
        drop(pass(&one));
    }

    #[tokio::test]
    async fn keys_of_the_range_are_noted_once() {
        let latch = Arc::new(PartitionLatch::default());
        let range = key::token_range(7, 0, 10);
        let hold = latch.hold().await;
        latch.begin_tracking(&range);
        drop(hold);
        assert!(latch.is_copied());
        assert!(latch.acquire_to_purge().is_none());
        drop(pass(&latch));
        let inside = key::partition_prefix(7, 5, b"a");
        let outside = key::partition_prefix(7, 11, b"a");
        for _ in 0..2 {
            let keys = [&inside, &outside].map(|key| (Space::Rows, key.as_slice()));
            latch.record(keys.into_iter(), true);
            latch.record(std::iter::once((Space::Catalog, inside.as_slice())), true);
        }
        assert_eq!(
            latch.take_recorded().unwrap(),
            BTreeSet::from([(Space::Rows, inside.clone())])
        );
        assert!(latch.take_recorded().unwrap().is_empty());
        latch.record(std::iter::once((Space::Rows, inside.as_slice())), false);
        let in_doubt = BTreeSet::from([(Space::Rows, inside)]);
        assert!((0..3).all(|_| latch.take_recorded().unwrap() == in_doubt));
        latch.end_tracking();
        assert!(!latch.is_copied());
        assert!(latch.acquire_to_purge().is_some());
        let hold = latch.hold().await;
        assert!(latch.acquire_to_purge().is_none());
        hold.supersede();
        assert!(latch.acquire_to_purge().is_none());
    }
}
