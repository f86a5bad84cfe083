//! Compile errors, with the messages of Cassandra's compiler (Eclipse's) where it has one.

use std::fmt;

/// All mistakes in a body, in the order of its text; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    /// One entry for each mistake, at most [`CompileError::ENTRIES_MAX`].
    pub entries: Vec<Entry>,
}

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The line of the body, from 1.
    pub line: u32,
    /// The mistake.
    pub what: Mistake,
}

impl CompileError {
    /// Maximum mistakes reported for one body.
    pub const ENTRIES_MAX: usize = 20;

    pub(crate) fn one(line: u32, what: Mistake) -> Self {
        Self {
            entries: vec![Entry { line, what }],
        }
    }
}

/// One line for each mistake: `Line 2: x cannot be resolved to a variable`. Ends in a line feed, as Cassandra's does.
impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entries
            .iter()
            .try_for_each(|entry| writeln!(f, "Line {}: {}", entry.line, entry.what))
    }
}

impl std::error::Error for CompileError {}

/// The kinds of mistakes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant is the mistake that its text describes")]
pub enum Mistake {
    #[error("Syntax error on token \"{0}\", delete this token")]
    Character(char),
    #[error("String literal is not properly closed by a double-quote")]
    UnclosedText,
    #[error("Unexpected end of comment")]
    UnclosedComment,
    #[error("Invalid escape sequence (valid ones are  \\b  \\t  \\n  \\f  \\r  \\\"  \\'  \\\\ )")]
    Escape,
    #[error("Invalid number {0}")]
    Number(String),
    #[error("The literal {literal} of type {ty} is out of range ")]
    OutOfRange { literal: String, ty: &'static str },
    #[error("Syntax error on token \"{0}\"")]
    Syntax(String),
    #[error("Syntax error, the body ends too early")]
    End,
    #[error("Syntax error on token \"{1}\", {0} expected")]
    Expected(&'static str, String),
    #[error("{0} not supported by Helenus in a function's body")]
    Unsupported(&'static str),
    #[error("The method {0} is not supported by Helenus in a function's body")]
    UnsupportedMethod(String),
    #[error("The body is nested deeper than {levels_max} levels")]
    Nesting { levels_max: u32 },
    #[error("The body has more than {max} {what}")]
    Length { what: &'static str, max: usize },
    #[error("{0} cannot be resolved to a variable")]
    Variable(String),
    #[error("{0} cannot be resolved to a type")]
    Type(String),
    #[error("{0} cannot be resolved")]
    Name(String),
    #[error("Type mismatch: cannot convert from {from} to {to}")]
    Mismatch { from: String, to: String },
    #[error("Cannot cast from {from} to {to}")]
    Cast { from: String, to: String },
    #[error("The operator {operator} is undefined for the argument type(s) {types}")]
    Operator { operator: &'static str, types: String },
    #[error("The method {name}({arguments}) is undefined for the type {class}")]
    Method {
        name: String,
        arguments: String,
        class: String,
    },
    #[error("The method {method} in the type {class} is not applicable for the arguments ({arguments})")]
    NotApplicable {
        method: String,
        class: String,
        arguments: String,
    },
    #[error("The constructor {name}({arguments}) is undefined")]
    Constructor { name: String, arguments: String },
    #[error("Cannot instantiate the type {0}")]
    Abstract(String),
    #[error("Cannot invoke {method} on the primitive type {ty}")]
    Primitive { method: String, ty: String },
    #[error("Cannot make a static reference to the non-static method {method} from the type {class}")]
    Static { method: String, class: String },
    #[error("{name} cannot be resolved or is not a field of {class}")]
    Field { name: String, class: String },
    #[error("Duplicate local variable {0}")]
    Duplicate(String),
    #[error("The final local variable {0} cannot be assigned. It must be blank and not using a compound assignment")]
    Final(String),
    #[error("The left-hand side of an assignment must be a variable")]
    NotAPlace,
    #[error("The local variable {0} may not have been initialized")]
    Uninitialized(String),
    #[error("Unreachable code")]
    Unreachable,
    #[error("This method must return a result of type {0}")]
    MissingReturn(String),
    #[error("Unhandled exception type {0}")]
    Unhandled(String),
    #[error("Unreachable catch block for {0}. It is already handled by the catch block before")]
    UncaughtType(String),
    #[error("No exception of type {0} can be thrown; an exception type must be a subclass of Throwable")]
    NotThrowable(String),
    #[error("Can only iterate over an array or an instance of java.lang.Iterable")]
    NotIterable,
    #[error("The type of the expression must be an array type but it resolved to {0}")]
    NotArray(String),
    #[error(
        "Cannot switch on a value of type {0}. Only convertible int values, strings or enum variables are permitted"
    )]
    Switch(String),
    #[error("Duplicate case")]
    CaseDuplicate,
    #[error("case expressions must be constant expressions")]
    CaseNotConstant,
    #[error("The default case is already defined")]
    DefaultDuplicate,
    #[error("The label {0} is missing")]
    Label(String),
    #[error("break cannot be used outside of a loop or a switch")]
    BreakOutside,
    #[error("continue cannot be used outside of a loop")]
    ContinueOutside,
    #[error("Syntax error, this expression is no statement")]
    NotAStatement,
    #[error("A method without a result has no value")]
    VoidValue,
    #[error("Incorrect number of arguments for type {class}; it takes {taken}")]
    Arguments { class: String, taken: usize },
    #[error("Syntax error on token \"{0}\", Dimensions expected after this token")]
    PrimitiveArgument(String),
    #[error("Cannot use 'var' on variable without initializer: {0}")]
    VarWithoutValue(String),
    #[error("Cannot infer type for local variable initialized to 'null': {0}")]
    VarNull(String),
    #[error("The type arguments of <> cannot be found, as in Cassandra's compiler of functions; write them out")]
    Diamond,
    #[error("This method must return a result of type {0}, not nothing")]
    ReturnMissing(String),
}
