//! TRUNCATE.

use crate::ast::Statement;
use crate::input::{Input, Parsed, enter, given};
use crate::keyword::Kind;
use crate::name::table_name;

/// `truncate = "TRUNCATE" [ "TABLE" ] table_name`
pub(super) fn truncate(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("truncate");
    let (input, _) = given(input.skip(1), Kind::Columnfamily);
    super::map(table_name(input), Statement::Truncate)
}
