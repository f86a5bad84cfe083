//! The secrets of a fleet and the steps of their change, as a server passes them on.

use std::fmt;

/// Random bytes that all nodes of a fleet know.
pub type SecretBytes = [u8; 32];

/// The secrets of a fleet that are valid now.
#[derive(Clone, PartialEq, Eq)]
pub struct PeerSecrets {
    /// The secret.
    pub current: SecretBytes,
    /// The one that will follow. `None` means that it is not being changed.
    pub next: Option<SecretBytes>,
}

impl fmt::Debug for PeerSecrets {
    /// Prints no secret.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut form = out.debug_struct("PeerSecrets");
        form.field("is_changing", &self.next.is_some()).finish_non_exhaustive()
    }
}

/// A step of the change of a fleet's secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SecretChange {
    /// Adds the next secret: these random bytes. Does nothing if there is one.
    Begin(SecretBytes),
    /// Leaves the next secret alone. Does nothing if there is none.
    End,
}

impl fmt::Debug for SecretChange {
    /// Prints no secret.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Begin(_) => "Begin",
            Self::End => "End",
        })
    }
}
