//! Secondary indexes: the entries of rows, the build of an index in the background, and its use by reads.
//!
//! **Life of an index.** CREATE INDEX makes its definition and a `!index` record durable, then registers the
//! [`rows::IndexedRows`] of its table with the store. From then on every commit writes the entries together with the
//! rows. A task ([`builds::index`](crate::engine::builds)) visits the existing rows and writes their entries in steps, each with its progress, and
//! records the end; a kill loses at most a step. From then on reads use the index ([`walk`]); before, they scan and
//! filter, with the same answers. DROP, TRUNCATE and DROP TABLE first end its use by reads, then its maintenance by
//! commits. Then its entries are removed in the background, as those of tables.
//!
//! **Invariants.**
//! - The registered derivations cover the published schema: a change registers added indexes before any request can
//!   write by it, and takes back removed ones only when no request reads by them any more ([`Indexes::is_complete`] is
//!   checked before and after a snapshot).
//! - The entries of a complete index are exactly those that its table's rows derive, at every snapshot.
//! - An entry is only a candidate: the statement's filters test every row found, as in a scan.
//!
//! ```text
//! !index · index id u32  →  version u8 · complete u8 · rows passed u64 · last row's key     (Space::Catalog)
//! ```
//! The record in the main store says whether the index is complete. While it is built, each store has a record of its
//! own progress. An index of the schema without a record is built from the start; so is the part of a store without
//! one. A record with progress has version 2: programs that know only version 1 would take the progress of one store
//! for that of all, and build such an index from the start.

pub(crate) mod change;
pub(crate) mod overlong;
pub(crate) mod rows;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use bytes::Bytes;
use tokio::sync::{Semaphore, watch};
use uuid::Uuid;

use crate::engine::shown::IndexBuild;
use helenus_schema::schema::StorageId;

/// Builds that run at once; more wait.
const BUILDS_MAX: usize = 2;

/// Prefix of the records of indexes, in the catalog space.
pub(crate) const RECORD: &[u8] = b"!index";

/// The key of an index's record.
pub(crate) fn record_key(index: StorageId) -> Vec<u8> {
    [RECORD, &index.to_be_bytes()].concat()
}

/// Version of a record without a last row.
const RECORD_VERSION: u8 = 1;
/// Version of a record with one.
const PROGRESS_VERSION: u8 = 2;

/// The recorded progress of an index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// Every row has its entries.
    pub(crate) is_complete: bool,
    /// Rows that the build has passed.
    pub(crate) rows_passed: u64,
    /// The key of the last one; empty: none yet.
    pub(crate) last: Vec<u8>,
}

impl Record {
    /// The record of an index without anything left to put.
    pub(crate) fn complete() -> Self {
        Self {
            is_complete: true,
            ..Self::default()
        }
    }

    pub(crate) fn encode(&self) -> Bytes {
        let version = if self.last.is_empty() {
            RECORD_VERSION
        } else {
            PROGRESS_VERSION
        };
        let mut bytes = vec![version, u8::from(self.is_complete)];
        bytes.extend_from_slice(&self.rows_passed.to_be_bytes());
        bytes.extend_from_slice(&self.last);
        bytes.into()
    }

    /// Reads what [`Record::encode`] wrote; anything else is an index to build from the start.
    pub(crate) fn decode(bytes: &[u8]) -> Self {
        let read = || {
            let (version, rest) = bytes.split_first()?;
            let (is_complete, rest) = rest.split_first()?;
            let (rows_passed, last) = rest.split_first_chunk::<8>()?;
            [RECORD_VERSION, PROGRESS_VERSION].contains(version).then(|| Self {
                is_complete: *is_complete == 1,
                rows_passed: u64::from_be_bytes(*rows_passed),
                last: last.to_vec(),
            })
        };
        read().unwrap_or_default()
    }
}

/// A running build.
#[derive(Debug)]
pub(crate) struct Progress {
    /// Its name among tasks: a version 1 uuid.
    pub(crate) task: Uuid,
    /// Rows passed.
    pub(crate) rows_passed: AtomicU64,
    /// Rows to pass, as the store estimates them.
    pub(crate) rows_total: AtomicU64,
    /// Whether the index was dropped.
    pub(crate) is_ended: AtomicBool,
}

impl Progress {
    pub(crate) const fn new(task: Uuid, rows_passed: u64) -> Self {
        Self {
            task,
            rows_passed: AtomicU64::new(rows_passed),
            rows_total: AtomicU64::new(0),
            is_ended: AtomicBool::new(false),
        }
    }
}

#[derive(Clone, Debug)]
enum State {
    Complete,
    Building(Arc<Progress>),
}

/// The published indexes, by their numbers in the store, with their progress.
#[derive(Debug)]
pub(crate) struct Indexes {
    states: ArcSwap<imbl::HashMap<StorageId, State>>,
    /// The catalog's number for followers, which rises when an index is complete.
    changes: Arc<watch::Sender<u64>>,
    /// Permits of builds that run at once.
    pub(crate) slots: Semaphore,
}

impl Default for Indexes {
    fn default() -> Self {
        Self {
            states: ArcSwap::default(),
            changes: Arc::new(watch::Sender::new(0)),
            slots: Semaphore::new(BUILDS_MAX),
        }
    }
}

impl Indexes {
    /// None yet. The number rises when one is complete.
    pub(in crate::engine) fn told_by(changes: &Arc<watch::Sender<u64>>) -> Self {
        Self {
            changes: Arc::clone(changes),
            ..Self::default()
        }
    }

    /// Whether reads may use an index. A snapshot may be used if this holds before and after it is taken.
    pub(crate) fn is_complete(&self, index: StorageId) -> bool {
        matches!(self.states.load().get(&index), Some(State::Complete))
    }

    /// The builds that wait or run.
    pub(crate) fn builds(&self) -> Vec<IndexBuild> {
        let states = self.states.load();
        let mut builds: Vec<IndexBuild> = states
            .iter()
            .filter_map(|(index, state)| match state {
                State::Complete => None,
                State::Building(progress) => Some(IndexBuild {
                    index: *index,
                    task: progress.task,
                    rows_passed: progress.rows_passed.load(Ordering::Relaxed),
                    rows_total: progress.rows_total.load(Ordering::Relaxed),
                }),
            })
            .collect();
        builds.sort_by_key(|build| build.index);
        builds
    }

    /// The numbers of all.
    pub(crate) fn all(&self) -> impl Iterator<Item = StorageId> + use<> {
        let all: Vec<StorageId> = self.states.load().keys().copied().collect();
        all.into_iter()
    }

    fn set(&self, index: StorageId, state: &State) {
        self.states.rcu(|states| states.update(index, state.clone()));
    }

    /// An index that needs no build.
    pub(crate) fn add_complete(&self, index: StorageId) {
        self.set(index, &State::Complete);
    }

    /// Adds an index whose build starts or resumes.
    pub(crate) fn add_building(&self, index: StorageId, progress: &Arc<Progress>) {
        self.set(index, &State::Building(Arc::clone(progress)));
    }

    /// Marks a build as complete; no-op for an index that no longer exists.
    pub(crate) fn finish(&self, index: StorageId) {
        self.states.rcu(|states| match states.get(&index) {
            Some(_) => states.update(index, State::Complete),
            None => imbl::HashMap::clone(states),
        });
        self.changes.send_modify(|number| *number += 1);
    }

    /// Ends the use of an index, and its build.
    pub(crate) fn remove(&self, index: StorageId) {
        let before = self.states.rcu(|states| states.without(&index));
        if let Some(State::Building(progress)) = before.get(&index) {
            progress.is_ended.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
