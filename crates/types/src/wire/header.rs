//! The header of an envelope.

use super::{Opcode, Version};

/// Bytes of a frame header, versions 3 and above.
pub const HEADER_BYTES: usize = 9;

/// Bit of the version byte that marks a response.
pub const RESPONSE_BIT: u8 = 0x80;

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
