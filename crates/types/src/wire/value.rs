//! Contents of requests besides text: bound values, consistency levels, kinds of batch.

use bytes::Bytes;

pub use crate::consistency::Consistency;

/// A value bound to a marker: `[value]` (native_protocol_v5.spec §3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Length −1.
    Null,
    /// Length −2: leave the cell unchanged. Version 4 and above.
    Unset,
    /// The encoded value; a slice of the request's own buffer. May be empty, which is not null.
    Bytes(Bytes),
}

impl Consistency {
    /// The level of that code. `None` means an unknown one.
    #[must_use]
    pub fn from_code(code: u16) -> Option<Self> {
        if code == Self::NodeLocal.code() {
            return Some(Self::NodeLocal);
        }
        Self::ALL.get(usize::from(code)).copied()
    }

    /// The code on the wire.
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            Self::Any => 0,
            Self::One => 1,
            Self::Two => 2,
            Self::Three => 3,
            Self::Quorum => 4,
            Self::All => 5,
            Self::LocalQuorum => 6,
            Self::EachQuorum => 7,
            Self::Serial => 8,
            Self::LocalSerial => 9,
            Self::LocalOne => 10,
            Self::NodeLocal => 11,
        }
    }
}

/// The atomicity of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BatchType {
    /// All or nothing, through the batch log.
    Logged,
    /// All or nothing only within a partition.
    Unlogged,
    /// Counter updates.
    Counter,
}

impl BatchType {
    /// The type of that code. `None` means an unknown one.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Logged),
            1 => Some(Self::Unlogged),
            2 => Some(Self::Counter),
            _ => None,
        }
    }

    /// The code on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Logged => 0,
            Self::Unlogged => 1,
            Self::Counter => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_names_one_level() {
        for level in Consistency::ALL {
            assert_eq!(Consistency::from_code(level.code()), Some(level));
        }
        assert_eq!(Consistency::from_code(11), Some(Consistency::NodeLocal));
        assert_eq!(Consistency::from_code(12), None);
    }
}
