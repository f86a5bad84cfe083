//! The bounds of a connection: what one peer may make a node hold, and for how long it may be silent.
//!
//! ```text
//! held for one peer                  by whom             at most
//! questions that wait or are asked   the asking side     QUESTIONS_BYTES_MAX   bodies, and a first window each
//! pieces that were not taken         the asking side     GRANTED_BYTES_MAX     beyond the first windows
//! questions in execution             the answering side  QUESTIONS_BYTES_MAX
//! pieces that are not sent           the answering side  GRANTED_BYTES_MAX
//! ```
//! A pair of nodes has a connection in each direction, so a node may be on both sides: 62 MiB, and its buffers below 2 MiB.

use std::time::Duration;

use super::transport::BODY_BYTES_MAX;

/// Questions of one connection that are not completely answered, in bytes: bodies, windows, places.
pub(super) const QUESTIONS_BYTES_MAX: usize = 31 << 19;

/// Pieces of one connection that are on their way or not taken, beyond the first windows, in bytes.
pub(super) const GRANTED_BYTES_MAX: usize = 31 << 19;

/// What each answer may always send before more is granted, in bytes: a point read never waits for others.
pub(super) const WINDOW_BYTES: usize = 8 * 1024;

/// The first window while less than half of [`GRANTED_BYTES_MAX`] is used, in bytes: most pages need no grant.
pub(super) const WIDE_WINDOW_BYTES: usize = 64 * 1024;

/// Bytes taken after which they are granted again.
pub(super) const RETURNED_BYTES_MIN: usize = 4 * 1024;

/// Bytes that a piece counts beyond its own: an empty one takes memory too.
const PLACE_BYTES: usize = 64;

/// Bytes that a question counts beyond its body and its window: its state on either side.
const STATE_BYTES: usize = 1024;

/// Bytes that wait for the socket before more messages are encoded. What is not encoded is known not to be sent.
pub(super) const ENCODED_BYTES_MAX: usize = 256 * 1024;

/// Bytes of envelopes that are handled before something else is done: a read can hold 255 times its size, compressed.
pub(super) const DECODED_BYTES_MAX: usize = 512 * 1024;

/// Bytes that one read asks the socket for.
pub(super) const READ_BYTES: usize = 64 * 1024;

/// Connections that prove themselves at the same time, at most.
pub(super) const HANDSHAKES_MAX: usize = 64;

/// Peers that a node knows connections to or from, at most, each.
pub(super) const PEERS_MAX: usize = 1024;

const _: () = assert!(BODY_BYTES_MAX + PLACE_BYTES <= GRANTED_BYTES_MAX);
const _: () = assert!(BODY_BYTES_MAX + PLACE_BYTES + WINDOW_BYTES + STATE_BYTES <= QUESTIONS_BYTES_MAX);

/// Bytes that a body counts.
pub(super) const fn weight(body: &[u8]) -> usize {
    body.len() + PLACE_BYTES
}

/// Bytes that a question counts until its answer is over.
pub(super) const fn cost(body: &[u8]) -> usize {
    weight(body) + WINDOW_BYTES + STATE_BYTES
}

/// What a node may choose about its connections.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How often the asking side asks for a sign of life.
    pub ping_every: Duration,
    /// Signs of life that may fail to come in a row; at the next one the connection is broken.
    pub pings_missed_max: u32,
    /// How long a connection may take to open and to prove itself.
    pub connect_max: Duration,
    /// The longest pause between attempts to connect. The first is a fiftieth of it, and each doubles.
    pub pause_max: Duration,
    /// How long an answer may stay untaken while another needs its memory.
    pub slow_max: Duration,
    /// Whether large bodies are compressed.
    pub compresses: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ping_every: Duration::from_millis(100),
            pings_missed_max: 3,
            connect_max: Duration::from_secs(1),
            pause_max: Duration::from_secs(1),
            slow_max: Duration::from_secs(1),
            compresses: true,
        }
    }
}
