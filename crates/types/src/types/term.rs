//! Terms as values: collection, tuple and user-defined type literals, down to their constants.
//!
//! Markers and functions are the planner's: it passes their assignment test as a [`Leaf`].

use super::compound::{encode_list, encode_tuple};
use super::{Assignment, CqlType, Invalid, LiteralError};
use bytes::Bytes;
use grammar::ast::{ArithmeticOperator, Literal, Term, Type};
use thiserror::Error;

/// How well a term that is neither a constant nor made of others (a marker, function, operation or type hint) fits a type.
pub type Leaf<'l> = &'l dyn Fn(&CqlType, &Term) -> Assignment;

/// The reason why a term cannot be a value of a type, with Cassandra's message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TermError {
    /// A constant that does not fit; the receiver's name and the cause.
    #[error("{}", .1.message(.0))]
    Constant(String, LiteralError),
    /// `[…]` for a type that is no list or vector; the receiver's type.
    #[error("Unexpected receiver type '{0}'; only list and vector are expected")]
    NotList(String),
    /// `{…}` or `(…)` for a type of another kind.
    #[error("Invalid {kind} literal for {receiver} of type {receiver_type}")]
    Kind {
        /// `set`, `map`, `user type` or `tuple type`.
        kind: &'static str,
        /// The receiver's name.
        receiver: String,
        /// Its type.
        receiver_type: String,
    },
    /// An element that does not fit: `value 'a' is not of type int`.
    #[error("Invalid {kind} literal for {receiver}: {role} {text} is not of type {element_type}")]
    Element {
        /// `list`, `set`, `map`, `vector`, `tuple`, `user type`.
        kind: &'static str,
        /// The receiver's name.
        receiver: String,
        /// `value`, `key`, `component`, `field`.
        role: &'static str,
        /// The element as written, or the position or name of the field.
        text: String,
        /// The expected type.
        element_type: String,
    },
    /// A marker inside a collection.
    #[error("Invalid {0} literal for {1}: bind variables are not supported inside collection literals")]
    Marker(&'static str, String),
    /// Null inside a collection.
    #[error("null is not supported inside collections")]
    NullElement,
    /// More fields than the tuple has.
    #[error(
        "Invalid tuple literal for {receiver}: too many elements. Type {receiver_type} expects {expected} but got {found}"
    )]
    TooMany {
        /// The receiver's name.
        receiver: String,
        /// Its type.
        receiver_type: String,
        /// The number of its fields.
        expected: usize,
        /// The number of values received.
        found: usize,
    },
    /// A vector of another size.
    #[error(
        "Invalid vector literal for {receiver} of type {receiver_type}; expected {expected} elements, but given {found}"
    )]
    Dimension {
        /// The receiver's name.
        receiver: String,
        /// Its type.
        receiver_type: String,
        /// Its dimension.
        expected: u32,
        /// The number of values received.
        found: usize,
    },
    /// A field that the user-defined type does not have.
    #[error("Unknown field '{0}' in value of user defined type {1}")]
    Field(String, String),
    /// A function, marker, operation or hint where only constants are allowed.
    #[error("{0} is not a constant")]
    NotConstant(String),
}

impl From<Invalid> for TermError {
    fn from(invalid: Invalid) -> Self {
        Self::Constant(String::new(), invalid.into())
    }
}

impl CqlType {
    /// Whether a term may be assigned to this type.
    pub fn assignable_term(&self, term: &Term, leaf: Leaf<'_>) -> Assignment {
        let all = |element: &Self, terms: &[Term]| {
            if terms.is_empty() {
                return Assignment::Weak;
            }
            Assignment::all(terms.iter().map(|term| element.assignable_term(term, leaf)))
        };
        match (term, self.unfrozen()) {
            (Term::Literal(literal), receiver) => receiver.assignable(literal),
            (Term::List(terms), Self::List(element) | Self::Vector(element, _)) => all(element, terms),
            (Term::Set(terms), Self::Map(..)) if terms.is_empty() => Assignment::Weak,
            (Term::Set(terms), Self::Set(element)) => all(element, terms),
            (Term::Map(entries), Self::Map(key, value)) => Assignment::all(
                entries
                    .iter()
                    .flat_map(|(k, v)| [key.assignable_term(k, leaf), value.assignable_term(v, leaf)]),
            ),
            (Term::Udt(_), Self::User(_)) | (Term::Tuple(_), Self::Tuple(_)) => match self.check_term("", term, leaf) {
                Ok(()) => Assignment::Weak,
                Err(_) => Assignment::No,
            },
            (Term::List(_) | Term::Set(_) | Term::Map(_) | Term::Udt(_) | Term::Tuple(_), _) => Assignment::No,
            (
                Term::BindMarker { .. }
                | Term::Function { .. }
                | Term::TypeHint { .. }
                | Term::Cast { .. }
                | Term::Arithmetic { .. }
                | Term::Negate { .. },
                _,
            ) => leaf(self, term),
        }
    }

    /// Checks a term against this type as preparing does: constants by kind, collections by structure. Elements are
    /// checked, but not their own elements. `receiver` is the column's name.
    ///
    /// # Errors
    /// The first mismatch. Of leaves only markers inside collections are rejected here.
    #[expect(clippy::too_many_lines, reason = "one arm for each term and the type that it meets")]
    pub fn check_term(&self, receiver: &str, term: &Term, leaf: Leaf<'_>) -> Result<(), TermError> {
        let target = self.unfrozen();
        let kind_error = |kind| TermError::Kind {
            kind,
            receiver: receiver.to_owned(),
            receiver_type: self.cql_name(),
        };
        let element = |kind, role, text: String, element_type: &Self| TermError::Element {
            kind,
            receiver: receiver.to_owned(),
            role,
            text,
            element_type: element_type.cql_name(),
        };
        let check = |kind, role, element_type: &Self, term: &Term| {
            if matches!(term, Term::BindMarker { .. }) && kind != "vector" {
                return Err(TermError::Marker(kind, receiver.to_owned()));
            }
            if element_type.assignable_term(term, leaf).is_assignable() {
                Ok(())
            } else {
                Err(element(kind, role, term_text(term), element_type))
            }
        };
        match (term, target) {
            (Term::Literal(literal), _) => match self.assignable(literal) {
                Assignment::No => self
                    .literal(literal)
                    .map(|_| ())
                    .map_err(|error| TermError::Constant(receiver.to_owned(), error)),
                Assignment::Weak | Assignment::Exact => Ok(()),
            },
            (Term::List(terms), Self::List(inner)) => {
                terms.iter().try_for_each(|term| check("list", "value", inner, term))
            }
            (Term::List(terms), Self::Vector(inner, count)) => {
                if terms.len() != *count as usize {
                    return Err(TermError::Dimension {
                        receiver: receiver.to_owned(),
                        receiver_type: target.cql_name(),
                        expected: *count,
                        found: terms.len(),
                    });
                }
                terms.iter().try_for_each(|term| check("vector", "value", inner, term))
            }
            (Term::List(_), _) => Err(TermError::NotList(self.cql_name())),
            (Term::Set(terms), Self::Map(..)) if terms.is_empty() => Ok(()),
            (Term::Set(terms), Self::Set(inner)) => {
                terms.iter().try_for_each(|term| check("set", "value", inner, term))
            }
            (Term::Set(_), _) => Err(kind_error("set")),
            (Term::Map(entries), Self::Map(key_type, value_type)) => entries.iter().try_for_each(|(key, value)| {
                check("map", "key", key_type, key)?;
                check("map", "value", value_type, value)
            }),
            (Term::Map(_), _) => Err(kind_error("map")),
            (Term::Tuple(terms), Self::Tuple(types)) => {
                for (index, term) in terms.iter().enumerate() {
                    let Some(field) = types.get(index) else {
                        return Err(TermError::TooMany {
                            receiver: receiver.to_owned(),
                            receiver_type: self.cql_name(),
                            expected: types.len(),
                            found: terms.len(),
                        });
                    };
                    if !field.assignable_term(term, leaf).is_assignable() {
                        return Err(element("tuple", "component", index.to_string(), field));
                    }
                }
                Ok(())
            }
            (Term::Tuple(_), _) => Err(kind_error("tuple type")),
            (Term::Udt(given), Self::User(user)) => {
                for (name, field) in &user.fields {
                    let value = given.iter().find(|(written, _)| written.0 == *name);
                    if value.is_some_and(|(_, term)| !field.assignable_term(term, leaf).is_assignable()) {
                        return Err(element("user type", "field", name.clone(), field));
                    }
                }
                let unknown = given
                    .iter()
                    .find(|(name, _)| user.fields.iter().all(|(field, _)| *field != name.0));
                unknown.map_or(Ok(()), |(name, _)| {
                    Err(TermError::Field(name.0.clone(), user.name.clone()))
                })
            }
            (Term::Udt(_), _) => Err(kind_error("user type")),
            (
                Term::BindMarker { .. }
                | Term::Function { .. }
                | Term::TypeHint { .. }
                | Term::Cast { .. }
                | Term::Arithmetic { .. }
                | Term::Negate { .. },
                _,
            ) => Ok(()),
        }
    }

    /// The bytes of a CQL literal; `None` for null.
    ///
    /// # Errors
    /// The text is no literal, or not one of this type; the error is text for people.
    pub fn parse_literal(&self, text: &str) -> Result<Option<Bytes>, String> {
        let term = grammar::parse_term(text).map_err(|error| error.to_string())?;
        self.term("the value", &term).map_err(|error| error.to_string())
    }

    /// The bytes of a term made of constants only; `None` for null. An empty multi-cell collection is null, as in Cassandra.
    ///
    /// # Errors
    /// What [`CqlType::check_term`] finds, constants that are no values, and [`TermError::NotConstant`].
    pub fn term(&self, receiver: &str, term: &Term) -> Result<Option<Bytes>, TermError> {
        self.check_term(receiver, term, &|_, _| Assignment::Weak)?;
        let part = |part_type: &Self, term: &Term| part_type.term(receiver, term);
        let whole = |part_type: &Self, term: &Term| {
            let null = matches!(term, Term::Literal(Literal::Null));
            let bytes = if null { None } else { part(part_type, term)? };
            bytes.ok_or(TermError::NullElement)
        };
        let all = |element: &Self, terms: &[Term]| {
            terms
                .iter()
                .map(|term| whole(element, term))
                .collect::<Result<Vec<_>, _>>()
        };
        let empty = match term {
            Term::List(terms) | Term::Set(terms) => terms.is_empty(),
            Term::Map(entries) => entries.is_empty(),
            _ => false,
        };
        if empty && self.is_multi_cell() {
            return Ok(None);
        }
        Ok(Some(match (term, self.unfrozen()) {
            (Term::Literal(literal), _) => {
                return self
                    .literal(literal)
                    .map_err(|error| TermError::Constant(receiver.to_owned(), error));
            }
            (Term::List(terms), Self::List(element)) => encode_list(all(element, terms)?.iter().map(AsRef::as_ref)),
            (Term::List(terms), Self::Vector(element, _)) => {
                element.encode_vector(all(element, terms)?.iter().map(AsRef::as_ref))
            }
            (Term::Set(terms), Self::Set(element)) => {
                element.encode_set(all(element, terms)?.iter().map(AsRef::as_ref).collect())
            }
            (Term::Set(_), _) => encode_list([]),
            (Term::Map(entries), Self::Map(key_type, value_type)) => {
                let entries = entries
                    .iter()
                    .map(|(key, value)| Ok((whole(key_type, key)?, whole(value_type, value)?)))
                    .collect::<Result<Vec<_>, TermError>>()?;
                key_type.encode_sorted_map(entries.iter().map(|(k, v)| (k.as_ref(), v.as_ref())).collect())
            }
            (Term::Tuple(terms), Self::Tuple(types)) => {
                let fields = types
                    .iter()
                    .zip(terms)
                    .map(|(field, term)| part(field, term))
                    .collect::<Result<Vec<_>, _>>()?;
                encode_tuple(fields.iter().map(Option::as_deref))
            }
            (Term::Udt(given), Self::User(user)) => {
                let fields = user
                    .fields
                    .iter()
                    .map(|(name, field)| {
                        let value = given.iter().find(|(written, _)| written.0 == *name);
                        value.map_or(Ok(None), |(_, term)| part(field, term))
                    })
                    .collect::<Result<Vec<_>, _>>()?;
                encode_tuple(fields.iter().map(Option::as_deref))
            }
            _ => return Err(TermError::NotConstant(term_text(term))),
        }))
    }
}

fn join(terms: impl IntoIterator<Item = String>) -> String {
    terms.into_iter().collect::<Vec<_>>().join(", ")
}

/// A term as Cassandra's messages and column names quote it.
#[must_use]
pub fn term_text(term: &Term) -> String {
    match term {
        Term::Literal(Literal::Null) => "null".to_owned(),
        Term::Literal(Literal::String(text)) => format!("'{text}'"),
        Term::Literal(literal) => super::constant(literal).map_or_else(String::new, |(_, text)| text),
        Term::BindMarker { name: None, .. } => "?".to_owned(),
        Term::BindMarker { name: Some(name), .. } => format!(":{}", name.0),
        Term::List(terms) => format!("[{}]", join(terms.iter().map(term_text))),
        Term::Set(terms) => format!("{{{}}}", join(terms.iter().map(term_text))),
        Term::Tuple(terms) => format!("({})", join(terms.iter().map(term_text))),
        Term::Map(entries) => {
            let entries = entries
                .iter()
                .map(|(k, v)| format!("{}: {}", term_text(k), term_text(v)));
            format!("{{{}}}", join(entries))
        }
        Term::Udt(fields) => {
            let fields = fields
                .iter()
                .map(|(name, v)| format!("{}: {}", super::quoted(&name.0), term_text(v)));
            format!("{{{}}}", join(fields))
        }
        Term::Function { name, arguments, .. } => {
            let keyspace = name.keyspace.as_ref().map(|keyspace| format!("{}.", keyspace.0));
            let arguments = join(arguments.iter().map(term_text));
            format!("{}{}({arguments})", keyspace.unwrap_or_default(), name.name.0)
        }
        Term::TypeHint { target, term } => format!("({}){}", type_text(target), term_text(term)),
        Term::Cast { term, target, .. } => format!("CAST({} AS {})", term_text(term), type_text(target)),
        Term::Arithmetic {
            operator, left, right, ..
        } => {
            format!("{} {} {}", term_text(left), operator_text(*operator), term_text(right))
        }
        Term::Negate { of: inner, .. } => format!("-{}", term_text(inner)),
    }
}

/// `+`, `-`, `*`, `/`, `%`
#[must_use]
pub fn operator_text(operator: ArithmeticOperator) -> &'static str {
    match operator {
        ArithmeticOperator::Add => "+",
        ArithmeticOperator::Subtract => "-",
        ArithmeticOperator::Multiply => "*",
        ArithmeticOperator::Divide => "/",
        ArithmeticOperator::Modulo => "%",
    }
}

/// A type as it was written.
#[must_use]
pub fn type_text(written: &Type) -> String {
    super::name::written_name(written)
}
