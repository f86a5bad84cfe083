//! The asking end of a connection: questions go out, pieces of answers come in.
//!
//! ```text
//! ask()          ─► queue ─► encoded ─► handed to the socket
//!                   │         │          └ broken: Broken
//!                   └─────────┴─ broken: NotSent. Late or dropped in the queue: never sent
//! ```
//! **Sent** means that the socket took the whole message. Before that the other side cannot have read it, since its
//! segment is not complete. A question that is late counts as sent as soon as it is encoded.
//!
//! **Windows.** Each answer may send [`WINDOW_BYTES`] at any time; its question has paid for them. Beyond these the pieces
//! on their way or not taken come from a pool. What is taken is granted again, unless another answer waits. An answer
//! whose next piece is larger than its window asks for it (`Want`), and is served in order. If it waits too long, answers
//! that nobody takes are broken.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::time::{Instant, Interval, MissedTickBehavior, timeout_at};

use super::envelope::{Envelope, Header, Kind};
use super::limits::{
    DECODED_BYTES_MAX, ENCODED_BYTES_MAX, GRANTED_BYTES_MAX, QUESTIONS_BYTES_MAX, RETURNED_BYTES_MIN, Settings,
    WIDE_WINDOW_BYTES, WINDOW_BYTES, cost, weight,
};
use super::link::Link;
use super::transport::{Answers, AskError, BODY_BYTES_MAX, Cause, Incoming, PeerName, Question};

/// How far a question has come.
#[derive(Debug)]
enum Phase {
    Queued(Question),
    /// Encoded; sent when the socket has taken this many bytes since the connection began.
    Encoded(u64),
}

/// A question that is not over for both sides.
#[derive(Debug)]
struct Stream {
    phase: Phase,
    deadline: Instant,
    /// Bytes of [`QUESTIONS_BYTES_MAX`].
    cost: usize,
    is_wide: bool,
    pieces: VecDeque<Bytes>,
    /// How it ended, for the asker. `None` means that more may come.
    end: Option<Result<(), AskError>>,
    waker: Option<Waker>,
    /// Bytes that the other side may still send.
    outstanding: usize,
    /// Bytes of `pieces`.
    untaken: usize,
    /// Bytes taken and not granted again yet.
    unreturned: usize,
    /// Bytes of [`GRANTED_BYTES_MAX`].
    held: usize,
    /// When the first of `pieces` arrived.
    since: Option<Instant>,
    /// The other side sends nothing more.
    is_peer_done: bool,
    /// The asker takes nothing more.
    is_asker_done: bool,
}

/// What the task of the connection has to send.
#[derive(Debug)]
enum Order {
    Question(u32),
    Cancel(u32),
    Grant(u32, usize),
}

/// An answer that waits for a larger window.
#[derive(Debug)]
struct Want {
    stream: u32,
    bytes: usize,
    since: Instant,
}

#[derive(Debug)]
struct State {
    orders: VecDeque<Order>,
    streams: BTreeMap<u32, Stream>,
    last_stream: u32,
    /// Why no more questions are taken.
    closed: Option<Cause>,
    granted: usize,
    wants: VecDeque<Want>,
    /// Whether the connection's task sleeps and must be woken for an order.
    is_idle: bool,
    task: Option<Waker>,
}

/// The asking end, as askers share it with the connection's task.
#[derive(Debug)]
pub(super) struct Asking {
    peer: PeerName,
    budget: Semaphore,
    state: Mutex<State>,
}

/// The connection takes no more questions; the question is returned.
#[derive(Debug)]
pub(super) struct Closed {
    pub(super) question: Question,
    pub(super) cause: Cause,
}

/// Why a question was not queued.
#[derive(Debug)]
pub(super) enum NotQueued {
    Closed(Closed),
    Late,
}

impl State {
    /// Counts what a stream holds of the pool.
    fn settle(&mut self, id: u32) {
        if let Some(stream) = self.streams.get_mut(&id) {
            let held = stream.outstanding + stream.untaken + stream.unreturned;
            let held = held.saturating_sub(WINDOW_BYTES);
            self.granted = self.granted - stream.held + held;
            stream.held = held;
        }
    }

    /// Grants windows to those that wait, in order.
    fn serve_wants(&mut self) {
        while let Some(want) = self.wants.front() {
            let (id, bytes) = (want.stream, want.bytes);
            let others = self.wants.len() > 1;
            let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.is_open()) else {
                self.wants.pop_front();
                continue;
            };
            stream.unreturned = 0;
            let grant = bytes.saturating_sub(stream.outstanding);
            let after = |grant: usize| {
                let held = stream.outstanding + stream.untaken + grant;
                self.granted - stream.held + held.saturating_sub(WINDOW_BYTES)
            };
            if after(grant) > GRANTED_BYTES_MAX {
                self.settle(id);
                return;
            }
            // A second piece is on its way while the first is taken, as long as there is space.
            let is_ample = !others && after(grant + bytes) <= GRANTED_BYTES_MAX / 2;
            let grant = if is_ample { grant + bytes } else { grant };
            stream.outstanding += grant;
            self.orders.push_back(Order::Grant(id, grant));
            self.settle(id);
            self.wants.pop_front();
        }
    }

    /// Removes a stream that is over for both sides; returns what its question paid.
    fn remove_if_over(&mut self, id: u32) -> usize {
        let is_over = |stream: &Stream| stream.is_peer_done && stream.is_asker_done;
        if !self.streams.get(&id).is_some_and(is_over) {
            return 0;
        }
        let Some(stream) = self.streams.remove(&id) else {
            return 0;
        };
        self.granted -= stream.held;
        self.serve_wants();
        stream.cost
    }

    /// Ends a stream for the asker and wakes it; pieces that arrived can still be taken.
    fn end(&mut self, id: u32, end: Result<(), AskError>, is_peer_done: bool) -> Option<Waker> {
        let stream = self.streams.get_mut(&id)?;
        stream.end.get_or_insert(end);
        if is_peer_done {
            (stream.is_peer_done, stream.outstanding, stream.unreturned) = (true, 0, 0);
        }
        let waker = stream.waker.take();
        self.settle(id);
        self.serve_wants();
        waker
    }

    /// The asker takes nothing more of a stream.
    fn drop_pieces(&mut self, id: u32) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.is_asker_done = true;
            stream.pieces.clear();
            (stream.untaken, stream.unreturned, stream.waker) = (0, 0, None);
        }
        self.settle(id);
        self.serve_wants();
    }

    /// The waker of the task, if it has to be woken for the orders.
    fn wake(&mut self) -> Option<Waker> {
        if self.is_idle && !self.orders.is_empty() {
            self.is_idle = false;
            return self.task.take();
        }
        None
    }

    fn next_stream(&mut self) -> u32 {
        loop {
            self.last_stream = self.last_stream.wrapping_add(1);
            // 0 is the connection itself.
            if self.last_stream != 0 && !self.streams.contains_key(&self.last_stream) {
                return self.last_stream;
            }
        }
    }
}

impl Stream {
    fn is_open(&self) -> bool {
        !self.is_peer_done && !self.is_asker_done
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl Asking {
    pub(super) fn new(peer: PeerName) -> Self {
        Self {
            peer,
            budget: Semaphore::new(QUESTIONS_BYTES_MAX),
            state: Mutex::new(State {
                orders: VecDeque::new(),
                streams: BTreeMap::new(),
                last_stream: 0,
                closed: None,
                granted: 0,
                wants: VecDeque::new(),
                is_idle: false,
                task: None,
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it takes questions.
    pub(super) fn is_open(&self) -> bool {
        self.lock().closed.is_none()
    }

    /// Bytes that it holds of its two bounds.
    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> [usize; 2] {
        [
            QUESTIONS_BYTES_MAX - self.budget.available_permits(),
            self.lock().granted,
        ]
    }

    /// Queues a question, waiting for space.
    pub(super) async fn ask(self: &Arc<Self>, question: Question, deadline: Instant) -> Result<Answers, NotQueued> {
        let cost = cost(&question.body);
        let permits = u32::try_from(cost).unwrap_or(u32::MAX);
        let permit = match self.budget.try_acquire_many(permits) {
            Ok(permit) => Ok(permit),
            Err(tokio::sync::TryAcquireError::Closed) => Err(None),
            Err(tokio::sync::TryAcquireError::NoPermits) => {
                match timeout_at(deadline, self.budget.acquire_many(permits)).await {
                    Ok(acquired) => acquired.map_err(|_| None),
                    Err(_) => Err(Some(NotQueued::Late)),
                }
            }
        };
        let permit = match permit {
            Ok(permit) => permit,
            Err(Some(late)) => return Err(late),
            Err(None) => {
                let cause = self.lock().closed.clone().unwrap_or(Cause::Closed);
                return Err(NotQueued::Closed(Closed { question, cause }));
            }
        };
        let mut state = self.lock();
        if let Some(cause) = state.closed.clone() {
            return Err(NotQueued::Closed(Closed { question, cause }));
        }
        permit.forget();
        let is_wide = state.wants.is_empty() && state.granted <= GRANTED_BYTES_MAX / 2;
        let id = state.next_stream();
        let stream = Stream {
            phase: Phase::Queued(question),
            deadline,
            cost,
            is_wide,
            pieces: VecDeque::new(),
            end: None,
            waker: None,
            outstanding: if is_wide { WIDE_WINDOW_BYTES } else { WINDOW_BYTES },
            untaken: 0,
            unreturned: 0,
            held: 0,
            since: None,
            is_peer_done: false,
            is_asker_done: false,
        };
        state.streams.insert(id, stream);
        state.settle(id);
        state.orders.push_back(Order::Question(id));
        let waker = state.wake();
        drop(state);
        wake(waker);
        let asked = Arc::new(Asked {
            asking: Arc::clone(self),
            id,
        });
        Ok(Answers::new(asked, self.peer.clone(), deadline))
    }

    /// Takes orders to encode, about as many bytes as asked for. Returns whether some are left.
    fn take_orders(&self, bytes_max: usize, batch: &mut Vec<(Header, Bytes)>) {
        let now = Instant::now();
        let mut bytes = 0;
        let mut state = self.lock();
        while bytes < bytes_max {
            let Some(order) = state.orders.pop_front() else { break };
            let (header, body) = match order {
                Order::Cancel(id) => (Header::new(Kind::Cancel, id), Bytes::new()),
                Order::Grant(id, grant) => {
                    let number = u32::try_from(grant).unwrap_or(u32::MAX);
                    let header = Header::new(Kind::Grant, id);
                    (Header { number, ..header }, Bytes::new())
                }
                Order::Question(id) => {
                    // `None`: it was withdrawn.
                    let Some(stream) = state.streams.get_mut(&id) else {
                        continue;
                    };
                    let left = stream.deadline.saturating_duration_since(now);
                    let phase = std::mem::replace(&mut stream.phase, Phase::Encoded(u64::MAX));
                    let Phase::Queued(question) = phase else {
                        continue;
                    };
                    let header = Header {
                        of: question.kind,
                        flag: stream.is_wide,
                        number: micros(left),
                        ..Header::new(Kind::Question, id)
                    };
                    (header, question.body)
                }
            };
            bytes += weight(&body);
            batch.push((header, body));
        }
    }

    /// Notes where the encoded questions end.
    fn note_encoded(&self, ends: &[(u32, u64)]) {
        if ends.is_empty() {
            return;
        }
        let mut state = self.lock();
        for (id, end) in ends {
            if let Some(stream) = state.streams.get_mut(id) {
                stream.phase = Phase::Encoded(*end);
            }
        }
    }

    /// The connection is broken: every question ends, as far as it had come.
    fn close(&self, cause: &Cause, sent: u64) {
        let mut wakers = Vec::new();
        let mut state = self.lock();
        state.closed.get_or_insert_with(|| cause.clone());
        state.orders.clear();
        state.wants.clear();
        for stream in state.streams.values_mut() {
            let error = match stream.phase {
                Phase::Encoded(end) if end <= sent => AskError::Broken(cause.clone()),
                Phase::Encoded(_) | Phase::Queued(_) => AskError::NotSent(cause.clone()),
            };
            stream.end.get_or_insert(Err(error));
            stream.is_peer_done = true;
            // Its body is needed no more.
            stream.phase = Phase::Encoded(u64::MAX);
            wakers.extend(stream.waker.take());
        }
        state.streams.retain(|_, stream| !stream.is_asker_done);
        drop(state);
        self.budget.close();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Handles a message of the other side.
    fn take(&self, envelope: Envelope, now: Instant) -> Result<(), Cause> {
        let Envelope { header, body } = envelope;
        let id = header.stream;
        let mut state = self.lock();
        if header.kind == Kind::Leaving {
            return {
                self.leave(state, id);
                Ok(())
            };
        }
        if header.kind == Kind::Pong {
            return Ok(());
        }
        let known = |stream: &&mut Stream| !stream.is_peer_done && !matches!(stream.phase, Phase::Queued(_));
        let Some(stream) = state.streams.get_mut(&id).filter(known) else {
            return Err(Cause::Damaged("an answer to no question"));
        };
        let waker = match header.kind {
            Kind::Piece => {
                let weight = weight(&body);
                let left = stream.outstanding.checked_sub(weight);
                stream.outstanding = left.ok_or(Cause::Damaged("a piece beyond its window"))?;
                if !stream.is_asker_done && stream.end.is_none() {
                    stream.untaken += weight;
                    stream.since.get_or_insert(now);
                    stream.pieces.push_back(body);
                }
                let waker = stream.waker.take();
                if header.flag {
                    state.end(id, Ok(()), true);
                } else {
                    state.settle(id);
                }
                waker
            }
            Kind::End => state.end(id, Ok(()), true),
            Kind::Broken => state.end(id, Err(AskError::Broken(Cause::Abandoned)), true),
            Kind::Want => {
                let bytes = usize::try_from(header.number).unwrap_or(usize::MAX);
                if bytes > weight(&[]) + BODY_BYTES_MAX {
                    return Err(Cause::Damaged("a window above the limit"));
                }
                let since = now;
                let is_new = !state.wants.iter().any(|want| want.stream == id);
                if is_new {
                    state.wants.push_back(Want {
                        stream: id,
                        bytes,
                        since,
                    });
                }
                state.serve_wants();
                None
            }
            _ => return Err(Cause::Damaged("a message of the wrong direction")),
        };
        let paid = state.remove_if_over(id);
        drop(state);
        self.pay_back(paid);
        wake(waker);
        Ok(())
    }

    fn pay_back(&self, paid: usize) {
        if paid > 0 {
            self.budget.add_permits(paid);
        }
    }

    /// The other side answers no question after `last`: those were not executed.
    fn leave(&self, mut state: MutexGuard<'_, State>, last: u32) {
        state.closed.get_or_insert(Cause::Leaving);
        let is_after = |id: u32| id != last && id.wrapping_sub(last) < 1 << 31;
        let after: Vec<u32> = state.streams.keys().copied().filter(|id| is_after(*id)).collect();
        let mut paid = 0;
        let mut wakers = Vec::new();
        for id in after {
            wakers.extend(state.end(id, Err(AskError::NotSent(Cause::Leaving)), true));
            paid += state.remove_if_over(id);
        }
        state.orders.retain(|order| !matches!(order, Order::Question(_)));
        drop(state);
        self.pay_back(paid);
        self.budget.close();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Breaks answers that are not taken, if another has waited too long for their memory.
    fn break_slow(&self, now: Instant, slow_max: Duration) {
        let mut state = self.lock();
        let is_slow = |since: Instant| now.saturating_duration_since(since) >= slow_max;
        if !state.wants.front().is_some_and(|want| is_slow(want.since)) {
            return;
        }
        let slow = |stream: &Stream| stream.held > 0 && stream.since.is_some_and(is_slow);
        let streams = state.streams.iter().filter(|(_, stream)| slow(stream));
        let slow: Vec<u32> = streams.map(|(id, _)| *id).collect();
        let mut wakers = Vec::new();
        for id in slow {
            if let Some(stream) = state.streams.get_mut(&id) {
                stream.pieces.clear();
                (stream.untaken, stream.unreturned, stream.since) = (0, 0, None);
                stream.end = Some(Err(AskError::Broken(Cause::TooSlow)));
                wakers.extend(stream.waker.take());
                if !stream.is_peer_done {
                    state.orders.push_back(Order::Cancel(id));
                }
            }
            state.settle(id);
        }
        state.serve_wants();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Whether the task may sleep: there are no orders that it could encode.
    fn sleeps(&self, context: &Context<'_>, can_encode: bool) -> bool {
        let mut state = self.lock();
        if can_encode && !state.orders.is_empty() {
            return false;
        }
        state.is_idle = can_encode;
        if !state.task.as_ref().is_some_and(|task| task.will_wake(context.waker())) {
            state.task = Some(context.waker().clone());
        }
        true
    }

    /// Whether the other side is leaving and nothing is open any more.
    fn is_left(&self) -> bool {
        let state = self.lock();
        state.closed.is_some() && state.streams.values().all(|stream| stream.is_peer_done)
    }
}

/// A time left, in microseconds, as an envelope has it.
pub(super) fn micros(left: Duration) -> u32 {
    u32::try_from(left.as_micros()).unwrap_or(u32::MAX)
}

/// The asker's end of one stream.
struct Asked {
    asking: Arc<Asking>,
    id: u32,
}

impl Incoming for Asked {
    fn poll_next(&self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, AskError>> {
        let mut state = self.asking.lock();
        // A stream is removed only after its end was taken or it was given up.
        let Some(stream) = state.streams.get_mut(&self.id) else {
            return Poll::Ready(Ok(None));
        };
        if let Some(piece) = stream.pieces.pop_front() {
            let weight = weight(&piece);
            stream.untaken -= weight;
            stream.since = stream.since.filter(|_| !stream.pieces.is_empty());
            let is_open = stream.end.is_none();
            if is_open {
                stream.unreturned += weight;
            }
            if state.wants.is_empty() {
                self.grant_again(&mut state);
                state.settle(self.id);
            } else {
                if let Some(stream) = state.streams.get_mut(&self.id) {
                    stream.unreturned = 0;
                }
                state.settle(self.id);
                state.serve_wants();
            }
            let waker = state.wake();
            drop(state);
            wake(waker);
            return Poll::Ready(Ok(Some(piece)));
        }
        let Some(end) = stream.end.clone() else {
            if !stream
                .waker
                .as_ref()
                .is_some_and(|waker| waker.will_wake(context.waker()))
            {
                stream.waker = Some(context.waker().clone());
            }
            return Poll::Pending;
        };
        stream.is_asker_done = true;
        let paid = state.remove_if_over(self.id);
        let waker = state.wake();
        drop(state);
        self.asking.pay_back(paid);
        wake(waker);
        Poll::Ready(end.map(|()| None))
    }

    fn give_up(&self) -> bool {
        let mut state = self.asking.lock();
        let Some(stream) = state.streams.get_mut(&self.id) else {
            return true;
        };
        let is_queued = matches!(stream.phase, Phase::Queued(_));
        // Withdrawn: the task finds no question. Its answer cannot have begun.
        stream.is_peer_done |= is_queued;
        let must_cancel = !stream.is_peer_done && stream.end.is_none();
        state.drop_pieces(self.id);
        if must_cancel {
            state.orders.push_back(Order::Cancel(self.id));
        }
        let paid = state.remove_if_over(self.id);
        let waker = state.wake();
        drop(state);
        self.asking.pay_back(paid);
        wake(waker);
        !is_queued
    }
}

impl Asked {
    /// Grants what was taken, when it is worth a message.
    fn grant_again(&self, state: &mut State) {
        let Some(stream) = state.streams.get_mut(&self.id) else {
            return;
        };
        if stream.unreturned >= RETURNED_BYTES_MIN {
            let grant = std::mem::take(&mut stream.unreturned);
            stream.outstanding += grant;
            state.orders.push_back(Order::Grant(self.id, grant));
        }
    }
}

/// The task of an asking end.
pub(super) struct AskingTask {
    link: Link,
    asking: Arc<Asking>,
    settings: Settings,
    ticks: Interval,
    is_heard: bool,
    /// Whether what was read may hold more envelopes.
    has_more: bool,
    missed: u32,
    /// Why the connection ended. `None` means that it did not, or that the task was aborted.
    cause: Option<Cause>,
    batch: Vec<(Header, Bytes)>,
    ends: Vec<(u32, u64)>,
}

/// Pings at an interval, which a late task does not make up for.
pub(super) fn ticks(every: Duration) -> Interval {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

impl AskingTask {
    pub(super) fn new(link: Link, asking: Arc<Asking>, settings: Settings) -> Self {
        Self {
            link,
            asking,
            ticks: ticks(settings.ping_every),
            settings,
            is_heard: true,
            has_more: false,
            missed: 0,
            cause: None,
            batch: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Runs until the connection is over.
    pub(super) async fn run(mut self) -> Cause {
        let over = std::future::poll_fn(|context| match self.poll_rounds(context) {
            Ok(()) => Poll::Pending,
            Err(cause) => Poll::Ready(cause),
        });
        let cause = over.await;
        self.cause = Some(cause.clone());
        cause
    }

    /// Works until there is nothing to do.
    fn poll_rounds(&mut self, context: &mut Context<'_>) -> Result<(), Cause> {
        loop {
            // What has arrived is read before the silence is judged: this task may have been stopped itself.
            let mut is_busy = self.read(context)?;
            if self.ticks.poll_tick(context).is_ready() {
                self.tick()?;
                is_busy = true;
            }
            self.encode();
            if let Poll::Ready(written) = self.link.poll_write(context) {
                written?;
            }
            let can_encode = self.link.encoder.queued() < ENCODED_BYTES_MAX;
            if !is_busy && self.asking.sleeps(context, can_encode) {
                return Ok(());
            }
        }
    }

    fn read(&mut self, context: &mut Context<'_>) -> Result<bool, Cause> {
        if !self.has_more {
            let Poll::Ready(read) = self.link.poll_read(context) else {
                return Ok(false);
            };
            read?;
        }
        self.is_heard = true;
        let now = Instant::now();
        let mut bytes = 0;
        while bytes < DECODED_BYTES_MAX {
            let Some(envelope) = self.link.next_envelope()? else {
                self.has_more = false;
                return Ok(true);
            };
            bytes += weight(&envelope.body);
            let ends_it = matches!(
                envelope.header.kind,
                Kind::Leaving | Kind::Piece | Kind::End | Kind::Broken
            );
            self.asking.take(envelope, now)?;
            if ends_it && self.asking.is_left() {
                return Err(Cause::Leaving);
            }
        }
        self.has_more = true;
        Ok(true)
    }

    fn tick(&mut self) -> Result<(), Cause> {
        self.missed = if self.is_heard { 0 } else { self.missed + 1 };
        if self.missed > self.settings.pings_missed_max {
            return Err(Cause::Silent);
        }
        self.is_heard = false;
        self.asking.break_slow(Instant::now(), self.settings.slow_max);
        if self.link.encoder.queued() < ENCODED_BYTES_MAX {
            let number = micros(self.settings.ping_every);
            let ping = Header::new(Kind::Ping, 0);
            self.link.encoder.write(Header { number, ..ping }, &[]);
        }
        Ok(())
    }

    fn encode(&mut self) {
        let space = ENCODED_BYTES_MAX.saturating_sub(self.link.encoder.queued());
        if space == 0 {
            return;
        }
        self.asking.take_orders(space, &mut self.batch);
        for (header, body) in self.batch.drain(..) {
            self.link.encoder.write(header, &body);
            if header.kind == Kind::Question {
                self.ends.push((header.stream, self.link.encoder.written()));
            }
        }
        self.asking.note_encoded(&self.ends);
        self.ends.clear();
    }
}

impl Drop for AskingTask {
    /// Also when the task is aborted or panics: no asker waits for a connection that is gone.
    fn drop(&mut self) {
        let cause = self.cause.clone().unwrap_or(Cause::Stopping);
        self.asking.close(&cause, self.link.encoder.sent_total());
    }
}
