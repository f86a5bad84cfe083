//! Requests: parsing of a client's body, without copying.
//!
//! Text and ids are borrowed from the body, values are slices that share its memory. Trailing bytes are ignored, as in
//! Cassandra. A custom payload (flag 04) precedes the message; parsing skips it, and [`payload`] reads it separately.

mod batch;
mod query;
mod session;

use bytes::Bytes;

pub use batch::{Batch, BatchStatement, Subject};
pub use query::{Execute, Params, Prepare, Query, Values};
pub use session::{AuthResponse, EventKind, Register, Startup};

use super::cursor::{Malformed, Read, Reader};
use super::header::{Header, patch_length};
use super::{Opcode, Version, flags};

/// A message from a client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the protocol's own")]
pub enum Request<'a> {
    Startup(Startup<'a>),
    AuthResponse(AuthResponse),
    Options,
    Query(Query<'a>),
    Prepare(Prepare<'a>),
    Execute(Execute<'a>),
    Batch(Batch<'a>),
    Register(Register),
}

/// The custom payload of a request: names and values, null ones empty. Empty if its header does not announce one.
///
/// # Errors
/// A body that is malformed.
pub fn payload(header: &Header, body: &Bytes) -> Read<Vec<(String, Bytes)>> {
    if header.flags & flags::CUSTOM_PAYLOAD == 0 || header.version < Version::V4 {
        return Ok(Vec::new());
    }
    let map = Reader::new(body).bytes_map("custom payload")?;
    Ok(map.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

impl<'a> Request<'a> {
    /// Reads the body of the request that `header` announces.
    ///
    /// # Errors
    /// An opcode that is no request's, or a malformed body.
    pub fn parse(header: &Header, body: &'a Bytes) -> Read<Self> {
        let version = header.version;
        let mut reader = Reader::new(body);
        if header.flags & flags::CUSTOM_PAYLOAD != 0 {
            if version < Version::V4 {
                return Err(Malformed::Unsupported {
                    what: "Received frame with CUSTOM_PAYLOAD flag for native protocol version < 4",
                });
            }
            reader.skip_bytes_map("custom payload")?;
        }
        let Some(opcode) = header.opcode() else {
            return Err(Malformed::Code {
                field: "opcode",
                code: header.opcode_byte.into(),
            });
        };
        match opcode {
            Opcode::Startup => Startup::read(&mut reader).map(Self::Startup),
            Opcode::AuthResponse => AuthResponse::read(&mut reader).map(Self::AuthResponse),
            Opcode::Options => Ok(Self::Options),
            Opcode::Query => Query::read(&mut reader, version).map(Self::Query),
            Opcode::Prepare => Prepare::read(&mut reader, version).map(Self::Prepare),
            Opcode::Execute => Execute::read(&mut reader, version).map(Self::Execute),
            Opcode::Batch => Batch::read(&mut reader, version).map(Self::Batch),
            Opcode::Register => Register::read(&mut reader).map(Self::Register),
            Opcode::Error
            | Opcode::Ready
            | Opcode::Authenticate
            | Opcode::Supported
            | Opcode::Result
            | Opcode::Event
            | Opcode::AuthChallenge
            | Opcode::AuthSuccess => Err(Malformed::Unsupported {
                what: "A response was sent as a request",
            }),
        }
    }

    /// The opcode of the message.
    #[must_use]
    pub const fn opcode(&self) -> Opcode {
        match self {
            Self::Startup(_) => Opcode::Startup,
            Self::AuthResponse(_) => Opcode::AuthResponse,
            Self::Options => Opcode::Options,
            Self::Query(_) => Opcode::Query,
            Self::Prepare(_) => Opcode::Prepare,
            Self::Execute(_) => Opcode::Execute,
            Self::Batch(_) => Opcode::Batch,
            Self::Register(_) => Opcode::Register,
        }
    }

    /// Writes the body, as a client does. Fields that the version does not have (a per-request keyspace before version
    /// 5) are left out.
    pub fn write(&self, out: &mut Vec<u8>, version: Version) {
        match self {
            Self::Startup(message) => message.write(out),
            Self::AuthResponse(message) => message.write(out),
            Self::Options => {}
            Self::Query(message) => message.write(out, version),
            Self::Prepare(message) => message.write(out, version),
            Self::Execute(message) => message.write(out, version),
            Self::Batch(message) => message.write(out, version),
            Self::Register(message) => message.write(out),
        }
    }

    /// Writes a whole bare frame, as a client does (version 5: only before STARTUP has been answered).
    pub fn write_frame(&self, out: &mut Vec<u8>, version: Version, stream: i16, frame_flags: u8) {
        let start = out.len();
        out.extend_from_slice(&[version.number(), frame_flags]);
        out.extend_from_slice(&stream.to_be_bytes());
        out.extend_from_slice(&[self.opcode().byte(), 0, 0, 0, 0]);
        self.write(out, version);
        patch_length(out, start);
    }
}
