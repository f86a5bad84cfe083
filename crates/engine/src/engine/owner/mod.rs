//! The owner of physical partitions, as messages reach it: what another machine asks is decoded and executed here.
//!
//! ```text
//! statement level ─ Placed::There ─→ message, as bytes ─→ `write` ─→ locks · conditions · timestamp · parts · commit
//!                                                     └─→ `read`  ─→ snapshot · indexes · part ─→ rows, receipt
//! ```
//! Only the message and what the owner has itself are used: its tables, its partition maps, its locks, its clock. The
//! sender's command is not seen. A write that came as bytes is decided and dated here, as one that began here is.
//!
//! Deliberately absent: the connection that carries messages ([`Carrier`]). A test carries them within one process
//! (`loopback`).

pub(in crate::engine) mod carrier;
#[cfg(feature = "simulation")]
pub(in crate::engine) mod loopback;
pub(in crate::engine) mod moments;
pub(in crate::engine) mod question;
pub(in crate::engine) mod read;
pub(in crate::engine) mod rows_answer;
pub(in crate::engine) mod tables;
mod told;
pub(in crate::engine) mod write;
pub(in crate::engine) mod writes_answer;

pub use self::carrier::{Asked, Carrier, Unanswered};
