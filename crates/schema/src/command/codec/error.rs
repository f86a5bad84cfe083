//! Why a command does not become a message, or bytes do not become a command.

use super::name::TableName;

/// The command is beyond a bound of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the command has {found} {items}, and a message at most {most}")]
pub struct EncodeError {
    /// The items, in the plural.
    pub items: &'static str,
    /// How many the command has.
    pub found: usize,
    /// Most in a message.
    pub most: usize,
}

/// The bytes are no message that this machine can execute.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Another version of the format.
    #[error("the message has version {found}, this program reads version {known}")]
    Version {
        /// Its version.
        found: u8,
        /// The version of this program.
        known: u8,
    },
    /// They end too soon.
    #[error("the message ends too soon")]
    Short,
    /// More bytes follow.
    #[error("{bytes} bytes follow the message")]
    Trailing {
        /// How many.
        bytes: usize,
    },
    /// A tag that the format does not have.
    #[error("the message has the unknown {of} {found}")]
    Tag {
        /// What the tag names.
        of: &'static str,
        /// The tag.
        found: u8,
    },
    /// Beyond a bound.
    #[error("the message has {found} {items}, of {most} at most")]
    TooMany {
        /// The items, in the plural.
        items: &'static str,
        /// How many it has.
        found: usize,
        /// Most.
        most: usize,
    },
    /// Items that must be sorted and distinct are not.
    #[error("the message has {0} out of order")]
    Order(&'static str),
    /// A text is not UTF-8, or a character does not exist.
    #[error("the message has a text that is not UTF-8")]
    Text,
    /// The table has no column at this position.
    #[error("the message names column {place} of a table with {columns}")]
    Column {
        /// The position.
        place: usize,
        /// How many columns the table has.
        columns: usize,
    },
    /// The receiver does not know the table.
    #[error("the message names the table {0}, which is not there")]
    NoTable(TableName),
    /// The receiver's table differs from the sender's.
    #[error("the message names another definition of the table {0}")]
    OtherDefinition(TableName),
    /// The refusal of a write is to be masked, and the receiver's table has no masks.
    #[error("the message wants masks of the table {0}, which has none")]
    NoMasks(TableName),
}
