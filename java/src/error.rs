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
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is the mistake that its text describes")]
pub enum Mistake {
    Character(char),
    UnclosedText,
    UnclosedComment,
    Escape,
    Number(String),
    OutOfRange {
        literal: String,
        ty: &'static str,
    },
    Syntax(String),
    End,
    Expected(&'static str, String),
    Unsupported(&'static str),
    UnsupportedMethod(String),
    Nesting {
        levels_max: u32,
    },
    Length {
        what: &'static str,
        max: usize,
    },
    Variable(String),
    Type(String),
    Name(String),
    Mismatch {
        from: String,
        to: String,
    },
    Cast {
        from: String,
        to: String,
    },
    Operator {
        operator: &'static str,
        types: String,
    },
    Method {
        name: String,
        arguments: String,
        class: String,
    },
    NotApplicable {
        method: String,
        class: String,
        arguments: String,
    },
    Constructor {
        name: String,
        arguments: String,
    },
    Abstract(String),
    Primitive {
        method: String,
        ty: String,
    },
    Static {
        method: String,
        class: String,
    },
    Field {
        name: String,
        class: String,
    },
    Duplicate(String),
    Final(String),
    NotAPlace,
    Uninitialized(String),
    Unreachable,
    MissingReturn(String),
    Unhandled(String),
    UncaughtType(String),
    NotThrowable(String),
    NotIterable,
    NotArray(String),
    Switch(String),
    CaseDuplicate,
    CaseNotConstant,
    DefaultDuplicate,
    Label(String),
    BreakOutside,
    ContinueOutside,
    NotAStatement,
    VoidValue,
    Arguments {
        class: String,
        taken: usize,
    },
    PrimitiveArgument(String),
    VarWithoutValue(String),
    VarNull(String),
    Diamond,
    ReturnMissing(String),
}

impl fmt::Display for Mistake {
    #[expect(clippy::too_many_lines, reason = "one arm for each mistake")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Character(character) => write!(f, "Syntax error on token \"{character}\", delete this token"),
            Self::UnclosedText => f.write_str("String literal is not properly closed by a double-quote"),
            Self::UnclosedComment => f.write_str("Unexpected end of comment"),
            Self::Escape => {
                f.write_str("Invalid escape sequence (valid ones are  \\b  \\t  \\n  \\f  \\r  \\\"  \\'  \\\\ )")
            }
            Self::Number(text) => write!(f, "Invalid number {text}"),
            Self::OutOfRange { literal, ty } => write!(f, "The literal {literal} of type {ty} is out of range "),
            Self::Syntax(token) => write!(f, "Syntax error on token \"{token}\""),
            Self::End => f.write_str("Syntax error, the body ends too early"),
            Self::Expected(what, found) => write!(f, "Syntax error on token \"{found}\", {what} expected"),
            Self::Unsupported(construct) => write!(f, "{construct} not supported by Helenus in a function's body"),
            Self::UnsupportedMethod(name) => {
                write!(f, "The method {name} is not supported by Helenus in a function's body")
            }
            Self::Nesting { levels_max } => write!(f, "The body is nested deeper than {levels_max} levels"),
            Self::Length { what, max } => write!(f, "The body has more than {max} {what}"),
            Self::Variable(name) => write!(f, "{name} cannot be resolved to a variable"),
            Self::Type(name) => write!(f, "{name} cannot be resolved to a type"),
            Self::Name(name) => write!(f, "{name} cannot be resolved"),
            Self::Mismatch { from, to } => write!(f, "Type mismatch: cannot convert from {from} to {to}"),
            Self::Cast { from, to } => write!(f, "Cannot cast from {from} to {to}"),
            Self::Operator { operator, types } => {
                write!(
                    f,
                    "The operator {operator} is undefined for the argument type(s) {types}"
                )
            }
            Self::Method { name, arguments, class } => {
                write!(f, "The method {name}({arguments}) is undefined for the type {class}")
            }
            Self::NotApplicable {
                method,
                class,
                arguments,
            } => write!(
                f,
                "The method {method} in the type {class} is not applicable for the arguments ({arguments})"
            ),
            Self::Constructor { name, arguments } => write!(f, "The constructor {name}({arguments}) is undefined"),
            Self::Abstract(name) => write!(f, "Cannot instantiate the type {name}"),
            Self::Primitive { method, ty } => write!(f, "Cannot invoke {method} on the primitive type {ty}"),
            Self::Static { method, class } => {
                write!(
                    f,
                    "Cannot make a static reference to the non-static method {method} from the type {class}"
                )
            }
            Self::Field { name, class } => write!(f, "{name} cannot be resolved or is not a field of {class}"),
            Self::Duplicate(name) => write!(f, "Duplicate local variable {name}"),
            Self::Final(name) => write!(
                f,
                "The final local variable {name} cannot be assigned. It must be blank and not using a compound assignment"
            ),
            Self::NotAPlace => f.write_str("The left-hand side of an assignment must be a variable"),
            Self::Uninitialized(name) => write!(f, "The local variable {name} may not have been initialized"),
            Self::Unreachable => f.write_str("Unreachable code"),
            Self::MissingReturn(ty) => write!(f, "This method must return a result of type {ty}"),
            Self::Unhandled(class) => write!(f, "Unhandled exception type {class}"),
            Self::UncaughtType(class) => write!(
                f,
                "Unreachable catch block for {class}. It is already handled by the catch block before"
            ),
            Self::NotThrowable(ty) => write!(
                f,
                "No exception of type {ty} can be thrown; an exception type must be a subclass of Throwable"
            ),
            Self::NotIterable => f.write_str("Can only iterate over an array or an instance of java.lang.Iterable"),
            Self::NotArray(ty) => {
                write!(
                    f,
                    "The type of the expression must be an array type but it resolved to {ty}"
                )
            }
            Self::Switch(ty) => write!(
                f,
                "Cannot switch on a value of type {ty}. Only convertible int values, strings or enum variables are permitted"
            ),
            Self::CaseDuplicate => f.write_str("Duplicate case"),
            Self::CaseNotConstant => f.write_str("case expressions must be constant expressions"),
            Self::DefaultDuplicate => f.write_str("The default case is already defined"),
            Self::Label(name) => write!(f, "The label {name} is missing"),
            Self::BreakOutside => f.write_str("break cannot be used outside of a loop or a switch"),
            Self::ContinueOutside => f.write_str("continue cannot be used outside of a loop"),
            Self::NotAStatement => f.write_str("Syntax error, this expression is no statement"),
            Self::VoidValue => f.write_str("A method without a result has no value"),
            Self::Arguments { class, taken } => {
                write!(f, "Incorrect number of arguments for type {class}; it takes {taken}")
            }
            Self::PrimitiveArgument(ty) => {
                write!(
                    f,
                    "Syntax error on token \"{ty}\", Dimensions expected after this token"
                )
            }
            Self::VarWithoutValue(name) => write!(f, "Cannot use 'var' on variable without initializer: {name}"),
            Self::VarNull(name) => write!(f, "Cannot infer type for local variable initialized to 'null': {name}"),
            Self::Diamond => f.write_str(
                "The type arguments of <> cannot be found, as in Cassandra's compiler of functions; write them out",
            ),
            Self::ReturnMissing(ty) => write!(f, "This method must return a result of type {ty}, not nothing"),
        }
    }
}
