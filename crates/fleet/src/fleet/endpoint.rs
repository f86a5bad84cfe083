//! A node's end of all its connections: opens them when something is asked, accepts those of others, closes them.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use super::asking::{Asking, AskingTask, NotQueued};
use super::handshake::{self, Failed, Identity, Nonce, Secrets};
use super::limits::{HANDSHAKES_MAX, PEERS_MAX, Settings};
use super::link::{BoxSocket, Link};
use super::serving::{Serving, ServingTask};
use super::transport::{
    Answering, Answers, AskError, BODY_BYTES_MAX, Cause, PeerAddress, PeerName, Question, Transport,
};

/// How often a node that leaves looks whether its answers are over.
const LEAVING_LOOK: Duration = Duration::from_millis(5);

/// Opens sockets to other nodes.
pub trait Dial: Send + Sync {
    /// Opens a socket to an address.
    fn dial(&self, to: PeerAddress) -> BoxFuture<'static, io::Result<BoxSocket>>;
}

/// Draws the random values of handshakes.
pub type Nonces = Arc<dyn Fn() -> Nonce + Send + Sync>;

/// A node's end of all its connections. Clones share it; when the last is dropped, they are closed.
#[derive(Clone)]
pub struct Endpoint(Arc<Inner>);

impl fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Endpoint")
            .field("who", &self.0.who)
            .finish_non_exhaustive()
    }
}

/// An endpoint that may be gone.
pub(super) struct WeakEndpoint(Weak<Inner>);

impl WeakEndpoint {
    pub(super) fn upgrade(&self) -> Option<Endpoint> {
        self.0.upgrade().map(Endpoint)
    }
}

struct Inner {
    who: Identity,
    secrets: Mutex<Secrets>,
    settings: Settings,
    dial: Arc<dyn Dial>,
    answering: Arc<dyn Answering>,
    nonces: Nonces,
    peers: Mutex<BTreeMap<PeerAddress, Slot>>,
    serving: Mutex<BTreeMap<PeerName, Arc<Serving>>>,
    handshakes: Semaphore,
    crew: Mutex<Crew>,
}

/// The tasks of the connections, until the end.
#[derive(Default)]
struct Crew {
    /// `None` means that the endpoint is closed.
    tasks: Option<JoinSet<()>>,
    is_leaving: bool,
}

type Opening = Shared<BoxFuture<'static, Result<Arc<Asking>, AskError>>>;

/// What is known of an address.
#[derive(Default)]
struct Slot {
    open: Option<Arc<Asking>>,
    opening: Option<Opening>,
    failed: Option<Failure>,
}

/// The last attempt to connect.
#[derive(Clone)]
struct Failure {
    error: AskError,
    pause: Duration,
    until: Instant,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Endpoint {
    /// The end of the node `who`, which opens sockets by `dial`.
    #[must_use]
    pub fn new(
        who: Identity,
        secrets: Secrets,
        settings: Settings,
        dial: Arc<dyn Dial>,
        answering: Arc<dyn Answering>,
        nonces: Nonces,
    ) -> Self {
        Self(Arc::new(Inner {
            who,
            secrets: Mutex::new(secrets),
            settings,
            dial,
            answering,
            nonces,
            peers: Mutex::default(),
            serving: Mutex::default(),
            handshakes: Semaphore::new(HANDSHAKES_MAX),
            crew: Mutex::new(Crew {
                tasks: Some(JoinSet::new()),
                is_leaving: false,
            }),
        }))
    }

    /// Changes the secrets that new connections use.
    pub fn set_secrets(&self, secrets: Secrets) {
        *lock(&self.0.secrets) = secrets;
    }

    /// Serves a connection that another node opened. `secure` makes it ready, as by a TLS handshake. Returns `false` if
    /// too many connections are being opened; this one is closed then.
    pub fn admit(&self, secure: impl Future<Output = io::Result<BoxSocket>> + Send + 'static) -> bool {
        let inner = Arc::downgrade(&self.0);
        self.0.spawn(serve(inner, secure))
    }

    /// The open connection to an address.
    #[cfg(test)]
    pub(super) fn asking_to(&self, to: &PeerAddress) -> Option<Arc<Asking>> {
        lock(&self.0.peers).get(to)?.open.clone()
    }

    /// The open connection of a peer.
    #[cfg(test)]
    pub(super) fn serving_of(&self, peer: &PeerName) -> Option<Arc<Serving>> {
        lock(&self.0.serving).get(peer).cloned()
    }

    /// A handle that does not keep the connections open.
    pub(super) fn downgrade(&self) -> WeakEndpoint {
        WeakEndpoint(Arc::downgrade(&self.0))
    }

    /// Runs a task until the endpoint is closed. Returns `false` if it is closed.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> bool {
        self.0.spawn(task)
    }

    /// Takes no more questions from others. Those that were taken are answered, for at most this long; the others are
    /// not executed, and their askers are told so. Then this node can still ask.
    pub async fn leave(&self, within: Duration) {
        lock(&self.0.crew).is_leaving = true;
        let open: Vec<Arc<Serving>> = lock(&self.0.serving).values().cloned().collect();
        for serving in &open {
            serving.leave();
        }
        let all_left = async {
            while open.iter().any(|serving| !serving.is_closed()) {
                tokio::time::sleep(LEAVING_LOOK).await;
            }
        };
        // What is late is broken.
        let _ = timeout(within, all_left).await;
        for serving in open {
            serving.close();
        }
    }

    /// Closes all connections at once, as the end of the process would.
    pub fn kill(&self) {
        drop(self.end());
    }

    fn end(&self) -> Option<JoinSet<()>> {
        lock(&self.0.peers).clear();
        lock(&self.0.crew).tasks.take()
    }

    /// Closes all connections at once, and waits for their tasks.
    pub async fn close(&self) {
        let tasks = self.end();
        if let Some(mut tasks) = tasks {
            tasks.shutdown().await;
        }
    }
}

impl Inner {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> bool {
        let mut crew = lock(&self.crew);
        let Some(tasks) = &mut crew.tasks else { return false };
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
        true
    }

    fn is_leaving(&self) -> bool {
        lock(&self.crew).is_leaving
    }

    /// The open connection to an address, or one that is opened now.
    fn connection(self: &Arc<Self>, to: &PeerAddress) -> Result<Connection, AskError> {
        let mut peers = lock(&self.peers);
        if !peers.contains_key(to) {
            if peers.len() >= PEERS_MAX {
                peers.retain(|_, slot| slot.is_used());
            }
            if peers.len() >= PEERS_MAX {
                return Err(AskError::NotSent(Cause::TooMany));
            }
            peers.insert(to.clone(), Slot::default());
        }
        let Some(slot) = peers.get_mut(to) else {
            return Err(AskError::NotSent(Cause::TooMany));
        };
        if let Some(asking) = slot.open.as_ref().filter(|asking| asking.is_open()) {
            return Ok(Connection::Open(Arc::clone(asking)));
        }
        slot.open = None;
        // One that has ended left nothing open, whatever became of its task.
        if let Some(opening) = slot.opening.as_ref().filter(|opening| opening.peek().is_none()) {
            return Ok(Connection::Opening(opening.clone()));
        }
        if let Some(failure) = slot.failed.as_ref().filter(|failure| Instant::now() < failure.until) {
            return Err(failure.error.clone());
        }
        let (report, reported) = tokio::sync::oneshot::channel();
        let opening = reported.map(|opened| opened.unwrap_or(Err(AskError::NotSent(Cause::Stopping))));
        let opening = opening.boxed().shared();
        slot.opening = Some(opening.clone());
        drop(peers);
        let (inner, to) = (Arc::downgrade(self), to.clone());
        // A task of its own: an asker that gives up leaves the attempt to the others.
        self.spawn(open(inner, to, report));
        Ok(Connection::Opening(opening))
    }

    /// Notes how an attempt ended.
    fn note(&self, to: &PeerAddress, opened: &Result<Arc<Asking>, AskError>) {
        let mut peers = lock(&self.peers);
        let Some(slot) = peers.get_mut(to) else { return };
        slot.opening = None;
        match opened {
            Ok(asking) => {
                slot.open = Some(Arc::clone(asking));
                slot.failed = None;
            }
            Err(error) => {
                let first = self.settings.pause_max / 50;
                let pause = slot.failed.as_ref().map_or(first, |failure| failure.pause * 2);
                let pause = pause.min(self.settings.pause_max);
                slot.failed = Some(Failure {
                    error: error.clone(),
                    pause,
                    until: Instant::now() + pause,
                });
            }
        }
    }

    async fn ask(self: &Arc<Self>, to: &PeerAddress, mut question: Question) -> Result<Answers, AskError> {
        let deadline = Instant::now() + question.within;
        if question.body.len() > BODY_BYTES_MAX {
            return Err(AskError::TooLarge {
                bytes: question.body.len(),
                bytes_max: BODY_BYTES_MAX,
            });
        }
        let late = AskError::TimedOut { was_sent: false };
        // A connection that was just broken is opened again, once.
        let mut is_again = false;
        loop {
            let asking = match self.connection(to)? {
                Connection::Open(asking) => asking,
                Connection::Opening(opening) => timeout_at(deadline, opening).await.map_err(|_| late.clone())??,
            };
            match asking.ask(question, deadline).await {
                Ok(answers) => return Ok(answers),
                Err(NotQueued::Late) => return Err(late),
                Err(NotQueued::Closed(closed)) if is_again => return Err(AskError::NotSent(closed.cause)),
                Err(NotQueued::Closed(closed)) => question = closed.question,
            }
            is_again = true;
        }
    }
}

impl Slot {
    fn is_used(&self) -> bool {
        self.opening.is_some() || self.open.as_ref().is_some_and(|asking| asking.is_open())
    }
}

enum Connection {
    Open(Arc<Asking>),
    Opening(Opening),
}

impl Transport for Endpoint {
    fn ask<'a>(&'a self, to: &'a PeerAddress, question: Question) -> BoxFuture<'a, Result<Answers, AskError>> {
        self.0.ask(to, question).boxed()
    }
}

/// Opens a connection, reports it, and runs its asking end.
async fn open(
    inner: Weak<Inner>,
    to: PeerAddress,
    report: tokio::sync::oneshot::Sender<Result<Arc<Asking>, AskError>>,
) {
    let Some(strong) = inner.upgrade() else { return };
    let connect_max = strong.settings.connect_max;
    let slow = AskError::NotSent(Cause::Slow);
    let opened = timeout(connect_max, dial(&strong, &to)).await.unwrap_or(Err(slow));
    let (result, task) = match opened {
        Ok((asking, task)) => (Ok(asking), Some(task)),
        Err(error) => (Err(error), None),
    };
    if let Err(AskError::Refused(refusal)) = &result {
        tracing::warn!(peer = to.as_str(), refusal = %refusal, "another node refuses this one, or this one refuses it");
    }
    strong.note(&to, &result);
    drop(strong);
    // Without a receiver no asker waits any more.
    let _ = report.send(result);
    if let Some(task) = task {
        let cause = task.run().await;
        tracing::debug!(peer = to.as_str(), cause = %cause, "the connection to another node is over");
    }
}

async fn dial(inner: &Arc<Inner>, to: &PeerAddress) -> Result<(Arc<Asking>, AskingTask), AskError> {
    let dialled = inner.dial.dial(to.clone()).await;
    let socket = dialled.map_err(|error| AskError::NotSent(Cause::Socket(error.kind())))?;
    let mut link = Link::new(socket, inner.settings.compresses);
    let secrets = lock(&inner.secrets).clone();
    let nonce = (inner.nonces)();
    let peer = handshake::ask(&mut link, &inner.who, &secrets, nonce).await?;
    let asking = Arc::new(Asking::new(peer.name));
    let task = AskingTask::new(link, Arc::clone(&asking), inner.settings.clone());
    Ok((asking, task))
}

/// Accepts a connection, and runs its answering end.
async fn serve(inner: Weak<Inner>, secure: impl Future<Output = io::Result<BoxSocket>> + Send) {
    let Some(strong) = inner.upgrade() else { return };
    let task = {
        let Ok(_permit) = strong.handshakes.try_acquire() else {
            tracing::warn!("too many nodes connect at once");
            return;
        };
        match timeout(strong.settings.connect_max, accept(&strong, secure)).await {
            Ok(Ok(task)) => task,
            Ok(Err(Failed::Refused(refusal))) => {
                tracing::warn!(refusal = %refusal, "a connection of another node was refused");
                return;
            }
            Ok(Err(Failed::Broken(_))) | Err(_) => return,
        }
    };
    drop(strong);
    let ServingConnection { peer, serving, task } = task;
    let cause = task.run().await;
    tracing::debug!(peer = peer.as_str(), cause = %cause, "the connection of another node is over");
    if let Some(strong) = inner.upgrade() {
        let mut open = lock(&strong.serving);
        if open.get(&peer).is_some_and(|current| Arc::ptr_eq(current, &serving)) {
            open.remove(&peer);
        }
    }
}

struct ServingConnection {
    peer: PeerName,
    serving: Arc<Serving>,
    task: ServingTask,
}

async fn accept(
    inner: &Arc<Inner>,
    secure: impl Future<Output = io::Result<BoxSocket>> + Send,
) -> Result<ServingConnection, Failed> {
    let socket = secure.await.map_err(|error| Cause::Socket(error.kind()))?;
    let mut link = Link::new(socket, inner.settings.compresses);
    let secrets = lock(&inner.secrets).clone();
    let nonce = (inner.nonces)();
    let peer = handshake::answer(&mut link, &inner.who, &secrets, nonce, inner.is_leaving()).await?;
    let serving = Arc::new(Serving::new());
    {
        let mut open = lock(&inner.serving);
        if open.len() >= PEERS_MAX && !open.contains_key(&peer.name) {
            return Err(Cause::TooMany.into());
        }
        // A node has one connection to another. A new one means that it has given the old one up.
        if let Some(old) = open.insert(peer.name.clone(), Arc::clone(&serving)) {
            old.close();
        }
    }
    if inner.is_leaving() {
        serving.leave();
    }
    let (name, answering, settings) = (peer.name.clone(), Arc::clone(&inner.answering), inner.settings.clone());
    Ok(ServingConnection {
        peer: peer.name,
        serving: Arc::clone(&serving),
        task: ServingTask::new(link, serving, name, answering, settings),
    })
}
