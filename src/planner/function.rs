//! Calls in terms: functions, arithmetic, casts.

use bytes::Bytes;
use grammar::ast::Term;

use super::error::{Error, invalid};
use super::term::{Binding, Receiver, Typed, Typer};
use super::text::qualified;
use crate::types::{Assignment, CqlType};

/// A call whose function is resolved.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// Its arguments.
    pub(crate) arguments: Vec<Typed>,
}

impl Call {
    /// The result.
    pub(crate) fn bind(&self, _: &Binding<'_>) -> Result<Option<Bytes>, Error> {
        Err(Error::Unsupported("A function call".into()))
    }
}

/// Types a call for a receiver.
pub(crate) fn call(_: &mut Typer<'_>, term: &Term, _: &Receiver) -> Result<Typed, Error> {
    match term {
        Term::Function { name, .. } => invalid!("Unknown function {} called", qualified(name)),
        _ => Err(Error::Unsupported("Arithmetic in a value".into())),
    }
}

/// How well a call fits a type.
pub(crate) fn fit(_: &Typer<'_>, _: &Term, _: &CqlType) -> Result<Assignment, Error> {
    Ok(Assignment::No)
}
