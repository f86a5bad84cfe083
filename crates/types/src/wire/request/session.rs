//! The messages that set up a connection: STARTUP, AUTH_RESPONSE, REGISTER.

use bytes::Bytes;

use super::super::cursor::{Malformed, Read, Reader};
use super::super::write;

/// The request that opens a connection: its options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Startup<'a> {
    /// As sent; keys are compared without regard to case.
    pub options: Vec<(&'a str, &'a str)>,
}

impl<'a> Startup<'a> {
    /// The value of an option, without regard to the key's case; the last one if there are several.
    #[must_use]
    pub fn option(&self, key: &str) -> Option<&'a str> {
        let same = |(name, _): &&(&str, &'a str)| name.eq_ignore_ascii_case(key);
        self.options.iter().rev().find(same).map(|(_, value)| *value)
    }

    pub(super) fn read(reader: &mut Reader<'a>) -> Read<Self> {
        reader.string_map("options").map(|options| Self { options })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let count = write::short_count(out, self.options.len());
        for (key, value) in self.options.iter().take(count) {
            write::string(out, key);
            write::string(out, value);
        }
    }
}

/// The client's side of authentication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthResponse {
    /// The mechanism's token. `None` means the client sent null.
    pub token: Option<Bytes>,
}

impl AuthResponse {
    pub(super) fn read(reader: &mut Reader<'_>) -> Read<Self> {
        reader.bytes("token").map(|token| Self { token })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        write::bytes(out, self.token.as_deref());
    }
}

/// A kind of event for which a connection can register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// Nodes join and leave.
    TopologyChange,
    /// Nodes go up and down.
    StatusChange,
    /// Keyspaces, tables, types, functions and aggregates change.
    SchemaChange,
}

impl EventKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::TopologyChange, Self::StatusChange, Self::SchemaChange];

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TopologyChange => "TOPOLOGY_CHANGE",
            Self::StatusChange => "STATUS_CHANGE",
            Self::SchemaChange => "SCHEMA_CHANGE",
        }
    }
}

/// A registration for events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// The kinds.
    pub kinds: Vec<EventKind>,
}

impl Register {
    pub(super) fn read(reader: &mut Reader<'_>) -> Read<Self> {
        let names = reader.string_list("event types")?;
        let kind = |name: &&str| {
            EventKind::ALL
                .into_iter()
                .find(|kind| kind.name().eq_ignore_ascii_case(name))
        };
        names
            .iter()
            .map(|name| {
                kind(name).ok_or(Malformed::Unsupported {
                    what: "Unknown event type",
                })
            })
            .collect::<Read<Vec<_>>>()
            .map(|kinds| Self { kinds })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let names: Vec<&str> = self.kinds.iter().map(|kind| kind.name()).collect();
        write::string_list(out, &names);
    }
}
