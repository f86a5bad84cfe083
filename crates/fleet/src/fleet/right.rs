//! The right to answer: an edge serves a catalog only while no newer one can have been acknowledged. Pure: times are passed
//! in, as durations since some start of a node's own clock, which also counts while the machine sleeps.
//!
//! ```text
//! edge       sent ──────────────────────────── right ends: sent + 2 s, by the edge's clock
//!              └─► owner notes, answers v
//! owner            noted ───────────────────────── waited out: noted + 2.07 s, by the owner's clock
//! ```
//! **Edge.** When it has applied what the lease holder answered to a question that was sent at `sent`, it may answer until
//! `sent` + [`RIGHT`]. A request asks [`Edge::may_answer`], then takes its snapshot, then answers. The order matters: an
//! edge that was stopped may have a right again, but not for a snapshot that it took before.
//!
//! **Owner.** A change of version `v` is acknowledged when each edge has applied it, or has lost its right for older ones:
//! [`WAIT`] after the owner last answered it with an older version ([`Owner::awaited`]). A new owner does not know whom its
//! predecessor answered, so it waits from when it acquired the lease. An answer may be sent only if the lease was
//! still valid after the question was noted: then the question was sent before the next owner's lease began.
//!
//! Clocks are never compared, only their rates: `RIGHT` by a clock 1 % slow is 2.02 s, `WAIT` by one 1 % fast is 2.049 s.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::transport::PeerName;

/// How long after a question was sent its answer lets an edge serve.
pub const RIGHT: Duration = Duration::from_millis(2000);

/// How long an owner waits for an edge that is silent.
pub const WAIT: Duration = Duration::from_millis(2070);

/// Versions with which an edge was answered that an owner keeps apart. Older ones are joined to the owner's disadvantage.
const KEPT_MAX: usize = 16;

const _: () = assert!(RIGHT.as_millis() * 101 * 101 < WAIT.as_millis() * 100 * 100);

/// A version of the catalog: each change raises it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CatalogVersion(pub u64);

/// The right of one edge, by its own clock.
#[derive(Debug, Default)]
pub struct Edge {
    /// Its end in microseconds.
    until_micros: AtomicU64,
}

impl Edge {
    /// The edge has applied what the lease holder answered to a question that was sent at `sent`.
    pub fn applied(&self, sent: Duration) {
        let until = u64::try_from((sent + RIGHT).as_micros()).unwrap_or(u64::MAX);
        self.until_micros.fetch_max(until, Ordering::AcqRel);
    }

    /// Whether a request may be answered that takes its snapshot after this call.
    #[must_use]
    pub fn may_answer(&self, now: Duration) -> bool {
        now.as_micros() < self.until_micros.load(Ordering::Acquire).into()
    }
}

/// One process that asks: a node of the same name that starts again is another one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EdgeId {
    /// Its node.
    pub name: PeerName,
    /// Drawn at its start.
    pub incarnation: u64,
}

/// When an edge was last answered with a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Told {
    version: CatalogVersion,
    at: Duration,
}

/// What the owner knows of an edge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Known {
    applied: CatalogVersion,
    /// Versions and times rise along the list.
    told: VecDeque<Told>,
}

/// The owner's side: what it told whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// When it acquired the lease. `None` means that no edge had a right before.
    acquired: Option<Duration>,
    version: CatalogVersion,
    edges: BTreeMap<EdgeId, Known>,
}

/// Why a change is not acknowledged yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// When the wait is over if no edge says anything more.
    pub until: Duration,
    /// The edges that have not applied the change. Empty means that the owner is new.
    pub edges: Vec<EdgeId>,
}

impl Owner {
    /// An owner of this version, which acquired the lease at `acquired`. `None` means that no other node can have a right:
    /// the lease had no holder before, or the last one had no edges.
    #[must_use]
    pub const fn new(acquired: Option<Duration>, version: CatalogVersion) -> Self {
        Self {
            acquired,
            version,
            edges: BTreeMap::new(),
        }
    }

    /// The version with which questions are answered.
    #[must_use]
    pub const fn version(&self) -> CatalogVersion {
        self.version
    }

    /// A change is durable: from now on this version is told. Called before the change is acknowledged to anyone.
    pub fn committed(&mut self, version: CatalogVersion) {
        self.version = self.version.max(version);
    }

    /// Notes a question of an edge that has applied `applied`, and returns the version to answer it with. The answer may be
    /// sent if the lease is valid at a time that is read after this call.
    pub fn asked(&mut self, edge: &EdgeId, applied: CatalogVersion, now: Duration) -> CatalogVersion {
        let version = self.version;
        self.forget(now);
        let known = self.edges.entry(edge.clone()).or_default();
        known.applied = known.applied.max(applied);
        match known.told.back_mut() {
            Some(last) if last.version == version => last.at = last.at.max(now),
            _ => known.told.push_back(Told { version, at: now }),
        }
        if known.told.len() > KEPT_MAX {
            // The two oldest are joined: as if the older had been told as late as the newer.
            let oldest = known.told.pop_front();
            if let (Some(oldest), Some(next)) = (oldest, known.told.front_mut()) {
                next.version = oldest.version;
            }
        }
        version
    }

    /// An edge has applied a version, as it said in answer to a push.
    pub fn applied(&mut self, edge: &EdgeId, version: CatalogVersion) {
        if let Some(known) = self.edges.get_mut(edge) {
            known.applied = known.applied.max(version);
        }
    }

    /// Who is waited for before a change of this version, which is committed, may be acknowledged at `now`. `None` means that
    /// it may.
    #[must_use]
    pub fn awaited(&self, version: CatalogVersion, now: Duration) -> Option<Awaited> {
        let mut until = self.acquired.map_or(Duration::ZERO, |acquired| acquired + WAIT);
        let mut edges = Vec::new();
        for (edge, known) in &self.edges {
            let older = known.told.iter().rev().find(|told| told.version < version);
            let Some(told) = older.filter(|told| known.applied < version && now < told.at + WAIT) else {
                continue;
            };
            until = until.max(told.at + WAIT);
            edges.push(edge.clone());
        }
        (now < until).then_some(Awaited { until, edges })
    }

    /// The edges that were answered within the last [`WAIT`], each with the version that it has applied.
    pub fn edges(&self, now: Duration) -> impl Iterator<Item = (&EdgeId, CatalogVersion)> {
        let is_known = move |known: &Known| known.told.back().is_some_and(|told| now < told.at + WAIT);
        let edges = self.edges.iter().filter(move |(_, known)| is_known(known));
        edges.map(|(edge, known)| (edge, known.applied))
    }

    /// Forgets edges that have no right any more.
    fn forget(&mut self, now: Duration) {
        self.edges
            .retain(|_, known| known.told.back().is_some_and(|told| now < told.at + WAIT));
    }
}

#[cfg(test)]
#[path = "right_tests.rs"]
mod tests;
