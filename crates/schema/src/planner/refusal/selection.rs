//! Why a selector of a SELECT, or a function of its GROUP BY, is refused.

use thiserror::Error;

/// A selector that its parts do not allow, or whose bound values do not fit. Types and terms are as CQL writes them; a
/// `name` is the selector's name in the result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SelectionRefusal {
    /// An unset argument of this function.
    #[error("Invalid unset value for argument in call to function {0}")]
    UnsetArgument(String),
    /// An unset key of an element of this selector.
    #[error("Invalid unset value for element selection on {0}")]
    UnsetElement(String),
    /// Null as the key of an element of this selector.
    #[error("Invalid null value for element selection on {0}")]
    NullElement(String),
    /// Null as an end of a slice of this selector.
    #[error("Invalid null value for slice selection on {0}")]
    NullSlice(String),
    /// GROUP BY this call of an aggregate.
    #[error("Aggregate functions are not supported within the GROUP BY clause, got: {0}")]
    GroupByAggregate(String),
    /// GROUP BY a function without a column.
    #[error("GROUP BY functions must have one clustering column name as parameter")]
    GroupByNoColumn,
    /// GROUP BY a function of these columns.
    #[error("GROUP BY functions accept only one clustering column as parameter, got: {}", .0.join(","))]
    GroupBySeveralColumns(Vec<String>),
    /// GROUP BY a function of this column, which is no clustering column.
    #[error("Group by functions are only supported on clustering columns, got {0}")]
    GroupByOtherColumn(String),
    /// GROUP BY this function, which does not preserve the order of its argument.
    #[error("Only monotonic functions are supported in the GROUP BY clause. Got: {0} ")]
    GroupByUnordered(String),
    /// This function of INSERT JSON in a SELECT.
    #[error("{0}() cannot be used in the selection clause of a SELECT statement")]
    FromJson(String),
    /// A type hint that its term does not fit.
    #[error("Cannot assign value {text} to {text} of type {ty}")]
    Hint {
        /// The term.
        text: String,
        /// The type.
        ty: String,
    },
    /// A term whose type cannot be determined.
    #[error("Cannot infer type for term {0} in selection clause (try using a cast to force a type)")]
    NoType(String),
    /// A tuple where another type is required.
    #[error("Invalid tuple type literal for {text} of type {ty}")]
    NoTuple {
        /// The tuple.
        text: String,
        /// The type.
        ty: String,
    },
    /// A tuple with too many components.
    #[error("Invalid tuple literal for {text}: too many elements. Type {ty} expects {expected} but got {given}")]
    TupleLength {
        /// The tuple.
        text: String,
        /// The type.
        ty: String,
        /// The type's number of components.
        expected: usize,
        /// The tuple's number of components.
        given: usize,
    },
    /// A collection where another type is required.
    #[error("Invalid literal {text} of type {ty}")]
    NoCollection {
        /// The collection.
        text: String,
        /// The type.
        ty: String,
    },
    /// A vector of more or fewer elements than the type has.
    #[error("Unable to create a vector selector of type {ty} from {given} elements")]
    VectorLength {
        /// The type.
        ty: String,
        /// The number of elements given.
        given: usize,
    },
    /// An aggregate of an aggregate.
    #[error("aggregate functions cannot be used as arguments of aggregate functions")]
    AggregateOfAggregate,
    /// `x.f` of a value without fields.
    #[error("Invalid field selection: {name} of type {ty} is not a user type")]
    NoFields {
        /// The selector.
        name: String,
        /// Its type.
        ty: String,
    },
    /// `x.f` of a type without this field.
    #[error("{name} of type {user_type} has no field {field}")]
    NoField {
        /// The selector.
        name: String,
        /// Its type.
        user_type: String,
        /// The field.
        field: String,
    },
    /// WRITETIME and the like of a term that is no column.
    #[error("Cannot use selection function {function} on {text}")]
    MetadataOfTerm {
        /// The function.
        function: &'static str,
        /// Its argument.
        text: String,
    },
    /// WRITETIME and the like of a column of the primary key.
    #[error("Cannot use selection function {function} on PRIMARY KEY part {column}")]
    MetadataOfKey {
        /// The function.
        function: &'static str,
        /// The column.
        column: String,
    },
    /// An element or a slice of a list.
    #[error("{what} selection is only allowed on sets and maps, but {name} is a list")]
    PartOfList {
        /// `Element`, `Slice`.
        what: &'static str,
        /// The list.
        name: String,
    },
    /// An element or a slice of a value that is no collection.
    #[error("Invalid {} selection: {name} is of type {ty} is not a collection", .what.to_lowercase())]
    PartOfOther {
        /// `Element`, `Slice`.
        what: &'static str,
        /// The selector.
        name: String,
        /// Its type.
        ty: String,
    },
    /// A field that the user-defined type does not have.
    #[error("Unknown field '{field}' in value of user defined type {user_type}")]
    UnknownField {
        /// The field.
        field: String,
        /// The type.
        user_type: String,
    },
}
