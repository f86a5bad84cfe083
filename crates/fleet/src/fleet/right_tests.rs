//! The right to answer under random schedules, clocks that run apart, and rules with a fault.

use std::collections::BinaryHeap;

use super::*;

const MILLI: u64 = 1_000;
const SECOND: u64 = 1_000_000;

/// A fault in the rules, or in their use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// Changes are acknowledged as soon as they are committed.
    NoWait,
    /// The right counts from the arrival of the answer.
    FromArrival,
    /// A new owner waits for nothing.
    NewOwnerTrusts,
    /// A request takes its snapshot before it asks for the right.
    SnapshotFirst,
    /// The right begins before the answer is applied.
    RightBeforeApplied,
    /// The owner answers without a look at its lease.
    AnswersWithoutLease,
}

/// A clock in microseconds: its offset, and its rate in parts of 10,000.
#[derive(Clone, Copy, Debug)]
struct Rate {
    offset: u64,
    per_10_000: u64,
}

impl Rate {
    fn drawn(rng: &mut fastrand::Rng) -> Self {
        let rates = [9_900, 10_000, 10_100];
        Self {
            offset: rng.u64(0..1000 * SECOND),
            per_10_000: rates[rng.usize(0..rates.len())],
        }
    }

    fn at(self, now: u64) -> Duration {
        Duration::from_micros(self.offset + now * self.per_10_000 / 10_000)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Ask {
        edge: usize,
    },
    Asked {
        edge: usize,
        owner: usize,
        sent: Duration,
        applied: u64,
    },
    Answered {
        edge: usize,
        sent: Duration,
        version: u64,
    },
    Pushed {
        edge: usize,
        version: u64,
        /// From when the right counts that begins with it.
        from: Option<Duration>,
    },
    Applied {
        edge: usize,
        owner: usize,
        version: u64,
    },
    Request {
        edge: usize,
    },
    Answer {
        edge: usize,
        /// The snapshot, if it was taken already.
        snapshot: Option<u64>,
        acknowledged: u64,
    },
    Change,
    Look {
        owner: usize,
    },
    Takeover,
}

struct Node {
    clock: Rate,
    edge: Edge,
    applied: u64,
    /// The time until which its process is stopped.
    stopped_until: u64,
}

struct Holder {
    clock: Rate,
    owner: Owner,
    /// When its lease ended, in true time.
    lease_ends: u64,
    /// When a lease ended that it still believes in.
    pending: Vec<u64>,
}

struct World {
    rng: fastrand::Rng,
    fault: Fault,
    now: u64,
    number: u64,
    /// The earliest first.
    events: BinaryHeap<std::cmp::Reverse<(u64, u64, Event)>>,
    nodes: Vec<Node>,
    holders: Vec<Holder>,
    committed: u64,
    acknowledged: u64,
    served: u32,
    refused: u32,
    stale: u32,
}

impl World {
    fn new(seed: u64, fault: Fault) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let nodes = (0..3).map(|_| Node {
            clock: Rate::drawn(&mut rng),
            edge: Edge::default(),
            applied: 0,
            stopped_until: 0,
        });
        let nodes = nodes.collect();
        let clock = Rate::drawn(&mut rng);
        let first = Holder {
            clock,
            owner: Owner::new(None, CatalogVersion(0)),
            lease_ends: u64::MAX,
            pending: Vec::new(),
        };
        let mut world = Self {
            rng,
            fault,
            now: 0,
            number: 0,
            events: BinaryHeap::new(),
            nodes,
            holders: vec![first],
            committed: 0,
            acknowledged: 0,
            served: 0,
            refused: 0,
            stale: 0,
        };
        for edge in 0..3 {
            world.after(0, Event::Ask { edge });
            world.after(0, Event::Request { edge });
        }
        world.after(SECOND, Event::Change);
        world.after(3 * SECOND, Event::Takeover);
        world
    }

    fn after(&mut self, delay: u64, event: Event) {
        self.number += 1;
        let event = std::cmp::Reverse((self.now + delay, self.number, event));
        self.events.push(event);
    }

    /// A message takes a millisecond, or seconds, or is lost.
    fn send(&mut self, event: Event) {
        let delay = match self.rng.u8(0..10) {
            0 => return,
            1 => self.rng.u64(0..3 * SECOND),
            _ => self.rng.u64(0..2 * MILLI),
        };
        self.after(delay, event);
    }

    fn run(mut self, events: u32) -> Self {
        for _ in 0..events {
            let Some(std::cmp::Reverse((at, number, event))) = self.events.pop() else {
                break;
            };
            self.now = at;
            // A process that is stopped handles its events when it goes on.
            let stopped_until = match event {
                Event::Ask { edge }
                | Event::Answered { edge, .. }
                | Event::Pushed { edge, .. }
                | Event::Request { edge }
                | Event::Answer { edge, .. } => self.nodes[edge].stopped_until,
                _ => 0,
            };
            if stopped_until > at {
                self.events.push(std::cmp::Reverse((stopped_until, number, event)));
                continue;
            }
            self.step(event);
        }
        self
    }

    fn step(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Ask { edge } => {
                let node = &self.nodes[edge];
                let (sent, applied) = (node.clock.at(now), node.applied);
                // An edge may still take an earlier holder for the present one.
                let owner = self.holders.len() - 1;
                let owner = owner.saturating_sub(self.rng.usize(0..2));
                self.send(Event::Asked {
                    edge,
                    owner,
                    sent,
                    applied,
                });
                let next = self.rng.u64(100 * MILLI..900 * MILLI);
                self.after(next, Event::Ask { edge });
            }
            Event::Asked {
                edge,
                owner,
                sent,
                applied,
            } => self.asked(edge, owner, sent, applied),
            Event::Answered { edge, sent, version } => {
                let node = &mut self.nodes[edge];
                let from = if self.fault == Fault::FromArrival {
                    node.clock.at(now)
                } else {
                    sent
                };
                if self.fault == Fault::RightBeforeApplied {
                    node.edge.applied(from);
                }
                // It takes its time.
                let from = Some(from);
                self.send(Event::Pushed { edge, version, from });
            }
            Event::Pushed { edge, version, from } => {
                let node = &mut self.nodes[edge];
                node.applied = node.applied.max(version);
                if let Some(from) = from {
                    node.edge.applied(from);
                }
                let version = node.applied;
                let owner = self.holders.len() - 1;
                self.send(Event::Applied { edge, owner, version });
            }
            Event::Applied { edge, owner, version } => {
                self.holders[owner].owner.applied(&id(edge), CatalogVersion(version));
            }
            Event::Request { edge } => self.request(edge),
            Event::Answer {
                edge,
                snapshot,
                acknowledged,
            } => self.answer(edge, snapshot, acknowledged),
            Event::Change => self.change(),
            Event::Look { owner } => self.look(owner),
            Event::Takeover => self.take_over(),
        }
    }

    fn request(&mut self, edge: usize) {
        let now = self.now;
        let (node, acknowledged) = (&self.nodes[edge], self.acknowledged);
        let snapshot = (self.fault == Fault::SnapshotFirst).then_some(node.applied);
        let may_answer = snapshot.is_some() || node.edge.may_answer(node.clock.at(now));
        let works = if self.rng.u8(0..4) == 0 { 3 * SECOND } else { 5 * MILLI };
        let works = self.rng.u64(0..works);
        if may_answer {
            self.after(
                works,
                Event::Answer {
                    edge,
                    snapshot,
                    acknowledged,
                },
            );
        } else {
            self.refused += 1;
        }
        if self.rng.u8(0..20) == 0 {
            self.nodes[edge].stopped_until = now + self.rng.u64(0..4 * SECOND);
        }
        let next = self.rng.u64(0..100 * MILLI);
        self.after(next, Event::Request { edge });
    }

    fn change(&mut self) {
        self.committed += 1;
        let version = self.committed;
        let owner = self.holders.len() - 1;
        self.holders[owner].owner.committed(CatalogVersion(version));
        self.holders[owner].pending.push(version);
        for edge in 0..self.nodes.len() {
            self.send(Event::Pushed {
                edge,
                version,
                from: None,
            });
        }
        self.after(0, Event::Look { owner });
        let next = self.rng.u64(0..2 * SECOND);
        self.after(next, Event::Change);
    }

    fn asked(&mut self, edge: usize, owner: usize, sent: Duration, applied: u64) {
        let now = self.now;
        let holder = &mut self.holders[owner];
        let at = holder.clock.at(now);
        let CatalogVersion(version) = holder.owner.asked(&id(edge), CatalogVersion(applied), at);
        let has_lease = now < holder.lease_ends || self.fault == Fault::AnswersWithoutLease;
        if has_lease {
            self.send(Event::Answered { edge, sent, version });
        }
    }

    fn answer(&mut self, edge: usize, snapshot: Option<u64>, acknowledged: u64) {
        let node = &self.nodes[edge];
        if snapshot.is_some() && !node.edge.may_answer(node.clock.at(self.now)) {
            self.refused += 1;
            return;
        }
        self.served += 1;
        self.stale += u32::from(snapshot.unwrap_or(node.applied) < acknowledged);
    }

    fn look(&mut self, owner: usize) {
        let holder = &mut self.holders[owner];
        // A deposed owner acknowledges nothing.
        if holder.lease_ends <= self.now {
            return;
        }
        let at = holder.clock.at(self.now);
        let Some(version) = holder.pending.first().copied() else {
            return;
        };
        let awaited = holder.owner.awaited(CatalogVersion(version), at);
        if self.fault == Fault::NoWait || awaited.is_none() {
            holder.pending.remove(0);
            self.acknowledged = self.acknowledged.max(version);
        }
        self.after(5 * MILLI, Event::Look { owner });
    }

    fn take_over(&mut self) {
        let now = self.now;
        let last = self.holders.len() - 1;
        self.holders[last].lease_ends = now;
        let clock = Rate::drawn(&mut self.rng);
        let acquired = (self.fault != Fault::NewOwnerTrusts).then(|| clock.at(now));
        self.holders.push(Holder {
            clock,
            owner: Owner::new(acquired, CatalogVersion(self.committed)),
            lease_ends: u64::MAX,
            pending: Vec::new(),
        });
        let next = self.rng.u64(0..8 * SECOND);
        self.after(next, Event::Takeover);
    }
}

fn id(edge: usize) -> EdgeId {
    EdgeId {
        name: format!("edge{edge}").into(),
        incarnation: 1,
    }
}

fn stale_of(fault: Fault, seeds: u64) -> u32 {
    (0..seeds).map(|seed| World::new(seed, fault).run(3000).stale).sum()
}

#[test]
fn no_edge_serves_less_than_was_acknowledged() {
    let (mut served, mut refused, mut acknowledged) = (0, 0, 0);
    for seed in 0..200 {
        let world = World::new(seed, Fault::None).run(3000);
        assert_eq!(world.stale, 0, "seed {seed}");
        served += world.served;
        refused += world.refused;
        acknowledged += world.acknowledged;
    }
    assert!(
        served > 20_000 && refused > 10_000 && acknowledged > 1_000,
        "{served} {refused} {acknowledged}"
    );
}

#[test]
fn each_fault_is_caught() {
    for fault in [
        Fault::NoWait,
        Fault::FromArrival,
        Fault::NewOwnerTrusts,
        Fault::SnapshotFirst,
        Fault::RightBeforeApplied,
        Fault::AnswersWithoutLease,
    ] {
        assert!(stale_of(fault, 60) > 0, "{fault:?}");
    }
}

#[test]
fn the_margin_is_needed_when_clocks_run_apart() {
    // The edge is 1 % slow, the owner 1 % fast. True times in microseconds.
    let slow = Rate {
        offset: 0,
        per_10_000: 9_900,
    };
    let fast = Rate {
        offset: 7,
        per_10_000: 10_100,
    };
    let (edge, mut owner) = (Edge::default(), Owner::new(None, CatalogVersion(1)));
    let at = SECOND;
    owner.asked(&id(0), CatalogVersion(1), fast.at(at));
    edge.applied(slow.at(at));
    owner.committed(CatalogVersion(2));
    let acknowledged = (at..)
        .step_by(1000)
        .find(|now| owner.awaited(CatalogVersion(2), fast.at(*now)).is_none());
    let lost = (at..).step_by(1000).find(|now| !edge.may_answer(slow.at(*now)));
    let (acknowledged, lost) = (acknowledged.unwrap(), lost.unwrap());
    assert!(
        lost < acknowledged && acknowledged - lost < 50 * MILLI,
        "{lost} {acknowledged}"
    );
    let without = at + 2 * SECOND * 10_000 / 10_100;
    assert!(edge.may_answer(slow.at(without)), "2 s by the fast clock are too short");
}

#[test]
fn an_edge_that_has_applied_is_not_waited_for() {
    let at = Duration::from_secs(100);
    let mut owner = Owner::new(None, CatalogVersion(1));
    assert_eq!(owner.awaited(CatalogVersion(1), at), None, "without edges");
    owner.asked(&id(0), CatalogVersion(1), at);
    owner.asked(&id(1), CatalogVersion(1), at + RIGHT / 2);
    owner.committed(CatalogVersion(2));
    let now = at + RIGHT / 2;
    let awaited = owner.awaited(CatalogVersion(2), now).unwrap();
    assert_eq!(awaited.edges, [id(0), id(1)]);
    assert_eq!(awaited.until, now + WAIT);
    owner.applied(&id(1), CatalogVersion(2));
    // What it is told from now on names the change, and lends no right for less.
    assert_eq!(owner.asked(&id(0), CatalogVersion(1), now), CatalogVersion(2));
    let awaited = owner.awaited(CatalogVersion(2), now).unwrap();
    assert_eq!((awaited.until, awaited.edges), (at + WAIT, vec![id(0)]));
    assert_eq!(owner.awaited(CatalogVersion(2), at + WAIT), None);
    assert_eq!(owner.edges(now).count(), 2);
    assert_eq!(owner.edges(now + WAIT).count(), 0);

    let new = Owner::new(Some(at), CatalogVersion(2));
    assert_eq!(new.awaited(CatalogVersion(2), at).unwrap().until, at + WAIT);
    assert_eq!(new.awaited(CatalogVersion(2), at + WAIT), None);
}

#[test]
fn versions_that_are_joined_are_waited_for_at_least_as_long() {
    for last in 0..60 {
        let mut owner = Owner::new(None, CatalogVersion(0));
        let at = |step: u64| Duration::from_millis(step * 20);
        for step in 0..=last {
            owner.committed(CatalogVersion(step));
            owner.asked(&id(0), CatalogVersion(0), at(step));
        }
        for version in 1..=last {
            let awaited = owner.awaited(CatalogVersion(version), at(last)).unwrap();
            // It was last answered with an older one a step before.
            assert!(awaited.until >= at(version - 1) + WAIT, "{version} of {last}");
            assert!(awaited.until <= at(last) + WAIT);
        }
    }
}
