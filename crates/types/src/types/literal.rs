//! Constants: the types they can be assigned to, their bytes, and their text.

use super::compound::{self, list_elements, map_entries, set_elements, tuple_fields};
use super::name::quoted;
use super::native::{Constant, Quoting};
use super::{CqlType, Invalid, Native, composite};
use bytes::Bytes;
use grammar::ast::Literal;
use std::fmt::Write as _;
use thiserror::Error;

/// How well a value of unknown or known type fits a receiver (Cassandra's `AssignmentTestable.TestResult`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Assignment {
    /// It cannot be assigned.
    No,
    /// It can be assigned, but another receiver might fit better.
    Weak,
    /// It has exactly this type.
    Exact,
}

impl Assignment {
    /// The weakest of several assignments.
    #[must_use]
    pub fn all(tests: impl IntoIterator<Item = Self>) -> Self {
        tests.into_iter().min().unwrap_or(Self::Exact)
    }

    /// Where the tests of a collection's elements begin: an empty collection fits many types.
    #[must_use]
    pub const fn of_elements(count: usize) -> Self {
        if count == 0 { Self::Weak } else { Self::Exact }
    }

    /// Whether it can be assigned at all.
    #[must_use]
    pub fn is_assignable(self) -> bool {
        self != Self::No
    }
}

/// Why a constant cannot be a value of a type.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LiteralError {
    /// The kind of constant does not fit; [`LiteralError::message`] adds the receiver.
    #[error("Invalid {} constant ({text}) of type {receiver_type}", .kind.name())]
    Kind {
        /// Kind of the constant.
        kind: Constant,
        /// As written, without quotes.
        text: String,
        /// CQL name of the receiver's type.
        receiver_type: String,
    },
    /// The kind fits, but the text is invalid.
    #[error(transparent)]
    Value(#[from] Invalid),
}

impl LiteralError {
    /// The message as Cassandra words it for a receiver of that name.
    #[must_use]
    pub fn message(&self, receiver: &str) -> String {
        match self {
            Self::Kind {
                kind,
                text,
                receiver_type,
            } => format!(
                "Invalid {} constant ({text}) for \"{receiver}\" of type {receiver_type}",
                kind.name()
            ),
            Self::Value(invalid) => invalid.to_string(),
        }
    }
}

/// Kind and text of a constant; `None` for null.
#[must_use]
pub fn constant(literal: &Literal) -> Option<(Constant, String)> {
    Some(match literal {
        Literal::Null => return None,
        Literal::String(text) => (Constant::String, text.clone()),
        Literal::Integer(text) => (Constant::Integer, text.clone()),
        Literal::Float(text) => (Constant::Float, text.clone()),
        Literal::Boolean(value) => (Constant::Boolean, value.to_string()),
        Literal::Uuid(text) => (Constant::Uuid, text.clone()),
        Literal::Duration(text) => (Constant::Duration, text.clone()),
        Literal::Blob(digits) => (Constant::Hex, format!("0x{digits}")),
    })
}

/// The type of a constant without a receiver; `None` for null.
#[must_use]
pub fn preferred_type(literal: &Literal) -> Option<Native> {
    Some(match literal {
        Literal::Null => return None,
        Literal::String(text) if text.is_ascii() => Native::Ascii,
        Literal::String(_) => Native::Text,
        Literal::Integer(text) => match super::big::parse_integer(text) {
            Some(value) if i32::try_from(&value).is_ok() => Native::Int,
            Some(value) if i64::try_from(&value).is_ok() => Native::Bigint,
            _ => Native::Varint,
        },
        Literal::Float(text) => match super::big::Decimal::parse(text) {
            // A double if its shortest digits denote the same number.
            Some(decimal) => {
                let nearest = super::big::Decimal::parse(&super::number::java_f64(decimal.to_f64()));
                match nearest {
                    Some(nearest) if nearest.compare(&decimal).is_eq() => Native::Double,
                    _ => Native::Decimal,
                }
            }
            None => Native::Double,
        },
        Literal::Boolean(_) => Native::Boolean,
        Literal::Uuid(_) => Native::Uuid,
        Literal::Duration(_) => Native::Duration,
        Literal::Blob(_) => Native::Blob,
    })
}

impl CqlType {
    /// Whether a constant may be assigned to this type.
    #[must_use]
    pub fn assignable(&self, literal: &Literal) -> Assignment {
        let Some((kind, _)) = constant(literal) else {
            // A counter cannot be set to null.
            let counter = matches!(self, Self::Native(Native::Counter));
            return if counter { Assignment::No } else { Assignment::Weak };
        };
        match self.unfrozen() {
            Self::List(_) | Self::Set(_) | Self::Map(..) | Self::User(_) => Assignment::No,
            // Types without their own kind of constant accept any kind; the text decides.
            Self::Custom(_) | Self::Tuple(_) => Assignment::Weak,
            Self::Vector(..) => Assignment::No,
            Self::Native(native) if preferred_type(literal) == Some(*native) => Assignment::Exact,
            Self::Native(native) if native.row().constants.contains(&kind) => Assignment::Weak,
            Self::Native(_) | Self::Frozen(_) => Assignment::No,
        }
    }

    /// The bytes of a constant; `None` for null.
    ///
    /// # Errors
    /// When the kind of constant does not fit the type, or its text is no value.
    pub fn literal(&self, literal: &Literal) -> Result<Option<Bytes>, LiteralError> {
        let Some((kind, text)) = constant(literal) else {
            return Ok(None);
        };
        if self.assignable(literal) == Assignment::No {
            return Err(LiteralError::Kind {
                kind,
                text,
                receiver_type: self.cql_name(),
            });
        }
        let bytes = match literal {
            Literal::Blob(digits) => Native::Blob.row().parse_text(digits)?,
            _ => self.parse_text(&text)?,
        };
        Ok(Some(bytes.into()))
    }

    /// Parses a value's text without quotes, as Cassandra's `fromString`.
    ///
    /// # Errors
    /// When the text is invalid; collections and user-defined types have no such text.
    pub fn parse_text(&self, text: &str) -> Result<Vec<u8>, Invalid> {
        match self {
            Self::Native(native) => native.row().parse_text(text),
            Self::Custom(class) => composite::parse(class, text),
            Self::Frozen(inner) => inner.parse_text(text),
            Self::Tuple(types) => self.parse_tuple(types, text),
            Self::List(_) | Self::Set(_) | Self::Map(..) | Self::User(_) | Self::Vector(..) => {
                Err(Invalid::Unsupported("a value of this type has no text"))
            }
        }
    }

    /// `1:a`, with `@` for null.
    fn parse_tuple(&self, types: &[Self], text: &str) -> Result<Vec<u8>, Invalid> {
        if text.is_empty() {
            return Ok(Vec::new());
        }
        let parts = composite::components(text);
        if parts.len() > types.len() {
            return Err(Invalid::TupleText {
                tuple: self.cql_name(),
                expected: types.len(),
                found: parts.len(),
            });
        }
        let fields = parts
            .iter()
            .zip(types)
            .map(|(part, field)| match part.as_str() {
                "@" => Ok(None),
                part => field.parse_text(part).map(Some),
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(compound::encode_tuple(fields.iter().map(Option::as_deref)).into())
    }

    /// The value's plain text, as Cassandra's `getString`: the result of a cast to text. Empty bytes give an empty
    /// text; types without a text give hexadecimal.
    #[must_use]
    pub fn to_text(&self, bytes: &[u8]) -> String {
        match self.unfrozen() {
            Self::Native(_) if bytes.is_empty() => String::new(),
            Self::Native(native) => (native.row().print)(bytes).unwrap_or_else(|| super::text::hex(bytes)),
            Self::Tuple(types) => fields_text(types.iter(), bytes),
            Self::User(user) => fields_text(user.fields.iter().map(|(_, ty)| ty), bytes),
            _ => super::text::hex(bytes),
        }
    }

    /// The value as a CQL literal, as Cassandra prints it (`toCQLLiteral`); invalid bytes as hexadecimal.
    #[must_use]
    pub fn to_literal(&self, bytes: &[u8]) -> String {
        let raw = || format!("0x{}", super::text::hex(bytes));
        match self {
            Self::Frozen(inner) => inner.to_literal(bytes),
            Self::Custom(_) => raw(),
            Self::Native(native) => {
                let row = native.row();
                match row.quoting {
                    Quoting::Hexadecimal => raw(),
                    Quoting::Quoted if matches!(native, Native::Text | Native::Ascii) || !bytes.is_empty() => {
                        (row.print)(bytes).map_or_else(raw, |text| format!("'{}'", text.replace('\'', "''")))
                    }
                    _ if bytes.is_empty() => "null".to_owned(),
                    _ => (row.print)(bytes).unwrap_or_else(raw),
                }
            }
            Self::List(element) => {
                list_elements(bytes).map_or_else(|_| raw(), |values| surround("[", element.literals(values), "]"))
            }
            Self::Set(element) => {
                set_elements(bytes).map_or_else(|_| raw(), |values| surround("{", element.literals(values), "}"))
            }
            Self::Vector(element, _) => {
                let values = self.vector_elements(bytes);
                values.map_or_else(|_| raw(), |values| surround("[", element.literals(values), "]"))
            }
            Self::Map(key_type, value_type) => map_entries(bytes).map_or_else(
                |_| raw(),
                |entries| {
                    let entries = entries
                        .iter()
                        .map(|(key, value)| format!("{}: {}", key_type.to_literal(key), value_type.to_literal(value)))
                        .collect();
                    surround("{", entries, "}")
                },
            ),
            Self::Tuple(types) => {
                let count = compound::tuple_length(bytes).min(types.len());
                let fields = types.iter().zip(tuple_fields(bytes, count));
                surround(
                    "(",
                    fields.map(|(field, value)| field.optional_literal(value)).collect(),
                    ")",
                )
            }
            Self::User(user) => {
                let count = compound::tuple_length(bytes).min(user.fields.len());
                let fields = user.fields.iter().zip(tuple_fields(bytes, count));
                let fields = fields
                    .map(|((name, field), value)| format!("{}: {}", quoted(name), field.optional_literal(value)))
                    .collect();
                surround("{", fields, "}")
            }
        }
    }

    fn optional_literal(&self, bytes: Option<&[u8]>) -> String {
        bytes.map_or_else(|| "null".to_owned(), |bytes| self.to_literal(bytes))
    }

    fn literals(&self, values: Vec<&[u8]>) -> Vec<String> {
        values.into_iter().map(|value| self.to_literal(value)).collect()
    }
}

/// `1:a`, with `@` for null, and `\` before these signs in values.
fn fields_text<'t>(types: impl ExactSizeIterator<Item = &'t CqlType>, bytes: &[u8]) -> String {
    let count = compound::tuple_length(bytes).min(types.len());
    let fields = types.zip(tuple_fields(bytes, count)).map(|(ty, value)| match value {
        None => "@".to_owned(),
        Some(value) => ty.to_text(value).replace(':', "\\:").replace('@', "\\@"),
    });
    fields.collect::<Vec<_>>().join(":")
}

fn surround(open: &str, parts: Vec<String>, close: &str) -> String {
    let mut text = String::from(open);
    // Writing to a String cannot fail.
    let _ = write!(text, "{}{close}", parts.join(", "));
    text
}

impl super::NativeType {
    fn parse_text(&self, text: &str) -> Result<Vec<u8>, Invalid> {
        (self.parse)(text)
    }
}
