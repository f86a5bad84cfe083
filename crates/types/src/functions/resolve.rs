//! Overload resolution, as Cassandra's `FunctionResolver` does it.

use super::argument::{Argument, fit};
use super::candidates::Candidates;
use super::{Error, Function, KEYSPACE};
use super::{aggregate, arithmetic, blob, cast, collection, floor, json, mask, math, similarity, time};
use crate::types::{Assignment, CqlType};
use grammar::ast::{ArithmeticOperator, QualifiedName};

/// The function families; each resolves its own names.
const FAMILIES: &[fn(&str) -> Option<Candidates>] = &[
    aggregate::find,
    time::find,
    floor::find,
    math::find,
    collection::find,
    blob::find,
    json::find,
    mask::find,
    similarity::find,
    cast::find,
    arithmetic::find,
];

fn find(name: &str) -> Option<Candidates> {
    FAMILIES.iter().find_map(|family| family(name))
}

/// Whether a built-in function has that name, given without a keyspace or with `system`.
#[must_use]
pub fn is_builtin(name: &QualifiedName) -> bool {
    name.keyspace
        .as_ref()
        .is_none_or(|keyspace| keyspace.as_str() == KEYSPACE)
        && find(name.name.as_str()).is_some()
}

/// Resolves the function of a call. `receiver` is the type that the result must fit, if known.
///
/// # Errors
/// In Cassandra's words; [`Error::Unknown`] when there is no built-in function of that name.
pub fn resolve(
    name: &QualifiedName,
    arguments: &[Argument<'_>],
    receiver: Option<&CqlType>,
) -> Result<Function, Error> {
    let written = match &name.keyspace {
        Some(keyspace) => format!("{}.{}", keyspace.as_str(), name.name.as_str()),
        None => name.name.as_str().to_owned(),
    };
    if !is_builtin(name) {
        return Err(Error::Unknown(written));
    }
    match find(name.name.as_str()) {
        None => Err(Error::Unknown(written)),
        Some(Candidates::Generic(make)) => {
            let function = make(name.name.as_str(), arguments, receiver)?;
            check(&function, arguments)?;
            Ok(function)
        }
        Some(Candidates::Overloads(candidates)) => pick(candidates, arguments, receiver, |compatible, candidates| {
            if compatible.is_empty() {
                Error::NoMatch(written.clone(), list(candidates))
            } else {
                Error::Ambiguous(written.clone(), list(compatible))
            }
        }),
    }
}

/// Resolves a call among the user-defined functions of one name. If the call has no keyspace, built-in functions of that
/// name are candidates too.
///
/// # Errors
/// In Cassandra's words.
pub fn choose(
    name: &QualifiedName,
    mut candidates: Vec<Function>,
    arguments: &[Argument<'_>],
    receiver: Option<&CqlType>,
) -> Result<Function, Error> {
    let written = match &name.keyspace {
        Some(keyspace) => format!("{}.{}", keyspace.as_str(), name.name.as_str()),
        None => name.name.as_str().to_owned(),
    };
    let built_in = if name.keyspace.is_none() {
        find(name.name.as_str())
    } else {
        None
    };
    match built_in {
        Some(Candidates::Overloads(others)) => candidates.extend(others),
        // Where the built-in function cannot be made, Cassandra refuses the call; else users' functions come first.
        Some(Candidates::Generic(make)) => candidates.push(make(name.name.as_str(), arguments, receiver)?),
        None => {}
    }
    pick(candidates, arguments, receiver, |compatible, candidates| {
        if compatible.is_empty() {
            Error::NoMatch(written.clone(), list(candidates))
        } else {
            Error::Ambiguous(written.clone(), list(compatible))
        }
    })
}

/// Resolves the operation `left operator right`.
///
/// # Errors
/// When there is no such operation, or several.
pub fn resolve_operation(
    operator: ArithmeticOperator,
    arguments: &[Argument<'_>; 2],
    receiver: Option<&CqlType>,
) -> Result<Function, Error> {
    let candidates = arithmetic::operations(operator);
    let [left, right] = arguments;
    let symbol = crate::types::operator_text(operator);
    let compatible = match matching(&candidates, arguments, receiver) {
        Match::Exact(function) => return Ok(function),
        Match::Weak(compatible) => compatible,
    };
    let (left_text, right_text) = (left.text.clone(), right.text.clone());
    match compatible.as_slice() {
        [] => Err(Error::Operation {
            operator: symbol,
            left: left_text,
            right: right_text,
        }),
        [only] => Ok(only.clone()),
        several => {
            // Literals take the type that they are assigned to.
            let like_receiver = receiver
                .filter(|_| !left.is_marker && !right.is_marker)
                .and_then(|receiver| {
                    let same =
                        |function: &&Function| function.argument_types().iter().all(|argument| argument == receiver);
                    several.iter().find(same).cloned()
                });
            like_receiver.ok_or(Error::AmbiguousOperation {
                operator: symbol,
                left: left_text,
                right: right_text,
            })
        }
    }
}

/// Resolves `-argument`.
///
/// # Errors
/// When the argument is no number, or several types fit.
pub fn resolve_negation(argument: &Argument<'_>, receiver: Option<&CqlType>) -> Result<Function, Error> {
    let argument = std::slice::from_ref(argument);
    pick(arithmetic::negations(), argument, receiver, |compatible, candidates| {
        if compatible.is_empty() {
            Error::NoMatch(format!("{KEYSPACE}._negate"), list(candidates))
        } else {
            Error::AmbiguousNegation
        }
    })
}

/// Resolves `CAST(argument AS target)`; `None` means that the value already has that type and stays unchanged.
///
/// # Errors
/// When there is no such cast.
pub fn resolve_cast(target: &str, argument: &Argument<'_>) -> Result<Option<Function>, Error> {
    let known = crate::types::Native::named(target).map(CqlType::Native);
    if known.is_some() && known == argument.natural {
        return Ok(None);
    }
    let candidates = cast::casts(target);
    if candidates.is_empty() {
        return Err(Error::Cast(argument.text.clone(), target.to_owned()));
    }
    let written = format!("{KEYSPACE}.cast_as_{target}");
    pick(
        candidates,
        std::slice::from_ref(argument),
        None,
        |compatible, candidates| {
            if compatible.is_empty() {
                Error::NoMatchingCast(written.clone(), list(candidates))
            } else {
                Error::AmbiguousCast(written.clone(), list(compatible))
            }
        },
    )
    .map(Some)
}

fn list(functions: &[Function]) -> String {
    functions.iter().map(Function::to_string).collect::<Vec<_>>().join(", ")
}

/// The overload that fits. A single candidate must fit; otherwise an exact match wins, then the only one that fits at
/// all.
fn pick(
    candidates: Vec<Function>,
    arguments: &[Argument<'_>],
    receiver: Option<&CqlType>,
    fail: impl Fn(&[Function], &[Function]) -> Error,
) -> Result<Function, Error> {
    if let [only] = candidates.as_slice() {
        check(only, arguments)?;
        return Ok(only.clone());
    }
    match matching(&candidates, arguments, receiver) {
        Match::Exact(function) => Ok(function),
        Match::Weak(compatible) => match compatible.as_slice() {
            [only] => Ok(only.clone()),
            several => Err(fail(several, &candidates)),
        },
    }
}

enum Match {
    Exact(Function),
    Weak(Vec<Function>),
}

fn matching(candidates: &[Function], arguments: &[Argument<'_>], receiver: Option<&CqlType>) -> Match {
    let mut weak = Vec::new();
    for candidate in candidates {
        let returns = receiver.is_none_or(|receiver| {
            let is_too_loose = matches!(receiver, CqlType::Frozen(_)) && candidate.returns_unfrozen();
            !is_too_loose && fit(candidate.return_type(), receiver).is_assignable()
        });
        let types = candidate.argument_types();
        if !returns || types.len() != arguments.len() {
            continue;
        }
        match Assignment::all(
            types
                .iter()
                .zip(arguments)
                .map(|(expected, argument)| argument.fit_of(candidate, expected)),
        ) {
            Assignment::Exact => return Match::Exact(candidate.clone()),
            Assignment::Weak => weak.push(candidate.clone()),
            Assignment::No => {}
        }
    }
    Match::Weak(weak)
}

/// Checks number and types of the arguments of the only candidate.
fn check(function: &Function, arguments: &[Argument<'_>]) -> Result<(), Error> {
    let types = function.argument_types();
    if types.len() != arguments.len() {
        return Err(Error::Count {
            function: format!("{}.{}", function.keyspace(), function.name()),
            required: types.len(),
            provided: arguments.len(),
        });
    }
    for (index, (expected, argument)) in types.iter().zip(arguments).enumerate() {
        if !argument.fit_of(function, expected).is_assignable() {
            return Err(Error::Argument {
                argument: argument.text.clone(),
                index,
                function: format!("{}.{}", function.keyspace(), function.name()),
                // Cassandra names arguments of users' functions without the `frozen` that is implied.
                expected: expected.unfrozen().cql_name(),
            });
        }
    }
    Ok(())
}
