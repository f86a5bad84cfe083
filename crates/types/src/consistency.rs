//! Consistency levels: how many replicas must take part in a request; and the kinds of write, which errors name next to
//! a level.
//!
//! A plain value that every module may use: it arrives with a frame, is checked with a statement, and selects replicas.
//! Its meaning in a module is defined there: its code in `wire::value`, the number of replicas in
//! `partition::replicas`.

use serde::{Deserialize, Serialize};

/// A consistency level: `[consistency]` (native_protocol_v5.spec §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the protocol's own")]
pub enum Consistency {
    Any,
    #[default]
    One,
    Two,
    Three,
    Quorum,
    All,
    LocalQuorum,
    EachQuorum,
    Serial,
    LocalSerial,
    LocalOne,
    /// Used by Cassandra's own tools: no statement is executed at it.
    NodeLocal,
}

impl Consistency {
    /// Every level at which a statement may be executed, in the order of the protocol's codes.
    pub const ALL: [Self; 11] = [
        Self::Any,
        Self::One,
        Self::Two,
        Self::Three,
        Self::Quorum,
        Self::All,
        Self::LocalQuorum,
        Self::EachQuorum,
        Self::Serial,
        Self::LocalSerial,
        Self::LocalOne,
    ];

    /// The name in messages and traces.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Any => "ANY",
            Self::One => "ONE",
            Self::Two => "TWO",
            Self::Three => "THREE",
            Self::Quorum => "QUORUM",
            Self::All => "ALL",
            Self::LocalQuorum => "LOCAL_QUORUM",
            Self::EachQuorum => "EACH_QUORUM",
            Self::Serial => "SERIAL",
            Self::LocalSerial => "LOCAL_SERIAL",
            Self::LocalOne => "LOCAL_ONE",
            Self::NodeLocal => "NODE_LOCAL",
        }
    }

    /// Whether this level decides conditional statements.
    #[must_use]
    pub const fn is_serial(self) -> bool {
        matches!(self, Self::Serial | Self::LocalSerial)
    }
}

/// The kind of a write, as errors name it (native_protocol_v5.spec §8, `<writeType>`). Python's driver breaks on any other name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(missing_docs, reason = "the names are the protocol's own")]
pub enum WriteKind {
    Simple,
    Batch,
    UnloggedBatch,
    Counter,
    BatchLog,
    Cas,
    View,
    Cdc,
}

impl WriteKind {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::Simple,
        Self::Batch,
        Self::UnloggedBatch,
        Self::Counter,
        Self::BatchLog,
        Self::Cas,
        Self::View,
        Self::Cdc,
    ];

    /// The name on the wire, and in a fault plan.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Simple => "SIMPLE",
            Self::Batch => "BATCH",
            Self::UnloggedBatch => "UNLOGGED_BATCH",
            Self::Counter => "COUNTER",
            Self::BatchLog => "BATCH_LOG",
            Self::Cas => "CAS",
            Self::View => "VIEW",
            Self::Cdc => "CDC",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::WriteKind;

    #[test]
    fn a_fault_plan_names_a_write_kind_as_the_wire_does() {
        for kind in WriteKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }
}
