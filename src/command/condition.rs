//! Conditions of writes.

use super::Predicate;

/// What must hold for a conditional write to be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Not conditional.
    Always,
    /// The row is there.
    Exists,
    /// The row is not there.
    NotExists,
    /// All of these. Unlike in a filter, `= null` and `!= null` compare with absence.
    Columns(Vec<Predicate>),
}
