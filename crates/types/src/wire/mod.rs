//! The native protocol, versions 3, 4 and 5: bytes ⇄ messages. No sockets, no tasks, no CQL, no schema.
//!
//! The life of a request's bytes: [`frame::Decoder`] receives the bytes read and returns whole envelopes, a
//! [`Header`] and its body; [`request::Request::parse`] parses the body, borrowing text and slicing values
//! without copying. The life of a response: [`frame::Encoder`] writes a [`response::Response`] straight into the bytes
//! for the socket; lengths and checksums are filled in afterwards.
//!
//! ```text
//! v3, v4   envelope envelope …                    each body may be compressed (flag 01)
//! v5       segment { envelope … } segment { … }   after the answer to STARTUP; header CRC24, payload CRC32, lz4 per segment
//!
//! envelope  version u8 · flags u8 · stream i16 · opcode u8 · length i32 · body
//! ```
//!
//! Invariants: no length is trusted before it is compared with a limit or with the bytes received; bad input is a
//! [`Malformed`] or a [`frame::Fatal`], never a panic; a value is a slice of the buffer in which it arrived.
//!
//! Deliberately absent: protocol versions 1, 2 and 6; request encoding exists for tests and tools, response decoding
//! does not.
//!
//! Sources: native_protocol_v3.spec, v4.spec and v5.spec of Apache Cassandra; the behaviour of its drivers where it
//! differs.

pub mod cursor;
pub mod frame;
mod header;
pub mod request;
pub mod response;
pub mod value;
pub mod write;

pub use cursor::{Malformed, Reader};
pub use header::{HEADER_BYTES, Header, RESPONSE_BIT};
pub use value::{BatchType, Consistency, Value};

/// A supported version of the native protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// Version 3: no unset values, no warnings, no payloads.
    V3,
    /// Version 4: used by most drivers.
    V4,
    /// Version 5: segments with checksums, 32-bit query flags, result metadata ids.
    V5,
}

impl Version {
    /// Every version, lowest first.
    pub const ALL: [Self; 3] = [Self::V3, Self::V4, Self::V5];
    /// The highest version; refusals are written in it.
    pub const HIGHEST: Self = Self::V5;

    /// The version in a request's first byte. `None` means another version, or a response's byte.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            3 => Some(Self::V3),
            4 => Some(Self::V4),
            5 => Some(Self::V5),
            _ => None,
        }
    }

    /// The number of the version: 3, 4 or 5.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::V3 => 3,
            Self::V4 => 4,
            Self::V5 => 5,
        }
    }

    /// The version's position in [`Version::ALL`], for tables by version.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::V3 => 0,
            Self::V4 => 1,
            Self::V5 => 2,
        }
    }

    /// The names as SUPPORTED lists them (`PROTOCOL_VERSIONS`).
    pub const NAMES: [&'static str; 3] = ["3/v3", "4/v4", "5/v5"];

    /// The version as messages name it, for example `4/v4`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V3 => "3/v3",
            Self::V4 => "4/v4",
            Self::V5 => "5/v5",
        }
    }
}

/// The algorithms that STARTUP may request under `COMPRESSION`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// LZ4 block format.
    Lz4,
    /// Raw snappy format; not in version 5.
    Snappy,
}

impl Compression {
    /// The names as SUPPORTED lists them, in Cassandra's order.
    pub const NAMES: [&'static str; 2] = ["snappy", "lz4"];

    /// The algorithm of that name, without regard to case.
    #[must_use]
    pub const fn from_name(name: &str) -> Option<Self> {
        if name.eq_ignore_ascii_case("lz4") {
            Some(Self::Lz4)
        } else if name.eq_ignore_ascii_case("snappy") {
            Some(Self::Snappy)
        } else {
            None
        }
    }

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lz4 => "lz4",
            Self::Snappy => "snappy",
        }
    }
}

/// The kind of a message: the fourth field of a frame header (native_protocol_v5.spec §2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the protocol's own")]
pub enum Opcode {
    Error,
    Startup,
    Ready,
    Authenticate,
    Options,
    Supported,
    Query,
    Result,
    Prepare,
    Execute,
    Register,
    Event,
    Batch,
    AuthChallenge,
    AuthResponse,
    AuthSuccess,
}

impl Opcode {
    /// Every opcode.
    pub const ALL: [Self; 16] = [
        Self::Error,
        Self::Startup,
        Self::Ready,
        Self::Authenticate,
        Self::Options,
        Self::Supported,
        Self::Query,
        Self::Result,
        Self::Prepare,
        Self::Execute,
        Self::Register,
        Self::Event,
        Self::Batch,
        Self::AuthChallenge,
        Self::AuthResponse,
        Self::AuthSuccess,
    ];

    /// The opcode of that number. `None` means an unknown one (04, CREDENTIALS, was removed in version 2).
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0x00 => Self::Error,
            0x01 => Self::Startup,
            0x02 => Self::Ready,
            0x03 => Self::Authenticate,
            0x05 => Self::Options,
            0x06 => Self::Supported,
            0x07 => Self::Query,
            0x08 => Self::Result,
            0x09 => Self::Prepare,
            0x0A => Self::Execute,
            0x0B => Self::Register,
            0x0C => Self::Event,
            0x0D => Self::Batch,
            0x0E => Self::AuthChallenge,
            0x0F => Self::AuthResponse,
            0x10 => Self::AuthSuccess,
            _ => return None,
        })
    }

    /// The number on the wire.
    #[must_use]
    pub const fn byte(self) -> u8 {
        match self {
            Self::Error => 0x00,
            Self::Startup => 0x01,
            Self::Ready => 0x02,
            Self::Authenticate => 0x03,
            Self::Options => 0x05,
            Self::Supported => 0x06,
            Self::Query => 0x07,
            Self::Result => 0x08,
            Self::Prepare => 0x09,
            Self::Execute => 0x0A,
            Self::Register => 0x0B,
            Self::Event => 0x0C,
            Self::Batch => 0x0D,
            Self::AuthChallenge => 0x0E,
            Self::AuthResponse => 0x0F,
            Self::AuthSuccess => 0x10,
        }
    }

    /// The name as messages write it, for example `QUERY`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "ERROR",
            Self::Startup => "STARTUP",
            Self::Ready => "READY",
            Self::Authenticate => "AUTHENTICATE",
            Self::Options => "OPTIONS",
            Self::Supported => "SUPPORTED",
            Self::Query => "QUERY",
            Self::Result => "RESULT",
            Self::Prepare => "PREPARE",
            Self::Execute => "EXECUTE",
            Self::Register => "REGISTER",
            Self::Event => "EVENT",
            Self::Batch => "BATCH",
            Self::AuthChallenge => "AUTH_CHALLENGE",
            Self::AuthResponse => "AUTH_RESPONSE",
            Self::AuthSuccess => "AUTH_SUCCESS",
        }
    }

    /// Whether a client may send it.
    #[must_use]
    pub const fn is_request(self) -> bool {
        matches!(
            self,
            Self::Startup
                | Self::Options
                | Self::Query
                | Self::Prepare
                | Self::Execute
                | Self::Register
                | Self::Batch
                | Self::AuthResponse
        )
    }
}

/// Bits of a frame header's flags (native_protocol_v5.spec §2.2).
pub mod flags {
    /// The body is compressed; versions 3 and 4 only.
    pub const COMPRESSED: u8 = 0x01;
    /// Request: trace it. Response: the body begins with a tracing id.
    pub const TRACING: u8 = 0x02;
    /// The body has a custom payload; version 4 and above.
    pub const CUSTOM_PAYLOAD: u8 = 0x04;
    /// Response: the body has warnings; version 4 and above.
    pub const WARNING: u8 = 0x08;
    /// The client accepts a beta version.
    pub const USE_BETA: u8 = 0x10;
}
