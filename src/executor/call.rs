//! Calls of built-in functions: the seam to `functions`.

use bytes::Bytes;

use super::error::Error;
use crate::functions::{self, Function};

/// What functions may see of a request.
pub(crate) use crate::functions::Context;

/// An aggregate being fed.
#[derive(Debug)]
pub(crate) struct Accumulator(functions::Accumulator);

/// The result of a scalar function.
pub(crate) fn call(
    function: &Function,
    arguments: &[Option<Bytes>],
    context: &Context,
) -> Result<Option<Bytes>, Error> {
    function.call(arguments, context).map_err(refusal)
}

fn refusal(error: functions::Error) -> Error {
    match error {
        functions::Error::Failed {
            keyspace,
            name,
            arguments,
            message,
        } => Error::FunctionFailure {
            keyspace: keyspace.to_owned(),
            name,
            arguments,
            message,
        },
        error => Error::Invalid(error.to_string()),
    }
}

impl Accumulator {
    /// Nothing has been taken in yet.
    pub(crate) fn new(function: &Function) -> Self {
        Self(functions::Accumulator::new(function))
    }

    /// Takes a row's arguments in.
    pub(crate) fn add(&mut self, arguments: &[Option<Bytes>]) -> Result<(), Error> {
        self.0.add(arguments).map_err(refusal)
    }

    /// The aggregate of what was taken in.
    pub(crate) fn finish(self) -> Result<Option<Bytes>, Error> {
        self.0.finish().map_err(refusal)
    }
}
