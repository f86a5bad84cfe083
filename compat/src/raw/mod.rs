//! A client of the native protocol, versions 3, 4 and 5, that hides nothing: every flag, column type, warning and
//! error text of an answer is there to compare.
//!
//! Life of a question: [`request`] encodes a body, [`connection::Connection`] wraps it in an envelope (and, in version
//! 5 after STARTUP, in a [`segment`]), sends it and reads the answer, [`answer::plain`] turns that into JSON in the
//! shape of `golden/*.json`.
//!
//! Deliberately absent: compression (the Go suite covers it), TLS, retries, pools.

pub mod answer;
pub mod connection;
pub mod envelope;
pub mod request;
pub mod segment;

pub use connection::Connection;
pub use envelope::Envelope;
pub use request::{Bound, Params};

/// Opcodes, native_protocol_v5.spec §2.4.
pub mod opcode {
    /// ERROR
    pub const ERROR: u8 = 0x00;
    /// STARTUP
    pub const STARTUP: u8 = 0x01;
    /// READY
    pub const READY: u8 = 0x02;
    /// AUTHENTICATE
    pub const AUTHENTICATE: u8 = 0x03;
    /// OPTIONS
    pub const OPTIONS: u8 = 0x05;
    /// SUPPORTED
    pub const SUPPORTED: u8 = 0x06;
    /// QUERY
    pub const QUERY: u8 = 0x07;
    /// RESULT
    pub const RESULT: u8 = 0x08;
    /// PREPARE
    pub const PREPARE: u8 = 0x09;
    /// EXECUTE
    pub const EXECUTE: u8 = 0x0A;
    /// REGISTER
    pub const REGISTER: u8 = 0x0B;
    /// EVENT
    pub const EVENT: u8 = 0x0C;
    /// BATCH
    pub const BATCH: u8 = 0x0D;
    /// AUTH_RESPONSE
    pub const AUTH_RESPONSE: u8 = 0x0F;
    /// AUTH_SUCCESS
    pub const AUTH_SUCCESS: u8 = 0x10;
}

/// `[string]`: a length of two bytes, then UTF-8. Texts here are ours and short; longer ones are cut.
pub fn put_string(out: &mut Vec<u8>, text: &str) {
    let len = u16::try_from(text.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&len.to_be_bytes());
    out.extend(text.bytes().take(len.into()));
}

/// `[long string]`: a length of four bytes, then UTF-8.
pub fn put_long_string(out: &mut Vec<u8>, text: &str) {
    put_bytes(out, text.as_bytes());
}

/// `[bytes]`: a length of four bytes, then the bytes. More than 2 GiB would be cut, which no run sends.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = i32::try_from(bytes.len()).unwrap_or(i32::MAX);
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(bytes);
}

/// `[short bytes]`: a length of two bytes, then the bytes.
pub fn put_short_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&len.to_be_bytes());
    out.extend(bytes.iter().take(len.into()));
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
            // Writing to a String cannot fail.
            let _infallible = write!(out, "{byte:02x}");
            out
        })
}

/// Bytes of hexadecimal text; `None` when it is not.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok()))
        .collect::<Option<_>>();
    let digits = digits?;
    if digits.len() % 2 != 0 {
        return None;
    }
    Some(
        digits
            .chunks(2)
            .filter_map(|pair| Some((pair.first()? << 4) | pair.get(1)?))
            .collect(),
    )
}
