//! The `functions` module: scalars, operators, casts and aggregates, built-in and user-defined.
//!
//! Life of a function: the planner has a name and arguments ([`Argument`]: how well each fits a type, and its own type).
//! [`resolve`] finds the overload as Cassandra does and returns a [`Function`]. Its argument types then give the types of
//! literals and markers. For each row [`Function::call`] maps wire bytes to wire bytes; an aggregate's rows go to an
//! [`Accumulator`] instead.
//!
//! Each family of functions is a file whose `find` resolves the names of the family. A new function is a line there and a
//! body.
//!
//! Invariants: no call panics, whatever the bytes; a function returns the same result for the same arguments and
//! [`Context`]. Deliberately absent: `token`, `writetime` and `ttl`, which need tables. The bodies of user functions
//! are Java, which the crate `java` interprets. Source: Cassandra 5.0's `cql3.functions` as measured.

mod aggregate;
mod argument;
mod arithmetic;
mod blob;
mod calendar;
mod candidates;
mod cast;
mod collection;
mod context;
mod datum;
mod decimal;
mod error;
mod floor;
mod json;
mod mask;
mod math;
mod problem;
mod resolve;
mod similarity;
mod time;
mod user;

#[cfg(test)]
mod tests;

pub use aggregate::Accumulator;
pub use argument::{Argument, Form, fit};
pub use arithmetic::{is_summable, sum};
pub use context::{CallLimits, Context, Timeuuids};
pub use error::{Error, Failed};
pub use mask::is_mask;
pub use problem::{Failure, OperationFailure, Unfit};
pub use resolve::{choose, is_builtin, resolve, resolve_cast, resolve_negation, resolve_operation};
pub use similarity::{Similarity, floats};
pub use time::dropped;
pub use user::{UserFold, UserScalar};

use crate::types::CqlType;
use aggregate::Aggregate;
use bytes::Bytes;
use problem::Problem;
use std::fmt;
use std::sync::Arc;

/// The keyspace of all built-in functions.
pub const KEYSPACE: &str = "system";

/// The input of a call.
struct Call<'a> {
    arguments: &'a [Option<Bytes>],
    context: &'a Context,
    function: &'a Definition,
}

impl Call<'_> {
    /// An argument's bytes; `None` is null, which only functions called on null receive.
    fn bytes(&self, index: usize) -> &[u8] {
        self.arguments.get(index).and_then(Option::as_deref).unwrap_or_default()
    }

    fn is_null(&self, index: usize) -> bool {
        !matches!(self.arguments.get(index), Some(Some(_)))
    }

    fn argument_type(&self, index: usize) -> Option<&CqlType> {
        self.function.arguments.get(index)
    }
}

/// `None` is null.
type Outcome = Result<Option<Bytes>, Problem>;
type Scalar = Arc<dyn Fn(&Call<'_>) -> Outcome + Send + Sync>;

#[derive(Clone)]
enum Body {
    Scalar(Scalar),
    Aggregate(Aggregate),
    User(Arc<UserFold>),
}

/// The format of a call in a column's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameFormat {
    /// `system.f(a, b)`
    Call,
    /// `a + b`
    Infix(&'static str),
    /// `-a`
    Prefix,
    /// `cast(a as text)`
    Cast,
}

/// One overload.
struct Definition {
    /// [`KEYSPACE`] for built-in functions.
    keyspace: String,
    name: String,
    arguments: Vec<CqlType>,
    returns: CqlType,
    body: Body,
    name_format: NameFormat,
    /// Whether it is called even if an argument is null; otherwise the result is then null.
    takes_null: bool,
}

/// A function, resolved for its argument types. Cheap to clone.
#[derive(Clone)]
pub struct Function(Arc<Definition>);

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// `system.sum : (int) -> int`
impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arguments: Vec<String> = self.0.arguments.iter().map(|ty| self.argument_name(ty)).collect();
        f.write_str(&self.text(&arguments))
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.0.keyspace == other.0.keyspace
            && self.0.name == other.0.name
            && self.0.arguments == other.0.arguments
            && self.0.returns == other.0.returns
    }
}

impl Function {
    /// Its signature with constant arguments marked, as in messages about GROUP BY: `system."_add" : (int,
    /// int(constant)) -> int`.
    #[must_use]
    pub fn partial_text(&self, is_constant: impl Fn(usize) -> bool) -> String {
        let argument = |(index, ty): (usize, &CqlType)| {
            let mark = if is_constant(index) { "(constant)" } else { "" };
            format!("{}{mark}", ty.cql_name())
        };
        let arguments: Vec<String> = self.0.arguments.iter().enumerate().map(argument).collect();
        self.text(&arguments)
    }

    /// Users' functions have their types as declared, without `frozen` around them.
    fn argument_name(&self, ty: &CqlType) -> String {
        let name = self.type_name(ty);
        match ty.unfrozen() {
            CqlType::Tuple(_) if self.0.keyspace != KEYSPACE => {
                let inner = name.strip_prefix("frozen<").and_then(|rest| rest.strip_suffix('>'));
                inner.map(str::to_owned).unwrap_or(name)
            }
            _ => name,
        }
    }

    /// The name of a type as that of a result: of users' functions without `frozen` around it, except for a tuple.
    fn type_name(&self, ty: &CqlType) -> String {
        if self.0.keyspace == KEYSPACE {
            ty.cql_name()
        } else {
            ty.unfrozen().cql_name()
        }
    }

    fn text(&self, arguments: &[String]) -> String {
        // A name that starts with an underscore must be quoted.
        let quote = if self.0.name.starts_with('_') { "\"" } else { "" };
        format!(
            "{}.{quote}{}{quote} : ({}) -> {}",
            self.0.keyspace,
            self.0.name,
            arguments.join(", "),
            self.type_name(&self.0.returns)
        )
    }

    /// A scalar that is null when an argument is.
    fn scalar(
        name: impl Into<String>,
        arguments: impl Into<Vec<CqlType>>,
        returns: CqlType,
        body: impl Fn(&Call<'_>) -> Outcome + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Definition {
            keyspace: KEYSPACE.to_owned(),
            name: name.into(),
            arguments: arguments.into(),
            returns,
            body: Body::Scalar(Arc::new(body)),
            name_format: NameFormat::Call,
            takes_null: false,
        }))
    }

    fn aggregate(
        name: impl Into<String>,
        arguments: impl Into<Vec<CqlType>>,
        returns: CqlType,
        kind: Aggregate,
    ) -> Self {
        Self(Arc::new(Definition {
            keyspace: KEYSPACE.to_owned(),
            name: name.into(),
            arguments: arguments.into(),
            returns,
            body: Body::Aggregate(kind),
            name_format: NameFormat::Call,
            takes_null: true,
        }))
    }

    /// Changes a function during its construction.
    fn with(self, change: impl FnOnce(&mut Definition)) -> Self {
        // The function is still under construction, so there is no other reference to it.
        match Arc::try_unwrap(self.0) {
            Ok(mut definition) => {
                change(&mut definition);
                Self(Arc::new(definition))
            }
            Err(shared) => Self(shared),
        }
    }

    fn taking_null(self) -> Self {
        self.with(|definition| definition.takes_null = true)
    }

    fn with_name_format(self, format: NameFormat) -> Self {
        self.with(|definition| definition.name_format = format)
    }

    /// Whether a user made it.
    #[must_use]
    pub fn is_user_defined(&self) -> bool {
        self.0.keyspace != KEYSPACE
    }

    /// Whether its result is a collection or user-defined type that is not frozen. Users' functions return no frozen types, and in Cassandra
    /// such a result fits no frozen type where functions are chosen.
    #[must_use]
    pub fn returns_unfrozen(&self) -> bool {
        let returns = self.return_type().unfrozen();
        self.is_user_defined()
            && matches!(
                returns,
                CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..) | CqlType::User(_)
            )
    }

    /// Itself; for a user-defined aggregate also its state function and its final function.
    pub fn with_parts(&self) -> impl Iterator<Item = &Self> {
        let fold = match &self.0.body {
            Body::User(fold) => Some(fold),
            Body::Scalar(_) | Body::Aggregate(_) => None,
        };
        let parts = fold
            .into_iter()
            .flat_map(|fold| std::iter::once(&fold.state).chain(&fold.last));
        std::iter::once(self).chain(parts)
    }

    /// Its keyspace.
    #[must_use]
    pub fn keyspace(&self) -> &str {
        &self.0.keyspace
    }

    /// Its name without the keyspace, folded: `todate`, `_add`, `cast_as_text`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The types its arguments must have.
    #[must_use]
    pub fn argument_types(&self) -> &[CqlType] {
        &self.0.arguments
    }

    /// The type of its result.
    #[must_use]
    pub fn return_type(&self) -> &CqlType {
        &self.0.returns
    }

    /// Whether an [`Accumulator`] receives its rows, instead of calls per row.
    #[must_use]
    pub fn is_aggregate(&self) -> bool {
        matches!(self.0.body, Body::Aggregate(_) | Body::User(_))
    }

    /// The name of the result's column, given its arguments' texts.
    #[must_use]
    pub fn result_name<T: AsRef<str>>(&self, arguments: &[T]) -> String {
        let argument = |index: usize| arguments.get(index).map_or("", AsRef::as_ref);
        match self.0.name_format {
            NameFormat::Infix(operator) => format!("{} {operator} {}", argument(0), argument(1)),
            NameFormat::Prefix => format!("-{}", argument(0)),
            NameFormat::Cast => format!("cast({} as {})", argument(0), self.0.returns.cql_name()),
            NameFormat::Call => {
                let arguments: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
                format!("{}.{}({})", self.0.keyspace, self.0.name, arguments.join(", "))
            }
        }
    }

    /// Calls a scalar; `arguments` are values of [`Function::argument_types`], `None` being null.
    ///
    /// # Errors
    /// When the function fails on these values, in Cassandra's words.
    pub fn call(&self, arguments: &[Option<Bytes>], context: &Context) -> Result<Option<Bytes>, Error> {
        let Body::Scalar(body) = &self.0.body else {
            return Err(Error::NotScalar(self.0.name.clone()));
        };
        if !self.0.takes_null && arguments.iter().any(Option::is_none) {
            return Ok(None);
        }
        let call = Call {
            arguments,
            context,
            function: &self.0,
        };
        body(&call).map_err(|problem| problem.of(self))
    }
}
