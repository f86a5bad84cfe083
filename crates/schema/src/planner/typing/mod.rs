//! Typing of terms: literals, markers, collections and calls are resolved against the column that receives them.
//!
//! A term is typed part by part, and its parts are terms: so [`TypeChecker::term`] and [`TypeChecker::fit`] stand here, and
//! what they do with a call or a collection comes back to them. The result is a [`TypedTerm`], which knows nothing of this.

mod calls;
mod collections;
mod memo;

use std::sync::Arc;

use grammar::ast::{Literal, Site, Term};

pub(crate) use self::calls::argument;
pub(crate) use self::memo::{CallMemo, Clause};
use super::error::Error;
use super::function::Scope;
use super::markers::{MarkerSpec, Markers};
use super::refusal::TermRefusal;
use super::term::{ColumnSpec, TypedTerm, literal_value, type_fit, type_name};
use super::text::{TermText, type_text_full};
use super::value;
use crate::schema::{Schema, Table};
use helenus_types::types::{Assignment, CqlType, Native};

/// Determines the types of terms.
pub(crate) struct TypeChecker<'a> {
    /// The schema, for user-defined types and functions.
    pub(crate) schema: &'a Schema,
    /// The table's keyspace, or `[batch]`.
    pub(crate) keyspace: Arc<str>,
    /// The table, or `[batch]`.
    pub(crate) table_name: Arc<str>,
    /// The table; `None` means that the terms belong to a batch as a whole.
    pub(crate) table: Option<Arc<Table>>,
    /// The statement's markers.
    pub(crate) markers: &'a mut Markers,
    /// Types and fits of the statement's calls, resolved so far.
    pub(crate) calls: CallMemo,
}

impl TypeChecker<'_> {
    /// What the names of its functions mean.
    pub(crate) fn scope(&self) -> Scope<'_> {
        Scope {
            schema: self.schema,
            keyspace: &self.keyspace,
            table: self.table.as_deref(),
        }
    }

    /// Types the term for its receiver.
    pub(crate) fn term(&mut self, term: &Term, receiver: &ColumnSpec) -> Result<TypedTerm, Error> {
        match term {
            Term::BindMarker { at, .. } => Ok(self.marker(*at, receiver)),
            Term::Literal(Literal::Null) if receiver.ty == CqlType::Native(Native::Counter) => {
                Err(TermRefusal::NullCounter.into())
            }
            Term::Literal(literal) => Ok(TypedTerm::Constant(literal_value(literal, receiver)?)),
            Term::List(elements) => self.list(term, elements, receiver),
            Term::Set(elements) => self.set(term, elements, receiver),
            Term::Map(entries) => self.map(term, entries, receiver),
            Term::Tuple(elements) => match in_parentheses(elements, &receiver.ty) {
                Some(only) => self.term(only, receiver),
                None => self.tuple(elements, receiver),
            },
            Term::Udt(fields) => self.udt(fields, receiver),
            Term::TypeHint { target, term: inner } => {
                let ty = self.resolve_type(target)?;
                if self.fit(inner, &ty)? == Assignment::No {
                    return Err(TermRefusal::Hint {
                        value: TermText(inner).to_string(),
                        ty: type_name(&ty),
                    }
                    .into());
                }
                let is_loose = receiver.is_descending && matches!(receiver.ty.unfrozen(), CqlType::User(_));
                let fit = match is_loose {
                    true => type_fit(&ty, &receiver.ty),
                    false => self.fit(term, &receiver.ty)?,
                };
                if fit == Assignment::No {
                    return Err(TermRefusal::Hinted {
                        value: self.text(term),
                        receiver: receiver.name.clone(),
                        ty: type_name(&receiver.ty),
                    }
                    .into());
                }
                self.term(inner, receiver)
            }
            Term::Function { .. } | Term::Arithmetic { .. } | Term::Negate { .. } | Term::Cast { .. } => {
                calls::call(self, term, receiver)
            }
        }
    }

    /// Types the marker at this site.
    pub(crate) fn marker(&mut self, at: Site, receiver: &ColumnSpec) -> TypedTerm {
        let spec = MarkerSpec {
            keyspace: self.keyspace.clone(),
            table: self.table_name.clone(),
            name: receiver.name.clone(),
            ty: receiver.ty.clone(),
        };
        TypedTerm::Marker(
            self.markers.define(at, spec, receiver.partition_key),
            receiver.ty.clone(),
        )
    }

    /// A term in Cassandra's format.
    pub(crate) fn text(&self, term: &Term) -> String {
        match term {
            Term::TypeHint { target, term } => {
                format!("({}){}", type_text_full(target, &self.keyspace), self.text(term))
            }
            term => TermText(term).to_string(),
        }
    }

    /// Resolves a type as written; its user-defined types are those of the table's keyspace.
    pub(crate) fn resolve_type(&self, ty: &grammar::ast::Type) -> Result<CqlType, Error> {
        value::resolve_type(self.schema, &self.keyspace, ty)
    }

    /// How well a term fits a type (Cassandra's `testAssignment`).
    #[expect(clippy::too_many_lines, reason = "one arm for each term")]
    pub(crate) fn fit(&self, term: &Term, ty: &CqlType) -> Result<Assignment, Error> {
        let bare = ty.unfrozen();
        Ok(match term {
            Term::BindMarker { .. } => Assignment::Weak,
            Term::Literal(literal) => ty.assignable(literal),
            Term::List(elements) => match bare {
                CqlType::List(of) => self.fit_all(elements, of)?,
                CqlType::Vector(of, dimension) => {
                    if usize::try_from(*dimension).is_ok_and(|dimension| dimension == elements.len()) {
                        self.fit_all(elements, of)?
                    } else {
                        Assignment::No
                    }
                }
                _ => Assignment::No,
            },
            Term::Set(elements) => match bare {
                CqlType::Set(of) => self.fit_all(elements, of)?,
                CqlType::Map(..) if elements.is_empty() => Assignment::Weak,
                _ => Assignment::No,
            },
            Term::Map(entries) => match bare {
                CqlType::Map(key, of) => {
                    let mut worst = Assignment::of_elements(entries.len());
                    for (k, v) in entries {
                        worst = worst.min(self.fit(k, key)?).min(self.fit(v, of)?);
                    }
                    worst
                }
                _ => Assignment::No,
            },
            Term::Tuple(elements) => {
                if let Some(only) = in_parentheses(elements, ty) {
                    return self.fit(only, ty);
                }
                let types: Vec<&CqlType> = match bare {
                    CqlType::Tuple(of) => of.iter().collect(),
                    CqlType::User(user) => user.fields.iter().map(|(_, ty)| ty).collect(),
                    _ => return Ok(Assignment::No),
                };
                if elements.len() > types.len() {
                    return Ok(Assignment::No);
                }
                let mut worst = Assignment::Weak;
                for (element, ty) in elements.iter().zip(types) {
                    worst = worst.min(self.fit(element, ty)?);
                }
                worst
            }
            Term::Udt(fields) => match bare {
                CqlType::User(user) => {
                    let mut worst = Assignment::Weak;
                    for (name, term) in fields {
                        match user.fields.iter().find(|(field, _)| field == name.as_str()) {
                            Some((_, ty)) => worst = worst.min(self.fit(term, ty)?),
                            None => worst = Assignment::No,
                        }
                    }
                    worst
                }
                _ => Assignment::No,
            },
            Term::TypeHint { target, .. } => {
                let hint = self.resolve_type(target)?;
                // Of collections and user-defined types both are frozen, or neither.
                match hint.unfrozen().is_multi_cell() && hint.is_multi_cell() != ty.is_multi_cell() {
                    true => Assignment::No,
                    false => type_fit(&hint, ty),
                }
            }
            Term::Function { at, .. }
            | Term::Arithmetic { at, .. }
            | Term::Negate { at, .. }
            | Term::Cast { at, .. } => calls::fit(self, term, *at, ty),
        })
    }

    fn fit_all(&self, terms: &[Term], ty: &CqlType) -> Result<Assignment, Error> {
        let mut worst = Assignment::of_elements(terms.len());
        for term in terms {
            worst = worst.min(self.fit(term, ty)?);
        }
        Ok(worst)
    }
}

/// `(a)` is `a` unless the receiver is a tuple.
fn in_parentheses<'t>(elements: &'t [Term], ty: &CqlType) -> Option<&'t Term> {
    match elements {
        [only] if !matches!(ty.unfrozen(), CqlType::Tuple(_) | CqlType::User(_)) => Some(only),
        _ => None,
    }
}
