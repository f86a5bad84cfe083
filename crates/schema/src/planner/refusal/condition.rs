//! Why an IF clause is refused.

use grammar::ast::Operator;
use thiserror::Error;

use crate::planner::text::relation_sign;

/// An invalid condition, or one whose values do not fit it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConditionRefusal {
    /// An unset value.
    #[error("Invalid 'unset' value in condition")]
    Unset,
    /// Null as an IN list.
    #[error("Invalid null list in IN condition")]
    NullList,
    /// Null as a list's index or a map's key: `list`, `map`.
    #[error("Invalid null value for {0} element access")]
    NullElement(&'static str),
    /// A list's index below 0.
    #[error("Invalid negative list index {0}")]
    NegativeIndex(i32),
    /// Null has no order.
    #[error("Invalid comparison with null for operator \"{}\"", relation_sign(*.0))]
    CompareNull(Operator),
    /// An empty collection is null, which has no order.
    #[error("Invalid comparison with an empty {kind} for operator \"{}\"", relation_sign(*.operator))]
    CompareEmpty {
        /// `list`, `set`, `map`.
        kind: &'static str,
        /// The operator.
        operator: Operator,
    },
    /// A condition on this key column.
    #[error("PRIMARY KEY column '{0}' cannot have IF conditions")]
    KeyColumn(String),
    /// A condition on a counter.
    #[error("Conditions on counters are not supported")]
    Counter,
    /// `s[…]` of this set.
    #[error("Invalid element access syntax for set column {0}")]
    SetElement(String),
    /// `c[…]` of this column, which is no collection.
    #[error("Invalid element access syntax for non-collection column {0}")]
    NoCollectionElement(String),
    /// `c.f` of this column, which is no user-defined type.
    #[error("Invalid field access syntax for non-UDT column {0}")]
    NoFields(String),
    /// A field that the column's type does not have.
    #[error("Unknown field {field} for column {column}")]
    UnknownField {
        /// The field.
        field: String,
        /// The column.
        column: String,
    },
    /// A duration has no order.
    #[error("Slice conditions ( {} ) are not supported on durations", relation_sign(*.0))]
    DurationSlice(Operator),
    /// A value that contains a duration has no order either: `tuples`, `UDTs`, `collections`.
    #[error("Slice conditions are not supported on {0} containing durations")]
    DurationsSlice(&'static str),
    /// CONTAINS on this column.
    #[error("Cannot use CONTAINS on non-collection column {0}")]
    ContainsOutsideCollection(String),
    /// CONTAINS KEY on this column.
    #[error("Cannot use CONTAINS KEY on non-map column {0}")]
    ContainsKeyOutsideMap(String),
    /// A condition without a value on this column.
    #[error("Unsupported condition on column {0}")]
    NoValue(String),
}
