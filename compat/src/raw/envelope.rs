//! An answer as it came.

/// A message as it came.
#[derive(Debug, Clone)]
pub struct Envelope {
    /// Version byte without the response bit.
    pub version: u8,
    /// Flags of the header.
    pub flags: u8,
    /// Stream it answers.
    pub stream: i16,
    /// What it is, [`opcode`](super::opcode).
    pub opcode: u8,
    /// The body, with tracing id, warnings and payload in front as flagged.
    pub body: Vec<u8>,
}
