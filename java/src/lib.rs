//! An interpreter of a typed subset of Java, within limits of steps and memory: it runs the bodies of user functions.
//!
//! ```text
//! body ── lexer ──► tokens ── parser ──► statements ── check ──► tree ── run (Datum in, Datum out) ──► result
//! ```
//!
//! [`compile`] rejects invalid Java with the messages of Cassandra's compiler, and Java outside the subset by line and
//! construct. [`Program::run`] executes the tree. Each call counts its steps and the bytes that it allocates, and stops at
//! the [`Limits`]. The parser limits nesting, and a body cannot declare methods, so recursion is bounded.
//!
//! Each call has its own heap, whose objects are addressed by number. So cycles of references leak no memory.
//!
//! The time and a seed of randomness are passed in with the limits. Deliberately absent: everything else outside the
//! call (files, threads, reflection), declared classes and methods, lambdas
//! (Gap: function-15, Gap: function-16). Sources: Java Language Specification 17; measured on Cassandra 5.0.9.

mod check;
mod class;
mod datum;
mod days;
mod error;
mod lexer;
mod library;
mod limits;
mod machine;
mod marshal;
mod operate;
mod parser;
mod regex;
mod run;
mod shown;
mod syntax;
mod tree;
mod value;

#[cfg(test)]
mod tests;

pub use datum::{Datum, Fields, Type, Types, UserType};
pub use error::{CompileError, Entry, Mistake};
pub use limits::{Failure, Limits};

use machine::{Machine, Run, Stop};

/// Maximum length of a body, in bytes.
pub const BODY_BYTES_MAX: usize = 64 * 1024;

/// The declaration of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Names and types of the arguments, in order.
    pub arguments: Vec<(String, Type)>,
    /// The type of the result.
    pub returns: Type,
    /// `CALLED ON NULL INPUT`: arguments and result are boxed. Otherwise they are primitives where Java has a primitive type.
    pub takes_null: bool,
}

/// The end of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    /// The result, or the exception that it threw, or the limit that it reached.
    pub result: Result<Option<Datum>, Failure>,
    /// The steps that it took.
    pub steps: u64,
}

/// A compiled body. It has no mutable state: calls may run concurrently.
#[derive(Debug)]
pub struct Program {
    signature: Signature,
    checked: check::Checked,
}

/// Compiles a body.
///
/// # Errors
/// All mistakes in it, by line.
pub fn compile(body: &str, signature: Signature) -> Result<Program, CompileError> {
    if body.len() > BODY_BYTES_MAX {
        let what = Mistake::Length {
            what: "bytes",
            max: BODY_BYTES_MAX,
        };
        return Err(CompileError::one(1, what));
    }
    for (name, _) in &signature.arguments {
        let is_start = |c: char| c.is_alphabetic() || c == '_' || c == '$';
        let is_part = |c: char| is_start(c) || c.is_numeric();
        if !name.starts_with(is_start) || !name.chars().all(is_part) || name == "_" || parser::is_keyword(name) {
            return Err(CompileError::one(1, Mistake::Syntax(name.clone())));
        }
    }
    let tokens = lexer::tokens(body)?;
    let statements = parser::Parser::new(&tokens).body()?;
    let primitive = !signature.takes_null;
    let parameters: Vec<(String, class::Ty)> = signature
        .arguments
        .iter()
        .map(|(name, ty)| (name.clone(), check::ty_of(ty, primitive)))
        .collect();
    let end = tokens.last().map_or(1, |token| token.line);
    let checked = check::check(
        &statements,
        &parameters,
        check::ty_of(&signature.returns, primitive),
        end,
    )?;
    Ok(Program { signature, checked })
}

impl Program {
    /// Calls the function: one argument for each that it declares, `None` being null.
    #[must_use]
    pub fn run(&self, arguments: &[Option<Datum>], limits: &Limits, types: &dyn Types) -> Ran {
        let signature = &self.signature;
        let mut machine = Machine::new(
            limits,
            types,
            self.checked.slots,
            &signature.returns,
            &signature.arguments,
        );
        let result = self.run_in(&mut machine, arguments);
        let result = result.map_err(|stop| match stop {
            Stop::Failed(failure) => failure,
            Stop::Thrown(handle) => match machine.exception(handle) {
                Ok((class, message)) => Failure::Thrown {
                    class: class.full_name(),
                    message,
                },
                Err(_) => Failure::Fault("an exception was lost"),
            },
        });
        Ran {
            result,
            steps: machine.steps,
        }
    }

    fn run_in(&self, machine: &mut Machine<'_>, arguments: &[Option<Datum>]) -> Run<Option<Datum>> {
        let declared = self.signature.arguments.iter().zip(&self.checked.parameters);
        for (index, ((_, ty), (slot, kind))) in declared.enumerate() {
            let datum = arguments.get(index).and_then(Option::as_ref);
            let value = machine::value_of(machine, datum, ty)?;
            if let value::Value::Ref(handle) = value
                && let value::Object::Tuple { is_argument, .. } = machine.object_mut(handle)?
            {
                *is_argument = true;
            }
            let value = match (value.prim(), kind) {
                (Some(prim), Some(_)) => value::Value::Prim(prim),
                _ => value,
            };
            if let Some(place) = machine.slots.get_mut(*slot) {
                *place = value;
            }
        }
        match machine.body(&self.checked.body)? {
            Some(value) => marshal::datum_of(machine, &value, &self.signature.returns),
            None => Machine::fault("the body ended without a result"),
        }
    }
}
