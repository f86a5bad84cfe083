//! Deletions of ranges, in steps between which other batches are written.
//!
//! ```text
//! batch ─► its records are durable ─► RangeJob ─► [read, write], …, the last one removes the record ─► durable ─► answered
//!                                                  └─ a step; the next one begins when it is published
//! ```
//! A record names a range that is being deleted. The next opening makes a job of each that it finds, so a deletion is
//! finished after a crash too.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::sync::Arc;

use futures::FutureExt;
use tokio::task::JoinHandle;

use super::Published;
use super::group::{Fold, Group, Request};
use crate::storage::batch::Space;
use crate::storage::derivation::{self, Derivations};
use crate::storage::engine::layout::{full_key, range_record};
use crate::storage::engine::{Order, RANGE_STEP_BYTES, RANGE_STEP_KEYS_MAX, rest_of_range};
use crate::storage::key::KeyRange;
use crate::storage::{CommitSeq, Error, Result};

/// A range to delete: the number of its record, its space, its bounds.
pub(super) type Recorded = (u64, Space, KeyRange);

/// A range that is being deleted.
struct DeletedRange {
    number: u64,
    space: Space,
    range: KeyRange,
    /// The part of it that may still have keys.
    rest: KeyRange,
}

impl DeletedRange {
    fn new((number, space, range): Recorded) -> Self {
        let rest = range.clone();
        Self {
            number,
            space,
            range,
            rest,
        }
    }
}

/// The ranges that one batch deletes.
struct RangeJob {
    ranges: VecDeque<DeletedRange>,
    /// `None` for what an opening found, and once it is answered.
    batch: Option<Request>,
}

/// The removal of the first keys of a range.
pub(super) struct Step {
    group: Group,
    /// The part of the range that is left. `None` means that nothing is.
    rest: Option<KeyRange>,
}

/// A step as it is written.
pub(super) struct Removal {
    pub(super) group: Group,
    /// The space and the range that is empty after it.
    pub(super) emptied: Option<(Space, KeyRange)>,
    /// The batch that is done with it.
    pub(super) batch: Option<Request>,
}

/// Ranges to delete.
#[derive(Default)]
pub(super) struct RangeJobs {
    /// The oldest first.
    jobs: VecDeque<RangeJob>,
    /// The last step. The next one waits until it is published, so that steps do not fill the queue of groups.
    last_step: CommitSeq,
    /// The task that reads the next step of the first job. `None` means that there is none.
    reading: Option<JoinHandle<Result<Step>>>,
}

impl RangeJobs {
    /// Adds the ranges that an opening found. All jobs of the time before were ended.
    pub(super) fn resume(&mut self, unfinished: Vec<Recorded>) {
        self.last_step = CommitSeq(0);
        self.jobs.extend(unfinished.into_iter().map(|of| RangeJob {
            ranges: VecDeque::from([DeletedRange::new(of)]),
            batch: None,
        }));
    }

    /// Ends all jobs. The records of their ranges stay.
    pub(super) fn end(&mut self, error: &Error) {
        if let Some(reading) = self.reading.take() {
            reading.abort();
        }
        for batch in self.jobs.drain(..).filter_map(|job| job.batch) {
            batch.answer(Err(error.clone()));
        }
    }

    /// Adds ranges whose records are written; the batch is answered when they are empty.
    pub(super) fn add(&mut self, ranges: Vec<Recorded>, batch: Option<Request>) {
        self.jobs.push_back(RangeJob {
            ranges: ranges.into_iter().map(DeletedRange::new).collect(),
            batch,
        });
    }

    /// Begins to read the keys of the next step, in a task of its own: a bucket answers late, and commits go on meanwhile.
    pub(super) fn begin(&mut self, published: Arc<Published>, derivations: Arc<Derivations>) {
        if self.reading.is_some() || published.seq < self.last_step {
            return;
        }
        if let Some(deleted) = self.jobs.front().and_then(|job| job.ranges.front()) {
            let (space, rest) = (deleted.space, deleted.rest.clone());
            self.reading = Some(tokio::spawn(async move {
                read_step(&published, &derivations, space, rest).await
            }));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    pub(super) fn is_reading(&self) -> bool {
        self.reading.is_some()
    }

    /// Waits for the step that is being read; never returns if there is none. May be dropped and called again.
    pub(super) async fn read(&mut self) -> Result<Step> {
        poll_fn(|context| match &mut self.reading {
            Some(reading) => reading.poll_unpin(context).map(|ended| {
                self.reading = None;
                // A task that panicked has removed nothing.
                ended.unwrap_or(Err(Error::Closed))
            }),
            None => std::task::Poll::Pending,
        })
        .await
    }

    /// The next write of the first job, after its step was read. `None` means that there is no job.
    pub(super) fn take(&mut self, step: Step) -> Option<Removal> {
        let mut job = self.jobs.pop_front()?;
        let deleted = job.ranges.front_mut()?;
        let (mut group, mut emptied) = (step.group, None);
        if let Some(rest) = step.rest {
            deleted.rest = rest;
        } else if let Some(done) = job.ranges.pop_front() {
            group
                .own
                .push((range_record(done.number, done.space, &done.range).0, None));
            emptied = Some((done.space, done.range));
        }
        let mut batch = None;
        if job.ranges.is_empty() {
            batch = job.batch;
        } else {
            self.jobs.push_front(job);
        }
        Some(Removal { group, emptied, batch })
    }

    /// Ends the first job, whose step could not be read. Its record stays, so the next opening resumes the deletion.
    pub(super) fn give_up(&mut self, error: Error) {
        if let Some(batch) = self.jobs.pop_front().and_then(|job| job.batch) {
            batch.answer(Err(error));
        }
    }

    /// Records that a step was written: the next one begins when it is published.
    pub(super) fn wrote(&mut self, step: CommitSeq) {
        self.last_step = step;
    }
}

/// Reads the first keys of a range, at least one, and makes the changes that remove them.
async fn read_step(published: &Published, derivations: &Derivations, space: Space, range: KeyRange) -> Result<Step> {
    let mut group = Group::default();
    let mut last = None;
    let (mut removed, mut bytes) = (0_usize, 0_usize);
    let visit = |key: &[u8], value: &[u8]| {
        group.folds.insert(full_key(space, key), (space, Fold::Delete));
        bytes += key.len();
        if let Some(derivation) = derivation::of_row(derivations, key).filter(|_| space == Space::Rows) {
            for (entry, _) in derivation::changes(derivation.as_ref(), key, Some(value), None) {
                bytes += entry.len();
                let deleted = (Space::Indexes, Fold::Delete);
                group.folds.insert(full_key(Space::Indexes, &entry), deleted);
            }
        }
        removed += 1;
        if removed < RANGE_STEP_KEYS_MAX && bytes < RANGE_STEP_BYTES {
            return ControlFlow::Continue(());
        }
        last = Some(key.to_vec());
        ControlFlow::Break(())
    };
    published.scan(space, &range, Order::Forward, visit).await?;
    let rest = last.map(|last| rest_of_range(&range, Order::Forward, last));
    Ok(Step { group, rest })
}
