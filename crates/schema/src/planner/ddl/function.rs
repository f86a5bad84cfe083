//! CREATE and DROP FUNCTION and AGGREGATE.

use std::collections::BTreeSet;
use std::sync::Arc;

use grammar::ast::{CreateAggregate, CreateFunction, DropFunction, Name, Term, Type};

use super::error::DdlError;
use super::refusal::FunctionRefusal;
use super::{Ddl, Right, SchemaOutcome, column_type};
use crate::command::{ChangeKind, ChangeTarget};
use crate::planner::text::owned;
use crate::schema::{Keyspace, Table, UserAggregate, UserFunction, typename};
use helenus_types::functions;
use helenus_types::types::{CqlType, LiteralError, Native, type_text};

fn type_names<'a>(types: impl IntoIterator<Item = &'a CqlType>) -> Vec<String> {
    types.into_iter().map(typename::unfrozen_name).collect()
}

fn written_names<'a>(types: impl IntoIterator<Item = &'a CqlType>) -> Vec<String> {
    types.into_iter().map(typename::written_name).collect()
}

/// Refuses changes of system keyspaces, and a name that no permission can be granted on.
fn authorize(keyspace: &str, right: Right, kind: &'static str, name: &str) -> Result<(), DdlError> {
    if keyspace == functions::KEYSPACE {
        return Err(FunctionRefusal::OfSystem.into());
    }
    Ddl::authorize(keyspace, right, &format!("all functions in {keyspace}"))?;
    if right == Right::Create && name.contains(['/', '[', ']']) {
        return Err(FunctionRefusal::BadName {
            kind,
            name: name.to_owned(),
        }
        .into());
    }
    Ok(())
}

fn with_arguments(mut outcome: SchemaOutcome, arguments: Vec<String>) -> SchemaOutcome {
    if let Some(change) = &mut outcome.change {
        change.arguments = arguments;
    }
    outcome
}

/// Adds a function or aggregate as Cassandra does: behind the others of its name, or behind all. One that it replaces goes.
fn add<T>(list: &mut Vec<Arc<T>>, item: T, replaced: Option<usize>, name: impl Fn(&T) -> &str) {
    if let Some(at) = replaced.filter(|at| *at < list.len()) {
        list.remove(at);
    }
    let others = list.iter().rposition(|other| name(other) == name(&item));
    let at = others.map_or(list.len(), |last| last + 1);
    list.insert(at, Arc::new(item));
}

/// The outcome of a new function or aggregate, which may replace another.
fn created(ddl: &Ddl<'_>, keyspace: Keyspace, replaces: bool, target: ChangeTarget, name: &str) -> SchemaOutcome {
    let kind = if replaces {
        ChangeKind::Updated
    } else {
        ChangeKind::Created
    };
    let keyspace_name = keyspace.name.clone();
    SchemaOutcome::changed(ddl.schema, ddl.with(keyspace), kind, target, &keyspace_name, name)
}

/// Refuses `frozen<…>` around the type of an argument, a result or a state, where it is implied; around a tuple it is
/// allowed, and around a vector. The message has the keyspace of a user-defined type that Cassandra has read before.
fn check_frozen(what: &'static str, written: &Type, read_in: Option<&str>) -> Result<(), DdlError> {
    match written {
        Type::Frozen(inner) if !matches!(**inner, Type::Tuple(_) | Type::Vector(..)) => Err(FunctionRefusal::Frozen {
            what,
            ty: type_text(&match read_in {
                Some(keyspace) => in_keyspace(written, keyspace),
                None => written.clone(),
            }),
        }
        .into()),
        _ => Ok(()),
    }
}

/// A type whose user-defined types all have a keyspace: their own, or this one.
fn in_keyspace(written: &Type, keyspace: &str) -> Type {
    let inner = |of: &Type| Box::new(in_keyspace(of, keyspace));
    match written {
        Type::Named(name) if name.keyspace.is_none() && Native::named(name.name.as_str()).is_none() => {
            let mut name = name.clone();
            name.keyspace = Some(Name(keyspace.to_owned()));
            Type::Named(name)
        }
        Type::Named(_) | Type::Custom(_) => written.clone(),
        Type::List(of) => Type::List(inner(of)),
        Type::Set(of) => Type::Set(inner(of)),
        Type::Map(key, value) => Type::Map(inner(key), inner(value)),
        Type::Tuple(of) => Type::Tuple(of.iter().map(|of| in_keyspace(of, keyspace)).collect()),
        Type::Vector(of, count) => Type::Vector(inner(of), *count),
        Type::Frozen(of) => Type::Frozen(inner(of)),
    }
}

#[expect(
    clippy::too_many_lines,
    reason = "the checks of a statement, in the order of the faults of Cassandra"
)]
pub(super) fn create(ddl: &Ddl<'_>, statement: &CreateFunction) -> Result<SchemaOutcome, DdlError> {
    let (name, keyspace_name) = (statement.name.name.as_str(), ddl.keyspace_name(&statement.name)?);
    authorize(keyspace_name, Right::Create, "Function", name)?;
    // The permission to replace is one on the function of these types, so Cassandra reads them first.
    if let (true, Some(keyspace)) = (statement.or_replace, ddl.schema.keyspace(keyspace_name)) {
        for (_, written) in &statement.arguments {
            column_type::resolve_frozen(written, keyspace)?;
        }
    }
    if statement.if_not_exists && statement.or_replace {
        return Err(FunctionRefusal::ReplaceIfNotExists.into());
    }
    if statement.language.as_str() != "java" {
        return Err(FunctionRefusal::NotJava.into());
    }
    let names: Vec<&str> = statement.arguments.iter().map(|(name, _)| name.as_str()).collect();
    if names.iter().collect::<BTreeSet<_>>().len() != names.len() {
        return Err(FunctionRefusal::DuplicateArguments {
            name: name.to_owned(),
            arguments: owned(names),
        }
        .into());
    }
    let is_there = |keyspace: &Keyspace| keyspace.functions.iter().any(|function| function.name == name);
    let is_read = ddl
        .schema
        .keyspace(keyspace_name)
        .is_some_and(|keyspace| is_there(keyspace));
    let read_in = is_read.then_some(keyspace_name);
    statement
        .arguments
        .iter()
        .try_for_each(|(_, written)| check_frozen("Argument", written, read_in))?;
    check_frozen("Return type", &statement.returns, read_in)?;
    let keyspace = ddl.keyspace(keyspace_name)?;
    let mut arguments = Vec::with_capacity(statement.arguments.len());
    for (argument, written) in &statement.arguments {
        arguments.push((
            argument.as_str().to_owned(),
            column_type::resolve_frozen(written, keyspace)?,
        ));
    }
    let function = UserFunction {
        name: name.to_owned(),
        arguments,
        called_on_null_input: statement.called_on_null_input,
        returns: column_type::resolve_frozen(&statement.returns, keyspace)?,
        language: statement.language.as_str().to_owned(),
        body: statement.body.clone(),
    };
    function
        .definition(keyspace)
        .compile()
        .map_err(FunctionRefusal::Compile)?;
    let types = |function: &UserFunction| type_names(function.arguments.iter().map(|(_, ty)| ty));
    let wanted = types(&function);
    let existing = keyspace
        .functions
        .iter()
        .position(|other| other.name == name && types(other) == wanted);
    if has_aggregate(keyspace, name, &wanted) {
        return Err(FunctionRefusal::ReplacesAggregate(name.to_owned()).into());
    }
    let written = written_names(function.argument_types());
    let mut next = Keyspace::clone(keyspace);
    if let Some(existing) = existing.and_then(|at| next.functions.get(at)) {
        if statement.if_not_exists {
            return Ok(SchemaOutcome::unchanged(ddl.schema));
        }
        if !statement.or_replace {
            return Err(FunctionRefusal::FunctionExists(name.to_owned()).into());
        }
        if existing.called_on_null_input != function.called_on_null_input {
            return Err(FunctionRefusal::NullInput {
                name: name.to_owned(),
                called: existing.called_on_null_input,
            }
            .into());
        }
        if !is_compatible(&function.returns, &existing.returns) {
            return Err(FunctionRefusal::ReturnType {
                name: name.to_owned(),
                new: typename::argument_name(&function.returns),
                old: typename::argument_name(&existing.returns),
            }
            .into());
        }
    }
    add(&mut next.functions, function, existing, |other| &other.name);
    let outcome = created(ddl, next, existing.is_some(), ChangeTarget::Function, name);
    Ok(with_arguments(outcome, written))
}

/// Whether a function may return a type in place of another, as Cassandra's `AbstractType.isCompatibleWith` has it: bytes for texts too, and
/// a tuple with more fields.
fn is_compatible(new: &CqlType, old: &CqlType) -> bool {
    let of_old = |wanted: &[Native]| matches!(old, CqlType::Native(native) if wanted.contains(native));
    match (new.unfrozen(), old.unfrozen()) {
        (CqlType::Native(Native::Blob), _) if of_old(&[Native::Text, Native::Ascii]) => true,
        (CqlType::Native(Native::Text), _) if of_old(&[Native::Ascii]) => true,
        (CqlType::List(new), CqlType::List(old)) | (CqlType::Set(new), CqlType::Set(old)) => is_compatible(new, old),
        (CqlType::Map(new, to), CqlType::Map(old, from)) => is_compatible(new, old) && is_compatible(to, from),
        (CqlType::Tuple(new), CqlType::Tuple(old)) => {
            new.len() >= old.len() && new.iter().zip(old.iter()).all(|(new, old)| is_compatible(new, old))
        }
        (new, old) => new == old,
    }
}

fn has_aggregate(keyspace: &Keyspace, name: &str, types: &[String]) -> bool {
    let mut aggregates = keyspace.aggregates.iter();
    aggregates.any(|aggregate| aggregate.name == name && type_names(&aggregate.arguments) == types)
}

fn find<'a>(keyspace: &'a Keyspace, name: &str, types: &[String]) -> Option<&'a UserFunction> {
    let same = |function: &&Arc<UserFunction>| {
        function.name == name && type_names(function.arguments.iter().map(|(_, ty)| ty)) == types
    };
    keyspace.functions.iter().find(same).map(AsRef::as_ref)
}

pub(super) fn create_aggregate(ddl: &Ddl<'_>, statement: &CreateAggregate) -> Result<SchemaOutcome, DdlError> {
    let (name, keyspace_name) = (statement.name.name.as_str(), ddl.keyspace_name(&statement.name)?);
    // Cassandra reads the types when it prepares the statement, before all other checks.
    let keyspace = ddl
        .schema
        .keyspace(keyspace_name)
        .ok_or_else(|| FunctionRefusal::KeyspaceMissing(keyspace_name.to_owned()))?;
    let mut arguments = Vec::with_capacity(statement.arguments.len());
    for written in &statement.arguments {
        arguments.push(column_type::resolve_frozen(written, keyspace)?);
    }
    let state_type = column_type::resolve_frozen(&statement.state_type, keyspace)?;
    authorize(keyspace_name, Right::Create, "Aggregate", name)?;
    if statement.if_not_exists && statement.or_replace {
        return Err(FunctionRefusal::ReplaceIfNotExists.into());
    }
    statement
        .arguments
        .iter()
        .try_for_each(|written| check_frozen("Argument", written, Some(keyspace_name)))?;
    check_frozen("State type", &statement.state_type, Some(keyspace_name))?;
    let wanted = type_names(&arguments);
    let state = typename::unfrozen_name(&state_type);

    let state_function = statement.state_function.as_str();
    let taken: Vec<String> = std::iter::once(state.clone()).chain(wanted.iter().cloned()).collect();
    let of_state = of_state(keyspace, state_function, &taken, &state)?;
    let final_function = statement.final_function.as_ref().map(|name| name.as_str());
    let of_final = final_function
        .map(|function| of_final(keyspace, function, &state))
        .transpose()?;
    let returns = of_final.map_or(&state_type, |function| &function.returns).clone();
    let initial_condition = statement
        .initial_condition
        .as_ref()
        .map(|term| initial_condition(term, &state_type))
        .transpose()?
        .flatten();
    if initial_condition.is_none() && !of_state.called_on_null_input {
        return Err(FunctionRefusal::InitialMissing {
            aggregate: name.to_owned(),
            keyspace: keyspace_name.to_owned(),
            function: state_function.to_owned(),
        }
        .into());
    }
    let aggregate = UserAggregate {
        name: name.to_owned(),
        arguments,
        state_function: state_function.to_owned(),
        state_type,
        final_function: final_function.map(str::to_owned),
        initial_condition,
        returns,
    };
    if find(keyspace, name, &wanted).is_some() {
        return Err(FunctionRefusal::ReplacesFunction(name.to_owned()).into());
    }
    add_aggregate(ddl, statement, keyspace, aggregate)
}

/// Refuses an aggregate where a scalar function is required.
fn refuse_aggregate(
    what: &'static str,
    keyspace: &Keyspace,
    function: &str,
    arguments: &[String],
) -> Result<(), DdlError> {
    if has_aggregate(keyspace, function, arguments) {
        return Err(FunctionRefusal::NotScalar {
            what,
            keyspace: keyspace.name.clone(),
            function: function.to_owned(),
            arguments: arguments.to_vec(),
        }
        .into());
    }
    Ok(())
}

/// The state function of an aggregate: it takes `taken`, the state before all, and gives the state.
fn of_state<'a>(
    keyspace: &'a Keyspace,
    function: &str,
    taken: &[String],
    state: &str,
) -> Result<&'a UserFunction, DdlError> {
    refuse_aggregate("State", keyspace, function, taken)?;
    let Some(found) = find(keyspace, function, taken) else {
        return Err(FunctionRefusal::StateMissing {
            keyspace: keyspace.name.clone(),
            function: function.to_owned(),
            arguments: taken.to_vec(),
        }
        .into());
    };
    if typename::unfrozen_name(&found.returns) != state {
        return Err(FunctionRefusal::StateType {
            keyspace: keyspace.name.clone(),
            function: function.to_owned(),
            arguments: taken.to_vec(),
        }
        .into());
    }
    Ok(found)
}

/// The final function of an aggregate: it takes the state.
fn of_final<'a>(keyspace: &'a Keyspace, function: &str, state: &str) -> Result<&'a UserFunction, DdlError> {
    let taken = [state.to_owned()];
    refuse_aggregate("Final", keyspace, function, &taken)?;
    find(keyspace, function, &taken).ok_or_else(|| {
        FunctionRefusal::FinalMissing {
            keyspace: keyspace.name.clone(),
            function: function.to_owned(),
            ty: state.to_owned(),
        }
        .into()
    })
}

/// Adds an aggregate, or puts it in the place of the one with the same arguments.
fn add_aggregate(
    ddl: &Ddl<'_>,
    statement: &CreateAggregate,
    keyspace: &Keyspace,
    aggregate: UserAggregate,
) -> Result<SchemaOutcome, DdlError> {
    let name = statement.name.name.as_str();
    let wanted = type_names(&aggregate.arguments);
    let written = written_names(&aggregate.arguments);
    let existing = keyspace
        .aggregates
        .iter()
        .position(|other| other.name == name && type_names(&other.arguments) == wanted);
    let mut next = Keyspace::clone(keyspace);
    if let Some(existing) = existing.and_then(|at| next.aggregates.get(at)) {
        if statement.if_not_exists {
            return Ok(SchemaOutcome::unchanged(ddl.schema));
        }
        if !statement.or_replace {
            return Err(FunctionRefusal::AggregateExists(name.to_owned()).into());
        }
        if !is_compatible(&aggregate.returns, &existing.returns) {
            return Err(FunctionRefusal::AggregateType {
                name: name.to_owned(),
                new: typename::argument_name(&aggregate.returns),
                old: typename::argument_name(&existing.returns),
            }
            .into());
        }
    }
    add(&mut next.aggregates, aggregate, existing, |other| &other.name);
    let outcome = created(ddl, next, existing.is_some(), ChangeTarget::Aggregate, name);
    Ok(with_arguments(outcome, written))
}

/// What a literal of several values may be, if it is not of this type.
fn misfit(term: &Term, ty: &CqlType) -> Option<&'static str> {
    match (term, ty.unfrozen()) {
        (Term::List(_), CqlType::List(_) | CqlType::Vector(..)) | (Term::Set(_), CqlType::Set(_)) => None,
        (Term::List(_), _) => Some("only list and vector are"),
        _ => None,
    }
}

/// The initial condition as the text of a constant of the state's type.
fn initial_condition(term: &Term, state_type: &CqlType) -> Result<Option<String>, DdlError> {
    let Term::Literal(literal) = term else {
        if let Term::BindMarker { .. } = term {
            return Err(FunctionRefusal::Marker.into());
        }
        if let Some(what) = misfit(term, state_type) {
            return Err(FunctionRefusal::Receiver {
                ty: state_type.cql_name(),
                what,
            }
            .into());
        }
        return Ok(Some(term.to_string()));
    };
    match state_type.literal(literal) {
        Ok(bytes) => Ok(bytes.map(|bytes| state_type.to_literal(&bytes))),
        Err(LiteralError::Kind {
            kind,
            text,
            receiver_type,
        }) => Err(FunctionRefusal::Constant {
            kind: kind.name(),
            text,
            ty: receiver_type,
        }
        .into()),
        Err(error) => Err(FunctionRefusal::Value(error).into()),
    }
}

/// The types of the arguments of every function, or aggregate, of a name.
fn overloads(keyspace: &Keyspace, name: &str, of_aggregates: bool) -> Vec<Vec<String>> {
    if of_aggregates {
        let named = keyspace.aggregates.iter().filter(|aggregate| aggregate.name == name);
        named.map(|aggregate| type_names(&aggregate.arguments)).collect()
    } else {
        let named = keyspace.functions.iter().filter(|function| function.name == name);
        named.map(|function| type_names(function.argument_types())).collect()
    }
}

/// Refuses to drop a function that an aggregate or a mask calls. `shown` is its list of arguments as the statement has it.
fn refuse_used(keyspace: &Keyspace, name: &str, types: &[String], shown: &str) -> Result<(), DdlError> {
    let is_used = |aggregate: &UserAggregate| {
        let state = typename::unfrozen_name(&aggregate.state_type);
        let of_final = aggregate.final_function.as_deref() == Some(name) && *types == [state.clone()];
        let taken: Vec<String> = std::iter::once(state).chain(type_names(&aggregate.arguments)).collect();
        of_final || (aggregate.state_function == name && taken == *types)
    };
    let aggregates: Vec<String> = keyspace
        .aggregates
        .iter()
        .filter(|aggregate| is_used(aggregate))
        .map(|aggregate| format!("{}.{}", keyspace.name, aggregate.name))
        .collect();
    if !aggregates.is_empty() {
        return Err(FunctionRefusal::Used {
            keyspace: keyspace.name.clone(),
            name: name.to_owned(),
            arguments: shown.to_owned(),
            aggregates,
        }
        .into());
    }
    let own = (keyspace.name.clone(), name.to_owned());
    let masks = |table: &&Arc<Table>| {
        let mut columns = table.columns.iter();
        columns.any(|column| column.mask_function().is_some_and(|function| function == own))
    };
    // As in Cassandra, by the name alone.
    let masked = keyspace.tables.values().filter(masks);
    let tables: Vec<String> = masked.map(|table| table.name.clone()).collect();
    if !tables.is_empty() {
        return Err(FunctionRefusal::Masks {
            keyspace: keyspace.name.clone(),
            name: name.to_owned(),
            arguments: shown.to_owned(),
            tables,
        }
        .into());
    }
    Ok(())
}

/// DROP FUNCTION and DROP AGGREGATE.
#[expect(
    clippy::too_many_lines,
    reason = "the checks of a statement, in the order of the faults of Cassandra"
)]
pub(super) fn drop(ddl: &Ddl<'_>, statement: &DropFunction) -> Result<SchemaOutcome, DdlError> {
    let (name, keyspace_name) = (statement.name.name.as_str(), ddl.keyspace_name(&statement.name)?);
    let kind = if statement.aggregate { "Aggregate" } else { "Function" };
    authorize(keyspace_name, Right::Drop, kind, name)?;
    let keyspace = ddl.schema.keyspace(keyspace_name);
    let wanted = match (&statement.arguments, keyspace) {
        (Some(written), Some(keyspace)) => {
            let mut types = Vec::with_capacity(written.len());
            for written in written {
                types.push(typename::unfrozen_name(&column_type::resolve_frozen(
                    written, keyspace,
                )?));
            }
            let mut written = written.iter();
            written.try_for_each(|written| check_frozen("Argument", written, Some(keyspace_name)))?;
            Some(types)
        }
        (written, _) => written
            .as_ref()
            .map(|written| written.iter().map(Type::to_string).collect()),
    };
    let shown = wanted
        .as_ref()
        .map(|types: &Vec<String>| format!("({})", types.join(", ")))
        .unwrap_or_default();
    let candidate = keyspace.and_then(|keyspace| {
        let mut overloads = overloads(keyspace, name, statement.aggregate).into_iter();
        overloads.find(|types| wanted.as_ref().is_none_or(|wanted| wanted == types))
    });
    let several = keyspace.is_some_and(|keyspace| {
        let functions = keyspace.functions.iter().filter(|function| function.name == name);
        let aggregates = keyspace.aggregates.iter().filter(|aggregate| aggregate.name == name);
        functions.count() + aggregates.count() > 1
    });
    if statement.arguments.is_none() && several {
        return Err(FunctionRefusal::SeveralMatch {
            kind: kind.to_uppercase(),
            name: name.to_owned(),
        }
        .into());
    }
    let (Some(keyspace), Some(types)) = (keyspace, candidate) else {
        return ddl.absent(
            statement.if_exists,
            FunctionRefusal::Missing {
                kind,
                keyspace: keyspace_name.to_owned(),
                name: name.to_owned(),
                arguments: shown,
            },
        );
    };
    let mut next = Keyspace::clone(keyspace);
    let target = if statement.aggregate {
        next.aggregates
            .retain(|other| other.name != name || type_names(&other.arguments) != types);
        ChangeTarget::Aggregate
    } else {
        refuse_used(keyspace, name, &types, &shown)?;
        next.functions
            .retain(|other| other.name != name || type_names(other.argument_types()) != types);
        ChangeTarget::Function
    };
    let functions = keyspace.functions.iter().filter(|function| function.name == name);
    let aggregates = keyspace.aggregates.iter().filter(|aggregate| aggregate.name == name);
    let dropped = functions
        .map(|function| function.argument_types().collect::<Vec<_>>())
        .chain(aggregates.map(|aggregate| aggregate.arguments.iter().collect()))
        .find(|of| type_names(of.iter().copied()) == types);
    let types = dropped.into_iter().flatten().map(typename::argument_name).collect();
    let outcome = SchemaOutcome::changed(
        ddl.schema,
        ddl.with(next),
        ChangeKind::Dropped,
        target,
        keyspace_name,
        name,
    );
    Ok(with_arguments(outcome, types))
}
