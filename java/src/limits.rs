//! Limits of a run, and its errors.

use std::fmt;

/// Bytes charged for a value in a frame, a list or a table.
pub(crate) const VALUE_BYTES: u64 = 32;

/// The resources of one call, and the functions that its host provides.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum steps: evaluated nodes of the tree, and elements and groups of eight bytes that methods read.
    pub steps_max: u64,
    /// Maximum bytes charged for texts, numbers and objects; they are freed only at the end of the call.
    pub bytes_max: u64,
    /// The time, µs since 1970-01-01 UTC.
    pub now_micros: i64,
    /// The seed of `Math.random()` and its kin.
    pub seed: u64,
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
        /// Its message.
        message: Option<String>,
    },
    /// It needs more steps than the limit.
    Steps {
        /// The limit.
        steps_max: u64,
    },
    /// It allocates more bytes than the limit.
    Bytes {
        /// The limit.
        bytes_max: u64,
    },
    /// A fault of the interpreter, or an argument of a wrong type: the value found.
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
