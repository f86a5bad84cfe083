//! INSERT … JSON: a document becomes a value for each column.

use grammar::ast::Term;

use super::bound::Value;
use super::error::Error;
use super::term::{Binding, Receiver, Typed, Typer};
use crate::schema::Table;
use crate::types::{CqlType, Native};

/// The document of an INSERT JSON, before binding.
#[derive(Clone, Debug)]
pub(crate) struct JsonPlan {
    document: Typed,
    default_unset: bool,
}

impl JsonPlan {
    /// Types the document.
    pub(crate) fn new(typer: &mut Typer<'_>, document: &Term, default_unset: bool) -> Result<Self, Error> {
        let receiver = Receiver::new("[json]", CqlType::Native(Native::Text));
        Ok(Self {
            document: typer.term(document, &receiver)?,
            default_unset,
        })
    }

    /// A value for each column of the table.
    pub(crate) fn bind(&self, _table: &Table, binding: &Binding<'_>) -> Result<Vec<Value>, Error> {
        let _ = (self.document.bind(binding)?, self.default_unset);
        Err(Error::Unsupported("INSERT JSON".into()))
    }
}
