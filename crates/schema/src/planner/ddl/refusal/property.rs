//! Why a property is refused, whatever its name.

use thiserror::Error;

/// Why a property is refused, whatever its name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PropertyRefusal {
    /// A duplicate property.
    #[error("Multiple definitions for property '{0}'")]
    Duplicate(String),
    /// Null in a map, for this key.
    #[error("Invalid property value: NULL for property: '{0}'")]
    Null(String),
    /// No property of this name.
    #[error("Unknown property '{0}'")]
    Unknown(String),
    /// A property that is no constant.
    #[error("Invalid value for property '{0}'. It should be a string")]
    NotText(String),
    /// A property that is no map.
    #[error("Invalid value for property '{0}'. It should be a map.")]
    NotMap(String),
    /// A property that is no boolean.
    #[error(
        "Invalid boolean value {text} for '{option}'. Positive values can be '1', 'true' or 'yes'. Negative values can be '0', 'false' or 'no'."
    )]
    Boolean {
        /// The text as written.
        text: String,
        /// The option.
        option: String,
    },
    /// A property that is no integer.
    #[error("Invalid integer value {text} for '{option}'")]
    Integer {
        /// The text as written.
        text: String,
        /// The option.
        option: String,
    },
    /// A property that is no number.
    #[error("Invalid double value {text} for '{option}'")]
    Double {
        /// The text as written.
        text: String,
        /// The option.
        option: String,
    },
}
