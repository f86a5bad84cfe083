//! The commands of the committer of the `file:` engine, and their answers.

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::storage::batch::Change;
use crate::storage::{Committed, Error, Opening, Result};

/// A command to the committer.
pub(super) enum Command {
    Commit(Request),
    /// Write the queued batches, make everything acknowledged durable, then answer.
    Sync(oneshot::Sender<Result<()>>),
    /// Delete the links to the original files, then answer.
    Accept(oneshot::Sender<Result<()>>),
    /// Write the queued batches, make them durable, release the directory, then answer.
    Close(oneshot::Sender<Result<()>>),
}

/// A batch in the queue.
pub(super) struct Request {
    /// The opening that its conditions were checked in: in any other opening it is refused. `None` means any opening.
    pub(super) only_in: Option<Opening>,
    /// Most bytes of a row: the batch is refused if it makes a longer one.
    pub(super) row_bytes_max: usize,
    pub(super) changes: Vec<Change>,
    pub(super) bytes: usize,
    pub(super) answer: oneshot::Sender<Result<Committed>>,
    /// Its share of the queue's space, returned when it is answered. `None` means it was returned.
    pub(super) queue_space: Option<OwnedSemaphorePermit>,
}

/// The action after a group.
pub(super) enum Then {
    GoOn,
    Sync(oneshot::Sender<Result<()>>),
    Accept(oneshot::Sender<Result<()>>),
    Close(oneshot::Sender<Result<()>>),
}

impl Request {
    pub(super) fn answer(self, answer: Result<Committed>) {
        drop(self.queue_space);
        // The caller may have dropped its future; the batch took effect nevertheless.
        drop(self.answer.send(answer));
    }
}

/// Returns the queue space of all requests at once: each return takes a lock.
pub(super) fn release_queue_space(requests: &mut [Request]) {
    let mut permits = requests.iter_mut().filter_map(|request| request.queue_space.take());
    if let Some(mut first) = permits.next() {
        for permit in permits {
            first.merge(permit);
        }
    }
}

/// Refuses requests that were derived from an earlier opening; returns the others.
pub(super) fn refuse_of_other_openings(mut requests: Vec<Request>, now: Opening) -> Vec<Request> {
    let is_of_other = |request: &mut Request| request.only_in.is_some_and(|opening| opening != now);
    answer_all(requests.extract_if(.., is_of_other), &Err(Error::OpenedAgain));
    requests
}

pub(super) fn answer_all(requests: impl IntoIterator<Item = Request>, answer: &Result<Committed>) {
    for request in requests {
        request.answer(answer.clone());
    }
}

pub(super) fn has_ranges(request: &Request) -> bool {
    request
        .changes
        .iter()
        .any(|change| matches!(change, Change::DeleteRange { .. }))
}
