//! Bounds of a run, and how a run fails.

use std::fmt;

/// What one call may use up, and what it needs of its host.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Most steps: nodes of the tree that are evaluated, elements and groups of eight bytes that methods look at.
    pub steps_max: u64,
    /// Most bytes that texts, numbers and objects are charged for; nothing is given back before the call ends.
    pub bytes_max: u64,
    /// A double as Java prints it.
    pub double_text: fn(f64) -> String,
    /// A float as Java prints it.
    pub float_text: fn(f32) -> String,
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It threw an exception that it did not catch: the class with its package, the message.
    Thrown {
        /// `java.lang.RuntimeException`
        class: &'static str,
        /// What it was made with.
        message: Option<String>,
    },
    /// It needs more steps than it may take.
    Steps {
        /// How many.
        steps_max: u64,
    },
    /// It allocates more bytes than it may.
    Bytes {
        /// How many.
        bytes_max: u64,
    },
    /// A fault of the interpreter, or an argument that is not of its type: what was seen.
    Fault(&'static str),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Thrown { class, message: None } => f.write_str(class),
            Self::Thrown {
                class,
                message: Some(message),
            } => write!(f, "{class}: {message}"),
            Self::Steps { steps_max } => write!(f, "the function took more than {steps_max} steps and was stopped"),
            Self::Bytes { bytes_max } => {
                write!(f, "the function allocated more than {bytes_max} bytes and was stopped")
            }
            Self::Fault(what) => write!(f, "the function was stopped by a fault of the interpreter: {what}"),
        }
    }
}

impl std::error::Error for Failure {}
