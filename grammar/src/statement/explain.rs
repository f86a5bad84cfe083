//! EXPLAIN: a statement that Cassandra does not have.

use crate::ast::Statement;
use crate::input::{Input, Parsed, enter};
use crate::keyword::Kind;

/// Whether an EXPLAIN begins here: the word, which is no keyword, before a statement that can be explained.
pub(super) fn stands_at(input: Input<'_>) -> bool {
    input.is(Kind::Ident)
        && input.text().eq_ignore_ascii_case("explain")
        && matches!(
            input.next_unseen(),
            Kind::Select | Kind::Insert | Kind::Update | Kind::Delete | Kind::Begin
        )
}

/// `explain = IDENT ( select | insert | update | delete | batch )`
pub(super) fn explain(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("explain");
    super::map(super::statement(input.skip(1)), |statement| {
        Statement::Explain(Box::new(statement))
    })
}
