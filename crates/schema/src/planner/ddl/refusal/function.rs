//! Why a change of a function or an aggregate is refused.

use thiserror::Error;

use super::code::Code;
use helenus_types::types::LiteralError;

/// Why a change of a function or an aggregate is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FunctionRefusal {
    /// A type written as frozen.
    #[error("{what} '{ty}' cannot be frozen; remove frozen<> modifier from '{ty}'")]
    Frozen {
        /// The part with this type, e.g. `Argument`.
        what: &'static str,
        /// Its type.
        ty: String,
    },
    /// A change in the keyspace of the built-in functions.
    #[error("System keyspace 'system' is not user-modifiable")]
    OfSystem,
    /// A name that the names of permissions' resources cannot hold.
    #[error("{kind} name '{name}' is invalid")]
    BadName {
        /// Function or aggregate.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// A function with the signature of an aggregate.
    #[error("Function '{0}' cannot replace an aggregate")]
    ReplacesAggregate(String),
    /// An aggregate with the signature of a function.
    #[error("Aggregate '{0}' cannot replace a function")]
    ReplacesFunction(String),
    /// An aggregate as a function of an aggregate.
    #[error("{what} function {keyspace}.{function}({}) isn't a scalar function", .arguments.join(", "))]
    NotScalar {
        /// State or final function.
        what: &'static str,
        /// Its keyspace.
        keyspace: String,
        /// Its name.
        function: String,
        /// The types of its arguments.
        arguments: Vec<String>,
    },
    /// OR REPLACE of an aggregate with another return type.
    #[error(
        "Cannot replace aggregate '{name}', the new return type {new} isn't compatible with the return type {old} of existing function"
    )]
    AggregateType {
        /// Its name.
        name: String,
        /// The new return type.
        new: String,
        /// The old return type.
        old: String,
    },
    /// INITCOND is a bind marker. Cassandra fails with an exception.
    #[error("INITCOND cannot be a bind marker")]
    Marker,
    /// INITCOND is a literal of another kind of type.
    #[error("Unexpected receiver type '{ty}'; {what} expected")]
    Receiver {
        /// The state's type.
        ty: String,
        /// The kinds of type that the literal may be of.
        what: &'static str,
    },
    /// OR REPLACE beside IF NOT EXISTS.
    #[error("Cannot use both 'OR REPLACE' and 'IF NOT EXISTS' directives")]
    ReplaceIfNotExists,
    /// A language other than Java.
    #[error(
        "Currently only Java UDFs are available in Cassandra. For more information - CASSANDRA-18252 and CASSANDRA-17281"
    )]
    NotJava,
    /// Two arguments of one name.
    #[error("Duplicate argument names for given function {name} with argument names [{}]", .arguments.join(", "))]
    DuplicateArguments {
        /// Its name.
        name: String,
        /// The types of its arguments.
        arguments: Vec<String>,
    },
    /// A function of this signature exists.
    #[error("Function '{0}' already exists")]
    FunctionExists(String),
    /// OR REPLACE with another return type.
    #[error(
        "Cannot replace function '{name}', the new return type {new} is not compatible with the return type {old} of existing function"
    )]
    ReturnType {
        /// Its name.
        name: String,
        /// The new return type.
        new: String,
        /// The old return type.
        old: String,
    },
    /// A body that does not compile.
    #[error("Java source compilation failed:\n{0}")]
    Compile(java::CompileError),
    /// OR REPLACE with another handling of null input. Cassandra names the directive that the existing function does
    /// not have.
    #[error("Function '{name}' must have {} directive", if *called { "RETURNS NULL ON NULL INPUT" } else { "CALLED ON NULL INPUT" })]
    NullInput {
        /// Its name.
        name: String,
        /// Whether the existing function is called on null input.
        called: bool,
    },
    /// A state function that does not accept null, without INITCOND.
    #[error(
        "Cannot create aggregate '{aggregate}' without INITCOND because state function {keyspace}.{function} does not accept 'null' arguments"
    )]
    InitialMissing {
        /// The aggregate.
        aggregate: String,
        /// Its keyspace.
        keyspace: String,
        /// The state function.
        function: String,
    },
    /// No keyspace for an aggregate. Cassandra's code differs from that for a function.
    #[error("Keyspace {0} doesn't exist")]
    KeyspaceMissing(String),
    /// No such state function.
    #[error("State function {keyspace}.{function}({}) doesn't exist", .arguments.join(", "))]
    StateMissing {
        /// Its keyspace.
        keyspace: String,
        /// The function.
        function: String,
        /// The types of its arguments.
        arguments: Vec<String>,
    },
    /// The state function returns another type.
    #[error("State function {keyspace}.{function}({}) return type must be the same as the first argument type - check STYPE, argument and return types", .arguments.join(", "))]
    StateType {
        /// Its keyspace.
        keyspace: String,
        /// The function.
        function: String,
        /// The types of its arguments.
        arguments: Vec<String>,
    },
    /// No such final function.
    #[error("Final function {keyspace}.{function}({ty}) doesn't exist")]
    FinalMissing {
        /// Its keyspace.
        keyspace: String,
        /// The function.
        function: String,
        /// Its type.
        ty: String,
    },
    /// An aggregate of this signature exists.
    #[error("Aggregate '{0}' already exists")]
    AggregateExists(String),
    /// INITCOND is a constant of another kind.
    #[error("Invalid {kind} constant ({text}) for \"(dummy)\" of type {ty}")]
    Constant {
        /// The kind.
        kind: &'static str,
        /// The text as written.
        text: String,
        /// Its type.
        ty: String,
    },
    /// INITCOND is no value of the state's type.
    #[error("{0}")]
    Value(LiteralError),
    /// DROP of a missing function or aggregate, with the types of its arguments if written.
    #[error("{kind} '{keyspace}.{name}{arguments}' doesn't exist")]
    Missing {
        /// The kind.
        kind: &'static str,
        /// Its keyspace.
        keyspace: String,
        /// Its name.
        name: String,
        /// The types of its arguments.
        arguments: String,
    },
    /// DROP without types where several functions match: `FUNCTION` or `AGGREGATE`, its name.
    #[error(
        "'DROP {kind} {name}' matches multiple function definitions; specify the argument types by issuing a statement like 'DROP {kind} {name} (type, type, ...)'. You can use cqlsh 'DESCRIBE {kind} {name}' command to find all overloads"
    )]
    SeveralMatch {
        /// The kind.
        kind: String,
        /// Its name.
        name: String,
    },
    /// DROP of a function that aggregates use.
    #[error("Function '{keyspace}.{name}{arguments}' is still referenced by aggregates {}", .aggregates.join(", "))]
    Used {
        /// Its keyspace.
        keyspace: String,
        /// Its name.
        name: String,
        /// The types of its arguments.
        arguments: String,
        /// The aggregates.
        aggregates: Vec<String>,
    },
    /// DROP of a function that masks columns.
    #[error("Function '{keyspace}.{name}{arguments}' is still referenced by column masks in tables {}", .tables.join(", "))]
    Masks {
        /// Its keyspace.
        keyspace: String,
        /// Its name.
        name: String,
        /// The types of its arguments.
        arguments: String,
        /// The tables.
        tables: Vec<String>,
    },
}

impl FunctionRefusal {
    pub(in crate::planner::ddl) const fn code(&self) -> Code<'static> {
        match self {
            Self::Frozen { .. }
            | Self::OfSystem
            | Self::BadName { .. }
            | Self::ReplacesAggregate(_)
            | Self::ReplacesFunction(_)
            | Self::NotScalar { .. }
            | Self::AggregateType { .. }
            | Self::Receiver { .. }
            | Self::Marker
            | Self::ReplaceIfNotExists
            | Self::NotJava
            | Self::DuplicateArguments { .. }
            | Self::FunctionExists(_)
            | Self::Compile(_)
            | Self::NullInput { .. }
            | Self::InitialMissing { .. }
            | Self::ReturnType { .. }
            | Self::StateMissing { .. }
            | Self::StateType { .. }
            | Self::FinalMissing { .. }
            | Self::AggregateExists(_)
            | Self::Constant { .. }
            | Self::Value(_)
            | Self::Missing { .. }
            | Self::SeveralMatch { .. }
            | Self::Used { .. }
            | Self::Masks { .. } => Code::Invalid,
            Self::KeyspaceMissing(_) => Code::Configuration,
        }
    }
}
