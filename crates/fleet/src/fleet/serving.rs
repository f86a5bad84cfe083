//! The answering end of a connection: questions come in, are executed on its task, and pieces of answers go out.
//!
//! A question is polled at once, on the connection's own task. Most end in that poll, and share one write with others that
//! arrived with them. One that yields again and again is moved to a task of its own, so that it runs on another core.
//! A cancelled or late question is dropped, as are all when the connection breaks.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, CatchUnwind};
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::task::JoinHandle;
use tokio::time::{Instant, Interval};

use super::asking::ticks;
use super::envelope::{Envelope, Header, Kind};
use super::limits::{
    DECODED_BYTES_MAX, ENCODED_BYTES_MAX, QUESTIONS_BYTES_MAX, Settings, WIDE_WINDOW_BYTES, WINDOW_BYTES, cost, weight,
};
use super::link::Link;
use super::transport::{AnswerSink, Answering, BODY_BYTES_MAX, Cause, Gone, Outgoing, PeerName};

/// Polls after which a question gets a task of its own.
const POLLS_MAX: u32 = 8;

/// The range of intervals at which an asker may ping.
const PING_MIN: Duration = Duration::from_millis(5);
const PING_MAX: Duration = Duration::from_secs(60);

/// What the task has to send.
#[derive(Debug)]
enum Reply {
    Piece(u32, Bytes, bool),
    End(u32),
    Broken(u32),
    Want(u32, usize),
    Leaving(u32),
}

/// An answer that is not complete.
#[derive(Debug)]
struct Stream {
    answer: Arc<Answer>,
    /// Bytes of [`QUESTIONS_BYTES_MAX`].
    cost: usize,
    deadline: Instant,
    /// Bytes that may be sent.
    credit: usize,
    /// Whether more was asked for, and did not come yet.
    is_wanting: bool,
    /// Waits for credit.
    sender: Option<Waker>,
    /// Waits until the asker is gone.
    watcher: Option<Waker>,
    /// The future that answers.
    work: Option<Waker>,
}

#[derive(Debug)]
struct State {
    replies: VecDeque<Reply>,
    streams: BTreeMap<u32, Stream>,
    cost: usize,
    /// The last question that was taken.
    last_stream: u32,
    is_leaving: bool,
    is_closed: bool,
    is_idle: bool,
    task: Option<Waker>,
}

/// The answering end, as answers share it with the connection's task.
#[derive(Debug)]
pub(super) struct Serving {
    state: Mutex<State>,
}

const OPEN: u8 = 0;
const ENDED: u8 = 1;
const GONE: u8 = 2;

/// The answer to one question.
#[derive(Debug)]
struct Answer {
    serving: Arc<Serving>,
    id: u32,
    fate: AtomicU8,
}

fn wake_all(wakers: impl IntoIterator<Item = Waker>) {
    wakers.into_iter().for_each(Waker::wake);
}

impl Stream {
    fn wakers(&mut self) -> impl Iterator<Item = Waker> {
        [self.sender.take(), self.watcher.take(), self.work.take()]
            .into_iter()
            .flatten()
    }
}

impl State {
    /// Removes a stream whose answer is over, for this reason.
    fn remove(&mut self, id: u32, fate: u8) -> Option<Stream> {
        let stream = self.streams.remove(&id)?;
        stream.answer.fate.store(fate, Ordering::Release);
        self.cost -= stream.cost;
        Some(stream)
    }

    fn reply(&mut self, reply: Reply) -> Option<Waker> {
        self.replies.push_back(reply);
        if self.is_idle {
            self.is_idle = false;
            return self.task.take();
        }
        None
    }
}

impl Serving {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                replies: VecDeque::new(),
                streams: BTreeMap::new(),
                cost: 0,
                last_stream: 0,
                is_leaving: false,
                is_closed: false,
                is_idle: false,
                task: None,
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes no more questions: those that arrive from now on are not executed, and their askers are told so. The
    /// connection ends with the last answer.
    pub(super) fn leave(&self) {
        let mut state = self.lock();
        if std::mem::replace(&mut state.is_leaving, true) {
            return;
        }
        let last = state.last_stream;
        let waker = state.reply(Reply::Leaving(last));
        drop(state);
        wake_all(waker);
    }

    /// Ends the connection at once.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let mut wakers: Vec<Waker> = state.task.take().into_iter().collect();
        let ids: Vec<u32> = state.streams.keys().copied().collect();
        for id in ids {
            if let Some(mut stream) = state.remove(id, GONE) {
                wakers.extend(stream.wakers());
            }
        }
        state.replies.clear();
        drop(state);
        wake_all(wakers);
    }

    /// Whether the connection has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Bytes of questions and of pieces that it holds.
    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> [usize; 2] {
        let state = self.lock();
        let bytes = |reply: &Reply| match reply {
            Reply::Piece(_, piece, _) => weight(piece),
            Reply::End(_) | Reply::Broken(_) | Reply::Want(..) | Reply::Leaving(_) => 0,
        };
        [state.cost, state.replies.iter().map(bytes).sum()]
    }

    /// Gives up an answer that its asker no longer waits for.
    fn drop_answer(&self, id: u32) {
        let mut state = self.lock();
        let Some(mut stream) = state.remove(id, GONE) else {
            return;
        };
        let waker = state.reply(Reply::Broken(id));
        drop(state);
        wake_all(stream.wakers().chain(waker));
    }

    fn grant(&self, id: u32, bytes: usize) {
        let mut state = self.lock();
        // `None`: the answer ended meanwhile.
        let Some(stream) = state.streams.get_mut(&id) else {
            return;
        };
        stream.credit = stream.credit.saturating_add(bytes);
        let waker = stream.sender.take();
        drop(state);
        wake_all(waker);
    }

    /// Takes a question. `None` means that it is not executed, since this node is leaving.
    fn begin(self: &Arc<Self>, envelope: &Envelope, now: Instant) -> Result<Option<Arc<Answer>>, Cause> {
        let Header {
            stream: id,
            number,
            flag: is_wide,
            ..
        } = envelope.header;
        let cost = cost(&envelope.body);
        let mut state = self.lock();
        if state.is_leaving || state.is_closed {
            return Ok(None);
        }
        if id == 0 || state.streams.contains_key(&id) {
            return Err(Cause::Damaged("a question on a stream in use"));
        }
        if state.cost + cost > QUESTIONS_BYTES_MAX {
            return Err(Cause::Damaged("more questions than the limit"));
        }
        let answer = Arc::new(Answer {
            serving: Arc::clone(self),
            id,
            fate: AtomicU8::new(OPEN),
        });
        let stream = Stream {
            answer: Arc::clone(&answer),
            cost,
            deadline: now + Duration::from_micros(number.into()),
            credit: if is_wide { WIDE_WINDOW_BYTES } else { WINDOW_BYTES },
            is_wanting: false,
            sender: None,
            watcher: None,
            work: None,
        };
        state.streams.insert(id, stream);
        state.cost += cost;
        state.last_stream = id;
        Ok(Some(answer))
    }

    fn take_replies(&self, bytes_max: usize, batch: &mut Vec<(Header, Bytes)>) {
        let mut bytes = 0;
        let mut state = self.lock();
        while bytes < bytes_max {
            let Some(reply) = state.replies.pop_front() else { break };
            let (header, body) = match reply {
                Reply::Piece(id, piece, flag) => {
                    let header = Header::new(Kind::Piece, id);
                    (Header { flag, ..header }, piece)
                }
                Reply::End(id) => (Header::new(Kind::End, id), Bytes::new()),
                Reply::Broken(id) => (Header::new(Kind::Broken, id), Bytes::new()),
                Reply::Leaving(last) => (Header::new(Kind::Leaving, last), Bytes::new()),
                Reply::Want(id, want) => {
                    let number = u32::try_from(want).unwrap_or(u32::MAX);
                    let header = Header::new(Kind::Want, id);
                    (Header { number, ..header }, Bytes::new())
                }
            };
            bytes += weight(&body);
            batch.push((header, body));
        }
    }

    /// Gives up answers whose askers have stopped waiting.
    fn drop_late(&self, now: Instant) {
        let late: Vec<u32> = {
            let state = self.lock();
            let late = state.streams.iter().filter(|(_, stream)| stream.deadline <= now);
            late.map(|(id, _)| *id).collect()
        };
        for id in late {
            self.drop_answer(id);
        }
    }

    /// Whether the task may sleep: there are no replies that it could encode.
    fn sleeps(&self, context: &Context<'_>, can_encode: bool) -> bool {
        let mut state = self.lock();
        if can_encode && !state.replies.is_empty() {
            return false;
        }
        state.is_idle = can_encode;
        if !state.task.as_ref().is_some_and(|task| task.will_wake(context.waker())) {
            state.task = Some(context.waker().clone());
        }
        true
    }
}

fn store(place: &mut Option<Waker>, context: &Context<'_>) {
    if !place.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
        *place = Some(context.waker().clone());
    }
}

impl Outgoing for Answer {
    fn poll_piece(
        &self,
        context: &mut Context<'_>,
        piece: &mut Option<Bytes>,
        is_last: bool,
    ) -> Poll<Result<(), Gone>> {
        let mut state = self.serving.lock();
        let Some(stream) = state.streams.get_mut(&self.id) else {
            return Poll::Ready(Err(Gone));
        };
        let Some(body) = piece.as_ref() else {
            return Poll::Ready(Ok(()));
        };
        if body.len() > BODY_BYTES_MAX {
            drop(state);
            tracing::error!(bytes = body.len(), "a piece of an answer to another node is too large");
            self.end(false);
            return Poll::Ready(Err(Gone));
        }
        let weight = weight(body);
        let Some(left) = stream.credit.checked_sub(weight) else {
            store(&mut stream.sender, context);
            let is_new = !std::mem::replace(&mut stream.is_wanting, true);
            let waker = is_new.then(|| state.reply(Reply::Want(self.id, weight))).flatten();
            drop(state);
            wake_all(waker);
            return Poll::Pending;
        };
        (stream.credit, stream.is_wanting) = (left, false);
        let mut wakers = Vec::new();
        if is_last {
            wakers.extend(
                state
                    .remove(self.id, ENDED)
                    .iter_mut()
                    .flat_map(|stream| stream.watcher.take()),
            );
        }
        if let Some(body) = piece.take() {
            wakers.extend(state.reply(Reply::Piece(self.id, body, is_last)));
        }
        drop(state);
        wake_all(wakers);
        Poll::Ready(Ok(()))
    }

    fn poll_gone(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.serving.lock();
        match state.streams.get_mut(&self.id) {
            None => Poll::Ready(()),
            Some(stream) => {
                store(&mut stream.watcher, context);
                Poll::Pending
            }
        }
    }

    fn end(&self, is_complete: bool) {
        let mut state = self.serving.lock();
        if state.remove(self.id, ENDED).is_none() {
            return;
        }
        let reply = if is_complete {
            Reply::End(self.id)
        } else {
            Reply::Broken(self.id)
        };
        let waker = state.reply(reply);
        drop(state);
        wake_all(waker);
    }
}

type Answered = CatchUnwind<AssertUnwindSafe<BoxFuture<'static, ()>>>;

/// A task of its own, which ends with its handle.
struct Moved(JoinHandle<()>);

impl Drop for Moved {
    fn drop(&mut self) {
        self.0.abort();
    }
}

enum Place {
    Here(Answered),
    There(Moved),
}

/// A question in execution.
struct Work {
    answer: Arc<Answer>,
    place: Place,
    polls: u32,
}

async fn finish(answered: Answered) {
    if answered.await.is_err() {
        tracing::error!("a question of another node panicked");
    }
}

impl Future for Work {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.answer.fate.load(Ordering::Acquire) == GONE {
            return Poll::Ready(());
        }
        self.polls = self.polls.saturating_add(1);
        let polled = match &mut self.place {
            Place::Here(answered) => answered.poll_unpin(context).map(|done| done.is_err()),
            Place::There(moved) => moved.0.poll_unpin(context).map(|_| false),
        };
        match polled {
            Poll::Ready(panicked) => {
                if panicked {
                    tracing::error!("a question of another node panicked");
                }
                return Poll::Ready(());
            }
            Poll::Pending if self.polls == POLLS_MAX => self.move_away(context),
            Poll::Pending => {}
        }
        let mut state = self.answer.serving.lock();
        if let Some(stream) = state.streams.get_mut(&self.answer.id) {
            store(&mut stream.work, context);
        } else if self.answer.fate.load(Ordering::Acquire) == GONE {
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

impl Work {
    fn move_away(&mut self, context: &Context<'_>) {
        let nothing = AssertUnwindSafe(std::future::ready(()).boxed()).catch_unwind();
        let place = std::mem::replace(&mut self.place, Place::Here(nothing));
        self.place = match place {
            Place::Here(answered) => Place::There(Moved(tokio::spawn(finish(answered)))),
            there @ Place::There(_) => there,
        };
        // Polled again, so that the end of the task wakes this one.
        context.waker().wake_by_ref();
    }
}

/// The task of an answering end.
pub(super) struct ServingTask {
    link: Link,
    serving: Arc<Serving>,
    peer: PeerName,
    answering: Arc<dyn Answering>,
    settings: Settings,
    ticks: Interval,
    /// Microseconds between pings, as the asker says.
    every_micros: u32,
    is_heard: bool,
    /// Whether what was read may hold more envelopes.
    has_more: bool,
    missed: u32,
    works: FuturesUnordered<Work>,
    batch: Vec<(Header, Bytes)>,
}

impl ServingTask {
    pub(super) fn new(
        link: Link,
        serving: Arc<Serving>,
        peer: PeerName,
        answering: Arc<dyn Answering>,
        settings: Settings,
    ) -> Self {
        Self {
            link,
            serving,
            peer,
            answering,
            ticks: ticks(settings.ping_every),
            every_micros: 0,
            settings,
            is_heard: true,
            has_more: false,
            missed: 0,
            works: FuturesUnordered::new(),
            batch: Vec::new(),
        }
    }

    /// Runs until the connection is over.
    pub(super) async fn run(mut self) -> Cause {
        let over = std::future::poll_fn(|context| match self.poll_rounds(context) {
            Ok(()) => Poll::Pending,
            Err(cause) => Poll::Ready(cause),
        });
        over.await
    }

    /// Works until there is nothing to do.
    fn poll_rounds(&mut self, context: &mut Context<'_>) -> Result<(), Cause> {
        loop {
            let mut is_busy = self.read(context)?;
            if self.ticks.poll_tick(context).is_ready() {
                self.tick()?;
                is_busy = true;
            }
            while let Poll::Ready(Some(())) = self.works.poll_next_unpin(context) {}
            let space = ENCODED_BYTES_MAX.saturating_sub(self.link.encoder.queued());
            if space > 0 {
                self.serving.take_replies(space, &mut self.batch);
                for (header, body) in self.batch.drain(..) {
                    self.link.encoder.write(header, &body);
                }
            }
            if let Poll::Ready(written) = self.link.poll_write(context) {
                written?;
            }
            // A side that leaves does not close: what the asker sent meanwhile would cut the last answers off. The asker does.
            if self.serving.is_closed() {
                return Err(Cause::Stopping);
            }
            let can_encode = self.link.encoder.queued() < ENCODED_BYTES_MAX;
            if !is_busy && self.serving.sleeps(context, can_encode) {
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
            self.take(envelope, now)?;
        }
        self.has_more = true;
        Ok(true)
    }

    /// Handles a message of the asker.
    fn take(&mut self, envelope: Envelope, now: Instant) -> Result<(), Cause> {
        let header = envelope.header;
        match header.kind {
            Kind::Question => {
                if let Some(answer) = self.serving.begin(&envelope, now)? {
                    self.answer(answer, envelope);
                }
            }
            Kind::Cancel => self.serving.drop_answer(header.stream),
            Kind::Grant => {
                let bytes = usize::try_from(header.number).unwrap_or(usize::MAX);
                self.serving.grant(header.stream, bytes);
            }
            Kind::Ping => {
                if self.every_micros != header.number {
                    self.every_micros = header.number;
                    let every = Duration::from_micros(header.number.into());
                    self.ticks = ticks(every.clamp(PING_MIN, PING_MAX));
                }
                if self.link.encoder.queued() < ENCODED_BYTES_MAX {
                    self.link.encoder.write(Header::new(Kind::Pong, 0), &[]);
                }
            }
            _ => return Err(Cause::Damaged("a message of the wrong direction")),
        }
        Ok(())
    }

    fn answer(&mut self, answer: Arc<Answer>, envelope: Envelope) {
        let within = Duration::from_micros(envelope.header.number.into());
        let sink = AnswerSink::new(Arc::clone(&answer) as Arc<dyn Outgoing>);
        let (of, body) = (envelope.header.of, envelope.body);
        let begin = || self.answering.answer(&self.peer, of, body, within, sink);
        // A panic drops the sink, which tells the asker.
        let Ok(future) = catch_unwind(AssertUnwindSafe(begin)) else {
            tracing::error!("a question of another node panicked");
            return;
        };
        self.works.push(Work {
            answer,
            place: Place::Here(AssertUnwindSafe(future).catch_unwind()),
            polls: 0,
        });
    }

    fn tick(&mut self) -> Result<(), Cause> {
        self.missed = if self.is_heard { 0 } else { self.missed + 1 };
        // One more than the asker, which breaks the connection first.
        if self.missed > self.settings.pings_missed_max + 1 {
            return Err(Cause::Silent);
        }
        self.is_heard = false;
        self.serving.drop_late(Instant::now());
        Ok(())
    }
}

impl Drop for ServingTask {
    /// Also when the task is aborted or panics: no answer waits for an asker that is gone.
    fn drop(&mut self) {
        self.serving.close();
    }
}
