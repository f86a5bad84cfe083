//! USE.

use crate::ast::Statement;
use crate::input::{Input, Parsed, enter};
use crate::name::keyspace_name;

/// `use = "USE" keyspace_name`
pub(super) fn r#use(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("use");
    super::map(keyspace_name(input.skip(1)), Statement::Use)
}
