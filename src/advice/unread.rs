//! Commands in a schema file that only cqlsh executes, and without which the file has another meaning.

/// A cqlsh command that creates tables or rows, so the file has another meaning without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// SOURCE.
    #[error("SOURCE is a command of cqlsh and is not run here: name that file itself, with --init or to lint")]
    Source,
    /// COPY.
    #[error("COPY is a command of cqlsh and is not run here: load rows with `helenus import`")]
    Copy,
}
