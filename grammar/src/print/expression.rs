//! How values and selectors are written.

use std::fmt::{self, Display, Formatter, Write};

use super::{CURLY, Quoted, ROUND, SQUARE, join, list, of_function, pairs};
use crate::ast::{ArithmeticOperator, Literal, MetadataKind, Selector, Term};

impl Display for Literal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::String(text) => Quoted(text).fmt(f),
            Self::Boolean(value) => value.fmt(f),
            Self::Blob(digits) => write!(f, "0x{digits}"),
            Self::Integer(text) | Self::Float(text) | Self::Uuid(text) | Self::Duration(text) => f.write_str(text),
        }
    }
}

impl Display for ArithmeticOperator {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Modulo => "%",
        })
    }
}

impl Display for Term {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(literal) => literal.fmt(f),
            Self::BindMarker { name: None, .. } => f.write_char('?'),
            Self::BindMarker { name: Some(name), .. } => write!(f, ":{name}"),
            Self::List(elements) => list(f, SQUARE, elements),
            Self::Set(elements) => list(f, CURLY, elements),
            Self::Map(entries) => list(f, CURLY, pairs(entries, ": ")),
            Self::Udt(fields) => list(f, CURLY, pairs(fields, ": ")),
            Self::Tuple(elements) => list(f, ROUND, elements),
            Self::Function { name, arguments, .. } => {
                of_function(name).fmt(f)?;
                list(f, ROUND, arguments)
            }
            Self::TypeHint { target, term } => write!(f, "({target}) {term}"),
            Self::Arithmetic {
                operator, left, right, ..
            } => write!(f, "{left} {operator} {right}"),
            Self::Negate { of: term, .. } => write!(f, "- {term}"),
            Self::Cast { term, target, .. } => write!(f, "CAST({term} AS {target})"),
        }
    }
}

impl Display for MetadataKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WriteTime => "writetime",
            Self::MaxWriteTime => "maxwritetime",
            Self::Ttl => "ttl",
        })
    }
}

impl Display for Selector {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Column(name) => name.fmt(f),
            Self::Term(term) => term.fmt(f),
            Self::CountRows(what) => write!(f, "count({what})"),
            Self::Function { name, arguments, .. } => {
                of_function(name).fmt(f)?;
                list(f, ROUND, arguments)
            }
            Self::Metadata { kind, of } => write!(f, "{kind}({of})"),
            Self::Cast { selector, target } => write!(f, "CAST({selector} AS {target})"),
            // The lexer would read a point directly after a number as part of the number.
            Self::Field { of, field } if matches!(**of, Self::Term(_) | Self::TypeHint { .. }) => {
                write!(f, "{of} .{field}")
            }
            Self::Field { of, field } => write!(f, "{of}.{field}"),
            Self::Element { of, key } => write!(f, "{of}[{key}]"),
            Self::Slice { of, from, to } => {
                write!(f, "{of}[")?;
                join(f, from, "")?;
                f.write_str(" .. ")?;
                join(f, to, "")?;
                f.write_char(']')
            }
            Self::Arithmetic {
                operator, left, right, ..
            } => write!(f, "{left} {operator} {right}"),
            Self::Negate { of: selector, .. } => write!(f, "- {selector}"),
            Self::TypeHint { target, selector } => write!(f, "({target}) {selector}"),
            Self::Tuple(elements) => list(f, ROUND, elements),
            Self::List(elements) => list(f, SQUARE, elements),
            Self::Set(elements) => list(f, CURLY, elements),
            Self::Map(entries) => list(f, CURLY, pairs(entries, ": ")),
        }
    }
}
