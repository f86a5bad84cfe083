//! Between nodes: questions and answers, and the rules by time that say who may answer.
//!
//! ```text
//! asking node                                             answering node
//! Transport::ask ── question ─────────────────────────►  Answering::answer
//! Answers::next  ◄── piece, piece, … end ──────────────  AnswerSink::piece, end
//! drop(Answers)  ── cancel ───────────────────────────►  the future is dropped
//! ```
//! A question and each piece of its answer are bytes; their meaning is the caller's. A question is sent at most once: the
//! error says whether it was sent, and the caller decides whether it may be asked again ([`AskError`]).

mod asking;
#[cfg(test)]
mod chaos_tests;
mod endpoint;
mod envelope;
mod handshake;
mod limits;
mod link;
mod memory;
pub mod right;
mod serving;
pub mod succession;
mod tcp;
#[cfg(test)]
mod tests;
mod tls;
mod transport;

pub use endpoint::{Dial, Endpoint, Nonces};
pub use handshake::{Formats, Identity, Nonce, Secret, Secrets};
pub use limits::Settings;
pub use link::{BoxSocket, Socket};
pub use memory::{Network, Wire};
pub use tcp::Tcp;
pub use tls::{Tls, TlsError};
pub use transport::{
    AnswerSink, Answering, Answers, AskError, BODY_BYTES_MAX, Cause, Gone, PeerAddress, PeerName, Question, Refusal,
    Transport,
};
