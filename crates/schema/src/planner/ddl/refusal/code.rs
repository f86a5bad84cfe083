//! Protocol error codes of refused schema changes.

/// The errors that a client can distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code<'a> {
    /// Syntax_error 0x2000: properties that the grammar cannot validate.
    Syntax,
    /// Unauthorized 0x2100: system keyspaces.
    Unauthorized,
    /// Invalid 0x2200.
    Invalid,
    /// Config_error 0x2300.
    Configuration,
    /// Already_exists 0x2400.
    AlreadyExists {
        /// The keyspace.
        keyspace: &'a str,
        /// The table or view; empty for a keyspace.
        table: &'a str,
    },
}
