//! Responses to clients, written straight into the bytes of the socket.
//!
//! A [`Response`] is a body and the optional fields before it: a tracing id, warnings, a custom payload. The caller
//! encodes rows ([`Rows::content`]); their metadata is encoded once and cached ([`Metadata`]).

mod error;
mod event;
mod metadata;
mod option;
mod result;

use bytes::Bytes;

pub use error::{ErrorBody, ErrorCode, ErrorDetail, FailureReason};
pub use event::{ChangeKind, ChangeTarget, Event, SchemaChange, StatusChange, TopologyChange};
pub use metadata::{ColumnSpec, Metadata};
pub use option::{class_name, write_option};
pub use result::{MetadataMode, Prepared, Rows, result_metadata_id};

use super::{Opcode, Version, flags, write};

/// A response to a request, or an event.
#[derive(Clone, Debug)]
pub struct Response {
    /// The message.
    pub body: Body,
    /// The id under which the request was traced, if it was.
    pub tracing_id: Option<[u8; 16]>,
    /// Fields that few responses have.
    pub extras: Option<Box<Extras>>,
}

/// Warnings and custom payload, version 4 and above; left out in version 3.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// Custom payload for the client. Left out if there are warnings: the Java driver reads the two in the opposite
    /// order to the specification and all other drivers.
    pub payload: Vec<(String, Bytes)>,
}

/// A message to a client.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names are the protocol's own")]
pub enum Body {
    Error(Box<ErrorBody>),
    Ready,
    /// The class of the authenticator.
    Authenticate(&'static str),
    /// Options and their possible values.
    Supported(Vec<(&'static str, Vec<&'static str>)>),
    AuthChallenge(Bytes),
    AuthSuccess,
    Event(Event),
    /// RESULT without content.
    Void,
    /// RESULT with rows.
    Rows(Rows),
    /// RESULT of USE.
    SetKeyspace(String),
    /// RESULT of PREPARE.
    Prepared(Box<Prepared>),
    /// RESULT of a statement that changed the schema.
    SchemaChange(Box<SchemaChange>),
    /// A message as another node of the cluster has written it, in the version of this connection.
    Relayed(Relayed),
}

/// A message that another node has written: [`Response::write`] with [`Response::flags`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relayed {
    /// The opcode.
    pub opcode: Opcode,
    /// The flags of the frame's header.
    pub flags: u8,
    /// The body, with the fields that precede the message.
    pub bytes: Bytes,
}

impl Body {
    /// The opcode of the message.
    #[must_use]
    pub const fn opcode(&self) -> Opcode {
        match self {
            Self::Error(_) => Opcode::Error,
            Self::Ready => Opcode::Ready,
            Self::Authenticate(_) => Opcode::Authenticate,
            Self::Supported(_) => Opcode::Supported,
            Self::AuthChallenge(_) => Opcode::AuthChallenge,
            Self::AuthSuccess => Opcode::AuthSuccess,
            Self::Event(_) => Opcode::Event,
            Self::Relayed(relayed) => relayed.opcode,
            Self::Void | Self::Rows(_) | Self::SetKeyspace(_) | Self::Prepared(_) | Self::SchemaChange(_) => {
                Opcode::Result
            }
        }
    }

    fn write(&self, out: &mut Vec<u8>, version: Version) {
        match self {
            Self::Error(error) => error.write(out, version),
            Self::Ready => {}
            Self::Authenticate(class) => write::string(out, class),
            Self::Supported(options) => {
                let count = write::short_count(out, options.len());
                for (key, values) in options.iter().take(count) {
                    write::string(out, key);
                    write::string_list(out, values);
                }
            }
            Self::AuthChallenge(token) => write::bytes(out, Some(token)),
            // Null, not empty: Python's driver decodes a value as text.
            Self::AuthSuccess => write::bytes(out, None),
            Self::Event(event) => event.write(out, version),
            Self::Void => write::int(out, result::VOID),
            Self::Rows(rows) => rows.write(out, version),
            Self::SetKeyspace(keyspace) => {
                write::int(out, result::SET_KEYSPACE);
                write::string(out, keyspace);
            }
            Self::Prepared(prepared) => prepared.write(out, version),
            Self::SchemaChange(change) => {
                write::int(out, result::SCHEMA_CHANGE);
                change.write(out, version);
            }
            Self::Relayed(relayed) => out.extend_from_slice(&relayed.bytes),
        }
    }
}

impl From<Body> for Response {
    fn from(body: Body) -> Self {
        Self {
            body,
            tracing_id: None,
            extras: None,
        }
    }
}

impl From<ErrorBody> for Response {
    fn from(error: ErrorBody) -> Self {
        Body::Error(Box::new(error)).into()
    }
}

impl Response {
    /// The same response with warnings and a custom payload.
    #[must_use]
    pub fn with_extras(mut self, warnings: Vec<String>, payload: Vec<(String, Bytes)>) -> Self {
        if !warnings.is_empty() || !payload.is_empty() {
            self.extras = Some(Box::new(Extras { warnings, payload }));
        }
        self
    }

    fn warnings(&self, version: Version) -> &[String] {
        match &self.extras {
            Some(extras) if version >= Version::V4 => &extras.warnings,
            _ => &[],
        }
    }

    fn payload(&self, version: Version) -> &[(String, Bytes)] {
        match &self.extras {
            Some(extras) if version >= Version::V4 && extras.warnings.is_empty() => &extras.payload,
            _ => &[],
        }
    }

    /// The flags of the frame's header.
    #[must_use]
    pub fn flags(&self, version: Version) -> u8 {
        let mut bits = match &self.body {
            Body::Relayed(relayed) => relayed.flags,
            _ => 0,
        };
        if self.tracing_id.is_some() {
            bits |= flags::TRACING;
        }
        if !self.warnings(version).is_empty() {
            bits |= flags::WARNING;
        }
        if !self.payload(version).is_empty() {
            bits |= flags::CUSTOM_PAYLOAD;
        }
        bits
    }

    /// Writes the body, with the fields that precede the message.
    pub fn write(&self, out: &mut Vec<u8>, version: Version) {
        if let Some(id) = &self.tracing_id {
            out.extend_from_slice(id);
        }
        let warnings = self.warnings(version);
        if !warnings.is_empty() {
            write::string_list(out, warnings);
        }
        let payload = self.payload(version);
        if !payload.is_empty() {
            write::bytes_map(out, payload);
        }
        self.body.write(out, version);
    }
}

/// The refusal of an unsupported version, as raw bytes of the socket.
///
/// On stream 0, because gocql downgrades only then; in the highest supported version, which Node's driver uses.
/// Versions 1 and 2 have a header of 8 bytes and are answered with one.
#[must_use]
pub fn version_refusal(version_byte: u8) -> Vec<u8> {
    let number = version_byte & 0x7F;
    let text = format!(
        "Invalid or unsupported protocol version ({number}); supported versions are ({})",
        Version::NAMES.join(", ")
    );
    let mut body = Vec::new();
    ErrorBody::new(ErrorCode::Protocol, text).write(&mut body, Version::HIGHEST);
    let mut out = if matches!(number, 1 | 2) {
        vec![super::header::RESPONSE_BIT | number, 0, 0, Opcode::Error.byte()]
    } else {
        vec![
            super::header::RESPONSE_BIT | Version::HIGHEST.number(),
            0,
            0,
            0,
            Opcode::Error.byte(),
        ]
    };
    write::bytes(&mut out, Some(&body));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_and_warnings_never_go_together() {
        let response = Response::from(Body::Void).with_extras(vec!["w".into()], vec![("k".into(), Bytes::new())]);
        assert_eq!(response.flags(Version::V4), flags::WARNING);
        assert_eq!(response.flags(Version::V3), 0);
        let mut out = Vec::new();
        response.write(&mut out, Version::V4);
        assert_eq!(out, [0, 1, 0, 1, b'w', 0, 0, 0, 1]);
        let response = Response::from(Body::Void).with_extras(Vec::new(), vec![("k".into(), Bytes::new())]);
        assert_eq!(response.flags(Version::V5), flags::CUSTOM_PAYLOAD);
    }

    #[test]
    fn refusals_have_the_requested_versions_shape() {
        let refusal = version_refusal(0x42);
        assert_eq!(&refusal[..5], &[0x85, 0, 0, 0, 0]);
        let text = String::from_utf8_lossy(&refusal[15..]).into_owned();
        assert_eq!(
            text,
            "Invalid or unsupported protocol version (66); supported versions are (3/v3, 4/v4, 5/v5)"
        );
        assert_eq!(&version_refusal(1)[..4], &[0x81, 0, 0, 0]);
    }
}
