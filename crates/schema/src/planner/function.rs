//! Calls: resolves a name, an operator or a cast to the function for its arguments, in terms and in the SELECT clause.
//!
//! Overloads are resolved by `functions`. This module adds the parts that need a statement: how its terms fit types,
//! which user-defined functions there are, and `token`, whose arguments are a table's partition key.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use grammar::ast::{ArithmeticOperator, QualifiedName, Site, Term};

use super::error::Error;
use super::key::partition_key;
use super::refusal::{TermRefusal, Unsupported};
use super::term::{Binding, ColumnSpec, TypeChecker, TypedTerm, type_fit};
use super::text::qualified;
use super::value;
use crate::command::Value;
use crate::schema::{Keyspace, UserAggregate, UserFunction};
use helenus_types::functions::{self, Argument, Form, Function, UserFold};
use helenus_types::token::Token;
use helenus_types::types::{Assignment, CqlType, Native};

/// A call whose function is resolved.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The function; `None` means `token`.
    function: Option<Function>,
    /// Its arguments.
    pub(crate) arguments: Vec<TypedTerm>,
}

impl Call {
    /// The result. A user-defined function returns sets and maps in any order, which are stored in theirs.
    pub(crate) fn bind(&self, binding: &Binding<'_>) -> Result<Option<Bytes>, Error> {
        let bytes = self.result(binding)?;
        match (&self.function, &bytes) {
            (Some(function), Some(bytes)) if function.is_user_defined() => {
                value::bound(function.return_type(), bytes).map(Some)
            }
            _ => Ok(bytes),
        }
    }

    /// The result as the function returned it, which another function receives.
    fn result(&self, binding: &Binding<'_>) -> Result<Option<Bytes>, Error> {
        let mut arguments = Vec::with_capacity(self.arguments.len());
        for argument in &self.arguments {
            if let TypedTerm::Call(call) = argument {
                arguments.push(call.result(binding)?);
                continue;
            }
            arguments.push(match argument.bind(binding)? {
                Value::Bytes(bytes) => Some(bytes),
                Value::Null => None,
                Value::Unset => {
                    let name = self.function.as_ref().map_or("token", Function::name);
                    return Err(TermRefusal::UnsetArgument(name.to_owned()).into());
                }
            });
        }
        match &self.function {
            Some(function) => function.call(&arguments, binding.context).map_err(refusal),
            None => match arguments.into_iter().collect::<Option<Vec<Bytes>>>() {
                Some(components) => {
                    let token = Token::of(&partition_key(&components)?);
                    Ok(Some(Bytes::copy_from_slice(&token.value().to_be_bytes())))
                }
                None => Ok(None),
            },
        }
    }
}

/// Converts an error of `functions` to one of the planner.
pub(crate) fn refusal(error: functions::Error) -> Error {
    match error {
        functions::Error::Failed(failed) => Error::Function(failed),
        error => Error::Call(Box::new(error)),
    }
}

/// The callee of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Callee<'a> {
    /// A function by name.
    Name(&'a QualifiedName),
    /// An operator.
    Operator(ArithmeticOperator),
    /// `-a`
    Negate,
    /// `CAST(a AS type)`: the type as written.
    Cast(&'a str),
}

/// A resolved function, with the types for its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    /// The function; `None` means `token`.
    pub(crate) function: Option<Function>,
    /// The required types of its arguments.
    pub(crate) arguments: Vec<CqlType>,
    /// The type of its result.
    pub(crate) returns: CqlType,
}

impl Resolved {
    fn of(function: Function) -> Self {
        Self {
            arguments: function.argument_types().to_vec(),
            returns: function.return_type().clone(),
            function: Some(function),
        }
    }

    /// Its name with its keyspace.
    pub(crate) fn name(&self) -> String {
        match &self.function {
            Some(function) => format!("{}.{}", function.keyspace(), function.name()),
            None => TOKEN.to_owned(),
        }
    }

    /// Whether it is an aggregate.
    pub(crate) fn is_aggregate(&self) -> bool {
        self.function.as_ref().is_some_and(Function::is_aggregate)
    }

    /// The name of the result column, given those of its arguments.
    pub(crate) fn result_name(&self, arguments: &[String]) -> String {
        match &self.function {
            Some(function) => function.result_name(arguments),
            None => format!("{}({})", self.name(), arguments.join(", ")),
        }
    }
}

/// Resolves the function; `None` means a cast to the same type.
pub(crate) fn resolve(
    typer: &TypeChecker<'_>,
    callee: Callee<'_>,
    arguments: Vec<Argument<'_>>,
    receiver: Option<&CqlType>,
) -> Result<Option<Resolved>, Error> {
    let found = match callee {
        Callee::Name(name) => {
            let is_system = name
                .keyspace
                .as_ref()
                .is_none_or(|keyspace| keyspace.as_str() == functions::KEYSPACE);
            if is_system && name.name.as_str() == "token" {
                return token(typer, &arguments).map(Some);
            }
            named(typer, name, &arguments, receiver)
        }
        Callee::Operator(operator) => match <[Argument<'_>; 2]>::try_from(arguments) {
            Ok(arguments) => functions::resolve_operation(operator, &arguments, receiver),
            Err(_) => return Err(TermRefusal::OperatorOperands.into()),
        },
        Callee::Negate => match arguments.first() {
            Some(argument) => functions::resolve_negation(argument, receiver),
            None => return Err(TermRefusal::NegationOperand.into()),
        },
        Callee::Cast(target) => match arguments
            .first()
            .map(|argument| functions::resolve_cast(target, argument))
        {
            Some(Ok(None)) => return Ok(None),
            Some(Ok(Some(function))) => Ok(function),
            Some(Err(error)) => Err(error),
            None => return Err(TermRefusal::CastOperand.into()),
        },
    };
    found.map(|function| Some(Resolved::of(function))).map_err(refusal)
}

/// The function or aggregate of this name, built-in or of a user, that takes these arguments.
pub(crate) fn named(
    typer: &TypeChecker<'_>,
    name: &QualifiedName,
    arguments: &[Argument<'_>],
    receiver: Option<&CqlType>,
) -> Result<Function, functions::Error> {
    let candidates = user_functions(typer, name);
    if candidates.is_empty() {
        functions::resolve(name, arguments, receiver)
    } else {
        functions::choose(name, candidates, arguments, receiver)
    }
}

/// The function that depends on a table's partition key, and so is not among the built-in ones.
const TOKEN: &str = "system.token";

/// `token(…)` of the table's partition key.
fn token(typer: &TypeChecker<'_>, arguments: &[Argument<'_>]) -> Result<Resolved, Error> {
    let Some(table) = &typer.table else {
        return Err(refusal(functions::Error::Unknown("token".to_owned())));
    };
    let key = table.partition_key();
    let types: Vec<CqlType> = key.iter().map(|column| column.ty.clone()).collect();
    if types.len() != arguments.len() {
        return Err(refusal(functions::Error::Count {
            function: TOKEN.to_owned(),
            required: types.len(),
            provided: arguments.len(),
        }));
    }
    for (index, (column, argument)) in key.iter().zip(arguments).enumerate() {
        let ty = &column.ty;
        let is_native = matches!(ty, CqlType::Native(_));
        // To Cassandra the type of a descending column is of another class, which is neither frozen nor not.
        let is_loose = column.descending && matches!(ty.unfrozen(), CqlType::User(_));
        let is_unfit = match argument.form {
            Form::Unfrozen => matches!(ty, CqlType::Frozen(_)) && !is_loose,
            Form::Literal => column.descending && !is_native,
            _ => false,
        };
        let fits = argument.fit(ty).is_assignable() || is_loose && argument.fit(ty.unfrozen()).is_assignable();
        if is_unfit || !fits {
            return Err(refusal(functions::Error::Argument {
                argument: argument.text.clone(),
                index,
                function: TOKEN.to_owned(),
                expected: ty.cql_name(),
            }));
        }
    }
    Ok(Resolved {
        function: None,
        arguments: types,
        returns: CqlType::Native(Native::Bigint),
    })
}

/// The user-defined functions and aggregates of this name.
fn user_functions(typer: &TypeChecker<'_>, name: &QualifiedName) -> Vec<Function> {
    let keyspace = name
        .keyspace
        .as_ref()
        .map_or(&*typer.keyspace, |keyspace| keyspace.as_str());
    let Some(keyspace) = typer.schema.keyspaces.get(keyspace) else {
        return Vec::new();
    };
    let name = name.name.as_str();
    let scalars = keyspace.functions.iter().filter(|function| function.name == name);
    let aggregates = keyspace.aggregates.iter().filter(|aggregate| aggregate.name == name);
    let scalars = scalars.map(|function| Function::user_scalar(function.definition(keyspace)));
    scalars
        .chain(aggregates.filter_map(|aggregate| fold(keyspace, aggregate)))
        .collect()
}

/// Whether a name without a keyspace is that of a user-defined function or aggregate.
pub(crate) fn is_users(typer: &TypeChecker<'_>, name: &QualifiedName) -> bool {
    let name = name.name.as_str();
    typer.schema.keyspaces.get(&*typer.keyspace).is_some_and(|keyspace| {
        keyspace.functions.iter().any(|function| function.name == name)
            || keyspace.aggregates.iter().any(|aggregate| aggregate.name == name)
    })
}

/// A user-defined aggregate with its state and final functions.
fn fold(keyspace: &Keyspace, aggregate: &UserAggregate) -> Option<Function> {
    let find = |name: &str, types: &[&CqlType]| {
        let same = |function: &&Arc<UserFunction>| {
            let own = function.arguments.iter().map(|(_, ty)| ty.unfrozen());
            function.name == name && own.eq(types.iter().map(|ty| ty.unfrozen()))
        };
        let found = keyspace.functions.iter().find(same)?;
        Some(Function::user_scalar(found.definition(keyspace)))
    };
    let taken: Vec<&CqlType> = std::iter::once(&aggregate.state_type)
        .chain(&aggregate.arguments)
        .collect();
    let last = match &aggregate.final_function {
        Some(name) => Some(find(name, &[&aggregate.state_type])?),
        None => None,
    };
    let initial = aggregate.initial_condition.as_ref();
    let initial = initial.and_then(|text| aggregate.state_type.parse_literal(text).ok().flatten());
    let state = find(&aggregate.state_function, &taken)?;
    let (arguments, returns) = (aggregate.arguments.clone(), aggregate.returns.clone());
    let fold = UserFold { state, last, initial };
    Some(Function::user_aggregate(
        &keyspace.name,
        &aggregate.name,
        arguments,
        returns,
        fold,
    ))
}

/// The name of a cast's target, as written.
pub(crate) fn cast_target(target: &grammar::ast::Type) -> String {
    super::text::type_text(target)
}

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
            *target = cast_target(written);
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
    let users = user_functions(typer, name);
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

/// Memo of the types and fits of a statement's calls, by the token of each. Each overload of a function tests its
/// arguments again, and so do their overloads. Without this memo the cost of nested calls is exponential in their
/// depth.
#[derive(Debug, Default)]
pub(crate) struct CallMemo {
    fits: RefCell<HashMap<(u32, CqlType), Assignment>>,
    natural: RefCell<HashMap<u32, Option<CqlType>>>,
    /// The user-defined functions that are called, each with its clause.
    called: RefCell<Vec<(Clause, Function)>>,
    clause: Cell<Clause>,
}

/// A clause of a statement, in the order in which Cassandra collects the functions that it calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Clause {
    /// What SELECT selects.
    #[default]
    Selection,
    /// WHERE, and the key of an INSERT.
    Where,
    /// SET, VALUES, and what DELETE deletes.
    Set,
    /// IF.
    If,
}

impl CallMemo {
    /// Names the clause of the calls that follow.
    pub(crate) fn enter(&self, clause: Clause) {
        self.clause.set(clause);
    }

    /// Notes a call.
    pub(crate) fn note(&self, function: Option<&Function>) {
        if let Some(function) = function.filter(|function| function.is_user_defined()) {
            self.called.borrow_mut().push((self.clause.get(), function.clone()));
        }
    }

    /// The user-defined functions that the statement calls, in Cassandra's order, with those that its aggregates call.
    pub(crate) fn called(&self) -> Box<[Function]> {
        let mut called = self.called.take();
        called.sort_by_key(|(clause, _)| *clause);
        let mut all: Vec<Function> = Vec::new();
        for function in called.iter().flat_map(|(_, function)| function.with_parts()) {
            if !all.contains(function) {
                all.push(function.clone());
            }
        }
        all.into()
    }

    /// How well a call fits a type; computed once.
    pub(crate) fn fit(&self, at: Site, ty: &CqlType, find: impl FnOnce() -> Assignment) -> Assignment {
        let key = (at.token(), ty.clone());
        if let Some(known) = self.fits.borrow().get(&key) {
            return *known;
        }
        let found = find();
        self.fits.borrow_mut().insert(key, found);
        found
    }

    /// The type of a call without a receiver; computed once.
    ///
    /// # Errors
    /// Those of `find`, which are not kept.
    pub(crate) fn natural(
        &self,
        at: Site,
        find: impl FnOnce() -> Result<Option<CqlType>, Error>,
    ) -> Result<Option<CqlType>, Error> {
        if let Some(known) = self.natural.borrow().get(&at.token()) {
            return Ok(known.clone());
        }
        let found = find()?;
        self.natural.borrow_mut().insert(at.token(), found.clone());
        Ok(found)
    }
}

/// Whether a call is of a user's function, or has a call of one among its arguments.
fn calls_users(typer: &TypeChecker<'_>, term: &Term) -> bool {
    if let Term::Function { name, .. } = term
        && !user_functions(typer, name).is_empty()
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
    resolve(typer, callee, arguments, receiver)
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
            Term::Function { name, .. } if resolved.function.is_some() && !user_functions(typer, name).is_empty() => {
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

/// Whether a function preserves the order of its last argument's values, so that rows can be grouped by it.
pub(crate) fn is_monotonic(function: &Function) -> bool {
    // Source: Cassandra's `Function.isMonotonic`: conversions of time, and rounding down.
    matches!(
        function.name(),
        "floor" | "todate" | "to_date" | "totimestamp" | "to_timestamp" | "tounixtimestamp" | "to_unix_timestamp"
    )
}
