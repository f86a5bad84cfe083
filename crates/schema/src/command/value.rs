//! A value of a command: what a front end bound or wrote.

use bytes::Bytes;

/// A value that a client bound or wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `null`
    Null,
    /// Not set: leaves a column unchanged.
    Unset,
    /// The value's wire bytes.
    Bytes(Bytes),
}
