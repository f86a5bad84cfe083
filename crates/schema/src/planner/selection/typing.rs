//! Types of selectors: a selector's own type, how well it fits another type, the function of its call, and its text in
//! messages.

use std::cell::OnceCell;
use std::sync::Arc;

use grammar::ast::{self, MetadataKind, Selector, Term};

use super::{SelectorPlanner, parts::metadata_name, term_text};
use crate::planner::error::Error;
use crate::planner::function::{self, Callee, Resolved};
use crate::planner::operation;
use crate::planner::refusal::{SelectionRefusal, Unsupported};
use crate::planner::term::type_fit;
use crate::planner::text::{Joined, operator_sign, type_text_full};
use helenus_types::functions::{Argument, Form, KEYSPACE};
use helenus_types::types::{Assignment, CqlType, Native};

impl SelectorPlanner<'_, '_> {
    /// The selector's own type, if it has one (`Selectable.getExactTypeIfKnown`).
    pub(super) fn exact(&self, selector: &Selector) -> Result<Option<CqlType>, Error> {
        Ok(match selector {
            Selector::Column(name) => Some(self.column(name)?.1),
            Selector::Term(_) => None,
            Selector::CountRows(_) => Some(CqlType::Native(Native::Bigint)),
            Selector::Function { at, .. } | Selector::Arithmetic { at, .. } | Selector::Negate { at, .. } => {
                let find = || Ok(Some(self.resolve(selector, None)?.returns));
                self.typer.calls.natural(*at, find)?
            }
            Selector::Cast { target, .. } => Some(self.typer.resolve_type(target)?),
            Selector::Metadata { kind, of } => Some(self.metadata_type(*kind, of)?),
            Selector::Field { of, field } => match self.inner_exact(of)?.as_ref().map(CqlType::unfrozen) {
                Some(CqlType::User(user)) => operation::field_of(user, field).map(|(_, ty)| ty.clone()),
                _ => None,
            },
            Selector::Element { of: whole, .. } => match self.exact(whole)?.as_ref().map(CqlType::unfrozen) {
                Some(CqlType::Map(_, of) | CqlType::Set(of)) => Some((**of).clone()),
                Some(CqlType::List(_)) => {
                    let name = self.text(whole)?;
                    return Err(SelectionRefusal::PartOfList { what: "Element", name }.into());
                }
                _ => None,
            },
            Selector::Slice { of, .. } => self.exact(of)?,
            Selector::TypeHint { target, .. } => Some(self.typer.resolve_type(target)?),
            // A selector in parentheses may be a tuple of one, or just itself.
            Selector::Tuple(of) if of.len() == 1 => None,
            Selector::Tuple(of) => {
                let types = of
                    .iter()
                    .map(|of| self.exact(of))
                    .collect::<Result<Option<Vec<_>>, _>>()?;
                types.map(|types| CqlType::Tuple(types.iter().map(CqlType::freeze).collect()))
            }
            Selector::List(of) => self
                .first_exact(of)?
                .map(|of| CqlType::List(Arc::new(of.freeze())).freeze()),
            Selector::Set(of) => self
                .first_exact(of)?
                .map(|of| CqlType::Set(Arc::new(of.freeze())).freeze()),
            // A map and a user-defined type have the same syntax: only a hint tells them apart.
            Selector::Map(_) => None,
        })
    }

    /// Like [`Self::exact`], but a selector in parentheses is itself.
    pub(super) fn inner_exact(&self, selector: &Selector) -> Result<Option<CqlType>, Error> {
        match selector {
            Selector::Tuple(of) => match of.as_slice() {
                [only] => self.inner_exact(only),
                _ => self.exact(selector),
            },
            _ => self.exact(selector),
        }
    }

    pub(super) fn first_exact<'s>(
        &self,
        selectors: impl IntoIterator<Item = &'s Selector>,
    ) -> Result<Option<CqlType>, Error> {
        for selector in selectors {
            if let Some(ty) = self.exact(selector)? {
                return Ok(Some(ty));
            }
        }
        Ok(None)
    }

    /// How well a selector fits a type (`Selectable.testAssignment`).
    #[expect(
        clippy::too_many_lines,
        reason = "one arm for each selector and the type that it meets"
    )]
    pub(super) fn fit(&self, selector: &Selector, ty: &CqlType) -> Result<Assignment, Error> {
        let all = |selectors: &[Selector], ty: &CqlType| -> Result<Assignment, Error> {
            let mut worst = Assignment::of_elements(selectors.len());
            for selector in selectors {
                worst = worst.min(self.fit(selector, ty)?);
            }
            Ok(worst)
        };
        match (selector, ty.unfrozen()) {
            (Selector::Term(term), _) => self.typer.fit(term, ty),
            (Selector::Tuple(of), CqlType::Tuple(types)) => {
                if of.len() > types.len() {
                    return Ok(Assignment::No);
                }
                let mut worst = Assignment::Weak;
                for (selector, ty) in of.iter().zip(types.iter()) {
                    worst = worst.min(self.fit(selector, ty)?);
                }
                Ok(worst)
            }
            (Selector::Tuple(of), CqlType::User(user)) if of.len() > 1 => {
                if of.len() > user.fields.len() {
                    return Ok(Assignment::No);
                }
                let mut worst = Assignment::Weak;
                for (selector, (_, ty)) in of.iter().zip(&user.fields) {
                    worst = worst.min(self.fit(selector, ty)?);
                }
                Ok(worst)
            }
            (Selector::Tuple(of), _) => match of.as_slice() {
                [only] => self.fit(only, ty),
                _ => Ok(Assignment::No),
            },
            (Selector::List(of), CqlType::List(element)) => all(of, element),
            // The number of elements is checked when the vector is planned.
            (Selector::List(of), CqlType::Vector(element, _)) => all(of, element),
            (Selector::Set(of), CqlType::Set(element)) => all(of, element),
            (Selector::Set(of), CqlType::Map(..)) if of.is_empty() => Ok(Assignment::Weak),
            (Selector::Map(entries), CqlType::Map(key, value)) => {
                self.entries_exist(entries)?;
                let mut worst = Assignment::of_elements(entries.len());
                for (k, v) in entries {
                    worst = worst.min(self.fit(k, key)?).min(self.fit(v, value)?);
                }
                Ok(worst)
            }
            (Selector::Map(entries), CqlType::User(user)) => {
                let mut worst = Assignment::Weak;
                for (k, v) in entries {
                    let field = match k {
                        Selector::Column(name) => operation::field_of(user, name),
                        _ => None,
                    };
                    worst = match (field, k) {
                        (Some((_, ty)), _) => worst.min(self.fit(v, ty)?),
                        (None, Selector::Column(name)) => {
                            return Err(SelectionRefusal::UnknownField {
                                field: name.as_str().to_owned(),
                                user_type: user.name.clone(),
                            }
                            .into());
                        }
                        (None, _) => Assignment::No,
                    };
                }
                Ok(worst)
            }
            (Selector::Map(entries), _) => {
                self.entries_exist(entries)?;
                Ok(Assignment::No)
            }
            (Selector::List(_) | Selector::Set(_), _) => Ok(Assignment::No),
            // A call may resolve to another function if another type is required.
            (Selector::Function { at, .. } | Selector::Arithmetic { at, .. } | Selector::Negate { at, .. }, _) => {
                Ok(self.typer.calls.fit(*at, ty, || {
                    match self
                        .resolve(selector, Some(ty))
                        .or_else(|_| self.resolve(selector, None))
                    {
                        Ok(resolved) => type_fit(&resolved.returns, ty),
                        Err(_) => Assignment::No,
                    }
                }))
            }
            _ => Ok(self
                .exact(selector)?
                .map_or(Assignment::No, |exact| type_fit(&exact, ty))),
        }
    }

    /// Checks the columns of a map's entries. In Cassandra a map is one only if no user-defined type is required, so it
    /// looks for them late.
    fn entries_exist(&self, entries: &[(Selector, Selector)]) -> Result<(), Error> {
        for (key, value) in entries {
            self.exact(key)?;
            self.exact(value)?;
        }
        Ok(())
    }

    /// An argument of a call. The first fault of a test whether it fits a type is kept: it ends the search for the function.
    fn argument<'s>(&'s self, selector: &'s Selector, fault: &'s OnceCell<Error>) -> Result<Argument<'s>, Error> {
        let text = self.text(selector)?;
        let natural = match selector {
            Selector::Term(Term::BindMarker { .. }) => return Ok(Argument::marker(text)),
            Selector::Term(Term::Literal(literal)) => {
                helenus_types::types::preferred_type(literal).map(CqlType::Native)
            }
            Selector::Tuple(of) => match of.as_slice() {
                [only] => {
                    let inner = self.argument(only, fault)?;
                    if inner.is_marker {
                        return Ok(Argument::marker(text));
                    }
                    // For a tuple it is one of one.
                    let fits = move |ty: &CqlType| self.fit_or_fault(selector, ty, fault);
                    let mut found = Argument::open(text, None, fits);
                    (found.form, found.elements) = (inner.form, inner.elements);
                    return Ok(found);
                }
                _ => self.compatible(selector)?,
            },
            Selector::List(_) | Selector::Set(_) => self.compatible(selector)?,
            _ => self.exact(selector)?,
        };
        let fits = move |ty: &CqlType| self.fit_or_fault(selector, ty, fault);
        let mut found = Argument::open(text, natural, fits);
        found.form = match selector {
            Selector::List(_) | Selector::Set(_) => Form::Literal,
            Selector::TypeHint { .. } => Form::HintedSelector,
            Selector::Column(name) if self.is_descending_collection(name) => Form::Descending,
            _ if self.is_unfrozen(selector) => Form::Unfrozen,
            _ => Form::Other,
        };
        Ok(match selector {
            Selector::List(of) => found.with_elements(u32::try_from(of.len()).unwrap_or(u32::MAX)),
            _ => found,
        })
    }

    fn fit_or_fault(&self, selector: &Selector, ty: &CqlType, fault: &OnceCell<Error>) -> Assignment {
        self.fit(selector, ty).unwrap_or_else(|error| {
            fault.get_or_init(|| error);
            Assignment::No
        })
    }

    /// The type that a function infers for a selector without a receiver. For a collection's elements, it is the first
    /// type that accepts the values of all others (`Selectable.getCompatibleTypeIfKnown`).
    fn compatible(&self, selector: &Selector) -> Result<Option<CqlType>, Error> {
        let of = match selector {
            Selector::Term(Term::Literal(literal)) => {
                return Ok(helenus_types::types::preferred_type(literal).map(CqlType::Native));
            }
            Selector::List(of) | Selector::Set(of) => of,
            Selector::Tuple(of) if of.len() > 1 => {
                let types = of
                    .iter()
                    .map(|of| self.compatible(of))
                    .collect::<Result<Option<Vec<_>>, _>>()?;
                return Ok(types.map(|types| CqlType::Tuple(types.iter().map(CqlType::freeze).collect())));
            }
            _ => return self.exact(selector),
        };
        let mut types = Vec::with_capacity(of.len());
        for selector in of {
            types.extend(self.compatible(selector)?);
        }
        let widest = types
            .iter()
            .find(|ty| types.iter().all(|other| type_fit(other, ty) != Assignment::No));
        Ok(widest.map(|ty| {
            let element = Arc::new(ty.freeze());
            let is_list = matches!(selector, Selector::List(_));
            if is_list {
                CqlType::List(element)
            } else {
                CqlType::Set(element)
            }
            .freeze()
        }))
    }

    fn is_descending_collection(&self, name: &ast::Name) -> bool {
        let table = self.typer.table.as_ref();
        let column = table.and_then(|table| table.column(name.as_str()));
        column.is_some_and(|(_, column)| column.is_descending_collection())
    }

    /// Whether it calls a function whose result fits no frozen type.
    fn is_unfrozen(&self, selector: &Selector) -> bool {
        let Selector::Function { name, .. } = selector else {
            return false;
        };
        let resolved = function::is_users(&self.typer.scope(), name).then(|| self.resolve(selector, None));
        let function = resolved.and_then(Result::ok).and_then(|resolved| resolved.function);
        function.is_some_and(|function| function.returns_unfrozen())
    }

    /// Resolves the function of a call.
    pub(super) fn resolve(&self, selector: &Selector, receiver: Option<&CqlType>) -> Result<Resolved, Error> {
        let (callee, selectors): (Callee<'_>, Vec<&Selector>) = match selector {
            Selector::Function { name, arguments, .. } => (Callee::Name(name), arguments.iter().collect()),
            Selector::Arithmetic {
                operator, left, right, ..
            } => (Callee::Operator(*operator), vec![left, right]),
            Selector::Negate { of, .. } => (Callee::Negate, vec![of]),
            _ => return Err(Unsupported::Selector.into()),
        };
        let fault = OnceCell::new();
        let arguments = selectors
            .into_iter()
            .map(|of| self.argument(of, &fault))
            .collect::<Result<Vec<_>, _>>()?;
        let resolved = function::resolve(&self.typer.scope(), callee, arguments, receiver);
        if let Some(fault) = fault.into_inner() {
            return Err(fault);
        }
        resolved?.ok_or_else(|| Unsupported::Selector.into())
    }

    /// Resolves the function of a call for the type `expected`; the caller checks whether it fits.
    pub(super) fn resolve_for(&self, selector: &Selector, expected: Option<&CqlType>) -> Result<Resolved, Error> {
        match (self.resolve(selector, expected), expected) {
            (Err(error), Some(_)) if error.is_invalid() => self.resolve(selector, None),
            (found, _) => found,
        }
    }

    /// A selector in Cassandra's format.
    pub(super) fn text(&self, selector: &Selector) -> Result<String, Error> {
        let list = |of: &[Selector]| -> Result<String, Error> {
            let texts = of.iter().map(|of| self.text(of)).collect::<Result<Vec<_>, _>>()?;
            Ok(Joined(&texts, ", ").to_string())
        };
        Ok(match selector {
            Selector::Column(name) => name.as_str().to_owned(),
            Selector::Term(term) => term_text(term),
            Selector::CountRows(_) => "count".to_owned(),
            Selector::Function { name, arguments, .. } => {
                let own: &str = match function::is_users(&self.typer.scope(), name) {
                    true => &self.typer.keyspace,
                    false => KEYSPACE,
                };
                let keyspace = name.keyspace.as_ref().map_or(own, |keyspace| keyspace.as_str());
                let full = format!("{keyspace}.{}", name.name.as_str());
                format!("{full}({})", list(arguments)?)
            }
            Selector::Metadata { kind, of } => format!("{}({})", metadata_name(*kind), self.text(of)?),
            Selector::Cast { selector, target } => {
                format!(
                    "cast({} as {})",
                    self.text(selector)?,
                    self.typer.resolve_type(target)?.cql_name()
                )
            }
            Selector::Field { of, field } => format!("{}.{}", self.text(of)?, field.as_str()),
            Selector::Element { of, key } => format!("{}[{}]", self.text(of)?, term_text(key)),
            Selector::Slice { of, from, to } => {
                let end = |term: &Option<Term>| term.as_ref().map(term_text).unwrap_or_default();
                format!("{}[{}..{}]", self.text(of)?, end(from), end(to))
            }
            Selector::Arithmetic {
                operator, left, right, ..
            } => {
                format!(
                    "{} {} {}",
                    self.text(left)?,
                    operator_sign(*operator),
                    self.text(right)?
                )
            }
            Selector::Negate { of, .. } => format!("-{}", self.text(of)?),
            Selector::TypeHint { target, selector } => {
                format!("({}){}", self.hint_text(target)?, self.text(selector)?)
            }
            Selector::Tuple(of) => format!("({})", list(of)?),
            Selector::List(of) => format!("[{}]", list(of)?),
            Selector::Set(of) => format!("{{{}}}", list(of)?),
            Selector::Map(entries) => {
                let texts = entries
                    .iter()
                    .map(|(key, value)| Ok(format!("{}: {}", self.text(key)?, self.text(value)?)))
                    .collect::<Result<Vec<_>, Error>>()?;
                format!("{{{}}}", Joined(&texts, ", "))
            }
        })
    }

    pub(super) fn hint_text(&self, target: &ast::Type) -> Result<String, Error> {
        // Resolved first, so that its errors win.
        self.typer.resolve_type(target)?;
        Ok(type_text_full(target, &self.typer.keyspace))
    }

    pub(super) fn metadata_type(&self, kind: MetadataKind, of: &Selector) -> Result<CqlType, Error> {
        let native = CqlType::Native(if kind == MetadataKind::Ttl {
            Native::Int
        } else {
            Native::Bigint
        });
        let many = match of {
            Selector::Column(name) => self.column(name)?.1.is_multi_cell(),
            Selector::Slice { of, .. } => match &**of {
                Selector::Column(name) => self.column(name)?.1.is_multi_cell(),
                _ => false,
            },
            _ => false,
        };
        Ok(if many && kind != MetadataKind::MaxWriteTime {
            CqlType::List(Arc::new(native))
        } else {
            native
        })
    }
}
