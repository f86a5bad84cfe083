//! What a file says to cqlsh alone, and a file without it would not mean.

/// A command of cqlsh that makes tables or rows, so that a file means something else without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// SOURCE.
    #[error("SOURCE is a command of cqlsh and is not run here: name that file itself, with --init or to lint")]
    Source,
    /// COPY.
    #[error("COPY is a command of cqlsh and is not run here: load rows with `helenus import`")]
    Copy,
}
