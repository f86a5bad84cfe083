//! Everything a compatibility run can fail with.

/// Why a run could not go on. A difference between two servers is a finding, not an error.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A socket, file or process failed.
    #[error("{context}: {source}")]
    Io {
        /// What was being done.
        context: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A message from the server that cannot be read.
    #[error("malformed answer: {0}")]
    Malformed(&'static str),
    /// A script or list in this folder that cannot be read.
    #[error("{file}:{line}: {problem}")]
    Script {
        /// File name.
        file: String,
        /// Line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// The server refused something that had to succeed.
    #[error("{doing}: {code}: {message}")]
    Refused {
        /// The statement or step.
        doing: String,
        /// Error code, as in `0x2200`.
        code: String,
        /// The server's text.
        message: String,
    },
    /// A check of a run did not hold.
    #[error("{0}")]
    Failed(String),
    /// Cassandra did not build a view in time; the statement that asks whether it is built.
    #[error("Cassandra did not build a view in time: {0}")]
    Unbuilt(String),
    /// This machine lacks what a run needs; says what.
    #[error("skipped, {0}")]
    Skipped(String),
    /// The Rust driver failed.
    #[error("driver: {0}")]
    Driver(String),
    /// JSON that cannot be read.
    #[error("json: {0}")]
    Json(#[from] serde_json::Error),
}

impl From<std::io::Error> for Error {
    fn from(source: std::io::Error) -> Self {
        Self::Io {
            context: "i/o".to_owned(),
            source,
        }
    }
}

impl Error {
    /// An [`Error::Failed`] with this text.
    pub fn failed(text: impl Into<String>) -> Self {
        Self::Failed(text.into())
    }

    /// Names what was being done when `source` happened.
    pub fn io(context: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let context = context.into();
        move |source| Self::Io { context, source }
    }
}
