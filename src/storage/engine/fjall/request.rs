//! What the committer of the `file:` engine is asked for, and how it answers.

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::storage::batch::Change;
use crate::storage::{Committed, Error, Opening, Result};

/// What the committer is asked for.
pub(super) enum Command {
    Commit(Request),
    /// Write what is queued, make all that is acknowledged durable, answer.
    Sync(oneshot::Sender<Result<()>>),
    /// Let go of what was found, answer.
    Accept(oneshot::Sender<Result<()>>),
    /// Write what is queued, make it durable, let go of the directory, answer.
    Close(oneshot::Sender<Result<()>>),
}

/// A batch in the queue.
pub(super) struct Request {
    /// It is refused in any other opening.
    pub(super) only_in: Option<Opening>,
    /// It is refused where it makes a row longer.
    pub(super) row_bytes_max: usize,
    pub(super) changes: Vec<Change>,
    pub(super) bytes: usize,
    pub(super) answer: oneshot::Sender<Result<Committed>>,
    /// Its place in the queue's bounds, given back when it is answered.
    pub(super) room: Option<OwnedSemaphorePermit>,
}

/// What follows a group.
pub(super) enum Then {
    GoOn,
    Sync(oneshot::Sender<Result<()>>),
    Accept(oneshot::Sender<Result<()>>),
    Close(oneshot::Sender<Result<()>>),
}

impl Request {
    pub(super) fn answer(self, answer: Result<Committed>) {
        drop(self.room);
        // The caller may have gone away; the batch took effect nevertheless.
        drop(self.answer.send(answer));
    }
}

/// Gives the room of all back at once: each time costs a lock.
pub(super) fn give_room_back(requests: &mut [Request]) {
    let mut rooms = requests.iter_mut().filter_map(|request| request.room.take());
    if let Some(mut first) = rooms.next() {
        for room in rooms {
            first.merge(room);
        }
    }
}

/// Answers those that were judged by what an opening before this one showed; the others.
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
