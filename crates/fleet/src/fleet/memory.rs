//! Nodes of one process, for tests: questions and answers go through queues in memory.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::{Instant, timeout_at};

use super::transport::{
    AnswerSink, Answering, Answers, AskError, Cause, Gone, Incoming, Outgoing, PeerAddress, PeerName, Question,
    Transport,
};

/// Pieces of an answer that wait to be taken, at most.
const PIECES_MAX: usize = 4;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A node that takes questions.
#[derive(Clone)]
struct Node {
    name: PeerName,
    answering: Arc<dyn Answering>,
}

/// The nodes of a process and the links between them. Clones share them.
#[derive(Clone, Default)]
pub struct Network(Arc<Mutex<BTreeMap<PeerAddress, Node>>>);

impl std::fmt::Debug for Network {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Network").finish_non_exhaustive()
    }
}

impl Network {
    /// Adds a node, or replaces the one at this address; returns its way to the others.
    #[must_use]
    pub fn join(&self, name: PeerName, address: PeerAddress, answering: Arc<dyn Answering>) -> Arc<dyn Transport> {
        let node = Node {
            name: name.clone(),
            answering,
        };
        lock(&self.0).insert(address, node);
        let network = self.clone();
        Arc::new(Direct { name, network })
    }

    /// Removes a node: it cannot be asked any more.
    pub fn leave(&self, address: &PeerAddress) {
        lock(&self.0).remove(address);
    }
}

/// A node's way to the others.
struct Direct {
    name: PeerName,
    network: Network,
}

impl Transport for Direct {
    fn ask<'a>(&'a self, to: &'a PeerAddress, question: Question) -> BoxFuture<'a, Result<Answers, AskError>> {
        async move {
            let Some(node) = lock(&self.network.0).get(to).cloned() else {
                let refused = std::io::ErrorKind::ConnectionRefused;
                return Err(AskError::NotSent(Cause::Socket(refused)));
            };
            let stream = Arc::new(Stream::default());
            let deadline = Instant::now() + question.within;
            let sink = AnswerSink::new(Arc::clone(&stream) as Arc<dyn Outgoing>);
            let work = node
                .answering
                .answer(&self.name, question.kind, question.body, question.within, sink);
            let asked = Arc::clone(&stream);
            tokio::spawn(async move {
                let gone = std::future::poll_fn(|context| asked.poll_gone(context));
                // An answer that is late or no longer wanted is dropped.
                let _ = timeout_at(deadline, futures::future::select(work, gone)).await;
            });
            Ok(Answers::new(stream, node.name, deadline))
        }
        .boxed()
    }
}

/// The answer to one question.
#[derive(Default)]
struct Stream(Mutex<State>);

#[derive(Default)]
struct State {
    pieces: VecDeque<Bytes>,
    /// Whether the answer was complete; `None` means that more may come.
    end: Option<bool>,
    is_cancelled: bool,
    taking: Option<Waker>,
    sending: Option<Waker>,
}

impl Incoming for Stream {
    fn poll_next(&self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, AskError>> {
        let mut state = lock(&self.0);
        if let Some(piece) = state.pieces.pop_front() {
            state.sending.take().into_iter().for_each(Waker::wake);
            return Poll::Ready(Ok(Some(piece)));
        }
        match state.end {
            Some(true) => Poll::Ready(Ok(None)),
            Some(false) => Poll::Ready(Err(AskError::Broken(Cause::Abandoned))),
            None => {
                state.taking = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    fn was_sent(&self) -> bool {
        true
    }

    fn cancel(&self) {
        let mut state = lock(&self.0);
        state.is_cancelled = true;
        state.pieces.clear();
        state.sending.take().into_iter().for_each(Waker::wake);
    }
}

impl Outgoing for Stream {
    fn poll_piece(
        &self,
        context: &mut Context<'_>,
        piece: &mut Option<Bytes>,
        is_last: bool,
    ) -> Poll<Result<(), Gone>> {
        let mut state = lock(&self.0);
        if state.is_cancelled {
            return Poll::Ready(Err(Gone));
        }
        if state.pieces.len() >= PIECES_MAX {
            state.sending = Some(context.waker().clone());
            return Poll::Pending;
        }
        state.pieces.extend(piece.take());
        state.end = is_last.then_some(true);
        state.taking.take().into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(()))
    }

    fn poll_gone(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = lock(&self.0);
        if state.is_cancelled {
            return Poll::Ready(());
        }
        state.sending = Some(context.waker().clone());
        Poll::Pending
    }

    fn end(&self, is_complete: bool) {
        let mut state = lock(&self.0);
        state.end = state.end.or(Some(is_complete));
        state.taking.take().into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Answers kind 1 with its body twice, keeps kind 2 waiting, and drops kind 3.
    struct Echo;

    impl Answering for Echo {
        fn answer(&self, _: &PeerName, kind: u8, body: Bytes, _: Duration, out: AnswerSink) -> BoxFuture<'static, ()> {
            async move {
                match kind {
                    1 => {
                        out.piece(body.clone()).await.unwrap();
                        out.last(body).await.unwrap();
                    }
                    2 => out.gone().await,
                    _ => drop(out),
                }
            }
            .boxed()
        }
    }

    fn question(kind: u8) -> Question {
        Question {
            kind,
            body: Bytes::from_static(b"body"),
            within: Duration::from_secs(1),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_is_answered_piece_by_piece() {
        let network = Network::default();
        let (a, b) = (PeerAddress::from("a:1"), PeerAddress::from("b:1"));
        let _b = network.join("b".into(), b.clone(), Arc::new(Echo));
        let from_a = network.join("a".into(), a, Arc::new(Echo));
        let mut answers = from_a.ask(&b, question(1)).await.unwrap();
        assert_eq!(answers.from().as_str(), "b");
        assert_eq!(answers.next().await, Ok(Some(Bytes::from_static(b"body"))));
        assert_eq!(answers.next().await, Ok(Some(Bytes::from_static(b"body"))));
        assert_eq!(answers.next().await, Ok(None));
        let late = from_a.ask(&b, question(2)).await.unwrap().only().await;
        assert_eq!(late, Err(AskError::TimedOut { was_sent: true }));
        let abandoned = from_a.ask(&b, question(3)).await.unwrap().only().await;
        assert_eq!(abandoned, Err(AskError::Broken(Cause::Abandoned)));
        network.leave(&b);
        assert!(!from_a.ask(&b, question(1)).await.unwrap_err().was_sent());
    }
}
