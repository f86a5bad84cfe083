//! Why a DDL statement is refused. A variant for each code of the protocol, since that is what a client can tell apart; the
//! sentences are Cassandra's and stand where the rule that they are about is checked.

/// A DDL statement was refused; nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DdlError {
    /// Syntax_error 0x2000: properties that the grammar cannot judge.
    #[error("{0}")]
    Syntax(String),
    /// Unauthorized 0x2100: system keyspaces.
    #[error("{0}")]
    Unauthorized(String),
    /// Invalid 0x2200.
    #[error("{0}")]
    Invalid(String),
    /// Config_error 0x2300.
    #[error("{0}")]
    Configuration(String),
    /// Already_exists 0x2400. `table` is empty for a keyspace.
    #[error("{}", already_exists(.keyspace, .table))]
    AlreadyExists {
        /// The keyspace.
        keyspace: String,
        /// The table or view, empty if it is about the keyspace.
        table: String,
    },
}

fn already_exists(keyspace: &str, table: &str) -> String {
    if table.is_empty() {
        format!("Cannot add existing keyspace \"{keyspace}\"")
    } else {
        format!("Cannot add already existing table \"{table}\" to keyspace \"{keyspace}\"")
    }
}

/// `Invalid` with a formatted sentence.
macro_rules! invalid {
    ($($text:tt)*) => { $crate::planner::ddl::DdlError::Invalid(format!($($text)*)) };
}

/// `Configuration` with a formatted sentence.
macro_rules! configuration {
    ($($text:tt)*) => { $crate::planner::ddl::DdlError::Configuration(format!($($text)*)) };
}

/// `Syntax` with a formatted sentence.
macro_rules! syntax {
    ($($text:tt)*) => { $crate::planner::ddl::DdlError::Syntax(format!($($text)*)) };
}

pub(super) use {configuration, invalid, syntax};
