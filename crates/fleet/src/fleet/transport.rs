//! The interface of every transport: what a node asks, what it gets, and what it knows when that fails.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use tokio::time::{Instant, Sleep};

/// The most that a question or a piece of an answer may have, in bytes: with it, the memory for a peer stays below 64 MiB.
pub const BODY_BYTES_MAX: usize = 15 << 20;

/// Where a node listens for other nodes: `HOST:PORT`. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerAddress(Arc<str>);

/// The name of a node, as it proved it when the connection was opened. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerName(Arc<str>);

macro_rules! text {
    ($name:ident) => {
        impl $name {
            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    };
}

text!(PeerAddress);
text!(PeerName);

/// A question to another node.
#[derive(Clone, Debug)]
pub struct Question {
    /// What is asked. The transport hands it on unread.
    pub kind: u8,
    /// The question itself.
    pub body: Bytes,
    /// How long the asker waits for the whole answer, from the call of [`Transport::ask`].
    pub within: Duration,
}

/// Why a connection failed, or what it lacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// The address cannot be reached, or the socket failed.
    #[error("{0}")]
    Socket(std::io::ErrorKind),
    /// The connection did not open in time.
    #[error("no connection in time")]
    Slow,
    /// The other side closed the connection.
    #[error("the connection was closed")]
    Closed,
    /// The other side answered none of the last pings.
    #[error("the peer is silent")]
    Silent,
    /// Bytes that are no envelopes, or that break the rules of the connection.
    #[error("damaged bytes: {0}")]
    Damaged(&'static str),
    /// This node is stopping.
    #[error("this node is stopping")]
    Stopping,
    /// The other node is stopping, and takes no more questions.
    #[error("the peer is stopping")]
    Leaving,
    /// This node knows too many peers.
    #[error("too many peers")]
    TooMany,
    /// The other side gave up its answer: it failed, or it is stopping.
    #[error("the answer was abandoned")]
    Abandoned,
    /// This side did not take the answer while others needed its memory.
    #[error("the answer was taken too slowly")]
    TooSlow,
}

/// Why two nodes do not talk.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// They have no version of the formats in common.
    #[error(
        "the formats do not fit: {asker} has {asker_oldest} to {asker_newest}, {answerer} has {answerer_oldest} to \
         {answerer_newest}"
    )]
    Formats {
        /// The node that opened the connection.
        asker: String,
        /// Its oldest format.
        asker_oldest: u32,
        /// Its newest.
        asker_newest: u32,
        /// The node that it reached.
        answerer: String,
        /// Its oldest format.
        answerer_oldest: u32,
        /// Its newest.
        answerer_newest: u32,
    },
    /// They are nodes of two clusters.
    #[error("{answerer} is a node of the cluster {answerer_cluster}, {asker} of {asker_cluster}")]
    Cluster {
        /// The node that opened the connection.
        asker: String,
        /// The identity of its database.
        asker_cluster: String,
        /// The node that it reached.
        answerer: String,
        /// The identity of that one's database.
        answerer_cluster: String,
    },
    /// They have the same name, or a node asked itself.
    #[error("both nodes have the name {name}")]
    Name {
        /// The name.
        name: String,
    },
    /// The other side does not know the secret of the cluster.
    #[error("the peer did not prove that it knows the cluster's secret")]
    Secret,
    /// The other side does not speak this protocol.
    #[error("the peer does not speak the protocol of nodes: {0}")]
    Protocol(&'static str),
}

/// Why there is no answer, or no more of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The question was not sent: nothing was done, and it may be asked again.
    #[error("not sent: {0}")]
    NotSent(Cause),
    /// The question was sent, and then the connection or the answer broke: whether it was done is unknown.
    #[error("broken after it was sent: {0}")]
    Broken(Cause),
    /// The answer did not come in time.
    #[error("no answer in time ({})", if *was_sent { "it was sent" } else { "it was not sent" })]
    TimedOut {
        /// Whether the question was sent. If not, nothing was done.
        was_sent: bool,
    },
    /// The two nodes do not talk to each other. The question was not sent.
    #[error("refused: {0}")]
    Refused(Refusal),
    /// The question is larger than any may be. It was not sent.
    #[error("a question of {bytes} bytes is larger than {bytes_max}")]
    TooLarge {
        /// Its size in bytes.
        bytes: usize,
        /// The most that a body may have, in bytes.
        bytes_max: usize,
    },
}

impl AskError {
    /// Whether the question may have reached the other node. `false` means that nothing was done.
    #[must_use]
    pub const fn was_sent(&self) -> bool {
        match self {
            Self::Broken(_) | Self::TimedOut { was_sent: true } => true,
            Self::NotSent(_) | Self::TimedOut { was_sent: false } | Self::Refused(_) | Self::TooLarge { .. } => false,
        }
    }
}

/// The way to other nodes.
pub trait Transport: Send + Sync {
    /// Asks the node at an address, over the connection that is open or over a new one. Returns when the question is
    /// queued on an open connection; [`Answers::next`] then says if it could not be sent. Dropping the future before it
    /// returns sends nothing.
    ///
    /// # Errors
    /// The question could not be queued in time: nothing was sent.
    fn ask<'a>(&'a self, to: &'a PeerAddress, question: Question) -> BoxFuture<'a, Result<Answers, AskError>>;
}

/// The answering side of a node.
pub trait Answering: Send + Sync {
    /// Answers a question. The future is first polled on the task of its connection, so it must not block or compute for
    /// long. It is dropped when the asker cancels, the connection breaks or `within` is over: what must be completed
    /// belongs to a task of its own.
    fn answer(
        &self,
        from: &PeerName,
        kind: u8,
        body: Bytes,
        within: Duration,
        out: AnswerSink,
    ) -> BoxFuture<'static, ()>;
}

/// The asker no longer waits: it cancelled, the time is over, or the connection broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the asker no longer waits")]
pub struct Gone;

/// The receiving end of an answer, as a transport implements it.
pub(crate) trait Incoming: Send + Sync {
    /// The next piece; `None` means the answer is complete.
    fn poll_next(&self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, AskError>>;

    /// The asker takes no more: what arrived is dropped, and the other side is told. Returns whether the question may
    /// have been sent; if not, it never will be.
    fn give_up(&self) -> bool;
}

/// The sending end of an answer, as a transport implements it.
pub(crate) trait Outgoing: Send + Sync {
    /// Queues a piece and takes it out of its place; `is_last` ends the answer with it.
    fn poll_piece(&self, context: &mut Context<'_>, piece: &mut Option<Bytes>, is_last: bool)
    -> Poll<Result<(), Gone>>;

    /// Waits until the asker no longer waits.
    fn poll_gone(&self, context: &mut Context<'_>) -> Poll<()>;

    /// Ends the answer: complete, or abandoned.
    fn end(&self, is_complete: bool);
}

/// The answer to a question, piece by piece. Dropping it tells the other side to stop.
pub struct Answers {
    incoming: Arc<dyn Incoming>,
    from: PeerName,
    deadline: Instant,
    /// Made when an answer is first waited for.
    timer: Option<Pin<Box<Sleep>>>,
    is_over: bool,
}

impl fmt::Debug for Answers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut form = formatter.debug_struct("Answers");
        form.field("from", &self.from).field("is_over", &self.is_over);
        form.finish_non_exhaustive()
    }
}

impl Answers {
    pub(crate) fn new(incoming: Arc<dyn Incoming>, from: PeerName, deadline: Instant) -> Self {
        Self {
            incoming,
            from,
            deadline,
            timer: None,
            is_over: false,
        }
    }

    /// The node that was asked, as it named itself.
    #[must_use]
    pub const fn from(&self) -> &PeerName {
        &self.from
    }

    /// The next piece; `None` means that the answer is complete, and it stays so. A dropped call loses nothing.
    ///
    /// # Errors
    /// The answer broke or is late. Nothing follows.
    pub async fn next(&mut self) -> Result<Option<Bytes>, AskError> {
        poll_fn(|context| self.poll(context)).await
    }

    /// The only piece of an answer that has one, or the first; `None` means that it had none. The rest is cancelled.
    ///
    /// # Errors
    /// As [`Answers::next`].
    pub async fn only(mut self) -> Result<Option<Bytes>, AskError> {
        self.next().await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, AskError>> {
        if self.is_over {
            return Poll::Ready(Ok(None));
        }
        let polled = match self.incoming.poll_next(context) {
            Poll::Pending => {
                let deadline = self.deadline;
                let timer = self
                    .timer
                    .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
                ready!(timer.as_mut().poll(context));
                let was_sent = self.incoming.give_up();
                Err(AskError::TimedOut { was_sent })
            }
            Poll::Ready(polled) => polled,
        };
        self.is_over = !matches!(polled, Ok(Some(_)));
        Poll::Ready(polled)
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        if !self.is_over {
            self.incoming.give_up();
        }
    }
}

/// Takes the answer to a question, piece by piece. Dropped before [`AnswerSink::end`], it breaks the answer
/// ([`Cause::Abandoned`]).
pub struct AnswerSink {
    /// `None` means the end was told.
    outgoing: Option<Arc<dyn Outgoing>>,
}

impl fmt::Debug for AnswerSink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AnswerSink").finish_non_exhaustive()
    }
}

impl AnswerSink {
    pub(crate) const fn new(outgoing: Arc<dyn Outgoing>) -> Self {
        Self {
            outgoing: Some(outgoing),
        }
    }

    /// Sends a piece of at most [`BODY_BYTES_MAX`] bytes; waits while the asker takes none. Pieces of an answer are sent
    /// one at a time.
    ///
    /// # Errors
    /// The asker no longer waits, or the piece is larger: then the answer is given up.
    pub async fn piece(&self, piece: Bytes) -> Result<(), Gone> {
        self.send(piece, false).await
    }

    /// Sends the last piece and the end in one message.
    ///
    /// # Errors
    /// As [`AnswerSink::piece`].
    pub async fn last(mut self, piece: Bytes) -> Result<(), Gone> {
        self.send(piece, true).await?;
        self.outgoing = None;
        Ok(())
    }

    /// Ends the answer.
    pub fn end(mut self) {
        if let Some(outgoing) = self.outgoing.take() {
            outgoing.end(true);
        }
    }

    /// Waits until the asker no longer waits.
    pub async fn gone(&self) {
        if let Some(outgoing) = &self.outgoing {
            poll_fn(|context| outgoing.poll_gone(context)).await;
        }
    }

    async fn send(&self, piece: Bytes, is_last: bool) -> Result<(), Gone> {
        let Some(outgoing) = &self.outgoing else {
            return Err(Gone);
        };
        let mut piece = Some(piece);
        poll_fn(|context| outgoing.poll_piece(context, &mut piece, is_last)).await
    }
}

impl Drop for AnswerSink {
    fn drop(&mut self) {
        if let Some(outgoing) = self.outgoing.take() {
            outgoing.end(false);
        }
    }
}
