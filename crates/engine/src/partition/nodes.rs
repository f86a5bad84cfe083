//! The virtual nodes: which of them are up, which replica writes each physical partition, and how the active fault plan
//! disturbs requests.
//!
//! One process simulates all replicas of every store: four, or two or three if there are only as many nodes. Replica
//! `r` of physical partition `p` is on node `(p + r) mod n`, so that the first writers of a table's partitions are
//! spread. With one node the four replicas are virtual too, but have no addresses.
//!
//! Life: [`Nodes::new`] with all nodes up and no faults; [`Nodes::set_plan`] and [`Nodes::clear`] at any time; requests
//! check [`Nodes::is_quiet`] first. That is one relaxed load, and their whole cost while no plan is active.
//!
//! **The lease.** The holder of a partition's lease writes it, under the lease's epoch. The lease goes to the first
//! live replica, in the order of the set, and only if a quorum is alive to grant it. The epoch is the number of the
//! view (the set of live nodes) in which the holder got the lease, so it rises with every change of holder. A write
//! reads its replica set right before its commit, so a write that waited during a change uses the current set. The new
//! writer has everything that the old one acknowledged, since both read the one store.
//!
//! **Lag.** While a plan has a lag, commits keep the snapshots of recent moments ([`KEPT_MAX`] for each store at most).
//! A follower on a lagging node reads as of the oldest one within its bound: it misses only commits acknowledged in the
//! last `ms`, or the last `commits` ones. Without a lag every replica reads the current rows.
//!
//! **A fleet.** Where several servers share one bucket the nodes are real, and their owner says which of them have seats
//! and are up ([`Nodes::set_seats`]). Sets are then those of the seats ([`Seats`]), and no plan is active.
//!
//! Deliberately absent: network latency. A node that comes up again is immediately up to date, and a schema change
//! reaches every node at once.

mod lag;
mod spread;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use serde::Serialize;
use tokio::sync::watch;

use self::lag::Kept;
pub use self::lag::{KEPT_MAX, Lag};
use self::spread::Spread;
pub use self::spread::tokens;
use super::faults::{Action, Course, Decision, Fault, Moment, Place, Plan, PlanError, Subject};
use super::replicas::ReplicaSet;
use super::seats::Seats;
use helenus_base::clock::Clock;
use helenus_types::consistency::Consistency;

/// Most nodes of a server.
pub const NODES_MAX: usize = 6;

/// How often the plan is checked for nodes that go down or up by time.
const TICK: Duration = Duration::from_millis(20);

/// Which nodes are up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Up([bool; NODES_MAX]);

impl Up {
    /// All nodes up.
    pub const ALL: Self = Self([true; NODES_MAX]);

    /// Whether a node, counted from 0, is up.
    #[must_use]
    pub fn is_up(self, node: usize) -> bool {
        self.0.get(node).is_some_and(|up| *up)
    }
}

/// A replica, as the views show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replica {
    /// The node it is on, from 0.
    pub node: usize,
    /// Whether it is alive.
    pub is_alive: bool,
    /// Whether it holds the lease.
    pub is_writer: bool,
    /// How far it may lag; `None` means not at all.
    pub lag: Option<Lag>,
}

/// A replica set, as the views show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The replicas, the first writer first.
    pub replicas: Vec<Replica>,
    /// The epoch of the current lease.
    pub lease_epoch: u64,
}

/// The lease of the partitions that share an order of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lease {
    /// The replica that holds it; `None` means that no quorum is alive.
    holder: Option<usize>,
    epoch: u64,
}

#[derive(Debug)]
struct State {
    course: Course,
    /// When the plan became active.
    began: Duration,
    /// Requests since then.
    requests: u64,
    /// Rises with every change of the set of live nodes or replicas.
    view: u64,
    up: Up,
    /// The faults that keep replicas of some tables down, by their indexes in the plan.
    replicas_down: Vec<usize>,
    leases: [Lease; NODES_MAX],
    kept: Vec<Kept>,
}

/// The nodes of a server.
#[derive(Debug)]
pub struct Nodes {
    count: usize,
    spread: Spread,
    clock: Clock,
    disturbed: AtomicBool,
    lagging: AtomicBool,
    state: Mutex<State>,
    /// The nodes of a fleet. `None` means that the nodes are virtual.
    seats: ArcSwapOption<Seats>,
    up: watch::Sender<Up>,
    /// The number of the active plan; a change ends the wait of delayed requests.
    plan: watch::Sender<u64>,
}

/// A decision about a request, and the plan that made it.
#[derive(Debug)]
pub struct Ordered {
    /// The decision.
    pub decision: Decision,
    /// The number of the request.
    pub request: u64,
    plan: u64,
}

/// The active plan and its progress, for people and programs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Report {
    /// The seed of random draws.
    pub seed: u64,
    /// Requests since the plan became active.
    pub requests: u64,
    /// The number of the current view of live nodes.
    pub view: u64,
    /// The nodes that are up, from 1.
    pub nodes_up: Vec<usize>,
    /// The faults.
    pub fault: Vec<FaultReport>,
}

/// A fault and its progress.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct FaultReport {
    /// As in the plan.
    #[serde(flatten)]
    pub fault: Fault,
    /// Whether it is in effect now.
    pub holds: bool,
    /// Requests that matched it.
    pub matched: u64,
    /// Requests that it hit.
    pub hit: u64,
}

impl Nodes {
    /// All nodes up; `count` is from 1 to [`NODES_MAX`].
    #[must_use]
    pub fn new(count: usize, clock: Clock) -> Self {
        let first = Lease {
            holder: Some(0),
            epoch: 0,
        };
        Self {
            count: count.clamp(1, NODES_MAX),
            spread: Spread::of(count.clamp(1, NODES_MAX)),
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
                leases: [first; NODES_MAX],
                kept: Vec::new(),
            }),
            seats: ArcSwapOption::empty(),
            up: watch::Sender::new(Up::ALL),
            plan: watch::Sender::new(0),
        }
    }

    /// How many nodes have an address.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// How many replicas a set has.
    #[must_use]
    pub fn set_size(&self) -> u32 {
        let seats = self.seats.load();
        let of_spread = || self.spread.set(|_| true).count();
        seats.as_ref().map_or_else(of_spread, |seats| seats.set_size())
    }

    /// Whether no plan is active and no node of a fleet is down, so that requests skip the checks. A change applies to
    /// requests that begin after it.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        !self.disturbed.load(Ordering::Relaxed)
    }

    /// Whether a request at a level skips the checks. THREE is the one level that a whole set of two cannot meet.
    #[must_use]
    pub fn is_quiet_at(&self, level: Consistency) -> bool {
        self.is_quiet() && (level != Consistency::Three || self.set_size() >= 3)
    }

    /// Judges levels by these nodes of a fleet from now on.
    pub fn set_seats(&self, seats: Seats) {
        if self.seats.load().as_deref() == Some(&seats) {
            return;
        }
        // Under the lock, as a plan is set.
        let state = self.locked();
        let is_whole = seats.is_whole();
        self.seats.store(Some(Arc::new(seats)));
        let is_planned = !state.course.plan().faults.is_empty();
        self.disturbed.store(is_planned || !is_whole, Ordering::SeqCst);
        drop(state);
    }

    /// The nodes of the fleet. `None` means that the nodes are virtual.
    #[must_use]
    pub fn seats(&self) -> Option<Arc<Seats>> {
        self.seats.load_full()
    }

    /// Replaces the active plan; the new one starts from its beginning.
    ///
    /// # Errors
    /// A node that is to go down where there is only one; a node that does not exist.
    pub fn set_plan(&self, plan: Plan) -> Result<(), PlanError> {
        if self.count == 1 && plan.takes_nodes_down() {
            return Err(PlanError::Form(
                "a node can only go down where there are several (nodes = 4); replica-down works with one".to_owned(),
            ));
        }
        let mut nodes = plan.faults.iter().filter_map(|fault| fault.node);
        if let Some(node) = nodes.find(|node| usize::from(*node) > self.spread.nodes) {
            return Err(PlanError::Form(format!(
                "there is no node {node}: replicas are on {} nodes",
                self.spread.nodes
            )));
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
        let is_whole = self.seats.load().as_ref().is_none_or(|seats| seats.is_whole());
        self.disturbed.store(!is_empty || !is_whole, Ordering::SeqCst);
        self.observe(&mut state);
        // Under the lock, so that a decision made by the new plan carries its number.
        self.plan.send_modify(|number| *number += 1);
        Ok(())
    }

    /// Ends all faults and the waits of delayed requests.
    pub fn clear(&self) {
        // The empty plan takes no node down.
        drop(self.set_plan(Plan::default()));
    }

    /// The active plan and its progress.
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

    /// Which nodes are up, and later changes.
    #[must_use]
    pub fn up(&self) -> watch::Receiver<Up> {
        self.up.subscribe()
    }

    /// Checks the plan periodically for nodes that go down or up by time. Never ends; it runs as a task of its own.
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
                // Whichever comes first; the plan is checked after both.
                drop(tokio::time::timeout(TICK, plan.changed()).await);
            } else if plan.changed().await.is_err() {
                return;
            }
        }
    }

    /// Updates the faults to the clock's current time, after the clock was moved.
    pub fn follow_time(&self) {
        let mut state = self.locked();
        self.observe(&mut state);
    }

    /// Counts a request and returns its number. A request for which too few replicas are alive counts as well.
    #[must_use]
    pub fn begin(&self) -> u64 {
        let mut state = self.locked();
        state.requests += 1;
        self.observe(&mut state);
        state.requests
    }

    /// Decides about a request of this number.
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

    /// Waits for the decided time, or until another plan becomes active.
    pub async fn hold(&self, ordered: &Ordered, for_ms: u64) {
        let mut plan = self.plan.subscribe();
        let changed = plan.wait_for(|number| *number != ordered.plan);
        // Both ends of the wait mean the same.
        drop(tokio::time::timeout(Duration::from_millis(for_ms), changed).await);
    }

    /// The current replica set of part of a table.
    #[must_use]
    pub fn replicas(&self, place: &Place<'_>) -> ReplicaSet {
        if self.is_quiet() {
            return self.spread.set(|_| true);
        }
        let mut state = self.locked();
        self.observe(&mut state);
        state.set(place, self.spread)
    }

    /// The current replica set of part of a table, with all that the views show.
    #[must_use]
    pub fn shown(&self, place: &Place<'_>) -> Shown {
        let mut state = self.locked();
        self.observe(&mut state);
        let now = self.moment(&state);
        let set = state.set(place, self.spread);
        let class = self.spread.class(place);
        let writer = set.writer();
        let lease = state.leases.get(class).copied();
        let lease_epoch = lease
            .filter(|lease| lease.holder == writer)
            .map_or(state.view, |lease| lease.epoch);
        let replicas = (0..self.spread.replicas).map(|replica| {
            let node = self.spread.node(class, replica);
            let is_writer = writer == Some(replica);
            Replica {
                node,
                is_alive: set.is_alive(replica),
                is_writer,
                lag: if is_writer { None } else { state.lag(place, node, now) },
            }
        });
        Shown {
            replicas: replicas.collect(),
            lease_epoch,
        }
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        // A panic under this lock leaves a consistent state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn moment(&self, state: &State) -> Moment {
        let passed = self.clock.monotonic().saturating_sub(state.began);
        Moment {
            passed_ms: u64::try_from(passed.as_millis()).unwrap_or(u64::MAX),
            requests: state.requests,
        }
    }

    /// Updates the set of live nodes and replicas. A change makes a new view and, where the holder changes, new leases.
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
            let set = self.spread.set(|replica| up.is_up(self.spread.node(class, replica)));
            let holder = set.writer();
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

impl State {
    fn set(&self, place: &Place<'_>, spread: Spread) -> ReplicaSet {
        let class = spread.class(place);
        let faults = &self.course.plan().faults;
        spread.set(|replica| {
            let node = spread.node(class, replica);
            let is_down = |number: &usize| {
                let fault = faults.get(*number);
                fault.is_some_and(|fault| fault.is_of_node(node) && fault.concerns(place))
            };
            self.up.is_up(node) && !self.replicas_down.iter().any(is_down)
        })
    }

    /// How far the replica on a node may lag: the first lag in the plan that applies to it. `None` means not at all.
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
mod tests;
