//! Functions: resolves a name, an operator or a cast to the function for its arguments, in terms and in the SELECT clause.
//!
//! Overloads are resolved by `functions`. This module adds the parts that need a schema: which user-defined functions there
//! are, and `token`, whose arguments are a table's partition key.

use std::sync::Arc;

use grammar::ast::{ArithmeticOperator, QualifiedName};

use super::error::Error;
use super::refusal::TermRefusal;
use crate::schema::{Keyspace, Schema, Table, UserAggregate, UserFunction};
use helenus_types::functions::{self, Argument, Form, Function, UserFold};
use helenus_types::types::{CqlType, Native};

/// What the names of functions in a statement mean.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// The schema, for functions of users.
    pub(crate) schema: &'a Schema,
    /// The keyspace of names without one.
    pub(crate) keyspace: &'a str,
    /// The table, whose key `token` has; `None` means that there is none.
    pub(crate) table: Option<&'a Table>,
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
    scope: &Scope<'_>,
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
                return token(scope, &arguments).map(Some);
            }
            named(scope, name, &arguments, receiver)
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
    scope: &Scope<'_>,
    name: &QualifiedName,
    arguments: &[Argument<'_>],
    receiver: Option<&CqlType>,
) -> Result<Function, functions::Error> {
    let candidates = user_functions(scope, name);
    if candidates.is_empty() {
        functions::resolve(name, arguments, receiver)
    } else {
        functions::choose(name, candidates, arguments, receiver)
    }
}

/// The function that depends on a table's partition key, and so is not among the built-in ones.
const TOKEN: &str = "system.token";

/// `token(…)` of the table's partition key.
fn token(scope: &Scope<'_>, arguments: &[Argument<'_>]) -> Result<Resolved, Error> {
    let Some(table) = scope.table else {
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
pub(crate) fn user_functions(scope: &Scope<'_>, name: &QualifiedName) -> Vec<Function> {
    let keyspace = name
        .keyspace
        .as_ref()
        .map_or(scope.keyspace, |keyspace| keyspace.as_str());
    let Some(keyspace) = scope.schema.keyspaces.get(keyspace) else {
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
pub(crate) fn is_users(scope: &Scope<'_>, name: &QualifiedName) -> bool {
    let name = name.name.as_str();
    scope.schema.keyspaces.get(scope.keyspace).is_some_and(|keyspace| {
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

/// Whether a function preserves the order of its last argument's values, so that rows can be grouped by it.
pub(crate) fn is_monotonic(function: &Function) -> bool {
    // Source: Cassandra's `Function.isMonotonic`: conversions of time, and rounding down.
    matches!(
        function.name(),
        "floor" | "todate" | "to_date" | "totimestamp" | "to_timestamp" | "tounixtimestamp" | "to_unix_timestamp"
    )
}
