//! `memory:` on a medium that fails by seed, for simulations: the same maps, but a commit waits for the medium, as it does on a disk.
//!
//! ```text
//! commit() ─► queue ─► [work: a group] ─► durable and published ─► [work: one answer, any of those due] ─► answered
//!                          └─ fails: in doubt, see MediumFaults
//! ```
//! Nothing happens by itself: the simulation calls [`Medium::work`] to let the medium act. [`Medium::crash`] is the
//! loss of power, and a takeover by another server. Durable writes stay, any prefix of the queue may have become durable, the rest is lost, and handles
//! from before the crash are refused. The next [`super::super::Store::open`] with this medium starts from the durable
//! state.
//!
//! Opened with a relaxed durability, it answers commits before they are durable, as the `file:` engine does. A crash
//! then leaves any of the states since the last sync, and a different one in each of the stores of a server.
//!
//! It keeps the contracts of the `file:` engine. Batches take effect in the order in which they were handed over, as a
//! whole. A reader sees only durable writes. Late effects begin a new [`Opening`]. An error may be answered to a batch
//! that takes effect. A commit completes even if its caller no longer waits.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::poll_fn;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use tokio::sync::oneshot;

use super::memory::State;
use crate::storage::batch::{Batch, Change};
use crate::storage::derivation::Derivations;
use crate::storage::feed::{Drawn, Stamped};
use crate::storage::purge::Sweeps;
use crate::storage::times::Times;
use crate::storage::{Committed, Error, Opening, Result};
use helenus_base::clock::TimeMark;
use helenus_base::mutant::{self, Mutant};

/// Possible faults, each as a chance in a thousand.
#[derive(Clone, Copy, Debug, Default)]
pub struct MediumFaults {
    /// A group's commits are answered with an error, and none took effect.
    pub failed_per_mille: u32,
    /// They are answered with an error, and all took effect: at once, or visible with the next group, as on a disk that
    /// was full.
    pub done_but_failed_per_mille: u32,
    /// As the last, but visible only after the next crash; until then every commit is refused.
    pub dead_per_mille: u32,
    /// Nothing is written or answered for a while, as by a bucket that hangs; then everything is.
    pub hang_per_mille: u32,
}

/// Most calls of [`Medium::work`] for which a medium hangs.
const HANG_TURNS_MAX: u32 = 60;

/// A medium that outlives crashes. Clones are the same medium.
#[derive(Clone)]
pub struct Medium(Arc<Mutex<Inner>>);

struct Inner {
    random: fastrand::Rng,
    faults: MediumFaults,
    /// The acknowledged state; durable as well, unless the durability is relaxed.
    durable: Arc<State>,
    /// Whether commits are answered before they are durable: a crash then leaves any of the states since the last sync.
    is_relaxed: bool,
    /// The states since the last sync, the synced one first; empty unless it is relaxed.
    unsynced: Vec<Unsynced>,
    /// How often a power cut left a part of one write.
    torn: u64,
    /// The state before the last commit, for a seeded bug.
    before: Arc<State>,
    queue: VecDeque<Request>,
    /// Answers that are due.
    answers: Vec<(Answer, Result<Committed>)>,
    derivations: Derivations,
    /// The positions in the change feed that are not published yet. `None` only before the first opening.
    drawn: Option<Drawn>,
    sweeps: Arc<Sweeps>,
    /// The late effects that the next group, or the next crash, makes visible.
    late: Option<Arc<State>>,
    /// Set if nothing is written until the next crash: the state after that crash.
    dead: Option<Arc<State>>,
    /// Number of times that late effects became visible.
    openings: u64,
    /// Calls for which it hangs.
    hung: u32,
    /// Number of losses of power.
    crashes: u64,
    /// The side stores' media: they lose power together.
    side_media: BTreeMap<u32, Medium>,
    /// Tasks that wait before a retry.
    pauses: Vec<oneshot::Sender<()>>,
}

type Answer = oneshot::Sender<Result<Committed>>;

struct Request {
    only_in: Option<Opening>,
    /// The time mark when the batch was submitted: the batch holds no later timestamp.
    time: Option<TimeMark>,
    changes: Vec<Change>,
    row_bytes_max: Option<usize>,
    /// Whether it makes its own and all earlier acknowledged writes durable, even if the durability is relaxed.
    syncs: bool,
    answer: Answer,
}

impl std::fmt::Debug for Medium {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Medium").finish_non_exhaustive()
    }
}

/// A store on such a medium. Clones are the same store.
#[derive(Clone, Debug)]
pub struct Store {
    medium: Medium,
    crashes: u64,
    times: Times,
    sweeps: Arc<Sweeps>,
}

impl Medium {
    /// An empty medium; the seed determines all of its choices.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            random: fastrand::Rng::with_seed(seed),
            faults: MediumFaults::default(),
            durable: Arc::default(),
            is_relaxed: false,
            unsynced: Vec::new(),
            torn: 0,
            before: Arc::default(),
            queue: VecDeque::new(),
            answers: Vec::new(),
            derivations: Derivations::default(),
            drawn: None,
            sweeps: Arc::default(),
            late: None,
            dead: None,
            openings: 0,
            hung: 0,
            crashes: 0,
            side_media: BTreeMap::new(),
            pauses: Vec::new(),
        })))
    }

    /// The media of the side stores.
    fn side_media(&self) -> Vec<Self> {
        self.inner().side_media.values().cloned().collect()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a store. `is_relaxed` means that commits are answered before they are durable.
    pub(in crate::storage) fn open(&self, times: Times, is_relaxed: bool) -> Store {
        let mut inner = self.inner();
        inner.derivations = Derivations::default();
        inner.drawn = Some(times.drawn());
        inner.sweeps = Arc::default();
        times.found(inner.durable.time);
        inner.is_relaxed = is_relaxed || mutant::is_on(Mutant::SkipSync);
        Store {
            medium: self.clone(),
            crashes: inner.crashes,
            times,
            sweeps: Arc::clone(&inner.sweeps),
        }
    }

    /// Sets the faults from now on.
    pub fn set_faults(&self, faults: MediumFaults) {
        {
            let mut inner = self.inner();
            inner.faults = faults;
            if faults.hang_per_mille == 0 {
                inner.hung = 0;
            }
        }
        for medium in self.side_media() {
            medium.set_faults(faults);
        }
    }

    /// Whether [`Medium::work`] would do something.
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.has_own_work() || self.side_media().iter().any(Self::has_own_work)
    }

    fn has_own_work(&self) -> bool {
        let inner = self.inner();
        !inner.queue.is_empty() || !inner.answers.is_empty()
    }

    /// Whether it takes no writes until the next crash.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.inner().dead.is_some() || self.side_media().iter().any(Self::is_dead)
    }

    /// Acts once: sends one answer that is due, or writes a group of what queued. Returns a line for a log.
    pub fn work(&self) -> String {
        let mut at_work = self.side_media();
        at_work.retain(Self::has_own_work);
        let mut inner = self.inner();
        if !at_work.is_empty() {
            let has_own = !inner.queue.is_empty() || !inner.answers.is_empty();
            let place = inner.random.usize(..at_work.len() + usize::from(has_own));
            if let Some(medium) = at_work.get(place) {
                drop(inner);
                return format!("beside: {}", medium.work());
            }
        }
        if inner.hangs() {
            return "hangs".to_owned();
        }
        let gives = !inner.answers.is_empty() && (inner.queue.is_empty() || inner.random.bool());
        if gives {
            let due = inner.answers.len();
            let place = inner.random.usize(..due);
            let (answer, result) = inner.answers.swap_remove(place);
            let text = format!("answer {}", result.as_ref().map_or(0, |committed| committed.seq.0));
            // The caller may have dropped its future.
            drop(answer.send(result));
            return text;
        }
        let queued = inner.queue.len();
        if queued == 0 {
            return "idle".to_owned();
        }
        let count = inner.random.usize(1..=queued.min(4));
        let group: Vec<Request> = inner.queue.drain(..count).collect();
        inner.write(group)
    }

    /// Loss of power: loses all that is not durable, except for a prefix of the write in progress.
    pub fn crash(&self) {
        let mut inner = self.inner();
        inner.crashes += 1;
        inner.hung = 0;
        inner.answers.clear();
        inner.pauses.clear();
        let late = inner.late.take();
        let dead = inner.dead.take();
        let mut state = dead.or(late).unwrap_or_else(|| Arc::clone(&inner.durable));
        let queued = inner.queue.len();
        let written = inner.random.usize(..=queued);
        let requests: Vec<Request> = inner.queue.drain(..).take(written).collect();
        for mut request in requests {
            let applied = inner.applied(&state, &mut request);
            state = applied.map_or(state, |(next, _)| next);
        }
        let unsynced = std::mem::take(&mut inner.unsynced);
        if inner.is_relaxed && !unsynced.is_empty() {
            let kept = inner.random.usize(..=unsynced.len());
            if let Some(kept) = unsynced.get(kept) {
                state = Arc::clone(&kept.state);
                inner.torn += u64::from(kept.is_torn);
            }
        }
        inner.before = Arc::clone(&state);
        inner.durable = state;
        drop(inner);
        for medium in self.side_media() {
            medium.crash();
        }
    }

    /// How often a power cut left a part of one write, here or in a side store.
    #[must_use]
    pub fn torn(&self) -> u64 {
        let of_sides = self.side_media().iter().map(Self::torn).sum::<u64>();
        self.inner().torn + of_sides
    }

    /// The numbers of the side stores.
    #[must_use]
    pub fn side_numbers(&self) -> BTreeSet<u32> {
        self.inner().side_media.keys().copied().collect()
    }

    /// Makes late effects in the side stores visible, as their next commits would.
    pub fn show_late_sides(&self) {
        for medium in self.side_media() {
            let mut inner = medium.inner();
            if let Some(late) = inner.late.take() {
                inner.openings += 1;
                inner.before = std::mem::replace(&mut inner.durable, late);
                inner.publish_positions();
            }
        }
    }

    /// Wakes all tasks that wait before a retry; returns how many.
    pub fn end_pauses(&self) -> usize {
        let pauses = std::mem::take(&mut self.inner().pauses);
        // Callers that dropped their futures are not counted.
        pauses.into_iter().filter_map(|pause| pause.send(()).ok()).count()
    }

    /// A checksum of everything that is durable.
    #[must_use]
    pub fn digest(&self) -> u32 {
        let of_sides = self
            .side_media()
            .iter()
            .map(Self::digest)
            .fold(0_u32, u32::wrapping_add);
        self.inner().durable.digest().wrapping_add(of_sides)
    }
}

/// A state that a power cut may leave of a log that was not synced.
#[derive(Debug)]
struct Unsynced {
    state: Arc<State>,
    /// A group was written in part: its first requests.
    is_torn: bool,
}

impl Inner {
    fn hangs(&mut self) -> bool {
        let chance = self.faults.hang_per_mille;
        if self.hung == 0 && chance > 0 && self.random.u32(..1000) < chance {
            self.hung = self.random.u32(1..=HANG_TURNS_MAX);
        }
        let hangs = self.hung > 0;
        self.hung = self.hung.saturating_sub(1);
        hangs
    }

    fn publish_positions(&mut self) {
        if let Some(drawn) = &mut self.drawn {
            drawn.all_published();
        }
    }

    /// Applies a request's changes, which it takes out of the request, to a state.
    fn applied(&mut self, state: &Arc<State>, request: &mut Request) -> Result<(Arc<State>, Committed)> {
        let mut changes = std::mem::take(&mut request.changes);
        let mut stamped = Stamped::default();
        if let Some(drawn) = &mut self.drawn {
            stamped = drawn.stamp(&mut changes, &self.derivations);
            if stamped.position.is_some() {
                // The position is later than the batch.
                request.time = drawn.time_mark().or(request.time);
            }
        }
        if let Some(watch) = self.sweeps.watch() {
            watch.record(changes.iter().filter_map(Change::written_row));
        }
        let mut next = State::clone(state);
        next.log(&changes, stamped, &self.derivations);
        next.time = match (next.time, request.time) {
            (Some(before), Some(time)) => Some(before.max(time)),
            (before, time) => before.or(time),
        };
        let mut committed = Committed::default();
        for (number, change) in changes.into_iter().enumerate() {
            if let Some(bytes_max) = request.row_bytes_max {
                next.check_row(&change, bytes_max)?;
            }
            next.apply(number, change, &self.derivations, &mut committed)?;
        }
        next.seq = next.seq.next();
        let seq = next.seq;
        Ok((Arc::new(next), committed.at(seq)))
    }

    #[expect(
        clippy::too_many_lines,
        reason = "all draws of a group come in one order, which a seed repeats"
    )]
    fn write(&mut self, group: Vec<Request>) -> String {
        if self.dead.is_some() {
            let count = group.len();
            for request in group {
                self.answers.push((request.answer, Err(refused())));
            }
            return format!("refuse {count}");
        }
        // An index build retries after a pause in real time, which a simulation does not have.
        let builds = group.iter().any(|request| {
            let reindexes = |change: &Change| matches!(change, Change::Reindex { .. });
            request.changes.is_empty() || request.changes.iter().any(reindexes)
        });
        let mut chance = |per_mille: u32| !builds && self.random.u32(..1000) < per_mille;
        let fails = chance(self.faults.failed_per_mille);
        let done_but_fails = chance(self.faults.done_but_failed_per_mille);
        let dies = chance(self.faults.dead_per_mille);
        let late = self.late.take();
        self.openings += u64::from(late.is_some());
        let mut state = late.unwrap_or_else(|| Arc::clone(&self.durable));
        let mut seqs = Vec::new();
        let mut parts = Vec::new();
        let syncs = group.iter().any(|request| request.syncs);
        for mut request in group {
            if request.only_in.is_some_and(|opening| opening.0 != self.openings) {
                self.answers.push((request.answer, Err(Error::OpenedAgain)));
                continue;
            }
            let outcome = self.applied(&state, &mut request);
            let result = match outcome {
                Ok((next, committed)) => {
                    if !fails {
                        parts.push(std::mem::replace(&mut state, next));
                    }
                    Ok(committed)
                }
                Err(error) => Err(error),
            };
            let result = result.and_then(|committed| {
                if fails || done_but_fails || dies {
                    Err(failed())
                } else {
                    Ok(committed)
                }
            });
            seqs.push(state.seq.0);
            self.answers.push((request.answer, result));
        }
        if dies {
            // The log keeps the first requests of the group, or all.
            let kept = self.random.usize(..=parts.len());
            let torn = parts.get(kept).cloned();
            self.torn += u64::from(kept > 0 && torn.is_some());
            self.dead = Some(torn.unwrap_or(state));
            return format!("die {seqs:?}, {kept} are there");
        }
        if done_but_fails && self.random.bool() {
            self.late = Some(state);
            return format!("write {seqs:?} late");
        }
        self.before = std::mem::replace(&mut self.durable, state);
        self.publish_positions();
        if syncs && !fails && !mutant::is_on(Mutant::SkipSync) {
            self.unsynced.clear();
        } else if self.is_relaxed {
            self.unsynced.push(Unsynced {
                state: Arc::clone(&self.before),
                is_torn: false,
            });
            let parts = parts.into_iter().skip(1);
            self.unsynced
                .extend(parts.map(|state| Unsynced { state, is_torn: true }));
        }
        format!("write {seqs:?} {fails} {done_but_fails}")
    }
}

fn failed() -> Error {
    Error::Io {
        operation: "syncing",
        path: PathBuf::from("the simulated medium"),
        source: Arc::new(io::Error::other("by seed")),
    }
}

fn refused() -> Error {
    Error::WritesRefused {
        directory: PathBuf::from("the simulated medium"),
        cause: Arc::new(failed()),
    }
}

impl Store {
    pub(in crate::storage) fn open_side(
        &self,
        number: u32,
        is_new: bool,
        times: Times,
        is_relaxed: bool,
    ) -> Result<Self> {
        let medium = {
            let mut inner = self.medium.inner();
            if inner.crashes != self.crashes {
                return Err(Error::Closed);
            }
            if !is_new && !inner.side_media.contains_key(&number) {
                return Err(Error::Corrupt {
                    path: PathBuf::from("the simulated medium"),
                    what: format!("store {number} is missing"),
                });
            }
            let seed = inner.random.u64(..);
            let faults = inner.faults;
            let medium = inner.side_media.entry(number).or_insert_with(|| Medium::new(seed));
            medium.inner().faults = faults;
            medium.clone()
        };
        Ok(medium.open(times, is_relaxed))
    }

    pub(in crate::storage) fn remove_side(&self, number: u32) {
        let mut inner = self.medium.inner();
        if inner.crashes == self.crashes {
            inner.side_media.remove(&number);
        }
    }

    /// `None` after a loss of power: another server may own the medium since then.
    pub(in crate::storage) fn snapshot(&self) -> Option<Arc<State>> {
        let inner = self.medium.inner();
        if inner.crashes != self.crashes && !mutant::is_on(Mutant::FormerOwnerAnswers) {
            return None;
        }
        Some(if mutant::is_on(Mutant::StaleSnapshot) {
            Arc::clone(&inner.before)
        } else {
            Arc::clone(&inner.durable)
        })
    }

    pub(in crate::storage) fn opening(&self) -> Opening {
        Opening(self.medium.inner().openings)
    }

    pub(in crate::storage) fn sweeps(&self) -> &Arc<Sweeps> {
        &self.sweeps
    }

    pub(in crate::storage) fn set_derivations(&self, derivations: Derivations) {
        let mut inner = self.medium.inner();
        if inner.crashes == self.crashes {
            inner.derivations = derivations;
        }
    }

    /// Yields to other tasks, a few times or not at all.
    pub(in crate::storage) async fn wait(&self) {
        let times = {
            let mut inner = self.medium.inner();
            if inner.random.bool() { 0 } else { inner.random.u32(1..4) }
        };
        for _ in 0..times {
            let mut is_woken = false;
            poll_fn(|context| {
                if std::mem::replace(&mut is_woken, true) {
                    return Poll::Ready(());
                }
                context.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
        }
    }

    /// Waits until [`Medium::end_pauses`]; not at all after a loss of power.
    pub(in crate::storage) async fn pause(&self) {
        let (end, ended) = oneshot::channel();
        let is_alive = {
            let mut inner = self.medium.inner();
            if inner.crashes == self.crashes {
                inner.pauses.push(end);
            }
            inner.crashes == self.crashes
        };
        if is_alive {
            drop(ended.await);
        }
    }

    /// Makes the acknowledged writes durable, also on a relaxed medium.
    pub(in crate::storage) async fn sync(&self) -> Result<()> {
        self.queue(Batch::new(), true).await.map(drop)
    }

    pub(in crate::storage) async fn commit(&self, batch: Batch) -> Result<Committed> {
        self.queue(batch, false).await
    }

    async fn queue(&self, batch: Batch, syncs: bool) -> Result<Committed> {
        self.wait().await;
        let (answer, answered) = oneshot::channel();
        {
            let mut inner = self.medium.inner();
            if inner.crashes != self.crashes {
                return Err(Error::Closed);
            }
            let only_in = batch.opening();
            let row_bytes_max = batch.row_bytes_max();
            let changes = batch.into_changes();
            inner.queue.push_back(Request {
                only_in,
                time: self.times.mark(None),
                changes,
                row_bytes_max,
                syncs,
                answer,
            });
        }
        answered.await.unwrap_or(Err(Error::Closed))
    }
}
