//! Why an assignment of an UPDATE, or the deletion of a column or of part of one, is refused.

use thiserror::Error;

/// A change that its column does not support, or whose value does not fit.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OperationRefusal {
    /// SET of this counter to a value.
    #[error("Cannot set the value of counter column {0} (counters can only be incremented/decremented, not set)")]
    SetOfCounter(String),
    /// An assignment that a column of this kind does not have.
    #[error("Invalid operation ({operation}) for {kind} column {column}")]
    Misfit {
        /// The assignment as CQL.
        operation: String,
        /// The kind of column, e.g. `frozen list`.
        kind: &'static str,
        /// The column.
        column: String,
    },
    /// A sum of a column that is neither a number nor a text, beside a condition.
    #[error("Invalid operation ({operation}) for non-numeric and non-text type {column}")]
    NotSummable {
        /// The assignment as CQL.
        operation: String,
        /// The column, which Cassandra's words call a type.
        column: String,
    },
    /// A field that the column's type does not have.
    #[error("UDT column {column} does not have a field named {field}")]
    NoField {
        /// The column.
        column: String,
        /// The field.
        field: String,
    },
    /// A map plus a term that is none, as CQL.
    #[error("Value for a map addition has to be a map, but was: '{0}'")]
    MapPlus(String),
    /// A map minus a term that is no set, as CQL.
    #[error("Value for a map substraction has to be a set, but was: '{0}'")]
    MapMinus(String),
    /// `DELETE c[…]` of this column, which is no collection.
    #[error("Invalid deletion operation for non collection column {0}")]
    DeleteOfNoElement(String),
    /// `DELETE c[…]` of this column, which is one cell.
    #[error("Invalid deletion operation for frozen collection column {0}")]
    DeleteOfFrozenElement(String),
    /// `DELETE c.f` of this column, which has no fields.
    #[error("Invalid field deletion operation for non-UDT column {0}")]
    DeleteOfNoField(String),
    /// `DELETE c.f` of this column, which is one cell.
    #[error("Frozen UDT column {0} does not support field deletions")]
    DeleteOfFrozenField(String),
    /// Null as a map's key.
    #[error("Invalid null map key")]
    NullKey,
    /// Null as a set's element.
    #[error("Invalid null set element")]
    NullElement,
    /// An unset value as a map's key.
    #[error("Invalid unset map key")]
    UnsetKey,
    /// An unset value as a list's index.
    #[error("Invalid unset value for list index")]
    UnsetIndex,
    /// Null as a list's index.
    #[error("Invalid null value for list index")]
    NullIndex,
    /// Null added to a counter, or taken from one: `increment`, `decrement`.
    #[error("Invalid null value for counter {0}")]
    NullStep(&'static str),
    /// The difference cannot be written as a sum.
    #[error("The negation of {0} overflows supported counter precision (signed 8 bytes integer)")]
    NegationOverflow(i64),
}
