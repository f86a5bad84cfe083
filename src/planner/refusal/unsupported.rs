//! What this server does not carry out yet.

use thiserror::Error;

/// CQL that Cassandra knows and this server does not carry out yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unsupported {
    /// A term that is no call where a call must stand.
    #[error("This term is not supported yet")]
    Term,
    /// A cast of several terms.
    #[error("This cast is not supported yet")]
    Cast,
    /// A selector that is no call where a call must stand.
    #[error("This selector is not supported yet")]
    Selector,
}
