//! Requests in progress on one connection.
//!
//! A request is polled at once, on the connection's own task. Most finish in that poll, and cost no task, no queue and,
//! because the box is reused, no allocation. A request that has to wait joins a set that the same task polls, so that a
//! group commit of many requests wakes the connection once. A request that yields again and again (a long scan) is
//! moved to a task of its own, so that it can run on another core. A connection has no more such tasks than there are
//! worker threads: the runtime gives every task a turn, so a client of a thousand scans would get a thousand turns to
//! the one turn of another client.
//!
//! A request that finds no memory for its response releases its box; only its body stays while it waits
//! ([`InFlight::wait`]), so that thousands may wait.
//!
//! A panic is caught here, and answered with an id that is also in the log.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::{Handled, Postponed};
use helenus_base::budget::{Exhausted, Reservation, Share};
use helenus_base::metrics;
use helenus_types::wire::Header;
use helenus_types::wire::response::ErrorBody;

/// Polls after which a request gets a task of its own.
const POLLS_MAX: u32 = 8;

/// Most boxes kept for later requests.
const SPARE_MAX: usize = 64;

/// Bytes that a request in progress takes in addition to its own, roughly: its entry in the set, headers of
/// allocations.
const PLACE_BYTES: usize = 128;

/// A box that holds one request's future, or none, and is reused.
type Slot<F> = Pin<Box<Option<F>>>;

/// The outcome of a request in progress.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It was executed, or has to wait for memory.
    Handled(Handled),
    /// It has waited, and begins again with the memory granted.
    Waited(Waited),
}

/// A request that has waited for memory.
#[derive(Debug)]
pub(super) struct Waited {
    pub(super) header: Header,
    pub(super) body: Bytes,
    pub(super) granted: Result<Reservation, Exhausted>,
}

/// A request that is no longer in progress.
#[derive(Debug)]
pub(super) struct Done {
    /// Its stream.
    pub(super) stream: i16,
    /// Its size in the accounts.
    pub(super) bytes: usize,
    place_bytes: usize,
    /// Its outcome.
    pub(super) outcome: Outcome,
}

enum Work<F> {
    Here(Slot<F>),
    Elsewhere(JoinHandle<Handled>),
    Waiting(Pin<Box<dyn Future<Output = Waited> + Send>>),
    Moving,
}

struct Running<F> {
    work: Work<F>,
    stream: i16,
    bytes: usize,
    /// Bytes of its entry.
    place_bytes: usize,
    polls: u32,
}

/// The answer to a request that panicked.
fn panicked() -> Handled {
    static PANICS: AtomicU64 = AtomicU64::new(0);
    let id = PANICS.fetch_add(1, Ordering::Relaxed) + 1;
    metrics::REQUEST_PANICS.increment();
    tracing::error!(panic_id = id, "a request panicked; the panic itself is logged above");
    Handled::Answer(ErrorBody::server(format!("Internal error {id}; the server's log has more")).into())
}

/// Polls, and turns a panic into a response.
fn poll_caught<F: Future<Output = Handled>>(slot: &mut Slot<F>, context: &mut Context<'_>) -> Poll<Handled> {
    let poll = || match slot.as_mut().as_pin_mut() {
        Some(work) => work.poll(context),
        None => Poll::Pending,
    };
    catch_unwind(AssertUnwindSafe(poll)).unwrap_or_else(|_| Poll::Ready(panicked()))
}

/// What becomes of a request in progress.
enum Turn<F> {
    /// It is no longer in progress.
    Done {
        done: Done,
        /// Its box, if it can be reused.
        slot: Option<Slot<F>>,
        /// Whether it had a task of its own.
        was_elsewhere: bool,
    },
    /// It yields again and again.
    Yields(Running<F>),
}

impl<F> Running<F> {
    fn done(&mut self, outcome: Outcome) -> Turn<F> {
        let (slot, was_elsewhere) = match std::mem::replace(&mut self.work, Work::Moving) {
            Work::Here(mut slot) => {
                slot.set(None);
                (Some(slot), false)
            }
            Work::Elsewhere(_) => (None, true),
            Work::Waiting(_) | Work::Moving => (None, false),
        };
        let done = Done {
            stream: self.stream,
            bytes: self.bytes,
            place_bytes: self.place_bytes,
            outcome,
        };
        Turn::Done {
            done,
            slot,
            was_elsewhere,
        }
    }
}

impl<F: Future<Output = Handled> + Send + 'static> Future for Running<F> {
    type Output = Turn<F>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let poll = match &mut this.work {
            Work::Here(slot) => poll_caught(slot, context),
            Work::Elsewhere(handle) => Pin::new(handle)
                .poll(context)
                .map(|joined| joined.unwrap_or_else(|_| panicked())),
            Work::Waiting(waiting) => {
                return waiting
                    .as_mut()
                    .poll(context)
                    .map(|waited| this.done(Outcome::Waited(waited)));
            }
            Work::Moving => Poll::Pending,
        };
        if let Poll::Ready(handled) = poll {
            return Poll::Ready(this.done(Outcome::Handled(handled)));
        }
        this.polls += 1;
        if this.polls > POLLS_MAX && matches!(this.work, Work::Here(_)) {
            return Poll::Ready(Turn::Yields(Self {
                work: std::mem::replace(&mut this.work, Work::Moving),
                polls: 0,
                ..*this
            }));
        }
        Poll::Pending
    }
}

/// The requests in progress.
pub(super) struct InFlight<F> {
    running: FuturesUnordered<Running<F>>,
    spare: Vec<Slot<F>>,
    /// One bit for each stream in use, grown as far as the client's ids go.
    busy: Vec<u64>,
    bytes: usize,
    /// Bytes of the entries of requests in progress.
    places_bytes: usize,
    /// Requests that have tasks of their own.
    elsewhere: usize,
    /// Most of these.
    elsewhere_max: usize,
}

/// The word of a stream's bit and the bit.
fn bit(stream: i16) -> (usize, u64) {
    let stream = stream.cast_unsigned();
    (usize::from(stream / 64), 1 << (stream % 64))
}

impl<F: Future<Output = Handled> + Send + 'static> InFlight<F> {
    pub(super) fn new() -> Self {
        Self {
            running: FuturesUnordered::new(),
            spare: Vec::new(),
            busy: Vec::new(),
            bytes: 0,
            places_bytes: 0,
            elsewhere: 0,
            elsewhere_max: Handle::try_current().map_or(1, |runtime| runtime.metrics().num_workers()),
        }
    }

    /// Their number.
    pub(super) fn len(&self) -> usize {
        self.running.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Bytes of their bodies.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Memory of the requests in progress: their bodies and their entries.
    pub(super) const fn holds(&self) -> usize {
        self.bytes + self.places_bytes
    }

    /// Memory kept for later requests.
    pub(super) const fn spare_bytes(&self) -> usize {
        self.spare.len() * size_of::<F>()
    }

    /// Releases the memory kept for later requests.
    pub(super) fn shrink(&mut self) {
        self.spare = Vec::new();
    }

    /// Whether a request on this stream is in progress.
    pub(super) fn is_busy(&self, stream: i16) -> bool {
        let (word, bit) = bit(stream);
        self.busy.get(word).is_some_and(|bits| bits & bit != 0)
    }

    /// Begins a request; returns its outcome if there was nothing to wait for. `work` makes the future here, where it
    /// will be polled, because it is some kilobytes large and every move of it is a copy.
    pub(super) fn begin(
        &mut self,
        context: &mut Context<'_>,
        stream: i16,
        bytes: usize,
        work: impl FnOnce() -> F,
    ) -> Option<Handled> {
        let mut slot = self.spare.pop().unwrap_or_else(|| Box::pin(None));
        slot.set(Some(work()));
        match poll_caught(&mut slot, context) {
            Poll::Ready(handled) => {
                slot.set(None);
                self.spare.push(slot);
                Some(handled)
            }
            Poll::Pending => {
                self.push(stream, bytes, size_of::<F>(), Work::Here(slot));
                None
            }
        }
    }

    /// Keeps a request until there is memory for its answer.
    pub(super) fn wait(&mut self, stream: i16, share: Arc<Share>, postponed: Postponed) {
        let Postponed {
            header,
            body,
            answer_bytes,
        } = postponed;
        let bytes = body.len();
        let waiting = async move {
            let granted = share.reserve(answer_bytes).await;
            Waited { header, body, granted }
        };
        let place_bytes = size_of_val(&waiting);
        self.push(stream, bytes, place_bytes, Work::Waiting(Box::pin(waiting)));
    }

    fn push(&mut self, stream: i16, bytes: usize, work_bytes: usize, work: Work<F>) {
        let place_bytes = work_bytes + PLACE_BYTES;
        self.bytes += bytes;
        self.places_bytes += place_bytes;
        let (word, bit) = bit(stream);
        if self.busy.len() <= word {
            self.busy.resize(word + 1, 0);
        }
        if let Some(bits) = self.busy.get_mut(word) {
            *bits |= bit;
        }
        self.running.push(Running {
            work,
            stream,
            bytes,
            place_bytes,
            polls: 0,
        });
    }

    /// The next request that has finished; `Ready(None)` means none is in progress.
    pub(super) fn poll_done(&mut self, context: &mut Context<'_>) -> Poll<Option<Done>> {
        let (done, slot, was_elsewhere) = loop {
            match self.running.poll_next_unpin(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(Turn::Yields(running))) => self.go_on(running),
                Poll::Ready(Some(Turn::Done {
                    done,
                    slot,
                    was_elsewhere,
                })) => break (done, slot, was_elsewhere),
            }
        };
        self.elsewhere -= usize::from(was_elsewhere);
        self.bytes -= done.bytes;
        self.places_bytes -= done.place_bytes;
        let (word, bit) = bit(done.stream);
        if let Some(bits) = self.busy.get_mut(word) {
            *bits &= !bit;
        }
        if let Some(slot) = slot
            && self.spare.len() < SPARE_MAX
        {
            self.spare.push(slot);
        }
        Poll::Ready(Some(done))
    }

    /// Goes on with a request that yields again and again: in a task of its own if there is one left for it.
    fn go_on(&mut self, mut running: Running<F>) {
        running.work = match running.work {
            Work::Here(mut slot) if self.elsewhere < self.elsewhere_max => {
                self.elsewhere += 1;
                let work = std::future::poll_fn(move |context| poll_caught(&mut slot, context));
                Work::Elsewhere(tokio::spawn(work))
            }
            work => work,
        };
        // Polled at its next turn, whether or not it was woken meanwhile.
        self.running.push(running);
    }

    /// Drops the requests that wait for memory, because their client has disconnected. Returns the bytes of their
    /// bodies.
    pub(super) fn give_up_waiting(&mut self) -> Vec<usize> {
        let mut given_up = Vec::new();
        for running in std::mem::take(&mut self.running) {
            if matches!(running.work, Work::Waiting(_)) {
                self.bytes -= running.bytes;
                self.places_bytes -= running.place_bytes;
                given_up.push(running.bytes);
            } else {
                self.running.push(running);
            }
        }
        given_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_connection_has_no_more_tasks_than_there_are_threads() {
        let mut in_flight = InFlight::new();
        let scan = || async {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            Handled::Answer(ErrorBody::server("done").into())
        };
        std::future::poll_fn(|context| {
            for stream in 0..50 {
                assert!(in_flight.begin(context, stream, 1, scan).is_none());
            }
            Poll::Ready(())
        })
        .await;
        let (mut ended, mut elsewhere) = (0, 0);
        loop {
            let done = std::future::poll_fn(|context| {
                let done = in_flight.poll_done(context);
                elsewhere = elsewhere.max(in_flight.elsewhere);
                done
            });
            match done.await {
                Some(_) => ended += 1,
                None => break,
            }
        }
        assert_eq!((ended, elsewhere, in_flight.elsewhere), (50, 2, 0));
        assert_eq!((in_flight.bytes(), in_flight.holds()), (0, 0));
    }
}
