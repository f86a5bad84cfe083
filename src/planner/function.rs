//! Calls: which function a name, an operator or a cast means for its arguments, in terms and in the SELECT clause.

use bytes::Bytes;
use grammar::ast::{ArithmeticOperator, QualifiedName, Term};

use super::error::{Error, invalid};
use super::term::{Binding, Receiver, Typed, Typer};
use super::text::{TermText, operator_sign, qualified};
use crate::functions::Function;
use crate::types::{Assignment, CqlType};

/// A call whose function is resolved.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// Which.
    pub(crate) function: Function,
    /// Its arguments.
    pub(crate) arguments: Vec<Typed>,
}

impl Call {
    /// The result.
    pub(crate) fn bind(&self, _: &Binding<'_>) -> Result<Option<Bytes>, Error> {
        Err(Error::Unsupported("A function call".into()))
    }
}

/// What resolution needs to know of an argument.
pub(crate) struct Argument<'a> {
    /// As written.
    pub(crate) text: String,
    /// Its type, where it has one of its own.
    pub(crate) exact: Option<CqlType>,
    /// The type that a constant has where nothing else says.
    pub(crate) preferred: Option<CqlType>,
    /// How well it fits a type.
    pub(crate) fit: Box<dyn Fn(&CqlType) -> Assignment + 'a>,
}

/// What is called.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Callee<'a> {
    /// A function by name.
    Name(&'a QualifiedName),
    /// An operator.
    Operator(ArithmeticOperator),
    /// `-a`
    Negate,
    /// `CAST(a AS type)`
    Cast(&'a CqlType),
}

/// A function with the types that it has for its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    /// Which.
    pub(crate) function: Function,
    /// `system.abs`
    pub(crate) name: String,
    /// The types its arguments must have.
    pub(crate) arguments: Vec<CqlType>,
    /// The type of its result.
    pub(crate) returns: CqlType,
    /// It takes many rows.
    pub(crate) is_aggregate: bool,
}

/// Finds the function.
pub(crate) fn resolve(
    _: &Typer<'_>,
    callee: Callee<'_>,
    _: &[Argument<'_>],
    _: Option<&Receiver>,
) -> Result<Resolved, Error> {
    match callee {
        Callee::Name(name) => invalid!("Unknown function '{}'", qualified(name)),
        Callee::Operator(operator) => Err(Error::Unsupported(
            format!("The operator {}", operator_sign(operator)).into(),
        )),
        Callee::Negate => Err(Error::Unsupported("Negation".into())),
        Callee::Cast(_) => Err(Error::Unsupported("CAST".into())),
    }
}

/// What a call's term calls, and with what.
fn parts<'t>(
    typer: &Typer<'_>,
    term: &'t Term,
    cast: &'t mut Option<CqlType>,
) -> Result<Option<(Callee<'t>, Vec<&'t Term>)>, Error> {
    Ok(match term {
        Term::Function { name, arguments } => Some((Callee::Name(name), arguments.iter().collect())),
        Term::Arithmetic { operator, left, right } => Some((Callee::Operator(*operator), vec![left, right])),
        Term::Negate(of) => Some((Callee::Negate, vec![of])),
        Term::Cast { term, target } => {
            let target = cast.insert(typer.resolve_type(target)?);
            Some((Callee::Cast(target), vec![term]))
        }
        _ => None,
    })
}

/// A term as an argument.
fn argument<'a>(typer: &'a Typer<'_>, term: &'a Term) -> Result<Argument<'a>, Error> {
    let exact = exact_type(typer, term)?;
    let preferred = match term {
        Term::Literal(literal) => crate::types::preferred_type(literal).map(CqlType::Native),
        _ => None,
    };
    Ok(Argument {
        text: TermText(term).to_string(),
        exact,
        preferred,
        fit: Box::new(|ty| typer.fit(term, ty).unwrap_or(Assignment::No)),
    })
}

/// The type that a term has of its own: a call's result, a type hint.
fn exact_type(typer: &Typer<'_>, term: &Term) -> Result<Option<CqlType>, Error> {
    Ok(match term {
        Term::TypeHint { target, .. } => Some(typer.resolve_type(target)?),
        Term::Function { .. } | Term::Arithmetic { .. } | Term::Negate(_) | Term::Cast { .. } => {
            resolve_term(typer, term, None).ok().map(|resolved| resolved.returns)
        }
        _ => None,
    })
}

fn resolve_term(typer: &Typer<'_>, term: &Term, receiver: Option<&Receiver>) -> Result<Resolved, Error> {
    let mut cast = None;
    let Some((callee, terms)) = parts(typer, term, &mut cast)? else {
        return Err(Error::Unsupported("This term".into()));
    };
    let arguments = terms
        .iter()
        .map(|term| argument(typer, term))
        .collect::<Result<Vec<_>, _>>()?;
    resolve(typer, callee, &arguments, receiver)
}

/// Types a call for a receiver.
pub(crate) fn call(typer: &mut Typer<'_>, term: &Term, receiver: &Receiver) -> Result<Typed, Error> {
    let resolved = resolve_term(typer, term, Some(receiver)).map_err(|error| match (term, error) {
        // The one message that is worded differently outside of the SELECT clause.
        (Term::Function { name, .. }, Error::Invalid(text)) if text.starts_with("Unknown function '") => {
            Error::invalid(format!("Unknown function {} called", qualified(name)))
        }
        (_, error) => error,
    })?;
    let mut cast = None;
    let terms = parts(typer, term, &mut cast)?
        .map(|(_, terms)| terms)
        .unwrap_or_default();
    if resolved.is_aggregate {
        return Err(Error::invalid(
            "Aggregation function are not supported in the where clause",
        ));
    }
    if super::term::type_fit(&resolved.returns, &receiver.ty) == Assignment::No {
        return invalid!(
            "Type error: cannot assign result of function {} (type {}) to {} (type {})",
            resolved.name,
            resolved.returns.cql_name(),
            receiver.name,
            receiver.ty.cql_name()
        );
    }
    let mut arguments = Vec::with_capacity(terms.len());
    for (index, (term, ty)) in terms.into_iter().zip(&resolved.arguments).enumerate() {
        let receiver = Receiver::new(format!("arg{index}({})", resolved.name), ty.clone());
        arguments.push(typer.term(term, &receiver)?);
    }
    Ok(Typed::Call(Box::new(Call {
        function: resolved.function,
        arguments,
    })))
}

/// How well a call fits a type.
pub(crate) fn fit(typer: &Typer<'_>, term: &Term, ty: &CqlType) -> Result<Assignment, Error> {
    let receiver = Receiver::new(String::new(), ty.clone());
    // What cannot be resolved says so when it is prepared.
    Ok(match resolve_term(typer, term, Some(&receiver)) {
        Ok(resolved) => super::term::type_fit(&resolved.returns, ty),
        Err(_) => Assignment::Weak,
    })
}

/// Whether a function keeps the order of its argument's values, so that rows can be grouped by it.
pub(crate) fn is_monotonic(_: &Function) -> bool {
    false
}

/// `system.abs : (int) -> int`
pub(crate) fn signature(_: &Function) -> String {
    String::new()
}
