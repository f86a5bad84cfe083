//! The owner of physical partitions, as messages reach it: what another machine asks is decoded and executed here.
//!
//! ```text
//! statement level ─ Placed::There ─→ message, as bytes ─→ `write` ─→ locks · conditions · timestamp · parts · commit
//!                                                     └─→ `read`  ─→ snapshot · indexes · part ─→ rows, receipt
//! ```
//! Only the message and what the owner has itself are used: its tables, its partition maps, its locks, its clock. The
//! sender's command is not seen. A write that came as bytes is decided and dated here, as one that began here is.
//!
//! Deliberately absent: a connection that carries messages, and the answer as bytes. A test carries them within one
//! process ([`loopback`]); servers have no partition elsewhere.

#[cfg(feature = "simulation")]
pub(in crate::engine) mod loopback;
#[cfg(feature = "simulation")]
pub(in crate::engine) mod read;
mod tables;
pub(in crate::engine) mod write;
