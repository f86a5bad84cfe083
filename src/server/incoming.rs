//! Memory for a large request while it is read.
//!
//! A request above [`LARGE_BYTES`] asks for all of its bytes when its header has come, and is read on only when it has them. Where it does
//! not get them in time it is read into nothing and refused. What is granted and not sent within a while ends the connection: bytes
//! that a client announces must not be kept from others for as long as it likes.
//!
//! Requests have a pool of their own, a part of the memory of connections, so that they cannot take that of answers.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;

use crate::budget::{Budget, Exhausted, Granted};

/// Bytes of a request above which it asks.
pub(super) const LARGE_BYTES: usize = 64 * 1024;

/// The part of the memory of connections that large requests may take while they are read.
pub(super) const POOL_PART: usize = 4;

/// What the client is told.
pub(super) const REFUSAL: &str = "The memory for large requests is in use by other connections: try again later, send smaller requests, or \
                                  raise connections-memory-bytes-max";

type Waiting = Pin<Box<dyn Future<Output = Result<Granted, Exhausted>> + Send>>;

/// What a large request has.
#[derive(Default)]
pub(super) enum Incoming {
    /// There is none.
    #[default]
    None,
    /// It is read on when there is memory.
    Waiting(Waiting),
    /// It is read, since then.
    Granted { _memory: Granted, since: Instant },
}

impl Incoming {
    /// Whether reading may go on, `awaited` being the bytes of the request that has begun to come.
    pub(super) fn poll(
        &mut self,
        context: &mut Context<'_>,
        pool: &Arc<Budget>,
        awaited: Option<usize>,
    ) -> Poll<Result<(), Exhausted>> {
        let Some(bytes) = awaited.filter(|bytes| *bytes > LARGE_BYTES) else {
            *self = Self::None;
            return Poll::Ready(Ok(()));
        };
        if let Self::None = self {
            *self = match pool.try_take(bytes) {
                Some(memory) => Self::granted(memory),
                None => Self::Waiting(Box::pin(Arc::clone(pool).wait_for(bytes))),
            };
        }
        if let Self::Waiting(waiting) = self {
            match waiting.as_mut().poll(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(memory)) => *self = Self::granted(memory),
                Poll::Ready(Err(exhausted)) => {
                    *self = Self::None;
                    return Poll::Ready(Err(exhausted));
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    fn granted(memory: Granted) -> Self {
        Self::Granted {
            _memory: memory,
            since: Instant::now(),
        }
    }

    /// Whether nothing large is read.
    pub(super) const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// Whether its client has taken longer than this to send it.
    pub(super) fn is_slow(&self, limit: Duration) -> bool {
        matches!(self, Self::Granted { since, .. } if since.elapsed() >= limit)
    }
}
