//! Memory for a large request while it is read.
//!
//! A request above [`LARGE_BYTES`] reserves memory for all of its bytes when its header has arrived. The rest is read
//! only with that memory. If the request does not get it in time, its bytes are discarded and it is refused. If its
//! client does not send it soon enough after the grant, the connection ends: a client must not hold reserved memory for
//! long.
//!
//! Large requests have a pool of their own, a part of the memory of connections, so that they cannot take the memory of
//! responses.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;

use helenus_base::budget::{Budget, Exhausted, Granted};

/// Bytes of a request above which it reserves memory.
pub(super) const LARGE_BYTES: usize = 64 * 1024;

/// The part of the memory of connections that large requests may take while they are read.
pub(super) const POOL_PART: usize = 4;

/// The text of the refusal to the client.
pub(super) const REFUSAL: &str = "The memory for large requests is in use by other connections: try again later, send smaller requests, or \
                                  raise connections-memory-bytes-max";

type Waiting = Pin<Box<dyn Future<Output = Result<Granted, Exhausted>> + Send>>;

/// The memory state of a large request.
#[derive(Default)]
pub(super) enum Incoming {
    /// There is no large request.
    #[default]
    None,
    /// Waits for memory before it is read further.
    Waiting(Waiting),
    /// Has its memory since then, and is being read.
    Granted { _memory: Granted, since: Instant },
}

impl Incoming {
    /// Whether reading may continue; `awaited` is the size of the request that has begun to arrive, in bytes.
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

    /// Whether no large request is being read.
    pub(super) const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// Whether its client has taken longer than this to send it.
    pub(super) fn is_slow(&self, limit: Duration) -> bool {
        matches!(self, Self::Granted { since, .. } if since.elapsed() >= limit)
    }
}
