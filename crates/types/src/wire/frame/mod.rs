//! Frames: where messages begin and end in a stream of bytes.
//!
//! A connection starts with bare envelopes. In version 5 it switches to segments after the answer to STARTUP
//! ([`Decoder::negotiated`], [`Encoder::negotiated`]); bytes already read by then are segments.
//!
//! The three kinds of bad input have different consequences. A `Malformed` body is answered on its stream. An envelope
//! over the limit is skipped as its bytes arrive and answered on its stream ([`Inbound::TooBig`]). After a [`Fatal`]
//! the envelopes can no longer be found, so the connection is closed, in most cases after an answer.

mod compression;
mod decoder;
mod encoder;
pub mod segment;

pub use compression::{lz4_append, lz4_block};
pub use decoder::{Decoder, Fatal, Inbound};
pub use encoder::Encoder;

/// Maximum bytes of any body, whatever the configured limit (native_protocol_v5.spec §2.5). Clients have the same limit.
pub const BODY_BYTES_MAX: usize = 256 * 1024 * 1024;
