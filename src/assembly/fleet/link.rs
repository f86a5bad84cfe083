//! The way to the owner, wherever it is now.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout_at};

use super::messages::{Kind, body_of, not_owner};
use helenus_base::mutant::{self, Mutant};
use helenus_cql::cql::Database;
use helenus_engine::engine::{Asked, Carrier, Unanswered};
use helenus_fleet::fleet::{AnswerSink, Answering, AskError, Cause, PeerAddress, PeerName, Question, Transport};

/// The pause before a question that was not sent is sent again.
const PAUSE: Duration = Duration::from_millis(20);

/// The owner, as its own node asks it.
pub(super) trait OwnerHere: Send + Sync {
    /// Answers a question. `None` means that the lease ended meanwhile: it may have been carried out.
    fn answer(&self, kind: Kind, body: Bytes) -> BoxFuture<'_, Option<Bytes>>;

    /// The database with the stores.
    fn database(&self) -> &Arc<Database>;
}

/// Where the owner is.
#[derive(Clone)]
pub(super) enum At {
    /// This node.
    Here(Arc<dyn OwnerHere>),
    /// Another one.
    There(PeerAddress),
}

/// Attempts after which an answer that is given up each time is asked for no more. They take 0.6 s.
const ABANDONED_MAX: u32 = 5;

/// The way to the owner.
pub(super) struct Link {
    owner: watch::Sender<Option<At>>,
    /// Set once, before the first question.
    transport: OnceLock<Arc<dyn Transport>>,
    /// Told when the owner could not be asked, or is none.
    pub(super) trouble: Notify,
    /// Why a node does not talk to this one.
    refusal: Mutex<Option<String>>,
}

impl Link {
    pub(super) fn new() -> Self {
        Self {
            owner: watch::Sender::new(None),
            transport: OnceLock::new(),
            trouble: Notify::new(),
            refusal: Mutex::default(),
        }
    }

    pub(super) fn set_transport(&self, transport: Arc<dyn Transport>) {
        drop(self.transport.set(transport));
    }

    /// Sets where the owner is. `None` means that nobody is.
    pub(super) fn set(&self, owner: Option<At>) {
        self.owner.send_replace(owner);
    }

    /// Sets that another node is the owner, unless it is known.
    pub(super) fn set_there(&self, address: PeerAddress) {
        self.owner.send_if_modified(|owner| {
            let is_known = matches!(owner, Some(At::There(known)) if *known == address);
            *owner = Some(At::There(address));
            !is_known
        });
    }

    /// The owner's side of this node, if it is the owner.
    pub(super) fn here(&self) -> Option<Arc<dyn OwnerHere>> {
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
        // What was sent once may have been done, whatever became of later attempts.
        let mut was_sent = false;
        let mut abandoned = 0;
        let unanswered = |was_sent, why| {
            if was_sent {
                Unanswered::Sent(why)
            } else {
                Unanswered::NotSent(why)
            }
        };
        loop {
            let mut pause = PAUSE;
            let at = owner.borrow_and_update().clone();
            match self.ask_at(at, kind, body.clone(), deadline).await {
                Ok(Some(answer)) => return Ok(answer),
                Ok(None) => {
                    // It may have lost the lease, so that another node has to take it.
                    self.trouble.notify_one();
                    "the node that was asked is not the owner".clone_into(&mut why);
                }
                Err(failure) => {
                    self.trouble.notify_one();
                    match failure {
                        Failure::Final(text) => return Err(unanswered(was_sent, text)),
                        Failure::Sent(text) | Failure::Abandoned(text)
                            if !kind.is_repeatable() && !mutant::is_on(Mutant::ResendForwarded) =>
                        {
                            return Err(Unanswered::Sent(text));
                        }
                        Failure::Sent(text) => (was_sent, why) = (true, text),
                        Failure::Abandoned(text) => {
                            abandoned += 1;
                            if abandoned >= ABANDONED_MAX {
                                return Err(Unanswered::Sent(text));
                            }
                            (was_sent, why, pause) = (true, text, PAUSE * (1 << abandoned));
                        }
                        Failure::Refused(text) => {
                            self.refusal
                                .lock()
                                .unwrap_or_else(PoisonError::into_inner)
                                .replace(text.clone());
                            why = text;
                        }
                        Failure::NotSent(text) => why = text,
                    }
                }
            }
            let next = deadline.min(Instant::now() + pause);
            drop(timeout_at(next, owner.changed()).await);
            if Instant::now() >= deadline {
                return Err(unanswered(was_sent, why));
            }
        }
    }

    /// Why the node that was asked last does not talk to this one, if that was so since the last call.
    pub(super) fn refusal(&self) -> Option<String> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).take()
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
                let answer = answer.map_err(|_| Failure::Sent("no answer in time".to_owned()))?;
                let answer = answer.ok_or_else(|| Failure::Sent("the lease of the bucket is over".to_owned()))?;
                Ok(body_of(answer))
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
    /// The answer was given up: the owner is stopping, or the answer cannot be sent at all.
    Abandoned(String),
    /// Nothing was done, and nothing would be.
    Final(String),
    /// The two nodes do not talk to each other. Nothing was done.
    Refused(String),
}

impl From<AskError> for Failure {
    fn from(error: AskError) -> Self {
        let text = error.to_string();
        match error {
            AskError::TooLarge { .. } => Self::Final(text),
            AskError::Refused(_) => Self::Refused(text),
            AskError::Broken(Cause::Abandoned) => Self::Abandoned(text),
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
                (Some(owning), Some(kind)) => match owning.answer(kind, body).await {
                    Some(answer) => answer,
                    // The asker is told that the answer is given up.
                    None => return,
                },
                _ => not_owner(),
            };
            // The asker may be gone.
            let _ = out.last(answer).await;
        }
        .boxed()
    }
}
