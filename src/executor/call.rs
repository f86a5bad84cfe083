//! Calls of built-in functions: the seam to `functions`.

use bytes::Bytes;

use super::error::Error;
use crate::functions::Function;

/// What functions may see of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Context;

/// An aggregate being fed.
#[derive(Clone, Debug)]
pub(crate) struct Accumulator;

fn unsupported() -> Error {
    Error::Invalid("Functions are not supported yet".to_owned())
}

/// The result of a scalar function.
pub(crate) fn call(_: &Function, _: &[Option<Bytes>], _: &Context) -> Result<Option<Bytes>, Error> {
    Err(unsupported())
}

impl Accumulator {
    /// Nothing has been taken in yet.
    pub(crate) fn new(_: &Function) -> Self {
        Self
    }

    /// Takes a row's arguments in.
    pub(crate) fn add(&mut self, _: &[Option<Bytes>]) -> Result<(), Error> {
        Err(unsupported())
    }

    /// The aggregate of what was taken in.
    pub(crate) fn finish(self) -> Result<Option<Bytes>, Error> {
        Err(unsupported())
    }
}
