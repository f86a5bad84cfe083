//! Nodes of one process over simulated sockets, for tests: links with delay, loss and cuts, from a seed.
//!
//! ```text
//! Endpoint ─ Half ── chunk at 12.3 ms, chunk at 12.9 ms … ──► Half ─ Endpoint
//! ```
//! The connections are the same as over TCP, their bytes too; only the sockets are simulated. All time is tokio's, so that
//! it can be paused; all chance comes from one generator. On a runtime of one thread a run repeats itself.
//!
//! As with TCP, bytes are not lost but late: a chunk that is lost is sent again, and what a cut link holds arrives after it
//! is mended, unless the connection is given up before. The end of a process is seen as the end of its sockets, but not
//! through a cut link.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use super::endpoint::{Dial, Endpoint};
use super::handshake::{Formats, Identity, Nonce, Secret, Secrets};
use super::limits::Settings;
use super::link::BoxSocket;
use super::transport::{Answering, PeerAddress, PeerName};

/// Bytes that a simulated socket takes before its reader has read them.
const SOCKET_BYTES_MAX: usize = 256 * 1024;

/// How much later a lost chunk arrives: TCP's shortest wait before it sends again.
const SENT_AGAIN_AFTER: Duration = Duration::from_millis(200);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One direction between two nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wire {
    /// The shortest time that bytes take.
    pub delay_min: Duration,
    /// The longest.
    pub delay_max: Duration,
    /// The share of chunks that are lost at first, from 0 to 1.
    pub loss: f64,
    /// Whether nothing passes.
    pub is_cut: bool,
}

impl Default for Wire {
    /// A local network: 50 to 200 µs, no loss.
    fn default() -> Self {
        Self {
            delay_min: Duration::from_micros(50),
            delay_max: Duration::from_micros(200),
            loss: 0.0,
            is_cut: false,
        }
    }
}

/// The nodes of a process and the wires between them. Clones share them.
#[derive(Clone, Debug)]
pub struct Network(Arc<Mutex<State>>);

struct State {
    rng: fastrand::Rng,
    nodes: BTreeMap<PeerAddress, Endpoint>,
    /// From, to: wires that are not the default.
    wires: BTreeMap<(PeerAddress, PeerAddress), Wire>,
    default: Wire,
    pipes: Vec<Weak<Pipe>>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut form = formatter.debug_struct("Network");
        form.field("nodes", &self.nodes.keys()).finish_non_exhaustive()
    }
}

impl Default for Network {
    /// A network of the seed 0.
    fn default() -> Self {
        Self::new(fastrand::Rng::with_seed(0))
    }
}

impl Network {
    /// A network without nodes, with good wires.
    #[must_use]
    pub fn new(rng: fastrand::Rng) -> Self {
        Self(Arc::new(Mutex::new(State {
            rng,
            nodes: BTreeMap::new(),
            wires: BTreeMap::new(),
            default: Wire::default(),
            pipes: Vec::new(),
        })))
    }

    /// Adds a node of the cluster `simulated` with the default settings, or replaces the one at this address.
    #[must_use]
    pub fn join(&self, name: PeerName, address: PeerAddress, answering: Arc<dyn Answering>) -> Endpoint {
        let who = Identity {
            name,
            cluster: "simulated".to_owned(),
            formats: Formats { oldest: 1, newest: 1 },
        };
        let secrets = Secrets {
            current: Secret::new([7; 32]),
            other: None,
        };
        self.join_as(who, secrets, Settings::default(), address, answering)
    }

    /// Adds a node, or replaces the one at this address.
    #[must_use]
    pub fn join_as(
        &self,
        who: Identity,
        secrets: Secrets,
        settings: Settings,
        address: PeerAddress,
        answering: Arc<dyn Answering>,
    ) -> Endpoint {
        let dial = Arc::new(Dialler {
            network: self.downgrade(),
            from: address.clone(),
        });
        let network = Arc::downgrade(&self.0);
        let nonces = Arc::new(move || {
            let mut nonce: Nonce = [0; 32];
            if let Some(state) = network.upgrade() {
                lock(&state).rng.fill(&mut nonce);
            }
            nonce
        });
        let endpoint = Endpoint::new(who, secrets, settings, dial, answering, nonces);
        let replaced = lock(&self.0).nodes.insert(address, endpoint.clone());
        if let Some(replaced) = replaced {
            replaced.kill();
        }
        endpoint
    }

    /// Removes a node: as if its process were killed.
    pub fn leave(&self, address: &PeerAddress) {
        // A variable of its own: killing takes the lock again.
        let node = lock(&self.0).nodes.remove(address);
        if let Some(node) = node {
            node.kill();
        }
    }

    /// Changes the wires that were not changed by themselves.
    pub fn set_all(&self, wire: Wire) {
        lock(&self.0).default = wire;
        self.wake_readers();
    }

    /// Changes one direction.
    pub fn set(&self, from: &PeerAddress, to: &PeerAddress, wire: Wire) {
        lock(&self.0).wires.insert((from.clone(), to.clone()), wire);
        self.wake_readers();
    }

    /// Cuts one direction.
    pub fn cut(&self, from: &PeerAddress, to: &PeerAddress) {
        let wire = lock(&self.0).wire(from, to);
        self.set(from, to, Wire { is_cut: true, ..wire });
    }

    /// Mends one direction.
    pub fn mend(&self, from: &PeerAddress, to: &PeerAddress) {
        let wire = lock(&self.0).wire(from, to);
        self.set(from, to, Wire { is_cut: false, ..wire });
    }

    /// A socket that speaks by hand.
    #[cfg(test)]
    pub(super) async fn socket(&self, from: &PeerAddress, to: &PeerAddress) -> BoxSocket {
        let dialler = Dialler {
            network: self.downgrade(),
            from: from.clone(),
        };
        dialler.dial(to.clone()).await.expect("the node is there")
    }

    fn downgrade(&self) -> WeakNetwork {
        WeakNetwork(Arc::downgrade(&self.0))
    }

    fn wake_readers(&self) {
        let pipes = lock(&self.0).pipes.clone();
        for pipe in pipes.iter().filter_map(Weak::upgrade) {
            pipe.wake_reader();
        }
    }

    fn is_cut(&self, from: &PeerAddress, to: &PeerAddress) -> bool {
        lock(&self.0).wire(from, to).is_cut
    }

    fn delay(&self, from: &PeerAddress, to: &PeerAddress) -> Duration {
        lock(&self.0).delay(from, to)
    }

    fn pipe(&self, from: &PeerAddress, to: &PeerAddress) -> Arc<Pipe> {
        let pipe = Arc::new(Pipe {
            network: self.downgrade(),
            from: from.clone(),
            to: to.clone(),
            flow: Mutex::default(),
        });
        let mut state = lock(&self.0);
        state.pipes.retain(|pipe| pipe.strong_count() > 0);
        state.pipes.push(Arc::downgrade(&pipe));
        pipe
    }
}

impl State {
    fn wire(&self, from: &PeerAddress, to: &PeerAddress) -> Wire {
        let key = (from.clone(), to.clone());
        self.wires.get(&key).copied().unwrap_or(self.default)
    }

    fn delay(&mut self, from: &PeerAddress, to: &PeerAddress) -> Duration {
        let wire = self.wire(from, to);
        let range = wire.delay_max.saturating_sub(wire.delay_min);
        let mut delay = wire.delay_min + range.mul_f64(self.rng.f64());
        while wire.loss > self.rng.f64() && delay < 10 * SENT_AGAIN_AFTER {
            delay += SENT_AGAIN_AFTER;
        }
        delay
    }
}

/// A network that may be gone: its nodes do not keep it.
#[derive(Clone)]
struct WeakNetwork(Weak<Mutex<State>>);

impl WeakNetwork {
    fn upgrade(&self) -> Option<Network> {
        self.0.upgrade().map(Network)
    }

    fn is_cut(&self, from: &PeerAddress, to: &PeerAddress) -> bool {
        self.upgrade().is_some_and(|network| network.is_cut(from, to))
    }

    fn delay(&self, from: &PeerAddress, to: &PeerAddress) -> Duration {
        self.upgrade().map_or(Duration::ZERO, |network| network.delay(from, to))
    }
}

/// Opens simulated sockets.
struct Dialler {
    network: WeakNetwork,
    from: PeerAddress,
}

impl Dial for Dialler {
    fn dial(&self, to: PeerAddress) -> BoxFuture<'static, io::Result<BoxSocket>> {
        let (network, from) = (self.network.clone(), self.from.clone());
        async move {
            let there_and_back = network.delay(&from, &to) + network.delay(&to, &from);
            tokio::time::sleep(there_and_back).await;
            if network.is_cut(&from, &to) || network.is_cut(&to, &from) {
                std::future::pending::<()>().await;
            }
            let network = network.upgrade().ok_or(io::ErrorKind::ConnectionRefused)?;
            let node = lock(&network.0).nodes.get(&to).cloned();
            let node = node.ok_or(io::ErrorKind::ConnectionRefused)?;
            let (forth, back) = (network.pipe(&from, &to), network.pipe(&to, &from));
            let far = Half::new(Arc::clone(&forth), Arc::clone(&back));
            if !node.admit(async move { Ok(Box::new(far) as BoxSocket) }) {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            Ok(Box::new(Half::new(back, forth)) as BoxSocket)
        }
        .boxed()
    }
}

/// One direction of a simulated socket.
struct Pipe {
    network: WeakNetwork,
    from: PeerAddress,
    to: PeerAddress,
    flow: Mutex<Flow>,
}

#[derive(Default)]
struct Flow {
    /// When each chunk arrives.
    chunks: VecDeque<(Instant, Bytes)>,
    bytes: usize,
    /// When the writer closed it, as the reader sees it.
    end: Option<Instant>,
    has_reader_gone: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Pipe {
    /// When something that is sent now arrives: not before what was sent earlier.
    fn arrival(&self, flow: &Flow) -> Instant {
        let at = Instant::now() + self.network.delay(&self.from, &self.to);
        flow.chunks.back().map_or(at, |(last, _)| at.max(*last))
    }

    fn wake_reader(&self) {
        let waker = lock(&self.flow).reader.take();
        waker.into_iter().for_each(Waker::wake);
    }
}

/// One end of a simulated socket.
struct Half {
    reads: Arc<Pipe>,
    writes: Arc<Pipe>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Half {
    const fn new(reads: Arc<Pipe>, writes: Arc<Pipe>) -> Self {
        Self {
            reads,
            writes,
            timer: None,
        }
    }

    /// Waits until something arrives.
    fn wait(&mut self, until: Instant, context: &mut Context<'_>) -> Poll<()> {
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        if timer.deadline() != until {
            timer.as_mut().reset(until);
        }
        timer.as_mut().poll(context)
    }
}

impl AsyncRead for Half {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let pipe = Arc::clone(&self.reads);
        let is_cut = pipe.network.is_cut(&pipe.from, &pipe.to);
        loop {
            let until = {
                let mut flow = lock(&pipe.flow);
                flow.reader = Some(context.waker().clone());
                if is_cut {
                    return Poll::Pending;
                }
                let now = Instant::now();
                let end = flow.end;
                match (flow.chunks.front_mut(), end) {
                    (Some((at, chunk)), _) if *at <= now => {
                        let taken = chunk.split_to(chunk.len().min(buffer.remaining()));
                        buffer.put_slice(&taken);
                        let is_empty = !chunk.has_remaining();
                        flow.bytes -= taken.len();
                        if is_empty {
                            flow.chunks.pop_front();
                        }
                        flow.writer.take().into_iter().for_each(Waker::wake);
                        return Poll::Ready(Ok(()));
                    }
                    (Some((at, _)), _) => *at,
                    (None, Some(end)) if end <= now => return Poll::Ready(Ok(())),
                    (None, Some(end)) => end,
                    (None, None) => return Poll::Pending,
                }
            };
            std::task::ready!(self.wait(until, context));
        }
    }
}

impl AsyncWrite for Half {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let pipe = &self.writes;
        let is_cut = pipe.network.is_cut(&pipe.from, &pipe.to);
        let mut flow = lock(&pipe.flow);
        if flow.has_reader_gone && !is_cut {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let space = SOCKET_BYTES_MAX - flow.bytes;
        if space == 0 {
            flow.writer = Some(context.waker().clone());
            return Poll::Pending;
        }
        let chunk = bytes.get(..space).unwrap_or(bytes);
        let at = pipe.arrival(&flow);
        flow.chunks.push_back((at, Bytes::copy_from_slice(chunk)));
        flow.bytes += chunk.len();
        flow.reader.take().into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(chunk.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut flow = lock(&self.writes.flow);
        let end = self.writes.arrival(&flow);
        flow.end.get_or_insert(end);
        flow.reader.take().into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(()))
    }
}

impl Drop for Half {
    fn drop(&mut self) {
        let mut flow = lock(&self.writes.flow);
        let end = self.writes.arrival(&flow);
        flow.end.get_or_insert(end);
        flow.reader.take().into_iter().for_each(Waker::wake);
        drop(flow);
        let mut flow = lock(&self.reads.flow);
        flow.has_reader_gone = true;
        (flow.chunks, flow.bytes) = (VecDeque::new(), 0);
        flow.writer.take().into_iter().for_each(Waker::wake);
    }
}
