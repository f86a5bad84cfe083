//! Why a term does not fit its receiver.

use thiserror::Error;

/// A literal, a type hint or a bound value that does not fit its receiver's type. Terms and types are as CQL writes
/// them.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TermRefusal {
    /// A literal that is no value of the type. The message is
    /// [`LiteralError::message`](helenus_types::types::LiteralError::message) for the receiver.
    #[error("{}", .error.message(.receiver))]
    Literal {
        /// The cause.
        error: helenus_types::types::LiteralError,
        /// The receiver.
        receiver: String,
    },
    /// Null added to a counter.
    #[error("Invalid null value for counter increment/decrement")]
    NullCounter,
    /// A type hint of another type.
    #[error("Cannot cast value {value} to type {ty}")]
    Hint {
        /// The value.
        value: String,
        /// The type of the hint.
        ty: String,
    },
    /// A hinted term where another type is required.
    #[error("Cannot assign value {value} to {receiver} of type {ty}")]
    Hinted {
        /// The term with its hint.
        value: String,
        /// The receiver.
        receiver: String,
        /// The receiver's type.
        ty: String,
    },
    /// A vector of more or fewer elements than the type has.
    #[error("Invalid vector literal for {receiver} of type {ty}; expected {dimension} elements, but given {given}")]
    VectorLength {
        /// The receiver.
        receiver: String,
        /// The receiver's type.
        ty: String,
        /// The type's number of elements.
        dimension: u32,
        /// The literal's number.
        given: usize,
    },
    /// `[…]` for this type.
    #[error("Unexpected receiver type '{0}'; only list and vector are expected")]
    NoList(String),
    /// `{…}`, `(…)` or `{f: …}` for another type.
    #[error("Invalid {kind} literal for {receiver} of type {ty}")]
    LiteralKind {
        /// The kind of literal, e.g. `set`.
        kind: &'static str,
        /// The receiver.
        receiver: String,
        /// The receiver's type.
        ty: String,
    },
    /// A part that does not fit its type.
    #[error("Invalid {kind} literal for {receiver}: {part} is not of type {ty}")]
    Part {
        /// The kind of literal, e.g. `set`.
        kind: &'static str,
        /// The receiver.
        receiver: String,
        /// The part: an element, a component, a field.
        part: LiteralPart,
        /// The type of the part.
        ty: String,
    },
    /// A tuple with too many components.
    #[error("Invalid tuple literal for {receiver}: too many elements. Type {ty} expects {expected} but got {given}")]
    TupleLength {
        /// The receiver.
        receiver: String,
        /// The receiver's type.
        ty: String,
        /// The type's number of components.
        expected: usize,
        /// The literal's number.
        given: usize,
    },
    /// A field that the user-defined type does not have.
    #[error("Unknown field '{field}' in value of user defined type {user_type}")]
    UnknownField {
        /// The field.
        field: String,
        /// The type.
        user_type: String,
    },
    /// A bind marker inside of a literal.
    #[error("Invalid {kind} literal for {receiver}: bind variables are not supported inside collection literals")]
    Marker {
        /// The kind of literal, e.g. `set`.
        kind: &'static str,
        /// The receiver.
        receiver: String,
    },
    /// An unset argument of this function.
    #[error("Invalid unset value for argument in call to function {0}")]
    UnsetArgument(String),
    /// An operator with other than two operands, which the grammar cannot produce.
    #[error("An operator has two operands")]
    OperatorOperands,
    /// A negation without an operand, which the grammar cannot produce.
    #[error("A negation has one operand")]
    NegationOperand,
    /// A cast without an operand, which the grammar cannot produce.
    #[error("A cast has one operand")]
    CastOperand,
    /// A call of an aggregate.
    #[error("Aggregation function are not supported in the where clause")]
    Aggregate,
    /// More or fewer values than bind markers.
    #[error("Invalid amount of bind variables")]
    ValueCount,
}

/// A part of a literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiteralPart {
    /// `value 5`: an element of a list, a set or a vector, or a value of a map.
    Value(String),
    /// `key 5`: a key of a map.
    Key(String),
    /// `component 1`: of a tuple, counted from 0.
    Component(usize),
    /// `field f`: of a user-defined type.
    Field(String),
}

impl std::fmt::Display for LiteralPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Value(term) => write!(f, "value {term}"),
            Self::Key(term) => write!(f, "key {term}"),
            Self::Component(index) => write!(f, "component {index}"),
            Self::Field(name) => write!(f, "field {name}"),
        }
    }
}
