//! What carries messages to the owner of partitions, as the engine of a machine without stores sees it.

use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;

use crate::engine::Error;
use crate::partition::Shortage;
use helenus_types::consistency::{Consistency, WriteKind};

/// What a message asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Rows of one physical partition. Asked again, it changes nothing.
    Rows,
    /// A write that may be made twice: the client has dated it, and it adds nothing to what is there.
    RepeatableWrites,
    /// A write that must not be made twice.
    Writes,
}

impl Asked {
    /// Whether a message that may have arrived can be sent again.
    #[must_use]
    pub const fn is_repeatable(self) -> bool {
        matches!(self, Self::Rows | Self::RepeatableWrites)
    }

    /// Whether it reads only.
    #[must_use]
    pub const fn is_read(self) -> bool {
        matches!(self, Self::Rows)
    }
}

/// Why a message has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    /// No owner could be reached in time. Nothing was done.
    #[error("no owner could be reached: {0}")]
    NotSent(String),
    /// It was sent, and the connection broke, or the time was over: it may have been done.
    #[error("the owner did not answer: {0}")]
    Sent(String),
}

/// Carries messages to the owner of the partitions that other machines show. It waits for an owner within the time that it
/// is given, and sends a message again only where that may be done.
pub trait Carrier: Send + Sync {
    /// Sends a message, and returns the answer.
    fn carry(&self, asked: Asked, message: Bytes, within: Duration) -> BoxFuture<'_, Result<Bytes, Unanswered>>;
}

/// The failure of a request without an answer. `write_kind` is `None` for a read.
#[cold]
pub(in crate::engine) fn unanswered(
    error: &Unanswered,
    consistency: Consistency,
    write_kind: Option<WriteKind>,
) -> Error {
    tracing::warn!(%error, "a request has no answer from the owner of its partitions");
    match (error, write_kind) {
        (Unanswered::NotSent(_), _) => Error::Unavailable(Shortage {
            consistency,
            required: 1,
            alive: 0,
        }),
        (Unanswered::Sent(_), None) => Error::ReadTimeout {
            consistency,
            received: 0,
            required: 1,
            data_present: false,
        },
        (Unanswered::Sent(_), Some(write_kind)) => Error::WriteTimeout {
            consistency,
            received: 0,
            required: 1,
            // Whether the owner has recorded the batch is not known.
            write_kind: match write_kind {
                WriteKind::Batch => WriteKind::BatchLog,
                other => other,
            },
        },
    }
}
