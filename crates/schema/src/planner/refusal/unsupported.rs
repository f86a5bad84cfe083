//! CQL that this server does not support yet.

use thiserror::Error;

/// CQL that Cassandra supports and this server does not yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unsupported {
    /// A term that is no call where a call is required.
    #[error("This term is not supported yet")]
    Term,
    /// A cast of several terms.
    #[error("This cast is not supported yet")]
    Cast,
    /// A selector that is no call where a call is required.
    #[error("This selector is not supported yet")]
    Selector,
}
