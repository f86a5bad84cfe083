//! One connection: one task that reads, answers and writes.
//!
//! ```text
//! socket ─► Decoder ─► handshake::step ─┬─► answer ───────────────────────────────► Encoder ─► socket
//!                                       └─► InFlight: polled at once, or later ─►
//! ```
//! Each pass of the task collects the responses that are ready, begins the requests that have arrived, writes and
//! reads, until none of these makes progress. So ready responses are sent in one write, and nothing is locked.
//!
//! Back pressure. Nothing is begun or read while more than `queued_bytes_max` wait for the client, nor while memory is
//! short ([`helenus_base::budget`]) and a response waits or many requests are in progress. Requests in progress continue: one
//! that is not polled would keep its locks. If there are too many, further ones wait in a bounded queue (OPTIONS is
//! answered before them), then in the socket. A client that reads nothing for `slow_client` is disconnected.
//!
//! When the server stops, requests in progress are answered, further input is discarded, and FIN is sent (closing.rs).

mod memory;

use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::Handled;
use super::admission::Admission;
use super::auth::Authenticator;
use super::closing::{self, End};
use super::events::Subscription;
use super::handshake::{self, Phase, Step};
use super::held::Held;
use super::incoming::Incoming;
use super::inflight::{Done, InFlight, Outcome};
use super::limits::Limits;
use super::session::{Session, Startup};
use helenus_base::budget::{Budget, Share};
use helenus_base::clock::Clock;
use helenus_base::metrics;
use helenus_base::metrics::turn::MeasuredPoll;
use helenus_schema::profile::Profile;
use helenus_types::wire::Header;
use helenus_types::wire::Version;
use helenus_types::wire::frame::{Decoder, Encoder, Fatal, Inbound};
use helenus_types::wire::response::{Body, ErrorBody, Event, Response, version_refusal};

/// State that all connections of a server share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) limits: Limits,
    pub(super) authenticator: Arc<Authenticator>,
    pub(super) profile: Profile,
    pub(super) admission: Arc<Admission>,
    pub(super) budget: Arc<Budget>,
    /// For large requests while they are read.
    pub(super) requests_pool: Arc<Budget>,
    pub(super) clock: Clock,
}

/// Bytes per read; more once a client sends so much.
const READ_BYTES_MIN: usize = 4 * 1024;
const READ_BYTES_MAX: usize = 64 * 1024;

/// Most requests begun before their responses are written.
const BEGUN_PER_WRITE: usize = 128;

/// Most requests begun before other connections get to run.
const BEGUN_PER_TURN: usize = 1024;

/// Interval at which a connection checks whether its client still reads and writes.
const TICK: Duration = Duration::from_secs(5);

/// Serves one connection until it ends. `work` makes the future of a request; it is polled here.
pub(super) async fn serve<S, F>(
    socket: S,
    session: Arc<Session>,
    share: Arc<Share>,
    shared: Arc<Shared>,
    drain: watch::Receiver<bool>,
    login_deadline: Instant,
    work: impl Fn(Header, Bytes) -> F,
) -> End
where
    S: AsyncRead + AsyncWrite + Unpin,
    F: Future<Output = Handled> + Send + 'static,
{
    let mut connection = Connection {
        socket,
        decoder: Decoder::new(shared.limits.body_bytes_max_before_login),
        encoder: Encoder::new(),
        phase: Phase::Fresh,
        version: Version::HIGHEST,
        session,
        in_flight: InFlight::new(),
        waiting: VecDeque::new(),
        waiting_bytes: 0,
        subscription: None,
        throw_on_overload: false,
        login: None,
        reading: Reading::Open,
        sends_still: false,
        half_closed: false,
        read_bytes: READ_BYTES_MIN,
        unflushed: false,
        pages: 0,
        rows: 0,
        watch: Watch::default(),
        incoming: Incoming::None,
        held: Held::new(share),
        shared,
    };
    let leaving = Arc::clone(&connection.session);
    let drained = async move {
        let mut drain = drain;
        tokio::select! {
            // An error means that the server has ended, which ends the connection as well.
            _ = drain.wait_for(|drain| *drain) => End::Drained,
            () = leaving.evicted() => End::Evicted,
        }
    };
    let mut drained = pin!(drained);
    let mut timer = pin!(sleep_until(login_deadline));
    let end = std::future::poll_fn(|context| connection.turn(context, &work, drained.as_mut(), timer.as_mut())).await;
    let Connection {
        in_flight,
        shared,
        socket,
        sends_still,
        encoder,
        decoder,
        mut held,
        ..
    } = connection;
    drop((encoder, decoder));
    held.leave(in_flight.holds());
    closing::close(socket, end, sends_still, shared.limits.drain).await;
    closing::finish(in_flight, &shared.admission).await;
    drop(held);
    end
}

/// Whether more requests are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// Yes.
    Open,
    /// No: requests in progress are answered, then the connection ends.
    Ending(End),
}

/// The state at the last tick.
#[derive(Debug, Default)]
struct Watch {
    received: u64,
    sent: u64,
    seen: (u64, u64),
    still_reading: Duration,
    still_writing: Duration,
}

struct Connection<S, F> {
    socket: S,
    decoder: Decoder,
    encoder: Encoder,
    phase: Phase,
    version: Version,
    session: Arc<Session>,
    shared: Arc<Shared>,
    in_flight: InFlight<F>,
    /// Requests that wait until fewer are in progress.
    waiting: VecDeque<(Header, Bytes)>,
    waiting_bytes: usize,
    subscription: Option<Subscription>,
    throw_on_overload: bool,
    /// A login that is being checked, or whose answer is delayed.
    login: Option<(BoxFuture<'static, Step>, Header)>,
    reading: Reading,
    /// Whether the server stops and the client has sent requests that are no longer begun.
    sends_still: bool,
    /// The client has closed its sending half.
    half_closed: bool,
    read_bytes: usize,
    unflushed: bool,
    /// Answered, but not counted yet.
    pages: u64,
    rows: u64,
    watch: Watch,
    held: Held,
    /// Memory for the large request that has arrived in part.
    incoming: Incoming,
}

impl<S, F> Connection<S, F>
where
    S: AsyncRead + AsyncWrite + Unpin,
    F: Future<Output = Handled> + Send + 'static,
{
    fn turn(
        &mut self,
        context: &mut Context<'_>,
        work: &impl Fn(Header, Bytes) -> F,
        drained: Pin<&mut impl Future<Output = End>>,
        timer: Pin<&mut Sleep>,
    ) -> Poll<End> {
        let clock = self.shared.clock.clone();
        let measured = MeasuredPoll::enter(|| clock.monotonic());
        if self.reading == Reading::Open
            && let Poll::Ready(end) = drained.poll(context)
        {
            self.reading = Reading::Ending(end);
            self.sends_still = self.decoder.has_more();
        }
        if self.session.is_cut() {
            return Poll::Ready(End::Cut);
        }
        if let Some(end) = self.poll_timer(context, timer) {
            return Poll::Ready(end);
        }
        let mut begun = 0;
        loop {
            let mut moved = self.take_events(context);
            moved |= self.take_done(context, work);
            moved |= self.take_login(context, work);
            let started = self.begin_some(context, work);
            begun += started;
            moved |= started > 0;
            // Counted before the responses are written, so that a client which has its response finds it counted.
            measured.flush();
            self.count_rows();
            match self.write_some(context) {
                Ok(wrote) => moved |= wrote,
                Err(_) => return Poll::Ready(End::Broken),
            }
            if let Reading::Ending(end) = self.reading
                && self.in_flight.is_empty()
                && self.waiting.is_empty()
                && self.login.is_none()
                && self.encoder.queued() == 0
                && !self.unflushed
            {
                return Poll::Ready(end);
            }
            match self.read_some(context) {
                Ok(read) => moved |= read,
                Err(_) => return Poll::Ready(End::Broken),
            }
            self.record_held();
            if !moved {
                return Poll::Pending;
            }
            if begun >= BEGUN_PER_TURN {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
    }

    /// Checks the deadlines: that of the login, then those of every tick.
    fn poll_timer(&mut self, context: &mut Context<'_>, mut timer: Pin<&mut Sleep>) -> Option<End> {
        while timer.as_mut().poll(context).is_ready() {
            if self.phase != Phase::Ready {
                return Some(End::LoginDeadline);
            }
            let now = timer.deadline();
            timer.as_mut().reset(now.max(Instant::now()) + TICK);
            let watch = &mut self.watch;
            let quiet = watch.received == watch.seen.0 && self.in_flight.is_empty();
            watch.still_reading = if quiet {
                watch.still_reading + TICK
            } else {
                Duration::ZERO
            };
            if quiet && self.encoder.queued() == 0 {
                self.encoder.shrink();
                self.decoder.shrink();
                self.in_flight.shrink();
                self.read_bytes = READ_BYTES_MIN;
                self.held.record_exactly(0);
            }
            let stuck = watch.sent == watch.seen.1 && self.encoder.queued() > 0;
            watch.still_writing = if stuck {
                watch.still_writing + TICK
            } else {
                Duration::ZERO
            };
            watch.seen = (watch.received, watch.sent);
            if watch.still_writing >= self.shared.limits.slow_client {
                metrics::CONNECTIONS_SLOW.increment();
                return Some(End::Slow);
            }
            if self.incoming.is_slow(self.shared.limits.slow_client) {
                metrics::CONNECTIONS_SLOW.increment();
                return Some(End::Slow);
            }
            if watch.still_reading >= self.shared.limits.idle {
                return Some(End::Idle);
            }
        }
        None
    }

    fn take_events(&mut self, context: &mut Context<'_>) -> bool {
        let mut moved = false;
        while self.phase == Phase::Ready && !self.is_full() {
            let Some(subscription) = &mut self.subscription else {
                break;
            };
            match subscription.receiver.poll_recv(context) {
                Poll::Pending => break,
                Poll::Ready(Some(event)) => {
                    moved = true;
                    self.encoder
                        .write(self.version, -1, &Body::Event(Event::clone(&event)).into());
                }
                Poll::Ready(None) => {
                    // Events arrived faster than this client read them.
                    metrics::CONNECTIONS_SLOW.increment();
                    self.subscription = None;
                    self.reading = Reading::Ending(End::Slow);
                    moved = true;
                }
            }
        }
        moved
    }

    fn take_done(&mut self, context: &mut Context<'_>, work: &impl Fn(Header, Bytes) -> F) -> bool {
        let mut moved = false;
        // Even if much output waits for the client: a request that is not polled would keep its locks and snapshot.
        while let Poll::Ready(Some(done)) = self.in_flight.poll_done(context) {
            moved = true;
            let Done {
                stream, bytes, outcome, ..
            } = done;
            self.shared.admission.end(bytes);
            match outcome {
                Outcome::Handled(handled) => self.handled(context, stream, handled),
                Outcome::Waited(waited) => self.begin_again(context, waited, work),
            }
        }
        moved
    }

    /// Answers a login that is decided and no longer delayed.
    fn take_login(&mut self, context: &mut Context<'_>, work: &impl Fn(Header, Bytes) -> F) -> bool {
        let Some((deciding, header)) = &mut self.login else {
            return false;
        };
        let (Poll::Ready(step), header) = (deciding.as_mut().poll(context), *header) else {
            return false;
        };
        self.login = None;
        self.carry_out(context, header, Bytes::new(), step, work);
        true
    }

    /// Counts the responses since the last call in one step, because there are often many.
    fn count_rows(&mut self) {
        if self.pages > 0 {
            metrics::PAGES.add(std::mem::take(&mut self.pages));
            metrics::ROWS.add(std::mem::take(&mut self.rows));
        }
    }

    /// Queues the response to a request.
    fn answer(&mut self, context: &mut Context<'_>, stream: i16, response: &Response) {
        match &response.body {
            // The event of a schema change is sent before the response to its statement.
            Body::SchemaChange(_) => {
                self.take_events(context);
            }
            Body::Error(error) => metrics::count_error(error.code().number()),
            Body::Rows(rows) => {
                self.pages += 1;
                self.rows += u64::from(rows.row_count);
            }
            _ => {}
        }
        self.encoder.write(self.version, stream, response);
        // Reported before the response is sent, and its reservation with it.
        self.record_held();
    }

    /// Begins requests that have arrived, within the limits; returns how many were taken.
    fn begin_some(&mut self, context: &mut Context<'_>, work: &impl Fn(Header, Bytes) -> F) -> usize {
        let mut begun = 0;
        while begun < BEGUN_PER_WRITE && !self.is_held_back() && self.login.is_none() {
            if self.may_begin()
                && let Some((header, body)) = self.waiting.pop_front()
            {
                self.waiting_bytes -= body.len();
                self.begin(context, header, body, work);
                begun += 1;
                continue;
            }
            if self.waiting_bytes >= self.shared.limits.waiting_bytes_max
                // After a half-close, whole requests in the decoder are still answered.
                || matches!(self.reading, Reading::Ending(end) if end != End::Closed)
            {
                break;
            }
            match self.decoder.next_inbound() {
                Ok(None) => break,
                Ok(Some(inbound)) => self.take(context, inbound, work),
                Err(fatal) => self.lose(&fatal),
            }
            begun += 1;
        }
        if begun > 0 {
            metrics::REQUESTS.add(begun as u64);
            self.session.count_requests(begun as u64);
        }
        begun
    }

    /// Whether another request may be begun.
    fn may_begin(&self) -> bool {
        let limits = &self.shared.limits;
        // An idle connection may always begin one request, whatever the others use: otherwise it could starve.
        self.in_flight.is_empty()
            || (self.in_flight.len() < limits.in_flight_max
                && self.in_flight.bytes() < limits.in_flight_bytes_max
                && self.shared.admission.in_flight_bytes() < limits.in_flight_bytes_total_max)
    }

    fn take(&mut self, context: &mut Context<'_>, inbound: Inbound, work: &impl Fn(Header, Bytes) -> F) {
        let (header, body) = match inbound {
            Inbound::Envelope(header, body) => (header, body),
            Inbound::Unreadable(header, malformed) => {
                metrics::PROTOCOL_ERRORS.increment();
                let error = ErrorBody::protocol(malformed.to_string());
                return self.answer(context, header.stream, &error.into());
            }
            Inbound::TooBig(header) => return self.too_big(context, &header),
        };
        self.version = header.version;
        if header.stream < 0 {
            metrics::PROTOCOL_ERRORS.increment();
            let error = ErrorBody::protocol(format!("Invalid stream id {}: it is negative", header.stream));
            return self.answer(context, header.stream, &error.into());
        }
        let step = handshake::step(
            &mut self.phase,
            &self.shared.authenticator,
            self.shared.profile,
            self.session.client().ip(),
            self.session.certificate(),
            &header,
            &body,
        );
        self.carry_out(context, header, body, step, work);
    }

    fn carry_out(
        &mut self,
        context: &mut Context<'_>,
        header: Header,
        body: Bytes,
        step: Step,
        work: &impl Fn(Header, Bytes) -> F,
    ) {
        match step {
            Step::Later(after, step) => {
                let at_its_turn = async move {
                    sleep(after).await;
                    *step
                };
                self.login = Some((Box::pin(at_its_turn), header));
            }
            Step::Pending(deciding) => self.login = Some((deciding, header)),
            Step::Dispatch => self.dispatch(context, header, body, work),
            Step::Reply(response) => self.answer(context, header.stream, &response),
            Step::Refuse(response) => {
                self.answer(context, header.stream, &response);
                self.reading = Reading::Ending(End::Refused);
            }
            Step::Negotiated(response, negotiated, options) => {
                let version = header.version;
                self.session.set_startup(Startup { version, options });
                self.answer(context, header.stream, &response);
                self.decoder.negotiated(header.version, negotiated.compression);
                self.encoder.negotiated(header.version, negotiated.compression);
                self.throw_on_overload = negotiated.throw_on_overload;
                self.raise_limit();
            }
            Step::LoggedIn(response, user) => {
                self.phase = Phase::Ready;
                self.session.set_user(&user);
                self.answer(context, header.stream, &response);
                self.raise_limit();
            }
            Step::Register(kinds) => {
                let events_max = self.shared.limits.events_max;
                let subscription = self
                    .subscription
                    .get_or_insert_with(|| self.session.events().subscribe(events_max));
                subscription.register(&kinds);
                self.answer(context, header.stream, &Body::Ready.into());
            }
        }
    }

    fn raise_limit(&mut self) {
        if self.phase == Phase::Ready {
            self.session.set_ready();
            self.decoder.limit(self.shared.limits.body_bytes_max);
        }
    }

    fn too_big(&mut self, context: &mut Context<'_>, header: &Header) {
        metrics::PROTOCOL_ERRORS.increment();
        self.version = header.version;
        let (length, limit) = (header.length, self.decoder.body_bytes_max());
        let text = format!("Request is too big: length {length} exceeds maximum allowed length {limit}.");
        if self.phase == Phase::Ready {
            return self.answer(context, header.stream, &ErrorBody::invalid(text).into());
        }
        self.answer(context, header.stream, &ErrorBody::protocol(text).into());
        self.reading = Reading::Ending(End::Lost);
    }

    fn dispatch(&mut self, context: &mut Context<'_>, header: Header, body: Bytes, work: &impl Fn(Header, Bytes) -> F) {
        if self.in_flight.is_busy(header.stream) {
            metrics::PROTOCOL_ERRORS.increment();
            let error = ErrorBody::protocol(format!("Stream id {} is in use by another request", header.stream));
            return self.answer(context, header.stream, &error.into());
        }
        if self.may_begin() && self.waiting.is_empty() {
            return self.begin(context, header, body, work);
        }
        if self.throw_on_overload {
            metrics::REQUESTS_OVERLOADED.increment();
            let error = ErrorBody::overloaded("Too many requests of this connection are in work");
            return self.answer(context, header.stream, &error.into());
        }
        self.waiting_bytes += body.len();
        self.waiting.push_back((header, body));
    }

    fn begin(&mut self, context: &mut Context<'_>, header: Header, body: Bytes, work: &impl Fn(Header, Bytes) -> F) {
        let (stream, bytes) = (header.stream, body.len());
        match self.in_flight.begin(context, stream, bytes, || work(header, body)) {
            Some(handled) => self.handled(context, stream, handled),
            None => self.shared.admission.begin(bytes),
        }
    }

    /// The input is invalid: reports the reason if possible, and ends the connection.
    fn lose(&mut self, fatal: &Fatal) {
        metrics::PROTOCOL_ERRORS.increment();
        self.reading = Reading::Ending(End::Lost);
        let (version, stream, text) = match fatal {
            Fatal::Version(byte) => return self.encoder.raw(&version_refusal(*byte)),
            Fatal::Checksum => {
                metrics::CHECKSUM_MISMATCHES.increment();
                return;
            }
            Fatal::VersionChanged { from, to, stream } => {
                let (from_name, to_name) = (from.name(), to.name());
                let text = format!(
                    "Invalid message version. Got {to_name} but previous messages on this connection had version {from_name}"
                );
                (*from, *stream, text)
            }
            Fatal::Length {
                length,
                version,
                stream,
            } => (*version, *stream, format!("Invalid frame length {length}")),
            Fatal::Segments(what) => (self.version, 0, format!("Invalid segments: {what}")),
        };
        self.encoder.write(version, stream, &ErrorBody::protocol(text).into());
    }

    /// Writes queued bytes, as many as the socket takes.
    fn write_some(&mut self, context: &mut Context<'_>) -> std::io::Result<bool> {
        let mut moved = false;
        while self.encoder.queued() > 0 {
            match Pin::new(&mut self.socket).poll_write(context, self.encoder.flush()) {
                Poll::Pending => break,
                Poll::Ready(Ok(0)) => return Err(std::io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(count)) => {
                    self.encoder.sent(count);
                    self.watch.sent += count as u64;
                    metrics::BYTES_SENT.add(count as u64);
                    self.unflushed = true;
                    moved = true;
                }
                Poll::Ready(Err(error)) => return Err(error),
            }
        }
        if self.unflushed {
            match Pin::new(&mut self.socket).poll_flush(context) {
                Poll::Pending => {}
                Poll::Ready(Ok(())) => self.unflushed = false,
                Poll::Ready(Err(error)) => return Err(error),
            }
        }
        Ok(moved)
    }

    fn may_read(&self) -> bool {
        // While a login waits nothing is taken from the decoder, so nothing may be put in.
        self.reading == Reading::Open
            && !self.is_held_back()
            && self.login.is_none()
            && self.waiting_bytes < self.shared.limits.waiting_bytes_max
    }

    /// Reads and discards input: a client that is still sending may not read before it has sent everything.
    fn discard_some(&mut self, context: &mut Context<'_>) -> std::io::Result<bool> {
        if self.half_closed {
            return Ok(false);
        }
        let mut sink = [0; READ_BYTES_MIN];
        let mut sink = ReadBuf::new(&mut sink);
        match Pin::new(&mut self.socket).poll_read(context, &mut sink) {
            Poll::Pending => Ok(false),
            Poll::Ready(Ok(())) if sink.filled().is_empty() => {
                self.half_closed = true;
                Ok(false)
            }
            Poll::Ready(Ok(())) => {
                self.sends_still = true;
                Ok(true)
            }
            Poll::Ready(Err(error)) => Err(error),
        }
    }

    /// Reads input.
    fn read_some(&mut self, context: &mut Context<'_>) -> std::io::Result<bool> {
        if self.reading == Reading::Ending(End::Drained) {
            return self.discard_some(context);
        }
        if !self.may_read() {
            return Ok(false);
        }
        match self
            .incoming
            .poll(context, &self.shared.requests_pool, self.decoder.awaited_bytes())
        {
            Poll::Pending => return Ok(false),
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(_)) => {
                self.refuse_incoming(context);
                return Ok(true);
            }
        }
        self.decoder.buffer().reserve(self.read_bytes);
        let room = self.read_bytes;
        let read = pin!(self.socket.read_buf(self.decoder.buffer()));
        match read.poll(context) {
            Poll::Pending => Ok(false),
            Poll::Ready(Ok(0)) => {
                // Requests that have arrived are still answered: the client may have closed only its half.
                self.reading = Reading::Ending(End::Closed);
                Ok(true)
            }
            Poll::Ready(Ok(count)) => {
                self.watch.received += count as u64;
                metrics::BYTES_RECEIVED.add(count as u64);
                if count >= room {
                    self.read_bytes = READ_BYTES_MAX;
                }
                Ok(true)
            }
            Poll::Ready(Err(error)) => Err(error),
        }
    }
}
