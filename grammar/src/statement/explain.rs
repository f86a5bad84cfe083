//! EXPLAIN: a statement that Cassandra does not have.

use crate::ast::Statement;
use crate::input::{Input, Parsed, enter};
use crate::keyword::Kind;

/// Whether an EXPLAIN begins here: the word, which is no keyword.
pub(super) fn stands_at(input: Input<'_>) -> bool {
    input.is(Kind::Ident) && input.text().eq_ignore_ascii_case("explain")
}

/// `explain = IDENT ( select | insert | update | delete | batch )`
pub(super) fn explain(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("explain");
    let input = input.skip(1);
    match input.kind() {
        Kind::Select | Kind::Insert | Kind::Update | Kind::Delete | Kind::Begin => {
            super::map(super::statement(input), |statement| {
                Statement::Explain(Box::new(statement))
            })
        }
        _ => input.no_viable(0),
    }
}
