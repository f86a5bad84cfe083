//! Expressions: computed from one row, or from the rows of a group.

use bytes::Bytes;

use helenus_types::functions::Function;
use helenus_types::types::CqlType;

/// A value computed for each row, or for each group.
#[derive(Clone, Debug)]
pub enum Expression {
    /// The column at this position in `table.columns`.
    Column(usize),
    /// A value.
    Constant(Option<Bytes>),
    /// A bind marker's value, by its index; replaced by binding.
    Marker(usize),
    /// Write time (µs) of a column's cell, of one element (`key`), or of the cells of a multi-cell column as a list.
    WriteTime {
        /// Position in `table.columns`.
        column: usize,
        /// The greatest of all cells.
        max: bool,
        /// Element, slice or field of a multi-cell column.
        part: Option<Box<Part>>,
    },
    /// Seconds left to live, like `WriteTime`.
    Ttl {
        /// Position in `table.columns`.
        column: usize,
        /// Element, slice or field of a multi-cell column.
        part: Option<Box<Part>>,
    },
    /// Cassandra's `token(…)`; arguments are the partition key's components.
    Token(Vec<Expression>),
    /// A scalar function.
    Function {
        /// The function, already resolved.
        function: Function,
        /// Its arguments.
        arguments: Vec<Expression>,
    },
    /// The result of the aggregate at this position in `Read::aggregates`.
    Aggregate(usize),
    /// A part of a value.
    Part {
        /// The value.
        of: Box<Expression>,
        /// The value's type.
        of_type: CqlType,
        /// The part.
        part: Box<Part>,
    },
    /// A tuple, list, set, map, vector or user-defined type built from elements; maps alternate keys and values.
    Construct {
        /// Its type.
        ty: CqlType,
        /// Its elements.
        elements: Vec<Expression>,
    },
}

/// A part of a collection or user-defined type.
#[derive(Clone, Debug)]
pub enum Part {
    /// The field's number.
    Field(usize),
    /// `[key]`
    Element(Expression),
    /// `[from..to]`, both inclusive.
    Slice(Option<Expression>, Option<Expression>),
}

/// An aggregate over the rows of a group.
#[derive(Clone, Debug)]
pub struct Aggregate {
    /// The function, already resolved. `None` counts rows.
    pub function: Option<Function>,
    /// Its arguments, computed for each row.
    pub arguments: Vec<Expression>,
}
