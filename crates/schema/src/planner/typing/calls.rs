//! Calls in terms: each is resolved by the types of its arguments and of what receives it.

use std::sync::Arc;

use grammar::ast::{Site, Term};

use super::TypeChecker;
use crate::planner::error::Error;
use crate::planner::function::{self, Callee, Resolved};
use crate::planner::refusal::{TermRefusal, Unsupported};
use crate::planner::term::{Call, ColumnSpec, TypedTerm, type_fit};
use crate::planner::text::qualified;
use helenus_types::functions::{self, Argument, Form, Function};
use helenus_types::types::{Assignment, CqlType};

/// The callee and the arguments of a term that is a call.
fn parts<'t>(term: &'t Term, target: &'t mut String) -> Option<(Callee<'t>, Vec<&'t Term>)> {
    Some(match term {
        Term::Function { name, arguments, .. } => (Callee::Name(name), arguments.iter().collect()),
        Term::Arithmetic {
            operator, left, right, ..
        } => (Callee::Operator(*operator), vec![left, right]),
        Term::Negate { of, .. } => (Callee::Negate, vec![of]),
        Term::Cast {
            term, target: written, ..
        } => {
            *target = function::cast_target(written);
            (Callee::Cast(target), vec![term])
        }
        _ => return None,
    })
}

/// A term as an argument.
pub(crate) fn argument<'a>(typer: &'a TypeChecker<'_>, term: &'a Term) -> Argument<'a> {
    let text = typer.text(term);
    match term {
        Term::BindMarker { .. } => Argument::marker(text),
        // Around a collection these may be parentheses or a tuple of one.
        Term::Tuple(of) if of.len() == 1 && !of.iter().any(is_collection) => {
            let mut inner = argument(typer, of.first().unwrap_or(term));
            inner.text = text;
            inner.natural = exact(typer, term);
            inner
        }
        _ => {
            let fits = |ty: &CqlType| typer.fit(term, ty).unwrap_or(Assignment::No);
            let mut found = Argument::open(text, natural(typer, term), fits);
            let inner = match term {
                Term::Tuple(of) if of.len() == 1 => of.first().unwrap_or(term),
                term => term,
            };
            found.form = match inner {
                Term::List(_) | Term::Set(_) | Term::Udt(_) => Form::Literal,
                _ if is_unfrozen(typer, term) => Form::Unfrozen,
                _ => Form::Other,
            };
            match inner {
                Term::List(of) => found.with_elements(u32::try_from(of.len()).unwrap_or(u32::MAX)),
                _ => found,
            }
        }
    }
}

/// Whether a term calls the only function of its name, whose result fits no frozen type. Of several, the one that fits is chosen later.
fn is_unfrozen(typer: &TypeChecker<'_>, term: &Term) -> bool {
    let Term::Function { name, .. } = term else {
        return false;
    };
    let users = function::user_functions(&typer.scope(), name);
    matches!(users.as_slice(), [only] if only.returns_unfrozen())
}

/// Whether a term has a type hint, in parentheses or not.
fn is_hinted(term: &Term) -> bool {
    match term {
        Term::Tuple(of) => matches!(of.as_slice(), [only] if is_hinted(only)),
        _ => matches!(term, Term::TypeHint { .. }),
    }
}

fn is_collection(term: &Term) -> bool {
    matches!(term, Term::List(_) | Term::Set(_) | Term::Map(_) | Term::Udt(_))
}

/// The type of a term without a receiver. Of constants it is the preferred one, of sets and maps of such the first that accepts all.
fn natural(typer: &TypeChecker<'_>, term: &Term) -> Option<CqlType> {
    let widest = |terms: &mut dyn Iterator<Item = &Term>| {
        let types: Vec<CqlType> = terms.filter_map(|term| natural(typer, term)).collect();
        let fits = |ty: &&CqlType| types.iter().all(|other| type_fit(other, ty).is_assignable());
        types.iter().find(fits).map(|ty| Arc::new(ty.freeze()))
    };
    match term {
        Term::Literal(literal) => helenus_types::types::preferred_type(literal).map(CqlType::Native),
        Term::Set(of) => Some(CqlType::Set(widest(&mut of.iter())?).freeze()),
        Term::Map(of) => {
            let key = widest(&mut of.iter().map(|(key, _)| key))?;
            let value = widest(&mut of.iter().map(|(_, value)| value))?;
            Some(CqlType::Map(key, value).freeze())
        }
        _ => exact(typer, term),
    }
}

/// The type that a term has by itself: a call's result, a type hint, or what is made of those. Functions of users have none in
/// Cassandra, which does not look for them here.
fn exact(typer: &TypeChecker<'_>, term: &Term) -> Option<CqlType> {
    let first = |mut terms: &mut dyn Iterator<Item = &Term>| {
        (&mut terms)
            .find_map(|term| exact(typer, term))
            .map(|ty| Arc::new(ty.freeze()))
    };
    match term {
        Term::TypeHint { target, .. } => typer.resolve_type(target).ok(),
        Term::Set(of) => Some(CqlType::Set(first(&mut of.iter())?).freeze()),
        Term::Map(of) => {
            let key = first(&mut of.iter().map(|(key, _)| key))?;
            let value = first(&mut of.iter().map(|(_, value)| value))?;
            Some(CqlType::Map(key, value).freeze())
        }
        Term::Tuple(of) => match of.as_slice() {
            [only] => exact(typer, only),
            of => {
                let types = of.iter().map(|of| Some(exact(typer, of)?.freeze()));
                Some(CqlType::Tuple(types.collect::<Option<_>>()?))
            }
        },
        _ if calls_users(typer, term) => None,
        Term::Function { at, .. } | Term::Arithmetic { at, .. } | Term::Negate { at, .. } | Term::Cast { at, .. } => {
            let find = || {
                Ok(resolve_term(typer, term, None)
                    .ok()
                    .flatten()
                    .map(|found| found.returns))
            };
            typer.calls.natural(*at, find).unwrap_or(None)
        }
        _ => None,
    }
}

/// Whether a call is of a user's function, or has a call of one among its arguments.
fn calls_users(typer: &TypeChecker<'_>, term: &Term) -> bool {
    if let Term::Function { name, .. } = term
        && !function::user_functions(&typer.scope(), name).is_empty()
    {
        return true;
    }
    let mut target = String::new();
    let arguments = parts(term, &mut target)
        .map(|(_, arguments)| arguments)
        .unwrap_or_default();
    arguments.into_iter().any(|argument| calls_users(typer, argument))
}

fn resolve_term(typer: &TypeChecker<'_>, term: &Term, receiver: Option<&CqlType>) -> Result<Option<Resolved>, Error> {
    let mut target = String::new();
    let Some((callee, terms)) = parts(term, &mut target) else {
        return Err(Unsupported::Term.into());
    };
    let is_cast = matches!(callee, Callee::Cast(_));
    let arguments = terms
        .into_iter()
        .map(|term| {
            let mut argument = argument(typer, term);
            // In a term, a cast does not infer the type of a literal.
            if is_cast && matches!(term, Term::Literal(_)) {
                argument.natural = None;
            }
            argument
        })
        .collect();
    function::resolve(&typer.scope(), callee, arguments, receiver)
}

/// Resolves a call for a receiver and types its arguments.
pub(crate) fn call(typer: &mut TypeChecker<'_>, term: &Term, receiver: &ColumnSpec) -> Result<TypedTerm, Error> {
    // A descending column of a user-defined type takes what is not frozen, too.
    let is_loose = receiver.is_descending && matches!(receiver.ty.unfrozen(), CqlType::User(_));
    let wanted = if is_loose { receiver.ty.unfrozen() } else { &receiver.ty };
    let resolved = resolve_term(typer, term, Some(wanted));
    let resolved = resolved.map_err(|error| match (term, error) {
        (Term::Function { name, .. }, Error::Call(error)) if matches!(*error, functions::Error::Unknown(_)) => {
            Error::UnknownFunction(qualified(name))
        }
        (_, error) => error,
    })?;
    let mut target = String::new();
    let terms = parts(term, &mut target).map(|(_, terms)| terms).unwrap_or_default();
    let Some(resolved) = resolved else {
        // A cast to the same type.
        return match terms.as_slice() {
            [only] => typer.term(only, receiver),
            _ => Err(Unsupported::Cast.into()),
        };
    };
    if resolved.is_aggregate() {
        return Err(TermRefusal::Aggregate.into());
    }
    let name = resolved.name();
    // A frozen value cannot be assigned to a multi-cell collection, unless a user-defined function returns it.
    let is_users = resolved.function.as_ref().is_some_and(Function::is_user_defined);
    let is_frozen_for_cells = !is_users
        && receiver.ty.is_multi_cell()
        && !matches!(receiver.ty, CqlType::User(_))
        && matches!(resolved.returns, CqlType::Frozen(_));
    let is_of_users_for_descending = is_users && receiver.is_descending && receiver.ty.unfrozen().is_collection();
    if is_frozen_for_cells || is_of_users_for_descending || type_fit(&resolved.returns, &receiver.ty) == Assignment::No
    {
        return Err(Error::Result {
            function: name.into(),
            returns: match is_users {
                true => resolved.returns.unfrozen().cql_name().into(),
                false => resolved.returns.cql_name().into(),
            },
            receiver: receiver.name.as_str().into(),
            expected: receiver.ty.cql_name().into(),
        });
    }
    let mut arguments = Vec::with_capacity(terms.len());
    for (index, (term, ty)) in terms.into_iter().zip(&resolved.arguments).enumerate() {
        // Only `token` has arguments of frozen types; the functions of an argument are chosen by the type that it has without `frozen`.
        let ty = match term {
            Term::Function { name, .. }
                if resolved.function.is_some() && !function::user_functions(&typer.scope(), name).is_empty() =>
            {
                ty.unfrozen()
            }
            _ if is_users && is_hinted(term) => ty.unfrozen(),
            _ => ty,
        };
        let mut receiver = ColumnSpec::new(format!("arg{index}({name})"), ty.clone());
        let of_token = typer.table.as_ref().filter(|_| resolved.function.is_none());
        let column = of_token.and_then(|table| table.partition_key().get(index));
        receiver.is_descending = column.is_some_and(|column| column.descending);
        arguments.push(typer.term(term, &receiver)?);
    }
    typer.calls.note(resolved.function.as_ref());
    Ok(TypedTerm::Call(Box::new(Call {
        function: resolved.function,
        arguments,
    })))
}

/// How well the call at `at` fits a type.
pub(crate) fn fit(typer: &TypeChecker<'_>, term: &Term, at: Site, ty: &CqlType) -> Assignment {
    typer.calls.fit(at, ty, || {
        match resolve_term(typer, term, Some(ty)) {
            // Of the casts to a type Cassandra finds none that has another type.
            Ok(Some(resolved)) if matches!(term, Term::Cast { .. }) => {
                type_fit(&resolved.returns, ty).max(Assignment::Weak)
            }
            Ok(Some(resolved)) => type_fit(&resolved.returns, ty),
            // A call that cannot be resolved is refused when its type is checked.
            Ok(None) | Err(_) => Assignment::Weak,
        }
    })
}
