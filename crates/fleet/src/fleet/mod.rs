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

mod memory;
mod transport;

pub use memory::Network;
pub use transport::{
    AnswerSink, Answering, Answers, AskError, Cause, Gone, PeerAddress, PeerName, Question, Refusal, Transport,
};
