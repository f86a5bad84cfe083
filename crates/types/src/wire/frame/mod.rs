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

use super::{Opcode, Version};

pub use decoder::{Decoder, Fatal, Inbound};
pub use encoder::Encoder;

/// Bytes of a frame header, versions 3 and above.
pub const HEADER_BYTES: usize = 9;

/// Bit of the version byte that marks a response.
pub const RESPONSE_BIT: u8 = 0x80;

/// Maximum bytes of any body, whatever the configured limit (native_protocol_v5.spec §2.5). Clients have the same limit.
pub const BODY_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The header of an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The version of the protocol.
    pub version: Version,
    /// [`super::flags`].
    pub flags: u8,
    /// Chosen by the client for a request; the same in its answer. −1 in events.
    pub stream: i16,
    /// As sent; see [`Header::opcode`].
    pub opcode_byte: u8,
    /// Bytes of the body.
    pub length: usize,
}

impl Header {
    /// The opcode of the message. `None` means an unknown one.
    #[must_use]
    pub const fn opcode(&self) -> Option<Opcode> {
        Opcode::from_byte(self.opcode_byte)
    }
}

/// Writes the length of the envelope that begins at `start` and ends with `out` into its header.
pub(super) fn patch_length(out: &mut [u8], start: usize) {
    let length = out.len().saturating_sub(start + HEADER_BYTES);
    let length = i32::try_from(length).unwrap_or(i32::MAX);
    if let Some(place) = out.get_mut(start + 5..start + HEADER_BYTES) {
        place.copy_from_slice(&length.to_be_bytes());
    }
}
