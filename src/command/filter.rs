//! Filters: tests on the values of one row.

use super::Value;
use crate::schema::analysis::Analysis;
use crate::types::CqlType;

/// How a filter compares a row's value with its operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Eq,
    /// `!=` (conditions only)
    Neq,
    /// `<`
    Lt,
    /// `<=`
    Lte,
    /// `>`
    Gt,
    /// `>=`
    Gte,
    /// The value is one of the operands.
    In,
    /// A list, set or map holds the operand as a value.
    Contains,
    /// A map holds the operand as a key.
    ContainsKey,
    /// LIKE, with its pattern as written.
    Like,
}

impl Comparison {
    /// As CQL writes it.
    #[must_use]
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Eq => "=",
            Self::Neq => "!=",
            Self::Lt => "<",
            Self::Lte => "<=",
            Self::Gt => ">",
            Self::Gte => ">=",
            Self::In => "IN",
            Self::Contains => "CONTAINS",
            Self::ContainsKey => "CONTAINS KEY",
            Self::Like => "LIKE",
        }
    }
}

/// What LIKE asks: where `%` stands in its pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Like {
    /// `abc`
    Whole,
    /// `abc%`
    Prefix,
    /// `%abc`
    Suffix,
    /// `%abc%`
    Within,
}

impl Like {
    /// The kind of a pattern and what it looks for; `None`: it looks for nothing. A `%` that is not at an end is itself.
    #[must_use]
    pub fn of(pattern: &[u8]) -> Option<(Self, &[u8])> {
        let (kind, text) = match (pattern.strip_suffix(b"%"), pattern.strip_prefix(b"%")) {
            (Some(_), Some(rest)) => (Self::Within, rest.strip_suffix(b"%").unwrap_or_default()),
            (Some(text), None) => (Self::Prefix, text),
            (None, Some(text)) => (Self::Suffix, text),
            (None, None) => (Self::Whole, pattern),
        };
        (!text.is_empty()).then_some((kind, text))
    }

    /// As Cassandra writes it.
    pub(crate) const fn shape(self) -> &'static str {
        match self {
            Self::Whole => "<term>",
            Self::Prefix => "<term>%",
            Self::Suffix => "%<term>",
            Self::Within => "%<term>%",
        }
    }
}

/// What a filter or condition looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterTarget {
    /// A column, by its place in `table.columns`.
    Column(usize),
    /// `column[key]`: a map's value or a list's element.
    Element(usize, Value),
    /// `column.field`: the field's number.
    Field(usize, usize),
    /// A column whose texts, or those in it, are compared as an index analyses them. LIKE looks for all of its pattern's terms.
    Analysed(usize, Analysis),
    /// Several clustering columns as a tuple, compared one after the other.
    Tuple(Vec<usize>),
    /// The partition's token; operands are bigint.
    Token,
}

/// A test on one row: `target comparison operands`. Null makes it false.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Predicate {
    /// What is looked at.
    pub target: FilterTarget,
    /// How.
    pub comparison: Comparison,
    /// One operand; several for `In`. A tuple's operand is an encoded tuple.
    pub operands: Vec<Value>,
    /// The type both sides have.
    pub ty: CqlType,
}
