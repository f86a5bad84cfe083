//! Conditions of writes.

use super::Predicate;

/// What must hold for a conditional write to be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Not conditional.
    Always,
    /// The row exists.
    Exists,
    /// The row does not exist.
    NotExists,
    /// All of these hold. Unlike in a filter, `= null` and `!= null` test for absence.
    Columns(Vec<Predicate>),
}
