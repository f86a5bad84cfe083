//! Changes of the schema, of the ring and of nodes: the bodies of EVENT, and RESULT's Schema_change
//! (native_protocol_v5.spec §4.2.6).

use std::net::SocketAddr;

use super::super::request::EventKind;
use super::super::{Version, write};

/// The kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the protocol's own")]
pub enum ChangeKind {
    Created,
    Updated,
    Dropped,
}

impl ChangeKind {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Created => "CREATED",
            Self::Updated => "UPDATED",
            Self::Dropped => "DROPPED",
        }
    }
}

/// The changed object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeTarget {
    /// A keyspace.
    Keyspace,
    /// A table or view, by name. A change of an index is one of its table.
    Table(String),
    /// A user-defined type, by name.
    Type(String),
    /// A function, by name and types of its arguments.
    Function(String, Vec<String>),
    /// An aggregate, by name and types of its arguments.
    Aggregate(String, Vec<String>),
}

/// A change of the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaChange {
    /// The kind of change.
    pub kind: ChangeKind,
    /// The keyspace.
    pub keyspace: String,
    /// The changed object.
    pub target: ChangeTarget,
}

impl SchemaChange {
    pub(super) fn write(&self, out: &mut Vec<u8>, version: Version) {
        let (target, name, arguments) = match &self.target {
            ChangeTarget::Keyspace => ("KEYSPACE", None, None),
            ChangeTarget::Table(name) => ("TABLE", Some(name), None),
            ChangeTarget::Type(name) => ("TYPE", Some(name), None),
            // Version 3 has no such targets: it reports a change of the keyspace (SchemaChange.serializeEvent).
            ChangeTarget::Function(..) | ChangeTarget::Aggregate(..) if version < Version::V4 => {
                write::string(out, ChangeKind::Updated.name());
                write::string(out, "KEYSPACE");
                write::string(out, &self.keyspace);
                return;
            }
            ChangeTarget::Function(name, arguments) => ("FUNCTION", Some(name), Some(arguments)),
            ChangeTarget::Aggregate(name, arguments) => ("AGGREGATE", Some(name), Some(arguments)),
        };
        write::string(out, self.kind.name());
        write::string(out, target);
        write::string(out, &self.keyspace);
        if let Some(name) = name {
            write::string(out, name);
        }
        if let Some(arguments) = arguments {
            write::string_list(out, arguments);
        }
    }
}

/// A change of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the protocol's own")]
pub enum TopologyChange {
    NewNode,
    RemovedNode,
}

/// A change of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the protocol's own")]
pub enum StatusChange {
    Up,
    Down,
}

/// An event for registered connections. Addresses are those to which clients connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The ring changed.
    Topology(TopologyChange, SocketAddr),
    /// A node changed.
    Status(StatusChange, SocketAddr),
    /// The schema changed.
    Schema(SchemaChange),
}

impl Event {
    /// The kind under which clients register for it.
    #[must_use]
    pub const fn kind(&self) -> EventKind {
        match self {
            Self::Topology(..) => EventKind::TopologyChange,
            Self::Status(..) => EventKind::StatusChange,
            Self::Schema(_) => EventKind::SchemaChange,
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>, version: Version) {
        write::string(out, self.kind().name());
        match self {
            Self::Topology(change, address) => {
                let name = match change {
                    TopologyChange::NewNode => "NEW_NODE",
                    TopologyChange::RemovedNode => "REMOVED_NODE",
                };
                write::string(out, name);
                write::inet(out, *address);
            }
            Self::Status(change, address) => {
                let name = match change {
                    StatusChange::Up => "UP",
                    StatusChange::Down => "DOWN",
                };
                write::string(out, name);
                write::inet(out, *address);
            }
            Self::Schema(change) => change.write(out, version),
        }
    }
}
