//! The virtual nodes: which of them are up, who writes which physical partition, and how the fault plan in force disturbs requests.
//!
//! One process plays all four replicas of every store. Replica `r` of physical partition `p` is on node `(p + r) mod 4`, so that the
//! first writers of a table's partitions are spread. With one node the four replicas are as virtual, only no address is theirs.
//!
//! Life: [`Nodes::new`] with all nodes up and nothing disturbed; [`Nodes::set_plan`] and [`Nodes::clear`] at any time; requests ask
//! [`Nodes::is_quiet`] first, which is one relaxed load and all that they pay as long as no plan is in force.
//!
//! **The lease.** A partition is written by the holder of its lease, under the lease's epoch. The lease goes to the first live replica,
//! in the order of the set, and only if a quorum is alive to give it; an epoch is the number of the view (of who is alive) in which the
//! holder got it, so it rises with every change of hands, and back. A write asks for its replica set right before it is committed,
//! so one that waited through a change is judged by what is there then. The new writer has what the old one acknowledged,
//! since both read the one store.
//!
//! **Lag.** While a plan has a lag, commits leave the snapshots of the last moments behind ([`KEPT_MAX`] for each store at most), and
//! a follower on a lagging node reads as of the oldest within its bound: it misses only what was acknowledged in the last `ms`, or
//! the last `commits`. Without one everybody reads what is there.
//!
//! Deliberately absent: real distance. A node that comes back has caught up at once; a schema is known everywhere at once.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::watch;

use super::faults::{Action, Course, Decision, Fault, Moment, Place, Plan, PlanError, Subject};
use super::replicas::{REPLICAS, ReplicaSet};
use super::ring::StoreId;
use super::view;
use crate::clock::Clock;
use crate::storage::Snapshot;

/// How many nodes there are where there is more than one: each replica of a set has its own.
pub const NODES: usize = REPLICAS as usize;

/// Moments kept for replicas that lag, for each store.
pub const KEPT_MAX: usize = 256;

/// How often a plan is asked in which nodes go down and up by time.
const TICK: Duration = Duration::from_millis(20);

/// Which nodes are up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Up([bool; NODES]);

impl Up {
    /// All.
    pub const ALL: Self = Self([true; NODES]);

    /// Whether a node, counted from 0, is up.
    #[must_use]
    pub fn is_up(self, node: usize) -> bool {
        self.0.get(node).is_some_and(|up| *up)
    }
}

/// How far a replica may be behind: it misses nothing that is older than both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lag {
    /// Milliseconds since a commit was acknowledged; `None`: any.
    pub ms_max: Option<u64>,
    /// Commits; `None`: any number.
    pub commits_max: Option<u64>,
}

/// A replica, as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replica {
    /// The node it is on, from 0.
    pub node: usize,
    /// Whether it is alive.
    pub is_alive: bool,
    /// Whether it holds the lease.
    pub is_writer: bool,
    /// How far it may be behind; `None`: not at all.
    pub lag: Option<Lag>,
}

/// A replica set, as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The replicas, the first writer first.
    pub replicas: [Replica; NODES],
    /// The epoch of the lease in force.
    pub lease_epoch: u64,
}

/// Who holds the lease of the partitions that share an order of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lease {
    /// The replica; `None`: a quorum is missing.
    holder: Option<usize>,
    epoch: u64,
}

/// The last moments of a store.
#[derive(Debug)]
struct Kept {
    store: StoreId,
    /// When each was there first, and what was there; the oldest first.
    moments: VecDeque<(Duration, Snapshot)>,
}

#[derive(Debug)]
struct State {
    course: Course,
    /// When the plan came into force.
    began: Duration,
    /// Requests since then.
    requests: u64,
    /// Rises with every change of who is alive.
    view: u64,
    up: Up,
    /// The faults that keep replicas of some tables down, by their places in the plan.
    replicas_down: Vec<usize>,
    leases: [Lease; NODES],
    kept: Vec<Kept>,
}

/// The nodes of a server.
#[derive(Debug)]
pub struct Nodes {
    count: usize,
    clock: Clock,
    disturbed: AtomicBool,
    lagging: AtomicBool,
    state: Mutex<State>,
    up: watch::Sender<Up>,
    /// The number of the plan in force: those that are held go on when it changes.
    plan: watch::Sender<u64>,
}

/// What a request is told to do, and under which plan.
#[derive(Debug)]
pub struct Ordered {
    /// What becomes of it.
    pub decision: Decision,
    /// Its number.
    pub request: u64,
    plan: u64,
}

/// The plan in force and how far it has come, for people and programs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Report {
    /// What chance is drawn from.
    pub seed: u64,
    /// Requests since the plan came into force.
    pub requests: u64,
    /// The number of the view of who is alive.
    pub view: u64,
    /// The nodes that are up, from 1.
    pub nodes_up: Vec<usize>,
    /// The faults.
    pub fault: Vec<FaultReport>,
}

/// A fault and how far it has come.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct FaultReport {
    /// As in the plan.
    #[serde(flatten)]
    pub fault: Fault,
    /// Whether it holds now.
    pub holds: bool,
    /// Requests that matched it.
    pub matched: u64,
    /// Requests that it hit.
    pub hit: u64,
}

/// The tokens of a node, from 0, of four: the ends of every fourth of sixteen equal parts of the ring, so that the first writers of
/// a table of sixteen equal partitions own their tokens. All four hold every token's rows.
#[must_use]
pub fn tokens(node: usize) -> Vec<i64> {
    const PARTS: u64 = 16;
    (0..PARTS)
        .filter(|part| part % NODES as u64 == node as u64)
        .map(|part| {
            i64::MIN
                .wrapping_add_unsigned((part + 1).wrapping_mul(1 << 60))
                .wrapping_sub(1)
        })
        .collect()
}

impl Nodes {
    /// All up; `count` is 1 or [`NODES`].
    #[must_use]
    pub fn new(count: usize, clock: Clock) -> Self {
        let first = Lease {
            holder: Some(0),
            epoch: 0,
        };
        Self {
            count: count.clamp(1, NODES),
            clock,
            disturbed: AtomicBool::new(false),
            lagging: AtomicBool::new(false),
            state: Mutex::new(State {
                course: Course::default(),
                began: Duration::ZERO,
                requests: 0,
                view: 0,
                up: Up::ALL,
                replicas_down: Vec::new(),
                leases: [first; NODES],
                kept: Vec::new(),
            }),
            up: watch::Sender::new(Up::ALL),
            plan: watch::Sender::new(0),
        }
    }

    /// How many have an address.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Whether nothing is disturbed, so that nothing needs to be asked. A plan that comes into force is seen by requests that begin
    /// after it.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        !self.disturbed.load(Ordering::Relaxed)
    }

    /// Puts a plan in force in place of that before, from its beginning.
    ///
    /// # Errors
    /// A node that is to go down, where there is only one.
    pub fn set_plan(&self, plan: Plan) -> Result<(), PlanError> {
        if self.count == 1 && plan.takes_nodes_down() {
            return Err(PlanError::Form(
                "a node can only go down where there are four (nodes = 4); replica-down works with one".to_owned(),
            ));
        }
        let is_empty = plan.faults.is_empty();
        let lags = plan.faults.iter().any(|fault| fault.action == Action::Lag);
        let mut state = self.locked();
        state.course = Course::new(plan);
        state.began = self.clock.monotonic();
        state.requests = 0;
        if !lags {
            state.kept.clear();
        }
        self.lagging.store(lags, Ordering::SeqCst);
        self.disturbed.store(!is_empty, Ordering::SeqCst);
        self.observe(&mut state);
        // While locked, so that who is ordered under the new plan has its number.
        self.plan.send_modify(|number| *number += 1);
        Ok(())
    }

    /// Ends all faults; what is held goes on.
    pub fn clear(&self) {
        // The empty plan takes no node down.
        drop(self.set_plan(Plan::default()));
    }

    /// The plan in force and how far it has come.
    #[must_use]
    pub fn report(&self) -> Report {
        let mut state = self.locked();
        self.observe(&mut state);
        let now = self.moment(&state);
        Report {
            seed: state.course.plan().seed,
            requests: state.requests,
            view: state.view,
            nodes_up: (0..self.count)
                .filter(|node| state.up.is_up(*node))
                .map(|node| node + 1)
                .collect(),
            fault: state
                .course
                .faults()
                .map(|(fault, progress)| FaultReport {
                    fault: fault.clone(),
                    holds: fault.holds(now),
                    matched: progress.matched,
                    hit: progress.hit,
                })
                .collect(),
        }
    }

    /// Which nodes are up, and its changes.
    #[must_use]
    pub fn up(&self) -> watch::Receiver<Up> {
        self.up.subscribe()
    }

    /// Asks the plan now and then whether a node goes down or up by time. Never ends; for a task of its own.
    pub async fn keep_time(&self) {
        let mut plan = self.plan.subscribe();
        loop {
            plan.mark_unchanged();
            let is_timed = {
                let mut state = self.locked();
                self.observe(&mut state);
                let faults = &state.course.plan().faults;
                let by_time = |fault: &Fault| fault.from_ms.is_some() || fault.until_ms.is_some();
                faults
                    .iter()
                    .any(|fault| fault.action == Action::Down && by_time(fault))
            };
            if is_timed {
                // Whichever comes first; the plan is asked again after both.
                drop(tokio::time::timeout(TICK, plan.changed()).await);
            } else if plan.changed().await.is_err() {
                return;
            }
        }
    }

    /// Lets the faults follow the clock now, after it was moved.
    pub fn follow_time(&self) {
        let mut state = self.locked();
        self.observe(&mut state);
    }

    /// Counts a request; its number. One for which too few replicas are alive counts as well.
    #[must_use]
    pub fn begin(&self) -> u64 {
        let mut state = self.locked();
        state.requests += 1;
        self.observe(&mut state);
        state.requests
    }

    /// Decides what becomes of a request of this number.
    #[must_use]
    pub fn decide(&self, request: u64, subject: &Subject<'_>) -> Ordered {
        let mut state = self.locked();
        let now = Moment {
            requests: request,
            ..self.moment(&state)
        };
        Ordered {
            decision: state.course.decide(subject, now),
            request,
            plan: *self.plan.borrow(),
        }
    }

    /// Waits as a decision says, at most until another plan is in force.
    pub async fn hold(&self, ordered: &Ordered, for_ms: u64) {
        let mut plan = self.plan.subscribe();
        let changed = plan.wait_for(|number| *number != ordered.plan);
        // Which of the two it was does not matter.
        drop(tokio::time::timeout(Duration::from_millis(for_ms), changed).await);
    }

    /// The replica set of part of a table, as it is now.
    #[must_use]
    pub fn replicas(&self, place: &Place<'_>) -> ReplicaSet {
        if self.is_quiet() {
            return ReplicaSet::default();
        }
        let mut state = self.locked();
        self.observe(&mut state);
        state.set(place)
    }

    /// The replica set of part of a table with all that is shown of it.
    #[must_use]
    pub fn shown(&self, place: &Place<'_>) -> Shown {
        let mut state = self.locked();
        self.observe(&mut state);
        let now = self.moment(&state);
        let set = state.set(place);
        let class = class(place);
        let writer = set.writer();
        let lease = state.leases.get(class).copied();
        let lease_epoch = lease
            .filter(|lease| lease.holder == writer)
            .map_or(state.view, |lease| lease.epoch);
        let replicas = std::array::from_fn(|replica| {
            let node = (class + replica) % NODES;
            let is_writer = writer == Some(replica);
            Replica {
                node,
                is_alive: set.is_alive(replica),
                is_writer,
                lag: if is_writer { None } else { state.lag(place, node, now) },
            }
        });
        Shown { replicas, lease_epoch }
    }

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

    fn locked(&self) -> MutexGuard<'_, State> {
        // A panic under this lock leaves a state that is still whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn moment(&self, state: &State) -> Moment {
        let passed = self.clock.monotonic().saturating_sub(state.began);
        Moment {
            passed_ms: u64::try_from(passed.as_millis()).unwrap_or(u64::MAX),
            requests: state.requests,
        }
    }

    /// Brings who is alive up to date. A change makes a new view and new leases.
    fn observe(&self, state: &mut State) {
        let now = self.moment(state);
        let mut up = Up::ALL;
        let mut replicas_down = Vec::new();
        for (place, fault) in state.course.plan().faults.iter().enumerate() {
            if !fault.holds(now) {
                continue;
            }
            match (fault.action, fault.node) {
                (Action::Down, Some(number)) => {
                    if let Some(up) = up.0.get_mut(usize::from(number).saturating_sub(1)) {
                        *up = false;
                    }
                }
                (Action::ReplicaDown, _) => replicas_down.push(place),
                _ => {}
            }
        }
        if up == state.up && replicas_down == state.replicas_down {
            return;
        }
        state.view += 1;
        state.up = up;
        state.replicas_down = replicas_down;
        for (class, lease) in state.leases.iter_mut().enumerate() {
            let alive = std::array::from_fn(|replica| up.is_up((class + replica) % NODES));
            let holder = ReplicaSet::new(alive).writer();
            if holder != lease.holder {
                *lease = Lease {
                    holder,
                    epoch: state.view,
                };
            }
        }
        self.up.send_if_modified(|before| {
            let changed = *before != up;
            *before = up;
            changed
        });
    }
}

/// The node of the first replica: partitions of one class share an order of nodes.
fn class(place: &Place<'_>) -> usize {
    usize::try_from(place.partition % NODES as u64).unwrap_or(0)
}

impl State {
    fn set(&self, place: &Place<'_>) -> ReplicaSet {
        let class = class(place);
        let faults = &self.course.plan().faults;
        ReplicaSet::new(std::array::from_fn(|replica| {
            let node = (class + replica) % NODES;
            let is_down = |number: &usize| {
                let fault = faults.get(*number);
                fault.is_some_and(|fault| fault.is_of_node(node) && fault.concerns(place))
            };
            self.up.is_up(node) && !self.replicas_down.iter().any(is_down)
        }))
    }

    /// How far the replica on a node may be behind: the first lag in the plan that concerns it.
    fn lag(&self, place: &Place<'_>, node: usize, now: Moment) -> Option<Lag> {
        let mut standing = self.course.standing(now);
        let fault =
            standing.find(|fault| fault.action == Action::Lag && fault.is_of_node(node) && fault.concerns(place))?;
        Some(Lag {
            ms_max: fault.ms,
            commits_max: fault.commits,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::faults::StatementKind;
    use super::*;
    use crate::consistency::Consistency;
    use crate::storage::{Batch, Options, Space, Store, Url};

    fn place(partition: u64) -> Place<'static> {
        Place {
            keyspace: "ks",
            table: "t",
            partition,
        }
    }

    fn nodes(plan: &str) -> (Nodes, Clock) {
        let clock = Clock::manual(0);
        let nodes = Nodes::new(NODES, clock.clone());
        nodes.set_plan(Plan::from_toml(plan).unwrap()).unwrap();
        (nodes, clock)
    }

    #[test]
    fn replicas_are_on_distinct_nodes_and_writers_rotate() {
        let nodes = Nodes::new(NODES, Clock::manual(0));
        assert!(nodes.is_quiet());
        for partition in 0..8 {
            let shown = nodes.shown(&place(partition));
            let mut on: Vec<usize> = shown.replicas.iter().map(|replica| replica.node).collect();
            assert_eq!(on[0] as u64, partition % 4);
            on.sort_unstable();
            assert_eq!(on, [0, 1, 2, 3]);
            assert!(shown.replicas[0].is_writer && shown.replicas.iter().all(|replica| replica.is_alive));
        }
    }

    #[test]
    fn tokens_are_the_ends_of_sixteen_equal_parts() {
        let mut all: Vec<(i64, usize)> = (0..NODES)
            .flat_map(|node| tokens(node).into_iter().map(move |token| (token, node)))
            .collect();
        all.sort_unstable();
        assert_eq!(all.len(), 16);
        assert_eq!(all[15], (i64::MAX, 3));
        for (place, pair) in all.windows(2).enumerate() {
            assert_eq!(pair[0].1, place % 4);
            assert_eq!(pair[0].0.abs_diff(pair[1].0), 1 << 60);
        }
    }

    #[test]
    fn a_lease_changes_hands_with_its_holder_and_comes_back() {
        let (nodes, clock) = nodes("[[fault]]\naction = \"down\"\nnode = 2\nfrom-ms = 100\nuntil-ms = 200");
        let mut up = nodes.up();
        let writer = || {
            let shown = nodes.shown(&place(1));
            let writer = shown.replicas.iter().find(|replica| replica.is_writer);
            (writer.map(|replica| replica.node), shown.lease_epoch)
        };
        assert_eq!(writer(), (Some(1), 0));
        clock.advance(Duration::from_millis(100));
        assert_eq!(writer(), (Some(2), 1));
        assert!(up.has_changed().unwrap() && !up.borrow_and_update().is_up(1));
        // Another partition's writer was not on that node: its lease stays.
        assert_eq!(nodes.shown(&place(0)).lease_epoch, 0);
        clock.advance(Duration::from_millis(100));
        assert_eq!(writer(), (Some(1), 2));
        assert!(up.borrow_and_update().is_up(1));
        let plan =
            "[[fault]]\naction = \"down\"\nnode = 2\n[[fault]]\naction = \"replica-down\"\nnode = 3\ntable = \"t\"";
        nodes.set_plan(Plan::from_toml(plan).unwrap()).unwrap();
        assert_eq!(writer(), (None, 3));
        let other = Place { table: "u", ..place(1) };
        assert_eq!(nodes.replicas(&other).alive(), 3);
        assert_eq!(nodes.replicas(&place(1)).alive(), 2);
        nodes.clear();
        assert!(nodes.is_quiet());
        assert_eq!(writer(), (Some(1), 4));
    }

    #[test]
    fn nodes_go_down_by_the_number_of_the_request() {
        let (nodes, _) = nodes("[[fault]]\naction = \"down\"\nnode = 1\nfrom-request = 3\nuntil-request = 5");
        let places = [place(0)];
        let subject = Subject {
            places: &places,
            statement: StatementKind::Read,
            consistency: Consistency::One,
            node: 0,
        };
        let alive: Vec<u32> = (0..6)
            .map(|_| {
                assert_eq!(nodes.decide(nodes.begin(), &subject).decision, Decision::default());
                nodes.replicas(&place(0)).alive()
            })
            .collect();
        assert_eq!(alive, [4, 4, 3, 3, 4, 4]);
    }

    #[test]
    fn one_node_cannot_go_down_but_its_replicas_can() {
        let nodes = Nodes::new(1, Clock::manual(0));
        let down = Plan::from_toml("[[fault]]\naction = \"down\"\nnode = 1").unwrap();
        assert!(nodes.set_plan(down).is_err());
        let replica = Plan::from_toml("[[fault]]\naction = \"replica-down\"\nnode = 1").unwrap();
        nodes.set_plan(replica).unwrap();
        assert_eq!(nodes.replicas(&place(0)).alive(), 3);
    }

    #[tokio::test]
    async fn who_is_held_goes_on_when_the_plan_changes() {
        let (nodes, _) = nodes("[[fault]]\naction = \"delay\"\nms = 60000");
        let places = [place(0)];
        let subject = Subject {
            places: &places,
            statement: StatementKind::Write,
            consistency: Consistency::One,
            node: 0,
        };
        let ordered = nodes.decide(nodes.begin(), &subject);
        assert_eq!(ordered.decision.delay_ms, 60_000);
        let held = nodes.hold(&ordered, ordered.decision.delay_ms);
        let (_, ()) = tokio::join!(held, async {
            tokio::task::yield_now().await;
            nodes.clear();
        });
        // A plan that has changed before holds no request.
        nodes.hold(&ordered, 60_000).await;
    }

    #[tokio::test]
    async fn a_lagging_replica_misses_no_more_than_its_bound() {
        let (nodes, clock) = nodes("[[fault]]\naction = \"lag\"\nnode = 2\nms = 100");
        let store = Store::open(&Url::Memory, &Options::default(), clock.clone())
            .await
            .unwrap();
        let id = StoreId(0);
        // A commit every 30 ms, each of which writes its number.
        for number in 0_u8..10 {
            clock.advance(Duration::from_millis(30));
            let before = store.snapshot();
            let mut batch = Batch::new();
            batch.put(Space::Catalog, b"n".to_vec(), vec![number]);
            store.commit(batch).await.unwrap();
            nodes.note_commit(id, before, store.snapshot());
        }
        let lag = |ms_max, commits_max| Lag { ms_max, commits_max };
        for (bound, expected) in [
            // Commit 9 is 0 ms old, 6 is 90 ms old: a replica that misses 6, 7, 8 and 9 shows 5.
            (lag(Some(100), None), 5),
            (lag(Some(90), None), 6),
            (lag(Some(1), None), 8),
            (lag(None, Some(2)), 7),
            (lag(Some(100), Some(1)), 8),
        ] {
            let at = nodes.snapshot_override(id, bound).unwrap().0;
            let found = store.get(Space::Catalog, b"n", &at).await.unwrap();
            assert_eq!(found.as_deref(), Some(&[expected][..]), "{bound:?}");
        }
        assert!(nodes.snapshot_override(id, lag(Some(0), None)).is_none());
        assert!(nodes.snapshot_override(id, lag(None, Some(0))).is_none());
        // A quiet store is caught up with.
        clock.advance(Duration::from_millis(100));
        assert!(nodes.snapshot_override(id, lag(Some(100), None)).is_none());
        // Partition 1 is written by node 2, which does not lag as its writer.
        assert_eq!(nodes.lag_at_one(&place(1), 1, 1), None);
        assert_eq!(nodes.lag_at_one(&place(0), 1, 1), Some(lag(Some(100), None)));
        assert_eq!(nodes.lag_at_one(&place(0), 2, 1), None);
        nodes.clear();
        assert!(nodes.snapshot_override(id, lag(Some(100), None)).is_none());
    }
}
