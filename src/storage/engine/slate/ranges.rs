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

use futures::FutureExt;
use tokio::task::JoinHandle;

use super::Published;
use super::committer::Committer;
use super::group::{Fold, Group, Request};
use crate::storage::batch::{Change, Space};
use crate::storage::derivation::{self, Derivations};
use crate::storage::engine::layout::{full_key, range_record};
use crate::storage::engine::{Order, RANGE_STEP_BYTES, RANGE_STEP_KEYS_MAX, remove_tables, rest_of_range};
use crate::storage::key::KeyRange;
use crate::storage::{CommitSeq, Error, Result};

/// A range that is being deleted.
struct DeletedRange {
    number: u64,
    space: Space,
    range: KeyRange,
    /// The part of it that may still have keys.
    rest: KeyRange,
}

impl DeletedRange {
    fn new((number, space, range): (u64, Space, KeyRange)) -> Self {
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
    /// `None` for what an opening found.
    batch: Option<Request>,
}

impl RangeJob {
    fn answer(self, answer: &Result<CommitSeq>) {
        if let Some(batch) = self.batch {
            batch.answer(answer.clone());
        }
    }
}

/// The removal of the first keys of a range.
pub(super) struct Step {
    group: Group,
    /// The part of the range that is left. `None` means that nothing is.
    rest: Option<KeyRange>,
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
    pub(super) fn resume(&mut self, unfinished: Vec<(u64, Space, KeyRange)>) {
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
        for job in self.jobs.drain(..) {
            job.answer(&Err(error.clone()));
        }
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
}

impl Committer {
    /// Adds the records of the ranges that batches of the group delete. Returns those ranges, in the order of the
    /// batches; a refused batch has none.
    pub(super) fn record_ranges(
        &mut self,
        group: &mut Group,
        requests: &[Request],
        refusals: &[Option<Error>],
    ) -> Vec<Vec<(u64, Space, KeyRange)>> {
        let mut recorded = Vec::with_capacity(requests.len());
        for (request, refusal) in requests.iter().zip(refusals) {
            let mut ranges = Vec::new();
            for change in request.changes.iter().filter(|_| refusal.is_none()) {
                if let Change::DeleteRange { space, range } = change {
                    let (key, value) = range_record(self.next_range, *space, range);
                    group.own.push((key, Some(value)));
                    ranges.push((self.next_range, *space, range.clone()));
                    self.next_range += 1;
                }
            }
            recorded.push(ranges);
        }
        recorded
    }

    /// Deletes ranges whose records are durable; the batch is answered when they are empty.
    pub(super) fn begin_ranges(&mut self, ranges: Vec<(u64, Space, KeyRange)>, batch: Request) {
        self.ranges.jobs.push_back(RangeJob {
            ranges: ranges.into_iter().map(DeletedRange::new).collect(),
            batch: Some(batch),
        });
    }

    /// Begins to read the keys of the next step, if one may be made now.
    pub(super) fn begin_range_step(&mut self) {
        let jobs = &self.ranges;
        if self.failed || jobs.reading.is_some() || !self.flight.has_room() {
            return;
        }
        let Some(deleted) = jobs.jobs.front().and_then(|job| job.ranges.front()) else {
            return;
        };
        let Some(published) = self.shared.published.load_full() else {
            return;
        };
        if published.seq < jobs.last_step {
            return;
        }
        let derivations = self.shared.derivations.load_full();
        let (space, rest) = (deleted.space, deleted.rest.clone());
        // A separate task: a bucket answers late, and commits go on meanwhile.
        self.ranges.reading = Some(tokio::spawn(async move {
            removal(&published, &derivations, space, rest).await
        }));
    }

    /// Writes the step that was read. Its batch is answered, if it was the last one, when the step is durable.
    pub(super) async fn step_range(&mut self, step: Result<Step>) {
        let Some(mut job) = self.ranges.jobs.pop_front() else {
            return;
        };
        let (step, deleted) = match (step, job.ranges.front_mut()) {
            (Ok(step), Some(deleted)) => (step, deleted),
            // The record stays, so the next opening resumes the deletion.
            (Err(error), _) => {
                tracing::warn!(%error, location = %self.home.location, "a range is not removed; the next opening goes on");
                return job.answer(&Err(error));
            }
            (Ok(_), None) => return,
        };
        let mut group = step.group;
        let mut batches = Vec::new();
        if let Some(rest) = step.rest {
            deleted.rest = rest;
        } else {
            let (number, space) = (deleted.number, deleted.space);
            group.own.push((range_record(number, space, &deleted.range).0, None));
            if space == Space::Deletions {
                remove_tables(&mut self.deletion_tables, &deleted.range);
            }
            job.ranges.pop_front();
        }
        if job.ranges.is_empty() {
            batches.extend(job.batch.map(|batch| (batch, None)));
        } else {
            self.ranges.jobs.push_front(job);
        }
        self.send_off(group, batches).await;
        self.ranges.last_step = self.seq;
    }
}

/// Reads the first keys of a range, at least one, and makes the changes that remove them.
async fn removal(published: &Published, derivations: &Derivations, space: Space, range: KeyRange) -> Result<Step> {
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
