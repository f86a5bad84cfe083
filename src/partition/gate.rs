//! The gate that writes to a physical partition pass through: a latch that lets it move to another store while in use.
//!
//! ```text
//! open ──hold──► held ──open again──► open         new writers wait at the gate; the holder waits for those inside
//!                  └────supersede──► superseded    the partition moved: writers use a newer partition map
//! ```
//! A writer takes a [`Pass`] before it reads anything that its write depends on, and keeps it until its commit is
//! answered. While a partition is being copied, writers record the keys that they change ([`WriteGate::note`]), to be
//! copied again.
//!
//! No key is removed while its partition is copied, so a recorded key need only be put. Statements only add to a key:
//! tombstones, counters and expired cells stay in their rows. Sweeps, which do remove keys, are kept out
//! ([`WriteGate::enter_to_sweep`]). TRUNCATE and DROP abandon the rows as a whole; these are removed when no move uses
//! their partition map any more. A recorded key that is absent from the store belongs to a commit that failed, and was
//! not applied or not yet.
//!
//! A split or merge makes new gates. Requests with the old partition map are inside an old gate. The new gates know the
//! old ones ([`WriteGate::after`]), so a holder of a new one holds all of these.
//!
//! No request waits at a gate while it holds a pass of another, so that writers to several partitions cannot wait for
//! each other.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::Notify;

use crate::mutant::{self, Mutant};
use crate::storage::{Batch, KeyRange, Space};

const SUPERSEDED: usize = 1;
const COPIED: usize = 2;
/// One holder: a move, a backup, or both.
const ONE_HOLD: usize = 4;
/// The bits that count holders.
const HELD: usize = FOLLOWED - ONE_HOLD;
/// Views follow the table: a write to it makes rows of views too.
const FOLLOWED: usize = 1 << 8;
/// One writer inside.
const ONE: usize = 1 << 9;

/// Most bytes of keys that are recorded while a partition is copied; beyond it the copy starts again.
pub const NOTED_BYTES_MAX: usize = 64 << 20;

/// The keys that a batch changes, kept beyond its commit for a concurrent copy.
#[derive(Debug, Default)]
pub struct BatchKeys(Vec<(Space, Vec<u8>)>);

impl BatchKeys {
    /// The keys of a batch.
    #[must_use]
    pub fn of(batch: &Batch) -> Self {
        Self(batch.keys().map(|(space, key)| (space, key.to_vec())).collect())
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Its keys.
    pub fn iter(&self) -> impl Iterator<Item = (Space, &[u8])> {
        self.0.iter().map(|(space, key)| (*space, key.as_slice()))
    }
}

/// The gate of one physical partition.
#[derive(Debug, Default)]
pub struct WriteGate {
    /// The number of writers inside, the number of holders, and the flags above.
    state: AtomicUsize,
    /// Notified when it is opened again or superseded.
    opened: Notify,
    /// Notified when the last writer leaves a held gate.
    left: Notify,
    noted: Mutex<Noted>,
    /// The gates of the partitions that this one replaced, as long as a writer may be inside them.
    before: Vec<Weak<WriteGate>>,
}

#[derive(Debug, Default)]
struct Noted {
    range: Option<KeyRange>,
    keys: BTreeSet<(Space, Vec<u8>)>,
    /// Keys of commits in doubt: a failed commit may still be applied with the next commit to the store,
    /// so these are returned each time.
    in_doubt: BTreeSet<(Space, Vec<u8>)>,
    /// Size of the keys of both.
    bytes: usize,
    is_full: bool,
}

/// The result of entering a gate.
#[derive(Debug)]
pub enum Entry {
    /// Inside.
    Passed(Pass),
    /// Held: the writer waits ([`WriteGate::wait`]).
    Held,
    /// The partition has moved.
    Superseded,
}

/// Permission to write, held while inside a gate.
#[derive(Debug)]
pub struct Pass(Arc<WriteGate>);

impl Pass {
    /// The gate.
    #[must_use]
    pub fn gate(&self) -> &Arc<WriteGate> {
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

impl WriteGate {
    /// The gate of a partition that replaces those of other gates.
    #[must_use]
    pub fn after<'a>(gates: impl IntoIterator<Item = &'a Arc<Self>>) -> Self {
        let mut before = Vec::new();
        for gate in gates {
            before.push(Arc::downgrade(gate));
            before.extend(gate.before.iter().filter(|old| old.strong_count() > 0).cloned());
        }
        Self {
            before,
            ..Self::default()
        }
    }

    /// Enters it, if it is open.
    #[must_use]
    pub fn enter(self: &Arc<Self>) -> Entry {
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

    /// Enters it to sweep. `None` means that the partition is being moved or has moved: a sweep removes keys without
    /// recording them, so a copy would bring back removed rows, or miss the deletion that hid them. No copy begins
    /// while a pass is out.
    #[must_use]
    pub fn enter_to_sweep(self: &Arc<Self>) -> Option<Pass> {
        match self.enter() {
            Entry::Passed(pass) if !self.is_copied() || mutant::is_on(Mutant::SweepWhileCopied) => Some(pass),
            Entry::Passed(_) | Entry::Held | Entry::Superseded => None,
        }
    }

    /// Waits until it is opened, or its holder calls [`Hold::tell`].
    pub async fn wait(&self) {
        let opened = self.opened.notified();
        tokio::pin!(opened);
        opened.as_mut().enable();
        if self.state.load(Ordering::SeqCst) & HELD != 0 {
            opened.await;
        }
    }

    /// This gate and those before it.
    fn all(self: &Arc<Self>) -> Vec<Arc<Self>> {
        let before = self.before.iter().filter_map(Weak::upgrade);
        std::iter::once(Arc::clone(self)).chain(before).collect()
    }

    /// Marks the table as followed by views: each later writer learns it inside. A writer already inside may not know
    /// it, so the caller holds the gate once to wait for those.
    pub fn follow(self: &Arc<Self>) {
        for gate in self.all() {
            gate.state.fetch_or(FOLLOWED, Ordering::SeqCst);
        }
    }

    /// Whether views follow the table. Valid only inside the gate.
    #[must_use]
    pub fn is_followed(&self) -> bool {
        self.state.load(Ordering::SeqCst) & FOLLOWED != 0
    }

    /// Admits no more writers, and waits until none is inside. The holder opens the gate by dropping the [`Hold`], or
    /// supersedes it. Several may hold it at once: it opens when the last of them is dropped.
    pub async fn hold(self: &Arc<Self>) -> Hold {
        Self::hold_all([self]).await
    }

    /// Holds several gates at one moment: all are closed before the wait begins.
    pub async fn hold_all<'a>(gates: impl IntoIterator<Item = &'a Arc<Self>>) -> Hold {
        let mut all: Vec<Arc<Self>> = gates.into_iter().flat_map(Self::all).collect();
        all.sort_unstable_by_key(Arc::as_ptr);
        all.dedup_by_key(|gate| Arc::as_ptr(gate));
        let hold = Hold { gates: all };
        for gate in &hold.gates {
            gate.state.fetch_add(ONE_HOLD, Ordering::SeqCst);
        }
        for gate in &hold.gates {
            loop {
                let left = gate.left.notified();
                tokio::pin!(left);
                left.as_mut().enable();
                if gate.state.load(Ordering::SeqCst) / ONE == 0 {
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

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records keys that a writer inside changed or, if its commit failed, may have changed. Keys outside the copied
    /// range are skipped.
    pub fn note<'a>(&self, keys: impl Iterator<Item = (Space, &'a [u8])>, is_done: bool) {
        if mutant::is_on(Mutant::NoteNothing) {
            return;
        }
        let mut noted = self.noted();
        let Some(range) = noted.range.take() else { return };
        for (space, key) in keys {
            let is_row = matches!(space, Space::Rows | Space::Deletions);
            if !is_row || !range.contains(key) {
                continue;
            }
            if noted.bytes + key.len() > NOTED_BYTES_MAX {
                noted.is_full = true;
                break;
            }
            let to = if is_done { &mut noted.keys } else { &mut noted.in_doubt };
            if to.insert((space, key.to_vec())) {
                noted.bytes += key.len();
            }
        }
        noted.range = Some(range);
    }

    /// The keys recorded since the last call and all that are in doubt, in order; `None` means that they exceeded
    /// [`NOTED_BYTES_MAX`].
    #[must_use]
    pub fn take_noted(self: &Arc<Self>) -> Option<BTreeSet<(Space, Vec<u8>)>> {
        let mut all = BTreeSet::new();
        for gate in self.all() {
            let mut noted = gate.noted();
            if noted.is_full {
                return None;
            }
            noted.bytes = noted.in_doubt.iter().map(|(_, key)| key.len()).sum();
            all.append(&mut noted.keys);
            all.extend(noted.in_doubt.iter().cloned());
        }
        Some(all)
    }

    /// Begins to record keys of a range. The caller holds the gate.
    pub fn begin_notes(self: &Arc<Self>, range: &KeyRange) {
        for gate in self.all() {
            *gate.noted() = Noted {
                range: Some(range.clone()),
                ..Noted::default()
            };
            gate.state.fetch_or(COPIED, Ordering::SeqCst);
        }
    }

    /// Ends the recording.
    pub fn end_notes(self: &Arc<Self>) {
        for gate in self.all() {
            gate.state.fetch_and(!COPIED, Ordering::SeqCst);
            *gate.noted() = Noted::default();
        }
    }
}

/// Held gates; dropping it opens them again.
#[derive(Debug)]
pub struct Hold {
    gates: Vec<Arc<WriteGate>>,
}

impl Hold {
    /// Wakes waiting requests to check the partition map again; they wait again if it is the same.
    pub fn tell(&self) {
        for gate in &self.gates {
            gate.opened.notify_waiters();
        }
    }

    /// Marks the partition as moved: requests that arrive or wait use a newer partition map.
    pub fn supersede(self) {
        for gate in &self.gates {
            gate.state.fetch_or(SUPERSEDED, Ordering::SeqCst);
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        for gate in &self.gates {
            gate.state.fetch_sub(ONE_HOLD, Ordering::SeqCst);
            gate.opened.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::key;

    fn pass(gate: &Arc<WriteGate>) -> Pass {
        match gate.enter() {
            Entry::Passed(pass) => pass,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn who_is_inside_is_waited_for_and_who_comes_waits() {
        let gate = Arc::new(WriteGate::default());
        let inside = pass(&gate);
        let holding = tokio::spawn({
            let gate = Arc::clone(&gate);
            async move { gate.hold().await }
        });
        while !matches!(gate.enter(), Entry::Held) {
            tokio::task::yield_now().await;
        }
        assert!(!holding.is_finished());
        drop(inside);
        let hold = holding.await.unwrap();
        let waiting = tokio::spawn({
            let gate = Arc::clone(&gate);
            async move { gate.wait().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(hold);
        waiting.await.unwrap();
        drop(pass(&gate));
        gate.hold().await.supersede();
        assert!(matches!(gate.enter(), Entry::Superseded));
    }

    #[tokio::test]
    async fn who_goes_by_an_old_list_is_held_too() {
        let parent = Arc::new(WriteGate::default());
        let child = Arc::new(WriteGate::after([&parent]));
        let grandchild = Arc::new(WriteGate::after([&child]));
        let inside = pass(&parent);
        let holding = tokio::spawn({
            let gate = Arc::clone(&grandchild);
            async move { gate.hold().await }
        });
        while !matches!(parent.enter(), Entry::Held) {
            tokio::task::yield_now().await;
        }
        assert!(matches!(child.enter(), Entry::Held));
        drop(inside);
        drop(holding.await.unwrap());
        drop((pass(&parent), pass(&child), pass(&grandchild)));
        drop(parent);
        assert_eq!(grandchild.all().len(), 2);
    }

    #[tokio::test]
    async fn a_gate_that_two_hold_opens_with_the_second() {
        let (one, other) = (Arc::new(WriteGate::default()), Arc::new(WriteGate::default()));
        let inside = pass(&other);
        let backup = tokio::spawn({
            let gates = [Arc::clone(&one), Arc::clone(&other), Arc::clone(&one)];
            async move { WriteGate::hold_all(&gates).await }
        });
        while !matches!(one.enter(), Entry::Held) {
            tokio::task::yield_now().await;
        }
        let of_move = one.hold().await;
        drop(inside);
        drop(backup.await.unwrap());
        assert!(matches!(one.enter(), Entry::Held));
        drop(pass(&other));
        let waiting = tokio::spawn({
            let gate = Arc::clone(&one);
            async move { gate.wait().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(of_move);
        waiting.await.unwrap();
        drop(pass(&one));
    }

    #[tokio::test]
    async fn keys_of_the_range_are_noted_once() {
        let gate = Arc::new(WriteGate::default());
        let range = key::token_range(7, 0, 10);
        let hold = gate.hold().await;
        gate.begin_notes(&range);
        drop(hold);
        assert!(gate.is_copied());
        assert!(gate.enter_to_sweep().is_none());
        drop(pass(&gate));
        let inside = key::partition_prefix(7, 5, b"a");
        let outside = key::partition_prefix(7, 11, b"a");
        for _ in 0..2 {
            let keys = [&inside, &outside].map(|key| (Space::Rows, key.as_slice()));
            gate.note(keys.into_iter(), true);
            gate.note(std::iter::once((Space::Catalog, inside.as_slice())), true);
        }
        assert_eq!(
            gate.take_noted().unwrap(),
            BTreeSet::from([(Space::Rows, inside.clone())])
        );
        assert!(gate.take_noted().unwrap().is_empty());
        gate.note(std::iter::once((Space::Rows, inside.as_slice())), false);
        let in_doubt = BTreeSet::from([(Space::Rows, inside)]);
        assert!((0..3).all(|_| gate.take_noted().unwrap() == in_doubt));
        gate.end_notes();
        assert!(!gate.is_copied());
        assert!(gate.enter_to_sweep().is_some());
        let hold = gate.hold().await;
        assert!(gate.enter_to_sweep().is_none());
        hold.supersede();
        assert!(gate.enter_to_sweep().is_none());
    }
}
