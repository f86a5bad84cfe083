//! Why a change of a function or an aggregate is refused.

use thiserror::Error;

use super::code::Code;
use crate::types::LiteralError;

/// Why a change of a function or an aggregate is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FunctionRefusal {
    /// A type that is written as frozen: what it is the type of.
    #[error("{what} '{ty}' cannot be frozen; remove frozen<> modifier from '{ty}'")]
    Frozen {
        /// Which.
        what: &'static str,
        /// Its type.
        ty: String,
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
        /// The new one.
        new: String,
        /// The one from before.
        old: String,
    },
    /// A body that does not compile.
    #[error("Java source compilation failed:\n{0}")]
    Compile(java::CompileError),
    /// OR REPLACE with another answer to null. Cassandra names the directive that the function which exists does not have.
    #[error("Function '{name}' must have {} directive", if *called { "RETURNS NULL ON NULL INPUT" } else { "CALLED ON NULL INPUT" })]
    NullInput {
        /// Its name.
        name: String,
        /// Whether the one from before is called.
        called: bool,
    },
    /// A state function that takes no null, and nothing to begin with.
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
    /// No keyspace for an aggregate. Cassandra answers with another code than for a function.
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
        /// Which kind.
        kind: &'static str,
        /// As written.
        text: String,
        /// Its type.
        ty: String,
    },
    /// INITCOND is no value of the state's type.
    #[error("{0}")]
    Value(LiteralError),
    /// DROP of what does not exist: which, with the types of its arguments where written.
    #[error("{kind} '{keyspace}.{name}{arguments}' doesn't exist")]
    Missing {
        /// Which kind.
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
        /// Which kind.
        kind: String,
        /// Its name.
        name: String,
    },
    /// DROP of a function that aggregates need.
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
}

impl FunctionRefusal {
    pub(in crate::planner::ddl) const fn code(&self) -> Code<'static> {
        match self {
            Self::Frozen { .. }
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
            | Self::Used { .. } => Code::Invalid,
            Self::KeyspaceMissing(_) => Code::Configuration,
        }
    }
}
