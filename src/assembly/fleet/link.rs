//! The way to the owner, wherever it is now.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout_at};

use super::messages::{Kind, body_of, not_owner};
use super::owning::Owning;
use helenus_base::mutant::{self, Mutant};
use helenus_engine::engine::{Asked, Carrier, Unanswered};
use helenus_fleet::fleet::{AnswerSink, Answering, AskError, PeerAddress, PeerName, Question, Transport};

/// The pause before a question that was not sent is sent again.
const PAUSE: Duration = Duration::from_millis(20);

/// Where the owner is.
#[derive(Clone)]
pub(super) enum At {
    /// This node.
    Here(Arc<Owning>),
    /// Another one.
    There(PeerAddress),
}

/// The way to the owner.
pub(super) struct Link {
    owner: watch::Sender<Option<At>>,
    /// Set once, before the first question.
    transport: OnceLock<Arc<dyn Transport>>,
    /// Told when the owner could not be asked.
    pub(super) trouble: Notify,
}

impl Link {
    pub(super) fn new() -> Self {
        Self {
            owner: watch::Sender::new(None),
            transport: OnceLock::new(),
            trouble: Notify::new(),
        }
    }

    pub(super) fn set_transport(&self, transport: Arc<dyn Transport>) {
        drop(self.transport.set(transport));
    }

    /// Sets where the owner is. `None` means that nobody is.
    pub(super) fn set(&self, owner: Option<At>) {
        self.owner.send_replace(owner);
    }

    /// The owner's side of this node, if it is the owner.
    pub(super) fn here(&self) -> Option<Arc<Owning>> {
        match &*self.owner.borrow() {
            Some(At::Here(owning)) => Some(Arc::clone(owning)),
            Some(At::There(_)) | None => None,
        }
    }

    /// Asks the owner. Waits for one within the time, and asks again what was not sent, or may be asked twice.
    ///
    /// # Errors
    /// There is no owner, or it does not answer.
    pub(super) async fn ask(&self, kind: Kind, body: Bytes, within: Duration) -> Result<Bytes, Unanswered> {
        let deadline = Instant::now() + within;
        let mut owner = self.owner.subscribe();
        let mut why = "no node has the lease of the bucket".to_owned();
        loop {
            let at = owner.borrow_and_update().clone();
            match self.ask_at(at, kind, body.clone(), deadline).await {
                Ok(Some(answer)) => return Ok(answer),
                Ok(None) => "the node that was asked is not the owner".clone_into(&mut why),
                Err(failure) => {
                    self.trouble.notify_one();
                    match failure {
                        Failure::Final(text) => return Err(Unanswered::NotSent(text)),
                        Failure::Sent(text) if !kind.is_repeatable() && !mutant::is_on(Mutant::ResendForwarded) => {
                            return Err(Unanswered::Sent(text));
                        }
                        Failure::Sent(text) | Failure::NotSent(text) => why = text,
                    }
                }
            }
            let pause = deadline.min(Instant::now() + PAUSE);
            drop(timeout_at(pause, owner.changed()).await);
            if Instant::now() >= deadline {
                return Err(Unanswered::NotSent(why));
            }
        }
    }

    /// Asks a node once. `None` means that it is not the owner.
    async fn ask_at(
        &self,
        at: Option<At>,
        kind: Kind,
        body: Bytes,
        deadline: Instant,
    ) -> Result<Option<Bytes>, Failure> {
        match (at, self.transport.get()) {
            (None, _) | (Some(At::There(_)), None) => {
                Err(Failure::NotSent("no node has the lease of the bucket".to_owned()))
            }
            (Some(At::Here(owning)), _) => {
                let answer = timeout_at(deadline, owning.answer(kind, body)).await;
                answer
                    .map(body_of)
                    .map_err(|_| Failure::Sent("no answer in time".to_owned()))
            }
            (Some(At::There(address)), Some(transport)) => {
                let question = Question {
                    kind: kind.number(),
                    body,
                    within: deadline.saturating_duration_since(Instant::now()),
                };
                let answers = transport.ask(&address, question).await?;
                let answer = answers.only().await?;
                Ok(answer.and_then(body_of))
            }
        }
    }
}

/// Why a node has not answered.
enum Failure {
    /// Nothing was done, and it may be asked again.
    NotSent(String),
    /// The question may have been carried out.
    Sent(String),
    /// Nothing was done, and nothing would be.
    Final(String),
}

impl From<AskError> for Failure {
    fn from(error: AskError) -> Self {
        let text = error.to_string();
        match error {
            AskError::TooLarge { .. } => Self::Final(text),
            error if error.was_sent() => Self::Sent(text),
            _ => Self::NotSent(text),
        }
    }
}

impl Carrier for Link {
    fn carry(&self, asked: Asked, message: Bytes, within: Duration) -> BoxFuture<'_, Result<Bytes, Unanswered>> {
        self.ask(Kind::Command(asked), message, within).boxed()
    }
}

impl Answering for Link {
    fn answer(&self, _: &PeerName, kind: u8, body: Bytes, _: Duration, out: AnswerSink) -> BoxFuture<'static, ()> {
        let (owning, kind) = (self.here(), Kind::of(kind));
        async move {
            let answer = match (owning, kind) {
                (Some(owning), Some(kind)) => owning.answer(kind, body).await,
                _ => not_owner(),
            };
            // The asker may be gone.
            let _ = out.last(answer).await;
        }
        .boxed()
    }
}
